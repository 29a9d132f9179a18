/*
 * test_error.c - the error table and errinfo.
 * Method: the table is compared with the wire contract written out here by hand.
 */
#include "support.h"

#include <stdio.h>
#include <string.h>

/* The contract, one line per HTTP status: code, R = retryable, A = Retry-After. */
static const struct {
    int http;
    const char *codes;
} contract[] = {
    {400, "Malformed SchemaViolation DecompressRatio"},
    {401, "Unauthorized"},
    {403, "Forbidden LimitExceeded PolicyDenied"},
    {404, "NotFound"},
    {405, "MethodNotAllowed"},
    {408, "Timeout:R"},
    {409, "InsufficientFunds NonceConflict IdempotencyConflict Conflict ChainMismatch:R "
          "DuplicateApproval VersionSkew OrderOverflow Quarantined"},
    {410, "Pruned Expired"},
    {411, "LengthRequired"},
    {413, "TooLarge"},
    {415, "UnsupportedMedia"},
    {422, "InvalidSignature RevokedKey QuorumFailed"},
    {429, "Busy:RA RateLimited:RA PrevalDropOldest:RA"},
    {431, "HeadersTooLarge"},
    {500, "Internal"},
    {503, "NotReady:RA Draining:RA Canceled:A SafeMode:A UpstreamUnavailable:RA "
          "CommitBackpressure:RA StorageBusy:RA Held:RA PersistenceFull"},
    {504, "Timeout:R"},
};

/* covers: LED-F40 LED-V06 */
static void table_is_the_contract(void **state)
{
    unsigned rows_count = 0;
    unsigned public_count = 0;

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(contract); i++) {
        char codes[512];
        char *rest = codes;
        char *word;

        (void)snprintf(codes, sizeof(codes), "%s", contract[i].codes);
        while ((word = strsep(&rest, " ")) != NULL) {
            char *flags = strchr(word, ':');
            bool found = false;

            if (flags != NULL)
                *flags++ = '\0';
            for (unsigned e = 0; e < RON_ERR__MAX; e++) {
                enum ron_err err = (enum ron_err)e;

                if (err == RON_ERR_RECOVERING) /* below */
                    continue;
                if (ron_err_internal(err) || ron_err_http(err) != contract[i].http ||
                    strcmp(ron_err_name(err), word) != 0)
                    continue;
                found = true;
                assert_int_equal(ron_err_retryable(err), flags != NULL && strchr(flags, 'R'));
                assert_int_equal(ron_err_retry_after(err), flags != NULL && strchr(flags, 'A'));
                assert_int_equal(ron_err_wire(err), err);
            }
            if (!found)
                fail_msg("no row %s with HTTP %d", word, contract[i].http);
            rows_count++;
        }
    }
    for (unsigned e = 0; e < RON_ERR__MAX; e++)
        public_count += !ron_err_internal((enum ron_err)e);
    /* The SafeMode that ends by itself: the one row beside the contract's. */
    assert_int_equal(public_count, rows_count + 1);
    assert_string_equal(ron_err_name(RON_ERR_RECOVERING), "SafeMode");
    assert_int_equal(ron_err_http(RON_ERR_RECOVERING), 503);
    assert_true(ron_err_retryable(RON_ERR_RECOVERING));
    assert_true(ron_err_retry_after(RON_ERR_RECOVERING));
}

static void reasons_are_labels(void **state)
{
    (void)state;
    assert_string_equal(ron_err_reason(RON_ERR_BUSY), "capacity");
    assert_string_equal(ron_err_reason(RON_ERR_ORDER_OVERFLOW), "order_overflow");
    assert_string_equal(ron_err_reason(RON_ERR_PERSISTENCE_FULL), "wal_full");
    for (unsigned e = 0; e < RON_ERR__MAX; e++) {
        const char *reason = ron_err_reason((enum ron_err)e);

        assert_true(strlen(reason) > 0);
        assert_int_equal(strspn(reason, "abcdefghijklmnopqrstuvwxyz_"), strlen(reason));
    }
}

