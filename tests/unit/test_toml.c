/*
 * test_toml.c - the TOML reader's tree and bounds.
 * Method: places of nodes and how they are found; every bound and one beyond; truncations; texts of
 * the largest size against the memory bound. test_toml_documents.c has the documents.
 */
#include "support.h"

#include <stdio.h>

#include "base/limits.h"
#include "base/toml.h"
#include "nasty_toml.h"

enum {
    ARENA_SIZE = 1 << 20,
    ARENA_SIZE_LARGE = 8 << 20,
};

static const char sample[] = "# ron\n"
                             "title = 'x' \n"
                             "  [role.ledger]\n"
                             "bind.\"port\" =  8080\n"
                             "\"\xc3\xa9\" = [ 1,\n"
                             "   \"\\t\" ]\n"
                             "[role]\n"
                             "on = true\n"
                             "[[peer]]\n"
                             "[[ peer ]]\n"
                             "opt = { \"\xc3\xa9\" = 1, deep = {} }\n";

static void assert_place(const struct ron_toml_node *node, unsigned line, unsigned column,
                         unsigned value_column)
{
    assert_non_null(node);
    assert_int_equal(node->line, line);
    assert_int_equal(node->column, column);
    assert_int_equal(node->value_column, value_column);
}

static void nodes_know_their_place(void **state)
{
    const struct ron_toml_node *root = NULL;
    const struct ron_toml_node *node;
    struct ron_arena arena;

    (void)state;
    assert_ok(ron_arena_init(&arena, ARENA_SIZE, NULL));
    assert_ok(ron_toml_parse(ron_slice_text(sample), "t.toml", &arena, &root, NULL));
    assert_place(root, 1, 1, 1);
    assert_place(ron_toml_find(root, "title"), 2, 1, 9);
    assert_place(ron_toml_find(root, "role.ledger"), 3, 9, 9);
    assert_place(ron_toml_find(root, "role.ledger.bind"), 4, 1, 1);
    assert_place(ron_toml_find(root, "role.ledger.bind.port"), 4, 6, 16);
    node = ron_toml_find(root, "role.ledger.\xc3\xa9");
    assert_place(node, 5, 1, 7);
    assert_int_equal(node->children_count, 2);
    assert_place(node->first_child, 5, 9, 9);
    assert_place(node->first_child->next, 6, 4, 4);
    assert_null(node->first_child->next->next);
    assert_place(ron_toml_find(root, "role"), 7, 2, 2); /* where it is defined, not first named */
    assert_place(ron_toml_find(root, "role.on"), 8, 1, 6);
    node = ron_toml_find(root, "peer");
    assert_place(node, 9, 3, 3);
    assert_place(node->first_child, 9, 3, 3);
    node = node->first_child->next;
    assert_place(node, 10, 4, 4);
    assert_place(ron_toml_find(node, "opt"), 11, 1, 7);
    assert_place(ron_toml_find(node, "opt.\xc3\xa9"), 11, 9, 15);
    assert_place(ron_toml_find(node, "opt.deep"), 11, 18, 25);
    assert_int_equal(ron_toml_find(node, "opt.deep")->depth, 4);
    ron_arena_fini(&arena);
}

static void find_walks_tables_only(void **state)
{
    const struct ron_toml_node *root = NULL;
    struct ron_arena arena;

    (void)state;
    assert_ok(ron_arena_init(&arena, ARENA_SIZE, NULL));
    assert_ok(ron_toml_parse(ron_slice_text(sample), "t.toml", &arena, &root, NULL));
    assert_null(ron_toml_find(root, "nothing"));
    assert_null(ron_toml_find(root, "role.nothing.at.all"));
    assert_null(ron_toml_find(root, "title.x"));
    assert_null(ron_toml_find(root, "peer.opt"));
    assert_null(ron_toml_find(root, ""));
    assert_null(ron_toml_find(root, "role."));
    assert_null(ron_toml_find(root, "titl"));
    assert_null(ron_toml_find(root, "title2"));
    assert_null(ron_toml_get(root, RON_SLICE("title\0")));
    assert_null(ron_toml_get(ron_toml_find(root, "peer"), RON_SLICE("opt")));
    assert_true(ron_toml_find(root, "role.on")->boolean);
    assert_string_equal(ron_toml_kind_name(ron_toml_find(root, "role")->kind), "table");
    assert_ok(ron_toml_parse(RON_SLICE("'a.b' = 1\n'' = 2"), "t.toml", &arena, &root, NULL));
    assert_null(ron_toml_find(root, "a.b"));
    assert_int_equal(ron_toml_get(root, RON_SLICE("a.b"))->integer, 1);
    assert_int_equal(ron_toml_find(root, "")->integer, 2);
    ron_arena_fini(&arena);
}

