/*
 * api_copies.c - what takes as long as the ledger is large: GET /admin/ledger/export, POST
 * /admin/ledger/backup, POST /admin/ledger/snapshot.
 *
 * Tasks of their own do it, so that no reader waits for them; each looks after every piece whether
 * it is to end. An export is sent at the pace of who reads it, a page of entries in memory at a
 * time, and ends where the log ended when it began.
 */
#include <stdio.h>

#include "base/json_dto.h"
#include "ledger/api_pages.h"
#include "ledger/backup.h"
#include "ledger/record_json.h"
#include "ledger/record_lines.h"
#include "rt/clock.h"

enum {
    PAGE = 256,
    PAGE_MS = 10000, /* to read one */
    PIECE_SIZE = 64 << 10,
    PIECE_MS = 30000, /* for a peer to make room for one */
    TICK_MS = 100,    /* how long a wait does not look whether it is to end */
    OBJECT_SIZE_MAX = 64 << 10,
    LINES_SIZE_MAX = 8 << 20,
    BACKUP_MS = 3600 * 1000,
    SNAPSHOT_MS = 30000,
    NAME_SIZE_MAX = 64,
};

/* --- Export ------------------------------------------------------------------------------------
 */

struct exporting {
    struct ledger_api *api;
    struct io_request *request; /* NULL: answered */
    struct io_stream *stream;   /* NULL: not open */
    enum ledger_lines form;
    uint64_t after, end; /* sent so far; to be sent */
    struct rt_deadline deadline;
    struct ron_buf object, lines;
    struct ron_arena arena;
};

static enum ron_err put_line(void *context, const struct ledger_record *record,
                             struct ron_errinfo *reterr) RON_BLOCKS
{
    struct exporting *export = context;
    struct ron_json_writer writer;
    enum ron_err err;

    ron_buf_reset(&export->object);
    ron_arena_reset(&export->arena);
    ron_json_writer_init(&writer, &export->object, RON_JSON_FIXED);
    err = put_record(export->api, export->deadline, &writer, record, false, reterr);
    if (err == RON_ERR_OK)
        err = ron_json_writer_end(&writer, reterr);
    if (err == RON_ERR_OK)
        err = ledger_lines_put(export->form, ron_buf_slice(&export->object), &export->arena,
                               &export->lines, reterr);
    return err;
}

/* Lines of the next entries. */
static enum ron_err read_page(struct exporting *export, struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t seqs[PAGE];
    size_t count = 0;
    enum ron_err err;

    while (count < PAGE && export->after < export->end)
        seqs[count++] = ++export->after;
    if (count == 0)
        return RON_ERR_OK;
    export->deadline = rt_deadline_after_ms(PAGE_MS);
    err = ledger_books_each(export->api->options.books, seqs, count, export->deadline, put_line,
                            export, reterr);
    return err == RON_ERR_OK ? ron_buf_check(&export->lines, reterr) : err;
}

static enum ron_err send_piece(struct exporting *export, struct ron_slice piece,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct rt_deadline deadline = rt_deadline_after_ms(PIECE_MS);
    struct rt_task *task = rt_task_self();
    enum ron_err err;

    do {
        err = io_body_send(export->stream, piece, rt_deadline_after_ms(TICK_MS), reterr);
        rt_task_beat(task);
    } while (err == RON_ERR_TIMEOUT && !rt_task_canceled(task) && !rt_deadline_expired(deadline));
    return err;
}

static enum ron_err send_lines(struct exporting *export, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ron_slice lines = ron_buf_slice(&export->lines);
    enum ron_err err = RON_ERR_OK;

    for (size_t at = 0; at < lines.size && err == RON_ERR_OK; at += PIECE_SIZE)
        err = send_piece(export,
                         ron_slice_of(lines.data + at,
                                      lines.size - at < PIECE_SIZE ? lines.size - at : PIECE_SIZE),
                         reterr);
    ron_buf_reset(&export->lines);
    return err;
}

/* Everything else of it; then the peer is told that it is whole. */
static void send_all(struct exporting *export) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct rt_task *task = rt_task_self();
    enum ron_err err = send_lines(export, &info);

    while (err == RON_ERR_OK && export->after < export->end) {
        if (rt_task_canceled(task))
            err = ron_fail(&info, RON_ERR_CANCELED, "the ledger is shutting down");
        if (err == RON_ERR_OK)
            err = read_page(export, &info);
        if (err == RON_ERR_OK)
            err = send_lines(export, &info);
    }
    if (err == RON_ERR_OK) {
        export->stream = io_body_end(export->stream);
        return;
    }
    export->stream = io_stream_close(export->stream);
    rt_log(export->api->options.log, RT_LOG_WARN, "an export was cut", rt_log_err(err),
           rt_log_text("why", info.message), rt_log_u64("after", export->after),
           rt_log_u64("end", export->end));
}

