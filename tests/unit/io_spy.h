/*
 * io_spy.h - for tests over vfs_memory: stop at every moment that matters, and fail the Nth call.
 *
 * A spy takes the place of a memory's operations. Before each sync, of a file or a directory, it
 * calls `before_sync`: whatever a crash can leave between two syncs is a subset of the changes that
 * are unsynced then. With `fail_at` the Nth changing call answers `fail_err` and does nothing. It
 * also counts what a sync would have to wait for: bytes that were written and not yet written back.
 * tidy: long file because each operation of a file system is in it.
 */
#ifndef RON_TESTS_IO_SPY_H
#define RON_TESTS_IO_SPY_H

#include "io/crash_images.h"
#include "support.h"

static struct spy {
    const struct io_vfs_ops *below;
    void (*before_sync)(struct io_vfs *vfs);
    uint64_t calls, fail_at; /* opens, writes, syncs and changes of names, from 1 */
    enum ron_err fail_err;
    uint64_t images;
    uint64_t read_bytes;     /* asked for */
    uint64_t waiting_bytes;  /* written, not written back, not synced */
    uint64_t sync_bytes_max; /* of those, at a sync */
    uint64_t back_bytes_max; /* written back at once */
    uint64_t back_bytes;     /* written back */
    uint64_t uncached_bytes; /* let go */
    bool uncached_early;     /* before they were written back: the system would keep them */
    uint64_t past_read_bytes, past_written_bytes; /* past the cache */
    struct {
        char path[IO_PATH_MAX + 1];
        uint64_t offset, size;
    } fetched[32]; /* hints; the rest is only counted */
    uint64_t fetched_count;
    bool fetched_late;        /* something was read before one of them */
    uint64_t unfetched_reads; /* of what no hint was about */
} spy;
static const struct io_vfs_ops spy_ops;

static inline void spy_install(struct io_vfs *vfs, void (*before_sync)(struct io_vfs *vfs))
{
    spy = (struct spy){.below = vfs->ops, .before_sync = before_sync};
    vfs->ops = &spy_ops;
}

static bool spy_fails(void)
{
    return ++spy.calls == spy.fail_at;
}

/* Call the memory with its own operations in place: it checks that they are. */
#define SPY_CALL(the_vfs, call)           \
    (__extension__({                      \
        struct io_vfs *spied = (the_vfs); \
        enum ron_err spied_err;           \
        spied->ops = spy.below;           \
        spied_err = (call);               \
        spied->ops = &spy_ops;            \
        spied_err;                        \
    }))
#define SPY_FAIL() ron_fail(reterr, spy.fail_err, "the spy says no")

