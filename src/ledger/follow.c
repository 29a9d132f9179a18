/*
 * follow.c - what the service tells its follower (struct ledger_follower): every batch once it is
 * durable, the newest head, and after a start whatever it does not have yet.
 *
 * An error is logged once; from then on the follower is told nothing, and the ledger goes on.
 */
#include "ledger/follow.h"

#include "base/mem.h"

static bool is_followed(const struct ledger_service *service)
{
    return service->options.follower.extend != NULL &&
           rt_atomic_load_u32(&service->follower_lost) == 0;
}

void follow_end(struct ledger_service *service)
{
    if (service->options.follower.end != NULL)
        service->options.follower.end(service->options.follower.context);
}

static void lose(struct ledger_service *service, const struct ron_errinfo *info)
{
    if (!rt_atomic_cas_u32(&service->follower_lost, 0, 1))
        return;
    rt_log(service->options.log, RT_LOG_ERROR, "heads and proofs stand still until the next start",
           rt_log_info(info));
    follow_end(service);
}

static uint64_t size_of(struct ledger_service *service)
{
    return service->options.follower.size(service->options.follower.context);
}

static enum ron_err extend(struct ledger_service *service, uint64_t seq_start,
                           const struct ron_sha256 *hashes, size_t hashes_count,
                           const struct ron_sha256 *nodes, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ledger_follower *follower = &service->options.follower;

    rt_assert_no_lock_held();
    return follower->extend(follower->context, seq_start, hashes, hashes_count, nodes, reterr);
}

void follow_leaves(struct ledger_service *service, uint64_t seq_start,
                   const struct ron_sha256 *hashes, size_t hashes_count,
                   const struct ron_sha256 *nodes)
{
    struct ron_errinfo info = {0};

    if (!is_followed(service))
        return;
    if (extend(service, seq_start, hashes, hashes_count, nodes, &info) != RON_ERR_OK)
        lose(service, &info);
}

void follow_replayed(struct ledger_service *service, const struct ledger_batch *batch)
{
    RON_ASSERT(batch->sealed);
    if (is_followed(service) && batch->seq_start <= size_of(service) + 1)
        follow_leaves(service, batch->seq_start, batch->hashes, batch->entries_count, NULL);
    /* Beyond a gap it is given from the log when replay is over. */
}

/* --- After a start -----------------------------------------------------------------------------
 */

struct reading {
    struct rt_task *task;
    struct ledger_root head;
    struct ron_buf buf;
    struct ron_sha256 *hashes; /* LEDGER_BATCH_ENTRIES_MAX */
};

static enum ron_err give_batch(struct ledger_service *service, struct reading *reading,
                               uint64_t batch, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_frame frame;
    enum ron_err err;

    if (rt_task_canceled(reading->task) || rt_queue_closed(service->ingress))
        return ron_fail(reterr, RON_ERR_CANCELED, "stopped before batch %llu was given to it",
                        (unsigned long long)batch);
    ron_buf_reset(&reading->buf);
    err = ledger_engine_read(service->engine, batch, &reading->buf, reterr);
    if (err == RON_ERR_OK)
        err = ledger_frame_decode(ron_buf_slice(&reading->buf), &frame, reterr);
    if (err != RON_ERR_OK)
        return err;
    ledger_frame_leaves(&frame, reading->hashes);
    rt_task_beat(reading->task);
    return extend(service, frame.seq_start, reading->hashes, frame.entries_count, NULL, reterr);
}

/* From the log, what is committed and the follower does not have. */
static enum ron_err catch_up(struct ledger_service *service, struct reading *reading,
                             struct ron_errinfo *reterr) RON_BLOCKS
{
    const uint64_t size = size_of(service);
    uint64_t batch = 0;
    enum ron_err err;

