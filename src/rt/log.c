/*
 * log.c - the ring of log lines and the task that empties it. See log.h.
 *
 * Lines are numbered; number n lies in slot n % lines_max until the task has taken it. The lock has
 * the highest rank of all, so that anyone may log while holding anything.
 */
#include "rt/log.h"

#include "base/assert.h"
#include "base/mem.h"
#include "rt/atomic.h"
#include "rt/local.h"
#include "rt/lock.h"
#include "rt/log_line.h"
#include "rt/registry.h"

#define LOG_MAGIC 0x106106ffu
enum { TAKE_MAX = 16 }; /* lines handed to the sink at once */

struct slot {
    uint32_t size;
    char text[RT_LOG_LINE_SIZE_MAX];
};

struct rt_log {
    struct rt_lock lock;
    uint32_t magic;
    struct rt_log_options options;
    struct rt_atomic_u32 level_min;
    struct rt_cond lines_cond;   /* the task waits for lines */
    struct rt_cond written_cond; /* flush waits for the sink */
    bool closed RON_GUARDED_BY(log);
    bool running RON_GUARDED_BY(log); /* the task's body */
    bool task_waiting RON_GUARDED_BY(log);
    uint32_t flush_waiting RON_GUARDED_BY(log);
    uint64_t put_count RON_GUARDED_BY(log);     /* number of the next line */
    uint64_t taken_count RON_GUARDED_BY(log);   /* <= put_count <= taken_count + lines_max */
    uint64_t written_count RON_GUARDED_BY(log); /* <= taken_count: the sink has returned */
    uint64_t dropped_count RON_GUARDED_BY(log);
    uint64_t reported_count RON_GUARDED_BY(log); /* of the dropped, those the log tells of */
    struct slot *slots RON_GUARDED_BY(log);
    char out[(TAKE_MAX + 1) * RT_LOG_LINE_SIZE_MAX]; /* the task's own */
};

struct rt_field rt_slice(const char *key, struct ron_slice text)
{
    return (struct rt_field){.key = key, .kind = RT_FIELD_TEXT, .text = text};
}

struct rt_field rt_text(const char *key, const char *text)
{
    return rt_slice(key, ron_slice_text(text));
}

struct rt_field rt_u64(const char *key, uint64_t number)
{
    return (struct rt_field){.key = key, .kind = RT_FIELD_U64, .number = number};
}

struct rt_field rt_i64(const char *key, int64_t number)
{
    return (struct rt_field){.key = key, .kind = RT_FIELD_I64, .number = (uint64_t)number};
}

struct rt_field rt_bool(const char *key, bool value)
{
    return (struct rt_field){.key = key, .kind = RT_FIELD_BOOL, .number = value};
}

struct rt_field rt_error(const struct ron_errinfo *info)
{
    return rt_text("error", info->message);
}

static void log_lock(struct rt_log *log) RON_LOCKS(log)
{
    RON_ASSERT(log->magic == LOG_MAGIC);
    rt_lock_take(&log->lock);
}

static void log_unlock(struct rt_log *log) RON_UNLOCKS(log)
{
    rt_lock_drop(&log->lock);
}

bool rt_log_enabled(const struct rt_log *log, enum rt_log_level level)
{
    return (uint32_t)level >= rt_atomic_load_u32(&log->level_min);
}

void rt_log_set_level(struct rt_log *log, enum rt_log_level level_min)
{
    rt_atomic_store_u32(&log->level_min, (uint32_t)level_min);
}

static size_t form(const struct rt_log *log, enum rt_log_level level, const char *message,
                   const struct rt_field *fields, char line[RT_LOG_LINE_SIZE_MAX])
{
    const struct rt_log_head head = {
        .utc_ms = rt_utc_ms(),
        .level = level,
        .owner = log->options.owner,
        .task = sh_local()->name,
        .message = message,
    };
    return rt_log_form(line, &head, fields, log->options.readable);
}

