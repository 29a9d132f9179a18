/*
 * queue.c - bounded queues. See queue.h; invariants: README.md.
 *
 * One lock, one ring, one condition a side. Wake-ups are sent under the lock, so a queue may be
 * freed as soon as its last user has returned, and only when someone sleeps who was not woken yet:
 * `woken` counts those on their way. It never exceeds them, because whoever returns takes one off,
 * woken or not. No wake-up is lost:
 *
 *  - while items and sleepers are there, one receiver is on its way: a send wakes one, and whoever
 *    leaves items behind wakes the next. A receiver that was woken (or timed out) always looks for
 *    items before it gives up, so an item never lies beside sleeping receivers alone;
 *  - the same for room and senders where a slot is a slot. Where weights differ, a large sender may
 *    be woken where only a small one fits: freed room wakes them all.
 */
#include "rt/queue.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"
#include "rt/lock.h"
#include "rt/registry.h"

#define QUEUE_MAGIC 0x71e4c35bu
#define QUEUE_DEAD  0xdead71e4u

enum { WAIT_SAMPLE_EVERY = 16 };
_Static_assert((WAIT_SAMPLE_EVERY & (WAIT_SAMPLE_EVERY - 1)) == 0, "a mask");

struct slot {
    void *pointer;
    uint32_t weight;
    bool sampled;
    uint64_t sent_ns; /* if sampled */
};

struct rt_queue {
    struct rt_lock lock; /* first: the allocator's own marks must not hit the magic of a dead one */
    uint32_t magic;
    uint32_t capacity;
    uint64_t weight_max; /* UINT64_MAX where the options say 0 */
    const char *name;
    struct rt_cond items_cond;            /* receivers wait for items */
    struct rt_cond room_cond;             /* senders wait for room */
    uint32_t head RON_GUARDED_BY(queue);  /* index of the oldest item */
    uint32_t depth RON_GUARDED_BY(queue); /* items held */
    uint64_t weight RON_GUARDED_BY(queue);
    uint32_t receivers_waiting RON_GUARDED_BY(queue);
    uint32_t receivers_woken RON_GUARDED_BY(queue); /* of those waiting */
    uint32_t senders_waiting RON_GUARDED_BY(queue);
    uint32_t senders_woken RON_GUARDED_BY(queue);
    bool closed RON_GUARDED_BY(queue);
    uint32_t depth_peak RON_GUARDED_BY(queue);
    uint64_t weight_peak RON_GUARDED_BY(queue);
    uint64_t sent_count RON_GUARDED_BY(queue);
    uint64_t received_count RON_GUARDED_BY(queue);
    uint64_t rejected_count RON_GUARDED_BY(queue);
    uint64_t dropped_count RON_GUARDED_BY(queue);
    uint64_t timed_out_count RON_GUARDED_BY(queue);
    uint64_t wait_samples_count RON_GUARDED_BY(queue);
    uint64_t wait_ns_sum RON_GUARDED_BY(queue);
    uint64_t wait_ns_max RON_GUARDED_BY(queue);
    struct slot *slots RON_GUARDED_BY(queue); /* capacity of them */
};

/* A queue that was freed is named, if its memory still tells. */
static void RON_COLD RON_NORETURN queue_died(const struct rt_queue *queue)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "queue %s is used after it was freed",
                   queue->magic == QUEUE_DEAD ? queue->name : "?");
    ron_assert_fail(__FILE__, __LINE__, __func__, text);
}

static inline void queue_check_alive(const struct rt_queue *queue)
{
    if (RON_UNLIKELY(queue->magic != QUEUE_MAGIC))
        queue_died(queue);
}

static void queue_lock(struct rt_queue *queue) RON_LOCKS(queue)
{
    queue_check_alive(queue);
    rt_lock_take(&queue->lock);
}

static void queue_unlock(struct rt_queue *queue) RON_UNLOCKS(queue)
{
    rt_lock_drop(&queue->lock);
}

