/*
 * test_sim.c - the simulator's shim, memory, nodes and verdicts. Method: small models run once or
 * exhaustively, with asserted counts; a process of its own where one is meant to die.
 */
#include "support.h"

#include <errno.h>
#include <fenv.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "rt/local.h"
#include "rt/sim/explore.h"
#include "rt/sim/fiber.h"

static struct sim_result run_plain(sim_model_fn *model, void *argument)
{
    struct sim_config config = sim_config_plain();
    struct sim_job job = {.config = &config, .model = model, .argument = argument};
    struct sim_replay zeros;
    struct sim_result result;

    sim_replay_init(&zeros, NULL, 0, false);
    sim_run(&job, &zeros.source, &result);
    return result;
}

static void assert_verdict(const struct sim_result *result, enum sim_verdict verdict,
                           const char *text)
{
    if (result->verdict != verdict)
        fail_msg("%s (%s), expected %s", sim_verdict_name(result->verdict), result->message,
                 sim_verdict_name(verdict));
    if (strstr(result->message, text) == NULL)
        fail_msg("message \"%s\" lacks \"%s\"", result->message, text);
}

/* For calls inside a run that have effects besides their answer. */
static void must(bool answer)
{
    RON_ASSERT(answer);
}

static struct sh_thread *spawn(const char *name, void (*fn)(void *), void *argument)
{
    struct sh_thread *thread = NULL;

    must(sh_spawn(name, fn, argument, &thread, NULL) == RON_ERR_OK);
    return thread;
}

/* ---- each fiber has its own errno, rounding mode and local block ---- */

static void dirty_fn(void *argument)
{
    (void)argument;
    RON_ASSERT(errno == 0);
    RON_ASSERT(fegetround() == FE_TONEAREST);
    RON_ASSERT(sh_local()->held_count == 0);
    errno = 77;
    must(fesetround(FE_UPWARD) == 0);
    sh_local()->slot = 5;
    sim_point("between");
    RON_ASSERT(errno == 77);
    RON_ASSERT(fegetround() == FE_UPWARD);
    RON_ASSERT(sh_local()->slot == 5);
}

static void own_state_fn(void *argument)
{
    struct sh_thread *threads[2];

    (void)argument;
    errno = 11;
    threads[0] = spawn("one", dirty_fn, NULL);
    threads[1] = spawn("two", dirty_fn, NULL);
    RON_ASSERT(errno == 11);
    RON_ASSERT(sh_local()->slot == 0);
    for (int i = 0; i < 2; i++)
        must(sh_join(threads[i], SH_NEVER));
    RON_ASSERT(errno == 11);
    RON_ASSERT(fegetround() == FE_TONEAREST);
}

static void fibers_keep_their_own_state(void **state)
{
    struct sim_result result;

    (void)state;
    errno = 3;
    result = run_plain(own_state_fn, NULL);
    assert_verdict(&result, SIM_OK, "");
    assert_int_equal(errno, 3);
    assert_int_equal(fegetround(), FE_TONEAREST);
}

/* ---- time ---- */

static void sleeper_fn(void *argument)
{
    sh_sleep_until(sh_now_ns() + *(const uint64_t *)argument);
}

static void time_fn(void *argument)
{
    uint64_t start_ns = sh_now_ns();
    uint64_t start_ms = sh_utc_ms();
    uint64_t pause_ns = 3600ull * 1000000000;
    struct sh_thread *sleeper = spawn("sleeper", sleeper_fn, &pause_ns);

    (void)argument;
    for (int i = 0; i < 100; i++)
        sim_point("busy");
    RON_ASSERT(sh_now_ns() == start_ns); /* work takes no time */
    must(!sh_join(sleeper, start_ns + 1000));
    RON_ASSERT(sh_now_ns() == start_ns + 1000);
    must(!sh_join(sleeper, start_ns)); /* past: no wait */
    RON_ASSERT(sh_now_ns() == start_ns + 1000);
    must(sh_join(sleeper, SH_NEVER));
    RON_ASSERT(sh_now_ns() == start_ns + pause_ns);
    RON_ASSERT(sh_utc_ms() == start_ms + 3600 * 1000);
}

static void time_moves_only_when_nobody_can_run(void **state)
{
    struct sim_result result = run_plain(time_fn, NULL);

    (void)state;
    assert_verdict(&result, SIM_OK, "");
}

/* ---- a wait whose deadline has passed still lets others in ---- */

struct door {
    struct sh_mutex mutex;
    struct sh_cond cond;
    bool entered;
};

