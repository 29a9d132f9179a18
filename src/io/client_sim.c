/*
 * client_sim.c - a transport without a network. See client_sim.h.
 */
#include "io/client_sim.h"

#include "base/assert.h"
#include "base/mem.h"
#include "rt/lock.h"

enum message_fate { FATE_DELIVER, FATE_LOSE, FATE_DOUBLE, FATE_DELAY, FATE_RESET, FATE__COUNT };
enum connect_fate { CONNECT_DONE, CONNECT_REFUSED, CONNECT_HALF_OPEN, CONNECT__COUNT };

struct message {
    struct message *next;
    uint64_t wire_id;
    uint64_t due_ns;
    bool to_peer;
    size_t size;
    uint8_t bytes[];
};
struct sim_wire {
    struct io_wire wire; /* first */
    struct sim_wire *next, **link;
    uint64_t id;
    bool half_open, reset;
    bool changed;       /* since sim_wait spoke of it: said once, as the kernel does */
    struct ron_buf out; /* of a request that is not complete */
    struct ron_buf in;  /* not yet received */
};
struct sim_transport {
    struct io_transport transport; /* first */
    struct io_sim_options options;
    struct rt_lock lock; /* class net */
    struct rt_cond changed;
    bool canceled RON_GUARDED_BY(net);
    bool woken RON_GUARDED_BY(net); /* io_transport_wake, and nobody has seen it */
    uint64_t wires_made RON_GUARDED_BY(net);
    uint32_t messages_count RON_GUARDED_BY(net);
    struct message *messages RON_GUARDED_BY(net); /* by due time, then as sent */
    struct sim_wire *wires RON_GUARDED_BY(net);
};

static void sim_lock(struct sim_transport *sim) RON_LOCKS(net)
{
    rt_lock_take(&sim->lock);
}

static void sim_unlock(struct sim_transport *sim) RON_UNLOCKS(net)
{
    rt_lock_drop(&sim->lock);
}

static struct sim_transport *sim_of(struct io_wire *wire)
{
    return (struct sim_transport *)wire->transport;
}

/* ---- Messages ---- */

/* Memory that is not there loses the message: the network may. */
static void post(struct sim_transport *sim, uint64_t wire_id, bool to_peer, struct ron_slice bytes,
                 uint64_t due_ns) RON_NEEDS(net)
{
    struct message **link = &sim->messages;
    struct message *message;

    RON_ASSERT(sim->messages_count < IO_SIM_MESSAGES_MAX);
    message = ron_mem_alloc(sizeof(*message) + bytes.size);
    if (message == NULL)
        return;
    message->wire_id = wire_id;
    message->due_ns = due_ns;
    message->to_peer = to_peer;
    message->size = bytes.size;
    memcpy(message->bytes, bytes.data, bytes.size);
    while (*link != NULL && (*link)->due_ns <= due_ns)
        link = &(*link)->next;
    message->next = *link;
    *link = message;
    sim->messages_count++;
    rt_cond_broadcast(&sim->changed);
}

static struct sim_wire *find_wire(struct sim_transport *sim, uint64_t id) RON_NEEDS(net)
{
    struct sim_wire *wire = sim->wires;

    while (wire != NULL && wire->id != id)
        wire = wire->next;
    return wire;
}

/* Send on its way, or not. */
static void dispatch(struct sim_transport *sim, uint64_t wire_id, bool to_peer,
                     struct ron_slice bytes) RON_NEEDS(net)
{
    enum message_fate fate = sh_choose(FATE__COUNT, to_peer ? "net request" : "net reply");
    uint64_t due_ns = rt_now_ns() + (fate == FATE_DELAY ? sim->options.delay_ns : 0) +
                      (to_peer ? 0 : sim->options.think_ns);
    struct sim_wire *wire = find_wire(sim, wire_id);

    if (fate == FATE_RESET && wire != NULL) {
        wire->reset = true;
        wire->changed = true;
        rt_cond_broadcast(&sim->changed);
    }
    if (fate == FATE_LOSE || fate == FATE_RESET)
        return;
    post(sim, wire_id, to_peer, bytes, due_ns);
    if (fate == FATE_DOUBLE)
        post(sim, wire_id, to_peer, bytes, due_ns);
}

