/*
 * core_ahead.h - what the ops of a command will touch, asked for a few ops ahead. Private to
 * src/ledger/core*.c.
 *
 * Most of the time of an op is waiting for memory: the op itself, which another thread made; its
 * id's bucket and the slots of its two accounts; the accounts; their rows. Each of these says where
 * the next one is, so they are asked for in steps, STEP ops apart.
 */
#ifndef RON_LEDGER_CORE_AHEAD_H
#define RON_LEDGER_CORE_AHEAD_H

#include "ledger/core_apply.h"

/* Both sides of a transfer, debit first. NONE: not there. */
struct sides {
    uint32_t accounts[2];
    uint32_t rows[2]; /* what the account got last */
};

enum {
    AHEAD_FEW = 4, /* so many are prefetched by who applies several such commands */
    AHEAD_STEP = 5,
    AHEAD_STEPS = 3, /* buckets and slots, accounts, rows */
    AHEAD_RING = 16,
};
_Static_assert((int)AHEAD_RING > (AHEAD_STEPS - 1) * AHEAD_STEP, "sides on their way have room");

struct ahead {
    const struct ledger_core *core;
    const uint8_t *ops; /* of either form */
    size_t stride;
    bool is_bare;
    uint32_t count;
    uint32_t step; /* 0: of few ops each is looked at when it is its turn */
    uint32_t next; /* op to be told */
    struct sides sides[AHEAD_RING];
};

static RON_HOT_INLINE const struct ledger_bare_op *ahead_head(const struct ahead *ahead,
                                                              uint32_t index)
{
    return (const struct ledger_bare_op *)(const void *)(ahead->ops + index * ahead->stride);
}

static RON_HOT_INLINE void ahead_op(const struct ahead *ahead, uint32_t index)
{
    enum { LINE = 64 };
    const uint8_t *op = (const uint8_t *)ahead_head(ahead, index);

    ron_prefetch(op);
    ron_prefetch(op + LINE);
    if (ahead->is_bare)
        return;
    ron_prefetch(op + (size_t)2 * LINE);
    ron_prefetch(op + (size_t)3 * LINE);
}

static RON_HOT_INLINE void ahead_slots(const struct ahead *ahead, uint32_t index)
{
    const struct ledger_bare_op *op = ahead_head(ahead, index);

    ledger_recent_prefetch(&ahead->core->id_index, id_hash(&op->id));
    account_prefetch_slot(ahead->core, &op->debit);
    account_prefetch_slot(ahead->core, &op->credit);
    if (!ahead->is_bare)
        ron_prefetch(op->id_text.data);
}

/* An Anchor's digest does no harm. */
static RON_HOT_INLINE void ahead_accounts(struct ahead *ahead, uint32_t index)
{
    const struct ledger_bare_op *op = ahead_head(ahead, index);
    struct sides *sides = &ahead->sides[index % AHEAD_RING];

    ledger_recent_prefetch_next(&ahead->core->id_index, id_hash(&op->id), ahead->core->ring_first);
    sides->accounts[0] = account_prefetch(ahead->core, &op->debit);
    sides->accounts[1] = account_prefetch(ahead->core, &op->credit);
}

/* The account found first is of the same hash: as a rule of the same id. */
static RON_HOT_INLINE void ahead_row(const struct ledger_core *core, const struct ledger_id *id,
                                     uint32_t *account, uint32_t *ret_row)
{
    const uint32_t found = *account;

    if (RON_UNLIKELY(found == NONE) || RON_UNLIKELY(!account_is(&core->accounts[found], id)))
        *account = account_find(core, id);
    *ret_row = account_prefetch_row(core, *account);
}

static RON_HOT_INLINE void ahead_rows(struct ahead *ahead, uint32_t index)
{
    const struct ledger_bare_op *op = ahead_head(ahead, index);
    struct sides *sides = &ahead->sides[index % AHEAD_RING];

    ahead_row(ahead->core, &op->debit, &sides->accounts[0], &sides->rows[0]);
    ahead_row(ahead->core, &op->credit, &sides->accounts[1], &sides->rows[1]);
}

/* The steps of `lead`, the op that is furthest ahead, and of those behind it, as far as they are
 * ops of the command. */
static inline void ahead_turn_at_ends(struct ahead *ahead, uint32_t lead)
{
    const uint32_t count = ahead->count, step = ahead->step;

    if (step > 0 && lead + step < count)
        ahead_op(ahead, lead + step);
    if (lead < count)
        ahead_slots(ahead, lead);
    if (lead >= step && lead - step < count)
        ahead_accounts(ahead, lead - step);
    if (lead >= 2 * step && lead - 2 * step < count)
        ahead_rows(ahead, lead - 2 * step);
}

static inline void ahead_begin(struct ahead *ahead, const struct ledger_core *core,
                               const struct ledger_command *command)
{
    ahead->core = core;
    ahead->is_bare = command->bare_ops != NULL;
    ahead->ops = ahead->is_bare ? (const uint8_t *)command->bare_ops
                                : (const uint8_t *)command->ops;
    ahead->stride = ledger_op_stride(command);
    ahead->count = command->ops_count;
    ahead->step = command->ops_count > AHEAD_FEW ? AHEAD_STEP : 0;
    ahead->next = 0;
    for (uint32_t lead = 0; lead < AHEAD_STEPS * ahead->step; lead++)
        ahead_turn_at_ends(ahead, lead);
}

/* Both sides of an op: of one after the other from the first on, or of the last one told again.
 * What is told stays right while the command is applied, but for what was not there (NONE) and rows
 * that are not the newest any more. */
static RON_HOT_INLINE const struct sides *ahead_at(struct ahead *ahead, uint32_t index)
{
    RON_ASSERT(index <= ahead->next);
    if (index == ahead->next) {
        const uint32_t lead = index + AHEAD_STEPS * AHEAD_STEP;

        ahead->next++;
        if (RON_LIKELY(lead + AHEAD_STEP < ahead->count)) {
            ahead_op(ahead, lead + AHEAD_STEP);
            ahead_slots(ahead, lead);
            ahead_accounts(ahead, lead - AHEAD_STEP);
            ahead_rows(ahead, lead - 2 * AHEAD_STEP);
        } else {
            ahead_turn_at_ends(ahead, index + AHEAD_STEPS * ahead->step);
        }
    }
    return &ahead->sides[index % AHEAD_RING];
}

#endif
