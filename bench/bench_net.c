/*
 * bench_net.c - requests with a deferred reply: ron's server against nginx and a bare epoll loop.
 *
 * Each contestant runs in a process of its own; the generator (io/client_load.h) is this one. They
 * take turns, BENCH_RUNS each. Besides requests per second the table shows processor time of the
 * server per request: that is what a busy machine does not change. Then TLS 1.3 handshakes, one
 * after the other.
 */
#include "bench_net.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "harness.h"
#include "io/address.h"
#include "io/client_load.h"
#include "io/client_transport.h"
#include "io/tls_client.h"
#include "rt/registry.h"

enum { CONTESTANTS_MAX = 3 };

struct contestant {
    struct net_server server;
    double per_s[BENCH_RUNS], cpu_us[BENCH_RUNS], p99_us[BENCH_RUNS], generator[BENCH_RUNS];
    double longest_us;
};

static uint64_t cpu_of(pid_t pid)
{
    struct timespec time;
    clockid_t clock;

    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
        return 0;
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(const double values[BENCH_RUNS])
{
    double sorted[BENCH_RUNS];

    memcpy(sorted, values, sizeof(sorted));
    qsort(sorted, BENCH_RUNS, sizeof(sorted[0]), compare_doubles);
    return sorted[BENCH_RUNS / 2];
}

static double extreme(const double values[BENCH_RUNS], bool largest)
{
    double found = values[0];

    for (int i = 1; i < BENCH_RUNS; i++)
        if ((values[i] > found) == largest)
            found = values[i];
    return found;
}

static void must(enum ron_err err, const struct ron_errinfo *info)
{
    if (err == RON_ERR_OK)
        return;
    (void)fprintf(stderr, "bench_net: %s\n", info->message);
    exit(1);
}

static void measure(struct contestant *contestant, uint32_t connections_count, uint64_t duration_ns,
                    int run) RON_BLOCKS
{
    static struct io_load_report report;
    const struct io_load_options options = {.url = contestant->server.url,
                                            .path = "/later",
                                            .media = "application/json",
                                            .body = RON_SLICE("{\"amount\":\"1\",\"to\":\"b\"}"),
                                            .connections_count = connections_count,
                                            .duration_ns = duration_ns};
    struct ron_errinfo info = {0};
    uint64_t before_ns = cpu_of(contestant->server.pid);

    must(io_load_run(&options, &report, &info), &info);
    if (report.replies_count == 0 || report.refused_count > 0 || report.broken_count > 0) {
        (void)fprintf(stderr, "bench_net: %s: %llu replies, %llu refused, %llu broken\n",
                      contestant->server.name, (unsigned long long)report.replies_count,
                      (unsigned long long)report.refused_count,
                      (unsigned long long)report.broken_count);
        exit(1);
    }
    contestant->per_s[run] = (double)report.replies_count * 1e9 / (double)report.duration_ns;
    contestant->cpu_us[run] = (double)(cpu_of(contestant->server.pid) - before_ns) / 1e3 /
                              (double)report.replies_count;
    contestant->p99_us[run] = (double)io_load_quantile_ns(&report, 990) / 1e3;
    contestant->generator[run] = (double)report.cpu_ns * 100 / (double)report.duration_ns;
    if ((double)report.longest_ns / 1e3 > contestant->longest_us)
        contestant->longest_us = (double)report.longest_ns / 1e3;
}

static void print_table(const struct contestant *contestants, int count)
{
    (void)printf("%-18s %10s %21s %7s %12s %7s %9s %10s %6s\n", "", "requests/s", "min .. max",
                 "ratio", "server us", "ratio", "p99 us", "longest us", "gen.");
    for (int i = 0; i < count; i++) {
        const struct contestant *one = &contestants[i];

        (void)printf("%-18s %10.0f %9.0f .. %8.0f %7.2f %12.2f %7.2f %9.0f %10.0f %5.0f%%\n",
                     one->server.name, median(one->per_s), extreme(one->per_s, false),
                     extreme(one->per_s, true), median(contestants[0].per_s) / median(one->per_s),
                     median(one->cpu_us), median(one->cpu_us) / median(contestants[0].cpu_us),
                     median(one->p99_us), one->longest_us, median(one->generator));
    }
    (void)printf("ratios: ron against that one; above 1 ron is faster, or needs less\n");
}

static void compare(uint32_t connections_count, uint64_t duration_ns, const char *folder) RON_BLOCKS
{
    struct contestant contestants[CONTESTANTS_MAX] = {0};
    int count = 0;

    net_start_ron(&contestants[count++].server, NULL, NULL);
    net_start_bare(&contestants[count++].server);
    if (net_start_nginx(&contestants[count].server, folder))
        count++;
    else
        (void)printf("no nginx here: apt install nginx-light\n");
    for (int run = 0; run < BENCH_RUNS; run++)
        for (int i = 0; i < count; i++)
            measure(&contestants[(i + run) % count], connections_count, duration_ns, run);
    (void)printf("\ndeferred POST, %u connections, %d-byte replies, %d runs of %.1f s in turn\n",
                 connections_count, NET_REPLY_SIZE, BENCH_RUNS, (double)duration_ns / 1e9);
    print_table(contestants, count);
    for (int i = 0; i < count; i++)
        net_stop(&contestants[i].server);
}

/* ---- TLS ---- */

static void measure_handshakes(const char *folder, uint64_t duration_ns) RON_BLOCKS
{
    char certificate[NET_URL_SIZE];
    char key[NET_URL_SIZE];
    struct io_client_tls options = {.ca = certificate, .host = "localhost"};
    struct tls_client *tls = NULL;
    struct io_transport *transport;
    struct io_address address;
    struct net_server server;
    struct ron_errinfo info = {0};
    double per_s[BENCH_RUNS];
    double cpu_us[BENCH_RUNS];

    (void)snprintf(certificate, sizeof(certificate), "%s/cert.pem", folder);
    (void)snprintf(key, sizeof(key), "%s/key.pem", folder);
    net_start_ron(&server, certificate, key);
    must(io_address_parse(strstr(server.url, "127."), &address, &info), &info);
    must(tls_client_new(&options, &tls, &info), &info);
    must(io_transport_socket(&address, tls, &transport, &info), &info);
    for (int run = 0; run < BENCH_RUNS; run++) {
        uint64_t start_ns = bench_now_ns();
        uint64_t before_ns = cpu_of(server.pid);
        uint64_t count = 0;

        while (bench_now_ns() - start_ns < duration_ns) {
            struct io_wire *wire;

            must(io_wire_connect(transport, rt_deadline_after_ms(5000), &wire, &info), &info);
            (void)io_wire_close(wire);
            count++;
        }
        per_s[run] = (double)count * 1e9 / (double)(bench_now_ns() - start_ns);
        cpu_us[run] = (double)(cpu_of(server.pid) - before_ns) / 1e3 / (double)count;
    }
    (void)printf("\nTLS 1.3 handshakes, one after the other, ECDSA P-256, no tickets used: %.0f/s "
                 "(%.0f .. %.0f), server %.0f us each\n",
                 median(per_s), extreme(per_s, false), extreme(per_s, true), median(cpu_us));
    (void)io_transport_free(transport);
    net_stop(&server);
}

/* Run it to its end, its words unheard. */
static bool run_program(char *const *words)
{
    pid_t pid;
    int status;

    (void)fflush(NULL);
    pid = fork();
    if (pid < 0)
        return false;
    if (pid == 0) {
        int fd = open("/dev/null", O_RDWR);

        (void)dup2(fd, STDOUT_FILENO);
        (void)dup2(fd, STDERR_FILENO);
        (void)execvp(words[0], words);
        _exit(127);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool make_certificate(const char *folder)
{
    char line[1024];
    char *words[32] = {0};
    char *rest = line;

    (void)snprintf(line, sizeof(line),
                   "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
                   "-subj /CN=bench -addext subjectAltName=DNS:localhost -keyout %s/key.pem -out "
                   "%s/cert.pem",
                   folder, folder);
    for (size_t i = 0; i + 1 < RON_ARRAY_COUNT(words) && rest != NULL; i++)
        words[i] = strsep(&rest, " ");
    return run_program(words);
}

static void remove_folder(char *folder)
{
    char program[] = "rm";
    char option[] = "-rf";
    char *words[] = {program, option, folder, NULL};

    (void)run_program(words);
}

int main(int argc, char **argv) RON_BLOCKS
{
    char folder[] = "/tmp/bench_net.XXXXXX";
    struct bench_options options;
    uint64_t duration_ns;

    if (!bench_begin(argc, argv, &options))
        return 2;
    (void)signal(SIGPIPE, SIG_IGN);
    rt_init();
    if (mkdtemp(folder) == NULL)
        return 1;
    duration_ns = options.quick ? 200000000 : 2000000000;
    compare(64, duration_ns, folder);
    compare(256, duration_ns, folder);
    if (make_certificate(folder))
        measure_handshakes(folder, duration_ns / 2);
    else
        (void)printf("\nno openssl here: handshakes are not measured\n");
    remove_folder(folder);
    return 0;
}
