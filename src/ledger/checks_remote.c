/*
 * checks_remote.c - questions to one remote check: tries, what comes between them, who waits for
 * another's answer, the breaker. See checks.h.
 *
 * All of it happens on the task of the port, in functions of io's flights, but for remote_submit.
 * The breaker is the checks' own: here a 429 is not tried again, a wrong answer is, and the breaker
 * counts questions, not tries.
 */
#include <stdio.h>

#include "base/printable.h"
#include "ledger/checks_impl.h"
#include "ledger/service_metrics.h"
#include "rt/metric_names.h"

enum {
    BACKOFF_MS = 50,
    ATTEMPT_MIN_MS = 5, /* a retry with less time left is not begun */
    ANSWER_BODY_MAX = 4096,
    CONNECTIONS_MAX_DEFAULT = 256,
};

#define NOT_ASKED "not asked: "

static const char *const paths[LEDGER_CHECK__COUNT] = {"/verify", "/guard", "/spend"};
static const enum ron_err refusals[LEDGER_CHECK__COUNT] = {RON_ERR_UNAUTHORIZED,
                                                           RON_ERR_POLICY_DENIED, RON_ERR_CONFLICT};

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
    remote->duration = rt_metrics_histogram(
        metrics, &ledger_metric_table[LEDGER_METRIC_CHECK_DURATION], &name);
    remote->state = rt_metrics_gauge(metrics, &ledger_metric_table[LEDGER_METRIC_BREAKER_STATE],
                                     &name);
}

enum ron_err remote_init(struct ledger_checks *checks, enum ledger_check_port port,
                         struct ron_errinfo *reterr)
{
    struct remote *remote = &checks->remotes[port];
    const struct ledger_check_remote *given = &checks->options.remotes[port];
    const struct rt_breaker_policy policy = {.failures_max = given->failures_max,
                                             .probes_count = 1,
                                             .window_ns = given->window_ms * RT_NS_PER_MS,
                                             .open_ns = given->half_open_ms * RT_NS_PER_MS};
    const struct io_flights_options flights = {
        .url = given->url,
        .tls = given->tls,
        .transport = given->transport,
        .flights_max = checks->options.in_flight_max,
        .connections_max = given->connections_max == 0 ? CONNECTIONS_MAX_DEFAULT
                                                       : given->connections_max,
        .body_max = ANSWER_BODY_MAX,
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
    err = io_flights_new(&flights, &remote->flights, reterr);
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

static struct remote *remote_of(const struct question *question)
{
    return &question->checks->remotes[question->walk.port];
}

static const char *name_of(const struct question *question)
{
    return ledger_check_names[question->walk.port];
}

static enum ron_err fail_closed(const struct question *question, const char *not_asked,
                                struct ron_errinfo *reterr)
{
    if (rt_atomic_load_u32(&remote_of(question)->abandoned) != 0)
        return ron_fail(reterr, RON_ERR_UPSTREAM_UNAVAILABLE,
                        "%s: its task has failed too often: it is asked no more",
                        name_of(question));
    return ron_fail(reterr, RON_ERR_DRAINING, "%s: %sthe ledger is draining", name_of(question),
                    not_asked);
}

/* May it be asked? */
static enum ron_err begin(struct question *question, struct ron_errinfo *reterr)
{
    struct ledger_checks *checks = question->checks;
    struct remote *remote = remote_of(question);
    const uint64_t now_ns = rt_now_ns();
    bool canceled;
    bool allowed;

    checks_lock(checks);
    remote_count_open(remote, now_ns);
    canceled = checks->canceled;
    allowed = !canceled && rt_breaker_allow(&remote->breaker, now_ns, &question->ticket);
    checks_unlock(checks);
    if (canceled)
        return fail_closed(question, NOT_ASKED, reterr);
    if (!allowed)
        return ron_fail(reterr, RON_ERR_UPSTREAM_UNAVAILABLE,
                        "%s: " NOT_ASKED "the breaker is open", name_of(question));
    question->asked_ns = now_ns;
    return RON_ERR_OK;
}

/* What the question says about the upstream. */
static void conclude(struct question *question, enum ron_err local)
{
    struct ledger_checks *checks = question->checks;
    struct remote *remote = remote_of(question);
    const uint64_t now_ns = rt_now_ns();
    enum rt_breaker_state before;
    enum rt_breaker_state after;

    if (remote->duration.counts.cells != NULL)
        rt_metric_observe(&remote->duration, now_ns - question->asked_ns);
    checks_lock(checks);
    before = remote->breaker.state;
    if (local != RON_ERR_OK || question->answer.verdict == CHECK_LATER ||
        (question->answer.verdict == CHECK_FAILED && !question->certain))
        rt_breaker_forget(&remote->breaker, question->ticket);
    else if (question->answer.verdict == CHECK_FAILED)
        rt_breaker_fail(&remote->breaker, question->ticket, now_ns);
    else
        rt_breaker_succeed(&remote->breaker, question->ticket);
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
               rt_log_text("target", name_of(question)),
               rt_log_text("cause", question->answer.text));
    } else {
        rt_log(checks->options.log, RT_LOG_INFO, "breaker closed",
               rt_log_text("target", name_of(question)));
    }
    remote_tell(checks, question->walk.port);
}