static void strings_borrow_or_live_in_the_arena(void **state)
{
    static const char text[] =
        "a = 'plain'\nb = \"e\\u00e9 and some\"\nc = \"\"\"x\ny\"\"\"\nd = \"\"";
    const struct ron_toml_node *root = NULL;
    const struct ron_toml_node *node;
    struct ron_arena arena;

    (void)state;
    assert_ok(ron_arena_init(&arena, ARENA_SIZE, NULL));
    assert_ok(ron_toml_parse(ron_slice_text(text), "t.toml", &arena, &root, NULL));
    node = ron_toml_find(root, "b");
    assert_true(node->string.data >= arena.block);
    assert_true(node->string.data < arena.block + arena.used_size);
    assert_true(ron_slice_equal(node->string, RON_SLICE("e\xc3\xa9 and some")));
    for (RON_TOML_EACH(child, root)) {
        if (child == node)
            continue;
        assert_false(child->string.data >= arena.block &&
                     child->string.data < arena.block + arena.size);
    }
    ron_arena_fini(&arena);
}

/* Fill out with repetitions of a piece, between a head and a tail. */
static struct ron_slice repeat(struct ron_buf *out, const char *head, const char *piece,
                               unsigned count, const char *tail)
{
    ron_buf_reset(out);
    ron_buf_put_text(out, head);
    for (unsigned i = 0; i < count; i++)
        ron_buf_put_text(out, piece);
    ron_buf_put_text(out, tail);
    return ron_buf_slice(out);
}

static void depth_is_bounded(void **state)
{
    static const struct {
        const char *head, *piece, *tail;
        unsigned fits_count; /* pieces that are accepted; one more is not */
    } shapes[] = {
        {"a=", "[", "", RON_TOML_DEPTH_MAX},         {"", "a={", "", RON_TOML_DEPTH_MAX},
        {"", "a.", "a=1", RON_TOML_DEPTH_MAX},       {"[", "a.", "a]", RON_TOML_DEPTH_MAX - 1},
        {"[[", "a.", "a]]", RON_TOML_DEPTH_MAX - 2},
    };
    struct ron_arena arena;
    struct ron_buf text;

    (void)state;
    assert_ok(ron_arena_init(&arena, ARENA_SIZE, NULL));
    ron_buf_init(&text, 1 << 16);
    for (size_t i = 0; i < RON_ARRAY_COUNT(shapes); i++) {
        for (unsigned more = 0; more < 3; more++) {
            unsigned count = shapes[i].fits_count + more;
            const struct ron_toml_node *root = NULL;
            struct ron_errinfo info = {0};
            enum ron_err err;

            (void)repeat(&text, shapes[i].head, shapes[i].piece, count, shapes[i].tail);
            if (i < 2)
                for (unsigned n = 0; n < count; n++)
                    ron_buf_put_text(&text, i == 0 ? "]" : "}");
            err = ron_toml_parse(ron_buf_slice(&text), "t.toml", &arena, &root, &info);
            if (more == 0) {
                if (err != RON_ERR_OK)
                    fail_msg("shape %zu: %s", i, info.message);
            } else {
                support_assert_error(err, &info, RON_ERR_TOO_LARGE, "nested deeper than 16");
            }
        }
    }
    ron_buf_fini(&text);
    ron_arena_fini(&arena);
}

