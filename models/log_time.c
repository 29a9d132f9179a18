/*
 * log_time.c - the durable log against the clock and against its end.
 *
 * Linger: a group that nobody waits for is written when its time has come, not before; one that
 * somebody waits for is written at once. Zeros: never more than the rate allows, and no slower than
 * it either. Nudges: whoever waits for a record and for a nudge is woken by either, whenever it
 * comes. End: the log's tasks are cancelled while others append and wait; everybody is
 * answered, and what was appended is durable when close returns.
 */
#include "base/mem.h"
#include "io/log_impl.h"
#include "io/vfs_memory.h"
#include "models/support.h"
#include "rt/registry.h"

#define MS UINT64_C(1000000)
enum { LINGER_MS = 5, RATE = 64 << 10, BODY_SIZE = 1000 };
enum { ENDERS_COUNT = 2 };

struct world {
    struct io_vfs *disk;
    struct rt_supervisor *supervisor;
    struct io_log *log;
    uint64_t durable_ns, appended_count, acknowledged;
};

static void note_durable(void *context, uint64_t index)
{
    struct world *world = context;

    (void)index;
    world->durable_ns = rt_now_ns();
}

static struct world *begin(struct io_log_options options) RON_BLOCKS
{
    const struct rt_supervisor_options root = {.name = "root", .owner = "model", .tasks_max = 4};
    struct world *world = model_alloc(sizeof(*world));
    struct io_log_recovery recovery;

    rt_init();
    model_must(rt_supervisor_new(&root, &world->supervisor, NULL));
    model_must(io_vfs_memory_new(NULL, &world->disk, NULL));
    options.vfs = world->disk;
    options.dir = "log";
    options.name = "model";
    options.supervisor = world->supervisor;
    options.on_durable = note_durable;
    options.context = world;
    model_must(io_log_open(&options, &world->log, &recovery, NULL));
    return world;
}

static void end(struct world *world) RON_BLOCKS
{
    model_must(io_log_close(world->log, RT_DEADLINE_NEVER, NULL));
    model_must(rt_supervisor_stop(world->supervisor, RT_DEADLINE_NEVER, NULL));
    rt_supervisor_free(world->supervisor);
    (void)io_vfs_free(world->disk);
    ron_mem_free(world);
}

/* ---- linger ---- */

static void linger_fn(void *argument) RON_BLOCKS
{
    struct world *world = begin((struct io_log_options){.segment_bytes = 8192,
                                                        .ahead_bytes = 4096,
                                                        .group_bytes = 512,
                                                        .record_bytes_max = 64,
                                                        .linger_us = LINGER_MS * 1000});
    const struct ron_slice part = RON_SLICE("record");
    const uint64_t begin_ns = rt_now_ns();
    uint64_t index = 0, waited_ns;
    size_t some = 0;

    (void)argument;
    if (sim_choose(2, "many") == 1)
        model_must(io_log_append_many(world->log, 5, (struct ron_slice[]){part, part}, 2,
                                      RT_DEADLINE_NEVER, &some, &index, NULL));
    else
        model_must(io_log_append_until(world->log, 5, &part, 1, RT_DEADLINE_NEVER, &index, NULL));
    sh_sleep_until(begin_ns + 4 * LINGER_MS * MS);
    RON_ASSERT(io_log_last_durable(world->log) == index);
    RON_ASSERT(world->durable_ns >= begin_ns + LINGER_MS * MS);
    RON_ASSERT(world->durable_ns < begin_ns + 2 * LINGER_MS * MS);
    waited_ns = rt_now_ns();
    model_must(io_log_append_until(world->log, 5, &part, 1, RT_DEADLINE_NEVER, &index, NULL));
    model_must(io_log_wait(world->log, index, RT_DEADLINE_NEVER, NULL));
    RON_ASSERT(rt_now_ns() < waited_ns + LINGER_MS * MS);
    end(world);
}

/* ---- nudges ---- */

static void nudge_fn(void *argument) RON_BLOCKS
{
    struct world *world = argument;

    io_log_nudge(world->log);
}

/* A record that nobody appends: only the nudge can end the wait. */
static void nudged_fn(void *argument) RON_BLOCKS
{
    struct world *world = begin((struct io_log_options){
        .segment_bytes = 8192, .ahead_bytes = 4096, .group_bytes = 512, .record_bytes_max = 64});
    const uint32_t seen = io_log_nudges(world->log);
    struct sh_thread *nudger = model_spawn("nudger", nudge_fn, world);

    (void)argument;
    model_must(io_log_wait_nudged(world->log, 1, seen, RT_DEADLINE_NEVER, NULL));
    RON_ASSERT(io_log_nudges(world->log) == seen + 1);
    RON_ASSERT(io_log_last_durable(world->log) == 0);
    model_join(nudger);
    end(world);
}

/* ---- the rate of zeros ---- */

struct zeros_shape {
    unsigned records_count;
    uint64_t segment;
};
static const struct zeros_shape many_records = {150, 32 << 10}, few_records = {40, 32 << 10},
                                fewest_records = {9, 8 << 10};

