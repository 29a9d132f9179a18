/*
 * segment_index.c - open an index file and look keys up. See segment_index.h.
 */
#include "io/segment_index.h"

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "io/segment_index_format.h"

enum {
    INDEX_MAGIC = 0x1dec0001,
    AT_ONCE = 32, /* indexes whose memory is asked for together */
    READ_PAGES = IO_INDEX_READ_SIZE / INDEX_PAGE_SIZE,
    PIECE_SIZE = 256, /* of the filter, read and checked at once */
};
_Static_assert(PIECE_SIZE % INDEX_BLOCK_SIZE == 0, "a block is in one piece");

struct io_index {
    uint32_t magic;
    struct io_vfs *vfs; /* borrowed */
    struct io_file *file;
    struct io_file *past; /* the same past the system's cache, while all pages are read */
    struct index_seed seed;
    struct index_layout layout;
    uint64_t keys_count, starts_count;
    uint64_t *filter; /* a table of its own; NULL: a gate stands for it, */
    uint32_t *sums;   /* and it is asked in the file, of which these are believed */
    void *rest;       /* fences and starts */
    const uint64_t *fences;
    const struct io_index_start *starts;
};

static bool same_segment(const struct io_index_of *a, const struct io_index_of *b)
{
    return memcmp(a->log_id, b->log_id, sizeof(a->log_id)) == 0 && a->segment == b->segment &&
           a->first_index == b->first_index && a->last_index == b->last_index &&
           memcmp(a->last_link, b->last_link, sizeof(a->last_link)) == 0 &&
           a->sealed_size == b->sealed_size;
}

static enum ron_err read_exactly(struct io_file *file, uint64_t offset, void *bytes, size_t size,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    size_t done = 0;
    enum ron_err err = io_file_read(file, offset, bytes, size, &done, reterr);

    if (err == RON_ERR_OK && done != size)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "the file ends at byte %llu of %llu",
                        (unsigned long long)(offset + done), (unsigned long long)(offset + size));
    return err;
}

/* The head, and that the file has the size it asks for: nothing is allocated on its word alone. */
static enum ron_err read_head(struct io_file *file, const struct io_index_of *of,
                              struct index_head *ret_head, struct ron_errinfo *reterr) RON_BLOCKS
{
    uint8_t bytes[INDEX_PAGE_SIZE];
    struct index_head head = {0};
    uint64_t size = 0, wanted;
    enum ron_err err = io_file_size(file, &size, reterr);

    if (err == RON_ERR_OK)
        err = read_exactly(file, 0, bytes, sizeof(bytes), reterr);
    if (err == RON_ERR_OK)
        err = io_index_head_decode(bytes, &head, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (!same_segment(&head.of, of))
        return ron_fail(reterr, RON_ERR_VERSION_SKEW, "it belongs to another segment (%llu)",
                        (unsigned long long)head.of.segment);
    wanted = io_index_layout(head.keys_count, head.starts_count).file_size;
    if (size != wanted)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "%llu bytes instead of %llu",
                        (unsigned long long)size, (unsigned long long)wanted);
    *ret_head = head;
    return RON_ERR_OK;
}

/* Bytes of the filter from a piece on, as far as that goes. */
static size_t piece_size(const struct io_index *index, uint64_t piece)
{
    const uint64_t left = index->layout.fences_offset - piece * PIECE_SIZE;

    return left < PIECE_SIZE ? (size_t)left : PIECE_SIZE;
}

static uint64_t pieces_count(const struct io_index *index)
{
    return (index->layout.fences_offset + PIECE_SIZE - 1) / PIECE_SIZE;
}

/* What the filter's pieces must have when they are read one by one. It was checked as a whole. */
static enum ron_err sum_filter(struct io_index *index, struct ron_errinfo *reterr)
{
    const uint64_t count = pieces_count(index);

    index->sums = ron_mem_alloc_array(count, sizeof(*index->sums));
    if (index->sums == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%llu sums of a filter",
                        (unsigned long long)count);
    for (uint64_t i = 0; i < count; i++)
        index->sums[i] = ron_crc32c(0, (const uint8_t *)index->filter + i * PIECE_SIZE,
                                    piece_size(index, i));
    return RON_ERR_OK;
}

