/*
 * committer.c - one task: the only writer of the log, the tree and the committed view.
 *
 * Seal, encode, append; then, while the engine syncs, seal and append what came meanwhile. What is
 * durable is committed to the view, told to the follower, its root published, its slot returned,
 * and only then its caller answered, all in the order of the batches. A repetition travels the same
 * way without a batch and is answered when everything before it is durable.
 *
 * No room: what was appended before is finished, the rest is answered PersistenceFull, and at the
 * Sequencer's barrier the pending view is taken back to the committed one. Any other failure of the
 * engine is final: SafeMode, and whoever is under way is told that the outcome is unknown.
 */
#include "io/request.h"
#include "ledger/follow.h"

static struct ledger_request *flight_at(const struct committer *committer, uint32_t i)
{
    RON_ASSERT(i < committer->flight_count);
    return committer->flight[(committer->flight_first + i) % committer->flight_max];
}

static void flight_push(struct committer *committer, struct ledger_request *request)
{
    RON_ASSERT(committer->flight_count < committer->flight_max);
    committer->flight[(committer->flight_first + committer->flight_count) % committer->flight_max] =
        request;
    rt_counter_store(&committer->held, ++committer->flight_count);
}

static struct ledger_request *flight_pop(struct committer *committer)
{
    struct ledger_request *request = flight_at(committer, 0);

    committer->flight_first = (committer->flight_first + 1) % committer->flight_max;
    rt_counter_store(&committer->held, --committer->flight_count);
    return request;
}

/* What is done to a request needs memory that others wrote, or that was left long ago: each of its
 * parts is fetched some requests before, when the one that leads to it has arrived. */
static const struct ledger_batch *batch_of(const struct ledger_request *request)
{
    return request->state.slot == NULL ? NULL : &request->state.slot->batch;
}

enum { AHEAD = 3 }; /* requests from step to step */

static void fetch(const struct ledger_request *request, unsigned step)
{
    const struct ledger_batch *batch;

    if (step == 0) {
        ron_prefetch(&request->state.slot);
        return;
    }
    batch = batch_of(request);
    if (batch != NULL)
        ledger_batch_prefetch(batch, step - 1);
}

/* Before the first that is in flight is settled. */
static void look_ahead(const struct ledger_service *service)
{
    enum { STEPS = 4 };
    const struct committer *committer = &service->committer;

    for (unsigned step = 0; step < STEPS; step++) {
        const uint32_t i = AHEAD * (STEPS - step);

        if (i >= committer->flight_count)
            continue;
        if (step < STEPS - 1)
            fetch(flight_at(committer, i), step);
        else if (batch_of(flight_at(committer, i)) != NULL)
            ledger_core_prefetch_commit(service->core, batch_of(flight_at(committer, i)));
    }
}

static uint32_t class_of(const struct ledger_request *request)
{
    return request->state.slot == NULL ? LEDGER_SLOT_CLASSES_MAX : request->state.slot->class_index;
}

/* What was gathered of the group's leaves is told to the follower. */
static void follow_gathered(struct ledger_service *service) RON_BLOCKS
{
    struct committer *committer = &service->committer;

    if (committer->leaves_count > 0)
        follow_leaves(service, committer->leaves_start, committer->leaves, committer->leaves_count,
                      NULL);
    committer->leaves_count = 0;
}

/* A durable batch: the follower is told of small ones together. */
static void follow_batch(struct ledger_service *service,
                         const struct ledger_batch *batch) RON_BLOCKS
{
    struct committer *committer = &service->committer;

    RON_ASSERT(batch->sealed);
    if (committer->leaves_count + batch->entries_count > COMMIT_LEAVES_MAX)
        follow_gathered(service);
    if (batch->entries_count > RUN_ENTRIES_MAX) {
        follow_gathered(service);
        follow_leaves(service, batch->seq_start, batch->hashes, batch->entries_count, batch->nodes);
        return;
    }
    if (committer->leaves_count == 0)
        committer->leaves_start = batch->seq_start;
    memcpy(committer->leaves + committer->leaves_count, batch->hashes,
           batch->entries_count * sizeof(batch->hashes[0]));
    committer->leaves_count += batch->entries_count;
}