static void size_and_memory_are_bounded(void **state)
{
    const struct ron_toml_node *root = NULL;
    struct ron_errinfo info = {0};
    struct ron_arena arena;
    struct ron_buf text;

    (void)state;
    ron_buf_init(&text, 2 * RON_TOML_SIZE_MAX);
    assert_ok(ron_arena_init(&arena, 4096, NULL));
    (void)repeat(&text, "", " ", RON_TOML_SIZE_MAX, "");
    assert_ok(ron_toml_parse(ron_buf_slice(&text), "t.toml", &arena, &root, &info));
    ron_arena_reset(&arena);
    root = NULL;
    ron_buf_put_byte(&text, ' ');
    support_assert_error(ron_toml_parse(ron_buf_slice(&text), "t.toml", &arena, &root, &info),
                         &info, RON_ERR_TOO_LARGE, "t.toml:1:1: a document of 1048577 bytes");
    support_assert_error(
        ron_toml_parse(repeat(&text, "a=[", "1,", 100, "]"), "t.toml", &arena, &root, &info), &info,
        RON_ERR_TOO_LARGE, "needs more than its 4096 bytes of memory");
    support_assert_error(
        ron_toml_parse(repeat(&text, "a=\"\\n", "x", 5000, "\""), "t.toml", &arena, &root, &info),
        &info, RON_ERR_TOO_LARGE, "t.toml:1:3: the document needs more than");
    assert_null(root);
    assert_int_equal(arena.used_size, 0);
    ron_arena_fini(&arena);
    assert_ok(ron_arena_init(&arena, ARENA_SIZE_LARGE, NULL));
    assert_ok(ron_toml_parse(repeat(&text, "a=[", "1,", RON_TOML_NODES_MAX - 1, "]"), "t.toml",
                             &arena, &root, &info));
    assert_int_equal(root->first_child->children_count, RON_TOML_NODES_MAX - 1);
    support_assert_error(ron_toml_parse(repeat(&text, "a=[", "1,", RON_TOML_NODES_MAX, "]"),
                                        "t.toml", &arena, &root, &info),
                         &info, RON_ERR_TOO_LARGE, "t.toml:1:65538: more than 32768 values");
    ron_buf_fini(&text);
    ron_arena_fini(&arena);
}

static void long_file_names_leave_room_for_the_message(void **state)
{
    const struct ron_toml_node *root = NULL;
    struct ron_errinfo info = {0};
    struct ron_arena arena;
    char name[300];

    (void)state;
    assert_ok(ron_arena_init(&arena, ARENA_SIZE, NULL));
    memset(name, 'x', sizeof(name));
    memcpy(name + sizeof(name) - 10, "/ron.toml", 10);
    assert_int_equal(ron_toml_parse(RON_SLICE("a"), name, &arena, &root, &info), RON_ERR_MALFORMED);
    assert_string_equal(info.message, "ron.toml:1:2: expected '=', found end of file");
    name[sizeof(name) - 10] = 'x';
    assert_int_equal(ron_toml_parse(RON_SLICE("a"), name, &arena, &root, &info), RON_ERR_MALFORMED);
    assert_non_null(strstr(info.message, "xxxron.toml:1:2: expected '=', found end of file"));
    for (size_t i = 0; i + 11 < sizeof(name); i += 2) /* never into the middle of a character */
        memcpy(name + i, "\xc3\xa9", 2);
    memcpy(name + sizeof(name) - 10, "xxxx.toml", 10);
    assert_int_equal(ron_toml_parse(RON_SLICE("a"), name, &arena, &root, &info), RON_ERR_MALFORMED);
    assert_memory_equal(info.message, "\xc3\xa9", 2);
    name[sizeof(name) - 2] = '\0';
    assert_int_equal(ron_toml_parse(RON_SLICE("a"), name, &arena, &root, &info), RON_ERR_MALFORMED);
    assert_memory_equal(info.message, "\xc3\xa9", 2);
    ron_arena_fini(&arena);
}

static void every_truncation_ends_well(void **state)
{
    struct ron_arena arena;
    unsigned accepted_count = 0;

    (void)state;
    assert_ok(ron_arena_init(&arena, ARENA_SIZE, NULL));
    for (size_t size = 0; size < sizeof(sample); size++) {
        const struct ron_toml_node *root = NULL;
        struct ron_errinfo info = {0};
        uint8_t *copy = ron_mem_alloc(size + 1);
        enum ron_err err;

        assert_non_null(copy);
        memcpy(copy + 1, sample, size);
        err = ron_toml_parse(ron_slice_of(copy + 1, size), "t.toml", &arena, &root, &info);
        if (err != RON_ERR_OK)
            support_assert_error(err, &info, RON_ERR_MALFORMED, "t.toml:");
        accepted_count += err == RON_ERR_OK;
        ron_arena_reset(&arena);
        ron_mem_free(copy);
    }
    assert_in_range(accepted_count, 30, 90);
    ron_arena_fini(&arena);
}

