/*
 * vfs_memory.c - a file system in memory: the calls. See vfs_memory.h and vfs_memory_impl.h.
 *
 * Each call takes the lock once, which is its scheduling point in the simulator. What a handle or a
 * listing needs belongs to the caller and is allocated outside; all else belongs to the maker.
 * tidy: long file because the calls of one file system are read together
 */
#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"
#include "io/vfs_memory_impl.h"
#include "io/vfs_names.h"
#include "rt/fault.h"

struct memory_file {
    struct io_file file; /* first */
    struct memory_node *node;
    uint32_t forgot_seen; /* of node->forgot_count: every handle is told once */
};

static struct memory_vfs *of_vfs(struct io_vfs *vfs)
{
    RON_ASSERT(vfs->ops == &memory_ops);
    return (struct memory_vfs *)vfs;
}

static struct memory_node *node_of(struct io_file *file)
{
    return ((struct memory_file *)file)->node;
}

static enum ron_err fail(struct ron_errinfo *reterr, enum ron_err err, const char *call,
                         const char *path, const char *why)
{
    return ron_fail(reterr, err, "%s memory%s%s: %s", call, path[0] == '\0' ? "" : "/", path, why);
}

/* ---- Names ---- */

/* The directory that `size` bytes of the path name. */
static enum ron_err find_dir(const struct memory_vfs *vfs, const char *call, const char *path,
                             size_t size, struct memory_node **ret_dir, struct ron_errinfo *reterr)
    RON_NEEDS(vfs)
{
    struct memory_node *dir = vfs->first;

    for (size_t start = 0; start < size;) {
        size_t part_size = strcspn(path + start, "/");

        dir = memory_names_find(&dir->names, path + start, part_size);
        if (dir == NULL)
            return fail(reterr, RON_ERR_NOT_FOUND, call, path, "No such file or directory");
        if (!dir->is_dir)
            return fail(reterr, RON_ERR_CONFLICT, call, path, "Not a directory");
        start += part_size + 1;
    }
    *ret_dir = dir;
    return RON_ERR_OK;
}

/* Its directory, and what its last part means there; NULL for nothing. */
static enum ron_err find_file(const struct memory_vfs *vfs, const char *call, const char *path,
                              struct memory_node **ret_dir, struct memory_node **ret_node,
                              struct ron_errinfo *reterr) RON_NEEDS(vfs)
{
    const char *slash = strrchr(path, '/');
    const char *leaf = slash == NULL ? path : slash + 1;
    enum ron_err err = find_dir(vfs, call, path, slash == NULL ? 0 : (size_t)(slash - path),
                                ret_dir, reterr);

    if (err == RON_ERR_OK)
        *ret_node = memory_names_find(&(*ret_dir)->names, leaf, strlen(leaf));
    return err;
}

/* Let the path mean `child` from now on, NULL for nothing; and `from`, if not NULL, nothing. */
static enum ron_err change_name(struct memory_vfs *vfs, const char *call, const char *path,
                                struct memory_node *dir, struct memory_node *child,
                                const char *from, struct ron_errinfo *reterr) RON_NEEDS(vfs)
{
    struct memory_change *change;
    enum ron_err err = memory_changes_reserve(vfs, path, reterr);

    if (err != RON_ERR_OK)
        return err;
    change = memory_change_new(IO_CHANGE_NAME, dir, path, from);
    if (change == NULL || !memory_names_reserve(&dir->names)) {
        if (change != NULL)
            memory_change_free(vfs, change);
        return fail(reterr, RON_ERR_NO_MEMORY, call, path, "no memory");
    }
    change->child = child;
    if (child != NULL)
        child->refs_count++;
    if (from != NULL)
        memory_names_set(vfs, &dir->names, change->from, NULL);
    memory_names_set(vfs, &dir->names, change->leaf, child);
    memory_changes_add(vfs, change);
    return RON_ERR_OK;
}

