/*
 * api_reply.c - replies: of a write, by its outcome; of reads, as JSON.
 *
 * A write's reply is made of its batch alone, so that the same batch is answered by the same bytes
 * whenever it is asked for.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/decimal.h"
#include "base/hex.h"
#include "base/rfc3339.h"
#include "ledger/api_pages.h"

static const struct ron_slice no_details = {NULL, 0};

void reply_error(struct io_request *request, enum ron_err err, const struct ron_errinfo *info)
{
    io_reply_error(request, err, info, no_details);
}

/* --- Writes ------------------------------------------------------------------------------------
 */

enum { DETAILS_SIZE = 384, REPLY_SIZE = 512, OAP_REPLY_SIZE = 56, PROOFS_AROUND = 16 };

struct details {
    char text[DETAILS_SIZE];
    size_t size;
};

RON_PRINTF(2, 3) static void add(struct details *details, const char *format, ...)
{
    va_list args;
    int size;

    details->text[details->size] = details->size == 0 ? '{' : ',';
    details->size++;
    va_start(args, format);
    size = vsnprintf(details->text + details->size, sizeof(details->text) - details->size, format,
                     args);
    va_end(args);
    RON_ASSERT(size > 0);
    details->size += (size_t)size;
    RON_ASSERT(details->size < sizeof(details->text) - 1);
}

static void add_refusal(struct details *details, const struct ledger_refusal *refusal)
{
    static const struct {
        unsigned bit;
        const char *name;
    } expected[] = {
        {LEDGER_DETAIL_NONCE, "expected_nonce"},
        {LEDGER_DETAIL_CHUNK, "expected_chunk"},
        {LEDGER_DETAIL_SEQ, "expected_seq"},
    };
    char digits[RON_DECIMAL_U128_SIZE];

    if ((refusal->present & LEDGER_DETAIL_INDEX) != 0)
        add(details, "\"index\":%u", refusal->index);
    if ((refusal->present & LEDGER_DETAIL_AVAILABLE) != 0) {
        (void)ron_decimal_print_u128(refusal->available, digits);
        add(details, "\"available\":\"%s\"", digits);
    }
    for (size_t i = 0; i < RON_ARRAY_COUNT(expected); i++)
        if ((refusal->present & expected[i].bit) != 0)
            add(details, "\"%s\":%llu", expected[i].name, (unsigned long long)refusal->expected);
    if ((refusal->present & LEDGER_DETAIL_LIMIT) != 0)
        add(details, "\"limit\":\"%s\"", refusal->limit);
    if ((refusal->present & LEDGER_DETAIL_SERVER_MS) != 0)
        add(details, "\"server_ms\":%llu", (unsigned long long)refusal->server_ms);
}

static void reply_refusal(const struct api_call *call)
{
    const struct ledger_outcome *outcome = &call->ledger.outcome;
    struct details details = {.size = 0};

    add_refusal(&details, &outcome->refusal);
    if (call->reason != NULL)
        add(&details, "\"reason\":\"%s\"", call->reason);
    if (call->wait_ms > 0)
        add(&details, "\"wait_ms\":%llu", (unsigned long long)call->wait_ms);
    if (outcome->unknown)
        add(&details, "\"outcome\":\"unknown\"");
    if (details.size > 0)
        details.text[details.size++] = '}';
    io_reply_error(call->request, outcome->err, &outcome->info,
                   ron_slice_of(details.text, details.size));
}

static RON_HOT_INLINE size_t print_part(char *text, size_t size, struct ron_slice words)
{
    RON_ASSERT(words.size < REPLY_SIZE - size);
    memcpy(text + size, words.data, words.size);
    return size + words.size;
}

/* Inline: a literal is copied with its size known. */
static RON_HOT_INLINE size_t print_text(char *text, size_t size, const char *words)
{
    return print_part(text, size, ron_slice_text(words));
}

static RON_HOT_INLINE size_t print_number(char *text, size_t size, const char *words,
                                          uint64_t number)
{
    size = print_text(text, size, words);
    RON_ASSERT(RON_DECIMAL_U64_SIZE < REPLY_SIZE - size);
    return size + ron_decimal_print_u64(number, text + size);
}