static enum ron_err read_resident(struct io_index *index, uint32_t crc,
                                  struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct index_layout *layout = &index->layout;
    const uint64_t rest_size = layout->resident_size - layout->fences_offset;
    uint8_t *rest;
    enum ron_err err;

    /* By itself, so that it can go; aligned, since a block that crosses a cache line costs two. */
    index->filter = ron_table_alloc(layout->blocks_count, INDEX_BLOCK_SIZE, RON_TABLE_RANDOM);
    index->rest = rest = ron_mem_alloc(rest_size + 1);
    if (index->filter == NULL || rest == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%llu bytes of filter and fences",
                        (unsigned long long)layout->resident_size);
    err = read_exactly(index->file, layout->resident_offset, index->filter, layout->fences_offset,
                       reterr);
    if (err == RON_ERR_OK)
        err = read_exactly(index->file, layout->resident_offset + layout->fences_offset, rest,
                           rest_size, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (ron_crc32c(ron_crc32c(0, index->filter, layout->fences_offset), rest, rest_size) != crc)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "filter and fences failed their check");
    index->fences = (const uint64_t *)(const void *)rest;
    index->starts = (const struct io_index_start *)(const void *)(rest + layout->starts_offset -
                                                                  layout->fences_offset);
    return sum_filter(index, reterr);
}

static enum ron_err load(struct io_index *index, struct io_vfs *vfs, const char *path,
                         const struct io_index_of *of, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct index_head head = {0};
    enum ron_err err = io_vfs_open(vfs, path, IO_OPEN_READ, &index->file, reterr);

    if (err == RON_ERR_OK)
        err = read_head(index->file, of, &head, reterr);
    if (err != RON_ERR_OK)
        return err;
    index->vfs = vfs;
    index->keys_count = head.keys_count;
    index->starts_count = head.starts_count;
    index->layout = io_index_layout(head.keys_count, head.starts_count);
    index->seed = io_index_seed(of);
    return read_resident(index, head.resident_crc, reterr);
}

enum ron_err io_index_open(struct io_vfs *vfs, const char *path, const struct io_index_of *of,
                           struct io_index **ret_index, struct ron_errinfo *reterr)
{
    struct io_index *index = ron_mem_alloc(sizeof(*index));
    enum ron_err err;

    if (index == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "index %s", path);
    index->magic = INDEX_MAGIC;
    err = load(index, vfs, path, of, reterr);
    if (err != RON_ERR_OK) {
        io_index_close(index);
        return ron_wrap(reterr, err, "index %s", path);
    }
    *ret_index = index;
    return RON_ERR_OK;
}

struct io_index *io_index_close(struct io_index *index)
{
    if (index == NULL)
        return NULL;
    RON_ASSERT(index->magic == INDEX_MAGIC);
    index->magic = 0;
    index->file = io_file_close(index->file);
    index->past = io_file_close(index->past);
    index->filter = ron_table_free(index->filter);
    index->sums = ron_mem_free(index->sums);
    index->rest = ron_mem_free(index->rest);
    return ron_mem_free(index);
}

void *io_index_take_filter(struct io_index *index)
{
    RON_ASSERT(index->magic == INDEX_MAGIC);
    return RON_TAKE(index->filter);
}

/* The block of a key, or for an index without a filter one that has all of them. */
static inline const uint64_t *block_of(const struct io_index *index, uint64_t hash)
{
    static const uint64_t full[INDEX_BLOCK_WORDS] = {UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                                     UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                                     UINT64_MAX, UINT64_MAX};

    if (index->filter == NULL)
        return full;
    return index->filter + INDEX_BLOCK_WORDS * index_block(hash, index->layout.blocks_count);
}

bool io_index_may_have(const struct io_index *index, const uint8_t key[16])
{
    uint64_t hash = index_hash(&index->seed, key);

    RON_ASSERT(index->magic == INDEX_MAGIC);
    return index_filter_has(block_of(index, hash), hash);
}

size_t io_index_next_with(struct io_index *const *indexes, size_t count, size_t from,
                          const uint8_t key[16])
{
    uint64_t hashes[AT_ONCE];

    for (size_t first = from; first < count; first += AT_ONCE) {
        size_t some = count - first < AT_ONCE ? count - first : AT_ONCE;

        for (size_t i = 0; i < some; i++) {
            hashes[i] = index_hash(&indexes[first + i]->seed, key);
            ron_prefetch(block_of(indexes[first + i], hashes[i]));
        }
        for (size_t i = 0; i < some; i++) {
            if (index_filter_has(block_of(indexes[first + i], hashes[i]), hashes[i]))
                return first + i;
        }
    }
    return count;
}

uint64_t io_index_may_have_each(const struct io_index *index, const uint8_t (*keys)[16],
                                size_t count)
{
    uint64_t hashes[IO_INDEX_KEYS_AT_ONCE];
    uint64_t bits = 0;

    RON_ASSERT(index->magic == INDEX_MAGIC);
    RON_ASSERT(count <= IO_INDEX_KEYS_AT_ONCE);
    for (size_t i = 0; i < count; i++) {
        hashes[i] = index_hash(&index->seed, keys[i]);
        ron_prefetch(block_of(index, hashes[i]));
    }
    for (size_t i = 0; i < count; i++)
        bits |= (uint64_t)index_filter_has(block_of(index, hashes[i]), hashes[i]) << i;
    return bits;
}

