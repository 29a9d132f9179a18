/*
 * log.c - the durable log with its two tasks on a disk in memory: crashed anywhere, and on a disk
 * that fails.
 *
 * In every schedule: what a wait answered "durable" for is found by the next process, in order and
 * unchanged, and so is what an open has found, in the cache or on the disk, even if its sync had
 * failed before; what was never appended is not; everybody who waits is answered; a log that says
 * it was closed well holds all that was appended. Planted: a disk whose sync lies.
 *
 * A run has some hundred points, so seeds and few preemptions explore it, not all schedules. Lives
 * are small enough for all of them: a log that is born already is opened once, crashed anywhere,
 * and looked at without tasks.
 */
#include "io/log_impl.h"

#include "base/mem.h"
#include "models/sim_disk.h"
#include "models/support.h"
#include "rt/registry.h"
#include "rt/supervisor.h"

enum { APPENDERS_MAX = 2, LIFE_RECORD_MAX = 9000 };

struct shape {
    const struct io_faulty_options *disk;
    unsigned appenders_count, records_each;
    size_t record_size; /* in lives */
    bool direct;        /* past the system's cache */
    bool seeks;         /* asserts that no tail holds parts of two groups: it must be found */
};
static const struct shape honest = {&sim_disk_honest, 2, 2}, failing = {&sim_disk_failing, 2, 2},
                          lying = {&sim_disk_lying, 2, 2}, small = {&sim_disk_honest, 1, 1},
                          small_failing = {&sim_disk_failing, 1, 1},
                          direct = {&sim_disk_honest, 2, 2, .direct = true},
                          direct_failing = {&sim_disk_failing, 2, 2, .direct = true};
/* Lives. A record that is written at once, and one of which pages are written before its end. */
static const struct shape life = {&sim_disk_honest, 1, 1, 6},
                          life_of_two = {&sim_disk_honest, 2, 1, 6},
                          life_failing = {&sim_disk_failing, 2, 1, 6},
                          life_in_pieces = {&sim_disk_honest, 1, 1, 9000},
                          life_of_two_in_pieces = {&sim_disk_honest, 2, 1, 9000},
                          life_of_two_torn = {&sim_disk_honest, 2, 1, 9000, .seeks = true},
                          life_direct = {&sim_disk_honest, 2, 1, 6, .direct = true},
                          life_direct_failing = {&sim_disk_failing, 2, 1, 6, .direct = true},
                          life_lying = {&sim_disk_lying, 1, 1, 6};

struct world {
    const struct shape *shape;
    struct sim_disk disk;
    uint64_t acknowledged;
    uint64_t appended_count, refused_count;
    unsigned opens_failed;
    unsigned early_count; /* lives in which pages were written before the end of their group */
};
struct process {
    struct world *world;
    struct io_log *log;
};

/* A record tells its number; ret false when the log does not go on. */
static bool append_one(struct process *process) RON_BLOCKS
{
    struct world *world = process->world;
    uint64_t index = 0;
    const struct ron_slice part = RON_SLICE("record");
    enum ron_err err = io_log_append_until(process->log, 5, &part, 1, RT_DEADLINE_NEVER, &index,
                                           NULL);

    if (err == RON_ERR_OK) {
        world->appended_count++;
        err = io_log_wait(process->log, index, RT_DEADLINE_NEVER, NULL);
    }
    if (err == RON_ERR_OK && index > world->acknowledged)
        world->acknowledged = index;
    RON_ASSERT(err == RON_ERR_OK || err == RON_ERR_IO || err == RON_ERR_CANCELED ||
               err == RON_ERR_PERSISTENCE_FULL);
    world->refused_count += err != RON_ERR_OK;
    return err == RON_ERR_OK;
}

static void appender_fn(void *argument) RON_BLOCKS
{
    struct process *process = argument;

    for (unsigned i = 0; i < process->world->shape->records_each && append_one(process); i++)
        ;
}

/* Read them all, unless a read fails. */
static void check_records(struct io_log *log, uint64_t expected) RON_BLOCKS
{
    struct io_log_reader *reader = NULL;
    struct io_frame frame;
    uint64_t last = 0;
    enum ron_err err;

    model_must(io_log_reader_new(log, 1, &reader, NULL));
    while ((err = io_log_reader_next(reader, &frame, NULL)) == RON_ERR_OK) {
        RON_ASSERT(frame.index == last + 1);
        RON_ASSERT(frame.type == 5);
        RON_ASSERT(ron_slice_equal(frame.body, RON_SLICE("record")));
        last = frame.index;
    }
    RON_ASSERT(err == RON_ERR_IO || last == expected);
    io_log_reader_free(reader);
}

