/*
 * test_ledger_holds.c - holds, limits, runs and slices. Method: as test_ledger_kinds.c.
 *
 * covers: LED-F03
 */
#include "ledger_fixture.h"

#define HOLD(id, hold, payee)                                 \
    "Hold id=" id " from=alice hold_id=" hold " payee=" payee \
    " expires_at=1970-01-01T00:01:00Z asset=roc amount=30"
enum { EXPIRES_MS = 60000 };

static void captures_share_what_is_held(void **state)
{
    struct fixture *f = *state;

    applies(f, "Mint id=m to=alice asset=roc amount=100", HOLD("h1", "H", "shop"), NULL);
    balance_is(f, "alice", "roc", "70");
    balance_is(f, "sys/hold/H", "roc", "30");
    applies(f, "Capture id=c1 hold_id=H asset=roc amount=20", NULL);
    assert_memory_equal(f->batch.entries[0].link.bytes,
                        ledger_entry_id(ron_u128_of(0), S("h1")).bytes, LEDGER_ID_SIZE);
    refuses(f, RON_ERR_INSUFFICIENT_FUNDS, 0, "Capture id=c2 hold_id=H asset=roc amount=11", NULL);
    available_is(f, "10");
    refuses(f, RON_ERR_INSUFFICIENT_FUNDS, 1, "Capture id=c2 hold_id=H asset=roc amount=6",
            "Capture id=c3 hold_id=H asset=roc amount=5", NULL);
    applies(f, "Capture id=c2 hold_id=H asset=roc amount=4",
            "Release id=r hold_id=H asset=roc amount=6", NULL);
    balance_is(f, "shop", "roc", "24");
    balance_is(f, "alice", "roc", "76");
    refuses(f, RON_ERR_INSUFFICIENT_FUNDS, 0, "Release id=r2 hold_id=H asset=roc amount=1", NULL);
    refuses(f, RON_ERR_CONFLICT, 0, HOLD("h2", "H", "shop"), NULL);
    refuses(f, RON_ERR_CONFLICT, 0, "Reverse id=x ref=c1 asset=roc amount=1", NULL);
    refuses(f, RON_ERR_CONFLICT, 0, "Reverse id=x ref=h1 asset=roc amount=1", NULL);
}

static void payees_are_fixed_or_any(void **state)
{
    struct fixture *f = *state;

    applies(f, "Mint id=m to=alice asset=roc amount=100", HOLD("h1", "F", "shop"),
            HOLD("h2", "A", "*"), NULL);
    refuses(f, RON_ERR_MALFORMED, 0, "Capture id=c hold_id=F to=shop asset=roc amount=1", NULL);
    refuses(f, RON_ERR_MALFORMED, 0, "Capture id=c hold_id=A asset=roc amount=1", NULL);
    refuses(f, RON_ERR_FORBIDDEN, 0, "Capture id=c hold_id=A to=sys/burn/roc asset=roc amount=1",
            NULL);
    refuses(f, RON_ERR_NOT_FOUND, 0, "Capture id=c hold_id=Z asset=roc amount=1", NULL);
    assert_ok(fixture_asset(f, "usd", 2, "1000"));
    refuses(f, RON_ERR_CONFLICT, 0, "Capture id=c hold_id=F asset=usd amount=1", NULL);
    applies(f, "Capture id=c hold_id=A to=bob asset=roc amount=3",
            "Capture id=d hold_id=F asset=roc amount=2", NULL);
    balance_is(f, "bob", "roc", "3");
    balance_is(f, "shop", "roc", "2");
}

/* What a capability covers, asked of the core: payees of holds, what a reversal debits, what a Mint
 * credits. */
