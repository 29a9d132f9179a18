/*
 * test_json_dto.c - declared requests: the ledger's ingest body, and a DTO with every type.
 * Method: what comes out is compared member by member; every refusal with its path, byte and words;
 * every prefix of a good body; every arena size from nothing to enough.
 */
#include "support.h"

#include <stdio.h>

#include "ingest_dto.h"

struct point {
    uint64_t present;
    int64_t x;
    int64_t y;
};

struct shape {
    uint64_t present;
    struct point at;
    struct ron_json_array corners; /* of struct point */
};

struct everything {
    uint64_t present;
    uint32_t small;
    uint64_t large;
    struct ron_u128 huge;
    int64_t either;
    bool flag;
    struct ron_u128 amount;
    struct ron_slice text;
    struct ron_slice raw;
    struct ron_slice nullable;
    struct ron_json_array tags; /* of struct ron_slice */
    struct shape shape;
    struct ron_json_array shapes; /* of struct shape */
};

enum { SMALL, LARGE, HUGE_, EITHER, FLAG, AMOUNT, TEXT, RAW, NULLABLE, TAGS, SHAPE, SHAPES };

static const struct ron_json_field point_fields[] = {
    RON_JSON_FIELD_I64(struct point, x, 0),
    RON_JSON_FIELD_I64(struct point, y, RON_JSON_OPTIONAL),
};
static const struct ron_json_dto point_dto = RON_JSON_DTO(struct point, point_fields);

static const struct ron_json_field shape_fields[] = {
    RON_JSON_FIELD_OBJECT(struct shape, at, struct point, 0, &point_dto),
    RON_JSON_FIELD_OBJECTS(struct shape, corners, RON_JSON_OPTIONAL, 0, 40, &point_dto),
};
static const struct ron_json_dto shape_dto = RON_JSON_DTO(struct shape, shape_fields);

#define OPT RON_JSON_OPTIONAL
static const struct ron_json_field everything_fields[] = {
    [SMALL] = RON_JSON_FIELD_U32(struct everything, small, OPT, 1000),
    [LARGE] = RON_JSON_FIELD_U64(struct everything, large, OPT, UINT64_MAX),
    [HUGE_] = RON_JSON_FIELD_U128(struct everything, huge, OPT),
    [EITHER] = RON_JSON_FIELD_I64(struct everything, either, OPT),
    [FLAG] = RON_JSON_FIELD_BOOL(struct everything, flag, OPT | RON_JSON_NULLABLE),
    [AMOUNT] = RON_JSON_FIELD_AMOUNT(struct everything, amount, OPT | RON_JSON_ZERO),
    [TEXT] = RON_JSON_FIELD_STRING(struct everything, text, OPT, 2, 4, NULL),
    [RAW] = RON_JSON_FIELD_RAW(struct everything, raw, OPT, 20),
    [NULLABLE] = RON_JSON_FIELD_RAW(struct everything, nullable,
                                    OPT | RON_JSON_NULLABLE | RON_JSON_OBJECT_ONLY, 20),
    [TAGS] = RON_JSON_FIELD_STRINGS(struct everything, tags, OPT, 3, 5, ingest_check_name),
    [SHAPE] = RON_JSON_FIELD_OBJECT(struct everything, shape, struct shape, OPT, &shape_dto),
    [SHAPES] = RON_JSON_FIELD_OBJECTS(struct everything, shapes, OPT, 0, 100, &shape_dto),
};
static const struct ron_json_dto everything_dto = RON_JSON_DTO(struct everything,
                                                               everything_fields);

static struct ron_arena arena;

static int make_arena(void **state)
{
    (void)state;
    return ron_arena_init(&arena, 4 << 20, NULL) == RON_ERR_OK ? 0 : -1;
}

static int free_arena(void **state)
{
    (void)state;
    ron_arena_fini(&arena);
    return 0;
}

