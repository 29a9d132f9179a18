/*
 * checks_cache.c - what the KMS verified a moment ago. See checks.h.
 *
 * By all that its question names: capability, tenant, caller and command. Direct-mapped by the
 * capability: a newer question takes the place of one on the same row. Only what verified gets in,
 * and nothing outlives its time or the epoch it was verified in.
 */
#include "ledger/checks_impl.h"

static struct check_cache_row *row_of(const struct check_cache *cache,
                                      const struct ledger_request *request)
{
    uint32_t hash;

    _Static_assert(sizeof(hash) <= AUTH_CAPABILITY_SIZE, "its first bytes are a hash already");
    memcpy(&hash, request->grant->capability, sizeof(hash));
    return &cache->rows[hash & (cache->slots_count - 1)];
}

bool check_cache_has(const struct check_cache *cache, const struct ledger_request *request,
                     uint64_t now_ns)
{
    const struct check_cache_row *row;

    if (cache->slots_count == 0)
        return false;
    row = row_of(cache, request);
    return now_ns < row->until_ns && row->epoch == cache->epoch &&
           row->kind == request->command.kind && row->caller == request->command.stamp.caller &&
           row->tenant.v == request->command.stamp.tenant.v &&
           ron_slice_equal(ron_slice_of(row->ref, row->ref_size), auth_grant_ref(request->grant));
}

void check_cache_epoch(struct check_cache *cache, uint64_t epoch)
{
    if (epoch > cache->epoch)
        cache->epoch = epoch;
}

void check_cache_put(struct check_cache *cache, const struct ledger_request *request,
                     uint64_t epoch, uint64_t until_ns)
{
    struct check_cache_row *row;

    if (cache->slots_count == 0 || epoch != cache->epoch)
        return; /* verified before the newest revocation: ask again */
    row = row_of(cache, request);
    row->until_ns = until_ns;
    row->epoch = epoch;
    row->kind = request->command.kind;
    row->caller = request->command.stamp.caller;
    row->tenant = request->command.stamp.tenant;
    row->ref_size = request->grant->ref_size;
    memcpy(row->ref, request->grant->ref, request->grant->ref_size);
}
