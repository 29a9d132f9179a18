/*
 * core_touch.h - rows that a batch changes get a cell in it. Private to src/ledger/core*.c.
 */
#ifndef RON_LEDGER_CORE_TOUCH_H
#define RON_LEDGER_CORE_TOUCH_H

#include "ledger/core_apply.h"

/* A row that is not its account's home is touched: the home's cell, if there is one, is not the
 * only one any more. */
static inline void join_home(struct apply *a, uint32_t home)
{
    const struct row *row = &a->core->rows[home];

    if (row->command == (uint32_t)a->core->commands_count && row->cell < a->batch->cells_count &&
        ledger_cell_row(&a->batch->cells[row->cell]) == home)
        a->batch->cells[row->cell].home = home;
}

/* Remember the account's row as it was before the batch: its cell, whose new values come later. */
static RON_HOT_INLINE struct ledger_cell *touch(struct apply *a, const struct account *owner,
                                                uint32_t place)
{
    struct ledger_batch *batch = a->batch;
    struct row *row = row_write(a->core, place);
    const uint32_t command = (uint32_t)a->core->commands_count;
    struct ledger_cell *cell;
    uint32_t home;

    RON_ASSERT(place < a->core->rows_count);
    RON_ASSERT(batch->cells_count <= 2 * batch->entries_max);
    if (RON_UNLIKELY(row->command == command) && row->cell < batch->cells_count &&
        ledger_cell_row(&batch->cells[row->cell]) == place)
        return &batch->cells[row->cell];
    home = atomic_load_explicit(&owner->row_home, memory_order_relaxed);
    if (RON_UNLIKELY(home != place))
        join_home(a, home);
    batch->old_cells[batch->cells_count] = (struct ledger_old_cell){
        .balance = row->balance,
        .daily = row->daily,
        .nonce = owner->next_nonce,
        .day = row->day,
        .flags = row->flags,
    };
    cell = &batch->cells[batch->cells_count];
    cell->row_flags = ledger_cell_row_flags(place, row->flags);
    cell->home = atomic_load_explicit(&owner->row_first, memory_order_relaxed) == home
                     ? LEDGER_CELL_SINGLE
                     : home;
    row->command = command;
    row->cell = batch->cells_count++;
    return cell;
}

#endif
