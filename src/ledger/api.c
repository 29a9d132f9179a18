/*
 * api.c - the API put together: its memory, its rows, its readers. See api.h.
 */
#include "ledger/api_pages.h"

#include <stdio.h>

#include "base/mem.h"

enum {
    READERS_DEFAULT = 2,
    BODIES_DEFAULT = 3,
    BODIES_MAX = 64,
    SLICES_MAX = 64,
    SLICES_BYTES_MAX = 16 << 20,
};

/* A row whose answer waits for a reader. */
static void read_later(void *context, struct io_request *request)
{
    struct ledger_api *api = context;
    struct ron_errinfo info = {0};
    enum ron_err err = grant_rate(api, grant_of(request), &info);

    if (err == RON_ERR_OK)
        err = io_query_only(request, &info);
    if (err == RON_ERR_OK)
        io_request_send(request, api->reads_queue, 1);
    else
        reply_error(request, err, &info);
}

static void add_rows(struct ledger_api *api, const struct api_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct api_row *row = &rows->rows[i];
        struct io_route *route = &api->routes[api->routes_count];

        RON_ASSERT(api->routes_count < API_ROUTES_MAX);
        *route = row->route;
        if (api->options.public_log && route->scope != NULL &&
            strcmp(route->scope, "ledger.read") == 0)
            route->scope = NULL;
        if (route->handler == NULL)
            route->handler = read_later;
        api->reads[api->routes_count++] = row->read;
    }
}

static void collect_rows(struct ledger_api *api)
{
    add_rows(api, &api_write_rows);
    add_rows(api, &api_slice_rows);
    add_rows(api, &api_read_rows);
    add_rows(api, &api_entry_rows);
    add_rows(api, &api_account_rows);
    add_rows(api, &api_proof_rows);
    add_rows(api, &api_stream_rows);
    add_rows(api, &api_admin_rows);
    add_rows(api, &api_copy_rows);
}

static enum ron_err make_queues(struct ledger_api *api, struct ron_errinfo *reterr)
{
    const struct rt_queue_options reads = {.name = "reads",
                                           .owner = "ledger",
                                           .policy = "refuse: Busy",
                                           .capacity = LEDGER_API_READS_MAX};
    const struct rt_queue_options slices = {.name = "slices",
                                            .owner = "ledger",
                                            .policy = "refuse: Busy",
                                            .capacity = SLICES_MAX,
                                            .weight_max = SLICES_BYTES_MAX};
    const struct rt_queue_options proofs = {.name = "proofs",
                                            .owner = "ledger",
                                            .policy = "a place is kept before the write",
                                            .capacity = LEDGER_API_PROOFS_MAX};
    const struct rt_queue_options copies = {.name = "copies",
                                            .owner = "ledger",
                                            .policy = "refuse: Busy",
                                            .capacity = LEDGER_API_COPIES_MAX};
    const struct rt_supervisor_options supervisor = {.name = "ledger api",
                                                     .owner = "ledger",
                                                     .tasks_max = LEDGER_API_READERS_MAX + 3 +
                                                                  LEDGER_API_COPIERS};
    enum ron_err err = rt_queue_new(&reads, &api->reads_queue, reterr);

    if (err == RON_ERR_OK)
        err = rt_queue_new(&slices, &api->slices_queue, reterr);
    if (err == RON_ERR_OK)
        err = rt_queue_new(&proofs, &api->proofs_queue, reterr);
    if (err == RON_ERR_OK)
        err = rt_queue_new(&copies, &api->copies_queue, reterr);
    if (err == RON_ERR_OK)
        err = rt_supervisor_new(&supervisor, &api->supervisor, reterr);
    return err;
}

static enum ron_err make_tables(struct ledger_api *api, struct ron_errinfo *reterr)
{
    static const struct api_asset roc = {.max_supply = {~(unsigned __int128)0},
                                         .number = 1,
                                         .decimals = 6,
                                         .name_size = 3,
                                         .name = "roc"};
    struct ledger_checks_options evaluator = ledger_checks_defaults();
    struct body_scratch *scratches;
    struct api_asset *assets;
    enum ron_err err = RON_ERR_OK;

