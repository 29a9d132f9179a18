/*
 * grant.c - what a grant allows. See grant.h.
 */
#include "auth/grant.h"

#include <arpa/inet.h>

#include "base/assert.h"
#include "base/b3.h"
#include "base/ulid.h"

/* Identity. */

static bool is_kid_character(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

bool auth_kid_valid(struct ron_slice kid)
{
    if (kid.size == 0 || kid.size > AUTH_KID_SIZE_MAX)
        return false;
    for (size_t i = 0; i < kid.size; i++) {
        if (!is_kid_character(kid.data[i]))
            return false;
    }
    return true;
}

bool auth_identifier_split(struct ron_slice identifier, size_t *ret_kid_size)
{
    const size_t ulid_size = RON_ULID_TEXT_SIZE - 1;
    struct ron_ulid ulid;
    size_t kid_size;

    if (identifier.size < 1 + 1 + ulid_size)
        return false;
    kid_size = identifier.size - 1 - ulid_size;
    if (identifier.data[kid_size] != '.' ||
        !auth_kid_valid(ron_slice_of(identifier.data, kid_size)) ||
        ron_ulid_parse(ron_slice_of(identifier.data + kid_size + 1, ulid_size), &ulid, NULL) !=
            RON_ERR_OK)
        return false;
    *ret_kid_size = kid_size;
    return true;
}

void auth_grant_begin(struct auth_grant *grant, struct ron_slice identifier)
{
    struct ron_b3 hash = ron_b3(identifier.data, identifier.size);
    size_t kid_size = 0;
    bool valid = auth_identifier_split(identifier, &kid_size);

    RON_ASSERT(valid);
    RON_ASSERT(identifier.size <= sizeof(grant->ref));
    memset(grant, 0, sizeof(*grant));
    grant->scopes = AUTH_SCOPES_ALL;
    grant->kid_size = (uint8_t)kid_size;
    grant->ref_size = (uint8_t)identifier.size;
    memcpy(grant->ref, identifier.data, identifier.size);
    memcpy(grant->capability, hash.bytes, sizeof(grant->capability));
}

static void copy_pattern(const struct auth_pattern *pattern, struct auth_pattern *ret_copy)
{
    RON_ASSERT(pattern->size <= AUTH_PATTERN_SIZE_MAX);
    ret_copy->size = pattern->size;
    ret_copy->glob = pattern->glob;
    if (pattern->size > 0)
        memcpy(ret_copy->text, pattern->text, pattern->size);
}

void auth_grant_copy(const struct auth_grant *grant, struct auth_grant *ret_copy)
{
    memcpy(ret_copy, grant, offsetof(struct auth_grant, account));
    copy_pattern(&grant->account, &ret_copy->account);
    copy_pattern(&grant->path, &ret_copy->path);
}
_Static_assert(offsetof(struct auth_grant, path) ==
                   offsetof(struct auth_grant, account) + sizeof(struct auth_pattern),
               "nothing lies between the patterns");
_Static_assert(sizeof(struct auth_grant) - offsetof(struct auth_grant, path) -
                       sizeof(struct auth_pattern) <
                   _Alignof(struct auth_grant),
               "nor behind them");

/* Patterns and networks. */

bool auth_pattern_covers(const struct auth_pattern *pattern, struct ron_slice name)
{
    if (pattern->glob ? name.size < pattern->size : name.size != pattern->size)
        return false;
    return pattern->size == 0 || memcmp(pattern->text, name.data, pattern->size) == 0;
}

bool auth_ip_covers(const struct auth_ip *network, const struct auth_ip *address)
{
    size_t whole = network->prefix / 8;
    unsigned rest = network->prefix % 8;

    RON_ASSERT(network->prefix <= 128);
    if (network->family == AUTH_IP_NONE || network->family != address->family)
        return false;
    if (memcmp(network->bytes, address->bytes, whole) != 0)
        return false;
    return rest == 0 || (network->bytes[whole] ^ address->bytes[whole]) >> (8 - rest) == 0;
}

bool auth_ip_parse(struct ron_slice text, struct auth_ip *ret_ip)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    char copy[INET6_ADDRSTRLEN];
    struct auth_ip ip = {0};

    if (text.size == 0 || text.size >= sizeof(copy) || memchr(text.data, '\0', text.size) != NULL)
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    if (inet_pton(AF_INET, copy, ip.bytes) == 1) {
        ip.family = AUTH_IP_V4;
        ip.prefix = 32;
    } else if (inet_pton(AF_INET6, copy, ip.bytes) == 1) {
        ip.family = AUTH_IP_V6;
        ip.prefix = 128;
    } else {
        return false;
    }
    if (ip.family == AUTH_IP_V6 && memcmp(ip.bytes, mapped, sizeof(mapped)) == 0) {
        memmove(ip.bytes, ip.bytes + sizeof(mapped), 4);
        memset(ip.bytes + 4, 0, sizeof(ip.bytes) - 4);
        ip.family = AUTH_IP_V4;
        ip.prefix = 32;
    }
    *ret_ip = ip;
    return true;
}

/* Before the body. */

