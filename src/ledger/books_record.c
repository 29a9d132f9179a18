/*
 * books_record.c - from a place in the books to the entry in the log. See books.h.
 *
 * The log is believed, the books are not: a key that a run only knows by its first bytes is
 * compared with what the frame says.
 *
 * Ids of entries are not in the books at all: what checks that no id is used twice knows them
 * already. The core's window has those of the newest entries, whatever engine keeps the log, and
 * forgets none before the index of the log has it (README invariant 20); without an index it
 * forgets nothing. So it is asked first, and then the index: what left the window between the two
 * questions is found by the second. The window says where an id may be by its first four bytes, the
 * index by its first eight; the frame says whether it is there. Bounds are those of the pipeline:
 * a window that cannot forget refuses new entries, and never an answer.
 */
#include "ledger/books_impl.h"

enum {
    CANDIDATES = 8,
    NEAR = 16, /* entries apart: frames between are read over rather than the next one looked for */
};

struct record_question {
    const struct ledger_id *id; /* NULL: by seq */
    uint64_t seq;
    struct rt_deadline deadline;
    struct ron_buf frame_bytes;
    struct ledger_frame frame;
};

/* Read the frame that holds the seq. */
static enum ron_err read_frame(struct ledger_books *books, struct books_view *view, uint64_t seq,
                               struct ron_buf *buf, struct ledger_frame *ret_frame,
                               uint64_t *ret_damaged, struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t batch = 0;
    enum ron_err err = books_view_batch(view, seq, &batch, ret_damaged, reterr);

    ron_buf_reset(buf);
    if (err == RON_ERR_OK)
        err = ledger_read_batch(books->options.service, batch, buf, reterr);
    if (err == RON_ERR_OK) {
        err = ledger_frame_decode(ron_buf_slice(buf), ret_frame, reterr);
        if (err == RON_ERR_OK &&
            (seq < ret_frame->seq_start || seq - ret_frame->seq_start >= ret_frame->entries_count))
            err = ron_fail(reterr, RON_ERR_WAL_CORRUPT, "entry %llu is not in batch %llu",
                           (unsigned long long)seq, (unsigned long long)batch);
        if (err == RON_ERR_MALFORMED)
            err = ron_wrap(reterr, RON_ERR_WAL_CORRUPT, "batch %llu", (unsigned long long)batch);
    }
    return err;
}

static struct ledger_entry entry_of(const struct ledger_frame *frame, uint64_t seq)
{
    struct ledger_entry entry;

    memcpy(&entry, frame->entries.data + (seq - frame->seq_start) * RON_ENTRY_SIZE, sizeof(entry));
    return entry;
}

/* The entry of this id: q->seq, in q->frame. RON_ERR_NOT_FOUND. */
static enum ron_err find_entry(struct ledger_books *books, struct books_view *view,
                               struct record_question *q, uint64_t *ret_damaged,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_service *service = books->options.service;
    const uint64_t last_seq = books_view_last_seq(view);

    q->seq = UINT64_MAX;
    while ((q->seq = ledger_service_seq_of(service, q->id, last_seq, q->seq)) != 0) {
        struct ledger_entry entry;
        enum ron_err err = read_frame(books, view, q->seq, &q->frame_bytes, &q->frame, ret_damaged,
                                      reterr);

        if (err != RON_ERR_OK)
            return err;
        entry = entry_of(&q->frame, q->seq);
        if (ledger_id_equal(&entry.id, q->id))
            return RON_ERR_OK;
        if (rt_deadline_expired(q->deadline)) /* ids that begin alike can be made, with patience */
            return ron_fail(reterr, RON_ERR_TIMEOUT, "too many entries whose ids begin alike");
    }
    return ledger_service_archived(service, q->id, &q->frame_bytes, &q->frame, &q->seq, reterr);
}

static enum ron_err ask_record(struct ledger_books *books, struct books_view *view, void *question,
                               uint64_t *ret_damaged, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct record_question *q = question;

    return q->id != NULL
               ? find_entry(books, view, q, ret_damaged, reterr)
               : read_frame(books, view, q->seq, &q->frame_bytes, &q->frame, ret_damaged, reterr);
}

/* Where the texts of an entry are in its frame. */
struct texts {
    uint64_t index; /* of the entry */
    const uint8_t *text;
    size_t ext_at;
    char digits[LEDGER_ID_DIGITS + 1]; /* of the id text, if the frame has its bytes */
};

static void texts_begin(struct texts *texts, const struct ledger_frame *frame)
{
    *texts = (struct texts){.text = frame->texts.data};
}

