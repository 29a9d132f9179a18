/*
 * test_ledger_kinds.c - what each kind of entry does, and the order in which checks refuse it.
 * Method: small stories on a fresh core; the fixture checks traces, invariants and replay.
 *
 * covers: LED-F02 LED-F03 LED-F04 LED-F09
 */
#include "ledger_fixture.h"

#define MAX "340282366920938463463374607431768211455"

static void money_moves_by_kind(void **state)
{
    struct fixture *f = *state;

    applies(f, "Mint id=m to=alice asset=roc amount=100", NULL);
    applies(f, "Transfer id=t from=alice to=bob asset=roc amount=40 nonce=1",
            "Burn id=b from=bob asset=roc amount=15", NULL);
    balance_is(f, "alice", "roc", "60");
    balance_is(f, "bob", "roc", "25");
    balance_is(f, "sys/burn/roc", "roc", "15");
    balance_is(f, "sys/mint/roc", "roc", "100");
    assert_int_equal(nonce_of(f, "alice"), 2);
    assert_int_equal(nonce_of(f, "bob"), 1);
    assert_int_equal(f->result.seq_start, 2);
    assert_int_equal(f->result.seq_end, 3);
    assert_int_equal(f->result.batch, 2);
}

static void a_batch_is_all_or_nothing(void **state)
{
    struct fixture *f = *state;

    applies(f, "Mint id=m to=alice asset=roc amount=100", NULL);
    refuses(f, RON_ERR_INSUFFICIENT_FUNDS, 2,
            "Transfer id=a from=alice to=new1 asset=roc amount=40 nonce=1",
            "Hold id=h from=alice hold_id=H payee=new2 expires_at=1970-01-01T01:00:00Z asset=roc "
            "amount=10 nonce=2",
            "Transfer id=c from=alice to=bob asset=roc amount=51", NULL);
    available_is(f, "50");
    /* Nonces, ids, hold_id and names are as if nothing had been. */
    applies(f, "Transfer id=a from=alice to=new1 asset=roc amount=40 nonce=1",
            "Hold id=h from=alice hold_id=H payee=new2 expires_at=1970-01-01T01:00:00Z asset=roc "
            "amount=10 nonce=2",
            NULL);
}

static void supply_is_bounded_exactly(void **state)
{
    struct fixture *f = *state;

    assert_ok(fixture_asset(f, "usd", 2, "1000"));
    applies(f, "Mint id=m1 to=alice asset=usd amount=999", NULL);
    refuses(f, RON_ERR_LIMIT_EXCEEDED, 0, "Mint id=m2 to=alice asset=usd amount=2", NULL);
    limit_is(f, "supply");
    applies(f, "Mint id=m2 to=alice asset=usd amount=1", NULL);
    applies(f, "Burn id=b from=alice asset=usd amount=500", NULL);
    refuses(f, RON_ERR_LIMIT_EXCEEDED, 0, "Mint id=m3 to=alice asset=usd amount=1", NULL);
    applies(f, "Mint id=big to=alice asset=roc amount=" MAX, NULL);
    refuses(f, RON_ERR_LIMIT_EXCEEDED, 0, "Mint id=over to=bob asset=roc amount=1", NULL);
    limit_is(f, "supply");
    /* A Mint taken back frees what it issued. */
    applies(f, "Reverse id=r ref=m2 asset=usd amount=1", NULL);
    balance_is(f, "sys/mint/usd", "usd", "999");
    applies(f, "Mint id=m3 to=alice asset=usd amount=1", NULL);
}

