/*
 * sha256.c - padding and buffering of FIPS 180-4 over one of two block functions. See sha256.h.
 *
 * OpenSSL's own block function is fast, but its one-shot SHA256() fetches the algorithm by name on
 * every call, which costs more than hashing a leaf; and it cannot run two messages at once.
 */
#include "base/sha256.h"

/* SHA256_Transform is the only door to OpenSSL's block function; 3.0 calls it deprecated. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <openssl/sha.h>

#include "base/assert.h"

enum { LENGTH_SIZE = 8 }; /* of the bit count at the end of the padding */
#define SIZE_MAX_HASHED (UINT64_MAX / 8)

static const uint32_t start_words[8] = RON_SHA256_START;

/* FIPS 180-4, 4.2.2. */
const uint32_t ron_sha256_constants[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static void openssl_blocks(uint32_t words[static 8], const uint8_t *data, size_t blocks_count)
{
    SHA256_CTX ctx = {0};

    _Static_assert(sizeof(ctx.h) == 8 * sizeof(words[0]), "OpenSSL's words are 32 bits");
    memcpy(ctx.h, words, sizeof(ctx.h));
    for (; blocks_count > 0; blocks_count--, data += RON_SHA256_BLOCK_SIZE)
        SHA256_Transform(&ctx, data);
    memcpy(words, ctx.h, sizeof(ctx.h));
}

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#define TARGET    __attribute__((target("sha,sse4.1,ssse3")))
#define REGISTERS TARGET __attribute__((always_inline)) static inline

/* One message in registers. The instructions keep the working variables as two vectors, a b e f and
 * c d g h from the highest lane down; two rounds turn the second into the new first, and the old
 * first becomes the new second. w holds the last sixteen words of the message schedule. */
struct lane {
    __m128i abef;
    __m128i cdgh;
    __m128i abef_before; /* of the block under way */
    __m128i cdgh_before;
    __m128i w[4];
};

REGISTERS void lane_load(struct lane *lane, const uint32_t words[static 8])
{
    __m128i abcd = _mm_loadu_si128((const __m128i *)(const void *)words);
    __m128i efgh = _mm_loadu_si128((const __m128i *)(const void *)(words + 4));

    lane->abef = _mm_shuffle_epi32(_mm_unpacklo_epi64(abcd, efgh), 0x1b);
    lane->cdgh = _mm_shuffle_epi32(_mm_unpackhi_epi64(abcd, efgh), 0x1b);
}

REGISTERS void lane_store(const struct lane *lane, uint32_t words[static 8])
{
    __m128i abef = _mm_shuffle_epi32(lane->abef, 0x1b);
    __m128i cdgh = _mm_shuffle_epi32(lane->cdgh, 0x1b);

    _mm_storeu_si128((__m128i *)(void *)words, _mm_unpacklo_epi64(abef, cdgh));
    _mm_storeu_si128((__m128i *)(void *)(words + 4), _mm_unpackhi_epi64(abef, cdgh));
}

/* Sixteen message bytes as four big-endian words. */
REGISTERS __m128i load_words(const uint8_t *data)
{
    const __m128i swap = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);

    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)data), swap);
}

/* Four rounds with the schedule words w[q], whose round constants start at k. */
REGISTERS void four_rounds(struct lane *lane, int q, const uint32_t *k)
{
    __m128i wk = _mm_add_epi32(lane->w[q], _mm_load_si128((const __m128i *)(const void *)k));

    lane->cdgh = _mm_sha256rnds2_epu32(lane->cdgh, lane->abef, wk);
    lane->abef = _mm_sha256rnds2_epu32(lane->abef, lane->cdgh, _mm_shuffle_epi32(wk, 0x0e));
}

/* Replace w[q], the oldest four words, by the next four: s0 of t-15 and t-16, t-7, s1 of t-2. */
REGISTERS void next_words(struct lane *lane, int q)
{
    __m128i w1 = lane->w[(q + 1) & 3];
    __m128i w2 = lane->w[(q + 2) & 3];
    __m128i w3 = lane->w[(q + 3) & 3];
    __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(lane->w[q], w1), _mm_alignr_epi8(w3, w2, 4));

    lane->w[q] = _mm_sha256msg2_epu32(sum, w3);
}

/* Sixteen rounds on each lane, after renewing the words unless these are the first sixteen. Written
 * out, because the words stay in registers only if every index is a constant, at -O2 too. */