/* --- One question for several -------------------------------------------------------------------
 */

static bool is_same(const struct question *a, const struct question *b)
{
    const struct ledger_request *one = a->walk.request;
    const struct ledger_request *other = b->walk.request;

    return a->epoch == b->epoch && one->command.kind == other->command.kind &&
           one->command.stamp.caller == other->command.stamp.caller &&
           one->command.stamp.tenant.v == other->command.stamp.tenant.v &&
           ron_slice_equal(auth_grant_ref(one->grant), auth_grant_ref(other->grant));
}

static bool follows(struct question *question)
{
    struct question *leader = remote_of(question)->leaders;

    while (leader != NULL && !is_same(leader, question))
        leader = leader->next;
    if (leader == NULL)
        return false;
    question->leader = leader;
    question->next = leader->followers;
    leader->followers = question;
    return true;
}

static void take_out(struct question **link, const struct question *question)
{
    while (*link != question)
        link = &(*link)->next;
    *link = question->next;
}

/* Its question is over: those who waited for it go on, with what it came to or by themselves;
 * alone: each by itself, for another's answer would not do either. */
static void dismiss(struct question *question, bool share, bool alone)
{
    struct remote *remote = remote_of(question);

    take_out(&remote->leaders, question);
    while (question->followers != NULL) {
        struct question *follower = question->followers;

        question->followers = follower->next;
        follower->leader = NULL;
        follower->told = share;
        follower->alone = alone;
        if (share) {
            follower->answer = question->answer;
            follower->timed_out = question->timed_out;
        }
        io_flights_resume(remote->flights, &follower->flight);
    }
}

/* What the KMS said is remembered, and shared, unless a newer revocation is known. */
static void close_kms(struct question *question, enum ron_err local)
{
    struct ledger_checks *checks = question->checks;
    const struct check_answer *answer = &question->answer;
    bool share = local == RON_ERR_OK && (answer->verdict != CHECK_FAILED || question->certain);
    bool alone = false;

    if (question->walk.port != LEDGER_CHECK_KMS)
        return;
    if (share && answer->verdict == CHECK_YES) {
        checks_lock(checks);
        if (answer->has_epoch)
            check_cache_epoch(&checks->cache, answer->epoch);
        share = answer->epoch == checks->cache.epoch;
        alone = !share;
        check_cache_put(&checks->cache, question->walk.request, answer->epoch,
                        question->asked_ns + checks->options.cache_ms * RT_NS_PER_MS);
        checks_unlock(checks);
    }
    dismiss(question, share, alone);
}

/* --- Tries --------------------------------------------------------------------------------------
 */

