/*
 * generate.c - JSON documents from a seed. See generate.h.
 *
 * A grammar makes documents that ron must accept; "odd" ones may hold at any place what JSON or ron
 * refuses; mutations then break bytes without regard to the grammar. Recursion is bounded by
 * DEPTH_MAX.
 */
#include "generate.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/utf8.h"

enum { DEPTH_MAX = 6 };

struct generator {
    uint64_t random;
    struct document *out;
    uint32_t values_left; /* containers are small once it is used up */
    uint32_t odd_left; /* so many things may be odd: mostly one, which then decides the verdict */
};

static uint64_t next_random(struct generator *g)
{
    uint64_t z = g->random += 0x9e3779b97f4a7c15u; /* splitmix64 */

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* 0..count-1 */
static uint32_t pick(struct generator *g, uint32_t count)
{
    return (uint32_t)((next_random(g) >> 32) * count >> 32);
}

static bool odd_now(struct generator *g, uint32_t one_in)
{
    if (g->odd_left == 0 || pick(g, (one_in + 1) / 2) != 0)
        return false;
    g->odd_left--;
    return true;
}

static void put(struct generator *g, const void *data, size_t size)
{
    if (size > DOCUMENT_SIZE_MAX - g->out->size)
        return; /* cut documents are documents too */
    if (size > 0)
        memcpy(g->out->data + g->out->size, data, size);
    g->out->size += size;
}

static void put_text(struct generator *g, const char *text)
{
    put(g, text, strlen(text));
}

static void put_byte(struct generator *g, uint32_t byte)
{
    uint8_t value = (uint8_t)byte;

    put(g, &value, 1);
}

static void put_one_of(struct generator *g, const char *const *texts, size_t count)
{
    put_text(g, texts[pick(g, (uint32_t)count)]);
}

static void put_space(struct generator *g)
{
    static const char *const odd[] = {"\f", "\v", "\xc2\xa0", "\xef\xbb\xbf", "/**/", "//\n"};

    if (pick(g, 4) != 0)
        return;
    for (uint32_t count = 1 + pick(g, 2); count > 0; count--)
        put_byte(g, (uint8_t) " \t\n\r"[pick(g, 4)]);
    if (odd_now(g, 60))
        put_one_of(g, odd, RON_ARRAY_COUNT(odd));
}

static uint32_t pick_code_point(struct generator *g)
{
    static const uint32_t edges[] = {
        0x00,   0x1f,   0x20,   0x22,   0x5c,   0x7f,   0x80,   0x7ff,   0x800,   0x2028,
        0xd7ff, 0xe000, 0xfeff, 0xfb33, 0xfffd, 0xfffe, 0xffff, 0x10000, 0x1f600, 0x10ffff,
    };
    static const uint32_t ranges[] = {0x80, 0x800, 0x10000, 0x110000};
    uint32_t code_point;

    if (pick(g, 2) == 0)
        return edges[pick(g, RON_ARRAY_COUNT(edges))];
    do
        code_point = pick(g, ranges[pick(g, RON_ARRAY_COUNT(ranges))]);
    while (!ron_utf8_is_scalar(code_point));
    return code_point;
}

static void put_unit_escape(struct generator *g, uint32_t unit)
{
    static const char lower[] = "0123456789abcdef";
    static const char upper[] = "0123456789ABCDEF";

    put_text(g, "\\u");
    for (int shift = 12; shift >= 0; shift -= 4)
        put_byte(g, (uint8_t)(pick(g, 2) == 0 ? lower : upper)[unit >> shift & 15]);
}

static void put_escape(struct generator *g, uint32_t code_point)
{
    if (code_point < 0x10000) {
        put_unit_escape(g, code_point);
        return;
    }
    put_unit_escape(g, 0xd800 + ((code_point - 0x10000) >> 10));
    put_unit_escape(g, 0xdc00 + (code_point & 0x3ff));
}

static void put_raw(struct generator *g, uint32_t code_point)
{
    uint8_t encoded[RON_UTF8_SIZE_MAX];

    if (code_point < 0x20 || code_point == '"' || code_point == '\\')
        put_escape(g, code_point);
    else
        put(g, encoded, ron_utf8_encode(code_point, encoded));
}

static void put_odd_piece(struct generator *g)
{
    static const char *const odd[] = {
        "\\ud800",
        "\\udc00",
        "\\ud83d\\u0041",
        "\\udc00\\ud800",
        "\\ud83d\\ud83d",
        "\\ud83dx",
        "\\ud83d\\n",
        "\\udbff\\\\udfff",
        "\xed\xa0\x80",
        "\xed\xbf\xbf",
        "\xc0\x80",
        "\xc1\xbf",
        "\xe0\x80\x80",
        "\xe0\x9f\xbf",
        "\xf0\x80\x80\x80",
        "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff",
        "\x80",
        "\xe2\x82",
        "\xf0\x9f\x98",
        "\x1f",
        "\n",
        "\t",
        "\x01",
        "\\x41",
        "\\'",
        "\\u12",
        "\\u12g4",
        "\\u+123",
        "\\U0041",
        "\\ ",
        "\\0",
        "\"",
        "\\",
        "\\u 123",
        "\\u0x12",
    };

    if (pick(g, 30) == 0)
        put_byte(g, 0);
    else
        put_one_of(g, odd, RON_ARRAY_COUNT(odd));
}

static void put_piece(struct generator *g)
{
    if (odd_now(g, 16)) {
        put_odd_piece(g);
        return;
    }
    switch (pick(g, 8)) {
    case 0:
        put_byte(g, '\\');
        put_byte(g, (uint8_t) "\"\\/bfnrt"[pick(g, 8)]);
        break;
    case 1:
        put_escape(g, pick(g, 0x100));
        break;
    case 2:
        put_escape(g, pick_code_point(g));
        break;
    case 3:
    case 4:
        put_raw(g, pick_code_point(g));
        break;
    default:
        for (uint32_t count = 1 + pick(g, 6); count > 0; count--)
            put_byte(g, 'a' + pick(g, 26));
    }
}

static void put_string(struct generator *g)
{
    put_byte(g, '"');
    for (uint32_t count = pick(g, 5); count > 0; count--)
        put_piece(g);
    if (!odd_now(g, 100))
        put_byte(g, '"');
}

/* Two characters for each index, in escapes or not. */
static void put_tail(struct generator *g, uint32_t index)
{
    uint32_t tail[2] = {'a' + index / 26, 'a' + index % 26};

    for (size_t i = 0; i < RON_ARRAY_COUNT(tail); i++) {
        if (pick(g, 4) == 0)
            put_unit_escape(g, tail[i]);
        else
            put_byte(g, tail[i]);
    }
}

/* The tail makes names of one object distinct; the beginning makes comparing them hard. */
static void put_name(struct generator *g, uint32_t index)
{
    static const char *const beginnings[] = {
        "",
        "",
        "",
        "a",
        "\xe2\x82\xac",
        "\\u20ac",
        "\xf0\x9f\x98\x80",
        "\\ud83d\\ude00",
        "\xef\xac\xb3",
        "\\uFB33",
        "aaaaaaaaaaaaaaaa",
        "aaaaaaaaaaaaaaa\\u0061",
        "aaaaaaaa\xf0\x9f\x98\x80",
        "aaaaaaaa\xef\xac\xb3",
        "\\u0000",
        "\\n",
    };

    if (odd_now(g, 20)) {
        put_string(g);
        return;
    }
    put_byte(g, '"');
    put_one_of(g, beginnings, RON_ARRAY_COUNT(beginnings));
    if (pick(g, 4) == 0)
        put_piece(g);
    put_tail(g, odd_now(g, 10) ? 0 : index); /* a duplicate, perhaps in other escapes */
    put_byte(g, '"');
}

static void put_odd_number(struct generator *g)
{
    static const char *const odd[] = {
        "-0",
        "-0",
        "-0.0",
        "0.0",
        "1.5",
        "1e5",
        "1E+2",
        "-1.0e-3",
        "0e0",
        "12.50",
        "1e400",
        "01",
        "00",
        "-01",
        "+1",
        "1.",
        ".5",
        "-",
        "--1",
        "-.5",
        "0x10",
        "1e",
        "1e+",
        "1.e1",
        "1_0",
        "NaN",
        "-NaN",
        "nan",
        "Infinity",
        "-Infinity",
        "+Infinity",
        "\xd9\xa3",
        "340282366920938463463374607431768211456",
        "-340282366920938463463374607431768211456",
        "340282366920938463463374607431768211460",
        "999999999999999999999999999999999999999",
        "1000000000000000000000000000000000000000",
        "00000000000000000000000000000000000000001",
        "99999999999999999999999999999999999999999999999999999999999999999999999999999999",
    };

    put_one_of(g, odd, RON_ARRAY_COUNT(odd));
}

static void put_number(struct generator *g)
{
    static const char *const edges[] = {
        "0",
        "1",
        "9007199254740991",
        "9007199254740992",
        "9223372036854775807",
        "9223372036854775808",
        "9223372036854775809",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999",
        "170141183460469231731687303715884105728",
        "340282366920938463463374607431768211455",
    };

    if (odd_now(g, 4)) {
        put_odd_number(g);
        return;
    }
    if (pick(g, 4) == 0) {
        const char *edge = edges[pick(g, RON_ARRAY_COUNT(edges))];

        if (edge[0] != '0' && pick(g, 4) == 0)
            put_byte(g, '-');
        put_text(g, edge);
        return;
    }
    if (pick(g, 4) == 0)
        put_byte(g, '-');
    put_byte(g, '1' + pick(g, 3));
    for (uint32_t digits = pick(g, pick(g, 8) == 0 ? 38 : 12); digits > 0; digits--)
        put_byte(g, '0' + pick(g, 10));
}

static void put_literal(struct generator *g)
{
    static const char *const literals[] = {"true", "false", "null"};
    static const char *const odd[] = {
        "True", "TRUE", "nul", "none", "undefined", "truefalse", "tru", "nulll", "", "'a'",
    };

    if (odd_now(g, 8))
        put_one_of(g, odd, RON_ARRAY_COUNT(odd));
    else
        put_one_of(g, literals, RON_ARRAY_COUNT(literals));
}

static void put_value(struct generator *g, uint32_t depth);

static uint32_t pick_items_count(struct generator *g)
{
    if (g->values_left == 0)
        return 0;
    return pick(g, 40) == 0 ? pick(g, 60) : pick(g, 5);
}

static void put_container(struct generator *g, uint32_t depth, bool object)
{
    uint32_t count = pick_items_count(g);

    put_byte(g, object ? '{' : '[');
    put_space(g);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && !odd_now(g, 100))
            put_byte(g, ',');
        put_space(g);
        if (object) {
            put_name(g, i);
            put_space(g);
            if (!odd_now(g, 100))
                put_byte(g, ':');
            put_space(g);
        }
        put_value(g, depth + 1);
        put_space(g);
    }
    if (odd_now(g, 40))
        put_byte(g, ',');
    if (!odd_now(g, 100))
        put_byte(g, object != odd_now(g, 100) ? '}' : ']');
}

