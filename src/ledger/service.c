/*
 * service.c - the pipeline put together, started and taken apart. See service.h.
 */
#include <stdio.h>

#include "base/mem.h"
#include "ledger/core_ids.h"
#include "ledger/replay_ahead.h"
#include "ledger/service_impl.h"

/* --- Answers -----------------------------------------------------------------------------------
 */

void request_leave(struct ledger_service *service, struct ledger_request *request, bool failed)
{
    struct rt_span *span = RON_TAKE(request->state.span);

    if (RON_LIKELY(span == NULL))
        return;
    rt_span_end(service->options.spans, span, failed);
}

void request_enter(struct ledger_service *service, struct ledger_request *request,
                   const char *stage)
{
    struct rt_span *span;

    if (RON_LIKELY(!request->trace.on))
        return;
    request_leave(service, request, false);
    span = rt_span_begin(service->options.spans, &request->trace, stage);
    rt_span_put_text(span, "role", "ledger");
    if (request->corr_id != NULL)
        rt_span_put_text(span, "corr_id", request->corr_id);
    request->state.span = span;
}

void request_answer(struct ledger_service *service, struct ledger_request *request,
                    enum ron_err err, const struct ron_errinfo *info)
{
    RON_ASSERT(request->state.taken); /* exactly once */
    request->state.taken = false;
    if (request->state.charged &&
        (request->outcome.repeated || (err != RON_ERR_OK && !request->outcome.unknown)))
        ledger_checks_refund(service->options.checks, request);
    request->outcome.err = err;
    request_leave(service, request, err != RON_ERR_OK);
    if (err != RON_ERR_OK) {
        request->outcome.info = *info;
        ledger_count_both(&service->metrics, service->metrics.rejected[err]);
    }
    request->done(request, request->context);
}

void request_refuse(struct ledger_service *service, struct ledger_request *request,
                    enum ron_err err, const char *text)
{
    struct ron_errinfo info = {0};

    request_answer(service, request, ron_fail(&info, err, "%s", text), &info);
}

void queue_sweep(struct ledger_service *service, struct rt_queue *queue, enum ron_err err,
                 const char *text)
{
    void *item;

    while (rt_queue_try_recv_many(queue, &item, 1) > 0)
        if (item != &service->barrier && item != &service->snapshots.barrier)
            request_refuse(service, item, err, text);
}

/* --- Making ------------------------------------------------------------------------------------
 */

struct ledger_service_options ledger_service_defaults(uint32_t accounts_max, uint32_t cpus_count)
{
    const uint32_t half = cpus_count / 2;
    struct ledger_capacity capacity = ledger_capacity_of(accounts_max);

    capacity.entries_window = 4 << 20;
    capacity.keys_window = 4 << 20;
    capacity.batches_window = 1 << 20;
    return (struct ledger_service_options){
        .capacity = capacity,
        .prevalidators_count = half < 2                          ? 2
                               : half > LEDGER_PREVALIDATORS_MAX ? LEDGER_PREVALIDATORS_MAX
                                                                 : half,
        .ingress_max = 2000,
        .preval_max = 2000,
        .commit_max = 1000,
        .queue_bytes_max = UINT64_C(64) << 20,
        .window_max = LEDGER_WINDOW_MAX,
        .linger_us = 0,
        .expire_ms = 1000,
        .lag_ms_max = 1000,
        .sync_ms_max = 10000,
        .drain_ms = 3000,
        .roots_max = LEDGER_ROOTS_RING,
        .snapshot = {.dir = "ledger/snapshots",
                     .entries = 1 << 20,
                     .ms = 60000,
                     .write_ms_max = 600000,
                     .copy_max = 512},
        .classes = {{16, 2 * LEDGER_EXT_SIZE_MAX, 1000},
                    {256, 16 * LEDGER_EXT_SIZE_MAX, 64},
                    {LEDGER_BATCH_ENTRIES_MAX, 2 * RON_BODY_SIZE_MAX, 8}},
    };
}

/* What the Committer has in hand still has its place: the commit queue's figures count it. */
static uint32_t count_held(const void *context)
{
    const struct ledger_service *service = context;

    return (uint32_t)rt_counter_load(&service->committer.held);
}

/* Who does not wait any more is evicted first. */
static uint64_t deadline_of(const void *pointer)
{
    const struct ledger_request *request = pointer;

    return request->deadline.at_ns;
}

