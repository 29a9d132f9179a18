/*
 * test_backup.c - copies of a ledger's files. Method: files of known bytes on a disk in memory; the
 * order of the copy is seen by changing the source while it goes on, and every write and sync is
 * made to fail in turn. That a copy of a real log verifies is tested from outside
 * (tests/ledger-api/test_copies.py).
 */
#include "support.h"

#include "io/vfs_memory.h"
#include "ledger/backup.h"

enum { LARGE = (2 << 20) + 77 };

static struct io_vfs *disk(void) RON_BLOCKS
{
    struct io_vfs *vfs = NULL;

    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    return vfs;
}

static void put_at(struct io_vfs *vfs, const char *path, uint64_t at, const char *text) RON_BLOCKS
{
    const struct ron_slice bytes = ron_slice_text(text);
    struct io_file *file = NULL;

    if (io_vfs_open(vfs, path, IO_OPEN_WRITE, &file, NULL) != RON_ERR_OK)
        assert_ok(io_vfs_open(vfs, path, IO_OPEN_CREATE, &file, NULL));
    assert_ok(io_file_write(file, at, &bytes, 1, NULL));
    (void)io_file_close(file);
}

static void assert_at(struct io_vfs *vfs, const char *path, uint64_t at,
                      const char *text) RON_BLOCKS
{
    struct io_file *file = NULL;
    char bytes[64] = "";
    size_t size = 0;

    assert_ok(io_vfs_open(vfs, path, IO_OPEN_READ, &file, NULL));
    assert_ok(io_file_read(file, at, bytes, strlen(text), &size, NULL));
    assert_string_equal(bytes, text);
    (void)io_file_close(file);
}

static bool is_there(struct io_vfs *vfs, const char *path) RON_BLOCKS
{
    struct io_file *file = NULL;
    const bool there = io_vfs_open(vfs, path, IO_OPEN_READ, &file, NULL) == RON_ERR_OK;

    (void)io_file_close(file);
    return there;
}

/* Two segments, the newer one of three pieces; a key; what is not whole yet. */
static struct io_vfs *source(void) RON_BLOCKS
{
    struct io_vfs *vfs = disk();

    assert_ok(io_vfs_make_dir(vfs, "ledger/log", NULL));
    assert_ok(io_vfs_make_dir(vfs, "ledger/tiles", NULL));
    assert_ok(io_vfs_make_dir(vfs, "ledger/books", NULL));
    put_at(vfs, "ledger/log/seg-1", 0, "one");
    put_at(vfs, "ledger/log/seg-2", 0, "begin");
    put_at(vfs, "ledger/log/seg-2", LARGE - 3, "end");
    put_at(vfs, "ledger/log/seg-3.new", 0, "no");
    put_at(vfs, "ledger/log/owner", 0, "me");
    put_at(vfs, "ledger/tiles/checkpoint", 0, "10");
    put_at(vfs, "ledger/books/run", 0, "derived");
    put_at(vfs, "ledger/log.key", 0, "secret");
    return vfs;
}

struct watch {
    struct io_vfs *vfs; /* the source, changed by the tick */
    unsigned ticks, end_at;
};

/* Everything changes once the signed head, the owner and the last piece of the log are copied. */
static enum ron_err change(void *context, const char *dir, uint64_t files_done,
                           uint64_t files_total, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct watch *watch = context;

    (void)dir;
    assert_true(files_done <= files_total);
    watch->ticks++;
    if (watch->end_at == watch->ticks)
        return ron_fail(reterr, RON_ERR_CANCELED, "enough");
    if (watch->vfs != NULL && watch->ticks == 3) {
        put_at(watch->vfs, "ledger/tiles/checkpoint", 0, "11");
        put_at(watch->vfs, "ledger/log/seg-2", 0, "BEGIN");
        put_at(watch->vfs, "ledger/log/seg-2", LARGE - 3, "END");
        put_at(watch->vfs, "ledger/log/seg-1", 0, "two");
    }
    return RON_ERR_OK;
}

