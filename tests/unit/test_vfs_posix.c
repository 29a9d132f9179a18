/*
 * test_vfs_posix.c - a directory of the system, and that it answers as the one in memory does.
 *
 * Method: a table of calls and a long random run go through both in lock step. Then what only a
 * real one has: links, modes, other processes, a full and a read-only disk.
 * tidy: long file because the table and the calls that both must answer alike are read together
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/vfs_memory.h"
#include "rt/deadline.h"
#include "support.h"

enum { PATH_SIZE = 512 };

/* A fresh directory of the system, removed with all it holds. */
static int make_root(void **state)
{
    char *path = strdup("/tmp/ron-vfs-XXXXXX");

    assert_non_null(path);
    assert_non_null(mkdtemp(path));
    *state = path;
    return 0;
}

static int remove_root(void **state)
{
    char *path = *state;
    pid_t pid = fork();

    if (pid == 0) {
        (void)execlp("rm", "rm", "-rf", path, (char *)NULL);
        _exit(1);
    }
    free(path);
    return waitpid(pid, NULL, 0) == pid ? 0 : -1;
}

static const char *below(void **state, const char *name)
{
    static char path[PATH_SIZE];

    (void)snprintf(path, sizeof(path), "%s/%s", (const char *)*state, name);
    return path;
}

static struct io_vfs *posix_in(void **state) RON_BLOCKS
{
    struct ron_errinfo info;
    struct io_vfs *vfs = NULL;

    assert_ok(io_vfs_posix_new(*state, false, &vfs, &info));
    return vfs;
}

static struct io_vfs *memory_new(void)
{
    struct io_vfs *vfs = NULL;

    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    return vfs;
}

static struct io_file *open_file(struct io_vfs *vfs, const char *path, enum io_open how) RON_BLOCKS
{
    struct io_file *file = NULL;

    assert_ok(io_vfs_open(vfs, path, how, &file, NULL));
    return file;
}

/* ---- The same answers ---- */

static enum ron_err open_and_close(struct io_vfs *vfs, const char *path, enum io_open how,
                                   struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_file *file = NULL;
    enum ron_err err = io_vfs_open(vfs, path, how, &file, reterr);

    (void)io_file_close(file);
    return err;
}

static bool list_name(void *context, const char *name, bool is_dir)
{
    ron_buf_put_format(context, "%s%s ", name, is_dir ? "/" : "");
    return true;
}

static enum ron_err list(struct io_vfs *vfs, const char *path, char *text, size_t text_size,
                         struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_buf buf;
    enum ron_err err;

    ron_buf_init(&buf, 65536);
    err = io_vfs_list(vfs, path, list_name, &buf, reterr);
    assert_ok(ron_buf_check(&buf, NULL));
    (void)snprintf(text, text_size, "%.*s", (int)buf.size, (const char *)buf.data);
    ron_buf_fini(&buf);
    return err;
}

enum call { MAKE, READ, WRITE, RENAME, UNLINK, DIR, SYNC, LIST };

struct step {
    enum call call;
    const char *path, *other; /* where LIST answers, what it lists */
    enum ron_err expected;
    const char *message;
};