static enum ron_err spy_open(struct io_vfs *vfs, const char *path, enum io_open how,
                             struct io_file **ret_file, struct ron_errinfo *reterr)
{
    return spy_fails() ? SPY_FAIL()
                       : SPY_CALL(vfs, spy.below->open(vfs, path, how, ret_file, reterr));
}
static enum ron_err spy_rename(struct io_vfs *vfs, const char *from, const char *to,
                               struct ron_errinfo *reterr)
{
    return spy_fails() ? SPY_FAIL() : SPY_CALL(vfs, spy.below->rename(vfs, from, to, reterr));
}
static enum ron_err spy_unlink(struct io_vfs *vfs, const char *path, struct ron_errinfo *reterr)
{
    return spy_fails() ? SPY_FAIL() : SPY_CALL(vfs, spy.below->unlink(vfs, path, reterr));
}
static enum ron_err spy_make_dir(struct io_vfs *vfs, const char *path, struct ron_errinfo *reterr)
{
    return spy_fails() ? SPY_FAIL() : SPY_CALL(vfs, spy.below->make_dir(vfs, path, reterr));
}
static void spy_look(struct io_vfs *vfs)
{
    vfs->ops = spy.below;
    if (spy.before_sync != NULL)
        spy.before_sync(vfs);
    vfs->ops = &spy_ops;
}
static enum ron_err spy_sync_dir(struct io_vfs *vfs, const char *path, struct ron_errinfo *reterr)
{
    spy_look(vfs);
    return spy_fails() ? SPY_FAIL() : SPY_CALL(vfs, spy.below->sync_dir(vfs, path, reterr));
}
static enum ron_err spy_list(struct io_vfs *vfs, const char *path, io_list_fn *fn, void *context,
                             struct ron_errinfo *reterr)
{
    return SPY_CALL(vfs, spy.below->list(vfs, path, fn, context, reterr));
}
static void spy_free(struct io_vfs *vfs)
{
    vfs->ops = spy.below;
    spy.below->free(vfs);
}
static void spy_close(struct io_file *file)
{
    struct io_vfs *vfs = file->vfs;

    vfs->ops = spy.below;
    spy.below->close(file);
    vfs->ops = &spy_ops;
}
static enum ron_err spy_size(struct io_file *file, uint64_t *ret_size, struct ron_errinfo *reterr)
{
    return SPY_CALL(file->vfs, spy.below->size(file, ret_size, reterr));
}
static bool spy_was_fetched(const struct io_file *file, uint64_t offset, size_t size)
{
    for (size_t i = 0; i < spy.fetched_count && i < RON_ARRAY_COUNT(spy.fetched); i++)
        if (strcmp(spy.fetched[i].path, io_file_path(file)) == 0 &&
            offset >= spy.fetched[i].offset &&
            offset + size <= spy.fetched[i].offset + spy.fetched[i].size)
            return true;
    return false;
}
static enum ron_err spy_read(struct io_file *file, uint64_t offset, void *bytes, size_t size,
                             size_t *ret_size, struct ron_errinfo *reterr)
{
    spy.read_bytes += size;
    spy.past_read_bytes += file->direct ? size : 0;
    spy.unfetched_reads += !spy_was_fetched(file, offset, size);
    return spy_fails()
               ? SPY_FAIL()
               : SPY_CALL(file->vfs, spy.below->read(file, offset, bytes, size, ret_size, reterr));
}
static enum ron_err spy_write(struct io_file *file, uint64_t offset, const struct ron_slice *parts,
                              size_t parts_count, struct ron_errinfo *reterr)
{
    for (size_t i = 0; i < parts_count; i++) {
        spy.waiting_bytes += parts[i].size;
        spy.past_written_bytes += file->direct ? parts[i].size : 0;
    }
    return spy_fails()
               ? SPY_FAIL()
               : SPY_CALL(file->vfs, spy.below->write(file, offset, parts, parts_count, reterr));
}
static enum ron_err spy_write_back(struct io_file *file, uint64_t offset, uint64_t size,
                                   struct ron_errinfo *reterr)
{
    (void)file;
    (void)offset;
    (void)reterr;
    assert_true(size <= spy.waiting_bytes);
    spy.waiting_bytes -= size;
    spy.back_bytes += size;
    spy.back_bytes_max = size > spy.back_bytes_max ? size : spy.back_bytes_max;
    return RON_ERR_OK;
}
static void spy_uncache(struct io_file *file, uint64_t offset, uint64_t size)
{
    (void)file;
    (void)offset;
    spy.uncached_bytes += size;
    spy.uncached_early = spy.uncached_early || spy.uncached_bytes > spy.back_bytes;
}
static void spy_fetch(struct io_file *file, uint64_t offset, uint64_t size)
{
    if (spy.fetched_count < RON_ARRAY_COUNT(spy.fetched)) {
        memcpy(spy.fetched[spy.fetched_count].path, file->path, sizeof(file->path));
        spy.fetched[spy.fetched_count].offset = offset;
        spy.fetched[spy.fetched_count].size = size;
    }
    spy.fetched_count++;
    spy.fetched_late = spy.fetched_late || spy.read_bytes > 0;
}
static enum ron_err spy_truncate(struct io_file *file, uint64_t size, struct ron_errinfo *reterr)
{
    return spy_fails() ? SPY_FAIL() : SPY_CALL(file->vfs, spy.below->truncate(file, size, reterr));
}
static enum ron_err spy_sync(struct io_file *file, struct ron_errinfo *reterr)
{
    spy_look(file->vfs);
    if (spy.waiting_bytes > spy.sync_bytes_max)
        spy.sync_bytes_max = spy.waiting_bytes;
    spy.waiting_bytes = 0;
    return spy_fails() ? SPY_FAIL() : SPY_CALL(file->vfs, spy.below->sync(file, reterr));
}
static enum ron_err spy_lock(struct io_file *file, struct ron_errinfo *reterr)
{
    return SPY_CALL(file->vfs, spy.below->lock(file, reterr));
}
static const struct io_vfs_ops spy_ops = {
    .open = spy_open,
    .rename = spy_rename,
    .unlink = spy_unlink,
    .make_dir = spy_make_dir,
    .sync_dir = spy_sync_dir,
    .list = spy_list,
    .free = spy_free,
    .close = spy_close,
    .size = spy_size,
    .read = spy_read,
    .write = spy_write,
    .truncate = spy_truncate,
    .sync = spy_sync,
    .lock = spy_lock,
    .write_back = spy_write_back,
    .uncache = spy_uncache,
    .fetch = spy_fetch,
};

/* Change bits of one byte of a file, durably. */
static inline void spy_flip(struct io_vfs *vfs, const char *path, uint64_t at,
                            uint8_t bits) RON_BLOCKS
{
    struct io_file *file = NULL;
    size_t size = 0;
    uint8_t byte = 0;

    assert_ok(io_vfs_open(vfs, path, IO_OPEN_WRITE, &file, NULL));
    assert_ok(io_file_read(file, at, &byte, 1, &size, NULL));
    byte ^= bits;
    assert_ok(io_file_write(file, at, &(struct ron_slice){&byte, 1}, 1, NULL));
    assert_ok(io_file_sync(file, NULL));
    file = io_file_close(file);
}

/* All crash images of a memory as it is now (io/crash_images.h); each is freed after `check`. */
typedef void spy_image_fn(struct io_vfs *image);
struct spy_images {
    spy_image_fn *check;
};

static bool spy_image(void *context, struct io_vfs *image, const struct io_crash_plan *plan,
                      enum io_crash_class class)
{
    struct spy_images *images = context;

    (void)plan;
    (void)class;
    spy.images++;
    images->check(image);
    return true;
}

static inline void spy_images(const struct io_vfs *vfs, spy_image_fn *check)
{
    struct spy_images images = {check};
    struct io_crash_counts counts = {0};

    assert_ok(io_crash_images(vfs, &(struct io_crash_options){.seed = 1, .tears_max = 32},
                              spy_image, &images, &counts, NULL));
}

#endif
