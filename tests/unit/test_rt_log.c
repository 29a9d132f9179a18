/*
 * test_rt_log.c - the log on real threads. Method: golden lines of both forms with every field type
 * and nasty texts; every cut from a full line downward is still one JSON object; an output that
 * blocks or fails on demand shows drops, their report, flush and stop; limits of call sites.
 */
#include "support.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/json.h"
#include "rt/export.h"
#include "rt/local.h"
#include "rt/lock.h"
#include "rt/log.h"
#include "rt/log_fd.h"
#include "rt/log_line.h"
#include "rt/registry.h"

/* An output under the test's control. */
struct output {
    struct sh_mutex mutex;
    struct sh_cond cond;
    bool blocked, entered, failing;
    size_t writes_count;
    struct ron_buf buf;
};

static enum ron_err output_write(void *context, struct ron_slice lines, struct ron_errinfo *reterr)
{
    struct output *output = context;
    enum ron_err err = RON_ERR_OK;

    sh_mutex_lock(&output->mutex);
    output->entered = true;
    output->writes_count++;
    sh_cond_broadcast(&output->cond);
    while (output->blocked)
        (void)sh_cond_wait(&output->cond, &output->mutex, SH_NEVER);
    if (output->failing)
        err = ron_fail(reterr, RON_ERR_IO, "no output");
    else
        ron_buf_put(&output->buf, lines.data, lines.size);
    sh_mutex_unlock(&output->mutex);
    return err;
}

static void output_set(struct output *output, bool blocked, bool failing)
{
    sh_mutex_lock(&output->mutex);
    output->blocked = blocked;
    output->failing = failing;
    output->entered = false;
    sh_cond_broadcast(&output->cond);
    sh_mutex_unlock(&output->mutex);
}

static void output_wait_entered(struct output *output)
{
    sh_mutex_lock(&output->mutex);
    while (!output->entered)
        (void)sh_cond_wait(&output->cond, &output->mutex, SH_NEVER);
    sh_mutex_unlock(&output->mutex);
}

static struct rt_log *make_log(struct output *output, enum rt_log_form form)
{
    const struct rt_log_options options = {
        .level = RT_LOG_INFO,
        .form = form,
        .service = "ledger",
        .ring_size = 4 * RT_LOG_LINE_SIZE_MAX,
        .write = output_write,
        .write_context = output,
    };
    struct rt_log *log = NULL;

    *output = (struct output){0};
    sh_mutex_init(&output->mutex, "output");
    sh_cond_init(&output->cond, "output");
    ron_buf_init(&output->buf, 1 << 20);
    assert_ok(rt_log_new(&options, &log, NULL));
    return log;
}

static void end_log(struct rt_log *log, struct output *output) RON_BLOCKS
{
    assert_ok(rt_log_stop(log, RT_DEADLINE_NEVER, NULL));
    assert_ok(rt_log_stop(log, RT_DEADLINE_NEVER, NULL)); /* again: nothing happens */
    assert_null(rt_log_free(log));
    ron_buf_fini(&output->buf);
    sh_cond_fini(&output->cond);
    sh_mutex_fini(&output->mutex);
}

/* The output so far, terminated. */
static const char *output_text(struct output *output)
{
    ron_buf_put_byte(&output->buf, 0);
    assert_ok(ron_buf_check(&output->buf, NULL));
    output->buf.size--;
    return (const char *)output->buf.data;
}

static size_t count_of(const char *text, const char *piece)
{
    size_t count = 0;

    for (text = strstr(text, piece); text != NULL; text = strstr(text + 1, piece))
        count++;
    return count;
}

static const struct log_head head = {
    .utc_ms = UINT64_C(1769903999999), /* 2026-01-31T23:59:59.999Z */
    .level = RT_LOG_WARN,
    .service = "ron",
    .task = "committer",
    .message = "it \"broke\"",
    .file = "src/x.c",
    .line = 12,
};

