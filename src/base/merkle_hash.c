/*
 * merkle_hash.c - see merkle_hash.h.
 *
 * Messages of up to MESSAGE_BLOCKS_MAX blocks (nodes, entries without memo) are padded on the stack
 * and compressed in pairs; nodes and entries sixteen at a time where the processor has lanes for
 * them. Longer leaves go through the general SHA-256 one by one.
 */
#include "base/merkle_hash.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/sha256_lanes.h"

enum {
    LEAF_PREFIX = 0x00,
    NODE_PREFIX = 0x01,
    PADDING_SIZE_MIN = 9, /* 0x80 and the bit count */
    MESSAGE_BLOCKS_MAX = 4,
    MESSAGE_SIZE_MAX = MESSAGE_BLOCKS_MAX * RON_SHA256_BLOCK_SIZE,
    SHORT_LEAF_SIZE_MAX = MESSAGE_SIZE_MAX - PADDING_SIZE_MIN - 1,
};
_Static_assert((size_t)RON_ENTRY_SIZE <= SHORT_LEAF_SIZE_MAX, "plain entries take the fast way");

const struct ron_sha256 ron_merkle_empty = {{
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24,
    0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
}};

/* Inlined where the size is a constant (nodes, entries): no calls then to copy and pad. */
#define INLINE __attribute__((always_inline)) static inline

/* A padded message: prefix || data || 0x80 || zeros || bits. */
struct message {
    uint8_t bytes[MESSAGE_SIZE_MAX];
};

INLINE size_t message_blocks_count(size_t data_size)
{
    return (1 + data_size + PADDING_SIZE_MIN + RON_SHA256_BLOCK_SIZE - 1) / RON_SHA256_BLOCK_SIZE;
}

/* The padding; messages of one size share it. */
INLINE void message_pad(struct message *message, size_t data_size)
{
    size_t end = message_blocks_count(data_size) * RON_SHA256_BLOCK_SIZE;

    RON_ASSERT(data_size <= SHORT_LEAF_SIZE_MAX);
    RON_ASSERT(end <= MESSAGE_SIZE_MAX);
    message->bytes[1 + data_size] = 0x80;
    memset(message->bytes + 2 + data_size, 0, end - 8 - (2 + data_size));
    ron_store_be64(message->bytes + end - 8, (1 + data_size) * 8);
}

/* The rest. The prefix shifts the data by one byte, but stores stay on multiples of 16: a vector
 * that is read back from two stores waits until both have reached the cache. */
INLINE void message_fill(struct message *message, uint8_t prefix, const uint8_t *data,
                         size_t data_size)
{
    typedef uint64_t two_words __attribute__((vector_size(16)));

    if (data_size >= sizeof(two_words)) {
        two_words first = {ron_load_le64(data) << 8 | prefix, ron_load_le64(data + 7)};

        memcpy(message->bytes, &first, sizeof(first));
        memcpy(message->bytes + 16, data + 15, data_size - 15);
        return;
    }
    message->bytes[0] = prefix;
    if (data_size > 0)
        memcpy(message->bytes + 1, data, data_size);
}

INLINE void hash_one(uint8_t prefix, const uint8_t *data, size_t data_size,
                     struct ron_sha256 *ret_hash)
{
    uint32_t words[8] = RON_SHA256_START;
    struct message message;

    message_pad(&message, data_size);
    message_fill(&message, prefix, data, data_size);
    ron_sha256_blocks(words, message.bytes, message_blocks_count(data_size));
    ron_sha256_store(ret_hash, words);
}

/* Two messages that share their padding. */
INLINE void hash_two(uint8_t prefix, struct message messages[static 2], const uint8_t *first,
                     const uint8_t *second, size_t data_size, struct ron_sha256 *ret_first,
                     struct ron_sha256 *ret_second)
{
    const uint8_t *const starts[2] = {messages[0].bytes, messages[1].bytes};
    uint32_t words[2][8] = {RON_SHA256_START, RON_SHA256_START};

    message_fill(&messages[0], prefix, first, data_size);
    message_fill(&messages[1], prefix, second, data_size);
    ron_sha256_blocks_two(words, starts, message_blocks_count(data_size));
    ron_sha256_store(ret_first, words[0]);
    ron_sha256_store(ret_second, words[1]);
}

