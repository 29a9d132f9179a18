/*
 * snapshots.c - when a snapshot is taken, and how: see snapshots.h. Loading is snapshots_load.c.
 */
#include "ledger/snapshots.h"

#include <stdio.h>

#include "base/hex.h"
#include "base/mem.h"
#include "io/durable.h"
#include "io/snapshot_file.h"
#include "ledger/service_impl.h"
#include "ledger/state_rows.h"

enum {
    KEEP = 2,                      /* one survives a damaged newest */
    IN_PROCESS_SIZE_MAX = 1 << 30, /* where nothing is forked */
    SLICE_MS = 100,                /* how long a stop may go unseen */
    TRAILER_SIZE = RON_SHA256_SIZE + 8,
};
#define RETRY_NS (1000 * RT_NS_PER_MS) /* after one that failed */

static void snapshots_lock(struct snapshots *snapshots) RON_LOCKS(storage)
{
    rt_lock_take(&snapshots->lock);
}
static void snapshots_unlock(struct snapshots *snapshots) RON_UNLOCKS(storage)
{
    rt_lock_drop(&snapshots->lock);
}

void snapshots_publish(struct ledger_service *service, const struct ron_errinfo *end)
{
    struct snapshots *snapshots = &service->snapshots;

    snapshots_lock(snapshots);
    snapshots->published = snapshots->health;
    snapshots->end = *end;
    snapshots_unlock(snapshots);
}

struct ledger_snapshot_health snapshots_health(struct ledger_service *service,
                                               struct ron_errinfo *ret_end)
{
    struct snapshots *snapshots = &service->snapshots;
    struct ledger_snapshot_health health;

    snapshots_lock(snapshots);
    health = snapshots->published;
    *ret_end = snapshots->end;
    snapshots_unlock(snapshots);
    return health;
}

/* --- At the standstill -------------------------------------------------------------------------
 */

/* In the copy. Pieces of the state: size u32, bytes; a size of 0; pieces of its rows; a size of 0,
 * state root and count of rows. */
static enum ron_err put_piece(void *context, struct ron_slice bytes, struct ron_errinfo *reterr)
{
    struct rt_offshoot *offshoot = context;
    uint8_t size[4];

    ron_store_le32(size, (uint32_t)bytes.size);
    if (!rt_offshoot_put(offshoot, size, sizeof(size)) ||
        !rt_offshoot_put(offshoot, bytes.data, bytes.size))
        return ron_fail(reterr, RON_ERR_CANCELED, "nobody reads the snapshot");
    return RON_ERR_OK;
}

static bool write_state(struct rt_offshoot *offshoot, void *context)
{
    struct ledger_service *service = context;
    struct ledger_scratch *scratch = &service->snapshots.scratch;
    ledger_sink_fn *rows_sink = service->options.snapshot.rows_dir == NULL ? NULL : put_piece;
    uint8_t trailer[4 + TRAILER_SIZE] = {0};
    struct ron_sha256 root;
    uint64_t rows_count = 0;

    if (ledger_scratch_write(scratch, service->core, put_piece, offshoot, NULL) != RON_ERR_OK ||
        !rt_offshoot_put(offshoot, trailer, 4) ||
        ledger_scratch_root(scratch, service->core, rows_sink, offshoot, &root, &rows_count,
                            NULL) != RON_ERR_OK)
        return false;
    memcpy(trailer + 4, root.bytes, RON_SHA256_SIZE);
    ron_store_le64(trailer + 4 + RON_SHA256_SIZE, rows_count);
    return rt_offshoot_put(offshoot, trailer, sizeof(trailer));
}

void snapshots_cut(struct ledger_service *service, bool broken)
{
    struct snapshots *snapshots = &service->snapshots;
    const struct rt_offshoot_options options = {.fn = write_state,
                                                .context = service,
                                                .in_process = service->options.snapshot.in_process,
                                                .size_max = IN_PROCESS_SIZE_MAX};
    uint64_t count = 0;

    snapshots->cut = ledger_read_head(service);
    snapshots->cut_durable = ledger_engine_durable(service->engine);
    if (broken) {
        RON_PROBE("ledger: a snapshot wanted while nothing can be committed");
        (void)ron_fail(&snapshots->cut_info, RON_ERR_SAFE_MODE, "the log failed, or has no room");
    } else if (snapshots->cut.batch == 0) {
        (void)ron_fail(&snapshots->cut_info, RON_ERR_NOT_FOUND, "nothing was committed yet");
    } else {
        (void)!rt_offshoot_start(&options, &snapshots->offshoot, &snapshots->cut_info);
    }
    (void)rt_watch_get(snapshots->cuts, &count);
    count++;
    rt_watch_set(snapshots->cuts, &count);
}

