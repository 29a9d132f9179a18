/* Two locks of one class one after the other. */
#include "common.h"

int snippet(struct shard *shard, struct shard *other, bool flag)
{
    int balance;

    (void)flag;
    shard_lock(shard);
    balance = shard->balance;
    shard_unlock(shard);
    shard_lock(other);
    balance += other->balance;
    shard_unlock(other);
    return balance;
}