static void covers_are_asked_where_only_the_core_knows(void **state)
{
    const struct ledger_cover shops = {.accounts = true, .account_glob = true, .account = S("sh")};
    const struct ledger_cover alice = {.accounts = true, .account = S("alice")};
    const struct ledger_cover all = {.accounts = true, .account_glob = true};
    struct fixture *f = *state;

    applies(f, "Mint id=m to=alice asset=roc amount=100", HOLD("h1", "F", "shop"),
            HOLD("h2", "A", "*"), "Transfer id=t from=alice to=bob asset=roc amount=9", NULL);
    f->command.cover = alice;
    refuses(f, RON_ERR_FORBIDDEN, 0, "Capture id=c hold_id=F asset=roc amount=1", NULL);
    refuses(f, RON_ERR_FORBIDDEN, 0, "Release id=r hold_id=F asset=roc amount=1", NULL);
    refuses(f, RON_ERR_FORBIDDEN, 0, "Reverse id=v ref=t asset=roc amount=1", NULL);
    refuses(f, RON_ERR_FORBIDDEN, 0, "Mint id=m2 to=bob asset=roc amount=1", NULL);
    refuses(f, RON_ERR_FORBIDDEN, 1, "Transfer id=t2 from=alice to=bob asset=roc amount=1",
            "Transfer id=t3 from=bob to=alice asset=roc amount=1", NULL);
    f->command.cover = shops;
    refuses(f, RON_ERR_FORBIDDEN, 0, "Release id=r hold_id=A asset=roc amount=1", NULL);
    refuses(f, RON_ERR_FORBIDDEN, 0, "Capture id=c hold_id=A to=bob asset=roc amount=1", NULL);
    applies(f, "Capture id=c hold_id=A to=shed asset=roc amount=1",
            "Capture id=d hold_id=F asset=roc amount=2",
            "Release id=e hold_id=F asset=roc amount=3", NULL);
    f->command.cover = all;
    applies(f, "Release id=r hold_id=A asset=roc amount=1", NULL);
    f->command.cover = (struct ledger_cover){.accounts = true, .account = S("bob")};
    applies(f, "Reverse id=v ref=t asset=roc amount=1", NULL);
    f->command.cover = (struct ledger_cover){.accounts = false};
}

static void holds_expire_into_the_log(void **state)
{
    struct fixture *f = *state;

    applies(f, "Mint id=m to=alice asset=roc amount=100", HOLD("h1", "B", "shop"),
            HOLD("h2", "A", "shop"),
            "Hold id=h3 from=alice hold_id=C payee=shop expires_at=1970-01-01T00:00:50Z asset=roc "
            "amount=5",
            "Capture id=c hold_id=B asset=roc amount=30", NULL);
    f->command.stamp.commit_ms = EXPIRES_MS - 1;
    refuses(f, RON_ERR_EXPIRED, 0, "Capture id=c2 hold_id=C asset=roc amount=1", NULL);
    applies(f, "Capture id=c2 hold_id=A asset=roc amount=1", NULL);
    f->command.stamp.tenant = ron_u128_of(5); /* ids of the Releases are the hold's tenant's */
    assert_ok(fixture_expire(f, EXPIRES_MS));
    assert_int_equal(f->batch.entries_count, 2);
    assert_int_equal(f->batch.entries[0].amount.v, 5); /* C came first */
    assert_int_equal(f->batch.entries[1].amount.v, 29);
    assert_int_equal(f->batch.entries[1].kind, LEDGER_RELEASE);
    assert_int_equal(f->batch.entries[1].flags, LEDGER_FLAG_BY_LEDGER);
    assert_memory_equal(f->batch.entries[1].id.bytes,
                        ledger_entry_id(ron_u128_of(0), S("expire/A")).bytes, LEDGER_ID_SIZE);
    assert_int_equal(ron_load_le64(f->batch.entries[1].capability), 0);
    balance_is(f, "alice", "roc", "69");
    balance_is(f, "sys/hold/A", "roc", "0");
    assert_ok(fixture_expire(f, EXPIRES_MS + 1));
    assert_false(f->result.applied);
    f->command.stamp.tenant = ron_u128_of(0);
    refuses(f, RON_ERR_EXPIRED, 0, "Release id=r hold_id=A asset=roc amount=1", NULL);
    refuses(f, RON_ERR_EXPIRED, 0, HOLD("h9", "Z", "shop"), NULL);
}

