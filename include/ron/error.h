/*
 * ron/error.h - every error ron can answer, in one table.
 *
 * RON_ERR_MAP is the single list: it makes the enum, the wire codes, the HTTP statuses, the retry
 * hints, the metric words and docs/errors.md. A row exists only if a caller can react to it.
 *
 * Conventions, everywhere in ron: a function that can fail returns enum ron_err and is marked
 * RON_MUST_USE; results (`ret_x`) are untouched on failure; `reterr` comes last, may be NULL and is
 * untouched on success. Messages say the fact first, then where; never a secret.
 */
#ifndef RON_ERROR_H
#define RON_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#define RON_MUST_USE __attribute__((warn_unused_result))

/* Row flags. */
#define RON_ERRF_NONE        0x0u
#define RON_ERRF_RETRY       0x1u /* the same request may succeed later */
#define RON_ERRF_RETRY_AFTER 0x2u /* the HTTP reply carries Retry-After */
#define RON_ERRF_INTERNAL    0x4u /* never on the wire; see ron_err_wire() */

#define RON_ERRF_RA (RON_ERRF_RETRY | RON_ERRF_RETRY_AFTER)

/* X(name, wire code, HTTP status, flags, metric reason, text)
 * The metric reason is the source design's word where it has one, else the code in snake_case. */
/* clang-format off */
#define RON_ERR_MAP(X)                                                                             \
    X(OK,                   "Ok",                  200, RON_ERRF_INTERNAL, "ok",                    "no error") \
    X(MALFORMED,            "Malformed",           400, RON_ERRF_NONE,  "malformed",             "the request does not follow its grammar") \
    X(SCHEMA_VIOLATION,     "SchemaViolation",     400, RON_ERRF_NONE,  "schema_violation",      "the document does not fit its schema") \
    X(DECOMPRESS_RATIO,     "DecompressRatio",     400, RON_ERRF_NONE,  "decompress_ratio",      "the body inflates beyond the allowed ratio") \
    X(UNAUTHORIZED,         "Unauthorized",        401, RON_ERRF_NONE,  "unauthorized",          "no valid capability was presented") \
    X(FORBIDDEN,            "Forbidden",           403, RON_ERRF_NONE,  "forbidden",             "the capability does not allow this") \
    X(LIMIT_EXCEEDED,       "LimitExceeded",       403, RON_ERRF_NONE,  "limit_exceeded",        "a limit of the account or capability would be exceeded") \
    X(POLICY_DENIED,        "PolicyDenied",        403, RON_ERRF_NONE,  "policy_denied",         "a policy denies this") \
    X(NOT_FOUND,            "NotFound",            404, RON_ERRF_NONE,  "not_found",             "no such thing") \
    X(METHOD_NOT_ALLOWED,   "MethodNotAllowed",    405, RON_ERRF_NONE,  "method_not_allowed",    "the path does not take this method") \
    X(REQUEST_TIMEOUT,      "Timeout",             408, RON_ERRF_RETRY, "timeout",               "the client sent its request too slowly") \
    X(INSUFFICIENT_FUNDS,   "InsufficientFunds",   409, RON_ERRF_NONE,  "insufficient_funds",    "the account does not hold enough") \
    X(NONCE_CONFLICT,       "NonceConflict",       409, RON_ERRF_NONE,  "nonce_conflict",        "the nonce is not the next one of the account") \
    X(IDEMPOTENCY_CONFLICT, "IdempotencyConflict", 409, RON_ERRF_NONE,  "idempotency_conflict",  "the idempotency key was used with another body") \
    X(CONFLICT,             "Conflict",            409, RON_ERRF_NONE,  "conflict",              "the request contradicts what is already recorded") \
    X(CHAIN_MISMATCH,       "ChainMismatch",       409, RON_ERRF_RETRY, "chain_mismatch",        "the head moved on, or the hash chain does not fit") \
    X(DUPLICATE_APPROVAL,   "DuplicateApproval",   409, RON_ERRF_NONE,  "duplicate_approval",    "this signer has approved already") \
    X(VERSION_SKEW,         "VersionSkew",         409, RON_ERRF_NONE,  "version_skew",          "the version does not fit the current one") \
    X(ORDER_OVERFLOW,       "OrderOverflow",       409, RON_ERRF_NONE,  "order_overflow",        "the stream's order cannot be kept") \
    X(QUARANTINED,          "Quarantined",         409, RON_ERRF_NONE,  "quarantined",           "the epoch is quarantined") \
    X(PRUNED,               "Pruned",              410, RON_ERRF_NONE,  "pruned",                "retention has removed it") \
    X(EXPIRED,              "Expired",             410, RON_ERRF_NONE,  "expired",               "it has expired") \
    X(LENGTH_REQUIRED,      "LengthRequired",      411, RON_ERRF_NONE,  "length_required",       "the request needs a Content-Length") \
    X(TOO_LARGE,            "TooLarge",            413, RON_ERRF_NONE,  "too_large",             "it is larger than its limit") \
    X(UNSUPPORTED_MEDIA,    "UnsupportedMedia",    415, RON_ERRF_NONE,  "unsupported_media",     "the content type is not supported here") \
    X(INVALID_SIGNATURE,    "InvalidSignature",    422, RON_ERRF_NONE,  "invalid_signature",     "a signature does not verify") \
    X(REVOKED_KEY,          "RevokedKey",          422, RON_ERRF_NONE,  "revoked_key",           "the key has been revoked") \
    X(QUORUM_FAILED,        "QuorumFailed",        422, RON_ERRF_NONE,  "quorum_failed",         "too few valid approvals") \
    X(BUSY,                 "Busy",                429, RON_ERRF_RA,    "capacity",              "a bounded resource is full") \
    X(RATE_LIMITED,         "RateLimited",         429, RON_ERRF_RA,    "rate_limited",          "too many requests") \
    X(PREVAL_DROP_OLDEST,   "PrevalDropOldest",    429, RON_ERRF_RA,    "preval_drop_oldest",    "evicted by newer requests before sequencing") \
    X(HEADERS_TOO_LARGE,    "HeadersTooLarge",     431, RON_ERRF_NONE,  "headers_too_large",     "the request head is larger than its limit") \
    X(INTERNAL,             "Internal",            500, RON_ERRF_NONE,  "internal",              "an internal error; the log has the details") \
    X(NOT_READY,            "NotReady",            503, RON_ERRF_RA,    "not_ready",             "the role is not ready for this") \
    X(DRAINING,             "Draining",            503, RON_ERRF_RA,    "draining",              "the role is shutting down") \
    X(CANCELED,             "Canceled",            503, RON_ERRF_RETRY_AFTER, "canceled",        "canceled by shutdown") \
    X(RECOVERING,           "SafeMode",            503, RON_ERRF_RA,    "safe_mode",             "writes are frozen until the log has been read again") \
    X(SAFE_MODE,            "SafeMode",            503, RON_ERRF_RETRY_AFTER, "safe_mode",       "writes are frozen until an operator acts") \
    X(UPSTREAM_UNAVAILABLE, "UpstreamUnavailable", 503, RON_ERRF_RA,    "upstream_unavailable",  "an upstream does not answer; the outcome may be unknown") \
    X(COMMIT_BACKPRESSURE,  "CommitBackpressure",  503, RON_ERRF_RA,    "commit_backpressure",   "no commit slot is free") \
    X(STORAGE_BUSY,         "StorageBusy",         503, RON_ERRF_RA,    "storage_busy",          "storage is under pressure") \
    X(HELD,                 "Held",                503, RON_ERRF_RA,    "held",                  "held back until its precondition is met") \
    X(PERSISTENCE_FULL,     "PersistenceFull",     503, RON_ERRF_NONE,  "wal_full",              "no room is left on durable storage") \
    X(TIMEOUT,              "Timeout",             504, RON_ERRF_RETRY, "timeout",               "the deadline passed first") \
    X(NO_MEMORY,            "NoMemory",            429, RON_ERRF_INTERNAL | RON_ERRF_RA, "no_memory", "out of memory") \
    X(IO,                   "Io",                  500, RON_ERRF_INTERNAL, "io",                 "a system call failed") \
    X(LAGGING,              "Lagging",             500, RON_ERRF_INTERNAL, "lagging",            "a subscriber missed messages") \
    X(WAL_CORRUPT,          "WalCorrupt",          500, RON_ERRF_INTERNAL, "wal_corrupt",        "a log frame failed its check") \
    X(DUPLICATE_EXPORT,     "DuplicateExport",     200, RON_ERRF_INTERNAL, "dup",                "already exported; counts as success")
