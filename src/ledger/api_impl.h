/*
 * api_impl.h - the API's state, by owner. Private to src/ledger/api*.c.
 */
#ifndef RON_LEDGER_API_IMPL_H
#define RON_LEDGER_API_IMPL_H

#include "auth/policy.h"
#include "auth/principal.h"
#include "base/assert.h"
#include "base/json_write.h"
#include "ledger/api.h"
#include "ledger/body.h"
#include "ledger/checks.h"
#include "ledger/core_oap.h"
#include "rt/atomic.h"
#include "rt/lock.h"
#include "rt/queue.h"
#include "rt/supervisor.h"
#include "rt/task.h"

#define API_MAGIC  0x1ed9a910u
#define CALL_MAGIC 0x1ed9ca11u

enum {
    API_ROUTES_MAX = 48,
    API_ASSETS_MAX = 4096,
    API_REPLY_SIZE_MAX = 8 << 20,
    API_OPS_INLINE = 4,
    API_STREAM_BUFFER = 64 << 10,
    API_TOUCHED_MAX = 64,
};

struct api_asset {
    struct ron_u128 max_supply;
    uint64_t seq; /* of its entry; 0: there from the start */
    uint32_t number, decimals;
    uint8_t name_size;
    char name[RON_ASSET_NAME_SIZE_MAX];
};

struct api_stream {
    struct io_stream *stream;
    uint64_t seq; /* of the last root that was sent */
    bool bound;   /* its capability does not cover every account: it is told of none */
};

/* Of today's daily sums. */
enum api_sums { API_SUMS_MISSING, API_SUMS_READING, API_SUMS_KNOWN };

/* How a request is answered by a reader. */
typedef void api_read_fn(struct ledger_api *api, struct io_request *request);
struct api_row {
    struct io_route route;
    api_read_fn *read; /* by a reader: at once, or when the route's handler sends it on */
};

struct api_state; /* api_balance_proof.c */

struct ledger_api {
    uint32_t magic;
    struct ledger_api_options options;
    struct io_route routes[API_ROUTES_MAX]; /* as added: fixed at birth */
    api_read_fn *reads[API_ROUTES_MAX];
    size_t routes_count;

    struct rt_supervisor *supervisor;
    struct rt_queue *reads_queue;  /* of struct io_request */
    struct rt_queue *slices_queue; /* of struct io_request */
    struct rt_queue *proofs_queue; /* of struct api_call */
    struct rt_queue *copies_queue; /* of struct io_request */
    struct rt_task *readers[LEDGER_API_READERS_MAX];
    struct rt_task *slicer, *prover, *streamer;
    struct rt_task *copiers[LEDGER_API_COPIERS];
    char reader_names[LEDGER_API_READERS_MAX][24];
    struct rt_atomic_u32 backup_on; /* one at a time */
    bool started;

    struct rt_atomic_u32 calls_count, proofs_count;
    struct rt_atomic_u64 bytes; /* of the blocks of calls */

    struct rt_lock lock; /* class shard: copies and look-ups only */
    struct body_scratch *scratches RON_GUARDED_BY(shard); /* bodies_max */
    uint64_t scratches_free RON_GUARDED_BY(shard);        /* as bits */
    struct ledger_checks *checks, *own_checks; /* the service's, or one that only evaluates */
    struct rt_atomic_u32 sums_state;           /* enum api_sums */
    struct rt_atomic_u32 freezes_count;        /* 0: nobody need ask */
    struct api_asset *assets;                  /* those below the count never change */
    struct rt_atomic_u32 assets_count;         /* grows under the lock */
    struct api_state *states[LEDGER_API_READERS_MAX] RON_GUARDED_BY(shard); /* nobody uses now */
    struct api_stream streams[LEDGER_API_STREAMS_MAX] RON_GUARDED_BY(shard);
    size_t streams_count RON_GUARDED_BY(shard);
    bool streams_closed RON_GUARDED_BY(shard);
};

static inline void api_lock(struct ledger_api *api) RON_LOCKS(shard)
{
    rt_lock_take(&api->lock);
}
static inline void api_unlock(struct ledger_api *api) RON_UNLOCKS(shard)
{
    rt_lock_drop(&api->lock);
}

/* One write under way: from its handler to its answer. */
struct api_call {
    uint32_t magic;
    struct ledger_api *api;
    struct io_request *request;
    struct ledger_request ledger;
    struct ron_slice header_key;
    bool wants_proof;
    const char *reason; /* of a refusal by policy: details.reason; static */
    uint64_t wait_ms;
    struct ron_u128 charged; /* towards max_daily, at charged_ms; 0: nothing */
    uint64_t charged_ms;
    uint8_t charged_to[AUTH_CAPABILITY_SIZE];
    uint64_t block_size;
    uint8_t *block; /* ops, their sift_room, texts; NULL: few */
    union {         /* last: not cleared */
        struct ledger_op few[API_OPS_INLINE];
        struct ledger_bare_op few_bare[API_OPS_INLINE];
    };
};
_Static_assert(sizeof(struct api_call) <= IO_ROOM_SIZE_MAX, "it lies in its request's room");

