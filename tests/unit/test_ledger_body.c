/*
 * test_ledger_body.c - the bodies of the ledger's API (src/ledger/body.h).
 *
 * Method: whole bodies in, what came out member by member; fingerprints against digests made by
 * Python (tests/model/blake3.py over json.dumps with sorted names); every refusal with its index.
 */
#include <stdio.h>

#include "base/hex.h"
#include "ledger/body.h"
#include "support.h"

static const struct ron_slice none = {NULL, 0};
static const struct ron_u128 tenant = {0};

#define T1                                                                                  \
    "{\"id\":\"t1\",\"kind\":\"Transfer\",\"from\":\"acct_a\",\"to\":\"acct_b\",\"asset\":" \
    "\"roc\",\"amount\":\"40\",\"nonce\":1"
#define VECTOR "068954b85c1fb8f1dee4f2e608574798aa606428aa34886f56b6103d0173d3f9"

struct fixture {
    struct body_scratch scratch;
    struct ledger_ingest_body ingest;
    struct ledger_intents_body intents;
    uint32_t index;
    struct ron_errinfo info;
};

static int setup(void **state)
{
    static struct fixture fixture;

    assert_ok(body_scratch_init(&fixture.scratch, NULL));
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    body_scratch_fini(&f->scratch);
    return 0;
}

static enum ron_err read_ingest(struct fixture *f, const char *text, const char *key)
{
    body_scratch_reset(&f->scratch);
    return ledger_read_ingest(&f->scratch, ron_slice_text(text),
                              key == NULL ? none : ron_slice_text(key), tenant, &f->ingest,
                              &f->index, &f->info);
}

static enum ron_err read_intents(struct fixture *f, const char *text, const char *key)
{
    body_scratch_reset(&f->scratch);
    return ledger_read_intents(&f->scratch, ron_slice_text(text),
                               key == NULL ? none : ron_slice_text(key), tenant, &f->intents,
                               &f->index, &f->info);
}

static void assert_b3(const struct ron_b3 *hash, const char *expected)
{
    char text[RON_HEX_SIZE(RON_B3_SIZE)];

    (void)ron_hex_encode(ron_slice_of(hash->bytes, RON_B3_SIZE), text, sizeof(text));
    assert_string_equal(text, expected);
}

static void assert_text(struct ron_slice text, const char *expected)
{
    assert_true(ron_slice_equal(text, ron_slice_text(expected)));
}

/* One body in three spellings: order, space, escapes, ts and the place of the key do not count.
 * covers: LED-V05 */
static void fingerprint_is_of_the_canonical_body(void **state)
{
    static const char *const bodies[] = {
        "{\"batch\":[" T1 ",\"ts\":5,\"memo\":\"caf\xc3\xa9 \\\"x\\\"\\n\",\"meta\":{\"b\":[1,2],"
        "\"a\":{\"z\":null}}},{\"id\":\"h1\",\"kind\":\"Hold\",\"from\":\"acct_a\",\"hold_id\":"
        "\"H\",\"payee\":\"*\",\"expires_at\":\"2030-01-01T00:00:00Z\",\"asset\":\"roc\","
        "\"amount\":\"7\",\"nonce\":18446744073709551615}],\"idem_id\":\"k\"}",
        " { \"idem_id\" : \"k\", \"batch\" : [ {\"meta\":{\"a\":{\"z\": null},\"b\":[1 ,2]},"
        "\"amount\":\"40\",\"id\":\"t\\u0031\",\"memo\":\"caf\\u00e9 \\u0022x\\\"\\u000a\","
        "\"kind\":\"Transfer\",\"to\":\"acct_b\",\"from\":\"acct_a\",\"asset\":\"roc\","
        "\"nonce\":1},\n{\"nonce\":18446744073709551615,\"id\":\"h1\",\"ts\":9,\"kind\":\"Hold\","
        "\"from\":\"acct_a\",\"hold_id\":\"H\",\"payee\":\"\\u002a\",\"expires_at\":"
        "\"2030-01-01T00:00:00Z\",\"asset\":\"roc\",\"amount\":\"7\"} ] } ",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < RON_ARRAY_COUNT(bodies); i++) {
        assert_ok(read_ingest(f, bodies[i], NULL));
        assert_text(f->ingest.key, "k");
        assert_int_equal(f->ingest.ops_count, 2);
        assert_b3(&f->ingest.fingerprint, VECTOR);
        assert_text(f->ingest.ops[0].meta, "{\"a\":{\"z\":null},\"b\":[1,2]}");
        assert_text(f->ingest.ops[0].id_text, "t1");
        assert_int_equal(f->ingest.ops[0].amount.v, 40);
        assert_true(f->ingest.ops[i].has_ts);
        assert_true(f->ingest.ops[1].nonce == UINT64_MAX);
        assert_true(ledger_id_is_zero(&f->ingest.ops[1].other));
    }
}

