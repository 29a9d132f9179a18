/*
 * books_run.h - one run: made once, read by many, shared by counting.
 *
 * Fences and filter are in memory; a question reads one page, or two. Every byte is checked before
 * it is believed: RON_ERR_WAL_CORRUPT is the answer otherwise, never a guess. Bytes:
 * books_format.h.
 */
#ifndef RON_LEDGER_BOOKS_RUN_H
#define RON_LEDGER_BOOKS_RUN_H

#include "io/replace.h"
#include "ledger/books_get.h"
#include "rt/atomic.h"

struct books_run {
    struct rt_atomic_u32 refs_count;
    struct books_head head;
    uint32_t tag;
    uint64_t file_size;
    size_t resident_size;
    struct io_file *file;
    void *resident; /* as allocated */
    const uint64_t *filter;
    const struct books_place *fences;
};

/* RON_ERR_NOT_FOUND, RON_ERR_WAL_CORRUPT, RON_ERR_VERSION_SKEW: make it again. One reference. */
enum ron_err books_run_open(struct io_vfs *vfs, const char *path, struct books_run **ret_run,
                            struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Accepts NULL, returns NULL; the last one closes it. */
struct books_run *books_run_drop(struct books_run *run) RON_BLOCKS;

/* False: certainly not there, of any asset. */
bool books_run_may_have(const struct books_run *run, const struct ledger_thread *thread);
/* Somebody is about to ask for the account's balance there: the system may fetch the pages where it
 * begins and where at_seq is meanwhile. */
void books_run_fetch(struct books_run *run, const struct ledger_thread *thread,
                     uint64_t at_seq) RON_BLOCKS;
/* What the thread comes to after at_seq, from the run's first entry on. */
enum ron_err books_run_sum(struct books_run *run, const struct ledger_thread *thread,
                           uint64_t at_seq, struct books_sum *ret_sum,
                           struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Seqs as ledger_books_thread has them, of this asset alone. */
enum ron_err books_run_seqs(struct books_run *run, const struct ledger_thread *thread,
                            uint64_t after, bool newest_first, uint64_t *seqs, size_t seqs_max,
                            size_t *ret_count, struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The first asset from `asset` on that the account has a thread of; 0: none. */
enum ron_err books_run_next_asset(struct books_run *run, const struct ledger_id *account,
                                  uint32_t asset, uint32_t *ret_asset,
                                  struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* All postings in order, each page read once, past the system's cache. */
enum {
    BOOKS_CURSOR_PAGES = 16, /* read at once */
    BOOKS_CURSOR_SIZE = BOOKS_CURSOR_PAGES * BOOKS_PAGE_SIZE,
};
struct books_cursor {
    uint8_t *bytes;        /* the caller's: BOOKS_CURSOR_SIZE of them, where a page begins */
    struct books_run *run; /* borrowed */
    struct io_file *past;  /* NULL: it could not be opened so, and is read as it is */
    uint64_t page;         /* the next one to open */
    uint64_t page_end;     /* before it they are in memory, as far as from `page` on */
    bool ended;
    struct books_page_reader reader; /* its posting is the current one */
};
/* Whatever it answers, books_cursor_end comes after it. */
enum ron_err books_cursor_begin(struct books_cursor *cursor, struct books_run *run,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Also of one that was never begun, and is zero. */
void books_cursor_end(struct books_cursor *cursor) RON_BLOCKS;
/* Of books_cursor_next: a page is over; it is malformed. */
enum ron_err books_cursor_turn(struct books_cursor *cursor,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
enum ron_err books_cursor_bad(const struct books_cursor *cursor,
                              struct ron_errinfo *reterr) RON_MUST_USE;

/* To the next one. Of its reader the sum is not kept. */
RON_MUST_USE static RON_HOT_INLINE enum ron_err
books_cursor_next(struct books_cursor *cursor, struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = RON_ERR_OK;

    while (err == RON_ERR_OK && !cursor->ended) {
        const enum books_step step = books_page_step_in(&cursor->reader, false);

        if (step == BOOKS_STEP_POSTING)
            break;
        err = step == BOOKS_STEP_BAD ? books_cursor_bad(cursor, reterr)
                                     : books_cursor_turn(cursor, reterr);
    }
    return err;
}

#endif
