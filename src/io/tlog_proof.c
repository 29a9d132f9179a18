/*
 * tlog_proof.c - roots and proofs of the Merkle log (RFC 6962, 2.1).
 *
 * A hash of RFC 6962's MTH(D[low:high]) is folded from the roots of the complete subtrees it
 * consists of, the largest first. A proof is a list of such ranges: all complete but at most one,
 * at the right edge, so a plan has at most twice as many nodes as a tree has levels.
 */
#include "base/assert.h"
#include "io/tlog_impl.h"

enum { PLAN_NODES_MAX = 2 * RON_CONSISTENCY_HASHES_MAX };

struct plan {
    struct node nodes[PLAN_NODES_MAX];
    size_t nodes_count;
    size_t ends[RON_CONSISTENCY_HASHES_MAX]; /* of each range among the nodes */
    size_t ranges_count;
};

/* Add MTH(D[low:high]); low is a multiple of the largest power of two in high - low. */
static void plan_range(struct plan *plan, uint64_t low, uint64_t high)
{
    RON_ASSERT(low < high);
    RON_ASSERT(plan->ranges_count < RON_CONSISTENCY_HASHES_MAX);
    while (low < high) {
        unsigned height = 63 - (unsigned)__builtin_clzll(high - low);

        RON_ASSERT(plan->nodes_count < PLAN_NODES_MAX);
        RON_ASSERT((low & (((uint64_t)1 << height) - 1)) == 0);
        plan->nodes[plan->nodes_count++] = (struct node){height, low >> height};
        low += (uint64_t)1 << height;
    }
    plan->ends[plan->ranges_count++] = plan->nodes_count;
}

/* The hash of each range of the plan, the last one first: plans go down, proofs up. */
static enum ron_err plan_run(struct io_tlog *tlog, const struct plan *plan,
                             struct ron_sha256 *ret_hashes, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_sha256 hashes[PLAN_NODES_MAX];
    enum ron_err err = tlog_nodes(tlog, plan->nodes, plan->nodes_count, hashes, reterr);

    if (err != RON_ERR_OK)
        return err;
    for (size_t range = 0; range < plan->ranges_count; range++) {
        size_t first = range == 0 ? 0 : plan->ends[range - 1];
        size_t at = plan->ends[range] - 1;
        struct ron_merkle_pair children = {.right = hashes[at]};

        while (at > first) {
            children.left = hashes[--at];
            children.right = ron_merkle_node(&children);
        }
        ret_hashes[plan->ranges_count - 1 - range] = children.right;
    }
    return RON_ERR_OK;
}

static uint64_t left_size(uint64_t size) /* the largest power of two below it */
{
    RON_ASSERT(size > 1);
    return (uint64_t)1 << (63 - __builtin_clzll(size - 1));
}

static enum ron_err check_size(struct io_tlog *tlog, uint64_t size, struct ron_errinfo *reterr)
{
    uint64_t current = io_tlog_size(tlog);

    if (size > current)
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "size %llu of a tree of %llu",
                        (unsigned long long)size, (unsigned long long)current);
    return RON_ERR_OK;
}

enum ron_err io_tlog_root(struct io_tlog *tlog, uint64_t size, struct ron_sha256 *ret_root,
                          struct ron_errinfo *reterr)
{
    struct plan plan = {.nodes_count = 0};
    struct ron_tree known;
    enum ron_err err;

    rt_assert_no_lock_held();
    err = check_size(tlog, size, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (size == 0) {
        *ret_root = ron_merkle_empty;
        return RON_ERR_OK;
    }
    tlog_lock(tlog);
    known = tlog->last_root;
    tlog_unlock(tlog);
    if (known.size != size) {
        plan_range(&plan, 0, size);
        err = plan_run(tlog, &plan, &known.root, reterr);
        if (err != RON_ERR_OK)
            return err;
        known.size = size;
        tlog_lock(tlog);
        tlog->last_root = known;
        tlog_unlock(tlog);
    }
    *ret_root = known.root;
    return RON_ERR_OK;
}

/* A proof that does not verify never leaves: then memory or code is wrong, not the caller. */
static enum ron_err refuse(const struct io_tlog *tlog, enum ron_err err, struct ron_errinfo *reterr)
{
    if (err == RON_ERR_OK)
        return err;
    return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "%s: a proof does not lead to its root",
                    tlog->dir);
}

