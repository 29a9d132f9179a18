/*
 * core_balance.h - committed balances, for readers on any thread and without locks. Part of core.h.
 */
#ifndef RON_LEDGER_CORE_BALANCE_H
#define RON_LEDGER_CORE_BALANCE_H

#include "base/u128.h"
#include "ledger/core_entry.h"

struct ledger_core;

struct ledger_balance {
    struct ron_u128 amount; /* magnitude */
    bool negative;
    uint64_t next_nonce;
    uint64_t as_of_seq;
};
/* An account or asset that is not there has balance 0 and next_nonce 1. */
void ledger_core_balance(const struct ledger_core *core, const struct ledger_id *account,
                         uint32_t asset, struct ledger_balance *ret_balance);
/* The same for up to LEDGER_BALANCES_MAX at once, each by itself: memory is waited for once, not
 * once for each. */
enum { LEDGER_BALANCES_MAX = 64 };
struct ledger_balance_ask {
    struct ledger_id account;
    uint32_t asset;
    struct ledger_balance balance; /* the answer */
};
void ledger_core_balances(const struct ledger_core *core, struct ledger_balance_ask *asks,
                          size_t asks_count);

#endif
