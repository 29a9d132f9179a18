/*
 * ledger_load.c - the generator of `./dev bench ledger` (bench/ledger.py runs it): what is common
 * to its ways of asking. One line of JSON comes out.
 */
#include "ledger_load.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/decimal.h"
#include "base/mem.h"
#include "harness.h"
#include "rt/registry.h"

enum { SAMPLES_MAX = 1 << 23, TOKEN_SIZE = 4096 };

struct slot {
    uint64_t count, sum_us, longest_us;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t *samples_us;
static uint32_t samples_count;
static uint64_t transfers_count, requests_count;
static uint64_t begin_ns, last_ns; /* asking begins; the last answer */
static uint64_t silence_ns;        /* the longest time without any answer */
static struct slot slots[LOAD_SLOTS_MAX];

void load_die(const char *text)
{
    (void)fprintf(stderr, "ledger_load: %s\n", text);
    exit(1);
}

void load_must(enum ron_err err, const struct ron_errinfo *info)
{
    if (err == RON_ERR_OK)
        return;
    (void)fprintf(stderr, "ledger_load: %s: %s\n", ron_err_name(err), info->message);
    exit(1);
}

/* Each start draws other ids: a ledger takes each of them once. */
void load_draw_init(struct load_draw *draw)
{
    static uint64_t streams_count;
    struct timespec now;

    RON_MUST_ZERO(clock_gettime(CLOCK_REALTIME, &now));
    draw->state = ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) *
                      UINT64_C(0x9e3779b97f4a7c15) +
                  ++streams_count * UINT64_C(0xbf58476d1ce4e5b9);
    draw->state |= 1;
    for (int i = 0; i < 16; i++)
        (void)load_draw_next(draw);
}

void load_account_name(uint32_t number, char ret_name[static LOAD_NAME_SIZE + 1])
{
    memcpy(ret_name, "acct:0000000000000000000", LOAD_NAME_SIZE + 1);
    for (int i = LOAD_NAME_SIZE - 1; number > 0; i--, number /= 10)
        ret_name[i] = (char)('0' + number % 10);
}

void load_begin(void)
{
    begin_ns = bench_now_ns();
}

void load_note(uint64_t asked_ns, uint64_t now_ns, uint32_t count)
{
    const uint64_t latency_us = (now_ns - asked_ns) / 1000;
    const uint64_t slot_index = (now_ns - begin_ns) / (LOAD_SLOT_MS * UINT64_C(1000000));
    struct slot *slot = &slots[slot_index < LOAD_SLOTS_MAX ? slot_index : LOAD_SLOTS_MAX - 1];

    RON_MUST_ZERO(pthread_mutex_lock(&mutex));
    if (samples_count < SAMPLES_MAX)
        samples_us[samples_count++] = latency_us > UINT32_MAX ? UINT32_MAX : (uint32_t)latency_us;
    requests_count++;
    transfers_count += count;
    slot->count += count;
    slot->sum_us += latency_us * count;
    slot->longest_us = latency_us > slot->longest_us ? latency_us : slot->longest_us;
    if (now_ns > last_ns) {
        if (last_ns != 0 && now_ns - last_ns > silence_ns)
            silence_ns = now_ns - last_ns;
        last_ns = now_ns;
    }
    RON_MUST_ZERO(pthread_mutex_unlock(&mutex));
}

static int compare_samples(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static void print_report(void)
{
    const double seconds = (double)(last_ns - begin_ns) / 1e9;
    const uint64_t slots_count = (last_ns - begin_ns) / (LOAD_SLOT_MS * UINT64_C(1000000)) + 1;
    struct timespec cpu;

    if (samples_count == 0)
        load_die("nothing was answered");
    qsort(samples_us, samples_count, sizeof(samples_us[0]), compare_samples);
    RON_MUST_ZERO(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu));
    (void)printf("{\"seconds\":%.6f,\"transfers\":%llu,\"requests\":%llu,\"p50_us\":%u,"
                 "\"p99_us\":%u,\"longest_us\":%u,\"silence_us\":%llu,\"cpu_s\":%.6f,\"slots\":[",
                 seconds, (unsigned long long)transfers_count, (unsigned long long)requests_count,
                 samples_us[samples_count / 2], samples_us[(uint64_t)samples_count * 99 / 100],
                 samples_us[samples_count - 1], (unsigned long long)silence_ns / 1000,
                 (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9);
    for (uint64_t i = 0; i < slots_count && i < LOAD_SLOTS_MAX; i++)
        (void)printf(
            "%s[%llu,%llu,%llu]", i == 0 ? "" : ",", (unsigned long long)slots[i].count,
            (unsigned long long)(slots[i].count == 0 ? 0 : slots[i].sum_us / slots[i].count),
            (unsigned long long)slots[i].longest_us);
    (void)printf("]}\n");
}

static uint64_t number(const char *text)
{
    uint64_t value = 0;

    if (ron_decimal_parse_u64(ron_slice_text(text), &value, NULL) != RON_ERR_OK)
        load_die("a number is wanted");
    return value;
}

static void read_token(struct load_options *options)
{
    static char text[TOKEN_SIZE];
    struct ron_errinfo info = {0};
    size_t size = fread(text, 1, sizeof(text) - 1, stdin);

    while (size > 0 && text[size - 1] == '\n')
        size--;
    text[size] = '\0';
    options->token_text = text;
    load_must(ron_secret_init(&options->token, ron_slice_of((const uint8_t *)text, size), &info),
              &info);
}

int main(int argc, char **argv) RON_BLOCKS
{
    struct load_options options = {0};
    const char *mode = argc > 1 ? argv[1] : "";

    (void)signal(SIGPIPE, SIG_IGN);
    rt_init();
    if (strcmp(mode, "verify") == 0 && argc == 3)
        return load_verify(argv[2]);
    if (argc != 12) {
        (void)fputs("usage: ledger_load open|oap|http|get URL ACCOUNTS BATCH CONNECTIONS INFLIGHT "
                    "MS TRANSFERS uniform|hot PATH PER_S < TOKEN\n"
                    "       ledger_load verify DATA\n",
                    stderr);
        return 2;
    }
    options.url = argv[2];
    options.accounts_count = (uint32_t)number(argv[3]);
    options.batch = (uint32_t)number(argv[4]);
    options.connections_count = (uint32_t)number(argv[5]);
    options.inflight_count = (uint32_t)number(argv[6]);
    options.duration_ns = number(argv[7]) * 1000000u;
    options.transfers_max = number(argv[8]);
    options.hot = strcmp(argv[9], "hot") == 0;
    options.path = argv[10];
    options.per_s = number(argv[11]);
    options.reads = strcmp(mode, "get") == 0;
    read_token(&options);
    samples_us = ron_mem_alloc_array(SAMPLES_MAX, sizeof(samples_us[0]));
    RON_ASSERT(samples_us != NULL);
    if (strcmp(mode, "open") == 0)
        load_oap_open(&options);
    else if (strcmp(mode, "oap") == 0)
        load_oap_run(&options);
    else
        load_http_run(&options);
    print_report();
    samples_us = ron_mem_free(samples_us);
    ron_secret_fini(&options.token);
    return 0;
}