static enum ron_err open_log(struct world *world, struct io_vfs *vfs,
                             struct rt_supervisor *supervisor, struct io_log **ret_log) RON_BLOCKS
{
    const struct io_log_options options = {.vfs = vfs,
                                           .dir = "log",
                                           .name = "model",
                                           .segment_bytes = 8192,
                                           .ahead_bytes = 4096,
                                           .group_bytes = 512,
                                           .record_bytes_max = 64,
                                           .direct = world->shape->direct,
                                           .supervisor = supervisor};
    struct io_log_recovery recovery;
    enum ron_err err = io_log_open(&options, ret_log, &recovery, NULL);

    if (err == RON_ERR_OK) {
        RON_ASSERT(recovery.last_index >= world->acknowledged);
        RON_ASSERT(recovery.last_index <= world->appended_count + world->refused_count);
        check_records(*ret_log, recovery.last_index);
        if (recovery.last_index > world->acknowledged)
            world->acknowledged = recovery.last_index; /* what is found is durable */
    }
    return err;
}

static void process_fn(void *argument) RON_BLOCKS
{
    struct world *world = argument;
    const struct rt_supervisor_options supervisor_options = {
        .name = "root", .owner = "model", .tasks_max = 4};
    struct rt_supervisor *supervisor = NULL;
    const unsigned appenders_count = world->shape->appenders_count;
    struct sh_thread *appenders[APPENDERS_MAX];
    struct process process = {.world = world};
    enum ron_err err;

    rt_init(); /* what a crashed process had registered is forgotten */
    model_must(rt_supervisor_new(&supervisor_options, &supervisor, NULL));
    err = open_log(world, world->disk.vfs, supervisor, &process.log);
    if (err == RON_ERR_OK) {
        for (unsigned i = 0; i < appenders_count; i++)
            appenders[i] = model_spawn("appender", appender_fn, &process);
        for (unsigned i = 0; i < appenders_count; i++)
            model_join(appenders[i]);
        err = io_log_close(process.log, RT_DEADLINE_NEVER, NULL);
        RON_ASSERT(err == RON_ERR_OK || world->disk.options->choices != 0);
    } else {
        RON_ASSERT(world->disk.options->choices != 0);
        world->opens_failed++;
    }
    model_must(rt_supervisor_stop(supervisor, RT_DEADLINE_NEVER, NULL));
    rt_supervisor_free(supervisor);
}

static void log_fn(void *argument) RON_BLOCKS
{
    struct world *world = model_alloc(sizeof(*world));
    unsigned crashes_count = 0;

    world->shape = argument;
    sim_disk_init(&world->disk, world->shape->disk);
    while (sim_node_wait(sim_node_start("process", true, process_fn, world))) {
        crashes_count++;
        sim_disk_crash(&world->disk);
    }
    sim_disk_crash(&world->disk); /* the power goes when all is done */
    sim_disk_set(&world->disk, &sim_disk_honest);
    (void)sim_node_wait(sim_node_start("last process", false, process_fn, world));
    sim_outcome((uint64_t)crashes_count << 16 | world->acknowledged);
    sim_disk_fini(&world->disk);
    ron_mem_free(world);
}

/* ---- One life, crashed anywhere, and a look at what it left ---- */

static struct io_log_options life_options(const struct world *world)
{
    return (struct io_log_options){.vfs = world->disk.vfs,
                                   .dir = "log",
                                   .name = "model",
                                   .segment_bytes = world->shape->appenders_count > 1 ? 32768
                                                                                      : 16384,
                                   .ahead_bytes = 4096,
                                   .group_bytes = 512,
                                   .early_bytes = 4096,
                                   .record_bytes_max = LIFE_RECORD_MAX,
                                   .direct = world->shape->direct};
}

/* Open without tasks: one way to go only. Says what is there, all of it whole. */
static uint64_t look(struct world *world) RON_BLOCKS
{
    static const uint8_t zeros[LIFE_RECORD_MAX];
    const struct io_log_options options = life_options(world);
    struct io_log_recovery recovery;
    struct io_log_reader *reader = NULL;
    struct io_log *log = NULL;
    struct io_frame frame;

    model_must(log_open_idle(&options, &log, &recovery, NULL));
    if (world->shape->seeks)
        RON_ASSERT(recovery.torn_bytes <=
                   io_frame_size(world->shape->record_size) + IO_COMMIT_SIZE);
    model_must(io_log_reader_new(log, 1, &reader, NULL));
    for (uint64_t i = 1; i <= recovery.last_index; i++) {
        model_must(io_log_reader_next(reader, &frame, NULL));
        RON_ASSERT(frame.index == i);
        RON_ASSERT(ron_slice_equal(frame.body, ron_slice_of(zeros, world->shape->record_size)));
    }
    io_log_reader_free(reader);
    log_destroy(log);
    return recovery.last_index;
}