/* Every member but ts is in it. covers: LED-V02 */
static void every_member_changes_the_fingerprint(void **state)
{
    static const char *const tails[] = {
        "", ",\"memo\":\"\"", ",\"memo\":\"x\"", ",\"meta\":{}", ",\"meta\":{\"a\":1}",
    };
    struct fixture *f = *state;
    struct ron_b3 seen[RON_ARRAY_COUNT(tails)];
    char text[512];

    for (size_t i = 0; i < RON_ARRAY_COUNT(tails); i++) {
        (void)snprintf(text, sizeof(text), "{\"batch\":[" T1 "%s}]}", tails[i]);
        assert_ok(read_ingest(f, text, "key"));
        seen[i] = f->ingest.fingerprint;
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(seen[i].bytes, seen[j].bytes, RON_B3_SIZE);
    }
    assert_ok(read_ingest(f, "{\"batch\":[" T1 ",\"ts\":77}]}", "other-key"));
    assert_memory_equal(f->ingest.fingerprint.bytes, seen[0].bytes, RON_B3_SIZE);
}

static void keys_of_head_and_body_are_one(void **state)
{
    struct fixture *f = *state;

    assert_ok(read_ingest(f, "{\"batch\":[" T1 "}]}", NULL));
    assert_int_equal(f->ingest.key.size, 0);
    assert_ok(read_ingest(f, "{\"batch\":[" T1 "}]}", "tx-77"));
    assert_text(f->ingest.key, "tx-77");
    assert_ok(read_ingest(f, "{\"batch\":[" T1 "}],\"idem_id\":\"tx-77\"}", "tx-77"));
    assert_text(f->ingest.key, "tx-77");
    support_assert_error(read_ingest(f, "{\"batch\":[" T1 "}],\"idem_id\":\"tx-7\"}", "tx-77"),
                         &f->info, RON_ERR_MALFORMED, "differ");
    support_assert_error(read_ingest(f, "{\"batch\":[" T1 "}],\"idem_id\":\"tx-78\"}", "tx-77"),
                         &f->info, RON_ERR_MALFORMED, "differ");
    support_assert_error(read_ingest(f, "{\"batch\":[" T1 "}],\"idem_id\":\"\"}", NULL), &f->info,
                         RON_ERR_MALFORMED, "idem_id");
    support_assert_error(read_ingest(f, "{\"batch\":[" T1 "}]}", "a key"), &f->info,
                         RON_ERR_MALFORMED, "idem_id");
}