void rt_log_write(struct rt_log *log, enum rt_log_level level, const char *message,
                  const struct rt_field *fields)
{
    char line[RT_LOG_LINE_SIZE_MAX];
    size_t size;

    if (!rt_log_enabled(log, level))
        return;
    size = form(log, level, message, fields, line);
    log_lock(log);
    if (log->closed || log->put_count - log->taken_count == log->options.lines_max) {
        log->dropped_count++;
    } else {
        struct slot *slot = &log->slots[log->put_count % log->options.lines_max];

        slot->size = (uint32_t)size;
        memcpy(slot->text, line, size);
        log->put_count++;
        if (log->task_waiting)
            rt_cond_signal(&log->lines_cond);
    }
    log_unlock(log);
}

/* Copy lines out, after waiting for some; 0 when closed and empty. *ret_missing_count is how many
 * were dropped before them and not told yet. */
static size_t take_lines(struct rt_log *log, size_t *ret_lines_size,
                         uint64_t *ret_missing_count) RON_BLOCKS
{
    size_t lines_count = 0, size = RT_LOG_LINE_SIZE_MAX; /* the first place is for the report */

    log_lock(log);
    log->written_count = log->taken_count; /* the sink is done with the lines before */
    if (log->flush_waiting > 0)
        rt_cond_broadcast(&log->written_cond);
    while (log->put_count == log->taken_count && !log->closed) {
        log->task_waiting = true;
        (void)rt_cond_wait(&log->lines_cond, &log->lock, SH_NEVER);
        log->task_waiting = false;
    }
    while (lines_count < TAKE_MAX && log->taken_count < log->put_count) {
        const struct slot *slot = &log->slots[log->taken_count % log->options.lines_max];

        RON_ASSERT(slot->size <= RT_LOG_LINE_SIZE_MAX);
        memcpy(log->out + size, slot->text, slot->size);
        size += slot->size;
        log->taken_count++;
        lines_count++;
    }
    *ret_missing_count = log->dropped_count - log->reported_count;
    log->reported_count = log->dropped_count;
    log_unlock(log);
    *ret_lines_size = size - RT_LOG_LINE_SIZE_MAX;
    return lines_count;
}

/* The body's end; when the sink panicked, the lines it had are lost and counted. */
static void leave(void *argument)
{
    struct rt_log *log = argument;

    log_lock(log);
    log->running = false;
    log->dropped_count += log->taken_count - log->written_count;
    log->written_count = log->taken_count;
    if (log->flush_waiting > 0)
        rt_cond_broadcast(&log->written_cond);
    log_unlock(log);
}

static void report_missing(struct rt_log *log, uint64_t missing_count) RON_BLOCKS
{
    const struct rt_field fields[] = {rt_u64("lines", missing_count), {0}};
    size_t size = form(log, RT_LOG_WARN, "log lines were dropped", fields, log->out);

    rt_assert_no_lock_held();
    log->options.sink(log->options.sink_context, ron_slice_of(log->out, size));
}

static enum ron_err log_main(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct rt_log *log = argument;
    struct rt_cleanup cleanup;
    uint64_t missing_count = 0;
    size_t size = 0;

    (void)task;
    log_lock(log);
    log->running = true;
    log_unlock(log);
    rt_cleanup_push(&cleanup, leave, log);
    while (take_lines(log, &size, &missing_count) > 0) {
        if (missing_count > 0)
            report_missing(log, missing_count);
        log->options.sink(log->options.sink_context,
                          ron_slice_of(log->out + RT_LOG_LINE_SIZE_MAX, size));
    }
    if (missing_count > 0)
        report_missing(log, missing_count);
    rt_cleanup_pop(&cleanup, true);
    return RON_ERR_OK;
}

static void close_log(void *argument)
{
    struct rt_log *log = argument;

    log_lock(log);
    log->closed = true;
    rt_cond_signal(&log->lines_cond);
    log_unlock(log);
}

enum ron_err rt_log_flush(struct rt_log *log, struct rt_deadline deadline,
                          struct ron_errinfo *reterr)
{
    bool woken = true, written, running;
    uint64_t wanted;

