/*
 * snapshots_load.c - the newest usable snapshot, found and loaded at start. See snapshots.h.
 *
 * A snapshot is derived: whatever is wrong with one (damaged, foreign, ahead of the log, not of
 * this log, too large for this configuration) is counted and the next older one tried; in the end
 * the log is replayed from its beginning.
 */
#include "base/mem.h"
#include "io/log_format.h"
#include "io/snapshot_file.h"
#include "ledger/service_impl.h"
#include "ledger/state_rows.h"

enum { TRIES_MAX = 8 };

/* The core as new: after a load that failed it is of no use. */
static enum ron_err renew_core(struct ledger_service *service, struct ron_errinfo *reterr)
{
    service->core = ledger_core_free(service->core);
    return ledger_core_new(&service->options.capacity, &service->options.archive, &service->core,
                           reterr);
}

static enum ron_err load_content(struct ledger_service *service, struct io_snapshot *snapshot,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    const uint64_t size = io_snapshot_info(snapshot)->size; /* the file is that long */
    uint8_t *bytes;
    enum ron_err err;

    if (io_snapshot_info(snapshot)->version != LEDGER_SNAPSHOT_VERSION)
        return ron_fail(reterr, RON_ERR_VERSION_SKEW, "a snapshot of version %u",
                        io_snapshot_info(snapshot)->version);
    bytes = ron_table_alloc(size + 1, 1, RON_TABLE_IN_ORDER);
    if (bytes == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a snapshot of %llu bytes",
                        (unsigned long long)size);
    err = io_snapshot_read(snapshot, 0, bytes, (size_t)size, reterr);
    if (err == RON_ERR_OK)
        err = ledger_snapshot_load(service->core, ron_slice_of(bytes, (size_t)size), reterr);
    (void)ron_table_free(bytes);
    return err;
}

/* Is it of this log? The frame it was cut behind must have the root that it has. */
static enum ron_err check_root(struct ledger_service *service, uint64_t batch,
                               struct ledger_root *ret_cut, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_reply reply;
    struct ledger_frame frame;
    struct ron_buf buf;
    enum ron_err err;

    ron_buf_init(&buf, IO_RECORD_SIZE_MAX);
    err = ledger_engine_read(service->engine, batch, &buf, reterr);
    if (err == RON_ERR_OK)
        err = ledger_frame_decode(ron_slice_of(buf.data, buf.size), &frame, reterr);
    if (err == RON_ERR_OK)
        err = ledger_core_reply(service->core, batch, &reply, reterr);
    if (err == RON_ERR_OK && (frame.batch != batch || frame.seq_start != reply.seq_start ||
                              frame.seq_start + frame.entries_count - 1 != reply.seq_end ||
                              reply.seq_end != ledger_core_committed_seq(service->core) ||
                              memcmp(frame.root.bytes, reply.root.bytes, RON_SHA256_SIZE) != 0))
        err = ron_fail(reterr, RON_ERR_MALFORMED, "it is not of this log: batch %llu differs",
                       (unsigned long long)batch);
    if (err == RON_ERR_OK)
        *ret_cut = (struct ledger_root){reply.seq_end, batch, reply.commit_ms, reply.root};
    ron_buf_fini(&buf);
    return err;
}

enum ron_err ledger_service_rows(struct ledger_service *service, uint64_t batch_max,
                                 struct ledger_rows **ret_rows, struct ron_errinfo *reterr)
{
    const struct ledger_snapshot_options *options = &service->options.snapshot;

    if (options->vfs == NULL || options->rows_dir == NULL)
        return ron_fail(reterr, RON_ERR_NOT_READY, "this ledger keeps no states");
    return ledger_rows_open(options->vfs, options->rows_dir, batch_max, ret_rows, reterr);
}

enum ron_err snapshots_load(struct ledger_service *service, struct ledger_root *ret_cut,
                            struct ron_errinfo *reterr)
{
    const struct ledger_snapshot_options *options = &service->options.snapshot;
    struct ledger_snapshot_health *health = &service->snapshots.health;
    uint64_t position_max = ledger_engine_durable(service->engine);

    for (unsigned tries = 0; tries < TRIES_MAX && position_max > 0; tries++) {
        struct ron_errinfo info = {0};
        struct io_snapshot_search search = {0};
        struct io_snapshot *snapshot = NULL;
        enum ron_err err = io_snapshot_open_newest(options->vfs, options->dir, LEDGER_SNAPSHOT_KIND,
                                                   position_max, &snapshot, &search, &info);

        health->ahead_count += tries == 0 ? search.ahead_count : 0;
        health->passed_over_count += search.damaged_count + search.foreign_count;
        if (err != RON_ERR_OK)
            break;
        position_max = io_snapshot_info(snapshot)->position;
        err = load_content(service, snapshot, &info);
        snapshot = io_snapshot_close(snapshot);
        if (err == RON_ERR_OK)
            err = check_root(service, position_max, ret_cut, &info);
        if (err == RON_ERR_OK) {
            health->seq = ret_cut->seq;
            health->batch = ret_cut->batch;
            rt_atomic_store_u64(&service->snapshots.cut_seq, ret_cut->seq);
            return RON_ERR_OK;
        }
        RON_PROBE("ledger: a snapshot is passed over");
        health->passed_over_count++;
        rt_log(service->options.log, RT_LOG_WARN, "a snapshot is passed over", rt_log_info(&info));
        err = renew_core(service, reterr);
        if (err != RON_ERR_OK)
            return err;
        position_max--;
    }
    *ret_cut = (struct ledger_root){.batch = 0};
    return RON_ERR_OK;
}
