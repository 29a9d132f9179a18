/*
 * core_command.h - what goes into the core: stamped commands with their shape already checked.
 *
 * The shape functions are pure and need no state, so a prevalidator runs them on any thread: they
 * check grammar and lengths, and compute the ids (BLAKE3) that the core then only compares. All
 * texts are borrowed and must live until the command has been applied.
 */
#ifndef RON_LEDGER_CORE_COMMAND_H
#define RON_LEDGER_CORE_COMMAND_H

#include "base/b3.h"
#include "ledger/core_op.h"

enum {
    LEDGER_HOLD_ID_SIZE_MAX = 64,
    LEDGER_EPOCH_ID_SIZE_MAX = 64,
    LEDGER_RUN_KEY_SIZE_MAX = 96, /* "b3:" and 64 digits, with room */
    LEDGER_FUNDING_SIZE_MAX = 64,
    LEDGER_DIMENSION_SIZE_MAX = 64,
    LEDGER_DECIMALS_MAX = 38,
    LEDGER_TS_SKEW_MS_MAX = 60000,
    LEDGER_BATCH_ENTRIES_MAX = RON_BATCH_ENTRIES_MAX + 2, /* a run's Anchor and Hold on top */
};

#define LEDGER_CALLER_MAP(X)    \
    X(DIRECT, "direct")         \
    X(WALLET, "wallet")         \
    X(REWARDER, "rewarder")     \
    X(ACCOUNTING, "accounting") \
    X(REGISTRY, "registry")     \
    X(LEDGER, "ledger")
enum ledger_caller {
#define X(name, text) LEDGER_CALLER_##name,
    LEDGER_CALLER_MAP(X)
#undef X
        LEDGER_CALLER__MAX
};
const char *ledger_caller_name(enum ledger_caller caller);
bool ledger_caller_find(struct ron_slice name, enum ledger_caller *ret_caller) RON_MUST_USE;

/* Written by the Sequencer from its clock and the verified token, never from a body. */
struct ledger_stamp {
    uint64_t commit_ms;
    struct ron_u128 tenant;
    enum ledger_caller caller;
    bool reserved_ok; /* the capability names the reserved account that is debited */
    uint8_t capability[LEDGER_CAPABILITY_SIZE];
};

/* An entry as it stands in a request; members that are absent have data NULL. */
struct ledger_wire_entry {
    struct ron_slice id, kind, from, to, account, hold_id, payee, expires_at, ref, stream, digest;
    struct ron_slice asset, amount, memo;
    struct ron_slice meta; /* already canonical */
    bool has_nonce, has_ts;
    uint64_t nonce, ts_ms;
};
enum ron_err ledger_shape_entry(struct ron_u128 tenant, const struct ledger_wire_entry *wire,
                                struct ledger_op *ret_op, struct ron_errinfo *reterr) RON_MUST_USE;
/* "b3:" or "sha256:" and 64 hex digits. */
enum ron_err ledger_shape_digest(struct ron_slice text, uint8_t ret_digest[static 32],
                                 bool *ret_sha256, struct ron_errinfo *reterr) RON_MUST_USE;

enum ledger_command_kind {
    LEDGER_COMMAND_INGEST = 1,
    LEDGER_COMMAND_ASSET = 2,
    LEDGER_COMMAND_LIMITS = 3,
    LEDGER_COMMAND_INTENTS = 4,
    LEDGER_COMMAND_SLICE = 5,
    LEDGER_COMMAND_EXPIRE = 6,
    LEDGER_COMMAND_ABANDON = 7,
    LEDGER_COMMAND_OPEN = 8,
};

struct ledger_asset_terms {
    struct ron_slice name;
    uint32_t decimals;
    struct ron_u128 max_supply;
};

/* Replaces all four limits of (account, asset); frozen only if given. */
struct ledger_limit_terms {
    struct ron_slice account;
    struct ron_slice asset; /* data NULL: only `frozen` is set */
    bool has_minimum, has_maximum, has_credit_line, has_daily, has_frozen, frozen;
    struct ron_u128 minimum, maximum, credit_line, daily;
};

