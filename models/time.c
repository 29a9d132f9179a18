/*
 * time.c - virtual time: deadlines, early and late clocks, polling, wall-clock jumps.
 */
#include "base/mem.h"
#include "models/support.h"

#define MS 1000000ull

/* ---- timers: a worker must hand in before the supervisor's deadline ---- */

struct job {
    struct sh_mutex mutex;
    struct sh_cond done_cond;
    bool done;
    bool timed_out;
    bool trusting; /* planted: a timeout is taken to mean "not done" without another look */
    uint64_t woken_ns;
};

static void worker_fn(void *argument)
{
    struct job *job = argument;

    sh_sleep_until(sh_now_ns() + 10 * MS);
    sh_mutex_lock(&job->mutex);
    job->done = true;
    sh_cond_signal(&job->done_cond);
    sh_mutex_unlock(&job->mutex);
}

static void timers_fn(void *argument)
{
    struct job *job = model_alloc(sizeof(*job));
    uint64_t start_ns = sh_now_ns();
    struct sh_thread *worker;

    job->trusting = argument == PLANTED;
    sh_mutex_init(&job->mutex, "job");
    sh_cond_init(&job->done_cond, "done");
    worker = model_spawn("worker", worker_fn, job);
    sh_mutex_lock(&job->mutex);
    while (!job->done && !job->timed_out) {
        if (!sh_cond_wait(&job->done_cond, &job->mutex, start_ns + 20 * MS))
            job->timed_out = job->trusting || !job->done;
    }
    RON_ASSERT(!(job->done && job->timed_out));
    /* A timeout is never early, and without a late clock nothing is late. */
    job->woken_ns = sh_now_ns();
    RON_ASSERT(!job->timed_out || job->woken_ns >= start_ns + 20 * MS);
    RON_ASSERT(job->timed_out || job->woken_ns >= start_ns + 10 * MS);
    sim_outcome((job->woken_ns - start_ns) << 1 | job->timed_out);
    sh_mutex_unlock(&job->mutex);
    model_join(worker);
    sh_cond_fini(&job->done_cond);
    sh_mutex_fini(&job->mutex);
    ron_mem_free(job);
}

static const struct model_case timers_cases[] = {
    {.config = {.preemption_bound = NONE}},
    {.config = {.preemption_bound = NONE, .early_ticks = 2}},
    {.config = {.preemption_bound = NONE, .late_ticks = 1}},
    {.config = {.preemption_bound = NONE, .early_ticks = 2, .late_ticks = 1}, .compare = true},
    {.config = {.preemption_bound = 1, .early_ticks = 2, .late_ticks = 1}, .compare = true},
    {.config = {.preemption_bound = NONE, .early_ticks = 2, .fine = 1}, .cache = true},
};
static const struct model_case timers_planted_cases[] = {
    {.config = {.preemption_bound = NONE}}, /* needs a clock that moves at the wrong moment */
    {.config = {.preemption_bound = NONE, .early_ticks = 2}, .expected = SIM_ASSERTION},
    {.config = {.preemption_bound = NONE, .late_ticks = 1}, .expected = SIM_ASSERTION},
    {.config = {.preemption_bound = NONE, .early_ticks = 2},
     .strategy = SIM_STRATEGY_RANDOM,
     .expected = SIM_ASSERTION},
};
MODEL(timers, "a wait with a deadline, and work that may just make it", timers_fn, NULL,
      timers_cases);
MODEL(timers_planted, "a timeout believed without looking again", timers_fn, PLANTED,
      timers_planted_cases);

/* ---- polling: try, yield, try again ---- */

struct poll {
    struct sh_mutex mutex;
    unsigned ready_count;
    bool sleeps;  /* the one polled for needs time to pass */
    bool forgets; /* planted: nobody ever becomes ready */
};

static void poller_fn(void *argument)
{
    struct poll *poll = argument;
    bool ready = false;

    while (!ready) {
        sh_mutex_lock(&poll->mutex);
        ready = poll->ready_count > 0;
        sh_mutex_unlock(&poll->mutex);
        if (!ready)
            sh_yield();
    }
}

