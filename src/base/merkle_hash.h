/*
 * merkle_hash.h - the hashes of an RFC 6962 Merkle tree: leaf, node, empty tree.
 *
 * A leaf is SHA-256(0x00 || data), a node SHA-256(0x01 || left || right): the prefix keeps a node
 * from being passed off as a leaf. The shape of the tree belongs to the log, not to this file. The
 * array forms hash two messages or sixteen at a time and are the fast way wherever there is more
 * than one.
 */
#ifndef RON_BASE_MERKLE_HASH_H
#define RON_BASE_MERKLE_HASH_H

#include "base/sha256.h"

struct ron_merkle_pair {
    struct ron_sha256 left;
    struct ron_sha256 right;
};
_Static_assert(sizeof(struct ron_merkle_pair) == 2 * RON_SHA256_SIZE, "two hashes in a row");

/* The root of the tree without leaves: SHA-256 of nothing. */
extern const struct ron_sha256 ron_merkle_empty;

struct ron_sha256 ron_merkle_leaf(const void *data, size_t size);
struct ron_sha256 ron_merkle_node(const struct ron_merkle_pair *children);

/* leaves_count leaves of leaf_size bytes each, one after the other; ret_hashes has leaves_count
 * places and overlaps nothing. */
void ron_merkle_leaves(const void *leaves, size_t leaf_size, size_t leaves_count,
                       struct ron_sha256 *ret_hashes);
/* Two leaves of one size from two places. */
void ron_merkle_leaf_two(const void *const leaves[static 2], size_t leaf_size,
                         struct ron_sha256 ret_hashes[static 2]);
/* The parents of nodes_count pairs. ret_nodes may be the memory of children itself (a level is
 * folded in place), else it overlaps nothing. */
void ron_merkle_nodes(const struct ron_merkle_pair *children, size_t nodes_count,
                      struct ron_sha256 *ret_nodes);

#endif
