/*
 * bench_tlog.c - the Merkle log: appending beside pure hashing, proofs and tiles per second with
 * all tiles in memory and with tiles read from files, checks of a proof.
 *
 * Results are seen to be right: every proof is verified by the log before it leaves, the root is
 * compared with that of ron_merkle_frontier.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/merkle_frontier.h"
#include "base/secret.h"
#include "harness.h"
#include "io/note.h"
#include "io/tlog.h"

enum { LEAVES_COUNT = 1 << 20, BATCH_COUNT = 8000, WARM_BYTES = 96 << 20, COLD_BYTES = 2 << 20 };

static struct ron_sha256 *leaves;

static uint64_t next(void)
{
    static uint64_t x = 88172645463325252u;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x;
}

static struct io_tlog *open_tlog(struct io_vfs *vfs, uint64_t cache_bytes) RON_BLOCKS
{
    struct io_tlog_options options = {.vfs = vfs, .dir = "tiles", .cache_bytes = cache_bytes};
    struct io_tlog *tlog = NULL;

    RON_ASSERT(io_tlog_open(&options, &tlog, NULL) == RON_ERR_OK);
    return tlog;
}

static void append_all(struct io_tlog *tlog) RON_BLOCKS
{
    for (size_t at = 0; at < LEAVES_COUNT; at += BATCH_COUNT) {
        size_t left = LEAVES_COUNT - at, count = left < BATCH_COUNT ? left : BATCH_COUNT;

        RON_ASSERT(io_tlog_append(tlog, leaves + at, count, NULL, NULL) == RON_ERR_OK);
        RON_ASSERT(io_tlog_flush(tlog, NULL) == RON_ERR_OK);
    }
}

/* Appending. */

static void run_frontier(void *context, uint64_t rounds)
{
    struct ron_sha256 *scratch = context;

    for (uint64_t i = 0; i < rounds; i++) {
        struct ron_merkle_frontier frontier;

        memcpy(scratch, leaves, BATCH_COUNT * sizeof(*scratch));
        ron_merkle_frontier_init(&frontier);
        ron_merkle_frontier_append(&frontier, scratch, BATCH_COUNT);
        BENCH_USE(&frontier);
    }
}

static void run_append(void *context, uint64_t rounds) RON_BLOCKS
{
    struct io_tlog *tlog = context;

    for (uint64_t i = 0; i < rounds; i++) {
        enum ron_err err = io_tlog_append(tlog, leaves, BATCH_COUNT, NULL, NULL);

        RON_ASSERT(err == RON_ERR_OK);
        err = io_tlog_flush(tlog, NULL);
        RON_ASSERT(err == RON_ERR_OK);
    }
}

static void bench_append(const struct bench_options *options, struct io_vfs *disk) RON_BLOCKS
{
    struct ron_sha256 *scratch = calloc(BATCH_COUNT, sizeof(*scratch));
    struct io_tlog *tlog = open_tlog(disk, 0);
    const struct bench_contestant contestants[] = {
        {"frontier: hashing alone", run_frontier, scratch, BATCH_COUNT},
        {"append and flush, files of the system", run_append, tlog, BATCH_COUNT},
    };
    const struct bench_table table = {"append, batches of 8,000 leaf hashes (ns per leaf)",
                                      contestants[0].name, 0, contestants,
                                      RON_ARRAY_COUNT(contestants)};

    bench_compare(options, &table);
    printf("    the tree has %llu leaves now\n", (unsigned long long)io_tlog_size(tlog));
    tlog = io_tlog_free(tlog);
    free(scratch);
}

/* Reading; the context is the log. */

static void run_inclusion(void *context, uint64_t rounds) RON_BLOCKS
{
    for (uint64_t i = 0; i < rounds; i++) {
        struct io_tlog_proof proof;
        enum ron_err err = io_tlog_inclusion(context, next() % LEAVES_COUNT, LEAVES_COUNT, &proof,
                                             NULL);

        RON_ASSERT(err == RON_ERR_OK);
        BENCH_USE(&proof);
    }
}

