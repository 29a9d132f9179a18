/*
 * crc32c.c - CRC-32C by SSE4.2 in three interleaved streams, or by slicing over eight bytes; large
 * inputs by crc32c_wide.c where the processor can.
 *
 * All work on the bit-reflected register: bit i stands for x^(31-i), the polynomial is 0x82f63b78,
 * and appending n zero bytes multiplies the register by x^(8n).
 */
#include "base/crc32c.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c_wide.h"

/* Table k maps a byte to its sum when k zero bytes follow. The sum is linear over bits, so eight
 * constants (of the bytes 1, 2, 4 ... 128) make a table, at compile time: no initialisation, no
 * race. The test compares every table with the bit-by-bit definition. */
#define BIT(n, i, value) ((((n) >> (i)) & 1u) * (value))
#define ENTRY(n, b0, b1, b2, b3, b4, b5, b6, b7)                                     \
    (BIT(n, 0, b0) ^ BIT(n, 1, b1) ^ BIT(n, 2, b2) ^ BIT(n, 3, b3) ^ BIT(n, 4, b4) ^ \
     BIT(n, 5, b5) ^ BIT(n, 6, b6) ^ BIT(n, 7, b7))
#define ENTRIES_4(n, ...)                                                          \
    ENTRY(n, __VA_ARGS__), ENTRY(n + 1u, __VA_ARGS__), ENTRY(n + 2u, __VA_ARGS__), \
        ENTRY(n + 3u, __VA_ARGS__)
#define ENTRIES_16(n, ...)                                                                     \
    ENTRIES_4(n, __VA_ARGS__), ENTRIES_4(n + 4u, __VA_ARGS__), ENTRIES_4(n + 8u, __VA_ARGS__), \
        ENTRIES_4(n + 12u, __VA_ARGS__)
#define ENTRIES_64(n, ...)                                        \
    ENTRIES_16(n, __VA_ARGS__), ENTRIES_16(n + 16u, __VA_ARGS__), \
        ENTRIES_16(n + 32u, __VA_ARGS__), ENTRIES_16(n + 48u, __VA_ARGS__)
#define TABLE(...)                                                                                \
    {                                                                                             \
        ENTRIES_64(0u, __VA_ARGS__), ENTRIES_64(64u, __VA_ARGS__), ENTRIES_64(128u, __VA_ARGS__), \
            ENTRIES_64(192u, __VA_ARGS__)                                                         \
    }

/* clang-format off */
static const uint32_t tables[8][256] = {
    TABLE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc, 0x82f63b78),
    TABLE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604, 0xfbc3faf9),
    TABLE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9, 0x8b277743),
    TABLE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7, 0x52a0c93f),
    TABLE(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae, 0x6ea2d55c),
    TABLE(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb, 0x1c08b7d6),
    TABLE(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a, 0xf56e0ef4),
    TABLE(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32, 0x34019664),
};
/* clang-format on */

uint32_t ron_crc32c_software(uint32_t crc, const void *data, size_t size)
{
    const uint8_t *p = data;
    uint32_t r = ~crc;

    RON_ASSERT(data != NULL || size == 0);
    for (; size >= 8; size -= 8, p += 8) {
        uint32_t low = r ^ ron_load_le32(p);
        uint32_t high = ron_load_le32(p + 4);

        r = tables[7][low & 0xff] ^ tables[6][(low >> 8) & 0xff] ^ tables[5][(low >> 16) & 0xff] ^
            tables[4][low >> 24] ^ tables[3][high & 0xff] ^ tables[2][(high >> 8) & 0xff] ^
            tables[1][(high >> 16) & 0xff] ^ tables[0][high >> 24];
    }
    for (; size > 0; size--, p++)
        r = (r >> 8) ^ tables[0][(r ^ *p) & 0xff];
    return ~r;
}

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("sse4.2,pclmul")))

/* The instruction takes 3 cycles but starts every cycle, so three streams run at once and are
 * joined at the end: the first is multiplied by x^(16n), the second by x^(8n). Two stream sizes;
 * the long one makes three streams fill a 4 KiB page; a rest is cut into three of its own. */
enum { LONG_SIZE = 1360, SHORT_SIZE = 168, REST_SIZE_MIN = 96, AHEAD_SIZE = 6 * LONG_SIZE };
_Static_assert(LONG_SIZE % 8 == 0, "streams are read in words");
_Static_assert(SHORT_SIZE % 8 == 0, "streams are read in words");

/* register * x^(8n), given k = x^(8n-33): the carry-less product of two reflected values is one x
 * short of a reflected 64-bit value, and summing that value multiplies by x^32. */
