/* A try_send never waits and may be called under a lock of lower rank. */
#include "common.h"

static enum ron_err announce(struct shard *shard, struct rt_queue *queue, void *pointer)
{
    enum ron_err err;

    shard_lock(shard);
    err = rt_queue_try_send(queue, (struct rt_queue_item){pointer, 1}, NULL);
    shard_unlock(shard);
    return err;
}

int snippet(struct shard *shard, struct shard *other, bool flag)
{
    (void)flag;
    return (int)announce(shard, NULL, other);
}