/* Without its closing brace: proofs may follow. By hand: printing it took longer than committing.
 */
static size_t print_batch(const struct ledger_reply *reply, char text[static REPLY_SIZE])
{
    char root[RON_HEX_SIZE(RON_SHA256_SIZE)], time[RON_RFC3339_SIZE];
    size_t size = 0;

    (void)ron_hex_encode(ron_slice_of(reply->root.bytes, RON_SHA256_SIZE), root, sizeof(root));
    ron_rfc3339_print(reply->commit_ms, time);
    size = print_number(text, size, "{\"accepted\":true,\"seq_start\":", reply->seq_start);
    size = print_number(text, size, ",\"seq_end\":", reply->seq_end);
    size = print_number(text, size, ",\"batch_no\":", reply->batch);
    size = print_number(text, size, ",\"tree_size\":", reply->seq_end);
    size = print_text(text, size, ",\"new_root\":\"");
    size = print_text(text, size, root);
    size = print_text(text, size, "\",\"committed_at\":\"");
    size = print_text(text, size, time);
    return print_text(text, size, "\"");
}

/* A slice is acknowledged by its own words. */
static size_t print_slice(const struct api_call *call, char text[static REPLY_SIZE])
{
    const struct ledger_slice_terms *terms = &call->ledger.command.slice;
    char digest[RON_B3_TEXT_SIZE];
    struct ron_b3 b3;
    int size;

    memcpy(b3.bytes, terms->digest, sizeof(b3.bytes));
    ron_b3_print(&b3, digest);
    size = snprintf(text, REPLY_SIZE, "{\"ack\":\"%s\",\"seq\":%llu,\"b3\":\"%s\"",
                    call->ledger.outcome.repeated ? "dup" : "ok", (unsigned long long)terms->seq,
                    digest);
    RON_ASSERT(size > 0);
    RON_ASSERT(size < REPLY_SIZE);
    return (size_t)size;
}

static void reply_frame(const struct api_call *call, const struct ledger_reply *reply)
{
    uint8_t bytes[OAP_REPLY_SIZE];

    ron_store_le64(bytes, reply->seq_start);
    ron_store_le64(bytes + 8, reply->seq_end);
    ron_store_le64(bytes + 16, reply->seq_end);
    memcpy(bytes + 24, reply->root.bytes, RON_SHA256_SIZE);
    io_reply(call->request, &(struct io_reply){.status = 200,
                                               .media = "application/octet-stream",
                                               .body = ron_slice_of(bytes, sizeof(bytes))});
}

/* What there was nothing to do for is answered by the head as it is. */
static struct ledger_reply reply_of(const struct api_call *call)
{
    struct ledger_reply reply = call->ledger.outcome.reply;

    if (reply.batch == 0) {
        const struct ledger_root head = ledger_read_head(call->api->options.service);

        reply = (struct ledger_reply){
            .seq_end = head.seq, .commit_ms = head.commit_ms, .root = head.root};
    }
    return reply;
}

/* A frame holds no more: the batch is answered, proofs are for the asking. */
static bool fits(const struct api_call *call, size_t size)
{
    return call->request->frame == NULL || size <= RON_FRAME_SIZE_MAX - RON_FRAME_HEAD_SIZE;
}

