/*
 * ledger_sim_oracle.c - what must be true in the simulation of the ledger. See ledger_sim.h.
 *
 * Judged by the log's own frames and by what was answered, never by what the service counts.
 */
#include "io/log_check.h"
#include "models/ledger_sim.h"
#include "models/support.h"

struct tally model_tally;

enum sim_kind sim_kind_of(unsigned key)
{
    static const enum sim_kind kinds[8] = {SIM_MINT,     SIM_MINT,     SIM_MINT,  SIM_MINT,
                                           SIM_TRANSFER, SIM_TRANSFER, SIM_NONCE, SIM_ID_ONLY};

    return kinds[key % 8];
}

bool sim_may_fail(const struct sim_world *world)
{
    return !world->last && (world->weather == SIM_FAILING || world->weather == SIM_FULL ||
                            world->weather == SIM_MEMORY);
}

void sim_check_fault(const struct sim_world *world)
{
    RON_ASSERT(sim_may_fail(world));
    RON_ASSERT(sim_disk_faults(&world->disk) > world->faults_before);
}

static void check_root(struct sim_world *world, const struct ledger_root *root)
{
    struct ledger_root *seen = &world->roots[root->batch];

    RON_ASSERT(root->batch < SIM_BATCHES_MAX);
    if (root->batch == 0)
        return;
    if (seen->batch != 0)
        RON_ASSERT(memcmp(seen, root, sizeof(*root)) == 0); /* the same for ever */
    *seen = *root;
}

/* --- Answers -----------------------------------------------------------------------------------
 */

static void tally_refusal(enum ron_err err)
{
    static const struct {
        enum ron_err err;
        enum tally_kind kind;
    } table[] = {
        {RON_ERR_SAFE_MODE, TALLY_SAFE_MODE},
        {RON_ERR_BUSY, TALLY_BUSY},
        {RON_ERR_PREVAL_DROP_OLDEST, TALLY_EVICTED},
        {RON_ERR_COMMIT_BACKPRESSURE, TALLY_BACKPRESSURE},
        {RON_ERR_PERSISTENCE_FULL, TALLY_FULL},
        {RON_ERR_DRAINING, TALLY_DRAINING},
        {RON_ERR_TIMEOUT, TALLY_TIMEOUT},
        {RON_ERR_NOT_READY, TALLY_NO_PREVALIDATOR},
    };

    for (size_t i = 0; i < RON_ARRAY_COUNT(table); i++)
        if (table[i].err == err)
            tally_add(table[i].kind, 1);
}

void sim_check_refusal(struct sim_world *world, unsigned key, enum ron_err err)
{
    const enum sim_kind kind = sim_kind_of(key);

    RON_ASSERT(
        err == RON_ERR_BUSY || err == RON_ERR_PREVAL_DROP_OLDEST ||
        err == RON_ERR_COMMIT_BACKPRESSURE || err == RON_ERR_DRAINING || err == RON_ERR_TIMEOUT ||
        (err == RON_ERR_INSUFFICIENT_FUNDS && (kind == SIM_TRANSFER || kind == SIM_NONCE)) ||
        (err == RON_ERR_NONCE_CONFLICT && kind == SIM_NONCE) ||
        (err == RON_ERR_PERSISTENCE_FULL && sim_may_fail(world)) ||
        (err == RON_ERR_SAFE_MODE && (sim_may_fail(world) || world->weather == SIM_SLOW)) ||
        ((err == RON_ERR_INTERNAL || err == RON_ERR_NOT_READY) && world->weather == SIM_PANICS) ||
        (err == RON_ERR_NO_MEMORY && world->weather == SIM_MEMORY));
    /* What was acknowledged is found again, or one is told to come back; never refused for good. */
    RON_ASSERT(!world->known[key] ||
               (err != RON_ERR_INSUFFICIENT_FUNDS && err != RON_ERR_NONCE_CONFLICT));
    world->was_full = world->was_full || err == RON_ERR_PERSISTENCE_FULL;
    tally_refusal(err);
}

void sim_check_outcome(struct sim_world *world, struct ledger_service *service, unsigned key,
                       const struct ledger_outcome *outcome)
{
    const struct ledger_reply *reply = &outcome->reply;
    const struct ledger_root head = ledger_read_head(service);

    RON_ASSERT(head.batch >= world->head_batch); /* never back, crashes or not */
    world->head_batch = head.batch;
    check_root(world, &head);
    if (outcome->err != RON_ERR_OK) {
        tally_add(TALLY_UNKNOWN, outcome->unknown ? 1 : 0);
        sim_check_refusal(world, key, outcome->err);
        return;
    }
    RON_ASSERT(head.seq >= reply->seq_end); /* published before it is answered */
    RON_ASSERT(reply->seq_start == reply->seq_end);
    check_root(world,
               &(struct ledger_root){reply->seq_end, reply->batch, reply->commit_ms, reply->root});
    if (world->known[key]) /* byte for byte, crashes or not */
        RON_ASSERT(memcmp(&world->replies[key], reply, sizeof(*reply)) == 0);
    world->known[key] = true;
    world->replies[key] = *reply;
    tally_add(TALLY_ACKNOWLEDGED, 1);
    tally_add(TALLY_REPEATED, outcome->repeated ? 1 : 0);
    tally_add(TALLY_FULL_ENDED, world->was_full ? 1 : 0);
    world->was_full = false;
}

