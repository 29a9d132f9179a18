/*
 * bench_json.c - the ingest body: our DTO against jansson.
 *
 * jansson reads with JSON_REJECT_DUPLICATES and then fetches the same members into the same struct,
 * amount included; it checks no name, no bound and no unknown member, which is in its favour. Both
 * results are compared before anything is timed.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/mem.h"
#include "harness.h"
#include "ingest_dto.h"

enum { ENTRIES_COUNT = 1000 };

struct bench {
    struct ron_buf text;
    struct ron_arena arena;
    struct ingest_entry *rival_entries;
};

static void make_body(struct ron_buf *buf)
{
    ron_buf_put_text(buf, "{\"batch\":[");
    for (unsigned i = 0; i < ENTRIES_COUNT; i++)
        ron_buf_put_format(buf,
                           "%s{\"id\":\"01J8ZQ4W2N6F5T7R3V9X0%05u\",\"kind\":\"Transfer\","
                           "\"from\":\"acct_%06u\",\"to\":\"acct_%06u\",\"asset\":\"roc\","
                           "\"amount\":\"%u\",\"nonce\":%u,\"ts\":%llu,\"memo\":\"order %u\"}",
                           i == 0 ? "" : ",", i, i * 7919 % 1000000, i * 104729 % 1000000,
                           i * 37 + 40, i + 1, 1760000000123ull + i, i);
    ron_buf_put_text(buf, "],\"idem_id\":\"tx-77\"}");
}

static void read_dto(struct bench *bench, struct ingest_body *ret_body)
{
    struct ron_errinfo info;

    ron_arena_reset(&bench->arena);
    if (ron_json_dto_read(&ingest_body_dto, ron_buf_slice(&bench->text), &bench->arena, ret_body,
                          &info) != RON_ERR_OK) {
        (void)fprintf(stderr, "dto: %s\n", info.message);
        exit(1);
    }
}

static void run_dto(void *context, uint64_t rounds)
{
    struct bench *bench = context;

    for (uint64_t i = 0; i < rounds; i++) {
        struct ingest_body body;

        read_dto(bench, &body);
        BENCH_USE(&body);
        BENCH_FORGET();
    }
}

static void run_reader(void *context, uint64_t rounds)
{
    struct bench *bench = context;

    for (uint64_t i = 0; i < rounds; i++) {
        struct ron_json_reader reader;
        struct ron_json_token token;
        enum ron_err err;

        ron_arena_reset(&bench->arena);
        ron_json_reader_init(&reader, ron_buf_slice(&bench->text), &bench->arena);
        do {
            err = ron_json_next(&reader, &token, NULL);
            RON_ASSERT(err == RON_ERR_OK);
        } while (token.kind != RON_JSON_END);
        BENCH_FORGET();
    }
}

static struct ron_slice rival_string(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    if (value == NULL)
        return (struct ron_slice){0};
    return ron_slice_of(json_string_value(value), json_string_length(value));
}

static struct ron_u128 rival_amount(struct ron_slice text)
{
    struct ron_u128 amount = {0};

    for (size_t i = 0; i < text.size; i++)
        amount.v = amount.v * 10 + (uint8_t)(text.data[i] - '0');
    return amount;
}

static enum ingest_kind rival_kind(struct ron_slice text)
{
    for (unsigned i = 0; i < RON_ARRAY_COUNT(ingest_kinds); i++)
        if (ron_slice_equal(text, ron_slice_text(ingest_kinds[i])))
            return (enum ingest_kind)i;
    return INGEST_ANCHOR;
}

/* The strings point into the tree, which the caller frees. */
static json_t *read_rival(struct bench *bench)
{
    json_error_t error;
    json_t *root = json_loadb((const char *)bench->text.data, bench->text.size,
                              JSON_REJECT_DUPLICATES, &error);
    const json_t *batch = json_object_get(root, "batch");

    RON_ASSERT(json_array_size(batch) == ENTRIES_COUNT);
    for (size_t i = 0; i < ENTRIES_COUNT; i++) {
        const json_t *object = json_array_get(batch, i);

        bench->rival_entries[i] = (struct ingest_entry){
            .id = rival_string(object, "id"),
            .kind = rival_kind(rival_string(object, "kind")),
            .from = rival_string(object, "from"),
            .to = rival_string(object, "to"),
            .asset = rival_string(object, "asset"),
            .amount = rival_amount(rival_string(object, "amount")),
            .nonce = (uint64_t)json_integer_value(json_object_get(object, "nonce")),
            .ts = (uint64_t)json_integer_value(json_object_get(object, "ts")),
            .memo = rival_string(object, "memo"),
        };
    }
    return root;
}

static void run_rival(void *context, uint64_t rounds)
{
    struct bench *bench = context;

    for (uint64_t i = 0; i < rounds; i++) {
        json_t *root = read_rival(bench);

        BENCH_USE(bench->rival_entries);
        json_decref(root);
        BENCH_FORGET();
    }
}

static void compare_results(struct bench *bench)
{
    struct ingest_body body;
    const struct ingest_entry *ours;
    json_t *root = read_rival(bench);

    read_dto(bench, &body);
    RON_ASSERT(body.batch.count == ENTRIES_COUNT);
    ours = body.batch.items;
    for (size_t i = 0; i < ENTRIES_COUNT; i++) {
        const struct ingest_entry *theirs = &bench->rival_entries[i];

        RON_ASSERT(ron_slice_equal(ours[i].id, theirs->id));
        RON_ASSERT(ours[i].kind == theirs->kind);
        RON_ASSERT(ron_slice_equal(ours[i].from, theirs->from));
        RON_ASSERT(ron_slice_equal(ours[i].to, theirs->to));
        RON_ASSERT(ron_slice_equal(ours[i].asset, theirs->asset));
        RON_ASSERT(ours[i].amount.v == theirs->amount.v);
        RON_ASSERT(ours[i].nonce == theirs->nonce);
        RON_ASSERT(ours[i].ts == theirs->ts);
        RON_ASSERT(ron_slice_equal(ours[i].memo, theirs->memo));
    }
    json_decref(root);
}

int main(int argc, char **argv)
{
    static const char title[] = "ingest body of 1,000 entries (one item is one entry)";
    struct bench_options options;
    struct bench bench = {0};

    if (!bench_begin(argc, argv, &options))
        return 2;
    ron_buf_init(&bench.text, 1 << 20);
    make_body(&bench.text);
    bench.rival_entries = ron_mem_alloc_array(ENTRIES_COUNT, sizeof(*bench.rival_entries));
    if (ron_buf_check(&bench.text, NULL) != RON_ERR_OK || bench.rival_entries == NULL ||
        ron_arena_init(&bench.arena, 4 << 20, NULL) != RON_ERR_OK)
        return 1;
    compare_results(&bench);
    const struct bench_contestant contestants[] = {
        {"jansson", run_rival, &bench, ENTRIES_COUNT},
        {"ron dto", run_dto, &bench, ENTRIES_COUNT},
        {"ron tokens, names checked", run_reader, &bench, ENTRIES_COUNT},
    };
    const struct bench_table table = {
        .title = title,
        .rival = "jansson",
        .item_size = bench.text.size / ENTRIES_COUNT,
        .contestants = contestants,
        .contestants_count = RON_ARRAY_COUNT(contestants),
    };
    bench_compare(&options, &table);
    ron_arena_fini(&bench.arena);
    ron_buf_fini(&bench.text);
    bench.rival_entries = ron_mem_free(bench.rival_entries);
    return 0;
}
