/*
 * api_sums.c - what capabilities have spent today, read from the log when a process starts.
 *
 * Daily sums are memory of the evaluator; the log has every debit of the day with its capability.
 * Until they are known, capabilities with max_daily are answered NotReady and others not at all
 * concerned. Read again after a failure, it begins anew. Only what clients wrote themselves counts,
 * as when it was charged: a role's writes bear the capability of whom it acted for.
 */
#include "base/rfc3339.h"
#include "ledger/api_impl.h"
#include "ledger/core_frame.h"
#include "rt/clock.h"

enum { TICK_MS = 100, BATCHES = 1024 };

struct sums {
    struct ledger_api *api;
    uint64_t day;
    uint64_t lost; /* batches whose capability found no room */
};

static enum ron_err commit_day(struct ledger_api *api, uint64_t batch, uint64_t *ret_day,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_frame frame;
    struct ron_buf bytes;
    enum ron_err err;

    ron_buf_init(&bytes, RON_ALLOCATION_SIZE_MAX);
    err = ledger_read_batch(api->options.service, batch, &bytes, reterr);
    if (err == RON_ERR_OK)
        err = ledger_frame_decode(ron_buf_slice(&bytes), &frame, reterr);
    if (err == RON_ERR_OK)
        *ret_day = ron_day_of_ms(frame.stamp.commit_ms);
    ron_buf_fini(&bytes);
    return err;
}

/* The first batch of the day, by halving: commit time never goes back. */
static enum ron_err find_first(struct ledger_api *api, uint64_t day, uint64_t last,
                               uint64_t *ret_first, struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t low = 1, high = last + 1; /* before low: earlier days; from high on: this day */

    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        uint64_t found = 0;
        enum ron_err err = commit_day(api, middle, &found, reterr);

        if (err != RON_ERR_OK)
            return err;
        if (found < day)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_first = low;
    return RON_ERR_OK;
}

static bool is_debit(const struct ledger_entry *entry)
{
    return (entry->flags & LEDGER_FLAG_BY_LEDGER) == 0 &&
           (entry->kind == LEDGER_TRANSFER || entry->kind == LEDGER_BURN ||
            entry->kind == LEDGER_HOLD || entry->kind == LEDGER_DEBIT);
}

static enum ron_err charge_batch(void *context, uint64_t number, struct ron_slice bytes,
                                 struct ron_errinfo *reterr)
{
    struct sums *sums = context;
    struct ron_u128 total = {0};
    struct ledger_frame frame;
    struct ron_errinfo info = {0};
    enum ron_err err = ledger_frame_decode(bytes, &frame, reterr);

    if (err != RON_ERR_OK)
        return ron_wrap(reterr, RON_ERR_WAL_CORRUPT, "batch %llu", (unsigned long long)number);
    if (frame.command != LEDGER_COMMAND_INGEST || frame.stamp.caller != LEDGER_CALLER_DIRECT)
        return RON_ERR_OK;
    for (uint32_t i = 0; i < frame.entries_count; i++) {
        struct ledger_entry entry;

        memcpy(&entry, frame.entries.data + (size_t)i * RON_ENTRY_SIZE, sizeof(entry));
        if (is_debit(&entry) && !ron_u128_add(total, entry.amount, &total))
            total = RON_U128_MAX;
    }
    if (ron_u128_is_zero(total))
        return RON_ERR_OK;
    err = ledger_checks_charge(sums->api->checks, frame.stamp.capability, total,
                               frame.stamp.commit_ms, &info);
    if (err == RON_ERR_BUSY) { /* it refuses those that it does not know, until midnight */
        sums->lost++;
        return RON_ERR_OK;
    }
    if (err != RON_ERR_OK && reterr != NULL)
        *reterr = info;
    return err;
}

/* Recovery first. */
static enum ron_err await_start(struct ledger_api *api, struct rt_task *task,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = RON_ERR_TIMEOUT;

    while (err == RON_ERR_TIMEOUT && !rt_task_canceled(task)) {
        err = ledger_service_await_start(api->options.service, rt_deadline_after_ms(TICK_MS),
                                         reterr);
        rt_task_beat(task);
    }
    return err;
}

static enum ron_err read_day(struct sums *sums, struct rt_task *task,
                             struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_api *api = sums->api;
    const struct ledger_root head = ledger_read_head(api->options.service);
    uint64_t first = head.batch + 1;
    enum ron_err err = RON_ERR_OK;

    if (head.batch > 0 && ron_day_of_ms(head.commit_ms) >= sums->day)
        err = find_first(api, sums->day, head.batch, &first, reterr);
    while (err == RON_ERR_OK && first <= head.batch && !rt_task_canceled(task)) {
        const uint64_t last = head.batch - first < BATCHES ? head.batch : first + BATCHES - 1;

        err = ledger_service_read_each(api->options.service, first, last, charge_batch, sums,
                                       reterr);
        rt_task_beat(task);
        first = last + 1;
    }
    return err;
}

/* However a run that read them ends: known, or for the next one to read. */
static void end_reading(void *argument)
{
    struct ledger_api *api = argument;

    (void)rt_atomic_cas_u32(&api->sums_state, API_SUMS_READING, API_SUMS_MISSING);
}

enum ron_err sums_restore(struct ledger_api *api, struct rt_task *task)
{
    struct sums sums = {.api = api, .day = ron_day_of_ms(rt_utc_ms())};
    struct ron_errinfo *info = rt_task_reterr(task);
    struct rt_cleanup cleanup;
    enum ron_err err;

    if (!rt_atomic_cas_u32(&api->sums_state, API_SUMS_MISSING, API_SUMS_READING))
        return RON_ERR_OK;
    rt_cleanup_push(&cleanup, end_reading, api);
    ledger_checks_forget(api->checks);
    err = await_start(api, task, info);
    if (err == RON_ERR_OK)
        err = read_day(&sums, task, info);
    if (err == RON_ERR_OK && !rt_task_canceled(task))
        rt_atomic_store_u32(&api->sums_state, API_SUMS_KNOWN);
    rt_cleanup_pop(&cleanup, true);
    if (rt_task_canceled(task))
        return RON_ERR_OK; /* nothing is asked any more */
    if (sums.lost > 0)
        rt_log(api->options.log, RT_LOG_WARN, "daily sums found no room",
               rt_log_u64("batches", sums.lost));
    return err;
}
