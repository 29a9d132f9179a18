/*
 * log_fd.h - the log's usual output: a file descriptor. Part of the thread back end.
 */
#ifndef RON_RT_LOG_FD_H
#define RON_RT_LOG_FD_H

#include "rt/log.h"

/* An rt_log_write_fn; the context is a pointer to the descriptor (int), which must stay open. Waits
 * for a slow reader. RON_ERR_IO. */
enum ron_err rt_log_fd_write(void *context, struct ron_slice lines, struct ron_errinfo *reterr);
/* RT_LOG_TEXT for a terminal, else RT_LOG_JSON. */
enum rt_log_form rt_log_fd_form(int fd);

#endif