/* Into the committed view, with the reply that follows from it. */
static void settle(struct ledger_service *service, struct ledger_request *request) RON_BLOCKS
{
    struct committer *committer = &service->committer;
    struct ledger_outcome *outcome = &request->outcome;
    struct ledger_batch *batch;

    outcome->repeated = request->state.repeated;
    if (request->state.slot == NULL) {
        outcome->err = ledger_core_reply(service->core, request->state.batch, &outcome->reply,
                                         &outcome->info);
        if (outcome->err != RON_ERR_OK && !service_check_archive(service))
            outcome->err = ron_fail(&outcome->info, RON_ERR_SAFE_MODE,
                                    "ledger is SafeMode: the archive failed");
        return;
    }
    batch = &request->state.slot->batch;
    outcome->reply = (struct ledger_reply){
        .batch = batch->number,
        .seq_start = batch->seq_start,
        .seq_end = batch->seq_start + batch->entries_count - 1,
        .commit_ms = batch->stamp.commit_ms,
        .root = batch->root,
    };
    committer->group_roots[committer->group_roots_count++] = (struct ledger_root){
        outcome->reply.seq_end, batch->number, batch->stamp.commit_ms, batch->root};
    ledger_core_commit(service->core, batch);
    follow_batch(service, batch);
}

static void answer(struct ledger_service *service, struct ledger_request *request, uint64_t now_ns)
{
    const uint64_t lag_ns = slots_lag_ns(&service->slots, now_ns);

    slots_return(&service->slots, class_of(request), request_weight(request));
    service_check_pressure(service);
    ledger_observe(&service->metrics, &service->metrics.committer, lag_ns);
    ledger_observe(&service->metrics, &service->metrics.commit, now_ns - request->state.arrived_ns);
    rt_span_put_number(request->state.span, "seq", request->outcome.reply.seq_start);
    rt_span_put_number(request->state.span, "batch_size",
                       request->outcome.reply.seq_end - request->outcome.reply.seq_start + 1);
    request_answer(service, request, request->outcome.err, &request->outcome.info);
}

/* Everything that is durable, a group at a time: all into the view, then all roots, then all
 * answers. One by one, each root and each answer would wake a thread that has to sleep again at
 * once, which cost more than the commit. */
static void complete_durable(struct ledger_service *service) RON_BLOCKS
{
    struct committer *committer = &service->committer;
    const uint64_t durable = ledger_engine_durable(service->engine);

    while (committer->flight_count > 0 && flight_at(committer, 0)->state.index <= durable) {
        struct io_burst burst;
        uint64_t now_ns;
        uint32_t count = 0;

        committer->group_roots_count = 0;
        while (count < COMMIT_GROUP_MAX && committer->flight_count > 0 &&
               flight_at(committer, 0)->state.index <= durable) {
            look_ahead(service);
            committer->group[count] = flight_pop(committer);
            settle(service, committer->group[count++]);
        }
        follow_gathered(service); /* before a root is out: who signs it has its leaves */
        roots_publish(service, committer->group_roots, committer->group_roots_count);
        ledger_add(&service->metrics, service->metrics.commits, committer->group_roots_count);
        now_ns = rt_now_ns();
        io_burst_begin(&burst);
        for (uint32_t i = 0; i < count; i++)
            answer(service, committer->group[i], now_ns);
        io_burst_end(&burst);
        ledger_set(&service->metrics, service->metrics.backlog, slots_in_flight(&service->slots));
    }
    snapshots_note(service);
}

/* --- When it fails -----------------------------------------------------------------------------
 */

static void answer_broken(struct ledger_service *service, struct ledger_request *request)
{
    request->outcome.unknown = true;
    request_refuse(service, request, RON_ERR_SAFE_MODE,
                   "the log failed: the outcome is unknown until it has been read again");
}

/* Nothing more is written; whoever is under way is told so. */
static void break_down(struct ledger_service *service, const struct ron_errinfo *info) RON_BLOCKS
{
    struct committer *committer = &service->committer;

    complete_durable(service); /* that much is known */
    RON_PROBE("ledger: the log failed");
    committer->mode = COMMIT_BROKEN;
    ledger_count(&service->metrics, service->metrics.fsync_fails);
    rt_log(service->options.log, RT_LOG_ERROR, "the log failed: SafeMode", rt_log_info(info));
    service_break(service, info);
    while (committer->flight_count > 0)
        answer_broken(service, flight_pop(committer));
}

/* The log failed. The mark comes last: it may take the disk's time. */
static void fail(struct ledger_service *service, const struct ron_errinfo *info) RON_BLOCKS
{
    break_down(service, info);
    service_mark(service);
}

