/* Copy out under the lock, unlock, then block. */
#include "common.h"

int snippet(struct shard *shard, struct shard *other, bool flag)
{
    int balance;

    (void)other, (void)flag;
    shard_lock(shard);
    balance = shard->balance;
    shard_unlock(shard);
    sync_file();
    return balance;
}
