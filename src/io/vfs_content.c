/*
 * vfs_content.c - the bytes of a file in memory. See vfs_content.h.
 *
 * Beyond the table, and where it holds NULL, all bytes are zero; so are the bytes of a page behind
 * the end of the file.
 */
#include "io/vfs_content.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/mem.h"

enum { PAGE_SIZE = 4096 };

struct page {
    uint32_t refs_count;
    uint8_t bytes[PAGE_SIZE];
};
struct io_content {
    uint32_t refs_count;
    uint64_t size;
    size_t pages_count; /* of the table; 0: none */
    struct page **pages;
};

static const size_t pages_max = RON_ALLOCATION_SIZE_MAX / sizeof(struct page *);

struct io_content *io_content_new(void)
{
    struct io_content *content = ron_mem_alloc(sizeof(*content));

    if (content != NULL)
        content->refs_count = 1;
    return content;
}

struct io_content *io_content_ref(struct io_content *content)
{
    RON_ASSERT(content->refs_count > 0);
    content->refs_count++;
    return content;
}

static void page_unref(struct page *page)
{
    if (page != NULL && --page->refs_count == 0)
        ron_mem_free(page);
}

void io_content_unref(struct io_content *content)
{
    RON_ASSERT(content->refs_count > 0);
    if (--content->refs_count > 0)
        return;
    for (size_t i = 0; i < content->pages_count; i++)
        page_unref(content->pages[i]);
    ron_mem_free(content->pages);
    ron_mem_free(content);
}

uint64_t io_content_size(const struct io_content *content)
{
    return content->size;
}

/* One page's share of a range. */
struct piece {
    size_t page;   /* its index */
    size_t offset; /* in the page */
    size_t size;
};

static struct piece piece_at(uint64_t offset, uint64_t size)
{
    struct piece piece = {(size_t)(offset / PAGE_SIZE), (size_t)(offset % PAGE_SIZE), 0};

    piece.size = PAGE_SIZE - piece.offset;
    if (piece.size > size)
        piece.size = (size_t)size;
    return piece;
}

size_t io_content_read(const struct io_content *content, uint64_t offset, void *bytes, size_t size)
{
    size_t done = 0;

    if (offset >= content->size)
        return 0;
    if (size > content->size - offset)
        size = (size_t)(content->size - offset);
    while (done < size) {
        struct piece piece = piece_at(offset + done, size - done);
        const struct page *page = piece.page < content->pages_count ? content->pages[piece.page]
                                                                    : NULL;

        if (page == NULL)
            memset((uint8_t *)bytes + done, 0, piece.size);
        else
            memcpy((uint8_t *)bytes + done, page->bytes + piece.offset, piece.size);
        done += piece.size;
    }
    return size;
}

/* Make *content ours alone: a table of its own, pages still shared. */
static bool make_unique(struct io_content **content)
{
    struct io_content *old = *content;
    struct io_content *copy;

    if (old->refs_count == 1)
        return true;
    copy = io_content_new();
    if (copy == NULL)
        return false;
    if (old->pages_count > 0) {
        copy->pages = ron_mem_alloc_array(old->pages_count, sizeof(*copy->pages));
        if (copy->pages == NULL) {
            ron_mem_free(copy);
            return false;
        }
    }
    copy->size = old->size;
    copy->pages_count = old->pages_count;
    for (size_t i = 0; i < old->pages_count; i++) {
        copy->pages[i] = old->pages[i];
        if (copy->pages[i] != NULL)
            copy->pages[i]->refs_count++;
    }
    io_content_unref(old);
    *content = copy;
    return true;
}

static enum ron_err grow_table(struct io_content *content, size_t index)
{
    size_t count = content->pages_count;
    struct page **pages;

    if (index < count)
        return RON_ERR_OK;
    if (index >= pages_max)
        return RON_ERR_PERSISTENCE_FULL;
    count = index + 1 > count + count / 2 ? index + 1 : count + count / 2;
    if (count > pages_max)
        count = pages_max;
    pages = ron_mem_resize(content->pages, count * sizeof(*pages));
    if (pages == NULL)
        return RON_ERR_NO_MEMORY;
    memset(pages + content->pages_count, 0, (count - content->pages_count) * sizeof(*pages));
    content->pages = pages;
    content->pages_count = count;
    return RON_ERR_OK;
}