    if (size >= reading->head.seq)
        return RON_ERR_OK;
    if (reading->hashes == NULL)
        reading->hashes = ron_mem_alloc_array(LEDGER_BATCH_ENTRIES_MAX, sizeof(struct ron_sha256));
    if (reading->hashes == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "leaf hashes of a batch");
    err = roots_find_batch(service, size, reading->head.batch, &reading->buf, &batch, reterr);
    for (; err == RON_ERR_OK && batch <= reading->head.batch; batch++)
        err = give_batch(service, reading, batch, reterr);
    return err;
}

static enum ron_err settle(struct ledger_service *service, const struct ledger_root *head,
                           struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ledger_follower *follower = &service->options.follower;
    const uint64_t size = size_of(service);
    enum ron_err err;

    rt_assert_no_lock_held();
    err = follower->settle(follower->context, head, reterr);
    if (err == RON_ERR_OK && size_of(service) < size)
        rt_log(service->options.log, RT_LOG_WARN, "the tree was not the log's: it is made again",
               rt_log_u64("leaves", size), rt_log_u64("log", head->seq));
    return err;
}

static enum ron_err tell_recovered(struct ledger_service *service, struct reading *reading,
                                   struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ledger_follower *follower = &service->options.follower;
    enum ron_err err = RON_ERR_OK;

    /* Twice: it may have emptied itself. */
    for (unsigned round = 0; round < 2 && err == RON_ERR_OK; round++) {
        err = catch_up(service, reading, reterr);
        if (err == RON_ERR_OK)
            err = settle(service, &reading->head, reterr);
    }
    if (err != RON_ERR_OK)
        return err;
    if (size_of(service) != reading->head.seq)
        return ron_fail(reterr, RON_ERR_INTERNAL, "the log's own leaves do not lead to its root");
    err = follower->head(follower->context, &reading->head, reterr);
    if (err != RON_ERR_OK)
        return err;
    rt_atomic_store_u64(&service->roots.told_seq, reading->head.seq);
    return follower->keep(follower->context, true, reterr);
}

void follow_recovered(struct rt_task *task, struct ledger_service *service)
{
    struct reading reading = {.task = task, .head = ledger_read_head(service)};
    struct ron_errinfo info = {0};
    enum ron_err err;

    rt_assert_no_lock_held();
    if (!is_followed(service))
        return;
    ron_buf_init(&reading.buf, service->frame_size_max);
    err = tell_recovered(service, &reading, &info);
    ron_buf_fini(&reading.buf);
    (void)ron_mem_free(reading.hashes);
    if (err == RON_ERR_CANCELED)
        rt_atomic_store_u32(&service->follower_lost, 1); /* behind, and the stop goes on */
    else if (err != RON_ERR_OK)
        lose(service, &info);
}

void follow_damaged(struct ledger_service *service)
{
    const struct ledger_follower *follower = &service->options.follower;
    struct ron_errinfo info = {0};

    rt_assert_no_lock_held();
    if (follower->recall != NULL && is_followed(service) &&
        follower->recall(follower->context, &info) != RON_ERR_OK)
        lose(service, &info);
}

/* --- Heads -------------------------------------------------------------------------------------
 */

bool follow_head(struct ledger_service *service, const struct ledger_root *root)
{
    const struct ledger_follower *follower = &service->options.follower;
    struct ron_errinfo info = {0};

    rt_assert_no_lock_held();
    if (!is_followed(service) || follower->head(follower->context, root, &info) == RON_ERR_OK)
        return true;
    if (!is_followed(service))
        return true; /* lost meanwhile */
    rt_log(service->options.log, RT_LOG_WARN, "a head could not be signed", rt_log_info(&info));
    return false;
}

void follow_keep(struct ledger_service *service, bool sync)
{
    const struct ledger_follower *follower = &service->options.follower;
    struct ron_errinfo info = {0};

    rt_assert_no_lock_held();
    if (is_followed(service) && follower->keep(follower->context, sync, &info) != RON_ERR_OK)
        lose(service, &info);
}
