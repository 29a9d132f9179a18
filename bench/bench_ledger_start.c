/*
 * bench_ledger_start.c - how long a ledger of a million accounts stands still, and how long it
 * takes to be there again after kill -9.
 * tidy: long file because its parts share accounts, entries and the service they measure.
 *
 * Four parts, each in a process of its own: the longest single command while accounts are opened;
 * the copy that a snapshot is written from (both the core alone); pauses of snapshots, as the
 * pipeline and as a writer see them (files in memory); a ledger on disk that is killed with SIGKILL
 * a million entries behind its newest snapshot, then started, started from the log alone, and
 * replayed as `ron ledger replay` does.
 *
 * Accounts are drawn uniformly. `--entries N` and `--accounts N` set other sizes. Works in a
 * directory below the current one (about 200 bytes an entry); what it leaves there is said at the
 * end.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/decimal.h"
#include "base/mem.h"
#include "harness.h"
#include "io/vfs.h"
#include "io/vfs_memory.h"
#include "ledger/core_batch.h"
#include "ledger/core_shadow.h"
#include "ledger/replay_dir.h"
#include "ledger/role.h"
#include "rt/queue.h"
#include "rt/registry.h"
#include "rt/supervisor.h"

enum { BATCH = 8000, SMALL = 100, TEXT_SIZE = 24, ACCOUNTS_MAX = 1 << 22 };

static char dir[] = "bench-ledger-start-XXXXXX";
static uint32_t accounts_count = 1000000;
static uint64_t before = 9000000, behind = 1000000; /* entries on either side of the snapshot */
static uint64_t filled = 200000;                    /* transfers before pauses are measured */
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

static double process_cpu_s(void)
{
    struct timespec now;

    RON_MUST_ZERO(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now));
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Our own memory is no part of what a snapshot has to copy. */
static void begin_accounts(void)
{
    accounts = ron_table_alloc(2 * (uint64_t)accounts_count + SMALL, sizeof(accounts[0]),
                               RON_TABLE_IN_ORDER);
    RON_ASSERT(accounts != NULL);
}

/* Mints that open accounts first.. of them. */
static void make_mints(uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(names[i], TEXT_SIZE, "acct:%015u", first + i);
        ops[i] = (struct ledger_op){.kind = LEDGER_MINT, .asset = 1, .amount = {1u << 30}};
        ops[i].credit_name = ron_slice_text(names[i]);
        ops[i].credit = ledger_account_id("", ops[i].credit_name);
        accounts[first + i] = ops[i].credit;
        give_id(i);
    }
}

static void make_transfers(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t from = draw(accounts_count);

        ops[i] = (struct ledger_op){.kind = LEDGER_TRANSFER, .asset = 1, .amount = {1}};
        ops[i].debit = accounts[from];
        ops[i].credit = accounts[(from + 1 + draw(accounts_count - 1)) % accounts_count];
        give_id(i);
    }
}

/* --- The core alone ----------------------------------------------------------------------------
 */

/* Commands of SMALL entries that open an account each: do any of them wait for a table? */
static void show_longest_apply(void)
{
    const struct ledger_service_options options = ledger_service_defaults(
        2 * accounts_count + BATCH, 2);
    struct ledger_capacity capacity = options.capacity;
    struct ledger_core *core = NULL;
    struct ledger_batch batch = {0};
    struct ron_errinfo info = {0};
    uint64_t longest_ns = 0, all_ns = 0;
    uint32_t longest_at = 0, count = 0;

    begin_accounts();
    capacity.entries_window = 2 * accounts_count + BATCH;
    must(ledger_core_new(&capacity, NULL, &core, &info), &info);
    must(ledger_batch_init(&batch, BATCH, 1 << 20, &info), &info);
    for (uint32_t first = 0; first < 2 * accounts_count; first += SMALL, count++) {
        struct ledger_command command = {.kind = LEDGER_COMMAND_INGEST,
                                         .stamp = {.commit_ms = 1760000000000},
                                         .ops = ops,
                                         .ops_count = SMALL};
        struct ledger_refusal refusal;
        struct ledger_result result;
        uint64_t begin_ns, ns;

        make_mints(first, SMALL);
        begin_ns = bench_cpu_ns();
        must(ledger_core_apply(core, &command, &batch, &result, &refusal, &info), &info);
        ledger_core_seal(core, &batch);
        ledger_core_commit(core, &batch);
        ns = bench_cpu_ns() - begin_ns;
        all_ns += ns;
        if (ns > longest_ns) {
            longest_ns = ns;
            longest_at = first;
        }
    }
    printf("%-36s %10.3f ms of processor, at account %u (mean %.3f ms)\n",
           "longest command of 100 new accounts", (double)longest_ns / 1e6, longest_at,
           (double)all_ns / 1e6 / count);
    ledger_batch_fini(&batch);
    (void)ledger_core_free(core);
}

