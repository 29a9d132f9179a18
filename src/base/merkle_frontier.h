/*
 * merkle_frontier.h - the root of an append-only RFC 6962 tree from at most 64 hashes.
 *
 * The frontier holds the roots of the complete subtrees along the right edge: one for each bit set
 * in the number of leaves. That is all an appender needs; proofs need the nodes themselves, which
 * the log keeps elsewhere. Caller's memory, no end needed; copying one forks it.
 */
#ifndef RON_BASE_MERKLE_FRONTIER_H
#define RON_BASE_MERKLE_FRONTIER_H

#include "base/merkle_hash.h"

enum { RON_MERKLE_LEVELS_MAX = 64 };

struct ron_merkle_frontier {
    uint64_t leaves_count;
    /* levels[k] is the subtree of 2^k leaves at the right edge, valid if bit k of leaves_count is
     * set. */
    struct ron_sha256 levels[RON_MERKLE_LEVELS_MAX];
};

void ron_merkle_frontier_init(struct ron_merkle_frontier *frontier);
/* As an assignment, but only of what counts: a fork in the small. */
void ron_merkle_frontier_copy(struct ron_merkle_frontier *frontier,
                              const struct ron_merkle_frontier *from);
/* The same of what became of a tree of since_count leaves (at most those of *from): the levels that
 * growing has not touched are left as they are, and valid if *frontier was that tree. */
void ron_merkle_frontier_copy_since(struct ron_merkle_frontier *frontier,
                                    const struct ron_merkle_frontier *from, uint64_t since_count);
/* Append hashes_count leaf hashes in order. They are used up: the array is scratch afterwards. */
void ron_merkle_frontier_append(struct ron_merkle_frontier *frontier, struct ron_sha256 *hashes,
                                size_t hashes_count);
/* The same, but the hashes are left as they are, and the nodes that they completed are in
 * ret_nodes, those of one height after those of the height below: of height k the nodes from
 * (leaves before) >> k up to (leaves after) >> k. Room for RON_MERKLE_NODES_MAX(hashes_count). */
#define RON_MERKLE_NODES_MAX(hashes_count) ((hashes_count) + RON_MERKLE_LEVELS_MAX)
void ron_merkle_frontier_append_keep(struct ron_merkle_frontier *frontier,
                                     const struct ron_sha256 *hashes, size_t hashes_count,
                                     struct ron_sha256 *ret_nodes);
/* The root over all leaves so far; ron_merkle_empty for none. */
struct ron_sha256 ron_merkle_frontier_root(const struct ron_merkle_frontier *frontier);
/* The roots of two trees, neither of them empty: side by side, so in little more than the time of
 * one. */
void ron_merkle_frontier_root_two(const struct ron_merkle_frontier *const frontiers[static 2],
                                  struct ron_sha256 ret_roots[static 2]);

#endif
