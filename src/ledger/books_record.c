/*
 * books_record.c - from a place in the books to the entry in the log. See books.h.
 *
 * The log is believed, the books are not: an id or key that a run only knows by its first bytes is
 * compared with what the frame says.
 */
#include "ledger/books_impl.h"

enum { CANDIDATES = 8, NAMES = 2 };

struct record_question {
    const struct ledger_id *id; /* NULL: by seq */
    uint64_t seq;
    struct ron_buf frame_bytes, name_bytes;
    struct ledger_frame frame;
    uint8_t names[NAMES][RON_ACCOUNT_NAME_SIZE_MAX];
    size_t names_size[NAMES];
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

/* Is it what was looked for? */
typedef bool match_fn(const struct ledger_frame *frame, uint64_t seq, const struct ledger_id *id);

static bool match_entry(const struct ledger_frame *frame, uint64_t seq, const struct ledger_id *id)
{
    const struct ledger_entry entry = entry_of(frame, seq);

    return ledger_id_equal(&entry.id, id);
}

static bool match_key(const struct ledger_frame *frame, uint64_t seq, const struct ledger_id *id)
{
    struct ledger_id key;

    (void)seq;
    if (!frame->has_key)
        return false;
    key = ledger_key_id(&frame->stamp, frame->command, frame->key);
    return ledger_id_equal(&key, id);
}

/* Find the one entry of the thread; its frame is in buf. RON_ERR_NOT_FOUND. */
static enum ron_err find_one(struct ledger_books *books, struct books_view *view,
                             const struct ledger_thread *thread, match_fn *match,
                             struct ron_buf *buf, struct ledger_frame *ret_frame, uint64_t *ret_seq,
                             uint64_t *ret_damaged, struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t seqs[CANDIDATES];
    uint64_t after = 0;
    size_t count = 0;

    do {
        enum ron_err err = books_view_seqs(view, thread, after, false, seqs, CANDIDATES, &count,
                                           ret_damaged, reterr);

        if (err != RON_ERR_OK)
            return err;
        for (size_t i = 0; i < count; i++) {
            err = read_frame(books, view, seqs[i], buf, ret_frame, ret_damaged, reterr);
            if (err != RON_ERR_OK)
                return err;
            if (match(ret_frame, seqs[i], &thread->id)) {
                *ret_seq = seqs[i];
                return RON_ERR_OK;
            }
            after = seqs[i];
        }
    } while (count == CANDIDATES);
    return ron_fail(reterr, RON_ERR_NOT_FOUND, "no such entry or key");
}

static struct ron_slice name_in(const struct ledger_frame *frame, const struct ledger_id *account)
{
    const uint8_t *at = frame->names.data;

