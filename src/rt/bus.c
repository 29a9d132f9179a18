/*
 * bus.c - broadcast ring. See bus.h.
 *
 * Messages are numbered from 0; number n lies in slot n % capacity until n + capacity is published.
 * A subscriber is a number: the next message it wants. Nothing is kept per subscriber and message,
 * so a slow subscriber costs the publisher nothing.
 */
#include "rt/bus.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "rt/lock.h"
#include "rt/registry.h"

#define BUS_MAGIC        0x6b05b05bu
#define SUBSCRIBER_MAGIC 0x50b5c71bu

struct rt_bus_subscriber {
    uint32_t magic;
    struct rt_bus *bus;
    const char *consumer;
    uint64_t birth RON_GUARDED_BY(bus);      /* number of the subscription, from 1 */
    uint64_t next RON_GUARDED_BY(bus);       /* number of the message it wants next */
    uint64_t lost_count RON_GUARDED_BY(bus); /* told so far */
    bool skips RON_GUARDED_BY(bus);          /* it passes over messages: it can lose none */
};

struct rt_bus {
    struct rt_lock lock;
    uint32_t magic;
    uint32_t capacity;
    size_t message_size;
    const char *name;
    struct rt_cond published_cond;
    uint64_t published_count RON_GUARDED_BY(bus);     /* also the number of the next message */
    uint64_t subscriptions_count RON_GUARDED_BY(bus); /* ever made */
    uint32_t waiting_count RON_GUARDED_BY(bus);
    uint32_t subscribers_count RON_GUARDED_BY(bus);
    bool closed RON_GUARDED_BY(bus);
    struct rt_bus_subscriber *subscribers[RT_BUS_SUBSCRIBERS_MAX] RON_GUARDED_BY(bus);
    unsigned char *messages RON_GUARDED_BY(bus); /* capacity * message_size bytes */
};

static void bus_lock(struct rt_bus *bus) RON_LOCKS(bus)
{
    RON_ASSERT(bus->magic == BUS_MAGIC);
    rt_lock_take(&bus->lock);
}

static void bus_unlock(struct rt_bus *bus) RON_UNLOCKS(bus)
{
    rt_lock_drop(&bus->lock);
}

static enum ron_err bus_register(struct rt_bus *bus, const struct rt_bus_options *options,
                                 struct ron_errinfo *reterr)
{
    const struct rt_registry_entry entry = {
        .object = bus,
        .kind = RT_KIND_BUS,
        .name = options->name,
        .policy = "lag drops oldest",
        .owner = options->owner,
        .capacity = options->capacity,
    };
    return rt_registry_add(&entry, reterr);
}

/* The end of a bus that is not, or no longer, in the registry. */
static void bus_destroy(struct rt_bus *bus)
{
    unsigned char *messages;

    bus_lock(bus);
    RON_ASSERT(bus->subscribers_count == 0);
    RON_ASSERT(bus->waiting_count == 0);
    messages = RON_TAKE(bus->messages);
    bus->magic = ~BUS_MAGIC;
    bus_unlock(bus);
    rt_cond_fini(&bus->published_cond);
    rt_lock_fini(&bus->lock);
    ron_mem_free(messages);
    ron_mem_free(bus);
}

enum ron_err rt_bus_new(const struct rt_bus_options *options, struct rt_bus **ret_bus,
                        struct ron_errinfo *reterr)
{
    struct rt_bus *bus = ron_mem_alloc(sizeof(*bus));
    unsigned char *messages = ron_mem_alloc_array(options->capacity, options->message_size);
    enum ron_err err;

    RON_ASSERT(options->capacity > 0);
    RON_ASSERT(options->capacity <= RT_BUS_CAPACITY_MAX);
    RON_ASSERT(options->message_size > 0);
    RON_ASSERT(options->message_size <= RT_BUS_MESSAGE_SIZE_MAX);
    if (bus == NULL || messages == NULL) {
        ron_mem_free(messages);
        ron_mem_free(bus);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "bus %s of %u messages", options->name,
                        options->capacity);
    }
    rt_lock_init(&bus->lock, options->name, RON_RANK_bus);
    rt_cond_init(&bus->published_cond, options->name);
    bus->name = options->name;
    bus->capacity = options->capacity;
    bus->message_size = options->message_size;
    bus->magic = BUS_MAGIC;
    bus_lock(bus);
    bus->messages = messages;
    bus_unlock(bus);
    err = bus_register(bus, options, reterr); /* last: from here on others may look at it */
    if (err != RON_ERR_OK) {
        bus_destroy(bus);
        return err;
    }
    *ret_bus = bus;
    return RON_ERR_OK;
}

