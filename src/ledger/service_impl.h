/*
 * service_impl.h - the pipeline's state, by owner. Private to the service's files.
 * tidy: long file because the state is read best in one piece.
 *
 * Each part has one writer, named below. Requests travel as pointers; whoever holds one answers it
 * or hands it on. Between Sequencer and Committer there are two counts that never fall: slots taken
 * (the Sequencer's) and slots returned (the Committer's).
 */
#ifndef RON_LEDGER_SERVICE_IMPL_H
#define RON_LEDGER_SERVICE_IMPL_H

#include "base/assert.h"
#include "ledger/archive.h"
#include "ledger/core_batch.h"
#include "ledger/core_frame.h"
#include "ledger/service.h"
#include "ledger/service_metrics.h"
#include "ledger/snapshots.h"
#include "rt/atomic.h"
#include "rt/bus.h"
#include "rt/health.h"
#include "rt/lock.h"
#include "rt/queue.h"
#include "rt/supervisor.h"

#define SERVICE_MAGIC 0x1ed95e4cu

/* A larger request is work enough by itself: it neither waits for others nor makes them wait. */
enum { LIGHT_SIZE = 4096 };
enum { LEDGER_SNAPSHOT_KIND = 0x53444c01, /* "\1LDS" */ LEDGER_SNAPSHOT_VERSION = 2 };

/* The role's own causes (rt/ready.h). */
enum {
    CAUSE_STARTING = RT_CAUSE_OWN,
    CAUSE_COMMIT_HIGH, /* commit slots ran out: not ready, but nothing is refused beforehand */
    CAUSE_NO_PREVALIDATORS,
    CAUSE_DISK_FULL, /* closes nothing: only the next request can find out whether it still is */
    CAUSE_BREAKER,   /* and one more for each further check (enum ledger_check_port) */
};

struct ledger_slot {
    struct ledger_batch batch;
    uint32_t class_index;
};

/* Slots of one size, returned in the order they were taken: so a count tells which came back. */
struct slot_class {
    struct ledger_slot_class options;
    struct ledger_slot *slots;
    /* Sequencer: */
    uint32_t *free; /* places; what came back last is taken first: it is in the cache */
    uint32_t free_count;
    uint32_t *taken; /* a ring: the places of the others, in the order they were taken */
    uint32_t taken_first, taken_end;
    uint32_t regained_count;             /* of those returned, ever */
    struct rt_atomic_u32 returned_count; /* Committer */
};

struct slots {
    struct slot_class classes[LEDGER_SLOT_CLASSES_MAX];
    uint32_t count_max;
    uint64_t bytes_max;
    struct rt_atomic_u64 taken_count, taken_bytes;       /* Sequencer */
    struct rt_atomic_u64 returned_count, returned_bytes; /* Committer */
    struct rt_atomic_u64 *taken_ns;                      /* of slot n at n % count_max; Sequencer */
};

struct prevalidator {
    struct ledger_service *service;
    struct rt_task *task;
    char name[24];
};

struct sequencer {
    struct rt_task *task;
    struct ledger_request *window[LEDGER_WINDOW_MAX];
    struct rt_queue_item outbox[LEDGER_WINDOW_MAX]; /* of the window: applied, not sent on yet */
    size_t outbox_count;
    uint64_t now_ns, now_ms; /* looked up for a window, and after each large request */
    uint64_t commit_ms_last;
    bool copying; /* a snapshot was cut and is not whole */
    struct ledger_request expire;
    struct rt_atomic_u32 expire_busy; /* it is under way */
    struct rt_atomic_u64 replayed_count;
};

enum commit_mode {
    COMMIT_OPEN,
    COMMIT_FULL,   /* no room: everything is answered so until the Sequencer has been told */
    COMMIT_BROKEN, /* an append or sync failed for good */
};

enum {
    COMMIT_GROUP_MAX = 128,
    COMMIT_LEAVES_MAX = 256,
    COMMIT_LOOK_MS = 2, /* while an append waits for room: is anything durable? */
    /* Frames of so many bytes are appended from where their parts lie: to put them together first
     * would be to read and write all of it once more. */
    COMMIT_FRAME_SIZE = 256 * 1024,
    RUN_ENTRIES_MAX =
        16, /* of a batch that is sealed and told with others: larger ones gain nothing */
};

