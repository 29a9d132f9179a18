/*
 * log.c - the ring of lines, its writer, and the limits of call sites. See log.h.
 *
 * The ring holds whole lines, each behind its size in two bytes. The writer copies as many as fit
 * its own buffer out of it, releases the lock and hands them to the output in one call. A line that
 * finds the writer idle wakes it; the writer then lets lines gather for a moment, so a burst pays
 * for one wake-up and one write.
 */
#include "rt/log.h"

#include "base/assert.h"
#include "base/mem.h"
#include "rt/local.h"
#include "rt/lock.h"
#include "rt/log_line.h"
#include "rt/slot.h"

#define LOG_MAGIC 0x1091091du

enum {
    SIZE_SIZE = sizeof(uint16_t),
    BATCH_SIZE = 64 << 10,
    GATHER_NS = 2000000,
};
_Static_assert(RT_LOG_LINE_SIZE_MAX <= UINT16_MAX, "a size fits its two bytes");
_Static_assert(BATCH_SIZE >= 2 * RT_LOG_LINE_SIZE_MAX, "a line and the report of drops");

struct rt_log {
    struct rt_lock lock;
    uint32_t magic;
    uint32_t ring_size;
    enum rt_log_form form;
    const char *service; /* or NULL */
    uint16_t instance;   /* in the windows of call sites */
    _Atomic int level;   /* relaxed: a change is seen soon */
    rt_log_write_fn *write;
    void *write_context;
    struct rt_cond lines_cond;   /* the writer waits for lines */
    struct rt_cond written_cond; /* flush waits for the writer */
    struct sh_thread *thread;    /* of the writer; NULL once stopped */
    uint8_t *batch;              /* the writer's own */
    uint8_t *ring RON_GUARDED_BY(log);
    uint32_t head RON_GUARDED_BY(log); /* of the oldest line */
    uint32_t used_size RON_GUARDED_BY(log);
    bool idle RON_GUARDED_BY(log);      /* the writer waits for the first line */
    bool gathering RON_GUARDED_BY(log); /* the writer waits for more lines */
    bool closed RON_GUARDED_BY(log);
    bool failing RON_GUARDED_BY(log); /* the last write failed: drops are told when one succeeds */
    uint32_t flushes_waiting RON_GUARDED_BY(log);
    uint64_t accepted_count RON_GUARDED_BY(log);
    uint64_t
        finished_count RON_GUARDED_BY(log); /* of those accepted: written, or lost in writing */
    uint64_t dropped_count RON_GUARDED_BY(log);
    uint64_t told_count RON_GUARDED_BY(log); /* of those dropped */
    _Atomic uint64_t suppressed_count;
};

static void log_lock(struct rt_log *log) RON_LOCKS(log)
{
    RON_ASSERT(log->magic == LOG_MAGIC);
    rt_lock_take(&log->lock);
}

static void log_unlock(struct rt_log *log) RON_UNLOCKS(log)
{
    rt_lock_drop(&log->lock);
}

/* Copy into the ring behind its used part; the caller has checked the room. */
static void ring_put(struct rt_log *log, const void *data, uint32_t size) RON_NEEDS(log)
{
    uint32_t at = log->head + log->used_size; /* both below 2^26 */
    uint32_t first_size;

    RON_ASSERT(size <= log->ring_size - log->used_size);
    at = at < log->ring_size ? at : at - log->ring_size;
    first_size = size < log->ring_size - at ? size : log->ring_size - at;
    memcpy(log->ring + at, data, first_size);
    memcpy(log->ring, (const uint8_t *)data + first_size, size - first_size);
    log->used_size += size;
}

static void ring_take(struct rt_log *log, void *out, uint32_t size) RON_NEEDS(log)
{
    uint32_t first_size;

    RON_ASSERT(size <= log->used_size);
    RON_ASSERT(log->head < log->ring_size);
    first_size = size < log->ring_size - log->head ? size : log->ring_size - log->head;
    memcpy(out, log->ring + log->head, first_size);
    memcpy((uint8_t *)out + first_size, log->ring, size - first_size);
    log->head = log->head + size < log->ring_size ? log->head + size
                                                  : log->head + size - log->ring_size;
    log->used_size -= size;
}

static void put_line(struct rt_log *log, const struct log_line *line)
{
    uint16_t size = (uint16_t)line->size;

    log_lock(log);
    if (log->closed || SIZE_SIZE + line->size > log->ring_size - log->used_size) {
        log->dropped_count++;
    } else {
        ring_put(log, &size, SIZE_SIZE);
        ring_put(log, line->text, size);
        log->accepted_count++;
        if (log->idle || (log->gathering && log->used_size > log->ring_size / 2)) {
            log->idle = false;
            log->gathering = false;
            rt_cond_signal(&log->lines_cond);
        }
    }
    log_unlock(log);
}

/*
 * A site's window is 16 bits of log, 32 bits of second, 16 bits of lines logged in it. The log is
 * in it because a simulation starts many, each at the same second. True if the site may log;
 * *ret_suppressed_count is then what it could not since it last did.
 */
