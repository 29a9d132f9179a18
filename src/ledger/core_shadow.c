/*
 * core_shadow.c - see core_shadow.h.
 *
 * Only the sequencer copies, so chunks need no lock; while the committer takes batches back
 * (ledger_core_rebuild) the sequencer stands still. What the committer writes lies in a table of
 * its own and is not kept: at a cut the two views are one.
 *
 * Whoever reads a whole shadow reads names, assets and holds of the living core: below the counts
 * of the cut their bytes stay, but for members that no snapshot has (heap_at; an asset's legs).
 */
#include "ledger/core_shadow.h"

#include "base/mem.h"
#include "base/pages.h"
#include "ledger/core_types.h"

enum { MUCH_MEMORY = 1 << 20 }; /* from here on new pages are a pause one would notice */
_Static_assert((int)LEDGER_SHADOW_TABLES == (int)SHADOWED_COUNT, "room for each table is told");

struct shadow_table {
    const uint8_t *from;
    uint8_t *copy;
    uint8_t *kept; /* of each chunk */
    size_t item_size;
    uint32_t room;  /* for records */
    uint32_t count; /* records at the cut */
    uint32_t chunks_count;
    uint32_t next; /* all chunks before it are kept */
};

struct ledger_shadow {
    struct ledger_core view; /* no indexes, and of another magic: nothing can be applied to it */
    struct shadow_table tables[SHADOWED_COUNT];
    uint32_t missing_count; /* chunks that are not kept yet */
    struct ron_b3 digest;   /* at the cut, where slow checks are on */
};

/* --- Keeping -----------------------------------------------------------------------------------
 */

static void copy_chunk(struct ledger_shadow *shadow, struct shadow_table *table, uint32_t chunk)
{
    const uint32_t first = chunk * LEDGER_SHADOW_CHUNK;
    const uint32_t left = table->count - first;
    const uint32_t count = left < LEDGER_SHADOW_CHUNK ? left : LEDGER_SHADOW_CHUNK;

    RON_ASSERT(first < table->count);
    RON_ASSERT(shadow->missing_count > 0);
    memcpy(table->copy + first * table->item_size, table->from + first * table->item_size,
           count * table->item_size);
    table->kept[chunk] = 1;
    shadow->missing_count--;
}

void shadow_keep(struct ledger_shadow *shadow, enum shadowed which, uint32_t place)
{
    struct shadow_table *table = &shadow->tables[which];

    if (place < table->count && table->kept[place / LEDGER_SHADOW_CHUNK] == 0)
        copy_chunk(shadow, table, place / LEDGER_SHADOW_CHUNK);
}

bool ledger_core_shadow_copy(struct ledger_core *core, uint32_t chunks_max)
{
    struct ledger_shadow *shadow = core->shadow;

    RON_ASSERT(shadow != NULL);
    for (unsigned i = 0; i < SHADOWED_COUNT; i++) {
        struct shadow_table *table = &shadow->tables[i];

        for (; table->next < table->chunks_count; table->next++) {
            if (table->kept[table->next] != 0)
                continue;
            if (chunks_max-- == 0)
                return false;
            copy_chunk(shadow, table, table->next);
        }
    }
    return shadow->missing_count == 0;
}

/* --- Life --------------------------------------------------------------------------------------
 */

static void free_windows(struct ledger_shadow *shadow)
{
    shadow->view.batches = ron_table_free(shadow->view.batches);
    shadow->view.ring = ron_table_free(shadow->view.ring);
    shadow->view.keys = ron_table_free(shadow->view.keys);
}

struct ledger_shadow *ledger_shadow_free(struct ledger_shadow *shadow)
{
    if (shadow == NULL)
        return NULL;
    for (unsigned i = 0; i < SHADOWED_COUNT; i++) {
        struct shadow_table *table = &shadow->tables[i];

        if (table->copy != NULL)
            ron_pages_give_back(table->copy, table->room * table->item_size);
        (void)ron_table_free(table->copy);
        (void)ron_table_free(table->kept);
    }
    free_windows(shadow);
    return ron_mem_free(shadow);
}

static struct ledger_shadow_room count_records(const struct ledger_core *core)
{
    return (struct ledger_shadow_room){{
        [SHADOWED_ACCOUNTS] = core->accounts_count,
        [SHADOWED_ROWS] = core->rows_count,
        [SHADOWED_LIMITS] = core->limits_count,
        [SHADOWED_REVERSALS] = core->reversals_count,
        [SHADOWED_RUNS] = core->runs_count,
        [SHADOWED_STREAMS] = core->streams_count,
    }};
}