static void polled_fn(void *argument)
{
    struct poll *poll = argument;

    if (poll->sleeps)
        sh_sleep_until(sh_now_ns() + 5 * MS);
    if (poll->forgets)
        return;
    sh_mutex_lock(&poll->mutex);
    poll->ready_count++;
    sh_mutex_unlock(&poll->mutex);
}

static void run_polling(bool sleeps, bool forgets)
{
    struct poll *poll = model_alloc(sizeof(*poll));
    struct sh_thread *threads[3];

    poll->sleeps = sleeps;
    poll->forgets = forgets;
    sh_mutex_init(&poll->mutex, "poll");
    threads[0] = model_spawn("poller 1", poller_fn, poll);
    threads[1] = model_spawn("poller 2", poller_fn, poll);
    threads[2] = model_spawn("polled", polled_fn, poll);
    for (int i = 0; i < 3; i++)
        model_join(threads[i]);
    sh_mutex_fini(&poll->mutex);
    ron_mem_free(poll);
}

static void polling_fn(void *argument)
{
    run_polling(false, argument == PLANTED);
}

static void polling_time_fn(void *argument)
{
    (void)argument;
    run_polling(true, false);
}

static const struct model_case polling_cases[] = {
    {.config = {.preemption_bound = NONE}},
    {.config = {.preemption_bound = NONE}, .compare = true},
    {.config = {.preemption_bound = 2}},
    {.config = {.preemption_bound = NONE}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE}, .strategy = SIM_STRATEGY_PCT},
};
static const struct model_case livelock_cases[] = {
    {.config = {.preemption_bound = NONE}, .expected = SIM_LIVELOCK},
    {.config = {.preemption_bound = NONE},
     .cache = true,
     .expected = SIM_LIVELOCK,
     .message = "no schedule comes to an end"},
    {.config = {.preemption_bound = NONE},
     .strategy = SIM_STRATEGY_RANDOM,
     .expected = SIM_LIVELOCK},
};
static const struct model_case polling_time_cases[] = {
    {.config = {.preemption_bound = 2}},
    {.config = {.preemption_bound = NONE}, .cache = true},
    {.config = {.preemption_bound = NONE}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE}, .strategy = SIM_STRATEGY_PCT},
};
MODEL(polling, "two pollers that yield cannot starve the one they wait for", polling_fn, NULL,
      polling_cases);
MODEL(polling_planted, "two pollers of something that never comes: livelock", polling_fn, PLANTED,
      livelock_cases);
MODEL(polling_time, "two pollers of something that needs time to pass", polling_time_fn, NULL,
      polling_time_cases);

/* ---- wall_clock: an interval measured with the wrong clock ---- */

static void wall_clock_fn(void *argument)
{
    bool wrong_clock = argument == PLANTED;
    uint64_t start = wrong_clock ? sh_utc_ms() : sh_now_ns() / MS;
    uint64_t end;

    sh_sleep_until(sh_now_ns() + 50 * MS);
    sim_outcome(sh_utc_ms());
    end = wrong_clock ? sh_utc_ms() : sh_now_ns() / MS;
    RON_ASSERT(end >= start);
    RON_ASSERT(end - start == 50);
}

static const struct model_case wall_clock_cases[] = {
    {.config = {.preemption_bound = NONE}, .schedules_count = 1},
    {.config = {.preemption_bound = NONE, .clock_jumps = 1}, .schedules_count = 3},
};
static const struct model_case wall_clock_planted_cases[] = {
    {.config = {.preemption_bound = NONE}},
    {.config = {.preemption_bound = NONE, .clock_jumps = 1}, .expected = SIM_ASSERTION},
};
MODEL(wall_clock, "an interval by the monotonic clock, whatever the wall clock does", wall_clock_fn,
      NULL, wall_clock_cases);
MODEL(wall_clock_planted, "an interval by the wall clock, which jumps", wall_clock_fn, PLANTED,
      wall_clock_planted_cases);
