/*
 * checks_remote.c - one question to one remote check: tries, what comes between them, the breaker.
 * See checks.h.
 *
 * io's client makes the single try; its own retries and breaker are not used, because here a 429 is
 * not tried again, a wrong answer is, and the breaker counts questions.
 */
#include "base/printable.h"
#include "ledger/checks_impl.h"
#include "ledger/service_metrics.h"
#include "rt/metric_names.h"

enum {
    CONNECTIONS_DEFAULT = 64,
    BACKOFF_MS = 50,
    ATTEMPT_MIN_MS = 5, /* a retry with less time left is not begun */
    QUESTION_SIZE_MAX = 4 << 20,
    ANSWER_BODY_MAX = 4096,
};

static const char *const paths[LEDGER_CHECK__COUNT] = {"/verify", "/guard", "/spend"};
static const enum ron_err refusals[LEDGER_CHECK__COUNT] = {RON_ERR_UNAUTHORIZED,
                                                           RON_ERR_POLICY_DENIED, RON_ERR_CONFLICT};

struct question {
    struct ledger_checks *checks;
    struct remote *remote;
    enum ledger_check_port port;
    const struct ledger_request *request;
    struct ron_buf body;
    struct io_client_reply reply;
    struct check_answer answer;
    bool timed_out; /* the last try */
    bool certain;   /* a try failed that had all its time */
};

/* --- Birth --------------------------------------------------------------------------------------
 */

static void find_metrics(struct remote *remote, struct rt_metrics *metrics, const char *name)
{
    const char *const retried[] = {"ledger", name, "check"};
    const char *const late[] = {"ledger", name, ""};

    if (metrics == NULL)
        return;
    remote->retries = rt_metrics_counter(metrics, &rt_metric_table[RT_METRIC_BACKOFF_RETRIES],
                                         retried);
    remote->timeouts = rt_metrics_counter(metrics, &rt_metric_table[RT_METRIC_IO_TIMEOUTS], late);
    remote->opened = rt_metrics_counter(metrics, &ledger_metric_table[LEDGER_METRIC_BREAKER_OPEN],
                                        &name);
    remote->open_time = rt_metrics_counter(
        metrics, &ledger_metric_table[LEDGER_METRIC_BREAKER_OPEN_TIME], &name);
    remote->state = rt_metrics_gauge(metrics, &ledger_metric_table[LEDGER_METRIC_BREAKER_STATE],
                                     &name);
}

enum ron_err remote_init(struct ledger_checks *checks, enum ledger_check_port port,
                         struct ron_errinfo *reterr)
{
    static const struct rt_breaker_policy never = {
        .failures_max = RT_BREAKER_FAILURES_MAX, .probes_count = UINT32_MAX, .window_ns = 1};
    struct remote *remote = &checks->remotes[port];
    const struct ledger_check_remote *given = &checks->options.remotes[port];
    const struct rt_breaker_policy policy = {.failures_max = given->failures_max,
                                             .probes_count = 1,
                                             .window_ns = given->window_ms * RT_NS_PER_MS,
                                             .open_ns = given->half_open_ms * RT_NS_PER_MS};
    const struct io_client_options client = {
        .url = given->url,
        .tls = given->tls,
        .transport = given->transport,
        .connections_max = given->connections_max == 0 ? CONNECTIONS_DEFAULT
                                                       : given->connections_max,
        .body_max = ANSWER_BODY_MAX,
        .breaker = &never,
    };
    enum ron_err err;

    if (given->url == NULL && given->transport == NULL)
        return RON_ERR_OK;
    RON_ASSERT(given->attempt_ms > 0);
    RON_ASSERT(given->backoff_ms_max >= BACKOFF_MS);
    remote->options = *given;
    remote->backoff = (struct rt_backoff_policy){.base_ns = BACKOFF_MS * RT_NS_PER_MS,
                                                 .jitter_ns = BACKOFF_MS * RT_NS_PER_MS,
                                                 .cap_ns = given->backoff_ms_max * RT_NS_PER_MS,
                                                 .jitter_grows = true};
    checks_lock(checks);
    rt_breaker_init(&remote->breaker, &policy);
    checks_unlock(checks);
    find_metrics(remote, checks->options.metrics, ledger_check_names[port]);
    err = io_client_new(&client, &remote->client, reterr);
    return err == RON_ERR_OK ? err : ron_wrap(reterr, err, "%s", ledger_check_names[port]);
}

/* --- Breaker ------------------------------------------------------------------------------------
 */

bool remote_is_open(const struct remote *remote, uint64_t now_ns)
{
    return rt_breaker_state(&remote->breaker, now_ns) == RT_BREAKER_OPEN;
}

