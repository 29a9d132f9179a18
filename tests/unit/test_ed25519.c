/*
 * test_ed25519.c - the wrapper, by test vectors 1 to 3 of RFC 8032, 7.1.
 */
#include "support.h"

#include "base/ed25519.h"
#include "base/hex.h"

static const struct vector {
    const char *seed, *public_key, *message, *signature;
} vectors[] = {
    {"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
     "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9"
     "b46bd25bf5f0595bbe24655141438e7a100b"},
    {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
     "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f1"
     "1d8c387b2eaeb4302aeeb00d291612bb0c00"},
    {"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
     "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984d"
     "c6594a7c15e9716ed28dc027beceea1ec40a"},
};

static size_t unhex(const char *text, uint8_t *bytes, size_t size)
{
    size_t got = 0;

    assert_ok(ron_hex_decode(ron_slice_text(text), bytes, size, &got, NULL));
    return got;
}

static void signs_and_verifies_like_the_rfc(void **state)
{
    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(vectors); i++) {
        uint8_t seed_bytes[32], expected_key[32], expected[64], key[32], signature[64], text[8];
        struct ron_slice message = {text, unhex(vectors[i].message, text, sizeof(text))};
        struct ron_secret seed = {0}, expanded = {0};

        (void)unhex(vectors[i].seed, seed_bytes, sizeof(seed_bytes));
        (void)unhex(vectors[i].public_key, expected_key, sizeof(expected_key));
        (void)unhex(vectors[i].signature, expected, sizeof(expected));
        assert_ok(ron_secret_init(&seed, ron_slice_of(seed_bytes, sizeof(seed_bytes)), NULL));
        ron_ed25519_public(&seed, key);
        assert_memory_equal(key, expected_key, sizeof(key));
        ron_ed25519_sign(&seed, message, signature);
        assert_memory_equal(signature, expected, sizeof(signature));
        assert_true(ron_ed25519_verify(key, message, signature));
        assert_ok(ron_ed25519_expand(&seed, &expanded, NULL));
        memset(key, 0, sizeof(key));
        memset(signature, 0, sizeof(signature));
        ron_ed25519_public(&expanded, key);
        assert_memory_equal(key, expected_key, sizeof(key));
        ron_ed25519_sign(&expanded, message, signature);
        assert_memory_equal(signature, expected, sizeof(signature));
        ron_secret_fini(&expanded);
        for (size_t bit = 0; bit < 512; bit += 37) {
            signature[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_false(ron_ed25519_verify(key, message, signature));
            signature[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        text[0] ^= 1;
        message.size = message.size == 0 ? 1 : message.size;
        assert_false(ron_ed25519_verify(key, message, signature));
        ron_secret_fini(&seed);
    }
}

static void refuses_a_seed_of_another_size(void **state)
{
    struct ron_secret seed = {0};
    uint8_t key[32];

    (void)state;
    assert_ok(ron_secret_init_random(&seed, 31, NULL));
    assert_dies(ron_ed25519_public(&seed, key), "RON_ED25519_SEED_SIZE");
    ron_secret_fini(&seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signs_and_verifies_like_the_rfc),
        cmocka_unit_test(refuses_a_seed_of_another_size),
    };
    return cmocka_run_group_tests_name("ed25519", tests, NULL, NULL);
}
