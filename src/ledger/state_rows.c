/*
 * state_rows.c - see state_rows.h.
 *
 * Blocks of 2^BLOCK_BITS rows. A node of level k and index i is the root over the rows from i 2^k
 * on, as far as there are any: so the blocks are the nodes of level BLOCK_BITS, and what lies above
 * them is kept.
 */
#include "ledger/state_rows.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/merkle_hash.h"
#include "io/snapshot_file.h"

enum {
    BLOCK_BITS = 8,
    BLOCK = 1 << BLOCK_BITS,
    KEY_SIZE = LEDGER_ID_SIZE + 4, /* account, asset; numbers as bytes that sort */
    LEVELS_MAX = 64,
};

struct block_key {
    uint8_t bytes[KEY_SIZE];
};

struct ledger_rows {
    struct ledger_rows_info info;
    struct io_snapshot *file;
    uint64_t blocks_count;
    struct block_key *firsts;        /* of each block */
    struct ron_sha256 *nodes;        /* of level BLOCK_BITS, then of those above, up to the root */
    uint64_t levels[LEVELS_MAX + 1]; /* where each begins, from BLOCK_BITS on */
    uint8_t leaves[BLOCK * LEDGER_ROW_SIZE];
    struct ron_sha256 hashes[BLOCK];
};

static struct block_key key_of(const struct ledger_id *account, uint32_t asset)
{
    struct block_key key;

    memcpy(key.bytes, account->bytes, LEDGER_ID_SIZE);
    ron_store_be32(key.bytes + LEDGER_ID_SIZE, asset);
    return key;
}

static struct block_key key_of_leaf(const uint8_t *leaf)
{
    struct ledger_id account;

    memcpy(account.bytes, leaf, LEDGER_ID_SIZE);
    return key_of(&account, ron_load_le32(leaf + LEDGER_ID_SIZE));
}

static int compare(const struct block_key *a, const struct block_key *b)
{
    return memcmp(a->bytes, b->bytes, KEY_SIZE);
}

/* How many nodes there are at a level, and of rows in a block. */
static uint64_t nodes_at(uint64_t rows_count, unsigned level)
{
    return (rows_count >> level) + ((rows_count & ((UINT64_C(1) << level) - 1)) != 0);
}

static size_t rows_in(const struct ledger_rows *rows, uint64_t block)
{
    const uint64_t left = rows->info.tree.size - block * BLOCK;

    return left < BLOCK ? (size_t)left : BLOCK;
}

/* A level from the one below it, in place; a node without a sibling stays what it is. */
static size_t fold(struct ron_sha256 *hashes, size_t count)
{
    const size_t pairs = count / 2;
    const struct ron_sha256 odd = hashes[count - 1];

    ron_merkle_nodes((const struct ron_merkle_pair *)(const void *)hashes, pairs, hashes);
    if (count % 2 == 1)
        hashes[pairs] = odd;
    return pairs + count % 2;
}

static enum ron_err read_block(struct ledger_rows *rows, uint64_t block,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    return io_snapshot_read(rows->file, block * sizeof(rows->leaves), rows->leaves,
                            rows_in(rows, block) * LEDGER_ROW_SIZE, reterr);
}

/* The nodes of one block: those of its leaves, or their root. */
static struct ron_sha256 hash_block(struct ledger_rows *rows, size_t count)
{
    ron_merkle_leaves(rows->leaves, LEDGER_ROW_SIZE, count, rows->hashes);
    while (count > 1)
        count = fold(rows->hashes, count);
    return rows->hashes[0];
}

static bool is_ascending(const struct ledger_rows *rows, size_t count, struct block_key *last,
                         bool first)
{
    for (size_t i = 0; i < count; i++) {
        const struct block_key key = key_of_leaf(rows->leaves + i * LEDGER_ROW_SIZE);

        if ((!first || i > 0) && compare(last, &key) >= 0)
            return false;
        *last = key;
    }
    return true;
}