static enum ron_err make_queues(struct ledger_service *service, struct ron_errinfo *reterr)
{
    const struct ledger_service_options *options = &service->options;
    struct rt_queue_options queue = {.name = "ingress",
                                     .owner = "ledger",
                                     .policy = "refuse: Busy",
                                     .capacity = options->ingress_max,
                                     .weight_max = options->queue_bytes_max,
                                     .held_context = service};
    enum ron_err err = rt_queue_new(&queue, &service->ingress, reterr);

    queue.name = "preval";
    queue.policy = "drop expired, then oldest: PrevalDropOldest";
    queue.capacity = options->preval_max;
    queue.deadline_of = deadline_of;
    if (err == RON_ERR_OK)
        err = rt_queue_new(&queue, &service->preval, reterr);
    queue.name = "commit";
    queue.policy = "refuse, before a seq is used: CommitBackpressure";
    queue.capacity = options->commit_max;
    queue.deadline_of = NULL;
    queue.count_held = count_held;
    if (err == RON_ERR_OK)
        err = rt_queue_new(&queue, &service->commit, reterr);
    return err;
}

static enum ron_err make_channels(struct ledger_service *service, struct ron_errinfo *reterr)
{
    const struct rt_watch_options started = {
        .name = "started", .owner = "ledger", .value_size = sizeof(bool)};
    const struct rt_watch_options rollbacks = {
        .name = "rollbacks", .owner = "ledger", .value_size = sizeof(uint64_t)};
    const bool is_started = false;
    const uint64_t none = 0;
    enum ron_err err = make_queues(service, reterr);

    if (err == RON_ERR_OK)
        err = rt_watch_new(&started, &is_started, &service->started, reterr);
    if (err == RON_ERR_OK)
        err = rt_watch_new(&rollbacks, &none, &service->rollbacks, reterr);
    if (err == RON_ERR_OK)
        err = roots_init(service, reterr);
    if (err == RON_ERR_OK)
        err = snapshots_init(service, reterr);
    return err;
}

/* The largest frame that the largest slot can become. */
static size_t frame_size_max(const struct ledger_service_options *options)
{
    size_t size_max = 0;

    for (uint32_t i = 0; i < LEDGER_SLOT_CLASSES_MAX; i++) {
        const struct ledger_slot_class *class = &options->classes[i];
        const size_t entries = class->entries_max;
        const size_t size = LEDGER_FRAME_HEAD_SIZE +
                            entries * (RON_ENTRY_SIZE + 2 + 1 + LEDGER_ID_TEXT_SIZE_MAX) +
                            class->ext_max + RON_IDEM_KEY_SIZE_MAX + LEDGER_BODY_SIZE_MAX +
                            (3 * entries + 1) * (1 + RON_ACCOUNT_NAME_SIZE_MAX);

        if (class->count > 0 && size > size_max)
            size_max = size;
    }
    return size_max;
}

static enum ron_err make_committer(struct ledger_service *service, struct ron_errinfo *reterr)
{
    struct committer *committer = &service->committer;

    service->frame_size_max = frame_size_max(&service->options);
    committer->flight_max = service->options.commit_max + 1; /* the barrier needs no slot */
    committer->flight = ron_mem_alloc_array(committer->flight_max, sizeof(committer->flight[0]));
    committer->inbox = ron_mem_alloc_array(committer->flight_max, sizeof(committer->inbox[0]));
    committer->frame = ron_mem_alloc(COMMIT_FRAME_SIZE);
    if (committer->flight == NULL || committer->inbox == NULL || committer->frame == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "the committer's buffers");
    return RON_ERR_OK;
}

static enum ron_err make_archive(struct ledger_service *service, struct ron_errinfo *reterr)
{
    struct ledger_archive *archive = &service->options.archive;
    enum ron_err err;

    if (archive->find_entry != NULL || archive->find_key != NULL || archive->find_reply != NULL ||
        service->engine->ops->find == NULL)
        return RON_ERR_OK;
    err = ledger_store_new(service->engine, &service->store, reterr);
    if (err == RON_ERR_OK)
        *archive = ledger_store_archive(service->store);
    return err;
}

/* A task gave up. */
static void escalate(void *context, const struct rt_task *task, const struct ron_errinfo *info)
{
    struct ledger_service *service = context;

    rt_health_escalate(&service->health, task, info);
    for (uint32_t i = 0; i < service->options.prevalidators_count; i++)
        if (rt_task_name(task) == service->prevalidators[i].name)
            (void)rt_atomic_add_u32(&service->prevalidators_down, 1);
    ingress_check_prevalidators(service);
    for (unsigned i = 0; i < LEDGER_CHECK__COUNT; i++)
        if (rt_task_name(task) == service->checkers[i].name)
            ledger_checks_abandon(service->options.checks, (enum ledger_check_port)i);
}

