/*
 * api_proofs.c - the log as others check it: checkpoints, tiles, proofs; and the proofs that a
 * write asked for.
 */
#include "base/decimal.h"
#include "base/hex.h"
#include "ledger/api_pages.h"

#define NOTE_MEDIA "text/plain; charset=utf-8"
#define TILE_MEDIA "application/octet-stream"

enum ron_err need_tree(const struct ledger_api *api, struct ron_errinfo *reterr)
{
    if (api->options.tree == NULL)
        return ron_fail(reterr, RON_ERR_NOT_READY, "the ledger has no tree");
    return RON_ERR_OK;
}

/* --- Checkpoint --------------------------------------------------------------------------------
 */

static void get_checkpoint(void *context, struct io_request *request)
{
    struct ledger_api *api = context;
    struct ron_errinfo info = {0};
    struct ron_buf buf;
    uint64_t size;
    enum ron_err err = io_query_only(request, &info);

    ron_buf_init(&buf, RON_NOTE_SIZE_MAX);
    if (err == RON_ERR_OK)
        err = need_tree(api, &info);
    if (err == RON_ERR_OK)
        err = ledger_tree_checkpoint(api->options.tree, &buf, &size, &info);
    if (err == RON_ERR_OK) {
        reply_buf(request, NOTE_MEDIA, &buf);
        return;
    }
    ron_buf_fini(&buf);
    reply_error(request, err, &info);
}

static void get_vkey(void *context, struct io_request *request)
{
    struct ledger_api *api = context;
    struct ron_errinfo info = {0};
    enum ron_err err = io_query_only(request, &info);
    struct ron_buf buf;

    if (err == RON_ERR_OK)
        err = need_tree(api, &info);
    if (err != RON_ERR_OK) {
        reply_error(request, err, &info);
        return;
    }
    ron_buf_init(&buf, RON_VKEY_SIZE_MAX + 1);
    ron_buf_put_text(&buf, ledger_tree_vkey(api->options.tree));
    ron_buf_put_byte(&buf, '\n');
    reply_buf(request, NOTE_MEDIA, &buf);
}

/* --- Tiles -------------------------------------------------------------------------------------
 */

/* Three digits at text, or -1. */
static int group_of(struct ron_slice text)
{
    int value = 0;

    if (text.size < 3)
        return -1;
    for (size_t i = 0; i < 3; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return -1;
        value = value * 10 + (text.data[i] - '0');
    }
    return value;
}

/* "x001/x234/067" or "x001/x234/067.p/5". What comes out is written again and compared, so one tile
 * has one path. */
static bool parse_index(struct ron_slice rest, struct io_tile *tile)
{
    uint64_t width = IO_TILE_WIDTH;

    tile->index = 0;
    for (;;) {
        const bool more = rest.size > 0 && rest.data[0] == 'x';
        int group;

        if (more)
            rest = ron_slice_of(rest.data + 1, rest.size - 1);
        group = group_of(rest);
        if (group < 0 || tile->index > UINT64_MAX / 1000 - 1)
            return false;
        tile->index = tile->index * 1000 + (uint64_t)group;
        rest = ron_slice_of(rest.data + 3, rest.size - 3);
        if (!more)
            break;
        if (rest.size == 0 || rest.data[0] != '/')
            return false;
        rest = ron_slice_of(rest.data + 1, rest.size - 1);
    }
    if (rest.size > 0) {
        if (rest.size < 4 || memcmp(rest.data, ".p/", 3) != 0 ||
            ron_decimal_parse_u64(ron_slice_of(rest.data + 3, rest.size - 3), &width, NULL) !=
                RON_ERR_OK ||
            width == 0 || width >= IO_TILE_WIDTH)
            return false;
    }
    tile->width = (unsigned)width;
    return true;
}

static enum ron_err parse_tile(struct ron_slice rest, bool entries, struct io_tile *ret_tile,
                               struct ron_errinfo *reterr)
{
    struct io_tile tile = {.level = 0};
    struct ron_slice index = rest;
    char path[IO_TILE_PATH_MAX];
    const char *written = path;
    bool ok = true;

