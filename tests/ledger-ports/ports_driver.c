/*
 * ports_driver.c - one remote check of the ledger over real sockets, told by lines on standard
 * input.
 *
 *     ports_driver kms|policy|wallet URL ATTEMPT_MS RETRIES HALF_OPEN_MS IN_FLIGHT
 *
 *     ask DEADLINE_MS   prints `Ok`, or the code and the message
 *     breaker           prints `closed`, `open` or `half-open`
 *     cancel            prints `canceled`
 *     crowd N DEADLINE_MS   so many at once, answered by a thread that serves the port from now on
 *                           (then no `ask`); prints how many were Ok, refused, and asked together
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/mem.h"
#include "ledger/checks.h"
#include "rt/registry.h"

enum { LINE_SIZE = 256 };

static uint32_t number(const char *text)
{
    uint64_t value;

    if (ron_decimal_parse_u64(ron_slice_text(text), &value, NULL) != RON_ERR_OK ||
        value > UINT32_MAX)
        exit(2);
    return (uint32_t)value;
}

static struct ledger_checks *open_checks(char **words, enum ledger_check_port *ret_port)
{
    struct ledger_checks_options options = ledger_checks_defaults();
    struct ledger_checks *checks = NULL;
    struct ron_errinfo info;
    unsigned port = 0;

    while (port < LEDGER_CHECK__COUNT && strcmp(words[1], ledger_check_names[port]) != 0)
        port++;
    if (port == LEDGER_CHECK__COUNT)
        exit(2);
    *ret_port = (enum ledger_check_port)port;
    options.cache_ms = 0;
    options.remotes[port].url = words[2];
    options.remotes[port].attempt_ms = number(words[3]);
    options.remotes[port].retries_max = number(words[4]);
    options.remotes[port].half_open_ms = number(words[5]);
    options.in_flight_max = number(words[6]);
    if (ledger_checks_new(&options, &checks, &info) != RON_ERR_OK) {
        fprintf(stderr, "%s\n", info.message);
        exit(1);
    }
    return checks;
}

static struct ledger_op transfer(void)
{
    return (struct ledger_op){.kind = LEDGER_TRANSFER,
                              .id_text = RON_SLICE("t1"),
                              .debit_name = RON_SLICE("alice"),
                              .credit_name = RON_SLICE("bob"),
                              .asset_name = RON_SLICE("roc"),
                              .amount = {40},
                              .nonce = 3};
}

static void ask(struct ledger_checks *checks, uint32_t deadline_ms) RON_BLOCKS
{
    const struct ledger_op op = transfer();
    struct auth_grant grant;
    struct ledger_request request = {
        .command = {.kind = LEDGER_COMMAND_INGEST, .ops = &op, .ops_count = 1},
        .grant = &grant,
        .deadline = rt_deadline_after_ms(deadline_ms)};
    struct ron_errinfo info = {0};
    bool spent = false;
    enum ron_err err;

    auth_grant_begin(&grant, RON_SLICE("k1.01ARZ3NDEKTSV4RRFFQ69G5FAV"));
    err = ledger_checks_ask(checks, &request, &spent, &info);
    if (err == RON_ERR_OK)
        printf("Ok\n");
    else
        printf("%s %s\n", ron_err_name(err), info.message);
}

/* ---- A crowd ---- */

struct crowd {
    struct ledger_checks *checks;
    enum ledger_check_port port;
    pthread_t server;
    bool served;
    pthread_mutex_t lock;
    pthread_cond_t answered;
    uint32_t ok_count, refused_count;
};

static void *serve(void *argument) RON_BLOCKS
{
    struct crowd *crowd = argument;

    ledger_checks_serve(crowd->checks, crowd->port);
    return NULL;
}

static void take_answer(void *context, struct ledger_request *request, enum ron_err err, bool spent,
                        const struct ron_errinfo *info)
{
    struct crowd *crowd = context;

    (void)request;
    (void)spent;
    (void)info;
    pthread_mutex_lock(&crowd->lock);
    crowd->ok_count += err == RON_ERR_OK;
    crowd->refused_count += err != RON_ERR_OK;
    pthread_cond_signal(&crowd->answered);
    pthread_mutex_unlock(&crowd->lock);
}

static void ask_all(struct crowd *crowd, uint32_t count, uint32_t deadline_ms)
{
    const struct ledger_op op = transfer();
    struct ledger_request *requests = ron_mem_alloc_array(count, sizeof(*requests));
    struct ron_errinfo info = {0};
    struct auth_grant grant;

    if (requests == NULL ||
        (!crowd->served && pthread_create(&crowd->server, NULL, serve, crowd) != 0))
        exit(1);
    crowd->served = true;
    crowd->ok_count = crowd->refused_count = 0;
    auth_grant_begin(&grant, RON_SLICE("k1.01ARZ3NDEKTSV4RRFFQ69G5FAV"));
    for (uint32_t i = 0; i < count; i++) {
        bool parked = false;
        bool spent = false;
        enum ron_err err;

        requests[i] = (struct ledger_request){
            .command = {.kind = LEDGER_COMMAND_INGEST, .ops = &op, .ops_count = 1},
            .grant = &grant,
            .deadline = rt_deadline_after_ms(deadline_ms)};
        err = ledger_checks_begin(crowd->checks, &requests[i], take_answer, crowd, &parked, &spent,
                                  &info);
        if (err != RON_ERR_OK || !parked)
            take_answer(crowd, &requests[i], err, spent, &info);
    }
    pthread_mutex_lock(&crowd->lock);
    while (crowd->ok_count + crowd->refused_count < count)
        pthread_cond_wait(&crowd->answered, &crowd->lock);
    pthread_mutex_unlock(&crowd->lock);
    printf("%u %u %llu\n", crowd->ok_count, crowd->refused_count,
           (unsigned long long)ledger_checks_get_parked(crowd->checks).asked_once);
    (void)ron_mem_free(requests);
}

static void obey_crowd(struct crowd *crowd, char *words)
{
    const char *count = strsep(&words, " ");

    if (words == NULL)
        exit(2);
    ask_all(crowd, number(count), number(words));
}

int main(int argc, char **argv) RON_BLOCKS
{
    static const char *const states[] = {[RT_BREAKER_CLOSED] = "closed",
                                         [RT_BREAKER_OPEN] = "open",
                                         [RT_BREAKER_HALF_OPEN] = "half-open"};
    struct crowd crowd = {.lock = PTHREAD_MUTEX_INITIALIZER, .answered = PTHREAD_COND_INITIALIZER};
    struct ledger_checks *checks;
    enum ledger_check_port port;
    char line[LINE_SIZE];

    if (argc != 7)
        return 2;
    (void)signal(SIGPIPE, SIG_IGN);
    rt_init();
    checks = open_checks(argv, &port);
    crowd.checks = checks;
    crowd.port = port;
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "ask ", 4) == 0) {
            ask(checks, number(line + 4));
        } else if (strncmp(line, "crowd ", 6) == 0) {
            obey_crowd(&crowd, line + 6);
        } else if (strcmp(line, "breaker") == 0) {
            printf("%s\n", states[ledger_checks_breaker(checks, port)]);
        } else if (strcmp(line, "cancel") == 0) {
            ledger_checks_cancel(checks);
            printf("canceled\n");
        } else {
            return 2;
        }
        (void)fflush(stdout);
    }
    ledger_checks_cancel(checks);
    if (crowd.served)
        (void)pthread_join(crowd.server, NULL);
    (void)ledger_checks_free(checks);
    printf("ended\n");
    return 0;
}
