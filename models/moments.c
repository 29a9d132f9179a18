/*
 * moments.c - rt_timers, rt_breaker and deadlines against the clock of the simulator.
 */
#include "base/mem.h"
#include "models/support.h"
#include "rt/atomic.h"
#include "rt/breaker.h"
#include "rt/queue.h"
#include "rt/registry.h"
#include "rt/supervisor.h"
#include "rt/timer.h"

/* ---- timers: never early, and once canceled never again ---- */

struct alarm {
    uint64_t due_ns;
    struct rt_atomic_u64 fired_count, running;
};

struct clockwork {
    struct rt_timers *timers;
    struct rt_timer_id ids[2];
    struct alarm *alarms[2];
};

static void ring(void *argument, struct rt_timer_id id)
{
    struct alarm *alarm = argument;

    RON_ASSERT(id.value != 0);
    RON_ASSERT(rt_now_ns() >= alarm->due_ns);
    rt_counter_add(&alarm->running, 1);
    sim_point("ring");
    rt_counter_add(&alarm->fired_count, 1);
    rt_counter_store(&alarm->running, 0);
}

static struct alarm *set_alarm(struct clockwork *works, unsigned i, uint64_t after_ms,
                               uint64_t period_ms)
{
    struct alarm *alarm = model_alloc(sizeof(*alarm));
    struct rt_deadline deadline = rt_deadline_after_ms(after_ms);

    alarm->due_ns = deadline.at_ns;
    works->alarms[i] = alarm;
    model_must(rt_timer_set(works->timers, deadline, period_ms * RT_NS_PER_MS, ring, alarm,
                            &works->ids[i], NULL));
    return alarm;
}

/* Sets one that is due before the other, and takes it back. */
static void rival_fn(void *argument) RON_BLOCKS
{
    struct clockwork *works = argument;
    const struct alarm *alarm = set_alarm(works, 1, 5, 0);
    bool canceled = rt_timer_cancel(works->timers, works->ids[1]);

    if (canceled) {
        RON_ASSERT(rt_counter_load(&alarm->fired_count) == 0);
    } else {
        /* Being called, or called: wait for the end. */
        model_must(rt_timer_cancel_until(works->timers, works->ids[1], RT_DEADLINE_NEVER, NULL));
        RON_ASSERT(rt_counter_load(&alarm->fired_count) == 1);
    }
    ron_mem_free(works->alarms[1]); /* a later call would ring in freed memory */
}

static void timer_race_fn(void *argument) RON_BLOCKS
{
    const struct rt_supervisor_options supervisor_options = {
        .name = "supervisor", .owner = "model", .tasks_max = 1};
    const struct rt_timers_options options = {.name = "timers", .owner = "model", .timers_max = 2};
    struct clockwork *works = model_alloc(sizeof(*works));
    struct rt_supervisor *supervisor = NULL;
    const struct alarm *alarm;
    struct sh_thread *rival;
    uint64_t fired_count;

    (void)argument;
    rt_init();
    model_must(rt_supervisor_new(&supervisor_options, &supervisor, NULL));
    model_must(rt_timers_new(&options, supervisor, &works->timers, NULL));
    alarm = set_alarm(works, 0, 10, 10);
    rival = model_spawn("rival", rival_fn, works);
    sh_sleep_until(alarm->due_ns + 5 * RT_NS_PER_MS * sim_choose(2, "sleep longer"));
    model_must(rt_timer_cancel_until(works->timers, works->ids[0], RT_DEADLINE_NEVER, NULL));
    RON_ASSERT(rt_counter_load(&alarm->running) == 0);
    fired_count = rt_counter_load(&alarm->fired_count);
    sh_sleep_until(rt_now_ns() + 30 * RT_NS_PER_MS);
    RON_ASSERT(rt_counter_load(&alarm->fired_count) == fired_count);
    model_join(rival);
    RON_ASSERT(rt_timers_pending_count(works->timers) == 0);
    sim_outcome(fired_count);
    model_must(rt_supervisor_stop(supervisor, RT_DEADLINE_NEVER, NULL));
    rt_timers_free(works->timers);
    rt_supervisor_free(supervisor);
    ron_mem_free(works->alarms[0]);
    ron_mem_free(works);
}

static const struct model_case timer_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1, .early_ticks = 2, .spurious = 1},
     .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1, .early_ticks = 2},
     .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = NONE}, .cache = true},
    {.config = {.preemption_bound = NONE, .early_ticks = 2}, .cache = true},
    {.config = {.preemption_bound = NONE, .spurious = 1}, .cache = true},
    {.config = {.preemption_bound = 2, .late_ticks = 1}, .cache = true},
    {.config = {.preemption_bound = 2}},
    {.config = {.preemption_bound = 1}, .compare = true},
    {.config = {.preemption_bound = 2, .fine = 1, .early_ticks = 1}, .cache = true},
};
MODEL(timer_race, "two timers, one periodic; cancel races with firing", timer_race_fn, NULL,
      timer_cases);

/* ---- breaker: an oracle from the words of breaker.h, two callers, every answer ---- */

