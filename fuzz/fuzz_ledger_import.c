/*
 * fuzz_ledger_import.c - lines of `ron ledger import`. The first byte is the hold of a Capture (for
 * any payee or not) and whether no Hold may end before a time; the rest is a line.
 *
 * Checks beyond "no crash": texts lie in the input or the arena; a line makes one JSON object of
 * members that a client may give and nothing else, so that no line can bring another entry or
 * another field into its batch, and that object is taken again as it stands. If the ledger's own
 * reader takes it in a body of /ingest, then so it does with the line that an export writes of that
 * entry: the same entry, member for member.
 */
#include <stdio.h>

#include "base/assert.h"
#include "base/json.h"
#include "cli/ledger_import_line.h"
#include "ledger/body.h"
#include "ledger/record_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BODY_MAX = 4 * IMPORT_LINE_SIZE_MAX, UNTIL_MS = 4102444800 };

static const struct ron_u128 tenant = {7};

struct room {
    struct ron_arena arena;
    struct body_scratch scratch;
    struct ron_buf entry, body;
    struct body_scratch second; /* the same once more, beside the first */
    struct ron_buf exported, second_body;
};

static bool is_inside(struct ron_slice part, struct ron_slice whole)
{
    return part.size == 0 || (part.data >= whole.data && part.size <= whole.size &&
                              (size_t)(part.data - whole.data) <= whole.size - part.size);
}

static void check_texts(const struct import_line *line, const struct ron_arena *arena)
{
    const struct ron_slice block = ron_slice_of(arena->block, arena->size);

    for (size_t i = 0; i < line->row.count; i++) {
        const struct ron_slice text = line->row.members[i].text;

        RON_ASSERT(is_inside(text, line->text) || is_inside(text, block));
    }
}

/* One object, and of an export's line only what an entry is asked for with. */
static void check_entry(struct room *room, const struct import_line *line)
{
    static const char *const known[] = {
        "id",     "kind", "asset",   "amount", "nonce", "memo", "meta",    "digest",
        "stream", "ref",  "hold_id", "payee",  "from",  "to",   "account", "expires_at"};
    const struct ron_slice entry = ron_buf_slice(&room->entry);
    struct import_line again;
    enum ron_err err;

    if (entry.size > IMPORT_LINE_SIZE_MAX)
        return; /* escapes made it longer: never read again */
    ron_arena_reset(&room->arena);
    err = import_line_read(entry, &room->arena, &again, NULL);
    RON_ASSERT(err == RON_ERR_OK);
    RON_ASSERT(again.kind == IMPORT_LINE_PLAIN);
    for (size_t i = 0; line->kind == IMPORT_LINE_EXPORTED && i < again.row.count; i++) {
        bool is_known = false;

        for (size_t j = 0; j < RON_ARRAY_COUNT(known); j++)
            is_known |= ron_slice_equal(again.row.members[i].name, ron_slice_text(known[j]));
        RON_ASSERT(is_known);
    }
}

static void make_body(const struct room *room, struct ron_buf *body)
{
    ron_buf_reset(body);
    ron_buf_put_text(body, "{\"batch\":[");
    ron_buf_put(body, room->entry.data, room->entry.size);
    ron_buf_put_text(body, "]}");
    RON_ASSERT(ron_buf_check(body, NULL) == RON_ERR_OK);
}

/* However the text is wrapped, it is one element. */
static void check_body(struct room *room)
{
    struct ron_json_reader reader;
    struct ron_json_token token;
    struct ron_slice raw;
    enum ron_err err;

    ron_arena_reset(&room->arena);
    ron_json_reader_init(&reader, ron_buf_slice(&room->body), &room->arena);
    reader.names_by_caller = true;
    for (unsigned i = 0; i < 3; i++) { /* { "batch" [ */
        err = ron_json_next(&reader, &token, NULL);
        RON_ASSERT(err == RON_ERR_OK);
    }
    err = ron_json_next(&reader, &token, NULL);
    RON_ASSERT(err == RON_ERR_OK);
    RON_ASSERT(token.kind == RON_JSON_OBJECT_BEGIN);
    err = ron_json_skip(&reader, &token, &raw, NULL);
    if (err == RON_ERR_TOO_LARGE)
        return; /* two levels deeper than the line */
    RON_ASSERT(err == RON_ERR_OK);
    err = ron_json_next(&reader, &token, NULL);
    RON_ASSERT(err == RON_ERR_OK);
    RON_ASSERT(token.kind == RON_JSON_ARRAY_END);
}

