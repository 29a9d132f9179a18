/*
 * report.c - a run in words: what fibers do, who waits for whom.
 */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "rt/sim/internal.h"

const char *sim_op_words(enum sim_op op)
{
    static const char *const words[] = {
#define X(name, text) text,
        SIM_OP_MAP(X)
#undef X
    };

    RON_ASSERT((unsigned)op < RON_ARRAY_COUNT(words));
    return words[op];
}

const char *sim_object_name(enum sim_op op, const void *object)
{
    switch (op) {
    case SIM_OP_LOCK:
    case SIM_OP_UNLOCKED:
        return ((const struct sim_mutex *)object)->name;
    case SIM_OP_WAIT_ENTRY:
    case SIM_OP_WAIT:
    case SIM_OP_RELOCK: /* the condition that was waited for */
    case SIM_OP_SIGNAL:
    case SIM_OP_BROADCAST:
        return ((const struct sim_cond *)object)->name;
    case SIM_OP_JOIN:
        return ((const struct sh_thread *)object)->name;
    case SIM_OP_NODE_WAIT:
        return ((const struct sim_node *)object)->name;
    case SIM_OP_POINT:
        return object;
    case SIM_OP_START:
    case SIM_OP_GO_ON:
    case SIM_OP_ATOMIC:
    case SIM_OP_SLEEP:
    case SIM_OP_YIELD:
        return NULL;
    }
    return NULL;
}

/* "producer: lock queue (held by consumer)" */
static int describe(const struct sh_thread *thread, char *text, size_t text_size)
{
    const char *name = sim_object_name(thread->op, thread->object);
    const struct sim_mutex *mutex = NULL;
    const char *holder = NULL;

    if (thread->op == SIM_OP_LOCK)
        mutex = thread->object;
    else if (thread->op == SIM_OP_RELOCK)
        mutex = thread->mutex;
    if (mutex != NULL && mutex->owner > 0 && mutex->owner <= sim.slots_count)
        holder = sim.threads[mutex->owner - 1].name;
    return snprintf(text, text_size, "%s: %s%s%s%s%s%s", thread->name, sim_op_words(thread->op),
                    name != NULL ? " " : "", name != NULL ? name : "",
                    holder != NULL ? " (held by " : "", holder != NULL ? holder : "",
                    holder != NULL ? ")" : "");
}

void sim_describe_deadlock(char *text, size_t text_size)
{
    size_t used_size = 0;

    RON_ASSERT(text_size > 0);
    text[0] = '\0';
    for (uint32_t i = 0; i < sim.slots_count && used_size + 1 < text_size; i++) {
        int size;

        if (sim.threads[i].state != SIM_THREAD_LIVE)
            continue;
        if (used_size > 0) {
            (void)snprintf(text + used_size, text_size - used_size, "; ");
            used_size = strlen(text);
        }
        size = describe(&sim.threads[i], text + used_size, text_size - used_size);
        RON_ASSERT(size > 0);
        used_size = strlen(text);
    }
}

static void trace(bool preempted, const char *who, const char *what, const char *object)
{
    const struct sim_trace_line line = {sim.result->steps_count, preempted, who, what, object};

    sim.job->trace(&line, sim.job->trace_context);
}

void sim_trace_step(const struct sh_thread *thread, bool preempted)
{
    if (sim.job->trace == NULL)
        return;
    trace(preempted, thread->name,
          thread->op == SIM_OP_WAIT ? "times out of" : sim_op_words(thread->op),
          sim_object_name(thread->op, thread->object));
}

void sim_trace_event(const char *who, const char *what, const char *object)
{
    if (sim.job->trace != NULL)
        trace(false, who, what, object);
}
