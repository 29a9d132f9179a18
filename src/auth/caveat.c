/*
 * caveat.c - caveats narrow a grant. See caveat.h.
 *
 * Each kind has one function: it reads the value, and either sets the member (first of its kind) or
 * intersects with what is there. It answers false when the value is not of its grammar.
 */
#include "auth/caveat.h"

#include "base/assert.h"
#include "base/decimal.h"
#include "base/rfc3339.h"
#include "rt/bucket.h"

static struct ron_u128 u128_min(struct ron_u128 a, struct ron_u128 b)
{
    return ron_u128_compare(a, b) < 0 ? a : b;
}

static bool narrow_tenant(struct auth_grant *grant, struct ron_slice value)
{
    struct ron_u128 tenant;

    if (ron_decimal_parse_u128(value, &tenant, NULL) != RON_ERR_OK)
        return false;
    if (!auth_grant_has(grant, AUTH_CAVEAT_TENANT))
        grant->tenant = tenant;
    else if (ron_u128_compare(tenant, grant->tenant) != 0)
        grant->is_void = true;
    return true;
}

static bool narrow_scope(struct auth_grant *grant, struct ron_slice value)
{
    uint64_t scopes;

    if (!auth_scopes_parse(value, &scopes))
        return false;
    grant->scopes &= scopes;
    return true;
}

static bool narrow_aud(struct auth_grant *grant, struct ron_slice value)
{
    enum auth_role aud;

    if (!auth_role_find(value, &aud))
        return false;
    if (auth_grant_has(grant, AUTH_CAVEAT_AUD) && aud != grant->aud)
        grant->is_void = true;
    grant->aud = aud;
    return true;
}

/* Two patterns: the one that lies within the other. */
static void narrow_pattern(struct auth_grant *grant, enum auth_caveat kind,
                           struct auth_pattern *mine, const struct auth_pattern *other)
{
    if (!auth_grant_has(grant, kind)) {
        *mine = *other;
        return;
    }
    /* A glob covers the beginnings of another glob exactly if it covers all that it matches. */
    if (auth_pattern_covers(mine, ron_slice_of(other->text, other->size)) &&
        (mine->glob || !other->glob))
        *mine = *other;
    else if (!(auth_pattern_covers(other, ron_slice_of(mine->text, mine->size)) &&
               (other->glob || !mine->glob)))
        grant->is_void = true;
}

typedef bool character_fn(uint8_t c);

static bool is_account_character(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == ':' ||
           c == '/' || c == '_' || c == '-';
}

static bool is_path_character(uint8_t c)
{
    return is_account_character(c) || c == '.' || c == '~';
}

static bool parse_pattern(struct ron_slice value, character_fn *is_character,
                          struct auth_pattern *ret_pattern)
{
    bool glob = value.size > 0 && value.data[value.size - 1] == '*';

    if (glob)
        value.size--;
    if (value.size > AUTH_PATTERN_SIZE_MAX || (value.size == 0 && !glob))
        return false;
    for (size_t i = 0; i < value.size; i++) {
        if (!is_character(value.data[i]))
            return false;
    }
    ret_pattern->glob = glob;
    ret_pattern->size = (uint16_t)value.size;
    memcpy(ret_pattern->text, value.data, value.size);
    return true;
}

static bool narrow_account(struct auth_grant *grant, struct ron_slice value)
{
    struct auth_pattern pattern = {0};

    if (!parse_pattern(value, is_account_character, &pattern))
        return false;
    narrow_pattern(grant, AUTH_CAVEAT_ACCOUNT, &grant->account, &pattern);
    return true;
}

static bool narrow_path(struct auth_grant *grant, struct ron_slice value)
{
    struct auth_pattern pattern = {0};

    if (value.size == 0 || value.data[0] != '/' ||
        !parse_pattern(value, is_path_character, &pattern))
        return false;
    narrow_pattern(grant, AUTH_CAVEAT_PATH, &grant->path, &pattern);
    return true;
}

static bool narrow_asset(struct auth_grant *grant, struct ron_slice value)
{
    if (value.size == 0 || value.size > sizeof(grant->asset))
        return false;
    for (size_t i = 0; i < value.size; i++) {
        uint8_t c = value.data[i];
        bool letter = c >= 'a' && c <= 'z';

        if (!letter && (i == 0 || !((c >= '0' && c <= '9') || c == '_' || c == '-')))
            return false;
    }
    if (auth_grant_has(grant, AUTH_CAVEAT_ASSET) &&
        !ron_slice_equal(value, ron_slice_of(grant->asset, grant->asset_size)))
        grant->is_void = true;
    grant->asset_size = (uint8_t)value.size;
    memcpy(grant->asset, value.data, value.size);
    return true;
}