static bool read_body(struct body_scratch *scratch, struct ron_slice text, struct ledger_op *ret_op)
{
    struct ledger_ingest_body body;
    uint32_t index;

    body_scratch_reset(scratch);
    if (ledger_read_ingest(scratch, text, RON_SLICE("key"), tenant, &body, &index, NULL) !=
        RON_ERR_OK)
        return false;
    RON_ASSERT(body.ops_count == 1);
    *ret_op = body.ops[0];
    return true;
}

/* --- The line of an export ---------------------------------------------------------------------
 */

/* As the core writes it; accounts of holds have names of their own. */
static void put_line(const struct ledger_op *op, struct ron_slice ref, struct ron_buf *buf)
{
    static uint8_t ext_bytes[LEDGER_EXT_SIZE_MAX];
    char hold_name[RON_ACCOUNT_NAME_SIZE_MAX + 1];
    const bool is_hold = op->kind == LEDGER_HOLD;
    const bool of_hold = is_hold || op->kind == LEDGER_CAPTURE || op->kind == LEDGER_RELEASE;
    const struct ledger_ext ext = {
        .memo = op->memo,
        .meta = op->meta,
        .has_terms = is_hold,
        .payee = op->other,
        .expires_ms = op->expires_ms,
        .stream = op->stream,
        .ref = op->kind == LEDGER_ANCHOR ? op->ref : (struct ron_slice){NULL, 0},
    };
    struct ledger_record record = {
        .entry = {.id = op->id,
                  .debit = op->debit,
                  .credit = op->credit,
                  .amount = op->amount,
                  .seq = 5,
                  .nonce = op->nonce,
                  .batch = 3,
                  .asset = op->kind == LEDGER_ANCHOR ? 0 : 1,
                  .kind = op->kind,
                  .flags = op->sha256 ? LEDGER_FLAG_SHA256 : 0},
        .tenant = tenant,
        .caller = LEDGER_CALLER_DIRECT,
        .batch_seq_start = 5,
        .batch_seq_end = 5,
        .id_text = op->id_text,
        .ext = ron_slice_of(ext_bytes, ledger_ext_size(&ext)),
        .debit_name = op->debit_name.size > 0 ? op->debit_name : RON_SLICE("sys/mint/x"),
        .credit_name = op->credit_name.size > 0 ? op->credit_name : RON_SLICE("sys/burn/x"),
    };
    const struct ledger_record_names names = {
        .asset = op->asset_name, .payee = op->payee_name, .ref = ref};
    struct ron_json_writer writer;
    enum ron_err err;

    RON_ASSERT(record.ext.size <= sizeof(ext_bytes));
    ledger_ext_encode(&ext, ext_bytes);
    if (of_hold) {
        const struct ron_slice id = is_hold ? op->credit_name : op->debit_name;
        const int size = snprintf(hold_name, sizeof(hold_name), "sys/hold/%.*s", RON_SLICE_FMT(id));
        const struct ron_slice name = ron_slice_of(hold_name, (size_t)size);

        *(is_hold ? &record.credit_name : &record.debit_name) = name;
        if (op->kind == LEDGER_CAPTURE && !op->has_to)
            record.credit_name = RON_SLICE("shop");
    }
    if (op->kind == LEDGER_REVERSE)
        record.entry.link = op->other;
    ron_buf_reset(buf);
    ron_json_writer_init(&writer, buf, RON_JSON_FIXED);
    ledger_put_record(&writer, &record, &names, false);
    err = ron_json_writer_end(&writer, NULL);
    RON_ASSERT(err == RON_ERR_OK);
}

static bool same(struct ron_slice one, struct ron_slice two)
{
    return (one.data == NULL) == (two.data == NULL) && ron_slice_equal(one, two);
}

