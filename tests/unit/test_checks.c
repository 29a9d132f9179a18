/*
 * test_checks.c - what the ledger's checks ask, how they read answers, and policy in process.
 *
 * Method: golden questions and a table of answers on the simulated transport; the service on real
 * threads for what is charged and given back. Time is models/ledger_checks.c's work, sockets are
 * tests/ledger-ports'.
 */
#include "service_fixture.h"

#include "auth/caveat.h"
#include "io/client_sim.h"
#include "ledger/checks_impl.h"
#include "rt/metric_names.h"

#define CAPABILITY "k1.01ARZ3NDEKTSV4RRFFQ69G5FAV"
#define YES        "\"ok\":true,\"kid\":\"k1\",\"capability_ref\":\"" CAPABILITY "\""

static struct auth_grant grant_of(const char *caveat)
{
    struct auth_grant grant;

    auth_grant_begin(&grant, RON_SLICE(CAPABILITY));
    if (caveat != NULL)
        assert_ok(auth_caveat_apply(&grant, ron_slice_text(caveat), NULL));
    return grant;
}

/* --- The wire ------------------------------------------------------------------------------------
 */

static void question_is(enum ledger_check_port port, const struct ledger_request *request,
                        const char *expected)
{
    struct ron_buf buf;

    ron_buf_init(&buf, 4096);
    assert_ok(check_wire_put(port, request, &buf, NULL));
    ron_buf_put_byte(&buf, '\0');
    assert_string_equal((const char *)buf.data, expected);
    ron_buf_fini(&buf);
}

static void questions_have_these_bytes(void **state)
{
    const struct auth_grant grant = grant_of(NULL);
    const struct ledger_op ops[] = {
        {.kind = LEDGER_TRANSFER,
         .id_text = S("t1"),
         .debit_name = S("alice"),
         .credit_name = S("bob"),
         .asset_name = S("roc"),
         .amount = {40},
         .nonce = 3},
        {.kind = LEDGER_MINT, .id_text = S("m1"), .credit = {{0xab}}, .asset = 1, .amount = {7}},
        {.kind = LEDGER_ANCHOR, .debit = {{1}}, .credit = {{2}}},
        {.kind = LEDGER_BURN, /* as a binary entry */
         .id_text = ron_slice_of("0123456789abcdef", 0),
         .debit = {{0xcd}},
         .asset = 2,
         .amount = {8}}};
    struct ledger_request request = {.command = {.kind = LEDGER_COMMAND_INGEST,
                                                 .key = S("k\"1"),
                                                 .ops = ops,
                                                 .ops_count = RON_ARRAY_COUNT(ops)},
                                     .grant = &grant};

#define WHO                                                                   \
    "{\"kid\":\"k1\",\"capability_ref\":\"" CAPABILITY "\",\"tenant\":\"9\"," \
    "\"caller\":\"rewarder\",\"command\":\"ingest\""
    (void)state;
    request.command.stamp.tenant.v = 9;
    request.command.stamp.caller = LEDGER_CALLER_REWARDER;
    question_is(LEDGER_CHECK_KMS, &request, WHO "}");
    question_is(LEDGER_CHECK_POLICY, &request,
                WHO ",\"entries\":[{\"kind\":\"Transfer\",\"debit\":\"alice\",\"credit\":\"bob\","
                    "\"asset\":\"roc\",\"amount\":\"40\"},{\"kind\":\"Mint\","
                    "\"credit_id\":\"ab000000000000000000000000000000\",\"asset_number\":1,"
                    "\"amount\":\"7\"},{\"kind\":\"Anchor\",\"amount\":\"0\"},{\"kind\":\"Burn\","
                    "\"debit_id\":\"cd000000000000000000000000000000\",\"asset_number\":2,"
                    "\"amount\":\"8\"}]}");
    question_is(LEDGER_CHECK_WALLET, &request,
                WHO ",\"idem_key\":\"k\\\"1\",\"debits\":[{\"id\":\"t1\",\"account\":\"alice\","
                    "\"asset\":\"roc\",\"amount\":\"40\",\"nonce\":3},"
                    "{\"id\":\"30313233343536373839616263646566\","
                    "\"account_id\":\"cd000000000000000000000000000000\","
                    "\"asset_number\":2,\"amount\":\"8\",\"nonce\":0}]}");
#undef WHO
}

