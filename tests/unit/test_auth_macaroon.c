/*
 * test_auth_macaroon.c - the codec and the chain: a token made by pymacaroons, round trips, limits,
 * and every way in which a token may be damaged. What other libraries make of the same bytes is
 * compared in tests/interop/macaroons.
 */
#include "support.h"

#include "auth/macaroon.h"

/* Macaroon(location='http://mybank/', identifier='we used our secret key',
 * key='this is our super secret key; only we should know it'), caveat 'test = caveat'. */
#define KNOWN_KEY "this is our super secret key; only we should know it"
#define KNOWN_BARE                                                                             \
    "MDAxY2xvY2F0aW9uIGh0dHA6Ly9teWJhbmsvCjAwMjZpZGVudGlmaWVyIHdlIHVzZWQgb3VyIHNlY3JldCBrZXkK" \
    "MDAyZnNpZ25hdHVyZSDj2eApCFJsTAA5rhURQRXZf91ovyujebNCqvD2F9BVLwo"
#define KNOWN_WITH_CAVEAT                                                                      \
    "MDAxY2xvY2F0aW9uIGh0dHA6Ly9teWJhbmsvCjAwMjZpZGVudGlmaWVyIHdlIHVzZWQgb3VyIHNlY3JldCBrZXkK" \
    "MDAxNmNpZCB0ZXN0ID0gY2F2ZWF0CjAwMmZzaWduYXR1cmUgGXusegRK8zMyhluSZuJtSTvdZopmDkTYjOGpmMI9" \
    "vWcK"

static uint8_t bytes[AUTH_MACAROON_SIZE_MAX];

static struct ron_secret key_of(const char *text)
{
    struct ron_secret key = {0};

    assert_ok(ron_secret_init(&key, ron_slice_text(text), NULL));
    return key;
}

static void known_tokens_decode_and_verify(void **state)
{
    struct ron_secret key = key_of(KNOWN_KEY);
    struct auth_macaroon m;
    char text[AUTH_TOKEN_TEXT_SIZE];
    size_t size = 0;

    (void)state;
    assert_ok(auth_macaroon_decode(RON_SLICE(KNOWN_BARE), bytes, &m, NULL));
    assert_true(ron_slice_equal(m.location, RON_SLICE("http://mybank/")));
    assert_true(ron_slice_equal(m.identifier, RON_SLICE("we used our secret key")));
    assert_int_equal(m.caveats_count, 0);
    assert_ok(auth_macaroon_verify(&m, &key, NULL));
    /* To attenuate gives the other token, byte for byte. */
    assert_ok(auth_macaroon_attenuate(&m, RON_SLICE("test = caveat"), NULL));
    assert_ok(auth_macaroon_encode(&m, text, &size, NULL));
    assert_string_equal(text, KNOWN_WITH_CAVEAT);
    assert_int_equal(size, strlen(text));
    assert_ok(auth_macaroon_decode(ron_slice_of(text, size), bytes, &m, NULL));
    assert_int_equal(m.caveats_count, 1);
    assert_ok(auth_macaroon_verify(&m, &key, NULL));
    /* And so does minting. */
    assert_ok(auth_macaroon_mint(&key, RON_SLICE("http://mybank/"),
                                 RON_SLICE("we used our secret key"), &m, NULL));
    assert_ok(auth_macaroon_encode(&m, text, &size, NULL));
    assert_string_equal(text, KNOWN_BARE);
    ron_secret_fini(&key);
}

static void any_other_key_or_no_key_is_refused(void **state)
{
    struct ron_secret other = key_of("this is our super secret key; only we should know iT");
    struct ron_secret empty = {0};
    struct ron_errinfo info = {0};
    struct auth_macaroon m;

    (void)state;
    assert_ok(auth_macaroon_decode(RON_SLICE(KNOWN_WITH_CAVEAT), bytes, &m, NULL));
    support_assert_error(auth_macaroon_verify(&m, &other, &info), &info, RON_ERR_UNAUTHORIZED,
                         "signature");
    support_assert_error(auth_macaroon_verify(&m, &empty, &info), &info, RON_ERR_UNAUTHORIZED,
                         "not set");
    ron_secret_fini(&other);
}

