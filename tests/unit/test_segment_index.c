/*
 * test_segment_index.c - index files: every key is found, nothing else, and no damaged byte is
 * believed.
 *
 * Method: keys from a seeded generator beside a plain array as the oracle; every byte of a small
 * file flipped; every allocation and every call of the file system failed; crash images before
 * every sync.
 * tidy: long file because every test draws on the same sets of keys.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "io/segment_index.h"
#include "io/segment_index_format.h"
#include "io/segment_index_items.h"
#include "io/vfs_faulty.h"
#include "io_spy.h"

static uint64_t state;

static uint64_t next_random(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static const struct io_index_of some_segment = {
    .log_id = "sixteen bytes ok",
    .segment = 7,
    .first_index = 100,
    .last_index = 5000,
    .last_link = {9, 8, 7},
    .sealed_size = 123456,
};

/* Entry i of a set: a pure function, so that a test can ask for it again. */
static struct io_index_entry entry_of(uint64_t seed, uint64_t i)
{
    struct io_index_entry entry = {.offset8 = (uint32_t)(512 + i * 25), .sub = (uint32_t)(i % 3)};

    state = seed * 1000003 + i * 7919;
    ron_store_le64(entry.key, next_random());
    ron_store_le64(entry.key + 8, next_random());
    return entry;
}

static void fill(struct io_index_builder *builder, uint64_t seed, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct io_index_entry entry = entry_of(seed, i);

        assert_ok(io_index_add(builder, &entry, NULL));
        assert_ok(io_index_add_start(builder, 100 + i, entry.offset8, NULL));
    }
}

static void write_set(struct io_vfs *vfs, const char *path, uint64_t seed,
                      uint64_t count) RON_BLOCKS
{
    struct io_index_builder *builder = NULL;

    assert_ok(io_index_builder_new(&some_segment, count, &builder, NULL));
    fill(builder, seed, count);
    assert_ok(io_index_write(builder, vfs, path, NULL));
    builder = io_index_builder_free(builder);
}

static void assert_holds(struct io_index *index, uint64_t seed, uint64_t count) RON_BLOCKS
{
    assert_int_equal(io_index_keys_count(index), count);
    for (uint64_t i = 0; i < count; i++) {
        struct io_index_entry wanted = entry_of(seed, i);
        struct io_index_place found = {0};

        assert_true(io_index_may_have(index, wanted.key));
        assert_ok(io_index_find(index, wanted.key, &found, NULL));
        assert_int_equal(found.offset8, wanted.offset8);
        assert_int_equal(found.sub, wanted.sub);
    }
}

static void index_finds_all_and_nothing_else(void **unused) RON_BLOCKS
{
    static const uint64_t counts[] = {0, 1, 2, 254, 255, 256, 510, 5000, 40000};

    (void)unused;
    for (size_t c = 0; c < RON_ARRAY_COUNT(counts); c++) {
        struct io_vfs *vfs = NULL;
        struct io_index *index = NULL;
        uint64_t wrong = 0;

        assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
        assert_ok(io_vfs_make_dir(vfs, "log", NULL));
        write_set(vfs, "log/idx", c, counts[c]);
        assert_ok(io_index_open(vfs, "log/idx", &some_segment, &index, NULL));
        assert_holds(index, c, counts[c]);
        assert_ok(io_index_check(index, NULL));
        for (uint64_t i = 0; i < 20000; i++) {
            struct io_index_entry absent = entry_of(1000 + c, i);
            struct io_index_place found = {.sub = 77};

            wrong += io_index_may_have(index, absent.key) ? 1 : 0;
            assert_int_equal(io_index_find(index, absent.key, &found, NULL), RON_ERR_NOT_FOUND);
            assert_int_equal(found.sub, 77);
        }
        /* 0.28 % by arithmetic; a filter of half the bits would answer 5 %. */
        assert_true(wrong < 20000 / 100);
        if (counts[c] >= 5000)
            assert_true(io_index_memory(index) <= 2 * counts[c]);
        index = io_index_close(index);
        vfs = io_vfs_free(vfs);
    }
}

