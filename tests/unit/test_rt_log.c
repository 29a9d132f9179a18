/*
 * test_rt_log.c - log lines. Method: exact text of lines formed from made-up times and hostile
 * fields; a log with a held sink for drops, flush and close.
 */
#include "support.h"

#include <stdio.h>

#include "rt/atomic.h"
#include "rt/log.h"
#include "rt/log_line.h"
#include "rt/registry.h"
#include "rt/supervisor.h"

static char line[RT_LOG_LINE_SIZE_MAX + 1];

static const char *form(const struct rt_log_head *head, const struct rt_field *fields,
                        bool readable)
{
    size_t size = rt_log_form(line, head, fields, readable);

    assert_in_range(size, 1, RT_LOG_LINE_SIZE_MAX);
    line[size] = '\0';
    assert_ptr_equal(strchr(line, '\n'), line + size - 1);
    return line;
}

static void line_is_json_or_readable(void **state)
{
    const struct rt_log_head head = {.utc_ms = 1700000000123,
                                     .level = RT_LOG_WARN,
                                     .owner = "ledger",
                                     .task = "committer",
                                     .message = "queue is full"};
    const struct ron_errinfo info = {.err = RON_ERR_BUSY, .message = "no \"room\""};
    const struct rt_field fields[] = {rt_text("queue", "commit"),
                                      rt_u64("depth", UINT64_MAX),
                                      rt_i64("delta", -5),
                                      rt_bool("ready", false),
                                      rt_error(&info),
                                      rt_text("empty", ""),
                                      {0}};
    const struct rt_field none[] = {{0}};
    struct rt_log_head bare = head;

    (void)state;
    assert_string_equal(form(&head, fields, false),
                        "{\"ts\":\"2023-11-14T22:13:20.123Z\",\"level\":\"warn\","
                        "\"role\":\"ledger\",\"task\":\"committer\",\"msg\":\"queue is full\","
                        "\"queue\":\"commit\",\"depth\":18446744073709551615,\"delta\":-5,"
                        "\"ready\":false,\"error\":\"no \\\"room\\\"\",\"empty\":\"\"}\n");
    assert_string_equal(form(&head, fields, true),
                        "2023-11-14T22:13:20.123Z warn ledger/committer: queue is full "
                        "queue=commit depth=18446744073709551615 delta=-5 ready=false "
                        "error=\"no \\\"room\\\"\" empty=\"\"\n");
    bare.task = NULL;
    bare.level = RT_LOG_DEBUG;
    assert_string_equal(form(&bare, none, false),
                        "{\"ts\":\"2023-11-14T22:13:20.123Z\",\"level\":\"debug\","
                        "\"role\":\"ledger\",\"msg\":\"queue is full\"}\n");
    assert_string_equal(form(&bare, none, true),
                        "2023-11-14T22:13:20.123Z debug ledger: queue is full\n");
}

static void line_has_the_right_date(void **state)
{
    static const struct {
        uint64_t utc_ms;
        const char *text;
    } dates[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {951782399999, "2000-02-28T23:59:59.999Z"},
        {951782400000, "2000-02-29T00:00:00.000Z"},
        {951868800000, "2000-03-01T00:00:00.000Z"},
        {1709164800000, "2024-02-29T00:00:00.000Z"},
        {1735689599000, "2024-12-31T23:59:59.000Z"},
        {1735689600000, "2025-01-01T00:00:00.000Z"},
        {4107542400000, "2100-03-01T00:00:00.000Z"},
        {253402300799999, "9999-12-31T23:59:59.999Z"},
    };
    const struct rt_field none[] = {{0}};

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(dates); i++) {
        const struct rt_log_head head = {.utc_ms = dates[i].utc_ms, .owner = "", .message = ""};
        assert_memory_equal(form(&head, none, true), dates[i].text, 24);
    }
}

