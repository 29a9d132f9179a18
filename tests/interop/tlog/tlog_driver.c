/*
 * tlog_driver.c - a log made by the ledger's tree, for strangers to check: DIR/log is the static
 * layout of c2sp.org/tlog-tiles, beside it vkey, witness (key of a cosigner), proofs (lines of hex)
 * and sample.tlog-proof, extra.tlog-proof with their leaf.
 *
 * usage: tlog_driver DIR SIZE COUNT - DIR must be empty; COUNT proofs of each kind
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/decimal.h"
#include "base/ed25519.h"
#include "base/hex.h"
#include "io/durable.h"
#include "io/note.h"
#include "ledger/tree.h"
#include "rt/registry.h"

enum { NAME_SIZE = 64, PROOFS_SIZE_MAX = 64 << 20 };

static void must(enum ron_err err, const struct ron_errinfo *info)
{
    if (err == RON_ERR_OK)
        return;
    fprintf(stderr, "tlog_driver: %s: %s\n", ron_err_name(err), info->message);
    exit(1);
}

/* Leaves of changing size, the empty one included. */
static enum ron_err put_entry(void *context, uint64_t index, struct ron_buf *out,
                              struct ron_errinfo *reterr)
{
    (void)context;
    for (uint64_t i = 0; i < index % 11; i++)
        ron_buf_put_format(out, "%llu of %llu;", (unsigned long long)i, (unsigned long long)index);
    return ron_buf_check(out, reterr);
}

static uint64_t next(void)
{
    static uint64_t x = 88172645463325252u;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x;
}

static void put_hash(struct ron_buf *out, const struct ron_sha256 *hash)
{
    char text[RON_HEX_SIZE(RON_SHA256_SIZE)];

    (void)ron_hex_encode(ron_slice_of(hash->bytes, RON_SHA256_SIZE), text, sizeof(text));
    ron_buf_put_format(out, " %s", text);
}

static struct ron_sha256 leaf_at(uint64_t index)
{
    struct ron_errinfo info = {0};
    struct ron_sha256 hash;
    struct ron_buf leaf;

    ron_buf_init(&leaf, 4096);
    must(put_entry(NULL, index, &leaf, &info), &info);
    hash = ron_merkle_leaf(leaf.data, leaf.size);
    ron_buf_fini(&leaf);
    return hash;
}

/* "inclusion SIZE ROOT INDEX LEAF HASH..." and "consistency SIZE ROOT OLD OLDROOT HASH..." */
static void put_proofs(struct ron_buf *out, struct io_tlog *tlog, uint64_t count) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct io_tlog_proof proof;

    for (uint64_t i = 0; i < count; i++) {
        uint64_t size = i % 3 == 0 ? io_tlog_size(tlog) : 1 + next() % io_tlog_size(tlog);
        uint64_t index = next() % size, old = 1 + next() % size;
        struct ron_sha256 leaf = leaf_at(index);

        must(io_tlog_inclusion(tlog, index, size, &proof, &info), &info);
        ron_buf_put_format(out, "inclusion %llu", (unsigned long long)size);
        put_hash(out, &proof.tree.root);
        ron_buf_put_format(out, " %llu", (unsigned long long)index);
        put_hash(out, &leaf);
        for (size_t k = 0; k < proof.hashes_count; k++)
            put_hash(out, &proof.hashes[k]);
        must(io_tlog_consistency(tlog, old, size, &proof, &info), &info);
        ron_buf_put_format(out, "\nconsistency %llu", (unsigned long long)size);
        put_hash(out, &proof.tree.root);
        ron_buf_put_format(out, " %llu", (unsigned long long)old);
        put_hash(out, &proof.old.root);
        for (size_t k = 0; k < proof.hashes_count; k++)
            put_hash(out, &proof.hashes[k]);
        ron_buf_put_text(out, "\n");
    }
}

/* In batches of changing size; the head is signed as the ledger knows it. */
static void grow(struct ledger_tree *tree, uint64_t size) RON_BLOCKS
{
    struct ron_sha256 *batch = calloc(1000, sizeof(*batch));
    struct ron_merkle_frontier frontier;
    struct ron_errinfo info = {0};
    struct ledger_root head = {.seq = size};
    uint64_t count;

    ron_merkle_frontier_init(&frontier);
    for (uint64_t at = 0; at < size; at += count) {
        count = 1 + next() % 1000;
        count = count < size - at ? count : size - at;
        for (uint64_t i = 0; i < count; i++)
            batch[i] = leaf_at(at + i);
        must(ledger_tree_extend(tree, at + 1, batch, count, NULL, &info), &info);
        ron_merkle_frontier_append(&frontier, batch, count);
    }
    head.root = ron_merkle_frontier_root(&frontier);
    must(ledger_tree_sign(tree, &head, &info), &info);
    must(ledger_tree_keep(tree, true, &info), &info);
    free(batch);
}

