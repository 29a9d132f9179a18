/*
 * log_starts.h - where some records of a segment start: what a reader goes by until the index is
 * built. When they are too many, every second one is forgotten.
 */
#ifndef RON_IO_LOG_STARTS_H
#define RON_IO_LOG_STARTS_H

#include "io/segment_index.h"

enum { LOG_STARTS_MAX = 64 };
struct log_starts {
    struct io_index_start starts[LOG_STARTS_MAX];
    uint32_t count;
    uint32_t stride8; /* between two, at least */
};

/* In order of records. */
void log_starts_add(struct log_starts *starts, uint64_t index, uint64_t offset);
/* The offset of the last start at or before the record; 0 if there is none. */
uint64_t log_starts_before(const struct log_starts *starts, uint64_t index);

#endif
