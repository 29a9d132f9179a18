/*
 * ledger_fixture.h - a ledger core under test, with entries written as lines of text.
 * tidy: long file because all ledger tests share it and nothing else does.
 *
 *     applies(f, "Transfer id=t1 from=alice to=bob asset=roc amount=40 nonce=1", NULL);
 *     refuses(f, RON_ERR_NONCE_CONFLICT, 0, "Burn id=b1 ...", NULL);
 *
 * Every refusal is checked to leave no trace (the digest of the state), every application to keep
 * the invariants; each applied batch is also replayed from its frame into a second core, which must
 * become the same.
 */
#ifndef RON_TESTS_LEDGER_FIXTURE_H
#define RON_TESTS_LEDGER_FIXTURE_H

#include "support.h"

#include <stdio.h>

#include "base/decimal.h"
#include "ledger/core.h"
#include "ledger/core_batch.h"
#include "ledger/core_frame.h"

enum { FIXTURE_OPS = 130, FIXTURE_TEXT = 1 << 16, FIXTURE_FRAME = 1 << 20, NO_INDEX = -1 };

struct fixture {
    struct ledger_core *core;
    struct ledger_core *shadow;
    struct ledger_replay *replay;
    struct ledger_batch batch;
    struct ledger_command command;
    struct ledger_op ops[FIXTURE_OPS];
    struct ledger_bare_op bare_ops[FIXTURE_OPS];
    struct ledger_result result;
    struct ledger_refusal refusal;
    struct ron_errinfo info;
    bool hold_commits; /* leave the batch pending: sealed, not committed */
    char texts[FIXTURE_TEXT];
    size_t texts_size;
    uint8_t frame[FIXTURE_FRAME];
    size_t frame_size;
    struct ron_sha256 root; /* of the tree, after the last applied batch */
};

#define S(text) ron_slice_text(text)

static inline struct ledger_capacity fixture_capacity(void)
{
    struct ledger_capacity capacity = ledger_capacity_of(4096);

    capacity.entries_window = 10000;
    capacity.pending_max = 8;
    return capacity;
}

static inline struct fixture *fixture_new(const struct ledger_capacity *capacity,
                                          const struct ledger_archive *archive)
{
    struct fixture *f = ron_mem_alloc(sizeof(*f));

    assert_non_null(f);
    assert_ok(ledger_core_new(capacity, archive, &f->core, &f->info));
    assert_ok(ledger_core_new(capacity, archive, &f->shadow, &f->info));
    assert_ok(ledger_replay_new(f->shadow, &f->replay, &f->info));
    assert_ok(ledger_batch_init(&f->batch, LEDGER_BATCH_ENTRIES_MAX, 1 << 20, &f->info));
    f->command.stamp.commit_ms = 1000;
    memcpy(f->command.stamp.capability, "capablty", LEDGER_CAPABILITY_SIZE);
    return f;
}

static inline int fixture_setup(void **state)
{
    struct ledger_capacity capacity = fixture_capacity();

    *state = fixture_new(&capacity, NULL);
    return 0;
}

static inline int fixture_teardown(void **state)
{
    struct fixture *f = *state;

    ledger_batch_fini(&f->batch);
    (void)ledger_replay_free(f->replay);
    (void)ledger_core_free(f->shadow);
    (void)ledger_core_free(f->core);
    (void)ron_mem_free(f);
    return 0;
}

/* A copy of text that lives as long as the fixture's command. */
static inline struct ron_slice fixture_copy(struct fixture *f, const char *text, size_t size)
{
    char *copy = f->texts + f->texts_size;

    assert_true(size < sizeof(f->texts) - f->texts_size);
    memcpy(copy, text, size);
    f->texts_size += size;
    return ron_slice_of(copy, size);
}

