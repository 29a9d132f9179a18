/*
 * metrics.c - sharded cells and their text form. See metrics.h.
 *
 * A series is a run of cells: one for a counter or gauge; for a histogram one per bucket, then the
 * sum. Each shard (slot of local.h) has a copy of all cells, on cache lines of its own. A task
 * writes only its slot, with a plain add; slot 0 is for everyone else, with atomic adds; a reader
 * sums. Each cell is monotonic, so a sum read meanwhile is a value the counter had or passed
 * through.
 */
#include "rt/metrics.h"

#include <ctype.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"
#include "rt/atomic.h"
#include "rt/local.h"
#include "rt/lock.h"

#define METRICS_MAGIC 0x3e741c50u
enum { CELLS_PER_LINE = 8, NUMBER_SIZE = 40 };

struct series {
    uint32_t cell;
    char values[][RT_METRIC_VALUE_SIZE_MAX]; /* labels_count of them, NUL-terminated */
};

struct family {
    const struct rt_metric_desc *desc;
    uint32_t first_cell;
    uint32_t cells_per_series;
    uint32_t series_max; /* "other" included */
    size_t series_size;  /* bytes of one struct series */
    uint32_t series_count RON_GUARDED_BY(metrics);
    unsigned char *series RON_GUARDED_BY(metrics); /* series_max of them */
};

struct rt_metrics {
    struct rt_metrics_shards shards; /* first: the header counts through it */
    struct rt_lock lock;
    uint32_t magic;
    size_t families_count;
    struct family *families;
    void *cells_memory; /* what to free: the cells are aligned within it */
    unsigned collectors_count;
    struct {
        rt_metrics_collect_fn *fn;
        void *context;
    } collectors[RT_METRIC_COLLECTORS_MAX];
};

_Static_assert(offsetof(struct rt_metrics, shards) == 0, "the header casts to it");

static void metrics_lock(struct rt_metrics *metrics) RON_LOCKS(metrics)
{
    RON_ASSERT(metrics->magic == METRICS_MAGIC);
    rt_lock_take(&metrics->lock);
}

static void metrics_unlock(struct rt_metrics *metrics) RON_UNLOCKS(metrics)
{
    rt_lock_drop(&metrics->lock);
}

static struct series *series_at(const struct family *family, uint32_t index) RON_NEEDS(metrics)
{
    RON_ASSERT(index < family->series_max);
    return (struct series *)(void *)(family->series + index * family->series_size);
}

static bool is_name(const char *name)
{
    if (!isalpha((unsigned char)name[0]) && name[0] != '_')
        return false;
    for (const char *c = name; *c != '\0'; c++) {
        if (!isalnum((unsigned char)*c) && *c != '_')
            return false;
    }
    return true;
}

static void check_desc(const struct rt_metric_desc *desc)
{
    RON_ASSERT(is_name(desc->name));
    RON_ASSERT(desc->help != NULL);
    RON_ASSERT(desc->decimals <= 9);
    RON_ASSERT(desc->labels_count <= RT_METRIC_LABELS_MAX);
    RON_ASSERT(desc->labels_count == 0 || desc->series_max > 0);
    RON_ASSERT(desc->series_max <= RT_METRIC_SERIES_MAX);
    RON_ASSERT((desc->kind == RT_METRIC_HISTOGRAM) == (desc->bounds_count > 0));
    RON_ASSERT(desc->bounds_count <= RT_METRIC_BOUNDS_MAX);
    for (unsigned i = 0; i < desc->labels_count; i++)
        RON_ASSERT(is_name(desc->labels[i]));
    for (unsigned i = 1; i < desc->bounds_count; i++)
        RON_ASSERT(desc->bounds[i - 1] < desc->bounds[i]);
}

/* Lay out one family; false without memory. */
static bool family_init(struct family *family, const struct rt_metric_desc *desc,
                        uint32_t first_cell) RON_NEEDS(metrics)
{
    check_desc(desc);
    family->desc = desc;
    family->first_cell = first_cell;
    family->cells_per_series = desc->kind == RT_METRIC_HISTOGRAM ? desc->bounds_count + 2 : 1;
    family->series_max = desc->labels_count == 0 ? 1 : desc->series_max + 1;
    family->series_size = sizeof(struct series) +
                          (size_t)desc->labels_count * RT_METRIC_VALUE_SIZE_MAX;
    family->series = ron_mem_alloc_array(family->series_max, family->series_size);
    if (family->series == NULL)
        return false;
    if (desc->labels_count == 0) { /* present from the start, at 0 */
        series_at(family, 0)->cell = first_cell;
        family->series_count = 1;
    }
    return true;
}

