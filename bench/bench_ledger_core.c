/*
 * bench_ledger_core.c - the ledger core: nanoseconds per entry of applying, sealing and committing;
 * bytes per account; state root, snapshot and load.
 *
 * Entries are Transfers in batches of BATCH, by ids as the binary form brings them, with random
 * entry ids. Accounts are drawn uniformly, or are one hot pair.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/assert.h"
#include "base/limits.h"
#include "base/mem.h"
#include "harness.h"
#include "ledger/core.h"
#include "ledger/core_batch.h"
#include "ledger/core_snapshot.h"

enum { BATCH = 8000, RUNS = 5, NAME_SIZE = 24 };

struct bench {
    struct ledger_core *core;
    struct ledger_batch batch;
    struct ledger_op *ops;
    struct ledger_bare_op *bare_ops;
    struct ledger_id *accounts;
    uint32_t accounts_count;
    uint64_t random;
};

static bool count_cpu_time;

static uint64_t now_ns(void)
{
    struct timespec now;

    if (!count_cpu_time)
        return bench_now_ns();
    RON_MUST_ZERO(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now));
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t draw(struct bench *b)
{
    b->random ^= b->random << 13;
    b->random ^= b->random >> 7;
    b->random ^= b->random << 17;
    return b->random;
}

struct times {
    uint64_t apply_ns, seal_ns, commit_ns;
};

static void run_batch(struct bench *b, uint32_t count, bool bare, struct times *times)
{
    struct ledger_command command = {
        .kind = LEDGER_COMMAND_INGEST,
        .stamp = {.commit_ms = 1760000000000},
        .ops = b->ops,
        .bare_ops = bare ? b->bare_ops : NULL,
        .ops_count = count,
    };
    struct ledger_refusal refusal;
    struct ledger_result result;
    uint64_t start = now_ns();
    uint64_t applied;
    uint64_t sealed;
    enum ron_err err = ledger_core_apply(b->core, &command, &b->batch, &result, &refusal, NULL);

    RON_ASSERT(err == RON_ERR_OK);
    RON_ASSERT(result.applied);
    applied = now_ns();
    ledger_core_seal(b->core, &b->batch);
    sealed = now_ns();
    ledger_core_commit(b->core, &b->batch);
    times->apply_ns += applied - start;
    times->seal_ns += sealed - applied;
    times->commit_ns += now_ns() - sealed;
}

/* The text is the short form, of some 16 bytes. */
static void make_id(struct bench *b, struct ledger_id *id, struct ron_slice *text)
{
    ron_store_le64(id->bytes, draw(b));
    ron_store_le64(id->bytes + 8, draw(b));
    *text = (struct ron_slice){id->bytes, 0};
}

static void open_accounts(struct bench *b)
{
    char names[BATCH][NAME_SIZE + 1];
    struct times times = {0, 0, 0};

    for (uint32_t done = 0; done < b->accounts_count;) {
        uint32_t count = b->accounts_count - done < BATCH ? b->accounts_count - done : BATCH;

        for (uint32_t i = 0; i < count; i++) {
            struct ledger_op *op = &b->ops[i];

            (void)snprintf(names[i], sizeof(names[i]), "acct:%019u", done + i);
            *op = (struct ledger_op){.kind = LEDGER_MINT, .asset = 1, .amount = {1u << 30}};
            op->credit_name = ron_slice_text(names[i]);
            op->credit = ledger_account_id("", op->credit_name);
            b->accounts[done + i] = op->credit;
            make_id(b, &op->id, &op->id_text);
        }
        run_batch(b, count, false, &times);
        done += count;
    }
}

static int compare_u64(const void *a, const void *b)
{
    const uint64_t *first = a;
    const uint64_t *second = b;

    return *first < *second ? -1 : *first > *second;
}

static uint64_t median(uint64_t *values)
{
    qsort(values, RUNS, sizeof(values[0]), compare_u64);
    return values[RUNS / 2];
}

static void bench_apply(struct bench *b, const char *title, bool hot, unsigned batches)
{
    uint64_t apply[RUNS];
    uint64_t seal[RUNS];
    uint64_t commit[RUNS];

    for (unsigned run = 0; run < RUNS; run++) {
        struct times times = {0, 0, 0};

        for (unsigned k = 0; k < batches; k++) {
            for (uint32_t i = 0; i < BATCH; i++) {
                uint32_t from = hot ? i % 2 : (uint32_t)(draw(b) % b->accounts_count);
                uint32_t to = hot ? 1 - i % 2 : (uint32_t)(draw(b) % b->accounts_count);
                struct ledger_bare_op *op = &b->bare_ops[i];

                to = to == from ? (from + 1) % b->accounts_count : to;
                *op = (struct ledger_bare_op){.kind = LEDGER_TRANSFER, .asset = 1, .amount = {1}};
                op->debit = b->accounts[from];
                op->credit = b->accounts[to];
                make_id(b, &op->id, &op->id_text);
            }
            run_batch(b, BATCH, true, &times);
        }
        apply[run] = times.apply_ns / ((uint64_t)batches * BATCH);
        seal[run] = times.seal_ns / ((uint64_t)batches * BATCH);
        commit[run] = times.commit_ns / ((uint64_t)batches * BATCH);
    }
    printf("%-28s apply %4llu ns/entry, seal %4llu, commit %4llu\n", title,
           (unsigned long long)median(apply), (unsigned long long)median(seal),
           (unsigned long long)median(commit));
}