/* Room for a quarter more than there is, so that the next cut can use it too. */
static bool make_table(struct shadow_table *table, size_t item_size, uint32_t count)
{
    const uint64_t room = (uint64_t)count + count / 4 + LEDGER_SHADOW_CHUNK;

    table->item_size = item_size;
    table->room = room > UINT32_MAX ? UINT32_MAX : (uint32_t)room;
    table->copy = ron_table_alloc(table->room, item_size, RON_TABLE_IN_ORDER);
    table->kept = ron_table_alloc(table->room / LEDGER_SHADOW_CHUNK + 1, 1, RON_TABLE_IN_ORDER);
    return table->copy != NULL && table->kept != NULL;
}

static const size_t item_sizes[SHADOWED_COUNT] = {
    [SHADOWED_ACCOUNTS] = sizeof(struct account), [SHADOWED_ROWS] = sizeof(struct row),
    [SHADOWED_LIMITS] = sizeof(struct limit),     [SHADOWED_REVERSALS] = sizeof(struct reversal),
    [SHADOWED_RUNS] = sizeof(struct run),         [SHADOWED_STREAMS] = sizeof(struct stream),
};

static struct ledger_shadow *make_shadow(const struct ledger_shadow_room *room)
{
    struct ledger_shadow *shadow = ron_mem_alloc(sizeof(*shadow));

    for (unsigned i = 0; shadow != NULL && i < SHADOWED_COUNT; i++) {
        if (!make_table(&shadow->tables[i], item_sizes[i], room->counts[i]))
            shadow = ledger_shadow_free(shadow);
    }
    return shadow;
}

struct ledger_shadow *ledger_shadow_new(const struct ledger_shadow_room *room)
{
    struct ledger_shadow *shadow = make_shadow(room);

    for (unsigned i = 0; shadow != NULL && i < SHADOWED_COUNT; i++) {
        const struct shadow_table *table = &shadow->tables[i];

        ron_pages_touch(table->copy, room->counts[i] * table->item_size);
        ron_pages_touch(table->kept, room->counts[i] / LEDGER_SHADOW_CHUNK + 1);
    }
    return shadow;
}

static bool fits(const struct ledger_shadow *shadow, const struct ledger_shadow_room *room)
{
    bool does = shadow != NULL;

    for (unsigned i = 0; does && i < SHADOWED_COUNT; i++)
        does = room->counts[i] <= shadow->tables[i].room;
    return does;
}

bool ledger_core_shadow_lacks(const struct ledger_core *core, const struct ledger_shadow *spare,
                              struct ledger_shadow_room *ret_room)
{
    size_t size = 0;

    *ret_room = count_records(core);
    for (unsigned i = 0; i < SHADOWED_COUNT; i++)
        size += ret_room->counts[i] * item_sizes[i];
    return size >= MUCH_MEMORY && !fits(spare, ret_room);
}

/* Nothing is kept yet. */
static void begin_tables(struct ledger_shadow *shadow, const struct ledger_core *core,
                         const struct ledger_shadow_room *room)
{
    const uint32_t *counts = room->counts;
    struct ledger_core *view = &shadow->view;

    shadow->missing_count = 0;
    for (unsigned i = 0; i < SHADOWED_COUNT; i++) {
        struct shadow_table *table = &shadow->tables[i];

        table->from = core->writable[i];
        table->count = counts[i];
        table->chunks_count = (counts[i] + LEDGER_SHADOW_CHUNK - 1) / LEDGER_SHADOW_CHUNK;
        table->next = 0;
        memset(table->kept, 0, table->chunks_count);
        shadow->missing_count += table->chunks_count;
        view->writable[i] = table->copy;
    }
    view->accounts = view->writable[SHADOWED_ACCOUNTS];
    view->rows = view->writable[SHADOWED_ROWS];
    view->limits = view->writable[SHADOWED_LIMITS];
    view->reversals = view->writable[SHADOWED_REVERSALS];
    view->runs = view->writable[SHADOWED_RUNS];
    view->streams = view->writable[SHADOWED_STREAMS];
}

/* The newest batch's record, at place 0: the log gives back the others. */
static bool take_newest(struct ledger_core *view, const struct ledger_core *core)
{
    view->batches = ron_table_alloc(1, sizeof(core->batches[0]), RON_TABLE_IN_ORDER);
    view->batches_mask = 0;
    if (view->batches != NULL)
        view->batches[0] = core->batches[(uint32_t)core->batch_last & core->batches_mask];
    return view->batches != NULL;
}

