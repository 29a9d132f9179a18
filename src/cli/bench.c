/*
 * bench.c - `ron bench http`: ask a server at a rate, or as fast as it answers, and print how long
 * it took.
 */
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"
#include "base/units.h"
#include "cli/command.h"
#include "io/client_load.h"

enum { URL_SIZE = 512 };

struct bench {
    struct io_load_options load;
    const char *body_path;
    char url[URL_SIZE];
};

static void print_usage(FILE *out)
{
    fputs("usage: ron bench http URL [--connections N] [--rate R] [--duration D] [--body FILE]\n"
          "                          [--path PATH]\n"
          "\n"
          "Asks GET, or POST with the bytes of FILE (- is standard input), over N connections\n"
          "(default 64) for D (default 10s), and prints replies per second and latencies.\n"
          "\n"
          "  --rate R   open loop: R requests a second are due whatever the server does, and a\n"
          "             latency counts from when its request was due. Without it each connection\n"
          "             asks again as soon as it is answered.\n"
          "\n"
          "URL is http://ADDRESS:PORT/PATH, or unix:/SOCKET with --path. Ends with 1 when a reply\n"
          "was refused, dropped or broken off.\n",
          out);
}

static int fail_usage(const char *message, const char *what)
{
    fprintf(stderr, "ron bench: %s%s\n", message, what);
    return CMD_USAGE;
}

static bool parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *ret_value)
{
    return ron_decimal_parse_u64(ron_slice_text(text), ret_value, NULL) == RON_ERR_OK &&
           *ret_value >= least && *ret_value <= most;
}

/* "http://a:1/b" is "http://a:1" and "/b". */
static bool split_url(struct bench *bench, const char *url)
{
    const char *scheme = strstr(url, "://");
    const char *slash = scheme == NULL ? NULL : strchr(scheme + 3, '/');
    size_t size = slash == NULL ? strlen(url) : (size_t)(slash - url);

    if (size >= URL_SIZE)
        return false;
    memcpy(bench->url, url, size);
    bench->url[size] = '\0';
    bench->load.url = bench->url;
    bench->load.path = slash == NULL ? "/" : slash;
    return true;
}

static int take_option(struct bench *bench, const char *name, const char *value)
{
    struct io_load_options *load = &bench->load;
    uint64_t number = 0;

    if (strcmp(name, "--connections") == 0) {
        if (!parse_number(value, 1, IO_LOAD_CONNECTIONS_MAX, &number))
            return fail_usage("--connections: a number from 1 to 4096, not ", value);
        load->connections_count = (uint32_t)number;
    } else if (strcmp(name, "--rate") == 0) {
        if (!parse_number(value, 1, 100000000, &load->rate_per_s))
            return fail_usage("--rate: requests per second, from 1 to 100000000, not ", value);
    } else if (strcmp(name, "--duration") == 0) {
        if (ron_duration_parse(ron_slice_text(value), &load->duration_ns, NULL) != RON_ERR_OK ||
            load->duration_ns == 0 || load->duration_ns > UINT64_C(86400000000000))
            return fail_usage("--duration: like 500ms, 10s or 2m, not ", value);
    } else if (strcmp(name, "--body") == 0) {
        bench->body_path = value;
    } else if (strcmp(name, "--path") == 0) {
        load->path = value;
    } else {
        return fail_usage("no option ", name);
    }
    return CMD_OK;
}

/* Nanoseconds as microseconds with one digit behind the point. */
static void print_time(const char *name, uint64_t value_ns)
{
    printf("%-12s %llu.%llu us\n", name, (unsigned long long)(value_ns / 1000),
           (unsigned long long)(value_ns % 1000 / 100));
}

static void print_report(const struct io_load_report *report)
{
    uint64_t replies = report->replies_count == 0 ? 1 : report->replies_count;
    uint64_t duration_ms = report->duration_ns / 1000000 + 1;

    printf("%-12s %llu in %llu ms, %llu per second\n", "replies",
           (unsigned long long)report->replies_count, (unsigned long long)duration_ms,
           (unsigned long long)(report->replies_count * 1000 / duration_ms));
    printf("%-12s %llu\n", "refused", (unsigned long long)report->refused_count);
    printf("%-12s %llu\n", "dropped", (unsigned long long)report->dropped_count);
    printf("%-12s %llu\n", "broken", (unsigned long long)report->broken_count);
    print_time("mean", report->latency_sum_ns / replies);
    print_time("p50", io_load_quantile_ns(report, 500));
    print_time("p99", io_load_quantile_ns(report, 990));
    print_time("p99.9", io_load_quantile_ns(report, 999));
    print_time("longest", report->longest_ns);
    printf("%-12s %llu%% of one processor\n", "generator",
           (unsigned long long)(report->cpu_ns / 10000 / duration_ms));
}

static int run(struct bench *bench) RON_BLOCKS
{
    static struct io_load_report report;
    struct ron_errinfo info = {0};
    struct ron_buf body;
    enum ron_err err = RON_ERR_OK;

    ron_buf_init(&body, 1 << 20);
    if (bench->body_path != NULL)
        err = io_load_read_body(bench->body_path, &body, &info);
    if (err == RON_ERR_OK) {
        bench->load.body = ron_buf_slice(&body);
        bench->load.media = body.size > 0 ? "application/json" : NULL;
        err = io_load_run(&bench->load, &report, &info);
    }
    ron_buf_fini(&body);
    if (err != RON_ERR_OK) {
        fprintf(stderr, "ron bench: %s\n", info.message);
        return CMD_FAILED;
    }
    print_report(&report);
    return report.refused_count + report.dropped_count + report.broken_count == 0 ? CMD_OK
                                                                                  : CMD_FAILED;
}

int cmd_bench(int argc, char **argv) RON_BLOCKS
{
    struct bench bench = {.load = {.connections_count = 64, .duration_ns = UINT64_C(10000000000)}};

    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        print_usage(stdout);
        return CMD_OK;
    }
    if (argc < 3 || strcmp(argv[1], "http") != 0) {
        print_usage(stderr);
        return CMD_USAGE;
    }
    if (strcmp(argv[2], "--help") == 0) {
        print_usage(stdout);
        return CMD_OK;
    }
    if (!split_url(&bench, argv[2]))
        return fail_usage("a URL that is too long", "");
    for (int i = 3; i < argc; i += 2) {
        int status;

        if (i + 1 == argc)
            return fail_usage("no value behind ", argv[i]);
        status = take_option(&bench, argv[i], argv[i + 1]);
        if (status != CMD_OK)
            return status;
    }
    return run(&bench);
}
