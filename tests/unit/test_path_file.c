/*
 * test_path_file.c - files that a person names. Method: real files in a new folder.
 */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* --- Lines ------------------------------------------------------------------------------------ */

enum { LINE_MAX = 1000 };

static void write_text(const char *name, const char *text, size_t size)
{
    FILE *file = fopen(name, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* As many lines as the text has, each as long as it is there; the last with its LF or without. */
static void check_lines(const char *name, const char *text, size_t size) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct io_path_lines lines;
    struct ron_slice line;
    size_t at = 0;
    bool there = true;

    write_text(name, text, size);
    assert_ok(io_path_lines_open(&lines, name, LINE_MAX, &info));
    assert_int_equal(lines.total, size);
    while (at < size) {
        const char *lf = memchr(text + at, '\n', size - at);
        const size_t expected = lf == NULL ? size - at : (size_t)(lf - (text + at));

        assert_ok(io_path_lines_next(&lines, &line, &there, &info));
        assert_true(there);
        assert_int_equal(line.size, expected);
        assert_memory_equal(line.data, text + at, expected);
        at += expected + (lf != NULL);
        assert_int_equal(lines.done, at);
    }
    for (int i = 0; i < 2; i++) {
        assert_ok(io_path_lines_next(&lines, &line, &there, &info));
        assert_false(there);
    }
    io_path_lines_close(&lines);
    io_path_lines_close(&lines);
    assert_int_equal(unlink(name), 0);
}

static void lines_of_any_file_come_one_by_one(void **state) RON_BLOCKS
{
    enum { SIZE = 3 << 20 };
    char name[80];
    char *text = malloc(SIZE);
    uint32_t random = 1;

    (void)state;
    assert_non_null(text);
    (void)snprintf(name, sizeof(name), "%s/lines", folder);
    check_lines(name, "", 0);
    check_lines(name, "\n", 1);
    check_lines(name, "a\n\nb\n", 5);
    check_lines(name, "a\r\nb", 4);
    for (size_t at = 0, left = 0; at < SIZE; at++) { /* all sizes, many times the buffer */
        if (left == 0) {
            random = random * 1664525 + 1013904223;
            left = 1 + (random >> 8) % (LINE_MAX + 1);
        }
        text[at] = --left == 0 ? '\n' : 'x';
    }
    text[SIZE - 1] = 'y';
    check_lines(name, text, SIZE);
    text[SIZE - 1] = '\n';
    check_lines(name, text, SIZE);
    free(text);
}

static void a_line_has_a_bound(void **state) RON_BLOCKS
{
    static char text[2 * LINE_MAX + 4];
    struct ron_errinfo info = {0};
    struct io_path_lines lines;
    struct ron_slice line;
    char name[80];
    bool there;

    (void)state;
    (void)snprintf(name, sizeof(name), "%s/lines", folder);
    memset(text, 'x', sizeof(text));
    text[LINE_MAX] = '\n';
    check_lines(name, text, LINE_MAX + 1);
    for (int has_end = 0; has_end < 2; has_end++) { /* the second is one too long */
        text[2 * LINE_MAX + 2] = has_end != 0 ? '\n' : 'x';
        write_text(name, text, 2 * (size_t)LINE_MAX + 2 + (size_t)has_end);
        assert_ok(io_path_lines_open(&lines, name, LINE_MAX, &info));
        assert_ok(io_path_lines_next(&lines, &line, &there, &info));
        assert_int_equal(line.size, LINE_MAX);
        support_assert_error(io_path_lines_next(&lines, &line, &there, &info), &info,
                             RON_ERR_TOO_LARGE, "more than 1000 bytes");
        io_path_lines_close(&lines);
    }
    assert_int_equal(unlink(name), 0);
    support_assert_error(io_path_lines_open(&lines, folder, LINE_MAX, &info), &info,
                         RON_ERR_MALFORMED, folder);
    support_assert_error(io_path_lines_open(&lines, name, LINE_MAX, &info), &info,
                         RON_ERR_NOT_FOUND, name);
    io_path_lines_close(&lines);
}

static enum ron_err attempt_lines(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_path_lines lines;
    enum ron_err err = io_path_lines_open(&lines, path, LINE_MAX, reterr);

    (void)context;
    io_path_lines_close(&lines);
    return err;
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
    assert_true(support_fail_each_allocation(attempt_lines, NULL, 50) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_whole_or_not_at_all),
        cmocka_unit_test(what_is_no_file_is_said),
        cmocka_unit_test(lines_of_any_file_come_one_by_one),
        cmocka_unit_test(a_line_has_a_bound),
        cmocka_unit_test(without_memory_nothing_is_read),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
