/*
 * parts.h - what a process is made of: one row per role, built in this order.
 */
#ifndef RON_APP_PARTS_H
#define RON_APP_PARTS_H

#include "base/compiler.h"

struct app_part {
    const char *name;
    /* Make the part with every queue, bus, watch and task it will ever have, and no outside world:
     * no file is opened, no address bound. On failure nothing is left behind. Both may block. */
    enum ron_err (*build)(void **ret_part, struct ron_errinfo *reterr);
    void (*destroy)(void *part); /* all of it, its tasks included */
};

extern const struct app_part app_parts[];
extern const size_t app_parts_count;

#endif
