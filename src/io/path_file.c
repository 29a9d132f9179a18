/*
 * path_file.c - small files that a person names. See path_file.h.
 */
#include "io/path_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/secret.h"

enum { PIECE_SIZE = 16384 };

static enum ron_err fail(struct ron_errinfo *reterr, const char *path, const char *call, int error)
{
    enum ron_err err = error == ENOENT || error == ENOTDIR ? RON_ERR_NOT_FOUND
                       : error == EACCES || error == EPERM ? RON_ERR_FORBIDDEN
                                                           : RON_ERR_IO;

    return ron_fail_sys(reterr, err, error, "%s: cannot %s: %s", path, call, strerror(error));
}

static enum ron_err read_all(int fd, const char *path, size_t size_max, struct ron_buf *buf,
                             struct ron_errinfo *reterr)
{
    size_t total = 0;

    for (;;) {
        uint8_t piece[PIECE_SIZE]; /* it may be a keyring: wiped */
        enum ron_err err;
        ssize_t size;

        do
            size = read(fd, piece, sizeof(piece));
        while (size < 0 && errno == EINTR);
        if (size < 0)
            return fail(reterr, path, "read", errno);
        if (size == 0)
            return RON_ERR_OK;
        total += (size_t)size;
        if (total > size_max)
            return ron_fail(reterr, RON_ERR_TOO_LARGE, "%s: larger than %zu bytes", path, size_max);
        err = ron_buf_append(buf, piece, (size_t)size, reterr);
        ron_wipe(piece, (size_t)size);
        if (err != RON_ERR_OK)
            return ron_wrap(reterr, err, "%s", path);
    }
}

enum ron_err io_path_read(const char *path, size_t size_max, struct ron_buf *buf,
                          struct ron_errinfo *reterr)
{
    struct stat status;
    enum ron_err err;
    int fd;

    if (strcmp(path, "-") == 0)
        return read_all(STDIN_FILENO, "standard input", size_max, buf, reterr);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return fail(reterr, path, "open", errno);
    if (fstat(fd, &status) != 0)
        err = fail(reterr, path, "look at", errno);
    else if (S_ISDIR(status.st_mode) || S_ISBLK(status.st_mode))
        err = ron_fail(reterr, RON_ERR_MALFORMED, "%s: not a file", path);
    else
        err = read_all(fd, path, size_max, buf, reterr);
    RON_MUST_ZERO(close(fd));
    return err;
}
