/*
 * bench_durable.c - the no-op durable loop: a request whose reply waits for one group sync.
 *
 * Each request appends 64 bytes to a log (io/log) and is answered once they are durable; nothing
 * else happens. That is the yardstick of every role that writes: what is slower than this is the
 * role's own. HTTP: one request a connection at a time; OAP/1: 64 in flight a connection
 * (io/oap_client), as roles use it. Server and generators share the process and its two cores.
 * First what the disk alone does: 4 KiB written and synced, one after the other.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "harness.h"
#include "io/client_load.h"
#include "io/log.h"
#include "io/oap_client.h"
#include "io/oap_server.h"
#include "io/server.h"
#include "rt/atomic.h"
#include "rt/queue.h"
#include "rt/registry.h"
#include "rt/supervisor.h"

enum {
    RECORD_SIZE = 64,
    WAITING_MAX = 8192, /* requests that wait for a sync; far more than are ever in flight */
    SAMPLES_MAX = 1 << 22,
    CLIENTS_MAX = 4,
};

static char dir[] = "bench-durable-XXXXXX";
static struct io_log *durable_log;
static struct rt_queue *late;
static struct rt_atomic_ptr waiting[WAITING_MAX]; /* requests, by index */
static uint64_t answered_index;                   /* the last one; of the log's task */

static void must(enum ron_err err, const struct ron_errinfo *info)
{
    if (err == RON_ERR_OK)
        return;
    (void)fprintf(stderr, "bench_durable: %s\n", info->message);
    exit(1);
}

/* ---- The server ---- */

static const uint8_t bytes[RECORD_SIZE] = {1, 2, 3};
static const struct ron_slice record = {bytes, sizeof(bytes)};

static void note(struct io_request *request, uint64_t index)
{
    RON_ASSERT(rt_atomic_load_ptr(&waiting[index % WAITING_MAX]) == NULL);
    rt_atomic_store_ptr(&waiting[index % WAITING_MAX], request);
}

static void append(void *context, struct io_request *request)
{
    struct ron_errinfo info = {0};
    enum ron_err err;
    uint64_t index;

    (void)context;
    err = io_log_append(durable_log, 1, &record, 1, &index, &info);
    if (err == RON_ERR_OK)
        note(request, index);
    else if (err == RON_ERR_STORAGE_BUSY)
        must(rt_queue_try_send(late, (struct rt_queue_item){request, 1}, &info), &info);
    else
        must(err, &info);
}

/* What the log has no room for at once (at the end of a segment): a loop must not wait. */
static enum ron_err append_late(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    void *request;
    uint64_t index;

    (void)argument;
    while (!rt_task_canceled(task)) {
        must(rt_queue_recv(late, RT_DEADLINE_NEVER, &request, &info), &info);
        must(io_log_append_until(durable_log, 1, &record, 1, rt_deadline_after_ms(20000), &index,
                                 &info),
             &info);
        note(request, index);
    }
    return RON_ERR_OK;
}

static void answer(void *context, uint64_t index)
{
    (void)context;
    while (answered_index < index) {
        struct rt_atomic_ptr *slot = &waiting[++answered_index % WAITING_MAX];
        struct io_request *request;

        while ((request = rt_atomic_load_ptr(slot)) == NULL)
            (void)sched_yield(); /* durable, and its appender is about to note it */
        rt_atomic_store_ptr(slot, NULL);
        io_reply(request, &(struct io_reply){.status = 200,
                                             .media = "application/json",
                                             .body = RON_SLICE("{\"durable\":true}")});
    }
}

static void broken(void *context, const struct ron_errinfo *info)
{
    (void)context;
    must(info->err, info);
}

static const struct io_route routes_table[] = {
    {HTTP_POST, "/durable", .name = "durable", .role = "bench", .summary = "",
     .replies = "application/json", .body_max = 4096, .media = "application/json",
     .flags = IO_ROUTE_WRITE, .handler = append},
};
static const struct io_oap_op ops[] = {
    {7,
     1,
     {.role = "bench", .name = "durable", .summary = "", .body_max = 4096, .handler = append}},
};

