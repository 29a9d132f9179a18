/*
 * bench_base.c - the small parts of base against libc: decimal text, per-request memory, hex
 * texts. All contestants of a table are seen to agree before they run.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/decimal.h"
#include "base/hex.h"
#include "harness.h"

enum { NUMBERS_COUNT = 1024, PIECES_COUNT = 64 };

struct numbers {
    char texts[NUMBERS_COUNT][RON_DECIMAL_U128_SIZE];
    size_t sizes[NUMBERS_COUNT];
    struct ron_u128 values[NUMBERS_COUNT];
    uint64_t sum; /* what the last run saw, for the comparison of contestants */
};

/* Amounts as they occur: any number of digits up to digits_max, uniformly. */
static void numbers_fill(struct numbers *numbers, unsigned digits_max)
{
    uint64_t x = 7;

    for (size_t i = 0; i < NUMBERS_COUNT; i++) {
        char *text = numbers->texts[i];
        size_t size = 1 + i % digits_max;

        for (size_t d = 0; d < size; d++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            text[d] = (char)('0' + (x >> 33) % (d == 0 ? 9 : 10) + (d == 0));
        }
        if (size == 39)
            text[0] = '1'; /* below 2^128 */
        if (size == 20)
            text[0] = '1', text[1] = '7'; /* below 2^64 */
        text[size] = '\0';
        numbers->sizes[i] = size;
        RON_ASSERT(ron_decimal_parse_u128(ron_slice_of(text, size), &numbers->values[i], NULL) ==
                   RON_ERR_OK);
    }
}

static void parse_u64(void *context, uint64_t rounds)
{
    struct numbers *n = context;

    for (uint64_t r = 0; r < rounds; r++) {
        n->sum = 0;
        for (size_t i = 0; i < NUMBERS_COUNT; i++) {
            uint64_t value = 0;

            if (ron_decimal_parse_u64(ron_slice_of(n->texts[i], n->sizes[i]), &value, NULL) ==
                RON_ERR_OK)
                n->sum += value;
        }
        BENCH_FORGET();
    }
}

static void parse_strtoull(void *context, uint64_t rounds)
{
    struct numbers *n = context;

    for (uint64_t r = 0; r < rounds; r++) {
        n->sum = 0;
        for (size_t i = 0; i < NUMBERS_COUNT; i++)
            n->sum += strtoull(n->texts[i], NULL, 10);
        BENCH_FORGET();
    }
}

static void parse_u128(void *context, uint64_t rounds)
{
    struct numbers *n = context;

    for (uint64_t r = 0; r < rounds; r++) {
        n->sum = 0;
        for (size_t i = 0; i < NUMBERS_COUNT; i++) {
            struct ron_u128 value = {0};

            if (ron_decimal_parse_u128(ron_slice_of(n->texts[i], n->sizes[i]), &value, NULL) ==
                RON_ERR_OK)
                n->sum += (uint64_t)value.v;
        }
        BENCH_FORGET();
    }
}

static void print_u64(void *context, uint64_t rounds)
{
    struct numbers *n = context;
    char text[RON_DECIMAL_U64_SIZE];

    for (uint64_t r = 0; r < rounds; r++) {
        n->sum = 0;
        for (size_t i = 0; i < NUMBERS_COUNT; i++) {
            n->sum += ron_decimal_print_u64((uint64_t)n->values[i].v, text);
            BENCH_USE(text);
        }
    }
}

static void print_snprintf(void *context, uint64_t rounds)
{
    struct numbers *n = context;
    char text[RON_DECIMAL_U64_SIZE];

    for (uint64_t r = 0; r < rounds; r++) {
        n->sum = 0;
        for (size_t i = 0; i < NUMBERS_COUNT; i++) {
            n->sum += (uint64_t)snprintf(text, sizeof(text), "%" PRIu64, (uint64_t)n->values[i].v);
            BENCH_USE(text);
        }
    }
}

static void print_u128(void *context, uint64_t rounds)
{
    struct numbers *n = context;
    char text[RON_DECIMAL_U128_SIZE];

    for (uint64_t r = 0; r < rounds; r++) {
        n->sum = 0;
        for (size_t i = 0; i < NUMBERS_COUNT; i++) {
            n->sum += ron_decimal_print_u128(n->values[i], text);
            BENCH_USE(text);
        }
    }
}

