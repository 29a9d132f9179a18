/*
 * source.h - who decides: exhaustive search, seeded chance, or a written schedule.
 *
 * One function answers everything: which fiber runs, whether the clock moves, who is woken, what
 * fails. Option 0 is always the plain one (stay, oldest waiter, no fault), so the run of all zeros
 * is the natural run, and a schedule is the sparse list of the other answers.
 */
#ifndef RON_RT_SIM_SOURCE_H
#define RON_RT_SIM_SOURCE_H

#include "rt/sim/sim.h"

enum sim_choice_kind {
    SIM_CHOOSE_STEP,  /* options are pids */
    SIM_CHOOSE_CLOCK, /* 1: the clock overshoots the next deadline */
    SIM_CHOOSE_WAKE,  /* k: the k-th oldest waiter */
    SIM_CHOOSE_FAULT, /* sh_choose */
    SIM_CHOOSE_ALLOC, /* 1: the allocation fails */
    SIM_CHOOSE_SPAWN, /* 1: the spawn is refused */
    SIM_CHOOSE_JUMP,  /* 1: forward, 2: back */
    SIM_CHOOSE_DATA,  /* sim_choose */
};

/* Below SIM_PID_CLOCK a pid is a fiber's slot; the others are pseudo-processes. */
enum {
    SIM_PID_CLOCK = 0x1000,
    SIM_PID_SPURIOUS = 0x2000, /* + slot */
    SIM_PID_CRASH = 0x3000,    /* + node */
    SIM_PID_NONE = 0xffff,
};

struct sim_point {
    enum sim_choice_kind kind;
    uint16_t options_count; /* at least 2 */
    uint16_t current;       /* pid that ran last, SIM_PID_NONE if it cannot go on */
    const char *tag;        /* of a fault or data choice, else NULL */
    const uint16_t *pids;   /* of SIM_CHOOSE_STEP, else NULL */
};

struct sim_source {
    /* An option, or -1 to abandon the run. Called on the host, may allocate. */
    int (*choose)(struct sim_source *source, const struct sim_point *point);
    /* After each run; false: there is no next one. NULL: always another. */
    bool (*next)(struct sim_source *source, const struct sim_result *result);
};

/* Inside choose(): the hash of everything that decides how the run can go on. Needs
 * job.hash_states and the x86-64 switch. */
uint64_t sim_state_key(const struct sim_point *point);
bool sim_state_key_possible(void);

/* Depth first over all choices. With a cache, a state met before is not explored again. */
struct sim_dfs;
enum ron_err sim_dfs_new(bool cache, struct sim_dfs **ret_dfs,
                         struct ron_errinfo *reterr) RON_MUST_USE;
struct sim_dfs *sim_dfs_free(struct sim_dfs *dfs);
struct sim_source *sim_dfs_source(struct sim_dfs *dfs);
bool sim_dfs_is_complete(const struct sim_dfs *dfs);      /* nothing left to try */
bool sim_dfs_diverged(const struct sim_dfs *dfs);         /* the same choices led elsewhere */
uint64_t sim_dfs_states_count(const struct sim_dfs *dfs); /* in the cache */

/* Uniform choices by seed; things that spend a budget come rarely, spread over expected_steps. */
struct sim_random {
    struct sim_source source;
    uint64_t state;
    uint32_t expected_steps;
};
void sim_random_init(struct sim_random *random, uint64_t seed, uint32_t expected_steps);

/* PCT (Burckhardt et al., ASPLOS 2010): random priorities, lowered at depth - 1 random steps; finds
 * a bug of that depth with a known probability. Other choices as in sim_random. */
enum { SIM_PCT_DEPTH_MAX = 16 };
struct sim_pct {
    struct sim_random random; /* first: it is the source */
    uint32_t depth;
    uint32_t steps_count;
    uint32_t change_steps[SIM_PCT_DEPTH_MAX];
    uint32_t priorities[256]; /* by slot; 0 not drawn yet */
};
void sim_pct_init(struct sim_pct *pct, uint64_t seed, uint32_t depth, uint32_t expected_steps);

/* Follow a list of choices, then zeros. Strict: an answer out of range abandons the run and sets
 * diverged. Lenient (shrinking): it counts as 0. */
struct sim_replay {
    struct sim_source source;
    const uint16_t *choices;
    uint32_t choices_count;
    uint32_t position;
    bool lenient;
    bool diverged;
};
void sim_replay_init(struct sim_replay *replay, const uint16_t *choices, uint32_t choices_count,
                     bool lenient);

/* The seed of run `index` of a campaign. */
uint64_t sim_seed_mix(uint64_t seed, uint64_t index);

#endif
