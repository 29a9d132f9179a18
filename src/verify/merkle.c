/*
 * merkle.c - the verification algorithms of RFC 9162, 2.1.3.2 and 2.1.4.2.
 *
 * `node` and `last` walk up from the leaf and from the last leaf of the tree together; where the
 * RFC says "LSB is set" a node is a right child, and `node == last` is the right edge, whose
 * subtrees have no sibling until the path turns left.
 */
#include "ron/verify.h"

#include "base/assert.h"
#include "base/merkle_hash.h"

struct ron_sha256 ron_verify_leaf_hash(const void *data, size_t size)
{
    return ron_merkle_leaf(data, size);
}

static struct ron_sha256 join(const struct ron_sha256 *left, const struct ron_sha256 *right)
{
    struct ron_merkle_pair children = {*left, *right};

    return ron_merkle_node(&children);
}

static bool equal(const struct ron_sha256 *a, const struct ron_sha256 *b)
{
    return memcmp(a->bytes, b->bytes, RON_SHA256_SIZE) == 0;
}

struct walk {
    uint64_t node;
    uint64_t last;
};

/* Is the next hash of the proof a left sibling? If so, climb to the child that has one. */
static bool turns_left(struct walk *walk)
{
    if (walk->node % 2 == 0 && walk->node != walk->last)
        return false;
    while (walk->node % 2 == 0 && walk->node != 0) {
        walk->node /= 2;
        walk->last /= 2;
    }
    return true;
}

enum ron_err ron_verify_inclusion(const struct ron_sha256 *leaf, uint64_t index,
                                  const struct ron_tree *tree, const struct ron_sha256 *proof,
                                  size_t proof_count, struct ron_errinfo *reterr)
{
    struct ron_sha256 hash = *leaf;
    struct walk walk = {index, tree->size - 1};

    RON_ASSERT(proof != NULL || proof_count == 0);
    if (index >= tree->size)
        return ron_fail(reterr, RON_ERR_MALFORMED, "leaf %llu of a tree of %llu",
                        (unsigned long long)index, (unsigned long long)tree->size);
    for (size_t i = 0; i < proof_count; i++) {
        if (walk.last == 0)
            return ron_fail(reterr, RON_ERR_CHAIN_MISMATCH,
                            "inclusion proof: %zu hashes, %zu lead to the root", proof_count, i);
        hash = turns_left(&walk) ? join(&proof[i], &hash) : join(&hash, &proof[i]);
        walk.node /= 2;
        walk.last /= 2;
    }
    if (walk.last != 0)
        return ron_fail(reterr, RON_ERR_CHAIN_MISMATCH,
                        "inclusion proof: %zu hashes do not reach the root", proof_count);
    if (!equal(&hash, &tree->root))
        return ron_fail(reterr, RON_ERR_CHAIN_MISMATCH,
                        "inclusion proof of leaf %llu leads to another root",
                        (unsigned long long)index);
    return RON_ERR_OK;
}

/* Cases without a walk: nothing before, or nothing new. */
static enum ron_err verify_trivial(const struct ron_tree *old, const struct ron_tree *tree,
                                   size_t proof_count, struct ron_errinfo *reterr)
{
    const struct ron_sha256 *expected = old->size == 0 ? &ron_merkle_empty : &tree->root;

    if (proof_count != 0)
        return ron_fail(reterr, RON_ERR_CHAIN_MISMATCH,
                        "consistency proof: %zu hashes where none is needed", proof_count);
    if (!equal(&old->root, expected))
        return ron_fail(reterr, RON_ERR_CHAIN_MISMATCH, "another root at size %llu",
                        (unsigned long long)old->size);
    if (tree->size == 0 && !equal(&tree->root, &ron_merkle_empty))
        return ron_fail(reterr, RON_ERR_CHAIN_MISMATCH, "a root that is not the empty tree's");
    return RON_ERR_OK;
}

enum ron_err ron_verify_consistency(const struct ron_tree *old, const struct ron_tree *tree,
                                    const struct ron_sha256 *proof, size_t proof_count,
                                    struct ron_errinfo *reterr)
{
    struct walk walk = {old->size - 1, tree->size - 1};
    bool old_is_subtree = (old->size & (old->size - 1)) == 0; /* the prover left its root out */
    struct ron_sha256 old_hash, hash;
    size_t i = old_is_subtree ? 0 : 1;

    RON_ASSERT(proof != NULL || proof_count == 0);
    if (old->size > tree->size)
        return ron_fail(reterr, RON_ERR_MALFORMED, "from a tree of %llu to one of %llu",
                        (unsigned long long)old->size, (unsigned long long)tree->size);
    if (old->size == 0 || old->size == tree->size)
        return verify_trivial(old, tree, proof_count, reterr);
    if (proof_count == 0)
        return ron_fail(reterr, RON_ERR_CHAIN_MISMATCH, "consistency proof without a hash");
    old_hash = hash = old_is_subtree ? old->root : proof[0];
    for (; walk.node % 2 == 1; walk.node /= 2)
        walk.last /= 2;
    for (; i < proof_count; i++) {
        if (walk.last == 0)
            return ron_fail(reterr, RON_ERR_CHAIN_MISMATCH,
                            "consistency proof: %zu hashes, %zu lead to the root", proof_count, i);
        if (turns_left(&walk)) {
            old_hash = join(&proof[i], &old_hash);
            hash = join(&proof[i], &hash);
        } else {
            hash = join(&hash, &proof[i]);
        }
        walk.node /= 2;
        walk.last /= 2;
    }
    if (walk.last != 0)
        return ron_fail(reterr, RON_ERR_CHAIN_MISMATCH,
                        "consistency proof: %zu hashes do not reach the root", proof_count);
    if (!equal(&old_hash, &old->root))
        return ron_fail(reterr, RON_ERR_CHAIN_MISMATCH, "another root at size %llu",
                        (unsigned long long)old->size);
    if (!equal(&hash, &tree->root))
        return ron_fail(reterr, RON_ERR_CHAIN_MISMATCH, "another root at size %llu",
                        (unsigned long long)tree->size);
    return RON_ERR_OK;
}
