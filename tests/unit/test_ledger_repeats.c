/*
 * test_ledger_repeats.c - keys, ids and nonces that were seen before. Method: repeat batches whole,
 * in part, reordered and changed; the fixture checks that nothing is ever applied twice.
 *
 * covers: LED-C05 LED-F07 LED-F08 LED-F09 LED-V02
 */
#include "ledger_fixture.h"

#include "ledger/core_ids.h"

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

#define DIGEST         "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define HOLD(id, more) "Hold id=" id " from=alice hold_id=H asset=roc amount=9 nonce=3 " more
#define ENDS           "expires_at=1970-01-01T00:01:00Z"

/* An id that comes back with other terms is another entry: who is paid, until when, about what. */
static void terms_are_part_of_what_repeats(void **state)
{
    struct fixture *f = *state;

    applies(f, HOLD("h", "payee=shop " ENDS), NULL);
    applies(f, HOLD("h", "payee=shop " ENDS), NULL);
    assert_duplicate(f, 3);
    refuses(f, RON_ERR_CONFLICT, 0, HOLD("h", "payee=bob " ENDS), NULL);
    refuses(f, RON_ERR_CONFLICT, 0, HOLD("h", "payee=* " ENDS), NULL);
    refuses(f, RON_ERR_CONFLICT, 0, HOLD("h", "payee=shop expires_at=1970-01-01T00:01:01Z"), NULL);
    /* By its nonce: the same hold is a repetition, another one of the same name is not. */
    applies(f, HOLD("h2", "payee=shop " ENDS), NULL);
    assert_duplicate(f, 3);
    refuses(f, RON_ERR_CONFLICT, 0, HOLD("h2", "payee=bob " ENDS), NULL);
    applies(f, "Hold id=any from=alice hold_id=A payee=* asset=roc amount=1 " ENDS, NULL);
    applies(f, "Hold id=any from=alice hold_id=A payee=* asset=roc amount=1 " ENDS, NULL);
    assert_duplicate(f, 4);
    applies(f, "Anchor id=a stream=mine ref=r digest=b3:" DIGEST, NULL);
    applies(f, "Anchor id=a stream=mine ref=r digest=b3:" DIGEST, NULL);
    assert_duplicate(f, 5);
    refuses(f, RON_ERR_CONFLICT, 0, "Anchor id=a stream=mine ref=q digest=b3:" DIGEST, NULL);
    refuses(f, RON_ERR_CONFLICT, 0, "Anchor id=a stream=mine digest=b3:" DIGEST, NULL);
    refuses(f, RON_ERR_CONFLICT, 0, "Anchor id=a stream=miner digest=b3:" DIGEST, NULL);
    refuses(f, RON_ERR_CONFLICT, 0, "Anchor id=a stream=mine ref=r digest=sha256:" DIGEST, NULL);
}

/* Nobody but ingest takes a key: it would be logged and never asked for. */
static void keys_are_of_ingest_alone(void **state)
{
    struct fixture *f = *state;

    set_key(f, "k", 1);
    assert_int_equal(fixture_asset(f, "usd", 2, "1000"), RON_ERR_MALFORMED);
    assert_int_equal(fixture_expire(f, 2000), RON_ERR_MALFORMED);
    f->command.key = (struct ron_slice){NULL, 0};
    assert_ok(fixture_asset(f, "usd", 2, "1000"));
}

static bool find_old(void *context, const struct ledger_id *id, uint64_t batch_max,
                     struct ledger_entry *ret_entry)
{
    const struct ledger_entry *old = context;

    if (!ledger_id_equal(id, &old->id) || old->batch > batch_max)
        return false;
    *ret_entry = *old;
    return true;
}

static bool find_no_nonce(void *context, const struct ledger_id *debit, uint64_t nonce,
                          uint64_t batch_max, struct ledger_entry *ret_entry)
{
    (void)context;
    (void)debit;
    (void)nonce;
    (void)batch_max;
    (void)ret_entry;
    return false;
}

