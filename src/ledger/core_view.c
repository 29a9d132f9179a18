/*
 * core_view.c - the committer's side: leaves to roots, batches to the committed view; and readers.
 *
 * Publishing a batch makes the stamps of all its accounts odd, then writes what it touched of each
 * and makes its stamp even again: a reader sees an account before the batch or after it, in all its
 * assets, and whoever has seen one after it sees none before it any more.
 */
#include "ledger/core_types.h"

void frontier_extend(struct ron_merkle_frontier *frontier, const struct ron_sha256 *hashes,
                     size_t hashes_count)
{
    struct ron_sha256 part[1024]; /* the more, the fewer nodes are hashed in small company */

    while (hashes_count > 0) {
        size_t count = hashes_count < RON_ARRAY_COUNT(part) ? hashes_count : RON_ARRAY_COUNT(part);

        memcpy(part, hashes, count * sizeof(part[0]));
        ron_merkle_frontier_append(frontier, part, count);
        hashes += count;
        hashes_count -= count;
    }
}

/* The root before the next batch: as a rule that of the batch sealed last. */
struct ron_sha256 root_before(const struct ledger_core *core)
{
    if (core->sealed_root_size != 0 && core->sealed_root_size == core->frontier.leaves_count)
        return core->sealed_root;
    return ron_merkle_frontier_root(&core->frontier);
}

/* The sequencer's until now; committing a small batch will need them. */
static void prefetch_cells(const struct ledger_batch *batch)
{
    enum { FEW = 4 };

    for (uint32_t i = 0; i < batch->cells_count && i < FEW; i++)
        ron_prefetch(&batch->cells[i]);
}

/* The batch was appended last to the tree of *frontier, whose root that is. */
static void set_sealed(struct ledger_core *core, struct ledger_batch *batch,
                       const struct ron_merkle_frontier *frontier, const struct ron_sha256 *root)
{
    struct batch_record *record = &core->batches[(uint32_t)batch->number & core->batches_mask];

    RON_ASSERT(batch->pending);
    RON_ASSERT(!batch->sealed);
    RON_ASSERT(batch->entries_count > 0);
    RON_ASSERT(batch->entries[0].batch == batch->number);
    RON_ASSERT(frontier->leaves_count == batch->seq_start + batch->entries_count - 1);
    batch->root = *root;
    core->sealed_root = *root;
    core->sealed_root_size = frontier->leaves_count;
    ron_merkle_frontier_copy_since(&batch->frontier, frontier, batch->seq_start - 1);
    batch->sealed = true;
    record->root = *root;
    record->sealed_number = batch->number;
}

static void hash_leaves(struct ledger_batch *batch)
{
    ledger_leaves_hash(&(struct ledger_leaves){(const uint8_t *)batch->entries,
                                               (const uint8_t *)batch->ext_sizes, batch->ext,
                                               batch->entries_count},
                       batch->hashes);
}

/* Into the core's tree. */
static void append_leaves(struct ledger_core *core, const struct ledger_batch *batch)
{
    RON_ASSERT(batch->seq_start == core->frontier.leaves_count + 1);
    ron_merkle_frontier_append_keep(&core->frontier, batch->hashes, batch->entries_count,
                                    batch->nodes);
}

void ledger_core_seal(struct ledger_core *core, struct ledger_batch *batch)
{
    struct ron_sha256 root;

    prefetch_cells(batch);
    batch->previous_root = root_before(core);
    hash_leaves(batch);
    append_leaves(core, batch);
    root = ron_merkle_frontier_root(&core->frontier);
    set_sealed(core, batch, &core->frontier, &root);
}

static bool is_bare(const struct ledger_batch *batch)
{
    return batch->entries_count == 1 && batch->ext_size == 0;
}

void ledger_core_seal_two(struct ledger_core *core, struct ledger_batch *const batches[static 2])
{
    struct ron_merkle_frontier between;
    const struct ron_merkle_frontier *const frontiers[2] = {&between, &core->frontier};
    struct ron_sha256 roots[2];

    if (is_bare(batches[0]) && is_bare(batches[1])) {
        const void *const leaves[2] = {batches[0]->entries, batches[1]->entries};

        ron_merkle_leaf_two(leaves, RON_ENTRY_SIZE, roots);
        batches[0]->hashes[0] = roots[0];
        batches[1]->hashes[0] = roots[1];
    } else {
        hash_leaves(batches[0]);
        hash_leaves(batches[1]);
    }
    prefetch_cells(batches[0]);
    prefetch_cells(batches[1]);
    batches[0]->previous_root = root_before(core);
    append_leaves(core, batches[0]);
    ron_merkle_frontier_copy(&between, &core->frontier);
    append_leaves(core, batches[1]);
    ron_merkle_frontier_root_two(frontiers, roots);
    batches[1]->previous_root = roots[0];
    set_sealed(core, batches[0], &between, &roots[0]);
    set_sealed(core, batches[1], &core->frontier, &roots[1]);
}

