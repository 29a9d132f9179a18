/*
 * vfs_memory_tree.c - nodes, names and changes of a file system in memory. See vfs_memory_impl.h.
 */
#include "base/mem.h"
#include "io/vfs_memory_impl.h"
#include "rt/fault.h"

void memory_enter(struct memory_family *family)
{
    rt_lock_take(&family->lock);
    family->borrower = rt_memory_owner();
    rt_memory_set_owner(family->owner);
}

void memory_leave(struct memory_family *family)
{
    rt_memory_set_owner(family->borrower);
    family->borrower = 0;
    rt_lock_drop(&family->lock);
}

/* ---- Nodes ---- */

struct memory_node *memory_node_new(struct memory_vfs *vfs, bool is_dir)
{
    struct memory_node *node = ron_mem_alloc(sizeof(*node));

    if (node == NULL)
        return NULL;
    node->is_dir = is_dir;
    if (!is_dir) {
        node->now = io_content_new();
        if (node->now == NULL)
            return ron_mem_free(node);
        node->durable = io_content_ref(node->now);
    }
    node->refs_count = 1;
    node->prev = vfs->last;
    if (vfs->last == NULL)
        vfs->first = node;
    else
        vfs->last->next = node;
    vfs->last = node;
    return node;
}

/* With all it has; nobody may point to it any more. Directories end only with their file system or
 * in an image that lost them, after their parents. */
void memory_node_free(struct memory_vfs *vfs, struct memory_node *node)
{
    if (!node->is_dir) {
        RON_ASSERT(vfs->bytes_used >= io_content_size(node->now));
        vfs->bytes_used -= io_content_size(node->now);
        io_content_unref(node->now);
        io_content_unref(node->durable);
    }
    ron_mem_free(node->names.items);
    ron_mem_free(node->lasting.items);
    if (node->prev == NULL)
        vfs->first = node->next;
    else
        node->prev->next = node->next;
    if (node->next == NULL)
        vfs->last = node->prev;
    else
        node->next->prev = node->prev;
    ron_mem_free(node);
}

void memory_node_unref(struct memory_vfs *vfs, struct memory_node *node)
{
    RON_ASSERT(node->refs_count > 0);
    node->refs_count--;
    if (node->refs_count == 0 && !node->is_dir)
        memory_node_free(vfs, node);
}

/* ---- Names ---- */

