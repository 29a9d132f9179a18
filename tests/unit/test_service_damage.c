/*
 * test_service_damage.c - damage in the ledger's log: what is served then, what is said of it, and
 * how SafeMode is left. On a disk in memory; the same from outside is tests/ledger-api/
 * test_damage.py.
 */
#include "service_fixture.h"

#include "io/log_format.h"
#include "io/vfs_faulty.h"
#include "io/vfs_memory.h"
#include "ledger/service_impl.h"
#include "rt/span.h"

#define FIRST "log/seg-0000000000000001"
#define MARK  "damaged"

enum { COMMITS_MAX = 160, FEW = 5, SEGMENT_BYTES = 16 << 10 };

struct disk {
    struct service_fixture *f;
    struct io_vfs *vfs;
    struct ledger_engine *engine;
    struct ledger_root roots[COMMITS_MAX]; /* as they were committed */
    uint32_t commits_count;
};

static void disk_open(struct disk *disk) RON_BLOCKS
{
    const struct ledger_engine_file_options options = {.vfs = disk->vfs,
                                                       .dir = "log",
                                                       .segment_bytes = SEGMENT_BYTES,
                                                       .ahead_bytes = SEGMENT_BYTES,
                                                       .group_bytes = 1 << 12,
                                                       .record_bytes_max = 1 << 12};

    assert_ok(ledger_engine_file_open(&options, &disk->engine, NULL));
    disk->f->options.engine = disk->engine;
    fixture_start(disk->f);
}

static void disk_close(struct disk *disk) RON_BLOCKS
{
    fixture_stop(disk->f);
    disk->engine = ledger_engine_file_free(disk->engine);
}

static void commit(struct disk *disk) RON_BLOCKS
{
    char id[TEXT_SIZE];

    disk->f->calls_count = 0; /* all are answered */
    (void)snprintf(id, sizeof(id), "m%u", disk->commits_count);
    accepts(disk->f, call_new(disk->f, id, NULL, "alice", 10, id));
    disk->roots[disk->commits_count++] = ledger_read_head(disk->f->service);
}

/* A log of so many commits, closed cleanly. */
static struct disk *disk_new(uint32_t commits_count) RON_BLOCKS
{
    struct disk *disk = ron_mem_alloc(sizeof(*disk));

    assert_non_null(disk);
    disk->f = fixture_new();
    disk->f->options.roots_max = 2;
    assert_ok(io_vfs_memory_new(NULL, &disk->vfs, NULL));
    disk->f->options.damage = (struct ledger_damage_options){disk->vfs, MARK};
    disk_open(disk);
    while (disk->commits_count < commits_count)
        commit(disk);
    disk_close(disk);
    return disk;
}

static void disk_free(struct disk *disk) RON_BLOCKS
{
    (void)io_vfs_free(disk->vfs);
    fixture_free(disk->f);
    (void)ron_mem_free(disk);
}

static void turn_a_bit(struct disk *disk, const char *path, uint64_t offset) RON_BLOCKS
{
    struct io_file *file = NULL;
    uint8_t byte = 0;
    size_t size = 0;

    assert_ok(io_vfs_open(disk->vfs, path, IO_OPEN_WRITE, &file, NULL));
    assert_ok(io_file_read(file, offset, &byte, 1, &size, NULL));
    assert_int_equal(size, 1);
    byte ^= 1;
    assert_ok(io_file_write(file, offset, &(struct ron_slice){&byte, 1}, 1, NULL));
    (void)io_file_close(file);
}

static bool is_there(struct disk *disk, const char *path) RON_BLOCKS
{
    struct io_file *file = NULL;
    const enum ron_err err = io_vfs_open(disk->vfs, path, IO_OPEN_READ, &file, NULL);

    (void)io_file_close(file);
    return err == RON_ERR_OK;
}