static void assets_are_registered_once(void **state)
{
    struct fixture *f = *state;

    assert_ok(fixture_asset(f, "usd", 2, "1000"));
    assert_true(f->result.applied);
    assert_ok(fixture_asset(f, "usd", 2, "1000"));
    assert_true(f->result.duplicate);
    assert_int_equal(f->result.batch, 1);
    fixture_refused(f, fixture_asset(f, "usd", 3, "1000"), RON_ERR_CONFLICT, NO_INDEX);
    fixture_refused(f, fixture_asset(f, "usd", 2, "1001"), RON_ERR_CONFLICT, NO_INDEX);
    fixture_refused(f, fixture_asset(f, "roc", 6, MAX), RON_ERR_CONFLICT, NO_INDEX);
    fixture_refused(f, fixture_asset(f, "eur", 39, "1"), RON_ERR_MALFORMED, NO_INDEX);
    refuses(f, RON_ERR_NOT_FOUND, 0, "Mint id=m to=alice asset=eur amount=1", NULL);
}

static void nonces_are_strictly_next(void **state)
{
    struct fixture *f = *state;

    applies(f, "Mint id=m to=alice asset=roc amount=100", NULL);
    refuses(f, RON_ERR_NONCE_CONFLICT, 0,
            "Transfer id=t from=alice to=bob asset=roc amount=1 nonce=2", NULL);
    assert_int_equal(f->refusal.expected, 1);
    /* A rejected entry uses no nonce, whatever it failed by. */
    refuses(f, RON_ERR_INSUFFICIENT_FUNDS, 0,
            "Transfer id=t from=alice to=bob asset=roc amount=101 nonce=1", NULL);
    applies(f, "Transfer id=t from=alice to=bob asset=roc amount=1 nonce=1",
            "Burn id=b from=alice asset=roc amount=1 nonce=2",
            "Transfer id=u from=alice to=bob asset=roc amount=1", NULL);
    refuses(f, RON_ERR_NONCE_CONFLICT, 0,
            "Transfer id=w from=alice to=bob asset=roc amount=2 nonce=2", NULL);
    assert_int_equal(f->refusal.expected, 3);
    /* Nonce comes before funds; a stranger's first nonce is 1. */
    refuses(f, RON_ERR_NONCE_CONFLICT, 0,
            "Transfer id=w from=nobody to=bob asset=roc amount=2 nonce=2", NULL);
    refuses(f, RON_ERR_INSUFFICIENT_FUNDS, 0,
            "Transfer id=w from=nobody to=bob asset=roc amount=2 nonce=1", NULL);
    available_is(f, "0");
}

/* Linked to it, and back where it came from. covers: LED-V13 */
static void reversals_never_exceed_their_entry(void **state)
{
    struct fixture *f = *state;

    applies(f, "Mint id=m to=alice asset=roc amount=100",
            "Transfer id=t from=alice to=bob asset=roc amount=50", NULL);
    applies(f, "Reverse id=r1 ref=t asset=roc amount=20", NULL);
    assert_memory_equal(f->batch.entries[0].link.bytes,
                        ledger_entry_id(ron_u128_of(0), S("t")).bytes, LEDGER_ID_SIZE);
    balance_is(f, "alice", "roc", "70");
    balance_is(f, "bob", "roc", "30");
    refuses(f, RON_ERR_CONFLICT, 1, "Reverse id=r2 ref=t asset=roc amount=20",
            "Reverse id=r3 ref=t asset=roc amount=11", NULL);
    available_is(f, "10");
    refuses(f, RON_ERR_CONFLICT, 0, "Reverse id=r4 ref=r1 asset=roc amount=1", NULL);
    refuses(f, RON_ERR_NOT_FOUND, 0, "Reverse id=r4 ref=nothing asset=roc amount=1", NULL);
    assert_ok(fixture_asset(f, "usd", 2, "1000"));
    refuses(f, RON_ERR_CONFLICT, 0, "Reverse id=r4 ref=t asset=usd amount=1", NULL);
    applies(f, "Transfer id=away from=bob to=carol asset=roc amount=25", NULL);
    refuses(f, RON_ERR_INSUFFICIENT_FUNDS, 0, "Reverse id=r4 ref=t asset=roc amount=6", NULL);
    available_is(f, "5");
    applies(f, "Reverse id=r4 ref=t asset=roc amount=5", NULL);
    balance_is(f, "alice", "roc", "75");
    balance_is(f, "bob", "roc", "0");
    /* Another tenant has other ids. */
    f->command.stamp.tenant = ron_u128_of(9);
    refuses(f, RON_ERR_NOT_FOUND, 0, "Reverse id=r5 ref=t asset=roc amount=1", NULL);
}

