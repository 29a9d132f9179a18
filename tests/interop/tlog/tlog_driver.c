/*
 * tlog_driver.c - a log made by ron, for strangers to check: DIR/log is the static layout of
 * c2sp.org/tlog-tiles, beside it vkey, witness (key of a cosigner), proofs (lines of hex) and
 * sample.tlog-proof with its leaf.
 *
 * usage: tlog_driver DIR SIZE COUNT - DIR must be empty; COUNT proofs of each kind
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/decimal.h"
#include "base/ed25519.h"
#include "base/hex.h"
#include "io/durable.h"
#include "io/log_key.h"
#include "io/tlog.h"

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

static void grow(struct io_tlog *tlog, uint64_t size) RON_BLOCKS
{
    struct ron_errinfo info = {0};

    for (uint64_t i = 0; i < size; i++) {
        struct ron_sha256 leaf = leaf_at(i);

        must(io_tlog_append(tlog, &leaf, 1, &info), &info);
        if (i % 1000 == 999)
            must(io_tlog_flush(tlog, &info), &info);
    }
    must(io_tlog_sync(tlog, &info), &info);
}

static void put_file(struct io_vfs *vfs, const char *path, struct ron_buf *bytes) RON_BLOCKS
{
    struct ron_errinfo info = {0};

    must(ron_buf_check(bytes, &info), &info);
    must(io_durable_replace(vfs, path, ron_buf_slice(bytes), &info), &info);
    ron_buf_reset(bytes);
}

/* The checkpoint, signed by the log and cosigned by a witness. */
static void put_note(struct ron_buf *note, struct io_tlog *tlog, const struct io_log_key *key,
                     const struct io_signer *witness) RON_BLOCKS
{
    struct io_signer log = io_log_key_signer(key);
    struct ron_checkpoint checkpoint = {.origin = log.name};
    struct ron_errinfo info = {0};
    struct ron_buf text;

    ron_buf_init(&text, RON_CHECKPOINT_SIZE_MAX);
    checkpoint.tree.size = io_tlog_size(tlog);
    must(io_tlog_root(tlog, checkpoint.tree.size, &checkpoint.tree.root, &info), &info);
    io_checkpoint_put(&text, &checkpoint);
    io_note_put(note, ron_buf_slice(&text), &log);
    io_note_put_cosignature(note, ron_buf_slice(&text), witness, 1679315147);
    ron_buf_fini(&text);
}

static void put_sample(struct io_vfs *vfs, struct io_tlog *tlog, struct ron_slice note) RON_BLOCKS
{
    struct io_proof_text text = {.extra = RON_SLICE("extra"), .note = note};
    struct ron_errinfo info = {0};
    struct io_tlog_proof proof;
    struct ron_buf out;

    ron_buf_init(&out, RON_NOTE_SIZE_MAX);
    text.index = io_tlog_size(tlog) * 2 / 3;
    must(io_tlog_inclusion(tlog, text.index, io_tlog_size(tlog), &proof, &info), &info);
    text.hashes = proof.hashes;
    text.hashes_count = proof.hashes_count;
    io_proof_put(&out, &text);
    put_file(vfs, "sample.tlog-proof", &out);
    must(put_entry(NULL, text.index, &out, &info), &info);
    put_file(vfs, "sample.leaf", &out);
    ron_buf_fini(&out);
}

static void run(const char *dir, uint64_t size, uint64_t count) RON_BLOCKS
{
    struct io_tlog_options options = {.dir = "tiles"};
    struct io_tlog_export_options export = {.dir = "log", .size = size, .entry = put_entry};
    struct ron_errinfo info = {0};
    struct ron_secret witness_seed = {0};
    struct io_signer witness = {RON_SLICE("witness.example/w1"), &witness_seed};
    struct io_log_key *key = NULL;
    struct io_tlog *tlog = NULL;
    struct io_vfs *vfs = NULL;
    struct ron_buf note, out;

    ron_buf_init(&note, RON_NOTE_SIZE_MAX);
    ron_buf_init(&out, PROOFS_SIZE_MAX);
    must(io_vfs_posix_new(dir, true, &vfs, &info), &info);
    must(io_log_key_load_or_make(vfs, "log-key", RON_SLICE("example.com/ron-log"), &key, &info),
         &info);
    must(ron_secret_init_random(&witness_seed, RON_ED25519_SEED_SIZE, &info), &info);
    options.vfs = export.vfs = vfs;
    must(io_tlog_open(&options, &tlog, &info), &info);
    grow(tlog, size);
    put_note(&note, tlog, key, &witness);
    must(ron_buf_check(&note, &info), &info);
    export.note = ron_buf_slice(&note);
    must(io_tlog_export(tlog, &export, &info), &info);
    must(io_tlog_export(tlog, &export, &info), &info); /* again: goes on where it ended */
    put_proofs(&out, tlog, count);
    put_file(vfs, "proofs", &out);
    ron_buf_put_text(&out, io_log_key_vkey(key));
    put_file(vfs, "vkey", &out);
    io_vkey_put(&out, &witness, RON_KEY_COSIGNATURE);
    put_file(vfs, "witness", &out);
    put_sample(vfs, tlog, ron_buf_slice(&note));
    tlog = io_tlog_free(tlog);
    key = io_log_key_free(key);
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
    must(ron_decimal_parse_u64(ron_slice_text(argv[2]), &size, &info), &info);
    must(ron_decimal_parse_u64(ron_slice_text(argv[3]), &count, &info), &info);
    run(argv[1], size, count);
    return 0;
}
