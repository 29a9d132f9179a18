/*
 * nearest.h - what was probably meant: the known name nearest to an unknown one.
 */
#ifndef RON_BASE_NEAREST_H
#define RON_BASE_NEAREST_H

#include "base/bytes.h"

enum {
    RON_NEAREST_DISTANCE_MAX = 2, /* insert, delete, replace or swap neighbours, each one step */
    RON_NEAREST_SIZE_MAX = 64,    /* longer names are not compared */
};

/* The name within RON_NEAREST_DISTANCE_MAX steps of `name` that needs the fewest, the first of
 * equals; NULL if there is none. To change half of a name or more is no suggestion. `names` points
 * at the first of count pointers that lie stride bytes apart: a member of a table's rows, or a
 * plain array with stride sizeof(char *). */
const char *ron_nearest_name(struct ron_slice name, const char *const *names, size_t stride,
                             size_t count);

#endif