static void index_asks_many_filters_at_once(void **unused) RON_BLOCKS
{
    struct io_index *indexes[40];
    struct io_vfs *vfs = NULL;

    (void)unused;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    for (size_t i = 0; i < 40; i++) {
        char path[32];

        (void)snprintf(path, sizeof(path), "idx-%02zu", i);
        write_set(vfs, path, i, 300);
        assert_ok(io_index_open(vfs, path, &some_segment, &indexes[i], NULL));
    }
    for (size_t i = 0; i < 40; i++) {
        struct io_index_entry wanted = entry_of(i, 17);
        size_t from = 0, at;

        while ((at = io_index_next_with(indexes, 40, from, wanted.key)) < 40 && at < i) {
            assert_true(io_index_may_have(indexes[at], wanted.key));
            from = at + 1;
        }
        assert_int_equal(at, i);
        for (at = i + 1; at < 40 && !io_index_may_have(indexes[at], wanted.key);)
            at++;
        assert_int_equal(io_index_next_with(indexes, 40, i + 1, wanted.key), at);
    }
    assert_int_equal(io_index_next_with(indexes, 0, 0, entry_of(0, 0).key), 0);
    for (size_t i = 0; i < 40; i++)
        indexes[i] = io_index_close(indexes[i]);
    vfs = io_vfs_free(vfs);
}

/* Keys that begin alike, 2,000 of them in any order, over several pages: each has all their places,
 * one after the other; a key that begins alike and is not there has none, by the filter. */
static void index_finds_every_place_of_keys_that_begin_alike(void **unused) RON_BLOCKS
{
    struct io_index_builder *builder = NULL;
    struct io_index_entry entry = {.key = "the same sixteen"};
    struct io_index_place found = {0};
    struct io_index *index = NULL;
    struct io_vfs *vfs = NULL;

    (void)unused;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    assert_ok(io_index_builder_new(&some_segment, 3000, &builder, NULL));
    for (uint32_t i = 0; i < 1000; i++) {
        entry.key[15] = 'n';
        entry.offset8 = 70000 + i * 617 % 1000 / 2;
        entry.sub = 5 - i % 2;
        assert_ok(io_index_add(builder, &entry, NULL));
        entry.key[15] = (uint8_t)(i % 2 == 0 ? 'm' : 'o');
        assert_ok(io_index_add(builder, &entry, NULL));
    }
    assert_ok(io_index_write(builder, vfs, "idx", NULL));
    assert_ok(io_index_open(vfs, "idx", &some_segment, &index, NULL));
    assert_ok(io_index_check(index, NULL));
    for (uint8_t last = 'm'; last <= 'o'; last++) {
        entry.key[15] = last;
        assert_ok(io_index_find(index, entry.key, &found, NULL));
        for (uint32_t i = 0; i < 1000; i++) { /* each twice, which is once for who asks on */
            assert_int_equal(found.offset8, 70000 + i / 2);
            assert_int_equal(found.sub, 4 + i % 2);
            assert_int_equal(
                io_index_find_from(index, entry.key, found.offset8, found.sub + 1, &found, NULL),
                i == 999 ? RON_ERR_NOT_FOUND : RON_ERR_OK);
        }
    }
    entry.key[15] = 'p';
    assert_int_equal(io_index_find(index, entry.key, &found, NULL), RON_ERR_NOT_FOUND);
    index = io_index_close(index);
    builder = io_index_builder_free(builder);
    vfs = io_vfs_free(vfs);
}

static int by_order(const void *a, const void *b)
{
    const struct index_item *first = a, *second = b;

    return index_item_before(first, second) ? -1 : index_item_before(second, first);
}