static void queue_check(const struct rt_queue *queue) RON_NEEDS(queue)
{
    RON_ASSERT(queue->depth <= queue->capacity);
    RON_ASSERT(queue->head < queue->capacity);
    RON_ASSERT(queue->weight <= queue->weight_max);
    RON_ASSERT(queue->depth > 0 || queue->weight == 0);
    RON_ASSERT(queue->sent_count == queue->received_count + queue->dropped_count + queue->depth);
}

static enum ron_err queue_register(struct rt_queue *queue, const struct rt_queue_options *options,
                                   struct ron_errinfo *reterr)
{
    const struct rt_registry_entry entry = {
        .object = queue,
        .kind = RT_KIND_QUEUE,
        .name = options->name,
        .policy = options->policy,
        .owner = options->owner,
        .capacity = options->capacity,
    };
    return rt_registry_add(&entry, reterr);
}

/* The end of a queue that is not, or no longer, in the registry. */
static void queue_destroy(struct rt_queue *queue)
{
    struct slot *slots;

    queue_lock(queue);
    queue_check(queue);
    RON_ASSERT(queue->depth == 0); /* its items would be lost without an answer */
    RON_ASSERT(queue->receivers_waiting == 0);
    RON_ASSERT(queue->senders_waiting == 0);
    slots = RON_TAKE(queue->slots);
    queue->magic = QUEUE_DEAD;
    queue_unlock(queue);
    rt_cond_fini(&queue->room_cond);
    rt_cond_fini(&queue->items_cond);
    rt_lock_fini(&queue->lock);
    ron_mem_free(slots);
    ron_mem_free(queue);
}

enum ron_err rt_queue_new(const struct rt_queue_options *options, struct rt_queue **ret_queue,
                          struct ron_errinfo *reterr)
{
    struct rt_queue *queue = ron_mem_alloc(sizeof(*queue));
    struct slot *slots = ron_mem_alloc_array(options->capacity, sizeof(*slots));
    enum ron_err err;

    RON_ASSERT(options->name != NULL);
    RON_ASSERT(options->capacity > 0);
    RON_ASSERT(options->capacity <= RT_QUEUE_CAPACITY_MAX);
    if (queue == NULL || slots == NULL) {
        ron_mem_free(slots);
        ron_mem_free(queue);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "queue %s of %u items", options->name,
                        options->capacity);
    }
    rt_lock_init(&queue->lock, options->name, RON_RANK_queue);
    rt_cond_init(&queue->items_cond, options->name);
    rt_cond_init(&queue->room_cond, options->name);
    queue->name = options->name;
    queue->capacity = options->capacity;
    queue->weight_max = options->weight_max != 0 ? options->weight_max : UINT64_MAX;
    queue->magic = QUEUE_MAGIC;
    queue_lock(queue);
    queue->slots = slots;
    queue_unlock(queue);
    err = queue_register(queue, options, reterr); /* last: from here on others may look at it */
    if (err != RON_ERR_OK) {
        queue_destroy(queue);
        return err;
    }
    *ret_queue = queue;
    return RON_ERR_OK;
}

struct rt_queue *rt_queue_free(struct rt_queue *queue)
{
    if (queue == NULL)
        return NULL;
    queue_check_alive(queue);
    rt_registry_remove(queue); /* first: nobody looks at it any more */
    queue_destroy(queue);
    return NULL;
}

static bool has_room(const struct rt_queue *queue, uint32_t weight) RON_NEEDS(queue)
{
    return queue->depth < queue->capacity && weight <= queue->weight_max - queue->weight;
}

static struct slot *slot_at(const struct rt_queue *queue, uint32_t offset) RON_NEEDS(queue)
{
    uint32_t index = queue->head + offset; /* both below 2^20 */

    RON_ASSERT(offset < queue->capacity);
    return &queue->slots[index < queue->capacity ? index : index - queue->capacity];
}

/* The time, read once a call however many items it moves, and only if a sample needs it. */
static uint64_t read_once(uint64_t *now_ns)
{
    if (*now_ns == 0)
        *now_ns = rt_now_ns();
    return *now_ns;
}