/* Beyond the window ids are known by the archive alone. */
static void the_archive_is_asked_behind_the_window(void **state)
{
    struct ledger_capacity capacity = fixture_capacity();
    struct ledger_entry old;
    struct ledger_archive archive = {
        .context = &old, .find_entry = find_old, .find_nonce = find_no_nonce};
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

static void may_be_old(void *context, const struct ledger_ids *ids, uint64_t batch_max,
                       uint64_t *ret_bits)
{
    const struct ledger_entry *old = context;

    memset(ret_bits, 0, (ids->count + 63) / 64 * sizeof(ret_bits[0]));
    for (uint32_t i = 0; i < ids->count && old->batch <= batch_max; i++) {
        const uint8_t *id = ids->first->bytes + i * ids->stride;

        ret_bits[i / 64] |= (uint64_t)(memcmp(id, old->id.bytes, LEDGER_ID_SIZE) == 0) << i % 64;
    }
}

/* A large batch asks for all its ids together: wherever one stands that is known, it is found; of a
 * batch that is forgotten in part, too. */
static void the_archive_is_asked_for_a_batch_at_once(void **state)
{
    struct ledger_capacity capacity = fixture_capacity();
    struct ledger_entry old = {.batch = 0};
    struct ledger_archive archive = {.context = &old,
                                     .find_entry = find_old,
                                     .find_nonce = find_no_nonce,
                                     .may_have = may_be_old};
    struct fixture *f;
    char line[64];

    (void)state;
    capacity.entries_window = 160;
    f = fixture_new(&capacity, &archive);
    applies(f, "Mint id=m1 to=alice asset=roc amount=5", "Mint id=m2 to=alice asset=roc amount=5",
            NULL);
    old = f->batch.entries[0];
    for (unsigned i = 0; i < 159; i++) {
        (void)snprintf(line, sizeof(line), "Mint id=more%u to=alice asset=roc amount=1", i);
        applies(f, line, NULL); /* then the window forgets m1, and m1 alone */
    }
    for (uint32_t place = 0; place < 130; place++) {
        for (uint32_t i = 0; i < 130; i++) {
            (void)snprintf(line, sizeof(line), "Mint id=%s%u to=alice asset=roc amount=6",
                           i == place ? "m" : "x", i == place ? 1 : i);
            fixture_add(f, line);
        }
        assert_int_equal(fixture_apply(f), RON_ERR_CONFLICT);
        assert_int_equal(f->refusal.index, place);
    }
    assert_null(ledger_core_check(f->core));
    (void)fixture_teardown((void **)&f);
}

/* Entries that no archive can know yet must not leave the window. */
static void what_is_pending_is_never_forgotten(void **state)
{
    struct ledger_capacity capacity = fixture_capacity();
    struct ledger_entry old;
    struct ledger_archive archive = {
        .context = &old, .find_entry = find_old, .find_nonce = find_no_nonce};
    struct ledger_batch more[3];
    struct fixture *f;

    (void)state;
    capacity.entries_window = 4;
    memset(&old, 0, sizeof(old));
    f = fixture_new(&capacity, &archive);
    for (size_t i = 0; i < RON_ARRAY_COUNT(more); i++)
        assert_ok(ledger_batch_init(&more[i], 64, 1 << 16, NULL));
    f->hold_commits = true;
    applies(f, "Mint id=a to=alice asset=roc amount=1", "Mint id=b to=alice asset=roc amount=1",
            "Mint id=c to=alice asset=roc amount=1", "Mint id=d to=alice asset=roc amount=1",
            "Mint id=e to=alice asset=roc amount=1", NULL);
    for (unsigned i = 0; i < 2; i++) {
        fixture_add(f, "Mint id=a to=alice asset=roc amount=1");
        f->command.ops = f->ops;
        assert_int_equal(
            ledger_core_apply(f->core, &f->command, &more[i], &f->result, &f->refusal, &f->info),
            i == 0 ? RON_ERR_BUSY : RON_ERR_CONFLICT);
        f->command.ops_count = 0;
        if (i == 0) { /* five wait where four are remembered; once committed the archive has them */
            ledger_core_commit(f->core, &f->batch);
            old = f->batch.entries[0];
        }
    }
    assert_null(ledger_core_check(f->core));
    for (size_t i = 0; i < RON_ARRAY_COUNT(more); i++)
        ledger_batch_fini(&more[i]);
    (void)fixture_teardown((void **)&f);
}

/* An archive of one entry, which says how far it knows and whether it still can. */
struct lagging {
    struct ledger_entry old;
    uint64_t last;
    enum ron_err err;
};

static bool find_lagging(void *context, const struct ledger_id *id, uint64_t batch_max,
                         struct ledger_entry *ret_entry)
{
    struct lagging *lagging = context;

    return find_old(&lagging->old, id, batch_max, ret_entry);
}

static uint64_t last_of_lagging(void *context)
{
    return ((struct lagging *)context)->last;
}

static enum ron_err lagging_failed(void *context, struct ron_errinfo *reterr)
{
    const enum ron_err err = ((struct lagging *)context)->err;

    return err == RON_ERR_OK ? err : ron_fail(reterr, err, "as the test told it");
}

/* Committed, but not in the archive's index yet: a full window refuses rather than forgets. */
static void what_is_not_archived_is_never_forgotten(void **state)
{
    struct ledger_capacity capacity = fixture_capacity();
    struct lagging lagging = {.last = 0};
    struct ledger_archive archive = {.context = &lagging,
                                     .find_entry = find_lagging,
                                     .find_nonce = find_no_nonce,
                                     .last_batch = last_of_lagging,
                                     .failed = lagging_failed};
    struct fixture *f;

    (void)state;
    capacity.entries_window = 4;
    f = fixture_new(&capacity, &archive);
    applies(f, "Mint id=a to=alice asset=roc amount=1", NULL);
    lagging.old = f->batch.entries[0];
    applies(f, "Mint id=b to=alice asset=roc amount=1", "Mint id=c to=alice asset=roc amount=1",
            NULL);
    applies(f, "Mint id=d to=alice asset=roc amount=1", "Mint id=e to=alice asset=roc amount=1",
            NULL);
    lagging.old.id.bytes[0] ^= 1; /* it does not know it yet */
    for (unsigned i = 0; i < 2; i++)
        refuses(f, RON_ERR_BUSY, -1, "Mint id=a to=alice asset=roc amount=2", NULL);
    lagging.last = 1;
    lagging.old.id.bytes[0] ^= 1;
    refuses(f, RON_ERR_CONFLICT, 0, "Mint id=a to=alice asset=roc amount=2", NULL);
    applies(f, "Mint id=f to=alice asset=roc amount=1", NULL);
    assert_null(ledger_core_check(f->core));
    (void)fixture_teardown((void **)&f);
}

/* Of what the window could forget the archive has a part: that much is forgotten. */
static void what_is_archived_in_part_is_forgotten_in_part(void **state)
{
    struct ledger_capacity capacity = fixture_capacity();
    struct lagging lagging = {.last = 1};
    struct ledger_archive archive = {.context = &lagging,
                                     .find_entry = find_lagging,
                                     .find_nonce = find_no_nonce,
                                     .last_batch = last_of_lagging,
                                     .failed = lagging_failed};
    const struct ledger_id a = ledger_entry_id(ron_u128_of(0), S("a"));
    const struct ledger_id b = ledger_entry_id(ron_u128_of(0), S("b"));
    struct fixture *f;

    (void)state;
    capacity.entries_window = 4;
    f = fixture_new(&capacity, &archive);
    applies(f, "Mint id=a to=alice asset=roc amount=1", NULL);
    applies(f, "Mint id=b to=alice asset=roc amount=1", "Mint id=c to=alice asset=roc amount=1",
            NULL);
    applies(f, "Mint id=d to=alice asset=roc amount=1", "Mint id=e to=alice asset=roc amount=1",
            "Mint id=f to=alice asset=roc amount=1", NULL);
    refuses(f, RON_ERR_BUSY, -1, "Mint id=g to=alice asset=roc amount=1", NULL);
    assert_int_equal(ledger_core_seq_of(f->core, &a, 6, UINT64_MAX), 0);
    assert_int_equal(ledger_core_seq_of(f->core, &b, 6, UINT64_MAX), 2);
    lagging.last = 2;
    applies(f, "Mint id=g to=alice asset=roc amount=1", NULL);
    assert_int_equal(ledger_core_seq_of(f->core, &b, 6, UINT64_MAX), 0);
    assert_null(ledger_core_check(f->core));
    (void)fixture_teardown((void **)&f);
}

/* Of an archive that is behind and catches up while it is asked, entry by entry. */
static uint64_t last_of_growing(void *context)
{
    struct lagging *lagging = context;
    const uint64_t last = lagging->last;

    if (last > 0)
        lagging->last = 100;
    return last;
}

static void what_is_archived_meanwhile_is_not_forgotten_too_soon(void **state)
{
    struct ledger_capacity capacity = fixture_capacity();
    struct lagging lagging = {.last = 0};
    struct ledger_archive archive = {.context = &lagging,
                                     .find_entry = find_lagging,
                                     .find_nonce = find_no_nonce,
                                     .last_batch = last_of_growing,
                                     .failed = lagging_failed};
    char text[64];
    struct fixture *f;

    (void)state;
    capacity.entries_window = 4;
    f = fixture_new(&capacity, &archive);
    applies(f, "Mint id=m1 to=alice asset=roc amount=1", NULL);
    applies(f, "Mint id=m2 to=alice asset=roc amount=1", NULL);
    applies(f, "Mint id=m3 to=alice asset=roc amount=1", NULL);
    applies(f, "Mint id=m4 to=alice asset=roc amount=1", "Mint id=m5 to=alice asset=roc amount=1",
            "Mint id=m6 to=alice asset=roc amount=1", "Mint id=m7 to=alice asset=roc amount=1",
            NULL);
    lagging.last = 1;
    applies(f, "Mint id=m8 to=alice asset=roc amount=1", NULL);
    for (unsigned seq = 1; seq <= 8; seq++) {
        struct ledger_id id;

        (void)snprintf(text, sizeof(text), "m%u", seq);
        id = ledger_entry_id(ron_u128_of(0), S(text));
        assert_int_equal(ledger_core_seq_of(f->core, &id, 8, UINT64_MAX), seq < 4 ? 0 : seq);
    }
    assert_null(ledger_core_check(f->core));
    (void)fixture_teardown((void **)&f);
}

static void an_id_comes_once_in_a_batch(void **state)
{
    struct fixture *f = *state;

    refuses(f, RON_ERR_CONFLICT, 2, "Mint id=q to=alice asset=roc amount=1",
            "Mint id=r to=alice asset=roc amount=1", "Mint id=q to=alice asset=roc amount=1", NULL);
    applies(f, "Mint id=q to=alice asset=roc amount=1", "Mint id=r to=alice asset=roc amount=1",
            NULL);
}

/* Whatever was concluded without the archive's answer is thrown away: refusals, too. */
static void an_archive_that_failed_decides_nothing(void **state)
{
    struct ledger_capacity capacity = fixture_capacity();
    struct lagging lagging = {.last = 0};
    struct ledger_archive archive = {.context = &lagging,
                                     .find_entry = find_lagging,
                                     .find_nonce = find_no_nonce,
                                     .last_batch = last_of_lagging,
                                     .failed = lagging_failed};
    struct fixture *f;

    (void)state;
    f = fixture_new(&capacity, &archive);
    applies(f, "Mint id=a to=alice asset=roc amount=1", NULL);
    lagging.err = RON_ERR_IO;
    refuses(f, RON_ERR_IO, -1, "Mint id=b to=alice asset=roc amount=1", NULL);
    refuses(f, RON_ERR_IO, -1, "Reverse id=r ref=gone asset=roc amount=1", NULL);
    lagging.err = RON_ERR_OK;
    applies(f, "Mint id=b to=alice asset=roc amount=1", NULL);
    (void)fixture_teardown((void **)&f);
}

static bool find_reply(void *context, uint64_t batch, struct ledger_reply *ret_reply)
{
    unsigned *asked = context;

    (*asked)++;
    *ret_reply = (struct ledger_reply){.batch = batch, .seq_start = batch, .seq_end = batch};
    return true;
}

/* Beyond its window the committer asks the archive, also if the ring still has the record: the
 * sequencer may be writing over it. */
static void old_replies_come_from_the_archive(void **state)
{
    struct ledger_capacity capacity = fixture_capacity();
    unsigned asked = 0;
    struct ledger_archive archive = {.context = &asked, .find_reply = find_reply};
    struct ledger_reply reply;
    struct fixture *f;

    (void)state;
    capacity.batches_window = 2;
    f = fixture_new(&capacity, &archive);
    for (unsigned i = 0; i < 4; i++) {
        char line[64];

        (void)snprintf(line, sizeof(line), "Mint id=m%u to=alice asset=roc amount=1", i);
        applies(f, line, NULL);
    }
    assert_ok(ledger_core_reply(f->core, 3, &reply, NULL));
    assert_int_equal(reply.commit_ms, 1000);
    assert_int_equal(asked, 0);
    assert_ok(ledger_core_reply(f->core, 2, &reply, NULL));
    assert_int_equal(asked, 1);
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
        TEST(terms_are_part_of_what_repeats),
        TEST(keys_are_of_ingest_alone),
        cmocka_unit_test(what_is_archived_in_part_is_forgotten_in_part),
        cmocka_unit_test(what_is_archived_meanwhile_is_not_forgotten_too_soon),
        TEST(an_id_comes_once_in_a_batch),
        cmocka_unit_test(the_archive_is_asked_behind_the_window),
        cmocka_unit_test(the_archive_is_asked_for_a_batch_at_once),
        cmocka_unit_test(what_is_pending_is_never_forgotten),
        cmocka_unit_test(what_is_not_archived_is_never_forgotten),
        cmocka_unit_test(an_archive_that_failed_decides_nothing),
        cmocka_unit_test(old_replies_come_from_the_archive),
    };
    return cmocka_run_group_tests_name("ledger_repeats", tests, NULL, NULL);
}