static void zeros_fn(void *argument) RON_BLOCKS
{
    static const uint8_t body[BODY_SIZE];
    const struct zeros_shape *shape = argument;
    const struct ron_slice part = {body, BODY_SIZE};
    const uint64_t begin_ns = rt_now_ns();
    struct world *world = begin((struct io_log_options){.segment_bytes = shape->segment,
                                                        .ahead_bytes = shape->segment / 2,
                                                        .ahead_bytes_per_s = RATE,
                                                        .group_bytes = 4096,
                                                        .record_bytes_max = BODY_SIZE});
    uint64_t index = 0, passed_ns, zeroed;

    for (unsigned i = 0; i < shape->records_count; i++) {
        model_must(io_log_append_until(world->log, 5, &part, 1, RT_DEADLINE_NEVER, &index, NULL));
        passed_ns = rt_now_ns() - begin_ns;
        zeroed = io_log_get_stats(world->log).zeroed_bytes;
        RON_ASSERT(zeroed <=
                   shape->segment + passed_ns * RATE / 1000000000); /* the burst, then the rate */
    }
    model_must(io_log_wait(world->log, index, RT_DEADLINE_NEVER, NULL));
    passed_ns = rt_now_ns() - begin_ns;
    zeroed = io_log_get_stats(world->log).zeroed_bytes;
    RON_ASSERT(zeroed + shape->segment > shape->records_count * UINT64_C(1) * BODY_SIZE);
    RON_ASSERT(passed_ns * RATE / 1000000000 <=
               zeroed + shape->segment); /* nor does it sleep too long */
    end(world);
}

/* ---- the end ---- */

static void append_and_wait_fn(void *argument) RON_BLOCKS
{
    struct world *world = argument;
    const struct ron_slice part = RON_SLICE("record");
    uint64_t index = 0;
    enum ron_err err = io_log_append_until(world->log, 5, &part, 1, RT_DEADLINE_NEVER, &index,
                                           NULL);

    RON_ASSERT(err == RON_ERR_OK || err == RON_ERR_CANCELED);
    if (err != RON_ERR_OK)
        return;
    world->appended_count++;
    err = io_log_wait(world->log, index, RT_DEADLINE_NEVER, NULL);
    RON_ASSERT(err == RON_ERR_OK); /* it was appended before the end: the writer finishes it */
    world->acknowledged = index > world->acknowledged ? index : world->acknowledged;
}

static void end_fn(void *argument) RON_BLOCKS
{
    struct io_log_options options = {.dir = "log",
                                     .name = "model",
                                     .segment_bytes = 8192,
                                     .ahead_bytes = 4096,
                                     .group_bytes = 512,
                                     .record_bytes_max = 64,
                                     .read_only = true};
    struct world *world = begin((struct io_log_options){
        .segment_bytes = 8192, .ahead_bytes = 4096, .group_bytes = 512, .record_bytes_max = 64});
    struct sh_thread *appenders[ENDERS_COUNT];
    struct io_log_recovery recovery;
    struct io_log *again = NULL;

    (void)argument;
    for (unsigned i = 0; i < ENDERS_COUNT; i++)
        appenders[i] = model_spawn("appender", append_and_wait_fn, world);
    rt_task_cancel(world->log->writer); /* what a stop of the supervisor does first */
    rt_task_cancel(world->log->ahead);
    for (unsigned i = 0; i < ENDERS_COUNT; i++)
        model_join(appenders[i]);
    model_must(io_log_close(world->log, RT_DEADLINE_NEVER, NULL));
    options.vfs = world->disk;
    model_must(log_open_idle(&options, &again, &recovery, NULL));
    RON_ASSERT(recovery.clean);
    RON_ASSERT(recovery.last_index == world->appended_count);
    RON_ASSERT(world->acknowledged <= recovery.last_index);
    log_destroy(again);
    model_must(rt_supervisor_stop(world->supervisor, RT_DEADLINE_NEVER, NULL));
    rt_supervisor_free(world->supervisor);
    (void)io_vfs_free(world->disk);
    sim_outcome(world->appended_count);
    ron_mem_free(world);
}

#define STEPS .steps_max = 50000
static const struct model_case linger_cases[] = {
    {.config = {.preemption_bound = NONE, STEPS}, .strategy = SIM_STRATEGY_RANDOM, .runs_max = 300},
    {.config = {.preemption_bound = NONE, STEPS}, .cache = true},
};
static const struct model_case zeros_cases[] = {
    {.config = {.preemption_bound = NONE, STEPS}, .strategy = SIM_STRATEGY_RANDOM, .runs_max = 300},
};
static const struct model_case few_zeros_cases[] = {
    {.config = {.preemption_bound = 0, STEPS}, .cache = true},
};
static const struct model_case fewest_zeros_cases[] = {
    {.config = {.preemption_bound = 1, STEPS}, .cache = true},
};
static const struct model_case nudge_cases[] = {
    {.config = {.preemption_bound = NONE, STEPS}, .cache = true},
    {.config = {.preemption_bound = 1, .fine = 1, STEPS}, .cache = true},
};
static const struct model_case end_cases[] = {
    {.config = {.preemption_bound = 1, STEPS}, .cache = true},
    {.config = {.preemption_bound = 2, STEPS}, .cache = true, .slow = true},
    {.config = {.preemption_bound = NONE, .fine = 1, .spurious = 2, STEPS},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 1000},
    {.config = {.preemption_bound = NONE, STEPS}, .strategy = SIM_STRATEGY_PCT, .runs_max = 2000},
};
MODEL(log_linger, "a group lingers as long as it may, unless somebody waits", linger_fn, NULL,
      linger_cases);
MODEL(log_nudge, "who waits for a record or a nudge is woken by the nudge", nudged_fn, NULL,
      nudge_cases);
MODEL(log_zeros, "zeros ahead of a log are written at their rate", zeros_fn,
      MODEL_CONST(many_records), zeros_cases);
MODEL(log_few_zeros, "the same for few records", zeros_fn, MODEL_CONST(few_records),
      few_zeros_cases);
MODEL(log_fewest_zeros, "the same for as few as a small segment needs", zeros_fn,
      MODEL_CONST(fewest_records), fewest_zeros_cases);
MODEL(log_end, "the log's tasks end while others append and wait", end_fn, NULL, end_cases);