struct committer {
    struct rt_task *task;
    enum commit_mode mode;
    struct ledger_request **flight; /* sealed and appended, in order; ring of slots' count_max */
    uint32_t flight_first, flight_count, flight_max;
    struct rt_atomic_u64 held; /* flight_count, for the commit queue's figures: a slot is a place */
    struct ledger_request **inbox; /* flight_max */
    uint8_t *frame;                /* COMMIT_FRAME_SIZE: a small frame, or a run of them */
    struct ron_slice frames[COMMIT_GROUP_MAX];
    struct ledger_frame_parts parts; /* a large one */
    uint64_t index_last;             /* appended */
    uint64_t awaited;                /* the first of the flight, since its wait began */
    struct rt_deadline awaited_until;
    uint64_t seq_last; /* sealed */
    /* Slots that a rollback gives back. */
    uint32_t held_count[LEDGER_SLOT_CLASSES_MAX];
    uint64_t held_slots, held_bytes;
    struct ledger_request *group[COMMIT_GROUP_MAX]; /* durable, on their way out */
    struct ledger_root group_roots[COMMIT_GROUP_MAX];
    uint32_t group_roots_count;
    struct ron_sha256 leaves[COMMIT_LEAVES_MAX]; /* of the group, not told to the follower yet */
    uint64_t leaves_start;
    uint32_t leaves_count;
};

struct roots {
    struct rt_task *task;
    struct rt_bus *bus;
    struct rt_bus_subscriber *subscriber; /* the publisher's own */
    struct rt_watch *head;                /* Committer */
    struct rt_atomic_u64 told_seq;        /* of the last head the follower signed */
    struct rt_lock lock;
    uint32_t ring_max;
    struct ledger_root *ring;                    /* the lock's; of batch b at b % ring_max */
    uint64_t ring_first RON_GUARDED_BY(storage); /* batches */
    uint64_t ring_last RON_GUARDED_BY(storage);
};

struct ledger_service {
    uint32_t magic;
    struct ledger_service_options options;
    size_t frame_size_max; /* of the largest frame that the largest slot can become */
    struct ledger_core *core;
    struct ledger_engine *engine;
    struct ledger_store *store; /* NULL: the archive is another's, or there is none */
    struct rt_supervisor *supervisor;
    struct rt_life_role role;
    struct rt_lifecycle *lifecycle;
    struct rt_health health;
    struct ledger_metrics metrics;
    struct rt_queue *ingress, *preval, *commit;
    struct slots slots;
    struct prevalidator *prevalidators;
    struct rt_task *checks_task; /* NULL: no remote checks */
    struct checker {
        struct ledger_service *service;
        enum ledger_check_port port;
        char name[24];
        struct rt_task *task; /* NULL: not remote */
    } checkers[LEDGER_CHECK__COUNT];
    struct sequencer sequencer;
    struct committer committer;
    struct roots roots;
    struct snapshots snapshots;
    struct rt_atomic_ptr view;  /* the core, once what it holds was committed: for readers */
    struct rt_watch *started;   /* bool: recovery is over */
    struct rt_watch *rollbacks; /* u64: how many there were; Committer */
    struct ledger_request barrier;
    struct rt_atomic_u32 rollback_wanted; /* Committer: apply nothing more before the barrier */
    struct rt_atomic_u32 broken;          /* write nothing more */
    struct rt_atomic_u32 prevalidators_down;
    struct rt_atomic_u32 slots_short; /* CAUSE_COMMIT_HIGH was raised, and not taken back */
    struct rt_atomic_u32 disk_pressure;
    struct rt_atomic_u32 follower_lost; /* it failed: told nothing more */
    bool clean_start;
    struct ledger_start_health start; /* Sequencer, before `started` */
    struct rt_atomic_u32 damaged;     /* service_safe.c: `damage` is written once and stays */
    struct ledger_damage damage;
    struct rt_atomic_u32 marked;  /* likewise: `mark`, found at start */
    struct ledger_damage mark;    /* Sequencer */
    struct rt_atomic_u32 marking; /* what this service found */
};

/* service.c */
/* The one way out for a request: fill its outcome and call done. */
void request_answer(struct ledger_service *service, struct ledger_request *request,
                    enum ron_err err, const struct ron_errinfo *info);
/* As above with a message made of err and text. */
void request_refuse(struct ledger_service *service, struct ledger_request *request,
                    enum ron_err err, const char *text);
/* The request enters a stage: the span of the one before ends well, one with this name begins. The
 * seed's four; each holds the time in the queue before it but the prevalidator's, whose queue is
 * the ingress. */
void request_enter(struct ledger_service *service, struct ledger_request *request,
                   const char *stage);
/* The span of the stage it is in ends, if there is one. */
void request_leave(struct ledger_service *service, struct ledger_request *request, bool failed);
/* Answer everything that waits in the queue. */
void queue_sweep(struct ledger_service *service, struct rt_queue *queue, enum ron_err err,
                 const char *text);
/* Any thread: does the oldest batch wait too long for its sync? Refused for want of a slot or for
 * that: not ready. Four fifths of the slots free again, and not behind: ready. */