/* A new node at the path. */
static enum ron_err make_node(struct memory_vfs *vfs, const char *call, const char *path,
                              struct memory_node *dir, bool is_dir, struct memory_node **ret_node,
                              struct ron_errinfo *reterr) RON_NEEDS(vfs)
{
    struct memory_node *node;
    enum ron_err err;

    if (dir->names.count == IO_LIST_MAX)
        return fail(reterr, RON_ERR_PERSISTENCE_FULL, call, path, "the directory is full");
    node = memory_node_new(vfs, is_dir);
    if (node == NULL)
        return fail(reterr, RON_ERR_NO_MEMORY, call, path, "no memory");
    err = change_name(vfs, call, path, dir, node, NULL, reterr);
    if (err != RON_ERR_OK) {
        memory_node_free(vfs, node);
        return err;
    }
    memory_node_unref(vfs, node); /* its name and the change have their own */
    *ret_node = node;
    return RON_ERR_OK;
}

static enum ron_err open_node(struct memory_vfs *vfs, const char *path, enum io_open how,
                              struct memory_node **ret_node, struct ron_errinfo *reterr)
    RON_NEEDS(vfs)
{
    struct memory_node *dir;
    struct memory_node *node = NULL;
    enum ron_err err = find_file(vfs, "open", path, &dir, &node, reterr);

    if (err != RON_ERR_OK)
        return err;
    if (how == IO_OPEN_CREATE && node != NULL)
        return fail(reterr, RON_ERR_CONFLICT, "open", path, "File exists");
    if (how == IO_OPEN_CREATE)
        err = make_node(vfs, "open", path, dir, false, &node, reterr);
    else if (node == NULL)
        return fail(reterr, RON_ERR_NOT_FOUND, "open", path, "No such file or directory");
    else if (node->is_dir)
        return fail(reterr, RON_ERR_CONFLICT, "open", path, "Is a directory");
    if (err != RON_ERR_OK)
        return err;
    node->refs_count++;
    *ret_node = node;
    return RON_ERR_OK;
}

static enum ron_err memory_open(struct io_vfs *base, const char *path, enum io_open how,
                                struct io_file **ret_file, struct ron_errinfo *reterr)
{
    struct memory_vfs *vfs = of_vfs(base);
    struct memory_file *file = ron_mem_alloc(sizeof(*file));
    enum ron_err err;

    if (file == NULL)
        return fail(reterr, RON_ERR_NO_MEMORY, "open", path, "no memory");
    memory_enter(vfs->family);
    err = open_node(vfs, path, how, &file->node, reterr);
    if (err == RON_ERR_OK)
        file->forgot_seen = file->node->forgot_count;
    memory_leave(vfs->family);
    if (err != RON_ERR_OK) {
        ron_mem_free(file);
        return err;
    }
    *ret_file = &file->file;
    return RON_ERR_OK;
}

static enum ron_err rename_locked(struct memory_vfs *vfs, const char *from, const char *to,
                                  struct ron_errinfo *reterr) RON_NEEDS(vfs)
{
    const char *slash = strrchr(from, '/');
    struct memory_node *dir;
    struct memory_node *node = NULL;
    struct memory_node *old = NULL;
    enum ron_err err = find_file(vfs, "rename", from, &dir, &node, reterr);

    if (err == RON_ERR_OK)
        err = find_file(vfs, "rename to", to, &dir, &old, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (node == NULL)
        return fail(reterr, RON_ERR_NOT_FOUND, "rename", from, "No such file or directory");
    if (node->is_dir)
        return fail(reterr, RON_ERR_CONFLICT, "rename", from, "Is a directory");
    if (old != NULL && old->is_dir)
        return fail(reterr, RON_ERR_CONFLICT, "rename to", to, "Is a directory");
    if (old == node)
        return RON_ERR_OK;
    return change_name(vfs, "rename to", to, dir, node, slash == NULL ? from : slash + 1, reterr);
}

static enum ron_err memory_rename(struct io_vfs *base, const char *from, const char *to,
                                  struct ron_errinfo *reterr)
{
    struct memory_vfs *vfs = of_vfs(base);
    enum ron_err err;