void batch_seal(struct ledger_core *core, struct ledger_batch *batch,
                const struct ron_sha256 *hashes, const struct ron_merkle_frontier *frontier,
                const struct ron_sha256 *root)
{
    RON_ASSERT(batch->seq_start == core->frontier.leaves_count + 1);
    batch->previous_root = root_before(core);
    memcpy(batch->hashes, hashes, batch->entries_count * sizeof(hashes[0]));
    ron_merkle_frontier_copy(&core->frontier, frontier);
    set_sealed(core, batch, frontier, root);
}

static bool is_single(const struct ledger_cell *cell)
{
    return cell->home == LEDGER_CELL_SINGLE;
}

static void prefetch_committed(const struct ledger_core *core, const struct ledger_cell *cell)
{
    ron_prefetch_write(&core->committed[ledger_cell_row(cell)]);
    if (RON_UNLIKELY(!is_single(cell)))
        ron_prefetch_write(&core->committed[cell->home]);
}

void ledger_core_prefetch_commit(const struct ledger_core *core, const struct ledger_batch *batch)
{
    enum { CELLS_MAX = 8 }; /* a larger one does so itself */

    if (batch->cells_count > CELLS_MAX)
        return;
    for (uint32_t i = 0; i < batch->cells_count; i++)
        prefetch_committed(core, &batch->cells[i]);
}

/* An account of which the batch touched its home row alone, closed already. Nothing of it is read:
 * the processor need not wait until the line is there. */
static void publish_single(struct row_committed *home, const struct ledger_cell *cell,
                           uint64_t seq_end)
{
    atomic_store_explicit(&home->nonce, cell->nonce, memory_order_release);
    row_set_committed(home, cell->balance, stamp_of(ledger_cell_flags(cell), seq_end));
}

/* Make the stamp of an account odd: readers wait. Its home row's flags stay. */
static void close_account(struct row_committed *home)
{
    const uint64_t stamp = atomic_load_explicit(&home->stamp, memory_order_relaxed);

    atomic_store_explicit(&home->stamp, stamp | STAMP_ODD, memory_order_relaxed);
}

/* One row of a closed account, whose home stays closed. */
static void publish_row(struct ledger_core *core, const struct ledger_cell *cell, uint64_t seq_end)
{
    const uint32_t row = ledger_cell_row(cell);
    const uint64_t stamp = stamp_of(ledger_cell_flags(cell), seq_end);

    row_set_committed(&core->committed[row], cell->balance,
                      row == cell->home ? stamp | STAMP_ODD : stamp);
}

/* With what all its cells agree on, and even again; each but the first finds it so already. */
static void open_account(struct row_committed *home, const struct ledger_cell *cell,
                         uint64_t seq_end)
{
    const uint64_t stamp = atomic_load_explicit(&home->stamp, memory_order_relaxed);

    atomic_store_explicit(&home->nonce, cell->nonce, memory_order_release);
    atomic_store_explicit(&home->stamp, stamp_of(stamp_flags(stamp), seq_end),
                          memory_order_release);
}

/* Accounts of which the batch touched several rows, or one that is not their home: opened when all
 * their rows are written. */
static void publish_joint(struct ledger_core *core, const struct ledger_batch *batch,
                          uint64_t seq_end)
{
    const struct ledger_cell *end = batch->cells + batch->cells_count;

    for (const struct ledger_cell *cell = batch->cells; cell < end; cell++)
        if (!is_single(cell))
            publish_row(core, cell, seq_end);
    for (const struct ledger_cell *cell = batch->cells; cell < end; cell++)
        if (!is_single(cell))
            open_account(&core->committed[cell->home], cell, seq_end);
}

