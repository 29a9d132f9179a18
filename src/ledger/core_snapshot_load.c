/*
 * core_snapshot_load.c - see core_snapshot.h.
 *
 * A cursor with a failure flag, as in core_body.c: after the first thing that is wrong all reads
 * give zero and every loop ends.
 */
#include "ledger/core_snapshot.h"

#include "base/rfc3339.h"
#include "ledger/core_types.h"

struct reader {
    const uint8_t *at;
    size_t left;
    const char *failure; /* what is wrong first, or NULL */
};

static void fail(struct reader *r, const char *what)
{
    if (r->failure == NULL)
        r->failure = what;
}

static const uint8_t *get(struct reader *r, size_t size)
{
    static const uint8_t zeros[256];
    const uint8_t *at = r->at;

    RON_ASSERT(size <= sizeof(zeros));
    if (r->failure != NULL || size > r->left) {
        fail(r, "cut");
        return zeros;
    }
    r->at += size;
    r->left -= size;
    return at;
}

static uint8_t get_u8(struct reader *r)
{
    return get(r, 1)[0];
}

static uint32_t get_u32(struct reader *r)
{
    return ron_load_le32(get(r, 4));
}

static uint64_t get_u64(struct reader *r)
{
    return ron_load_le64(get(r, 8));
}

static struct ron_u128 get_u128(struct reader *r)
{
    return ron_u128_load_le(get(r, 16));
}

static struct ledger_id get_id(struct reader *r)
{
    struct ledger_id id;

    memcpy(id.bytes, get(r, LEDGER_ID_SIZE), LEDGER_ID_SIZE);
    return id;
}

static bool get_flag(struct reader *r)
{
    uint8_t flag = get_u8(r);

    if (flag > 1)
        fail(r, "a flag");
    return flag == 1;
}

/* The number of a batch that was applied. */
static uint64_t get_batch(struct reader *r, uint64_t batch_last)
{
    uint64_t batch = get_u64(r);

    if (batch < 1 || batch > batch_last)
        fail(r, "a batch that never was");
    return batch;
}

/* A reference into a table of count records. */
static uint32_t get_place(struct reader *r, uint32_t count)
{
    uint32_t place = get_u32(r);

    if (place < count)
        return place;
    fail(r, "a reference to nothing");
    return 0;
}

struct counts {
    uint64_t seq_last, batch_last, commit_ms_last, ring_first, keys_first, keys_end, batches;
    uint32_t assets, accounts, rows, holds, reversals, runs, streams;
};

static void get_head(struct reader *r, struct counts *c, struct ron_merkle_frontier *frontier)
{
    if (memcmp(get(r, 4), "RLS1", 4) != 0 || get_u32(r) != 2)
        fail(r, "not a snapshot of this version");
    c->seq_last = get_u64(r);
    c->batch_last = get_u64(r);
    c->commit_ms_last = get_u64(r);
    c->ring_first = get_u64(r);
    c->keys_first = get_u64(r);
    c->keys_end = get_u64(r);
    c->batches = get_u64(r);
    c->assets = get_u32(r);
    c->accounts = get_u32(r);
    c->rows = get_u32(r);
    c->holds = get_u32(r);
    c->reversals = get_u32(r);
    c->runs = get_u32(r);
    c->streams = get_u32(r);
    ron_merkle_frontier_init(frontier);
    frontier->leaves_count = c->seq_last;
    for (unsigned level = 0; level < RON_MERKLE_LEVELS_MAX; level++)
        if ((c->seq_last >> level & 1) != 0)
            memcpy(frontier->levels[level].bytes, get(r, RON_SHA256_SIZE), RON_SHA256_SIZE);
    if (c->ring_first < 1 || c->ring_first > c->seq_last + 1 || c->keys_first > c->keys_end ||
        c->batches > c->batch_last || c->batch_last > c->seq_last || c->assets < 1 ||
        (c->batch_last == 0) != (c->seq_last == 0) || c->commit_ms_last > RON_TIME_MS_MAX)
        fail(r, "counts");
}

