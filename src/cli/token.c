/*
 * token.c - `ron token`: make, narrow, look at and revoke capabilities, offline.
 *
 * Tokens and keyrings come on standard input and leave on standard output: never on the command
 * line, where every user of the machine could read them. Caveats and identifiers are no secrets. A
 * keyring may also be named by its path; then it is replaced where it stands.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "auth/caveat.h"
#include "auth/keyring_file.h"
#include "base/hex.h"
#include "base/printable.h"
#include "cli/command.h"
#include "cli/input.h"
#include "rt/clock.h"

static void print_usage(FILE *out)
{
    fputs(
        "usage: ron token init                                    > KEYRING\n"
        "       ron token rotate                       < KEYRING  > NEW-KEYRING\n"
        "       ron token mint --caveat CAVEAT...      < KEYRING  > TOKEN\n"
        "       ron token attenuate --caveat CAVEAT... < TOKEN    > NARROWER-TOKEN\n"
        "       ron token inspect                      < TOKEN\n"
        "       ron token revoke --key KID             < KEYRING  > NEW-KEYRING\n"
        "       ron token revoke --token KID.ULID      < KEYRING  > NEW-KEYRING\n"
        "\n"
        "Instead of < KEYRING: --keyring PATH, a keyring or a data directory with one; rotate and\n"
        "revoke then replace it (a server reads it again on SIGHUP). With a terminal as standard\n"
        "input, --keyring ./ron-data is meant.\n"
        "\n"
        "Capabilities are macaroons: whoever holds one can narrow it, nobody can widen it.\n"
        "Tokens and keyrings are secrets and never stand on the command line.\n"
        "\n"
        "init       a keyring with a fresh key and the roles' service tokens\n"
        "rotate     a fresh key signs; the older ones verify until they are revoked\n"
        "mint       a token; a scope caveat is required, and `tenant = 0` is added when there is\n"
        "           no tenant caveat (--any-tenant leaves it out)\n"
        "attenuate  the token with more caveats; needs no key\n"
        "inspect    identifier, caveats and what they mean; never the signature\n"
        "revoke     ends one token, or all tokens of a key that no longer signs\n"
        "\n"
        "caveats:   'tenant = 7'  'scope = wallet.read,wallet.transfer'  'aud = wallet'\n"
        "           'account = acct_a*'  'asset = roc'  'max_amount = 100'  'max_daily = 1000'\n"
        "           'method = POST'  'path = /v1/transfer'  'ip = 10.0.0.0/8'\n"
        "           'before = 2027-01-01T00:00:00Z'  'after = 2026-01-01T00:00:00Z'\n"
        "           'rate = 10/20'\n",
        out);
}

struct arguments {
    struct ron_slice caveats[AUTH_CAVEATS_MAX];
    size_t caveats_count;
    bool any_tenant;
    struct ron_slice key;
    struct ron_slice token;
    const char *keyring; /* NULL: standard input */
};

static int failed(const char *verb, const struct ron_errinfo *info)
{
    fprintf(stderr, "ron token %s: %s\n", verb, info->message);
    return CMD_FAILED;
}

/* Keyrings. */

static int write_keyring(const char *verb, const struct auth_keyring *keyring)
{
    struct ron_errinfo info;
    struct ron_buf buf;
    int status = CMD_OK;

    ron_buf_init(&buf, AUTH_KEYRING_TEXT_SIZE_MAX);
    if (auth_keyring_encode(keyring, &buf, &info) == RON_ERR_OK) {
        (void)setvbuf(stdout, NULL, _IONBF, 0);      /* no copy of keys in stdio's buffer */
        (void)fwrite(buf.data, 1, buf.size, stdout); /* main asks whether it arrived */
    } else {
        status = failed(verb, &info);
    }
    cli_wipe_input(&buf);
    return status;
}

