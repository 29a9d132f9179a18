/*
 * bench_disk.h - a directory of its own below the current one, for benchmarks of files.
 */
#ifndef RON_BENCH_BENCH_DISK_H
#define RON_BENCH_BENCH_DISK_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "io/vfs.h"

struct bench_disk {
    char dir[24];
    struct io_vfs *vfs;
};

static inline void must(enum ron_err err, const struct ron_errinfo *info)
{
    if (err == RON_ERR_OK)
        return;
    (void)fprintf(stderr, "bench: %s\n", info->message);
    exit(1);
}

static inline void bench_disk_begin(struct bench_disk *disk) RON_BLOCKS
{
    struct ron_errinfo info = {0};

    (void)snprintf(disk->dir, sizeof(disk->dir), "bench-disk-XXXXXX");
    if (mkdtemp(disk->dir) == NULL)
        must(ron_fail(&info, RON_ERR_IO, "no directory can be made here"), &info);
    must(io_vfs_posix_new(disk->dir, false, &disk->vfs, &info), &info);
}

static inline bool bench_disk_remove(void *context, const char *name, bool is_dir)
{
    char path[160];

    (void)snprintf(path, sizeof(path), "%s/%s", (const char *)context, name);
    RON_MUST_ZERO(is_dir ? rmdir(path) : unlink(path));
    return true;
}

/* Removes the directory; folders in it are empty by then. */
static inline void bench_disk_end(struct bench_disk *disk) RON_BLOCKS
{
    struct ron_errinfo info = {0};

    must(io_vfs_list(disk->vfs, "", bench_disk_remove, disk->dir, &info), &info);
    disk->vfs = io_vfs_free(disk->vfs);
    RON_MUST_ZERO(rmdir(disk->dir));
}

#endif
