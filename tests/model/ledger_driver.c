/*
 * ledger_driver.c - the ledger core behind JSON lines on stdin and stdout, for the model test.
 *
 * One command or query a line, one answer a line; protocol in tests/model/README.md. Commits each
 * batch at once unless told to hold commits. Knows nothing of the rules: it translates.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/decimal.h"
#include "base/hex.h"
#include "base/json_write.h"
#include "base/mem.h"
#include "ledger/core_batch.h"
#include "ledger/core_frame.h"
#include "ledger_lines.h"

enum {
    PENDING_MAX = 1024,
    TABLE_MAX = 10000,
    OUT_SIZE_MAX = 16 << 20,
    FRAME_SIZE_MAX = 16 << 20,
};

struct driver {
    struct ledger_core *core;
    struct lines lines;
    struct ron_buf out;
    struct ron_json_writer writer;
    struct ledger_batch *batches[PENDING_MAX]; /* batch b at b % PENDING_MAX */
    uint64_t batch_last, committed;
    bool hold_commits;
    struct ledger_core *shadow; /* --shadow: fed by the frames of what is committed */
    struct ledger_replay *replay;
    uint8_t *frame;
    struct ron_buf leaves;
    size_t *leaf_starts; /* of seq - 1 */
    size_t leaves_count, leaves_max;
};

#define MUST(call)                          \
    do {                                    \
        enum ron_err must_err = (call);     \
        RON_ASSERT(must_err == RON_ERR_OK); \
    } while (0)

/* Answers. */

static void put_error(struct driver *d, enum ron_err err, const struct ledger_refusal *refusal,
                      const char *message)
{
    struct ron_json_writer *w = &d->writer;
    unsigned present = refusal == NULL ? 0 : refusal->present;

    ron_json_put_object_begin(w);
    ron_json_put_name(w, "error");
    ron_json_put_object_begin(w);
    ron_json_put_name(w, "code");
    ron_json_put_text(w, ron_err_name(ron_err_wire(err)));
    if ((present & LEDGER_DETAIL_INDEX) != 0) {
        ron_json_put_name(w, "index");
        ron_json_put_u64(w, refusal->index);
    }
    ron_json_put_name(w, "details");
    ron_json_put_object_begin(w);
    if ((present & LEDGER_DETAIL_AVAILABLE) != 0) {
        ron_json_put_name(w, "available");
        ron_json_put_amount(w, refusal->available);
    }
    if ((present & LEDGER_DETAIL_NONCE) != 0) {
        ron_json_put_name(w, "expected_nonce");
        ron_json_put_u64(w, refusal->expected);
    }
    if ((present & LEDGER_DETAIL_LIMIT) != 0) {
        ron_json_put_name(w, "limit");
        ron_json_put_text(w, refusal->limit);
    }
    if ((present & LEDGER_DETAIL_SERVER_MS) != 0) {
        ron_json_put_name(w, "server_ms");
        ron_json_put_u64(w, refusal->server_ms);
    }
    if ((present & LEDGER_DETAIL_CHUNK) != 0) {
        ron_json_put_name(w, "expected_chunk");
        ron_json_put_u64(w, refusal->expected);
    }
    if ((present & LEDGER_DETAIL_SEQ) != 0) {
        ron_json_put_name(w, "expected_seq");
        ron_json_put_u64(w, refusal->expected);
    }
    ron_json_put_object_end(w);
    ron_json_put_name(w, "message");
    ron_json_put_text(w, message);
    ron_json_put_object_end(w);
    ron_json_put_object_end(w);
}

static void put_nothing(struct driver *d)
{
    ron_json_put_raw(&d->writer, RON_SLICE("{\"ok\":null}"));
}

static void put_hex(struct driver *d, const char *name, struct ron_slice bytes)
{
    char text[RON_HEX_SIZE(RON_LEAF_SIZE_MAX)];

    (void)ron_hex_encode(bytes, text, sizeof(text));
    ron_json_put_name(&d->writer, name);
    ron_json_put_text(&d->writer, text);
}

