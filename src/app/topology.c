/*
 * topology.c - build, list, take down. See topology.h.
 */
#include "app/topology.h"

#include "base/assert.h"
#include "base/mem.h"
#include "rt/lock.h"

static enum ron_err list_entries(app_topology_fn *fn, void *context, struct ron_errinfo *reterr)
{
    size_t entries_max = rt_registry_list(NULL, 0);
    struct rt_registry_entry *entries = ron_mem_alloc_array(entries_max, sizeof(*entries));
    size_t entries_count;

    if (entries == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "topology of %zu entries", entries_max);
    entries_count = rt_registry_list(entries, entries_max);
    RON_ASSERT(entries_count <= entries_max); /* parts are born whole, in their build */
    fn(entries, entries_count, context);
    ron_mem_free(entries);
    return RON_ERR_OK;
}

enum ron_err app_topology(const struct app_part *const *parts, size_t parts_count,
                          app_topology_fn *fn, void *context, struct ron_errinfo *reterr)
{
    void *built[APP_TOPOLOGY_PARTS_MAX] = {NULL};
    size_t built_count = 0;
    enum ron_err err = RON_ERR_OK;

    rt_assert_no_lock_held();
    RON_ASSERT(parts_count <= APP_TOPOLOGY_PARTS_MAX);
    RON_ASSERT(fn != NULL);
    rt_init();
    while (err == RON_ERR_OK && built_count < parts_count) {
        err = parts[built_count]->build(&built[built_count], reterr);
        if (err == RON_ERR_OK)
            built_count++;
    }
    if (err == RON_ERR_OK)
        err = list_entries(fn, context, reterr);
    while (built_count > 0) {
        built_count--;
        parts[built_count]->destroy(built[built_count]);
    }
    return err;
}
