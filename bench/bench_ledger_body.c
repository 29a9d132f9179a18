/*
 * bench_ledger_body.c - POST /ingest of 1,000 Transfers: reading, shape and fingerprint, which is
 * what a prevalidator does with a body, against the reading alone.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "harness.h"
#include "ledger/body.h"

enum { ENTRIES_COUNT = 1000 };

struct bench {
    struct ron_buf text;
    struct body_scratch scratch;
    struct ron_slice key;
};

static void run_read(void *context, uint64_t rounds)
{
    struct bench *bench = context;

    for (uint64_t i = 0; i < rounds; i++) {
        struct ledger_ingest_body body;
        struct ron_errinfo info;
        uint32_t index;

        body_scratch_reset(&bench->scratch);
        if (ledger_read_ingest(&bench->scratch, ron_buf_slice(&bench->text), bench->key,
                               ron_u128_of(0), &body, &index, &info) != RON_ERR_OK) {
            (void)fprintf(stderr, "body: %s\n", info.message);
            exit(1);
        }
        BENCH_USE(&body);
        BENCH_FORGET();
    }
}

int main(int argc, char **argv)
{
    static struct bench keyed, bare;
    const struct bench_contestant contestants[] = {
        {"read, shape", run_read, &bare, ENTRIES_COUNT},
        {"and fingerprint", run_read, &keyed, ENTRIES_COUNT},
    };
    struct bench_options options;

    if (!bench_begin(argc, argv, &options))
        return 2;
    ron_buf_init(&bare.text, RON_BODY_SIZE_MAX);
    ron_buf_put_text(&bare.text, "{\"batch\":[");
    for (unsigned i = 0; i < ENTRIES_COUNT; i++)
        ron_buf_put_format(&bare.text,
                           "%s{\"id\":\"01J8ZQ4W2N6F5T7R3V9X0%05u\",\"kind\":\"Transfer\","
                           "\"from\":\"acct_%06u\",\"to\":\"acct_%06u\",\"asset\":\"roc\","
                           "\"amount\":\"%u\",\"nonce\":%u,\"ts\":%llu,\"memo\":\"order %u\"}",
                           i == 0 ? "" : ",", i, i * 7919 % 1000000, (i * 104729 + 1) % 1000000,
                           i * 37 + 40, i + 1, 1760000000123ull + i, i);
    ron_buf_put_text(&bare.text, "]}");
    RON_ASSERT(ron_buf_check(&bare.text, NULL) == RON_ERR_OK);
    if (body_scratch_init(&bare.scratch, NULL) != RON_ERR_OK)
        return 1;
    keyed = bare; /* one memory: they take turns */
    keyed.key = RON_SLICE("tx-77");
    bench_compare(&options, &(struct bench_table){
                                .title = "POST /ingest of 1,000 Transfers",
                                .rival = "read, shape",
                                .contestants = contestants,
                                .contestants_count = RON_ARRAY_COUNT(contestants),
                            });
    body_scratch_fini(&keyed.scratch);
    ron_buf_fini(&bare.text);
    return 0;
}