static enum ron_err read_text(const struct ron_json_dto *dto, const char *text, void *ret_object,
                              struct ron_errinfo *reterr)
{
    ron_arena_reset(&arena);
    return ron_json_dto_read(dto, ron_slice_text(text), &arena, ret_object, reterr);
}

static void assert_text(struct ron_slice slice, const char *text)
{
    if (!ron_slice_equal(slice, ron_slice_text(text)))
        fail_msg("got \"%.*s\", expected \"%s\"", RON_SLICE_FMT(slice), text);
}

static const char good_body[] =
    "{\"batch\":[{\"id\":\"01J8Z\",\"kind\":\"Transfer\",\"from\":\"acct_a\",\"to\":\"acct_b\","
    "\"asset\":\"roc\",\"amount\":\"340282366920938463463374607431768211455\",\"nonce\":1,"
    "\"ts\":1760000000123,\"memo\":\"caf\\u00e9\",\"meta\":{\"a\": [1, {\"b\":null}]}},\n"
    " {\"ts\":18446744073709551615,\"amount\":\"40\",\"asset\":\"roc\",\"kind\":\"Mint\","
    "\"id\":\"x\",\"to\":\"ops:mint/1\",\"memo\":null}],\"idem_id\":\"tx-77\"}";

static void dto_reads_the_ingest_body(void **state)
{
    const struct ingest_entry *entry;
    struct ingest_body body;

    (void)state;
    assert_ok(read_text(&ingest_body_dto, good_body, &body, NULL));
    assert_int_equal(body.present, 1 << BODY_BATCH | 1 << BODY_IDEM_ID);
    assert_text(body.idem_id, "tx-77");
    assert_int_equal(body.batch.count, 2);
    entry = body.batch.items;
    assert_int_equal(entry->present, (1 << (ENTRY_META + 1)) - 1);
    assert_text(entry->id, "01J8Z");
    assert_int_equal(entry->kind, INGEST_TRANSFER);
    assert_text(entry->from, "acct_a");
    assert_text(entry->to, "acct_b");
    assert_text(entry->asset, "roc");
    assert_true(entry->amount.v == RON_U128_MAX.v);
    assert_int_equal(entry->nonce, 1);
    assert_int_equal(entry->ts, 1760000000123);
    assert_text(entry->memo, "caf\xc3\xa9");
    assert_text(entry->meta, "{\"a\": [1, {\"b\":null}]}");
    entry++;
    assert_int_equal(entry->present, 1 << ENTRY_TS | 1 << ENTRY_AMOUNT | 1 << ENTRY_ASSET |
                                         1 << ENTRY_KIND | 1 << ENTRY_ID | 1 << ENTRY_TO);
    assert_int_equal(entry->ts, UINT64_MAX);
    assert_true(entry->amount.v == 40);
    assert_int_equal(entry->kind, INGEST_MINT);
    assert_text(entry->to, "ops:mint/1");
    assert_int_equal(entry->from.size, 0);
    assert_int_equal(entry->memo.size, 0);
    assert_int_equal(entry->nonce, 0);
    assert_false(ron_json_has(entry->present, ENTRY_MEMO));
    assert_true(ron_json_has(entry->present, ENTRY_TO));
}

