/*
 * log.h - a durable log: records in, one sync per group, nothing acknowledged ever lost.
 *
 * One process owns a log (lock file `owner`, whose epoch grows with every owner and is in every
 * frame). Any thread appends: the record is copied into the open group and given its index; a task
 * of the log writes and syncs the group while the next one fills, then tells on_durable and wakes
 * the waiters. A group closes when it is full (group_bytes), when linger_us have passed since its
 * first record, or at once when someone waits and the disk is idle. Of a large one the first pages
 * are written while it fills (early_bytes), by io_log_append_until and _many, past their deadline
 * if the system does not take a write before it.
 *
 * Space is taken before it is promised: zeros are written and synced ahead of use by a second task
 * at a bounded rate, and an append whose group would pass them answers RON_ERR_STORAGE_BUSY (they
 * are being written) or RON_ERR_PERSISTENCE_FULL (the disk is full) and changes nothing. The same
 * STORAGE_BUSY answers an append while both groups are full, or while another one fills in many
 * records or a large one: io_log_append_until waits it out.
 *
 * An error of write or sync is final: the log is broken, every waiter and every later append is
 * answered RON_ERR_IO, on_broken is told once; reads of what is durable go on. Only a new open
 * (which reads the disk, not the cache's opinion of it) may go on from there.
 *
 * Format, torn tails and damage: log_format.h.
 * tidy: long file because options, errors and figures of a log are read together.
 */
#ifndef RON_IO_LOG_H
#define RON_IO_LOG_H

#include "io/log_format.h"
#include "io/vfs.h"
#include "rt/deadline.h"

struct rt_supervisor;
struct rt_metrics;
struct io_log; /* opaque */

enum {
    IO_LOG_TASKS = 3,
    IO_LOG_SEGMENT_BYTES = 256 << 20, /* unless said otherwise */
};

enum io_log_damage_policy {
    IO_LOG_STRICT, /* damage before the tail: RON_ERR_WAL_CORRUPT with file and offset */
    IO_LOG_SKIP,   /* count it, go on at the next sound frame (whose chain then starts anew) */
    /* Where there is damage: open what lies before it for reading alone. Nothing is repaired, no
     * task runs, no byte changes; readers end behind the last good record (last_index), io_log_find
     * knows the sealed segments before the damaged one, and append, drop_before and a wait for more
     * answer RON_ERR_WAL_CORRUPT. A lost owner file leaves all of the segments readable (not the
     * knowledge that their end is the end). Without damage as strict. */
    IO_LOG_UP_TO_DAMAGE,
};

/* Tell the index every key of a record; sub is the caller's (number of an entry in a batch). Asked
 * by the log's tasks, the writer among them, and by who builds an index again: it may not block,
 * nor use the log. */
typedef void io_log_emit_fn(void *index, const uint8_t key[16], uint32_t sub);
typedef void io_log_keys_fn(void *context, const struct io_frame *frame, io_log_emit_fn *emit,
                            void *index);

struct io_log_options {
    struct io_vfs *vfs; /* borrowed */
    const char *dir;    /* "ledger/log"; "" is the root of the vfs; borrowed */
    const char *name;   /* in messages, metrics and the registry: "ledger"; borrowed */
    uint32_t kind;      /* refuses the log of another role */
    enum io_log_damage_policy damage;
    bool read_only;             /* no lock, no repair, no tasks; never skips damage */
    uint64_t segment_bytes;     /* 8 KiB .. 1 GiB, a multiple of 4 KiB; 0: 256 MiB */
    uint64_t ahead_bytes;       /* zeros ahead of the writer; 0: 16 MiB; at most segment_bytes */
    uint64_t ahead_bytes_per_s; /* bound on writing them, below 1 GB; 0: 768 MiB/s */
    uint64_t cached_bytes;      /* left in the system's cache, at least a segment; 0: all */
    uint32_t group_bytes;       /* of one group; 0: 4 MiB; a larger record is its own group */
    uint32_t record_bytes_max;  /* decides with group_bytes the memory; 0: IO_RECORD_SIZE_MAX */
    uint32_t early_bytes;       /* ready in an open group: written early; 0: 128 KiB */
    uint32_t linger_us;         /* 0: write as soon as the disk is idle */
    /* Groups and zeros are written past the system's cache, in whole pages (IO_OPEN_DIRECT), and
     * no group early: nothing is copied, and memory that nobody reads is not filled. */
    bool direct;
    struct rt_supervisor *supervisor; /* owner of the log's IO_LOG_TASKS */
    struct rt_metrics *metrics;       /* with io_log_metric_table (log_metrics.h); or NULL */
    io_log_keys_fn *keys;             /* NULL: no key index */
    /* On the log's writer task, without locks, in order: all up to `index` is durable. */
    void (*on_durable)(void *context, uint64_t index);
    void (*on_broken)(void *context, const struct ron_errinfo *info);
    void *context;
};

