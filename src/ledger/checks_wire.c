/*
 * checks_wire.c - what a remote check is asked, and how its answer is read. docs/formats.md has the
 * texts.
 *
 * Questions carry identifiers, names and amounts, never a token. Answers may have members that are
 * not known here; what is known must be right.
 */
#include <stdio.h>

#include "base/hex.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/printable.h"
#include "ledger/checks_impl.h"
#include "ledger/core_id_text.h"

enum { ANSWER_SIZE_MAX = 4096 };

bool check_kind_debits(unsigned kind)
{
    return kind == LEDGER_TRANSFER || kind == LEDGER_BURN || kind == LEDGER_HOLD ||
           kind == LEDGER_DEBIT;
}

static const char *command_text(enum ledger_command_kind kind)
{
    static const char *const names[] = {"",      "ingest", "asset",   "limits", "intents",
                                        "slice", "expire", "abandon", "open"};

    RON_ASSERT(kind < RON_ARRAY_COUNT(names));
    return names[kind];
}

/* --- Questions ----------------------------------------------------------------------------------
 */

static void put_member(struct ron_json_writer *writer, const char *name, struct ron_slice text)
{
    ron_json_put_name(writer, name);
    ron_json_put_string(writer, text);
}

/* By name where it is known, else `NAME_id` and 32 digits; nothing for a side the kind implies. */
static void put_account(struct ron_json_writer *writer, const char *name, const char *id_name,
                        struct ron_slice text, const struct ledger_id *id)
{
    static const struct ledger_id none;
    char digits[RON_HEX_SIZE(LEDGER_ID_SIZE)];

    if (text.size > 0) {
        put_member(writer, name, text);
    } else if (memcmp(id, &none, sizeof(none)) != 0) {
        (void)ron_hex_encode(ron_slice_of(id->bytes, LEDGER_ID_SIZE), digits, sizeof(digits));
        put_member(writer, id_name, ron_slice_text(digits));
    }
}

static void put_asset(struct ron_json_writer *writer, const struct ledger_op *op)
{
    if (op->asset_name.size > 0) {
        put_member(writer, "asset", op->asset_name);
    } else if (op->asset > 0) {
        ron_json_put_name(writer, "asset_number");
        ron_json_put_u64(writer, op->asset);
    }
    ron_json_put_name(writer, "amount");
    ron_json_put_amount(writer, op->amount);
}

static void put_entries(struct ron_json_writer *writer, const struct ledger_command *command)
{
    ron_json_put_name(writer, "entries");
    ron_json_put_array_begin(writer);
    for (uint32_t i = 0; i < command->ops_count; i++) {
        struct ledger_op room;
        const struct ledger_op *op = ledger_op_whole(command, i, &room);

        ron_json_put_object_begin(writer);
        ron_json_put_name(writer, "kind");
        ron_json_put_text(writer, ledger_kind_name(op->kind));
        if (op->kind != LEDGER_ANCHOR) { /* its sides are a digest */
            put_account(writer, "debit", "debit_id", op->debit_name, &op->debit);
            put_account(writer, "credit", "credit_id", op->credit_name, &op->credit);
        }
        put_asset(writer, op);
        ron_json_put_object_end(writer);
    }
    ron_json_put_array_end(writer);
}

static void put_debits(struct ron_json_writer *writer, const struct ledger_command *command)
{
    put_member(writer, "idem_key", command->key);
    ron_json_put_name(writer, "debits");
    ron_json_put_array_begin(writer);
    for (uint32_t i = 0; i < command->ops_count; i++) {
        struct ledger_op whole;
        const struct ledger_op *op = ledger_op_whole(command, i, &whole);
        char room[LEDGER_ID_DIGITS + 1];

        if (!check_kind_debits(op->kind))
            continue;
        ron_json_put_object_begin(writer);
        put_member(writer, "id", ledger_id_text_of(op->id_text, room));
        put_account(writer, "account", "account_id", op->debit_name, &op->debit);
        put_asset(writer, op);
        ron_json_put_name(writer, "nonce");
        ron_json_put_u64(writer, op->nonce);
        ron_json_put_object_end(writer);
    }
    ron_json_put_array_end(writer);
}

enum ron_err check_wire_put(enum ledger_check_port port, const struct ledger_request *request,
                            struct ron_buf *buf, struct ron_errinfo *reterr)
{
    const struct ledger_command *command = &request->command;
    struct ron_json_writer writer;