static void answers_are_read_strictly(void **state)
{
    static const struct {
        int status;
        const char *body;
        enum check_verdict verdict;
    } rows[] = {
        {200, "{" YES "}", CHECK_YES},
        {200, "{\"new\":{\"ok\":[false]}," YES ",\"epoch\":3}", CHECK_YES},
        {200, "{\"ok\":false}", CHECK_NO},
        {200, "{\"ok\":false,\"reason\":\"r\",\"kid\":\"k2\"}", CHECK_NO},
        {400, "", CHECK_NO},
        {401, "{" YES "}", CHECK_NO},
        {403, "", CHECK_NO},
        {404, "", CHECK_NO},
        {499, "", CHECK_NO},
        {408, "", CHECK_LATER},
        {429, "", CHECK_LATER},
        {201, "{" YES "}", CHECK_FAILED},
        {302, "{" YES "}", CHECK_FAILED},
        {500, "{" YES "}", CHECK_FAILED},
        {503, "", CHECK_FAILED},
        {200, "", CHECK_FAILED},
        {200, "<html>", CHECK_FAILED},
        {200, "[" YES "]", CHECK_FAILED},
        {200, "true", CHECK_FAILED},
        {200, "{" YES "", CHECK_FAILED},
        {200, "{" YES "} x", CHECK_FAILED},
        {200, "{" YES ",\"ok\":true}", CHECK_FAILED},
        {200, "{\"ok\":1,\"kid\":\"k1\",\"capability_ref\":\"" CAPABILITY "\"}", CHECK_FAILED},
        {200, "{\"ok\":\"true\",\"kid\":\"k1\",\"capability_ref\":\"" CAPABILITY "\"}",
         CHECK_FAILED},
        {200, "{\"kid\":\"k1\",\"capability_ref\":\"" CAPABILITY "\"}", CHECK_FAILED},
        {200, "{\"ok\":true}", CHECK_FAILED},
        {200, "{\"ok\":true,\"kid\":\"k1\"}", CHECK_FAILED},
        {200, "{\"ok\":true,\"capability_ref\":\"" CAPABILITY "\"}", CHECK_FAILED},
        {200, "{\"ok\":true,\"kid\":\"k2\",\"capability_ref\":\"" CAPABILITY "\"}", CHECK_FAILED},
        {200, "{\"ok\":true,\"kid\":\"k1\",\"capability_ref\":\"k1.0\"}", CHECK_FAILED},
        {200, "{" YES ",\"epoch\":-1}", CHECK_FAILED},
        {200, "{" YES ",\"epoch\":\"1\"}", CHECK_FAILED},
        {200, "{" YES ",\"epoch\":18446744073709551616}", CHECK_FAILED},
        {200, "{\"ok\":false,\"reason\":7}", CHECK_FAILED},
    };
    const struct auth_grant grant = grant_of(NULL);
    struct check_answer answer;
    char *large = ron_mem_alloc(8192);

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(rows); i++) {
        check_wire_read(rows[i].status, ron_slice_text(rows[i].body), &grant, &answer);
        if (answer.verdict != rows[i].verdict)
            print_error("row %zu: %s\n", i, rows[i].body);
        assert_int_equal(answer.verdict, rows[i].verdict);
    }
    check_wire_read(200, RON_SLICE("{" YES ",\"epoch\":18446744073709551615}"), &grant, &answer);
    assert_true(answer.has_epoch);
    assert_true(answer.epoch == UINT64_MAX);
    check_wire_read(200, RON_SLICE("{\"ok\":false,\"reason\":\"no\\n\\u0007 \\u00e9\"}"), &grant,
                    &answer);
    assert_string_equal(answer.text, "no\\x0a\\x07 \\xc3\\xa9"); /* fit for a log line */
    assert_non_null(large);
    memset(large, ' ', 8192);
    memcpy(large, "{" YES "}", sizeof("{" YES "}") - 1);
    check_wire_read(200, ron_slice_of(large, 4096), &grant, &answer);
    assert_int_equal(answer.verdict, CHECK_YES);
    check_wire_read(200, ron_slice_of(large, 4097), &grant, &answer);
    assert_int_equal(answer.verdict, CHECK_FAILED);
    (void)ron_mem_free(large);
}

