/* expect: cannot call function 'sync_file' while \w+ 'ron_cap_any' is held */
#include "common.h"

int snippet(struct shard *shard, struct shard *other, bool flag)
{
    int balance;

    (void)other, (void)flag;
    shard_lock(shard);
    balance = shard->balance;
    sync_file();
    shard_unlock(shard);
    return balance;
}
