/*
 * port.h - what the rest of ron may ask of the ledger: submit commands, read what is committed,
 * follow roots, ask how it is.
 *
 * A request is the caller's memory. ledger_submit refuses it at once (then done is never called),
 * or takes it; then done is called exactly once, from any thread and perhaps before ledger_submit
 * returns, and until then the request and every text it points to stay as they are. Every way out
 * is answered: refusal, eviction, deadline, shutdown, failure. After done the service has forgotten
 * the request. done must not block and must not submit.
 *
 * RON_ERR_OK means durable: the batch is synced, in the committed view, and its root published. An
 * error means that nothing happened, unless outcome.unknown: then ask again with the same key.
 */
#ifndef RON_LEDGER_PORT_H
#define RON_LEDGER_PORT_H

#include "ledger/core.h"
#include "ledger/damage.h"
#include "rt/deadline.h"
#include "rt/lifecycle.h"
#include "rt/span.h"

struct auth_grant;     /* auth/grant.h */
struct ledger_service; /* opaque */
struct ledger_slot;
struct rt_bus_subscriber;

struct ledger_outcome {
    enum ron_err err;
    bool repeated;                 /* answered as before: no batch was made now */
    bool unknown;                  /* it may have been written, or may yet turn up */
    struct ledger_reply reply;     /* RON_ERR_OK; batch 0: there was nothing to do */
    struct ledger_refusal refusal; /* of the core: present is 0 if it said nothing */
    struct ron_errinfo info;       /* an error */
};

struct ledger_request;
typedef void ledger_done_fn(struct ledger_request *request, void *context);
/* Make the command from what came over the wire: ops, key, fingerprint, cover; on a prevalidator,
 * once, before anything else is looked at. An error is the caller's answer, with what it left in
 * outcome.refusal. May block within the request's deadline, and panic; but for a prompt request. */
typedef enum ron_err ledger_prepare_fn(struct ledger_request *request, void *context,
                                       struct ron_errinfo *reterr);

struct ledger_request {
    /* The command. Of its stamp the caller gives what the token proved; commit_ms is the
     * Sequencer's. INGEST and INTENTS: either ops are ready (wire NULL), or the prevalidator makes
     * them from wire into ops_room; or prepare makes all of it. */
    struct ledger_command command;
    ledger_prepare_fn *prepare; /* NULL: none */
    bool prompt; /* prepare waits for nobody: ledger_submit_many may call it, and confirm */
    /* The same, after the checks: what must still hold when they have waited for others; there or
     * on the task of a remote check: must not block. */
    ledger_prepare_fn *confirm; /* NULL: none */
    const struct ledger_wire_entry *wire;
    uint32_t wire_count;
    struct ledger_op *ops_room; /* wire_count of them */
    /* A bit for each op, in words: of a large INGEST a prevalidator then asks the archive for the
     * ids, which is the Sequencer's else. prepare may give it. NULL: none. */
    uint64_t *sift_room;
    uint32_t size; /* bytes it keeps in memory: its weight in the queues */
    /* What the token proved, for the checks (checks.h); NULL without a token: then only a service
     * without checks takes it. */
    const struct auth_grant *grant;
    bool policy_asked; /* who submits it has had auth's evaluator asked (ledger_checks_evaluate),
                        * and takes back what was charged: it is not asked again */
    struct rt_deadline
        deadline; /* one for its whole way; once sequenced it is answered as it ends */
    ledger_done_fn *done;
    void *context;
    struct rt_trace trace; /* of a sampled request: where its spans begin */
    const char *corr_id;   /* beside it; NULL: none */

    struct ledger_outcome outcome; /* written before done */

    struct { /* the service's own */
        uint64_t arrived_ns, arrived_ms;
        const struct ledger_bare_op *lane; /* its first op with a nonce; NULL: none */
        struct ledger_slot *slot;          /* NULL: no batch of its own */
        uint64_t batch;                    /* whose reply it gets */
        uint64_t index;                    /* in the engine: durable once the engine says so */
        struct rt_span *span; /* of the stage it is in; whoever holds the request ends it */
        bool taken, repeated;
        bool charged; /* by the checks: taken back if nothing is written */
        bool spent;   /* the capability's day is: only a repetition of its key may pass */
    } state;
};

/* Any thread; never waits. Refusals: RON_ERR_BUSY (the ingress queue is full), RON_ERR_DRAINING,
 * RON_ERR_SAFE_MODE, RON_ERR_RECOVERING, RON_ERR_NOT_READY (starting, frozen, or no prevalidator is
 * left), RON_ERR_COMMIT_BACKPRESSURE (the Committer is behind), RON_ERR_TIMEOUT (the deadline is
 * past), RON_ERR_TOO_LARGE. */