static void run_any_size(void *context, uint64_t rounds) RON_BLOCKS
{
    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t size = 1 + next() % LEAVES_COUNT;
        struct io_tlog_proof proof;
        enum ron_err err = io_tlog_inclusion(context, next() % size, size, &proof, NULL);

        RON_ASSERT(err == RON_ERR_OK);
        BENCH_USE(&proof);
    }
}

static void run_consistency(void *context, uint64_t rounds) RON_BLOCKS
{
    for (uint64_t i = 0; i < rounds; i++) {
        struct io_tlog_proof proof;
        enum ron_err err = io_tlog_consistency(context, 1 + next() % LEAVES_COUNT, LEAVES_COUNT,
                                               &proof, NULL);

        RON_ASSERT(err == RON_ERR_OK);
        BENCH_USE(&proof);
    }
}

static void run_tile(void *context, uint64_t rounds) RON_BLOCKS
{
    for (uint64_t i = 0; i < rounds; i++) {
        struct io_tile tile = {0, next() % (LEAVES_COUNT / IO_TILE_WIDTH), IO_TILE_WIDTH};
        struct ron_sha256 hashes[IO_TILE_WIDTH];
        enum ron_err err = io_tlog_tile(context, &tile, hashes, NULL);

        RON_ASSERT(err == RON_ERR_OK);
        BENCH_USE(hashes);
    }
}

static void bench_read(const struct bench_options *options, struct io_tlog *warm,
                       struct io_tlog *cold)
{
    const struct bench_contestant contestants[] = {
        {"inclusion at one size, warm", run_inclusion, warm, 0},
        {"inclusion at any size, warm", run_any_size, warm, 0},
        {"consistency to one size, warm", run_consistency, warm, 0},
        {"inclusion at one size, tile read and checked", run_inclusion, cold, 0},
        {"tile, warm", run_tile, warm, 0},
        {"tile, read and checked", run_tile, cold, 0},
    };
    const struct bench_table table = {"proofs and tiles of 1,048,576 leaves (10,000 ns = 100 k/s)",
                                      contestants[0].name, 0, contestants,
                                      RON_ARRAY_COUNT(contestants)};

    bench_compare(options, &table);
}

/* Checking, as a stranger does. */

struct claim {
    struct io_tlog_proof proof;
    struct ron_sha256 leaf;
    struct ron_trust trust;
    struct ron_slice text;
    uint64_t index;
};

static void run_verify_path(void *context, uint64_t rounds)
{
    const struct claim *claim = context;

    for (uint64_t i = 0; i < rounds; i++) {
        enum ron_err err = ron_verify_inclusion(&claim->leaf, claim->index, &claim->proof.tree,
                                                claim->proof.hashes, claim->proof.hashes_count,
                                                NULL);

        RON_ASSERT(err == RON_ERR_OK);
        BENCH_FORGET();
    }
}

static void run_verify_text(void *context, uint64_t rounds)
{
    const struct claim *claim = context;

    for (uint64_t i = 0; i < rounds; i++) {
        enum ron_err err = ron_verify_proof(claim->text, &claim->leaf, &claim->trust, NULL, NULL,
                                            NULL);

        RON_ASSERT(err == RON_ERR_OK);
        BENCH_FORGET();
    }
}

