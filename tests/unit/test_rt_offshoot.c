/*
 * test_rt_offshoot.c - a copy of the process: it sees memory as it was, its bytes arrive whole, and
 * every way it can fail is told. Under sanitizers the same runs in the process.
 */
#include "support.h"

#include <signal.h>
#include <unistd.h>

#include "rt/offshoot.h"
#include "rt/registry.h"

enum { BYTES_COUNT = 3 << 20 };

struct source {
    uint32_t value; /* that the copy sees */
    bool fails, dies, hangs;
};

static bool tell(struct rt_offshoot *offshoot, void *context)
{
    struct source *source = context;

    for (uint32_t i = 0; i < BYTES_COUNT / 4; i++) {
        const uint32_t word = source->value + i;

        if (!rt_offshoot_put(offshoot, &word, sizeof(word)))
            return false;
    }
    if (source->dies)
        (void)kill(getpid(), SIGKILL);
    while (source->hangs)
        (void)pause();
    return !source->fails;
}

static enum ron_err start(struct source *source, bool in_process,
                          struct rt_offshoot **offshoot) RON_BLOCKS
{
    return rt_offshoot_start(
        &(struct rt_offshoot_options){
            .fn = tell, .context = source, .in_process = in_process, .size_max = BYTES_COUNT},
        offshoot, NULL);
}

/* Read to the end; how many words came, each one more than the one before. */
static enum ron_err drink(struct rt_offshoot *offshoot, struct rt_deadline deadline,
                          uint32_t *ret_first, size_t *ret_size) RON_BLOCKS
{
    static uint8_t bytes[BYTES_COUNT + 1];
    size_t size = 0, count = 1;
    enum ron_err err = RON_ERR_OK;

    while (err == RON_ERR_OK && count > 0 && size < sizeof(bytes)) {
        err = rt_offshoot_read(offshoot, bytes + size, sizeof(bytes) - size, deadline, &count,
                               NULL);
        size += err == RON_ERR_OK ? count : 0;
    }
    *ret_size = size;
    *ret_first = size >= 4 ? ron_load_le32(bytes) : 0;
    for (size_t i = 4; i + 4 <= size; i += 4)
        assert_int_equal(ron_load_le32(bytes + i), *ret_first + i / 4);
    return err;
}

static void it_sees_memory_as_it_was(void **state) RON_BLOCKS
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct source source = {.value = 7};
        struct rt_offshoot *offshoot = NULL;
        uint32_t first = 0;
        size_t size = 0;

        assert_ok(start(&source, i == 1, &offshoot));
        source.value =
            9000; /* the pipe is smaller than what comes: the copy still has work to do */
        assert_ok(drink(offshoot, RT_DEADLINE_NEVER, &first, &size));
        assert_int_equal(first, 7);
        assert_int_equal(size, BYTES_COUNT);
        assert_null(rt_offshoot_end(offshoot));
    }
}

static void its_failure_is_told(void **state) RON_BLOCKS
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct source source = {.fails = true};
        struct rt_offshoot *offshoot = NULL;
        uint32_t first = 0;
        size_t size = 0;

        assert_ok(start(&source, i == 1, &offshoot));
        assert_int_equal(drink(offshoot, RT_DEADLINE_NEVER, &first, &size), RON_ERR_IO);
        assert_int_equal(size, BYTES_COUNT);
        assert_null(rt_offshoot_end(offshoot));
    }
}

static void its_death_is_told(void **state) RON_BLOCKS
{
    struct source source = {.dies = true};
    struct rt_offshoot *offshoot = NULL;
    uint32_t first = 0;
    size_t size = 0;

    (void)state;
    if (RON_ASAN || RON_TSAN)
        return; /* nothing is forked */
    assert_ok(start(&source, false, &offshoot));
    assert_int_equal(drink(offshoot, RT_DEADLINE_NEVER, &first, &size), RON_ERR_IO);
    assert_null(rt_offshoot_end(offshoot));
}

/* One that hangs is ended by the parent, and leaves nothing behind. */
static void one_that_hangs_is_killed(void **state) RON_BLOCKS
{
    struct source source = {.hangs = true};
    struct rt_offshoot *offshoot = NULL;
    uint32_t first = 0;
    size_t size = 0;

    (void)state;
    if (RON_ASAN || RON_TSAN)
        return;
    assert_ok(start(&source, false, &offshoot));
    assert_int_equal(drink(offshoot, rt_deadline_after_ms(300), &first, &size), RON_ERR_TIMEOUT);
    assert_null(rt_offshoot_end(offshoot));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_sees_memory_as_it_was),
        cmocka_unit_test(its_failure_is_told),
        cmocka_unit_test(its_death_is_told),
        cmocka_unit_test(one_that_hangs_is_killed),
    };

    rt_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