/* --- Policy in process ---------------------------------------------------------------------------
 */

static struct ledger_checks *checks_make(struct rt_metrics *metrics)
{
    struct ledger_checks_options options = ledger_checks_defaults();
    struct ledger_checks *checks = NULL;

    options.policy_rows = AUTH_POLICY_WAYS;
    options.cache_slots = 0;
    options.metrics = metrics;
    assert_ok(ledger_checks_new(&options, &checks, NULL));
    assert_false(ledger_checks_are_remote(checks));
    return checks;
}

static enum ron_err asked(struct ledger_checks *checks, const struct auth_grant *grant,
                          const struct ledger_op *ops, uint32_t ops_count) RON_BLOCKS
{
    struct ledger_request request = {
        .command = {.kind = ops_count > 0 ? LEDGER_COMMAND_INGEST : LEDGER_COMMAND_ASSET,
                    .ops = ops,
                    .ops_count = ops_count},
        .grant = grant,
        .deadline = RT_DEADLINE_NEVER,
        .state = {.arrived_ms = UINT64_C(1800000000000)}};

    return ledger_checks_ask(checks, &request, &(bool){false}, NULL);
}

static void policy_is_asked_of_every_entry(void **state) RON_BLOCKS
{
    struct ledger_checks *checks;
    const struct auth_grant all = grant_of(NULL);
    const struct auth_grant alice = grant_of("account = alice");
    const struct auth_grant roc = grant_of("asset = roc");
    const struct auth_grant small = grant_of("max_amount = 10");
    const struct auth_grant daily = grant_of("max_daily = 10");
    struct ledger_op ops[] = {
        {.kind = LEDGER_TRANSFER, .debit_name = S("alice"), .asset_name = S("roc"), .amount = {4}},
        {.kind = LEDGER_TRANSFER, .debit_name = S("alice"), .asset_name = S("roc"), .amount = {4}},
    };

    (void)state;
    rt_init();
    checks = checks_make(NULL);
    assert_int_equal(asked(checks, NULL, ops, 2), RON_ERR_UNAUTHORIZED); /* fail closed */
    assert_ok(asked(checks, &all, ops, 2));
    assert_ok(asked(checks, &alice, ops, 2));
    assert_ok(asked(checks, &roc, ops, 2));
    assert_ok(asked(checks, &small, ops, 2));
    ops[1].debit_name = S("bob");
    assert_int_equal(asked(checks, &alice, ops, 2), RON_ERR_FORBIDDEN);
    ops[1].debit_name = S(""); /* known by number alone */
    assert_int_equal(asked(checks, &alice, ops, 2), RON_ERR_FORBIDDEN);
    assert_ok(asked(checks, &all, ops, 2));
    ops[1] = ops[0];
    ops[1].asset_name = S("");
    ops[1].asset = 1;
    assert_int_equal(asked(checks, &roc, ops, 2), RON_ERR_FORBIDDEN);
    ops[1] = ops[0];
    ops[1].amount.v = 11;
    assert_int_equal(asked(checks, &small, ops, 2), RON_ERR_LIMIT_EXCEEDED);
    /* The day's sum: a refused batch leaves nothing of it, a repeated question adds. */
    assert_int_equal(asked(checks, &daily, ops, 2), RON_ERR_LIMIT_EXCEEDED);
    ops[1].amount.v = 6;
    assert_ok(asked(checks, &daily, ops, 2));
    assert_int_equal(asked(checks, &daily, ops, 1), RON_ERR_LIMIT_EXCEEDED);
    ops[0].kind = LEDGER_CREDIT; /* takes nothing from the caller */
    assert_ok(asked(checks, &daily, ops, 1));
    /* A freeze. */
    ops[0].kind = LEDGER_DEBIT;
    assert_ok(ledger_checks_freeze(checks, S("alice"), 0, NULL));
    assert_int_equal(asked(checks, &all, ops, 1), RON_ERR_NOT_READY);
    assert_ok(asked(checks, &all, NULL, 0));
    assert_ok(ledger_checks_lift(checks, S("alice"), NULL));
    assert_ok(ledger_checks_freeze(checks, S(""), 0, NULL));
    assert_int_equal(asked(checks, &all, NULL, 0), RON_ERR_NOT_READY);
    checks = ledger_checks_free(checks);
}

