/*
 * metrics_text.c - Prometheus text format 0.0.4. See metrics.h.
 */
#include "base/assert.h"
#include "rt/metrics_impl.h"
#include "rt/scaled.h"

static const char *const type_names[] = {
    [RT_METRIC_COUNTER] = "counter",
    [RT_METRIC_GAUGE] = "gauge",
    [RT_METRIC_HISTOGRAM] = "histogram",
};

/* Backslash and line feed are escaped everywhere, quotes in label values only. */
static void put_escaped(struct ron_buf *buf, const char *text, bool quoted)
{
    for (; *text != '\0'; text++) {
        if (*text == '\n') {
            ron_buf_put_text(buf, "\\n");
            continue;
        }
        if (*text == '\\' || (quoted && *text == '"'))
            ron_buf_put_byte(buf, '\\');
        ron_buf_put_byte(buf, (uint8_t)*text);
    }
}

static void put_scaled(struct ron_buf *buf, uint64_t value, unsigned scale)
{
    char text[RT_SCALED_SIZE];

    ron_buf_put(buf, text, rt_scaled_print(value, scale, text));
}

static void put_label(struct ron_buf *buf, const char *name, const char *value, bool first)
{
    ron_buf_put_byte(buf, first ? '{' : ',');
    ron_buf_put_text(buf, name);
    ron_buf_put_text(buf, "=\"");
    put_escaped(buf, value, true);
    ron_buf_put_byte(buf, '"');
}

/* name_suffix{label="value",...,le="bound"} and the space before the value; le may be NULL. */
static void put_head(struct ron_buf *buf, const struct family *family, uint32_t series_index,
                     const char *suffix, const char *le)
{
    ron_buf_put_text(buf, family->metric->name);
    ron_buf_put_text(buf, suffix);
    for (size_t i = 0; i < family->labels_count; i++)
        put_label(buf, family->metric->labels[i],
                  family->values[series_index * family->labels_count + i], i == 0);
    if (le != NULL)
        put_label(buf, "le", le, family->labels_count == 0);
    if (family->labels_count > 0 || le != NULL)
        ron_buf_put_byte(buf, '}');
    ron_buf_put_byte(buf, ' ');
}

static void put_histogram(struct ron_buf *buf, const struct family *family, uint32_t series_index,
                          struct rt_counter column)
{
    const struct rt_metric *metric = family->metric;
    char le[RT_SCALED_SIZE] = "+Inf";
    uint64_t count = 0;

    for (size_t bucket = 0; bucket <= metric->buckets_count; bucket++) {
        count += rt_metric_sum(column);
        column.cells++;
        if (bucket < metric->buckets_count)
            (void)rt_scaled_print(metric->buckets[bucket], metric->scale, le);
        else
            memcpy(le, "+Inf", sizeof("+Inf"));
        put_head(buf, family, series_index, "_bucket", le);
        put_scaled(buf, count, 0);
        ron_buf_put_byte(buf, '\n');
    }
    put_head(buf, family, series_index, "_sum", NULL);
    put_scaled(buf, rt_metric_sum(column), metric->scale);
    ron_buf_put_byte(buf, '\n');
    put_head(buf, family, series_index, "_count", NULL);
    put_scaled(buf, count, 0);
    ron_buf_put_byte(buf, '\n');
}

static void put_gauge(struct ron_buf *buf, struct rt_gauge gauge, unsigned scale)
{
    int64_t value = rt_metric_level(gauge);

    if (value < 0)
        ron_buf_put_byte(buf, '-');
    put_scaled(buf, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, scale);
}

static void put_series(struct ron_buf *buf, const struct rt_metrics *metrics,
                       const struct family *family, uint32_t series_index)
{
    struct rt_counter column = metrics_column(metrics, family, series_index);

    if (family->metric->type == RT_METRIC_HISTOGRAM) {
        put_histogram(buf, family, series_index, column);
        return;
    }
    put_head(buf, family, series_index, "", NULL);
    if (family->metric->type == RT_METRIC_GAUGE)
        put_gauge(buf, (struct rt_gauge){column.cells}, family->metric->scale);
    else
        put_scaled(buf, rt_metric_sum(column), family->metric->scale);
    ron_buf_put_byte(buf, '\n');
}

enum ron_err rt_metrics_write(struct rt_metrics *metrics, struct ron_buf *buf,
                              struct ron_errinfo *reterr)
{
    for (size_t i = 0; i < metrics->families_count; i++) {
        const struct family *family = &metrics->families[i];
        uint32_t series_count;

        metrics_lock(metrics);
        series_count = family->series_count;
        metrics_unlock(metrics);
        ron_buf_put_text(buf, "# HELP ");
        ron_buf_put_text(buf, family->metric->name);
        ron_buf_put_byte(buf, ' ');
        put_escaped(buf, family->metric->help, false);
        ron_buf_put_text(buf, "\n# TYPE ");
        ron_buf_put_text(buf, family->metric->name);
        ron_buf_put_byte(buf, ' ');
        ron_buf_put_text(buf, type_names[family->metric->type]);
        ron_buf_put_byte(buf, '\n');
        for (uint32_t series = 0; series < series_count; series++)
            put_series(buf, metrics, family, series);
    }
    return ron_buf_check(buf, reterr);
}