static struct rt_supervisor *supervisor;
static struct io_vfs *vfs;

static const char *start_server(void) RON_BLOCKS
{
    static const struct io_listener_options listener = {.address = "127.0.0.1:0"};
    struct rt_supervisor_options supervision = {.name = "bench", .owner = "bench", .tasks_max = 16};
    struct io_log_options logging = {.dir = "log",
                                     .name = "bench",
                                     .kind = 1,
                                     .segment_bytes = 512 << 20,
                                     .ahead_bytes = 128 << 20, /* zeros never hold it up */
                                     .ahead_bytes_per_s = 999000000,
                                     .record_bytes_max = 4096,
                                     .direct = true, /* as the ledger's */
                                     .on_durable = answer,
                                     .on_broken = broken};
    struct io_server_options options = {
        .listeners = &listener, .listeners_count = 1, .connections_max = 4096};
    struct io_log_recovery recovery;
    struct rt_queue_options queue = {
        .name = "late", .owner = "bench", .capacity = WAITING_MAX, .policy = "reject"};
    struct rt_task_options appending = {
        .kind = "late", .name = "late", .owner = "bench", .fn = append_late};
    struct ron_errinfo info = {0};
    struct io_routes *routes;
    struct io_server *server;
    struct rt_task *task;

    must(rt_supervisor_new(&supervision, &supervisor, &info), &info);
    must(io_vfs_posix_new(dir, false, &vfs, &info), &info);
    logging.vfs = vfs;
    logging.supervisor = options.supervisor = supervisor;
    must(io_log_open(&logging, &durable_log, &recovery, &info), &info);
    must(rt_queue_new(&queue, &late, &info), &info);
    must(rt_task_spawn(supervisor, &appending, &task, &info), &info);
    must(io_routes_new(&routes, &info), &info);
    must(io_routes_add(routes, routes_table, RON_ARRAY_COUNT(routes_table), NULL, &info), &info);
    must(io_oap_service_new(&options.oap, &info), &info);
    must(io_oap_service_add(options.oap, ops, RON_ARRAY_COUNT(ops), NULL, &info), &info);
    options.routes = routes;
    must(io_server_start(&options, &server, &info), &info);
    return io_server_url(server, 0);
}

/* ---- What one run gives ---- */

struct run {
    double per_s, p50_us, p99_us, longest_us, syncs_per_s, group;
};

static void count_log(struct run *run, const struct io_log_stats *before, double seconds)
{
    struct io_log_stats now = io_log_get_stats(durable_log);

    run->syncs_per_s = (double)(now.syncs_count - before->syncs_count) / seconds;
    run->group = (double)(now.records_count - before->records_count) /
                 (double)(now.groups_count - before->groups_count);
}

static struct run run_http(const char *url, uint32_t connections, uint64_t duration_ns) RON_BLOCKS
{
    static struct io_load_report report;
    const struct io_load_options options = {.url = url,
                                            .path = "/durable",
                                            .media = "application/json",
                                            .body = RON_SLICE("{\"amount\":\"1\",\"to\":\"b\"}"),
                                            .connections_count = connections,
                                            .duration_ns = duration_ns};
    struct io_log_stats before = io_log_get_stats(durable_log);
    struct ron_errinfo info = {0};
    struct run run;

    must(io_load_run(&options, &report, &info), &info);
    if (report.refused_count + report.broken_count > 0)
        must(ron_fail(&info, RON_ERR_INTERNAL, "%llu refused, %llu broken",
                      (unsigned long long)report.refused_count,
                      (unsigned long long)report.broken_count),
             &info);
    run.per_s = (double)report.replies_count * 1e9 / (double)report.duration_ns;
    run.p50_us = (double)io_load_quantile_ns(&report, 500) / 1e3;
    run.p99_us = (double)io_load_quantile_ns(&report, 990) / 1e3;
    run.longest_us = (double)report.longest_ns / 1e3;
    count_log(&run, &before, (double)report.duration_ns / 1e9);
    return run;
}

