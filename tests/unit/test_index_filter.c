/*
 * test_index_filter.c - an index whose filter a gate has taken the place of: it is asked in the
 * file, and nothing of it is believed without its sum; and pages of keys past the cache. Method: an
 * index in memory, whose keys a function of their number makes, over a vfs that counts.
 */
#include "base/mem.h"
#include "io/segment_gate.h"
#include "io/segment_index_format.h"
#include "io_spy.h"

enum { KEYS = 5000, MANY = 70000, PIECE = 1024 }; /* many are more than are written at once */

static const struct io_index_of some_segment = {.log_id = "sixteen bytes ok", .segment = 7};

static void key_of(uint64_t set, uint64_t i, uint8_t key[16])
{
    uint64_t z = (set * 1000003 + i) * 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    ron_store_be64(key, z ^ (z >> 31));
    ron_store_be64(key + 8, i);
}

static struct io_vfs *spied_memory(void)
{
    struct io_vfs *vfs = NULL;

    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    spy_install(vfs, NULL);
    return vfs;
}

static struct io_index_builder *with_keys(const struct io_index_of *of, uint64_t count) RON_BLOCKS
{
    struct io_index_builder *builder = NULL;

    assert_ok(io_index_builder_new(of, count, &builder, NULL));
    for (uint64_t i = 0; i < count; i++) {
        struct io_index_entry entry = {.offset8 = (uint32_t)(512 + i)};

        key_of(1, i, entry.key);
        assert_ok(io_index_add(builder, &entry, NULL));
    }
    return builder;
}

static struct io_index *without_filter(struct io_vfs *vfs, const char *path) RON_BLOCKS
{
    struct io_index *index = NULL;
    void *filter;

    assert_ok(io_index_open(vfs, path, &some_segment, &index, NULL));
    filter = io_index_take_filter(index);
    assert_non_null(filter);
    (void)ron_table_free(filter);
    return index;
}

static void a_stranger_costs_a_piece_of_the_filter(void **unused) RON_BLOCKS
{
    struct io_vfs *vfs = spied_memory();
    struct io_index_builder *builder = with_keys(&some_segment, KEYS);
    struct io_index *index;
    struct io_index_place place = {.sub = 77};
    uint64_t pages = 0;
    uint8_t key[16];

    (void)unused;
    assert_ok(io_index_write(builder, vfs, "idx", NULL));
    builder = io_index_builder_free(builder);
    index = without_filter(vfs, "idx");
    for (uint64_t i = 0; i < KEYS; i++) {
        key_of(1, i, key);
        assert_ok(io_index_find(index, key, &place, NULL));
        assert_int_equal(place.offset8, 512 + i);
    }
    for (uint64_t i = 0; i < KEYS; i++) {
        spy.read_bytes = 0;
        key_of(2, i, key);
        assert_int_equal(io_index_find(index, key, &place, NULL), RON_ERR_NOT_FOUND);
        assert_true(spy.read_bytes > 0);
        pages += spy.read_bytes > PIECE;
    }
    assert_in_range(pages, 1, KEYS / 100); /* about 0.3 % */
    index = io_index_close(index);
    vfs = io_vfs_free(vfs);
}

/* Whatever bit of the filter is wrong: who asks for a key there is told so, and nobody that a key
 * is not there. */
static void no_bit_of_the_filter_is_believed_without_its_sum(void **unused) RON_BLOCKS
{
    struct io_vfs *vfs = spied_memory();
    struct io_index_builder *builder = with_keys(&some_segment, KEYS);
    const struct index_layout layout = io_index_layout(KEYS, 0);
    struct io_index *index;

    (void)unused;
    assert_ok(io_index_write(builder, vfs, "idx", NULL));
    builder = io_index_builder_free(builder);
    index = without_filter(vfs, "idx");
    for (uint64_t at = 0; at < layout.fences_offset; at += PIECE / 4 - 1) {
        const uint64_t in_file = layout.resident_offset + at;
        unsigned noticed = 0, found = 0;

        spy_flip(vfs, "idx", in_file, (uint8_t)(1u << at % 8));
        for (uint64_t i = 0; i < KEYS; i++) {
            struct ron_errinfo info = {0};
            struct io_index_place place;
            uint8_t key[16];
            enum ron_err err;

            key_of(1, i, key);
            err = io_index_find(index, key, &place, &info);
            assert_int_not_equal(err, RON_ERR_NOT_FOUND);
            noticed += err == RON_ERR_WAL_CORRUPT && strstr(info.message, "of the filter") != NULL;
            found += err == RON_ERR_OK;
        }
        assert_true(noticed > 0);
        assert_int_equal(noticed + found, KEYS);
        spy_flip(vfs, "idx", in_file, (uint8_t)(1u << at % 8));
    }
    index = io_index_close(index);
    vfs = io_vfs_free(vfs);
}

