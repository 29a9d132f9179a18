/*
 * durable.h - the two small things done to files again and again, done so that they survive.
 */
#ifndef RON_IO_DURABLE_H
#define RON_IO_DURABLE_H

#include "io/vfs.h"

/* Make a directory and its parents; all names are durable when it returns. */
enum ron_err io_durable_dir(struct io_vfs *vfs, const char *dir,
                            struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Give a file these bytes, whole or not at all: written to `path`.new, synced, renamed, directory
 * synced. Its directory must be there. One caller at a time. */
enum ron_err io_durable_replace(struct io_vfs *vfs, const char *path, struct ron_slice bytes,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* The directory of a path, "" for the root. */
void io_dir_of(const char *path, char ret_dir[IO_PATH_MAX + 1]);

#endif
