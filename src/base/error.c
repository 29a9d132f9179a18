/*
 * error.c - look-ups in the error table and the filling of ron_errinfo. See ron/error.h.
 */
#include "ron/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

enum { CONTEXT_SIZE_MIN = 8 }; /* a shorter piece of a context says nothing */

struct error_row {
    const char *symbol;
    const char *code;
    const char *reason;
    const char *text;
    int http;
    unsigned flags;
};

static const struct error_row rows[] = {
#define X(name, code, http, flags, reason, text) {#name, code, reason, text, http, flags},
    RON_ERR_MAP(X)
#undef X
};
_Static_assert(RON_ARRAY_COUNT(rows) == RON_ERR__MAX, "one row per code");

static const struct error_row *row_of(enum ron_err err)
{
    RON_ASSERT((unsigned)err < RON_ERR__MAX);
    return &rows[err];
}

const char *ron_err_name(enum ron_err err)
{
    return row_of(err)->code;
}

const char *ron_err_symbol(enum ron_err err)
{
    return row_of(err)->symbol;
}

const char *ron_err_reason(enum ron_err err)
{
    return row_of(err)->reason;
}

const char *ron_err_text(enum ron_err err)
{
    return row_of(err)->text;
}

int ron_err_http(enum ron_err err)
{
    return row_of(err)->http;
}

bool ron_err_retryable(enum ron_err err)
{
    return (row_of(err)->flags & RON_ERRF_RETRY) != 0;
}

bool ron_err_retry_after(enum ron_err err)
{
    return (row_of(err)->flags & RON_ERRF_RETRY_AFTER) != 0;
}

bool ron_err_internal(enum ron_err err)
{
    return (row_of(err)->flags & RON_ERRF_INTERNAL) != 0;
}

enum ron_err ron_err_wire(enum ron_err err)
{
    RON_ASSERT(err != RON_ERR_OK);
    RON_ASSERT(err != RON_ERR_DUPLICATE_EXPORT); /* a success: it has a result, not an envelope */
    if (!ron_err_internal(err))
        return err;
    return err == RON_ERR_NO_MEMORY ? RON_ERR_BUSY : RON_ERR_INTERNAL;
}

bool ron_err_find(const char *code, enum ron_err *ret_err)
{
    /* From the end, so that "Timeout" is the general row and not the HTTP server's 408, and
     * "SafeMode" the one that nobody should wait for. */
    for (unsigned i = RON_ERR__MAX; i-- > 0;) {
        if ((rows[i].flags & RON_ERRF_INTERNAL) == 0 && strcmp(rows[i].code, code) == 0) {
            *ret_err = (enum ron_err)i;
            return true;
        }
    }
    return false;
}

/* Drop a UTF-8 character that the cut at size - 1 left incomplete. */
static void trim_cut_character(char *text, size_t text_size)
{
    size_t end = strlen(text);
    size_t start = end;

    RON_ASSERT(end < text_size);
    if (end + 1 < text_size)
        return; /* not cut */
    while (start > 0 && end - start < 3 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
        start--;
    if (start == 0)
        return;
    unsigned char lead = (unsigned char)text[start - 1];
    size_t need = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (end - (start - 1) < need)
        text[start - 1] = '\0';
}

enum ron_err ron_fail_at(struct ron_errinfo *reterr, enum ron_err err, int sys_errno,
                         const char *file, int line, const char *format, ...)
{
    va_list args;

    RON_ASSERT(err != RON_ERR_OK);
    RON_ASSERT((unsigned)err < RON_ERR__MAX);
    if (reterr == NULL)
        return err;
    reterr->err = err;
    reterr->sys_errno = sys_errno;
    reterr->file = file;
    reterr->line = line;
    va_start(args, format);
    (void)vsnprintf(reterr->message, sizeof(reterr->message), format, args);
    va_end(args);
    trim_cut_character(reterr->message, sizeof(reterr->message));
    return err;
}

enum ron_err ron_wrap(struct ron_errinfo *reterr, enum ron_err err, const char *format, ...)
{
    static const char separator[] = ": ";
    char context[RON_ERR_MESSAGE_SIZE];
    size_t context_size;
    size_t inner_size;
    size_t room_size;
    va_list args;

    RON_ASSERT(err != RON_ERR_OK);
    if (reterr == NULL)
        return err;
    RON_ASSERT(reterr->err == err);
    /* The inner message is the fact: it is kept whole, the context is cut to the room left. */
    inner_size = strlen(reterr->message);
    RON_ASSERT(inner_size < sizeof(reterr->message));
    room_size = sizeof(reterr->message) - 1 - inner_size;
    if (room_size < sizeof(separator) + CONTEXT_SIZE_MIN)
        return err;
    va_start(args, format);
    (void)vsnprintf(context, room_size - (sizeof(separator) - 1) + 1, format, args);
    va_end(args);
    trim_cut_character(context, room_size - (sizeof(separator) - 1) + 1);
    context_size = strlen(context);
    memmove(reterr->message + context_size + sizeof(separator) - 1, reterr->message,
            inner_size + 1);
    memcpy(reterr->message + context_size, separator, sizeof(separator) - 1);
    memcpy(reterr->message, context, context_size);
    return err;
}
