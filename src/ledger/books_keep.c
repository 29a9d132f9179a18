/*
 * books_keep.c - the keeper: full pages become runs, many of those become one.
 *
 * A page goes first: the follower waits for its place. What fails is tried again; what was made for
 * an epoch that is over is removed.
 */
#include <stdio.h>

#include "ledger/books_impl.h"
#include "ledger/books_merge.h"
#include "ledger/books_pace.h"

enum { STEP_POSTINGS = 4096 }; /* of a merge */

enum ron_err books_run_path(const struct ledger_books *books, uint64_t first_seq, uint64_t last_seq,
                            char ret_path[BOOKS_PATH_SIZE], struct ron_errinfo *reterr)
{
    int size = snprintf(ret_path, BOOKS_PATH_SIZE, "%s/%016llx-%016llx.run", books->options.dir,
                        (unsigned long long)first_seq, (unsigned long long)last_seq);

    if (size < 0 || size >= BOOKS_PATH_SIZE)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "the path of a run in %s", books->options.dir);
    return RON_ERR_OK;
}

/* It is written: open it and put it into the view instead of `count` runs, or of the page. */
static enum ron_err put_run(struct ledger_books *books, uint64_t epoch, const char *path,
                            size_t count, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct books_run *run = NULL;
    enum ron_err err = books_run_open(books->options.vfs, path, &run, reterr);

    if (err == RON_ERR_OK)
        err = books_view_put_run(books, epoch, run, count, reterr);
    (void)books_run_drop(run);
    if (err == RON_ERR_CONFLICT)
        (void)!io_vfs_unlink(books->options.vfs, path, NULL);
    return err;
}

/* The view's sealed page. Drops the view before it says that there is room for another page: else
 * the follower, whom that wakes, would find the memory of this one still in use, and take fresh
 * memory for its next. */
static enum ron_err keep_page(struct ledger_books *books, struct books_view *view,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct books_page *page = view->sealed;
    const uint64_t kept = page->first_seq;
    char path[BOOKS_PATH_SIZE];
    enum ron_err err = books_run_path(books, kept, books_page_last_seq(page), path, reterr);

    if (err == RON_ERR_OK)
        err = books_page_write(page, &books->order, books->options.vfs, path, reterr);
    if (err == RON_ERR_OK)
        err = put_run(books, view->epoch, path, 0, reterr);
    (void)books_view_drop(view);
    if (err != RON_ERR_OK)
        return err;
    rt_counter_add(&books->runs_written, 1);
    rt_watch_set(books->kept, &kept);
    return RON_ERR_OK;
}

/* Merged runs stay as they are. */
static bool is_merged(const struct ledger_books *books, const struct books_run *run)
{
    const uint64_t entries = run->head.last_seq + 1 - run->head.first_seq;

    return entries > (uint64_t)books->options.page_entries * books->options.merge_runs / 2;
}

/* The first merge_runs neighbours that are not. */
static bool find_merge(const struct ledger_books *books, const struct books_view *view,
                       size_t *ret_first)
{
    size_t alike = 0;

    for (size_t i = 0; i < view->runs_count; i++) {
        alike = is_merged(books, view->runs[i]) ? 0 : alike + 1;
        if (alike == books->options.merge_runs) {
            *ret_first = i + 1 - alike;
            return true;
        }
    }
    return false;
}

/* Since the newest merged one. */
static size_t unmerged_count(const struct ledger_books *books, const struct books_view *view)
{
    size_t count = 0;

    while (count < view->runs_count && !is_merged(books, view->runs[view->runs_count - 1 - count]))
        count++;
    return count;
}

/* Where a merge was at its last pause. */
struct pace {
    uint64_t step_ns, last_seq;
};

/* Between two steps of a merge: a page does not wait for its end, and requests do
 * not wait for it either (books_pace.h). */
static enum ron_err pause_merge(struct ledger_books *books, struct rt_task *task, struct pace *pace,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    const uint64_t took_ns = rt_now_ns() - pace->step_ns;
    const uint64_t last_seq = pace->last_seq;
    struct books_view *view;
    uint64_t rest_ns;
    enum ron_err err = RON_ERR_OK;

    if (rt_task_canceled(task))
        return ron_fail(reterr, RON_ERR_CANCELED, "the books are closing");
    view = books_view_take(books);
    pace->last_seq = books_view_last_seq(view);
    rest_ns = books_rest_ns(took_ns, pace->last_seq != last_seq, unmerged_count(books, view),
                            books->options.merge_runs);
    if (view->sealed != NULL)
        err = keep_page(books, view, reterr);
    else
        (void)books_view_drop(view);
    pace->step_ns = rt_now_ns();
    (void)!rt_task_sleep(task, rt_deadline_after_ns(rest_ns));
    rt_task_beat(task);
    rt_counter_add(&books->rest_owed_ns, rest_ns);
    rt_counter_add(&books->rested_ns, rt_now_ns() - pace->step_ns);
    pace->step_ns = rt_now_ns();
    return err;
}

/* ---- Merging ---- */