    memory_enter(vfs->family);
    err = rename_locked(vfs, from, to, reterr);
    memory_leave(vfs->family);
    return err;
}

static enum ron_err memory_unlink(struct io_vfs *base, const char *path, struct ron_errinfo *reterr)
{
    struct memory_vfs *vfs = of_vfs(base);
    struct memory_node *dir;
    struct memory_node *node = NULL;
    enum ron_err err;

    memory_enter(vfs->family);
    err = find_file(vfs, "unlink", path, &dir, &node, reterr);
    if (err == RON_ERR_OK && node == NULL)
        err = fail(reterr, RON_ERR_NOT_FOUND, "unlink", path, "No such file or directory");
    else if (err == RON_ERR_OK && node->is_dir)
        err = fail(reterr, RON_ERR_CONFLICT, "unlink", path, "Is a directory");
    else if (err == RON_ERR_OK)
        err = change_name(vfs, "unlink", path, dir, NULL, NULL, reterr);
    memory_leave(vfs->family);
    return err;
}

static enum ron_err make_dir_locked(struct memory_vfs *vfs, const char *path,
                                    struct ron_errinfo *reterr) RON_NEEDS(vfs)
{
    size_t size = strlen(path);

    for (size_t end = 0; end < size;) {
        char prefix[IO_PATH_MAX + 1];
        struct memory_node *dir;
        struct memory_node *node = NULL;
        enum ron_err err;

        if (end > 0)
            end++; /* the slash */
        end += strcspn(path + end, "/");
        (void)snprintf(prefix, sizeof(prefix), "%.*s", (int)end, path);
        err = find_file(vfs, "mkdir", prefix, &dir, &node, reterr);
        if (err == RON_ERR_OK && node == NULL)
            err = make_node(vfs, "mkdir", prefix, dir, true, &node, reterr);
        else if (err == RON_ERR_OK && !node->is_dir)
            err = fail(reterr, RON_ERR_CONFLICT, "mkdir", path, "Not a directory");
        if (err != RON_ERR_OK)
            return err;
    }
    return RON_ERR_OK;
}

static enum ron_err memory_make_dir(struct io_vfs *base, const char *path,
                                    struct ron_errinfo *reterr)
{
    struct memory_vfs *vfs = of_vfs(base);
    enum ron_err err;

    memory_enter(vfs->family);
    err = make_dir_locked(vfs, path, reterr);
    memory_leave(vfs->family);
    return err;
}

static enum ron_err memory_sync_dir(struct io_vfs *base, const char *path,
                                    struct ron_errinfo *reterr)
{
    struct memory_vfs *vfs = of_vfs(base);
    struct memory_node *dir;
    enum ron_err err;

    memory_enter(vfs->family);
    err = find_dir(vfs, "sync directory", path, strlen(path), &dir, reterr);
    if (err == RON_ERR_OK && !memory_names_copy(vfs, &dir->lasting, &dir->names))
        err = fail(reterr, RON_ERR_NO_MEMORY, "sync directory", path, "no memory");
    if (err == RON_ERR_OK)
        memory_changes_drop(vfs, dir);
    memory_leave(vfs->family);
    return err;
}

static enum ron_err memory_list(struct io_vfs *base, const char *path, io_list_fn *fn,
                                void *context, struct ron_errinfo *reterr)
{
    struct memory_vfs *vfs = of_vfs(base);
    struct io_names names;
    struct memory_node *dir;
    enum ron_err err;

    io_names_init(&names);
    memory_enter(vfs->family);
    rt_memory_set_owner(vfs->family->borrower); /* the list is the caller's */
    err = find_dir(vfs, "list", path, strlen(path), &dir, reterr);
    for (size_t i = 0; err == RON_ERR_OK && i < dir->names.count; i++)
        err = io_names_add(&names, dir->names.items[i].text, dir->names.items[i].node->is_dir,
                           reterr);
    memory_leave(vfs->family);
    if (err == RON_ERR_OK)
        err = io_names_tell(&names, fn, context, reterr);
    io_names_fini(&names);
    return err;
}

/* ---- Files ---- */

static void memory_close(struct io_file *file)
{
    struct memory_vfs *vfs = of_vfs(file->vfs);
    struct memory_node *node = node_of(file);

    memory_enter(vfs->family);
    if (node->locked_by == file)
        node->locked_by = NULL;
    memory_node_unref(vfs, node);
    memory_leave(vfs->family);
    ron_mem_free(file);
}

static enum ron_err memory_size(struct io_file *file, uint64_t *ret_size,
                                struct ron_errinfo *reterr RON_UNUSED)
{
    struct memory_vfs *vfs = of_vfs(file->vfs);