/* Bytes of a file up to its last one that is not zero. */
static uint64_t used_size(struct disk *disk, const char *path) RON_BLOCKS
{
    static uint8_t bytes[SEGMENT_BYTES];
    struct io_file *file = NULL;
    size_t size = 0;

    assert_ok(io_vfs_open(disk->vfs, path, IO_OPEN_READ, &file, NULL));
    assert_ok(io_file_read(file, 0, bytes, sizeof(bytes), &size, NULL));
    (void)io_file_close(file);
    while (size > 0 && bytes[size - 1] == 0)
        size--;
    return size;
}

static void copy_file(struct disk *disk, const char *from, const char *to) RON_BLOCKS
{
    static uint8_t bytes[2 * SEGMENT_BYTES];
    struct io_file *file = NULL;
    size_t size = 0;

    assert_ok(io_vfs_open(disk->vfs, from, IO_OPEN_READ, &file, NULL));
    assert_ok(io_file_read(file, 0, bytes, sizeof(bytes), &size, NULL));
    assert_true(size < sizeof(bytes));
    (void)io_file_close(file);
    assert_ok(io_vfs_open(disk->vfs, to, IO_OPEN_CREATE, &file, NULL));
    assert_ok(io_file_write(file, 0, &(struct ron_slice){bytes, size}, 1, NULL));
    (void)io_file_close(file);
}

static enum ron_err refused_write(struct disk *disk)
{
    disk->f->calls_count = 0;
    return ledger_submit(disk->f->service, &call_new(disk->f, "n", NULL, "alice", 1, NULL)->request,
                         NULL);
}

/* The first `good` commits, all of them, and nothing beyond. */
static void reads_up_to(struct disk *disk, uint64_t good) RON_BLOCKS
{
    static struct ledger_root roots[COMMITS_MAX];
    struct ledger_frame frame;
    struct ron_buf buf;
    size_t count = 0;

    assert_int_equal(balance_of(disk->f, "alice"), 10 * good);
    assert_int_equal(ledger_read_head(disk->f->service).seq, good);
    assert_ok(ledger_read_roots(disk->f->service, 0, roots, COMMITS_MAX, &count, NULL));
    assert_int_equal(count, good);
    assert_memory_equal(roots, disk->roots, good * sizeof(roots[0]));
    ron_buf_init(&buf, 1 << 20);
    if (good > 0) {
        assert_ok(ledger_read_batch(disk->f->service, good, &buf, NULL));
        assert_ok(ledger_frame_decode(ron_buf_slice(&buf), &frame, NULL));
        assert_memory_equal(&frame.root, &disk->roots[good - 1].root, sizeof(frame.root));
    }
    assert_int_equal(ledger_read_batch(disk->f->service, good + 1, &buf, NULL), RON_ERR_NOT_FOUND);
    ron_buf_fini(&buf);
}

/* It was opened on a damaged log: how many commits lie before the damage? */
static uint64_t serves_what_is_good(struct disk *disk, const char *path) RON_BLOCKS
{
    struct ledger_health health;

    ledger_read_health(disk->f->service, &health);
    assert_int_equal(health.status.state, RT_LIFE_SAFE_MODE);
    assert_int_equal(health.damage.info.err, RON_ERR_WAL_CORRUPT);
    assert_false(health.damage_over);
    assert_string_equal(health.damage.place.file, path);
    assert_int_equal(health.damage.good_seq, health.head.seq);
    assert_memory_equal(&health.damage.good_root, &health.head.root, sizeof(health.head.root));
    assert_int_equal(refused_write(disk), RON_ERR_SAFE_MODE);
    reads_up_to(disk, health.head.seq);
    assert_int_equal(ledger_service_acknowledge(disk->f->service, NULL), RON_ERR_CONFLICT);
    assert_int_equal(ledger_service_set_safe(disk->f->service, false, NULL), RON_ERR_CONFLICT);
    assert_int_equal(refused_write(disk), RON_ERR_SAFE_MODE);
    assert_true(is_there(disk, MARK));
    return health.head.seq;
}