static bool knows_no_entry(void *context, const struct ledger_id *id, uint64_t batch_max,
                           struct ledger_entry *ret_entry)
{
    (void)context, (void)id, (void)batch_max, (void)ret_entry;
    return false;
}

static bool knows_no_nonce(void *context, const struct ledger_id *debit, uint64_t nonce,
                           uint64_t batch_max, struct ledger_entry *ret_entry)
{
    (void)context, (void)debit, (void)nonce, (void)batch_max, (void)ret_entry;
    return false;
}

static uint64_t knows_no_batch(void *context)
{
    (void)context;
    return 0;
}

/* Processor nanoseconds of one command of ops[0..BATCH). */
static uint64_t apply_all(struct ledger_core *core, struct ledger_batch *batch)
{
    struct ledger_command command = {.kind = LEDGER_COMMAND_INGEST,
                                     .stamp = {.commit_ms = 1760000000000},
                                     .ops = ops,
                                     .ops_count = BATCH};
    struct ron_errinfo info = {0};
    struct ledger_refusal refusal;
    struct ledger_result result;
    uint64_t ns = bench_cpu_ns();

    must(ledger_core_apply(core, &command, batch, &result, &refusal, &info), &info);
    ns = bench_cpu_ns() - ns;
    ledger_core_seal(core, batch);
    ledger_core_commit(core, batch);
    return ns;
}

/* The copy that a snapshot is written from: the cut, the largest command right behind it (random
 * accounts, so nearly all of what it touches is kept first), and what the sequencer copies. */
static void show_copy(void)
{
    const struct ledger_archive archive = {
        .find_entry = knows_no_entry, .find_nonce = knows_no_nonce, .last_batch = knows_no_batch};
    const uint32_t chunks = ledger_service_defaults(1, 2).snapshot.copy_max;
    struct ledger_capacity capacity = ledger_capacity_of(2 * accounts_count);
    struct ledger_shadow *spare = NULL;
    struct ledger_core *core = NULL;
    struct ledger_batch batch = {0};
    struct ron_errinfo info = {0};

    begin_accounts();
    must(ledger_core_new(&capacity, &archive, &core, &info), &info);
    must(ledger_batch_init(&batch, BATCH + 2, 1 << 20, &info), &info);
    for (uint32_t first = 0; first + BATCH <= accounts_count; first += BATCH) {
        make_mints(first, BATCH);
        (void)apply_all(core, &batch);
    }
    accounts_count -= accounts_count % BATCH;
    for (unsigned round = 0; round < 4; round++) {
        uint64_t before_ns, cut_ns, after_ns, longest_ns = 0, all_ns = 0;
        bool whole = false;

        make_transfers(BATCH);
        before_ns = apply_all(core, &batch);
        make_transfers(BATCH);
        cut_ns = bench_cpu_ns();
        must(ledger_core_shadow_begin(core, &spare, &info), &info);
        cut_ns = bench_cpu_ns() - cut_ns;
        after_ns = apply_all(core, &batch);
        while (!whole) {
            uint64_t ns = bench_cpu_ns();

            whole = ledger_core_shadow_copy(core, chunks);
            ns = bench_cpu_ns() - ns;
            all_ns += ns;
            longest_ns = ns > longest_ns ? ns : longest_ns;
        }
        spare = ledger_core_shadow_take(core);
        printf("%-36s %10.3f ms of processor; %u transfers behind it %.3f ms (else %.3f); the rest "
               "%.1f ms, longest turn %.3f ms\n",
               "copy for a snapshot: cut", (double)cut_ns / 1e6, BATCH, (double)after_ns / 1e6,
               (double)before_ns / 1e6, (double)all_ns / 1e6, (double)longest_ns / 1e6);
    }
    (void)ledger_shadow_free(spare);
    ledger_batch_fini(&batch);
    (void)ledger_core_free(core);
}

