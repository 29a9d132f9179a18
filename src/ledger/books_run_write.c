/*
 * books_run_write.c - write a run from postings in order. See books_writer.h.
 */
#include "base/crc32c.h"
#include "base/mem.h"
#include "ledger/books_writer.h"

enum { WRITE_PAGES = 64, FENCES_MIN = 1024, HASHES_MIN = 4096 };

void books_hashes_fini(struct books_hashes *hashes)
{
    hashes->items = ron_mem_free(hashes->items);
    *hashes = (struct books_hashes){.count = 0};
}

enum ron_err books_hashes_grow(struct books_hashes *hashes, struct ron_errinfo *reterr)
{
    const size_t max = hashes->max == 0 ? HASHES_MIN : hashes->max * 2;
    void *larger = ron_mem_resize(hashes->items, max * sizeof(*hashes->items));

    if (larger == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%zu threads", max);
    hashes->items = larger;
    hashes->max = max;
    return RON_ERR_OK;
}

static uint64_t blocks_for(uint64_t threads)
{
    return threads * BOOKS_FILTER_BITS / (BOOKS_BLOCK_SIZE * 8) + 1;
}

static enum ron_err begin(struct books_writer *writer, struct io_vfs *vfs, const char *path,
                          struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err;

    writer->memory = ron_mem_alloc((1 + (size_t)WRITE_PAGES) * BOOKS_PAGE_SIZE);
    if (writer->head.blocks_count > 0)
        writer->filter = ron_mem_alloc_array(writer->head.blocks_count, BOOKS_BLOCK_SIZE);
    writer->fences = ron_mem_alloc_array(FENCES_MIN, sizeof(*writer->fences));
    writer->fences_max = FENCES_MIN;
    if (writer->memory == NULL || writer->fences == NULL ||
        (writer->head.blocks_count > 0 && writer->filter == NULL))
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a filter of %llu blocks",
                        (unsigned long long)writer->head.blocks_count);
    writer->buffer = io_direct_page(writer->memory);
    err = io_replace_begin(&writer->replace, vfs, path, reterr);
    writer->begun = err == RON_ERR_OK;
    return err;
}

enum ron_err books_writer_new(struct io_vfs *vfs, const char *path, const struct books_head *of,
                              uint64_t threads_max, struct books_hashes *hashes,
                              struct books_writer **ret_writer, struct ron_errinfo *reterr)
{
    struct books_writer *writer = ron_mem_alloc(sizeof(*writer));
    enum ron_err err;

    RON_ASSERT(threads_max > 0 || hashes != NULL);
    if (writer == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "write run %s", path);
    writer->head = *of;
    writer->head.pages_count = 0;
    writer->head.threads_count = 0;
    writer->head.blocks_count = threads_max == 0 ? 0 : blocks_for(threads_max);
    writer->hashes = hashes;
    if (hashes != NULL)
        hashes->count = 0;
    writer->tag = books_head_tag(&writer->head);
    books_page_begin(&writer->page, writer->head.first_seq);
    err = begin(writer, vfs, path, reterr);
    if (err != RON_ERR_OK) {
        (void)books_writer_free(writer);
        return ron_wrap(reterr, err, "write run %s", path);
    }
    *ret_writer = writer;
    return RON_ERR_OK;
}

struct books_writer *books_writer_free(struct books_writer *writer)
{
    if (writer == NULL)
        return NULL;
    if (writer->begun && !writer->ended)
        io_replace_abandon(&writer->replace);
    writer->memory = ron_mem_free(writer->memory);
    writer->filter = ron_mem_free(writer->filter);
    writer->fences = ron_mem_free(writer->fences);
    return ron_mem_free(writer);
}

static enum ron_err flush(struct books_writer *writer, struct ron_errinfo *reterr) RON_BLOCKS
{
    const uint64_t first = writer->head.pages_count - writer->buffered_count;
    const uint64_t offset = (1 + first) * BOOKS_PAGE_SIZE;
    const struct ron_slice part = {writer->buffer, writer->buffered_count * BOOKS_PAGE_SIZE};

    if (writer->buffered_count == 0)
        return RON_ERR_OK;
    writer->buffered_count = 0;
    return io_replace_write_past(&writer->replace, offset, part, reterr);
}

/* What the last thread of the page that ends comes to: its next posting may begin another. */
static struct books_sum sum_last_thread(const struct books_page_writer *page)
{
    struct books_page_reader reader;
    enum books_step step;

