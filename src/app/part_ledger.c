/*
 * part_ledger.c - the ledger's row: its configuration made into options.
 */
#include "app/parts.h"
#include "base/assert.h"
#include "base/mem.h"
#include "io/server.h"
#include "ledger/api.h"
#include "ledger/role.h"
#include "ledger/service_metrics.h"
#include "ron/verify.h"
#include "rt/clock.h"

enum {
    TOPOLOGY_ACCOUNTS = 16,
    TOPOLOGY_BYTES = 1 << 20,
    API_STOP_MS = 2000, /* for readers to end; streams and waiting requests are answered at once */
    FRAME_SIZE_LEAST = 256, /* a frame in memory: how many may there be in so many bytes */
};

struct part {
    struct ledger_checks *checks; /* NULL: no port is remote */
    struct ledger_role *role;
    struct ledger_api *api;
};

static uint32_t number_of(const struct config *config, enum config_key key)
{
    return (uint32_t)config_number(config, key);
}

static uint32_t ms_of(const struct config *config, enum config_key key)
{
    return (uint32_t)(config_number(config, key) / RT_NS_PER_MS);
}

/* The ports that are asked about a write, where one of them is elsewhere: in process the API's own
 * policy has said all there is to say. */
static enum ron_err make_checks(const struct app_part_options *options,
                                struct ledger_checks **ret_checks, struct ron_errinfo *reterr)
{
    static const struct {
        enum config_key url, timeout, retries;
    } keys[LEDGER_CHECK__COUNT] = {
        [LEDGER_CHECK_KMS] = {CONFIG_LEDGER_PORT_KMS, CONFIG_LEDGER_TIMEOUT_KMS,
                              CONFIG_LEDGER_RETRIES_KMS},
        [LEDGER_CHECK_POLICY] = {CONFIG_LEDGER_PORT_POLICY, CONFIG_LEDGER_TIMEOUT_POLICY,
                                 CONFIG_LEDGER_RETRIES_POLICY},
        [LEDGER_CHECK_WALLET] = {CONFIG_LEDGER_PORT_WALLET, CONFIG_LEDGER_TIMEOUT_WALLET,
                                 CONFIG_LEDGER_RETRIES_WALLET},
    };
    const struct config *config = options->config;
    struct ledger_checks_options checks = ledger_checks_defaults();
    bool remote = false;

    for (unsigned i = 0; i < LEDGER_CHECK__COUNT; i++) {
        struct ledger_check_remote *port = &checks.remotes[i];
        const char *url = config_text(config, keys[i].url);

        port->url = url[0] == '\0' ? NULL : url;
        port->attempt_ms = ms_of(config, keys[i].timeout);
        port->retries_max = number_of(config, keys[i].retries);
        port->failures_max = number_of(config, CONFIG_LEDGER_BREAKER_FAILURES);
        port->window_ms = ms_of(config, CONFIG_LEDGER_BREAKER_WINDOW);
        port->half_open_ms = ms_of(config, CONFIG_LEDGER_BREAKER_HALF);
        remote = remote || port->url != NULL;
    }
    checks.in_flight_max = number_of(config, CONFIG_LEDGER_CHECKS_IN_FLIGHT);
    checks.bytes_max = config_number(config, CONFIG_LEDGER_QUEUE_BYTES);
    checks.metrics = options->metrics;
    checks.log = options->log;
    return remote ? ledger_checks_new(&checks, ret_checks, reterr) : RON_ERR_OK;
}

static struct ledger_role_options options_of(const struct app_part_options *options)
{
    const struct config *config = options->config;
    const uint64_t memory = config_number(config, CONFIG_LEDGER_AMNESIA_BYTES);
    const uint64_t frames = memory / FRAME_SIZE_LEAST;
    const uint32_t prevalidators = number_of(config, CONFIG_LEDGER_PREVALIDATORS);
    struct ledger_role_options role = {
        .vfs = options->data,
        .origin = config_text(config, CONFIG_LEDGER_ORIGIN),
        .new_key = config_bool(config, CONFIG_LEDGER_NEW_KEY),
        .service = ledger_service_defaults(number_of(config, CONFIG_LEDGER_MAX_ACCOUNTS),
                                           app_cpus_count()),
        .segment_bytes = config_number(config, CONFIG_LEDGER_SEGMENT),
        .cached_bytes = config_number(config, CONFIG_LEDGER_LOG_CACHED),
        .direct = config_bool(config, CONFIG_LEDGER_LOG_DIRECT),
        .linger_us = (uint32_t)(config_number(config, CONFIG_LEDGER_LINGER) / 1000),
        .memory_bytes_max = memory,
        .memory_frames_max = frames > UINT32_MAX ? UINT32_MAX : (uint32_t)frames,
    };
    struct ledger_service_options *service = &role.service;