/* One record, then a wait for it. */
static void life_append_fn(void *argument) RON_BLOCKS
{
    static const uint8_t zeros[LIFE_RECORD_MAX];
    struct process *process = argument;
    struct world *world = process->world;
    const struct ron_slice part = {zeros, world->shape->record_size};
    uint64_t index = 0;
    enum ron_err err = io_log_append_until(process->log, 5, &part, 1, RT_DEADLINE_NEVER, &index,
                                           NULL);

    world->appended_count += err == RON_ERR_OK;
    if (err == RON_ERR_OK)
        err = io_log_wait(process->log, index, RT_DEADLINE_NEVER, NULL);
    if (err == RON_ERR_OK && index > world->acknowledged)
        world->acknowledged = index;
    RON_ASSERT(err == RON_ERR_OK || world->disk.options->choices != 0);
}

static void life_fn(void *argument) RON_BLOCKS
{
    const struct rt_supervisor_options supervisor_options = {
        .name = "root", .owner = "model", .tasks_max = 4};
    struct world *world = argument;
    struct io_log_options options = life_options(world);
    struct process process = {.world = world};
    struct sh_thread *other = NULL;
    struct io_log_recovery recovery;
    enum ron_err err;

    rt_init();
    model_must(rt_supervisor_new(&supervisor_options, &options.supervisor, NULL));
    err = io_log_open(&options, &process.log, &recovery, NULL);
    if (err == RON_ERR_OK) {
        if (world->shape->appenders_count > 1)
            other = model_spawn("appender", life_append_fn, &process);
        life_append_fn(&process);
        if (other != NULL)
            model_join(other);
        world->early_count += io_log_get_stats(process.log).early_bytes > 0;
        err = io_log_close(process.log, RT_DEADLINE_NEVER, NULL);
    }
    RON_ASSERT(err == RON_ERR_OK || world->disk.options->choices != 0);
    model_must(rt_supervisor_stop(options.supervisor, RT_DEADLINE_NEVER, NULL));
    rt_supervisor_free(options.supervisor);
}

static void lives_fn(void *argument) RON_BLOCKS
{
    struct world *world = model_alloc(sizeof(*world));
    uint64_t found;

    world->shape = argument;
    sim_disk_init(&world->disk, &sim_disk_honest);
    RON_ASSERT(look(world) == 0); /* is born by it */
    sim_disk_set(&world->disk, world->shape->disk);
    (void)sim_node_wait(sim_node_start("process", true, life_fn, world));
    sim_disk_crash(&world->disk);
    sim_disk_set(&world->disk, &sim_disk_honest);
    found = look(world);
    RON_ASSERT(found >= world->acknowledged);
    RON_ASSERT(found <= world->shape->appenders_count);
    sim_outcome(world->acknowledged << 8 | found << 4 | world->early_count);
    sim_disk_fini(&world->disk);
    ron_mem_free(world);
}

/* A sync fails, the process ends, and the next one finds in the cache what the disk
 * does not have; then the power goes. */
static void unsynced_fn(void *argument) RON_BLOCKS
{
    struct world *world = model_alloc(sizeof(*world));
    const struct io_fault fault = {.kind = IO_FAULT_SYNC_EIO,
                                   .call = IO_CALL_SYNC,
                                   .path_prefix = sim_choose(2, "of any") == 1 ? NULL : "log/seg",
                                   .at = 1 + sim_choose(8, "fails at"),
                                   .times = 1};
    const struct io_faulty_options options = {
        .faults = &fault, .faults_count = 1, .choices = 1u << IO_FAULT_SYNC_EIO};

    (void)argument;
    world->shape = &honest;
    sim_disk_init(&world->disk, &options);
    (void)sim_node_wait(sim_node_start("process", false, process_fn, world));
    (void)sim_node_wait(sim_node_start("next process", false, process_fn, world));
    sim_disk_crash(&world->disk);
    sim_disk_set(&world->disk, &sim_disk_honest);
    (void)sim_node_wait(sim_node_start("last process", false, process_fn, world));
    sim_outcome(world->acknowledged);
    sim_disk_fini(&world->disk);
    ron_mem_free(world);
}