void snapshots_stand_still(struct ledger_service *service)
{
    struct snapshots *snapshots = &service->snapshots;
    const uint64_t begin_ns = rt_now_ns();
    uint64_t version = rt_watch_get(snapshots->cuts, NULL);

    if (rt_queue_send_until(service->commit, (struct rt_queue_item){&snapshots->barrier, 1},
                            RT_DEADLINE_NEVER, &snapshots->cut_info) != RON_ERR_OK)
        return;
    RON_MUST_ZERO(rt_watch_wait(snapshots->cuts, version, RT_DEADLINE_NEVER, NULL, &version, NULL));
    snapshots->health.pause_ns = rt_now_ns() - begin_ns;
}

void snapshots_note(struct ledger_service *service)
{
    struct snapshots *snapshots = &service->snapshots;
    const uint64_t entries = service->options.snapshot.entries;
    const uint64_t nothing = 0;

    if (service->options.snapshot.vfs == NULL || entries == 0 ||
        rt_atomic_load_u32(&snapshots->told) != 0 ||
        ledger_core_committed_seq(service->core) <
            rt_atomic_load_u64(&snapshots->cut_seq) + entries)
        return;
    rt_atomic_store_u32(&snapshots->told, 1);
    rt_watch_set(snapshots->wake, &nothing); /* it sees as many as we do */
}

/* --- Requests of our own ------------------------------------------------------------------------
 */

static void answered(struct ledger_request *request, void *context)
{
    struct ledger_service *service = context;
    uint64_t count = 0;

    (void)request;
    (void)rt_watch_get(service->snapshots.answered, &count);
    count++;
    rt_watch_set(service->snapshots.answered, &count);
}

/* Straight to the Sequencer, as its expiry is, and wait for the answer: there is always one. */
static enum ron_err hand_in(struct ledger_service *service, struct ledger_request *request,
                            struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t version = rt_watch_get(service->snapshots.answered, NULL);
    enum ron_err err;

    request->done = answered;
    request->context = service;
    request->deadline = RT_DEADLINE_NEVER;
    request->state.taken = true;
    request->state.arrived_ns = rt_now_ns();
    request->state.arrived_ms = rt_utc_ms();
    err = rt_queue_send_until(service->preval,
                              (struct rt_queue_item){request, request_weight(request)},
                              RT_DEADLINE_NEVER, reterr);
    if (err != RON_ERR_OK) {
        request->state.taken = false;
        return err;
    }
    RON_MUST_ZERO(rt_watch_wait(service->snapshots.answered, version, RT_DEADLINE_NEVER, NULL,
                                &version, NULL));
    if (request->outcome.err != RON_ERR_OK && reterr != NULL)
        *reterr = request->outcome.info;
    return request->outcome.err;
}

static enum ron_err anchor(struct ledger_service *service, const struct ron_sha256 *root,
                           struct ron_errinfo *reterr) RON_BLOCKS
{
    struct snapshots *snapshots = &service->snapshots;
    const unsigned long long seq = snapshots->cut.seq;
    char id[32], ref[24], digest[sizeof("sha256:") + 2 * RON_SHA256_SIZE] = "sha256:";
    struct ledger_wire_entry wire = {
        .id = RON_SLICE("state"), .kind = RON_SLICE("Anchor"), .stream = RON_SLICE("state")};
    struct ledger_op op;
    enum ron_err err;