static bool site_admits(struct rt_log *log, struct rt_log_site *site,
                        uint64_t *ret_suppressed_count)
{
    const uint64_t second = rt_now_ns() / RT_NS_PER_S;
    const uint64_t key = (uint64_t)log->instance << 48 | (second & UINT32_MAX) << 16;
    uint64_t before = atomic_load_explicit(&site->window, memory_order_relaxed);
    uint64_t count, suppressed_count = 0;

    do {
        count = (before & ~(uint64_t)UINT16_MAX) == key ? before & UINT16_MAX : 0;
        if (count >= RT_LOG_SITE_LINES_PER_S) {
            atomic_fetch_add_explicit(&site->suppressed_count, 1, memory_order_relaxed);
            atomic_fetch_add_explicit(&log->suppressed_count, 1, memory_order_relaxed);
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&site->window, &before, key | (count + 1),
                                                    memory_order_relaxed, memory_order_relaxed));
    if (count == 0)
        suppressed_count = atomic_exchange_explicit(&site->suppressed_count, 0,
                                                    memory_order_relaxed);
    *ret_suppressed_count = before >> 48 == log->instance ? suppressed_count : 0;
    return true;
}

void rt_log_at(struct rt_log *log, struct rt_log_site *site, const struct rt_log_field *fields,
               size_t fields_count)
{
    const struct log_head head = {
        .utc_ms = rt_utc_ms(),
        .level = site->level,
        .service = log->service,
        .task = sh_local()->name,
        .message = site->message,
        .file = site->file,
        .line = site->line,
    };
    uint64_t suppressed_count;
    struct log_line line;

    if (!site_admits(log, site, &suppressed_count))
        return;
    log_line_begin(&line, log->form, &head);
    if (suppressed_count > 0)
        log_line_put(&line, &(const struct rt_log_field){.key = "suppressed",
                                                         .type = RT_LOG_TYPE_U64,
                                                         .u64 = suppressed_count});
    for (size_t i = 0; i < fields_count; i++)
        log_line_put(&line, &fields[i]);
    log_line_end(&line);
    put_line(log, &line);
}

/* The writer. */

static bool has_work(const struct rt_log *log) RON_NEEDS(log)
{
    return log->used_size > 0 || log->closed ||
           (log->dropped_count > log->told_count && !log->failing);
}

static void wait_for_lines(struct rt_log *log) RON_NEEDS(log)
{
    bool woken = true;
    uint64_t gather_until_ns;

    while (!has_work(log)) {
        log->idle = true;
        (void)rt_cond_wait(&log->lines_cond, &log->lock, SH_NEVER);
    }
    log->idle = false;
    gather_until_ns = rt_deadline_after_ns(GATHER_NS).at_ns;
    log->gathering = !log->closed && log->flushes_waiting == 0 &&
                     log->used_size <= log->ring_size / 2;
    while (log->gathering && woken)
        woken = rt_cond_wait(&log->lines_cond, &log->lock, gather_until_ns);
    log->gathering = false;
}

/* Move lines from the ring to the batch, leaving room for one more; returns their number. */
static uint64_t take_lines(struct rt_log *log, size_t *ret_size) RON_NEEDS(log)
{
    uint64_t count = 0;
    size_t size = 0;

    while (log->used_size > 0 && size <= BATCH_SIZE - 2 * RT_LOG_LINE_SIZE_MAX) {
        uint16_t line_size;

        ring_take(log, &line_size, SIZE_SIZE);
        RON_ASSERT(line_size <= RT_LOG_LINE_SIZE_MAX);
        ring_take(log, log->batch + size, line_size);
        size += line_size;
        count++;
    }
    *ret_size = size;
    return count;
}

/* "n lines were dropped", as a line of the batch. */
static size_t put_drops(struct rt_log *log, size_t batch_size, uint64_t dropped_count)
{
    const struct log_head head = {
        .utc_ms = rt_utc_ms(),
        .level = RT_LOG_WARN,
        .service = log->service,
        .task = sh_local()->name,
        .message = "log lines were dropped",
        .file = __FILE__,
        .line = __LINE__,
    };
    const struct rt_log_field field = rt_log_u64("count", dropped_count);
    struct log_line line;

    log_line_begin(&line, log->form, &head);
    log_line_put(&line, &field);
    log_line_end(&line);
    RON_ASSERT(line.size <= BATCH_SIZE - batch_size);
    memcpy(log->batch + batch_size, line.text, line.size);
    return line.size;
}

/* One batch from ring to output; false once closed and empty. */
static bool write_batch(struct rt_log *log) RON_BLOCKS
{
    uint64_t lines_count, untold_count;
    size_t size;
    bool more, failed;

    log_lock(log);
    wait_for_lines(log);
    lines_count = take_lines(log, &size);
    untold_count = log->dropped_count - log->told_count;
    log_unlock(log);
    if (untold_count > 0)
        size += put_drops(log, size, untold_count);
    failed = size > 0 &&
             log->write(log->write_context, ron_slice_of(log->batch, size), NULL) != RON_ERR_OK;
    log_lock(log);
    log->failing = failed;
    log->finished_count += lines_count;
    if (failed)
        log->dropped_count += lines_count;
    else
        log->told_count += untold_count;
    more = !log->closed || log->used_size > 0;
    rt_cond_broadcast(&log->written_cond);
    log_unlock(log);
    return more;
}

