/*
 * books_page.h - the newest postings, in memory.
 *
 * One writer adds whole batches; readers look meanwhile, without locks: what is added is published
 * by the head of its chain, and never changes. Records hang in chains by a hash of kind and id,
 * newest first. Shared by counting.
 */
#ifndef RON_LEDGER_BOOKS_PAGE_H
#define RON_LEDGER_BOOKS_PAGE_H

#include "ledger/books_run.h"
#include "ledger/core_batch.h"
#include "ledger/core_frame.h"

struct books_record {
    uint64_t high, low; /* the id as a big-endian number */
    uint64_t value;     /* of an account: asset and amount, or where both are in `wide` */
    uint32_t what;      /* seq since the page's first, kind, flags */
    uint32_t below;     /* the record under it in its chain, + 1; 0: none */
};
_Static_assert(sizeof(struct books_record) == 32, "as counted in README.md");

enum {
    BOOKS_RECORD_SEQ = (1 << 22) - 1,
    BOOKS_RECORD_KIND = 22, /* shift, three bits */
    BOOKS_RECORD_MINT = 1 << 25,
    BOOKS_RECORD_NEGATIVE = 1 << 26,
    BOOKS_RECORD_NONCE = 1 << 27,
    BOOKS_RECORD_WIDE = 1 << 28,
    BOOKS_RECORD_SIGNS = 19, /* shift to what an amount begins with */
    BOOKS_VALUE_AMOUNT = 16, /* shift; below it the asset */
    BOOKS_VALUE_ASSET = (1 << BOOKS_VALUE_AMOUNT) - 1,
};
_Static_assert((int)LEDGER_THREAD__MAX <= 8, "three bits");
_Static_assert((int)BOOKS_RECORD_NEGATIVE >> BOOKS_RECORD_SIGNS == (int)BOOKS_AMOUNT_NEGATIVE &&
                   (int)BOOKS_RECORD_MINT >> BOOKS_RECORD_SIGNS == (int)BOOKS_AMOUNT_MINT,
               "signs as in a run");
_Static_assert((int)LEDGER_BOOKS_PAGE_MAX + (int)LEDGER_BATCH_ENTRIES_MAX <= BOOKS_RECORD_SEQ,
               "of a page");

/* Records are put in order by buckets: kind and first bits of the id. */
enum { BOOKS_BUCKET_BITS = 9, BOOKS_BUCKETS = 8 << BOOKS_BUCKET_BITS };

/* What does not fit into a record: amounts of 2^48 and more, assets beyond 65,535. */
struct books_wide {
    unsigned __int128 amount;
    uint32_t asset;
};

struct books_page {
    struct rt_atomic_u32 refs_count;
    uint64_t first_seq, first_batch;
    uint64_t seed;
    /* The writer's. */
    uint32_t records_count, records_max;
    uint32_t linked_count;  /* of them: those that hang in chains; all, between batches */
    struct ron_sha256 root; /* of the last batch */
    /* Published. */
    struct rt_atomic_u64 last_seq;      /* first_seq - 1: empty */
    struct rt_atomic_u32 batches_count; /* before last_seq */
    uint32_t batches_max;
    uint32_t heads_mask;
    struct rt_atomic_u32 *heads;
    uint32_t *batch_starts; /* offsets from first_seq */
    struct books_record *records;
    struct books_wide *wide;         /* one for an entry at most */
    uint32_t buckets[BOOKS_BUCKETS]; /* how many records are of each; the writer's */
    uint32_t wide_count, wide_max;
    bool shelved; /* its memory stays */
};