/* A path that an intermediary could read as another one is covered by no caveat. */
static bool path_is_plain(struct ron_slice path)
{
    if (path.size == 0 || path.data[0] != '/')
        return false;
    for (size_t i = 0; i < path.size; i++) {
        uint8_t c = path.data[i];

        if (c <= 0x20 || c > 0x7e || c == '%' || c == '?' || c == '#' || c == '\\')
            return false;
        if (c == '/' && i + 1 < path.size && (path.data[i + 1] == '/' || path.data[i + 1] == '.'))
            return false;
    }
    return true;
}

static enum ron_err check_time(const struct auth_grant *grant, uint64_t now_ms,
                               struct ron_errinfo *reterr)
{
    if (auth_grant_has(grant, AUTH_CAVEAT_BEFORE) && now_ms >= grant->before_ms)
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "token: it has expired");
    if (auth_grant_has(grant, AUTH_CAVEAT_AFTER) && now_ms < grant->after_ms)
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "token: it is not valid yet");
    return RON_ERR_OK;
}

enum ron_err auth_grant_admit(const struct auth_grant *grant, const struct auth_head *head,
                              struct ron_errinfo *reterr)
{
    enum ron_err err = check_time(grant, head->now_ms, reterr);

    RON_ASSERT((unsigned)head->role < AUTH_AUDIENCE__MAX);
    RON_ASSERT((unsigned)head->scope < AUTH_SCOPE__MAX);
    if (err != RON_ERR_OK)
        return err;
    if (grant->is_void)
        return ron_fail(reterr, RON_ERR_FORBIDDEN,
                        "the capability allows nothing: two of its caveats exclude each other");
    if (auth_grant_has(grant, AUTH_CAVEAT_AUD) && grant->aud != head->role)
        return ron_fail(reterr, RON_ERR_FORBIDDEN, "the capability is not for role %s",
                        auth_role_name(head->role));
    if ((grant->scopes & AUTH_SCOPE_BIT(head->scope)) == 0)
        return ron_fail(reterr, RON_ERR_FORBIDDEN, "the capability lacks scope %s",
                        auth_scope_name(head->scope));
    if (auth_grant_has(grant, AUTH_CAVEAT_METHOD) &&
        !ron_slice_equal(head->method, ron_slice_of(grant->method, grant->method_size)))
        return ron_fail(reterr, RON_ERR_FORBIDDEN, "the capability does not allow this method");
    if (auth_grant_has(grant, AUTH_CAVEAT_PATH) &&
        (!path_is_plain(head->path) || !auth_pattern_covers(&grant->path, head->path)))
        return ron_fail(reterr, RON_ERR_FORBIDDEN, "the capability does not cover this path");
    if (auth_grant_has(grant, AUTH_CAVEAT_IP) && !auth_ip_covers(&grant->ip, &head->peer))
        return ron_fail(reterr, RON_ERR_FORBIDDEN, "the capability does not cover this address");
    return RON_ERR_OK;
}

/* After the body. */

static bool begins_with(struct ron_slice text, struct ron_slice start)
{
    return text.size >= start.size && memcmp(text.data, start.data, start.size) == 0;
}

bool auth_account_reserved(struct ron_slice account)
{
    return begins_with(account, RON_SLICE("sys/")) || begins_with(account, RON_SLICE("pool/"));
}

bool auth_grant_names_reserved(const struct auth_grant *grant, struct ron_slice account)
{
    return auth_grant_has(grant, AUTH_CAVEAT_ACCOUNT) && !grant->is_void &&
           auth_account_reserved(ron_slice_of(grant->account.text, grant->account.size)) &&
           auth_pattern_covers(&grant->account, account);
}

static enum ron_err check_account(const struct auth_grant *grant, const struct auth_use *use,
                                  struct ron_errinfo *reterr)
{
    if (!auth_grant_has(grant, AUTH_CAVEAT_ACCOUNT)) {
        if (!ron_u128_is_zero(grant->tenant))
            return ron_fail(reterr, RON_ERR_FORBIDDEN,
                            "the capability names a tenant and no account");
    } else if (!auth_pattern_covers(&grant->account, use->account)) {
        return ron_fail(reterr, RON_ERR_FORBIDDEN, "the capability does not cover the account");
    }
    if (use->is_debit && auth_account_reserved(use->account) &&
        !auth_grant_names_reserved(grant, use->account))
        return ron_fail(reterr, RON_ERR_FORBIDDEN,
                        "the capability does not name the reserved account");
    return RON_ERR_OK;
}

enum ron_err auth_grant_cover(const struct auth_grant *grant, const struct auth_use *use,
                              struct ron_errinfo *reterr)
{
    if (grant->is_void)
        return ron_fail(reterr, RON_ERR_FORBIDDEN,
                        "the capability allows nothing: two of its caveats exclude each other");
    if (use->account.size > 0) {
        enum ron_err err = check_account(grant, use, reterr);

        if (err != RON_ERR_OK)
            return err;
    }
    if (use->asset.size > 0 && auth_grant_has(grant, AUTH_CAVEAT_ASSET) &&
        !ron_slice_equal(use->asset, ron_slice_of(grant->asset, grant->asset_size)))
        return ron_fail(reterr, RON_ERR_FORBIDDEN, "the capability is for another asset");
    if (auth_grant_has(grant, AUTH_CAVEAT_MAX_AMOUNT) &&
        ron_u128_compare(use->amount, grant->max_amount) > 0)
        return ron_fail(reterr, RON_ERR_LIMIT_EXCEEDED,
                        "the amount is above the capability's max_amount");
    return RON_ERR_OK;
}
