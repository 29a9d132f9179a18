/*
 * core_effect.c - what an entry does once its checks have passed: accounts, rows, holds, the entry
 * itself. Everything here can be taken back by core_undo.c.
 */
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "ledger/core_apply.h"
#include "ledger/core_id_text.h"

/* The id of a name: made already, if it is the replayed frame's next. */
struct ledger_id name_id(const struct ledger_core *core, struct ron_slice name)
{
    const struct name_source *source = core->replay;

    if (source != NULL && source->next < source->ids_count && source->at < source->names.size &&
        name.data == source->names.data + source->at + 1 &&
        name.size == source->names.data[source->at])
        return source->ids[source->next];
    return ledger_account_id("", name);
}

/* Make an account known. Under replay its name is the frame's next. */
enum ron_err know_account(struct apply *a, const struct ledger_id *id, const char *prefix,
                          struct ron_slice name, uint32_t *account)
{
    struct name_source *source = a->core->replay;

    if (*account != NONE)
        return RON_ERR_OK;
    if (source != NULL) {
        struct ledger_id named;

        if (source->at == source->names.size)
            return ron_fail(a->reterr, RON_ERR_WAL_CORRUPT, "a frame lacks a name");
        prefix = "";
        name = ron_slice_of(source->names.data + source->at + 1, source->names.data[source->at]);
        named = name_id(a->core, name);
        if (!ledger_id_equal(&named, id) || !ledger_is_account(name))
            return ron_fail(a->reterr, RON_ERR_WAL_CORRUPT, "a frame's name is of another id");
        source->at += 1 + name.size;
        source->next++;
    }
    *account = account_add(a->core, id, prefix, name);
    return RON_ERR_OK;
}

/* A row that is not its account's home is touched: the home's cell, if there is one, is not the
 * only one any more. */
static void join_home(struct apply *a, uint32_t home)
{
    const struct row *row = &a->core->rows[home];

    if (row->command == (uint32_t)a->core->commands_count && row->cell < a->batch->cells_count &&
        ledger_cell_row(&a->batch->cells[row->cell]) == home)
        a->batch->cells[row->cell].home = home;
}

/* Remember the row as it was before the batch. */
void touch(struct apply *a, uint32_t place)
{
    struct ledger_batch *batch = a->batch;
    const struct row *row = &a->core->rows[place];
    const uint32_t command = (uint32_t)a->core->commands_count;
    const struct account *owner;
    struct ledger_cell *cell;
    uint32_t home;

    RON_ASSERT(place < a->core->rows_count);
    RON_ASSERT(batch->cells_count <= 2 * batch->entries_max);
    if (row->command == command && row->cell < batch->cells_count &&
        ledger_cell_row(&batch->cells[row->cell]) == place)
        return;
    owner = &a->core->accounts[atomic_load_explicit(&row->account, memory_order_relaxed)];
    home = atomic_load_explicit(&owner->row_home, memory_order_relaxed);
    if (home != place)
        join_home(a, home);
    row_write(a->core, place)->command = command;
    row_write(a->core, place)->cell = batch->cells_count++;
    cell = &batch->cells[row->cell]; /* its new values come later */
    cell->row_flags = ledger_cell_row_flags(place, row->flags);
    cell->home = atomic_load_explicit(&owner->row_first, memory_order_relaxed) == home
                     ? LEDGER_CELL_SINGLE
                     : home;
    batch->old_cells[row->cell] = (struct ledger_old_cell){
        .balance = row->balance,
        .daily = row->daily,
        .nonce = owner->next_nonce,
        .day = row->day,
        .flags = row->flags,
    };
}

static void add_hold(struct apply *a, const struct movement *m, uint32_t payee)
{
    struct ledger_core *core = a->core;
    uint32_t place = core->holds_count++;

    RON_ASSERT(place < core->capacity.holds_max);
    RON_ASSERT(m->credit.class == CLASS_HOLD);
    RON_ASSERT(m->debit.account != NONE);
    core->holds[place] = (struct hold){
        .tenant = a->command->stamp.tenant,
        .entry = m->op->id,
        .expires_ms = m->op->expires_ms,
        .account = m->credit.account,
        .payer = m->debit.account,
        .payee = payee,
        .asset = m->asset_number,
        .heap_at = NONE,
        .is_run = a->command->kind == LEDGER_COMMAND_INTENTS,
    };
    ledger_index_add(&core->hold_index, id_hash(&m->credit.id), place);
    if (m->op->expires_ms != 0)
        heap_push(core, place);
}

static void add_reversal(struct ledger_core *core, const struct movement *m)
{
    uint32_t place = reversal_find(core, &m->link);
    struct reversal *reversal;

    if (place == NONE) {
        RON_ASSERT(core->reversals_count < core->capacity.reversals_max);
        place = core->reversals_count++;
        *reversal_write(core, place) = (struct reversal){.entry = m->link};
        ledger_index_add(&core->reversal_index, id_hash(&m->link), place);
    }
    reversal = reversal_write(core, place);
    if (!ron_u128_add(reversal->total, m->op->amount, &reversal->total))
        RON_UNREACHABLE();
}

