/*
 * sequencer.c - one task: gives what is waiting an order, a time and a number.
 *
 * It owns the pending view. A commit slot is in hand before the core is asked; without one the
 * request is answered CommitBackpressure and no seq is used. Its first act is recovery
 * (recovery.c): it alone touches the core then, because nothing is admitted before it ends.
 */
#include "ledger/service_impl.h"

/* --- Sequencing --------------------------------------------------------------------------------
 */

static void look_at_clock(struct sequencer *sequencer)
{
    sequencer->now_ns = rt_now_ns();
    sequencer->now_ms = rt_utc_ms();
}

enum { SEND_MAX = 16 }; /* small requests at once */
_Static_assert((int)SEND_MAX <= (int)LEDGER_WINDOW_MAX, "the outbox has room for them");

/* To the Committer, in one piece: one by one they would wake it, and it the log, for each. */
static void send_window(struct ledger_service *service)
{
    struct sequencer *sequencer = &service->sequencer;
    const size_t count = sequencer->outbox_count;
    struct ron_errinfo info = {0};
    size_t sent_count = 0;
    enum ron_err err;

    if (count == 0)
        return;
    sequencer->outbox_count = 0;
    err = rt_queue_try_send_many(service->commit, sequencer->outbox, count, &sent_count, &info);
    if (err == RON_ERR_OK) {
        RON_ASSERT(sent_count == count); /* each has a slot */
        ledger_engine_nudge(service->engine);
        return;
    }
    /* Slots were free, so only the end of the drain can have closed the queue. */
    RON_ASSERT(err == RON_ERR_CANCELED);
    for (size_t i = 0; i < count; i++) {
        struct ledger_request *request = sequencer->outbox[i].pointer;

        request->outcome.unknown = false;
        request_refuse(service, request, RON_ERR_DRAINING, "the drain was cut short");
    }
}

/* The Committer found no room and has answered what was under way: let it take the pending view
 * back, while nobody applies. */
static void let_roll_back(struct ledger_service *service) RON_BLOCKS
{
    uint64_t version = rt_watch_get(service->rollbacks, NULL);

    if (rt_atomic_load_u32(&service->rollback_wanted) == 0)
        return;
    RON_PROBE("ledger: the sequencer waits for a rollback");
    send_window(service);
    if (rt_queue_send_until(service->commit, (struct rt_queue_item){&service->barrier, 1},
                            RT_DEADLINE_NEVER, NULL) != RON_ERR_OK)
        return; /* aborting: what follows is refused there */
    RON_MUST_ZERO(
        rt_watch_wait(service->rollbacks, version, RT_DEADLINE_NEVER, NULL, &version, NULL));
    look_at_clock(&service->sequencer);
}

/* Hand on what was applied, or what is answered like something applied before. */
static void send_on(struct ledger_service *service, struct ledger_request *request,
                    struct ledger_slot *slot, const struct ledger_result *result)
{
    struct sequencer *sequencer = &service->sequencer;

    slots_take(&service->slots, request, result->applied ? slot : NULL, sequencer->now_ns);
    request->state.batch = result->batch;
    request->state.repeated = !result->applied;
    rt_span_put_number(request->state.span, "batch", result->batch);
    request_enter(service, request, "committer");
    sequencer->outbox[sequencer->outbox_count++] = (struct rt_queue_item){request,
                                                                          request_weight(request)};
    /* A large one, or some small ones, are work for the Committer while the next is applied. */
    if (sequencer->outbox_count == SEND_MAX || request_weight(request) > LIGHT_SIZE)
        send_window(service);
}

/* --- Snapshots ---------------------------------------------------------------------------------
 */

static void answer_marker(struct ledger_service *service)
{
    service->sequencer.copying = false;
    request_answer(service, &service->snapshots.marker, RON_ERR_OK, NULL); /* `cut_info` says how */
}

/* A part of what a snapshot under way still lacks. */
static void copy_part(struct ledger_service *service)
{
    if (service->sequencer.copying && snapshots_copy(service))
        answer_marker(service);
}

/* --- Sequencing, one by one ---------------------------------------------------------------------
 */

static void refuse_archive(struct ledger_service *service, struct ledger_request *request)
{
    request_refuse(service, request, RON_ERR_SAFE_MODE, "ledger is SafeMode: the archive failed");
}

static void sequence(struct rt_task *task, struct ledger_service *service,
                     struct ledger_request *request) RON_BLOCKS
{
    struct sequencer *sequencer = &service->sequencer;
    struct ron_errinfo info = {0};
    struct ledger_result result;
    struct ledger_slot *slot;
    enum ron_err err;

