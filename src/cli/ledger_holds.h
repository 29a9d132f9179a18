/*
 * ledger_holds.h - the holds that an import has met: is each for one payee, or for any?
 *
 * A Capture names its payee exactly if the hold has none, and its line does not say which.
 */
#ifndef RON_CLI_LEDGER_HOLDS_H
#define RON_CLI_LEDGER_HOLDS_H

#include "base/bytes.h"

enum { HOLD_SET_MAX = 1 << 24 };

struct hold_slot {
    uint8_t hash[15]; /* of the hold_id */
    uint8_t what;     /* 0: free, 1: one payee, 2: any */
};
struct hold_set {
    struct hold_slot *slots; /* slots_count, a power of two; at most half are taken */
    size_t slots_count, count;
};
/* Zeros are an empty set. RON_ERR_NO_MEMORY, RON_ERR_TOO_LARGE; one that is there stays as it is.
 */
enum ron_err hold_set_add(struct hold_set *set, struct ron_slice hold_id, bool any,
                          struct ron_errinfo *reterr) RON_MUST_USE;
bool hold_set_find(const struct hold_set *set, struct ron_slice hold_id, bool *ret_any);
void hold_set_fini(struct hold_set *set);

#endif
