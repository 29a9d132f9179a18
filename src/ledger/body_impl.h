/*
 * body_impl.h - what the readers of bodies share. Private to src/ledger/body*.c.
 */
#ifndef RON_LEDGER_BODY_IMPL_H
#define RON_LEDGER_BODY_IMPL_H

#include "base/json_dto.h"
#include "ledger/body.h"

/* An element of `batch` or `payouts`; texts are looked at by the shape functions. */
struct body_item {
    uint64_t present;
    struct ledger_wire_entry wire;
};

enum { BODY_TEXT_MAX = 4096 }; /* of a text, before its grammar is looked at */

/* A member of another name than the struct's, or of a struct inside it. */
#define BODY_FIELD(structure, text, member, ctype, kind, flag_bits, ...)                       \
    {                                                                                          \
        .name = (text), .name_size = sizeof(text) - 1, .type = RON_JSON_TYPE_##kind,           \
        .flags = (flag_bits), .offset = RON_JSON_OFFSET(structure, member, ctype), __VA_ARGS__ \
    }
#define BODY_TEXT(structure, text, member, flag_bits)                        \
    BODY_FIELD(structure, text, member, struct ron_slice, STRING, flag_bits, \
               .size_max = BODY_TEXT_MAX)

/* Room for ops; RON_ERR_TOO_LARGE. */
enum ron_err body_ops(struct body_scratch *scratch, uint32_t count, struct ledger_op **ret_ops,
                      struct ron_errinfo *reterr) RON_MUST_USE;

/* body_fingerprint.c: RON_ERR_NO_MEMORY. */
enum ron_err body_fingerprint_ingest(struct body_scratch *scratch, const struct body_item *items,
                                     uint32_t items_count, struct ron_b3 *ret_fingerprint,
                                     struct ron_errinfo *reterr) RON_MUST_USE;
enum ron_err body_fingerprint_intents(struct body_scratch *scratch,
                                      const struct ledger_run_terms *run,
                                      const struct body_item *items, uint32_t items_count,
                                      struct ron_b3 *ret_fingerprint,
                                      struct ron_errinfo *reterr) RON_MUST_USE;

#endif
