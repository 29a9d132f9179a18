/*
 * segment_gate.c - see segment_gate.h. The blocks are those of an index's filter, in words that are
 * asked while others are added to: nothing is published through them, so they are as counters are.
 *
 * With vectors (AVX2) a block is looked at in two halves instead of eight words. Whatever a load
 * takes of a word that is being added to, bits that were there before are there: that is all that
 * is promised. ThreadSanitizer is shown the words.
 */
#include "io/segment_gate.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/assert.h"
#include "base/mem.h"
#include "io/segment_index_format.h"
#include "rt/atomic.h"

#define GATE_MAGIC 0x6a7e0001u

struct io_gate {
    uint32_t magic;
    struct io_gate_seed seed;
    uint64_t keys_max, keys_count;
    uint64_t blocks_count;
    struct rt_atomic_u64 *blocks;
    void *memory; /* while an index is added, and behind a panic in that: then for the next */
};

struct io_gate_seed io_gate_seed_new(void)
{
    const uint64_t first = sh_random();

    return (struct io_gate_seed){first, sh_random() | 1};
}

enum ron_err io_gate_new(struct io_gate_seed seed, uint64_t keys_max, struct io_gate **ret_gate,
                         struct ron_errinfo *reterr)
{
    struct io_gate *gate = ron_mem_alloc(sizeof(*gate));

    RON_ASSERT(keys_max <= IO_GATE_KEYS_MAX);
    if (gate == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a gate");
    gate->magic = GATE_MAGIC;
    gate->seed = seed;
    gate->keys_max = keys_max;
    gate->blocks_count = keys_max * IO_GATE_BITS / (UINT64_C(8) * INDEX_BLOCK_SIZE) + 1;
    _Static_assert(sizeof(*gate->blocks) * INDEX_BLOCK_WORDS == INDEX_BLOCK_SIZE, "plain words");
    gate->blocks = ron_table_alloc(gate->blocks_count, INDEX_BLOCK_SIZE, RON_TABLE_RANDOM);
    if (gate->blocks == NULL) {
        gate = io_gate_free(gate);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a gate of %llu keys",
                        (unsigned long long)keys_max);
    }
    *ret_gate = gate;
    return RON_ERR_OK;
}

struct io_gate *io_gate_free(struct io_gate *gate)
{
    if (gate == NULL)
        return NULL;
    RON_ASSERT(gate->magic == GATE_MAGIC);
    gate->magic = 0;
    gate->blocks = ron_table_free(gate->blocks);
    gate->memory = ron_table_free(gate->memory);
    return ron_mem_free(gate);
}

