/*
 * core_pages.h - memory of a core's tables, made before it is used.
 *
 * The tables are as large as they will ever be, and the kernel clears a page when it is touched
 * first: of a replay that is a good part. Who reads the log ahead knows what the frames will add,
 * and has the pages for it made meanwhile. It sees where the tables lie, never what is in them.
 * Whole steps alone are asked for, of what is as good as certain to be used: a short log costs no
 * memory that it would not have cost.
 */
#ifndef RON_LEDGER_CORE_PAGES_H
#define RON_LEDGER_CORE_PAGES_H

#include "ledger/core_frame.h"

struct ledger_pages_part {
    uint8_t *start;
    uint64_t size; /* of the table, in bytes */
    uint64_t used; /* once all frames so far are applied */
    uint64_t made; /* asked for up to here */
};

struct ledger_pages {
    struct ledger_pages_part ring, accounts, rows, committed, names;
    struct ledger_pages_part ids; /* the index: everywhere at once, so all of it or nothing */
    uint64_t entries_count;
    uint32_t ring_mask;
};

/* Standstill. The core must outlive *ret_pages. */
void ledger_pages_init(struct ledger_pages *ret_pages, const struct ledger_core *core);
/* The next frame that will be replayed or, if is_known, recalled. One task; others may use the core
 * meanwhile. */
void ledger_pages_expect(struct ledger_pages *pages, const struct ledger_frame *frame,
                         bool is_known);

#endif