static bool narrow_ceiling(struct auth_grant *grant, enum auth_caveat kind,
                           struct ron_u128 *ceiling, struct ron_slice value)
{
    struct ron_u128 parsed;

    if (ron_decimal_parse_u128(value, &parsed, NULL) != RON_ERR_OK)
        return false;
    *ceiling = auth_grant_has(grant, kind) ? u128_min(*ceiling, parsed) : parsed;
    return true;
}

static bool narrow_max_amount(struct auth_grant *grant, struct ron_slice value)
{
    return narrow_ceiling(grant, AUTH_CAVEAT_MAX_AMOUNT, &grant->max_amount, value);
}

static bool narrow_max_daily(struct auth_grant *grant, struct ron_slice value)
{
    return narrow_ceiling(grant, AUTH_CAVEAT_MAX_DAILY, &grant->max_daily, value);
}

static bool narrow_method(struct auth_grant *grant, struct ron_slice value)
{
    if (value.size == 0 || value.size > sizeof(grant->method))
        return false;
    for (size_t i = 0; i < value.size; i++) {
        if (value.data[i] < 'A' || value.data[i] > 'Z')
            return false;
    }
    if (auth_grant_has(grant, AUTH_CAVEAT_METHOD) &&
        !ron_slice_equal(value, ron_slice_of(grant->method, grant->method_size)))
        grant->is_void = true;
    grant->method_size = (uint8_t)value.size;
    memcpy(grant->method, value.data, value.size);
    return true;
}

/* Is everything below the prefix zero? 10.1.2.3/8 says two things at once. */
static bool host_bits_are_zero(const struct auth_ip *network)
{
    size_t size = network->family == AUTH_IP_V4 ? 4 : 16;

    for (size_t bit = network->prefix; bit < size * 8; bit++) {
        if ((network->bytes[bit / 8] >> (7 - bit % 8) & 1) != 0)
            return false;
    }
    return true;
}

static bool narrow_ip(struct auth_grant *grant, struct ron_slice value)
{
    const uint8_t *slash = value.size == 0 ? NULL : memchr(value.data, '/', value.size);
    struct auth_ip network = {0};
    uint64_t prefix;

    if (slash == NULL)
        return false;
    struct ron_slice address = ron_slice_of(value.data, (size_t)(slash - value.data));
    struct ron_slice digits = ron_slice_of(slash + 1, value.size - address.size - 1);
    bool colon = address.size > 0 && memchr(address.data, ':', address.size) != NULL;

    if (!auth_ip_parse(address, &network) || (colon && network.family == AUTH_IP_V4) ||
        ron_decimal_parse_u64(digits, &prefix, NULL) != RON_ERR_OK || prefix > network.prefix)
        return false;
    network.prefix = (uint8_t)prefix;
    if (!host_bits_are_zero(&network))
        return false;
    if (!auth_grant_has(grant, AUTH_CAVEAT_IP))
        grant->ip = network;
    else if (network.prefix >= grant->ip.prefix && auth_ip_covers(&grant->ip, &network))
        grant->ip = network;
    else if (!(grant->ip.prefix >= network.prefix && auth_ip_covers(&network, &grant->ip)))
        grant->is_void = true;
    return true;
}

static bool narrow_before(struct auth_grant *grant, struct ron_slice value)
{
    uint64_t time_ms;

    if (ron_rfc3339_parse(value, &time_ms, NULL) != RON_ERR_OK)
        return false;
    if (!auth_grant_has(grant, AUTH_CAVEAT_BEFORE) || time_ms < grant->before_ms)
        grant->before_ms = time_ms;
    return true;
}

static bool narrow_after(struct auth_grant *grant, struct ron_slice value)
{
    uint64_t time_ms;

    if (ron_rfc3339_parse(value, &time_ms, NULL) != RON_ERR_OK)
        return false;
    if (!auth_grant_has(grant, AUTH_CAVEAT_AFTER) || time_ms > grant->after_ms)
        grant->after_ms = time_ms;
    return true;
}

