/*
 * test_peer_table.c - connections per address. Method: random comings and goings of few addresses,
 * so that runs of rows collide and close, against counts in a plain array.
 */
#include "support.h"

#include "io/peer_table.h"
#include "rt/registry.h"

enum { ADDRESSES = 40, PEERS_MAX = 12, EACH_MAX = 3, STEPS = 200000 };

static uint64_t seed;

static uint32_t random_below(uint32_t most)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % most;
}

static void make_address(unsigned number, uint8_t ret_address[static 16])
{
    memset(ret_address, 0, 16);
    /* Half of them differ in their first bytes only, half in their last. */
    ret_address[number % 2 == 0 ? 15 : 0] = (uint8_t)(number + 1);
    ret_address[10] = ret_address[11] = 0xff;
}

static void counts_are_those_of_an_array(void **state)
{
    struct peer_table *table;

    (void)state;
    for (seed = 1; seed < 6;) {
        uint64_t start = seed;
        uint32_t counts[ADDRESSES] = {0};
        uint32_t used = 0;

        assert_ok(peer_table_new(PEERS_MAX, EACH_MAX, &table, NULL));
        for (unsigned i = 0; i < STEPS; i++) {
            unsigned number = random_below(ADDRESSES);
            uint8_t address[16];

            make_address(number, address);
            if (random_below(5) < 3) {
                bool expected = counts[number] > 0 ? counts[number] < EACH_MAX : used < PEERS_MAX;

                assert_int_equal(peer_table_enter(table, address), expected);
                used += expected && counts[number] == 0;
                counts[number] += expected;
            } else if (counts[number] > 0) {
                peer_table_leave(table, address);
                counts[number]--;
                used -= counts[number] == 0;
            }
        }
        for (unsigned i = 0; i < ADDRESSES; i++) {
            uint8_t address[16];

            make_address(i, address);
            for (; counts[i] > 0; counts[i]--)
                peer_table_leave(table, address);
        }
        for (unsigned i = 0; i < PEERS_MAX; i++) { /* everything is free again */
            uint8_t address[16];

            make_address(i, address);
            assert_true(peer_table_enter(table, address));
        }
        table = peer_table_free(table);
        seed = start + 1;
    }
}

static void who_was_never_there_cannot_leave(void **state)
{
    static const uint8_t address[16] = {1}, other[16] = {2};
    struct peer_table *table;

    (void)state;
    assert_ok(peer_table_new(4, 1, &table, NULL));
    assert_true(peer_table_enter(table, address));
    assert_false(peer_table_enter(table, address));
    assert_dies(peer_table_leave(table, other), "count > 0");
    peer_table_leave(table, address);
    assert_true(peer_table_enter(table, address));
    table = peer_table_free(table);
    assert_null(peer_table_free(table));
}

static enum ron_err attempt(void *context, struct ron_errinfo *reterr)
{
    struct peer_table *table;
    enum ron_err err = peer_table_new(100, 1, &table, reterr);

    (void)context;
    if (err == RON_ERR_OK)
        (void)peer_table_free(table);
    return err;
}

static void without_memory_there_is_none(void **state)
{
    (void)state;
    assert_int_equal(support_fail_each_allocation(attempt, NULL, 10), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_those_of_an_array),
        cmocka_unit_test(who_was_never_there_cannot_leave),
        cmocka_unit_test(without_memory_there_is_none),
    };

    rt_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
