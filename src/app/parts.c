/*
 * parts.c - the rows. See parts.h.
 */
#include "app/parts.h"

const struct app_part *const app_parts[] = {&app_part_ledger};
const size_t app_parts_count = RON_ARRAY_COUNT(app_parts);
