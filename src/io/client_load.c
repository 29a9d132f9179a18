/*
 * client_load.c - the load generator. See client_load.h.
 */
#include "io/client_load.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "io/address.h"
#include "io/client_impl.h"
#include "io/path_file.h"
#include "rt/clock.h"
#include "rt/lock.h"

enum { EVENTS_MAX = 256, IN_SIZE = 16384, BODY_MAX = 48 << 10, DRAIN_MS = 1000, CONNECT_S = 1 };

struct load_conn {
    int fd;
    bool busy;       /* waits for a reply */
    uint64_t due_ns; /* of its request */
    size_t sent;     /* of the request */
    uint64_t skip;   /* bytes of the body still to come; the head is over */
    bool in_body;
    bool ok; /* status 2xx */
    size_t scanned, size;
    uint8_t bytes[IN_SIZE];
};
struct load {
    const struct io_load_options *options;
    struct io_load_report *report;
    struct io_address address;
    struct ron_buf request;
    int epoll_fd;
    struct load_conn *conns;
    uint32_t *free_conns; /* stack of indices */
    uint32_t free_count;
    uint64_t start_ns, end_ns;
    uint64_t due_count; /* open loop: requests that were begun or dropped */
    bool ending;
};

/* ---- Latencies ---- */

static size_t bucket_of(uint64_t value)
{
    unsigned top;

    if (value < UINT64_C(1) << IO_LOAD_SUB_BITS)
        return (size_t)value;
    top = 63 - (unsigned)__builtin_clzll(value) - IO_LOAD_SUB_BITS;
    return ((size_t)(top + 1) << IO_LOAD_SUB_BITS) +
           (size_t)((value >> top) & ((UINT64_C(1) << IO_LOAD_SUB_BITS) - 1));
}

static uint64_t bucket_end(size_t bucket)
{
    unsigned top = (unsigned)(bucket >> IO_LOAD_SUB_BITS);
    uint64_t low = bucket & ((UINT64_C(1) << IO_LOAD_SUB_BITS) - 1);

    if (top == 0)
        return low;
    low |= UINT64_C(1) << IO_LOAD_SUB_BITS;
    return ((low + 1) << (top - 1)) - 1;
}

uint64_t io_load_quantile_ns(const struct io_load_report *report, uint32_t per_mille)
{
    uint64_t wanted = report->replies_count * per_mille / 1000;
    uint64_t seen = 0;

    RON_ASSERT(per_mille <= 1000);
    for (size_t i = 0; i < IO_LOAD_BUCKETS; i++) {
        seen += report->histogram[i];
        if (seen > wanted || (seen == wanted && seen == report->replies_count))
            return bucket_end(i) < report->longest_ns ? bucket_end(i) : report->longest_ns;
    }
    return report->longest_ns;
}

static void note_reply(struct load *load, const struct load_conn *conn, uint64_t now_ns)
{
    struct io_load_report *report = load->report;
    uint64_t latency_ns = now_ns > conn->due_ns ? now_ns - conn->due_ns : 0;

    report->replies_count++;
    report->refused_count += !conn->ok;
    report->latency_sum_ns += latency_ns;
    report->histogram[bucket_of(latency_ns)]++;
    if (latency_ns > report->longest_ns)
        report->longest_ns = latency_ns;
}

