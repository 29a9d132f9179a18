/*
 * segment_index_build.c - collect the keys of a segment, sort them, write the index file. See
 * segment_index.h.
 */
#include "base/assert.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "io/replace.h"
#include "io/segment_index_format.h"

enum {
    CAPACITY_MIN = 1024,
    WRITE_PAGES = 64, /* per write */
    BUILDER_MAGIC = 0x1dbb0001,
};

struct io_index_builder {
    uint32_t magic;
    struct io_index_of of;
    uint64_t keys_max;
    struct io_index_entry *entries;
    size_t entries_count, entries_capacity;
    struct io_index_start *starts;
    size_t starts_count, starts_capacity;
    struct index_span spans[INDEX_SPANS_MAX];
};

static void builder_check(const struct io_index_builder *builder)
{
    RON_ASSERT(builder->magic == BUILDER_MAGIC);
    RON_ASSERT(builder->entries_count <= builder->entries_capacity);
    RON_ASSERT(builder->entries_count <= builder->keys_max);
    RON_ASSERT(builder->starts_count <= builder->starts_capacity);
}

enum ron_err io_index_builder_new(const struct io_index_of *of, uint64_t keys_max,
                                  struct io_index_builder **ret_builder, struct ron_errinfo *reterr)
{
    struct io_index_builder *builder;

    RON_ASSERT(keys_max <= IO_INDEX_KEYS_MAX);
    builder = ron_mem_alloc(sizeof(*builder));
    if (builder == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "an index builder");
    builder->magic = BUILDER_MAGIC;
    builder->of = *of;
    builder->keys_max = keys_max;
    *ret_builder = builder;
    return RON_ERR_OK;
}

struct io_index_builder *io_index_builder_free(struct io_index_builder *builder)
{
    if (builder == NULL)
        return NULL;
    builder_check(builder);
    builder->magic = 0;
    builder->entries = ron_mem_free(builder->entries);
    builder->starts = ron_mem_free(builder->starts);
    return ron_mem_free(builder);
}

/* Double an array within `max` items. The array has room for one more on RON_ERR_OK. */
static enum ron_err grow(void **items, size_t *capacity, size_t count, size_t item_size, size_t max,
                         const char *what, struct ron_errinfo *reterr)
{
    size_t wanted = *capacity < CAPACITY_MIN ? CAPACITY_MIN : *capacity * 2;
    void *larger;

    if (count < *capacity)
        return RON_ERR_OK;
    if (count >= max)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "more than %zu %s in one index", max, what);
    if (wanted > max)
        wanted = max;
    larger = ron_mem_resize(*items, wanted * item_size);
    if (larger == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%zu %s of an index", wanted, what);
    *items = larger;
    *capacity = wanted;
    return RON_ERR_OK;
}

enum ron_err io_index_add(struct io_index_builder *builder, const struct io_index_entry *entry,
                          struct ron_errinfo *reterr)
{
    void *items = builder->entries;
    enum ron_err err = grow(&items, &builder->entries_capacity, builder->entries_count,
                            sizeof(*entry), builder->keys_max, "keys", reterr);

    if (err != RON_ERR_OK)
        return err;
    builder->entries = items;
    builder->entries[builder->entries_count++] = *entry;
    return RON_ERR_OK;
}

enum ron_err io_index_add_start(struct io_index_builder *builder, uint64_t index, uint32_t offset8,
                                struct ron_errinfo *reterr)
{
    void *items = builder->starts;
    enum ron_err err;

    if (builder->starts_count > 0) {
        const struct io_index_start *last = &builder->starts[builder->starts_count - 1];

        RON_ASSERT(index > last->index);
        RON_ASSERT(offset8 > last->offset8);
        if (offset8 - last->offset8 < IO_INDEX_START_EVERY / 8)
            return RON_ERR_OK;
    }
    err = grow(&items, &builder->starts_capacity, builder->starts_count, sizeof(*builder->starts),
               IO_INDEX_STARTS_MAX, "starts", reterr);
    if (err != RON_ERR_OK)
        return err;
    builder->starts = items;
    builder->starts[builder->starts_count++] = (struct io_index_start){.index = index,
                                                                       .offset8 = offset8};
    return RON_ERR_OK;
}

/* The resident part as it will be stored: filter, fences, starts. */
static void fill_resident(const struct io_index_builder *builder, const struct index_layout *layout,
                          uint8_t *resident)
{
    const struct index_seed seed = io_index_seed(&builder->of);
    uint64_t *filter = (uint64_t *)(void *)resident;

    for (size_t i = 0; i < builder->entries_count; i++) {
        uint64_t hash = index_hash(&seed, builder->entries[i].key);

        index_filter_add(filter + INDEX_BLOCK_WORDS * index_block(hash, layout->blocks_count),
                         hash);
    }
    for (size_t page = 0; page < layout->pages_count; page++)
        ron_store_le64(resident + layout->fences_offset + page * sizeof(uint64_t),
                       index_prefix(builder->entries[page * INDEX_PAGE_KEYS].key));
    if (builder->starts_count > 0)
        memcpy(resident + layout->starts_offset, builder->starts,
               builder->starts_count * sizeof(*builder->starts));
}