static void limits_bind_the_account(void **state)
{
    struct fixture *f = *state;
    struct ledger_limit_terms terms = {
        .account = S("alice"),
        .asset = S("roc"),
        .has_minimum = true,
        .minimum = ron_u128_of(20),
        .has_maximum = true,
        .maximum = ron_u128_of(100),
        .has_daily = true,
        .daily = ron_u128_of(50),
    };
    /* printf '{"account":"alice","asset":"roc","daily":"50","maximum":"100","minimum":"20"}' |
     * b3sum
     */
    static const uint8_t digest[32] = {0x01, 0x58, 0xd2, 0x48, 0x16, 0xe1, 0x40, 0x84,
                                       0xdb, 0x0c, 0x5a, 0x7b, 0xe3, 0x0b, 0xaa, 0x86,
                                       0x1f, 0xc2, 0x54, 0x10, 0xd0, 0xa5, 0xe0, 0x28,
                                       0x98, 0x42, 0x5d, 0xb2, 0x3d, 0xb9, 0xad, 0x03};

    applies(f, "Mint id=m to=alice asset=roc amount=90", NULL);
    applies(f, "Transfer id=t0 from=alice to=bob asset=roc amount=10", NULL);
    assert_ok(fixture_limits(f, terms));
    assert_int_equal(f->batch.entries[0].kind, LEDGER_ANCHOR);
    assert_memory_equal(f->batch.entries[0].debit.bytes, digest, LEDGER_ID_SIZE);
    assert_memory_equal(f->batch.entries[0].credit.bytes, digest + 16, LEDGER_ID_SIZE);
    refuses(f, RON_ERR_LIMIT_EXCEEDED, 0, "Mint id=m2 to=alice asset=roc amount=21", NULL);
    limit_is(f, "maximum");
    applies(f, "Mint id=m2 to=alice asset=roc amount=20", NULL);
    /* 10 of today's 50 were debited before the ceiling was set. */
    refuses(f, RON_ERR_LIMIT_EXCEEDED, 1, "Transfer id=t1 from=alice to=bob asset=roc amount=30",
            "Burn id=t2 from=alice asset=roc amount=11", NULL);
    limit_is(f, "daily");
    applies(f, "Transfer id=t1 from=alice to=bob asset=roc amount=40", NULL);
    /* The ceiling is of the UTC day. */
    f->command.stamp.commit_ms = 86400000 - 1;
    refuses(f, RON_ERR_LIMIT_EXCEEDED, 0, "Transfer id=t3 from=alice to=bob asset=roc amount=1",
            NULL);
    limit_is(f, "daily");
    f->command.stamp.commit_ms = 86400000;
    refuses(f, RON_ERR_LIMIT_EXCEEDED, 0, "Transfer id=t3 from=alice to=bob asset=roc amount=41",
            NULL);
    limit_is(f, "minimum");
    applies(f, "Transfer id=t3 from=alice to=bob asset=roc amount=40", NULL);
    balance_is(f, "alice", "roc", "20");
    terms.account = S("sys/burn/roc");
    fixture_refused(f, fixture_limits(f, terms), RON_ERR_FORBIDDEN, NO_INDEX);
    terms.account = S("alice");
    terms.asset = S("eur");
    fixture_refused(f, fixture_limits(f, terms), RON_ERR_NOT_FOUND, NO_INDEX);
}

