/*
 * export.c - see export.h.
 *
 * What was seen last is remembered by numbers of birth, which are never reused. Objects come in the
 * same order each time, so the search for what was seen starts behind the last hit.
 */
#include "rt/export.h"

#include "base/assert.h"
#include "base/mem.h"
#include "rt/bus.h"
#include "rt/lock.h"
#include "rt/queue.h"
#include "rt/registry.h"
#include "rt/strands.h"
#include "rt/timer.h"

const struct rt_metric rt_metric_table[RT_METRIC__COUNT] = {
#define X(symbol, kind, metric_name, metric_scale, max, text, ...) \
    [RT_METRIC_##symbol] = {.name = metric_name,                   \
                            .help = text,                          \
                            .type = RT_METRIC_##kind,              \
                            .scale = metric_scale,                 \
                            .series_max = max,                     \
                            .labels = {__VA_ARGS__}},
    RT_METRIC_MAP(X)
#undef X
};

enum { SEEN_MAX = 2 * RT_REGISTRY_MAX };

/* The counters of an object, or of one subscriber of a bus, when they were last read. */
struct seen {
    uint64_t birth;            /* of the object */
    uint64_t subscriber_birth; /* 0 for all but buses */
    uint64_t rejected_count, dropped_count, wait_samples_count, wait_ns_sum;
    uint64_t lost_count;
    uint64_t done_count, late_ns_sum; /* handled by lanes; fired by timers, and how late */
};

/* A supervisor's kinds keep their places, so what was seen of them is matched by index. */
struct followed {
    const char *role;
    struct rt_supervisor *supervisor;
    struct rt_task_counters seen[RT_TASK_KINDS_MAX];
};

struct rt_exporter {
    struct rt_exporter_options options;
    struct rt_log_stats log_seen;
    size_t followed_count;
    struct followed followed[RT_EXPORTER_SUPERVISORS_MAX];
    size_t roles_count;
    struct rt_lifecycle *roles[RT_EXPORTER_ROLES_MAX];
    size_t last_count, next_count; /* filled entries of the two lists below */
    size_t cursor;                 /* in last */
    struct seen *last, *next;      /* SEEN_MAX each: of the collection before, of this one */
    struct rt_registry_entry entries[RT_REGISTRY_MAX];
    struct rt_bus_stats bus_stats; /* large, hence not on the stack */
};

enum ron_err rt_exporter_new(const struct rt_exporter_options *options,
                             struct rt_exporter **ret_exporter, struct ron_errinfo *reterr)
{
    struct rt_exporter *exporter = ron_mem_alloc(sizeof(*exporter));
    struct seen *last = ron_mem_alloc_array(SEEN_MAX, sizeof(*last));
    struct seen *next = ron_mem_alloc_array(SEEN_MAX, sizeof(*next));

    RON_ASSERT(options->metrics != NULL);
    if (exporter == NULL || last == NULL || next == NULL) {
        ron_mem_free(next);
        ron_mem_free(last);
        ron_mem_free(exporter);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "exporter of %d objects", SEEN_MAX);
    }
    exporter->options = *options;
    exporter->last = last;
    exporter->next = next;
    *ret_exporter = exporter;
    return RON_ERR_OK;
}

struct rt_exporter *rt_exporter_free(struct rt_exporter *exporter)
{
    if (exporter == NULL)
        return NULL;
    ron_mem_free(exporter->next);
    ron_mem_free(exporter->last);
    return ron_mem_free(exporter);
}

/* What was seen of it before; zeros for a new one. */
static struct seen seen_before(struct rt_exporter *exporter, uint64_t birth,
                               uint64_t subscriber_birth)
{
    for (size_t i = 0; i < exporter->last_count; i++) {
        size_t at = (exporter->cursor + i) % exporter->last_count;

        if (exporter->last[at].birth == birth &&
            exporter->last[at].subscriber_birth == subscriber_birth) {
            exporter->cursor = at + 1;
            return exporter->last[at];
        }
    }
    return (struct seen){.birth = birth, .subscriber_birth = subscriber_birth};
}