    for (uint32_t i = 0; i < frame->names_count; i++, at += 1 + at[0]) {
        const struct ron_slice name = ron_slice_of(at + 1, at[0]);
        const struct ledger_id id = ledger_account_id("", name);

        if (ledger_id_equal(&id, account))
            return name;
    }
    return (struct ron_slice){NULL, 0};
}

static bool match_name(const struct ledger_frame *frame, uint64_t seq, const struct ledger_id *id)
{
    (void)seq;
    return name_in(frame, id).size > 0;
}

/* The name that made the account known, if any did. */
static enum ron_err find_name(struct ledger_books *books, struct books_view *view,
                              const struct ledger_id *account, struct record_question *q,
                              size_t which, uint64_t *ret_damaged,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ledger_thread thread = {LEDGER_THREAD_NAME, 0, *account};
    struct ron_slice name = name_in(&q->frame, account);
    struct ledger_frame frame;
    uint64_t seq = 0;
    enum ron_err err = RON_ERR_OK;

    if (name.size == 0) {
        err = find_one(books, view, &thread, match_name, &q->name_bytes, &frame, &seq, ret_damaged,
                       reterr);
        if (err == RON_ERR_OK)
            name = name_in(&frame, account);
    }
    if (err != RON_ERR_OK && err != RON_ERR_NOT_FOUND)
        return err;
    RON_ASSERT(name.size <= RON_ACCOUNT_NAME_SIZE_MAX);
    q->names_size[which] = name.size;
    if (name.size > 0)
        memcpy(q->names[which], name.data, name.size);
    return RON_ERR_OK;
}

static enum ron_err ask_record(struct ledger_books *books, struct books_view *view, void *question,
                               uint64_t *ret_damaged, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct record_question *q = question;
    struct ledger_thread thread = {.kind = LEDGER_THREAD_ENTRY};
    struct ledger_entry entry;
    enum ron_err err;

    if (q->id != NULL) {
        thread.id = *q->id;
        err = find_one(books, view, &thread, match_entry, &q->frame_bytes, &q->frame, &q->seq,
                       ret_damaged, reterr);
    } else {
        err = read_frame(books, view, q->seq, &q->frame_bytes, &q->frame, ret_damaged, reterr);
    }
    if (err != RON_ERR_OK)
        return err;
    entry = entry_of(&q->frame, q->seq);
    memset(q->names_size, 0, sizeof(q->names_size));
    if (entry.kind == LEDGER_ANCHOR || entry.kind == LEDGER_ASSET)
        return RON_ERR_OK; /* there are no accounts in them */
    err = find_name(books, view, &entry.debit, q, 0, ret_damaged, reterr);
    if (err == RON_ERR_OK)
        err = find_name(books, view, &entry.credit, q, 1, ret_damaged, reterr);
    return err;
}

/* Id text and ext of the seq's entry, in the frame. */
static void find_texts(const struct ledger_frame *frame, uint64_t seq, struct ron_slice *ret_text,
                       struct ron_slice *ret_ext)
{
    const uint64_t index = seq - frame->seq_start;
    const uint8_t *text = frame->texts.data;
    size_t ext_at = 0;

    for (uint64_t i = 0; i < index; i++) {
        text += 1 + text[0];
        ext_at += ron_load_le16(frame->ext_sizes.data + 2 * i);
    }
    *ret_text = ron_slice_of(text + 1, text[0]);
    *ret_ext = ron_slice_of(frame->ext.data + ext_at,
                            ron_load_le16(frame->ext_sizes.data + 2 * index));
}

static enum ron_err fill_record(const struct record_question *q, struct ledger_record *ret_record,
                                struct ron_buf *text, struct ron_errinfo *reterr)
{
    struct ledger_record record = {
        .entry = entry_of(&q->frame, q->seq),
        .tenant = q->frame.stamp.tenant,
        .caller = q->frame.stamp.caller,
        .root = q->frame.root,
        .batch_seq_start = q->frame.seq_start,
        .batch_seq_end = q->frame.seq_start + q->frame.entries_count - 1,
    };
    struct ron_slice *const places[] = {&record.id_text, &record.ext, &record.debit_name,
                                        &record.credit_name};
    size_t at = text->size;

    find_texts(&q->frame, q->seq, &record.id_text, &record.ext);
    record.debit_name = ron_slice_of(q->names[0], q->names_size[0]);
    record.credit_name = ron_slice_of(q->names[1], q->names_size[1]);
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

    ron_buf_init(&question->frame_bytes, RON_ALLOCATION_SIZE_MAX);
    ron_buf_init(&question->name_bytes, RON_ALLOCATION_SIZE_MAX);
    err = books_ask(books, deadline, ask_record, question, reterr);
    if (err == RON_ERR_OK)
        err = fill_record(question, ret_record, text, reterr);
    ron_buf_fini(&question->frame_bytes);
    ron_buf_fini(&question->name_bytes);
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

struct key_question {
    const struct ledger_id *id;
    struct ron_buf bytes;
    struct ledger_frame frame;
};

static enum ron_err ask_key(struct ledger_books *books, struct books_view *view, void *question,
                            uint64_t *ret_damaged, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct key_question *q = question;
    const struct ledger_thread thread = {LEDGER_THREAD_KEY, 0, *q->id};
    uint64_t seq = 0;

    return find_one(books, view, &thread, match_key, &q->bytes, &q->frame, &seq, ret_damaged,
                    reterr);
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
