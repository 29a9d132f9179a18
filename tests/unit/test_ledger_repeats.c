/*
 * test_ledger_repeats.c - keys, ids and nonces that were seen before. Method: repeat batches whole,
 * in part, reordered and changed; the fixture checks that nothing is ever applied twice.
 *
 * covers: LED-F07 LED-F08 LED-F09
 */
#include "ledger_fixture.h"

static void set_key(struct fixture *f, const char *key, uint8_t fingerprint)
{
    f->command.key = S(key);
    memset(f->command.fingerprint.bytes, fingerprint, RON_B3_SIZE);
}

#define T1 "Transfer id=t1 from=alice to=bob asset=roc amount=5 nonce=1"
#define T2 "Transfer id=t2 from=alice to=bob asset=roc amount=6 nonce=2"

static int setup(void **state)
{
    int failed = fixture_setup(state);

    applies(*state, "Mint id=m to=alice asset=roc amount=100", NULL);
    applies(*state, T1, T2, NULL);
    return failed;
}

static void assert_duplicate(const struct fixture *f, uint64_t batch)
{
    assert_false(f->result.applied);
    assert_true(f->result.duplicate);
    assert_int_equal(f->result.batch, batch);
}

static void a_known_key_gives_the_stored_reply(void **state)
{
    struct fixture *f = *state;

    set_key(f, "k", 1);
    applies(f, "Burn id=b from=alice asset=roc amount=1", NULL);
    assert_int_equal(f->result.batch, 3);
    applies(f, "Burn id=other from=alice asset=roc amount=99", NULL); /* the body is its hash */
    assert_true(f->result.replay);
    assert_int_equal(f->result.batch, 3);
    assert_int_equal(f->result.seq_start, 4);
    set_key(f, "k", 2);
    refuses(f, RON_ERR_IDEMPOTENCY_CONFLICT, NO_INDEX, "Burn id=b from=alice asset=roc amount=1",
            NULL);
    /* Keys belong to (tenant, caller). */
    f->command.stamp.caller = LEDGER_CALLER_WALLET;
    applies(f, "Burn id=c from=alice asset=roc amount=1", NULL);
    assert_true(f->result.applied);
    f->command.stamp.tenant = ron_u128_of(1);
    applies(f, "Burn id=c from=alice asset=roc amount=1", NULL);
    assert_true(f->result.applied);
}

static void a_rejected_key_stays_free(void **state)
{
    struct fixture *f = *state;

    set_key(f, "k", 1);
    refuses(f, RON_ERR_INSUFFICIENT_FUNDS, 0, "Burn id=b from=alice asset=roc amount=1000", NULL);
    set_key(f, "k", 2);
    applies(f, "Burn id=b from=alice asset=roc amount=1", NULL);
    assert_true(f->result.applied);
}

static void a_whole_batch_again_is_a_duplicate(void **state)
{
    struct fixture *f = *state;

    applies(f, T1, T2, NULL);
    assert_duplicate(f, 2);
    assert_int_equal(f->result.seq_start, 2);
    assert_int_equal(f->result.seq_end, 3);
    /* By nonces alone, under new ids; texts beside the content do not count. */
    applies(f, "Transfer id=n1 from=alice to=bob asset=roc amount=5 nonce=1 memo=x",
            "Transfer id=n2 from=alice to=bob asset=roc amount=6 nonce=2", NULL);
    assert_duplicate(f, 2);
    /* Old source times do not hurt a repetition. */
    applies(f, T1 " ts=99999999", T2, NULL);
    assert_duplicate(f, 2);
    balance_is(f, "bob", "roc", "11");
}

static void anything_less_conflicts(void **state)
{
    struct fixture *f = *state;

    refuses(f, RON_ERR_CONFLICT, 0, T1, NULL);
    refuses(f, RON_ERR_CONFLICT, 0, T2, NULL);
    refuses(f, RON_ERR_CONFLICT, 0, T2, T1, NULL);
    refuses(f, RON_ERR_CONFLICT, 0, T1, T2, "Burn id=b from=alice asset=roc amount=1", NULL);
    refuses(f, RON_ERR_CONFLICT, 1, "Burn id=b from=alice asset=roc amount=1", T1, T2, NULL);
    refuses(f, RON_ERR_CONFLICT, 1, T1, T1, NULL);
    refuses(f, RON_ERR_CONFLICT, 1, "Burn id=b from=alice asset=roc amount=1",
            "Burn id=b from=alice asset=roc amount=1", NULL);
    /* A known id with other content, member by member. */
    refuses(f, RON_ERR_CONFLICT, 0, "Burn id=t1 from=alice asset=roc amount=5 nonce=1", NULL);
    refuses(f, RON_ERR_CONFLICT, 0, "Transfer id=t1 from=alice to=carol asset=roc amount=5 nonce=1",
            NULL);
    refuses(f, RON_ERR_CONFLICT, 0, "Transfer id=t1 from=bob to=alice asset=roc amount=5 nonce=1",
            NULL);
    refuses(f, RON_ERR_CONFLICT, 0, "Transfer id=t1 from=alice to=bob asset=roc amount=6 nonce=1",
            NULL);
    refuses(f, RON_ERR_CONFLICT, 0, "Transfer id=t1 from=alice to=bob asset=roc amount=5", NULL);
    refuses(f, RON_ERR_CONFLICT, 0, "Transfer id=t1 from=alice to=bob asset=eur amount=5 nonce=1",
            NULL);
    /* The same id in another tenant is another entry. */
    f->command.stamp.tenant = ron_u128_of(1);
    applies(f, "Transfer id=t1 from=alice to=bob asset=roc amount=1 nonce=3", NULL);
    assert_true(f->result.applied);
}

