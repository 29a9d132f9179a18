/*
 * checks.h - what is asked about a request before it is sequenced: capability (KMS), policy,
 * wallet.
 *
 * Three ports, asked in this order, each in process or remote. In process nothing blocks: the
 * network's door has verified the capability, policy is auth's evaluator (freezes, what the grant
 * covers, daily sums), and the wallet's question (was it spent already?) is answered by the
 * ledger's own nonces and balances. auth's evaluator is asked even where policy is remote as well:
 * a freeze is nobody else's to forget. There is one of it, here: the API asks it entry by entry,
 * where it can say which one is refused, and what comes by another door is asked about here.
 *
 * A remote port is a small JSON POST (docs/formats.md) with a bound for each try, few retries after
 * a backoff, and a breaker; nothing outlives the request's own deadline, and no retry is begun that
 * could not. The breaker counts questions, not tries, and only those it is certain about: a try
 * that was cut short by an impatient caller says nothing of the upstream. An open breaker refuses
 * at once; while it is open the owner is told (`report`), so that writes are not ready. A 4xx or
 * `"ok":false` is an answer: not retried, no failure.
 *
 * Nobody waits for an answer. A request that needs one is parked with its question
 * (ledger_checks_begin) and goes on, to the next port or back to its owner, on the task of the port
 * that answered: one task for each remote port (ledger_checks_serve) keeps all its questions in
 * flight, io/flights.h. in_flight_max requests may be parked, bytes_max bytes of them and their
 * questions; beyond that the answer is RON_ERR_BUSY, at once. A parked request is answered exactly
 * once: by the answer, its deadline, the breaker, or the cancel.
 *
 * What is asked once: the KMS about one capability, tenant, caller and command, under one
 * revocation epoch. A request whose question is in flight already waits for that answer, yes or no
 * or a failure that is certain; if the first one's question ended for a reason of its own (its
 * deadline), the next asks; if its yes is older than a revocation that became known meanwhile, each
 * asks, at once. And what verified is remembered for cache_ms, as long as no answer of the KMS
 * names a newer revocation epoch; a yes of an older one than was known when it was asked is a wrong
 * answer. Policy and wallet, which depend on amounts, are asked about each request.
 */
#ifndef RON_LEDGER_CHECKS_H
#define RON_LEDGER_CHECKS_H

#include "auth/policy.h"
#include "io/flights.h"
#include "ledger/port.h"
#include "rt/log.h"
#include "rt/metrics.h"

enum ledger_check_port {
    LEDGER_CHECK_KMS,
    LEDGER_CHECK_POLICY,
    LEDGER_CHECK_WALLET,
    LEDGER_CHECK__COUNT,
};
extern const char *const ledger_check_names[LEDGER_CHECK__COUNT]; /* "kms", ... */

struct ledger_check_remote {
    const char *url;                 /* as io_client_options; NULL: in process */
    const struct io_client_tls *tls; /* with https */
    struct io_transport *transport;  /* instead of url; taken, also on failure */
    uint32_t connections_max;        /* 0: 256, at most in_flight_max */
    uint32_t attempt_ms;             /* bound of one try */
    uint32_t retries_max;
    uint32_t backoff_ms_max;          /* the first is 50 ms, then doubled up to this */
    uint32_t failures_max;            /* failed questions within window_ms open the breaker */
    uint32_t window_ms, half_open_ms; /* half_open_ms: how long it stays open */
};
enum { LEDGER_CHECKS_CACHE_MAX = 1 << 16, LEDGER_CHECKS_IN_FLIGHT_MAX = 1 << 14 };

struct ledger_checks_options {
    struct ledger_check_remote remotes[LEDGER_CHECK__COUNT];
    uint32_t cache_slots; /* verified capabilities; a power of two, or 0: none */
    uint32_t cache_ms;
    uint32_t in_flight_max;     /* parked requests, 1..LEDGER_CHECKS_IN_FLIGHT_MAX */
    uint64_t bytes_max;         /* of them and their questions */
    uint32_t policy_rows;       /* as auth_policy_new */
    struct rt_metrics *metrics; /* NULL: none; with ledger_metric_table and rt_metric_table */
    struct rt_log *log;         /* NULL: none */
};
/* The seed's: 1 s, 800 ms, 1 s; 2, 1, 1 retries; 250, 150, 150 ms; one failure opens for 5 s; 1,024
 * in flight. All in process. */
struct ledger_checks_options ledger_checks_defaults(void);

struct ledger_checks; /* opaque; any thread */

/* Errors of io_flights_new; RON_ERR_NO_MEMORY. Connects nothing. The caller owns it. */
enum ron_err ledger_checks_new(const struct ledger_checks_options *options,
                               struct ledger_checks **ret_checks,
                               struct ron_errinfo *reterr) RON_MUST_USE;
/* After the last answer, the ports and the watch. Accepts NULL, returns NULL. */
struct ledger_checks *ledger_checks_free(struct ledger_checks *checks);

/* Who is told that a breaker opened, or lets a probe pass again. Called without locks, by any
 * thread, perhaps twice with the same. Before the first question. */