static bool lay_out(struct rt_metrics *metrics, const struct rt_metric_desc *descs)
    RON_NEEDS(metrics)
{
    uint64_t cells_count = 0;

    for (size_t i = 0; i < metrics->families_count; i++) {
        struct family *family = &metrics->families[i];

        if (!family_init(family, &descs[i], (uint32_t)cells_count))
            return false;
        cells_count += (uint64_t)family->series_max * family->cells_per_series;
    }
    cells_count = (cells_count + CELLS_PER_LINE - 1) / CELLS_PER_LINE * CELLS_PER_LINE;
    RON_ASSERT(cells_count <= UINT32_MAX);
    metrics->shards.cells_count = (uint32_t)cells_count;
    metrics->cells_memory = ron_mem_alloc_array((size_t)cells_count * RT_SLOTS_MAX + CELLS_PER_LINE,
                                                sizeof(struct rt_atomic_u64));
    if (metrics->cells_memory == NULL)
        return false;
    metrics->shards.cells = (struct rt_atomic_u64 *)(((uintptr_t)metrics->cells_memory + 63) &
                                                     ~(uintptr_t)63);
    return true;
}

enum ron_err rt_metrics_new(const struct rt_metric_desc *descs, size_t descs_count,
                            struct rt_metrics **ret_metrics, struct ron_errinfo *reterr)
{
    struct rt_metrics *metrics = ron_mem_alloc(sizeof(*metrics));
    bool complete;

    RON_ASSERT(descs_count > 0);
    RON_ASSERT(descs_count <= RT_METRICS_MAX);
    if (metrics == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "metrics of %zu families", descs_count);
    rt_lock_init(&metrics->lock, "metrics", RON_RANK_metrics);
    metrics->magic = METRICS_MAGIC;
    metrics->families = ron_mem_alloc_array(descs_count, sizeof(metrics->families[0]));
    metrics->families_count = metrics->families != NULL ? descs_count : 0;
    metrics_lock(metrics);
    complete = metrics->families != NULL && lay_out(metrics, descs);
    metrics_unlock(metrics);
    if (!complete) {
        rt_metrics_free(metrics);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "metrics of %zu families", descs_count);
    }
    *ret_metrics = metrics;
    return RON_ERR_OK;
}

struct rt_metrics *rt_metrics_free(struct rt_metrics *metrics)
{
    if (metrics == NULL)
        return NULL;
    metrics_lock(metrics);
    for (size_t i = 0; i < metrics->families_count; i++)
        ron_mem_free(metrics->families[i].series);
    metrics->magic = ~METRICS_MAGIC;
    metrics_unlock(metrics);
    rt_lock_fini(&metrics->lock);
    ron_mem_free(metrics->families);
    ron_mem_free(metrics->cells_memory);
    return ron_mem_free(metrics);
}

static bool has_values(const struct series *series, unsigned count, const char *const *values)
{
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(series->values[i], values[i]) != 0)
            return false;
    }
    return true;
}

static struct series *find_existing(const struct family *family, const char *const *values)
    RON_NEEDS(metrics)
{
    for (uint32_t i = 0; i < family->series_count; i++) {
        struct series *series = series_at(family, i);

        if (has_values(series, family->desc->labels_count, values))
            return series;
    }
    return NULL;
}

static struct series *add_series(struct family *family, const char *const *values)
    RON_NEEDS(metrics)
{
    struct series *series = series_at(family, family->series_count);

    series->cell = family->first_cell + family->series_count * family->cells_per_series;
    for (unsigned i = 0; i < family->desc->labels_count; i++)
        memcpy(series->values[i], values[i], strlen(values[i]) + 1);
    family->series_count++;
    return series;
}

static struct series *find_series(struct family *family, const char *const *values)
    RON_NEEDS(metrics)
{
    static const char *const other[RT_METRIC_LABELS_MAX] = {"other", "other", "other", "other",
                                                            "other", "other", "other", "other"};
    struct series *series = find_existing(family, values);
    bool fits = family->series_count + 1 < family->series_max; /* the last is for "other" */

    if (series != NULL)
        return series;
    for (unsigned i = 0; i < family->desc->labels_count; i++)
        fits = fits && strlen(values[i]) < RT_METRIC_VALUE_SIZE_MAX;
    if (fits)
        return add_series(family, values);
    series = find_existing(family, other);
    return series != NULL ? series : add_series(family, other);
}