static void legs_clear_per_asset(void **state)
{
    struct fixture *f = *state;

    assert_ok(fixture_asset(f, "usd", 2, "1000"));
    applies(f, "Mint id=m1 to=alice asset=roc amount=100",
            "Mint id=m2 to=alice asset=usd amount=100", NULL);
    refuses(f, RON_ERR_MALFORMED, 1, "Debit id=d account=alice asset=roc amount=7",
            "Credit id=c account=bob asset=roc amount=6",
            "Transfer id=t from=alice to=bob asset=roc amount=1", NULL);
    /* Sums that agree over all assets together are no balance. */
    refuses(f, RON_ERR_MALFORMED, 0, "Debit id=d account=alice asset=roc amount=7",
            "Credit id=c account=bob asset=usd amount=7", NULL);
    refuses(f, RON_ERR_MALFORMED, 3, "Debit id=d1 account=alice asset=usd amount=7",
            "Debit id=d2 account=alice asset=roc amount=5",
            "Credit id=c1 account=bob asset=roc amount=5",
            "Credit id=c2 account=bob asset=usd amount=6", NULL);
    applies(f, "Credit id=c1 account=bob asset=roc amount=3",
            "Debit id=d1 account=alice asset=usd amount=7 nonce=1",
            "Debit id=d2 account=alice asset=roc amount=5 nonce=2",
            "Credit id=c2 account=bob asset=usd amount=7",
            "Credit id=c3 account=carol asset=roc amount=2", NULL);
    balance_is(f, "bob", "roc", "3");
    balance_is(f, "sys/clearing/roc", "roc", "0");
    refuses(f, RON_ERR_MALFORMED, 0, "Reverse id=r ref=c3 asset=roc amount=1", NULL);
    applies(f, "Reverse id=r ref=c3 asset=roc amount=1", "Reverse id=s ref=d2 asset=roc amount=1",
            NULL);
    /* Sums of legs have room beyond 2^128. */
    refuses(f, RON_ERR_MALFORMED, 1, "Credit id=x account=x asset=roc amount=" MAX,
            "Credit id=y account=y asset=roc amount=" MAX, NULL);
}

static void reserved_names_are_kept(void **state)
{
    struct fixture *f = *state;

    applies(f, "Mint id=m to=alice asset=roc amount=100",
            "Transfer id=p from=alice to=pool/0/main asset=roc amount=10",
            "Burn id=b from=alice asset=roc amount=5", NULL);
    refuses(f, RON_ERR_FORBIDDEN, 0, "Mint id=x to=sys/burn/roc asset=roc amount=1", NULL);
    refuses(f, RON_ERR_FORBIDDEN, 0, "Transfer id=x from=alice to=sys/x asset=roc amount=1", NULL);
    refuses(f, RON_ERR_FORBIDDEN, 0, "Debit id=x account=sys/mint/roc asset=roc amount=1", NULL);
    refuses(f, RON_ERR_FORBIDDEN, 0,
            "Hold id=x from=alice hold_id=H payee=sys/mint/roc expires_at=1970-01-01T01:00:00Z "
            "asset=roc amount=1",
            NULL);
    refuses(f, RON_ERR_FORBIDDEN, 0, "Transfer id=x from=sys/burn/roc to=bob asset=roc amount=1",
            NULL);
    refuses(f, RON_ERR_FORBIDDEN, 0, "Transfer id=x from=pool/0/main to=bob asset=roc amount=1",
            NULL);
    refuses(f, RON_ERR_FORBIDDEN, 0, "Reverse id=x ref=p asset=roc amount=1", NULL);
    f->command.stamp.reserved_ok = true;
    refuses(f, RON_ERR_FORBIDDEN, 0, "Transfer id=x from=pool/0/main to=bob asset=roc amount=1",
            NULL);
    refuses(f, RON_ERR_FORBIDDEN, 0, "Burn id=x from=sys/burn/roc asset=roc amount=1", NULL);
    refuses(f, RON_ERR_FORBIDDEN, 0, "Transfer id=x from=sys/mint/roc to=bob asset=roc amount=1",
            NULL);
    applies(f, "Transfer id=x from=sys/burn/roc to=bob asset=roc amount=5", NULL);
    balance_is(f, "bob", "roc", "5");
}

