/*
 * checks_cache.c - capabilities that the KMS verified a moment ago. See checks.h.
 *
 * Direct-mapped: a newer capability takes the place of one that falls on the same row. Only what
 * verified gets in, and nothing outlives its time or the epoch it was verified in.
 */
#include "ledger/checks_impl.h"

static struct check_cache_row *row_of(const struct check_cache *cache,
                                      const struct auth_grant *grant)
{
    uint32_t hash;

    _Static_assert(sizeof(hash) <= AUTH_CAPABILITY_SIZE, "its first bytes are a hash already");
    memcpy(&hash, grant->capability, sizeof(hash));
    return &cache->rows[hash & (cache->slots_count - 1)];
}

bool check_cache_has(const struct check_cache *cache, const struct auth_grant *grant,
                     uint64_t now_ns)
{
    const struct check_cache_row *row;

    if (cache->slots_count == 0)
        return false;
    row = row_of(cache, grant);
    return now_ns < row->until_ns && row->epoch == cache->epoch &&
           ron_slice_equal(ron_slice_of(row->ref, row->ref_size), auth_grant_ref(grant));
}

void check_cache_epoch(struct check_cache *cache, uint64_t epoch)
{
    if (epoch > cache->epoch)
        cache->epoch = epoch;
}

void check_cache_put(struct check_cache *cache, const struct auth_grant *grant, uint64_t epoch,
                     uint64_t until_ns)
{
    struct check_cache_row *row;

    if (cache->slots_count == 0 || epoch != cache->epoch)
        return; /* verified before the newest revocation: ask again */
    row = row_of(cache, grant);
    row->until_ns = until_ns;
    row->epoch = epoch;
    row->ref_size = grant->ref_size;
    memcpy(row->ref, grant->ref, grant->ref_size);
}