static void credit_lines_are_drawn_to_the_end(void **state)
{
    struct fixture *f = *state;
    struct ledger_limit_terms terms = {
        .account = S("alice"),
        .asset = S("roc"),
        .has_credit_line = true,
        .credit_line = ron_u128_of(30),
    };

    assert_ok(fixture_limits(f, terms));
    refuses(f, RON_ERR_INSUFFICIENT_FUNDS, 0, "Transfer id=t from=alice to=bob asset=roc amount=1",
            NULL);
    available_is(f, "0"); /* never opened */
    applies(f, "Mint id=m to=alice asset=roc amount=10", NULL);
    refuses(f, RON_ERR_INSUFFICIENT_FUNDS, 0, "Transfer id=t from=alice to=bob asset=roc amount=41",
            NULL);
    available_is(f, "40");
    applies(f, "Transfer id=t from=alice to=bob asset=roc amount=35", NULL);
    balance_is(f, "alice", "roc", "-25");
    terms.credit_line = ron_u128_of(10);
    assert_ok(fixture_limits(f, terms));
    refuses(f, RON_ERR_INSUFFICIENT_FUNDS, 0, "Burn id=b from=alice asset=roc amount=1", NULL);
    available_is(f, "0");
    applies(f, "Transfer id=u from=bob to=alice asset=roc amount=30", NULL);
    balance_is(f, "alice", "roc", "5");
    /* With a line a balance stays below 2^127. */
    refuses(f, RON_ERR_LIMIT_EXCEEDED, 0,
            "Mint id=m2 to=alice asset=roc amount=170141183460469231731687303715884105723", NULL);
    limit_is(f, "maximum");
    applies(f, "Mint id=m2 to=alice asset=roc amount=170141183460469231731687303715884105722",
            "Mint id=m3 to=big asset=roc amount=170141183460469231731687303715884105720",
            "Mint id=m4 to=big asset=roc amount=2", NULL);
    terms.account = S("big");
    assert_ok(fixture_limits(f, terms));
    applies(f, "Transfer id=z from=big to=rich asset=roc amount=10", NULL);
}

static void overflow_refuses(void **state)
{
    struct fixture *f = *state;
    struct ledger_limit_terms terms = {
        .account = S("debtor"),
        .asset = S("roc"),
        .has_credit_line = true,
        .credit_line = ron_u128_of(30),
    };

    applies(f, "Mint id=m to=rich asset=roc amount=340282366920938463463374607431768211454",
            "Mint id=n to=debtor asset=roc amount=1", NULL);
    assert_ok(fixture_limits(f, terms));
    applies(f, "Transfer id=a from=debtor to=rich asset=roc amount=1", NULL);
    refuses(f, RON_ERR_LIMIT_EXCEEDED, 0, "Transfer id=b from=debtor to=rich asset=roc amount=1",
            NULL);
    limit_is(f, "maximum");
}

/* More than 2^128 - 1 in a day is more than any ceiling. */
static void daily_sums_do_not_wrap_or_stop(void **state)
{
#define ALL "340282366920938463463374607431768211455"
    struct fixture *f = *state;
    struct ledger_limit_terms terms = {
        .account = S("a"),
        .asset = S("roc"),
        .has_daily = true,
        .daily = RON_U128_MAX,
    };

    applies(f, "Mint id=m to=a asset=roc amount=" ALL, NULL);
    assert_ok(fixture_limits(f, terms));
    applies(f, "Transfer id=t1 from=a to=b asset=roc amount=" ALL,
            "Transfer id=t2 from=b to=a asset=roc amount=" ALL, NULL);
    refuses(f, RON_ERR_LIMIT_EXCEEDED, 0, "Transfer id=t3 from=a to=b asset=roc amount=1", NULL);
    limit_is(f, "daily");
    terms.account = S("b"); /* whose day went beyond before there was a ceiling */
    applies(f, "Reverse id=r ref=t2 asset=roc amount=9",
            "Transfer id=t4 from=b to=c asset=roc amount=9", NULL);
    assert_ok(fixture_limits(f, terms));
    applies(f, "Transfer id=t5 from=c to=b asset=roc amount=9", NULL);
    refuses(f, RON_ERR_LIMIT_EXCEEDED, 0, "Transfer id=t6 from=b to=c asset=roc amount=1", NULL);
    limit_is(f, "daily");
}