struct ledger_run_terms {
    struct ron_slice epoch_id, run_key, funding_source, asset;
    uint8_t commitment[LEDGER_DIGEST_SIZE]; /* BLAKE3 */
    struct ron_u128 total;
    uint32_t chunk, chunks;
};
/* The account of a run's Hold. */
struct ledger_id ledger_run_hold_id(struct ron_u128 tenant, struct ron_slice epoch_id);
/* A payout as an op; hold is the account above. */
enum ron_err ledger_shape_payout(struct ron_u128 tenant, const struct ledger_id *hold,
                                 const struct ledger_wire_entry *wire, struct ledger_op *ret_op,
                                 struct ron_errinfo *reterr) RON_MUST_USE;

struct ledger_slice_terms {
    struct ron_slice dimension;
    uint64_t seq;
    uint8_t digest[LEDGER_DIGEST_SIZE], prev[LEDGER_DIGEST_SIZE];
};

/* End a run that cannot go on: what it holds goes back to its pool. */
struct ledger_abandon_terms {
    struct ron_slice epoch_id, run_key;
};

/* Make accounts known by name, so that binary entries may name them by id. */
struct ledger_open_terms {
    const struct ron_slice *names;
    uint32_t count;
};

/* What the capability covers, asked where only the core knows the name. Not in the frame. */
struct ledger_cover {
    bool accounts, account_glob, assets; /* bound; by what names begin with; bound */
    struct ron_slice account, asset;
};
bool ledger_cover_account(const struct ledger_cover *cover, struct ron_slice name);

/* What the archive said of the ids of the ops, by who asked it before: bit i % 64 of bits[i / 64]
 * is 0 where the id of op i is in no batch up to batch_max. */
struct ledger_sifted {
    const uint64_t *bits; /* NULL: it was not asked */
    uint64_t batch_max;
};

struct ledger_command {
    enum ledger_command_kind kind;
    struct ledger_stamp stamp;
    struct ledger_cover cover;
    struct ron_slice key;        /* INGEST: may be empty; INTENTS: made by the core */
    struct ron_b3 fingerprint;   /* of the body, where there is a key */
    const struct ledger_op *ops; /* INGEST: entries; INTENTS: payouts */
    /* INGEST: NULL, or entries in place of ops: of ids alone, without times or extensions. */
    const struct ledger_bare_op *bare_ops;
    uint32_t ops_count;
    struct ledger_sifted sifted;
    union {
        struct ledger_asset_terms asset;
        struct ledger_limit_terms limits;
        struct ledger_run_terms run;
        struct ledger_slice_terms slice;
        struct ledger_abandon_terms abandon;
        struct ledger_open_terms open;
    };
};
/* What an op of either form has. */
static inline const struct ledger_bare_op *ledger_op_head(const struct ledger_command *command,
                                                          uint32_t index)
{
    return command->bare_ops != NULL
               ? &command->bare_ops[index]
               : (const struct ledger_bare_op *)(const void *)&command->ops[index];
}
static inline size_t ledger_op_stride(const struct ledger_command *command)
{
    return command->bare_ops != NULL ? sizeof(*command->bare_ops) : sizeof(*command->ops);
}
/* The op in the form with names: made in *room, if it is bare. Borrows. */
static inline const struct ledger_op *ledger_op_whole(const struct ledger_command *command,
                                                      uint32_t index, struct ledger_op *room)
{
    return command->bare_ops == NULL ? &command->ops[index]
                                     : ledger_op_of_bare(&command->bare_ops[index], room);
}
/* The shape of everything but the ops. */
enum ron_err ledger_shape_command(const struct ledger_command *command,
                                  struct ron_errinfo *reterr) RON_MUST_USE;

/* Grammar. */
bool ledger_is_account(struct ron_slice text);
bool ledger_is_asset(struct ron_slice text);
bool ledger_is_key(struct ron_slice text);
bool ledger_is_id(struct ron_slice text);      /* of an entry, given by a client */
bool ledger_is_hold_id(struct ron_slice text); /* also epoch_id, funding_source, dimension */
#endif