static void put_result(struct driver *d, const struct ledger_result *result)
{
    struct ron_json_writer *w = &d->writer;
    struct ledger_reply reply;

    MUST(ledger_core_reply(d->core, result->batch, &reply, NULL));
    ron_json_put_object_begin(w);
    ron_json_put_name(w, "ok");
    ron_json_put_object_begin(w);
    ron_json_put_name(w, "seq_start");
    ron_json_put_u64(w, reply.seq_start);
    ron_json_put_name(w, "seq_end");
    ron_json_put_u64(w, reply.seq_end);
    ron_json_put_name(w, "batch_no");
    ron_json_put_u64(w, reply.batch);
    ron_json_put_name(w, "tree_size");
    ron_json_put_u64(w, reply.seq_end);
    put_hex(d, "new_root", ron_slice_of(reply.root.bytes, RON_SHA256_SIZE));
    ron_json_put_name(w, "replay");
    ron_json_put_bool(w, result->replay);
    ron_json_put_name(w, "dup");
    ron_json_put_bool(w, result->duplicate);
    ron_json_put_object_end(w);
    ron_json_put_object_end(w);
}

/* Applying. */

static struct ledger_batch *next_batch(struct driver *d)
{
    struct ledger_batch **batch = &d->batches[(d->batch_last + 1) % PENDING_MAX];

    if (*batch == NULL) {
        *batch = ron_mem_alloc(sizeof(**batch));
        RON_ASSERT(*batch != NULL);
        MUST(ledger_batch_init(*batch, LEDGER_BATCH_ENTRIES_MAX, 4 << 20, NULL));
    }
    return *batch;
}

static void keep_leaves(struct driver *d, const struct ledger_batch *batch)
{
    const uint8_t *ext = batch->ext;

    if (d->leaves_count + batch->entries_count >= d->leaves_max) {
        d->leaves_max = 2 * (d->leaves_count + batch->entries_count) + 1024;
        d->leaf_starts = ron_mem_resize(d->leaf_starts, d->leaves_max * sizeof(d->leaf_starts[0]));
        RON_ASSERT(d->leaf_starts != NULL);
    }
    for (uint32_t i = 0; i < batch->entries_count; i++) {
        d->leaf_starts[d->leaves_count++] = d->leaves.size;
        ron_buf_put(&d->leaves, &batch->entries[i], RON_ENTRY_SIZE);
        ron_buf_put(&d->leaves, ext, batch->ext_sizes[i]);
        ext += batch->ext_sizes[i];
    }
    d->leaf_starts[d->leaves_count] = d->leaves.size;
    MUST(ron_buf_check(&d->leaves, NULL));
}

/* apply(log) = state: the shadow reads what would be logged. */
static void feed_shadow(struct driver *d, const struct ledger_batch *batch)
{
    size_t size = ledger_frame_size(batch);

    RON_ASSERT(size <= FRAME_SIZE_MAX);
    ledger_frame_encode(batch, d->frame);
    MUST(ledger_replay_frame(d->replay, ron_slice_of(d->frame, size), NULL));
}

static void compare_shadow(struct driver *d)
{
    struct ron_b3 mine;
    struct ron_b3 other;

    if (d->shadow == NULL || d->committed != d->batch_last)
        return;
    mine = ledger_core_digest(d->core);
    other = ledger_core_digest(d->shadow);
    RON_ASSERT(memcmp(mine.bytes, other.bytes, RON_B3_SIZE) == 0);
    RON_ASSERT(ledger_core_check(d->shadow) == NULL);
}

static void commit_upto(struct driver *d, uint64_t upto)
{
    while (d->committed < upto && d->committed < d->batch_last) {
        struct ledger_batch *batch = d->batches[++d->committed % PENDING_MAX];

        if (d->shadow != NULL)
            feed_shadow(d, batch);
        ledger_core_commit(d->core, batch);
        if (d->committed % 101 == 0)
            compare_shadow(d);
    }
}

static void run(struct driver *d, const struct ledger_command *command)
{
    struct ron_errinfo info = {.err = RON_ERR_OK};
    struct ledger_batch *batch = next_batch(d);
    struct ledger_refusal refusal;
    struct ledger_result result;
    enum ron_err err = ledger_core_apply(d->core, command, batch, &result, &refusal, &info);

    if (err != RON_ERR_OK) {
        put_error(d, err, &refusal, info.message);
        return;
    }
    if (result.applied) {
        d->batch_last = batch->number;
        keep_leaves(d, batch);
        ledger_core_seal(d->core, batch);
        if (!d->hold_commits)
            commit_upto(d, d->batch_last);
    }
    if (!result.applied && !result.replay && !result.duplicate)
        put_nothing(d);
    else
        put_result(d, &result);
}

static void apply_line(struct driver *d, const struct line *line)
{
    struct ron_errinfo info = {.err = RON_ERR_OK};
    struct ledger_refusal refusal;
    struct ledger_command command;
    enum ron_err err = lines_command(&d->lines, line, &command, &refusal, &info);

    if (err != RON_ERR_OK)
        put_error(d, err, &refusal, info.message);
    else
        run(d, &command);
}

