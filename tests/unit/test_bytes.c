/*
 * test_bytes.c - slices, buffers with a maximum, byte order. Method: the bounds and one beyond.
 */
#include "support.h"

static void slice_compare_orders_bytewise(void **state)
{
    (void)state;
    assert_true(ron_slice_compare(RON_SLICE("a"), RON_SLICE("b")) < 0);
    assert_true(ron_slice_compare(RON_SLICE("a"), RON_SLICE("ab")) < 0);
    assert_true(ron_slice_compare(RON_SLICE("\xff"), RON_SLICE("a")) > 0);
    assert_int_equal(ron_slice_compare(RON_SLICE(""), (struct ron_slice){0}), 0);
    assert_true(ron_slice_equal(RON_SLICE(""), (struct ron_slice){0}));
    assert_false(ron_slice_equal(RON_SLICE("a"), RON_SLICE("b")));
}

static void buf_takes_exactly_its_maximum(void **state)
{
    struct ron_errinfo info = {0};
    struct ron_buf buf;

    (void)state;
    ron_buf_init(&buf, 100);
    for (int i = 0; i < 100; i++)
        ron_buf_put_byte(&buf, (uint8_t)i);
    assert_ok(ron_buf_check(&buf, NULL));
    assert_int_equal(buf.size, 100);
    support_assert_error(ron_buf_append(&buf, "x", 1, &info), &info, RON_ERR_TOO_LARGE, "100");
    assert_int_equal(buf.size, 100);
    assert_int_equal(buf.data[99], 99);
    support_assert_error(ron_buf_check(&buf, &info), &info, RON_ERR_TOO_LARGE, "at most 100");
    ron_buf_reset(&buf);
    ron_buf_put_text(&buf, "again");
    ron_buf_put_format(&buf, " %d", 7);
    assert_ok(ron_buf_check(&buf, NULL));
    assert_true(ron_slice_equal(ron_buf_slice(&buf), RON_SLICE("again 7")));
    ron_buf_fini(&buf);
}

static void buf_takes_its_maximum_at_once(void **state)
{
    const uint8_t bytes[101] = {0};
    struct ron_errinfo info = {0};
    struct ron_buf buf;

    (void)state;
    ron_buf_init(&buf, 100);
    support_assert_error(ron_buf_append(&buf, bytes, 101, &info), &info, RON_ERR_TOO_LARGE,
                         "1 bytes more");
    ron_buf_reset(&buf);
    assert_ok(ron_buf_append(&buf, bytes, 100, NULL));
    assert_int_equal(buf.size, 100);
    ron_buf_fini(&buf);
}

static void buf_put_after_failure_does_nothing(void **state)
{
    struct ron_buf buf;

    (void)state;
    ron_buf_init(&buf, 4);
    ron_buf_put(&buf, "abc", 3);
    ron_buf_put(&buf, "de", 2); /* refused whole */
    ron_buf_put(&buf, "f", 1);  /* would fit, but must not follow a gap */
    assert_true(ron_slice_equal(ron_buf_slice(&buf), RON_SLICE("abc")));
    assert_int_equal(ron_buf_check(&buf, NULL), RON_ERR_TOO_LARGE);
    ron_buf_fini(&buf);
}

static enum ron_err grow_buffer(void *context, struct ron_errinfo *reterr)
{
    struct ron_buf buf;
    enum ron_err err;

    (void)context;
    ron_buf_init(&buf, 4096);
    for (int i = 0; i < 1000; i++)
        ron_buf_put_text(&buf, "abc");
    err = ron_buf_check(&buf, reterr);
    if (err == RON_ERR_OK)
        assert_int_equal(buf.size, 3000);
    ron_buf_fini(&buf);
    return err;
}

static void buf_survives_each_failed_allocation(void **state)
{
    (void)state;
    assert_int_equal(support_fail_each_allocation(grow_buffer, NULL, 20), 7);
}

static void loads_and_stores_keep_byte_order(void **state)
{
    uint8_t bytes[9] = {0};

    (void)state;
    ron_store_be32(bytes + 1, 0x01020304u);
    assert_int_equal(bytes[1], 1);
    assert_int_equal(ron_load_le32(bytes + 1), 0x04030201u);
    ron_store_le64(bytes + 1, 0x0102030405060708u);
    assert_int_equal(bytes[1], 8);
    assert_int_equal(ron_load_be64(bytes + 1), 0x0807060504030201u);
    ron_store_be16(bytes, 0xabcd);
    assert_int_equal(bytes[0], 0xab);
    assert_int_equal(ron_load_be16(bytes), 0xabcd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slice_compare_orders_bytewise),
        cmocka_unit_test(buf_takes_exactly_its_maximum),
        cmocka_unit_test(buf_takes_its_maximum_at_once),
        cmocka_unit_test(buf_put_after_failure_does_nothing),
        cmocka_unit_test(buf_survives_each_failed_allocation),
        cmocka_unit_test(loads_and_stores_keep_byte_order),
    };
    return cmocka_run_group_tests_name("bytes", tests, NULL, NULL);
}
