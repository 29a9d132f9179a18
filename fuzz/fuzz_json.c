/*
 * fuzz_json.c - any bytes through the JSON reader and a DTO.
 *
 * Checked on every input: an arena of twice the text is enough, tokens are in order and balanced,
 * raw slices read again give the same and end where they did, strings are valid UTF-8, members of
 * an object differ, and a DTO accepts only what the reader accepts.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "ingest_dto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct count {
    uint64_t tokens;
    uint64_t depth;
    uint64_t hash; /* of kinds and contents, in order */
};

static void note(struct count *count, const struct ron_json_token *token)
{
    count->tokens++;
    count->hash = (count->hash ^ (uint64_t)token->kind) * 0x100000001b3u;
    if (token->kind == RON_JSON_OBJECT_BEGIN || token->kind == RON_JSON_ARRAY_BEGIN) {
        count->depth++;
        RON_ASSERT(count->depth <= RON_JSON_DEPTH_MAX);
    } else if (token->kind == RON_JSON_OBJECT_END || token->kind == RON_JSON_ARRAY_END) {
        RON_ASSERT(count->depth > 0);
        count->depth--;
    } else if (token->kind == RON_JSON_NAME || token->kind == RON_JSON_STRING) {
        RON_ASSERT(ron_utf8_valid(token->text, NULL));
        RON_ASSERT(token->text.size <= token->end - token->offset - 2);
        for (size_t i = 0; i < token->text.size; i++)
            count->hash = (count->hash ^ token->text.data[i]) * 0x100000001b3u;
    } else if (token->kind == RON_JSON_INTEGER) {
        RON_ASSERT(!token->negative || token->number.v != 0);
        count->hash = (count->hash ^ (uint64_t)token->number.v) * 0x100000001b3u;
    }
}

/* All tokens of text with exactly the promised memory. */
static enum ron_err read_tokens(struct ron_slice text, struct count *ret_count)
{
    struct ron_json_reader reader;
    struct ron_json_token token;
    struct ron_arena arena;
    struct count count = {0};
    uint32_t last_end = 0;
    enum ron_err err;

    if (ron_arena_init(&arena, text.size == 0 ? 1 : 2 * text.size, NULL) != RON_ERR_OK)
        abort();
    ron_json_reader_init(&reader, text, &arena);
    while ((err = ron_json_next(&reader, &token, NULL)) == RON_ERR_OK) {
        RON_ASSERT(token.offset >= last_end);
        RON_ASSERT(token.end <= text.size);
        last_end = token.end;
        if (token.kind == RON_JSON_END)
            break;
        RON_ASSERT(token.end > token.offset);
        note(&count, &token);
    }
    RON_ASSERT(err == RON_ERR_OK || err == RON_ERR_MALFORMED); /* never a full arena */
    RON_ASSERT(err != RON_ERR_OK || count.depth == 0);
    RON_ASSERT(arena.stack_size == 0);
    ron_arena_fini(&arena);
    *ret_count = count;
    return err;
}

static struct ron_json_token next_token(struct ron_json_reader *reader)
{
    struct ron_json_token token;
    enum ron_err err = ron_json_next(reader, &token, NULL);

    RON_ASSERT(err == RON_ERR_OK);
    return token;
}

/* Skip the value that begins here: its text, which must read again as one value of that text. */
static struct ron_slice skip_value(struct ron_json_reader *reader, unsigned levels)
{
    struct ron_json_token token = next_token(reader);
    struct ron_slice raw;
    enum ron_err err = ron_json_skip(reader, &token, &raw, NULL);

    RON_ASSERT(err == RON_ERR_OK);
    RON_ASSERT(raw.data == reader->data + token.offset);
    RON_ASSERT(raw.data + raw.size == reader->data + reader->at);
    if (levels > 0) {
        struct ron_json_reader again;
        struct ron_arena arena;
        struct ron_slice raw_again;

        if (ron_arena_init(&arena, 2 * raw.size, NULL) != RON_ERR_OK)
            abort();
        ron_json_reader_init(&again, raw, &arena);
        raw_again = skip_value(&again, levels - 1);
        RON_ASSERT(raw_again.size == raw.size);
        token = next_token(&again);
        RON_ASSERT(token.kind == RON_JSON_END);
        ron_arena_fini(&arena);
    }
    return raw;
}

/* The members of the outermost object, each skipped. Names are compared with all before, for
 * objects small enough for that. */
static void check_members(struct ron_slice text)
{
    enum { NAMES_MAX = 40 };
    struct ron_slice names[NAMES_MAX];
    struct ron_json_reader reader;
    struct ron_json_token token;
    struct ron_arena arena;
    size_t names_count = 0;

    if (ron_arena_init(&arena, 2 * text.size, NULL) != RON_ERR_OK)
        abort();
    ron_json_reader_init(&reader, text, &arena);
    token = next_token(&reader);
    RON_ASSERT(token.kind == RON_JSON_OBJECT_BEGIN);
    while (token.kind != RON_JSON_END && names_count < NAMES_MAX) {
        token = next_token(&reader);
        if (token.kind != RON_JSON_NAME)
            continue;
        for (size_t i = 0; i < names_count; i++)
            RON_ASSERT(!ron_slice_equal(names[i], token.text));
        names[names_count++] = token.text;
        (void)skip_value(&reader, 1);
    }
    ron_arena_fini(&arena);
}

static void check_dto(struct ron_slice text, enum ron_err reader_err)
{
    struct ron_errinfo info = {0};
    struct ingest_body body;
    struct ron_arena arena;
    enum ron_err err;

    /* Each entry is at least 80 bytes of text, so this is room for their structs four times. */
    if (ron_arena_init(&arena, 1024 + 16 * text.size + 16 * sizeof(struct ingest_entry), NULL) !=
        RON_ERR_OK)
        abort();
    err = ron_json_dto_read(&ingest_body_dto, text, &arena, &body, &info);
    RON_ASSERT(arena.stack_size == 0);
    if (err != RON_ERR_OK) {
        RON_ASSERT(info.err == err);
        RON_ASSERT(info.message[0] != '\0');
        for (size_t i = 0; info.message[i] != '\0'; i++) {
            RON_ASSERT(info.message[i] >= 0x20);
            RON_ASSERT(info.message[i] < 0x7f);
        }
        ron_arena_fini(&arena);
        return;
    }
    RON_ASSERT(reader_err == RON_ERR_OK);
    RON_ASSERT(body.batch.count >= 1);
    for (uint32_t i = 0; i < body.batch.count; i++) {
        const struct ingest_entry *entry = (const struct ingest_entry *)body.batch.items + i;
        struct count count;

        RON_ASSERT(entry->id.size >= 1);
        RON_ASSERT(entry->kind <= INGEST_ANCHOR);
        RON_ASSERT(entry->amount.v > 0);
        RON_ASSERT(entry->memo.size <= RON_MEMO_SIZE_MAX);
        if (ron_json_has(entry->present, ENTRY_META)) {
            err = read_tokens(entry->meta, &count);
            RON_ASSERT(err == RON_ERR_OK);
        }
    }
    ron_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ron_slice text = ron_slice_of(data, size);
    struct count first;
    struct count second;
    enum ron_err err = read_tokens(text, &first);
    enum ron_err again = read_tokens(text, &second);

    RON_ASSERT(again == err);
    RON_ASSERT(first.hash == second.hash);
    if (err == RON_ERR_OK) {
        const uint8_t *start = data;

        while (*start == ' ' || *start == '\n' || *start == '\r' || *start == '\t')
            start++;
        if (*start == '{')
            check_members(text);
    }
    check_dto(text, err);
    return 0;
}