static enum ron_err read_query(struct exporting *export, struct ron_errinfo *reterr)
{
    const struct io_request *request = export->request;
    char format[16] = "jsonl";
    enum ron_err err = query_u64(request, "since", 0, &export->after, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = io_query_get(request, "format", format, sizeof(format), NULL);
    if ((err != RON_ERR_OK && err != RON_ERR_NOT_FOUND) ||
        !ledger_lines_find(ron_slice_text(format), &export->form))
        return ron_fail(reterr, RON_ERR_MALFORMED, "query: format is jsonl, csv or journal");
    return RON_ERR_OK;
}

/* All that can be refused is, before the first byte of an answer: the first page is read here. */
static enum ron_err begin_export(struct exporting *export, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_api *api = export->api;
    enum ron_err err = read_query(export, reterr);

    if (err == RON_ERR_OK && grant_is_bound(grant_of(export->request)))
        err = ron_fail(reterr, RON_ERR_FORBIDDEN, "the capability does not cover every account");
    if (err == RON_ERR_OK)
        err = need_books(api, reterr);
    if (err == RON_ERR_OK)
        err = ron_arena_init(&export->arena, 4 * OBJECT_SIZE_MAX, reterr);
    if (err != RON_ERR_OK)
        return err;
    export->end = ledger_read_head(api->options.service).seq;
    ledger_lines_begin(export->form, &export->lines);
    return read_page(export, reterr);
}

static void end_export(void *argument)
{
    struct exporting *export = argument;
    struct ron_errinfo info = {0};

    export->stream = io_stream_close(export->stream); /* a panic cuts it */
    if (export->request != NULL)
        reply_error(export->request, ron_fail(&info, RON_ERR_INTERNAL, "the export failed"), &info);
    ron_arena_fini(&export->arena);
    ron_buf_fini(&export->lines);
    ron_buf_fini(&export->object);
}

static void get_export(struct ledger_api *api, struct io_request *request) RON_BLOCKS
{
    struct exporting export = {.api = api, .request = request};
    struct ron_errinfo info = {0};
    struct rt_cleanup cleanup;
    enum ron_err err;

    ron_buf_init(&export.object, OBJECT_SIZE_MAX);
    ron_buf_init(&export.lines, LINES_SIZE_MAX);
    rt_cleanup_push(&cleanup, end_export, &export);
    err = begin_export(&export, &info);
    audit(api, request, "export", true, request->query, err);
    export.request = NULL;
    if (err != RON_ERR_OK)
        reply_error(request, err, &info);
    else if (io_body_open(request, ledger_lines_media(export.form), 2 * PIECE_SIZE, &export.stream,
                          NULL) == RON_ERR_OK)
        send_all(&export);
    rt_cleanup_pop(&cleanup, true);
}

/* --- Backup ------------------------------------------------------------------------------------
 */

struct backup_body {
    uint64_t present;
    struct ron_slice name;
    bool with_key;
};
static const struct ron_json_field backup_fields[] = {
    RON_JSON_FIELD_STRING(struct backup_body, name, 0, 1, NAME_SIZE_MAX, NULL),
    RON_JSON_FIELD_BOOL(struct backup_body, with_key, RON_JSON_OPTIONAL),
};
static const struct ron_json_dto backup_dto = RON_JSON_DTO(struct backup_body, backup_fields);

struct backup {
    struct ledger_api *api;
    struct io_request *request;
    char dir[IO_PATH_MAX + 1];
    bool with_key;
    struct ledger_copy_report copied;
    struct ledger_backup_note note;
};

static bool is_name(struct ron_slice name)
{
    for (size_t i = 0; i < name.size; i++) {
        const uint8_t byte = name.data[i];

        if (!(byte >= 'a' && byte <= 'z') && !(byte >= 'A' && byte <= 'Z') &&
            !(byte >= '0' && byte <= '9') && byte != '-' && byte != '_')
            return false;
    }
    return true;
}

static enum ron_err read_body(struct backup *backup, struct ron_errinfo *reterr)
{
    struct backup_body body = {.with_key = false};
    struct body_scratch *scratch;
    enum ron_err err = scratch_take(backup->api, &scratch, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = ron_json_dto_read(&backup_dto, backup->request->body, &scratch->arena, &body, reterr);
    if (err == RON_ERR_OK && !is_name(body.name))
        err = ron_fail(reterr, RON_ERR_MALFORMED, "name is not 1..%d of [A-Za-z0-9_-]",
                       NAME_SIZE_MAX);
    if (err == RON_ERR_OK) {
        (void)snprintf(backup->dir, sizeof(backup->dir), "backups/%.*s", RON_SLICE_FMT(body.name));
        backup->with_key = body.with_key;
    }
    scratch_give(backup->api, scratch);
    return err;
}

static enum ron_err look_around(void *context, const char *dir, uint64_t files_done,
                                uint64_t files_total, struct ron_errinfo *reterr)
{
    const struct backup *backup = context;

    (void)dir;
    (void)files_done;
    (void)files_total;
    rt_task_beat(rt_task_self());
    if (rt_task_canceled(rt_task_self()))
        return ron_fail(reterr, RON_ERR_CANCELED, "the ledger is shutting down");
    if (rt_deadline_expired(backup->request->deadline))
        return ron_fail(reterr, RON_ERR_TIMEOUT, "the copy took too long");
    return RON_ERR_OK;
}

/* Copied, read again, and noted: only then is it a backup. */
static enum ron_err make_backup(struct backup *backup, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_api *api = backup->api;
    const struct ledger_copy_options options = {
        .from = api->options.vfs,
        .to = api->options.vfs,
        .from_dir = "",
        .to_dir = backup->dir,
        .with_key = backup->with_key,
        .tick = look_around,
        .context = backup,
    };
    const uint64_t seq = ledger_read_head(api->options.service).seq;
    enum ron_err err;

    if (options.from == NULL)
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "the ledger is in memory: no files to copy");
    err = ledger_copy(&options, &backup->copied, reterr);
    if (err != RON_ERR_OK)
        return err;
    err = ledger_copy_check(&options, &backup->note, reterr);
    if (err == RON_ERR_OK && backup->note.entries_count < seq)
        err = ron_fail(reterr, RON_ERR_INTERNAL, "the copy has %llu entries of %llu",
                       (unsigned long long)backup->note.entries_count, (unsigned long long)seq);
    backup->note.made_ms = rt_utc_ms();
    if (err == RON_ERR_OK)
        err = ledger_backup_note_write(options.to, backup->dir, &backup->note, reterr);
    if (err == RON_ERR_OK)
        err = io_vfs_sync_dir(options.to, "backups", reterr);
    if (err == RON_ERR_OK)
        err = io_vfs_sync_dir(options.to, "", reterr);
    if (err != RON_ERR_OK)
        ledger_copy_remove(options.to, backup->dir);
    return err;
}

static void reply_backup(struct io_request *request, const struct backup *backup)
{
    struct ron_json_writer writer;
    struct ron_buf buf;

    ron_buf_init(&buf, API_REPLY_SIZE_MAX);
    ron_json_writer_init(&writer, &buf, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    put_text(&writer, "directory", ron_slice_text(backup->dir));
    put_u64(&writer, "entries", backup->note.entries_count);
    put_hex(&writer, "root", backup->note.root.bytes, RON_SHA256_SIZE);
    put_u64(&writer, "files", backup->copied.files_count);
    put_u64(&writer, "bytes", backup->copied.bytes_count);
    ron_json_put_name(&writer, "key");
    ron_json_put_bool(&writer, backup->note.has_key);
    put_time(&writer, "made_at", backup->note.made_ms);
    ron_json_put_object_end(&writer);
    reply_json(request, &writer, &buf);
}

static void backup_panicked(void *argument)
{
    const struct backup *backup = argument;
    struct ron_errinfo info = {0};

    rt_atomic_store_u32(&backup->api->backup_on, 0);
    reply_error(backup->request, ron_fail(&info, RON_ERR_INTERNAL, "the backup failed"), &info);
}

static void post_backup(struct ledger_api *api, struct io_request *request) RON_BLOCKS
{
    struct backup backup = {.api = api, .request = request};
    struct ron_errinfo info = {0};
    struct rt_cleanup cleanup;
    enum ron_err err;

    if (rt_atomic_exchange_u32(&api->backup_on, 1) != 0) {
        reply_error(request, ron_fail(&info, RON_ERR_BUSY, "another backup is being made"), &info);
        return;
    }
    rt_cleanup_push(&cleanup, backup_panicked, &backup);
    err = read_body(&backup, &info);
    if (err == RON_ERR_OK)
        err = make_backup(&backup, &info);
    audit(api, request, "backup", backup.with_key, ron_slice_text(backup.dir), err);
    rt_cleanup_pop(&cleanup, false);
    rt_atomic_store_u32(&api->backup_on, 0); /* who has the answer may ask for the next */
    if (err == RON_ERR_OK)
        reply_backup(request, &backup);
    else
        reply_error(request, err, &info);
}

/* --- Snapshot ----------------------------------------------------------------------------------
 */

static void post_snapshot(struct ledger_api *api, struct io_request *request) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct ron_json_writer writer;
    struct ledger_health health;
    struct ron_buf buf;
    enum ron_err err = ledger_service_snapshot(api->options.service, request->deadline, &info);

    audit(api, request, "snapshot", true, (struct ron_slice){NULL, 0}, err);
    if (err != RON_ERR_OK) {
        reply_error(request, err, &info);
        return;
    }
    ledger_read_health(api->options.service, &health);
    ron_buf_init(&buf, API_REPLY_SIZE_MAX);
    ron_json_writer_init(&writer, &buf, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    put_u64(&writer, "seq", health.snapshots.seq);
    put_u64(&writer, "batch_no", health.snapshots.batch);
    put_u64(&writer, "bytes", health.snapshots.size);
    put_u64(&writer, "rows", health.snapshots.rows);
    ron_json_put_object_end(&writer);
    reply_json(request, &writer, &buf);
}

/* --- The task and its rows ---------------------------------------------------------------------
 */

enum ron_err copier_run(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct ledger_api *api = argument;
    void *item = NULL;
    enum ron_err err = sums_restore(api, task);

    if (err != RON_ERR_OK)
        return err; /* again, by its supervisor */
    while (rt_queue_recv(api->copies_queue, RT_DEADLINE_NEVER, &item, NULL) == RON_ERR_OK) {
        struct io_request *request = item;
        struct ron_errinfo info = {0};

        if (rt_deadline_expired(request->deadline))
            reply_error(request,
                        ron_fail(&info, RON_ERR_TIMEOUT, "it waited too long for its turn"), &info);
        else
            api->reads[request->route - api->routes](api, request);
        rt_task_beat(task);
    }
    return RON_ERR_OK;
}

static void copy_later(void *context, struct io_request *request)
{
    struct ledger_api *api = context;
    struct ron_errinfo info = {0};
    enum ron_err err = grant_rate(api, grant_of(request), &info);

    if (err == RON_ERR_OK)
        err = io_query_only(request, &info);
    if (err == RON_ERR_OK)
        io_request_send(request, api->copies_queue, 1);
    else
        reply_error(request, err, &info);
}

#define ADMIN \
    .role = "ledger", .flags = IO_ROUTE_ADMIN, .scope = "ledger.admin", .handler = copy_later

static const struct api_row rows[] = {
    {{HTTP_GET, "/admin/ledger/export", ADMIN, .replies = "application/x-ndjson",
      .name = "ledger_export", .deadline_ms = PIECE_MS,
      .query = IO_PARAMS(
          {"format", "{\"enum\":[\"jsonl\",\"csv\",\"journal\"]}", "jsonl without it"},
          PARAM_SINCE),
      .summary = "every entry beyond since, chunked"},
     get_export},
    {{HTTP_POST, "/admin/ledger/snapshot", ADMIN, .replies = "application/json",
      .name = "ledger_snapshot", .deadline_ms = SNAPSHOT_MS,
      .summary = "write the state down now, and anchor it",
      .reply_schema = "{\"type\":\"object\",\"properties\":{\"seq\":{\"type\":\"integer\"},"
                      "\"batch_no\":{\"type\":\"integer\"},\"bytes\":{\"type\":\"integer\"},"
                      "\"rows\":{\"type\":\"integer\"}}}"},
     post_snapshot},
    {{HTTP_POST, "/admin/ledger/backup", ADMIN, .media = "application/json", .body_max = 4096,
      .replies = "application/json", .name = "ledger_backup", .deadline_ms = BACKUP_MS,
      .summary = "copy the ledger to backups/NAME below its data directory",
      .request_schema = "{\"type\":\"object\",\"required\":[\"name\"],\"properties\":{\"name\":"
                        "{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9_-]{1,64}$\"},"
                        "\"with_key\":{\"type\":\"boolean\"}}}",
      .reply_schema = "{\"type\":\"object\",\"properties\":{\"directory\":{\"type\":\"string\"},"
                      "\"entries\":{\"type\":\"integer\"},\"root\":{\"type\":\"string\"},"
                      "\"files\":{\"type\":\"integer\"},\"bytes\":{\"type\":\"integer\"},"
                      "\"key\":{\"type\":\"boolean\"},\"made_at\":{\"type\":\"string\"}}}"},
     post_backup},
};
const struct api_rows api_copy_rows = {rows, RON_ARRAY_COUNT(rows)};
