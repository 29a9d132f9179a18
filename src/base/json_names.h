/*
 * json_names.h - the member names of open objects, to find duplicates. Internal to json_*.c.
 *
 * A name is remembered as eight bytes on the arena's stack: 40 bits of hash and the offset of its
 * quote in the text. Names are compared as they decode, so "a" and "\u0061" are the same. An object
 * of few members is checked name by name; a large one once, when it ends, by sorting: O(n log n)
 * whatever the names are, also if they all have one hash.
 */
#ifndef RON_BASE_JSON_NAMES_H
#define RON_BASE_JSON_NAMES_H

#include "base/json.h"

#define RON_JSON_NO_DUPLICATE UINT32_MAX

/* The hash a name is remembered by, for tests: two names that share it are hard to come by. */
uint64_t ron_json_names_hash(const struct ron_json_reader *reader, struct ron_slice name);
/* Remember the name whose quote is at offset, in the innermost open object. False when the arena is
 * full. *ret_duplicate is offset if a small object has that name already. */
bool ron_json_names_add(struct ron_json_reader *reader, uint32_t offset, struct ron_slice name,
                        uint32_t *ret_duplicate) RON_MUST_USE;
/* The innermost object ends: the offset of its first name that was there before, if it is large and
 * has one; the names are forgotten. */
uint32_t ron_json_names_end(struct ron_json_reader *reader);
/* Forget the names of all open objects. */
void ron_json_names_clear(struct ron_json_reader *reader);

#endif
