/*
 * committer.c - the registry's write path: proposals -> committer -> broadcast, and a shutdown at
 * any moment.
 *
 * In every schedule: everybody sees the shutdown; a proposal that was accepted is committed once,
 * one that was refused never; versions rise by one; a subscriber gets every version or is told
 * exactly how many it missed, and misses none that the bus still held. covers: REG-V12
 */
#include "base/mem.h"
#include "models/support.h"
#include "rt/atomic.h"
#include "rt/bus.h"
#include "rt/queue.h"
#include "rt/registry.h"

enum { PROPOSERS_MAX = 2, PROPOSALS_MAX = 3, SUBSCRIBERS_COUNT = 2 };

struct shape {
    unsigned proposers_count;
    unsigned proposals_each;
    uint32_t bus_capacity;
    bool retrying; /* planted: the committer answers a slow commit with another one */
};

struct proposal {
    bool accepted;
    unsigned committed_count;
};

struct service {
    const struct shape *shape;
    struct rt_queue *proposals_queue;
    struct rt_bus *bus;
    /* Around each publish: what a subscriber may have missed lies between the two. */
    struct rt_atomic_u64 announcing_count, announced_count;
    uint64_t version;
    struct proposal proposals[PROPOSALS_MAX];
};

struct proposer {
    struct service *service;
    unsigned first;
};

struct subscriber {
    struct service *service;
    struct rt_bus_subscriber *subscriber;
    uint64_t version; /* seen last */
    uint64_t received_count, lost_count;
};

static void proposer_fn(void *argument)
{
    const struct proposer *proposer = argument;
    struct service *service = proposer->service;

    for (unsigned i = 0; i < service->shape->proposals_each; i++) {
        struct proposal *proposal = &service->proposals[proposer->first + i];
        enum ron_err err = rt_queue_try_send(service->proposals_queue,
                                             (struct rt_queue_item){proposal, 1}, NULL);

        RON_ASSERT(err == RON_ERR_OK || err == RON_ERR_BUSY || err == RON_ERR_CANCELED);
        proposal->accepted = err == RON_ERR_OK;
    }
}

static void commit(struct service *service, struct proposal *proposal)
{
    proposal->committed_count++;
    service->version++;
    rt_counter_add(&service->announcing_count, 1);
    model_must(rt_bus_publish(service->bus, &service->version, NULL));
    rt_counter_add(&service->announced_count, 1);
}

static void committer_fn(void *argument) RON_BLOCKS
{
    struct service *service = argument;
    void *proposal = NULL;

    while (rt_queue_recv(service->proposals_queue, RT_DEADLINE_NEVER, &proposal, NULL) ==
           RON_ERR_OK) {
        commit(service, proposal);
        if (service->shape->retrying && rt_queue_closed(service->proposals_queue))
            commit(service, proposal);
    }
    rt_bus_close(service->bus);
}

static uint64_t beyond(uint64_t count, uint64_t limit)
{
    return count > limit ? count - limit : 0;
}

static void subscriber_fn(void *argument) RON_BLOCKS
{
    struct subscriber *subscriber = argument;
    struct service *service = subscriber->service;
    uint64_t before_count = rt_counter_load(&service->announced_count);
    uint64_t version = 0;
    uint64_t lost_count = 0;

    while (rt_bus_recv(subscriber->subscriber, RT_DEADLINE_NEVER, &version, &lost_count, NULL) ==
           RON_ERR_OK) {
        uint64_t after_count = rt_counter_load(&service->announcing_count);
        uint64_t held_count = subscriber->version + service->shape->bus_capacity;

        RON_ASSERT(version == subscriber->version + lost_count + 1);
        RON_ASSERT(lost_count >= beyond(before_count, held_count));
        RON_ASSERT(lost_count <= beyond(after_count, held_count));
        subscriber->version = version;
        subscriber->received_count++;
        subscriber->lost_count += lost_count;
        before_count = rt_counter_load(&service->announced_count);
    }
}

static void make(struct service *service)
{
    const struct rt_queue_options queue_options = {
        .name = "proposals", .owner = "model", .policy = "refuse", .capacity = 2};
    const struct rt_bus_options bus_options = {.name = "committed",
                                               .owner = "model",
                                               .capacity = service->shape->bus_capacity,
                                               .message_size = sizeof(uint64_t)};

    model_must(rt_queue_new(&queue_options, &service->proposals_queue, NULL));
    model_must(rt_bus_new(&bus_options, &service->bus, NULL));
}

static void check_proposals(const struct service *service)
{
    uint64_t accepted_count = 0;

    for (unsigned i = 0; i < PROPOSALS_MAX; i++) {
        const struct proposal *proposal = &service->proposals[i];

        RON_ASSERT(proposal->committed_count == (proposal->accepted ? 1 : 0));
        accepted_count += proposal->accepted ? 1 : 0;
    }
    RON_ASSERT(service->version == accepted_count);
    sim_outcome(accepted_count);
}