/* Room to remember one more; without it the object waits for a later collection. */
static bool has_room(const struct rt_exporter *exporter)
{
    return exporter->next_count < SEEN_MAX;
}

static void remember(struct rt_exporter *exporter, const struct seen *seen)
{
    RON_ASSERT(has_room(exporter));
    exporter->next[exporter->next_count++] = *seen;
}

static void count_since(struct rt_exporter *exporter, unsigned metric, const char *const *values,
                        uint64_t now_count, uint64_t *seen_count)
{
    struct rt_counter counter = rt_metrics_counter(exporter->options.metrics,
                                                   &rt_metric_table[metric], values);

    RON_ASSERT(now_count >= *seen_count);
    rt_metric_add(counter, now_count - *seen_count);
    *seen_count = now_count;
}

/* Several objects may share a name: their levels are added up, from 0 at each collection. */
static void add_level(struct rt_exporter *exporter, unsigned metric, const char *const *values,
                      uint32_t level)
{
    rt_metric_change(rt_metrics_gauge(exporter->options.metrics, &rt_metric_table[metric], values),
                     level);
}

/* The queue's name as `q`, for the role whose alerts want it; else "". */
static const char *q_of(const struct rt_exporter *exporter, const struct rt_registry_entry *entry)
{
    const char *q_role = exporter->options.q_role;

    return q_role != NULL && strcmp(q_role, entry->owner) == 0 ? entry->name : "";
}

static void collect_queue(struct rt_exporter *exporter, const struct rt_registry_entry *entry,
                          struct rt_queue *queue)
{
    struct seen seen = seen_before(exporter, entry->birth, 0);
    const char *q = q_of(exporter, entry);
    const char *const queue_q[] = {entry->owner, entry->name, q};
    const char *const rejected[] = {entry->owner, "", entry->name, q};
    const char *const dropped[] = {entry->owner, entry->name, ron_err_reason(RON_ERR_BUSY)};
    struct rt_queue_stats stats;
    uint64_t dropped_before = seen.dropped_count;

    rt_queue_get_stats(queue, &stats);
    add_level(exporter, RT_METRIC_QUEUE_DEPTH, queue_q, stats.depth + stats.held_count);
    add_level(exporter, RT_METRIC_QUEUE_CAPACITY, queue_q, stats.capacity);
    count_since(exporter, RT_METRIC_QUEUE_WAIT, queue_q, stats.wait_ns_sum, &seen.wait_ns_sum);
    count_since(exporter, RT_METRIC_QUEUE_SAMPLES, queue_q, stats.wait_samples_count,
                &seen.wait_samples_count);
    count_since(exporter, RT_METRIC_BUSY_REJECTIONS, rejected, stats.rejected_count,
                &seen.rejected_count);
    count_since(exporter, RT_METRIC_QUEUE_DROPPED, dropped, stats.dropped_count, &dropped_before);
    count_since(exporter, RT_METRIC_DROPS, queue_q, stats.dropped_count, &seen.dropped_count);
    remember(exporter, &seen);
}

static void collect_bus(struct rt_exporter *exporter, const struct rt_registry_entry *entry,
                        struct rt_bus *bus)
{
    struct rt_bus_stats *stats = &exporter->bus_stats;

    rt_bus_get_stats(bus, stats);
    for (uint32_t i = 0; i < stats->subscribers_count && has_room(exporter); i++) {
        const struct rt_bus_lag *lag = &stats->lags[i];
        const char *const values[] = {entry->owner, entry->name, lag->consumer};
        struct seen seen = seen_before(exporter, entry->birth, lag->birth);

        count_since(exporter, RT_METRIC_BUS_LAGGED, values, lag->lost_count, &seen.lost_count);
        remember(exporter, &seen);
    }
}

static void collect_strands(struct rt_exporter *exporter, const struct rt_registry_entry *entry,
                            struct rt_strands *strands)
{
    struct seen seen = seen_before(exporter, entry->birth, 0);
    const char *q = q_of(exporter, entry);
    const char *const queue_q[] = {entry->owner, entry->name, q};
    const char *const rejected[] = {entry->owner, "", entry->name, q};
    const char *const panicked[] = {entry->owner, entry->name, ron_err_reason(RON_ERR_INTERNAL)};
    struct rt_strands_stats stats;

