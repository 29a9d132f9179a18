/*
 * recovery.c - the log read back into the core: the Sequencer's first act.
 *
 * The newest usable snapshot, what of the batches in it the windows need, then everything behind it
 * done again. A task of its own reads ahead (replay_ahead.h); the core is the Sequencer's alone.
 */
#include "ledger/follow.h"
#include "ledger/replay_ahead.h"

struct recovery {
    struct ledger_service *service;
    struct rt_task *task;
    struct ledger_root cut; /* the core was loaded up to here; batch 0: it was not */
    uint64_t first;         /* the reader's */
    struct ledger_replay *replay;
    struct ledger_start_health health;
};

/* The snapshot holds the batch: only its root, and what the windows need, is taken from the log. */
static enum ron_err recall_frame(struct recovery *recovery, const struct ledger_frame *frame,
                                 struct ron_errinfo *reterr)
{
    struct ledger_service *service = recovery->service;
    enum ron_err err = RON_ERR_OK;

    if (frame->batch == ledger_core_missing(service->core)) {
        err = ledger_replay_recall(recovery->replay, frame, reterr);
        recovery->health.recalled_entries += frame->entries_count;
    }
    if (err == RON_ERR_OK)
        roots_replayed(service,
                       &(struct ledger_root){frame->seq_start + frame->entries_count - 1,
                                             frame->batch, frame->stamp.commit_ms, frame->root});
    return err;
}

static enum ron_err replay_frame(struct recovery *recovery, const struct ledger_ready *ready,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_service *service = recovery->service;
    const struct ledger_batch *batch = ledger_replay_batch(recovery->replay);
    enum ron_err err = ledger_replay_ready(recovery->replay, ready, reterr);
    struct ledger_root root;

    if (err != RON_ERR_OK)
        return err;
    root = (struct ledger_root){batch->seq_start + batch->entries_count - 1, batch->number,
                                batch->stamp.commit_ms, batch->root};
    service->sequencer.commit_ms_last = root.commit_ms;
    service->committer.seq_last = root.seq;
    service->committer.index_last = root.batch;
    follow_replayed(service, batch);
    roots_replayed(service, &root);
    rt_counter_add(&service->sequencer.replayed_count, 1);
    recovery->health.replayed_entries += batch->entries_count;
    return RON_ERR_OK;
}

static enum ron_err take_frame(struct recovery *recovery, const struct ledger_ready *ready,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_service *service = recovery->service;

    if (rt_task_canceled(recovery->task) || rt_queue_closed(service->ingress))
        return ron_fail(reterr, RON_ERR_CANCELED, "replay interrupted at batch %llu",
                        (unsigned long long)ready->frame.batch);
    rt_task_beat(recovery->task);
    return ready->frame.batch <= recovery->cut.batch ? recall_frame(recovery, &ready->frame, reterr)
                                                     : replay_frame(recovery, ready, reterr);
}

/* On the reader's task. */
static enum ron_err read_log(void *context, ledger_frame_fn *fn, void *fn_context,
                             struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct recovery *recovery = context;

    return ledger_engine_recover(recovery->service->engine, recovery->first, fn, fn_context,
                                 reterr);
}

/* All frames of a sheaf; time is the windows' up to the cut, the replay's behind it. */
static enum ron_err take_sheaf(struct recovery *recovery, const struct ledger_sheaf *sheaf,
                               uint64_t *begin_ns, struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = RON_ERR_OK;

    for (uint32_t i = 0; i < sheaf->frames_count && err == RON_ERR_OK; i++) {
        const bool is_known = sheaf->frames[i].frame.batch <= recovery->cut.batch;
        uint64_t now_ns;

        if (!is_known)
            ledger_replay_prefetch(recovery->replay, sheaf, i);
        err = take_frame(recovery, &sheaf->frames[i], reterr);
        if (i + 1 < sheaf->frames_count &&
            is_known == (sheaf->frames[i + 1].frame.batch <= recovery->cut.batch))
            continue;
        now_ns = rt_now_ns();
        *(is_known ? &recovery->health.recall_ns : &recovery->health.replay_ns) += now_ns -
                                                                                   *begin_ns;
        *begin_ns = now_ns;
    }
    return err;
}

