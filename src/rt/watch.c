/*
 * watch.c - last-write-wins values. See watch.h.
 */
#include "rt/watch.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "rt/atomic.h"
#include "rt/lock.h"
#include "rt/registry.h"

#define WATCH_MAGIC 0x3a7c4e11u

struct rt_watch {
    struct rt_lock lock;
    uint32_t magic;
    const char *name;
    size_t value_size;
    struct rt_cond changed_cond;
    struct rt_atomic_u64 version; /* written under the lock, read without it by rt_watch_changed */
    uint32_t waiting_count RON_GUARDED_BY(watch);
    bool closed RON_GUARDED_BY(watch);
    unsigned char value[RT_WATCH_VALUE_SIZE_MAX] RON_GUARDED_BY(watch);
};

static void watch_lock(struct rt_watch *watch) RON_LOCKS(watch)
{
    RON_ASSERT(watch->magic == WATCH_MAGIC);
    rt_lock_take(&watch->lock);
}

static void watch_unlock(struct rt_watch *watch) RON_UNLOCKS(watch)
{
    rt_lock_drop(&watch->lock);
}

static void store(struct rt_watch *watch, const void *value) RON_NEEDS(watch)
{
    memcpy(watch->value, value, watch->value_size);
    rt_atomic_store_u64(&watch->version, rt_counter_load(&watch->version) + 1);
}

static uint64_t load(const struct rt_watch *watch, void *ret_value) RON_NEEDS(watch)
{
    if (ret_value != NULL)
        memcpy(ret_value, watch->value, watch->value_size);
    return rt_counter_load(&watch->version);
}

enum ron_err rt_watch_new(const struct rt_watch_options *options, const void *initial,
                          struct rt_watch **ret_watch, struct ron_errinfo *reterr)
{
    struct rt_watch *watch = ron_mem_alloc(sizeof(*watch));
    const struct rt_registry_entry entry = {
        .object = watch,
        .kind = RT_KIND_WATCH,
        .name = options->name,
        .policy = "last write wins",
        .owner = options->owner,
        .capacity = 1,
    };
    enum ron_err err;

    RON_ASSERT(options->value_size > 0);
    RON_ASSERT(options->value_size <= RT_WATCH_VALUE_SIZE_MAX);
    if (watch == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "watch %s", options->name);
    err = rt_registry_add(&entry, reterr);
    if (err != RON_ERR_OK) {
        ron_mem_free(watch);
        return err;
    }
    rt_lock_init(&watch->lock, options->name, RON_RANK_watch);
    rt_cond_init(&watch->changed_cond, options->name);
    watch->name = options->name;
    watch->value_size = options->value_size;
    watch->magic = WATCH_MAGIC;
    watch_lock(watch);
    store(watch, initial);
    watch_unlock(watch);
    *ret_watch = watch;
    return RON_ERR_OK;
}

struct rt_watch *rt_watch_free(struct rt_watch *watch)
{
    if (watch == NULL)
        return NULL;
    watch_lock(watch);
    RON_ASSERT(watch->waiting_count == 0);
    watch->magic = ~WATCH_MAGIC;
    watch_unlock(watch);
    rt_registry_remove(watch);
    rt_cond_fini(&watch->changed_cond);
    rt_lock_fini(&watch->lock);
    return ron_mem_free(watch);
}

static void wake_all(struct rt_watch *watch) RON_NEEDS(watch)
{
    if (watch->waiting_count > 0)
        rt_cond_broadcast(&watch->changed_cond);
}

void rt_watch_set(struct rt_watch *watch, const void *value)
{
    watch_lock(watch);
    if (!watch->closed) {
        store(watch, value);
        wake_all(watch);
    }
    watch_unlock(watch);
}

uint64_t rt_watch_get(struct rt_watch *watch, void *ret_value)
{
    uint64_t version;

    watch_lock(watch);
    version = load(watch, ret_value);
    watch_unlock(watch);
    return version;
}

bool rt_watch_changed(const struct rt_watch *watch, uint64_t seen_version)
{
    RON_ASSERT(watch->magic == WATCH_MAGIC);
    return rt_atomic_load_u64(&watch->version) > seen_version;
}

enum ron_err rt_watch_wait(struct rt_watch *watch, uint64_t seen_version,
                           struct rt_deadline deadline, void *ret_value, uint64_t *ret_version,
                           struct ron_errinfo *reterr)
{
    bool changed, closed, woken = true;

    rt_assert_no_lock_held();
    if (rt_deadline_expired(deadline))
        return ron_fail(reterr, RON_ERR_TIMEOUT, "watch %s did not change in time", watch->name);
    watch_lock(watch);
    RON_ASSERT(seen_version <= rt_counter_load(&watch->version));
    while (rt_counter_load(&watch->version) == seen_version && !watch->closed && woken) {
        watch->waiting_count++;
        woken = rt_cond_wait(&watch->changed_cond, &watch->lock, deadline.at_ns);
        watch->waiting_count--;
    }
    changed = rt_counter_load(&watch->version) > seen_version;
    closed = watch->closed;
    if (changed)
        *ret_version = load(watch, ret_value);
    watch_unlock(watch);
    if (changed)
        return RON_ERR_OK;
    if (closed)
        return ron_fail(reterr, RON_ERR_CANCELED, "watch %s is closed", watch->name);
    return ron_fail(reterr, RON_ERR_TIMEOUT, "watch %s did not change in time", watch->name);
}

void rt_watch_close(struct rt_watch *watch)
{
    watch_lock(watch);
    watch->closed = true;
    wake_all(watch);
    watch_unlock(watch);
}