static enum ron_err result_of(const struct question *question, struct ron_errinfo *reterr)
{
    switch (question->answer.verdict) {
    case CHECK_YES:
        return RON_ERR_OK;
    case CHECK_NO:
        return ron_fail(reterr, refusals[question->walk.port], "%s refuses: %s", name_of(question),
                        question->answer.text);
    case CHECK_LATER:
    case CHECK_FAILED:
        break;
    }
    return ron_fail(reterr, question->timed_out ? RON_ERR_TIMEOUT : RON_ERR_UPSTREAM_UNAVAILABLE,
                    "%s: %s", name_of(question), question->answer.text);
}

/* The next try, not before begin_ns. */
static enum io_flight_next try_at(struct question *question, uint64_t begin_ns)
{
    const uint64_t end_ns = question->walk.request->deadline.at_ns;
    uint64_t until_ns;

    if (__builtin_add_overflow(begin_ns, remote_of(question)->options.attempt_ms * RT_NS_PER_MS,
                               &until_ns))
        until_ns = SH_NEVER;
    question->all_its_time = until_ns <= end_ns;
    question->flight.begin_ns = begin_ns;
    question->flight.deadline.at_ns = until_ns < end_ns ? until_ns : end_ns;
    question->trying = true;
    return IO_FLIGHT_SEND;
}

static enum io_flight_next over(struct question *question, enum ron_err err,
                                const struct ron_errinfo *info)
{
    question_over(question, err, info);
    return IO_FLIGHT_OVER;
}

/* Its turn: is the answer known, does another get it, may it be asked? */
static enum io_flight_next ready(struct io_flight *flight)
{
    struct question *question = flight->context;
    struct ledger_checks *checks = question->checks;
    struct ron_errinfo info = {0};
    bool verified;
    enum ron_err err;

    if (question->told) {
        checks_lock(checks);
        checks->parked.asked_once++;
        checks_unlock(checks);
        err = result_of(question, &info);
        return over(question, err, &info);
    }
    if (question->walk.port == LEDGER_CHECK_KMS) {
        checks_lock(checks);
        question->epoch = checks->cache.epoch;
        verified = check_cache_has(&checks->cache, question->walk.request, rt_now_ns());
        checks_unlock(checks);
        if (verified)
            return over(question, RON_ERR_OK, &info);
        if (!question->alone && follows(question))
            return IO_FLIGHT_HOLD;
    }
    err = begin(question, &info);
    if (err != RON_ERR_OK)
        return over(question, err, &info);
    if (question->walk.port == LEDGER_CHECK_KMS) {
        question->next = remote_of(question)->leaders;
        remote_of(question)->leaders = question;
    }
    return try_at(question, rt_now_ns());
}

/* A KMS that knows less of revocations than we do (a replica that lags) says nothing with its yes.
 */
static void refuse_older(struct question *question)
{
    struct check_answer *answer = &question->answer;

    if (question->walk.port != LEDGER_CHECK_KMS || answer->verdict != CHECK_YES ||
        !answer->has_epoch || answer->epoch >= question->epoch)
        return;
    *answer = (struct check_answer){.verdict = CHECK_FAILED};
    (void)snprintf(answer->text, sizeof(answer->text),
                   "its answer is older than a known revocation");
}

/* Did the try time out with (nearly) all its time on a connection? Else it says nothing of the
 * upstream: the rest was ours, waiting for a connection, or its caller had no patience. */
static bool had_its_time(const struct question *question)
{
    const uint64_t attempt_ns = remote_of(question)->options.attempt_ms * RT_NS_PER_MS;
    const struct io_flight *flight = &question->flight;

    return question->all_its_time && flight->begun_ns != 0 &&
           flight->begun_ns + (attempt_ns - attempt_ns / 10) <= flight->deadline.at_ns;
}

/* What a try came to: the answer, or in the return value what is not the upstream's doing. */
static enum ron_err read_try(struct question *question, enum ron_err err,
                             const struct ron_errinfo *info, const struct io_client_reply *reply,
                             struct ron_errinfo *reterr)
{
    struct remote *remote = remote_of(question);

