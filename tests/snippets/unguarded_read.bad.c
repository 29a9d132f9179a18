/* expect: reading variable 'balance' requires holding \w+ 'ron_cap_shard' */
#include "common.h"

int snippet(struct shard *shard, struct shard *other, bool flag)
{
    (void)other, (void)flag;
    return shard->balance;
}
