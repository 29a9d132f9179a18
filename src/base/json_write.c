/*
 * json_write.c - JSON output. See json_write.h.
 *
 * The nesting state is kept also after a failure, so that misuse is found on every path.
 */
#include "base/json_write.h"

#include "base/assert.h"
#include "base/decimal.h"
#include "base/utf8.h"

void ron_json_writer_init(struct ron_json_writer *writer, struct ron_buf *buf,
                          enum ron_json_form form)
{
    RON_ASSERT(buf != NULL);
    RON_ASSERT(form == RON_JSON_FIXED || form == RON_JSON_CANONICAL);
    memset(writer, 0, offsetof(struct ron_json_writer, levels)); /* levels begin with theirs */
    writer->buf = buf;
    writer->form = form;
}

enum ron_err ron_json_writer_end(const struct ron_json_writer *writer, struct ron_errinfo *reterr)
{
    RON_ASSERT(writer->depth == 0);
    RON_ASSERT(writer->complete);
    if (writer->failure != NULL)
        return ron_fail(reterr, RON_ERR_MALFORMED, "%s at byte %zu of a value, output byte %zu",
                        writer->failure, writer->failure_position, writer->failure_offset);
    return ron_buf_check(writer->buf, reterr);
}

static void writer_fail(struct ron_json_writer *writer, const char *failure, size_t position)
{
    if (writer->failure != NULL)
        return;
    writer->failure = failure;
    writer->failure_position = position;
    writer->failure_offset = writer->buf->size;
}

static void emit(struct ron_json_writer *writer, const void *data, size_t size)
{
    if (writer->failure == NULL)
        ron_buf_put(writer->buf, data, size);
}

static void emit_byte(struct ron_json_writer *writer, char byte)
{
    if (writer->failure == NULL)
        ron_buf_put_byte(writer->buf, (uint8_t)byte);
}

static struct ron_json_level *innermost(struct ron_json_writer *writer)
{
    RON_ASSERT(writer->depth > 0);
    RON_ASSERT(writer->depth <= RON_JSON_DEPTH_MAX);
    return &writer->levels[writer->depth - 1];
}

/* Before a value: the comma of an array; in an object its name is there already. */
static void value_begin(struct ron_json_writer *writer)
{
    struct ron_json_level *level;

    RON_ASSERT(!writer->complete);
    if (writer->depth == 0)
        return;
    level = innermost(writer);
    if (level->object) {
        RON_ASSERT(level->named);
        level->named = false;
    } else {
        if (level->filled)
            emit_byte(writer, ',');
        level->filled = true;
    }
}

static void value_end(struct ron_json_writer *writer)
{
    writer->complete = writer->depth == 0;
}

static void container_begin(struct ron_json_writer *writer, bool object)
{
    value_begin(writer);
    RON_ASSERT(writer->depth < RON_JSON_DEPTH_MAX);
    writer->levels[writer->depth++] = (struct ron_json_level){.object = object};
    emit_byte(writer, object ? '{' : '[');
}

static void container_end(struct ron_json_writer *writer, bool object)
{
    struct ron_json_level *level = innermost(writer);

    RON_ASSERT(level->object == object);
    RON_ASSERT(!level->named);
    emit_byte(writer, object ? '}' : ']');
    writer->depth--;
    value_end(writer);
}

void ron_json_put_object_begin(struct ron_json_writer *writer)
{
    container_begin(writer, true);
}

void ron_json_put_object_end(struct ron_json_writer *writer)
{
    container_end(writer, true);
}

void ron_json_put_array_begin(struct ron_json_writer *writer)
{
    container_begin(writer, false);
}

void ron_json_put_array_end(struct ron_json_writer *writer)
{
    container_end(writer, false);
}

static bool is_plain(uint8_t byte)
{
    return byte >= 0x20 && byte != '"' && byte != '\\';
}

static void emit_escape(struct ron_json_writer *writer, uint8_t byte)
{
    static const char digits[] = "0123456789abcdef";
    char text[6] = {'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]};
    static const char letters[0x20] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r',
    };

    RON_ASSERT(byte < 0x20 || byte == '"' || byte == '\\');
    if (byte < 0x20 && letters[byte] == 0) {
        emit(writer, text, sizeof(text));
        return;
    }
    text[1] = byte < 0x20 ? letters[byte] : (char)byte;
    emit(writer, text, 2);
}

