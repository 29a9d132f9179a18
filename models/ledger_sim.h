/*
 * ledger_sim.h - the simulation of the ledger service: its world, and what it must find in it.
 */
#ifndef RON_MODELS_LEDGER_SIM_H
#define RON_MODELS_LEDGER_SIM_H

#include "ledger/core_frame.h"
#include "ledger/service.h"
#include "models/sim_disk.h"
#include "models/tally.h"

enum {
    SIM_KEYS_COUNT = 96,
    SIM_CLIENTS_COUNT = 4,
    SIM_OPERATIONS_MIN = 320, /* clients go home after so many */
    SIM_BATCHES_MAX = 1024,
    SIM_WINDOW = 24,        /* entries and keys known without the archive: those of two segments */
    SIM_SEED_STEPS = 12000, /* about: budgets are spent over so many */
};

/* One per seed. All have crashes and jumps of the wall clock. */
enum sim_weather {
    SIM_CALM,
    SIM_FAILING,  /* calls to the disk fail, some in the middle */
    SIM_FULL,     /* the disk is full for a while */
    SIM_SLOW,     /* and its syncs are slow, and the drain short */
    SIM_PANICS,   /* prevalidators die */
    SIM_MEMORY,   /* allocations fail, once the service runs */
    SIM_OVERLOAD, /* nobody waits for an answer: ten times what the queues hold */
    SIM_POWER,    /* the power goes, in the middle of a sync */
    SIM_WEATHERS_COUNT
};

/* What a key stands for; its amount is the key + 1, so that an entry of the log tells it. */
enum sim_kind { SIM_MINT, SIM_TRANSFER, SIM_ID_ONLY, SIM_NONCE };

/* What the world outside remembers: it does not crash. */
struct sim_world {
    struct sim_disk disk;
    enum sim_weather weather;
    struct io_faulty_options disk_options;
    struct io_fault disk_fault;
    bool known[SIM_KEYS_COUNT]; /* was answered OK */
    bool asked[SIM_KEYS_COUNT];
    struct ledger_reply replies[SIM_KEYS_COUNT];
    struct ledger_root roots[SIM_BATCHES_MAX]; /* that anybody saw; batch 0: nobody did */
    uint64_t head_batch;                       /* the newest that anybody saw */
    unsigned operations_count;
    unsigned fall_at; /* the process dies at this operation */
    unsigned panics_left;
    unsigned power_cuts_left;
    bool last; /* the process that is to end it all: nothing fails any more */
    bool was_full;
    bool came_up;           /* the newest process opened its log */
    bool closed;            /* and called it whole when it ended */
    uint64_t faults_before; /* of the disk, when it began */
};

enum sim_kind sim_kind_of(unsigned key);
/* May the disk or the memory let the process down? */
bool sim_may_fail(const struct sim_world *world);
/* A start failed, or found damage: only if the disk failed it, in this very process. */
void sim_check_fault(const struct sim_world *world);

/* An answer: what is OK stays as it is for ever, what is refused is refused for a reason. */
void sim_check_outcome(struct sim_world *world, struct ledger_service *service, unsigned key,
                       const struct ledger_outcome *outcome);
/* At the door, or later. */
void sim_check_refusal(struct sim_world *world, unsigned key, enum ron_err err);
/* What recovery found: all that was acknowledged, once, without a gap, under the roots that were
 * seen, and balances that follow from it. */
void sim_check_log(struct sim_world *world, struct ledger_service *service) RON_BLOCKS;
/* A log that was called whole is: every sum and link, and nothing behind its end. */
void sim_check_closed(const struct sim_world *world) RON_BLOCKS;

#endif