    memory_enter(vfs->family);
    *ret_size = io_content_size(node_of(file)->now);
    memory_leave(vfs->family);
    return RON_ERR_OK;
}

static enum ron_err memory_read(struct io_file *file, uint64_t offset, void *bytes, size_t size,
                                size_t *ret_size, struct ron_errinfo *reterr RON_UNUSED)
{
    struct memory_vfs *vfs = of_vfs(file->vfs);

    memory_enter(vfs->family);
    *ret_size = io_content_read(node_of(file)->now, offset, bytes, size);
    memory_leave(vfs->family);
    return RON_ERR_OK;
}

/* Do what the change says to what is seen now, and put it on the list; frees it on failure. */
static enum ron_err change_file(struct memory_vfs *vfs, const char *call,
                                struct memory_change *change, struct ron_errinfo *reterr)
    RON_NEEDS(vfs)
{
    struct memory_node *node = change->node;
    uint64_t size_before = io_content_size(node->now);
    enum ron_err err = memory_apply(&node->now, change, change->size);

    if (err != RON_ERR_OK) {
        (void)fail(reterr, err, call, change->path,
                   err == RON_ERR_NO_MEMORY ? "no memory" : "no file is that long");
        memory_change_free(vfs, change);
        return err;
    }
    vfs->bytes_used = vfs->bytes_used - size_before + io_content_size(node->now);
    memory_changes_add(vfs, change);
    return RON_ERR_OK;
}

/* How far a file may reach. */
static uint64_t end_max(const struct memory_vfs *vfs, const struct memory_node *node) RON_NEEDS(vfs)
{
    uint64_t size = io_content_size(node->now);

    if (vfs->bytes_max == 0)
        return INT64_MAX;
    return vfs->bytes_used >= vfs->bytes_max ? size : size + (vfs->bytes_max - vfs->bytes_used);
}

static enum ron_err write_locked(struct memory_vfs *vfs, struct io_file *file, uint64_t offset,
                                 const struct ron_slice *parts, uint64_t size,
                                 struct ron_errinfo *reterr) RON_NEEDS(vfs)
{
    uint64_t end = end_max(vfs, node_of(file));
    uint64_t taken = size;
    struct memory_change *change;
    enum ron_err err = memory_changes_reserve(vfs, file->path, reterr);

    if (err != RON_ERR_OK)
        return err;
    if (offset >= end)
        taken = 0;
    else if (size > end - offset)
        taken = end - offset; /* as a disk does: what fits is written */
    if (taken > 0) {
        change = memory_change_write(vfs, node_of(file), file->path, offset, parts, taken);
        if (change == NULL)
            return fail(reterr, RON_ERR_NO_MEMORY, "write", file->path, "no memory");
        err = change_file(vfs, "write", change, reterr);
    }
    if (err == RON_ERR_OK && taken < size)
        err = fail(reterr, RON_ERR_PERSISTENCE_FULL, "write", file->path,
                   "No space left on device");
    return err;
}

static enum ron_err memory_write(struct io_file *file, uint64_t offset,
                                 const struct ron_slice *parts, size_t parts_count,
                                 struct ron_errinfo *reterr)
{
    struct memory_vfs *vfs = of_vfs(file->vfs);
    uint64_t size = 0;
    enum ron_err err;

