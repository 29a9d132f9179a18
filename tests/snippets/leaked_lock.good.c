/* Unlocked on every path. */
#include "common.h"

int snippet(struct shard *shard, struct shard *other, bool flag)
{
    (void)other;
    shard_lock(shard);
    if (flag) {
        shard_unlock(shard);
        return 1;
    }
    shard_unlock(shard);
    return 0;
}
