/*
 * crash.c - a log whose writer crashes anywhere: what was acknowledged must survive.
 *
 * The disk belongs to the world. Written records are in its cache; a sync makes them durable; a
 * crash keeps the durable ones and any prefix of the rest. The planted bug acknowledges before the
 * sync: no kill of a process would ever show it.
 */
#include "base/mem.h"
#include "models/support.h"

enum { RECORDS_COUNT = 2 };

struct disk {
    unsigned written_count; /* in the cache */
    unsigned durable_count;
};

struct world {
    struct disk disk;
    unsigned acknowledged_count; /* what clients were told */
    bool early;                  /* planted */
};

static void disk_append(struct disk *disk)
{
    sim_point("write");
    disk->written_count++;
}

static void disk_sync(struct disk *disk)
{
    sim_point("sync");
    disk->durable_count = disk->written_count;
}

/* The machine stops: any prefix of what was only cached may have reached the platter. */
static void disk_crash(struct disk *disk)
{
    unsigned unsynced_count = disk->written_count - disk->durable_count;

    disk->durable_count += sim_choose(unsynced_count + 1, "how much survives");
    disk->written_count = disk->durable_count;
}

static void acknowledge(struct world *world)
{
    sim_point("acknowledge");
    world->acknowledged_count++;
}

static void writer_fn(void *argument)
{
    struct world *world = argument;
    /* Memory of the process, which a crash takes with it. */
    unsigned *recovered_count = model_alloc(sizeof(*recovered_count));

    *recovered_count = world->disk.durable_count;
    while (*recovered_count < RECORDS_COUNT) {
        disk_append(&world->disk);
        if (world->early)
            acknowledge(world);
        disk_sync(&world->disk);
        if (!world->early && world->acknowledged_count <= *recovered_count)
            acknowledge(world);
        *recovered_count += 1;
    }
    ron_mem_free(recovered_count);
}

static void check_world(void *context)
{
    const struct world *world = context;

    RON_ASSERT(world->disk.durable_count <= world->disk.written_count);
    RON_ASSERT(world->acknowledged_count <= world->disk.written_count);
}

static void crash_fn(void *argument)
{
    struct world *world = model_alloc(sizeof(*world));
    unsigned crashes_count = 0;

    world->early = argument == PLANTED;
    sim_set_check(check_world, world);
    while (sim_node_wait(sim_node_start("writer", true, writer_fn, world))) {
        crashes_count++;
        disk_crash(&world->disk);
        RON_ASSERT(world->acknowledged_count <= world->disk.durable_count);
    }
    RON_ASSERT(world->disk.durable_count == RECORDS_COUNT);
    sim_outcome((uint64_t)crashes_count << 32 | world->acknowledged_count);
    sim_set_check(NULL, NULL);
    ron_mem_free(world);
}

static const struct model_case crash_cases[] = {
    {.config = {.preemption_bound = NONE}, .schedules_count = 1},
    {.config = {.preemption_bound = NONE, .crashes = 1}},
    {.config = {.preemption_bound = NONE, .crashes = 2}},
    {.config = {.preemption_bound = NONE, .crashes = 2}, .compare = true},
    {.config = {.preemption_bound = NONE, .crashes = 2, .fine = 1}, .compare = true},
    {.config = {.preemption_bound = NONE, .crashes = 2}, .strategy = SIM_STRATEGY_RANDOM},
};
static const struct model_case crash_planted_cases[] = {
    {.config = {.preemption_bound = NONE}}, /* without a crash it is right */
    {.config = {.preemption_bound = NONE, .crashes = 1}, .expected = SIM_ASSERTION},
    {.config = {.preemption_bound = 0, .crashes = 1}, .cache = true, .expected = SIM_ASSERTION},
    {.config = {.preemption_bound = NONE, .crashes = 1},
     .strategy = SIM_STRATEGY_RANDOM,
     .expected = SIM_ASSERTION},
};
MODEL(crash, "a log that acknowledges after the sync, crashed anywhere", crash_fn, NULL,
      crash_cases);
MODEL(crash_planted, "a log that acknowledges before the sync", crash_fn, PLANTED,
      crash_planted_cases);
