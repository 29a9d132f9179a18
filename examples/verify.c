/*
 * verify.c - check a proof of inclusion with ron/verify.h alone.
 *
 * usage: verify VKEY PROOF LEAF - three files: the log's public key, the text of a proof
 * (c2sp.org/tlog-proof@v1) and the bytes of the leaf. Exit status 0 if the leaf is in the log.
 *
 *     cc -Iinclude examples/verify.c ... libron_verify.a libbase.a -lsodium -lcrypto
 */
#include <stdio.h>

#include "ron/verify.h"

static uint8_t memory[3][1 << 19];

static struct ron_slice load(const char *path, uint8_t *bytes)
{
    struct ron_slice slice = {bytes, 0};
    FILE *file = fopen(path, "rb");

    if (file == NULL) {
        perror(path);
        return slice;
    }
    slice.size = fread(bytes, 1, sizeof(memory[0]), file);
    fclose(file);
    return slice;
}

int main(int argc, char **argv)
{
    struct ron_errinfo info = {0};
    struct ron_checkpoint checkpoint;
    struct ron_slice leaf;
    struct ron_sha256 hash;
    struct ron_vkey key;
    struct ron_trust trust = {.log = &key};
    uint64_t index;

    if (argc != 4) {
        fprintf(stderr, "usage: verify VKEY PROOF LEAF\n");
        return 2;
    }
    leaf = load(argv[3], memory[2]);
    hash = ron_verify_leaf_hash(leaf.data, leaf.size);
    if (ron_vkey_parse(load(argv[1], memory[0]), &key, &info) != RON_ERR_OK ||
        ron_verify_proof(load(argv[2], memory[1]), &hash, &trust, &index, &checkpoint, &info) !=
            RON_ERR_OK) {
        fprintf(stderr, "not proven: %s: %s\n", ron_err_name(info.err), info.message);
        return 1;
    }
    printf("leaf %llu of %llu in %.*s\n", (unsigned long long)index,
           (unsigned long long)checkpoint.tree.size, (int)checkpoint.origin.size,
           (const char *)checkpoint.origin.data);
    return 0;
}
