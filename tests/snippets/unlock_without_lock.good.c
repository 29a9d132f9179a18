/* Each unlock has its lock. */
#include "common.h"

int snippet(struct shard *shard, struct shard *other, bool flag)
{
    (void)other, (void)flag;
    shard_lock(shard);
    shard_unlock(shard);
    return 0;
}