struct rt_bus *rt_bus_free(struct rt_bus *bus)
{
    if (bus == NULL)
        return NULL;
    RON_ASSERT(bus->magic == BUS_MAGIC);
    rt_registry_remove(bus); /* first: nobody looks at it any more */
    bus_destroy(bus);
    return NULL;
}

static unsigned char *message_at(const struct rt_bus *bus, uint64_t number) RON_NEEDS(bus)
{
    return bus->messages + (size_t)(number % bus->capacity) * bus->message_size;
}

/* The oldest message still in the ring. */
static uint64_t oldest(const struct rt_bus *bus) RON_NEEDS(bus)
{
    return bus->published_count > bus->capacity ? bus->published_count - bus->capacity : 0;
}

enum ron_err rt_bus_publish(struct rt_bus *bus, const void *message, struct ron_errinfo *reterr)
{
    return rt_bus_publish_many(bus, message, 1, reterr);
}

enum ron_err rt_bus_publish_many(struct rt_bus *bus, const void *messages, size_t messages_count,
                                 struct ron_errinfo *reterr)
{
    const uint8_t *message = messages;
    bool closed;

    bus_lock(bus);
    closed = bus->closed;
    for (size_t i = 0; i < messages_count && !closed; i++, message += bus->message_size) {
        memcpy(message_at(bus, bus->published_count), message, bus->message_size);
        bus->published_count++;
    }
    if (!closed && messages_count > 0 && bus->waiting_count > 0)
        rt_cond_broadcast(&bus->published_cond);
    bus_unlock(bus);
    if (closed)
        return ron_fail(reterr, RON_ERR_CANCELED, "bus %s is closed", bus->name);
    return RON_ERR_OK;
}

void rt_bus_close(struct rt_bus *bus)
{
    bus_lock(bus);
    bus->closed = true;
    rt_cond_broadcast(&bus->published_cond);
    bus_unlock(bus);
}

enum ron_err rt_bus_subscribe(struct rt_bus *bus, const char *consumer,
                              struct rt_bus_subscriber **ret_subscriber, struct ron_errinfo *reterr)
{
    struct rt_bus_subscriber *subscriber = ron_mem_alloc(sizeof(*subscriber));
    enum ron_err err = RON_ERR_OK;

    RON_ASSERT(consumer != NULL);
    if (subscriber == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "subscriber %s of bus %s", consumer, bus->name);
    subscriber->bus = bus;
    subscriber->consumer = consumer;
    subscriber->magic = SUBSCRIBER_MAGIC;
    bus_lock(bus);
    if (bus->closed) {
        err = RON_ERR_CANCELED;
    } else if (bus->subscribers_count == RT_BUS_SUBSCRIBERS_MAX) {
        err = RON_ERR_BUSY;
    } else {
        subscriber->next = bus->published_count;
        subscriber->birth = ++bus->subscriptions_count;
        bus->subscribers[bus->subscribers_count++] = subscriber;
    }
    bus_unlock(bus);
    if (err != RON_ERR_OK) {
        ron_mem_free(subscriber);
        return ron_fail(reterr, err, "bus %s %s subscriber %s", bus->name,
                        err == RON_ERR_BUSY ? "has no room for" : "is closed to", consumer);
    }
    *ret_subscriber = subscriber;
    return RON_ERR_OK;
}

struct rt_bus_subscriber *rt_bus_unsubscribe(struct rt_bus_subscriber *subscriber)
{
    struct rt_bus *bus;
    uint32_t i = 0;

    if (subscriber == NULL)
        return NULL;
    RON_ASSERT(subscriber->magic == SUBSCRIBER_MAGIC);
    bus = subscriber->bus;
    bus_lock(bus);
    while (i < bus->subscribers_count && bus->subscribers[i] != subscriber)
        i++;
    RON_ASSERT(i < bus->subscribers_count);
    bus->subscribers[i] = bus->subscribers[--bus->subscribers_count];
    bus_unlock(bus);
    subscriber->magic = ~SUBSCRIBER_MAGIC;
    return ron_mem_free(subscriber);
}

/* Copy the next message to the subscriber, skipping what the ring no longer holds. */
static uint64_t take_next(struct rt_bus *bus, struct rt_bus_subscriber *subscriber,
                          void *ret_message) RON_NEEDS(bus)
{
    uint64_t first = oldest(bus);
    uint64_t lost_count = subscriber->next < first ? first - subscriber->next : 0;

    subscriber->next += lost_count;
    subscriber->lost_count += lost_count;
    RON_ASSERT(!subscriber->skips);
    RON_ASSERT(subscriber->next < bus->published_count);
    RON_ASSERT(bus->published_count - subscriber->next <= bus->capacity);
    memcpy(ret_message, message_at(bus, subscriber->next), bus->message_size);
    subscriber->next++;
    return lost_count;
}