/* The last of the bus's subscribers never read: its lag is counted although nobody was told. */
static void check_lags(const struct service *service, const struct subscriber *subscribers)
{
    struct rt_bus_stats *stats = model_alloc(sizeof(*stats));
    uint64_t lost_count = beyond(service->version, service->shape->bus_capacity);

    rt_bus_get_stats(service->bus, stats);
    RON_ASSERT(stats->published_count == service->version);
    RON_ASSERT(stats->subscribers_count == SUBSCRIBERS_COUNT + 1);
    for (int i = 0; i < SUBSCRIBERS_COUNT; i++) {
        RON_ASSERT(subscribers[i].received_count + subscribers[i].lost_count == service->version);
        RON_ASSERT(stats->lags[i].lost_count == subscribers[i].lost_count);
        RON_ASSERT(stats->lags[i].behind_count == 0);
        sim_outcome(subscribers[i].lost_count);
    }
    RON_ASSERT(stats->lags[SUBSCRIBERS_COUNT].lost_count == lost_count);
    RON_ASSERT(stats->lags[SUBSCRIBERS_COUNT].behind_count == service->version - lost_count);
    ron_mem_free(stats);
}

static void registry_fn(void *argument)
{
    static const char *const proposer_names[] = {"proposer 1", "proposer 2"};
    static const char *const subscriber_names[] = {"subscriber 1", "subscriber 2"};
    struct service *service = model_alloc(sizeof(*service));
    struct subscriber *subscribers = model_alloc(SUBSCRIBERS_COUNT * sizeof(*subscribers));
    struct rt_bus_subscriber *stalled = NULL;
    struct proposer proposers[PROPOSERS_MAX];
    struct sh_thread *proposing[PROPOSERS_MAX];
    struct sh_thread *reading[SUBSCRIBERS_COUNT];
    struct sh_thread *committer;

    rt_init();
    service->shape = argument;
    RON_ASSERT(service->shape->proposers_count * service->shape->proposals_each <= PROPOSALS_MAX);
    make(service);
    for (int i = 0; i < SUBSCRIBERS_COUNT; i++) {
        subscribers[i].service = service;
        model_must(
            rt_bus_subscribe(service->bus, subscriber_names[i], &subscribers[i].subscriber, NULL));
        reading[i] = model_spawn(subscriber_names[i], subscriber_fn, &subscribers[i]);
    }
    model_must(rt_bus_subscribe(service->bus, "stalled", &stalled, NULL));
    committer = model_spawn("committer", committer_fn, service);
    for (unsigned i = 0; i < service->shape->proposers_count; i++) {
        proposers[i] = (struct proposer){service, i * service->shape->proposals_each};
        proposing[i] = model_spawn(proposer_names[i], proposer_fn, &proposers[i]);
    }
    rt_queue_close(service->proposals_queue);
    for (unsigned i = 0; i < service->shape->proposers_count; i++)
        model_join(proposing[i]);
    model_join(committer);
    for (int i = 0; i < SUBSCRIBERS_COUNT; i++)
        model_join(reading[i]);
    check_proposals(service);
    check_lags(service, subscribers);
    rt_bus_unsubscribe(stalled);
    for (int i = 0; i < SUBSCRIBERS_COUNT; i++)
        rt_bus_unsubscribe(subscribers[i].subscriber);
    rt_bus_free(service->bus);
    rt_queue_free(service->proposals_queue);
    ron_mem_free(subscribers);
    ron_mem_free(service);
}

static const struct shape one = {2, 1, 1, false};
static const struct shape three = {1, 3, 1, false};
static const struct shape retrying = {1, 2, 2, true};

static const struct model_case one_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = NONE}, .cache = true},
    {.config = {.preemption_bound = 0}, .compare = true},
    {.config = {.preemption_bound = 1, .fine = 1}, .cache = true},
    {.config = {.preemption_bound = 1}, .slow = true},
    {.config = {.preemption_bound = 2, .fine = 1}, .cache = true, .slow = true},
};
static const struct model_case three_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = NONE}, .cache = true},
    {.config = {.preemption_bound = NONE, .spurious = 1}, .cache = true},
    {.config = {.preemption_bound = 1}, .compare = true},
    {.config = {.preemption_bound = 2, .fine = 1}, .cache = true},
};
static const struct model_case planted_cases[] = {
    {.config = {.preemption_bound = NONE}, .expected = SIM_ASSERTION},
    {.config = {.preemption_bound = 2}, .cache = true, .expected = SIM_ASSERTION},
};
MODEL(registry, "2 proposers of 1, committer, bus(1) with 2 subscribers, shutdown at any time",
      registry_fn, MODEL_CONST(one), one_cases);
MODEL(registry_3, "3 proposals of one proposer", registry_fn, MODEL_CONST(three), three_cases);
MODEL(registry_planted, "a committer that commits again what was slow", registry_fn,
      MODEL_CONST(retrying), planted_cases);