    ron_json_writer_init(&writer, buf, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    put_member(&writer, "kid", auth_grant_kid(request->grant));
    put_member(&writer, "capability_ref", auth_grant_ref(request->grant));
    ron_json_put_name(&writer, "tenant");
    ron_json_put_amount(&writer, command->stamp.tenant);
    ron_json_put_name(&writer, "caller");
    ron_json_put_text(&writer, ledger_caller_name(command->stamp.caller));
    ron_json_put_name(&writer, "command");
    ron_json_put_text(&writer, command_text(command->kind));
    if (port == LEDGER_CHECK_POLICY)
        put_entries(&writer, command);
    else if (port == LEDGER_CHECK_WALLET)
        put_debits(&writer, command);
    ron_json_put_object_end(&writer);
    return ron_json_writer_end(&writer, reterr);
}

/* --- Answers ------------------------------------------------------------------------------------
 */

/* The members that are known; `bad`: one of them has the wrong type. */
struct members {
    bool has_ok, ok, has_kid, has_ref, bad;
    struct ron_slice kid, ref, reason;
    bool has_epoch;
    uint64_t epoch;
};

static void take_text(struct members *members, const struct ron_json_token *token, bool *ret_has,
                      struct ron_slice *ret_text)
{
    members->bad = members->bad || token->kind != RON_JSON_STRING;
    if (ret_has != NULL)
        *ret_has = true;
    *ret_text = token->text;
}

static void take_member(struct members *members, struct ron_slice name,
                        const struct ron_json_token *token)
{
    if (ron_slice_equal(name, RON_SLICE("ok"))) {
        members->has_ok = true;
        members->ok = token->kind == RON_JSON_TRUE;
        members->bad = members->bad || (!members->ok && token->kind != RON_JSON_FALSE);
    } else if (ron_slice_equal(name, RON_SLICE("kid"))) {
        take_text(members, token, &members->has_kid, &members->kid);
    } else if (ron_slice_equal(name, RON_SLICE("capability_ref"))) {
        take_text(members, token, &members->has_ref, &members->ref);
    } else if (ron_slice_equal(name, RON_SLICE("reason"))) {
        take_text(members, token, NULL, &members->reason);
    } else if (ron_slice_equal(name, RON_SLICE("epoch"))) {
        members->has_epoch = true;
        members->bad = members->bad || token->kind != RON_JSON_INTEGER || token->negative ||
                       token->number.v > UINT64_MAX;
        members->epoch = members->bad ? 0 : (uint64_t)token->number.v;
    }
}

static enum ron_err read_members(struct ron_json_reader *reader, struct members *ret_members)
{
    struct ron_json_token token;
    struct ron_slice raw;
    enum ron_err err = ron_json_next(reader, &token, NULL);

    if (err == RON_ERR_OK && token.kind != RON_JSON_OBJECT_BEGIN)
        err = RON_ERR_MALFORMED;
    while (err == RON_ERR_OK) {
        struct ron_slice name;

        err = ron_json_next(reader, &token, NULL);
        if (err != RON_ERR_OK || token.kind == RON_JSON_OBJECT_END)
            break;
        name = token.text;
        err = ron_json_next(reader, &token, NULL);
        if (err == RON_ERR_OK) {
            take_member(ret_members, name, &token);
            err = ron_json_skip(reader, &token, &raw, NULL);
        }
    }
    if (err == RON_ERR_OK)
        err = ron_json_next(reader, &token, NULL); /* nothing may follow */
    return err;
}

static void fail(struct check_answer *answer, const char *text)
{
    answer->verdict = CHECK_FAILED;
    (void)snprintf(answer->text, sizeof(answer->text), "%s", text);
}

static void judge(const struct members *members, const struct auth_grant *grant,
                  struct check_answer *answer)
{
    if (members->bad || !members->has_ok) {
        fail(answer, "its answer lacks a member, or has one of the wrong type");
    } else if (!members->ok) {
        answer->verdict = CHECK_NO;
        (void)ron_printable(members->reason, answer->text, sizeof(answer->text));
    } else if (!members->has_kid || !ron_slice_equal(members->kid, auth_grant_kid(grant)) ||
               !members->has_ref || !ron_slice_equal(members->ref, auth_grant_ref(grant))) {
        fail(answer, "its answer is about another capability");
    } else {
        answer->verdict = CHECK_YES;
        answer->has_epoch = members->has_epoch;
        answer->epoch = members->epoch;
    }
}

void check_wire_read(int status, struct ron_slice body, const struct auth_grant *grant,
                     struct check_answer *ret_answer)
{
    struct ron_json_reader reader;
    struct members members = {0};
    struct ron_arena arena = {0};

    *ret_answer = (struct check_answer){.verdict = CHECK_FAILED};
    if (status != 200) {
        ret_answer->verdict = status == 408 || status == 429  ? CHECK_LATER
                              : status >= 400 && status < 500 ? CHECK_NO
                                                              : CHECK_FAILED;
        (void)snprintf(ret_answer->text, sizeof(ret_answer->text), "status %d", status);
        return;
    }
    if (body.size > ANSWER_SIZE_MAX) {
        fail(ret_answer, "its answer is too long");
        return;
    }
    if (ron_arena_init(&arena, (size_t)2 * ANSWER_SIZE_MAX, NULL) != RON_ERR_OK) {
        fail(ret_answer, "no memory for its answer");
        return;
    }
    ron_json_reader_init(&reader, body, &arena);
    if (read_members(&reader, &members) != RON_ERR_OK)
        fail(ret_answer, "its answer is no JSON object");
    else
        judge(&members, grant, ret_answer);
    ron_arena_fini(&arena);
}