/* Each bit of the signature counts, the last as the first. */
static void every_bit_of_the_signature_counts(void **state)
{
    struct ron_secret key = key_of(KNOWN_KEY);
    struct auth_macaroon m;

    (void)state;
    assert_ok(auth_macaroon_decode(RON_SLICE(KNOWN_WITH_CAVEAT), bytes, &m, NULL));
    for (size_t bit = 0; bit < RON_SHA256_SIZE * 8; bit++) {
        m.signature.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(auth_macaroon_verify(&m, &key, NULL), RON_ERR_UNAUTHORIZED);
        m.signature.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_ok(auth_macaroon_verify(&m, &key, NULL));
    ron_secret_fini(&key);
}

/* What a holder might try: leave a caveat out, change it, change the order, cut the chain. */
static void widened_reordered_and_cut_tokens_do_not_verify(void **state)
{
    struct ron_secret key = key_of(KNOWN_KEY);
    struct auth_macaroon whole;
    struct auth_macaroon m;

    (void)state;
    assert_ok(auth_macaroon_mint(&key, RON_SLICE("ron"), RON_SLICE("id"), &whole, NULL));
    assert_ok(auth_macaroon_attenuate(&whole, RON_SLICE("scope = wallet.read"), NULL));
    assert_ok(auth_macaroon_attenuate(&whole, RON_SLICE("max_amount = 10"), NULL));
    assert_ok(auth_macaroon_verify(&whole, &key, NULL));
    m = whole; /* without the last, and without the first */
    m.caveats_count = 1;
    assert_int_equal(auth_macaroon_verify(&m, &key, NULL), RON_ERR_UNAUTHORIZED);
    m.caveats[0] = whole.caveats[1];
    assert_int_equal(auth_macaroon_verify(&m, &key, NULL), RON_ERR_UNAUTHORIZED);
    m = whole;
    m.caveats[1] = RON_SLICE("max_amount = 11");
    assert_int_equal(auth_macaroon_verify(&m, &key, NULL), RON_ERR_UNAUTHORIZED);
    m = whole;
    m.caveats[0] = whole.caveats[1];
    m.caveats[1] = whole.caveats[0];
    assert_int_equal(auth_macaroon_verify(&m, &key, NULL), RON_ERR_UNAUTHORIZED);
    m = whole;
    m.identifier = RON_SLICE("ie");
    assert_int_equal(auth_macaroon_verify(&m, &key, NULL), RON_ERR_UNAUTHORIZED);
    ron_secret_fini(&key);
}

static enum ron_err decode_packets(const char *packets, size_t size, struct ron_errinfo *info)
{
    static char text[2 * AUTH_TOKEN_TEXT_SIZE];
    struct auth_macaroon m;
    size_t text_size = ron_base64_encode(RON_BASE64_URL_NO_PAD, ron_slice_of(packets, size), text,
                                         sizeof(text));

    return auth_macaroon_decode(ron_slice_of(text, text_size), bytes, &m, info);
}

#define SIG32 "0123456789abcdef0123456789abcdef"
#define LOC   "0011location ron\n"
#define ID    "0014identifier abcd\n"
#define SIG   "002fsignature " SIG32 "\n"

static void only_the_grammar_is_accepted(void **state)
{
    static const struct {
        const char *packets;
        const char *text; /* NULL: good */
    } cases[] = {
        {LOC ID SIG, NULL},
        {LOC ID "000ecid a = b\n" SIG, NULL},
        {"000elocation \n" ID SIG, NULL},
        {"", "empty"},
        {ID SIG, "no location"},
        {LOC SIG, "no identifier"},
        {LOC LOC ID SIG, "no identifier"},
        {LOC ID ID SIG, "neither"},
        {LOC ID LOC SIG, "neither"},
        {LOC ID, "no packet length"},
        {LOC ID SIG SIG, "more after"},
        {LOC ID SIG "000ecid a = b\n", "more after"},
        {LOC ID SIG "\n", "more after"},
        {LOC ID "000ecid a = b\n000bvid xx\n" SIG, "third-party"},
        {LOC ID "000ecid a = b\n0009cl xyz\n" SIG, "line feed"},
        {LOC ID "000ecid a = b\n000bcl xyz\n" SIG, "third-party"},
        {LOC ID "0009cid \n" SIG, "caveat 1"},
        {LOC ID "000ecid a \t b\n" SIG, "caveat 1"},
        {LOC ID "000ecid a \x80 b\n" SIG, "caveat 1"},
        {LOC ID "000ecidsa = b\n" SIG, "neither"},
        {LOC ID "000eCid a = b\n" SIG, "neither"},
        {LOC "0010identifier \n" SIG, "identifier is empty"},
        {LOC ID "002fsignature " SIG32 " ", "line feed"},
        {LOC ID "002Fsignature " SIG32 "\n", "no packet length"},
        {LOC ID "0x2fsignature " SIG32 "\n", "no packet length"},
        {LOC ID " 02fsignature " SIG32 "\n", "no packet length"},
        {LOC ID "002esignature " SIG32 "\n", "line feed"},
        {LOC ID "0030signature " SIG32 "\n", "does not fit"},
        {LOC ID "002esignature 0123456789abcdef0123456789abcde\n", "signature of 31"},
        {LOC ID "ffffsignature " SIG32 "\n", "does not fit"},
        {LOC ID "0000signature " SIG32 "\n", "does not fit"},
        {LOC ID "0005signature " SIG32 "\n", "does not fit"},
        {LOC ID "0014signature" SIG32 "\n", "line feed"},
    };

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(cases); i++) {
        struct ron_errinfo info = {0};
        enum ron_err err = decode_packets(cases[i].packets, strlen(cases[i].packets), &info);

        if (cases[i].text == NULL)
            assert_ok(err);
        else
            support_assert_error(err, &info, RON_ERR_UNAUTHORIZED, cases[i].text);
    }
}

