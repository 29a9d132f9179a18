/*
 * core_plain.c - the transfer that most entries are: between two accounts that are known and have
 * the asset already, with nothing in its way and nothing beside it.
 *
 * All that core_ids.c and core_apply.c check and core_effect.c does of such a one, with what cannot
 * concern it left out. Whatever is not plain, or would be refused, is left to them as it was: there
 * is one place for each refusal. That both ways end in the same state and the same bytes is what
 * unit/ledger_plain compares.
 *
 * As long as a command's ops are plain, ids are entered and money is moved in one pass. That is
 * what the passes one after the other would do: of those that are done none refuses, whatever
 * follows them, and a command that is refused after all is taken back as a whole.
 */
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "ledger/core_ahead.h"
#include "ledger/core_id_text.h"
#include "ledger/core_touch.h"

/* --- Is it plain? ------------------------------------------------------------------------------
 */

/* Nothing that only some capability may do. */
static bool is_plain_command(const struct ledger_command *command)
{
    return command->kind == LEDGER_COMMAND_INGEST && !command->cover.accounts &&
           !command->cover.assets;
}

/* An op, and the same with its names if it has some. */
struct plain_op {
    const struct ledger_bare_op *head;
    const struct ledger_op *named; /* NULL: it is bare */
};

static RON_HOT_INLINE struct plain_op op_at(const struct ledger_command *command, uint32_t index)
{
    return (struct plain_op){
        .head = ledger_op_head(command, index),
        .named = command->bare_ops != NULL ? NULL : &command->ops[index],
    };
}

/* No extension, no nonce. */
static RON_HOT_INLINE bool is_plain_op(struct plain_op op)
{
    return op.head->kind == LEDGER_TRANSFER && op.head->nonce == 0 && !op.head->by_ledger &&
           !op.head->sha256 &&
           (op.named == NULL || (op.named->memo.data == NULL && op.named->meta.data == NULL));
}

static RON_HOT_INLINE bool is_plain_account(const struct ledger_core *core, uint32_t place,
                                            uint8_t flags_refused)
{
    return place != NONE &&
           (core->accounts[place].flags & (ACCOUNT_CLASS | flags_refused)) == CLASS_USER;
}

/* Do both accounts have the names that the op says? */
static RON_HOT_INLINE bool is_well_named(const struct ledger_core *core, struct plain_op op,
                                         const struct sides *sides)
{
    return op.named == NULL || (!is_misnamed(core, sides->accounts[0], "", op.named->debit_name) &&
                                !is_misnamed(core, sides->accounts[1], "", op.named->credit_name));
}

/* The row that such an account has of the asset: the one it got last, without limits. */
static RON_HOT_INLINE bool is_plain_row(const struct row *row, uint32_t asset)
{
    return atomic_load_explicit(&row->asset, memory_order_relaxed) == asset &&
           row->limits == NONE && (row->flags & ROW_NEGATIVE) == 0;
}

/* May it be? */
static RON_HOT_INLINE bool is_plain(const struct apply *a, struct plain_op op,
                                    const struct sides *sides, uint32_t asset)
{
    const struct row *debit = &a->core->rows[sides->rows[0]];
    const struct row *credit = &a->core->rows[sides->rows[1]];
    struct ron_u128 after;

    return is_plain_op(op) && asset - 1 < a->core->assets_count &&
           is_plain_account(a->core, sides->accounts[0], ACCOUNT_FROZEN) &&
           is_plain_account(a->core, sides->accounts[1], 0) && is_well_named(a->core, op, sides) &&
           sides->rows[0] != NONE && sides->rows[1] != NONE && debit != credit &&
           is_plain_row(debit, asset) && is_plain_row(credit, asset) &&
           (debit->flags & ROW_LISTED) != 0 &&
           ron_u128_sub(debit->balance, op.head->amount, &after) &&
           ron_u128_add(credit->balance, op.head->amount, &after) && log_has_room(a);
}

/* --- What it does ------------------------------------------------------------------------------
 */

/* The cell has the new values at once: nobody need come back for them (finish_cells). The balance
 * is made here, not where it was looked at: from there it would come through the stack, in two
 * halves that are read as one, and such a read waits for every write before it. */
