/*
 * registry.c - the table of live runtime objects, and the start of the runtime. See registry.h.
 */
#include "rt/registry.h"

#include <pthread.h>
#include <string.h>

#include "base/assert.h"
#include "rt/local.h"
#include "rt/lock.h"
#include "rt/slot.h"

static struct {
    struct rt_lock lock;
    struct rt_cond unpinned_cond;
    bool ready;
    unsigned pins_count RON_GUARDED_BY(registry);
    uint64_t births_count RON_GUARDED_BY(registry);
    size_t entries_count RON_GUARDED_BY(registry);
    struct rt_registry_entry entries[RT_REGISTRY_MAX] RON_GUARDED_BY(registry); /* oldest first */
} registry;

static void registry_lock(void) RON_LOCKS(registry)
{
    RON_ASSERT(registry.ready); /* rt_init comes first */
    rt_lock_take(&registry.lock);
}

static void registry_unlock(void) RON_UNLOCKS(registry)
{
    rt_lock_drop(&registry.lock);
}

static size_t append(char *text, size_t text_size, size_t used, const char *piece)
{
    while (*piece != '\0' && used + 1 < text_size)
        text[used++] = *piece++;
    text[used] = '\0';
    return used;
}

/* "task committer, locks shard queue". Runs inside a failed assertion: no lock, no allocation. */
static void describe(char *text, size_t text_size)
{
    const struct rt_local *local = sh_local();
    size_t used = append(text, text_size, 0, "task ");

    used = append(text, text_size, used, local->name != NULL ? local->name : "?");
    used = append(text, text_size, used, local->held_count > 0 ? ", locks" : "");
    for (unsigned i = 0; i < local->held_count && i < RT_HELD_LOCKS_MAX; i++) {
        used = append(text, text_size, used, " ");
        used = append(text, text_size, used, local->held[i]->name);
    }
}

void rt_init(void)
{
    memset(&registry, 0, sizeof(registry));
    rt_lock_init(&registry.lock, "registry", RON_RANK_registry);
    rt_cond_init(&registry.unpinned_cond, "registry unpinned");
    registry.ready = true;
    rt_slots_reset();
    ron_assert_set_describe(describe);
}

static void init_unless_ready(void)
{
    if (!registry.ready)
        rt_init();
}

void rt_init_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    RON_MUST_ZERO(pthread_once(&once, init_unless_ready));
}

enum ron_err rt_registry_add(const struct rt_registry_entry *entry, struct ron_errinfo *reterr)
{
    bool full;

    RON_ASSERT(entry->object != NULL);
    RON_ASSERT(entry->name != NULL);
    RON_ASSERT(entry->policy != NULL);
    RON_ASSERT(entry->owner != NULL);
    registry_lock();
    full = registry.entries_count == RT_REGISTRY_MAX;
    if (!full) {
        registry.entries[registry.entries_count] = *entry;
        registry.entries[registry.entries_count++].birth = ++registry.births_count;
    }
    registry_unlock();
    if (full)
        return ron_fail(reterr, RON_ERR_BUSY, "the registry of %u objects is full: %s %s",
                        RT_REGISTRY_MAX, rt_kind_name(entry->kind), entry->name);
    return RON_ERR_OK;
}

void rt_registry_remove(const void *object)
{
    size_t i = 0;

    RON_ASSERT(object != NULL);
    rt_assert_no_lock_held();
    registry_lock();
    while (registry.pins_count > 0)
        (void)rt_cond_wait(&registry.unpinned_cond, &registry.lock, SH_NEVER);
    while (i < registry.entries_count && registry.entries[i].object != object)
        i++;
    RON_ASSERT(i < registry.entries_count);
    registry.entries_count--;
    memmove(&registry.entries[i], &registry.entries[i + 1],
            (registry.entries_count - i) * sizeof(registry.entries[0]));
    registry_unlock();
}

void rt_registry_pin(void)
{
    registry_lock();
    registry.pins_count++;
    registry_unlock();
}

void rt_registry_unpin(void)
{
    registry_lock();
    RON_ASSERT(registry.pins_count > 0);
    registry.pins_count--;
    if (registry.pins_count == 0)
        rt_cond_broadcast(&registry.unpinned_cond);
    registry_unlock();
}

size_t rt_registry_list(struct rt_registry_entry *entries, size_t entries_max)
{
    size_t classes_count;
    const struct rt_lock_class *classes = rt_lock_classes(&classes_count);
    size_t live_count;

    registry_lock();
    live_count = registry.entries_count;
    for (size_t i = 0; i < live_count && i < entries_max; i++)
        entries[i] = registry.entries[i];
    registry_unlock();
    for (size_t i = 0; i < classes_count && live_count + i < entries_max; i++) {
        entries[live_count + i] = (struct rt_registry_entry){
            .kind = RT_KIND_LOCK,
            .name = classes[i].name,
            .policy = "taken in rising rank",
            .owner = "",
            .capacity = classes[i].rank,
        };
    }
    return live_count + classes_count;
}

const char *rt_kind_name(enum rt_kind kind)
{
    static const char *const names[] = {
        [RT_KIND_QUEUE] = "queue", [RT_KIND_BUS] = "bus",         [RT_KIND_WATCH] = "watch",
        [RT_KIND_TASK] = "task",   [RT_KIND_TIMER] = "timer",     [RT_KIND_STRANDS] = "strands",
        [RT_KIND_LOG] = "log",     [RT_KIND_LOCK] = "lock class",
    };

    RON_ASSERT((size_t)kind < RON_ARRAY_COUNT(names));
    return names[kind];
}