static void make_line(struct log_line *line, enum rt_log_form form)
{
    const struct ron_errinfo info = {.err = RON_ERR_BUSY,
                                     .sys_errno = 11,
                                     .file = "src/y.c",
                                     .line = 7,
                                     .message = "queue full"};
    const struct rt_log_field fields[] = {
        rt_log_text("peer", "two words"),
        rt_log_text("plain", "word"),
        rt_log_text("empty", ""),
        rt_log_u64("max", UINT64_MAX),
        rt_log_i64("min", INT64_MIN),
        rt_log_i64("plus", 5),
        rt_log_bool("yes", true),
        rt_log_bool("no", false),
        rt_log_duration("took", 12345678),
        rt_log_err(RON_ERR_TIMEOUT),
        rt_log_info(&info),
    };

    log_line_begin(line, form, &head);
    for (size_t i = 0; i < RON_ARRAY_COUNT(fields); i++)
        log_line_put(line, &fields[i]);
    log_line_end(line);
}

static void assert_line(const struct log_line *line, const char *expected)
{
    assert_int_equal(line->size, strlen(expected));
    assert_memory_equal(line->text, expected, line->size);
}

static void lines_of_both_forms_are_golden(void **state)
{
    struct log_line line;

    (void)state;
    make_line(&line, RT_LOG_JSON);
    assert_line(&line, "{\"ts\":\"2026-01-31T23:59:59.999Z\",\"level\":\"warn\",\"service\":"
                       "\"ron\",\"task\":\"committer\","
                       "\"msg\":\"it \\\"broke\\\"\",\"src\":\"src/x.c:12\",\"peer\":\"two words\","
                       "\"plain\":\"word\",\"empty\":\"\",\"max\":18446744073709551615,"
                       "\"min\":-9223372036854775808,\"plus\":5,\"yes\":true,\"no\":false,"
                       "\"took_s\":0.012345678,\"error\":\"Timeout\",\"error\":\"Busy\","
                       "\"error_text\":\"queue full\",\"error_at\":\"src/y.c:7\",\"errno\":11}\n");
    make_line(&line, RT_LOG_TEXT);
    assert_line(&line, "2026-01-31 23:59:59.999 WARN  committer      it \\\"broke\\\" "
                       "peer=\"two words\" plain=word empty=\"\" max=18446744073709551615 "
                       "min=-9223372036854775808 plus=5 yes=true no=false took=12.345678ms "
                       "error=Timeout error=Busy error_text=\"queue full\" error_at=src/y.c:7 "
                       "errno=11\n");
}

static void durations_have_fitting_units(void **state)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } cases[] = {{0, " d=0ns\n"},
                 {999, " d=999ns\n"},
                 {1000, " d=1us\n"},
                 {1500000, " d=1.5ms\n"},
                 {UINT64_C(90000000000), " d=90s\n"}};
    struct log_line line;

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(cases); i++) {
        log_line_begin(&line, RT_LOG_TEXT, &head);
        log_line_put(&line, &(const struct rt_log_field){
                                .key = "d", .type = RT_LOG_TYPE_DURATION, .u64 = cases[i].ns});
        log_line_end(&line);
        assert_memory_equal(line.text + line.size - strlen(cases[i].text), cases[i].text,
                            strlen(cases[i].text));
    }
}

/* Control characters, bytes that are no UTF-8, C1 controls: nothing reaches a terminal raw. */
static void texts_cannot_break_a_line(void **state)
{
    static const char nasty[] =
        "a\x1b[2J\n\r\t\x7f\"\\ \xc3\xa4 \xc2\x9b \xff \xe2\x82 \xf0\x9f\x98\x80";
    static const char escaped[] =
        "\"a\\u001b[2J\\n\\r\\t\\u007f\\\"\\\\ \xc3\xa4 \\u009b \\ufffd \\ufffd\\ufffd "
        "\xf0\x9f\x98\x80\"";
    const struct rt_log_field field = rt_log_text("t", nasty);

    (void)state;
    for (int form = RT_LOG_JSON; form <= RT_LOG_TEXT; form++) {
        struct log_line line;

        log_line_begin(&line, (enum rt_log_form)form, &head);
        log_line_put(&line, &field);
        log_line_end(&line);
        line.text[line.size - 1] = '\0';
        assert_non_null(strstr(line.text, escaped));
    }
}