static bool take_windows(struct ledger_core *view, const struct ledger_core *core)
{
    view->batches = ron_table_alloc((uint64_t)core->batches_mask + 1, sizeof(core->batches[0]),
                                    RON_TABLE_IN_ORDER);
    view->ring = ron_table_alloc((uint64_t)core->ring_mask + 1, sizeof(core->ring[0]),
                                 RON_TABLE_IN_ORDER);
    view->keys = ron_table_alloc((uint64_t)core->keys_mask + 1, sizeof(core->keys[0]),
                                 RON_TABLE_IN_ORDER);
    if (view->batches == NULL || view->ring == NULL || view->keys == NULL)
        return false;
    memcpy(view->batches, core->batches,
           ((size_t)core->batches_mask + 1) * sizeof(core->batches[0]));
    for (uint64_t seq = window_first(core); seq <= core->seq_last; seq++)
        view->ring[(uint32_t)seq & core->ring_mask] = core->ring[(uint32_t)seq & core->ring_mask];
    for (uint64_t key = window_keys_first(core); key < core->keys_end; key++)
        view->keys[(uint32_t)key & core->keys_mask] = core->keys[(uint32_t)key & core->keys_mask];
    return true;
}

/* Everything that is not in the six tables. */
static void copy_heads(struct ledger_core *view, const struct ledger_core *core)
{
    view->capacity = core->capacity;
    view->archive = core->archive;
    view->batch_last = core->batch_last;
    view->seq_last = core->seq_last;
    view->commit_ms_last = core->commit_ms_last;
    atomic_store_explicit(&view->committed_seq, core->seq_last, memory_order_relaxed);
    atomic_store_explicit(&view->committed_batch, core->batch_last, memory_order_relaxed);
    view->accounts_count = core->accounts_count;
    view->rows_count = core->rows_count;
    view->names = core->names;
    view->names_size = core->names_size;
    view->limits_count = core->limits_count;
    view->assets = core->assets;
    view->assets_count = core->assets_count;
    view->holds = core->holds;
    view->holds_count = core->holds_count;
    view->reversals_count = core->reversals_count;
    view->runs_count = core->runs_count;
    view->streams_count = core->streams_count;
    view->ring_mask = core->ring_mask;
    view->ring_first = core->ring_first;
    view->keys_mask = core->keys_mask;
    view->keys_first = core->keys_first;
    view->keys_end = core->keys_end;
    view->batches_mask = core->batches_mask;
    view->committed_frontier = core->committed_frontier;
}

enum ron_err ledger_core_shadow_begin(struct ledger_core *core, struct ledger_shadow **spare,
                                      struct ron_errinfo *reterr)
{
    struct ledger_shadow *shadow;
    const struct ledger_shadow_room room = count_records(core);

    RON_ASSERT(core->magic == CORE_MAGIC);
    RON_ASSERT(core->shadow == NULL);
    RON_ASSERT(core->missing_batch == 0);
    RON_ASSERT(core->batch_last ==
               atomic_load_explicit(&core->committed_batch, memory_order_relaxed));
    shadow = spare != NULL && fits(*spare, &room) ? RON_TAKE(*spare) : make_shadow(&room);
    if (shadow != NULL) {
        free_windows(shadow); /* of its last cut */
        copy_heads(&shadow->view, core);
        begin_tables(shadow, core, &room);
        if (!(core->archive.last_batch != NULL ? take_newest(&shadow->view, core)
                                               : take_windows(&shadow->view, core)))
            shadow = ledger_shadow_free(shadow);
    }
    if (shadow == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a copy of %u accounts and %u rows",
                        core->accounts_count, core->rows_count);
#ifdef RON_SLOW_CHECKS
    shadow->digest = core_digest_kept(core);
#endif
    core->shadow = shadow;
    return RON_ERR_OK;
}

struct ledger_shadow *ledger_core_shadow_take(struct ledger_core *core)
{
    struct ledger_shadow *shadow = core->shadow;

    RON_ASSERT(shadow != NULL);
    RON_ASSERT(shadow->missing_count == 0);
#ifdef RON_SLOW_CHECKS
    struct ron_b3 digest = core_digest_kept(&shadow->view);

    RON_ASSERT(memcmp(&digest, &shadow->digest, sizeof(digest)) == 0); /* README invariant 21 */
#endif
    core->shadow = NULL;
    return shadow;
}

void ledger_core_shadow_drop(struct ledger_core *core)
{
    core->shadow = ledger_shadow_free(core->shadow);
}

const struct ledger_core *ledger_shadow_view(const struct ledger_shadow *shadow)
{
    return &shadow->view;
}
