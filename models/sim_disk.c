/*
 * sim_disk.c - see sim_disk.h.
 */
#include "models/sim_disk.h"

#include "base/mem.h"
#include "models/support.h"

enum { SURVIVE_MAX = 6 };

const struct io_faulty_options sim_disk_honest = {0};
const struct io_faulty_options sim_disk_failing = {
    .choices = 1u << IO_FAULT_EIO | 1u << IO_FAULT_ENOSPC | 1u << IO_FAULT_SHORT_WRITE |
               1u << IO_FAULT_SYNC_EIO};
const struct io_faulty_options sim_disk_lying = {.choices = 1u << IO_FAULT_LYING_SYNC};

static void put_layer(struct sim_disk *disk, struct io_vfs *memory,
                      const struct io_faulty_options *options)
{
    disk->memory = memory;
    disk->options = options;
    model_must(io_vfs_faulty_new(memory, options, &disk->vfs, NULL));
}

static void drop_layer(struct sim_disk *disk)
{
    for (unsigned kind = 0; kind < IO_FAULT__MAX; kind++)
        disk->faults[kind] += io_faulty_count(disk->vfs, kind);
    disk->vfs = io_vfs_free(disk->vfs);
}

void sim_disk_init(struct sim_disk *disk, const struct io_faulty_options *options)
{
    struct io_vfs *memory = NULL;

    *disk = (struct sim_disk){0};
    model_must(io_vfs_memory_new(NULL, &memory, NULL));
    put_layer(disk, memory, options);
}

void sim_disk_fini(struct sim_disk *disk)
{
    drop_layer(disk);
    disk->memory = io_vfs_free(disk->memory);
}

uint64_t sim_disk_faults(const struct sim_disk *disk)
{
    uint64_t count = 0;

    for (unsigned kind = 0; kind < IO_FAULT__MAX; kind++)
        count += disk->faults[kind] + io_faulty_count(disk->vfs, kind);
    return count;
}

void sim_disk_set(struct sim_disk *disk, const struct io_faulty_options *options)
{
    drop_layer(disk);
    put_layer(disk, disk->memory, options);
}

/* The last write that is kept loses its end, at a sector of the disk. */
static void choose_tear(struct sim_disk *disk, const uint8_t *keep, size_t count,
                        struct io_crash_plan *plan)
{
    for (size_t i = count; i-- > 0;) {
        struct io_memory_change change;
        uint64_t first, sectors_count;

        if ((keep[i / 8] >> i % 8 & 1) == 0)
            continue;
        change = io_memory_unsynced(disk->memory, i);
        if (change.kind != IO_CHANGE_WRITE)
            return;
        first = IO_SECTOR - change.offset % IO_SECTOR; /* bytes up to the first boundary */
        if (change.size <= first)
            return;
        sectors_count = (change.size - first - 1) / IO_SECTOR + 1;
        if (sim_choose(2, "torn") == 0)
            return;
        plan->torn = i;
        plan->torn_bytes = first;
        if (sectors_count > 1)
            plan->torn_bytes += IO_SECTOR *
                                (uint64_t)sim_choose(
                                    sectors_count > 64 ? 64u : (unsigned)sectors_count, "torn at");
        disk->tears_count++;
        return;
    }
}

void sim_disk_crash(struct sim_disk *disk)
{
    const size_t count = io_memory_unsynced_count(disk->memory);
    const size_t chosen = count < SURVIVE_MAX ? count : SURVIVE_MAX;
    uint8_t *keep = model_alloc(count / 8 + 1);
    struct io_crash_plan plan = {keep, SIZE_MAX, 0};
    struct io_vfs *image = NULL;
    unsigned subset = 0;

    if (count > chosen && sim_choose(2, "what survives of the older") == 1)
        memset(keep, 0xff, count / 8 + 1);
    if (chosen > 0)
        subset = sim_choose(1u << chosen, "what survives");
    for (size_t i = 0; i < chosen; i++) {
        const size_t at = count - chosen + i;
        const uint8_t bit = (uint8_t)(1u << at % 8);

        keep[at / 8] = (uint8_t)((subset >> i & 1) != 0 ? keep[at / 8] | bit : keep[at / 8] & ~bit);
    }
    choose_tear(disk, keep, count, &plan);
    model_must(io_memory_crash(disk->memory, &plan, &image, NULL));
    drop_layer(disk);
    (void)io_vfs_free(disk->memory);
    ron_mem_free(keep);
    put_layer(disk, image, disk->options);
}