static bool narrow_rate(struct auth_grant *grant, struct ron_slice value)
{
    const uint8_t *slash = value.size == 0 ? NULL : memchr(value.data, '/', value.size);
    uint64_t per_s;
    uint64_t burst;

    if (slash == NULL)
        return false;
    size_t first = (size_t)(slash - value.data);
    if (ron_decimal_parse_u64(ron_slice_of(value.data, first), &per_s, NULL) != RON_ERR_OK ||
        ron_decimal_parse_u64(ron_slice_of(slash + 1, value.size - first - 1), &burst, NULL) !=
            RON_ERR_OK)
        return false;
    if (per_s == 0 || per_s > RT_BUCKET_RATE_MAX || burst == 0 || burst > RT_BUCKET_BURST_MAX)
        return false;
    if (!auth_grant_has(grant, AUTH_CAVEAT_RATE) || per_s < grant->rate_per_s)
        grant->rate_per_s = (uint32_t)per_s;
    if (!auth_grant_has(grant, AUTH_CAVEAT_RATE) || burst < grant->rate_burst)
        grant->rate_burst = (uint32_t)burst;
    return true;
}

typedef bool narrow_fn(struct auth_grant *grant, struct ron_slice value);

static const struct kind {
    const char *name;
    narrow_fn *narrow;
} kinds[] = {
    [AUTH_CAVEAT_TENANT] = {"tenant", narrow_tenant},
    [AUTH_CAVEAT_SCOPE] = {"scope", narrow_scope},
    [AUTH_CAVEAT_AUD] = {"aud", narrow_aud},
    [AUTH_CAVEAT_ACCOUNT] = {"account", narrow_account},
    [AUTH_CAVEAT_ASSET] = {"asset", narrow_asset},
    [AUTH_CAVEAT_MAX_AMOUNT] = {"max_amount", narrow_max_amount},
    [AUTH_CAVEAT_MAX_DAILY] = {"max_daily", narrow_max_daily},
    [AUTH_CAVEAT_METHOD] = {"method", narrow_method},
    [AUTH_CAVEAT_PATH] = {"path", narrow_path},
    [AUTH_CAVEAT_IP] = {"ip", narrow_ip},
    [AUTH_CAVEAT_BEFORE] = {"before", narrow_before},
    [AUTH_CAVEAT_AFTER] = {"after", narrow_after},
    [AUTH_CAVEAT_RATE] = {"rate", narrow_rate},
};
_Static_assert(RON_ARRAY_COUNT(kinds) == AUTH_CAVEAT__MAX, "one row per kind");

const char *auth_caveat_name(enum auth_caveat kind)
{
    RON_ASSERT((unsigned)kind < AUTH_CAVEAT__MAX);
    return kinds[kind].name;
}

enum ron_err auth_caveat_apply(struct auth_grant *grant, struct ron_slice caveat,
                               struct ron_errinfo *reterr)
{
    for (size_t i = 0; i < RON_ARRAY_COUNT(kinds); i++) {
        size_t name_size = strlen(kinds[i].name);
        size_t value_at = name_size + 3;

        if (caveat.size < value_at || memcmp(caveat.data, kinds[i].name, name_size) != 0 ||
            memcmp(caveat.data + name_size, " = ", 3) != 0)
            continue;
        if (!kinds[i].narrow(grant, ron_slice_of(caveat.data + value_at, caveat.size - value_at)))
            return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "a %s caveat that is ill-formed",
                            kinds[i].name);
        grant->present |= 1u << i;
        return RON_ERR_OK;
    }
    return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "a caveat of a kind not known here");
}

enum ron_err auth_caveats_apply(const struct auth_macaroon *macaroon, struct auth_grant *ret_grant,
                                struct ron_errinfo *reterr)
{
    struct auth_grant grant;
    size_t kid_size;

    if (!auth_identifier_split(macaroon->identifier, &kid_size))
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "token: its identifier is not KID.ULID");
    auth_grant_begin(&grant, macaroon->identifier);
    for (uint32_t i = 0; i < macaroon->caveats_count; i++) {
        enum ron_err err = auth_caveat_apply(&grant, macaroon->caveats[i], reterr);

        if (err != RON_ERR_OK)
            return ron_wrap(reterr, err, "token: caveat %u", i + 1);
    }
    *ret_grant = grant;
    return RON_ERR_OK;
}
