/*
 * scope.c - look-ups in the tables of roles and scopes. See scope.h.
 */
#include "auth/scope.h"

#include "base/assert.h"
#include "base/nearest.h"

static const char *const role_names[] = {
#define X(name, text) text,
    AUTH_ROLE_MAP(X)
#undef X
        "server",
};
_Static_assert(RON_ARRAY_COUNT(role_names) == AUTH_AUDIENCE__MAX, "one name per audience");

static const char *const scope_names[] = {
#define X(name, text) text,
    AUTH_SCOPE_MAP(X)
#undef X
};
_Static_assert(RON_ARRAY_COUNT(scope_names) == AUTH_SCOPE__MAX, "one name per scope");
/* Every request asks for a role and a scope by name: most names differ in size already. */
static const uint8_t role_sizes[] = {
#define X(name, text) sizeof(text) - 1,
    AUTH_ROLE_MAP(X)
#undef X
            sizeof("server") -
        1,
};
static const uint8_t scope_sizes[] = {
#define X(name, text) sizeof(text) - 1,
    AUTH_SCOPE_MAP(X)
#undef X
};

#define X(name, text) +sizeof(text)
_Static_assert(0 AUTH_SCOPE_MAP(X) <= AUTH_SCOPES_TEXT_SIZE, "all scopes can be printed");
#undef X

const char *auth_role_name(enum auth_role role)
{
    RON_ASSERT((unsigned)role < AUTH_AUDIENCE__MAX);
    return role_names[role];
}

const char *auth_scope_name(enum auth_scope scope)
{
    RON_ASSERT((unsigned)scope < AUTH_SCOPE__MAX);
    return scope_names[scope];
}

/* The index of name in a table, or count. */
static size_t find(struct ron_slice name, const char *const *names, const uint8_t *sizes,
                   size_t count)
{
    size_t i = 0;

    /* A route's name is a literal, and linking makes those of one text one, as a rule. */
    while (i < count && (const char *)name.data != names[i])
        i++;
    if (i < count && name.size == sizes[i])
        return i;
    for (i = 0; i < count && !ron_slice_equal(name, ron_slice_of(names[i], sizes[i]));)
        i++;
    return i;
}

bool auth_role_find(struct ron_slice name, enum auth_role *ret_role)
{
    size_t i = find(name, role_names, role_sizes, AUTH_AUDIENCE__MAX);

    if (i == AUTH_AUDIENCE__MAX)
        return false;
    *ret_role = (enum auth_role)i;
    return true;
}

bool auth_scope_find(struct ron_slice name, enum auth_scope *ret_scope)
{
    size_t i = find(name, scope_names, scope_sizes, AUTH_SCOPE__MAX);

    if (i == AUTH_SCOPE__MAX)
        return false;
    *ret_scope = (enum auth_scope)i;
    return true;
}

enum auth_role auth_scope_role(enum auth_scope scope)
{
    const char *name = auth_scope_name(scope);
    enum auth_role role = AUTH_AUDIENCE__MAX;
    const char *dot = strchr(name, '.');

    RON_ASSERT(dot != NULL);
    bool known = auth_role_find(ron_slice_of(name, (size_t)(dot - name)), &role);
    RON_ASSERT(known);
    return role;
}

const char *auth_scope_nearest(struct ron_slice name)
{
    return ron_nearest_name(name, scope_names, sizeof(scope_names[0]), AUTH_SCOPE__MAX);
}

bool auth_scopes_parse(struct ron_slice text, uint64_t *ret_scopes)
{
    uint64_t scopes = 0;
    size_t start = 0;

    for (size_t i = 0; i <= text.size; i++) {
        enum auth_scope scope;

        if (i < text.size && text.data[i] != ',')
            continue;
        if (!auth_scope_find(ron_slice_of(text.data + start, i - start), &scope) ||
            (scopes & AUTH_SCOPE_BIT(scope)) != 0)
            return false;
        scopes |= AUTH_SCOPE_BIT(scope);
        start = i + 1;
    }
    *ret_scopes = scopes;
    return true;
}

size_t auth_scopes_print(uint64_t scopes, char text[static AUTH_SCOPES_TEXT_SIZE])
{
    size_t at = 0;

    RON_ASSERT((scopes & ~AUTH_SCOPES_ALL) == 0);
    for (unsigned i = 0; i < AUTH_SCOPE__MAX; i++) {
        size_t size = strlen(scope_names[i]);

        if ((scopes & AUTH_SCOPE_BIT(i)) == 0)
            continue;
        if (at > 0)
            text[at++] = ',';
        RON_ASSERT(at + size < AUTH_SCOPES_TEXT_SIZE);
        memcpy(text + at, scope_names[i], size);
        at += size;
    }
    text[at] = '\0';
    return at;
}
