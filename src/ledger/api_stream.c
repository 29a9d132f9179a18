/*
 * api_stream.c - GET /roots/stream: every root as it is committed, and those before it to who asks.
 *
 * One task serves all streams. Each has a cursor and is sent what lies beyond it, from the ring of
 * newest roots or from the log; so a reader who is slow, or who comes back with the id he saw last,
 * misses nothing and costs nobody else anything.
 *
 * A stream is in the table until the task, and nobody else, takes it out.
 */
#include "base/decimal.h"
#include "ledger/api_pages.h"
#include "rt/bus.h"

enum { PACE_MS = 1, IDLE_MS = 20, TICK_MS = 100, TOUCHED_MS = 1000 };
enum { ROOTS_PAGE = 64, PAGES_MAX = 4 };

/* The accounts of the batch that was looked at last. */
struct touched {
    uint64_t seq_start, seq_end;
    struct ron_buf json; /* an array, or null */
};

struct streamer {
    struct ledger_api *api;
    bool behind; /* somebody has more to be sent at once */
    struct touched touched;
};

/* --- What a batch touched ----------------------------------------------------------------------
 */

struct pair {
    uint16_t size;
    uint32_t asset;
    char account[RON_ACCOUNT_NAME_SIZE_MAX];
};
struct pairs {
    size_t count;
    struct pair pairs[API_TOUCHED_MAX];
};

/* False: it cannot be said, or there are too many. */
static bool add_pair(struct pairs *pairs, struct ron_slice account, uint32_t asset)
{
    struct pair *pair;

    if (account.size == 0 || account.size > RON_ACCOUNT_NAME_SIZE_MAX)
        return false;
    for (size_t i = 0; i < pairs->count; i++)
        if (pairs->pairs[i].asset == asset &&
            ron_slice_equal(account, ron_slice_of(pairs->pairs[i].account, pairs->pairs[i].size)))
            return true;
    if (pairs->count == API_TOUCHED_MAX)
        return false;
    pair = &pairs->pairs[pairs->count++];
    pair->size = (uint16_t)account.size;
    pair->asset = asset;
    memcpy(pair->account, account.data, account.size);
    return true;
}

static bool collect_pairs(struct ledger_api *api, uint64_t seq_start, uint64_t seq_end,
                          struct pairs *pairs) RON_BLOCKS
{
    const struct rt_deadline deadline = rt_deadline_after_ms(TOUCHED_MS);
    struct ron_buf text;
    bool known = api->options.books != NULL && seq_end - seq_start < API_TOUCHED_MAX;

    ron_buf_init(&text, RON_BODY_SIZE_MAX);
    for (uint64_t seq = seq_start; known && seq <= seq_end; seq++) {
        struct ledger_record record;
        struct api_asset asset;

        ron_buf_reset(&text);
        known = ledger_books_at(api->options.books, seq, deadline, &record, &text, NULL) ==
                RON_ERR_OK;
        if (!known || record.entry.kind == LEDGER_ANCHOR || record.entry.kind == LEDGER_ASSET)
            continue;
        known = (assets_at(api, record.entry.asset, &asset) ||
                 assets_refresh(api, deadline, NULL) == RON_ERR_OK) &&
                add_pair(pairs, record.debit_name, record.entry.asset) &&
                add_pair(pairs, record.credit_name, record.entry.asset);
    }
    ron_buf_fini(&text);
    return known;
}

static void look_at(struct streamer *streamer, uint64_t seq_start, uint64_t seq_end) RON_BLOCKS
{
    struct touched *touched = &streamer->touched;
    struct pairs pairs = {.count = 0};
    struct ron_json_writer writer;
    bool known;

    if (touched->seq_start == seq_start && touched->seq_end == seq_end)
        return; /* the stream before this one asked for the same */
    known = collect_pairs(streamer->api, seq_start, seq_end, &pairs);
    touched->seq_start = seq_start;
    touched->seq_end = seq_end;
    ron_buf_reset(&touched->json);
    ron_json_writer_init(&writer, &touched->json, RON_JSON_FIXED);
    if (known) {
        ron_json_put_array_begin(&writer);
        for (size_t i = 0; i < pairs.count; i++) {
            struct api_asset asset = {.number = 0};

            (void)assets_at(streamer->api, pairs.pairs[i].asset, &asset);
            ron_json_put_array_begin(&writer);
            ron_json_put_string(&writer, ron_slice_of(pairs.pairs[i].account, pairs.pairs[i].size));
            ron_json_put_string(&writer, ron_slice_of(asset.name, asset.name_size));
            ron_json_put_array_end(&writer);
        }
        ron_json_put_array_end(&writer);
    } else {
        ron_json_put_null(&writer);
    }
    if (ron_json_writer_end(&writer, NULL) != RON_ERR_OK) {
        touched->seq_end = 0; /* look again */
        ron_buf_reset(&touched->json);
        ron_buf_put_text(&touched->json, "null");
    }
}

