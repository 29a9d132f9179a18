/*
 * json_canon.h - the canonical form of a JSON text (RFC 8785), for hashing and signing.
 *
 * One text for one value: no white space, members by the UTF-16 code units of their names, minimal
 * escapes. RFC 8785 numbers are doubles, so an integer beyond +-(2^53 - 1) has no canonical form
 * here: such amounts are strings. The canonical form is never longer than the text.
 */
#ifndef RON_BASE_JSON_CANON_H
#define RON_BASE_JSON_CANON_H

#include "base/arena.h"

/* Check text with the strict reader and append its canonical form to buf. RON_ERR_MALFORMED (the
 * reader's refusals, and integers as above), RON_ERR_TOO_LARGE (text, arena or buffer),
 * RON_ERR_NO_MEMORY (buffer). On success the arena is as it was; ten times the text's size and 64
 * bytes are always enough. After an error buf holds a part of the output and the arena some
 * scratch: reset both. */
enum ron_err ron_json_canon(struct ron_slice text, struct ron_arena *arena, struct ron_buf *buf,
                            struct ron_errinfo *reterr) RON_MUST_USE;

#endif
