/*
 * log_fd.c - log lines to a descriptor. See rt/log_fd.h.
 */
#include "rt/log_fd.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/assert.h"

enum ron_err rt_log_fd_write(void *context, struct ron_slice lines, struct ron_errinfo *reterr)
{
    const int fd = *(const int *)context;
    size_t at = 0;

    while (at < lines.size) {
        ssize_t written = write(fd, lines.data + at, lines.size - at);

        if (written >= 0) {
            RON_ASSERT((size_t)written <= lines.size - at);
            at += (size_t)written;
        } else if (errno == EAGAIN) { /* someone shares the terminal and made it non-blocking */
            struct pollfd ready = {.fd = fd, .events = POLLOUT};
            (void)poll(&ready, 1, -1);
        } else if (errno != EINTR) {
            return ron_fail_sys(reterr, RON_ERR_IO, errno, "log line to descriptor %d", fd);
        }
    }
    return RON_ERR_OK;
}

enum rt_log_form rt_log_fd_form(int fd)
{
    return isatty(fd) == 1 ? RT_LOG_TEXT : RT_LOG_JSON;
}
