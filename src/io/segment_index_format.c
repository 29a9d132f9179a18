/*
 * segment_index_format.c - layout, head and order of an index file. See segment_index_format.h.
 */
#include "io/segment_index_format.h"

#include "base/assert.h"
#include "base/b3.h"
#include "base/crc32c.h"

static const uint8_t magic[8] = {'R', 'O', 'N', 'I', 'D', 'X', 0, 1};

struct index_layout io_index_layout(uint64_t keys_count, uint64_t starts_count)
{
    struct index_layout layout = {0};

    RON_ASSERT(keys_count <= IO_INDEX_KEYS_MAX);
    RON_ASSERT(starts_count <= IO_INDEX_STARTS_MAX);
    layout.pages_count = (keys_count + INDEX_PAGE_KEYS - 1) / INDEX_PAGE_KEYS;
    layout.blocks_count = keys_count * INDEX_FILTER_BITS / (8 * INDEX_BLOCK_SIZE) + 1;
    layout.resident_offset = (1 + layout.pages_count) * INDEX_PAGE_SIZE;
    layout.fences_offset = layout.blocks_count * INDEX_BLOCK_SIZE;
    layout.starts_offset = layout.fences_offset + layout.pages_count * sizeof(uint64_t);
    layout.resident_size = layout.starts_offset + starts_count * sizeof(struct io_index_start);
    layout.file_size = layout.resident_offset + layout.resident_size;
    return layout;
}

struct index_seed io_index_seed(const struct io_index_of *of)
{
    struct ron_slice domain = RON_B3_DOMAIN("ron:index:v2");
    struct ron_b3_ctx ctx;
    struct ron_b3 hash;
    uint8_t segment[8];

    ron_store_le64(segment, of->segment);
    ron_b3_init(&ctx);
    ron_b3_update(&ctx, domain.data, domain.size);
    ron_b3_update(&ctx, of->log_id, sizeof(of->log_id));
    ron_b3_update(&ctx, segment, sizeof(segment));
    ron_b3_update(&ctx, of->last_link, sizeof(of->last_link));
    hash = ron_b3_final(&ctx);
    return (struct index_seed){.first = ron_load_le64(hash.bytes),
                               .second = ron_load_le64(hash.bytes + 8),
                               .tag = ron_load_le32(hash.bytes + 16)};
}

void io_index_head_encode(const struct index_head *head, uint8_t ret_bytes[INDEX_PAGE_SIZE])
{
    memset(ret_bytes, 0, INDEX_PAGE_SIZE);
    memcpy(ret_bytes, magic, sizeof(magic));
    ron_store_le32(ret_bytes + 8, INDEX_VERSION);
    memcpy(ret_bytes + 16, head->of.log_id, 16);
    ron_store_le64(ret_bytes + 32, head->of.segment);
    ron_store_le64(ret_bytes + 40, head->of.first_index);
    ron_store_le64(ret_bytes + 48, head->of.last_index);
    memcpy(ret_bytes + 56, head->of.last_link, 16);
    ron_store_le64(ret_bytes + 72, head->of.sealed_size);
    ron_store_le64(ret_bytes + 80, head->keys_count);
    ron_store_le64(ret_bytes + 88, head->starts_count);
    ron_store_le32(ret_bytes + 96, head->resident_crc);
    ron_store_le32(ret_bytes + 4088, ron_crc32c(0, ret_bytes, 4088));
}

enum ron_err io_index_head_decode(const uint8_t bytes[INDEX_PAGE_SIZE], struct index_head *ret_head,
                                  struct ron_errinfo *reterr)
{
    struct index_head head = {0};

    if (memcmp(bytes, magic, sizeof(magic)) != 0)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "not an index file");
    if (ron_load_le32(bytes + 4088) != ron_crc32c(0, bytes, 4088))
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "the head failed its check");
    if (ron_load_le32(bytes + 8) != INDEX_VERSION)
        return ron_fail(reterr, RON_ERR_VERSION_SKEW, "version %u, this program reads %u",
                        ron_load_le32(bytes + 8), INDEX_VERSION);
    memcpy(head.of.log_id, bytes + 16, 16);
    head.of.segment = ron_load_le64(bytes + 32);
    head.of.first_index = ron_load_le64(bytes + 40);
    head.of.last_index = ron_load_le64(bytes + 48);
    memcpy(head.of.last_link, bytes + 56, 16);
    head.of.sealed_size = ron_load_le64(bytes + 72);
    head.keys_count = ron_load_le64(bytes + 80);
    head.starts_count = ron_load_le64(bytes + 88);
    head.resident_crc = ron_load_le32(bytes + 96);
    if (head.keys_count > IO_INDEX_KEYS_MAX || head.starts_count > IO_INDEX_STARTS_MAX)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "it claims %llu keys and %llu starts",
                        (unsigned long long)head.keys_count, (unsigned long long)head.starts_count);
    *ret_head = head;
    return RON_ERR_OK;
}

static void sort_by_insertion(struct io_index_entry *entries, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct io_index_entry entry = entries[i];
        size_t at = i;

        for (; at > 0 && index_entry_before(&entry, &entries[at - 1]); at--)
            entries[at] = entries[at - 1];
        entries[at] = entry;
    }
}

/* Where in an entry the byte of a level is, the most significant first. */
static size_t byte_of_level(uint32_t level)
{
    RON_ASSERT(level < INDEX_SORT_LEVELS);
    return level < 8 ? level : level < 12 ? 27 - level : 35 - level;
}

/* Put every entry into the part of its byte; ends[b] is where part b ends. */
static void split(struct io_index_entry *entries, size_t count, size_t at, size_t ends[256])
{
    size_t next[256];
    size_t sum = 0;

    memset(ends, 0, 256 * sizeof(*ends));
    for (size_t i = 0; i < count; i++)
        ends[((const uint8_t *)&entries[i])[at]]++;
    for (size_t b = 0; b < 256; b++) {
        next[b] = sum;
        sum += ends[b];
        ends[b] = sum;
    }
    for (size_t b = 0; b < 256; b++) {
        while (next[b] < ends[b]) {
            struct io_index_entry entry = entries[next[b]];
            size_t to;

            while ((to = ((const uint8_t *)&entry)[at]) != b) {
                struct io_index_entry other = entries[next[to]];

                entries[next[to]++] = entry;
                entry = other;
            }
            entries[next[b]++] = entry;
        }
    }
}

void io_index_sort(struct io_index_entry *entries, size_t count, struct index_span *spans)
{
    size_t spans_count = 0;

    RON_ASSERT(count <= IO_INDEX_KEYS_MAX);
    if (count > 1)
        spans[spans_count++] = (struct index_span){0, (uint32_t)count, 0};
    while (spans_count > 0) {
        struct index_span span = spans[--spans_count];
        struct io_index_entry *part = entries + span.first;
        size_t ends[256];
        size_t begin = 0;

        if (span.count <= INDEX_INSERT_MAX) {
            sort_by_insertion(part, span.count);
            continue;
        }
        split(part, span.count, byte_of_level(span.level), ends);
        for (size_t b = 0; b < 256; begin = ends[b++]) {
            size_t size = ends[b] - begin;

            if (size < 2 || span.level + 1 == INDEX_SORT_LEVELS)
                continue;
            /* One span leaves and at most 256 of the next of 16 levels come. */
            RON_ASSERT(spans_count < INDEX_SPANS_MAX);
            spans[spans_count++] = (struct index_span){span.first + (uint32_t)begin, (uint32_t)size,
                                                       span.level + 1};
        }
    }
}
