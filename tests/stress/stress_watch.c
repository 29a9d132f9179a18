/*
 * stress_watch.c SECONDS - a watch and a lifecycle under real threads, with close and stop racing.
 *
 * Rounds: writers set a watch, readers wait for versions, someone closes it at a random moment. No
 * reader sees a torn value or an old version, and one that is told of the close has seen the last
 * value. At the same time two tasks stop a lifecycle, one sends it into SafeMode and back, others
 * ask to be admitted: each step runs once, nobody is admitted once the first step has run, and it
 * ends Stopped.
 */
#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"
#include "rt/atomic.h"
#include "rt/lifecycle.h"
#include "rt/registry.h"
#include "rt/watch.h"
#include "seconds.h"

enum { WRITERS = 2, READERS = 3, STOPPERS = 2, WRITES_MAX = 2000, STEPS = 2 };
enum { THREADS = WRITERS + READERS + STOPPERS + 3 };

struct value { /* five words that belong together */
    uint64_t words[5];
};

struct round {
    struct rt_watch *watch;
    struct rt_lifecycle *lifecycle;
    unsigned writes_count; /* by each writer */
    unsigned close_after_us;
    struct rt_atomic_u64 seen_count, admitted_count;
    struct rt_atomic_u32 steps[STEPS];
};

static struct value value_of(uint64_t number)
{
    return (struct value){{number, number ^ 1, number ^ 2, number ^ 3, number ^ 4}};
}

static void check_value(const struct value *value)
{
    for (unsigned i = 1; i < RON_ARRAY_COUNT(value->words); i++)
        RON_ASSERT(value->words[i] == (value->words[0] ^ i));
}

static void write_main(void *context)
{
    struct round *round = context;

    for (unsigned i = 0; i < round->writes_count; i++) {
        struct value value = value_of(sh_random());
        rt_watch_set(round->watch, &value);
    }
}

static void read_main(void *context) RON_BLOCKS
{
    struct round *round = context;
    uint64_t seen = 0;
    struct value value;
    enum ron_err err;

    for (;;) {
        uint64_t version = 0;

        err = rt_watch_wait(round->watch, seen, rt_deadline_after_ms(5000), &value, &version, NULL);
        if (err != RON_ERR_OK)
            break;
        RON_ASSERT(version > seen);
        check_value(&value);
        seen = version;
        rt_counter_add(&round->seen_count, 1);
    }
    RON_ASSERT(err == RON_ERR_CANCELED); /* a timeout is a lost wake-up */
    RON_ASSERT(rt_watch_get(round->watch, &value) == seen);
    RON_ASSERT(!rt_watch_changed(round->watch, seen));
}

static void close_main(void *context) RON_BLOCKS
{
    struct round *round = context;

    sh_sleep_until(rt_now_ns() + UINT64_C(1000) * round->close_after_us);
    rt_watch_close(round->watch);
}

static enum ron_err run_step(void *context, unsigned step)
{
    struct round *round = context;

    RON_ASSERT(rt_lifecycle_status(round->lifecycle).state != RT_LIFE_RUNNING);
    RON_ASSERT(rt_lifecycle_admit(round->lifecycle, RT_PLANE_WRITE, NULL) == RON_ERR_DRAINING);
    RON_ASSERT(rt_lifecycle_ready(round->lifecycle) == 0);
    RON_ASSERT(rt_atomic_add_u32(&round->steps[step], 1) == 0); /* once */
    return RON_ERR_OK;
}

static enum ron_err first_step(void *context, struct rt_deadline deadline,
                               struct ron_errinfo *reterr)
{
    (void)deadline;
    (void)reterr;
    return run_step(context, 0);
}

static enum ron_err second_step(void *context, struct rt_deadline deadline,
                                struct ron_errinfo *reterr)
{
    struct round *round = context;

    (void)deadline;
    (void)reterr;
    RON_ASSERT(rt_atomic_load_u32(&round->steps[0]) == 1);
    return run_step(context, 1);
}

