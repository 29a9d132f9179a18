/*
 * service_fixture.h - a ledger service under test, with a shop of requests that wait for their
 * answers.
 * tidy: long file because it is an engine, a client and their wiring, and all service tests share
 * it.
 *
 * Small capacities, a memory engine behind a gate: the test can hold its syncs back, let one fail,
 * or have no room. No clock decides anything: tests wait for what they need to have happened.
 */
#ifndef RON_TESTS_SERVICE_FIXTURE_H
#define RON_TESTS_SERVICE_FIXTURE_H

#include "support.h"

#include <stdio.h>

#include "base/mem.h"
#include "ledger/core_frame.h"
#include "ledger/service.h"
#include "ledger/service_metrics.h"
#include "rt/atomic.h"
#include "rt/bus.h"
#include "rt/metric_names.h"
#include "rt/queue.h"
#include "rt/registry.h"
#include "rt/supervisor.h"

#define S(text) ron_slice_text(text)

enum { REQUESTS_MAX = 64, TEXT_SIZE = 64 };

/* A memory engine that does what it is told. */
struct gate {
    struct ledger_engine head;
    struct ledger_engine *inner;
    struct rt_watch *open;             /* bool: waits come back */
    struct rt_atomic_u64 durable;      /* what it says is durable */
    struct rt_atomic_u32 append_error; /* an enum ron_err, or 0 */
    struct rt_atomic_u32 wait_error;
    struct rt_atomic_u32 appends_count, waits_count;
    uint64_t corrupt_number;   /* the frame that recovery reads with one bit turned; 0: none */
    ledger_frame_fn *frame_fn; /* while recovering */
    void *frame_context;
};

struct call {
    struct ledger_request request;
    struct ledger_wire_entry wire;
    struct ledger_op op;
    char id[TEXT_SIZE], from[TEXT_SIZE], to[TEXT_SIZE], amount[TEXT_SIZE], key[TEXT_SIZE];
    struct service_fixture *fixture;
    struct rt_atomic_u32 answers_count;
};

struct service_fixture {
    struct ledger_service *service;
    struct ledger_service_options options;
    struct gate *gate;
    struct ledger_engine *engine;
    struct rt_metrics *metrics;
    struct rt_queue *answered; /* calls, as they are answered */
    struct rt_atomic_u32 panics_left;
    struct rt_watch *checks_open; /* bool: the check lets requests through */
    struct rt_atomic_u32 checks_count;
    struct call calls[REQUESTS_MAX];
    uint32_t calls_count;
};

static inline struct gate *gate_of(struct ledger_engine *engine)
{
    return (struct gate *)engine;
}

static inline enum ron_err gate_frame(void *context, uint64_t number, struct ron_slice frame,
                                      struct ron_errinfo *reterr)
{
    struct gate *gate = context;
    uint8_t *copy;
    enum ron_err err;

    if (number != gate->corrupt_number)
        return gate->frame_fn(gate->frame_context, number, frame, reterr);
    copy = ron_mem_alloc(frame.size);
    assert_non_null(copy);
    memcpy(copy, frame.data, frame.size);
    copy[LEDGER_FRAME_HEAD_SIZE + 48] ^= 1; /* the amount of its first entry */
    err = gate->frame_fn(gate->frame_context, number, ron_slice_of(copy, frame.size), reterr);
    (void)ron_mem_free(copy);
    return err;
}

static inline enum ron_err gate_recover(struct ledger_engine *engine, uint64_t first,
                                        ledger_frame_fn *fn, void *context,
                                        struct ron_errinfo *reterr) RON_BLOCKS
{
    struct gate *gate = gate_of(engine);
    enum ron_err err;

    engine->clean = false;
    gate->frame_fn = fn;
    gate->frame_context = context;
    err = ledger_engine_recover(gate->inner, first, gate_frame, gate, reterr);
    rt_atomic_store_u64(&gate->durable, ledger_engine_durable(gate->inner));
    return err;
}