static void dto_reads_every_type(void **state)
{
    const struct ron_slice *tags;
    const struct shape *shapes;
    const struct point *corners;
    struct everything all;

    (void)state;
    assert_ok(read_text(
        &everything_dto,
        "{\"small\":1000,\"large\":18446744073709551615,"
        "\"huge\":340282366920938463463374607431768211455,"
        "\"either\":-9223372036854775808,\"flag\":true,\"amount\":\"0\","
        "\"text\":\"abcd\",\"raw\":[1, \"\\u0041\"],\"nullable\":{},\"tags\":[\"a\",\"b-c\"],"
        "\"shape\":{\"at\":{\"x\":1,\"y\":-2}},"
        "\"shapes\":[{\"at\":{\"x\":3},\"corners\":[{\"x\":4},{\"y\":6,\"x\":5}]},"
        "{\"corners\":[],\"at\":{\"x\":9223372036854775807}}]}",
        &all, NULL));
    assert_int_equal(all.present, (1 << (SHAPES + 1)) - 1);
    assert_int_equal(all.small, 1000);
    assert_int_equal(all.large, UINT64_MAX);
    assert_true(all.huge.v == RON_U128_MAX.v);
    assert_int_equal(all.either, INT64_MIN);
    assert_true(all.flag);
    assert_true(ron_u128_is_zero(all.amount));
    assert_text(all.text, "abcd");
    assert_text(all.raw, "[1, \"\\u0041\"]");
    assert_int_equal(all.tags.count, 2);
    tags = all.tags.items;
    assert_text(tags[0], "a");
    assert_text(tags[1], "b-c");
    assert_int_equal(all.shape.present, 1);
    assert_int_equal(all.shape.at.present, 3);
    assert_int_equal(all.shape.at.y, -2);
    assert_int_equal(all.shapes.count, 2);
    shapes = all.shapes.items;
    assert_int_equal(shapes[0].at.x, 3);
    assert_int_equal(shapes[0].corners.count, 2);
    corners = shapes[0].corners.items;
    assert_int_equal(corners[0].x, 4);
    assert_int_equal(corners[0].present, 1);
    assert_int_equal(corners[1].x, 5);
    assert_int_equal(corners[1].y, 6);
    assert_int_equal(shapes[1].present, 3);
    assert_int_equal(shapes[1].corners.count, 0);
    assert_int_equal(shapes[1].at.x, INT64_MAX);

    assert_ok(read_text(&everything_dto, " {\"flag\" : null } ", &all, NULL));
    assert_int_equal(all.present, 0);
    assert_false(all.flag);
    assert_ok(
        read_text(&everything_dto, "{\"raw\":null,\"nullable\":null,\"tags\":[]}", &all, NULL));
    assert_int_equal(all.nullable.size, 0);
    assert_text(all.raw, "null");
    assert_int_equal(all.present, 1 << RAW | 1 << TAGS);
    assert_null(all.tags.items);
}