/* Eight bytes at once: none is a control, a quote, a backslash, or beyond ASCII. */
static bool is_plain_word(uint64_t word)
{
    const uint64_t ones = UINT64_MAX / 255, high = ones << 7;
    const uint64_t quote = word ^ ones * '"', slash = word ^ ones * '\\';

    /* A byte below n borrows from its high bit; a false alarm from the byte before is only slow. */
    return ((word | (word - ones * 0x20) | (quote - ones) | (slash - ones)) & high) == 0;
}

static bool is_plain_text(struct ron_slice text)
{
    size_t i = 0;

    for (; i + 8 <= text.size; i += 8)
        if (!is_plain_word(ron_load_le64(text.data + i)))
            return false;
    for (; i < text.size; i++)
        if (!is_plain(text.data[i]) || text.data[i] >= 0x80)
            return false;
    return true;
}

/* What most strings are, where the buffer has room already. */
static bool emit_plain(struct ron_json_writer *writer, struct ron_slice text)
{
    struct ron_buf *buf = writer->buf;
    uint8_t *at;

    if (writer->failure != NULL || buf->failure != RON_ERR_OK || text.size == 0 ||
        text.size + 2 > buf->capacity - buf->size || !is_plain_text(text))
        return false;
    at = buf->data + buf->size;
    at[0] = '"';
    memcpy(at + 1, text.data, text.size);
    at[1 + text.size] = '"';
    buf->size += text.size + 2;
    return true;
}

/* Runs that need no escape are copied in one piece. */
static void emit_string(struct ron_json_writer *writer, struct ron_slice text)
{
    size_t start = 0;
    size_t bad_offset;

    if (emit_plain(writer, text))
        return;
    if (!ron_utf8_valid(text, &bad_offset)) {
        writer_fail(writer, "invalid UTF-8", bad_offset);
        return;
    }
    emit_byte(writer, '"');
    for (size_t i = 0; i < text.size; i++) {
        if (is_plain(text.data[i]))
            continue;
        emit(writer, text.data + start, i - start);
        emit_escape(writer, text.data[i]);
        start = i + 1;
    }
    if (start < text.size)
        emit(writer, text.data + start, text.size - start);
    emit_byte(writer, '"');
}

int ron_json_name_compare(struct ron_slice a, struct ron_slice b)
{
    size_t common = a.size < b.size ? a.size : b.size;
    size_t i = 0;
    uint8_t x, y;

    while (i + 8 <= common && ron_load_le64(a.data + i) == ron_load_le64(b.data + i))
        i += 8;
    while (i < common && a.data[i] == b.data[i])
        i++;
    if (i == common)
        return a.size < b.size ? -1 : a.size > b.size;
    /* Bytes of UTF-8 order as code points do, and UTF-16 differs from that only in one thing: the
     * surrogates of U+10000 and beyond (lead bytes F0..F4) come before U+E000..U+FFFF (EE, EF).
     * What differs first is in both a lead byte or in both a continuation, never EE or above. */
    x = a.data[i];
    y = b.data[i];
    if (x >= 0xee && y >= 0xee && (x >= 0xf0) != (y >= 0xf0))
        return x >= 0xf0 ? -1 : 1;
    return x < y ? -1 : 1;
}

/* The next byte of a name as it was before escaping, or -1 at its closing quote. */
static int unescaped_next(const uint8_t *p, size_t *at)
{
    static const char letters[] = "b\bt\tn\nf\fr\r\"\"\\\\";

    if (p[*at] == '"')
        return -1;
    if (p[*at] != '\\')
        return p[(*at)++];
    if (p[*at + 1] == 'u') {
        uint8_t low = p[*at + 5];

        *at += 6;
        return (p[*at - 2] - '0') * 16 + (low <= '9' ? low - '0' : low - 'a' + 10);
    }
    for (size_t i = 0; letters[i] != 0; i += 2) {
        if ((uint8_t)letters[i] == p[*at + 1]) {
            *at += 2;
            return letters[i + 1];
        }
    }
    RON_UNREACHABLE();
}

