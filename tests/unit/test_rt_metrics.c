/*
 * test_rt_metrics.c - metrics, their text, and slots of threads. Method: golden text for each type
 * and escape; sums over threads with and without slots.
 */
#include "support.h"

#include "rt/clock.h"
#include "rt/metrics.h"
#include "rt/registry.h"
#include "rt/scaled.h"

static const uint64_t latency_buckets[] = {1000000, 80000000, 1500000000};

enum { PLAIN, LABELLED, LEVEL, LATENCY, SIZES, METRICS_COUNT };
static const struct rt_metric table[METRICS_COUNT] = {
    [PLAIN] = {.name = "plain_total", .help = "No labels.", .series_max = 1},
    [LABELLED] = {.name = "labelled_total",
                  .help = "A \\ and a\nline.",
                  .series_max = 3,
                  .labels = {"role", "queue"}},
    [LEVEL] = {.name = "level",
               .help = "Goes up and down, in \"thousandths\".",
               .type = RT_METRIC_GAUGE,
               .scale = 3,
               .series_max = 2,
               .labels = {"role"}},
    [LATENCY] = {.name = "latency_seconds",
                 .help = "A histogram.",
                 .type = RT_METRIC_HISTOGRAM,
                 .scale = 9,
                 .series_max = 2,
                 .labels = {"op"},
                 .buckets = latency_buckets,
                 .buckets_count = RON_ARRAY_COUNT(latency_buckets)},
    [SIZES] = {.name = "batch_size",
               .help = "A histogram without labels.",
               .type = RT_METRIC_HISTOGRAM,
               .series_max = 1,
               .buckets = (const uint64_t[]){1, 64},
               .buckets_count = 2},
};

static struct rt_metrics *make_metrics(void)
{
    const struct rt_metric_table tables[] = {{table, METRICS_COUNT}};
    struct rt_metrics *metrics = NULL;

    assert_ok(rt_metrics_new(tables, 1, &metrics, NULL));
    return metrics;
}

static void assert_text(struct rt_metrics *metrics, const char *expected)
{
    struct ron_buf buf;

    ron_buf_init(&buf, 1 << 16);
    assert_ok(rt_metrics_write(metrics, &buf, NULL));
    ron_buf_put_byte(&buf, 0);
    assert_string_equal((const char *)buf.data, expected);
    ron_buf_fini(&buf);
}

static bool has_text(struct rt_metrics *metrics, const char *piece)
{
    struct ron_buf buf;
    bool found;

    ron_buf_init(&buf, 1 << 16);
    assert_ok(rt_metrics_write(metrics, &buf, NULL));
    ron_buf_put_byte(&buf, 0);
    found = strstr((const char *)buf.data, piece) != NULL;
    ron_buf_fini(&buf);
    return found;
}

static void text_of_every_type_is_golden(void **state)
{
    struct rt_metrics *metrics = make_metrics();
    struct rt_histogram latency, sizes;

    (void)state;
    rt_metric_add(rt_metrics_counter(metrics, &table[PLAIN], NULL), 7);
    rt_metric_add(
        rt_metrics_counter(metrics, &table[LABELLED], (const char *[]){"ledger", "a\"b\\c\nd"}), 2);
    (void)rt_metrics_counter(metrics, &table[LABELLED], (const char *[]){"", NULL});
    rt_metric_set(rt_metrics_gauge(metrics, &table[LEVEL], (const char *[]){"x"}), -1500);
    rt_metric_change(rt_metrics_gauge(metrics, &table[LEVEL], (const char *[]){"x"}), 250);
    latency = rt_metrics_histogram(metrics, &table[LATENCY], (const char *[]){"sync"});
    rt_metric_observe(&latency, 1000000); /* on the bound: inside */
    rt_metric_observe(&latency, 1000001);
    rt_metric_observe(&latency, 1500000001);
    sizes = rt_metrics_histogram(metrics, &table[SIZES], NULL);
    rt_metric_observe(&sizes, 0);
    rt_metric_observe(&sizes, 64);
    assert_text(metrics, "# HELP plain_total No labels.\n"
                         "# TYPE plain_total counter\n"
                         "plain_total 7\n"
                         "# HELP labelled_total A \\\\ and a\\nline.\n"
                         "# TYPE labelled_total counter\n"
                         "labelled_total{role=\"ledger\",queue=\"a\\\"b\\\\c\\nd\"} 2\n"
                         "labelled_total{role=\"\",queue=\"\"} 0\n"
                         "# HELP level Goes up and down, in \"thousandths\".\n"
                         "# TYPE level gauge\n"
                         "level{role=\"x\"} -1.25\n"
                         "# HELP latency_seconds A histogram.\n"
                         "# TYPE latency_seconds histogram\n"
                         "latency_seconds_bucket{op=\"sync\",le=\"0.001\"} 1\n"
                         "latency_seconds_bucket{op=\"sync\",le=\"0.08\"} 2\n"
                         "latency_seconds_bucket{op=\"sync\",le=\"1.5\"} 2\n"
                         "latency_seconds_bucket{op=\"sync\",le=\"+Inf\"} 3\n"
                         "latency_seconds_sum{op=\"sync\"} 1.502000002\n"
                         "latency_seconds_count{op=\"sync\"} 3\n"
                         "# HELP batch_size A histogram without labels.\n"
                         "# TYPE batch_size histogram\n"
                         "batch_size_bucket{le=\"1\"} 1\n"
                         "batch_size_bucket{le=\"64\"} 2\n"
                         "batch_size_bucket{le=\"+Inf\"} 2\n"
                         "batch_size_sum 64\n"
                         "batch_size_count 2\n");
    assert_null(rt_metrics_free(metrics));
    assert_null(rt_metrics_free(NULL));
}