    books_page_open(&reader, page->bytes, page->first_seq);
    reader.at = page->thread_at; /* with another id before it, which its sum does not depend on */
    do
        step = books_page_step(&reader);
    while (step == BOOKS_STEP_POSTING);
    RON_ASSERT(step == BOOKS_STEP_END);
    return reader.sum;
}

enum ron_err books_writer_turn(struct books_writer *writer, struct ron_errinfo *reterr)
{
    const uint64_t number = writer->head.pages_count;

    if (number == UINT32_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "more than %u pages", UINT32_MAX);
    if (number == writer->fences_max) {
        void *larger = ron_mem_resize(writer->fences,
                                      writer->fences_max * 2 * sizeof(*writer->fences));

        if (larger == NULL)
            return ron_fail(reterr, RON_ERR_NO_MEMORY, "%zu fences", writer->fences_max * 2);
        writer->fences = larger;
        writer->fences_max *= 2;
    }
    books_page_end(&writer->page, (uint32_t)number, writer->tag);
    writer->sum = sum_last_thread(&writer->page);
    writer->fences[number] = writer->page.first;
    memcpy(writer->buffer + writer->buffered_count * BOOKS_PAGE_SIZE, writer->page.bytes,
           BOOKS_PAGE_SIZE);
    writer->head.pages_count++;
    writer->buffered_count++;
    books_page_begin(&writer->page, writer->head.first_seq);
    return writer->buffered_count == WRITE_PAGES ? flush(writer, reterr) : RON_ERR_OK;
}

enum ron_err books_writer_add_slow(struct books_writer *writer, const struct books_posting *posting,
                                   struct ron_errinfo *reterr)
{
    return books_writer_add(writer, posting, reterr);
}

/* All threads are known, and so the size of the filter. */
static enum ron_err make_filter(struct books_writer *writer, struct ron_errinfo *reterr)
{
    if (writer->filter == NULL) {
        writer->head.blocks_count = blocks_for(writer->head.threads_count);
        writer->filter = ron_mem_alloc_array(writer->head.blocks_count, BOOKS_BLOCK_SIZE);
        if (writer->filter == NULL)
            return ron_fail(reterr, RON_ERR_NO_MEMORY, "a filter of %llu blocks",
                            (unsigned long long)writer->head.blocks_count);
        for (size_t i = 0; i < writer->hashes->count; i++) {
            const struct books_place place = {.high = writer->hashes->items[i].high};

            books_filter_add(writer->filter + books_block(&place, writer->head.blocks_count),
                             writer->hashes->items[i].hash);
        }
    }
    return RON_ERR_OK;
}

static enum ron_err write_rest(struct books_writer *writer, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct books_head *head = &writer->head;
    const struct ron_slice parts[] = {
        {(const uint8_t *)writer->filter, head->blocks_count * BOOKS_BLOCK_SIZE},
        {(const uint8_t *)writer->fences, head->pages_count * sizeof(*writer->fences)},
    };
    uint8_t bytes[BOOKS_PAGE_SIZE];
    enum ron_err err = io_file_write(writer->replace.file,
                                     (1 + head->pages_count) * BOOKS_PAGE_SIZE, parts,
                                     RON_ARRAY_COUNT(parts), reterr);

    if (err != RON_ERR_OK)
        return err;
    head->resident_crc = ron_crc32c(ron_crc32c(0, parts[0].data, parts[0].size), parts[1].data,
                                    parts[1].size);
    books_head_encode(head, bytes);
    return io_file_write(writer->replace.file, 0, &(struct ron_slice){bytes, sizeof(bytes)}, 1,
                         reterr);
}

enum ron_err books_writer_end(struct books_writer *writer, struct ron_errinfo *reterr)
{
    enum ron_err err;

    RON_ASSERT(writer->page.last.kind != 0);
    err = books_writer_turn(writer, reterr);
    if (err == RON_ERR_OK)
        err = flush(writer, reterr);
    if (err == RON_ERR_OK)
        err = make_filter(writer, reterr);
    if (err == RON_ERR_OK)
        err = write_rest(writer, reterr);
    if (err != RON_ERR_OK)
        return err;
    writer->ended = true; /* committed, or abandoned by the commit */
    return io_replace_commit(&writer->replace, reterr);
}
