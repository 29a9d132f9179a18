/*
 * breaker.c - circuit breaker. See breaker.h.
 */
#include "rt/breaker.h"

#include "base/assert.h"

void rt_breaker_init(struct rt_breaker *breaker, const struct rt_breaker_policy *policy)
{
    RON_ASSERT(policy->failures_max > 0);
    RON_ASSERT(policy->failures_max <= RT_BREAKER_FAILURES_MAX);
    RON_ASSERT(policy->probes_count > 0);
    RON_ASSERT(policy->window_ns > 0);
    *breaker = (struct rt_breaker){.policy = *policy, .state = RT_BREAKER_CLOSED};
}

static void enter(struct rt_breaker *breaker, enum rt_breaker_state state)
{
    breaker->state = state;
    breaker->era++;
    breaker->granted_count = 0;
    breaker->succeeded_count = 0;
    breaker->failures_count = 0;
}

static void trip(struct rt_breaker *breaker, uint64_t now_ns)
{
    enter(breaker, RT_BREAKER_OPEN);
    breaker->opened_count++;
    if (__builtin_add_overflow(now_ns, breaker->policy.open_ns, &breaker->open_until_ns))
        breaker->open_until_ns = UINT64_MAX;
}

enum rt_breaker_state rt_breaker_state(const struct rt_breaker *breaker, uint64_t now_ns)
{
    if (breaker->state == RT_BREAKER_OPEN && now_ns >= breaker->open_until_ns)
        return RT_BREAKER_HALF_OPEN;
    return breaker->state;
}

bool rt_breaker_allow(struct rt_breaker *breaker, uint64_t now_ns,
                      struct rt_breaker_ticket *ret_ticket)
{
    if (breaker->state == RT_BREAKER_OPEN) {
        if (now_ns < breaker->open_until_ns)
            return false;
        enter(breaker, RT_BREAKER_HALF_OPEN);
    }
    if (breaker->state == RT_BREAKER_HALF_OPEN) {
        if (breaker->granted_count == breaker->policy.probes_count)
            return false;
        breaker->granted_count++;
    }
    ret_ticket->era = breaker->era;
    return true;
}

void rt_breaker_succeed(struct rt_breaker *breaker, struct rt_breaker_ticket ticket)
{
    if (ticket.era != breaker->era || breaker->state != RT_BREAKER_HALF_OPEN)
        return;
    RON_ASSERT(breaker->succeeded_count < breaker->granted_count);
    breaker->succeeded_count++;
    if (breaker->succeeded_count == breaker->policy.probes_count)
        enter(breaker, RT_BREAKER_CLOSED);
}

void rt_breaker_fail(struct rt_breaker *breaker, struct rt_breaker_ticket ticket, uint64_t now_ns)
{
    uint32_t slot;

    if (ticket.era != breaker->era)
        return;
    RON_ASSERT(breaker->state != RT_BREAKER_OPEN); /* no ticket is given while open */
    if (breaker->state == RT_BREAKER_HALF_OPEN) {
        trip(breaker, now_ns);
        return;
    }
    slot = (uint32_t)(breaker->failures_count % breaker->policy.failures_max);
    breaker->failures_ns[slot] = now_ns;
    breaker->failures_count++;
    if (breaker->failures_count < breaker->policy.failures_max)
        return;
    /* The slot that the next failure will take holds the oldest of the last failures_max. */
    slot = (uint32_t)(breaker->failures_count % breaker->policy.failures_max);
    if (now_ns - breaker->failures_ns[slot] < breaker->policy.window_ns)
        trip(breaker, now_ns);
}

void rt_breaker_forget(struct rt_breaker *breaker, struct rt_breaker_ticket ticket)
{
    if (ticket.era != breaker->era || breaker->state != RT_BREAKER_HALF_OPEN)
        return;
    RON_ASSERT(breaker->granted_count > breaker->succeeded_count);
    breaker->granted_count--;
}
