/*
 * books_ask.c - questions: wait until the books are as far as the log, take a view, ask its parts.
 *
 * A part that is damaged is never believed: it is reported, and the question is asked again when
 * the follower has begun again there.
 */
#include "ledger/books_impl.h"

/* The runs are open, and in the books is what was committed when that was known. */
static enum ron_err wait_open(struct ledger_books *books, struct rt_deadline deadline,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t value = 0;
    uint64_t version = rt_watch_get(books->indexed, &value);
    enum ron_err err = RON_ERR_OK;

    while (err == RON_ERR_OK && value == 0)
        err = rt_watch_wait(books->indexed, version, deadline, &value, &version, reterr);
    return err;
}

enum ron_err books_ask(struct ledger_books *books, struct rt_deadline deadline, books_ask_fn *fn,
                       void *question, struct ron_errinfo *reterr)
{
    enum ron_err err;
    uint64_t head_seq;

    rt_assert_no_lock_held();
    RON_ASSERT(books->magic == BOOKS_MAGIC);
    err = wait_open(books, deadline, reterr);
    head_seq = ledger_read_head(books->options.service).seq;
    while (err == RON_ERR_OK) {
        uint64_t version = rt_watch_get(books->indexed, NULL);
        struct books_view *view = books_view_take(books);
        uint64_t damaged = 0;

        if (books_view_last_seq(view) >= head_seq) {
            err = fn(books, view, question, &damaged, reterr);
            if (damaged == 0) {
                (void)books_view_drop(view);
                return err;
            }
            books_report(books, view->epoch, damaged);
        }
        (void)books_view_drop(view);
        err = rt_watch_wait(books->indexed, version, deadline, NULL, &version, reterr);
    }
    return err;
}

/* Whatever a run cannot answer but for want of memory is its fault. */
static enum ron_err blame(const struct books_run *run, enum ron_err err, uint64_t *ret_damaged)
{
    if (err != RON_ERR_OK && err != RON_ERR_NO_MEMORY)
        *ret_damaged = run->head.first_seq;
    return err;
}

/* ---- Threads ---- */

/* Both in order; at most seqs_max of their union stay in seqs. */
static size_t join_seqs(uint64_t *seqs, size_t count, const uint64_t *more, size_t more_count,
                        bool newest_first, size_t seqs_max, uint64_t *scratch)
{
    size_t a = 0, b = 0, joined = 0;

    while (joined < seqs_max && (a < count || b < more_count)) {
        bool first = b == more_count || (a < count && (seqs[a] < more[b]) != newest_first);

        scratch[joined++] = first ? seqs[a++] : more[b++];
    }
    memcpy(seqs, scratch, joined * sizeof(*seqs));
    return joined;
}