/* Queries. */

static uint32_t asset_number(const struct driver *d, const struct line *line)
{
    uint32_t number = 0;

    return ledger_core_find_asset(d->core, line->asset, &number) ? number : 0;
}

static void put_balance(struct driver *d, const struct line *line)
{
    struct ledger_id id = ledger_account_id("", line->account);
    struct ron_json_writer *w = &d->writer;
    char text[RON_DECIMAL_U128_SIZE + 1] = "-";
    struct ledger_balance balance;

    if (asset_number(d, line) == 0) {
        put_error(d, RON_ERR_NOT_FOUND, NULL, "no such asset");
        return;
    }
    ledger_core_balance(d->core, &id, asset_number(d, line), &balance);
    (void)ron_decimal_print_u128(balance.amount, text + 1);
    ron_json_put_object_begin(w);
    ron_json_put_name(w, "balance");
    ron_json_put_object_begin(w);
    ron_json_put_name(w, "amount");
    ron_json_put_text(w, balance.negative ? text : text + 1);
    ron_json_put_name(w, "next_nonce");
    ron_json_put_u64(w, balance.next_nonce);
    ron_json_put_name(w, "as_of_seq");
    ron_json_put_u64(w, balance.as_of_seq);
    ron_json_put_object_end(w);
    ron_json_put_object_end(w);
}

static void put_state_root(struct driver *d)
{
    struct ron_sha256 root;
    uint64_t rows_count;

    MUST(ledger_core_state_root(d->core, &root, &rows_count, NULL));
    ron_json_put_object_begin(&d->writer);
    put_hex(d, "state_root", ron_slice_of(root.bytes, RON_SHA256_SIZE));
    ron_json_put_name(&d->writer, "rows");
    ron_json_put_u64(&d->writer, rows_count);
    ron_json_put_object_end(&d->writer);
}

static void put_totals(struct driver *d, const struct line *line)
{
    struct ron_u128 issued;
    struct ron_u128 burned;
    struct ron_u128 sum;
    bool fits = ledger_core_totals(d->core, asset_number(d, line), &issued, &burned, &sum);

    RON_ASSERT(fits);
    ron_json_put_object_begin(&d->writer);
    ron_json_put_name(&d->writer, "issued");
    ron_json_put_amount(&d->writer, issued);
    ron_json_put_name(&d->writer, "burned");
    ron_json_put_amount(&d->writer, burned);
    ron_json_put_name(&d->writer, "sum");
    ron_json_put_amount(&d->writer, sum);
    ron_json_put_object_end(&d->writer);
}

static void put_leaf(struct driver *d, uint64_t seq)
{
    if (seq == 0 || seq > d->leaves_count) {
        put_error(d, RON_ERR_NOT_FOUND, NULL, "no such leaf");
        return;
    }
    ron_json_put_object_begin(&d->writer);
    put_hex(d, "leaf",
            ron_slice_of(d->leaves.data + d->leaf_starts[seq - 1],
                         d->leaf_starts[seq] - d->leaf_starts[seq - 1]));
    ron_json_put_object_end(&d->writer);
}

static void rebuild(struct driver *d)
{
    const char *broken;

    ledger_core_rebuild(d->core);
    d->batch_last = d->committed;
    d->leaves_count = ledger_core_committed_seq(d->core);
    d->leaves.size = d->leaves_count == 0 ? 0 : d->leaf_starts[d->leaves_count];
    broken = ledger_core_check(d->core);
    if (broken != NULL)
        put_error(d, RON_ERR_INTERNAL, NULL, broken);
    else
        put_nothing(d);
}

static bool answer_query(struct driver *d, const struct line *line)
{
    if (ron_slice_equal(line->cmd, RON_SLICE("balance"))) {
        put_balance(d, line);
    } else if (ron_slice_equal(line->cmd, RON_SLICE("leaf"))) {
        put_leaf(d, line->seq);
    } else if (ron_slice_equal(line->cmd, RON_SLICE("state_root"))) {
        put_state_root(d);
    } else if (ron_slice_equal(line->cmd, RON_SLICE("totals"))) {
        put_totals(d, line);
    } else if (ron_slice_equal(line->cmd, RON_SLICE("hold_commits"))) {
        d->hold_commits = line->on;
        if (!line->on)
            commit_upto(d, d->batch_last);
        put_nothing(d);
    } else if (ron_slice_equal(line->cmd, RON_SLICE("commit"))) {
        commit_upto(d, line->upto);
        put_nothing(d);
    } else if (ron_slice_equal(line->cmd, RON_SLICE("rebuild"))) {
        rebuild(d);
    } else if (ron_slice_equal(line->cmd, RON_SLICE("check"))) {
        const char *broken = ledger_core_check(d->core);

        if (broken != NULL)
            put_error(d, RON_ERR_INTERNAL, NULL, broken);
        else
            put_nothing(d);
    } else {
        return false;
    }
    return true;
}