/* --- The log -----------------------------------------------------------------------------------
 */

enum { ALICE, BOB, CAROL, ACCOUNTS_COUNT };

struct reading {
    struct sim_world *world;
    struct ron_sha256 root;
    bool seen[SIM_KEYS_COUNT];
    uint64_t seq_last, commit_ms_last;
    uint64_t minted;
    uint64_t balances[ACCOUNTS_COUNT];
};

static void replay_entry(struct reading *reading, unsigned key, const struct ledger_frame *frame)
{
    const struct sim_world *world = reading->world;
    const uint64_t amount = key + 1;

    RON_ASSERT(!reading->seen[key]); /* nothing twice */
    RON_ASSERT(world->asked[key]);   /* nothing of its own */
    reading->seen[key] = true;
    switch (sim_kind_of(key)) {
    case SIM_MINT:
    case SIM_ID_ONLY:
        reading->minted += amount;
        reading->balances[key % 8 == 3 ? CAROL : ALICE] += amount;
        break;
    case SIM_TRANSFER:
        RON_ASSERT(reading->balances[ALICE] >= amount);
        reading->balances[ALICE] -= amount;
        reading->balances[BOB] += amount;
        break;
    case SIM_NONCE:
        RON_ASSERT(reading->balances[CAROL] >= amount);
        reading->balances[CAROL] -= amount;
        reading->balances[BOB] += amount;
        break;
    }
    if (!world->known[key])
        return;
    RON_ASSERT(world->replies[key].batch == frame->batch);
    RON_ASSERT(world->replies[key].seq_start == frame->seq_start);
    RON_ASSERT(memcmp(&world->replies[key].root, &frame->root, sizeof(frame->root)) == 0);
}

static enum ron_err read_frame(void *context, uint64_t number, struct ron_slice bytes,
                               struct ron_errinfo *reterr)
{
    struct reading *reading = context;
    struct ledger_frame frame;
    struct ledger_entry entry;

    (void)reterr;
    model_must(ledger_frame_decode(bytes, &frame, NULL));
    RON_ASSERT(frame.batch == number);
    RON_ASSERT(frame.entries_count == 1);
    RON_ASSERT(frame.seq_start == reading->seq_last + 1); /* no gap */
    RON_ASSERT(memcmp(&frame.previous_root, &reading->root, sizeof(frame.root)) == 0);
    RON_ASSERT(frame.stamp.commit_ms >= reading->commit_ms_last);
    reading->seq_last = frame.seq_start;
    reading->root = frame.root;
    reading->commit_ms_last = frame.stamp.commit_ms;
    check_root(reading->world,
               &(struct ledger_root){frame.seq_start, number, frame.stamp.commit_ms, frame.root});
    if (frame.stamp.caller == LEDGER_CALLER_LEDGER)
        return RON_ERR_OK; /* the Anchor of a snapshot */
    memcpy(&entry, frame.entries.data, sizeof(entry));
    RON_ASSERT(entry.amount.v >= 1 && entry.amount.v <= SIM_KEYS_COUNT);
    replay_entry(reading, (unsigned)entry.amount.v - 1, &frame);
    return RON_ERR_OK;
}

static uint64_t balance_of(struct ledger_service *service, struct ron_slice account)
{
    const struct ledger_id id = ledger_account_id("", account);
    struct ledger_balance balance;

    ledger_read_balance(service, &id, 1, &balance);
    return (uint64_t)balance.amount.v;
}

void sim_check_log(struct sim_world *world, struct ledger_service *service)
{
    struct reading reading = {.world = world, .root = ron_merkle_empty};
    struct ledger_health health;
    uint64_t balances[ACCOUNTS_COUNT];

    ledger_read_health(service, &health);
    if (health.status.state == RT_LIFE_SAFE_MODE) {
        sim_check_fault(world);
        return;
    }
    RON_ASSERT(health.head.batch >= world->head_batch);
    if (health.head.batch > 0 && ledger_service_read_each(service, 1, health.head.batch, read_frame,
                                                          &reading, NULL) != RON_ERR_OK) {
        sim_check_fault(world);
        return;
    }
    RON_ASSERT(health.head.batch == 0 ||
               memcmp(&health.head.root, &reading.root, sizeof(reading.root)) == 0);
    for (unsigned i = 0; i < SIM_KEYS_COUNT; i++)
        RON_ASSERT(!world->known[i] || reading.seen[i]); /* nothing acknowledged is lost */
    balances[ALICE] = balance_of(service, RON_SLICE("alice"));
    balances[BOB] = balance_of(service, RON_SLICE("bob"));
    balances[CAROL] = balance_of(service, RON_SLICE("carol"));
    RON_ASSERT(memcmp(balances, reading.balances, sizeof(balances)) == 0);
    RON_ASSERT(balances[ALICE] + balances[BOB] + balances[CAROL] == reading.minted);
}

void sim_check_closed(const struct sim_world *world)
{
    const struct io_log_check_options options = {.vfs = world->disk.memory, .dir = "log"};
    struct io_log_found found = {0};

    model_must(io_log_check(&options, &found, NULL));
    RON_ASSERT(found.torn_bytes == 0);
    RON_ASSERT(found.last_index >= world->head_batch);
}
