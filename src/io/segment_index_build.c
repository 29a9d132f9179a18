/*
 * segment_index_build.c - collect the keys of a segment, write the index file in their order. See
 * segment_index.h.
 */
#include "base/assert.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "io/replace.h"
#include "io/segment_index_format.h"
#include "io/segment_index_items.h"

enum {
    WRITE_PAGES = 256, /* per write */
    FILTER_AHEAD = 16, /* keys whose block is asked for before it is needed */
    BUILDER_MAGIC = 0x1dbb0002,
};

struct io_index_builder {
    uint32_t magic;
    struct io_index_of of;
    struct index_seed seed; /* of it */
    uint64_t keys_max;
    struct index_items items;
    uint8_t (*keys)[16]; /* as they came */
    size_t keys_count, keys_capacity;
    size_t keys_room; /* in what there is, of this segment */
    struct io_index_start *starts;
    size_t starts_count, starts_capacity;
    uint8_t *resident;
    size_t resident_capacity;
    struct io_replace replace; /* not on the stack of a task that may panic */
    bool past_cache;
    void *pages_memory;
    uint8_t *pages; /* WRITE_PAGES, where a page begins */
};

static void builder_check(const struct io_index_builder *builder)
{
    RON_ASSERT(builder->magic == BUILDER_MAGIC);
    RON_ASSERT(builder->keys_count <= builder->keys_room);
    RON_ASSERT(builder->keys_room <= builder->keys_capacity);
    RON_ASSERT(builder->keys_room <= builder->keys_max);
    RON_ASSERT(builder->starts_count <= builder->starts_capacity);
}

static size_t keys_room(const struct io_index_builder *builder)
{
    return builder->keys_capacity < builder->keys_max ? builder->keys_capacity
                                                      : (size_t)builder->keys_max;
}

void io_index_builder_bind(struct io_index_builder *builder, const struct io_index_of *of)
{
    builder->of = *of;
    builder->seed = io_index_seed(of);
}

void io_index_builder_reset(struct io_index_builder *builder, const struct io_index_of *of,
                            uint64_t keys_max)
{
    RON_ASSERT(builder->magic == BUILDER_MAGIC);
    RON_ASSERT(keys_max <= IO_INDEX_KEYS_MAX);
    io_replace_abandon(&builder->replace);
    io_index_builder_bind(builder, of);
    builder->keys_max = keys_max;
    builder->keys_count = 0;
    builder->keys_room = keys_room(builder);
    builder->starts_count = 0;
    io_index_items_reset(&builder->items);
}

enum ron_err io_index_builder_new(const struct io_index_of *of, uint64_t keys_max,
                                  struct io_index_builder **ret_builder, struct ron_errinfo *reterr)
{
    struct io_index_builder *builder = ron_mem_alloc(sizeof(*builder));
    void *memory = ron_table_alloc((1 + (size_t)WRITE_PAGES) * INDEX_PAGE_SIZE, 1, RON_TABLE_DISK);

    if (builder == NULL || memory == NULL) {
        (void)ron_table_free(memory);
        (void)ron_mem_free(builder);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "an index builder");
    }
    builder->magic = BUILDER_MAGIC;
    builder->pages_memory = memory;
    builder->pages = io_direct_page(memory);
    io_index_builder_reset(builder, of, keys_max);
    *ret_builder = builder;
    return RON_ERR_OK;
}

void io_index_builder_pass_cache(struct io_index_builder *builder)
{
    builder->past_cache = true;
}

struct io_index_builder *io_index_builder_free(struct io_index_builder *builder)
{
    if (builder == NULL)
        return NULL;
    builder_check(builder);
    io_replace_abandon(&builder->replace);
    builder->magic = 0;
    io_index_items_fini(&builder->items);
    builder->keys = ron_mem_free(builder->keys);
    builder->starts = ron_mem_free(builder->starts);
    builder->resident = ron_mem_free(builder->resident);
    builder->pages_memory = ron_table_free(builder->pages_memory);
    return ron_mem_free(builder);
}

static RON_COLD enum ron_err make_room(struct io_index_builder *builder, struct ron_errinfo *reterr)
{
    void *keys = builder->keys;
    enum ron_err err = io_index_grow(&keys, &builder->keys_capacity, builder->keys_count,
                                     sizeof(*builder->keys), builder->keys_max, "keys", reterr);

    builder->keys = keys;
    builder->keys_room = keys_room(builder);
    return err;
}

