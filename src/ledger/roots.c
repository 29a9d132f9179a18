/*
 * roots.c - published roots: the head for whoever asks, a broadcast for whoever follows, and the
 * newest ones kept for readers of `roots since`.
 *
 * The Committer puts them into the ring, sets the head and broadcasts, group by group, so whoever
 * has an answer finds its root; the RootsPublisher follows the broadcast and tells the service's
 * follower each group's head. Roots older than the ring are in the log.
 */
#include "base/mem.h"
#include "ledger/follow.h"

enum { ROOTS_AT_ONCE = 64 };
enum { REST_MS = 2000 }; /* without a new head: then the last one is made durable */

static void roots_lock(struct roots *roots) RON_LOCKS(storage)
{
    rt_lock_take(&roots->lock);
}
static void roots_unlock(struct roots *roots) RON_UNLOCKS(storage)
{
    rt_lock_drop(&roots->lock);
}

enum ron_err roots_init(struct ledger_service *service, struct ron_errinfo *reterr)
{
    struct roots *roots = &service->roots;
    const struct rt_bus_options bus_options = {.name = "roots",
                                               .owner = "ledger",
                                               .capacity = service->options.roots_max,
                                               .message_size = sizeof(struct ledger_root)};
    const struct rt_watch_options head_options = {
        .name = "head", .owner = "ledger", .value_size = sizeof(struct ledger_root)};
    const struct ledger_root none = {.root = ron_merkle_empty};
    enum ron_err err;

