/*
 * core_slice.c - the command `slice`: sealed usage enters the log in the order of its stream.
 */
#include <stdio.h>

#include "base/decimal.h"
#include "ledger/core_apply.h"

enum { STREAM_TEXT_SIZE = 8 + RON_DECIMAL_U128_SIZE + LEDGER_DIMENSION_SIZE_MAX };

uint32_t stream_find(const struct ledger_core *core, const struct ledger_id *id)
{
    const uint32_t hash = id_hash(id);
    uint32_t at = hash;
    uint32_t place;

    while ((place = ledger_index_next(&core->stream_index, hash, &at)) != LEDGER_INDEX_NONE)
        if (ledger_id_equal(&core->streams[place].id, id))
            return place;
    return NONE;
}

/* A slice below the head: the same one again, or another? */
static enum ron_err answer_old(struct apply *a, const struct stream *stream,
                               const struct ledger_id *entry_id, struct ledger_result *ret_result)
{
    const struct ledger_slice_terms *terms = &a->command->slice;
    uint64_t batch = stream->batch;
    bool same;

    if (terms->seq + 1 == stream->next_seq) {
        same = memcmp(terms->digest, stream->head, LEDGER_DIGEST_SIZE) == 0;
    } else {
        struct ledger_entry known;

        same = entry_find(a->core, entry_id, a->core->seq_last, &known) &&
               memcmp(known.debit.bytes, terms->digest, LEDGER_ID_SIZE) == 0 &&
               memcmp(known.credit.bytes, terms->digest + LEDGER_ID_SIZE, LEDGER_ID_SIZE) == 0;
        batch = same ? known.batch : 0;
    }
    if (!same)
        return ron_fail(a->reterr, RON_ERR_CHAIN_MISMATCH, "slice %llu has another digest",
                        (unsigned long long)terms->seq);
    ret_result->duplicate = true;
    result_of_batch(a->core, batch, ret_result);
    return RON_ERR_OK;
}

static void move_head(struct apply *a, const struct ledger_id *id, uint32_t place)
{
    const struct ledger_slice_terms *terms = &a->command->slice;
    struct ledger_old_terms *old = &a->batch->old;
    struct ledger_core *core = a->core;
    struct stream *stream;

    if (place == NONE) {
        place = core->streams_count++;
        *stream_write(core, place) = (struct stream){.id = *id};
        ledger_index_add(&core->stream_index, id_hash(id), place);
    }
    RON_ASSERT(place < core->streams_count);
    stream = stream_write(core, place);
    RON_ASSERT(terms->seq == stream->next_seq);
    RON_ASSERT(terms->seq < UINT64_MAX);
    old->has_stream = true;
    old->stream = place;
    old->stream_next = stream->next_seq;
    old->stream_batch = stream->batch;
    memcpy(old->stream_head, stream->head, sizeof(old->stream_head));
    stream->next_seq = terms->seq + 1;
    stream->batch = a->batch->number;
    memcpy(stream->head, terms->digest, sizeof(stream->head));
}

/* The order of the stream: *ret_old if the slice lies below the head. */
static enum ron_err check_order(struct apply *a, const struct stream *head, bool *ret_old)
{
    const struct ledger_slice_terms *terms = &a->command->slice;

    *ret_old = terms->seq < head->next_seq;
    if (*ret_old)
        return RON_ERR_OK;
    if (terms->seq > head->next_seq) {
        refusal_expected(a, LEDGER_DETAIL_SEQ, head->next_seq);
        return ron_fail(a->reterr, RON_ERR_ORDER_OVERFLOW, "slice %llu, expected %llu",
                        (unsigned long long)terms->seq, (unsigned long long)head->next_seq);
    }
    if (memcmp(terms->prev, head->head, LEDGER_DIGEST_SIZE) != 0)
        return ron_fail(a->reterr, RON_ERR_CHAIN_MISMATCH, "prev is not the head of the stream");
    return RON_ERR_OK;
}

enum ron_err apply_slice(struct apply *a, struct ledger_result *ret_result)
{
    const struct ledger_slice_terms *terms = &a->command->slice;
    const struct stream first = {.next_seq = 0};
    struct ledger_op op = {.kind = LEDGER_ANCHOR, .by_ledger = true};
    char tenant[RON_DECIMAL_U128_SIZE];
    char stream_text[STREAM_TEXT_SIZE];
    char ref_text[RON_DECIMAL_U64_SIZE];
    char id_text[LEDGER_ID_TEXT_SIZE_MAX];
    struct ledger_id id;
    uint32_t place;
    bool is_old;
    int size;
    enum ron_err err;

    (void)ron_decimal_print_u128(a->command->stamp.tenant, tenant);
    size = snprintf(stream_text, sizeof(stream_text), "slice/%s/%.*s", tenant,
                    RON_SLICE_FMT(terms->dimension));
    op.stream = ron_slice_of(stream_text, (size_t)size);
    op.ref = ron_slice_of(ref_text, ron_decimal_print_u64(terms->seq, ref_text));
    size = snprintf(id_text, sizeof(id_text), "slice/%.*s/%s", RON_SLICE_FMT(terms->dimension),
                    ref_text);
    op.id_text = ron_slice_of(id_text, (size_t)size);
    op.id = ledger_entry_id(a->command->stamp.tenant, op.id_text);
    memcpy(op.debit.bytes, terms->digest, LEDGER_ID_SIZE);
    memcpy(op.credit.bytes, terms->digest + LEDGER_ID_SIZE, LEDGER_ID_SIZE);
    id = ledger_account_id("stream:", op.stream); /* a key of our own, never in the log */
    place = stream_find(a->core, &id);
    err = check_order(a, place == NONE ? &first : &a->core->streams[place], &is_old);
    if (err != RON_ERR_OK)
        return err;
    if (is_old)
        return answer_old(a, &a->core->streams[place], &op.id, ret_result);
    if (place == NONE && a->core->streams_count == a->core->capacity.streams_max)
        return ron_fail(a->reterr, RON_ERR_BUSY, "all %u streams are taken",
                        a->core->capacity.streams_max);
    err = ids_pass_own(a, &op, 1, 1);
    if (err == RON_ERR_OK)
        err = apply_op(a, &op);
    if (err != RON_ERR_OK)
        return err;
    move_head(a, &id, place);
    ret_result->applied = true;
    return RON_ERR_OK;
}