    if (prevalidators > 0)
        service->prevalidators_count = prevalidators;
    service->ingress_max = number_of(config, CONFIG_LEDGER_QUEUE_INGRESS);
    service->preval_max = number_of(config, CONFIG_LEDGER_QUEUE_PREVALIDATOR);
    service->commit_max = number_of(config, CONFIG_LEDGER_QUEUE_COMMIT);
    service->classes[0].count = service->commit_max;
    service->queue_bytes_max = config_number(config, CONFIG_LEDGER_QUEUE_BYTES);
    service->lag_ms_max = ms_of(config, CONFIG_LEDGER_MAX_LAG);
    service->drain_ms = ms_of(config, CONFIG_LEDGER_DRAIN);
    service->snapshot.entries = config_number(config, CONFIG_LEDGER_SNAPSHOT_ENTRIES);
    service->snapshot.ms = ms_of(config, CONFIG_LEDGER_SNAPSHOT_PERIOD);
    service->snapshot.min_ms = ms_of(config, CONFIG_LEDGER_SNAPSHOT_MIN);
    service->spans = options->spans;
    service->metrics = options->metrics;
    service->log = options->log;
    return role;
}

static struct ledger_api_options api_options_of(const struct ledger_role_options *role_options,
                                                struct ledger_role *role, uint32_t loops_count)
{
    return (struct ledger_api_options){
        .service = ledger_role_service(role),
        .tree = ledger_role_tree(role),
        .books = ledger_role_books(role),
        .checks = role_options->service.checks,
        .vfs = role_options->vfs,
        .log = role_options->service.log,
        .bodies_max = role_options->service.prevalidators_count + loops_count,
    };
}

static void close_ledger(void *state) RON_BLOCKS
{
    struct part *part = state;

    part->api = ledger_api_free(part->api);
    part->role = ledger_role_free(part->role);
    part->checks = ledger_checks_free(part->checks);
    (void)ron_mem_free(part);
}

/* The checks are taken, also on failure. */
static enum ron_err make(const struct ledger_role_options *role_options, bool public_log,
                         uint32_t loops_count, struct part **ret_part,
                         struct ron_errinfo *reterr) RON_BLOCKS
{
    struct part *part = ron_mem_alloc(sizeof(*part));
    struct ledger_api_options api;
    enum ron_err err;

    if (part == NULL) {
        (void)ledger_checks_free(role_options->service.checks);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "the ledger's part");
    }
    part->checks = role_options->service.checks;
    err = ledger_role_open(role_options, &part->role, reterr);
    if (err == RON_ERR_OK) {
        api = api_options_of(role_options, part->role, loops_count);
        api.public_log = public_log;
        err = ledger_api_new(&api, &part->api, reterr);
    }
    if (err != RON_ERR_OK) {
        close_ledger(part);
        return err;
    }
    *ret_part = part;
    return RON_ERR_OK;
}

/* Upstreams are plain: on this machine, or behind a proxy that speaks TLS. */
static enum ron_err check_ports(const struct config *config, struct ron_errinfo *reterr)
{
    static const struct {
        enum config_key key;
        const char *name;
    } ports[] = {{CONFIG_LEDGER_PORT_KMS, "kms"},
                 {CONFIG_LEDGER_PORT_POLICY, "policy"},
                 {CONFIG_LEDGER_PORT_WALLET, "wallet"}};

    for (size_t i = 0; i < RON_ARRAY_COUNT(ports); i++) {
        const char *url = config_text(config, ports[i].key);

        if (url[0] != '\0' && strncmp(url, "http://", 7) != 0 && strncmp(url, "unix:", 5) != 0)
            return ron_fail(reterr, RON_ERR_MALFORMED,
                            "ledger.ports.%s: must start with http:// or unix:", ports[i].name);
    }
    return RON_ERR_OK;
}