static void put_value(struct generator *g, uint32_t depth)
{
    uint32_t kind = pick(g, depth == 0 ? 12 : depth < DEPTH_MAX ? 9 : 5);

    RON_ASSERT(depth <= DEPTH_MAX);
    if (g->values_left > 0)
        g->values_left--;
    if (kind < 2)
        put_string(g);
    else if (kind < 4)
        put_number(g);
    else if (kind < 5)
        put_literal(g);
    else
        put_container(g, depth, kind % 3 != 0);
    if (kind < 5 && odd_now(g, 60))
        put_byte(g, 0);
}

/* Depths on both sides of the maximum. */
static void put_deep(struct generator *g)
{
    uint8_t closers[RON_JSON_DEPTH_MAX + 8];
    uint32_t depth = RON_JSON_DEPTH_MAX - 3 + pick(g, 8);

    for (uint32_t i = 0; i < depth; i++) {
        bool object = pick(g, 2) == 0;

        closers[i] = object ? '}' : ']';
        put_byte(g, object ? '{' : '[');
        if (pick(g, 3) == 0) { /* something before the nested value, also containers */
            static const char *const members[] = {"\"z\":1,", "\"y\":[[]],", "\"x\":{\"b\":{}},"};
            static const char *const elements[] = {"1,", "[[]],", "{\"b\":{}},"};

            put_one_of(g, object ? members : elements, 3);
        }
        if (object)
            put_text(g, "\"a\":");
    }
    put_number(g);
    while (depth > 0)
        put_byte(g, closers[--depth]);
}

