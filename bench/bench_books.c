/*
 * bench_books.c - the books without a ledger: what following costs per entry, what runs take on
 * disk and in memory, and how long a question takes at this size.
 *
 *     bench_books [--quick] [--even] [DIR]
 *
 * 20 million drawn transfers (--quick: 2 million) between a hundred thousand accounts, a few of
 * which do a tenth of everything (--even: a million accounts that do alike), in batches of 1000,
 * through pages, runs and merges as the tasks do it; questions in processor time, with the files in
 * the system's cache. Files in DIR (made; default bench-books, removed afterwards by whoever ran
 * it). Not counted: reading and checking frames of the log.
 */
#include <stdio.h>
#include <string.h>

#include "books_frames.h"
#include "harness.h"
#include "io/durable.h"
#include "ledger/books_impl.h"
#include "rt/registry.h"

enum {
    ACCOUNTS = 100000,
    ACCOUNTS_EVEN = 1000000,
    BATCH = 1000,
    QUESTIONS = 3000,
    QUICK_MERGE = 7, /* so that there is one */
    PAGE_RECORDS = BOOKS_ENTRY_RECORDS * LEDGER_BOOKS_PAGE,
};

static struct drawn_frame drawn;
static bool even;
static uint64_t random_state = 1;

static uint32_t draw(uint32_t below)
{
    return (uint32_t)(draw_from(&random_state) % below);
}

static uint32_t draw_account(void)
{
    if (even)
        return draw(ACCOUNTS_EVEN);
    return draw(10) == 0 ? draw(10) : draw(ACCOUNTS);
}

static void draw_frame(uint64_t batch)
{
    const uint32_t accounts = even ? ACCOUNTS_EVEN : ACCOUNTS;

    frame_begin(&drawn, batch, (batch - 1) * BATCH + 1);
    for (uint32_t i = 0; i < BATCH; i++) {
        const uint32_t from = draw_account();
        const struct ledger_entry entry = {
            .kind = LEDGER_TRANSFER,
            .id = drawn_id(2, (batch - 1) * BATCH + 1 + i),
            .debit = drawn_id(1, from),
            .credit = drawn_id(1, (from + 1 + draw_account()) % accounts),
            .amount = ron_u128_of(1 + draw(1000000)),
            .asset = 1,
            .nonce = 1,
        };

        frame_add(&drawn, entry, NULL);
    }
    frame_end(&drawn);
}

static void must(enum ron_err err, const struct ron_errinfo *info)
{
    if (err != RON_ERR_OK) {
        fprintf(stderr, "bench_books: %s: %s\n", ron_err_name(err), info->message);
        RON_ASSERT(err == RON_ERR_OK);
    }
}

static bool is_sealed(struct ledger_books *books) RON_BLOCKS
{
    struct books_view *view = books_view_take(books);
    const bool sealed = view->sealed != NULL;

    (void)books_view_drop(view);
    return sealed;
}

/* Is there still a merge to be made? */
static bool is_behind(struct ledger_books *books) RON_BLOCKS
{
    const struct ledger_books_stats stats = ledger_books_get_stats(books);

    return stats.runs_merged < stats.runs_written / books->options.merge_runs;
}

/* What the follower does, with frames that are drawn; time for the drawing is not counted. */
static uint64_t feed(struct ledger_books *books, uint64_t batches_count) RON_BLOCKS
{
    struct books_page *page = NULL;
    struct ron_errinfo info;
    uint64_t spent_ns = 0;

    for (uint64_t batch = 1; batch <= batches_count; batch++) {
        uint64_t start;

        draw_frame(batch);
        start = bench_cpu_ns();
        if (page == NULL || !books_page_fits(page, &drawn.frame) ||
            books_page_entries(page) >= LEDGER_BOOKS_PAGE) {
            uint64_t version = rt_watch_get(books->kept, NULL);

            while (is_sealed(books))
                must(rt_watch_wait(books->kept, version, RT_DEADLINE_NEVER, NULL, &version, &info),
                     &info);
            must(books_shelf_page(&books->shelf, PAGE_RECORDS, LEDGER_BOOKS_PAGE, &drawn.frame,
                                  &page, &info),
                 &info);
            must(books_view_turn(books, page, &info), &info);
            (void)books_page_drop(page);
            rt_watch_set(books->work, &batch);
        }
        books_page_add(page, &drawn.frame);
        spent_ns += bench_cpu_ns() - start;
    }
    return spent_ns;
}

static void report(const char *what, uint64_t *times_ns, size_t count)
{
    for (size_t i = 1; i < count; i++) { /* by insertion: they are few */
        const uint64_t time_ns = times_ns[i];
        size_t j = i;

        for (; j > 0 && times_ns[j - 1] > time_ns; j--)
            times_ns[j] = times_ns[j - 1];
        times_ns[j] = time_ns;
    }
    printf("%-44s median %8.1f us, 99 %% %8.1f us, worst %8.1f us\n", what,
           (double)times_ns[count / 2] / 1e3, (double)times_ns[count * 99 / 100] / 1e3,
           (double)times_ns[count - 1] / 1e3);
}

enum question { Q_PLACE, Q_ABSENT, Q_ACCOUNT, Q_NEWEST, Q_BALANCE, Q_BUSY_BALANCE, Q__MAX };
static const char *const question_names[Q__MAX] = {
    "an entry's place in the log",        "an account that is not there",
    "1000 entries of an account",         "20 newest entries of an account",
    "balance at a past seq, any account", "balance at a past seq, one of the busiest"};