#define OPEN_NS   (5 * RT_NS_PER_S)
#define WINDOW_NS (10 * RT_NS_PER_S)

enum { FAILURES_MAX = 2, CALLS_EACH = 3 };

struct upstream {
    struct sh_mutex mutex; /* the breaker's callers serialise themselves */
    uint64_t start_ns;
    struct rt_breaker breaker;
    uint32_t probes_count;
    enum rt_breaker_state state; /* as it should be */
    unsigned changes_count;      /* of state */
    unsigned probes_out, probes_done;
    unsigned failures_count;
    uint64_t failed_ns[FAILURES_MAX]; /* the latest, the oldest first */
    uint64_t opened_ns;
};

static void change(struct upstream *upstream, enum rt_breaker_state state, uint64_t now_ns)
{
    upstream->state = state;
    upstream->changes_count++;
    upstream->probes_out = 0;
    upstream->probes_done = 0;
    upstream->failures_count = 0;
    if (state == RT_BREAKER_OPEN)
        upstream->opened_ns = now_ns;
}

/* Whether a call must be permitted now. */
static bool ask_oracle(struct upstream *upstream, uint64_t now_ns)
{
    if (upstream->state == RT_BREAKER_OPEN && now_ns - upstream->opened_ns >= OPEN_NS)
        change(upstream, RT_BREAKER_HALF_OPEN, now_ns);
    if (upstream->state != RT_BREAKER_HALF_OPEN)
        return upstream->state == RT_BREAKER_CLOSED;
    if (upstream->probes_out + upstream->probes_done == upstream->probes_count)
        return false;
    upstream->probes_out++;
    return true;
}

/* The answer to a call that was permitted before changes_count changes. */
static void tell_oracle(struct upstream *upstream, unsigned changes_count, bool good,
                        uint64_t now_ns)
{
    if (changes_count != upstream->changes_count)
        return; /* too late to mean anything */
    if (upstream->state == RT_BREAKER_HALF_OPEN) {
        upstream->probes_out--;
        upstream->probes_done++;
        if (!good)
            change(upstream, RT_BREAKER_OPEN, now_ns);
        else if (upstream->probes_done == upstream->probes_count)
            change(upstream, RT_BREAKER_CLOSED, now_ns);
    } else if (!good) {
        upstream->failures_count++;
        upstream->failed_ns[0] = upstream->failed_ns[1];
        upstream->failed_ns[1] = now_ns;
        if (upstream->failures_count >= FAILURES_MAX && now_ns - upstream->failed_ns[0] < WINDOW_NS)
            change(upstream, RT_BREAKER_OPEN, now_ns);
    }
}

static void call(struct upstream *upstream)
{
    struct rt_breaker_ticket ticket = {0};
    uint64_t now_ns;
    unsigned changes_count;
    bool permitted, good;

    sh_mutex_lock(&upstream->mutex);
    now_ns = rt_now_ns();
    permitted = rt_breaker_allow(&upstream->breaker, now_ns, &ticket);
    RON_ASSERT(permitted == ask_oracle(upstream, now_ns));
    changes_count = upstream->changes_count;
    sh_mutex_unlock(&upstream->mutex);
    if (!permitted)
        return;
    sim_point("the call");
    good = sim_choose(2, "good answer") == 1;
    sh_mutex_lock(&upstream->mutex);
    now_ns = rt_now_ns();
    if (good)
        rt_breaker_succeed(&upstream->breaker, ticket);
    else
        rt_breaker_fail(&upstream->breaker, ticket, now_ns);
    tell_oracle(upstream, changes_count, good, now_ns);
    RON_ASSERT(rt_breaker_state(&upstream->breaker, upstream->opened_ns) == upstream->state);
    sh_mutex_unlock(&upstream->mutex);
}

static void caller_fn(void *argument)
{
    struct upstream *upstream = argument;

    /* One before it opens, one when it may be tried again, one when a second try is due. */
    for (unsigned i = 0; i < CALLS_EACH; i++) {
        sh_sleep_until(upstream->start_ns + i * OPEN_NS);
        call(upstream);
    }
}

static void breaker_fn(void *argument)
{
    struct upstream *upstream = model_alloc(sizeof(*upstream));
    const struct rt_breaker_policy policy = {.failures_max = FAILURES_MAX,
                                             .probes_count = *(const uint32_t *)argument,
                                             .window_ns = WINDOW_NS,
                                             .open_ns = OPEN_NS};
    struct sh_thread *callers[2];

    rt_init();
    upstream->start_ns = rt_now_ns();
    upstream->probes_count = policy.probes_count;
    sh_mutex_init(&upstream->mutex, "breaker");
    rt_breaker_init(&upstream->breaker, &policy);
    callers[0] = model_spawn("caller 1", caller_fn, upstream);
    callers[1] = model_spawn("caller 2", caller_fn, upstream);
    model_join(callers[0]);
    model_join(callers[1]);
    sim_outcome(upstream->state << 8 | upstream->changes_count);
    sh_mutex_fini(&upstream->mutex);
    ron_mem_free(upstream);
}