/* The first 8 bytes are of a hash already; the seed keeps it unknown which keys share a block. */
static inline uint64_t gate_hash(const struct io_gate_seed *seed, uint64_t prefix)
{
    const unsigned __int128 product = (unsigned __int128)(prefix ^ seed->first) * seed->second;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline struct rt_atomic_u64 *block_of(const struct io_gate *gate, uint64_t hash)
{
    return gate->blocks + INDEX_BLOCK_WORDS * index_block(hash, gate->blocks_count);
}

/* As index_filter_add, by the one thread that adds. */
static inline void block_add(struct rt_atomic_u64 *words, uint64_t hash)
{
    const uint64_t bits = index_filter_bits(hash);

#pragma GCC unroll 8
    for (unsigned i = 0; i < INDEX_BLOCK_WORDS; i++)
        rt_counter_store(&words[i], rt_counter_load(&words[i]) | index_filter_bit(bits, i));
}

/* As index_filter_has. */
static inline bool block_has(const struct rt_atomic_u64 *words, uint64_t hash)
{
    const uint64_t bits = index_filter_bits(hash);
    uint64_t all = 1;

#pragma GCC unroll 8
    for (unsigned i = 0; i < INDEX_BLOCK_WORDS; i++)
        all &= rt_counter_load(&words[i]) >> index_filter_shift(bits, i);
    return all != 0;
}

static void add_page(void *context, const struct index_stored *entries, size_t count)
{
    const struct io_gate *gate = context;
    uint64_t hashes[INDEX_PAGE_KEYS];

    RON_ASSERT(count <= INDEX_PAGE_KEYS);
    for (size_t i = 0; i < count; i++) {
        hashes[i] = gate_hash(&gate->seed, index_prefix(entries[i].prefix));
        ron_prefetch_write(block_of(gate, hashes[i]));
    }
    for (size_t i = 0; i < count; i++)
        block_add(block_of(gate, hashes[i]), hashes[i]);
}

enum ron_err io_gate_add(struct io_gate *gate, struct io_index *index, struct ron_errinfo *reterr)
{
    const uint64_t count = io_index_keys_count(index);
    enum ron_err err;

    RON_ASSERT(gate->magic == GATE_MAGIC);
    RON_ASSERT(count <= gate->keys_max - gate->keys_count);
    if (gate->memory == NULL)
        gate->memory = ron_table_alloc(IO_INDEX_READ_SIZE + (size_t)IO_DIRECT_SIZE, 1,
                                       RON_TABLE_DISK);
    if (gate->memory == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "pages of an index");
    err = io_index_each_page(index, io_direct_page(gate->memory), add_page, gate, reterr);
    gate->memory = ron_table_free(gate->memory);
    if (err == RON_ERR_OK)
        gate->keys_count += count;
    return err;
}

void io_gate_add_keys(struct io_gate *gate, const uint8_t (*keys)[16], size_t count)
{
    enum { SOME = 64 };
    uint64_t hashes[SOME];

    RON_ASSERT(gate->magic == GATE_MAGIC);
    RON_ASSERT(count <= gate->keys_max - gate->keys_count);
    for (size_t first = 0; first < count; first += SOME) {
        const size_t some = count - first < SOME ? count - first : SOME;

        for (size_t i = 0; i < some; i++) {
            hashes[i] = gate_hash(&gate->seed, index_prefix(keys[first + i]));
            ron_prefetch_write(block_of(gate, hashes[i]));
        }
        for (size_t i = 0; i < some; i++)
            block_add(block_of(gate, hashes[i]), hashes[i]);
    }
    gate->keys_count += count;
}

bool io_gate_may_have(const struct io_gate *gate, const uint8_t key[16])
{
    const uint64_t hash = gate_hash(&gate->seed, index_prefix(key));

    RON_ASSERT(gate->magic == GATE_MAGIC);
    return block_has(block_of(gate, hash), hash);
}

/* --- Many keys at once ---------------------------------------------------------------------------
 */

void io_gate_keys_make(struct io_gate_seed seed, const uint8_t (*keys)[16], size_t count,
                       struct io_gate_keys *ret_keys)
{
    RON_ASSERT(count <= IO_INDEX_KEYS_AT_ONCE);
    ret_keys->count = count;
    for (size_t i = 0; i < count; i++)
        ret_keys->hashes[i] = gate_hash(&seed, index_prefix(keys[i]));
}

void io_gate_fetch_each(const struct io_gate *gate, const struct io_gate_keys *keys)
{
    RON_ASSERT(gate->magic == GATE_MAGIC);
    for (size_t i = 0; i < keys->count; i++)
        ron_prefetch(block_of(gate, keys->hashes[i]));
}

#if defined(__x86_64__)
/* As block_has. */
__attribute__((target("avx2"))) static inline bool
block_has_by_vectors(const struct rt_atomic_u64 *words, uint64_t hash)
{
    const __m256i all_bits = _mm256_set1_epi64x((int64_t)index_filter_bits(hash));
    const __m256i one = _mm256_set1_epi64x(1), six_bits = _mm256_set1_epi64x(63);
    const __m256i low = _mm256_srlv_epi64(all_bits, _mm256_setr_epi64x(16, 22, 28, 34));
    const __m256i high = _mm256_srlv_epi64(all_bits, _mm256_setr_epi64x(40, 46, 52, 58));
    const __m256i *block = (const __m256i *)(const void *)words;

    _Static_assert(INDEX_BLOCK_SIZE == 2 * sizeof(*block), "two halves");
    return (_mm256_testc_si256(_mm256_loadu_si256(block),
                               _mm256_sllv_epi64(one, _mm256_and_si256(low, six_bits))) &
            _mm256_testc_si256(_mm256_loadu_si256(block + 1),
                               _mm256_sllv_epi64(one, _mm256_and_si256(high, six_bits)))) != 0;
}

__attribute__((target("avx2"))) static uint64_t may_have_by_vectors(const struct io_gate *gate,
                                                                    const struct io_gate_keys *keys)
{
    uint64_t bits = 0;

    for (size_t i = 0; i < keys->count; i++)
        bits |= (uint64_t)block_has_by_vectors(block_of(gate, keys->hashes[i]), keys->hashes[i])
                << i;
    return bits;
}

static bool vectors_are_there(void)
{
    __builtin_cpu_init();
    return !RON_TSAN && __builtin_cpu_supports("avx2");
}
#else
static uint64_t may_have_by_vectors(const struct io_gate *gate, const struct io_gate_keys *keys)
{
    (void)gate, (void)keys;
    RON_UNREACHABLE();
}

static bool vectors_are_there(void)
{
    return false;
}
#endif

/* Written before main, and by tests and benchmarks before threads start. */
static bool vectors;

__attribute__((constructor)) static void vectors_choose(void)
{
    vectors = vectors_are_there();
}

void io_gate_use_vectors(bool wanted)
{
    vectors = wanted && vectors_are_there();
}

uint64_t io_gate_may_have_each(const struct io_gate *gate, const struct io_gate_keys *keys)
{
    uint64_t bits = 0;

    RON_ASSERT(gate->magic == GATE_MAGIC);
    if (vectors)
        return may_have_by_vectors(gate, keys);
    for (size_t i = 0; i < keys->count; i++)
        bits |= (uint64_t)block_has(block_of(gate, keys->hashes[i]), keys->hashes[i]) << i;
    return bits;
}

uint64_t io_gate_room(const struct io_gate *gate)
{
    return gate->keys_max - gate->keys_count;
}

uint64_t io_gate_keys_count(const struct io_gate *gate)
{
    return gate->keys_count;
}

size_t io_gate_memory(const struct io_gate *gate)
{
    return sizeof(*gate) + gate->blocks_count * INDEX_BLOCK_SIZE;
}