static void bench_verify(const struct bench_options *options, struct io_tlog *tlog) RON_BLOCKS
{
    struct claim claim = {.index = 123456, .leaf = leaves[123456]};
    struct ron_secret seed = {0};
    struct io_signer signer = {RON_SLICE("example.com/log"), &seed};
    struct ron_checkpoint checkpoint = {.origin = signer.name};
    const struct bench_contestant contestants[] = {
        {"inclusion, 20 hashes", run_verify_path, &claim, 0},
        {"proof text: parse, signature, inclusion", run_verify_text, &claim, 0},
    };
    const struct bench_table table = {"checks", contestants[0].name, 0, contestants,
                                      RON_ARRAY_COUNT(contestants)};
    struct ron_buf text, note, key, proof;
    struct ron_vkey vkey;

    RON_ASSERT(ron_secret_init_random(&seed, 32, NULL) == RON_ERR_OK);
    RON_ASSERT(io_tlog_inclusion(tlog, claim.index, LEAVES_COUNT, &claim.proof, NULL) ==
               RON_ERR_OK);
    checkpoint.tree = claim.proof.tree;
    ron_buf_init(&text, RON_CHECKPOINT_SIZE_MAX);
    ron_buf_init(&note, RON_NOTE_SIZE_MAX);
    ron_buf_init(&key, RON_VKEY_SIZE_MAX);
    ron_buf_init(&proof, RON_NOTE_SIZE_MAX);
    io_checkpoint_put(&text, &checkpoint);
    io_note_put(&note, ron_buf_slice(&text), &signer);
    io_vkey_put(&key, &signer, RON_KEY_ED25519);
    io_proof_put(&proof, &(struct io_proof_text){.index = claim.index,
                                                 .hashes = claim.proof.hashes,
                                                 .hashes_count = claim.proof.hashes_count,
                                                 .note = ron_buf_slice(&note)});
    RON_ASSERT(ron_buf_check(&proof, NULL) == RON_ERR_OK);
    RON_ASSERT(ron_vkey_parse(ron_buf_slice(&key), &vkey, NULL) == RON_ERR_OK);
    claim.trust.log = &vkey;
    claim.text = ron_buf_slice(&proof);
    bench_compare(options, &table);
    ron_buf_fini(&text);
    ron_buf_fini(&note);
    ron_buf_fini(&key);
    ron_buf_fini(&proof);
    ron_secret_fini(&seed);
}

static void check_root(struct io_tlog *tlog) RON_BLOCKS
{
    struct ron_sha256 *scratch = malloc(LEAVES_COUNT * sizeof(*scratch));
    struct ron_merkle_frontier frontier;
    struct ron_sha256 root, expected;

    memcpy(scratch, leaves, LEAVES_COUNT * sizeof(*scratch));
    ron_merkle_frontier_init(&frontier);
    ron_merkle_frontier_append(&frontier, scratch, LEAVES_COUNT);
    expected = ron_merkle_frontier_root(&frontier);
    RON_ASSERT(io_tlog_root(tlog, LEAVES_COUNT, &root, NULL) == RON_ERR_OK);
    RON_ASSERT(memcmp(root.bytes, expected.bytes, RON_SHA256_SIZE) == 0);
    free(scratch);
}

static void remove_all(struct io_vfs *vfs, const char *folder) RON_BLOCKS
{
    static const char *const names[] = {"tiles/head", "tiles/level-0", "tiles/level-1",
                                        "tiles/level-2", "tiles/level-3"};
    char path[64];

    for (size_t i = 0; i < RON_ARRAY_COUNT(names); i++)
        if (io_vfs_unlink(vfs, names[i], NULL) != RON_ERR_OK)
            printf("    no %s\n", names[i]);
    (void)snprintf(path, sizeof(path), "%s/tiles", folder);
    if (rmdir(path) != 0 || rmdir(folder) != 0)
        perror(folder);
}

int main(int argc, char **argv) RON_BLOCKS
{
    char folder[] = "build/bench-tlog-XXXXXX";
    struct bench_options options;
    struct io_vfs *disk = NULL;
    struct io_tlog *warm, *cold;

    if (!bench_begin(argc, argv, &options))
        return 2;
    if (mkdtemp(folder) == NULL) {
        perror("a folder below build");
        return 1;
    }
    leaves = malloc(LEAVES_COUNT * sizeof(*leaves));
    for (size_t i = 0; i < LEAVES_COUNT; i++)
        leaves[i] = ron_merkle_leaf(&i, sizeof(i));
    RON_ASSERT(io_vfs_posix_new(folder, false, &disk, NULL) == RON_ERR_OK);
    warm = open_tlog(disk, WARM_BYTES);
    append_all(warm);
    RON_ASSERT(io_tlog_sync(warm, NULL) == RON_ERR_OK);
    check_root(warm);
    cold = open_tlog(disk, COLD_BYTES);
    check_root(cold);
    bench_read(&options, warm, cold);
    bench_verify(&options, warm);
    warm = io_tlog_free(warm);
    cold = io_tlog_free(cold);
    bench_append(&options, disk);
    remove_all(disk, folder);
    disk = io_vfs_free(disk);
    free(leaves);
    return 0;
}