/* What the keys share: nothing, long prefixes, everything; the last of them a few bytes. */
enum { SHAPES = 7, SHAPE_ITEMS = 20000 };

static void shape_items(unsigned shape, struct index_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct io_index_entry entry = entry_of(shape, i);

        if (shape == 1)
            memset(entry.key, 0xaa, 15);
        if (shape >= 2 && shape < 6)
            memset(entry.key, 0, 16);
        if (shape == 3)
            entry.offset8 = (uint32_t)next_random();
        if (shape == 4)
            entry.sub = (uint32_t)(next_random() & 3), entry.offset8 = 1;
        if (shape == 5)
            entry = (struct io_index_entry){.sub = 1};
        for (size_t at = 0; shape == 6 && at < 8; at++)
            entry.key[at] &= 3;
        items[i] = index_item_of(&entry);
    }
}

static void index_sorts_any_keys(void **unused)
{
    static struct index_item ours[SHAPE_ITEMS], theirs[SHAPE_ITEMS];
    static struct index_span spans[INDEX_SPANS_MAX];

    (void)unused;
    for (unsigned shape = 0; shape < SHAPES; shape++) {
        shape_items(shape, ours, SHAPE_ITEMS);
        memcpy(theirs, ours, sizeof(ours));
        qsort(theirs, SHAPE_ITEMS, sizeof(theirs[0]), by_order);
        io_index_sort(ours, SHAPE_ITEMS, spans);
        assert_memory_equal(ours, theirs, sizeof(ours));
    }
}

/* All buckets, one behind the other; asked again, the same. */
static void assert_buckets_hold(struct index_items *items, const struct index_item *wanted,
                                size_t count)
{
    size_t seen = 0;

    for (uint32_t bucket = 0; bucket < INDEX_BUCKETS; bucket++) {
        const size_t size = items->buckets[bucket].count;

        for (unsigned again = 0; size > 0 && again < 2; again++)
            assert_memory_equal(io_index_items_sort(items, bucket), wanted + seen,
                                size * sizeof(*wanted));
        seen += size;
    }
    assert_int_equal(seen, count);
}

/* In buckets as alone: few and many of each shape, in memory that others were in before. */
static void index_buckets_sort_any_keys(void **unused)
{
    static const size_t counts[] = {1, 2, 62, 63, 64, 1000, SHAPE_ITEMS, 3, 0};
    static struct index_item theirs[SHAPE_ITEMS];
    static struct index_items items;

    (void)unused;
    for (unsigned run = 0; run < SHAPES * RON_ARRAY_COUNT(counts); run++) {
        const size_t count = counts[run % RON_ARRAY_COUNT(counts)];

        shape_items(run % SHAPES, theirs, count);
        io_index_items_reset(&items);
        for (size_t i = 0; i < count; i++)
            assert_ok(index_items_add(&items, theirs[i], NULL));
        assert_ok(io_index_items_reserve(&items, NULL));
        qsort(theirs, count, sizeof(theirs[0]), by_order);
        assert_buckets_hold(&items, theirs, count);
    }
    io_index_items_fini(&items);
}

static void assert_same_files(struct io_vfs *vfs, const char *a, const char *b) RON_BLOCKS
{
    static uint8_t bytes[2][1 << 18];
    size_t sizes[2] = {0};

    for (unsigned i = 0; i < 2; i++) {
        struct io_file *file = NULL;

        assert_ok(io_vfs_open(vfs, i == 0 ? a : b, IO_OPEN_READ, &file, NULL));
        assert_ok(io_file_read(file, 0, bytes[i], sizeof(bytes[i]), &sizes[i], NULL));
        file = io_file_close(file);
    }
    assert_true(sizes[0] < sizeof(bytes[0]));
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(bytes[0], bytes[1], sizes[0]);
}

/* A builder that goes on to another segment writes what a fresh one does, to the byte, also where
 * the first was larger or was never written; and it has this segment's limit, not the first's. */
