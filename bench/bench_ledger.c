/*
 * bench_ledger.c - the pipeline alone, in one process: transfers a second until they are durable,
 * in memory and on disk. The ledger as a server is bench/ledger.py.
 *
 * Transfers in batches, as the binary form brings them: random ids, accounts drawn uniformly or one
 * hot pair. Everything is on, and every batch is answered after its sync. Afterwards the sum of all
 * balances is compared with what was issued. Works in a directory below the current one and removes
 * it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "harness.h"
#include "ledger/core_batch.h"
#include "ledger/core_frame.h"
#include "ledger/role.h"
#include "rt/queue.h"
#include "rt/registry.h"

enum { IN_FLIGHT_MAX = 64, NAME_SIZE = 24 };

static char dir[] = "bench-ledger-XXXXXX";
static uint32_t accounts_count = 1000000;
static struct ledger_id *accounts;
static uint64_t random_state = 88172645463325252u;

static void must(enum ron_err err, const struct ron_errinfo *info)
{
    if (err == RON_ERR_OK)
        return;
    (void)fprintf(stderr, "bench_ledger: %s: %s\n", ron_err_name(err), info->message);
    exit(1);
}

static uint64_t draw(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void account_name(uint32_t number, char ret_name[static NAME_SIZE + 1])
{
    (void)snprintf(ret_name, NAME_SIZE + 1, "acct:%019u", number);
}

/* One request with room for a batch. */
struct job {
    struct ledger_request request;
    struct ledger_op *ops;
    char *names;
    struct rt_queue *done;
    uint32_t count;
};

static void job_init(struct job *job, uint32_t batch)
{
    job->ops = ron_mem_alloc_array(batch, sizeof(job->ops[0]));
    job->names = ron_mem_alloc_array(batch, NAME_SIZE + 1);
    RON_ASSERT(job->ops != NULL);
    RON_ASSERT(job->names != NULL);
}

static void job_fini(struct job *job)
{
    job->ops = ron_mem_free(job->ops);
    job->names = ron_mem_free(job->names);
}

static void give_id(struct job *job, uint32_t i)
{
    struct ledger_op *op = &job->ops[i];

    ron_store_le64(op->id.bytes, draw());
    ron_store_le64(op->id.bytes + 8, draw());
    op->id_text = ron_slice_of(op->id.bytes, 0); /* as a binary entry: any 16 bytes */
}

static void fill_mints(struct job *job, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct ledger_op *op = &job->ops[i];
        char *name = job->names + i * (NAME_SIZE + 1);

        account_name(first + i, name);
        *op = (struct ledger_op){.kind = LEDGER_MINT, .asset = 1, .amount = {1u << 30}};
        op->credit_name = ron_slice_text(name);
        op->credit = ledger_account_id("", op->credit_name);
        accounts[first + i] = op->credit;
        give_id(job, i);
    }
    job->count = count;
}

static void fill_transfers(struct job *job, uint32_t count, bool hot)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t from = hot ? i % 2 : (uint32_t)(draw() % accounts_count);
        uint32_t to = hot ? 1 - i % 2 : (uint32_t)(draw() % accounts_count);
        struct ledger_op *op = &job->ops[i];

        to = to == from ? (from + 1) % accounts_count : to;
        *op = (struct ledger_op){.kind = LEDGER_TRANSFER, .asset = 1, .amount = {1}};
        op->debit = accounts[from];
        op->credit = accounts[to];
        give_id(job, i);
    }
    job->count = count;
}

/* ---- The pipeline ---- */

static void done(struct ledger_request *request, void *context)
{
    struct job *job = context;

    (void)request;
    RON_MUST_ZERO(rt_queue_try_send(job->done, (struct rt_queue_item){job, 1}, NULL));
}

static void submit(struct ledger_service *service, struct job *job)
{
    struct ron_errinfo info = {0};

    job->request = (struct ledger_request){
        .command = {.kind = LEDGER_COMMAND_INGEST, .ops = job->ops, .ops_count = job->count},
        .size = job->count * RON_ENTRY_SIZE,
        .deadline = RT_DEADLINE_NEVER,
        .done = done,
        .context = job,
    };
    must(ledger_submit(service, &job->request, &info), &info);
}

static struct job *next_answer(struct rt_queue *answers) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    void *item = NULL;
    size_t count = 0;
    struct job *job;

    must(rt_queue_recv_many(answers, &item, 1, 0, RT_DEADLINE_NEVER, &count, &info), &info);
    job = item;
    must(job->request.outcome.err, &job->request.outcome.info);
    return job;
}

static uint64_t process_cpu_ns(void)
{
    struct timespec now;

    RON_MUST_ZERO(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now));
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct figures {
    uint64_t wall_ns, cpu_ns;
};

/* Keep `in_flight` batches under way until all transfers are answered. */
static struct figures run(struct ledger_service *service, struct rt_queue *answers,
                          struct job *jobs, uint32_t in_flight, uint32_t batch, uint64_t batches,
                          bool hot) RON_BLOCKS
{
    const uint64_t start = bench_now_ns();
    const uint64_t start_cpu = process_cpu_ns();
    uint64_t sent = 0;

    for (uint32_t i = 0; i < in_flight && sent < batches; i++, sent++) {
        fill_transfers(&jobs[i], batch, hot);
        submit(service, &jobs[i]);
    }
    for (uint64_t answered = 0; answered < batches; answered++) {
        struct job *job = next_answer(answers);

        if (sent < batches) {
            fill_transfers(job, batch, hot);
            submit(service, job);
            sent++;
        }
    }
    return (struct figures){bench_now_ns() - start, process_cpu_ns() - start_cpu};
}

