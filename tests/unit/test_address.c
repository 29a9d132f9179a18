/*
 * test_address.c - addresses as text. Method: a table of good ones that print as they were read, a
 * table of bad ones, and which are loopback.
 */
#include "support.h"

#include "io/address.h"

static struct io_address parse(const char *text)
{
    struct io_address address;

    assert_ok(io_address_parse(text, &address, NULL));
    return address;
}

static void good_ones_print_as_they_were_read(void **state)
{
    static const char *const texts[] = {
        "127.0.0.1:7700", "0.0.0.0:0",   "255.255.255.255:65535",       "[::1]:0",
        "[::]:80",        "unix:/run/s", "[2001:db8::1234:5678]:65535", "unix:s"};

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(texts); i++) {
        struct io_address address = parse(texts[i]);
        char text[IO_ADDRESS_TEXT_SIZE];

        io_address_print(&address, text);
        assert_string_equal(text, texts[i]);
        assert_int_equal(io_address_is_unix(&address), strncmp(texts[i], "unix:", 5) == 0);
    }
}

static void bad_ones_are_refused(void **state)
{
    static const char *const texts[] = {"",
                                        ":",
                                        ":80",
                                        "127.0.0.1",
                                        "127.0.0.1:",
                                        "::1:80",
                                        "[::1]",
                                        "[::1]80",
                                        "[]:80",
                                        "127.0.0.1:65536",
                                        "a:80",
                                        "localhost:1",
                                        "127.0.0.1:-1",
                                        "127.0.0.1: 80",
                                        "127.0.0.1:80 ",
                                        "1.2.3:80",
                                        "1.2.3.4.5:1",
                                        "[::1:80",
                                        "127.0.0.1:99999999999999999999",
                                        "unix:",
                                        "[::1]]:80",
                                        "[[::1]:80",
                                        "256.0.0.1:80"};
    char longest[5 + 101 + 1] = "unix:";
    struct io_address address = parse("[::1]:5");
    struct io_address before = address;
    struct ron_errinfo info = {0};

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(texts); i++) {
        assert_int_equal(io_address_parse(texts[i], &address, &info), RON_ERR_MALFORMED);
        assert_true(info.message[0] != '\0');
    }
    memset(longest + 5, 'x', 101);
    assert_int_equal(io_address_parse(longest, &address, NULL), RON_ERR_MALFORMED);
    assert_memory_equal(&address, &before, sizeof(address));
    longest[105] = '\0';
    (void)parse(longest);
}

static void loopback_is_what_stays_here(void **state)
{
    static const char *const here[] = {"127.0.0.1:1", "127.255.0.9:1", "[::1]:1",
                                       "[::ffff:127.0.0.1]:1", "unix:/s"};
    static const char *const elsewhere[] = {
        "0.0.0.0:1",   "128.0.0.1:1",          "[::]:1", "[::ffff:10.0.0.1]:1", "[::2]:1",
        "126.0.0.1:1", "[1::ffff:127.0.0.1]:1"};
    struct io_address address;

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(here); i++) {
        address = parse(here[i]);
        assert_true(io_address_is_loopback(&address));
    }
    for (size_t i = 0; i < RON_ARRAY_COUNT(elsewhere); i++) {
        address = parse(elsewhere[i]);
        assert_false(io_address_is_loopback(&address));
    }
}

static void bytes_are_mapped(void **state)
{
    static const uint8_t four[16] = {[10] = 0xff, 0xff, 1, 2, 3, 4};
    struct io_address address = parse("1.2.3.4:258");
    struct io_address mapped = parse("[::ffff:1.2.3.4]:258");
    uint8_t bytes[16];
    uint16_t port;

    (void)state;
    io_address_bytes(&address, bytes, &port);
    assert_memory_equal(bytes, four, 16);
    assert_int_equal(port, 258);
    io_address_bytes(&mapped, bytes, &port);
    assert_memory_equal(bytes, four, 16);
    address = parse("unix:/s");
    io_address_bytes(&address, bytes, &port);
    assert_memory_equal(bytes, (const uint8_t[16]){0}, 16);
    assert_int_equal(port, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_ones_print_as_they_were_read),
        cmocka_unit_test(bad_ones_are_refused),
        cmocka_unit_test(loopback_is_what_stays_here),
        cmocka_unit_test(bytes_are_mapped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
