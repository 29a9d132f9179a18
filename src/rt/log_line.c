/*
 * log_line.c - see log_line.h.
 *
 * Room for the end of the line is kept back, so a line can always be closed properly. A field whose
 * beginning does not fit is left out; a text is cut between characters. After a cut no more fields
 * are taken: a line says what is missing only by its mark.
 */
#include "rt/log_line.h"

#include "base/assert.h"
#include "base/decimal.h"
#include "base/rfc3339.h"
#include "base/utf8.h"
#include "rt/scaled.h"

static const char *const level_names[][2] = {
    [RT_LOG_DEBUG] = {"debug", "DEBUG"},
    [RT_LOG_INFO] = {"info", "INFO "},
    [RT_LOG_WARN] = {"warn", "WARN "},
    [RT_LOG_ERROR] = {"error", "ERROR"},
};

static const char *const ends[][2] = {
    [RT_LOG_JSON] = {"}\n", ",\"cut\":true}\n"},
    [RT_LOG_TEXT] = {"\n", " [cut]\n"},
};
/* The longest end and a closing quote. */
enum {
    END_SIZE_MAX = sizeof("\",\"cut\":true}\n") - 1,
    LIMIT = RT_LOG_LINE_SIZE_MAX - END_SIZE_MAX,
    TASK_WIDTH = 14,
};

/* A closing quote may stand beyond the limit. */
static size_t room(const struct log_line *line)
{
    return line->size < LIMIT ? LIMIT - line->size : 0;
}

/* Append all of it, or nothing and mark the cut. */
static bool put(struct log_line *line, const void *data, size_t size)
{
    if (size > room(line)) {
        line->cut = true;
        return false;
    }
    memcpy(line->text + line->size, data, size);
    line->size += size;
    return true;
}

static bool put_text(struct log_line *line, const char *text)
{
    return put(line, text, strlen(text));
}

/* The closing quote: its room was kept back. */
static void put_quote(struct log_line *line)
{
    RON_ASSERT(line->size < RT_LOG_LINE_SIZE_MAX);
    line->text[line->size++] = '"';
}

static bool is_plain(uint8_t byte)
{
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

static bool put_control(struct log_line *line, uint8_t byte)
{
    static const char hex[] = "0123456789abcdef";
    char escape[6] = {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};

    switch (byte) {
    case '\n':
        return put(line, "\\n", 2);
    case '\r':
        return put(line, "\\r", 2);
    case '\t':
        return put(line, "\\t", 2);
    case '"':
        return put(line, "\\\"", 2);
    case '\\':
        return put(line, "\\\\", 2);
    default:
        return put(line, escape, sizeof(escape));
    }
}

/* Put the character at the head of text: not plain, or the line is full. Returns its size, 0 if
 * it does not fit. */
static size_t put_special(struct log_line *line, struct ron_slice text)
{
    uint8_t lead = text.data[0];
    size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;

    if (lead < 0x80)
        return put_control(line, lead) ? 1 : 0;
    if (size > text.size || !ron_utf8_valid(ron_slice_of(text.data, size), NULL))
        return put_text(line, "\\ufffd") ? 1 : 0;
    if (lead == 0xc2 && text.data[1] < 0xa0) /* terminals obey these like ESC */
        return put_control(line, text.data[1]) ? 2 : 0;
    return put(line, text.data, size) ? size : 0;
}

/* The inside of a quoted string, as far as it fits. The escapes serve both forms. */
static void put_escaped(struct log_line *line, struct ron_slice text)
{
    size_t at = 0;

    while (at < text.size && !line->cut) {
        size_t run = at;

        while (run < text.size && is_plain(text.data[run]) && run - at < room(line))
            run++;
        if (run > at) {
            (void)put(line, text.data + at, run - at);
            at = run;
        } else {
            at += put_special(line, ron_slice_of(text.data + at, text.size - at));
        }
    }
}

static bool needs_quotes(struct ron_slice text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!is_plain(text.data[i]) || text.data[i] == ' ' || text.data[i] == '=')
            return true;
    return text.size == 0;
}

/* `,"key":` or ` key=`; suffix is part of the key. Nothing if it does not fit with a short value.
 */
static bool put_key(struct log_line *line, const char *key, const char *suffix)
{
    const size_t start = line->size;
    bool done = line->form == RT_LOG_JSON ? put_text(line, ",\"") && put_text(line, key) &&
                                                put_text(line, suffix) && put_text(line, "\":")
                                          : put_text(line, " ") && put_text(line, key) &&
                                                put_text(line, suffix) && put_text(line, "=");

    if (!done)
        line->size = start;
    return done;
}

static void put_string(struct log_line *line, const char *key, const char *suffix,
                       struct ron_slice text)
{
    const size_t start = line->size;

    if (!put_key(line, key, suffix))
        return;
    if (line->form == RT_LOG_TEXT && !needs_quotes(text)) {
        put_escaped(line, text);
        return;
    }
    if (!put_text(line, "\"")) {
        line->size = start;
        return;
    }
    put_escaped(line, text);
    put_quote(line);
}

/* A number or word, whole or not at all. */
static void put_plain(struct log_line *line, const char *key, const char *suffix, const char *value)
{
    const size_t start = line->size;

    if (put_key(line, key, suffix) && !put_text(line, value))
        line->size = start;
}