/* The engine said that there is none. */
static enum ron_err refuse_frame(void *context, uint64_t number, struct ron_slice bytes,
                                 struct ron_errinfo *reterr)
{
    (void)context;
    (void)bytes;
    return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "record %llu of an empty log",
                    (unsigned long long)number);
}

static enum ron_err read_ahead(struct recovery *recovery, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_service *service = recovery->service;
    const struct ron_merkle_frontier frontier = ledger_core_frontier(service->core);
    struct ledger_pages pages;
    const struct ledger_ahead_options options = {.owner = "ledger",
                                                 .source = read_log,
                                                 .context = recovery,
                                                 .known = recovery->cut.batch,
                                                 .frontier = &frontier,
                                                 .pages = &pages};
    uint64_t begin_ns = rt_now_ns();
    const struct ledger_sheaf *sheaf = NULL;
    struct ledger_ahead *ahead = NULL;
    enum ron_err err = ledger_replay_new(service->core, &recovery->replay, reterr);

    ledger_pages_init(&pages, service->core);
    if (err == RON_ERR_OK)
        err = ledger_ahead_start(&options, &ahead, reterr);
    while (err == RON_ERR_OK) {
        err = ledger_ahead_next(ahead, &sheaf, reterr);
        if (err == RON_ERR_OK)
            err = take_sheaf(recovery, sheaf, &begin_ns, reterr);
    }
    ahead = ledger_ahead_free(ahead);
    recovery->replay = ledger_replay_free(recovery->replay);
    return err == RON_ERR_NOT_FOUND ? RON_ERR_OK : err;
}

/* The newest usable snapshot, and all of the log that it does not hold; and of what it holds the
 * newest root, and what the log's index does not know. */
static enum ron_err read_back(struct recovery *recovery, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_service *service = recovery->service;
    const uint64_t begin_ns = rt_now_ns();
    enum ron_err err = RON_ERR_OK;

    if (service->options.snapshot.vfs != NULL)
        err = snapshots_load(service, &recovery->cut, reterr);
    recovery->health.load_ns = rt_now_ns() - begin_ns;
    if (err != RON_ERR_OK)
        return err;
    recovery->first = 1;
    if (recovery->cut.batch > 0) {
        const uint64_t missing = ledger_core_missing(service->core);

        RON_PROBE("ledger: a start with a snapshot");
        recovery->first = recovery->cut.batch; /* older roots are read when they are asked for */
        if (missing > 0 && missing < recovery->first) {
            RON_PROBE("ledger: a snapshot holds more than the index");
            recovery->first = missing;
        }
        service->sequencer.commit_ms_last = recovery->cut.commit_ms;
        service->committer.seq_last = recovery->cut.seq;
        service->committer.index_last = recovery->cut.batch;
    }
    rt_atomic_store_ptr(&service->view, service->core);
    /* Of an empty one only the engine has something to say. */
    return ledger_engine_durable(service->engine) > 0
               ? read_ahead(recovery, reterr)
               : read_log(recovery, refuse_frame, NULL, reterr);
}

void recovery_run(struct rt_task *task, struct ledger_service *service)
{
    struct recovery recovery = {.service = service, .task = task};
    struct ron_errinfo info = {0};
    const bool over = true;
    uint64_t begin_ns;
    enum ron_err err;

    service_recall_mark(service);
    err = read_back(&recovery, &info);
    begin_ns = rt_now_ns();
    if (err == RON_ERR_CANCELED) {
        rt_atomic_store_u32(&service->broken, 1); /* the stop goes on; nothing was admitted */
    } else if (err != RON_ERR_OK) {
        rt_log(service->options.log, RT_LOG_ERROR, "the log does not replay: SafeMode",
               rt_log_info(&info));
        follow_damaged(service);
        service_break(service, &info);
        service_mark(service);
    } else {
        follow_recovered(task, service);
        (void)rt_lifecycle_clear(service->lifecycle, CAUSE_STARTING);
        (void)rt_lifecycle_clear(service->lifecycle, RT_CAUSE_RECOVERING);
        service_show_safe(service);
    }
    recovery.health.follow_ns = rt_now_ns() - begin_ns;
    service->start = recovery.health;
    snapshots_publish(service, &(struct ron_errinfo){.err = RON_ERR_OK});
    rt_watch_set(service->started, &over);
}
