/*
 * test_route.c - the table of routes. Method: a table with every kind of part, asked for paths that
 * fit one row, several, none; the OpenAPI document read back by the strict reader.
 */
#include "support.h"

#include "io/route.h"

static void handler(void *context, struct io_request *request)
{
    (void)context;
    (void)request;
}

#define ROW(method_, path_, name_, flags_)                                                       \
    {                                                                                            \
        .method = HTTP_##method_, .path = path_, .role = "test", .name = name_, .flags = flags_, \
        .summary = "s", .replies = "application/json", .handler = handler                        \
    }

static const struct io_route rows[] = {
    ROW(GET, "/", "index", 0),
    ROW(GET, "/entries", "entries", 0),
    ROW(GET, "/entries/{id}", "entry", 0),
    ROW(PUT, "/slices/{t}/{d}/{seq}", "put_slice", IO_ROUTE_WRITE),
    ROW(GET, "/slices/{t}/{d}/head", "slice_head", 0),
    ROW(GET, "/tile/entries/{rest...}", "entry_tile", 0),
    ROW(GET, "/tile/{rest...}", "tile", 0),
    ROW(GET, "/tile/{level}/x", "odd", 0),
    ROW(GET, "/healthz", "healthz", IO_ROUTE_BOTH),
    ROW(GET, "/metrics", "metrics", IO_ROUTE_ADMIN),
    ROW(GET, "/{name}/own", "own", 0),
    ROW(GET, "/events", "events", 0),
    {.method = HTTP_POST,
     .path = "/entries",
     .role = "test",
     .name = "post_entries",
     .scope = "ledger.ingest",
     .flags = IO_ROUTE_WRITE,
     .body_max = 10,
     .media = "application/json",
     .summary = "say \"it\"",
     .query = IO_PARAMS({"proof", "{\"enum\":[\"1\"]}", "a proof"}, {"x", "{}", NULL, true}),
     .fields = IO_PARAMS({"My-Key", "{}", "a key"}),
     .request_schema = "{\"type\":\"object\"}",
     .handler = handler},
};

static struct io_routes *table(void)
{
    struct io_routes *routes;

    assert_ok(io_routes_new(&routes, NULL));
    assert_ok(io_routes_add(routes, rows, RON_ARRAY_COUNT(rows), &routes, NULL));
    return routes;
}

static void expect(const struct io_routes *routes, bool admin, const char *path, const char *name,
                   const char *first_param)
{
    struct io_route_match match = {0};
    uint32_t allowed;
    enum ron_err err = io_routes_match(routes, admin, HTTP_GET, ron_slice_text(path), &match,
                                       &allowed, NULL);

    if (name == NULL) {
        assert_int_equal(err, RON_ERR_NOT_FOUND);
        return;
    }
    assert_ok(err);
    assert_string_equal(match.route->name, name);
    assert_ptr_equal(io_routes_at(routes, match.number), match.route);
    assert_true(ron_slice_equal(match.params[0], ron_slice_text(first_param)));
}

static void paths_find_their_row(void **state)
{
    struct io_routes *routes = table();
    struct io_route_match match;
    uint32_t allowed;

    (void)state;
    expect(routes, false, "/", "index", "");
    expect(routes, false, "/entries", "entries", "");
    expect(routes, false, "/entries/01J", "entry", "01J");
    expect(routes, false, "/slices/1/2/head", "slice_head", "1");
    expect(routes, false, "/tile/entries/x001/067.p/3", "entry_tile", "x001/067.p/3");
    expect(routes, false, "/tile/0/x001/067", "tile", "0/x001/067");
    expect(routes, false, "/tile/0/x", "odd", "0");
    expect(routes, false, "/tile/0/y", "tile", "0/y");
    expect(routes, false, "/tile/entries", "tile", "entries"); /* back from the literal */
    /* At the root: literals that begin alike, and what is neither of them. */
    expect(routes, false, "/events", "events", "");
    expect(routes, false, "/entries/own", "entry", "own");
    expect(routes, false, "/events/own", "own", "events");
    expect(routes, false, "/e/own", "own", "e");
    expect(routes, false, "/zebra/own", "own", "zebra");
    expect(routes, false, "/entries/", NULL, "");
    expect(routes, false, "//entries", NULL, "");
    expect(routes, false, "/entries/a/b", NULL, "");
    expect(routes, false, "/tile/", NULL, "");
    expect(routes, false, "/slices/1/2", NULL, "");
    expect(routes, false, "/a/b/c/d/e/f/g/h/i/j/k/l/m", NULL, "");
    expect(routes, false, "/tile/b/c/d/e/f/g/h/i/j/k/l/m", "tile", "b/c/d/e/f/g/h/i/j/k/l/m");
    expect(routes, false, "", NULL, "");
    expect(routes, false, "/metrics", NULL, "");
    expect(routes, true, "/metrics", "metrics", "");
    expect(routes, true, "/healthz", "healthz", "");
    expect(routes, false, "/healthz", "healthz", "");
    expect(routes, true, "/entries", NULL, "");

    assert_ok(io_routes_match(routes, false, HTTP_PUT, RON_SLICE("/slices/1/2/3"), &match, &allowed,
                              NULL));
    assert_true(ron_slice_equal(match.params[2], RON_SLICE("3")));
    assert_ok(
        io_routes_match(routes, false, HTTP_HEAD, RON_SLICE("/entries"), &match, &allowed, NULL));
    assert_string_equal(match.route->name, "entries");
    io_routes_free(routes);
}

