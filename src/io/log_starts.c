/*
 * log_starts.c - where some records of a segment start. See log_starts.h.
 */
#include "io/log_starts.h"

enum { STRIDE8_MIN = (64 << 10) / 8 };

void log_starts_add(struct log_starts *starts, uint64_t index, uint64_t offset)
{
    const uint32_t offset8 = (uint32_t)(offset / 8);

    if (starts->count > 0 && offset8 - starts->starts[starts->count - 1].offset8 < starts->stride8)
        return;
    if (starts->count == LOG_STARTS_MAX) {
        for (uint32_t i = 0; i < LOG_STARTS_MAX / 2; i++)
            starts->starts[i] = starts->starts[2 * i];
        starts->count = LOG_STARTS_MAX / 2;
        starts->stride8 *= 2;
    }
    if (starts->count == 0)
        starts->stride8 = STRIDE8_MIN;
    starts->starts[starts->count++] = (struct io_index_start){.index = index, .offset8 = offset8};
}

uint64_t log_starts_before(const struct log_starts *starts, uint64_t index)
{
    uint32_t low = 0, high = starts->count;

    while (low < high) { /* the number of starts at or before the record */
        const uint32_t middle = low + (high - low) / 2;

        if (starts->starts[middle].index <= index)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? starts->starts[low - 1].offset8 * UINT64_C(8) : 0;
}