static void run_writer(void *context) RON_BLOCKS
{
    struct rt_log *log = context;

    sh_local()->name = "log";
    while (write_batch(log)) {
    }
    rt_slot_release();
}

static void log_destroy(struct rt_log *log)
{
    uint8_t *ring;

    log_lock(log);
    ring = RON_TAKE(log->ring);
    log->magic = ~LOG_MAGIC;
    log_unlock(log);
    rt_cond_fini(&log->written_cond);
    rt_cond_fini(&log->lines_cond);
    rt_lock_fini(&log->lock);
    ron_mem_free(ring);
    ron_mem_free(log->batch);
    ron_mem_free(log);
}

enum ron_err rt_log_new(const struct rt_log_options *options, struct rt_log **ret_log,
                        struct ron_errinfo *reterr)
{
    static _Atomic uint16_t instances_count;
    struct rt_log *log = ron_mem_alloc(sizeof(*log));
    uint8_t *ring = ron_mem_alloc(options->ring_size);
    uint8_t *batch = ron_mem_alloc(BATCH_SIZE);
    enum ron_err err;

    RON_ASSERT(options->ring_size >= 4 * RT_LOG_LINE_SIZE_MAX);
    RON_ASSERT(options->ring_size <= RT_LOG_RING_SIZE_MAX);
    RON_ASSERT(options->write != NULL);
    if (log == NULL || ring == NULL || batch == NULL) {
        ron_mem_free(batch);
        ron_mem_free(ring);
        ron_mem_free(log);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "log of %u bytes", options->ring_size);
    }
    rt_lock_init(&log->lock, "log", RON_RANK_log);
    rt_cond_init(&log->lines_cond, "log lines");
    rt_cond_init(&log->written_cond, "log written");
    log->ring_size = options->ring_size;
    log->form = options->form;
    log->service = options->service;
    log->write = options->write;
    log->write_context = options->write_context;
    log->batch = batch;
    log->instance = (uint16_t)(atomic_fetch_add_explicit(&instances_count, 1,
                                                         memory_order_relaxed) %
                                   UINT16_MAX +
                               1);
    log->magic = LOG_MAGIC;
    rt_log_set_level(log, options->level);
    log_lock(log);
    log->ring = ring;
    log_unlock(log);
    err = sh_spawn("log", run_writer, log, &log->thread, reterr);
    if (err != RON_ERR_OK) {
        log_destroy(log);
        return err;
    }
    *ret_log = log;
    return RON_ERR_OK;
}

enum ron_err rt_log_stop(struct rt_log *log, struct rt_deadline deadline,
                         struct ron_errinfo *reterr)
{
    rt_assert_no_lock_held();
    log_lock(log);
    log->closed = true;
    log->gathering = false;
    rt_cond_signal(&log->lines_cond);
    log_unlock(log);
    if (log->thread != NULL && !sh_join(log->thread, deadline.at_ns))
        return ron_fail(reterr, RON_ERR_TIMEOUT, "the log's output is stuck");
    log->thread = NULL;
    return RON_ERR_OK;
}

struct rt_log *rt_log_free(struct rt_log *log)
{
    if (log == NULL)
        return NULL;
    RON_ASSERT(log->thread == NULL);
    log_destroy(log);
    return NULL;
}

enum ron_err rt_log_flush(struct rt_log *log, struct rt_deadline deadline,
                          struct ron_errinfo *reterr)
{
    bool woken = true, done;
    uint64_t wanted_count;

    rt_assert_no_lock_held();
    log_lock(log);
    wanted_count = log->accepted_count;
    log->flushes_waiting++;
    log->gathering = false;
    rt_cond_signal(&log->lines_cond);
    while (log->finished_count < wanted_count && woken)
        woken = rt_cond_wait(&log->written_cond, &log->lock, deadline.at_ns);
    done = log->finished_count >= wanted_count;
    log->flushes_waiting--;
    log_unlock(log);
    if (!done)
        return ron_fail(reterr, RON_ERR_TIMEOUT, "log lines are not written in time");
    return RON_ERR_OK;
}

void rt_log_set_level(struct rt_log *log, enum rt_log_level level)
{
    atomic_store_explicit(&log->level, (int)level, memory_order_relaxed);
}

bool rt_log_enabled(const struct rt_log *log, enum rt_log_level level)
{
    return log != NULL && (int)level >= atomic_load_explicit(&log->level, memory_order_relaxed);
}

void rt_log_get_stats(struct rt_log *log, struct rt_log_stats *ret_stats)
{
    log_lock(log);
    ret_stats->accepted_count = log->accepted_count;
    ret_stats->dropped_count = log->dropped_count;
    ret_stats->suppressed_count = atomic_load_explicit(&log->suppressed_count,
                                                       memory_order_relaxed);
    log_unlock(log);
}