    for (size_t i = 0; i < parts_count; i++)
        size += parts[i].size;
    memory_enter(vfs->family);
    err = write_locked(vfs, file, offset, parts, size, reterr);
    memory_leave(vfs->family);
    return err;
}

static enum ron_err truncate_locked(struct memory_vfs *vfs, struct io_file *file, uint64_t size,
                                    struct ron_errinfo *reterr) RON_NEEDS(vfs)
{
    struct memory_node *node = node_of(file);
    struct memory_change *change;
    enum ron_err err = memory_changes_reserve(vfs, file->path, reterr);

    if (err != RON_ERR_OK)
        return err;
    if (size > io_content_size(node->now) && size > end_max(vfs, node))
        return fail(reterr, RON_ERR_PERSISTENCE_FULL, "truncate", file->path,
                    "No space left on device");
    change = memory_change_new(IO_CHANGE_TRUNCATE, node, file->path, NULL);
    if (change == NULL)
        return fail(reterr, RON_ERR_NO_MEMORY, "truncate", file->path, "no memory");
    change->size = size;
    return change_file(vfs, "truncate", change, reterr);
}

static enum ron_err memory_truncate(struct io_file *file, uint64_t size, struct ron_errinfo *reterr)
{
    struct memory_vfs *vfs = of_vfs(file->vfs);
    enum ron_err err;

    memory_enter(vfs->family);
    err = truncate_locked(vfs, file, size, reterr);
    memory_leave(vfs->family);
    return err;
}

/* After a failed sync what is seen has bytes that were lost: only the changes since then go to the
 * durable side, one by one. */
static enum ron_err sync_since_forgot(struct memory_vfs *vfs, struct memory_node *node)
    RON_NEEDS(vfs)
{
    struct io_content *durable = io_content_ref(node->durable);
    enum ron_err err = RON_ERR_OK;

    for (size_t i = 0; err == RON_ERR_OK && i < vfs->changes_count; i++)
        if (vfs->changes[i]->node == node)
            err = memory_apply(&durable, vfs->changes[i], vfs->changes[i]->size);
    if (err != RON_ERR_OK) {
        io_content_unref(durable);
        return err;
    }
    io_content_unref(node->durable);
    node->durable = durable;
    return RON_ERR_OK;
}

/* As Linux does it: a handle that was open when another one's sync failed hears of it at its own.
 */
static bool hears_of_loss(struct memory_file *file) RON_NEEDS(vfs)
{
    const bool hears = file->forgot_seen != file->node->forgot_count;

    file->forgot_seen = file->node->forgot_count;
    return hears;
}

static enum ron_err memory_sync(struct io_file *file, struct ron_errinfo *reterr)
{
    struct memory_vfs *vfs = of_vfs(file->vfs);
    struct memory_node *node = node_of(file);
    enum ron_err err = RON_ERR_OK;