/* A breaker opened, or lets a probe pass. */
static void report_breaker(void *context, enum ledger_check_port port, bool open)
{
    struct ledger_service *service = context;

    if (open)
        (void)rt_lifecycle_raise(service->lifecycle, CAUSE_BREAKER + port);
    else
        (void)rt_lifecycle_clear(service->lifecycle, CAUSE_BREAKER + port);
}

static enum ron_err make_tasks(struct ledger_service *service, struct ron_errinfo *reterr)
{
    const uint32_t count = service->options.prevalidators_count;
    const struct rt_supervisor_options options = {.name = "ledger",
                                                  .owner = "ledger",
                                                  .tasks_max = count + 5 + LEDGER_CHECK__COUNT,
                                                  .escalate = escalate,
                                                  .escalate_context = service};
    const uint32_t raised = service->clean_start ? RT_CAUSE_BIT(CAUSE_STARTING)
                                                 : RT_CAUSE_BIT(RT_CAUSE_RECOVERING);
    enum ron_err err;

    service->role = service_life_role;
    service->role.drain_ms = service->options.drain_ms;
    service->prevalidators = ron_mem_alloc_array(count, sizeof(service->prevalidators[0]));
    if (service->prevalidators == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%u prevalidators", count);
    for (uint32_t i = 0; i < count; i++) {
        service->prevalidators[i].service = service;
        (void)snprintf(service->prevalidators[i].name, sizeof(service->prevalidators[i].name),
                       "prevalidator %u", i + 1);
    }
    for (unsigned i = 0; i < LEDGER_CHECK__COUNT; i++) {
        struct checker *checker = &service->checkers[i];

        checker->service = service;
        checker->port = (enum ledger_check_port)i;
        (void)snprintf(checker->name, sizeof(checker->name), "checker %s", ledger_check_names[i]);
    }
    err = rt_supervisor_new(&options, &service->supervisor, reterr);
    if (err == RON_ERR_OK)
        err = rt_lifecycle_new(&service->role, raised, service, &service->lifecycle, reterr);
    service->health = (struct rt_health){service->lifecycle, service->supervisor,
                                         service->options.log};
    if (service->options.checks != NULL)
        ledger_checks_attach(service->options.checks, report_breaker, service);
    if (err == RON_ERR_OK)
        service_show_safe(service);
    return err;
}

static void check_options(const struct ledger_service_options *options)
{
    const struct ledger_follower *follower = &options->follower;
    const bool followed = follower->extend != NULL;

    RON_ASSERT((follower->size != NULL) == followed);
    RON_ASSERT((follower->settle != NULL) == followed);
    RON_ASSERT((follower->head != NULL) == followed);
    RON_ASSERT((follower->keep != NULL) == followed);
    RON_ASSERT((follower->end != NULL) == followed);
    RON_ASSERT(options->engine != NULL);
    RON_ASSERT(options->prevalidators_count >= 1);
    RON_ASSERT(options->prevalidators_count <= LEDGER_PREVALIDATORS_MAX);
    RON_ASSERT(options->window_max >= 1);
    RON_ASSERT(options->window_max <= LEDGER_WINDOW_MAX);
    RON_ASSERT(options->commit_max >= 1);
    RON_ASSERT(options->linger_us <= 2000);
    RON_ASSERT(options->sync_ms_max > 0);
    RON_ASSERT(options->roots_max >= 1);
}

enum ron_err ledger_service_new(const struct ledger_service_options *options,
                                struct ledger_service **ret_service, struct ron_errinfo *reterr)
{
    struct ledger_service *service = ron_mem_alloc(sizeof(*service));
    enum ron_err err;

    check_options(options);
    if (service == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a ledger service");
    service->magic = SERVICE_MAGIC;
    service->options = *options;
    service->options.capacity.pending_max = options->commit_max;
    service->engine = options->engine;
    service->clean_start = options->engine->clean;
    rt_lock_init(&service->roots.lock, "roots", RON_RANK_storage);
    rt_lock_init(&service->snapshots.lock, "snapshots", RON_RANK_storage);
    ledger_metrics_init(&service->metrics, options->metrics);
    err = make_channels(service, reterr);
    if (err == RON_ERR_OK)
        err = make_archive(service, reterr);
    if (err == RON_ERR_OK)
        err = ledger_core_new(&service->options.capacity, &service->options.archive, &service->core,
                              reterr);
    if (err == RON_ERR_OK)
        err = slots_init(&service->slots, &service->options, reterr);
    if (err == RON_ERR_OK)
        err = make_committer(service, reterr);
    if (err == RON_ERR_OK)
        err = make_tasks(service, reterr);
    if (err != RON_ERR_OK) {
        (void)ledger_service_free(service);
        return err;
    }
    *ret_service = service;
    return RON_ERR_OK;
}

static enum ron_err spawn(struct ledger_service *service, const char *kind, const char *name,
                          rt_task_fn *fn, void *argument, struct rt_task **ret_task,
                          struct ron_errinfo *reterr)
{
    /* Only a prevalidator or a checker can fail; the others end with what they were given. */
    const struct rt_task_options options = {
        .kind = kind, .name = name, .owner = "ledger", .fn = fn, .argument = argument};

