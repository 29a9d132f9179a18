/*
 * test_ledger_properties.c - what holds for any stream of commands. Method: seeded random commands
 * over a few accounts, assets and holds, many of them wrong on purpose; after each one the fixture
 * checks traces, invariants (conservation recomputed from balances) and replay.
 *
 * covers: LED-F01 LED-F02 LED-F03 LED-F06 LED-V01 LED-V04
 */
#include "ledger_fixture.h"

#include "base/hex.h"

struct random {
    uint64_t state;
};

static uint32_t draw(struct random *random, uint32_t below)
{
    random->state = random->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random->state >> 33) % below;
}

static const char *const names[] = {"alice", "bob", "carol", "dave", "pool/0/p", "sys/burn/roc"};
static const char *const assets[] = {"roc", "usd", "eur"};

static const char *name(struct random *r)
{
    return names[draw(r, draw(r, 8) == 0 ? RON_ARRAY_COUNT(names) : 4)];
}

static const char *asset(struct random *r)
{
    return assets[draw(r, draw(r, 16) == 0 ? 3 : 2)];
}

/* A line of a random kind; sometimes one that cannot be. All is drawn before it is used: the order
 * in which arguments are evaluated is the compiler's. */
static void random_line(struct random *r, struct fixture *f, uint32_t number, char *line,
                        size_t size)
{
    const char *from = name(r);
    const char *to = name(r);
    const char *coin = asset(r);
    uint32_t amount = 1 + draw(r, 60);
    uint32_t part = amount / 4 + 1;
    uint32_t recent = number - 1 - draw(r, 12); /* an entry, or the hold it made */
    uint32_t minute = draw(r, 60);
    bool flip = draw(r, 2) == 0;
    char nonce[32] = "";

    if (draw(r, 3) == 0) {
        uint32_t wrong = draw(r, 8) == 0 ? 1 : 0;

        (void)snprintf(nonce, sizeof(nonce), " nonce=%u", (uint32_t)nonce_of(f, from) + wrong);
    }
    switch (draw(r, 9)) {
    case 0:
        (void)snprintf(line, size, "Mint id=e%u to=%s asset=%s amount=%u", number, to, coin,
                       10 * amount);
        return;
    case 1:
        (void)snprintf(line, size, "Burn id=e%u from=%s asset=%s amount=%u%s", number, from, coin,
                       amount, nonce);
        return;
    case 2:
        (void)snprintf(line, size,
                       "Hold id=e%u from=%s hold_id=h%u payee=%s "
                       "expires_at=1970-01-01T00:%02u:00Z asset=%s amount=%u%s",
                       number, from, number, flip ? "*" : to, minute, coin, amount, nonce);
        return;
    case 3:
        if (flip)
            (void)snprintf(line, size, "Capture id=e%u hold_id=h%u asset=%s amount=%u", number,
                           recent, coin, part);
        else
            (void)snprintf(line, size, "Capture id=e%u hold_id=h%u to=%s asset=%s amount=%u",
                           number, recent, to, coin, part);
        return;
    case 4:
        (void)snprintf(line, size, "Release id=e%u hold_id=h%u asset=%s amount=%u", number, recent,
                       coin, part);
        return;
    case 5:
        (void)snprintf(line, size, "Reverse id=e%u ref=e%u asset=%s amount=%u", number, recent,
                       coin, part);
        return;
    case 6:
        (void)snprintf(line, size, "Credit id=e%u account=%s asset=roc amount=7", number, to);
        return;
    case 7:
        (void)snprintf(line, size, "Debit id=e%u account=%s asset=roc amount=7%s", number, from,
                       nonce);
        return;
    default:
        (void)snprintf(line, size, "Transfer id=e%u from=%s to=%s asset=%s amount=%u%s", number,
                       from, strcmp(from, to) == 0 ? "erin" : to, coin, amount, nonce);
    }
}

static void random_limits(struct random *r, struct fixture *f)
{
    struct ledger_limit_terms terms = {.has_frozen = true};

    terms.account = S(names[draw(r, 4)]);
    terms.asset = S(assets[draw(r, 2)]);
    terms.has_minimum = draw(r, 4) == 0;
    terms.minimum = ron_u128_of(1 + draw(r, 20));
    terms.has_maximum = draw(r, 4) == 0;
    terms.maximum = ron_u128_of(50 + draw(r, 400));
    terms.has_credit_line = draw(r, 3) == 0;
    terms.credit_line = ron_u128_of(1 + draw(r, 100));
    terms.has_daily = draw(r, 4) == 0;
    terms.daily = ron_u128_of(100 + draw(r, 300));
    terms.frozen = draw(r, 30) == 0;
    assert_ok(fixture_limits(f, terms));
}

/* Run `commands` random commands; the digest of the end state and the count of applied batches. */
static struct ron_b3 random_run(struct fixture *f, uint64_t seed, unsigned commands,
                                unsigned *ret_applied)
{
    struct random r = {seed};
    uint32_t number = 0;

    *ret_applied = 0;
    assert_ok(fixture_asset(f, "usd", 2, "100000"));
    for (unsigned i = 0; i < commands; i++) {
        uint32_t count = 1 + draw(&r, draw(&r, 2) == 0 ? 4 : 1);

        f->command.stamp.commit_ms += draw(&r, 4000);
        if (draw(&r, 20) == 0) {
            random_limits(&r, f);
            continue;
        }
        if (draw(&r, 10) == 0) {
            assert_ok(fixture_expire(f, f->command.stamp.commit_ms));
            continue;
        }
        f->command.kind = LEDGER_COMMAND_INGEST;
        for (uint32_t k = 0; k < count; k++) {
            char line[256];

            random_line(&r, f, number, line, sizeof(line));
            fixture_add(f, line);
            number += draw(&r, 12) == 0 ? 0 : 1; /* sometimes an id comes twice */
        }
        if (fixture_apply(f) == RON_ERR_OK && f->result.applied)
            (*ret_applied)++;
    }
    return ledger_core_digest(f->core);
}

