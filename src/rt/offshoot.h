/*
 * offshoot.h - a copy of this process that only looks: a function runs on the memory as it was at
 * the fork, and hands bytes to the parent through a pipe, while the parent goes on and changes it.
 *
 * The copy has one thread and may not allocate, take locks, log or touch descriptors: locks may be
 * held by threads that it does not have. So everything it needs is there before the fork, it reads
 * memory and puts bytes, no more. It blocks all signals, has closed every descriptor but the pipe
 * and stderr (for a failed assertion), runs at low priority, is killed when the thread that forked
 * it ends, and ends by _exit: no exit handler runs twice.
 *
 * Where a fork is no good (the simulator; under sanitizers, which have threads of their own), the
 * same function runs in the process, at once, into a buffer: nothing may change while it does.
 */
#ifndef RON_RT_OFFSHOOT_H
#define RON_RT_OFFSHOOT_H

#include "base/bytes.h"
#include "rt/deadline.h"
#include "rt/lock_classes.h"

struct rt_offshoot; /* opaque */

/* False: it could not do its work; the parent is told. */
typedef bool rt_offshoot_fn(struct rt_offshoot *offshoot, void *context);

struct rt_offshoot_options {
    rt_offshoot_fn *fn;
    void *context;
    bool in_process;
    size_t size_max; /* of the bytes, in process: beyond it fn is told that nobody reads */
};

/* Returns in the parent only; the pause is that of the fork. RON_ERR_NO_MEMORY, RON_ERR_IO. */
enum ron_err rt_offshoot_start(const struct rt_offshoot_options *options,
                               struct rt_offshoot **ret_offshoot,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* For fn. False: nobody reads any more, so there is nothing left to do. */
bool rt_offshoot_put(struct rt_offshoot *offshoot, const void *bytes, size_t size) RON_MUST_USE;
/* Parent, one thread: the next bytes, at least one; 0: it has ended well. RON_ERR_TIMEOUT: none
 * yet. RON_ERR_IO: it died, or could not do its work: what came before is not to be used. */
enum ron_err rt_offshoot_read(struct rt_offshoot *offshoot, void *bytes, size_t size,
                              struct rt_deadline deadline, size_t *ret_size,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Kill it if it still runs, and forget it. Accepts NULL, returns NULL. */
struct rt_offshoot *rt_offshoot_end(struct rt_offshoot *offshoot) RON_BLOCKS;

#endif