static enum ron_err intents(struct fixture *f, uint32_t chunk, uint32_t chunks, uint8_t fingerprint,
                            const char *first, ...)
{
    struct ledger_id hold;
    va_list lines;

    f->command.kind = LEDGER_COMMAND_INTENTS;
    f->command.run = (struct ledger_run_terms){
        .epoch_id = S("e1"),
        .run_key = S("run"),
        .funding_source = S("main"),
        .asset = S("roc"),
        .total = ron_u128_of(50),
        .chunk = chunk,
        .chunks = chunks,
    };
    f->command.fingerprint.bytes[0] = fingerprint;
    hold = ledger_run_hold_id(f->command.stamp.tenant, S("e1"));
    va_start(lines, first);
    for (const char *line = first; line != NULL; line = va_arg(lines, const char *)) {
        struct ledger_wire_entry wire = fixture_wire(f, line);

        wire.kind = (struct ron_slice){NULL, 0};
        assert_ok(ledger_shape_payout(f->command.stamp.tenant, &hold, &wire,
                                      &f->ops[f->command.ops_count++], &f->info));
    }
    va_end(lines);
    return fixture_apply(f);
}

/* A run pays what its pool has: nothing is minted for it. covers: LED-F32 */
static void runs_pay_from_one_hold(void **state)
{
    struct fixture *f = *state;
    struct ledger_id anchor = ledger_entry_id(ron_u128_of(0), S("run/e1"));

    applies(f, "Mint id=m to=pool/0/main asset=roc amount=49", NULL);
    fixture_refused(f, intents(f, 1, 2, 1, "P id=p1 to=bob amount=1", NULL), RON_ERR_CONFLICT,
                    NO_INDEX);
    assert_int_equal(f->refusal.expected, 0);
    fixture_refused(f, intents(f, 0, 2, 1, "P id=p1 to=bob amount=1", NULL), RON_ERR_HELD,
                    NO_INDEX);
    applies(f, "Mint id=m2 to=pool/0/main asset=roc amount=21", NULL);
    fixture_refused(f,
                    intents(f, 0, 2, 1, "P id=p1 to=bob amount=1", "P id=p1 to=bob amount=1", NULL),
                    RON_ERR_CONFLICT, 1);
    fixture_refused(f, intents(f, 0, 2, 1, "P id=p1 to=sys/burn/roc amount=1", NULL),
                    RON_ERR_FORBIDDEN, 0);
    assert_ok(intents(f, 0, 2, 1, "P id=p1 to=bob amount=20", "P id=p2 to=carol amount=5", NULL));
    assert_int_equal(f->batch.entries_count, 4);
    assert_memory_equal(f->batch.entries[3].link.bytes, anchor.bytes, LEDGER_ID_SIZE);
    assert_ok(intents(f, 0, 2, 1, "P id=p1 to=bob amount=20", NULL));
    assert_true(f->result.replay);
    fixture_refused(f, intents(f, 0, 2, 2, "P id=p1 to=bob amount=20", NULL),
                    RON_ERR_IDEMPOTENCY_CONFLICT, NO_INDEX);
    fixture_refused(f, intents(f, 1, 3, 3, "P id=p3 to=bob amount=25", NULL), RON_ERR_CONFLICT,
                    NO_INDEX);
    fixture_refused(f, intents(f, 1, 2, 3, "P id=p1 to=bob amount=25", NULL), RON_ERR_CONFLICT, 0);
    fixture_refused(f, intents(f, 1, 2, 3, "P id=p3 to=bob amount=26", NULL),
                    RON_ERR_INSUFFICIENT_FUNDS, 0);
    available_is(f, "25");
    fixture_refused(f, intents(f, 1, 2, 3, "P id=p3 to=bob amount=24", NULL), RON_ERR_MALFORMED,
                    NO_INDEX);
    available_is(f, "1");
    assert_ok(intents(f, 1, 2, 3, "P id=p3 to=bob amount=25", NULL));
    balance_is(f, "bob", "roc", "45");
    balance_is(f, "pool/0/main", "roc", "20");
    balance_is(f, "sys/hold/run/0/e1", "roc", "0");
    balance_is(f, "sys/mint/roc", "roc", "70"); /* as before the run */
    assert_ok(fixture_expire(f, 1u << 30));
    assert_false(f->result.applied);
}

