/*
 * core_op.h - one entry to be.
 */
#ifndef RON_LEDGER_CORE_OP_H
#define RON_LEDGER_CORE_OP_H

#include "ledger/core_entry.h"

/* With names (JSON), or of ids alone (binary), which takes half as much memory. */
#define LEDGER_OP_HEAD                                                                       \
    struct ledger_id id;                                                                     \
    struct ledger_id debit;  /* Transfer Burn Hold Debit: from; Capture Release: the hold */ \
    struct ledger_id credit; /* Transfer Mint Credit: to; Hold: the hold; Capture: to */     \
    struct ron_u128 amount;                                                                  \
    struct ledger_id other; /* Hold: payee or zeros; Reverse: the entry */                   \
    uint64_t nonce;         /* 0 = none */                                                   \
    union {                                                                                  \
        struct {                                                                             \
            uint64_t ts_ms; /* if has_ts */                                                  \
            uint64_t expires_ms;                                                             \
        };                                                                                   \
        uint8_t id_digits[LEDGER_ID_SIZE]; /* of a binary entry, without these: id_text's */ \
    };                                                                                       \
    uint32_t asset; /* number, where asset_name is empty */                                  \
    uint16_t kind;                                                                           \
    bool has_ts : 1;                                                                         \
    bool has_to : 1;          /* Capture */                                                  \
    bool by_ledger : 1;       /* the id text is the ledger's own */                          \
    bool sha256 : 1;          /* Anchor: the digest, in debit and credit */                  \
    struct ron_slice id_text; /* core_id_text.h: of size 0 it is the digits of 16 bytes */
struct ledger_bare_op {
    LEDGER_OP_HEAD
};
struct ledger_op {
    LEDGER_OP_HEAD
    struct ron_slice debit_name;  /* empty: known by id alone */
    struct ron_slice credit_name; /* of a Hold and in debit_name of a Capture: the hold_id */
    struct ron_slice payee_name;
    struct ron_slice asset_name;
    struct ron_slice memo; /* data NULL: none; so for the three below */
    struct ron_slice meta; /* RFC 8785 */
    struct ron_slice stream, ref;
};
_Static_assert(sizeof(struct ledger_bare_op) == 128, "two lines of the cache");
_Static_assert(offsetof(struct ledger_op, debit_name) == sizeof(struct ledger_bare_op),
               "what both have is first");

/* The op in the form with names, which are empty for a bare one: made in *room. Borrows. */
static inline const struct ledger_op *ledger_op_of_bare(const struct ledger_bare_op *bare,
                                                        struct ledger_op *room)
{
    *room = (struct ledger_op){.kind = 0};
    memcpy(room, bare, sizeof(*bare));
    return room;
}

#endif
