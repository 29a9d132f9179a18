/*
 * books_follow.c - the follower: finds the runs that are there, then adds what is committed.
 *
 * Reads the log, never the pipeline: whatever it does, commits go on. Its first act is to open the
 * runs that follow one another from the first entry and belong to this log; the rest is removed,
 * and read again from the log like everything newer.
 */
#include "io/durable.h"
#include "ledger/books_impl.h"

enum { NAME_SIZE = 16 + 1 + 16 + 4, PUBLISH_ENTRIES = 1024 };

void books_complain(struct ledger_books *books, const char *what, const struct ron_errinfo *info)
{
    if (rt_atomic_exchange_u32(&books->complained, 1) == 0)
        rt_log(books->options.log, RT_LOG_WARN, "the books fall behind", rt_log_text("what", what),
               rt_log_info(info));
}

/* ---- Finding runs ---- */

struct range {
    uint64_t first_seq, last_seq;
};
struct found {
    struct range *ranges;
    size_t count, max;
    bool failed;
};

static bool parse_hex(const char *text, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (size_t i = 0; i < 16; i++) {
        const char c = text[i];

        if ((c < '0' || c > '9') && (c < 'a' || c > 'f'))
            return false;
        value = value << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    *ret_value = value;
    return true;
}

static bool find_name(void *context, const char *name, bool is_dir)
{
    struct found *found = context;
    struct range range;

    if (is_dir || strlen(name) != NAME_SIZE || name[16] != '-' ||
        memcmp(name + 33, ".run", 4) != 0 || !parse_hex(name, &range.first_seq) ||
        !parse_hex(name + 17, &range.last_seq))
        return true;
    if (found->count == found->max) {
        size_t max = found->max == 0 ? 64 : found->max * 2;
        void *larger = ron_mem_resize(found->ranges, max * sizeof(*found->ranges));

        found->failed = larger == NULL;
        if (found->failed)
            return false;
        found->ranges = larger;
        found->max = max;
    }
    found->ranges[found->count++] = range;
    return true;
}

/* Is it the run of this log, behind batch_before? RON_ERR_CONFLICT if not. */
static enum ron_err check_run(struct ledger_books *books, const struct books_head *head,
                              const struct range *range, uint64_t batch_before,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_frame frame;
    struct ron_buf buf;
    enum ron_err err;

    if (head->first_seq != range->first_seq || head->last_seq != range->last_seq ||
        head->first_batch != batch_before + 1 ||
        head->last_batch > ledger_read_head(books->options.service).batch)
        return ron_fail(reterr, RON_ERR_CONFLICT, "a run of another log");
    ron_buf_init(&buf, RON_ALLOCATION_SIZE_MAX);
    err = ledger_read_batch(books->options.service, head->last_batch, &buf, reterr);
    if (err == RON_ERR_OK)
        err = ledger_frame_decode(ron_buf_slice(&buf), &frame, reterr);
    if (err == RON_ERR_OK && (frame.seq_start + frame.entries_count - 1 != head->last_seq ||
                              memcmp(frame.root.bytes, head->root.bytes, RON_SHA256_SIZE) != 0))
        err = ron_fail(reterr, RON_ERR_CONFLICT, "a run of another log");
    ron_buf_fini(&buf);
    return err;
}

/* Open the longest sound run that begins at first_seq. RON_ERR_NOT_FOUND: there is none. */
static enum ron_err open_next(struct ledger_books *books, struct found *found, uint64_t first_seq,
                              uint64_t batch_before, struct books_run **ret_run,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    for (;;) {
        struct range *longest = NULL;
        struct books_run *run = NULL;
        char path[BOOKS_PATH_SIZE];
        enum ron_err err;

        for (size_t i = 0; i < found->count; i++)
            if (found->ranges[i].first_seq == first_seq &&
                (longest == NULL || found->ranges[i].last_seq > longest->last_seq))
                longest = &found->ranges[i];
        if (longest == NULL)
            return ron_fail(reterr, RON_ERR_NOT_FOUND, "no run begins at %llu",
                            (unsigned long long)first_seq);
        err = books_run_path(books, longest->first_seq, longest->last_seq, path, reterr);
        if (err == RON_ERR_OK)
            err = books_run_open(books->options.vfs, path, &run, reterr);
        if (err == RON_ERR_OK)
            err = check_run(books, &run->head, longest, batch_before, reterr);
        if (err == RON_ERR_OK) {
            longest->first_seq = 0; /* it has its place */
            *ret_run = run;
            return RON_ERR_OK;
        }
        (void)books_run_drop(run);
        if (err == RON_ERR_NO_MEMORY || err == RON_ERR_NOT_READY)
            return err;
        (void)!io_vfs_unlink(books->options.vfs, path, NULL);
        longest->first_seq = 0;
    }
}

static enum ron_err open_runs(struct ledger_books *books, struct found *found,
                              struct books_run **runs, size_t *runs_count,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t next_seq = 1, batch_before = 0;
    char path[BOOKS_PATH_SIZE];
    enum ron_err err;

    for (;;) {
        struct books_run *run = NULL;

        err = open_next(books, found, next_seq, batch_before, &run, reterr);
        if (err != RON_ERR_OK)
            break;
        runs[(*runs_count)++] = run;
        next_seq = run->head.last_seq + 1;
        batch_before = run->head.last_batch;
    }
    if (err != RON_ERR_NOT_FOUND)
        return err;
    for (size_t i = 0; i < found->count; i++)
        if (found->ranges[i].first_seq != 0 &&
            books_run_path(books, found->ranges[i].first_seq, found->ranges[i].last_seq, path,
                           NULL) == RON_ERR_OK)
            (void)!io_vfs_unlink(books->options.vfs, path, NULL);
    books->next_batch = batch_before + 1;
    return RON_ERR_OK;
}

static void publish(struct ledger_books *books, uint64_t seq)
{
    const uint64_t value = seq + 1;

    rt_watch_set(books->indexed, &value);
}

static enum ron_err find_runs(struct ledger_books *books, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct found found = {.count = 0};
    struct books_run **runs = NULL;
    size_t runs_count = 0;
    enum ron_err err = io_durable_dir(books->options.vfs, books->options.dir, reterr);

    if (err == RON_ERR_OK)
        err = io_vfs_list(books->options.vfs, books->options.dir, find_name, &found, reterr);
    if (err == RON_ERR_OK) {
        runs = ron_mem_alloc_array(found.count + 1, sizeof(struct books_run *));
        if (found.failed || runs == NULL)
            err = ron_fail(reterr, RON_ERR_NO_MEMORY, "a list of runs");
        else
            err = open_runs(books, &found, runs, &runs_count, reterr);
    }
    if (err == RON_ERR_OK)
        err = books_view_begin(books, &(struct books_parts){runs, runs_count, NULL, NULL}, reterr);
    if (err == RON_ERR_OK)
        publish(books, runs_count > 0 ? runs[runs_count - 1]->head.last_seq : 0);
    for (size_t i = 0; i < runs_count; i++)
        (void)books_run_drop(runs[i]); /* the view has its own */
    (void)ron_mem_free(runs);
    (void)ron_mem_free(found.ranges);
    return err;
}

/* A run is damaged: throw it and everything newer away; the log has it. */
static enum ron_err begin_again(struct ledger_books *books, uint64_t seq,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    struct books_view *view = books_view_take(books);
    size_t kept = 0;
    enum ron_err err;

    rt_log(books->options.log, RT_LOG_WARN, "a run of the books is damaged: read the log again",
           rt_log_u64("from_seq", seq));
    while (kept < view->runs_count && view->runs[kept]->head.last_seq < seq)
        kept++;
    err = books_view_begin(books, &(struct books_parts){view->runs, kept, NULL, NULL}, reterr);
    if (err == RON_ERR_OK) {
        for (size_t i = kept; i < view->runs_count; i++)
            (void)!io_vfs_unlink(books->options.vfs, io_file_path(view->runs[i]->file), NULL);
        books->page = NULL;
        books->next_batch = kept > 0 ? view->runs[kept - 1]->head.last_batch + 1 : 1;
        rt_counter_add(&books->rebuilds_count, 1);
        publish(books, kept > 0 ? view->runs[kept - 1]->head.last_seq : 0);
    }
    (void)books_view_drop(view);
    return err;
}

/* ---- Following ---- */

struct following {
    struct ledger_books *books;
    uint64_t last; /* batch of this reading */
    bool room;     /* a full page may be turned */
    bool full;     /* it must be, and there is no room */
    uint64_t published;
};

static enum ron_err turn_page(struct ledger_books *books, const struct ledger_frame *frame,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    const uint32_t entries = books->options.page_entries;
    const uint32_t needed = books_frame_records(frame);
    const uint32_t usual = entries * BOOKS_ENTRY_RECORDS;
    struct books_page *page = NULL;
    enum ron_err err = books_shelf_page(&books->shelf, needed > usual ? needed : usual, entries,
                                        frame, &page, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = books_view_turn(books, page, reterr);
    if (err == RON_ERR_OK) {
        const uint64_t seq = frame->seq_start;

        books->page = page;
        rt_watch_set(books->work, &seq);
    }
    (void)books_page_drop(page); /* the view has its own */
    return err;
}

static enum ron_err follow_frame(void *context, uint64_t number, struct ron_slice bytes,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    struct following *following = context;
    struct ledger_books *books = following->books;
    struct ledger_frame frame;
    uint64_t last_seq;
    enum ron_err err = ledger_frame_decode(bytes, &frame, reterr);

    if (err != RON_ERR_OK)
        return err;
    if (frame.batch != number)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "batch %llu is at place %llu",
                        (unsigned long long)frame.batch, (unsigned long long)number);
    if (books->page == NULL || !books_page_fits(books->page, &frame) ||
        books_page_entries(books->page) >= books->options.page_entries) {
        following->full = !following->room;
        if (following->full)
            return ron_fail(reterr, RON_ERR_BUSY, "the page before is not written yet");
        err = turn_page(books, &frame, reterr);
        if (err != RON_ERR_OK)
            return err;
        following->room = false;
    }
    books_page_add(books->page, &frame);
    books->next_batch = number + 1;
    last_seq = books_page_last_seq(books->page);
    if (number == following->last || last_seq - following->published >= PUBLISH_ENTRIES) {
        following->published = last_seq;
        publish(books, last_seq);
    }
    return RON_ERR_OK;
}

/* May the page be turned now? */
static bool has_room(struct ledger_books *books) RON_BLOCKS
{
    struct books_view *view = books_view_take(books);
    const bool room = view->sealed == NULL;

    (void)books_view_drop(view);
    return room;
}

static enum ron_err follow_some(struct ledger_books *books, uint64_t head_batch,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t version = rt_watch_get(books->kept, NULL);
    struct following following = {
        .books = books,
        .last = head_batch - books->next_batch < BOOKS_FOLLOW_BATCHES
                    ? head_batch
                    : books->next_batch + BOOKS_FOLLOW_BATCHES - 1,
        .room = has_room(books),
        .published = books->page == NULL ? 0 : books_page_last_seq(books->page),
    };
    enum ron_err err = ledger_service_read_each(books->options.service, books->next_batch,
                                                following.last, follow_frame, &following, reterr);

    if (books->page != NULL && books_page_last_seq(books->page) != following.published)
        publish(books, books_page_last_seq(books->page));
    if (!following.full)
        return err;
    /* Readers may find damage meanwhile: look for it, too. */
    err = rt_watch_wait(books->kept, version, rt_deadline_after_ms(BOOKS_LOOK_MS), NULL, &version,
                        reterr);
    return err == RON_ERR_TIMEOUT ? RON_ERR_OK : err;
}

/* Everything that is committed now. */
static enum ron_err catch_up(struct ledger_books *books, struct rt_task *task,
                             struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = RON_ERR_OK;
    uint64_t seq = 0;

    if (!books->opened) {
        err = ledger_service_await_start(books->options.service,
                                         rt_deadline_after_ms(BOOKS_LOOK_MS), reterr);
        if (err == RON_ERR_TIMEOUT)
            return RON_ERR_OK;
        if (err == RON_ERR_OK)
            err = find_runs(books, reterr);
        books->opened = err == RON_ERR_OK;
    }
    while (err == RON_ERR_OK && books->opened && !rt_task_canceled(task)) {
        const uint64_t head_batch = ledger_read_head(books->options.service).batch;

        rt_task_beat(task);
        if (books_damaged(books, &seq))
            err = begin_again(books, seq, reterr);
        else if (books->next_batch <= head_batch)
            err = follow_some(books, head_batch, reterr);
        else
            break;
    }
    return err;
}

enum ron_err books_follower_run(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct ledger_books *books = argument;
    struct ron_errinfo info;

    while (!rt_task_canceled(task)) {
        enum ron_err err = catch_up(books, task, &info);

        if (err != RON_ERR_OK && err != RON_ERR_CANCELED) {
            books_complain(books, "the log cannot be followed", &info);
            (void)!rt_task_sleep(task, rt_deadline_after_ms(BOOKS_RETRY_MS));
            continue;
        }
        rt_atomic_store_u32(&books->complained, 0);
        if (rt_task_sleep(task, rt_deadline_after_ms(BOOKS_PACE_MS)))
            break;
        err = rt_bus_skip(books->subscriber, rt_deadline_after_ms(BOOKS_LOOK_MS), NULL);
        if (err == RON_ERR_CANCELED && rt_task_sleep(task, rt_deadline_after_ms(BOOKS_LOOK_MS)))
            break; /* the service has ended, but may be asked to the last */
    }
    return RON_ERR_CANCELED;
}
