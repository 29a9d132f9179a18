/*
 * core_ids.c - have we seen this before? Keys, ids and used nonces, in the order of the rules.
 *
 * The pass over the ids enters each of them into the index as it goes, so a batch that repeats an
 * id meets its own; whoever refuses the batch takes them out again (core_undo.c).
 */
#include "ledger/core_apply.h"

static const struct batch_record *batch_find(const struct ledger_core *core, uint64_t batch)
{
    const struct batch_record *record = &core->batches[(uint32_t)batch & core->batches_mask];

    return record->number == batch ? record : NULL;
}

void result_of_batch(const struct ledger_core *core, uint64_t batch,
                     struct ledger_result *ret_result)
{
    const struct batch_record *record = batch_find(core, batch);
    struct ledger_reply reply;

    ret_result->batch = batch;
    ret_result->seq_start = 0;
    ret_result->seq_end = 0;
    if (batch == 0)
        return;
    if (record != NULL) {
        ret_result->seq_start = record->seq_start;
        ret_result->seq_end = record->seq_start + record->entries_count - 1;
    } else if (core->archive.find_reply != NULL &&
               core->archive.find_reply(core->archive.context, batch, &reply)) {
        ret_result->seq_start = reply.seq_start;
        ret_result->seq_end = reply.seq_end;
    }
}

bool ledger_core_knows_key(const struct ledger_core *core, const struct ledger_command *command)
{
    struct ledger_key known;
    struct ledger_id id;

    if (command->key.size == 0)
        return false;
    id = ledger_key_id(&command->stamp, command->kind, command->key);
    return key_find(core, &id, &known);
}

enum ron_err key_pass(struct apply *a, struct ron_slice key, bool *ret_known,
                      struct ledger_result *ret_result)
{
    struct ledger_id id = ledger_key_id(&a->command->stamp, a->command->kind, key);
    struct ledger_key known;

    *ret_known = false;
    if (!key_find(a->core, &id, &known))
        return RON_ERR_OK;
    if (memcmp(known.fingerprint.bytes, a->command->fingerprint.bytes, RON_B3_SIZE) != 0)
        return ron_fail(a->reterr, RON_ERR_IDEMPOTENCY_CONFLICT,
                        "the key was used with another body, by batch %llu",
                        (unsigned long long)known.batch);
    RON_PROBE("ledger: a key is repeated");
    *ret_known = true;
    ret_result->replay = true;
    result_of_batch(a->core, known.batch, ret_result);
    return RON_ERR_OK;
}

/* The terms of a Hold that was made: who may capture it, and until when. */
static bool same_terms(const struct ledger_core *core, const struct ledger_op *op,
                       const struct ledger_entry *known)
{
    const uint32_t place = hold_find(core, &known->credit);
    struct ledger_id payee = {{0}};

    RON_ASSERT(place != NONE); /* holds are kept for ever */
    if (core->holds[place].payee != NONE)
        payee = account_id(&core->accounts[core->holds[place].payee]);
    return ledger_id_equal(&payee, &op->other) && core->holds[place].expires_ms == op->expires_ms;
}

/* Kind, accounts, asset, amount, nonce, link and terms: all that makes two entries the same. */
static bool same_content(const struct apply *a, const struct ledger_op *op,
                         const struct ledger_entry *known)
{
    struct movement m;

    if (op->kind != known->kind || op->nonce != known->nonce ||
        op->sha256 != ((known->flags & LEDGER_FLAG_SHA256) != 0) ||
        ron_u128_compare(op->amount, known->amount) != 0)
        return false;
    if (!movement_resolve(a->core, op, a->core->seq_last, &m))
        return false;
    if (op->kind == LEDGER_ANCHOR)
        m.asset_number = 0;
    return m.asset_number == known->asset && ledger_id_equal(&m.debit.id, &known->debit) &&
           ledger_id_equal(&m.credit.id, &known->credit) &&
           ledger_id_equal(&m.link, &known->link) &&
           (op->kind != LEDGER_HOLD || same_terms(a->core, op, known));
}

static void note_duplicate(struct apply *a, uint32_t index, const struct ledger_entry *original)
{
    RON_ASSERT(original->batch >= 1);
    RON_ASSERT(original->seq <= a->core->seq_last);
    if (a->duplicates_count == 0) {
        a->duplicate_first = index;
        a->duplicate_batch = original->batch;
        a->duplicate_next = original->seq;
    }
    if (original->batch != a->duplicate_batch || original->seq != a->duplicate_next)
        a->duplicate_batch = 0;
    a->duplicate_next++;
    a->duplicates_count++;
}

