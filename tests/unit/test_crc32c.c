/*
 * test_crc32c.c - CRC-32C. Method: published vectors; all implementations against the definition,
 * bit by bit, at every short length and alignment and around the step and stream sizes of the fast
 * ones.
 */
#include "support.h"

#include "base/crc32c.h"

typedef uint32_t crc_fn(uint32_t crc, const void *data, size_t size);
static crc_fn *const implementations[] = {ron_crc32c, ron_crc32c_by_words, ron_crc32c_software};

static uint8_t noise[40000];

static int fill_noise(void **state)
{
    uint64_t x = 20261;

    (void)state;
    for (size_t i = 0; i < sizeof(noise); i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        noise[i] = (uint8_t)(x >> 56);
    }
    return 0;
}

static uint32_t by_definition(uint32_t crc, const uint8_t *data, size_t size)
{
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

static void published_vectors_hold(void **state)
{
    /* An iSCSI SCSI Read (10) command, RFC 3720 B.4. */
    static const uint8_t command[48] = {
        0x01, 0xc0, [16] = 0x14, [22] = 0x04, [27] = 0x14, [31] = 0x18, 0x28, [40] = 0x02};
    uint8_t bytes[32];

    (void)state;
    for (size_t f = 0; f < RON_ARRAY_COUNT(implementations); f++) {
        crc_fn *crc32c = implementations[f];

        assert_int_equal(crc32c(0, NULL, 0), 0);
        assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283u);
        memset(bytes, 0, sizeof(bytes));
        assert_int_equal(crc32c(0, bytes, sizeof(bytes)), 0x8a9136aau);
        memset(bytes, 0xff, sizeof(bytes));
        assert_int_equal(crc32c(0, bytes, sizeof(bytes)), 0x62a8ab43u);
        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = (uint8_t)i;
        assert_int_equal(crc32c(0, bytes, sizeof(bytes)), 0x46dd794eu);
        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = (uint8_t)(31 - i);
        assert_int_equal(crc32c(0, bytes, sizeof(bytes)), 0x113fdb5cu);
        assert_int_equal(crc32c(0, command, sizeof(command)), 0xd9963a56u);
    }
}

static void short_inputs_match_the_definition(void **state)
{
    (void)state;
    for (size_t f = 0; f < RON_ARRAY_COUNT(implementations); f++)
        for (size_t offset = 0; offset < 16; offset++)
            for (size_t size = 0; size <= 520; size++) {
                uint32_t crc = (uint32_t)(size * 2654435761u);

                assert_int_equal(implementations[f](crc, noise + offset, size),
                                 by_definition(crc, noise + offset, size));
            }
}

static void stream_sizes_match_the_definition(void **state)
{
    static const size_t around[] = {504, 768, 1008, 2304, 4080, 4096, 4584, 8160, 20000, 39000};

    (void)state;
    for (size_t f = 0; f < RON_ARRAY_COUNT(implementations); f++)
        for (size_t i = 0; i < RON_ARRAY_COUNT(around); i++)
            for (size_t size = around[i] - 9; size <= around[i] + 9; size++)
                assert_int_equal(implementations[f](7, noise + i, size),
                                 by_definition(7, noise + i, size));
}

static void sums_chain_at_any_split(void **state)
{
    const size_t size = 4700; /* long and short streams, words and bytes */
    const uint32_t whole = by_definition(0, noise, size);

    (void)state;
    for (size_t f = 0; f < RON_ARRAY_COUNT(implementations); f++)
        for (size_t split = 0; split <= size; split += 13) {
            uint32_t crc = implementations[f](0, noise, split);

            assert_int_equal(implementations[f](crc, noise + split, size - split), whole);
        }
}

static void null_data_with_a_size_is_a_bug(void **state)
{
    (void)state;
    assert_dies((void)ron_crc32c(0, NULL, 1), "!= NULL || size == 0");
    assert_dies((void)ron_crc32c(0, NULL, 4096), "!= NULL");
    assert_dies((void)ron_crc32c_software(0, NULL, 1), "!= NULL || size == 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors_hold),
        cmocka_unit_test(short_inputs_match_the_definition),
        cmocka_unit_test(stream_sizes_match_the_definition),
        cmocka_unit_test(sums_chain_at_any_split),
        cmocka_unit_test(null_data_with_a_size_is_a_bug),
    };
    print_message("crc32c: %s\n", ron_crc32c_is_wide()       ? "wide, words and tables"
                                  : ron_crc32c_is_hardware() ? "words and tables"
                                                             : "tables only");
    return cmocka_run_group_tests_name("crc32c", tests, fill_noise, NULL);
}