/* A payout whose id is known is refused at it, also if a later one is worse. */
static void known_payouts_conflict_at_the_first(void **state)
{
    struct fixture *f = *state;

    applies(f, "Mint id=m to=pool/0/main asset=roc amount=50", NULL);
    assert_ok(intents(f, 0, 2, 1, "P id=p1 to=bob amount=20", NULL));
    fixture_refused(
        f, intents(f, 1, 2, 2, "P id=p1 to=bob amount=20", "P id=m to=bob amount=30", NULL),
        RON_ERR_CONFLICT, 0);
}

/* Keys of runs are apart from those of requests. */
static void keys_of_runs_are_their_own(void **state)
{
    struct fixture *f = *state;

    f->command.key = S("run:0");
    memset(f->command.fingerprint.bytes, 7, RON_B3_SIZE);
    applies(f, "Mint id=m to=pool/0/main asset=roc amount=50", NULL);
    f->command.key = (struct ron_slice){NULL, 0};
    assert_ok(intents(f, 0, 1, 1, "P id=p1 to=bob amount=50", NULL));
    assert_true(f->result.applied);
}

static enum ron_err abandon(struct fixture *f, const char *epoch_id, const char *run_key)
{
    f->command.kind = LEDGER_COMMAND_ABANDON;
    f->command.abandon = (struct ledger_abandon_terms){S(epoch_id), S(run_key)};
    return fixture_apply(f);
}

static void a_run_that_cannot_go_on_is_abandoned(void **state)
{
    struct fixture *f = *state;
    /* printf '{"epoch_id":"e1","rest":"30","run_key":"run"}' | b3sum */
    static const uint8_t digest[] = {0x4e, 0x76, 0xfb, 0x43, 0x1d, 0x52, 0x05, 0x8b,
                                     0xc2, 0x3a, 0x8e, 0x83, 0xcc, 0x52, 0x6a, 0x7f};

    fixture_refused(f, abandon(f, "e1", "run"), RON_ERR_NOT_FOUND, NO_INDEX);
    applies(f, "Mint id=m to=pool/0/main asset=roc amount=60", NULL);
    assert_ok(intents(f, 0, 2, 1, "P id=p1 to=bob amount=20", NULL));
    fixture_refused(f, abandon(f, "e1", "other"), RON_ERR_CONFLICT, NO_INDEX);
    fixture_refused(f, abandon(f, "e1", "r/n"), RON_ERR_MALFORMED, NO_INDEX);
    f->command.stamp.tenant = ron_u128_of(1);
    fixture_refused(f, abandon(f, "e1", "run"), RON_ERR_NOT_FOUND, NO_INDEX);
    f->command.stamp.tenant = ron_u128_of(0);
    assert_ok(abandon(f, "e1", "run"));
    assert_int_equal(f->batch.entries_count, 2);
    assert_memory_equal(f->batch.entries[0].debit.bytes, digest, LEDGER_ID_SIZE);
    assert_int_equal(f->batch.entries[1].kind, LEDGER_RELEASE);
    assert_int_equal(f->batch.entries[1].flags, LEDGER_FLAG_BY_LEDGER);
    balance_is(f, "pool/0/main", "roc", "40");
    balance_is(f, "sys/hold/run/0/e1", "roc", "0");
    assert_ok(abandon(f, "e1", "run"));
    assert_true(f->result.duplicate);
    assert_int_equal(f->result.batch, 3);
    /* The epoch stays bound; what was applied is still answered, nothing more is taken. */
    assert_ok(intents(f, 0, 2, 1, "P id=p1 to=bob amount=20", NULL));
    assert_true(f->result.replay);
    fixture_refused(f, intents(f, 1, 2, 2, "P id=p2 to=bob amount=30", NULL), RON_ERR_CONFLICT,
                    NO_INDEX);
    assert_int_equal(f->refusal.present, 0);
}

