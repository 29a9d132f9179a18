/*
 * diff_text.c - numbers and texts of base, on request, for diff_text.py to compare.
 *
 * A request is a 32-bit little-endian size and that many bytes: an operation and its argument. The
 * answer has the same framing: 0 and the result, or 1 and the error message. Integers are
 * little-endian. A request that makes no sense ends the program: the driver is wrong.
 */
#include <stdio.h>

#include "base/assert.h"
#include "base/base64.h"
#include "base/decimal.h"
#include "base/hex.h"
#include "base/mem.h"
#include "base/rfc3339.h"
#include "base/ulid.h"
#include "base/units.h"

enum {
    REQUEST_SIZE_MAX = 1 << 16,
    ANSWER_SIZE_MAX = RON_HEX_SIZE(REQUEST_SIZE_MAX),
};

static struct ron_buf answer;

static void put_u64(uint64_t value)
{
    uint8_t bytes[8];

    ron_store_le64(bytes, value);
    ron_buf_put(&answer, bytes, sizeof(bytes));
}

static void put_u128(struct ron_u128 value)
{
    uint8_t bytes[16];

    ron_u128_store_le(bytes, value);
    ron_buf_put(&answer, bytes, sizeof(bytes));
}

/* The index-th 128-bit argument. */
static struct ron_u128 take_u128(struct ron_slice in, size_t index)
{
    RON_ASSERT(in.size >= (index + 1) * 16);
    return ron_u128_load_le(in.data + index * 16);
}

static struct ron_u256 take_u256(struct ron_slice in, size_t index)
{
    return (struct ron_u256){.low = take_u128(in, 2 * index), .high = take_u128(in, 2 * index + 1)};
}

static uint64_t take_u64(struct ron_slice in)
{
    RON_ASSERT(in.size >= 8);
    return ron_load_le64(in.data);
}

static enum ron_err no_result(struct ron_errinfo *reterr)
{
    return ron_fail(reterr, RON_ERR_LIMIT_EXCEEDED, "no result");
}

static enum ron_err decimal_u64(struct ron_slice in, struct ron_errinfo *reterr)
{
    char text[RON_DECIMAL_U64_SIZE];
    uint64_t value;
    enum ron_err err = ron_decimal_parse_u64(in, &value, reterr);

    if (err != RON_ERR_OK)
        return err;
    put_u64(value);
    ron_buf_put(&answer, text, ron_decimal_print_u64(value, text));
    return RON_ERR_OK;
}

static enum ron_err decimal_u128(struct ron_slice in, struct ron_errinfo *reterr)
{
    char text[RON_DECIMAL_U128_SIZE];
    struct ron_u128 value;
    enum ron_err err = ron_decimal_parse_u128(in, &value, reterr);

    if (err != RON_ERR_OK)
        return err;
    put_u128(value);
    ron_buf_put(&answer, text, ron_decimal_print_u128(value, text));
    return RON_ERR_OK;
}

static enum ron_err decimal_print_u64(struct ron_slice in, struct ron_errinfo *reterr)
{
    char text[RON_DECIMAL_U64_SIZE];

    (void)reterr;
    ron_buf_put(&answer, text, ron_decimal_print_u64(take_u64(in), text));
    return RON_ERR_OK;
}

static enum ron_err decimal_print_u128(struct ron_slice in, struct ron_errinfo *reterr)
{
    char text[RON_DECIMAL_U128_SIZE];

    (void)reterr;
    ron_buf_put(&answer, text, ron_decimal_print_u128(take_u128(in, 0), text));
    return RON_ERR_OK;
}

static enum ron_err hex_decode(struct ron_slice in, struct ron_errinfo *reterr)
{
    static uint8_t bytes[REQUEST_SIZE_MAX];
    size_t size;
    enum ron_err err = ron_hex_decode(in, bytes, in.size / 2, &size, reterr);

    if (err == RON_ERR_OK)
        ron_buf_put(&answer, bytes, size);
    return err;
}

static enum ron_err hex_encode(struct ron_slice in, struct ron_errinfo *reterr)
{
    static char text[RON_HEX_SIZE(REQUEST_SIZE_MAX)];

    (void)reterr;
    ron_buf_put(&answer, text, ron_hex_encode(in, text, RON_HEX_SIZE(in.size)));
    return RON_ERR_OK;
}

/* The first byte is the form. */
static enum ron_err base64_decode(struct ron_slice in, struct ron_errinfo *reterr)
{
    static uint8_t bytes[REQUEST_SIZE_MAX];
    size_t size;
    enum ron_err err;

    RON_ASSERT(in.size >= 1);
    err = ron_base64_decode((enum ron_base64)in.data[0], ron_slice_of(in.data + 1, in.size - 1),
                            bytes, in.size, &size, reterr);
    if (err == RON_ERR_OK)
        ron_buf_put(&answer, bytes, size);
    return err;
}

