/*
 * ron/types.h - the two values that every public header passes around.
 */
#ifndef RON_TYPES_H
#define RON_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* Borrowed bytes or text, not NUL-terminated: whoever made them says how long they live. */
struct ron_slice {
    const uint8_t *data; /* may be NULL only when size is 0 */
    size_t size;
};

enum { RON_SHA256_SIZE = 32 };

/* A SHA-256 digest. */
struct ron_sha256 {
    uint8_t bytes[RON_SHA256_SIZE];
};

#endif
