/*
 * http_client.c - the client for tests, told by lines on standard input.
 *
 *     http_client URL [--ca FILE --host NAME] [--cert FILE --key FILE] [--conns N] [--retries N]
 *                 [--attempt-ms N] [--idle-ms N] [--body-max N] [--breaker-ms N]
 *
 *     METHOD PATH DEADLINE_MS [KEY [BODY]]   prints `STATUS TRIES BODY-SIZE BODY` or `CODE MESSAGE`
 *     &METHOD ...                            the same on a thread of its own, printed when it ends
 *     cancel | stats                         prints `canceled`; the counters
 *
 * KEY `-` is none. Bodies are printed up to 200 bytes. The token is `good` where PATH is /secret.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/decimal.h"
#include "io/client.h"
#include "rt/registry.h"

enum { LINE_SIZE = 4096, THREADS_MAX = 64, SHOWN_MAX = 200 };

static struct io_client *client;
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

static uint64_t number(const char *text)
{
    uint64_t value;

    if (text == NULL || ron_decimal_parse_u64(ron_slice_text(text), &value, NULL) != RON_ERR_OK)
        exit(2);
    return value;
}

static enum http_method method_of(const char *name)
{
    for (int i = 0; i < HTTP_OTHER; i++)
        if (strcmp(name, http_method_name((enum http_method)i)) == 0)
            return (enum http_method)i;
    exit(2);
}

/* The next word, or NULL. */
static char *take_word(char **rest)
{
    char *word = strsep(rest, " ");

    return word == NULL || *word == '\0' ? NULL : word;
}

static void print_reply(enum ron_err err, const struct io_client_reply *reply,
                        const struct ron_errinfo *info)
{
    size_t shown = reply->body.size < SHOWN_MAX ? reply->body.size : SHOWN_MAX;

    pthread_mutex_lock(&output);
    if (err == RON_ERR_OK)
        printf("%d %u %zu %.*s\n", reply->head.status, reply->tries_count, reply->body.size,
               (int)shown, (const char *)reply->body.data);
    else
        printf("%s %s\n", ron_err_name(err), info->message);
    fflush(stdout);
    pthread_mutex_unlock(&output);
}

static void obey_call(char *line) RON_BLOCKS
{
    struct io_client_request request = {.method = method_of(take_word(&line))};
    struct ron_secret token = {0};
    struct io_client_reply reply;
    struct ron_errinfo info = {0};
    uint64_t deadline_ms;
    char *key;
    enum ron_err err;

    request.path = take_word(&line);
    deadline_ms = number(take_word(&line));
    key = take_word(&line);
    if (key != NULL && strcmp(key, "-") != 0)
        request.idempotency_key = key;
    if (line != NULL) {
        request.body = ron_slice_text(line);
        request.media = "application/json";
    }
    if (strcmp(request.path, "/secret") == 0) {
        RON_ASSERT(ron_secret_init(&token, RON_SLICE("good"), NULL) == RON_ERR_OK);
        request.token = &token;
    }
    io_client_reply_init(&reply);
    err = io_client_call(client, &request, rt_deadline_after_ms(deadline_ms), &reply, &info);
    print_reply(err, &reply, &info);
    io_client_reply_fini(&reply);
    ron_secret_fini(&token);
}

static void *call_thread(void *argument) RON_BLOCKS
{
    obey_call(argument);
    return NULL;
}

static void print_stats(void)
{
    static const char *const states[] = {"closed", "open", "half-open"};
    struct io_client_stats stats = io_client_get_stats(client);

    printf("calls %llu tries %llu retries %llu stale %llu timeouts %llu connects %llu reused %llu "
           "refused %llu idle %u used %u breaker %s\n",
           (unsigned long long)stats.calls_count, (unsigned long long)stats.tries_count,
           (unsigned long long)stats.retries_count, (unsigned long long)stats.stale_count,
           (unsigned long long)stats.timeouts_count, (unsigned long long)stats.connects_count,
           (unsigned long long)stats.reused_count, (unsigned long long)stats.refused_count,
           stats.idle_count, stats.used_count, states[stats.breaker]);
    fflush(stdout);
}

static void read_options(char **argv, struct io_client_options *options, struct io_client_tls *tls,
                         struct rt_breaker_policy *breaker)
{
    for (char **at = argv + 2; *at != NULL; at++) {
        if (strcmp(*at, "--ca") == 0)
            tls->ca = *++at;
        else if (strcmp(*at, "--host") == 0)
            tls->host = *++at;
        else if (strcmp(*at, "--cert") == 0)
            tls->certificate = *++at;
        else if (strcmp(*at, "--key") == 0)
            tls->key = *++at;
        else if (strcmp(*at, "--conns") == 0)
            options->connections_max = (uint32_t)number(*++at);
        else if (strcmp(*at, "--retries") == 0)
            options->retries_max = (uint32_t)number(*++at);
        else if (strcmp(*at, "--attempt-ms") == 0)
            options->attempt_ms = (uint32_t)number(*++at);
        else if (strcmp(*at, "--idle-ms") == 0)
            options->idle_ms = (uint32_t)number(*++at);
        else if (strcmp(*at, "--body-max") == 0)
            options->body_max = number(*++at);
        else if (strcmp(*at, "--breaker-ms") == 0)
            breaker->open_ns = number(*++at) * RT_NS_PER_MS;
        else
            exit(2);
    }
    options->tls = tls->ca == NULL ? NULL : tls;
}

int main(int argc, char **argv) RON_BLOCKS
{
    static char lines[THREADS_MAX][LINE_SIZE];
    static const struct rt_backoff_policy backoff = {
        .base_ns = RT_NS_PER_MS, .jitter_ns = RT_NS_PER_MS, .cap_ns = 20 * RT_NS_PER_MS};
    struct rt_breaker_policy breaker = {
        .failures_max = 5, .probes_count = 1, .window_ns = 600 * RT_NS_PER_S, .open_ns = 1};
    struct io_client_options options = {.backoff = &backoff, .breaker = &breaker};
    struct io_client_tls tls = {0};
    struct ron_errinfo info = {0};
    pthread_t threads[THREADS_MAX];
    size_t threads_count = 0;
    char line[LINE_SIZE];

    if (argc < 2)
        return 2;
    signal(SIGPIPE, SIG_IGN);
    rt_init();
    options.url = argv[1];
    read_options(argv, &options, &tls, &breaker);
    if (io_client_new(&options, &client, &info) != RON_ERR_OK) {
        printf("%s %s\n", ron_err_name(info.err), info.message);
        return 1;
    }
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, "stats") == 0) {
            print_stats();
        } else if (strcmp(line, "cancel") == 0) {
            io_client_cancel(client);
        } else if (line[0] == '&') {
            RON_ASSERT(threads_count < THREADS_MAX);
            memcpy(lines[threads_count], line + 1, sizeof(line) - 1);
            if (pthread_create(&threads[threads_count], NULL, call_thread, lines[threads_count]) !=
                0)
                return 1;
            threads_count++;
        } else {
            obey_call(line);
        }
    }
    for (size_t i = 0; i < threads_count; i++)
        pthread_join(threads[i], NULL);
    client = io_client_free(client);
    puts("ended");
    return 0;
}