/* --- Sending -----------------------------------------------------------------------------------
 */

static enum ron_err send_root(struct streamer *streamer, struct api_stream *stream,
                              const struct ledger_root *root) RON_BLOCKS
{
    char id[RON_DECIMAL_U64_SIZE];
    struct ron_json_writer writer;
    struct ron_buf buf;
    enum ron_err err;

    if (!stream->bound)
        look_at(streamer, stream->seq + 1, root->seq);
    (void)ron_decimal_print_u64(root->seq, id);
    ron_buf_init(&buf, API_STREAM_BUFFER / 2);
    ron_json_writer_init(&writer, &buf, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    put_u64(&writer, "seq_start", stream->seq + 1);
    put_u64(&writer, "seq_end", root->seq);
    put_u64(&writer, "tree_size", root->seq);
    put_hex(&writer, "root", root->root.bytes, RON_SHA256_SIZE);
    put_u64(&writer, "ts", root->commit_ms);
    ron_json_put_name(&writer, "touched");
    if (stream->bound)
        ron_json_put_null(&writer);
    else
        ron_json_put_raw(&writer, ron_buf_slice(&streamer->touched.json));
    ron_json_put_object_end(&writer);
    err = ron_json_writer_end(&writer, NULL);
    if (err == RON_ERR_OK)
        err = io_stream_send(stream->stream, id, "root", ron_buf_slice(&buf), NULL);
    ron_buf_fini(&buf);
    if (err == RON_ERR_OK)
        stream->seq = root->seq;
    return err;
}

/* Of what is beyond its cursor as much as there is room for, some pages at a time: others wait.
 * False: it is gone. */
static bool serve(struct streamer *streamer, struct api_stream *stream) RON_BLOCKS
{
    struct ledger_root roots[ROOTS_PAGE];
    size_t count = ROOTS_PAGE;

    if (io_stream_gone(stream->stream))
        return false;
    for (unsigned page = 0; count == ROOTS_PAGE; page++) {
        if (page == PAGES_MAX) {
            streamer->behind = true;
            return true;
        }
        if (ledger_read_roots(streamer->api->options.service, stream->seq, roots, ROOTS_PAGE,
                              &count, NULL) != RON_ERR_OK)
            return true; /* the log says why; the next tick asks again */
        for (size_t i = 0; i < count; i++) {
            enum ron_err err = send_root(streamer, stream, &roots[i]);

            if (err != RON_ERR_OK)
                return err != RON_ERR_CANCELED; /* full: it reads on when it can */
        }
    }
    if (stream->seq < ledger_read_head(streamer->api->options.service).seq)
        streamer->behind = true; /* committed, and not among the roots yet */
    return true;
}

static void serve_all(struct streamer *streamer) RON_BLOCKS
{
    struct ledger_api *api = streamer->api;

    for (size_t i = 0;;) {
        struct api_stream stream;
        bool there, stays;

        api_lock(api);
        there = i < api->streams_count;
        if (there)
            stream = api->streams[i];
        api_unlock(api);
        if (!there)
            return;
        stays = serve(streamer, &stream);
        api_lock(api);
        if (stays)
            api->streams[i++] = stream;
        else
            api->streams[i] = api->streams[--api->streams_count];
        api_unlock(api);
        if (!stays)
            (void)io_stream_close(stream.stream);
    }
}

/* Every group of batches would wake it otherwise, also for nobody. */
static uint32_t pace_ms(struct ledger_api *api)
{
    bool idle;

    api_lock(api);
    idle = api->streams_count == 0;
    api_unlock(api);
    return idle ? IDLE_MS : PACE_MS;
}

enum ron_err streamer_run(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct streamer streamer = {.api = argument};
    struct rt_bus_subscriber *subscriber;
    enum ron_err err = ledger_follow_roots(streamer.api->options.service, "api_streams",
                                           &subscriber, rt_task_reterr(task));

    if (err != RON_ERR_OK)
        return err;
    ron_buf_init(&streamer.touched.json, API_STREAM_BUFFER / 4);
    while (!rt_task_canceled(task)) {
        err = rt_bus_skip(subscriber, rt_deadline_after_ms(streamer.behind ? PACE_MS : TICK_MS),
                          NULL);
        if (err != RON_ERR_OK && err != RON_ERR_TIMEOUT)
            break; /* the ledger has ended */
        streamer.behind = false;
        serve_all(&streamer);
        rt_task_beat(task);
        if (rt_task_sleep(task, rt_deadline_after_ms(pace_ms(streamer.api))))
            break;
    }
    ron_buf_fini(&streamer.touched.json);
    (void)rt_bus_unsubscribe(subscriber);
    return RON_ERR_OK;
}

void streams_end(struct ledger_api *api)
{
    for (;;) {
        struct io_stream *stream = NULL;

        api_lock(api);
        api->streams_closed = true;
        if (api->streams_count > 0)
            stream = api->streams[--api->streams_count].stream;
        api_unlock(api);
        if (stream == NULL)
            return;
        (void)io_stream_close(stream);
    }
}

/* --- The route ---------------------------------------------------------------------------------
 */

/* Last-Event-ID, else ?since=, else from now on. */
static enum ron_err read_cursor(struct ledger_api *api, const struct io_request *request,
                                uint64_t *ret_seq, struct ron_errinfo *reterr)
{
    const struct ron_slice last = io_request_last_event_id(request);
    const uint64_t head = ledger_read_head(api->options.service).seq;
    enum ron_err err = io_query_only(request, reterr);

    if (err != RON_ERR_OK)
        return err;
    if (last.size == 0)
        return query_u64(request, "since", head, ret_seq, reterr);
    if (ron_decimal_parse_u64(last, ret_seq, NULL) != RON_ERR_OK)
        return ron_fail(reterr, RON_ERR_MALFORMED, "Last-Event-ID is not one of ours");
    return RON_ERR_OK;
}

static bool add_stream(struct ledger_api *api, const struct api_stream *stream)
{
    bool added;

    api_lock(api);
    added = !api->streams_closed && api->streams_count < LEDGER_API_STREAMS_MAX;
    if (added)
        api->streams[api->streams_count++] = *stream;
    api_unlock(api);
    return added;
}

static void get_stream(void *context, struct io_request *request)
{
    struct ledger_api *api = context;
    struct api_stream stream = {.bound = grant_is_bound(grant_of(request))};
    struct ron_errinfo info = {0};
    bool full;
    enum ron_err err = grant_rate(api, grant_of(request), &info);

    if (err == RON_ERR_OK)
        err = read_cursor(api, request, &stream.seq, &info);
    api_lock(api);
    full = api->streams_closed || api->streams_count == LEDGER_API_STREAMS_MAX;
    api_unlock(api);
    if (err == RON_ERR_OK && full)
        err = ron_fail(&info, RON_ERR_BUSY, "%d streams are open", LEDGER_API_STREAMS_MAX);
    if (err != RON_ERR_OK) {
        reply_error(request, err, &info);
        return;
    }
    if (io_stream_open(request, API_STREAM_BUFFER, &stream.stream, NULL) != RON_ERR_OK)
        return; /* answered */
    if (!add_stream(api, &stream))
        (void)io_stream_close(stream.stream);
}

static const struct api_row rows[] = {
    {{HTTP_GET, "/roots/stream", .role = "ledger", .replies = "text/event-stream",
      .scope = "ledger.read", .flags = IO_ROUTE_STREAM, .name = "ledger_roots_stream",
      .query = IO_PARAMS(PARAM_SINCE),
      .fields = IO_PARAMS({"Last-Event-ID", U64, "the same; has precedence"}),
      .summary = "every root as it is committed; from now on without since", .handler = get_stream},
     NULL},
};
const struct api_rows api_stream_rows = {rows, RON_ARRAY_COUNT(rows)};