    evaluator.cache_slots = 0;
    if (api->options.checks == NULL)
        err = ledger_checks_new(&evaluator, &api->own_checks, reterr);
    if (err != RON_ERR_OK)
        return err;
    api->checks = api->options.checks != NULL ? api->options.checks : api->own_checks;
    scratches = ron_mem_alloc_array(api->options.bodies_max, sizeof(*scratches));
    assets = ron_mem_alloc_array(API_ASSETS_MAX, sizeof(*assets));
    api_lock(api);
    api->scratches = scratches;
    api->scratches_free = UINT64_MAX >> (BODIES_MAX - api->options.bodies_max);
    api->assets = assets;
    if (assets != NULL) {
        assets[0] = roc;
        rt_atomic_store_u32(&api->assets_count, 1);
    }
    api_unlock(api);
    if (scratches == NULL || assets == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "the tables of the ledger's API");
    return RON_ERR_OK;
}

enum ron_err ledger_api_new(const struct ledger_api_options *options, struct ledger_api **ret_api,
                            struct ron_errinfo *reterr)
{
    struct ledger_api *api = ron_mem_alloc(sizeof(*api));
    enum ron_err err;

    RON_ASSERT(options->service != NULL);
    RON_ASSERT(options->readers_count <= LEDGER_API_READERS_MAX);
    if (api == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "the ledger's API");
    api->magic = API_MAGIC;
    api->options = *options;
    if (api->options.readers_count == 0)
        api->options.readers_count = READERS_DEFAULT;
    if (api->options.bodies_max == 0)
        api->options.bodies_max = BODIES_DEFAULT;
    if (api->options.bodies_max > BODIES_MAX)
        api->options.bodies_max = BODIES_MAX;
    if (api->options.bytes_max == 0)
        api->options.bytes_max = (uint64_t)256 << 20;
    rt_lock_init(&api->lock, "ledger api", RON_RANK_shard);
    collect_rows(api);
    err = make_queues(api, reterr);
    if (err == RON_ERR_OK)
        err = make_tables(api, reterr);
    if (err != RON_ERR_OK) {
        (void)ledger_api_free(api);
        return err;
    }
    *ret_api = api;
    return RON_ERR_OK;
}

struct ledger_api *ledger_api_free(struct ledger_api *api)
{
    struct body_scratch *scratches;
    struct api_asset *assets;

    if (api == NULL)
        return NULL;
    RON_ASSERT(api->magic == API_MAGIC);
    RON_ASSERT(rt_atomic_load_u32(&api->calls_count) == 0);
    api_lock(api);
    scratches = api->scratches;
    assets = api->assets;
    api_unlock(api);
    for (uint32_t i = 0; scratches != NULL && i < api->options.bodies_max; i++)
        body_scratch_fini(&scratches[i]);
    (void)ron_mem_free(scratches);
    (void)ledger_checks_free(api->own_checks);
    (void)ron_mem_free(assets);
    (void)rt_supervisor_free(api->supervisor);
    (void)rt_queue_free(api->copies_queue);
    (void)rt_queue_free(api->proofs_queue);
    (void)rt_queue_free(api->slices_queue);
    (void)rt_queue_free(api->reads_queue);
    rt_lock_fini(&api->lock);
    api->magic = 0;
    return ron_mem_free(api);
}

enum ron_err ledger_api_add(struct io_routes *routes, struct io_oap_service *oap,
                            struct ledger_api *api, struct ron_errinfo *reterr)
{
    enum ron_err err = io_routes_add(routes, api->routes, api->routes_count, api, reterr);

    if (err == RON_ERR_OK && oap != NULL)
        err = api_oap_add(oap, api, reterr);
    return err;
}

/* --- Readers -----------------------------------------------------------------------------------
 */

static void answer_panicked(void *argument)
{
    struct ron_errinfo info = {0};

    reply_error(argument, ron_fail(&info, RON_ERR_INTERNAL, "its reader failed"), &info);
}

static void answer_read(struct ledger_api *api, struct io_request *request)
{
    const size_t number = (size_t)(request->route - api->routes);
    struct ron_errinfo info = {0};
    struct rt_cleanup cleanup;

    rt_assert_no_lock_held();
    RON_ASSERT(number < api->routes_count);
    if (rt_deadline_expired(request->deadline)) {
        reply_error(request, ron_fail(&info, RON_ERR_TIMEOUT, "it waited too long for a reader"),
                    &info);
        return;
    }
    rt_cleanup_push(&cleanup, answer_panicked, request);
    api->reads[number](api, request);
    rt_cleanup_pop(&cleanup, false);
}

