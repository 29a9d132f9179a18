/*
 * test_verify.c - inclusion and consistency checks of ron/verify.h. Method: every proof of every
 * tree up to 70 leaves, made by the recursive definition of RFC 6962, is accepted; each of its
 * hashes changed, dropped or doubled, every other index, size and root is refused.
 */
#include "support.h"

#include "merkle_oracle.h"
#include "ron/verify.h"

enum { LEAVES_COUNT = 70 };

static struct ron_sha256 leaves[LEAVES_COUNT + 1];
static struct ron_sha256 roots[LEAVES_COUNT + 1];

static int make_leaves(void **state)
{
    (void)state;
    oracle_leaves(leaves, LEAVES_COUNT + 1);
    for (size_t n = 0; n <= LEAVES_COUNT; n++)
        roots[n] = oracle_root(leaves, n);
    return 0;
}

static enum ron_err include(size_t index, size_t size, const struct oracle_path *path)
{
    struct ron_tree tree = {size, roots[size]};

    return ron_verify_inclusion(&leaves[index], index, &tree, path->hashes, path->count, NULL);
}

static void inclusion_accepts_the_definition_and_nothing_near_it(void **state)
{
    (void)state;
    for (size_t n = 1; n <= LEAVES_COUNT; n++)
        for (size_t m = 0; m < n; m++) {
            struct oracle_path path = {.count = 0}, other;

            oracle_inclusion(leaves, m, n, &path);
            assert_ok(include(m, n, &path));
            for (size_t i = 0; i < path.count; i++) {
                other = path;
                other.hashes[i].bytes[i % 32] ^= (uint8_t)(1u << (m % 8));
                assert_int_equal(include(m, n, &other), RON_ERR_CHAIN_MISMATCH);
            }
            other = path;
            other.count++; /* longer, by zeros and by a copy of the last */
            assert_int_equal(include(m, n, &other), RON_ERR_CHAIN_MISMATCH);
            if (path.count > 0) {
                other.hashes[path.count] = path.hashes[path.count - 1];
                assert_int_equal(include(m, n, &other), RON_ERR_CHAIN_MISMATCH);
                other.count = path.count - 1;
                assert_int_equal(include(m, n, &other), RON_ERR_CHAIN_MISMATCH);
            }
            for (size_t wrong = 0; wrong < n; wrong++)
                if (wrong != m)
                    assert_int_equal(include(wrong, n, &path), RON_ERR_CHAIN_MISMATCH);
        }
}

static void inclusion_refuses_a_leaf_beyond_the_tree(void **state)
{
    struct ron_tree tree = {0, roots[0]};
    struct ron_errinfo info = {0};

    (void)state;
    support_assert_error(ron_verify_inclusion(&leaves[0], 0, &tree, NULL, 0, &info), &info,
                         RON_ERR_MALFORMED, "leaf 0 of a tree of 0");
    tree = (struct ron_tree){5, roots[5]};
    assert_int_equal(ron_verify_inclusion(&leaves[5], 5, &tree, NULL, 0, NULL), RON_ERR_MALFORMED);
    assert_int_equal(ron_verify_inclusion(&leaves[5], UINT64_MAX, &tree, NULL, 0, NULL),
                     RON_ERR_MALFORMED);
    /* The largest tree there can be: 64 hashes lead to a root. */
    tree.size = UINT64_MAX;
    assert_int_equal(ron_verify_inclusion(&leaves[0], 0, &tree, leaves, 64, NULL),
                     RON_ERR_CHAIN_MISMATCH);
    assert_int_equal(ron_verify_inclusion(&leaves[0], 0, &tree, leaves, 65, NULL),
                     RON_ERR_CHAIN_MISMATCH);
}

static enum ron_err extend(size_t old_size, size_t size, const struct oracle_path *path)
{
    struct ron_tree old = {old_size, roots[old_size]}, tree = {size, roots[size]};

    return ron_verify_consistency(&old, &tree, path->hashes, path->count, NULL);
}

