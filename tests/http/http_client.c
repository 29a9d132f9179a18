/*
 * http_client.c - the client for tests, told by lines on standard input.
 *
 *     http_client URL [--ca FILE --host NAME] [--cert FILE --key FILE] [--conns N] [--retries N]
 *                 [--attempt-ms N] [--idle-ms N] [--body-max N] [--breaker-ms N] [--fly N]
 *
 *     METHOD PATH DEADLINE_MS [KEY [BODY]]   prints `STATUS TRIES BODY-SIZE BODY` or `CODE MESSAGE`
 *     &METHOD ...                            the same on a thread of its own, printed when it ends
 *     cancel | stats                         prints `canceled`; the counters
 *
 * --fly: calls are flights (io/flights.h), of which N may be under way, moved by one thread.
 * KEY `-` is none. Bodies are printed up to 200 bytes. The token is `good` where PATH is /secret.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/decimal.h"
#include "io/flights.h"
#include "rt/registry.h"

enum { LINE_SIZE = 4096, THREADS_MAX = 256, SHOWN_MAX = 200 };

static struct io_client *client;
static struct io_flights *flights; /* NULL: not asked for */
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
    pthread_mutex_lock(&output);
    if (err == RON_ERR_OK)
        printf("%d %u %zu %.*s\n", reply->head.status, reply->tries_count, reply->body.size,
               reply->body.size < SHOWN_MAX ? (int)reply->body.size : SHOWN_MAX,
               (const char *)reply->body.data);
    else
        printf("%s %s\n", ron_err_name(err), info->message);
    fflush(stdout);
    pthread_mutex_unlock(&output);
}

/* ---- Flights ---- */

struct wait {
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool is_over;
};

static enum io_flight_next fly_ready(struct io_flight *flight)
{
    (void)flight;
    return IO_FLIGHT_SEND;
}

static enum io_flight_next fly_done(struct io_flight *flight, enum ron_err err,
                                    const struct ron_errinfo *info,
                                    const struct io_client_reply *reply)
{
    struct wait *wait = flight->context;

    print_reply(err, reply, info);
    pthread_mutex_lock(&wait->lock);
    wait->is_over = true;
    pthread_cond_signal(&wait->over);
    pthread_mutex_unlock(&wait->lock);
    return IO_FLIGHT_OVER;
}

static void fly(const struct io_client_request *request, uint64_t deadline_ms)
{
    struct wait wait = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    struct io_flight flight = {.request = *request,
                               .deadline = rt_deadline_after_ms(deadline_ms),
                               .ready = fly_ready,
                               .done = fly_done,
                               .context = &wait};
    struct ron_errinfo info = {0};
    enum ron_err err = io_flights_submit(flights, &flight, &info);

    if (err != RON_ERR_OK) {
        print_reply(err, NULL, &info);
        return;
    }
    pthread_mutex_lock(&wait.lock);
    while (!wait.is_over)
        pthread_cond_wait(&wait.over, &wait.lock);
    pthread_mutex_unlock(&wait.lock);
}

static void *fly_thread(void *argument) RON_BLOCKS
{
    (void)argument;
    io_flights_run(flights);
    return NULL;
}

/* ---- Calls ---- */

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
    if (flights != NULL) {
        fly(&request, deadline_ms);
        ron_secret_fini(&token);
        return;
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

    if (flights != NULL) {
        const struct io_flights_stats flown = io_flights_get_stats(flights);

        printf("tries %llu retries 0 stale %llu connects %llu reused %llu now %u peak %u breaker "
               "closed\n",
               (unsigned long long)flown.tries_count, (unsigned long long)flown.stale_count,
               (unsigned long long)flown.connects_count,
               (unsigned long long)(flown.tries_count - flown.connects_count), flown.flights_count,
               flown.flights_peak);
        fflush(stdout);
        return;
    }
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
                         struct rt_breaker_policy *breaker, uint32_t *flights_max)
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
        else if (strcmp(*at, "--fly") == 0)
            *flights_max = (uint32_t)number(*++at);
        else
            exit(2);
    }
    options->tls = tls->ca == NULL ? NULL : tls;
}

static enum ron_err open_flights(const struct io_client_options *options, uint32_t flights_max,
                                 pthread_t *ret_thread, struct ron_errinfo *reterr)
{
    const struct io_flights_options wanted = {.url = options->url,
                                              .tls = options->tls,
                                              .flights_max = flights_max,
                                              .connections_max = options->connections_max,
                                              .idle_ms = options->idle_ms,
                                              .body_max = options->body_max};
    enum ron_err err = io_flights_new(&wanted, &flights, reterr);

    if (err == RON_ERR_OK && pthread_create(ret_thread, NULL, fly_thread, NULL) != 0)
        exit(1);
    return err;
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
    uint32_t flights_max = 0;
    pthread_t pilot;
    char line[LINE_SIZE];

    if (argc < 2)
        return 2;
    signal(SIGPIPE, SIG_IGN);
    rt_init();
    options.url = argv[1];
    read_options(argv, &options, &tls, &breaker, &flights_max);
    if (io_client_new(&options, &client, &info) != RON_ERR_OK ||
        (flights_max > 0 && open_flights(&options, flights_max, &pilot, &info) != RON_ERR_OK)) {
        printf("%s %s\n", ron_err_name(info.err), info.message);
        return 1;
    }
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, "stats") == 0) {
            print_stats();
        } else if (strcmp(line, "cancel") == 0) {
            io_client_cancel(client);
            if (flights != NULL)
                io_flights_cancel(flights);
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
    if (flights != NULL) {
        io_flights_cancel(flights);
        pthread_join(pilot, NULL);
        flights = io_flights_free(flights);
    }
    client = io_client_free(client);
    puts("ended");
    return 0;
}
