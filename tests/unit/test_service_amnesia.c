/*
 * test_service_amnesia.c - the memory engine keeps nothing: a whole ledger runs on it under a
 * filter of the kernel that kills the process at the first call that would make, open for writing,
 * rename or remove a file. That the filter does so is tried first.
 */
#include "service_fixture.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Calls that are refused whatever they are given. */
static const uint32_t refused[] = {
#ifdef __NR_creat
    __NR_creat,
#endif
#ifdef __NR_mkdir
    __NR_mkdir,    __NR_rename,    __NR_unlink,    __NR_link,    __NR_symlink,
#endif
    __NR_mkdirat,  __NR_renameat2, __NR_unlinkat,  __NR_linkat,  __NR_symlinkat,
    __NR_truncate, __NR_ftruncate, __NR_fallocate, __NR_openat2, __NR_mknodat,
};
/* Calls that open, and which argument has the flags. */
static const struct {
    uint32_t call, argument;
} opens[] = {
#ifdef __NR_open
    {__NR_open, 1},
#endif
    {__NR_openat, 2},
};

enum { FILTER_MAX = 64 };

/* From here on this process, its threads and its children write to no file. */
static void forbid_files(void)
{
    const struct sock_filter load_call = BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                  offsetof(struct seccomp_data, nr));
    const struct sock_filter kill_it = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_filter filter[FILTER_MAX];
    struct sock_fprog program = {.filter = filter};
    unsigned short count = 0;

    filter[count++] = load_call;
    for (size_t i = 0; i < RON_ARRAY_COUNT(refused); i++) {
        filter[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused[i], 0, 1);
        filter[count++] = kill_it;
    }
    for (size_t i = 0; i < RON_ARRAY_COUNT(opens); i++) {
        const uint32_t at = (uint32_t)(offsetof(struct seccomp_data, args) + 8 * opens[i].argument);

        filter[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, opens[i].call, 0,
                                                       4);
        filter[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at);
        filter[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K,
                                                       O_WRONLY | O_RDWR | O_CREAT, 0, 1);
        filter[count++] = kill_it;
        filter[count++] = load_call;
    }
    filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    RON_ASSERT(count <= FILTER_MAX);
    program.len = count;
    RON_MUST_ZERO(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    RON_MUST_ZERO(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

/* Run in a child that may not touch files; how it ended. */
static int run_confined(void (*fn)(void))
{
    pid_t pid = fork();
    int status = 0;

    assert_true(pid >= 0);
    if (pid == 0) {
        forbid_files();
        fn();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void open_for_reading(void)
{
    if (open("/proc/self/status", O_RDONLY | O_CLOEXEC) < 0)
        _exit(1);
}

static void open_for_writing(void)
{
    (void)!open("/dev/null", O_WRONLY | O_CLOEXEC);
}

static void make_a_file(void)
{
    (void)!open("test_service_amnesia.tmp", O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
}

static void make_a_directory(void)
{
    (void)!syscall(__NR_mkdirat, AT_FDCWD, "test_service_amnesia.tmp", 0700);
}

static void the_filter_filters(void **state)
{
    (void)state;
    assert_int_equal(run_confined(open_for_reading), 0);
    assert_true(WIFSIGNALED(run_confined(open_for_writing)));
    assert_true(WIFSIGNALED(run_confined(make_a_file)));
    assert_true(WIFSIGNALED(run_confined(make_a_directory)));
}

/* Commits, repetitions, reads, a stop, a second service on the same engine. */
static void live_without_files(void) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct ledger_root roots[4];
    char id[TEXT_SIZE];
    size_t count = 0;

    f->options.engine = f->engine;
    for (unsigned life = 0; life < 2; life++) {
        fixture_start(f);
        for (unsigned i = 0; i < 20; i++) {
            (void)snprintf(id, sizeof(id), "m%u", i);
            f->calls_count = 0;
            accepts(f, call_new(f, id, NULL, "alice", 2, id));
        }
        if (balance_of(f, "alice") != 40 ||
            ledger_read_roots(f->service, 0, roots, 4, &count, NULL) != RON_ERR_OK || count != 4)
            _exit(2);
        fixture_stop(f);
    }
    fixture_free(f);
}

static void a_ledger_in_memory_touches_no_file(void **state)
{
    (void)state;
    assert_int_equal(run_confined(live_without_files), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_filter_filters),
        cmocka_unit_test(a_ledger_in_memory_touches_no_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