#define B3 "b3:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static void anchors_bind_digests(void **state)
{
    struct fixture *f = *state;
    struct ledger_entry entry;
    struct ledger_id id = ledger_entry_id(ron_u128_of(0), S("a2"));

    applies(f, "Anchor id=a1 stream=mine digest=" B3,
            "Anchor id=a2 stream=other/x ref=r1 "
            "digest=sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
            NULL);
    assert_true(ledger_core_find_entry(f->core, &id, &entry));
    assert_int_equal(entry.flags, LEDGER_FLAG_EXT | LEDGER_FLAG_SHA256);
    assert_int_equal(entry.asset, 0);
    assert_int_equal(entry.debit.bytes[1], 0x11);
    refuses(f, RON_ERR_FORBIDDEN, 0, "Anchor id=x stream=slice/1/bytes digest=" B3, NULL);
    refuses(f, RON_ERR_FORBIDDEN, 0, "Anchor id=x stream=state digest=" B3, NULL);
    refuses(f, RON_ERR_FORBIDDEN, 0, "Anchor id=x stream=snapshot/1 digest=" B3, NULL);
    f->command.stamp.caller = LEDGER_CALLER_ACCOUNTING;
    applies(f, "Anchor id=x stream=snapshot/1 digest=" B3, NULL);
    f->command.stamp.caller = LEDGER_CALLER_LEDGER;
    applies(f, "Anchor id=y stream=state ref=1 digest=" B3, NULL);
    assert_int_equal(f->batch.entries[0].flags, LEDGER_FLAG_EXT | LEDGER_FLAG_BY_LEDGER);
}

/* One mistake per rule in one entry: the earlier rule answers. */
static void the_earlier_rule_answers(void **state)
{
    struct fixture *f = *state;

    applies(f, "Mint id=m to=alice asset=roc amount=100", NULL);
    refuses(f, RON_ERR_NOT_FOUND, 0,
            "Transfer id=x from=sys/mint/roc to=bob asset=eur amount=1000 nonce=9", NULL);
    refuses(f, RON_ERR_FORBIDDEN, 0,
            "Transfer id=x from=sys/mint/roc to=bob asset=roc amount=1000 nonce=9", NULL);
    refuses(f, RON_ERR_MALFORMED, 1, "Transfer id=x from=alice to=bob asset=roc amount=1000",
            "Transfer id=y from=alice to=bob asset=roc amount=1 ts=61001", NULL);
    assert_int_equal(f->refusal.server_ms, 1000);
    refuses(f, RON_ERR_INSUFFICIENT_FUNDS, 0,
            "Transfer id=x from=alice to=bob asset=roc amount=1000 ts=61000", NULL);
    assert_ok(fixture_limits(
        f, (struct ledger_limit_terms){.account = S("alice"), .has_frozen = true, .frozen = true}));
    refuses(f, RON_ERR_NONCE_CONFLICT, 0,
            "Transfer id=x from=alice to=bob asset=roc amount=1000 nonce=9", NULL);
    refuses(f, RON_ERR_LIMIT_EXCEEDED, 0, "Transfer id=x from=alice to=bob asset=roc amount=1000",
            NULL);
    limit_is(f, "frozen");
    f->command.stamp.commit_ms = 999;
    refuses(f, RON_ERR_MALFORMED, NO_INDEX, "Mint id=x to=bob asset=roc amount=1", NULL);
}

