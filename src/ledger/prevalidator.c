/*
 * prevalidator.c - the pool: shape, then the checks, then, for many entries, what the archive has
 * of their ids. Pure CPU but for the archive's pages and a check that was plugged in; no shared
 * state, so a worker that dies takes nothing with it: its request is answered on the way out, and
 * what it had taken besides goes on.
 *
 * A request that needs an answer from outside is parked (checks.h), and nobody waits with it: when
 * the answer comes, the task of the port it came from does the rest (prevalidator_resume).
 *
 * Small requests are taken and passed on in groups: one by one, each would wake a thread that has
 * to sleep again at once, which costs more than the request. So does one more thread on their way:
 * those that wait for nobody are checked by the thread that brings them (prevalidator_check_here).
 */
#include "ledger/service_impl.h"

/* So many go on together: fewer would wake the Sequencer more often, more would keep it waiting. */
enum { EVICTED_MAX = 64, GROUP_MAX = 16 };

/* Of fewer ids the archive is asked by the Sequencer. */
enum { SIFT_MIN = 16 };

/* What a worker has in hand. */
struct group {
    struct ledger_service *service;
    void *requests[GROUP_MAX]; /* taken; that at `next` is being checked */
    size_t count, next;
    struct rt_queue_item checked[GROUP_MAX];
    size_t checked_count;
    uint64_t now_ns;            /* when the last one was done */
    ledger_refused_fn *refused; /* of who checks its own; NULL: a prevalidator's */
};

/* Ops from the entries as they stand in the body. */
static enum ron_err shape_ops(struct ledger_request *request, struct ron_errinfo *reterr)
{
    struct ledger_command *command = &request->command;
    const bool payouts = command->kind == LEDGER_COMMAND_INTENTS;
    struct ledger_id hold = {{0}};

    if (request->wire == NULL)
        return RON_ERR_OK;
    if (payouts)
        hold = ledger_run_hold_id(command->stamp.tenant, command->run.epoch_id);
    for (uint32_t i = 0; i < request->wire_count; i++) {
        enum ron_err err = payouts ? ledger_shape_payout(command->stamp.tenant, &hold,
                                                         &request->wire[i], &request->ops_room[i],
                                                         reterr)
                                   : ledger_shape_entry(command->stamp.tenant, &request->wire[i],
                                                        &request->ops_room[i], reterr);

        if (err != RON_ERR_OK) {
            request->outcome.refusal = (struct ledger_refusal){.present = LEDGER_DETAIL_INDEX,
                                                               .index = i};
            return err;
        }
    }
    command->ops = request->ops_room;
    command->ops_count = request->wire_count;
    return RON_ERR_OK;
}

/* Where the pointer is called: it may block. *ret_parked: the request is gone. */
static enum ron_err call_check(struct ledger_service *service, struct ledger_request *request,
                               bool *ret_parked, struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = RON_ERR_OK;
    bool spent = false;

    rt_assert_no_lock_held();
    if (service->options.check != NULL)
        err = service->options.check(service->options.check_context, request, reterr);
    if (err != RON_ERR_OK || service->options.checks == NULL)
        return err;
    err = ledger_checks_begin(service->options.checks, request, prevalidator_resume, service,
                              ret_parked, &spent, reterr);
    if (!*ret_parked) {
        request->state.spent = spent;
        request->state.charged = err == RON_ERR_OK && !spent;
    }
    return err;
}

static enum ron_err call_prepare(struct ledger_request *request, struct ron_errinfo *reterr)
{
    rt_assert_no_lock_held();
    return request->prepare == NULL ? RON_ERR_OK
                                    : request->prepare(request, request->context, reterr);
}

/* Where the pointer is called: it may block. */
static enum ron_err prepare(struct ledger_request *request, struct ron_errinfo *reterr) RON_BLOCKS
{
    return call_prepare(request, reterr);
}

/* That of a prompt request waits for nobody. */
static enum ron_err prepare_prompt(struct ledger_request *request, struct ron_errinfo *reterr)
{
    RON_ASSERT(request->prompt);
    return call_prepare(request, reterr);
}

static enum ron_err confirm(struct ledger_request *request, struct ron_errinfo *reterr)
{
    return request->confirm == NULL ? RON_ERR_OK
                                    : request->confirm(request, request->context, reterr);
}

static enum ron_err look_in_time(const struct ledger_request *request, uint64_t now_ns,
                                 struct ron_errinfo *reterr)
{
    if (now_ns < request->deadline.at_ns)
        return RON_ERR_OK;
    RON_PROBE("ledger: the deadline passed in the ingress queue");
    return ron_fail(reterr, RON_ERR_TIMEOUT, "the deadline passed in the ingress queue");
}

