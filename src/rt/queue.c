/*
 * queue.c - bounded queues. See queue.h; invariants: README.md.
 *
 * One lock, one ring, one condition a side. Wake-ups are sent under the lock, so a queue may be
 * freed as soon as its last user has returned, and only when someone sleeps who was not woken yet:
 * `woken` counts those on their way. It never exceeds them, because whoever returns takes one off,
 * woken or not. No wake-up is lost:
 *
 *  - while items and sleepers are there, one receiver is on its way: a send wakes one unless one
 * is, and whoever leaves items behind wakes the next. A receiver that was woken (or timed out)
 * always looks for items before it gives up, so an item never lies beside sleeping receivers alone;
 *  - the same for room and senders where a slot is a slot. Where weights differ, a large sender may
 *    be woken where only a small one fits: freed room wakes them all.
 * tidy: long file because every way to send and receive shares the ring and its wake-ups.
 */
#include "rt/queue.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"
#include "rt/lock.h"
#include "rt/registry.h"
#include "rt/samples.h"

#define QUEUE_MAGIC 0x71e4c35bu
#define QUEUE_DEAD  0xdead71e4u

struct rt_queue {
    struct rt_lock lock; /* first: the allocator's own marks must not hit the magic of a dead one */
    /* What every call touches, together: the lines travel from thread to thread. */
    uint32_t magic;
    uint32_t capacity;
    uint64_t weight_max;                  /* UINT64_MAX where the options say 0 */
    uint32_t head RON_GUARDED_BY(queue);  /* index of the oldest item */
    uint32_t depth RON_GUARDED_BY(queue); /* items held */
    uint64_t weight RON_GUARDED_BY(queue);
    struct rt_queue_item *slots RON_GUARDED_BY(queue); /* capacity of them; NULL where none is */
    uint64_t sent_count RON_GUARDED_BY(queue);
    uint64_t received_count RON_GUARDED_BY(queue);
    uint64_t dropped_count RON_GUARDED_BY(queue);
    uint32_t receivers_waiting RON_GUARDED_BY(queue);
    uint32_t receivers_woken RON_GUARDED_BY(queue); /* of those waiting */
    uint32_t senders_waiting RON_GUARDED_BY(queue);
    uint32_t senders_woken RON_GUARDED_BY(queue);
    uint64_t weight_peak RON_GUARDED_BY(queue);
    uint32_t depth_peak RON_GUARDED_BY(queue);
    bool closed RON_GUARDED_BY(queue);
    /* The rest: now and then. */
    struct rt_samples samples RON_GUARDED_BY(queue);
    uint64_t rejected_count RON_GUARDED_BY(queue);
    uint64_t timed_out_count RON_GUARDED_BY(queue);
    const char *name;
    uint32_t (*count_held)(const void *held_context); /* NULL: none */
    const void *held_context;
    uint64_t (*deadline_of)(const void *pointer);     /* NULL: none has one */
    uint64_t first_deadline_ns RON_GUARDED_BY(queue); /* no item has an earlier one */
    struct rt_cond items_cond;                        /* receivers wait for items */
    struct rt_cond room_cond;                         /* senders wait for room */
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

static RON_HOT_INLINE void queue_lock(struct rt_queue *queue) RON_LOCKS(queue)
{
    queue_check_alive(queue);
    rt_lock_take(&queue->lock);
}

static RON_HOT_INLINE void queue_unlock(struct rt_queue *queue) RON_UNLOCKS(queue)
{
    rt_lock_drop(&queue->lock);
}

static RON_HOT_INLINE void queue_check(const struct rt_queue *queue) RON_NEEDS(queue)
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
    struct rt_queue_item *slots;
    uint64_t *entered_ns;

