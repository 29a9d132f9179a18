/*
 * test_keyring_file.c - the keyring on disk: made once, whole or not at all, private.
 */
#include "auth/keyring_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/verify.h"
#include "io/crash_images.h"
#include "io/vfs_faulty.h"
#include "support.h"

enum { NOW_MS = 1700000000, LIFETIME_MS = 3600000 };

static struct io_vfs *memory(void)
{
    struct io_vfs *vfs;

    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    return vfs;
}

/* Open; then the token on disk is one that the keyring verifies, unless it was made earlier. */
static void open_and_check(struct io_vfs *vfs, bool *ret_made) RON_BLOCKS
{
    struct auth_keyring *keyring = NULL;
    struct ron_errinfo info = {0};
    struct auth_grant grant;
    struct io_file *file;
    char token[AUTH_TOKEN_TEXT_SIZE];
    size_t size;

    assert_ok(auth_keyring_file_open(vfs, NOW_MS, LIFETIME_MS, &keyring, ret_made, &info));
    assert_ok(io_vfs_open(vfs, AUTH_OPERATOR_TOKEN_NAME, IO_OPEN_READ, &file, NULL));
    assert_ok(io_file_read(file, 0, token, sizeof(token), &size, NULL));
    (void)io_file_close(file);
    assert_true(size > 1);
    assert_int_equal(token[size - 1], '\n');
    assert_ok(auth_verify(keyring, ron_slice_of(token, size - 1), &grant, NULL));
    assert_true(grant.scopes == AUTH_SCOPES_ALL);
    assert_true(grant.before_ms == NOW_MS + LIFETIME_MS);
    (void)auth_keyring_free(keyring);
}

static void made_on_the_first_start_only(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = memory();
    bool made = false;

    (void)state;
    open_and_check(vfs, &made);
    assert_true(made);
    open_and_check(vfs, &made);
    assert_false(made);
    assert_int_equal(io_memory_unsynced_count(vfs), 0);
    (void)io_vfs_free(vfs);
}

struct crash {
    unsigned images_count;
    bool expect_kept; /* the start was over: nothing may be made anew */
};

/* What any crash leaves is a first start or a finished one: token and keyring belong together. */
static bool look_at_image(void *context, struct io_vfs *image, const struct io_crash_plan *plan,
                          enum io_crash_class class) RON_BLOCKS
{
    struct crash *crash = context;
    bool made = false;

    (void)plan;
    (void)class;
    open_and_check(image, &made);
    assert_false(made && crash->expect_kept);
    crash->images_count++;
    return true;
}

static void a_failure_or_crash_anywhere_leaves_a_good_start(void **state) RON_BLOCKS
{
    static const enum io_fault_call calls[] = {IO_CALL_OPEN, IO_CALL_WRITE, IO_CALL_SYNC,
                                               IO_CALL_NAME};
    struct crash crash = {0};
    unsigned failed_count = 0;

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(calls); i++) {
        for (uint64_t at = 1;; at++) {
            struct io_fault fault = {IO_FAULT_EIO, calls[i], NULL, at, 1};
            struct io_faulty_options options = {.faults = &fault, .faults_count = 1};
            struct io_crash_options crashing = {.seed = at};
            struct io_crash_counts counts = {0};
            struct auth_keyring *keyring = NULL;
            struct io_vfs *below = memory();
            struct io_vfs *vfs;
            bool made = false;
            enum ron_err err;

            assert_ok(io_vfs_faulty_new(below, &options, &vfs, NULL));
            err = auth_keyring_file_open(vfs, NOW_MS, LIFETIME_MS, &keyring, &made, NULL);
            crash.expect_kept = err == RON_ERR_OK;
            assert_ok(io_crash_images(below, &crashing, look_at_image, &crash, &counts, NULL));
            (void)auth_keyring_free(keyring);
            bool struck = io_faulty_count(vfs, IO_FAULT_EIO) > 0;
            assert_true(struck || err == RON_ERR_OK);
            failed_count += err != RON_ERR_OK;
            (void)io_vfs_free(vfs);
            (void)io_vfs_free(below);
            if (!struck)
                break;
            assert_true(at < 40);
        }
    }
    assert_true(failed_count >= 10);
    assert_true(crash.images_count > 20);
}

static enum ron_err attempt_open(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct auth_keyring *keyring = NULL;
    bool made;
    enum ron_err err = auth_keyring_file_open(context, NOW_MS, LIFETIME_MS, &keyring, &made,
                                              reterr);

    (void)auth_keyring_free(keyring);
    return err;
}

static void out_of_memory_anywhere(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = memory();
    bool made;

    (void)state;
    open_and_check(vfs, &made);
    assert_true(support_fail_each_allocation(attempt_open, vfs, 200) > 3);
    (void)io_vfs_free(vfs);
}

