/* Guarded data through a function that needs the lock. */
#include "common.h"

static int read_balance(const struct shard *shard) RON_NEEDS(shard)
{
    return shard->balance;
}

int snippet(struct shard *shard, struct shard *other, bool flag)
{
    int balance;

    (void)other, (void)flag;
    shard_lock(shard);
    balance = read_balance(shard);
    shard_unlock(shard);
    return balance;
}