    queue_lock(queue);
    queue_check(queue);
    RON_ASSERT(queue->depth == 0); /* its items would be lost without an answer */
    RON_ASSERT(queue->receivers_waiting == 0);
    RON_ASSERT(queue->senders_waiting == 0);
    slots = RON_TAKE(queue->slots);
    entered_ns = RON_TAKE(queue->samples.entered_ns);
    queue->magic = QUEUE_DEAD;
    queue_unlock(queue);
    rt_cond_fini(&queue->room_cond);
    rt_cond_fini(&queue->items_cond);
    rt_lock_fini(&queue->lock);
    ron_mem_free(entered_ns);
    ron_mem_free(slots);
    ron_mem_free(queue);
}

enum ron_err rt_queue_new(const struct rt_queue_options *options, struct rt_queue **ret_queue,
                          struct ron_errinfo *reterr)
{
    const uint32_t samples_max = rt_samples_needed(options->capacity);
    struct rt_queue *queue = ron_mem_alloc(sizeof(*queue));
    struct rt_queue_item *slots = ron_mem_alloc_array(options->capacity, sizeof(*slots));
    uint64_t *entered_ns = ron_mem_alloc_array(samples_max, sizeof(*entered_ns));
    enum ron_err err;

    RON_ASSERT(options->name != NULL);
    RON_ASSERT(options->capacity > 0);
    RON_ASSERT(options->capacity <= RT_QUEUE_CAPACITY_MAX);
    if (queue == NULL || slots == NULL || entered_ns == NULL) {
        ron_mem_free(entered_ns);
        ron_mem_free(slots);
        ron_mem_free(queue);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "queue %s of %u items", options->name,
                        options->capacity);
    }
    rt_lock_init(&queue->lock, options->name, RON_RANK_queue);
    rt_cond_init(&queue->items_cond, options->name);
    rt_cond_init(&queue->room_cond, options->name);
    queue->name = options->name;
    queue->count_held = options->count_held;
    queue->held_context = options->held_context;
    queue->capacity = options->capacity;
    queue->weight_max = options->weight_max != 0 ? options->weight_max : UINT64_MAX;
    queue->deadline_of = options->deadline_of;
    queue->magic = QUEUE_MAGIC;
    queue_lock(queue);
    queue->slots = slots;
    queue->first_deadline_ns = SH_NEVER;
    queue->samples = (struct rt_samples){.entered_ns = entered_ns, .mask = samples_max - 1};
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

static uint32_t index_at(const struct rt_queue *queue, uint32_t offset) RON_NEEDS(queue)
{
    uint32_t index = queue->head + offset; /* both below 2^20 */

    return index < queue->capacity ? index : index - queue->capacity;
}

/* For the next eviction: nothing is looked through before its time. */
static void note_deadlines(struct rt_queue *queue, const struct rt_queue_item *items, size_t count)
    RON_NEEDS(queue)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t deadline_ns = queue->deadline_of(items[i].pointer);

        if (deadline_ns < queue->first_deadline_ns)
            queue->first_deadline_ns = deadline_ns;
    }
}

/* count items that have room; *now_ns is 0 before the first item of a call. */
static RON_HOT_INLINE void push(struct rt_queue *queue, const struct rt_queue_item *items,
                                size_t count, uint64_t *now_ns) RON_NEEDS(queue)
{
    struct rt_queue_item *const slots = queue->slots;
    const uint32_t capacity = queue->capacity;
    const uint64_t sent_count = queue->sent_count + count;
    uint32_t tail = index_at(queue, queue->depth);
    uint64_t weight = queue->weight;

    RON_ASSERT(count <= capacity - queue->depth);
    for (size_t i = 0; i < count; i++) {
        const struct rt_queue_item item = items[i];

        RON_ASSERT(item.pointer != NULL);
        RON_ASSERT(slots[tail].pointer == NULL);
        slots[tail] = item;
        weight += item.weight;
        tail = tail + 1 < capacity ? tail + 1 : 0;
    }
    if (RON_UNLIKELY(queue->deadline_of != NULL))
        note_deadlines(queue, items, count);
    rt_samples_enter(&queue->samples, queue->sent_count, sent_count, now_ns);
    queue->depth += (uint32_t)count;
    queue->weight = weight;
    queue->sent_count = sent_count;
    if (queue->depth > queue->depth_peak)
        queue->depth_peak = queue->depth;
    if (weight > queue->weight_peak)
        queue->weight_peak = weight;
}