/* Until there is a message for it; else the error it is answered with. */
static enum ron_err wait_for_message(struct rt_bus *bus, const struct rt_bus_subscriber *subscriber,
                                     struct rt_deadline deadline) RON_NEEDS(bus)
{
    bool woken = true;

    while (subscriber->next == bus->published_count && !bus->closed && woken) {
        bus->waiting_count++;
        woken = rt_cond_wait(&bus->published_cond, &bus->lock, deadline.at_ns);
        bus->waiting_count--;
    }
    if (subscriber->next < bus->published_count)
        return RON_ERR_OK;
    return bus->closed ? RON_ERR_CANCELED : RON_ERR_TIMEOUT;
}

static enum ron_err recv_failed(const struct rt_bus *bus, enum ron_err err,
                                struct ron_errinfo *reterr)
{
    if (err == RON_ERR_CANCELED)
        return ron_fail(reterr, err, "bus %s is closed and read", bus->name);
    return ron_fail(reterr, err, "nothing on bus %s in time", bus->name);
}

enum ron_err rt_bus_recv(struct rt_bus_subscriber *subscriber, struct rt_deadline deadline,
                         void *ret_message, uint64_t *ret_lost_count, struct ron_errinfo *reterr)
{
    size_t count;

    return rt_bus_recv_many(subscriber, deadline, ret_message, 1, &count, ret_lost_count, reterr);
}

enum ron_err rt_bus_recv_many(struct rt_bus_subscriber *subscriber, struct rt_deadline deadline,
                              void *ret_messages, size_t messages_max, size_t *ret_count,
                              uint64_t *ret_lost_count, struct ron_errinfo *reterr)
{
    struct rt_bus *bus = subscriber->bus;
    uint8_t *message = ret_messages;
    uint64_t lost_count = 0;
    size_t count = 0;
    enum ron_err err;

    RON_ASSERT(subscriber->magic == SUBSCRIBER_MAGIC);
    RON_ASSERT(messages_max > 0);
    rt_assert_no_lock_held();
    if (rt_deadline_expired(deadline))
        return recv_failed(bus, RON_ERR_TIMEOUT, reterr);
    bus_lock(bus);
    err = wait_for_message(bus, subscriber, deadline);
    while (count < messages_max && subscriber->next < bus->published_count) {
        lost_count += take_next(bus, subscriber, message);
        message += bus->message_size;
        count++;
    }
    bus_unlock(bus);
    if (err != RON_ERR_OK)
        return recv_failed(bus, err, reterr);
    *ret_count = count;
    *ret_lost_count = lost_count;
    return RON_ERR_OK;
}

enum ron_err rt_bus_skip(struct rt_bus_subscriber *subscriber, struct rt_deadline deadline,
                         struct ron_errinfo *reterr)
{
    struct rt_bus *bus = subscriber->bus;
    enum ron_err err;

    RON_ASSERT(subscriber->magic == SUBSCRIBER_MAGIC);
    rt_assert_no_lock_held();
    if (rt_deadline_expired(deadline))
        return recv_failed(bus, RON_ERR_TIMEOUT, reterr);
    bus_lock(bus);
    if (!subscriber->skips && subscriber->next < oldest(bus))
        subscriber->lost_count += oldest(bus) - subscriber->next; /* figures never fall */
    subscriber->skips = true;
    err = wait_for_message(bus, subscriber, deadline);
    subscriber->next = bus->published_count;
    bus_unlock(bus);
    return err == RON_ERR_OK ? RON_ERR_OK : recv_failed(bus, err, reterr);
}

void rt_bus_get_stats(struct rt_bus *bus, struct rt_bus_stats *ret_stats)
{
    uint64_t first;

    bus_lock(bus);
    first = oldest(bus);
    ret_stats->name = bus->name;
    ret_stats->published_count = bus->published_count;
    ret_stats->capacity = bus->capacity;
    ret_stats->subscribers_count = bus->subscribers_count;
    ret_stats->closed = bus->closed;
    for (uint32_t i = 0; i < bus->subscribers_count; i++) {
        const struct rt_bus_subscriber *subscriber = bus->subscribers[i];
        uint64_t next = subscriber->next > first ? subscriber->next : first;

        ret_stats->lags[i] = (struct rt_bus_lag){
            .consumer = subscriber->consumer,
            .birth = subscriber->birth,
            .behind_count = bus->published_count - next,
            .lost_count = subscriber->lost_count +
                          (subscriber->skips ? 0 : next - subscriber->next),
        };
    }
    bus_unlock(bus);
}
