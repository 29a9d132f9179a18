/*
 * test_segment_gate.c - one filter for the keys of several indexes. Method: indexes in memory,
 * whose keys a function of their number makes; each of them is asked for, and as many others.
 */
#include "io/segment_gate.h"

#include "base/mem.h"
#include "log_world.h"

enum { SETS = 5, SET_KEYS = 3000 };

static const struct io_index_of some_segment = {.log_id = "sixteen bytes ok", .segment = 7};

static void key_of(uint64_t set, uint64_t i, uint8_t key[16])
{
    uint64_t z = (set * 1000003 + i) * 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    ron_store_be64(key, z ^ (z >> 31));
    ron_store_be64(key + 8, i);
}

static struct io_index *index_of(struct io_vfs *vfs, uint64_t set, uint64_t count) RON_BLOCKS
{
    struct io_index_builder *builder = NULL;
    struct io_index *index = NULL;
    char path[16];

    (void)snprintf(path, sizeof(path), "idx-%llu", (unsigned long long)set);
    assert_ok(io_index_builder_new(&some_segment, count, &builder, NULL));
    for (uint64_t i = 0; i < count; i++) {
        struct io_index_entry entry = {.offset8 = (uint32_t)(512 + i)};

        key_of(set, i, entry.key);
        assert_ok(io_index_add(builder, &entry, NULL));
    }
    assert_ok(io_index_write(builder, vfs, path, NULL));
    builder = io_index_builder_free(builder);
    assert_ok(io_index_open(vfs, path, &some_segment, &index, NULL));
    return index;
}

/* Every key of every index, whatever page or index it is in; of others next to none; and together
 * they say what they say one by one, with vectors or without. */
static void gate_knows_all_keys_of_all_its_indexes(void **state) RON_BLOCKS
{
    const struct io_gate_seed seed = io_gate_seed_new();
    struct io_vfs *vfs = world_memory();
    struct io_gate *gate = NULL;
    uint8_t keys[IO_INDEX_KEYS_AT_ONCE][16];
    struct io_gate_keys hashed;
    unsigned wrong = 0;

    (void)state;
    assert_ok(io_gate_new(seed, SETS * SET_KEYS, &gate, NULL));
    for (uint64_t set = 0; set < SETS; set++) {
        struct io_index *index = index_of(vfs, set, SET_KEYS);

        assert_ok(io_gate_add(gate, index, NULL));
        assert_int_equal(io_gate_keys_count(gate), (set + 1) * SET_KEYS);
        index = io_index_close(index);
    }
    assert_true(io_gate_memory(gate) < 2 * SETS * SET_KEYS);
    for (uint64_t set = 0; set < 2 * (uint64_t)SETS; set++) {
        for (uint64_t i = 0; i < SET_KEYS; i += IO_INDEX_KEYS_AT_ONCE) {
            const size_t count = SET_KEYS - i < IO_INDEX_KEYS_AT_ONCE ? SET_KEYS - i
                                                                      : IO_INDEX_KEYS_AT_ONCE;
            uint64_t bits;

            for (size_t k = 0; k < count; k++)
                key_of(set, i + k, keys[k]);
            io_gate_keys_make(seed, keys, count, &hashed);
            io_gate_fetch_each(gate, &hashed);
            bits = io_gate_may_have_each(gate, &hashed);
            assert_true(count == 64 || bits >> count == 0);
            io_gate_use_vectors(false);
            assert_true(io_gate_may_have_each(gate, &hashed) == bits);
            io_gate_use_vectors(true);
            for (size_t k = 0; k < count; k++) {
                assert_int_equal(bits >> k & 1, io_gate_may_have(gate, keys[k]));
                if (set < SETS)
                    assert_true(io_gate_may_have(gate, keys[k]));
                else
                    wrong += io_gate_may_have(gate, keys[k]);
            }
        }
    }
    assert_true(wrong < SETS * SET_KEYS / 200); /* one in 750 is expected */
    gate = io_gate_free(gate);
    io_vfs_free(vfs);
}

/* A page that cannot be believed: the index does not count. */
static void gate_takes_no_damaged_page(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct io_index *index = index_of(vfs, 0, SET_KEYS);
    struct io_gate *gate = NULL;

    (void)state;
    assert_ok(io_gate_new(io_gate_seed_new(), SET_KEYS, &gate, NULL));
    world_flip(vfs, "idx-0", 5 * 4096 + 40);
    assert_int_equal(io_gate_add(gate, index, NULL), RON_ERR_WAL_CORRUPT);
    assert_int_equal(io_gate_keys_count(gate), 0);
    world_flip(vfs, "idx-0", 5 * 4096 + 40);
    assert_ok(io_gate_add(gate, index, NULL)); /* again, and all of it */
    assert_int_equal(io_gate_keys_count(gate), SET_KEYS);
    assert_dies((void)!io_gate_add(gate, index, NULL), "keys_max");
    index = io_index_close(index);
    gate = io_gate_free(gate);
    io_vfs_free(vfs);
}

/* Without its filter an index says "maybe" of every key, and finds what it found. */
static void index_without_filter_finds_all(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct io_index *index = index_of(vfs, 1, SET_KEYS);
    const size_t memory = io_index_memory(index);
    void *filter = io_index_take_filter(index);
    struct io_index_place place;
    uint8_t keys[2][16];

    (void)state;
    assert_non_null(filter);
    ron_table_free(filter);
    assert_null(io_index_take_filter(index));
    assert_true(io_index_memory(index) + SET_KEYS < memory);
    for (uint64_t i = 0; i < SET_KEYS; i++) {
        key_of(1, i, keys[0]);
        key_of(2, i, keys[1]);
        assert_ok(io_index_find(index, keys[0], &place, NULL));
        assert_int_equal(place.offset8, 512 + i);
        assert_int_equal(io_index_find(index, keys[1], &place, NULL), RON_ERR_NOT_FOUND);
        assert_int_equal(io_index_may_have_each(index, keys, 2), 3);
    }
    index = io_index_close(index);
    io_vfs_free(vfs);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(gate_knows_all_keys_of_all_its_indexes),
        CASE(gate_takes_no_damaged_page),
        CASE(index_without_filter_finds_all),
    };

    return cmocka_run_group_tests_name("segment_gate", tests, NULL, NULL);
}
