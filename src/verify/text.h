/*
 * text.h - lines, hashes and numbers of a text, for the readers of this folder.
 */
#ifndef RON_VERIFY_TEXT_H
#define RON_VERIFY_TEXT_H

#include "base/base64.h"

/* The next line without its newline; *rest begins behind it. False at the end and where the last
 * line has no newline: *rest is untouched then. */
static inline bool text_take_line(struct ron_slice *rest, struct ron_slice *ret_line)
{
    const uint8_t *end = rest->size == 0 ? NULL : memchr(rest->data, '\n', rest->size);
    size_t size;

    if (end == NULL)
        return false;
    size = (size_t)(end - rest->data);
    *ret_line = ron_slice_of(rest->data, size);
    *rest = ron_slice_of(end + 1, rest->size - size - 1);
    return true;
}

/* Take `prefix` off the front, if it is there. */
static inline bool text_take_prefix(struct ron_slice *text, struct ron_slice prefix)
{
    if (text->size < prefix.size || memcmp(text->data, prefix.data, prefix.size) != 0)
        return false;
    *text = ron_slice_of(text->data + prefix.size, text->size - prefix.size);
    return true;
}

/* Standard base64 of exactly 32 bytes. */
static inline bool text_read_hash(struct ron_slice text, struct ron_sha256 *ret_hash)
{
    struct ron_sha256 hash;
    size_t size = 0;

    if (ron_base64_decode(RON_BASE64_STANDARD, text, hash.bytes, sizeof(hash.bytes), &size, NULL) !=
            RON_ERR_OK ||
        size != sizeof(hash.bytes))
        return false;
    *ret_hash = hash;
    return true;
}

#endif