static enum ron_err read_blocks(struct ledger_rows *rows, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct block_key last = {{0}};

    for (uint64_t block = 0; block < rows->blocks_count; block++) {
        const size_t count = rows_in(rows, block);
        enum ron_err err = read_block(rows, block, reterr);

        if (err != RON_ERR_OK)
            return err;
        if (!is_ascending(rows, count, &last, block == 0))
            return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "rows out of order in block %llu",
                            (unsigned long long)block);
        rows->firsts[block] = key_of_leaf(rows->leaves);
        rows->nodes[block] = hash_block(rows, count);
    }
    return RON_ERR_OK;
}

/* What is above the blocks; the last node is the root. */
static enum ron_err build_levels(struct ledger_rows *rows, struct ron_errinfo *reterr)
{
    uint64_t begin = 0, count = rows->blocks_count;
    unsigned level = 0;

    while (count > 1) {
        RON_ASSERT(level < LEVELS_MAX);
        memcpy(rows->nodes + begin + count, rows->nodes + begin, count * sizeof(*rows->nodes));
        begin += count;
        count = fold(rows->nodes + begin, count);
        rows->levels[++level] = begin;
    }
    if (rows->blocks_count > 0 &&
        memcmp(rows->nodes[begin].bytes, rows->info.tree.root.bytes, RON_SHA256_SIZE) == 0)
        return RON_ERR_OK;
    if (rows->blocks_count == 0 &&
        memcmp(ron_merkle_empty.bytes, rows->info.tree.root.bytes, RON_SHA256_SIZE) == 0)
        return RON_ERR_OK;
    return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "the rows do not lead to their root");
}

static enum ron_err load(struct ledger_rows *rows, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct io_snapshot_info *file = io_snapshot_info(rows->file);
    uint8_t tail[LEDGER_ROWS_TAIL];
    enum ron_err err;

    if (file->version != LEDGER_ROWS_VERSION)
        return ron_fail(reterr, RON_ERR_VERSION_SKEW, "rows of version %u", file->version);
    if (file->size < LEDGER_ROWS_TAIL || (file->size - LEDGER_ROWS_TAIL) % LEDGER_ROW_SIZE != 0)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "rows in %llu bytes",
                        (unsigned long long)file->size);
    err = io_snapshot_read(rows->file, file->size - LEDGER_ROWS_TAIL, tail, sizeof(tail), reterr);
    if (err != RON_ERR_OK)
        return err;
    rows->info.batch = file->position;
    rows->info.seq = ron_load_le64(tail);
    rows->info.tree.size = (file->size - LEDGER_ROWS_TAIL) / LEDGER_ROW_SIZE;
    memcpy(rows->info.tree.root.bytes, tail + 8, RON_SHA256_SIZE);
    rows->blocks_count = nodes_at(rows->info.tree.size, BLOCK_BITS);
    rows->firsts = ron_mem_alloc_array(rows->blocks_count + 1, sizeof(*rows->firsts));
    /* Each level is made in a copy of the one below. */
    rows->nodes = ron_mem_alloc_array(2 * rows->blocks_count + LEVELS_MAX, sizeof(*rows->nodes));
    if (rows->firsts == NULL || rows->nodes == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%llu blocks of rows",
                        (unsigned long long)rows->blocks_count);
    err = read_blocks(rows, reterr);
    return err == RON_ERR_OK ? build_levels(rows, reterr) : err;
}

enum ron_err ledger_rows_open(struct io_vfs *vfs, const char *dir, uint64_t batch_max,
                              struct ledger_rows **ret_rows, struct ron_errinfo *reterr)
{
    for (;;) {
        struct ledger_rows *rows = ron_mem_alloc(sizeof(*rows));
        enum ron_err err;

        if (rows == NULL)
            return ron_fail(reterr, RON_ERR_NO_MEMORY, "rows of a state");
        err = io_snapshot_open_newest(vfs, dir, LEDGER_ROWS_KIND, batch_max, &rows->file, NULL,
                                      reterr);
        if (err != RON_ERR_OK) {
            (void)ledger_rows_close(rows);
            return err;
        }
        batch_max = io_snapshot_info(rows->file)->position;
        err = load(rows, reterr);
        if (err == RON_ERR_OK) {
            *ret_rows = rows;
            return RON_ERR_OK;
        }
        (void)ledger_rows_close(rows);
        if (err == RON_ERR_NO_MEMORY || batch_max == 0)
            return err;
        batch_max--; /* an older one may do */
    }
}

