/*
 * test_b3.c - BLAKE3. Method: the official vectors, whole and in pieces; ids and texts against what
 * b3sum prints, those of many at once against those of one; every single-byte change of a valid
 * text is refused or another hash.
 */
#include "support.h"

#include <pthread.h>

#include "b3_vectors.h"
#include "base/b3.h"

static uint8_t input[102400];

static int fill_input(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(input); i++)
        input[i] = (uint8_t)(i % 251);
    return 0;
}

static void assert_hash(struct ron_b3 hash, const char *hex)
{
    char text[RON_B3_TEXT_SIZE];

    ron_b3_print(&hash, text);
    assert_string_equal(text + 3, hex);
}

static void official_vectors_hold(void **state)
{
    static const uint8_t key[] = "whats the Elvish word for friend";

    (void)state;
    assert_int_equal(RON_ARRAY_COUNT(b3_vectors), 35);
    assert_hash(ron_b3(NULL, 0), b3_vectors[0].hash);
    for (size_t i = 0; i < RON_ARRAY_COUNT(b3_vectors); i++) {
        size_t size = b3_vectors[i].size;
        struct ron_b3_ctx ctx;

        assert_hash(ron_b3(input, size), b3_vectors[i].hash);
        ron_b3_init_keyed(&ctx, key);
        ron_b3_update(&ctx, input, size);
        assert_hash(ron_b3_final(&ctx), b3_vectors[i].keyed);
        ron_b3_init_derive(&ctx, "BLAKE3 2019-12-27 16:29:52 test vectors context");
        ron_b3_update(&ctx, input, size);
        assert_hash(ron_b3_final(&ctx), b3_vectors[i].derived);
    }
}

static void pieces_make_the_whole(void **state)
{
    static const size_t steps[] = {1, 63, 64, 65, 1023, 1025, 5000};

    (void)state;
    for (size_t s = 0; s < RON_ARRAY_COUNT(steps); s++) {
        struct ron_b3_ctx ctx;
        size_t next = 0; /* vector whose size comes next */

        ron_b3_init(&ctx);
        for (size_t done = 0; next < RON_ARRAY_COUNT(b3_vectors);) {
            size_t left = b3_vectors[next].size - done;
            size_t size = left < steps[s] ? left : steps[s];

            ron_b3_update(&ctx, input + done, size);
            done += size;
            /* Taking the hash of a prefix must not disturb what follows. */
            if (done == b3_vectors[next].size)
                assert_hash(ron_b3_final(&ctx), b3_vectors[next++].hash);
        }
    }
}

static void ids_are_the_first_half_of_the_hash(void **state)
{
    static const uint8_t account[16] = "\xb6\x9a\x42\xa1\xfc\xc8\x7c\x42"
                                       "\xf9\xff\x21\xd4\xd1\x87\x4b\x04";
    static const uint8_t nameless[16] = "\x4e\x54\xac\x98\x20\xf7\x16\x81"
                                        "\x11\x61\x6b\x39\x18\xe3\xe3\xd7";
    static const uint8_t entry[16] = "\xb6\xd0\x43\xbd\xed\xb6\x73\xbb"
                                     "\x2b\xc0\xf0\x5d\x90\x14\x81\x88";
    const struct ron_slice domain = RON_B3_DOMAIN("ron:account:v1");
    const struct ron_slice none = {0};
    uint8_t id[RON_B3_ID_SIZE];

    (void)state;
    ron_b3_id16(domain, RON_SLICE("treasury/main"), none, id);
    assert_memory_equal(id, account, sizeof(id));
    ron_b3_id16(domain, RON_SLICE("treasury"), RON_SLICE("/main"), id);
    assert_memory_equal(id, account, sizeof(id));
    ron_b3_id16(domain, none, none, id);
    assert_memory_equal(id, nameless, sizeof(id));
    ron_b3_id16(RON_B3_DOMAIN("ron:entry:v1"), ron_slice_of(input, 16), RON_SLICE("inv-2026-0001"),
                id);
    assert_memory_equal(id, entry, sizeof(id));
    assert_dies(ron_b3_id16(RON_SLICE("ron:account:v1"), none, none, id), "== '\\0'");
    assert_dies(ron_b3_id16(none, none, none, id), "domain.size > 1");
}

