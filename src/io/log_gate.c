/*
 * log_gate.c - see log_gate.h.
 */
#include "io/log_gate.h"

#include "base/assert.h"
#include "base/mem.h"
#include "io/log_impl.h"

void log_gate_drop(struct log_gate *gate, struct log_gate **unused)
{
    RON_ASSERT(gate->uses_count > 0);
    if (--gate->uses_count > 0)
        return;
    gate->next_unused = *unused;
    *unused = gate;
}

void log_gates_free(struct log_gate *unused)
{
    while (unused != NULL) {
        struct log_gate *gate = unused;

        unused = gate->next_unused;
        io_gate_free(gate->keys);
        ron_mem_free(gate);
    }
}

void log_gate_leave(struct log_segment *segment, struct log_gate **unused)
{
    segment->joining = NULL;
    if (segment->gate != NULL)
        log_gate_drop(RON_TAKE(segment->gate), unused);
}

/* --- What to fill next -------------------------------------------------------------------------
 */

struct plan {
    uint32_t level;
    uint64_t first_number, last_number;
    uint64_t keys_count;
    struct io_index_of newest;
};

static uint32_t level_of(const struct log_segment *segment)
{
    return segment->gate != NULL ? segment->gate->level : 0;
}

/* The oldest neighbours that are enough for a gate of this level and in none of it or above. */
static bool find_neighbours(const struct io_log *log, uint32_t level, struct plan *plan)
    RON_NEEDS(storage)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < log->segments_count; i++) {
        const struct log_segment *segment = log->segments[i];

        if (segment->index == NULL || level_of(segment) >= level ||
            (count > 0 &&
             plan->keys_count + io_index_keys_count(segment->index) > IO_GATE_KEYS_MAX)) {
            count = 0;
            continue;
        }
        if (count == 0)
            *plan = (struct plan){.level = level, .first_number = segment->number};
        plan->keys_count += io_index_keys_count(segment->index);
        count++;
        if (count >> LOG_GATE_FAN_BITS * level > 0) {
            plan->last_number = segment->number;
            plan->newest = log_index_of(log, segment);
            return true;
        }
    }
    return false;
}

/* The largest one first: after a start nothing is read twice. */
static bool make_plan(const struct io_log *log, struct plan *ret_plan) RON_NEEDS(storage)
{
    if (log->options.keys == NULL)
        return false;
    for (uint32_t level = LOG_GATE_LEVEL_MAX; level > 0; level--) {
        if (find_neighbours(log, level, ret_plan))
            return true;
    }
    return false;
}

bool log_gate_is_due(const struct io_log *log, uint64_t *ret_at_ns)
{
    const struct log_gate_work *work = &log->gate_work;
    struct plan plan;

    *ret_at_ns = SH_NEVER;
    if (work->gate == NULL && !make_plan(log, &plan))
        return false;
    *ret_at_ns = work->retry.at_ns;
    return rt_now_ns() >= work->retry.at_ns;
}

/* --- Filling -----------------------------------------------------------------------------------
 */

/* Whoever joined is as before. It is tried again later: nothing but time depends on it. */
static void give_up(struct io_log *log)
{
    struct log_gate *gate = RON_TAKE(log->gate_work.gate);
    struct log_gate *unused = NULL;

    log->gate_work.retry = rt_deadline_after_ms(LOG_FULL_RETRY_MS * UINT64_C(40));
    if (gate == NULL)
        return;
    log_lock(log);
    for (uint32_t i = 0; i < log->segments_count; i++) {
        if (log->segments[i]->joining == gate)
            log->segments[i]->joining = NULL;
    }
    log_gate_drop(gate, &unused);
    log_unlock(log);
    log_gates_free(unused);
}

static void begin(struct io_log *log)
{
    struct log_gate_work *work = &log->gate_work;
    struct log_gate *gate;
    struct plan plan;
    bool is_planned;

    log_lock(log);
    is_planned = make_plan(log, &plan);
    log_unlock(log);
    if (!is_planned) /* segments were dropped meanwhile */
        return;
    gate = ron_mem_alloc(sizeof(*gate));
    if (gate == NULL ||
        io_gate_new(&plan.newest, plan.keys_count, &gate->keys, NULL) != RON_ERR_OK) {
        ron_mem_free(gate);
        give_up(log);
        return;
    }
    gate->level = plan.level;
    gate->uses_count = 1;
    work->gate = gate;
    work->first_number = plan.first_number;
    work->next_number = plan.first_number;
    work->last_number = plan.last_number;
}

