/*
 * ports_driver.c - one remote check of the ledger over real sockets, told by lines on standard
 * input.
 *
 *     ports_driver kms|policy|wallet URL ATTEMPT_MS RETRIES HALF_OPEN_MS
 *
 *     ask DEADLINE_MS   prints `Ok`, or the code and the message
 *     breaker           prints `closed`, `open` or `half-open`
 *     cancel            prints `canceled`
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
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
    if (ledger_checks_new(&options, &checks, &info) != RON_ERR_OK) {
        fprintf(stderr, "%s\n", info.message);
        exit(1);
    }
    return checks;
}

static void ask(struct ledger_checks *checks, uint32_t deadline_ms) RON_BLOCKS
{
    const struct ledger_op op = {.kind = LEDGER_TRANSFER,
                                 .id_text = RON_SLICE("t1"),
                                 .debit_name = RON_SLICE("alice"),
                                 .credit_name = RON_SLICE("bob"),
                                 .asset_name = RON_SLICE("roc"),
                                 .amount = {40},
                                 .nonce = 3};
    struct auth_grant grant;
    const struct ledger_request request = {
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

int main(int argc, char **argv) RON_BLOCKS
{
    static const char *const states[] = {[RT_BREAKER_CLOSED] = "closed",
                                         [RT_BREAKER_OPEN] = "open",
                                         [RT_BREAKER_HALF_OPEN] = "half-open"};
    struct ledger_checks *checks;
    enum ledger_check_port port;
    char line[LINE_SIZE];

    if (argc != 6)
        return 2;
    (void)signal(SIGPIPE, SIG_IGN);
    rt_init();
    checks = open_checks(argv, &port);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "ask ", 4) == 0) {
            ask(checks, number(line + 4));
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
    (void)ledger_checks_free(checks);
    printf("ended\n");
    return 0;
}
