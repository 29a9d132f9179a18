/*
 * log_impl.h - the inside of a log, shared by its files. Read this first, after log.h.
 * tidy: long file because the state is read best in one piece.
 *
 * Who does what: appenders copy into the open group (log_append.c), small records under the lock;
 * `log-writer` (log_writer.c) takes it, ends it with its link, writes and syncs it without the
 * lock; the first pages of a large one are written before its end is known, by whoever fills it
 * (log_early.c); `log-ahead` (log_ahead.c) writes zeros in front of it and makes the next segment's
 * file; `log-index` (log_index.c) builds the index of sealed ones, from keys that the writer has
 * collected (log_collect.c), and gates for many of these (log_gate.c). Each has file handles of its
 * own. Everything they agree on is under the lock.
 *
 * Where an append goes is decided by the *place*: the segment and offset behind the last group that
 * was closed, and how far zeros are durable there. A group lies in one segment; the first one that
 * does not fit goes to the next (in_next), whose file `ahead-<number>` must be ready by then: the
 * writer seals the old segment, gives the new one its head and its name, and writes the group.
 */
#ifndef RON_IO_LOG_IMPL_H
#define RON_IO_LOG_IMPL_H

#include "io/log.h"
#include "io/log_collect.h"
#include "io/log_gate.h"
#include "io/log_index.h"
#include "io/log_metrics.h"
#include "io/log_owner.h"
#include "io/log_room.h"
#include "io/log_starts.h"
#include "io/log_walk.h"
#include "io/segment_index.h"
#include "rt/atomic.h"
#include "rt/bucket.h"
#include "rt/lock.h"
#include "rt/supervisor.h"

enum {
    LOG_SEGMENT_BYTES_MIN = 8 << 10,
    LOG_SEGMENT_BYTES_MAX = 1 << 30,
    LOG_SEGMENTS_MAX = 1 << 15,
    LOG_PAGE = IO_DIRECT_SIZE,
    LOG_EARLY_BYTES = 128 << 10,     /* unless said otherwise */
    LOG_ZEROS_CHUNK = 2 << 20,       /* written and synced at once */
    LOG_FULL_RETRY_MS = 250,         /* a full disk is asked again */
    LOG_FIRST_ZEROS = 256 << 10,     /* before open returns */
    LOG_DIR_SIZE = IO_PATH_MAX - 31, /* its longest file name still fits a path */
};

enum log_file_kind { LOG_FILE_SEGMENT, LOG_FILE_INDEX, LOG_FILE_AHEAD, LOG_FILE_OWNER };

struct log_segment {
    uint64_t number;
    uint64_t first_index;
    struct io_link link; /* before it */
    bool sealed;
    uint64_t last_index; /* of a sealed one, as what follows */
    uint64_t sealed_size;
    struct io_link last_link;
    struct io_index *index;        /* NULL until it is built */
    struct io_index *retired;      /* was damaged; closed when nobody pins the segment */
    bool rebuilding;               /* somebody builds a new one */
    struct log_gate *gate;         /* asked in place of the index's filter; NULL: none */
    struct io_index_builder *keys; /* of a sealed one, for its index; NULL: it is to be read */
    struct log_starts starts;
    uint32_t pins_count; /* calls that use `index` or the file now */
};

struct log_group {
    uint8_t *bytes; /* frames, in the log's room */
    uint32_t chunk; /* of it */
    size_t size;
    size_t written_size; /* of them, before it was closed: a whole number of pages of the file */
    uint64_t offset;     /* in its segment */
    uint64_t first_index, records_count;
    uint64_t opened_ns;
    bool in_next; /* starts a new segment */
    bool full;    /* takes no more */
    struct io_heads heads;
};