void remote_count_open(struct remote *remote, uint64_t now_ns)
{
    uint64_t until_ns = remote->breaker.open_until_ns;

    if (remote->breaker.state != RT_BREAKER_OPEN)
        return;
    if (now_ns < until_ns)
        until_ns = now_ns;
    if (remote->open_time.cells != NULL)
        rt_metric_add(remote->open_time, until_ns - remote->open_from_ns);
    remote->open_from_ns = until_ns;
}

void remote_tell(struct ledger_checks *checks, enum ledger_check_port port)
{
    static const int64_t levels[] = {
        [RT_BREAKER_CLOSED] = 0, [RT_BREAKER_HALF_OPEN] = 1, [RT_BREAKER_OPEN] = 2};
    struct remote *remote = &checks->remotes[port];
    bool open;
    bool still;

    /* Who tells something old looks again afterwards, so the last word is the newest. */
    do {
        checks_lock(checks);
        open = remote_is_open(remote, rt_now_ns());
        remote->told_open = open;
        if (remote->state.cell != NULL)
            rt_metric_set(remote->state, levels[rt_breaker_state(&remote->breaker, rt_now_ns())]);
        checks_unlock(checks);
        if (checks->report != NULL)
            checks->report(checks->report_context, port, open);
        checks_lock(checks);
        still = remote_is_open(remote, rt_now_ns()) == open;
        checks_unlock(checks);
    } while (!still);
}

static enum ron_err begin(struct question *question, struct rt_breaker_ticket *ret_ticket,
                          struct ron_errinfo *reterr)
{
    struct ledger_checks *checks = question->checks;
    const uint64_t now_ns = rt_now_ns();
    bool canceled;
    bool allowed;

    checks_lock(checks);
    remote_count_open(question->remote, now_ns);
    canceled = checks->canceled;
    allowed = !canceled && rt_breaker_allow(&question->remote->breaker, now_ns, ret_ticket);
    checks_unlock(checks);
    if (canceled)
        return ron_fail(reterr, RON_ERR_DRAINING, "%s: not asked: the ledger is draining",
                        ledger_check_names[question->port]);
    if (!allowed)
        return ron_fail(reterr, RON_ERR_UPSTREAM_UNAVAILABLE, "%s: not asked: the breaker is open",
                        ledger_check_names[question->port]);
    return RON_ERR_OK;
}

/* What the question says about the upstream. */
static void conclude(struct question *question, struct rt_breaker_ticket ticket, enum ron_err local)
{
    struct ledger_checks *checks = question->checks;
    struct remote *remote = question->remote;
    const uint64_t now_ns = rt_now_ns();
    enum rt_breaker_state before;
    enum rt_breaker_state after;

    checks_lock(checks);
    before = remote->breaker.state;
    if (local != RON_ERR_OK || question->answer.verdict == CHECK_LATER ||
        (question->answer.verdict == CHECK_FAILED && !question->certain))
        rt_breaker_forget(&remote->breaker, ticket);
    else if (question->answer.verdict == CHECK_FAILED)
        rt_breaker_fail(&remote->breaker, ticket, now_ns);
    else
        rt_breaker_succeed(&remote->breaker, ticket);
    after = remote->breaker.state;
    if (before != after) {
        if (after == RT_BREAKER_OPEN)
            remote->open_from_ns = now_ns;
        rt_cond_broadcast(&checks->changed);
    }
    checks_unlock(checks);
    if (before == after)
        return;
    if (after == RT_BREAKER_OPEN) {
        if (remote->opened.cells != NULL)
            rt_metric_add(remote->opened, 1);
        rt_log(checks->options.log, RT_LOG_WARN, "breaker open: writes are not ready",
               rt_log_text("target", ledger_check_names[question->port]),
               rt_log_text("cause", question->answer.text));
    } else {
        rt_log(checks->options.log, RT_LOG_INFO, "breaker closed",
               rt_log_text("target", ledger_check_names[question->port]));
    }
    remote_tell(checks, question->port);
}

/* --- Tries --------------------------------------------------------------------------------------
 */

/* The answer, or in the return value what is not the upstream's doing. */
static enum ron_err try_once(struct question *question, struct ron_errinfo *reterr) RON_BLOCKS
{
    const uint64_t attempt_ns = question->remote->options.attempt_ms * RT_NS_PER_MS;
    const bool all_its_time = rt_deadline_remaining_ns(question->request->deadline) >= attempt_ns;
    const struct io_client_request ask = {.method = HTTP_POST,
                                          .path = paths[question->port],
                                          .media = "application/json",
                                          .body = ron_buf_slice(&question->body),
                                          .repeatable = true};
    struct ron_errinfo info = {0};
    enum ron_err err = io_client_call(
        question->remote->client, &ask,
        rt_deadline_min(question->request->deadline, rt_deadline_after_ns(attempt_ns)),
        &question->reply, &info);

