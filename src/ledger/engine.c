/*
 * engine.c - where the table of an engine is called. See engine.h.
 */
#include "ledger/engine.h"

#include "base/assert.h"
#include "base/limits.h"
#include "rt/lock.h"

enum ron_err ledger_engine_recover(struct ledger_engine *engine, uint64_t first,
                                   ledger_frame_fn *fn, void *context, struct ron_errinfo *reterr)
{
    rt_assert_no_lock_held();
    return engine->ops->recover(engine, first, fn, context, reterr);
}

enum ron_err ledger_engine_append(struct ledger_engine *engine, const struct ron_slice *parts,
                                  size_t parts_count, struct rt_deadline deadline,
                                  uint64_t *ret_number, struct ron_errinfo *reterr)
{
    rt_assert_no_lock_held();
    RON_ASSERT(parts_count > 0);
    return engine->ops->append(engine, parts, parts_count, deadline, ret_number, reterr);
}

enum ron_err ledger_engine_append_many(struct ledger_engine *engine, const struct ron_slice *frames,
                                       size_t frames_count, struct rt_deadline deadline,
                                       size_t *ret_count, uint64_t *ret_number,
                                       struct ron_errinfo *reterr)
{
    enum ron_err err;

    rt_assert_no_lock_held();
    RON_ASSERT(frames_count > 0);
    if (engine->ops->append_many != NULL)
        return engine->ops->append_many(engine, frames, frames_count, deadline, ret_count,
                                        ret_number, reterr);
    err = engine->ops->append(engine, frames, 1, deadline, ret_number, reterr);
    if (err == RON_ERR_OK)
        *ret_count = 1;
    return err;
}

enum ron_err ledger_engine_wait(struct ledger_engine *engine, uint64_t number,
                                struct rt_deadline deadline, struct ron_errinfo *reterr)
{
    rt_assert_no_lock_held();
    return engine->ops->wait(engine, number, deadline, reterr);
}

enum ron_err ledger_engine_wait_nudged(struct ledger_engine *engine, uint64_t number, uint32_t seen,
                                       struct rt_deadline deadline, struct ron_errinfo *reterr)
{
    rt_assert_no_lock_held();
    if (engine->ops->wait_nudged == NULL)
        return engine->ops->wait(engine, number, deadline, reterr);
    return engine->ops->wait_nudged(engine, number, seen, deadline, reterr);
}

uint32_t ledger_engine_nudges(struct ledger_engine *engine)
{
    return engine->ops->nudges == NULL ? 0 : engine->ops->nudges(engine);
}

void ledger_engine_nudge(struct ledger_engine *engine)
{
    if (engine->ops->nudge != NULL)
        engine->ops->nudge(engine);
}

uint64_t ledger_engine_durable(struct ledger_engine *engine)
{
    return engine->ops->durable(engine);
}

enum ron_err ledger_engine_read(struct ledger_engine *engine, uint64_t number, struct ron_buf *buf,
                                struct ron_errinfo *reterr)
{
    rt_assert_no_lock_held();
    return engine->ops->read(engine, number, buf, reterr);
}

enum ron_err ledger_engine_find(struct ledger_engine *engine, const uint8_t key[16],
                                uint64_t number_max, ledger_place_fn *fn, void *context,
                                struct ron_errinfo *reterr)
{
    rt_assert_no_lock_held();
    return engine->ops->find(engine, key, number_max, fn, context, reterr);
}

enum ron_err ledger_engine_may_have(struct ledger_engine *engine, const struct io_log_keys *keys,
                                    uint64_t number_max, uint64_t *ret_bits,
                                    struct ron_errinfo *reterr)
{
    rt_assert_no_lock_held();
    return engine->ops->may_have(engine, keys, number_max, ret_bits, reterr);
}

uint64_t ledger_engine_indexed(struct ledger_engine *engine)
{
    return engine->ops->indexed(engine);
}

enum ron_err ledger_engine_read_each(struct ledger_engine *engine, uint64_t first, uint64_t last,
                                     ledger_frame_fn *fn, void *context, struct ron_errinfo *reterr)
{
    struct ron_buf buf;
    enum ron_err err = RON_ERR_OK;

    rt_assert_no_lock_held();
    if (engine->ops->read_each != NULL)
        return engine->ops->read_each(engine, first, last, fn, context, reterr);
    ron_buf_init(&buf, RON_ALLOCATION_SIZE_MAX);
    for (; err == RON_ERR_OK && first <= last; first++) {
        ron_buf_reset(&buf);
        err = engine->ops->read(engine, first, &buf, reterr);
        if (err == RON_ERR_OK)
            err = fn(context, first, ron_buf_slice(&buf), reterr);
    }
    ron_buf_fini(&buf);
    return err;
}

enum ron_err ledger_engine_close(struct ledger_engine *engine, struct rt_deadline deadline,
                                 struct ron_errinfo *reterr)
{
    rt_assert_no_lock_held();
    return engine->ops->close(engine, deadline, reterr);
}