/* Exactly one JSON object of strings, numbers and booleans: read with ron's strict reader, numbers
 * with a fraction aside (it refuses floats, and the lines below have none). */
static void assert_json_object(const struct log_line *line)
{
    struct ron_json_reader reader;
    struct ron_json_token token;
    struct ron_arena arena;
    struct ron_errinfo info;
    size_t tokens_count = 0;

    assert_ok(ron_arena_init(&arena, 4 * RT_LOG_LINE_SIZE_MAX, NULL));
    ron_json_reader_init(&reader, ron_slice_of(line->text, line->size), &arena);
    do {
        if (ron_json_next(&reader, &token, &info) != RON_ERR_OK)
            fail_msg("%s in %.*s", info.message, (int)line->size, line->text);
        tokens_count++;
    } while (token.kind != RON_JSON_END);
    assert_true(tokens_count > 8);
    ron_arena_fini(&arena);
}

static void cut_lines_stay_json_and_utf8(void **state)
{
    char filler[RT_LOG_LINE_SIZE_MAX];
    size_t cut_count = 0, whole_count = 0;

    (void)state;
    memset(filler, 'x', sizeof(filler));
    for (size_t size = RT_LOG_LINE_SIZE_MAX - 300; size < RT_LOG_LINE_SIZE_MAX; size++) {
        const struct rt_log_field fields[] = {
            rt_log_slice("filler", ron_slice_of(filler, size)),
            rt_log_text("text", "\xc3\xa4\"\n\xf0\x9f\x98\x80\xff"),
            rt_log_u64("number", 1234567),
            rt_log_bool("flag", true),
        };
        struct log_line line;

        log_line_begin(&line, RT_LOG_JSON, &head);
        for (size_t i = 0; i < RON_ARRAY_COUNT(fields); i++)
            log_line_put(&line, &fields[i]);
        log_line_end(&line);
        assert_true(line.size <= RT_LOG_LINE_SIZE_MAX);
        assert_int_equal(line.text[line.size - 1], '\n');
        assert_json_object(&line);
        line.text[line.size - 1] = '\0';
        assert_int_equal(line.cut, strstr(line.text, ",\"cut\":true}") != NULL);
        cut_count += line.cut;
        whole_count += !line.cut;
    }
    assert_true(cut_count > 50);
    assert_true(whole_count > 50);
}

static void text_lines_are_marked_when_cut(void **state)
{
    char filler[2 * RT_LOG_LINE_SIZE_MAX];
    const struct rt_log_field fields[] = {rt_log_slice("f", ron_slice_of(filler, sizeof(filler))),
                                          rt_log_u64("n", 1)};
    struct log_line line;

    (void)state;
    memset(filler, 'x', sizeof(filler));
    log_line_begin(&line, RT_LOG_TEXT, &head);
    log_line_put(&line, &fields[0]);
    log_line_put(&line, &fields[1]);
    log_line_end(&line);
    assert_true(line.size <= RT_LOG_LINE_SIZE_MAX);
    assert_memory_equal(line.text + line.size - 8, "x [cut]\n", 8);
}