    if (!entries) {
        const uint8_t *slash = memchr(rest.data, '/', rest.size);

        ok = slash == rest.data + 1 && rest.data[0] >= '0' && rest.data[0] < '0' + IO_TILE_LEVELS;
        if (ok) {
            tile.level = (unsigned)(rest.data[0] - '0');
            index = ron_slice_of(slash + 1, rest.size - 2);
        }
    }
    ok = ok && parse_index(index, &tile);
    if (ok) {
        io_tile_path(&tile, entries, path);
        if (entries)
            written = path + sizeof("entries/") - 1;
        ok = ron_slice_equal(rest, ron_slice_text(written));
    }
    if (!ok)
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "path: not a tile: LEVEL/x001/234 or .../234.p/W");
    *ret_tile = tile;
    return RON_ERR_OK;
}

/* What is full never changes. */
static void reply_tile(struct io_request *request, const struct io_tile *tile, struct ron_buf *buf)
{
    static const struct io_reply_field fields[] = {
        {"Cache-Control", "public, max-age=31536000, immutable"},
    };
    struct ron_errinfo info = {0};
    enum ron_err err = ron_buf_check(buf, &info);

    if (err == RON_ERR_OK)
        io_reply(request, &(struct io_reply){.status = 200,
                                             .media = TILE_MEDIA,
                                             .body = ron_buf_slice(buf),
                                             .fields = fields,
                                             .fields_count = tile->width == IO_TILE_WIDTH ? 1 : 0});
    else
        reply_error(request, err, &info);
    ron_buf_fini(buf);
}

static void read_tile(struct ledger_api *api, struct io_request *request) RON_BLOCKS
{
    struct ron_sha256 hashes[IO_TILE_WIDTH];
    struct ron_errinfo info = {0};
    struct io_tile tile;
    struct ron_buf buf;
    enum ron_err err = parse_tile(request->params[0], false, &tile, &info);

    if (err == RON_ERR_OK)
        err = need_tree(api, &info);
    if (err == RON_ERR_OK)
        err = io_tlog_tile(ledger_tree_log(api->options.tree), &tile, hashes, &info);
    if (err != RON_ERR_OK) {
        reply_error(request, err, &info);
        return;
    }
    ron_buf_init(&buf, sizeof(hashes));
    for (unsigned i = 0; i < tile.width; i++)
        ron_buf_put(&buf, hashes[i].bytes, RON_SHA256_SIZE);
    reply_tile(request, &tile, &buf);
}

/* An entry bundle of tlog-tiles: u16 big-endian size, leaf. */
static enum ron_err put_leaf(void *context, const struct ledger_record *record,
                             struct ron_errinfo *reterr)
{
    struct ron_buf *buf = context;
    uint8_t size[2];

    RON_ASSERT(record->ext.size <= LEDGER_EXT_SIZE_MAX);
    ron_store_be16(size, (uint16_t)(sizeof(record->entry) + record->ext.size));
    ron_buf_put(buf, size, sizeof(size));
    ron_buf_put(buf, &record->entry, sizeof(record->entry));
    ron_buf_put(buf, record->ext.data, record->ext.size);
    return ron_buf_check(buf, reterr);
}

static void read_bundle(struct ledger_api *api, struct io_request *request) RON_BLOCKS
{
    uint64_t seqs[IO_TILE_WIDTH];
    struct ron_errinfo info = {0};
    struct io_tile tile;
    struct ron_buf buf;
    enum ron_err err = parse_tile(request->params[0], true, &tile, &info);

    if (err == RON_ERR_OK && grant_is_bound(grant_of(request)))
        err = ron_fail(&info, RON_ERR_FORBIDDEN, "the capability does not cover every account");
    if (err == RON_ERR_OK)
        err = need_books(api, &info);
    if (err == RON_ERR_OK &&
        (tile.index > UINT64_MAX / IO_TILE_WIDTH - 1 ||
         tile.index * IO_TILE_WIDTH + tile.width > ledger_read_head(api->options.service).seq))
        err = ron_fail(&info, RON_ERR_NOT_FOUND, "the log has no such entries yet");
    if (err != RON_ERR_OK) {
        reply_error(request, err, &info);
        return;
    }
    ron_buf_init(&buf, (size_t)IO_TILE_WIDTH * (RON_LEAF_SIZE_MAX + 2));
    for (unsigned i = 0; i < tile.width; i++)
        seqs[i] = tile.index * IO_TILE_WIDTH + i + 1;
    err = ledger_books_each(api->options.books, seqs, tile.width, request->deadline, put_leaf, &buf,
                            &info);
    if (err == RON_ERR_OK) {
        reply_tile(request, &tile, &buf);
        return;
    }
    ron_buf_fini(&buf);
    reply_error(request, err, &info);
}