static void index_builder_is_as_new_after_reset(void **unused) RON_BLOCKS
{
    static const uint64_t counts[] = {5000, 300, 0, 7000, 1};
    struct io_index_of other = some_segment;
    struct io_index_builder *builder = NULL;
    struct io_index_entry entry = {0};
    struct io_vfs *vfs = NULL;

    (void)unused;
    other.segment++;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    assert_ok(io_index_builder_new(&other, 6000, &builder, NULL));
    fill(builder, 99, 6000);
    for (size_t i = 0; i < RON_ARRAY_COUNT(counts); i++) {
        io_index_builder_reset(builder, &some_segment, counts[i]);
        fill(builder, i, counts[i]);
        assert_int_equal(io_index_add(builder, &entry, NULL), RON_ERR_TOO_LARGE);
        assert_ok(io_index_write(builder, vfs, "kept", NULL));
        write_set(vfs, "fresh", i, counts[i]);
        assert_same_files(vfs, "kept", "fresh");
    }
    builder = io_index_builder_free(builder);
    vfs = io_vfs_free(vfs);
}

static void index_knows_where_records_start(void **unused) RON_BLOCKS
{
    struct io_index_builder *builder = NULL;
    struct io_index *index = NULL;
    struct io_vfs *vfs = NULL;

    (void)unused;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    assert_ok(io_index_builder_new(&some_segment, 0, &builder, NULL));
    for (uint32_t i = 0; i < 10000; i++)
        assert_ok(io_index_add_start(builder, 100 + i, 512 + i * 30, NULL));
    assert_ok(io_index_write(builder, vfs, "idx", NULL));
    assert_ok(io_index_open(vfs, "idx", &some_segment, &index, NULL));
    for (uint32_t i = 0; i < 10000; i++) {
        struct io_index_start start = io_index_start_of(index, 100 + i);

        assert_true(start.index <= 100 + i);
        assert_int_equal(start.offset8, 512 + (start.index - 100) * 30);
        /* Not more than 64 KiB and one record before it. */
        assert_true((512 + i * 30 - start.offset8) * 8 < IO_INDEX_START_EVERY + 240);
    }
    assert_int_equal(io_index_start_of(index, 3).index, 100);
    assert_true(io_index_memory(index) < 10000);
    index = io_index_close(index);
    builder = io_index_builder_free(builder);
    vfs = io_vfs_free(vfs);
}

static void index_refuses_more_than_its_keys(void **unused) RON_BLOCKS
{
    struct io_index_builder *builder = NULL;
    struct io_index_entry entry = {0};
    struct ron_errinfo info = {0};

    (void)unused;
    assert_ok(io_index_builder_new(&some_segment, 2000, &builder, NULL));
    fill(builder, 1, 2000);
    support_assert_error(io_index_add(builder, &entry, &info), &info, RON_ERR_TOO_LARGE,
                         "more than 2000 keys");
    builder = io_index_builder_free(builder);
}

/* Open and look at everything: how a user would notice damage. */
static enum ron_err open_and_check(struct io_vfs *vfs, const char *path,
                                   struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_index *index = NULL;
    enum ron_err err = io_index_open(vfs, path, &some_segment, &index, reterr);

    if (err == RON_ERR_OK)
        err = io_index_check(index, reterr);
    index = io_index_close(index);
    return err;
}

static void index_of_another_segment_is_refused(void **unused) RON_BLOCKS
{
    struct io_vfs *vfs = NULL;

    (void)unused;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    write_set(vfs, "idx", 1, 10);
    for (unsigned i = 0; i < 6; i++) {
        struct io_index_of of = some_segment;
        struct io_index *index = NULL;
        struct ron_errinfo info = {0};

        of.log_id[15] ^= (uint8_t)(i == 0);
        of.segment += i == 1;
        of.first_index += i == 2;
        of.last_index += i == 3;
        of.last_link[15] ^= (uint8_t)(i == 4);
        of.sealed_size += i == 5;
        support_assert_error(io_index_open(vfs, "idx", &of, &index, &info), &info,
                             RON_ERR_VERSION_SKEW, "index idx: it belongs to another segment");
        assert_null(index);
    }
    vfs = io_vfs_free(vfs);
}