/* What was prepared, where that needs nobody else. Whatever the request was before, its ids were
 * not asked for yet. */
static enum ron_err look_at(const struct ledger_service *service, struct ledger_request *request,
                            struct ron_errinfo *reterr)
{
    enum ron_err err;

    request->command.sifted = (struct ledger_sifted){NULL, 0};
    if (request->wire != NULL && request->wire_count > RON_BATCH_ENTRIES_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a batch of %u entries, at most %d",
                        request->wire_count, RON_BATCH_ENTRIES_MAX);
    err = shape_ops(request, reterr);
    if (err == RON_ERR_OK)
        err = ledger_shape_command(&request->command, reterr);
    if (err == RON_ERR_OK && !slots_fit(&service->slots, request))
        err = ron_fail(reterr, RON_ERR_TOO_LARGE, "no commit slot is large enough");
    if (err == RON_ERR_OK)
        request_find_lane(request);
    return err;
}

/* What the archive has of the ids of a large batch, before the Sequencer asks: that waits for
 * memory and pages of the disk, and every other request would wait for it. Behind it nobody waits
 * in this group. An answer that is not to be had is asked for again there. */
static void sift(const struct ledger_service *service, struct ledger_request *request) RON_BLOCKS
{
    struct ledger_command *command = &request->command;
    struct ledger_ids ids;

    if (service->store == NULL || request->sift_room == NULL ||
        command->kind != LEDGER_COMMAND_INGEST || command->ops_count < SIFT_MIN ||
        request_weight(request) <= LIGHT_SIZE)
        return;
    ids = (struct ledger_ids){&ledger_op_head(command, 0)->id, ledger_op_stride(command),
                              command->ops_count};
    if (ledger_archive_sift(service->engine, &ids, request->sift_room, &command->sifted.batch_max,
                            NULL) == RON_ERR_OK)
        command->sifted.bits = request->sift_room;
}

/* On to the Sequencer; those they push out are answered here. */
static void pass_on(struct group *group)
{
    struct ledger_service *service = group->service;
    size_t done_count = 0;

    while (done_count < group->checked_count) {
        const struct rt_queue_item *items = group->checked + done_count;
        void *evicted[EVICTED_MAX];
        size_t sent_count = 0;
        size_t evicted_count = 0;
        struct ron_errinfo info = {0};
        enum ron_err err = rt_queue_send_many_drop_oldest(
            service->preval, items, group->checked_count - done_count, evicted, EVICTED_MAX,
            &sent_count, &evicted_count, &info);

        if (err == RON_ERR_CANCELED && group->refused != NULL)
            ingress_turn_away(service, items->pointer, group->refused);
        else if (err == RON_ERR_CANCELED)
            request_refuse(service, items->pointer, RON_ERR_DRAINING, "the drain was cut short");
        else if (err != RON_ERR_OK)
            request_answer(service, items->pointer, err, &info);
        for (size_t i = 0; i < evicted_count; i++) {
            RON_PROBE("ledger: a request is evicted");
            request_refuse(service, evicted[i], RON_ERR_PREVAL_DROP_OLDEST,
                           "evicted by a newer request before sequencing");
        }
        done_count += err == RON_ERR_OK ? sent_count : 1;
    }
    group->checked_count = 0;
}

/* The one that was being checked is answered; what was checked is passed on, the rest goes back for
 * another worker. */
static void leave_group(void *argument)
{
    struct group *group = argument;
    struct ledger_service *service = group->service;

    RON_PROBE("ledger: a prevalidator panicked");
    request_refuse(service, group->requests[group->next], RON_ERR_INTERNAL,
                   "its prevalidator failed");
    pass_on(group);
    for (size_t i = group->next + 1; i < group->count; i++) {
        struct ledger_request *request = group->requests[i];
        struct ron_errinfo info = {0};
        enum ron_err err = rt_queue_try_send(
            service->ingress, (struct rt_queue_item){request, request_weight(request)}, &info);

        if (err == RON_ERR_CANCELED)
            request_refuse(service, request, RON_ERR_DRAINING, "its prevalidator failed");
        else if (err != RON_ERR_OK)
            request_answer(service, request, err, &info);
    }
}

/* One request, and if it is small more such that wait; but where a check was plugged in that may
 * wait nobody stands behind it. All at once, so that no other worker is woken for what is left
 * meanwhile. */
