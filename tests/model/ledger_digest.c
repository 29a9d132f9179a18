/*
 * ledger_digest.c - one fixed stream of commands through the core, and a hash over all that comes
 * out: frames, state roots, snapshots, refusals. Prints it; with an argument, compares (TAP).
 *
 * Built at several levels by both compilers: the same commands give the same bytes everywhere.
 * covers: LED-F06 LED-V01
 */
#include <stdio.h>

#include "base/assert.h"
#include "base/hex.h"
#include "base/mem.h"
#include "ledger/core_batch.h"
#include "ledger/core_frame.h"
#include "ledger/core_snapshot.h"
#include "ledger_lines.h"

enum { COMMANDS = 4000, LINE_SIZE = 1024, FRAME_SIZE_MAX = 1 << 20, SNAPSHOT_EACH = 400 };

struct stream {
    uint64_t random;
    uint64_t now;
    struct ledger_core *core;
    struct ledger_batch batch;
    struct lines lines;
    struct ron_b3_ctx hash;
    uint8_t *frame;
    unsigned applied_count, refused_count;
};

#define MUST(call)                          \
    do {                                    \
        enum ron_err must_err = (call);     \
        RON_ASSERT(must_err == RON_ERR_OK); \
    } while (0)

static unsigned draw(struct stream *s, unsigned below)
{
    s->random = s->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(s->random >> 33) % below;
}

/* Amounts of all sizes. All is drawn before it is used: arguments have no order. */
static void make_entry(struct stream *s, unsigned number, char *text, size_t size)
{
    static const char *const assets[] = {"roc", "usd"};
    const char *asset = assets[draw(s, 2)];
    const unsigned from = draw(s, 40);
    const unsigned to = draw(s, 40);
    const unsigned long long amount = (1ull + draw(s, 1000)) << draw(s, 30);
    const unsigned recent = number - draw(s, 20);
    const unsigned seconds = draw(s, 600);
    const unsigned kind = draw(s, 9);
    char head[320];
    char tail[96];

    (void)snprintf(tail, sizeof(tail), "\"asset\":\"%s\",\"amount\":\"%llu\"}", asset, amount);
    switch (kind) {
    case 0:
    case 1:
        (void)snprintf(head, sizeof(head), "\"Mint\",\"to\":\"a%u\"", to);
        break;
    case 2:
        (void)snprintf(head, sizeof(head), "\"Burn\",\"from\":\"a%u\"", from);
        break;
    case 3:
        (void)snprintf(head, sizeof(head),
                       "\"Hold\",\"from\":\"a%u\",\"hold_id\":\"h%u\",\"payee\":\"a%u\","
                       "\"expires_at\":\"1970-01-01T00:%02u:%02uZ\"",
                       from, number, to, seconds / 60, seconds % 60);
        break;
    case 4:
        (void)snprintf(head, sizeof(head), "\"Capture\",\"hold_id\":\"h%u\"", recent);
        break;
    case 5:
        (void)snprintf(head, sizeof(head), "\"Release\",\"hold_id\":\"h%u\"", recent);
        break;
    case 6:
        (void)snprintf(head, sizeof(head), "\"Reverse\",\"ref\":\"e%u\"", recent);
        break;
    default:
        (void)snprintf(head, sizeof(head),
                       "\"Transfer\",\"from\":\"a%u\",\"to\":\"a%u\",\"memo\":\"m%u\"", from,
                       from == to ? 40 : to, number);
    }
    (void)snprintf(text, size, "{\"id\":\"e%u\",\"kind\":%s,%s", number, head, tail);
}

static void make_line(struct stream *s, unsigned number, char *text)
{
    static const char stamp[] = "\"tenant\":\"7\",\"caller\":\"wallet\","
                                "\"capability\":\"0102030405060708\"";
    const unsigned command = draw(s, 20);
    const unsigned account = draw(s, 40);
    const unsigned limit = 1 + draw(s, 1u << 20);
    char entry[512];

    s->now += draw(s, 300);
    make_entry(s, number, entry, sizeof(entry));
    if (command == 0)
        (void)snprintf(text, LINE_SIZE, "{\"cmd\":\"expire\",\"commit_ms\":%llu,%s}",
                       (unsigned long long)s->now, stamp);
    else if (command == 1)
        (void)snprintf(text, LINE_SIZE,
                       "{\"cmd\":\"limits\",\"commit_ms\":%llu,%s,\"account\":\"a%u\","
                       "\"asset\":\"roc\",\"credit_line\":\"%u\",\"daily\":\"%u000\"}",
                       (unsigned long long)s->now, stamp, account, limit, limit);
    else if (command == 2)
        (void)snprintf(text, LINE_SIZE,
                       "{\"cmd\":\"open\",\"commit_ms\":%llu,%s,\"names\":[\"n%u\"]}",
                       (unsigned long long)s->now, stamp, account);
    else
        (void)snprintf(text, LINE_SIZE, "{\"cmd\":\"ingest\",\"commit_ms\":%llu,%s,\"batch\":[%s]}",
                       (unsigned long long)s->now, stamp, entry);
}