static void set_pressure(struct ledger_service *service, bool full)
{
    if ((rt_atomic_load_u32(&service->disk_pressure) != 0) == full)
        return;
    rt_atomic_store_u32(&service->disk_pressure, full ? 1 : 0);
    ledger_set(&service->metrics, service->metrics.disk_pressure, full ? 1 : 0);
    if (full)
        (void)rt_lifecycle_raise(service->lifecycle, CAUSE_DISK_FULL);
    else
        (void)rt_lifecycle_clear(service->lifecycle, CAUSE_DISK_FULL);
}

/* Refuse what was applied. Its slot stays taken: the core borrows the batch until the barrier. */
static void refuse_applied(struct ledger_service *service, struct ledger_request *request,
                           enum ron_err err, const char *message)
{
    struct committer *committer = &service->committer;

    if (request->state.slot != NULL)
        committer->held_count[class_of(request)]++;
    committer->held_slots++;
    committer->held_bytes += request_weight(request);
    request_refuse(service, request, err, message);
}

static void answer_full(struct ledger_service *service, struct ledger_request *request)
{
    refuse_applied(service, request, RON_ERR_PERSISTENCE_FULL, "no room is left for the batch");
}

/* The Sequencer stands still: nothing pending is left to be committed, so it never was. */
static void roll_back(struct ledger_service *service)
{
    struct committer *committer = &service->committer;
    uint64_t count;

    RON_ASSERT(committer->flight_count == 0);
    if (committer->mode == COMMIT_FULL) {
        RON_PROBE("ledger: the pending view is taken back");
        ledger_core_rebuild(service->core);
        for (uint32_t i = 0; i < LEDGER_SLOT_CLASSES_MAX; i++)
            for (; committer->held_count[i] > 0; committer->held_count[i]--) {
                slots_return(&service->slots, i, 0);
                committer->held_slots--;
            }
        for (; committer->held_slots > 0; committer->held_slots--)
            slots_return(&service->slots, LEDGER_SLOT_CLASSES_MAX, 0);
        rt_counter_add_own(&service->slots.returned_bytes, committer->held_bytes);
        committer->held_bytes = 0;
        committer->mode = COMMIT_OPEN;
        service_check_pressure(service);
        rt_atomic_store_u32(&service->rollback_wanted, 0);
    }
    (void)rt_watch_get(service->rollbacks, &count);
    count++;
    rt_watch_set(service->rollbacks, &count);
}

/* --- Taking in ---------------------------------------------------------------------------------
 */

static struct rt_deadline sync_deadline(const struct ledger_service *service)
{
    return rt_deadline_after_ms(service->options.sync_ms_max);
}

/* Finish what was appended; false when that failed. */
static bool flush(struct ledger_service *service) RON_BLOCKS
{
    struct committer *committer = &service->committer;
    struct ron_errinfo info = {0};

    while (committer->flight_count > 0) {
        enum ron_err err = ledger_engine_wait(service->engine, flight_at(committer, 0)->state.index,
                                              sync_deadline(service), &info);

        if (err != RON_ERR_OK) {
            fail(service, &info);
            return false;
        }
        complete_durable(service);
    }
    return true;
}

/* How many of the requests, from the first on, are batches that follow one another and are appended
 * in one piece: one, if that is large. */
static size_t count_run(const struct committer *committer, struct ledger_request *const *requests,
                        size_t count)
{
    uint64_t seq = committer->seq_last;
    size_t size = 0;
    size_t run = 0;

    while (run < count && run < COMMIT_GROUP_MAX) {
        const struct ledger_batch *batch = batch_of(requests[run]);

        for (unsigned step = 0; step < 2; step++)
            if (run + AHEAD * (2 - step) < count)
                fetch(requests[run + AHEAD * (2 - step)], step);
        if (batch == NULL || batch->seq_start != seq + 1 || batch->entries_count > RUN_ENTRIES_MAX)
            break;
        size += ledger_frame_size(batch);
        if (size > COMMIT_FRAME_SIZE)
            break;
        seq += batch->entries_count;
        run++;
    }
    return run > 0 ? run : 1;
}

/* Each has its root; two at a time it takes little longer than one. If a batch is not appended
 * then, those behind it are taken back with it, sealed as they are. */