static void lines_reach_the_output_in_order(void **state) RON_BLOCKS
{
    struct output output;
    struct rt_log *log = make_log(&output, RT_LOG_JSON);
    const char *first, *second;

    (void)state;
    rt_log(log, RT_LOG_DEBUG, "too low");
    rt_log(log, RT_LOG_INFO, "first", rt_log_u64("n", 1));
    rt_log(log, RT_LOG_ERROR, "second");
    rt_log(NULL, RT_LOG_ERROR, "no log");
    assert_ok(rt_log_flush(log, RT_DEADLINE_NEVER, NULL));
    first = strstr(output_text(&output), "\"msg\":\"first\"");
    second = strstr(output_text(&output), "\"msg\":\"second\"");
    assert_non_null(first);
    assert_non_null(second);
    assert_true(first < second);
    assert_non_null(strstr(first, "\"src\":\"tests/unit/test_rt_log.c:"));
    assert_non_null(strstr(first, ",\"n\":1}\n{\"ts\":\"20"));
    assert_int_equal(count_of(output_text(&output), "\n"), 2);
    assert_int_equal(count_of(output_text(&output), ",\"service\":\"ledger\","), 2);
    rt_log_set_level(log, RT_LOG_DEBUG);
    rt_log(log, RT_LOG_DEBUG, "low");
    rt_log_set_level(log, RT_LOG_OFF);
    rt_log(log, RT_LOG_ERROR, "off");
    assert_ok(rt_log_flush(log, RT_DEADLINE_NEVER, NULL));
    assert_int_equal(count_of(output_text(&output), "\n"), 3);
    end_log(log, &output);
}

/* More lines a second than one call site may log: through many sites. */
static void log_filler(struct rt_log *log, unsigned count)
{
    static struct rt_log_site sites[64];
    char text[900];
    const struct rt_log_field fields[] = {rt_log_slice("text", ron_slice_of(text, sizeof(text)))};

    memset(text, 'x', sizeof(text));
    assert_true(count <= RON_ARRAY_COUNT(sites));
    for (unsigned i = 0; i < count; i++) {
        sites[i] = (struct rt_log_site){"f.c", 1, RT_LOG_INFO, "filler", 0, 0};
        rt_log_at(log, &sites[i], fields, 1);
    }
}

static void full_ring_drops_and_tells(void **state) RON_BLOCKS
{
    struct output output;
    struct rt_log *log = make_log(&output, RT_LOG_JSON);
    struct ron_errinfo info = {0};
    struct rt_log_stats stats;

    (void)state;
    output_set(&output, true, false);
    log_filler(log, 1);
    assert_int_equal(rt_log_flush(log, rt_deadline_after_ms(20), &info), RON_ERR_TIMEOUT);
    output_wait_entered(&output);
    log_filler(log, 6); /* four of about 1000 bytes fit 4096 */
    rt_log_get_stats(log, &stats);
    assert_int_equal(stats.accepted_count, 5);
    assert_int_equal(stats.dropped_count, 2);
    support_assert_error(rt_log_flush(log, rt_deadline_after_ms(5), &info), &info, RON_ERR_TIMEOUT,
                         "not written");
    support_assert_error(rt_log_stop(log, rt_deadline_after_ms(5), &info), &info, RON_ERR_TIMEOUT,
                         "stuck");
    log_filler(log, 1); /* closed: dropped */
    output_set(&output, false, false);
    assert_ok(rt_log_stop(log, RT_DEADLINE_NEVER, NULL));
    assert_int_equal(count_of(output_text(&output), "\"msg\":\"filler\""), 5);
    assert_int_equal(count_of(output_text(&output), "\"msg\":\"log lines were dropped\""), 1);
    assert_non_null(strstr(output_text(&output), "\"count\":3}\n"));
    end_log(log, &output);
}