static inline uint32_t books_bucket(unsigned kind, uint64_t high)
{
    return kind << BOOKS_BUCKET_BITS | (uint32_t)(high >> (64 - BOOKS_BUCKET_BITS));
}
static inline unsigned books_record_kind(const struct books_record *record)
{
    return record->what >> BOOKS_RECORD_KIND & 7;
}
static inline uint64_t books_record_seq(const struct books_page *page,
                                        const struct books_record *record)
{
    return page->first_seq + (record->what & BOOKS_RECORD_SEQ);
}
static inline uint32_t books_record_asset(const struct books_page *page,
                                          const struct books_record *record)
{
    return (record->what & BOOKS_RECORD_WIDE) != 0 ? page->wide[record->value].asset
                                                   : (uint32_t)(record->value & BOOKS_VALUE_ASSET);
}
/* All of it; as in runs, the id of a key by its first half. */
static inline struct books_posting books_record_posting(const struct books_page *page,
                                                        const struct books_record *record)
{
    const unsigned kind = books_record_kind(record);

    return (struct books_posting){
        .place = {record->high, kind == LEDGER_THREAD_KEY ? 0 : record->low,
                  books_record_seq(page, record), books_record_asset(page, record), kind},
        .amount = (record->what & BOOKS_RECORD_WIDE) != 0 ? page->wide[record->value].amount
                                                          : record->value >> BOOKS_VALUE_AMOUNT,
        .negative = (record->what & BOOKS_RECORD_NEGATIVE) != 0,
        .mint = (record->what & BOOKS_RECORD_MINT) != 0,
        .nonce = (record->what & BOOKS_RECORD_NONCE) != 0,
    };
}

/* Room for records_max records and batches_max batches, beginning with this frame's. */
enum ron_err books_page_new(uint32_t records_max, uint32_t batches_max,
                            const struct ledger_frame *first, struct books_page **ret_page,
                            struct ron_errinfo *reterr) RON_MUST_USE;
struct books_page *books_page_drop(struct books_page *page); /* accepts NULL, returns NULL */

/* Pages whose memory is used again: to be given fresh memory costs more than to fill it. The
 * follower's. */
enum { BOOKS_SHELF = 3 }; /* one grows, one is written, one may still be read */
struct books_shelf {
    struct books_page *pages[BOOKS_SHELF];
};
/* As books_page_new, in the memory of a page that nobody has any more, if there is one. */
enum ron_err books_shelf_page(struct books_shelf *shelf, uint32_t records_max, uint32_t batches_max,
                              const struct ledger_frame *first, struct books_page **ret_page,
                              struct ron_errinfo *reterr) RON_MUST_USE;
void books_shelf_fini(struct books_shelf *shelf); /* nobody has any of them */

/* The most records that an entry, a frame can make. */
enum { BOOKS_ENTRY_RECORDS = 3 }; /* two accounts and a Hold; else a stream or a kind */
uint32_t books_frame_records(const struct ledger_frame *frame);
/* Is there room? Then add it: the frame follows the last one. */
bool books_page_fits(const struct books_page *page, const struct ledger_frame *frame);
void books_page_add(struct books_page *page, const struct ledger_frame *frame);

static inline uint64_t books_page_last_seq(const struct books_page *page)
{
    return rt_atomic_load_u64(&page->last_seq);
}
static inline uint64_t books_page_entries(const struct books_page *page)
{
    return books_page_last_seq(page) + 1 - page->first_seq;
}
/* The batch of a seq in the page. */
uint64_t books_page_batch(const struct books_page *page, uint64_t seq);
/* As books_run_sum; the count of nonces is that of all assets. */
void books_page_sum(const struct books_page *page, const struct ledger_thread *thread,
                    uint64_t at_seq, struct books_sum *ret_sum);
/* As books_run_seqs, but asset 0 is every asset, and the id of a key is compared whole. */
size_t books_page_seqs(const struct books_page *page, const struct ledger_thread *thread,
                       uint64_t after, bool newest_first, uint64_t *seqs, size_t seqs_max);

/* Memory to put pages in order; grows as needed, used again for the next. */
struct books_order;
struct books_order *books_order_free(struct books_order *order); /* accepts NULL, returns NULL */
/* Nobody adds any more. Write it as a run. *order (NULL at first) is the caller's. */
enum ron_err books_page_write(const struct books_page *page, struct books_order **order,
                              struct io_vfs *vfs, const char *path,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