    return rt_task_spawn(service->supervisor, &options, ret_task, reterr);
}

static enum ron_err checks_run(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct ledger_service *service = argument;

    (void)task;
    ledger_checks_watch(service->options.checks);
    return RON_ERR_OK;
}

static enum ron_err checker_run(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct checker *checker = argument;

    (void)task;
    ledger_checks_serve(checker->service->options.checks, checker->port);
    return RON_ERR_OK;
}

/* The watch over breakers and a task for each remote port. */
static enum ron_err start_checks(struct ledger_service *service, struct ron_errinfo *reterr)
{
    const struct ledger_checks *checks = service->options.checks;
    enum ron_err err;

    if (checks == NULL || !ledger_checks_are_remote(checks))
        return RON_ERR_OK;
    err = spawn(service, "breaker watch", "breaker watch", checks_run, service,
                &service->checks_task, reterr);
    for (unsigned i = 0; i < LEDGER_CHECK__COUNT && err == RON_ERR_OK; i++) {
        struct checker *checker = &service->checkers[i];

        if (ledger_checks_is_remote(checks, checker->port))
            err = spawn(service, "checker", checker->name, checker_run, checker, &checker->task,
                        reterr);
    }
    return err;
}

enum ron_err ledger_service_start(struct ledger_service *service, struct ron_errinfo *reterr)
{
    enum ron_err err = spawn(service, "roots publisher", "roots publisher", roots_run, service,
                             &service->roots.task, reterr);

    if (err == RON_ERR_OK)
        err = spawn(service, "committer", "committer", committer_run, service,
                    &service->committer.task, reterr);
    if (err == RON_ERR_OK)
        err = spawn(service, "sequencer", "sequencer", sequencer_run, service,
                    &service->sequencer.task, reterr);
    if (err == RON_ERR_OK && service->options.snapshot.vfs != NULL)
        err = spawn(service, "snapshotter", "snapshotter", snapshots_run, service,
                    &service->snapshots.task, reterr);
    if (err == RON_ERR_OK)
        err = start_checks(service, reterr);
    for (uint32_t i = 0; i < service->options.prevalidators_count && err == RON_ERR_OK; i++) {
        struct prevalidator *prevalidator = &service->prevalidators[i];

        err = spawn(service, "prevalidator", prevalidator->name, prevalidator_run, prevalidator,
                    &prevalidator->task, reterr);
    }
    return err;
}

enum ron_err ledger_service_stop(struct ledger_service *service, struct rt_life_report *ret_report,
                                 struct ron_errinfo *reterr)
{
    enum ron_err err = rt_lifecycle_stop(service->lifecycle, ret_report, reterr);
    enum ron_err stop_err = rt_supervisor_stop(service->supervisor, rt_deadline_after_ms(0), NULL);

    return err == RON_ERR_OK ? stop_err : err;
}

struct ledger_service *ledger_service_free(struct ledger_service *service)
{
    if (service == NULL)
        return NULL;
    RON_ASSERT(service->magic == SERVICE_MAGIC);
    service->lifecycle = rt_lifecycle_free(service->lifecycle);
    service->supervisor = rt_supervisor_free(service->supervisor);
    service->prevalidators = ron_mem_free(service->prevalidators);
    service->committer.flight = ron_mem_free(service->committer.flight);
    service->committer.inbox = ron_mem_free(service->committer.inbox);
    service->committer.frame = ron_mem_free(service->committer.frame);
    snapshots_fini(service);
    slots_fini(&service->slots);
    service->core = ledger_core_free(service->core);
    service->store = ledger_store_free(service->store);
    roots_fini(service);
    service->rollbacks = rt_watch_free(service->rollbacks);
    service->started = rt_watch_free(service->started);
    service->commit = rt_queue_free(service->commit);
    service->preval = rt_queue_free(service->preval);
    service->ingress = rt_queue_free(service->ingress);
    service->magic = ~SERVICE_MAGIC;
    return ron_mem_free(service);
}

/* --- Asked from outside ------------------------------------------------------------------------
 */

struct rt_lifecycle *ledger_service_lifecycle(struct ledger_service *service)
{
    return service->lifecycle;
}

struct rt_supervisor *ledger_service_supervisor(struct ledger_service *service)
{
    return service->supervisor;
}

enum ron_err ledger_service_await_start(struct ledger_service *service, struct rt_deadline deadline,
                                        struct ron_errinfo *reterr)
{
    bool started = false;
    uint64_t version = rt_watch_get(service->started, &started);
    enum ron_err err = RON_ERR_OK;

