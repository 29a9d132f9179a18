/*
 * ledger_world.h - a small ledger with something of everything in it, for the ledger's fuzz
 * targets.
 *
 * One core is used for many inputs: an input that was refused must leave it as it was (the digest
 * says so), one that was applied is checked and then forgotten by going back to the first state.
 */
#ifndef RON_FUZZ_LEDGER_WORLD_H
#define RON_FUZZ_LEDGER_WORLD_H

#include "base/assert.h"
#include "ledger/core_batch.h"
#include "ledger/core_frame.h"
#include "ledger/core_snapshot.h"
#include "ledger_lines.h"

enum { WORLD_SNAPSHOT_MAX = 1 << 20, WORLD_FRAME_MAX = 1 << 20 };

struct world {
    struct ledger_core *core;
    struct ledger_replay *replay;
    struct ledger_batch batch;
    struct lines lines;
    struct ron_buf first; /* the first state, as a snapshot */
    struct ron_merkle_frontier tree;
};

#define WORLD_STAMP  "\"tenant\":\"0\",\"caller\":\"direct\",\"capability\":\"0102030405060708\""
#define WORLD_DIGEST "b3:5555555555555555555555555555555555555555555555555555555555555555"

/* What the first state is made of; also the seeds of the corpora. */
static const char *const world_script[] = {
    "{\"cmd\":\"asset\",\"commit_ms\":1000," WORLD_STAMP
    ",\"asset\":\"usd\",\"decimals\":2,\"max_supply\":\"5000\"}",
    "{\"cmd\":\"ingest\",\"commit_ms\":1000," WORLD_STAMP ",\"key\":\"k\",\"fingerprint\":"
    "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",\"batch\":["
    "{\"id\":\"m1\",\"kind\":\"Mint\",\"to\":\"alice\",\"asset\":\"roc\",\"amount\":\"1000\"},"
    "{\"id\":\"m2\",\"kind\":\"Mint\",\"to\":\"pool/0/main\",\"asset\":\"roc\",\"amount\":\"90\"},"
    "{\"id\":\"t1\",\"kind\":\"Transfer\",\"from\":\"alice\",\"to\":\"bob\",\"asset\":\"roc\","
    "\"amount\":\"40\",\"nonce\":1,\"memo\":\"hi\",\"meta\":{\"a\":1}},"
    "{\"id\":\"h1\",\"kind\":\"Hold\",\"from\":\"alice\",\"hold_id\":\"H\",\"payee\":\"shop\","
    "\"expires_at\":\"2030-01-01T00:00:00Z\",\"asset\":\"roc\",\"amount\":\"30\",\"nonce\":2},"
    "{\"id\":\"h2\",\"kind\":\"Hold\",\"from\":\"bob\",\"hold_id\":\"A\",\"payee\":\"*\","
    "\"expires_at\":\"1970-01-01T00:00:02Z\",\"asset\":\"roc\",\"amount\":\"9\"},"
    "{\"id\":\"c1\",\"kind\":\"Capture\",\"hold_id\":\"H\",\"asset\":\"roc\",\"amount\":\"4\"},"
    "{\"id\":\"r1\",\"kind\":\"Release\",\"hold_id\":\"A\",\"asset\":\"roc\",\"amount\":\"1\"},"
    "{\"id\":\"u1\",\"kind\":\"Burn\",\"from\":\"alice\",\"asset\":\"roc\",\"amount\":\"7\"},"
    "{\"id\":\"v1\",\"kind\":\"Reverse\",\"ref\":\"t1\",\"asset\":\"roc\",\"amount\":\"5\"},"
    "{\"id\":\"l1\",\"kind\":\"Credit\",\"account\":\"carol\",\"asset\":\"roc\",\"amount\":\"3\"},"
    "{\"id\":\"l2\",\"kind\":\"Debit\",\"account\":\"alice\",\"asset\":\"roc\",\"amount\":\"3\"},"
    "{\"id\":\"a1\",\"kind\":\"Anchor\",\"stream\":\"mine\",\"ref\":\"r\",\"digest\":"
    "\"" WORLD_DIGEST "\"}]}",
    "{\"cmd\":\"limits\",\"commit_ms\":1000," WORLD_STAMP
    ",\"account\":\"bob\",\"asset\":\"roc\",\"minimum\":\"1\",\"maximum\":\"500\","
    "\"credit_line\":\"20\",\"daily\":\"300\",\"frozen\":false}",
    "{\"cmd\":\"intents\",\"commit_ms\":1000," WORLD_STAMP
    ",\"fingerprint\":\"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\","
    "\"epoch_id\":\"e1\",\"run_key\":\"rk\",\"commitment\":\"" WORLD_DIGEST
    "\",\"funding_source\":\"main\",\"asset\":\"roc\",\"total\":\"50\",\"chunk\":0,\"chunks\":2,"
    "\"payouts\":[{\"id\":\"p1\",\"to\":\"dave\",\"amount\":\"20\"}]}",
    "{\"cmd\":\"slice\",\"commit_ms\":1000," WORLD_STAMP
    ",\"dimension\":\"bytes\",\"seq\":0,\"digest\":\"" WORLD_DIGEST
    "\",\"prev\":\"b3:0000000000000000000000000000000000000000000000000000000000000000\"}",
    "{\"cmd\":\"open\",\"commit_ms\":1000," WORLD_STAMP ",\"names\":[\"new1\",\"alice\",\"new2\"]}",
};