struct io_log_recovery {    /* what open found */
    uint64_t records_count; /* in the log now */
    uint64_t first_index, last_index;
    uint64_t torn_bytes;    /* of the tail, dropped */
    uint64_t torn_count;    /* sound frames in it */
    uint64_t skipped_count; /* places of damage passed over (IO_LOG_SKIP) */
    uint64_t skipped_bytes;
    uint64_t indexes_built;
    uint64_t open_bytes;               /* of the segment that is written to: no index knows them */
    uint32_t epoch;                    /* of this owner */
    bool clean;                        /* the last owner closed it */
    char damage_file[IO_PATH_MAX + 1]; /* "" if none (or skipped); also filled when open fails */
    uint64_t damage_offset;
};

/* Open or make the log. RON_ERR_CONFLICT: another process owns it; RON_ERR_WAL_CORRUPT,
 * RON_ERR_VERSION_SKEW, RON_ERR_MALFORMED (foreign file), RON_ERR_FORBIDDEN. In all of these no
 * byte has changed. ret_recovery is filled as far as it got, also on failure. */
enum ron_err io_log_open(const struct io_log_options *options, struct io_log **ret_log,
                         struct io_log_recovery *ret_recovery,
                         struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Make all appended durable, mark the log closed, stop its tasks, free it; after RON_ERR_IO it is
 * freed as well: what was acknowledged is durable, the rest unknown. RON_ERR_TIMEOUT: a call of the
 * disk does not return, so the log and its tasks stay as they are until the process ends. Calls of
 * append_until and wait that sleep are answered RON_ERR_CANCELED and have returned when close does;
 * no other call may be under way, readers are freed before. Close logs before their supervisor is
 * stopped: a stop cancels the tasks, which finish what was appended, but the log stays open. */
enum ron_err io_log_close(struct io_log *log, struct rt_deadline deadline,
                          struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* Append a record of one body in parts; *ret_index is its number. Copies, does not block. Errors:
 * RON_ERR_STORAGE_BUSY, RON_ERR_PERSISTENCE_FULL, RON_ERR_TOO_LARGE, RON_ERR_IO (broken),
 * RON_ERR_WAL_CORRUPT (open up to damage), RON_ERR_CANCELED (closing). Appends from one thread keep
 * their order. */
enum ron_err io_log_append(struct io_log *log, uint16_t type, const struct ron_slice *parts,
                           size_t parts_count, uint64_t *ret_index,
                           struct ron_errinfo *reterr) RON_MUST_USE;
/* The same, waiting while the answer is RON_ERR_STORAGE_BUSY. RON_ERR_TIMEOUT: not appended. */
enum ron_err io_log_append_until(struct io_log *log, uint16_t type, const struct ron_slice *parts,
                                 size_t parts_count, struct rt_deadline deadline,
                                 uint64_t *ret_index,
                                 struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The same for many records of one type: appends from the first on as many as the open group takes,
 * at least one (for whose room it waits), and no other thread's between them.
 * *ret_count were appended, the last as *ret_index; call again for the rest. */
enum ron_err io_log_append_many(struct io_log *log, uint16_t type, const struct ron_slice *bodies,
                                size_t bodies_count, struct rt_deadline deadline, size_t *ret_count,
                                uint64_t *ret_index,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Wait until `index` is durable. RON_ERR_TIMEOUT says nothing about its fate; RON_ERR_CANCELED: the
 * log was closed before it was. */
enum ron_err io_log_wait(struct io_log *log, uint64_t index, struct rt_deadline deadline,
                         struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The same, or until somebody nudges after the caller has seen so many nudges: RON_ERR_OK then,
 * too. For who appends and has to look elsewhere for more while the disk is at work. */
enum ron_err io_log_wait_nudged(struct io_log *log, uint64_t index, uint32_t seen,
                                struct rt_deadline deadline,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
uint32_t io_log_nudges(const struct io_log *log);
void io_log_nudge(struct io_log *log); /* any thread; cheap while nobody waits so */
uint64_t io_log_last_durable(const struct io_log *log); /* any thread */
uint64_t io_log_first_index(const struct io_log *log);  /* later than 1 after retention */

/* Read durable records in order, from `first` on. The frame's body lives until the next call. */
struct io_log_reader; /* opaque; one thread */
enum ron_err io_log_reader_new(struct io_log *log, uint64_t first,
                               struct io_log_reader **ret_reader,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* It will read much, and once: past the system's cache, where the log is written so. Before the
 * first record is read. */
void io_log_reader_pass_cache(struct io_log_reader *reader);
struct io_log_reader *io_log_reader_free(struct io_log_reader *reader) RON_BLOCKS;
/* RON_ERR_NOT_FOUND: none beyond (yet). RON_ERR_PRUNED. RON_ERR_WAL_CORRUPT with file and offset.
 */
enum ron_err io_log_reader_next(struct io_log_reader *reader, struct io_frame *ret_frame,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* The record that the last call told, and no other since, will be told again. */
void io_log_reader_back(struct io_log_reader *reader);

/* The newest records, for who follows the log: durable, and still in the memory they were written
 * from. False: the record is not there (any more), or others are being read just now: read the log.
 * Frames and their bodies live until io_log_recent_close, and the log keeps its memory for them
 * until then: not for long. One thread. */
struct log_chunk;
struct io_log_recent { /* the log's */
    struct io_log *log;
    struct log_chunk *chunk;
    uint32_t kept, kept_count; /* groups */
    size_t at;
    uint64_t next;
};
bool io_log_recent_open(struct io_log *log, uint64_t first,
                        struct io_log_recent *ret_recent) RON_MUST_USE;
/* False: no more of them here; open again. */
bool io_log_recent_next(struct io_log_recent *recent, struct io_frame *ret_frame) RON_MUST_USE;
void io_log_recent_close(struct io_log_recent *recent);

/* After RON_ERR_WAL_CORRUPT: the file, as the vfs names it, and where in it; NULL: not known. The
 * text lives as long as the reader. */
const char *io_log_reader_damage(const struct io_log_reader *reader, uint64_t *ret_offset);

/* Where a key was emitted, newest segment first; looks in sealed segments only (the caller's window
 * covers the rest). RON_ERR_NOT_FOUND. An index has the first 8 bytes of its keys: the place may be
 * that of another key with the same ones, and only the record can tell; whose keys may share them
 * asks for every place instead. An index with a damaged page is built again first, which
 * reads its whole segment; where that fails, its error is the answer: not found is never a guess.
 */
struct io_log_place {
    uint64_t index; /* of the record */
    uint32_t sub;
};
enum ron_err io_log_find(struct io_log *log, const uint8_t key[16], struct io_log_place *ret_place,
                         struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The same for every place of the key, newest segment first, and for some of keys that begin with
 * the same 8 bytes: fn must look at the record and say whether it was meant. Segments that begin
 * behind index_max are not asked. RON_ERR_OK without a call of fn: certainly nowhere. No lock is
 * held in fn, which may read the log. */
typedef enum ron_err io_log_place_fn(void *context, const struct io_log_place *place,
                                     bool *ret_enough, struct ron_errinfo *reterr);
enum ron_err io_log_find_each(struct io_log *log, const uint8_t key[16], uint64_t index_max,
                              io_log_place_fn *fn, void *context,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Keys of 16 bytes, so many bytes from one to the next. */
struct io_log_keys {
    const uint8_t *first;
    size_t stride;
    size_t count;
};
/* Which of many keys io_log_find_each would look for in a file: bit i % 64 of ret_bits[i / 64] for
 * key i; where it is 0 the key is certainly nowhere up to index_max (one behind it may count, too).
 * Reads no file; ten nanoseconds for each gate (log_gate.h) and each segment that has none yet. */
void io_log_may_have(struct io_log *log, const struct io_log_keys *keys, uint64_t index_max,
                     uint64_t *ret_bits) RON_BLOCKS;
/* Records up to here are in sealed segments whose index is ready: io_log_find knows them. */
uint64_t io_log_last_indexed(const struct io_log *log);

/* Retention: remove whole segments whose records are all before `index`. One thread at a time. */
enum ron_err io_log_drop_before(struct io_log *log, uint64_t index, uint64_t *ret_segments,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

struct io_log_stats {
    uint64_t groups_count, records_count, bytes_count; /* written */
    uint64_t early_bytes, meanwhile_bytes; /* before their group was closed; during a sync */
    uint64_t syncs_count, sync_ns_total, sync_ns_max;
    uint64_t zeroed_bytes, waits_for_zeros;
    uint64_t uncached_bytes;  /* far behind, let go from the system's cache */
    uint64_t indexes_rebuilt; /* because a page of them was damaged */
};
struct io_log_stats io_log_get_stats(struct io_log *log);

#endif