enum ron_err io_index_add(struct io_index_builder *builder, const struct io_index_entry *entry,
                          struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;

    if (builder->keys_count == builder->keys_room)
        err = make_room(builder, reterr);
    if (err == RON_ERR_OK)
        err = index_items_add(&builder->items, index_item_of(entry), reterr);
    if (err == RON_ERR_OK)
        memcpy(builder->keys[builder->keys_count++], entry->key, sizeof(entry->key));
    return err;
}

const uint8_t (*io_index_builder_keys(const struct io_index_builder *builder,
                                      size_t *ret_count))[16]
{
    *ret_count = builder->keys_count;
    return (const uint8_t(*)[16])builder->keys;
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
    err = io_index_grow(&items, &builder->starts_capacity, builder->starts_count,
                        sizeof(*builder->starts), IO_INDEX_STARTS_MAX, "starts", reterr);
    if (err != RON_ERR_OK)
        return err;
    builder->starts = items;
    builder->starts[builder->starts_count++] = (struct io_index_start){.index = index,
                                                                       .offset8 = offset8};
    return RON_ERR_OK;
}

static void fill_filter(const struct io_index_builder *builder, const struct index_layout *layout)
{
    uint64_t *filter = (uint64_t *)(void *)builder->resident;
    uint64_t hashes[FILTER_AHEAD];

    memset(filter, 0, layout->fences_offset);
    for (size_t i = 0; i < builder->keys_count + FILTER_AHEAD; i++) {
        uint64_t *hash = &hashes[i % FILTER_AHEAD]; /* of the key so far behind, then of this one */

        if (i >= FILTER_AHEAD)
            index_filter_add(filter + INDEX_BLOCK_WORDS * index_block(*hash, layout->blocks_count),
                             *hash);
        if (i >= builder->keys_count)
            continue;
        *hash = index_hash(&builder->seed, builder->keys[i]);
        ron_prefetch_write(filter + INDEX_BLOCK_WORDS * index_block(*hash, layout->blocks_count));
    }
}

/* Filter and starts as they will be stored; fences come as pages begin. */
static void fill_resident(const struct io_index_builder *builder, const struct index_layout *layout)
{
    fill_filter(builder, layout);
    if (builder->starts_count > 0)
        memcpy(builder->resident + layout->starts_offset, builder->starts,
               builder->starts_count * sizeof(*builder->starts));
}

/* Key pages on their way to the file. */
struct pages {
    struct io_index_builder *builder;
    const struct index_layout *layout;
    uint64_t page;       /* that is being filled */
    uint64_t page_first; /* in the buffer */
    uint32_t keys_count; /* in the page */
    struct ron_errinfo *reterr;
};

static uint8_t *page_bytes(const struct pages *pages)
{
    return pages->builder->pages + (pages->page - pages->page_first) * INDEX_PAGE_SIZE;
}

static enum ron_err write_pages(struct pages *pages) RON_BLOCKS
{
    const struct ron_slice bytes = {pages->builder->pages,
                                    (pages->page - pages->page_first) * INDEX_PAGE_SIZE};
    const uint64_t offset = (1 + pages->page_first) * INDEX_PAGE_SIZE;
    struct io_replace *replace = &pages->builder->replace;
    enum ron_err err;

    pages->page_first = pages->page;
    if (pages->builder->past_cache)
        return io_replace_write_past(replace, offset, bytes, pages->reterr);
    err = io_file_write(replace->file, offset, &bytes, 1, pages->reterr);
    /* Piece by piece: a sync of the log must not wait behind all of it. */
    if (err == RON_ERR_OK)
        err = io_file_write_back(replace->file, offset, bytes.size, pages->reterr);
    return err;
}

static enum ron_err end_page(struct pages *pages) RON_BLOCKS
{
    uint8_t *bytes = page_bytes(pages);
    const size_t used = pages->keys_count * sizeof(struct index_stored);

    memset(bytes + used, 0, INDEX_PAGE_TAIL - used);
    ron_store_le32(bytes + INDEX_PAGE_TAIL, (uint32_t)pages->page);
    ron_store_le32(bytes + INDEX_PAGE_TAIL + 4, pages->keys_count);
    ron_store_le32(bytes + INDEX_PAGE_TAIL + 8, pages->builder->seed.tag);
    ron_store_le32(bytes + INDEX_PAGE_TAIL + 12, ron_crc32c(0, bytes, INDEX_PAGE_TAIL + 12));
    pages->page++;
    pages->keys_count = 0;
    if (pages->page - pages->page_first < WRITE_PAGES && pages->page < pages->layout->pages_count)
        return RON_ERR_OK;
    return write_pages(pages);
}