/* --- The service -------------------------------------------------------------------------------
 */

static struct rt_queue *answers;

static void done(struct ledger_request *request, void *context)
{
    RON_MUST_ZERO(rt_queue_try_send(context, (struct rt_queue_item){request, 1}, NULL));
}

/* Hand in ops[0..count) and wait; nanoseconds that took. */
static uint64_t commit(struct ledger_service *service, uint32_t count) RON_BLOCKS
{
    struct ledger_request request = {
        .command = {.kind = LEDGER_COMMAND_INGEST, .ops = ops, .ops_count = count},
        .size = count * RON_ENTRY_SIZE,
        .deadline = RT_DEADLINE_NEVER,
        .done = done,
        .context = answers,
    };
    const uint64_t begin_ns = bench_now_ns();
    struct ron_errinfo info = {0};
    void *item = NULL;

    must(ledger_submit(service, &request, &info), &info);
    must(rt_queue_recv(answers, RT_DEADLINE_NEVER, &item, &info), &info);
    must(request.outcome.err, &request.outcome.info);
    return bench_now_ns() - begin_ns;
}

static void fill(struct ledger_service *service, uint64_t transfers_count) RON_BLOCKS
{
    for (uint32_t first = 0; ids_count < accounts_count; first += BATCH) {
        const uint32_t count = accounts_count - first < BATCH ? accounts_count - first : BATCH;

        make_mints(first, count);
        (void)commit(service, count);
    }
    for (uint64_t sent = 0; sent < transfers_count; sent += BATCH) {
        make_transfers(BATCH);
        (void)commit(service, BATCH);
    }
}

static struct ledger_service_options service_options(void)
{
    struct ledger_service_options options = ledger_service_defaults(1u << 20, 2);

    if (accounts_count > 1u << 20)
        options.capacity = ledger_capacity_of(accounts_count + 64);
    options.drain_ms = 60000;
    options.lag_ms_max = 0;
    options.capacity.names_size_max = 64u << 20;
    options.snapshot.entries = 0;
    options.snapshot.ms = options.snapshot.min_ms = 0;
    return options;
}

static void begin_service(void)
{
    const struct rt_queue_options queue = {
        .name = "answers", .owner = "bench", .policy = "never full", .capacity = 1};
    struct ron_errinfo info = {0};

    rt_init();
    must(rt_queue_new(&queue, &answers, &info), &info);
}

static uint64_t snapshots_taken(struct ledger_service *service,
                                struct ledger_snapshot_health *ret_health)
{
    struct ledger_health health;

    ledger_read_health(service, &health);
    must(health.damage.info.err, &health.damage.info);
    *ret_health = health.snapshots;
    return health.snapshots.taken_count;
}

/* Commits of SMALL entries, one after the other, until so many were made or, if wanted, a snapshot
 * was. */
