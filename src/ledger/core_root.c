/*
 * core_root.c - the state root: RFC 6962 over the committed rows in order.
 *
 * Leaf = account id 16 || asset u32 || balance u128 || next_nonce u64, little-endian, ascending by
 * account id (bytes) and asset. A debt d is written as 2^128 - d. Rows are sorted by radix (asset,
 * then the id's first eight bytes); a last pass by full comparison puts right what eight bytes
 * cannot tell apart, and costs nothing otherwise.
 */
#include "base/mem.h"
#include "base/pages.h"
#include "ledger/core_snapshot.h"
#include "ledger/core_types.h"

enum { LEAF_SIZE = LEDGER_ROW_SIZE, CHUNK = 1024, DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

struct sort_key {
    uint64_t prefix; /* big-endian, so that numbers sort as bytes */
    uint32_t asset;
    uint32_t row;
};

static struct ledger_id row_account_id(const struct ledger_core *core, uint32_t row)
{
    uint32_t account = atomic_load_explicit(&core->rows[row].account, memory_order_relaxed);

    return account_id(&core->accounts[account]);
}

static size_t collect(const struct ledger_core *core, struct sort_key *keys)
{
    size_t count = 0;

    for (uint32_t i = 0; i < core->rows_count; i++) {
        const struct row *row = &core->rows[i];
        struct ledger_id id;

        if ((row_committed_flags(core, i) & ROW_LISTED) == 0)
            continue;
        id = row_account_id(core, i);
        keys[count++] = (struct sort_key){
            .prefix = ron_load_be64(id.bytes),
            .asset = atomic_load_explicit(&row->asset, memory_order_relaxed),
            .row = i,
        };
    }
    return count;
}

static uint32_t digit_of(const struct sort_key *key, unsigned shift, bool by_asset)
{
    uint64_t value = by_asset ? key->asset : key->prefix;

    return (uint32_t)(value >> shift) & (DIGITS - 1);
}

/* One stable pass from keys into others; false (and nothing moved) if all digits are equal. */
static bool radix_pass(const struct sort_key *keys, struct sort_key *others, size_t count,
                       unsigned shift, bool by_asset)
{
    uint32_t starts[DIGITS] = {0};
    uint32_t sum = 0;

    for (size_t i = 0; i < count; i++)
        starts[digit_of(&keys[i], shift, by_asset)]++;
    if (starts[digit_of(&keys[0], shift, by_asset)] == count)
        return false;
    for (size_t i = 0; i < DIGITS; i++) {
        uint32_t here = starts[i];

        starts[i] = sum;
        sum += here;
    }
    for (size_t i = 0; i < count; i++)
        others[starts[digit_of(&keys[i], shift, by_asset)]++] = keys[i];
    return true;
}

static bool is_before(const struct ledger_core *core, const struct sort_key *a,
                      const struct sort_key *b)
{
    struct ledger_id first;
    struct ledger_id second;
    int order;

    if (a->prefix != b->prefix)
        return a->prefix < b->prefix;
    first = row_account_id(core, a->row);
    second = row_account_id(core, b->row);
    order = memcmp(first.bytes, second.bytes, LEDGER_ID_SIZE);
    return order != 0 ? order < 0 : a->asset < b->asset;
}

/* Sort; the result is in one of the two arrays. */
static struct sort_key *sort(const struct ledger_core *core, struct sort_key *keys,
                             struct sort_key *others, size_t count)
{
    for (unsigned pass = 0; count > 0 && pass < 9; pass++) {
        const bool by_asset = pass < 3;
        const unsigned shift = DIGIT_BITS * (by_asset ? pass : pass - 3);

        if (radix_pass(keys, others, count, shift, by_asset)) {
            struct sort_key *sorted = others;

            others = keys;
            keys = sorted;
        }
    }
    for (size_t i = 1; i < count; i++) {
        struct sort_key key = keys[i];
        size_t at = i;

        for (; at > 0 && is_before(core, &key, &keys[at - 1]); at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
    return keys;
}

static void put_leaf(const struct ledger_core *core, const struct sort_key *key, uint8_t *leaf)
{
    const struct row *row = &core->rows[key->row];
    uint32_t owner = atomic_load_explicit(&row->account, memory_order_relaxed);
    struct ledger_id id = account_id(&core->accounts[owner]);
    unsigned __int128 balance = row_committed_balance(core, key->row).v;

    if ((row_committed_flags(core, key->row) & ROW_NEGATIVE) != 0)
        balance = -balance;
    memcpy(leaf, id.bytes, LEDGER_ID_SIZE);
    ron_store_le32(leaf + 16, key->asset);
    ron_u128_store_le(leaf + 20, (struct ron_u128){balance});
    ron_store_le64(leaf + 36, account_committed_nonce(core, owner));
}

enum { LEAVES_SIZE = CHUNK * (LEAF_SIZE + RON_SHA256_SIZE) };

/* rows: room for twice the core's rows; leaves: LEAVES_SIZE bytes. The sink gets the leaves. */
static enum ron_err root_of(const struct ledger_core *core, void *rows, void *leaves,
                            ledger_sink_fn *sink, void *context, struct ron_sha256 *ret_root,
                            uint64_t *ret_rows_count, struct ron_errinfo *reterr)
{
    struct sort_key *keys = rows;
    struct ron_sha256 *hashes = leaves;
    uint8_t *bytes = (uint8_t *)leaves + CHUNK * sizeof(*hashes);
    const size_t count = collect(core, keys);
    const struct sort_key *sorted = sort(core, keys, keys + core->rows_count, count);
    struct ron_merkle_frontier frontier;
    enum ron_err err = RON_ERR_OK;

    _Static_assert((int)CHUNK * LEAF_SIZE <= (int)LEDGER_SCRATCH_BUFFER, "a piece for the sink");
    ron_merkle_frontier_init(&frontier);
    for (size_t done = 0; done < count && err == RON_ERR_OK;) {
        size_t part = count - done < CHUNK ? count - done : CHUNK;

        for (size_t i = 0; i < part; i++)
            put_leaf(core, &sorted[done + i], bytes + i * LEAF_SIZE);
        if (sink != NULL)
            err = sink(context, ron_slice_of(bytes, part * LEAF_SIZE), reterr);
        ron_merkle_leaves(bytes, LEAF_SIZE, part, hashes);
        ron_merkle_frontier_append(&frontier, hashes, part);
        done += part;
    }
    if (err != RON_ERR_OK)
        return err;
    *ret_root = ron_merkle_frontier_root(&frontier);
    *ret_rows_count = count;
    return RON_ERR_OK;
}

enum ron_err ledger_core_state_root(const struct ledger_core *core, struct ron_sha256 *ret_root,
                                    uint64_t *ret_rows_count, struct ron_errinfo *reterr)
{
    RON_CLEANUP(ron_mem_freep) uint8_t *leaves = ron_mem_alloc(LEAVES_SIZE);
    struct sort_key *keys = ron_table_alloc(2 * (uint64_t)core->rows_count + 1, sizeof(*keys),
                                            RON_TABLE_IN_ORDER);
    enum ron_err err;

    if (keys == NULL || leaves == NULL)
        err = ron_fail(reterr, RON_ERR_NO_MEMORY, "the state root of %u rows", core->rows_count);
    else
        err = root_of(core, keys, leaves, NULL, NULL, ret_root, ret_rows_count, reterr);
    (void)ron_table_free(keys);
    return err;
}

enum ron_err ledger_scratch_root(struct ledger_scratch *scratch, const struct ledger_core *core,
                                 ledger_sink_fn *sink, void *context, struct ron_sha256 *ret_root,
                                 uint64_t *ret_rows_count, struct ron_errinfo *reterr)
{
    return root_of(core, scratch->rows, scratch->leaves, sink, context, ret_root, ret_rows_count,
                   reterr);
}

void ledger_scratch_fini(struct ledger_scratch *scratch)
{
    scratch->buffer = ron_mem_free(scratch->buffer);
    if (scratch->rows != NULL)
        ron_pages_give_back(scratch->rows, scratch->rows_size);
    scratch->rows = ron_table_free(scratch->rows);
    scratch->leaves = ron_mem_free(scratch->leaves);
}

enum ron_err ledger_scratch_init(struct ledger_scratch *scratch, const struct ledger_core *core,
                                 struct ron_errinfo *reterr)
{
    const uint64_t keys_count = 2 * (uint64_t)core->rows_count + 1;

    *scratch = (struct ledger_scratch){
        .buffer = ron_mem_alloc(LEDGER_SCRATCH_BUFFER),
        .rows = ron_table_alloc(keys_count, sizeof(struct sort_key), RON_TABLE_IN_ORDER),
        .rows_size = keys_count * sizeof(struct sort_key),
        .leaves = ron_mem_alloc(LEAVES_SIZE),
    };
    if (scratch->buffer != NULL && scratch->rows != NULL && scratch->leaves != NULL)
        return RON_ERR_OK;
    ledger_scratch_fini(scratch);
    return ron_fail(reterr, RON_ERR_NO_MEMORY, "scratch for a snapshot of %u rows",
                    core->rows_count);
}