/* One bit anywhere, the padding included; and any shorter or longer file. */
static void index_believes_no_damaged_byte(void **unused) RON_BLOCKS
{
    struct io_vfs *vfs = NULL;
    struct io_file *file = NULL;
    uint64_t size = 0;

    (void)unused;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    write_set(vfs, "idx", 1, 300);
    assert_ok(io_vfs_open(vfs, "idx", IO_OPEN_WRITE, &file, NULL));
    assert_ok(io_file_size(file, &size, NULL));
    assert_true(size > 3 * 4096);
    for (uint64_t at = 0; at < size; at++) {
        struct ron_errinfo info = {0};
        enum ron_err err;

        if (at >= 4092 && at < 4096)
            continue; /* behind the head's sum */
        spy_flip(vfs, "idx", at, (uint8_t)(1u << at % 8));
        err = open_and_check(vfs, "idx", &info);
        assert_int_equal(err, RON_ERR_WAL_CORRUPT);
        assert_non_null(strstr(info.message, "index idx: "));
        spy_flip(vfs, "idx", at, (uint8_t)(1u << at % 8));
    }
    assert_ok(open_and_check(vfs, "idx", NULL));
    for (uint64_t cut = 0; cut < size; cut += 97) {
        struct io_file *other = NULL;
        static uint8_t bytes[1 << 16];
        size_t done = 0;

        assert_ok(io_file_read(file, 0, bytes, cut, &done, NULL));
        assert_ok(io_vfs_open(vfs, "cut", IO_OPEN_CREATE, &other, NULL));
        assert_ok(io_file_write(other, 0, &(struct ron_slice){bytes, cut}, 1, NULL));
        assert_int_equal(open_and_check(vfs, "cut", NULL), RON_ERR_WAL_CORRUPT);
        other = io_file_close(other);
        assert_ok(io_vfs_unlink(vfs, "cut", NULL));
    }
    assert_ok(io_file_write(file, size, &(struct ron_slice){(const uint8_t *)"", 1}, 1, NULL));
    assert_int_equal(open_and_check(vfs, "idx", NULL), RON_ERR_WAL_CORRUPT);
    file = io_file_close(file);
    vfs = io_vfs_free(vfs);
}

/* A page that is sound by itself, in the wrong place or of another index. */
static void index_notices_misplaced_pages(void **unused) RON_BLOCKS
{
    struct io_vfs *vfs = NULL;
    struct io_index_of other = some_segment;
    struct io_index_builder *builder = NULL;
    struct io_file *from = NULL, *to = NULL;
    struct ron_errinfo info = {0};
    uint8_t page[4096];
    size_t size = 0;

    (void)unused;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    other.last_link[0]++;
    assert_ok(io_index_builder_new(&other, 1000, &builder, NULL));
    fill(builder, 1, 1000);
    assert_ok(io_index_write(builder, vfs, "other", NULL));
    builder = io_index_builder_free(builder);
    for (unsigned i = 0; i < 2; i++) {
        write_set(vfs, "idx", 1, 1000);
        assert_ok(io_vfs_open(vfs, "idx", IO_OPEN_WRITE, &to, NULL));
        assert_ok(io_vfs_open(vfs, i == 0 ? "idx" : "other", IO_OPEN_READ, &from, NULL));
        assert_ok(io_file_read(from, i == 0 ? 4096 : 8192, page, sizeof(page), &size, NULL));
        assert_ok(io_file_write(to, 8192, &(struct ron_slice){page, sizeof(page)}, 1, NULL));
        support_assert_error(open_and_check(vfs, "idx", &info), &info, RON_ERR_WAL_CORRUPT,
                             "page 1");
        from = io_file_close(from);
        to = io_file_close(to);
    }
    vfs = io_vfs_free(vfs);
}