static void failing_output_loses_and_tells_later(void **state) RON_BLOCKS
{
    struct output output;
    struct rt_log *log = make_log(&output, RT_LOG_JSON);
    struct rt_log_stats stats;
    size_t writes_count;

    (void)state;
    output_set(&output, false, true);
    log_filler(log, 2);
    assert_ok(rt_log_flush(log, RT_DEADLINE_NEVER, NULL)); /* lost is done */
    rt_log_get_stats(log, &stats);
    assert_int_equal(stats.dropped_count, 2);
    writes_count = output.writes_count;
    sh_sleep_until(rt_deadline_after_ms(20).at_ns);
    assert_int_equal(output.writes_count, writes_count); /* it does not try again by itself */
    output_set(&output, false, false);
    log_filler(log, 1);
    assert_ok(rt_log_flush(log, RT_DEADLINE_NEVER, NULL));
    assert_int_equal(count_of(output_text(&output), "\n"), 2);
    assert_non_null(strstr(output_text(&output), "\"count\":2}\n"));
    end_log(log, &output);
}

static void log_often(struct rt_log *log, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        rt_log(log, RT_LOG_WARN, "again", rt_log_u64("i", i));
}

static void call_sites_are_limited(void **state) RON_BLOCKS
{
    struct output output;
    struct rt_log *log = make_log(&output, RT_LOG_JSON);
    struct rt_log_stats stats;
    uint64_t second;

    (void)state;
    do { /* within one second of the clock */
        second = rt_now_ns() / RT_NS_PER_S;
        sh_sleep_until((second + 1) * RT_NS_PER_S);
        second++;
        log_often(log, RT_LOG_SITE_LINES_PER_S + 7);
    } while (rt_now_ns() / RT_NS_PER_S != second);
    rt_log(log, RT_LOG_WARN, "another site");
    assert_ok(rt_log_flush(log, RT_DEADLINE_NEVER, NULL));
    assert_int_equal(count_of(output_text(&output), "\"again\""), RT_LOG_SITE_LINES_PER_S);
    assert_int_equal(count_of(output_text(&output), "\"another site\""), 1);
    rt_log_get_stats(log, &stats);
    assert_int_equal(stats.suppressed_count, 7);
    assert_int_equal(stats.dropped_count, 0);
    sh_sleep_until((second + 1) * RT_NS_PER_S);
    log_often(log, 2);
    assert_ok(rt_log_flush(log, RT_DEADLINE_NEVER, NULL));
    assert_int_equal(count_of(output_text(&output), "\"suppressed\":7,\"i\":0}\n"), 1);
    assert_int_equal(count_of(output_text(&output), "suppressed"), 1);
    end_log(log, &output);
    log = make_log(&output, RT_LOG_JSON); /* another log starts with fresh limits */
    log_often(log, RT_LOG_SITE_LINES_PER_S);
    assert_ok(rt_log_flush(log, RT_DEADLINE_NEVER, NULL));
    assert_true(count_of(output_text(&output), "\"again\"") == RT_LOG_SITE_LINES_PER_S);
    end_log(log, &output);
}

static void log_in_thread(void *context)
{
    struct rt_log *log = context;

    sh_local()->name = "worker \"1\"";
    for (unsigned i = 0; i < 200; i++)
        rt_log(log, RT_LOG_INFO, "from a thread", rt_log_u64("i", i));
    for (unsigned i = 0; i < 200; i++)
        rt_log(log, RT_LOG_INFO, "from another place", rt_log_u64("i", i));
}

static void threads_log_at_once(void **state) RON_BLOCKS
{
    struct output output;
    struct rt_log *log = make_log(&output, RT_LOG_TEXT);
    struct sh_thread *threads[4];
    struct rt_log_stats stats;
    const char *text;

    (void)state;
    for (size_t i = 0; i < 4; i++)
        assert_ok(sh_spawn("logger", log_in_thread, log, &threads[i], NULL));
    for (size_t i = 0; i < 4; i++)
        assert_true(sh_join(threads[i], SH_NEVER));
    assert_ok(rt_log_stop(log, RT_DEADLINE_NEVER, NULL));
    rt_log_get_stats(log, &stats);
    assert_int_equal(stats.accepted_count + stats.dropped_count + stats.suppressed_count, 4 * 400);
    text = output_text(&output);
    assert_int_equal(count_of(text, "worker \\\"1\\\""), stats.accepted_count);
    assert_int_equal(count_of(text, "\n") - count_of(text, "were dropped"), stats.accepted_count);
    end_log(log, &output);
}

