/*
 * disk.c - the file system in memory, crashed anywhere: what a sync covered is always there.
 *
 * Two writers of one process share a file system, each with its own file: write, sync, tell the
 * world. The process crashes at any point; of what was not synced any subset survives; the next
 * process finds the rest and goes on. Faults may strike through the faulty file system in between:
 * an honest failure is not acknowledged. Planted: a disk whose syncs lie.
 */
#include "base/mem.h"
#include "io/vfs_faulty.h"
#include "io/vfs_memory.h"
#include "models/support.h"

enum { WRITERS_COUNT = 2 };

struct world {
    struct io_vfs *disk;
    struct io_vfs *faulty; /* in front of it */
    const struct io_faulty_options *options;
    bool told[WRITERS_COUNT]; /* the writer's byte was acknowledged */
    unsigned refused_count;
};
struct writer {
    struct world *world;
    unsigned index;
};

static const char *const paths[WRITERS_COUNT] = {"a", "b"};

/* A byte in the second sector, so that a write 512 bytes away would be seen. */
static void write_fn(void *argument) RON_BLOCKS
{
    struct writer *writer = argument;
    struct world *world = writer->world;
    struct io_file *file = NULL;
    uint8_t found = 0;
    size_t size = 0;
    enum ron_err err = io_vfs_open(world->faulty, paths[writer->index], IO_OPEN_WRITE, &file, NULL);

    if (err == RON_ERR_OK)
        err = io_file_read(file, 512, &found, 1, &size, NULL);
    if (err == RON_ERR_OK && (size == 0 || found != 'x'))
        err = io_file_write(file, 512, &RON_SLICE("x"), 1, NULL);
    if (err == RON_ERR_OK) /* also when it was found: it may be there only by luck */
        err = io_file_sync(file, NULL);
    if (err == RON_ERR_OK)
        world->told[writer->index] = true;
    else
        world->refused_count++;
    (void)io_file_close(file);
}

static void process_fn(void *argument) RON_BLOCKS
{
    struct writer writers[WRITERS_COUNT];
    struct sh_thread *threads[WRITERS_COUNT];

    for (unsigned i = 0; i < WRITERS_COUNT; i++) {
        writers[i] = (struct writer){argument, i};
        threads[i] = model_spawn(paths[i], write_fn, &writers[i]);
    }
    for (unsigned i = 0; i < WRITERS_COUNT; i++)
        model_join(threads[i]);
}

static void start_disk(struct world *world, struct io_vfs *disk)
{
    world->disk = disk;
    model_must(io_vfs_faulty_new(disk, world->options, &world->faulty, NULL));
}

static void check_disk(struct world *world) RON_BLOCKS
{
    for (unsigned i = 0; i < WRITERS_COUNT; i++) {
        struct io_file *file = NULL;
        uint8_t found = 0;
        size_t size = 0;

        model_must(io_vfs_open(world->disk, paths[i], IO_OPEN_READ, &file, NULL));
        model_must(io_file_read(file, 512, &found, 1, &size, NULL));
        (void)io_file_close(file);
        if (world->told[i]) {
            RON_ASSERT(size == 1); /* synced bytes are there */
            RON_ASSERT(found == 'x');
        }
    }
}

/* The machine stops: any subset of what was not synced may have reached the disk. */
static void crash_disk(struct world *world) RON_BLOCKS
{
    size_t count = io_memory_unsynced_count(world->disk);
    uint8_t keep;
    struct io_vfs *image = NULL;

    RON_ASSERT(count <= WRITERS_COUNT);
    keep = (uint8_t)sim_choose(1u << count, "what survives");
    model_must(
        io_memory_crash(world->disk, &(struct io_crash_plan){&keep, SIZE_MAX, 0}, &image, NULL));
    (void)io_vfs_free(world->faulty);
    (void)io_vfs_free(world->disk);
    start_disk(world, image);
    check_disk(world);
}

static void disk_fn(void *argument) RON_BLOCKS
{
    struct world *world = model_alloc(sizeof(*world));
    struct io_vfs *disk = NULL;
    unsigned crashes_count = 0;

    world->options = argument;
    model_must(io_vfs_memory_new(NULL, &disk, NULL));
    for (unsigned i = 0; i < WRITERS_COUNT; i++) {
        struct io_file *file = NULL;

        model_must(io_vfs_open(disk, paths[i], IO_OPEN_CREATE, &file, NULL));
        (void)io_file_close(file);
    }
    model_must(io_vfs_sync_dir(disk, "", NULL));
    start_disk(world, disk);
    while (sim_node_wait(sim_node_start("process", true, process_fn, world))) {
        crashes_count++;
        crash_disk(world);
    }
    crash_disk(world); /* the power goes when all is done */
    RON_ASSERT(world->refused_count > 0 || (world->told[0] && world->told[1]));
    sim_outcome((uint64_t)crashes_count << 8 | (uint64_t)world->refused_count << 4 |
                (uint64_t)world->told[1] << 1 | (uint64_t)world->told[0]);
    (void)io_vfs_free(world->faulty);
    (void)io_vfs_free(world->disk);
    ron_mem_free(world);
}

static const struct io_faulty_options honest = {0};
static const struct io_faulty_options failing = {
    .choices = 1u << IO_FAULT_EIO | 1u << IO_FAULT_ENOSPC | 1u << IO_FAULT_SHORT_WRITE |
               1u << IO_FAULT_SYNC_EIO | 1u << IO_FAULT_SLOW,
    .slow_ms = 10};
static const struct io_faulty_options lying = {.choices = 1u << IO_FAULT_LYING_SYNC};

static const struct model_case disk_cases[] = {
    {.config = {.preemption_bound = NONE, .crashes = 1},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 2000},
    {.config = {.preemption_bound = 2, .crashes = 1, .fine = 1},
     .strategy = SIM_STRATEGY_PCT,
     .runs_max = 2000},
    {.config = {.preemption_bound = NONE, .crashes = 1}, .cache = true},
    {.config = {.preemption_bound = 2, .crashes = 1}},
    {.config = {.preemption_bound = 1, .crashes = 1, .fine = 1}, .cache = true},
    {.config = {.preemption_bound = NONE, .crashes = 1}, .slow = true},
    {.config = {.preemption_bound = 1, .crashes = 1}, .compare = true},
};
static const struct model_case disk_faults_cases[] = {
    {.config = {.preemption_bound = NONE, .crashes = 2, .faults = 3},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 5000},
    {.config = {.preemption_bound = 1, .crashes = 1, .faults = 1}},
    {.config = {.preemption_bound = NONE, .crashes = 1, .faults = 1}, .cache = true},
};
static const struct model_case disk_planted_cases[] = {
    {.config = {.preemption_bound = 0, .crashes = 1}}, /* without the fault it is right */
    {.config = {.preemption_bound = 0, .faults = 1}, .expected = SIM_ASSERTION},
    {.config = {.preemption_bound = NONE, .crashes = 1, .faults = 1},
     .strategy = SIM_STRATEGY_RANDOM,
     .expected = SIM_ASSERTION},
};
MODEL(disk, "two writers on a disk in memory, crashed anywhere", disk_fn, MODEL_CONST(honest),
      disk_cases);
MODEL(disk_faults, "the same on a disk that fails and says so", disk_fn, MODEL_CONST(failing),
      disk_faults_cases);
MODEL(disk_planted, "a disk whose sync lies", disk_fn, MODEL_CONST(lying), disk_planted_cases);