/* On to the entry of this seq, which is no earlier than the last one. */
static void texts_skip(struct texts *texts, const struct ledger_frame *frame, uint64_t seq)
{
    for (; texts->index < seq - frame->seq_start; texts->index++) {
        texts->text += ledger_id_text_stored(texts->text);
        texts->ext_at += ron_load_le16(frame->ext_sizes.data + 2 * texts->index);
    }
}

/* Everything in it points into the frame or `texts`, names into the state. */
static struct ledger_record record_of(struct ledger_books *books, const struct ledger_frame *frame,
                                      struct texts *texts)
{
    struct ledger_record record = {
        .entry = entry_of(frame, frame->seq_start + texts->index),
        .tenant = frame->stamp.tenant,
        .caller = frame->stamp.caller,
        .root = frame->root,
        .batch_seq_start = frame->seq_start,
        .batch_seq_end = frame->seq_start + frame->entries_count - 1,
        .id_text = ledger_id_text_get(texts->text, texts->digits),
        .ext = ron_slice_of(frame->ext.data + texts->ext_at,
                            ron_load_le16(frame->ext_sizes.data + 2 * texts->index)),
    };

    if (record.entry.kind != LEDGER_ANCHOR && record.entry.kind != LEDGER_ASSET) {
        record.debit_name = ledger_read_name(books->options.service, &record.entry.debit);
        record.credit_name = ledger_read_name(books->options.service, &record.entry.credit);
    }
    return record;
}

static enum ron_err fill_record(struct ledger_books *books, const struct record_question *q,
                                struct ledger_record *ret_record, struct ron_buf *text,
                                struct ron_errinfo *reterr)
{
    struct ledger_record record;
    struct ron_slice *const places[] = {&record.id_text, &record.ext, &record.debit_name,
                                        &record.credit_name};
    struct texts texts;
    size_t at = text->size;

    texts_begin(&texts, &q->frame);
    texts_skip(&texts, &q->frame, q->seq);
    record = record_of(books, &q->frame, &texts);
    for (size_t i = 0; i < RON_ARRAY_COUNT(places); i++) {
        enum ron_err err = ron_buf_append(text, places[i]->data, places[i]->size, reterr);

        if (err != RON_ERR_OK)
            return err;
    }
    for (size_t i = 0; i < RON_ARRAY_COUNT(places); i++) { /* it moves no more */
        *places[i] = ron_slice_of(text->data + at, places[i]->size);
        at += places[i]->size;
    }
    *ret_record = record;
    return RON_ERR_OK;
}

static enum ron_err find_record(struct ledger_books *books, struct record_question *question,
                                struct rt_deadline deadline, struct ledger_record *ret_record,
                                struct ron_buf *text, struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err;

    question->deadline = deadline;
    ron_buf_init(&question->frame_bytes, RON_ALLOCATION_SIZE_MAX);
    err = books_ask(books, deadline, ask_record, question, reterr);
    if (err == RON_ERR_OK)
        err = fill_record(books, question, ret_record, text, reterr);
    ron_buf_fini(&question->frame_bytes);
    return err;
}

enum ron_err ledger_books_entry(struct ledger_books *books, const struct ledger_id *id,
                                struct rt_deadline deadline, struct ledger_record *ret_record,
                                struct ron_buf *text, struct ron_errinfo *reterr)
{
    struct record_question question = {.id = id};

    return find_record(books, &question, deadline, ret_record, text, reterr);
}

enum ron_err ledger_books_at(struct ledger_books *books, uint64_t seq, struct rt_deadline deadline,
                             struct ledger_record *ret_record, struct ron_buf *text,
                             struct ron_errinfo *reterr)
{
    struct record_question question = {.seq = seq};

    return find_record(books, &question, deadline, ret_record, text, reterr);
}

/* ---- Many ---- */

struct each_question {
    const uint64_t *seqs;
    size_t count, done;
    ledger_record_fn *fn;
    void *context;
    struct ledger_books *books;
};

/* A frame on the way: those of the entries that are wanted. */
static enum ron_err take_frame(void *context, uint64_t number, struct ron_slice bytes,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct each_question *q = context;
    struct ledger_frame frame;
    struct texts texts;
    enum ron_err err = ledger_frame_decode(bytes, &frame, reterr);

    if (err != RON_ERR_OK)
        return ron_wrap(reterr, RON_ERR_WAL_CORRUPT, "batch %llu", (unsigned long long)number);
    texts_begin(&texts, &frame);
    while (err == RON_ERR_OK && q->done < q->count && q->seqs[q->done] >= frame.seq_start &&
           q->seqs[q->done] - frame.seq_start < frame.entries_count) {
        struct ledger_record record;

        texts_skip(&texts, &frame, q->seqs[q->done]);
        record = record_of(q->books, &frame, &texts);
        err = q->fn(q->context, &record, reterr);
        q->done++;
    }
    return err;
}