    rt_assert_no_lock_held();
    log_lock(log);
    wanted = log->put_count;
    while (log->written_count < wanted && log->running && woken) {
        log->flush_waiting++;
        woken = rt_cond_wait(&log->written_cond, &log->lock, deadline.at_ns);
        log->flush_waiting--;
    }
    written = log->written_count >= wanted;
    running = log->running;
    log_unlock(log);
    if (written)
        return RON_ERR_OK;
    if (!running)
        return ron_fail(reterr, RON_ERR_CANCELED, "log %s has ended", log->options.name);
    return ron_fail(reterr, RON_ERR_TIMEOUT, "log %s: the sink is behind", log->options.name);
}

uint64_t rt_log_dropped_count(struct rt_log *log)
{
    uint64_t dropped_count;

    log_lock(log);
    dropped_count = log->dropped_count;
    log_unlock(log);
    return dropped_count;
}

static enum ron_err log_start(struct rt_log *log, struct rt_supervisor *supervisor,
                              struct ron_errinfo *reterr)
{
    const struct rt_registry_entry entry = {
        .object = log,
        .kind = RT_KIND_QUEUE,
        .name = log->options.name,
        .policy = "full drops the new line",
        .owner = log->options.owner,
        .capacity = log->options.lines_max,
    };
    const struct rt_task_options options = {
        .kind = "log",
        .name = log->options.name,
        .owner = log->options.owner,
        .fn = log_main,
        .wake = close_log,
        .argument = log,
    };
    struct rt_task *task;
    enum ron_err err = rt_registry_add(&entry, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = rt_task_spawn(supervisor, &options, &task, reterr);
    if (err != RON_ERR_OK)
        rt_registry_remove(log);
    return err;
}

static void log_fini(struct rt_log *log)
{
    rt_cond_fini(&log->written_cond);
    rt_cond_fini(&log->lines_cond);
    rt_lock_fini(&log->lock);
}

enum ron_err rt_log_new(const struct rt_log_options *options, struct rt_supervisor *supervisor,
                        struct rt_log **ret_log, struct ron_errinfo *reterr)
{
    struct rt_log *log = ron_mem_alloc(sizeof(*log));
    struct slot *slots = ron_mem_alloc_array(options->lines_max, sizeof(*slots));
    enum ron_err err;

    RON_ASSERT(options->lines_max > 0);
    RON_ASSERT(options->lines_max <= RT_LOG_LINES_MAX);
    RON_ASSERT(options->sink != NULL);
    if (log == NULL || slots == NULL) {
        err = ron_fail(reterr, RON_ERR_NO_MEMORY, "log %s of %u lines", options->name,
                       options->lines_max);
    } else {
        rt_lock_init(&log->lock, options->name, RON_RANK_log);
        rt_cond_init(&log->lines_cond, options->name);
        rt_cond_init(&log->written_cond, options->name);
        log->magic = LOG_MAGIC;
        log->options = *options;
        rt_log_set_level(log, options->level_min);
        log_lock(log);
        log->slots = slots;
        log->running = true;
        log_unlock(log);
        err = log_start(log, supervisor, reterr);
        if (err != RON_ERR_OK)
            log_fini(log);
    }
    if (err != RON_ERR_OK) {
        ron_mem_free(slots);
        ron_mem_free(log);
        return err;
    }
    *ret_log = log;
    return RON_ERR_OK;
}

struct rt_log *rt_log_free(struct rt_log *log)
{
    struct slot *slots;

    if (log == NULL)
        return NULL;
    log_lock(log);
    RON_ASSERT(!log->running);
    RON_ASSERT(log->flush_waiting == 0);
    slots = RON_TAKE(log->slots);
    log->magic = ~LOG_MAGIC;
    log_unlock(log);
    rt_registry_remove(log);
    log_fini(log);
    ron_mem_free(slots);
    return ron_mem_free(log);
}