static bool fits(const struct ledger_core *core, const struct counts *c)
{
    const struct ledger_capacity *capacity = &core->capacity;

    return c->assets <= capacity->assets_max && c->accounts <= capacity->accounts_max &&
           c->rows <= capacity->rows_max && c->holds <= capacity->holds_max &&
           c->reversals <= capacity->reversals_max && c->runs <= capacity->runs_max &&
           c->streams <= capacity->streams_max &&
           c->seq_last + 1 - c->ring_first <= capacity->entries_window &&
           c->keys_end - c->keys_first <= capacity->keys_window &&
           c->batches <= capacity->batches_window;
}

/* Does anybody know what the snapshot leaves out? */
static bool is_remembered(const struct ledger_core *core, const struct counts *c)
{
    return (core->archive.find_entry != NULL || c->ring_first == 1) &&
           (core->archive.find_key != NULL || c->keys_first == 0) &&
           (core->archive.find_reply != NULL || c->batches == c->batch_last) &&
           (core->archive.last_batch == NULL ||
            (c->ring_first == c->seq_last + 1 && c->keys_end == 0 && c->batches <= 1));
}

/* What the archive does not have yet, the windows must. */
static void note_missing(struct ledger_core *core)
{
    if (core->archive.last_batch == NULL || is_archived(core, core->batch_last))
        return;
    core->missing_batch = core->archived_batch + 1;
    core->missing_seq = 0;
}

static void load_assets(struct reader *r, struct ledger_core *core, const struct counts *c)
{
    while (core->assets_count < c->assets && r->failure == NULL) {
        uint64_t batch = get_batch(r, c->batch_last);
        struct ledger_asset_terms terms = {.max_supply = get_u128(r)};
        size_t size;

        terms.decimals = get_u8(r);
        size = get_u8(r);
        terms.name = ron_slice_of(get(r, size), size);
        if (!ledger_is_asset(terms.name) || asset_find(core, terms.name) != 0)
            fail(r, "an asset's name");
        else if (terms.decimals > LEDGER_DECIMALS_MAX || ron_u128_is_zero(terms.max_supply))
            fail(r, "an asset's terms");
        else
            asset_add(core, &terms, batch);
    }
}

/* An account as it is written; its name is the reader's. */
struct stored_account {
    uint64_t next_nonce;
    struct ron_slice name;
    struct ledger_id id;
    bool frozen;
};

/* Read up to AHEAD accounts; where they belong in the index is on its way when they are added. */
enum { AHEAD = 32 };

static uint32_t get_accounts(struct reader *r, const struct ledger_core *core, uint32_t left,
                             struct stored_account stored[static AHEAD])
{
    const uint32_t count = left < AHEAD ? left : AHEAD;

    for (uint32_t i = 0; i < count; i++) {
        size_t size;

        stored[i].next_nonce = get_u64(r);
        stored[i].frozen = get_flag(r);
        size = get_u8(r);
        stored[i].name = ron_slice_of(get(r, size), size);
        if (r->failure != NULL)
            return 0;
        stored[i].id = ledger_account_id("", stored[i].name);
        account_prefetch_slot(core, &stored[i].id);
    }
    return count;
}

static void load_account(struct reader *r, struct ledger_core *core, const struct counts *c,
                         const struct stored_account *stored)
{
    struct account *account;

    if (!ledger_is_account(stored->name) || account_find(core, &stored->id) != NONE ||
        stored->name.size > core->capacity.names_size_max - core->names_size) {
        fail(r, "an account's name");
        return;
    }
    if (stored->next_nonce < 1 || stored->next_nonce > c->seq_last + 1)
        fail(r, "a nonce"); /* each one used is an entry */
    if (stored->frozen && name_class(stored->name) >= CLASS_MINT)
        fail(r, "a frozen system account");
    account = account_write(core, account_add(core, &stored->id, "", stored->name));
    account->next_nonce = stored->next_nonce; /* committed with its first row */
    if (stored->frozen)
        account->flags |= ACCOUNT_FROZEN;
}

static void load_accounts(struct reader *r, struct ledger_core *core, const struct counts *c)
{
    struct stored_account stored[AHEAD];

    while (core->accounts_count < c->accounts && r->failure == NULL) {
        const uint32_t count = get_accounts(r, core, c->accounts - core->accounts_count, stored);

        for (uint32_t i = 0; i < count && r->failure == NULL; i++)
            load_account(r, core, c, &stored[i]);
    }
}