static enum ron_err base64_encode(struct ron_slice in, struct ron_errinfo *reterr)
{
    static char text[RON_BASE64_SIZE(REQUEST_SIZE_MAX)];

    (void)reterr;
    RON_ASSERT(in.size >= 1);
    ron_buf_put(&answer, text,
                ron_base64_encode((enum ron_base64)in.data[0],
                                  ron_slice_of(in.data + 1, in.size - 1), text,
                                  RON_BASE64_SIZE(in.size - 1)));
    return RON_ERR_OK;
}

static void put_ulid(struct ron_ulid ulid)
{
    char text[RON_ULID_TEXT_SIZE];

    ron_buf_put(&answer, ulid.bytes, sizeof(ulid.bytes));
    put_u64(ron_ulid_time_ms(ulid));
    ron_ulid_print(ulid, text);
    ron_buf_put_text(&answer, text);
}

static enum ron_err ulid_parse(struct ron_slice in, struct ron_errinfo *reterr)
{
    struct ron_ulid ulid;
    enum ron_err err = ron_ulid_parse(in, &ulid, reterr);

    if (err == RON_ERR_OK)
        put_ulid(ulid);
    return err;
}

static enum ron_err ulid_make(struct ron_slice in, struct ron_errinfo *reterr)
{
    (void)reterr;
    RON_ASSERT(in.size == 8 + RON_ULID_RANDOM_SIZE);
    put_ulid(ron_ulid_make(take_u64(in), in.data + 8));
    return RON_ERR_OK;
}

static enum ron_err ulid_next(struct ron_slice in, struct ron_errinfo *reterr)
{
    struct ron_ulid ulid;

    RON_ASSERT(in.size == sizeof(ulid.bytes));
    memcpy(ulid.bytes, in.data, sizeof(ulid.bytes));
    if (!ron_ulid_next(ulid, &ulid))
        return no_result(reterr);
    put_ulid(ulid);
    return RON_ERR_OK;
}

static enum ron_err duration(struct ron_slice in, struct ron_errinfo *reterr)
{
    char text[RON_UNITS_TEXT_SIZE];
    uint64_t value;
    enum ron_err err = ron_duration_parse(in, &value, reterr);

    if (err != RON_ERR_OK)
        return err;
    put_u64(value);
    ron_buf_put(&answer, text, ron_duration_print(value, text));
    return RON_ERR_OK;
}

static enum ron_err size(struct ron_slice in, struct ron_errinfo *reterr)
{
    char text[RON_UNITS_TEXT_SIZE];
    uint64_t value;
    enum ron_err err = ron_size_parse(in, &value, reterr);

    if (err != RON_ERR_OK)
        return err;
    put_u64(value);
    ron_buf_put(&answer, text, ron_size_print(value, text));
    return RON_ERR_OK;
}

static void put_time(uint64_t time_ms)
{
    char text[RON_RFC3339_SIZE];
    char seconds[RON_RFC3339_SECONDS_SIZE];

    put_u64(time_ms);
    put_u64(ron_day_of_ms(time_ms));
    ron_rfc3339_print(time_ms, text);
    ron_buf_put_text(&answer, text);
    ron_rfc3339_print_seconds(time_ms, seconds);
    ron_buf_put_text(&answer, seconds);
}

static enum ron_err rfc3339_parse(struct ron_slice in, struct ron_errinfo *reterr)
{
    uint64_t time_ms;
    enum ron_err err = ron_rfc3339_parse(in, &time_ms, reterr);

    if (err == RON_ERR_OK)
        put_time(time_ms);
    return err;
}

static enum ron_err rfc3339_print(struct ron_slice in, struct ron_errinfo *reterr)
{
    (void)reterr;
    put_time(take_u64(in));
    return RON_ERR_OK;
}

static enum ron_err u128_add(struct ron_slice in, struct ron_errinfo *reterr)
{
    struct ron_u128 r;

    if (!ron_u128_add(take_u128(in, 0), take_u128(in, 1), &r))
        return no_result(reterr);
    put_u128(r);
    return RON_ERR_OK;
}

static enum ron_err u128_sub(struct ron_slice in, struct ron_errinfo *reterr)
{
    struct ron_u128 r;

    if (!ron_u128_sub(take_u128(in, 0), take_u128(in, 1), &r))
        return no_result(reterr);
    put_u128(r);
    return RON_ERR_OK;
}

static enum ron_err u128_mul(struct ron_slice in, struct ron_errinfo *reterr)
{
    struct ron_u128 r;

    if (!ron_u128_mul(take_u128(in, 0), take_u128(in, 1), &r))
        return no_result(reterr);
    put_u128(r);
    return RON_ERR_OK;
}

static enum ron_err u128_mul_full(struct ron_slice in, struct ron_errinfo *reterr)
{
    struct ron_u256 r = ron_u128_mul_full(take_u128(in, 0), take_u128(in, 1));