static enum ron_err read_input_keyring(struct auth_keyring **ret_keyring,
                                       struct ron_errinfo *reterr)
{
    struct ron_buf buf;
    enum ron_err err = cli_read_input(AUTH_KEYRING_TEXT_SIZE_MAX, &buf, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = auth_keyring_decode(ron_buf_slice(&buf), ret_keyring, reterr);
    cli_wipe_input(&buf);
    return err;
}

static enum ron_err read_keyring(const struct arguments *arguments,
                                 struct auth_keyring **ret_keyring,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    char name[IO_NAME_MAX + 1];
    struct io_vfs *vfs;
    enum ron_err err;

    if (arguments->keyring == NULL)
        return read_input_keyring(ret_keyring, reterr);
    err = auth_keyring_locate(arguments->keyring, &vfs, name, reterr);
    if (err != RON_ERR_OK)
        return err;
    err = auth_keyring_file_load(vfs, name, ret_keyring, reterr);
    (void)io_vfs_free(vfs);
    return err;
}

/* Where it stands, or from standard input to standard output. */
static int change_keyring(const char *verb, const struct arguments *arguments,
                          auth_keyring_change_fn *change) RON_BLOCKS
{
    struct auth_keyring *keyring RON_CLEANUP(auth_keyring_freep) = NULL;
    void *context = (void *)(uintptr_t)arguments; /* read only */
    char name[IO_NAME_MAX + 1];
    struct ron_errinfo info;
    struct io_vfs *vfs;
    enum ron_err err;

    if (arguments->keyring == NULL) {
        if (read_input_keyring(&keyring, &info) != RON_ERR_OK ||
            change(keyring, context, &info) != RON_ERR_OK)
            return failed(verb, &info);
        return write_keyring(verb, keyring);
    }
    if (auth_keyring_locate(arguments->keyring, &vfs, name, &info) != RON_ERR_OK)
        return failed(verb, &info);
    err = auth_keyring_file_change(vfs, name, change, context, &info);
    (void)io_vfs_free(vfs);
    return err == RON_ERR_OK ? CMD_OK : failed(verb, &info);
}

static int run_init(const struct arguments *arguments)
{
    struct auth_keyring *keyring RON_CLEANUP(auth_keyring_freep) = NULL;
    struct ron_errinfo info;

    (void)arguments;
    if (auth_keyring_new(rt_utc_ms(), &keyring, &info) != RON_ERR_OK)
        return failed("init", &info);
    return write_keyring("init", keyring);
}

static enum ron_err apply_rotate(struct auth_keyring *keyring, void *context,
                                 struct ron_errinfo *reterr)
{
    (void)context;
    return auth_keyring_rotate(keyring, rt_utc_ms(), reterr);
}

static int run_rotate(const struct arguments *arguments) RON_BLOCKS
{
    return change_keyring("rotate", arguments, apply_rotate);
}

static enum ron_err apply_revoke(struct auth_keyring *keyring, void *context,
                                 struct ron_errinfo *reterr)
{
    const struct arguments *arguments = context;

    if (arguments->key.size > 0)
        return auth_keyring_revoke_key(keyring, arguments->key, reterr);
    return auth_keyring_revoke_token(keyring, arguments->token, rt_utc_ms(), reterr);
}

static int run_revoke(const struct arguments *arguments) RON_BLOCKS
{
    if ((arguments->key.size > 0) == (arguments->token.size > 0)) {
        fputs("ron token revoke: give either --key or --token\n", stderr);
        return CMD_USAGE;
    }
    return change_keyring("revoke", arguments, apply_revoke);
}

/* Tokens. */

static bool names_tenant(const struct arguments *arguments)
{
    for (size_t i = 0; i < arguments->caveats_count; i++) {
        if (arguments->caveats[i].size >= 7 &&
            memcmp(arguments->caveats[i].data, "tenant ", 7) == 0)
            return true;
    }
    return false;
}

static void print_token(char *text, size_t size)
{
    (void)setvbuf(stdout, NULL, _IONBF, 0);
    text[size] = '\n'; /* over its NUL */
    (void)fwrite(text, 1, size + 1, stdout);
    ron_wipe(text, size);
}

static int run_mint(const struct arguments *arguments) RON_BLOCKS
{
    struct auth_keyring *keyring RON_CLEANUP(auth_keyring_freep) = NULL;
    struct ron_slice caveats[AUTH_CAVEATS_MAX + 1];
    size_t count = 0;
    char text[AUTH_TOKEN_TEXT_SIZE];
    struct ron_errinfo info;
    size_t size;

    /* Without it the holder could narrow the token to any tenant he likes. Last, so that messages
     * count the caveats as the command line does. */
    for (size_t i = 0; i < arguments->caveats_count; i++)
        caveats[count++] = arguments->caveats[i];
    if (!names_tenant(arguments) && !arguments->any_tenant)
        caveats[count++] = RON_SLICE("tenant = 0");
    if (read_keyring(arguments, &keyring, &info) != RON_ERR_OK ||
        auth_keyring_mint(keyring, caveats, count, rt_utc_ms(), text, &size, &info) != RON_ERR_OK)
        return failed("mint", &info);
    print_token(text, size);
    return CMD_OK;
}

/* Read and decode; the macaroon borrows from bytes. */
static enum ron_err read_token(uint8_t bytes[static AUTH_MACAROON_SIZE_MAX],
                               struct auth_macaroon *ret_macaroon, struct ron_errinfo *reterr)
{
    struct ron_buf buf;
    enum ron_err err = cli_read_input(AUTH_TOKEN_TEXT_SIZE, &buf, reterr);
    struct ron_slice token;

