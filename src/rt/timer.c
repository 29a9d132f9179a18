/*
 * timer.c - a binary heap of timers and the task that fires them. See timer.h.
 *
 * Entries lie in a fixed array and never move; the heap orders their indexes by (due, number set),
 * so that equal times fire in the order they were set. An entry knows its place in the heap, which
 * makes cancel as cheap as set. An id is the entry's index and its generation.
 */
#include "rt/timer.h"

#include "base/assert.h"
#include "base/mem.h"
#include "rt/lock.h"
#include "rt/registry.h"

#define TIMERS_MAGIC 0x71e3e250u
#define NOT_IN_HEAP  UINT32_MAX

struct entry {
    uint64_t due_ns;
    uint64_t order; /* of setting; breaks ties */
    uint64_t period_ns;
    rt_timer_fn *fn;
    void *argument;
    uint32_t generation; /* rises each time the entry is set or given back */
    uint32_t heap_index; /* NOT_IN_HEAP when free or firing */
    uint32_t next_free;
};

struct rt_timers {
    struct rt_lock lock;
    uint32_t magic;
    struct rt_timers_options options;
    struct rt_task *task;
    struct rt_cond changed_cond; /* the task waits: for the next due time, or a change */
    struct rt_cond fired_cond;   /* cancel_until waits for the end of a callback */
    bool closed RON_GUARDED_BY(timer);
    bool running RON_GUARDED_BY(timer);         /* the task's body */
    uint64_t firing_id RON_GUARDED_BY(timer);   /* whose callback runs; 0 if none */
    bool firing_canceled RON_GUARDED_BY(timer); /* a periodic one, canceled during its callback */
    uint32_t waiting_count RON_GUARDED_BY(timer);
    uint64_t set_count RON_GUARDED_BY(timer);
    struct rt_timers_stats stats RON_GUARDED_BY(timer); /* what fired; the rest is filled in */
    uint32_t pending_count RON_GUARDED_BY(timer);       /* size of the heap */
    uint32_t first_free RON_GUARDED_BY(timer);          /* timers_max when there is none */
    struct entry *entries RON_GUARDED_BY(timer);
    uint32_t *heap RON_GUARDED_BY(timer);
};

static void timer_lock(struct rt_timers *timers) RON_LOCKS(timer)
{
    RON_ASSERT(timers->magic == TIMERS_MAGIC);
    rt_lock_take(&timers->lock);
}

static void timer_unlock(struct rt_timers *timers) RON_UNLOCKS(timer)
{
    rt_lock_drop(&timers->lock);
}

static bool before(const struct entry *a, const struct entry *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

static void place(struct rt_timers *timers, uint32_t heap_index, uint32_t entry_index)
    RON_NEEDS(timer)
{
    timers->heap[heap_index] = entry_index;
    timers->entries[entry_index].heap_index = heap_index;
}

static void sift_up(struct rt_timers *timers, uint32_t i) RON_NEEDS(timer)
{
    uint32_t moving = timers->heap[i];

    while (i > 0) {
        uint32_t parent = (i - 1) / 2;
        if (!before(&timers->entries[moving], &timers->entries[timers->heap[parent]]))
            break;
        place(timers, i, timers->heap[parent]);
        i = parent;
    }
    place(timers, i, moving);
}

static void sift_down(struct rt_timers *timers, uint32_t i) RON_NEEDS(timer)
{
    uint32_t moving = timers->heap[i];

    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= timers->pending_count)
            break;
        if (child + 1 < timers->pending_count && before(&timers->entries[timers->heap[child + 1]],
                                                        &timers->entries[timers->heap[child]]))
            child++;
        if (!before(&timers->entries[timers->heap[child]], &timers->entries[moving]))
            break;
        place(timers, i, timers->heap[child]);
        i = child;
    }
    place(timers, i, moving);
}

static void heap_insert(struct rt_timers *timers, uint32_t entry_index) RON_NEEDS(timer)
{
    RON_ASSERT(timers->pending_count < timers->options.timers_max);
    timers->heap[timers->pending_count] = entry_index;
    timers->pending_count++;
    sift_up(timers, timers->pending_count - 1);
}

