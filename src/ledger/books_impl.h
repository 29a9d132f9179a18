/*
 * books_impl.h - the books' state, by owner. Private to the books' files.
 *
 * A *view* is what a question is asked of: runs, oldest first, then the page that waits to be
 * written, then the page that grows. It never changes; the follower (pages, beginning again) and
 * the keeper (runs) put a new one in its place under the lock. Whoever took a view keeps all of it
 * alive. The *epoch* grows when the books begin again: what the keeper made in an older one is
 * thrown away.
 */
#ifndef RON_LEDGER_BOOKS_IMPL_H
#define RON_LEDGER_BOOKS_IMPL_H

#include "base/assert.h"
#include "base/mem.h"
#include "ledger/books_page.h"
#include "ledger/service.h"
#include "rt/bus.h"
#include "rt/lock.h"
#include "rt/log.h"
#include "rt/supervisor.h"

#define BOOKS_MAGIC 0xb00c5001u

enum {
    BOOKS_MERGE_MAX = 64,       /* runs become one, which stays: 16 Mi entries */
    BOOKS_LOOK_MS = 20,         /* a bus cannot be woken by others: look for the end this often */
    BOOKS_PACE_MS = 2,          /* at most so often: to be woken by every group is dear */
    BOOKS_RETRY_MS = 100,       /* after a failure of disk or memory */
    BOOKS_FOLLOW_BATCHES = 256, /* read at once */
};

struct books_view {
    struct rt_atomic_u32 refs_count;
    uint64_t epoch;
    struct books_page *sealed; /* NULL: none waits */
    struct books_page *page;   /* NULL: nothing yet */
    size_t runs_count;
    struct books_run *runs[];
};

struct ledger_books {
    uint32_t magic;
    struct ledger_books_options options;
    struct rt_task *follower, *keeper;
    struct rt_bus_subscriber *subscriber; /* the follower's */
    struct rt_watch *indexed;             /* u64; follower: seq + 1, 0 before the runs are open */
    struct rt_watch *kept;                /* u64; keeper: there is room for a page */
    struct rt_watch *work;                /* u64; follower: there is a page to write */
    struct rt_lock lock;
    struct books_view *view RON_GUARDED_BY(storage);
    /* The follower's. */
    bool opened;
    uint64_t next_batch;
    struct books_page *page; /* the view's */
    struct books_shelf shelf;
    struct books_order *order; /* the keeper's */
    /* Damage that was found: in which epoch, and the first seq of the run. */
    uint64_t damaged_epoch RON_GUARDED_BY(storage);
    uint64_t damaged_seq RON_GUARDED_BY(storage);
    struct rt_atomic_u64 runs_written, runs_merged, rebuilds_count;
    struct rt_atomic_u64 rest_owed_ns, rested_ns; /* of merges */
    struct rt_atomic_u32 complained; /* a failure was logged, and nothing went well since */
};

/* books_view.c */
struct books_view *books_view_take(struct ledger_books *books);
struct books_view *books_view_last(struct ledger_books *books); /* and there is none any more */
struct books_view *books_view_drop(struct books_view *view) RON_BLOCKS; /* NULL is ok */
/* A view of its own of these runs alone, for its caller: without pages. */
enum ron_err books_view_of_runs(const struct books_view *view, size_t first, size_t count,
                                struct books_view **ret_runs,
                                struct ron_errinfo *reterr) RON_MUST_USE;
/* Put a view in place that has these. Borrows; the view has its own references. */
struct books_parts {
    struct books_run *const *runs;
    size_t runs_count;
    struct books_page *sealed, *page;
};
enum ron_err books_view_begin(struct ledger_books *books, const struct books_parts *parts,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Follower: the growing page is full, this is the next. The place of `sealed` must be free. */
enum ron_err books_view_turn(struct ledger_books *books, struct books_page *page,
                             struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Keeper: instead of `count` runs beginning with the one of first_seq (none: of the sealed page)
 * there is this one. RON_ERR_CONFLICT: another epoch began. */
enum ron_err books_view_put_run(struct ledger_books *books, uint64_t epoch, struct books_run *run,
                                size_t count, struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* The run of first_seq is damaged in this epoch's view; the follower begins again there. */
void books_report(struct ledger_books *books, uint64_t epoch, uint64_t seq);
bool books_damaged(struct ledger_books *books, uint64_t *ret_seq);

/* books_keep.c */
rt_task_fn books_keeper_run;
enum { BOOKS_PATH_SIZE = IO_PATH_MAX + 1 };
enum ron_err books_run_path(const struct ledger_books *books, uint64_t first_seq, uint64_t last_seq,
                            char ret_path[BOOKS_PATH_SIZE],
                            struct ron_errinfo *reterr) RON_MUST_USE;

/* books_follow.c */
rt_task_fn books_follower_run;
void books_complain(struct ledger_books *books, const char *what, const struct ron_errinfo *info);

/* books_ask.c: one question to one view. An error with *ret_damaged set: begin again there. */
typedef enum ron_err books_ask_fn(struct ledger_books *books, struct books_view *view,
                                  void *question, uint64_t *ret_damaged,
                                  struct ron_errinfo *reterr);
enum ron_err books_ask(struct ledger_books *books, struct rt_deadline deadline, books_ask_fn *fn,
                       void *question, struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Seqs of the thread in the whole view, as ledger_books_thread. */
enum ron_err books_view_seqs(struct books_view *view, const struct ledger_thread *thread,
                             uint64_t after, bool newest_first, uint64_t *seqs, size_t seqs_max,
                             size_t *ret_count, uint64_t *ret_damaged,
                             struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* What an account's thread comes to after at_seq; its count is that of nonces used, of every asset.
 * RON_ERR_NOT_FOUND. */
enum ron_err books_view_balance(struct books_view *view, const struct ledger_thread *thread,
                                uint64_t at_seq, struct books_sum *ret_sum, uint64_t *ret_damaged,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The batch of a seq. RON_ERR_NOT_FOUND. */
enum ron_err books_view_batch(struct books_view *view, uint64_t seq, uint64_t *ret_batch,
                              uint64_t *ret_damaged,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
uint64_t books_view_last_seq(const struct books_view *view);

#endif
