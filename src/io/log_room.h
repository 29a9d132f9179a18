/*
 * log_room.h - the memory of a log's groups: the one that fills, the one that is written, and the
 * newest that are durable, for who follows the log and need not read the disk for them.
 *
 * A few chunks. A group lies in one of them, page-aligned as it does in its file: where it begins
 * within a page it begins there in memory, with room in front for what the page has already, and
 * behind it to the end of its last page. So it can be written in whole pages from where it lies.
 * Groups of a chunk follow one another without a gap; a chunk is used again as a whole, oldest
 * first, but not while it has the group that is written, or is pinned. Everything under the log's
 * lock but the bytes, which are whose group they are of and do not change once it is durable.
 */
#ifndef RON_IO_LOG_ROOM_H
#define RON_IO_LOG_ROOM_H

#include "io/log.h"
#include "rt/lock_classes.h"

struct log_group;

enum {
    LOG_CHUNKS = 3,           /* one is written, one may be pinned */
    LOG_CHUNK_GROUPS = 512,   /* of one chunk */
    LOG_CHUNK_USED = 2 << 20, /* no group begins behind it: more memory is not kept in use */
};

/* A durable group. */
struct log_kept {
    const uint8_t *bytes;
    uint64_t first_index, records_count;
};

struct log_chunk {
    uint8_t *bytes;
    size_t used; /* whole pages, of groups that are closed */
    uint32_t pins_count;
    uint32_t kept_count;
    struct log_kept kept[LOG_CHUNK_GROUPS];
};

struct log_room {
    void *memory;
    size_t group_size; /* that the largest group may take, its pages whole */
    size_t chunk_size;
    uint32_t current; /* where the next group goes, if it fits */
    struct log_chunk chunks[LOG_CHUNKS];
};

/* Room for groups of up to buffer_size bytes, their end included. False when there is no memory. */
bool log_room_init(struct log_room *room, size_t buffer_size) RON_MUST_USE;
void log_room_fini(struct log_room *room); /* nothing is pinned */

/* Give the open group, which has no record yet and whose offset is known, its memory, for as many
 * bytes as a group may have. May be asked again before the first record. */
void log_room_place(struct io_log *log) RON_NEEDS(storage);
/* The group is closed: its end is known. */
void log_room_close(struct io_log *log, const struct log_group *group) RON_NEEDS(storage);
/* It is durable. */
void log_room_keep(struct io_log *log, const struct log_group *group) RON_NEEDS(storage);

#endif
