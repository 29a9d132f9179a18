/*
 * bench_ledger_start.c - how long a ledger of a million accounts stands still for a snapshot, and
 * how long it takes to start: with a snapshot and the entries behind it, and from the log alone.
 *
 * Transfers in batches of 8,000, accounts drawn uniformly, on disk. Works in a directory below the
 * current one; what it leaves there is said at the end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/assert.h"
#include "base/mem.h"
#include "harness.h"
#include "io/vfs.h"
#include "ledger/service.h"
#include "rt/queue.h"
#include "rt/registry.h"

enum { BATCH = 8000, TEXT_SIZE = 24 };

static char dir[] = "bench-ledger-start-XXXXXX";
static uint32_t accounts_count = 1000000;
static struct ledger_id *accounts;
static struct ledger_op ops[BATCH];
static char texts[BATCH][TEXT_SIZE], names[BATCH][TEXT_SIZE];
static uint64_t ids_count;
static uint64_t random_state = 88172645463325252u;

static void must(enum ron_err err, const struct ron_errinfo *info)
{
    if (err == RON_ERR_OK)
        return;
    (void)fprintf(stderr, "bench_ledger_start: %s: %s\n", ron_err_name(err), info->message);
    exit(1);
}

static uint32_t draw(uint32_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state % bound);
}

static void give_id(uint32_t i)
{
    (void)snprintf(texts[i], TEXT_SIZE, "e%llu", (unsigned long long)ids_count++);
    ops[i].id_text = ron_slice_text(texts[i]);
    ops[i].id = ledger_entry_id(ron_u128_of(0), ops[i].id_text);
}

static void done(struct ledger_request *request, void *context)
{
    RON_MUST_ZERO(rt_queue_try_send(context, (struct rt_queue_item){request, 1}, NULL));
}

/* Hand in ops[0..count) and wait. */
static void commit(struct ledger_service *service, struct rt_queue *answers,
                   uint32_t count) RON_BLOCKS
{
    struct ledger_request request = {
        .command = {.kind = LEDGER_COMMAND_INGEST, .ops = ops, .ops_count = count},
        .size = count * RON_ENTRY_SIZE,
        .deadline = RT_DEADLINE_NEVER,
        .done = done,
        .context = answers,
    };
    struct ron_errinfo info = {0};
    void *item = NULL;

    must(ledger_submit(service, &request, &info), &info);
    must(rt_queue_recv(answers, RT_DEADLINE_NEVER, &item, &info), &info);
    must(request.outcome.err, &request.outcome.info);
}

static void open_accounts(struct ledger_service *service, struct rt_queue *answers) RON_BLOCKS
{
    for (uint32_t first = 0; first < accounts_count; first += BATCH) {
        const uint32_t count = accounts_count - first < BATCH ? accounts_count - first : BATCH;

        for (uint32_t i = 0; i < count; i++) {
            (void)snprintf(names[i], TEXT_SIZE, "acct:%015u", first + i);
            ops[i] = (struct ledger_op){.kind = LEDGER_MINT, .asset = 1, .amount = {1u << 30}};
            ops[i].credit_name = ron_slice_text(names[i]);
            ops[i].credit = ledger_account_id("", ops[i].credit_name);
            accounts[first + i] = ops[i].credit;
            give_id(i);
        }
        commit(service, answers, count);
    }
}

static void transfer(struct ledger_service *service, struct rt_queue *answers,
                     uint64_t count) RON_BLOCKS
{
    for (uint64_t sent = 0; sent < count; sent += BATCH) {
        for (uint32_t i = 0; i < BATCH; i++) {
            const uint32_t from = draw(accounts_count);

            ops[i] = (struct ledger_op){.kind = LEDGER_TRANSFER, .asset = 1, .amount = {1}};
            ops[i].debit = accounts[from];
            ops[i].credit = accounts[(from + 1 + draw(accounts_count - 1)) % accounts_count];
            give_id(i);
        }
        commit(service, answers, BATCH);
    }
}

