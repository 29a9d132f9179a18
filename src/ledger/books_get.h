/*
 * books_get.h - the postings of a page, one by one. Bytes: books_format.h.
 *
 * Inline, as books_put.h, for whoever merges.
 */
#ifndef RON_LEDGER_BOOKS_GET_H
#define RON_LEDGER_BOOKS_GET_H

#include "ledger/books_put.h"

/* Reading a page that was checked. */
struct books_page_reader {
    const uint8_t *bytes;
    size_t at, used;
    uint64_t first_seq;
    bool more;   /* another one of the thread follows */
    bool opened; /* the posting is the first of its thread in this page */
    struct books_posting posting;
    struct books_sum sum; /* of its thread in the run, with the posting; not of a key */
};
enum books_step { BOOKS_STEP_END, BOOKS_STEP_POSTING, BOOKS_STEP_BAD };
void books_page_open(struct books_page_reader *reader, const uint8_t *bytes, uint64_t first_seq);
enum books_step books_page_step(struct books_page_reader *reader);

static inline bool books_get_varint(struct books_page_reader *reader, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (reader->at <
        reader->used) { /* most have four bytes or fewer; behind a page's data is more */
        const uint32_t bytes = ron_load_le32(reader->bytes + reader->at);
        const uint32_t ends = ~bytes & 0x80808080u;
        const size_t size = ends == 0 ? 0 : (size_t)__builtin_ctz(ends) / 8 + 1;

        if (size > 0 && size <= reader->used - reader->at) {
            const uint32_t v = bytes & (uint32_t)((UINT64_C(1) << 8 * size) - 1);

            *ret_value = (v & 0x7f) | (v >> 1 & 0x3f80) | (v >> 2 & 0x1fc000) |
                         (v >> 3 & 0xfe00000);
            reader->at += size;
            return true;
        }
    }
    for (unsigned shift = 0; shift < 64 && reader->at < reader->used; shift += 7) {
        const uint8_t byte = reader->bytes[reader->at++];

        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static inline bool books_get_amount(struct books_page_reader *reader, struct books_posting *posting)
{
    const uint8_t *at = reader->bytes + reader->at;
    size_t size;

    if (reader->at == reader->used)
        return false;
    size = *at & 63;
    if (size > 16 || reader->used - reader->at <= size)
        return false;
    posting->negative = (*at & BOOKS_AMOUNT_NEGATIVE) != 0;
    posting->mint = (*at & BOOKS_AMOUNT_MINT) != 0;
    _Static_assert(BOOKS_PAGE_DATA + 16 <= BOOKS_PAGE_SIZE, "16 bytes may be read, if not used");
    memcpy(&posting->amount, at + 1, 16);
    if (size < 16)
        posting->amount &= ((unsigned __int128)1 << (8 * size)) - 1;
    reader->at += 1 + size;
    return true;
}

/* The id of the thread that begins here, from that of the one before it. */
static inline bool books_get_id(struct books_page_reader *reader, uint32_t kind,
                                struct books_place *place)
{
    const size_t size = books_id_size(kind);
    const size_t shared = reader->bytes[reader->at++] >> BOOKS_THREAD_SHARED;
    const uint8_t *at = reader->bytes + reader->at;
    const unsigned __int128 all = ~(unsigned __int128)0;
    unsigned __int128 id;

    if (shared >= size || reader->used - reader->at < size - shared)
        return false;
    /* As it was put: in registers. 16 bytes may be read here, too. */
    id = ((unsigned __int128)ron_load_be64(at) << 64 | ron_load_be64(at + 8)) >> 8 * shared;
    id |= ((unsigned __int128)place->high << 64 | place->low) & ~(all >> 8 * shared);
    place->high = (uint64_t)(id >> 64);
    place->low = size > 8 ? (uint64_t)id : 0;
    reader->at += size - shared;
    return true;
}

bool books_get_terms(struct books_page_reader *reader);
static inline bool books_get_thread(struct books_page_reader *reader)
{
    struct books_place *place = &reader->posting.place;
    const unsigned head = reader->bytes[reader->at];
    const uint32_t kind = head & BOOKS_THREAD_KIND;

    if (kind == 0 || kind >= LEDGER_THREAD__MAX || !books_get_id(reader, kind, place))
        return false;
    place->kind = kind;
    place->seq = reader->first_seq;
    if (place->kind != LEDGER_THREAD_ACCOUNT)
        place->asset = 0;
    reader->sum = (struct books_sum){.count = 0};
    return (head & BOOKS_THREAD_TERMS) == 0 || books_get_terms(reader);
}

/* The next one; `sums`: what its thread comes to is wanted, too. */
static RON_HOT_INLINE enum books_step books_page_step_in(struct books_page_reader *reader,
                                                         bool sums)
{
    struct books_posting *posting = &reader->posting;
    uint64_t gap = 0;

    reader->opened = !reader->more;
    if (!reader->more) {
        if (reader->at == reader->used)
            return BOOKS_STEP_END;
        if (!books_get_thread(reader))
            return BOOKS_STEP_BAD;
    }
    if (!books_get_varint(reader, &gap))
        return BOOKS_STEP_BAD;
    if (books_has_prefix_only(posting->place.kind)) {
        posting->place.seq += gap;
        return BOOKS_STEP_POSTING;
    }
    if (posting->place.kind == LEDGER_THREAD_ACCOUNT) {
        posting->nonce = (gap & BOOKS_ACCOUNT_NONCE) != 0;
        reader->more = (gap & BOOKS_ACCOUNT_MORE) != 0;
        gap >>= 2;
        if (!books_get_amount(reader, posting))
            return BOOKS_STEP_BAD;
    } else {
        reader->more = (gap & BOOKS_OTHER_MORE) != 0;
        gap >>= 1;
    }
    posting->place.seq += gap;
    if (sums)
        books_sum_add(&reader->sum, posting);
    return BOOKS_STEP_POSTING;
}

#endif
