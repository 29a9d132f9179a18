/*
 * sd_notify.c - one datagram to the service manager. See sd_notify.h.
 */
#include "io/sd_notify.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/assert.h"

enum ron_err io_sd_notify(const char *address, const char *lines, struct ron_errinfo *reterr)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t size = address == NULL ? 0 : strlen(address);
    enum ron_err err = RON_ERR_OK;
    int fd;

    if (size == 0)
        return RON_ERR_OK;
    if ((address[0] != '/' && address[0] != '@') || size >= sizeof(to.sun_path))
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "NOTIFY_SOCKET is neither a path nor @name of a Unix socket");
    memcpy(to.sun_path, address, size);
    if (address[0] == '@')
        to.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return ron_fail_sys(reterr, RON_ERR_IO, errno, "notify socket: %s", strerror(errno));
    if (sendto(fd, lines, strlen(lines), MSG_NOSIGNAL, (const struct sockaddr *)&to,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size)) < 0)
        err = ron_fail_sys(reterr, errno == EAGAIN ? RON_ERR_BUSY : RON_ERR_IO, errno,
                           "notify %s: %s", address, strerror(errno));
    RON_MUST_ZERO(close(fd));
    return err;
}