static void load_limit(struct reader *r, struct ledger_core *core, struct row *row)
{
    struct limit *limit;

    if (core->limits_count == core->capacity.limits_max) {
        fail(r, "too many limits");
        return;
    }
    row->limits = core->limits_count++;
    limit = limit_write(core, row->limits);
    limit->bits = get_u8(r);
    limit->minimum = get_u128(r);
    limit->maximum = get_u128(r);
    limit->credit_line = get_u128(r);
    limit->daily = get_u128(r);
    if ((limit->bits & ~(LIMIT_MINIMUM | LIMIT_MAXIMUM | LIMIT_CREDIT | LIMIT_DAILY)) != 0 ||
        ((limit->bits & LIMIT_MINIMUM) == 0) != ron_u128_is_zero(limit->minimum) ||
        ((limit->bits & LIMIT_MAXIMUM) == 0) != ron_u128_is_zero(limit->maximum) ||
        ((limit->bits & LIMIT_CREDIT) == 0) != ron_u128_is_zero(limit->credit_line) ||
        ((limit->bits & LIMIT_DAILY) == 0) != ron_u128_is_zero(limit->daily) ||
        limit->credit_line.v >> 127 != 0)
        fail(r, "limits");
}

static void load_rows(struct reader *r, struct ledger_core *core, const struct counts *c)
{
    while (core->rows_count < c->rows && r->failure == NULL) {
        uint32_t account = get_place(r, c->accounts);
        uint32_t asset = get_u32(r);
        struct row *row;

        if (r->failure != NULL || asset == 0 || asset > c->assets ||
            row_find(core, account, asset) != NONE) {
            fail(r, "a row");
            return;
        }
        row = row_write(core, row_add(core, account, asset));
        row->balance = get_u128(r);
        row->daily = get_u128(r);
        row->day = get_u32(r);
        row->flags = get_u8(r);
        if ((row->flags & ~(ROW_NEGATIVE | ROW_LISTED)) != 0)
            fail(r, "a row's flags");
        if (row->day > ron_day_of_ms(c->commit_ms_last))
            fail(r, "a row's day");
        if (get_flag(r))
            load_limit(r, core, row);
        row_set_committed(&core->committed[core->rows_count - 1], row->balance,
                          stamp_of(row->flags, 0));
    }
}

static void load_holds(struct reader *r, struct ledger_core *core, const struct counts *c)
{
    for (uint32_t i = 0; i < c->holds && r->failure == NULL; i++) {
        struct hold *hold = &core->holds[i];
        struct ledger_id id;

        hold->tenant = get_u128(r);
        hold->entry = get_id(r);
        hold->expires_ms = get_u64(r);
        hold->account = get_place(r, c->accounts);
        hold->payer = get_place(r, c->accounts);
        hold->payee = get_u32(r);
        hold->asset = get_u32(r);
        hold->is_run = get_flag(r);
        hold->heap_at = NONE;
        if (hold->payee != NONE && hold->payee >= c->accounts)
            fail(r, "a hold's payee");
        if (r->failure != NULL || row_find(core, hold->account, hold->asset) == NONE) {
            fail(r, "a hold without its money");
            return;
        }
        if (hold->is_run != (hold->expires_ms == 0) || hold->expires_ms > RON_TIME_MS_MAX)
            fail(r, "a hold's end");
        id = account_id(&core->accounts[hold->account]);
        if (account_class(&core->accounts[hold->account]) != CLASS_HOLD ||
            hold_find(core, &id) != NONE) {
            fail(r, "a hold's account");
            return;
        }
        core->holds_count++;
        ledger_index_add(&core->hold_index, id_hash(&id), i);
        if (hold->expires_ms != 0)
            heap_push(core, i);
    }
    for (uint32_t i = 0; i < c->reversals && r->failure == NULL; i++) {
        *reversal_write(core, i) = (struct reversal){.entry = get_id(r)};
        reversal_write(core, i)->total = get_u128(r);
        if (reversal_find(core, &core->reversals[i].entry) != NONE ||
            ron_u128_is_zero(core->reversals[i].total))
            fail(r, "a reversal");
        core->reversals_count++;
        ledger_index_add(&core->reversal_index, id_hash(&core->reversals[i].entry), i);
    }
}