static enum ron_err take_group(struct group *group) RON_BLOCKS
{
    const bool may_wait = group->service->options.check != NULL;
    enum ron_err err = rt_queue_recv_light(group->service->ingress, group->requests,
                                           may_wait ? 1 : GROUP_MAX, LIGHT_SIZE, RT_DEADLINE_NEVER,
                                           &group->count, NULL);

    group->now_ns = rt_now_ns();
    return err;
}

/* The checks are over: on to the Sequencer with the group, or answered. */
static void checked(struct group *group, struct ledger_request *request, enum ron_err err,
                    const struct ron_errinfo *info)
{
    if (err != RON_ERR_OK) {
        request_answer(group->service, request, err, info);
        return;
    }
    request_enter(group->service, request, "sequencer");
    group->checked[group->checked_count++] = (struct rt_queue_item){request,
                                                                    request_weight(request)};
    if (request_weight(request) > LIGHT_SIZE) /* it took its time: nobody waits for the next */
        pass_on(group);
}

/* The check of a request that began at group->now_ns is over. */
static void note_check(struct group *group)
{
    const struct ledger_metrics *metrics = &group->service->metrics;
    const uint64_t begin_ns = group->now_ns;

    group->now_ns = rt_now_ns();
    ledger_observe(metrics, &metrics->prevalidator, group->now_ns - begin_ns);
}

static void check_next(struct group *group) RON_BLOCKS
{
    struct ledger_service *service = group->service;
    struct ledger_request *request = group->requests[group->next];
    struct ron_errinfo info = {0};
    bool parked = false;
    enum ron_err err;

    request_enter(service, request, "prevalidator");
    err = look_in_time(request, group->now_ns, &info);
    if (err == RON_ERR_OK)
        err = prepare(request, &info);
    if (err == RON_ERR_OK)
        err = look_at(service, request, &info);
    if (err == RON_ERR_OK)
        err = call_check(service, request, &parked, &info);
    if (err == RON_ERR_OK && !parked)
        sift(service, request);
    if (err == RON_ERR_OK && !parked)
        err = confirm(request, &info);
    note_check(group);
    if (!parked)
        checked(group, request, err, &info);
}

bool prevalidator_may_check_here(const struct ledger_service *service,
                                 const struct ledger_request *request)
{
    return request->prompt && request_weight(request) <= LIGHT_SIZE &&
           service->options.check == NULL && service->options.checks == NULL;
}

void prevalidator_check_here(struct ledger_service *service, struct ledger_request *const *requests,
                             size_t requests_count, ledger_refused_fn *refused)
{
    struct group group = {.service = service, .now_ns = rt_now_ns(), .refused = refused};

    for (size_t i = 0; i < requests_count; i++) {
        struct ron_errinfo info = {0};
        enum ron_err err;

        request_enter(service, requests[i], "prevalidator");
        err = look_in_time(requests[i], group.now_ns, &info);
        if (err == RON_ERR_OK)
            err = prepare_prompt(requests[i], &info);
        if (err == RON_ERR_OK)
            err = look_at(service, requests[i], &info);
        if (err == RON_ERR_OK)
            err = confirm(requests[i], &info);
        note_check(&group);
        checked(&group, requests[i], err, &info);
        if (group.checked_count == GROUP_MAX)
            pass_on(&group);
    }
    pass_on(&group);
}

void prevalidator_resume(void *context, struct ledger_request *request, enum ron_err err,
                         bool spent, const struct ron_errinfo *info)
{
    struct group group = {.service = context, .requests = {request}, .count = 1};
    struct ron_errinfo said = *info;
    struct rt_cleanup cleanup;

    request->state.spent = spent;
    request->state.charged = err == RON_ERR_OK && !spent;
    if (err == RON_ERR_OK) {
        rt_cleanup_push(&cleanup, leave_group, &group);
        err = confirm(request, &said);
        rt_cleanup_pop(&cleanup, false);
    }
    checked(&group, request, err, &said);
    pass_on(&group);
}

enum ron_err prevalidator_run(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct prevalidator *prevalidator = argument;
    struct group group = {.service = prevalidator->service};

    while (take_group(&group) == RON_ERR_OK) {
        for (group.next = 0; group.next < group.count; group.next++) {
            struct rt_cleanup cleanup;

            rt_cleanup_push(&cleanup, leave_group, &group);
            check_next(&group);
            rt_cleanup_pop(&cleanup, false);
        }
        pass_on(&group);
        rt_task_beat(task);
    }
    return RON_ERR_OK;
}