static void used_nonces_with_a_key_or_other_content_conflict(void **state)
{
    struct fixture *f = *state;

    refuses(f, RON_ERR_NONCE_CONFLICT, 0,
            "Transfer id=n from=alice to=carol asset=roc amount=5 nonce=1", NULL);
    assert_int_equal(f->refusal.expected, 3);
    set_key(f, "k", 1);
    refuses(f, RON_ERR_NONCE_CONFLICT, 0,
            "Transfer id=n1 from=alice to=bob asset=roc amount=5 nonce=1",
            "Transfer id=n2 from=alice to=bob asset=roc amount=6 nonce=2", NULL);
}

static void holds_and_reversals_repeat_by_what_they_resolve_to(void **state)
{
    struct fixture *f = *state;

    applies(f,
            "Hold id=h from=alice hold_id=H payee=shop expires_at=1970-01-01T00:01:00Z asset=roc "
            "amount=9",
            "Capture id=c hold_id=H asset=roc amount=4", "Reverse id=r ref=t1 asset=roc amount=1",
            NULL);
    applies(f,
            "Hold id=h from=alice hold_id=H payee=shop expires_at=1970-01-01T00:01:00Z asset=roc "
            "amount=9",
            "Capture id=c hold_id=H asset=roc amount=4", "Reverse id=r ref=t1 asset=roc amount=1",
            NULL);
    assert_duplicate(f, 3);
    refuses(f, RON_ERR_CONFLICT, 0, "Capture id=c hold_id=X asset=roc amount=4", NULL);
    refuses(f, RON_ERR_CONFLICT, 0, "Reverse id=r ref=t2 asset=roc amount=1", NULL);
}

static bool find_old(void *context, const struct ledger_id *id, struct ledger_entry *ret_entry)
{
    const struct ledger_entry *old = context;

    if (!ledger_id_equal(id, &old->id))
        return false;
    *ret_entry = *old;
    return true;
}

/* Beyond the window ids are known by the archive alone. */
static void the_archive_is_asked_behind_the_window(void **state)
{
    struct ledger_capacity capacity = fixture_capacity();
    struct ledger_entry old;
    struct ledger_archive archive = {.context = &old, .find_entry = find_old};
    struct fixture *f;

    (void)state;
    capacity.entries_window = 4;
    memset(&old, 0, sizeof(old));
    f = fixture_new(&capacity, &archive);
    applies(f, "Mint id=m1 to=alice asset=roc amount=5", NULL);
    old = f->batch.entries[0];
    for (unsigned i = 0; i < 10; i++) {
        char line[64];

        (void)snprintf(line, sizeof(line), "Mint id=more%u to=alice asset=roc amount=1", i);
        applies(f, line, NULL);
    }
    refuses(f, RON_ERR_CONFLICT, 0, "Mint id=m1 to=alice asset=roc amount=6", NULL);
    applies(f, "Reverse id=r ref=m1 asset=roc amount=5", NULL);
    /* Forgotten by both: the archive of this test knows only one. */
    applies(f, "Mint id=more0 to=alice asset=roc amount=1", NULL);
    (void)fixture_teardown((void **)&f);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_known_key_gives_the_stored_reply),
        TEST(a_rejected_key_stays_free),
        TEST(a_whole_batch_again_is_a_duplicate),
        TEST(anything_less_conflicts),
        TEST(used_nonces_with_a_key_or_other_content_conflict),
        TEST(holds_and_reversals_repeat_by_what_they_resolve_to),
        cmocka_unit_test(the_archive_is_asked_behind_the_window),
    };
    return cmocka_run_group_tests_name("ledger_repeats", tests, NULL, NULL);
}
