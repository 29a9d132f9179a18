/*
 * internal.h - the state of the run, shared by the files of the simulator. Read this first.
 *
 * A fiber is always in one of three places: running (sim.self), paused with an announced operation
 * (`op`, performed when the fiber is next resumed and possible only if sim_enabled says so), or
 * ended. The host picks among the enabled ones. All of it is reset by sim_run.
 */
#ifndef RON_RT_SIM_INTERNAL_H
#define RON_RT_SIM_INTERNAL_H

#include "rt/local.h"
#include "rt/sim/fiber.h"
#include "rt/sim/source.h"

/* X(name, words): what a paused fiber will do next. */
#define SIM_OP_MAP(X)                                           \
    X(START, "start")                                           \
    X(GO_ON, "go on") /* after a spawn or an answered choice */ \
    X(LOCK, "lock")                                             \
    X(UNLOCKED, "unlocked")                                     \
    X(WAIT_ENTRY, "about to wait")                              \
    X(WAIT, "wait") /* on object, until deadline */             \
    X(RELOCK, "woken, lock")                                    \
    X(SIGNAL, "signal")                                         \
    X(BROADCAST, "broadcast")                                   \
    X(ATOMIC, "atomic")                                         \
    X(JOIN, "join")                                             \
    X(NODE_WAIT, "wait for node")                               \
    X(SLEEP, "sleep")                                           \
    X(YIELD, "yield")                                           \
    X(POINT, "at")
enum sim_op {
#define X(name, words) SIM_OP_##name,
    SIM_OP_MAP(X)
#undef X
};

enum { SIM_YIELDS_MAX = 2 }; /* a fiber that yields so often is polling */

enum sim_thread_state { SIM_THREAD_FREE, SIM_THREAD_LIVE, SIM_THREAD_ENDED };

/* What is inside sh_mutex and sh_cond. */
enum { SIM_MUTEX_MAGIC = 0x6d757465, SIM_COND_MAGIC = 0x636f6e64 };
struct sim_mutex {
    uint32_t magic;
    uint32_t owner; /* slot + 1; 0 when free */
    const char *name;
};
struct sim_cond {
    uint32_t magic;
    uint32_t waiters_count;
    const char *name;
};

struct sh_thread {
    struct sim_fiber fiber;
    const char *name;
    void (*fn)(void *argument);
    void *argument;
    enum sim_thread_state state;
    enum sim_op op;
    uint32_t slot;
    uint32_t node;
    uint32_t memory_node;    /* whose memory it allocates; its own at every point */
    const void *object;      /* of op: mutex, condition, thread, tag */
    struct sim_mutex *mutex; /* to retake after a wait */
    uint64_t deadline_ns;    /* of WAIT, JOIN, SLEEP */
    uint64_t wait_order;     /* of WAIT: who came first */
    uint32_t held_count;     /* mutexes held */
    uint32_t yields_count;   /* since it last blocked or time passed; at most SIM_YIELDS_MAX */
    bool timed_out;          /* how the wait ended */
    bool detached;
    struct rt_local local;
};

struct sim_node {
    const char *name;
    uint32_t live_count; /* fibers */
    bool crashable;
    bool crashed;
};

/* A question of the running fiber, answered by the host. */
struct sim_request {
    bool pending;
    enum sim_choice_kind kind;
    unsigned options_count;
    const char *tag;
    unsigned answer;
};

struct sim {
    const struct sim_job *job; /* NULL outside a run */
    struct sim_source *source;
    struct sim_config left; /* budgets not yet spent */
    struct sim_result *result;
    struct sh_thread *self; /* running fiber; NULL on the host */
    bool over;              /* the verdict stands */
    uint32_t slots_count;   /* slots ever used in this run */
    uint32_t live_count;    /* fibers not ended */
    uint32_t current;       /* slot that leaving may cost a preemption, or SIM_PID_NONE */
    uint32_t last;          /* slot that was picked last, or SIM_PID_NONE */
    uint64_t now_ns;
    int64_t utc_offset_ms;
    uint64_t random_state;
    uint64_t wait_orders_count;
    struct sim_request request;
    /* Fibers to resume at once, without a choice, last first. */
    uint32_t forced_count;
    struct sh_thread *forced[SIM_FIBERS_MAX];
    void (*check)(void *context);
    void *check_context;
    bool checking;            /* inside check() */
    jmp_buf host;             /* out of a failed check */
    uint32_t spared_failures; /* alloc_failures, put aside by sim_spare_allocations */
    uint32_t falling;         /* a node that crashes before anybody else runs; 0: none */
    uint32_t nodes_count;
    struct sim_node nodes[SIM_NODES_MAX + 1]; /* [0] never crashes */
    struct sh_thread threads[SIM_FIBERS_MAX];
};
extern struct sim sim;

#include "rt/sim/parts.h"

#endif
