/*
 * bench_hash.c - checksums and hashes: CRC-32C, BLAKE3, and the SHA-256 of Merkle leaves and nodes
 * against OpenSSL's interfaces. All contestants of a table are seen to agree before they run.
 */
#include <stdio.h>

/* The rivals include interfaces that OpenSSL 3 calls deprecated. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <openssl/evp.h>
#include <openssl/sha.h>

#include "base/assert.h"
#include "base/b3.h"
#include "base/crc32c.h"
#include "base/limits.h"
#include "base/merkle_hash.h"
#include "base/sha256_lanes.h"
#include "harness.h"

enum { DATA_SIZE = 1 << 20, BATCH_COUNT = 256 };

static uint8_t data[DATA_SIZE];

static void fill_data(void)
{
    uint64_t x = 1;

    for (size_t i = 0; i < sizeof(data); i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        data[i] = (uint8_t)(x >> 56);
    }
}

/* Checksums. The context is the size. */

static void run_crc(void *context, uint64_t rounds)
{
    const size_t size = *(const size_t *)context;

    for (uint64_t i = 0; i < rounds; i++) {
        uint32_t crc = ron_crc32c(0, data, size);

        BENCH_USE_VALUE(crc);
        BENCH_FORGET();
    }
}

static void run_crc_by_words(void *context, uint64_t rounds)
{
    const size_t size = *(const size_t *)context;

    for (uint64_t i = 0; i < rounds; i++) {
        uint32_t crc = ron_crc32c_by_words(0, data, size);

        BENCH_USE_VALUE(crc);
        BENCH_FORGET();
    }
}

static void run_crc_software(void *context, uint64_t rounds)
{
    const size_t size = *(const size_t *)context;

    for (uint64_t i = 0; i < rounds; i++) {
        uint32_t crc = ron_crc32c_software(0, data, size);

        BENCH_USE_VALUE(crc);
        BENCH_FORGET();
    }
}

static void bench_crc(const struct bench_options *options)
{
    static const size_t sizes[] = {64, 4096, DATA_SIZE};

    for (size_t i = 0; i < RON_ARRAY_COUNT(sizes); i++) {
        size_t size = sizes[i];
        char title[64];
        const struct bench_contestant contestants[] = {
            {.name = ron_crc32c_is_wide() ? "ron, VPCLMULQDQ" : "ron",
             .run = run_crc,
             .context = &size},
            {.name = ron_crc32c_is_hardware() ? "ron, SSE4.2" : "ron, no instruction",
             .run = run_crc_by_words,
             .context = &size},
            {.name = "ron, tables", .run = run_crc_software, .context = &size},
        };

        RON_ASSERT(ron_crc32c(0, data, size) == ron_crc32c_software(0, data, size));
        (void)snprintf(title, sizeof(title), "CRC-32C of %zu bytes", size);
        bench_compare(options, &(struct bench_table){.title = title,
                                                     .rival = "ron, tables",
                                                     .item_size = size,
                                                     .contestants = contestants,
                                                     .contestants_count = 3});
    }
}

static void run_b3(void *context, uint64_t rounds)
{
    const size_t size = *(const size_t *)context;

    for (uint64_t i = 0; i < rounds; i++) {
        struct ron_b3 hash = ron_b3(data, size);

        BENCH_USE(&hash);
    }
}

static void run_sha256(void *context, uint64_t rounds)
{
    const size_t size = *(const size_t *)context;

    for (uint64_t i = 0; i < rounds; i++) {
        struct ron_sha256 hash = ron_sha256(data, size);

        BENCH_USE(&hash);
    }
}

static void bench_b3(const struct bench_options *options)
{
    static const size_t sizes[] = {64, 1024, 16384};

    for (size_t i = 0; i < RON_ARRAY_COUNT(sizes); i++) {
        size_t size = sizes[i];
        char title[64];
        const struct bench_contestant contestants[] = {
            {.name = "ron, BLAKE3", .run = run_b3, .context = &size},
            {.name = "ron, SHA-256", .run = run_sha256, .context = &size},
        };

        (void)snprintf(title, sizeof(title), "BLAKE3 and SHA-256 of %zu bytes", size);
        bench_compare(options, &(struct bench_table){.title = title,
                                                     .rival = "ron, SHA-256",
                                                     .item_size = size,
                                                     .contestants = contestants,
                                                     .contestants_count = 2});
    }
}

/* Ids: as entries of a binary batch have them, 61 bytes each. The context is how many lanes. */

enum { ID_MESSAGE_SIZE = 61 };

static void run_ids(void *context, uint64_t rounds)
{
    const struct ron_b3_block *blocks = (const struct ron_b3_block *)data;
    uint8_t ids[RON_B3_LANES_MAX][RON_B3_ID_SIZE];

    ron_b3_use_lanes(*(const unsigned *)context);
    for (uint64_t i = 0; i < rounds; i++) {
        ron_b3_ids16(blocks, RON_B3_LANES_MAX, ID_MESSAGE_SIZE, ids);
        BENCH_USE(ids);
        BENCH_FORGET();
    }
    ron_b3_use_lanes(RON_B3_LANES_MAX);
}

static void bench_ids(const struct bench_options *options)
{
    unsigned lanes[] = {16, 8, 1};
    const struct bench_contestant contestants[] = {
        {"ron, up to 16 at once", run_ids, &lanes[0], RON_B3_LANES_MAX},
        {"ron, up to 8 at once", run_ids, &lanes[1], RON_B3_LANES_MAX},
        {"one by one", run_ids, &lanes[2], RON_B3_LANES_MAX},
    };

    bench_compare(options, &(struct bench_table){.title = "BLAKE3 ids of 61 bytes",
                                                 .rival = "one by one",
                                                 .item_size = ID_MESSAGE_SIZE,
                                                 .contestants = contestants,
                                                 .contestants_count = 3});
}

