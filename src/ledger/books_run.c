/*
 * books_run.c - open a run and ask it. See books_run.h.
 */
#include "ledger/books_run.h"

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/mem.h"

static enum ron_err read_exactly(struct io_file *file, uint64_t offset, void *bytes, size_t size,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    size_t done = 0;
    enum ron_err err = io_file_read(file, offset, bytes, size, &done, reterr);

    if (err == RON_ERR_OK && done != size)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "it ends at byte %llu of %llu",
                        (unsigned long long)(offset + done), (unsigned long long)(offset + size));
    return err;
}

/* Head first; nothing is allocated on its word alone, but on the size of the file. */
static enum ron_err load(struct books_run *run, struct ron_errinfo *reterr) RON_BLOCKS
{
    uint8_t bytes[BOOKS_PAGE_SIZE];
    uint64_t pages_end;
    uint8_t *resident;
    enum ron_err err = io_file_size(run->file, &run->file_size, reterr);

    if (err == RON_ERR_OK)
        err = read_exactly(run->file, 0, bytes, sizeof(bytes), reterr);
    if (err == RON_ERR_OK)
        err = books_head_decode(bytes, &run->head, reterr);
    if (err != RON_ERR_OK)
        return err;
    pages_end = (1 + run->head.pages_count) * BOOKS_PAGE_SIZE;
    run->resident_size = run->head.blocks_count * BOOKS_BLOCK_SIZE +
                         run->head.pages_count * sizeof(struct books_place);
    if (run->file_size != pages_end + run->resident_size)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "%llu bytes instead of %llu",
                        (unsigned long long)run->file_size,
                        (unsigned long long)(pages_end + run->resident_size));
    if (run->resident_size > RON_ALLOCATION_SIZE_MAX - BOOKS_BLOCK_SIZE)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "fences and filter");
    run->resident = ron_mem_alloc(run->resident_size + BOOKS_BLOCK_SIZE);
    if (run->resident == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%zu bytes of fences and filter",
                        run->resident_size);
    /* A block that crosses a cache line would cost two. */
    resident = (uint8_t *)run->resident +
               (-(uintptr_t)run->resident & (uintptr_t)(BOOKS_BLOCK_SIZE - 1));
    err = read_exactly(run->file, pages_end, resident, run->resident_size, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (ron_crc32c(0, resident, run->resident_size) != run->head.resident_crc)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "fences and filter failed their check");
    run->filter = (const uint64_t *)(const void *)resident;
    run->fences = (const struct books_place *)(const void *)(resident + run->head.blocks_count *
                                                                            BOOKS_BLOCK_SIZE);
    run->tag = books_head_tag(&run->head);
    io_file_uncache(run->file, 0, BOOKS_PAGE_SIZE); /* nobody reads these again */
    io_file_uncache(run->file, pages_end, 0);
    return RON_ERR_OK;
}

enum ron_err books_run_open(struct io_vfs *vfs, const char *path, struct books_run **ret_run,
                            struct ron_errinfo *reterr)
{
    struct books_run *run = ron_mem_alloc(sizeof(*run));
    enum ron_err err;

    if (run == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "run %s", path);
    rt_atomic_store_u32(&run->refs_count, 1);
    err = io_vfs_open(vfs, path, IO_OPEN_READ, &run->file, reterr);
    if (err == RON_ERR_OK)
        err = load(run, reterr);
    if (err != RON_ERR_OK) {
        (void)books_run_drop(run);
        return ron_wrap(reterr, err, "run %s", path);
    }
    *ret_run = run;
    return RON_ERR_OK;
}

struct books_run *books_run_drop(struct books_run *run)
{
    if (run == NULL || rt_atomic_sub_u32(&run->refs_count, 1) > 1)
        return NULL;
    run->file = io_file_close(run->file);
    run->resident = ron_mem_free(run->resident);
    return ron_mem_free(run);
}

