/*
 * log_line.c - the text of a log line. See log_line.h.
 *
 * Text from outside may hold anything: what is not printable becomes \u00xx, what is not UTF-8 a
 * replacement character, so a line can neither break the JSON nor move a terminal's cursor.
 */
#include "rt/log_line.h"

#include <stdio.h>

#include "base/assert.h"

enum { TIME_SIZE = 64, TAIL_SIZE = 24 /* room kept for "cut":true}\n */ };

struct line {
    char *text;
    size_t size;
    size_t limit;
    bool full; /* something did not fit since the last mark */
};

static const char *const level_names[] = {"debug", "info", "warn", "error"};

static void put(struct line *line, const char *text, size_t size)
{
    if (line->full || size > line->limit - line->size) {
        line->full = true;
        return;
    }
    memcpy(line->text + line->size, text, size);
    line->size += size;
}

static void put_text(struct line *line, const char *text)
{
    put(line, text, strlen(text));
}

/* Size of the UTF-8 character at text, 0 if it is none (overlong forms and surrogates included). */
static size_t utf8_size(const uint8_t *text, size_t size)
{
    uint8_t lead = text[0];
    size_t need = lead < 0x80 ? 1 : lead >= 0xc2 && lead < 0xe0 ? 2 : lead < 0xe0 ? 0 : 3;
    uint8_t low = 0x80, high = 0xbf;

    if (lead >= 0xf0)
        need = lead <= 0xf4 ? 4 : 0;
    if (need == 0 || need > size)
        return 0;
    if (lead == 0xe0)
        low = 0xa0;
    else if (lead == 0xed)
        high = 0x9f;
    else if (lead == 0xf0)
        low = 0x90;
    else if (lead == 0xf4)
        high = 0x8f;
    for (size_t i = 1; i < need; i++) {
        if (text[i] < low || text[i] > high)
            return 0;
        low = 0x80;
        high = 0xbf;
    }
    return need;
}

static void put_escaped(struct line *line, struct ron_slice text)
{
    char escape[8];
    size_t i = 0;

    while (i < text.size && !line->full) {
        uint8_t byte = text.data[i];
        size_t size = utf8_size(text.data + i, text.size - i);

        if (size == 0) {
            put_text(line, "\xef\xbf\xbd");
            size = 1;
        } else if (byte == '"' || byte == '\\') {
            put(line, (const char[]){'\\', (char)byte}, 2);
        } else if (byte < 0x20 || byte == 0x7f || (byte == 0xc2 && text.data[i + 1] < 0xa0)) {
            unsigned code = size == 1 ? byte : text.data[i + 1]; /* C0, DEL and C1 controls */
            (void)snprintf(escape, sizeof(escape), "\\u%04x", code);
            put_text(line, escape);
        } else {
            put(line, (const char *)text.data + i, size);
        }
        i += size;
    }
}

static void put_quoted(struct line *line, struct ron_slice text)
{
    put_text(line, "\"");
    put_escaped(line, text);
    put_text(line, "\"");
}

/* RFC 3339 in UTC with milliseconds; civil date by days in eras of 400 years. */
static void put_time(struct line *line, uint64_t utc_ms)
{
    char text[TIME_SIZE];
    uint64_t seconds = utc_ms / 1000;
    uint64_t days = seconds / 86400 + 719468; /* since 0000-03-01 */
    uint64_t era = days / 146097;
    uint64_t day_of_era = days % 146097;
    uint64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    uint64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    uint64_t month_index = (5 * day_of_year + 2) / 153; /* from March */
    unsigned day = (unsigned)(day_of_year - (153 * month_index + 2) / 5 + 1);
    unsigned month = (unsigned)(month_index < 10 ? month_index + 3 : month_index - 9);
    unsigned long long year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);

    (void)snprintf(text, sizeof(text), "%04llu-%02u-%02uT%02u:%02u:%02u.%03uZ", year % 10000, month,
                   day, (unsigned)(seconds / 3600 % 24), (unsigned)(seconds / 60 % 60),
                   (unsigned)(seconds % 60), (unsigned)(utc_ms % 1000));
    put_text(line, text);
}