static double process_cpu_s(void)
{
    struct timespec now;

    RON_MUST_ZERO(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now));
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct ledger_service *start(struct ledger_service_options *options,
                                    const char *title) RON_BLOCKS
{
    const struct ledger_engine_file_options file = {.vfs = options->snapshot.vfs, .dir = "log"};
    const uint64_t begin = bench_now_ns();
    const double begin_cpu = process_cpu_s();
    struct ledger_service *service = NULL;
    struct ron_errinfo info = {0};
    struct ledger_health health;
    uint64_t opened, end;

    must(ledger_engine_file_open(&file, &options->engine, &info), &info);
    opened = bench_now_ns();
    if (title != NULL && options->snapshot.entries == 1) /* not with one */
        options->snapshot.vfs = NULL;
    must(ledger_service_new(options, &service, &info), &info);
    must(ledger_service_start(service, &info), &info);
    must(ledger_service_await_start(service, RT_DEADLINE_NEVER, &info), &info);
    end = bench_now_ns();
    ledger_read_health(service, &health);
    must(health.damage.info.err, &health.damage.info);
    if (title != NULL)
        printf("%-24s %8.3f s (%.3f s of processor), of it the log's check %.3f s; %llu batches "
               "replayed\n",
               title, (double)(end - begin) / 1e9, process_cpu_s() - begin_cpu,
               (double)(opened - begin) / 1e9, (unsigned long long)health.replayed_batches);
    return service;
}

static void stop(struct ledger_service *service, struct ledger_engine *engine) RON_BLOCKS
{
    struct ron_errinfo info = {0};

    must(ledger_service_stop(service, NULL, &info), &info);
    (void)ledger_service_free(service);
    (void)ledger_engine_file_free(engine);
}

static void run(struct io_vfs *vfs, uint64_t before, uint64_t behind) RON_BLOCKS
{
    struct ledger_service_options options = ledger_service_defaults(1u << 20, 2);
    const struct rt_queue_options queue = {
        .name = "answers", .owner = "bench", .policy = "never full", .capacity = 1};
    struct rt_queue *answers = NULL;
    struct ledger_service *service;
    struct ron_errinfo info = {0};
    struct ledger_health health;

    options.drain_ms = 60000;
    options.lag_ms_max = 0;
    options.capacity.names_size_max = 64u << 20;
    options.snapshot.vfs = vfs;
    options.snapshot.dir = "snapshots";
    options.snapshot.entries = 0;
    options.snapshot.ms = 0;
    must(rt_queue_new(&queue, &answers, &info), &info);
    service = start(&options, NULL);
    open_accounts(service, answers);
    transfer(service, answers, before);
    for (unsigned i = 0; i < 3; i++) {
        const uint64_t begin = bench_now_ns();

        must(ledger_service_snapshot(service, RT_DEADLINE_NEVER, &info), &info);
        ledger_read_health(service, &health);
        printf("snapshot of %llu rows: pause %.3f ms, file of %.1f MB and Anchor after %.3f s\n",
               (unsigned long long)health.snapshots.rows, (double)health.snapshots.pause_ns / 1e6,
               (double)health.snapshots.size / 1e6, (double)(bench_now_ns() - begin) / 1e9);
        if (i < 2)
            transfer(service, answers, BATCH);
    }
    transfer(service, answers, behind);
    stop(service, options.engine);
    service = start(&options, "start with a snapshot");
    stop(service, options.engine);
    options.snapshot.entries = 1;
    service = start(&options, "start from the log");
    stop(service, options.engine);
    (void)rt_queue_free(answers);
}

int main(int argc, char **argv) RON_BLOCKS
{
    struct bench_options options;
    struct io_vfs *vfs = NULL;
    struct ron_errinfo info = {0};
    uint64_t before = 9000000, behind = 1000000;

    if (!bench_begin(argc, argv, &options))
        return 2;
    if (options.quick) {
        accounts_count = 20000;
        before = behind = 80000;
    }
    rt_init();
    accounts = ron_mem_alloc_array(accounts_count, sizeof(accounts[0]));
    RON_ASSERT(accounts != NULL);
    if (mkdtemp(dir) == NULL) {
        perror(dir);
        return 1;
    }
    must(io_vfs_posix_new(dir, true, &vfs, &info), &info);
    run(vfs, before, behind);
    vfs = io_vfs_free(vfs);
    accounts = ron_mem_free(accounts);
    printf("files are in %s\n", dir);
    return 0;
}
