/*
 * books.c - making, start and end of the books; names of threads. See books.h.
 */
#include "base/b3.h"
#include "ledger/books_impl.h"
#include "ledger/core_types.h"

struct ledger_thread ledger_account_thread(const struct ledger_id *account, uint32_t asset)
{
    return (struct ledger_thread){LEDGER_THREAD_ACCOUNT, asset, *account};
}

struct ledger_thread ledger_stream_thread(struct ron_slice stream)
{
    struct ledger_thread thread = {.kind = LEDGER_THREAD_STREAM};

    ron_b3_id16(RON_B3_DOMAIN("ron:stream:v1"), stream, (struct ron_slice){NULL, 0},
                thread.id.bytes);
    return thread;
}

struct ledger_thread ledger_kind_thread(uint16_t kind)
{
    struct ledger_thread thread = {.kind = LEDGER_THREAD_KIND};

    ron_store_le16(thread.id.bytes, kind);
    return thread;
}

struct ledger_thread ledger_holds_thread(const struct ledger_id *payer)
{
    return (struct ledger_thread){LEDGER_THREAD_HOLDS, 0, *payer};
}

static enum ron_err new_watch(const char *name, struct rt_watch **ret_watch,
                              struct ron_errinfo *reterr)
{
    const struct rt_watch_options options = {
        .name = name, .owner = "ledger", .value_size = sizeof(uint64_t)};
    const uint64_t none = 0;

    return rt_watch_new(&options, &none, ret_watch, reterr);
}

static enum ron_err init(struct ledger_books *books, struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = new_watch("books indexed", &books->indexed, reterr);

    if (err == RON_ERR_OK)
        err = new_watch("books kept", &books->kept, reterr);
    if (err == RON_ERR_OK)
        err = new_watch("books work", &books->work, reterr);
    if (err == RON_ERR_OK)
        err = books_view_begin(books, &(struct books_parts){NULL, 0, NULL, NULL}, reterr);
    return err;
}

enum ron_err ledger_books_new(const struct ledger_books_options *options,
                              struct ledger_books **ret_books, struct ron_errinfo *reterr)
{
    struct ledger_books *books = ron_mem_alloc(sizeof(*books));
    enum ron_err err;

    RON_ASSERT(options->page_entries <= LEDGER_BOOKS_PAGE_MAX);
    RON_ASSERT(options->merge_runs != 1);
    RON_ASSERT(options->merge_runs <= BOOKS_MERGE_MAX);
    if (books == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "the books");
    books->magic = BOOKS_MAGIC;
    books->options = *options;
    if (books->options.page_entries == 0)
        books->options.page_entries = LEDGER_BOOKS_PAGE;
    if (books->options.merge_runs == 0)
        books->options.merge_runs = BOOKS_MERGE_MAX;
    rt_lock_init(&books->lock, "books", RON_RANK_storage);
    err = init(books, reterr);
    if (err != RON_ERR_OK) {
        (void)ledger_books_free(books);
        return err;
    }
    *ret_books = books;
    return RON_ERR_OK;
}

struct ledger_books *ledger_books_free(struct ledger_books *books)
{
    if (books == NULL)
        return NULL;
    RON_ASSERT(books->magic == BOOKS_MAGIC);
    RON_ASSERT(books->follower == NULL);
    RON_ASSERT(books->keeper == NULL);
    books->magic = ~BOOKS_MAGIC;
    books->subscriber = rt_bus_unsubscribe(books->subscriber);
    (void)books_view_drop(books_view_last(books));
    books_shelf_fini(&books->shelf);
    books->order = books_order_free(books->order);
    books->indexed = rt_watch_free(books->indexed);
    books->kept = rt_watch_free(books->kept);
    books->work = rt_watch_free(books->work);
    rt_lock_fini(&books->lock);
    return ron_mem_free(books);
}

static void wake_keeper(void *argument)
{
    struct ledger_books *books = argument;

    rt_watch_close(books->work);
}

enum ron_err ledger_books_start(struct ledger_books *books, struct ron_errinfo *reterr)
{
    const struct rt_task_options follower = {.kind = "books",
                                             .name = "books follower",
                                             .owner = "ledger",
                                             .fn = books_follower_run,
                                             .argument = books};
    const struct rt_task_options keeper = {.kind = "books",
                                           .name = "books keeper",
                                           .owner = "ledger",
                                           .fn = books_keeper_run,
                                           .wake = wake_keeper,
                                           .argument = books};
    enum ron_err err;

    RON_ASSERT(books->magic == BOOKS_MAGIC);
    RON_ASSERT(books->follower == NULL);
    err = ledger_follow_roots(books->options.service, "books", &books->subscriber, reterr);
    if (err == RON_ERR_OK)
        err = rt_task_spawn(books->options.supervisor, &follower, &books->follower, reterr);
    if (err == RON_ERR_OK)
        err = rt_task_spawn(books->options.supervisor, &keeper, &books->keeper, reterr);
    return err;
}

static enum ron_err end_task(struct rt_task **task, struct rt_deadline deadline,
                             struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err result;
    enum ron_err err;

    if (*task == NULL)
        return RON_ERR_OK;
    err = rt_task_join(*task, deadline, &result, reterr);
    if (err == RON_ERR_OK)
        *task = NULL;
    return err;
}

enum ron_err ledger_books_stop(struct ledger_books *books, struct rt_deadline deadline,
                               struct ron_errinfo *reterr)
{
    enum ron_err err;

    RON_ASSERT(books->magic == BOOKS_MAGIC);
    rt_watch_close(books->indexed);
    if (books->follower != NULL)
        rt_task_cancel(books->follower);
    if (books->keeper != NULL)
        rt_task_cancel(books->keeper);
    err = end_task(&books->follower, deadline, reterr);
    return err == RON_ERR_OK ? end_task(&books->keeper, deadline, reterr) : err;
}

struct ledger_books_stats ledger_books_get_stats(struct ledger_books *books)
{
    struct books_view *view = books_view_take(books);
    struct ledger_books_stats stats = {
        .seq_indexed = books_view_last_seq(view),
        .runs_count = view->runs_count,
        .runs_written = rt_counter_load(&books->runs_written),
        .runs_merged = rt_counter_load(&books->runs_merged),
        .rebuilds_count = rt_counter_load(&books->rebuilds_count),
        .rest_owed_ns = rt_counter_load(&books->rest_owed_ns),
        .rested_ns = rt_counter_load(&books->rested_ns),
    };

    for (size_t i = 0; i < view->runs_count; i++) {
        stats.runs_bytes += view->runs[i]->file_size;
        stats.runs_memory += sizeof(*view->runs[i]) + view->runs[i]->resident_size;
    }
    if (view->sealed != NULL)
        stats.page_entries += books_page_entries(view->sealed);
    if (view->page != NULL)
        stats.page_entries += books_page_entries(view->page);
    (void)books_view_drop(view);
    return stats;
}