static const char long_name[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
                                "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdefx";

static const struct step steps[] = {
    {LIST, "", "", RON_ERR_OK, NULL},
    {READ, "a", NULL, RON_ERR_NOT_FOUND, "open "},
    {READ, "a", NULL, RON_ERR_NOT_FOUND, "/a: No such file or directory"},
    {WRITE, "a", NULL, RON_ERR_NOT_FOUND, "/a: No such file or directory"},
    {MAKE, "d/a", NULL, RON_ERR_NOT_FOUND, "open "},
    {LIST, "d", NULL, RON_ERR_NOT_FOUND, "list "},
    {SYNC, "d", NULL, RON_ERR_NOT_FOUND, "sync directory "},
    {DIR, "d/e/f", NULL, RON_ERR_OK, NULL},
    {DIR, "d/e", NULL, RON_ERR_OK, NULL},
    {MAKE, "d/b", NULL, RON_ERR_OK, NULL},
    {MAKE, "d/b", NULL, RON_ERR_CONFLICT, "/d/b: File exists"},
    {MAKE, "d/e", NULL, RON_ERR_CONFLICT, "/d/e: File exists"},
    {MAKE, "d/a", NULL, RON_ERR_OK, NULL},
    {MAKE, "d/B", NULL, RON_ERR_OK, NULL},
    {MAKE, "d/a-1", NULL, RON_ERR_OK, NULL},
    {LIST, "d", "B a a-1 b e/ ", RON_ERR_OK, NULL},
    {LIST, "d/a", NULL, RON_ERR_CONFLICT, "Not a directory"},
    {LIST, "", "d/ ", RON_ERR_OK, NULL},
    {READ, "d/e", NULL, RON_ERR_CONFLICT, "Is a directory"},
    {WRITE, "d/e", NULL, RON_ERR_CONFLICT, "Is a directory"},
    {READ, "d/a/x", NULL, RON_ERR_CONFLICT, "Not a directory"},
    {DIR, "d/a/x", NULL, RON_ERR_CONFLICT, "Not a directory"},
    {DIR, "d/a", NULL, RON_ERR_CONFLICT, "Not a directory"},
    {SYNC, "d/a", NULL, RON_ERR_CONFLICT, "Not a directory"},
    {SYNC, "d", NULL, RON_ERR_OK, NULL},
    {SYNC, "", NULL, RON_ERR_OK, NULL},
    {RENAME, "d/x", "d/y", RON_ERR_NOT_FOUND, "rename "},
    {RENAME, "d/e", "d/y", RON_ERR_CONFLICT, "/d/e: Is a directory"},
    {RENAME, "d/a", "d/e", RON_ERR_CONFLICT, "/d/e: Is a directory"},
    {RENAME, "d/a", "d/a", RON_ERR_OK, NULL},
    {RENAME, "d/a", "d/b", RON_ERR_OK, NULL},
    {RENAME, "d/b", "d/c", RON_ERR_OK, NULL},
    {LIST, "d", "B a-1 c e/ ", RON_ERR_OK, NULL},
    {UNLINK, "d/a", NULL, RON_ERR_NOT_FOUND, "unlink "},
    {UNLINK, "d/e", NULL, RON_ERR_CONFLICT, "Is a directory"},
    {UNLINK, "d/c", NULL, RON_ERR_OK, NULL},
    {UNLINK, "d/c", NULL, RON_ERR_NOT_FOUND, NULL},
    {LIST, "d", "B a-1 e/ ", RON_ERR_OK, NULL},
    {MAKE, "", NULL, RON_ERR_MALFORMED, "open in "},
    {MAKE, "/a", NULL, RON_ERR_MALFORMED, NULL},
    {MAKE, "a/", NULL, RON_ERR_MALFORMED, NULL},
    {MAKE, "d//a", NULL, RON_ERR_MALFORMED, NULL},
    {MAKE, "../a", NULL, RON_ERR_MALFORMED, NULL},
    {MAKE, "d/.a", NULL, RON_ERR_MALFORMED, NULL},
    {MAKE, "a b", NULL, RON_ERR_MALFORMED, NULL},
    {MAKE, long_name, NULL, RON_ERR_MALFORMED, "128"},
    {DIR, "", NULL, RON_ERR_MALFORMED, "mkdir in "},
    {UNLINK, ".", NULL, RON_ERR_MALFORMED, "unlink in "},
    {RENAME, "d/B", "d/.B", RON_ERR_MALFORMED, "rename in "},
    {MAKE, long_name + 1, NULL, RON_ERR_OK, NULL},
};

static enum ron_err take_step(struct io_vfs *vfs, const struct step *step,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    char text[1024];
    enum ron_err err;

    switch (step->call) {
    case MAKE:
        return open_and_close(vfs, step->path, IO_OPEN_CREATE, reterr);
    case READ:
        return open_and_close(vfs, step->path, IO_OPEN_READ, reterr);
    case WRITE:
        return open_and_close(vfs, step->path, IO_OPEN_WRITE, reterr);
    case RENAME:
        return io_vfs_rename(vfs, step->path, step->other, reterr);
    case UNLINK:
        return io_vfs_unlink(vfs, step->path, reterr);
    case DIR:
        return io_vfs_make_dir(vfs, step->path, reterr);
    case SYNC:
        return io_vfs_sync_dir(vfs, step->path, reterr);
    case LIST:
        err = list(vfs, step->path, text, sizeof(text), reterr);
        if (err == RON_ERR_OK)
            assert_string_equal(text, step->other);
        return err;
    }
    return RON_ERR_INTERNAL;
}

static void table_holds_for_both(void **state) RON_BLOCKS
{
    struct io_vfs *both[] = {posix_in(state), memory_new()};

    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < RON_ARRAY_COUNT(steps); i++) {
            struct ron_errinfo info = {0};
            enum ron_err err = take_step(both[k], &steps[i], &info);

            if (err != steps[i].expected)
                print_error("step %zu on %s: %s\n", i, io_vfs_name(both[k]), info.message);
            assert_int_equal(err, steps[i].expected);
            if (steps[i].message != NULL)
                support_assert_error(err, &info, steps[i].expected, steps[i].message);
            if (err != RON_ERR_OK)
                assert_non_null(strstr(info.message, io_vfs_name(both[k])));
        }
        (void)io_vfs_free(both[k]);
    }
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* One random call on an open file, the same on both. */
static void file_call(struct io_file *const files[2], uint64_t *random) RON_BLOCKS
{
    static uint8_t bytes[20000];
    static uint8_t seen[2][20000];
    uint64_t offset = next_random(random) % 12000;
    size_t size = (size_t)(next_random(random) % 9000);
    struct ron_slice parts[3] = {ron_slice_of(bytes, size / 3), ron_slice_of(bytes + 9, 0),
                                 ron_slice_of(bytes + size / 3, size - size / 3)};
    uint64_t call = next_random(random) % 8;
    size_t counts[2] = {0, 0};
    uint64_t sizes[2] = {0, 0};

    memset(bytes, next_random(random) % 4 == 0 ? 0 : (int)(1 + call), sizeof(bytes));
    for (int k = 0; k < 2; k++) {
        if (call < 3)
            assert_ok(io_file_write(files[k], offset, parts, 3, NULL));
        else if (call == 3)
            assert_ok(io_file_truncate(files[k], offset, NULL));
        else if (call == 4)
            assert_ok(io_file_sync(files[k], NULL));
        else if (call == 5)
            assert_ok(io_file_write_back(files[k], offset, size, NULL));
        else if (call == 6)
            io_file_uncache(files[k], offset, size);
        assert_ok(io_file_size(files[k], &sizes[k], NULL));
        assert_ok(io_file_read(files[k], offset / 2, seen[k], sizeof(seen[k]), &counts[k], NULL));
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_int_equal(counts[0], counts[1]);
    assert_memory_equal(seen[0], seen[1], counts[0]);
}

static unsigned cached_pages(const char *path, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    unsigned char pages[64];
    unsigned count = 0;

    assert_true(fd >= 0);
    assert_ptr_not_equal(bytes, MAP_FAILED);
    assert_true(size / 4096 <= sizeof(pages));
    assert_int_equal(mincore(bytes, size, pages), 0);
    for (size_t i = 0; i < size / 4096; i++)
        count += pages[i] & 1;
    assert_int_equal(munmap(bytes, size), 0);
    assert_int_equal(close(fd), 0);
    return count;
}

/* On a file system that is no cache itself. */
static void uncached_bytes_leave_memory_and_fetched_ones_come(void **state) RON_BLOCKS
{
    enum { SIZE = 64 * 4096 };
    static uint8_t bytes[SIZE];
    const struct ron_slice part = {bytes, SIZE};
    struct io_vfs *vfs = posix_in(state);
    struct io_file *file = NULL;
    struct statfs disk;
    const struct rt_deadline until = rt_deadline_after_ms(20000);

    assert_ok(io_vfs_open(vfs, "a", IO_OPEN_CREATE, &file, NULL));
    assert_ok(io_file_write(file, 0, &part, 1, NULL));
    assert_ok(io_file_sync(file, NULL));
    assert_int_equal(statfs(below(state, "a"), &disk), 0);
    if (disk.f_type != TMPFS_MAGIC) {
        assert_int_equal(cached_pages(below(state, "a"), SIZE), 64);
        io_file_uncache(file, 0, 0);
        assert_int_equal(cached_pages(below(state, "a"), SIZE), 0);
        io_file_fetch(file, 8 * 4096, 4 * 4096);
        while (cached_pages(below(state, "a"), SIZE) < 4 && !rt_deadline_expired(until))
            (void)usleep(1000); /* the disk takes its time */
        assert_in_range(cached_pages(below(state, "a"), SIZE), 4, 60);
    }
    (void)io_file_close(file);
    io_vfs_free(vfs);
}

/* The same; and who reads through the cache reads what was written past it. */
static void direct_bytes_pass_the_cache(void **state) RON_BLOCKS
{
    enum { SIZE = 16 * IO_DIRECT_SIZE };
    static uint8_t bytes[SIZE] __attribute__((aligned(IO_DIRECT_SIZE))), found[SIZE];
    struct io_vfs *vfs = posix_in(state);
    struct io_file *reader = NULL, *writer = NULL;
    struct statfs disk;

    assert_ok(io_vfs_open(vfs, "a", IO_OPEN_CREATE, &reader, NULL));
    assert_ok(io_vfs_open(vfs, "a", IO_OPEN_DIRECT, &writer, NULL));
    for (uint8_t round = 1; round <= 3; round++) {
        const struct ron_slice part = {bytes, SIZE};
        size_t size = 0;

        memset(bytes, round, SIZE);
        assert_ok(io_file_write(writer, 0, &part, 1, NULL));
        assert_ok(io_file_sync(writer, NULL));
        assert_int_equal(statfs(below(state, "a"), &disk), 0);
        if (disk.f_type == EXT4_SUPER_MAGIC)
            assert_int_equal(cached_pages(below(state, "a"), SIZE), 0);
        assert_ok(io_file_read(reader, 0, found, SIZE, &size, NULL));
        assert_int_equal(size, SIZE);
        assert_memory_equal(found, bytes, SIZE);
    }
    (void)io_file_close(writer);
    (void)io_file_close(reader);
    io_vfs_free(vfs);
}

static void random_calls_agree(void **state) RON_BLOCKS
{
    static const char *const paths[] = {"a", "b", "d/a", "d/b", "d/c", "d/e/a", "d", "x/y"};
    static const char *const dirs[] = {"", "d", "d/e", "x", "a"};
    struct io_vfs *both[] = {posix_in(state), memory_new()};
    uint64_t random = 7;

    for (int round = 0; round < 4000; round++) {
        const char *path = paths[next_random(&random) % RON_ARRAY_COUNT(paths)];
        const char *dir = dirs[next_random(&random) % RON_ARRAY_COUNT(dirs)];
        uint64_t call = next_random(&random) % 10;
        enum ron_err errs[2];
        struct io_file *files[2] = {NULL, NULL};
        char texts[2][1024];

        for (int k = 0; k < 2; k++) {
            if (call == 0)
                errs[k] = dir[0] == '\0' ? RON_ERR_OK : io_vfs_make_dir(both[k], dir, NULL);
            else if (call == 1)
                errs[k] = io_vfs_unlink(both[k], path, NULL);
            else if (call == 2 && path[0] == 'd' && path[1] == '/' && path[2] != 'e')
                errs[k] = io_vfs_rename(both[k], path, "d/b", NULL);
            else if (call == 3)
                errs[k] = io_vfs_sync_dir(both[k], dir, NULL);
            else
                errs[k] = io_vfs_open(both[k], path, call < 6 ? IO_OPEN_CREATE : IO_OPEN_WRITE,
                                      &files[k], NULL);
        }
        assert_int_equal(errs[0], errs[1]);
        for (uint64_t i = 0; files[0] != NULL && i < 4; i++)
            file_call(files, &random);
        for (int k = 0; k < 2; k++) {
            (void)io_file_close(files[k]);
            errs[k] = list(both[k], dir, texts[k], sizeof(texts[k]), NULL);
        }
        assert_int_equal(errs[0], errs[1]);
        assert_string_equal(texts[0], texts[1]);
    }
    (void)io_vfs_free(both[0]);
    (void)io_vfs_free(both[1]);
}

/* An unlinked file can be used until it is closed, a handle follows its file's new name. */
static void open_files_outlive_their_names(void **state) RON_BLOCKS
{
    struct io_vfs *both[] = {posix_in(state), memory_new()};

    for (int k = 0; k < 2; k++) {
        struct io_file *file = open_file(both[k], "a", IO_OPEN_CREATE);
        struct io_file *other;
        char bytes[8] = {0};
        size_t size = 0;

        assert_ok(io_file_write(file, 0, &RON_SLICE("one"), 1, NULL));
        assert_ok(io_vfs_unlink(both[k], "a", NULL));
        other = open_file(both[k], "a", IO_OPEN_CREATE);
        assert_ok(io_file_write(file, 3, &RON_SLICE("two"), 1, NULL));
        assert_ok(io_file_read(file, 0, bytes, sizeof(bytes), &size, NULL));
        assert_int_equal(size, 6);
        assert_memory_equal(bytes, "onetwo", 6);
        assert_ok(io_file_read(other, 0, bytes, sizeof(bytes), &size, NULL));
        assert_int_equal(size, 0);
        assert_string_equal(io_file_path(other), "a");
        (void)io_file_close(file);
        (void)io_file_close(other);
        (void)io_vfs_free(both[k]);
    }
}

static void offsets_beyond_every_file(void **state) RON_BLOCKS
{
    struct io_vfs *both[] = {posix_in(state), memory_new()};

    for (int k = 0; k < 2; k++) {
        struct io_file *file = open_file(both[k], "a", IO_OPEN_CREATE);
        struct ron_errinfo info;
        char byte;
        size_t size = 9;
        enum ron_err err;

        err = io_file_write(file, INT64_MAX, &RON_SLICE("x"), 1, &info);
        support_assert_error(err, &info, RON_ERR_PERSISTENCE_FULL, "write ");
        err = io_file_write(file, UINT64_MAX, &RON_SLICE("x"), 1, &info);
        support_assert_error(err, &info, RON_ERR_PERSISTENCE_FULL, "/a: ");
        err = io_file_truncate(file, UINT64_MAX, &info);
        support_assert_error(err, &info, RON_ERR_PERSISTENCE_FULL, "truncate ");
        assert_ok(io_file_read(file, UINT64_MAX, &byte, 1, &size, NULL));
        assert_int_equal(size, 0);
        assert_ok(io_file_write(file, 0, NULL, 0, NULL));
        assert_dies((void)!io_file_write(file, 0, NULL, IO_WRITE_PARTS_MAX + 1, NULL), "PARTS_MAX");
        (void)io_file_close(file);
        file = open_file(both[k], "a", IO_OPEN_READ);
        assert_dies((void)!io_file_write(file, 0, NULL, 0, NULL), "file->writable");
        (void)io_file_close(file);
        assert_dies((void)!io_vfs_rename(both[k], "a", "d/a", NULL), "parent_size");
        (void)io_vfs_free(both[k]);
    }
}

/* ---- What only a real one has ---- */

static void links_and_devices_are_refused(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = posix_in(state);
    struct io_file *file = NULL;
    struct ron_errinfo info;
    enum ron_err err;

    (void)io_file_close(open_file(vfs, "a", IO_OPEN_CREATE));
    assert_ok(io_vfs_make_dir(vfs, "d", NULL));
    assert_int_equal(symlink("a", below(state, "link")), 0);
    assert_int_equal(symlink("d", below(state, "dirlink")), 0);
    assert_int_equal(mkfifo(below(state, "fifo"), 0600), 0);
    err = io_vfs_open(vfs, "link", IO_OPEN_READ, &file, &info);
    support_assert_error(err, &info, RON_ERR_FORBIDDEN, "/link: ");
    err = io_vfs_open(vfs, "link", IO_OPEN_WRITE, &file, &info);
    support_assert_error(err, &info, RON_ERR_FORBIDDEN, "symbolic links");
    err = io_vfs_open(vfs, "dirlink/x", IO_OPEN_CREATE, &file, &info);
    support_assert_error(err, &info, RON_ERR_FORBIDDEN, "symbolic links");
    err = io_vfs_make_dir(vfs, "dirlink/x", &info);
    support_assert_error(err, &info, RON_ERR_FORBIDDEN, "mkdir ");
    err = io_vfs_sync_dir(vfs, "dirlink", &info);
    support_assert_error(err, &info, RON_ERR_FORBIDDEN, "sync directory ");
    err = io_vfs_open(vfs, "fifo", IO_OPEN_READ, &file, &info);
    support_assert_error(err, &info, RON_ERR_FORBIDDEN, "/fifo: not a file");
    assert_null(file);
    (void)io_vfs_free(vfs);
}

static void only_the_owner_may_write(void **state) RON_BLOCKS
{
    mode_t mask = umask(0);
    struct io_vfs *vfs = NULL;
    struct io_file *file = NULL;
    struct ron_errinfo info;
    struct stat status;
    enum ron_err err;

    assert_ok(io_vfs_posix_new(below(state, "made"), true, &vfs, &info));
    assert_int_equal(stat(below(state, "made"), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    assert_ok(io_vfs_make_dir(vfs, "d", NULL));
    (void)io_file_close(open_file(vfs, "d/a", IO_OPEN_CREATE));
    assert_int_equal(stat(below(state, "made/d"), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    assert_int_equal(stat(below(state, "made/d/a"), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);

    assert_int_equal(chmod(below(state, "made/d/a"), 0644), 0); /* others may read: their affair */
    assert_ok(open_and_close(vfs, "d/a", IO_OPEN_READ, NULL));
    assert_int_equal(chmod(below(state, "made/d/a"), 0620), 0);
    err = io_vfs_open(vfs, "d/a", IO_OPEN_READ, &file, &info);
    support_assert_error(err, &info, RON_ERR_FORBIDDEN, "/d/a: others may write to it (mode 0620)");
    assert_int_equal(chmod(below(state, "made/d/a"), 0600), 0);
    assert_int_equal(chmod(below(state, "made/d"), 0702), 0);
    err = io_vfs_open(vfs, "d/a", IO_OPEN_READ, &file, &info);
    support_assert_error(err, &info, RON_ERR_FORBIDDEN, "others may write to it (mode 0702)");
    (void)io_vfs_free(vfs);

    assert_int_equal(chmod(below(state, "made"), 0770), 0);
    vfs = NULL;
    err = io_vfs_posix_new(below(state, "made"), true, &vfs, &info);
    support_assert_error(err, &info, RON_ERR_FORBIDDEN, "/made: others may write to it");
    err = io_vfs_posix_new(below(state, "missing"), false, &vfs, &info);
    support_assert_error(err, &info, RON_ERR_NOT_FOUND, "/missing: No such file or directory");
    err = io_vfs_posix_new(below(state, "missing/deep"), true, &vfs, &info);
    support_assert_error(err, &info, RON_ERR_NOT_FOUND, "mkdir ");
    assert_null(vfs);
    (void)umask(mask);
}

/* root may do everything, so a test as root becomes nobody for a moment. */
static void read_only_directory(void **state) RON_BLOCKS
{
    const uid_t nobody = 65534;
    bool root = geteuid() == 0;
    struct io_vfs *vfs;
    struct io_file *file = NULL;
    struct ron_errinfo info;
    enum ron_err err;

    if (root)
        assert_int_equal(chown(*state, nobody, nobody), 0);
    assert_int_equal(chmod(*state, 0500), 0);
    if (root)
        assert_int_equal(seteuid(nobody), 0);
    vfs = posix_in(state);
    err = io_vfs_open(vfs, "a", IO_OPEN_CREATE, &file, &info);
    (void)io_vfs_free(vfs);
    if (root)
        assert_int_equal(seteuid(0), 0);
    support_assert_error(err, &info, RON_ERR_FORBIDDEN, "/a: Permission denied");
    assert_int_equal(info.sys_errno, EACCES);
    assert_int_equal(chmod(*state, 0700), 0);
}

static void another_process_owns_it(void **state) RON_BLOCKS
{
    struct io_vfs *both[] = {posix_in(state), memory_new()};
    struct io_file *file;
    struct ron_errinfo info;
    int ready[2];
    int done[2];
    char byte = 0;
    pid_t pid;
    enum ron_err err;

    for (int k = 0; k < 2; k++) { /* in one process: two opens exclude each other */
        struct io_file *other;

        file = open_file(both[k], "owner", IO_OPEN_CREATE);
        other = open_file(both[k], "owner", IO_OPEN_WRITE);
        assert_ok(io_file_lock(file, NULL));
        assert_ok(io_file_lock(file, NULL));
        err = io_file_lock(other, &info);
        support_assert_error(err, &info, RON_ERR_CONFLICT, "/owner: another process owns it");
        (void)io_file_close(file);
        assert_ok(io_file_lock(other, NULL));
        (void)io_file_close(other);
    }
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(done, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct io_file *mine = NULL;
        bool locked = io_vfs_open(both[0], "owner", IO_OPEN_WRITE, &mine, NULL) == RON_ERR_OK &&
                      io_file_lock(mine, NULL) == RON_ERR_OK;

        (void)close(done[1]);
        (void)!write(ready[1], locked ? "y" : "n", 1);
        (void)!read(done[0], &byte, 1); /* until the parent has seen it, or is gone */
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    file = open_file(both[0], "owner", IO_OPEN_WRITE);
    err = io_file_lock(file, &info);
    support_assert_error(err, &info, RON_ERR_CONFLICT, "/owner: another process owns it");
    assert_int_equal(close(done[1]), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_ok(io_file_lock(file, NULL)); /* a process that ended owns nothing */
    (void)io_file_close(file);
    (void)close(done[0]);
    (void)close(ready[0]);
    (void)close(ready[1]);
    (void)io_vfs_free(both[0]);
    (void)io_vfs_free(both[1]);
}

static void too_many_open_files(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = posix_in(state);
    struct rlimit old;
    struct rlimit low;
    struct io_file *file = NULL;
    struct ron_errinfo info;
    enum ron_err err;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    low = old;
    low.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    err = io_vfs_open(vfs, "a", IO_OPEN_CREATE, &file, &info);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    support_assert_error(err, &info, RON_ERR_BUSY, "Too many open files");
    (void)io_vfs_free(vfs);
}

/* A write that finds no room leaves a file that can be used; the rest fits after an unlink. */
static void full_disk_says_so(struct io_vfs *vfs, size_t room) RON_BLOCKS
{
    static uint8_t bytes[65536];
    struct ron_slice all = ron_slice_of(bytes, sizeof(bytes));
    struct io_file *big = open_file(vfs, "big", IO_OPEN_CREATE);
    struct io_file *file = open_file(vfs, "file", IO_OPEN_CREATE);
    struct ron_errinfo info;
    uint64_t offset = 0;
    uint64_t size = 0;
    enum ron_err err;

    memset(bytes, 0xa5, sizeof(bytes));
    assert_ok(io_file_write(file, 0, &RON_SLICE("x"), 1, NULL));
    do {
        err = io_file_write(big, offset, &all, 1, &info);
        offset += sizeof(bytes);
        assert_true(offset <= 2 * room);
    } while (err == RON_ERR_OK);
    support_assert_error(err, &info, RON_ERR_PERSISTENCE_FULL, "/big: No space left on device");
    assert_ok(io_file_size(big, &size, NULL));
    assert_true(size > offset - sizeof(bytes)); /* what fitted was written */
    assert_true(size < offset);
    assert_ok(io_file_sync(big, NULL)); /* not poisoned */
    (void)io_file_close(big);
    err = io_file_write(file, 0, &all, 1, &info);
    assert_int_equal(err, RON_ERR_PERSISTENCE_FULL);
    assert_ok(io_vfs_unlink(vfs, "big", NULL));
    assert_ok(io_vfs_sync_dir(vfs, "", NULL));
    assert_ok(io_file_write(file, 0, &all, 1, NULL));
    (void)io_file_close(file);
}

static void full_disks(void **state) RON_BLOCKS
{
    enum { ROOM = 1 << 20, ODD = 100 * 1000 + 7 };
    struct io_memory_options options = {.bytes_max = ODD};
    struct io_vfs *vfs = NULL;
    char sizes[64];

    assert_ok(io_vfs_memory_new(&options, &vfs, NULL));
    full_disk_says_so(vfs, ODD + 65536);
    (void)io_vfs_free(vfs);

    /* In a mount namespace of our own: it ends with the process. */
    (void)snprintf(sizes, sizeof(sizes), "size=%dk,mode=0700", ROOM / 1024 + 20);
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("ron", *state, "tmpfs", 0, sizes) != 0) {
        print_message("SKIP full tmpfs: this user may not mount (%s)\n", strerror(errno));
        return;
    }
    vfs = posix_in(state);
    full_disk_says_so(vfs, ROOM);
    (void)io_vfs_free(vfs);
    assert_int_equal(umount(*state), 0);
}

static bool stop_at_first(void *context, const char *name, bool is_dir)
{
    (void)context;
    assert_string_equal(name, "a");
    assert_false(is_dir);
    return false;
}

static enum ron_err attempt(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_vfs *vfs = NULL;
    struct io_file *file = NULL;
    enum ron_err err = io_vfs_posix_new(context, false, &vfs, reterr);

    if (err == RON_ERR_OK)
        err = io_vfs_open(vfs, "a", IO_OPEN_WRITE, &file, reterr);
    if (err == RON_ERR_OK)
        err = io_file_write(file, 0, &RON_SLICE("x"), 1, reterr);
    if (err == RON_ERR_OK)
        err = io_vfs_list(vfs, "", stop_at_first, NULL, reterr);
    (void)io_file_close(file);
    (void)io_vfs_free(vfs);
    return err;
}

static void each_allocation_may_fail(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = posix_in(state);

    (void)io_file_close(open_file(vfs, "a", IO_OPEN_CREATE));
    (void)io_vfs_free(vfs);
    assert_true(support_fail_each_allocation(attempt, *state, 20) >= 2);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)
int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(table_holds_for_both),
        CASE(uncached_bytes_leave_memory_and_fetched_ones_come),
        CASE(direct_bytes_pass_the_cache),
        CASE(random_calls_agree),
        CASE(open_files_outlive_their_names),
        CASE(offsets_beyond_every_file),
        CASE(links_and_devices_are_refused),
        CASE(only_the_owner_may_write),
        CASE(read_only_directory),
        CASE(another_process_owns_it),
        CASE(too_many_open_files),
        CASE(each_allocation_may_fail),
        CASE(full_disks), /* last: it leaves the mount namespace */
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
