/*
 * bench_ledger_tree.c - the ledger's tree: what a head costs, and `?proof=1`: proof texts for the
 * entries of a batch, of 1 and of 1,000, at the end of a tree of a million.
 *
 * Every proof is verified by io/tlog before it leaves; one text of each batch is verified here as a
 * stranger would.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/merkle_frontier.h"
#include "harness.h"
#include "io/vfs_memory.h"
#include "ledger/tree.h"
#include "rt/registry.h"

enum { LEAVES_COUNT = 1 << 20, PART_COUNT = 8000, BATCH_COUNT = 1000, CACHE_BYTES = 96 << 20 };

struct bench {
    struct ledger_tree *tree;
    struct ledger_root head;
    struct ron_sha256 *leaves;
    struct ron_buf out;
};

static void must(enum ron_err err)
{
    RON_ASSERT(err == RON_ERR_OK);
}

static void run_texts(struct bench *b, uint64_t rounds, uint64_t count) RON_BLOCKS
{
    for (uint64_t i = 0; i < rounds; i++) {
        ron_buf_reset(&b->out);
        for (uint64_t seq = LEAVES_COUNT - count + 1; seq <= LEAVES_COUNT; seq++)
            must(ledger_tree_proof_text(b->tree, seq, &b->out, NULL));
        BENCH_USE(b->out.data);
    }
}

static void run_one(void *context, uint64_t rounds) RON_BLOCKS
{
    run_texts(context, rounds, 1);
}

static void run_batch(void *context, uint64_t rounds) RON_BLOCKS
{
    run_texts(context, rounds, BATCH_COUNT);
}

static void run_sign(void *context, uint64_t rounds) RON_BLOCKS
{
    struct bench *b = context;

    for (uint64_t i = 0; i < rounds; i++)
        must(ledger_tree_sign(b->tree, &b->head, NULL));
}

static void run_checkpoint(void *context, uint64_t rounds)
{
    struct bench *b = context;

    for (uint64_t i = 0; i < rounds; i++) {
        ron_buf_reset(&b->out);
        must(ledger_tree_checkpoint(b->tree, &b->out, NULL, NULL));
        BENCH_USE(b->out.data);
    }
}

/* What replay does where the tiles are there. */
static void run_known(void *context, uint64_t rounds) RON_BLOCKS
{
    struct bench *b = context;

    for (uint64_t i = 0; i < rounds; i++)
        must(ledger_tree_extend(b->tree, 1, b->leaves, 1, NULL, NULL));
}

static void check(struct bench *b) RON_BLOCKS
{
    struct ron_vkey vkey;
    struct ron_trust trust = {.log = &vkey};

    must(ron_vkey_parse(ron_slice_text(ledger_tree_vkey(b->tree)), &vkey, NULL));
    ron_buf_reset(&b->out);
    must(ledger_tree_proof_text(b->tree, LEAVES_COUNT, &b->out, NULL));
    must(ron_verify_proof(ron_buf_slice(&b->out), &b->leaves[LEAVES_COUNT - 1], &trust, NULL, NULL,
                          NULL));
    printf("    a proof text has %zu bytes\n", b->out.size);
}

static void fill(struct bench *b) RON_BLOCKS
{
    struct ron_sha256 *scratch = malloc(LEAVES_COUNT * sizeof(*scratch));
    struct ron_merkle_frontier frontier;

    for (uint64_t at = 0; at < LEAVES_COUNT; at += PART_COUNT) {
        const uint64_t left = LEAVES_COUNT - at;

        must(ledger_tree_extend(b->tree, at + 1, b->leaves + at,
                                left < PART_COUNT ? left : PART_COUNT, NULL, NULL));
    }
    memcpy(scratch, b->leaves, LEAVES_COUNT * sizeof(*scratch));
    ron_merkle_frontier_init(&frontier);
    ron_merkle_frontier_append(&frontier, scratch, LEAVES_COUNT);
    b->head = (struct ledger_root){.seq = LEAVES_COUNT,
                                   .root = ron_merkle_frontier_root(&frontier)};
    free(scratch);
    must(ledger_tree_sign(b->tree, &b->head, NULL));
}

int main(int argc, char **argv) RON_BLOCKS
{
    struct bench b = {.tree = NULL};
    const struct bench_contestant contestants[] = {
        {"proof text, batch of 1", run_one, &b, 0},
        {"proof texts, batch of 1,000", run_batch, &b, BATCH_COUNT},
        {"sign a head", run_sign, &b, 0},
        {"copy of the checkpoint", run_checkpoint, &b, 0},
        {"replayed batch that the tiles have", run_known, &b, 0},
    };
    const struct bench_table table = {"tree of 1,048,576 entries (ns per text, head, batch)",
                                      contestants[0].name, 0, contestants,
                                      RON_ARRAY_COUNT(contestants)};
    struct bench_options options;
    struct io_vfs *vfs = NULL;

    if (!bench_begin(argc, argv, &options))
        return 2;
    rt_init();
    b.leaves = malloc(LEAVES_COUNT * sizeof(*b.leaves));
    for (size_t i = 0; i < LEAVES_COUNT; i++)
        b.leaves[i] = ron_merkle_leaf(&i, sizeof(i));
    ron_buf_init(&b.out, 8 << 20);
    must(io_vfs_memory_new(NULL, &vfs, NULL));
    must(ledger_tree_open(&(struct ledger_tree_options){.vfs = vfs,
                                                        .dir = "tiles",
                                                        .key = "log.key",
                                                        .origin = "ron.example/ledger",
                                                        .cache_bytes = CACHE_BYTES},
                          &b.tree, NULL));
    fill(&b);
    check(&b);
    bench_compare(&options, &table);
    b.tree = ledger_tree_free(b.tree);
    vfs = io_vfs_free(vfs);
    ron_buf_fini(&b.out);
    free(b.leaves);
    return 0;
}
