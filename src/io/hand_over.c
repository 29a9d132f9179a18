/*
 * hand_over.c - requests on their way to a queue, in company. See request.h.
 *
 * A queue whose receiver sleeps costs its sender a system call and both threads a switch. Sent one
 * by one, each request of a turn paid that: measured, 3.2 futex calls for each request.
 */
#include "base/assert.h"
#include "io/conn.h"
#include "rt/queue.h"

static void leave(struct io_request *request, struct rt_queue_item item, struct loop_handed to)
{
    struct io_call *call = (struct io_call *)request;
    struct io_loop *loop = call->loop;

    RON_ASSERT(call->dispatched);
    RON_ASSERT(loop->self == rt_task_self()); /* from its handler only */
    if (loop->handed_count == LOOP_HANDED_MAX)
        loop_hand_over(loop);
    loop->handed_items[loop->handed_count] = item;
    loop->handed_to[loop->handed_count++] = to;
}

void io_request_send(struct io_request *request, struct rt_queue *queue, uint32_t weight)
{
    leave(request, (struct rt_queue_item){request, weight}, (struct loop_handed){.queue = queue});
    ((struct io_call *)request)->loop->handed_on_count++;
}

void io_request_gather(struct io_request *request, io_gathered_fn *fn, void *context, void *item)
{
    io_request_gather_here(request, fn, context, item);
    ((struct io_call *)request)->loop->handed_on_count++;
}

void io_request_gather_here(struct io_request *request, io_gathered_fn *fn, void *context,
                            void *item)
{
    RON_ASSERT(item != NULL);
    leave(request, (struct rt_queue_item){item, 1},
          (struct loop_handed){.fn = fn, .context = context});
}

static void send_run(struct io_loop *loop, size_t first, size_t count)
{
    struct ron_errinfo info = {0};
    size_t sent = 0;
    enum ron_err err = rt_queue_try_send_many(loop->handed_to[first].queue,
                                              &loop->handed_items[first], count, &sent, &info);

    if (err != RON_ERR_OK)
        sent = 0;
    else if (sent < count)
        err = ron_fail(&info, RON_ERR_BUSY, "a queue is full");
    for (size_t i = first + sent; i < first + count; i++)
        io_reply_error(loop->handed_items[i].pointer, err, &info, (struct ron_slice){0});
}

static void give_run(struct io_loop *loop, size_t first, size_t count)
{
    const struct loop_handed *to = &loop->handed_to[first];
    void *items[IO_GATHERED_MAX];

    for (size_t i = 0; i < count; i++)
        items[i] = loop->handed_items[first + i].pointer;
    to->fn(to->context, items, count);
}

static bool same_end(const struct loop_handed *a, const struct loop_handed *b)
{
    return a->queue == b->queue && a->fn == b->fn && a->context == b->context;
}

void loop_hand_over(struct io_loop *loop)
{
    for (size_t at = 0; at < loop->handed_count;) {
        const struct loop_handed *to = &loop->handed_to[at];
        size_t count = 1;

        while (at + count < loop->handed_count && same_end(to, &loop->handed_to[at + count]) &&
               (to->queue != NULL || count < IO_GATHERED_MAX))
            count++;
        if (to->queue != NULL)
            send_run(loop, at, count);
        else
            give_run(loop, at, count);
        at += count;
    }
    loop->handed_count = 0;
    loop->handed_on_count = 0;
}