static void line_tames_hostile_text(void **state)
{
    static const struct {
        const char *text;
        const char *expected;
    } cases[] = {
        {"a\nb\r\t\x1b[2J\x7f", "a\\u000ab\\u000d\\u0009\\u001b[2J\\u007f"},
        {"\"}\\", "\\\"}\\\\"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x92\xb0", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x92\xb0"},
        {"\xc2\x9b", "\\u009b"}, /* a C1 control: moves terminals too */
        {"\xff\x80z", "\xef\xbf\xbd\xef\xbf\xbdz"},
        {"\xc0\xafz", "\xef\xbf\xbd\xef\xbf\xbdz"},                 /* overlong */
        {"\xed\xa0\x80z", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz"}, /* surrogate */
        {"\xf4\x90\x80\x80z", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz"},
        {"z\xe2\x82", "z\xef\xbf\xbd\xef\xbf\xbd"}, /* cut short */
    };
    const struct rt_log_head head = {.owner = "r", .message = "m"};
    char expected[256];

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(cases); i++) {
        const struct rt_field fields[] = {rt_text("k", cases[i].text), {0}};
        (void)snprintf(expected, sizeof(expected),
                       "{\"ts\":\"1970-01-01T00:00:00.000Z\",\"level\":\"debug\",\"role\":\"r\","
                       "\"msg\":\"m\",\"k\":\"%s\"}\n",
                       cases[i].expected);
        assert_string_equal(form(&head, fields, false), expected);
    }
}

static void line_leaves_out_what_does_not_fit(void **state)
{
    static char big[RT_LOG_LINE_SIZE_MAX];
    const struct rt_log_head head = {.owner = "r", .message = "m"};

    (void)state;
    for (size_t size = 900; size < sizeof(big); size++) { /* each length around the limit */
        const struct rt_field fields[] = {
            rt_slice("big", ron_slice_of(big, size)), rt_u64("after", 7), {0}};
        bool cut;

        memset(big, 'x', sizeof(big));
        cut = strstr(form(&head, fields, false), ",\"cut\":true}\n") != NULL;
        assert_int_equal(
            strstr(line, "\"big\":\"xx") == NULL || strstr(line, "\"after\":7") == NULL, cut);
        assert_true(line[strlen(line) - 2] == '}');
    }
    assert_non_null(strstr(line, "\"after\":7")); /* a short field after a long one is kept */
}

static struct rt_supervisor *supervisor;
static struct rt_log *log_object;
static struct rt_atomic_u32 gate, held;
static char output[1 << 16]; /* written by the log's task, read after flush or stop */
static size_t output_size;

static void sink(void *context, struct ron_slice lines)
{
    assert_ptr_equal(context, output);
    while (rt_atomic_load_u32(&gate) == 0) {
        rt_atomic_store_u32(&held, 1);
        sh_sleep_until(rt_now_ns() + 100000);
    }
    assert_true(output_size + lines.size < sizeof(output));
    memcpy(output + output_size, lines.data, lines.size);
    output_size += lines.size;
    output[output_size] = '\0';
}

static void start(uint32_t lines_max)
{
    const struct rt_supervisor_options root = {.name = "root", .owner = "test", .tasks_max = 1};
    const struct rt_log_options options = {.name = "log",
                                           .owner = "test",
                                           .lines_max = lines_max,
                                           .readable = true,
                                           .level_min = RT_LOG_INFO,
                                           .sink = sink,
                                           .sink_context = output};

    rt_init();
    rt_atomic_store_u32(&gate, 1);
    rt_atomic_store_u32(&held, 0);
    output_size = 0;
    output[0] = '\0';
    assert_ok(rt_supervisor_new(&root, &supervisor, NULL));
    assert_ok(rt_log_new(&options, supervisor, &log_object, NULL));
}

static void finish(void) RON_BLOCKS
{
    assert_ok(rt_supervisor_stop(supervisor, rt_deadline_after_ms(20000), NULL));
    assert_null(rt_log_free(log_object));
    rt_supervisor_free(supervisor);
    assert_int_equal(ron_mem_live_count(), 0);
}

static unsigned count_lines(void)
{
    unsigned count = 0;

    for (size_t i = 0; i < output_size; i++)
        count += output[i] == '\n' ? 1 : 0;
    return count;
}

static void log_keeps_order_and_level(void **state) RON_BLOCKS
{
    const char *at = output;
    char expected[32];

    (void)state;
    start(512);
    for (unsigned i = 0; i < 100; i++) {
        rt_log(log_object, RT_LOG_DEBUG, "too quiet");
        rt_log(log_object, RT_LOG_INFO, "counting", rt_u64("i", i), rt_bool("ok", true));
    }
    assert_ok(rt_log_flush(log_object, rt_deadline_after_ms(20000), NULL));
    for (unsigned i = 0; i < 100; i++) {
        (void)snprintf(expected, sizeof(expected), "counting i=%u ok=true\n", i);
        at = strstr(at, expected);
        assert_non_null(at);
    }
    assert_int_equal(count_lines(), 100);
    rt_log_set_level(log_object, RT_LOG_ERROR);
    assert_false(rt_log_enabled(log_object, RT_LOG_WARN));
    rt_log(log_object, RT_LOG_WARN, "not any more");
    rt_log(log_object, RT_LOG_ERROR, "the end");
    finish(); /* writes what is left */
    assert_int_equal(count_lines(), 101);
    assert_non_null(strstr(output, "error test: the end\n"));
}

static void full_log_drops_and_says_so(void **state) RON_BLOCKS
{
    (void)state;
    start(4);
    rt_atomic_store_u32(&gate, 0);
    rt_log(log_object, RT_LOG_INFO, "first");
    while (rt_atomic_load_u32(&held) == 0)
        sh_sleep_until(rt_now_ns() + 100000);
    for (unsigned i = 0; i < 7; i++) /* never waits, though the sink does */
        rt_log(log_object, RT_LOG_INFO, "more");
    assert_int_equal(rt_log_dropped_count(log_object), 3);
    assert_int_equal(rt_log_flush(log_object, rt_deadline_after_ms(2), NULL), RON_ERR_TIMEOUT);
    rt_atomic_store_u32(&gate, 1);
    assert_ok(rt_log_flush(log_object, rt_deadline_after_ms(20000), NULL));
    assert_int_equal(count_lines(), 6);
    assert_non_null(strstr(output, "first\n"));
    assert_non_null(strstr(output, "warn test/log: log lines were dropped lines=3\n"));
    rt_log(log_object, RT_LOG_INFO, "told once");
    finish();
    assert_int_equal(count_lines(), 7);
}

static void log_after_its_end_drops(void **state) RON_BLOCKS
{
    (void)state;
    start(4);
    assert_ok(rt_supervisor_stop(supervisor, rt_deadline_after_ms(20000), NULL));
    rt_log(log_object, RT_LOG_INFO, "too late");
    assert_int_equal(rt_log_dropped_count(log_object), 1);
    assert_ok(
        rt_log_flush(log_object, rt_deadline_after_ms(20000), NULL)); /* nothing to wait for */
    finish();
    assert_int_equal(output_size, 0);
}

static enum ron_err make_once(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct rt_supervisor_options root = {.name = "root", .owner = "test", .tasks_max = 1};
    const struct rt_log_options options = {
        .name = "log", .owner = "test", .lines_max = 4, .sink = sink, .sink_context = output};
    struct rt_supervisor *own_root = NULL;
    struct rt_log *own = NULL;
    enum ron_err err = rt_supervisor_new(&root, &own_root, reterr);

    (void)context;
    if (err != RON_ERR_OK)
        return err;
    err = rt_log_new(&options, own_root, &own, reterr);
    assert_ok(rt_supervisor_stop(own_root, RT_DEADLINE_NEVER, NULL));
    rt_log_free(own);
    rt_supervisor_free(own_root);
    return err;
}

static void log_survives_each_failed_allocation(void **state)
{
    (void)state;
    rt_init();
    assert_int_equal(support_fail_each_allocation(make_once, NULL, 9), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(line_is_json_or_readable),
        cmocka_unit_test(line_has_the_right_date),
        cmocka_unit_test(line_tames_hostile_text),
        cmocka_unit_test(line_leaves_out_what_does_not_fit),
        cmocka_unit_test(log_keeps_order_and_level),
        cmocka_unit_test(full_log_drops_and_says_so),
        cmocka_unit_test(log_after_its_end_drops),
        cmocka_unit_test(log_survives_each_failed_allocation),
    };
    return cmocka_run_group_tests_name("rt_log", tests, NULL, NULL);
}
