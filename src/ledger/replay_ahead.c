/*
 * replay_ahead.c - see replay_ahead.h.
 *
 * Two queues that are never full: sheaves to fill, sheaves that are filled. The reader closes the
 * second when it ends, with `end` written before; whoever stops first closes both.
 */
#include "ledger/replay_ahead.h"

#include "base/assert.h"
#include "base/mem.h"
#include "rt/lock.h"
#include "rt/queue.h"
#include "rt/supervisor.h"

struct ledger_ahead {
    struct ledger_ahead_options options;
    struct ron_merkle_frontier frontier; /* reader */
    struct ledger_sheaf sheaves[LEDGER_AHEAD_SHEAVES];
    struct rt_queue *empty, *filled;
    struct rt_supervisor *supervisor; /* its own: a stop of others ends with who replays */
    struct rt_task *task;
    struct ledger_sheaf *filling; /* reader; NULL: none in hand */
    struct ledger_sheaf *taken;   /* who replays */
    struct ron_errinfo end;       /* reader, before it closes `filled`; err OK: all was read */
};

/* Nothing goes in any more, and nothing is left. */
static void close_queue(struct rt_queue *queue)
{
    void *items[LEDGER_AHEAD_SHEAVES];

    if (queue == NULL)
        return;
    rt_queue_close(queue);
    (void)!rt_queue_try_recv_many(queue, items, LEDGER_AHEAD_SHEAVES);
}

static struct rt_queue_item item_of(struct ledger_sheaf *sheaf)
{
    return (struct rt_queue_item){sheaf, 1};
}

static void send_filled(struct ledger_ahead *ahead)
{
    struct ledger_sheaf *sheaf = RON_TAKE(ahead->filling);

    if (sheaf != NULL && sheaf->frames_count > 0)
        (void)!rt_queue_try_send(ahead->filled, item_of(sheaf), NULL); /* closed: nobody wants it */
}

/* A sheaf with room for the frame. */
static enum ron_err make_room(struct ledger_ahead *ahead, size_t frame_size,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    void *item = NULL;
    enum ron_err err;

    if (ahead->filling != NULL && ledger_sheaf_has_room(ahead->filling, frame_size))
        return RON_ERR_OK;
    send_filled(ahead);
    err = rt_queue_recv(ahead->empty, RT_DEADLINE_NEVER, &item, reterr);
    if (err != RON_ERR_OK)
        return err;
    ahead->filling = item;
    return ledger_sheaf_empty(ahead->filling, frame_size, reterr);
}

static enum ron_err take_frame(void *context, uint64_t number, struct ron_slice bytes,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_ahead *ahead = context;
    enum ron_err err = make_room(ahead, bytes.size, reterr);
    struct ledger_sheaf *sheaf = ahead->filling;
    const bool is_known = number <= ahead->options.known;
    const struct ledger_frame *frame;

    if (err != RON_ERR_OK)
        return err;
    rt_task_beat(rt_task_self());
    err = is_known ? ledger_sheaf_add(sheaf, bytes, reterr)
                   : ledger_sheaf_prepare(sheaf, bytes, &ahead->frontier, reterr);
    if (err != RON_ERR_OK)
        return ledger_replay_fault(err);
    frame = &sheaf->frames[sheaf->frames_count - 1].frame;
    if (frame->batch == number) {
        if (ahead->options.pages != NULL)
            ledger_pages_expect(ahead->options.pages, frame, is_known);
        return RON_ERR_OK;
    }
    sheaf->frames_count--; /* nobody sees it */
    return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "record %llu is batch %llu",
                    (unsigned long long)number, (unsigned long long)frame->batch);
}

/* Where the pointer is called: it may block. */
static enum ron_err call_source(struct ledger_ahead *ahead, struct ron_errinfo *reterr) RON_BLOCKS
{
    rt_assert_no_lock_held();
    return ahead->options.source(ahead->options.context, take_frame, ahead, reterr);
}

