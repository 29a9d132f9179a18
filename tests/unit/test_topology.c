/*
 * test_topology.c - what a process is made of, read off the registry.
 * Method: parts of this test's own, which note the order in which they are built and taken down.
 */
#include "app/topology.h"

#include "base/assert.h"
#include "rt/bus.h"
#include "rt/queue.h"
#include "support.h"

static char order[64]; /* a letter per step: upper case builds, lower case takes down */
static unsigned visits_count;

static void note(char letter)
{
    size_t used = strlen(order);

    RON_ASSERT(used + 1 < sizeof(order));
    order[used] = letter;
    order[used + 1] = '\0';
}

static enum ron_err build_queue(void **ret_part, struct ron_errinfo *reterr)
{
    const struct rt_queue_options options = {
        .name = "work", .owner = "first", .policy = "reject", .capacity = 7};
    struct rt_queue *queue;
    enum ron_err err = rt_queue_new(&options, &queue, reterr);

    note('Q');
    if (err == RON_ERR_OK)
        *ret_part = queue;
    return err;
}

static void destroy_queue(void *part)
{
    note('q');
    (void)rt_queue_free(part);
}

static enum ron_err build_bus(void **ret_part, struct ron_errinfo *reterr)
{
    const struct rt_bus_options options = {
        .name = "events", .owner = "second", .capacity = 3, .message_size = 8};
    struct rt_bus *bus;
    enum ron_err err = rt_bus_new(&options, &bus, reterr);

    note('B');
    if (err == RON_ERR_OK)
        *ret_part = bus;
    return err;
}

static void destroy_bus(void *part)
{
    note('b');
    (void)rt_bus_free(part);
}

static enum ron_err build_nothing(void **ret_part, struct ron_errinfo *reterr)
{
    (void)ret_part;
    note('X');
    return ron_fail(reterr, RON_ERR_CONFLICT, "the third part");
}

static const struct app_part *const parts[] = {
    &(const struct app_part){.name = "first", .build = build_queue, .destroy = destroy_queue},
    &(const struct app_part){.name = "second", .build = build_bus, .destroy = destroy_bus},
    &(const struct app_part){.name = "third", .build = build_nothing},
};

static void see(const struct rt_registry_entry *entries, size_t entries_count, void *context)
{
    uint64_t rank = 0;

    assert_ptr_equal(context, &visits_count);
    visits_count++;
    note('!');
    assert_true(entries_count > 2);
    assert_int_equal(entries[0].kind, RT_KIND_QUEUE);
    assert_string_equal(entries[0].name, "work");
    assert_string_equal(entries[0].owner, "first");
    assert_int_equal(entries[0].capacity, 7);
    assert_int_equal(entries[1].kind, RT_KIND_BUS);
    assert_string_equal(entries[1].name, "events");
    for (size_t i = 2; i < entries_count; i++) {
        assert_int_equal(entries[i].kind, RT_KIND_LOCK);
        assert_true(entries[i].capacity > rank);
        rank = entries[i].capacity;
    }
}

static int start(void **state)
{
    (void)state;
    order[0] = '\0';
    visits_count = 0;
    return 0;
}

static void parts_are_listed_while_they_live(void **state) RON_BLOCKS
{
    (void)state;
    assert_ok(app_topology(parts, 2, see, &visits_count, NULL));
    assert_int_equal(visits_count, 1);
    assert_string_equal(order, "QB!bq");
    assert_int_equal(ron_mem_live_count(), 0);
}

static void failed_part_takes_down_those_before_it(void **state) RON_BLOCKS
{
    struct ron_errinfo info;

    (void)state;
    support_assert_error(app_topology(parts, 3, see, &visits_count, &info), &info, RON_ERR_CONFLICT,
                         "the third part");
    assert_int_equal(visits_count, 0);
    assert_string_equal(order, "QBXbq");
    assert_int_equal(ron_mem_live_count(), 0);
}

static enum ron_err attempt(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    order[0] = '\0';
    return app_topology(parts, 2, see, context, reterr);
}

static void no_memory_is_an_error(void **state)
{
    (void)state;
    assert_true(support_fail_each_allocation(attempt, &visits_count, 20) > 3);
    assert_int_equal(visits_count, 1);
}

static void see_locks(const struct rt_registry_entry *entries, size_t entries_count, void *context)
{
    (void)context;
    for (size_t i = 0; i < entries_count; i++)
        visits_count += entries[i].kind == RT_KIND_LOCK;
}

static void shipped_parts_can_be_built(void **state) RON_BLOCKS
{
    (void)state;
    assert_ok(app_topology(app_parts, app_parts_count, see_locks, NULL, NULL));
    assert_true(visits_count > 10);
    assert_int_equal(ron_mem_live_count(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(parts_are_listed_while_they_live, start),
        cmocka_unit_test_setup(failed_part_takes_down_those_before_it, start),
        cmocka_unit_test_setup(no_memory_is_an_error, start),
        cmocka_unit_test_setup(shipped_parts_can_be_built, start),
    };
    return cmocka_run_group_tests_name("topology", tests, NULL, NULL);
}
