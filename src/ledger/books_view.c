/*
 * books_view.c - what questions are asked of, and putting a new one in its place. See books_impl.h.
 */
#include "ledger/books_impl.h"

static void books_lock(struct ledger_books *books) RON_LOCKS(storage)
{
    rt_lock_take(&books->lock);
}
static void books_unlock(struct ledger_books *books) RON_UNLOCKS(storage)
{
    rt_lock_drop(&books->lock);
}

struct books_view *books_view_take(struct ledger_books *books)
{
    struct books_view *view;

    books_lock(books);
    view = books->view;
    (void)rt_atomic_add_u32(&view->refs_count, 1);
    books_unlock(books);
    return view;
}

struct books_view *books_view_last(struct ledger_books *books)
{
    struct books_view *view;

    books_lock(books);
    view = books->view;
    books->view = NULL;
    books_unlock(books);
    return view;
}

struct books_view *books_view_drop(struct books_view *view)
{
    rt_assert_no_lock_held();
    if (view == NULL || rt_atomic_sub_u32(&view->refs_count, 1) > 1)
        return NULL;
    for (size_t i = 0; i < view->runs_count; i++)
        (void)books_run_drop(view->runs[i]);
    (void)books_page_drop(view->sealed);
    (void)books_page_drop(view->page);
    return ron_mem_free(view);
}

uint64_t books_view_last_seq(const struct books_view *view)
{
    if (view->page != NULL)
        return books_page_last_seq(view->page);
    if (view->sealed != NULL)
        return books_page_last_seq(view->sealed);
    return view->runs_count > 0 ? view->runs[view->runs_count - 1]->head.last_seq : 0;
}

static struct books_page *share_page(struct books_page *page)
{
    if (page != NULL)
        (void)rt_atomic_add_u32(&page->refs_count, 1);
    return page;
}

static struct books_view *view_new(uint64_t epoch, const struct books_parts *parts)
{
    struct books_view *view = ron_mem_alloc(sizeof(*view) +
                                            parts->runs_count * sizeof(view->runs[0]));

    if (view == NULL)
        return NULL;
    rt_atomic_store_u32(&view->refs_count, 1);
    view->epoch = epoch;
    view->sealed = share_page(parts->sealed);
    view->page = share_page(parts->page);
    view->runs_count = parts->runs_count;
    for (size_t i = 0; i < parts->runs_count; i++) {
        view->runs[i] = parts->runs[i];
        (void)rt_atomic_add_u32(&view->runs[i]->refs_count, 1);
    }
    return view;
}

enum ron_err books_view_of_runs(const struct books_view *view, size_t first, size_t count,
                                struct books_view **ret_runs, struct ron_errinfo *reterr)
{
    RON_ASSERT(count > 0 && first + count <= view->runs_count);
    *ret_runs = view_new(view->epoch,
                         &(struct books_parts){.runs = view->runs + first, .runs_count = count});
    return *ret_runs != NULL ? RON_ERR_OK
                             : ron_fail(reterr, RON_ERR_NO_MEMORY, "a view of %zu runs", count);
}

enum ron_err books_view_begin(struct ledger_books *books, const struct books_parts *parts,
                              struct ron_errinfo *reterr)
{
    struct books_view *old, *view;

    books_lock(books);
    old = books->view;
    view = view_new(old == NULL ? 1 : old->epoch + 1, parts);
    if (view != NULL)
        books->view = view;
    books_unlock(books);
    if (view == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a view of the books");
    (void)books_view_drop(old);
    return RON_ERR_OK;
}

enum ron_err books_view_turn(struct ledger_books *books, struct books_page *page,
                             struct ron_errinfo *reterr)
{
    struct books_view *old, *view;
    struct books_parts parts;

    books_lock(books);
    old = books->view;
    RON_ASSERT(old->page == NULL || old->sealed == NULL);
    parts = (struct books_parts){old->runs, old->runs_count,
                                 old->page != NULL ? old->page : old->sealed, page};
    view = view_new(old->epoch, &parts);
    if (view != NULL)
        books->view = view;
    books_unlock(books);
    if (view == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a view of the books");
    (void)books_view_drop(old);
    return RON_ERR_OK;
}

/* The runs of `old` with `count` of them, or the sealed page, replaced; NULL: no memory. */
static struct books_view *view_with_run(const struct books_view *old, struct books_run *run,
                                        size_t count)
{
    struct books_run **runs = ron_mem_alloc_array(old->runs_count + 1, sizeof(struct books_run *));
    struct books_parts parts = {runs, 0, count == 0 ? NULL : old->sealed, old->page};
    struct books_view *view;

    if (runs == NULL)
        return NULL;
    for (size_t i = 0; i < old->runs_count; i++) {
        if (count > 0 && old->runs[i]->head.first_seq == run->head.first_seq) {
            runs[parts.runs_count++] = run;
            i += count - 1;
        } else {
            runs[parts.runs_count++] = old->runs[i];
        }
    }
    if (count == 0)
        runs[parts.runs_count++] = run;
    view = view_new(old->epoch, &parts);
    (void)ron_mem_free(runs);
    return view;
}

enum ron_err books_view_put_run(struct ledger_books *books, uint64_t epoch, struct books_run *run,
                                size_t count, struct ron_errinfo *reterr)
{
    struct books_view *old, *view = NULL;
    bool conflict;

    books_lock(books);
    old = books->view;
    conflict = old->epoch != epoch;
    if (!conflict)
        view = view_with_run(old, run, count);
    if (view != NULL)
        books->view = view;
    books_unlock(books);
    if (conflict)
        return ron_fail(reterr, RON_ERR_CONFLICT, "the books began again");
    if (view == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a view of the books");
    (void)books_view_drop(old);
    return RON_ERR_OK;
}

void books_report(struct ledger_books *books, uint64_t epoch, uint64_t seq)
{
    books_lock(books);
    if (epoch == books->view->epoch &&
        (books->damaged_epoch != epoch || seq < books->damaged_seq)) {
        books->damaged_epoch = epoch;
        books->damaged_seq = seq;
    }
    books_unlock(books);
}

bool books_damaged(struct ledger_books *books, uint64_t *ret_seq)
{
    bool damaged;

    books_lock(books);
    damaged = books->damaged_epoch == books->view->epoch;
    if (damaged)
        *ret_seq = books->damaged_seq;
    books_unlock(books);
    return damaged;
}
