/*
 * books_keep.c - the keeper: full pages become runs, many of those become one.
 *
 * A page goes first: the follower waits for its place. What fails is tried again; what was made for
 * an epoch that is over is removed.
 */
#include <stdio.h>

#include "ledger/books_impl.h"
#include "ledger/books_pace.h"
#include "ledger/books_writer.h"

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

static enum ron_err keep_page(struct ledger_books *books, const struct books_view *view,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct books_page *page = view->sealed;
    char path[BOOKS_PATH_SIZE];
    uint64_t kept;
    enum ron_err err = books_run_path(books, page->first_seq, books_page_last_seq(page), path,
                                      reterr);

    if (err == RON_ERR_OK)
        err = books_page_write(page, &books->order, books->options.vfs, path, reterr);
    if (err == RON_ERR_OK)
        err = put_run(books, view->epoch, path, 0, reterr);
    if (err != RON_ERR_OK)
        return err;
    rt_counter_add(&books->runs_written, 1);
    kept = page->first_seq;
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

/* Cursors in order of runs, and a tree of those that lost: the winner stands at 0, and who comes
 * next is known after as many comparisons as the tree is high. */
struct merger {
    struct books_cursor *cursors;
    size_t count;
    uint64_t keys[BOOKS_MERGE_MAX]; /* kind and first bits of the id */
    uint32_t losers[BOOKS_MERGE_MAX];
};

static void note_key(struct merger *merger, size_t i)
{
    const struct books_place *place = &merger->cursors[i].reader.posting.place;

    merger->keys[i] = merger->cursors[i].ended ? UINT64_MAX
                                               : (uint64_t)place->kind << 61 | place->high >> 3;
}

/* Those of one thread: the older run first, since its seqs are the smaller. */
static bool is_before(const struct merger *merger, uint32_t a, uint32_t b)
{
    int order;

    if (merger->keys[a] != merger->keys[b])
        return merger->keys[a] < merger->keys[b];
    if (merger->cursors[a].ended || merger->cursors[b].ended)
        return !merger->cursors[a].ended;
    order = books_thread_compare(&merger->cursors[a].reader.posting.place,
                                 &merger->cursors[b].reader.posting.place);
    return order != 0 ? order < 0 : a < b;
}

static void merger_begin(struct merger *merger)
{
    uint32_t winners[2 * BOOKS_MERGE_MAX];

    for (size_t i = 0; i < merger->count; i++) {
        note_key(merger, i);
        winners[merger->count + i] = (uint32_t)i;
    }
    for (size_t node = merger->count - 1; node > 0; node--) {
        const uint32_t a = winners[2 * node], b = winners[2 * node + 1];
        const bool first = is_before(merger, a, b);

        winners[node] = first ? a : b;
        merger->losers[node] = first ? b : a;
    }
    merger->losers[0] = winners[1];
}

/* The winner has moved on. */
static void merger_next(struct merger *merger)
{
    uint32_t winner = merger->losers[0];

    note_key(merger, winner);
    for (size_t node = (merger->count + winner) / 2; node > 0; node /= 2) {
        const uint32_t other = merger->losers[node];

        if (is_before(merger, other, winner)) {
            merger->losers[node] = winner;
            winner = other;
        }
    }
    merger->losers[0] = winner;
}

static enum ron_err merge_postings(struct ledger_books *books, struct rt_task *task,
                                   const struct books_view *view, size_t first_run,
                                   struct merger *merger, struct books_writer *writer,
                                   struct ron_errinfo *reterr) RON_BLOCKS
{
    struct books_cursor *first = NULL;
    struct pace pace = {rt_now_ns(), books_view_last_seq(view)};
    uint64_t looked = 0;
    enum ron_err err = RON_ERR_OK;

    for (size_t i = 0; err == RON_ERR_OK && i < merger->count; i++) {
        first = &merger->cursors[i];
        err = books_cursor_begin(first, view->runs[first_run + i], reterr);
    }
    if (err == RON_ERR_OK)
        merger_begin(merger);
    while (err == RON_ERR_OK && !(first = &merger->cursors[merger->losers[0]])->ended) {
        do { /* of one thread, as far as the page has it */
            err = books_writer_add(writer, &first->reader.posting, reterr);
            if (err == RON_ERR_OK && ++looked % STEP_POSTINGS == 0)
                err = pause_merge(books, task, &pace, reterr);
            if (err != RON_ERR_OK)
                return err;
            err = books_cursor_next(first, reterr);
        } while (err == RON_ERR_OK && !first->ended && !first->reader.opened);
        merger_next(merger);
    }
    if (err != RON_ERR_OK && err != RON_ERR_NO_MEMORY) /* of reading */
        books_report(books, view->epoch, first->run->head.first_seq);
    return err == RON_ERR_OK ? books_writer_end(writer, reterr) : err;
}

static enum ron_err write_merged(struct ledger_books *books, struct rt_task *task,
                                 const struct books_view *view, size_t first, const char *path,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    const size_t count = books->options.merge_runs;
    struct books_head head = view->runs[first + count - 1]->head;
    struct merger merger = {.cursors = ron_mem_alloc_array(count, sizeof(*merger.cursors)),
                            .count = count};
    struct books_writer *writer = NULL;
    uint64_t threads_max = 0;
    enum ron_err err;

    if (merger.cursors == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "merge %zu runs", count);
    head.first_seq = view->runs[first]->head.first_seq;
    head.first_batch = view->runs[first]->head.first_batch;
    for (size_t i = 0; i < count; i++)
        threads_max += view->runs[first + i]->head.threads_count;
    err = books_writer_new(books->options.vfs, path, &head, threads_max, NULL, &writer, reterr);
    if (err == RON_ERR_OK)
        err = merge_postings(books, task, view, first, &merger, writer, reterr);
    (void)books_writer_free(writer);
    (void)ron_mem_free(merger.cursors);
    return err;
}

static enum ron_err merge(struct ledger_books *books, struct rt_task *task,
                          const struct books_view *view, size_t first,
                          struct ron_errinfo *reterr) RON_BLOCKS
{
    const size_t count = books->options.merge_runs;
    const uint64_t last_seq = view->runs[first + count - 1]->head.last_seq;
    char path[BOOKS_PATH_SIZE];
    enum ron_err err = books_run_path(books, view->runs[first]->head.first_seq, last_seq, path,
                                      reterr);

    if (err == RON_ERR_OK)
        err = write_merged(books, task, view, first, path, reterr);
    if (err == RON_ERR_OK)
        err = put_run(books, view->epoch, path, count, reterr);
    if (err != RON_ERR_OK)
        return err;
    rt_counter_add(&books->runs_merged, 1);
    for (size_t i = 0; i < count; i++) /* else the next start does it */
        (void)!io_vfs_unlink(books->options.vfs, io_file_path(view->runs[first + i]->file), NULL);
    return RON_ERR_OK;
}

/* One piece of work; false: there is none. */
static bool keep_some(struct ledger_books *books, struct rt_task *task, enum ron_err *ret_err,
                      struct ron_errinfo *reterr) RON_BLOCKS
{
    struct books_view *view = books_view_take(books);
    size_t first = 0;
    bool busy = true;

    if (view->sealed != NULL)
        *ret_err = keep_page(books, view, reterr);
    else if (find_merge(books, view, &first))
        *ret_err = merge(books, task, view, first, reterr);
    else
        busy = false;
    (void)books_view_drop(view);
    return busy;
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