static void enter_fn(void *argument)
{
    struct door *door = argument;

    sh_mutex_lock(&door->mutex);
    door->entered = true;
    sh_mutex_unlock(&door->mutex);
}

static void past_deadline_fn(void *argument)
{
    struct door door = {0};
    struct sh_thread *other;

    (void)argument;
    sh_mutex_init(&door.mutex, "door");
    sh_cond_init(&door.cond, "cond");
    sh_mutex_lock(&door.mutex);
    other = spawn("other", enter_fn, &door);
    must(!sh_cond_wait(&door.cond, &door.mutex, 0));
    sim_outcome(door.entered);
    sh_mutex_unlock(&door.mutex);
    must(sh_join(other, SH_NEVER));
    RON_ASSERT(door.entered);
    sh_cond_fini(&door.cond);
    sh_mutex_fini(&door.mutex);
}

static void past_wait_releases_the_mutex(void **state)
{
    const struct sim_plan plan = {
        .model_name = "past", .model = past_deadline_fn, .config = sim_config_plain()};
    struct sim_report report;

    (void)state;
    assert_ok(sim_explore(&plan, &report, NULL));
    assert_int_equal(report.failed_run, 0);
    assert_true(report.complete);
    assert_int_equal(report.outcomes_count, 2); /* entered before, or after */
    sim_report_fini(&report);
}

/* ---- memory ---- */

static void memory_fn(void *argument)
{
    uintptr_t *address = argument;
    uint8_t *first = ron_mem_alloc(100);
    uint8_t *second;

    RON_ASSERT(first != NULL);
    for (int i = 0; i < 100; i++)
        RON_ASSERT(first[i] == 0);
    memset(first, 1, 100);
    second = ron_mem_resize(first, 5000);
    RON_ASSERT(second != NULL);
    RON_ASSERT(second[99] == 1);
    first = ron_mem_alloc(100);
    for (int i = 0; i < 100; i++)
        RON_ASSERT(first[i] == 0); /* wiped although used before */
    RON_ASSERT((uintptr_t)first % 16 == 0);
    must(ron_mem_alloc(1u << 29) == NULL);
    RON_ASSERT(*address == 0 || *address == (uintptr_t)second);
    *address = (uintptr_t)second;
    ron_mem_free(first);
    ron_mem_free(second);
}

static void memory_is_the_same_in_every_run(void **state)
{
    uintptr_t address = 0;
    uint64_t live_count = ron_mem_live_count();

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct sim_result result = run_plain(memory_fn, &address);
        assert_verdict(&result, SIM_OK, "");
    }
    assert_int_equal(ron_mem_live_count(), live_count);
}

/* Large blocks are wiped another way, page by page. */
static void large_fn(void *argument)
{
    const size_t size = 300 * 1024 + 77;
    uint8_t *block;

    for (int i = 0; i < 2; i++) {
        block = ron_mem_alloc(size);
        RON_ASSERT(block != NULL);
        for (size_t k = 0; k < size; k++)
            RON_ASSERT(block[k] == 0);
        memset(block, 1, size);
        if (i == 0 || argument != NULL)
            ron_mem_free(block);
    }
}

static void large_blocks_are_wiped_when_freed_and_between_runs(void **state)
{
    bool freed = true;
    struct sim_result result;

    (void)state;
    for (int i = 0; i < 4; i++) { /* the second leaves one to the third */
        result = run_plain(large_fn, i == 1 ? NULL : &freed);
        assert_verdict(&result, i == 1 ? SIM_LEAK : SIM_OK, "");
    }
}

static void leak_fn(void *argument)
{
    (void)argument;
    must(ron_mem_alloc(10) != NULL);
}

static void twice_fn(void *argument)
{
    void *pointer = ron_mem_alloc(10);

    (void)argument;
    ron_mem_free(pointer);
    ron_mem_free(pointer);
}

static void nothing_fn(void *argument)
{
    (void)argument;
}

static void unjoined_fn(void *argument)
{
    (void)argument;
    (void)spawn("orphan", nothing_fn, NULL);
}

static void detached_fn(void *argument)
{
    (void)argument;
    sh_detach(spawn("ended", nothing_fn, NULL));
    must(sh_random() != sh_random());
}

int __asan_address_is_poisoned(const volatile void *address) __attribute__((weak));

static void behind_fn(void *argument)
{
    void *block = ron_mem_alloc(100);

    (void)argument;
    must(block != NULL && (!RON_ASAN || __asan_address_is_poisoned((uint8_t *)block + 104) != 0));
    ron_mem_free(block);
}

