/*
 * breaker.h - circuit breaker: stop asking an upstream that fails, then try it carefully.
 *
 * Closed: calls pass; failures_max failures within window_ns open it. Open: calls are refused for
 * open_ns. Half-open: probes_count calls pass as probes; when all succeed it closes, when one fails
 * it opens again. Pure: time comes from the caller, who also serialises the calls.
 */
#ifndef RON_RT_BREAKER_H
#define RON_RT_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum { RT_BREAKER_FAILURES_MAX = 64 };

struct rt_breaker_policy {
    uint32_t failures_max; /* 1..RT_BREAKER_FAILURES_MAX */
    uint32_t probes_count; /* >= 1 */
    uint64_t window_ns;
    uint64_t open_ns;
};

enum rt_breaker_state { RT_BREAKER_CLOSED, RT_BREAKER_OPEN, RT_BREAKER_HALF_OPEN };

struct rt_breaker {
    struct rt_breaker_policy policy;
    enum rt_breaker_state state;
    uint32_t era;             /* rises with each change of state */
    uint32_t granted_count;   /* probes, half-open */
    uint32_t succeeded_count; /* probes, half-open */
    uint64_t open_until_ns;
    uint64_t opened_count;                         /* for metrics */
    uint64_t failures_count;                       /* in this closed era */
    uint64_t failures_ns[RT_BREAKER_FAILURES_MAX]; /* ring of the latest failures_max */
};

/* A permitted call; its outcome counts only in the era it was permitted in, so that a late answer
 * of a call from before the break is no probe. */
struct rt_breaker_ticket {
    uint32_t era;
};

void rt_breaker_init(struct rt_breaker *breaker, const struct rt_breaker_policy *policy);

/* May a call be made now? If so, exactly one of the three below must follow with the ticket. */
bool rt_breaker_allow(struct rt_breaker *breaker, uint64_t now_ns,
                      struct rt_breaker_ticket *ret_ticket) RON_MUST_USE;
void rt_breaker_succeed(struct rt_breaker *breaker, struct rt_breaker_ticket ticket);
void rt_breaker_fail(struct rt_breaker *breaker, struct rt_breaker_ticket ticket, uint64_t now_ns);
/* The call was not made after all, or says nothing about the upstream. */
void rt_breaker_forget(struct rt_breaker *breaker, struct rt_breaker_ticket ticket);

/* The state at now_ns: an open breaker whose time is over is half-open. */
enum rt_breaker_state rt_breaker_state(const struct rt_breaker *breaker, uint64_t now_ns);

#endif