/* A door that asked itself is not asked about again, nor given back what it charged; the sums are
 * the same ones. */
static void policy_is_asked_once(void **state) RON_BLOCKS
{
    struct ledger_checks *checks;
    const struct auth_grant daily = grant_of("max_daily = 10");
    struct ledger_op op = {.kind = LEDGER_TRANSFER,
                           .id_text = S("t1"),
                           .debit_name = S("alice"),
                           .asset_name = S("roc"),
                           .amount = {6}};
    const struct auth_act act = {
        .role = AUTH_ROLE_LEDGER,
        .is_write = true,
        .charge = true,
        .use = {.account = S("alice"), .is_debit = true, .asset = S("roc"), .amount = {6}},
        .now_ms = UINT64_C(1800000000000)};
    struct ledger_request request = {.command = {.ops = &op, .ops_count = 1},
                                     .grant = &daily,
                                     .policy_asked = true,
                                     .deadline = RT_DEADLINE_NEVER,
                                     .state = {.arrived_ms = act.now_ms}};
    struct auth_details details = {0};

    (void)state;
    rt_init();
    checks = checks_make(NULL);
    assert_ok(ledger_checks_evaluate(checks, &daily, &act, &details, NULL));
    for (int i = 0; i < 3; i++) {
        assert_ok(ledger_checks_ask(checks, &request, &(bool){false}, NULL));
        ledger_checks_refund(checks, &request);
    }
    assert_int_equal(asked(checks, &daily, &op, 1), RON_ERR_LIMIT_EXCEEDED); /* 6 and 6 */
    assert_int_equal(ledger_checks_evaluate(checks, &daily, &act, &details, NULL),
                     RON_ERR_LIMIT_EXCEEDED);
    ledger_checks_take_back(checks, daily.capability, ron_u128_of(6), act.now_ms);
    assert_ok(asked(checks, &daily, &op, 1));
    checks = ledger_checks_free(checks);
}

/* What the pipeline refuses after the check, or answers as before, is not charged; and what used
 * the day up is answered as before. */
static void only_what_is_written_is_charged(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct auth_grant all = grant_of(NULL);
    struct auth_grant daily = grant_of("max_daily = 10");
    struct call *call;

    (void)state;
    f->options.checks = checks_make(NULL);
    fixture_start(f);
    call = call_new(f, "m1", NULL, "alice", 8, NULL);
    assert_int_equal(ask(f, call)->err, RON_ERR_UNAUTHORIZED);
    call = call_new(f, "m1", NULL, "alice", 8, NULL);
    call->request.grant = &all;
    accepts(f, call);
    for (int i = 0; i < 3; i++) { /* alice has 8 */
        call = call_new(f, "t1", "alice", "bob", 9, NULL);
        call->request.grant = &daily;
        assert_int_equal(ask(f, call)->err, RON_ERR_INSUFFICIENT_FUNDS);
    }
    for (int i = 0; i < 3; i++) {
        call = call_new(f, "t2", "alice", "bob", 6, "key");
        call->request.grant = &daily;
        accepts(f, call);
        assert_int_equal(call->request.outcome.repeated, i > 0);
    }
    call = call_new(f, "t3", "bob", "alice", 5, "other");
    call->request.grant = &daily;
    assert_int_equal(ask(f, call)->err, RON_ERR_LIMIT_EXCEEDED);
    call = call_new(f, "t3", "bob", "alice", 5, NULL);
    call->request.grant = &daily;
    assert_int_equal(ask(f, call)->err, RON_ERR_LIMIT_EXCEEDED);
    for (int i = 0; i < 3; i++) { /* of the 4 that are left */
        call = call_new(f, "t4", "bob", "alice", 2, "key4");
        call->request.grant = &daily;
        accepts(f, call);
    }
    call = call_new(f, "t5", "bob", "alice", 3, NULL);
    call->request.grant = &daily;
    assert_int_equal(ask(f, call)->err, RON_ERR_LIMIT_EXCEEDED);
    call = call_new(f, "t5", "bob", "alice", 2, NULL);
    call->request.grant = &daily;
    accepts(f, call);
    assert_ok(ledger_service_stop(f->service, NULL, NULL));
    f->service = ledger_service_free(f->service);
    f->options.checks = ledger_checks_free(f->options.checks);
    fixture_free(f);
}

