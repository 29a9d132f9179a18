/* expect: calling function 'sync_file' requires negative capability '!ron_cap_any' */
#include "common.h"

static void helper(void)
{
    sync_file();
}

int snippet(struct shard *shard, struct shard *other, bool flag)
{
    (void)other, (void)flag;
    shard_lock(shard);
    helper();
    shard_unlock(shard);
    return 0;
}