static void load_streams(struct reader *r, struct ledger_core *core, const struct counts *c)
{
    for (uint32_t i = 0; i < c->runs && r->failure == NULL; i++) {
        struct run *run = run_write(core, i);

        run->id = get_id(r);
        run->run_key = get_id(r);
        memcpy(run->terms.bytes, get(r, RON_B3_SIZE), RON_B3_SIZE);
        run->next_chunk = get_u32(r);
        run->hold = get_place(r, c->holds);
        run->ended = get_flag(r);
        if (r->failure != NULL || run->next_chunk == 0 || run_find(core, &run->id) != NONE ||
            !core->holds[run->hold].is_run) {
            fail(r, "a run");
            return;
        }
        core->runs_count++;
        ledger_index_add(&core->run_index, id_hash(&run->id), i);
    }
    for (uint32_t i = 0; i < c->streams && r->failure == NULL; i++) {
        struct stream *stream = stream_write(core, i);

        stream->id = get_id(r);
        stream->next_seq = get_u64(r);
        stream->batch = get_batch(r, c->batch_last);
        memcpy(stream->head, get(r, LEDGER_DIGEST_SIZE), LEDGER_DIGEST_SIZE);
        if (stream->next_seq < 1 || stream->next_seq > c->seq_last ||
            stream_find(core, &stream->id) != NONE)
            fail(r, "a stream"); /* each slice is an entry */
        core->streams_count++;
        ledger_index_add(&core->stream_index, id_hash(&stream->id), i);
    }
}

/* Can the entry have been made by this state? What later commands take for granted. */
static bool is_possible(const struct ledger_core *core, const struct ledger_entry *entry,
                        const struct counts *c)
{
    struct ledger_entry other;
    const bool moves = entry->kind != LEDGER_ANCHOR && entry->kind != LEDGER_ASSET;

    return ledger_kind_name(entry->kind) != NULL && (entry->flags & ~LEDGER_FLAGS_ALL) == 0 &&
           entry->batch >= 1 && entry->batch <= c->batch_last && entry->asset <= c->assets &&
           (entry->asset == 0) == (entry->kind == LEDGER_ANCHOR) &&
           moves != ron_u128_is_zero(entry->amount) && entry->commit_ms <= c->commit_ms_last &&
           entry->nonce < UINT64_MAX &&
           (entry->kind != LEDGER_HOLD || hold_find(core, &entry->credit) != NONE) &&
           !window_has(core, &entry->id, &other);
}

static void load_entries(struct reader *r, struct ledger_core *core, const struct counts *c)
{
    window_begin(core, c->ring_first);
    core->seq_last = c->ring_first - 1;
    for (uint64_t seq = c->ring_first; seq <= c->seq_last && r->failure == NULL; seq++) {
        uint32_t place = (uint32_t)seq & core->ring_mask;
        struct ledger_entry *entry = &core->ring[place];

        memcpy(entry, get(r, RON_ENTRY_SIZE), RON_ENTRY_SIZE);
        if (entry->seq != seq)
            fail(r, "an entry out of order");
        if (!is_possible(core, entry, c))
            fail(r, "an entry");
        core->seq_last = seq;
        ledger_recent_add(&core->id_index, id_hash(&entry->id), seq, core->ring_first);
        if (entry->nonce != 0)
            ledger_recent_add(&core->nonce_index, nonce_hash(&entry->debit, entry->nonce), seq,
                              core->ring_first);
    }
    /* Reversals of what the window knows stay within it; the archive's entries come later. */
    for (uint32_t i = 0; i < core->reversals_count && r->failure == NULL; i++) {
        struct ledger_entry entry;

        if (window_has(core, &core->reversals[i].entry, &entry) &&
            ron_u128_compare(core->reversals[i].total, entry.amount) > 0)
            fail(r, "a reversal of more than there was");
    }
}

