/*
 * service.h - the ledger's pipeline: its making, its start, its end. What it does for others is
 * port.h; the design is README.md.
 *
 *     ledger_submit -> ingress -> prevalidators -> preval -> sequencer -> commit -> committer ->
 * roots
 */
#ifndef RON_LEDGER_SERVICE_H
#define RON_LEDGER_SERVICE_H

#include "ledger/checks.h"
#include "ledger/engine.h"
#include "ledger/port.h"
#include "rt/log.h"
#include "rt/metrics.h"
#include "rt/span.h"

/* Asked of every command whose shape is right, on a prevalidator: policy, and whatever else must be
 * known before sequencing. RON_ERR_OK, or what the caller is answered. May block, within the
 * request's deadline, and may panic: the caller is answered all the same. */
typedef enum ron_err ledger_check_fn(void *context, const struct ledger_request *request,
                                     struct ron_errinfo *reterr);

/* Who is told of every committed batch, in order: after the sync, before its root is published and
 * its caller answered. All functions (but recall) or none. They may block. An error of extend,
 * settle or keep is logged, and the follower left alone from then on: it does not stop the ledger.
 */
struct ledger_follower {
    void *context;
    /* The Committer; the Sequencer for every batch that it replays or reads again. hashes are those
     * of the leaves, nodes NULL or what they completed (io_tlog_append); both live during the
     * call. What the follower has is given again. */
    enum ron_err (*extend)(void *context, uint64_t seq_start, const struct ron_sha256 *hashes,
                           size_t hashes_count, const struct ron_sha256 *nodes,
                           struct ron_errinfo *reterr);
    uint64_t (*size)(void *context); /* leaves that it has; what is beyond is given to it */
    /* The Sequencer, when recovery has given everything: this is the log's head. A follower that
     * has something else than the log empties itself, and is given everything. */
    enum ron_err (*settle)(void *context, const struct ledger_root *head,
                           struct ron_errinfo *reterr);
    /* The RootsPublisher, after every group, newest only (and the Sequencer when recovery ends):
     * everything up to here is committed. After an error it is called again in LEDGER_KEEP_MS. */
    enum ron_err (*head)(void *context, const struct ledger_root *root, struct ron_errinfo *reterr);
    /* The RootsPublisher: some time after a head (LEDGER_KEEP_MS), or once so many entries more
     * were told (keep_entries, if it is not 0); durable when recovery ends and at the end. */
    enum ron_err (*keep)(void *context, bool sync, struct ron_errinfo *reterr);
    /* Nothing more will be told: nobody need wait for it. Any task; may come twice. */
    void (*end)(void *context);
    /* The Sequencer, instead of settle, when the log is damaged: nothing more will be told, but
     * what was made before may be read. May be NULL. */
    enum ron_err (*recall)(void *context, struct ron_errinfo *reterr);
    uint64_t keep_entries; /* see `keep` */
};
enum { LEDGER_KEEP_MS = 250 };

/* When the state is written to a file for a quick start (snapshots.h): `entries` after the last
 * one, but not before a rest of four times what that took (at most a minute), or `ms` after it if
 * there is anything new; never two within min_ms. 0: not for that reason. */
struct io_vfs;
struct ledger_snapshot_options {
    struct io_vfs *vfs;   /* borrowed; NULL: none are taken or used */
    const char *dir;      /* "ledger/snapshots"; borrowed */
    const char *rows_dir; /* "ledger/state": the rows of the root (state_rows.h); NULL: none kept */
    uint64_t entries;
    uint64_t ms, min_ms;
    uint32_t write_ms_max; /* one that takes longer is given up */
    uint32_t copy_max;     /* chunks (core_shadow.h) that one turn of the Sequencer copies */
    /* Before one gets its name: what was derived up to this seq must be durable. NULL: nothing. */
    enum ron_err (*before)(void *context, uint64_t seq, struct ron_errinfo *reterr);
    void *before_context;
};

/* Where damage is marked, so that a restart alone does not end SafeMode (damage.h). */
struct ledger_damage_options {
    struct io_vfs *vfs; /* borrowed; NULL: nowhere */
    const char *path;   /* "ledger/damaged"; borrowed */
};

/* Batches by size: a command takes the smallest free one that it fits. */
struct ledger_slot_class {
    uint32_t entries_max; /* 2..LEDGER_BATCH_ENTRIES_MAX */
    uint32_t ext_max;     /* from LEDGER_EXT_SIZE_MAX on */
    uint32_t count;       /* 0: no such class */
};
enum { LEDGER_SLOT_CLASSES_MAX = 3, LEDGER_PREVALIDATORS_MAX = 64, LEDGER_WINDOW_MAX = 64 };