/* Each with its code, its index and a word of its reason. covers: LED-V05 */
static void bad_entries_are_refused_with_their_index(void **state)
{
    static const struct {
        const char *entry;
        const char *text;
    } cases[] = {
        {T1 ",\"extra\":1}", "unknown member \"extra\""},
        {T1 ",\"nonce\":2}", "duplicate member \"nonce\""},
        {T1 ",\"ts\":-1}", "ts"},
        {T1 ",\"ts\":1.5}", "ts"},
        {T1 ",\"memo\":null}", "null is not allowed"},
        {T1 ",\"meta\":[]}", "expected an object"},
        {T1 ",\"meta\":{\"a\":9007199254740993}}", "meta"},
        {T1 ",\"to\":1}", "to"},
        {"7", "expected an object"},
        {"{\"id\":\"x\"}", "\"kind\" is missing"},
        {"{\"kind\":\"Mint\"}", "\"id\" is missing"},
        {"{\"id\":\"x\",\"kind\":\"Gift\"}", "kind"},
        {"{\"id\":\"x\",\"kind\":\"Asset\"}", "kind"},
        {"{\"id\":\"a b\",\"kind\":\"Mint\"}", "id"},
        {"{\"id\":\"x\",\"kind\":\"Mint\",\"to\":\"a\",\"asset\":\"roc\",\"amount\":40}", "amount"},
        {"{\"id\":\"x\",\"kind\":\"Mint\",\"to\":\"a\",\"asset\":\"roc\",\"amount\":\"0\"}",
         "amount is zero"},
        {"{\"id\":\"x\",\"kind\":\"Mint\",\"to\":\"a\",\"asset\":\"roc\",\"amount\":\"-1\"}",
         "amount"},
        {"{\"id\":\"x\",\"kind\":\"Mint\",\"to\":\"a\",\"asset\":\"roc\",\"amount\":\"1.0\"}",
         "amount"},
        {"{\"id\":\"x\",\"kind\":\"Mint\",\"to\":\"a\",\"asset\":\"roc\",\"amount\":"
         "\"1000000000000000000000000000000000000000\"}",
         "amount"},
        {"{\"id\":\"x\",\"kind\":\"Mint\",\"to\":\"a@b\",\"asset\":\"roc\",\"amount\":\"1\"}",
         "to is not an account"},
        {"{\"id\":\"x\",\"kind\":\"Mint\",\"to\":\"a\",\"asset\":\"ROC\",\"amount\":\"1\"}",
         "asset"},
        {"{\"id\":\"x\",\"kind\":\"Transfer\",\"from\":\"a\",\"to\":\"a\",\"asset\":\"roc\","
         "\"amount\":\"1\"}",
         "same account"},
        {"{\"id\":\"x\",\"kind\":\"Release\",\"hold_id\":\"h\",\"to\":\"a\",\"asset\":\"roc\","
         "\"amount\":\"1\"}",
         "member of another kind"},
    };
    struct fixture *f = *state;
    char text[1024];

    for (size_t i = 0; i < RON_ARRAY_COUNT(cases); i++) {
        (void)snprintf(text, sizeof(text), "{\"batch\":[" T1 "}," T1 "},%s]}", cases[i].entry);
        support_assert_error(read_ingest(f, text, "k"), &f->info, RON_ERR_MALFORMED, cases[i].text);
        assert_int_equal(f->index, 2);
    }
}

static void bad_bodies_are_refused_without_index(void **state)
{
    struct fixture *f = *state;

    support_assert_error(read_ingest(f, "", NULL), &f->info, RON_ERR_MALFORMED, "");
    assert_int_equal(f->index, UINT32_MAX);
    support_assert_error(read_ingest(f, "[]", NULL), &f->info, RON_ERR_MALFORMED, "object");
    support_assert_error(read_ingest(f, "{}", NULL), &f->info, RON_ERR_MALFORMED, "batch");
    support_assert_error(read_ingest(f, "{\"batch\":[]}", NULL), &f->info, RON_ERR_MALFORMED,
                         "batch");
    assert_int_equal(f->index, UINT32_MAX);
    support_assert_error(read_ingest(f, "{\"batch\":[" T1 "}],\"more\":1}", NULL), &f->info,
                         RON_ERR_MALFORMED, "more");
    assert_int_equal(f->index, UINT32_MAX);
    support_assert_error(read_ingest(f, "{\"batch\":[" T1 "}]}x", NULL), &f->info,
                         RON_ERR_MALFORMED, "");
    assert_int_equal(f->index, UINT32_MAX);
}

/* A full batch fits, also where every string has an escape; one more is TooLarge. */
static void batch_bounds(void **state)
{
    struct fixture *f = *state;
    struct ron_buf buf;

    for (unsigned count = RON_BATCH_ENTRIES_MAX; count <= RON_BATCH_ENTRIES_MAX + 1; count++) {
        enum ron_err err;

        ron_buf_init(&buf, RON_BODY_SIZE_MAX);
        ron_buf_put_text(&buf, "{\"batch\":[");
        for (unsigned i = 0; i < count; i++)
            ron_buf_put_format(&buf,
                               "%s{\"id\":\"\\u0078%u\",\"kind\":\"Mint\",\"to\":\"\\u0061\","
                               "\"asset\":\"roc\",\"amount\":\"1\",\"memo\":\"\\n\",\"meta\":{}}",
                               i == 0 ? "" : ",", i);
        ron_buf_put_text(&buf, "]}");
        assert_ok(ron_buf_check(&buf, NULL));
        body_scratch_reset(&f->scratch);
        err = ledger_read_ingest(&f->scratch, ron_buf_slice(&buf), RON_SLICE("k"), tenant,
                                 &f->ingest, &f->index, &f->info);
        ron_buf_fini(&buf);
        if (count > RON_BATCH_ENTRIES_MAX) {
            support_assert_error(err, &f->info, RON_ERR_TOO_LARGE, "batch");
            assert_int_equal(f->index, UINT32_MAX);
        } else {
            assert_ok(err);
            assert_int_equal(f->ingest.ops_count, RON_BATCH_ENTRIES_MAX);
            assert_text(f->ingest.ops[7999].id_text, "x7999");
            assert_text(f->ingest.ops[7999].meta, "{}");
        }
    }
}

