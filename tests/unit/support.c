/*
 * support.c - see support.h.
 */
#include "support.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/decimal.h"

static bool fail_countdown(size_t size, void *context)
{
    unsigned *left = context;

    (void)size;
    if (*left == 0)
        return false; /* later allocations succeed: cleanup paths run for real */
    *left -= 1;
    return *left == 0;
}

unsigned support_fail_each_allocation(support_attempt_fn *attempt, void *context, unsigned limit)
{
    for (unsigned nth = 1; nth <= limit; nth++) {
        struct ron_errinfo info = {0};
        uint64_t live_before = ron_mem_live_count();
        unsigned left = nth;
        enum ron_err err;

        ron_mem_set_fail_hook(fail_countdown, &left);
        err = attempt(context, &info);
        ron_mem_set_fail_hook(NULL, NULL);
        assert_int_equal(ron_mem_live_count(), live_before);
        if (left > 0) {
            assert_int_equal(err, RON_ERR_OK);
            return nth - 1;
        }
        assert_int_equal(err, RON_ERR_NO_MEMORY);
        assert_int_equal(info.err, RON_ERR_NO_MEMORY);
    }
    fail_msg("more than %u allocations", limit);
    return 0;
}

void support_assert_error(enum ron_err err, const struct ron_errinfo *info, enum ron_err expected,
                          const char *text)
{
    if (err != expected)
        fail_msg("got %s (%s), expected %s", ron_err_symbol(err), info->message,
                 ron_err_symbol(expected));
    assert_int_equal(info->err, expected);
    if (strstr(info->message, text) == NULL)
        fail_msg("message \"%s\" lacks \"%s\"", info->message, text);
}

static int death_pipe[2];
static pid_t death_child;

bool support_death_begin(void)
{
    assert_int_equal(pipe(death_pipe), 0);
    fflush(NULL);
    death_child = fork();
    assert_true(death_child >= 0);
    if (death_child != 0)
        return false;
    struct rlimit no_core = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)signal(SIGABRT, SIG_DFL);
    (void)dup2(death_pipe[1], STDERR_FILENO);
    (void)close(death_pipe[0]);
    (void)close(death_pipe[1]);
    return true;
}

void support_death_survived(void)
{
    _exit(0);
}

void support_death_end(const char *text, const char *file, int line)
{
    static char output[65536];
    size_t size = 0;
    ssize_t got;
    int status = 0;

    (void)close(death_pipe[1]);
    while (size < sizeof(output) - 1 &&
           (got = read(death_pipe[0], output + size, sizeof(output) - 1 - size)) > 0)
        size += (size_t)got;
    output[size] = '\0';
    (void)close(death_pipe[0]);
    assert_int_equal(waitpid(death_child, &status, 0), death_child);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        fail_msg("%s:%d: expected an abort, got status %d: %s", file, line, status, output);
    if (strstr(output, text) == NULL)
        fail_msg("%s:%d: output lacks \"%s\": %s", file, line, text, output);
}

static bool is_thread(const char *id, const char *name)
{
    char path[300], line[64] = "";
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%s/comm", id);
    file = fopen(path, "r");
    if (file == NULL) /* it has ended */
        return false;
    if (fgets(line, sizeof(line), file) != NULL)
        line[strcspn(line, "\n")] = '\0';
    (void)fclose(file);
    return strcmp(line, name) == 0;
}

int support_nice_of(const char *thread_name)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *task;
    unsigned found = 0;
    int nice = 0;

    assert_non_null(tasks);
    while ((task = readdir(tasks)) != NULL) {
        uint64_t id = 0;

        if (ron_decimal_parse_u64(ron_slice_text(task->d_name), &id, NULL) == RON_ERR_OK &&
            is_thread(task->d_name, thread_name)) {
            nice = getpriority(PRIO_PROCESS, (id_t)id);
            found++;
        }
    }
    (void)closedir(tasks);
    assert_int_equal(found, 1);
    return nice;
}