static void nobody_looks_behind_a_block(void **state)
{
    (void)state;
    for (unsigned run = 0; run < 2; run++) /* also where an earlier run had one */
        assert_int_equal(run_plain(behind_fn, NULL).verdict, SIM_OK);
}

static void leaks_are_verdicts(void **state)
{
    struct sim_result result = run_plain(leak_fn, NULL);

    (void)state;
    assert_verdict(&result, SIM_LEAK, "1 allocations");
    result = run_plain(twice_fn, NULL);
    assert_verdict(&result, SIM_ASSERTION, "BLOCK_LIVE");
    result = run_plain(unjoined_fn, NULL);
    assert_verdict(&result, SIM_LEAK, "orphan");
    result = run_plain(detached_fn, NULL);
    assert_verdict(&result, SIM_OK, "");
}

/* ---- misuse ---- */

static void relock_fn(void *argument)
{
    struct sh_mutex mutex;

    (void)argument;
    sh_mutex_init(&mutex, "again");
    sh_mutex_lock(&mutex);
    sh_mutex_lock(&mutex);
}

static void holder_fn(void *argument)
{
    sh_mutex_lock(argument);
}

static void held_at_end_fn(void *argument)
{
    struct sh_mutex mutex;
    struct sh_thread *holder;

    (void)argument;
    sh_mutex_init(&mutex, "kept");
    holder = spawn("holder", holder_fn, &mutex);
    must(sh_join(holder, SH_NEVER));
}

static void stranger_fn(void *argument)
{
    sh_mutex_unlock(argument);
}

static void foreign_unlock_fn(void *argument)
{
    struct sh_mutex mutex;

    (void)argument;
    sh_mutex_init(&mutex, "mine");
    sh_mutex_lock(&mutex);
    (void)spawn("stranger", stranger_fn, &mutex);
    sim_point("let the stranger run");
}

static void misuse_is_an_assertion(void **state)
{
    struct sim_result result = run_plain(relock_fn, NULL);

    (void)state;
    assert_verdict(&result, SIM_ASSERTION, "in main");
    result = run_plain(held_at_end_fn, NULL);
    assert_verdict(&result, SIM_ASSERTION, "in holder");
    result = run_plain(foreign_unlock_fn, NULL);
    assert_verdict(&result, SIM_ASSERTION, "in stranger");
}

/* ---- verdicts ---- */

static void failing_check(void *context)
{
    const unsigned *steps = context;

    RON_ASSERT(*steps < 3);
}

static void checked_fn(void *argument)
{
    unsigned steps = 0;

    (void)argument;
    sim_set_check(failing_check, &steps);
    for (; steps < 5; steps++)
        sim_point("step");
}

static void ended_fn(void *argument)
{
    (void)argument;
    (void)spawn("sleeper", sleeper_fn, &(uint64_t){1000});
    sim_end_run();
}

static void endless_fn(void *argument)
{
    (void)argument;
    for (;;)
        sim_point("again");
}

static void run_ends_as_it_should(void **state)
{
    struct sim_result result = run_plain(checked_fn, NULL);

    (void)state;
    assert_verdict(&result, SIM_ASSERTION, "in check");
    result = run_plain(ended_fn, NULL);
    assert_verdict(&result, SIM_OK, "ended by the model");
    result = run_plain(endless_fn, NULL);
    assert_verdict(&result, SIM_LIVELOCK, "2000 steps");
    result = run_plain(nothing_fn, NULL);
    assert_verdict(&result, SIM_OK, "");
}

static void crowd_fn(void *argument)
{
    static struct sh_thread *threads[SIM_FIBERS_MAX];
    struct ron_errinfo info = {0};
    uint64_t pause_ns = 10;

    (void)argument;
    for (int i = 0; i < SIM_FIBERS_MAX - 1; i++)
        threads[i] = spawn("one of many", sleeper_fn, &pause_ns);
    must(sh_spawn("too many", nothing_fn, NULL, &threads[255], &info) == RON_ERR_BUSY);
    RON_ASSERT(strstr(info.message, "too many") != NULL);
    for (int i = 0; i < SIM_FIBERS_MAX - 1; i++)
        must(sh_join(threads[i], SH_NEVER));
    for (int i = 0; i < 300; i++) /* slots are used again */
        must(sh_join(spawn("again", nothing_fn, NULL), SH_NEVER));
}

static void fibers_are_bounded(void **state)
{
    struct sim_result result = run_plain(crowd_fn, NULL);

    (void)state;
    assert_verdict(&result, SIM_OK, "");
}

/* ---- nodes ---- */

