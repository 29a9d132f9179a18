/*
 * test_cbor_roundtrip.c - canonical CBOR, document by document.
 * Method: random documents from an encoder that knows nothing of the reader, read back and compared
 * as diagnostic notation, then again with one bit flipped; a valid document cut at every byte.
 */
#include "support.h"

#include <stdlib.h>

#include "cbor_dump.h"

/* The encoder: nothing of it comes from the reader. */
struct generator {
    uint64_t random;
};

static uint32_t generator_below(struct generator *g, uint32_t bound)
{
    g->random = g->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((g->random >> 32) % bound);
}

static uint64_t generator_number(struct generator *g)
{
    uint64_t value = (uint64_t)generator_below(g, UINT32_MAX) << 32 |
                     generator_below(g, UINT32_MAX);

    return value >> generator_below(g, 64);
}

static void put_head(struct ron_buf *out, unsigned major, uint64_t argument)
{
    unsigned width = argument < 24            ? 0
                     : argument <= UINT8_MAX  ? 1
                     : argument <= UINT16_MAX ? 2
                     : argument <= UINT32_MAX ? 4
                                              : 8;
    static const unsigned infos[] = {0, 24, 25, 0, 26, 0, 0, 0, 27};

    if (width == 0)
        ron_buf_put_byte(out, (uint8_t)(major << 5 | argument));
    else
        ron_buf_put_byte(out, (uint8_t)(major << 5 | infos[width]));
    while (width-- > 0)
        ron_buf_put_byte(out, (uint8_t)(argument >> (8 * width)));
}

struct pair {
    struct ron_buf key;
    struct ron_buf value;
    struct ron_buf text;
};

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *left = a;
    const struct pair *right = b;
    size_t common = left->key.size < right->key.size ? left->key.size : right->key.size;
    int order = memcmp(left->key.data, right->key.data, common);

    return order != 0 ? order
                      : (left->key.size > right->key.size) - (left->key.size < right->key.size);
}

static void generate(struct generator *g, unsigned depth, struct ron_buf *out,
                     struct ron_buf *text);

static void generate_map(struct generator *g, unsigned depth, struct ron_buf *out,
                         struct ron_buf *text)
{
    enum { PAIRS_MAX = 30 };
    struct pair pairs[PAIRS_MAX];
    unsigned made_count = generator_below(g, generator_below(g, 8) == 0 ? PAIRS_MAX + 1 : 5);
    unsigned count = 0;

    for (unsigned i = 0; i < made_count; i++) {
        ron_buf_init(&pairs[i].key, CBOR_DUMP_SIZE_MAX);
        ron_buf_init(&pairs[i].value, CBOR_DUMP_SIZE_MAX);
        ron_buf_init(&pairs[i].text, CBOR_DUMP_SIZE_MAX);
        generate(g, generator_below(g, 4) == 0 ? depth : 0, &pairs[i].key, &pairs[i].text);
        generate(g, depth, &pairs[i].value, &pairs[i].text);
    }
    qsort(pairs, made_count, sizeof(pairs[0]), compare_pairs);
    for (unsigned i = 0; i < made_count; i++)
        count += i == 0 || compare_pairs(&pairs[i - 1], &pairs[i]) != 0;
    put_head(out, 5, count);
    ron_buf_put_format(text, "{%u ", count);
    for (unsigned i = 0; i < made_count; i++) {
        if (i == 0 || compare_pairs(&pairs[i - 1], &pairs[i]) != 0) {
            ron_buf_put(out, pairs[i].key.data, pairs[i].key.size);
            ron_buf_put(out, pairs[i].value.data, pairs[i].value.size);
            ron_buf_put(text, pairs[i].text.data, pairs[i].text.size);
        }
    }
    ron_buf_put_text(text, "} ");
    for (unsigned i = 0; i < made_count; i++) {
        ron_buf_fini(&pairs[i].key);
        ron_buf_fini(&pairs[i].value);
        ron_buf_fini(&pairs[i].text);
    }
}

static void generate_string(struct generator *g, bool is_text, struct ron_buf *out,
                            struct ron_buf *text)
{
    unsigned size = generator_below(g, generator_below(g, 8) == 0 ? 300 : 5);

    put_head(out, is_text ? 3 : 2, is_text ? size * 2 : size);
    ron_buf_put_text(text, is_text ? "\"" : "h'");
    for (unsigned i = 0; i < size; i++) {
        unsigned byte = generator_below(g, 256);
        char pair[2] = {(char)0xc3, (char)(0x80 | (byte & 0x3f))};

        if (is_text) {
            ron_buf_put(out, pair, 2);
            ron_buf_put(text, pair, 2);
        } else {
            ron_buf_put_byte(out, (uint8_t)byte);
            ron_buf_put_format(text, "%02x", byte);
        }
    }
    ron_buf_put_text(text, is_text ? "\" " : "' ");
}

