/*
 * hand_over.c - requests on their way to a queue, together at the end of a turn. See request.h.
 *
 * A queue whose receiver sleeps costs its sender a system call and both threads a switch. Sent one
 * by one, each request of a turn paid that: measured, 3.2 futex calls for each request.
 */
#include "base/assert.h"
#include "io/conn.h"
#include "rt/queue.h"

void io_request_send(struct io_request *request, struct rt_queue *queue, uint32_t weight)
{
    struct io_call *call = (struct io_call *)request;
    struct io_loop *loop = call->loop;

    RON_ASSERT(call->dispatched);
    RON_ASSERT(loop->self == rt_task_self()); /* from its handler only */
    if (loop->handed_count == LOOP_HANDED_MAX)
        loop_hand_over(loop);
    loop->handed_items[loop->handed_count] = (struct rt_queue_item){request, weight};
    loop->handed_queues[loop->handed_count++] = queue;
}

/* Those from `first` on that go to the same queue; returns how many. */
static size_t send_run(struct io_loop *loop, size_t first)
{
    struct rt_queue *queue = loop->handed_queues[first];
    struct ron_errinfo info = {0};
    size_t count = 1;
    size_t sent = 0;
    enum ron_err err;

    while (first + count < loop->handed_count && loop->handed_queues[first + count] == queue)
        count++;
    err = rt_queue_try_send_many(queue, &loop->handed_items[first], count, &sent, &info);
    if (err != RON_ERR_OK)
        sent = 0;
    else if (sent < count)
        err = ron_fail(&info, RON_ERR_BUSY, "a queue is full");
    for (size_t i = first + sent; i < first + count; i++)
        io_reply_error(loop->handed_items[i].pointer, err, &info, (struct ron_slice){0});
    return count;
}

void loop_hand_over(struct io_loop *loop)
{
    for (size_t at = 0; at < loop->handed_count;)
        at += send_run(loop, at);
    loop->handed_count = 0;
}