static void load_keys(struct reader *r, struct ledger_core *core, const struct counts *c)
{
    core->keys_first = c->keys_first;
    core->keys_end = c->keys_first;
    while (core->keys_end < c->keys_end && r->failure == NULL) {
        struct ledger_key key = {.id = get_id(r)};
        struct ledger_key other;

        memcpy(key.fingerprint.bytes, get(r, RON_B3_SIZE), RON_B3_SIZE);
        key.batch = get_batch(r, c->batch_last);
        if (window_has_key(core, &key.id, &other))
            fail(r, "a key twice");
        key_add(core, &key);
    }
}

/* Batches end where the next begins, and the last at the head. */
static void load_batches(struct reader *r, struct ledger_core *core, const struct counts *c)
{
    struct ron_sha256 root = ron_merkle_frontier_root(&core->frontier);
    uint64_t seq_next = 0;
    uint64_t commit_ms = 0;

    for (uint64_t i = 0; i < c->batches && r->failure == NULL; i++) {
        uint64_t number = c->batch_last - c->batches + 1 + i;
        struct batch_record *record = &core->batches[(uint32_t)number & core->batches_mask];

        record->number = number;
        record->sealed_number = number;
        record->seq_start = get_u64(r);
        record->commit_ms = get_u64(r);
        record->entries_count = get_u32(r);
        memcpy(record->root.bytes, get(r, RON_SHA256_SIZE), RON_SHA256_SIZE);
        if ((seq_next != 0 && record->seq_start != seq_next) || record->seq_start < number ||
            record->seq_start > c->seq_last || record->commit_ms < commit_ms ||
            record->entries_count < 1 || record->entries_count > LEDGER_BATCH_ENTRIES_MAX)
            fail(r, "a batch");
        seq_next = record->seq_start + record->entries_count;
        commit_ms = record->commit_ms;
        if (number == c->batch_last &&
            (seq_next != c->seq_last + 1 || commit_ms != c->commit_ms_last ||
             memcmp(record->root.bytes, root.bytes, RON_SHA256_SIZE) != 0))
            fail(r, "the last batch");
    }
}

enum ron_err ledger_snapshot_load(struct ledger_core *core, struct ron_slice bytes,
                                  struct ron_errinfo *reterr)
{
    struct reader r = {.at = bytes.data};
    struct counts c;
    struct ron_b3 hash;
    const char *broken;

    RON_ASSERT(core->batch_last == 0);
    RON_ASSERT(core->accounts_count == 0);
    if (bytes.size < RON_B3_SIZE)
        return ron_fail(reterr, RON_ERR_MALFORMED, "a snapshot of %zu bytes", bytes.size);
    r.left = bytes.size - RON_B3_SIZE;
    hash = ron_b3(bytes.data, r.left);
    if (memcmp(hash.bytes, bytes.data + r.left, RON_B3_SIZE) != 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "a snapshot with another hash");
    get_head(&r, &c, &core->frontier);
    if (r.failure == NULL && !fits(core, &c))
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a snapshot beyond the core's capacity");
    if (r.failure == NULL && !is_remembered(core, &c))
        return ron_fail(reterr, RON_ERR_MALFORMED, "a snapshot without what only it would know");
    load_assets(&r, core, &c);
    load_accounts(&r, core, &c);
    load_rows(&r, core, &c);
    load_holds(&r, core, &c);
    load_streams(&r, core, &c);
    load_entries(&r, core, &c);
    load_keys(&r, core, &c);
    load_batches(&r, core, &c);
    if (r.failure == NULL && r.left > 0)
        fail(&r, "bytes behind the end");
    if (r.failure != NULL)
        return ron_fail(reterr, RON_ERR_MALFORMED, "snapshot: %s, %zu bytes before the end",
                        r.failure, r.left);
    core->seq_last = c.seq_last;
    core->batch_last = c.batch_last;
    core->commit_ms_last = c.commit_ms_last;
    core->committed_frontier = core->frontier;
    atomic_store_explicit(&core->committed_batch, c.batch_last, memory_order_relaxed);
    atomic_store_explicit(&core->committed_seq, c.seq_last, memory_order_release);
    broken = core_check_loaded(core);
    if (broken != NULL)
        return ron_fail(reterr, RON_ERR_MALFORMED, "snapshot: invariant %s", broken);
    note_missing(core);
    return RON_ERR_OK;
}