static bool find_nothing(void *context, const struct ledger_id *id, uint64_t batch_max,
                         struct ledger_entry *ret_entry)
{
    (void)context;
    (void)id;
    (void)batch_max;
    (void)ret_entry;
    return false;
}

static bool find_no_nonce(void *context, const struct ledger_id *debit, uint64_t nonce,
                          uint64_t batch_max, struct ledger_entry *ret_entry)
{
    (void)nonce;
    return find_nothing(context, debit, batch_max, ret_entry);
}

static void random_streams_keep_every_invariant(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct ron_b3 digests[2];

        for (unsigned again = 0; again < 2; again++) {
            struct ledger_capacity capacity = ledger_capacity_of(256);
            struct ledger_archive archive = {.find_entry = find_nothing,
                                             .find_nonce = find_no_nonce};
            struct fixture *f;
            unsigned applied;

            capacity.entries_window = seed % 2 == 0 ? 64 : 4096;
            capacity.batches_window = 4096;
            f = fixture_new(&capacity, seed % 2 == 0 ? &archive : NULL);
            digests[again] = random_run(f, seed, 900, &applied);
            assert_true(applied > 80);
            (void)fixture_teardown((void **)&f);
        }
        assert_memory_equal(digests[0].bytes, digests[1].bytes, RON_B3_SIZE);
    }
}

/* The end of one stream, made once with gcc -O2: every compiler and level must come to it. */
static void compilers_agree(void **state)
{
    struct fixture *f = *state;
    char text[RON_HEX_SIZE(RON_SHA256_SIZE)];
    unsigned applied;

    (void)random_run(f, 42, 300, &applied);
    (void)ron_hex_encode(ron_slice_of(f->root.bytes, RON_SHA256_SIZE), text, sizeof(text));
    assert_string_equal(text, "e611de455751f65c3a99ac06c359c2a9a0d86e59609286a5edc5bd9feadd3867");
}

/* Batches that touch different accounts, in any order: the same balances. */
static void independent_batches_commute(void **state)
{
    struct ron_sha256 roots[3];

    (void)state;
    for (unsigned order = 0; order < 3; order++) {
        struct ledger_capacity capacity = fixture_capacity();
        struct fixture *f = fixture_new(&capacity, NULL);
        uint64_t rows_count;

        applies(f, "Mint id=m1 to=a1 asset=roc amount=10", "Mint id=m2 to=a2 asset=roc amount=10",
                "Mint id=m3 to=a3 asset=roc amount=10", NULL);
        for (unsigned i = 0; i < 3; i++) {
            unsigned k = 1 + (order == 2 ? 2 - i : (i + order) % 3);
            char line[2][96];

            (void)snprintf(line[0], sizeof(line[0]),
                           "Transfer id=t%u from=a%u to=b%u asset=roc amount=%u nonce=1", k, k, k,
                           k);
            (void)snprintf(line[1], sizeof(line[1]), "Burn id=u%u from=b%u asset=roc amount=1", k,
                           k);
            applies(f, line[0], line[1], NULL);
        }
        assert_ok(ledger_core_state_root(f->core, &roots[order], &rows_count, &f->info));
        (void)fixture_teardown((void **)&f);
    }
    assert_memory_equal(roots[0].bytes, roots[1].bytes, RON_SHA256_SIZE);
    assert_memory_equal(roots[0].bytes, roots[2].bytes, RON_SHA256_SIZE);
}

/* A full batch, and one entry more. */
static void batches_hold_eight_thousand(void **state)
{
    struct fixture *f = *state;
    struct ledger_op *ops = ron_mem_alloc_array(RON_BATCH_ENTRIES_MAX + 1, sizeof(*ops));
    char *texts = ron_mem_alloc((size_t)16 * (RON_BATCH_ENTRIES_MAX + 1));

    assert_non_null(ops);
    assert_non_null(texts);
    for (uint32_t i = 0; i <= RON_BATCH_ENTRIES_MAX; i++) {
        char *text = texts + (size_t)16 * i;
        struct ledger_wire_entry wire = {
            .kind = S("Mint"), .to = S("alice"), .asset = S("roc"), .amount = S("3")};

        (void)snprintf(text, 16, "e%u", i);
        wire.id = S(text);
        assert_ok(ledger_shape_entry(ron_u128_of(0), &wire, &ops[i], NULL));
    }
    f->command.kind = LEDGER_COMMAND_INGEST;
    f->command.ops = ops;
    f->command.ops_count = RON_BATCH_ENTRIES_MAX + 1;
    assert_int_equal(
        ledger_core_apply(f->core, &f->command, &f->batch, &f->result, &f->refusal, &f->info),
        RON_ERR_TOO_LARGE);
    f->command.ops_count = RON_BATCH_ENTRIES_MAX;
    assert_ok(
        ledger_core_apply(f->core, &f->command, &f->batch, &f->result, &f->refusal, &f->info));
    ledger_core_seal(f->core, &f->batch);
    ledger_core_commit(f->core, &f->batch);
    balance_is(f, "alice", "roc", "24000");
    f->command.ops_count = 0;
    refuses(f, RON_ERR_MALFORMED, NO_INDEX, NULL, NULL);
    (void)ron_mem_free(texts);
    (void)ron_mem_free(ops);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_streams_keep_every_invariant),
        TEST(compilers_agree),
        cmocka_unit_test(independent_batches_commute),
        TEST(batches_hold_eight_thousand),
    };
    return cmocka_run_group_tests_name("ledger_properties", tests, NULL, NULL);
}