static const struct {
    const char *text;
    const char *message; /* whole */
} refused[] = {
    {"", "at byte 0: the text ends where a value is expected"},
    {"[]", "at byte 0: expected an object"},
    {"null", "at byte 0: expected an object"},
    {"{} x", "at byte 3: more text after the value"},
    {"{\"small\":1,}", "at byte 11: expected a member's name"},
    /* Members. */
    {"{\"smal\":1}", "at byte 1: unknown member \"smal\", did you mean \"small\"?"},
    {"{\"shpae\":1}", "at byte 1: unknown member \"shpae\", did you mean \"shape\"?"},
    {"{\"zebra\":1}", "at byte 1: unknown member \"zebra\""},
    {"{\"\":1}", "at byte 1: unknown member \"\""},
    {"{\"small\\u0000\":1}", "at byte 1: unknown member \"small\\x00\", did you mean \"small\"?"},
    {"{\"\\n\\\"\xc3\xa9\":1}", "at byte 1: unknown member \"\\x0a\\x22\\xc3\\xa9\""},
    {"{\"0123456789012345678901234567890123456789012345678901234567890123456789\":1}",
     "at byte 1: unknown member \"01234567890123456789012345678901234567890123...\""},
    {"{\"small\":1,\"small\":2}", "at byte 11: duplicate member \"small\""},
    {"{\"small\":1,\"sm\\u0061ll\":2}", "at byte 11: duplicate member \"small\""},
    {"{\"flag\":null,\"flag\":true}", "at byte 13: duplicate member \"flag\""},
    {"{\"shape\":{}}", "shape at byte 10: member \"at\" is missing"},
    {"{\"shape\":{\"at\":{\"y\":1}}}", "shape.at at byte 21: member \"x\" is missing"},
    /* Types and bounds. */
    {"{\"small\":null}", "small at byte 9: null is not allowed"},
    {"{\"small\":\"1\"}", "small at byte 9: expected an integer"},
    {"{\"small\":1001}", "small at byte 9: above its maximum of 1000"},
    {"{\"small\":4294967297}", "small at byte 9: above its maximum of 1000"},
    {"{\"small\":-1}", "small at byte 9: negative"},
    {"{\"small\":1.5}", "small at byte 10: not an integer"},
    {"{\"small\": }", "small at byte 10: expected a value"},
    {"{\"large\":18446744073709551616}",
     "large at byte 9: above its maximum of 18446744073709551615"},
    {"{\"huge\":340282366920938463463374607431768211456}",
     "huge at byte 8: a number beyond 128 bits"},
    {"{\"huge\":-1}", "huge at byte 8: negative"},
    {"{\"either\":9223372036854775808}", "either at byte 10: beyond 64 bits with sign"},
    {"{\"either\":-9223372036854775809}", "either at byte 10: beyond 64 bits with sign"},
    {"{\"either\":18446744073709551617}", "either at byte 10: beyond 64 bits with sign"},
    {"{\"either\":true}", "either at byte 10: expected an integer"},
    {"{\"flag\":1}", "flag at byte 8: expected true or false"},
    {"{\"flag\":\"true\"}", "flag at byte 8: expected true or false"},
    {"{\"amount\":1}", "amount at byte 10: expected a string of decimal digits"},
    {"{\"amount\":\"\"}", "amount at byte 10: not a decimal number"},
    {"{\"amount\":\"-1\"}", "amount at byte 10: not a decimal number"},
    {"{\"amount\":\"+1\"}", "amount at byte 10: not a decimal number"},
    {"{\"amount\":\" 1\"}", "amount at byte 10: not a decimal number"},
    {"{\"amount\":\"1 \"}", "amount at byte 10: not a decimal number"},
    {"{\"amount\":\"1\\u0000\"}", "amount at byte 10: not a decimal number"},
    {"{\"amount\":\"01\"}", "amount at byte 10: not a decimal number"},
    {"{\"amount\":\"00\"}", "amount at byte 10: not a decimal number"},
    {"{\"amount\":\"1e3\"}", "amount at byte 10: not a decimal number"},
    {"{\"amount\":\"340282366920938463463374607431768211456\"}",
     "amount at byte 10: beyond 128 bits"},
    {"{\"amount\":\"1000000000000000000000000000000000000000\"}",
     "amount at byte 10: beyond 128 bits"},
    {"{\"text\":\"a\"}", "text at byte 8: 1 bytes, at least 2 are needed"},
    {"{\"text\":\"abcde\"}", "text at byte 8: 5 bytes, at most 4 are allowed"},
    {"{\"text\":\"\\u20ac\\u20ac\"}", "text at byte 8: 6 bytes, at most 4 are allowed"},
    {"{\"text\":5}", "text at byte 8: expected a string"},
    {"{\"text\":\"\\ud800\"}", "text at byte 9: a lone surrogate"},
    {"{\"raw\":[1,2,3,4,5,6,7,8,9,0]}", "raw at byte 7: 21 bytes, at most 20 are allowed"},
    {"{\"raw\":{\"a\":1,\"\\u0061\":2}}", "raw at byte 14: a duplicate member"},
    {"{\"raw\":{\"a\":[{\"b\":1,\"b\":2}]}}", "raw at byte 20: a duplicate member"},
    {"{\"raw\":[1.5]}", "raw at byte 9: not an integer"},
    {"{\"nullable\":[]}", "nullable at byte 12: expected an object"},
    {"{\"tags\":{}}", "tags at byte 8: expected an array"},
    {"{\"tags\":[\"a\",1]}", "tags[1] at byte 13: expected a string"},
    {"{\"tags\":[\"\"]}", "tags[0] at byte 9: 0 bytes, at least 1 are needed"},
    {"{\"tags\":[\"a\",\"b\",\"123456\"]}", "tags[2] at byte 17: 6 bytes, at most 5 are allowed"},
    {"{\"tags\":[\"a b\"]}",
     "tags[0] at byte 9: not a name: a character outside A-Z a-z 0-9 : / _ -"},
    {"{\"tags\":[\"a\",", "tags[1] at byte 13: the text ends where a value is expected"},
    {"{\"shape\":[]}", "shape at byte 9: expected an object"},
    {"{\"shape\":{\"at\":{\"x\":\"1\"}}}", "shape.at.x at byte 20: expected an integer"},
    {"{\"shapes\":{}}", "shapes at byte 10: expected an array"},
    {"{\"shapes\":[1]}", "shapes[0] at byte 11: expected an object"},
    {"{\"shapes\":[", "shapes[0] at byte 11: the text ends where a value is expected"},
    {"{\"shapes\":[{\"at\":{\"x\":1}},{\"at\":{\"x\":1},\"corners\":[{\"x\":1},{\"x\":true}]}]}",
     "shapes[1].corners[1].x at byte 64: expected an integer"},
    {"{\"shapes\":[{\"at\":{\"x\":1}},{\"at\":{\"x\":1,\"z\":1}}]}",
     "shapes[1].at at byte 39: unknown member \"z\""},
};