static void a_run_that_was_paid_cannot_be_abandoned(void **state)
{
    struct fixture *f = *state;

    applies(f, "Mint id=m to=pool/0/main asset=roc amount=50", NULL);
    assert_ok(intents(f, 0, 1, 1, "P id=p1 to=bob amount=50", NULL));
    fixture_refused(f, abandon(f, "e1", "run"), RON_ERR_CONFLICT, NO_INDEX);
    balance_is(f, "pool/0/main", "roc", "0");
}

static void abandoning_is_undone_with_its_batch(void **state)
{
    struct fixture *f = *state;
    struct ron_b3 before;
    struct ron_b3 after;

    applies(f, "Mint id=m to=pool/0/main asset=roc amount=60", NULL);
    assert_ok(intents(f, 0, 2, 1, "P id=p1 to=bob amount=20", NULL));
    before = ledger_core_digest(f->core);
    f->hold_commits = true;
    assert_ok(abandon(f, "e1", "run"));
    ledger_core_rebuild(f->core);
    after = ledger_core_digest(f->core);
    assert_memory_equal(before.bytes, after.bytes, RON_B3_SIZE);
    f->hold_commits = false;
    assert_ok(intents(f, 1, 2, 2, "P id=p2 to=bob amount=30", NULL));
}

static enum ron_err slice(struct fixture *f, uint64_t seq, uint8_t digest, uint8_t prev)
{
    f->command.kind = LEDGER_COMMAND_SLICE;
    f->command.slice = (struct ledger_slice_terms){.dimension = S("bytes"), .seq = seq};
    f->command.slice.digest[0] = digest;
    f->command.slice.prev[0] = prev;
    return fixture_apply(f);
}

static void slices_keep_their_order(void **state)
{
    struct fixture *f = *state;

    fixture_refused(f, slice(f, 1, 1, 0), RON_ERR_ORDER_OVERFLOW, NO_INDEX);
    assert_int_equal(f->refusal.expected, 0);
    fixture_refused(f, slice(f, 0, 1, 9), RON_ERR_CHAIN_MISMATCH, NO_INDEX);
    assert_ok(slice(f, 0, 1, 0));
    assert_true(f->result.applied);
    assert_ok(slice(f, 0, 1, 0));
    assert_true(f->result.duplicate);
    fixture_refused(f, slice(f, 0, 2, 0), RON_ERR_CHAIN_MISMATCH, NO_INDEX);
    assert_ok(slice(f, 1, 2, 1));
    assert_ok(slice(f, 2, 3, 2));
    assert_ok(slice(f, 0, 1, 0));
    assert_true(f->result.duplicate);
    assert_int_equal(f->result.batch, 1);
    fixture_refused(f, slice(f, 0, 3, 0), RON_ERR_CHAIN_MISMATCH, NO_INDEX);
    f->command.stamp.tenant = ron_u128_of(1);
    fixture_refused(f, slice(f, 3, 4, 3), RON_ERR_ORDER_OVERFLOW, NO_INDEX);
    assert_ok(slice(f, 0, 4, 0));
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(captures_share_what_is_held),
        TEST(payees_are_fixed_or_any),
        TEST(covers_are_asked_where_only_the_core_knows),
        TEST(holds_expire_into_the_log),
        TEST(limits_bind_the_account),
        TEST(credit_lines_are_drawn_to_the_end),
        TEST(overflow_refuses),
        TEST(daily_sums_do_not_wrap_or_stop),
        TEST(runs_pay_from_one_hold),
        TEST(slices_keep_their_order),
        TEST(known_payouts_conflict_at_the_first),
        TEST(keys_of_runs_are_their_own),
        TEST(a_run_that_cannot_go_on_is_abandoned),
        TEST(a_run_that_was_paid_cannot_be_abandoned),
        TEST(abandoning_is_undone_with_its_batch),
    };
    return cmocka_run_group_tests_name("ledger_holds", tests, NULL, NULL);
}
