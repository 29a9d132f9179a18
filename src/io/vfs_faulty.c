/*
 * vfs_faulty.c - a file system that fails on purpose. See vfs_faulty.h.
 *
 * Every call asks `strike` for the fault that hits it, IO_FAULT__MAX for none. The table is counted
 * under a lock; the simulator's choice needs none, so that it costs no scheduling point.
 */
#include "io/vfs_faulty.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"
#include "rt/fault.h"
#include "rt/lock.h"

enum { SECTOR = 512, FAULT_NONE = IO_FAULT__MAX, CALL_ANY = -1 };

static const struct {
    const char *name;
    int call; /* enum io_fault_call or CALL_ANY */
} kinds[] = {
#define CALL_READ           IO_CALL_READ
#define CALL_WRITE          IO_CALL_WRITE
#define CALL_SYNC           IO_CALL_SYNC
#define X(name, call, text) {#name, CALL_##call},
    IO_FAULT_MAP(X)
#undef X
};

struct rule {
    struct io_fault fault;
    char path_prefix[IO_PATH_MAX + 1];
    uint64_t seen_count;
};
/* Apart from the vfs, so that a const one can be asked. */
struct faulty_state {
    struct rt_lock lock;
    struct rule rules[IO_FAULTS_MAX] RON_GUARDED_BY(vfs);
    uint64_t counts[IO_FAULT__MAX] RON_GUARDED_BY(vfs);
    uint64_t random RON_GUARDED_BY(vfs);
};
struct faulty_vfs {
    struct io_vfs vfs; /* first */
    struct io_vfs *below;
    struct faulty_state *state;
    size_t rules_count;
    uint32_t choices;
    uint32_t slow_ms;
};
struct faulty_file {
    struct io_file file; /* first */
    struct io_file *below;
};

static const struct io_vfs_ops faulty_ops;

static struct faulty_vfs *of_vfs(struct io_vfs *vfs)
{
    RON_ASSERT(vfs->ops == &faulty_ops);
    return (struct faulty_vfs *)vfs;
}

static struct io_file *below(struct io_file *file)
{
    return ((struct faulty_file *)file)->below;
}

static void state_lock(struct faulty_state *state) RON_LOCKS(vfs)
{
    rt_lock_take(&state->lock);
}

static void state_unlock(struct faulty_state *state) RON_UNLOCKS(vfs)
{
    rt_lock_drop(&state->lock);
}

const char *io_fault_name(enum io_fault_kind kind)
{
    RON_ASSERT(kind < IO_FAULT__MAX);
    return kinds[kind].name;
}

uint64_t io_faulty_count(const struct io_vfs *base, enum io_fault_kind kind)
{
    struct faulty_state *state = ((const struct faulty_vfs *)base)->state;
    uint64_t count;

    RON_ASSERT(base->ops == &faulty_ops);
    RON_ASSERT(kind < IO_FAULT__MAX);
    state_lock(state);
    count = state->counts[kind];
    state_unlock(state);
    return count;
}

/* ---- Which fault ---- */

static bool can_strike(unsigned kind, enum io_fault_call call)
{
    return kinds[kind].call == CALL_ANY || kinds[kind].call == (int)call;
}

/* What the table has for this call. Every rule that fits counts it. */
static unsigned by_table(struct faulty_vfs *vfs, enum io_fault_call call, const char *path)
{
    unsigned kind = FAULT_NONE;

    if (vfs->rules_count == 0)
        return FAULT_NONE;
    state_lock(vfs->state);
    for (size_t i = 0; i < vfs->rules_count; i++) {
        struct rule *rule = &vfs->state->rules[i];

        if (rule->fault.call != call ||
            strncmp(path, rule->path_prefix, strlen(rule->path_prefix)) != 0)
            continue;
        rule->seen_count++;
        if (kind == FAULT_NONE && rule->seen_count >= rule->fault.at &&
            rule->seen_count - rule->fault.at < rule->fault.times)
            kind = rule->fault.kind;
    }
    state_unlock(vfs->state);
    return kind;
}

static unsigned by_choice(const struct faulty_vfs *vfs, enum io_fault_call call)
{
    static const char *const tags[] = {"open fault", "read fault", "write fault", "sync fault",
                                       "name fault"};
    unsigned options[IO_FAULT__MAX + 1] = {FAULT_NONE};
    unsigned options_count = 1;

    for (unsigned kind = 0; kind < IO_FAULT__MAX; kind++)
        if ((vfs->choices >> kind & 1) != 0 && can_strike(kind, call))
            options[options_count++] = kind;
    return options_count == 1 ? (unsigned)FAULT_NONE
                              : options[rt_fault_choose(options_count, tags[call])];
}

