/*
 * client_transport.c - the checks in front of every transport. See client_transport.h.
 */
#include "io/client_transport.h"

#include "base/assert.h"
#include "rt/lock.h"

enum ron_err io_wire_connect(struct io_transport *transport, struct rt_deadline deadline,
                             struct io_wire **ret_wire, struct ron_errinfo *reterr)
{
    rt_assert_no_lock_held();
    return transport->ops->connect(transport, deadline, ret_wire, reterr);
}

enum ron_err io_wire_send(struct io_wire *wire, struct ron_slice bytes, struct rt_deadline deadline,
                          size_t *ret_sent, struct ron_errinfo *reterr)
{
    rt_assert_no_lock_held();
    *ret_sent = 0;
    return wire->transport->ops->send(wire, bytes, deadline, ret_sent, reterr);
}

enum ron_err io_wire_receive(struct io_wire *wire, void *bytes, size_t size,
                             struct rt_deadline deadline, size_t *ret_size,
                             struct ron_errinfo *reterr)
{
    rt_assert_no_lock_held();
    RON_ASSERT(size > 0);
    return wire->transport->ops->receive(wire, bytes, size, deadline, ret_size, reterr);
}

enum ron_err io_wire_exchange(struct io_wire *wire, struct io_exchange *exchange,
                              struct rt_deadline deadline, struct ron_errinfo *reterr)
{
    rt_assert_no_lock_held();
    RON_ASSERT(wire->transport->ops->exchange != NULL);
    RON_ASSERT(exchange->in_size > 0);
    exchange->sent_size = 0;
    exchange->received_size = 0;
    exchange->ended = false;
    return wire->transport->ops->exchange(wire, exchange, deadline, reterr);
}

enum ron_err io_wire_begin(struct io_transport *transport, struct io_wire **ret_wire,
                           struct ron_errinfo *reterr)
{
    return transport->ops->begin(transport, ret_wire, reterr);
}

enum ron_err io_wire_step(struct io_wire *wire, struct io_exchange *exchange,
                          struct ron_errinfo *reterr)
{
    RON_ASSERT(exchange->in_size > 0);
    exchange->sent_size = 0;
    exchange->received_size = 0;
    exchange->ended = false;
    return wire->transport->ops->step(wire, exchange, reterr);
}

enum ron_err io_transport_wait(struct io_transport *transport, struct rt_deadline deadline,
                               struct io_wire **wires, size_t wires_max, size_t *ret_count,
                               struct ron_errinfo *reterr)
{
    rt_assert_no_lock_held();
    RON_ASSERT(wires_max > 0);
    *ret_count = 0;
    return transport->ops->wait(transport, deadline, wires, wires_max, ret_count, reterr);
}

bool io_wire_idle(struct io_wire *wire)
{
    return wire->transport->ops->idle(wire);
}

struct io_wire *io_wire_close(struct io_wire *wire)
{
    if (wire != NULL)
        wire->transport->ops->close(wire);
    return NULL;
}

void io_transport_wake(struct io_transport *transport)
{
    RON_ASSERT(transport->ops->wake != NULL);
    transport->ops->wake(transport);
}

void io_transport_cancel(struct io_transport *transport)
{
    transport->ops->cancel(transport);
}

struct io_transport *io_transport_free(struct io_transport *transport)
{
    if (transport != NULL)
        transport->ops->free(transport);
    return NULL;
}
