/*
 * path_file.h - small files that a person names: configuration, certificates, tokens.
 *
 * What the process owns lives in a vfs; these are paths from a command line, read whole and never
 * written.
 */
#ifndef RON_IO_PATH_FILE_H
#define RON_IO_PATH_FILE_H

#include "base/bytes.h"
#include "rt/lock_classes.h"

/* Append the bytes of the file to buf. "-" is standard input. RON_ERR_NOT_FOUND, RON_ERR_FORBIDDEN,
 * RON_ERR_TOO_LARGE beyond size_max, RON_ERR_MALFORMED for a directory or device, RON_ERR_IO; the
 * message names the path. */
enum ron_err io_path_read(const char *path, size_t size_max, struct ron_buf *buf,
                          struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
