/*
 * test_log_key.c - the key of a log. Method: made once and the same ever after; every changed byte
 * of its file is refused,
 * and so is every file cut short.
 */
#include "support.h"

#include "io/log_key.h"
#include "io/vfs_memory.h"

static const char path[] = "keys/log-key";
#define NAME RON_SLICE("example.com/ledger")

static struct io_vfs *new_vfs(void)
{
    struct io_vfs *vfs = NULL;

    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    return vfs;
}

static void write_key(struct io_vfs *vfs, struct ron_slice text) RON_BLOCKS
{
    struct io_file *file = NULL;

    assert_ok(io_vfs_open(vfs, path, IO_OPEN_WRITE, &file, NULL));
    assert_ok(io_file_truncate(file, 0, NULL));
    assert_ok(io_file_write(file, 0, &text, 1, NULL));
    file = io_file_close(file);
}

static void a_key_is_made_once(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = new_vfs();
    struct io_log_key *key = NULL, *again = NULL;
    struct ron_vkey vkey;
    struct ron_errinfo info = {0};

    (void)state;
    assert_int_equal(io_log_key_load(vfs, path, NAME, &key, &info), RON_ERR_NOT_FOUND);
    assert_ok(io_log_key_load_or_make(vfs, path, NAME, &key, NULL));
    assert_int_equal(io_memory_unsynced_count(vfs), 0);
    assert_ok(io_log_key_load_or_make(vfs, path, NAME, &again, NULL));
    assert_string_equal(io_log_key_vkey(key), io_log_key_vkey(again));
    assert_ok(ron_vkey_parse(ron_slice_text(io_log_key_vkey(key)), &vkey, NULL));
    assert_true(ron_slice_equal(vkey.name, NAME));
    again = io_log_key_free(again);
    support_assert_error(io_log_key_load(vfs, path, RON_SLICE("example.com/other"), &again, &info),
                         &info, RON_ERR_CONFLICT, "another log");
    assert_ok(io_log_key_load(vfs, path, (struct ron_slice){NULL, 0}, &again, NULL));
    assert_string_equal(io_log_key_vkey(key), io_log_key_vkey(again));
    again = io_log_key_free(again);
    write_key(vfs, RON_SLICE("ron-log-key v1\nname \nseed x\npublic "
                             "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"));
    support_assert_error(io_log_key_load(vfs, path, (struct ron_slice){NULL, 0}, &again, &info),
                         &info, RON_ERR_MALFORMED, "a damaged log key");
    key = io_log_key_free(key);
    vfs = io_vfs_free(vfs);
}

static void every_changed_byte_is_refused(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = new_vfs();
    struct io_log_key *key = NULL;
    struct io_file *file = NULL;
    uint8_t text[600], changed[600];
    size_t size = 0;
    enum ron_err err;

    (void)state;
    assert_ok(io_log_key_load_or_make(vfs, path, NAME, &key, NULL));
    key = io_log_key_free(key);
    assert_ok(io_vfs_open(vfs, path, IO_OPEN_READ, &file, NULL));
    assert_ok(io_file_read(file, 0, text, sizeof(text), &size, NULL));
    file = io_file_close(file);
    for (size_t i = 0; i <= size; i++) {
        struct ron_errinfo info = {0};

        memcpy(changed, text, size);
        changed[i] = (uint8_t)(i == size ? 'x' : text[i] ^ 1);
        write_key(vfs, ron_slice_of(changed, i == size ? size + 1 : size));
        err = io_log_key_load_or_make(vfs, path, NAME, &key, &info);
        assert_true(err == RON_ERR_MALFORMED || err == RON_ERR_VERSION_SKEW ||
                    err == RON_ERR_CONFLICT);
        assert_non_null(strstr(info.message, path));
        if (i < size) {
            write_key(vfs, ron_slice_of(text, i)); /* cut short */
            assert_int_equal(io_log_key_load_or_make(vfs, path, NAME, &key, NULL),
                             RON_ERR_MALFORMED);
        }
    }
    memset(changed, 'a', sizeof(changed));
    write_key(vfs, ron_slice_of(changed, sizeof(changed)));
    assert_int_equal(io_log_key_load(vfs, path, NAME, &key, NULL), RON_ERR_MALFORMED);
    write_key(vfs, ron_slice_of(text, size));
    assert_ok(io_log_key_load(vfs, path, NAME, &key, NULL));
    key = io_log_key_free(key);
    vfs = io_vfs_free(vfs);
}

static enum ron_err attempt(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_log_key *key = NULL;
    enum ron_err err = io_log_key_load(context, path, NAME, &key, reterr);

    key = io_log_key_free(key);
    return err;
}

static void loading_survives_every_failing_allocation(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = new_vfs();
    struct io_log_key *key = NULL;

    (void)state;
    assert_ok(io_log_key_load_or_make(vfs, path, NAME, &key, NULL));
    key = io_log_key_free(key);
    assert_true(support_fail_each_allocation(attempt, vfs, 50) >= 3);
    vfs = io_vfs_free(vfs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_made_once),
        cmocka_unit_test(every_changed_byte_is_refused),
        cmocka_unit_test(loading_survives_every_failing_allocation),
    };
    return cmocka_run_group_tests_name("log_key", tests, NULL, NULL);
}