struct ledger_service_options {
    struct ledger_capacity capacity; /* pending_max is set from commit_max */
    struct ledger_archive archive;   /* empty: the engine's own, if it has an index (archive.h) */
    struct ledger_engine *engine;    /* borrowed; nobody else uses it meanwhile */
    uint32_t prevalidators_count;    /* 1..LEDGER_PREVALIDATORS_MAX */
    uint32_t ingress_max, preval_max, commit_max;
    uint64_t queue_bytes_max; /* of each of the three */
    uint32_t window_max;      /* requests ordered together, 1..LEDGER_WINDOW_MAX */
    uint32_t linger_us;       /* the Committer waits so long for more; <= 2000 */
    uint32_t expire_ms;       /* between two looks for expired holds; 0: never */
    uint32_t lag_ms_max;      /* of the Committer, beyond which nothing is admitted; 0: any */
    uint32_t sync_ms_max;     /* a sync that takes longer has failed */
    uint32_t drain_ms;
    uint32_t roots_max; /* newest ones kept for readers, and what a follower may be behind */
    struct ledger_slot_class
        classes[LEDGER_SLOT_CLASSES_MAX]; /* rising; the first has commit_max */
    ledger_check_fn *check;               /* NULL: none */
    void *check_context;
    struct ledger_checks *checks; /* asked after it; NULL: none; borrowed, of this service alone */
    struct ledger_follower follower; /* extend NULL: nobody */
    struct ledger_snapshot_options snapshot;
    struct ledger_damage_options damage;
    struct rt_spans *spans;     /* NULL: none; of requests whose trace is on */
    struct rt_metrics *metrics; /* NULL: none; with ledger_metric_table and rt_metric_table */
    struct rt_log *log;         /* NULL: none */
};
/* The seed's numbers: 2000, 2000, 1000, 64 MiB, 3 s; max(2, cpus / 2) prevalidators. Windows of 4
 * Mi entries and keys, 1 Mi replies. Snapshots, once they have a vfs: after 1 Mi entries or a
 * minute. The engine is the caller's to set. */
struct ledger_service_options ledger_service_defaults(uint32_t accounts_max, uint32_t cpus_count);

/* Made whole, nothing runs. RON_ERR_NO_MEMORY, RON_ERR_BUSY (registry full). The caller owns it.
 * Born SafeMode(recovering) if the engine was not closed, else Running but `starting`. */
enum ron_err ledger_service_new(const struct ledger_service_options *options,
                                struct ledger_service **ret_service,
                                struct ron_errinfo *reterr) RON_MUST_USE;
/* Spawn the tasks; recovery is the Sequencer's first act and ends `starting` or `recovering` by
 * itself. On failure it must be stopped all the same. */
enum ron_err ledger_service_start(struct ledger_service *service,
                                  struct ron_errinfo *reterr) RON_MUST_USE;
/* Drain: ingress, prevalidators, sequencer, committer, final root; every caller is answered.
 * RON_ERR_TIMEOUT: it had to abort. RON_ERR_TIMEOUT and tasks_leaked: do not free. */
enum ron_err ledger_service_stop(struct ledger_service *service, struct rt_life_report *ret_report,
                                 struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Stopped, or never started. Accepts NULL, returns NULL. */
struct ledger_service *ledger_service_free(struct ledger_service *service);

struct rt_lifecycle *ledger_service_lifecycle(struct ledger_service *service);
struct rt_supervisor *ledger_service_supervisor(struct ledger_service *service);
/* Wait until recovery is over, well or badly. RON_ERR_TIMEOUT. */
enum ron_err ledger_service_await_start(struct ledger_service *service, struct rt_deadline deadline,
                                        struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Take a snapshot now, whenever the last one was; its Anchor is committed when this returns OK.
 * RON_ERR_NOT_READY: this ledger takes none; RON_ERR_NOT_FOUND: nothing was committed yet;
 * RON_ERR_TIMEOUT: it goes on; RON_ERR_CANCELED, RON_ERR_DRAINING; errors of file and copy. */
enum ron_err ledger_service_snapshot(struct ledger_service *service, struct rt_deadline deadline,
                                     struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The rows of a snapshot's state up to this batch (state_rows.h), newest first. RON_ERR_NOT_READY:
 * this ledger keeps none. */
struct ledger_rows;
enum ron_err ledger_service_rows(struct ledger_service *service, uint64_t batch_max,
                                 struct ledger_rows **ret_rows,
                                 struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Frames of committed batches first..last, in order, as ledger_engine_read_each; any thread.
 * RON_ERR_NOT_FOUND beyond the head. */
enum ron_err ledger_service_read_each(struct ledger_service *service, uint64_t first, uint64_t last,
                                      ledger_frame_fn *fn, void *context,
                                      struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Any thread, once the start is over. An entry by its id, in two questions: up to seq_max, which is
 * in the log, as ledger_core_seq_of (core_ids.h); when that has no more, as ledger_archive_entry.
 */
uint64_t ledger_service_seq_of(struct ledger_service *service, const struct ledger_id *id,
                               uint64_t seq_max, uint64_t below);
struct ledger_frame;
enum ron_err ledger_service_archived(struct ledger_service *service, const struct ledger_id *id,
                                     struct ron_buf *buf, struct ledger_frame *ret_frame,
                                     uint64_t *ret_seq,
                                     struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* An operator's word that damage found before is dealt with: its mark is removed and SafeMode left.
 * RON_ERR_CONFLICT: the log does not replay clean; RON_ERR_NOT_FOUND: there is none;
 * RON_ERR_NOT_READY: replay is not over; errors of the file, and then it stands. */
enum ron_err ledger_service_acknowledge(struct ledger_service *service,
                                        struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Enter SafeMode, or leave it. RON_ERR_CONFLICT: there is damage; acknowledge that. Any thread. */
enum ron_err ledger_service_set_safe(struct ledger_service *service, bool on,
                                     struct ron_errinfo *reterr) RON_MUST_USE;
/* Run the prevalidators again that gave up. */
enum ron_err ledger_service_revive(struct ledger_service *service,
                                   struct ron_errinfo *reterr) RON_MUST_USE;

#endif
