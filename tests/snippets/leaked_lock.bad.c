/* expect: 'ron_cap_shard' is not held on every path through here */
#include "common.h"

int snippet(struct shard *shard, struct shard *other, bool flag)
{
    (void)other;
    shard_lock(shard);
    if (flag)
        return 1;
    shard_unlock(shard);
    return 0;
}
