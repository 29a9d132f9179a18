/*
 * span.c - sampling, and the queue of spans. See span.h.
 */
#include "rt/span.h"

#include "base/assert.h"
#include "base/hex.h"
#include "base/mem.h"
#include "rt/bucket.h"
#include "rt/lock.h"
#include "rt/queue.h"

enum { PERMILLE = 1000, SAFE_MODE = 1 << 16, PERMILLE_MASK = SAFE_MODE - 1 };

struct rt_spans_inside {
    struct rt_queue *queue; /* of struct rt_span */
    struct rt_atomic_u64 made_count;
    struct rt_lock lock; /* class queue; never with the queue's own */
    struct rt_bucket safe_bucket RON_GUARDED_BY(queue); /* spans a second in safe-mode */
};

static void spans_lock(struct rt_spans_inside *inside) RON_LOCKS(queue)
{
    rt_lock_take(&inside->lock);
}

static void spans_unlock(struct rt_spans_inside *inside) RON_UNLOCKS(queue)
{
    rt_lock_drop(&inside->lock);
}

/* ---- Birth and end ---- */

enum ron_err rt_spans_new(const char *owner, uint32_t sample_permille, struct rt_spans **ret_spans,
                          struct ron_errinfo *reterr)
{
    const struct rt_queue_options queue = {
        .name = "spans", .owner = owner, .policy = "drop oldest", .capacity = RT_SPANS_MAX};
    struct rt_spans *spans = ron_mem_alloc_array(1, sizeof(*spans));
    struct rt_spans_inside *inside = ron_mem_alloc_array(1, sizeof(*inside));
    enum ron_err err = RON_ERR_OK;

    if (spans == NULL || inside == NULL)
        err = ron_fail(reterr, RON_ERR_NO_MEMORY, "spans");
    if (err == RON_ERR_OK)
        err = rt_queue_new(&queue, &inside->queue, reterr);
    if (err != RON_ERR_OK) {
        (void)ron_mem_free(inside);
        (void)ron_mem_free(spans);
        return err;
    }
    rt_lock_init(&inside->lock, "spans", RON_RANK_queue);
    spans_lock(inside);
    rt_bucket_init(&inside->safe_bucket, RT_SPANS_SAFE_PER_S, RT_SPANS_SAFE_PER_S, rt_now_ns());
    spans_unlock(inside);
    spans->inside = inside;
    rt_spans_set_sample(spans, sample_permille);
    *ret_spans = spans;
    return RON_ERR_OK;
}

struct rt_spans *rt_spans_free(struct rt_spans *spans)
{
    void *span;

    if (spans == NULL)
        return NULL;
    rt_queue_close(spans->inside->queue);
    while (rt_queue_try_recv_many(spans->inside->queue, &span, 1) == 1)
        (void)ron_mem_free(span);
    (void)rt_queue_free(spans->inside->queue);
    rt_lock_fini(&spans->inside->lock);
    (void)ron_mem_free(spans->inside);
    return ron_mem_free(spans);
}

/* Both change one word, rarely, and neither forgets the other's part. */
static void change_rate(struct rt_spans *spans, uint32_t mask, uint32_t bits)
{
    uint32_t rate;

    do
        rate = rt_atomic_load_u32(&spans->rate);
    while (!rt_atomic_cas_u32(&spans->rate, rate, (rate & ~mask) | bits));
}

void rt_spans_set_sample(struct rt_spans *spans, uint32_t permille)
{
    RON_ASSERT(permille <= PERMILLE);
    change_rate(spans, PERMILLE_MASK, permille);
}

void rt_spans_set_safe_mode(struct rt_spans *spans, bool on)
{
    if (spans != NULL)
        change_rate(spans, SAFE_MODE, on ? SAFE_MODE : 0);
}

/* ---- Traces ---- */

static bool all_zero(const uint8_t *bytes, size_t size)
{
    uint8_t any = 0;

    for (size_t i = 0; i < size; i++)
        any |= bytes[i];
    return any == 0;
}

static bool decode_id(struct ron_slice text, uint8_t *ret_id, size_t size)
{
    size_t got;

    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] >= 'A' && text.data[i] <= 'F')
            return false; /* the standard wants lower case */
    return ron_hex_decode(text, ret_id, size, &got, NULL) == RON_ERR_OK && got == size &&
           !all_zero(ret_id, size);
}

/* "00-<32 hex>-<16 hex>-<2 hex>", or a later version that begins so. */
static bool parse_traceparent(struct ron_slice text, struct rt_trace *ret_trace)
{
    enum { SIZE = 55, ID_AT = 3, PARENT_AT = 36, FLAGS_AT = 53 };
    uint8_t version, flags;
    size_t got;

    if (text.size < SIZE || text.data[2] != '-' || text.data[PARENT_AT - 1] != '-' ||
        text.data[FLAGS_AT - 1] != '-')
        return false;
    if (ron_hex_decode(ron_slice_of(text.data, 2), &version, 1, &got, NULL) != RON_ERR_OK ||
        version == 0xff ||
        (version == 0 ? text.size != SIZE : text.size > SIZE && text.data[SIZE] != '-'))
        return false;
    return ron_hex_decode(ron_slice_of(text.data + FLAGS_AT, 2), &flags, 1, &got, NULL) ==
               RON_ERR_OK &&
           decode_id(ron_slice_of(text.data + ID_AT, 32), ret_trace->id, RT_TRACE_ID_SIZE) &&
           decode_id(ron_slice_of(text.data + PARENT_AT, 16), ret_trace->parent_id,
                     RT_SPAN_ID_SIZE);
}