/* Run a pair of contestants over the numbers and see that they agree first. */
static void compare_numbers(const struct bench_options *options, const char *title,
                            struct numbers *numbers, bench_run_fn *ours, const char *rival,
                            bench_run_fn *theirs)
{
    const struct bench_contestant contestants[] = {
        {.name = "ron", .run = ours, .context = numbers, .items_count = NUMBERS_COUNT},
        {.name = rival, .run = theirs, .context = numbers, .items_count = NUMBERS_COUNT},
    };
    uint64_t sum;

    ours(numbers, 1);
    sum = numbers->sum;
    theirs(numbers, 1);
    RON_ASSERT(numbers->sum == sum);
    bench_compare(options, &(struct bench_table){.title = title,
                                                 .rival = rival,
                                                 .contestants = contestants,
                                                 .contestants_count = 2});
}

static void bench_decimal(const struct bench_options *options)
{
    static struct numbers small;
    static struct numbers large;

    numbers_fill(&small, 20);
    numbers_fill(&large, 39);
    compare_numbers(options, "parse decimal, 1 to 20 digits, 64 bits", &small, parse_u64,
                    "strtoull", parse_strtoull);
    compare_numbers(options, "print decimal, 1 to 20 digits, 64 bits", &small, print_u64,
                    "snprintf", print_snprintf);
    const struct bench_contestant contestants[] = {
        {.name = "parse", .run = parse_u128, .context = &large, .items_count = NUMBERS_COUNT},
        {.name = "print", .run = print_u128, .context = &large, .items_count = NUMBERS_COUNT},
    };
    bench_compare(options, &(struct bench_table){.title = "decimal, 1 to 39 digits, 128 bits",
                                                 .rival = "parse",
                                                 .contestants = contestants,
                                                 .contestants_count = 2});
}

static void run_arena(void *context, uint64_t rounds)
{
    struct ron_arena *arena = context;

    for (uint64_t r = 0; r < rounds; r++) {
        for (size_t i = 0; i < PIECES_COUNT; i++) {
            void *piece = ron_arena_alloc(arena, 16 + i);

            BENCH_USE(piece);
        }
        ron_arena_reset(arena);
    }
}

static void run_malloc(void *context, uint64_t rounds)
{
    void *pieces[PIECES_COUNT];

    (void)context;
    for (uint64_t r = 0; r < rounds; r++) {
        for (size_t i = 0; i < PIECES_COUNT; i++) {
            pieces[i] = malloc(16 + i);
            BENCH_USE(pieces[i]);
        }
        for (size_t i = 0; i < PIECES_COUNT; i++)
            free(pieces[i]);
    }
}

static void bench_arena(const struct bench_options *options)
{
    struct ron_arena arena;
    const struct bench_contestant contestants[] = {
        {.name = "arena", .run = run_arena, .context = &arena, .items_count = PIECES_COUNT},
        {.name = "malloc + free", .run = run_malloc, .items_count = PIECES_COUNT},
    };

    RON_ASSERT(ron_arena_init(&arena, 64 << 10, NULL) == RON_ERR_OK);
    bench_compare(options,
                  &(struct bench_table){.title = "memory of one request: 64 pieces of 16-79 B",
                                        .rival = "malloc + free",
                                        .contestants = contestants,
                                        .contestants_count = 2});
    ron_arena_fini(&arena);
}

static void run_hex(void *context, uint64_t rounds)
{
    char text[RON_HEX_SIZE(32)];

    for (uint64_t r = 0; r < rounds; r++) {
        ron_hex_encode(ron_slice_of(context, 32), text, sizeof(text));
        BENCH_USE(text);
    }
}

static void run_hex_snprintf(void *context, uint64_t rounds)
{
    const uint8_t *bytes = context;
    char text[RON_HEX_SIZE(32)];

    for (uint64_t r = 0; r < rounds; r++) {
        for (size_t i = 0; i < 32; i++)
            (void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
        BENCH_USE(text);
    }
}

static void bench_texts(const struct bench_options *options)
{
    uint8_t hash[32] = {1, 2, 3, 250};
    const struct bench_contestant contestants[] = {
        {.name = "ron", .run = run_hex, .context = hash},
        {.name = "snprintf %02x", .run = run_hex_snprintf, .context = hash},
    };

    bench_compare(options, &(struct bench_table){.title = "hash of 32 bytes as hex",
                                                 .rival = "snprintf %02x",
                                                 .contestants = contestants,
                                                 .contestants_count = 2});
}

int main(int argc, char **argv)
{
    struct bench_options options;

    if (!bench_begin(argc, argv, &options))
        return 2;
    bench_decimal(&options);
    bench_arena(&options);
    bench_texts(&options);
    return 0;
}