bool books_run_may_have(const struct books_run *run, const struct ledger_thread *thread)
{
    const struct books_place place = books_place_of(thread, 0);
    const uint64_t hash = books_hash(&run->head.root, &place);

    return books_filter_has(run->filter + books_block(&place, run->head.blocks_count), hash);
}

/* Believe a page that was read: sum, tag, number. */
static enum ron_err open_page(const struct books_run *run, uint64_t page, const uint8_t *bytes,
                              struct books_page_reader *ret_reader, struct ron_errinfo *reterr)
{
    const uint8_t *tail = bytes + BOOKS_PAGE_DATA;

    if (ron_load_le32(tail + 12) != ron_crc32c(0, bytes, BOOKS_PAGE_SIZE - 4) ||
        ron_load_le32(tail + 8) != run->tag || ron_load_le32(tail) != page ||
        ron_load_le32(tail + 4) > BOOKS_PAGE_DATA)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "run %s: page %llu: it failed its check",
                        io_file_path(run->file), (unsigned long long)page);
    books_page_open(ret_reader, bytes, run->head.first_seq);
    return RON_ERR_OK;
}

static enum ron_err read_page(struct books_run *run, uint64_t page, uint8_t bytes[BOOKS_PAGE_SIZE],
                              struct books_page_reader *ret_reader,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = read_exactly(run->file, (1 + page) * BOOKS_PAGE_SIZE, bytes, BOOKS_PAGE_SIZE,
                                    reterr);

    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "run %s: page %llu", io_file_path(run->file),
                        (unsigned long long)page);
    return open_page(run, page, bytes, ret_reader, reterr);
}

static enum ron_err bad_page(const struct books_run *run, uint64_t page, struct ron_errinfo *reterr)
{
    return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "run %s: page %llu is malformed",
                    io_file_path(run->file), (unsigned long long)page);
}

/* The last page that does not begin beyond the place; the first one if all do. */
static uint64_t page_of(const struct books_run *run, const struct books_place *place)
{
    uint64_t first = 0, count = run->head.pages_count;

    while (count > 0) {
        uint64_t half = count / 2;
        bool before = books_place_compare(&run->fences[first + half], place) <= 0;

        first = before ? first + half + 1 : first;
        count = before ? count - half - 1 : half;
    }
    return first > 0 ? first - 1 : 0;
}

void books_run_fetch(struct books_run *run, const struct ledger_thread *thread, uint64_t at_seq)
{
    const struct ledger_thread first = {.kind = thread->kind, .id = thread->id, .asset = 1};
    const struct books_place from = books_place_of(&first, 0), to = books_place_of(thread, at_seq);
    const uint64_t page = page_of(run, &from), last = page_of(run, &to);

    io_file_fetch(run->file, (1 + page) * BOOKS_PAGE_SIZE, BOOKS_PAGE_SIZE);
    if (last != page)
        io_file_fetch(run->file, (1 + last) * BOOKS_PAGE_SIZE, BOOKS_PAGE_SIZE);
}

enum ron_err books_run_sum(struct books_run *run, const struct ledger_thread *thread,
                           uint64_t at_seq, struct books_sum *ret_sum, struct ron_errinfo *reterr)
{
    const struct books_place place = books_place_of(thread, at_seq);
    const uint64_t page = page_of(run, &place);
    struct books_page_reader reader;
    uint8_t bytes[BOOKS_PAGE_SIZE];
    struct books_sum sum = {.count = 0};
    enum books_step step;
    enum ron_err err = read_page(run, page, bytes, &reader, reterr);

    if (err != RON_ERR_OK)
        return err;
    while ((step = books_page_step(&reader)) == BOOKS_STEP_POSTING &&
           books_place_compare(&reader.posting.place, &place) <= 0)
        if (books_thread_compare(&reader.posting.place, &place) == 0)
            sum = reader.sum;
    if (step == BOOKS_STEP_BAD)
        return bad_page(run, page, reterr);
    *ret_sum = sum;
    return RON_ERR_OK;
}

