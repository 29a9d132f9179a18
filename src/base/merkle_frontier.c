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

void ron_merkle_frontier_copy_since(struct ron_merkle_frontier *frontier,
                                    const struct ron_merkle_frontier *from, uint64_t since_count)
{
    /* Bits above the highest that differs stand for the same subtrees in both. */
    const uint64_t changed = since_count ^ from->leaves_count;
    uint64_t left = 0;

    RON_ASSERT(since_count <= from->leaves_count);
    if (changed != 0)
        left = from->leaves_count & (UINT64_MAX >> __builtin_clzll(changed));
    frontier->leaves_count = from->leaves_count;
    for (; left != 0; left &= left - 1)
        frontier->levels[__builtin_ctzll(left)] = from->levels[__builtin_ctzll(left)];
}

/* One level: nodes[0..count) come to stand right of `at` earlier nodes of this level. Complete
 * pairs become their parents, in ret_parents, which may be nodes itself; a left node without
 * partner stays as *edge. Returns the number of parents. */
static size_t fold(struct ron_sha256 *edge, uint64_t at, const struct ron_sha256 *nodes,
                   size_t count, struct ron_sha256 *ret_parents)
{
    size_t parents_count = 0;
    size_t rest = count;
    const struct ron_sha256 *next = nodes;

    RON_ASSERT(count > 0);
    if (at % 2 == 1) {
        struct ron_merkle_pair children = {*edge, nodes[0]};

        ret_parents[0] = ron_merkle_node(&children);
        parents_count = 1;
        next = nodes + 1;
        rest = count - 1;
    }
    if (rest % 2 == 1)
        *edge = next[rest - 1];
    ron_merkle_nodes((const struct ron_merkle_pair *)(const void *)next, rest / 2,
                     ret_parents + parents_count);
    return parents_count + rest / 2;
}

/* Level by level; with `keep` the parents of each stand behind those of the one below. */
static void append(struct ron_merkle_frontier *frontier, const struct ron_sha256 *hashes,
                   size_t hashes_count, struct ron_sha256 *parents, bool keep)
{
    const struct ron_sha256 *nodes = hashes;
    uint64_t at = frontier->leaves_count;
    size_t count = hashes_count;

    RON_ASSERT(hashes_count <= UINT64_MAX - frontier->leaves_count);
    for (unsigned level = 0; count > 0; level++) {
        RON_ASSERT(level < RON_MERKLE_LEVELS_MAX);
        count = fold(&frontier->levels[level], at, nodes, count, parents);
        nodes = parents;
        parents += keep ? count : 0;
        at /= 2;
    }
    frontier->leaves_count += hashes_count;
}

void ron_merkle_frontier_append(struct ron_merkle_frontier *frontier, struct ron_sha256 *hashes,
                                size_t hashes_count)
{
    append(frontier, hashes, hashes_count, hashes, false);
}

void ron_merkle_frontier_append_keep(struct ron_merkle_frontier *frontier,
                                     const struct ron_sha256 *hashes, size_t hashes_count,
                                     struct ron_sha256 *ret_nodes)
{
    append(frontier, hashes, hashes_count, ret_nodes, true);
}

/* The way from the lowest subtree to the root: those left of it, from the lowest on. */
struct way {
    const struct ron_merkle_frontier *frontier;
    uint64_t left; /* bits of the subtrees that are not in yet */
};

static struct way way_begin(const struct ron_merkle_frontier *frontier, struct ron_sha256 *ret_node)
{
    RON_ASSERT(frontier->leaves_count > 0);
    *ret_node = frontier->levels[__builtin_ctzll(frontier->leaves_count)];
    return (struct way){frontier, frontier->leaves_count & (frontier->leaves_count - 1)};
}

static struct ron_sha256 way_next(struct way *way)
{
    const struct ron_sha256 node = way->frontier->levels[__builtin_ctzll(way->left)];

    way->left &= way->left - 1;
    return node;
}

static struct ron_sha256 way_end(struct way *way, struct ron_sha256 node)
{
    struct ron_merkle_pair children = {.right = node};

    while (way->left != 0) {
        children.left = way_next(way);
        children.right = ron_merkle_node(&children);
    }
    return children.right;
}

struct ron_sha256 ron_merkle_frontier_root(const struct ron_merkle_frontier *frontier)
{
    struct ron_sha256 node;
    struct way way;

    if (frontier->leaves_count == 0)
        return ron_merkle_empty;
    way = way_begin(frontier, &node);
    return way_end(&way, node);
}

void ron_merkle_frontier_root_two(const struct ron_merkle_frontier *const frontiers[static 2],
                                  struct ron_sha256 ret_roots[static 2])
{
    struct ron_merkle_pair children[2];
    struct ron_sha256 nodes[2];
    struct way ways[2] = {way_begin(frontiers[0], &nodes[0]), way_begin(frontiers[1], &nodes[1])};

    while (ways[0].left != 0 && ways[1].left != 0) {
        children[0] = (struct ron_merkle_pair){way_next(&ways[0]), nodes[0]};
        children[1] = (struct ron_merkle_pair){way_next(&ways[1]), nodes[1]};
        ron_merkle_nodes(children, 2, nodes);
    }
    ret_roots[0] = way_end(&ways[0], nodes[0]);
    ret_roots[1] = way_end(&ways[1], nodes[1]);
}