static uint64_t longest_commit(struct ledger_service *service, uint64_t commits_max,
                               bool until_snapshot) RON_BLOCKS
{
    struct ledger_snapshot_health health;
    const uint64_t taken = snapshots_taken(service, &health);
    uint64_t longest_ns = 0;

    for (uint64_t i = 0; i < commits_max; i++) {
        uint64_t ns;

        make_transfers(SMALL);
        ns = commit(service, SMALL);
        longest_ns = ns > longest_ns ? ns : longest_ns;
        if (until_snapshot && snapshots_taken(service, &health) > taken)
            break;
    }
    return longest_ns;
}

static struct rt_queue *wanted; /* the main task asks the other for a snapshot */

static enum ron_err ask_for_snapshots(struct rt_task *task, void *argument) RON_BLOCKS
{
    void *item;
    struct ron_errinfo info = {0};

    (void)task;
    while (rt_queue_recv(wanted, RT_DEADLINE_NEVER, &item, NULL) == RON_ERR_OK)
        must(ledger_service_snapshot(argument, RT_DEADLINE_NEVER, &info), &info);
    return RON_ERR_OK;
}

static void show_pauses(void) RON_BLOCKS
{
    const struct rt_queue_options queue = {
        .name = "wanted", .owner = "bench", .policy = "never full", .capacity = 1};
    const struct rt_supervisor_options tasks = {.name = "bench", .owner = "bench", .tasks_max = 1};
    struct ledger_service_options options = service_options();
    struct ledger_engine_file_options file = {.dir = "log"};
    struct ledger_snapshot_health health;
    struct rt_supervisor *supervisor = NULL;
    struct rt_task_options asker = {
        .kind = "asker", .name = "asker", .owner = "bench", .fn = ask_for_snapshots};
    struct ledger_service *service = NULL;
    struct rt_task *task = NULL;
    struct ron_errinfo info = {0};

    begin_service();
    begin_accounts();
    must(io_vfs_memory_new(NULL, &file.vfs, &info), &info);
    must(io_vfs_memory_new(NULL, &options.snapshot.vfs, &info), &info); /* one lock each */
    must(rt_queue_new(&queue, &wanted, &info), &info);
    must(rt_supervisor_new(&tasks, &supervisor, &info), &info);
    must(ledger_engine_file_open(&file, &options.engine, &info), &info);
    must(ledger_service_new(&options, &service, &info), &info);
    must(ledger_service_start(service, &info), &info);
    must(ledger_service_await_start(service, RT_DEADLINE_NEVER, &info), &info);
    asker.argument = service;
    must(rt_task_spawn(supervisor, &asker, &task, &info), &info);
    fill(service, filled);
    for (unsigned round = 0; round < 4; round++) {
        const uint64_t calm_ns = longest_commit(service, 1000, false);
        uint64_t begin_ns, during_ns;
        double begin_cpu;

        RON_MUST_ZERO(rt_queue_try_send(wanted, (struct rt_queue_item){wanted, 1}, NULL));
        begin_ns = bench_now_ns();
        begin_cpu = process_cpu_s();
        during_ns = longest_commit(service, UINT64_MAX, true);
        (void)snapshots_taken(service, &health);
        printf("%-36s %10.3f ms; longest commit %.3f ms (without one %.3f ms)\n", "snapshot: pause",
               (double)health.pause_ns / 1e6, (double)during_ns / 1e6, (double)calm_ns / 1e6);
        printf("%-36s %10.3f s until its Anchor; %.1f MB, %llu rows; meanwhile %.3f s of "
               "processor\n",
               "snapshot: written", (double)(bench_now_ns() - begin_ns) / 1e9,
               (double)health.size / 1e6, (unsigned long long)health.rows,
               process_cpu_s() - begin_cpu);
    }
    rt_queue_close(wanted);
    must(rt_supervisor_stop(supervisor, RT_DEADLINE_NEVER, &info), &info);
    (void)rt_supervisor_free(supervisor);
    must(ledger_service_stop(service, NULL, &info), &info);
    (void)ledger_service_free(service);
    (void)ledger_engine_file_free(options.engine);
    (void)io_vfs_free(options.snapshot.vfs);
    (void)io_vfs_free(file.vfs);
    (void)rt_queue_free(wanted);
    (void)rt_queue_free(answers);
}

