/*
 * access.c - who may call a route. See access.h.
 */
#include "app/access.h"

#include "base/assert.h"
#include "base/mem.h"
#include "rt/lock.h"
#include "rt/slot.h"

/* What a route asks for, by number: its names were looked up for the request before. */
struct wanted {
    const struct io_route *route;
    enum auth_role role;
    enum auth_scope scope;
};

struct stripe {
    struct rt_lock lock;
    struct wanted wanted RON_GUARDED_BY(cfg_snapshot);
    struct auth_cache *cache RON_GUARDED_BY(cfg_snapshot);
    const struct auth_keyring *keyring RON_GUARDED_BY(cfg_snapshot);
    uint64_t hits_before, misses_before; /* of caches that were replaced; under the lock */
};

struct app_access {
    struct auth_keyring *keyring; /* what all stripes point to, but during a commit */
    uint32_t stripes_count;
    struct stripe stripes[APP_ACCESS_STRIPES_MAX];
};

struct app_access_stage {
    struct auth_keyring *keyring;
    uint32_t caches_count;
    struct auth_cache *caches[APP_ACCESS_STRIPES_MAX];
};

static void stripe_lock(struct stripe *stripe) RON_LOCKS(cfg_snapshot)
{
    rt_lock_take(&stripe->lock);
}

static void stripe_unlock(struct stripe *stripe) RON_UNLOCKS(cfg_snapshot)
{
    rt_lock_drop(&stripe->lock);
}

/* ---- Keyrings ---- */

struct app_access_stage *app_access_stage_free(struct app_access_stage *stage)
{
    if (stage == NULL)
        return NULL;
    for (uint32_t i = 0; i < stage->caches_count; i++)
        (void)auth_cache_free(stage->caches[i]);
    (void)auth_keyring_free(stage->keyring);
    return ron_mem_free(stage);
}

enum ron_err app_access_prepare(const struct app_access *access, struct auth_keyring *keyring,
                                struct app_access_stage **ret_stage, struct ron_errinfo *reterr)
{
    struct app_access_stage *stage = ron_mem_alloc(sizeof(*stage));
    enum ron_err err = RON_ERR_OK;

    if (stage == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "access: a keyring's caches");
    /* New caches: the next keyring may be another one with an epoch that was used already. */
    while (err == RON_ERR_OK && stage->caches_count < access->stripes_count) {
        err = auth_cache_new(APP_ACCESS_SLOTS, &stage->caches[stage->caches_count], reterr);
        if (err == RON_ERR_OK)
            stage->caches_count++;
    }
    if (err != RON_ERR_OK) {
        (void)app_access_stage_free(stage);
        return err;
    }
    stage->keyring = keyring;
    *ret_stage = stage;
    return RON_ERR_OK;
}

static void swap_stripe(struct stripe *stripe, struct auth_cache **cache,
                        const struct auth_keyring *keyring)
{
    struct auth_cache *before;

    stripe_lock(stripe);
    before = stripe->cache;
    if (before != NULL) {
        stripe->hits_before += auth_cache_hits(before);
        stripe->misses_before += auth_cache_misses(before);
    }
    stripe->cache = *cache;
    stripe->keyring = keyring;
    stripe_unlock(stripe);
    *cache = before;
}

void app_access_commit(struct app_access *access, struct app_access_stage *stage)
{
    struct auth_keyring *before = access->keyring;

    RON_ASSERT(stage->caches_count == access->stripes_count);
    for (uint32_t i = 0; i < access->stripes_count; i++)
        swap_stripe(&access->stripes[i], &stage->caches[i], stage->keyring);
    access->keyring = stage->keyring;
    stage->keyring = before;
    (void)app_access_stage_free(stage);
}

enum ron_err app_access_new(struct auth_keyring *keyring, uint32_t stripes_count,
                            struct app_access **ret_access, struct ron_errinfo *reterr)
{
    struct app_access *access = ron_mem_alloc(sizeof(*access));
    struct app_access_stage *stage;
    enum ron_err err;

    RON_ASSERT(stripes_count > 0);
    if (access == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "access");
    access->stripes_count = stripes_count < APP_ACCESS_STRIPES_MAX ? stripes_count
                                                                   : APP_ACCESS_STRIPES_MAX;
    err = app_access_prepare(access, keyring, &stage, reterr);
    if (err != RON_ERR_OK) {
        (void)ron_mem_free(access);
        return err;
    }
    for (uint32_t i = 0; i < access->stripes_count; i++)
        rt_lock_init(&access->stripes[i].lock, "access", RON_RANK_cfg_snapshot);
    app_access_commit(access, stage);
    *ret_access = access;
    return RON_ERR_OK;
}

struct app_access *app_access_free(struct app_access *access)
{
    if (access == NULL)
        return NULL;
    for (uint32_t i = 0; i < access->stripes_count; i++) {
        struct auth_cache *cache = NULL;

        swap_stripe(&access->stripes[i], &cache, NULL);
        (void)auth_cache_free(cache);
        rt_lock_fini(&access->stripes[i].lock);
    }
    (void)auth_keyring_free(access->keyring);
    return ron_mem_free(access);
}

