/*
 * sums.h - what capabilities had spent of a day before this process began, read from a log.
 *
 * Beside the rows of policy.h, since a log tells of every capability and not only of those with a
 * ceiling. Bounded: beyond AUTH_SUMS_MAX capabilities it no longer knows those that it has not, and
 * says so for the rest of the day. The caller serialises.
 */
#ifndef RON_AUTH_SUMS_H
#define RON_AUTH_SUMS_H

#include "auth/grant.h"

enum { AUTH_SUMS_MAX = 1 << 16 }; /* of one day: 4 MiB, taken with the first */

struct auth_sums {
    struct auth_sum *slots; /* NULL: there are none */
    uint64_t day;
    uint32_t count;
    bool full; /* there were more */
};

/* Forget all, as at birth. */
void auth_sums_fini(struct auth_sums *sums);

/* A later day replaces an earlier one, of which nothing is kept any more. A sum beyond 2^128-1
 * stays there. RON_ERR_BUSY: no room, *sums is full; RON_ERR_NO_MEMORY. */
enum ron_err auth_sums_add(struct auth_sums *sums,
                           const uint8_t capability[static AUTH_CAPABILITY_SIZE],
                           struct ron_u128 amount, uint64_t day,
                           struct ron_errinfo *reterr) RON_MUST_USE;
/* False: not known, since there were too many. */
bool auth_sums_get(const struct auth_sums *sums,
                   const uint8_t capability[static AUTH_CAPABILITY_SIZE], uint64_t day,
                   struct ron_u128 *ret_sum) RON_MUST_USE;

#endif