static RON_HOT_INLINE struct row *change(struct apply *a, const struct sides *sides, bool is_debit,
                                         struct ron_u128 amount)
{
    const uint32_t place = sides->rows[is_debit ? 0 : 1];
    const struct account *owner = &a->core->accounts[sides->accounts[is_debit ? 0 : 1]];
    struct ledger_cell *cell = touch(a, owner, place);
    struct row *row = row_write(a->core, place);
    struct ron_u128 after;

    if (is_debit ? !ron_u128_sub(row->balance, amount, &after)
                 : !ron_u128_add(row->balance, amount, &after))
        RON_UNREACHABLE();
    row->balance = after;
    row->flags |= ROW_LISTED;
    cell->balance = after;
    cell->row_flags = ledger_cell_row_flags(place, row->flags);
    cell->nonce = owner->next_nonce;
    return row;
}

/* What an entry is of, beside its op. */
struct entry_rest {
    const struct ledger_stamp *stamp;
    uint64_t seq, batch;
    uint32_t asset;
    uint16_t flags;
};

#define BEGINS_ALIKE(member)                                    \
    _Static_assert(offsetof(struct ledger_entry, member) ==     \
                       offsetof(struct ledger_bare_op, member), \
                   "an op begins as the entry of a transfer does")
BEGINS_ALIKE(id);
BEGINS_ALIKE(debit);
BEGINS_ALIKE(credit);
BEGINS_ALIKE(amount);
_Static_assert(offsetof(struct ledger_entry, link) == 64, "so far");

/* To the batch, and to the ring past the cache: its place is not there, and nobody looks at it for
 * long. Both at once, because an entry that is read soon after it was written, in other pieces,
 * waits for every write before it. */
#if defined(__SSE2__)
static RON_HOT_INLINE void put_piece(struct ledger_entry *entry, struct ledger_entry *ringed,
                                     size_t at, __m128i piece)
{
    _mm_storeu_si128((__m128i *)(void *)entry + at, piece);
    _mm_stream_si128((__m128i *)(void *)ringed + at, piece);
}
static RON_HOT_INLINE void put_both(const struct ledger_bare_op *op, const struct entry_rest *rest,
                                    struct ledger_entry *entry, struct ledger_entry *ringed)
{
    const __m128i *from = (const __m128i *)(const void *)op;
    const uint64_t terms = (uint64_t)rest->flags << 48 | (uint64_t)LEDGER_TRANSFER << 32 |
                           rest->asset;
    const uint64_t capability = ron_load_le64(rest->stamp->capability);

    _Static_assert(sizeof(*entry) == 8 * sizeof(__m128i), "the whole entry");
    put_piece(entry, ringed, 0, _mm_loadu_si128(from));
    put_piece(entry, ringed, 1, _mm_loadu_si128(from + 1));
    put_piece(entry, ringed, 2, _mm_loadu_si128(from + 2));
    put_piece(entry, ringed, 3, _mm_loadu_si128(from + 3));
    put_piece(entry, ringed, 4, _mm_setzero_si128());
    put_piece(entry, ringed, 5,
              _mm_set_epi64x((int64_t)rest->stamp->commit_ms, (int64_t)rest->seq));
    put_piece(entry, ringed, 6, _mm_set_epi64x((int64_t)rest->batch, 0));
    put_piece(entry, ringed, 7, _mm_set_epi64x((int64_t)capability, (int64_t)terms));
}
static inline void ring_fence(void)
{
    _mm_sfence(); /* before anything that tells others of it */
}
#else
static inline void put_both(const struct ledger_bare_op *op, const struct entry_rest *rest,
                            struct ledger_entry *entry, struct ledger_entry *ringed)
{
    *entry = (struct ledger_entry){
        .id = op->id,
        .debit = op->debit,
        .credit = op->credit,
        .amount = op->amount,
        .seq = rest->seq,
        .commit_ms = rest->stamp->commit_ms,
        .batch = rest->batch,
        .asset = rest->asset,
        .kind = LEDGER_TRANSFER,
        .flags = rest->flags,
    };
    memcpy(entry->capability, rest->stamp->capability, sizeof(entry->capability));
    *ringed = *entry;
}
static inline void ring_fence(void)
{
}
#endif