/* Of every asset: those of each, one after the other. */
static enum ron_err run_all_seqs(struct books_run *run, const struct ledger_thread *thread,
                                 uint64_t after, bool newest_first, uint64_t *seqs, size_t seqs_max,
                                 size_t *ret_count, struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t *more = ron_mem_alloc_array(2 * seqs_max, sizeof(*more));
    struct ledger_thread one = *thread;
    size_t count = 0;
    enum ron_err err = RON_ERR_OK;

    if (more == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%zu seqs", seqs_max);
    for (;;) {
        size_t more_count = 0;

        if (one.asset == UINT32_MAX)
            break;
        err = books_run_next_asset(run, &thread->id, one.asset + 1, &one.asset, reterr);
        if (err != RON_ERR_OK || one.asset == 0)
            break;
        err = books_run_seqs(run, &one, after, newest_first, more, seqs_max, &more_count, reterr);
        if (err != RON_ERR_OK)
            break;
        count = join_seqs(seqs, count, more, more_count, newest_first, seqs_max, more + seqs_max);
    }
    (void)ron_mem_free(more);
    if (err == RON_ERR_OK)
        *ret_count = count;
    return err;
}

static enum ron_err run_seqs(struct books_run *run, const struct ledger_thread *thread,
                             uint64_t after, bool newest_first, uint64_t *seqs, size_t seqs_max,
                             size_t *ret_count, struct ron_errinfo *reterr) RON_BLOCKS
{
    *ret_count = 0;
    if (newest_first ? run->head.first_seq >= after : run->head.last_seq <= after)
        return RON_ERR_OK;
    if (!books_run_may_have(run, thread))
        return RON_ERR_OK;
    return (thread->kind == LEDGER_THREAD_ACCOUNT && thread->asset == 0 ? run_all_seqs
                                                                        : books_run_seqs)(
        run, thread, after, newest_first, seqs, seqs_max, ret_count, reterr);
}

enum ron_err books_view_seqs(struct books_view *view, const struct ledger_thread *thread,
                             uint64_t after, bool newest_first, uint64_t *seqs, size_t seqs_max,
                             size_t *ret_count, uint64_t *ret_damaged, struct ron_errinfo *reterr)
{
    const size_t parts = view->runs_count + 2; /* in order of age */
    size_t count = 0;

    for (size_t i = 0; i < parts && count < seqs_max; i++) {
        const size_t part = newest_first ? parts - 1 - i : i;
        size_t some = 0;

        if (part < view->runs_count) {
            struct books_run *run = view->runs[part];
            enum ron_err err = run_seqs(run, thread, after, newest_first, seqs + count,
                                        seqs_max - count, &some, reterr);

            if (err != RON_ERR_OK)
                return blame(run, err, ret_damaged);
        } else {
            const struct books_page *page = part == view->runs_count ? view->sealed : view->page;

            if (page != NULL)
                some = books_page_seqs(page, thread, after, newest_first, seqs + count,
                                       seqs_max - count);
        }
        count += some;
    }
    *ret_count = count;
    return RON_ERR_OK;
}

struct thread_question {
    const struct ledger_thread *thread;
    uint64_t after;
    bool newest_first;
    uint64_t *seqs;
    size_t seqs_max, count;
};

static enum ron_err ask_thread(struct ledger_books *books, struct books_view *view, void *question,
                               uint64_t *ret_damaged, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct thread_question *q = question;

    (void)books;
    return books_view_seqs(view, q->thread, q->after, q->newest_first, q->seqs, q->seqs_max,
                           &q->count, ret_damaged, reterr);
}

enum ron_err ledger_books_thread(struct ledger_books *books, const struct ledger_thread *thread,
                                 uint64_t after, bool newest_first, struct rt_deadline deadline,
                                 uint64_t *seqs, size_t seqs_max, size_t *ret_count,
                                 struct ron_errinfo *reterr)
{
    struct thread_question question = {thread,
                                       after,
                                       newest_first,
                                       seqs,
                                       seqs_max < LEDGER_BOOKS_SEQS_MAX ? seqs_max
                                                                        : LEDGER_BOOKS_SEQS_MAX,
                                       0};
    enum ron_err err = books_ask(books, deadline, ask_thread, &question, reterr);

    if (err == RON_ERR_OK)
        *ret_count = question.count;
    return err;
}

/* ---- Batches and balances ---- */

enum ron_err books_view_batch(struct books_view *view, uint64_t seq, uint64_t *ret_batch,
                              uint64_t *ret_damaged, struct ron_errinfo *reterr)
{
    const struct ledger_thread starts = {.kind = LEDGER_THREAD_BATCHES};
    size_t first = 0, count = view->runs_count;
    struct books_sum sum;
    struct books_run *run;
    enum ron_err err;

    if (seq == 0 || seq > books_view_last_seq(view))
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "entry %llu is not committed",
                        (unsigned long long)seq);
    if (view->page != NULL && seq >= view->page->first_seq) {
        *ret_batch = books_page_batch(view->page, seq);
        return RON_ERR_OK;
    }
    if (view->sealed != NULL && seq >= view->sealed->first_seq) {
        *ret_batch = books_page_batch(view->sealed, seq);
        return RON_ERR_OK;
    }
    while (count > 0) { /* the runs that end before it */
        const size_t half = count / 2;
        const bool before = view->runs[first + half]->head.last_seq < seq;

        first = before ? first + half + 1 : first;
        count = before ? count - half - 1 : half;
    }
    RON_ASSERT(first < view->runs_count);
    run = view->runs[first];
    err = books_run_sum(run, &starts, seq, &sum, reterr);
    if (err == RON_ERR_OK && sum.count == 0)
        err = ron_fail(reterr, RON_ERR_WAL_CORRUPT, "a run without batches");
    if (err != RON_ERR_OK)
        return blame(run, err, ret_damaged);
    *ret_batch = run->head.first_batch + sum.count - 1;
    return RON_ERR_OK;
}