    rt_strands_get_stats(strands, &stats);
    add_level(exporter, RT_METRIC_QUEUE_DEPTH, queue_q, stats.items_count);
    add_level(exporter, RT_METRIC_QUEUE_CAPACITY, queue_q, stats.items_max);
    add_level(exporter, RT_METRIC_LANES_OPEN, queue_q, stats.lanes_count);
    add_level(exporter, RT_METRIC_LANES_READY, queue_q, stats.lanes_ready_count);
    add_level(exporter, RT_METRIC_LANES_RUNNING, queue_q, stats.lanes_running_count);
    count_since(exporter, RT_METRIC_LANE_ITEMS, queue_q, stats.handled_count, &seen.done_count);
    count_since(exporter, RT_METRIC_BUSY_REJECTIONS, rejected, stats.rejected_count,
                &seen.rejected_count);
    /* Only a panic drops while the set lives. */
    count_since(exporter, RT_METRIC_QUEUE_DROPPED, panicked, stats.dropped_count,
                &seen.dropped_count);
    remember(exporter, &seen);
}

static void collect_timers(struct rt_exporter *exporter, const struct rt_registry_entry *entry,
                           struct rt_timers *timers)
{
    struct seen seen = seen_before(exporter, entry->birth, 0);
    const char *const values[] = {entry->owner, entry->name};
    struct rt_timers_stats stats;

    rt_timers_get_stats(timers, &stats);
    add_level(exporter, RT_METRIC_TIMERS_ARMED, values, stats.pending_count);
    count_since(exporter, RT_METRIC_TIMERS_FIRED, values, stats.fired_count, &seen.done_count);
    count_since(exporter, RT_METRIC_TIMERS_LATE, values, stats.late_ns_sum, &seen.late_ns_sum);
    remember(exporter, &seen);
}

void rt_exporter_follow_role(struct rt_exporter *exporter, struct rt_lifecycle *lifecycle)
{
    RON_ASSERT(exporter->roles_count < RT_EXPORTER_ROLES_MAX);
    RON_ASSERT(lifecycle != NULL);
    exporter->roles[exporter->roles_count++] = lifecycle;
}

static void collect_role(struct rt_exporter *exporter, struct rt_lifecycle *lifecycle)
{
    const struct rt_life_role *role = rt_lifecycle_role(lifecycle);
    const uint32_t raised = rt_lifecycle_status(lifecycle).raised;

    for (unsigned i = 0; i < rt_causes_count(&role->causes); i++) {
        const char *const values[] = {role->name, rt_cause_at(&role->causes, i)->name};
        struct rt_gauge gauge = rt_metrics_gauge(
            exporter->options.metrics, &rt_metric_table[RT_METRIC_READYZ_DEGRADED], values);

        rt_metric_set(gauge, (raised & RT_CAUSE_BIT(i)) != 0 ? 1 : 0);
    }
}

void rt_exporter_follow(struct rt_exporter *exporter, const char *role,
                        struct rt_supervisor *supervisor)
{
    RON_ASSERT(exporter->followed_count < RT_EXPORTER_SUPERVISORS_MAX);
    RON_ASSERT(supervisor != NULL);
    exporter->followed[exporter->followed_count++] = (struct followed){.role = role,
                                                                       .supervisor = supervisor};
}

