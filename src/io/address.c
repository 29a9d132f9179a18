/*
 * address.c - numeric addresses and Unix sockets as text. See address.h.
 */
#include "io/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/un.h>

#include "base/assert.h"
#include "base/decimal.h"

enum { UNIX_PATH_MAX_SIZE = 100, HOST_TEXT_SIZE = INET6_ADDRSTRLEN };

static enum ron_err parse_unix(const char *path, struct io_address *ret_address,
                               struct ron_errinfo *reterr)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    size_t size = strlen(path);

    if (size == 0 || size > UNIX_PATH_MAX_SIZE)
        return ron_fail(reterr, RON_ERR_MALFORMED, "unix: a path of 1 to %d bytes must follow",
                        UNIX_PATH_MAX_SIZE);
    memcpy(local.sun_path, path, size);
    memset(ret_address, 0, sizeof(*ret_address));
    memcpy(&ret_address->storage, &local, sizeof(local));
    ret_address->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + 1);
    return RON_ERR_OK;
}

/* Split "host:port" or "[host]:port"; the host without brackets. */
static bool split(const char *text, char host[static HOST_TEXT_SIZE], struct ron_slice *ret_port)
{
    const char *colon = strrchr(text, ':');
    size_t size = colon == NULL ? 0 : (size_t)(colon - text);

    if (size >= 2 && text[0] == '[' && text[size - 1] == ']') {
        text++;
        size -= 2;
    } else if (memchr(text, ':', size) != NULL) {
        return false; /* IPv6 without brackets */
    }
    if (size == 0 || size >= HOST_TEXT_SIZE)
        return false;
    memcpy(host, text, size);
    host[size] = '\0';
    *ret_port = ron_slice_text(colon + 1);
    return true;
}

enum ron_err io_address_parse(const char *text, struct io_address *ret_address,
                              struct ron_errinfo *reterr)
{
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct io_address address = {0};
    char host[HOST_TEXT_SIZE];
    struct ron_slice port_text;
    uint64_t port;

    if (strncmp(text, "unix:", 5) == 0)
        return parse_unix(text + 5, ret_address, reterr);
    if (!split(text, host, &port_text))
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "address must be like 127.0.0.1:7700, [::1]:7700 or unix:/path");
    if (ron_decimal_parse_u64(port_text, &port, NULL) != RON_ERR_OK || port > UINT16_MAX)
        return ron_fail(reterr, RON_ERR_MALFORMED, "address: the port must be from 0 to 65535");
    if (inet_pton(AF_INET, host, &four.sin_addr) == 1) {
        four.sin_port = htons((uint16_t)port);
        memcpy(&address.storage, &four, sizeof(four));
        address.size = sizeof(four);
    } else if (inet_pton(AF_INET6, host, &six.sin6_addr) == 1) {
        six.sin6_port = htons((uint16_t)port);
        memcpy(&address.storage, &six, sizeof(six));
        address.size = sizeof(six);
    } else {
        return ron_fail(reterr, RON_ERR_MALFORMED, "address: the host must be a numeric address");
    }
    *ret_address = address;
    return RON_ERR_OK;
}

bool io_address_is_unix(const struct io_address *address)
{
    return address->storage.ss_family == AF_UNIX;
}

void io_address_bytes(const struct io_address *address, uint8_t ret_bytes[static 16],
                      uint16_t *ret_port)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct sockaddr_in four;
    struct sockaddr_in6 six;

    memset(ret_bytes, 0, 16);
    *ret_port = 0;
    if (address->storage.ss_family == AF_INET) {
        memcpy(&four, &address->storage, sizeof(four));
        memcpy(ret_bytes, mapped, sizeof(mapped));
        memcpy(ret_bytes + 12, &four.sin_addr, 4);
        *ret_port = ntohs(four.sin_port);
    } else if (address->storage.ss_family == AF_INET6) {
        memcpy(&six, &address->storage, sizeof(six));
        memcpy(ret_bytes, &six.sin6_addr, 16);
        *ret_port = ntohs(six.sin6_port);
    }
}

bool io_address_is_loopback(const struct io_address *address)
{
    static const uint8_t one[16] = {[15] = 1};
    uint8_t bytes[16];
    uint16_t port;

    if (io_address_is_unix(address))
        return true;
    io_address_bytes(address, bytes, &port);
    if (memcmp(bytes, one, sizeof(one)) == 0)
        return true;
    return bytes[10] == 0xff && bytes[11] == 0xff && bytes[12] == 127 &&
           (address->storage.ss_family == AF_INET ||
            memcmp(bytes, (const uint8_t[10]){0}, 10) == 0);
}

void io_address_print(const struct io_address *address, char ret_text[static IO_ADDRESS_TEXT_SIZE])
{
    char host[HOST_TEXT_SIZE] = "?";
    uint8_t bytes[16];
    struct sockaddr_un local;
    uint16_t port;

    if (io_address_is_unix(address)) {
        memcpy(&local, &address->storage, sizeof(local));
        (void)snprintf(ret_text, IO_ADDRESS_TEXT_SIZE, "unix:%.*s", UNIX_PATH_MAX_SIZE,
                       local.sun_path);
        return;
    }
    io_address_bytes(address, bytes, &port);
    if (address->storage.ss_family == AF_INET) {
        (void)inet_ntop(AF_INET, bytes + 12, host, sizeof(host));
        (void)snprintf(ret_text, IO_ADDRESS_TEXT_SIZE, "%s:%u", host, port);
    } else {
        (void)inet_ntop(AF_INET6, bytes, host, sizeof(host));
        (void)snprintf(ret_text, IO_ADDRESS_TEXT_SIZE, "[%s]:%u", host, port);
    }
}
