/*
 * parts.c - the rows. See parts.h. No role is built yet.
 */
#include "app/parts.h"

const struct app_part app_parts[] = {};
const size_t app_parts_count = RON_ARRAY_COUNT(app_parts);
