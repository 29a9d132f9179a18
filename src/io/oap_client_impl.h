/*
 * oap_client_impl.h - inside the client of OAP/1: slots, and who owns what. See oap_client.h.
 *
 * A request is a frame in `filling` and a slot. The task swaps `filling` for what it has sent, so
 * submitters never wait for the network. Bytes are counted from the client's birth on: a frame that
 * begins before `sent_end` was given to the task and may reach the peer; one that does not and
 * whose request ends is left out of the swap. The low six bits of a corr_id are its slot.
 */
#ifndef RON_IO_OAP_CLIENT_IMPL_H
#define RON_IO_OAP_CLIENT_IMPL_H

#include "io/client_impl.h"
#include "io/oap_client.h"
#include "rt/lock.h"
#include "rt/task.h"

enum { OAP_SLOT_BITS = 6 };
_Static_assert(1 << OAP_SLOT_BITS == OAP_INFLIGHT_MAX, "a corr_id names its slot");

struct oap_slot {
    uint64_t corr_id;
    uint64_t deadline_ns;
    uint64_t begin; /* of its frame, in bytes queued so far */
    oap_client_done_fn *done;
    void *context;
};

struct oap_client {
    struct io_transport *transport;
    char host[CLIENT_HOST_SIZE];
    const struct ron_secret *token;
    uint64_t connect_ns, silent_ns;
    size_t compress_min;
    struct rt_task *task;

    /* The task's own. */
    struct io_wire *wire;   /* NULL: not connected */
    struct ron_buf sending; /* from sending_start on */
    size_t sending_start;
    uint8_t *in; /* frames that came: in_start..in_end */
    size_t in_start, in_end, in_capacity;
    struct ron_buf opened; /* a reply's body, inflated */
    bool ending;           /* the peer said END */
    uint64_t asked_ns;     /* when something was sent that no byte came after; 0: nothing */

    struct rt_lock lock;   /* class net */
    struct rt_cond freed;  /* a slot, or room in `filling` */
    struct rt_cond queued; /* something to connect for */
    bool canceled RON_GUARDED_BY(net);
    bool waiting RON_GUARDED_BY(net); /* the task is in an exchange: ring */
    uint32_t inflight_max RON_GUARDED_BY(net), inflight_count RON_GUARDED_BY(net);
    uint32_t frame_max RON_GUARDED_BY(net);
    uint64_t used RON_GUARDED_BY(net); /* slots */
    uint64_t corr_next RON_GUARDED_BY(net);
    uint64_t queued_end RON_GUARDED_BY(net), sent_end RON_GUARDED_BY(net);
    struct ron_buf filling RON_GUARDED_BY(net);
    uint32_t dead_count RON_GUARDED_BY(net); /* frames in it whose request has ended */
    struct rt_breaker breaker RON_GUARDED_BY(net);
    struct oap_client_stats stats RON_GUARDED_BY(net);
    struct oap_slot slots[OAP_INFLIGHT_MAX] RON_GUARDED_BY(net);
};

static inline void oap_client_lock(struct oap_client *client) RON_LOCKS(net)
{
    rt_lock_take(&client->lock);
}
static inline void oap_client_unlock(struct oap_client *client) RON_UNLOCKS(net)
{
    rt_lock_drop(&client->lock);
}

/* A request that is completed by whoever took it out of its slot, and by nobody else. */
struct oap_taken {
    struct oap_slot slot;
    bool sent;
};
/* False: no such request is in flight (any more). */
bool oap_client_take(struct oap_client *client, uint64_t corr_id, struct oap_taken *ret_taken)
    RON_NEEDS(net) RON_MUST_USE;

/* oap_client_task.c: the body of the task. */
enum ron_err oap_client_run(struct rt_task *task, void *argument) RON_BLOCKS;

#endif
