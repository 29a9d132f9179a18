/*
 * client_load.h - a load generator: one epoll loop, many connections, one request each at a time.
 *
 * Closed loop (rate 0): each connection asks again as soon as it has its answer. Open loop: one
 * request is due every 1/rate seconds whatever the server does; it waits for a free connection, and
 * its latency counts from when it was due, so that a stall is not hidden by the requests it kept
 * from being sent. What waits longer than a second of requests, or is not answered at the end, is a
 * drop.
 *
 * Replies are read by http_response.h; only those with Content-Length. Plain TCP and Unix sockets.
 */
#ifndef RON_IO_CLIENT_LOAD_H
#define RON_IO_CLIENT_LOAD_H

#include "base/bytes.h"
#include "rt/lock_classes.h"

enum {
    IO_LOAD_CONNECTIONS_MAX = 4096,
    IO_LOAD_SUB_BITS = 5, /* 32 buckets for each power of two: 3% */
    IO_LOAD_BUCKETS = (64 - IO_LOAD_SUB_BITS + 1) << IO_LOAD_SUB_BITS,
};

struct io_load_options {
    const char *url;  /* "http://127.0.0.1:7700" or "unix:/path" */
    const char *path; /* "/v1/x" */
    const char *media;
    struct ron_slice body; /* with one: POST, else GET; below 48 KiB */
    uint32_t connections_count;
    uint64_t rate_per_s; /* 0: closed loop */
    uint64_t duration_ns;
};

struct io_load_report {
    uint64_t duration_ns; /* as it was */
    uint64_t replies_count, bytes_in;
    uint64_t refused_count; /* of them, with a status other than 2xx */
    uint64_t dropped_count; /* due and not answered */
    uint64_t broken_count;  /* connections lost; each is made again */
    uint64_t cpu_ns;        /* of the generator's thread */
    uint64_t longest_ns;    /* the slowest reply */
    uint64_t latency_sum_ns;
    uint64_t histogram[IO_LOAD_BUCKETS];
};

/* The upper end of the bucket in which the share per_mille/1000 of all replies has come. */
uint64_t io_load_quantile_ns(const struct io_load_report *report, uint32_t per_mille);

/* Blocks for about duration_ns. RON_ERR_MALFORMED (url, path, body), RON_ERR_BUSY (descriptors),
 * RON_ERR_NO_MEMORY, RON_ERR_UPSTREAM_UNAVAILABLE (no connection at the start, or no HTTP). */
enum ron_err io_load_run(const struct io_load_options *options, struct io_load_report *ret_report,
                         struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* The bytes of a file, appended to buf, as a body for it: io/path_file.h. */
enum ron_err io_load_read_body(const char *path, struct ron_buf *buf,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
