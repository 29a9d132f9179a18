/*
 * nearest.c - edit distance, bounded. See nearest.h.
 */
#include "base/nearest.h"

#include "base/assert.h"

static unsigned min_of(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Optimal string alignment: row i holds the distances of a's first i bytes to every prefix of b. */
static unsigned distance(struct ron_slice a, struct ron_slice b)
{
    uint8_t rows[3][RON_NEAREST_SIZE_MAX + 1];

    RON_ASSERT(a.size <= RON_NEAREST_SIZE_MAX);
    RON_ASSERT(b.size <= RON_NEAREST_SIZE_MAX);
    for (unsigned j = 0; j <= b.size; j++)
        rows[0][j] = (uint8_t)j;
    for (unsigned i = 1; i <= a.size; i++) {
        uint8_t *row = rows[i % 3];
        const uint8_t *above = rows[(i + 2) % 3];
        const uint8_t *above_that = rows[(i + 1) % 3];

        row[0] = (uint8_t)i;
        for (unsigned j = 1; j <= b.size; j++) {
            unsigned steps = above[j - 1] + (a.data[i - 1] == b.data[j - 1] ? 0u : 1u);

            steps = min_of(steps, min_of(above[j], row[j - 1]) + 1u);
            if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] && a.data[i - 2] == b.data[j - 1])
                steps = min_of(steps, above_that[j - 2] + 1u);
            row[j] = (uint8_t)steps;
        }
    }
    return rows[a.size % 3][b.size];
}

const char *ron_nearest_name(struct ron_slice name, const char *const *names, size_t stride,
                             size_t count)
{
    const char *nearest = NULL;
    unsigned nearest_distance = RON_NEAREST_DISTANCE_MAX + 1;

    RON_ASSERT(stride >= sizeof(*names));
    if (name.size > RON_NEAREST_SIZE_MAX)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        const char *candidate;
        struct ron_slice slice;
        unsigned steps;

        memcpy(&candidate, (const char *)names + i * stride, sizeof(candidate));
        slice = ron_slice_text(candidate);
        if (slice.size > RON_NEAREST_SIZE_MAX)
            continue;
        steps = distance(name, slice);
        if (steps < nearest_distance && 2 * steps < slice.size) {
            nearest_distance = steps;
            nearest = candidate;
        }
    }
    return nearest;
}