static void publish(struct ledger_core *core, const struct ledger_batch *batch, uint64_t seq_end)
{
    enum { AHEAD = 24, CELLS_AHEAD = 56 }; /* what the cell some places on will need, and that */
    bool has_joint = false;

    for (uint32_t i = 0; i < batch->cells_count; i++) {
        const struct ledger_cell *cell = &batch->cells[i];

        if (i + CELLS_AHEAD < batch->cells_count)
            ron_prefetch(&cell[CELLS_AHEAD]); /* the sequencer's until now */
        if (i + AHEAD < batch->cells_count)
            prefetch_committed(core, &cell[AHEAD]);
        if (is_single(cell))
            atomic_store_explicit(&core->committed[ledger_cell_row(cell)].stamp, STAMP_ODD,
                                  memory_order_relaxed);
        else
            close_account(&core->committed[cell->home]);
        has_joint = has_joint || !is_single(cell);
    }
    for (uint32_t i = 0; i < batch->cells_count; i++) {
        const struct ledger_cell *cell = &batch->cells[i];

        if (i + AHEAD < batch->cells_count) /* a large batch has left the near caches again */
            ron_prefetch_write(&core->committed[ledger_cell_row(&cell[AHEAD])]);
        if (is_single(cell))
            publish_single(&core->committed[ledger_cell_row(cell)], cell, seq_end);
    }
    if (has_joint)
        publish_joint(core, batch, seq_end);
}

void ledger_core_commit(struct ledger_core *core, struct ledger_batch *batch)
{
    const uint64_t seq_end = batch->seq_start + batch->entries_count - 1;
    const uint64_t last = atomic_load_explicit(&core->committed_batch, memory_order_relaxed);

    RON_ASSERT(batch->pending);
    RON_ASSERT(batch->sealed);
    RON_ASSERT(batch->number == last + 1);
    RON_ASSERT(batch->frontier.leaves_count == seq_end);
    RON_ASSERT(core->pending[batch->number % core->capacity.pending_max] == batch);
    publish(core, batch, seq_end);
    RON_ASSERT(core->committed_frontier.leaves_count == batch->seq_start - 1);
    ron_merkle_frontier_copy_since(&core->committed_frontier, &batch->frontier,
                                   batch->seq_start - 1);
    atomic_store_explicit(&core->committed_seq, seq_end, memory_order_release);
    batch->pending = false;
    atomic_store_explicit(&core->committed_batch, batch->number, memory_order_release);
}

/* The sequencer is at most pending_max batches ahead, and may be writing over anything older. */
static bool is_record_still(const struct ledger_core *core, uint64_t batch, uint64_t committed)
{
    return batch + core->capacity.batches_window > committed;
}

enum ron_err ledger_core_reply(const struct ledger_core *core, uint64_t batch,
                               struct ledger_reply *ret_reply, struct ron_errinfo *reterr)
{
    const struct batch_record *record = &core->batches[(uint32_t)batch & core->batches_mask];
    const uint64_t committed = atomic_load_explicit(&core->committed_batch, memory_order_acquire);
    struct ledger_reply reply = {.batch = batch};
    enum ron_err err;

    if (batch == 0) {
        reply.root = ron_merkle_empty;
    } else if (is_record_still(core, batch, committed) && record->number == batch &&
               record->sealed_number == batch) {
        reply.seq_start = record->seq_start;
        reply.seq_end = record->seq_start + record->entries_count - 1;
        reply.commit_ms = record->commit_ms;
        reply.root = record->root;
    } else if (core->archive.find_reply == NULL ||
               !core->archive.find_reply(core->archive.context, batch, &reply)) {
        if (core->archive.failed != NULL &&
            (err = core->archive.failed(core->archive.context, reterr)) != RON_ERR_OK)
            return err;
        return ron_fail(reterr, RON_ERR_PRUNED, "the reply of batch %llu is not kept",
                        (unsigned long long)batch);
    }
    *ret_reply = reply;
    return RON_ERR_OK;
}

/* One look at an account and its row of the asset, under a stamp of its home row that must not have
 * changed meanwhile. The row is looked for under it, too: a batch may be adding it. Of an account
 * without rows nothing was ever committed. */
static bool try_read(const struct ledger_core *core, uint32_t place, uint32_t asset,
                     struct ledger_balance *balance)
{
    const uint32_t home = atomic_load_explicit(&core->accounts[place].row_home,
                                               memory_order_acquire);
    const struct row_committed *owner;
    uint64_t words[2] = {0, 0};
    uint8_t flags = 0;
    uint64_t stamp;
    uint32_t row;

