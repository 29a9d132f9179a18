/*
 * books_merge.h - the postings of many runs, in order.
 *
 * In rounds: what lies before a *bound*, the nearest of the places to which each run is read at
 * most two pages further, is read from one run after the other, put in order by digits of its keys,
 * and written. A tree that finds the next of 64 runs would be wrong about its way at every second
 * step.
 */
#ifndef RON_LEDGER_BOOKS_MERGE_H
#define RON_LEDGER_BOOKS_MERGE_H

#include "ledger/books_writer.h"

struct books_merger; /* opaque */

/* Runs that follow one another, oldest first; borrowed. */
enum ron_err books_merger_new(struct books_run *const *runs, size_t runs_count,
                              struct books_merger **ret_merger,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Accepts NULL, returns NULL. */
struct books_merger *books_merger_free(struct books_merger *merger) RON_BLOCKS;

/* One round; *ret_count postings are written, 0: there are no more. *ret_blamed: a run that cannot
 * be read; NULL: the error is another one. */
enum ron_err books_merger_step(struct books_merger *merger, struct books_writer *writer,
                               size_t *ret_count, struct books_run **ret_blamed,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