/* Of a merge, where it is. */
struct merging {
    struct ledger_books *books;
    struct rt_task *task;
    const struct books_view *runs; /* these, and no page: what is merged for long keeps no memory */
    struct pace pace;
};

static enum ron_err merge_postings(struct merging *merging, struct books_merger *merger,
                                   struct books_writer *writer,
                                   struct ron_errinfo *reterr) RON_BLOCKS
{
    struct books_run *blamed = NULL;
    size_t count = 0, looked = 0;
    enum ron_err err;

    do {
        err = books_merger_step(merger, writer, &count, &blamed, reterr);
        if (blamed != NULL && err != RON_ERR_NO_MEMORY)
            books_report(merging->books, merging->runs->epoch, blamed->head.first_seq);
        looked += count;
        if (err == RON_ERR_OK && looked >= STEP_POSTINGS) {
            err = pause_merge(merging->books, merging->task, &merging->pace, reterr);
            looked = 0;
        }
    } while (err == RON_ERR_OK && count > 0);
    return err == RON_ERR_OK ? books_writer_end(writer, reterr) : err;
}

static enum ron_err write_merged(struct merging *merging, const char *path,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    struct books_run *const *runs = merging->runs->runs;
    const size_t count = merging->runs->runs_count;
    struct books_head head = runs[count - 1]->head;
    struct books_merger *merger = NULL;
    struct books_writer *writer = NULL;
    uint64_t threads_max = 0;
    enum ron_err err = books_merger_new(runs, count, &merger, reterr);

    head.first_seq = runs[0]->head.first_seq;
    head.first_batch = runs[0]->head.first_batch;
    for (size_t i = 0; i < count; i++)
        threads_max += runs[i]->head.threads_count;
    if (err == RON_ERR_OK)
        err = books_writer_new(merging->books->options.vfs, path, &head, threads_max, NULL, &writer,
                               reterr);
    if (err == RON_ERR_OK)
        err = merge_postings(merging, merger, writer, reterr);
    (void)books_writer_free(writer);
    (void)books_merger_free(merger);
    return err;
}

static enum ron_err merge(struct merging *merging, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_books *books = merging->books;
    const struct books_view *runs = merging->runs;
    char path[BOOKS_PATH_SIZE];
    enum ron_err err = books_run_path(books, runs->runs[0]->head.first_seq,
                                      books_view_last_seq(runs), path, reterr);

    if (err == RON_ERR_OK)
        err = write_merged(merging, path, reterr);
    if (err == RON_ERR_OK)
        err = put_run(books, runs->epoch, path, runs->runs_count, reterr);
    if (err != RON_ERR_OK)
        return err;
    rt_counter_add(&books->runs_merged, 1);
    for (size_t i = 0; i < runs->runs_count; i++) /* else the next start does it */
        (void)!io_vfs_unlink(books->options.vfs, io_file_path(runs->runs[i]->file), NULL);
    return RON_ERR_OK;
}

/* Those of the view from `first` on that are merged together. Drops the view. */
static enum ron_err merge_from(struct ledger_books *books, struct rt_task *task,
                               struct books_view *view, size_t first,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct books_view *runs = NULL;
    struct merging merging = {
        .books = books, .task = task, .pace = {rt_now_ns(), books_view_last_seq(view)}};
    enum ron_err err = books_view_of_runs(view, first, books->options.merge_runs, &runs, reterr);

    (void)books_view_drop(view);
    merging.runs = runs;
    if (err == RON_ERR_OK)
        err = merge(&merging, reterr);
    (void)books_view_drop(runs);
    return err;
}

/* One piece of work; false: there is none. */
static bool keep_some(struct ledger_books *books, struct rt_task *task, enum ron_err *ret_err,
                      struct ron_errinfo *reterr) RON_BLOCKS
{
    struct books_view *view = books_view_take(books);
    size_t first = 0;

    if (view->sealed != NULL) {
        *ret_err = keep_page(books, view, reterr);
    } else if (find_merge(books, view, &first)) {
        *ret_err = merge_from(books, task, view, first, reterr);
    } else {
        (void)books_view_drop(view);
        return false;
    }
    return true;
}

enum ron_err books_keeper_run(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct ledger_books *books = argument;
    struct ron_errinfo info;

    rt_task_step_back();
    while (!rt_task_canceled(task)) {
        uint64_t version = rt_watch_get(books->work, NULL);
        enum ron_err err = RON_ERR_OK;

        rt_task_beat(task);
        if (!keep_some(books, task, &err, &info)) {
            if (rt_watch_wait(books->work, version, RT_DEADLINE_NEVER, NULL, &version, NULL) ==
                RON_ERR_CANCELED)
                break;
        } else if (err == RON_ERR_OK) {
            rt_atomic_store_u32(&books->complained, 0);
        } else if (err != RON_ERR_CONFLICT && err != RON_ERR_CANCELED) {
            books_complain(books, "a run cannot be written", &info);
            (void)!rt_task_sleep(task, rt_deadline_after_ms(BOOKS_RETRY_MS));
        }
    }
    return RON_ERR_CANCELED;
}
