/*
 * watch.h - one small value that many tasks follow: last write wins, with a version.
 *
 * For shutdown, readiness, configuration: a reader sees the newest value, not every value. The
 * version starts at 1 and rises by one with each write, so a reader that remembers it cannot miss
 * that something changed. Any function from any task; rt_watch_free must be the last one.
 */
#ifndef RON_RT_WATCH_H
#define RON_RT_WATCH_H

#include "rt/deadline.h"
#include "rt/lock_classes.h"

enum { RT_WATCH_VALUE_SIZE_MAX = 64 };

struct rt_watch; /* opaque */

struct rt_watch_options {
    const char *name; /* texts are borrowed for the watch's life */
    const char *owner;
    size_t value_size; /* 1..RT_WATCH_VALUE_SIZE_MAX; values are copied as bytes */
};

/* RON_ERR_NO_MEMORY, RON_ERR_BUSY (registry full). The caller owns it. */
enum ron_err rt_watch_new(const struct rt_watch_options *options, const void *initial,
                          struct rt_watch **ret_watch, struct ron_errinfo *reterr) RON_MUST_USE;
/* Nobody may wait on it. Accepts NULL, returns NULL. */
struct rt_watch *rt_watch_free(struct rt_watch *watch);

/* Replace the value and wake those who wait; never blocks. Does nothing after close. */
void rt_watch_set(struct rt_watch *watch, const void *value);
/* Copy the newest value (ret_value may be NULL) and return its version. */
uint64_t rt_watch_get(struct rt_watch *watch, void *ret_value);
/* Is there a version beyond the one seen? Takes no lock: for loops that poll. */
bool rt_watch_changed(const struct rt_watch *watch, uint64_t seen_version);

/* Wait until the version is beyond seen_version, then copy value (may be NULL) and version. A
 * change that came before close is still given. RON_ERR_TIMEOUT; RON_ERR_CANCELED after close; a
 * past deadline is RON_ERR_TIMEOUT at once. */
enum ron_err rt_watch_wait(struct rt_watch *watch, uint64_t seen_version,
                           struct rt_deadline deadline, void *ret_value, uint64_t *ret_version,
                           struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* No more changes: wakes everyone who waits. Idempotent. */
void rt_watch_close(struct rt_watch *watch);

#endif
