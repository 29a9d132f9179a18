/*
 * query.c - parameters of a query: "a=1&b=%20". See request.h.
 */
#include "base/assert.h"
#include "base/printable.h"
#include "io/request.h"

/* The next "name=value" of *rest; false at the end. A piece without '=' has an empty value. */
static bool next_pair(struct ron_slice *rest, struct ron_slice *ret_name,
                      struct ron_slice *ret_value)
{
    const uint8_t *end, *equals;
    size_t size;

    if (rest->size == 0)
        return false;
    end = memchr(rest->data, '&', rest->size);
    size = end == NULL ? rest->size : (size_t)(end - rest->data);
    equals = memchr(rest->data, '=', size);
    *ret_name = ron_slice_of(rest->data, equals == NULL ? size : (size_t)(equals - rest->data));
    *ret_value = equals == NULL
                     ? ron_slice_of(rest->data + size, 0)
                     : ron_slice_of(equals + 1, size - (size_t)(equals + 1 - rest->data));
    *rest = end == NULL ? ron_slice_of(rest->data + size, 0)
                        : ron_slice_of(end + 1, rest->size - size - 1);
    return true;
}

static uint8_t hex_value(uint8_t digit)
{
    if (digit >= '0' && digit <= '9')
        return (uint8_t)(digit - '0');
    return (uint8_t)((digit | 0x20) - 'a' + 10); /* the head's grammar lets hex digits only pass */
}

static enum ron_err too_long(const char *name, size_t buf_size, struct ron_errinfo *reterr)
{
    return ron_fail(reterr, RON_ERR_TOO_LARGE, "query: %s: longer than %zu bytes", name,
                    buf_size - 1);
}

static const uint8_t *find_escape(struct ron_slice value)
{
    return value.size == 0 ? NULL : memchr(value.data, '%', value.size);
}

/* Percent-decoding; '+' stays '+'. A NUL would end the text early: refused. */
static enum ron_err decode(const char *name, struct ron_slice value, char *buf, size_t buf_size,
                           size_t *ret_size, struct ron_errinfo *reterr)
{
    /* What comes before the first escape is itself; the head's grammar lets no NUL pass. */
    const uint8_t *escape = find_escape(value);
    size_t size = escape == NULL ? value.size : (size_t)(escape - value.data);

    if (size >= buf_size)
        return too_long(name, buf_size, reterr);
    if (size > 0)
        memcpy(buf, value.data, size);
    for (size_t i = size; i < value.size; i++) {
        uint8_t byte = value.data[i];

        if (byte == '%') {
            if (value.size - i < 3)
                return ron_fail(reterr, RON_ERR_MALFORMED, "query: %s: bad escape", name);
            byte = (uint8_t)(hex_value(value.data[i + 1]) << 4 | hex_value(value.data[i + 2]));
            i += 2;
        }
        if (byte == 0)
            return ron_fail(reterr, RON_ERR_MALFORMED, "query: %s: holds a NUL", name);
        if (size + 1 >= buf_size)
            return too_long(name, buf_size, reterr);
        buf[size++] = (char)byte;
    }
    buf[size] = '\0';
    *ret_size = size;
    return RON_ERR_OK;
}

/* As a rule the first byte tells. */
static bool is_name(struct ron_slice name, const char *wanted)
{
    size_t i = 0;

    while (i < name.size && wanted[i] != '\0' && (uint8_t)wanted[i] == name.data[i])
        i++;
    return i == name.size && wanted[i] == '\0';
}

static enum ron_err check_count(const struct io_query_value *value, const char *name,
                                struct ron_errinfo *reterr)
{
    if (value->count == 0)
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "query: %s is missing", name);
    if (value->count > 1)
        return ron_fail(reterr, RON_ERR_MALFORMED, "query: %s: more than once", name);
    return RON_ERR_OK;
}

enum ron_err io_query_decode(const struct io_query_value *value, const char *name, char *buf,
                             size_t buf_size, struct ron_slice *ret_text,
                             struct ron_errinfo *reterr)
{
    size_t size = 0;
    enum ron_err err;

    RON_ASSERT(buf_size > 0);
    err = check_count(value, name, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (value->text.size < buf_size && find_escape(value->text) == NULL) {
        *ret_text = value->text;
        return RON_ERR_OK;
    }
    err = decode(name, value->text, buf, buf_size, &size, reterr);
    if (err == RON_ERR_OK)
        *ret_text = ron_slice_of(buf, size);
    return err;
}

enum ron_err io_query_get(const struct io_request *request, const char *name, char *buf,
                          size_t buf_size, struct ron_errinfo *reterr)
{
    struct ron_slice rest = request->query;
    struct ron_slice found_name, found_value;
    struct io_query_value value = {.count = 0};
    enum ron_err err;
    size_t size;

    RON_ASSERT(buf_size > 0);
    while (next_pair(&rest, &found_name, &found_value)) {
        if (!is_name(found_name, name))
            continue;
        value.text = found_value;
        value.count++;
    }
    err = check_count(&value, name, reterr);
    return err == RON_ERR_OK ? decode(name, value.text, buf, buf_size, &size, reterr) : err;
}

enum ron_err io_query_split(const struct io_request *request, struct io_query_value *values,
                            struct ron_errinfo *reterr)
{
    static const struct io_param none = {.name = NULL};
    const struct io_param *known = request->route->query != NULL ? request->route->query : &none;
    struct ron_slice rest = request->query;
    struct ron_slice name, value;

    for (size_t i = 0; known[i].name != NULL; i++)
        values[i] = (struct io_query_value){.count = 0};
    while (next_pair(&rest, &name, &value)) {
        char shown[48];
        size_t i = 0;

        while (known[i].name != NULL && !is_name(name, known[i].name))
            i++;
        if (known[i].name == NULL)
            return ron_fail(reterr, RON_ERR_MALFORMED, "query: unknown parameter %s",
                            ron_printable(name, shown, sizeof(shown)));
        values[i].text = value;
        if (values[i].count++ > 0)
            return check_count(&values[i], known[i].name, reterr);
    }
    for (size_t i = 0; known[i].name != NULL; i++)
        if (known[i].required && values[i].count == 0)
            return ron_fail(reterr, RON_ERR_MALFORMED, "query: %s is missing", known[i].name);
    return RON_ERR_OK;
}

enum ron_err io_query_only(const struct io_request *request, struct ron_errinfo *reterr)
{
    struct io_query_value values[IO_QUERY_NAMES_MAX];
    const struct io_param *known = request->route->query;

    for (size_t i = 0; known != NULL && known[i].name != NULL; i++)
        RON_ASSERT(i < IO_QUERY_NAMES_MAX); /* names are ours */
    return io_query_split(request, values, reterr);
}
