/*
 * core_apply.h - one command under way. Private to src/ledger/core*.c.
 */
#ifndef RON_LEDGER_CORE_APPLY_H
#define RON_LEDGER_CORE_APPLY_H

#include "ledger/core_types.h"

struct apply {
    struct ledger_core *core;
    struct ledger_batch *batch;
    const struct ledger_command *command;
    struct ledger_refusal *refusal; /* filled as checks fail */
    struct ron_errinfo *reterr;
    bool clearing_touched;
    bool cells_open; /* some cells lack their new values yet (finish_cells) */
    /* What the pass over the ids found. */
    uint32_t duplicates_count;
    uint32_t duplicate_first; /* index of the first */
    uint64_t duplicate_batch; /* of the first's original, if all so far lie in a row; else 0 */
    uint64_t duplicate_next;  /* seq the next one must duplicate */
};

/* One side of a movement: an account that may not be known yet. */
struct side {
    struct ledger_id id;
    const char *prefix;
    struct ron_slice name; /* empty: known by id alone */
    uint32_t account;      /* NONE: not known */
    uint32_t row;          /* NONE: not there */
    enum account_class class;
};

/* An op with everything it refers to looked up. */
struct movement {
    const struct ledger_op *op;
    const struct asset *asset; /* NULL: unknown, or none needed */
    uint32_t asset_number;
    struct side debit;
    struct side credit;
    struct ledger_id link;
    uint32_t hold; /* Capture, Release: NONE if unknown */
    bool has_ref;  /* Reverse: the entry is known */
    struct ledger_entry ref;
};

/* core_resolve.c: look up what op refers to, among entries up to seq_max. False: something is
 * unknown (the movement says what). */
bool movement_resolve(const struct ledger_core *core, const struct ledger_op *op, uint64_t seq_max,
                      struct movement *ret_movement);
/* Look up accounts and rows of both sides. */
void movement_locate(const struct ledger_core *core, struct movement *movement);

/* core_limits.c: may the money leave, may it arrive? */
enum ron_err check_debit(struct apply *a, const struct movement *m) RON_MUST_USE;
enum ron_err check_credit(struct apply *a, const struct movement *m) RON_MUST_USE;
bool credit_fits(const struct ledger_core *core, const struct movement *m);
void move_amount(struct ledger_core *core, const struct movement *m, uint64_t commit_ms);
/* A debit that daily ceilings count. */
void daily_add(struct row *debit, struct ron_u128 amount, uint64_t commit_ms);

/* core_ids.c: the passes before applying. */
/* Which of `count` ids from the op `first` on the archive may have: bit i % 64 of ret_bits[i / 64].
 */
void ids_ask_archive(const struct ledger_core *core, const struct ledger_command *source,
                     uint32_t first, uint32_t count, uint64_t *ret_bits);
/* Has an entry of this id been seen, in this batch or before? The archive is asked if it may have
 * it. Enters nothing. */
bool id_is_known(const struct apply *a, const struct ledger_id *id, bool ask);
/* Enters those of the source's ops from `first` on, as the batch's next. index_shift is taken off
 * reported indexes; those below it are not reported. */
enum ron_err ids_pass(struct apply *a, const struct ledger_command *source, uint32_t first,
                      uint32_t index_shift) RON_MUST_USE;
/* The same for ops that the command does not have. */
enum ron_err ids_pass_own(struct apply *a, const struct ledger_op *ops, uint32_t count,
                          uint32_t index_shift) RON_MUST_USE;
/* All duplicates of one whole batch: true and *ret_result. Else RON_ERR_CONFLICT or none at all. */
enum ron_err ids_verdict(struct apply *a, uint32_t count, bool *ret_duplicate,
                         struct ledger_result *ret_result) RON_MUST_USE;
enum ron_err key_pass(struct apply *a, struct ron_slice key, bool *ret_known,
                      struct ledger_result *ret_result) RON_MUST_USE;
void result_of_batch(const struct ledger_core *core, uint64_t batch,
                     struct ledger_result *ret_result);

enum ron_err check_op(struct apply *a, const struct ledger_op *op,
                      struct movement *ret_movement) RON_MUST_USE;