/* --- On disk -----------------------------------------------------------------------------------
 */

static struct io_vfs *open_disk(void) RON_BLOCKS
{
    struct io_vfs *vfs = NULL;
    struct ron_errinfo info = {0};

    must(io_vfs_posix_new(dir, true, &vfs, &info), &info);
    return vfs;
}

/* Never returns: the process is killed while the ledger runs. */
static void build_and_die(void) RON_BLOCKS
{
    struct ledger_role_options options = {.origin = "bench", .service = service_options()};
    struct ledger_snapshot_health health;
    struct ledger_service *service;
    struct ledger_role *role = NULL;
    struct ron_errinfo info = {0};

    begin_service();
    begin_accounts();
    options.vfs = open_disk();
    must(ledger_role_open(&options, &role, &info), &info);
    must(ledger_role_start(role, &info), &info);
    service = ledger_role_service(role);
    must(ledger_service_await_start(service, RT_DEADLINE_NEVER, &info), &info);
    fill(service, before > accounts_count ? before - accounts_count : 0);
    must(ledger_service_snapshot(service, RT_DEADLINE_NEVER, &info), &info);
    (void)snapshots_taken(service, &health);
    printf("%-36s %10.3f ms; behind %llu entries\n", "snapshot on disk: pause",
           (double)health.pause_ns / 1e6, (unsigned long long)ids_count);
    (void)fflush(NULL);
    fill(service, behind);
    (void)raise(SIGKILL);
}

struct span {
    uint64_t ns;
    double cpu_s;
};

static struct span span_begin(void)
{
    return (struct span){bench_now_ns(), process_cpu_s()};
}

static void show_span(const char *title, const struct span *begin, uint64_t entries_count)
{
    const double s = (double)(bench_now_ns() - begin->ns) / 1e9;
    const double cpu_s = process_cpu_s() - begin->cpu_s;

    printf("%-36s %10.3f s wall, %7.3f s of processor", title, s, cpu_s);
    if (entries_count > 0)
        printf("; %.2f M entries/s (%.2f per processor second)", (double)entries_count / s / 1e6,
               (double)entries_count / cpu_s / 1e6);
    printf("\n");
}

static void show_parts(struct ledger_service *service)
{
    struct ledger_health health;

    ledger_read_health(service, &health);
    must(health.damage.info.err, &health.damage.info);
    printf("%-36s %10.3f s\n", "  load of the snapshot", (double)health.start.load_ns / 1e9);
    printf("%-36s %10.3f s for %llu entries\n", "  windows from the log",
           (double)health.start.recall_ns / 1e9, (unsigned long long)health.start.recalled_entries);
    printf("%-36s %10.3f s for %llu entries: %.2f M/s\n", "  replay behind it",
           (double)health.start.replay_ns / 1e9, (unsigned long long)health.start.replayed_entries,
           (double)health.start.replayed_entries * 1e3 / (double)(health.start.replay_ns + 1));
    printf("%-36s %10.3f s\n", "  tree: the rest, its head, its files",
           (double)health.start.follow_ns / 1e9);
}

static void show_restart(void) RON_BLOCKS
{
    struct ledger_role_options options = {.origin = "bench", .service = service_options()};
    struct span begin, part;
    struct ledger_record record;
    struct ron_buf text;
    struct ledger_service *service;
    struct ledger_role *role = NULL;
    struct ron_errinfo info = {0};

    begin_service();
    options.vfs = open_disk();
    begin = span_begin();
    must(ledger_role_open(&options, &role, &info), &info);
    show_span("  files opened, the log's tail checked", &begin, 0);
    part = span_begin();
    must(ledger_role_start(role, &info), &info);
    service = ledger_role_service(role);
    must(ledger_service_await_start(service, RT_DEADLINE_NEVER, &info), &info);
    show_parts(service);
    show_span("  started after that", &part, 0);
    show_span("restart after kill -9: ready", &begin, 0);
    ron_buf_init(&text, 1 << 20);
    must(ledger_books_at(ledger_role_books(role), ledger_read_head(service).seq, RT_DEADLINE_NEVER,
                         &record, &text, &info),
         &info);
    ron_buf_fini(&text);
    show_span("restart: the books are there, too", &begin, 0);
    must(ledger_role_stop(role, NULL, &info), &info);
    (void)ledger_role_free(role);
    (void)io_vfs_free(options.vfs);
    (void)rt_queue_free(answers);
}

