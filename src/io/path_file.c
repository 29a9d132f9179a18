/*
 * path_file.c - files that a person names. See path_file.h.
 */
#include "io/path_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/secret.h"

enum { PIECE_SIZE = 16384, LINES_PIECE_SIZE = 256 << 10 };

static enum ron_err fail(struct ron_errinfo *reterr, const char *path, const char *call, int error)
{
    enum ron_err err = error == ENOENT || error == ENOTDIR ? RON_ERR_NOT_FOUND
                       : error == EACCES || error == EPERM ? RON_ERR_FORBIDDEN
                                                           : RON_ERR_IO;

    return ron_fail_sys(reterr, err, error, "%s: cannot %s: %s", path, call, strerror(error));
}

static enum ron_err read_piece(int fd, const char *path, void *bytes, size_t size, size_t *ret_size,
                               struct ron_errinfo *reterr)
{
    ssize_t got;

    do
        got = read(fd, bytes, size);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return fail(reterr, path, "read", errno);
    *ret_size = (size_t)got;
    return RON_ERR_OK;
}

static enum ron_err read_all(int fd, const char *path, size_t size_max, struct ron_buf *buf,
                             struct ron_errinfo *reterr)
{
    size_t total = 0;

    for (;;) {
        uint8_t piece[PIECE_SIZE]; /* it may be a keyring: wiped */
        size_t size = 0;
        enum ron_err err = read_piece(fd, path, piece, sizeof(piece), &size, reterr);

        if (err != RON_ERR_OK || size == 0)
            return err;
        total += size;
        if (total > size_max)
            return ron_fail(reterr, RON_ERR_TOO_LARGE, "%s: larger than %zu bytes", path, size_max);
        err = ron_buf_append(buf, piece, size, reterr);
        ron_wipe(piece, size);
        if (err != RON_ERR_OK)
            return ron_wrap(reterr, err, "%s", path);
    }
}

/* The caller closes *ret_fd. */
static enum ron_err open_named(const char *path, int *ret_fd, struct stat *ret_status,
                               struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return fail(reterr, path, "open", errno);
    if (fstat(fd, ret_status) != 0)
        err = fail(reterr, path, "look at", errno);
    else if (S_ISDIR(ret_status->st_mode) || S_ISBLK(ret_status->st_mode))
        err = ron_fail(reterr, RON_ERR_MALFORMED, "%s: not a file", path);
    if (err == RON_ERR_OK)
        *ret_fd = fd;
    else
        RON_MUST_ZERO(close(fd));
    return err;
}

enum ron_err io_path_read(const char *path, size_t size_max, struct ron_buf *buf,
                          struct ron_errinfo *reterr)
{
    struct stat status;
    enum ron_err err;
    int fd;

    if (strcmp(path, "-") == 0)
        return read_all(STDIN_FILENO, "standard input", size_max, buf, reterr);
    err = open_named(path, &fd, &status, reterr);
    if (err != RON_ERR_OK)
        return err;
    err = read_all(fd, path, size_max, buf, reterr);
    RON_MUST_ZERO(close(fd));
    return err;
}

/* --- Lines ------------------------------------------------------------------------------------ */

enum ron_err io_path_lines_open(struct io_path_lines *lines, const char *path, size_t line_max,
                                struct ron_errinfo *reterr)
{
    const bool is_input = strcmp(path, "-") == 0;
    struct stat status = {.st_size = 0};
    enum ron_err err;

    *lines = (struct io_path_lines){
        .path = is_input ? "standard input" : path,
        .line_max = line_max,
        .capacity = line_max + LINES_PIECE_SIZE,
        .fd = STDIN_FILENO,
    };
    if (!is_input) {
        err = open_named(path, &lines->fd, &status, reterr);
        if (err != RON_ERR_OK)
            return err;
    } else if (fstat(STDIN_FILENO, &status) != 0) {
        return fail(reterr, lines->path, "look at", errno);
    }
    if (S_ISREG(status.st_mode) && status.st_size > 0)
        lines->total = (uint64_t)status.st_size;
    lines->bytes = ron_mem_alloc(lines->capacity);
    if (lines->bytes != NULL)
        return RON_ERR_OK;
    if (!is_input)
        RON_MUST_ZERO(close(lines->fd));
    return ron_fail(reterr, RON_ERR_NO_MEMORY, "%s: %zu bytes for lines", path, lines->capacity);
}

/* More behind what is there, which is moved to the front first. */
static enum ron_err read_more(struct io_path_lines *lines, struct ron_errinfo *reterr)
{
    size_t size = 0;
    enum ron_err err;

    memmove(lines->bytes, lines->bytes + lines->begin, lines->end - lines->begin);
    lines->end -= lines->begin;
    lines->seen -= lines->begin;
    lines->begin = 0;
    RON_ASSERT(lines->end < lines->capacity);
    err = read_piece(lines->fd, lines->path, lines->bytes + lines->end,
                     lines->capacity - lines->end, &size, reterr);
    if (err != RON_ERR_OK)
        return err;
    lines->end += size;
    lines->at_end = size == 0;
    return RON_ERR_OK;
}

enum ron_err io_path_lines_next(struct io_path_lines *lines, struct ron_slice *ret_line,
                                bool *ret_there, struct ron_errinfo *reterr)
{
    RON_ASSERT(lines->bytes != NULL);
    for (;;) {
        const uint8_t *rest = lines->bytes + lines->seen;
        const uint8_t *lf = lines->seen == lines->end
                                ? NULL
                                : memchr(rest, '\n', lines->end - lines->seen);
        const bool is_last = lf == NULL && lines->at_end;
        const size_t end = lf == NULL ? lines->end : (size_t)(lf - lines->bytes);
        enum ron_err err;

        if (end - lines->begin > lines->line_max)
            return ron_fail(reterr, RON_ERR_TOO_LARGE, "%s: a line of more than %zu bytes",
                            lines->path, lines->line_max);
        if (lf != NULL || is_last) {
            const size_t taken = end - lines->begin + (lf != NULL);

            *ret_line = ron_slice_of(lines->bytes + lines->begin, end - lines->begin);
            *ret_there = taken > 0;
            lines->done += taken;
            lines->begin += taken;
            lines->seen = lines->begin;
            return RON_ERR_OK;
        }
        lines->seen = lines->end;
        err = read_more(lines, reterr);
        if (err != RON_ERR_OK)
            return err;
    }
}

void io_path_lines_close(struct io_path_lines *lines)
{
    if (lines->bytes != NULL && lines->fd != STDIN_FILENO)
        RON_MUST_ZERO(close(lines->fd));
    lines->bytes = ron_mem_free(lines->bytes);
}
