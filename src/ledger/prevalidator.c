/*
 * prevalidator.c - the pool: shape, then the check that was plugged in. Pure CPU but for that
 * check; no shared state, so a worker that dies takes nothing with it: its request is answered on
 * the way out, and what it had taken besides goes on.
 *
 * Small requests are taken and passed on in groups: one by one, each would wake a thread that has
 * to sleep again at once, which costs more than the request.
 */
#include "ledger/service_impl.h"

enum { EVICTED_MAX = 64, GROUP_MAX = 64 };

/* What a worker has in hand. */
struct group {
    struct ledger_service *service;
    void *requests[GROUP_MAX]; /* taken; that at `next` is being checked */
    size_t count, next;
    struct rt_queue_item checked[GROUP_MAX];
    size_t checked_count;
    uint64_t now_ns; /* when the last one was done */
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

/* Where the pointer is called: it may block. */
static enum ron_err call_check(struct ledger_service *service, struct ledger_request *request,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = RON_ERR_OK;

    rt_assert_no_lock_held();
    if (service->options.check != NULL)
        err = service->options.check(service->options.check_context, request, reterr);
    if (err == RON_ERR_OK && service->options.checks != NULL) {
        err = ledger_checks_ask(service->options.checks, request, &request->state.spent, reterr);
        request->state.charged = err == RON_ERR_OK && !request->state.spent;
    }
    return err;
}

static enum ron_err call_back(ledger_prepare_fn *fn, struct ledger_request *request,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    if (fn == NULL)
        return RON_ERR_OK;
    rt_assert_no_lock_held();
    return fn(request, request->context, reterr);
}

static enum ron_err check(struct ledger_service *service, struct ledger_request *request,
                          uint64_t now_ns, struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err;

    if (now_ns >= request->deadline.at_ns) {
        RON_PROBE("ledger: the deadline passed in the ingress queue");
        return ron_fail(reterr, RON_ERR_TIMEOUT, "the deadline passed in the ingress queue");
    }
    err = call_back(request->prepare, request, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (request->wire != NULL && request->wire_count > RON_BATCH_ENTRIES_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a batch of %u entries, at most %d",
                        request->wire_count, RON_BATCH_ENTRIES_MAX);
    err = shape_ops(request, reterr);
    if (err == RON_ERR_OK)
        err = ledger_shape_command(&request->command, reterr);
    if (err == RON_ERR_OK && !slots_fit(&service->slots, request))
        err = ron_fail(reterr, RON_ERR_TOO_LARGE, "no commit slot is large enough");
    if (err == RON_ERR_OK)
        err = call_check(service, request, reterr);
    if (err == RON_ERR_OK)
        err = call_back(request->confirm, request, reterr);
    return err;
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

        if (err == RON_ERR_CANCELED)
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

/* One request, and if it is small more such that wait; but where a check may have to wait for an
 * answer from outside nobody stands behind it. All at once, so that no other worker is woken for
 * what is left meanwhile. */
static enum ron_err take_group(struct group *group) RON_BLOCKS
{
    const struct ledger_service_options *options = &group->service->options;
    const bool may_wait = options->check != NULL ||
                          (options->checks != NULL && ledger_checks_are_remote(options->checks));
    enum ron_err err = rt_queue_recv_light(group->service->ingress, group->requests,
                                           may_wait ? 1 : GROUP_MAX, LIGHT_SIZE, RT_DEADLINE_NEVER,
                                           &group->count, NULL);

    group->now_ns = rt_now_ns();
    return err;
}

static void check_next(struct group *group) RON_BLOCKS
{
    struct ledger_service *service = group->service;
    struct ledger_request *request = group->requests[group->next];
    struct ron_errinfo info = {0};
    const uint64_t begin_ns = group->now_ns;
    enum ron_err err;

    request_enter(service, request, "prevalidator");
    err = check(service, request, begin_ns, &info);
    group->now_ns = rt_now_ns();
    ledger_observe(&service->metrics, &service->metrics.prevalidator, group->now_ns - begin_ns);
    if (err == RON_ERR_OK) {
        request_enter(service, request, "sequencer");
        group->checked[group->checked_count++] = (struct rt_queue_item){request,
                                                                        request_weight(request)};
        if (request_weight(request) > LIGHT_SIZE) /* it took its time: nobody waits for the next */
            pass_on(group);
    } else {
        request_answer(service, request, err, &info);
    }
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
