/*
 * sha256_lanes.c - see sha256_lanes.h. FIPS 180-4 as it stands, every word a vector of sixteen.
 *
 * The prefix shifts the data by one byte: the first block is read from the byte before them, which
 * is masked out, and their last byte is alone with the padding in a block of its own. Messages that
 * end alike (entries of one request do) share what that block's words become in the schedule.
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

/* The sum as it stands: the compiler may not add its terms in another order. */
REGISTERS __m512i add_now(__m512i a, __m512i b)
{
    __m512i sum = _mm512_add_epi32(a, b);

    __asm__("" : "+v"(sum));
    return sum;
}

/* One round; the caller renames the variables. d becomes the new e, h the new a. What takes longest
 * is added last, so the next round waits for three operations of this one and not for five: where
 * each takes two cycles that is most of the time. Worth two additions more. */
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
    const __m512i early = add_now(*h, wk);

    *d = _mm512_add_epi32(add_now(add_now(*d, early), chosen), s1);
    *h = _mm512_add_epi32(add_now(add_now(add_now(early, chosen), s1), most), s0);
}

/* Written out, because all stays in registers only if every index is a constant; sixteen and no
 * more, because what is decoded once is used again. */
#define SIXTEEN(WITH) \
    WITH(0)           \
    WITH(1)           \
    WITH(2)           \
    WITH(3)           \
    WITH(4)           \
    WITH(5)           \
    WITH(6)           \
    WITH(7)           \
    WITH(8)           \
    WITH(9)           \
    WITH(10)          \
    WITH(11)          \
    WITH(12)          \
    WITH(13)          \
    WITH(14)          \
    WITH(15)

#define ROUND(t, wk)                                                                       \
    one_round((const __m512i[3]){v[(16 - (t)) & 7], v[(17 - (t)) & 7], v[(18 - (t)) & 7]}, \
              &v[(19 - (t)) & 7],                                                          \
              (const __m512i[3]){v[(20 - (t)) & 7], v[(21 - (t)) & 7], v[(22 - (t)) & 7]}, \
              &v[(23 - (t)) & 7], wk);

REGISTERS void sixteen_rounds(__m512i v[static 8], __m512i w[static 16], const uint32_t *k,
                              bool renew)
{
#define ROUND_OF_WORD(t)        \
    if (renew)                  \
        w[t] = next_word(w, t); \
    ROUND(t, _mm512_add_epi32(w[t], _mm512_set1_epi32((int)k[t])))
    SIXTEEN(ROUND_OF_WORD)
#undef ROUND_OF_WORD
}

/* With words that are the same in all lanes, their constants added already. */
REGISTERS void sixteen_rounds_alike(__m512i v[static 8], const uint32_t *wk){
#define ROUND_ALIKE(t) ROUND(t, _mm512_set1_epi32((int)wk[t]))
    SIXTEEN(ROUND_ALIKE)
#undef ROUND_ALIKE
}

/* A block of each message that begins at `at` of the first one. */
REGISTERS void take_block(__m512i w[static 16], const uint8_t *at, size_t size)
{
#define TAKE(i) w[i] = swap_bytes(_mm512_loadu_si512(at + (i)*size));
    SIXTEEN(TAKE)
#undef TAKE
    transpose(w);
}

/* The first: the prefix and all but one byte of the data's first block. What the mask leaves out is
 * not read. */
