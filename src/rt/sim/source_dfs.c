/*
 * source_dfs.c - exhaustive search, depth first.
 *
 * The path to the run in hand is a list of frames; each run repeats the path and then takes option
 * 0 to its end; the last frame with an option left is then advanced. With the cache, a new point
 * whose state was met before abandons its run: whatever can follow has been or will be explored
 * from the earlier one. Budgets and the price of leaving the current fiber are part of the state,
 * so this holds under every bound.
 */
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "rt/sim/internal.h"

struct frame {
    uint16_t option;
    uint16_t options_count;
    uint32_t check; /* what was asked: it must be asked again on the way through */
};

enum { KEYS_MIN = 1 << 12, KEYS_MAX = 1 << 26 };

struct sim_dfs {
    struct sim_source source; /* first */
    struct frame *frames;
    uint32_t frames_capacity;
    uint32_t frames_count; /* of the path */
    uint32_t depth;        /* of the run in hand */
    bool diverged;
    bool complete;
    bool cache;
    uint64_t *keys; /* open addressing, 0 is empty */
    uint64_t keys_capacity;
    uint64_t keys_count;
};

static bool keys_insert_into(uint64_t *keys, uint64_t capacity, uint64_t key)
{
    uint64_t at = key & (capacity - 1);

    while (keys[at] != 0) {
        if (keys[at] == key)
            return false;
        at = (at + 1) & (capacity - 1);
    }
    keys[at] = key;
    return true;
}

static void keys_grow(struct sim_dfs *dfs)
{
    uint64_t capacity = dfs->keys_capacity * 2;
    uint64_t *keys = ron_mem_alloc_array(capacity, sizeof(keys[0]));

    if (keys == NULL)
        return; /* the table only saves work: a full one is searched and no longer added to */
    for (uint64_t i = 0; i < dfs->keys_capacity; i++)
        if (dfs->keys[i] != 0)
            (void)keys_insert_into(keys, capacity, dfs->keys[i]);
    ron_mem_free(dfs->keys);
    dfs->keys = keys;
    dfs->keys_capacity = capacity;
}

/* True when the state is new. */
static bool keys_insert(struct sim_dfs *dfs, uint64_t key)
{
    key |= key == 0;
    if (dfs->keys_count * 3 >= dfs->keys_capacity * 2) {
        if (dfs->keys_capacity < KEYS_MAX)
            keys_grow(dfs);
        if (dfs->keys_count * 8 >= dfs->keys_capacity * 7) {
            for (uint64_t at = key & (dfs->keys_capacity - 1); dfs->keys[at] != 0;
                 at = (at + 1) & (dfs->keys_capacity - 1))
                if (dfs->keys[at] == key)
                    return false;
            return true;
        }
    }
    if (!keys_insert_into(dfs->keys, dfs->keys_capacity, key))
        return false;
    dfs->keys_count++;
    return true;
}

static void push(struct sim_dfs *dfs, struct frame frame)
{
    if (dfs->frames_count == dfs->frames_capacity) {
        uint32_t capacity = dfs->frames_capacity * 2;
        struct frame *frames = ron_mem_resize(dfs->frames, capacity * sizeof(frames[0]));
        RON_ASSERT(frames != NULL);
        dfs->frames = frames;
        dfs->frames_capacity = capacity;
    }
    dfs->frames[dfs->frames_count++] = frame;
}

static uint32_t check_of(const struct sim_point *point)
{
    uint64_t hash = sim_hash_word((uint64_t)point->kind, point->current);

    if (point->pids != NULL)
        for (uint32_t i = 0; i < point->options_count; i++)
            hash = sim_hash_word(hash, point->pids[i]);
    return (uint32_t)hash;
}

static int dfs_choose(struct sim_source *source, const struct sim_point *point)
{
    struct sim_dfs *dfs = (struct sim_dfs *)(void *)source;
    struct frame frame = {0, point->options_count, check_of(point)};

    RON_ASSERT(dfs->depth <= dfs->frames_count);
    if (dfs->depth < dfs->frames_count) {
        const struct frame *known = &dfs->frames[dfs->depth++];
        if (known->options_count != frame.options_count || known->check != frame.check) {
            dfs->diverged = true;
            return -1;
        }
        return known->option;
    }
    if (dfs->cache && !keys_insert(dfs, sim_state_key(point)))
        return -1;
    push(dfs, frame);
    dfs->depth++;
    return 0;
}

static bool dfs_next(struct sim_source *source, const struct sim_result *result)
{
    struct sim_dfs *dfs = (struct sim_dfs *)(void *)source;

    (void)result;
    if (dfs->diverged)
        return false;
    RON_ASSERT(dfs->depth == dfs->frames_count);
    dfs->depth = 0;
    while (dfs->frames_count > 0) {
        struct frame *last = &dfs->frames[dfs->frames_count - 1];
        if (last->option + 1 < last->options_count) {
            last->option++;
            return true;
        }
        dfs->frames_count--;
    }
    dfs->complete = true;
    return false;
}

enum ron_err sim_dfs_new(bool cache, struct sim_dfs **ret_dfs, struct ron_errinfo *reterr)
{
    struct sim_dfs *dfs;

    if (cache && !sim_state_key_possible())
        return ron_fail(reterr, RON_ERR_INTERNAL, "no state cache with ucontext fibers");
    dfs = ron_mem_alloc(sizeof(*dfs));
    if (dfs == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "search");
    dfs->source = (struct sim_source){dfs_choose, dfs_next};
    dfs->cache = cache;
    dfs->frames_capacity = 256;
    dfs->frames = ron_mem_alloc_array(dfs->frames_capacity, sizeof(dfs->frames[0]));
    dfs->keys_capacity = KEYS_MIN;
    dfs->keys = ron_mem_alloc_array(dfs->keys_capacity, sizeof(dfs->keys[0]));
    if (dfs->frames == NULL || dfs->keys == NULL) {
        sim_dfs_free(dfs);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "search");
    }
    *ret_dfs = dfs;
    return RON_ERR_OK;
}

struct sim_dfs *sim_dfs_free(struct sim_dfs *dfs)
{
    if (dfs == NULL)
        return NULL;
    ron_mem_free(dfs->frames);
    ron_mem_free(dfs->keys);
    return ron_mem_free(dfs);
}

struct sim_source *sim_dfs_source(struct sim_dfs *dfs)
{
    return &dfs->source;
}

bool sim_dfs_is_complete(const struct sim_dfs *dfs)
{
    return dfs->complete;
}

bool sim_dfs_diverged(const struct sim_dfs *dfs)
{
    return dfs->diverged;
}

uint64_t sim_dfs_states_count(const struct sim_dfs *dfs)
{
    return dfs->keys_count;
}