struct ledger_rows *ledger_rows_close(struct ledger_rows *rows)
{
    if (rows == NULL)
        return NULL;
    rows->file = io_snapshot_close(rows->file);
    rows->firsts = ron_mem_free(rows->firsts);
    rows->nodes = ron_mem_free(rows->nodes);
    return ron_mem_free(rows);
}

const struct ledger_rows_info *ledger_rows_info(const struct ledger_rows *rows)
{
    return &rows->info;
}

enum ron_err ledger_rows_find(struct ledger_rows *rows, const struct ledger_id *account,
                              uint32_t asset, uint64_t *ret_before, bool *ret_found,
                              struct ron_errinfo *reterr)
{
    const struct block_key key = key_of(account, asset);
    uint64_t block = 0, count = rows->blocks_count;
    size_t row = 0, left;
    enum ron_err err;

    while (count > 0) { /* the blocks that do not begin beyond it */
        const uint64_t half = count / 2;
        const bool before = compare(&rows->firsts[block + half], &key) <= 0;

        block = before ? block + half + 1 : block;
        count = before ? count - half - 1 : half;
    }
    *ret_before = 0;
    *ret_found = false;
    if (block == 0)
        return RON_ERR_OK;
    block--;
    err = read_block(rows, block, reterr);
    if (err != RON_ERR_OK)
        return err;
    left = rows_in(rows, block);
    while (left > 0) { /* its rows before the key */
        const size_t half = left / 2;
        const struct block_key at = key_of_leaf(rows->leaves + (row + half) * LEDGER_ROW_SIZE);
        const bool before = compare(&at, &key) < 0;

        row = before ? row + half + 1 : row;
        left = before ? left - half - 1 : half;
    }
    *ret_before = block * BLOCK + row;
    if (row < rows_in(rows, block)) {
        const struct block_key at = key_of_leaf(rows->leaves + row * LEDGER_ROW_SIZE);

        *ret_found = compare(&at, &key) == 0;
    }
    return RON_ERR_OK;
}

enum ron_err ledger_rows_prove(struct ledger_rows *rows, uint64_t index,
                               struct ledger_row_proof *ret_proof, struct ron_errinfo *reterr)
{
    const uint64_t block = index / BLOCK;
    struct ledger_row_proof proof = {.index = index};
    size_t at = (size_t)(index % BLOCK), count;
    enum ron_err err;

    RON_ASSERT(index < rows->info.tree.size);
    err = read_block(rows, block, reterr);
    if (err != RON_ERR_OK)
        return err;
    memcpy(proof.leaf, rows->leaves + at * LEDGER_ROW_SIZE, LEDGER_ROW_SIZE);
    count = rows_in(rows, block);
    ron_merkle_leaves(rows->leaves, LEDGER_ROW_SIZE, count, rows->hashes);
    for (; count > 1; count = fold(rows->hashes, count), at /= 2)
        if ((at ^ 1) < count)
            proof.hashes[proof.hashes_count++] = rows->hashes[at ^ 1];
    for (unsigned level = 0; nodes_at(rows->info.tree.size, BLOCK_BITS + level) > 1; level++) {
        const uint64_t other = block >> level ^ 1;

        if (other < nodes_at(rows->info.tree.size, BLOCK_BITS + level))
            proof.hashes[proof.hashes_count++] = rows->nodes[rows->levels[level] + other];
    }
    *ret_proof = proof;
    return RON_ERR_OK;
}