/* *now_ns is 0 before the first item of a call. */
static inline void push(struct rt_queue *queue, struct rt_queue_item item, uint64_t *now_ns)
    RON_NEEDS(queue)
{
    struct slot *slot = slot_at(queue, queue->depth);

    RON_ASSERT(item.pointer != NULL);
    RON_ASSERT(slot->pointer == NULL);
    slot->pointer = item.pointer;
    slot->weight = item.weight;
    slot->sampled = (queue->sent_count & (WAIT_SAMPLE_EVERY - 1)) == 0;
    if (slot->sampled)
        slot->sent_ns = read_once(now_ns);
    queue->depth++;
    queue->weight += item.weight;
    queue->sent_count++;
    if (queue->depth > queue->depth_peak)
        queue->depth_peak = queue->depth;
    if (queue->weight > queue->weight_peak)
        queue->weight_peak = queue->weight;
}

static inline void *pop(struct rt_queue *queue, uint64_t *now_ns) RON_NEEDS(queue)
{
    struct slot *slot = slot_at(queue, 0);
    void *pointer = RON_TAKE(slot->pointer);

    RON_ASSERT(queue->depth > 0);
    RON_ASSERT(pointer != NULL);
    RON_ASSERT(queue->weight >= slot->weight);
    if (slot->sampled) {
        uint64_t wait_ns = read_once(now_ns) - slot->sent_ns;

        queue->wait_samples_count++;
        queue->wait_ns_sum += wait_ns;
        if (wait_ns > queue->wait_ns_max)
            queue->wait_ns_max = wait_ns;
    }
    queue->head = queue->head + 1 < queue->capacity ? queue->head + 1 : 0;
    queue->depth--;
    queue->weight -= slot->weight;
    return pointer;
}

/* Items are there: is a receiver on its way? */
static void wake_receiver(struct rt_queue *queue) RON_NEEDS(queue)
{
    RON_ASSERT(queue->receivers_woken <= queue->receivers_waiting);
    if (queue->receivers_woken == queue->receivers_waiting)
        return;
    queue->receivers_woken++;
    rt_cond_signal(&queue->items_cond);
}

/* Room is there: is a sender on its way, or where weights differ, are all? */
static void wake_senders(struct rt_queue *queue) RON_NEEDS(queue)
{
    RON_ASSERT(queue->senders_woken <= queue->senders_waiting);
    if (queue->senders_woken == queue->senders_waiting)
        return;
    if (queue->weight_max == UINT64_MAX) {
        queue->senders_woken++;
        rt_cond_signal(&queue->room_cond);
    } else {
        queue->senders_woken = queue->senders_waiting;
        rt_cond_broadcast(&queue->room_cond);
    }
}

/* Why this item cannot enter now; RON_ERR_OK if it can. */
static enum ron_err admission(const struct rt_queue *queue, struct rt_queue_item item)
    RON_NEEDS(queue)
{
    if (queue->closed)
        return RON_ERR_CANCELED;
    if (item.weight > queue->weight_max)
        return RON_ERR_TOO_LARGE;
    return has_room(queue, item.weight) ? RON_ERR_OK : RON_ERR_BUSY;
}

static enum ron_err send_failed(const struct rt_queue *queue, enum ron_err err,
                                struct ron_errinfo *reterr)
{
    switch ((int)err) {
    case RON_ERR_CANCELED:
        return ron_fail(reterr, err, "queue %s is closed", queue->name);
    case RON_ERR_TIMEOUT:
        return ron_fail(reterr, err, "no room in queue %s in time", queue->name);
    case RON_ERR_TOO_LARGE:
        return ron_fail(reterr, err, "an item beyond the weight %llu of queue %s",
                        (unsigned long long)queue->weight_max, queue->name);
    default:
        return ron_fail(reterr, err, "queue %s of %u items is full", queue->name, queue->capacity);
    }
}

enum ron_err rt_queue_try_send_many(struct rt_queue *queue, const struct rt_queue_item *items,
                                    size_t items_count, size_t *ret_sent_count,
                                    struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;
    size_t sent_count = 0;
    uint64_t now_ns = 0;

    RON_ASSERT(items_count > 0);
    queue_lock(queue);
    queue_check(queue);
    while (sent_count < items_count) {
        err = admission(queue, items[sent_count]);
        if (err != RON_ERR_OK)
            break;
        push(queue, items[sent_count++], &now_ns);
    }
    if (err == RON_ERR_BUSY)
        queue->rejected_count += items_count - sent_count;
    if (sent_count > 0)
        wake_receiver(queue);
    queue_unlock(queue);
    if (sent_count == 0)
        return send_failed(queue, err, reterr);
    *ret_sent_count = sent_count;
    return RON_ERR_OK;
}

