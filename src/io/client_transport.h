/*
 * client_transport.h - the seam below the client: how bytes reach a target and come back.
 *
 * Three ways behind it: sockets (TCP and Unix), TLS on them, and the simulated transport
 * (client_sim.h), so that what the simulator explores is the client that ships. A transport knows
 * one target; a wire is one connection to it, used by one thread at a time. Every wait ends at the
 * deadline (RON_ERR_TIMEOUT) or, after io_transport_cancel, at once (RON_ERR_CANCELED).
 */
#ifndef RON_IO_CLIENT_TRANSPORT_H
#define RON_IO_CLIENT_TRANSPORT_H

#include "base/bytes.h"
#include "rt/deadline.h"
#include "rt/lock_classes.h"

struct io_transport;
struct tls_client;

/* Both directions of a wire in one step. */
struct io_exchange {
    struct ron_slice out; /* may be empty */
    uint8_t *in;
    size_t in_size;                  /* > 0 */
    size_t sent_size, received_size; /* set in any case */
    bool ended;                      /* the peer's orderly end: nothing more will come */
};

/* The first member of each transport's own connection. */
struct io_wire {
    struct io_transport *transport;
    void *owner; /* of one that was begun: its user's, to know it again */
};

struct io_transport_ops {
    enum ron_err (*connect)(struct io_transport *transport, struct rt_deadline deadline,
                            struct io_wire **ret_wire, struct ron_errinfo *reterr);
    enum ron_err (*send)(struct io_wire *wire, struct ron_slice bytes, struct rt_deadline deadline,
                         size_t *ret_sent, struct ron_errinfo *reterr);
    enum ron_err (*receive)(struct io_wire *wire, void *bytes, size_t size,
                            struct rt_deadline deadline, size_t *ret_size,
                            struct ron_errinfo *reterr);
    enum ron_err (*exchange)(struct io_wire *wire, struct io_exchange *exchange,
                             struct rt_deadline deadline, struct ron_errinfo *reterr);
    enum ron_err (*begin)(struct io_transport *transport, struct io_wire **ret_wire,
                          struct ron_errinfo *reterr);
    enum ron_err (*step)(struct io_wire *wire, struct io_exchange *exchange,
                         struct ron_errinfo *reterr);
    enum ron_err (*wait)(struct io_transport *transport, struct rt_deadline deadline,
                         struct io_wire **wires, size_t wires_max, size_t *ret_count,
                         struct ron_errinfo *reterr);
    bool (*idle)(struct io_wire *wire);
    void (*close)(struct io_wire *wire);
    void (*wake)(struct io_transport *transport);
    void (*cancel)(struct io_transport *transport);
    void (*free)(struct io_transport *transport);
};

/* The first member of each transport. */
struct io_transport {
    const struct io_transport_ops *ops;
};

/* RON_ERR_UPSTREAM_UNAVAILABLE: refused, reset or gone; RON_ERR_UNAUTHORIZED: its certificate does
 * not verify; RON_ERR_NO_MEMORY, RON_ERR_BUSY (descriptors). The caller owns *ret_wire. */
enum ron_err io_wire_connect(struct io_transport *transport, struct rt_deadline deadline,
                             struct io_wire **ret_wire,
                             struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* All of it or an error; *ret_sent, set in any case, says how much the peer may have. */
enum ron_err io_wire_send(struct io_wire *wire, struct ron_slice bytes, struct rt_deadline deadline,
                          size_t *ret_sent, struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* At least a byte; *ret_size 0 is the peer's orderly end. */
enum ron_err io_wire_receive(struct io_wire *wire, void *bytes, size_t size,
                             struct rt_deadline deadline, size_t *ret_size,
                             struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Send what goes and take what came, waiting for either, for io_transport_wake (RON_ERR_OK, nothing
 * moved) or for the deadline. For a thread that keeps many requests in flight; the simulated
 * transport has none. */
enum ron_err io_wire_exchange(struct io_wire *wire, struct io_exchange *exchange,
                              struct rt_deadline deadline,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* Many wires of one thread (flights.h), none of which is waited for alone: they are begun, moved
 * by steps until nothing moves, and waited for together. */

/* A connection that is being made. Errors of io_wire_connect, as far as they show at once;
 * RON_ERR_BUSY also where the peer's queue is full: later, perhaps. */
enum ron_err io_wire_begin(struct io_transport *transport, struct io_wire **ret_wire,
                           struct ron_errinfo *reterr) RON_MUST_USE;
/* Go on connecting, then as io_wire_exchange, but never wait: nothing moved and RON_ERR_OK is
 * "not now". */
enum ron_err io_wire_step(struct io_wire *wire, struct io_exchange *exchange,
                          struct ron_errinfo *reterr) RON_MUST_USE;
/* Wait until wires that were begun may move again since their last step, for io_transport_wake or
 * for the deadline; 0..wires_max (> 0) of them, perhaps too many. RON_ERR_CANCELED. */
enum ron_err io_transport_wait(struct io_transport *transport, struct rt_deadline deadline,
                               struct io_wire **wires, size_t wires_max, size_t *ret_count,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* Nothing came and it is not closed: fit for another request. Never waits. */
bool io_wire_idle(struct io_wire *wire);
/* Accepts NULL, returns NULL. */
struct io_wire *io_wire_close(struct io_wire *wire);

/* End the exchange or wait that waits, or the next one that would. Any thread; never blocks. */
void io_transport_wake(struct io_transport *transport);
/* Wake who waits, now and from now on. Any thread; idempotent. */
void io_transport_cancel(struct io_transport *transport);
/* After its last wire. Accepts NULL, returns NULL. */
struct io_transport *io_transport_free(struct io_transport *transport);

struct io_address;
/* Sockets to the address, with TLS where tls is not NULL (taken on RON_ERR_OK). */
enum ron_err io_transport_socket(const struct io_address *address, struct tls_client *tls,
                                 struct io_transport **ret_transport,
                                 struct ron_errinfo *reterr) RON_MUST_USE;

#endif
