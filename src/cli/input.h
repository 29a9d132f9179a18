/*
 * input.h - what a command is given on standard input.
 *
 * Secrets come this way, never on the command line, which every user of the machine can read.
 */
#ifndef RON_CLI_INPUT_H
#define RON_CLI_INPUT_H

#include "base/bytes.h"

/* All of standard input, at most size_max bytes (RON_ERR_TOO_LARGE beyond), into a buffer that is
 * not initialised yet. Its memory is taken in one piece, so no copy stays behind; the caller wipes
 * and ends it, on RON_ERR_OK only. RON_ERR_IO, RON_ERR_NO_MEMORY. */
enum ron_err cli_read_input(size_t size_max, struct ron_buf *ret_buf,
                            struct ron_errinfo *reterr) RON_MUST_USE;
/* Wipe and end such a buffer. */
void cli_wipe_input(struct ron_buf *buf);

#endif