enum id_state { ID_NEW, ID_KNOWN, ID_TWICE };

/* Was it asked before, of all that the windows have forgotten by now? */
static bool is_sifted(const struct ledger_core *core, const struct ledger_command *source)
{
    return source->sifted.bits != NULL && window_batch_max(core) <= source->sifted.batch_max;
}

/* The bits of the ops from `first` on. */
static void take_sifted(const struct ledger_command *source, uint32_t first, uint32_t count,
                        uint64_t *ret_bits)
{
    const uint64_t *bits = source->sifted.bits;
    const uint32_t words_count = (source->ops_count + 63) / 64, shift = first % 64;

    for (uint32_t i = 0; i < (count + 63) / 64; i++) {
        const uint32_t word = first / 64 + i;
        const uint64_t more = word + 1 < words_count ? bits[word + 1] : 0;

        ret_bits[i] = shift == 0 ? bits[word] : bits[word] >> shift | more << (64 - shift);
    }
}

/* A replayed entry is asked of the windows alone. */
void ids_ask_archive(const struct ledger_core *core, const struct ledger_command *source,
                     uint32_t first, uint32_t count, uint64_t *ret_bits)
{
    enum { FEW = 4 }; /* as well asked one by one */
    const struct ledger_archive *archive = &core->archive;
    const bool is_asked = archive->find_entry != NULL && core->replay == NULL &&
                          window_batch_max(core) > 0;

    if (is_asked && is_sifted(core, source))
        take_sifted(source, first, count, ret_bits);
    else if (is_asked && archive->may_have != NULL && count > FEW)
        archive->may_have(archive->context,
                          &(struct ledger_ids){&ledger_op_head(source, first)->id,
                                               ledger_op_stride(source), count},
                          window_batch_max(core), ret_bits);
    else
        memset(ret_bits, is_asked ? 0xff : 0, (count + 63) / 64 * sizeof(ret_bits[0]));
}

/* Does an entry have this id? Of the batch under way the ring may know nothing yet. */
static bool has_id(const struct apply *a, uint64_t seq, const struct ledger_id *id)
{
    const struct ledger_core *core = a->core;
    const struct ledger_entry *entry = seq > core->seq_last
                                           ? &a->batch->entries[seq - core->seq_last - 1]
                                           : &core->ring[(uint32_t)seq & core->ring_mask];

    return ledger_id_equal(&entry->id, id);
}

/* The newest entry of the id that the window or the batch has; 0: none. */
static uint64_t window_seq(const struct apply *a, const struct ledger_id *id)
{
    const struct ledger_core *core = a->core;
    struct ledger_recent_walk walk = ledger_recent_own_begin(&core->id_index, id_hash(id));
    uint64_t found = 0;
    uint32_t tag;

    while ((tag = ledger_recent_own_next(&core->id_index, &walk, core->ring_first)) !=
           LEDGER_RECENT_NONE) {
        const uint64_t seq = tag_seq(core, tag);

        if (seq > found && has_id(a, seq, id))
            found = seq;
    }
    return found;
}

static bool ask_for(const struct ledger_core *core, const struct ledger_id *id,
                    struct ledger_entry *ret_known)
{
    return core->archive.find_entry(core->archive.context, id, window_batch_max(core), ret_known);
}

bool id_is_known(const struct apply *a, const struct ledger_id *id, bool ask)
{
    struct ledger_entry known;

    return window_seq(a, id) != 0 || (ask && ask_for(a->core, id, &known));
}

/* Look op's id up and enter it. */
static enum id_state id_enter(struct apply *a, const struct ledger_bare_op *op, bool ask,
                              struct ledger_entry *ret_known)
{
    struct ledger_core *core = a->core;
    const uint32_t index = a->batch->ids_count;
    const uint64_t seq = core->seq_last + 1 + index;
    const bool is_lacking = ledger_recent_lacks(&core->id_index, id_hash(&op->id),
                                                core->ring_first);
    const uint64_t other = is_lacking ? 0 : window_seq(a, &op->id);
    enum id_state state = ID_NEW;

