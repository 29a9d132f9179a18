/*
 * json_write.h - JSON output into a buffer: put, put, put, then ask once.
 *
 * Never white space, never a float, never invalid UTF-8 (raw pieces are the caller's). Members come
 * out in the order of the calls: that order is part of every reply's golden bytes. Strings are
 * escaped as RFC 8785 says in both forms, so a text differs from its canonical form only in member
 * order and large integers.
 *
 * What the caller's code does wrong (a value without a name, an end too many, a depth beyond
 * RON_JSON_DEPTH_MAX) is an assertion; what data can do wrong is remembered and answered by
 * ron_json_writer_end.
 *
 *     ron_json_writer_init(&writer, &buf, RON_JSON_FIXED);
 *     ron_json_put_object_begin(&writer);
 *     ron_json_put_name(&writer, "amount");
 *     ron_json_put_amount(&writer, amount);
 *     ron_json_put_object_end(&writer);
 *     err = ron_json_writer_end(&writer, reterr);
 */
#ifndef RON_BASE_JSON_WRITE_H
#define RON_BASE_JSON_WRITE_H

#include "base/bytes.h"
#include "base/limits.h"
#include "base/u128.h"

/* The integers that RFC 8785, whose numbers are doubles, carries exactly. */
#define RON_JSON_CANONICAL_INTEGER_MAX (((uint64_t)1 << 53) - 1)

enum ron_json_form {
    RON_JSON_FIXED,     /* the caller's member order, integers of any size */
    RON_JSON_CANONICAL, /* RFC 8785: the caller gives names in ascending UTF-16 order (asserted in
                           slow-check builds); an integer beyond +-(2^53 - 1) is RON_ERR_MALFORMED
                         */
};

struct ron_json_level {
    bool object;        /* else array */
    bool filled;        /* holds something: a comma comes first */
    bool named;         /* a name is written, its value is not */
    size_t name_offset; /* of the latest name in the buffer, its quote included */
};

/* Caller's memory; nothing to free. The members belong to the functions. */
struct ron_json_writer {
    struct ron_buf *buf;
    enum ron_json_form form;
    bool complete; /* the one value is written */
    uint32_t depth;
    const char *failure; /* what data did wrong first, or NULL */
    size_t failure_position;
    size_t failure_offset;
    struct ron_json_level levels[RON_JSON_DEPTH_MAX];
};

/* Write one value behind what buf holds; buf is borrowed until the end. */
void ron_json_writer_init(struct ron_json_writer *writer, struct ron_buf *buf,
                          enum ron_json_form form);
/* Exactly one complete value was put: is it all there? RON_ERR_MALFORMED (a string that is not
 * UTF-8), RON_ERR_TOO_LARGE or RON_ERR_NO_MEMORY (the buffer). After an error the buffer holds a
 * part of the value, to be thrown away. */
enum ron_err ron_json_writer_end(const struct ron_json_writer *writer,
                                 struct ron_errinfo *reterr) RON_MUST_USE;

void ron_json_put_object_begin(struct ron_json_writer *writer);
void ron_json_put_object_end(struct ron_json_writer *writer);
void ron_json_put_array_begin(struct ron_json_writer *writer);
void ron_json_put_array_end(struct ron_json_writer *writer);

/* A member's name; its value comes next. Distinct names are the caller's duty. */
void ron_json_put_name(struct ron_json_writer *writer, const char *name);
void ron_json_put_name_slice(struct ron_json_writer *writer, struct ron_slice name);

void ron_json_put_string(struct ron_json_writer *writer, struct ron_slice text);
void ron_json_put_text(struct ron_json_writer *writer, const char *text);
void ron_json_put_u64(struct ron_json_writer *writer, uint64_t value);
void ron_json_put_i64(struct ron_json_writer *writer, int64_t value);
void ron_json_put_u128(struct ron_json_writer *writer, struct ron_u128 value); /* a number */
void ron_json_put_integer(struct ron_json_writer *writer, bool negative, struct ron_u128 magnitude);
void ron_json_put_amount(struct ron_json_writer *writer, struct ron_u128 value); /* a string */
void ron_json_put_bool(struct ron_json_writer *writer, bool value);
void ron_json_put_null(struct ron_json_writer *writer);
/* A value that is valid JSON text already (and canonical, in that form): copied as it is. */
void ron_json_put_raw(struct ron_json_writer *writer, struct ron_slice json);

/* The order of RFC 8785 on valid UTF-8: by UTF-16 code units. Negative, 0 or positive. */
int ron_json_name_compare(struct ron_slice a, struct ron_slice b);

#endif
