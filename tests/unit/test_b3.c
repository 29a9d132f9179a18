/*
 * test_b3.c - BLAKE3. Method: the official vectors, whole and in pieces; ids and texts against what
 * b3sum prints; every single-byte change of a valid text is refused or another hash.
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
        cmocka_unit_test(texts_are_read_strictly),
        cmocka_unit_test(every_changed_byte_is_noticed),
    };
    return cmocka_run_group_tests_name("b3", tests, fill_input, NULL);
}