/* What a capability may ask for, the rules still decide. covers: LED-F32 */
static void no_capability_is_above_the_rules(void **state)
{
    struct fixture *f = *state;

    assert_ok(fixture_asset(f, "usd", 2, "1000"));
    applies(f, "Mint id=m to=alice asset=usd amount=1000", NULL);
    applies(f, "Transfer id=t from=alice to=bob asset=usd amount=600 nonce=1", NULL);
    f->command.stamp.reserved_ok = true; /* as much as a token can say */
    refuses(f, RON_ERR_LIMIT_EXCEEDED, 0, "Mint id=x to=alice asset=usd amount=1", NULL);
    refuses(f, RON_ERR_INSUFFICIENT_FUNDS, 0,
            "Transfer id=x from=alice to=bob asset=usd amount=401", NULL);
    refuses(f, RON_ERR_NONCE_CONFLICT, 0,
            "Transfer id=x from=alice to=bob asset=usd amount=1 nonce=1", NULL);
    refuses(f, RON_ERR_MALFORMED, 0, "Credit id=x account=alice asset=usd amount=1", NULL);
    refuses(f, RON_ERR_FORBIDDEN, 0, "Transfer id=x from=sys/mint/usd to=alice asset=usd amount=1",
            NULL);
    refuses(f, RON_ERR_CONFLICT, 1, "Reverse id=r ref=t asset=usd amount=600",
            "Reverse id=s ref=t asset=usd amount=1", NULL);
    balance_is(f, "alice", "usd", "400");
    balance_is(f, "bob", "usd", "600");
}

static void full_tables_answer_busy(void **state)
{
    struct ledger_capacity capacity = fixture_capacity();
    struct fixture *f;

    (void)state;
    capacity.accounts_max = 3;
    capacity.rows_max = 4;
    capacity.holds_max = 1;
    f = fixture_new(&capacity, NULL);
    applies(f, "Mint id=m to=alice asset=roc amount=100", NULL);
    refuses(f, RON_ERR_BUSY, 1, "Transfer id=t from=alice to=bob asset=roc amount=1",
            "Transfer id=u from=alice to=carol asset=roc amount=1", NULL);
    applies(f, "Transfer id=t from=alice to=bob asset=roc amount=1", NULL);
    refuses(f, RON_ERR_BUSY, 0,
            "Hold id=h from=alice hold_id=H payee=bob expires_at=1970-01-01T01:00:00Z asset=roc "
            "amount=10",
            NULL);
    (void)fixture_teardown((void **)&f);
    /* Without an archive no id is ever forgotten. */
    capacity = fixture_capacity();
    capacity.entries_window = 2;
    f = fixture_new(&capacity, NULL);
    applies(f, "Mint id=m to=alice asset=roc amount=100", NULL);
    refuses(f, RON_ERR_BUSY, 1, "Mint id=n to=alice asset=roc amount=1",
            "Anchor id=a stream=s digest=" B3, NULL);
    applies(f, "Mint id=n to=alice asset=roc amount=1", NULL);
    refuses(f, RON_ERR_CONFLICT, 0, "Mint id=m to=alice asset=roc amount=1", NULL);
    (void)fixture_teardown((void **)&f);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(money_moves_by_kind),
        TEST(a_batch_is_all_or_nothing),
        TEST(supply_is_bounded_exactly),
        TEST(assets_are_registered_once),
        TEST(nonces_are_strictly_next),
        TEST(reversals_never_exceed_their_entry),
        TEST(legs_clear_per_asset),
        TEST(reserved_names_are_kept),
        TEST(anchors_bind_digests),
        TEST(the_earlier_rule_answers),
        TEST(no_capability_is_above_the_rules),
        cmocka_unit_test(full_tables_answer_busy),
    };
    return cmocka_run_group_tests_name("ledger_kinds", tests, NULL, NULL);
}