static void log_may_be_used_under_a_lock(void **state) RON_BLOCKS
{
    struct output output;
    struct rt_log *log = make_log(&output, RT_LOG_JSON);
    struct rt_lock lock;

    (void)state;
    rt_lock_init(&lock, "metrics", RON_RANK_metrics);
    rt_lock_take(&lock);
    rt_log(log, RT_LOG_INFO, "under a lock");
    rt_lock_drop(&lock);
    rt_lock_fini(&lock);
    end_log(log, &output);
}

static void figures_are_collected(void **state) RON_BLOCKS
{
    const struct rt_metric_table tables[] = {{rt_metric_table, RT_METRIC__COUNT}};
    struct output output;
    struct rt_exporter_options options = {.log = make_log(&output, RT_LOG_JSON)};
    struct rt_exporter *exporter = NULL;

    (void)state;
    assert_ok(rt_metrics_new(tables, 1, &options.metrics, NULL));
    assert_ok(rt_exporter_new(&options, &exporter, NULL));
    log_filler(options.log, 2);
    rt_exporter_collect(exporter);
    rt_exporter_collect(exporter);
    assert_int_equal(rt_metric_sum(rt_metrics_counter(options.metrics,
                                                      &rt_metric_table[RT_METRIC_LOG_LINES], NULL)),
                     2);
    rt_exporter_free(exporter);
    rt_metrics_free(options.metrics);
    end_log(options.log, &output);
}

static void descriptor_takes_lines(void **state)
{
    int ends[2];
    char text[16] = {0};
    int closed = -1;
    struct ron_errinfo info = {0};

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(rt_log_fd_form(ends[1]), RT_LOG_JSON);
    assert_ok(rt_log_fd_write(&ends[1], RON_SLICE("one\ntwo\n"), NULL));
    assert_int_equal(read(ends[0], text, sizeof(text)), 8);
    assert_string_equal(text, "one\ntwo\n");
    support_assert_error(rt_log_fd_write(&closed, RON_SLICE("x\n"), &info), &info, RON_ERR_IO,
                         "descriptor -1");
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
}

static enum ron_err attempt_new(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct rt_log_options options = {
        .ring_size = 4 * RT_LOG_LINE_SIZE_MAX, .write = output_write, .write_context = context};
    struct rt_log *log = NULL;
    enum ron_err err = rt_log_new(&options, &log, reterr);

    if (err == RON_ERR_OK)
        assert_ok(rt_log_stop(log, RT_DEADLINE_NEVER, NULL));
    rt_log_free(log);
    return err;
}

static void new_survives_failed_allocations(void **state)
{
    (void)state;
    assert_int_equal(support_fail_each_allocation(attempt_new, NULL, 20), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_both_forms_are_golden),
        cmocka_unit_test(durations_have_fitting_units),
        cmocka_unit_test(texts_cannot_break_a_line),
        cmocka_unit_test(cut_lines_stay_json_and_utf8),
        cmocka_unit_test(text_lines_are_marked_when_cut),
        cmocka_unit_test(lines_reach_the_output_in_order),
        cmocka_unit_test(full_ring_drops_and_tells),
        cmocka_unit_test(failing_output_loses_and_tells_later),
        cmocka_unit_test(call_sites_are_limited),
        cmocka_unit_test(threads_log_at_once),
        cmocka_unit_test(log_may_be_used_under_a_lock),
        cmocka_unit_test(figures_are_collected),
        cmocka_unit_test(descriptor_takes_lines),
        cmocka_unit_test(new_survives_failed_allocations),
    };
    rt_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
