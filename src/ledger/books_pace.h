/*
 * books_pace.h - how much of a processor a merge of runs may have. Pure.
 *
 * Runs that wait to be merged cost readers a little, and a merge of 16 Mi entries takes seconds of
 * processor time that requests would miss: so after each step it rests twice as long as the step
 * took, waits for the disk included, which is longer the busier the machine is. While entries come
 * and less than half as many runs wait again as one merge takes, it rests eight times as long:
 * there is time. With as many waiting again it is behind and does not rest.
 */
#ifndef RON_LEDGER_BOOKS_PACE_H
#define RON_LEDGER_BOOKS_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOOKS_REST_MAX_NS UINT64_C(60000000) /* a page may have come meanwhile */

/* After a step that took step_ns, with so many runs that are not merged (those of this merge, too);
 * busy: entries have come since the step before. */
static inline uint64_t books_rest_ns(uint64_t step_ns, bool busy, size_t runs_waiting,
                                     size_t merge_runs)
{
    const uint64_t steps = busy && runs_waiting < merge_runs + merge_runs / 2 ? 8 : 2;

    if (runs_waiting >= 2 * merge_runs)
        return 0;
    return step_ns < BOOKS_REST_MAX_NS / steps ? steps * step_ns : BOOKS_REST_MAX_NS;
}

#endif
