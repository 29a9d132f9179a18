/*
 * ready.h - may a role be sent work? Causes that say no, plane by plane. Pure data.
 *
 * A role serves two planes, writes and reads. A cause is a row: its name (label of readyz_degraded,
 * word in /readyz and in details.reason), the planes it makes unready, the planes whose requests it
 * refuses, and the error they get. A plane is ready while no raised cause closes it. Every role has
 * the rows below; its own follow (an upstream without a pulse, storage that is slow).
 *
 *     cause          raised by                 cleared by          unready       refused
 *     draining       the stop                  nobody              write, read   write: Draining
 *     recovering     birth after an unclean    the role, once its  write         write: SafeMode
 *                    stop, or the role         replay is clean
 *     damaged        the role: failed commit,  the operator        write         write: SafeMode
 *                    damage before the tail
 *     operator       the operator              the operator        write         write: SafeMode
 *     frozen         the operator              the operator        write         write: NotReady
 *     restart_storm  a task's sixth failure    its revival         write, read   nothing
 *
 * SafeMode is the state in which `recovering`, `damaged` or `operator` is raised: what was written
 * may be wrong, or an operator says so. A freeze is an order and says nothing of the kind, so it is
 * no state: a frozen role runs, drains and stops like any other.
 */
#ifndef RON_RT_READY_H
#define RON_RT_READY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ron/error.h"

/* Planes, as bits. */
enum { RT_PLANE_WRITE = 1, RT_PLANE_READ = 2, RT_PLANES_ALL = 3 };

/* Causes, as indexes; a set of them has bit 1 << cause. */
enum rt_cause_index {
    RT_CAUSE_DRAINING,
    RT_CAUSE_DAMAGED,  /* these two before the next: while one of them is raised, waiting will */
    RT_CAUSE_OPERATOR, /* not help */
    RT_CAUSE_RECOVERING,
    RT_CAUSE_FROZEN,
    RT_CAUSE_RESTART_STORM,
    RT_CAUSE_OWN, /* the first of the role's own */
    RT_CAUSES_MAX = 32,
};
#define RT_CAUSE_BIT(cause) (UINT32_C(1) << (cause))
#define RT_CAUSES_SAFE_MODE                                               \
    (RT_CAUSE_BIT(RT_CAUSE_RECOVERING) | RT_CAUSE_BIT(RT_CAUSE_DAMAGED) | \
     RT_CAUSE_BIT(RT_CAUSE_OPERATOR))

struct rt_cause {
    const char *name;
    unsigned closes;  /* planes */
    unsigned refuses; /* planes, of those it closes */
    enum ron_err err; /* what the refused get */
};
/* A role's own rows, numbered from RT_CAUSE_OWN. */
struct rt_causes {
    const struct rt_cause *own;
    size_t own_count; /* up to RT_CAUSES_MAX - RT_CAUSE_OWN */
};

size_t rt_causes_count(const struct rt_causes *causes);
const struct rt_cause *rt_cause_at(const struct rt_causes *causes, unsigned cause);

/* The planes that are ready while the causes of this set are raised. */
unsigned rt_ready_planes(const struct rt_causes *causes, uint32_t raised);
/* The first raised cause that refuses requests of the plane; NULL when they may begin. */
const struct rt_cause *rt_ready_refusal(const struct rt_causes *causes, uint32_t raised,
                                        unsigned plane);

#endif