static void begin_page(const struct pages *pages, const struct index_item *first)
{
    RON_ASSERT(pages->page < pages->layout->pages_count);
    ron_store_le64(pages->builder->resident + pages->layout->fences_offset +
                       pages->page * sizeof(uint64_t),
                   first->prefix);
}

static enum ron_err put_items(struct pages *pages, const struct index_item *items,
                              size_t count) RON_BLOCKS
{
    enum ron_err err = RON_ERR_OK;

    while (count > 0 && err == RON_ERR_OK) {
        const size_t room = INDEX_PAGE_KEYS - pages->keys_count;
        const size_t some = count < room ? count : room;
        uint8_t *to = page_bytes(pages) + pages->keys_count * sizeof(struct index_stored);

        if (pages->keys_count == 0)
            begin_page(pages, items);
        for (size_t i = 0; i < some; i++, to += sizeof(struct index_stored)) {
            ron_store_be64(to, items[i].prefix);
            ron_store_le32(to + 8, (uint32_t)(items[i].place >> 32));
            ron_store_le32(to + 12, (uint32_t)items[i].place);
        }
        pages->keys_count += (uint32_t)some;
        items += some;
        count -= some;
        if (pages->keys_count == INDEX_PAGE_KEYS)
            err = end_page(pages);
    }
    return err;
}

static enum ron_err write_keys(struct io_index_builder *builder, const struct index_layout *layout,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct pages pages = {.builder = builder, .layout = layout, .reterr = reterr};
    enum ron_err err = RON_ERR_OK;

    for (uint32_t i = 0; i < INDEX_BUCKETS && err == RON_ERR_OK; i++) {
        const size_t count = builder->items.buckets[i].count;

        if (count > 0)
            err = put_items(&pages, io_index_items_sort(&builder->items, i), count);
    }
    if (err == RON_ERR_OK && pages.keys_count > 0)
        err = end_page(&pages);
    RON_ASSERT(err != RON_ERR_OK || pages.page_first == layout->pages_count);
    return err;
}

/* Head and resident part; the head comes last, though nothing depends on it. */
static enum ron_err write_rest(const struct io_index_builder *builder, struct io_file *file,
                               const struct index_layout *layout,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ron_slice resident = {builder->resident, layout->resident_size};
    struct index_head head = {.of = builder->of,
                              .keys_count = builder->keys_count,
                              .starts_count = builder->starts_count};
    uint8_t bytes[INDEX_PAGE_SIZE];
    enum ron_err err = io_file_write(file, layout->resident_offset, &resident, 1, reterr);

    if (err != RON_ERR_OK)
        return err;
    head.resident_crc = ron_crc32c(0, resident.data, resident.size);
    io_index_head_encode(&head, bytes);
    return io_file_write(file, 0, &(struct ron_slice){bytes, sizeof(bytes)}, 1, reterr);
}

static enum ron_err write_file(struct io_index_builder *builder, struct io_vfs *vfs,
                               const char *path, const struct index_layout *layout,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_replace *replace = &builder->replace;
    enum ron_err err = io_replace_begin(replace, vfs, path, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = write_keys(builder, layout, reterr);
    if (err == RON_ERR_OK)
        err = write_rest(builder, replace->file, layout, reterr);
    if (err == RON_ERR_OK)
        return io_replace_commit(replace, reterr);
    io_replace_abandon(replace);
    return err;
}

static enum ron_err reserve(struct io_index_builder *builder, const struct index_layout *layout,
                            struct ron_errinfo *reterr)
{
    enum ron_err err = io_index_items_reserve(&builder->items, reterr);

    if (err != RON_ERR_OK || layout->resident_size <= builder->resident_capacity)
        return err;
    builder->resident = ron_mem_free(builder->resident);
    builder->resident_capacity = 0;
    builder->resident = ron_mem_alloc(layout->resident_size);
    if (builder->resident == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "an index of %zu keys", builder->keys_count);
    builder->resident_capacity = layout->resident_size;
    return RON_ERR_OK;
}

enum ron_err io_index_write(struct io_index_builder *builder, struct io_vfs *vfs, const char *path,
                            struct ron_errinfo *reterr)
{
    const struct index_layout layout = io_index_layout(builder->keys_count, builder->starts_count);
    enum ron_err err;

    builder_check(builder);
    err = reserve(builder, &layout, reterr);
    if (err == RON_ERR_OK) {
        fill_resident(builder, &layout);
        err = write_file(builder, vfs, path, &layout, reterr);
    }
    return err == RON_ERR_OK ? err : ron_wrap(reterr, err, "write index %s", path);
}