static void answer(struct driver *d, struct ron_slice text)
{
    struct ron_errinfo info = {.err = RON_ERR_OK};
    struct line line;

    ron_json_writer_init(&d->writer, &d->out, RON_JSON_FIXED);
    if (lines_read(&d->lines, text, &line, &info) != RON_ERR_OK)
        put_error(d, RON_ERR_MALFORMED, NULL, info.message);
    else if (lines_kind(&line) != 0)
        apply_line(d, &line);
    else if (!answer_query(d, &line))
        put_error(d, RON_ERR_MALFORMED, NULL, "no such cmd");
    MUST(ron_json_writer_end(&d->writer, NULL));
    ron_buf_put_byte(&d->out, '\n');
}

static void flush(struct driver *d)
{
    size_t written = fwrite(d->out.data, 1, d->out.size, stdout);

    RON_ASSERT(written == d->out.size);
    (void)fflush(stdout);
    ron_buf_reset(&d->out);
}

static uint32_t option(int argc, char **argv, const char *name, uint32_t otherwise)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0) {
            uint64_t value;

            MUST(ron_decimal_parse_u64(ron_slice_text(argv[i + 1]), &value, NULL));
            return (uint32_t)value;
        }
    return otherwise;
}

/* Answer all whole lines of input[0..size); returns how many bytes they took. */
static size_t answer_lines(struct driver *d, const uint8_t *input, size_t size)
{
    size_t done = 0;

    for (;;) {
        const uint8_t *end = size == done ? NULL : memchr(input + done, '\n', size - done);

        if (end == NULL)
            return done;
        answer(d, ron_slice_of(input + done, (size_t)(end - input) - done));
        done = (size_t)(end - input) + 1;
        if (d->out.size > OUT_SIZE_MAX / 2)
            flush(d);
    }
}

int main(int argc, char **argv)
{
    struct ledger_capacity capacity = ledger_capacity_of(option(argc, argv, "--accounts", 100000));
    static struct driver driver;
    uint8_t *input = ron_mem_alloc(LINE_SIZE_MAX);
    size_t size = 0;
    ssize_t got;

    capacity.rows_max = option(argc, argv, "--rows", 100000);
    capacity.holds_max = option(argc, argv, "--holds", 100000);
    capacity.entries_window = option(argc, argv, "--entries", 100000);
    capacity.batches_window = capacity.entries_window;
    capacity.keys_window = capacity.entries_window;
    capacity.pending_max = PENDING_MAX;
    capacity.assets_max = TABLE_MAX; /* no run is to meet a bound that it did not ask for */
    capacity.runs_max = TABLE_MAX;
    capacity.streams_max = TABLE_MAX;
    MUST(ledger_core_new(&capacity, NULL, &driver.core, NULL));
    if (argc > 1 && strcmp(argv[1], "--shadow") == 0) {
        MUST(ledger_core_new(&capacity, NULL, &driver.shadow, NULL));
        MUST(ledger_replay_new(driver.shadow, &driver.replay, NULL));
        driver.frame = ron_mem_alloc(FRAME_SIZE_MAX);
        RON_ASSERT(driver.frame != NULL);
    }
    MUST(lines_init(&driver.lines, NULL));
    ron_buf_init(&driver.out, OUT_SIZE_MAX);
    ron_buf_init(&driver.leaves, RON_ALLOCATION_SIZE_MAX);
    RON_ASSERT(input != NULL);
    /* Answers are out before we wait for more. */
    while ((got = read(STDIN_FILENO, input + size, LINE_SIZE_MAX - size)) > 0) {
        size_t done = answer_lines(&driver, input, size + (size_t)got);

        size = size + (size_t)got - done;
        memmove(input, input + done, size);
        RON_ASSERT(size < LINE_SIZE_MAX);
        flush(&driver);
    }
    compare_shadow(&driver);
    return 0;
}