    (void)snprintf(id, sizeof(id), "state/%llu", seq);
    (void)snprintf(ref, sizeof(ref), "%llu", seq);
    (void)ron_hex_encode(ron_slice_of(root->bytes, RON_SHA256_SIZE), digest + sizeof("sha256:") - 1,
                         sizeof(digest) - sizeof("sha256:") + 1);
    wire.ref = ron_slice_text(ref);
    wire.digest = ron_slice_text(digest);
    err = ledger_shape_entry((struct ron_u128){0}, &wire, &op, reterr);
    if (err != RON_ERR_OK)
        return err;
    op.id_text = ron_slice_text(id); /* with a `/`: no client can have taken it */
    op.id = ledger_entry_id((struct ron_u128){0}, op.id_text);
    snapshots->anchor = (struct ledger_request){
        .command = {.kind = LEDGER_COMMAND_INGEST,
                    .stamp = {.caller = LEDGER_CALLER_LEDGER},
                    .ops = &op,
                    .ops_count = 1},
        .size = 1,
    };
    return hand_in(service, &snapshots->anchor, reterr);
}

/* --- Writing -----------------------------------------------------------------------------------
 */

struct intake {
    struct ledger_service *service;
    struct rt_deadline deadline;
    struct io_snapshot_writer *writer;
    struct io_snapshot_writer *rows; /* NULL: they are not kept */
    uint8_t piece[LEDGER_SCRATCH_BUFFER];
};

/* Exactly so many bytes; a stop is seen in between. */
static enum ron_err take_bytes(struct intake *intake, void *bytes, size_t size,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    uint8_t *at = bytes;

    while (size > 0) {
        struct rt_deadline slice = rt_deadline_min(intake->deadline,
                                                   rt_deadline_after_ms(SLICE_MS));
        struct ron_errinfo info = {0};
        size_t count = 0;
        enum ron_err err = rt_offshoot_read(intake->service->snapshots.offshoot, at, size, slice,
                                            &count, &info);

        if (rt_queue_closed(intake->service->preval))
            return ron_fail(reterr, RON_ERR_CANCELED, "the service stops");
        if (err == RON_ERR_TIMEOUT && !rt_deadline_expired(intake->deadline))
            continue;
        if (err == RON_ERR_OK && count == 0)
            err = ron_fail(&info, RON_ERR_IO, "the copy ended too soon");
        if (err != RON_ERR_OK && reterr != NULL)
            *reterr = info;
        if (err != RON_ERR_OK)
            return err;
        at += count;
        size -= count;
    }
    return RON_ERR_OK;
}

/* All pieces of one file. */
static enum ron_err take_pieces(struct intake *intake, struct io_snapshot_writer *writer,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = RON_ERR_OK;

    while (err == RON_ERR_OK) {
        uint8_t head[4];
        uint32_t size;

        err = take_bytes(intake, head, sizeof(head), reterr);
        if (err != RON_ERR_OK)
            return err;
        size = ron_load_le32(head);
        if (size == 0)
            break;
        if (size > sizeof(intake->piece) || writer == NULL)
            return ron_fail(reterr, RON_ERR_INTERNAL, "a piece of %u bytes", size);
        err = take_bytes(intake, intake->piece, size, reterr);
        if (err == RON_ERR_OK)
            err = io_snapshot_put(writer, ron_slice_of(intake->piece, size), reterr);
    }
    return err;
}

/* State and rows into their files, and what comes behind them. */
static enum ron_err take_state(struct intake *intake, uint8_t trailer[static TRAILER_SIZE],
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = take_pieces(intake, intake->writer, reterr);

    if (err == RON_ERR_OK)
        err = take_pieces(intake, intake->rows, reterr);
    if (err == RON_ERR_OK)
        err = take_bytes(intake, trailer, TRAILER_SIZE, reterr);
    if (err == RON_ERR_OK) { /* and no more: it has ended well */
        size_t count = 0;

        err = rt_offshoot_read(intake->service->snapshots.offshoot, intake->piece, 1,
                               intake->deadline, &count, reterr);
        if (err == RON_ERR_OK && count > 0)
            err = ron_fail(reterr, RON_ERR_INTERNAL, "bytes behind the state");
    }
    return err;
}

/* Where the pointer is called: it may block. */
static enum ron_err call_before(struct ledger_service *service,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ledger_snapshot_options *options = &service->options.snapshot;

    rt_assert_no_lock_held();
    return options->before == NULL
               ? RON_ERR_OK
               : options->before(options->before_context, service->snapshots.cut.seq, reterr);
}

