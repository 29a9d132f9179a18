/*
 * futex_world.h - the kernel's side of a futex, on the simulator.
 *
 * A sleeper is a fiber that waits on a condition of the simulator. So its budgets apply: a sleep
 * may end for nothing (`spurious`), and a wake-up may take any sleeper, not only the oldest
 * (`wake_choice`), as futex(2) has it: "no guarantee is provided about which waiters are awoken".
 */
#ifndef RON_MODELS_FUTEX_WORLD_H
#define RON_MODELS_FUTEX_WORLD_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

/* First and last of a run; all futexes of the run are in between. */
void futex_world_open(void);
void futex_world_close(void);

/* FUTEX_WAIT_BITSET_PRIVATE and FUTEX_WAKE_PRIVATE, with errno. An address that is only woken may
 * be of memory that is gone. */
long futex_call(_Atomic uint32_t *address, int operation, uint32_t value,
                const struct timespec *deadline);

void futex_point(const void *object); /* a scheduling point; none outside a run */

#endif
