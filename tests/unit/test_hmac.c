/*
 * test_hmac.c - HMAC-SHA256 against the vectors of RFC 4231, and two digests at once against one.
 */
#include "support.h"

#include "base/hex.h"
#include "base/hmac.h"

struct vector {
    struct ron_slice key;
    struct ron_slice message;
    const char *code; /* hex; shorter where the RFC cuts it */
};

static void assert_code(const struct ron_sha256 *code, const char *expected)
{
    char hex[RON_HEX_SIZE(RON_SHA256_SIZE)];

    (void)ron_hex_encode(ron_slice_of(code->bytes, sizeof(code->bytes)), hex, sizeof(hex));
    hex[strlen(expected)] = '\0';
    assert_string_equal(hex, expected);
}

static void hmac_gives_the_codes_of_rfc_4231(void **state)
{
    static uint8_t key_0b[20], key_aa[131], message_dd[50], message_cd[50], key_25[25];
    struct vector vectors[] = {
        {ron_slice_of(key_0b, sizeof(key_0b)), RON_SLICE("Hi There"),
         "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {RON_SLICE("Jefe"), RON_SLICE("what do ya want for nothing?"),
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {ron_slice_of(key_aa, 20), ron_slice_of(message_dd, sizeof(message_dd)),
         "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
        {ron_slice_of(key_25, sizeof(key_25)), ron_slice_of(message_cd, sizeof(message_cd)),
         "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
        {ron_slice_of(key_aa, sizeof(key_aa)),
         RON_SLICE("Test Using Larger Than Block-Size Key - Hash Key First"),
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
        {ron_slice_of(key_aa, sizeof(key_aa)),
         RON_SLICE("This is a test using a larger than block-size key and a larger than "
                   "block-size data. The key needs to be hashed before being used by the HMAC "
                   "algorithm."),
         "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
    };

    (void)state;
    memset(key_0b, 0x0b, sizeof(key_0b));
    memset(key_aa, 0xaa, sizeof(key_aa));
    memset(message_dd, 0xdd, sizeof(message_dd));
    memset(message_cd, 0xcd, sizeof(message_cd));
    for (size_t i = 0; i < sizeof(key_25); i++)
        key_25[i] = (uint8_t)(i + 1);
    for (size_t i = 0; i < RON_ARRAY_COUNT(vectors); i++) {
        struct ron_hmac_key key;
        struct ron_sha256 code = ron_hmac_once(vectors[i].key, vectors[i].message);

        assert_code(&code, vectors[i].code);
        ron_hmac_key_init(&key, vectors[i].key);
        for (int again = 0; again < 2; again++) { /* a prepared key is not used up */
            code = ron_hmac(&key, vectors[i].message.data, vectors[i].message.size);
            assert_code(&code, vectors[i].code);
        }
    }
}

static void a_key_of_one_block_is_not_hashed(void **state)
{
    uint8_t key[RON_SHA256_BLOCK_SIZE + 1] = {1, 2, 3};
    struct ron_sha256 padded = ron_hmac_once(ron_slice_of(key, 3), RON_SLICE("x"));
    struct ron_sha256 block = ron_hmac_once(ron_slice_of(key, RON_SHA256_BLOCK_SIZE),
                                            RON_SLICE("x"));
    struct ron_sha256 longer = ron_hmac_once(ron_slice_of(key, sizeof(key)), RON_SLICE("x"));

    (void)state;
    assert_memory_equal(padded.bytes, block.bytes, RON_SHA256_SIZE);
    assert_memory_not_equal(longer.bytes, block.bytes, RON_SHA256_SIZE);
}

static void two_digests_at_once_are_those_of_each(void **state)
{
    uint8_t data[2][300];

    (void)state;
    for (size_t i = 0; i < sizeof(data[0]); i++) {
        data[0][i] = (uint8_t)(i * 7);
        data[1][i] = (uint8_t)(i * 11 + 1);
    }
    for (size_t size = 0; size <= sizeof(data[0]); size++) {
        struct ron_sha256 two[2];

        ron_sha256_two((const uint8_t *const[2]){data[0], data[1]}, size, two);
        for (size_t i = 0; i < 2; i++) {
            struct ron_sha256 one = ron_sha256(data[i], size);

            assert_memory_equal(two[i].bytes, one.bytes, RON_SHA256_SIZE);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hmac_gives_the_codes_of_rfc_4231),
        cmocka_unit_test(a_key_of_one_block_is_not_hashed),
        cmocka_unit_test(two_digests_at_once_are_those_of_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
