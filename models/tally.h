/*
 * tally.h - what happened in a run of a simulation, for the report over many.
 *
 * Only ever added to from inside a run, never read there: it lies outside the run's memory and
 * decides nothing.
 */
#ifndef RON_MODELS_TALLY_H
#define RON_MODELS_TALLY_H

#include <stdint.h>

/* X(name, words). Each must have happened in a long run. */
#define TALLY_MAP(X)                                       \
    X(OPERATIONS, "operations of clients")                 \
    X(ACKNOWLEDGED, "acknowledged")                        \
    X(REPEATED, "acknowledged again")                      \
    X(RETRIES, "retries of what was refused or in doubt")  \
    X(DOUBLES, "doubles")                                  \
    X(REORDERS, "pairs in the wrong order")                \
    X(VANISHED, "clients that did not wait")               \
    X(STOPS, "stops with work under way")                  \
    X(FALLS, "crashes at an operation")                    \
    X(POWER_CUTS, "power cuts in the middle of a sync")    \
    X(STARTS, "starts")                                    \
    X(STARTS_FAILED, "starts that failed")                 \
    X(SAFE_MODE, "refused: SafeMode")                      \
    X(BUSY, "refused: Busy")                               \
    X(EVICTED, "refused: PrevalDropOldest")                \
    X(BACKPRESSURE, "refused: CommitBackpressure")         \
    X(FULL, "refused: PersistenceFull")                    \
    X(FULL_ENDED, "acknowledged after the disk was full")  \
    X(DRAINING, "refused: Draining")                       \
    X(TIMEOUT, "refused: Timeout")                         \
    X(UNKNOWN, "outcomes unknown")                         \
    X(RESOLVED, "outcomes in doubt, resolved by asking")   \
    X(PANICS, "panics of prevalidators")                   \
    X(NO_PREVALIDATOR, "refused: no prevalidator is left") \
    X(DRAINS_CUT, "drains cut short")                      \
    X(TEARS, "torn writes")                                \
    X(EIO, "disk: errors")                                 \
    X(ENOSPC, "disk: no room")                             \
    X(SHORT_WRITE, "disk: short writes")                   \
    X(SYNC_EIO, "disk: failed syncs")                      \
    X(SLOW, "disk: slow syncs")
enum tally_kind {
#define X(name, words) TALLY_##name,
    TALLY_MAP(X)
#undef X
        TALLY__MAX
};
struct tally {
    uint64_t counts[TALLY__MAX];
};
extern struct tally model_tally;

static inline void tally_add(enum tally_kind kind, uint64_t count)
{
    model_tally.counts[kind] += count;
}

#endif
