/*
 * test_rt_span.c - which requests are traced, what a span holds, what a full queue drops.
 *
 * Method: traceparents good and bad by a table; sampling by ids whose low half is chosen; a queue
 * that nobody takes from until it is full.
 */
#include "support.h"

#include <stdio.h>

#include "rt/registry.h"
#include "rt/span.h"

#define GOOD "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static struct rt_spans *open_spans(uint32_t permille)
{
    struct rt_spans *spans;

    assert_ok(rt_spans_new("test", permille, &spans, NULL));
    return spans;
}

/* A traceparent whose id's low half is `low`. */
static struct ron_slice parent_of(uint64_t low)
{
    static char text[64];

    (void)snprintf(text, sizeof(text), "00-0af7651916cd43dd%016llx-b7ad6b7169203331-00",
                   (unsigned long long)low);
    return ron_slice_text(text);
}

static void off_is_off(void **state)
{
    struct rt_spans *spans = open_spans(0);
    struct rt_trace trace = {.on = true};

    (void)state;
    assert_false(rt_trace_start(NULL, ron_slice_text(GOOD), &trace));
    assert_false(trace.on);
    assert_false(rt_trace_start(spans, ron_slice_text(GOOD), &trace));
    assert_null(rt_span_begin(spans, &trace, "x"));
    rt_span_put_text(NULL, "a", "b");
    rt_span_put_number(NULL, "a", 1);
    rt_span_end(spans, NULL, false);
    assert_false(rt_span_trace(NULL).on);
    assert_int_equal(rt_spans_get_stats(spans).made_count, 0);
    assert_null(rt_spans_free(spans));
}

static void the_id_decides(void **state)
{
    struct rt_spans *spans = open_spans(10);
    struct rt_trace trace;

    (void)state;
    assert_true(rt_trace_start(spans, parent_of(9), &trace));
    assert_true(rt_trace_start(spans, parent_of(5000009), &trace));
    assert_false(rt_trace_start(spans, parent_of(10), &trace));
    assert_false(rt_trace_start(spans, parent_of(5000999), &trace));
    rt_spans_set_sample(spans, 11);
    assert_true(rt_trace_start(spans, parent_of(10), &trace));
    rt_spans_set_sample(spans, 1000);
    assert_true(rt_trace_start(spans, parent_of(5000999), &trace));
    assert_null(rt_spans_free(spans));
}

static void traceparents_are_honoured_or_replaced(void **state)
{
    static const char *const bad[] = {
        "",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
        "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01x",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
        "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
    };
    static const uint8_t id[] = {0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd,
                                 0x84, 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c};
    static const uint8_t parent[] = {0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31};
    static const uint8_t none[RT_TRACE_ID_SIZE];
    struct rt_spans *spans = open_spans(1000);
    struct rt_trace trace, other;

    (void)state;
    assert_true(rt_trace_start(spans, ron_slice_text(GOOD), &trace));
    assert_memory_equal(trace.id, id, sizeof(id));
    assert_memory_equal(trace.parent_id, parent, sizeof(parent));
    assert_true(rt_trace_start(spans,
                               RON_SLICE("01"
                                         "-0af7651916cd43dd8448eb211c80319c"
                                         "-b7ad6b7169203331-01-more"),
                               &trace));
    assert_memory_equal(trace.id, id, sizeof(id));
    for (size_t i = 0; i < RON_ARRAY_COUNT(bad); i++) {
        assert_true(rt_trace_start(spans, ron_slice_text(bad[i]), &trace));
        assert_memory_not_equal(trace.id, id, sizeof(id));
        assert_memory_not_equal(trace.id, none, sizeof(trace.id));
        assert_memory_equal(trace.parent_id, none, sizeof(trace.parent_id));
        assert_true(rt_trace_start(spans, ron_slice_text(bad[i]), &other));
        assert_memory_not_equal(trace.id, other.id, sizeof(trace.id));
    }
    assert_null(rt_spans_free(spans));
}

