/*
 * test_tlog_export.c - the static layout of c2sp.org/tlog-tiles. Method: the files of a small tree,
 * byte for byte; a checkpoint of another tree and leaves that are not in it are refused. Strangers
 * read a larger export in tests/interop/tlog.
 */
#include "support.h"

#include "io/note.h"
#include "io/tlog.h"
#include "io/vfs_memory.h"
#include "merkle_oracle.h"

enum { LEAVES_COUNT = 300, WRONG_INDEX = 290 };

static struct ron_sha256 leaves[LEAVES_COUNT];
static struct io_vfs *vfs;
static struct io_tlog *tlog;
static struct ron_secret seed;
static struct ron_buf note;

enum entry { ENTRY_RIGHT, ENTRY_WRONG, ENTRY_LARGE };

static enum ron_err put_entry(void *context, uint64_t index, struct ron_buf *out,
                              struct ron_errinfo *reterr)
{
    enum entry how = *(const enum entry *)context;
    uint8_t data[8];

    ron_store_le64(data, index == WRONG_INDEX && how == ENTRY_WRONG ? 7 : index);
    ron_buf_put(out, data, sizeof(data));
    for (size_t i = 8; how == ENTRY_LARGE && index == WRONG_INDEX && i <= UINT16_MAX; i++)
        ron_buf_put_byte(out, 0);
    return ron_buf_check(out, reterr);
}

static void put_note(uint64_t size, const struct ron_sha256 *root)
{
    struct io_signer signer = {RON_SLICE("example.com/log"), &seed};
    struct ron_checkpoint checkpoint = {signer.name, {size, *root}, {0}};
    struct ron_buf text;

    ron_buf_init(&text, RON_CHECKPOINT_SIZE_MAX);
    io_checkpoint_put(&text, &checkpoint);
    ron_buf_reset(&note);
    io_note_put(&note, ron_buf_slice(&text), &signer);
    ron_buf_fini(&text);
}

static int make(void **state) RON_BLOCKS
{
    struct io_tlog_options options = {.dir = "tiles", .cache_bytes = 2 << 20};

    (void)state;
    oracle_leaves(leaves, LEAVES_COUNT);
    ron_buf_init(&note, RON_NOTE_SIZE_MAX);
    assert_ok(ron_secret_init_random(&seed, 32, NULL));
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    options.vfs = vfs;
    assert_ok(io_tlog_open(&options, &tlog, NULL));
    assert_ok(io_tlog_append(tlog, leaves, LEAVES_COUNT, NULL, NULL));
    return 0;
}

static int clean(void **state) RON_BLOCKS
{
    (void)state;
    tlog = io_tlog_free(tlog);
    vfs = io_vfs_free(vfs);
    ron_buf_fini(&note);
    ron_secret_fini(&seed);
    return 0;
}

static enum ron_err export(const char *dir, enum entry how, struct ron_errinfo *reterr) RON_BLOCKS {
    struct io_tlog_export_options options = {.vfs = vfs,
                                             .dir = dir,
                                             .size = LEAVES_COUNT,
                                             .note = ron_buf_slice(&note),
                                             .entry = put_entry,
                                             .context = &how};

    return io_tlog_export(tlog, &options, reterr);
}

static size_t read_all(const char *path, uint8_t *bytes, size_t size) RON_BLOCKS
{
    struct io_file *file = NULL;
    size_t got = 0;

    assert_ok(io_vfs_open(vfs, path, IO_OPEN_READ, &file, NULL));
    assert_ok(io_file_read(file, 0, bytes, size, &got, NULL));
    file = io_file_close(file);
    return got;
}

static void files_are_those_of_the_specification(void **state) RON_BLOCKS
{
    struct ron_sha256 root = oracle_root(leaves, LEAVES_COUNT), first = oracle_root(leaves, 256);
    uint8_t bytes[16384];

    (void)state;
    put_note(LEAVES_COUNT, &root);
    assert_ok(export("out", ENTRY_RIGHT, NULL));
    assert_ok(export("out", ENTRY_RIGHT, NULL)); /* what is there stays */
    assert_int_equal(read_all("out/tile/0/000", bytes, sizeof(bytes)), 8192);
    assert_memory_equal(bytes, leaves, 8192);
    assert_int_equal(read_all("out/tile/0/001.p/44", bytes, sizeof(bytes)), 44 * 32);
    assert_memory_equal(bytes, leaves + 256, 44 * 32);
    assert_int_equal(read_all("out/tile/1/000.p/1", bytes, sizeof(bytes)), 32);
    assert_memory_equal(bytes, first.bytes, 32);
    assert_int_equal(read_all("out/tile/entries/000", bytes, sizeof(bytes)), 2560);
    assert_memory_equal(bytes + 10, "\0\x08\x01\0\0\0\0\0\0\0", 10);
    assert_int_equal(read_all("out/tile/entries/001.p/44", bytes, sizeof(bytes)), 440);
    assert_int_equal(read_all("out/checkpoint", bytes, sizeof(bytes)), note.size);
    assert_memory_equal(bytes, note.data, note.size);
}

static void a_foreign_checkpoint_is_refused(void **state) RON_BLOCKS
{
    struct ron_sha256 root = oracle_root(leaves, LEAVES_COUNT - 1);
    struct ron_errinfo info = {0};

    (void)state;
    put_note(LEAVES_COUNT, &root);
    support_assert_error(export("foreign", ENTRY_RIGHT, &info), &info, RON_ERR_CONFLICT,
                         "another tree");
    put_note(LEAVES_COUNT - 1, &root);
    support_assert_error(export("foreign", ENTRY_RIGHT, &info), &info, RON_ERR_CONFLICT,
                         "another tree");
}

static void leaves_that_are_not_in_the_tree_are_refused(void **state) RON_BLOCKS
{
    struct ron_sha256 root = oracle_root(leaves, LEAVES_COUNT);
    struct ron_errinfo info = {0};

    (void)state;
    put_note(LEAVES_COUNT, &root);
    support_assert_error(export("wrong", ENTRY_WRONG, &info), &info, RON_ERR_WAL_CORRUPT,
                         "leaf 290");
    support_assert_error(export("large", ENTRY_LARGE, &info), &info, RON_ERR_TOO_LARGE,
                         "leaf 290 of 65536 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_those_of_the_specification),
        cmocka_unit_test(a_foreign_checkpoint_is_refused),
        cmocka_unit_test(leaves_that_are_not_in_the_tree_are_refused),
    };
    return cmocka_run_group_tests_name("tlog_export", tests, make, clean);
}