/* Sixteen at a time, as long as there are so many. Returns how many were hashed. */
INLINE size_t hash_lanes(uint8_t prefix, const uint8_t *data, size_t data_size, size_t count,
                         struct ron_sha256 *ret_hashes)
{
    const size_t together = count - count % RON_SHA256_LANES;

    if (together == 0 || data_size == 0 || data_size % RON_SHA256_BLOCK_SIZE != 0 ||
        !ron_sha256_has_lanes())
        return 0;
    ron_sha256_lanes(prefix, data, data_size, together, ret_hashes);
    return together;
}

/* count messages of one short size, in a row. Those hashed together are read whole before their
 * results are written, and result i lies at or before message i if the arrays are the same. */
INLINE void hash_many(uint8_t prefix, const uint8_t *data, size_t data_size, size_t count,
                      struct ron_sha256 *ret_hashes)
{
    struct message messages[2];
    size_t i = hash_lanes(prefix, data, data_size, count, ret_hashes);

    if (count - i >= 2) {
        message_pad(&messages[0], data_size);
        message_pad(&messages[1], data_size);
    }
    for (; i + 2 <= count; i += 2)
        hash_two(prefix, messages, data + i * data_size, data + (i + 1) * data_size, data_size,
                 &ret_hashes[i], &ret_hashes[i + 1]);
    if (i < count)
        hash_one(prefix, data + i * data_size, data_size, &ret_hashes[i]);
}

struct ron_sha256 ron_merkle_leaf(const void *data, size_t size)
{
    const uint8_t prefix = LEAF_PREFIX;
    struct ron_sha256_ctx ctx;
    struct ron_sha256 hash;

    RON_ASSERT(data != NULL || size == 0);
    if (size == RON_ENTRY_SIZE) {
        hash_one(prefix, data, RON_ENTRY_SIZE, &hash);
        return hash;
    }
    if (size <= SHORT_LEAF_SIZE_MAX) {
        hash_one(prefix, data, size, &hash);
        return hash;
    }
    ron_sha256_init(&ctx);
    ron_sha256_update(&ctx, &prefix, 1);
    ron_sha256_update(&ctx, data, size);
    return ron_sha256_final(&ctx);
}

struct ron_sha256 ron_merkle_node(const struct ron_merkle_pair *children)
{
    struct ron_sha256 hash;

    hash_one(NODE_PREFIX, (const uint8_t *)children, sizeof(*children), &hash);
    return hash;
}

void ron_merkle_leaves(const void *leaves, size_t leaf_size, size_t leaves_count,
                       struct ron_sha256 *ret_hashes)
{
    const uint8_t *data = leaves;

    RON_ASSERT(leaves != NULL || leaves_count == 0);
    if (leaf_size == RON_ENTRY_SIZE)
        hash_many(LEAF_PREFIX, data, RON_ENTRY_SIZE, leaves_count, ret_hashes);
    else if (leaf_size <= SHORT_LEAF_SIZE_MAX)
        hash_many(LEAF_PREFIX, data, leaf_size, leaves_count, ret_hashes);
    else
        for (size_t i = 0; i < leaves_count; i++)
            ret_hashes[i] = ron_merkle_leaf(data + i * leaf_size, leaf_size);
}

void ron_merkle_leaf_two(const void *const leaves[static 2], size_t leaf_size,
                         struct ron_sha256 ret_hashes[static 2])
{
    struct message messages[2];

    if (leaf_size != RON_ENTRY_SIZE) {
        ret_hashes[0] = ron_merkle_leaf(leaves[0], leaf_size);
        ret_hashes[1] = ron_merkle_leaf(leaves[1], leaf_size);
        return;
    }
    message_pad(&messages[0], RON_ENTRY_SIZE);
    message_pad(&messages[1], RON_ENTRY_SIZE);
    hash_two(LEAF_PREFIX, messages, leaves[0], leaves[1], RON_ENTRY_SIZE, &ret_hashes[0],
             &ret_hashes[1]);
}

void ron_merkle_nodes(const struct ron_merkle_pair *children, size_t nodes_count,
                      struct ron_sha256 *ret_nodes)
{
    RON_ASSERT(children != NULL || nodes_count == 0);
    hash_many(NODE_PREFIX, (const uint8_t *)children, sizeof(*children), nodes_count, ret_nodes);
}