static void dto_refuses_with_path_and_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(refused); i++) {
        struct ron_errinfo info = {0};
        struct everything all;
        struct everything untouched;

        memset(&all, 0x5a, sizeof(all));
        memset(&untouched, 0x5a, sizeof(untouched));
        if (read_text(&everything_dto, refused[i].text, &all, &info) != RON_ERR_MALFORMED)
            fail_msg("not refused: %s", refused[i].text);
        assert_string_equal(info.message, refused[i].message);
        assert_int_equal(info.err, RON_ERR_MALFORMED);
        assert_memory_equal(&all, &untouched, sizeof(all));
        assert_int_equal(arena.stack_size, 0);
        assert_int_equal(read_text(&everything_dto, refused[i].text, &all, NULL),
                         RON_ERR_MALFORMED);
    }
}

static void dto_refuses_bad_ingest_bodies(void **state)
{
    static const struct {
        const char *text;
        const char *message;
    } rows[] = {
        {"{}", "at byte 1: member \"batch\" is missing"},
        {"{\"idem_id\":\"a\"}", "at byte 14: member \"batch\" is missing"},
        {"{\"batch\":[]}", "batch at byte 10: 0 elements, at least 1 are needed"},
        {"{\"batch\":[{}]}", "batch[0] at byte 11: member \"id\" is missing"},
        {"{\"batch\":[{\"kind\":\"transfer\"}]}",
         "batch[0].kind at byte 18: unknown name \"transfer\", did you mean \"Transfer\"?"},
        {"{\"batch\":[{\"kind\":\"Mint\\u0000\"}]}",
         "batch[0].kind at byte 18: unknown name \"Mint\\x00\", did you mean \"Mint\"?"},
        {"{\"batch\":[{\"kind\":\"\"}]}", "batch[0].kind at byte 18: unknown name \"\""},
        {"{\"batch\":[{\"kind\":\"Gift\"}]}", "batch[0].kind at byte 18: unknown name \"Gift\""},
        {"{\"batch\":[{\"kind\":2}]}", "batch[0].kind at byte 18: expected a string"},
        {"{\"batch\":[{\"amount\":\"0\"}]}", "batch[0].amount at byte 20: zero is not allowed"},
        {"{\"batch\":[{\"amuont\":\"1\"}]}",
         "batch[0] at byte 11: unknown member \"amuont\", did you mean \"amount\"?"},
        {"{\"batch\":[{\"meta\":[]}]}", "batch[0].meta at byte 18: expected an object"},
        {"{\"batch\":[{\"meta\":null}]}", "batch[0].meta at byte 18: expected an object"},
        {"{\"batch\":[{\"nonce\":18446744073709551615}]}",
         "batch[0].nonce at byte 19: above its maximum of 18446744073709551614"},
    };

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(rows); i++) {
        struct ron_errinfo info = {0};
        struct ingest_body body;

        assert_int_equal(read_text(&ingest_body_dto, rows[i].text, &body, &info),
                         RON_ERR_MALFORMED);
        assert_string_equal(info.message, rows[i].message);
    }
}