static void heap_remove(struct rt_timers *timers, uint32_t entry_index) RON_NEEDS(timer)
{
    uint32_t hole = timers->entries[entry_index].heap_index;

    RON_ASSERT(hole < timers->pending_count);
    RON_ASSERT(timers->heap[hole] == entry_index);
    timers->pending_count--;
    timers->entries[entry_index].heap_index = NOT_IN_HEAP;
    if (hole == timers->pending_count)
        return;
    timers->heap[hole] = timers->heap[timers->pending_count];
    sift_down(timers, hole);
    sift_up(timers, timers->entries[timers->heap[hole]].heap_index);
}

static uint64_t id_of(const struct rt_timers *timers, uint32_t entry_index) RON_NEEDS(timer)
{
    return (uint64_t)timers->entries[entry_index].generation << 32 | entry_index;
}

static void give_back(struct rt_timers *timers, uint32_t entry_index) RON_NEEDS(timer)
{
    struct entry *entry = &timers->entries[entry_index];

    RON_ASSERT(entry->heap_index == NOT_IN_HEAP);
    entry->generation++;
    entry->next_free = timers->first_free;
    timers->first_free = entry_index;
}

enum ron_err rt_timer_set(struct rt_timers *timers, struct rt_deadline deadline, uint64_t period_ns,
                          rt_timer_fn *fn, void *argument, struct rt_timer_id *ret_id,
                          struct ron_errinfo *reterr)
{
    uint32_t index;
    uint64_t id = 0;
    bool closed;

    RON_ASSERT(fn != NULL);
    RON_ASSERT(period_ns <= UINT64_MAX / 4); /* sums of it do not overflow */
    timer_lock(timers);
    index = timers->first_free;
    closed = timers->closed;
    if (!closed && index < timers->options.timers_max) {
        struct entry *entry = &timers->entries[index];

        timers->first_free = entry->next_free;
        *entry = (struct entry){
            .due_ns = deadline.at_ns,
            .order = timers->set_count++,
            .period_ns = period_ns,
            .fn = fn,
            .argument = argument,
            .generation = entry->generation | 1, /* never 0: no id is 0 */
        };
        heap_insert(timers, index);
        id = id_of(timers, index);
        if (timers->heap[0] == index)
            rt_cond_signal(&timers->changed_cond);
    }
    timer_unlock(timers);
    if (id == 0)
        return ron_fail(reterr, closed ? RON_ERR_CANCELED : RON_ERR_BUSY, "timers %s: %s",
                        timers->options.name, closed ? "closed" : "all are set");
    ret_id->value = id;
    return RON_ERR_OK;
}

/* True when it was pending and is no more. */
static bool cancel_locked(struct rt_timers *timers, uint64_t id) RON_NEEDS(timer)
{
    uint32_t index = (uint32_t)id;

    if (id != 0 && id == timers->firing_id)
        timers->firing_canceled = true; /* no further period */
    if (id == 0 || index >= timers->options.timers_max || id_of(timers, index) != id ||
        timers->entries[index].heap_index == NOT_IN_HEAP)
        return false;
    heap_remove(timers, index);
    give_back(timers, index);
    return true;
}

bool rt_timer_cancel(struct rt_timers *timers, struct rt_timer_id id)
{
    bool canceled;

    timer_lock(timers);
    canceled = cancel_locked(timers, id.value);
    timer_unlock(timers);
    return canceled;
}

enum ron_err rt_timer_cancel_until(struct rt_timers *timers, struct rt_timer_id id,
                                   struct rt_deadline deadline, struct ron_errinfo *reterr)
{
    bool woken = true, firing;

    rt_assert_no_lock_held();
    RON_ASSERT(rt_task_self() != timers->task); /* it would wait for itself */
    timer_lock(timers);
    (void)cancel_locked(timers, id.value);
    while (timers->firing_id == id.value && id.value != 0 && woken) {
        timers->waiting_count++;
        woken = rt_cond_wait(&timers->fired_cond, &timers->lock, deadline.at_ns);
        timers->waiting_count--;
    }
    firing = timers->firing_id == id.value && id.value != 0;
    timer_unlock(timers);
    if (firing)
        return ron_fail(reterr, RON_ERR_TIMEOUT, "timers %s: a callback did not end in time",
                        timers->options.name);
    return RON_ERR_OK;
}