static enum ron_err serve(struct rt_task *task, struct ledger_api *api,
                          struct rt_queue *queue) RON_BLOCKS
{
    void *item = NULL;

    while (rt_queue_recv(queue, RT_DEADLINE_NEVER, &item, NULL) == RON_ERR_OK) {
        answer_read(api, item);
        rt_task_beat(task);
    }
    return RON_ERR_OK;
}

static enum ron_err reader_run(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct ledger_api *api = argument;

    return serve(task, api, api->reads_queue);
}

static enum ron_err slicer_run(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct ledger_api *api = argument;

    return serve(task, api, api->slices_queue);
}

static void close_reads(void *argument)
{
    struct ledger_api *api = argument;

    rt_queue_close(api->reads_queue);
}

static void close_slices(void *argument)
{
    struct ledger_api *api = argument;

    rt_queue_close(api->slices_queue);
}

static void close_copies(void *argument)
{
    struct ledger_api *api = argument;

    rt_queue_close(api->copies_queue);
}

static void close_proofs(void *argument)
{
    struct ledger_api *api = argument;

    rt_queue_close(api->proofs_queue);
    if (api->options.tree != NULL)
        ledger_tree_cancel(api->options.tree);
}

static enum ron_err spawn(struct ledger_api *api, const char *kind, const char *name,
                          rt_task_fn *fn, rt_task_wake_fn *wake, struct rt_task **ret_task,
                          struct ron_errinfo *reterr)
{
    const struct rt_task_options options = {
        .kind = kind, .name = name, .owner = "ledger", .fn = fn, .wake = wake, .argument = api};

    return rt_task_spawn(api->supervisor, &options, ret_task, reterr);
}

enum ron_err ledger_api_start(struct ledger_api *api, struct ron_errinfo *reterr)
{
    static const char *const copiers[LEDGER_API_COPIERS] = {"api_copier-0", "api_copier-1"};
    enum ron_err err = RON_ERR_OK;

    RON_ASSERT(!api->started);
    api->started = true;
    for (uint32_t i = 0; i < api->options.readers_count && err == RON_ERR_OK; i++) {
        (void)snprintf(api->reader_names[i], sizeof(api->reader_names[i]), "api_reader-%u", i);
        err = spawn(api, "api_reader", api->reader_names[i], reader_run, close_reads,
                    &api->readers[i], reterr);
    }
    if (err == RON_ERR_OK)
        err = spawn(api, "api_slicer", "api_slicer", slicer_run, close_slices, &api->slicer,
                    reterr);
    if (err == RON_ERR_OK)
        err = spawn(api, "api_prover", "api_prover", prover_run, close_proofs, &api->prover,
                    reterr);
    if (err == RON_ERR_OK)
        err = spawn(api, "api_streamer", "api_streamer", streamer_run, NULL, &api->streamer,
                    reterr);
    for (unsigned i = 0; i < LEDGER_API_COPIERS && err == RON_ERR_OK; i++)
        err = spawn(api, "api_copier", copiers[i], copier_run, close_copies, &api->copiers[i],
                    reterr);
    return err;
}

/* What readers that gave up have left. */
static void sweep(struct rt_queue *queue)
{
    void *item;

    while (rt_queue_try_recv_many(queue, &item, 1) > 0) {
        struct ron_errinfo info = {0};

        reply_error(item, ron_fail(&info, RON_ERR_CANCELED, "the ledger is shutting down"), &info);
    }
}

enum ron_err ledger_api_stop(struct ledger_api *api, struct rt_deadline deadline,
                             struct ron_errinfo *reterr)
{
    enum ron_err err;
    void *item;

    rt_assert_no_lock_held();
    rt_queue_close(api->reads_queue);
    rt_queue_close(api->slices_queue);
    rt_queue_close(api->copies_queue);
    err = rt_supervisor_stop(api->supervisor, deadline, reterr);
    if (err != RON_ERR_OK)
        return err;
    streams_end(api);
    states_free(api);
    sweep(api->reads_queue);
    sweep(api->slices_queue);
    sweep(api->copies_queue);
    while (rt_queue_try_recv_many(api->proofs_queue, &item, 1) > 0)
        call_end(item);
    return RON_ERR_OK;
}