static inline void fixture_member(struct ledger_wire_entry *wire, struct ron_slice name,
                                  struct ron_slice value)
{
    const struct {
        const char *name;
        struct ron_slice *member;
    } members[] = {
        {"id", &wire->id},
        {"from", &wire->from},
        {"to", &wire->to},
        {"account", &wire->account},
        {"hold_id", &wire->hold_id},
        {"payee", &wire->payee},
        {"expires_at", &wire->expires_at},
        {"ref", &wire->ref},
        {"stream", &wire->stream},
        {"digest", &wire->digest},
        {"asset", &wire->asset},
        {"amount", &wire->amount},
        {"memo", &wire->memo},
        {"meta", &wire->meta},
    };

    for (size_t i = 0; i < RON_ARRAY_COUNT(members); i++)
        if (ron_slice_equal(name, S(members[i].name))) {
            *members[i].member = value;
            return;
        }
    if (ron_slice_equal(name, S("nonce"))) {
        wire->has_nonce = true;
        assert_ok(ron_decimal_parse_u64(value, &wire->nonce, NULL));
    } else if (ron_slice_equal(name, S("ts"))) {
        wire->has_ts = true;
        assert_ok(ron_decimal_parse_u64(value, &wire->ts_ms, NULL));
    } else {
        fail_msg("no member %.*s", RON_SLICE_FMT(name));
    }
}

/* "Kind name=value name=value"; RAW lines start with the id of a payout instead of a kind. */
static inline struct ledger_wire_entry fixture_wire(struct fixture *f, const char *line)
{
    struct ledger_wire_entry wire = {.has_nonce = false};
    const char *at = line + strcspn(line, " ");

    wire.kind = fixture_copy(f, line, (size_t)(at - line));
    while (*at == ' ') {
        const char *name = at + 1;
        const char *value = name + strcspn(name, "=") + 1;
        size_t size = strcspn(value, " ");

        fixture_member(&wire, ron_slice_of(name, (size_t)(value - 1 - name)),
                       fixture_copy(f, value, size));
        at = value + size;
    }
    return wire;
}

static inline void fixture_add(struct fixture *f, const char *line)
{
    struct ledger_wire_entry wire = fixture_wire(f, line);

    assert_true(f->command.ops_count < FIXTURE_OPS);
    assert_int_equal(ledger_shape_entry(f->command.stamp.tenant, &wire,
                                        &f->ops[f->command.ops_count++], &f->info),
                     RON_ERR_OK);
}

/* Apply f->command as it stands; the frame goes to the shadow. */
static inline enum ron_err fixture_apply(struct fixture *f)
{
    struct ron_b3 before = ledger_core_digest(f->core);
    enum ron_err err;
    struct ron_b3 after;

    f->command.ops = f->ops;
    f->info.message[0] = '\0';
    err = ledger_core_apply(f->core, &f->command, &f->batch, &f->result, &f->refusal, &f->info);
    after = ledger_core_digest(f->core);
    if (err != RON_ERR_OK || !f->result.applied) {
        assert_memory_equal(before.bytes, after.bytes, RON_B3_SIZE);
    } else {
        ledger_core_seal(f->core, &f->batch);
        f->root = f->batch.root;
        f->frame_size = ledger_frame_size(&f->batch);
        assert_true(f->frame_size <= sizeof(f->frame));
        ledger_frame_encode(&f->batch, f->frame);
        if (!f->hold_commits) {
            struct ron_b3 shadow;

            ledger_core_commit(f->core, &f->batch);
            if (ledger_replay_frame(f->replay, ron_slice_of(f->frame, f->frame_size), &f->info) !=
                RON_ERR_OK)
                fail_msg("replay: %s", f->info.message);
            shadow = ledger_core_digest(f->shadow);
            assert_memory_equal(shadow.bytes, after.bytes, RON_B3_SIZE);
        }
    }
    if (!f->hold_commits && ledger_core_check(f->core) != NULL)
        fail_msg("invariant %s", ledger_core_check(f->core));
    f->command.ops_count = 0;
    f->command.bare_ops = NULL;
    f->texts_size = 0;
    return err;
}