static void open_accounts(struct ledger_service *service, struct rt_queue *answers,
                          struct job *job) RON_BLOCKS
{
    for (uint32_t first = 0; first < accounts_count; first += RON_BATCH_ENTRIES_MAX) {
        const uint32_t left = accounts_count - first;

        fill_mints(job, first, left < RON_BATCH_ENTRIES_MAX ? left : RON_BATCH_ENTRIES_MAX);
        submit(service, job);
        (void)next_answer(answers);
    }
}

static void check_sum(struct ledger_service *service)
{
    struct ron_u128 sum = ron_u128_of(0);

    for (uint32_t i = 0; i < accounts_count; i++) {
        struct ledger_balance balance;

        ledger_read_balance(service, &accounts[i], 1, &balance);
        RON_ASSERT(!balance.negative);
        RON_ASSERT(ron_u128_add(sum, balance.amount, &sum));
    }
    RON_ASSERT(ron_u128_compare(sum, ron_u128_of((uint64_t)accounts_count << 30)) == 0);
}

static void print_row(const char *title, const struct figures *figures, uint64_t transfers)
{
    printf("%-40s %9.0f transfers/s   %5.0f ns of processor each\n", title,
           (double)transfers * 1e9 / (double)figures->wall_ns,
           (double)figures->cpu_ns / (double)transfers);
}

static void bench_pipeline(struct io_vfs *vfs, uint64_t transfers) RON_BLOCKS
{
    static struct job jobs[IN_FLIGHT_MAX];
    struct ledger_role_options options = {.vfs = vfs,
                                          .origin = "bench",
                                          .service = ledger_service_defaults(1u << 20, 2),
                                          .memory_bytes_max = UINT64_C(8) << 30,
                                          .memory_frames_max = 1u << 20};
    struct rt_queue_options queue = {
        .name = "answers", .owner = "bench", .policy = "never full", .capacity = IN_FLIGHT_MAX};
    struct ron_errinfo info = {0};
    struct ledger_role *role = NULL;
    struct rt_queue *answers = NULL;
    struct ledger_service *service;
    struct figures figures;

    options.service.lag_ms_max = 0;
    options.service.capacity.names_size_max = 64u << 20;
    must(rt_queue_new(&queue, &answers, &info), &info);
    must(ledger_role_open(&options, &role, &info), &info);
    must(ledger_role_start(role, &info), &info);
    service = ledger_role_service(role);
    must(ledger_service_await_start(service, RT_DEADLINE_NEVER, &info), &info);
    for (uint32_t i = 0; i < IN_FLIGHT_MAX; i++) {
        job_init(&jobs[i], RON_BATCH_ENTRIES_MAX);
        jobs[i].done = answers;
    }
    open_accounts(service, answers, &jobs[0]);
    for (unsigned i = 0; i < 3; i++) {
        figures = run(service, answers, jobs, 4, 8000, transfers / 8000, false);
        print_row("batches of 8,000, 4 in flight, uniform", &figures, transfers / 8000 * 8000);
    }
    figures = run(service, answers, jobs, 4, 8000, transfers / 8000, true);
    print_row("batches of 8,000, 4 in flight, hot pair", &figures, transfers / 8000 * 8000);
    figures = run(service, answers, jobs, 16, 200, transfers / 800, false);
    print_row("batches of 200, 16 in flight, uniform", &figures, transfers / 800 * 200);
    figures = run(service, answers, jobs, 64, 1, transfers / 40, false);
    print_row("single transfers, 64 in flight, uniform", &figures, transfers / 40);
    check_sum(service);
    must(ledger_role_stop(role, NULL, &info), &info);
    role = ledger_role_free(role);
    for (uint32_t i = 0; i < IN_FLIGHT_MAX; i++)
        job_fini(&jobs[i]);
    answers = rt_queue_free(answers);
}

int main(int argc, char **argv) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct bench_options options;
    struct io_vfs *vfs = NULL;
    uint64_t transfers = 640000;

    if (!bench_begin(argc, argv, &options))
        return 2;
    if (options.quick) {
        accounts_count = 20000;
        transfers = 80000;
    }
    rt_init();
    accounts = ron_mem_alloc_array(accounts_count, sizeof(accounts[0]));
    RON_ASSERT(accounts != NULL);
    printf("in memory\n");
    bench_pipeline(NULL, transfers);
    if (mkdtemp(dir) == NULL) {
        perror(dir);
        return 1;
    }
    must(io_vfs_posix_new(dir, true, &vfs, &info), &info);
    printf("on disk\n");
    bench_pipeline(vfs, transfers);
    vfs = io_vfs_free(vfs);
    accounts = ron_mem_free(accounts);
    (void)fflush(NULL);
    (void)execlp("rm", "rm", "-rf", dir, (char *)NULL);
    return 1;
}