    question->timed_out = err == RON_ERR_TIMEOUT;
    if (err == RON_ERR_OK) {
        check_wire_read(question->reply.head.status, question->reply.body, question->request->grant,
                        &question->answer);
    } else if (err == RON_ERR_CANCELED) {
        return ron_fail(reterr, RON_ERR_DRAINING, "%s: the ledger is draining",
                        ledger_check_names[question->port]);
    } else if (err == RON_ERR_NO_MEMORY || err == RON_ERR_BUSY || err == RON_ERR_MALFORMED) {
        if (reterr != NULL)
            *reterr = info;
        return ron_wrap(reterr, err, "%s", ledger_check_names[question->port]);
    } else {
        question->answer = (struct check_answer){.verdict = CHECK_FAILED};
        (void)ron_printable(ron_slice_text(info.message), question->answer.text,
                            sizeof(question->answer.text));
    }
    if (question->answer.verdict == CHECK_FAILED)
        question->certain = question->certain || !question->timed_out || all_its_time;
    if (question->timed_out && question->remote->timeouts.cells != NULL)
        rt_metric_add(question->remote->timeouts, 1);
    return RON_ERR_OK;
}

/* Wait out the backoff. False: a try after it could not finish in time, or nobody wants it. */
static bool wait_to_retry(struct question *question, unsigned retry) RON_BLOCKS
{
    struct ledger_checks *checks = question->checks;
    const uint64_t until_ns = rt_deadline_after_ns(rt_backoff_delay_ns(&question->remote->backoff,
                                                                       retry, sh_random()))
                                  .at_ns;
    uint64_t over_ns;
    bool canceled;

    rt_assert_no_lock_held();
    if (__builtin_add_overflow(until_ns, ATTEMPT_MIN_MS * RT_NS_PER_MS, &over_ns) ||
        over_ns > question->request->deadline.at_ns)
        return false;
    checks_lock(checks);
    while (!checks->canceled && rt_now_ns() < until_ns)
        (void)rt_cond_wait(&checks->changed, &checks->lock, until_ns);
    canceled = checks->canceled;
    checks_unlock(checks);
    if (!canceled && question->remote->retries.cells != NULL)
        rt_metric_add(question->remote->retries, 1);
    return !canceled;
}

static enum ron_err ask(struct question *question, struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err;

    for (unsigned retry = 0;; retry++) {
        err = try_once(question, reterr);
        if (err != RON_ERR_OK || question->answer.verdict != CHECK_FAILED ||
            retry == question->remote->options.retries_max || !wait_to_retry(question, retry))
            return err;
    }
}

static enum ron_err result_of(const struct question *question, struct ron_errinfo *reterr)
{
    const char *name = ledger_check_names[question->port];

    switch (question->answer.verdict) {
    case CHECK_YES:
        return RON_ERR_OK;
    case CHECK_NO:
        return ron_fail(reterr, refusals[question->port], "%s refuses: %s", name,
                        question->answer.text);
    case CHECK_LATER:
    case CHECK_FAILED:
        break;
    }
    return ron_fail(reterr, question->timed_out ? RON_ERR_TIMEOUT : RON_ERR_UPSTREAM_UNAVAILABLE,
                    "%s: %s", name, question->answer.text);
}

static void remember(struct question *question, uint64_t asked_ns)
{
    struct ledger_checks *checks = question->checks;
    const struct check_answer *answer = &question->answer;

    if (question->port != LEDGER_CHECK_KMS || answer->verdict != CHECK_YES)
        return;
    checks_lock(checks);
    if (answer->has_epoch)
        check_cache_epoch(&checks->cache, answer->epoch);
    check_cache_put(&checks->cache, question->request->grant, answer->epoch,
                    asked_ns + checks->options.cache_ms * RT_NS_PER_MS);
    checks_unlock(checks);
}

enum ron_err remote_ask(struct ledger_checks *checks, enum ledger_check_port port,
                        const struct ledger_request *request, struct ron_errinfo *reterr)
{
    struct question question = {
        .checks = checks, .remote = &checks->remotes[port], .port = port, .request = request};
    const uint64_t asked_ns = rt_now_ns();
    struct rt_breaker_ticket ticket;
    enum ron_err err;

    ron_buf_init(&question.body, QUESTION_SIZE_MAX);
    io_client_reply_init(&question.reply);
    err = check_wire_put(port, request, &question.body, reterr);
    if (err == RON_ERR_OK)
        err = begin(&question, &ticket, reterr);
    if (err == RON_ERR_OK) {
        err = ask(&question, reterr);
        conclude(&question, ticket, err);
        if (err == RON_ERR_OK) {
            remember(&question, asked_ns);
            err = result_of(&question, reterr);
        }
    }
    io_client_reply_fini(&question.reply);
    ron_buf_fini(&question.body);
    return err;
}
