/*
 * scope.h - roles and scopes: every right that a token can name, in one table.
 *
 * A scope is `<role>.<verb>`. A set of them is a 64-bit word. `<role>.admin` is a scope like any
 * other: it opens the role's admin routes and implies nothing else. `server` is no role that a
 * process may be given, but the process itself: it has a scope and can be an audience.
 */
#ifndef RON_AUTH_SCOPE_H
#define RON_AUTH_SCOPE_H

#include "base/bytes.h"

/* X(name, text): the roles that a process may play. */
#define AUTH_ROLE_MAP(X)        \
    X(LEDGER, "ledger")         \
    X(WALLET, "wallet")         \
    X(ACCOUNTING, "accounting") \
    X(REWARDER, "rewarder")     \
    X(REGISTRY, "registry")

enum auth_role {
#define X(name, text) AUTH_ROLE_##name,
    AUTH_ROLE_MAP(X)
#undef X
        AUTH_ROLE__MAX,
    AUTH_ROLE_SERVER = AUTH_ROLE__MAX, /* what all roles share; has no service token */
    AUTH_AUDIENCE__MAX
};

/* X(name, text) */
#define AUTH_SCOPE_MAP(X)                         \
    X(WALLET_READ, "wallet.read")                 \
    X(WALLET_ISSUE, "wallet.issue")               \
    X(WALLET_TRANSFER, "wallet.transfer")         \
    X(WALLET_BURN, "wallet.burn")                 \
    X(WALLET_HOLD, "wallet.hold")                 \
    X(WALLET_CAPTURE, "wallet.capture")           \
    X(WALLET_RELEASE, "wallet.release")           \
    X(WALLET_ADMIN, "wallet.admin")               \
    X(LEDGER_INGEST, "ledger.ingest")             \
    X(LEDGER_MINT, "ledger.mint")                 \
    X(LEDGER_BURN, "ledger.burn")                 \
    X(LEDGER_REVERSE, "ledger.reverse")           \
    X(LEDGER_INTENT, "ledger.intent")             \
    X(LEDGER_SLICE, "ledger.slice")               \
    X(LEDGER_ANCHOR, "ledger.anchor")             \
    X(LEDGER_READ, "ledger.read")                 \
    X(LEDGER_ADMIN, "ledger.admin")               \
    X(ACCOUNTING_RECORD, "accounting.record")     \
    X(ACCOUNTING_READ, "accounting.read")         \
    X(ACCOUNTING_PROJECT, "accounting.project")   \
    X(ACCOUNTING_ADMIN, "accounting.admin")       \
    X(REWARDER_RUN, "rewarder.run")               \
    X(REWARDER_INSPECT, "rewarder.inspect")       \
    X(REWARDER_QUARANTINE, "rewarder.quarantine") \
    X(REWARDER_ADMIN, "rewarder.admin")           \
    X(REGISTRY_PROPOSE, "registry.propose")       \
    X(REGISTRY_APPROVE, "registry.approve")       \
    X(REGISTRY_COMMIT, "registry.commit")         \
    X(REGISTRY_ADMIN, "registry.admin")           \
    X(SERVER_ADMIN, "server.admin")

enum auth_scope {
#define X(name, text) AUTH_SCOPE_##name,
    AUTH_SCOPE_MAP(X)
#undef X
        AUTH_SCOPE__MAX
};
_Static_assert(AUTH_SCOPE__MAX <= 64, "a set of scopes is one word");

#define AUTH_SCOPE_BIT(scope) (UINT64_C(1) << (scope))
#define AUTH_SCOPES_ALL       (AUTH_SCOPE_BIT(AUTH_SCOPE__MAX) - 1)

enum { AUTH_SCOPES_TEXT_SIZE = 640 }; /* room for all scopes, their commas and a NUL */

/* Texts of the tables; the argument is a row. */
const char *auth_role_name(enum auth_role role);
const char *auth_scope_name(enum auth_scope scope);
enum auth_role auth_scope_role(enum auth_scope scope);

/* Exactly one of the table's texts, else false and nothing written. */
bool auth_role_find(struct ron_slice name, enum auth_role *ret_role) RON_MUST_USE;
bool auth_scope_find(struct ron_slice name, enum auth_scope *ret_scope) RON_MUST_USE;
/* The known scope that was probably meant, or NULL. */
const char *auth_scope_nearest(struct ron_slice name);

/* One or more scopes with a comma between, no spaces, none twice. */
bool auth_scopes_parse(struct ron_slice text, uint64_t *ret_scopes) RON_MUST_USE;
/* The same text again, in the table's order; empty for the empty set. Returns its length. */
size_t auth_scopes_print(uint64_t scopes, char text[static AUTH_SCOPES_TEXT_SIZE]);

#endif
