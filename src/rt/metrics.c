/*
 * metrics.c - descriptions, series and cells. See metrics.h; the layout is in metrics_impl.h.
 */
#include "rt/metrics.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "rt/metrics_impl.h"

/* Two cache lines: processors fetch them in pairs. */
enum { PAD_SIZE = 128, PAD_CELLS = PAD_SIZE / sizeof(struct rt_atomic_u64) };

static bool is_name(const char *name, bool colon)
{
    if (*name == '\0' || (*name >= '0' && *name <= '9'))
        return false;
    for (; *name != '\0'; name++) {
        bool letter = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z');

        if (!letter && !(*name >= '0' && *name <= '9') && *name != '_' && !(colon && *name == ':'))
            return false;
    }
    return true;
}

static size_t labels_count_of(const struct rt_metric *metric)
{
    size_t count = 0;

    while (count < RT_METRIC_LABELS_MAX && metric->labels[count] != NULL) {
        const char *label = metric->labels[count];

        RON_ASSERT(is_name(label, false));
        RON_ASSERT(strncmp(label, "__", 2) != 0); /* Prometheus's own */
        RON_ASSERT(strcmp(label, "le") != 0);
        for (size_t i = 0; i < count; i++)
            RON_ASSERT(strcmp(label, metric->labels[i]) != 0);
        count++;
    }
    return count;
}

static void check_description(const struct rt_metric *metric)
{
    RON_ASSERT(is_name(metric->name, true));
    RON_ASSERT(metric->help != NULL);
    RON_ASSERT(metric->series_max > 0);
    RON_ASSERT(metric->series_max <= RT_METRIC_SERIES_MAX);
    RON_ASSERT((metric->type == RT_METRIC_HISTOGRAM) == (metric->buckets_count > 0));
    RON_ASSERT(metric->buckets_count <= RT_METRIC_BUCKETS_MAX);
    for (size_t i = 1; i < metric->buckets_count; i++)
        RON_ASSERT(metric->buckets[i - 1] < metric->buckets[i]);
}

static size_t series_cells_of(const struct rt_metric *metric)
{
    return metric->type == RT_METRIC_HISTOGRAM ? metric->buckets_count + 2 : 1;
}

/* Fill the families of all tables; false when memory for their texts is missing. */
static bool add_families(struct rt_metrics *metrics, const struct rt_metric_table *table)
{
    for (size_t i = 0; i < table->metrics_count; i++) {
        const struct rt_metric *metric = &table->metrics[i];
        struct family *family = &metrics->families[metrics->families_count];
        size_t texts_count;

        check_description(metric);
        for (size_t j = 0; j < metrics->families_count; j++)
            RON_ASSERT(strcmp(metric->name, metrics->families[j].metric->name) != 0);
        family->metric = metric;
        family->labels_count = labels_count_of(metric);
        family->series_cells = series_cells_of(metric);
        family->first_cell = metrics->row_cells;
        metrics->row_cells += family->series_cells * (metric->series_max + 1);
        metrics->families_count++;
        texts_count = (metric->series_max + 1) * family->labels_count;
        if (texts_count > 0) {
            family->values = ron_mem_alloc_array(texts_count, sizeof(*family->values));
            if (family->values == NULL)
                return false;
        }
    }
    return true;
}

static bool make_cells(struct rt_metrics *metrics)
{
    uintptr_t address;

    metrics->row_cells = (metrics->row_cells / PAD_CELLS + 2) * PAD_CELLS;
    metrics->cells_memory = ron_mem_alloc_array(ROWS_COUNT * metrics->row_cells + PAD_CELLS,
                                                sizeof(*metrics->cells));
    if (metrics->cells_memory == NULL)
        return false;
    address = ((uintptr_t)metrics->cells_memory + PAD_SIZE - 1) / PAD_SIZE * PAD_SIZE;
    metrics->cells = (struct rt_atomic_u64 *)address;
    return true;
}

static void free_memory(struct rt_metrics *metrics)
{
    for (size_t i = 0; i < metrics->families_count; i++)
        ron_mem_free(metrics->families[i].values);
    ron_mem_free(metrics->families);
    ron_mem_free(metrics->cells_memory);
    ron_mem_free(metrics);
}

/* Series without labels exist from the start: their 0 is a fact. */
static void add_plain_series(struct rt_metrics *metrics)
{
    metrics_lock(metrics);
    for (size_t i = 0; i < metrics->families_count; i++)
        if (metrics->families[i].labels_count == 0)
            metrics->families[i].series_count = 1;
    metrics_unlock(metrics);
}

enum ron_err rt_metrics_new(const struct rt_metric_table *tables, size_t tables_count,
                            struct rt_metrics **ret_metrics, struct ron_errinfo *reterr)
{
    struct rt_metrics *metrics;
    size_t metrics_count = 0;
    bool complete = true;

    RON_ASSERT(tables_count > 0);
    RON_ASSERT(tables_count <= RT_METRICS_TABLES_MAX);
    for (size_t i = 0; i < tables_count; i++)
        metrics_count += tables[i].metrics_count;
    RON_ASSERT(metrics_count > 0);
    metrics = ron_mem_alloc(sizeof(*metrics));
    if (metrics == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%zu metrics", metrics_count);
    metrics->families = ron_mem_alloc_array(metrics_count, sizeof(*metrics->families));
    complete = metrics->families != NULL;
    for (size_t i = 0; i < tables_count && complete; i++)
        complete = add_families(metrics, &tables[i]);
    if (!complete || !make_cells(metrics)) {
        free_memory(metrics);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "series of %zu metrics", metrics_count);
    }
    RON_ASSERT(metrics->families_count == metrics_count);
    rt_lock_init(&metrics->lock, "metrics", RON_RANK_metrics);
    metrics->magic = METRICS_MAGIC;
    add_plain_series(metrics);
    *ret_metrics = metrics;
    return RON_ERR_OK;
}