/* The index against a plain walk: scattered keys, prefixes of each other, zero bytes. */
static void large_tables_find_every_key(void **state)
{
    const struct ron_toml_node *root = NULL;
    struct ron_errinfo info = {0};
    struct ron_arena arena;
    struct ron_buf text;
    unsigned seen_count = 0;

    (void)state;
    ron_buf_init(&text, RON_TOML_SIZE_MAX);
    assert_ok(ron_arena_init(&arena, ARENA_SIZE_LARGE, NULL));
    for (unsigned i = 0; i < 3000; i++)
        ron_buf_put_format(&text, "%x = %u\n", i * 2654435761u, i);
    for (unsigned i = 1; i < 40; i++)
        ron_buf_put_format(&text, "z%.*s = %u\n", (int)i,
                           "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", i);
    ron_buf_put_text(&text, "'' = 1\n\"\\u0000\" = 2\n\"\\u0000\\u0000\" = 3\n\"z\\u0000\" = 4\n");
    if (ron_toml_parse(ron_buf_slice(&text), "t.toml", &arena, &root, &info) != RON_ERR_OK)
        fail_msg("%s", info.message);
    for (RON_TOML_EACH(child, root)) {
        assert_ptr_equal(ron_toml_get(root, child->key), child);
        seen_count++;
    }
    assert_int_equal(seen_count, 3000 + 39 + 4);
    assert_int_equal(root->children_count, seen_count);
    for (unsigned i = 0; i < 3000; i++) {
        char key[16];

        assert_true(snprintf(key, sizeof(key), "%xg", i) > 0);
        assert_null(ron_toml_find(root, key));
    }
    ron_buf_put_text(&text, "\"\\u0000\" = 5\n");
    support_assert_error(ron_toml_parse(ron_buf_slice(&text), "t.toml", &arena, &root, &info),
                         &info, RON_ERR_MALFORMED, "t.toml:3044:1: '?' is already defined");
    ron_buf_fini(&text);
    ron_arena_fini(&arena);
}

static void nasty_texts_stay_in_memory(void **state)
{
    struct ron_arena arena;
    struct ron_buf text;

    (void)state;
    ron_buf_init(&text, NASTY_SIZE + 1);
    for (unsigned i = 0; i < NASTY_TOML_COUNT; i++) {
        const struct ron_toml_node *root = NULL;
        struct ron_errinfo info = {.message = "accepted"};
        enum ron_err err;

        nasty_make(&nasty_toml_inputs[i], &text);
        assert_ok(ron_buf_check(&text, NULL));
        assert_true(text.size <= NASTY_SIZE);
        assert_ok(ron_arena_init(&arena, ARENA_SIZE_LARGE, NULL));
        err = ron_toml_parse(ron_buf_slice(&text), "t.toml", &arena, &root, &info);
        print_message("%-24s %7zu bytes, arena %7zu: %s\n", nasty_toml_inputs[i].name, text.size,
                      arena.peak_size, info.message);
        assert_int_equal(err == RON_ERR_OK, nasty_toml_inputs[i].accepted);
        assert_null(strstr(info.message, "of memory")); /* never a full arena */
        assert_true(arena.peak_size <= 4 * NASTY_SIZE);
        if (err != RON_ERR_OK)
            assert_int_equal(arena.used_size, 0);
        ron_arena_fini(&arena);
    }
    ron_buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_know_their_place),
        cmocka_unit_test(find_walks_tables_only),
        cmocka_unit_test(strings_borrow_or_live_in_the_arena),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(size_and_memory_are_bounded),
        cmocka_unit_test(long_file_names_leave_room_for_the_message),
        cmocka_unit_test(every_truncation_ends_well),
        cmocka_unit_test(large_tables_find_every_key),
        cmocka_unit_test(nasty_texts_stay_in_memory),
    };
    return cmocka_run_group_tests_name("toml", tests, NULL, NULL);
}