struct io_log {
    struct rt_lock lock;
    /* Fixed at birth. */
    struct io_log_options options;
    char dir[LOG_DIR_SIZE];
    uint64_t segment_bytes, ahead_bytes, cached_bytes;
    uint64_t ahead_piece; /* zeros are written when so many lack */
    uint32_t group_bytes, record_bytes_max, early_bytes;
    size_t buffer_size; /* of the largest group */
    bool direct;        /* groups and zeros go past the system's cache */
    uint32_t epoch;
    uint8_t log_id[16];
    uint32_t salt; /* of the log id */
    struct io_gate_seed gate_seed;
    bool damaged; /* open for what is before the damage */
    struct ron_errinfo damage_info;
    struct log_owner owner;
    struct io_log_metrics metrics;
    struct rt_task *writer, *ahead, *indexer;

    struct rt_cond work_cond;    /* the writer waits for a group */
    struct rt_cond room_cond;    /* appenders wait for room */
    struct rt_cond durable_cond; /* waiters */
    struct rt_cond ahead_cond;   /* the ahead task waits for need of it */
    struct rt_cond index_cond;   /* the indexer waits for a sealed segment */

    struct log_group groups[2] RON_GUARDED_BY(storage);
    struct log_room room RON_GUARDED_BY(storage);
    struct log_group *open RON_GUARDED_BY(storage);    /* filling */
    struct log_group *writing RON_GUARDED_BY(storage); /* the writer's; NULL: the disk is idle */
    bool filling RON_GUARDED_BY(storage);              /* somebody fills `open` without the lock */
    uint64_t next_index RON_GUARDED_BY(storage);       /* of the next append */
    uint64_t place_number RON_GUARDED_BY(storage);     /* segment behind the last closed group */
    uint64_t place_offset RON_GUARDED_BY(storage);
    uint64_t place_zeroed RON_GUARDED_BY(storage);     /* zeros are durable up to here */
    uint64_t next_zeroed RON_GUARDED_BY(storage);      /* in the file ahead; 0: not ready */
    struct log_segment *spare RON_GUARDED_BY(storage); /* for the segment after place_number */
    bool zeros_wanted RON_GUARDED_BY(storage);         /* an append was refused for lack of them */
    bool disk_full RON_GUARDED_BY(storage);            /* zeros could not be written */
    uint32_t waiters_count RON_GUARDED_BY(storage);    /* for durability: a group need not linger */
    uint32_t inside_count RON_GUARDED_BY(storage);     /* calls that sleep: close waits for them */
    bool closing RON_GUARDED_BY(storage);
    bool stopped RON_GUARDED_BY(storage); /* the writer has ended */
    bool broken RON_GUARDED_BY(storage);
    struct ron_errinfo broken_info RON_GUARDED_BY(storage);
    struct rt_atomic_u64 durable_index; /* changed by the writer, under the lock */
    /* Each side changes its own before it looks at the other's: no nudge is missed. */
    struct rt_atomic_u32 nudges;    /* so far */
    struct rt_atomic_u32 nudgeable; /* waiters that a nudge wakes */
    struct rt_atomic_u64 first_index;

    struct log_segment **segments RON_GUARDED_BY(storage); /* by number, the last is written to */
    uint32_t segments_count RON_GUARDED_BY(storage);
    uint32_t segments_capacity RON_GUARDED_BY(storage);
    struct io_log_stats stats RON_GUARDED_BY(storage);
    struct io_index_builder *builders[LOG_BUILDERS] RON_GUARDED_BY(storage); /* not used now */
    uint32_t builders_count RON_GUARDED_BY(storage);
    uint32_t collected_count RON_GUARDED_BY(storage); /* segments that have keys, or get them */

