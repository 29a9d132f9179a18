/*
 * macaroon_driver.c - our macaroons on request, for interop.py and diff_macaroons.py.
 *
 * One request a line, one answer a line; bytes are hex, `-` where there are none:
 *
 *     mint KEY LOCATION IDENTIFIER CAVEAT...   -> ok TOKEN
 *     attenuate TOKEN CAVEAT...                -> ok TOKEN
 *     verify KEY TOKEN                         -> ok LOCATION IDENTIFIER CAVEAT...
 *     grant KEY TOKEN                          -> ok, if also its identifier and caveats are ours
 *
 * or `no MESSAGE`. A request that makes no sense ends the program: the driver is wrong.
 */
#include <stdio.h>

#include "auth/caveat.h"
#include "auth/macaroon.h"
#include "base/assert.h"
#include "base/hex.h"

enum { LINE_SIZE_MAX = 1 << 17, WORDS_MAX = 128, ARENA_SIZE = 1 << 16 };

static char line[LINE_SIZE_MAX];
static uint8_t arena[ARENA_SIZE];
static size_t arena_used;

static struct ron_slice word_bytes(const char *word)
{
    size_t size = 0;
    uint8_t *start = arena + arena_used;

    if (strcmp(word, "-") == 0)
        return ron_slice_of(start, 0);
    enum ron_err err = ron_hex_decode(ron_slice_text(word), start, sizeof(arena) - arena_used,
                                      &size, NULL);
    RON_ASSERT(err == RON_ERR_OK);
    arena_used += size;
    return ron_slice_of(start, size);
}

static void print_bytes(struct ron_slice bytes)
{
    static char hex[RON_HEX_SIZE(AUTH_MACAROON_SIZE_MAX)];

    (void)ron_hex_encode(bytes, hex, sizeof(hex));
    printf(" %s", bytes.size == 0 ? "-" : hex);
}

static void no(const struct ron_errinfo *info)
{
    printf("no %s\n", info->message);
}

static void print_token(struct auth_macaroon *macaroon, char **words, size_t words_count)
{
    static char text[AUTH_TOKEN_TEXT_SIZE];
    struct ron_errinfo info;
    size_t size;

    for (size_t i = 0; i < words_count; i++) {
        if (auth_macaroon_attenuate(macaroon, word_bytes(words[i]), &info) != RON_ERR_OK) {
            no(&info);
            return;
        }
    }
    if (auth_macaroon_encode(macaroon, text, &size, &info) != RON_ERR_OK)
        no(&info);
    else
        printf("ok %s\n", text);
}

static struct ron_secret word_key(const char *word)
{
    struct ron_secret key = {0};
    enum ron_err err = ron_secret_init(&key, word_bytes(word), NULL);

    RON_ASSERT(err == RON_ERR_OK);
    return key;
}

static void do_mint(char **words, size_t words_count)
{
    struct ron_secret key = word_key(words[1]);
    struct auth_macaroon macaroon;
    struct ron_errinfo info;

    RON_ASSERT(words_count >= 4);
    if (auth_macaroon_mint(&key, word_bytes(words[2]), word_bytes(words[3]), &macaroon, &info) !=
        RON_ERR_OK)
        no(&info);
    else
        print_token(&macaroon, words + 4, words_count - 4);
    ron_secret_fini(&key);
}

static void do_verify(char **words, bool meaning)
{
    static uint8_t bytes[AUTH_MACAROON_SIZE_MAX];
    struct ron_secret key = word_key(words[1]);
    struct auth_macaroon macaroon;
    struct auth_grant grant;
    struct ron_errinfo info;

    if (auth_macaroon_decode(word_bytes(words[2]), bytes, &macaroon, &info) != RON_ERR_OK ||
        auth_macaroon_verify(&macaroon, &key, &info) != RON_ERR_OK ||
        (meaning && auth_caveats_apply(&macaroon, &grant, &info) != RON_ERR_OK)) {
        no(&info);
    } else {
        printf("ok");
        print_bytes(macaroon.location);
        print_bytes(macaroon.identifier);
        for (uint32_t i = 0; i < macaroon.caveats_count; i++)
            print_bytes(macaroon.caveats[i]);
        printf("\n");
    }
    ron_secret_fini(&key);
}

static void do_attenuate(char **words, size_t words_count)
{
    static uint8_t bytes[AUTH_MACAROON_SIZE_MAX];
    struct auth_macaroon macaroon;
    struct ron_errinfo info;

    if (auth_macaroon_decode(ron_slice_text(words[1]), bytes, &macaroon, &info) != RON_ERR_OK)
        no(&info);
    else
        print_token(&macaroon, words + 2, words_count - 2);
}

int main(void)
{
    char *words[WORDS_MAX];

    while (fgets(line, sizeof(line), stdin) != NULL) {
        size_t words_count = 0;
        char *rest = line;

        line[strcspn(line, "\n")] = '\0';
        while (rest != NULL && words_count < WORDS_MAX)
            words[words_count++] = strsep(&rest, " ");
        arena_used = 0;
        RON_ASSERT(words_count >= 2);
        if (strcmp(words[0], "mint") == 0)
            do_mint(words, words_count);
        else if (strcmp(words[0], "attenuate") == 0)
            do_attenuate(words, words_count);
        else if (words_count == 3 && strcmp(words[0], "verify") == 0)
            do_verify(words, false);
        else if (words_count == 3 && strcmp(words[0], "grant") == 0)
            do_verify(words, true);
        else
            RON_UNREACHABLE();
    }
    return 0;
}