/* Each completion asks again, until the time is over. */
struct asker {
    struct oap_client *client;
    uint64_t asked_ns;
};
static uint64_t stop_ns;
static struct rt_atomic_u32 samples_count, running_count;
static uint32_t *samples_us;

static int compare_samples(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static void ask(struct asker *asker) RON_BLOCKS;

static void got(void *context, const struct oap_client_result *result) RON_BLOCKS
{
    struct asker *asker = context;
    uint64_t now_ns = bench_now_ns();
    uint32_t place = rt_atomic_add_u32(&samples_count, 1);

    if (result->err != RON_ERR_OK)
        must(result->err, result->info);
    RON_ASSERT(place < SAMPLES_MAX);
    samples_us[place] = (uint32_t)((now_ns - asker->asked_ns) / 1000);
    if (now_ns < stop_ns)
        ask(asker);
    else
        rt_atomic_sub_u32(&running_count, 1);
}

static void ask(struct asker *asker)
{
    static const struct oap_client_request request = {
        .app_proto = 7, .code = 1, .body = {(const uint8_t *)"0123456789012345", 16}};
    struct ron_errinfo info = {0};

    asker->asked_ns = bench_now_ns();
    must(oap_client_submit(asker->client, &request, rt_deadline_after_ms(20000), got, asker, &info),
         &info);
}

static struct run run_oap(const char *url, uint32_t connections, uint64_t duration_ns) RON_BLOCKS
{
    static struct asker askers[CLIENTS_MAX][OAP_INFLIGHT_MAX];
    struct oap_client_options options = {.url = url, .supervisor = supervisor};
    struct io_log_stats before = io_log_get_stats(durable_log);
    struct oap_client *clients[CLIENTS_MAX];
    struct ron_errinfo info = {0};
    uint64_t start_ns = bench_now_ns();
    struct run run;
    double seconds;
    size_t count;

    stop_ns = start_ns + duration_ns;
    rt_atomic_store_u32(&samples_count, 0);
    rt_atomic_store_u32(&running_count, connections * OAP_INFLIGHT_MAX);
    for (uint32_t i = 0; i < connections; i++) {
        must(oap_client_new(&options, &clients[i], &info), &info);
        for (uint32_t j = 0; j < OAP_INFLIGHT_MAX; j++) {
            askers[i][j].client = clients[i];
            ask(&askers[i][j]);
        }
    }
    while (rt_atomic_load_u32(&running_count) > 0)
        (void)usleep(1000);
    seconds = (double)(bench_now_ns() - start_ns) / 1e9;
    count_log(&run, &before, seconds);
    for (uint32_t i = 0; i < connections; i++)
        (void)oap_client_free(clients[i]);
    count = rt_atomic_load_u32(&samples_count);
    qsort(samples_us, count, sizeof(samples_us[0]), compare_samples);
    run.per_s = (double)count / seconds;
    run.p50_us = samples_us[count / 2];
    run.p99_us = samples_us[count * 99 / 100];
    run.longest_us = samples_us[count - 1];
    return run;
}

/* ---- The disk alone ---- */

static double raw_syncs_per_s(uint64_t duration_ns)
{
    static const uint8_t block[4096] = {1};
    char path[64];
    uint64_t start_ns;
    uint64_t count = 0;
    int fd;

    (void)snprintf(path, sizeof(path), "%s/raw", dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    RON_ASSERT(fd >= 0);
    for (int i = 0; i < 256; i++) /* in place: no metadata in what is measured */
        RON_ASSERT(pwrite(fd, block, sizeof(block), i * 4096) == (ssize_t)sizeof(block));
    RON_MUST_ZERO(fdatasync(fd));
    start_ns = bench_now_ns();
    while (bench_now_ns() - start_ns < duration_ns) {
        RON_ASSERT(pwrite(fd, block, sizeof(block), (off_t)(count % 256) * 4096) ==
                   (ssize_t)sizeof(block));
        RON_MUST_ZERO(fdatasync(fd));
        count++;
    }
    RON_MUST_ZERO(close(fd));
    RON_MUST_ZERO(unlink(path));
    return (double)count * 1e9 / (double)(bench_now_ns() - start_ns);
}

/* ---- All of it ---- */

static int compare_runs(const void *a, const void *b)
{
    const struct run *x = a;
    const struct run *y = b;

    return (x->per_s > y->per_s) - (x->per_s < y->per_s);
}

static void report(const char *name, struct run runs[BENCH_RUNS])
{
    const struct run *middle = &runs[BENCH_RUNS / 2];
    double longest_us = 0;

    qsort(runs, BENCH_RUNS, sizeof(runs[0]), compare_runs);
    for (int i = 0; i < BENCH_RUNS; i++)
        longest_us = runs[i].longest_us > longest_us ? runs[i].longest_us : longest_us;
    (void)printf("%-34s %8.0f %8.0f .. %7.0f %8.0f %8.0f %9.0f %8.0f %7.1f\n", name, middle->per_s,
                 runs[0].per_s, runs[BENCH_RUNS - 1].per_s, middle->p50_us, middle->p99_us,
                 longest_us, middle->syncs_per_s, middle->group);
}

/* For other generators: say where it listens, end with the input. */
static void serve(void) RON_BLOCKS
{
    (void)printf("api %s\n", start_server());
    (void)fflush(stdout);
    while (getchar() != EOF)
        ;
}

static int remove_dir(void)
{
    (void)fflush(NULL);
    (void)execlp("rm", "rm", "-rf", dir, (char *)NULL);
    return 1;
}

int main(int argc, char **argv) RON_BLOCKS
{
    static struct run runs[4][BENCH_RUNS];
    struct bench_options options;
    uint64_t duration_ns;
    const char *url;
    double raw;
    const bool serving = argc == 2 && strcmp(argv[1], "--serve") == 0;

    if (!serving && !bench_begin(argc, argv, &options))
        return 2;
    (void)signal(SIGPIPE, SIG_IGN);
    rt_init();
    if (mkdtemp(dir) == NULL)
        return 1;
    if (serving) {
        serve();
        return remove_dir();
    }
    samples_us = ron_mem_alloc_array(SAMPLES_MAX, sizeof(samples_us[0]));
    RON_ASSERT(samples_us != NULL);
    duration_ns = options.quick ? 200000000 : 2000000000;
    raw = raw_syncs_per_s(duration_ns);
    url = start_server();
    for (int i = 0; i < BENCH_RUNS; i++) {
        runs[0][i] = run_http(url, 64, duration_ns);
        runs[1][i] = run_oap(url, 1, duration_ns);
        runs[2][i] = run_http(url, 256, duration_ns);
        runs[3][i] = run_oap(url, 4, duration_ns);
    }
    (void)printf(
        "\ndurable no-op, 64-byte records, %d runs of %.1f s in turn; the disk alone: %.0f "
        "syncs/s of 4 KiB\n%-34s %8s %19s %8s %8s %9s %8s %7s\n",
        BENCH_RUNS, (double)duration_ns / 1e9, raw, "", "per s", "min .. max", "p50 us", "p99 us",
        "longest", "syncs/s", "group");
    report("HTTP, 64 connections", runs[0]);
    report("OAP/1, 1 connection, 64 in flight", runs[1]);
    report("HTTP, 256 connections", runs[2]);
    report("OAP/1, 4 connections, 64 each", runs[3]);
    return remove_dir();
}
