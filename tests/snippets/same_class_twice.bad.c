/* expect: acquiring \w+ 'ron_cap_shard' that is already held */
#include "common.h"

int snippet(struct shard *shard, struct shard *other, bool flag)
{
    int balance;

    (void)flag;
    shard_lock(shard);
    shard_lock(other);
    balance = shard->balance + other->balance;
    shard_unlock(other);
    shard_unlock(shard);
    return balance;
}