/* In one block or in several: the hash is that of the parts in a row. */
static void parts_of_every_size_are_hashed_in_a_row(void **state)
{
    const struct ron_slice domain = RON_B3_DOMAIN("ron:entry:v1");
    uint8_t row[13 + 100 + 100];

    (void)state;
    assert_int_equal(domain.size, 13);
    memcpy(row, domain.data, domain.size);
    for (size_t i = domain.size; i < sizeof(row); i++)
        row[i] = (uint8_t)(i * 7);
    for (size_t first = 0; first <= 100; first++)
        for (size_t second = 0; second <= 100; second++) {
            const struct ron_b3 hash = ron_b3(row, domain.size + first + second);
            uint8_t id[RON_B3_ID_SIZE + 1] = {[RON_B3_ID_SIZE] = 0x5a};

            ron_b3_id16(domain, ron_slice_of(row + domain.size, first),
                        ron_slice_of(row + domain.size + first, second), id);
            assert_memory_equal(id, hash.bytes, RON_B3_ID_SIZE);
            assert_int_equal(id[RON_B3_ID_SIZE], 0x5a);
        }
}

/* Each way of hashing many gives what the library gives for one: all sizes, all counts up to two
 * groups and a half, with other bytes behind the messages. */
static void many_ids_are_those_of_one(void **state)
{
    static const unsigned lanes[] = {1, 2, 8, 15, RON_B3_LANES_MAX, UINT32_MAX};
    enum { COUNT_MAX = 40 };
    static struct ron_b3_block blocks[COUNT_MAX];
    uint64_t random = 88172645463325252u;

    (void)state;
    for (size_t l = 0; l < RON_ARRAY_COUNT(lanes); l++) {
        ron_b3_use_lanes(lanes[l]);
        assert_true(ron_b3_lanes() <= lanes[l]);
        for (size_t size = 1; size <= RON_B3_BLOCK_SIZE; size++)
            for (size_t count = 0; count <= COUNT_MAX; count++) {
                uint8_t ids[COUNT_MAX + 1][RON_B3_ID_SIZE];

                for (size_t i = 0; i < sizeof(blocks); i++) {
                    random = random * 6364136223846793005u + 1442695040888963407u;
                    ((uint8_t *)blocks)[i] = (uint8_t)(random >> 56);
                }
                memset(ids, 0x5a, sizeof(ids));
                ron_b3_ids16(blocks, count, size, ids);
                for (size_t i = 0; i < count; i++) {
                    const struct ron_b3 hash = ron_b3(blocks[i].bytes, size);

                    assert_memory_equal(ids[i], hash.bytes, RON_B3_ID_SIZE);
                }
                for (size_t i = 0; i < RON_B3_ID_SIZE; i++)
                    assert_int_equal(ids[count][i], 0x5a);
            }
    }
    assert_dies(ron_b3_ids16(blocks, 1, 0, NULL), "size > 0");
    assert_dies(ron_b3_ids16(blocks, 1, RON_B3_BLOCK_SIZE + 1, NULL), "size <= RON_B3_BLOCK_SIZE");
    assert_dies(ron_b3_use_lanes(0), "count_max > 0");
}

/* The widths that this processor has are those that it uses. */
static void lanes_are_as_many_as_the_processor_has(void **state)
{
    (void)state;
    ron_b3_use_lanes(UINT32_MAX);
#if defined(__x86_64__)
    __builtin_cpu_init();
    assert_int_equal(ron_b3_lanes(), __builtin_cpu_supports("avx512f") ? 16
                                     : __builtin_cpu_supports("avx2")  ? 8
                                                                       : 1);
    ron_b3_use_lanes(15);
    assert_int_equal(ron_b3_lanes(), __builtin_cpu_supports("avx2") ? 8 : 1);
#endif
    ron_b3_use_lanes(7);
    assert_int_equal(ron_b3_lanes(), 1);
    ron_b3_use_lanes(UINT32_MAX);
}