/* Make the page ours alone, with the bytes it has. */
static enum ron_err own_page(struct io_content *content, size_t index)
{
    enum ron_err err = grow_table(content, index);
    struct page *old;
    struct page *page;

    if (err != RON_ERR_OK)
        return err;
    old = content->pages[index];
    if (old != NULL && old->refs_count == 1)
        return RON_ERR_OK;
    page = ron_mem_alloc(sizeof(*page));
    if (page == NULL)
        return RON_ERR_NO_MEMORY;
    page->refs_count = 1;
    if (old != NULL)
        memcpy(page->bytes, old->bytes, PAGE_SIZE);
    page_unref(old);
    content->pages[index] = page;
    return RON_ERR_OK;
}

static bool all_zero(const uint8_t *bytes, size_t size)
{
    return bytes == NULL || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

/* Zeros where nothing is, or over a whole page, need no page. */
static bool needs_page(const struct io_content *content, struct piece piece, const uint8_t *bytes)
{
    bool there = piece.page < content->pages_count && content->pages[piece.page] != NULL;

    if (!all_zero(bytes, piece.size))
        return true;
    return there && piece.size < PAGE_SIZE;
}

static void put_piece(struct io_content *content, struct piece piece, const uint8_t *bytes)
{
    if (!needs_page(content, piece, bytes)) {
        if (piece.page < content->pages_count) {
            page_unref(content->pages[piece.page]);
            content->pages[piece.page] = NULL;
        }
    } else if (bytes == NULL) {
        memset(content->pages[piece.page]->bytes + piece.offset, 0, piece.size);
    } else {
        memcpy(content->pages[piece.page]->bytes + piece.offset, bytes, piece.size);
    }
}

enum ron_err io_content_write(struct io_content **ref, uint64_t offset, const uint8_t *bytes,
                              uint64_t size)
{
    struct io_content *content;
    struct piece piece;

    if (!make_unique(ref))
        return RON_ERR_NO_MEMORY;
    content = *ref;
    /* First all the memory, then the bytes: a failure changes nothing that can be read. */
    for (uint64_t done = 0; done < size; done += piece.size) {
        enum ron_err err = RON_ERR_OK;

        piece = piece_at(offset + done, size - done);
        if (needs_page(content, piece, bytes == NULL ? NULL : bytes + done))
            err = own_page(content, piece.page);
        else if (piece.page >= content->pages_count && bytes == NULL)
            break; /* zeros beyond the table, to the end */
        if (err != RON_ERR_OK)
            return err;
    }
    for (uint64_t done = 0; done < size; done += piece.size) {
        piece = piece_at(offset + done, size - done);
        if (piece.page >= content->pages_count)
            break; /* the table was grown for every page that is needed */
        put_piece(content, piece, bytes == NULL ? NULL : bytes + done);
    }
    if (offset + size > content->size)
        content->size = offset + size;
    return RON_ERR_OK;
}

enum ron_err io_content_resize(struct io_content **ref, uint64_t size)
{
    struct io_content *content;

    if (!make_unique(ref))
        return RON_ERR_NO_MEMORY;
    content = *ref;
    if (size < content->size) {
        struct piece tail = piece_at(size, PAGE_SIZE);
        size_t first_gone = tail.offset == 0 ? tail.page : tail.page + 1;

        if (first_gone > tail.page && needs_page(content, tail, NULL)) {
            enum ron_err err = own_page(content, tail.page);

            if (err != RON_ERR_OK)
                return err;
            put_piece(content, tail, NULL);
        }
        for (size_t i = first_gone; i < content->pages_count; i++) {
            page_unref(content->pages[i]);
            content->pages[i] = NULL;
        }
    }
    content->size = size;
    return RON_ERR_OK;
}