    roots->ring = ron_mem_alloc_array(service->options.roots_max, sizeof(roots->ring[0]));
    roots->ring_max = service->options.roots_max;
    if (roots->ring == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a ring of %u roots", roots->ring_max);
    err = rt_bus_new(&bus_options, &roots->bus, reterr);
    if (err == RON_ERR_OK)
        err = rt_bus_subscribe(roots->bus, "roots publisher", &roots->subscriber, reterr);
    if (err == RON_ERR_OK)
        err = rt_watch_new(&head_options, &none, &roots->head, reterr);
    return err;
}

void roots_fini(struct ledger_service *service)
{
    struct roots *roots = &service->roots;

    roots->subscriber = rt_bus_unsubscribe(roots->subscriber);
    roots->bus = rt_bus_free(roots->bus);
    roots->head = rt_watch_free(roots->head);
    roots->ring = ron_mem_free(roots->ring);
    rt_lock_fini(&roots->lock);
}

/* After a snapshot the first batch is not the next one: the ring begins with it. */
static void ring_add(struct roots *roots, const struct ledger_root *items, size_t items_count)
{
    roots_lock(roots);
    for (const struct ledger_root *root = items; root < items + items_count; root++) {
        if (roots->ring_last + 1 != root->batch)
            roots->ring_first = root->batch;
        roots->ring[root->batch % roots->ring_max] = *root;
        roots->ring_last = root->batch;
        if (roots->ring_last - roots->ring_first >= roots->ring_max)
            roots->ring_first = roots->ring_last - roots->ring_max + 1;
    }
    roots_unlock(roots);
}

void roots_publish(struct ledger_service *service, const struct ledger_root *roots,
                   size_t roots_count)
{
    if (roots_count == 0)
        return;
    ring_add(&service->roots, roots, roots_count);
    rt_watch_set(service->roots.head, &roots[roots_count - 1]);
    /* Closed only if the drain was cut short: the head and the ring have them. */
    (void)!rt_bus_publish_many(service->roots.bus, roots, roots_count, NULL);
    ledger_add(&service->metrics, service->metrics.roots[0], roots_count);
    ledger_add(&service->metrics, service->metrics.roots[1], roots_count);
}

void roots_replayed(struct ledger_service *service, const struct ledger_root *root)
{
    ring_add(&service->roots, root, 1);
    rt_watch_set(service->roots.head, root);
}

/* What the publisher owes the follower. */
struct following {
    bool on;
    bool owed;               /* there is a newer head than the last one it was told */
    struct rt_deadline due;  /* not before this: it could not be signed */
    struct rt_deadline keep; /* never: nothing was told since the last time */
    struct rt_deadline rest; /* never: what was told last is durable */
    uint64_t kept_seq;       /* of the head at the last keep */
};

/* At such a rate the time is too long: the follower would find no room and have to make some while
 * the Committer, and everybody behind it, waits. */
static bool has_much_to_keep(struct ledger_service *service, const struct following *following)
{
    const uint64_t entries = service->options.follower.keep_entries;

    return entries > 0 &&
           rt_atomic_load_u64(&service->roots.told_seq) - following->kept_seq >= entries;
}

/* The head is a whole group's from the first of its roots on, so each group has one; groups that
 * end while one is signed share the next, which counts everything before it. */
static void tell_follower(struct ledger_service *service, struct following *following) RON_BLOCKS
{
    if (following->owed && rt_deadline_expired(following->due)) {
        const struct ledger_root head = ledger_read_head(service);

        following->owed = !follow_head(service, &head);
        if (following->owed)
            following->due = rt_deadline_after_ms(LEDGER_KEEP_MS);
        else
            rt_atomic_store_u64(&service->roots.told_seq, head.seq);
        following->rest = rt_deadline_after_ms(REST_MS);
        if (following->keep.at_ns == RT_DEADLINE_NEVER.at_ns)
            following->keep = rt_deadline_after_ms(LEDGER_KEEP_MS);
    }
    if (rt_deadline_expired(following->keep) || has_much_to_keep(service, following)) {
        following->kept_seq = rt_atomic_load_u64(&service->roots.told_seq);
        follow_keep(service, false);
        following->keep = RT_DEADLINE_NEVER;
    }
    if (rt_deadline_expired(following->rest)) {
        follow_keep(service, true);
        following->rest = RT_DEADLINE_NEVER;
    }
}

/* Before that the follower is the Sequencer's. */
static bool has_started(struct ledger_service *service)
{
    bool started = false;

    (void)rt_watch_get(service->started, &started);
    return started;
}

/* The last head, and all of it durable. */
static void end_following(struct ledger_service *service, struct following *following) RON_BLOCKS
{
    if (has_started(service)) {
        following->due = (struct rt_deadline){0};
        tell_follower(service, following);
        follow_keep(service, true);
    }
    follow_end(service);
}

enum ron_err roots_run(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct ledger_service *service = argument;
    struct roots *roots = &service->roots;
    struct following following = {.on = service->options.follower.extend != NULL,
                                  .keep = RT_DEADLINE_NEVER,
                                  .rest = RT_DEADLINE_NEVER};
    struct ledger_root some[ROOTS_AT_ONCE];

    rt_task_step_back(); /* writes do not wait for heads: they go first */
    /* A publisher that failed may have owed one. What recovery found was told by the Sequencer. */
    following.kept_seq = rt_atomic_load_u64(&roots->told_seq);
    following.owed = following.on && has_started(service) &&
                     ledger_read_head(service).seq > rt_atomic_load_u64(&roots->told_seq);
    if (following.kept_seq > 0) /* nor may what it told be durable */
        following.rest = rt_deadline_after_ms(REST_MS);
    for (;;) {
        struct rt_deadline wait = rt_deadline_min(following.keep, following.rest);
        uint64_t lost_count = 0;
        size_t count = 0;
        enum ron_err err;

        if (following.owed)
            wait = rt_deadline_min(wait, following.due);
        err = rt_bus_recv_many(roots->subscriber, wait, some, RON_ARRAY_COUNT(some), &count,
                               &lost_count, NULL);
        if (err == RON_ERR_CANCELED)
            break;
        if (count > 0)
            following.owed = following.owed ||
                             (following.on &&
                              some[count - 1].seq > rt_atomic_load_u64(&roots->told_seq));
        tell_follower(service, &following);
        rt_task_beat(task);
    }
    end_following(service, &following);
    return RON_ERR_OK;
}

struct ledger_root ledger_read_head(struct ledger_service *service)
{
    struct ledger_root root;