/* --- Proofs ------------------------------------------------------------------------------------
 */

void put_hashes(struct ron_json_writer *writer, const struct ron_sha256 *hashes, size_t count)
{
    ron_json_put_name(writer, "hashes");
    ron_json_put_array_begin(writer);
    for (size_t i = 0; i < count; i++) {
        char text[RON_HEX_SIZE(RON_SHA256_SIZE)];

        (void)ron_hex_encode(ron_slice_of(hashes[i].bytes, RON_SHA256_SIZE), text, sizeof(text));
        ron_json_put_text(writer, text);
    }
    ron_json_put_array_end(writer);
}

static void read_inclusion(struct ledger_api *api, struct io_request *request) RON_BLOCKS
{
    struct io_tlog_proof proof;
    struct ron_errinfo info = {0};
    struct ron_json_writer writer;
    struct ron_buf buf;
    uint64_t seq = 0, size = 0;
    enum ron_err err = need_tree(api, &info);

    if (err == RON_ERR_OK)
        err = query_u64(request, "seq", 0, &seq, &info);
    if (err == RON_ERR_OK)
        err = query_u64(request, "size", ledger_tree_size(api->options.tree), &size, &info);
    if (err == RON_ERR_OK && seq == 0)
        err = ron_fail(&info, RON_ERR_MALFORMED, "query: seq is 1 or more");
    if (err == RON_ERR_OK && seq > size)
        err = ron_fail(&info, RON_ERR_NOT_FOUND, "entry %llu is not in a tree of %llu",
                       (unsigned long long)seq, (unsigned long long)size);
    if (err == RON_ERR_OK)
        err = io_tlog_inclusion(ledger_tree_log(api->options.tree), seq - 1, size, &proof, &info);
    if (err != RON_ERR_OK) {
        reply_error(request, err, &info);
        return;
    }
    ron_buf_init(&buf, API_REPLY_SIZE_MAX);
    ron_json_writer_init(&writer, &buf, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    put_u64(&writer, "seq", seq);
    put_u64(&writer, "leaf_index", seq - 1);
    put_u64(&writer, "tree_size", size);
    put_hex(&writer, "root", proof.tree.root.bytes, RON_SHA256_SIZE);
    put_hashes(&writer, proof.hashes, proof.hashes_count);
    ron_json_put_object_end(&writer);
    reply_json(request, &writer, &buf);
}

static void read_consistency(struct ledger_api *api, struct io_request *request) RON_BLOCKS
{
    struct io_tlog_proof proof;
    struct ron_errinfo info = {0};
    struct ron_json_writer writer;
    struct ron_buf buf;
    uint64_t from = 0, to = 0;
    enum ron_err err = need_tree(api, &info);

    if (err == RON_ERR_OK)
        err = query_u64(request, "from", 0, &from, &info);
    if (err == RON_ERR_OK)
        err = query_u64(request, "to", ledger_tree_size(api->options.tree), &to, &info);
    if (err == RON_ERR_OK)
        err = io_tlog_consistency(ledger_tree_log(api->options.tree), from, to, &proof, &info);
    if (err != RON_ERR_OK) {
        reply_error(request, err, &info);
        return;
    }
    ron_buf_init(&buf, API_REPLY_SIZE_MAX);
    ron_json_writer_init(&writer, &buf, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    put_u64(&writer, "from", from);
    put_hex(&writer, "from_root", proof.old.root.bytes, RON_SHA256_SIZE);
    put_u64(&writer, "to", to);
    put_hex(&writer, "to_root", proof.tree.root.bytes, RON_SHA256_SIZE);
    put_hashes(&writer, proof.hashes, proof.hashes_count);
    ron_json_put_object_end(&writer);
    reply_json(request, &writer, &buf);
}

/* --- With a write ------------------------------------------------------------------------------
 */

/* Proofs of its entries under the newest head, as a JSON array. */
static enum ron_err write_proofs(struct api_call *call, struct ron_buf *buf,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_tree *tree = call->api->options.tree;
    const struct ledger_reply *reply = &call->ledger.outcome.reply;
    struct ron_json_writer writer;
    struct ron_buf text;
    enum ron_err err;

    if (reply->seq_end - reply->seq_start >= LEDGER_API_PAGE_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "more than %d proofs", LEDGER_API_PAGE_MAX);
    err = ledger_tree_await(tree, reply->seq_end, call->request->deadline, reterr);
    ron_buf_init(&text, RON_NOTE_SIZE_MAX);
    ron_json_writer_init(&writer, buf, RON_JSON_FIXED);
    ron_json_put_array_begin(&writer);
    for (uint64_t seq = reply->seq_start; err == RON_ERR_OK && seq <= reply->seq_end; seq++) {
        ron_buf_reset(&text);
        err = ledger_tree_proof_text(tree, seq, &text, reterr);
        if (err == RON_ERR_OK)
            ron_json_put_string(&writer, ron_buf_slice(&text));
    }
    ron_json_put_array_end(&writer);
    ron_buf_fini(&text);
    return err == RON_ERR_OK ? ron_json_writer_end(&writer, reterr) : err;
}

static void answer_panicked(void *argument)
{
    call_end(argument); /* it is committed, and says so without its proofs */
}

static void prove(struct api_call *call) RON_BLOCKS
{
    struct rt_cleanup cleanup;
    struct ron_buf proofs;
    enum ron_err err;

    ron_buf_init(&proofs, API_REPLY_SIZE_MAX);
    rt_cleanup_push(&cleanup, answer_panicked, call);
    err = write_proofs(call, &proofs, NULL);
    rt_cleanup_pop(&cleanup, false);
    call_end_with(call, err == RON_ERR_OK ? ron_buf_slice(&proofs) : (struct ron_slice){NULL, 0});
    ron_buf_fini(&proofs);
}

enum ron_err prover_run(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct ledger_api *api = argument;
    void *item = NULL;

    while (rt_queue_recv(api->proofs_queue, RT_DEADLINE_NEVER, &item, NULL) == RON_ERR_OK) {
        prove(item);
        rt_task_beat(task);
    }
    return RON_ERR_OK;
}

#define READ .role = "ledger", .replies = "application/json", .scope = "ledger.read"

static const struct api_row rows[] = {
    {{HTTP_GET, "/checkpoint", .role = "ledger", .replies = NOTE_MEDIA, .name = "ledger_checkpoint",
      .summary = "the newest signed head of the log", .handler = get_checkpoint},
     NULL},
    {{HTTP_GET, "/checkpoint/vkey", .role = "ledger", .replies = NOTE_MEDIA, .name = "ledger_vkey",
      .summary = "the key that its notes are verified with", .handler = get_vkey},
     NULL},
    {{HTTP_GET, "/tile/{tile...}", .role = "ledger", .replies = TILE_MEDIA, .name = "ledger_tile",
      .summary = "hashes of the tree (c2sp.org/tlog-tiles)"},
     read_tile},
    {{HTTP_GET, "/tile/entries/{tile...}", .role = "ledger", .replies = TILE_MEDIA,
      .scope = "ledger.read", .name = "ledger_bundle",
      .summary = "leaves of the tree (c2sp.org/tlog-tiles)"},
     read_bundle},
    {{HTTP_GET, "/proof/inclusion", READ, .name = "ledger_inclusion",
      .query = IO_PARAMS({"seq", SEQ, "of the entry", true},
                         {"size", U64, "of the tree; the newest one's without it"}),
      .reply_schema = INCLUSION_SCHEMA, .summary = "the entry stands in the tree"},
     read_inclusion},
    {{HTTP_GET, "/proof/consistency", READ, .name = "ledger_consistency",
      .query = IO_PARAMS({"from", U64, "size of the older tree", true},
                         {"to", U64, "size of the newer tree; the newest one's without it"}),
      .reply_schema = CONSISTENCY_SCHEMA, .summary = "the one tree is the beginning of the other"},
     read_consistency},
    {{HTTP_GET, "/proof/balance", READ, .name = "ledger_balance_proof",
      .query = IO_PARAMS({"account", ACCOUNT, "whose balance", true},
                         {"asset", ASSET, "name of an asset", true}),
      .reply_schema = BALANCE_PROOF_SCHEMA,
      .summary = "a balance, or that there is none, under an anchored state root"},
     read_balance_proof},
};
const struct api_rows api_proof_rows = {rows, RON_ARRAY_COUNT(rows)};