typedef void ledger_report_fn(void *context, enum ledger_check_port port, bool open);
void ledger_checks_attach(struct ledger_checks *checks, ledger_report_fn *report, void *context);
bool ledger_checks_are_remote(const struct ledger_checks *checks); /* any of them */

/* The answer to a request that was parked: once, without locks, on the task of a port. *info: of an
 * error. `spent` as below. */
typedef void ledger_asked_fn(void *context, struct ledger_request *request, enum ron_err err,
                             bool spent, const struct ron_errinfo *info);
/* All three, of a request whose ops are ready. RON_ERR_UNAUTHORIZED (no grant, or the KMS says no),
 * RON_ERR_POLICY_DENIED, RON_ERR_CONFLICT (wallet), those of auth_policy_evaluate,
 * RON_ERR_UPSTREAM_UNAVAILABLE, RON_ERR_TIMEOUT, RON_ERR_DRAINING (canceled), RON_ERR_BUSY,
 * RON_ERR_TOO_LARGE, RON_ERR_NO_MEMORY. *ret_parked, after RON_ERR_OK: `asked` says so instead,
 * perhaps before this returns; until then the request stays as it is. After RON_ERR_OK, here or
 * there, what was charged stays so, unless it is taken back.
 * *ret_spent: the day's sum is used up and nothing is charged, but the request has a key: perhaps
 * it is what used it up, and must then be answered as before. */
enum ron_err ledger_checks_begin(struct ledger_checks *checks, struct ledger_request *request,
                                 ledger_asked_fn *asked, void *context, bool *ret_parked,
                                 bool *ret_spent, struct ron_errinfo *reterr) RON_MUST_USE;
/* The same, waiting for the answer. For who has no task for the ports (tools, tests): the caller
 * serves them itself, alone. */
enum ron_err ledger_checks_ask(struct ledger_checks *checks, struct ledger_request *request,
                               bool *ret_spent, struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
struct ledger_checks_parked {
    uint32_t count, peak;
    uint64_t bytes;      /* of the requests and their questions */
    uint64_t asked_once; /* requests that were answered by another one's question */
};
struct ledger_checks_parked ledger_checks_get_parked(struct ledger_checks *checks);
/* Until none is parked. RON_ERR_TIMEOUT. */
enum ron_err ledger_checks_await(struct ledger_checks *checks, struct rt_deadline deadline,
                                 struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The request passed but wrote nothing: its daily sums are as before. */
void ledger_checks_refund(struct ledger_checks *checks, const struct ledger_request *request);

/* Keeps readiness and the clocks of breakers true until canceled; with remote ports, one task runs
 * it. */
void ledger_checks_watch(struct ledger_checks *checks) RON_BLOCKS;
bool ledger_checks_is_remote(const struct ledger_checks *checks, enum ledger_check_port port);
/* Keeps the questions of a remote port in flight until canceled; one task for each. */
void ledger_checks_serve(struct ledger_checks *checks, enum ledger_check_port port) RON_BLOCKS;
/* That task has given up: what waits for it is answered RON_ERR_UPSTREAM_UNAVAILABLE here, and so
 * is everything from now on. */
void ledger_checks_abandon(struct ledger_checks *checks, enum ledger_check_port port);
/* End every question and the watch, now and from now on. Any thread; idempotent. */
void ledger_checks_cancel(struct ledger_checks *checks);
/* The same where the tasks of the ports are gone, perhaps before they could: here. */
void ledger_checks_end(struct ledger_checks *checks);

enum rt_breaker_state ledger_checks_breaker(struct ledger_checks *checks,
                                            enum ledger_check_port port);

/* The evaluator itself, serialised: as auth_policy_evaluate, _check_freezes, _rate, _refund,
 * _freeze, _lift, _charge and _forget. */
enum ron_err ledger_checks_evaluate(struct ledger_checks *checks, const struct auth_grant *grant,
                                    const struct auth_act *act, struct auth_details *details,
                                    struct ron_errinfo *reterr) RON_MUST_USE;
enum ron_err ledger_checks_freezes(struct ledger_checks *checks, const struct auth_act *act,
                                   struct auth_details *details,
                                   struct ron_errinfo *reterr) RON_MUST_USE;
enum ron_err ledger_checks_rate(struct ledger_checks *checks, const struct auth_grant *grant,
                                struct auth_details *details,
                                struct ron_errinfo *reterr) RON_MUST_USE;
void ledger_checks_take_back(struct ledger_checks *checks,
                             const uint8_t capability[static AUTH_CAPABILITY_SIZE],
                             struct ron_u128 amount, uint64_t time_ms);
enum ron_err ledger_checks_freeze(struct ledger_checks *checks, struct ron_slice account,
                                  uint64_t until_ms, struct ron_errinfo *reterr) RON_MUST_USE;
enum ron_err ledger_checks_lift(struct ledger_checks *checks, struct ron_slice account,
                                struct ron_errinfo *reterr) RON_MUST_USE;
enum ron_err ledger_checks_charge(struct ledger_checks *checks,
                                  const uint8_t capability[static AUTH_CAPABILITY_SIZE],
                                  struct ron_u128 amount, uint64_t time_ms,
                                  struct ron_errinfo *reterr) RON_MUST_USE;
void ledger_checks_forget(struct ledger_checks *checks);

#endif
