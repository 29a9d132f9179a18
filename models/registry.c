/*
 * registry.c - the list of all models.
 */
#include "models/model.h"

/* X(identifier), in the order of `explore list`. */
#define MODEL_MAP(X)           \
    X(steps_3x4)               \
    X(fold)                    \
    X(two_locks)               \
    X(two_locks_planted)       \
    X(wakeup)                  \
    X(wakeup_planted)          \
    X(broadcast)               \
    X(broadcast_planted)       \
    X(race)                    \
    X(race_planted)            \
    X(timers)                  \
    X(timers_planted)          \
    X(polling)                 \
    X(polling_planted)         \
    X(polling_time)            \
    X(wall_clock)              \
    X(wall_clock_planted)      \
    X(spurious)                \
    X(spurious_planted)        \
    X(construction)            \
    X(construction_planted)    \
    X(sites)                   \
    X(sites_planted)           \
    X(crash)                   \
    X(crash_planted)           \
    X(disk)                    \
    X(disk_faults)             \
    X(disk_planted)            \
    X(log_crash)               \
    X(log_end)                 \
    X(log_faults)              \
    X(log_few_zeros)           \
    X(log_linger)              \
    X(log_planted)             \
    X(log_small)               \
    X(log_small_faults)        \
    X(log_unsynced)            \
    X(log_zeros)               \
    X(queue_2x1)               \
    X(queue_2x2)               \
    X(queue_tries)             \
    X(queue_single)            \
    X(queue_each)              \
    X(queue_tight)             \
    X(watch)                   \
    X(watch_pair)              \
    X(bus)                     \
    X(bus_lag)                 \
    X(worker_panic)            \
    X(lanes)                   \
    X(accounting)              \
    X(accounting_2)            \
    X(accounting_3)            \
    X(accounting_planted)      \
    X(rewarder)                \
    X(rewarder_2x2)            \
    X(rewarder_patient)        \
    X(rewarder_planted)        \
    X(ledger)                  \
    X(ledger_planted)          \
    X(service_stop)            \
    X(service_evict)           \
    X(service_slots)           \
    X(service_faults)          \
    X(service_panic)           \
    X(service_stop_2)          \
    X(service_evict_2)         \
    X(service_slots_2)         \
    X(service_faults_2)        \
    X(service_panic_1)         \
    X(service_overload)        \
    X(service_stuck)           \
    X(service_gave_up)         \
    X(service_expire)          \
    X(service_planted)         \
    X(service_crash)           \
    X(service_crash_faults)    \
    X(service_tree)            \
    X(service_tree_faults)     \
    X(service_crash_lies)      \
    X(service_power)           \
    X(service_sim)             \
    X(registry)                \
    X(registry_3)              \
    X(registry_planted)        \
    X(evict)                   \
    X(evict_planted)           \
    X(restart)                 \
    X(restart_window)          \
    X(restart_stop)            \
    X(escalation)              \
    X(revive)                  \
    X(revive_stop)             \
    X(revive_join)             \
    X(join_stop)               \
    X(lanes_pair)              \
    X(lanes_panic)             \
    X(lanes_alone)             \
    X(lanes_fair)              \
    X(timer_race)              \
    X(breaker)                 \
    X(breaker_probes)          \
    X(deadline)                \
    X(ends_items)              \
    X(ends_tasks)              \
    X(life_race)               \
    X(life_told)               \
    X(life_stops)              \
    X(life_born)               \
    X(ready_pair)              \
    X(futex_lock)              \
    X(futex_lock_again)        \
    X(futex_gate)              \
    X(futex_gate_time)         \
    X(futex_tokens)            \
    X(futex_tokens_at_once)    \
    X(futex_tokens_planted)    \
    X(futex_receivers)         \
    X(futex_senders)           \
    X(client_lossy)            \
    X(client_lossy_planted)    \
    X(client_busy)             \
    X(client_hurried)          \
    X(checks_breaker)          \
    X(checks_deadline)         \
    X(checks_deadline_planted) \
    X(checks_drain)            \
    X(checks_memory)           \
    X(checks_order)            \
    X(checks_ready)            \
    X(checks_threshold)        \
    X(client_canceled)

#define X(identifier) extern const struct model identifier;
MODEL_MAP(X)
#undef X

const struct model *const models[] = {
#define X(identifier) &identifier,
    MODEL_MAP(X)
#undef X
};
const uint32_t models_count = RON_ARRAY_COUNT(models);