static void make_id(uint8_t *ret_id, size_t size)
{
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = sh_random() | 1; /* zeros mean: none */

        memcpy(ret_id + i, &word, 8);
    }
}

static bool safe_rate_left(struct rt_spans_inside *inside)
{
    bool left;

    spans_lock(inside);
    left = rt_bucket_wait_ns(&inside->safe_bucket, 1, rt_now_ns()) == 0;
    spans_unlock(inside);
    return left;
}

bool rt_trace_decide(struct rt_spans *spans, struct ron_slice traceparent,
                     struct rt_trace *ret_trace)
{
    uint32_t rate = rt_atomic_load_u32(&spans->rate);
    struct rt_trace trace = {.on = true};

    if (!parse_traceparent(traceparent, &trace)) {
        make_id(trace.id, RT_TRACE_ID_SIZE);
        memset(trace.parent_id, 0, sizeof(trace.parent_id));
    }
    /* The low half is the random one, whoever made the id. */
    if (ron_load_be64(trace.id + 8) % PERMILLE >= (rate & PERMILLE_MASK) &&
        ((rate & SAFE_MODE) == 0 || !safe_rate_left(spans->inside)))
        return false;
    *ret_trace = trace;
    return true;
}

/* ---- Spans ---- */

struct rt_span *rt_span_begin(struct rt_spans *spans, const struct rt_trace *trace,
                              const char *name)
{
    struct rt_span *span;

    if (spans == NULL || !trace->on)
        return NULL;
    span = ron_mem_alloc(sizeof(*span));
    if (span == NULL)
        return NULL;
    if ((rt_atomic_load_u32(&spans->rate) & SAFE_MODE) != 0) {
        spans_lock(spans->inside);
        (void)rt_bucket_take(&spans->inside->safe_bucket, 1, rt_now_ns());
        spans_unlock(spans->inside);
    }
    memcpy(span->trace_id, trace->id, sizeof(span->trace_id));
    memcpy(span->parent_id, trace->parent_id, sizeof(span->parent_id));
    make_id(span->span_id, RT_SPAN_ID_SIZE);
    span->name = name;
    span->start_ns = rt_now_ns();
    span->end_ns = 0;
    span->failed = false;
    span->attributes_count = 0;
    return span;
}

struct rt_trace rt_span_trace(const struct rt_span *span)
{
    struct rt_trace trace = {0};

    if (span == NULL)
        return trace;
    trace.on = true;
    memcpy(trace.id, span->trace_id, sizeof(trace.id));
    memcpy(trace.parent_id, span->span_id, sizeof(trace.parent_id));
    return trace;
}

void rt_span_rename(struct rt_span *span, const char *name)
{
    if (span != NULL)
        span->name = name;
}

static struct rt_span_attribute *add(struct rt_span *span, const char *key)
{
    struct rt_span_attribute *attribute;

    if (span == NULL || span->attributes_count == RT_SPAN_ATTRIBUTES_MAX)
        return NULL;
    attribute = &span->attributes[span->attributes_count++];
    attribute->key = key;
    attribute->is_number = false;
    attribute->text[0] = '\0';
    return attribute;
}

void rt_span_put_text(struct rt_span *span, const char *key, const char *text)
{
    struct rt_span_attribute *attribute = add(span, key);
    size_t size = strlen(text);

    if (attribute == NULL)
        return;
    size = size < RT_SPAN_TEXT_SIZE ? size : RT_SPAN_TEXT_SIZE - 1;
    memcpy(attribute->text, text, size);
    attribute->text[size] = '\0';
}

void rt_span_put_number(struct rt_span *span, const char *key, uint64_t number)
{
    struct rt_span_attribute *attribute = add(span, key);

    if (attribute == NULL)
        return;
    attribute->is_number = true;
    attribute->number = number;
}

void rt_span_end(struct rt_spans *spans, struct rt_span *span, bool failed)
{
    void *evicted = NULL;
    size_t evicted_count = 0;

    if (span == NULL)
        return;
    span->end_ns = rt_now_ns();
    span->failed = failed;
    rt_counter_add(&spans->inside->made_count, 1);
    if (rt_queue_send_drop_oldest(spans->inside->queue, (struct rt_queue_item){span, 1}, &evicted,
                                  1, &evicted_count, NULL) != RON_ERR_OK)
        evicted = span; /* closed */
    (void)ron_mem_free(evicted);
}

/* ---- The exporter's side ---- */

enum ron_err rt_spans_take(struct rt_spans *spans, struct rt_span **ret_spans, size_t spans_max,
                           uint64_t linger_ns, size_t *ret_count)
{
    return rt_queue_recv_many(spans->inside->queue, (void **)ret_spans, spans_max, linger_ns,
                              RT_DEADLINE_NEVER, ret_count, NULL);
}

void rt_spans_close(struct rt_spans *spans)
{
    rt_queue_close(spans->inside->queue);
}

struct rt_spans_stats rt_spans_get_stats(struct rt_spans *spans)
{
    struct rt_queue_stats queue;

    rt_queue_get_stats(spans->inside->queue, &queue);
    return (struct rt_spans_stats){.made_count = rt_counter_load(&spans->inside->made_count),
                                   .dropped_count = queue.dropped_count};
}
