/*
 * lifecycle.c - the state machine of a role and the run of its shutdown steps. See lifecycle.h.
 *
 * The lock orders transitions and their publication: without it two could be published in the
 * wrong order. Steps run without it.
 */
#include "rt/lifecycle.h"

#include "base/assert.h"
#include "base/mem.h"
#include "rt/lock.h"

#define LIFECYCLE_MAGIC 0x11fec7c1u

struct rt_lifecycle {
    struct rt_lock lock;
    uint32_t magic;
    const struct rt_life_role *role;
    void *context;
    struct rt_watch *watch;
    struct rt_life_status status RON_GUARDED_BY(lifecycle);
    bool stopping RON_GUARDED_BY(lifecycle);
    bool frozen RON_GUARDED_BY(lifecycle);
};

_Static_assert(sizeof(struct rt_life_status) <= RT_WATCH_VALUE_SIZE_MAX, "a watch carries it");

enum rt_life_state rt_life_next(enum rt_life_state state, enum rt_life_event event)
{
    switch (state) {
    case RT_LIFE_RUNNING:
        if (event == RT_LIFE_SHUTDOWN)
            return RT_LIFE_DRAINING;
        return event == RT_LIFE_FREEZE ? RT_LIFE_SAFE_MODE : state;
    case RT_LIFE_DRAINING:
        if (event == RT_LIFE_DEADLINE)
            return RT_LIFE_ABORTING;
        if (event == RT_LIFE_FREEZE)
            return RT_LIFE_SAFE_MODE;
        return event == RT_LIFE_DONE ? RT_LIFE_STOPPED : state;
    case RT_LIFE_ABORTING:
    case RT_LIFE_SAFE_MODE: /* it stays frozen while its steps run */
        return event == RT_LIFE_DONE ? RT_LIFE_STOPPED : state;
    case RT_LIFE_STOPPED:
        return state;
    }
    RON_UNREACHABLE();
}

const char *rt_life_name(enum rt_life_state state)
{
    static const char *const names[] = {
        [RT_LIFE_RUNNING] = "Running",   [RT_LIFE_DRAINING] = "Draining",
        [RT_LIFE_ABORTING] = "Aborting", [RT_LIFE_SAFE_MODE] = "SafeMode",
        [RT_LIFE_STOPPED] = "Stopped",
    };

    RON_ASSERT((size_t)state < RON_ARRAY_COUNT(names));
    return names[state];
}

static void lifecycle_lock(struct rt_lifecycle *lifecycle) RON_LOCKS(lifecycle)
{
    RON_ASSERT(lifecycle->magic == LIFECYCLE_MAGIC);
    rt_lock_take(&lifecycle->lock);
}

static void lifecycle_unlock(struct rt_lifecycle *lifecycle) RON_UNLOCKS(lifecycle)
{
    rt_lock_drop(&lifecycle->lock);
}

static void publish(struct rt_lifecycle *lifecycle) RON_NEEDS(lifecycle)
{
    rt_watch_set(lifecycle->watch, &lifecycle->status);
}

/* Apply an event; true if the state changed. */
static bool apply(struct rt_lifecycle *lifecycle, enum rt_life_event event) RON_NEEDS(lifecycle)
{
    enum rt_life_state next = rt_life_next(lifecycle->status.state, event);

    if (next == lifecycle->status.state)
        return false;
    lifecycle->status.state = next;
    publish(lifecycle);
    return true;
}

enum ron_err rt_lifecycle_new(const struct rt_life_role *role, void *context,
                              struct rt_lifecycle **ret_lifecycle, struct ron_errinfo *reterr)
{
    struct rt_lifecycle *lifecycle = ron_mem_alloc(sizeof(*lifecycle));
    const struct rt_watch_options options = {
        .name = "lifecycle", .owner = role->name, .value_size = sizeof(struct rt_life_status)};
    const struct rt_life_status initial = {.state = RT_LIFE_RUNNING};
    enum ron_err err;

    RON_ASSERT(role->steps_count > 0);
    RON_ASSERT(role->steps_count <= RT_LIFE_STEPS_MAX);
    RON_ASSERT(role->abort != NULL);
    if (lifecycle == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "lifecycle of %s", role->name);
    err = rt_watch_new(&options, &initial, &lifecycle->watch, reterr);
    if (err != RON_ERR_OK) {
        ron_mem_free(lifecycle);
        return err;
    }
    lifecycle->role = role;
    lifecycle->context = context;
    rt_lock_init(&lifecycle->lock, role->name, RON_RANK_lifecycle);
    lifecycle->magic = LIFECYCLE_MAGIC;
    *ret_lifecycle = lifecycle;
    return RON_ERR_OK;
}

struct rt_lifecycle *rt_lifecycle_free(struct rt_lifecycle *lifecycle)
{
    if (lifecycle == NULL)
        return NULL;
    lifecycle_lock(lifecycle);
    RON_ASSERT(!lifecycle->stopping || lifecycle->status.state == RT_LIFE_STOPPED);
    lifecycle->magic = ~LIFECYCLE_MAGIC;
    lifecycle_unlock(lifecycle);
    rt_watch_free(lifecycle->watch);
    rt_lock_fini(&lifecycle->lock);
    return ron_mem_free(lifecycle);
}