struct rt_series rt_metrics_series(struct rt_metrics *metrics, size_t metric,
                                   const char *const *values)
{
    struct rt_series found = {.metric = (uint16_t)metric};

    RON_ASSERT(metric < metrics->families_count);
    found.kind = (uint16_t)metrics->families[metric].desc->kind;
    metrics_lock(metrics);
    found.cell = find_series(&metrics->families[metric], values)->cell;
    metrics_unlock(metrics);
    return found;
}

static const struct rt_metric_desc *desc_of(const struct rt_metrics *metrics,
                                            struct rt_series series)
{
    RON_ASSERT(series.metric < metrics->families_count);
    return metrics->families[series.metric].desc;
}

void rt_metrics_gauge(struct rt_metrics *metrics, struct rt_series series, int64_t value)
{
    RON_ASSERT(series.kind == RT_METRIC_GAUGE);
    rt_counter_store(&metrics->shards.cells[series.cell], (uint64_t)value);
}

void rt_metrics_mirror(struct rt_metrics *metrics, struct rt_series series, uint64_t value)
{
    RON_ASSERT(series.kind == RT_METRIC_COUNTER);
    rt_counter_store(&metrics->shards.cells[series.cell], value);
}

void rt_metrics_observe(struct rt_metrics *metrics, struct rt_series series, uint64_t value)
{
    const struct rt_metric_desc *desc = desc_of(metrics, series);
    unsigned bucket = 0;

    RON_ASSERT(series.kind == RT_METRIC_HISTOGRAM);
    while (bucket < desc->bounds_count && value > desc->bounds[bucket])
        bucket++;
    rt_metrics_add_cell(metrics, series.cell + bucket, 1);
    rt_metrics_add_cell(metrics, series.cell + desc->bounds_count + 1, value);
}

static uint64_t sum_cell(const struct rt_metrics *metrics, uint32_t cell)
{
    uint64_t sum = 0;

    RON_ASSERT(cell < metrics->shards.cells_count);
    for (size_t slot = 0; slot < RT_SLOTS_MAX; slot++)
        sum += rt_counter_load(&metrics->shards.cells[slot * metrics->shards.cells_count + cell]);
    return sum;
}

uint64_t rt_metrics_read(struct rt_metrics *metrics, struct rt_series series)
{
    const struct rt_metric_desc *desc = desc_of(metrics, series);
    unsigned cells_count = desc->kind == RT_METRIC_HISTOGRAM ? desc->bounds_count + 1 : 1;
    uint64_t sum = 0;

    for (unsigned i = 0; i < cells_count; i++)
        sum += sum_cell(metrics, series.cell + i);
    return sum;
}

void rt_metrics_add_collector(struct rt_metrics *metrics, rt_metrics_collect_fn *fn, void *context)
{
    RON_ASSERT(metrics->collectors_count < RT_METRIC_COLLECTORS_MAX);
    metrics->collectors[metrics->collectors_count].fn = fn;
    metrics->collectors[metrics->collectors_count].context = context;
    metrics->collectors_count++;
}

/* Text in a HELP line (quotes are plain there) or in a label value. */
static void put_escaped(struct ron_buf *buf, const char *text, bool in_quotes)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\\')
            ron_buf_put_text(buf, "\\\\");
        else if (*c == '\n')
            ron_buf_put_text(buf, "\\n");
        else if (*c == '"' && in_quotes)
            ron_buf_put_text(buf, "\\\"");
        else
            ron_buf_put_byte(buf, (uint8_t)*c);
    }
}

/* value / 10^decimals, exactly and without trailing zeros. */
static const char *format_number(char text[NUMBER_SIZE], uint64_t value, unsigned decimals)
{
    uint64_t unit = 1;
    int size;

    for (unsigned i = 0; i < decimals; i++)
        unit *= 10;
    size = snprintf(text, NUMBER_SIZE, "%llu.%0*llu", (unsigned long long)(value / unit),
                    (int)decimals, (unsigned long long)(value % unit));
    RON_ASSERT(size > 0);
    RON_ASSERT(size < NUMBER_SIZE);
    while (text[size - 1] == '0')
        size--;
    if (text[size - 1] == '.')
        size--;
    text[size] = '\0';
    return text;
}