/* Without an archive no id may ever be forgotten. */
bool log_has_room(const struct apply *a)
{
    return a->core->archive.find_entry != NULL ||
           a->core->seq_last + a->batch->entries_count < a->core->capacity.entries_window;
}

/* Step 10, for the leaf and its id. */
enum ron_err check_log_room(struct apply *a, const struct ledger_ext *ext)
{
    if (!log_has_room(a))
        return ron_fail(a->reterr, RON_ERR_BUSY, "all %u ids are taken, and there is no archive",
                        a->core->capacity.entries_window);
    if (ledger_ext_size(ext) > a->batch->ext_max - a->batch->ext_size)
        return ron_fail(a->reterr, RON_ERR_TOO_LARGE, "extensions beyond %u bytes in one batch",
                        a->batch->ext_max);
    return RON_ERR_OK;
}

/* Made by the ledger itself, or handed in under its own name. */
static bool is_by_ledger(const struct apply *a, const struct ledger_op *op)
{
    return op->by_ledger || (a->command->kind == LEDGER_COMMAND_INGEST &&
                             a->command->stamp.caller == LEDGER_CALLER_LEDGER);
}

void put_entry(struct apply *a, const struct entry_parts *parts, size_t ext_size)
{
    struct ledger_batch *batch = a->batch;
    const struct ledger_op *op = parts->op;
    const uint32_t i = batch->entries_count;
    struct ledger_entry *entry = &batch->entries[i];

    RON_ASSERT(i < batch->ids_count);
    RON_ASSERT(i < batch->entries_max);
    RON_ASSERT(batch->texts_max - batch->texts_size > LEDGER_ID_TEXT_SIZE_MAX);
    RON_ASSERT(op->kind == LEDGER_ANCHOR || op->kind == LEDGER_ASSET ||
               !ron_u128_is_zero(op->amount));
    /* One by one: to clear all of it first costs as much as the rest. */
    entry->id = op->id;
    entry->debit = *parts->debit;
    entry->credit = *parts->credit;
    entry->amount = op->amount;
    entry->link = *parts->link;
    entry->seq = a->core->seq_last + 1 + i;
    entry->commit_ms = a->command->stamp.commit_ms;
    entry->nonce = op->nonce;
    entry->batch = batch->number;
    entry->asset = parts->asset;
    entry->kind = op->kind;
    entry->flags = (uint16_t)((ext_size > 0 ? LEDGER_FLAG_EXT : 0) |
                              (op->sha256 ? LEDGER_FLAG_SHA256 : 0) |
                              (is_by_ledger(a, op) ? LEDGER_FLAG_BY_LEDGER : 0));
    if (a->command->kind != LEDGER_COMMAND_EXPIRE)
        memcpy(entry->capability, a->command->stamp.capability, sizeof(entry->capability));
    else
        memset(entry->capability, 0, sizeof(entry->capability));
    batch->ext_sizes[i] = (uint16_t)ext_size;
    batch->texts_size += (uint32_t)ledger_id_text_put(op->id_text,
                                                      batch->texts + batch->texts_size);
    batch->entries_count++;
}

/* To the ring, past the cache: the place is not there, and nobody looks at it for long. */
#if defined(__SSE2__)
static inline void ring_put(struct ledger_entry *to, const struct ledger_entry *from)
{
    for (size_t i = 0; i < sizeof(*to) / sizeof(__m128i); i++)
        _mm_stream_si128((__m128i *)(void *)to + i,
                         _mm_loadu_si128((const __m128i *)(const void *)from + i));
}
static inline void ring_fence(void)
{
    _mm_sfence(); /* before anything that tells others of it */
}
#else
static inline void ring_put(struct ledger_entry *to, const struct ledger_entry *from)
{
    *to = *from;
}
static inline void ring_fence(void)
{
}
#endif

void ring_catch_up(struct apply *a)
{
    const struct ledger_batch *batch = a->batch;
    struct ledger_core *core = a->core;

    for (; a->ringed_count < batch->entries_count; a->ringed_count++) {
        const struct ledger_entry *entry = &batch->entries[a->ringed_count];

        ring_put(&core->ring[(uint32_t)entry->seq & core->ring_mask], entry);
    }
    ring_fence();
}

