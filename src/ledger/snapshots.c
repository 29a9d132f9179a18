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
#include "ledger/snapshot_pace.h"
#include "ledger/state_rows.h"

enum { KEEP = 2 };                     /* one survives a damaged newest */
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

/* Committer. The Sequencer waits: nothing is applied that is not committed, unless `broken`. */
void snapshots_cut(struct ledger_service *service, bool broken)
{
    struct snapshots *snapshots = &service->snapshots;
    uint64_t count = 0;

    snapshots->cut = ledger_read_head(service);
    snapshots->cut_durable = ledger_engine_durable(service->engine);
    if (broken) {
        RON_PROBE("ledger: a snapshot wanted while nothing can be committed");
        (void)ron_fail(&snapshots->cut_info, RON_ERR_SAFE_MODE, "the log failed, or has no room");
    } else if (snapshots->cut.batch == 0) {
        (void)ron_fail(&snapshots->cut_info, RON_ERR_NOT_FOUND, "nothing was committed yet");
    }
    (void)rt_watch_get(snapshots->cuts, &count);
    count++;
    rt_watch_set(snapshots->cuts, &count);
}

bool snapshots_begin(struct ledger_service *service)
{
    struct snapshots *snapshots = &service->snapshots;
    const uint64_t begin_ns = rt_now_ns();
    uint64_t version = rt_watch_get(snapshots->cuts, NULL);

    if (snapshots->asks_room) {
        snapshots->asks_room = ledger_core_shadow_lacks(service->core, snapshots->spare,
                                                        &snapshots->room);
        if (snapshots->asks_room)
            return false;
    }
    if (rt_queue_send_until(service->commit, (struct rt_queue_item){&snapshots->barrier, 1},
                            RT_DEADLINE_NEVER, &snapshots->cut_info) != RON_ERR_OK)
        return false;
    RON_MUST_ZERO(rt_watch_wait(snapshots->cuts, version, RT_DEADLINE_NEVER, NULL, &version, NULL));
    /* The Committer has gone on, but to nothing: all that it will be sent comes from here. */
    if (snapshots->cut_info.err == RON_ERR_OK)
        (void)!ledger_core_shadow_begin(service->core, &snapshots->spare, &snapshots->cut_info);
    snapshots->health.pause_ns = rt_now_ns() - begin_ns;
    return snapshots->cut_info.err == RON_ERR_OK;
}

bool snapshots_copy(struct ledger_service *service)
{
    if (!ledger_core_shadow_copy(service->core, service->options.snapshot.copy_max))
        return false;
    service->snapshots.shadow = ledger_core_shadow_take(service->core);
    return true;
}

void snapshots_drop(struct ledger_service *service)
{
    ledger_core_shadow_drop(service->core);
    (void)ron_fail(&service->snapshots.cut_info, RON_ERR_DRAINING, "the service stops");
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
    uint32_t pieces_count;
    struct ron_sha256 root;
    uint64_t rows_count;
};

/* A piece of one of the files; a stop is seen once a MiB: not more often, because the pipeline
 * needs the queue's lock and we are slow to give it back. */
static enum ron_err put_piece(struct intake *intake, struct io_snapshot_writer *writer,
                              struct ron_slice bytes, struct ron_errinfo *reterr) RON_BLOCKS
{
    if (intake->pieces_count++ % 16 == 0 && rt_queue_closed(intake->service->preval))
        return ron_fail(reterr, RON_ERR_CANCELED, "the service stops");
    if (rt_deadline_expired(intake->deadline))
        return ron_fail(reterr, RON_ERR_TIMEOUT, "a snapshot took longer than %u ms",
                        intake->service->options.snapshot.write_ms_max);
    return io_snapshot_put(writer, bytes, reterr);
}

static enum ron_err put_state(void *context, struct ron_slice bytes,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    struct intake *intake = context;

    return put_piece(intake, intake->writer, bytes, reterr);
}