static inline void fixture_lines(struct fixture *f, const char *first, va_list lines)
{
    f->command.kind = LEDGER_COMMAND_INGEST;
    for (const char *line = first; line != NULL; line = va_arg(lines, const char *))
        fixture_add(f, line);
}

/* Apply a batch of lines (the last argument is NULL). */
static inline void applies(struct fixture *f, const char *first, ...)
{
    va_list lines;

    va_start(lines, first);
    fixture_lines(f, first, lines);
    va_end(lines);
    if (fixture_apply(f) != RON_ERR_OK)
        fail_msg("%s: %s", ron_err_name(f->info.err), f->info.message);
}

static inline void fixture_refused(const struct fixture *f, enum ron_err err, enum ron_err expected,
                                   int index)
{
    if (err != expected)
        fail_msg("%s instead of %s: %s", ron_err_name(err), ron_err_name(expected),
                 f->info.message);
    assert_int_equal((f->refusal.present & LEDGER_DETAIL_INDEX) != 0, index != NO_INDEX);
    if (index != NO_INDEX)
        assert_int_equal(f->refusal.index, index);
}

static inline void refuses(struct fixture *f, enum ron_err expected, int index, const char *first,
                           ...)
{
    va_list lines;

    va_start(lines, first);
    fixture_lines(f, first, lines);
    va_end(lines);
    fixture_refused(f, fixture_apply(f), expected, index);
}

/* The refusal of the last command names this limit, or has this available. */
static inline void limit_is(const struct fixture *f, const char *limit)
{
    assert_true((f->refusal.present & LEDGER_DETAIL_LIMIT) != 0);
    assert_string_equal(f->refusal.limit, limit);
}

static inline struct ron_u128 amount_of(const char *text)
{
    struct ron_u128 amount;

    assert_ok(ron_decimal_parse_u128(S(text), &amount, NULL));
    return amount;
}

static inline void available_is(const struct fixture *f, const char *text)
{
    assert_true((f->refusal.present & LEDGER_DETAIL_AVAILABLE) != 0);
    assert_int_equal(ron_u128_compare(f->refusal.available, amount_of(text)), 0);
}

/* The committed balance, "-5" for a debt, of "name" in an asset. */
static inline void balance_is(const struct fixture *f, const char *name, const char *asset,
                              const char *expected)
{
    struct ledger_id id = ledger_account_id("", S(name));
    char text[RON_DECIMAL_U128_SIZE + 1] = "-";
    struct ledger_balance balance;
    uint32_t number = 0;

    assert_true(ledger_core_find_asset(f->core, S(asset), &number));
    ledger_core_balance(f->core, &id, number, &balance);
    (void)ron_decimal_print_u128(balance.amount, text + 1);
    assert_string_equal(balance.negative ? text : text + 1, expected);
}

static inline uint64_t nonce_of(const struct fixture *f, const char *name)
{
    struct ledger_id id = ledger_account_id("", S(name));
    struct ledger_balance balance;

    ledger_core_balance(f->core, &id, 1, &balance);
    return balance.next_nonce;
}

static inline enum ron_err fixture_asset(struct fixture *f, const char *name, uint32_t decimals,
                                         const char *max_supply)
{
    f->command.kind = LEDGER_COMMAND_ASSET;
    f->command.asset = (struct ledger_asset_terms){S(name), decimals, amount_of(max_supply)};
    return fixture_apply(f);
}

static inline enum ron_err fixture_limits(struct fixture *f, struct ledger_limit_terms terms)
{
    f->command.kind = LEDGER_COMMAND_LIMITS;
    f->command.limits = terms;
    return fixture_apply(f);
}

static inline enum ron_err fixture_expire(struct fixture *f, uint64_t commit_ms)
{
    f->command.kind = LEDGER_COMMAND_EXPIRE;
    f->command.stamp.commit_ms = commit_ms;
    return fixture_apply(f);
}

#endif