static const uint32_t one_probe = 1;
static const uint32_t two_probes = 2;

static const struct model_case breaker_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1, .early_ticks = 2},
     .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE}, .cache = true},
    {.config = {.preemption_bound = NONE, .early_ticks = 2}, .cache = true},
    {.config = {.preemption_bound = 2}},
    {.config = {.preemption_bound = 1}, .compare = true},
    {.config = {.preemption_bound = 2, .fine = 1}, .cache = true},
};
MODEL(breaker, "two callers, every answer: opens, is probed once after its time, closes or opens",
      breaker_fn, MODEL_CONST(one_probe), breaker_cases);
MODEL(breaker_probes, "the same with two probes, which may be out together", breaker_fn,
      MODEL_CONST(two_probes), breaker_cases);

/* ---- deadline: made once, carried through two queues, never stretched ---- */

struct request {
    struct rt_deadline deadline;
};

struct route {
    struct rt_queue *there;
    struct rt_queue *back;
};

/* Takes its time over each request, and answers if there is time left. */
static void worker_fn(void *argument) RON_BLOCKS
{
    struct route *route = argument;
    void *pointer = NULL;

    while (rt_queue_recv(route->there, RT_DEADLINE_NEVER, &pointer, NULL) == RON_ERR_OK) {
        struct request *request = pointer;
        const struct rt_queue_item item = {request, 1};
        enum ron_err err;

        sh_sleep_until(rt_now_ns() + 8 * RT_NS_PER_MS);
        err = rt_queue_send_until(route->back, item, request->deadline, NULL);
        RON_ASSERT(err != RON_ERR_TIMEOUT || rt_now_ns() >= request->deadline.at_ns);
    }
}

/* With a deadline in the past nothing is touched, whatever the queue could do. */
static void check_past(struct rt_queue *queue, struct request *request) RON_BLOCKS
{
    struct rt_deadline past = {rt_now_ns()};
    struct rt_queue_stats before, after;
    void *pointers[2];
    size_t count = 0;
    enum ron_err err;

    rt_queue_get_stats(queue, &before);
    err = rt_queue_send_until(queue, (struct rt_queue_item){request, 1}, past, NULL);
    RON_ASSERT(err == RON_ERR_TIMEOUT);
    err = rt_queue_recv_many(queue, pointers, 2, RT_NS_PER_MS, past, &count, NULL);
    RON_ASSERT(err == RON_ERR_TIMEOUT);
    rt_queue_get_stats(queue, &after);
    RON_ASSERT(before.sent_count == after.sent_count && before.depth == after.depth);
    RON_ASSERT(before.received_count == after.received_count && count == 0);
    RON_ASSERT(rt_now_ns() == past.at_ns);
}

static void deadline_fn(void *argument) RON_BLOCKS
{
    const struct rt_queue_options options = {
        .name = "there", .owner = "model", .policy = "wait", .capacity = 1};
    const struct rt_queue_options back_options = {
        .name = "back", .owner = "model", .policy = "wait", .capacity = 2};
    struct route *route = model_alloc(sizeof(*route));
    struct request *requests = model_alloc(2 * sizeof(*requests));
    struct rt_deadline deadline = rt_deadline_after_ms(10);
    void *answers[3];
    size_t count = 0, left_count;
    struct sh_thread *worker;
    enum ron_err err;

    (void)argument;
    rt_init();
    model_must(rt_queue_new(&options, &route->there, NULL));
    model_must(rt_queue_new(&back_options, &route->back, NULL));
    requests[0].deadline = requests[1].deadline = deadline;
    check_past(route->there, &requests[0]);
    worker = model_spawn("worker", worker_fn, route);
    for (int i = 0; i < 2; i++) {
        err = rt_queue_send_until(route->there, (struct rt_queue_item){&requests[i], 1}, deadline,
                                  NULL);
        RON_ASSERT(err == RON_ERR_OK || rt_now_ns() >= deadline.at_ns);
    }
    /* One of the two can be answered in time; lingering for the other ends with the deadline. */
    err = rt_queue_recv_many(route->back, answers, 3, 50 * RT_NS_PER_MS, deadline, &count, NULL);
    RON_ASSERT(rt_now_ns() == deadline.at_ns); /* not early, not late */
    RON_ASSERT(err == RON_ERR_OK && count == 1);
    RON_ASSERT(answers[0] == &requests[0]);
    rt_queue_close(route->there);
    model_join(worker);
    left_count = rt_queue_try_recv_many(route->back, answers, 3);
    RON_ASSERT(left_count == 0); /* the worker did not answer after the deadline */
    rt_queue_free(route->there);
    rt_queue_free(route->back);
    ron_mem_free(requests);
    ron_mem_free(route);
}

static const struct model_case deadline_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE}},
    {.config = {.preemption_bound = NONE}, .compare = true},
    {.config = {.preemption_bound = NONE, .spurious = 2}},
    {.config = {.preemption_bound = NONE, .fine = 1}, .cache = true},
};
MODEL(deadline, "a request's deadline through two queues and a slow worker", deadline_fn, NULL,
      deadline_cases);