static void collect_tasks(struct rt_exporter *exporter, struct followed *followed)
{
    struct rt_task_counters counters[RT_TASK_KINDS_MAX];
    size_t count = rt_supervisor_get_counters(followed->supervisor, counters, RT_TASK_KINDS_MAX);

    RON_ASSERT(count <= RT_TASK_KINDS_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct rt_task_counters *now = &counters[i];
        struct rt_task_counters *seen = &followed->seen[i];
        const char *const values[] = {followed->role, now->kind};

        count_since(exporter, RT_METRIC_TASKS_SPAWNED, values, now->spawned_count,
                    &seen->spawned_count);
        count_since(exporter, RT_METRIC_TASKS_ABORTED, values, now->aborted_count,
                    &seen->aborted_count);
        count_since(exporter, RT_METRIC_TASKS_CANCELED, values, now->canceled_count,
                    &seen->canceled_count);
        count_since(exporter, RT_METRIC_TASKS_PANICKED, values, now->panicked_count,
                    &seen->panicked_count);
        count_since(exporter, RT_METRIC_TASKS_LEAKED, values, now->leaked_count,
                    &seen->leaked_count);
        count_since(exporter, RT_METRIC_TASKS_GAVE_UP, values, now->escalated_count,
                    &seen->escalated_count);
        count_since(exporter, RT_METRIC_TASKS_REVIVED, values, now->revived_count,
                    &seen->revived_count);
        count_since(exporter, RT_METRIC_SERVICE_RESTARTS, values, now->restarted_count,
                    &seen->restarted_count);
    }
}

static void collect_log(struct rt_exporter *exporter)
{
    struct rt_log_stats *seen = &exporter->log_seen;
    struct rt_log_stats stats;

    rt_log_get_stats(exporter->options.log, &stats);
    count_since(exporter, RT_METRIC_LOG_LINES, NULL, stats.accepted_count, &seen->accepted_count);
    count_since(exporter, RT_METRIC_LOG_DROPPED, NULL, stats.dropped_count, &seen->dropped_count);
    count_since(exporter, RT_METRIC_LOG_SUPPRESSED, NULL, stats.suppressed_count,
                &seen->suppressed_count);
}

/* A pinned registry entry as the object it is. The registry keeps identities, hence the const. */
static void *object_of(const struct rt_registry_entry *entry)
{
    return (void *)(uintptr_t)entry->object;
}

/* Levels of objects that are gone must not stay. */
static void clear_levels(struct rt_exporter *exporter)
{
    static const unsigned levels[] = {RT_METRIC_QUEUE_DEPTH,   RT_METRIC_QUEUE_CAPACITY,
                                      RT_METRIC_LANES_OPEN,    RT_METRIC_LANES_READY,
                                      RT_METRIC_LANES_RUNNING, RT_METRIC_TIMERS_ARMED};

    for (size_t i = 0; i < RON_ARRAY_COUNT(levels); i++)
        rt_metrics_clear_gauge(exporter->options.metrics, &rt_metric_table[levels[i]]);
}

static void collect_entry(struct rt_exporter *exporter, const struct rt_registry_entry *entry)
{
    switch ((int)entry->kind) {
    case RT_KIND_QUEUE:
        collect_queue(exporter, entry, object_of(entry));
        break;
    case RT_KIND_BUS:
        collect_bus(exporter, entry, object_of(entry));
        break;
    case RT_KIND_STRANDS:
        collect_strands(exporter, entry, object_of(entry));
        break;
    case RT_KIND_TIMER:
        collect_timers(exporter, entry, object_of(entry));
        break;
    default: /* watches count nothing; tasks are counted by their supervisors, logs by themselves */
        break;
    }
}

void rt_exporter_collect(struct rt_exporter *exporter)
{
    struct seen *swap;
    size_t entries_count;

    rt_assert_no_lock_held();
    clear_levels(exporter);
    exporter->next_count = 0;
    exporter->cursor = 0;
    rt_registry_pin();
    entries_count = rt_registry_list(exporter->entries, RT_REGISTRY_MAX);
    for (size_t i = 0; i < entries_count && i < RT_REGISTRY_MAX && has_room(exporter); i++)
        collect_entry(exporter, &exporter->entries[i]);
    rt_registry_unpin();
    for (size_t i = 0; i < exporter->followed_count; i++)
        collect_tasks(exporter, &exporter->followed[i]);
    for (size_t i = 0; i < exporter->roles_count; i++)
        collect_role(exporter, exporter->roles[i]);
    if (exporter->options.log != NULL)
        collect_log(exporter);
    swap = exporter->last;
    exporter->last = exporter->next;
    exporter->next = swap;
    exporter->last_count = exporter->next_count;
}