static void index_of_another_version_is_refused(void **unused) RON_BLOCKS
{
    struct io_vfs *vfs = NULL;
    struct io_file *file = NULL;
    struct ron_errinfo info = {0};
    uint8_t head[4096];
    size_t size = 0;

    (void)unused;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    write_set(vfs, "idx", 1, 10);
    assert_ok(io_vfs_open(vfs, "idx", IO_OPEN_WRITE, &file, NULL));
    assert_ok(io_file_read(file, 0, head, sizeof(head), &size, NULL));
    for (uint8_t version = 1; version <= 3; version += 2) {
        head[8] = version;
        ron_store_le32(head + 4088, ron_crc32c(0, head, 4088));
        assert_ok(io_file_write(file, 0, &(struct ron_slice){head, sizeof(head)}, 1, NULL));
        support_assert_error(open_and_check(vfs, "idx", &info), &info, RON_ERR_VERSION_SKEW,
                             version == 1 ? "version 1" : "version 3");
    }
    file = io_file_close(file);
    vfs = io_vfs_free(vfs);
}

/* The bytes are the format: a change of layout must change this line and the version. */
static void index_bytes_are_golden(void **unused) RON_BLOCKS
{
    struct io_vfs *vfs = NULL;
    struct io_file *file = NULL;
    struct io_index_entry least = entry_of(1, 0);
    static uint8_t bytes[1 << 16];
    size_t size = 0;

    (void)unused;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    write_set(vfs, "idx", 1, 300);
    assert_ok(io_vfs_open(vfs, "idx", IO_OPEN_READ, &file, NULL));
    assert_ok(io_file_read(file, 0, bytes, sizeof(bytes), &size, NULL));
    assert_int_equal(size, 3 * 4096 + 8 * 64 + 2 * 8 + 16);
    assert_memory_equal(bytes, "RONIDX\0\1\2\0\0\0", 12);
    for (uint64_t i = 0; i < 300; i++) /* the first of them, as it is stored */
        if (memcmp(entry_of(1, i).key, least.key, 8) < 0)
            least = entry_of(1, i);
    assert_memory_equal(bytes + 4096, least.key, 8);
    assert_int_equal(ron_load_le32(bytes + 4096 + 8), least.offset8);
    assert_int_equal(ron_load_le32(bytes + 4096 + 12), least.sub);
    assert_int_equal(ron_crc32c(0, bytes, size), 0x6c19f738);
    file = io_file_close(file);
    vfs = io_vfs_free(vfs);
}

static enum ron_err write_and_open(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_vfs *vfs = context;
    struct io_index_builder *builder = NULL;
    struct io_index *index = NULL;
    enum ron_err err = io_index_builder_new(&some_segment, 2000, &builder, reterr);

    for (uint64_t i = 0; i < 1500 && err == RON_ERR_OK; i++) {
        struct io_index_entry entry = entry_of(1, i);

        err = io_index_add(builder, &entry, reterr);
        if (err == RON_ERR_OK)
            err = io_index_add_start(builder, 100 + i, entry.offset8, reterr);
    }
    if (err == RON_ERR_OK)
        err = io_index_write(builder, vfs, "idx", reterr);
    if (err == RON_ERR_OK)
        err = io_index_open(vfs, "idx", &some_segment, &index, reterr);
    builder = io_index_builder_free(builder);
    index = io_index_close(index);
    return err;
}

