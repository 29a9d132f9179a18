/*
 * lifecycle.c - the state machine of a role and the run of its shutdown steps. See lifecycle.h.
 *
 * The lock orders transitions and their publication: without it two could be published in the
 * wrong order. Steps run without it. A stop has begun once RT_CAUSE_DRAINING is raised.
 */
#include "rt/lifecycle.h"

#include "base/assert.h"
#include "base/mem.h"
#include "rt/lock.h"
#include "rt/supervisor.h"

#define LIFECYCLE_MAGIC 0x11fec7c1u

struct rt_lifecycle {
    struct rt_lock lock;
    uint32_t magic;
    const struct rt_life_role *role;
    void *context;
    struct rt_watch *watch;
    struct rt_life_status status RON_GUARDED_BY(lifecycle);
};

_Static_assert(sizeof(struct rt_life_status) <= RT_WATCH_VALUE_SIZE_MAX, "a watch carries it");

enum rt_life_state rt_life_next(enum rt_life_state state, enum rt_life_event event)
{
    switch (state) {
    case RT_LIFE_RUNNING:
        if (event == RT_LIFE_SHUTDOWN)
            return RT_LIFE_DRAINING;
        return event == RT_LIFE_FAULT ? RT_LIFE_SAFE_MODE : state;
    case RT_LIFE_DRAINING:
        if (event == RT_LIFE_DEADLINE)
            return RT_LIFE_ABORTING;
        if (event == RT_LIFE_FAULT)
            return RT_LIFE_SAFE_MODE;
        return event == RT_LIFE_DONE ? RT_LIFE_STOPPED : state;
    case RT_LIFE_SAFE_MODE: /* a shutdown changes nothing yet: the steps shall know */
        if (event == RT_LIFE_RECOVER)
            return RT_LIFE_RUNNING;
        return event == RT_LIFE_DONE ? RT_LIFE_STOPPED : state;
    case RT_LIFE_ABORTING:
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

static void apply(struct rt_lifecycle *lifecycle, enum rt_life_event event) RON_NEEDS(lifecycle)
{
    lifecycle->status.state = rt_life_next(lifecycle->status.state, event);
}

static bool is_raised(const struct rt_lifecycle *lifecycle, unsigned cause) RON_NEEDS(lifecycle)
{
    return (lifecycle->status.raised & RT_CAUSE_BIT(cause)) != 0;
}

enum ron_err rt_lifecycle_new(const struct rt_life_role *role, uint32_t raised, void *context,
                              struct rt_lifecycle **ret_lifecycle, struct ron_errinfo *reterr)
{
    struct rt_lifecycle *lifecycle = ron_mem_alloc(sizeof(*lifecycle));
    const struct rt_watch_options options = {
        .name = "lifecycle", .owner = role->name, .value_size = sizeof(struct rt_life_status)};
    const bool safe_mode = (raised & RT_CAUSES_SAFE_MODE) != 0;
    const struct rt_life_status initial = {.state = safe_mode ? RT_LIFE_SAFE_MODE : RT_LIFE_RUNNING,
                                           .raised = raised};
    enum ron_err err;

    RON_ASSERT(role->steps_count > 0);
    RON_ASSERT(role->steps_count <= RT_LIFE_STEPS_MAX);
    RON_ASSERT(role->abort != NULL);
    RON_ASSERT(role->has_safe_mode || !safe_mode);
    RON_ASSERT((raised & RT_CAUSE_BIT(RT_CAUSE_DRAINING)) == 0);
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
    lifecycle_lock(lifecycle);
    lifecycle->status = initial;
    lifecycle_unlock(lifecycle);
    *ret_lifecycle = lifecycle;
    return RON_ERR_OK;
}

struct rt_lifecycle *rt_lifecycle_free(struct rt_lifecycle *lifecycle)
{
    if (lifecycle == NULL)
        return NULL;
    lifecycle_lock(lifecycle);
    RON_ASSERT(!is_raised(lifecycle, RT_CAUSE_DRAINING) ||
               lifecycle->status.state == RT_LIFE_STOPPED);
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
    first = !is_raised(lifecycle, RT_CAUSE_DRAINING);
    if (first) {
        lifecycle->status.raised |= RT_CAUSE_BIT(RT_CAUSE_DRAINING);
        apply(lifecycle, RT_LIFE_SHUTDOWN);
        publish(lifecycle);
    }
    lifecycle_unlock(lifecycle);
    if (!first) {
        await_stopped(lifecycle);
        return RON_ERR_OK;
    }
    report.aborted = !run_steps(lifecycle, &report, &info);
    if (report.aborted) {
        lifecycle_lock(lifecycle);
        apply(lifecycle, RT_LIFE_DEADLINE);
        publish(lifecycle);
        lifecycle_unlock(lifecycle);
        (void)call(role->abort, lifecycle->context, rt_deadline_after_ms(role->abort_ms), &info);
    }
    lifecycle_lock(lifecycle);
    report.raised = lifecycle->status.raised;
    apply(lifecycle, RT_LIFE_DONE);
    RON_ASSERT(lifecycle->status.state == RT_LIFE_STOPPED);
    publish(lifecycle);
    lifecycle_unlock(lifecycle);
    if (ret_report != NULL)
        *ret_report = report;
    if (report.aborted)
        return ron_fail(reterr, RON_ERR_TIMEOUT, "%s: step %s did not end in time", role->name,
                        report.steps[report.steps_count - 1].name);
    return RON_ERR_OK;
}

/* The causes after a change; SafeMode follows them. */
static void set_raised(struct rt_lifecycle *lifecycle, uint32_t raised) RON_NEEDS(lifecycle)
{
    struct rt_life_status *status = &lifecycle->status;
    bool was_safe = (status->raised & RT_CAUSES_SAFE_MODE) != 0;
    bool is_safe = (raised & RT_CAUSES_SAFE_MODE) != 0;

    status->raised = raised;
    if (is_safe)
        apply(lifecycle, RT_LIFE_FAULT);
    else if (was_safe && !is_raised(lifecycle, RT_CAUSE_DRAINING))
        apply(lifecycle, RT_LIFE_RECOVER);
    publish(lifecycle);
}

static void check_cause(const struct rt_lifecycle *lifecycle, unsigned cause)
{
    const struct rt_life_role *role = lifecycle->role;

    RON_ASSERT(cause != RT_CAUSE_DRAINING); /* the stop's */
    RON_ASSERT(cause < rt_causes_count(&role->causes));
    RON_ASSERT(role->has_safe_mode || (RT_CAUSE_BIT(cause) & RT_CAUSES_SAFE_MODE) == 0);
}

bool rt_lifecycle_raise(struct rt_lifecycle *lifecycle, unsigned cause)
{
    bool changed;

    check_cause(lifecycle, cause);
    lifecycle_lock(lifecycle);
    changed = !is_raised(lifecycle, cause);
    if (changed)
        set_raised(lifecycle, lifecycle->status.raised | RT_CAUSE_BIT(cause));
    lifecycle_unlock(lifecycle);
    return changed;
}

bool rt_lifecycle_clear(struct rt_lifecycle *lifecycle, unsigned cause)
{
    bool changed;

    check_cause(lifecycle, cause);
    lifecycle_lock(lifecycle);
    changed = is_raised(lifecycle, cause);
    if (changed)
        set_raised(lifecycle, lifecycle->status.raised & ~RT_CAUSE_BIT(cause));
    lifecycle_unlock(lifecycle);
    return changed;
}

void rt_lifecycle_check_tasks(struct rt_lifecycle *lifecycle, struct rt_supervisor *supervisor)
{
    uint32_t raised;

    lifecycle_lock(lifecycle);
    raised = lifecycle->status.raised & ~RT_CAUSE_BIT(RT_CAUSE_RESTART_STORM);
    if (rt_supervisor_down_count(supervisor) > 0)
        raised |= RT_CAUSE_BIT(RT_CAUSE_RESTART_STORM);
    if (raised != lifecycle->status.raised)
        set_raised(lifecycle, raised);
    lifecycle_unlock(lifecycle);
}

struct rt_watch *rt_lifecycle_watch(struct rt_lifecycle *lifecycle)
{
    RON_ASSERT(lifecycle->magic == LIFECYCLE_MAGIC);
    return lifecycle->watch;
}

const struct rt_life_role *rt_lifecycle_role(const struct rt_lifecycle *lifecycle)
{
    RON_ASSERT(lifecycle->magic == LIFECYCLE_MAGIC);
    return lifecycle->role;
}

struct rt_life_status rt_lifecycle_status(struct rt_lifecycle *lifecycle)
{
    struct rt_life_status status;

    (void)rt_watch_get(rt_lifecycle_watch(lifecycle), &status);
    return status;
}

unsigned rt_lifecycle_ready(struct rt_lifecycle *lifecycle)
{
    return rt_ready_planes(&lifecycle->role->causes, rt_lifecycle_status(lifecycle).raised);
}

enum ron_err rt_lifecycle_admit(struct rt_lifecycle *lifecycle, unsigned plane,
                                struct ron_errinfo *reterr)
{
    const struct rt_life_status status = rt_lifecycle_status(lifecycle);
    const struct rt_cause *cause = rt_ready_refusal(&lifecycle->role->causes, status.raised, plane);

    if (cause == NULL)
        return RON_ERR_OK;
    return ron_fail(reterr, cause->err, "%s is %s: %s", lifecycle->role->name,
                    rt_life_name(status.state), cause->name);
}
