/*
 * checks_walk.c - the way of a request through the three ports: on the thread that begins it as far
 * as that goes without an answer from outside, then parked, from port to port, on their tasks. See
 * checks.h.
 */
#include "base/mem.h"
#include "ledger/checks_impl.h"
#include "ledger/service_metrics.h"

/* --- Places -------------------------------------------------------------------------------------
 */

enum ron_err walk_init(struct ledger_checks *checks, struct ron_errinfo *reterr)
{
    const uint32_t count = checks->options.in_flight_max;

    RON_ASSERT(count >= 1);
    RON_ASSERT(count <= LEDGER_CHECKS_IN_FLIGHT_MAX);
    checks->questions = ron_mem_alloc_array(count, sizeof(checks->questions[0]));
    if (checks->questions == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%u questions in flight", count);
    if (checks->options.metrics != NULL)
        checks->parked_level = rt_metrics_gauge(
            checks->options.metrics, &ledger_metric_table[LEDGER_METRIC_CHECKS_PARKED], NULL);
    checks_lock(checks);
    for (uint32_t i = count; i > 0; i--) {
        struct question *question = &checks->questions[i - 1];

        question->checks = checks;
        question->next = checks->free;
        checks->free = question;
    }
    checks_unlock(checks);
    return RON_ERR_OK;
}

void walk_fini(struct ledger_checks *checks)
{
    checks_lock(checks);
    RON_ASSERT(checks->parked.count == 0);
    checks_unlock(checks);
    checks->questions = ron_mem_free(checks->questions);
}

static void show_parked(struct ledger_checks *checks) RON_NEEDS(breaker)
{
    if (checks->parked_level.cell != NULL)
        rt_metric_set(checks->parked_level, checks->parked.count);
}

static enum ron_err take_place(struct ledger_checks *checks, struct question **ret_question,
                               struct ron_errinfo *reterr)
{
    struct question *question;

    checks_lock(checks);
    question = checks->free;
    if (question != NULL) {
        checks->free = question->next;
        checks->parked.count++;
        if (checks->parked.peak < checks->parked.count)
            checks->parked.peak = checks->parked.count;
        show_parked(checks);
    }
    checks_unlock(checks);
    if (question == NULL)
        return ron_fail(reterr, RON_ERR_BUSY, "%u requests wait for answers from outside",
                        checks->options.in_flight_max);
    question->next = NULL;
    question->bytes = 0;
    ron_buf_init(&question->body, CHECK_QUESTION_SIZE_MAX);
    *ret_question = question;
    return RON_ERR_OK;
}

static void give_place(struct question *question)
{
    struct ledger_checks *checks = question->checks;

    ron_buf_fini(&question->body);
    checks_lock(checks);
    checks->parked.bytes -= question->bytes;
    checks->parked.count--;
    show_parked(checks);
    if (checks->parked.count == 0)
        rt_cond_broadcast(&checks->changed);
    question->next = checks->free;
    checks->free = question;
    checks_unlock(checks);
}

/* Count it with the question it has now. */
static enum ron_err weigh(struct question *question, struct ron_errinfo *reterr)
{
    struct ledger_checks *checks = question->checks;
    const uint64_t bytes = question->walk.request->size + question->body.capacity;
    bool fits;

    checks_lock(checks);
    fits = checks->parked.bytes - question->bytes + bytes <= checks->options.bytes_max;
    if (fits) {
        checks->parked.bytes += bytes - question->bytes;
        question->bytes = bytes;
    }
    checks_unlock(checks);
    if (!fits)
        return ron_fail(reterr, RON_ERR_BUSY,
                        "more than %llu bytes would wait for answers from outside",
                        (unsigned long long)checks->options.bytes_max);
    return RON_ERR_OK;
}

struct ledger_checks_parked ledger_checks_get_parked(struct ledger_checks *checks)
{
    struct ledger_checks_parked parked;

    checks_lock(checks);
    parked = checks->parked;
    checks_unlock(checks);
    return parked;
}

enum ron_err ledger_checks_await(struct ledger_checks *checks, struct rt_deadline deadline,
                                 struct ron_errinfo *reterr)
{
    uint32_t count;