static void put_file(struct io_vfs *vfs, const char *path, struct ron_buf *bytes) RON_BLOCKS
{
    struct ron_errinfo info = {0};

    must(ron_buf_check(bytes, &info), &info);
    must(io_durable_replace(vfs, path, ron_buf_slice(bytes), &info), &info);
    ron_buf_reset(bytes);
}

/* The checkpoint, signed by the log and cosigned by a witness. */
static void put_note(struct ron_buf *out, struct ledger_tree *tree,
                     const struct io_signer *witness) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct ron_note note;
    struct ron_buf signed_note;

    ron_buf_init(&signed_note, RON_NOTE_SIZE_MAX);
    must(ledger_tree_checkpoint(tree, &signed_note, NULL, &info), &info);
    must(ron_note_parse(ron_buf_slice(&signed_note), &note, &info), &info);
    ron_buf_put(out, signed_note.data, signed_note.size);
    io_note_put_cosignature(out, note.text, witness, 1679315147);
    ron_buf_fini(&signed_note);
}

/* As the ledger answers it, and with extra data under the cosigned note. */
static void put_samples(struct io_vfs *vfs, struct ledger_tree *tree,
                        struct ron_slice note) RON_BLOCKS
{
    const uint64_t size = ledger_tree_size(tree), index = size * 2 / 3;
    struct io_proof_text text = {.extra = RON_SLICE("extra"), .index = index, .note = note};
    struct ron_errinfo info = {0};
    struct io_tlog_proof proof;
    struct ron_buf out;

    ron_buf_init(&out, RON_NOTE_SIZE_MAX);
    must(ledger_tree_proof_text(tree, index + 1, &out, &info), &info);
    put_file(vfs, "sample.tlog-proof", &out);
    must(io_tlog_inclusion(ledger_tree_log(tree), index, size, &proof, &info), &info);
    text.hashes = proof.hashes;
    text.hashes_count = proof.hashes_count;
    io_proof_put(&out, &text);
    put_file(vfs, "extra.tlog-proof", &out);
    must(put_entry(NULL, index, &out, &info), &info);
    put_file(vfs, "sample.leaf", &out);
    ron_buf_fini(&out);
}

static void run(const char *dir, uint64_t size, uint64_t count) RON_BLOCKS
{
    struct ledger_tree_options options = {
        .dir = "tiles", .key = "log-key", .origin = "example.com/ron-log"};
    struct io_tlog_export_options export = {.dir = "log", .size = size, .entry = put_entry};
    struct ron_errinfo info = {0};
    struct ron_secret witness_seed = {0};
    struct io_signer witness = {RON_SLICE("witness.example/w1"), &witness_seed};
    struct ledger_tree *tree = NULL;
    struct io_tlog *tlog;
    struct io_vfs *vfs = NULL;
    struct ron_buf note, out;

    ron_buf_init(&note, RON_NOTE_SIZE_MAX);
    ron_buf_init(&out, PROOFS_SIZE_MAX);
    must(io_vfs_posix_new(dir, true, &vfs, &info), &info);
    must(ron_secret_init_random(&witness_seed, RON_ED25519_SEED_SIZE, &info), &info);
    options.vfs = export.vfs = vfs;
    must(ledger_tree_open(&options, &tree, &info), &info);
    tlog = ledger_tree_log(tree);
    grow(tree, size);
    put_note(&note, tree, &witness);
    must(ron_buf_check(&note, &info), &info);
    export.note = ron_buf_slice(&note);
    must(io_tlog_export(tlog, &export, &info), &info);
    must(io_tlog_export(tlog, &export, &info), &info); /* again: goes on where it ended */
    put_proofs(&out, tlog, count);
    put_file(vfs, "proofs", &out);
    ron_buf_put_text(&out, ledger_tree_vkey(tree));
    put_file(vfs, "vkey", &out);
    io_vkey_put(&out, &witness, RON_KEY_COSIGNATURE);
    put_file(vfs, "witness", &out);
    put_samples(vfs, tree, ron_buf_slice(&note));
    tree = ledger_tree_free(tree);
    ron_secret_fini(&witness_seed);
    ron_buf_fini(&note);
    ron_buf_fini(&out);
    vfs = io_vfs_free(vfs);
}

int main(int argc, char **argv) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    uint64_t size, count;

    if (argc != 4) {
        fprintf(stderr, "usage: tlog_driver DIR SIZE COUNT\n");
        return 2;
    }
    rt_init();
    must(ron_decimal_parse_u64(ron_slice_text(argv[2]), &size, &info), &info);
    must(ron_decimal_parse_u64(ron_slice_text(argv[3]), &count, &info), &info);
    run(argv[1], size, count);
    return 0;
}