REGISTERS void take_first(__m512i w[static 16], uint8_t prefix, const uint8_t *data, size_t size)
{
    const __m512i first = _mm512_zextsi128_si512(_mm_cvtsi32_si128(prefix));
    const uintptr_t before = (uintptr_t)data - 1;

#define TAKE(i)        \
    w[i] = swap_bytes( \
        _mm512_mask_loadu_epi8(first, ~(__mmask64)1, (const void *)(before + (i)*size)));
    SIXTEEN(TAKE)
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

/* The last block of messages that end alike: its words in the schedule, with their constants. */
struct tail {
    uint32_t first; /* word of the block */
    uint32_t wk[64];
};

static uint32_t rotate(uint32_t word, unsigned bits)
{
    return word >> bits | word << (32 - bits);
}

static void tail_make(struct tail *tail, uint32_t first, size_t size)
{
    uint32_t w[64] = {[0] = first, [15] = (uint32_t)(1 + size) * 8};

    for (unsigned t = 16; t < 64; t++) {
        const uint32_t s0 = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ w[t - 15] >> 3;
        const uint32_t s1 = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ w[t - 2] >> 10;

        w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    tail->first = first;
    for (unsigned t = 0; t < 64; t++)
        tail->wk[t] = w[t] + ron_sha256_constants[t];
}

REGISTERS void add_state(__m512i v[static 8], const __m512i before[static 8])
{
    for (unsigned i = 0; i < 8; i++)
        v[i] = _mm512_add_epi32(v[i], before[i]);
}

REGISTERS void rounds(__m512i v[static 8], __m512i w[static 16])
{
    __m512i before[8];

    memcpy(before, v, sizeof(before));
    sixteen_rounds(v, w, ron_sha256_constants, false);
    for (unsigned t = 16; t < 64; t += 16)
        sixteen_rounds(v, w, ron_sha256_constants + t, true);
    add_state(v, before);
}

REGISTERS void rounds_alike(__m512i v[static 8], const struct tail *tail)
{
    __m512i before[8];

    memcpy(before, v, sizeof(before));
    for (unsigned t = 0; t < 64; t += 16)
        sixteen_rounds_alike(v, tail->wk + t);
    add_state(v, before);
}

/* The first words of the last blocks: a byte of data and the bit behind it. */
REGISTERS __m512i last_words(const uint8_t *data, size_t size)
{
    uint32_t words[RON_SHA256_LANES];

    for (unsigned lane = 0; lane < RON_SHA256_LANES; lane++)
        words[lane] = (uint32_t)data[(lane + 1) * size - 1] << 24 | 0x00800000;
    return _mm512_loadu_si512(words);
}

TARGET static void hash(uint8_t prefix, const uint8_t *data, size_t size, struct tail *tail,
                        struct ron_sha256 ret_digests[static RON_SHA256_LANES])
{
    static const uint32_t start[8] = RON_SHA256_START;
    const __m512i last = last_words(data, size);
    const uint32_t last_first = (uint32_t)_mm512_cvtsi512_si32(last);
    __m512i v[8], w[16];

    for (unsigned i = 0; i < 8; i++)
        v[i] = _mm512_set1_epi32((int)start[i]);
    take_first(w, prefix, data, size);
    rounds(v, w);
    for (size_t block = 1; block < size / RON_SHA256_BLOCK_SIZE; block++) {
        take_block(w, data + block * RON_SHA256_BLOCK_SIZE - 1, size);
        rounds(v, w);
    }
    if (_mm512_cmpneq_epi32_mask(last, _mm512_set1_epi32((int)last_first)) == 0) {
        if (tail->first != last_first)
            tail_make(tail, last_first, size);
        rounds_alike(v, tail);
    } else {
        for (unsigned i = 0; i < 16; i++)
            w[i] = _mm512_setzero_si512();
        w[0] = last;
        w[15] = _mm512_set1_epi32((int)(1 + size) * 8);
        rounds(v, w);
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

struct tail {
    uint32_t first;
};

static void hash(uint8_t prefix, const uint8_t *data, size_t size, struct tail *tail,
                 struct ron_sha256 ret_digests[static RON_SHA256_LANES])
{
    (void)prefix, (void)data, (void)size, (void)tail, (void)ret_digests;
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

void ron_sha256_lanes(uint8_t prefix, const uint8_t *data, size_t size, size_t count,
                      struct ron_sha256 *ret_digests)
{
    struct tail tail;

    RON_ASSERT(lanes);
    RON_ASSERT(count % RON_SHA256_LANES == 0);
    RON_ASSERT(size > 0 && size % RON_SHA256_BLOCK_SIZE == 0 && size <= RON_SHA256_LANES_SIZE_MAX);
    tail.first = 0; /* no last block begins so */
    for (size_t i = 0; i < count; i += RON_SHA256_LANES)
        hash(prefix, data + i * size, size, &tail, ret_digests + i);
}
