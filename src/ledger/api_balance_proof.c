/*
 * api_balance_proof.c - GET /proof/balance: what an account held, under the newest state root that
 * is anchored in the log.
 *
 * A state (state_rows.h) is opened by the first who asks after its snapshot, and stays open for the
 * next; each reader has one to itself while it answers. One whose Anchor is not in the log is not
 * used.
 */
#include "base/decimal.h"
#include "base/hex.h"
#include "base/mem.h"
#include "ledger/api_pages.h"
#include "ledger/state_rows.h"

enum { STATES_TRIED = 4 };

struct api_state {
    struct ledger_rows *rows;
    uint64_t newest_batch; /* of snapshots, when it was opened: a newer one is looked for then */
    uint64_t anchor_seq;
    size_t anchor_size;
    uint8_t anchor[RON_LEAF_SIZE_MAX];
};

static struct api_state *state_free(struct api_state *state) RON_BLOCKS
{
    if (state == NULL)
        return NULL;
    state->rows = ledger_rows_close(state->rows);
    return ron_mem_free(state);
}

static struct api_state *state_take(struct ledger_api *api)
{
    struct api_state *state = NULL;

    api_lock(api);
    for (size_t i = 0; i < RON_ARRAY_COUNT(api->states) && state == NULL; i++)
        state = RON_TAKE(api->states[i]);
    api_unlock(api);
    return state;
}

static void state_give(struct ledger_api *api, struct api_state *state) RON_BLOCKS
{
    api_lock(api);
    for (size_t i = 0; i < RON_ARRAY_COUNT(api->states) && state != NULL; i++)
        if (api->states[i] == NULL)
            api->states[i] = RON_TAKE(state);
    api_unlock(api);
    (void)state_free(state);
}

void states_free(struct ledger_api *api)
{
    struct api_state *state;

    while ((state = state_take(api)) != NULL)
        (void)state_free(state);
}

/* Is this the Anchor of the state? */
static bool is_anchor(const struct ledger_record *record, const struct ledger_rows_info *info)
{
    struct ledger_ext ext;
    uint64_t seq = 0;

    return record->entry.kind == LEDGER_ANCHOR && record->caller == LEDGER_CALLER_LEDGER &&
           (record->entry.flags & LEDGER_FLAG_SHA256) != 0 &&
           ledger_ext_decode(record->ext, &ext, NULL) == RON_ERR_OK &&
           ron_slice_equal(ext.stream, RON_SLICE("state")) &&
           ron_decimal_parse_u64(ext.ref, &seq, NULL) == RON_ERR_OK && seq == info->seq &&
           memcmp(record->entry.debit.bytes, info->tree.root.bytes, LEDGER_ID_SIZE) == 0 &&
           memcmp(record->entry.credit.bytes, info->tree.root.bytes + LEDGER_ID_SIZE,
                  LEDGER_ID_SIZE) == 0;
}

/* The newest Anchors of states, until one is that of these rows. RON_ERR_NOT_FOUND. */
static enum ron_err find_anchor(struct ledger_api *api, struct api_state *state,
                                struct rt_deadline deadline, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ledger_rows_info *info = ledger_rows_info(state->rows);
    const struct ledger_thread thread = ledger_stream_thread(RON_SLICE("state"));
    uint64_t seqs[STATES_TRIED];
    struct ledger_record record;
    struct ron_buf text;
    size_t count = 0;
    bool found = false;
    enum ron_err err = ledger_books_thread(api->options.books, &thread, UINT64_MAX, true, deadline,
                                           seqs, STATES_TRIED, &count, reterr);

    ron_buf_init(&text, RON_BODY_SIZE_MAX);
    for (size_t i = 0; err == RON_ERR_OK && i < count && !found; i++) {
        ron_buf_reset(&text);
        err = ledger_books_at(api->options.books, seqs[i], deadline, &record, &text, reterr);
        found = err == RON_ERR_OK && is_anchor(&record, info);
    }
    if (found) {
        state->anchor_seq = record.entry.seq;
        state->anchor_size = sizeof(record.entry) + record.ext.size;
        RON_ASSERT(state->anchor_size <= sizeof(state->anchor));
        memcpy(state->anchor, &record.entry, sizeof(record.entry));
        memcpy(state->anchor + sizeof(record.entry), record.ext.data, record.ext.size);
    } else if (err == RON_ERR_OK) {
        err = ron_fail(reterr, RON_ERR_NOT_FOUND, "the state at %llu is not anchored",
                       (unsigned long long)info->seq);
    }
    ron_buf_fini(&text);
    return err;
}