static void index_survives_failing_allocations(void **unused) RON_BLOCKS
{
    char dir[] = "test-index-XXXXXX";
    struct io_vfs *vfs = NULL;
    unsigned count;

    (void)unused;
    assert_non_null(mkdtemp(dir));
    assert_ok(io_vfs_posix_new(dir, false, &vfs, NULL));
    count = support_fail_each_allocation(write_and_open, vfs, 100);
    assert_true(count >= 6);
    assert_ok(open_and_check(vfs, "idx", NULL));
    assert_ok(io_vfs_unlink(vfs, "idx", NULL));
    vfs = io_vfs_free(vfs);
    assert_int_equal(rmdir(dir), 0);
}

/* Every call fails once: the old index stays whole or the new one is; no `.new` is left. */
static void index_survives_failing_calls(void **unused) RON_BLOCKS
{
    static const enum ron_err errs[] = {RON_ERR_IO, RON_ERR_PERSISTENCE_FULL};
    uint64_t failed = 0;

    (void)unused;
    for (size_t e = 0; e < RON_ARRAY_COUNT(errs); e++) {
        enum ron_err err = RON_ERR_IO;

        for (uint64_t at = 1; err != RON_ERR_OK; at++) {
            struct io_vfs *vfs = NULL;
            struct io_file *file = NULL;

            assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
            write_set(vfs, "idx", 5, 300);
            spy_install(vfs, NULL);
            spy.fail_at = at;
            spy.fail_err = errs[e];
            err = write_and_open(vfs, NULL);
            spy.fail_at = 0;
            assert_true(err == RON_ERR_OK || err == errs[e]);
            failed += err != RON_ERR_OK;
            assert_ok(open_and_check(vfs, "idx", NULL));
            assert_int_equal(io_vfs_open(vfs, "idx.new", IO_OPEN_READ, &file, NULL),
                             RON_ERR_NOT_FOUND);
            vfs = io_vfs_free(vfs);
        }
    }
    assert_true(failed >= 2 * 9);
}

/* A crash leaves the index whole, old or new, or none of its name. A `.new` may be there. */
static void check_image(struct io_vfs *image) RON_BLOCKS
{
    struct io_index *index = NULL;

    assert_ok(io_index_open(image, "idx", &some_segment, &index, NULL));
    assert_ok(io_index_check(index, NULL));
    assert_holds(index, io_index_keys_count(index) == 300 ? 5 : 1, io_index_keys_count(index));
    index = io_index_close(index);
    assert_ok(write_and_open(image, NULL)); /* over what the crash left */
}

static void look_at_images(struct io_vfs *vfs)
{
    spy_images(vfs, check_image);
}

static void index_is_whole_after_any_crash(void **unused) RON_BLOCKS
{
    struct io_vfs *vfs = NULL;

    (void)unused;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    write_set(vfs, "idx", 5, 300);
    spy_install(vfs, look_at_images);
    assert_ok(write_and_open(vfs, NULL));
    spy_look(vfs);
    print_message("%llu crash images\n", (unsigned long long)spy.images);
    assert_true(spy.images > 20);
    vfs = io_vfs_free(vfs);
}

/* After a lie anything may be lost, but nothing wrong is believed. */
static void check_lied_image(struct io_vfs *image) RON_BLOCKS
{
    enum ron_err err = open_and_check(image, "idx", NULL);

    assert_true(err == RON_ERR_OK || err == RON_ERR_WAL_CORRUPT || err == RON_ERR_NOT_FOUND);
}

