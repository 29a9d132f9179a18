/*
 * common.h - the module every snippet pretends to be part of: a ledger shard with one lock, and
 * functions that block.
 */
#ifndef RON_SNIPPETS_COMMON_H
#define RON_SNIPPETS_COMMON_H

#include "rt/lock.h"
#include "rt/queue.h"

struct shard {
    struct rt_lock lock;
    int balance RON_GUARDED_BY(shard);
};

void shard_lock(struct shard *shard) RON_LOCKS(shard);
void shard_unlock(struct shard *shard) RON_UNLOCKS(shard);
void sync_file(void) RON_BLOCKS;
int snippet(struct shard *shard, struct shard *other, bool flag) RON_BLOCKS;

#endif