static void seal_run(struct ledger_service *service, struct ledger_request *const *requests,
                     size_t run)
{
    for (size_t i = 0; i < run; i++) {
        struct ledger_batch *two[2] = {&requests[i]->state.slot->batch, NULL};

        for (size_t j = i + AHEAD; j < run && j < i + AHEAD + 2; j++)
            fetch(requests[j], 2);
        if (two[0]->sealed)
            continue;
        if (i + 1 == run) {
            ledger_core_seal(service->core, two[0]);
            continue;
        }
        two[1] = &requests[++i]->state.slot->batch;
        ledger_core_seal_two(service->core, two);
    }
}

/* What the run is appended from. Returns whether that are the parts of one large frame. */
static bool make_frames(struct committer *committer, struct ledger_request *const *requests,
                        size_t run)
{
    size_t size = 0;

    if (run == 1 && ledger_frame_size(batch_of(requests[0])) >= COMMIT_FRAME_SIZE) {
        ledger_frame_lay_out(batch_of(requests[0]), &committer->parts);
        return true;
    }
    for (size_t i = 0; i < run; i++) {
        const struct ledger_batch *batch = batch_of(requests[i]);
        struct ron_slice *frame = &committer->frames[i];

        *frame = ron_slice_of(committer->frame + size, ledger_frame_size(batch));
        RON_ASSERT(frame->size <= COMMIT_FRAME_SIZE - size);
        ledger_frame_encode(batch, committer->frame + size);
        size += frame->size;
    }
    return false;
}

static enum ron_err append_by(struct ledger_service *service, bool is_large, size_t run,
                              struct rt_deadline deadline, size_t *ret_count, uint64_t *ret_index,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    struct committer *committer = &service->committer;

    if (!is_large)
        return ledger_engine_append_many(service->engine, committer->frames, run, deadline,
                                         ret_count, ret_index, reterr);
    *ret_count = 1;
    return ledger_engine_append(service->engine, committer->parts.parts, LEDGER_FRAME_PARTS,
                                deadline, ret_index, reterr);
}

/* The log may lack room as long as a sync may take. Who is durable is answered meanwhile. */
static enum ron_err append_frames(struct ledger_service *service, bool is_large, size_t run,
                                  size_t *ret_count, uint64_t *ret_index,
                                  struct ron_errinfo *reterr) RON_BLOCKS
{
    struct committer *committer = &service->committer;
    const struct rt_deadline last = sync_deadline(service);
    enum ron_err err;

    do {
        struct rt_deadline deadline = last;

        if (committer->flight_count > 0)
            deadline = rt_deadline_min(last, rt_deadline_after_ms(COMMIT_LOOK_MS));
        err = append_by(service, is_large, run, deadline, ret_count, ret_index, reterr);
        if (err == RON_ERR_TIMEOUT)
            complete_durable(service);
    } while (err == RON_ERR_TIMEOUT && !rt_deadline_expired(last));
    return err;
}

/* Seal a run and append as much of it as goes. */
static enum ron_err append_run(struct ledger_service *service,
                               struct ledger_request *const *requests, size_t run,
                               size_t *ret_count, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct committer *committer = &service->committer;
    const struct ledger_batch *first = &requests[0]->state.slot->batch;
    uint64_t index;
    enum ron_err err;

    if (first->seq_start != committer->seq_last + 1) {
        ledger_count_both(&service->metrics, service->metrics.gaps);
        return ron_fail(reterr, RON_ERR_INTERNAL, "batch %llu starts at seq %llu after %llu",
                        (unsigned long long)first->number, (unsigned long long)first->seq_start,
                        (unsigned long long)committer->seq_last);
    }
    seal_run(service, requests, run);
    err = append_frames(service, make_frames(committer, requests, run), run, ret_count, &index,
                        reterr);
    if (err != RON_ERR_OK)
        return err;
    RON_ASSERT(index == first->number + *ret_count - 1);
    committer->index_last = index;
    for (size_t i = 0; i < *ret_count; i++) {
        requests[i]->state.index = first->number + i;
        committer->seq_last += requests[i]->state.slot->batch.entries_count;
        flight_push(committer, requests[i]);
    }
    return RON_ERR_OK;
}

/* The request could not be appended: finish what was before it. */
static void take_failed(struct ledger_service *service, struct ledger_request *request,
                        enum ron_err err, const struct ron_errinfo *info) RON_BLOCKS
{
    struct committer *committer = &service->committer;