/* ---- Requests ---- */

/* The token of `Authorization: Bearer TOKEN`; the scheme in any case. */
static enum ron_err find_token(const struct io_request *request, struct ron_slice *ret_token,
                               struct ron_errinfo *reterr)
{
    static const char scheme[] = "bearer";
    const struct http_field *field;
    struct ron_slice value;
    size_t at = sizeof(scheme) - 1;
    size_t count;

    if (request->frame != NULL) { /* OAP/1: that of the connection's last START */
        if (request->capability.size == 0)
            return ron_fail(reterr, RON_ERR_UNAUTHORIZED,
                            "a capability is needed: a frame with START");
        *ret_token = request->capability;
        return RON_ERR_OK;
    }
    field = http_head_find_counted(request->head, "authorization", &count);
    if (field == NULL)
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED,
                        "a capability is needed: Authorization: Bearer TOKEN");
    if (count > 1)
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "more than one capability");
    value = field->value;
    if (value.size <= at || value.data[at] != ' ' ||
        !http_text_is(ron_slice_of(value.data, at), scheme))
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "Authorization is not Bearer TOKEN");
    while (at < value.size && value.data[at] == ' ')
        at++;
    *ret_token = ron_slice_of(value.data + at, value.size - at);
    return RON_ERR_OK;
}

static struct auth_ip peer_ip(const struct io_peer *peer)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    struct auth_ip ip = {.family = AUTH_IP_NONE};

    if (peer->local_socket)
        return ip;
    if (memcmp(peer->address, mapped, sizeof(mapped)) == 0) {
        ip.family = AUTH_IP_V4;
        ip.prefix = 32;
        memcpy(ip.bytes, peer->address + sizeof(mapped), 4);
    } else {
        ip.family = AUTH_IP_V6;
        ip.prefix = 128;
        memcpy(ip.bytes, peer->address, sizeof(ip.bytes));
    }
    return ip;
}

static struct wanted look_up(const struct io_route *route)
{
    struct wanted wanted = {.route = route};
    const bool known = auth_role_find(ron_slice_text(route->role), &wanted.role) &&
                       auth_scope_find(ron_slice_text(route->scope), &wanted.scope);

    RON_ASSERT(known); /* routes are ours */
    return wanted;
}

static enum ron_err verify(struct app_access *access, struct ron_slice token,
                           const struct io_route *route, struct wanted *ret_wanted,
                           struct auth_grant *ret_grant, struct ron_errinfo *reterr)
{
    struct stripe *stripe = &access->stripes[rt_slot() % access->stripes_count];
    const struct auth_grant *grant;
    enum ron_err err;

    stripe_lock(stripe);
    if (stripe->wanted.route != route)
        stripe->wanted = look_up(route);
    *ret_wanted = stripe->wanted;
    err = auth_cache_verify(stripe->cache, stripe->keyring, token, &grant, reterr);
    if (err == RON_ERR_OK)
        auth_grant_copy(grant, ret_grant);
    stripe_unlock(stripe);
    return err;
}

enum ron_err app_access_authorize(void *context, const struct io_request *request, void *room,
                                  struct ron_errinfo *reterr)
{
    struct auth_head head = {
        .path = request->path, .peer = {.family = AUTH_IP_NONE}, .now_ms = request->arrived_ms};
    struct auth_principal *principal = room;
    struct wanted wanted;
    struct ron_slice token;
    enum ron_err err = find_token(request, &token, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = verify(context, token, request->route, &wanted, &principal->grant, reterr);
    if (err != RON_ERR_OK)
        return err;
    head.role = wanted.role;
    head.scope = wanted.scope;
    /* Few capabilities ask for these; one that does is covered by no method and no address. */
    if (auth_grant_has(&principal->grant, AUTH_CAVEAT_METHOD))
        head.method = ron_slice_text(http_method_name(request->method));
    if (auth_grant_has(&principal->grant, AUTH_CAVEAT_IP))
        head.peer = peer_ip(request->peer);
    err = auth_grant_admit(&principal->grant, &head, reterr);
    if (err != RON_ERR_OK)
        return err;
    principal->local_socket = request->peer->local_socket;
    principal->uid = request->peer->uid;
    principal->gid = request->peer->gid;
    principal->pid = request->peer->pid;
    return RON_ERR_OK;
}
_Static_assert(sizeof(struct auth_principal) <= IO_PRINCIPAL_SIZE_MAX, "it lies in its request");

struct app_access_stats app_access_get_stats(struct app_access *access)
{
    struct app_access_stats stats = {0};

    for (uint32_t i = 0; i < access->stripes_count; i++) {
        struct stripe *stripe = &access->stripes[i];

        stripe_lock(stripe);
        stats.hits_count += stripe->hits_before + auth_cache_hits(stripe->cache);
        stats.misses_count += stripe->misses_before + auth_cache_misses(stripe->cache);
        stats.epoch = auth_keyring_epoch(stripe->keyring);
        stripe_unlock(stripe);
    }
    return stats;
}