static enum ron_err begin_files(struct intake *intake, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct snapshots *snapshots = &intake->service->snapshots;
    const struct ledger_snapshot_options *options = &intake->service->options.snapshot;
    struct io_snapshot_cut cut = {.kind = LEDGER_SNAPSHOT_KIND,
                                  .version = LEDGER_SNAPSHOT_VERSION,
                                  .position = snapshots->cut.batch,
                                  .last_durable = snapshots->cut_durable};
    enum ron_err err = io_durable_dir(options->vfs, options->dir, reterr);

    if (err == RON_ERR_OK)
        err = io_snapshot_begin(options->vfs, options->dir, &cut, &intake->writer, reterr);
    if (err != RON_ERR_OK || options->rows_dir == NULL)
        return err;
    cut.kind = LEDGER_ROWS_KIND;
    cut.version = LEDGER_ROWS_VERSION;
    err = io_durable_dir(options->vfs, options->rows_dir, reterr);
    if (err == RON_ERR_OK)
        err = io_snapshot_begin(options->vfs, options->rows_dir, &cut, &intake->rows, reterr);
    return err;
}

/* The rows are there before the root that they lead to is anchored. */
static enum ron_err end_rows(struct intake *intake, const uint8_t root[static RON_SHA256_SIZE],
                             struct ron_errinfo *reterr) RON_BLOCKS
{
    uint8_t tail[LEDGER_ROWS_TAIL];
    struct io_snapshot_info info = {0};
    enum ron_err err;

    if (intake->rows == NULL)
        return RON_ERR_OK;
    ron_store_le64(tail, intake->service->snapshots.cut.seq);
    memcpy(tail + 8, root, RON_SHA256_SIZE);
    err = io_snapshot_put(intake->rows, ron_slice_of(tail, sizeof(tail)), reterr);
    if (err == RON_ERR_OK)
        err = io_snapshot_commit(RON_TAKE(intake->rows), &info, reterr);
    return err;
}

/* Older rows go when newer ones are anchored, not before: those of no Anchor prove nothing. */
static enum ron_err retain_rows(struct ledger_service *service,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ledger_snapshot_options *options = &service->options.snapshot;
    uint64_t removed = 0;

    return options->rows_dir == NULL
               ? RON_ERR_OK
               : io_snapshot_retain(options->vfs, options->rows_dir, KEEP, &removed, reterr);
}

static enum ron_err write_file(struct intake *intake, struct ron_sha256 *ret_root,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_service *service = intake->service;
    struct snapshots *snapshots = &service->snapshots;
    const struct ledger_snapshot_options *options = &service->options.snapshot;
    struct io_snapshot_info info = {0};
    uint8_t trailer[TRAILER_SIZE];
    uint64_t removed = 0;
    enum ron_err err = begin_files(intake, reterr);

    if (err == RON_ERR_OK)
        err = take_state(intake, trailer, reterr);
    if (err == RON_ERR_OK)
        err = call_before(service, reterr);
    if (err == RON_ERR_OK)
        err = end_rows(intake, trailer, reterr);
    if (err != RON_ERR_OK) {
        intake->rows = io_snapshot_abandon(intake->rows);
        intake->writer = io_snapshot_abandon(intake->writer);
        return err;
    }
    err = io_snapshot_commit(RON_TAKE(intake->writer), &info, reterr);
    if (err != RON_ERR_OK)
        return err;
    memcpy(ret_root->bytes, trailer, RON_SHA256_SIZE);
    snapshots->health.size = info.size;
    snapshots->health.rows = ron_load_le64(trailer + RON_SHA256_SIZE);
    return io_snapshot_retain(options->vfs, options->dir, KEEP, &removed, reterr);
}