/* The fault that hits this call, counted; SLOW has been waited for. *ret_random decides details. */
static unsigned strike(struct faulty_vfs *vfs, enum io_fault_call call, const char *path,
                       uint64_t *ret_random) RON_BLOCKS
{
    unsigned kind = by_table(vfs, call, path);

    if (kind == FAULT_NONE)
        kind = by_choice(vfs, call);
    if (kind == FAULT_NONE)
        return kind;
    RON_ASSERT(can_strike(kind, call));
    state_lock(vfs->state);
    vfs->state->counts[kind]++;
    /* Knuth's MMIX generator; the high bits are the good ones. */
    vfs->state->random = vfs->state->random * UINT64_C(6364136223846793005) +
                         UINT64_C(1442695040888963407);
    *ret_random = vfs->state->random >> 33;
    state_unlock(vfs->state);
    if (kind == IO_FAULT_SLOW)
        rt_fault_delay_ms(vfs->slow_ms);
    return kind;
}

static enum ron_err fail(struct ron_errinfo *reterr, enum ron_err err, const char *call,
                         const struct io_vfs *vfs, const char *path, unsigned kind)
{
    return ron_fail(reterr, err, "%s %s/%s: fault %s", call, vfs->name, path, kinds[kind].name);
}

/* ---- Names ---- */

static enum ron_err faulty_open(struct io_vfs *base, const char *path, enum io_open how,
                                struct io_file **ret_file, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct faulty_vfs *vfs = of_vfs(base);
    struct faulty_file *file;
    uint64_t random;
    enum ron_err err;

    if (strike(vfs, IO_CALL_OPEN, path, &random) == IO_FAULT_EIO)
        return fail(reterr, RON_ERR_IO, "open", base, path, IO_FAULT_EIO);
    file = ron_mem_alloc(sizeof(*file));
    if (file == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "open %s/%s", base->name, path);
    /* What is torn or cut short comes in other pieces than whole pages. */
    err = io_vfs_open(vfs->below, path, how == IO_OPEN_DIRECT ? IO_OPEN_WRITE : how, &file->below,
                      reterr);
    if (err != RON_ERR_OK) {
        ron_mem_free(file);
        return err;
    }
    *ret_file = &file->file;
    return RON_ERR_OK;
}

static enum ron_err faulty_rename(struct io_vfs *vfs, const char *from, const char *to,
                                  struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t random;

    if (strike(of_vfs(vfs), IO_CALL_NAME, from, &random) == IO_FAULT_EIO)
        return fail(reterr, RON_ERR_IO, "rename", vfs, from, IO_FAULT_EIO);
    return io_vfs_rename(of_vfs(vfs)->below, from, to, reterr);
}

static enum ron_err faulty_unlink(struct io_vfs *vfs, const char *path,
                                  struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t random;

    if (strike(of_vfs(vfs), IO_CALL_NAME, path, &random) == IO_FAULT_EIO)
        return fail(reterr, RON_ERR_IO, "unlink", vfs, path, IO_FAULT_EIO);
    return io_vfs_unlink(of_vfs(vfs)->below, path, reterr);
}

static enum ron_err faulty_make_dir(struct io_vfs *vfs, const char *path,
                                    struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t random;

    if (strike(of_vfs(vfs), IO_CALL_NAME, path, &random) == IO_FAULT_EIO)
        return fail(reterr, RON_ERR_IO, "mkdir", vfs, path, IO_FAULT_EIO);
    return io_vfs_make_dir(of_vfs(vfs)->below, path, reterr);
}

static enum ron_err faulty_list(struct io_vfs *vfs, const char *path, io_list_fn *fn, void *context,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t random;

    if (strike(of_vfs(vfs), IO_CALL_NAME, path, &random) == IO_FAULT_EIO)
        return fail(reterr, RON_ERR_IO, "list", vfs, path, IO_FAULT_EIO);
    return io_vfs_list(of_vfs(vfs)->below, path, fn, context, reterr);
}

static enum ron_err faulty_sync_dir(struct io_vfs *vfs, const char *path,
                                    struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t random;
    unsigned kind = strike(of_vfs(vfs), IO_CALL_SYNC, path, &random);

    if (kind == IO_FAULT_EIO || kind == IO_FAULT_SYNC_EIO)
        return fail(reterr, RON_ERR_IO, "sync directory", vfs, path, kind);
    if (kind == IO_FAULT_LYING_SYNC)
        return RON_ERR_OK;
    return io_vfs_sync_dir(of_vfs(vfs)->below, path, reterr);
}

/* ---- Files ---- */

static void faulty_close(struct io_file *file) RON_BLOCKS
{
    (void)io_file_close(below(file));
    ron_mem_free(file);
}