static void stop_main(void *context) RON_BLOCKS
{
    struct round *round = context;

    sh_sleep_until(rt_now_ns() + sh_random() % 500 * 1000);
    RON_MUST_ZERO(rt_lifecycle_stop(round->lifecycle, NULL, NULL));
    RON_ASSERT(rt_lifecycle_status(round->lifecycle).state == RT_LIFE_STOPPED);
    RON_ASSERT(rt_atomic_load_u32(&round->steps[1]) == 1); /* also when another ran them */
}

/* Into SafeMode and out of it, again and again, until the stop is over. */
static void repair_main(void *context) RON_BLOCKS
{
    struct round *round = context;

    sh_sleep_until(rt_now_ns() + sh_random() % 200 * 1000);
    while (rt_lifecycle_status(round->lifecycle).state != RT_LIFE_STOPPED) {
        RON_ASSERT(rt_lifecycle_raise(round->lifecycle, RT_CAUSE_DAMAGED));
        RON_ASSERT(!rt_lifecycle_raise(round->lifecycle, RT_CAUSE_DAMAGED));
        RON_ASSERT(rt_lifecycle_admit(round->lifecycle, RT_PLANE_WRITE, NULL) != RON_ERR_OK);
        RON_ASSERT(rt_lifecycle_clear(round->lifecycle, RT_CAUSE_DAMAGED));
        sh_yield();
    }
}

static void admit_main(void *context)
{
    struct round *round = context;

    enum ron_err err;

    while ((err = rt_lifecycle_admit(round->lifecycle, RT_PLANE_WRITE, NULL)) != RON_ERR_DRAINING)
        rt_counter_add(&round->admitted_count, err == RON_ERR_OK ? 1 : 0);
    /* Never again, whatever is cleared. */
    RON_ASSERT(rt_lifecycle_admit(round->lifecycle, RT_PLANE_WRITE, NULL) == RON_ERR_DRAINING);
    RON_ASSERT(rt_lifecycle_admit(round->lifecycle, RT_PLANE_READ, NULL) == RON_ERR_OK);
}

static void run_round(struct round *round) RON_BLOCKS
{
    static const struct rt_life_step steps[STEPS] = {{"first", first_step, 0},
                                                     {"second", second_step, 0}};
    static const struct rt_life_role role = {.name = "stress",
                                             .steps = steps,
                                             .steps_count = STEPS,
                                             .drain_ms = 10000,
                                             .has_safe_mode = true,
                                             .abort = first_step,
                                             .abort_ms = 1000};
    static const struct rt_watch_options options = {"stress", "stress", sizeof(struct value)};
    static void (*const mains[THREADS])(void *) = {write_main, write_main, read_main, read_main,
                                                   read_main,  stop_main,  stop_main, repair_main,
                                                   admit_main, close_main};
    const struct value initial = value_of(7);
    struct sh_thread *threads[THREADS];

    *round = (struct round){.writes_count = (unsigned)(sh_random() % WRITES_MAX),
                            .close_after_us = (unsigned)(sh_random() % 2000)};
    RON_MUST_ZERO(rt_watch_new(&options, &initial, &round->watch, NULL));
    RON_MUST_ZERO(rt_lifecycle_new(&role, 0, round, &round->lifecycle, NULL));
    for (unsigned i = 0; i < THREADS; i++)
        RON_MUST_ZERO(sh_spawn("stress", mains[i], round, &threads[i], NULL));
    for (unsigned i = 0; i < THREADS; i++)
        RON_ASSERT(sh_join(threads[i], SH_NEVER));
    rt_lifecycle_free(round->lifecycle);
    rt_watch_free(round->watch);
}

int main(int argc, char **argv) RON_BLOCKS
{
    static struct round round;
    uint64_t seen_count = 0, admitted_count = 0;
    unsigned rounds_count = 0;
    struct rt_deadline end;

    rt_init();
    if (!stress_deadline(argc, argv, &end))
        return 2;
    while (!rt_deadline_expired(end)) {
        run_round(&round);
        rounds_count++;
        seen_count += rt_counter_load(&round.seen_count);
        admitted_count += rt_counter_load(&round.admitted_count);
    }
    RON_ASSERT(ron_mem_live_count() == 0);
    printf("1..1\nok 1 - stress_watch: %u rounds, %llu values seen, %llu times admitted\n",
           rounds_count, (unsigned long long)seen_count, (unsigned long long)admitted_count);
    return 0;
}