enum ron_err rt_queue_try_send(struct rt_queue *queue, struct rt_queue_item item,
                               struct ron_errinfo *reterr)
{
    size_t sent_count;

    return rt_queue_try_send_many(queue, &item, 1, &sent_count, reterr);
}

enum ron_err rt_queue_send_until(struct rt_queue *queue, struct rt_queue_item item,
                                 struct rt_deadline deadline, struct ron_errinfo *reterr)
{
    enum ron_err err;
    uint64_t now_ns = 0;

    rt_assert_no_lock_held();
    queue_check_alive(queue);
    if (rt_deadline_expired(deadline))
        return send_failed(queue, RON_ERR_TIMEOUT, reterr);
    queue_lock(queue);
    queue_check(queue);
    err = admission(queue, item);
    while (err == RON_ERR_BUSY) {
        bool woken;

        queue->senders_waiting++;
        woken = rt_cond_wait(&queue->room_cond, &queue->lock, deadline.at_ns);
        queue->senders_waiting--;
        if (queue->senders_woken > 0)
            queue->senders_woken--;
        err = admission(queue, item);
        if (!woken && err == RON_ERR_BUSY) {
            err = RON_ERR_TIMEOUT;
            queue->timed_out_count++;
        }
    }
    if (err == RON_ERR_OK) {
        push(queue, item, &now_ns);
        wake_receiver(queue);
        if (queue->weight_max == UINT64_MAX && queue->depth < queue->capacity)
            wake_senders(queue); /* the next one */
    }
    queue_unlock(queue);
    return err == RON_ERR_OK ? RON_ERR_OK : send_failed(queue, err, reterr);
}

/* How many of the oldest items must go for this weight to fit. */
static size_t evictions_needed(const struct rt_queue *queue, uint32_t weight) RON_NEEDS(queue)
{
    uint64_t left = queue->weight;
    uint32_t count = 0;

    while (queue->depth - count == queue->capacity || weight > queue->weight_max - left) {
        RON_ASSERT(count < queue->depth);
        left -= slot_at(queue, count)->weight;
        count++;
    }
    return count;
}

enum ron_err rt_queue_send_drop_oldest(struct rt_queue *queue, struct rt_queue_item item,
                                       void **evicted, size_t evicted_max,
                                       size_t *ret_evicted_count, struct ron_errinfo *reterr)
{
    enum ron_err err;
    size_t needed_count = 0;
    uint64_t now_ns = 0;

    RON_ASSERT(evicted_max > 0);
    queue_lock(queue);
    queue_check(queue);
    err = admission(queue, item);
    if (err == RON_ERR_BUSY) {
        needed_count = evictions_needed(queue, item.weight);
        RON_ASSERT(needed_count > 0);
        if (needed_count <= evicted_max)
            err = RON_ERR_OK;
        else
            queue->rejected_count++;
    }
    if (err == RON_ERR_OK) {
        for (size_t i = 0; i < needed_count; i++)
            evicted[i] = pop(queue, &now_ns);
        queue->dropped_count += needed_count;
        push(queue, item, &now_ns);
        wake_receiver(queue);
        if (needed_count > 0 && queue->depth < queue->capacity)
            wake_senders(queue); /* a large one may go for a small one: room is left */
    }
    queue_unlock(queue);
    if (err != RON_ERR_OK)
        return send_failed(queue, err, reterr);
    *ret_evicted_count = needed_count;
    return RON_ERR_OK;
}

static size_t take_many(struct rt_queue *queue, void **pointers, size_t pointers_max)
    RON_NEEDS(queue)
{
    size_t count = 0;
    uint64_t now_ns = 0;

    queue_check(queue);
    while (count < pointers_max && queue->depth > 0)
        pointers[count++] = pop(queue, &now_ns);
    queue->received_count += count;
    if (count > 0)
        wake_senders(queue);
    if (queue->depth > 0)
        wake_receiver(queue);
    return count;
}