/* Each required member left out in turn, all others there. */
static void dto_names_the_missing_member(void **state)
{
    static const struct {
        const char *name;
        const char *text;
    } members[] = {
        {"id", "\"id\":\"a\""},       {"kind", "\"kind\":\"Mint\""},
        {"asset", "\"asset\":\"r\""}, {"amount", "\"amount\":\"1\""},
        {"ts", "\"ts\":1"},
    };

    (void)state;
    for (size_t missing = 0; missing <= RON_ARRAY_COUNT(members); missing++) {
        struct ron_errinfo info = {0};
        struct ingest_body body;
        enum ron_err err;
        char text[256] = "{\"batch\":[{\"memo\":\"\"";
        char expected[64];
        size_t size = strlen(text);

        for (size_t i = 0; i < RON_ARRAY_COUNT(members); i++)
            if (i != missing)
                size += (size_t)snprintf(text + size, sizeof(text) - size, ",%s", members[i].text);
        (void)snprintf(text + size, sizeof(text) - size, "}]}");
        err = read_text(&ingest_body_dto, text, &body, &info);
        if (missing == RON_ARRAY_COUNT(members)) {
            assert_ok(err);
            continue;
        }
        (void)snprintf(expected, sizeof(expected), "batch[0] at byte %zu: member \"%s\" is missing",
                       size, members[missing].name);
        support_assert_error(err, &info, RON_ERR_MALFORMED, expected);
    }
}

static void dto_refuses_every_prefix(void **state)
{
    (void)state;
    for (size_t size = 0; size < sizeof(good_body) - 1; size++) {
        struct ron_errinfo info = {0};
        struct ingest_body body;
        uint8_t *copy = ron_mem_alloc(size + 1);

        assert_non_null(copy);
        memcpy(copy + 1, good_body, size); /* its end is the memory's end */
        ron_arena_reset(&arena);
        support_assert_error(
            ron_json_dto_read(&ingest_body_dto, ron_slice_of(copy + 1, size), &arena, &body, &info),
            &info, RON_ERR_MALFORMED, "at byte ");
        copy = ron_mem_free(copy);
    }
}

/* A body of count entries; the memo of each has an escape if escaped, so that the array cannot grow
 * in place. */
static void make_batch(struct ron_buf *buf, unsigned count, bool escaped)
{
    ron_buf_reset(buf);
    ron_buf_put_text(buf, "{\"batch\":[");
    for (unsigned i = 0; i < count; i++)
        ron_buf_put_format(
            buf,
            "%s{\"id\":\"e%u\",\"kind\":\"Debit\",\"asset\":\"roc\",\"amount\":\"%u\","
            "\"ts\":%u,\"memo\":\"%s%u\"}",
            i == 0 ? "" : ",", i, i + 1, i, escaped ? "\\n" : "n", i);
    ron_buf_put_text(buf, "]}");
    assert_ok(ron_buf_check(buf, NULL));
}

static void arrays_grow_within_their_bound(void **state)
{
    static const unsigned counts[] = {1, 15, 16, 17, 32, 33, 1000, 7999, 8000};
    struct ron_buf buf;

    (void)state;
    ron_buf_init(&buf, 1 << 20);
    for (unsigned i = 0; i < 2 * RON_ARRAY_COUNT(counts); i++) {
        unsigned count = counts[i / 2];
        size_t items_size = count * sizeof(struct ingest_entry);
        const struct ingest_entry *entries;
        struct ingest_body body;
        struct ron_arena own;

        make_batch(&buf, count, i % 2 == 1);
        assert_ok(ron_arena_init(&own, 9 << 20, NULL));
        assert_ok(ron_json_dto_read(&ingest_body_dto, ron_buf_slice(&buf), &own, &body, NULL));
        assert_int_equal(body.batch.count, count);
        entries = body.batch.items;
        for (unsigned j = 0; j < count; j++) {
            char text[16];

            (void)snprintf(text, sizeof(text), "%c%u", i % 2 == 1 ? '\n' : 'n', j);
            assert_text(entries[j].memo, text);
            assert_true(entries[j].amount.v == j + 1);
            assert_int_equal(entries[j].kind, INGEST_DEBIT);
            assert_int_equal(entries[j].ts, j);
        }
        if (i % 2 == 0)
            assert_int_equal(own.used_size,
                             sizeof(body) + (16 - sizeof(body) % 16) % 16 + items_size);
        assert_true(own.peak_size <=
                    2 * buf.size + sizeof(body) + 16 + (i % 2 == 0 ? 1 : 4) * items_size);
        ron_arena_fini(&own);
    }
    ron_buf_fini(&buf);
}