static inline TARGET uint64_t append_zeros(uint64_t r, uint32_t k)
{
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)r),
                                           _mm_cvtsi32_si128((int)k), 0);

    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

/* x^(64n-33), to append n words of zeros; of rests. Made before main. */
static uint32_t zeros_of[2 * (SHORT_SIZE / 8)];

/* `ahead`: ask for the bytes so far behind p, three words a step as the streams take them. The
 * processor loses streams that jump every page, so a sum of cold memory waited for each line. What
 * lies behind the end is asked for as well, which does no harm. */
static inline TARGET uint64_t three_streams(uint64_t r, const uint8_t *p, size_t size,
                                            uint32_t k_twice, uint32_t k_once, size_t ahead)
{
    uint64_t second = 0;
    uint64_t third = 0;

    for (size_t i = 0; i < size; i += 8) {
        if (ahead > 0)
            _mm_prefetch((const char *)((uintptr_t)p + ahead + 3 * i), _MM_HINT_T0);
        r = _mm_crc32_u64(r, ron_load_le64(p + i));
        second = _mm_crc32_u64(second, ron_load_le64(p + size + i));
        third = _mm_crc32_u64(third, ron_load_le64(p + 2 * size + i));
    }
    return append_zeros(r, k_twice) ^ append_zeros(second, k_once) ^ third;
}

static TARGET uint32_t crc32c_hardware(uint32_t crc, const uint8_t *p, size_t size)
{
    uint64_t r = ~crc;

    for (; size >= 3 * LONG_SIZE; size -= 3 * LONG_SIZE, p += 3 * LONG_SIZE)
        r = three_streams(r, p, LONG_SIZE, 0x5aa1f3cf, 0x3f70cc6f, AHEAD_SIZE);
    for (; size >= 3 * SHORT_SIZE; size -= 3 * SHORT_SIZE, p += 3 * SHORT_SIZE)
        r = three_streams(r, p, SHORT_SIZE, 0xa60ce07b, 0x1b3d8f29, 0);
    if (size >= REST_SIZE_MIN) {
        const size_t words = size / 24;

        r = three_streams(r, p, 8 * words, zeros_of[2 * words], zeros_of[words], 0);
        p += 24 * words;
        size -= 24 * words;
    }
    for (; size >= 8; size -= 8, p += 8)
        r = _mm_crc32_u64(r, ron_load_le64(p));
    if (size >= 4) {
        r = _mm_crc32_u32((uint32_t)r, ron_load_le32(p));
        p += 4;
        size -= 4;
    }
    for (; size > 0; size--, p++)
        r = _mm_crc32_u8((uint32_t)r, *p);
    return ~(uint32_t)r;
}

/* Written once, before main and so before any thread; the tables serve until then. */
static bool hardware, wide;

__attribute__((constructor)) static void crc32c_choose(void)
{
    uint32_t power = 1; /* x^31 */

    for (size_t n = 1; n < sizeof(zeros_of) / sizeof(zeros_of[0]); n++) {
        zeros_of[n] = power;
        for (unsigned i = 0; i < 8; i++) /* times x^64 */
            power = (power >> 8) ^ tables[0][power & 0xff];
    }
    __builtin_cpu_init();
    hardware = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
    wide = ron_crc32c_wide_init() && hardware;
}

#else

static const bool hardware = false, wide = false;

static uint32_t crc32c_hardware(uint32_t crc, const uint8_t *p, size_t size)
{
    return ron_crc32c_software(crc, p, size);
}

#endif

static inline uint32_t by_words(uint32_t crc, const uint8_t *p, size_t size)
{
    RON_ASSERT(p != NULL || size == 0);
    if (RON_LIKELY(hardware))
        return crc32c_hardware(crc, p, size);
    return ron_crc32c_software(crc, p, size);
}

uint32_t ron_crc32c_by_words(uint32_t crc, const void *data, size_t size)
{
    return by_words(crc, data, size);
}

uint32_t ron_crc32c(uint32_t crc, const void *data, size_t size)
{
    const uint8_t *p = data;

    if (size >= CRC32C_WIDE_MIN && wide) {
        const size_t most = size - size % CRC32C_WIDE_STEP;

        RON_ASSERT(p != NULL);
        crc = ~ron_crc32c_wide(~crc, p, most);
        p += most;
        size -= most;
    }
    return by_words(crc, p, size);
}

bool ron_crc32c_is_hardware(void)
{
    return hardware;
}

bool ron_crc32c_is_wide(void)
{
    return wide;
}
