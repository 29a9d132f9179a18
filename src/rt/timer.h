/*
 * timer.h - callbacks at a time, from one task for all.
 *
 * Bounded: a full set answers RON_ERR_BUSY. Never early; late only by what other callbacks take, so
 * a callback must not block: it sets a flag, wakes a task, sends to a queue. Callbacks run without
 * locks on the timer task and may set and cancel timers, also their own.
 */
#ifndef RON_RT_TIMER_H
#define RON_RT_TIMER_H

#include "rt/deadline.h"
#include "rt/task.h"

enum { RT_TIMERS_MAX = 1 << 20 };

struct rt_timers; /* opaque */

/* Names one setting of one timer; a stale id names nothing. 0 is never given. */
struct rt_timer_id {
    uint64_t value;
};
typedef void rt_timer_fn(void *argument, struct rt_timer_id id);

struct rt_timers_options {
    const char *name; /* texts are borrowed for the set's life */
    const char *owner;
    uint32_t timers_max; /* pending at once, 1..RT_TIMERS_MAX */
};

/* Make a set and start its task. RON_ERR_NO_MEMORY, RON_ERR_BUSY. The caller owns it. */
enum ron_err rt_timers_new(const struct rt_timers_options *options,
                           struct rt_supervisor *supervisor, struct rt_timers **ret_timers,
                           struct ron_errinfo *reterr) RON_MUST_USE;
/* After its task has ended (stop the supervisor, or close and join it). Pending timers are
 * forgotten. Accepts NULL, returns NULL. */
struct rt_timers *rt_timers_free(struct rt_timers *timers);
/* End its task; nothing fires any more. Idempotent. */
void rt_timers_close(struct rt_timers *timers);
struct rt_task *rt_timers_task(struct rt_timers *timers);

/* Call fn(argument) once the deadline has passed; then, if period_ns > 0, each period_ns after it.
 * Periods that pass while a callback is late are skipped, the phase is kept. RON_ERR_BUSY. */
enum ron_err rt_timer_set(struct rt_timers *timers, struct rt_deadline deadline, uint64_t period_ns,
                          rt_timer_fn *fn, void *argument, struct rt_timer_id *ret_id,
                          struct ron_errinfo *reterr) RON_MUST_USE;
/* Forget a timer. True: its callback will not begin any more. False: it was not pending; it has
 * fired, or is being called right now. */
bool rt_timer_cancel(struct rt_timers *timers, struct rt_timer_id id);
/* Forget a timer and wait until its callback is not running either, so that its argument may be
 * freed. Not from a callback. RON_ERR_TIMEOUT. */
enum ron_err rt_timer_cancel_until(struct rt_timers *timers, struct rt_timer_id id,
                                   struct rt_deadline deadline,
                                   struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* How many are pending. */
uint32_t rt_timers_pending_count(struct rt_timers *timers);

struct rt_timers_stats {
    uint32_t pending_count, timers_max;
    uint64_t fired_count;
    uint64_t late_ns_sum, late_ns_max; /* from deadline to firing, also if it was past when set */
};
void rt_timers_get_stats(struct rt_timers *timers, struct rt_timers_stats *ret_stats);

#endif
