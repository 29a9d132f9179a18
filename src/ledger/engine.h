/*
 * engine.h - where batches are kept: the port of the storage engines.
 *
 * `memory` (amnesia: not one file) and `file`. The behaviour above is the same for both; only the
 * Committer's sink differs. Frames are numbered 1, 2, 3 ... like the batches in them.
 *
 * Who calls: recover, once, before anything else; append and wait, the Committer; durable and
 * reads, any thread; close, when nobody uses it any more. Errors of append:
 * RON_ERR_PERSISTENCE_FULL and RON_ERR_TIMEOUT changed nothing and may go better next time; any
 * other, and any of wait, is final: what was not durable before has an unknown fate.
 */
#ifndef RON_LEDGER_ENGINE_H
#define RON_LEDGER_ENGINE_H

#include "ledger/damage.h"
#include "rt/deadline.h"
#include "rt/lock_classes.h"

struct ledger_engine;
struct io_log_keys;

/* Takes one frame of the log. An error ends the reading and is passed on. */
typedef enum ron_err ledger_frame_fn(void *context, uint64_t number, struct ron_slice frame,
                                     struct ron_errinfo *reterr);

/* A place where a key was found: frame `number`, and what was told beside the key. */
typedef enum ron_err ledger_place_fn(void *context, uint64_t number, uint32_t sub, bool *ret_enough,
                                     struct ron_errinfo *reterr);

struct ledger_engine_ops {
    const char *name;
    enum ron_err (*recover)(struct ledger_engine *engine, uint64_t first, ledger_frame_fn *fn,
                            void *context, struct ron_errinfo *reterr);
    enum ron_err (*append)(struct ledger_engine *engine, const struct ron_slice *parts,
                           size_t parts_count, struct rt_deadline deadline, uint64_t *ret_number,
                           struct ron_errinfo *reterr);
    /* May be NULL: then `append` is asked for the first. */
    enum ron_err (*append_many)(struct ledger_engine *engine, const struct ron_slice *frames,
                                size_t frames_count, struct rt_deadline deadline, size_t *ret_count,
                                uint64_t *ret_number, struct ron_errinfo *reterr);
    enum ron_err (*wait)(struct ledger_engine *engine, uint64_t number, struct rt_deadline deadline,
                         struct ron_errinfo *reterr);
    /* NULL, all three: a wait is short. */
    enum ron_err (*wait_nudged)(struct ledger_engine *engine, uint64_t number, uint32_t seen,
                                struct rt_deadline deadline, struct ron_errinfo *reterr);
    uint32_t (*nudges)(struct ledger_engine *engine);
    void (*nudge)(struct ledger_engine *engine);
    uint64_t (*durable)(struct ledger_engine *engine);
    enum ron_err (*read)(struct ledger_engine *engine, uint64_t number, struct ron_buf *buf,
                         struct ron_errinfo *reterr);
    /* May be NULL: then `read` is asked for each. */
    enum ron_err (*read_each)(struct ledger_engine *engine, uint64_t first, uint64_t last,
                              ledger_frame_fn *fn, void *context, struct ron_errinfo *reterr);
    enum ron_err (*close)(struct ledger_engine *engine, struct rt_deadline deadline,
                          struct ron_errinfo *reterr);
    /* NULL, all three: no index. The core's windows then forget nothing and are full one day. */
    enum ron_err (*find)(struct ledger_engine *engine, const uint8_t key[16], uint64_t number_max,
                         ledger_place_fn *fn, void *context, struct ron_errinfo *reterr);
    enum ron_err (*may_have)(struct ledger_engine *engine, const struct io_log_keys *keys,
                             uint64_t number_max, uint64_t *ret_bits, struct ron_errinfo *reterr);
    uint64_t (*indexed)(struct ledger_engine *engine);
};

/* The head of every engine. */
struct ledger_engine {
    const struct ledger_engine_ops *ops;
    bool clean;                        /* the last owner closed it, or there was none */
    uint64_t unindexed_bytes;          /* found at birth beyond what `find` knows */
    struct ledger_damage_place damage; /* where recover answers RON_ERR_WAL_CORRUPT, if known */
};

/* Read every durable frame from `first` on, in order; the slice lives during the call.
 * RON_ERR_WAL_CORRUPT, after every frame that lies before the damage. */
