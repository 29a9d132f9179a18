/*
 * sha256_lanes.c - see sha256_lanes.h. FIPS 180-4 as it stands, every word a vector of sixteen.
 */
#include "base/sha256_lanes.h"

#include "base/assert.h"

#if defined(__x86_64__)
#include <immintrin.h>

/* AddressSanitizer of gcc 12 puts these vectors where they are aligned to 32 bytes only. All places
 * in them are constants; messages are read by whole blocks, as their callers have them. */
#define TARGET    __attribute__((target("avx512f,avx512bw"), no_sanitize("address")))
#define REGISTERS TARGET __attribute__((always_inline)) static inline

/* Which of eight bits is the result, by the bits of three operands (the instruction's table). */
enum { XOR_OF_THREE = 0x96, CHOICE = 0xca, MAJORITY = 0xe8 };

REGISTERS __m512i xor3(__m512i a, __m512i b, __m512i c)
{
    return _mm512_ternarylogic_epi32(a, b, c, XOR_OF_THREE);
}

/* Words of both byte orders, each in its place. */
REGISTERS __m512i swap_bytes(__m512i words)
{
    const __m512i order = _mm512_set4_epi32(0x0c0d0e0f, 0x08090a0b, 0x04050607, 0x00010203);

    return _mm512_shuffle_epi8(words, order);
}

/* Sixteen rows of sixteen words become sixteen columns. */
REGISTERS void transpose(__m512i w[static 16])
{
    __m512i t[16];

#define TWO_BY_TWO(i)                                               \
    t[2 * (i)] = _mm512_unpacklo_epi32(w[2 * (i)], w[2 * (i) + 1]); \
    t[2 * (i) + 1] = _mm512_unpackhi_epi32(w[2 * (i)], w[2 * (i) + 1]);
    TWO_BY_TWO(0)
    TWO_BY_TWO(1)
    TWO_BY_TWO(2)
    TWO_BY_TWO(3)
    TWO_BY_TWO(4)
    TWO_BY_TWO(5)
    TWO_BY_TWO(6)
    TWO_BY_TWO(7)
#undef TWO_BY_TWO
#define FOUR_BY_FOUR(i)                                                     \
    w[4 * (i)] = _mm512_unpacklo_epi64(t[4 * (i)], t[4 * (i) + 2]);         \
    w[4 * (i) + 1] = _mm512_unpackhi_epi64(t[4 * (i)], t[4 * (i) + 2]);     \
    w[4 * (i) + 2] = _mm512_unpacklo_epi64(t[4 * (i) + 1], t[4 * (i) + 3]); \
    w[4 * (i) + 3] = _mm512_unpackhi_epi64(t[4 * (i) + 1], t[4 * (i) + 3]);
    FOUR_BY_FOUR(0)
    FOUR_BY_FOUR(1)
    FOUR_BY_FOUR(2)
    FOUR_BY_FOUR(3)
#undef FOUR_BY_FOUR
    /* Quarters: of rows 0..3, 4..7, 8..11, 12..15 the same quarter comes together. */
#define QUARTERS(i)                                                   \
    t[(i)] = _mm512_shuffle_i32x4(w[(i)], w[(i) + 4], 0x88);          \
    t[(i) + 4] = _mm512_shuffle_i32x4(w[(i)], w[(i) + 4], 0xdd);      \
    t[(i) + 8] = _mm512_shuffle_i32x4(w[(i) + 8], w[(i) + 12], 0x88); \
    t[(i) + 12] = _mm512_shuffle_i32x4(w[(i) + 8], w[(i) + 12], 0xdd);
    QUARTERS(0)
    QUARTERS(1)
    QUARTERS(2)
    QUARTERS(3)
#undef QUARTERS
#define COLUMNS(i)                                                    \
    w[(i)] = _mm512_shuffle_i32x4(t[(i)], t[(i) + 8], 0x88);          \
    w[(i) + 8] = _mm512_shuffle_i32x4(t[(i)], t[(i) + 8], 0xdd);      \
    w[(i) + 4] = _mm512_shuffle_i32x4(t[(i) + 4], t[(i) + 12], 0x88); \
    w[(i) + 12] = _mm512_shuffle_i32x4(t[(i) + 4], t[(i) + 12], 0xdd);
    COLUMNS(0)
    COLUMNS(1)
    COLUMNS(2)
    COLUMNS(3)
#undef COLUMNS
}

/* The next word of the schedule, in the place of the one sixteen before (6.2.2). */
REGISTERS __m512i next_word(const __m512i w[static 16], unsigned t)
{
    const __m512i w2 = w[(t + 14) & 15], w15 = w[(t + 1) & 15];
    const __m512i s0 = xor3(_mm512_ror_epi32(w15, 7), _mm512_ror_epi32(w15, 18),
                            _mm512_srli_epi32(w15, 3));
    const __m512i s1 = xor3(_mm512_ror_epi32(w2, 17), _mm512_ror_epi32(w2, 19),
                            _mm512_srli_epi32(w2, 10));

    return _mm512_add_epi32(_mm512_add_epi32(w[t & 15], s0), _mm512_add_epi32(w[(t + 9) & 15], s1));
}

