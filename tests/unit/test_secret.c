/*
 * test_secret.c - secrets: comparison, bounds, wiping. That a secret cannot be printed is shown by
 * the compiler (tests/snippets). Wiping is seen through the memory itself, read back after the
 * call.
 *
 * covers: LED-S07
 */
#include "support.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/secret.h"

static void secret_compares_content(void **state)
{
    struct ron_secret a = {0};
    struct ron_secret b = {0};
    struct ron_secret empty = {0};

    (void)state;
    assert_ok(ron_secret_init(&a, RON_SLICE("correct horse"), NULL));
    assert_ok(ron_secret_init(&b, RON_SLICE("correct horsf"), NULL));
    assert_false(ron_secret_equal(&a, &b));
    assert_true(ron_secret_equal(&a, &a));
    assert_true(ron_secret_equal_bytes(&a, RON_SLICE("correct horse")));
    assert_false(ron_secret_equal_bytes(&a, RON_SLICE("correct hors"))); /* a prefix is not equal */
    assert_false(ron_secret_equal_bytes(&a, RON_SLICE("correct horse ")));
    assert_false(ron_secret_equal(&a, &empty));
    assert_false(ron_secret_equal(&empty, &empty)); /* a key never loaded accepts nothing */
    assert_false(ron_secret_equal_bytes(&empty, RON_SLICE("")));
    assert_int_equal(ron_secret_size(&a), 13);
    assert_int_equal(ron_secret_size(&empty), 0);
    ron_secret_fini(&a);
    ron_secret_fini(&a); /* twice is harmless */
    ron_secret_fini(&b);
    ron_secret_fini(&empty);
    assert_null(a.owned);
}

static void secret_has_a_size_limit(void **state)
{
    static uint8_t bytes[RON_SECRET_SIZE_MAX + 1];
    struct ron_errinfo info = {0};
    struct ron_secret secret = {0};

    (void)state;
    assert_ok(ron_secret_init(&secret, ron_slice_of(bytes, RON_SECRET_SIZE_MAX), NULL));
    ron_secret_fini(&secret);
    support_assert_error(ron_secret_init(&secret, ron_slice_of(bytes, sizeof(bytes)), &info), &info,
                         RON_ERR_TOO_LARGE, "4097");
    assert_null(secret.owned);
    support_assert_error(ron_secret_init(&secret, RON_SLICE(""), &info), &info, RON_ERR_MALFORMED,
                         "0 bytes");
    assert_null(secret.owned);
}

static void random_secrets_differ(void **state)
{
    struct ron_secret a = {0};
    struct ron_secret b = {0};

    (void)state;
    assert_ok(ron_secret_init_random(&a, 32, NULL));
    assert_ok(ron_secret_init_random(&b, 32, NULL));
    assert_int_equal(ron_secret_size(&a), 32);
    for (size_t part = 0; part < 32; part += 8) /* every part is random: equal once in 2^64 */
        assert_memory_not_equal(ron_secret_expose(&a).data + part,
                                ron_secret_expose(&b).data + part, 8);
    ron_secret_fini(&a);
    ron_secret_fini(&b);
}

static void wipe_overwrites_everything(void **state)
{
    uint8_t bytes[32];

    (void)state;
    memset(bytes, 0xa5, sizeof(bytes));
    ron_wipe(bytes + 1, sizeof(bytes) - 2);
    assert_int_equal(bytes[0], 0xa5);
    assert_int_equal(bytes[31], 0xa5);
    for (size_t i = 1; i < 31; i++)
        assert_int_equal(bytes[i], 0);
    ron_wipe(NULL, 0);
}

static void constant_time_equality_sees_every_byte(void **state)
{
    uint8_t a[32] = {0};
    uint8_t b[32] = {0};

    (void)state;
    assert_true(ron_equal_constant_time(a, b, sizeof(a)));
    for (size_t i = 0; i < sizeof(a); i++) {
        b[i] = 1;
        assert_false(ron_equal_constant_time(a, b, sizeof(a)));
        b[i] = 0;
    }
    assert_true(ron_equal_constant_time(NULL, NULL, 0));
}

/* The kernel reads the bytes for us: EFAULT instead of a crash where nothing is mapped. */
static bool readable(struct ron_slice bytes)
{
    int ends[2];
    ssize_t wrote;

    assert_int_equal(pipe(ends), 0);
    wrote = write(ends[1], bytes.data, bytes.size);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
    return wrote == (ssize_t)bytes.size;
}

static void secret_memory_is_gone_after_its_end(void **state)
{
    struct ron_secret secret = {0};
    struct ron_slice bytes;

    (void)state;
    assert_ok(ron_secret_init(&secret, RON_SLICE("marker"), NULL));
    bytes = ron_secret_expose(&secret);
    assert_true(ron_slice_equal(bytes, RON_SLICE("marker")));
    assert_true(readable(bytes));
    ron_secret_fini(&secret);
    assert_false(readable(bytes));
    assert_int_equal(ron_secret_expose(&secret).size, 0);
}

/* The kernel's flags of the mapping around address, from /proc/self/smaps: dd = not dumped. */
static bool mapping_has_flag(const void *address, const char *flag)
{
    FILE *smaps = fopen("/proc/self/smaps", "r");
    char line[512];
    bool inside = false;
    bool found = false;

    assert_non_null(smaps);
    while (!found && fgets(line, sizeof(line), smaps) != NULL) {
        uintptr_t start;
        uintptr_t end;

        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &start, &end) == 2)
            inside = start <= (uintptr_t)address && (uintptr_t)address < end;
        else if (inside && strncmp(line, "VmFlags:", 8) == 0)
            found = strstr(line, flag) != NULL;
    }
    assert_int_equal(fclose(smaps), 0);
    return found;
}

static void secret_is_kept_out_of_core_dumps(void **state)
{
    struct ron_secret secret = {0};

    (void)state;
    assert_ok(ron_secret_init(&secret, RON_SLICE("marker"), NULL));
    assert_true(mapping_has_flag(ron_secret_expose(&secret).data, " dd"));
    assert_false(mapping_has_flag(&secret, " dd")); /* the check itself can tell */
    ron_secret_fini(&secret);
}

static enum ron_err make_secret(void *context, struct ron_errinfo *reterr)
{
    struct ron_secret secret = {0};
    enum ron_err err;

    (void)context;
    err = ron_secret_init(&secret, RON_SLICE("key"), reterr);
    if (err != RON_ERR_OK)
        assert_null(secret.owned);
    ron_secret_fini(&secret);
    if (err == RON_ERR_OK) {
        err = ron_secret_init_random(&secret, 32, reterr);
        ron_secret_fini(&secret);
    }
    return err;
}

static void secret_survives_each_failed_allocation(void **state)
{
    (void)state;
    assert_int_equal(support_fail_each_allocation(make_secret, NULL, 8), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secret_compares_content),
        cmocka_unit_test(secret_has_a_size_limit),
        cmocka_unit_test(random_secrets_differ),
        cmocka_unit_test(wipe_overwrites_everything),
        cmocka_unit_test(constant_time_equality_sees_every_byte),
        cmocka_unit_test(secret_is_kept_out_of_core_dumps),
        cmocka_unit_test(secret_memory_is_gone_after_its_end),
        cmocka_unit_test(secret_survives_each_failed_allocation),
    };
    return cmocka_run_group_tests_name("secret", tests, NULL, NULL);
}
