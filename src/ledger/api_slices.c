/*
 * api_slices.c - PUT /slices/{tenant}/{dimension}/{seq} and GET .../head.
 *
 * The bytes of a slice are durable, under their digest, before its Anchor is sequenced: what the
 * log says it has can be read. A write that is then refused leaves bytes that nobody names.
 */
#include <stdio.h>

#include "base/decimal.h"
#include "base/hex.h"
#include "io/durable.h"
#include "ledger/api_pages.h"

#define SLICES_DIR "ledger/slices"

struct place {
    struct ron_u128 tenant;
    char dimension_text[LEDGER_DIMENSION_SIZE_MAX];
    struct ron_slice dimension;
    uint64_t seq;
};

/* The tenant of the path must be the caller's; a role writes for all. */
static enum ron_err read_place(const struct io_request *request, struct place *ret_place,
                               struct ron_errinfo *reterr)
{
    const struct auth_grant *grant = grant_of(request);
    enum ron_err err = ron_decimal_parse_u128(request->params[0], &ret_place->tenant, NULL);

    if (err != RON_ERR_OK)
        return ron_fail(reterr, RON_ERR_MALFORMED, "path: the tenant is not a decimal number");
    err = path_text(request->params[1], ret_place->dimension_text,
                    sizeof(ret_place->dimension_text), &ret_place->dimension, reterr);
    if (err != RON_ERR_OK || !ledger_is_hold_id(ret_place->dimension))
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "path: the dimension is not 1..64 of [A-Za-z0-9_:-]");
    if (grant != NULL && !grant->is_service &&
        ron_u128_compare(grant->tenant, ret_place->tenant) != 0)
        return ron_fail(reterr, RON_ERR_FORBIDDEN, "the capability is of another tenant");
    return RON_ERR_OK;
}

/* --- Writing -----------------------------------------------------------------------------------
 */

static enum ron_err check_place(const struct ledger_slice_body *body, const struct place *place,
                                struct ron_errinfo *reterr)
{
    if (ron_u128_compare(body->tenant, place->tenant) != 0 ||
        !ron_slice_equal(body->terms.dimension, place->dimension) || body->terms.seq != place->seq)
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "the slice is not of this tenant, dimension, seq");
    return RON_ERR_OK;
}

/* By one task, so nobody else writes the same name. */
static enum ron_err keep_bytes(struct ledger_api *api, const struct ledger_slice_terms *terms,
                               struct ron_slice bytes, struct ron_errinfo *reterr) RON_BLOCKS
{
    char path[sizeof(SLICES_DIR "/") + RON_HEX_SIZE(LEDGER_DIGEST_SIZE)] = SLICES_DIR "/";
    struct io_vfs *vfs = api->options.vfs;
    struct io_file *file;
    enum ron_err err;

    if (vfs == NULL)
        return RON_ERR_OK;
    (void)ron_hex_encode(ron_slice_of(terms->digest, LEDGER_DIGEST_SIZE), path + sizeof(SLICES_DIR),
                         sizeof(path) - sizeof(SLICES_DIR));
    if (io_vfs_open(vfs, path, IO_OPEN_READ, &file, NULL) == RON_ERR_OK) {
        (void)io_file_close(file); /* its name is its content */
        return RON_ERR_OK;
    }
    err = io_durable_dir(vfs, SLICES_DIR, reterr);
    if (err == RON_ERR_OK)
        err = io_durable_replace(vfs, path, bytes, reterr);
    return err;
}

static enum ron_err read_slice(struct api_call *call, const struct place *place,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_api *api = call->api;
    struct ledger_command *command = &call->ledger.command;
    struct body_scratch *scratch;
    struct ledger_slice_body body;
    enum ron_err err = scratch_take(api, &scratch, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = ledger_read_slice(scratch, call->request->body, &body, reterr);
    if (err == RON_ERR_OK)
        err = check_place(&body, place, reterr);
    if (err == RON_ERR_OK) {
        command->stamp.tenant = place->tenant;
        command->slice = body.terms;
        err = call_keep(call, scratch, NULL, 0, reterr);
    }
    scratch_give(api, scratch);
    if (err == RON_ERR_OK)
        err = keep_bytes(api, &command->slice, call->request->body, reterr);
    return err;
}

/* Slices have a task of their own. */
static void put_slice(void *context, struct io_request *request)
{
    struct ledger_api *api = context;

    io_request_send(request, api->slices_queue, (uint32_t)request->body.size);
}

static void write_slice(struct ledger_api *api, struct io_request *request) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct place place;
    struct api_call *call;
    enum ron_err err;

    if (call_begin(api, request, LEDGER_COMMAND_SLICE, &call) != RON_ERR_OK)
        return;
    err = read_place(request, &place, &info);
    if (err == RON_ERR_OK &&
        ron_decimal_parse_u64(request->params[2], &place.seq, NULL) != RON_ERR_OK)
        err = ron_fail(&info, RON_ERR_MALFORMED, "path: seq is not a number of 64 bits");
    if (err == RON_ERR_OK && call->header_key.size > 0)
        err = ron_fail(&info, RON_ERR_MALFORMED, "this route takes no Idempotency-Key");
    if (err == RON_ERR_OK)
        err = read_slice(call, &place, &info);
    if (err == RON_ERR_OK)
        call_submit(call);
    else
        call_refuse(call, err, &info);
}