static void every_cut_of_a_token_is_refused(void **state)
{
    const struct ron_slice whole = RON_SLICE(KNOWN_WITH_CAVEAT);
    struct auth_macaroon m;

    (void)state;
    for (size_t size = 0; size < whole.size; size++)
        assert_int_equal(auth_macaroon_decode(ron_slice_of(whole.data, size), bytes, &m, NULL),
                         RON_ERR_UNAUTHORIZED);
}

static void the_text_has_one_form(void **state)
{
    static const char *const others[] = {
        KNOWN_BARE "=",
        KNOWN_BARE "\n",
        " " KNOWN_BARE,
        "MDAxY2xvY2F0aW9uIGh0dHA6Ly9teWJhbmsv+jAw",
    };
    struct auth_macaroon m;
    struct ron_errinfo info = {0};

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(others); i++)
        support_assert_error(auth_macaroon_decode(ron_slice_text(others[i]), bytes, &m, &info),
                             &info, RON_ERR_UNAUTHORIZED, "base64url");
}

static void limits_are_named_and_hold(void **state)
{
    static char big[AUTH_TOKEN_TEXT_SIZE + 1];
    struct ron_secret key = key_of(KNOWN_KEY);
    struct ron_errinfo info = {0};
    struct auth_macaroon m;
    char text[AUTH_TOKEN_TEXT_SIZE];
    size_t size = 0;

    (void)state;
    memset(big, 'A', sizeof(big));
    support_assert_error(
        auth_macaroon_decode(ron_slice_of(big, AUTH_TOKEN_TEXT_SIZE), bytes, &m, &info), &info,
        RON_ERR_UNAUTHORIZED, "characters, at most");
    assert_ok(auth_macaroon_mint(&key, RON_SLICE(""), RON_SLICE("i"), &m, NULL));
    for (int i = 0; i < AUTH_CAVEATS_MAX; i++)
        assert_ok(auth_macaroon_attenuate(&m, RON_SLICE("c"), NULL));
    support_assert_error(auth_macaroon_attenuate(&m, RON_SLICE("c"), &info), &info,
                         RON_ERR_TOO_LARGE, "64 caveats");
    assert_ok(auth_macaroon_encode(&m, text, &size, NULL));
    assert_ok(auth_macaroon_decode(ron_slice_of(text, size), bytes, &m, NULL));
    assert_int_equal(m.caveats_count, AUTH_CAVEATS_MAX);
    assert_ok(auth_macaroon_verify(&m, &key, NULL));

    assert_ok(auth_macaroon_mint(&key, RON_SLICE(""), RON_SLICE("i"), &m, NULL));
    for (int i = 0; i < 3; i++)
        assert_ok(auth_macaroon_attenuate(&m, ron_slice_of(big, AUTH_CAVEAT_SIZE_MAX), NULL));
    assert_ok(auth_macaroon_encode(&m, text, &size, NULL));
    assert_ok(auth_macaroon_attenuate(&m, ron_slice_of(big, AUTH_CAVEAT_SIZE_MAX), NULL));
    support_assert_error(auth_macaroon_encode(&m, text, &size, &info), &info, RON_ERR_TOO_LARGE,
                         "4096");
    support_assert_error(
        auth_macaroon_attenuate(&m, ron_slice_of(big, AUTH_CAVEAT_SIZE_MAX + 1), &info), &info,
        RON_ERR_TOO_LARGE, "1025");
    support_assert_error(auth_macaroon_attenuate(&m, RON_SLICE(""), &info), &info,
                         RON_ERR_MALFORMED, "empty");
    support_assert_error(auth_macaroon_attenuate(&m, RON_SLICE("a\nb"), &info), &info,
                         RON_ERR_MALFORMED, "printable");
    support_assert_error(auth_macaroon_mint(&key, RON_SLICE(""), RON_SLICE(""), &m, &info), &info,
                         RON_ERR_MALFORMED, "empty");
    ron_secret_fini(&key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_tokens_decode_and_verify),
        cmocka_unit_test(any_other_key_or_no_key_is_refused),
        cmocka_unit_test(every_bit_of_the_signature_counts),
        cmocka_unit_test(widened_reordered_and_cut_tokens_do_not_verify),
        cmocka_unit_test(only_the_grammar_is_accepted),
        cmocka_unit_test(every_cut_of_a_token_is_refused),
        cmocka_unit_test(the_text_has_one_form),
        cmocka_unit_test(limits_are_named_and_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