    /* The writer's own. */
    struct io_file *file; /* of the segment it writes */
    struct log_end end;
    uint64_t file_number;
    uint8_t *pages; /* two: the file's last one begins with what is written of it */
    struct io_index_builder *collecting; /* of its segment; NULL: nothing */
    /* Of whoever fills the open group. */
    struct io_file *early_file;
    uint64_t early_number; /* of its segment */
    /* The ahead task's own. */
    struct io_file *ahead_file;
    uint64_t ahead_number, ahead_size; /* of it; zeroed and durable */
    uint8_t *zeros;
    size_t zeros_size;
    void *zeros_memory, *pages_memory; /* of zeros and pages, which are aligned */
    struct rt_bucket bucket;
    uint64_t cold_number, cold_offset; /* what was before it was let go */
    uint64_t warm_bytes;               /* from there to the last zeros */
    /* The indexer's own. */
    struct rt_deadline index_retry;
    struct log_index_work index_work;
    struct log_gate_work gate_work;
};

static inline void log_lock(struct io_log *log) RON_LOCKS(storage)
{
    rt_lock_take(&log->lock);
}
static inline void log_unlock(struct io_log *log) RON_UNLOCKS(storage)
{
    rt_lock_drop(&log->lock);
}

/* log_open.c */
/* Open without tasks, and free without closing: what io_log_open and io_log_close do inside. */
enum ron_err log_open_idle(const struct io_log_options *options, struct io_log **ret_log,
                           struct io_log_recovery *recovery,
                           struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
void log_destroy(struct io_log *log) RON_BLOCKS;
void log_path(const struct io_log *log, enum log_file_kind kind, uint64_t number,
              char path[IO_PATH_MAX + 1]);
/* Final: tell everybody, once. Without locks. */
void log_break(struct io_log *log, const struct ron_errinfo *info);
void log_wake_all(struct io_log *log) RON_NEEDS(storage);
/* Answer for what a log that is open up to damage does not do. */
enum ron_err log_is_damaged(const struct io_log *log, struct ron_errinfo *reterr) RON_MUST_USE;
/* Forget all segments of the table but the first `count`. */
void log_segments_cut(struct io_log *log, uint32_t count) RON_BLOCKS;
/* Make room for one more segment in the table. */
enum ron_err log_segments_reserve(struct io_log *log, struct ron_errinfo *reterr) RON_MUST_USE;

/* log_recover.c: fills everything that log_open.c did not; changes the disk only once all checks
 * have passed, and not at all if read_only. */
enum ron_err log_recover(struct io_log *log, struct io_log_recovery *recovery,
                         struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* log_read.c: let go of a segment that was pinned (pins_count, under the lock), as the last one
 * also of a damaged index and of a filter that has a gate in its place. Without locks. */
void log_unpin(struct io_log *log, struct log_segment *segment) RON_BLOCKS;
/* A segment's file; past the system's cache only if it may also be written. */
enum ron_err log_open_to_read(const struct io_log *log, const char *path, bool past_cache,
                              struct io_file **ret_file,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* log_early.c */
/* By whoever fills the open group, `ready` bytes of which will not change: write whole pages of
 * them, if that is enough and can be. An error breaks the log. */
void log_write_early(struct io_log *log, struct log_group *group, size_t ready) RON_BLOCKS;

/* log_writer.c */
enum ron_err log_writer_fn(struct rt_task *task, void *argument) RON_BLOCKS;
/* Write and sync the seal behind the end of the open segment. */
enum ron_err log_seal_segment(struct io_log *log,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Give the file ahead-<number> its head and its name; it is the writer's file from then on. */
enum ron_err log_publish_segment(struct io_log *log, const struct io_segment_head *head,
                                 struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* log_ahead.c */
enum ron_err log_ahead_fn(struct rt_task *task, void *argument) RON_BLOCKS;
bool log_ahead_is_wanted(const struct io_log *log) RON_NEEDS(storage); /* zeros to write? */
/* Make ahead-<number> with zeros of this size, durable. */
enum ron_err log_ahead_make(struct io_log *log, uint64_t number, uint64_t size,
                            struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Zeros from one offset to another, in chunks; not synced. */
enum ron_err log_write_zeros(struct io_log *log, struct io_file *file, uint64_t from, uint64_t to,
                             struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