/* The count oldest, which are there. The caller counts where they went. */
static RON_HOT_INLINE void pop(struct rt_queue *queue, void **pointers, size_t count,
                               uint64_t *now_ns) RON_NEEDS(queue)
{
    struct rt_queue_item *const slots = queue->slots;
    const uint32_t capacity = queue->capacity;
    const uint64_t oldest = queue->sent_count - queue->depth;
    uint32_t head = queue->head;
    uint64_t weight = 0;

    RON_ASSERT(count <= queue->depth);
    for (size_t i = 0; i < count; i++) {
        pointers[i] = RON_TAKE(slots[head].pointer);
        RON_ASSERT(pointers[i] != NULL);
        weight += slots[head].weight;
        head = head + 1 < capacity ? head + 1 : 0;
    }
    rt_samples_leave(&queue->samples, oldest, oldest + count, now_ns);
    RON_ASSERT(queue->weight >= weight);
    queue->head = head;
    queue->depth -= (uint32_t)count;
    queue->weight -= weight;
}

/* Items are there: is a receiver on its way? */
static RON_HOT_INLINE void wake_receiver(struct rt_queue *queue) RON_NEEDS(queue)
{
    RON_ASSERT(queue->receivers_woken <= queue->receivers_waiting);
    if (queue->receivers_waiting == 0 || queue->receivers_woken > 0)
        return; /* it wakes the next if it leaves something */
    queue->receivers_woken++;
    rt_cond_signal(&queue->items_cond);
}

/* Room is there: is a sender on its way, or where weights differ, are all? */
static RON_HOT_INLINE void wake_senders(struct rt_queue *queue) RON_NEEDS(queue)
{
    RON_ASSERT(queue->senders_woken <= queue->senders_waiting);
    if (queue->senders_woken == queue->senders_waiting)
        return;
    if (queue->weight_max == UINT64_MAX) {
        if (queue->senders_woken > 0)
            return; /* it wakes the next if it leaves room */
        queue->senders_woken++;
        rt_cond_signal(&queue->room_cond);
    } else {
        queue->senders_woken = queue->senders_waiting;
        rt_cond_broadcast(&queue->room_cond);
    }
}

/* Why this item cannot enter now; RON_ERR_OK if it can. */
static RON_HOT_INLINE enum ron_err admission(const struct rt_queue *queue,
                                             struct rt_queue_item item) RON_NEEDS(queue)
{
    if (queue->closed)
        return RON_ERR_CANCELED;
    if (RON_LIKELY(has_room(queue, item.weight)))
        return RON_ERR_OK;
    return item.weight > queue->weight_max ? RON_ERR_TOO_LARGE : RON_ERR_BUSY;
}

/* How many of the items, from the first on, can enter now; the first one can. */
static RON_HOT_INLINE size_t admitted(const struct rt_queue *queue,
                                      const struct rt_queue_item *items, size_t items_count)
    RON_NEEDS(queue)
{
    const size_t room = queue->capacity - queue->depth;
    const size_t count_max = items_count < room ? items_count : room;
    uint64_t weight_left = queue->weight_max - queue->weight;
    size_t count = 0;

    if (queue->weight_max == UINT64_MAX)
        return count_max; /* no ring full of 32-bit weights comes near */
    while (count < count_max && items[count].weight <= weight_left)
        weight_left -= items[count++].weight;
    return count;
}

