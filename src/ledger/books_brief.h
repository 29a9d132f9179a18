/*
 * books_brief.h - what nearly all postings are, put into a page in short.
 *
 * The same bytes as books_put.h, without the questions that are answered alike for an account of
 * the asset before it.
 */
#ifndef RON_LEDGER_BOOKS_BRIEF_H
#define RON_LEDGER_BOOKS_BRIEF_H

#include "ledger/books_put.h"

/* An account's, of an amount that is not huge. */
struct books_brief {
    uint64_t high, low; /* the id as a big-endian number */
    uint64_t amount, seq;
    uint32_t asset;
    uint32_t nonce; /* 0 or 1 */
    uint32_t signs; /* BOOKS_AMOUNT_NEGATIVE, BOOKS_AMOUNT_MINT */
};
static inline struct books_posting books_brief_posting(const struct books_brief *brief)
{
    return (struct books_posting){
        .place = {brief->high, brief->low, brief->seq, brief->asset, LEDGER_THREAD_ACCOUNT},
        .amount = brief->amount,
        .negative = (brief->signs & BOOKS_AMOUNT_NEGATIVE) != 0,
        .mint = (brief->signs & BOOKS_AMOUNT_MINT) != 0,
        .nonce = brief->nonce != 0,
    };
}

/* Can it be appended in short: the page goes on with an account of the same asset? */
static inline bool books_page_takes_brief(const struct books_page_writer *writer, uint32_t asset)
{
    return writer->posting_at != 0 && writer->last.kind == LEDGER_THREAD_ACCOUNT &&
           writer->last.asset == asset && !books_page_is_full(writer);
}

/* An account without terms whose id shares less than half with the one before it. */
static RON_HOT_INLINE uint8_t *books_put_brief_thread(uint8_t *at, uint64_t high, uint64_t low,
                                                      unsigned shared)
{
    const unsigned shift = 8 * shared;

    *at = (uint8_t)(LEDGER_THREAD_ACCOUNT | shared << BOOKS_THREAD_SHARED);
    ron_store_be64(at + 1, high << shift | low >> 1 >> (63 - shift));
    ron_store_be64(at + 9, low << shift);
    return at + 17 - shared;
}

/* As books_page_put, of what books_page_takes_brief: without terms. */
static RON_HOT_INLINE void books_page_put_brief(struct books_page_writer *writer,
                                                const struct books_brief *brief, bool same)
{
    const unsigned size = books_bytes_of(brief->amount);
    uint8_t *at = writer->bytes + writer->used;
    uint64_t since = writer->first_seq;

    if (same) {
        writer->bytes[writer->posting_at] |= BOOKS_ACCOUNT_MORE;
        since = writer->last.seq;
    } else {
        const struct books_place place = {.high = brief->high,
                                          .low = brief->low,
                                          .asset = writer->last.asset,
                                          .kind = LEDGER_THREAD_ACCOUNT};
        const unsigned shared = books_shared_size(&place, &writer->last);

        writer->thread_at = writer->used;
        at = RON_UNLIKELY(shared >= 8)
                 ? books_put_thread(at, &place, &writer->last, &(struct books_sum){.count = 0})
                 : books_put_brief_thread(at, brief->high, brief->low, shared);
        writer->last.high = brief->high;
        writer->last.low = brief->low;
    }
    RON_ASSERT(brief->seq >= since);
    writer->last.seq = brief->seq;
    writer->posting_at = (size_t)(at - writer->bytes);
    at = books_put_varint(at, (brief->seq - since) << 2 | brief->nonce);
    *at = (uint8_t)(size | brief->signs);
    ron_store_le64(at + 1, brief->amount);
    writer->used = (size_t)(at + 1 + size - writer->bytes);
}

#endif