static enum ron_err take(struct ledger_service *service, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct snapshots *snapshots = &service->snapshots;
    struct intake *intake = ron_mem_alloc(sizeof(*intake));
    struct ron_sha256 root;
    enum ron_err err;

    if (intake == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a snapshot");
    if (service_is_safe(service)) { /* its Anchor would be a write */
        (void)ron_mem_free(intake);
        return ron_fail(reterr, RON_ERR_SAFE_MODE, "ledger is SafeMode");
    }
    intake->service = service;
    intake->deadline = rt_deadline_after_ms(service->options.snapshot.write_ms_max);
    snapshots->marker = (struct ledger_request){.size = 1, .deadline = RT_DEADLINE_NEVER};
    snapshots->cut_info = (struct ron_errinfo){.err = RON_ERR_OK};
    err = ledger_scratch_init(&snapshots->scratch, service->core, reterr);
    if (err == RON_ERR_OK)
        err = hand_in(service, &snapshots->marker, reterr);
    if (err == RON_ERR_OK && snapshots->offshoot == NULL) {
        err = snapshots->cut_info.err;
        if (reterr != NULL)
            *reterr = snapshots->cut_info;
    }
    if (err == RON_ERR_OK)
        err = write_file(intake, &root, reterr);
    snapshots->offshoot = rt_offshoot_end(snapshots->offshoot);
    ledger_scratch_fini(&snapshots->scratch);
    (void)ron_mem_free(intake);
    if (err == RON_ERR_OK)
        err = anchor(service, &root, reterr);
    if (err == RON_ERR_OK)
        err = retain_rows(service, reterr);
    return err;
}

/* --- The Snapshotter ---------------------------------------------------------------------------
 */

/* Take one, and say what came of it. */
static enum ron_err take_one(struct ledger_service *service) RON_BLOCKS
{
    struct snapshots *snapshots = &service->snapshots;
    const uint64_t served_count = rt_atomic_load_u64(&snapshots->wanted_count);
    struct ron_errinfo info = {0};
    enum ron_err err = take(service, &info);

    if (err == RON_ERR_OK) {
        /* Our own Anchor is nothing new. What came between cut and Anchor is. */
        const bool alone = snapshots->anchor.outcome.reply.seq_end == snapshots->cut.seq + 1;

        rt_atomic_store_u64(&snapshots->cut_seq, snapshots->cut.seq + (alone ? 1 : 0));
        snapshots->health.taken_count++;
        snapshots->health.seq = snapshots->cut.seq;
        snapshots->health.batch = snapshots->cut.batch;
        if (snapshots->health.pause_ns > snapshots->health.pause_ns_max)
            snapshots->health.pause_ns_max = snapshots->health.pause_ns;
    } else if (err != RON_ERR_NOT_FOUND && err != RON_ERR_CANCELED && err != RON_ERR_DRAINING) {
        RON_PROBE("ledger: a snapshot failed");
        snapshots->health.failed_count++;
        rt_log(service->options.log, RT_LOG_WARN, "no snapshot: start will take longer",
               rt_log_info(&info));
    }
    rt_atomic_store_u32(&snapshots->told, 0);
    snapshots_publish(service, &info);
    rt_watch_set(snapshots->finished, &served_count);
    return err;
}

/* Is it time? Else until when to sleep, unless woken. */
static bool is_due(struct ledger_service *service, uint64_t last_ns, uint64_t min_ns,
                   struct rt_deadline *ret_next)
{
    const struct ledger_snapshot_options *options = &service->options.snapshot;
    const uint64_t head_seq = ledger_core_committed_seq(service->core);
    const uint64_t cut_seq = rt_atomic_load_u64(&service->snapshots.cut_seq);
    const uint64_t fresh = head_seq > cut_seq && !service_is_safe(service) ? head_seq - cut_seq : 0;
    const uint64_t past_ns = rt_now_ns() - last_ns;
    const uint64_t period_ns = options->ms * RT_NS_PER_MS;
    const bool many = options->entries > 0 && fresh >= options->entries;
    uint64_t wait_ns = many ? min_ns : period_ns;

    if (fresh > 0 && past_ns >= min_ns && (many || (options->ms > 0 && past_ns >= period_ns)))
        return true;
    if (wait_ns < min_ns)
        wait_ns = min_ns;
    if (!many && options->ms == 0)
        *ret_next = RT_DEADLINE_NEVER;
    else
        *ret_next = rt_deadline_after_ns(past_ns < wait_ns ? wait_ns - past_ns : wait_ns);
    return false;
}

enum ron_err snapshots_run(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct ledger_service *service = argument;
    struct snapshots *snapshots = &service->snapshots;
    uint64_t version = rt_watch_get(snapshots->wake, NULL);
    uint64_t served_count = 0;
    const uint64_t min_ns = service->options.snapshot.min_ms * RT_NS_PER_MS;
    uint64_t last_ns = rt_now_ns();
    uint64_t apart_ns = min_ns;
    struct rt_deadline next;

    if (ledger_service_await_start(service, RT_DEADLINE_NEVER, NULL) != RON_ERR_OK)
        return RON_ERR_OK;
    for (;;) {
        const uint64_t wanted_count = rt_atomic_load_u64(&snapshots->wanted_count);

        if (rt_queue_closed(service->preval))
            return RON_ERR_OK;
        if (wanted_count > served_count || is_due(service, last_ns, apart_ns, &next)) {
            last_ns = rt_now_ns();
            apart_ns = take_one(service) == RON_ERR_OK || min_ns > RETRY_NS ? min_ns : RETRY_NS;
            served_count = wanted_count;
        } else if (rt_watch_wait(snapshots->wake, version, next, NULL, &version, NULL) ==
                   RON_ERR_CANCELED) {
            return RON_ERR_OK;
        }
        rt_task_beat(task);
    }
}

enum ron_err ledger_service_snapshot(struct ledger_service *service, struct rt_deadline deadline,
                                     struct ron_errinfo *reterr)
{
    struct snapshots *snapshots = &service->snapshots;
    struct ron_errinfo end = {0};
    const uint64_t nothing = 0;
    uint64_t version, wanted, served = 0;
    enum ron_err err = RON_ERR_OK;

    rt_assert_no_lock_held();
    if (service->options.snapshot.vfs == NULL)
        return ron_fail(reterr, RON_ERR_NOT_READY, "this ledger takes no snapshots");
    version = rt_watch_get(snapshots->finished, &served);
    wanted = rt_atomic_add_u64(&snapshots->wanted_count, 1) + 1;
    rt_watch_set(snapshots->wake, &nothing);
    while (err == RON_ERR_OK && served < wanted)
        err = rt_watch_wait(snapshots->finished, version, deadline, &served, &version, reterr);
    if (err != RON_ERR_OK)
        return err;
    (void)snapshots_health(service, &end);
    if (end.err != RON_ERR_OK && reterr != NULL)
        *reterr = end;
    return end.err;
}

/* --- Life --------------------------------------------------------------------------------------
 */

static enum ron_err make_watch(const char *name, size_t size, const void *initial,
                               struct rt_watch **ret_watch, struct ron_errinfo *reterr)
{
    const struct rt_watch_options options = {.name = name, .owner = "ledger", .value_size = size};

    return rt_watch_new(&options, initial, ret_watch, reterr);
}

enum ron_err snapshots_init(struct ledger_service *service, struct ron_errinfo *reterr)
{
    struct snapshots *snapshots = &service->snapshots;
    const uint64_t none = 0;
    enum ron_err err;

    if (service->options.snapshot.vfs == NULL)
        return RON_ERR_OK;
    RON_ASSERT(service->options.snapshot.write_ms_max > 0);
    err = make_watch("snapshot wanted", sizeof(none), &none, &snapshots->wake, reterr);
    if (err == RON_ERR_OK)
        err = make_watch("snapshot end", sizeof(none), &none, &snapshots->finished, reterr);
    if (err == RON_ERR_OK)
        err = make_watch("snapshot answers", sizeof(none), &none, &snapshots->answered, reterr);
    if (err == RON_ERR_OK)
        err = make_watch("snapshot cuts", sizeof(none), &none, &snapshots->cuts, reterr);
    return err;
}

void snapshots_fini(struct ledger_service *service)
{
    struct snapshots *snapshots = &service->snapshots;

    RON_ASSERT(snapshots->offshoot == NULL); /* the Snapshotter ended it */
    snapshots->wake = rt_watch_free(snapshots->wake);
    snapshots->finished = rt_watch_free(snapshots->finished);
    snapshots->answered = rt_watch_free(snapshots->answered);
    snapshots->cuts = rt_watch_free(snapshots->cuts);
    rt_lock_fini(&snapshots->lock);
}