static void put_u64(struct log_line *line, const char *key, const char *sign, uint64_t value)
{
    char text[1 + RON_DECIMAL_U64_SIZE];
    size_t sign_size = strlen(sign);

    memcpy(text, sign, sign_size);
    (void)ron_decimal_print_u64(value, text + sign_size);
    put_plain(line, key, "", text);
}

static void put_duration(struct log_line *line, const char *key, uint64_t duration_ns)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    char text[RT_SCALED_SIZE + 2];
    unsigned unit = 0;
    size_t size;

    if (line->form == RT_LOG_JSON) {
        (void)rt_scaled_print(duration_ns, 9, text);
        put_plain(line, key, "_s", text);
        return;
    }
    for (uint64_t rest = duration_ns; rest >= 1000 && unit < 3; rest /= 1000)
        unit++;
    size = rt_scaled_print(duration_ns, 3 * unit, text);
    memcpy(text + size, units[unit], strlen(units[unit]) + 1);
    put_plain(line, key, "", text);
}

static void put_place(struct log_line *line, const char *key, const char *file, int line_number)
{
    char text[96];
    char digits[RON_DECIMAL_U64_SIZE];
    size_t digits_count = ron_decimal_print_u64((uint64_t)line_number, digits);
    size_t file_size = strnlen(file, sizeof(text) - sizeof(digits) - 1);

    RON_ASSERT(line_number >= 0);
    memcpy(text, file, file_size);
    text[file_size] = ':';
    memcpy(text + file_size + 1, digits, digits_count);
    put_string(line, key, "", ron_slice_of(text, file_size + 1 + digits_count));
}

static void put_error(struct log_line *line, const struct rt_log_field *field)
{
    const struct ron_errinfo *info = field->error.info;

    put_string(line, field->key, "", ron_slice_text(ron_err_name(field->error.err)));
    if (info == NULL)
        return;
    if (!line->cut)
        put_string(line, field->key, "_text",
                   ron_slice_of(info->message, strnlen(info->message, sizeof(info->message))));
    if (!line->cut && info->file != NULL)
        put_place(line, "error_at", info->file, info->line);
    if (!line->cut && info->sys_errno > 0)
        put_u64(line, "errno", "", (uint64_t)info->sys_errno);
}

void log_line_put(struct log_line *line, const struct rt_log_field *field)
{
    if (line->cut)
        return;
    RON_ASSERT(field->key != NULL);
    switch (field->type) {
    case RT_LOG_TYPE_TEXT:
        put_string(line, field->key, "", field->text);
        break;
    case RT_LOG_TYPE_U64:
        put_u64(line, field->key, "", field->u64);
        break;
    case RT_LOG_TYPE_I64:
        put_u64(line, field->key, field->i64 < 0 ? "-" : "",
                field->i64 < 0 ? 0 - (uint64_t)field->i64 : (uint64_t)field->i64);
        break;
    case RT_LOG_TYPE_BOOL:
        put_plain(line, field->key, "", field->u64 != 0 ? "true" : "false");
        break;
    case RT_LOG_TYPE_DURATION:
        put_duration(line, field->key, field->u64);
        break;
    case RT_LOG_TYPE_ERROR:
        put_error(line, field);
        break;
    }
}

static void begin_json(struct log_line *line, const struct log_head *head, const char *time)
{
    (void)put_text(line, "{\"ts\":\"");
    (void)put_text(line, time);
    (void)put_text(line, "\"");
    put_string(line, "level", "", ron_slice_text(level_names[head->level][0]));
    if (head->service != NULL)
        put_string(line, "service", "", ron_slice_text(head->service));
    if (head->task != NULL)
        put_string(line, "task", "", ron_slice_text(head->task));
    put_string(line, "msg", "", ron_slice_text(head->message));
    if (!line->cut)
        put_place(line, "src", head->file, head->line);
}

static void begin_text(struct log_line *line, const struct log_head *head, const char *time)
{
    const char *task = head->task != NULL ? head->task : "-";
    size_t column;

    (void)put(line, time, sizeof("YYYY-MM-DD") - 1);
    (void)put_text(line, " ");
    (void)put(line, time + sizeof("YYYY-MM-DDT") - 1, sizeof("HH:MM:SS.mmm") - 1);
    (void)put_text(line, " ");
    (void)put_text(line, level_names[head->level][1]);
    (void)put_text(line, " ");
    column = line->size;
    put_escaped(line, ron_slice_text(task));
    while (!line->cut && line->size - column < TASK_WIDTH)
        (void)put_text(line, " ");
    (void)put_text(line, " ");
    if (!line->cut)
        put_escaped(line, ron_slice_text(head->message));
}

void log_line_begin(struct log_line *line, enum rt_log_form form, const struct log_head *head)
{
    char time[RON_RFC3339_SIZE];

    RON_ASSERT(head->level < RT_LOG_OFF);
    line->size = 0;
    line->cut = false;
    line->form = form;
    ron_rfc3339_print(head->utc_ms < RON_TIME_MS_MAX ? head->utc_ms : RON_TIME_MS_MAX, time);
    if (form == RT_LOG_JSON)
        begin_json(line, head, time);
    else
        begin_text(line, head, time);
}

void log_line_end(struct log_line *line)
{
    const char *end = ends[line->form][line->cut];
    size_t end_size = strlen(end);

    RON_ASSERT(end_size <= RT_LOG_LINE_SIZE_MAX - line->size);
    memcpy(line->text + line->size, end, end_size);
    line->size += end_size;
}
