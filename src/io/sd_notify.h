/*
 * sd_notify.h - tell the service manager how the process is doing.
 *
 * The protocol of systemd: lines like READY=1 in one datagram to the socket that the environment
 * names. Without such a socket there is nobody to tell.
 */
#ifndef RON_IO_SD_NOTIFY_H
#define RON_IO_SD_NOTIFY_H

#include "base/compiler.h"

/* `address`: the value of NOTIFY_SOCKET, a path or `@name`; NULL or empty: does nothing. Never
 * waits: RON_ERR_BUSY when the manager does not read; RON_ERR_MALFORMED, RON_ERR_IO. */
enum ron_err io_sd_notify(const char *address, const char *lines,
                          struct ron_errinfo *reterr) RON_MUST_USE;

#endif