/* --- A remote one
 * ---------------------------------------------------------------------------------- */

static void say_no(void *context, const struct http_head *head, struct ron_slice body,
                   struct ron_buf *reply)
{
    const bool *works = context;

    (void)head;
    (void)body;
    ron_buf_put_text(reply, *works ? "HTTP/1.1 403 x\r\nContent-Length: 0\r\n\r\n"
                                   : "HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n");
}

static struct ledger_checks_options remote_options(struct rt_metrics *metrics)
{
    struct ledger_checks_options options = ledger_checks_defaults();

    options.policy_rows = AUTH_POLICY_WAYS;
    options.cache_slots = 4;
    options.metrics = metrics;
    options.remotes[LEDGER_CHECK_KMS].retries_max = 0;
    return options;
}

/* covers: LED-C56 */
static void metrics_tell_of_the_breaker(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new(); /* for its metrics */
    struct ledger_checks_options options = remote_options(f->metrics);
    struct ledger_checks *checks = NULL;
    const struct auth_grant grant = grant_of(NULL);
    bool works = false;
    const struct io_sim_options network = {.handler = say_no, .context = &works};
    struct ron_buf text;

    (void)state;
    assert_ok(io_transport_simulated(&network, &options.remotes[LEDGER_CHECK_KMS].transport, NULL));
    options.remotes[LEDGER_CHECK_KMS].retries_max = 1;
    assert_ok(ledger_checks_new(&options, &checks, NULL));
    assert_int_equal(asked(checks, &grant, NULL, 0), RON_ERR_UPSTREAM_UNAVAILABLE);
    assert_int_equal(ledger_checks_breaker(checks, LEDGER_CHECK_KMS), RT_BREAKER_OPEN);
    ron_buf_init(&text, 1 << 20);
    assert_ok(rt_metrics_write(f->metrics, &text, NULL));
    ron_buf_put_byte(&text, '\0');
    assert_non_null(strstr((char *)text.data, "breaker_open_total{target=\"kms\"} 1\n"));
    assert_non_null(strstr((char *)text.data, "breaker_state{target=\"kms\"} 2\n"));
    assert_non_null(strstr((char *)text.data, "breaker_open_seconds{target=\"kms\"} "));
    assert_non_null(
        strstr((char *)text.data, "ledger_check_duration_seconds_count{target=\"kms\"} 1\n"));
    assert_non_null(strstr((char *)text.data, "ledger_checks_parked 0\n"));
    assert_non_null(strstr((char *)text.data, "backoff_retries_total{role=\"ledger\",svc=\"kms\","
                                              "op=\"check\"} 1\n"));
    assert_non_null(
        strstr((char *)text.data, "io_timeouts_total{role=\"ledger\",op=\"kms\",peer=\"\"} 0\n"));
    ron_buf_fini(&text);
    checks = ledger_checks_free(checks);
    fixture_free(f);
}

static void say_yes_or_no(void *context, const struct http_head *head, struct ron_slice body,
                          struct ron_buf *reply)
{
    static const char yes[] = "{" YES "}";

    if (!*(const bool *)context)
        say_no(&(bool){true}, head, body, reply);
    else
        ron_buf_put_format(reply, "HTTP/1.1 200 x\r\nContent-Length: %zu\r\n\r\n%s",
                           sizeof(yes) - 1, yes);
}

