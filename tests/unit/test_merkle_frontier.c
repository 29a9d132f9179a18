/*
 * test_merkle_frontier.c - the append-only frontier. Method: every root up to 130 leaves against
 * the recursive definition of RFC 6962, with the leaves appended in pieces of every size.
 */
#include "support.h"

#include "base/merkle_frontier.h"

enum { LEAVES_COUNT = 130 };

static struct ron_sha256 leaves[LEAVES_COUNT];

static int make_leaves(void **state)
{
    (void)state;
    for (size_t i = 0; i < LEAVES_COUNT; i++) {
        uint8_t byte = (uint8_t)i;

        leaves[i] = ron_merkle_leaf(&byte, 1);
    }
    return 0;
}

/* MTH of RFC 6962, 2.1. */
static struct ron_sha256 tree_root(const struct ron_sha256 *hashes, size_t count)
{
    struct ron_merkle_pair children;
    size_t k = 1;

    if (count == 0)
        return ron_merkle_empty;
    if (count == 1)
        return hashes[0];
    while (2 * k < count)
        k *= 2;
    children.left = tree_root(hashes, k);
    children.right = tree_root(hashes + k, count - k);
    return ron_merkle_node(&children);
}

static void roots_are_those_of_the_definition(void **state)
{
    (void)state;
    for (size_t step = 1; step <= LEAVES_COUNT; step++) {
        struct ron_merkle_frontier frontier;
        size_t done = 0;

        ron_merkle_frontier_init(&frontier);
        for (;;) {
            struct ron_sha256 root = ron_merkle_frontier_root(&frontier);
            struct ron_sha256 expected = tree_root(leaves, done);
            struct ron_sha256 scratch[LEAVES_COUNT];
            size_t count = step < LEAVES_COUNT - done ? step : LEAVES_COUNT - done;

            assert_memory_equal(root.bytes, expected.bytes, RON_SHA256_SIZE);
            assert_int_equal(frontier.leaves_count, done);
            if (count == 0)
                break;
            memcpy(scratch, leaves + done, count * sizeof(scratch[0]));
            ron_merkle_frontier_append(&frontier, scratch, count);
            done += count;
        }
    }
}

/* A copy over another's levels has the same root, and goes on the same way. */
static void copies_are_forks(void **state)
{
    (void)state;
    for (size_t size = 0; size < LEAVES_COUNT; size++) {
        struct ron_merkle_frontier frontier, copy;
        struct ron_sha256 scratch[LEAVES_COUNT];
        struct ron_sha256 root, expected;

        ron_merkle_frontier_init(&frontier);
        memcpy(scratch, leaves, sizeof(scratch));
        ron_merkle_frontier_append(&frontier, scratch, size);
        memset(&copy, 0xaa, sizeof(copy));
        ron_merkle_frontier_copy(&copy, &frontier);
        root = ron_merkle_frontier_root(&copy);
        expected = tree_root(leaves, size);
        assert_memory_equal(root.bytes, expected.bytes, RON_SHA256_SIZE);
        scratch[0] = leaves[size];
        ron_merkle_frontier_append(&copy, scratch, 1);
        root = ron_merkle_frontier_root(&copy);
        expected = tree_root(leaves, size + 1);
        assert_memory_equal(root.bytes, expected.bytes, RON_SHA256_SIZE);
        assert_int_equal(frontier.leaves_count, size);
    }
}

static void frontier_of(struct ron_merkle_frontier *frontier, size_t size)
{
    struct ron_sha256 scratch[LEAVES_COUNT];

    ron_merkle_frontier_init(frontier);
    memcpy(scratch, leaves, sizeof(scratch));
    ron_merkle_frontier_append(frontier, scratch, size);
}

/* Any tree follows any smaller one by what growing changed, by way of a copy of just that. */
static void copies_of_what_changed_are_enough(void **state)
{
    (void)state;
    for (size_t since = 0; since <= LEAVES_COUNT; since++)
        for (size_t size = since; size <= LEAVES_COUNT; size++) {
            struct ron_merkle_frontier before, after, between;
            struct ron_sha256 root, expected;

            frontier_of(&before, since);
            frontier_of(&after, size);
            memset(&between, 0xaa, sizeof(between));
            ron_merkle_frontier_copy_since(&between, &after, since);
            ron_merkle_frontier_copy_since(&before, &between, since);
            root = ron_merkle_frontier_root(&before);
            expected = tree_root(leaves, size);
            assert_int_equal(before.leaves_count, size);
            assert_memory_equal(root.bytes, expected.bytes, RON_SHA256_SIZE);
        }
}

static void two_roots_are_those_of_each(void **state)
{
    (void)state;
    for (size_t a = 1; a <= LEAVES_COUNT; a++)
        for (size_t b = 1; b <= LEAVES_COUNT; b++) {
            struct ron_merkle_frontier trees[2];
            const struct ron_merkle_frontier *const both[2] = {&trees[0], &trees[1]};
            struct ron_sha256 roots[2], expected[2];

            frontier_of(&trees[0], a);
            frontier_of(&trees[1], b);
            ron_merkle_frontier_root_two(both, roots);
            expected[0] = ron_merkle_frontier_root(&trees[0]);
            expected[1] = ron_merkle_frontier_root(&trees[1]);
            assert_memory_equal(roots, expected, sizeof(roots));
        }
}

/* Nodes that leaves complete, height by height, each straight from the leaves below it. */
static void completed_nodes_are_kept(void **state)
{
    (void)state;
    for (size_t at = 0; at <= LEAVES_COUNT; at++)
        for (size_t to = at; to <= LEAVES_COUNT; to++) {
            struct ron_sha256 nodes[RON_MERKLE_NODES_MAX(LEAVES_COUNT) + 1];
            struct ron_merkle_frontier frontier;
            struct ron_sha256 root, expected = tree_root(leaves, to);
            size_t count = 0;

            memset(nodes, 0xee, sizeof(nodes));
            frontier_of(&frontier, at);
            ron_merkle_frontier_append_keep(&frontier, leaves + at, to - at, nodes);
            root = ron_merkle_frontier_root(&frontier);
            assert_memory_equal(root.bytes, expected.bytes, RON_SHA256_SIZE);
            assert_int_equal(frontier.leaves_count, to);
            for (unsigned height = 1; height < 8; height++)
                for (size_t i = at >> height; i < to >> height; i++, count++) {
                    expected = tree_root(leaves + (i << height), (size_t)1 << height);
                    assert_memory_equal(nodes[count].bytes, expected.bytes, RON_SHA256_SIZE);
                }
            assert_int_equal(nodes[count].bytes[0], 0xee);
        }
}

static void nothing_appended_changes_nothing(void **state)
{
    struct ron_merkle_frontier frontier;

    (void)state;
    ron_merkle_frontier_init(&frontier);
    ron_merkle_frontier_append(&frontier, NULL, 0);
    assert_int_equal(frontier.leaves_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roots_are_those_of_the_definition),
        cmocka_unit_test(nothing_appended_changes_nothing),
        cmocka_unit_test(completed_nodes_are_kept),
        cmocka_unit_test(copies_are_forks),
        cmocka_unit_test(copies_of_what_changed_are_enough),
        cmocka_unit_test(two_roots_are_those_of_each),
    };
    return cmocka_run_group_tests_name("merkle_frontier", tests, make_leaves, NULL);
}