static void generate(struct generator *g, unsigned depth, struct ron_buf *out, struct ron_buf *text)
{
    static const char *const simple_names[] = {"false ", "true ", "null "};
    unsigned choice = generator_below(g, depth == 0 ? 7 : 14);

    if (choice < 3) {
        uint64_t value = generator_number(g);
        bool negative = choice == 2;

        put_head(out, negative, value);
        cbor_put_integer(text, negative, value);
        ron_buf_put_text(text, " ");
    } else if (choice < 6) {
        generate_string(g, choice != 3, out, text);
    } else if (choice == 6) {
        unsigned which = generator_below(g, 3);

        ron_buf_put_byte(out, (uint8_t)(0xf4 + which));
        ron_buf_put_text(text, simple_names[which]);
    } else if (choice < 10) {
        unsigned count = generator_below(g, generator_below(g, 8) == 0 ? 30 : 4);

        put_head(out, 4, count);
        ron_buf_put_format(text, "[%u ", count);
        while (count-- > 0)
            generate(g, depth - 1, out, text);
        ron_buf_put_text(text, "] ");
    } else {
        generate_map(g, depth - 1, out, text);
    }
}

/* Read a copy in memory that ends where the input does, so that sanitizers see reading beyond. */
static enum ron_err dump_exact(struct ron_slice input, struct ron_buf *out,
                               struct ron_errinfo *reterr)
{
    uint8_t *copy = ron_mem_alloc(input.size > 0 ? input.size : 1);
    enum ron_err err;

    assert_non_null(copy);
    if (input.size > 0)
        memcpy(copy, input.data, input.size);
    err = cbor_dump(ron_slice_of(copy, input.size), out, reterr);
    ron_mem_free(copy);
    return err;
}

static void random_documents_round_trip(void **state)
{
    struct generator g = {.random = 20240807};
    struct ron_buf encoded, expected, got;
    size_t encoded_size_sum = 0;

    (void)state;
    ron_buf_init(&encoded, CBOR_DUMP_SIZE_MAX);
    ron_buf_init(&expected, CBOR_DUMP_SIZE_MAX);
    ron_buf_init(&got, CBOR_DUMP_SIZE_MAX);
    for (int round = 0; round < 3000; round++) {
        struct ron_errinfo info = {0};
        struct ron_cbor_reader reader;
        struct ron_slice raw = {0};

        ron_buf_reset(&encoded);
        ron_buf_reset(&expected);
        ron_buf_reset(&got);
        generate(&g, (unsigned)round % 5, &encoded, &expected);
        assert_ok(ron_buf_check(&encoded, NULL));
        assert_ok(ron_buf_check(&expected, NULL));
        if (dump_exact(ron_buf_slice(&encoded), &got, &info) != RON_ERR_OK)
            fail_msg("round %d refused: %s", round, info.message);
        assert_true(ron_slice_equal(ron_buf_slice(&got), ron_buf_slice(&expected)));
        encoded_size_sum += encoded.size;
        ron_cbor_reader_init(&reader, ron_buf_slice(&encoded));
        assert_ok(ron_cbor_skip(&reader, &raw, NULL));
        assert_true(ron_slice_equal(raw, ron_buf_slice(&encoded)));
        /* A flipped bit is refused, or a different document. */
        encoded.data[generator_below(&g, (uint32_t)encoded.size)] ^=
            (uint8_t)(1u << generator_below(&g, 8));
        ron_buf_reset(&got);
        if (dump_exact(ron_buf_slice(&encoded), &got, NULL) == RON_ERR_OK)
            assert_false(ron_slice_equal(ron_buf_slice(&got), ron_buf_slice(&expected)));
    }
    assert_true(encoded_size_sum > 100000);
    ron_buf_fini(&encoded);
    ron_buf_fini(&expected);
    ron_buf_fini(&got);
}

static void every_truncation_is_refused(void **state)
{
    struct generator g = {.random = 3};
    struct ron_buf encoded, text;

    (void)state;
    ron_buf_init(&encoded, CBOR_DUMP_SIZE_MAX);
    ron_buf_init(&text, CBOR_DUMP_SIZE_MAX);
    put_head(&encoded, 4, 40);
    for (int i = 0; i < 40; i++)
        generate(&g, 3, &encoded, &text);
    ron_buf_reset(&text);
    assert_ok(dump_exact(ron_buf_slice(&encoded), &text, NULL));
    assert_true(encoded.size > 2000);
    for (size_t size = 0; size < encoded.size; size++) {
        struct ron_errinfo info = {0};

        ron_buf_reset(&text);
        support_assert_error(dump_exact(ron_slice_of(encoded.data, size), &text, &info), &info,
                             RON_ERR_MALFORMED, "at byte ");
    }
    ron_buf_put_byte(&encoded, 0);
    ron_buf_reset(&text);
    assert_int_equal(dump_exact(ron_buf_slice(&encoded), &text, NULL), RON_ERR_MALFORMED);
    ron_buf_fini(&encoded);
    ron_buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_documents_round_trip),
        cmocka_unit_test(every_truncation_is_refused),
    };
    return cmocka_run_group_tests_name("cbor_roundtrip", tests, NULL, NULL);
}
