/*
 * address.h - where to listen or connect: numeric addresses and Unix sockets, as text.
 */
#ifndef RON_IO_ADDRESS_H
#define RON_IO_ADDRESS_H

#include <sys/socket.h>

#include "base/bytes.h"

enum { IO_ADDRESS_TEXT_SIZE = 128 };

struct io_address {
    struct sockaddr_storage storage;
    socklen_t size;
};

/* "127.0.0.1:7700", "[::1]:0" or "unix:/run/ron.sock" (at most 100 bytes of path). Numbers only: a
 * name would block. RON_ERR_MALFORMED says what is missing. */
enum ron_err io_address_parse(const char *text, struct io_address *ret_address,
                              struct ron_errinfo *reterr) RON_MUST_USE;
void io_address_print(const struct io_address *address, char ret_text[static IO_ADDRESS_TEXT_SIZE]);

bool io_address_is_unix(const struct io_address *address);
/* 127.0.0.0/8, ::1 or a Unix socket. */
bool io_address_is_loopback(const struct io_address *address);
/* The 16 bytes of the address, IPv4 mapped into IPv6, and its port; zeros for a Unix socket. */
void io_address_bytes(const struct io_address *address, uint8_t ret_bytes[static 16],
                      uint16_t *ret_port);

#endif