/* A disk that lies: what was written is whole, or it is noticed before it is believed. */
static void index_survives_a_lying_disk(void **unused) RON_BLOCKS
{
    static const struct io_fault faults[] = {
        {.kind = IO_FAULT_EIO, .call = IO_CALL_SYNC},
        {.kind = IO_FAULT_EIO, .call = IO_CALL_NAME},
        {.kind = IO_FAULT_ENOSPC, .call = IO_CALL_WRITE},
        {.kind = IO_FAULT_SHORT_WRITE, .call = IO_CALL_WRITE},
        {.kind = IO_FAULT_TORN_SECTOR, .call = IO_CALL_WRITE},
        {.kind = IO_FAULT_LOST_WRITE, .call = IO_CALL_WRITE},
        {.kind = IO_FAULT_MISDIRECTED, .call = IO_CALL_WRITE},
        {.kind = IO_FAULT_BIT_FLIP, .call = IO_CALL_READ},
        {.kind = IO_FAULT_LYING_SYNC, .call = IO_CALL_SYNC},
        {.kind = IO_FAULT_SYNC_EIO, .call = IO_CALL_SYNC},
    };

    (void)unused;
    for (size_t f = 0; f < RON_ARRAY_COUNT(faults); f++) {
        uint64_t struck = 1, noticed = 0;

        for (uint64_t at = 1; struck > 0; at++) {
            struct io_fault fault = faults[f];
            struct io_vfs *memory = NULL, *vfs = NULL;
            enum ron_err err;

            fault.at = at;
            fault.times = 1;
            assert_ok(io_vfs_memory_new(NULL, &memory, NULL));
            write_set(memory, "idx", 5, 300);
            assert_ok(io_vfs_faulty_new(
                memory,
                &(struct io_faulty_options){.faults = &fault, .faults_count = 1, .seed = at}, &vfs,
                NULL));
            err = write_and_open(vfs, NULL);
            if (err == RON_ERR_OK)
                err = open_and_check(vfs, "idx", NULL);
            struck = io_faulty_count(vfs, fault.kind);
            noticed += err != RON_ERR_OK;
            vfs = io_vfs_free(vfs);
            /* Read again without faults: whole, or refused for what it is. */
            err = open_and_check(memory, "idx", NULL);
            assert_true(err == RON_ERR_OK || err == RON_ERR_WAL_CORRUPT);
            spy_images(memory, check_lied_image);
            memory = io_vfs_free(memory);
        }
        assert_true(noticed > 0 || faults[f].kind == IO_FAULT_LYING_SYNC);
    }
}

/* A sync of the log goes on beside it, and must not wait behind all keys of a segment. */
static void index_pages_are_on_their_way_before_the_sync(void **unused) RON_BLOCKS
{
    enum { COUNT = 240000, PIECE = 256 * INDEX_PAGE_SIZE };
    const struct index_layout layout = io_index_layout(COUNT, 0);
    struct io_vfs *vfs = NULL;

    (void)unused;
    assert_true(layout.pages_count * INDEX_PAGE_SIZE > 3 * PIECE);
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    spy_install(vfs, NULL);
    write_set(vfs, "idx", 1, COUNT);
    assert_int_equal(spy.back_bytes_max, PIECE);
    assert_true(spy.sync_bytes_max < layout.pages_count * INDEX_PAGE_SIZE / 2);
    vfs = io_vfs_free(vfs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(index_finds_all_and_nothing_else),
        cmocka_unit_test(index_asks_many_filters_at_once),
        cmocka_unit_test(index_finds_every_place_of_keys_that_begin_alike),
        cmocka_unit_test(index_sorts_any_keys),
        cmocka_unit_test(index_buckets_sort_any_keys),
        cmocka_unit_test(index_builder_is_as_new_after_reset),
        cmocka_unit_test(index_knows_where_records_start),
        cmocka_unit_test(index_refuses_more_than_its_keys),
        cmocka_unit_test(index_of_another_segment_is_refused),
        cmocka_unit_test(index_believes_no_damaged_byte),
        cmocka_unit_test(index_notices_misplaced_pages),
        cmocka_unit_test(index_of_another_version_is_refused),
        cmocka_unit_test(index_bytes_are_golden),
        cmocka_unit_test(index_survives_failing_allocations),
        cmocka_unit_test(index_survives_failing_calls),
        cmocka_unit_test(index_is_whole_after_any_crash),
        cmocka_unit_test(index_survives_a_lying_disk),
        cmocka_unit_test(index_pages_are_on_their_way_before_the_sync),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
