/*
 * test_path_file.c - small files that a person names. Method: real files in a new folder.
 */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/path_file.h"

static char folder[] = "/tmp/ron-test-path-XXXXXX";
static char path[64];

static int make_file(void **state)
{
    FILE *file;

    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    (void)snprintf(path, sizeof(path), "%s/f", folder);
    file = fopen(path, "w");
    if (file == NULL)
        return -1;
    for (int i = 0; i < 20000; i++)
        (void)fprintf(file, "%05d", i);
    return fclose(file);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path) | rmdir(folder);
}

static void a_file_is_read_whole_or_not_at_all(void **state) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct ron_buf buf;

    (void)state;
    ron_buf_init(&buf, 200000);
    ron_buf_put_text(&buf, "before");
    assert_ok(io_path_read(path, 100000, &buf, &info));
    assert_int_equal(buf.size, 100006);
    assert_memory_equal(buf.data, "before0000000001", 16);
    assert_memory_equal(buf.data + 100001, "19999", 5);
    support_assert_error(io_path_read(path, 99999, &buf, &info), &info, RON_ERR_TOO_LARGE, path);
    ron_buf_fini(&buf);
    ron_buf_init(&buf, 50000); /* room for less than the caller allows */
    support_assert_error(io_path_read(path, 100000, &buf, &info), &info, RON_ERR_TOO_LARGE, path);
    ron_buf_fini(&buf);
}

static void what_is_no_file_is_said(void **state) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    char other[80];
    struct ron_buf buf;

    (void)state;
    ron_buf_init(&buf, 1000);
    support_assert_error(io_path_read(folder, 1000, &buf, &info), &info, RON_ERR_MALFORMED, folder);
    (void)snprintf(other, sizeof(other), "%s/none", folder);
    support_assert_error(io_path_read(other, 1000, &buf, &info), &info, RON_ERR_NOT_FOUND, other);
    (void)snprintf(other, sizeof(other), "%s/f/none", folder);
    support_assert_error(io_path_read(other, 1000, &buf, &info), &info, RON_ERR_NOT_FOUND, other);
    if (getuid() != 0) {
        assert_int_equal(chmod(path, 0), 0);
        support_assert_error(io_path_read(path, 1000, &buf, &info), &info, RON_ERR_FORBIDDEN, path);
        assert_int_equal(chmod(path, 0600), 0);
    }
    assert_int_equal(buf.size, 0);
    ron_buf_fini(&buf);
}

static enum ron_err attempt(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_buf buf;
    enum ron_err err;

    (void)context;
    ron_buf_init(&buf, 200000);
    err = io_path_read(path, 100000, &buf, reterr);
    ron_buf_fini(&buf);
    return err;
}

static void without_memory_nothing_is_read(void **state)
{
    (void)state;
    assert_true(support_fail_each_allocation(attempt, NULL, 50) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_whole_or_not_at_all),
        cmocka_unit_test(what_is_no_file_is_said),
        cmocka_unit_test(without_memory_nothing_is_read),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
