/*
 * core_batch.c - see core_batch.h.
 */
#include "ledger/core_batch.h"

#include "base/assert.h"
#include "base/mem.h"

enum ron_err ledger_batch_init(struct ledger_batch *batch, uint32_t entries_max, uint32_t ext_max,
                               struct ron_errinfo *reterr)
{
    const size_t names_size_max = ((size_t)3 * entries_max + 1) * (1 + RON_ACCOUNT_NAME_SIZE_MAX);

    RON_ASSERT(entries_max >= 2);
    RON_ASSERT(entries_max <= LEDGER_BATCH_ENTRIES_MAX);
    RON_ASSERT(ext_max >= LEDGER_EXT_SIZE_MAX);
    *batch = (struct ledger_batch){
        .entries_max = entries_max,
        .ext_max = ext_max,
        .texts_max = entries_max * (1 + LEDGER_ID_TEXT_SIZE_MAX),
    };
    /* What a single transfer fills lies first, as a rule on two pages. */
    batch->ext_sizes = ron_mem_alloc_array(entries_max, sizeof(batch->ext_sizes[0]));
    batch->hashes = ron_mem_alloc_array(entries_max, sizeof(batch->hashes[0]));
    batch->entries = ron_mem_alloc_array(entries_max, sizeof(batch->entries[0]));
    batch->cells = ron_mem_alloc_array((size_t)2 * entries_max, sizeof(batch->cells[0]));
    batch->old_cells = ron_mem_alloc_array((size_t)2 * entries_max, sizeof(batch->old_cells[0]));
    batch->nodes = ron_mem_alloc_array(RON_MERKLE_NODES_MAX((size_t)entries_max),
                                       sizeof(batch->nodes[0]));
    batch->texts = ron_mem_alloc(batch->texts_max);
    batch->body = ron_mem_alloc(LEDGER_BODY_SIZE_MAX);
    batch->names = ron_mem_alloc(names_size_max);
    batch->ext = ron_mem_alloc(ext_max);
    if (batch->entries == NULL || batch->ext_sizes == NULL || batch->ext == NULL ||
        batch->texts == NULL || batch->cells == NULL || batch->old_cells == NULL ||
        batch->hashes == NULL || batch->nodes == NULL || batch->body == NULL ||
        batch->names == NULL) {
        ledger_batch_fini(batch);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a batch of %u entries", entries_max);
    }
    return RON_ERR_OK;
}

void ledger_batch_fini(struct ledger_batch *batch)
{
    batch->entries = ron_mem_free(batch->entries);
    batch->ext_sizes = ron_mem_free(batch->ext_sizes);
    batch->ext = ron_mem_free(batch->ext);
    batch->texts = ron_mem_free(batch->texts);
    batch->cells = ron_mem_free(batch->cells);
    batch->old_cells = ron_mem_free(batch->old_cells);
    batch->hashes = ron_mem_free(batch->hashes);
    batch->nodes = ron_mem_free(batch->nodes);
    batch->body = ron_mem_free(batch->body);
    batch->names = ron_mem_free(batch->names);
}

void ledger_batch_reset(struct ledger_batch *batch)
{
    batch->pending = false;
    batch->sealed = false;
    batch->number = 0;
    batch->entries_count = 0;
    batch->ids_count = 0;
    batch->ext_size = 0;
    batch->texts_size = 0;
    batch->names_count = 0;
    batch->names_size = 0;
    batch->cells_count = 0;
    batch->body_size = 0;
    batch->key_size = 0;
    memset(&batch->fingerprint, 0, sizeof(batch->fingerprint));
    memset(&batch->old, 0, sizeof(batch->old));
}

static void prefetch_bytes(const void *at, size_t size)
{
    enum { LINE = 64 };

    for (size_t i = 0; i < size; i += LINE)
        ron_prefetch_write((const uint8_t *)at + i);
}

void ledger_batch_prefetch(const struct ledger_batch *batch, unsigned step)
{
    if (step == 0) {
        prefetch_bytes(batch, offsetof(struct ledger_batch, frontier.levels[4]));
        return;
    }
    prefetch_bytes(batch->entries, sizeof(batch->entries[0]));
    prefetch_bytes(batch->cells, 2 * sizeof(batch->cells[0]));
    prefetch_bytes(batch->old_cells, 2 * sizeof(batch->old_cells[0]));
    prefetch_bytes(batch->hashes, sizeof(batch->hashes[0]));
    prefetch_bytes(batch->ext_sizes, sizeof(batch->ext_sizes[0]));
    prefetch_bytes(batch->texts, LEDGER_ID_TEXT_SIZE_MAX);
}

struct ron_slice ledger_batch_ext(const struct ledger_batch *batch, uint32_t index)
{
    size_t at = 0;

    RON_ASSERT(index < batch->entries_count);
    for (uint32_t i = 0; i < index; i++)
        at += batch->ext_sizes[i];
    return ron_slice_of(batch->ext + at, batch->ext_sizes[index]);
}
