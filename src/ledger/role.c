/*
 * role.c - the whole ledger: opened, started, stopped and closed in one order. See role.h.
 */
#include "ledger/role.h"

#include "base/assert.h"
#include "base/mem.h"
#include "io/log.h"
#include "io/vfs_memory.h"
#include "rt/lock.h"
#include "rt/supervisor.h"

#define LEDGER_DIR    "ledger"
#define LOG_DIR       LEDGER_DIR "/log"
#define TILES_DIR     LEDGER_DIR "/tiles"
#define BOOKS_DIR     LEDGER_DIR "/books"
#define KEY_PATH      LEDGER_DIR "/log.key"
#define MARK_PATH     LEDGER_DIR "/damaged"
#define SNAPSHOTS_DIR LEDGER_DIR "/snapshots"
#define ROWS_DIR      LEDGER_DIR "/state"

enum {
    BOOKS_TASKS = 2,
    BOOKS_STOP_MS = 1000,
    WINDOW_MIN = 1 << 14,
    WINDOW_MAX = 1 << 24, /* of the largest segment */
    BYTES_PER_PLACE = 64, /* less than half of what an entry takes in the log */
    WINDOW_LARGE = 1 << 19,
};

struct ledger_role {
    struct ledger_role_options options;
    struct io_vfs *memory; /* amnesia: of tree and books */
    struct ledger_engine *engine;
    struct ledger_tree *tree;
    struct ledger_service *service;
    struct rt_supervisor *supervisor; /* of the books */
    struct ledger_books *books;
    bool started;
};

static enum ron_err make_dir(struct io_vfs *vfs, const char *path,
                             struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    enum ron_err err = io_vfs_make_dir(vfs, path, &info);

    if (err == RON_ERR_CONFLICT) /* it is there */
        return RON_ERR_OK;
    if (err != RON_ERR_OK && reterr != NULL)
        *reterr = info;
    return err;
}

static enum ron_err open_engine(struct ledger_role *role, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ledger_role_options *options = &role->options;
    const struct ledger_engine_memory_options memory = {.size_max = options->memory_bytes_max,
                                                        .frames_max = options->memory_frames_max};
    const struct ledger_engine_file_options file = {.vfs = options->vfs,
                                                    .dir = LOG_DIR,
                                                    .segment_bytes = options->segment_bytes,
                                                    .cached_bytes = options->cached_bytes,
                                                    .direct = options->direct,
                                                    .linger_us = options->linger_us,
                                                    .metrics = options->service.metrics};
    enum ron_err err;

    if (options->vfs == NULL)
        return ledger_engine_memory_new(&memory, &role->engine, reterr);
    err = make_dir(options->vfs, LEDGER_DIR, reterr);
    if (err == RON_ERR_OK)
        err = ledger_engine_file_open(&file, &role->engine, reterr);
    return err;
}

static enum ron_err open_tree(struct ledger_role *role, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_tree_options options = {.vfs = role->options.vfs,
                                          .dir = TILES_DIR,
                                          .key = KEY_PATH,
                                          .origin = role->options.origin,
                                          .log_size = ledger_engine_durable(role->engine),
                                          .direct = role->options.direct,
                                          .new_key = role->options.new_key};
    enum ron_err err = RON_ERR_OK;

    if (options.vfs == NULL) {
        err = io_vfs_memory_new(NULL, &role->memory, reterr);
        options.vfs = role->memory;
    }
    if (err == RON_ERR_OK)
        err = ledger_tree_open(&options, &role->tree, reterr);
    if (err == RON_ERR_OK && options.log_size > 0 && ledger_tree_key_made(role->tree))
        rt_log(role->options.service.log, RT_LOG_WARN,
               "the log lost its key and has a new one: whoever verifies it must be told",
               rt_log_text("vkey", ledger_tree_vkey(role->tree)));
    return err;
}

/* What the log's index does not know is in the segment that is written to and, while its index is
 * built, the one before: the windows have room for the entries of two. Segments that were written
 * with a larger bound count as well. Without files there is no index: room for all frames. */
static void set_windows(struct ledger_role *role)
{
    const struct ledger_role_options *options = &role->options;
    struct ledger_capacity *capacity = &role->options.service.capacity;
    uint64_t bytes = options->segment_bytes != 0 ? options->segment_bytes : IO_LOG_SEGMENT_BYTES;
    uint64_t places;

    if (options->vfs == NULL)
        bytes = options->memory_bytes_max;
    else if (bytes < role->engine->unindexed_bytes)
        bytes = role->engine->unindexed_bytes;
    places = bytes / BYTES_PER_PLACE;
    places = places < WINDOW_MIN ? WINDOW_MIN : places > WINDOW_MAX ? WINDOW_MAX : places;
    if (places >= WINDOW_LARGE) /* room for a batch besides, or the ring would be twice as large */
        places -= LEDGER_BATCH_ENTRIES_MAX;
    capacity->entries_window = (uint32_t)places;
    capacity->keys_window = (uint32_t)places;
    capacity->batches_window = (uint32_t)(places / 4);
}