/* --- Head --------------------------------------------------------------------------------------
 */

/* The newest Anchor of the stream; *ret_any false before the first. */
static enum ron_err find_head(struct ledger_api *api, struct io_request *request,
                              const struct place *place, struct ledger_record *ret_record,
                              struct ron_buf *text, bool *ret_any,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    char tenant[RON_DECIMAL_U128_SIZE];
    char stream[sizeof("slice//") + RON_DECIMAL_U128_SIZE + LEDGER_DIMENSION_SIZE_MAX];
    struct ledger_thread thread;
    size_t count = 0;
    uint64_t seq;
    enum ron_err err = need_books(api, reterr);

    if (err != RON_ERR_OK)
        return err;
    (void)ron_decimal_print_u128(place->tenant, tenant);
    (void)snprintf(stream, sizeof(stream), "slice/%s/%.*s", tenant,
                   RON_SLICE_FMT(place->dimension));
    thread = ledger_stream_thread(ron_slice_text(stream));
    err = ledger_books_thread(api->options.books, &thread, UINT64_MAX, true, request->deadline,
                              &seq, 1, &count, reterr);
    *ret_any = count > 0;
    if (err == RON_ERR_OK && count > 0)
        err = ledger_books_at(api->options.books, seq, request->deadline, ret_record, text, reterr);
    return err;
}

static void reply_head(struct io_request *request, uint64_t next_seq, const struct ron_b3 *b3)
{
    char digest[RON_B3_TEXT_SIZE];
    struct ron_json_writer writer;
    struct ron_buf buf;

    ron_b3_print(b3, digest);
    ron_buf_init(&buf, API_REPLY_SIZE_MAX);
    ron_json_writer_init(&writer, &buf, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    put_u64(&writer, "next_seq", next_seq);
    ron_json_put_name(&writer, "b3");
    if (next_seq == 0)
        ron_json_put_null(&writer);
    else
        ron_json_put_text(&writer, digest);
    ron_json_put_object_end(&writer);
    reply_json(request, &writer, &buf);
}

static void read_head(struct ledger_api *api, struct io_request *request) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct ledger_record record;
    struct ledger_ext ext;
    struct place place;
    struct ron_b3 b3 = {{0}};
    struct ron_buf text;
    uint64_t seq = UINT64_MAX; /* so that the next is 0 */
    bool any = false;
    enum ron_err err = read_place(request, &place, &info);

    ron_buf_init(&text, RON_BODY_SIZE_MAX);
    if (err == RON_ERR_OK)
        err = find_head(api, request, &place, &record, &text, &any, &info);
    if (err == RON_ERR_OK && any) {
        err = ledger_ext_decode(record.ext, &ext, &info);
        if (err == RON_ERR_OK)
            err = ron_decimal_parse_u64(ext.ref, &seq, &info);
        memcpy(b3.bytes, record.entry.debit.bytes, LEDGER_ID_SIZE);
        memcpy(b3.bytes + LEDGER_ID_SIZE, record.entry.credit.bytes, LEDGER_ID_SIZE);
    }
    if (err == RON_ERR_OK)
        reply_head(request, seq + 1, &b3);
    else
        reply_error(request, err, &info);
    ron_buf_fini(&text);
}

static const struct api_row rows[] = {
    {{HTTP_PUT, "/slices/{tenant}/{dimension}/{seq}", .role = "ledger", .flags = IO_ROUTE_WRITE,
      .media = "application/json", .replies = "application/json", .body_max = RON_BODY_SIZE_MAX,
      .name = "ledger_slice", .scope = "ledger.slice", .handler = put_slice,
      .query = IO_PARAMS(PARAM_PROOF),
      .summary = "keep and anchor the next sealed slice of a stream", .reply_schema = SLICE_SCHEMA},
     write_slice},
    {{HTTP_GET, "/slices/{tenant}/{dimension}/head", .role = "ledger",
      .replies = "application/json", .name = "ledger_slice_head", .scope = "ledger.slice",
      .reply_schema = SLICE_HEAD_SCHEMA,
      .summary = "the seq and prev_b3 that the next slice of a stream must have"},
     read_head},
};
const struct api_rows api_slice_rows = {rows, RON_ARRAY_COUNT(rows)};