    (void)reterr;
    put_u128(r.low);
    put_u128(r.high);
    return RON_ERR_OK;
}

static enum ron_err u128_mul_div(struct ron_slice in, struct ron_errinfo *reterr)
{
    struct ron_u128 q;
    struct ron_u128 r;

    if (!ron_u128_mul_div(take_u128(in, 0), take_u128(in, 1), take_u128(in, 2), &q, &r))
        return no_result(reterr);
    put_u128(q);
    put_u128(r);
    return RON_ERR_OK;
}

static enum ron_err u256_div(struct ron_slice in, struct ron_errinfo *reterr)
{
    struct ron_u128 q;
    struct ron_u128 r;

    if (!ron_u256_div(take_u256(in, 0), take_u128(in, 2), &q, &r))
        return no_result(reterr);
    put_u128(q);
    put_u128(r);
    return RON_ERR_OK;
}

/* Sum and order, or no result and nothing said about the order. */
static enum ron_err u256_add(struct ron_slice in, struct ron_errinfo *reterr)
{
    struct ron_u256 r;

    if (!ron_u256_add(take_u256(in, 0), take_u256(in, 1), &r))
        return no_result(reterr);
    put_u128(r.low);
    put_u128(r.high);
    ron_buf_put_byte(&answer, (uint8_t)(ron_u256_compare(take_u256(in, 0), take_u256(in, 1)) + 1));
    return RON_ERR_OK;
}

static enum ron_err u256_sub(struct ron_slice in, struct ron_errinfo *reterr)
{
    struct ron_u256 r;

    if (!ron_u256_sub(take_u256(in, 0), take_u256(in, 1), &r))
        return no_result(reterr);
    put_u128(r.low);
    put_u128(r.high);
    return RON_ERR_OK;
}

static const struct operation {
    uint8_t letter;
    enum ron_err (*run)(struct ron_slice in, struct ron_errinfo *reterr);
} operations[] = {
    {'d', decimal_u64}, {'D', decimal_u128},  {'p', decimal_print_u64}, {'P', decimal_print_u128},
    {'h', hex_decode},  {'H', hex_encode},    {'b', base64_decode},     {'B', base64_encode},
    {'u', ulid_parse},  {'U', ulid_make},     {'n', ulid_next},         {'t', duration},
    {'s', size},        {'r', rfc3339_parse}, {'R', rfc3339_print},     {'+', u128_add},
    {'-', u128_sub},    {'*', u128_mul},      {'f', u128_mul_full},     {'m', u128_mul_div},
    {'/', u256_div},    {'a', u256_add},      {'z', u256_sub},
};

static const struct operation *find_operation(uint8_t letter)
{
    for (size_t i = 0; i < RON_ARRAY_COUNT(operations); i++)
        if (operations[i].letter == letter)
            return &operations[i];
    return NULL;
}

static int stop(const char *why)
{
    (void)fprintf(stderr, "diff_text: %s\n", why);
    return 2;
}

int main(void)
{
    static uint8_t request[REQUEST_SIZE_MAX];
    uint8_t head[4];

    ron_buf_init(&answer, ANSWER_SIZE_MAX);
    while (fread(head, 1, sizeof(head), stdin) == sizeof(head)) {
        size_t request_size = ron_load_le32(head);
        struct ron_errinfo info = {0};

        if (request_size == 0 || request_size > sizeof(request))
            return stop("request size out of range");
        if (fread(request, 1, request_size, stdin) != request_size)
            return stop("request cut short");
        const struct operation *operation = find_operation(request[0]);
        if (operation == NULL)
            return stop("unknown operation");
        /* A copy of exactly the argument's size, so that ASan sees any read beyond it. */
        size_t argument_size = request_size - 1;
        uint8_t *argument = ron_mem_alloc(request_size);
        if (argument == NULL)
            return stop("out of memory");
        memcpy(argument + 1, request + 1, argument_size);
        ron_buf_reset(&answer);
        enum ron_err err = operation->run(ron_slice_of(argument + 1, argument_size), &info);
        if (err != RON_ERR_OK) {
            ron_buf_reset(&answer);
            ron_buf_put_text(&answer, info.message);
        }
        (void)ron_mem_free(argument);
        if (ron_buf_check(&answer, NULL) != RON_ERR_OK)
            return stop("answer too large");
        ron_store_le32(head, (uint32_t)answer.size + 1);
        uint8_t status = err != RON_ERR_OK;
        if (fwrite(head, 1, sizeof(head), stdout) != sizeof(head) ||
            fwrite(&status, 1, 1, stdout) != 1 ||
            fwrite(answer.data, 1, answer.size, stdout) != answer.size)
            return stop("cannot answer");
    }
    ron_buf_fini(&answer);
    if (ferror(stdin) || fflush(stdout) != 0)
        return stop("input or output failed");
    return 0;
}