/* The frames of the next entries that are near one another, in one go. */
static enum ron_err ask_some(struct ledger_books *books, struct books_view *view,
                             struct each_question *q, uint64_t *ret_damaged,
                             struct ron_errinfo *reterr) RON_BLOCKS
{
    size_t end = q->done + 1;
    uint64_t first = 0, last = 0;
    enum ron_err err = books_view_batch(view, q->seqs[q->done], &first, ret_damaged, reterr);

    for (; end < q->count && q->seqs[end] - q->seqs[end - 1] <= NEAR; end++)
        RON_ASSERT(q->seqs[end] > q->seqs[end - 1]);
    if (err == RON_ERR_OK)
        err = books_view_batch(view, q->seqs[end - 1], &last, ret_damaged, reterr);
    if (err == RON_ERR_OK)
        err = ledger_service_read_each(books->options.service, first, last, take_frame, q, reterr);
    if (err == RON_ERR_OK && q->done < end)
        err = ron_fail(reterr, RON_ERR_WAL_CORRUPT, "entry %llu is not in batches %llu to %llu",
                       (unsigned long long)q->seqs[q->done], (unsigned long long)first,
                       (unsigned long long)last);
    return err;
}

/* Asked again after damage it goes on where it was: the log does not change. */
static enum ron_err ask_each(struct ledger_books *books, struct books_view *view, void *question,
                             uint64_t *ret_damaged, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct each_question *q = question;
    enum ron_err err = RON_ERR_OK;

    while (err == RON_ERR_OK && q->done < q->count)
        err = ask_some(books, view, q, ret_damaged, reterr);
    return err;
}

enum ron_err ledger_books_each(struct ledger_books *books, const uint64_t *seqs, size_t seqs_count,
                               struct rt_deadline deadline, ledger_record_fn *fn, void *context,
                               struct ron_errinfo *reterr)
{
    struct each_question question = {
        .seqs = seqs, .count = seqs_count, .fn = fn, .context = context, .books = books};

    return books_ask(books, deadline, ask_each, &question, reterr);
}

struct key_question {
    const struct ledger_id *id;
    struct ron_buf bytes;
    struct ledger_frame frame;
};

static bool has_key(const struct ledger_frame *frame, const struct ledger_id *id)
{
    struct ledger_id key;

    if (!frame->has_key)
        return false;
    key = ledger_key_id(&frame->stamp, frame->command, frame->key);
    return ledger_id_equal(&key, id);
}

/* The frame of the batch with this key, into q->bytes. RON_ERR_NOT_FOUND. */
static enum ron_err ask_key(struct ledger_books *books, struct books_view *view, void *question,
                            uint64_t *ret_damaged, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct key_question *q = question;
    const struct ledger_thread thread = {LEDGER_THREAD_KEY, 0, *q->id};
    uint64_t seqs[CANDIDATES];
    uint64_t after = 0;
    size_t count = 0;

    do {
        enum ron_err err = books_view_seqs(view, &thread, after, false, seqs, CANDIDATES, &count,
                                           ret_damaged, reterr);

        if (err != RON_ERR_OK)
            return err;
        for (size_t i = 0; i < count; i++) {
            err = read_frame(books, view, seqs[i], &q->bytes, &q->frame, ret_damaged, reterr);
            if (err != RON_ERR_OK || has_key(&q->frame, q->id))
                return err;
            after = seqs[i];
        }
    } while (count == CANDIDATES);
    return ron_fail(reterr, RON_ERR_NOT_FOUND, "no such key");
}

enum ron_err ledger_books_key(struct ledger_books *books, const struct ledger_id *key,
                              struct rt_deadline deadline, struct ledger_key *ret_key,
                              struct ledger_reply *ret_reply, struct ron_errinfo *reterr)
{
    struct key_question question = {.id = key};
    const struct ledger_frame *frame = &question.frame;
    enum ron_err err;

    ron_buf_init(&question.bytes, RON_ALLOCATION_SIZE_MAX);
    err = books_ask(books, deadline, ask_key, &question, reterr);
    if (err == RON_ERR_OK) {
        *ret_key = (struct ledger_key){*key, frame->fingerprint, frame->batch};
        *ret_reply = (struct ledger_reply){frame->batch, frame->seq_start,
                                           frame->seq_start + frame->entries_count - 1,
                                           frame->stamp.commit_ms, frame->root};
    }
    ron_buf_fini(&question.bytes);
    return err;
}
