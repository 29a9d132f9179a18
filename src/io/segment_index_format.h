/*
 * segment_index_format.h - the bytes of an index file, its filter, and the order of its entries.
 *
 * Little-endian. Sizes follow from the counts of keys and starts; a file of another size is torn.
 *
 *     head, 4096 bytes                        key page, 4096 bytes, number 0, 1, 2 ...
 *      0 magic "RONIDX\0\1"  8                 0 entries in order, 16 each, 255
 *      8 version u32 = 2, 12 zero u32               (fewer in the last page, then zeros)
 *     16 log id 16                           4080 page number u32
 *     32 segment u64                         4084 count of entries u32
 *     40 first index u64                     4088 tag u32
 *     48 last index u64                      4092 CRC-32C of 0..4092 u32
 *     56 last link 16
 *     72 sealed size u64                     entry
 *     80 count of keys u64                      0 key, its first 8 bytes
 *     88 count of starts u64                    8 offset8 u32
 *     96 CRC-32C of the resident part u32      12 sub u32
 *    100 zeros to 4088
 *   4088 CRC-32C of 0..4088 u32, zero u32
 *
 * Head, key pages, resident part: filter blocks (64 each), fences (u64 each: the first 8 bytes of a
 * page's first key, as a big-endian number), starts (16 each: index u64, offset8 u32, zero u32).
 *
 * Entries ascend by key bytes, offset8, sub. Version 1 had all 16 bytes of a key in its entries.
 * The filter is a Bloom filter over whole keys, of 13 bits per key, whose 8 bits for a key lie in
 * one block, one in each of its 8 words: one cache line per question, about 0.3 % wrong answers.
 * Seed and tag come from BLAKE3 over what the file belongs to. The last link covers every record of
 * the segment, so nobody who chooses keys knows the seed yet: keys cannot be ground to fill one
 * block, and a key that fools one file does not fool the others. The tag keeps a page of another
 * file, written here by mistake, from being believed.
 */
#ifndef RON_IO_SEGMENT_INDEX_FORMAT_H
#define RON_IO_SEGMENT_INDEX_FORMAT_H

#include "io/segment_index.h"

enum {
    INDEX_VERSION = 2,
    INDEX_PAGE_SIZE = 4096,
    INDEX_PAGE_KEYS = 255,
    INDEX_PAGE_TAIL = 4080,
    INDEX_BLOCK_SIZE = 64,
    INDEX_BLOCK_WORDS = 8,
    INDEX_FILTER_BITS = 13, /* per key */
    INDEX_PREFIX_SIZE = 8,  /* bytes of a key in its entry */
};
struct index_stored { /* an entry as it is in the file */
    uint8_t prefix[INDEX_PREFIX_SIZE];
    struct io_index_place place;
};
_Static_assert(sizeof(struct index_stored) * INDEX_PAGE_KEYS == INDEX_PAGE_TAIL, "255 a page");
_Static_assert(sizeof(struct io_index_start) == 16, "starts are stored as they are");

struct index_head {
    struct io_index_of of;
    uint64_t keys_count, starts_count;
    uint32_t resident_crc;
};
struct index_layout {
    uint64_t pages_count, blocks_count;
    uint64_t resident_offset; /* in the file */
    uint64_t fences_offset;   /* in the resident part; the filter is at 0 */
    uint64_t starts_offset;   /* in the resident part */
    uint64_t resident_size;
    uint64_t file_size;
};
struct index_seed {
    uint64_t first, second;
    uint32_t tag;
};

/* Both counts within their limits. */
struct index_layout io_index_layout(uint64_t keys_count, uint64_t starts_count);
struct index_seed io_index_seed(const struct io_index_of *of);
void io_index_head_encode(const struct index_head *head, uint8_t ret_bytes[INDEX_PAGE_SIZE]);
/* RON_ERR_WAL_CORRUPT, RON_ERR_VERSION_SKEW. Counts are within their limits on RON_ERR_OK. */
enum ron_err io_index_head_decode(const uint8_t bytes[INDEX_PAGE_SIZE], struct index_head *ret_head,
                                  struct ron_errinfo *reterr) RON_MUST_USE;

static inline uint64_t index_prefix(const uint8_t key[INDEX_PREFIX_SIZE])
{
    return ron_load_be64(key);
}
/* Key bytes, then offset8, then sub. */
static inline bool index_stored_before(const struct index_stored *a, const struct index_stored *b)
{
    const uint64_t first = index_prefix(a->prefix), second = index_prefix(b->prefix);

    if (first != second)
        return first < second;
    return a->place.offset8 != b->place.offset8 ? a->place.offset8 < b->place.offset8
                                                : a->place.sub < b->place.sub;
}

/* What the filter knows of a key: a block by the high bits, then 8 times 6 bits. */
static inline uint64_t index_hash(const struct index_seed *seed, const uint8_t key[16])
{
    unsigned __int128 product = (unsigned __int128)(ron_load_le64(key) ^ seed->first) *
                                (ron_load_le64(key + 8) ^ seed->second);

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}
static inline uint64_t index_block(uint64_t hash, uint64_t blocks_count)
{
    return (uint64_t)(((unsigned __int128)hash * blocks_count) >> 64);
}
static inline uint64_t index_filter_bits(uint64_t hash)
{
    return hash * 0x9e3779b97f4a7c15u;
}
static inline unsigned index_filter_shift(uint64_t bits, unsigned word)
{
    return bits >> (16 + 6 * word) & 63;
}
static inline uint64_t index_filter_bit(uint64_t bits, unsigned word)
{
    return (uint64_t)1 << index_filter_shift(bits, word);
}
static inline void index_filter_add(uint64_t *words, uint64_t hash)
{
    const uint64_t bits = index_filter_bits(hash);

#pragma GCC unroll 8
    for (unsigned i = 0; i < INDEX_BLOCK_WORDS; i++)
        words[i] |= index_filter_bit(bits, i);
}
/* Without a branch: eight guesses of even odds would cost more than eight shifts. */
static inline bool index_filter_has(const uint64_t *words, uint64_t hash)
{
    const uint64_t bits = index_filter_bits(hash);
    uint64_t all = 1;

    for (unsigned i = 0; i < INDEX_BLOCK_WORDS; i++)
        all &= words[i] >> index_filter_shift(bits, i);
    return all != 0;
}

#endif