bool service_is_behind(const struct ledger_service *service, uint64_t now_ns);
void service_tell_pressure(struct ledger_service *service);
void service_check_pressure(struct ledger_service *service);

/* service_drain.c */
extern const struct rt_life_role service_life_role;

/* service_safe.c */
/* What was written may be wrong: SafeMode(damaged), with the reason kept for health. */
void service_break(struct ledger_service *service, const struct ron_errinfo *info);
/* Then, where a restart alone must not end it: keep that on disk. A drain that is cut short breaks,
 * too, and is not marked: the log is whole. */
void service_mark(struct ledger_service *service) RON_BLOCKS;
/* The Sequencer's timer, and the stop: once more, where it was tried and could not be written. */
void service_mark_again(struct ledger_service *service) RON_BLOCKS;
/* Sequencer, before it replays: was damage found before, and not acknowledged? Then SafeMode. */
void service_recall_mark(struct ledger_service *service) RON_BLOCKS;
/* Sequencer, Committer: has the archive failed to answer? Then SafeMode(damaged), with its reason.
 */
bool service_check_archive(struct ledger_service *service) RON_BLOCKS;
/* Then nothing is written, not even by the service itself. */
bool service_is_safe(struct ledger_service *service);
/* Metrics and spans say what the lifecycle says: after every change of it. */
void service_show_safe(struct ledger_service *service);
void service_get_damage(struct ledger_service *service, struct ledger_health *health);

/* recovery.c */
/* Sequencer, once: read the log into the core; say how it went. What cannot be read leaves the role
 * in SafeMode with everything up to there to be read. */
void recovery_run(struct rt_task *task, struct ledger_service *service) RON_BLOCKS;

/* slots.c */
enum ron_err slots_init(struct slots *slots, const struct ledger_service_options *options,
                        struct ron_errinfo *reterr) RON_MUST_USE;
void slots_fini(struct slots *slots); /* accepts a zeroed one */
/* Any thread: is there a slot, free or not, that the request fits into? */
bool slots_fit(const struct slots *slots, const struct ledger_request *request);
/* Sequencer. NULL: none is free that the request fits into. Looks only; takes nothing. */
struct ledger_slot *slots_find(struct slots *slots, const struct ledger_request *request);
/* Sequencer. The slot found, or none for a repetition: a place in the pipeline all the same. */
void slots_take(struct slots *slots, struct ledger_request *request, struct ledger_slot *slot,
                uint64_t now_ns);
/* Committer, in the order they were taken. class_index LEDGER_SLOT_CLASSES_MAX: without batch. */
void slots_return(struct slots *slots, uint32_t class_index, uint64_t bytes);
uint32_t slots_in_flight(const struct slots *slots);
uint64_t slots_bytes(const struct slots *slots); /* of what is in flight */
uint64_t slots_lag_ns(const struct slots *slots, uint64_t now_ns);

/* order.c. Prevalidator, while the entries are near: the first with a nonce, for the account and
 * the nonce that its request waits for. */
void request_find_lane(struct ledger_request *request);
/* Sequencer. Their lanes are found. */
void requests_order(struct ledger_request **window, size_t count);

/* The tasks. */
rt_task_fn prevalidator_run, sequencer_run, committer_run, roots_run;
/* prevalidator.c: a parked request has its answer; on the task of a port (checks.h). */
ledger_asked_fn prevalidator_resume;
/* prevalidator.c, any thread: what a prevalidator does, for requests that wait for nobody; they go
 * on to the Sequencer or are answered. */
bool prevalidator_may_check_here(const struct ledger_service *service,
                                 const struct ledger_request *request);
void prevalidator_check_here(struct ledger_service *service, struct ledger_request *const *requests,
                             size_t requests_count, ledger_refused_fn *refused);
/* ingress.c: the stop came between admission and here: it was not taken after all. */
void ingress_turn_away(struct ledger_service *service, struct ledger_request *request,
                       ledger_refused_fn *refused);
/* A prevalidator gave up. */
void ingress_check_prevalidators(struct ledger_service *service);

/* roots.c */
enum ron_err roots_init(struct ledger_service *service, struct ron_errinfo *reterr) RON_MUST_USE;
void roots_fini(struct ledger_service *service);
void roots_publish(struct ledger_service *service, const struct ledger_root *roots,
                   size_t roots_count);                                              /* Committer */
void roots_replayed(struct ledger_service *service, const struct ledger_root *root); /* recovery */

/* The first batch that ends beyond seq since; last + 1 if there is none up to `last`. buf is
 * scratch.
 */
enum ron_err roots_find_batch(struct ledger_service *service, uint64_t since, uint64_t last,
                              struct ron_buf *buf, uint64_t *ret_batch,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

static inline uint32_t request_weight(const struct ledger_request *request)
{
    return request->size > 0 ? request->size : 1;
}

#endif