enum ron_err ledger_engine_recover(struct ledger_engine *engine, uint64_t first,
                                   ledger_frame_fn *fn, void *context,
                                   struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Copies the frame, which is the parts one after the other; durable later, or at once. */
enum ron_err ledger_engine_append(struct ledger_engine *engine, const struct ron_slice *parts,
                                  size_t parts_count, struct rt_deadline deadline,
                                  uint64_t *ret_number,
                                  struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The same for several frames (at least one), which wake the disk's task once: appends as many from
 * the first on as there is room for, and at least one; the last of them is *ret_number. What
 * stopped it is the next call's to say. */
enum ron_err ledger_engine_append_many(struct ledger_engine *engine, const struct ron_slice *frames,
                                       size_t frames_count, struct rt_deadline deadline,
                                       size_t *ret_count, uint64_t *ret_number,
                                       struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Until `number` is durable. */
enum ron_err ledger_engine_wait(struct ledger_engine *engine, uint64_t number,
                                struct rt_deadline deadline,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The same, or until there was a nudge beyond those that the caller has seen: RON_ERR_OK, too. */
enum ron_err ledger_engine_wait_nudged(struct ledger_engine *engine, uint64_t number, uint32_t seen,
                                       struct rt_deadline deadline,
                                       struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
uint32_t ledger_engine_nudges(struct ledger_engine *engine);
void ledger_engine_nudge(struct ledger_engine *engine);       /* any thread */
uint64_t ledger_engine_durable(struct ledger_engine *engine); /* the last durable number */
/* Append the bytes of a durable frame. RON_ERR_NOT_FOUND; RON_ERR_PRUNED. */
enum ron_err ledger_engine_read(struct ledger_engine *engine, uint64_t number, struct ron_buf *buf,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Every place of a key (archive.h), and some of others that begin with the same 8 bytes: fn looks
 * at the frame. In the frames up to ledger_engine_indexed and, at least, up to
 * number_max, until fn has seen enough. Any error means that it is not known where the key is. */
enum ron_err ledger_engine_find(struct ledger_engine *engine, const uint8_t key[16],
                                uint64_t number_max, ledger_place_fn *fn, void *context,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Which of many keys it would look for: as io_log_may_have (io/log.h). */
enum ron_err ledger_engine_may_have(struct ledger_engine *engine, const struct io_log_keys *keys,
                                    uint64_t number_max, uint64_t *ret_bits,
                                    struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
uint64_t ledger_engine_indexed(struct ledger_engine *engine);
/* Durable frames first..last in order, faster than one by one; the slice lives during the call.
 * Fn's error ends it and is passed on. Close waits for it: few at a time. */
enum ron_err ledger_engine_read_each(struct ledger_engine *engine, uint64_t first, uint64_t last,
                                     ledger_frame_fn *fn, void *context,
                                     struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The log is whole and the state is known: the next start need not be in SafeMode. */
enum ron_err ledger_engine_close(struct ledger_engine *engine, struct rt_deadline deadline,
                                 struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* Frames in a durable log (io/log.h): one record each, synced in groups by the log's own task while
 * the Committer hashes the next ones. */
struct io_vfs;
struct rt_metrics;
enum {
    LEDGER_LOG_KIND = 0x47444c01, /* "\1LDG" */
    LEDGER_RECORD_BATCH = 1,      /* a frame (core_frame.h) */
};
struct ledger_engine_file_options {
    struct io_vfs *vfs; /* borrowed */
    const char *dir;    /* "ledger/log"; borrowed */
    uint64_t segment_bytes, ahead_bytes, cached_bytes;
    uint32_t group_bytes, record_bytes_max, linger_us; /* as io_log_options: 0 for its defaults */
    bool direct;
    struct rt_metrics *metrics; /* with io_log_metric_table; or NULL */
};
/* Open or make the log, repair a torn tail. Damage before the tail is no error here but of recover,
 * so that the role starts in SafeMode and can say where it is; what lies before it can be read, and
 * no byte of the log changes. RON_ERR_CONFLICT: another process
 * owns it; RON_ERR_VERSION_SKEW, RON_ERR_MALFORMED, RON_ERR_FORBIDDEN, RON_ERR_IO. */
enum ron_err ledger_engine_file_open(const struct ledger_engine_file_options *options,
                                     struct ledger_engine **ret_engine,
                                     struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Closed or not; not closed, the next start is unclean. Accepts NULL, returns NULL. */
struct ledger_engine *ledger_engine_file_free(struct ledger_engine *engine) RON_BLOCKS;

/* Frames in memory, at most size_max bytes of them and frames_max frames; beyond it
 * RON_ERR_PERSISTENCE_FULL. No index: ids and keys are known from the core's windows, which forget
 * nothing, so a ledger of more entries than its window answers RON_ERR_BUSY. Lives until freed,
 * also from one service to the next. */
struct ledger_engine_memory_options {
    uint64_t size_max;
    uint32_t frames_max;
};
enum ron_err ledger_engine_memory_new(const struct ledger_engine_memory_options *options,
                                      struct ledger_engine **ret_engine,
                                      struct ron_errinfo *reterr) RON_MUST_USE;
struct ledger_engine *ledger_engine_memory_free(struct ledger_engine *engine); /* NULL is ok */

#endif
