/*
 * vfs_names.h - the entries of one directory, gathered before anyone is told: for the back ends.
 */
#ifndef RON_IO_VFS_NAMES_H
#define RON_IO_VFS_NAMES_H

#include "io/vfs.h"

struct io_names {
    struct ron_buf bytes; /* per entry: 1 if it is a directory, name, NUL */
    size_t count;
};
void io_names_init(struct io_names *names);
void io_names_fini(struct io_names *names);
/* RON_ERR_TOO_LARGE beyond IO_LIST_MAX, RON_ERR_NO_MEMORY. */
enum ron_err io_names_add(struct io_names *names, const char *name, bool is_dir,
                          struct ron_errinfo *reterr) RON_MUST_USE;
/* Tell fn all of them in ascending byte order, until it answers false. RON_ERR_NO_MEMORY. */
enum ron_err io_names_tell(const struct io_names *names, io_list_fn *fn, void *context,
                           struct ron_errinfo *reterr) RON_MUST_USE;

#endif
