/*
 * test_query.c - parameters of a query. Method: tables of query, name and what is found.
 */
#include "support.h"

#include "io/request.h"

static enum ron_err get(const char *query, const char *name, char *buf, size_t size)
{
    struct io_request request = {.query = ron_slice_text(query)};

    memset(buf, 'z', size);
    return io_query_get(&request, name, buf, size, NULL);
}

static void values_are_decoded(void **state)
{
    static const char *const rows[][3] = {{"a=1", "a", "1"},
                                          {"a=1&b=2", "b", "2"},
                                          {"b=2&a=1", "a", "1"},
                                          {"a", "a", ""},
                                          {"a=", "a", ""},
                                          {"a=b=c", "a", "b=c"},
                                          {"a=%41%7a%7A", "a", "Azz"},
                                          {"a=1+2", "a", "1+2"},
                                          {"a=%26%3d", "a", "&="},
                                          {"&&a=1&&", "a", "1"},
                                          {"aa=1&a=2", "a", "2"},
                                          {"A=1&a=2", "a", "2"},
                                          {"a=%ff", "a", "\xff"},
                                          {"x&a&y", "a", ""},
                                          {"=1&a=2", "", "1"}};
    char buf[8];

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(rows); i++) {
        assert_ok(get(rows[i][0], rows[i][1], buf, sizeof(buf)));
        assert_string_equal(buf, rows[i][2]);
    }
}

static void what_is_odd_is_refused(void **state)
{
    static const struct {
        const char *query;
        enum ron_err err;
    } rows[] = {{"", RON_ERR_NOT_FOUND},      {"b=1", RON_ERR_NOT_FOUND},
                {"%61=1", RON_ERR_NOT_FOUND}, {"a=1&a=1", RON_ERR_MALFORMED},
                {"a&a", RON_ERR_MALFORMED},   {"a=%00", RON_ERR_MALFORMED},
                {"a=%", RON_ERR_MALFORMED},   {"a=%4", RON_ERR_MALFORMED},
                {"a=1234567", RON_ERR_OK},    {"a=12345678", RON_ERR_TOO_LARGE},
                {"a=123456%37", RON_ERR_OK},  {"a=1234567%38", RON_ERR_TOO_LARGE}};
    char buf[8];

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(rows); i++)
        assert_int_equal(get(rows[i].query, "a", buf, sizeof(buf)), rows[i].err);
    assert_ok(get("a=", "a", buf, 1));
    assert_int_equal(get("a=1", "a", buf, 1), RON_ERR_TOO_LARGE);
}

static const struct io_route route = {
    .query = IO_PARAMS({"account", "{}"}, {"asset", "{}"}, {"a", "{}"}),
};

static const struct io_route plain = {.query = NULL};
static const struct io_route needy = {
    .query = IO_PARAMS({"a", "{}"}, {"b", "{}", .required = true}),
};

static void unknown_names_are_named(void **state)
{
    static const char *const good[] = {"", "a=1", "asset=1&a", "a&", "a=b"};
    static const char *const twice[] = {"a&a", "a=1&asset&a=1"};
    struct io_request request = {.route = &route};
    struct ron_errinfo info = {0};

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(good); i++) {
        request.query = ron_slice_text(good[i]);
        assert_ok(io_query_only(&request, NULL));
    }
    for (size_t i = 0; i < RON_ARRAY_COUNT(twice); i++) {
        request.query = ron_slice_text(twice[i]);
        support_assert_error(io_query_only(&request, &info), &info, RON_ERR_MALFORMED,
                             "a: more than once");
    }
    request.query = RON_SLICE("a=1&asse=2&b");
    support_assert_error(io_query_only(&request, &info), &info, RON_ERR_MALFORMED,
                         "unknown parameter asse");
    request.query = RON_SLICE("a=1");
    request.route = &plain; /* takes none */
    support_assert_error(io_query_only(&request, &info), &info, RON_ERR_MALFORMED,
                         "unknown parameter a");
    request.query = RON_SLICE("");
    assert_ok(io_query_only(&request, NULL));
    request.route = &needy;
    support_assert_error(io_query_only(&request, &info), &info, RON_ERR_MALFORMED, "b is missing");
    request.query = RON_SLICE("a=1&b");
    assert_ok(io_query_only(&request, NULL));
}

/* What io_query_get and io_query_only say, in one pass. */
static void all_values_in_one_pass(void **state)
{
    struct io_request request = {.route = &route, .query = RON_SLICE("a&account=al")};
    struct io_query_value values[3];
    struct ron_errinfo info = {0};
    struct ron_slice text;
    char buf[4];

    (void)state;
    assert_ok(io_query_split(&request, values, NULL));
    assert_int_equal(values[0].count, 1);
    assert_int_equal(values[1].count, 0);
    assert_int_equal(values[2].count, 1);
    assert_ok(io_query_decode(&values[0], "account", buf, sizeof(buf), &text, NULL));
    assert_true(ron_slice_equal(text, RON_SLICE("al")));
    assert_ptr_equal(text.data, values[0].text.data); /* nothing to decode, nothing to copy */
    assert_ok(io_query_decode(&values[2], "a", buf, sizeof(buf), &text, NULL));
    assert_int_equal(text.size, 0);
    request.query = RON_SLICE("account=%61l%69");
    assert_ok(io_query_split(&request, values, NULL));
    assert_ok(io_query_decode(&values[0], "account", buf, sizeof(buf), &text, NULL));
    assert_true(ron_slice_equal(text, RON_SLICE("ali")));
    assert_ptr_equal(text.data, buf);
    request.query = RON_SLICE("account=alic");
    assert_ok(io_query_split(&request, values, NULL));
    support_assert_error(io_query_decode(&values[0], "account", buf, sizeof(buf), &text, &info),
                         &info, RON_ERR_TOO_LARGE, "account: longer than 3 bytes");
    support_assert_error(io_query_decode(&values[1], "asset", buf, sizeof(buf), &text, &info),
                         &info, RON_ERR_NOT_FOUND, "asset is missing");
    request.query = RON_SLICE("asset=%72oc&account=al&a&asset=x");
    support_assert_error(io_query_split(&request, values, &info), &info, RON_ERR_MALFORMED,
                         "asset: more than once");
    request.query = RON_SLICE("account=1&assets=1&account=2");
    support_assert_error(io_query_split(&request, values, &info), &info, RON_ERR_MALFORMED,
                         "unknown parameter assets");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_decoded),
        cmocka_unit_test(what_is_odd_is_refused),
        cmocka_unit_test(unknown_names_are_named),
        cmocka_unit_test(all_values_in_one_pass),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
