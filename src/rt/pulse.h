/*
 * pulse.h - heartbeat watchdog: dead after a silence, alive again after some good beats in a row.
 *
 * Beats are answers of an upstream, or the beats of a task (rt_task_info.beat_ns). Born dead: the
 * first beats have to come. Pure: time comes from the caller, who also serialises the calls. Time
 * that goes backwards is no silence.
 */
#ifndef RON_RT_PULSE_H
#define RON_RT_PULSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"

struct rt_pulse {
    uint64_t silence_ns; /* this long without a beat is death */
    uint32_t needed_count;
    uint32_t good_count; /* in a row, up to needed_count */
    uint64_t beat_ns;    /* the last one */
    bool alive;
};

static inline void rt_pulse_init(struct rt_pulse *pulse, uint64_t silence_ns, uint32_t needed_count)
{
    RON_ASSERT(silence_ns > 0);
    RON_ASSERT(needed_count > 0);
    *pulse = (struct rt_pulse){.silence_ns = silence_ns, .needed_count = needed_count};
}

static inline bool rt_pulse_alive(struct rt_pulse *pulse, uint64_t now_ns)
{
    if (now_ns > pulse->beat_ns && now_ns - pulse->beat_ns >= pulse->silence_ns) {
        pulse->alive = false;
        pulse->good_count = 0;
    }
    return pulse->alive;
}

static inline void rt_pulse_beat(struct rt_pulse *pulse, uint64_t now_ns)
{
    (void)rt_pulse_alive(pulse, now_ns); /* after a silence the row begins anew */
    if (now_ns > pulse->beat_ns)
        pulse->beat_ns = now_ns;
    if (pulse->good_count < pulse->needed_count)
        pulse->good_count++;
    if (pulse->good_count == pulse->needed_count)
        pulse->alive = true;
}

/* A bad answer: the row begins anew. It is no beat, so the silence goes on. */
static inline void rt_pulse_miss(struct rt_pulse *pulse)
{
    pulse->good_count = 0;
}

#endif
