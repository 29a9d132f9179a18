/*
 * snapshot_pace.h - when the next snapshot is due. Pure: time and counts come from the caller.
 *
 * For the count of entries: not before a rest of four times what the last one took, so that at most
 * a fifth of a processor goes there however many come; but no rest is longer than a minute, so one
 * that takes longer than a quarter of that has more. For the
 * time: a period after the end of the last one, if anything is new. Never two begun within `apart`.
 */
#ifndef RON_LEDGER_SNAPSHOT_PACE_H
#define RON_LEDGER_SNAPSHOT_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define SNAPSHOT_NEVER       UINT64_MAX
#define SNAPSHOT_REST_MAX_NS UINT64_C(60000000000)

struct snapshot_pace {
    uint64_t entries;          /* 0: not for that reason */
    uint64_t period_ns;        /* the same */
    uint64_t apart_ns;         /* between two beginnings; longer after one that failed */
    uint64_t begin_ns, end_ns; /* of the last one, or the start */
};

static inline uint64_t snapshot_rest_ns(const struct snapshot_pace *pace)
{
    const uint64_t took_ns = pace->end_ns - pace->begin_ns;

    return took_ns < SNAPSHOT_REST_MAX_NS / 4 ? 4 * took_ns : SNAPSHOT_REST_MAX_NS;
}

/* With so many new entries: 0 if one is due now, else when to look again if nothing happens before
 * (or SNAPSHOT_NEVER). */
static inline uint64_t snapshot_wait_ns(const struct snapshot_pace *pace, uint64_t fresh_count,
                                        uint64_t now_ns)
{
    const bool many = pace->entries > 0 && fresh_count >= pace->entries;
    uint64_t due_ns = SNAPSHOT_NEVER;

    if (pace->period_ns > 0)
        due_ns = pace->end_ns + pace->period_ns;
    if (many && pace->end_ns + snapshot_rest_ns(pace) < due_ns)
        due_ns = pace->end_ns + snapshot_rest_ns(pace);
    if (due_ns == SNAPSHOT_NEVER)
        return SNAPSHOT_NEVER;
    if (due_ns < pace->begin_ns + pace->apart_ns)
        due_ns = pace->begin_ns + pace->apart_ns;
    if (due_ns > now_ns)
        return due_ns - now_ns;
    return fresh_count > 0 ? 0 : pace->period_ns; /* nothing new: a period is in due_ns */
}

#endif