/* Put a periodic timer back for the next moment of its phase that is still to come. */
static void rearm(struct rt_timers *timers, uint32_t index, uint64_t now_ns) RON_NEEDS(timer)
{
    struct entry *entry = &timers->entries[index];
    uint64_t missed = now_ns > entry->due_ns ? (now_ns - entry->due_ns) / entry->period_ns : 0;

    if (__builtin_add_overflow(entry->due_ns, (missed + 1) * entry->period_ns, &entry->due_ns))
        entry->due_ns = SH_NEVER;
    entry->order = timers->set_count++;
    heap_insert(timers, index);
}

/* After a callback: the next period, or a free entry; whoever waits for the end is woken. */
static void end_firing(struct rt_timers *timers) RON_NEEDS(timer)
{
    uint32_t index = (uint32_t)timers->firing_id;

    RON_ASSERT(timers->firing_id != 0);
    if (timers->entries[index].period_ns > 0 && !timers->firing_canceled && !timers->closed)
        rearm(timers, index, rt_now_ns());
    else
        give_back(timers, index);
    timers->firing_id = 0;
    timers->firing_canceled = false;
    if (timers->waiting_count > 0)
        rt_cond_broadcast(&timers->fired_cond);
}

static void count_fired(struct rt_timers *timers, uint64_t late_ns) RON_NEEDS(timer)
{
    timers->stats.fired_count++;
    timers->stats.late_ns_sum += late_ns;
    if (late_ns > timers->stats.late_ns_max)
        timers->stats.late_ns_max = late_ns;
}

/* Wait for the next timer to be due and take it out; false when closed. */
static bool next_due(struct rt_timers *timers, struct entry *ret_entry, uint64_t *ret_id) RON_BLOCKS
{
    uint32_t index;
    uint64_t now_ns = 0;

    timer_lock(timers);
    if (timers->firing_id != 0)
        end_firing(timers);
    while (!timers->closed) {
        uint64_t due_ns = SH_NEVER;

        if (timers->pending_count > 0)
            due_ns = timers->entries[timers->heap[0]].due_ns;
        now_ns = rt_now_ns();
        if (due_ns != SH_NEVER && now_ns >= due_ns)
            break;
        (void)rt_cond_wait(&timers->changed_cond, &timers->lock, due_ns);
    }
    if (timers->closed) {
        timer_unlock(timers);
        return false;
    }
    index = timers->heap[0];
    heap_remove(timers, index);
    count_fired(timers, now_ns - timers->entries[index].due_ns);
    timers->firing_id = id_of(timers, index);
    *ret_id = timers->firing_id;
    *ret_entry = timers->entries[index];
    timer_unlock(timers);
    return true;
}

/* The body's end, also by a panic of a callback. */
static void leave(void *argument)
{
    struct rt_timers *timers = argument;

    timer_lock(timers);
    if (timers->firing_id != 0)
        end_firing(timers);
    timers->running = false;
    timer_unlock(timers);
}

static enum ron_err timers_main(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct rt_timers *timers = argument;
    struct rt_cleanup cleanup;
    struct entry entry;
    uint64_t id = 0;

    (void)task;
    timer_lock(timers);
    timers->running = true;
    timer_unlock(timers);
    rt_cleanup_push(&cleanup, leave, timers);
    while (next_due(timers, &entry, &id))
        entry.fn(entry.argument, (struct rt_timer_id){id});
    rt_cleanup_pop(&cleanup, true);
    return RON_ERR_OK;
}

void rt_timers_close(struct rt_timers *timers)
{
    timer_lock(timers);
    timers->closed = true;
    rt_cond_signal(&timers->changed_cond);
    timer_unlock(timers);
}

static void wake(void *argument)
{
    rt_timers_close(argument);
}