static void other_methods_are_told_what_is_allowed(void **state)
{
    struct io_routes *routes = table();
    struct io_route_match match;
    uint32_t allowed = 0;

    (void)state;
    assert_int_equal(
        io_routes_match(routes, false, HTTP_DELETE, RON_SLICE("/entries"), &match, &allowed, NULL),
        RON_ERR_METHOD_NOT_ALLOWED);
    assert_int_equal(allowed, 1u << HTTP_GET | 1u << HTTP_HEAD | 1u << HTTP_POST);
    assert_int_equal(io_routes_match(routes, false, HTTP_OTHER, RON_SLICE("/slices/1/2/3"), &match,
                                     &allowed, NULL),
                     RON_ERR_METHOD_NOT_ALLOWED);
    assert_int_equal(allowed, 1u << HTTP_PUT);
    assert_int_equal(
        io_routes_match(routes, false, HTTP_OPTIONS, RON_SLICE("*"), &match, &allowed, NULL),
        RON_ERR_METHOD_NOT_ALLOWED);
    assert_int_equal(
        io_routes_match(routes, false, HTTP_GET, RON_SLICE("*"), &match, &allowed, NULL),
        RON_ERR_NOT_FOUND);
    io_routes_free(routes);
}

static void rows_that_meet_are_refused(void **state)
{
    static const struct io_route twice[] = {ROW(GET, "/entries/{other}", "x", 0)};
    static const struct io_route both[] = {ROW(GET, "/metrics", "x", IO_ROUTE_BOTH)};
    static const struct io_route apart[] = {ROW(GET, "/metrics", "api_metrics", 0)};
    static const struct io_route name[] = {ROW(GET, "/new", "entry", 0)};
    struct io_routes *routes = table();
    struct ron_errinfo info = {0};

    (void)state;
    support_assert_error(io_routes_add(routes, twice, 1, NULL, &info), &info, RON_ERR_CONFLICT,
                         "two routes take GET /entries/{other}");
    support_assert_error(io_routes_add(routes, both, 1, NULL, &info), &info, RON_ERR_CONFLICT,
                         "two routes take GET /metrics");
    support_assert_error(io_routes_add(routes, name, 1, NULL, &info), &info, RON_ERR_CONFLICT,
                         "two routes are named entry");
    assert_ok(io_routes_add(routes, apart, 1, NULL, NULL));
    io_routes_free(routes);
}

static void the_document_is_json_and_lists_each_row_once(void **state)
{
    struct io_routes *routes = table();
    struct ron_buf buf;
    size_t count = 0;

    (void)state;
    ron_buf_init(&buf, 1 << 16);
    assert_ok(io_routes_openapi(routes, "1.2.3", &buf, NULL));
    ron_buf_put_byte(&buf, '\0');
    assert_ok(ron_buf_check(&buf, NULL));
    for (const char *at = (char *)buf.data; (at = strstr(at, "\"operationId\"")) != NULL; at++)
        count++;
    assert_int_equal(count, RON_ARRAY_COUNT(rows));
    assert_non_null(strstr((char *)buf.data, "\"/tile/{rest}\":{\"get\""));
    assert_non_null(
        strstr((char *)buf.data, "\"security\":[{\"capability\":[\"ledger.ingest\"]}]"));
    assert_non_null(strstr((char *)buf.data, "\"summary\":\"say \\\"it\\\"\""));
    assert_non_null(strstr((char *)buf.data, "{\"get\":{\"operationId\":\"entries\""));
    assert_non_null(strstr((char *)buf.data,
                           "\"parameters\":[{\"name\":\"id\",\"in\":\"path\",\"required\":true,"
                           "\"schema\":{\"type\":\"string\"}}]"));
    assert_non_null(
        strstr((char *)buf.data,
               "\"parameters\":[{\"name\":\"proof\",\"in\":\"query\",\"description\":\"a proof\","
               "\"required\":false,\"schema\":{\"enum\":[\"1\"]}},{\"name\":\"x\",\"in\":\"query\","
               "\"required\":true,\"schema\":{}},{\"name\":\"My-Key\",\"in\":\"header\","
               "\"description\":\"a key\",\"required\":false,\"schema\":{}}]"));
    ron_buf_fini(&buf);
    io_routes_free(routes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_find_their_row),
        cmocka_unit_test(other_methods_are_told_what_is_allowed),
        cmocka_unit_test(rows_that_meet_are_refused),
        cmocka_unit_test(the_document_is_json_and_lists_each_row_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