static void internal_rows_have_a_public_stand_in(void **state)
{
    (void)state;
    assert_int_equal(ron_err_wire(RON_ERR_NO_MEMORY), RON_ERR_BUSY);
    assert_int_equal(ron_err_wire(RON_ERR_IO), RON_ERR_INTERNAL);
    for (unsigned e = 0; e < RON_ERR__MAX; e++) {
        enum ron_err err = (enum ron_err)e;

        if (ron_err_internal(err) && ron_err_http(err) >= 300) {
            assert_false(ron_err_internal(ron_err_wire(err)));
            assert_int_equal(ron_err_http(ron_err_wire(err)), ron_err_http(err));
        }
    }
    assert_dies((void)ron_err_wire(RON_ERR_OK), "err != RON_ERR_OK");
}

static void find_knows_public_codes_only(void **state)
{
    enum ron_err err = RON_ERR_OK;

    (void)state;
    assert_true(ron_err_find("SafeMode", &err));
    assert_int_equal(err, RON_ERR_SAFE_MODE);
    assert_true(ron_err_find("Timeout", &err));
    assert_int_equal(err, RON_ERR_TIMEOUT);
    err = RON_ERR_OK;
    assert_false(ron_err_find("Io", &err));
    assert_false(ron_err_find("busy", &err));
    assert_false(ron_err_find("", &err));
    assert_int_equal(err, RON_ERR_OK);
}

static void fail_records_origin_and_message(void **state)
{
    struct ron_errinfo info = {0};

    (void)state;
    assert_int_equal(ron_fail_sys(&info, RON_ERR_IO, 28, "write of %d bytes", 5), RON_ERR_IO);
    int line = __LINE__ - 1;
    assert_string_equal(info.message, "write of 5 bytes");
    assert_int_equal(info.sys_errno, 28);
    assert_int_equal(info.line, line);
    assert_string_equal(info.file, "tests/unit/test_error.c");
    assert_int_equal(ron_wrap(&info, RON_ERR_IO, "wallet %d", 7), RON_ERR_IO);
    assert_string_equal(info.message, "wallet 7: write of 5 bytes");
    assert_int_equal(info.line, line);
    assert_int_equal(ron_fail(NULL, RON_ERR_BUSY, "ignored"), RON_ERR_BUSY);
    assert_int_equal(ron_wrap(NULL, RON_ERR_BUSY, "ignored"), RON_ERR_BUSY);
    assert_dies((void)ron_fail(&info, RON_ERR_OK, "no"), "err != RON_ERR_OK");
}

static void wrapping_keeps_the_root_cause(void **state)
{
    struct ron_errinfo info = {0};

    (void)state;
    assert_int_equal(ron_fail(&info, RON_ERR_IO, "root cause"), RON_ERR_IO);
    for (int layer = 0; layer < 12; layer++)
        assert_int_equal(
            ron_wrap(&info, RON_ERR_IO, "layer %d of a deep call chain somewhere", layer),
            RON_ERR_IO);
    assert_true(strlen(info.message) < RON_ERR_MESSAGE_SIZE);
    assert_true(strlen(info.message) > RON_ERR_MESSAGE_SIZE - 20);
    assert_non_null(strstr(info.message, "layer 0 of a deep call chain somewhere: root cause"));
}

static void long_messages_are_cut_between_characters(void **state)
{
    struct ron_errinfo info = {0};
    char text[400];

    (void)state;
    for (int shift = 0; shift < 4; shift++) {
        size_t size = 0;

        memset(text, 'a', (size_t)shift);
        for (size = (size_t)shift; size < 390; size += 3)
            memcpy(text + size, "\xe2\x82\xac", 3);
        text[size] = '\0';
        assert_int_equal(ron_fail(&info, RON_ERR_BUSY, "%s", text), RON_ERR_BUSY);
        assert_true(strlen(info.message) < RON_ERR_MESSAGE_SIZE);
        assert_int_equal((strlen(info.message) - (size_t)shift) % 3, 0);
        assert_true(strlen(info.message) >= RON_ERR_MESSAGE_SIZE - 4);
        assert_int_equal(ron_wrap(&info, RON_ERR_BUSY, "%s", text), RON_ERR_BUSY);
        assert_int_equal((strlen(info.message) - (size_t)shift) % 3, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_the_contract),
        cmocka_unit_test(reasons_are_labels),
        cmocka_unit_test(internal_rows_have_a_public_stand_in),
        cmocka_unit_test(find_knows_public_codes_only),
        cmocka_unit_test(fail_records_origin_and_message),
        cmocka_unit_test(wrapping_keeps_the_root_cause),
        cmocka_unit_test(long_messages_are_cut_between_characters),
    };
    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
