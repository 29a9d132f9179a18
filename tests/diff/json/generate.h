/*
 * generate.h - JSON documents from a seed, good and bad ones.
 */
#ifndef RON_TESTS_DIFF_JSON_GENERATE_H
#define RON_TESTS_DIFF_JSON_GENERATE_H

#include "base/bytes.h"

enum { DOCUMENT_SIZE_MAX = 16384 };

struct document {
    size_t size;
    uint8_t data[DOCUMENT_SIZE_MAX];
};

/* Document number `index` of the run with this seed; always the same. */
void generate_document(uint64_t seed, uint64_t index, struct document *ret_document);

#endif
