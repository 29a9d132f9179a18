/*
 * sim_disk.h - the disk of a process that crashes: in memory, behind one that fails on purpose.
 *
 * It belongs to the world and outlives the process. At a crash any subset of the last few unsynced
 * changes survives, all or none of those before them, and the last write that survives may be torn
 * at a sector.
 */
#ifndef RON_MODELS_SIM_DISK_H
#define RON_MODELS_SIM_DISK_H

#include "io/vfs_faulty.h"
#include "io/vfs_memory.h"

struct sim_disk {
    struct io_vfs *memory;
    struct io_vfs *vfs; /* what the process is given */
    const struct io_faulty_options *options;
    uint64_t faults[IO_FAULT__MAX]; /* that struck, in layers that are gone */
    uint64_t tears_count;
};

/* The options are borrowed. */
void sim_disk_init(struct sim_disk *disk, const struct io_faulty_options *options);
void sim_disk_fini(struct sim_disk *disk);
/* From now on it fails like this. Between two processes. */
void sim_disk_set(struct sim_disk *disk, const struct io_faulty_options *options);
void sim_disk_crash(struct sim_disk *disk);
/* How many faults struck, of all kinds, since it was made. */
uint64_t sim_disk_faults(const struct sim_disk *disk);

extern const struct io_faulty_options sim_disk_honest, sim_disk_failing, sim_disk_lying;

#endif