/* The log is whole again: everything is there, but only an operator ends SafeMode. */
static void is_left_by_the_operator(struct disk *disk) RON_BLOCKS
{
    struct ledger_health health;

    ledger_read_health(disk->f->service, &health);
    assert_int_equal(health.status.state, RT_LIFE_SAFE_MODE);
    assert_true(health.damage_over);
    assert_int_equal(refused_write(disk), RON_ERR_SAFE_MODE);
    assert_int_equal(ledger_service_set_safe(disk->f->service, false, NULL), RON_ERR_CONFLICT);
    assert_int_equal(refused_write(disk), RON_ERR_SAFE_MODE);
    reads_up_to(disk, disk->commits_count);
    assert_ok(ledger_service_set_safe(disk->f->service, true, NULL));
    assert_ok(ledger_service_acknowledge(disk->f->service, NULL));
    assert_false(is_there(disk, MARK));
    ledger_read_health(disk->f->service, &health);
    assert_int_equal(health.status.state, RT_LIFE_SAFE_MODE); /* that order stands */
    assert_ok(ledger_service_set_safe(disk->f->service, false, NULL));
    ledger_read_health(disk->f->service, &health);
    assert_int_equal(health.status.state, RT_LIFE_RUNNING);
    assert_int_equal(health.damage.info.err, RON_ERR_OK);
    assert_int_equal(ledger_service_acknowledge(disk->f->service, NULL), RON_ERR_NOT_FOUND);
}

/* One bit, at any place of a segment's head, frames, bodies and commits. covers: LED-V27, LED-F15
 */
static void any_byte_of_the_newest_segment(void **state) RON_BLOCKS
{
    enum { STRIDE = 23 };
    struct disk *disk = disk_new(FEW);
    const uint64_t size = used_size(disk, FIRST);
    uint64_t damaged_count = 0, unharmed_count = 0, good_last = 0;

    (void)state;
    assert_true(size > IO_SEGMENT_HEAD_SIZE);
    for (uint64_t offset = 0; offset < size; offset += STRIDE) {
        struct ledger_health health;

        if (offset >= 8 && offset < 12) /* the version: looks like a newer one, and is refused */
            continue;
        turn_a_bit(disk, FIRST, offset);
        disk_open(disk);
        ledger_read_health(disk->f->service, &health);
        if (health.damage.info.err == RON_ERR_OK) { /* a byte that means nothing */
            assert_int_equal(health.status.state, RT_LIFE_RUNNING);
            reads_up_to(disk, FEW);
            unharmed_count++;
        } else {
            const uint64_t good = serves_what_is_good(disk, FIRST);

            assert_true(good < FEW);
            assert_true(good >= good_last); /* the later, the more of it is good */
            assert_true(health.damage.place.offset <= offset);
            good_last = good;
            damaged_count++;
        }
        disk_close(disk);
        turn_a_bit(disk, FIRST, offset);
        if (health.damage.info.err != RON_ERR_OK) {
            disk_open(disk);
            is_left_by_the_operator(disk);
            disk_close(disk);
        }
    }
    assert_int_equal(good_last, FEW - 1);
    assert_true(damaged_count > 8 * unharmed_count);
    disk_open(disk); /* nothing of it has changed the log */
    commit(disk);
    reads_up_to(disk, FEW + 1);
    disk_close(disk);
    disk_free(disk);
}

/* In a segment with others behind it. covers: LED-V27 */
static void a_sealed_segment(void **state) RON_BLOCKS
{
    struct disk *disk = disk_new(COMMITS_MAX - 2);
    uint64_t good;

    (void)state;
    assert_true(is_there(disk, "log/seg-0000000000000003"));
    for (uint64_t offset = 0; offset < SEGMENT_BYTES / 2; offset += 2049) {
        turn_a_bit(disk, "log/seg-0000000000000002", offset);
        disk_open(disk);
        good = serves_what_is_good(disk, "log/seg-0000000000000002");
        assert_true(good > 0);
        assert_true(good < COMMITS_MAX - 2);
        disk_close(disk);
        disk_open(disk); /* and a restart does not help */
        assert_int_equal(serves_what_is_good(disk, "log/seg-0000000000000002"), good);
        disk_close(disk);
        turn_a_bit(disk, "log/seg-0000000000000002", offset);
        disk_open(disk);
        is_left_by_the_operator(disk);
        disk_close(disk);
    }
    disk_free(disk);
}