/* The newest anchored state. RON_ERR_NOT_READY: there is none yet. */
static enum ron_err state_open(struct ledger_api *api, struct api_state *state,
                               struct rt_deadline deadline, struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t batch_max = ledger_read_head(api->options.service).batch;
    enum ron_err err = RON_ERR_NOT_FOUND;

    for (unsigned tried = 0; tried < STATES_TRIED && err == RON_ERR_NOT_FOUND; tried++) {
        err = ledger_service_rows(api->options.service, batch_max, &state->rows, reterr);
        if (err != RON_ERR_OK)
            break;
        err = find_anchor(api, state, deadline, reterr);
        batch_max = ledger_rows_info(state->rows)->batch - 1;
        if (err != RON_ERR_OK)
            state->rows = ledger_rows_close(state->rows);
    }
    if (err == RON_ERR_NOT_FOUND)
        err = ron_fail(reterr, RON_ERR_NOT_READY, "no state is anchored in this log yet");
    return err;
}

/* One to answer with, or why there is none. */
static enum ron_err state_get(struct ledger_api *api, struct rt_deadline deadline,
                              struct api_state **ret_state, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct api_state *state = state_take(api);
    struct ledger_health health;
    enum ron_err err;

    ledger_read_health(api->options.service, &health);
    if (state != NULL && state->newest_batch == health.snapshots.batch) {
        *ret_state = state;
        return RON_ERR_OK;
    }
    (void)state_free(state);
    state = ron_mem_alloc(sizeof(*state));
    if (state == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a state");
    state->newest_batch = health.snapshots.batch;
    err = state_open(api, state, deadline, reterr);
    if (err != RON_ERR_OK) {
        (void)state_free(state);
        return err;
    }
    *ret_state = state;
    return RON_ERR_OK;
}

/* --- The answer --------------------------------------------------------------------------------
 */

struct answer {
    char account[RON_ACCOUNT_NAME_SIZE_MAX + 1];
    struct api_asset asset;
    bool present;
    struct ledger_row_proof rows[2]; /* it, or those beside where it would be */
    size_t rows_count;
    struct ron_buf proof; /* of the Anchor */
};

static enum ron_err find_rows(struct api_state *state, struct answer *answer,
                              const struct auth_grant *grant, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ledger_id id = ledger_account_id("", ron_slice_text(answer->account));
    const uint64_t size = ledger_rows_info(state->rows)->tree.size;
    uint64_t before = 0, first, end;
    enum ron_err err = ledger_rows_find(state->rows, &id, answer->asset.number, &before,
                                        &answer->present, reterr);

    if (err == RON_ERR_OK && !answer->present && grant_is_bound(grant))
        err = ron_fail(reterr, RON_ERR_FORBIDDEN,
                       "there is no such row, and the proof of that shows those of other accounts");
    if (err != RON_ERR_OK)
        return err;
    first = answer->present || before == 0 ? before : before - 1;
    end = before < size ? before + 1 : size;
    for (; err == RON_ERR_OK && first < end; first++)
        err = ledger_rows_prove(state->rows, first, &answer->rows[answer->rows_count++], reterr);
    return err;
}

static void put_row(struct ron_json_writer *writer, const struct ledger_row_proof *row)
{
    ron_json_put_object_begin(writer);
    put_u64(writer, "index", row->index);
    put_hex(writer, "leaf", row->leaf, LEDGER_ROW_SIZE);
    put_hashes(writer, row->hashes, row->hashes_count);
    ron_json_put_object_end(writer);
}

static void put_anchor(struct ron_json_writer *writer, const struct api_state *state,
                       const struct answer *answer)
{
    char text[RON_HEX_SIZE(RON_LEAF_SIZE_MAX)];
    const size_t size = ron_hex_encode(ron_slice_of(state->anchor, state->anchor_size), text,
                                       sizeof(text));

    ron_json_put_name(writer, "anchor");
    ron_json_put_object_begin(writer);
    put_u64(writer, "seq", state->anchor_seq);
    put_text(writer, "leaf", ron_slice_of(text, size));
    put_text(writer, "proof", ron_buf_slice(&answer->proof));
    ron_json_put_object_end(writer);
}

/* As GET /balance says it: a drawn credit line is 0 and what is owed. */
static void put_balance(struct ron_json_writer *writer, const struct answer *answer)
{
    const struct ron_u128 value = ron_u128_load_le(answer->rows[0].leaf + 20);
    const bool owes = value.v >> 127 != 0 && strncmp(answer->account, "sys/", 4) != 0;

    put_amount(writer, "balance", owes ? ron_u128_of(0) : value);
    if (owes)
        put_amount(writer, "debt", (struct ron_u128){-value.v});
}

static void reply_proof(struct io_request *request, const struct api_state *state,
                        const struct answer *answer)
{
    const struct ledger_rows_info *info = ledger_rows_info(state->rows);
    struct ron_json_writer writer;
    struct ron_buf buf;

    ron_buf_init(&buf, API_REPLY_SIZE_MAX);
    ron_json_writer_init(&writer, &buf, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    put_text(&writer, "account", ron_slice_text(answer->account));
    put_text(&writer, "asset", ron_slice_of(answer->asset.name, answer->asset.name_size));
    put_u64(&writer, "asset_no", answer->asset.number);
    put_u64(&writer, "as_of_seq", info->seq);
    ron_json_put_name(&writer, "present");
    ron_json_put_bool(&writer, answer->present);
    if (answer->present) {
        put_balance(&writer, answer);
        put_u64(&writer, "next_nonce", ron_load_le64(answer->rows[0].leaf + 36));
    }
    put_hex(&writer, "state_root", info->tree.root.bytes, RON_SHA256_SIZE);
    put_u64(&writer, "state_size", info->tree.size);
    ron_json_put_name(&writer, "rows");
    ron_json_put_array_begin(&writer);
    for (size_t i = 0; i < answer->rows_count; i++)
        put_row(&writer, &answer->rows[i]);
    ron_json_put_array_end(&writer);
    put_anchor(&writer, state, answer);
    ron_json_put_object_end(&writer);
    reply_json(request, &writer, &buf);
}

static enum ron_err read_query(struct ledger_api *api, const struct io_request *request,
                               struct answer *answer, struct ron_errinfo *reterr) RON_BLOCKS
{
    char asset[RON_ASSET_NAME_SIZE_MAX + 1];
    bool given;
    enum ron_err err = query_account(request, true, answer->account, &given, reterr);

    if (err == RON_ERR_OK)
        err = check_reads(grant_of(request), ron_slice_text(answer->account), reterr);
    if (err == RON_ERR_OK &&
        (io_query_get(request, "asset", asset, sizeof(asset), NULL) != RON_ERR_OK ||
         !ledger_is_asset(ron_slice_text(asset))))
        err = ron_fail(reterr, RON_ERR_MALFORMED, "query: asset is not an asset name");
    if (err == RON_ERR_OK)
        err = assets_need(api, ron_slice_text(asset), request->deadline, &answer->asset, reterr);
    if (err == RON_ERR_OK)
        err = need_books(api, reterr);
    return err == RON_ERR_OK ? need_tree(api, reterr) : err;
}

void read_balance_proof(struct ledger_api *api, struct io_request *request) RON_BLOCKS
{
    struct answer answer = {.present = false};
    struct api_state *state = NULL;
    struct ron_errinfo info = {0};
    enum ron_err err = read_query(api, request, &answer, &info);

    ron_buf_init(&answer.proof, RON_NOTE_SIZE_MAX);
    if (err == RON_ERR_OK)
        err = state_get(api, request->deadline, &state, &info);
    if (err == RON_ERR_OK)
        err = find_rows(state, &answer, grant_of(request), &info);
    if (err == RON_ERR_OK)
        err = ledger_tree_await(api->options.tree, state->anchor_seq, request->deadline, &info);
    if (err == RON_ERR_OK)
        err = ledger_tree_proof_text(api->options.tree, state->anchor_seq, &answer.proof, &info);
    if (err == RON_ERR_OK)
        reply_proof(request, state, &answer);
    else
        reply_error(request, err, &info);
    if (err == RON_ERR_WAL_CORRUPT || err == RON_ERR_IO) /* the next one opens it anew */
        state = state_free(state);
    state_give(api, state);
    ron_buf_fini(&answer.proof);
}
