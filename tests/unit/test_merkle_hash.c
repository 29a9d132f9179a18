/*
 * test_merkle_hash.c - RFC 6962 hashes. Method: the reference tree of Certificate Transparency by
 * the RFC's recursive definition; array forms against single ones, and those against OpenSSL; all
 * of it by OpenSSL's blocks, by SHA instructions in pairs, and sixteen at a time.
 */
#include "support.h"

#include <openssl/evp.h>
#include <stdio.h>

#include "base/merkle_hash.h"
#include "base/sha256_lanes.h"

enum { COUNT_MAX = 2 * RON_SHA256_LANES + 3 }; /* lanes twice, a pair, one */

static uint8_t noise[65536];

static int fill_noise(void **state)
{
    uint64_t x = 6962;

    (void)state;
    for (size_t i = 0; i < sizeof(noise); i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        noise[i] = (uint8_t)(x >> 56);
    }
    return 0;
}

static void assert_digest(struct ron_sha256 digest, const char *hex)
{
    char text[2 * RON_SHA256_SIZE + 1];

    for (size_t i = 0; i < RON_SHA256_SIZE; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", digest.bytes[i]);
    assert_string_equal(text, hex);
}

/* SHA-256(prefix || data) by other means. */
static struct ron_sha256 by_evp(uint8_t prefix, const void *data, size_t size)
{
    struct ron_sha256 digest;
    uint8_t message[8192];

    assert_true(size < sizeof(message));
    message[0] = prefix;
    memcpy(message + 1, data, size);
    assert_int_equal(EVP_Digest(message, 1 + size, digest.bytes, NULL, EVP_sha256(), NULL), 1);
    return digest;
}

static const struct ron_slice reference_leaves[8] = {
    {NULL, 0},
    {(const uint8_t *)"\x00", 1},
    {(const uint8_t *)"\x10", 1},
    {(const uint8_t *)"\x20\x21", 2},
    {(const uint8_t *)"\x30\x31", 2},
    {(const uint8_t *)"\x40\x41\x42\x43", 4},
    {(const uint8_t *)"\x50\x51\x52\x53\x54\x55\x56\x57", 8},
    {(const uint8_t *)"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f", 16},
};

static const char *const reference_roots[9] = {
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
};

/* MTH of RFC 6962, 2.1. */
static struct ron_sha256 tree_root(const struct ron_slice *leaves, size_t count)
{
    struct ron_merkle_pair children;
    size_t k = 1;

    if (count == 0)
        return ron_merkle_empty;
    if (count == 1)
        return ron_merkle_leaf(leaves[0].data, leaves[0].size);
    while (2 * k < count)
        k *= 2;
    children.left = tree_root(leaves, k);
    children.right = tree_root(leaves + k, count - k);
    return ron_merkle_node(&children);
}

static void reference_roots_hold(void **state)
{
    (void)state;
    for (size_t count = 0; count <= 8; count++)
        assert_digest(tree_root(reference_leaves, count), reference_roots[count]);
}

static void leaves_of_every_size_are_prefixed(void **state)
{
    (void)state;
    for (size_t size = 0; size <= 4096; size += size < 300 ? 1 : 73) {
        struct ron_sha256 leaf = ron_merkle_leaf(noise, size);
        struct ron_sha256 expected = by_evp(0, noise, size);

        assert_memory_equal(leaf.bytes, expected.bytes, RON_SHA256_SIZE);
    }
}

static void arrays_of_leaves_equal_single_leaves(void **state)
{
    static const size_t sizes[] = {0, 1, 54, 55, 62, 63, 64, 118, 119, 128, 246, 247, 300};

    (void)state;
    for (size_t s = 0; s < RON_ARRAY_COUNT(sizes); s++)
        for (size_t count = 0; count <= COUNT_MAX; count++) {
            struct ron_sha256 hashes[COUNT_MAX + 1];

            memset(hashes, 0xee, sizeof(hashes));
            ron_merkle_leaves(noise, sizes[s], count, hashes);
            for (size_t i = 0; i < count; i++) {
                struct ron_sha256 expected = by_evp(0, noise + i * sizes[s], sizes[s]);

                assert_memory_equal(hashes[i].bytes, expected.bytes, RON_SHA256_SIZE);
            }
            assert_int_equal(hashes[count].bytes[0], 0xee);
        }
}

/* Sixteen that end alike are hashed with what their ends have in common; the next sixteen may end
 * otherwise, or each as it likes. */
static void leaves_that_end_alike_equal_single_leaves(void **state)
{
    enum { GROUPS = 4, LANES = 16, SIZE = 128 };
    static uint8_t leaves[GROUPS * LANES][SIZE];
    static struct ron_sha256 hashes[GROUPS * LANES];

    (void)state;
    memcpy(leaves, noise, sizeof(leaves));
    for (size_t i = 0; i < 3 * LANES; i++)
        leaves[i][SIZE - 1] = i < LANES ? 0x5a : i < 2 * LANES ? 0xa5 : 0;
    leaves[3 * LANES - 1][SIZE - 1] = 1;
    ron_merkle_leaves(leaves, SIZE, RON_ARRAY_COUNT(leaves), hashes);
    for (size_t i = 0; i < RON_ARRAY_COUNT(leaves); i++) {
        struct ron_sha256 expected = by_evp(0, leaves[i], SIZE);

        assert_memory_equal(hashes[i].bytes, expected.bytes, RON_SHA256_SIZE);
    }
}

static void two_leaves_come_from_two_places(void **state)
{
    static const size_t sizes[] = {0, 1, 127, 128, 129, 300};

    (void)state;
    for (size_t s = 0; s < RON_ARRAY_COUNT(sizes); s++) {
        const void *const places[2] = {noise + 400, noise + 3};
        struct ron_sha256 hashes[2];
        struct ron_sha256 expected[2] = {by_evp(0, places[0], sizes[s]),
                                         by_evp(0, places[1], sizes[s])};

        ron_merkle_leaf_two(places, sizes[s], hashes);
        assert_memory_equal(hashes, expected, sizeof(hashes));
    }
}

static void levels_fold_in_place(void **state)
{
    (void)state;
    for (size_t count = 0; count <= COUNT_MAX; count++) {
        struct ron_merkle_pair level[COUNT_MAX + 1];
        struct ron_merkle_pair original[COUNT_MAX + 1];

        memcpy(level, noise, sizeof(level));
        memcpy(original, noise, sizeof(original));
        ron_merkle_nodes(level, count, &level[0].left);
        for (size_t i = 0; i < count; i++) {
            struct ron_sha256 node = ron_merkle_node(&original[i]);
            struct ron_sha256 expected = by_evp(1, &original[i], sizeof(original[i]));

            assert_memory_equal(node.bytes, expected.bytes, RON_SHA256_SIZE);
            assert_memory_equal((const uint8_t *)level + i * RON_SHA256_SIZE, expected.bytes,
                                RON_SHA256_SIZE);
        }
        assert_memory_equal((const uint8_t *)level + count * RON_SHA256_SIZE,
                            (const uint8_t *)original + count * RON_SHA256_SIZE, RON_SHA256_SIZE);
    }
}

static int use_openssl(void **state)
{
    (void)state;
    ron_sha256_use_hardware(false);
    ron_sha256_use_lanes(false);
    return 0;
}

static int use_pairs(void **state)
{
    (void)state;
    ron_sha256_use_lanes(false);
    return 0;
}

static int use_all(void **state)
{
    (void)state;
    ron_sha256_use_hardware(true);
    ron_sha256_use_lanes(true);
    return 0;
}

#define ALL_WAYS(test)                                           \
    cmocka_unit_test_setup_teardown(test, use_openssl, use_all), \
        cmocka_unit_test_setup_teardown(test, use_pairs, use_all), cmocka_unit_test(test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALL_WAYS(reference_roots_hold),
        ALL_WAYS(leaves_of_every_size_are_prefixed),
        ALL_WAYS(arrays_of_leaves_equal_single_leaves),
        ALL_WAYS(leaves_that_end_alike_equal_single_leaves),
        ALL_WAYS(two_leaves_come_from_two_places),
        ALL_WAYS(levels_fold_in_place),
    };
    return cmocka_run_group_tests_name("merkle_hash", tests, fill_noise, NULL);
}
