/*
 * segment_index_format.c - layout and head of an index file. See segment_index_format.h.
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