/* Wait until there is an item, the queue is closed or the deadline passed; true if an item. */
static bool wait_for_item(struct rt_queue *queue, uint64_t deadline_ns) RON_NEEDS(queue)
{
    bool woken = true;

    while (queue->depth == 0 && !queue->closed && woken) {
        queue->receivers_waiting++;
        woken = rt_cond_wait(&queue->items_cond, &queue->lock, deadline_ns);
        queue->receivers_waiting--;
        if (queue->receivers_woken > 0)
            queue->receivers_woken--;
    }
    return queue->depth > 0;
}

enum ron_err rt_queue_recv_many(struct rt_queue *queue, void **pointers, size_t pointers_max,
                                uint64_t linger_ns, struct rt_deadline deadline, size_t *ret_count,
                                struct ron_errinfo *reterr)
{
    size_t count = 0;
    bool closed;

    RON_ASSERT(pointers_max > 0);
    rt_assert_no_lock_held();
    queue_check_alive(queue);
    if (rt_deadline_expired(deadline))
        return ron_fail(reterr, RON_ERR_TIMEOUT, "nothing in queue %s in time", queue->name);
    queue_lock(queue);
    if (wait_for_item(queue, deadline.at_ns))
        count = take_many(queue, pointers, pointers_max);
    if (count > 0 && count < pointers_max && linger_ns > 0) {
        struct rt_deadline linger = rt_deadline_min(deadline, rt_deadline_after_ns(linger_ns));

        while (count < pointers_max && wait_for_item(queue, linger.at_ns))
            count += take_many(queue, pointers + count, pointers_max - count);
    }
    closed = queue->closed;
    queue_unlock(queue);
    if (count > 0) {
        *ret_count = count;
        return RON_ERR_OK;
    }
    if (closed)
        return ron_fail(reterr, RON_ERR_CANCELED, "queue %s is closed and empty", queue->name);
    return ron_fail(reterr, RON_ERR_TIMEOUT, "nothing in queue %s in time", queue->name);
}

enum ron_err rt_queue_recv(struct rt_queue *queue, struct rt_deadline deadline, void **ret_pointer,
                           struct ron_errinfo *reterr)
{
    size_t count;

    return rt_queue_recv_many(queue, ret_pointer, 1, 0, deadline, &count, reterr);
}

size_t rt_queue_try_recv_many(struct rt_queue *queue, void **pointers, size_t pointers_max)
{
    size_t count;

    RON_ASSERT(pointers_max > 0);
    queue_lock(queue);
    count = take_many(queue, pointers, pointers_max);
    queue_unlock(queue);
    return count;
}

void rt_queue_close(struct rt_queue *queue)
{
    queue_lock(queue);
    if (!queue->closed) {
        queue->closed = true;
        rt_cond_broadcast(&queue->items_cond);
        rt_cond_broadcast(&queue->room_cond);
    }
    queue_unlock(queue);
}

bool rt_queue_closed(struct rt_queue *queue)
{
    bool closed;

    queue_lock(queue);
    closed = queue->closed;
    queue_unlock(queue);
    return closed;
}

void rt_queue_get_stats(struct rt_queue *queue, struct rt_queue_stats *ret_stats)
{
    queue_lock(queue);
    queue_check(queue);
    *ret_stats = (struct rt_queue_stats){
        .name = queue->name,
        .weight = queue->weight,
        .weight_peak = queue->weight_peak,
        .sent_count = queue->sent_count,
        .received_count = queue->received_count,
        .rejected_count = queue->rejected_count,
        .dropped_count = queue->dropped_count,
        .timed_out_count = queue->timed_out_count,
        .wait_samples_count = queue->wait_samples_count,
        .wait_ns_sum = queue->wait_ns_sum,
        .wait_ns_max = queue->wait_ns_max,
        .capacity = queue->capacity,
        .depth = queue->depth,
        .depth_peak = queue->depth_peak,
        .senders_waiting = queue->senders_waiting,
        .receivers_waiting = queue->receivers_waiting,
        .closed = queue->closed,
    };
    queue_unlock(queue);
}
