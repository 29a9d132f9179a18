/*
 * merkle_oracle.h - RFC 6962, 2.1, word for word: recursive, over all leaf hashes. For tests.
 */
#ifndef RON_TESTS_MERKLE_ORACLE_H
#define RON_TESTS_MERKLE_ORACLE_H

#include "base/merkle_hash.h"

struct oracle_path {
    struct ron_sha256 hashes[80];
    size_t count;
};

static inline size_t oracle_split(size_t n) /* k < n <= 2k */
{
    size_t k = 1;

    while (2 * k < n)
        k *= 2;
    return k;
}

static inline struct ron_sha256 oracle_root(const struct ron_sha256 *leaves, size_t n)
{
    struct ron_merkle_pair children;
    size_t k = oracle_split(n);

    if (n == 0)
        return ron_sha256(NULL, 0);
    if (n == 1)
        return leaves[0];
    children.left = oracle_root(leaves, k);
    children.right = oracle_root(leaves + k, n - k);
    return ron_merkle_node(&children);
}

static inline void oracle_add(struct oracle_path *path, struct ron_sha256 hash)
{
    path->hashes[path->count++] = hash;
}

/* PATH(m, D[n]) */
static inline void oracle_inclusion(const struct ron_sha256 *leaves, size_t m, size_t n,
                                    struct oracle_path *path)
{
    size_t k = oracle_split(n);

    if (n <= 1)
        return;
    if (m < k) {
        oracle_inclusion(leaves, m, k, path);
        oracle_add(path, oracle_root(leaves + k, n - k));
    } else {
        oracle_inclusion(leaves + k, m - k, n - k, path);
        oracle_add(path, oracle_root(leaves, k));
    }
}

/* SUBPROOF(m, D[n], b); PROOF(m, D[n]) is with b = true */
static inline void oracle_consistency(const struct ron_sha256 *leaves, size_t m, size_t n, bool b,
                                      struct oracle_path *path)
{
    size_t k = oracle_split(n);

    if (m == n) {
        if (!b)
            oracle_add(path, oracle_root(leaves, n));
        return;
    }
    if (m <= k) {
        oracle_consistency(leaves, m, k, b, path);
        oracle_add(path, oracle_root(leaves + k, n - k));
    } else {
        oracle_consistency(leaves + k, m - k, n - k, false, path);
        oracle_add(path, oracle_root(leaves, k));
    }
}

static inline void oracle_leaves(struct ron_sha256 *leaves, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t data[8];

        ron_store_le64(data, i);
        leaves[i] = ron_merkle_leaf(data, sizeof(data));
    }
}

/* Replayable numbers for tests. */
static inline uint64_t oracle_next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

#endif
