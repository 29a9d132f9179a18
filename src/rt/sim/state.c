/*
 * state.c - the hash of a whole state: memory, live stacks, and what the scheduler remembers.
 *
 * Two runs with equal keys can go on in the same ways. Registers are part of it because the switch
 * pushes them. Things that only say how the run came here (steps, choices) are left out, and so is
 * the order of arrival at a condition except as a rank.
 */
#include <string.h>

#include "base/assert.h"
#include "rt/sim/internal.h"

uint64_t sim_hash_word(uint64_t hash, uint64_t word)
{
    unsigned __int128 product = (unsigned __int128)(hash ^ 0x9e3779b97f4a7c15ull) *
                                (word ^ 0xd6e8feb86659fd93ull);

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Words anywhere: stacks and freed memory are read on purpose. */
struct pair {
    uint64_t low, high;
};

static inline uint64_t hash_pair(uint64_t hash, const struct pair *pair)
{
    unsigned __int128 product = (unsigned __int128)(pair->low ^ hash) *
                                (pair->high ^ 0x9e3779b97f4a7c15ull);

    return ((uint64_t)product ^ (uint64_t)(product >> 64)) + (hash << 23 | hash >> 41);
}

/* In four lanes: one product would have to wait for the one before it. */
__attribute__((no_sanitize("address"))) uint64_t sim_hash_bytes(uint64_t hash, const uint8_t *data,
                                                                size_t size)
{
    enum { LANES = 4 };
    uint64_t lanes[LANES];
    uint64_t word = 0;

    hash = sim_hash_word(hash, size);
    for (unsigned i = 0; i < LANES; i++)
        lanes[i] = hash + i;
    for (; size >= LANES * sizeof(struct pair); size -= LANES * sizeof(struct pair)) {
        const struct pair *pairs = (const struct pair *)(const void *)data;

        for (unsigned i = 0; i < LANES; i++)
            lanes[i] = hash_pair(lanes[i], &pairs[i]);
        data += LANES * sizeof(struct pair);
    }
    for (unsigned i = 0; i < LANES; i++)
        hash = sim_hash_word(hash, lanes[i]);
    for (; size >= 8; data += 8, size -= 8)
        hash = sim_hash_word(hash, *(const uint64_t *)(const void *)data);
    for (size_t i = 0; i < size; i++)
        word = word << 8 | data[i];
    return sim_hash_word(hash, word);
}

bool sim_state_key_possible(void)
{
    return sim_context_is_stack_pointer();
}

static uint64_t wait_rank(const struct sh_thread *thread)
{
    uint64_t rank = 0;

    for (uint32_t i = 0; i < sim.slots_count; i++)
        if (sim.threads[i].state == SIM_THREAD_LIVE && sim.threads[i].op == SIM_OP_WAIT &&
            sim.threads[i].object == thread->object &&
            sim.threads[i].wait_order < thread->wait_order)
            rank++;
    return rank;
}

static uint64_t hash_thread(uint64_t hash, const struct sh_thread *thread)
{
    const uint8_t *data;
    size_t size;

    hash = sim_hash_word(
        hash, (uint64_t)thread->state | (uint64_t)thread->op << 8 | (uint64_t)thread->node << 16 |
                  (uint64_t)thread->timed_out << 32 | (uint64_t)thread->detached << 33);
    if (thread->state != SIM_THREAD_LIVE)
        return hash;
    hash = sim_hash_word(hash, (uint64_t)(uintptr_t)thread->object);
    hash = sim_hash_word(hash, (uint64_t)(uintptr_t)thread->mutex);
    hash = sim_hash_word(hash, thread->deadline_ns);
    hash = sim_hash_word(hash, (uint64_t)thread->held_count << 32 | thread->yields_count);
    if (thread->op == SIM_OP_WAIT)
        hash = sim_hash_word(hash, wait_rank(thread));
    hash = sim_hash_bytes(hash, (const uint8_t *)&thread->local, sizeof(thread->local));
    if (!sim_fiber_live_bytes(&thread->fiber, &data, &size))
        RON_UNREACHABLE();
    return sim_hash_bytes(hash, data, size);
}

uint64_t sim_state_key(const struct sim_point *point)
{
    uint64_t hash = sim_hash_word((uint64_t)point->kind, point->options_count);

    RON_ASSERT(sim.job != NULL);
    RON_ASSERT(sim.job->hash_states);
    /* In a bounded search the fiber that can be left only at a price is part of the state. */
    if (sim.left.preemption_bound != SIM_UNBOUNDED)
        hash = sim_hash_word(hash, point->current);
    if (point->kind != SIM_CHOOSE_STEP) {
        hash = sim_hash_word(hash, (uint64_t)(uintptr_t)point->tag);
        hash = sim_hash_word(hash, sim.last);
        hash = sim_hash_word(hash, sim.forced_count);
        for (uint32_t i = 0; i < sim.forced_count; i++)
            hash = sim_hash_word(hash, sim.forced[i]->slot);
    }
    hash = sim_hash_bytes(hash, (const uint8_t *)&sim.left, sizeof(sim.left));
    hash = sim_hash_word(hash, sim.spared_failures);
    hash = sim_hash_word(hash, sim.now_ns);
    hash = sim_hash_word(hash, (uint64_t)sim.utc_offset_ms);
    hash = sim_hash_word(hash, sim.random_state);
    hash = sim_hash_word(hash, sim.result->outcome);
    hash = sim_hash_word(hash, (uint64_t)(uintptr_t)sim.check);
    if (sim_fair_active())
        hash = sim_fair_hash(hash);
    for (uint32_t i = 0; i <= sim.nodes_count; i++)
        hash = sim_hash_word(hash, (uint64_t)sim.nodes[i].live_count << 2 |
                                       (uint64_t)sim.nodes[i].crashed << 1 |
                                       (uint64_t)sim.nodes[i].crashable);
    for (uint32_t i = 0; i < sim.slots_count; i++)
        hash = hash_thread(hash, &sim.threads[i]);
    return sim_heap_hash(hash);
}