    memory_enter(vfs->family);
    if (hears_of_loss((struct memory_file *)file)) {
        memory_leave(vfs->family);
        return fail(reterr, RON_ERR_IO, "sync", file->path, "another sync of it has failed");
    }
    if (node->forgot_count > 0) {
        err = sync_since_forgot(vfs, node);
    } else {
        io_content_unref(node->durable);
        node->durable = io_content_ref(node->now);
    }
    if (err == RON_ERR_OK)
        memory_changes_drop(vfs, node);
    memory_leave(vfs->family);
    return err == RON_ERR_OK ? RON_ERR_OK : fail(reterr, err, "sync", file->path, "no memory");
}

static void memory_forget(struct io_file *file)
{
    struct memory_vfs *vfs = of_vfs(file->vfs);

    memory_enter(vfs->family);
    node_of(file)->forgot_count++;
    ((struct memory_file *)file)->forgot_seen = node_of(file)->forgot_count;
    memory_changes_drop(vfs, node_of(file));
    memory_leave(vfs->family);
}

static void memory_uncache(struct io_file *file, uint64_t offset, uint64_t size)
{
    struct memory_vfs *vfs = of_vfs(file->vfs);
    struct memory_node *node = node_of(file);
    uint64_t end;

    memory_enter(vfs->family);
    end = io_content_size(node->now);
    node->uncached_bytes += size != 0 ? size : end - (offset < end ? offset : end);
    memory_leave(vfs->family);
}

uint64_t io_memory_uncached(struct io_file *file)
{
    struct memory_vfs *vfs = of_vfs(file->vfs);
    uint64_t bytes;

    RON_ASSERT(file->vfs->ops == &memory_ops);
    memory_enter(vfs->family);
    bytes = node_of(file)->uncached_bytes;
    memory_leave(vfs->family);
    return bytes;
}

static enum ron_err memory_lock(struct io_file *file, struct ron_errinfo *reterr)
{
    struct memory_vfs *vfs = of_vfs(file->vfs);
    struct memory_node *node = node_of(file);
    bool taken;

    memory_enter(vfs->family);
    taken = node->locked_by == NULL || node->locked_by == file;
    if (taken)
        node->locked_by = file;
    memory_leave(vfs->family);
    return taken ? RON_ERR_OK
                 : fail(reterr, RON_ERR_CONFLICT, "lock", file->path, "another process owns it");
}

/* ---- Birth and end ---- */

static void memory_free(struct io_vfs *base)
{
    struct memory_vfs *vfs = of_vfs(base);
    struct memory_family *family = vfs->family;
    unsigned vfs_count;

    memory_enter(family);
    for (size_t i = 0; i < vfs->changes_count; i++) {
        ron_mem_free(vfs->changes[i]->bytes);
        ron_mem_free(vfs->changes[i]);
    }
    ron_mem_free(vfs->changes);
    while (vfs->first != NULL) /* whoever still points to it: handles of a crashed node, too */
        memory_node_free(vfs, vfs->first);
    vfs_count = --family->vfs_count;
    memory_leave(family);
    ron_mem_free(vfs);
    if (vfs_count > 0)
        return;
    rt_lock_fini(&family->lock);
    ron_mem_free(family);
}

const struct io_vfs_ops memory_ops = {
    .open = memory_open,
    .rename = memory_rename,
    .unlink = memory_unlink,
    .make_dir = memory_make_dir,
    .sync_dir = memory_sync_dir,
    .list = memory_list,
    .free = memory_free,
    .close = memory_close,
    .size = memory_size,
    .read = memory_read,
    .write = memory_write,
    .truncate = memory_truncate,
    .sync = memory_sync,
    .lock = memory_lock,
    .uncache = memory_uncache,
    .forget = memory_forget,
};

enum ron_err io_vfs_memory_new(const struct io_memory_options *options, struct io_vfs **ret_vfs,
                               struct ron_errinfo *reterr)
{
    struct memory_family *family = ron_mem_alloc(sizeof(*family));
    struct memory_vfs *vfs = ron_mem_alloc(sizeof(*vfs));
    bool born = false;

    if (family != NULL && vfs != NULL) {
        rt_lock_init(&family->lock, "vfs", RON_RANK_vfs);
        family->owner = rt_memory_owner();
        family->vfs_count = 1;
        vfs->vfs = (struct io_vfs){&memory_ops, "memory"};
        vfs->family = family;
        vfs->bytes_max = options == NULL ? 0 : options->bytes_max;
        memory_enter(family);
        born = memory_node_new(vfs, true) != NULL;
        memory_leave(family);
        if (!born)
            rt_lock_fini(&family->lock);
    }
    if (!born) {
        ron_mem_free(vfs);
        ron_mem_free(family);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a file system in memory");
    }
    *ret_vfs = &vfs->vfs;
    return RON_ERR_OK;
}