    rt_assert_no_lock_held();
    checks_lock(checks);
    while (checks->parked.count > 0 && !rt_deadline_expired(deadline))
        (void)rt_cond_wait(&checks->changed, &checks->lock, deadline.at_ns);
    count = checks->parked.count;
    checks_unlock(checks);
    return count == 0 ? RON_ERR_OK
                      : ron_fail(reterr, RON_ERR_TIMEOUT, "%u requests wait for answers", count);
}

/* --- From port to port --------------------------------------------------------------------------
 */

static bool is_asked(struct ledger_checks *checks, enum ledger_check_port port,
                     const struct ledger_request *request)
{
    const struct ledger_command *command = &request->command;
    bool verified;

    if (checks->remotes[port].flights == NULL)
        return false;
    switch (port) {
    case LEDGER_CHECK_KMS:
        checks_lock(checks);
        verified = check_cache_has(&checks->cache, request, rt_now_ns());
        checks_unlock(checks);
        return !verified;
    case LEDGER_CHECK_WALLET:
        /* It is not asked about what it sent: two pools that wait for each other end with both. */
        if (command->stamp.caller == LEDGER_CALLER_WALLET)
            return false;
        for (uint32_t i = 0; i < command->ops_count; i++)
            if (check_kind_debits(ledger_op_head(command, i)->kind))
                return true;
        return false;
    case LEDGER_CHECK_POLICY:
    case LEDGER_CHECK__COUNT:
        break;
    }
    return true;
}

/* Park it, or leave it parked, with its next question. Unless it fails, *question is gone. */
static enum ron_err park(struct ledger_checks *checks, const struct check_walk *walk,
                         struct question **question, struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;

    if (*question == NULL)
        err = take_place(checks, question, reterr);
    if (err != RON_ERR_OK)
        return err;
    (*question)->walk = *walk;
    ron_buf_reset(&(*question)->body);
    err = check_wire_put(walk->port, walk->request, &(*question)->body, reterr);
    if (err == RON_ERR_OK)
        err = weigh(*question, reterr);
    if (err == RON_ERR_OK)
        err = remote_submit(*question, reterr);
    if (err == RON_ERR_OK)
        *question = NULL;
    return err;
}

/* From walk->port on, until it is parked or over. What is left of *question is the caller's. */
static enum ron_err go_on(struct ledger_checks *checks, struct check_walk *walk,
                          struct question **question, bool *ret_parked, struct ron_errinfo *reterr)
{
    const struct ledger_request *request = walk->request;
    enum ron_err err = RON_ERR_OK;

    for (unsigned i = walk->port; i < LEDGER_CHECK__COUNT; i++) {
        walk->port = (enum ledger_check_port)i;
        if (walk->port == LEDGER_CHECK_POLICY && !request->policy_asked) {
            checks_lock(checks);
            err = check_evaluate(checks, request, &walk->spent, reterr);
            checks_unlock(checks);
            walk->charged = err == RON_ERR_OK && !walk->spent;
        }
        if (err == RON_ERR_OK && is_asked(checks, walk->port, request)) {
            err = park(checks, walk, question, reterr);
            *ret_parked = err == RON_ERR_OK;
            if (*ret_parked)
                return RON_ERR_OK;
        }
        if (err != RON_ERR_OK)
            break;
    }
    if (err != RON_ERR_OK && walk->charged)
        ledger_checks_refund(checks, request);
    return err;
}

void question_over(struct question *question, enum ron_err err, const struct ron_errinfo *info)
{
    struct ledger_checks *checks = question->checks;
    struct check_walk walk = question->walk;
    struct ron_errinfo said = {0};
    bool parked = false;

    if (err == RON_ERR_OK) {
        walk.port = (enum ledger_check_port)(walk.port + 1);
        err = go_on(checks, &walk, &question, &parked, &said);
        if (parked)
            return;
    } else {
        said = *info;
        if (walk.charged)
            ledger_checks_refund(checks, walk.request);
    }
    give_place(question);
    walk.asked(walk.context, walk.request, err, walk.spent, &said);
}

enum ron_err ledger_checks_begin(struct ledger_checks *checks, struct ledger_request *request,
                                 ledger_asked_fn *asked, void *context, bool *ret_parked,
                                 bool *ret_spent, struct ron_errinfo *reterr)
{
    struct check_walk walk = {.request = request, .asked = asked, .context = context};
    struct question *question = NULL;
    bool parked = false;
    enum ron_err err;

    if (request->grant == NULL)
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "a write without a capability");
    err = go_on(checks, &walk, &question, &parked, reterr);
    if (question != NULL)
        give_place(question);
    if (err == RON_ERR_OK) {
        *ret_parked = parked;
        *ret_spent = walk.spent;
    }
    return err;
}

/* --- Waiting ------------------------------------------------------------------------------------
 */

struct answer {
    bool came, spent;
    enum ron_err err;
    struct ron_errinfo info;
};

static void take_answer(void *context, struct ledger_request *request, enum ron_err err, bool spent,
                        const struct ron_errinfo *info)
{
    (void)request;
    *(struct answer *)context = (struct answer){
        .came = true, .spent = spent, .err = err, .info = *info};
}

enum ron_err ledger_checks_ask(struct ledger_checks *checks, struct ledger_request *request,
                               bool *ret_spent, struct ron_errinfo *reterr)
{
    struct answer answer = {0};
    bool parked = false;
    enum ron_err err = ledger_checks_begin(checks, request, take_answer, &answer, &parked,
                                           ret_spent, reterr);

    rt_assert_no_lock_held();
    if (err != RON_ERR_OK || !parked)
        return err;
    while (!answer.came)
        for (unsigned i = 0; i < LEDGER_CHECK__COUNT && !answer.came; i++)
            if (checks->remotes[i].flights != NULL &&
                io_flights_get_stats(checks->remotes[i].flights).flights_count > 0)
                (void)!io_flights_turn(checks->remotes[i].flights);
    if (answer.err == RON_ERR_OK)
        *ret_spent = answer.spent;
    else if (reterr != NULL)
        *reterr = answer.info;
    return answer.err;
}