static void texts_are_read_strictly(void **state)
{
    static const char valid[] =
        "b3:af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
    const struct ron_b3 empty = ron_b3(NULL, 0);
    struct ron_errinfo info = {0};
    struct ron_b3 hash = {{0}};
    char text[RON_B3_TEXT_SIZE];

    (void)state;
    assert_ok(ron_b3_parse(ron_slice_text(valid), &hash, &info));
    assert_memory_equal(hash.bytes, empty.bytes, RON_B3_SIZE);
    assert_int_equal(info.err, RON_ERR_OK);
    ron_b3_print(&hash, text);
    assert_string_equal(text, valid);

    memset(hash.bytes, 0x5a, sizeof(hash.bytes));
    for (size_t size = 0; size < RON_B3_TEXT_SIZE + 4; size++) {
        char longer[RON_B3_TEXT_SIZE + 4] = {0};

        memcpy(longer, valid, sizeof(valid) - 1);
        if (size == sizeof(valid) - 1)
            continue;
        support_assert_error(ron_b3_parse(ron_slice_of(longer, size), &hash, &info), &info,
                             RON_ERR_MALFORMED, "not 67");
    }
    support_assert_error(ron_b3_parse((struct ron_slice){0}, &hash, &info), &info,
                         RON_ERR_MALFORMED, "of 0 bytes");
    for (size_t i = 0; i < sizeof(hash.bytes); i++)
        assert_int_equal(hash.bytes[i], 0x5a);
}

static void every_changed_byte_is_noticed(void **state)
{
    const struct ron_b3 original = ron_b3("x", 1);
    char text[RON_B3_TEXT_SIZE];

    (void)state;
    ron_b3_print(&original, text);
    for (size_t i = 0; i < RON_B3_TEXT_SIZE - 1; i++)
        for (unsigned c = 0; c < 256; c++) {
            const struct ron_slice slice = ron_slice_of(text, RON_B3_TEXT_SIZE - 1);
            bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
            struct ron_errinfo info = {0};
            struct ron_b3 hash;
            char saved = text[i];

            if ((unsigned char)saved == c)
                continue;
            text[i] = (char)c;
            if (i >= 3 && digit) {
                char again[RON_B3_TEXT_SIZE];

                assert_ok(ron_b3_parse(slice, &hash, NULL));
                ron_b3_print(&hash, again);
                assert_memory_equal(again, text, RON_B3_TEXT_SIZE);
            } else {
                support_assert_error(ron_b3_parse(slice, &hash, &info), &info, RON_ERR_MALFORMED,
                                     i < 3 ? "does not start with" : "not a lower-case hex digit");
            }
            text[i] = saved;
        }
}

static void *hash_input(void *context)
{
    struct ron_b3 *ret_hash = context;

    *ret_hash = ron_b3(input, sizeof(input));
    return NULL;
}

/* For ThreadSanitizer: the library's choice of instructions must be over before threads start. */
static void threads_may_hash_at_once(void **state)
{
    struct ron_b3 hashes[4];
    pthread_t threads[4];

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hash_input, &hashes[i]), 0);
    for (size_t i = 0; i < RON_ARRAY_COUNT(threads); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_hash(hashes[i], b3_vectors[34].hash);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_may_hash_at_once),
        cmocka_unit_test(official_vectors_hold),
        cmocka_unit_test(pieces_make_the_whole),
        cmocka_unit_test(ids_are_the_first_half_of_the_hash),
        cmocka_unit_test(parts_of_every_size_are_hashed_in_a_row),
        cmocka_unit_test(many_ids_are_those_of_one),
        cmocka_unit_test(lanes_are_as_many_as_the_processor_has),
        cmocka_unit_test(texts_are_read_strictly),
        cmocka_unit_test(every_changed_byte_is_noticed),
    };
    return cmocka_run_group_tests_name("b3", tests, fill_input, NULL);
}
