/*
 * embed_impl.h - the ledger as a library: what its files share. Private to src/ledger/embed*.c.
 */
#ifndef RON_LEDGER_EMBED_IMPL_H
#define RON_LEDGER_EMBED_IMPL_H

#include "ledger/body.h"
#include "ledger/role.h"
#include "ron/ledger.h"
#include "rt/queue.h"
#include "rt/watch.h"

#define EMBED_MAGIC 0x1ed9e3bdu

/* One write under way: its body stays in the scratch until it is answered. */
struct embed_call {
    struct ledger_request request;
    struct body_scratch scratch;
    struct ron_buf text;       /* of a body that is made here */
    struct rt_watch *answered; /* set by whoever answers */
};

struct ron_ledger {
    uint32_t magic;
    struct ron_ledger_options options;
    struct io_vfs *vfs; /* NULL: in memory */
    struct ledger_role *role;
    struct ledger_service *service; /* of the role, as the next two */
    struct ledger_tree *tree;
    struct ledger_books *books;
    struct rt_queue *free_calls; /* of struct embed_call */
    struct embed_call *calls;
    bool started;
};

/* Wait for a free one; give it back after its answer. RON_ERR_BUSY: none was free in time. */
enum ron_err embed_take(struct ron_ledger *ledger, struct rt_deadline deadline,
                        struct embed_call **ret_call,
                        struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
void embed_give(struct ron_ledger *ledger, struct embed_call *call);

#endif
