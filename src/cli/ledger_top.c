/*
 * ledger_top.c - `ron ledger top`: what a running ledger does, line by line.
 */
#include <string.h>

#include "base/units.h"
#include "cli/ledger_impl.h"
#include "rt/queue.h"
#include "rt/registry.h"

enum { QUEUES = 3 };

struct sample {
    uint64_t at_ns, seq, commits, backlog, rejects;
    uint64_t depths[QUEUES];
    uint64_t latency_sum_us, latency_count;
    char state[24];
};

struct top {
    const struct ledger_args *args;
    struct session api, admin;
    struct rt_queue *never; /* nothing is ever sent: waiting is all it is for */
};

/* --- Figures ---------------------------------------------------------------------------------- */

/* "12.345" as millionths; a figure may have any number of digits behind the point. */
static uint64_t parse_micros(struct ron_slice text)
{
    uint64_t value = 0;
    size_t places = 6;
    bool behind = false;

    for (size_t i = 0; i < text.size && places > 0; i++) {
        if (text.data[i] == '.' && !behind) {
            behind = true;
            continue;
        }
        if (text.data[i] < '0' || text.data[i] > '9')
            break;
        value = value * 10 + (uint64_t)(text.data[i] - '0');
        places -= behind;
    }
    for (; places > 0; places--)
        value *= 10;
    return value;
}

static bool begins(struct ron_slice line, const char *text)
{
    return line.size >= strlen(text) && memcmp(line.data, text, strlen(text)) == 0;
}

static bool holds(struct ron_slice line, const char *text)
{
    return memmem(line.data, line.size, text, strlen(text)) != NULL;
}

static void take_line(struct sample *sample, struct ron_slice line)
{
    static const char *const queues[QUEUES] = {"q=\"ingress\"", "q=\"preval\"", "q=\"commit\""};
    const uint8_t *space = memrchr(line.data, ' ', line.size);
    uint64_t micros;

    if (line.size == 0 || line.data[0] == '#' || space == NULL)
        return;
    micros = parse_micros(ron_slice_of(space + 1, (size_t)(line.data + line.size - space) - 1));
    if (begins(line, "ledger_commits_total"))
        sample->commits = micros / 1000000;
    else if (begins(line, "ledger_backlog_gauge"))
        sample->backlog = micros / 1000000;
    else if (begins(line, "ledger_rejects_total"))
        sample->rejects += micros / 1000000;
    else if (begins(line, "ledger_commit_latency_seconds_sum"))
        sample->latency_sum_us = micros;
    else if (begins(line, "ledger_commit_latency_seconds_count"))
        sample->latency_count = micros / 1000000;
    for (size_t i = 0; i < QUEUES; i++)
        if (begins(line, "queue_depth{") && holds(line, "role=\"ledger\"") &&
            holds(line, queues[i]))
            sample->depths[i] = micros / 1000000;
}

static int take(struct top *top, struct sample *sample) RON_BLOCKS
{
    struct ron_arena arena = {0};
    struct ron_errinfo info = {0};
    struct ron_slice text;
    struct row row;
    int status;

    *sample = (struct sample){.at_ns = rt_now_ns()};
    path_begin(&top->api, "/recovery");
    status = session_get(&top->api);
    if (status != CMD_OK)
        return status;
    if (ron_arena_init(&arena, 2 * session_body(&top->api).size + 64, &info) != RON_ERR_OK ||
        row_read(session_body(&top->api), &arena, &row, &info) != RON_ERR_OK) {
        status = ledger_failed(top->args, &info);
    } else {
        (void)row_u64(&row, "last_good_seq", &sample->seq);
        (void)snprintf(sample->state, sizeof(sample->state), "%.*s",
                       RON_SLICE_FMT(row_text(&row, "state")));
    }
    ron_arena_fini(&arena);
    path_begin(&top->admin, "/metrics");
    if (status == CMD_OK)
        status = session_get(&top->admin);
    if (status != CMD_OK)
        return status;
    text = session_body(&top->admin);
    while (text.size > 0) {
        const uint8_t *end = memchr(text.data, '\n', text.size);
        const size_t size = end == NULL ? text.size : (size_t)(end - text.data);

        take_line(sample, ron_slice_of(text.data, size));
        text = ron_slice_of(text.data + size, text.size - size);
        if (text.size > 0)
            text = ron_slice_of(text.data + 1, text.size - 1);
    }
    return CMD_OK;
}