/* What was charged before others were asked is given back if they refuse, or cannot be asked. */
static void a_refused_question_gives_its_sum_back(void **state) RON_BLOCKS
{
    struct ledger_checks_options options = remote_options(NULL);
    struct ledger_checks *checks = NULL;
    const struct auth_grant daily = grant_of("max_daily = 10");
    const struct ledger_op op = {.kind = LEDGER_TRANSFER,
                                 .id_text = S("t1"),
                                 .debit_name = S("alice"),
                                 .asset_name = S("roc"),
                                 .amount = {6}};
    bool works = false;
    const struct io_sim_options network = {.handler = say_yes_or_no, .context = &works};

    (void)state;
    rt_init();
    assert_ok(
        io_transport_simulated(&network, &options.remotes[LEDGER_CHECK_POLICY].transport, NULL));
    assert_ok(
        io_transport_simulated(&network, &options.remotes[LEDGER_CHECK_WALLET].transport, NULL));
    options.in_flight_max = 1;
    assert_ok(ledger_checks_new(&options, &checks, NULL));
    for (int i = 0; i < 3; i++)
        assert_int_equal(asked(checks, &daily, &op, 1), RON_ERR_POLICY_DENIED);
    works = true;
    assert_ok(asked(checks, &daily, &op, 1));
    assert_int_equal(asked(checks, &daily, &op, 1), RON_ERR_LIMIT_EXCEEDED);
    assert_int_equal(ledger_checks_get_parked(checks).peak, 1);
    assert_int_equal(ledger_checks_get_parked(checks).bytes, 0);
    checks = ledger_checks_free(checks);
}

/* Requests and questions that wait are counted in bytes as well. */
static void what_is_parked_is_bound_in_bytes(void **state) RON_BLOCKS
{
    struct ledger_checks_options options = remote_options(NULL);
    struct ledger_checks *checks = NULL;
    const struct auth_grant daily = grant_of("max_daily = 10");
    const struct ledger_op op = {.kind = LEDGER_TRANSFER,
                                 .id_text = S("t1"),
                                 .debit_name = S("alice"),
                                 .asset_name = S("roc"),
                                 .amount = {6}};
    struct ledger_request request = {
        .command = {.kind = LEDGER_COMMAND_INGEST, .ops = &op, .ops_count = 1},
        .grant = &daily,
        .size = 100000,
        .deadline = RT_DEADLINE_NEVER};
    bool works = true;
    const struct io_sim_options network = {.handler = say_yes_or_no, .context = &works};
    struct ron_errinfo info = {0};

    (void)state;
    rt_init();
    assert_ok(
        io_transport_simulated(&network, &options.remotes[LEDGER_CHECK_POLICY].transport, NULL));
    options.bytes_max = 100000;
    assert_ok(ledger_checks_new(&options, &checks, NULL));
    for (int i = 0; i < 3; i++) /* nothing is charged */
        support_assert_error(ledger_checks_ask(checks, &request, &(bool){false}, &info), &info,
                             RON_ERR_BUSY, "bytes would wait");
    request.size = 50000;
    assert_ok(ledger_checks_ask(checks, &request, &(bool){false}, NULL));
    assert_int_equal(ledger_checks_get_parked(checks).count, 0);
    assert_int_equal(ledger_checks_get_parked(checks).bytes, 0);
    checks = ledger_checks_free(checks);
}

/* On real threads: prevalidators, the tasks of two ports, Sequencer. */
static void a_service_parks_and_goes_on(void **state) RON_BLOCKS
{
    enum { CALLS = 60 };
    struct service_fixture *f = fixture_new();
    struct ledger_checks_options options = remote_options(f->metrics);
    const struct auth_grant all = grant_of(NULL);
    bool works = true;
    const struct io_sim_options network = {.handler = say_yes_or_no, .context = &works};
    struct ledger_health health;
    char id[16];

    (void)state;
    for (unsigned i = 0; i < 2; i++)
        assert_ok(io_transport_simulated(&network, &options.remotes[i].transport, NULL));
    options.cache_ms = 60000;
    assert_ok(ledger_checks_new(&options, &f->options.checks, NULL));
    f->options.check = NULL;
    f->options.ingress_max = f->options.preval_max = f->options.commit_max = CALLS;
    f->options.classes[0].count = CALLS;
    fixture_start(f);
    for (unsigned i = 0; i < CALLS; i++) {
        struct call *call;

        (void)snprintf(id, sizeof(id), "m%u", i);
        call = call_new(f, id, NULL, "alice", 1, NULL);
        call->request.grant = &all;
        (void)submit(f, call);
    }
    for (unsigned i = 0; i < CALLS; i++)
        assert_ok(next_answer(f)->request.outcome.err);
    ledger_read_health(f->service, &health);
    assert_int_equal(health.parked, 0);
    assert_ok(ledger_service_stop(f->service, NULL, NULL));
    f->service = ledger_service_free(f->service);
    f->options.checks = ledger_checks_free(f->options.checks);
    fixture_free(f);
}