static enum ron_err ahead_run(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct ledger_ahead *ahead = argument;
    struct ron_errinfo info = {0};
    enum ron_err err = call_source(ahead, &info);

    (void)task;
    send_filled(ahead);
    if (err != RON_ERR_OK) {
        info.err = err == RON_ERR_NOT_FOUND ? RON_ERR_IO : err; /* a file, not the end */
        ahead->end = info;
    }
    rt_queue_close(ahead->filled);
    return RON_ERR_OK; /* who replays has been told */
}

static enum ron_err make_queue(const struct ledger_ahead *ahead, const char *name,
                               struct rt_queue **ret_queue, struct ron_errinfo *reterr)
{
    const struct rt_queue_options options = {.name = name,
                                             .owner = ahead->options.owner,
                                             .policy = "never full",
                                             .capacity = LEDGER_AHEAD_SHEAVES};

    return rt_queue_new(&options, ret_queue, reterr);
}

enum ron_err ledger_ahead_start(const struct ledger_ahead_options *options,
                                struct ledger_ahead **ret_ahead, struct ron_errinfo *reterr)
{
    struct ledger_ahead *ahead = ron_mem_alloc(sizeof(*ahead));
    const struct rt_task_options task = {.kind = "log reader",
                                         .name = "log reader",
                                         .owner = options->owner,
                                         .fn = ahead_run,
                                         .argument = ahead,
                                         .restart = RT_RESTART_NEVER};
    const struct rt_supervisor_options tasks = {
        .name = "log reader", .owner = options->owner, .tasks_max = 1};
    enum ron_err err;

    if (ahead == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a log read ahead");
    ahead->options = *options;
    ahead->frontier = *options->frontier;
    err = make_queue(ahead, "frames to fill", &ahead->empty, reterr);
    if (err == RON_ERR_OK)
        err = make_queue(ahead, "frames read", &ahead->filled, reterr);
    for (uint32_t i = 0; i < LEDGER_AHEAD_SHEAVES && err == RON_ERR_OK; i++) {
        err = ledger_sheaf_init(&ahead->sheaves[i], reterr);
        if (err == RON_ERR_OK)
            RON_MUST_ZERO(rt_queue_try_send(ahead->empty, item_of(&ahead->sheaves[i]), NULL));
    }
    if (err == RON_ERR_OK)
        err = rt_supervisor_new(&tasks, &ahead->supervisor, reterr);
    if (err == RON_ERR_OK)
        err = rt_task_spawn(ahead->supervisor, &task, &ahead->task, reterr);
    if (err != RON_ERR_OK) {
        (void)ledger_ahead_free(ahead);
        return err;
    }
    *ret_ahead = ahead;
    return RON_ERR_OK;
}

enum ron_err ledger_ahead_next(struct ledger_ahead *ahead, const struct ledger_sheaf **ret_sheaf,
                               struct ron_errinfo *reterr)
{
    void *item = NULL;

    if (ahead->taken != NULL)
        (void)!rt_queue_try_send(ahead->empty, item_of(RON_TAKE(ahead->taken)), NULL);
    if (rt_queue_recv(ahead->filled, RT_DEADLINE_NEVER, &item, NULL) == RON_ERR_OK) {
        ahead->taken = item;
        *ret_sheaf = ahead->taken;
        return RON_ERR_OK;
    }
    if (ahead->end.err == RON_ERR_OK)
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "the log ends here");
    if (reterr != NULL)
        *reterr = ahead->end;
    return ahead->end.err;
}

struct ledger_ahead *ledger_ahead_free(struct ledger_ahead *ahead)
{
    enum ron_err result;

    rt_assert_no_lock_held();
    if (ahead == NULL)
        return NULL;
    close_queue(ahead->empty); /* so that the reader finds no sheaf to fill */
    close_queue(ahead->filled);
    if (ahead->task != NULL)
        RON_MUST_ZERO(rt_task_join(ahead->task, RT_DEADLINE_NEVER, &result, NULL));
    ahead->supervisor = rt_supervisor_free(ahead->supervisor);
    ahead->empty = rt_queue_free(ahead->empty);
    ahead->filled = rt_queue_free(ahead->filled);
    for (uint32_t i = 0; i < LEDGER_AHEAD_SHEAVES; i++)
        ledger_sheaf_fini(&ahead->sheaves[i]);
    return ron_mem_free(ahead);
}
