/*
 * snapshots.h - the state as a file, for a quick start: when one is taken, how, and how it is found
 * again. Private to the service's files.
 *
 * A cut needs a standstill: a marker travels to the Sequencer like a request; the Sequencer hands
 * the Committer a barrier and waits; the Committer finishes what is under way, so that both views
 * are equal and durable, and the Sequencer gives the core a shadow (core_shadow.h). Then both go
 * on: the pause is the barrier. (Where the shadow needs memory that was not used before, the marker
 * travels twice: the first one comes back with how much, and the Snapshotter has the system lend it
 * meanwhile.) The Sequencer copies a part of the state in each turn; when the
 * shadow is whole it answers the marker. The Snapshotter writes state, rows and state root from it
 * into files (io/snapshot_file.h), at its leisure, and hands in Anchor{stream "state", ref
 * "<seq>"}.
 *
 * The file holds no windows: at start the log gives back what its indexes do not know.
 */
#ifndef RON_LEDGER_SNAPSHOTS_H
#define RON_LEDGER_SNAPSHOTS_H

#include "ledger/core_shadow.h"
#include "ledger/core_snapshot.h"
#include "ledger/port.h"
#include "rt/atomic.h"
#include "rt/lock.h"
#include "rt/task.h"
#include "rt/watch.h"

struct snapshots {
    struct rt_task *task; /* NULL: none are taken */
    struct rt_watch *wake;
    struct rt_atomic_u64 wanted_count; /* asked for by ledger_service_snapshot */
    struct rt_watch *finished;         /* u64: how many of those were served */
    struct ledger_request marker;      /* Snapshotter; on its way: the Sequencer's */
    struct ledger_request anchor;      /* the Snapshotter's, likewise */
    struct rt_watch *answered;         /* u64: how often marker or anchor was answered */
    struct ledger_request barrier;     /* to the Committer */
    struct rt_watch *cuts;             /* u64: how many barriers came there; Committer */
    struct ledger_root cut;            /* Committer at the barrier: where it is made */
    uint64_t cut_durable;
    struct ledger_shadow *shadow;   /* the Sequencer's while it copies, else the Snapshotter's */
    struct ledger_shadow *spare;    /* the last one, for the next cut; the same owners */
    bool asks_room;                 /* the marker asks first whether that one will do; the same */
    struct ledger_shadow_room room; /* if not: what would, and asks_room stays */
    struct ron_errinfo cut_info;    /* why there is none */
    struct rt_atomic_u64 cut_seq;   /* nothing but our own Anchor came since the last one */
    struct rt_atomic_u32 told;      /* Committer: enough entries, and the Snapshotter knows */
    struct ledger_snapshot_health health; /* Snapshotter; recovery before it */
    struct rt_lock lock;
    struct ledger_snapshot_health published RON_GUARDED_BY(storage); /* the same for readers */
    struct ron_errinfo end RON_GUARDED_BY(storage); /* what came of the newest one */
};

struct ledger_service;
enum ron_err snapshots_init(struct ledger_service *service,
                            struct ron_errinfo *reterr) RON_MUST_USE;
void snapshots_fini(struct ledger_service *service);
rt_task_fn snapshots_run;

/* Sequencer: the marker has come. True: snapshots_copy must follow, turn by turn, until that is
 * true or snapshots_drop; then, or if this is false, the marker is answered. */
bool snapshots_begin(struct ledger_service *service) RON_MUST_USE RON_BLOCKS;
bool snapshots_copy(struct ledger_service *service) RON_MUST_USE;
void snapshots_drop(struct ledger_service *service);
/* Committer, at the barrier: everything is durable and committed (else `broken`). */
void snapshots_cut(struct ledger_service *service, bool broken);
/* Committer: something was committed. */
void snapshots_note(struct ledger_service *service);

/* Snapshotter, and recovery before it: let readers see health, and what came of the last one. */
void snapshots_publish(struct ledger_service *service, const struct ron_errinfo *end);
/* Any thread. */
struct ledger_snapshot_health snapshots_health(struct ledger_service *service,
                                               struct ron_errinfo *ret_end);

/* Sequencer, before it replays: the newest usable one into the core. cut.batch 0: there is none,
 * and the core is as new. RON_ERR_NO_MEMORY. */
enum ron_err snapshots_load(struct ledger_service *service, struct ledger_root *ret_cut,
                            struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