static void a_canceled_check_answers_draining(void **state) RON_BLOCKS
{
    struct ledger_checks_options options = remote_options(NULL);
    struct ledger_checks *checks = NULL;
    const struct auth_grant grant = grant_of(NULL);
    bool works = true;
    const struct io_sim_options network = {.handler = say_no, .context = &works};

    (void)state;
    rt_init();
    assert_ok(io_transport_simulated(&network, &options.remotes[LEDGER_CHECK_KMS].transport, NULL));
    assert_ok(ledger_checks_new(&options, &checks, NULL));
    assert_true(ledger_checks_are_remote(checks));
    assert_int_equal(asked(checks, &grant, NULL, 0), RON_ERR_UNAUTHORIZED);
    ledger_checks_cancel(checks);
    assert_int_equal(asked(checks, &grant, NULL, 0), RON_ERR_DRAINING);
    ledger_checks_watch(checks); /* ends at once */
    checks = ledger_checks_free(checks);
}

static void a_bad_address_is_refused_at_birth(void **state)
{
    struct ledger_checks_options options = remote_options(NULL);
    struct ledger_checks *checks = NULL;
    struct ron_errinfo info = {0};

    (void)state;
    rt_init();
    options.remotes[LEDGER_CHECK_WALLET].url = "ftp://x";
    support_assert_error(ledger_checks_new(&options, &checks, &info), &info, RON_ERR_MALFORMED,
                         "wallet: url");
    assert_null(checks);
}

static enum ron_err attempt_question(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_checks_options options = remote_options(NULL);
    struct ledger_checks *checks = NULL;
    const struct auth_grant grant = grant_of(NULL);
    struct ledger_request request = {.command = {.kind = LEDGER_COMMAND_ASSET},
                                     .grant = &grant,
                                     .deadline = rt_deadline_after_ms(50)};
    const struct io_sim_options network = {.handler = say_no, .context = context};
    enum ron_err err = io_transport_simulated(&network,
                                              &options.remotes[LEDGER_CHECK_KMS].transport, reterr);

    if (err == RON_ERR_OK)
        err = ledger_checks_new(&options, &checks, reterr);
    if (err == RON_ERR_OK)
        err = ledger_checks_ask(checks, &request, &(bool){false}, reterr);
    if (err == RON_ERR_TIMEOUT) /* the network's own memory: its message is lost */
        err = ron_fail(reterr, RON_ERR_NO_MEMORY, "lost");
    checks = ledger_checks_free(checks);
    return err == RON_ERR_UNAUTHORIZED ? RON_ERR_OK : err;
}

static void every_allocation_may_fail(void **state)
{
    bool works = true;

    (void)state;
    rt_init();
    assert_true(support_fail_each_allocation(attempt_question, &works, 60) > 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions_have_these_bytes),
        cmocka_unit_test(answers_are_read_strictly),
        cmocka_unit_test(policy_is_asked_of_every_entry),
        cmocka_unit_test(policy_is_asked_once),
        cmocka_unit_test(only_what_is_written_is_charged),
        cmocka_unit_test(metrics_tell_of_the_breaker),
        cmocka_unit_test(a_refused_question_gives_its_sum_back),
        cmocka_unit_test(what_is_parked_is_bound_in_bytes),
        cmocka_unit_test(a_service_parks_and_goes_on),
        cmocka_unit_test(a_canceled_check_answers_draining),
        cmocka_unit_test(a_bad_address_is_refused_at_birth),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
