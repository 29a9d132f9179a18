/*
 * test_sha256.c - SHA-256. Method: NIST vectors; every short length, split and block count against
 * OpenSSL's EVP interface; all of it with the processor's instructions and without.
 */
#include "support.h"

#include <openssl/evp.h>
#include <stdio.h>

#include "base/sha256.h"

static uint8_t noise[4096];

static int fill_noise(void **state)
{
    uint64_t x = 180 - 4;

    (void)state;
    for (size_t i = 0; i < sizeof(noise); i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        noise[i] = (uint8_t)(x >> 56);
    }
    return 0;
}

static int use_hardware(void **state)
{
    (void)state;
    ron_sha256_use_hardware(true);
    return 0;
}

static int use_openssl(void **state)
{
    (void)state;
    ron_sha256_use_hardware(false);
    assert_false(ron_sha256_is_hardware());
    return 0;
}

static void assert_digest(struct ron_sha256 digest, const char *hex)
{
    char text[2 * RON_SHA256_SIZE + 1];

    for (size_t i = 0; i < RON_SHA256_SIZE; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", digest.bytes[i]);
    assert_string_equal(text, hex);
}

static struct ron_sha256 by_evp(const void *data, size_t size)
{
    struct ron_sha256 digest;

    assert_int_equal(EVP_Digest(data, size, digest.bytes, NULL, EVP_sha256(), NULL), 1);
    return digest;
}

static void nist_vectors_hold(void **state)
{
    static const struct {
        const char *text;
        const char *digest;
    } vectors[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrl"
         "m"
         "nopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };

    (void)state;
    assert_digest(ron_sha256(NULL, 0), vectors[0].digest);
    for (size_t i = 0; i < RON_ARRAY_COUNT(vectors); i++)
        assert_digest(ron_sha256(vectors[i].text, strlen(vectors[i].text)), vectors[i].digest);
}

static void a_million_letters_hash_right(void **state)
{
    struct ron_sha256_ctx ctx;
    char letters[1000];

    (void)state;
    memset(letters, 'a', sizeof(letters));
    ron_sha256_init(&ctx);
    for (int i = 0; i < 1000; i++)
        ron_sha256_update(&ctx, letters, sizeof(letters));
    assert_digest(ron_sha256_final(&ctx),
                  "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void every_short_length_matches_openssl(void **state)
{
    (void)state;
    for (size_t size = 0; size <= 300; size++)
        for (size_t offset = 0; offset < 3; offset++) {
            struct ron_sha256 digest = ron_sha256(noise + offset, size);
            struct ron_sha256 expected = by_evp(noise + offset, size);

            assert_memory_equal(digest.bytes, expected.bytes, RON_SHA256_SIZE);
        }
}

static void pieces_make_the_whole(void **state)
{
    (void)state;
    for (size_t size = 0; size <= 300; size += 7) {
        struct ron_sha256 expected = by_evp(noise, size);

        for (size_t split = 0; split <= size; split++) {
            size_t second = (size - split) / 2;
            struct ron_sha256_ctx ctx;
            struct ron_sha256 digest;

            ron_sha256_init(&ctx);
            ron_sha256_update(&ctx, noise, split);
            ron_sha256_update(&ctx, NULL, 0);
            ron_sha256_update(&ctx, noise + split, second);
            ron_sha256_update(&ctx, noise + split + second, size - split - second);
            digest = ron_sha256_final(&ctx);
            assert_memory_equal(digest.bytes, expected.bytes, RON_SHA256_SIZE);
        }
    }
}

static void two_lanes_equal_two_hashes(void **state)
{
    (void)state;
    for (size_t blocks_count = 0; blocks_count <= 8; blocks_count++) {
        const uint8_t *const data[2] = {noise + 1, noise + 1000};
        uint32_t both[2][8] = {RON_SHA256_START, {1, 2, 3, 4, 5, 6, 7, 0xffffffff}};
        uint32_t first[8] = RON_SHA256_START;
        uint32_t second[8] = {1, 2, 3, 4, 5, 6, 7, 0xffffffff};

        ron_sha256_blocks_two(both, data, blocks_count);
        ron_sha256_blocks(first, data[0], blocks_count);
        ron_sha256_blocks(second, data[1], blocks_count);
        assert_memory_equal(both[0], first, sizeof(first));
        assert_memory_equal(both[1], second, sizeof(second));
    }
}

static void null_data_with_a_size_is_a_bug(void **state)
{
    (void)state;
    assert_dies((void)ron_sha256(NULL, 1), "data != NULL || size == 0");
}

#define BOTH_WAYS(test) \
    cmocka_unit_test_setup_teardown(test, use_openssl, use_hardware), cmocka_unit_test(test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH_WAYS(nist_vectors_hold),
        BOTH_WAYS(a_million_letters_hash_right),
        BOTH_WAYS(every_short_length_matches_openssl),
        BOTH_WAYS(pieces_make_the_whole),
        BOTH_WAYS(two_lanes_equal_two_hashes),
        cmocka_unit_test(null_data_with_a_size_is_a_bug),
    };
    print_message("sha256: %s\n",
                  ron_sha256_is_hardware() ? "hardware and OpenSSL" : "OpenSSL only");
    return cmocka_run_group_tests_name("sha256", tests, fill_noise, NULL);
}
