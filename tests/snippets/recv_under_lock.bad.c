/* expect: cannot call function 'rt_queue_recv' while \w+ 'ron_cap_any' is held */
#include "common.h"

static enum ron_err await(struct shard *shard, struct rt_queue *queue, void **pointer) RON_BLOCKS
{
    enum ron_err err;

    shard_lock(shard);
    err = rt_queue_recv(queue, RT_DEADLINE_NEVER, pointer, NULL);
    shard_unlock(shard);
    return err;
}

int snippet(struct shard *shard, struct shard *other, bool flag)
{
    void *pointer = other;

    (void)flag;
    return (int)await(shard, NULL, &pointer);
}