/* The next message due at now_ns, off the list, or NULL. */
static struct message *take_due(struct sim_transport *sim, uint64_t now_ns) RON_NEEDS(net)
{
    struct message **link = &sim->messages;
    struct message *message;

    if (*link == NULL || (*link)->due_ns > now_ns)
        return NULL;
    if ((*link)->next != NULL && (*link)->next->due_ns <= now_ns &&
        sh_choose(2, "net reorder") == 1)
        link = &(*link)->next;
    message = *link;
    *link = message->next;
    sim->messages_count--;
    return message;
}

/* The peer's turn. Without locks: the handler may take its own. */
static void serve(struct sim_transport *sim, const struct message *message)
{
    struct ron_slice bytes = ron_slice_of(message->bytes, message->size);
    struct http_head head;
    struct ron_buf reply;
    size_t scanned = 0;
    size_t size = 0;
    enum http_scan scan = http_head_scan(bytes, &scanned, &size);
    enum ron_err err = http_head_parse(ron_slice_of(bytes.data, size), &head, NULL);

    RON_ASSERT(scan == HTTP_SCAN_HEAD); /* only whole requests are sent on */
    RON_ASSERT(err == RON_ERR_OK);
    ron_buf_init(&reply, IO_SIM_MESSAGE_SIZE_MAX);
    sim->options.handler(sim->options.context, &head,
                         ron_slice_of(bytes.data + size, bytes.size - size), &reply);
    sim_lock(sim);
    if (reply.size > 0 && ron_buf_check(&reply, NULL) == RON_ERR_OK)
        dispatch(sim, message->wire_id, false, ron_buf_slice(&reply));
    sim_unlock(sim);
    ron_buf_fini(&reply);
}

static void deliver(struct sim_transport *sim, const struct message *message)
{
    struct sim_wire *wire;

    if (message->to_peer) {
        serve(sim, message);
        return;
    }
    sim_lock(sim);
    wire = find_wire(sim, message->wire_id);
    if (wire != NULL) {
        ron_buf_put(&wire->in, message->bytes, message->size);
        wire->changed = true;
    }
    rt_cond_broadcast(&sim->changed);
    sim_unlock(sim);
}

/* Deliver all that is due at now_ns. */
static void pump(struct sim_transport *sim, uint64_t now_ns)
{
    for (;;) {
        struct message *message;

        sim_lock(sim);
        message = take_due(sim, now_ns);
        sim_unlock(sim);
        if (message == NULL)
            return;
        deliver(sim, message);
        (void)ron_mem_free(message);
    }
}

void io_sim_settle(struct io_transport *transport)
{
    pump((struct sim_transport *)transport, SH_NEVER);
}

/* ---- The transport ---- */

static enum ron_err sim_connect(struct io_transport *transport, struct rt_deadline deadline,
                                struct io_wire **ret_wire, struct ron_errinfo *reterr)
{
    struct sim_transport *sim = (struct sim_transport *)transport;
    enum connect_fate fate = sh_choose(CONNECT__COUNT, "net connect");
    struct sim_wire *wire;

    (void)deadline;
    if (fate == CONNECT_REFUSED)
        return ron_fail(reterr, RON_ERR_UPSTREAM_UNAVAILABLE, "connect: refused");
    wire = ron_mem_alloc(sizeof(*wire));
    if (wire == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "connection");
    wire->wire.transport = transport;
    wire->half_open = fate == CONNECT_HALF_OPEN;
    ron_buf_init(&wire->out, IO_SIM_MESSAGE_SIZE_MAX);
    ron_buf_init(&wire->in, (size_t)2 * IO_SIM_MESSAGE_SIZE_MAX);
    sim_lock(sim);
    wire->id = ++sim->wires_made;
    wire->next = sim->wires;
    wire->link = &sim->wires;
    if (wire->next != NULL)
        wire->next->link = &wire->next;
    sim->wires = wire;
    sim_unlock(sim);
    *ret_wire = &wire->wire;
    return RON_ERR_OK;
}

/* Is `out` a whole request? */
static bool is_whole(const struct ron_buf *out)
{
    struct http_head head;
    size_t scanned = 0;
    size_t size = 0;

    if (http_head_scan(ron_buf_slice(out), &scanned, &size) != HTTP_SCAN_HEAD)
        return false;
    if (http_head_parse(ron_slice_of(out->data, size), &head, NULL) != RON_ERR_OK)
        return false;
    return out->size >= size + head.content_length;
}

