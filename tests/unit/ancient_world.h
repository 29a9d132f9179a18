/*
 * ancient_world.h - a ledger on its file engine, on a disk in memory, with windows of a few entries
 * over segments of 8 KiB, filled with batches that the windows have long forgotten.
 */
#ifndef RON_TESTS_ANCIENT_WORLD_H
#define RON_TESTS_ANCIENT_WORLD_H

#include "service_fixture.h"

#include "io/vfs_memory.h"

enum { WINDOW = 64 };

struct ancient {
    struct service_fixture *f;
    struct io_vfs *vfs;
    struct ledger_engine *engine;
    unsigned batches_count;
    struct ledger_reply mint, moved; /* of "m0" and of "t1", alice's nonce 1 */
};

static inline void world_open(struct ancient *world) RON_BLOCKS
{
    const struct ledger_engine_file_options options = {.vfs = world->vfs,
                                                       .dir = "log",
                                                       .segment_bytes = 8192,
                                                       .ahead_bytes = 4096,
                                                       .group_bytes = 4096,
                                                       .record_bytes_max = 4096};

    assert_ok(ledger_engine_file_open(&options, &world->engine, NULL));
    world->f->options.engine = world->engine;
    fixture_start(world->f);
}

static inline void world_close(struct ancient *world) RON_BLOCKS
{
    fixture_stop(world->f);
    world->engine = ledger_engine_file_free(world->engine);
}

/* Ask until it is not Busy: the index of a sealed segment is on its way. */
static inline struct call *ask_patiently(struct ancient *world, struct call *call) RON_BLOCKS
{
    struct ledger_outcome *outcome;

    for (;;) {
        outcome = ask(world->f, call);
        if (outcome->err != RON_ERR_BUSY)
            return call;
        rt_atomic_store_u32(&call->answers_count, 0);
        *outcome = (struct ledger_outcome){.err = RON_ERR_OK};
    }
}

static inline struct call *one(struct ancient *world, const char *id, const char *from,
                               const char *to, uint64_t amount, const char *key)
{
    world->f->calls_count = 0; /* the one before was answered */
    return call_new(world->f, id, from, to, amount, key);
}

static inline struct ledger_reply commit(struct ancient *world, struct call *call) RON_BLOCKS
{
    if (ask_patiently(world, call)->request.outcome.err != RON_ERR_OK)
        fail_msg("%s", call->request.outcome.info.message);
    assert_false(call->request.outcome.repeated);
    return call->request.outcome.reply;
}

static inline void world_fill(struct ancient *world) RON_BLOCKS
{
    char id[TEXT_SIZE];
    struct call *call;

    world->mint = commit(world, one(world, "m0", NULL, "alice", 100, "first"));
    call = one(world, "t1", "alice", "bob", 7, NULL);
    call->wire.has_nonce = true;
    call->wire.nonce = 1;
    world->moved = commit(world, call);
    for (unsigned i = 0; i < world->batches_count; i++) {
        (void)snprintf(id, sizeof(id), "n%u", i);
        (void)commit(world, one(world, id, NULL, "carol", 1, id));
    }
}

static inline struct ancient world_new(unsigned batches_count) RON_BLOCKS
{
    struct ancient world = {.f = fixture_new(), .batches_count = batches_count};

    world.f->options.capacity.entries_window = WINDOW;
    world.f->options.capacity.keys_window = WINDOW;
    world.f->options.capacity.batches_window = WINDOW;
    assert_ok(io_vfs_memory_new(NULL, &world.vfs, NULL));
    return world;
}

static inline void world_free(struct ancient *world) RON_BLOCKS
{
    world_close(world);
    (void)io_vfs_free(world->vfs);
    fixture_free(world->f);
}

static inline void answers_as_before(struct ancient *world, struct call *call,
                                     const struct ledger_reply *reply) RON_BLOCKS
{
    const struct ledger_outcome *outcome = &ask_patiently(world, call)->request.outcome;

    assert_int_equal(outcome->err, RON_ERR_OK);
    assert_true(outcome->repeated);
    assert_memory_equal(&outcome->reply, reply, sizeof(*reply));
}

static inline void refuses_it(struct ancient *world, struct call *call, enum ron_err err) RON_BLOCKS
{
    assert_int_equal(ask_patiently(world, call)->request.outcome.err, err);
}

static inline struct call *with_nonce(struct call *call, uint64_t nonce)
{
    call->wire.has_nonce = true;
    call->wire.nonce = nonce;
    return call;
}

/* What was handed in at the very beginning is known in every way it can be asked for. */
static inline void knows_the_beginning(struct ancient *world) RON_BLOCKS
{
    struct call *call;

    answers_as_before(world, one(world, "m0", NULL, "alice", 100, NULL), &world->mint);
    answers_as_before(world, one(world, "m0", NULL, "alice", 100, "first"), &world->mint);
    refuses_it(world, one(world, "m0", NULL, "alice", 101, NULL), RON_ERR_CONFLICT);
    answers_as_before(world, with_nonce(one(world, "t1", "alice", "bob", 7, NULL), 1),
                      &world->moved);
    answers_as_before(world, with_nonce(one(world, "other", "alice", "bob", 7, NULL), 1),
                      &world->moved); /* by account and nonce alone */
    refuses_it(world, with_nonce(one(world, "other", "alice", "bob", 8, NULL), 1),
               RON_ERR_NONCE_CONFLICT);
    call = one(world, "x", NULL, "alice", 1, "first");
    call->request.command.fingerprint.bytes[0] = 1;
    refuses_it(world, call, RON_ERR_IDEMPOTENCY_CONFLICT);
}

static inline struct call *reverse(struct ancient *world, const char *id, uint64_t amount)
{
    struct call *call = one(world, id, NULL, "", amount, NULL);

    call->wire.kind = S("Reverse");
    call->wire.to = (struct ron_slice){NULL, 0};
    call->wire.ref = S("t1");
    return call;
}

#endif
