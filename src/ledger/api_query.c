/*
 * api_query.c - parameters of reads: numbers, pages, accounts, parts of paths.
 */
#include "base/decimal.h"
#include "ledger/api_pages.h"

enum ron_err query_u64(const struct io_request *request, const char *name, uint64_t otherwise,
                       uint64_t *ret_value, struct ron_errinfo *reterr)
{
    char text[RON_DECIMAL_U64_SIZE + 1];
    enum ron_err err = io_query_get(request, name, text, sizeof(text), NULL);

    if (err == RON_ERR_NOT_FOUND) {
        *ret_value = otherwise;
        return RON_ERR_OK;
    }
    if (err == RON_ERR_OK)
        err = ron_decimal_parse_u64(ron_slice_text(text), ret_value, NULL);
    if (err != RON_ERR_OK)
        return ron_fail(reterr, RON_ERR_MALFORMED, "query: %s is not a number of 64 bits", name);
    return RON_ERR_OK;
}

enum ron_err query_limit(const struct io_request *request, uint64_t *ret_limit,
                         struct ron_errinfo *reterr)
{
    uint64_t limit;
    enum ron_err err = query_u64(request, "limit", LEDGER_API_PAGE_MAX, &limit, reterr);

    if (err != RON_ERR_OK)
        return err;
    if (limit == 0 || limit > LEDGER_API_PAGE_MAX)
        return ron_fail(reterr, RON_ERR_MALFORMED, "query: limit is 1..%d", LEDGER_API_PAGE_MAX);
    *ret_limit = limit;
    return RON_ERR_OK;
}

enum ron_err query_no_account(struct ron_errinfo *reterr)
{
    return ron_fail(reterr, RON_ERR_MALFORMED, "query: account is not 1..160 of [A-Za-z0-9:/_-]");
}

enum ron_err query_account(const struct io_request *request, bool must,
                           char text[static RON_ACCOUNT_NAME_SIZE_MAX + 1], bool *ret_given,
                           struct ron_errinfo *reterr)
{
    enum ron_err err = io_query_get(request, "account", text, RON_ACCOUNT_NAME_SIZE_MAX + 1, NULL);

    if (err == RON_ERR_NOT_FOUND && !must) {
        text[0] = '\0';
        *ret_given = false;
        return RON_ERR_OK;
    }
    if (err != RON_ERR_OK || !ledger_is_account(ron_slice_text(text)))
        return query_no_account(reterr);
    *ret_given = true;
    return RON_ERR_OK;
}

static uint8_t hex_value(uint8_t digit)
{
    if (digit >= '0' && digit <= '9')
        return (uint8_t)(digit - '0');
    return (uint8_t)((digit | 0x20) - 'a' + 10); /* the head's grammar lets hex digits only pass */
}

enum ron_err path_text(struct ron_slice param, char *buf, size_t buf_size,
                       struct ron_slice *ret_text, struct ron_errinfo *reterr)
{
    size_t size = 0;

    for (size_t i = 0; i < param.size; i++) {
        uint8_t byte = param.data[i];

        if (byte == '%') {
            if (param.size - i < 3)
                return ron_fail(reterr, RON_ERR_MALFORMED, "path: bad escape");
            byte = (uint8_t)(hex_value(param.data[i + 1]) << 4 | hex_value(param.data[i + 2]));
            i += 2;
        }
        if (size == buf_size)
            return ron_fail(reterr, RON_ERR_NOT_FOUND, "path: longer than any name");
        buf[size++] = (char)byte;
    }
    *ret_text = ron_slice_of(buf, size);
    return RON_ERR_OK;
}
