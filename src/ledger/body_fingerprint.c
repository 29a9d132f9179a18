/*
 * body_fingerprint.c - what tells two bodies with one key apart. See body.h.
 *
 * Members are written in the order of their names, so the text is canonical without sorting.
 */
#include "base/json_write.h"
#include "ledger/body_impl.h"

static void put_given(struct ron_json_writer *writer, const char *name, struct ron_slice text)
{
    if (text.data == NULL)
        return;
    ron_json_put_name(writer, name);
    ron_json_put_string(writer, text);
}

static void put_item(struct ron_json_writer *writer, const struct ledger_wire_entry *wire)
{
    ron_json_put_object_begin(writer);
    put_given(writer, "account", wire->account);
    put_given(writer, "amount", wire->amount);
    put_given(writer, "asset", wire->asset);
    put_given(writer, "digest", wire->digest);
    put_given(writer, "expires_at", wire->expires_at);
    put_given(writer, "from", wire->from);
    put_given(writer, "hold_id", wire->hold_id);
    put_given(writer, "id", wire->id);
    put_given(writer, "kind", wire->kind);
    put_given(writer, "memo", wire->memo);
    if (wire->meta.data != NULL) {
        ron_json_put_name(writer, "meta");
        ron_json_put_raw(writer, wire->meta);
    }
    if (wire->has_nonce) {
        ron_json_put_name(writer, "nonce");
        ron_json_put_u64(writer, wire->nonce);
    }
    put_given(writer, "payee", wire->payee);
    put_given(writer, "ref", wire->ref);
    put_given(writer, "stream", wire->stream);
    put_given(writer, "to", wire->to);
    ron_json_put_object_end(writer);
}

static void put_items(struct ron_json_writer *writer, const char *name,
                      const struct body_item *items, uint32_t count)
{
    ron_json_put_name(writer, name);
    ron_json_put_array_begin(writer);
    for (uint32_t i = 0; i < count; i++)
        put_item(writer, &items[i].wire);
    ron_json_put_array_end(writer);
}

static enum ron_err finish(struct body_scratch *scratch, const struct ron_json_writer *writer,
                           struct ron_b3 *ret_fingerprint, struct ron_errinfo *reterr)
{
    enum ron_err err = ron_json_writer_end(writer, reterr);

    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "fingerprint");
    *ret_fingerprint = ron_b3(scratch->text.data, scratch->text.size);
    return RON_ERR_OK;
}

enum ron_err body_fingerprint_ingest(struct body_scratch *scratch, const struct body_item *items,
                                     uint32_t items_count, struct ron_b3 *ret_fingerprint,
                                     struct ron_errinfo *reterr)
{
    struct ron_json_writer writer;

    ron_json_writer_init(&writer, &scratch->text, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    put_items(&writer, "batch", items, items_count);
    ron_json_put_object_end(&writer);
    return finish(scratch, &writer, ret_fingerprint, reterr);
}

enum ron_err body_fingerprint_intents(struct body_scratch *scratch,
                                      const struct ledger_run_terms *run,
                                      const struct body_item *items, uint32_t items_count,
                                      struct ron_b3 *ret_fingerprint, struct ron_errinfo *reterr)
{
    struct ron_b3 commitment;
    char text[RON_B3_TEXT_SIZE];
    struct ron_json_writer writer;

    memcpy(commitment.bytes, run->commitment, sizeof(commitment.bytes));
    ron_b3_print(&commitment, text);
    ron_json_writer_init(&writer, &scratch->text, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    put_given(&writer, "asset", run->asset);
    ron_json_put_name(&writer, "chunk");
    ron_json_put_u64(&writer, run->chunk);
    ron_json_put_name(&writer, "chunks");
    ron_json_put_u64(&writer, run->chunks);
    put_given(&writer, "commitment", ron_slice_text(text));
    put_given(&writer, "epoch_id", run->epoch_id);
    put_given(&writer, "funding_source", run->funding_source);
    put_items(&writer, "payouts", items, items_count);
    put_given(&writer, "run_key", run->run_key);
    ron_json_put_name(&writer, "total");
    ron_json_put_amount(&writer, run->total);
    ron_json_put_object_end(&writer);
    return finish(scratch, &writer, ret_fingerprint, reterr);
}