static enum ron_err keep(void *context, struct ron_slice bytes, struct ron_errinfo *reterr)
{
    return ron_buf_append(context, bytes.data, bytes.size, reterr);
}

static bool find_nothing(void *context, const struct ledger_id *id, uint64_t batch_max,
                         struct ledger_entry *ret_entry)
{
    (void)context;
    (void)id;
    (void)batch_max;
    (void)ret_entry;
    return false;
}
static bool find_no_nonce(void *context, const struct ledger_id *debit, uint64_t nonce,
                          uint64_t batch_max, struct ledger_entry *ret_entry)
{
    (void)nonce;
    return find_nothing(context, debit, batch_max, ret_entry);
}
static const struct ledger_archive archive = {.find_entry = find_nothing,
                                              .find_nonce = find_no_nonce};

static void bench_state(struct bench *b, const struct ledger_capacity *capacity)
{
    uint64_t root_ns[RUNS];
    struct ledger_core *loaded;
    struct ron_sha256 root;
    uint64_t rows_count = 0;
    uint64_t start;
    struct ron_buf buf;
    enum ron_err err;

    for (unsigned run = 0; run < RUNS; run++) {
        start = now_ns();
        err = ledger_core_state_root(b->core, &root, &rows_count, NULL);
        RON_ASSERT(err == RON_ERR_OK);
        root_ns[run] = now_ns() - start;
    }
    printf("state root of %llu rows: %llu ms\n", (unsigned long long)rows_count,
           (unsigned long long)median(root_ns) / 1000000);
    ron_buf_init(&buf, RON_ALLOCATION_SIZE_MAX);
    start = now_ns();
    err = ledger_snapshot_write(b->core, keep, &buf, NULL);
    RON_ASSERT(err == RON_ERR_OK);
    printf("snapshot: %llu MB in %llu ms\n", (unsigned long long)buf.size / 1000000,
           (unsigned long long)(now_ns() - start) / 1000000);
    err = ledger_core_new(capacity, &archive, &loaded, NULL);
    RON_ASSERT(err == RON_ERR_OK);
    start = now_ns();
    err = ledger_snapshot_load(loaded, ron_buf_slice(&buf), NULL);
    RON_ASSERT(err == RON_ERR_OK);
    printf("load: %llu ms\n", (unsigned long long)(now_ns() - start) / 1000000);
    (void)ledger_core_free(loaded);
    ron_buf_fini(&buf);
}

int main(int argc, char **argv)
{
    struct bench_options options;
    struct ledger_capacity capacity;
    static struct bench bench;
    size_t accounts_size;
    enum ron_err err;

    if (!bench_begin(argc, argv, &options))
        return 2;
    count_cpu_time = options.cpu_time;
    bench.accounts_count = options.quick ? 20000 : 1000000;
    bench.random = 88172645463325252u;
    capacity = ledger_capacity_of(1u << 20);
    capacity.names_size_max = 64 << 20;
    capacity.entries_window = (1u << 20) - LEDGER_BATCH_ENTRIES_MAX; /* its index is half full */
    err = ledger_core_new(&capacity, &archive, &bench.core, NULL);
    RON_ASSERT(err == RON_ERR_OK);
    err = ledger_batch_init(&bench.batch, LEDGER_BATCH_ENTRIES_MAX, 1 << 20, NULL);
    RON_ASSERT(err == RON_ERR_OK);
    bench.ops = ron_mem_alloc_array(BATCH, sizeof(bench.ops[0]));
    bench.bare_ops = ron_mem_alloc_array(BATCH, sizeof(bench.bare_ops[0]));
    bench.accounts = ron_mem_alloc_array(bench.accounts_count, sizeof(bench.accounts[0]));
    RON_ASSERT(bench.ops != NULL);
    RON_ASSERT(bench.accounts != NULL);
    open_accounts(&bench);
    (void)ledger_core_size(bench.core, &accounts_size);
    printf("%u accounts, one asset, names of %d bytes: %zu bytes per account\n",
           bench.accounts_count, NAME_SIZE, accounts_size / bench.accounts_count);
    bench_apply(&bench, "uniform over all accounts", false, options.quick ? 1 : 40);
    bench_apply(&bench, "one hot pair", true, options.quick ? 1 : 40);
    bench_state(&bench, &capacity);
    return 0;
}