/* Where vtables are called: the attribute cannot be on the pointer. */
static enum ron_err call(rt_life_step_fn *fn, void *context, struct rt_deadline deadline,
                         struct ron_errinfo *reterr) RON_BLOCKS
{
    rt_assert_no_lock_held();
    return fn(context, deadline, reterr);
}

static void enter_step(struct rt_lifecycle *lifecycle, size_t index)
{
    lifecycle_lock(lifecycle);
    lifecycle->status.step = (uint32_t)index + 1;
    publish(lifecycle);
    lifecycle_unlock(lifecycle);
}

/* Run the steps; false when time ran out. */
static bool run_steps(struct rt_lifecycle *lifecycle, struct rt_life_report *report,
                      struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct rt_life_role *role = lifecycle->role;
    struct rt_deadline total = rt_deadline_after_ms(role->drain_ms);

    for (size_t i = 0; i < role->steps_count; i++) {
        const struct rt_life_step *step = &role->steps[i];
        struct rt_deadline deadline = total;
        uint64_t begin_ns = rt_now_ns();
        enum ron_err err;

        if (step->budget_ms > 0)
            deadline = rt_deadline_min(total, rt_deadline_after_ms(step->budget_ms));
        enter_step(lifecycle, i);
        err = call(step->run, lifecycle->context, deadline, reterr);
        report->steps[i].name = step->name;
        report->steps[i].err = err;
        report->steps[i].took_ns = rt_now_ns() - begin_ns;
        report->steps_count++;
        if (err == RON_ERR_TIMEOUT)
            return false;
    }
    return true;
}

/* Somebody else runs the steps: wait for the end. */
static void await_stopped(struct rt_lifecycle *lifecycle) RON_BLOCKS
{
    struct rt_life_status status;
    uint64_t version = rt_watch_get(lifecycle->watch, &status);

    while (status.state != RT_LIFE_STOPPED)
        RON_MUST_ZERO(
            rt_watch_wait(lifecycle->watch, version, RT_DEADLINE_NEVER, &status, &version, NULL));
}

enum ron_err rt_lifecycle_stop(struct rt_lifecycle *lifecycle, struct rt_life_report *ret_report,
                               struct ron_errinfo *reterr)
{
    const struct rt_life_role *role = lifecycle->role;
    struct rt_life_report report = {0};
    struct ron_errinfo info = {0};
    bool first;

    rt_assert_no_lock_held();
    lifecycle_lock(lifecycle);
    first = !lifecycle->stopping;
    lifecycle->stopping = true;
    if (first)
        (void)apply(lifecycle, RT_LIFE_SHUTDOWN); /* in SafeMode nothing changes yet */
    lifecycle_unlock(lifecycle);
    if (!first) {
        await_stopped(lifecycle);
        return RON_ERR_OK;
    }
    report.aborted = !run_steps(lifecycle, &report, &info);
    if (report.aborted) {
        lifecycle_lock(lifecycle);
        (void)apply(lifecycle, RT_LIFE_DEADLINE);
        lifecycle_unlock(lifecycle);
        (void)call(role->abort, lifecycle->context, rt_deadline_after_ms(role->abort_ms), &info);
    }
    lifecycle_lock(lifecycle);
    report.frozen = lifecycle->frozen;
    (void)apply(lifecycle, RT_LIFE_DONE);
    RON_ASSERT(lifecycle->status.state == RT_LIFE_STOPPED);
    lifecycle_unlock(lifecycle);
    if (ret_report != NULL)
        *ret_report = report;
    if (report.aborted)
        return ron_fail(reterr, RON_ERR_TIMEOUT, "%s: step %s did not end in time", role->name,
                        report.steps[report.steps_count - 1].name);
    return RON_ERR_OK;
}

bool rt_lifecycle_freeze(struct rt_lifecycle *lifecycle)
{
    bool changed;

    RON_ASSERT(lifecycle->role->can_freeze);
    lifecycle_lock(lifecycle);
    changed = apply(lifecycle, RT_LIFE_FREEZE);
    if (changed)
        lifecycle->frozen = true;
    lifecycle_unlock(lifecycle);
    return changed;
}

struct rt_watch *rt_lifecycle_watch(struct rt_lifecycle *lifecycle)
{
    RON_ASSERT(lifecycle->magic == LIFECYCLE_MAGIC);
    return lifecycle->watch;
}

enum rt_life_state rt_lifecycle_state(struct rt_lifecycle *lifecycle)
{
    struct rt_life_status status;

    RON_ASSERT(lifecycle->magic == LIFECYCLE_MAGIC);
    (void)rt_watch_get(lifecycle->watch, &status);
    return status.state;
}

enum ron_err rt_lifecycle_admit(struct rt_lifecycle *lifecycle, struct ron_errinfo *reterr)
{
    enum rt_life_state state = rt_lifecycle_state(lifecycle);

    if (state == RT_LIFE_RUNNING)
        return RON_ERR_OK;
    if (state == RT_LIFE_SAFE_MODE)
        return ron_fail(reterr, RON_ERR_SAFE_MODE, "%s is in SafeMode", lifecycle->role->name);
    return ron_fail(reterr, RON_ERR_DRAINING, "%s is %s", lifecycle->role->name,
                    rt_life_name(state));
}