#define RUN(chunk, payouts)                                                                  \
    "{\"epoch_id\":\"e1\",\"run_key\":\"rk\",\"commitment\":\"b3:"                           \
    "5555555555555555555555555555555555555555555555555555555555555555\",\"funding_source\":" \
    "\"main\",\"asset\":\"roc\",\"total\":\"50\",\"chunk\":" chunk                           \
    ",\"chunks\":2,\"payouts\":[" payouts "]}"
#define P1 "{\"id\":\"p1\",\"to\":\"dave\",\"amount\":\"20\"}"

static void intents_have_terms_and_payouts(void **state)
{
    struct fixture *f = *state;

    assert_ok(read_intents(f, RUN("0", P1), NULL));
    assert_b3(&f->intents.fingerprint,
              "6d29af34d9329307310d96f88bfd1639123a8ab499477ac4d0880a583bfdc702");
    assert_int_equal(f->intents.ops_count, 1);
    assert_int_equal(f->intents.ops[0].kind, LEDGER_CAPTURE);
    assert_text(f->intents.run.funding_source, "main");
    assert_int_equal(f->intents.run.total.v, 50);
    assert_int_equal(f->intents.run.commitment[31], 0x55);
    assert_ok(read_intents(f, RUN("1", P1), "rk:1"));
    support_assert_error(read_intents(f, RUN("1", P1), "rk:0"), &f->info, RON_ERR_MALFORMED,
                         "<run_key>:<chunk>");
    support_assert_error(read_intents(f, RUN("2", P1), NULL), &f->info, RON_ERR_MALFORMED,
                         "chunk 2 of 2");
    assert_int_equal(f->index, UINT32_MAX);
    support_assert_error(read_intents(f, RUN("0", ""), NULL), &f->info, RON_ERR_MALFORMED,
                         "payouts");
    support_assert_error(
        read_intents(f, RUN("0", P1 ",{\"id\":\"p2\",\"to\":\"d\",\"amount\":\"0\"}"), NULL),
        &f->info, RON_ERR_MALFORMED, "amount is zero");
    assert_int_equal(f->index, 1);
    support_assert_error(
        read_intents(f, RUN("0", P1 ",{\"id\":\"p2\",\"to\":\"d\",\"kind\":\"Mint\"}"), NULL),
        &f->info, RON_ERR_MALFORMED, "unknown member \"kind\"");
    assert_int_equal(f->index, 1);
}

static void terms_of_the_small_bodies(void **state)
{
    struct fixture *f = *state;
    struct ledger_asset_terms asset;
    struct ledger_limit_terms limits;
    struct ledger_abandon_terms abandon;

    assert_ok(ledger_read_asset(
        &f->scratch, RON_SLICE("{\"asset\":\"usd\",\"decimals\":2,\"max_supply\":\"5000\"}"),
        &asset, NULL));
    assert_text(asset.name, "usd");
    assert_int_equal(asset.decimals, 2);
    assert_int_equal(asset.max_supply.v, 5000);
    support_assert_error(
        ledger_read_asset(&f->scratch,
                          RON_SLICE("{\"asset\":\"usd\",\"decimals\":39,\"max_supply\":\"1\"}"),
                          &asset, &f->info),
        &f->info, RON_ERR_MALFORMED, "decimals");
    assert_ok(ledger_read_limits(
        &f->scratch,
        RON_SLICE("{\"account\":\"bob\",\"asset\":\"roc\",\"daily\":\"9\",\"frozen\":false}"),
        &limits, NULL));
    assert_true(limits.has_daily && limits.has_frozen && !limits.frozen);
    assert_false(limits.has_minimum || limits.has_maximum || limits.has_credit_line);
    assert_int_equal(limits.daily.v, 9);
    assert_ok(ledger_read_limits(&f->scratch, RON_SLICE("{\"account\":\"bob\",\"frozen\":true}"),
                                 &limits, NULL));
    assert_null(limits.asset.data);
    assert_ok(ledger_read_abandon(
        &f->scratch, RON_SLICE("{\"epoch_id\":\"e1\",\"run_key\":\"rk\"}"), &abandon, NULL));
    assert_text(abandon.run_key, "rk");
}