/* --- Lines ------------------------------------------------------------------------------------ */

static uint64_t per_second(uint64_t before, uint64_t now, uint64_t ns)
{
    return now < before ? 0 : (now - before) * 1000 / (ns / 1000000 + 1);
}

static void print(const struct top *top, const struct sample *before, const struct sample *now,
                  bool first)
{
    const uint64_t ns = now->at_ns - before->at_ns;
    const uint64_t count = now->latency_count - before->latency_count;
    const unsigned long long latency_us =
        count == 0 ? 0 : (now->latency_sum_us - before->latency_sum_us) / count;

    if (first && !top->args->json)
        printf("%12s %10s %10s %8s %8s %8s %8s %10s %9s  %s\n", "SEQ", "ENTRIES/S", "BATCHES/S",
               "INGRESS", "PREVAL", "COMMIT", "BACKLOG", "REJECTS/S", "COMMIT_US", "STATE");
    printf(top->args->json
               ? "{\"seq\":%llu,\"entries_per_s\":%llu,\"batches_per_s\":%llu,\"ingress\":%llu,"
                 "\"preval\":%llu,\"commit\":%llu,\"backlog\":%llu,\"rejects_per_s\":%llu,"
                 "\"commit_us\":%llu,\"state\":\"%s\"}\n"
               : "%12llu %10llu %10llu %8llu %8llu %8llu %8llu %10llu %9llu  %s\n",
           (unsigned long long)now->seq, (unsigned long long)per_second(before->seq, now->seq, ns),
           (unsigned long long)per_second(before->commits, now->commits, ns),
           (unsigned long long)now->depths[0], (unsigned long long)now->depths[1],
           (unsigned long long)now->depths[2], (unsigned long long)now->backlog,
           (unsigned long long)per_second(before->rejects, now->rejects, ns), latency_us,
           now->state);
    (void)fflush(stdout);
}

static int run(struct top *top, uint64_t interval_ns, uint64_t lines) RON_BLOCKS
{
    struct sample before, now;
    int status = take(top, &before);

    for (uint64_t i = 0; status == CMD_OK && (lines == 0 || i < lines) && !ferror(stdout); i++) {
        void *item;

        /* Ends by its deadline, always. */
        if (rt_queue_recv(top->never, rt_deadline_after_ns(interval_ns), &item, NULL) == RON_ERR_OK)
            break;
        status = take(top, &now);
        if (status == CMD_OK)
            print(top, &before, &now, i == 0);
        before = now;
    }
    return status;
}

int ledger_top(const struct ledger_args *args)
{
    const struct rt_queue_options options = {
        .name = "never", .owner = "cli", .policy = "nothing is sent", .capacity = 1};
    struct top top = {.args = args};
    struct ron_errinfo info = {0};
    uint64_t interval_ns = RT_NS_PER_S, lines;
    int status;

    if (!ledger_number(args, "count", args->count, 0, 1, UINT64_MAX, &lines))
        return CMD_USAGE;
    if (args->interval != NULL &&
        (ron_duration_parse(ron_slice_text(args->interval), &interval_ns, NULL) != RON_ERR_OK ||
         interval_ns == 0 || interval_ns > 3600 * RT_NS_PER_S))
        return ledger_usage(args, "--interval: like 500ms or 2s");
    rt_init();
    status = session_open(&top.api, args);
    if (status == CMD_OK)
        status = session_open_admin(&top.admin, args);
    if (status == CMD_OK && rt_queue_new(&options, &top.never, &info) != RON_ERR_OK)
        status = ledger_failed(args, &info);
    if (status == CMD_OK)
        status = run(&top, interval_ns, lines);
    (void)rt_queue_free(top.never);
    if (top.admin.args != NULL)
        session_close(&top.admin);
    session_close(&top.api);
    return status;
}
