/*
 * input.c - standard input of a command. See input.h.
 */
#include "cli/input.h"

#include <errno.h>
#include <stdio.h>

#include "base/secret.h"

enum { CHUNK_SIZE = 4096 };

void cli_wipe_input(struct ron_buf *buf)
{
    ron_wipe(buf->data, buf->capacity);
    ron_buf_fini(buf);
}

enum ron_err cli_read_input(size_t size_max, struct ron_buf *ret_buf, struct ron_errinfo *reterr)
{
    uint8_t chunk[CHUNK_SIZE];
    struct ron_buf buf;
    enum ron_err err;
    size_t size;

    /* stdio would keep a copy of its own. */
    (void)setvbuf(stdin, NULL, _IONBF, 0);
    ron_buf_init(&buf, size_max);
    err = ron_buf_reserve(&buf, size_max, reterr);
    while (err == RON_ERR_OK && (size = fread(chunk, 1, sizeof(chunk), stdin)) > 0) {
        if (ron_buf_append(&buf, chunk, size, NULL) != RON_ERR_OK)
            err = ron_fail(reterr, RON_ERR_TOO_LARGE, "standard input: more than %zu bytes",
                           size_max);
    }
    if (err == RON_ERR_OK && ferror(stdin))
        err = ron_fail_sys(reterr, RON_ERR_IO, errno, "standard input: %s", strerror(errno));
    ron_wipe(chunk, sizeof(chunk));
    if (err != RON_ERR_OK) {
        cli_wipe_input(&buf);
        return err;
    }
    *ret_buf = buf;
    return RON_ERR_OK;
}