REGISTERS void sixteen_rounds(struct lane *one, struct lane *two, const uint32_t *k, bool renew)
{
#define FOUR(q)                       \
    if (renew)                        \
        next_words(one, q);           \
    if (renew && two != NULL)         \
        next_words(two, q);           \
    four_rounds(one, q, k + 4 * (q)); \
    if (two != NULL)                  \
        four_rounds(two, q, k + 4 * (q));
    FOUR(0)
    FOUR(1)
    FOUR(2)
    FOUR(3)
#undef FOUR
}

REGISTERS void lane_take(struct lane *lane, const uint8_t *block)
{
    lane->abef_before = lane->abef;
    lane->cdgh_before = lane->cdgh;
    lane->w[0] = load_words(block);
    lane->w[1] = load_words(block + 16);
    lane->w[2] = load_words(block + 32);
    lane->w[3] = load_words(block + 48);
}

/* The 64 rounds of one block in each lane; two may be NULL. */
REGISTERS void compress(struct lane *one, struct lane *two)
{
    sixteen_rounds(one, two, ron_sha256_constants, false);
    sixteen_rounds(one, two, ron_sha256_constants + 16, true);
    sixteen_rounds(one, two, ron_sha256_constants + 32, true);
    sixteen_rounds(one, two, ron_sha256_constants + 48, true);
}

REGISTERS void lane_add(struct lane *lane)
{
    lane->abef = _mm_add_epi32(lane->abef, lane->abef_before);
    lane->cdgh = _mm_add_epi32(lane->cdgh, lane->cdgh_before);
}

TARGET static void hardware_blocks(uint32_t words[static 8], const uint8_t *data,
                                   size_t blocks_count)
{
    struct lane lane;

    lane_load(&lane, words);
    for (; blocks_count > 0; blocks_count--, data += RON_SHA256_BLOCK_SIZE) {
        lane_take(&lane, data);
        compress(&lane, NULL);
        lane_add(&lane);
    }
    lane_store(&lane, words);
}

TARGET static void hardware_blocks_two(uint32_t words[static 2][8],
                                       const uint8_t *const data[static 2], size_t blocks_count)
{
    struct lane one;
    struct lane two;

    lane_load(&one, words[0]);
    lane_load(&two, words[1]);
    for (size_t i = 0; i < blocks_count; i++) {
        lane_take(&one, data[0] + i * RON_SHA256_BLOCK_SIZE);
        lane_take(&two, data[1] + i * RON_SHA256_BLOCK_SIZE);
        compress(&one, &two);
        lane_add(&one);
        lane_add(&two);
    }
    lane_store(&one, words[0]);
    lane_store(&two, words[1]);
}

static bool hardware_is_there(void)
{
    const unsigned sha = 1u << 29; /* CPUID 7.0 EBX; gcc 12 has no name for it */
    unsigned a, b, c, d;

    __builtin_cpu_init();
    return __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("ssse3") &&
           __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & sha) != 0;
}

#else

static bool hardware_is_there(void)
{
    return false;
}

static void hardware_blocks(uint32_t words[static 8], const uint8_t *data, size_t blocks_count)
{
    (void)words, (void)data, (void)blocks_count;
    RON_UNREACHABLE();
}

static void hardware_blocks_two(uint32_t words[static 2][8], const uint8_t *const data[static 2],
                                size_t blocks_count)
{
    (void)words, (void)data, (void)blocks_count;
    RON_UNREACHABLE();
}

#endif

/* Written once, before main and so before any thread; OpenSSL serves until then. */
static bool hardware;

__attribute__((constructor)) static void sha256_choose(void)
{
    hardware = hardware_is_there();
}

bool ron_sha256_is_hardware(void)
{
    return hardware;
}

void ron_sha256_use_hardware(bool wanted)
{
    hardware = wanted && hardware_is_there();
}

void ron_sha256_blocks(uint32_t words[static 8], const uint8_t *data, size_t blocks_count)
{
    RON_ASSERT(data != NULL || blocks_count == 0);
    if (RON_LIKELY(hardware))
        hardware_blocks(words, data, blocks_count);
    else
        openssl_blocks(words, data, blocks_count);
}