/* Believe a page: sum, tag, number, count. */
static enum ron_err check_page(const struct io_index *index, uint64_t page,
                               const uint8_t bytes[INDEX_PAGE_SIZE], size_t *ret_count,
                               struct ron_errinfo *reterr)
{
    uint64_t count = index->keys_count - page * INDEX_PAGE_KEYS;
    const uint8_t *tail = bytes + INDEX_PAGE_TAIL;

    if (count > INDEX_PAGE_KEYS)
        count = INDEX_PAGE_KEYS;
    if (ron_load_le32(tail + 12) != ron_crc32c(0, bytes, INDEX_PAGE_TAIL + 12) ||
        ron_load_le32(tail + 8) != index->seed.tag || ron_load_le32(tail) != page ||
        ron_load_le32(tail + 4) != count)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "it failed its check");
    *ret_count = (size_t)count;
    return RON_ERR_OK;
}

static enum ron_err fail_page(const struct io_index *index, uint64_t page, enum ron_err err,
                              struct ron_errinfo *reterr)
{
    return ron_wrap(reterr, err, "index %s: page %llu", io_file_path(index->file),
                    (unsigned long long)page);
}

static enum ron_err read_page(struct io_index *index, uint64_t page, uint8_t bytes[INDEX_PAGE_SIZE],
                              size_t *ret_count, struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = read_exactly(index->file, (1 + page) * INDEX_PAGE_SIZE, bytes,
                                    INDEX_PAGE_SIZE, reterr);

    if (err == RON_ERR_OK)
        err = check_page(index, page, bytes, ret_count, reterr);
    return err == RON_ERR_OK ? err : fail_page(index, page, err, reterr);
}

/* May it have the key, by its filter: the one in memory, or what the file has of it. */
static enum ron_err ask_filter(const struct io_index *index, const uint8_t key[16], bool *ret_may,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    const uint64_t hash = index_hash(&index->seed, key);
    const uint64_t offset = index_block(hash, index->layout.blocks_count) * INDEX_BLOCK_SIZE;
    const uint64_t piece = offset / PIECE_SIZE;
    uint64_t words[PIECE_SIZE / sizeof(uint64_t)];
    enum ron_err err;

    if (index->filter != NULL) {
        *ret_may = index_filter_has(block_of(index, hash), hash);
        return RON_ERR_OK;
    }
    err = read_exactly(index->file, index->layout.resident_offset + piece * PIECE_SIZE, words,
                       piece_size(index, piece), reterr);
    if (err == RON_ERR_OK &&
        ron_crc32c(0, (const uint8_t *)words, piece_size(index, piece)) != index->sums[piece])
        err = ron_fail(reterr, RON_ERR_WAL_CORRUPT, "it failed its check");
    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "index %s: piece %llu of the filter",
                        io_file_path(index->file), (unsigned long long)piece);
    *ret_may = index_filter_has(words + offset % PIECE_SIZE / sizeof(uint64_t), hash);
    return RON_ERR_OK;
}

/* The number of pages that begin before every key with this prefix. */
static uint64_t pages_before(const struct io_index *index, uint64_t prefix)
{
    uint64_t first = 0, count = index->layout.pages_count;

    while (count > 0) {
        uint64_t half = count / 2;
        bool before = index->fences[first + half] < prefix;

        first = before ? first + half + 1 : first;
        count = before ? count - half - 1 : half;
    }
    return first;
}