static inline enum ron_err gate_append(struct ledger_engine *engine, const struct ron_slice *parts,
                                       size_t parts_count, struct rt_deadline deadline,
                                       uint64_t *ret_number, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct gate *gate = gate_of(engine);
    enum ron_err err = (enum ron_err)rt_atomic_load_u32(&gate->append_error);

    (void)rt_atomic_add_u32(&gate->appends_count, 1);
    if (err != RON_ERR_OK)
        return ron_fail(reterr, err, "append, as the test told it");
    return ledger_engine_append(gate->inner, parts, parts_count, deadline, ret_number, reterr);
}

static inline enum ron_err gate_wait(struct ledger_engine *engine, uint64_t number,
                                     struct rt_deadline deadline,
                                     struct ron_errinfo *reterr) RON_BLOCKS
{
    struct gate *gate = gate_of(engine);
    bool open = false;
    uint64_t version = rt_watch_get(gate->open, &open);
    enum ron_err err = RON_ERR_OK;

    (void)rt_atomic_add_u32(&gate->waits_count, 1);
    while (!open && err == RON_ERR_OK)
        err = rt_watch_wait(gate->open, version, deadline, &open, &version, reterr);
    if (err != RON_ERR_OK)
        return err;
    err = (enum ron_err)rt_atomic_load_u32(&gate->wait_error);
    if (err != RON_ERR_OK)
        return ron_fail(reterr, err, "sync, as the test told it");
    (void)number; /* a sync covers all that was appended */
    rt_atomic_store_u64(&gate->durable, ledger_engine_durable(gate->inner));
    return RON_ERR_OK;
}

static inline uint64_t gate_durable(struct ledger_engine *engine)
{
    return rt_atomic_load_u64(&gate_of(engine)->durable);
}

static inline enum ron_err gate_read(struct ledger_engine *engine, uint64_t number,
                                     struct ron_buf *buf, struct ron_errinfo *reterr) RON_BLOCKS
{
    return ledger_engine_read(gate_of(engine)->inner, number, buf, reterr);
}

static inline enum ron_err gate_close(struct ledger_engine *engine, struct rt_deadline deadline,
                                      struct ron_errinfo *reterr) RON_BLOCKS
{
    engine->clean = true;
    return ledger_engine_close(gate_of(engine)->inner, deadline, reterr);
}

static const struct ledger_engine_ops gate_ops = {
    .name = "gate",
    .recover = gate_recover,
    .append = gate_append,
    .wait = gate_wait,
    .durable = gate_durable,
    .read = gate_read,
    .close = gate_close,
};

static inline void gate_set(struct gate *gate, bool open)
{
    rt_watch_set(gate->open, &open);
}

/* The plugged-in check: waits while the test says so, panics when told to. */
static inline enum ron_err fixture_check(void *context, const struct ledger_request *request,
                                         struct ron_errinfo *reterr) RON_BLOCKS
{
    struct service_fixture *f = context;
    bool open = false;
    uint64_t version = rt_watch_get(f->checks_open, &open);
    uint32_t left = rt_atomic_load_u32(&f->panics_left);

    (void)rt_atomic_add_u32(&f->checks_count, 1);
    while (!open)
        assert_ok(rt_watch_wait(f->checks_open, version, RT_DEADLINE_NEVER, &open, &version, NULL));
    if (left > 0 && rt_atomic_cas_u32(&f->panics_left, left, left - 1))
        rt_panic("as the test told it");
    if (request->command.stamp.capability[0] == 'X')
        return ron_fail(reterr, RON_ERR_POLICY_DENIED, "capability X");
    return RON_ERR_OK;
}

static inline void checks_set(struct service_fixture *f, bool open)
{
    rt_watch_set(f->checks_open, &open);
}

