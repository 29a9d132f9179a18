/*
 * oracle_jansson.c - jansson as an oracle. See oracle.h.
 */
#include <jansson.h>

#include "base/assert.h"
#include "oracle.h"

static void dump_string(struct ron_buf *buf, const char *text, size_t size)
{
    ron_buf_put_byte(buf, '"');
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)text[i];

        if (byte == '"' || byte == '\\')
            ron_buf_put_format(buf, "\\%c", byte);
        else if (byte == '\b')
            ron_buf_put_text(buf, "\\b");
        else if (byte == '\t')
            ron_buf_put_text(buf, "\\t");
        else if (byte == '\n')
            ron_buf_put_text(buf, "\\n");
        else if (byte == '\f')
            ron_buf_put_text(buf, "\\f");
        else if (byte == '\r')
            ron_buf_put_text(buf, "\\r");
        else if (byte < 0x20)
            ron_buf_put_format(buf, "\\u%04x", byte);
        else
            ron_buf_put_byte(buf, byte);
    }
    ron_buf_put_byte(buf, '"');
}

/* jansson keeps members in the order of insertion. Recursion is bounded: ron accepted the text. */
static void dump(struct ron_buf *buf, json_t *value, int depth)
{
    const char *name;
    json_t *item;
    size_t index;
    bool first = true;

    RON_ASSERT(depth <= 32);
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        ron_buf_put_byte(buf, '{');
        json_object_foreach(value, name, item)
        {
            if (!first)
                ron_buf_put_byte(buf, ',');
            first = false;
            dump_string(buf, name, strlen(name));
            ron_buf_put_byte(buf, ':');
            dump(buf, item, depth + 1);
        }
        ron_buf_put_byte(buf, '}');
        break;
    case JSON_ARRAY:
        ron_buf_put_byte(buf, '[');
        json_array_foreach(value, index, item)
        {
            if (index > 0)
                ron_buf_put_byte(buf, ',');
            dump(buf, item, depth + 1);
        }
        ron_buf_put_byte(buf, ']');
        break;
    case JSON_STRING:
        dump_string(buf, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
        ron_buf_put_format(buf, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        break;
    case JSON_REAL:
        ron_buf_put_text(buf, "a real number");
        break;
    case JSON_TRUE:
        ron_buf_put_text(buf, "true");
        break;
    case JSON_FALSE:
        ron_buf_put_text(buf, "false");
        break;
    case JSON_NULL:
        ron_buf_put_text(buf, "null");
        break;
    }
}

bool jansson_judge(struct ron_slice text, bool value_wanted, struct ron_buf *buf)
{
    json_t *value = json_loadb((const char *)text.data, text.size,
                               JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);

    if (value == NULL)
        return false;
    if (value_wanted)
        dump(buf, value, 0);
    json_decref(value);
    return true;
}