static enum ron_err timers_start(struct rt_timers *timers, struct rt_supervisor *supervisor,
                                 struct ron_errinfo *reterr)
{
    const struct rt_registry_entry entry = {
        .object = timers,
        .kind = RT_KIND_TIMER,
        .name = timers->options.name,
        .policy = "full rejects",
        .owner = timers->options.owner,
        .capacity = timers->options.timers_max,
    };
    const struct rt_task_options task = {
        .kind = "timer",
        .name = timers->options.name,
        .owner = timers->options.owner,
        .fn = timers_main,
        .wake = wake,
        .argument = timers,
    };
    enum ron_err err = rt_registry_add(&entry, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = rt_task_spawn(supervisor, &task, &timers->task, reterr);
    if (err != RON_ERR_OK)
        rt_registry_remove(timers);
    return err;
}

static void timers_fini(struct rt_timers *timers)
{
    rt_cond_fini(&timers->fired_cond);
    rt_cond_fini(&timers->changed_cond);
    rt_lock_fini(&timers->lock);
}

enum ron_err rt_timers_new(const struct rt_timers_options *options,
                           struct rt_supervisor *supervisor, struct rt_timers **ret_timers,
                           struct ron_errinfo *reterr)
{
    struct rt_timers *timers = ron_mem_alloc(sizeof(*timers));
    struct entry *entries = ron_mem_alloc_array(options->timers_max, sizeof(*entries));
    uint32_t *heap = ron_mem_alloc_array(options->timers_max, sizeof(*heap));
    enum ron_err err;

    RON_ASSERT(options->timers_max > 0);
    RON_ASSERT(options->timers_max <= RT_TIMERS_MAX);
    if (timers == NULL || entries == NULL || heap == NULL) {
        err = ron_fail(reterr, RON_ERR_NO_MEMORY, "timers %s: %u of them", options->name,
                       options->timers_max);
    } else {
        rt_lock_init(&timers->lock, options->name, RON_RANK_timer);
        rt_cond_init(&timers->changed_cond, options->name);
        rt_cond_init(&timers->fired_cond, options->name);
        timers->magic = TIMERS_MAGIC;
        timers->options = *options;
        timer_lock(timers);
        for (uint32_t i = 0; i < options->timers_max; i++)
            entries[i] = (struct entry){.heap_index = NOT_IN_HEAP, .next_free = i + 1};
        timers->entries = entries;
        timers->heap = heap;
        timers->running = true;
        timer_unlock(timers);
        err = timers_start(timers, supervisor, reterr);
        if (err != RON_ERR_OK)
            timers_fini(timers);
    }
    if (err != RON_ERR_OK) {
        ron_mem_free(heap);
        ron_mem_free(entries);
        ron_mem_free(timers);
        return err;
    }
    *ret_timers = timers;
    return RON_ERR_OK;
}

struct rt_timers *rt_timers_free(struct rt_timers *timers)
{
    struct entry *entries;
    uint32_t *heap;

    if (timers == NULL)
        return NULL;
    RON_ASSERT(timers->magic == TIMERS_MAGIC);
    rt_registry_remove(timers); /* first: nobody looks at it any more */
    timer_lock(timers);
    RON_ASSERT(!timers->running);
    RON_ASSERT(timers->waiting_count == 0);
    entries = RON_TAKE(timers->entries);
    heap = RON_TAKE(timers->heap);
    timers->magic = ~TIMERS_MAGIC;
    timer_unlock(timers);
    timers_fini(timers);
    ron_mem_free(heap);
    ron_mem_free(entries);
    return ron_mem_free(timers);
}

struct rt_task *rt_timers_task(struct rt_timers *timers)
{
    RON_ASSERT(timers->magic == TIMERS_MAGIC);
    return timers->task;
}

uint32_t rt_timers_pending_count(struct rt_timers *timers)
{
    uint32_t pending_count;

    timer_lock(timers);
    pending_count = timers->pending_count;
    timer_unlock(timers);
    return pending_count;
}

void rt_timers_get_stats(struct rt_timers *timers, struct rt_timers_stats *ret_stats)
{
    timer_lock(timers);
    *ret_stats = timers->stats;
    ret_stats->pending_count = timers->pending_count;
    ret_stats->timers_max = timers->options.timers_max;
    timer_unlock(timers);
}