/* An object of many members, in half of them with a duplicate. */
static void put_large(struct generator *g)
{
    uint32_t count = 10 + pick(g, 60);
    uint32_t duplicate_at = pick(g, 2) == 0 ? 1 + pick(g, count - 1) : count;

    for (uint32_t i = 0; i < count; i++) {
        put_text(g, i == 0 ? "{\"" : ",\"");
        put_tail(g, i == duplicate_at ? pick(g, i) : i);
        put_text(g, "\":");
        put_byte(g, '0' + pick(g, 10));
    }
    put_byte(g, '}');
}

static void remove_bytes(struct document *document, size_t at, size_t size)
{
    memmove(document->data + at, document->data + at + size, document->size - at - size);
    document->size -= size;
}

static void mutate(struct generator *g)
{
    static const char structural[] =
        "{}[]:,\"\\/0123456789-+.eEutfn \t\n\r\x1f\x7f\x80\xc3\xed\xf0";
    struct document *out = g->out;
    uint32_t at = pick(g, (uint32_t)out->size);
    uint32_t left = (uint32_t)out->size - at;
    uint32_t size = 1 + pick(g, left < 8 ? left : 8);
    uint8_t byte = (uint8_t)(pick(g, 3) == 0
                                 ? pick(g, 256)
                                 : (uint8_t)structural[pick(g, sizeof(structural) - 1)]);

    switch (pick(g, 7)) {
    case 0:
    case 1:
        out->data[at] = byte;
        break;
    case 2: /* insert */
        put_byte(g, 0);
        memmove(out->data + at + 1, out->data + at, out->size - at - 1);
        out->data[at] = byte;
        break;
    case 3:
        if (size < out->size)
            remove_bytes(out, at, size);
        break;
    case 4: { /* repeat a piece at the end of the document */
        uint8_t piece[8];

        memcpy(piece, out->data + at, size);
        put(g, piece, size);
        break;
    }
    case 5: /* flip a bit */
        out->data[at] ^= (uint8_t)(1u << pick(g, 8));
        break;
    default:
        if (at > 0)
            out->size = at;
    }
    RON_ASSERT(out->size > 0);
    RON_ASSERT(out->size <= DOCUMENT_SIZE_MAX);
}

void generate_document(uint64_t seed, uint64_t index, struct document *ret_document)
{
    struct generator g = {.random = seed ^ index * 0xd1342543de82ef95u, .out = ret_document};
    uint32_t kind;

    (void)next_random(&g);
    kind = pick(&g, 100);
    ret_document->size = 0;
    g.values_left = 1 + pick(&g, 24);
    if (kind >= 33 && kind < 68)
        g.odd_left = pick(&g, 3) == 0 ? 100 : 1;
    if (kind == 99) {
        for (uint32_t size = pick(&g, 20); size > 0; size--)
            put_byte(&g, pick(&g, 256));
        return;
    }
    put_space(&g);
    if (kind >= 96)
        put_deep(&g);
    else if (kind >= 92 && kind < 94)
        put_large(&g);
    else
        put_value(&g, 0);
    put_space(&g);
    if (kind >= 64 && kind < 92 && ret_document->size > 0) {
        for (uint32_t count = 1 + pick(&g, 3); count > 0; count--)
            mutate(&g);
    }
    if (kind == 94 || kind == 95)
        put_value(&g, 1); /* a second one behind the first */
}
