/*
 * crc32c_wide.c - CRC-32C by carry-less products of 64 bytes at once (AVX-512 and VPCLMULQDQ). See
 * crc32c_wide.h.
 *
 * A lane is 16 bytes of the input as a polynomial, lo * x^64 + hi, lo being the first 8 of them:
 * reflected, so bit i of a word stands for x^(63-i). To put n more bits behind it, it is multiplied
 * by x^n, and it may stand for anything of the same remainder: lo * K(n + 64) + hi * K(n) fits a
 * lane again, and the bytes behind are added. Four vectors of four lanes go on 256 bytes a step,
 * one behind the other because a product takes eight cycles; at the end they are put together, and
 * the last lane is summed as any 16 bytes are.
 */
#include "base/crc32c_wide.h"

#include "base/assert.h"
#include "base/crc32c.h"

#if defined(__x86_64__)
#include <immintrin.h>

/* AddressSanitizer of gcc 12 puts vectors where they are aligned to 32 bytes only. */
#define TARGET __attribute__((target("avx512f,vpclmulqdq,sse4.2"), no_sanitize("address")))

enum { LANES = 4, VECTORS = 4 };

/* K(n + 64), K(n) for each lane of a vector. */
static uint64_t far[2 * LANES];  /* n = 2048: to the next four vectors */
static uint64_t near[2 * LANES]; /* n = 512: to the next vector */
static uint64_t last[2 * LANES]; /* to the last lane of the same one, which has none */

/* x^(8 * bytes - 1), reflected, as a word: the carry-less product of two reflected words is one x
 * short of a reflected lane. A register of 1 is x^31. */
static uint64_t k_of(size_t bytes)
{
    static const uint8_t zeros[CRC32C_WIDE_MIN + 8];

    RON_ASSERT(bytes >= 4);
    RON_ASSERT(bytes <= sizeof(zeros));
    return (uint64_t)~ron_crc32c_software(~UINT32_C(1), zeros, bytes - 4) << 32;
}

bool ron_crc32c_wide_init(void)
{
    for (size_t i = 0; i < LANES; i++) {
        far[2 * i] = k_of(CRC32C_WIDE_MIN + 8);
        far[2 * i + 1] = k_of(CRC32C_WIDE_MIN);
        near[2 * i] = k_of(CRC32C_WIDE_STEP + 8);
        near[2 * i + 1] = k_of(CRC32C_WIDE_STEP);
    }
    for (size_t i = 0; i < LANES - 1; i++) {
        last[2 * i] = k_of(16 * (LANES - 1 - i) + 8);
        last[2 * i + 1] = k_of(16 * (LANES - 1 - i));
    }
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq") &&
           __builtin_cpu_supports("sse4.2");
}

/* The lanes moved on, and what lies there added. */
static inline TARGET __m512i fold(__m512i lanes, __m512i k, __m512i more)
{
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(lanes, k, 0x00),
                                     _mm512_clmulepi64_epi128(lanes, k, 0x11), more, 0x96);
}

static inline TARGET uint32_t sum_of(__m512i lanes)
{
    const __m512i none = _mm512_setzero_si512();
    const __m512i moved = fold(lanes, _mm512_loadu_si512(last), none);
    __m128i sum = _mm512_extracti32x4_epi32(lanes, 3);
    uint64_t r;

    sum = _mm_xor_si128(sum, _mm512_extracti32x4_epi32(moved, 0));
    sum = _mm_xor_si128(sum, _mm512_extracti32x4_epi32(moved, 1));
    sum = _mm_xor_si128(sum, _mm512_extracti32x4_epi32(moved, 2));
    r = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(sum));
    return (uint32_t)_mm_crc32_u64(r, (uint64_t)_mm_extract_epi64(sum, 1));
}

TARGET uint32_t ron_crc32c_wide(uint32_t r, const uint8_t *p, size_t size)
{
    const __m512i k_far = _mm512_loadu_si512(far);
    const __m512i k_near = _mm512_loadu_si512(near);
    __m512i at[VECTORS];

    RON_ASSERT(size >= CRC32C_WIDE_MIN);
    RON_ASSERT(size % CRC32C_WIDE_STEP == 0);
    for (size_t i = 0; i < VECTORS; i++)
        at[i] = _mm512_loadu_si512(p + i * CRC32C_WIDE_STEP);
    at[0] = _mm512_xor_si512(at[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)r)));
    p += CRC32C_WIDE_MIN;
    size -= CRC32C_WIDE_MIN;
    for (; size >= CRC32C_WIDE_MIN; size -= CRC32C_WIDE_MIN, p += CRC32C_WIDE_MIN)
        for (size_t i = 0; i < VECTORS; i++)
            at[i] = fold(at[i], k_far, _mm512_loadu_si512(p + i * CRC32C_WIDE_STEP));
    for (size_t i = 1; i < VECTORS; i++)
        at[i] = fold(at[i - 1], k_near, at[i]);
    for (; size > 0; size -= CRC32C_WIDE_STEP, p += CRC32C_WIDE_STEP)
        at[VECTORS - 1] = fold(at[VECTORS - 1], k_near, _mm512_loadu_si512(p));
    return sum_of(at[VECTORS - 1]);
}

#else

bool ron_crc32c_wide_init(void)
{
    return false;
}

uint32_t ron_crc32c_wide(uint32_t r, const uint8_t *p, size_t size)
{
    return ~ron_crc32c_software(~r, p, size);
}

#endif