struct rt_metrics *rt_metrics_free(struct rt_metrics *metrics)
{
    if (metrics == NULL)
        return NULL;
    RON_ASSERT(metrics->magic == METRICS_MAGIC);
    metrics->magic = ~METRICS_MAGIC;
    rt_lock_fini(&metrics->lock);
    free_memory(metrics);
    return NULL;
}

static struct family *family_of(struct rt_metrics *metrics, const struct rt_metric *metric,
                                enum rt_metric_type type)
{
    size_t i = 0;

    RON_ASSERT(metric->type == type);
    while (i < metrics->families_count && metrics->families[i].metric != metric)
        i++;
    RON_ASSERT(i < metrics->families_count); /* not in the tables given at birth */
    return &metrics->families[i];
}

/* Cut, terminated, and UTF-8: what the text format can carry. */
static void copy_value(char out[static RT_METRIC_VALUE_SIZE], const char *value)
{
    const char *text = value != NULL ? value : "";
    size_t size = strnlen(text, RT_METRIC_VALUE_SIZE - 1);
    size_t bad_offset = 0;

    memcpy(out, text, size);
    memset(out + size, 0, RT_METRIC_VALUE_SIZE - size);
    while (!ron_utf8_valid(ron_slice_of(out, size), &bad_offset))
        out[bad_offset] = '?';
}

static uint32_t find_series(struct family *family, char (*wanted)[RT_METRIC_VALUE_SIZE])
    RON_NEEDS(metrics)
{
    const size_t size = family->labels_count * sizeof(*wanted);
    uint32_t i = 0;

    if (family->labels_count == 0)
        return 0;
    while (i < family->series_count &&
           memcmp(&family->values[i * family->labels_count], wanted, size) != 0)
        i++;
    if (i < family->series_count)
        return i;
    if (i >= family->metric->series_max) { /* all taken: the last one is for everything else */
        i = family->metric->series_max;
        for (size_t label = 0; label < family->labels_count; label++)
            copy_value(wanted[label], "other");
    }
    memcpy(&family->values[i * family->labels_count], wanted, size);
    family->series_count = i + 1;
    return i;
}

static struct rt_counter resolve(struct rt_metrics *metrics, struct family *family,
                                 const char *const *values)
{
    char wanted[RT_METRIC_LABELS_MAX][RT_METRIC_VALUE_SIZE];
    uint32_t index;

    for (size_t i = 0; i < family->labels_count; i++)
        copy_value(wanted[i], values[i]);
    metrics_lock(metrics);
    index = find_series(family, wanted);
    RON_ASSERT(index < family->series_count);
    metrics_unlock(metrics);
    return metrics_column(metrics, family, index);
}

struct rt_counter rt_metrics_counter(struct rt_metrics *metrics, const struct rt_metric *metric,
                                     const char *const *values)
{
    return resolve(metrics, family_of(metrics, metric, RT_METRIC_COUNTER), values);
}

struct rt_gauge rt_metrics_gauge(struct rt_metrics *metrics, const struct rt_metric *metric,
                                 const char *const *values)
{
    struct family *family = family_of(metrics, metric, RT_METRIC_GAUGE);

    return (struct rt_gauge){resolve(metrics, family, values).cells};
}

struct rt_histogram rt_metrics_histogram(struct rt_metrics *metrics, const struct rt_metric *metric,
                                         const char *const *values)
{
    struct family *family = family_of(metrics, metric, RT_METRIC_HISTOGRAM);

    return (struct rt_histogram){
        .counts = resolve(metrics, family, values),
        .buckets = metric->buckets,
        .buckets_count = metric->buckets_count,
    };
}

void rt_metric_observe(const struct rt_histogram *histogram, uint64_t value)
{
    struct rt_counter counter = histogram->counts;
    size_t bucket = 0;

    while (bucket < histogram->buckets_count && value > histogram->buckets[bucket])
        bucket++;
    counter.cells += bucket;
    rt_metric_add(counter, 1);
    counter.cells += histogram->buckets_count + 1 - bucket;
    rt_metric_add(counter, value);
}

uint64_t rt_metric_sum(struct rt_counter counter)
{
    uint64_t sum = 0;

    for (size_t row = 0; row < ROWS_COUNT; row++)
        sum += rt_counter_load(&counter.cells[row * counter.row_cells]);
    return sum;
}

int64_t rt_metric_level(struct rt_gauge gauge)
{
    return (int64_t)rt_counter_load(gauge.cell);
}

void rt_metrics_clear_gauge(struct rt_metrics *metrics, const struct rt_metric *metric)
{
    struct family *family = family_of(metrics, metric, RT_METRIC_GAUGE);
    uint32_t series_count;

    metrics_lock(metrics);
    series_count = family->series_count;
    metrics_unlock(metrics);
    for (uint32_t i = 0; i < series_count; i++)
        rt_metric_set((struct rt_gauge){metrics_column(metrics, family, i).cells}, 0);
}