/* Write entry, ext and id text as the batch's next. There is room. */
void write_entry(struct apply *a, const struct movement *m, const struct ledger_ext *ext)
{
    struct ledger_batch *batch = a->batch;
    const size_t ext_size = ledger_ext_size(ext);
    const struct entry_parts parts = {.op = m->op,
                                      .debit = &m->debit.id,
                                      .credit = &m->credit.id,
                                      .link = &m->link,
                                      .asset = m->asset_number};

    RON_ASSERT(ext_size <= batch->ext_max - batch->ext_size);
    if (ext_size > 0)
        ledger_ext_encode(ext, batch->ext + batch->ext_size);
    batch->ext_size += (uint32_t)ext_size;
    if (m->op->nonce != 0)
        ledger_recent_add(&a->core->nonce_index, nonce_hash(&m->debit.id, m->op->nonce),
                          batch->seq_start + batch->entries_count, a->core->ring_first);
    put_entry(a, &parts, ext_size);
    ring_catch_up(a);
}

/* Count what goes through clearing; 8,000 amounts cannot reach 2^256. */
static void add_leg(struct apply *a, const struct movement *m)
{
    struct asset *asset = &a->core->assets[m->asset_number - 1];
    const struct ron_u256 amount = {.low = m->op->amount};
    struct ron_u256 *legs;

    if (asset->legs_command != a->core->commands_count) {
        asset->legs_command = a->core->commands_count;
        asset->legs_in = (struct ron_u256){.low = ron_u128_of(0)};
        asset->legs_out = asset->legs_in;
    }
    legs = m->debit.class == CLASS_CLEARING ? &asset->legs_out : &asset->legs_in;
    if (!ron_u256_add(*legs, amount, legs))
        RON_UNREACHABLE();
    a->clearing_touched = true;
}

/* Under replay the names of new accounts come from the frame, after the checks that they decide. */
static enum ron_err check_replayed(struct apply *a, struct movement *m, uint32_t payee)
{
    const struct ledger_core *core = a->core;
    const struct account *credit = &core->accounts[m->credit.account];
    const size_t prefix_size = sizeof("sys/hold/") - 1;
    struct ron_slice name = account_name(core, credit);

    if (core->replay == NULL || m->op->by_ledger)
        return RON_ERR_OK;
    if (m->credit.class == CLASS_USER && account_class(credit) != CLASS_USER)
        m->credit.class = account_class(credit);
    if (m->op->kind == LEDGER_HOLD &&
        (m->credit.class != CLASS_HOLD ||
         !ledger_is_hold_id(ron_slice_of(name.data + prefix_size, name.size - prefix_size))))
        return ron_fail(a->reterr, RON_ERR_WAL_CORRUPT, "a frame's Hold is of no hold_id");
    if (m->credit.class >= CLASS_MINT && m->credit.prefix[0] == '\0' &&
        m->op->kind != LEDGER_HOLD && m->op->kind != LEDGER_REVERSE)
        return ron_fail(a->reterr, RON_ERR_WAL_CORRUPT, "a frame credits a system account");
    if (payee != NONE && account_class(&core->accounts[payee]) >= CLASS_MINT)
        return ron_fail(a->reterr, RON_ERR_WAL_CORRUPT, "a frame's payee is a system account");
    return RON_ERR_OK;
}

/* All checks have passed and there is room. */
enum ron_err effect(struct apply *a, struct movement *m)
{
    struct ledger_core *core = a->core;
    const struct ledger_op *op = m->op;
    const bool has_payee = op->kind == LEDGER_HOLD && !ledger_id_is_zero(&op->other);
    uint32_t payee = has_payee ? account_find(core, &op->other) : NONE;
    enum ron_err err;

    err = know_account(a, &m->debit.id, m->debit.prefix, m->debit.name, &m->debit.account);
    if (err == RON_ERR_OK)
        err = know_account(a, &m->credit.id, m->credit.prefix, m->credit.name, &m->credit.account);
    if (err == RON_ERR_OK && has_payee) {
        payee = account_find(core, &op->other); /* it may be the payer's or the hold's */
        err = know_account(a, &op->other, "", op->payee_name, &payee);
    }
    if (err == RON_ERR_OK)
        err = check_replayed(a, m, payee);
    if (err != RON_ERR_OK)
        return err;
    if (m->debit.row == NONE)
        m->debit.row = row_add(core, m->debit.account, m->asset_number);
    if (m->credit.row == NONE)
        m->credit.row = row_add(core, m->credit.account, m->asset_number);
    touch(a, m->debit.row);
    touch(a, m->credit.row);
    a->cells_open = true;
    move_amount(core, m, a->command->stamp.commit_ms);
    if (op->nonce != 0) {
        RON_ASSERT(op->nonce == core->accounts[m->debit.account].next_nonce);
        RON_ASSERT(op->nonce < UINT64_MAX);
        account_write(core, m->debit.account)->next_nonce = op->nonce + 1;
    }
    if (op->kind == LEDGER_HOLD)
        add_hold(a, m, payee);
    if (op->kind == LEDGER_REVERSE)
        add_reversal(core, m);
    if (m->debit.class == CLASS_CLEARING || m->credit.class == CLASS_CLEARING)
        add_leg(a, m);
    return RON_ERR_OK;
}
