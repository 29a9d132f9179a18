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
    if (segment->gate != NULL)
        log_gate_drop(RON_TAKE(segment->gate), unused);
}

/* --- What is next ------------------------------------------------------------------------------
 */

/* The oldest segment that could be behind a gate and is not. */
static struct log_segment *find_next(const struct io_log *log) RON_NEEDS(storage)
{
    if (log->options.keys == NULL)
        return NULL;
    for (uint32_t i = 0; i < log->segments_count; i++) {
        if (log->segments[i]->index != NULL && log->segments[i]->gate == NULL)
            return log->segments[i];
    }
    return NULL;
}

bool log_gate_is_due(const struct io_log *log, uint64_t *ret_at_ns)
{
    *ret_at_ns = SH_NEVER;
    if (find_next(log) == NULL)
        return false;
    *ret_at_ns = log->gate_work.retry.at_ns;
    return rt_now_ns() >= *ret_at_ns;
}

/* How many keys a gate that begins with this many should have room for. */
static uint64_t room_for(const struct io_log *log, uint64_t count) RON_NEEDS(storage)
{
    /* A little more, since segments are not quite alike. */
    const uint64_t to_come = LOG_GATE_SEGMENTS * count + count / 2;
    uint64_t room = to_come < LOG_GATE_KEYS_MIN ? to_come : LOG_GATE_KEYS_MIN;
    uint64_t waiting = 0, all = 0;

    for (uint32_t i = 0; i < log->segments_count; i++) {
        const struct log_segment *segment = log->segments[i];

        if (segment->index == NULL)
            continue;
        all += io_index_keys_count(segment->index);
        if (segment->gate == NULL)
            waiting += io_index_keys_count(segment->index);
    }
    room = room > all >> LOG_GATE_PART_SHIFT ? room : all >> LOG_GATE_PART_SHIFT;
    room = room > waiting ? room : waiting;
    if (room > IO_GATE_KEYS_MAX)
        room = IO_GATE_KEYS_MAX;
    return room > count ? room : count;
}

/* --- One step ----------------------------------------------------------------------------------
 */

/* A segment on its way behind the gate that grows. */
struct joining {
    struct io_log *log;
    struct log_segment *segment; /* pinned; NULL: there is none */
    struct io_index *index;      /* of it, when it was pinned */
    uint64_t room;               /* of a gate that begins with it */
    bool all_in;                 /* false: it failed, or panicked */
};

static struct joining pin_next(struct io_log *log)
{
    struct joining joining = {.log = log};

    log_lock(log);
    joining.segment = find_next(log);
    if (joining.segment != NULL) {
        joining.segment->pins_count++;
        joining.index = joining.segment->index;
        joining.room = room_for(log, io_index_keys_count(joining.index));
    }
    log_unlock(log);
    return joining;
}

static void end_joining(void *argument) RON_BLOCKS
{
    const struct joining *joining = argument;
    struct io_log *log = joining->log;
    struct log_segment *segment = joining->segment;

    log_lock(log);
    /* One that was built again meanwhile is not behind it: its keys are others' business. */
    if (joining->all_in && segment->index == joining->index) {
        segment->gate = log->gate_work.gate;
        segment->gate->uses_count++;
    }
    log_unlock(log);
    if (!joining->all_in) /* nothing but time depends on it */
        log->gate_work.retry = rt_deadline_after_ms(LOG_FULL_RETRY_MS * UINT64_C(40));
    log_unpin(log, segment); /* and its filter is given back by the last who asks it */
}

/* No more is added to the gate: it stays for those who use it. */
static void end_growing(struct io_log *log)
{
    struct log_gate *gate = RON_TAKE(log->gate_work.gate);
    struct log_gate *unused = NULL;

    if (gate == NULL)
        return;
    log_lock(log);
    log_gate_drop(gate, &unused);
    log_unlock(log);
    log_gates_free(unused);
}

static bool begin(struct io_log *log, const struct joining *joining)
{
    struct log_gate *gate = ron_mem_alloc(sizeof(*gate));

    if (gate == NULL ||
        io_gate_new(log->gate_seed, joining->room, &gate->keys, NULL) != RON_ERR_OK) {
        ron_mem_free(gate);
        return false;
    }
    gate->uses_count = 1;
    log->gate_work.gate = gate;
    return true;
}

/* A gate that grows and has room for it. */
static bool make_room(struct io_log *log, const struct joining *joining)
{
    const struct log_gate *gate = log->gate_work.gate;

    if (gate != NULL && io_gate_room(gate->keys) < io_index_keys_count(joining->index))
        end_growing(log);
    return log->gate_work.gate != NULL || begin(log, joining);
}

/* What is in the gate of one that failed is in it already when it is tried again. */
void log_gate_step(struct io_log *log)
{
    struct joining joining = pin_next(log);
    struct rt_cleanup cleanup;

    if (joining.segment == NULL) /* dropped meanwhile */
        return;
    if (!make_room(log, &joining)) {
        end_joining(&joining);
        return;
    }
    rt_cleanup_push(&cleanup, end_joining, &joining);
    joining.all_in = io_gate_add(log->gate_work.gate->keys, joining.index, NULL) == RON_ERR_OK;
    rt_cleanup_pop(&cleanup, true);
}

/* Asked by its own filter meanwhile, one key in 300 would have a page of it read from the disk. */
struct log_gate *log_gate_join(struct io_log *log, struct io_index *index,
                               const struct io_index_builder *builder)
{
    struct joining joining = {.log = log, .index = index};
    size_t keys_count = 0;
    const uint8_t(*keys)[16] = io_index_builder_keys(builder, &keys_count);
    struct log_gate *gate;
    bool must_wait;

    RON_ASSERT(keys_count == io_index_keys_count(index));
    log_lock(log);
    must_wait = log->options.keys == NULL || find_next(log) != NULL;
    joining.room = room_for(log, keys_count);
    log_unlock(log);
    if (must_wait || !make_room(log, &joining))
        return NULL;
    gate = log->gate_work.gate;
    io_gate_add_keys(gate->keys, keys, keys_count);
    log_lock(log);
    gate->uses_count++;
    log_unlock(log);
    (void)ron_table_free(io_index_take_filter(index)); /* nobody can be asking */
    return gate;
}

void log_gate_fini(struct io_log *log)
{
    end_growing(log);
}
