/*
 * books.h - where to find what was committed: entries by id and key, by account and asset, by
 * stream; balances at any past seq.
 *
 * Derived from the log by a task of its own that follows committed batches; readers ask from any
 * thread. Newest entries are in memory (the *page*); a full page is sorted and written as one
 * immutable file (a *run*), and merged no further: a question asks the page and then the runs,
 * newest first, through filters. Missing or damaged runs are made again from the log. With no
 * directory (amnesia) runs stay in memory, within their bound.
 *
 * A *thread* of entries is what belongs together: the postings of (account, asset), the Anchors of
 * a stream, all Assets, the Holds of a payer. Its key is 16 bytes (books_*_thread below).
 */
#ifndef RON_LEDGER_BOOKS_H
#define RON_LEDGER_BOOKS_H

#include "io/vfs.h"
#include "ledger/port.h"

struct ledger_books; /* opaque */
struct rt_supervisor;

struct ledger_books_options {
    struct io_vfs *vfs;             /* borrowed; a memory vfs for amnesia */
    const char *dir;                /* "ledger/books" */
    uint32_t page_entries;          /* of the page in memory; 0: 1 Mi */
    struct ledger_service *service; /* its roots are followed, its batches read */
    struct rt_supervisor *supervisor;
    struct rt_log *log; /* NULL: none */
};
/* Nothing runs before start; start after ledger_service_start. */
enum ron_err ledger_books_new(const struct ledger_books_options *options,
                              struct ledger_books **ret_books,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
enum ron_err ledger_books_start(struct ledger_books *books,
                                struct ron_errinfo *reterr) RON_MUST_USE;
/* Ends the task; readers under way are answered RON_ERR_CANCELED. */
enum ron_err ledger_books_stop(struct ledger_books *books, struct rt_deadline deadline,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
struct ledger_books *ledger_books_free(struct ledger_books *books) RON_BLOCKS; /* NULL is ok */

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
/* The batch that an idempotency key was used for: id as the core makes it. */
enum ron_err ledger_books_key(struct ledger_books *books, const struct ledger_id *key,
                              struct rt_deadline deadline, struct ledger_key *ret_key,
                              struct ledger_reply *ret_reply,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* Seqs of a thread beyond `after`, ascending, at most seqs_max; `newest_first`: below `after`
 * (UINT64_MAX: from the end), descending. Go on with the last one. */
enum ron_err ledger_books_thread(struct ledger_books *books, const struct ledger_id *thread,
                                 uint64_t after, bool newest_first, struct rt_deadline deadline,
                                 uint64_t *seqs, size_t seqs_max, size_t *ret_count,
                                 struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The balance after everything up to at_seq; RON_ERR_NOT_FOUND if at_seq is not committed. */
enum ron_err ledger_books_balance(struct ledger_books *books, const struct ledger_id *account,
                                  uint32_t asset, uint64_t at_seq, struct rt_deadline deadline,
                                  struct ledger_balance *ret_balance,
                                  struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

struct ledger_id ledger_account_thread(const struct ledger_id *account, uint32_t asset);
struct ledger_id ledger_account_all_thread(const struct ledger_id *account); /* every asset */
struct ledger_id ledger_stream_thread(struct ron_slice stream);              /* Anchors */
struct ledger_id ledger_kind_thread(uint16_t kind);                          /* Asset only */
struct ledger_id ledger_holds_thread(const struct ledger_id *payer);

struct ledger_books_stats {
    uint64_t seq_indexed, runs_count, runs_bytes, runs_rebuilt, page_entries;
};
struct ledger_books_stats ledger_books_get_stats(struct ledger_books *books);

#endif
