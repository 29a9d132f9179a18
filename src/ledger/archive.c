/*
 * archive.c - see archive.h.
 */
#include "ledger/archive.h"

#include "base/assert.h"
#include "base/b3.h"
#include "base/mem.h"
#include "io/log.h"
#include "ledger/core_frame.h"
#include "rt/atomic.h"
#include "rt/lock.h"

#define STORE_MAGIC 0xa3c41e57u

/* `sub` of a key in the index. */
enum {
    SUB_KIND = 3, /* the two low bits */
    SUB_ENTRY = 0,
    SUB_NONCE = 1,
    SUB_KEY = 2,
    SUB_SHIFT = 2,
};

struct ledger_store {
    uint32_t magic;
    struct ledger_engine *engine;
    /* The sequencer's: the frame that was read last. */
    struct ron_buf buf;
    struct ledger_frame frame; /* of `buf` */
    bool has_frame;
    uint32_t next;               /* the entry behind the one that was found in it */
    struct rt_atomic_u32 broken; /* `failure` is written and stays */
    struct rt_atomic_u32 breaking;
    struct ron_errinfo failure;
};

static void nonce_key(const struct ledger_id *debit, uint64_t nonce, uint8_t ret_key[16])
{
    uint8_t bytes[8];

    ron_store_le64(bytes, nonce);
    ron_b3_id16(RON_B3_DOMAIN("ron:nonce:v1"), ron_slice_of(debit->bytes, LEDGER_ID_SIZE),
                ron_slice_of(bytes, sizeof(bytes)), ret_key);
}

static struct ledger_entry entry_at(const struct ledger_frame *frame, uint32_t i)
{
    struct ledger_entry entry;

    memcpy(&entry, frame->entries.data + (size_t)i * RON_ENTRY_SIZE, sizeof(entry));
    return entry;
}

void ledger_archive_keys(struct ron_slice bytes, ledger_emit_fn *emit, void *index)
{
    struct ledger_frame frame;
    struct ledger_id id;

    /* Leaves are not looked at: who finds a key here does that, and says so if it cannot. */
    if (ledger_frame_divide(bytes, &frame, NULL) != RON_ERR_OK)
        return;
    for (uint32_t i = 0; i < frame.entries_count; i++) {
        const uint8_t *entry = frame.entries.data + (size_t)i * RON_ENTRY_SIZE;
        const uint64_t nonce = ron_load_le64(entry + offsetof(struct ledger_entry, nonce));
        struct ledger_id debit;
        uint8_t key[16];

        emit(index, entry + offsetof(struct ledger_entry, id), i << SUB_SHIFT | SUB_ENTRY);
        if (nonce == 0)
            continue;
        memcpy(debit.bytes, entry + offsetof(struct ledger_entry, debit), LEDGER_ID_SIZE);
        nonce_key(&debit, nonce, key);
        emit(index, key, i << SUB_SHIFT | SUB_NONCE);
    }
    if (!frame.has_key)
        return;
    id = ledger_key_id(&frame.stamp, frame.command, frame.key);
    emit(index, id.bytes, SUB_KEY);
}

/* --- Looking -----------------------------------------------------------------------------------
 */

static struct ledger_store *store_of(void *context)
{
    struct ledger_store *store = context;

    RON_ASSERT(store->magic == STORE_MAGIC);
    return store;
}

/* The first error stays; it is published after it is written. */
static void store_fail(struct ledger_store *store, const struct ron_errinfo *info)
{
    if (!rt_atomic_cas_u32(&store->breaking, 0, 1))
        return;
    store->failure = *info;
    rt_atomic_store_u32(&store->broken, 1);
}

static enum ron_err store_failed(void *context, struct ron_errinfo *reterr)
{
    struct ledger_store *store = store_of(context);

    if (rt_atomic_load_u32(&store->breaking) == 0)
        return RON_ERR_OK;
    if (rt_atomic_load_u32(&store->broken) == 0) /* another thread is about to say why */
        return ron_fail(reterr, RON_ERR_IO, "archive: a question could not be answered");
    if (reterr != NULL)
        *reterr = store->failure;
    return store->failure.err;
}

