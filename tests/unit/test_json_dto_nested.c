/*
 * test_json_dto_nested.c - DTOs inside arrays inside DTOs. Method: the memory bound of json_dto.h,
 * exactly, on shapes where arrays stop being the newest thing in the arena.
 */
#include "support.h"

#include <stdio.h>

#include "base/json_dto.h"

/* Arrays in arrays: {"groups":[{"items":[{"id":"...","raw":...}]}]} */
struct nested_item {
    uint64_t present;
    struct ron_slice id;
    struct ron_slice raw;
};
struct nested_group {
    uint64_t present;
    struct ron_json_array items;
};
struct nested {
    uint64_t present;
    struct ron_json_array groups;
};
static const struct ron_json_field nested_item_fields[] = {
    RON_JSON_FIELD_STRING(struct nested_item, id, 0, 1, 64, NULL),
    RON_JSON_FIELD_RAW(struct nested_item, raw, RON_JSON_OPTIONAL | RON_JSON_NULLABLE, 64),
};
static const struct ron_json_dto nested_item_dto = RON_JSON_DTO(struct nested_item,
                                                                nested_item_fields);
static const struct ron_json_field nested_group_fields[] = {
    RON_JSON_FIELD_OBJECTS(struct nested_group, items, 0, 0, 1000, &nested_item_dto),
};
static const struct ron_json_dto nested_group_dto = RON_JSON_DTO(struct nested_group,
                                                                 nested_group_fields);
static const struct ron_json_field nested_fields[] = {
    RON_JSON_FIELD_OBJECTS(struct nested, groups, 0, 0, 100000, &nested_group_dto),
};
static const struct ron_json_dto nested_dto = RON_JSON_DTO(struct nested, nested_fields);

static void nested_arrays_grow_within_their_bound(void **state)
{
    static const unsigned shapes[][2] = {{1, 1}, {40, 1}, {1, 40}, {7, 33}, {1000, 3}, {20000, 1}};
    struct ron_buf buf;

    (void)state;
    ron_buf_init(&buf, 4 << 20);
    for (unsigned i = 0; i < 2 * RON_ARRAY_COUNT(shapes); i++) {
        size_t groups_count = shapes[i / 2][0];
        size_t items_count = shapes[i / 2][1];
        size_t structs_size = groups_count * ((sizeof(struct nested_group) + 15) / 16 * 16 +
                                              (items_count * sizeof(struct nested_item) + 15));
        struct nested nested;
        struct ron_arena own;

        ron_buf_reset(&buf);
        for (size_t g = 0; g < groups_count; g++) {
            ron_buf_put_text(&buf, g == 0 ? "{\"groups\":[{\"items\":[" : "]},{\"items\":[");
            for (size_t j = 0; j < items_count; j++)
                ron_buf_put_format(&buf, "%s{\"id\":\"%s\"}", j == 0 ? "" : ",",
                                   i % 2 == 0 ? "\\n" : "n");
        }
        ron_buf_put_text(&buf, "]}]}");
        assert_ok(ron_buf_check(&buf, NULL));
        assert_ok(
            ron_arena_init(&own, 2 * buf.size + sizeof(nested) + 64 + 4 * structs_size, NULL));
        assert_ok(ron_json_dto_read(&nested_dto, ron_buf_slice(&buf), &own, &nested, NULL));
        assert_int_equal(nested.groups.count, groups_count);
        for (size_t g = 0; g < groups_count; g++) {
            const struct nested_group *group = (struct nested_group *)nested.groups.items + g;
            const struct nested_item *items = group->items.items;

            assert_int_equal(group->items.count, items_count);
            for (size_t j = 0; j < items_count; j++)
                assert_true(
                    ron_slice_equal(items[j].id, i % 2 == 0 ? RON_SLICE("\n") : RON_SLICE("n")));
        }
        ron_arena_fini(&own);
    }
    ron_buf_fini(&buf);
}

/* Names inside a raw value are the reader's business, all others the DTO's: also after a null. */
static void raw_members_do_not_change_who_finds_duplicates(void **state)
{
    static const char *const raws[] = {"null", "{}", "{\"a\":1}", "[]", "7"};
    struct ron_arena arena;
    struct nested nested;

    (void)state;
    assert_ok(ron_arena_init(&arena, 4096, NULL));
    for (size_t i = 0; i < RON_ARRAY_COUNT(raws); i++) {
        struct ron_errinfo info = {0};
        char text[128];

        (void)snprintf(text, sizeof(text),
                       "{\"groups\":[{\"items\":[{\"id\":\"a\",\"raw\":%s},"
                       "{\"id\":\"b\",\"id\":\"c\"}]}]}",
                       raws[i]);
        ron_arena_reset(&arena);
        support_assert_error(
            ron_json_dto_read(&nested_dto, ron_slice_text(text), &arena, &nested, &info), &info,
            RON_ERR_MALFORMED, ": duplicate member \"id\"");
    }
    ron_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_arrays_grow_within_their_bound),
        cmocka_unit_test(raw_members_do_not_change_who_finds_duplicates),
    };
    return cmocka_run_group_tests_name("json_dto_nested", tests, NULL, NULL);
}
