/*
 * books_format.h - postings, threads and the bytes of a run.
 *
 * A posting says that an entry belongs to a thread. Everything the books know is one: an
 * idempotency key is a thread of one posting (the first entry of its batch); the starts of batches
 * are a thread; those of an account and asset carry the amounts. A run holds the
 * postings of entries first_seq..last_seq, whole batches, ascending by (kind, id, asset, seq).
 * Little-endian:
 *
 *     head, 4096 bytes                    page, 4096 bytes, number 0, 1, 2 ...
 *      0 magic "RONBOOK\1" 8                 0 threads, one after the other, then zeros
 *      8 version u32 = 4, 12 zero u32     4080 page number u32
 *     16 first_seq u64, 24 last_seq       4084 bytes used u32
 *     32 first_batch u64, 40 last_batch   4088 tag u32
 *     48 root of the last batch 32        4092 CRC-32C of 0..4092 u32
 *     80 pages u64, 88 filter blocks
 *     96 threads u64
 *    104 CRC-32C of the resident part u32
 *    108 zeros to 4092, CRC-32C of 0..4092 u32
 *
 * Head, pages, resident part: filter blocks (64 each), one fence per page (its first posting: id
 * 16 as two numbers, seq u64, asset u32, kind u32). A thread in a page:
 *
 *     u8: kind, +8 if terms follow, +16 for each byte that its id shares with that of the thread
 *         before it in the page, from the left (at most 7 or 15; before the first one: zeros)
 *     id without these: its first 8 bytes (key: checked against the log), else 16
 *     terms, of account and batch: count varint, and of account: asset varint, sum: what earlier
 *         pages of the run have of it. Without terms: nothing, and the asset before it in the page
 *     postings: seq varint (first: since first_seq; else since the one before), as it is of a key,
 *         which has one; of an account 4 * seq, +1 if it used a nonce, +2 if another
 *         follows in the page, then amount; of others 2 * seq, +1 if another follows
 *
 * amount = u8 (bytes 0..16, +64 debit of a Mint, +128 negative) and so many bytes; sum = u8 (bytes
 * 0..24, +64 there was a debit of a Mint) and so many bytes of a two's complement. Varint: 7 bits a
 * byte, lowest first, +128 if more follow.
 *
 * Valid: sums right, tag (CRC-32C of head bytes 0..80) and number those of the page, the file as
 * long as its head says, threads and postings within their page. A run belongs to the log whose
 * batch last_batch ends at last_seq with this root; any other is made again from the log.
 */
#ifndef RON_LEDGER_BOOKS_FORMAT_H
#define RON_LEDGER_BOOKS_FORMAT_H

#include "base/sha256.h"
#include "ledger/books.h"

enum {
    BOOKS_VERSION = 4,
    BOOKS_PAGE_SIZE = 4096,
    BOOKS_PAGE_DATA = 4080,
    BOOKS_BLOCK_WORDS = 8,
    BOOKS_BLOCK_SIZE = 64,
    BOOKS_FILTER_BITS = 10, /* per thread */
    /* In the byte that an amount begins with. */
    BOOKS_AMOUNT_MINT = 64,
    BOOKS_AMOUNT_NEGATIVE = 128,
};

static inline bool books_has_prefix_only(uint32_t kind)
{
    return kind == LEDGER_THREAD_KEY;
}
static inline size_t books_id_size(uint32_t kind)
{
    return books_has_prefix_only(kind) ? 8 : 16;
}

/* Where a posting stands in the order of a run; also the fence of a page, as stored. */
struct books_place {
    uint64_t high, low; /* the id as a big-endian number */
    uint64_t seq;
    uint32_t asset;
    uint32_t kind; /* enum ledger_thread_kind */
};
_Static_assert(sizeof(struct books_place) == 32, "stored as it is");

struct books_posting {
    struct books_place place;
    unsigned __int128 amount; /* of an account's */
    bool negative, mint, nonce;
};

/* What postings of one thread come to. */
struct books_sum {
    unsigned __int128 low; /* 192 bits, two's complement */
    int64_t high;
    uint64_t count; /* postings; of an account: nonces used */
    bool mint;      /* the thread is that of a sys/mint account */
};

