/*
 * tlog_tiles.c - the pool of tiles: find, load and check, evict. See tlog_impl.h.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "io/tlog_impl.h"

enum {
    CACHE_BYTES_DEFAULT = 32 << 20,
    CACHE_BYTES_MIN = 2 << 20,
    CACHE_BYTES_MAX = 1 << 29,
    TILE_BYTES = IO_TILE_WIDTH * RON_SHA256_SIZE,
    NODES_MAX = 256, /* asked for in one call */
};
_Static_assert(sizeof(struct tile_nodes) == (TILE_NODES + 1) * RON_SHA256_SIZE, "hashes in a row");
_Static_assert(sizeof(struct tile_nodes) % IO_DIRECT_SIZE == 0, "a tile begins with a page");
_Static_assert(TILE_BYTES % IO_DIRECT_SIZE == 0, "in its file too");

enum ron_err tlog_pool_init(struct io_tlog *tlog, uint64_t cache_bytes, struct ron_errinfo *reterr)
{
    uint64_t bytes = cache_bytes == 0 ? CACHE_BYTES_DEFAULT : cache_bytes;
    uint32_t table_count = 1, *table;
    struct tile *tiles;

    if (bytes < CACHE_BYTES_MIN || bytes > CACHE_BYTES_MAX)
        return ron_fail(reterr, RON_ERR_MALFORMED, "tile cache of %llu bytes; %d to %d are allowed",
                        (unsigned long long)bytes, CACHE_BYTES_MIN, CACHE_BYTES_MAX);
    tlog->slots_count = (uint32_t)(bytes / sizeof(struct tile_nodes));
    /* What is neither dirty nor loading can be evicted: there is always a slot to be had. */
    tlog->dirty_max = tlog->slots_count / 4 * 3;
    tlog->loading_max = tlog->slots_count / 8;
    while (table_count < tlog->slots_count)
        table_count *= 2;
    tlog->table_mask = table_count - 1;
    table = ron_mem_alloc_array(table_count, sizeof(*table));
    tiles = ron_mem_alloc_array(tlog->slots_count, sizeof(*tiles));
    tlog->nodes_memory = ron_mem_alloc(IO_DIRECT_SIZE +
                                       tlog->slots_count * sizeof(struct tile_nodes));
    if (tlog->nodes_memory != NULL)
        tlog->nodes = (struct tile_nodes *)(void *)io_direct_page(tlog->nodes_memory);
    tlog_lock(tlog);
    tlog->table = table;
    tlog->tiles = tiles;
    tlog_unlock(tlog);
    if (table == NULL || tiles == NULL || tlog->nodes == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%u tiles", tlog->slots_count);
    return RON_ERR_OK;
}

void tlog_pool_fini(struct io_tlog *tlog)
{
    tlog_lock(tlog);
    tlog->table = ron_mem_free(tlog->table);
    tlog->tiles = ron_mem_free(tlog->tiles);
    tlog_unlock(tlog);
    tlog->nodes_memory = ron_mem_free(tlog->nodes_memory);
    tlog->nodes = NULL;
}

/* ---- Table ---- */

static uint32_t *chain_of(struct io_tlog *tlog, struct tile_key key) RON_NEEDS(storage)
{
    uint64_t mixed = (key.index << 3 | key.level) * 0x9e3779b97f4a7c15u;

    return &tlog->table[(uint32_t)(mixed >> 32) & tlog->table_mask];
}

uint32_t tlog_tile_find(struct io_tlog *tlog, struct tile_key key)
{
    for (uint32_t next = *chain_of(tlog, key); next != 0; next = tlog->tiles[next - 1].next) {
        struct tile *tile = &tlog->tiles[next - 1];

        if (tile->index == key.index && tile->level == key.level) {
            tile->recent = true;
            return next - 1;
        }
    }
    return TILE_NO_SLOT;
}

static void tile_link(struct io_tlog *tlog, uint32_t slot, struct tile_key key) RON_NEEDS(storage)
{
    struct tile *tile = &tlog->tiles[slot];
    uint32_t *chain = chain_of(tlog, key);

    RON_ASSERT_SLOW(tlog_tile_find(tlog, key) == TILE_NO_SLOT);
    tile->index = key.index;
    tile->level = (uint8_t)key.level;
    tile->recent = true;
    tile->next = *chain;
    *chain = slot + 1;
}

static void tile_unlink(struct io_tlog *tlog, uint32_t slot) RON_NEEDS(storage)
{
    const struct tile *tile = &tlog->tiles[slot];
    uint32_t *at = chain_of(tlog, (struct tile_key){tile->level, tile->index});

    while (*at != slot + 1) {
        RON_ASSERT(*at != 0);
        at = &tlog->tiles[*at - 1].next;
    }
    *at = tile->next;
}

/* A slot for someone: free, or a clean one that was not used for the longest time, roughly. */
static uint32_t slot_take(struct io_tlog *tlog) RON_NEEDS(storage)
{
    RON_ASSERT(tlog->dirty_count <= tlog->dirty_max);
    RON_ASSERT(tlog->loading_count <= tlog->loading_max);
    for (uint32_t passed = 0;; passed++) {
        uint32_t slot = tlog->hand;
        struct tile *tile = &tlog->tiles[slot];

        RON_ASSERT(passed <= 2 * tlog->slots_count); /* one is free, or clean and was passed */
        tlog->hand = slot + 1 == tlog->slots_count ? 0 : slot + 1;
        if (tile->state == TILE_FREE)
            return slot;
        if (tile->state != TILE_CLEAN)
            continue;
        if (!tile->recent) {
            tile_unlink(tlog, slot);
            return slot;
        }
        tile->recent = false;
    }
}

uint32_t tlog_tile_new(struct io_tlog *tlog, struct tile_key key)
{
    uint32_t slot;

    RON_ASSERT(tlog->dirty_count < tlog->dirty_max);
    slot = slot_take(tlog);
    tlog->tiles[slot].state = TILE_DIRTY;
    tlog->dirty_count++;
    tile_link(tlog, slot, key);
    return slot;
}

void tlog_tile_clean(struct io_tlog *tlog, uint32_t slot)
{
    RON_ASSERT(tlog->tiles[slot].state == TILE_DIRTY);
    tlog->tiles[slot].state = TILE_CLEAN;
    tlog->dirty_count--;
}

void tlog_tile_grow(struct tile_nodes *nodes, unsigned from, unsigned to)
{
    RON_ASSERT(from <= to);
    RON_ASSERT(to <= IO_TILE_WIDTH);
    for (unsigned height = 1; height <= TILE_HEIGHT; height++) {
        unsigned first = from >> height, end = to >> height;
        const struct ron_sha256 *children = &nodes->at[tile_offset(height - 1) + 2 * first];

        if (first == end)
            return; /* nor is anything complete above */
        ron_merkle_nodes((const struct ron_merkle_pair *)(const void *)children, end - first,
                         &nodes->at[tile_offset(height) + first]);
    }
}

/* ---- Reading ---- */

/* What is wanted of one tile: positions among its nodes. */
struct wanted {
    const uint16_t *positions;
    size_t count;
    struct ron_sha256 *ret_hashes;
};

static void copy_wanted(const struct tile_nodes *nodes, const struct wanted *wanted)
{
    for (size_t i = 0; i < wanted->count; i++)
        wanted->ret_hashes[i] = nodes->at[wanted->positions[i]];
}

static enum ron_err read_tile(struct io_file *file, struct tile_key key, struct tile_nodes *nodes,
                              const struct ron_sha256 *expected,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t offset = key.index * TILE_BYTES;
    size_t size = 0;
    enum ron_err err = io_file_read(file, offset, nodes->at, TILE_BYTES, &size, reterr);

    if (err != RON_ERR_OK)
        return err;
    if (size == TILE_BYTES) {
        tlog_tile_grow(nodes, 0, IO_TILE_WIDTH);
        if (memcmp(nodes->at[TILE_ROOT].bytes, expected->bytes, RON_SHA256_SIZE) == 0)
            return RON_ERR_OK;
    }
    return ron_fail(reterr, RON_ERR_WAL_CORRUPT,
                    "%s: damaged tile at offset %llu (derived data: open with rebuild)",
                    io_file_path(file), (unsigned long long)offset);
}

/* Read a full tile, check it against the hash its parent has of it, copy, and keep it. */
static enum ron_err load_tile(struct io_tlog *tlog, struct tile_key key,
                              const struct ron_sha256 *expected, const struct wanted *wanted,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_file *file;
    uint32_t slot = TILE_NO_SLOT;
    enum ron_err err;

    tlog_lock(tlog);
    if (tlog->loading_count < tlog->loading_max) {
        tlog->loading_count++;
        slot = slot_take(tlog);
        tlog->tiles[slot].state = TILE_LOADING;
    }
    file = tlog->files[key.level];
    tlog_unlock(tlog);
    if (slot == TILE_NO_SLOT)
        return ron_fail(reterr, RON_ERR_BUSY, "%u tiles are being read", tlog->loading_max);
    RON_ASSERT(file != NULL);

    err = read_tile(file, key, &tlog->nodes[slot], expected, reterr);
    if (err == RON_ERR_OK)
        copy_wanted(&tlog->nodes[slot], wanted);

    tlog_lock(tlog);
    tlog->loading_count--;
    tlog->tiles[slot].state = TILE_FREE;
    if (err == RON_ERR_OK && tlog_tile_find(tlog, key) == TILE_NO_SLOT) {
        tlog->tiles[slot].state = TILE_CLEAN;
        tile_link(tlog, slot, key);
    }
    tlog_unlock(tlog);
    return err;
}

/* The lowest of the tile and its ancestors that is in memory; copies from it what is wanted, or the
 * hash of its child on the way to the tile. There is one: the tile without full parent is the
 * partial one of its level, which stays. */
static unsigned copy_from_memory(struct io_tlog *tlog, struct tile_key key,
                                 const struct wanted *wanted, struct ron_sha256 *ret_expected)
{
    unsigned level = key.level;
    uint64_t index = key.index, child = 0;

    tlog_lock(tlog);
    for (;; level++, child = index, index >>= TILE_HEIGHT) {
        uint32_t slot;

        RON_ASSERT(level < IO_TILE_LEVELS);
        slot = tlog_tile_find(tlog, (struct tile_key){level, index});
        if (slot == TILE_NO_SLOT)
            continue;
        if (level == key.level)
            copy_wanted(&tlog->nodes[slot], wanted);
        else
            *ret_expected = tlog->nodes[slot].at[child % IO_TILE_WIDTH];
        break;
    }
    tlog_unlock(tlog);
    return level;
}

static enum ron_err tile_get(struct io_tlog *tlog, struct tile_key key, const struct wanted *wanted,
                             struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_sha256 expected = {{0}};
    unsigned level = copy_from_memory(tlog, key, wanted, &expected);

    while (level > key.level) {
        unsigned shift;
        struct tile_key at;
        uint16_t position = 0;
        struct wanted child = {&position, 1, &expected};
        struct ron_sha256 parent = expected;
        enum ron_err err;

        level--;
        shift = TILE_HEIGHT * (level - key.level);
        at = (struct tile_key){level, key.index >> shift};
        if (level > key.level)
            position = (uint16_t)(key.index >> (shift - TILE_HEIGHT) & (IO_TILE_WIDTH - 1));
        err = load_tile(tlog, at, &parent, level == key.level ? wanted : &child, reterr);
        if (err != RON_ERR_OK)
            return err;
    }
    return RON_ERR_OK;
}

static struct tile_key tile_of(const struct node *node)
{
    unsigned inside = node->height % TILE_HEIGHT;