static enum ron_err sim_send(struct io_wire *wire, struct ron_slice bytes,
                             struct rt_deadline deadline, size_t *ret_sent,
                             struct ron_errinfo *reterr)
{
    struct sim_wire *mine = (struct sim_wire *)wire;
    struct sim_transport *sim = sim_of(wire);
    enum ron_err err = RON_ERR_OK;

    (void)deadline;
    sim_lock(sim);
    if (sim->canceled)
        err = ron_fail(reterr, RON_ERR_CANCELED, "canceled");
    else if (mine->reset)
        err = ron_fail(reterr, RON_ERR_UPSTREAM_UNAVAILABLE, "send: reset");
    else
        err = ron_buf_append(&mine->out, bytes.data, bytes.size, reterr);
    if (err == RON_ERR_OK) {
        *ret_sent = bytes.size;
        if (is_whole(&mine->out)) {
            if (!mine->half_open)
                dispatch(sim, mine->id, true, ron_buf_slice(&mine->out));
            ron_buf_reset(&mine->out);
        }
    }
    sim_unlock(sim);
    return err;
}

/* Under the lock: give what came, or say why there is nothing; RON_ERR_OK with 0: wait. */
static enum ron_err take_in(struct sim_transport *sim, struct sim_wire *wire, void *bytes,
                            size_t size, size_t *ret_size, struct ron_errinfo *reterr)
    RON_NEEDS(net)
{
    struct ron_buf rest;

    *ret_size = 0;
    if (sim->canceled)
        return ron_fail(reterr, RON_ERR_CANCELED, "canceled while waiting for the peer");
    if (wire->in.size == 0)
        return wire->reset ? ron_fail(reterr, RON_ERR_UPSTREAM_UNAVAILABLE, "receive: reset")
                           : RON_ERR_OK;
    *ret_size = wire->in.size < size ? wire->in.size : size;
    memcpy(bytes, wire->in.data, *ret_size);
    ron_buf_init(&rest, wire->in.size_max);
    ron_buf_put(&rest, wire->in.data + *ret_size, wire->in.size - *ret_size);
    ron_buf_fini(&wire->in);
    wire->in = rest;
    return ron_buf_check(&wire->in, reterr);
}

static enum ron_err sim_receive(struct io_wire *wire, void *bytes, size_t size,
                                struct rt_deadline deadline, size_t *ret_size,
                                struct ron_errinfo *reterr)
{
    struct sim_transport *sim = sim_of(wire);

    for (;;) {
        enum ron_err err;

        pump(sim, rt_now_ns());
        sim_lock(sim);
        err = take_in(sim, (struct sim_wire *)wire, bytes, size, ret_size, reterr);
        if (err == RON_ERR_OK && *ret_size == 0 && rt_deadline_expired(deadline))
            err = ron_fail(reterr, RON_ERR_TIMEOUT, "the deadline passed waiting for the peer");
        if (err == RON_ERR_OK && *ret_size == 0) {
            uint64_t until_ns = deadline.at_ns;

            if (sim->messages != NULL && sim->messages->due_ns < until_ns)
                until_ns = sim->messages->due_ns;
            (void)rt_cond_wait(&sim->changed, &sim->lock, until_ns);
        }
        sim_unlock(sim);
        if (err != RON_ERR_OK || *ret_size > 0)
            return err;
    }
}

/* ---- Many wires ---- */

static enum ron_err sim_begin(struct io_transport *transport, struct io_wire **ret_wire,
                              struct ron_errinfo *reterr)
{
    return sim_connect(transport, RT_DEADLINE_NEVER, ret_wire, reterr);
}

static enum ron_err sim_step(struct io_wire *wire, struct io_exchange *exchange,
                             struct ron_errinfo *reterr)
{
    struct sim_transport *sim = sim_of(wire);
    const uint64_t now_ns = rt_now_ns();
    enum ron_err err;

    if (now_ns > 0)
        pump(sim, now_ns - 1); /* what came while nobody waited; what comes now is sim_wait's */
    sim_lock(sim);
    err = take_in(sim, (struct sim_wire *)wire, exchange->in, exchange->in_size,
                  &exchange->received_size, reterr);
    sim_unlock(sim);
    if (err != RON_ERR_OK || exchange->out.size == 0)
        return err;
    return sim_send(wire, exchange->out, RT_DEADLINE_NEVER, &exchange->sent_size, reterr);
}