/* name_suffix{label="value",...,le="bound"} */
static void put_series_name(struct ron_buf *buf, const struct rt_metric_desc *desc,
                            const struct series *series, const char *suffix, const char *le)
{
    const char *separator = "{";

    ron_buf_put_text(buf, desc->name);
    ron_buf_put_text(buf, suffix);
    for (unsigned i = 0; i < desc->labels_count; i++) {
        ron_buf_put_text(buf, separator);
        ron_buf_put_text(buf, desc->labels[i]);
        ron_buf_put_text(buf, "=\"");
        put_escaped(buf, series->values[i], true);
        ron_buf_put_text(buf, "\"");
        separator = ",";
    }
    if (le != NULL) {
        ron_buf_put_text(buf, separator);
        ron_buf_put_text(buf, "le=\"");
        ron_buf_put_text(buf, le);
        ron_buf_put_text(buf, "\"");
        separator = ",";
    }
    ron_buf_put_text(buf, separator[0] == ',' ? "} " : " ");
}

static void put_histogram(struct ron_buf *buf, const struct rt_metrics *metrics,
                          const struct rt_metric_desc *desc, const struct series *series)
{
    uint64_t count = 0, sum = sum_cell(metrics, series->cell + desc->bounds_count + 1);
    char number[NUMBER_SIZE];

    for (unsigned i = 0; i < desc->bounds_count; i++) {
        count += sum_cell(metrics, series->cell + i);
        put_series_name(buf, desc, series, "_bucket",
                        format_number(number, desc->bounds[i], desc->decimals));
        ron_buf_put_format(buf, "%llu\n", (unsigned long long)count);
    }
    count += sum_cell(metrics, series->cell + desc->bounds_count);
    put_series_name(buf, desc, series, "_bucket", "+Inf");
    ron_buf_put_format(buf, "%llu\n", (unsigned long long)count);
    put_series_name(buf, desc, series, "_sum", NULL);
    ron_buf_put_format(buf, "%s\n", format_number(number, sum, desc->decimals));
    put_series_name(buf, desc, series, "_count", NULL);
    ron_buf_put_format(buf, "%llu\n", (unsigned long long)count);
}

static void put_plain(struct ron_buf *buf, const struct rt_metrics *metrics,
                      const struct rt_metric_desc *desc, const struct series *series)
{
    uint64_t value = sum_cell(metrics, series->cell);
    bool negative = desc->kind == RT_METRIC_GAUGE && (int64_t)value < 0;
    char number[NUMBER_SIZE];

    put_series_name(buf, desc, series, "", NULL);
    ron_buf_put_format(buf, "%s%s\n", negative ? "-" : "",
                       format_number(number, negative ? 0 - value : value, desc->decimals));
}

static void put_family(struct ron_buf *buf, const struct rt_metrics *metrics,
                       const struct family *family) RON_NEEDS(metrics)
{
    static const char *const kinds[] = {[RT_METRIC_COUNTER] = "counter",
                                        [RT_METRIC_GAUGE] = "gauge",
                                        [RT_METRIC_HISTOGRAM] = "histogram"};
    const struct rt_metric_desc *desc = family->desc;

    ron_buf_put_text(buf, "# HELP ");
    ron_buf_put_text(buf, desc->name);
    ron_buf_put_text(buf, " ");
    put_escaped(buf, desc->help, false);
    ron_buf_put_text(buf, "\n# TYPE ");
    ron_buf_put_text(buf, desc->name);
    ron_buf_put_text(buf, " ");
    ron_buf_put_text(buf, kinds[desc->kind]);
    ron_buf_put_text(buf, "\n");
    for (uint32_t i = 0; i < family->series_count; i++) {
        if (desc->kind == RT_METRIC_HISTOGRAM)
            put_histogram(buf, metrics, desc, series_at(family, i));
        else
            put_plain(buf, metrics, desc, series_at(family, i));
    }
}

enum ron_err rt_metrics_write(struct rt_metrics *metrics, struct ron_buf *buf,
                              struct ron_errinfo *reterr)
{
    for (unsigned i = 0; i < metrics->collectors_count; i++)
        metrics->collectors[i].fn(metrics, metrics->collectors[i].context);
    for (size_t i = 0; i < metrics->families_count; i++) { /* the lock is free between families */
        metrics_lock(metrics);
        put_family(buf, metrics, &metrics->families[i]);
        metrics_unlock(metrics);
    }
    return ron_buf_check(buf, reterr);
}