static void what_is_counted_is_copied_last(void **state) RON_BLOCKS
{
    struct io_vfs *from = source();
    struct io_vfs *to = disk();
    struct watch watch = {.vfs = from};
    const struct ledger_copy_options options = {
        .from = from, .to = to, .from_dir = "", .to_dir = "", .tick = change, .context = &watch};
    struct ledger_copy_report report;

    (void)state;
    assert_ok(ledger_copy(&options, &report, NULL));
    assert_int_equal(report.files_count, 4);
    assert_int_equal(report.bytes_count, LARGE + 3 + 2 + 2);
    assert_false(report.has_key);
    assert_at(to, "ledger/tiles/checkpoint", 0, "10");
    assert_at(to, "ledger/log/seg-2", LARGE - 3, "end"); /* from its end to its beginning */
    assert_at(to, "ledger/log/seg-2", 0, "BEGIN");
    assert_at(to, "ledger/log/seg-1", 0, "two");
    assert_false(is_there(to, "ledger/log/seg-3.new"));
    assert_false(is_there(to, "ledger/books/run"));
    assert_false(is_there(to, "ledger/log.key"));
    assert_int_equal(ledger_copy(&options, &report, NULL), RON_ERR_CONFLICT);
    assert_at(to, "ledger/log/seg-1", 0, "two"); /* what was there stays */
    (void)io_vfs_free(to);
    (void)io_vfs_free(from);
}

static void what_fails_is_removed(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = source();
    struct watch watch = {.end_at = 1};
    const struct ledger_copy_options options = {.from = vfs,
                                                .to = vfs,
                                                .from_dir = "",
                                                .to_dir = "backups/a",
                                                .with_key = true,
                                                .tick = change,
                                                .context = &watch};
    struct ledger_copy_report report;
    enum ron_err err;

    (void)state;
    do { /* ended at the first piece, the second ... */
        watch.ticks = 0;
        err = ledger_copy(&options, &report, NULL);
        if (err != RON_ERR_OK) {
            assert_int_equal(err, RON_ERR_CANCELED);
            assert_false(is_there(vfs, "backups/a/ledger/log/seg-1"));
            assert_false(is_there(vfs, "backups/a/ledger/log/seg-2"));
            assert_false(is_there(vfs, "backups/a/ledger/tiles/checkpoint"));
            assert_false(is_there(vfs, "backups/a/ledger/log.key"));
        }
    } while (err != RON_ERR_OK && ++watch.end_at < 100);
    assert_int_equal(watch.end_at, 8); /* 7 pieces: checkpoint, owner, 3 of seg-2, seg-1, key */
    assert_true(report.has_key);
    assert_at(vfs, "backups/a/ledger/log.key", 0, "secret");
    assert_at(vfs, "ledger/log/seg-1", 0, "one");
    ledger_copy_remove(vfs, "backups/a");
    assert_false(is_there(vfs, "backups/a/ledger/log.key"));
    watch.end_at = 0;
    assert_ok(ledger_copy(&options, &report, NULL)); /* empty directories are in nobody's way */
    (void)io_vfs_free(vfs);
}

static void a_note_is_read_as_written(void **state) RON_BLOCKS
{
    const struct ledger_backup_note note = {.entries_count = 7,
                                            .root = {.bytes = {1, 2, 255}},
                                            .made_ms = UINT64_C(1800000000123),
                                            .has_key = true};
    struct ledger_backup_note read = {.entries_count = 0};
    struct io_vfs *vfs = disk();

    (void)state;
    assert_int_equal(ledger_backup_note_read(vfs, "b", &read, NULL), RON_ERR_NOT_FOUND);
    assert_ok(io_vfs_make_dir(vfs, "b", NULL));
    assert_ok(ledger_backup_note_write(vfs, "b", &note, NULL));
    assert_ok(ledger_backup_note_read(vfs, "b", &read, NULL));
    assert_int_equal(read.entries_count, 7);
    assert_int_equal(read.made_ms, note.made_ms);
    assert_true(read.has_key);
    assert_memory_equal(read.root.bytes, note.root.bytes, RON_SHA256_SIZE);
    put_at(vfs, "b/backup.json", 0, "[");
    assert_int_equal(ledger_backup_note_read(vfs, "b", &read, NULL), RON_ERR_MALFORMED);
    assert_int_equal(read.entries_count, 7); /* untouched */
    (void)io_vfs_free(vfs);
}

static void no_ledger_no_copy(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = disk();
    const struct ledger_copy_options options = {
        .from = vfs, .to = vfs, .from_dir = "", .to_dir = "backups/a"};
    struct ledger_copy_report report;
    struct ledger_backup_note note;

    (void)state;
    assert_int_equal(ledger_copy(&options, &report, NULL), RON_ERR_NOT_FOUND);
    assert_int_equal(ledger_copy_check(&options, &note, NULL), RON_ERR_NOT_FOUND);
    (void)io_vfs_free(vfs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_counted_is_copied_last),
        cmocka_unit_test(what_fails_is_removed),
        cmocka_unit_test(a_note_is_read_as_written),
        cmocka_unit_test(no_ledger_no_copy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
