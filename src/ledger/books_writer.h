/*
 * books_writer.h - write a run: postings in order, then it is there and durable, or not at all.
 *
 * Inline where it is done for every posting; the rest is in books_run_write.c.
 */
#ifndef RON_LEDGER_BOOKS_WRITER_H
#define RON_LEDGER_BOOKS_WRITER_H

#include "ledger/books_brief.h"
#include "ledger/books_run.h"

/* Of a thread, until it is known how many there are. */
struct books_hash_of {
    uint64_t high, hash;
};
/* Whoever writes many runs keeps this from one to the next. */
struct books_hashes {
    struct books_hash_of *items;
    size_t count, max;
};
void books_hashes_fini(struct books_hashes *hashes);

struct books_writer {
    struct books_head head;
    uint32_t tag;
    struct io_replace replace;
    bool begun, ended;
    struct books_page_writer page;
    struct books_sum sum; /* of the thread of the last posting in pages that are over */
    uint64_t *filter;     /* NULL: it is made of `hashes` at the end */
    struct books_hashes *hashes;
    struct books_place *fences;
    size_t fences_max;
    void *memory;
    uint8_t *buffer; /* pages on their way, in `memory` */
    size_t buffered_count;
};

/* threads_max is for the filter; 0: they are few enough to be counted first, in 16 bytes each of
 * `hashes`, which is borrowed until the writer is freed. */
enum ron_err books_writer_new(struct io_vfs *vfs, const char *path, const struct books_head *of,
                              uint64_t threads_max, struct books_hashes *hashes,
                              struct books_writer **ret_writer,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
enum ron_err books_writer_end(struct books_writer *writer,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Ended or not: what is not ended leaves nothing. Accepts NULL, returns NULL. */
struct books_writer *books_writer_free(struct books_writer *writer) RON_BLOCKS;

/* Of books_writer_add: the page is full; there is no room for another hash. */
enum ron_err books_writer_turn(struct books_writer *writer,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
enum ron_err books_hashes_grow(struct books_hashes *hashes,
                               struct ron_errinfo *reterr) RON_MUST_USE;
/* books_writer_add, where it is seldom. */
enum ron_err books_writer_add_slow(struct books_writer *writer, const struct books_posting *posting,
                                   struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* A thread begins. */
RON_MUST_USE static inline enum ron_err books_writer_thread(struct books_writer *writer,
                                                            const struct books_place *place,
                                                            struct ron_errinfo *reterr)
{
    const uint64_t hash = books_hash(&writer->head.root, place);
    struct books_hashes *hashes = writer->hashes;

    writer->head.threads_count++;
    if (writer->filter != NULL) {
        books_filter_add(writer->filter + books_block(place, writer->head.blocks_count), hash);
        return RON_ERR_OK;
    }
    if (hashes->count == hashes->max) {
        enum ron_err err = books_hashes_grow(hashes, reterr);

        if (err != RON_ERR_OK)
            return err;
    }
    hashes->items[hashes->count++] = (struct books_hash_of){place->high, hash};
    return RON_ERR_OK;
}

RON_MUST_USE static RON_HOT_INLINE enum ron_err
books_writer_add(struct books_writer *writer, const struct books_posting *posting,
                 struct ron_errinfo *reterr) RON_BLOCKS
{
    static const struct books_sum none;
    const struct books_place *place = &posting->place;
    const int order = books_thread_compare(&writer->page.last, place);
    enum ron_err err;

    RON_ASSERT(!writer->ended);
    RON_ASSERT(order < 0 || (order == 0 && writer->page.last.seq <= place->seq));
    RON_ASSERT(place->seq >= writer->head.first_seq);
    RON_ASSERT(place->seq <= writer->head.last_seq);
    if (order != 0) { /* the first one, too: no thread is of kind 0 */
        err = books_writer_thread(writer, place, reterr);
        if (err != RON_ERR_OK)
            return err;
    }
    if (books_page_is_full(&writer->page)) {
        err = books_writer_turn(writer, reterr);
        if (err != RON_ERR_OK)
            return err;
    }
    books_page_put(&writer->page, posting, order == 0 ? &writer->sum : &none, order == 0);
    return RON_ERR_OK;
}

/* As books_writer_add, in short where that can be. */
RON_MUST_USE static RON_HOT_INLINE enum ron_err
books_writer_add_brief(struct books_writer *writer, const struct books_brief *brief,
                       struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct books_place *last = &writer->page.last;
    const bool same = brief->high == last->high && brief->low == last->low;

    if (RON_UNLIKELY(!books_page_takes_brief(&writer->page, brief->asset))) {
        const struct books_posting posting = books_brief_posting(brief);

        return books_writer_add_slow(writer, &posting, reterr);
    }
    RON_ASSERT(brief->seq <= writer->head.last_seq);
    if (!same) {
        const struct books_place place = {brief->high, brief->low, brief->seq, brief->asset,
                                          LEDGER_THREAD_ACCOUNT};
        enum ron_err err = books_writer_thread(writer, &place, reterr);

        RON_ASSERT(brief->high > last->high ||
                   (brief->high == last->high && brief->low > last->low));
        if (err != RON_ERR_OK)
            return err;
    }
    books_page_put_brief(&writer->page, brief, same);
    return RON_ERR_OK;
}

#endif