    (void)rt_watch_get(service->roots.head, &root);
    return root;
}

/* The ring's roots beyond since, up to last; false if it begins after the one that is wanted
 * first. */
static bool read_ring(struct roots *roots, uint64_t since, uint64_t last, struct ledger_root *items,
                      size_t items_max, size_t *ret_count)
{
    size_t count = 0;
    bool reaches;

    roots_lock(roots);
    reaches = roots->ring_first == 1 ||
              (roots->ring_first > 0 &&
               roots->ring[roots->ring_first % roots->ring_max].seq <= since);
    for (uint64_t b = roots->ring_first; reaches && b > 0 && b <= roots->ring_last; b++) {
        const struct ledger_root *root = &roots->ring[b % roots->ring_max];

        if (root->seq > since && root->seq <= last && count < items_max)
            items[count++] = *root;
    }
    roots_unlock(roots);
    *ret_count = count;
    return reaches;
}

static enum ron_err read_root(struct ledger_service *service, uint64_t batch, struct ron_buf *buf,
                              struct ledger_root *ret_root, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_frame frame;
    enum ron_err err;

    ron_buf_reset(buf);
    err = ledger_engine_read(service->engine, batch, buf, reterr);
    if (err == RON_ERR_OK)
        err = ledger_frame_decode(ron_slice_of(buf->data, buf->size), &frame, reterr);
    if (err != RON_ERR_OK)
        return err;
    *ret_root = (struct ledger_root){frame.seq_start + frame.entries_count - 1, batch,
                                     frame.stamp.commit_ms, frame.root};
    return RON_ERR_OK;
}

enum ron_err roots_find_batch(struct ledger_service *service, uint64_t since, uint64_t last,
                              struct ron_buf *buf, uint64_t *ret_batch, struct ron_errinfo *reterr)
{
    uint64_t low = 1;
    uint64_t high = last + 1;

    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        struct ledger_root root;
        enum ron_err err = read_root(service, middle, buf, &root, reterr);

        if (err != RON_ERR_OK)
            return err;
        if (root.seq > since)
            high = middle;
        else
            low = middle + 1;
    }
    *ret_batch = low;
    return RON_ERR_OK;
}

/* The same from the log. */
static enum ron_err read_log(struct ledger_service *service, uint64_t since, uint64_t last,
                             struct ledger_root *items, size_t items_max, size_t *ret_count,
                             struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_buf buf;
    uint64_t batch = 0;
    size_t count = 0;
    enum ron_err err;

    ron_buf_init(&buf, service->frame_size_max);
    err = roots_find_batch(service, since, last, &buf, &batch, reterr);
    for (; err == RON_ERR_OK && batch <= last && count < items_max; batch++) {
        err = read_root(service, batch, &buf, &items[count], reterr);
        if (err == RON_ERR_OK)
            count++;
    }
    ron_buf_fini(&buf);
    if (err == RON_ERR_OK)
        *ret_count = count;
    return err;
}

enum ron_err ledger_read_roots(struct ledger_service *service, uint64_t since,
                               struct ledger_root *roots, size_t roots_max, size_t *ret_count,
                               struct ron_errinfo *reterr)
{
    const struct ledger_root head = ledger_read_head(service);

    rt_assert_no_lock_held();
    if (since >= head.seq || roots_max == 0) {
        *ret_count = 0;
        return RON_ERR_OK;
    }
    if (read_ring(&service->roots, since, head.seq, roots, roots_max, ret_count))
        return RON_ERR_OK;
    return read_log(service, since, head.batch, roots, roots_max, ret_count, reterr);
}

enum ron_err ledger_read_batch(struct ledger_service *service, uint64_t batch, struct ron_buf *buf,
                               struct ron_errinfo *reterr)
{
    rt_assert_no_lock_held();
    if (batch == 0 || batch > ledger_read_head(service).batch)
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "batch %llu is not committed",
                        (unsigned long long)batch);
    return ledger_engine_read(service->engine, batch, buf, reterr);
}

enum ron_err ledger_service_read_each(struct ledger_service *service, uint64_t first, uint64_t last,
                                      ledger_frame_fn *fn, void *context,
                                      struct ron_errinfo *reterr)
{
    rt_assert_no_lock_held();
    if (first == 0 || last > ledger_read_head(service).batch)
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "batch %llu is not committed",
                        (unsigned long long)last);
    return ledger_engine_read_each(service->engine, first, last, fn, context, reterr);
}

enum ron_err ledger_follow_roots(struct ledger_service *service, const char *consumer,
                                 struct rt_bus_subscriber **ret_subscriber,
                                 struct ron_errinfo *reterr)
{
    return rt_bus_subscribe(service->roots.bus, consumer, ret_subscriber, reterr);
}