/* One question, and what was found. */
struct question {
    struct ledger_store *store;
    uint32_t kind;
    const struct ledger_id *id; /* of the entry, the debited account or the key */
    uint64_t nonce;
    uint64_t batch_max;
    struct ledger_entry entry;
    struct ledger_key key;
    bool found;
};

static enum ron_err read_frame(struct ledger_engine *engine, uint64_t number, struct ron_buf *buf,
                               struct ledger_frame *ret_frame,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err;

    ron_buf_reset(buf);
    err = ledger_engine_read(engine, number, buf, reterr);
    if (err == RON_ERR_OK)
        err = ledger_frame_decode(ron_slice_of(buf->data, buf->size), ret_frame, reterr);
    if (err == RON_ERR_OK && ret_frame->batch != number)
        err = ron_fail(reterr, RON_ERR_WAL_CORRUPT, "frame %llu is batch %llu",
                       (unsigned long long)number, (unsigned long long)ret_frame->batch);
    return err;
}

/* Does the frame have what was asked for? The index knows the first 8 bytes of a key. */
static bool is_meant(struct question *question, const struct ledger_frame *frame, uint32_t i)
{
    if (question->kind == SUB_KEY) {
        if (!frame->has_key)
            return false;
        question->key = (struct ledger_key){
            ledger_key_id(&frame->stamp, frame->command, frame->key), frame->fingerprint,
            frame->batch};
        return ledger_id_equal(&question->key.id, question->id);
    }
    if (i >= frame->entries_count)
        return false;
    question->entry = entry_at(frame, i);
    if (question->kind == SUB_ENTRY)
        return ledger_id_equal(&question->entry.id, question->id);
    return question->entry.nonce == question->nonce &&
           ledger_id_equal(&question->entry.debit, question->id);
}

static enum ron_err look(void *context, uint64_t number, uint32_t sub, bool *ret_enough,
                         struct ron_errinfo *reterr) RON_BLOCKS
{
    struct question *question = context;
    struct ledger_store *store = question->store;

    if ((sub & SUB_KIND) != question->kind)
        return RON_ERR_OK; /* another kind of key with the same first bytes */
    if (!store->has_frame || store->frame.batch != number) {
        enum ron_err err;

        store->has_frame = false;
        err = read_frame(store->engine, number, &store->buf, &store->frame, reterr);
        if (err != RON_ERR_OK)
            return err;
        store->has_frame = true;
    }
    question->found = is_meant(question, &store->frame, sub >> SUB_SHIFT);
    if (question->found)
        store->next = (sub >> SUB_SHIFT) + 1;
    *ret_enough = question->found;
    return RON_ERR_OK;
}

/* Who repeats a batch asks for its entries in order, and is answered from one reading of it. */
static bool is_next(struct question *question)
{
    struct ledger_store *store = question->store;

    RON_ASSERT(question->kind != SUB_KEY);
    if (!store->has_frame || !is_meant(question, &store->frame, store->next))
        return false;
    store->next++;
    return true;
}

static bool ask(struct question *question, const uint8_t key[16]) RON_BLOCKS
{
    struct ledger_store *store = question->store;
    struct ron_errinfo info = {0};
    enum ron_err err = ledger_engine_find(store->engine, key, question->batch_max, look, question,
                                          &info);

    if (err != RON_ERR_OK) {
        RON_PROBE("ledger: the archive cannot answer");
        (void)ron_wrap(&info, err, "archive");
        store_fail(store, &info);
        return false;
    }
    return question->found;
}

static void may_have(void *context, const struct ledger_ids *ids, uint64_t batch_max,
                     uint64_t *ret_bits) RON_BLOCKS
{
    struct ledger_store *store = store_of(context);
    const struct io_log_keys keys = {ids->first->bytes, ids->stride, ids->count};
    struct ron_errinfo info = {0};
    enum ron_err err = ledger_engine_may_have(store->engine, &keys, batch_max, ret_bits, &info);

    if (err == RON_ERR_OK)
        return;
    memset(ret_bits, 0, (ids->count + 63) / 64 * sizeof(ret_bits[0])); /* nobody will believe it */
    (void)ron_wrap(&info, err, "archive");
    store_fail(store, &info);
}