    while (!started && err == RON_ERR_OK)
        err = rt_watch_wait(service->started, version, deadline, &started, &version, reterr);
    return err;
}

enum ron_err ledger_service_revive(struct ledger_service *service, struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;

    for (uint32_t i = 0; i < service->options.prevalidators_count && err == RON_ERR_OK; i++) {
        enum ron_err revived = rt_health_revive(&service->health, service->prevalidators[i].task,
                                                reterr);

        if (revived == RON_ERR_OK)
            (void)rt_atomic_sub_u32(&service->prevalidators_down, 1);
        else if (revived != RON_ERR_CONFLICT) /* has not given up */
            err = revived;
    }
    if (err == RON_ERR_OK &&
        rt_atomic_load_u32(&service->prevalidators_down) < service->options.prevalidators_count)
        (void)rt_lifecycle_clear(service->lifecycle, CAUSE_NO_PREVALIDATORS);
    return err;
}

struct ron_slice ledger_read_name(struct ledger_service *service, const struct ledger_id *account)
{
    return ledger_core_name(service->core, account);
}

void ledger_read_balance(struct ledger_service *service, const struct ledger_id *account,
                         uint32_t asset, struct ledger_balance *ret_balance)
{
    const struct ledger_core *core = rt_atomic_load_ptr(&service->view);

    if (core != NULL)
        ledger_core_balance(core, account, asset, ret_balance);
    else
        *ret_balance = (struct ledger_balance){.next_nonce = 1};
}

void ledger_read_balances(struct ledger_service *service, struct ledger_balance_ask *asks,
                          size_t asks_count)
{
    const struct ledger_core *core = rt_atomic_load_ptr(&service->view);

    if (core != NULL) {
        ledger_core_balances(core, asks, asks_count);
        return;
    }
    for (size_t i = 0; i < asks_count; i++)
        asks[i].balance = (struct ledger_balance){.next_nonce = 1};
}

uint64_t ledger_service_seq_of(struct ledger_service *service, const struct ledger_id *id,
                               uint64_t seq_max, uint64_t below)
{
    return ledger_core_seq_of(service->core, id, seq_max, below);
}

enum ron_err ledger_service_archived(struct ledger_service *service, const struct ledger_id *id,
                                     struct ron_buf *buf, struct ledger_frame *ret_frame,
                                     uint64_t *ret_seq, struct ron_errinfo *reterr)
{
    return ledger_archive_entry(service->engine, id, ledger_read_head(service).batch, buf,
                                ret_frame, ret_seq, reterr);
}

void ledger_read_health(struct ledger_service *service, struct ledger_health *ret_health)
{
    struct rt_queue_stats stats;
    struct ron_errinfo end;
    bool started = false;
    struct ledger_health health = {
        .status = rt_lifecycle_status(service->lifecycle),
        .ready = rt_lifecycle_ready(service->lifecycle),
        .lag_ms = slots_lag_ns(&service->slots, rt_now_ns()) / RT_NS_PER_MS,
        .in_flight = slots_in_flight(&service->slots),
        .disk_pressure = rt_atomic_load_u32(&service->disk_pressure) != 0,
        .head = ledger_read_head(service),
        .clean_start = service->clean_start,
        .replayed_batches = rt_counter_load(&service->sequencer.replayed_count),
    };

    (void)rt_watch_get(service->started, &started);
    if (started)
        health.start = service->start;
    health.held_bytes = slots_bytes(&service->slots);
    rt_queue_get_stats(service->ingress, &stats);
    health.ingress = stats.depth;
    health.held_bytes += stats.weight;
    rt_queue_get_stats(service->preval, &stats);
    health.preval = stats.depth;
    health.held_bytes += stats.weight;
    if (service->options.checks != NULL) {
        const struct ledger_checks_parked parked = ledger_checks_get_parked(
            service->options.checks);

        health.parked = parked.count;
        health.held_bytes += parked.bytes;
    }
    health.snapshots = snapshots_health(service, &end);
    health.follower_lost = rt_atomic_load_u32(&service->follower_lost) != 0;
    service_get_damage(service, &health);
    *ret_health = health;
}
