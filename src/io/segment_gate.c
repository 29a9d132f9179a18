/*
 * segment_gate.c - see segment_gate.h. The blocks are those of an index's filter, in words that are
 * asked while others are added to: nothing is published through them, so they are as counters are.
 */
#include "io/segment_gate.h"

#include "base/assert.h"
#include "base/mem.h"
#include "io/segment_index_format.h"
#include "rt/atomic.h"

#define GATE_MAGIC 0x6a7e0001u

struct io_gate {
    uint32_t magic;
    uint64_t seed[2];
    uint64_t keys_max, keys_count;
    uint64_t blocks_count;
    struct rt_atomic_u64 *blocks;
    void *memory; /* while an index is added, and behind a panic in that: then for the next */
};

enum ron_err io_gate_new(uint64_t keys_max, struct io_gate **ret_gate, struct ron_errinfo *reterr)
{
    struct io_gate *gate = ron_mem_alloc(sizeof(*gate));

    RON_ASSERT(keys_max <= IO_GATE_KEYS_MAX);
    if (gate == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a gate");
    gate->magic = GATE_MAGIC;
    gate->seed[0] = sh_random();
    gate->seed[1] = sh_random() | 1;
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
static inline uint64_t gate_hash(const struct io_gate *gate, uint64_t prefix)
{
    const unsigned __int128 product = (unsigned __int128)(prefix ^ gate->seed[0]) * gate->seed[1];

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
        hashes[i] = gate_hash(gate, index_prefix(entries[i].prefix));
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
            hashes[i] = gate_hash(gate, index_prefix(keys[first + i]));
            ron_prefetch_write(block_of(gate, hashes[i]));
        }
        for (size_t i = 0; i < some; i++)
            block_add(block_of(gate, hashes[i]), hashes[i]);
    }
    gate->keys_count += count;
}

bool io_gate_may_have(const struct io_gate *gate, const uint8_t key[16])
{
    const uint64_t hash = gate_hash(gate, index_prefix(key));

    RON_ASSERT(gate->magic == GATE_MAGIC);
    return block_has(block_of(gate, hash), hash);
}

void io_gate_fetch_each(const struct io_gate *gate, const uint8_t (*keys)[16], size_t count)
{
    RON_ASSERT(gate->magic == GATE_MAGIC);
    for (size_t i = 0; i < count; i++)
        ron_prefetch(block_of(gate, gate_hash(gate, index_prefix(keys[i]))));
}

uint64_t io_gate_may_have_each(const struct io_gate *gate, const uint8_t (*keys)[16], size_t count)
{
    uint64_t bits = 0;

    RON_ASSERT(gate->magic == GATE_MAGIC);
    RON_ASSERT(count <= IO_INDEX_KEYS_AT_ONCE);
    for (size_t i = 0; i < count; i++) {
        const uint64_t hash = gate_hash(gate, index_prefix(keys[i]));

        bits |= (uint64_t)block_has(block_of(gate, hash), hash) << i;
    }
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