static inline struct rt_watch *fixture_watch(const char *name)
{
    const struct rt_watch_options options = {
        .name = name, .owner = "test", .value_size = sizeof(bool)};
    const bool open = true;
    struct rt_watch *watch = NULL;

    assert_ok(rt_watch_new(&options, &open, &watch, NULL));
    return watch;
}

static inline struct ledger_service_options fixture_options(void)
{
    struct ledger_service_options options = ledger_service_defaults(256, 2);

    options.capacity = ledger_capacity_of(256);
    options.expire_ms = 0;
    options.lag_ms_max = 0;
    options.ingress_max = 8;
    options.preval_max = 8;
    options.commit_max = 4;
    options.sync_ms_max = 600000;
    options.drain_ms = 600000;
    options.classes[0] = (struct ledger_slot_class){4, 2 * LEDGER_EXT_SIZE_MAX, 4};
    options.classes[1].count = 0;
    options.classes[2].count = 0;
    return options;
}

/* The engines outlive services: a second one may be made on the same. */
static inline struct service_fixture *fixture_new(void)
{
    static const struct rt_metric_table tables[] = {{rt_metric_table, RT_METRIC__COUNT},
                                                    {ledger_metric_table, LEDGER_METRIC__COUNT}};
    const struct ledger_engine_memory_options memory = {1 << 20, 256};
    const struct rt_queue_options answers = {
        .name = "answered", .owner = "test", .policy = "never full", .capacity = 2 * REQUESTS_MAX};
    struct service_fixture *f = ron_mem_alloc(sizeof(*f));

    rt_init();
    assert_non_null(f);
    f->gate = ron_mem_alloc(sizeof(*f->gate));
    assert_non_null(f->gate);
    assert_ok(ledger_engine_memory_new(&memory, &f->engine, NULL));
    f->gate->head = (struct ledger_engine){&gate_ops, true};
    f->gate->inner = f->engine;
    f->gate->open = fixture_watch("gate");
    f->checks_open = fixture_watch("checks");
    assert_ok(rt_metrics_new(tables, RON_ARRAY_COUNT(tables), &f->metrics, NULL));
    assert_ok(rt_queue_new(&answers, &f->answered, NULL));
    f->options = fixture_options();
    f->options.engine = &f->gate->head;
    f->options.metrics = f->metrics;
    f->options.check = fixture_check;
    f->options.check_context = f;
    return f;
}

static inline void fixture_start(struct service_fixture *f) RON_BLOCKS
{
    if (f->gate->inner != NULL) /* an open finds what came to the disk, synced or not */
        rt_atomic_store_u64(&f->gate->durable, ledger_engine_durable(f->gate->inner));
    assert_ok(ledger_service_new(&f->options, &f->service, NULL));
    assert_ok(ledger_service_start(f->service, NULL));
    assert_ok(ledger_service_await_start(f->service, RT_DEADLINE_NEVER, NULL));
}

static inline void fixture_stop(struct service_fixture *f) RON_BLOCKS
{
    assert_ok(ledger_service_stop(f->service, NULL, NULL));
    f->service = ledger_service_free(f->service);
}

static inline void fixture_free(struct service_fixture *f)
{
    assert_null(f->service);
    for (uint32_t i = 0; i < f->calls_count; i++)
        assert_false(f->calls[i].request.state.taken); /* everybody was answered */
    while (rt_queue_try_recv_many(f->answered, &(void *){NULL}, 1) > 0)
        ;
    (void)rt_queue_free(f->answered);
    (void)rt_metrics_free(f->metrics);
    (void)rt_watch_free(f->checks_open);
    (void)rt_watch_free(f->gate->open);
    (void)ledger_engine_memory_free(f->engine);
    (void)ron_mem_free(f->gate);
    (void)ron_mem_free(f);
}