static enum ron_err check_config(const struct config *config, struct ron_errinfo *reterr)
{
    if (config_number(config, CONFIG_LEDGER_SEGMENT) % 4096 != 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "ledger.log.segment: not a multiple of 4 KiB");
    if (!ron_key_name_valid(ron_slice_text(config_text(config, CONFIG_LEDGER_ORIGIN))))
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "ledger.origin: not the name of a key: no white space, no +");
    return check_ports(config, reterr);
}

static enum ron_err open_ledger(const struct app_part_options *options, void **ret_part,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_role_options role_options = options_of(options);
    struct part *part;
    enum ron_err err;

    err = make_checks(options, &role_options.service.checks, reterr);
    if (err == RON_ERR_OK)
        err = make(&role_options, config_bool(options->config, CONFIG_LEDGER_PUBLIC_LOG),
                   config_loops(options->config, app_cpus_count()), &part, reterr);
    if (err == RON_ERR_OK)
        *ret_part = part;
    return err;
}

static enum ron_err add_routes(void *state, struct io_routes *routes, struct io_oap_service *oap,
                               struct ron_errinfo *reterr)
{
    struct part *part = state;

    return ledger_api_add(routes, oap, part->api, reterr);
}

static enum ron_err start_ledger(void *state, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct part *part = state;
    enum ron_err err = ledger_role_start(part->role, reterr);

    if (err == RON_ERR_OK)
        err = ledger_api_start(part->api, reterr);
    return err;
}

/* Readers first: they ask the role. */
static enum ron_err stop_ledger(void *state, struct rt_life_report *ret_report,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    struct part *part = state;
    enum ron_err err = ledger_api_stop(part->api, rt_deadline_after_ms(API_STOP_MS), reterr);

    if (err == RON_ERR_OK)
        err = ledger_role_stop(part->role, ret_report, reterr);
    return err;
}

static struct rt_lifecycle *lifecycle_of(void *state)
{
    struct part *part = state;

    return ledger_service_lifecycle(ledger_role_service(part->role));
}

static struct rt_supervisor *supervisor_of(void *state)
{
    struct part *part = state;

    return ledger_service_supervisor(ledger_role_service(part->role));
}

static struct io_budget budget_of(const struct config *config)
{
    return (struct io_budget){.role = "ledger",
                              .writes_per_s = number_of(config, CONFIG_LEDGER_WRITES_PER_S),
                              .reads_per_s = number_of(config, CONFIG_LEDGER_READS_PER_S)};
}

/* ---- For the topology: small, in memory, and running ---- */

static enum ron_err build(void **ret_part, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_role_options options = {
        .origin = "topology",
        .service = ledger_service_defaults(TOPOLOGY_ACCOUNTS, 1),
        .memory_bytes_max = TOPOLOGY_BYTES,
        .memory_frames_max = 1,
    };
    struct part *part;
    enum ron_err err = make(&options, false, 1, &part, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = start_ledger(part, reterr);
    if (err == RON_ERR_OK)
        err = ledger_service_await_start(ledger_role_service(part->role), RT_DEADLINE_NEVER,
                                         reterr);
    if (err != RON_ERR_OK) {
        if (stop_ledger(part, NULL, NULL) == RON_ERR_OK)
            close_ledger(part);
        return err;
    }
    *ret_part = part;
    return RON_ERR_OK;
}

static void destroy(void *part) RON_BLOCKS
{
    RON_MUST_ZERO(stop_ledger(part, NULL, NULL));
    close_ledger(part);
}

const struct app_part app_part_ledger = {
    .name = "ledger",
    .build = build,
    .destroy = destroy,
    .check = check_config,
    .open = open_ledger,
    .add_routes = add_routes,
    .start = start_ledger,
    .stop = stop_ledger,
    .close = close_ledger,
    .lifecycle = lifecycle_of,
    .supervisor = supervisor_of,
    .budget = budget_of,
    .metrics = {ledger_metric_table, LEDGER_METRIC__COUNT},
};