/* The first entry of the page that is not before this one; count if there is none. */
static size_t entries_before(const struct index_stored *entries, size_t count,
                             const struct index_stored *wanted)
{
    size_t first = 0;

    while (count > 0) {
        size_t half = count / 2;

        if (index_stored_before(&entries[first + half], wanted)) {
            first += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return first;
}

enum ron_err io_index_find_from(struct io_index *index, const uint8_t key[16], uint32_t offset8,
                                uint32_t sub, struct io_index_place *ret_place,
                                struct ron_errinfo *reterr)
{
    const uint64_t prefix = index_prefix(key);
    struct index_stored wanted = {.place = {offset8, sub}};
    struct index_stored entries[INDEX_PAGE_SIZE / sizeof(struct index_stored)];
    bool may_have = false;
    uint64_t page;
    enum ron_err err;

    _Static_assert(sizeof(entries) == INDEX_PAGE_SIZE, "a page fits");
    memcpy(wanted.prefix, key, sizeof(wanted.prefix));
    RON_ASSERT(index->magic == INDEX_MAGIC);
    err = ask_filter(index, key, &may_have, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (!may_have)
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "no such key");
    /* The key's first entry may end the page before the first that begins with its prefix. */
    page = pages_before(index, prefix);
    page = page > 0 ? page - 1 : 0;
    for (; page < index->layout.pages_count && index->fences[page] <= prefix; page++) {
        size_t count = 0, at;

        err = read_page(index, page, (uint8_t *)entries, &count, reterr);
        if (err != RON_ERR_OK)
            return err;
        at = entries_before(entries, count, &wanted);
        if (at == count)
            continue;
        if (index_prefix(entries[at].prefix) != prefix)
            break;
        *ret_place = entries[at].place;
        return RON_ERR_OK;
    }
    return ron_fail(reterr, RON_ERR_NOT_FOUND, "no such key");
}

enum ron_err io_index_find(struct io_index *index, const uint8_t key[16],
                           struct io_index_place *ret_place, struct ron_errinfo *reterr)
{
    return io_index_find_from(index, key, 0, 0, ret_place, reterr);
}

struct io_index_start io_index_start_of(const struct io_index *index, uint64_t record)
{
    uint64_t first = 0, count = index->starts_count;

    if (count == 0)
        return (struct io_index_start){0};
    while (count > 0) { /* the number of starts at or before the record */
        uint64_t half = count / 2;

        if (index->starts[first + half].index <= record) {
            first += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return index->starts[first > 0 ? first - 1 : 0];
}

static enum ron_err each_page(struct io_index *index, struct io_file *file, void *memory,
                              io_index_page_fn *fn, void *context,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    const uint64_t pages_count = index->layout.pages_count;
    uint64_t some = 0;

    for (uint64_t first = 0; first < pages_count; first += some) {
        enum ron_err err;

        some = pages_count - first < READ_PAGES ? pages_count - first : READ_PAGES;
        err = read_exactly(file, (1 + first) * INDEX_PAGE_SIZE, memory, some * INDEX_PAGE_SIZE,
                           reterr);
        if (err != RON_ERR_OK)
            return fail_page(index, first, err, reterr);
        for (uint64_t i = 0; i < some; i++) {
            const uint8_t *bytes = (const uint8_t *)memory + i * INDEX_PAGE_SIZE;
            size_t count = 0;

            err = check_page(index, first + i, bytes, &count, reterr);
            if (err != RON_ERR_OK)
                return fail_page(index, first + i, err, reterr);
            fn(context, (const struct index_stored *)(const void *)bytes, count);
        }
    }
    return RON_ERR_OK;
}

enum ron_err io_index_each_page(struct io_index *index, void *memory, io_index_page_fn *fn,
                                void *context, struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;

    RON_ASSERT(index->magic == INDEX_MAGIC);
    RON_ASSERT((uintptr_t)memory % IO_DIRECT_SIZE == 0);
    if (index->past == NULL) /* else who read before has panicked */
        err = io_vfs_open(index->vfs, io_file_path(index->file), IO_OPEN_DIRECT, &index->past,
                          NULL);
    /* Not ours to write any more, or no descriptor is left: through the cache, as it is. */
    err = each_page(index, err == RON_ERR_OK ? index->past : index->file, memory, fn, context,
                    reterr);
    index->past = io_file_close(index->past);
    return err;
}

/* Order within the page and behind the last entry of the page before, fence. The filter is over
 * whole keys, which are not here: its sum vouches for it. */
static const char *page_fault(const struct io_index *index, uint64_t page,
                              const struct index_stored *entries, size_t count,
                              struct index_stored *last)
{
    if (index->fences[page] != index_prefix(entries[0].prefix))
        return "its fence is wrong";
    for (size_t i = 0; i < count; i++) {
        if ((page > 0 || i > 0) && index_stored_before(&entries[i], last))
            return "its keys are not in order";
        *last = entries[i];
    }
    return NULL;
}

enum ron_err io_index_check(struct io_index *index, struct ron_errinfo *reterr)
{
    struct index_stored entries[INDEX_PAGE_SIZE / sizeof(struct index_stored)];
    struct index_stored last = {0};

    for (uint64_t page = 0; page < index->layout.pages_count; page++) {
        size_t count = 0;
        const char *fault;
        enum ron_err err = read_page(index, page, (uint8_t *)entries, &count, reterr);

        if (err != RON_ERR_OK)
            return err;
        fault = page_fault(index, page, entries, count, &last);
        if (fault != NULL)
            return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "index %s: page %llu: %s",
                            io_file_path(index->file), (unsigned long long)page, fault);
    }
    for (uint64_t i = 1; i < index->starts_count; i++) {
        if (index->starts[i].index <= index->starts[i - 1].index)
            return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "index %s: starts are not in order",
                            io_file_path(index->file));
    }
    return RON_ERR_OK;
}

uint64_t io_index_keys_count(const struct io_index *index)
{
    return index->keys_count;
}

size_t io_index_memory(const struct io_index *index)
{
    const uint64_t gone = index->filter == NULL ? index->layout.fences_offset : 0;

    return sizeof(*index) + index->layout.resident_size - gone +
           pieces_count(index) * sizeof(*index->sums);
}
