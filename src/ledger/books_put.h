/*
 * books_put.h - filling a page of a run. Bytes: books_format.h.
 *
 * Inline, because it is done for every posting that is ever made, twice: when its page becomes a
 * run, and when that is merged.
 */
#ifndef RON_LEDGER_BOOKS_PUT_H
#define RON_LEDGER_BOOKS_PUT_H

#include "base/assert.h"
#include "ledger/books_format.h"

enum {
    BOOKS_THREAD_SIZE_MAX = 1 + 16 + 10 + 5 + 25,
    BOOKS_POSTING_SIZE_MAX = 10 + 17,
    /* The byte that a thread begins with. */
    BOOKS_THREAD_KIND = 7,
    BOOKS_THREAD_TERMS = 8,
    BOOKS_THREAD_SHARED = 4, /* bits to the left */
    /* In what a posting begins with: of an account, of others. */
    BOOKS_ACCOUNT_NONCE = 1, /* as books_brief has it */
    BOOKS_ACCOUNT_MORE = 2,
    BOOKS_OTHER_MORE = 1,
};
_Static_assert((int)LEDGER_THREAD__MAX - 1 <= BOOKS_THREAD_KIND, "three bits");

struct books_page_writer {
    uint8_t bytes[BOOKS_PAGE_SIZE];
    size_t used;
    uint64_t first_seq; /* of the run */
    size_t thread_at;   /* the last thread */
    size_t posting_at;  /* the last of the open thread; 0: none is open */
    struct books_place first;
    struct books_place last; /* stays from page to page */
};

static inline void books_page_begin(struct books_page_writer *writer, uint64_t first_seq)
{
    writer->used = 0;
    writer->first_seq = first_seq;
    writer->posting_at = 0;
}
/* Number, tag and sum; the bytes are ready. */
void books_page_end(struct books_page_writer *writer, uint32_t number, uint32_t tag);

/* Bytes from the left that two ids share; the last one is always written. */
static inline unsigned books_shared_size(const struct books_place *place,
                                         const struct books_place *before)
{
    const uint64_t high = place->high ^ before->high, low = place->low ^ before->low;
    const unsigned most = (unsigned)books_id_size(place->kind) - 1;
    unsigned shared = 15;

    if (high != 0)
        shared = (unsigned)__builtin_clzll(high) / 8;
    else if (low != 0)
        shared = 8 + (unsigned)__builtin_clzll(low) / 8;
    return shared < most ? shared : most;
}

uint8_t *books_put_long_varint(uint8_t *at, uint64_t value);
/* Up to 28 bits in four bytes at once, whatever the size: there is always room for more. */
static inline uint8_t *books_put_varint(uint8_t *at, uint64_t value)
{
    const uint32_t v = (uint32_t)value;
    const unsigned more = (31 - (unsigned)__builtin_clz(v | 1)) / 7; /* bytes before the last */
    const uint32_t spread = (v & 0x7f) | (v & 0x3f80) << 1 | (v & 0x1fc000) << 2 |
                            (v & 0xfe00000) << 3;

    if (value >= 1u << 28)
        return books_put_long_varint(at, value);
    ron_store_le32(at, spread | (0x808080u & ((1u << 8 * more) - 1)));
    return at + more + 1;
}

static inline unsigned books_bytes_of(uint64_t value)
{
    return value != 0 ? 8 - (unsigned)__builtin_clzll(value) / 8 : 0;
}

/* There is room for 16 bytes whatever the size. */
static inline uint8_t *books_put_amount(uint8_t *at, const struct books_posting *posting)
{
    const uint64_t high = (uint64_t)(posting->amount >> 64), low = (uint64_t)posting->amount;
    const unsigned size = high != 0 ? 8 + books_bytes_of(high) : books_bytes_of(low);

    *at = (uint8_t)(size | (posting->negative ? BOOKS_AMOUNT_NEGATIVE : 0) |
                    (posting->mint ? BOOKS_AMOUNT_MINT : 0));
    ron_store_le64(at + 1, low);
    ron_store_le64(at + 9, high);
    return at + 1 + size;
}

/* Are there terms that a reader could not know? */
static inline bool books_needs_terms(const struct books_place *place,
                                     const struct books_place *last, const struct books_sum *before)
{
    if (place->kind == LEDGER_THREAD_BATCHES)
        return before->count != 0;
    return place->kind == LEDGER_THREAD_ACCOUNT &&
           (before->count != 0 || before->low != 0 || before->high != 0 || before->mint ||
            place->asset != last->asset);
}
uint8_t *books_put_terms(uint8_t *at, const struct books_place *place,
                         const struct books_sum *before);

static RON_HOT_INLINE uint8_t *books_put_thread(uint8_t *at, const struct books_place *place,
                                                const struct books_place *last,
                                                const struct books_sum *before)
{
    const unsigned shared = books_shared_size(place, last);
    const bool terms = books_needs_terms(place, last, before);
    const unsigned __int128 id = ((unsigned __int128)place->high << 64 | place->low)
                                 << 8 * shared; /* shifted in registers: bytes that are read back
                                                 * in other pieces would be waited for */

    _Static_assert(BOOKS_THREAD_SIZE_MAX >= 1 + 16, "room for all of it, whatever is shared");
    *at++ = (uint8_t)(place->kind | (terms ? BOOKS_THREAD_TERMS : 0) |
                      shared << BOOKS_THREAD_SHARED);
    ron_store_be64(at, (uint64_t)(id >> 64));
    ron_store_be64(at + 8, (uint64_t)id);
    at += books_id_size(place->kind) - shared;
    return terms ? books_put_terms(at, place, before) : at;
}

/* No room for another posting, whatever it is. */
static inline bool books_page_is_full(const struct books_page_writer *writer)
{
    return writer->used > BOOKS_PAGE_DATA - BOOKS_THREAD_SIZE_MAX - BOOKS_POSTING_SIZE_MAX;
}

/* Append; `before` is what its thread comes to so far in the run; `same`: it is the thread of the
 * posting before. */
static RON_HOT_INLINE void books_page_put(struct books_page_writer *writer,
                                          const struct books_posting *posting,
                                          const struct books_sum *before, bool same)
{
    static const struct books_place none;
    const struct books_place *place = &posting->place;
    const bool account = place->kind == LEDGER_THREAD_ACCOUNT;
    uint8_t *at = writer->bytes + writer->used;
    uint64_t gap;

    RON_ASSERT(!books_page_is_full(writer));
    if (writer->posting_at != 0 && same) {
        writer->bytes[writer->posting_at] |= account ? BOOKS_ACCOUNT_MORE : BOOKS_OTHER_MORE;
        RON_ASSERT(place->seq >= writer->last.seq);
        gap = place->seq - writer->last.seq;
    } else {
        writer->thread_at = writer->used;
        at = books_put_thread(at, place, writer->used == 0 ? &none : &writer->last, before);
        RON_ASSERT(place->seq >= writer->first_seq);
        gap = place->seq - writer->first_seq;
    }
    if (writer->used == 0)
        writer->first = *place;
    writer->last = *place;
    writer->posting_at = books_has_prefix_only(place->kind) ? 0 : (size_t)(at - writer->bytes);
    if (account)
        at = books_put_amount(
            books_put_varint(at, gap << 2 | (posting->nonce ? BOOKS_ACCOUNT_NONCE : 0)), posting);
    else
        at = books_put_varint(at, books_has_prefix_only(place->kind) ? gap : gap << 1);
    writer->used = (size_t)(at - writer->bytes);
}

#endif