struct disk {
    unsigned starts_count;
};

static void helper_fn(void *argument)
{
    (void)argument;
    for (;;)
        sim_point("work of a helper");
}

static void joiner_fn(void *argument)
{
    must(sh_join(argument, SH_NEVER));
}

static void node_fn(void *argument)
{
    struct disk *disk = argument;
    void *memory = ron_mem_alloc(64);

    RON_ASSERT(memory != NULL);
    disk->starts_count++;
    if (disk->starts_count == 1) { /* three fibers, a lock and memory are lost at the crash */
        struct sh_mutex mutex;
        sh_mutex_init(&mutex, "lost");
        sh_mutex_lock(&mutex);
        must(sh_join(spawn("joiner", joiner_fn, spawn("helper", helper_fn, NULL)), SH_NEVER));
    }
    ron_mem_free(memory);
}

static void nodes_fn(void *argument)
{
    struct disk *disk = ron_mem_alloc(sizeof(*disk));

    (void)argument;
    while (sim_node_wait(sim_node_start("node", true, node_fn, disk)))
        ;
    RON_ASSERT(disk->starts_count == 2);
    ron_mem_free(disk);
}

static void crash_takes_fibers_locks_and_memory(void **state)
{
    struct sim_config config = sim_config_plain();
    struct sim_job job = {.config = &config, .model = nodes_fn};
    const uint16_t crash_at_third[] = {0, 0, 1};
    struct sim_replay replay;
    struct sim_result result;

    (void)state;
    config.crashes = 1;
    sim_replay_init(&replay, crash_at_third, 3, false);
    sim_run(&job, &replay.source, &result);
    assert_verdict(&result, SIM_OK, "");
    assert_false(replay.diverged);
}

/* ---- outside a run ---- */

static void shim_works_on_the_host(void **state)
{
    struct sh_mutex mutex;

    (void)state;
    sh_mutex_init(&mutex, "host");
    sh_mutex_lock(&mutex);
    assert_dies(sh_mutex_lock(&mutex), "me()");
    sh_mutex_unlock(&mutex);
    sh_mutex_fini(&mutex);
    assert_int_equal(sh_choose(5, "none"), 0);
    assert_ptr_equal(sh_local(), sh_local());
    assert_false(sh_atomic_points);
}

/* ---- a run that destroys the process says which it was ---- */

static unsigned overflow(volatile unsigned *deeper)
{
    volatile unsigned frame[256];

    frame[0] = *deeper + 1;
    return frame[0] == 1000000 ? 0 : overflow(&frame[0]) + frame[0];
}

static void overflow_fn(void *argument)
{
    volatile unsigned start = sim_choose(3, "way");

    (void)argument;
    (void)overflow(&start);
}

static void run_overflow(void)
{
    const struct sim_plan plan = {.model_name = "overflow",
                                  .model = overflow_fn,
                                  .config = sim_config_plain(),
                                  .strategy = SIM_STRATEGY_RANDOM};
    struct sim_report report;

    assert_ok(sim_explore(&plan, &report, NULL));
}

static void stack_overflow_prints_the_schedule(void **state)
{
    char output[4096] = "";
    int ends[2];
    int status;
    pid_t child;

    (void)state;
    if (RON_ASAN || RON_TSAN) /* which report the overflow themselves */
        skip();
    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        run_overflow();
        _exit(0);
    }
    (void)close(ends[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(read(ends[0], output, sizeof(output) - 1) > 0);
    (void)close(ends[0]);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
    assert_non_null(strstr(output, "in fiber main"));
    assert_non_null(strstr(output, "sim1:overflow:g0,b-,t0,s0,c0:#0:"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fibers_keep_their_own_state),
        cmocka_unit_test(time_moves_only_when_nobody_can_run),
        cmocka_unit_test(past_wait_releases_the_mutex),
        cmocka_unit_test(memory_is_the_same_in_every_run),
        cmocka_unit_test(large_blocks_are_wiped_when_freed_and_between_runs),
        cmocka_unit_test(nobody_looks_behind_a_block),
        cmocka_unit_test(leaks_are_verdicts),
        cmocka_unit_test(misuse_is_an_assertion),
        cmocka_unit_test(run_ends_as_it_should),
        cmocka_unit_test(fibers_are_bounded),
        cmocka_unit_test(crash_takes_fibers_locks_and_memory),
        cmocka_unit_test(shim_works_on_the_host),
        cmocka_unit_test(stack_overflow_prints_the_schedule),
    };
    return cmocka_run_group_tests_name("sim", tests, NULL, NULL);
}
