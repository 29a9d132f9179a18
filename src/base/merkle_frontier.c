/*
 * merkle_frontier.c - see merkle_frontier.h.
 */
#include "base/merkle_frontier.h"

#include "base/assert.h"

_Static_assert(sizeof(struct ron_merkle_pair) == 2 * sizeof(struct ron_sha256),
               "two hashes in a row are a pair");

void ron_merkle_frontier_init(struct ron_merkle_frontier *frontier)
{
    *frontier = (struct ron_merkle_frontier){.leaves_count = 0};
}

void ron_merkle_frontier_copy(struct ron_merkle_frontier *frontier,
                              const struct ron_merkle_frontier *from)
{
    frontier->leaves_count = from->leaves_count;
    for (uint64_t left = from->leaves_count; left != 0; left &= left - 1)
        frontier->levels[__builtin_ctzll(left)] = from->levels[__builtin_ctzll(left)];
}

/* One level: nodes[0..count) come to stand right of `at` earlier nodes of this level. Complete
 * pairs become their parents, in place; a left node without partner stays as *edge. Returns the
 * number of parents. */
static size_t fold(struct ron_sha256 *edge, uint64_t at, struct ron_sha256 *nodes, size_t count)
{
    size_t parents_count = 0;
    size_t rest = count;
    struct ron_sha256 *next = nodes;

    RON_ASSERT(count > 0);
    if (at % 2 == 1) {
        struct ron_merkle_pair children = {*edge, nodes[0]};

        nodes[0] = ron_merkle_node(&children);
        parents_count = 1;
        next = nodes + 1;
        rest = count - 1;
    }
    if (rest % 2 == 1)
        *edge = next[rest - 1];
    ron_merkle_nodes((const struct ron_merkle_pair *)(const void *)next, rest / 2, next);
    return parents_count + rest / 2;
}

void ron_merkle_frontier_append(struct ron_merkle_frontier *frontier, struct ron_sha256 *hashes,
                                size_t hashes_count)
{
    uint64_t at = frontier->leaves_count;
    size_t count = hashes_count;

    RON_ASSERT(hashes_count <= UINT64_MAX - frontier->leaves_count);
    for (unsigned level = 0; count > 0; level++) {
        RON_ASSERT(level < RON_MERKLE_LEVELS_MAX);
        count = fold(&frontier->levels[level], at, hashes, count);
        at /= 2;
    }
    frontier->leaves_count += hashes_count;
}

struct ron_sha256 ron_merkle_frontier_root(const struct ron_merkle_frontier *frontier)
{
    struct ron_merkle_pair children;
    unsigned level;

    if (frontier->leaves_count == 0)
        return ron_merkle_empty;
    level = (unsigned)__builtin_ctzll(frontier->leaves_count);
    children.right = frontier->levels[level];
    while (++level < RON_MERKLE_LEVELS_MAX)
        if ((frontier->leaves_count >> level & 1) != 0) {
            children.left = frontier->levels[level];
            children.right = ron_merkle_node(&children);
        }
    return children.right;
}