    if (err == RON_ERR_PERSISTENCE_FULL || err == RON_ERR_TIMEOUT || err == RON_ERR_TOO_LARGE) {
        if (!flush(service)) {
            answer_broken(service, request);
            return;
        }
        committer->mode = COMMIT_FULL;
        rt_atomic_store_u32(&service->rollback_wanted, 1);
        if (err == RON_ERR_TOO_LARGE) {
            refuse_applied(service, request, err, "the batch is larger than a segment of the log");
        } else {
            set_pressure(service, true);
            answer_full(service, request);
        }
    } else {
        break_down(service, info);
        answer_broken(service, request);
        service_mark(service);
    }
}

/* The first of the requests, and of those behind it what is appended with it. Returns how many. */
static size_t take_in(struct ledger_service *service, struct ledger_request *const *requests,
                      size_t requests_count) RON_BLOCKS
{
    struct committer *committer = &service->committer;
    struct ledger_request *request = requests[0];
    struct ron_errinfo info = {0};
    size_t count = 1;

    if (request == &service->barrier) {
        roll_back(service);
    } else if (request == &service->snapshots.barrier) {
        snapshots_cut(service, committer->mode != COMMIT_OPEN || !flush(service));
    } else if (committer->mode == COMMIT_BROKEN) {
        answer_broken(service, request);
    } else if (committer->mode == COMMIT_FULL) {
        RON_PROBE("ledger: more comes while the disk is full");
        answer_full(service, request);
    } else if (request->state.slot == NULL) {
        request->state.index = committer->index_last;
        flight_push(committer, request);
    } else {
        const size_t run = count_run(committer, requests, requests_count);
        enum ron_err err = append_run(service, requests, run, &count, &info);

        if (err == RON_ERR_OK)
            set_pressure(service, false);
        else
            take_failed(service, request, err, &info);
    }
    return count;
}

/* What is there; waits only when nothing is under way. RON_ERR_CANCELED: no more will come. */
static enum ron_err take_more(struct ledger_service *service, size_t *ret_count) RON_BLOCKS
{
    struct committer *committer = &service->committer;
    const size_t room = committer->flight_max - committer->flight_count;
    enum ron_err err = RON_ERR_OK;
    size_t count = 0;

    if (committer->flight_count == 0)
        err = rt_queue_recv_many(service->commit, (void **)committer->inbox, room,
                                 (uint64_t)service->options.linger_us * 1000, RT_DEADLINE_NEVER,
                                 &count, NULL);
    else if (room > 0)
        count = rt_queue_try_recv_many(service->commit, (void **)committer->inbox, room);
    for (size_t i = 0; i < count;)
        i += take_in(service, committer->inbox + i, count - i);
    *ret_count = count;
    return err;
}

/* For the first of the flight to be durable, or for something new to take in (nudges since `seen`).
 * However often it is nudged, a disk has no more time than it has. */
static enum ron_err wait_for_first(struct ledger_service *service, uint32_t seen,
                                   struct ron_errinfo *reterr) RON_BLOCKS
{
    struct committer *committer = &service->committer;
    const uint64_t index = flight_at(committer, 0)->state.index;

    if (committer->awaited != index) {
        committer->awaited = index;
        committer->awaited_until = sync_deadline(service);
    }
    return ledger_engine_wait_nudged(service->engine, index, seen, committer->awaited_until,
                                     reterr);
}

enum ron_err committer_run(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct ledger_service *service = argument;
    struct committer *committer = &service->committer;

    for (;;) {
        const uint32_t seen = committer->flight_count == 0 ? 0
                                                           : ledger_engine_nudges(service->engine);
        struct ron_errinfo info = {0};
        size_t count = 0;

        if (take_more(service, &count) != RON_ERR_OK)
            break;
        if (rt_task_aborted(task) && committer->mode != COMMIT_BROKEN) {
            RON_PROBE("ledger: the drain ends before the commit");
            (void)ron_fail(&info, RON_ERR_TIMEOUT, "the drain ended before the commit");
            break_down(service, &info);
        }
        if (count == 0 && committer->flight_count > 0) {
            if (wait_for_first(service, seen, &info) != RON_ERR_OK)
                fail(service, &info);
            else /* what came meanwhile is the disk's work while this is answered */
                (void)!take_more(service, &count);
        }
        complete_durable(service);
        rt_task_beat(task);
    }
    RON_ASSERT(committer->flight_count == 0);
    rt_bus_close(service->roots.bus);
    return RON_ERR_OK;
}
