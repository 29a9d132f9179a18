/*
 * registry.c - the list of all models.
 */
#include "models/model.h"

/* X(identifier), in the order of `explore list`. */
#define MODEL_MAP(X)        \
    X(steps_3x4)            \
    X(fold)                 \
    X(two_locks)            \
    X(two_locks_planted)    \
    X(wakeup)               \
    X(wakeup_planted)       \
    X(broadcast)            \
    X(broadcast_planted)    \
    X(race)                 \
    X(race_planted)         \
    X(timers)               \
    X(timers_planted)       \
    X(polling)              \
    X(polling_planted)      \
    X(polling_time)         \
    X(wall_clock)           \
    X(wall_clock_planted)   \
    X(spurious)             \
    X(spurious_planted)     \
    X(construction)         \
    X(construction_planted) \
    X(sites)                \
    X(sites_planted)        \
    X(crash)                \
    X(crash_planted)        \
    X(queue_2x1)            \
    X(queue_2x2)            \
    X(queue_tries)          \
    X(queue_single)         \
    X(queue_each)           \
    X(queue_tight)          \
    X(watch)                \
    X(bus)                  \
    X(worker_panic)         \
    X(lanes)

#define X(identifier) extern const struct model identifier;
MODEL_MAP(X)
#undef X

const struct model *const models[] = {
#define X(identifier) &identifier,
    MODEL_MAP(X)
#undef X
};
const uint32_t models_count = RON_ARRAY_COUNT(models);