static enum ron_err take(void *context, struct ron_slice bytes, struct ron_errinfo *reterr)
{
    (void)reterr;
    ron_b3_update(context, bytes.data, bytes.size);
    return RON_ERR_OK;
}

static void run_line(struct stream *s, const char *text)
{
    struct ledger_refusal refusal = {.present = 0};
    struct ledger_result result = {.applied = false};
    struct ledger_command command;
    struct ron_errinfo info;
    struct line line;
    uint8_t answer[8];
    enum ron_err err = lines_read(&s->lines, ron_slice_text(text), &line, &info);

    if (err == RON_ERR_OK)
        err = lines_command(&s->lines, &line, &command, &refusal, &info);
    if (err == RON_ERR_OK)
        err = ledger_core_apply(s->core, &command, &s->batch, &result, &refusal, &info);
    ron_store_le32(answer, (uint32_t)err);
    ron_store_le32(answer + 4, err == RON_ERR_OK ? 0 : refusal.present);
    ron_b3_update(&s->hash, answer, sizeof(answer));
    s->refused_count += err == RON_ERR_OK ? 0 : 1;
    if (!result.applied)
        return;
    s->applied_count++;
    ledger_core_seal(s->core, &s->batch);
    RON_ASSERT(ledger_frame_size(&s->batch) <= FRAME_SIZE_MAX);
    ledger_frame_encode(&s->batch, s->frame);
    ron_b3_update(&s->hash, s->frame, ledger_frame_size(&s->batch));
    ledger_core_commit(s->core, &s->batch);
}

static struct ron_b3 run_stream(struct stream *s)
{
    const char *broken;

    run_line(s, "{\"cmd\":\"asset\",\"commit_ms\":0,\"asset\":\"usd\",\"decimals\":2,"
                "\"max_supply\":\"1000000000000000\"}");
    for (unsigned i = 0; i < COMMANDS; i++) {
        char text[LINE_SIZE];

        make_line(s, i + 100, text);
        run_line(s, text);
        if (i % SNAPSHOT_EACH == 0) {
            struct ron_sha256 root;
            uint64_t rows_count;

            MUST(ledger_core_state_root(s->core, &root, &rows_count, NULL));
            ron_b3_update(&s->hash, root.bytes, RON_SHA256_SIZE);
            MUST(ledger_snapshot_write(s->core, take, &s->hash, NULL));
        }
    }
    broken = ledger_core_check(s->core);
    RON_ASSERT(broken == NULL);
    return ron_b3_final(&s->hash);
}

int main(int argc, char **argv)
{
    struct ledger_capacity capacity = ledger_capacity_of(8192);
    static struct stream stream = {.random = 42};
    char text[RON_HEX_SIZE(RON_B3_SIZE)];
    struct ron_b3 digest;
    bool same;

    MUST(ledger_core_new(&capacity, NULL, &stream.core, NULL));
    MUST(ledger_batch_init(&stream.batch, LEDGER_BATCH_ENTRIES_MAX, 1 << 20, NULL));
    MUST(lines_init(&stream.lines, NULL));
    stream.frame = ron_mem_alloc(FRAME_SIZE_MAX);
    RON_ASSERT(stream.frame != NULL);
    ron_b3_init(&stream.hash);
    digest = run_stream(&stream);
    (void)ron_hex_encode(ron_slice_of(digest.bytes, RON_B3_SIZE), text, sizeof(text));
    if (argc < 2) {
        printf("%s %u applied, %u refused\n", text, stream.applied_count, stream.refused_count);
        return 0;
    }
    same = strcmp(argv[1], text) == 0;
    printf("%s 1 - ledger bytes: %s, %u batches, %u refusals\n1..1\n", same ? "ok" : "not ok", text,
           stream.applied_count, stream.refused_count);
    return same ? 0 : 1;
}
