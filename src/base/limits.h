/*
 * limits.h - every bound of ron in one place, with the relations between them.
 *
 * A number here is a promise: what is beyond it gets a typed error, at once. Sizes are bytes, times
 * milliseconds. Defaults that an operator may lower live in the configuration; these are ceilings.
 */
#ifndef RON_BASE_LIMITS_H
#define RON_BASE_LIMITS_H

#include <stdint.h>

#include "ron/error.h"

enum {
    /* Requests and frames. */
    RON_BODY_SIZE_MAX = 1 << 20,  /* an HTTP body, after inflating */
    RON_FRAME_SIZE_MAX = 1 << 20, /* an OAP/1 frame, header included */
    RON_FRAME_HEAD_SIZE = 38,
    RON_INFLATED_SIZE_MAX = 8 << 20, /* a compressed OAP/1 frame, inflated */
    RON_DECOMPRESS_RATIO_MAX = 10,
    RON_BATCH_ENTRIES_MAX = 8000, /* one atomic batch */
    RON_WIRE_ENTRY_SIZE = 96,     /* one entry of an OAP/1 ingest body */

    /* Names. */
    RON_ACCOUNT_NAME_SIZE_MAX = 160,
    RON_ASSET_NAME_SIZE_MAX = 32,
    RON_ENTRY_ID_SIZE_MAX = 64,
    RON_IDEM_KEY_SIZE_MAX = 128,
    RON_MEMO_SIZE_MAX = 256,
    RON_META_SIZE_MAX = 1024,

    /* Log records. */
    RON_ENTRY_SIZE = 128,
    RON_LEAF_SIZE_MAX = 4096,

    /* Parsers. */
    RON_JSON_SIZE_MAX = 8 << 20, /* also the bound of a 32-bit offset with room to spare */
    RON_JSON_DEPTH_MAX = 32,
    RON_JSON_FIELDS_MAX = 64, /* members one DTO may declare: presence is a 64-bit set */
    RON_CBOR_DEPTH_MAX = 32,
    RON_TOML_SIZE_MAX = 1 << 20,
    RON_TOML_DEPTH_MAX = 16,
    RON_TOML_NODES_MAX = 1 << 15, /* keys and array elements of one document */
    RON_DECIMAL_DIGITS_MAX = 39,  /* of 2^128 - 1 */

    /* Memory. */
    RON_ALLOCATION_SIZE_MAX = 1 << 30, /* of one ron_mem_alloc */
    RON_SECRET_SIZE_MAX = 4096,
};
#define RON_TABLE_SIZE_MAX (UINT64_C(1) << 38) /* of one ron_table_alloc */

_Static_assert(RON_FRAME_HEAD_SIZE + 2 + RON_IDEM_KEY_SIZE_MAX + 4 +
                       RON_BATCH_ENTRIES_MAX * RON_WIRE_ENTRY_SIZE <=
                   RON_FRAME_SIZE_MAX,
               "a full binary batch fits one frame");
_Static_assert(RON_ENTRY_SIZE + 3 + RON_MEMO_SIZE_MAX + 3 + RON_META_SIZE_MAX <= RON_LEAF_SIZE_MAX,
               "an entry with the largest memo and meta fits a leaf");
_Static_assert(RON_BODY_SIZE_MAX <= RON_JSON_SIZE_MAX, "any body can be read as JSON");
_Static_assert(RON_BODY_SIZE_MAX <= RON_INFLATED_SIZE_MAX, "inflating reaches a full body");
_Static_assert(RON_INFLATED_SIZE_MAX <= RON_FRAME_SIZE_MAX * RON_DECOMPRESS_RATIO_MAX,
               "the ratio cap does not make the inflated cap unreachable");
_Static_assert(RON_ASSET_NAME_SIZE_MAX + sizeof("sys/clearing/") - 1 <= RON_ACCOUNT_NAME_SIZE_MAX,
               "every asset has its system accounts");
_Static_assert(RON_ENTRY_ID_SIZE_MAX + sizeof("sys/hold/") - 1 <= RON_ACCOUNT_NAME_SIZE_MAX,
               "every hold has its account");

#endif