/* One round; the caller renames the variables. d becomes the new e, h the new a. */
REGISTERS void one_round(const __m512i abc[static 3], __m512i *d, const __m512i efg[static 3],
                         __m512i *h, __m512i wk)
{
    const __m512i a = abc[0], e = efg[0];
    const __m512i s1 = xor3(_mm512_ror_epi32(e, 6), _mm512_ror_epi32(e, 11),
                            _mm512_ror_epi32(e, 25));
    const __m512i s0 = xor3(_mm512_ror_epi32(a, 2), _mm512_ror_epi32(a, 13),
                            _mm512_ror_epi32(a, 22));
    const __m512i chosen = _mm512_ternarylogic_epi32(e, efg[1], efg[2], CHOICE);
    const __m512i most = _mm512_ternarylogic_epi32(a, abc[1], abc[2], MAJORITY);
    const __m512i t1 = _mm512_add_epi32(_mm512_add_epi32(*h, wk), _mm512_add_epi32(s1, chosen));

    *d = _mm512_add_epi32(*d, t1);
    *h = _mm512_add_epi32(t1, _mm512_add_epi32(s0, most));
}

/* Written out, because all stays in registers only if every index is a constant. */
REGISTERS void sixteen_rounds(__m512i v[static 8], __m512i w[static 16], const uint32_t *k,
                              bool renew)
{
#define ROUND(t)                                                                           \
    if (renew)                                                                             \
        w[t] = next_word(w, t);                                                            \
    one_round((const __m512i[3]){v[(16 - (t)) & 7], v[(17 - (t)) & 7], v[(18 - (t)) & 7]}, \
              &v[(19 - (t)) & 7],                                                          \
              (const __m512i[3]){v[(20 - (t)) & 7], v[(21 - (t)) & 7], v[(22 - (t)) & 7]}, \
              &v[(23 - (t)) & 7], _mm512_add_epi32(w[t], _mm512_set1_epi32((int)k[t])));
    ROUND(0)
    ROUND(1)
    ROUND(2)
    ROUND(3)
    ROUND(4)
    ROUND(5)
    ROUND(6)
    ROUND(7)
    ROUND(8)
    ROUND(9)
    ROUND(10)
    ROUND(11)
    ROUND(12)
    ROUND(13)
    ROUND(14)
    ROUND(15)
#undef ROUND
}

REGISTERS void take_block(__m512i w[static 16],
                          const uint8_t *const messages[static RON_SHA256_LANES], size_t offset)
{
#define TAKE(i) w[i] = swap_bytes(_mm512_loadu_si512(messages[i] + offset));
    TAKE(0)
    TAKE(1)
    TAKE(2)
    TAKE(3)
    TAKE(4)
    TAKE(5)
    TAKE(6)
    TAKE(7)
    TAKE(8)
    TAKE(9)
    TAKE(10)
    TAKE(11)
    TAKE(12)
    TAKE(13)
    TAKE(14)
    TAKE(15)
#undef TAKE
    transpose(w);
}

/* The words of sixteen states as sixteen digests. */
REGISTERS void give_digests(const __m512i v[static 8],
                            struct ron_sha256 ret_digests[static RON_SHA256_LANES])
{
    __m512i w[16];

#define WORDS(i)             \
    w[i] = swap_bytes(v[i]); \
    w[(i) + 8] = _mm512_setzero_si512();
    WORDS(0)
    WORDS(1)
    WORDS(2)
    WORDS(3)
    WORDS(4)
    WORDS(5)
    WORDS(6)
    WORDS(7)
#undef WORDS
    transpose(w);
    for (unsigned lane = 0; lane < RON_SHA256_LANES; lane++)
        _mm256_storeu_si256((__m256i *)(void *)ret_digests[lane].bytes,
                            _mm512_castsi512_si256(w[lane]));
}

TARGET static void hash(const uint8_t *const messages[static RON_SHA256_LANES], size_t blocks_count,
                        struct ron_sha256 ret_digests[static RON_SHA256_LANES])
{
    static const uint32_t start[8] = RON_SHA256_START;
    __m512i v[8], before[8], w[16];

    for (unsigned i = 0; i < 8; i++)
        v[i] = _mm512_set1_epi32((int)start[i]);
    for (size_t block = 0; block < blocks_count; block++) {
        memcpy(before, v, sizeof(before));
        take_block(w, messages, block * RON_SHA256_BLOCK_SIZE);
        sixteen_rounds(v, w, ron_sha256_constants, false);
        sixteen_rounds(v, w, ron_sha256_constants + 16, true);
        sixteen_rounds(v, w, ron_sha256_constants + 32, true);
        sixteen_rounds(v, w, ron_sha256_constants + 48, true);
        for (unsigned i = 0; i < 8; i++)
            v[i] = _mm512_add_epi32(v[i], before[i]);
    }
    give_digests(v, ret_digests);
}

static bool lanes_are_there(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
}

#else

static bool lanes_are_there(void)
{
    return false;
}

static void hash(const uint8_t *const messages[static RON_SHA256_LANES], size_t blocks_count,
                 struct ron_sha256 ret_digests[static RON_SHA256_LANES])
{
    (void)messages, (void)blocks_count, (void)ret_digests;
    RON_UNREACHABLE();
}

#endif

/* Written once, before main and so before any thread. */
static bool lanes;

__attribute__((constructor)) static void lanes_choose(void)
{
    lanes = lanes_are_there();
}

bool ron_sha256_has_lanes(void)
{
    return lanes;
}

void ron_sha256_use_lanes(bool wanted)
{
    lanes = wanted && lanes_are_there();
}

void ron_sha256_lanes(const uint8_t *const messages[static RON_SHA256_LANES], size_t blocks_count,
                      struct ron_sha256 ret_digests[static RON_SHA256_LANES])
{
    RON_ASSERT(lanes);
    hash(messages, blocks_count, ret_digests);
}