static void arrays_stop_at_their_maximum(void **state)
{
    struct ron_errinfo info = {0};
    struct ingest_body body;
    struct everything all;
    struct ron_buf buf;

    (void)state;
    ron_buf_init(&buf, 1 << 20);
    make_batch(&buf, RON_BATCH_ENTRIES_MAX + 1, false);
    ron_arena_reset(&arena);
    support_assert_error(
        ron_json_dto_read(&ingest_body_dto, ron_buf_slice(&buf), &arena, &body, &info), &info,
        RON_ERR_TOO_LARGE, "batch at byte ");
    assert_non_null(strstr(info.message, ": more than 8000 elements"));
    support_assert_error(
        read_text(&everything_dto, "{\"tags\":[\"a\",\"b\",\"c\",\"d\"]}", &all, &info), &info,
        RON_ERR_TOO_LARGE, "tags at byte 21: more than 3 elements");
    ron_buf_fini(&buf);
}

static void dto_says_when_the_arena_is_full(void **state)
{
    unsigned full_count = 0;

    (void)state;
    for (size_t size = 1;; size += 8) {
        struct ron_errinfo info = {0};
        struct ingest_body body;
        struct ron_arena own;
        enum ron_err err;

        assert_ok(ron_arena_init(&own, size, NULL));
        err = ron_json_dto_read(&ingest_body_dto, ron_slice_text(good_body), &own, &body, &info);
        ron_arena_fini(&own);
        if (err == RON_ERR_OK)
            break;
        support_assert_error(err, &info, RON_ERR_TOO_LARGE, "no room");
        full_count++;
    }
    assert_true(full_count > 10);
}

static void bad_tables_die(void **state)
{
    static const struct ron_json_field holes[3] = {
        [2] = RON_JSON_FIELD_I64(struct point, x, 0),
    };
    static const struct ron_json_dto with_holes = RON_JSON_DTO(struct point, holes);
    static const struct ron_json_field nulls[] = {
        RON_JSON_FIELD_I64(struct point, x, RON_JSON_NULLABLE),
    };
    static const struct ron_json_dto with_nulls = RON_JSON_DTO(struct point, nulls);
    struct point point;

    (void)state;
    assert_dies(assert_ok(read_text(&with_holes, "{\"x\":1}", &point, NULL)), "name != NULL");
    assert_dies(assert_ok(read_text(&with_nulls, "{\"x\":1}", &point, NULL)), "RON_JSON_NULLABLE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dto_reads_the_ingest_body),
        cmocka_unit_test(dto_reads_every_type),
        cmocka_unit_test(dto_refuses_with_path_and_byte),
        cmocka_unit_test(dto_refuses_bad_ingest_bodies),
        cmocka_unit_test(dto_names_the_missing_member),
        cmocka_unit_test(dto_refuses_every_prefix),
        cmocka_unit_test(arrays_grow_within_their_bound),
        cmocka_unit_test(arrays_stop_at_their_maximum),
        cmocka_unit_test(dto_says_when_the_arena_is_full),
        cmocka_unit_test(bad_tables_die),
    };
    return cmocka_run_group_tests_name("json_dto", tests, make_arena, free_arena);
}