void ron_sha256_blocks_two(uint32_t words[static 2][8], const uint8_t *const data[static 2],
                           size_t blocks_count)
{
    if (RON_LIKELY(hardware)) {
        hardware_blocks_two(words, data, blocks_count);
    } else {
        openssl_blocks(words[0], data[0], blocks_count);
        openssl_blocks(words[1], data[1], blocks_count);
    }
}

void ron_sha256_init(struct ron_sha256_ctx *ctx)
{
    memcpy(ctx->words, start_words, sizeof(start_words));
    ctx->size = 0;
}

void ron_sha256_update(struct ron_sha256_ctx *ctx, const void *data, size_t size)
{
    const uint8_t *p = data;
    size_t waiting = ctx->size % RON_SHA256_BLOCK_SIZE;
    size_t room = RON_SHA256_BLOCK_SIZE - waiting;

    RON_ASSERT(data != NULL || size == 0);
    RON_ASSERT(size <= SIZE_MAX_HASHED - ctx->size);
    ctx->size += size;
    if (size < room) {
        if (size > 0)
            memcpy(ctx->block + waiting, p, size);
        return;
    }
    if (waiting > 0) {
        memcpy(ctx->block + waiting, p, room);
        ron_sha256_blocks(ctx->words, ctx->block, 1);
        p += room;
        size -= room;
    }
    ron_sha256_blocks(ctx->words, p, size / RON_SHA256_BLOCK_SIZE);
    memcpy(ctx->block, p + size / RON_SHA256_BLOCK_SIZE * RON_SHA256_BLOCK_SIZE,
           size % RON_SHA256_BLOCK_SIZE);
}

/* Append 0x80, zeros and the bit count to the waiting_size bytes at the start of tail; total_size
 * is that of the whole message. Returns the number of blocks, 1 or 2. */
static size_t tail_pad(uint8_t tail[static 2 * RON_SHA256_BLOCK_SIZE], size_t waiting_size,
                       uint64_t total_size)
{
    size_t blocks_count = waiting_size + 1 + LENGTH_SIZE <= RON_SHA256_BLOCK_SIZE ? 1 : 2;
    size_t end = blocks_count * RON_SHA256_BLOCK_SIZE;

    RON_ASSERT(waiting_size == total_size % RON_SHA256_BLOCK_SIZE);
    tail[waiting_size] = 0x80;
    memset(tail + waiting_size + 1, 0, end - LENGTH_SIZE - waiting_size - 1);
    ron_store_be64(tail + end - LENGTH_SIZE, total_size * 8);
    return blocks_count;
}

struct ron_sha256 ron_sha256_final(struct ron_sha256_ctx *ctx)
{
    uint8_t tail[2 * RON_SHA256_BLOCK_SIZE];
    struct ron_sha256 digest;
    size_t waiting = ctx->size % RON_SHA256_BLOCK_SIZE;

    memcpy(tail, ctx->block, waiting);
    ron_sha256_blocks(ctx->words, tail, tail_pad(tail, waiting, ctx->size));
    ron_sha256_store(&digest, ctx->words);
    return digest;
}

struct ron_sha256 ron_sha256(const void *data, size_t size)
{
    struct ron_sha256_ctx ctx;

    ron_sha256_init(&ctx);
    ron_sha256_update(&ctx, data, size);
    return ron_sha256_final(&ctx);
}

void ron_sha256_two(const uint8_t *const data[static 2], size_t size,
                    struct ron_sha256 ret_digests[static 2])
{
    uint8_t tails[2][2 * RON_SHA256_BLOCK_SIZE];
    uint32_t words[2][8];
    size_t whole_size = size - size % RON_SHA256_BLOCK_SIZE;
    size_t tail_blocks = 0;

    RON_ASSERT(data[0] != NULL);
    RON_ASSERT(data[1] != NULL);
    for (size_t i = 0; i < 2; i++) {
        memcpy(words[i], start_words, sizeof(start_words));
        memcpy(tails[i], data[i] + whole_size, size - whole_size);
        tail_blocks = tail_pad(tails[i], size - whole_size, size);
    }
    ron_sha256_blocks_two(words, data, whole_size / RON_SHA256_BLOCK_SIZE);
    ron_sha256_blocks_two(words, (const uint8_t *const[2]){tails[0], tails[1]}, tail_blocks);
    ron_sha256_store(&ret_digests[0], words[0]);
    ron_sha256_store(&ret_digests[1], words[1]);
}
