/*
 * b3_ids.c - ids of many messages of one block side by side: a message to each lane of a vector,
 * eight with AVX2, sixteen with AVX-512. See b3.h.
 *
 * The official implementation hashes many inputs at once only if they are whole blocks, which ids
 * never are; one at a time costs it more for the way there than for the block.
 */
#include "base/assert.h"
#include "base/b3.h"

enum { WORDS_COUNT = 16, FLAGS = 1 | 2 | 8 /* CHUNK_START, CHUNK_END, ROOT */ };

static void ids_by_one(const struct ron_b3_block *blocks, size_t count, size_t size,
                       uint8_t (*ret_ids)[RON_B3_ID_SIZE])
{
    for (size_t i = 0; i < count; i++) {
        struct ron_b3_ctx ctx;

        ron_b3_init(&ctx);
        ron_b3_update(&ctx, blocks[i].bytes, size);
        blake3_hasher_finalize(&ctx.hasher, ret_ids[i], RON_B3_ID_SIZE);
    }
}

#if defined(__x86_64__)
#include <immintrin.h>

static const uint32_t start_words[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

/* The compression of the specification, chapter 2.2, in words that fit every width: V names an
 * instruction of it, ROTATE turns each lane to the right. Written out, because the words stay in
 * registers only if every index is a constant, at -O2 too. */
#define G(a, b, c, d, x, y)                              \
    v[a] = V(add_epi32)(V(add_epi32)(v[a], v[b]), m[x]); \
    v[d] = ROTATE(v[d] ^ v[a], 16);                      \
    v[c] = V(add_epi32)(v[c], v[d]);                     \
    v[b] = ROTATE(v[b] ^ v[c], 12);                      \
    v[a] = V(add_epi32)(V(add_epi32)(v[a], v[b]), m[y]); \
    v[d] = ROTATE(v[d] ^ v[a], 8);                       \
    v[c] = V(add_epi32)(v[c], v[d]);                     \
    v[b] = ROTATE(v[b] ^ v[c], 7);
/* Columns, then diagonals; the words of the message in the order of the round. */
#define ROUND(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15) \
    G(0, 4, 8, 12, m0, m1)                                                          \
    G(1, 5, 9, 13, m2, m3)                                                          \
    G(2, 6, 10, 14, m4, m5)                                                         \
    G(3, 7, 11, 15, m6, m7)                                                         \
    G(0, 5, 10, 15, m8, m9)                                                         \
    G(1, 6, 11, 12, m10, m11)                                                       \
    G(2, 7, 8, 13, m12, m13)                                                        \
    G(3, 4, 9, 14, m14, m15)
#define SEVEN_ROUNDS                                            \
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) \
    ROUND(2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8) \
    ROUND(3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1) \
    ROUND(10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6) \
    ROUND(12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4) \
    ROUND(9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7) \
    ROUND(11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13)

/* Four rows of which each 16 bytes are four words of one message, to four words of which each lane
 * is one message; and back. */
#define TRANSPOSE(type, from, to)                                 \
    do {                                                          \
        const type low_01 = V(unpacklo_epi32)(from[0], from[1]);  \
        const type high_01 = V(unpackhi_epi32)(from[0], from[1]); \
        const type low_23 = V(unpacklo_epi32)(from[2], from[3]);  \
        const type high_23 = V(unpackhi_epi32)(from[2], from[3]); \
                                                                  \
        (to)[0] = V(unpacklo_epi64)(low_01, low_23);              \
        (to)[1] = V(unpackhi_epi64)(low_01, low_23);              \
        (to)[2] = V(unpacklo_epi64)(high_01, high_23);            \
        (to)[3] = V(unpackhi_epi64)(high_01, high_23);            \
    } while (0)

