/* expect: releasing \w+ 'ron_cap_shard' that was not held */
#include "common.h"

int snippet(struct shard *shard, struct shard *other, bool flag)
{
    (void)other, (void)flag;
    shard_unlock(shard);
    return 0;
}
