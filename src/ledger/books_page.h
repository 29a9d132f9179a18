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
#include "ledger/core_frame.h"

struct books_record {
    unsigned __int128 amount;
    uint64_t high, low;
    uint32_t seq_offset; /* from the page's first seq */
    uint32_t below;      /* the record under it in its chain, + 1; 0: none */
    uint32_t asset;
    uint8_t kind;
    bool negative, mint, nonce;
};
_Static_assert(sizeof(struct books_record) == 48, "as counted in README.md");

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
};

/* Room for records_max records and batches_max batches, beginning with this frame's. */
enum ron_err books_page_new(uint32_t records_max, uint32_t batches_max,
                            const struct ledger_frame *first, struct books_page **ret_page,
                            struct ron_errinfo *reterr) RON_MUST_USE;
struct books_page *books_page_drop(struct books_page *page); /* accepts NULL, returns NULL */

/* The most records that a frame can make. */
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
/* As books_run_seqs, but asset 0 is every asset, and the id of an entry or key is compared whole.
 */
size_t books_page_seqs(const struct books_page *page, const struct ledger_thread *thread,
                       uint64_t after, bool newest_first, uint64_t *seqs, size_t seqs_max);

/* Nobody adds any more. Write it as a run. */
enum ron_err books_page_write(const struct books_page *page, struct io_vfs *vfs, const char *path,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