/* From the words of the messages, m, to the first four of the hashes, hash. The counter is zero. */
#define COMPRESS(type, size)                               \
    do {                                                   \
        type v[WORDS_COUNT];                               \
                                                           \
        for (size_t i = 0; i < 8; i++)                     \
            v[i] = V(set1_epi32)((int)start_words[i]);     \
        for (size_t i = 0; i < 4; i++)                     \
            v[8 + i] = V(set1_epi32)((int)start_words[i]); \
        v[12] = v[13] = V(set1_epi32)(0);                  \
        v[14] = V(set1_epi32)((int)(size));                \
        v[15] = V(set1_epi32)(FLAGS);                      \
        SEVEN_ROUNDS                                       \
        for (size_t i = 0; i < 4; i++)                     \
            hash[i] = v[i] ^ v[8 + i];                     \
    } while (0)

/* Of the messages' words: all bits but of those behind the end. */
struct masks {
    uint32_t words[WORDS_COUNT];
};

static struct masks masks_of(size_t size)
{
    struct masks masks;

    for (size_t i = 0; i < WORDS_COUNT; i++) {
        const size_t left = size > 4 * i ? size - 4 * i : 0;

        masks.words[i] = left >= 4 ? UINT32_MAX : (1u << (8 * left)) - 1;
    }
    return masks;
}

static inline __m128i load_16(const uint8_t *at)
{
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

/* `rows` are as many messages as there are lanes, ids as many hashes: 16 bytes of each. */

#define AVX2    __attribute__((target("avx2")))
#define V(name) _mm256_##name
#define ROTATE(x, n)                                    \
    ((n) == 16 || (n) == 8 ? rotate_bytes_8(x, (n) / 8) \
                           : V(or_si256)(V(srli_epi32)(x, n), V(slli_epi32)(x, 32 - (n))))

/* By whole bytes it is one instruction instead of three. */
AVX2 static inline __m256i rotate_bytes_8(__m256i x, int count)
{
    const __m256i by_one = V(setr_epi8)(1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12, 1, 2,
                                        3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12);
    const __m256i by_two = V(setr_epi8)(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13, 2, 3,
                                        0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);

    return V(shuffle_epi8)(x, count == 1 ? by_one : by_two);
}

static AVX2 void ids_8(const uint8_t *const *rows, size_t size, const struct masks *masks,
                       uint8_t (*ret_ids)[RON_B3_ID_SIZE])
{
    __m256i m[WORDS_COUNT];
    __m256i part[4];
    __m256i hash[4];

    for (size_t i = 0; i < WORDS_COUNT; i += 4) {
        for (size_t k = 0; k < 4; k++)
            part[k] = _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(rows[k] + 4 * i)),
                                              load_16(rows[k + 4] + 4 * i), 1);
        TRANSPOSE(__m256i, part, m + i);
    }
    for (size_t i = 0; i < WORDS_COUNT; i++)
        m[i] = V(and_si256)(m[i], V(set1_epi32)((int)masks->words[i]));
    COMPRESS(__m256i, size);
    TRANSPOSE(__m256i, hash, part);
    for (size_t k = 0; k < 4; k++) {
        _mm_storeu_si128((__m128i *)(void *)ret_ids[k], _mm256_castsi256_si128(part[k]));
        _mm_storeu_si128((__m128i *)(void *)ret_ids[k + 4], _mm256_extracti128_si256(part[k], 1));
    }
}

#undef V
#undef ROTATE
/* AddressSanitizer of gcc 12 puts these vectors where they are aligned to 32 bytes only. All places
 * in them are constants. */
#define AVX512  __attribute__((target("avx512f"), no_sanitize("address")))
#define V(name) _mm512_##name
#define ROTATE  _mm512_ror_epi32

