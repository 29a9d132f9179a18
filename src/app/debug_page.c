/*
 * debug_page.c - the topology of a running process. See debug_page.h.
 */
#include "app/debug_page.h"

#include "base/json_write.h"
#include "base/mem.h"
#include "rt/registry.h"

static void put_member(struct ron_json_writer *writer, const char *name, const char *text)
{
    ron_json_put_name(writer, name);
    if (text == NULL)
        ron_json_put_null(writer);
    else
        ron_json_put_text(writer, text);
}

static void put_entries(struct ron_json_writer *writer, const struct rt_registry_entry *entries,
                        size_t entries_count, bool locks)
{
    ron_json_put_array_begin(writer);
    for (size_t i = 0; i < entries_count; i++) {
        const struct rt_registry_entry *entry = &entries[i];

        if ((entry->kind == RT_KIND_LOCK) != locks)
            continue;
        ron_json_put_object_begin(writer);
        put_member(writer, "name", entry->name);
        if (!locks) {
            put_member(writer, "kind", rt_kind_name(entry->kind));
            put_member(writer, "policy", entry->policy);
            put_member(writer, "owner", entry->owner);
        }
        ron_json_put_name(writer, locks ? "rank" : "capacity");
        ron_json_put_u64(writer, entry->capacity);
        ron_json_put_object_end(writer);
    }
    ron_json_put_array_end(writer);
}

static void put_routes(struct ron_json_writer *writer, const struct io_routes *routes)
{
    ron_json_put_array_begin(writer);
    for (size_t i = 0; i < io_routes_count(routes); i++) {
        const struct io_route *route = io_routes_at(routes, i);

        ron_json_put_object_begin(writer);
        put_member(writer, "name", route->name);
        put_member(writer, "method", http_method_name(route->method));
        put_member(writer, "path", route->path);
        put_member(writer, "role", route->role);
        put_member(writer, "scope", route->scope);
        put_member(writer, "listener",
                   (route->flags & IO_ROUTE_BOTH) != 0    ? "both"
                   : (route->flags & IO_ROUTE_ADMIN) != 0 ? "admin"
                                                          : "api");
        ron_json_put_name(writer, "write");
        ron_json_put_bool(writer, (route->flags & IO_ROUTE_WRITE) != 0);
        ron_json_put_object_end(writer);
    }
    ron_json_put_array_end(writer);
}

enum ron_err app_debug_topology(const struct io_routes *routes, struct ron_buf *buf,
                                struct ron_errinfo *reterr)
{
    /* All there can be: objects come and go between two looks. */
    size_t entries_max = RT_REGISTRY_MAX + 64;
    struct rt_registry_entry *entries = ron_mem_alloc_array(entries_max, sizeof(*entries));
    struct ron_json_writer writer;
    size_t entries_count;

    if (entries == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "topology");
    ron_json_writer_init(&writer, buf, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    rt_registry_pin(); /* the texts belong to the objects */
    entries_count = rt_registry_list(entries, entries_max);
    if (entries_count > entries_max)
        entries_count = entries_max;
    ron_json_put_name(&writer, "objects");
    put_entries(&writer, entries, entries_count, false);
    ron_json_put_name(&writer, "locks");
    put_entries(&writer, entries, entries_count, true);
    rt_registry_unpin();
    ron_json_put_name(&writer, "routes");
    put_routes(&writer, routes);
    ron_json_put_object_end(&writer);
    (void)ron_mem_free(entries);
    return ron_json_writer_end(&writer, reterr);
}