#define STEPS .steps_max = 50000
static const struct model_case log_cases[] = {
    {.config = {.preemption_bound = NONE, .crashes = 2, STEPS},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 3000},
    {.config = {.preemption_bound = NONE, .crashes = 1, .fine = 1, .spurious = 2, STEPS},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 200},
    {.config = {.preemption_bound = NONE, .crashes = 1, STEPS},
     .strategy = SIM_STRATEGY_PCT,
     .runs_max = 3000},
    {.config = {.preemption_bound = 0, .crashes = 1, STEPS}, .runs_max = 5000},
};
static const struct model_case log_faults_cases[] = {
    {.config = {.preemption_bound = NONE, .crashes = 1, .faults = 2, STEPS},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 3000},
    {.config = {.preemption_bound = 0, .faults = 1, STEPS}, .runs_max = 3000},
};
static const struct model_case log_small_cases[] = {
    {.config = {.preemption_bound = 1, STEPS}, .cache = true},
    {.config = {.preemption_bound = 2, STEPS}, .cache = true, .slow = true},
    {.config = {.preemption_bound = 0, .crashes = 1, STEPS}, .cache = true, .slow = true},
};
static const struct model_case log_small_faults_cases[] = {
    {.config = {.preemption_bound = 0, .faults = 1, STEPS}, .cache = true},
    {.config = {.preemption_bound = 1, .faults = 1, STEPS}, .cache = true, .slow = true},
};
static const struct model_case life_cases[] = {
    {.config = {.preemption_bound = NONE, .crashes = 1, STEPS}, .cache = true},
};
static const struct model_case life_faults_cases[] = {
    {.config = {.preemption_bound = 1, .faults = 1, STEPS}, .cache = true},
    {.config = {.preemption_bound = 2, .faults = 1, STEPS}, .cache = true, .slow = true},
};
static const struct model_case life_in_pieces_cases[] = {
    {.config = {.preemption_bound = 1, .crashes = 1, STEPS}, .cache = true},
    {.config = {.preemption_bound = 2, .crashes = 1, STEPS}, .cache = true, .slow = true},
};
static const struct model_case life_of_two_torn_cases[] = {
    {.config = {.preemption_bound = 1, .crashes = 1, STEPS},
     .cache = true,
     .expected = SIM_ASSERTION,
     .message = "recovery.torn_bytes"},
};
static const struct model_case life_planted_cases[] = {
    {.config = {.preemption_bound = 1, .faults = 1, STEPS},
     .cache = true,
     .expected = SIM_ASSERTION},
};
static const struct model_case log_planted_cases[] = {
    {.config = {.preemption_bound = NONE, .faults = 3, STEPS},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 3000,
     .expected = SIM_ASSERTION},
};
static const struct model_case log_unsynced_cases[] = {
    {.config = {.preemption_bound = NONE, STEPS}, .strategy = SIM_STRATEGY_RANDOM, .runs_max = 500},
};
MODEL(log_crash, "a log with two appenders, crashed anywhere, opened again", log_fn,
      MODEL_CONST(honest), log_cases);
MODEL(log_faults, "the same on a disk that fails and says so", log_fn, MODEL_CONST(failing),
      log_faults_cases);
MODEL(log_direct, "a log written past the cache, crashed anywhere, opened again", log_fn,
      MODEL_CONST(direct), log_cases);
MODEL(log_direct_faults, "the same on a disk that fails and says so", log_fn,
      MODEL_CONST(direct_failing), log_faults_cases);
MODEL(log_small, "a log with one appender and one record, crashed anywhere", log_fn,
      MODEL_CONST(small), log_small_cases);
MODEL(log_small_faults, "the same on a disk that fails and says so", log_fn,
      MODEL_CONST(small_failing), log_small_faults_cases);
MODEL(log_life, "a log and one record, crashed anywhere, looked at", lives_fn, MODEL_CONST(life),
      life_cases);
MODEL(log_life_of_two, "the same with two appenders", lives_fn, MODEL_CONST(life_of_two),
      life_cases);
MODEL(log_life_faults, "the same on a disk that fails and says so", lives_fn,
      MODEL_CONST(life_failing), life_faults_cases);
MODEL(log_life_direct, "two appenders of a log written past the cache, crashed anywhere", lives_fn,
      MODEL_CONST(life_direct), life_cases);
MODEL(log_life_direct_faults, "the same on a disk that fails and says so", lives_fn,
      MODEL_CONST(life_direct_failing), life_faults_cases);
MODEL(log_life_in_pieces, "a record of which pages are written before its end, crashed anywhere",
      lives_fn, MODEL_CONST(life_in_pieces), life_in_pieces_cases);
MODEL(log_life_two_in_pieces,
      "two such records: pages of the second are written while the first is synced", lives_fn,
      MODEL_CONST(life_of_two_in_pieces), life_in_pieces_cases);
MODEL(log_life_two_torn, "the same; a crash that leaves parts of both must be found", lives_fn,
      MODEL_CONST(life_of_two_torn), life_of_two_torn_cases);
MODEL(log_life_planted, "a log and one record on a disk whose sync lies", lives_fn,
      MODEL_CONST(life_lying), life_planted_cases);
MODEL(log_unsynced, "a sync fails, the next process finds it all the same, the power goes",
      unsynced_fn, NULL, log_unsynced_cases);
MODEL(log_planted, "a log on a disk whose sync lies", log_fn, MODEL_CONST(lying),
      log_planted_cases);
