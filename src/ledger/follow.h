/*
 * follow.h - what the service's follower is told, and by which of its tasks. Private to the
 * service's files; see struct ledger_follower.
 */
#ifndef RON_LEDGER_FOLLOW_H
#define RON_LEDGER_FOLLOW_H

#include "ledger/service_impl.h"

/* Committer. Leaves of whole batches, in order; one call for many small ones. nodes: NULL or as
 * io_tlog_append takes them. */
void follow_leaves(struct ledger_service *service, uint64_t seq_start,
                   const struct ron_sha256 *hashes, size_t hashes_count,
                   const struct ron_sha256 *nodes) RON_BLOCKS;
void follow_replayed(struct ledger_service *service,
                     const struct ledger_batch *batch) RON_BLOCKS; /* Sequencer */
/* Sequencer. Replay is over: the follower is brought to the head, which it is told. */
void follow_recovered(struct rt_task *task, struct ledger_service *service) RON_BLOCKS;
/* Sequencer, instead: the log is damaged, and the follower told nothing more. */
void follow_damaged(struct ledger_service *service) RON_BLOCKS;
/* RootsPublisher. False: it failed and must be told again. */
bool follow_head(struct ledger_service *service, const struct ledger_root *root) RON_BLOCKS;
void follow_keep(struct ledger_service *service, bool sync) RON_BLOCKS;
void follow_end(struct ledger_service *service);

#endif
