/*
 * books.h - where to find what was committed: entries by id and key, by account and asset, by
 * stream; balances at any past seq.
 *
 * Derived from the log by a task of its own that follows committed batches; readers ask from any
 * thread. Newest entries are in memory (the *page*); a full page is sorted and written as one
 * immutable file (a *run*) by a second task while the next page fills; 64 of those become one. A
 * question asks the runs and the pages through filters. Missing or damaged runs are made
 * again from the log: the books begin again at the first of them, and questions wait meanwhile.
 * Amnesia: on a memory vfs. Ids of entries are not kept here a second time: the core's window and
 * the log's index, which keep an id from being used twice, know where they are (books_record.c).
 *
 * A *thread* of entries is what belongs together: the postings of (account, asset), the Anchors of
 * a stream, all Assets, the Holds of a payer.
 */
#ifndef RON_LEDGER_BOOKS_H
#define RON_LEDGER_BOOKS_H

#include "io/vfs.h"
#include "ledger/port.h"

struct ledger_books; /* opaque */
struct rt_supervisor;

struct ledger_books_options {
    struct io_vfs *vfs;    /* borrowed; a memory vfs for amnesia */
    const char *dir;       /* "ledger/books"; borrowed */
    uint32_t page_entries; /* in memory; 0: LEDGER_BOOKS_PAGE; at most LEDGER_BOOKS_PAGE_MAX */
    uint32_t merge_runs;   /* become one; 0: 64, which is the most; at least 2 */
    struct ledger_service *service;   /* its roots are followed, its batches read; outlives books */
    struct rt_supervisor *supervisor; /* of two tasks */
    struct rt_log *log;               /* NULL: none */
};
enum { LEDGER_BOOKS_PAGE = 1 << 18, LEDGER_BOOKS_PAGE_MAX = 1 << 20 };
/* Nothing runs before start; start after ledger_service_start. */
enum ron_err ledger_books_new(const struct ledger_books_options *options,
                              struct ledger_books **ret_books,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
enum ron_err ledger_books_start(struct ledger_books *books,
                                struct ron_errinfo *reterr) RON_MUST_USE;
/* Ends the tasks: before their supervisor is stopped, and before ledger_service_free. Readers that
 * wait are answered RON_ERR_CANCELED. RON_ERR_TIMEOUT: a call of the disk does not return; do not
 * free. */
enum ron_err ledger_books_stop(struct ledger_books *books, struct rt_deadline deadline,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Stopped or never started, and no reader under way. Accepts NULL, returns NULL. */
struct ledger_books *ledger_books_free(struct ledger_books *books) RON_BLOCKS;

/* What a place leads to: the entry as it is in the log, with what its frame says around it. */
struct ledger_record {
    struct ledger_entry entry;
    struct ron_u128 tenant;
    enum ledger_caller caller;
    struct ron_sha256 root; /* of its batch */
    uint64_t batch_seq_start, batch_seq_end;
    /* Into `text`, which belongs to the caller and keeps the bytes: */
    struct ron_slice id_text, ext;
    struct ron_slice debit_name, credit_name; /* empty where the account's name is not known */
};
/* Read-your-writes: every question first waits, within the deadline, until all that was committed
 * when it was asked is in the books. RON_ERR_NOT_FOUND; RON_ERR_TIMEOUT; RON_ERR_CANCELED;
 * RON_ERR_IO and RON_ERR_WAL_CORRUPT if the log cannot be read. */
enum ron_err ledger_books_entry(struct ledger_books *books, const struct ledger_id *id,
                                struct rt_deadline deadline, struct ledger_record *ret_record,
                                struct ron_buf *text,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
enum ron_err ledger_books_at(struct ledger_books *books, uint64_t seq, struct rt_deadline deadline,
                             struct ledger_record *ret_record, struct ron_buf *text,
                             struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Many at once, ascending: `fn` gets each in its turn, with texts that stay until it returns; an
 * error of its own ends it. Frames are read once, whatever is wanted of them. */
typedef enum ron_err ledger_record_fn(void *context, const struct ledger_record *record,
                                      struct ron_errinfo *reterr);
enum ron_err ledger_books_each(struct ledger_books *books, const uint64_t *seqs, size_t seqs_count,
                               struct rt_deadline deadline, ledger_record_fn *fn, void *context,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The batch that an idempotency key was used for: its id is ledger_key_id. */
enum ron_err ledger_books_key(struct ledger_books *books, const struct ledger_id *key,
                              struct rt_deadline deadline, struct ledger_key *ret_key,
                              struct ledger_reply *ret_reply,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* What entries have in common. */
enum ledger_thread_kind {
    LEDGER_THREAD_KEY = 1, /* as the next one, the books' own */
    LEDGER_THREAD_BATCHES,
    LEDGER_THREAD_ACCOUNT,
    LEDGER_THREAD_HOLDS,
    LEDGER_THREAD_STREAM,
    LEDGER_THREAD_KIND,
    LEDGER_THREAD__MAX,
};
struct ledger_thread {
    enum ledger_thread_kind kind;
    uint32_t asset; /* of an account; 0: every asset */
    struct ledger_id id;
};
struct ledger_thread ledger_account_thread(const struct ledger_id *account, uint32_t asset);
struct ledger_thread ledger_stream_thread(struct ron_slice stream); /* Anchors */
struct ledger_thread ledger_kind_thread(uint16_t kind);             /* Asset only */
struct ledger_thread ledger_holds_thread(const struct ledger_id *payer);

/* Seqs of a thread beyond `after`, ascending, at most seqs_max; `newest_first`: below `after`
 * (UINT64_MAX: from the end), descending. Go on with the last one. At most
 * LEDGER_BOOKS_SEQS_MAX at once. */
enum { LEDGER_BOOKS_SEQS_MAX = 4096 };
enum ron_err ledger_books_thread(struct ledger_books *books, const struct ledger_thread *thread,
                                 uint64_t after, bool newest_first, struct rt_deadline deadline,
                                 uint64_t *seqs, size_t seqs_max, size_t *ret_count,
                                 struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The balance after everything up to at_seq, as ledger_read_balance would have said it then;
 * RON_ERR_NOT_FOUND if at_seq is not committed. Inside a batch that passes money through
 * sys/clearing, that account has what is on its way. */
enum ron_err ledger_books_balance(struct ledger_books *books, const struct ledger_id *account,
                                  uint32_t asset, uint64_t at_seq, struct rt_deadline deadline,
                                  struct ledger_balance *ret_balance,
                                  struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

struct ledger_books_stats {
    uint64_t seq_indexed; /* how far the books are; the rest to the head is their lag */
    uint64_t runs_count, runs_bytes, runs_memory;
    uint64_t runs_written, runs_merged; /* since start: pages that became runs, merges */
    uint64_t rebuilds_count;            /* times the books began again at a damaged run */
    uint64_t page_entries;              /* in memory */
    uint64_t rest_owed_ns, rested_ns;   /* of merges: as books_pace.h says, and as it was */
};
struct ledger_books_stats ledger_books_get_stats(struct ledger_books *books) RON_BLOCKS;

#endif