static void check_same(const struct ledger_op *one, const struct ledger_op *two)
{
    RON_ASSERT(one->kind == two->kind);
    RON_ASSERT(ledger_id_equal(&one->id, &two->id));
    RON_ASSERT(ledger_id_equal(&one->debit, &two->debit));
    RON_ASSERT(ledger_id_equal(&one->credit, &two->credit));
    RON_ASSERT(ledger_id_equal(&one->other, &two->other));
    RON_ASSERT(ron_u128_compare(one->amount, two->amount) == 0);
    RON_ASSERT(one->nonce == two->nonce);
    RON_ASSERT(one->expires_ms == two->expires_ms);
    RON_ASSERT(one->has_to == two->has_to);
    RON_ASSERT(one->sha256 == two->sha256);
    RON_ASSERT(same(one->id_text, two->id_text));
    RON_ASSERT(same(one->asset_name, two->asset_name));
    RON_ASSERT(same(one->debit_name, two->debit_name));
    RON_ASSERT(same(one->credit_name, two->credit_name));
    RON_ASSERT(same(one->payee_name, two->payee_name));
    RON_ASSERT(same(one->memo, two->memo));
    RON_ASSERT(same(one->meta, two->meta));
    RON_ASSERT(same(one->stream, two->stream));
    RON_ASSERT(same(one->ref, two->ref));
}

/* Where the ledger took the entry: its export is imported as the same. */
static void check_again(struct room *room)
{
    struct import_line line;
    struct ledger_op op, again;
    struct row row;
    struct ron_slice ref = {NULL, 0};
    enum ron_err err;
    bool is_read;

    if (!read_body(&room->scratch, ron_buf_slice(&room->body), &op) ||
        (op.kind == LEDGER_HOLD && op.expires_ms == 0))
        return; /* a Hold that ends at 0 has ended: there is none in a log */
    ron_arena_reset(&room->arena);
    err = row_read(ron_buf_slice(&room->entry), &room->arena, &row, NULL);
    RON_ASSERT(err == RON_ERR_OK);
    if (op.kind == LEDGER_REVERSE)
        ref = row_text(&row, "ref");
    put_line(&op, ref, &room->exported);
    ron_arena_reset(&room->arena);
    err = import_line_read(ron_buf_slice(&room->exported), &room->arena, &line, NULL);
    RON_ASSERT(err == RON_ERR_OK);
    RON_ASSERT(line.kind == IMPORT_LINE_EXPORTED);
    RON_ASSERT(line.is_hold == (op.kind == LEDGER_HOLD));
    ron_buf_reset(&room->entry);
    err = import_line_put(&line, op.has_to, 0, &room->entry, NULL);
    RON_ASSERT(err == RON_ERR_OK);
    make_body(room, &room->second_body);
    is_read = read_body(&room->second, ron_buf_slice(&room->second_body), &again);
    RON_ASSERT(is_read);
    check_same(&op, &again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct room room;
    struct import_line line;

    if (room.arena.block == NULL) {
        if (ron_arena_init(&room.arena, IMPORT_LINE_ARENA_SIZE, NULL) != RON_ERR_OK ||
            body_scratch_init(&room.scratch, NULL) != RON_ERR_OK ||
            body_scratch_init(&room.second, NULL) != RON_ERR_OK)
            return 0;
        ron_buf_init(&room.entry, 2 * IMPORT_LINE_SIZE_MAX);
        ron_buf_init(&room.body, BODY_MAX);
        ron_buf_init(&room.exported, BODY_MAX);
        ron_buf_init(&room.second_body, BODY_MAX);
    }
    if (size == 0 || memchr(data, '\n', size) != NULL)
        return 0;
    ron_arena_reset(&room.arena);
    if (import_line_read(ron_slice_of(data + 1, size - 1), &room.arena, &line, NULL) != RON_ERR_OK)
        return 0;
    check_texts(&line, &room.arena);
    if (line.kind != IMPORT_LINE_PLAIN && line.kind != IMPORT_LINE_EXPORTED)
        return 0;
    ron_buf_reset(&room.entry);
    if (import_line_put(&line, (data[0] & 1) != 0, (data[0] & 2) != 0 ? UNTIL_MS : 0, &room.entry,
                        NULL) != RON_ERR_OK)
        return 0;
    check_entry(&room, &line);
    make_body(&room, &room.body);
    check_body(&room);
    check_again(&room);
    return 0;
}
