/*
 * test_log_scan.c - segments read through memory that was lent. Method: two segments with records
 * of a few bytes to more than twice the lent memory; whoever reads them through lent memory, one
 * after the other, sees what one with memory of its own sees.
 */
#include "base/crc32c.h"
#include "base/mem.h"
#include "log_world.h"

enum {
    RECORDS = 700,
    LARGE_EVERY = 75,
    LARGE_SIZE = 600000,
    LENT_LEAST = (256 << 10) + 3 * IO_DIRECT_SIZE,
};

static struct io_log_options large_options(struct io_vfs *vfs)
{
    struct io_log_options options = world_options(vfs);

    options.segment_bytes = 5 << 20;
    options.ahead_bytes = 5 << 20;
    options.group_bytes = 1 << 20;
    options.record_bytes_max = LARGE_SIZE;
    options.direct = true;
    return options;
}

static struct io_vfs *with_segments(void) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    const struct io_log_options options = large_options(vfs);
    struct io_log *log = world_open_as(&options);
    uint8_t *body = ron_mem_alloc(LARGE_SIZE);
    uint64_t index = 0;

    assert_non_null(body);
    for (uint32_t i = 0; i < LARGE_SIZE; i++)
        body[i] = (uint8_t)(i * 7 + i / 251);
    for (uint32_t i = 1; i <= RECORDS; i++) {
        const struct ron_slice part = {body, i % LARGE_EVERY == 0 ? (size_t)LARGE_SIZE
                                                                  : i * (size_t)1237 % 9000};

        assert_ok(io_log_append_until(log, (uint16_t)(i % 100), &part, 1,
                                      rt_deadline_after_ms(20000), &index, NULL));
    }
    assert_ok(io_log_wait(log, index, rt_deadline_after_ms(20000), NULL));
    world_close(log);
    body = ron_mem_free(body);
    return vfs;
}

/* What is seen of a segment. */
struct seen {
    uint64_t frames_count, first_index, last_index;
    uint64_t sum; /* of places and bodies */
};

static enum ron_err see(void *context, const struct io_frame *frame, uint64_t offset,
                        struct ron_errinfo *reterr)
{
    struct seen *seen = context;

    (void)reterr;
    if (seen->frames_count++ == 0)
        seen->first_index = frame->index;
    seen->last_index = frame->index;
    seen->sum = ron_crc32c((uint32_t)seen->sum, (const uint8_t *)&offset, sizeof(offset));
    seen->sum = ron_crc32c((uint32_t)seen->sum, frame->body.data, frame->body.size);
    return RON_ERR_OK;
}

static struct seen look(struct io_vfs *vfs, const char *path, void *lent, size_t size) RON_BLOCKS
{
    struct seen seen = {.frames_count = 0};
    struct io_segment_head head;
    struct io_file *file = NULL;
    struct log_scan scan;
    struct log_walk walk;

    assert_ok(io_vfs_open(vfs, path, IO_OPEN_DIRECT, &file, NULL));
    assert_ok(log_scan_head(file, &head, NULL));
    assert_ok(log_scan_init(&scan, file, &head, NULL));
    if (lent != NULL)
        log_scan_lend(&scan, lent, size);
    assert_ok(log_walk_on(&scan, true, IO_LOG_STRICT, see, &seen, &walk, NULL));
    log_scan_fini(&scan);
    file = io_file_close(file);
    return seen;
}

static void lent_memory_shows_the_same(void **state) RON_BLOCKS
{
    static const char *const paths[] = {"role/log/seg-0000000000000001",
                                        "role/log/seg-0000000000000002"};
    const size_t sizes[] = {LENT_LEAST, LENT_LEAST + 5000, 1 << 20};
    struct io_vfs *vfs = with_segments();

    (void)state;
    for (size_t s = 0; s < RON_ARRAY_COUNT(sizes); s++) {
        const uint64_t live = ron_mem_live_count();
        uint8_t *lent = ron_mem_alloc(sizes[s] + 1); /* not where a page begins */
        uint64_t next_index = 1;

        assert_non_null(lent);
        lent[sizes[s]] = 0x5a;
        for (size_t i = 0; i < RON_ARRAY_COUNT(paths); i++) {
            const struct seen alone = look(vfs, paths[i], NULL, 0);
            const struct seen through = look(vfs, paths[i], lent, sizes[s]);

            assert_memory_equal(&alone, &through, sizeof(alone));
            assert_true(alone.last_index - alone.first_index > LARGE_EVERY);
            assert_int_equal(alone.first_index, next_index);
            next_index = alone.last_index + 1;
        }
        assert_int_equal(lent[sizes[s]], 0x5a);
        lent = ron_mem_free(lent);
        assert_int_equal(ron_mem_live_count(), live);
        assert_int_equal(next_index, RECORDS + 1);
    }
    io_vfs_free(vfs);
}

