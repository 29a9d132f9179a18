/*
 * vfs_memory_crash.c - what a crash leaves of a file system in memory. See vfs_memory.h.
 *
 * The image starts with what is durable; the changes that the plan keeps are made in their order.
 * A kept change of a name leaves its names as they were right after it. What no name leads to is
 * gone at the end.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "io/vfs_memory_impl.h"

static const struct memory_vfs *of_vfs(const struct io_vfs *vfs)
{
    RON_ASSERT(vfs->ops == &memory_ops);
    return (const struct memory_vfs *)vfs;
}

size_t io_memory_unsynced_count(const struct io_vfs *base)
{
    const struct memory_vfs *vfs = of_vfs(base);
    size_t count;

    memory_enter(vfs->family);
    count = vfs->changes_count;
    memory_leave(vfs->family);
    return count;
}

struct io_memory_change io_memory_unsynced(const struct io_vfs *base, size_t index)
{
    const struct memory_vfs *vfs = of_vfs(base);
    const struct memory_change *change;
    struct io_memory_change result;

    memory_enter(vfs->family);
    RON_ASSERT(index < vfs->changes_count);
    change = vfs->changes[index];
    result = (struct io_memory_change){change->kind, change->path, change->offset, change->size};
    memory_leave(vfs->family);
    return result;
}

/* Twins of all nodes with their durable bytes; names follow when every twin exists. */
static bool copy_nodes(const struct memory_vfs *vfs, struct memory_vfs *image) RON_NEEDS(vfs)
{
    for (struct memory_node *node = vfs->first; node != NULL; node = node->next) {
        struct memory_node *twin = memory_node_new(image, node->is_dir);

        if (twin == NULL)
            return false;
        twin->refs_count = 0; /* names will count; the root has none and stays */
        node->twin = twin;
        if (node->is_dir)
            continue;
        io_content_unref(twin->now);
        twin->now = io_content_ref(node->durable);
        image->bytes_used += io_content_size(twin->now);
    }
    for (struct memory_node *node = vfs->first; node != NULL; node = node->next) {
        struct memory_names *names = &node->twin->names;

        if (node->lasting.count == 0)
            continue;
        names->items = ron_mem_alloc_array(node->lasting.count, sizeof(*names->items));
        if (names->items == NULL)
            return false;
        memcpy(names->items, node->lasting.items, node->lasting.count * sizeof(*names->items));
        names->count = node->lasting.count;
        names->capacity = names->count;
        for (size_t i = 0; i < names->count; i++) {
            names->items[i].node = names->items[i].node->twin;
            names->items[i].node->refs_count++;
        }
    }
    return true;
}

/* A twin that loses its last name here may get another by a later change: fill_image holds on to
 * all of them meanwhile. */
static enum ron_err keep_change(struct memory_vfs *image, const struct memory_change *change,
                                uint64_t size) RON_NEEDS(vfs)
{
    struct memory_node *twin = change->node->twin;
    uint64_t size_before;
    enum ron_err err;

    if (change->kind == IO_CHANGE_NAME) {
        if (!memory_names_reserve(&twin->names))
            return RON_ERR_NO_MEMORY;
        if (change->from != NULL)
            memory_names_set(image, &twin->names, change->from, NULL);
        memory_names_set(image, &twin->names, change->leaf,
                         change->child == NULL ? NULL : change->child->twin);
        return RON_ERR_OK;
    }
    size_before = io_content_size(twin->now);
    err = memory_apply(&twin->now, change, size);
    if (err == RON_ERR_OK)
        image->bytes_used = image->bytes_used - size_before + io_content_size(twin->now);
    return err;
}

static enum ron_err keep_changes(const struct memory_vfs *vfs, struct memory_vfs *image,
                                 const struct io_crash_plan *plan) RON_NEEDS(vfs)
{
    enum ron_err err = RON_ERR_OK;

    for (size_t i = 0; err == RON_ERR_OK && i < vfs->changes_count; i++) {
        const struct memory_change *change = vfs->changes[i];
        bool kept = (plan->keep[i / 8] >> (i % 8) & 1) != 0;
        uint64_t size = change->size;

        if (i == plan->torn) {
            RON_ASSERT(kept);
            RON_ASSERT(change->kind == IO_CHANGE_WRITE);
            RON_ASSERT(plan->torn_bytes <= change->size);
            size = plan->torn_bytes;
            kept = size > 0;
        }
        if (kept)
            err = keep_change(image, change, size);
    }
    return err;
}

/* Free what no name leads to, and call the rest durable. Parents come before what they hold. */
static bool settle(struct memory_vfs *image) RON_NEEDS(vfs)
{
    struct memory_node *next;

    for (struct memory_node *node = image->first; node != NULL; node = next) {
        if (node->refs_count == 0 && node != image->first) {
            memory_names_fini(image, &node->names);
            next = node->next; /* only now: its files may have gone with it */
            memory_node_free(image, node);
            continue;
        }
        next = node->next;
        if (node->is_dir) {
            if (!memory_names_copy(image, &node->lasting, &node->names))
                return false;
        } else {
            io_content_unref(node->durable);
            node->durable = io_content_ref(node->now);
        }
    }
    return true;
}

static enum ron_err fill_image(const struct memory_vfs *vfs, struct memory_vfs *image,
                               const struct io_crash_plan *plan) RON_NEEDS(vfs)
{
    enum ron_err err = copy_nodes(vfs, image) ? RON_ERR_OK : RON_ERR_NO_MEMORY;

    /* One reference more for each while names come and go. */
    for (struct memory_node *node = image->first; node != NULL; node = node->next)
        node->refs_count++;
    if (err == RON_ERR_OK)
        err = keep_changes(vfs, image, plan);
    for (struct memory_node *node = image->first; node != NULL; node = node->next)
        node->refs_count--;
    for (struct memory_node *node = vfs->first; node != NULL; node = node->next)
        node->twin = NULL;
    if (err == RON_ERR_OK && !settle(image))
        err = RON_ERR_NO_MEMORY;
    return err;
}

enum ron_err io_memory_crash(const struct io_vfs *base, const struct io_crash_plan *plan,
                             struct io_vfs **ret_vfs, struct ron_errinfo *reterr)
{
    const struct memory_vfs *vfs = of_vfs(base);
    struct memory_vfs *image;
    enum ron_err err = RON_ERR_NO_MEMORY;

    memory_enter(vfs->family);
    image = ron_mem_alloc(sizeof(*image));
    if (image != NULL) {
        image->vfs = vfs->vfs;
        image->family = vfs->family;
        image->family->vfs_count++;
        image->bytes_max = vfs->bytes_max;
        err = fill_image(vfs, image, plan);
    }
    memory_leave(vfs->family);
    if (err != RON_ERR_OK) {
        if (image != NULL)
            (void)io_vfs_free(&image->vfs);
        return ron_fail(reterr, err, "a crash image of a file system in memory");
    }
    *ret_vfs = &image->vfs;
    return RON_ERR_OK;
}