static enum ron_err faulty_size(struct io_file *file, uint64_t *ret_size,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    return io_file_size(below(file), ret_size, reterr);
}

static enum ron_err faulty_lock(struct io_file *file, struct ron_errinfo *reterr) RON_BLOCKS
{
    return io_file_lock(below(file), reterr);
}

static void faulty_forget(struct io_file *file) RON_BLOCKS
{
    io_file_forget(below(file));
}

static enum ron_err faulty_read(struct io_file *file, uint64_t offset, void *bytes, size_t size,
                                size_t *ret_size, struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t random;
    size_t count = 0;
    unsigned kind = strike(of_vfs(file->vfs), IO_CALL_READ, file->path, &random);
    enum ron_err err;

    if (kind == IO_FAULT_EIO)
        return fail(reterr, RON_ERR_IO, "read", file->vfs, file->path, kind);
    err = io_file_read(below(file), offset, bytes, size, &count, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (kind == IO_FAULT_BIT_FLIP && count > 0)
        ((uint8_t *)bytes)[random / 8 % count] ^= (uint8_t)(1u << random % 8);
    *ret_size = count;
    return RON_ERR_OK;
}

/* Write bytes start..end of the parts where they belong. */
static enum ron_err write_range(struct io_file *file, uint64_t offset,
                                const struct ron_slice *parts, size_t parts_count, uint64_t start,
                                uint64_t end, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_slice chosen[IO_WRITE_PARTS_MAX];
    size_t chosen_count = 0;
    uint64_t at = 0; /* of the part in the whole */

    for (size_t i = 0; i < parts_count; i++) {
        uint64_t part_end = at + parts[i].size;
        uint64_t from = start > at ? start : at;
        uint64_t to = end < part_end ? end : part_end;

        if (from < to)
            chosen[chosen_count++] = ron_slice_of(parts[i].data + (from - at), (size_t)(to - from));
        at = part_end;
    }
    return io_file_write(below(file), offset + start, chosen, chosen_count, reterr);
}

/* All but one sector; of three or more an inner one. */
static enum ron_err write_torn(struct io_file *file, uint64_t offset, const struct ron_slice *parts,
                               size_t parts_count, uint64_t size, uint64_t random,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t first = offset / SECTOR;
    uint64_t count = (offset + size - 1) / SECTOR - first + 1;
    uint64_t sector = count >= 3 ? first + 1 + random % (count - 2) : first + random % count;
    uint64_t start = sector * SECTOR > offset ? sector * SECTOR - offset : 0;
    uint64_t end = (sector + 1) * SECTOR - offset < size ? (sector + 1) * SECTOR - offset : size;
    enum ron_err err = write_range(file, offset, parts, parts_count, 0, start, reterr);

    if (err == RON_ERR_OK)
        err = write_range(file, offset, parts, parts_count, end, size, reterr);
    return err;
}

static enum ron_err faulty_write(struct io_file *file, uint64_t offset,
                                 const struct ron_slice *parts, size_t parts_count,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t random;
    uint64_t size = 0;
    unsigned kind = strike(of_vfs(file->vfs), IO_CALL_WRITE, file->path, &random);
    enum ron_err err;

    for (size_t i = 0; i < parts_count; i++)
        size += parts[i].size;
    switch (kind) {
    case IO_FAULT_EIO:
        return fail(reterr, RON_ERR_IO, "write", file->vfs, file->path, kind);
    case IO_FAULT_ENOSPC:
    case IO_FAULT_SHORT_WRITE:
        err = write_range(file, offset, parts, parts_count, 0, random % size, reterr);
        if (err != RON_ERR_OK)
            return err;
        err = kind == IO_FAULT_ENOSPC ? RON_ERR_PERSISTENCE_FULL : RON_ERR_IO;
        return fail(reterr, err, "write", file->vfs, file->path, kind);
    case IO_FAULT_TORN_SECTOR:
        return write_torn(file, offset, parts, parts_count, size, random, reterr);
    case IO_FAULT_LOST_WRITE:
        return RON_ERR_OK;
    case IO_FAULT_MISDIRECTED:
        offset = offset >= SECTOR && random % 2 == 0 ? offset - SECTOR : offset + SECTOR;
        return io_file_write(below(file), offset, parts, parts_count, reterr);
    default: /* none, or a slow one */
        return io_file_write(below(file), offset, parts, parts_count, reterr);
    }
}

static enum ron_err faulty_truncate(struct io_file *file, uint64_t size,
                                    struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t random;

    if (strike(of_vfs(file->vfs), IO_CALL_NAME, file->path, &random) == IO_FAULT_EIO)
        return fail(reterr, RON_ERR_IO, "truncate", file->vfs, file->path, IO_FAULT_EIO);
    return io_file_truncate(below(file), size, reterr);
}

static enum ron_err faulty_sync(struct io_file *file, struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t random;
    unsigned kind = strike(of_vfs(file->vfs), IO_CALL_SYNC, file->path, &random);

    if (kind == IO_FAULT_SYNC_EIO)
        io_file_forget(below(file));
    if (kind == IO_FAULT_EIO || kind == IO_FAULT_SYNC_EIO)
        return fail(reterr, RON_ERR_IO, "sync", file->vfs, file->path, kind);
    if (kind == IO_FAULT_LYING_SYNC)
        return RON_ERR_OK;
    return io_file_sync(below(file), reterr);
}

static enum ron_err faulty_start(struct io_file *file, uint64_t offset, uint64_t size,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t random;
    unsigned kind = strike(of_vfs(file->vfs), IO_CALL_SYNC, file->path, &random);

    if (kind == IO_FAULT_EIO || kind == IO_FAULT_SYNC_EIO)
        return fail(reterr, RON_ERR_IO, "start the sync of", file->vfs, file->path, kind);
    return io_file_start(below(file), offset, size, reterr);
}

/* It promises nothing, so there is nothing to break: a disk that fails shows it at the sync. */
static enum ron_err faulty_write_back(struct io_file *file, uint64_t offset, uint64_t size,
                                      struct ron_errinfo *reterr) RON_BLOCKS
{
    return io_file_write_back(below(file), offset, size, reterr);
}

static void faulty_uncache(struct io_file *file, uint64_t offset, uint64_t size) RON_BLOCKS
{
    io_file_uncache(below(file), offset, size);
}

static void faulty_fetch(struct io_file *file, uint64_t offset, uint64_t size) RON_BLOCKS
{
    io_file_fetch(below(file), offset, size);
}

/* ---- Birth and end ---- */

static void faulty_free(struct io_vfs *base)
{
    struct faulty_vfs *vfs = of_vfs(base);

    rt_lock_fini(&vfs->state->lock);
    ron_mem_free(vfs->state);
    ron_mem_free(vfs);
}

static const struct io_vfs_ops faulty_ops = {
    .open = faulty_open,
    .rename = faulty_rename,
    .unlink = faulty_unlink,
    .make_dir = faulty_make_dir,
    .sync_dir = faulty_sync_dir,
    .list = faulty_list,
    .free = faulty_free,
    .close = faulty_close,
    .size = faulty_size,
    .read = faulty_read,
    .write = faulty_write,
    .truncate = faulty_truncate,
    .sync = faulty_sync,
    .lock = faulty_lock,
    .start = faulty_start,
    .write_back = faulty_write_back,
    .uncache = faulty_uncache,
    .fetch = faulty_fetch,
    .forget = faulty_forget,
};

static void copy_rules(struct faulty_state *state, const struct io_faulty_options *options)
{
    state_lock(state);
    state->random = options->seed;
    for (size_t i = 0; i < options->faults_count; i++) {
        const struct io_fault *fault = &options->faults[i];
        const char *prefix = fault->path_prefix == NULL ? "" : fault->path_prefix;

        RON_ASSERT(fault->kind < IO_FAULT__MAX);
        RON_ASSERT(can_strike(fault->kind, fault->call));
        RON_ASSERT(fault->at >= 1);
        RON_ASSERT(strlen(prefix) <= IO_PATH_MAX);
        state->rules[i].fault = *fault;
        memcpy(state->rules[i].path_prefix, prefix, strlen(prefix));
    }
    state_unlock(state);
}

enum ron_err io_vfs_faulty_new(struct io_vfs *below_vfs, const struct io_faulty_options *options,
                               struct io_vfs **ret_vfs, struct ron_errinfo *reterr)
{
    struct faulty_vfs *vfs = ron_mem_alloc(sizeof(*vfs));
    struct faulty_state *state = ron_mem_alloc(sizeof(*state));

    RON_ASSERT(options->faults_count <= IO_FAULTS_MAX);
    RON_ASSERT(options->choices >> IO_FAULT__MAX == 0);
    if (vfs == NULL || state == NULL) {
        ron_mem_free(vfs);
        ron_mem_free(state);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a faulty file system");
    }
    rt_lock_init(&state->lock, "faulty", RON_RANK_vfs);
    copy_rules(state, options);
    vfs->vfs = (struct io_vfs){&faulty_ops, below_vfs->name};
    vfs->below = below_vfs;
    vfs->state = state;
    vfs->rules_count = options->faults_count;
    vfs->choices = options->choices;
    vfs->slow_ms = options->slow_ms;
    *ret_vfs = &vfs->vfs;
    return RON_ERR_OK;
}