    let_roll_back(service);
    if (request == &service->snapshots.marker) {
        send_window(service);
        sequencer->copying = snapshots_begin(service);
        look_at_clock(sequencer);
        if (!sequencer->copying)
            answer_marker(service);
        return;
    }
    if (rt_task_aborted(task)) {
        request_refuse(service, request, RON_ERR_DRAINING, "the drain was cut short");
        return;
    }
    if (rt_atomic_load_u32(&service->broken) != 0) {
        RON_PROBE("ledger: SafeMode met in the queue");
        request_refuse(service, request, RON_ERR_SAFE_MODE, "ledger is SafeMode");
        return;
    }
    if (sequencer->now_ns >= request->deadline.at_ns) {
        RON_PROBE("ledger: the deadline passed before sequencing");
        request_refuse(service, request, RON_ERR_TIMEOUT, "the deadline passed before sequencing");
        return;
    }
    if (request->state.spent && !ledger_core_knows_key(service->core, &request->command)) {
        if (service_check_archive(service))
            request_refuse(service, request, RON_ERR_LIMIT_EXCEEDED,
                           "the capability's max_daily is used up");
        else
            refuse_archive(service, request);
        return;
    }
    slot = slots_find(&service->slots, request);
    if (slot == NULL) {
        RON_PROBE("ledger: no commit slot is free");
        service_tell_pressure(service);
        request_refuse(service, request, RON_ERR_COMMIT_BACKPRESSURE, "no commit slot is free");
        return;
    }
    if (sequencer->now_ms > sequencer->commit_ms_last)
        sequencer->commit_ms_last = sequencer->now_ms;
    request->command.stamp.commit_ms = sequencer->commit_ms_last;
    err = ledger_core_apply(service->core, &request->command, &slot->batch, &result,
                            &request->outcome.refusal, &info);
    if (err != RON_ERR_OK && !service_check_archive(service))
        refuse_archive(service, request);
    else if (err == RON_ERR_OK)
        send_on(service, request, slot, &result);
    else
        request_answer(service, request, err, &info);
}

/* --- Expired holds -----------------------------------------------------------------------------
 */

static void expire_done(struct ledger_request *request, void *context)
{
    struct ledger_service *service = context;

    (void)request;
    rt_atomic_store_u32(&service->sequencer.expire_busy, 0);
}

static void expire(struct rt_task *task, struct ledger_service *service) RON_BLOCKS
{
    struct sequencer *sequencer = &service->sequencer;

    service_mark_again(service);
    look_at_clock(sequencer);
    if (rt_atomic_load_u32(&sequencer->expire_busy) != 0 || service_is_safe(service))
        return;
    rt_atomic_store_u32(&sequencer->expire_busy, 1);
    sequencer->expire = (struct ledger_request){
        .command = {.kind = LEDGER_COMMAND_EXPIRE, .stamp = {.caller = LEDGER_CALLER_LEDGER}},
        .deadline = RT_DEADLINE_NEVER,
        .done = expire_done,
        .context = service,
        .state = {.taken = true, .arrived_ns = sequencer->now_ns, .arrived_ms = sequencer->now_ms},
    };
    sequence(task, service, &sequencer->expire);
}

/* What the core will look for, a few requests ahead: most of the time of a small one is waiting for
 * memory. Those of a window are neither answered nor changed by others meanwhile. */
static void look_ahead(const struct ledger_service *service, size_t i, size_t count)
{
    enum { AHEAD = 3, STEPS = 3 };
    const struct sequencer *sequencer = &service->sequencer;

    for (unsigned step = 0; step < STEPS; step++) {
        const size_t index = i + AHEAD * (STEPS - step);

        if (index < count)
            ledger_core_prefetch(service->core, &sequencer->window[index]->command, step);
    }
}

/* What is waiting, or will be before the deadline; while a snapshot is copied nobody waits here.
 * RON_ERR_CANCELED: no more will come. */
static enum ron_err take_window(struct ledger_service *service, struct rt_deadline deadline,
                                size_t *ret_count) RON_BLOCKS
{
    struct sequencer *sequencer = &service->sequencer;
    const uint32_t window_max = service->options.window_max;
    const bool is_last = sequencer->copying && rt_queue_closed(service->preval);

    if (!sequencer->copying)
        return rt_queue_recv_many(service->preval, (void **)sequencer->window, window_max, 0,
                                  deadline, ret_count, NULL);
    *ret_count = rt_queue_try_recv_many(service->preval, (void **)sequencer->window, window_max);
    return *ret_count == 0 && is_last ? RON_ERR_CANCELED : RON_ERR_OK;
}

enum ron_err sequencer_run(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct ledger_service *service = argument;
    struct sequencer *sequencer = &service->sequencer;
    const uint64_t period_ns = service->options.expire_ms * RT_NS_PER_MS;
    struct rt_deadline next = period_ns == 0 ? RT_DEADLINE_NEVER : rt_deadline_after_ns(period_ns);

    recovery_run(task, service);
    for (;;) {
        size_t count = 0;

        if (take_window(service, next, &count) == RON_ERR_CANCELED)
            break;
        if (count > 0) {
            look_at_clock(sequencer);
            requests_order(sequencer->window, count);
            ledger_observe(&service->metrics, &service->metrics.window, count);
        }
        for (size_t i = 0; i < count; i++) {
            /* Once answered it is not ours to look at: so before. */
            const bool is_light = request_weight(sequencer->window[i]) <= LIGHT_SIZE;

            look_ahead(service, i, count);
            sequence(task, service, sequencer->window[i]);
            if (!is_light)
                look_at_clock(sequencer);
        }
        if (rt_deadline_expired(next)) {
            expire(task, service);
            next = rt_deadline_after_ns(period_ns);
        }
        send_window(service);
        copy_part(service);
        rt_task_beat(task);
    }
    if (sequencer->copying) {
        RON_PROBE("ledger: a stop while a snapshot is copied");
        snapshots_drop(service);
        answer_marker(service);
    }
    return RON_ERR_OK;
}