static void a_span_has_its_place_and_attributes(void **state) RON_BLOCKS
{
    struct rt_spans *spans = open_spans(1000);
    struct rt_span *taken[4];
    struct rt_span *above, *below;
    struct rt_trace trace;
    char long_text[200];
    size_t count;

    (void)state;
    memset(long_text, 'a', sizeof(long_text));
    long_text[sizeof(long_text) - 1] = '\0';
    assert_true(rt_trace_start(spans, ron_slice_text(GOOD), &trace));
    above = rt_span_begin(spans, &trace, "ingress");
    trace = rt_span_trace(above);
    below = rt_span_begin(spans, &trace, "sequencer");
    assert_memory_equal(below->parent_id, above->span_id, RT_SPAN_ID_SIZE);
    assert_memory_equal(below->trace_id, above->trace_id, RT_TRACE_ID_SIZE);
    assert_memory_not_equal(below->span_id, above->span_id, RT_SPAN_ID_SIZE);
    rt_span_put_text(below, "corr_id", long_text);
    for (unsigned i = 1; i < RT_SPAN_ATTRIBUTES_MAX + 3; i++)
        rt_span_put_number(below, "n", i);
    rt_span_end(spans, below, true);
    rt_span_end(spans, above, false);
    assert_ok(rt_spans_take(spans, taken, 4, 0, &count));
    assert_int_equal(count, 2);
    assert_ptr_equal(taken[0], below);
    assert_true(below->failed && !above->failed);
    assert_true(above->start_ns <= below->start_ns && below->end_ns <= above->end_ns);
    assert_int_equal(below->attributes_count, RT_SPAN_ATTRIBUTES_MAX);
    assert_int_equal(strlen(below->attributes[0].text), RT_SPAN_TEXT_SIZE - 1);
    assert_int_equal(below->attributes[RT_SPAN_ATTRIBUTES_MAX - 1].number,
                     RT_SPAN_ATTRIBUTES_MAX - 1);
    (void)ron_mem_free(above);
    (void)ron_mem_free(below);
    rt_spans_close(spans);
    assert_int_equal(rt_spans_take(spans, taken, 4, 0, &count), RON_ERR_CANCELED);
    rt_span_end(spans, rt_span_begin(spans, &trace, "late"), false); /* freed, not queued */
    assert_null(rt_spans_free(spans));
}

static void a_full_queue_drops_its_oldest(void **state) RON_BLOCKS
{
    struct rt_spans *spans = open_spans(1000);
    struct rt_span *span;
    struct rt_trace trace;
    size_t count;

    (void)state;
    assert_true(rt_trace_start(spans, ron_slice_text(GOOD), &trace));
    for (unsigned i = 0; i < RT_SPANS_MAX + 3; i++) {
        span = rt_span_begin(spans, &trace, "x");
        rt_span_put_number(span, "n", i);
        rt_span_end(spans, span, false);
    }
    assert_int_equal(rt_spans_get_stats(spans).made_count, RT_SPANS_MAX + 3);
    assert_int_equal(rt_spans_get_stats(spans).dropped_count, 3);
    assert_ok(rt_spans_take(spans, &span, 1, 0, &count));
    assert_int_equal(span->attributes[0].number, 3);
    (void)ron_mem_free(span);
    assert_null(rt_spans_free(spans)); /* with all the others */
}

/* 500 in a burst; what is beyond falls back to the usual share. */
static void safe_mode_traces_all_but_not_without_end(void **state)
{
    struct rt_spans *spans = open_spans(0);
    struct rt_trace trace;
    unsigned traced_count = 0;

    (void)state;
    rt_spans_set_safe_mode(NULL, true);
    rt_spans_set_safe_mode(spans, true);
    for (unsigned i = 0; i < 200000; i++) {
        if (!rt_trace_start(spans, parent_of(999), &trace))
            break;
        rt_span_end(spans, rt_span_begin(spans, &trace, "x"), false);
        traced_count++;
    }
    assert_true(traced_count >= RT_SPANS_SAFE_PER_S);
    assert_true(traced_count < 200000);
    rt_spans_set_sample(spans, 1000); /* is not forgotten, nor does it forget */
    assert_true(rt_trace_start(spans, parent_of(999), &trace));
    rt_spans_set_safe_mode(spans, false);
    assert_true(rt_trace_start(spans, parent_of(999), &trace));
    rt_spans_set_sample(spans, 0);
    assert_false(rt_trace_start(spans, parent_of(0), &trace));
    assert_null(rt_spans_free(spans));
}

static enum ron_err make_one(void *context, struct ron_errinfo *reterr)
{
    struct rt_spans *spans;
    enum ron_err err = rt_spans_new("test", 1000, &spans, reterr);

    (void)context;
    if (err == RON_ERR_OK)
        assert_null(rt_spans_free(spans));
    return err;
}

static void without_memory_there_are_none(void **state)
{
    (void)state;
    assert_true(support_fail_each_allocation(make_one, NULL, 20) >= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(off_is_off),
        cmocka_unit_test(the_id_decides),
        cmocka_unit_test(traceparents_are_honoured_or_replaced),
        cmocka_unit_test(a_span_has_its_place_and_attributes),
        cmocka_unit_test(a_full_queue_drops_its_oldest),
        cmocka_unit_test(safe_mode_traces_all_but_not_without_end),
        cmocka_unit_test(without_memory_there_are_none),
    };

    rt_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