/* api_call.c: from a request to the pipeline and back. A call that begins is submitted or dropped.
 * RON_ERR_OK: the handler goes on; else the request has been answered. */
enum ron_err call_begin(struct ledger_api *api, struct io_request *request,
                        enum ledger_command_kind kind, struct api_call **ret_call) RON_MUST_USE;
void call_submit(struct api_call *call);
/* From the request's handler: all of a turn go together. */
void call_submit_in_turn(struct api_call *call);
void call_end(struct api_call *call);                               /* answer it; it is gone */
void call_end_with(struct api_call *call, struct ron_slice proofs); /* JSON; it succeeded */
void call_refuse(struct api_call *call, enum ron_err err, const struct ron_errinfo *info);
/* Read with scratch memory; every take is given back. RON_ERR_BUSY. */
enum ron_err scratch_take(struct ledger_api *api, struct body_scratch **ret_scratch,
                          struct ron_errinfo *reterr) RON_MUST_USE;
void scratch_give(struct ledger_api *api, struct body_scratch *scratch);
/* Prepare functions: name the element, if there is one; gives err. */
enum ron_err call_refuse_index(struct api_call *call, uint32_t index, enum ron_err err);
/* Memory that lives as long as the call, not zeroed. RON_ERR_BUSY, RON_ERR_NO_MEMORY. */
enum ron_err call_take_block(struct api_call *call, size_t size,
                             struct ron_errinfo *reterr) RON_MUST_USE;
/* The same for ops: in the call itself, if they are few. */
enum ron_err call_take_ops(struct api_call *call, uint32_t ops_count,
                           struct ledger_bare_op **ret_ops,
                           struct ron_errinfo *reterr) RON_MUST_USE;
/* Copy ops, and every text that lies in the scratch, to memory of the call's own; the command is
 * complete but for its ops. Errors as above. */
enum ron_err call_keep(struct api_call *call, const struct body_scratch *scratch,
                       const struct ledger_op *ops, uint32_t ops_count,
                       struct ron_errinfo *reterr) RON_MUST_USE;

/* api_access.c: what the capability allows. */
const struct auth_grant *grant_of(const struct io_request *request); /* NULL: public */
enum ron_err grant_rate(struct ledger_api *api, const struct auth_grant *grant,
                        struct ron_errinfo *reterr) RON_MUST_USE;
/* Tenant, caller and capability of a write: from the grant, or for a service from on_behalf. */
enum ron_err stamp_of(const struct io_request *request, struct ledger_stamp *ret_stamp,
                      struct ron_errinfo *reterr) RON_MUST_USE;
struct ledger_cover cover_of(const struct auth_grant *grant);
enum ron_err access_ops(struct api_call *call, const struct ledger_op *ops, uint32_t ops_count,
                        uint32_t *ret_index, struct ron_errinfo *reterr) RON_MUST_USE;
/* The same for ops that name nothing, of which sum says the most. */
enum ron_err access_bare_ops(struct api_call *call, const struct ledger_bare_op *ops,
                             uint32_t ops_count, const struct ledger_oap_sum *sum,
                             uint32_t *ret_index, struct ron_errinfo *reterr) RON_MUST_USE;
void access_refund(struct api_call *call);
/* Readers. A grant is bound if it does not cover every account of its tenant 0. */
bool grant_is_bound(const struct auth_grant *grant);
bool grant_reads(const struct auth_grant *grant, struct ron_slice account);
enum ron_err check_reads(const struct auth_grant *grant, struct ron_slice account,
                         struct ron_errinfo *reterr) RON_MUST_USE;

/* api_sums.c: read what capabilities spent today, unless somebody does or did; a task. */
enum ron_err sums_restore(struct ledger_api *api, struct rt_task *task) RON_MUST_USE RON_BLOCKS;

/* api_proofs.c, api_stream.c, api_copies.c: their tasks. */
rt_task_fn prover_run, streamer_run, copier_run;
void streams_end(struct ledger_api *api);

/* The rows, by file. */
struct api_rows {
    const struct api_row *rows;
    size_t count;
};
extern const struct api_rows api_write_rows, api_slice_rows, api_read_rows, api_entry_rows,
    api_account_rows, api_proof_rows, api_stream_rows, api_admin_rows, api_copy_rows;
enum ron_err api_oap_add(struct io_oap_service *oap, struct ledger_api *api,
                         struct ron_errinfo *reterr) RON_MUST_USE;

#endif
