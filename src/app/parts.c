/*
 * parts.c - the rows. See parts.h.
 */
#include "app/parts.h"

#include <unistd.h>

const struct app_part *const app_parts[] = {&app_part_ledger};
const size_t app_parts_count = RON_ARRAY_COUNT(app_parts);

uint32_t app_cpus_count(void)
{
    const long count = sysconf(_SC_NPROCESSORS_ONLN);

    return count < 1 ? 1 : (uint32_t)count;
}