static enum ron_err seqs_up(struct books_run *run, const struct books_place *from, uint64_t *seqs,
                            size_t seqs_max, size_t *ret_count,
                            struct ron_errinfo *reterr) RON_BLOCKS
{
    struct books_page_reader reader;
    uint8_t bytes[BOOKS_PAGE_SIZE];
    size_t count = 0;

    for (uint64_t page = page_of(run, from);
         page < run->head.pages_count && books_thread_compare(&run->fences[page], from) <= 0 &&
         count < seqs_max;
         page++) {
        enum ron_err err = read_page(run, page, bytes, &reader, reterr);
        enum books_step step = BOOKS_STEP_END;

        if (err != RON_ERR_OK)
            return err;
        while (count < seqs_max && (step = books_page_step(&reader)) == BOOKS_STEP_POSTING) {
            const struct books_place *at = &reader.posting.place;
            int order = books_thread_compare(at, from);

            if (order > 0)
                break;
            if (order == 0 && at->seq >= from->seq)
                seqs[count++] = at->seq;
        }
        if (step == BOOKS_STEP_BAD)
            return bad_page(run, page, reterr);
    }
    *ret_count = count;
    return RON_ERR_OK;
}

/* The newest of one page that are not beyond `from`, into a ring that holds seqs_max. */
static enum ron_err seqs_of_page(struct books_run *run, uint64_t page,
                                 const struct books_place *from, uint64_t *ring, size_t ring_max,
                                 size_t *ret_found, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct books_page_reader reader;
    uint8_t bytes[BOOKS_PAGE_SIZE];
    size_t found = 0;
    enum books_step step;
    enum ron_err err = read_page(run, page, bytes, &reader, reterr);

    if (err != RON_ERR_OK)
        return err;
    while ((step = books_page_step(&reader)) == BOOKS_STEP_POSTING &&
           books_place_compare(&reader.posting.place, from) <= 0)
        if (books_thread_compare(&reader.posting.place, from) == 0)
            ring[found++ % ring_max] = reader.posting.place.seq;
    if (step == BOOKS_STEP_BAD)
        return bad_page(run, page, reterr);
    *ret_found = found;
    return RON_ERR_OK;
}

static enum ron_err seqs_down(struct books_run *run, const struct books_place *from, uint64_t *ring,
                              uint64_t *seqs, size_t seqs_max, size_t *ret_count,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    size_t count = 0;
    uint64_t page = page_of(run, from);

    for (;;) {
        size_t found = 0;
        enum ron_err err = seqs_of_page(run, page, from, ring, seqs_max, &found, reterr);

        if (err != RON_ERR_OK)
            return err;
        for (size_t i = 0; i < found && i < seqs_max && count < seqs_max; i++)
            seqs[count++] = ring[(found - 1 - i) % seqs_max];
        /* Only a thread that begins the page can have postings before it. */
        if (count == seqs_max || page == 0 || books_thread_compare(&run->fences[page], from) != 0)
            break;
        page--;
    }
    *ret_count = count;
    return RON_ERR_OK;
}

