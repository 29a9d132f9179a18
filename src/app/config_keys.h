/*
 * config_keys.h - every key of ron.toml: its type, default, bounds and meaning, in one table.
 *
 * The table makes the enum, `ron config default`, the names of environment variables and the check
 * of unknown keys. A key exists only if something reads it. *Hot* keys may change by reload.
 */
#ifndef RON_APP_CONFIG_KEYS_H
#define RON_APP_CONFIG_KEYS_H

/* X(name, path, type, default, least, most, hot, meaning)
 * type: BOOL ("true"), COUNT, DURATION (ns), SIZE (bytes), TEXT (least..most bytes), CHOICE
 * (`least` and `most` unused; the allowed words stand first in the meaning, between brackets). */
/* clang-format off */
#define CONFIG_MAP(X)                                                                              \
    X(SERVER_LISTEN, "server.listen", TEXT, "127.0.0.1:7700", 1, 200, false,                       \
      "address of the API; port 0 picks a free one; beyond loopback only with TLS")                \
    X(SERVER_ADMIN, "server.admin", TEXT, "127.0.0.1:7701", 1, 200, false,                         \
      "address of metrics, debug and admin routes")                                                \
    X(SERVER_UNIX, "server.unix", TEXT, "", 0, 100, false,                                         \
      "path of a Unix socket with the API beside TCP; empty for none")                             \
    X(SERVER_UNIX_UIDS, "server.unix_uids", TEXT, "", 0, 200, false,                               \
      "numbers of the users who may use it, separated by commas; empty for the server's own")      \
    X(SERVER_DATA, "server.data", TEXT, "ron-data", 1, 200, false,                                 \
      "directory of everything durable")                                                           \
    X(SERVER_ROLES, "server.roles", TEXT, "all", 1, 100, false,                                    \
      "roles of this process, separated by commas, or `all`")                                      \
    X(SERVER_LOOPS, "server.loops", COUNT, "0", 0, 64, false,                                      \
      "I/O threads of the API; 0 for a quarter of the processors, at least 1")                     \
    X(SERVER_MAX_CONNS, "server.max_conns", COUNT, "1024", 1, 65536, false,                        \
      "open connections; one address may have a quarter of them")                                  \
    X(SERVER_MAX_BYTES, "server.max_bytes", SIZE, "64MiB", 1048576, 1099511627776, false,          \
      "memory of all bodies and buffers of connections together")                                  \
    X(SERVER_HEAD_TIMEOUT, "server.head_timeout", DURATION, "5s", 1000000, 600000000000, false,    \
      "from the first byte of a request to the end of its head")                                   \
    X(SERVER_BODY_TIMEOUT, "server.body_timeout", DURATION, "5s", 1000000, 600000000000, false,    \
      "from the head to the end of the body")                                                      \
    X(SERVER_IDLE_TIMEOUT, "server.idle_timeout", DURATION, "60s", 1000000, 3600000000000, false,  \
      "between two requests of a connection")                                                      \
    X(SERVER_REQUEST_TIMEOUT, "server.request_timeout", DURATION, "5s", 1000000, 600000000000,     \
      false, "from the whole request to its reply; then 504")                                      \
    X(SERVER_READS_PER_S, "server.reads_per_s", COUNT, "4000", 0, 10000000, true,                  \
      "reads a second of each role; 0 for no bound")                                               \
    X(SERVER_TLS_CERTIFICATE, "server.tls.certificate", TEXT, "", 0, 200, false,                   \
      "PEM file of the certificate chain; empty for no TLS; read again on SIGHUP")                 \
    X(SERVER_TLS_KEY, "server.tls.key", TEXT, "", 0, 200, false,                                   \
      "PEM file of its private key")                                                               \
    X(SERVER_TLS_CLIENT_CA, "server.tls.client_ca", TEXT, "", 0, 200, false,                       \
      "PEM file of the authorities of client certificates; empty for no client certificates")      \
    X(LEDGER_ORIGIN, "ledger.origin", TEXT, "ron.local/ledger", 1, 200, false,                     \
      "name of the log in its signed checkpoints; a key is made for it on the first start")        \
    X(LEDGER_NEW_KEY, "ledger.new_key", BOOL, "false", 0, 0, false,                                \
      "a log whose key is lost may be given a new one, which nobody trusts yet")                   \
    X(LEDGER_PUBLIC_LOG, "ledger.public_log", BOOL, "false", 0, 0, false,                          \
      "entries, balances and proofs may be read without a capability")                             \
    X(LEDGER_DRAIN, "ledger.drain_timeout", DURATION, "3s", 100000000, 60000000000, false,         \
      "for everything accepted to be answered when the process stops")                             \
    X(LEDGER_WRITES_PER_S, "ledger.writes_per_s", COUNT, "0", 0, 10000000, false,                  \
      "write requests a second; 0 for no bound")                                                   \
    X(LEDGER_READS_PER_S, "ledger.reads_per_s", COUNT, "4000", 0, 10000000, false,                 \
      "read requests a second; 0 for no bound")                                                    \
    X(LEDGER_MAX_ACCOUNTS, "ledger.limits.max_accounts", COUNT, "1000000", 16, 100000000, false,   \
      "accounts that may ever be known; about 200 bytes of memory each once used")                 \
    X(LEDGER_PREVALIDATORS, "ledger.concurrency.prevalidators", COUNT, "0", 0, 64, false,          \
      "threads that check requests; 0 for half of the processors, at least 2")                     \
    X(LEDGER_CHECKS_IN_FLIGHT, "ledger.concurrency.checks", COUNT, "1024", 1, 16384, false,        \
      "requests that wait for remote ports; beyond it Busy; as many connections to each port")     \
    X(LEDGER_QUEUE_INGRESS, "ledger.queues.ingress", COUNT, "2000", 1, 1000000, false,             \
      "requests that wait to be checked; beyond it Busy")                                          \
    X(LEDGER_QUEUE_PREVALIDATOR, "ledger.queues.prevalidator", COUNT, "2000", 1, 1000000, false,   \
      "checked requests that wait for their number; beyond it the oldest is refused")              \
    X(LEDGER_QUEUE_COMMIT, "ledger.queues.commit", COUNT, "1000", 1, 100000, false,                \
      "batches between their number and their answer; beyond it CommitBackpressure")               \
    X(LEDGER_QUEUE_BYTES, "ledger.queues.max_bytes", SIZE, "64MiB", 1048576, 68719476736, false,   \
      "memory of the requests in each of the three")                                               \
    X(LEDGER_LINGER, "ledger.commit.linger", DURATION, "0us", 0, 2000000, false,                   \
      "how long a group waits for more before it is written, while the disk is idle")              \
    X(LEDGER_MAX_LAG, "ledger.commit.max_lag", DURATION, "1s", 0, 600000000000, false,             \
      "age of the oldest batch that waits for its sync, beyond which nothing is admitted; 0: any") \
    X(LEDGER_SEGMENT, "ledger.log.segment", SIZE, "256MiB", 1048576, 1073741824, false,            \
      "size of one file of the log; a multiple of 4 KiB; the newest two's ids stay in memory")     \
    X(LEDGER_LOG_CACHED, "ledger.log.cached", SIZE, "512MiB", 0, 1099511627776, false,             \
      "how much of its end is left in the system's cache; older entries are read from the disk; "   \
      "0: all that the system likes")                                                               \
    X(LEDGER_LOG_DIRECT, "ledger.log.direct", BOOL, "true", 0, 0, false,                           \
      "write the log and its full tiles past the system's cache, where the file system can")       \
    X(LEDGER_SNAPSHOT_ENTRIES, "ledger.snapshot.entries", COUNT, "1048576", 0, 1000000000, false,  \
      "entries after which one is taken; 0: not for that reason")                                  \
    X(LEDGER_SNAPSHOT_PERIOD, "ledger.snapshot.period", DURATION, "60s", 0, 86400000000000, false, \
      "after the last one, if there is anything new; 0: not for that reason")                      \
    X(LEDGER_SNAPSHOT_MIN, "ledger.snapshot.min_interval", DURATION, "0s", 0, 86400000000000,      \
      false, "never two snapshots within it, whatever the other two say")                          \
    X(LEDGER_PORT_KMS, "ledger.ports.kms", TEXT, "", 0, 200, false,                                \
      "http://ADDRESS:PORT or unix:PATH that verifies capabilities, too; empty for none")          \
    X(LEDGER_PORT_POLICY, "ledger.ports.policy", TEXT, "", 0, 200, false,                          \
      "the same for policy, beside our own")                                                       \
    X(LEDGER_PORT_WALLET, "ledger.ports.wallet", TEXT, "", 0, 200, false,                          \
      "the same for what was spent; empty: the ledger knows itself")                               \
    X(LEDGER_TIMEOUT_KMS, "ledger.timeouts.kms", DURATION, "1s", 1000000, 60000000000, false,      \
      "one try at the port")                                                                       \
    X(LEDGER_TIMEOUT_POLICY, "ledger.timeouts.policy", DURATION, "800ms", 1000000, 60000000000,    \
      false, "one try at the port")                                                                \
    X(LEDGER_TIMEOUT_WALLET, "ledger.timeouts.wallet", DURATION, "1s", 1000000, 60000000000,       \
      false, "one try at the port")                                                                \
    X(LEDGER_RETRIES_KMS, "ledger.retries.kms", COUNT, "2", 0, 10, false,                          \
      "tries after the first that failed")                                                         \
    X(LEDGER_RETRIES_POLICY, "ledger.retries.policy", COUNT, "1", 0, 10, false,                    \
      "tries after the first that failed")                                                         \
    X(LEDGER_RETRIES_WALLET, "ledger.retries.wallet", COUNT, "1", 0, 10, false,                    \
      "tries after the first that failed")                                                         \
    X(LEDGER_BREAKER_FAILURES, "ledger.breaker.failures", COUNT, "1", 1, 64, false,                \
      "failed questions within the window that open the breaker of a port")                        \
    X(LEDGER_BREAKER_WINDOW, "ledger.breaker.window", DURATION, "10s", 1000000, 3600000000000,     \
      false, "in which they are counted")                                                          \
    X(LEDGER_BREAKER_HALF, "ledger.breaker.half_open", DURATION, "5s", 1000000, 3600000000000,     \
      false, "how long it stays open before one request is let through")                           \
    X(LEDGER_AMNESIA_BYTES, "ledger.amnesia.max_bytes", SIZE, "256MiB", 1048576, 1099511627776,    \
      false, "memory of the log without a data directory; beyond it PersistenceFull")              \
    X(LOG_LEVEL, "log.level", CHOICE, "info", 0, 0, true,                                          \
      "[debug info warn error] the least important lines to write")                                \
    X(LOG_FORMAT, "log.format", CHOICE, "auto", 0, 0, false,                                       \
      "[auto json text] JSON lines, text for people, or text on a terminal and JSON elsewhere")    \
    X(OTLP_ENDPOINT, "otlp.endpoint", TEXT, "", 0, 200, false,                                     \
      "http address that takes OTLP/HTTP spans; empty for none")                                   \
    X(OTLP_SAMPLE_PERMILLE, "otlp.sample_permille", COUNT, "10", 0, 1000, true,                    \
      "of 1,000 requests, how many are traced")
/* clang-format on */

enum config_key {
#define X(name, path, type, value, least, most, hot, meaning) CONFIG_##name,
    CONFIG_MAP(X)
#undef X
        CONFIG__MAX
};

#endif
