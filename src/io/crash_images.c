/*
 * crash_images.c - every way a crash now could leave a file system in memory. See crash_images.h.
 */
#include "io/crash_images.h"

#include "base/assert.h"
#include "base/mem.h"

struct walk {
    const struct io_vfs *vfs;
    size_t changes_count;
    uint8_t *keep;
    size_t keep_size;
    io_crash_fn *fn;
    void *context;
    struct io_crash_counts *counts;
    struct ron_errinfo *reterr;
    bool stopped;
};

const char *io_crash_class_name(enum io_crash_class class)
{
    static const char *const names[] = {
#define X(name) #name,
        IO_CRASH_CLASS_MAP(X)
#undef X
    };

    RON_ASSERT(class < IO_CRASH__MAX);
    return names[class];
}

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t mix(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void keep_bit(struct walk *walk, size_t index, bool kept)
{
    uint8_t bit = (uint8_t)(1u << index % 8);

    walk->keep[index / 8] = (uint8_t)(kept ? walk->keep[index / 8] | bit
                                           : walk->keep[index / 8] & ~bit);
}

/* Keep the first `count` and lose the others. */
static void keep_prefix(struct walk *walk, size_t count)
{
    for (size_t i = 0; i < walk->changes_count; i++)
        keep_bit(walk, i, i < count);
}

static enum ron_err show(struct walk *walk, enum io_crash_class class, size_t torn,
                         uint64_t torn_bytes)
{
    struct io_crash_plan plan = {walk->keep, torn, torn_bytes};
    struct io_vfs *image;
    enum ron_err err;

    if (walk->stopped)
        return RON_ERR_OK;
    err = io_memory_crash(walk->vfs, &plan, &image, walk->reterr);
    if (err != RON_ERR_OK)
        return err;
    walk->counts->images[class]++;
    walk->stopped = !walk->fn(walk->context, image, &plan, class);
    (void)io_vfs_free(image);
    return RON_ERR_OK;
}

static enum ron_err show_subsets(struct walk *walk)
{
    enum ron_err err = RON_ERR_OK;

    for (unsigned subset = 0; err == RON_ERR_OK && subset < 1u << walk->changes_count; subset++) {
        walk->keep[0] = (uint8_t)subset;
        err = show(walk, IO_CRASH_subset, SIZE_MAX, 0);
    }
    return err;
}

static void keep_seeded(struct walk *walk, uint64_t *state)
{
    for (size_t i = 0; i < walk->keep_size; i++)
        walk->keep[i] = (uint8_t)(mix(state) >> 56);
}

static enum ron_err show_many(struct walk *walk, uint64_t seed)
{
    enum ron_err err = RON_ERR_OK;

    for (size_t i = 0; err == RON_ERR_OK && i <= walk->changes_count; i++) {
        keep_prefix(walk, i);
        err = show(walk, IO_CRASH_prefix, SIZE_MAX, 0);
    }
    for (size_t i = 0; err == RON_ERR_OK && i < walk->changes_count; i++) {
        keep_prefix(walk, walk->changes_count);
        keep_bit(walk, i, false);
        err = show(walk, IO_CRASH_loss, SIZE_MAX, 0);
    }
    for (size_t i = 0; err == RON_ERR_OK && i < IO_CRASH_SEEDED; i++) {
        keep_seeded(walk, &seed);
        err = show(walk, IO_CRASH_seeded, SIZE_MAX, 0);
    }
    return err;
}

/* The last write that is not synced, torn at each sector of its file that it crosses. */
static enum ron_err show_tears(struct walk *walk, uint64_t tears_max)
{
    struct io_memory_change change = {0};
    size_t torn = walk->changes_count;
    uint64_t first; /* sector that starts inside the write */
    uint64_t count;
    uint64_t shown_count;
    enum ron_err err = RON_ERR_OK;

    do {
        if (torn == 0)
            return RON_ERR_OK;
        change = io_memory_unsynced(walk->vfs, --torn);
    } while (change.kind != IO_CHANGE_WRITE);
    first = change.offset / IO_SECTOR + 1;
    count = (change.offset + change.size - 1) / IO_SECTOR + 1 - first;
    shown_count = tears_max == 0 || count < tears_max ? count : tears_max;
    keep_prefix(walk, torn + 1);
    for (uint64_t i = 0; err == RON_ERR_OK && i < shown_count; i++) {
        uint64_t sector = first + i * count / shown_count;

        err = show(walk, IO_CRASH_tear, torn, sector * IO_SECTOR - change.offset);
    }
    return err;
}

enum ron_err io_crash_images(const struct io_vfs *vfs, const struct io_crash_options *options,
                             io_crash_fn *fn, void *context, struct io_crash_counts *counts,
                             struct ron_errinfo *reterr)
{
    struct walk walk = {.vfs = vfs, .fn = fn, .context = context, .counts = counts};
    enum ron_err err;

    walk.reterr = reterr;
    walk.changes_count = io_memory_unsynced_count(vfs);
    walk.keep_size = walk.changes_count / 8 + 1;
    walk.keep = ron_mem_alloc(walk.keep_size);
    if (walk.keep == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "plans of crash images");
    err = walk.changes_count <= IO_CRASH_SUBSETS_MAX ? show_subsets(&walk)
                                                     : show_many(&walk, options->seed);
    if (err == RON_ERR_OK)
        err = show_tears(&walk, options->tears_max);
    ron_mem_free(walk.keep);
    return err;
}

enum ron_err io_crash_seeded(const struct io_vfs *vfs, uint64_t seed, struct io_vfs **ret_image,
                             struct ron_errinfo *reterr)
{
    struct walk walk = {.keep_size = io_memory_unsynced_count(vfs) / 8 + 1};
    enum ron_err err;

    walk.keep = ron_mem_alloc(walk.keep_size);
    if (walk.keep == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "plan of a crash image");
    keep_seeded(&walk, &seed);
    err = io_memory_crash(vfs, &(struct io_crash_plan){walk.keep, SIZE_MAX, 0}, ret_image, reterr);
    ron_mem_free(walk.keep);
    return err;
}
