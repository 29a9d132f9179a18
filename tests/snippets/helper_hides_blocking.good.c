/* A helper that blocks says so. */
#include "common.h"

static void helper(void) RON_BLOCKS
{
    sync_file();
}

int snippet(struct shard *shard, struct shard *other, bool flag)
{
    (void)shard, (void)other, (void)flag;
    helper();
    return 0;
}
