/*
 * client_sim.h - a transport without a network: the peer is a function in the same process.
 *
 * Every fault is a choice (sh_choose), so that the explorer tries all of them within its budget and
 * production threads get none: a connection may be refused or half-open (what is sent vanishes); a
 * request may be lost, doubled, delayed or cut off by a reset, and so may a reply; of two messages
 * due at the same time either may come first. The peer's side is read with the server's own grammar
 * (http_head.h).
 *
 * There is no thread behind it: what is due is delivered by whoever waits for a reply, and what
 * nobody waits for by io_sim_settle.
 */
#ifndef RON_IO_CLIENT_SIM_H
#define RON_IO_CLIENT_SIM_H

#include "io/client_transport.h"
#include "io/http_head.h"

enum { IO_SIM_MESSAGES_MAX = 1024, IO_SIM_MESSAGE_SIZE_MAX = 65536 };

/* The peer: puts a whole reply (head and body) or nothing at all: then there is none. Called
 * without locks on the thread of a client's call. */
typedef void io_sim_handler_fn(void *context, const struct http_head *head, struct ron_slice body,
                               struct ron_buf *reply);

struct io_sim_options {
    io_sim_handler_fn *handler;
    void *context;
    uint64_t delay_ns; /* of a delayed message; others take no time */
    uint64_t think_ns; /* what the peer takes for each reply */
};

/* RON_ERR_NO_MEMORY. The caller, or the client it is given to, owns *ret_transport. */
enum ron_err io_transport_simulated(const struct io_sim_options *options,
                                    struct io_transport **ret_transport,
                                    struct ron_errinfo *reterr) RON_MUST_USE;
/* Deliver everything under way, due or not: requests that come when their caller is long gone. */
void io_sim_settle(struct io_transport *transport);

#endif