static void scaled_numbers_are_exact(void **state)
{
    static const struct {
        uint64_t value;
        unsigned scale;
        const char *text;
    } cases[] = {
        {0, 0, "0"},
        {0, 9, "0"},
        {1, 9, "0.000000001"},
        {10, 1, "1"},
        {100, 0, "100"},
        {123, 2, "1.23"},
        {120, 2, "1.2"},
        {UINT64_MAX, 0, "18446744073709551615"},
        {UINT64_MAX, 9, "18446744073.709551615"},
        {UINT64_MAX, 18, "18.446744073709551615"},
        {7, 18, "0.000000000000000007"},
    };
    char text[RT_SCALED_SIZE];

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(cases); i++) {
        assert_int_equal(rt_scaled_print(cases[i].value, cases[i].scale, text),
                         strlen(cases[i].text));
        assert_string_equal(text, cases[i].text);
    }
}

static void series_beyond_the_maximum_are_other(void **state)
{
    struct rt_metrics *metrics = make_metrics();
    struct rt_counter first, again, fourth, fifth;

    (void)state;
    first = rt_metrics_counter(metrics, &table[LABELLED], (const char *[]){"r", "0"});
    (void)rt_metrics_counter(metrics, &table[LABELLED], (const char *[]){"r", "1"});
    (void)rt_metrics_counter(metrics, &table[LABELLED], (const char *[]){"r", "2"});
    fourth = rt_metrics_counter(metrics, &table[LABELLED], (const char *[]){"r", "3"});
    assert_false(has_text(metrics, "queue=\"3\""));
    fifth = rt_metrics_counter(metrics, &table[LABELLED], (const char *[]){"r", "4"});
    again = rt_metrics_counter(metrics, &table[LABELLED], (const char *[]){"r", "0"});
    assert_ptr_equal(first.cells, again.cells);
    assert_ptr_equal(fourth.cells, fifth.cells);
    rt_metric_add(fourth, 1);
    rt_metric_add(fifth, 1);
    rt_metric_add(first, 5);
    assert_text(metrics, "# HELP plain_total No labels.\n"
                         "# TYPE plain_total counter\n"
                         "plain_total 0\n"
                         "# HELP labelled_total A \\\\ and a\\nline.\n"
                         "# TYPE labelled_total counter\n"
                         "labelled_total{role=\"r\",queue=\"0\"} 5\n"
                         "labelled_total{role=\"r\",queue=\"1\"} 0\n"
                         "labelled_total{role=\"r\",queue=\"2\"} 0\n"
                         "labelled_total{role=\"other\",queue=\"other\"} 2\n"
                         "# HELP level Goes up and down, in \"thousandths\".\n"
                         "# TYPE level gauge\n"
                         "# HELP latency_seconds A histogram.\n"
                         "# TYPE latency_seconds histogram\n"
                         "# HELP batch_size A histogram without labels.\n"
                         "# TYPE batch_size histogram\n"
                         "batch_size_bucket{le=\"1\"} 0\n"
                         "batch_size_bucket{le=\"64\"} 0\n"
                         "batch_size_bucket{le=\"+Inf\"} 0\n"
                         "batch_size_sum 0\n"
                         "batch_size_count 0\n");
    rt_metrics_free(metrics);
}