/* covers: LED-V27 */
static void a_segment_that_is_gone(void **state) RON_BLOCKS
{
    struct disk *disk = disk_new(COMMITS_MAX - 2);
    struct ledger_health health;

    (void)state;
    copy_file(disk, "log/seg-0000000000000002", "aside");
    assert_ok(io_vfs_unlink(disk->vfs, "log/seg-0000000000000002", NULL));
    disk_open(disk);
    ledger_read_health(disk->f->service, &health);
    assert_non_null(strstr(health.damage.info.message, "0000000000000002"));
    assert_true(serves_what_is_good(disk, "log/seg-0000000000000003") > 0);
    disk_close(disk);
    copy_file(disk, "aside", "log/seg-0000000000000002");
    disk_open(disk);
    is_left_by_the_operator(disk);
    commit(disk);
    reads_up_to(disk, COMMITS_MAX - 1);
    disk_close(disk);
    disk_open(disk); /* acknowledged once is enough */
    commit(disk);
    reads_up_to(disk, COMMITS_MAX);
    disk_close(disk);
    disk_free(disk);
}

/* A sync that failed leaves the same mark: what the next start reads is for someone to look at.
 * covers: LED-C38 */
static void a_failed_sync(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct ledger_health health;
    struct io_vfs *vfs = NULL;

    (void)state;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    f->options.damage = (struct ledger_damage_options){vfs, MARK};
    fixture_start(f);
    accepts(f, call_new(f, "a", NULL, "alice", 10, "a"));
    rt_atomic_store_u32(&f->gate->wait_error, RON_ERR_IO);
    assert_true(ask(f, call_new(f, "b", NULL, "alice", 10, "b"))->unknown);
    assert_int_equal(ledger_service_acknowledge(f->service, NULL), RON_ERR_CONFLICT);
    fixture_stop(f);
    rt_atomic_store_u32(&f->gate->wait_error, RON_ERR_OK);
    fixture_start(f);
    ledger_read_health(f->service, &health);
    assert_int_equal(health.status.state, RT_LIFE_SAFE_MODE);
    assert_int_equal(health.damage.info.err, RON_ERR_IO);
    assert_int_equal(health.damage.good_seq, 1);
    assert_string_equal(health.damage.place.file, "");
    assert_true(health.damage_over);
    assert_ok(ledger_service_acknowledge(f->service, NULL));
    assert_true(ask(f, call_new(f, "b", NULL, "alice", 10, "b"))->repeated); /* it was written */
    assert_int_equal(balance_of(f, "alice"), 20);
    fixture_stop(f);
    fixture_free(f);
    (void)io_vfs_free(vfs);
}

/* A sync fails, and then the mark cannot be written, so many times. */
static struct io_vfs *fail_to_mark(struct service_fixture *f, struct io_vfs *memory,
                                   struct io_fault *fault,
                                   struct io_faulty_options *options) RON_BLOCKS
{
    struct ledger_health health;
    struct io_vfs *faulty = NULL;

    *options = (struct io_faulty_options){.faults = fault, .faults_count = 1};
    assert_ok(io_vfs_faulty_new(memory, options, &faulty, NULL));
    f->options.damage = (struct ledger_damage_options){faulty, MARK};
    fixture_start(f);
    rt_atomic_store_u32(&f->gate->wait_error, RON_ERR_IO);
    assert_true(ask(f, call_new(f, "a", NULL, "alice", 10, "a"))->unknown);
    until(io_faulty_count(faulty, IO_FAULT_ENOSPC) > 0);
    ledger_read_health(f->service, &health);
    assert_int_equal(health.status.state, RT_LIFE_SAFE_MODE);
    return faulty;
}