enum ron_err ledger_submit(struct ledger_service *service, struct ledger_request *request,
                           struct ron_errinfo *reterr) RON_MUST_USE;
enum { LEDGER_SUBMIT_MAX = 64 };
typedef void ledger_refused_fn(struct ledger_request *request, enum ron_err err,
                               const struct ron_errinfo *info);
/* The same for several (1..LEDGER_SUBMIT_MAX), which wake the pipeline once; `refused` is called
 * here for each that is not taken, before or after others are. Small ones that are prompt are
 * checked here, unless the service has checks of its own; `done` of some may be called, too. */
void ledger_submit_many(struct ledger_service *service, struct ledger_request *const *requests,
                        size_t requests_count, ledger_refused_fn *refused);

/* One per committed batch. */
struct ledger_root {
    uint64_t seq; /* last of the batch, and the size of the tree */
    uint64_t batch;
    uint64_t commit_ms;
    struct ron_sha256 root;
};
enum { LEDGER_ROOTS_RING = 1024 };

/* Reads, any thread, in every state: committed only. */
void ledger_read_balance(struct ledger_service *service, const struct ledger_id *account,
                         uint32_t asset, struct ledger_balance *ret_balance);
/* Up to LEDGER_BALANCES_MAX, for less than as many times the cost of one. */
void ledger_read_balances(struct ledger_service *service, struct ledger_balance_ask *asks,
                          size_t asks_count);
/* The name of an account that a committed entry speaks of; stays until the service is freed. Empty
 * if the state does not know it. */
struct ron_slice ledger_read_name(struct ledger_service *service, const struct ledger_id *account);
struct ledger_root ledger_read_head(struct ledger_service *service); /* seq 0 before the first */
/* Append the frame of a committed batch (core_frame.h): its entries, names, key, roots.
 * RON_ERR_NOT_FOUND beyond the head. */
enum ron_err ledger_read_batch(struct ledger_service *service, uint64_t batch, struct ron_buf *buf,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Roots with seq beyond `since`, ascending, at most roots_max; the caller goes on with the seq of
 * the last one. Reads the log where the ring no longer has them. */
enum ron_err ledger_read_roots(struct ledger_service *service, uint64_t since,
                               struct ledger_root *roots, size_t roots_max, size_t *ret_count,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Follow roots: struct ledger_root messages (rt/bus.h). Who is told of a loss reads on with
 * ledger_read_roots. Unsubscribe before the service is freed. */
enum ron_err ledger_follow_roots(struct ledger_service *service, const char *consumer,
                                 struct rt_bus_subscriber **ret_subscriber,
                                 struct ron_errinfo *reterr) RON_MUST_USE;

struct ledger_snapshot_health {
    uint64_t seq, batch; /* of the newest one, or of the one this start began with; 0: none */
    uint64_t size, rows; /* of the newest one that was taken */
    uint64_t taken_count, failed_count;
    uint64_t pause_ns, pause_ns_max; /* the pipeline stood still */
    uint64_t passed_over_count;      /* at start: damaged, foreign, not of this log */
    uint64_t ahead_count;            /* at start: beyond the log, which has lost something */
};

/* What the start did, and how long each part took. */
struct ledger_start_health {
    uint64_t load_ns;                     /* the snapshot, found and loaded */
    uint64_t recall_ns, recalled_entries; /* what it holds and the windows need, from the log */
    uint64_t replay_ns, replayed_entries; /* what came after it, done again */
    uint64_t follow_ns;                   /* the follower brought up to the head */
};

struct ledger_health {
    struct rt_life_status status;
    unsigned ready;           /* planes */
    uint64_t lag_ms;          /* age of the oldest batch that waits for its commit */
    uint32_t in_flight;       /* sequenced and not answered */
    uint32_t ingress, preval; /* depths */
    uint32_t parked;          /* waiting for checks from outside */
    uint64_t held_bytes;      /* in these and in the commit slots: at most 3 * queue_bytes_max, and
                               * the checks' own bound for what is parked */
    bool disk_pressure;
    struct ledger_root head;
    bool clean_start;                 /* the last owner stopped cleanly */
    uint64_t replayed_batches;        /* at start */
    struct ledger_start_health start; /* zeros until it is over */
    struct ledger_snapshot_health snapshots;
    struct ledger_damage damage; /* what SafeMode(damaged) is about, but for an operator's order */
    bool damage_marked;          /* on disk: a restart does not end SafeMode by itself */
    bool damage_over;            /* found before, and the log replays: may be acknowledged */
    bool follower_lost; /* heads and proofs stand still until the next start; see the log */
};
void ledger_read_health(struct ledger_service *service, struct ledger_health *ret_health);

#endif
