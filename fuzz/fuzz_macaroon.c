/*
 * fuzz_macaroon.c - any bytes as a token's text, and as packets and caveats behind a right base64.
 *
 * Checked on every input: what decodes encodes to the same text; all slices lie inside the buffer;
 * it verifies under no key it was not made with; a caveat that is accepted never widens the grant;
 * a refusal is Unauthorized with a message.
 */
#include "auth/caveat.h"
#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct ron_slice slice, const uint8_t *bytes)
{
    RON_ASSERT(slice.data >= bytes);
    RON_ASSERT(slice.data + slice.size <= bytes + AUTH_MACAROON_SIZE_MAX);
}

/* Is everything that `after` allows allowed by `before`? */
static void check_narrower(const struct auth_grant *before, const struct auth_grant *after)
{
    static const char *const names[] = {"acct_a", "acct_", "a", "sys/x", "b", "pool/7/x"};

    RON_ASSERT((after->scopes & ~before->scopes) == 0);
    RON_ASSERT((before->present & ~after->present) == 0);
    RON_ASSERT(after->is_void || !before->is_void);
    if (after->is_void)
        return;
    for (size_t i = 0; i < RON_ARRAY_COUNT(names); i++) {
        struct auth_use use = {.account = ron_slice_text(names[i]),
                               .is_debit = false,
                               .asset = RON_SLICE("roc"),
                               .amount = ron_u128_of(10)};

        /* A tenant other than 0 reaches what its account caveat covers: compare within one. */
        if (ron_u128_compare(before->tenant, after->tenant) == 0 &&
            (auth_grant_has(before, AUTH_CAVEAT_ACCOUNT) || ron_u128_is_zero(before->tenant)) &&
            auth_grant_cover(after, &use, NULL) == RON_ERR_OK)
            RON_ASSERT(auth_grant_cover(before, &use, NULL) == RON_ERR_OK);
    }
    if (auth_grant_has(before, AUTH_CAVEAT_BEFORE))
        RON_ASSERT(after->before_ms <= before->before_ms);
    if (auth_grant_has(before, AUTH_CAVEAT_AFTER))
        RON_ASSERT(after->after_ms >= before->after_ms);
    if (auth_grant_has(before, AUTH_CAVEAT_RATE))
        RON_ASSERT(after->rate_per_s <= before->rate_per_s);
    if (auth_grant_has(before, AUTH_CAVEAT_IP))
        RON_ASSERT(auth_ip_covers(&before->ip, &after->ip));
}

/* The input's lines as caveats of one grant. */
static void check_caveats(const uint8_t *data, size_t size)
{
    struct auth_grant grant;

    auth_grant_begin(&grant, RON_SLICE("k1.01ARZ3NDEKTSV4RRFFQ69G5FAV"));
    for (size_t start = 0; start < size;) {
        const uint8_t *end = memchr(data + start, '\n', size - start);
        size_t line_size = end == NULL ? size - start : (size_t)(end - data) - start;
        struct auth_grant before = grant;
        struct ron_errinfo info = {0};

        if (auth_caveat_apply(&grant, ron_slice_of(data + start, line_size), &info) == RON_ERR_OK) {
            check_narrower(&before, &grant);
        } else {
            RON_ASSERT(info.err == RON_ERR_UNAUTHORIZED);
            RON_ASSERT(strstr(info.message, "caveat") != NULL);
            grant = before;
        }
        start += line_size + 1;
    }
}

static void check_text(struct ron_slice text)
{
    static uint8_t bytes[AUTH_MACAROON_SIZE_MAX];
    static struct ron_secret key;
    char again[AUTH_TOKEN_TEXT_SIZE];
    struct auth_macaroon macaroon;
    struct ron_errinfo info = {0};
    struct auth_grant grant;
    size_t size = 0;

    if (key.owned == NULL) {
        enum ron_err err = ron_secret_init_random(&key, 32, NULL);

        RON_ASSERT(err == RON_ERR_OK);
    }
    if (auth_macaroon_decode(text, bytes, &macaroon, &info) != RON_ERR_OK) {
        RON_ASSERT(info.err == RON_ERR_UNAUTHORIZED);
        return;
    }
    check_inside(macaroon.location, bytes);
    check_inside(macaroon.identifier, bytes);
    for (uint32_t i = 0; i < macaroon.caveats_count; i++)
        check_inside(macaroon.caveats[i], bytes);
    RON_ASSERT(auth_macaroon_encode(&macaroon, again, &size, NULL) == RON_ERR_OK);
    RON_ASSERT(ron_slice_equal(ron_slice_of(again, size), text));
    RON_ASSERT(auth_macaroon_verify(&macaroon, &key, NULL) == RON_ERR_UNAUTHORIZED);
    (void)auth_caveats_apply(&macaroon, &grant, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[AUTH_TOKEN_TEXT_SIZE];

    check_text(ron_slice_of(data, size));
    if (size <= AUTH_MACAROON_SIZE_MAX) {
        size_t text_size = ron_base64_encode(RON_BASE64_URL_NO_PAD, ron_slice_of(data, size), text,
                                             sizeof(text));

        check_text(ron_slice_of(text, text_size));
    }
    check_caveats(data, size);
    return 0;
}