    question->timed_out = err == RON_ERR_TIMEOUT;
    if (err == RON_ERR_OK) {
        check_wire_read(reply->head.status, reply->body, question->walk.request->grant,
                        &question->answer);
        refuse_older(question);
    } else if (err == RON_ERR_CANCELED) {
        return fail_closed(question, "", reterr);
    } else if (err == RON_ERR_NO_MEMORY || err == RON_ERR_BUSY || err == RON_ERR_MALFORMED) {
        *reterr = *info;
        return ron_wrap(reterr, err, "%s", name_of(question));
    } else {
        question->answer = (struct check_answer){.verdict = CHECK_FAILED};
        (void)ron_printable(ron_slice_text(info->message), question->answer.text,
                            sizeof(question->answer.text));
    }
    if (question->answer.verdict == CHECK_FAILED)
        question->certain = question->certain || !question->timed_out || had_its_time(question);
    if (question->timed_out && remote->timeouts.cells != NULL)
        rt_metric_add(remote->timeouts, 1);
    return RON_ERR_OK;
}

/* After a backoff, if a try after it could finish in time. */
static bool may_retry(struct question *question, uint64_t *ret_begin_ns)
{
    const struct remote *remote = remote_of(question);
    uint64_t over_ns;

    if (question->answer.verdict != CHECK_FAILED ||
        question->retries_count == remote->options.retries_max)
        return false;
    *ret_begin_ns = rt_deadline_after_ns(
                        rt_backoff_delay_ns(&remote->backoff, question->retries_count, sh_random()))
                        .at_ns;
    if (__builtin_add_overflow(*ret_begin_ns, ATTEMPT_MIN_MS * RT_NS_PER_MS, &over_ns) ||
        over_ns > question->walk.request->deadline.at_ns)
        return false;
    question->retries_count++;
    if (remote->retries.cells != NULL)
        rt_metric_add(remote->retries, 1);
    return true;
}

static enum io_flight_next done(struct io_flight *flight, enum ron_err err,
                                const struct ron_errinfo *info, const struct io_client_reply *reply)
{
    struct question *question = flight->context;
    struct ron_errinfo said = {0};
    uint64_t begin_ns;

    if (!question->trying) { /* it was never asked */
        if (question->leader != NULL)
            take_out(&question->leader->followers, question);
        err = err == RON_ERR_CANCELED
                  ? fail_closed(question, NOT_ASKED, &said)
                  : ron_fail(&said, err, "%s: %s", name_of(question), info->message);
        return over(question, err, &said);
    }
    question->trying = false;
    err = read_try(question, err, info, reply, &said);
    if (err == RON_ERR_OK && may_retry(question, &begin_ns))
        return try_at(question, begin_ns);
    close_kms(question, err); /* first: nobody waits for it any more, whatever the owner does */
    conclude(question, err);
    if (err == RON_ERR_OK)
        err = result_of(question, &said);
    return over(question, err, &said);
}

enum ron_err remote_submit(struct question *question, struct ron_errinfo *reterr)
{
    struct ron_errinfo info = {0};
    enum ron_err err;

    question->trying = false;
    question->leader = NULL;
    question->followers = NULL;
    question->told = false;
    question->alone = false;
    question->retries_count = 0;
    question->timed_out = false;
    question->certain = false;
    question->answer = (struct check_answer){.verdict = CHECK_FAILED};
    question->flight = (struct io_flight){
        .request = {.method = HTTP_POST,
                    .path = paths[question->walk.port],
                    .media = "application/json",
                    .body = ron_buf_slice(&question->body),
                    .repeatable = true},
        .deadline = question->walk.request->deadline,
        .ready = ready,
        .done = done,
        .context = question,
    };
    err = io_flights_submit(remote_of(question)->flights, &question->flight, &info);
    if (err == RON_ERR_CANCELED)
        return fail_closed(question, NOT_ASKED, reterr);
    return err == RON_ERR_OK ? err
                             : ron_fail(reterr, err, "%s: %s", name_of(question), info.message);
}