static enum ron_err RON_COLD send_failed(const struct rt_queue *queue, enum ron_err err,
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

static RON_HOT_INLINE enum ron_err try_send(struct rt_queue *queue,
                                            const struct rt_queue_item *items, size_t items_count,
                                            size_t *ret_sent_count, struct ron_errinfo *reterr)
{
    enum ron_err err;
    size_t sent_count = 0;
    uint64_t now_ns = 0;

    queue_lock(queue);
    queue_check(queue);
    err = admission(queue, items[0]);
    if (RON_LIKELY(err == RON_ERR_OK)) {
        sent_count = admitted(queue, items, items_count);
        push(queue, items, sent_count, &now_ns);
        wake_receiver(queue);
        if (sent_count < items_count)
            err = admission(queue, items[sent_count]);
    }
    if (RON_UNLIKELY(err == RON_ERR_BUSY))
        queue->rejected_count += items_count - sent_count;
    queue_unlock(queue);
    if (RON_UNLIKELY(sent_count == 0))
        return send_failed(queue, err, reterr);
    *ret_sent_count = sent_count;
    return RON_ERR_OK;
}

enum ron_err rt_queue_try_send_many(struct rt_queue *queue, const struct rt_queue_item *items,
                                    size_t items_count, size_t *ret_sent_count,
                                    struct ron_errinfo *reterr)
{
    RON_ASSERT(items_count > 0);
    return try_send(queue, items, items_count, ret_sent_count, reterr);
}

enum ron_err rt_queue_try_send(struct rt_queue *queue, struct rt_queue_item item,
                               struct ron_errinfo *reterr)
{
    size_t sent_count;

    return try_send(queue, &item, 1, &sent_count, reterr);
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
    while (RON_UNLIKELY(err == RON_ERR_BUSY)) {
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
    if (RON_LIKELY(err == RON_ERR_OK)) {
        push(queue, &item, 1, &now_ns);
        wake_receiver(queue);
        if (queue->weight_max == UINT64_MAX && queue->depth < queue->capacity)
            wake_senders(queue); /* the next one */
    }
    queue_unlock(queue);
    return RON_LIKELY(err == RON_ERR_OK) ? RON_ERR_OK : send_failed(queue, err, reterr);
}

/* The item at `from` becomes that at `to`, those between move one back. */
static void move_forward(struct rt_queue *queue, uint32_t from, uint32_t to) RON_NEEDS(queue)
{
    const struct rt_queue_item item = queue->slots[index_at(queue, from)];

    for (uint32_t i = from; i > to; i--)
        queue->slots[index_at(queue, i)] = queue->slots[index_at(queue, i - 1)];
    queue->slots[index_at(queue, to)] = item;
}

/* What must go for an item: first those of no use any more, then the oldest. */
struct going {
    uint32_t count, over_count;
    uint64_t weight;
};

static bool fits(const struct rt_queue *queue, uint32_t weight, const struct going *going)
    RON_NEEDS(queue)
{
    return queue->depth - going->count < queue->capacity &&
           weight <= queue->weight_max - (queue->weight - going->weight);
}

static void let_go(const struct rt_queue *queue, uint32_t i, struct going *going) RON_NEEDS(queue)
{
    going->count++;
    going->weight += queue->slots[index_at(queue, i)].weight;
}

static uint64_t deadline_at(const struct rt_queue *queue, uint32_t i) RON_NEEDS(queue)
{
    return queue->deadline_of(queue->slots[index_at(queue, i)].pointer);
}

static void find_over(struct rt_queue *queue, uint32_t weight, uint64_t *now_ns,
                      struct going *going) RON_NEEDS(queue)
{
    uint64_t first_ns = SH_NEVER;

    if (queue->deadline_of == NULL)
        return;
    if (*now_ns == 0)
        *now_ns = rt_now_ns();
    if (*now_ns < queue->first_deadline_ns)
        return;
    for (uint32_t i = 0; i < queue->depth; i++) {
        const uint64_t deadline_ns = deadline_at(queue, i);

        if (deadline_ns < first_ns)
            first_ns = deadline_ns;
        if (deadline_ns > *now_ns)
            continue;
        let_go(queue, i, going);
        going->over_count++;
        if (fits(queue, weight, going))
            return; /* the bound stays: no item has an earlier one */
    }
    queue->first_deadline_ns = first_ns;
}

static struct going find_going(struct rt_queue *queue, uint32_t weight, uint64_t *now_ns)
    RON_NEEDS(queue)
{
    struct going going = {0};

    find_over(queue, weight, now_ns, &going);
    for (uint32_t i = 0; !fits(queue, weight, &going); i++) {
        RON_ASSERT(i < queue->depth);
        if (going.over_count == 0 || deadline_at(queue, i) > *now_ns)
            let_go(queue, i, &going);
    }
    return going;
}

/* The first so many of no use any more become the oldest, in their order. */
static void bring_over(struct rt_queue *queue, uint32_t over_count, uint64_t now_ns)
    RON_NEEDS(queue)
{
    uint32_t front = 0;

    for (uint32_t i = 0; front < over_count; i++)
        if (deadline_at(queue, i) <= now_ns)
            move_forward(queue, i, front++);
}

enum ron_err rt_queue_send_many_drop_oldest(struct rt_queue *queue,
                                            const struct rt_queue_item *items, size_t items_count,
                                            void **evicted, size_t evicted_max,
                                            size_t *ret_sent_count, size_t *ret_evicted_count,
                                            struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;
    size_t sent_count = 0;
    size_t evicted_count = 0;
    uint64_t now_ns = 0;

    RON_ASSERT(items_count > 0);
    RON_ASSERT(evicted_max > 0);
    queue_lock(queue);
    queue_check(queue);
    while (err == RON_ERR_OK && sent_count < items_count) {
        struct going going = {0};

        err = admission(queue, items[sent_count]);
        if (err == RON_ERR_BUSY) {
            going = find_going(queue, items[sent_count].weight, &now_ns);
            RON_ASSERT(going.count > 0);
            if (going.count <= evicted_max - evicted_count)
                err = RON_ERR_OK;
            else if (sent_count == 0)
                queue->rejected_count++;
        }
        if (err == RON_ERR_OK) {
            bring_over(queue, going.over_count, now_ns);
            pop(queue, evicted + evicted_count, going.count, &now_ns);
            evicted_count += going.count;
            push(queue, &items[sent_count++], 1, &now_ns);
        }
    }
    if (sent_count > 0) {
        queue->dropped_count += evicted_count;
        wake_receiver(queue);
        if (evicted_count > 0 && queue->depth < queue->capacity)
            wake_senders(queue); /* a large one may go for a small one: room is left */
    }
    queue_unlock(queue);
    if (sent_count == 0)
        return send_failed(queue, err, reterr);
    *ret_sent_count = sent_count;
    *ret_evicted_count = evicted_count;
    return RON_ERR_OK;
}

enum ron_err rt_queue_send_drop_oldest(struct rt_queue *queue, struct rt_queue_item item,
                                       void **evicted, size_t evicted_max,
                                       size_t *ret_evicted_count, struct ron_errinfo *reterr)
{
    size_t sent_count;

    return rt_queue_send_many_drop_oldest(queue, &item, 1, evicted, evicted_max, &sent_count,
                                          ret_evicted_count, reterr);
}

/* How many of the oldest, at most count: more than one only as long as none is heavy. */
static size_t light_count(const struct rt_queue *queue, size_t count, uint32_t weight_each)
    RON_NEEDS(queue)
{
    size_t light = 0;

    while (light < count && queue->slots[index_at(queue, (uint32_t)light)].weight <= weight_each)
        light++;
    return light > 0 || count == 0 ? light : 1;
}

static RON_HOT_INLINE size_t take(struct rt_queue *queue, void **pointers, size_t pointers_max,
                                  uint32_t weight_each) RON_NEEDS(queue)
{
    size_t count = queue->depth < pointers_max ? queue->depth : pointers_max;
    uint64_t now_ns = 0;

    queue_check(queue);
    if (weight_each != UINT32_MAX)
        count = light_count(queue, count, weight_each);
    pop(queue, pointers, count, &now_ns);
    queue->received_count += count;
    if (count > 0)
        wake_senders(queue);
    if (queue->depth > 0)
        wake_receiver(queue);
    return count;
}

static bool sleep_for_item(struct rt_queue *queue, uint64_t deadline_ns) RON_NEEDS(queue)
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

/* Wait until there is an item, the queue is closed or the deadline passed; true if an item. */
static RON_HOT_INLINE bool wait_for_item(struct rt_queue *queue, uint64_t deadline_ns)
    RON_NEEDS(queue)
{
    return RON_LIKELY(queue->depth > 0) || sleep_for_item(queue, deadline_ns);
}

static enum ron_err RON_COLD recv_failed(const struct rt_queue *queue, enum ron_err err,
                                         struct ron_errinfo *reterr)
{
    if (err == RON_ERR_CANCELED)
        return ron_fail(reterr, err, "queue %s is closed and empty", queue->name);
    return ron_fail(reterr, err, "nothing in queue %s in time", queue->name);
}

static RON_HOT_INLINE enum ron_err receive(struct rt_queue *queue, void **pointers,
                                           size_t pointers_max, uint32_t weight_each,
                                           uint64_t linger_ns, struct rt_deadline deadline,
                                           size_t *ret_count, struct ron_errinfo *reterr) RON_BLOCKS
{
    size_t count = 0;
    bool closed;

    rt_assert_no_lock_held();
    queue_check_alive(queue);
    if (rt_deadline_expired(deadline))
        return recv_failed(queue, RON_ERR_TIMEOUT, reterr);
    queue_lock(queue);
    if (wait_for_item(queue, deadline.at_ns))
        count = take(queue, pointers, pointers_max, weight_each);
    if (count > 0 && count < pointers_max && linger_ns > 0) {
        struct rt_deadline linger = rt_deadline_min(deadline, rt_deadline_after_ns(linger_ns));

        while (count < pointers_max && wait_for_item(queue, linger.at_ns))
            count += take(queue, pointers + count, pointers_max - count, weight_each);
    }
    closed = queue->closed;
    queue_unlock(queue);
    if (RON_UNLIKELY(count == 0))
        return recv_failed(queue, closed ? RON_ERR_CANCELED : RON_ERR_TIMEOUT, reterr);
    *ret_count = count;
    return RON_ERR_OK;
}

enum ron_err rt_queue_recv_many(struct rt_queue *queue, void **pointers, size_t pointers_max,
                                uint64_t linger_ns, struct rt_deadline deadline, size_t *ret_count,
                                struct ron_errinfo *reterr)
{
    RON_ASSERT(pointers_max > 0);
    return receive(queue, pointers, pointers_max, UINT32_MAX, linger_ns, deadline, ret_count,
                   reterr);
}

enum ron_err rt_queue_recv_light(struct rt_queue *queue, void **pointers, size_t pointers_max,
                                 uint32_t weight_each, struct rt_deadline deadline,
                                 size_t *ret_count, struct ron_errinfo *reterr)
{
    RON_ASSERT(pointers_max > 0);
    RON_ASSERT(weight_each < UINT32_MAX);
    return receive(queue, pointers, pointers_max, weight_each, 0, deadline, ret_count, reterr);
}

enum ron_err rt_queue_recv(struct rt_queue *queue, struct rt_deadline deadline, void **ret_pointer,
                           struct ron_errinfo *reterr)
{
    size_t count;

    return receive(queue, ret_pointer, 1, UINT32_MAX, 0, deadline, &count, reterr);
}

size_t rt_queue_try_recv_many(struct rt_queue *queue, void **pointers, size_t pointers_max)
{
    size_t count;

    RON_ASSERT(pointers_max > 0);
    queue_lock(queue);
    count = take(queue, pointers, pointers_max, UINT32_MAX);
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
        .wait_samples_count = queue->samples.count,
        .wait_ns_sum = queue->samples.wait_ns_sum,
        .wait_ns_max = queue->samples.wait_ns_max,
        .capacity = queue->capacity,
        .depth = queue->depth,
        .depth_peak = queue->depth_peak,
        .senders_waiting = queue->senders_waiting,
        .receivers_waiting = queue->receivers_waiting,
        .closed = queue->closed,
    };
    queue_unlock(queue);
    if (queue->count_held != NULL)
        ret_stats->held_count = queue->count_held(queue->held_context);
}