/* Seeds for what comes after: each can be applied to the first state. */
static const char *const world_next[] = {
    "{\"cmd\":\"expire\",\"commit_ms\":2000," WORLD_STAMP "}",
    "{\"cmd\":\"abandon\",\"commit_ms\":1000," WORLD_STAMP
    ",\"epoch_id\":\"e1\",\"run_key\":\"rk\"}",
    "{\"cmd\":\"intents\",\"commit_ms\":1000," WORLD_STAMP
    ",\"fingerprint\":\"cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc\","
    "\"epoch_id\":\"e1\",\"run_key\":\"rk\",\"commitment\":\"" WORLD_DIGEST
    "\",\"funding_source\":\"main\",\"asset\":\"roc\",\"total\":\"50\",\"chunk\":1,\"chunks\":2,"
    "\"payouts\":[{\"id\":\"p2\",\"to\":\"erin\",\"amount\":\"30\"}]}",
    "{\"cmd\":\"slice\",\"commit_ms\":1000," WORLD_STAMP
    ",\"dimension\":\"bytes\",\"seq\":1,\"digest\":\"" WORLD_DIGEST "\",\"prev\":\"" WORLD_DIGEST
    "\"}",
    "{\"cmd\":\"ingest\",\"commit_ms\":1500," WORLD_STAMP
    ",\"batch\":[{\"id\":\"x1\",\"kind\":\"Transfer\",\"from\":\"alice\",\"to\":\"zoe\","
    "\"asset\":\"roc\",\"amount\":\"5\",\"nonce\":3,\"ts\":1500},{\"id\":\"x2\",\"kind\":"
    "\"Capture\",\"hold_id\":\"A\",\"to\":\"yan\",\"asset\":\"roc\",\"amount\":\"2\"}]}",
    "{\"cmd\":\"ingest\",\"commit_ms\":1500," WORLD_STAMP
    ",\"batch\":[{\"id\":\"000102030405060708090a0b0c0d0e0f\",\"kind\":\"Mint\",\"to\":\"bob\","
    "\"asset\":\"roc\",\"amount\":\"5\"}]}",
    "{\"cmd\":\"open\",\"commit_ms\":1000," WORLD_STAMP ",\"names\":[\"new3\"]}",
    "{\"cmd\":\"limits\",\"commit_ms\":1000," WORLD_STAMP ",\"account\":\"alice\",\"frozen\":true}",
    "{\"cmd\":\"asset\",\"commit_ms\":1000," WORLD_STAMP
    ",\"asset\":\"eur\",\"decimals\":0,\"max_supply\":\"1\"}",
};

#define WORLD_MUST(call)                     \
    do {                                     \
        enum ron_err world_err = (call);     \
        RON_ASSERT(world_err == RON_ERR_OK); \
    } while (0)

static inline struct ledger_capacity world_capacity(void)
{
    struct ledger_capacity capacity = ledger_capacity_of(64);

    capacity.entries_window = 256;
    capacity.names_size_max = 1 << 14;
    capacity.pending_max = 4;
    return capacity;
}

static inline enum ron_err world_keep(void *context, struct ron_slice bytes,
                                      struct ron_errinfo *reterr)
{
    return ron_buf_append(context, bytes.data, bytes.size, reterr);
}

/* After a batch was applied: seal it and take it over; everything must hold. */
static inline void world_commit(struct world *w)
{
    const char *broken;

    ledger_core_seal(w->core, &w->batch);
    ledger_core_commit(w->core, &w->batch);
    w->tree = ledger_core_frontier(w->core);
    broken = ledger_core_check(w->core);
    RON_ASSERT(broken == NULL);
}

/* One line into the core: refused without trace, or applied. True if it was. */
static inline bool world_line(struct world *w, struct ron_slice text)
{
    struct ron_b3 before = ledger_core_digest(w->core);
    struct ledger_command command;
    struct ledger_refusal refusal;
    struct ledger_result result = {.applied = false};
    struct ron_errinfo info;
    struct line line;
    struct ron_b3 after;

    if (lines_read(&w->lines, text, &line, &info) != RON_ERR_OK || lines_kind(&line) == 0 ||
        lines_command(&w->lines, &line, &command, &refusal, &info) != RON_ERR_OK)
        return false;
    if (ledger_core_apply(w->core, &command, &w->batch, &result, &refusal, &info) == RON_ERR_OK &&
        result.applied)
        return true;
    after = ledger_core_digest(w->core);
    RON_ASSERT(memcmp(before.bytes, after.bytes, RON_B3_SIZE) == 0);
    return false;
}

static inline void world_build(struct world *w)
{
    struct ledger_capacity capacity = world_capacity();

    WORLD_MUST(lines_init(&w->lines, NULL));
    WORLD_MUST(ledger_batch_init(&w->batch, LEDGER_BATCH_ENTRIES_MAX, 1 << 20, NULL));
    WORLD_MUST(ledger_core_new(&capacity, NULL, &w->core, NULL));
    WORLD_MUST(ledger_replay_new(w->core, &w->replay, NULL));
    for (size_t i = 0; i < RON_ARRAY_COUNT(world_script); i++) {
        bool applied = world_line(w, ron_slice_text(world_script[i]));

        RON_ASSERT(applied);
        world_commit(w);
    }
    ron_buf_init(&w->first, WORLD_SNAPSHOT_MAX);
    WORLD_MUST(ledger_snapshot_write(w->core, world_keep, &w->first, NULL));
}

/* A core in the first state; tree is not the core's any more. */
static inline struct ledger_core *world_first(const struct world *w)
{
    struct ledger_capacity capacity = world_capacity();
    struct ledger_core *core;

    WORLD_MUST(ledger_core_new(&capacity, NULL, &core, NULL));
    WORLD_MUST(ledger_snapshot_load(core, ron_buf_slice(&w->first), NULL));
    return core;
}

/* Back to the first state. */
static inline void world_again(struct world *w)
{
    (void)ledger_core_free(w->core);
    w->core = world_first(w);
}

#endif