static enum ron_err put_row(void *context, struct ron_slice bytes,
                            struct ron_errinfo *reterr) RON_BLOCKS
{
    struct intake *intake = context;

    return put_piece(intake, intake->rows, bytes, reterr);
}

/* State and rows into their files, and the root that they lead to. */
static enum ron_err write_state(struct intake *intake, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct snapshots *snapshots = &intake->service->snapshots;
    const struct ledger_core *view = ledger_shadow_view(snapshots->shadow);
    struct ledger_scratch scratch;
    enum ron_err err = ledger_scratch_init(&scratch, view, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = ledger_scratch_write(&scratch, view, put_state, intake, reterr);
    if (err == RON_ERR_OK)
        err = ledger_scratch_root(&scratch, view, intake->rows == NULL ? NULL : put_row, intake,
                                  &intake->root, &intake->rows_count, reterr);
    ledger_scratch_fini(&scratch);
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
static enum ron_err end_rows(struct intake *intake, struct ron_errinfo *reterr) RON_BLOCKS
{
    uint8_t tail[LEDGER_ROWS_TAIL];
    struct io_snapshot_info info = {0};
    enum ron_err err;

    if (intake->rows == NULL)
        return RON_ERR_OK;
    ron_store_le64(tail, intake->service->snapshots.cut.seq);
    memcpy(tail + 8, intake->root.bytes, RON_SHA256_SIZE);
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

static enum ron_err write_files(struct intake *intake, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_service *service = intake->service;
    struct snapshots *snapshots = &service->snapshots;
    const struct ledger_snapshot_options *options = &service->options.snapshot;
    struct io_snapshot_info info = {0};
    uint64_t removed = 0;
    enum ron_err err = begin_files(intake, reterr);

    if (err == RON_ERR_OK)
        err = write_state(intake, reterr);
    if (err == RON_ERR_OK)
        err = call_before(service, reterr);
    if (err == RON_ERR_OK && service_is_safe(service)) /* meanwhile: those that are there stay */
        err = ron_fail(reterr, RON_ERR_SAFE_MODE, "ledger is SafeMode");
    if (err == RON_ERR_OK)
        err = end_rows(intake, reterr);
    if (err != RON_ERR_OK) {
        intake->rows = io_snapshot_abandon(intake->rows);
        intake->writer = io_snapshot_abandon(intake->writer);
        return err;
    }
    err = io_snapshot_commit(RON_TAKE(intake->writer), &info, reterr);
    if (err != RON_ERR_OK)
        return err;
    snapshots->health.size = info.size;
    snapshots->health.rows = intake->rows_count;
    return io_snapshot_retain(options->vfs, options->dir, KEEP, &removed, reterr);
}

/* Send the marker. It is answered when the shadow is whole, or there is none. */
static enum ron_err send_marker(struct ledger_service *service,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    struct snapshots *snapshots = &service->snapshots;

    snapshots->marker = (struct ledger_request){.size = 1, .deadline = RT_DEADLINE_NEVER};
    snapshots->cut_info = (struct ron_errinfo){.err = RON_ERR_OK};
    return hand_in(service, &snapshots->marker, reterr);
}

static enum ron_err cut(struct ledger_service *service, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct snapshots *snapshots = &service->snapshots;
    enum ron_err err;

    snapshots->asks_room = true;
    err = send_marker(service, reterr);
    if (err == RON_ERR_OK && snapshots->asks_room) {
        snapshots->spare = ledger_shadow_free(snapshots->spare);
        snapshots->spare = ledger_shadow_new(&snapshots->room); /* NULL: then the cut tries */
        snapshots->asks_room = false;
        err = send_marker(service, reterr);
    }
    snapshots->spare = ledger_shadow_free(snapshots->spare); /* it is there if it was too small */
    if (err == RON_ERR_OK && snapshots->shadow == NULL) {
        err = snapshots->cut_info.err;
        if (reterr != NULL)
            *reterr = snapshots->cut_info;
    }
    return err;
}

static enum ron_err take(struct ledger_service *service, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct snapshots *snapshots = &service->snapshots;
    struct intake intake = {.service = service};
    enum ron_err err;

    if (service_is_safe(service)) /* its Anchor would be a write */
        return ron_fail(reterr, RON_ERR_SAFE_MODE, "ledger is SafeMode");
    intake.deadline = rt_deadline_after_ms(service->options.snapshot.write_ms_max);
    err = cut(service, reterr);
    if (err == RON_ERR_OK)
        err = write_files(&intake, reterr);
    snapshots->spare = RON_TAKE(snapshots->shadow);
    if (err == RON_ERR_OK)
        err = anchor(service, &intake.root, reterr);
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

/* Take one now, and remember when. */
static void take_now(struct ledger_service *service, struct snapshot_pace *pace) RON_BLOCKS
{
    const uint64_t min_ns = service->options.snapshot.min_ms * RT_NS_PER_MS;
    enum ron_err err;

    pace->begin_ns = rt_now_ns();
    err = take_one(service);
    pace->end_ns = rt_now_ns();
    pace->apart_ns = err == RON_ERR_OK || min_ns > RETRY_NS ? min_ns : RETRY_NS;
}

/* Is it time? Else until when to sleep, unless woken. */
static bool is_due(struct ledger_service *service, const struct snapshot_pace *pace,
                   struct rt_deadline *ret_next)
{
    const uint64_t head_seq = ledger_core_committed_seq(service->core);
    const uint64_t cut_seq = rt_atomic_load_u64(&service->snapshots.cut_seq);
    const bool safe = service_is_safe(service);
    const uint64_t fresh = head_seq > cut_seq && !safe ? head_seq - cut_seq : 0;
    const uint64_t wait_ns = snapshot_wait_ns(pace, fresh, rt_now_ns());

    if (safe)
        rt_atomic_store_u32(&service->snapshots.told, 0); /* what comes after it tells us again */

    *ret_next = rt_deadline_after_ns(wait_ns); /* never stays never */
    return wait_ns == 0;
}

enum ron_err snapshots_run(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct ledger_service *service = argument;
    struct snapshots *snapshots = &service->snapshots;
    uint64_t version = rt_watch_get(snapshots->wake, NULL);
    uint64_t served_count = 0;
    const struct ledger_snapshot_options *options = &service->options.snapshot;
    const uint64_t start_ns = rt_now_ns();
    struct snapshot_pace pace = {.entries = options->entries,
                                 .period_ns = options->ms * RT_NS_PER_MS,
                                 .apart_ns = options->min_ms * RT_NS_PER_MS,
                                 .begin_ns = start_ns,
                                 .end_ns = start_ns};
    struct rt_deadline next;

    rt_task_step_back();
    if (ledger_service_await_start(service, RT_DEADLINE_NEVER, NULL) != RON_ERR_OK)
        return RON_ERR_OK;
    for (;;) {
        const uint64_t wanted_count = rt_atomic_load_u64(&snapshots->wanted_count);

        if (rt_queue_closed(service->preval))
            return RON_ERR_OK;
        if (wanted_count > served_count || is_due(service, &pace, &next)) {
            take_now(service, &pace);
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
    RON_ASSERT(service->options.snapshot.copy_max > 0);
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

    RON_ASSERT(snapshots->shadow == NULL); /* the Snapshotter is done with it */
    snapshots->spare = ledger_shadow_free(snapshots->spare);
    snapshots->wake = rt_watch_free(snapshots->wake);
    snapshots->finished = rt_watch_free(snapshots->finished);
    snapshots->answered = rt_watch_free(snapshots->answered);
    snapshots->cuts = rt_watch_free(snapshots->cuts);
    rt_lock_fini(&snapshots->lock);
}