static uint32_t page_entries(const struct ledger_role *role)
{
    const uint32_t half = role->options.service.capacity.entries_window / 2;

    return half < LEDGER_BOOKS_PAGE ? half : LEDGER_BOOKS_PAGE;
}

static enum ron_err open_books(struct ledger_role *role, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct rt_supervisor_options tasks = {
        .name = "ledger books", .owner = "ledger", .tasks_max = BOOKS_TASKS};
    struct ledger_books_options options = {.vfs = role->options.vfs != NULL ? role->options.vfs
                                                                            : role->memory,
                                           .dir = BOOKS_DIR,
                                           .page_entries = page_entries(role),
                                           .service = role->service,
                                           .log = role->options.service.log};
    enum ron_err err = rt_supervisor_new(&tasks, &role->supervisor, reterr);

    options.supervisor = role->supervisor;
    return err == RON_ERR_OK ? ledger_books_new(&options, &role->books, reterr) : err;
}

/* Before a snapshot gets its name: a start that begins there need not read the log for tiles. A
 * tree that was lost is made from the log in any case. */
static enum ron_err keep_tree(void *context, uint64_t seq, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_role *role = context;

    if (ledger_tree_size(role->tree) < seq)
        return RON_ERR_OK;
    return ledger_tree_keep(role->tree, true, reterr);
}

/* What the service keeps beside the log. */
static void set_files(struct ledger_role *role)
{
    struct ledger_service_options *service = &role->options.service;

    service->engine = role->engine;
    service->follower = ledger_tree_follower(role->tree);
    service->snapshot.vfs = role->options.vfs;
    service->snapshot.dir = SNAPSHOTS_DIR;
    service->snapshot.rows_dir = ROWS_DIR;
    service->snapshot.before = keep_tree;
    service->snapshot.before_context = role;
    service->damage = (struct ledger_damage_options){.vfs = role->options.vfs, .path = MARK_PATH};
}

enum ron_err ledger_role_open(const struct ledger_role_options *options,
                              struct ledger_role **ret_role, struct ron_errinfo *reterr)
{
    struct ledger_role *role = ron_mem_alloc(sizeof(*role));
    enum ron_err err;

    rt_assert_no_lock_held();
    if (role == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "the ledger's role");
    role->options = *options;
    err = open_engine(role, reterr);
    if (err == RON_ERR_OK)
        err = open_tree(role, reterr);
    if (err == RON_ERR_OK) {
        set_files(role);
        set_windows(role);
        err = ledger_service_new(&role->options.service, &role->service, reterr);
    }
    if (err == RON_ERR_OK)
        err = open_books(role, reterr);
    if (err != RON_ERR_OK) {
        (void)ledger_role_free(role);
        return err;
    }
    *ret_role = role;
    return RON_ERR_OK;
}

enum ron_err ledger_role_start(struct ledger_role *role, struct ron_errinfo *reterr)
{
    enum ron_err err;

    RON_ASSERT(!role->started);
    role->started = true;
    err = ledger_service_start(role->service, reterr);
    if (err == RON_ERR_OK)
        err = ledger_books_start(role->books, reterr);
    return err;
}

enum ron_err ledger_role_stop(struct ledger_role *role, struct rt_life_report *ret_report,
                              struct ron_errinfo *reterr)
{
    enum ron_err err;

    if (!role->started)
        return RON_ERR_OK;
    err = ledger_service_stop(role->service, ret_report, reterr);
    if (err == RON_ERR_OK)
        err = ledger_books_stop(role->books, rt_deadline_after_ms(BOOKS_STOP_MS), reterr);
    return err;
}

struct ledger_role *ledger_role_free(struct ledger_role *role)
{
    rt_assert_no_lock_held();
    if (role == NULL)
        return NULL;
    role->books = ledger_books_free(role->books);
    role->supervisor = rt_supervisor_free(role->supervisor);
    role->service = ledger_service_free(role->service);
    role->tree = ledger_tree_free(role->tree);
    role->memory = io_vfs_free(role->memory);
    if (role->options.vfs == NULL)
        role->engine = ledger_engine_memory_free(role->engine);
    else
        role->engine = ledger_engine_file_free(role->engine);
    return ron_mem_free(role);
}

struct ledger_service *ledger_role_service(struct ledger_role *role)
{
    return role->service;
}

struct ledger_tree *ledger_role_tree(struct ledger_role *role)
{
    return role->tree;
}

struct ledger_books *ledger_role_books(struct ledger_role *role)
{
    return role->books;
}