static void show_replay(void) RON_BLOCKS
{
    struct ledger_service_options options = service_options();
    struct io_vfs *vfs = open_disk();
    const struct ledger_engine_file_options file = {.vfs = vfs, .dir = "ledger/log"};
    const struct ledger_replay_dir_options replay = {.vfs = vfs, .dir = "ledger"};
    struct ledger_service *service = NULL;
    struct ledger_replay_dir_report report;
    struct ron_errinfo info = {0};
    struct span begin;

    begin_service();
    must(ledger_engine_file_open(&file, &options.engine, &info), &info);
    begin = span_begin();
    must(ledger_service_new(&options, &service, &info), &info);
    must(ledger_service_start(service, &info), &info);
    must(ledger_service_await_start(service, RT_DEADLINE_NEVER, &info), &info);
    show_span("start from the log alone", &begin, ledger_read_head(service).seq);
    must(ledger_service_stop(service, NULL, &info), &info);
    (void)ledger_service_free(service);
    (void)ledger_engine_file_free(options.engine);
    begin = span_begin();
    must(ledger_replay_dir(&replay, &report, &info), &info);
    show_span("ron ledger replay, survey and checks", &begin, report.entries_count);
    printf("%-36s %10.3f s: %.2f M entries/s\n", "  of it the replay",
           (double)report.replay_ns / 1e9,
           (double)report.entries_count * 1e3 / (double)report.replay_ns);
    (void)io_vfs_free(vfs);
    (void)rt_queue_free(answers);
}

/* --- In their order ----------------------------------------------------------------------------
 */

static void in_child(void (*part)(void)) RON_BLOCKS
{
    int status = 0;
    pid_t pid;

    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        part();
        (void)fflush(NULL);
        _exit(0);
    }
    RON_ASSERT(pid > 0);
    RON_ASSERT(waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return; /* by its own hand */
    exit(1);
}

/* Take "--entries N" and "--accounts N" out of the arguments. */
static bool take_sizes(int *argc, char **argv)
{
    int kept = 1;

    for (int i = 1; i < *argc; i++) {
        const bool is_entries = strcmp(argv[i], "--entries") == 0;
        uint64_t number;

        if (!is_entries && strcmp(argv[i], "--accounts") != 0) {
            argv[kept++] = argv[i];
            continue;
        }
        if (++i == *argc || ron_decimal_parse_u64(ron_slice_text(argv[i]), &number, NULL) != 0 ||
            number < 10 || (!is_entries && number > ACCOUNTS_MAX))
            return false;
        if (is_entries)
            before = (behind = number / 10) * 9;
        else
            accounts_count = (uint32_t)number;
    }
    *argc = kept;
    return true;
}

int main(int argc, char **argv) RON_BLOCKS
{
    struct bench_options options;

    if (!take_sizes(&argc, argv) || !bench_begin(argc, argv, &options))
        return 2;
    if (options.quick) {
        accounts_count = 20000;
        before = behind = filled = 80000;
    }
    if (mkdtemp(dir) == NULL) {
        perror(dir);
        return 1;
    }
    in_child(show_longest_apply);
    in_child(show_copy);
    in_child(show_pauses);
    in_child(build_and_die);
    in_child(show_restart);
    in_child(show_replay);
    printf("files are in %s\n", dir);
    return 0;
}