static void ask(struct books_view *view, enum question question, uint64_t entries_count) RON_BLOCKS
{
    static uint64_t seqs[1000];
    const uint64_t seq = 1 + draw_from(&random_state) % entries_count;
    const struct ledger_id account = drawn_id(
        question == Q_ABSENT ? 3 : 1, question == Q_BUSY_BALANCE ? draw(10) : draw_account());
    const struct ledger_thread thread = ledger_account_thread(&account, 1);
    struct books_sum sum;
    struct ron_errinfo info;
    uint64_t damaged = 0, batch = 0;
    size_t count = 0;

    if (question == Q_PLACE) {
        must(books_view_batch(view, seq, &batch, &damaged, &info), &info);
        RON_ASSERT(batch == (seq - 1) / BATCH + 1);
    } else if (question == Q_ABSENT) {
        must(books_view_seqs(view, &thread, 0, false, seqs, 8, &count, &damaged, &info), &info);
        RON_ASSERT(count == 0);
    } else if (question == Q_ACCOUNT || question == Q_NEWEST) {
        must(books_view_seqs(view, &thread, question == Q_ACCOUNT ? seq : UINT64_MAX,
                             question == Q_NEWEST, seqs, question == Q_ACCOUNT ? 1000 : 20, &count,
                             &damaged, &info),
             &info);
    } else {
        must(books_view_balance(view, &thread, seq, &sum, &damaged, &info), &info);
    }
}

static void ask_all(struct ledger_books *books, uint64_t entries_count, bool quick) RON_BLOCKS
{
    static uint64_t times_ns[QUESTIONS];
    const size_t count = quick ? QUESTIONS / 10 : QUESTIONS;
    struct books_view *view = books_view_take(books);

    for (int question = 0; question < Q__MAX; question++) {
        for (size_t i = 0; i < count; i++) {
            uint64_t start = bench_cpu_ns(); /* the files are in the system's cache */

            ask(view, (enum question)question, entries_count);
            times_ns[i] = bench_cpu_ns() - start;
        }
        report(question_names[question], times_ns, count);
    }
    (void)books_view_drop(view);
}

static void print_files(struct ledger_books *books, uint64_t entries_count) RON_BLOCKS
{
    const struct ledger_books_stats stats = ledger_books_get_stats(books);
    const uint64_t in_runs = entries_count - stats.page_entries;

    printf("runs: %llu, %.1f bytes on disk and %.2f in memory per transfer; written %llu, merged "
           "%llu\n",
           (unsigned long long)stats.runs_count, (double)stats.runs_bytes / (double)in_runs,
           (double)stats.runs_memory / (double)in_runs, (unsigned long long)stats.runs_written,
           (unsigned long long)stats.runs_merged);
}

/* The keeper's own processor time: what the task says at its end. */
static uint64_t keeper_ns;
static enum ron_err timed_keeper(struct rt_task *task, void *argument) RON_BLOCKS
{
    const uint64_t start = bench_cpu_ns();
    enum ron_err err = books_keeper_run(task, argument);

    keeper_ns = bench_cpu_ns() - start;
    return err;
}

static void close_work(void *argument)
{
    struct ledger_books *books = argument;

    rt_watch_close(books->work);
}

int main(int argc, char **argv) RON_BLOCKS
{
    const bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    const bool is_even = argc > 1 + quick && strcmp(argv[1 + quick], "--even") == 0;
    const char *dir = argc > 1 + quick + is_even ? argv[1 + quick + is_even] : "bench-books";
    const uint64_t batches_count = quick ? 2000 : 20000;
    const struct rt_supervisor_options supervisor_options = {
        .name = "bench", .owner = "bench", .tasks_max = 2};
    struct ledger_books_options options = {.dir = "books"};
    struct rt_task_options keeper = {.kind = "keeper",
                                     .name = "keeper",
                                     .owner = "bench",
                                     .fn = timed_keeper,
                                     .wake = close_work};
    struct ledger_books *books = NULL;
    struct rt_task *task = NULL;
    struct ron_errinfo info;
    enum ron_err result;
    uint64_t start, fed_ns, wall_ns;

    even = is_even;
    rt_init();
    bench_print_machine();
    must(io_vfs_posix_new(dir, true, &options.vfs, &info), &info);
    must(io_durable_dir(options.vfs, "books", &info), &info);
    options.merge_runs = quick ? QUICK_MERGE : 0;
    must(rt_supervisor_new(&supervisor_options, &options.supervisor, &info), &info);
    must(ledger_books_new(&options, &books, &info), &info);
    keeper.argument = books;
    must(rt_task_spawn(options.supervisor, &keeper, &task, &info), &info);
    start = bench_now_ns();
    fed_ns = feed(books, batches_count);
    while (is_sealed(books) || is_behind(books))
        (void)!rt_watch_wait(books->kept, rt_watch_get(books->kept, NULL), rt_deadline_after_ms(50),
                             NULL, &(uint64_t){0}, NULL);
    wall_ns = bench_now_ns() - start;
    print_files(books, batches_count * BATCH);
    ask_all(books, batches_count * BATCH, quick);
    rt_task_cancel(task);
    must(rt_task_join(task, RT_DEADLINE_NEVER, &result, &info), &info);
    printf("%llu transfers: follower %.0f ns, keeper %.0f ns of processor each (%.0f s by the "
           "clock, drawing included)\n",
           (unsigned long long)(batches_count * BATCH),
           (double)fed_ns / (double)(batches_count * BATCH),
           (double)keeper_ns / (double)(batches_count * BATCH), (double)wall_ns / 1e9);
    (void)ledger_books_free(books);
    must(rt_supervisor_stop(options.supervisor, RT_DEADLINE_NEVER, &info), &info);
    (void)rt_supervisor_free(options.supervisor);
    (void)io_vfs_free(options.vfs);
    return 0;
}