static void put_value(struct line *line, const struct rt_field *field, bool quote)
{
    char number[24];

    switch (field->kind) {
    case RT_FIELD_TEXT:
        if (quote)
            put_quoted(line, field->text);
        else
            put_escaped(line, field->text);
        return;
    case RT_FIELD_U64:
        (void)snprintf(number, sizeof(number), "%llu", (unsigned long long)field->number);
        break;
    case RT_FIELD_I64:
        (void)snprintf(number, sizeof(number), "%lld", (long long)field->number);
        break;
    case RT_FIELD_BOOL:
        (void)snprintf(number, sizeof(number), "%s", field->number != 0 ? "true" : "false");
        break;
    }
    put_text(line, number);
}

static void put_member(struct line *line, const char *key, struct ron_slice value)
{
    put_text(line, "\"");
    put_text(line, key);
    put_text(line, "\":");
    put_quoted(line, value);
}

static void put_json_head(struct line *line, const struct rt_log_head *head)
{
    put_text(line, "{\"ts\":\"");
    put_time(line, head->utc_ms);
    put_text(line, "\",");
    put_member(line, "level", ron_slice_text(level_names[head->level]));
    put_text(line, ",");
    put_member(line, "role", ron_slice_text(head->owner));
    if (head->task != NULL) {
        put_text(line, ",");
        put_member(line, "task", ron_slice_text(head->task));
    }
    put_text(line, ",");
    put_member(line, "msg", ron_slice_text(head->message));
}

static void put_readable_head(struct line *line, const struct rt_log_head *head)
{
    put_time(line, head->utc_ms);
    put_text(line, " ");
    put_text(line, level_names[head->level]);
    put_text(line, " ");
    put_escaped(line, ron_slice_text(head->owner));
    if (head->task != NULL) {
        put_text(line, "/");
        put_escaped(line, ron_slice_text(head->task));
    }
    put_text(line, ": ");
    put_escaped(line, ron_slice_text(head->message));
}

/* Does a text need quotes in the readable form? */
static bool needs_quotes(struct ron_slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] <= ' ' || text.data[i] == '"' || text.data[i] == '=')
            return true;
    }
    return text.size == 0;
}

static void put_field(struct line *line, const struct rt_field *field, bool readable)
{
    put_text(line, readable ? " " : ",\"");
    put_text(line, field->key);
    put_text(line, readable ? "=" : "\":");
    put_value(line, field, !readable || needs_quotes(field->text));
}

size_t rt_log_form(char text[RT_LOG_LINE_SIZE_MAX], const struct rt_log_head *head,
                   const struct rt_field *fields, bool readable)
{
    struct line line = {.text = text, .limit = RT_LOG_LINE_SIZE_MAX - TAIL_SIZE};
    bool cut = false;

    RON_ASSERT((size_t)head->level < RON_ARRAY_COUNT(level_names));
    if (readable)
        put_readable_head(&line, head);
    else
        put_json_head(&line, head);
    RON_ASSERT(!line.full); /* names and messages are the program's own, and short */
    for (unsigned i = 0; fields[i].key != NULL; i++) {
        size_t mark = line.size;

        RON_ASSERT(i < RT_LOG_FIELDS_MAX);
        put_field(&line, &fields[i], readable);
        if (line.full) { /* this one is left out whole; a shorter one after it may fit */
            line.size = mark;
            line.full = false;
            cut = true;
        }
    }
    line.limit = RT_LOG_LINE_SIZE_MAX;
    if (cut)
        put_text(&line, readable ? " cut=true" : ",\"cut\":true");
    put_text(&line, readable ? "\n" : "}\n");
    RON_ASSERT(!line.full);
    return line.size;
}
