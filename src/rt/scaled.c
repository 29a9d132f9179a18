/*
 * scaled.c - see scaled.h.
 */
#include "rt/scaled.h"

#include <string.h>

#include "base/assert.h"
#include "base/decimal.h"

size_t rt_scaled_print(uint64_t value, unsigned scale, char text[static RT_SCALED_SIZE])
{
    char digits[RON_DECIMAL_U64_SIZE];
    size_t digits_count, whole_count, size = 0;

    RON_ASSERT(scale <= RT_SCALE_MAX);
    while (scale > 0 && value % 10 == 0) {
        value /= 10;
        scale--;
    }
    digits_count = ron_decimal_print_u64(value, digits);
    whole_count = digits_count > scale ? digits_count - scale : 0;
    if (whole_count == 0)
        text[size++] = '0';
    memcpy(text + size, digits, whole_count);
    size += whole_count;
    if (scale > 0) {
        text[size++] = '.';
        for (size_t i = digits_count; i < scale; i++)
            text[size++] = '0';
        memcpy(text + size, digits + whole_count, digits_count - whole_count);
        size += digits_count - whole_count;
    }
    RON_ASSERT(size < RT_SCALED_SIZE);
    text[size] = '\0';
    return size;
}
