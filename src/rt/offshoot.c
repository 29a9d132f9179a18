/*
 * offshoot.c - see offshoot.h.
 */
#include "rt/offshoot.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "rt/clock.h"
#include "rt/lock.h"

enum { PIPE_BYTES = 1 << 20, NICE = 5 };

struct rt_offshoot {
    pid_t pid;           /* 0: in process, or reaped */
    int fd;              /* -1: none */
    bool forked, failed; /* failed: in process, fn said so */
    struct ron_buf buf;  /* in process */
    size_t taken;        /* of it */
};

/* Everything that happens in the copy. */
static _Noreturn void run_copy(struct rt_offshoot *offshoot, pid_t parent, rt_offshoot_fn *fn,
                               void *context)
{
    const unsigned fd = (unsigned)offshoot->fd;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(2);
    if (close_range(0, 1, 0) != 0 || (fd > 3 && close_range(3, fd - 1, 0) != 0) ||
        close_range(fd + 1, ~0U, 0) != 0)
        _exit(2);
    (void)setpriority(PRIO_PROCESS, 0, NICE);
    _exit(fn(offshoot, context) ? 0 : 1);
}

static enum ron_err start_fork(struct rt_offshoot *offshoot,
                               const struct rt_offshoot_options *options,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    const pid_t parent = getpid();
    sigset_t all, before;
    int fds[2];
    int saved;

    if (pipe2(fds, O_CLOEXEC) != 0)
        return ron_fail_sys(reterr, RON_ERR_IO, errno, "a pipe to a copy of the process");
    (void)fcntl(fds[1], F_SETPIPE_SZ, PIPE_BYTES);
    RON_MUST_ZERO(sigfillset(&all));
    RON_MUST_ZERO(pthread_sigmask(SIG_SETMASK, &all, &before)); /* the copy keeps it */
    offshoot->fd = fds[1];
    offshoot->pid = fork();
    if (offshoot->pid == 0)
        run_copy(offshoot, parent, options->fn, options->context);
    saved = errno;
    RON_MUST_ZERO(pthread_sigmask(SIG_SETMASK, &before, NULL));
    RON_MUST_ZERO(close(fds[1]));
    offshoot->fd = fds[0];
    offshoot->forked = true;
    if (offshoot->pid > 0)
        return RON_ERR_OK;
    offshoot->pid = 0;
    return ron_fail_sys(reterr, RON_ERR_IO, saved, "a copy of the process");
}

enum ron_err rt_offshoot_start(const struct rt_offshoot_options *options,
                               struct rt_offshoot **ret_offshoot, struct ron_errinfo *reterr)
{
    struct rt_offshoot *offshoot = ron_mem_alloc(sizeof(*offshoot));
    enum ron_err err = RON_ERR_OK;

    rt_assert_no_lock_held();
    if (offshoot == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "an offshoot");
    offshoot->fd = -1;
    ron_buf_init(&offshoot->buf, options->size_max);
    if (options->in_process || RON_ASAN || RON_TSAN)
        offshoot->failed = !options->fn(offshoot, options->context);
    else
        err = start_fork(offshoot, options, reterr);
    if (err != RON_ERR_OK) {
        (void)rt_offshoot_end(offshoot);
        return err;
    }
    *ret_offshoot = offshoot;
    return RON_ERR_OK;
}

bool rt_offshoot_put(struct rt_offshoot *offshoot, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;

    if (offshoot->fd < 0)
        return ron_buf_append(&offshoot->buf, bytes, size, NULL) == RON_ERR_OK;
    while (size > 0) {
        ssize_t count = write(offshoot->fd, at, size);

        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        at += count;
        size -= (size_t)count;
    }
    return true;
}

/* The pipe has ended: how did the copy? */
static enum ron_err reap(struct rt_offshoot *offshoot, struct ron_errinfo *reterr) RON_BLOCKS
{
    int status = 0;

    while (offshoot->pid > 0 && waitpid(offshoot->pid, &status, 0) < 0)
        if (errno != EINTR)
            return ron_fail_sys(reterr, RON_ERR_IO, errno, "the end of a copy of the process");
    if (offshoot->pid > 0)
        offshoot->failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    offshoot->pid = 0;
    if (offshoot->failed)
        return ron_fail(reterr, RON_ERR_IO, "a copy of the process failed: status %#x",
                        (unsigned)status);
    return RON_ERR_OK;
}

/* Until there is something to read, or an end. */
static enum ron_err wait_readable(int fd, struct rt_deadline deadline,
                                  struct ron_errinfo *reterr) RON_BLOCKS
{
    enum { SLICE_MS = 1000 };

    for (;;) {
        struct pollfd wanted = {.fd = fd, .events = POLLIN};
        const uint64_t left_ms = rt_deadline_remaining_ns(deadline) / RT_NS_PER_MS;
        const int count = poll(&wanted, 1, left_ms < SLICE_MS ? (int)left_ms + 1 : SLICE_MS);

        if (count > 0)
            return RON_ERR_OK;
        if (count < 0 && errno != EINTR)
            return ron_fail_sys(reterr, RON_ERR_IO, errno, "a pipe from a copy of the process");
        if (rt_deadline_expired(deadline))
            return ron_fail(reterr, RON_ERR_TIMEOUT, "a copy of the process is not done");
    }
}

enum ron_err rt_offshoot_read(struct rt_offshoot *offshoot, void *bytes, size_t size,
                              struct rt_deadline deadline, size_t *ret_size,
                              struct ron_errinfo *reterr)
{
    const size_t left = offshoot->buf.size - offshoot->taken;
    enum ron_err err = RON_ERR_OK;
    ssize_t count = 0;

    rt_assert_no_lock_held();
    RON_ASSERT(size > 0);
    if (!offshoot->forked) {
        count = (ssize_t)(left < size ? left : size);
        if (count > 0)
            memcpy(bytes, offshoot->buf.data + offshoot->taken, (size_t)count);
        offshoot->taken += (size_t)count;
    } else {
        do {
            err = wait_readable(offshoot->fd, deadline, reterr);
            if (err != RON_ERR_OK)
                return err;
            count = read(offshoot->fd, bytes, size);
        } while (count < 0 && errno == EINTR);
        if (count < 0)
            return ron_fail_sys(reterr, RON_ERR_IO, errno, "a pipe from a copy of the process");
    }
    if (count == 0)
        err = reap(offshoot, reterr);
    if (err == RON_ERR_OK)
        *ret_size = (size_t)count;
    return err;
}

struct rt_offshoot *rt_offshoot_end(struct rt_offshoot *offshoot)
{
    rt_assert_no_lock_held();
    if (offshoot == NULL)
        return NULL;
    if (offshoot->pid > 0) {
        (void)kill(offshoot->pid, SIGKILL); /* not reaped yet, so the number is still its own */
        (void)!reap(offshoot, NULL);
    }
    if (offshoot->fd >= 0)
        RON_MUST_ZERO(close(offshoot->fd));
    ron_buf_fini(&offshoot->buf);
    return ron_mem_free(offshoot);
}
