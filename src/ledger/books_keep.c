/*
 * books_keep.c - the keeper: full pages become runs, eight runs of a level become one.
 *
 * A page goes first: the follower waits for its place. What fails is tried again; what was made for
 * an epoch that is over is removed.
 */
#include <stdio.h>

#include "ledger/books_impl.h"

enum { LOOK_POSTINGS = 4096 }; /* between two looks for a page, while merging */

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
        err = books_page_write(page, books->options.vfs, path, reterr);
    if (err == RON_ERR_OK)
        err = put_run(books, view->epoch, path, 0, reterr);
    if (err != RON_ERR_OK)
        return err;
    rt_counter_add(&books->runs_written, 1);
    kept = page->first_seq;
    rt_watch_set(books->kept, &kept);
    return RON_ERR_OK;
}

static unsigned level_of(const struct ledger_books *books, const struct books_run *run)
{
    const uint64_t entries = run->head.last_seq + 1 - run->head.first_seq;
    uint64_t size = (uint64_t)books->options.page_entries * BOOKS_MERGE / 2;
    unsigned level = 0;

    while (level < BOOKS_LEVELS && entries > size) {
        level++;
        size *= BOOKS_MERGE;
    }
    return level;
}

/* The first BOOKS_MERGE neighbours of one level that is not the last. */
static bool find_merge(const struct ledger_books *books, const struct books_view *view,
                       size_t *ret_first)
{
    size_t alike = 0;
    unsigned last = BOOKS_LEVELS;

    for (size_t i = 0; i < view->runs_count; i++) {
        const unsigned level = level_of(books, view->runs[i]);

        alike = level < BOOKS_LEVELS && level == last ? alike + 1 : 1;
        last = level;
        if (alike == BOOKS_MERGE) {
            *ret_first = i + 1 - BOOKS_MERGE;
            return true;
        }
    }
    return false;
}

/* The cursor with the first posting; NULL at the end of all. */
static struct books_cursor *first_of(struct books_cursor *cursors)
{
    struct books_cursor *first = NULL;

    for (size_t i = 0; i < BOOKS_MERGE; i++)
        if (!cursors[i].ended &&
            (first == NULL || books_place_compare(&cursors[i].reader.posting.place,
                                                  &first->reader.posting.place) < 0))
            first = &cursors[i];
    return first;
}

/* A page does not wait for the end of a merge. */
static enum ron_err look_for_page(struct ledger_books *books, struct rt_task *task,
                                  struct ron_errinfo *reterr) RON_BLOCKS
{
    struct books_view *view;
    enum ron_err err = RON_ERR_OK;

    if (rt_task_canceled(task))
        return ron_fail(reterr, RON_ERR_CANCELED, "the books are closing");
    view = books_view_take(books);
    if (view->sealed != NULL)
        err = keep_page(books, view, reterr);
    (void)books_view_drop(view);
    return err;
}

static enum ron_err merge_postings(struct ledger_books *books, struct rt_task *task,
                                   const struct books_view *view, size_t first_run,
                                   struct books_cursor *cursors, struct books_writer *writer,
                                   struct ron_errinfo *reterr) RON_BLOCKS
{
    struct books_cursor *first = NULL;
    enum ron_err err = RON_ERR_OK;
    size_t i;

    for (i = 0; err == RON_ERR_OK && i < BOOKS_MERGE; i++) {
        first = &cursors[i];
        err = books_cursor_begin(first, view->runs[first_run + i], reterr);
    }
    for (uint64_t n = 1; err == RON_ERR_OK && (first = first_of(cursors)) != NULL; n++) {
        err = books_writer_add(writer, &first->reader.posting, reterr);
        if (err == RON_ERR_OK && n % LOOK_POSTINGS == 0)
            err = look_for_page(books, task, reterr);
        if (err != RON_ERR_OK)
            return err;
        err = books_cursor_next(first, reterr);
    }
    if (err != RON_ERR_OK && err != RON_ERR_NO_MEMORY) /* of reading */
        books_report(books, view->epoch, first->run->head.first_seq);
    return err == RON_ERR_OK ? books_writer_end(writer, reterr) : err;
}

static enum ron_err write_merged(struct ledger_books *books, struct rt_task *task,
                                 const struct books_view *view, size_t first, const char *path,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    struct books_head head = view->runs[first + BOOKS_MERGE - 1]->head;
    struct books_cursor *cursors = ron_mem_alloc_array(BOOKS_MERGE, sizeof(*cursors));
    struct books_writer *writer = NULL;
    uint64_t threads_max = 0;
    enum ron_err err;

    if (cursors == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "merge runs");
    head.first_seq = view->runs[first]->head.first_seq;
    head.first_batch = view->runs[first]->head.first_batch;
    for (size_t i = 0; i < BOOKS_MERGE; i++)
        threads_max += view->runs[first + i]->head.threads_count;
    err = books_writer_new(books->options.vfs, path, &head, threads_max, &writer, reterr);
    if (err == RON_ERR_OK)
        err = merge_postings(books, task, view, first, cursors, writer, reterr);
    (void)books_writer_free(writer);
    (void)ron_mem_free(cursors);
    return err;
}

static enum ron_err merge(struct ledger_books *books, struct rt_task *task,
                          const struct books_view *view, size_t first,
                          struct ron_errinfo *reterr) RON_BLOCKS
{
    const uint64_t last_seq = view->runs[first + BOOKS_MERGE - 1]->head.last_seq;
    char path[BOOKS_PATH_SIZE];
    enum ron_err err = books_run_path(books, view->runs[first]->head.first_seq, last_seq, path,
                                      reterr);

    if (err == RON_ERR_OK)
        err = write_merged(books, task, view, first, path, reterr);
    if (err == RON_ERR_OK)
        err = put_run(books, view->epoch, path, BOOKS_MERGE, reterr);
    if (err != RON_ERR_OK)
        return err;
    rt_counter_add(&books->runs_merged, 1);
    for (size_t i = 0; i < BOOKS_MERGE; i++) /* else the next start does it */
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