static AVX512 void ids_16(const uint8_t *const *rows, size_t size, const struct masks *masks,
                          uint8_t (*ret_ids)[RON_B3_ID_SIZE])
{
    __m512i m[WORDS_COUNT];
    __m512i part[4];
    __m512i hash[4];

    for (size_t i = 0; i < WORDS_COUNT; i += 4) {
        for (size_t k = 0; k < 4; k++) {
            part[k] = _mm512_castsi128_si512(load_16(rows[k] + 4 * i));
            part[k] = _mm512_inserti32x4(part[k], load_16(rows[k + 4] + 4 * i), 1);
            part[k] = _mm512_inserti32x4(part[k], load_16(rows[k + 8] + 4 * i), 2);
            part[k] = _mm512_inserti32x4(part[k], load_16(rows[k + 12] + 4 * i), 3);
        }
        TRANSPOSE(__m512i, part, m + i);
    }
    for (size_t i = 0; i < WORDS_COUNT; i++)
        m[i] = V(and_si512)(m[i], V(set1_epi32)((int)masks->words[i]));
    COMPRESS(__m512i, size);
    TRANSPOSE(__m512i, hash, part);
    for (size_t k = 0; k < 4; k++) {
        _mm_storeu_si128((__m128i *)(void *)ret_ids[k], _mm512_castsi512_si128(part[k]));
        _mm_storeu_si128((__m128i *)(void *)ret_ids[k + 4], _mm512_extracti32x4_epi32(part[k], 1));
        _mm_storeu_si128((__m128i *)(void *)ret_ids[k + 8], _mm512_extracti32x4_epi32(part[k], 2));
        _mm_storeu_si128((__m128i *)(void *)ret_ids[k + 12], _mm512_extracti32x4_epi32(part[k], 3));
    }
}

/* Written before main and so before any thread. */
static unsigned lanes_count = 1;

static unsigned lanes_supported(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        return RON_B3_LANES_MAX;
    return __builtin_cpu_supports("avx2") ? RON_B3_LANES_MAX / 2 : 1;
}

__attribute__((constructor)) static void ids_choose(void)
{
    lanes_count = lanes_supported();
}

void ron_b3_use_lanes(unsigned count_max)
{
    RON_ASSERT(count_max > 0);
    lanes_count = lanes_supported();
    while (lanes_count > count_max)
        lanes_count = lanes_count == RON_B3_LANES_MAX ? RON_B3_LANES_MAX / 2 : 1;
    RON_ASSERT(lanes_count <= count_max);
}

/* One to each lane; what is left over of the last is done twice. */
static void ids_by_lanes(const struct ron_b3_block *blocks, size_t count, size_t size,
                         uint8_t (*ret_ids)[RON_B3_ID_SIZE])
{
    const struct masks masks = masks_of(size);

    for (size_t done = 0; done < count; done += lanes_count) {
        const size_t left = count - done;
        const size_t taken = left < lanes_count ? left : lanes_count;
        const uint8_t *rows[RON_B3_LANES_MAX];
        uint8_t ids[RON_B3_LANES_MAX][RON_B3_ID_SIZE];

        for (size_t i = 0; i < lanes_count; i++)
            rows[i] = blocks[done + (i < taken ? i : taken - 1)].bytes;
        if (lanes_count == RON_B3_LANES_MAX)
            ids_16(rows, size, &masks, ids);
        else
            ids_8(rows, size, &masks, ids);
        memcpy(ret_ids[done], ids, taken * RON_B3_ID_SIZE);
    }
}

#else

static const unsigned lanes_count = 1;

void ron_b3_use_lanes(unsigned count_max)
{
    RON_ASSERT(count_max > 0);
}

static void ids_by_lanes(const struct ron_b3_block *blocks, size_t count, size_t size,
                         uint8_t (*ret_ids)[RON_B3_ID_SIZE])
{
    ids_by_one(blocks, count, size, ret_ids);
}

#endif

unsigned ron_b3_lanes(void)
{
    return lanes_count;
}

void ron_b3_ids16(const struct ron_b3_block *blocks, size_t count, size_t size,
                  uint8_t (*ret_ids)[RON_B3_ID_SIZE])
{
    RON_ASSERT(size > 0);
    RON_ASSERT(size <= RON_B3_BLOCK_SIZE);
    if (count > 1 && lanes_count > 1)
        ids_by_lanes(blocks, count, size, ret_ids);
    else
        ids_by_one(blocks, count, size, ret_ids);
}