static void label_values_are_cut_and_made_utf8(void **state)
{
    struct rt_metrics *metrics = make_metrics();
    char longest[RT_METRIC_VALUE_SIZE + 8], same[RT_METRIC_VALUE_SIZE + 1];
    struct rt_counter a, b, c, d;

    (void)state;
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    memset(same, 'x', sizeof(same));
    same[RT_METRIC_VALUE_SIZE - 1] = '\0';
    a = rt_metrics_counter(metrics, &table[LABELLED], (const char *[]){"r", longest});
    b = rt_metrics_counter(metrics, &table[LABELLED], (const char *[]){"r", same});
    assert_ptr_equal(a.cells, b.cells);
    c = rt_metrics_counter(metrics, &table[LABELLED], (const char *[]){"r", "\xff\xc3\xa4\xc3"});
    d = rt_metrics_counter(metrics, &table[LABELLED], (const char *[]){"r", "?\xc3\xa4?"});
    assert_ptr_equal(c.cells, d.cells);
    rt_metrics_free(metrics);
}

struct adder {
    struct rt_counter counter;
    struct rt_histogram histogram;
    struct rt_gauge gauge;
    bool release;
    unsigned slot;
};

enum { ADDS_COUNT = 1000 };

static void add_many(void *context)
{
    struct adder *adder = context;

    for (unsigned i = 0; i < ADDS_COUNT; i++) {
        rt_metric_add(adder->counter, 3);
        rt_metric_observe(&adder->histogram, i & 127);
        rt_metric_change(adder->gauge, 2);
        rt_metric_change(adder->gauge, -1);
    }
    adder->slot = sh_local()->slot;
    if (adder->release)
        rt_slot_release();
}

static void run_adders(struct adder *adders, size_t count)
{
    struct sh_thread *threads[RT_SLOTS_MAX + 8];

    assert_true(count <= RON_ARRAY_COUNT(threads));
    for (size_t i = 0; i < count; i++)
        assert_ok(sh_spawn("adder", add_many, &adders[i], &threads[i], NULL));
    for (size_t i = 0; i < count; i++)
        assert_true(sh_join(threads[i], SH_NEVER));
}

static void sums_are_exact_with_and_without_slots(void **state)
{
    struct rt_metrics *metrics = make_metrics();
    struct adder adders[RT_SLOTS_MAX + 8];
    const size_t count = RON_ARRAY_COUNT(adders);
    size_t without_count = 0;
    struct rt_counter sum;

    (void)state;
    rt_init();
    for (size_t i = 0; i < count; i++)
        adders[i] = (struct adder){
            .counter = rt_metrics_counter(metrics, &table[PLAIN], NULL),
            .histogram = rt_metrics_histogram(metrics, &table[SIZES], NULL),
            .gauge = rt_metrics_gauge(metrics, &table[LEVEL], (const char *[]){"r"}),
        };
    run_adders(adders, count);
    for (size_t i = 0; i < count; i++)
        without_count += adders[i].slot == 0;
    assert_int_equal(without_count, 8); /* nobody gave one back */
    assert_int_equal(rt_metric_sum(adders[0].counter), 3 * ADDS_COUNT * count);
    assert_int_equal(rt_metric_level(adders[0].gauge), ADDS_COUNT * count);
    sum = adders[0].histogram.counts;
    assert_int_equal(rt_metric_sum(sum), 16 * count); /* zeros and ones */
    sum.cells += 3;
    assert_int_equal(rt_metric_sum(sum), count * (7 * 127 * 64 + 103 * 104 / 2));
    rt_metrics_free(metrics);
    rt_init();
}