static enum ron_err revoke_one(struct auth_keyring *keyring, void *context,
                               struct ron_errinfo *reterr)
{
    return auth_keyring_revoke_token(keyring, ron_slice_text(context), NOW_MS, reterr);
}

static void changes_are_saved_under_a_lock(void **state) RON_BLOCKS
{
    static char identifier[] = "k1.01ARZ3NDEKTSV4RRFFQ69G5FAV";
    struct auth_keyring *keyring = NULL;
    struct ron_errinfo info = {0};
    struct io_vfs *vfs = memory();
    struct io_file *lock;
    bool made;

    (void)state;
    open_and_check(vfs, &made);
    assert_ok(auth_keyring_file_change(vfs, AUTH_KEYRING_NAME, revoke_one, identifier, NULL));
    assert_ok(auth_keyring_file_load(vfs, AUTH_KEYRING_NAME, &keyring, NULL));
    assert_true(auth_keyring_is_revoked(keyring, ron_slice_text(identifier)));
    assert_int_equal(auth_keyring_epoch(keyring), 2);
    (void)auth_keyring_free(keyring);
    assert_ok(io_vfs_open(vfs, AUTH_KEYRING_LOCK_NAME, IO_OPEN_WRITE, &lock, NULL));
    assert_ok(io_file_lock(lock, NULL));
    support_assert_error(
        auth_keyring_file_change(vfs, AUTH_KEYRING_NAME, revoke_one, identifier, &info), &info,
        RON_ERR_CONFLICT, "keyring.lock");
    (void)io_file_close(lock);
    assert_ok(auth_keyring_file_change(vfs, AUTH_KEYRING_NAME, revoke_one, identifier, NULL));
    (void)io_vfs_free(vfs);
}

static void damage_and_size_are_refused(void **state) RON_BLOCKS
{
    struct auth_keyring *keyring = NULL;
    struct ron_errinfo info = {0};
    struct io_vfs *vfs = memory();
    struct io_file *file;
    uint64_t size;
    bool made;

    (void)state;
    open_and_check(vfs, &made);
    assert_ok(io_vfs_open(vfs, AUTH_KEYRING_NAME, IO_OPEN_WRITE, &file, NULL));
    assert_ok(io_file_size(file, &size, NULL));
    assert_ok(io_file_truncate(file, size - 1, NULL));
    support_assert_error(auth_keyring_file_open(vfs, NOW_MS, LIFETIME_MS, &keyring, &made, &info),
                         &info, RON_ERR_MALFORMED, "memory/keyring");
    assert_ok(io_file_truncate(file, AUTH_KEYRING_TEXT_SIZE_MAX + 1, NULL));
    support_assert_error(auth_keyring_file_open(vfs, NOW_MS, LIFETIME_MS, &keyring, &made, &info),
                         &info, RON_ERR_TOO_LARGE, "are no keyring");
    assert_null(keyring);
    (void)io_file_close(file);
    (void)io_vfs_free(vfs);
}

static void paths_of_people(void **state) RON_BLOCKS
{
    char dir[] = "/tmp/ron-keyring-XXXXXX";
    char path[64];
    char name[IO_NAME_MAX + 1];
    struct ron_errinfo info = {0};
    struct io_vfs *vfs;
    bool made;

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/keyring", dir);
    support_assert_error(auth_keyring_locate(path, &vfs, name, &info), &info, RON_ERR_NOT_FOUND,
                         path);
    assert_ok(auth_keyring_locate(dir, &vfs, name, NULL)); /* no keyring in it yet */
    open_and_check(vfs, &made);
    (void)io_vfs_free(vfs);
    assert_ok(auth_keyring_locate(path, &vfs, name, NULL));
    assert_string_equal(name, "keyring");
    assert_string_equal(io_vfs_name(vfs), dir);
    (void)io_vfs_free(vfs);
    assert_int_equal(chmod(path, 0604), 0);
    support_assert_error(auth_keyring_locate(path, &vfs, name, &info), &info, RON_ERR_FORBIDDEN,
                         "others may use it (mode 0604)");
    support_assert_error(auth_keyring_check_private(dir, "keyring", &info), &info,
                         RON_ERR_FORBIDDEN, "chmod 600");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("operator.token", path), 0);
    support_assert_error(auth_keyring_check_private(dir, "keyring", &info), &info,
                         RON_ERR_FORBIDDEN, "not a file");
    assert_int_equal(unlink(path), 0);
    (void)snprintf(path, sizeof(path), "%s/operator.token", dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_on_the_first_start_only),
        cmocka_unit_test(a_failure_or_crash_anywhere_leaves_a_good_start),
        cmocka_unit_test(out_of_memory_anywhere),
        cmocka_unit_test(changes_are_saved_under_a_lock),
        cmocka_unit_test(damage_and_size_are_refused),
        cmocka_unit_test(paths_of_people),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
