/*
 * cache.c - set-associative, least recently used of a set goes first. See cache.h.
 */
#include "auth/cache.h"

#include "base/assert.h"
#include "base/mem.h"

#define CACHE_MAGIC 0x61637463u

struct cache_key {
    struct ron_sha256 halves[2];
    uint64_t epoch;
    uint64_t size; /* 0 in an empty slot */
};

struct slot {
    struct cache_key key;
    uint64_t used; /* the cache's clock at the last use */
};

struct auth_cache {
    uint32_t magic;
    uint32_t sets_mask;
    uint64_t clock; /* one tick per look-up */
    uint64_t hits_count;
    uint64_t misses_count;
    struct slot *slots;        /* sets of AUTH_CACHE_WAYS */
    struct auth_grant *grants; /* beside them, so that a search stays in few lines */
};

enum ron_err auth_cache_new(uint32_t slots_count, struct auth_cache **ret_cache,
                            struct ron_errinfo *reterr)
{
    struct auth_cache *cache;

    RON_ASSERT(slots_count >= AUTH_CACHE_WAYS);
    RON_ASSERT(slots_count <= AUTH_CACHE_SLOTS_MAX);
    RON_ASSERT((slots_count & (slots_count - 1)) == 0);
    cache = ron_mem_alloc(sizeof(*cache));
    if (cache == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "token cache");
    cache->magic = CACHE_MAGIC;
    cache->sets_mask = slots_count / AUTH_CACHE_WAYS - 1;
    cache->slots = ron_mem_alloc_array(slots_count, sizeof(cache->slots[0]));
    cache->grants = ron_mem_alloc_array(slots_count, sizeof(cache->grants[0]));
    if (cache->slots == NULL || cache->grants == NULL) {
        (void)auth_cache_free(cache);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "token cache of %u slots", slots_count);
    }
    *ret_cache = cache;
    return RON_ERR_OK;
}

struct auth_cache *auth_cache_free(struct auth_cache *cache)
{
    if (cache == NULL)
        return NULL;
    RON_ASSERT(cache->magic == CACHE_MAGIC);
    cache->slots = ron_mem_free(cache->slots);
    cache->grants = ron_mem_free(cache->grants);
    cache->magic = 0;
    return ron_mem_free(cache);
}

/* The halves overlap by one character where the size is odd; so both have one size. */
static void make_key(struct ron_slice token, uint64_t epoch, struct cache_key *ret_key)
{
    size_t half = token.size - token.size / 2;

    ron_sha256_two((const uint8_t *const[2]){token.data, token.data + token.size - half}, half,
                   ret_key->halves);
    ret_key->epoch = epoch;
    ret_key->size = token.size;
}

/* Plain comparison: how far a digest of a guess agrees with that of a token tells nothing about the
 * token, since nobody can steer a digest. */
static bool keys_equal(const struct cache_key *a, const struct cache_key *b)
{
    return a->size == b->size && a->epoch == b->epoch &&
           memcmp(a->halves, b->halves, sizeof(a->halves)) == 0;
}

/* Empty slots have the oldest use of all. */
static size_t oldest_of(const struct auth_cache *cache, size_t first)
{
    size_t oldest = first;

    for (size_t i = first + 1; i < first + AUTH_CACHE_WAYS; i++) {
        if (cache->slots[i].used < cache->slots[oldest].used)
            oldest = i;
    }
    return oldest;
}

enum ron_err auth_cache_verify(struct auth_cache *cache, const struct auth_keyring *keyring,
                               struct ron_slice token, const struct auth_grant **ret_grant,
                               struct ron_errinfo *reterr)
{
    struct auth_grant grant;
    struct cache_key key;
    enum ron_err err;
    size_t first;
    size_t place;

    RON_ASSERT(cache->magic == CACHE_MAGIC);
    if (token.size == 0 || token.size >= AUTH_TOKEN_TEXT_SIZE)
        return auth_verify(keyring, token, &grant, reterr); /* says why; never succeeds */
    make_key(token, auth_keyring_epoch(keyring), &key);
    first = (ron_load_le32(key.halves[1].bytes) & cache->sets_mask) * (size_t)AUTH_CACHE_WAYS;
    cache->clock++;
    for (size_t i = first; i < first + AUTH_CACHE_WAYS; i++) {
        if (keys_equal(&cache->slots[i].key, &key)) {
            cache->slots[i].used = cache->clock;
            cache->hits_count++;
            *ret_grant = &cache->grants[i];
            return RON_ERR_OK;
        }
    }
    cache->misses_count++;
    err = auth_verify(keyring, token, &grant, reterr);
    if (err != RON_ERR_OK) /* pushes nobody out */
        return err;
    place = oldest_of(cache, first);
    cache->grants[place] = grant;
    cache->slots[place].key = key;
    cache->slots[place].used = cache->clock;
    *ret_grant = &cache->grants[place];
    return RON_ERR_OK;
}

uint64_t auth_cache_hits(const struct auth_cache *cache)
{
    return cache->hits_count;
}

uint64_t auth_cache_misses(const struct auth_cache *cache)
{
    return cache->misses_count;
}