/* Tried again: by the Sequencer's timer, and when the service stops. Until then it is said. */
static void a_mark_that_cannot_be_written(void **state) RON_BLOCKS
{
    static const struct {
        uint32_t expire_ms;
        uint64_t times;
    } rows[] = {{1, 3}, {0, 1}};

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(rows); i++) {
        struct service_fixture *f = fixture_new();
        struct io_fault fault = {
            .kind = IO_FAULT_ENOSPC, .call = IO_CALL_WRITE, .at = 1, .times = rows[i].times};
        struct io_faulty_options options;
        struct ledger_health health;
        struct io_vfs *memory = NULL;
        struct io_vfs *faulty;

        assert_ok(io_vfs_memory_new(NULL, &memory, NULL));
        f->options.expire_ms = rows[i].expire_ms;
        faulty = fail_to_mark(f, memory, &fault, &options);
        if (rows[i].expire_ms > 0)
            until((ledger_read_health(f->service, &health), health.damage_marked));
        else
            assert_false((ledger_read_health(f->service, &health), health.damage_marked));
        assert_int_equal(health.damage.info.err, RON_ERR_IO);
        fixture_stop(f);
        rt_atomic_store_u32(&f->gate->wait_error, RON_ERR_OK);
        fixture_start(f);
        ledger_read_health(f->service, &health);
        assert_int_equal(health.status.state, RT_LIFE_SAFE_MODE); /* it came to the disk */
        assert_true(health.damage_marked);
        assert_true(health.damage_over);
        assert_ok(ledger_service_acknowledge(f->service, NULL));
        fixture_stop(f);
        fixture_free(f);
        (void)io_vfs_free(faulty);
        (void)io_vfs_free(memory);
    }
}

/* A drain that was cut short ends writing, too: only what someone wants marked is, by nobody else.
 */
static void what_is_not_marked_stays_so(void **state) RON_BLOCKS
{
    static const uint32_t expire_ms[] = {1, 0}; /* by the timer, and by the stop alone */

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(expire_ms); i++) {
        struct service_fixture *f = fixture_new();
        struct ron_errinfo info = {0};
        struct ledger_health health;
        struct io_vfs *vfs = NULL;

        assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
        f->options.damage = (struct ledger_damage_options){vfs, MARK};
        f->options.expire_ms = expire_ms[i];
        fixture_start(f);
        (void)ron_fail(&info, RON_ERR_TIMEOUT, "the drain ended before the commit");
        service_break(f->service, &info);
        ledger_read_health(f->service, &health);
        assert_int_equal(health.status.state, RT_LIFE_SAFE_MODE);
        fixture_stop(f);
        fixture_start(f);
        ledger_read_health(f->service, &health);
        assert_int_equal(health.status.state, RT_LIFE_RUNNING);
        assert_int_equal(health.damage.info.err, RON_ERR_OK);
        fixture_stop(f);
        fixture_free(f);
        (void)io_vfs_free(vfs);
    }
}

/* What cannot be read may say anything. */
static void a_mark_that_cannot_be_read(void **state) RON_BLOCKS
{
    static const char *const marks[] = {"", "{}", "no JSON at all",
                                        "{\"error\":\"Nonsense\",\"file\":\"\",\"offset\":0}"};

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(marks); i++) {
        struct disk *disk = disk_new(FEW);
        struct io_file *file = NULL;
        struct ron_slice text = S(marks[i]);

        assert_ok(io_vfs_open(disk->vfs, MARK, IO_OPEN_CREATE, &file, NULL));
        assert_ok(io_file_write(file, 0, &text, 1, NULL));
        (void)io_file_close(file);
        disk_open(disk);
        is_left_by_the_operator(disk);
        disk_close(disk);
        disk_free(disk);
    }
}

