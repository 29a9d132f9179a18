/*
 * cache.c - set-associative, least recently used of a set goes first. See cache.h.
 */
#include "auth/cache.h"

#include "base/assert.h"
#include "base/mem.h"

#define CACHE_MAGIC 0x61637463u

enum {
    BLOCK_SIZE = 16,
    SECRET_SIZE = RON_SECRET_SIZE_MAX,
    TEXT_SIZE_MAX = SECRET_SIZE - BLOCK_SIZE, /* that the secret covers */
};

struct cache_key {
    unsigned __int128 sums[2];
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
    struct ron_secret secret;  /* of make_key */
    struct slot *slots;        /* sets of AUTH_CACHE_WAYS */
    struct auth_grant *grants; /* beside them, so that a search stays in few lines */
    struct auth_grant passing; /* of a text that is not remembered */
};

enum ron_err auth_cache_new(uint32_t slots_count, struct auth_cache **ret_cache,
                            struct ron_errinfo *reterr)
{
    struct auth_cache *cache;
    enum ron_err err;

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
    err = ron_secret_init_random(&cache->secret, SECRET_SIZE, reterr);
    if (err != RON_ERR_OK) {
        (void)auth_cache_free(cache);
        return err;
    }
    *ret_cache = cache;
    return RON_ERR_OK;
}

struct auth_cache *auth_cache_free(struct auth_cache *cache)
{
    if (cache == NULL)
        return NULL;
    RON_ASSERT(cache->magic == CACHE_MAGIC);
    ron_secret_fini(&cache->secret);
    cache->slots = ron_mem_free(cache->slots);
    cache->grants = ron_mem_free(cache->grants);
    cache->magic = 0;
    return ron_mem_free(cache);
}

/* Two words of text, two of the secret. */
static unsigned __int128 product(const uint8_t *text, const uint8_t *secret)
{
    const uint64_t a = ron_load_le64(text) + ron_load_le64(secret);
    const uint64_t b = ron_load_le64(text + 8) + ron_load_le64(secret + 8);

    return (unsigned __int128)a * b;
}

/* NH of UMAC (RFC 4418, on words of 64 bits), twice, a block apart in the secret: whoever does not
 * know that finds a second text of one size with the same sums at a chance of 2^-128 a try. The
 * last block overlaps the one before, so that no byte is copied. */
static void make_key(const struct auth_cache *cache, struct ron_slice token, uint64_t epoch,
                     struct cache_key *ret_key)
{
    const uint8_t *secret = ron_secret_expose(&cache->secret).data;
    const size_t last = token.size - BLOCK_SIZE;
    unsigned __int128 first_sum = 0, second_sum = 0;
    size_t at = 0;

    RON_ASSERT(token.size >= BLOCK_SIZE && token.size <= TEXT_SIZE_MAX);
    for (; at < last; at += BLOCK_SIZE) {
        first_sum += product(token.data + at, secret + at);
        second_sum += product(token.data + at, secret + at + BLOCK_SIZE);
    }
    first_sum += product(token.data + last, secret + at);
    second_sum += product(token.data + last, secret + at + BLOCK_SIZE);
    *ret_key = (struct cache_key){{first_sum, second_sum}, epoch, token.size};
}

/* Without a branch inside the sums: how far those of a guess agree with a token's is for nobody to
 * measure. */
static bool keys_equal(const struct cache_key *a, const struct cache_key *b)
{
    return a->size == b->size && a->epoch == b->epoch &&
           ((a->sums[0] ^ b->sums[0]) | (a->sums[1] ^ b->sums[1])) == 0;
}

/* Of what no key can be made. */
static enum ron_err verify_only(struct auth_cache *cache, const struct auth_keyring *keyring,
                                struct ron_slice token, const struct auth_grant **ret_grant,
                                struct ron_errinfo *reterr)
{
    enum ron_err err = auth_verify(keyring, token, &cache->passing, reterr);

    cache->misses_count++;
    if (err == RON_ERR_OK)
        *ret_grant = &cache->passing;
    return err;
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
    if (token.size < BLOCK_SIZE || token.size > TEXT_SIZE_MAX)
        return verify_only(cache, keyring, token, ret_grant, reterr);
    make_key(cache, token, auth_keyring_epoch(keyring), &key);
    first = ((uint32_t)(key.sums[1] >> 64) & cache->sets_mask) * (size_t)AUTH_CACHE_WAYS;
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