/* Merkle hashes. The rivals hash the same prefixed message, laid out beforehand. */

struct merkle {
    size_t size; /* of leaf or pair */
    uint8_t prefix;
    uint8_t message[1 + RON_ENTRY_SIZE];
    EVP_MD *evp;
    EVP_MD_CTX *evp_ctx;
    struct ron_sha256 hash;
    struct ron_sha256 hashes[BATCH_COUNT];
};

static void run_single(void *context, uint64_t rounds)
{
    struct merkle *m = context;

    for (uint64_t i = 0; i < rounds; i++) {
        m->hash = m->prefix == 0 ? ron_merkle_leaf(data, m->size)
                                 : ron_merkle_node((const struct ron_merkle_pair *)data);
        BENCH_USE(&m->hash);
    }
}

static void run_batch(void *context, uint64_t rounds)
{
    struct merkle *m = context;

    for (uint64_t i = 0; i < rounds; i++) {
        if (m->prefix == 0)
            ron_merkle_leaves(data, m->size, BATCH_COUNT, m->hashes);
        else
            ron_merkle_nodes((const struct ron_merkle_pair *)data, BATCH_COUNT, m->hashes);
        BENCH_USE(m->hashes);
    }
}

static void run_pairs(void *context, uint64_t rounds)
{
    ron_sha256_use_lanes(false);
    run_batch(context, rounds);
    ron_sha256_use_lanes(true);
}

static void run_openssl_one_shot(void *context, uint64_t rounds)
{
    struct merkle *m = context;

    for (uint64_t i = 0; i < rounds; i++) {
        (void)SHA256(m->message, 1 + m->size, m->hash.bytes);
        BENCH_USE(&m->hash);
    }
}

static void run_openssl_steps(void *context, uint64_t rounds)
{
    struct merkle *m = context;

    for (uint64_t i = 0; i < rounds; i++) {
        SHA256_CTX ctx;

        (void)SHA256_Init(&ctx);
        (void)SHA256_Update(&ctx, m->message, 1 + m->size);
        (void)SHA256_Final(m->hash.bytes, &ctx);
        BENCH_USE(&m->hash);
    }
}

static void run_openssl_evp(void *context, uint64_t rounds)
{
    struct merkle *m = context;

    for (uint64_t i = 0; i < rounds; i++) {
        (void)EVP_DigestInit_ex2(m->evp_ctx, m->evp, NULL);
        (void)EVP_DigestUpdate(m->evp_ctx, m->message, 1 + m->size);
        (void)EVP_DigestFinal_ex(m->evp_ctx, m->hash.bytes, NULL);
        BENCH_USE(&m->hash);
    }
}

static void bench_merkle(const struct bench_options *options, const char *title, uint8_t prefix,
                         size_t size)
{
    struct merkle m = {.size = size, .prefix = prefix};
    const struct bench_contestant contestants[] = {
        {.name = "ron, 256 at once", .run = run_batch, .context = &m, .items_count = BATCH_COUNT},
        {.name = "ron, 256 in pairs", .run = run_pairs, .context = &m, .items_count = BATCH_COUNT},
        {.name = "ron, one", .run = run_single, .context = &m},
        {.name = "OpenSSL SHA256_Init ...", .run = run_openssl_steps, .context = &m},
        {.name = "OpenSSL EVP, prefetched", .run = run_openssl_evp, .context = &m},
        {.name = "OpenSSL SHA256()", .run = run_openssl_one_shot, .context = &m},
    };
    struct ron_sha256 expected;

    RON_ASSERT(size < sizeof(m.message));
    m.message[0] = prefix;
    memcpy(m.message + 1, data, size);
    m.evp = EVP_MD_fetch(NULL, "SHA256", NULL);
    m.evp_ctx = EVP_MD_CTX_new();
    RON_ASSERT(m.evp != NULL);
    RON_ASSERT(m.evp_ctx != NULL);
    (void)SHA256(m.message, 1 + size, expected.bytes);
    for (size_t i = 0; i < RON_ARRAY_COUNT(contestants); i++) {
        const struct ron_sha256 *result = i < 2 ? &m.hashes[0] : &m.hash;

        memset(&m.hash, 0, sizeof(m.hash));
        contestants[i].run(&m, 1);
        RON_ASSERT(memcmp(result, &expected, sizeof(expected)) == 0);
    }
    bench_compare(options,
                  &(struct bench_table){.title = title,
                                        .rival = "OpenSSL SHA256_Init ...",
                                        .contestants = contestants,
                                        .contestants_count = RON_ARRAY_COUNT(contestants)});
    EVP_MD_CTX_free(m.evp_ctx);
    EVP_MD_free(m.evp);
}

int main(int argc, char **argv)
{
    struct bench_options options;

    if (!bench_begin(argc, argv, &options))
        return 2;
    fill_data();
    printf("SHA-256 by %s\n", ron_sha256_is_hardware() ? "SHA instructions" : "OpenSSL's blocks");
    bench_crc(&options);
    bench_b3(&options);
    bench_ids(&options);
    bench_merkle(&options, "RFC 6962 leaf of 128 bytes (129 hashed, 3 blocks)", 0, RON_ENTRY_SIZE);
    bench_merkle(&options, "RFC 6962 node (65 bytes hashed, 2 blocks)", 1,
                 sizeof(struct ron_merkle_pair));
    return 0;
}