/* One run's part: the asset's sum, and the nonces of all. */
static enum ron_err run_balance(struct books_run *run, const struct ledger_thread *thread,
                                uint64_t at_seq, struct books_sum *total,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_thread one = *thread;
    uint32_t asset = 0;
    enum ron_err err;

    while (asset < UINT32_MAX) {
        struct books_sum sum = {.count = 0};

        err = books_run_next_asset(run, &one.id, asset + 1, &asset, reterr);
        if (err != RON_ERR_OK || asset == 0)
            return err;
        one.asset = asset;
        err = books_run_sum(run, &one, at_seq, &sum, reterr);
        if (err != RON_ERR_OK)
            return err;
        if (asset == thread->asset)
            books_sum_join(total, &sum);
        else
            total->count += sum.count;
    }
    return RON_ERR_OK;
}

/* Pages of runs lie apart, and most were never read: the disk is asked for those of all runs at
 * once. */
static void fetch_balance(struct books_view *view, const struct ledger_thread *thread,
                          uint64_t at_seq) RON_BLOCKS
{
    for (size_t i = 0; i < view->runs_count && view->runs[i]->head.first_seq <= at_seq; i++)
        if (books_run_may_have(view->runs[i], thread))
            books_run_fetch(view->runs[i], thread, at_seq);
}

enum ron_err books_view_balance(struct books_view *view, const struct ledger_thread *thread,
                                uint64_t at_seq, struct books_sum *ret_sum, uint64_t *ret_damaged,
                                struct ron_errinfo *reterr)
{
    const struct books_page *pages[] = {view->sealed, view->page};
    struct books_sum total = {.count = 0};

    if (at_seq > books_view_last_seq(view))
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "entry %llu is not committed",
                        (unsigned long long)at_seq);
    fetch_balance(view, thread, at_seq);
    for (size_t i = 0; i < view->runs_count && view->runs[i]->head.first_seq <= at_seq; i++) {
        enum ron_err err = RON_ERR_OK;

        if (books_run_may_have(view->runs[i], thread))
            err = run_balance(view->runs[i], thread, at_seq, &total, reterr);
        if (err != RON_ERR_OK)
            return blame(view->runs[i], err, ret_damaged);
    }
    for (size_t i = 0; i < RON_ARRAY_COUNT(pages); i++) {
        struct books_sum sum;

        if (pages[i] == NULL || pages[i]->first_seq > at_seq)
            continue;
        books_page_sum(pages[i], thread, at_seq, &sum);
        books_sum_join(&total, &sum);
    }
    *ret_sum = total;
    return RON_ERR_OK;
}

struct balance_question {
    struct ledger_thread thread;
    uint64_t at_seq;
    struct books_sum sum;
};

static enum ron_err ask_balance(struct ledger_books *books, struct books_view *view, void *question,
                                uint64_t *ret_damaged, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct balance_question *q = question;

    (void)books;
    return books_view_balance(view, &q->thread, q->at_seq, &q->sum, ret_damaged, reterr);
}

enum ron_err ledger_books_balance(struct ledger_books *books, const struct ledger_id *account,
                                  uint32_t asset, uint64_t at_seq, struct rt_deadline deadline,
                                  struct ledger_balance *ret_balance, struct ron_errinfo *reterr)
{
    struct balance_question question = {.thread = ledger_account_thread(account, asset),
                                        .at_seq = at_seq};
    struct books_sum *sum = &question.sum;
    enum ron_err err = books_ask(books, deadline, ask_balance, &question, reterr);
    const bool negative = sum->high < 0;

    if (err != RON_ERR_OK)
        return err;
    /* The account of a Mint counts what was issued: a debit raises it (core_limits.c). */
    *ret_balance = (struct ledger_balance){
        .amount = {negative ? -sum->low : sum->low},
        .negative = sum->mint ? !negative && sum->low != 0 : negative,
        .next_nonce = sum->count + 1,
        .as_of_seq = at_seq,
    };
    return RON_ERR_OK;
}