void reply_call_with(struct api_call *call, struct ron_slice proofs)
{
    static const struct io_reply_field replay = {"Idempotent-Replay", "true"};
    const struct ledger_outcome *outcome = &call->ledger.outcome;
    const bool is_slice = call->ledger.command.kind == LEDGER_COMMAND_SLICE;
    const struct ledger_reply reply = reply_of(call);
    struct io_reply answer = {.status = 200,
                              .media = "application/json",
                              .fields = &replay,
                              .fields_count = outcome->repeated ? 1 : 0};
    char text[REPLY_SIZE];
    struct ron_buf buf;
    size_t size;

    if (io_request_is_operation(call->request)) {
        reply_frame(call, &reply);
        return;
    }
    size = is_slice ? print_slice(call, text) : print_batch(&reply, text);
    ron_buf_init(&buf, API_REPLY_SIZE_MAX);
    if (proofs.size > 0 && fits(call, size + proofs.size + PROOFS_AROUND)) {
        ron_buf_put(&buf, text, size);
        ron_buf_put_text(&buf, ",\"proofs\":");
        ron_buf_put(&buf, proofs.data, proofs.size);
        ron_buf_put_byte(&buf, '}');
        answer.body = ron_buf_slice(&buf);
    } else {
        size = print_text(text, size, "}");
        answer.body = ron_slice_of(text, size);
    }
    if (ron_buf_check(&buf, NULL) == RON_ERR_OK) {
        io_reply(call->request, &answer);
    } else { /* it happened; only its words did not fit */
        struct ron_errinfo info = {0};

        io_reply_error(call->request,
                       ron_fail(&info, RON_ERR_NO_MEMORY, "no memory for the reply of a batch"),
                       &info, RON_SLICE("{\"outcome\":\"unknown\"}"));
    }
    ron_buf_fini(&buf);
}

void reply_call(struct api_call *call)
{
    if (call->ledger.outcome.err != RON_ERR_OK)
        reply_refusal(call);
    else
        reply_call_with(call, no_details);
}

/* --- Reads -------------------------------------------------------------------------------------
 */

/* By hand, like a batch's, and it needs no memory. Of the names' alphabets nothing is escaped. */
void reply_balance(struct io_request *request, struct ron_slice account, struct ron_slice asset,
                   const struct ledger_balance *balance, const char *as_of)
{
    char text[REPLY_SIZE];
    size_t size = 0;

    size = print_text(text, size, "{\"account\":\"");
    size = print_part(text, size, account);
    size = print_text(text, size, "\",\"asset\":\"");
    size = print_part(text, size, asset);
    /* Below zero it is drawn on a credit line. */
    if (balance->negative)
        size = print_text(text, size, "\",\"amount\":\"0\",\"debt\":\"");
    else
        size = print_text(text, size, "\",\"amount\":\"");
    RON_ASSERT(RON_DECIMAL_U128_SIZE < REPLY_SIZE - size);
    size += ron_decimal_print_u128(balance->amount, text + size);
    size = print_number(text, size, "\",\"next_nonce\":", balance->next_nonce);
    size = print_number(text, size, ",\"as_of_seq\":", balance->as_of_seq);
    size = print_text(text, size, ",\"as_of\":\"");
    size = print_part(text, size, ron_slice_of(as_of, RON_RFC3339_SIZE - 1));
    size = print_text(text, size, "\"}");
    io_reply(request, &(struct io_reply){.status = 200,
                                         .media = "application/json",
                                         .body = ron_slice_of(text, size)});
}
_Static_assert(RON_ACCOUNT_NAME_SIZE_MAX + RON_ASSET_NAME_SIZE_MAX + RON_DECIMAL_U128_SIZE +
                       2 * RON_DECIMAL_U64_SIZE + RON_RFC3339_SIZE + 110 <=
                   REPLY_SIZE,
               "a balance fits, its names and words included");

void reply_buf(struct io_request *request, const char *media, struct ron_buf *buf)
{
    struct ron_errinfo info = {0};
    enum ron_err err = ron_buf_check(buf, &info);

    if (err == RON_ERR_OK)
        io_reply(request,
                 &(struct io_reply){.status = 200, .media = media, .body = ron_buf_slice(buf)});
    else
        reply_error(request, err, &info);
    ron_buf_fini(buf);
}

void reply_json(struct io_request *request, struct ron_json_writer *writer, struct ron_buf *buf)
{
    struct ron_errinfo info = {0};
    enum ron_err err = ron_json_writer_end(writer, &info);

    if (err == RON_ERR_OK) {
        reply_buf(request, "application/json", buf);
        return;
    }
    reply_error(request, err, &info);
    ron_buf_fini(buf);
}