static void fill_page(const struct io_index_builder *builder, uint64_t page, uint32_t tag,
                      uint8_t bytes[INDEX_PAGE_SIZE])
{
    size_t first = page * INDEX_PAGE_KEYS;
    size_t count = builder->entries_count - first;

    if (count > INDEX_PAGE_KEYS)
        count = INDEX_PAGE_KEYS;
    memset(bytes, 0, INDEX_PAGE_SIZE);
    for (size_t i = 0; i < count; i++) {
        const struct index_stored stored = index_stored_of(&builder->entries[first + i]);

        memcpy(bytes + i * sizeof(stored), &stored, sizeof(stored));
    }
    ron_store_le32(bytes + INDEX_PAGE_TAIL, (uint32_t)page);
    ron_store_le32(bytes + INDEX_PAGE_TAIL + 4, (uint32_t)count);
    ron_store_le32(bytes + INDEX_PAGE_TAIL + 8, tag);
    ron_store_le32(bytes + INDEX_PAGE_TAIL + 12, ron_crc32c(0, bytes, INDEX_PAGE_TAIL + 12));
}

static enum ron_err write_pages(const struct io_index_builder *builder, struct io_file *file,
                                const struct index_layout *layout, uint8_t *buffer,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    const uint32_t tag = io_index_seed(&builder->of).tag;
    enum ron_err err = RON_ERR_OK;

    for (uint64_t page = 0; page < layout->pages_count && err == RON_ERR_OK;) {
        uint64_t first = page;
        size_t size = 0;

        for (; page < layout->pages_count && page < first + WRITE_PAGES; page++) {
            fill_page(builder, page, tag, buffer + size);
            size += INDEX_PAGE_SIZE;
        }
        err = io_file_write(file, (1 + first) * INDEX_PAGE_SIZE, &(struct ron_slice){buffer, size},
                            1, reterr);
    }
    return err;
}

/* Head and resident part; the head comes last, though nothing depends on it. */
static enum ron_err write_rest(const struct io_index_builder *builder, struct io_file *file,
                               const struct index_layout *layout, const uint8_t *resident,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct index_head head = {.of = builder->of,
                              .keys_count = builder->entries_count,
                              .starts_count = builder->starts_count};
    uint8_t bytes[INDEX_PAGE_SIZE];
    enum ron_err err = io_file_write(file, layout->resident_offset,
                                     &(struct ron_slice){resident, layout->resident_size}, 1,
                                     reterr);

    if (err != RON_ERR_OK)
        return err;
    head.resident_crc = ron_crc32c(0, resident, layout->resident_size);
    io_index_head_encode(&head, bytes);
    return io_file_write(file, 0, &(struct ron_slice){bytes, sizeof(bytes)}, 1, reterr);
}

static enum ron_err write_file(const struct io_index_builder *builder, struct io_vfs *vfs,
                               const char *path, uint8_t *buffer, uint8_t *resident,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct index_layout layout = io_index_layout(builder->entries_count,
                                                       builder->starts_count);
    struct io_replace replace;
    enum ron_err err;

    fill_resident(builder, &layout, resident);
    err = io_replace_begin(&replace, vfs, path, reterr);
    if (err != RON_ERR_OK)
        return err;
    err = write_pages(builder, replace.file, &layout, buffer, reterr);
    if (err == RON_ERR_OK)
        err = write_rest(builder, replace.file, &layout, resident, reterr);
    if (err == RON_ERR_OK)
        return io_replace_commit(&replace, reterr);
    io_replace_abandon(&replace);
    return err;
}

enum ron_err io_index_write(struct io_index_builder *builder, struct io_vfs *vfs, const char *path,
                            struct ron_errinfo *reterr)
{
    const struct index_layout layout = io_index_layout(builder->entries_count,
                                                       builder->starts_count);
    uint8_t *buffer, *resident;
    enum ron_err err;

    builder_check(builder);
    io_index_sort(builder->entries, builder->entries_count, builder->spans);
    buffer = ron_mem_alloc((size_t)WRITE_PAGES * INDEX_PAGE_SIZE);
    resident = ron_mem_alloc(layout.resident_size);
    if (buffer == NULL || resident == NULL)
        err = ron_fail(reterr, RON_ERR_NO_MEMORY, "an index of %zu keys", builder->entries_count);
    else
        err = write_file(builder, vfs, path, buffer, resident, reterr);
    ron_mem_free(buffer);
    ron_mem_free(resident);
    return err == RON_ERR_OK ? err : ron_wrap(reterr, err, "write index %s", path);
}
