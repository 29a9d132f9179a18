/*
 * bench_refuse.c - how long the dearest texts of up to 1 MiB keep a parser busy, refused or not.
 *
 * Each text is read RUNS times in an arena of the size that the parser's header asks for. The best
 * run is judged: it is what the text costs, the others are what the machine added. Processor time
 * of this thread. Exit status 1 when a best run is beyond REFUSE_MS_MAX.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/cbor.h"
#include "base/json.h"
#include "base/json_canon.h"
#include "base/toml.h"
#include "harness.h"
#include "nasty_canon.h"
#include "nasty_cbor.h"
#include "nasty_json.h"
#include "nasty_toml.h"

enum { RUNS = 5, REFUSE_MS_MAX = 50 };

/* What every parser may use; reset before each run. */
struct scratch {
    struct ron_arena arena;
    struct ron_buf out;
};

typedef enum ron_err parse_fn(struct ron_slice text, struct scratch *scratch);

static enum ron_err parse_json(struct ron_slice text, struct scratch *scratch)
{
    struct ron_json_reader reader;
    struct ron_json_token token;
    enum ron_err err;

    ron_json_reader_init(&reader, text, &scratch->arena);
    do
        err = ron_json_next(&reader, &token, NULL);
    while (err == RON_ERR_OK && token.kind != RON_JSON_END);
    return err;
}

static enum ron_err parse_canon(struct ron_slice text, struct scratch *scratch)
{
    return ron_json_canon(text, &scratch->arena, &scratch->out, NULL);
}

static enum ron_err parse_cbor(struct ron_slice text, struct scratch *scratch)
{
    struct ron_cbor_reader reader;
    struct ron_cbor_token token;
    enum ron_err err;

    (void)scratch;
    ron_cbor_reader_init(&reader, text);
    do
        err = ron_cbor_next(&reader, &token, NULL);
    while (err == RON_ERR_OK && token.kind != RON_CBOR_END);
    return err;
}

static enum ron_err parse_toml(struct ron_slice text, struct scratch *scratch)
{
    const struct ron_toml_node *root;

    return ron_toml_parse(text, "nasty.toml", &scratch->arena, &root, NULL);
}

static const struct suite {
    const char *name;
    parse_fn *parse;
    const struct nasty_input *inputs;
    size_t inputs_count;
    size_t arena_factor; /* arena size in texts */
} suites[] = {
    {"JSON reader", parse_json, nasty_json_inputs, NASTY_JSON_COUNT, 2},
    {"JSON canonicaliser", parse_canon, nasty_canon_inputs, NASTY_CANON_COUNT, 10},
    {"JSON canonicaliser, the reader's texts", parse_canon, nasty_json_inputs, NASTY_JSON_COUNT,
     10},
    {"CBOR", parse_cbor, nasty_cbor_inputs, NASTY_CBOR_COUNT, 1},
    {"TOML", parse_toml, nasty_toml_inputs, NASTY_TOML_COUNT, 8},
};

struct slowest {
    uint64_t best_ns;
    const char *suite;
    const char *input;
};

static void bench_input(const struct suite *suite, const struct nasty_input *input,
                        struct slowest *slowest)
{
    struct ron_buf text;
    struct scratch scratch;
    uint64_t best_ns = UINT64_MAX;
    uint64_t worst_ns = 0;
    enum ron_err err = RON_ERR_OK;

    ron_buf_init(&text, NASTY_SIZE + 1);
    ron_buf_init(&scratch.out, NASTY_SIZE + 1);
    nasty_make(input, &text);
    if (ron_buf_check(&text, NULL) != RON_ERR_OK ||
        ron_arena_init(&scratch.arena, suite->arena_factor * text.size + 64, NULL) != RON_ERR_OK) {
        (void)fprintf(stderr, "bench_refuse: no memory\n");
        exit(1);
    }
    for (unsigned run = 0; run < RUNS; run++) {
        uint64_t ns;

        ron_arena_reset(&scratch.arena);
        ron_buf_reset(&scratch.out);
        BENCH_FORGET();
        ns = bench_cpu_ns();
        err = suite->parse(ron_buf_slice(&text), &scratch);
        ns = bench_cpu_ns() - ns;
        best_ns = ns < best_ns ? ns : best_ns;
        worst_ns = ns > worst_ns ? ns : worst_ns;
    }
    printf("  %-26s %8zu %-8s %9.3f %9.3f %8.2fx\n", input->name, text.size,
           err == RON_ERR_OK ? "accepted" : "refused", (double)best_ns / 1e6,
           (double)worst_ns / 1e6, (double)scratch.arena.peak_size / (double)text.size);
    if (best_ns > slowest->best_ns)
        *slowest = (struct slowest){best_ns, suite->name, input->name};
    ron_arena_fini(&scratch.arena);
    ron_buf_fini(&scratch.out);
    ron_buf_fini(&text);
}

int main(int argc, char **argv)
{
    struct slowest slowest = {0};
    bool good;

    if (argc != 1) {
        (void)fprintf(stderr, "usage: %s\n", argv[0]);
        return 2;
    }
    bench_print_machine();
    for (size_t i = 0; i < RON_ARRAY_COUNT(suites); i++) {
        printf("\n%s, processor time of %d runs, arena as a multiple of the text\n", suites[i].name,
               RUNS);
        printf("  %-26s %8s %-8s %9s %9s %9s\n", "", "bytes", "", "best ms", "worst ms", "arena");
        for (size_t j = 0; j < suites[i].inputs_count; j++)
            bench_input(&suites[i], &suites[i].inputs[j], &slowest);
    }
    good = slowest.best_ns <= REFUSE_MS_MAX * 1000000u;
    printf("\nslowest best of %d: %.3f ms (%s: %s), %s %d ms\n", RUNS,
           (double)slowest.best_ns / 1e6, slowest.suite, slowest.input, good ? "within" : "BEYOND",
           REFUSE_MS_MAX);
    return good ? 0 : 1;
}