    if (home == NONE)
        return true;
    owner = &core->committed[home];
    stamp = atomic_load_explicit(&owner->stamp, memory_order_acquire);
    if (stamp % 2 == 1)
        return false;
    row = row_find(core, place, asset);
    if (row != NONE) {
        const struct row_committed *committed = &core->committed[row];

        words[0] = atomic_load_explicit(&committed->words[0], memory_order_acquire);
        words[1] = atomic_load_explicit(&committed->words[1], memory_order_acquire);
        flags = stamp_flags(atomic_load_explicit(&committed->stamp, memory_order_acquire));
    }
    balance->next_nonce = atomic_load_explicit(&owner->nonce, memory_order_acquire);
    if (atomic_load_explicit(&owner->stamp, memory_order_acquire) != stamp)
        return false;
    balance->amount.v = (unsigned __int128)words[1] << 64 | words[0];
    balance->negative = (flags & ROW_NEGATIVE) != 0;
    if (stamp_seq(stamp) > balance->as_of_seq)
        balance->as_of_seq = stamp_seq(stamp); /* the head we saw is older than what we read */
    return true;
}

void ledger_core_balance(const struct ledger_core *core, const struct ledger_id *account,
                         uint32_t asset, struct ledger_balance *ret_balance)
{
    for (;;) {
        uint32_t structure = atomic_load_explicit(&core->structure, memory_order_acquire);
        struct ledger_balance balance = {
            .next_nonce = 1,
            .as_of_seq = atomic_load_explicit(&core->committed_seq, memory_order_acquire),
        };
        uint32_t place = account_find(core, account);
        bool read = true;

        if (place != NONE)
            read = try_read(core, place, asset, &balance);
        if (read && structure % 2 == 0 &&
            atomic_load_explicit(&core->structure, memory_order_relaxed) == structure) {
            *ret_balance = balance;
            return;
        }
    }
}

/* Of the first row: what finds it, and what the committer left of it. */
static void prefetch_balance(const struct ledger_core *core, uint32_t place)
{
    const uint32_t row = account_prefetch_row(core, place);

    if (row != NONE)
        ron_prefetch(&core->committed[row]);
}

/* Slots, accounts and rows lie apart, and none of them in a cache as a rule. */
void ledger_core_balances(const struct ledger_core *core, struct ledger_balance_ask *asks,
                          size_t asks_count)
{
    uint32_t places[LEDGER_BALANCES_MAX];

    RON_ASSERT(asks_count <= LEDGER_BALANCES_MAX);
    for (size_t i = 0; i < asks_count; i++)
        account_prefetch_slot(core, &asks[i].account);
    for (size_t i = 0; i < asks_count; i++)
        places[i] = account_prefetch(core, &asks[i].account);
    for (size_t i = 0; i < asks_count; i++)
        prefetch_balance(core, places[i]);
    for (size_t i = 0; i < asks_count; i++)
        ledger_core_balance(core, &asks[i].account, asks[i].asset, &asks[i].balance);
}

struct ron_merkle_frontier ledger_core_frontier(const struct ledger_core *core)
{
    return core->committed_frontier;
}

/* What is committed is never cut off, so its name may be read as plain memory; which account it is
 * may not, while the end of the table is. */
struct ron_slice ledger_core_name(const struct ledger_core *core, const struct ledger_id *account)
{
    for (;;) {
        uint32_t structure = atomic_load_explicit(&core->structure, memory_order_acquire);
        uint32_t place = account_find(core, account);

        if (structure % 2 == 0 &&
            atomic_load_explicit(&core->structure, memory_order_relaxed) == structure)
            return place == NONE ? (struct ron_slice){NULL, 0}
                                 : account_name(core, &core->accounts[place]);
    }
}

uint64_t ledger_core_committed_seq(const struct ledger_core *core)
{
    return atomic_load_explicit(&core->committed_seq, memory_order_acquire);
}

bool ledger_core_find_entry(const struct ledger_core *core, const struct ledger_id *id,
                            struct ledger_entry *ret_entry)
{
    return entry_find(core, id, core->seq_last, ret_entry);
}

size_t ledger_core_size(const struct ledger_core *core, size_t *ret_accounts_size)
{
    *ret_accounts_size = core->accounts_count * sizeof(struct account) +
                         core->rows_count * (sizeof(struct row) + sizeof(struct row_committed)) +
                         core->names_size + ledger_index_size(&core->account_index);
    return core->memory_size;
}

struct ledger_usage ledger_core_usage(const struct ledger_core *core)
{
    return (struct ledger_usage){
        .accounts = core->accounts_count,
        .rows = core->rows_count,
        .names_size = core->names_size,
        .assets = core->assets_count,
        .holds = core->holds_count,
        .reversals = core->reversals_count,
        .limits = core->limits_count,
        .runs = core->runs_count,
        .streams = core->streams_count,
    };
}