enum ron_err io_tlog_inclusion(struct io_tlog *tlog, uint64_t index, uint64_t size,
                               struct io_tlog_proof *ret_proof, struct ron_errinfo *reterr)
{
    struct io_tlog_proof proof = {.tree.size = size};
    struct plan plan = {.nodes_count = 0};
    struct ron_sha256 hashes[RON_CONSISTENCY_HASHES_MAX];
    uint64_t low = 0, high = size;
    enum ron_err err;

    if (index >= size)
        return ron_fail(reterr, RON_ERR_MALFORMED, "leaf %llu of a tree of %llu",
                        (unsigned long long)index, (unsigned long long)size);
    err = io_tlog_root(tlog, size, &proof.tree.root, reterr);
    if (err != RON_ERR_OK)
        return err;
    while (high - low > 1) {
        uint64_t middle = low + left_size(high - low);

        if (index < middle) {
            plan_range(&plan, middle, high);
            high = middle;
        } else {
            plan_range(&plan, low, middle);
            low = middle;
        }
    }
    plan_range(&plan, index, index + 1); /* the leaf, for the check */
    err = plan_run(tlog, &plan, hashes, reterr);
    if (err != RON_ERR_OK)
        return err;
    proof.hashes_count = plan.ranges_count - 1;
    memcpy(proof.hashes, hashes + 1, proof.hashes_count * sizeof(hashes[0]));
    err = refuse(tlog,
                 ron_verify_inclusion(&hashes[0], index, &proof.tree, proof.hashes,
                                      proof.hashes_count, NULL),
                 reterr);
    if (err == RON_ERR_OK)
        *ret_proof = proof;
    return err;
}

/* SUBPROOF of RFC 6962, 2.1.2, from the root down. */
static void plan_consistency(struct plan *plan, uint64_t old_size, uint64_t size)
{
    uint64_t low = 0, high = size;

    while (high != old_size) {
        uint64_t middle = low + left_size(high - low);

        if (old_size <= middle) {
            plan_range(plan, middle, high);
            high = middle;
        } else {
            plan_range(plan, low, middle);
            low = middle;
        }
    }
    if (low > 0) /* else it is the old root, which the verifier has */
        plan_range(plan, low, high);
}

enum ron_err io_tlog_consistency(struct io_tlog *tlog, uint64_t old_size, uint64_t size,
                                 struct io_tlog_proof *ret_proof, struct ron_errinfo *reterr)
{
    struct io_tlog_proof proof = {.tree.size = size, .old.size = old_size};
    struct plan plan = {.nodes_count = 0};
    enum ron_err err;

    if (old_size > size)
        return ron_fail(reterr, RON_ERR_MALFORMED, "from a tree of %llu to one of %llu",
                        (unsigned long long)old_size, (unsigned long long)size);
    err = io_tlog_root(tlog, old_size, &proof.old.root, reterr);
    if (err == RON_ERR_OK)
        err = io_tlog_root(tlog, size, &proof.tree.root, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (old_size > 0)
        plan_consistency(&plan, old_size, size);
    err = plan_run(tlog, &plan, proof.hashes, reterr);
    if (err != RON_ERR_OK)
        return err;
    proof.hashes_count = plan.ranges_count;
    err = refuse(
        tlog,
        ron_verify_consistency(&proof.old, &proof.tree, proof.hashes, proof.hashes_count, NULL),
        reterr);
    if (err == RON_ERR_OK)
        *ret_proof = proof;
    return err;
}