static bool find_entry(void *context, const struct ledger_id *id, uint64_t batch_max,
                       struct ledger_entry *ret_entry) RON_BLOCKS
{
    struct question question = {
        .store = store_of(context), .kind = SUB_ENTRY, .id = id, .batch_max = batch_max};

    if (!is_next(&question) && !ask(&question, id->bytes))
        return false;
    RON_PROBE("ledger: an id is known by the archive alone");
    *ret_entry = question.entry;
    return true;
}

static bool find_nonce(void *context, const struct ledger_id *debit, uint64_t nonce,
                       uint64_t batch_max, struct ledger_entry *ret_entry) RON_BLOCKS
{
    struct question question = {.store = store_of(context),
                                .kind = SUB_NONCE,
                                .id = debit,
                                .nonce = nonce,
                                .batch_max = batch_max};
    uint8_t key[16];

    if (!is_next(&question)) {
        nonce_key(debit, nonce, key);
        if (!ask(&question, key))
            return false;
    }
    RON_PROBE("ledger: a nonce is known by the archive alone");
    *ret_entry = question.entry;
    return true;
}

static bool find_key(void *context, const struct ledger_id *id, uint64_t batch_max,
                     struct ledger_key *ret_key) RON_BLOCKS
{
    struct question question = {
        .store = store_of(context), .kind = SUB_KEY, .id = id, .batch_max = batch_max};

    if (!ask(&question, id->bytes))
        return false;
    RON_PROBE("ledger: a key is known by the archive alone");
    *ret_key = question.key;
    return true;
}

/* A committed batch has its frame: that there is none is an error, too. */
static bool find_reply(void *context, uint64_t batch, struct ledger_reply *ret_reply) RON_BLOCKS
{
    struct ledger_store *store = store_of(context);
    struct ron_errinfo info = {0};
    struct ledger_frame frame;
    struct ron_buf buf;
    enum ron_err err;

    ron_buf_init(&buf, IO_RECORD_SIZE_MAX);
    err = read_frame(store->engine, batch, &buf, &frame, &info);
    if (err == RON_ERR_OK) {
        *ret_reply = (struct ledger_reply){batch, frame.seq_start,
                                           frame.seq_start + frame.entries_count - 1,
                                           frame.stamp.commit_ms, frame.root};
    } else {
        (void)ron_wrap(&info, err, "archive");
        store_fail(store, &info);
    }
    ron_buf_fini(&buf);
    return err == RON_ERR_OK;
}

struct reading {
    struct question question;
    struct ledger_engine *engine;
    uint64_t batch_max;
    struct ron_buf *buf;
    struct ledger_frame *frame;
    uint64_t seq;
};

static enum ron_err look_for_entry(void *context, uint64_t number, uint32_t sub, bool *ret_enough,
                                   struct ron_errinfo *reterr) RON_BLOCKS
{
    struct reading *reading = context;
    enum ron_err err;

    if ((sub & SUB_KIND) != SUB_ENTRY || number > reading->batch_max)
        return RON_ERR_OK;
    err = read_frame(reading->engine, number, reading->buf, reading->frame, reterr);
    if (err != RON_ERR_OK)
        return err;
    *ret_enough = is_meant(&reading->question, reading->frame, sub >> SUB_SHIFT);
    if (*ret_enough)
        reading->seq = reading->frame->seq_start + (sub >> SUB_SHIFT);
    return RON_ERR_OK;
}

enum ron_err ledger_archive_entry(struct ledger_engine *engine, const struct ledger_id *id,
                                  uint64_t batch_max, struct ron_buf *buf,
                                  struct ledger_frame *ret_frame, uint64_t *ret_seq,
                                  struct ron_errinfo *reterr)
{
    struct reading reading = {.question = {.kind = SUB_ENTRY, .id = id},
                              .engine = engine,
                              .batch_max = batch_max,
                              .buf = buf,
                              .frame = ret_frame};
    enum ron_err err = RON_ERR_OK;

