/*
 * vfs_names.c - the entries of one directory. See vfs_names.h.
 */
#include "io/vfs_names.h"

#include <stdlib.h>

#include "base/mem.h"

void io_names_init(struct io_names *names)
{
    ron_buf_init(&names->bytes, (size_t)IO_LIST_MAX * (IO_NAME_MAX + 2));
    names->count = 0;
}

void io_names_fini(struct io_names *names)
{
    ron_buf_fini(&names->bytes);
}

enum ron_err io_names_add(struct io_names *names, const char *name, bool is_dir,
                          struct ron_errinfo *reterr)
{
    if (names->count == IO_LIST_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a directory of more than %d entries",
                        (int)IO_LIST_MAX);
    ron_buf_put_byte(&names->bytes, is_dir ? 1 : 0);
    ron_buf_put(&names->bytes, name, strlen(name) + 1);
    names->count++;
    return ron_buf_check(&names->bytes, reterr);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a + 1, *(const char *const *)b + 1);
}

enum ron_err io_names_tell(const struct io_names *names, io_list_fn *fn, void *context,
                           struct ron_errinfo *reterr)
{
    const char **sorted;
    size_t at = 0;

    if (names->count == 0)
        return RON_ERR_OK;
    sorted = ron_mem_alloc_array(names->count, sizeof(*sorted));
    if (sorted == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "list of %zu names", names->count);
    for (size_t i = 0; i < names->count; i++) {
        sorted[i] = (const char *)names->bytes.data + at;
        at += 1 + strlen(sorted[i] + 1) + 1;
    }
    qsort(sorted, names->count, sizeof(*sorted), compare_names);
    for (size_t i = 0; i < names->count; i++)
        if (!fn(context, sorted[i] + 1, sorted[i][0] == 1))
            break;
    ron_mem_free(sorted);
    return RON_ERR_OK;
}
