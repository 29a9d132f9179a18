/*
 * prevalidator.c - the pool: shape, then the check that was plugged in. Pure CPU but for that
 * check; no shared state, so a worker that dies takes nothing with it: its request is answered on
 * the way out.
 */
#include "ledger/service_impl.h"

enum { EVICTED_MAX = 64 };

struct work {
    struct ledger_service *service;
    struct ledger_request *request;
};

static void answer_panicked(void *argument)
{
    struct work *work = argument;

    RON_PROBE("ledger: a prevalidator panicked");
    request_refuse(work->service, work->request, RON_ERR_INTERNAL, "its prevalidator failed");
}

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

static enum ron_err call_prepare(struct ledger_request *request,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    if (request->prepare == NULL)
        return RON_ERR_OK;
    rt_assert_no_lock_held();
    return request->prepare(request, request->context, reterr);
}

static enum ron_err check(struct ledger_service *service, struct ledger_request *request,
                          struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err;

    if (rt_deadline_expired(request->deadline)) {
        RON_PROBE("ledger: the deadline passed in the ingress queue");
        return ron_fail(reterr, RON_ERR_TIMEOUT, "the deadline passed in the ingress queue");
    }
    err = call_prepare(request, reterr);
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
    return err;
}

/* On to the Sequencer; those it pushes out are answered here. */
static void pass_on(struct ledger_service *service, struct ledger_request *request)
{
    void *evicted[EVICTED_MAX];
    size_t evicted_count = 0;
    struct ron_errinfo info = {0};
    enum ron_err err = rt_queue_send_drop_oldest(
        service->preval, (struct rt_queue_item){request, request_weight(request)}, evicted,
        EVICTED_MAX, &evicted_count, &info);

    if (err == RON_ERR_CANCELED)
        request_refuse(service, request, RON_ERR_DRAINING, "the drain was cut short");
    else if (err != RON_ERR_OK)
        request_answer(service, request, err, &info);
    for (size_t i = 0; i < evicted_count; i++) {
        RON_PROBE("ledger: a request is evicted");
        request_refuse(service, evicted[i], RON_ERR_PREVAL_DROP_OLDEST,
                       "evicted by a newer request before sequencing");
    }
}

enum ron_err prevalidator_run(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct prevalidator *prevalidator = argument;
    struct ledger_service *service = prevalidator->service;
    void *item = NULL;

    while (rt_queue_recv(service->ingress, RT_DEADLINE_NEVER, &item, NULL) == RON_ERR_OK) {
        struct work work = {service, item};
        struct rt_cleanup cleanup;
        struct ron_errinfo info = {0};
        uint64_t begin_ns = rt_now_ns();
        enum ron_err err;

        rt_cleanup_push(&cleanup, answer_panicked, &work);
        err = check(service, work.request, &info);
        rt_cleanup_pop(&cleanup, false);
        ledger_observe(&service->metrics, &service->metrics.prevalidator, rt_now_ns() - begin_ns);
        if (err == RON_ERR_OK)
            pass_on(service, work.request);
        else
            request_answer(service, work.request, err, &info);
        rt_task_beat(task);
    }
    return RON_ERR_OK;
}
