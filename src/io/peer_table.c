/*
 * peer_table.c - connections per address. See peer_table.h.
 *
 * Open addressing with linear probing; a row whose count falls to 0 is removed by moving later rows
 * of its run back, so that probes stay short whatever comes and goes. The hash is keyed: a client
 * chooses its addresses.
 */
#include "io/peer_table.h"

#include "base/assert.h"
#include "base/mem.h"
#include "rt/lock.h"

struct row {
    uint8_t address[16];
    uint32_t count; /* 0: free */
};
struct peer_table {
    struct rt_lock lock; /* class net */
    uint64_t key;
    uint32_t mask;
    uint32_t each_max;
    uint32_t used RON_GUARDED_BY(net);
    uint32_t used_max;
    struct row *rows RON_GUARDED_BY(net);
};

static void table_lock(struct peer_table *table) RON_LOCKS(net)
{
    rt_lock_take(&table->lock);
}

static void table_unlock(struct peer_table *table) RON_UNLOCKS(net)
{
    rt_lock_drop(&table->lock);
}

enum ron_err peer_table_new(uint32_t peers_max, uint32_t each_max, struct peer_table **ret_table,
                            struct ron_errinfo *reterr)
{
    struct peer_table *table;
    uint32_t rows_count = 16;
    struct row *rows;

    RON_ASSERT(peers_max > 0);
    RON_ASSERT(peers_max <= 1 << 20);
    RON_ASSERT(each_max > 0);
    while (rows_count < peers_max * 2)
        rows_count *= 2;
    table = ron_mem_alloc_array(1, sizeof(*table));
    rows = ron_mem_alloc_array(rows_count, sizeof(*rows));
    if (table == NULL || rows == NULL) {
        (void)ron_mem_free(table);
        (void)ron_mem_free(rows);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "table of peers");
    }
    rt_lock_init(&table->lock, "peers", RON_RANK_net);
    table->key = sh_random() | 1;
    table->mask = rows_count - 1;
    table->each_max = each_max;
    table->used_max = peers_max;
    table_lock(table);
    table->rows = rows;
    table_unlock(table);
    *ret_table = table;
    return RON_ERR_OK;
}

struct peer_table *peer_table_free(struct peer_table *table)
{
    if (table == NULL)
        return NULL;
    table_lock(table);
    table->rows = ron_mem_free(table->rows);
    table_unlock(table);
    rt_lock_fini(&table->lock);
    return ron_mem_free(table);
}

static uint32_t home_of(const struct peer_table *table, const uint8_t address[static 16])
{
    uint64_t a = ron_load_le64(address) ^ table->key;
    uint64_t b = ron_load_le64(address + 8) + table->key;
    unsigned __int128 product = (unsigned __int128)(a | 1) * (b ^ 0x9e3779b97f4a7c15u);

    return (uint32_t)((uint64_t)product ^ (uint64_t)(product >> 64)) & table->mask;
}

/* The address's row, or the free one where it would go. */
static uint32_t find(struct peer_table *table, const uint8_t address[static 16]) RON_NEEDS(net)
{
    uint32_t at = home_of(table, address);

    while (table->rows[at].count != 0 && memcmp(table->rows[at].address, address, 16) != 0)
        at = (at + 1) & table->mask;
    return at;
}

bool peer_table_enter(struct peer_table *table, const uint8_t address[static 16])
{
    struct row *row;
    bool entered = false;

    table_lock(table);
    row = &table->rows[find(table, address)];
    if (row->count == 0 && table->used < table->used_max) {
        memcpy(row->address, address, 16);
        row->count = 1;
        table->used++;
        entered = true;
    } else if (row->count > 0 && row->count < table->each_max) {
        row->count++;
        entered = true;
    }
    table_unlock(table);
    return entered;
}

/* Close the gap: rows behind it that may stand there move back. */
static void remove_row(struct peer_table *table, uint32_t gap) RON_NEEDS(net)
{
    uint32_t at = gap;

    for (;;) {
        uint32_t home;

        at = (at + 1) & table->mask;
        if (table->rows[at].count == 0)
            break;
        home = home_of(table, table->rows[at].address);
        /* May stand in the gap if its home does not lie between the gap and itself. */
        if (((at - home) & table->mask) >= ((at - gap) & table->mask)) {
            table->rows[gap] = table->rows[at];
            gap = at;
        }
    }
    table->rows[gap].count = 0;
    table->used--;
}

void peer_table_leave(struct peer_table *table, const uint8_t address[static 16])
{
    uint32_t at;

    table_lock(table);
    at = find(table, address);
    RON_ASSERT(table->rows[at].count > 0);
    if (--table->rows[at].count == 0) {
        table->rows[at].count = 1; /* a row of the run until the gap is closed */
        remove_row(table, at);
    }
    table_unlock(table);
}