    return (struct tile_key){node->height / TILE_HEIGHT, node->index >> (TILE_HEIGHT - inside)};
}

static uint16_t position_of(const struct node *node)
{
    unsigned inside = node->height % TILE_HEIGHT;
    unsigned k = (unsigned)(node->index & ((IO_TILE_WIDTH >> inside) - 1u));

    return (uint16_t)(tile_offset(inside) + k);
}

enum ron_err tlog_nodes(struct io_tlog *tlog, const struct node *nodes, size_t nodes_count,
                        struct ron_sha256 *ret_hashes, struct ron_errinfo *reterr)
{
    uint16_t positions[NODES_MAX];
    size_t done = 0;

    RON_ASSERT(nodes_count <= NODES_MAX);
    while (done < nodes_count) {
        struct tile_key key = tile_of(&nodes[done]);
        struct wanted wanted = {positions, 0, ret_hashes + done};
        enum ron_err err;

        for (size_t i = done; i < nodes_count; i++) {
            struct tile_key other = tile_of(&nodes[i]);

            if (other.level != key.level || other.index != key.index)
                break;
            positions[wanted.count++] = position_of(&nodes[i]);
        }
        err = tile_get(tlog, key, &wanted, reterr);
        if (err != RON_ERR_OK)
            return err;
        done += wanted.count;
    }
    return RON_ERR_OK;
}

enum ron_err tlog_tile_hashes(struct io_tlog *tlog, struct tile_key key, unsigned width,
                              struct ron_sha256 *ret_hashes, struct ron_errinfo *reterr)
{
    uint16_t positions[IO_TILE_WIDTH];
    struct wanted wanted = {positions, width, ret_hashes};

    RON_ASSERT(width <= IO_TILE_WIDTH);
    for (unsigned i = 0; i < width; i++)
        positions[i] = (uint16_t)i;
    return tile_get(tlog, key, &wanted, reterr);
}
