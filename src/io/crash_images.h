/*
 * crash_images.h - every way a crash now could leave a file system in memory: for tests and models.
 *
 * Up to IO_CRASH_SUBSETS_MAX unsynced changes: all subsets of them. Beyond that: every prefix,
 * every single loss, and seeded subsets. In both cases every tear of the last write at a sector of
 * its file, all before it kept.
 */
#ifndef RON_IO_CRASH_IMAGES_H
#define RON_IO_CRASH_IMAGES_H

#include "io/vfs_memory.h"

enum { IO_CRASH_SUBSETS_MAX = 8, IO_CRASH_SEEDED = 256 };

/* X(name): how the plan of an image was made. */
#define IO_CRASH_CLASS_MAP(X) X(subset) X(prefix) X(loss) X(seeded) X(tear)
enum io_crash_class {
#define X(name) IO_CRASH_##name,
    IO_CRASH_CLASS_MAP(X)
#undef X
        IO_CRASH__MAX
};
const char *io_crash_class_name(enum io_crash_class class);

struct io_crash_options {
    uint64_t seed;
    uint64_t tears_max; /* 0: all; else so many, spread evenly */
};
struct io_crash_counts {
    uint64_t images[IO_CRASH__MAX];
};

/* Look at one image, recover it, change it as you like; it is freed afterwards. Return false to
 * stop. */
typedef bool io_crash_fn(void *context, struct io_vfs *image, const struct io_crash_plan *plan,
                         enum io_crash_class class);
/* Make the images one after the other. *counts is added to. */
enum ron_err io_crash_images(const struct io_vfs *vfs, const struct io_crash_options *options,
                             io_crash_fn *fn, void *context, struct io_crash_counts *counts,
                             struct ron_errinfo *reterr) RON_MUST_USE;
/* One image: each change is kept or lost as the seed says. */
enum ron_err io_crash_seeded(const struct io_vfs *vfs, uint64_t seed, struct io_vfs **ret_image,
                             struct ron_errinfo *reterr) RON_MUST_USE;

#endif