/* clang-format on */

enum ron_err {
#define X(name, code, http, flags, reason, text) RON_ERR_##name,
    RON_ERR_MAP(X)
#undef X
        RON_ERR__MAX
};

#define RON_ERR_MESSAGE_SIZE 192

/* What went wrong and where it was first seen. Caller's memory; no ownership inside. */
struct ron_errinfo {
    enum ron_err err;
    int sys_errno;    /* errno of the failed call, or 0 */
    const char *file; /* origin: where the error was raised */
    int line;
    char message[RON_ERR_MESSAGE_SIZE]; /* NUL-terminated, cut to fit, valid UTF-8 if its parts were
                                         */
};

/* Table look-ups. `err` must be a row of the table. */
const char *ron_err_name(enum ron_err err);   /* wire code, "Busy" */
const char *ron_err_symbol(enum ron_err err); /* enum name without prefix, "BUSY" */
const char *ron_err_reason(enum ron_err err); /* metric label value */
const char *ron_err_text(enum ron_err err);   /* one-line explanation */
int ron_err_http(enum ron_err err);
bool ron_err_retryable(enum ron_err err);
bool ron_err_retry_after(enum ron_err err);
bool ron_err_internal(enum ron_err err);

/* The row a client is shown for `err`: itself, or for internal rows their public stand-in. */
enum ron_err ron_err_wire(enum ron_err err);

/* Find a public row by its wire code ("Timeout" gives RON_ERR_TIMEOUT,
 * "SafeMode" RON_ERR_SAFE_MODE). False if there is none. */
bool ron_err_find(const char *code, enum ron_err *ret_err) RON_MUST_USE;

/* Fill *reterr (if not NULL) and return err, which must not be RON_ERR_OK. errno is recorded only
 * by the _sys form. Usage: return ron_fail(reterr, RON_ERR_TOO_LARGE, "body of %zu bytes", size);
 */
#define ron_fail(reterr, err, ...) ron_fail_at((reterr), (err), 0, __FILE__, __LINE__, __VA_ARGS__)
#define ron_fail_sys(reterr, err, sys_errno, ...) \
    ron_fail_at((reterr), (err), (sys_errno), __FILE__, __LINE__, __VA_ARGS__)
enum ron_err ron_fail_at(struct ron_errinfo *reterr, enum ron_err err, int sys_errno,
                         const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* Put context in front of an error that passes outward: "wallet 7: wal append: disk full". Keeps
 * code, origin and the message so far; the context is cut, or left out, where there is no room.
 * Returns reterr->err; with reterr NULL, returns err. */
enum ron_err ron_wrap(struct ron_errinfo *reterr, enum ron_err err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