static inline void call_done(struct ledger_request *request, void *context)
{
    struct call *call = context;

    assert_ptr_equal(request, &call->request);
    assert_int_equal(rt_atomic_add_u32(&call->answers_count, 1), 0);
    if (request->outcome.err == RON_ERR_OK) /* published before it is answered */
        assert_true(ledger_read_head(call->fixture->service).seq >= request->outcome.reply.seq_end);
    assert_ok(rt_queue_try_send(call->fixture->answered, (struct rt_queue_item){call, 1}, NULL));
}

/* A call that is not submitted yet. from NULL: Mint. key NULL: none. */
static inline struct call *call_new(struct service_fixture *f, const char *id, const char *from,
                                    const char *to, uint64_t amount, const char *key)
{
    struct call *call = &f->calls[f->calls_count++];

    assert_true(f->calls_count <= REQUESTS_MAX);
    *call = (struct call){.fixture = f};
    (void)snprintf(call->id, TEXT_SIZE, "%s", id);
    (void)snprintf(call->from, TEXT_SIZE, "%s", from == NULL ? "" : from);
    (void)snprintf(call->to, TEXT_SIZE, "%s", to);
    (void)snprintf(call->amount, TEXT_SIZE, "%llu", (unsigned long long)amount);
    (void)snprintf(call->key, TEXT_SIZE, "%s", key == NULL ? "" : key);
    call->wire = (struct ledger_wire_entry){.id = S(call->id),
                                            .kind = S(from == NULL ? "Mint" : "Transfer"),
                                            .to = S(call->to),
                                            .asset = S("roc"),
                                            .amount = S(call->amount)};
    if (from != NULL)
        call->wire.from = S(call->from);
    call->request = (struct ledger_request){
        .command = {.kind = LEDGER_COMMAND_INGEST,
                    .key = key == NULL ? (struct ron_slice){NULL, 0} : S(call->key)},
        .wire = &call->wire,
        .wire_count = 1,
        .ops_room = &call->op,
        .size = 100,
        .deadline = RT_DEADLINE_NEVER,
        .done = call_done,
        .context = call,
    };
    return call;
}

static inline struct call *submit(struct service_fixture *f, struct call *call)
{
    assert_ok(ledger_submit(f->service, &call->request, NULL));
    return call;
}

/* Wait for the next answer, whoever's it is. */
static inline struct call *next_answer(struct service_fixture *f) RON_BLOCKS
{
    void *call = NULL;

    assert_ok(rt_queue_recv(f->answered, RT_DEADLINE_NEVER, &call, NULL));
    return call;
}

/* Submit and wait; must be the only one under way. */
static inline struct ledger_outcome *ask(struct service_fixture *f, struct call *call) RON_BLOCKS
{
    assert_ptr_equal(next_answer((submit(f, call), f)), call);
    return &call->request.outcome;
}

static inline void accepts(struct service_fixture *f, struct call *call) RON_BLOCKS
{
    assert_int_equal(ask(f, call)->err, RON_ERR_OK);
}

static inline uint64_t balance_of(struct service_fixture *f, const char *account)
{
    struct ledger_id id = ledger_account_id("", S(account));
    struct ledger_balance balance;

    ledger_read_balance(f->service, &id, 1, &balance);
    return (uint64_t)balance.amount.v;
}

/* Look again until it is so; the scheduler decides how often. What never comes is said. */
enum { UNTIL_LOOKS_MAX = 120000 };
#define until(condition)                                                                        \
    do {                                                                                        \
        struct rt_watch *until_watch = fixture_watch("until");                                  \
        unsigned until_looks = 0;                                                               \
        while (!(condition)) {                                                                  \
            if (++until_looks == UNTIL_LOOKS_MAX)                                               \
                fail_msg("this did not come to be: %s", #condition);                            \
            (void)!rt_watch_wait(until_watch, 1, rt_deadline_after_ms(1), NULL, &(uint64_t){0}, \
                                 NULL);                                                         \
        }                                                                                       \
        (void)rt_watch_free(until_watch);                                                       \
    } while (0)

#endif