static void slots_are_used_again(void **state)
{
    struct rt_metrics *metrics = make_metrics();
    struct adder adders[2];

    (void)state;
    rt_init();
    for (unsigned run = 0; run < 2; run++) {
        for (size_t i = 0; i < 2; i++)
            adders[i] = (struct adder){
                .counter = rt_metrics_counter(metrics, &table[PLAIN], NULL),
                .histogram = rt_metrics_histogram(metrics, &table[SIZES], NULL),
                .gauge = rt_metrics_gauge(metrics, &table[LEVEL], (const char *[]){"r"}),
                .release = true,
            };
        run_adders(adders, 2);
        assert_true(adders[0].slot >= 1 && adders[0].slot <= 2);
        assert_true(adders[1].slot >= 1 && adders[1].slot <= 2);
    }
    assert_int_equal(rt_metric_sum(adders[0].counter), 4 * 3 * ADDS_COUNT);
    rt_slot_release(); /* without one: nothing happens */
    assert_int_equal(rt_slot(), 1);
    rt_slot_release();
    rt_metrics_free(metrics);
}

static void bad_descriptions_are_bugs(void **state)
{
    static const uint64_t level_buckets[] = {2, 2};
    static const struct {
        struct rt_metric metric;
        const char *text;
    } cases[] = {
        {{.name = "0x", .help = "", .series_max = 1}, "is_name"},
        {{.name = "a-b", .help = "", .series_max = 1}, "is_name"},
        {{.name = "a", .help = "", .series_max = 0}, "series_max"},
        {{.name = "a", .help = "", .series_max = 1, .labels = {"le"}}, "le"},
        {{.name = "a", .help = "", .series_max = 1, .labels = {"x:y"}}, "is_name"},
        {{.name = "a", .help = "", .series_max = 1, .labels = {"__x"}}, "__"},
        {{.name = "a", .help = "", .series_max = 1, .labels = {"x", "x"}}, "strcmp"},
        {{.name = "a", .help = "", .series_max = 1, .type = RT_METRIC_HISTOGRAM}, "HISTOGRAM"},
        {{.name = "a",
          .help = "",
          .series_max = 1,
          .type = RT_METRIC_HISTOGRAM,
          .buckets = level_buckets,
          .buckets_count = 2},
         "buckets"},
    };
    const struct rt_metric_table twice[] = {{table, METRICS_COUNT}, {table, METRICS_COUNT}};
    struct rt_metrics *metrics = make_metrics();
    struct rt_metrics *other = NULL;

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(cases); i++) {
        const struct rt_metric_table bad = {&cases[i].metric, 1};
        assert_dies((void)!rt_metrics_new(&bad, 1, &other, NULL), cases[i].text);
    }
    assert_dies((void)!rt_metrics_new(twice, 2, &other, NULL), "strcmp");
    assert_dies((void)rt_metrics_gauge(metrics, &table[PLAIN], NULL), "type");
    assert_dies((void)rt_metrics_counter(metrics, &cases[0].metric, NULL), "families_count");
    rt_metrics_free(metrics);
}

static enum ron_err attempt_new(void *context, struct ron_errinfo *reterr)
{
    const struct rt_metric_table tables[] = {{table, METRICS_COUNT}};
    struct rt_metrics *metrics = NULL;
    enum ron_err err = rt_metrics_new(tables, 1, &metrics, reterr);

    (void)context;
    rt_metrics_free(metrics);
    return err;
}

static void new_survives_failed_allocations(void **state)
{
    (void)state;
    assert_int_equal(support_fail_each_allocation(attempt_new, NULL, 20), 6);
}

static void text_stops_at_the_buffer_maximum(void **state)
{
    struct rt_metrics *metrics = make_metrics();
    struct ron_buf buf;

    (void)state;
    ron_buf_init(&buf, 64);
    assert_int_equal(rt_metrics_write(metrics, &buf, NULL), RON_ERR_TOO_LARGE);
    ron_buf_fini(&buf);
    rt_metrics_free(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_of_every_type_is_golden),
        cmocka_unit_test(scaled_numbers_are_exact),
        cmocka_unit_test(series_beyond_the_maximum_are_other),
        cmocka_unit_test(label_values_are_cut_and_made_utf8),
        cmocka_unit_test(sums_are_exact_with_and_without_slots),
        cmocka_unit_test(slots_are_used_again),
        cmocka_unit_test(bad_descriptions_are_bugs),
        cmocka_unit_test(new_survives_failed_allocations),
        cmocka_unit_test(text_stops_at_the_buffer_maximum),
    };
    rt_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