/* Where the name is, or would be. */
static size_t position_of(const struct memory_names *names, const char *text, size_t size,
                          bool *ret_found)
{
    size_t low = 0;
    size_t high = names->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const char *other = names->items[middle].text;
        int order = strncmp(other, text, size);

        if (order == 0 && other[size] == '\0') {
            *ret_found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_found = false;
    return low;
}

struct memory_node *memory_names_find(const struct memory_names *names, const char *text,
                                      size_t size)
{
    bool found;
    size_t position = position_of(names, text, size, &found);

    return found ? names->items[position].node : NULL;
}

bool memory_names_reserve(struct memory_names *names)
{
    size_t capacity = names->capacity == 0 ? 4 : names->capacity * 2;
    struct memory_name *items;

    if (names->count < names->capacity)
        return true;
    items = ron_mem_alloc_array(capacity, sizeof(*items));
    if (items == NULL)
        return false;
    if (names->count > 0)
        memcpy(items, names->items, names->count * sizeof(*items));
    ron_mem_free(names->items);
    names->items = items;
    names->capacity = capacity;
    return true;
}

void memory_names_set(struct memory_vfs *vfs, struct memory_names *names, const char *text,
                      struct memory_node *node)
{
    size_t size = strlen(text);
    bool found;
    size_t position = position_of(names, text, size, &found);
    struct memory_name *item = names->items + position;
    struct memory_node *old = found ? item->node : NULL;

    if (node != NULL)
        node->refs_count++;
    if (node != NULL && !found) {
        RON_ASSERT(names->count < names->capacity);
        memmove(item + 1, item, (names->count - position) * sizeof(*item));
        names->count++;
        memset(item, 0, sizeof(*item)); /* equal states have equal bytes */
        memcpy(item->text, text, size);
    }
    if (node != NULL) {
        item->node = node;
    } else if (found) {
        names->count--;
        memmove(item, item + 1, (names->count - position) * sizeof(*item));
        memset(names->items + names->count, 0, sizeof(*item));
    }
    if (old != NULL)
        memory_node_unref(vfs, old);
}

void memory_names_fini(struct memory_vfs *vfs, struct memory_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        memory_node_unref(vfs, names->items[i].node);
    ron_mem_free(names->items);
    *names = (struct memory_names){0};
}

bool memory_names_copy(struct memory_vfs *vfs, struct memory_names *to,
                       const struct memory_names *from)
{
    struct memory_names copy = {0};

    if (from->count > 0) {
        copy.items = ron_mem_alloc_array(from->count, sizeof(*copy.items));
        if (copy.items == NULL)
            return false;
        memcpy(copy.items, from->items, from->count * sizeof(*copy.items));
    }
    copy.count = from->count;
    copy.capacity = from->count;
    for (size_t i = 0; i < copy.count; i++)
        copy.items[i].node->refs_count++;
    memory_names_fini(vfs, to);
    *to = copy;
    return true;
}

/* ---- Changes ---- */

enum ron_err memory_apply(struct io_content **content, const struct memory_change *change,
                          uint64_t size)
{
    if (change->kind == IO_CHANGE_TRUNCATE)
        return io_content_resize(content, change->size);
    return io_content_write(content, change->offset, change->bytes, size);
}

struct memory_change *memory_change_new(enum io_change_kind kind, struct memory_node *node,
                                        const char *path, const char *from)
{
    size_t path_size = strlen(path) + 1;
    size_t from_size = from == NULL ? 0 : strlen(from) + 1;
    const char *slash = strrchr(path, '/');
    struct memory_change *change = ron_mem_alloc(sizeof(*change) + path_size + from_size);

    if (change == NULL)
        return NULL;
    change->kind = kind;
    change->node = node;
    node->refs_count++;
    memcpy(change->path, path, path_size);
    change->leaf = slash == NULL ? change->path : change->path + (slash + 1 - path);
    if (from != NULL) {
        memcpy(change->path + path_size, from, from_size);
        change->from = change->path + path_size;
    }
    return change;
}

void memory_change_free(struct memory_vfs *vfs, struct memory_change *change)
{
    memory_node_unref(vfs, change->node);
    if (change->child != NULL)
        memory_node_unref(vfs, change->child);
    ron_mem_free(change->bytes);
    ron_mem_free(change);
}

struct memory_change *memory_change_write(struct memory_vfs *vfs, struct memory_node *node,
                                          const char *path, uint64_t offset,
                                          const struct ron_slice *parts, uint64_t size)
{
    struct memory_change *change = memory_change_new(IO_CHANGE_WRITE, node, path, NULL);
    bool zeros = true;
    size_t done = 0;

    if (change == NULL)
        return NULL;
    change->offset = offset;
    change->size = size;
    change->bytes = ron_mem_alloc(size);
    if (change->bytes == NULL) {
        memory_change_free(vfs, change);
        return NULL;
    }
    for (size_t i = 0; done < size; i++) {
        size_t part_size = parts[i].size < size - done ? parts[i].size : size - done;

        if (part_size > 0)
            memcpy(change->bytes + done, parts[i].data, part_size);
        done += part_size;
    }
    zeros = change->bytes[0] == 0 && memcmp(change->bytes, change->bytes + 1, size - 1) == 0;
    if (zeros)
        change->bytes = ron_mem_free(change->bytes);
    return change;
}

enum ron_err memory_changes_reserve(struct memory_vfs *vfs, const char *path,
                                    struct ron_errinfo *reterr)
{
    size_t capacity = vfs->changes_capacity == 0 ? 8 : vfs->changes_capacity * 2;
    struct memory_change **changes;

    if (vfs->changes_count == IO_MEMORY_CHANGES_MAX)
        return ron_fail(reterr, RON_ERR_BUSY, "memory/%s: %d changes are not yet synced", path,
                        (int)IO_MEMORY_CHANGES_MAX);
    if (vfs->changes_count < vfs->changes_capacity)
        return RON_ERR_OK;
    changes = ron_mem_resize(vfs->changes, capacity * sizeof(struct memory_change *));
    if (changes == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "memory/%s: list of changes", path);
    memset(changes + vfs->changes_count, 0,
           (capacity - vfs->changes_count) * sizeof(struct memory_change *));
    vfs->changes = changes;
    vfs->changes_capacity = capacity;
    return RON_ERR_OK;
}

void memory_changes_add(struct memory_vfs *vfs, struct memory_change *change)
{
    RON_ASSERT(vfs->changes_count < vfs->changes_capacity);
    vfs->changes[vfs->changes_count++] = change;
}

void memory_changes_drop(struct memory_vfs *vfs, const struct memory_node *node)
{
    size_t kept_count = 0;
    size_t count = vfs->changes_count;

    for (size_t i = 0; i < count; i++) {
        struct memory_change *change = vfs->changes[i];

        vfs->changes[i] = NULL;
        if (change->node == node)
            memory_change_free(vfs, change);
        else
            vfs->changes[kept_count++] = change;
    }
    vfs->changes_count = kept_count;
}
