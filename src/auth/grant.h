/*
 * grant.h - what a verified token allows: the principal of a request, and the questions asked of
 * it.
 *
 * Every caveat narrows one member, and two of a kind narrow to one again (two globs, two networks,
 * two ceilings: the narrower; if they have nothing in common the grant is void). So a grant has a
 * fixed size however many caveats made it, holds its own texts, and is copied freely. It holds
 * nothing secret: the token cannot be made from it.
 *
 * The questions follow the order of admission: `admit` before the body is read, `cover` for what
 * the body turns out to move or read. Time, which a cached grant cannot know, is part of `admit`.
 *
 *     answer          cause
 *     Unauthorized    expired, not valid yet (and all that auth/verify.h refuses)
 *     Forbidden       void, audience, scope, method, path, ip, account, reserved account, asset
 *     LimitExceeded   max_amount (max_daily: policy.h)
 *     RateLimited     rate (policy.h)
 */
#ifndef RON_AUTH_GRANT_H
#define RON_AUTH_GRANT_H

#include "auth/macaroon.h"
#include "auth/scope.h"
#include "base/limits.h"
#include "base/u128.h"

enum {
    AUTH_PATTERN_SIZE_MAX = RON_ACCOUNT_NAME_SIZE_MAX,
    AUTH_METHOD_SIZE_MAX = 16,
    AUTH_KID_SIZE_MAX = 32,
    AUTH_CAPABILITY_SIZE = 8,
};

/* The kinds of caveats; `present` of a grant is a set of them. X(name, text) */
#define AUTH_CAVEAT_MAP(X)      \
    X(TENANT, "tenant")         \
    X(SCOPE, "scope")           \
    X(AUD, "aud")               \
    X(ACCOUNT, "account")       \
    X(ASSET, "asset")           \
    X(MAX_AMOUNT, "max_amount") \
    X(MAX_DAILY, "max_daily")   \
    X(METHOD, "method")         \
    X(PATH, "path")             \
    X(IP, "ip")                 \
    X(BEFORE, "before")         \
    X(AFTER, "after")           \
    X(RATE, "rate")

enum auth_caveat {
#define X(name, text) AUTH_CAVEAT_##name,
    AUTH_CAVEAT_MAP(X)
#undef X
        AUTH_CAVEAT__MAX
};

/* A name, or with glob everything that begins so. */
struct auth_pattern {
    uint16_t size;
    bool glob;
    char text[AUTH_PATTERN_SIZE_MAX];
};

/* An address or, with prefix, a network. A mapped IPv4 address is an IPv4 address. */
enum auth_family { AUTH_IP_NONE, AUTH_IP_V4, AUTH_IP_V6 };
struct auth_ip {
    enum auth_family family; /* none: a Unix socket, say */
    uint8_t prefix;          /* bits that count, of 32 or 128 */
    uint8_t bytes[16];       /* network order; 4 used by IPv4 */
};

struct auth_grant {
    uint32_t present; /* 1 << auth_caveat of the kinds that were there */
    bool is_void;     /* two caveats have nothing in common: allows nothing */
    bool is_service;  /* the token of a role, listed in the keyring */
    enum auth_role service;
    uint64_t scopes; /* all of them without a scope caveat: minting never leaves it out */
    struct ron_u128 tenant;
    struct ron_u128 max_amount;
    struct ron_u128 max_daily;
    uint64_t before_ms;
    uint64_t after_ms;
    uint32_t rate_per_s;
    uint32_t rate_burst;
    enum auth_role aud;
    struct auth_ip ip;
    uint8_t asset_size;
    uint8_t method_size;
    char asset[RON_ASSET_NAME_SIZE_MAX];
    char method[AUTH_METHOD_SIZE_MAX];
    /* Who it is, for logs and entries: the identifier `<kid>.<ULID>`, and its short form. */
    uint8_t kid_size;
    uint8_t ref_size;
    char ref[AUTH_IDENTIFIER_SIZE_MAX];
    uint8_t capability[AUTH_CAPABILITY_SIZE]; /* first bytes of BLAKE3 of the identifier */
    struct auth_pattern account;              /* last: of the two most bytes are not in use */
    struct auth_pattern path;
};

static inline bool auth_grant_has(const struct auth_grant *grant, enum auth_caveat kind)
{
    return (grant->present >> kind & 1) != 0;
}
static inline struct ron_slice auth_grant_ref(const struct auth_grant *grant)
{
    return ron_slice_of(grant->ref, grant->ref_size);
}
static inline struct ron_slice auth_grant_kid(const struct auth_grant *grant)
{
    return ron_slice_of(grant->ref, grant->kid_size);
}

/* kid: 1..32 of [A-Za-z0-9_-]. */
bool auth_kid_valid(struct ron_slice kid);
/* Is it `<kid>.<ULID>`? Gives the size of the kid. */
bool auth_identifier_split(struct ron_slice identifier, size_t *ret_kid_size) RON_MUST_USE;
/* An unrestricted grant for a valid identifier, to be narrowed by its caveats (caveat.h). */
void auth_grant_begin(struct auth_grant *grant, struct ron_slice identifier);

/* All that counts of it: behind the end of a text the copy is left as it was. */
void auth_grant_copy(const struct auth_grant *grant, struct auth_grant *ret_copy);

/* What is known before the body is read. */
struct auth_head {
    enum auth_role role;
    enum auth_scope scope; /* that the route asks for */
    struct ron_slice method;
    struct ron_slice path; /* without query */
    struct auth_ip peer;
    uint64_t now_ms; /* UTC */
};
enum ron_err auth_grant_admit(const struct auth_grant *grant, const struct auth_head *head,
                              struct ron_errinfo *reterr) RON_MUST_USE;

/* What the body asks for; empty slices ask for nothing. One call per entry. */
struct auth_use {
    struct ron_slice account; /* debited, or read */
    bool is_debit;
    struct ron_slice asset;
    struct ron_u128 amount; /* 0 = none */
};
enum ron_err auth_grant_cover(const struct auth_grant *grant, const struct auth_use *use,
                              struct ron_errinfo *reterr) RON_MUST_USE;

/* Accounts of the system: `sys/...` and `pool/...`. Only a caveat that begins so itself names one;
 * `*` and `s*` do not. */
bool auth_account_reserved(struct ron_slice account);
bool auth_grant_names_reserved(const struct auth_grant *grant, struct ron_slice account);

bool auth_pattern_covers(const struct auth_pattern *pattern, struct ron_slice name);
bool auth_ip_covers(const struct auth_ip *network, const struct auth_ip *address);
/* An address without prefix: dotted IPv4 or IPv6 text. */
bool auth_ip_parse(struct ron_slice text, struct auth_ip *ret_ip) RON_MUST_USE;

#endif
