/*
 * path_file.h - files that a person names: configuration, certificates, tokens, and lines of an
 * import.
 *
 * What the process owns lives in a vfs; these are paths from a command line, never written: small
 * ones are read whole, those of lines in bounded memory.
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

/* A file of any size, line by line. The members belong to the functions, but `total` and `done`. */
struct io_path_lines {
    uint64_t total; /* bytes of the file; 0: not known (a pipe) */
    uint64_t done;  /* of the lines so far */
    const char *path;
    uint8_t *bytes; /* NULL: not open */
    size_t line_max, capacity;
    size_t begin, seen, end; /* of bytes: what was not given yet; no end of a line before `seen` */
    int fd;
    bool at_end; /* of the file */
};

/* Zeros are none, for io_path_lines_close too. "-" is standard input. A line has at most line_max
 * bytes. Borrows path. RON_ERR_NO_MEMORY, else as io_path_read. */
enum ron_err io_path_lines_open(struct io_path_lines *lines, const char *path, size_t line_max,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The next line, without its LF, good until the next call; false: there is none. What is behind the
 * last LF is a line if it is not empty. RON_ERR_TOO_LARGE, RON_ERR_IO: no more calls. */
enum ron_err io_path_lines_next(struct io_path_lines *lines, struct ron_slice *ret_line,
                                bool *ret_there,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
void io_path_lines_close(struct io_path_lines *lines) RON_BLOCKS;

#endif