/* The public vector of a slice: 00-system and the metering design give its digest. */
#define SLICE_A                                                                                    \
    "{\"id\":{\"tenant\":1,\"dimension\":\"bytes\",\"seq\":0},\"meta\":{\"version\":1,"            \
    "\"window_start_ms\":300000,\"window_end_ms\":600000,\"sealed_at_ms\":600001,\"prev_b3\":"     \
    "null,\"amnesia\":false},\"rows\":[{\"labels\":{\"tenant\":1,\"service\":\"svc-storage\","     \
    "\"region\":\"local\",\"method\":\"PUT\",\"route\":\"/objects/:id\"},\"dimension\":\"bytes\"," \
    "\"value\":1024}]"
#define SLICE_A_DIGEST "b3:070d4c441bd8cc625c00e5e11bd86022e6b563c25597e2134297db5e73039be4"

static void slices_name_their_digest(void **state)
{
    struct fixture *f = *state;
    struct ledger_slice_body body;

    assert_ok(ledger_read_slice(
        &f->scratch, RON_SLICE(SLICE_A ",\"digest\":\"" SLICE_A_DIGEST "\"}"), &body, NULL));
    assert_false(body.is_shed);
    assert_int_equal(body.tenant.v, 1);
    assert_text(body.terms.dimension, "bytes");
    assert_int_equal(body.terms.digest[0], 0x07);
    assert_int_equal(body.terms.prev[0], 0);
    support_assert_error(
        ledger_read_slice(
            &f->scratch,
            RON_SLICE(SLICE_A
                      ",\"digest\":\"b3:170d4c441bd8cc625c00e5e11bd86022e6b563c25597e2134297"
                      "db5e73039be4\"}"),
            &body, &f->info),
        &f->info, RON_ERR_MALFORMED, "not that of the slice");
    support_assert_error(
        ledger_read_slice(&f->scratch, RON_SLICE(SLICE_A ",\"digest\":\"" SLICE_A_DIGEST "\" }"),
                          &body, &f->info),
        &f->info, RON_ERR_MALFORMED, "last member");
    support_assert_error(ledger_read_slice(&f->scratch, RON_SLICE(SLICE_A "}"), &body, &f->info),
                         &f->info, RON_ERR_MALFORMED, "neither");
    assert_ok(ledger_read_slice(
        &f->scratch,
        RON_SLICE("{\"shed\":{\"id\":{\"tenant\":1,\"dimension\":\"bytes\",\"seq\":1},\"digest\":"
                  "\"" SLICE_A_DIGEST "\",\"prev_b3\":\"" SLICE_A_DIGEST
                  "\",\"rows\":3,\"sum\":\"77\",\"reason\":\"lane full\"}}"),
        &body, NULL));
    assert_true(body.is_shed);
    assert_int_equal(body.terms.seq, 1);
    assert_int_equal(body.terms.prev[0], 0x07);
}

static enum ron_err attempt(void *context, struct ron_errinfo *reterr)
{
    struct body_scratch scratch;
    struct ledger_ingest_body body;
    uint32_t index;
    enum ron_err err = body_scratch_init(&scratch, reterr);

    (void)context;
    if (err != RON_ERR_OK)
        return err;
    err = ledger_read_ingest(&scratch, RON_SLICE("{\"batch\":[" T1 ",\"meta\":{}}]}"),
                             RON_SLICE("k"), tenant, &body, &index, reterr);
    body_scratch_fini(&scratch);
    return err;
}

static void reading_without_memory_fails_cleanly(void **state)
{
    (void)state;
    assert_in_range(support_fail_each_allocation(attempt, NULL, 16), 3, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fingerprint_is_of_the_canonical_body),
        cmocka_unit_test(every_member_changes_the_fingerprint),
        cmocka_unit_test(keys_of_head_and_body_are_one),
        cmocka_unit_test(bad_entries_are_refused_with_their_index),
        cmocka_unit_test(bad_bodies_are_refused_without_index),
        cmocka_unit_test(batch_bounds),
        cmocka_unit_test(intents_have_terms_and_payouts),
        cmocka_unit_test(terms_of_the_small_bodies),
        cmocka_unit_test(slices_name_their_digest),
        cmocka_unit_test(reading_without_memory_fails_cleanly),
    };
    return cmocka_run_group_tests_name("ledger_body", tests, setup, teardown);
}