struct books_head {
    uint64_t first_seq, last_seq, first_batch, last_batch;
    struct ron_sha256 root;
    uint64_t pages_count, blocks_count, threads_count;
    uint32_t resident_crc;
};

void books_head_encode(const struct books_head *head, uint8_t bytes[BOOKS_PAGE_SIZE]);
/* RON_ERR_WAL_CORRUPT, RON_ERR_VERSION_SKEW. */
enum ron_err books_head_decode(const uint8_t bytes[BOOKS_PAGE_SIZE], struct books_head *ret_head,
                               struct ron_errinfo *reterr) RON_MUST_USE;
uint32_t books_head_tag(const struct books_head *head);

static inline struct books_place books_place_of(const struct ledger_thread *thread, uint64_t seq)
{
    return (struct books_place){
        ron_load_be64(thread->id.bytes),
        thread->kind == LEDGER_THREAD_KEY ? 0 : ron_load_be64(thread->id.bytes + 8), seq,
        thread->asset, thread->kind};
}
/* Negative, 0 or positive: without and with the seq. */
static inline int books_thread_compare(const struct books_place *a, const struct books_place *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->high != b->high)
        return a->high < b->high ? -1 : 1;
    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    return a->asset < b->asset ? -1 : a->asset > b->asset;
}
static inline int books_place_compare(const struct books_place *a, const struct books_place *b)
{
    int order = books_thread_compare(a, b);

    return order != 0 ? order : a->seq < b->seq ? -1 : a->seq > b->seq;
}

/* Without a question about the sign, which would be answered wrong every second time. */
static inline void books_sum_move(struct books_sum *sum, unsigned __int128 amount, bool negative)
{
    const unsigned __int128 sign = -(unsigned __int128)negative;
    const unsigned __int128 moved = (amount ^ sign) + negative; /* modulo 2^128 */

    sum->low += moved;
    sum->high += (sum->low < moved) - (int64_t)(negative & (amount != 0));
}

static inline void books_sum_add(struct books_sum *sum, const struct books_posting *posting)
{
    if (posting->place.kind != LEDGER_THREAD_ACCOUNT) {
        sum->count++;
        return;
    }
    sum->count += posting->nonce;
    sum->mint |= posting->mint;
    books_sum_move(sum, posting->amount, posting->negative);
}
void books_sum_join(struct books_sum *sum, const struct books_sum *other);

/* The filter: a thread of any asset. Which bits are set depends on the root, which nobody who
 * chooses ids knows yet; the block follows the order of ids, so that a run's filter is written from
 * its beginning to its end. Who makes ids that crowd a block makes questions about those slow. */
static inline uint64_t books_hash(const struct ron_sha256 *root, const struct books_place *place)
{
    unsigned __int128 product = (unsigned __int128)(place->high ^ ron_load_le64(root->bytes)) *
                                (place->low ^ ron_load_le64(root->bytes + 8) ^
                                 place->kind * 0x9e3779b97f4a7c15u);

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}
static inline size_t books_block(const struct books_place *place, uint64_t blocks_count)
{
    return (size_t)(((unsigned __int128)place->high * blocks_count) >> 64) * BOOKS_BLOCK_WORDS;
}
static inline void books_filter_add(uint64_t *words, uint64_t hash)
{
    uint64_t bits = hash * 0x9e3779b97f4a7c15u;

#pragma GCC unroll 8
    for (unsigned i = 0; i < BOOKS_BLOCK_WORDS; i++)
        words[i] |= (uint64_t)1 << (bits >> (16 + 6 * i) & 63);
}
static inline bool books_filter_has(const uint64_t *words, uint64_t hash)
{
    uint64_t bits = hash * 0x9e3779b97f4a7c15u;
    uint64_t all = 1;

    for (unsigned i = 0; i < BOOKS_BLOCK_WORDS; i++)
        all &= words[i] >> (bits >> (16 + 6 * i) & 63);
    return all != 0;
}

#endif