/* What a scan has come to is enough for the next one, which makes none of its own. */
static void memory_goes_from_scan_to_scan(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_segments();
    const uint64_t live = ron_mem_live_count();
    const struct seen alone = look(vfs, "role/log/seg-0000000000000002", NULL, 0);
    struct io_segment_head head;
    struct io_file *file = NULL;
    struct log_scan scan;
    struct log_walk walk;
    struct seen seen = {.frames_count = 0};
    size_t size = 0;
    void *memory;

    (void)state;
    assert_ok(io_vfs_open(vfs, "role/log/seg-0000000000000001", IO_OPEN_DIRECT, &file, NULL));
    assert_ok(log_scan_head(file, &head, NULL));
    assert_ok(log_scan_init(&scan, file, &head, NULL));
    assert_null(log_scan_take(&scan, &size)); /* it has come to nothing yet */
    assert_ok(log_walk_on(&scan, false, IO_LOG_STRICT, see, &seen, &walk, NULL));
    memory = log_scan_take(&scan, &size);
    assert_non_null(memory);
    assert_true(size > 3 << 20);
    log_scan_fini(&scan);
    file = io_file_close(file);
    memset(memory, 0x5a, size); /* all of it is there */
    seen = look(vfs, "role/log/seg-0000000000000002", memory, size);
    assert_memory_equal(&alone, &seen, sizeof(alone));
    assert_int_equal(ron_mem_live_count(), live + 1);
    (void)ron_table_free(memory);
    io_vfs_free(vfs);
}

static bool no_large_memory(size_t size, void *context)
{
    (void)context;
    return size > 300 << 10;
}

/* A piece after a piece is read with ever fewer calls; who has seen the end begins with little.
 * Without memory for more it goes on with what there is. */
static void who_reads_on_reads_more_at_once(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_segments();
    const uint64_t live = ron_mem_live_count();
    enum io_frame_verdict verdict = IO_FRAME_VALID;
    struct io_segment_head head;
    struct io_file *file = NULL;
    struct log_scan scan;
    struct io_frame frame;
    const char *why = NULL;
    enum ron_err err;
    size_t first;

    (void)state;
    assert_ok(io_vfs_open(vfs, "role/log/seg-0000000000000001", IO_OPEN_DIRECT, &file, NULL));
    assert_ok(log_scan_head(file, &head, NULL));
    assert_ok(log_scan_init(&scan, file, &head, NULL));
    first = scan.piece;
    while (verdict == IO_FRAME_VALID && !scan.sealed)
        assert_ok(log_scan_next(&scan, &verdict, &frame, &why, NULL));
    assert_int_equal(verdict, IO_FRAME_VALID);
    assert_true(scan.piece >= 4 * first);
    assert_true(scan.piece <= scan.piece_max);
    log_scan_refresh(&scan, scan.size);
    assert_int_equal(scan.piece, first);
    scan.sealed = false;
    log_scan_jump(&scan, IO_SEGMENT_HEAD_SIZE);
    assert_ok(log_scan_next(&scan, &verdict, &frame, &why, NULL));
    assert_int_equal(frame.index, 1);
    log_scan_fini(&scan);

    assert_ok(log_scan_init(&scan, file, &head, NULL));
    ron_mem_set_fail_hook(no_large_memory, NULL);
    do
        err = log_scan_next(&scan, &verdict, &frame, &why, NULL);
    while (err == RON_ERR_OK && frame.index < LARGE_EVERY);
    ron_mem_set_fail_hook(NULL, NULL);
    assert_int_equal(err, RON_ERR_NO_MEMORY); /* for the first large one */
    assert_int_equal(frame.index, LARGE_EVERY - 1);
    assert_true(scan.piece < first);
    verdict = IO_FRAME_VALID;
    while (verdict == IO_FRAME_VALID && !scan.sealed)
        assert_ok(log_scan_next(&scan, &verdict, &frame, &why, NULL));
    assert_int_equal(verdict, IO_FRAME_VALID);
    log_scan_fini(&scan);
    file = io_file_close(file);
    assert_int_equal(ron_mem_live_count(), live);
    io_vfs_free(vfs);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lent_memory_shows_the_same, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(memory_goes_from_scan_to_scan, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(who_reads_on_reads_more_at_once, world_setup,
                                        world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