/* The next segment that is to join, pinned, with its index; NULL: that was all. One that was
 * dropped meanwhile is passed over. */
static struct log_segment *pin_next(struct io_log *log, struct io_index **ret_index)
{
    const struct log_gate_work *work = &log->gate_work;
    struct log_segment *found = NULL;

    log_lock(log);
    for (uint32_t i = 0; i < log->segments_count && found == NULL; i++) {
        struct log_segment *segment = log->segments[i];

        if (segment->number >= work->next_number && segment->number <= work->last_number &&
            segment->index != NULL) {
            found = segment;
            found->pins_count++;
            *ret_index = segment->index;
        }
    }
    log_unlock(log);
    return found;
}

struct joining {
    struct io_log *log;
    struct log_segment *segment; /* pinned */
    struct io_index *index;      /* of it, when it was pinned */
    bool all_in;                 /* false: it failed, or panicked */
};

static void end_joining(void *argument) RON_BLOCKS
{
    const struct joining *joining = argument;
    struct io_log *log = joining->log;
    struct log_gate_work *work = &log->gate_work;

    work->next_number = joining->segment->number + 1;
    if (joining->all_in) {
        log_lock(log);
        /* One that was built again meanwhile does not join: its keys are others' business. */
        if (joining->segment->index == joining->index)
            joining->segment->joining = work->gate;
        log_unlock(log);
    } else {
        give_up(log);
    }
    log_unpin(log, joining->segment);
}

static void join(struct io_log *log, struct log_segment *segment, struct io_index *index) RON_BLOCKS
{
    struct joining joining = {.log = log, .segment = segment, .index = index};
    struct rt_cleanup cleanup;

    rt_cleanup_push(&cleanup, end_joining, &joining);
    joining.all_in = io_gate_add(log->gate_work.gate->keys, index, NULL) == RON_ERR_OK;
    rt_cleanup_pop(&cleanup, true);
}

/* --- Opening -----------------------------------------------------------------------------------
 */

/* From here on it is asked in place of the filters of all that joined. */
static void open_for_all(struct io_log *log, struct log_gate *gate, struct log_gate **unused)
    RON_NEEDS(storage)
{
    uint64_t keys_count = 0;

    for (uint32_t i = 0; i < log->segments_count; i++) {
        struct log_segment *segment = log->segments[i];

        if (segment->joining != gate)
            continue;
        log_gate_leave(segment, unused);
        segment->gate = gate;
        gate->uses_count++;
        keys_count += io_index_keys_count(segment->index);
    }
    RON_ASSERT(keys_count <= io_gate_keys_count(gate->keys)); /* invariant 7 */
}

/* Unless somebody asks it: then he gives the filter back who is the last to do so. */
static void give_filter_back(struct io_log *log, uint64_t number) RON_BLOCKS
{
    struct log_segment *found = NULL;

    log_lock(log);
    for (uint32_t i = 0; i < log->segments_count && found == NULL; i++) {
        if (log->segments[i]->number == number) {
            found = log->segments[i];
            found->pins_count++;
        }
    }
    log_unlock(log);
    if (found != NULL)
        log_unpin(log, found);
}

static void open_gate(struct io_log *log) RON_BLOCKS
{
    struct log_gate_work *work = &log->gate_work;
    struct log_gate *gate = RON_TAKE(work->gate);
    struct log_gate *unused = NULL;

    log_lock(log);
    open_for_all(log, gate, &unused);
    log_gate_drop(gate, &unused);
    log_unlock(log);
    log_gates_free(unused);
    for (uint64_t number = work->first_number; number <= work->last_number; number++)
        give_filter_back(log, number);
}

void log_gate_step(struct io_log *log)
{
    struct log_segment *segment;
    struct io_index *index = NULL;

    if (log->gate_work.gate == NULL) {
        begin(log);
        return;
    }
    segment = pin_next(log, &index);
    if (segment != NULL)
        join(log, segment, index);
    else
        open_gate(log);
}

void log_gate_fini(struct io_log *log)
{
    give_up(log);
}