/* Marked, nothing is written, not even by the service itself; all requests are sampled. */
static void safe_is_quiet(void **state) RON_BLOCKS
{
    static const char parent[] = "00-0af7651916cd43ddffffffffffffffff-b7ad6b7169203331-01";
    const struct ledger_damage damage = {.info = {.err = RON_ERR_WAL_CORRUPT}};
    struct disk *disk = disk_new(FEW);
    struct rt_spans *spans = NULL;
    struct rt_trace trace;

    (void)state;
    assert_ok(rt_spans_new("test", 1, &spans, NULL));
    assert_false(rt_trace_start(spans, S(parent), &trace));
    disk->f->options.spans = spans;
    disk->f->options.expire_ms = 1;
    disk->f->options.snapshot.vfs = disk->vfs;
    disk->f->options.snapshot.ms = 1;
    disk->f->options.snapshot.min_ms = 1;
    assert_ok(ledger_damage_mark(disk->vfs, MARK, &damage, NULL));
    disk_open(disk);
    assert_true(rt_trace_start(spans, S(parent), &trace));
    assert_int_equal(ledger_service_snapshot(disk->f->service, RT_DEADLINE_NEVER, NULL),
                     RON_ERR_SAFE_MODE);
    is_left_by_the_operator(disk);
    assert_false(rt_trace_start(spans, S(parent), &trace));
    assert_ok(ledger_service_snapshot(disk->f->service, RT_DEADLINE_NEVER, NULL));
    assert_ok(ledger_service_set_safe(disk->f->service, true, NULL)); /* an order is no damage */
    assert_true(rt_trace_start(spans, S(parent), &trace));
    assert_int_equal(refused_write(disk), RON_ERR_SAFE_MODE);
    assert_int_equal(ledger_service_acknowledge(disk->f->service, NULL), RON_ERR_NOT_FOUND);
    assert_ok(ledger_service_set_safe(disk->f->service, false, NULL));
    assert_false(rt_trace_start(spans, S(parent), &trace));
    disk_close(disk);
    assert_false(is_there(disk, MARK));
    disk_free(disk);
    (void)rt_spans_free(spans);
}

static void what_a_mark_keeps(void **state) RON_BLOCKS
{
    struct ledger_damage damage = {
        .place = {"ledger/log/seg-1", UINT64_MAX - 1}, .found_ms = 1700000000000, .good_seq = 41};
    struct ledger_damage found = {.found_ms = 0};
    struct io_vfs *vfs = NULL;

    (void)state;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    (void)ron_fail(&damage.info, RON_ERR_IO, "a \"quoted\" \x01 \xc3\xa9 reason");
    memset(damage.good_root.bytes, 0xa5, sizeof(damage.good_root.bytes));
    assert_int_equal(ledger_damage_read(vfs, MARK, &found, NULL), RON_ERR_NOT_FOUND);
    assert_ok(ledger_damage_mark(vfs, MARK, &damage, NULL));
    assert_ok(ledger_damage_read(vfs, MARK, &found, NULL));
    assert_int_equal(found.info.err, RON_ERR_IO);
    assert_string_equal(found.info.message, damage.info.message);
    assert_string_equal(found.place.file, damage.place.file);
    assert_int_equal(found.place.offset, damage.place.offset);
    assert_int_equal(found.found_ms, damage.found_ms);
    assert_int_equal(found.good_seq, 41);
    assert_memory_equal(&found.good_root, &damage.good_root, sizeof(found.good_root));
    assert_int_equal(io_memory_unsynced_count(vfs), 0);
    assert_ok(ledger_damage_unmark(vfs, MARK, NULL));
    assert_ok(ledger_damage_unmark(vfs, MARK, NULL));
    assert_int_equal(io_memory_unsynced_count(vfs), 0);
    assert_int_equal(ledger_damage_read(vfs, MARK, &found, NULL), RON_ERR_NOT_FOUND);
    (void)io_vfs_free(vfs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_byte_of_the_newest_segment),
        cmocka_unit_test(a_sealed_segment),
        cmocka_unit_test(a_segment_that_is_gone),
        cmocka_unit_test(a_failed_sync),
        cmocka_unit_test(a_mark_that_cannot_be_written),
        cmocka_unit_test(what_is_not_marked_stays_so),
        cmocka_unit_test(a_mark_that_cannot_be_read),
        cmocka_unit_test(safe_is_quiet),
        cmocka_unit_test(what_a_mark_keeps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