/* core_apply.c: apply one op as the batch's next entry; ids_pass has seen it. */
enum ron_err apply_op(struct apply *a, const struct ledger_op *op) RON_MUST_USE;
/* core_plain.c: apply the command's next ops (of which the batch has no entries yet), as long as
 * they are plain transfers that nothing refuses. Whose id is not entered yet: if it is new. */
struct ahead;
void apply_plain_ops(struct apply *a, struct ahead *ahead);
/* Write the entry and its leaf's ext for an op without movement (Anchor, Asset). */
enum ron_err apply_record(struct apply *a, const struct ledger_op *op, uint32_t asset,
                          struct ron_slice asset_terms) RON_MUST_USE;
enum ron_err apply_clearing(struct apply *a) RON_MUST_USE;

/* Does the account of this place, if any, have another name than prefix || name? */
bool is_misnamed(const struct ledger_core *core, uint32_t account, const char *prefix,
                 struct ron_slice name);

/* core_effect.c: all checks have passed and there is room. */
struct ledger_id name_id(const struct ledger_core *core, struct ron_slice name);
enum ron_err know_account(struct apply *a, const struct ledger_id *id, const char *prefix,
                          struct ron_slice name, uint32_t *account) RON_MUST_USE;
/* Without an archive no id may ever be forgotten. */
static inline bool log_has_room(const struct apply *a) /* for an entry without extension */
{
    return a->core->archive.find_entry != NULL ||
           a->core->seq_last + a->batch->entries_count < a->core->capacity.entries_window;
}
enum ron_err check_log_room(struct apply *a, const struct ledger_ext *ext) RON_MUST_USE;
enum ron_err effect(struct apply *a, struct movement *m) RON_MUST_USE;
void write_entry(struct apply *a, const struct movement *m, const struct ledger_ext *ext);
/* The commands; each fills *ret_result, applied or not. */
enum ron_err apply_ingest(struct apply *a, struct ledger_result *ret_result) RON_MUST_USE;
enum ron_err apply_asset(struct apply *a, struct ledger_result *ret_result) RON_MUST_USE;
enum ron_err apply_limits(struct apply *a, struct ledger_result *ret_result) RON_MUST_USE;
enum ron_err apply_intents(struct apply *a, struct ledger_result *ret_result) RON_MUST_USE;
enum ron_err apply_slice(struct apply *a, struct ledger_result *ret_result) RON_MUST_USE;
enum ron_err apply_expire(struct apply *a, struct ledger_result *ret_result) RON_MUST_USE;
enum ron_err apply_abandon(struct apply *a, struct ledger_result *ret_result) RON_MUST_USE;
enum ron_err check_open_shape(struct apply *a) RON_MUST_USE; /* before anything else */
enum ron_err apply_open(struct apply *a, struct ledger_result *ret_result) RON_MUST_USE;

/* core_intents.c: runs by their epoch; what is left of a run's Hold. */
uint32_t run_find_named(const struct ledger_core *core, const struct ledger_stamp *stamp,
                        struct ron_slice epoch_id); /* NONE: no such run */
struct ledger_id run_key_id(struct ron_slice run_key);
struct ron_u128 run_rest(const struct ledger_core *core, const struct run *run);

/* Details of a refusal. */
static inline void refusal_available(struct apply *a, struct ron_u128 available)
{
    a->refusal->present |= LEDGER_DETAIL_AVAILABLE;
    a->refusal->available = available;
}
static inline void refusal_expected(struct apply *a, unsigned detail, uint64_t expected)
{
    a->refusal->present |= detail;
    a->refusal->expected = expected;
}
static inline void refusal_index(struct apply *a, uint32_t index)
{
    a->refusal->present |= LEDGER_DETAIL_INDEX;
    a->refusal->index = index;
}
/* LimitExceeded with the limit's name, a static text. */
enum ron_err refuse_limit(struct apply *a, const char *limit);

/* core_body.c: the command's own part of the frame. */
uint32_t body_encode(const struct ledger_command *command, uint8_t *ret_body);
enum ron_err body_decode(struct ron_slice body, struct ledger_command *command,
                         struct ron_errinfo *reterr) RON_MUST_USE;

#endif