static struct ron_buf file_bytes(struct io_vfs *vfs, const char *path) RON_BLOCKS
{
    struct io_file *file = NULL;
    struct ron_buf bytes;
    uint64_t size = 0;
    size_t done = 0;
    uint8_t *all;

    assert_ok(io_vfs_open(vfs, path, IO_OPEN_READ, &file, NULL));
    assert_ok(io_file_size(file, &size, NULL));
    all = ron_mem_alloc(size);
    assert_non_null(all);
    assert_ok(io_file_read(file, 0, all, size, &done, NULL));
    ron_buf_init(&bytes, size);
    assert_ok(ron_buf_append(&bytes, all, done, NULL));
    (void)ron_mem_free(all);
    file = io_file_close(file);
    return bytes;
}

/* The same file, whichever way pages of keys took, and when it became known what it is of; only
 * they go past the cache, and a gate reads them there. */
static void pages_of_keys_pass_the_cache(void **unused) RON_BLOCKS
{
    static const struct io_index_of not_known = {0};
    const uint64_t live_count = ron_mem_live_count();
    const struct index_layout layout = io_index_layout(MANY, 0);
    struct io_vfs *vfs = spied_memory();
    struct io_index_builder *builder = with_keys(&some_segment, MANY);
    struct io_gate *gate = NULL, *told = NULL;
    struct io_index *index = NULL;
    struct ron_buf one, other;
    const uint8_t(*keys)[16];
    size_t keys_count = 0;

    (void)unused;
    assert_ok(io_index_write(builder, vfs, "idx", NULL));
    builder = io_index_builder_free(builder);
    assert_int_equal(spy.past_written_bytes, 0);
    builder = with_keys(&not_known, MANY);
    io_index_builder_bind(builder, &some_segment);
    io_index_builder_pass_cache(builder);
    assert_ok(io_index_write(builder, vfs, "past", NULL));
    assert_int_equal(spy.past_written_bytes, layout.pages_count * INDEX_PAGE_SIZE);
    one = file_bytes(vfs, "idx");
    other = file_bytes(vfs, "past");
    assert_true(ron_slice_equal(ron_buf_slice(&one), ron_buf_slice(&other)));
    ron_buf_fini(&one);
    ron_buf_fini(&other);

    assert_ok(io_index_open(vfs, "past", &some_segment, &index, NULL));
    assert_ok(io_gate_new(io_gate_seed_new(), MANY, &gate, NULL));
    assert_ok(io_gate_new(io_gate_seed_new(), MANY, &told, NULL));
    spy.past_read_bytes = 0;
    assert_ok(io_gate_add(gate, index, NULL));
    assert_int_equal(spy.past_read_bytes, layout.pages_count * INDEX_PAGE_SIZE);
    keys = io_index_builder_keys(builder, &keys_count);
    assert_int_equal(keys_count, MANY);
    io_gate_add_keys(told, keys, keys_count);
    assert_int_equal(io_gate_keys_count(told), MANY);
    assert_int_equal(io_gate_room(told), 0);
    for (uint64_t i = 0; i < MANY; i++) {
        uint8_t key[16];

        key_of(1, i, key);
        assert_true(io_gate_may_have(gate, key));
        assert_true(io_gate_may_have(told, key));
    }
    assert_dies(io_gate_add_keys(told, keys, 1), "keys_max");
    gate = io_gate_free(gate);
    told = io_gate_free(told);
    index = io_index_close(index);
    builder = io_index_builder_free(builder);
    vfs = io_vfs_free(vfs);
    assert_int_equal(ron_mem_live_count(), live_count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stranger_costs_a_piece_of_the_filter),
        cmocka_unit_test(no_bit_of_the_filter_is_believed_without_its_sum),
        cmocka_unit_test(pages_of_keys_pass_the_cache),
    };

    return cmocka_run_group_tests_name("index_filter", tests, NULL, NULL);
}