    if (other > core->seq_last)
        return ID_TWICE;
    if (other != 0) {
        state = ID_KNOWN;
        *ret_known = core->ring[(uint32_t)other & core->ring_mask];
    }
    RON_ASSERT(index < a->batch->entries_max);
    /* Its place in the ring is free. Nobody looks there: a page that is read before its first write
     * costs two faults, and the second stops every other thread. */
    RON_ASSERT(seq - core->ring_first <= core->ring_mask);
    if (state == ID_NEW && ask && ask_for(core, &op->id, ret_known))
        state = ID_KNOWN;
    a->batch->entries[index].id = op->id; /* the rest once it is applied, and the ring then */
    ledger_recent_add(&core->id_index, id_hash(&op->id), seq, core->ring_first);
    a->batch->ids_count++;
    return state;
}

enum ron_err ids_pass(struct apply *a, const struct ledger_command *source, uint32_t first,
                      uint32_t index_shift)
{
    enum { AHEAD = 16, NEXT_AHEAD = 6 };
    const bool has_key = a->command->key.size > 0 || a->command->kind != LEDGER_COMMAND_INGEST;
    const bool is_payout = a->command->kind ==
                           LEDGER_COMMAND_INTENTS; /* repeats by its key alone */
    const uint32_t count = source->ops_count;
    const struct ledger_recent *ids = &a->core->id_index;
    uint64_t may_be_old[(LEDGER_BATCH_ENTRIES_MAX + 63) / 64];

    RON_ASSERT(count <= LEDGER_BATCH_ENTRIES_MAX);
    if (first < count)
        ids_ask_archive(a->core, source, first, count - first, may_be_old);
    for (uint32_t i = first; i < count; i++) {
        const struct ledger_bare_op *op = ledger_op_head(source, i);
        const bool ask = (may_be_old[(i - first) / 64] >> (i - first) % 64 & 1) != 0;
        uint32_t index = a->batch->ids_count;
        struct ledger_entry known;
        struct ledger_op room;
        enum id_state state;

        if (i + 2 * AHEAD < count)
            ron_prefetch(ledger_op_head(source, i + 2 * AHEAD)); /* made by another thread */
        if (i + AHEAD < count)
            ledger_recent_prefetch(ids, id_hash(&ledger_op_head(source, i + AHEAD)->id));
        if (i + NEXT_AHEAD < count)
            ledger_recent_prefetch_next(ids, id_hash(&ledger_op_head(source, i + NEXT_AHEAD)->id),
                                        a->core->ring_first);
        state = id_enter(a, op, ask, &known);
        if (state == ID_TWICE ||
            (state == ID_KNOWN &&
             (is_payout || !same_content(a, ledger_op_whole(source, i, &room), &known)))) {
            if (index >= index_shift)
                refusal_index(a, index - index_shift);
            return ron_fail(a->reterr, RON_ERR_CONFLICT, "entry %u: its id is in use", index);
        }
        if (state == ID_NEW && (has_key || op->nonce == 0))
            continue;
        if (state == ID_NEW && !(nonce_find(a->core, &op->debit, op->nonce, &known) &&
                                 same_content(a, ledger_op_whole(source, i, &room), &known)))
            continue;
        note_duplicate(a, index, &known);
    }
    return RON_ERR_OK;
}

enum ron_err ids_pass_own(struct apply *a, const struct ledger_op *ops, uint32_t count,
                          uint32_t index_shift)
{
    return ids_pass(a, &(struct ledger_command){.ops = ops, .ops_count = count}, 0, index_shift);
}

enum ron_err ids_verdict(struct apply *a, uint32_t count, bool *ret_duplicate,
                         struct ledger_result *ret_result)
{
    struct ledger_result result = {.duplicate = true};

    *ret_duplicate = false;
    if (a->duplicates_count == 0)
        return RON_ERR_OK;
    if (a->duplicates_count == count && a->duplicate_batch != 0) {
        result_of_batch(a->core, a->duplicate_batch, &result);
        if (result.seq_end - result.seq_start + 1 == count &&
            result.seq_end + 1 == a->duplicate_next) {
            RON_PROBE("ledger: a batch is repeated by its ids or nonces");
            *ret_duplicate = true;
            *ret_result = result;
            return RON_ERR_OK;
        }
    }
    refusal_index(a, a->duplicate_first);
    return ron_fail(a->reterr, RON_ERR_CONFLICT,
                    "entry %u is known already, but not the batch as it stands",
                    a->duplicate_first);
}