enum ron_err books_run_seqs(struct books_run *run, const struct ledger_thread *thread,
                            uint64_t after, bool newest_first, uint64_t *seqs, size_t seqs_max,
                            size_t *ret_count, struct ron_errinfo *reterr)
{
    struct books_place from = books_place_of(thread, newest_first ? after - 1 : after + 1);
    uint64_t *ring;
    enum ron_err err;

    RON_ASSERT(seqs_max > 0);
    if (newest_first ? after == 0 : after == UINT64_MAX) {
        *ret_count = 0;
        return RON_ERR_OK;
    }
    if (!newest_first)
        return seqs_up(run, &from, seqs, seqs_max, ret_count, reterr);
    ring = ron_mem_alloc_array(seqs_max, sizeof(*ring));
    if (ring == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%zu seqs", seqs_max);
    err = seqs_down(run, &from, ring, seqs, seqs_max, ret_count, reterr);
    (void)ron_mem_free(ring);
    return err;
}

enum ron_err books_run_next_asset(struct books_run *run, const struct ledger_id *account,
                                  uint32_t asset, uint32_t *ret_asset, struct ron_errinfo *reterr)
{
    const struct ledger_thread thread = ledger_account_thread(account, asset);
    const struct books_place from = books_place_of(&thread, 0);
    struct books_page_reader reader;
    uint8_t bytes[BOOKS_PAGE_SIZE];

    *ret_asset = 0;
    for (uint64_t page = page_of(run, &from); page < run->head.pages_count; page++) {
        enum ron_err err = read_page(run, page, bytes, &reader, reterr);
        enum books_step step;

        if (err != RON_ERR_OK)
            return err;
        while ((step = books_page_step(&reader)) == BOOKS_STEP_POSTING) {
            const struct books_place *at = &reader.posting.place;

            if (books_place_compare(at, &from) < 0)
                continue;
            if (at->kind == from.kind && at->high == from.high && at->low == from.low)
                *ret_asset = at->asset;
            return RON_ERR_OK;
        }
        if (step == BOOKS_STEP_BAD)
            return bad_page(run, page, reterr);
    }
    return RON_ERR_OK;
}

static enum ron_err fill_cursor(struct books_cursor *cursor, struct ron_errinfo *reterr) RON_BLOCKS
{
    const uint64_t left = cursor->run->head.pages_count - cursor->page;
    const size_t count = left < BOOKS_CURSOR_PAGES ? (size_t)left : BOOKS_CURSOR_PAGES;
    const uint64_t offset = (1 + cursor->page) * BOOKS_PAGE_SIZE;
    enum ron_err err = RON_ERR_OK;

    if (cursor->past != NULL)
        err = read_exactly(cursor->past, offset, cursor->bytes, count * BOOKS_PAGE_SIZE, NULL);
    if (err != RON_ERR_OK) /* there may be other ways: it is not the run's fault yet */
        cursor->past = io_file_close(cursor->past);
    if (cursor->past == NULL)
        err = read_exactly(cursor->run->file, offset, cursor->bytes, count * BOOKS_PAGE_SIZE,
                           reterr);

    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "run %s: page %llu", io_file_path(cursor->run->file),
                        (unsigned long long)cursor->page);
    cursor->page_end = cursor->page + count;
    return RON_ERR_OK;
}

enum ron_err books_cursor_turn(struct books_cursor *cursor, struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;

    if (cursor->page == cursor->run->head.pages_count) {
        cursor->ended = true;
        return RON_ERR_OK;
    }
    if (cursor->page == cursor->page_end)
        err = fill_cursor(cursor, reterr);
    if (err == RON_ERR_OK)
        err = open_page(cursor->run, cursor->page,
                        cursor->bytes + cursor->page % BOOKS_CURSOR_PAGES * BOOKS_PAGE_SIZE,
                        &cursor->reader, reterr);
    if (err == RON_ERR_OK)
        cursor->page++;
    return err;
}

enum ron_err books_cursor_bad(const struct books_cursor *cursor, struct ron_errinfo *reterr)
{
    return bad_page(cursor->run, cursor->page - 1, reterr);
}

enum ron_err books_cursor_begin(struct books_cursor *cursor, struct books_run *run,
                                struct ron_errinfo *reterr)
{
    cursor->run = run;
    cursor->past = NULL;
    cursor->page = 0;
    cursor->page_end = 0;
    cursor->ended = false;
    cursor->reader = (struct books_page_reader){.used = 0};
    (void)!io_vfs_open(run->file->vfs, io_file_path(run->file), IO_OPEN_DIRECT, &cursor->past,
                       NULL);
    return books_cursor_next(cursor, reterr);
}

void books_cursor_end(struct books_cursor *cursor)
{
    cursor->past = io_file_close(cursor->past);
}
