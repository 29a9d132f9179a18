/*
 * random.h - what the two seeded sources share.
 */
#ifndef RON_RT_SIM_RANDOM_H
#define RON_RT_SIM_RANDOM_H

#include "rt/sim/source.h"

uint32_t sim_random_below(struct sim_random *random, uint32_t bound); /* 0..bound-1 */

/* Answer everything but "which fiber". False: one of the first *ret_option options, the fibers, is
 * to be picked by the caller. */
bool sim_random_other(struct sim_random *random, const struct sim_point *point, int *ret_option);

#endif