static enum ron_err sim_wait(struct io_transport *transport, struct rt_deadline deadline,
                             struct io_wire **wires, size_t wires_max, size_t *ret_count,
                             struct ron_errinfo *reterr)
{
    struct sim_transport *sim = (struct sim_transport *)transport;
    enum ron_err err = RON_ERR_OK;
    bool over = false;

    while (!over) {
        pump(sim, rt_now_ns());
        sim_lock(sim);
        for (struct sim_wire *wire = sim->wires; wire != NULL && *ret_count < wires_max;
             wire = wire->next)
            if (wire->changed) {
                wire->changed = false;
                wires[(*ret_count)++] = &wire->wire;
            }
        if (sim->canceled)
            err = ron_fail(reterr, RON_ERR_CANCELED, "canceled while waiting for the peer");
        over = sim->canceled || sim->woken || *ret_count > 0 || rt_deadline_expired(deadline);
        sim->woken = sim->woken && !over;
        if (!over) {
            uint64_t until_ns = deadline.at_ns;

            if (sim->messages != NULL && sim->messages->due_ns < until_ns)
                until_ns = sim->messages->due_ns;
            (void)rt_cond_wait(&sim->changed, &sim->lock, until_ns);
        }
        sim_unlock(sim);
    }
    return err;
}

static void sim_wake(struct io_transport *transport)
{
    struct sim_transport *sim = (struct sim_transport *)transport;

    sim_lock(sim);
    sim->woken = true;
    rt_cond_broadcast(&sim->changed);
    sim_unlock(sim);
}

static bool sim_idle(struct io_wire *wire)
{
    struct sim_wire *mine = (struct sim_wire *)wire;
    bool idle;

    pump(sim_of(wire), rt_now_ns());
    sim_lock(sim_of(wire));
    idle = mine->in.size == 0 && !mine->reset;
    sim_unlock(sim_of(wire));
    return idle;
}

static void sim_close(struct io_wire *wire)
{
    struct sim_wire *mine = (struct sim_wire *)wire;

    sim_lock(sim_of(wire));
    *mine->link = mine->next;
    if (mine->next != NULL)
        mine->next->link = mine->link;
    sim_unlock(sim_of(wire));
    ron_buf_fini(&mine->out);
    ron_buf_fini(&mine->in);
    (void)ron_mem_free(mine);
}

static void sim_cancel(struct io_transport *transport)
{
    struct sim_transport *sim = (struct sim_transport *)transport;

    sim_lock(sim);
    sim->canceled = true;
    rt_cond_broadcast(&sim->changed);
    sim_unlock(sim);
}

static void sim_free(struct io_transport *transport)
{
    struct sim_transport *sim = (struct sim_transport *)transport;

    sim_lock(sim);
    RON_ASSERT(sim->wires == NULL);
    while (sim->messages != NULL) {
        struct message *message = sim->messages;

        sim->messages = message->next;
        (void)ron_mem_free(message);
    }
    sim_unlock(sim);
    rt_cond_fini(&sim->changed);
    rt_lock_fini(&sim->lock);
    (void)ron_mem_free(sim);
}

enum ron_err io_transport_simulated(const struct io_sim_options *options,
                                    struct io_transport **ret_transport, struct ron_errinfo *reterr)
{
    static const struct io_transport_ops ops = {
        .connect = sim_connect,
        .send = sim_send,
        .receive = sim_receive,
        .begin = sim_begin,
        .step = sim_step,
        .wait = sim_wait,
        .idle = sim_idle,
        .close = sim_close,
        .wake = sim_wake,
        .cancel = sim_cancel,
        .free = sim_free,
    };
    struct sim_transport *sim = ron_mem_alloc(sizeof(*sim));

    if (sim == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "simulated transport");
    sim->transport.ops = &ops;
    sim->options = *options;
    rt_lock_init(&sim->lock, "simulated net", RON_RANK_net);
    rt_cond_init(&sim->changed, "simulated net");
    *ret_transport = &sim->transport;
    return RON_ERR_OK;
}