/* Whether the name written at `later` comes after the one at `earlier` (offsets of their quotes).
 * The caller's text of the earlier name may be gone, so both are read back from the output. */
static RON_UNUSED bool names_ascend(const struct ron_buf *buf, size_t earlier, size_t later)
{
    size_t at_a = earlier + 1;
    size_t at_b = later + 1;
    int x, y;

    do {
        x = unescaped_next(buf->data, &at_a);
        y = unescaped_next(buf->data, &at_b);
    } while (x == y && x >= 0);
    if (x >= 0xee && y >= 0xee && (x >= 0xf0) != (y >= 0xf0))
        return x >= 0xf0;
    return x < y;
}

void ron_json_put_name_slice(struct ron_json_writer *writer, struct ron_slice name)
{
    struct ron_json_level *level = innermost(writer);
    size_t offset;

    RON_ASSERT(level->object);
    RON_ASSERT(!level->named);
    if (level->filled)
        emit_byte(writer, ',');
    offset = writer->buf->size;
    emit_string(writer, name);
    if (writer->form == RON_JSON_CANONICAL && level->filled && writer->failure == NULL &&
        writer->buf->failure == RON_ERR_OK)
        RON_ASSERT_SLOW(names_ascend(writer->buf, level->name_offset, offset));
    emit_byte(writer, ':');
    level->name_offset = offset;
    level->filled = true;
    level->named = true;
}

void ron_json_put_name(struct ron_json_writer *writer, const char *name)
{
    ron_json_put_name_slice(writer, ron_slice_text(name));
}

void ron_json_put_string(struct ron_json_writer *writer, struct ron_slice text)
{
    value_begin(writer);
    emit_string(writer, text);
    value_end(writer);
}

void ron_json_put_text(struct ron_json_writer *writer, const char *text)
{
    ron_json_put_string(writer, ron_slice_text(text));
}

void ron_json_put_integer(struct ron_json_writer *writer, bool negative, struct ron_u128 magnitude)
{
    char text[1 + RON_DECIMAL_U128_SIZE] = "-";
    size_t sign_size = negative ? 1 : 0;
    size_t digits_count;

    RON_ASSERT(!negative || !ron_u128_is_zero(magnitude));
    value_begin(writer);
    if (writer->form == RON_JSON_CANONICAL && magnitude.v > RON_JSON_CANONICAL_INTEGER_MAX) {
        writer_fail(writer, "an integer beyond 2^53 - 1 (use a string)", 0);
    }
    if (magnitude.v <= UINT64_MAX)
        digits_count = ron_decimal_print_u64((uint64_t)magnitude.v, text + sign_size);
    else
        digits_count = ron_decimal_print_u128(magnitude, text + sign_size);
    emit(writer, text, sign_size + digits_count);
    value_end(writer);
}

void ron_json_put_u64(struct ron_json_writer *writer, uint64_t value)
{
    ron_json_put_integer(writer, false, ron_u128_of(value));
}

void ron_json_put_i64(struct ron_json_writer *writer, int64_t value)
{
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

    ron_json_put_integer(writer, value < 0, ron_u128_of(magnitude));
}

void ron_json_put_u128(struct ron_json_writer *writer, struct ron_u128 value)
{
    ron_json_put_integer(writer, false, value);
}

void ron_json_put_amount(struct ron_json_writer *writer, struct ron_u128 value)
{
    char text[RON_DECIMAL_U128_SIZE];

    ron_json_put_string(writer, ron_slice_of(text, ron_decimal_print_u128(value, text)));
}

void ron_json_put_raw(struct ron_json_writer *writer, struct ron_slice json)
{
    RON_ASSERT(json.size > 0);
    value_begin(writer);
    emit(writer, json.data, json.size);
    value_end(writer);
}

void ron_json_put_bool(struct ron_json_writer *writer, bool value)
{
    ron_json_put_raw(writer, value ? RON_SLICE("true") : RON_SLICE("false"));
}

void ron_json_put_null(struct ron_json_writer *writer)
{
    ron_json_put_raw(writer, RON_SLICE("null"));
}