    if (err != RON_ERR_OK)
        return err;
    token = ron_buf_slice(&buf);
    if (token.size > 0 && token.data[token.size - 1] == '\n')
        token.size--;
    err = auth_macaroon_decode(token, bytes, ret_macaroon, reterr);
    cli_wipe_input(&buf);
    return err;
}

static int run_attenuate(const struct arguments *arguments)
{
    uint8_t bytes[AUTH_MACAROON_SIZE_MAX];
    char text[AUTH_TOKEN_TEXT_SIZE];
    struct auth_macaroon macaroon;
    struct auth_grant grant;
    struct ron_errinfo info;
    size_t size = 0;
    enum ron_err err;

    if (arguments->caveats_count == 0) {
        fputs("ron token attenuate: a --caveat is needed\n", stderr);
        return CMD_USAGE;
    }
    err = read_token(bytes, &macaroon, &info);
    for (size_t i = 0; err == RON_ERR_OK && i < arguments->caveats_count; i++)
        err = auth_macaroon_attenuate(&macaroon, arguments->caveats[i], &info);
    if (err == RON_ERR_OK)
        err = auth_caveats_apply(&macaroon, &grant, &info); /* or it would be worth nothing */
    if (err == RON_ERR_OK)
        err = auth_macaroon_encode(&macaroon, text, &size, &info);
    ron_wipe(bytes, sizeof(bytes));
    ron_wipe(&macaroon.signature, sizeof(macaroon.signature));
    if (err != RON_ERR_OK)
        return failed("attenuate", &info);
    print_token(text, size);
    return CMD_OK;
}

static void print_macaroon(const struct auth_macaroon *macaroon)
{
    char hex[RON_HEX_SIZE(AUTH_CAPABILITY_SIZE)];
    struct auth_grant grant;
    struct ron_errinfo info;

    printf("location    %.*s\n", RON_SLICE_FMT(macaroon->location));
    printf("identifier  %.*s\n", RON_SLICE_FMT(macaroon->identifier));
    for (uint32_t i = 0; i < macaroon->caveats_count; i++)
        printf("caveat %-4u %.*s\n", i + 1, RON_SLICE_FMT(macaroon->caveats[i]));
    if (auth_caveats_apply(macaroon, &grant, &info) != RON_ERR_OK) {
        printf("refused     %s\n", info.message);
        return;
    }
    (void)ron_hex_encode(ron_slice_of(grant.capability, sizeof(grant.capability)), hex,
                         sizeof(hex));
    printf("key         %.*s\n", RON_SLICE_FMT(auth_grant_kid(&grant)));
    printf("capability  %s\n", hex);
    if (!auth_grant_has(&grant, AUTH_CAVEAT_SCOPE))
        puts("note        no scope caveat: every scope");
    if (grant.is_void || grant.scopes == 0)
        puts("note        its caveats exclude each other: it allows nothing");
    if (auth_grant_has(&grant, AUTH_CAVEAT_BEFORE) && rt_utc_ms() >= grant.before_ms)
        puts("note        it has expired");
    puts("signature   not checked: that needs the keyring");
}

static int run_inspect(const struct arguments *arguments)
{
    uint8_t bytes[AUTH_MACAROON_SIZE_MAX];
    struct auth_macaroon macaroon;
    struct ron_errinfo info;

    (void)arguments;
    if (read_token(bytes, &macaroon, &info) != RON_ERR_OK)
        return failed("inspect", &info);
    ron_wipe(&macaroon.signature, sizeof(macaroon.signature));
    print_macaroon(&macaroon);
    ron_wipe(bytes, sizeof(bytes));
    return CMD_OK;
}

/* The command line. */

enum { TAKES_CAVEATS = 1, TAKES_ANY_TENANT = 2, TAKES_REVOKED = 4, TAKES_KEYRING = 8 };

static const struct verb {
    const char *name;
    unsigned takes;
    int (*run)(const struct arguments *arguments);
} verbs[] = {
    {"init", 0, run_init},
    {"rotate", TAKES_KEYRING, run_rotate},
    {"mint", TAKES_CAVEATS | TAKES_ANY_TENANT | TAKES_KEYRING, run_mint},
    {"attenuate", TAKES_CAVEATS, run_attenuate},
    {"inspect", 0, run_inspect},
    {"revoke", TAKES_REVOKED | TAKES_KEYRING, run_revoke},
};

/* One option and its value, if it has one; gives how many words it was, 0 when it is wrong. */
static int take_option(const struct verb *verb, int argc, char **argv, struct arguments *arguments)
{
    struct ron_slice value = argc > 1 ? ron_slice_text(argv[1]) : (struct ron_slice){0};

    if ((verb->takes & TAKES_ANY_TENANT) != 0 && strcmp(argv[0], "--any-tenant") == 0) {
        arguments->any_tenant = true;
        return 1;
    }
    if (value.size == 0)
        return 0;
    if ((verb->takes & TAKES_CAVEATS) != 0 && strcmp(argv[0], "--caveat") == 0 &&
        arguments->caveats_count < AUTH_CAVEATS_MAX) {
        arguments->caveats[arguments->caveats_count++] = value;
        return 2;
    }
    if ((verb->takes & TAKES_KEYRING) != 0 && strcmp(argv[0], "--keyring") == 0) {
        arguments->keyring = argv[1];
        return 2;
    }
    if ((verb->takes & TAKES_REVOKED) != 0 && strcmp(argv[0], "--key") == 0) {
        arguments->key = value;
        return 2;
    }
    if ((verb->takes & TAKES_REVOKED) != 0 && strcmp(argv[0], "--token") == 0) {
        arguments->token = value;
        return 2;
    }
    return 0;
}

static int run_verb(const struct verb *verb, int argc, char **argv)
{
    struct arguments arguments = {0};

    for (int i = 0; i < argc;) {
        int taken = take_option(verb, argc - i, argv + i, &arguments);
        char word[48];

        if (strcmp(argv[i], "--help") == 0) {
            print_usage(stdout);
            return CMD_OK;
        }
        if (taken == 0) {
            /* What is no option may be a token that was meant for standard input. */
            const char *shown = strncmp(argv[i], "--", 2) == 0
                                    ? ron_printable(ron_slice_text(argv[i]), word, sizeof(word))
                                    : "(not shown)";

            fprintf(stderr, "ron token %s: unexpected argument or missing value: %s\n", verb->name,
                    shown);
            fputs("Tokens and keyrings are read from standard input; see ron token --help.\n",
                  stderr);
            return CMD_USAGE;
        }
        i += taken;
    }
    if ((verb->takes & TAKES_KEYRING) != 0 && arguments.keyring == NULL && isatty(STDIN_FILENO))
        arguments.keyring = "ron-data";
    return verb->run(&arguments);
}

int cmd_token(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        print_usage(stdout);
        return CMD_OK;
    }
    for (size_t i = 0; argc > 1 && i < RON_ARRAY_COUNT(verbs); i++) {
        if (strcmp(argv[1], verbs[i].name) == 0)
            return run_verb(&verbs[i], argc - 2, argv + 2);
    }
    if (argc > 1 && argv[1][0] == '-')
        fprintf(stderr, "ron token: unexpected argument '%s'\n", argv[1]);
    else
        fputs("ron token: which of init, rotate, mint, attenuate, inspect, revoke?\n", stderr);
    print_usage(stderr);
    return CMD_USAGE;
}