static void consistency_accepts_the_definition_and_nothing_near_it(void **state)
{
    (void)state;
    for (size_t n = 1; n <= LEAVES_COUNT; n++)
        for (size_t m = 1; m <= n; m++) {
            struct oracle_path path = {.count = 0}, other;

            oracle_consistency(leaves, m, n, true, &path);
            assert_ok(extend(m, n, &path));
            for (size_t i = 0; i < path.count; i++) {
                other = path;
                other.hashes[i].bytes[i % 32] ^= 1;
                assert_int_equal(extend(m, n, &other), RON_ERR_CHAIN_MISMATCH);
            }
            other = path;
            other.count++;
            assert_int_equal(extend(m, n, &other), RON_ERR_CHAIN_MISMATCH);
            if (path.count > 0) {
                other.count = path.count - 1;
                assert_int_equal(extend(m, n, &other), RON_ERR_CHAIN_MISMATCH);
            }
        }
}

static void consistency_compares_both_roots(void **state)
{
    (void)state;
    for (size_t n = 1; n <= LEAVES_COUNT; n++)
        for (size_t m = 1; m <= n; m++) {
            struct ron_tree old = {m, roots[m]}, tree = {n, roots[n]};
            struct oracle_path path = {.count = 0};

            oracle_consistency(leaves, m, n, true, &path);
            old.root.bytes[31] ^= 1;
            assert_int_equal(ron_verify_consistency(&old, &tree, path.hashes, path.count, NULL),
                             RON_ERR_CHAIN_MISMATCH);
            old.root.bytes[31] ^= 1;
            tree.root.bytes[0] ^= 1;
            assert_int_equal(ron_verify_consistency(&old, &tree, path.hashes, path.count, NULL),
                             RON_ERR_CHAIN_MISMATCH);
        }
}

static void consistency_from_nothing_needs_the_empty_root(void **state)
{
    struct ron_tree old = {0, roots[0]}, tree = {7, roots[7]}, empty = {0, roots[0]};
    struct ron_errinfo info = {0};

    (void)state;
    assert_ok(ron_verify_consistency(&old, &tree, NULL, 0, NULL));
    assert_ok(ron_verify_consistency(&old, &empty, NULL, 0, NULL));
    assert_int_equal(ron_verify_consistency(&old, &tree, leaves, 1, NULL), RON_ERR_CHAIN_MISMATCH);
    old.root = roots[1];
    support_assert_error(ron_verify_consistency(&old, &tree, NULL, 0, &info), &info,
                         RON_ERR_CHAIN_MISMATCH, "another root at size 0");
    empty.root = old.root;
    assert_int_equal(ron_verify_consistency(&old, &empty, NULL, 0, NULL), RON_ERR_CHAIN_MISMATCH);
    support_assert_error(ron_verify_consistency(&tree, &old, NULL, 0, &info), &info,
                         RON_ERR_MALFORMED, "from a tree of 7 to one of 0");
}

static void leaf_hash_is_that_of_the_rfc(void **state)
{
    /* SHA-256 of one zero byte: the leaf of no data. */
    static const uint8_t empty_leaf[4] = {0x6e, 0x34, 0x0b, 0x9c};
    struct ron_sha256 hash = ron_verify_leaf_hash("", 0);

    (void)state;
    assert_memory_equal(hash.bytes, empty_leaf, sizeof(empty_leaf));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inclusion_accepts_the_definition_and_nothing_near_it),
        cmocka_unit_test(inclusion_refuses_a_leaf_beyond_the_tree),
        cmocka_unit_test(consistency_accepts_the_definition_and_nothing_near_it),
        cmocka_unit_test(consistency_compares_both_roots),
        cmocka_unit_test(consistency_from_nothing_needs_the_empty_root),
        cmocka_unit_test(leaf_hash_is_that_of_the_rfc),
    };
    return cmocka_run_group_tests_name("verify", tests, make_leaves, NULL);
}