static uint64_t cpu_ns(void)
{
    struct rusage usage;

    RON_MUST_ZERO(getrusage(RUSAGE_THREAD, &usage));
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * RT_NS_PER_S +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

/* ---- Connections ---- */

static enum ron_err open_conn(struct load *load, uint32_t index, struct ron_errinfo *reterr)
{
    struct load_conn *conn = &load->conns[index];
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.u32 = index};
    struct timeval patience = {.tv_sec = CONNECT_S};
    int one = 1;

    conn->fd = socket(load->address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (conn->fd < 0)
        return ron_fail_sys(reterr, RON_ERR_BUSY, errno, "socket: %s", strerror(errno));
    /* Blocking, but not for long: a lost connection is made again while the others wait. */
    (void)setsockopt(conn->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(conn->fd, (const struct sockaddr *)&load->address.storage, load->address.size) != 0)
        return ron_fail_sys(reterr, RON_ERR_UPSTREAM_UNAVAILABLE, errno, "connect: %s",
                            strerror(errno));
    (void)setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (epoll_ctl(load->epoll_fd, EPOLL_CTL_ADD, conn->fd, &event) != 0)
        return ron_fail_sys(reterr, RON_ERR_BUSY, errno, "epoll_ctl: %s", strerror(errno));
    conn->busy = false;
    conn->in_body = false;
    conn->size = 0;
    conn->scanned = 0;
    load->free_conns[load->free_count++] = index;
    return RON_ERR_OK;
}

static enum ron_err reopen(struct load *load, uint32_t index, struct ron_errinfo *reterr)
{
    struct load_conn *conn = &load->conns[index];

    load->report->broken_count++;
    load->report->dropped_count += conn->busy;
    (void)close(conn->fd);
    conn->fd = -1;
    return open_conn(load, index, reterr);
}

/* Send on; false: the connection is lost. */
static bool push(struct load *load, struct load_conn *conn)
{
    while (conn->busy && conn->sent < load->request.size) {
        ssize_t size = send(conn->fd, load->request.data + conn->sent,
                            load->request.size - conn->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (size < 0)
            return errno == EAGAIN || errno == EINTR;
        conn->sent += (size_t)size;
    }
    return true;
}

static enum ron_err begin(struct load *load, uint64_t due_ns, struct ron_errinfo *reterr)
{
    uint32_t index = load->free_conns[--load->free_count];
    struct load_conn *conn = &load->conns[index];

    conn->busy = true;
    conn->due_ns = due_ns;
    conn->sent = 0;
    return push(load, conn) ? RON_ERR_OK : reopen(load, index, reterr);
}

/* ---- Replies ---- */

/* Read a head from the buffer. *ret_more: it is not complete yet. */
static enum ron_err take_head(struct load_conn *conn, bool *ret_more, struct ron_errinfo *reterr)
{
    struct http_response response;
    size_t size = 0;
    enum http_scan scan = http_head_scan(ron_slice_of(conn->bytes, conn->size), &conn->scanned,
                                         &size);
    enum ron_err err;

    *ret_more = scan == HTTP_SCAN_MORE && conn->size < IN_SIZE;
    if (*ret_more)
        return RON_ERR_OK;
    if (scan != HTTP_SCAN_HEAD)
        return ron_fail(reterr, RON_ERR_UPSTREAM_UNAVAILABLE, "reply: not HTTP, or a large head");
    err = http_response_parse(ron_slice_of(conn->bytes, size), HTTP_POST, &response, reterr);
    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "reply");
    if (response.framing != HTTP_LENGTH)
        return ron_fail(reterr, RON_ERR_UPSTREAM_UNAVAILABLE, "reply: without Content-Length");
    conn->ok = response.status >= 200 && response.status < 300;
    conn->skip = response.content_length;
    conn->in_body = true;
    conn->scanned = 0;
    conn->size -= size;
    memmove(conn->bytes, conn->bytes + size, conn->size);
    return RON_ERR_OK;
}

/* As far as the bytes go. *ret_done: the reply is complete. */
static enum ron_err take_bytes(struct load_conn *conn, bool *ret_done, struct ron_errinfo *reterr)
{
    bool more = false;
    uint64_t now;
    enum ron_err err;

    *ret_done = false;
    if (!conn->in_body) {
        err = take_head(conn, &more, reterr);
        if (err != RON_ERR_OK || more)
            return err;
    }
    now = conn->size < conn->skip ? conn->size : conn->skip;
    conn->skip -= now;
    conn->size -= (size_t)now;
    memmove(conn->bytes, conn->bytes + now, conn->size);
    *ret_done = conn->skip == 0;
    if (*ret_done && conn->size > 0)
        return ron_fail(reterr, RON_ERR_UPSTREAM_UNAVAILABLE, "reply: bytes behind it");
    return RON_ERR_OK;
}

static enum ron_err receive(struct load *load, uint32_t index, struct ron_errinfo *reterr)
{
    struct load_conn *conn = &load->conns[index];

    for (;;) {
        ssize_t size = recv(conn->fd, conn->bytes + conn->size, IN_SIZE - conn->size, MSG_DONTWAIT);
        bool whole;
        bool done;
        enum ron_err err;

        if (size < 0 && (errno == EAGAIN || errno == EINTR))
            return RON_ERR_OK;
        if (size <= 0)
            return load->ending ? RON_ERR_OK : reopen(load, index, reterr);
        if (!conn->busy)
            return ron_fail(reterr, RON_ERR_UPSTREAM_UNAVAILABLE, "a reply nobody asked for");
        load->report->bytes_in += (uint64_t)size;
        whole = (size_t)size < IN_SIZE - conn->size; /* all that was there */
        conn->size += (size_t)size;
        err = take_bytes(conn, &done, reterr);
        if (err != RON_ERR_OK)
            return err;
        if (done) {
            uint64_t now_ns = rt_now_ns();

            note_reply(load, conn, now_ns);
            conn->busy = false;
            conn->in_body = false;
            load->free_conns[load->free_count++] = index;
            if (load->options->rate_per_s == 0 && now_ns < load->end_ns)
                err = begin(load, now_ns, reterr);
            if (err != RON_ERR_OK)
                return err;
        }
        if (whole)
            return RON_ERR_OK;
    }
}

/* ---- The run ---- */

/* When request number n is due. */
static uint64_t due_at(const struct load *load, uint64_t number)
{
    uint64_t rate = load->options->rate_per_s;

    return load->start_ns + number / rate * RT_NS_PER_S + number % rate * RT_NS_PER_S / rate;
}

/* Begin what is due; drop what waited for more than a second of requests. */
static enum ron_err begin_due(struct load *load, uint64_t now_ns, struct ron_errinfo *reterr)
{
    while (due_at(load, load->due_count) <= now_ns &&
           due_at(load, load->due_count) < load->end_ns) {
        enum ron_err err = RON_ERR_OK;

        if (load->free_count > 0)
            err = begin(load, due_at(load, load->due_count), reterr);
        else if (now_ns - due_at(load, load->due_count) > RT_NS_PER_S)
            load->report->dropped_count++;
        else
            return RON_ERR_OK;
        if (err != RON_ERR_OK)
            return err;
        load->due_count++;
    }
    return RON_ERR_OK;
}

static int wait_ms(const struct load *load, uint64_t now_ns)
{
    uint64_t until_ns = load->end_ns;

    if (load->options->rate_per_s != 0 && load->free_count > 0 &&
        due_at(load, load->due_count) < until_ns)
        until_ns = due_at(load, load->due_count);
    if (until_ns <= now_ns)
        return 0;
    /* Rounded down: the last part of a millisecond is spent asking, not oversleeping. */
    return (int)((until_ns - now_ns) / RT_NS_PER_MS);
}

static bool is_over(struct load *load, uint64_t now_ns)
{
    if (now_ns < load->end_ns)
        return false;
    if (!load->ending) {
        load->ending = true;
        load->report->duration_ns = now_ns - load->start_ns;
    }
    return load->free_count == load->options->connections_count ||
           now_ns >= load->end_ns + DRAIN_MS * RT_NS_PER_MS;
}

static enum ron_err run_loop(struct load *load, struct ron_errinfo *reterr)
{
    struct epoll_event events[EVENTS_MAX];
    uint64_t now_ns = load->start_ns;
    enum ron_err err = RON_ERR_OK;

    while (err == RON_ERR_OK && load->options->rate_per_s == 0 && load->free_count > 0)
        err = begin(load, now_ns, reterr);
    while (err == RON_ERR_OK && !is_over(load, now_ns)) {
        int count = epoll_wait(load->epoll_fd, events, EVENTS_MAX,
                               load->ending ? 1 : wait_ms(load, now_ns));

        RON_ASSERT(count >= 0 || errno == EINTR);
        for (int i = 0; i < count && err == RON_ERR_OK; i++) {
            struct load_conn *conn = &load->conns[events[i].data.u32];

            if ((events[i].events & EPOLLOUT) != 0 && !push(load, conn))
                err = reopen(load, events[i].data.u32, reterr);
            else if ((events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
                err = receive(load, events[i].data.u32, reterr);
        }
        now_ns = rt_now_ns();
        if (err == RON_ERR_OK && load->options->rate_per_s != 0 && !load->ending)
            err = begin_due(load, now_ns, reterr);
    }
    for (uint32_t i = 0; i < load->options->connections_count; i++)
        load->report->dropped_count += load->conns[i].busy;
    return err;
}

static enum ron_err prepare(struct load *load, struct ron_errinfo *reterr)
{
    const struct io_load_options *options = load->options;
    const struct io_client_request request = {.method = options->body.size > 0 ? HTTP_POST
                                                                               : HTTP_GET,
                                              .path = options->path,
                                              .media = options->media,
                                              .body = options->body};
    char host[IO_ADDRESS_TEXT_SIZE];
    enum ron_err err;

    if (options->body.size > BODY_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a body above %d bytes", BODY_MAX);
    io_address_print(&load->address, host);
    err = client_put_head(&load->request, &request,
                          io_address_is_unix(&load->address) ? "localhost" : host,
                          RT_DEADLINE_NEVER, reterr);
    if (err == RON_ERR_OK && !client_has_body(&request))
        err = ron_buf_append(&load->request, options->body.data, options->body.size, reterr);
    if (err != RON_ERR_OK)
        return err;
    load->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (load->epoll_fd < 0)
        return ron_fail_sys(reterr, RON_ERR_BUSY, errno, "epoll: %s", strerror(errno));
    load->conns = ron_mem_alloc_array(options->connections_count, sizeof(*load->conns));
    load->free_conns = ron_mem_alloc_array(options->connections_count, sizeof(*load->free_conns));
    if (load->conns == NULL || load->free_conns == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%u connections", options->connections_count);
    for (uint32_t i = 0; i < options->connections_count; i++)
        load->conns[i].fd = -1;
    for (uint32_t i = 0; i < options->connections_count && err == RON_ERR_OK; i++)
        err = open_conn(load, i, reterr);
    return err;
}

static void clean_up(struct load *load)
{
    for (uint32_t i = 0; load->conns != NULL && i < load->options->connections_count; i++)
        if (load->conns[i].fd >= 0)
            (void)close(load->conns[i].fd);
    if (load->epoll_fd >= 0)
        (void)close(load->epoll_fd);
    (void)ron_mem_free(load->conns);
    (void)ron_mem_free(load->free_conns);
    ron_buf_fini(&load->request);
}

enum ron_err io_load_read_body(const char *path, struct ron_buf *buf, struct ron_errinfo *reterr)
{
    return io_path_read(path, BODY_MAX, buf, reterr);
}

enum ron_err io_load_run(const struct io_load_options *options, struct io_load_report *ret_report,
                         struct ron_errinfo *reterr)
{
    struct load load = {.options = options, .report = ret_report, .epoll_fd = -1};
    bool secure;
    enum ron_err err = client_parse_url(options->url, &load.address, &secure, reterr);
    uint64_t cpu_before_ns;

    rt_assert_no_lock_held();
    RON_ASSERT(options->connections_count > 0);
    RON_ASSERT(options->connections_count <= IO_LOAD_CONNECTIONS_MAX);
    if (err != RON_ERR_OK)
        return err;
    if (secure)
        return ron_fail(reterr, RON_ERR_MALFORMED, "url: the generator speaks plain HTTP");
    memset(ret_report, 0, sizeof(*ret_report));
    ron_buf_init(&load.request, HTTP_HEAD_SIZE_MAX + BODY_MAX);
    err = prepare(&load, reterr);
    if (err == RON_ERR_OK) {
        cpu_before_ns = cpu_ns();
        load.start_ns = rt_now_ns();
        load.end_ns = load.start_ns + options->duration_ns;
        err = run_loop(&load, reterr);
        ret_report->cpu_ns = cpu_ns() - cpu_before_ns;
    }
    clean_up(&load);
    return err;
}