static RON_HOT_INLINE void put_plain_entry(struct apply *a, const struct ledger_bare_op *op,
                                           uint32_t asset)
{
    struct ledger_batch *batch = a->batch;
    const struct ledger_stamp *stamp = &a->command->stamp;
    const uint32_t i = batch->entries_count;
    const struct entry_rest rest = {
        .stamp = stamp,
        .seq = batch->seq_start + i,
        .batch = batch->number,
        .asset = asset,
        .flags = stamp->caller == LEDGER_CALLER_LEDGER ? LEDGER_FLAG_BY_LEDGER : 0,
    };
    uint8_t *text = batch->texts + batch->texts_size;

    RON_ASSERT(i < batch->ids_count);
    RON_ASSERT(i < batch->entries_max);
    RON_ASSERT(batch->texts_max - batch->texts_size > LEDGER_ID_TEXT_SIZE_MAX);
    RON_ASSERT(!ron_u128_is_zero(op->amount));
    put_both(op, &rest, &batch->entries[i],
             &a->core->ring[(uint32_t)rest.seq & a->core->ring_mask]);
    batch->ext_sizes[i] = 0;
    batch->texts_size += (uint32_t)(op->id_text.size == 0
                                        ? ledger_id_digits_put(op->id_text.data, text)
                                        : ledger_id_text_put(op->id_text, text));
    batch->entries_count++;
}

/* --- One after the other -----------------------------------------------------------------------
 */

static RON_HOT_INLINE uint32_t asset_of(const struct apply *a, struct plain_op op)
{
    return op.named == NULL || op.named->asset_name.size == 0
               ? op.head->asset
               : asset_find(a->core, op.named->asset_name);
}

/* Ids are asked for in pieces, so that ops are still near when it is their turn. */
enum { ASKED_TOGETHER = 1024 };

static void ask_archive(const struct apply *a, uint32_t from, uint64_t *bits)
{
    const uint32_t left = a->command->ops_count - from;

    ids_ask_archive(a->core, a->command, from, left < ASKED_TOGETHER ? left : ASKED_TOGETHER,
                    &bits[from / 64]);
}

/* Enter the op's id, if it is new. Who has others entered before it has asked for them. */
static RON_HOT_INLINE bool enter_id(struct apply *a, const struct ledger_id *id, uint32_t index,
                                    uint64_t *may_be_old)
{
    struct ledger_core *core = a->core;
    const uint64_t seq = a->batch->seq_start + index;
    bool ask;

    if (index % ASKED_TOGETHER == 0)
        ask_archive(a, index, may_be_old);
    ask = (may_be_old[index / 64] >> index % 64 & 1) != 0;
    if (RON_UNLIKELY(ask || !ledger_recent_lacks(&core->id_index, id_hash(id), core->ring_first)) &&
        id_is_known(a, id, ask))
        return false;
    RON_ASSERT(seq - core->ring_first <= core->ring_mask); /* its place in the ring is free */
    ledger_recent_add(&core->id_index, id_hash(id), seq, core->ring_first);
    a->batch->ids_count++;
    return true;
}

void apply_plain_ops(struct apply *a, struct ahead *ahead)
{
    const struct ledger_command *command = a->command;
    uint64_t may_be_old[(LEDGER_BATCH_ENTRIES_MAX + 63) / 64];

    if (!is_plain_command(command))
        return;
    for (uint32_t i = a->batch->entries_count; i < command->ops_count; i++) {
        const struct sides *sides = ahead_at(ahead, i);
        const struct plain_op op = op_at(command, i);
        const uint32_t asset = asset_of(a, op);
        struct row *debit;

        if (!is_plain(a, op, sides, asset) ||
            (a->batch->ids_count == i && !enter_id(a, &op.head->id, i, may_be_old)))
            break;
        debit = change(a, sides, true, op.head->amount);
        (void)change(a, sides, false, op.head->amount);
        daily_add(debit, op.head->amount, command->stamp.commit_ms);
        put_plain_entry(a, op.head, asset);
    }
    ring_fence();
}
