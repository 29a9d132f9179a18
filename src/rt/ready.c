/*
 * ready.c - see ready.h.
 */
#include "rt/ready.h"

#include "base/assert.h"
#include "base/compiler.h"

static const struct rt_cause common[RT_CAUSE_OWN] = {
    [RT_CAUSE_DRAINING] = {"draining", RT_PLANES_ALL, RT_PLANE_WRITE, RON_ERR_DRAINING},
    [RT_CAUSE_DAMAGED] = {"damaged", RT_PLANE_WRITE, RT_PLANE_WRITE, RON_ERR_SAFE_MODE},
    [RT_CAUSE_OPERATOR] = {"operator", RT_PLANE_WRITE, RT_PLANE_WRITE, RON_ERR_SAFE_MODE},
    [RT_CAUSE_RECOVERING] = {"recovering", RT_PLANE_WRITE, RT_PLANE_WRITE, RON_ERR_RECOVERING},
    [RT_CAUSE_FROZEN] = {"frozen", RT_PLANE_WRITE, RT_PLANE_WRITE, RON_ERR_NOT_READY},
    [RT_CAUSE_RESTART_STORM] = {"restart_storm", RT_PLANES_ALL, 0, RON_ERR_OK},
};

size_t rt_causes_count(const struct rt_causes *causes)
{
    RON_ASSERT(causes->own_count <= RT_CAUSES_MAX - RT_CAUSE_OWN);
    return RT_CAUSE_OWN + causes->own_count;
}

const struct rt_cause *rt_cause_at(const struct rt_causes *causes, unsigned cause)
{
    RON_ASSERT(cause < rt_causes_count(causes));
    return cause < RT_CAUSE_OWN ? &common[cause] : &causes->own[cause - RT_CAUSE_OWN];
}

unsigned rt_ready_planes(const struct rt_causes *causes, uint32_t raised)
{
    unsigned planes = RT_PLANES_ALL;

    for (unsigned i = 0; i < rt_causes_count(causes); i++) {
        if ((raised & RT_CAUSE_BIT(i)) != 0)
            planes &= ~rt_cause_at(causes, i)->closes;
    }
    return planes;
}

const struct rt_cause *rt_ready_refusal(const struct rt_causes *causes, uint32_t raised,
                                        unsigned plane)
{
    for (unsigned i = 0; i < rt_causes_count(causes); i++) {
        const struct rt_cause *cause = rt_cause_at(causes, i);

        if ((raised & RT_CAUSE_BIT(i)) != 0 && (cause->refuses & plane) != 0)
            return cause;
    }
    return NULL;
}