    if (engine->ops->find != NULL)
        err = ledger_engine_find(engine, id->bytes, batch_max, look_for_entry, &reading, reterr);
    if (err != RON_ERR_OK)
        return err == RON_ERR_NOT_FOUND || err == RON_ERR_MALFORMED
                   ? ron_wrap(reterr, RON_ERR_WAL_CORRUPT, "where the index has an entry")
                   : err;
    if (reading.seq == 0)
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "no such entry");
    *ret_seq = reading.seq;
    return RON_ERR_OK;
}

static enum ron_err note_place(void *context, uint64_t number, uint32_t sub, bool *ret_enough,
                               struct ron_errinfo *reterr)
{
    bool *is_there = context;

    (void)number, (void)sub, (void)reterr;
    *is_there = true;
    *ret_enough = true;
    return RON_ERR_OK;
}

/* Filters err: who passes them is looked for in the pages of the index. */
static bool is_indexed(struct ledger_engine *engine, const struct ledger_id *id,
                       uint64_t batch_max) RON_BLOCKS
{
    bool is_there = false;

    return ledger_engine_find(engine, id->bytes, batch_max, note_place, &is_there, NULL) !=
               RON_ERR_OK ||
           is_there;
}

/* Those of a word that pass the filters and are not there are taken out, up to the first that is:
 * true. That is a repetition, as a rule, and the others of its ids are known by cheaper ways. */
static bool sift_word(struct ledger_engine *engine, const struct io_log_keys *keys,
                      uint64_t batch_max, size_t word, uint64_t *bits) RON_BLOCKS
{
    for (uint64_t left = bits[word]; left != 0; left &= left - 1) {
        const size_t i = 64 * word + (size_t)__builtin_ctzll(left);
        const uint8_t *id = keys->first + i * keys->stride;

        if (is_indexed(engine, (const struct ledger_id *)(const void *)id, batch_max))
            return true;
        bits[word] &= ~(UINT64_C(1) << i % 64);
    }
    return false;
}

enum ron_err ledger_archive_sift(struct ledger_engine *engine, const struct ledger_ids *ids,
                                 uint64_t *ret_bits, uint64_t *ret_batch_max,
                                 struct ron_errinfo *reterr)
{
    const struct io_log_keys keys = {ids->first->bytes, ids->stride, ids->count};
    const size_t words_count = (ids->count + 63) / 64;
    const uint64_t batch_max = ledger_engine_indexed(engine); /* before it is asked */
    enum ron_err err = RON_ERR_OK;

    memset(ret_bits, 0, words_count * sizeof(ret_bits[0]));
    if (batch_max > 0)
        err = ledger_engine_may_have(engine, &keys, batch_max, ret_bits, reterr);
    if (err != RON_ERR_OK)
        return err;
    for (size_t word = 0; word < words_count; word++)
        if (sift_word(engine, &keys, batch_max, word, ret_bits))
            break;
    *ret_batch_max = batch_max;
    return RON_ERR_OK;
}

static uint64_t last_batch(void *context)
{
    return ledger_engine_indexed(store_of(context)->engine);
}

struct ledger_archive ledger_store_archive(struct ledger_store *store)
{
    return (struct ledger_archive){
        .context = store,
        .find_entry = find_entry,
        .find_nonce = find_nonce,
        .find_key = find_key,
        .may_have = may_have,
        .find_reply = find_reply,
        .last_batch = last_batch,
        .failed = store_failed,
    };
}

enum ron_err ledger_store_new(struct ledger_engine *engine, struct ledger_store **ret_store,
                              struct ron_errinfo *reterr)
{
    struct ledger_store *store = ron_mem_alloc(sizeof(*store));

    RON_ASSERT(engine->ops->find != NULL);
    RON_ASSERT(engine->ops->may_have != NULL);
    RON_ASSERT(engine->ops->indexed != NULL);
    if (store == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "an archive");
    store->magic = STORE_MAGIC;
    store->engine = engine;
    ron_buf_init(&store->buf, IO_RECORD_SIZE_MAX);
    *ret_store = store;
    return RON_ERR_OK;
}

struct ledger_store *ledger_store_free(struct ledger_store *store)
{
    if (store == NULL)
        return NULL;
    store->magic = ~STORE_MAGIC;
    ron_buf_fini(&store->buf);
    return ron_mem_free(store);
}
