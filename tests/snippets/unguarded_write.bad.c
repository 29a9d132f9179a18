/* expect: writing variable 'balance' requires holding \w+ 'ron_cap_shard' exclusively */
#include "common.h"

int snippet(struct shard *shard, struct shard *other, bool flag)
{
    (void)other, (void)flag;
    shard_lock(shard);
    shard_unlock(shard);
    shard->balance = 1;
    return 0;
}
