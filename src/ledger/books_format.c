/*
 * books_format.c - the bytes of a run: head, pages, postings. See books_format.h.
 */
#include "ledger/books_format.h"

#include "base/crc32c.h"
#include "ledger/books_get.h"
#include "ledger/books_put.h"

static const uint8_t magic[8] = {'R', 'O', 'N', 'B', 'O', 'O', 'K', 1};

enum { HEAD_TAGGED = 80, SUM_SIZE_MAX = 24 };

static void put_facts(const struct books_head *head, uint8_t *bytes)
{
    memcpy(bytes, magic, sizeof(magic));
    ron_store_le32(bytes + 8, BOOKS_VERSION);
    ron_store_le64(bytes + 16, head->first_seq);
    ron_store_le64(bytes + 24, head->last_seq);
    ron_store_le64(bytes + 32, head->first_batch);
    ron_store_le64(bytes + 40, head->last_batch);
    memcpy(bytes + 48, head->root.bytes, RON_SHA256_SIZE);
}

uint32_t books_head_tag(const struct books_head *head)
{
    uint8_t bytes[HEAD_TAGGED] = {0};

    put_facts(head, bytes);
    return ron_crc32c(0, bytes, sizeof(bytes));
}

void books_head_encode(const struct books_head *head, uint8_t bytes[BOOKS_PAGE_SIZE])
{
    memset(bytes, 0, BOOKS_PAGE_SIZE);
    put_facts(head, bytes);
    ron_store_le64(bytes + 80, head->pages_count);
    ron_store_le64(bytes + 88, head->blocks_count);
    ron_store_le64(bytes + 96, head->threads_count);
    ron_store_le32(bytes + 104, head->resident_crc);
    ron_store_le32(bytes + BOOKS_PAGE_SIZE - 4, ron_crc32c(0, bytes, BOOKS_PAGE_SIZE - 4));
}

enum ron_err books_head_decode(const uint8_t bytes[BOOKS_PAGE_SIZE], struct books_head *ret_head,
                               struct ron_errinfo *reterr)
{
    struct books_head head = {
        .first_seq = ron_load_le64(bytes + 16),
        .last_seq = ron_load_le64(bytes + 24),
        .first_batch = ron_load_le64(bytes + 32),
        .last_batch = ron_load_le64(bytes + 40),
        .pages_count = ron_load_le64(bytes + 80),
        .blocks_count = ron_load_le64(bytes + 88),
        .threads_count = ron_load_le64(bytes + 96),
        .resident_crc = ron_load_le32(bytes + 104),
    };

    memcpy(head.root.bytes, bytes + 48, RON_SHA256_SIZE);
    if (ron_load_le32(bytes + BOOKS_PAGE_SIZE - 4) != ron_crc32c(0, bytes, BOOKS_PAGE_SIZE - 4) ||
        memcmp(bytes, magic, sizeof(magic)) != 0)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "the head failed its check");
    if (ron_load_le32(bytes + 8) != BOOKS_VERSION)
        return ron_fail(reterr, RON_ERR_VERSION_SKEW, "version %u", ron_load_le32(bytes + 8));
    if (head.first_seq == 0 || head.last_seq < head.first_seq || head.first_batch == 0 ||
        head.last_batch < head.first_batch || head.pages_count == 0 || head.blocks_count == 0 ||
        head.pages_count > UINT32_MAX || head.blocks_count > UINT32_MAX ||
        head.threads_count == 0 || head.threads_count > head.pages_count * BOOKS_PAGE_DATA)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "the head is not that of a run");
    *ret_head = head;
    return RON_ERR_OK;
}

void books_sum_join(struct books_sum *sum, const struct books_sum *other)
{
    sum->low += other->low;
    sum->high += other->high + (sum->low < other->low);
    sum->count += other->count;
    sum->mint |= other->mint;
}

uint8_t *books_put_long_varint(uint8_t *at, uint64_t value)
{
    while (value >= 128) {
        *at++ = (uint8_t)(value | 128);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

static uint8_t *put_sum(uint8_t *at, const struct books_sum *sum)
{
    uint8_t bytes[SUM_SIZE_MAX];
    const uint8_t sign = sum->high < 0 ? 0xff : 0;
    size_t size = SUM_SIZE_MAX;

    memcpy(bytes, &sum->low, 16);
    memcpy(bytes + 16, &sum->high, 8);
    /* A byte may go if the one below it has the same sign. */
    while (size > 1 && bytes[size - 1] == sign && (bytes[size - 2] & 128) == (sign & 128))
        size--;
    if (size == 1 && bytes[0] == 0)
        size = 0;
    *at++ = (uint8_t)(size | (sum->mint ? BOOKS_AMOUNT_MINT : 0));
    memcpy(at, bytes, size);
    return at + size;
}

uint8_t *books_put_terms(uint8_t *at, const struct books_place *place,
                         const struct books_sum *before)
{
    at = books_put_varint(at, before->count);
    if (place->kind != LEDGER_THREAD_ACCOUNT)
        return at;
    return put_sum(books_put_varint(at, place->asset), before);
}

void books_page_end(struct books_page_writer *writer, uint32_t number, uint32_t tag)
{
    uint8_t *tail = writer->bytes + BOOKS_PAGE_DATA;

    memset(writer->bytes + writer->used, 0, BOOKS_PAGE_DATA - writer->used);
    ron_store_le32(tail, number);
    ron_store_le32(tail + 4, (uint32_t)writer->used);
    ron_store_le32(tail + 8, tag);
    ron_store_le32(tail + 12, ron_crc32c(0, writer->bytes, BOOKS_PAGE_SIZE - 4));
}

void books_page_open(struct books_page_reader *reader, const uint8_t *bytes, uint64_t first_seq)
{
    *reader = (struct books_page_reader){
        .bytes = bytes, .used = ron_load_le32(bytes + BOOKS_PAGE_DATA + 4), .first_seq = first_seq};
    if (reader->used > BOOKS_PAGE_DATA)
        reader->used = BOOKS_PAGE_DATA;
}

static bool get_sum(struct books_page_reader *reader, struct books_sum *sum)
{
    const uint8_t *at = reader->bytes + reader->at;
    uint8_t bytes[SUM_SIZE_MAX];
    size_t size;

    if (reader->at == reader->used)
        return false;
    size = *at & 63;
    if (size > SUM_SIZE_MAX || reader->used - reader->at <= size)
        return false;
    memset(bytes, size > 0 && at[size] >= 128 ? 0xff : 0, sizeof(bytes));
    memcpy(bytes, at + 1, size);
    memcpy(&sum->low, bytes, 16);
    memcpy(&sum->high, bytes + 16, 8);
    sum->mint = (*at & BOOKS_AMOUNT_MINT) != 0;
    reader->at += 1 + size;
    return true;
}

bool books_get_terms(struct books_page_reader *reader)
{
    struct books_place *place = &reader->posting.place;
    uint64_t asset = 0;

    if (!books_get_varint(reader, &reader->sum.count))
        return false;
    if (place->kind == LEDGER_THREAD_BATCHES)
        return true;
    if (place->kind != LEDGER_THREAD_ACCOUNT || !books_get_varint(reader, &asset) ||
        asset > UINT32_MAX)
        return false;
    place->asset = (uint32_t)asset;
    return get_sum(reader, &reader->sum);
}

enum books_step books_page_step(struct books_page_reader *reader)
{
    return books_page_step_in(reader, true);
}
