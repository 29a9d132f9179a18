/*
 * ledger.c - `ron ledger`: the verbs, their words and options. Each verb is in a ledger_*.c.
 */
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "cli/ledger_impl.h"

#define TLS    "ca host client-cert client-key "
#define SERVER "url token-file data json " TLS

static const struct verb {
    const char *name;
    int (*run)(const struct ledger_args *args);
    const char *options; /* names with a space behind each */
    int words_min, words_max;
    const char *summary, *usage, *help;
} verbs[] = {
    {"ingest", ledger_ingest, SERVER "transfer mint asset nonce key id memo ", 0, 3,
     "write entries: a JSON batch, one transfer, one mint",
     "[FILE | -] [--key K]\n"
     "       ron ledger ingest --transfer FROM TO AMOUNT [--asset roc] [--nonce N] [--key K]\n"
     "       ron ledger ingest --mint TO AMOUNT [--asset roc] [--key K]",
     "FILE, or standard input, is {\"batch\":[...]}: all of it is written or nothing. --key makes "
     "a\n"
     "repetition harmless; a transfer or mint without one is given a fresh one, which is printed.\n"
     "--id names the entry (else the key does), --memo is kept with it.\n"},
    {"balance", ledger_balance, SERVER "asset at-seq ", 1, 1, "what an account holds",
     "ACCOUNT [--asset roc] [--at-seq N]", "--at-seq N is the balance after entry N.\n"},
    {"history", ledger_history, SERVER "asset after limit ", 1, 1, "the entries of an account",
     "ACCOUNT [--asset A] [--after SEQ] [--limit N]", "Ascending; --limit 0 is all of them.\n"},
    {"entries", ledger_entries, SERVER "from limit ", 0, 1, "one entry, or the log by number",
     "[ID] | [--from SEQ] [--limit N]", "With ID also `leaf`, the bytes that are hashed.\n"},
    {"holds", ledger_holds, SERVER "account after limit ", 0, 1, "one hold, or those of a payer",
     "HOLD_ID | --account PAYER [--after SEQ] [--limit N]", ""},
    {"proof", ledger_proof, SERVER "vkey save balance asset ", 1, 1,
     "fetch and check that an entry is in the signed log, or a balance",
     "ID | SEQ [--vkey FILE] [--save FILE]\n"
     "       ron ledger proof --balance ACCOUNT [--asset roc] [--vkey FILE] [--save FILE]",
     "The proof is checked here, against the log's public key: the server's own, or --vkey, which\n"
     "you had from somewhere else. --save writes FILE (the proof, c2sp.org/tlog-proof),\n"
     "FILE.leaf and FILE.vkey: all that anybody needs to check it without this server.\n"
     "--balance proves what an account held, or that it held nothing, as of the newest state that\n"
     "is anchored in the log, which is not the newest entry; --save then writes the server's "
     "reply\n"
     "to FILE, and FILE.vkey.\n"},
    {"assets", ledger_assets, SERVER, 0, 0, "every asset", "", ""},
    {"limits", ledger_limits, SERVER, 1, 1, "limits and freeze of an account", "ACCOUNT", ""},
    {"export", ledger_export, SERVER "format out from ", 0, 0,
     "every entry as JSON lines, CSV or a journal",
     "[--format jsonl|csv|journal] [--from SEQ] [--out FILE] [--data DIR --url none]",
     "From the server, or with --url none from the data directory itself (which the server may be\n"
     "using): its log is read and done again. A journal is for ledger-cli and hledger.\n"
     "--from is for the server only. --out appears whole or not at all.\n"},
    {"import", ledger_import, SERVER "key chunk holds-until ", 1, 1, "JSON lines into a server",
     "FILE | - [--key PREFIX] [--chunk N] [--holds-until TIME]",
     "One entry a line, of 64 KiB at most, as in a batch of `ingest`, or a line of `export`; any\n"
     "number of lines, which are sent as they are read. N lines (default 500) are one batch with "
     "the\n"
     "key PREFIX-NUMBER; PREFIX is made from the lines up to its end, so that the same file again\n"
     "changes nothing. Of an export, what the ledger wrote itself is passed over and counted, and\n"
     "limits of accounts are not in it; a run's payouts are refused: send its intents, or restore "
     "a\n"
     "backup. 16,777,216 Holds at most. A Hold that has ended meanwhile is refused, unless\n"
     "--holds-until lets none end before TIME (2026-01-31T00:00:00Z); then the ledger releases\n"
     "what is left, as before.\n"},
    {"backup", ledger_backup, "data with-key json ", 1, 1, "copy a data directory's ledger",
     "DIR [--data ron-data] [--with-key]",
     "DIR must be empty or missing. The server may run: what is copied is a beginning of the log\n"
     "that holds everything signed in it, and is verified afterwards. The key that signs is "
     "copied\n"
     "only with --with-key: whoever has it can sign in this log's name.\n"},
    {"restore", ledger_restore, "data json ", 1, 1, "a backup into an empty directory",
     "BACKUP --data DIR", "DIR must be empty or missing; it is verified afterwards.\n"},
    {"verify", ledger_verify, SERVER "vkey since ", 0, 1,
     "check a directory, a backup or a server, from leaves to signed head",
     "[DIR] [--vkey FILE] [--since NOTE]\n"
     "       ron ledger verify --url URL [--vkey FILE] [--since NOTE]",
     "Names the first broken link: log, frames, state, tiles, key, checkpoint, note; of a server\n"
     "checkpoint, tiles, entries, note. --since is a file with a checkpoint seen before: the log\n"
     "must still have it. DIR is a data directory or a backup (default ron-data).\n"
     "--vkey is the log's public key, had from somewhere else (a server's /checkpoint/vkey): then\n"
     "a log with entries must have a signed head. Without it the key in DIR is taken, if it is "
     "there.\n"},
    {"replay", ledger_replay_verb, "data json ", 0, 1, "do a directory's log again and measure",
     "[DIR]",
     "Prints entries per second and the root of the state, and compares the newest anchored\n"
     "states. The server may run.\n"},
    {"top", ledger_top, "url admin token-file data json interval count " TLS, 0, 0,
     "rate, lag and queues of a running server", "[--interval 1s] [--count N]",
     "Asks the admin listener too (--admin, RON_ADMIN_URL, http://127.0.0.1:7701).\n"},
};

static const struct {
    const char *name;
    size_t offset;
    bool flag;
} options[] = {
#define TEXT(name, member)                                \
    {                                                     \
        name, offsetof(struct ledger_args, member), false \
    }
#define FLAG(name, member)                               \
    {                                                    \
        name, offsetof(struct ledger_args, member), true \
    }
    FLAG("json", json),
    FLAG("with-key", with_key),
    FLAG("transfer", transfer),
    FLAG("mint", mint),
    FLAG("balance", balance),
    TEXT("url", url),
    TEXT("admin", admin),
    TEXT("data", data),
    TEXT("token-file", token_file),
    TEXT("asset", asset),
    TEXT("nonce", nonce),
    TEXT("key", key),
    TEXT("id", id),
    TEXT("memo", memo),
    TEXT("account", account),
    TEXT("after", after),
    TEXT("from", from),
    TEXT("limit", limit),
    TEXT("at-seq", at_seq),
    TEXT("format", format),
    TEXT("out", out),
    TEXT("save", save),
    TEXT("vkey", vkey),
    TEXT("since", since),
    TEXT("chunk", chunk),
    TEXT("interval", interval),
    TEXT("count", count),
    TEXT("holds-until", holds_until),
    TEXT("ca", ca),
    TEXT("host", host),
    TEXT("client-cert", client_cert),
    TEXT("client-key", client_key),
#undef TEXT
#undef FLAG
};

static void print_usage(FILE *out)
{
    fputs("usage: ron ledger VERB [WORD]... [OPTION]...\n\nverbs:\n", out);
    for (size_t i = 0; i < RON_ARRAY_COUNT(verbs); i++)
        fprintf(out, "  %-8s %s\n", verbs[i].name, verbs[i].summary);
    fputs(
        "\n"
        "--json             results as JSON on stdout, refusals as the server's envelope on "
        "stderr\n"
        "--url URL          the server; else RON_URL, else http://127.0.0.1:7700\n"
        "--ca FILE          with https://ADDRESS:PORT: who signed the server's certificate; else\n"
        "                   RON_CA_FILE, else the system's authorities\n"
        "--host NAME        the name in that certificate; default the address\n"
        "--client-cert FILE --client-key FILE  ours, where the server asks for one\n"
        "--token-file FILE  its token; else RON_TOKEN_FILE, else DIR/operator.token\n"
        "--data DIR         the data directory; default ron-data\n"
        "\n"
        "A token is never an argument. `ron ledger VERB --help` explains one verb.\n"
        "\n"
        "exit codes: 0 done, 1 failed, 2 wrong usage, 3 damaged or not proven, 4 not a ledger's\n"
        "or another log's, 5 written by another version, 6 refused by the server, 7 no answer\n",
        out);
}

static void print_verb_usage(FILE *out, const struct verb *verb)
{
    fprintf(out, "usage: ron ledger %s %s\n\n%s.\n%s", verb->name, verb->usage, verb->summary,
            verb->help);
}

/* --- Words ------------------------------------------------------------------------------------ */

int ledger_failed(const struct ledger_args *args, const struct ron_errinfo *info)
{
    fprintf(stderr, "ron ledger %s: %s\n", args->verb, info->message);
    return CMD_FAILED;
}

int ledger_usage(const struct ledger_args *args, const char *format, ...)
{
    va_list list;

    fprintf(stderr, "ron ledger %s: ", args->verb);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, "; see ron ledger %s --help\n", args->verb);
    return CMD_USAGE;
}

bool ledger_number(const struct ledger_args *args, const char *name, const char *text,
                   uint64_t otherwise, uint64_t least, uint64_t most, uint64_t *ret_value)
{
    *ret_value = otherwise;
    if (text == NULL)
        return true;
    if (ron_decimal_parse_u64(ron_slice_text(text), ret_value, NULL) == RON_ERR_OK &&
        *ret_value >= least && *ret_value <= most)
        return true;
    (void)ledger_usage(args, "--%s: a number from %llu to %llu, not '%s'", name,
                       (unsigned long long)least, (unsigned long long)most, text);
    return false;
}

void ledger_progress(const struct ledger_args *args, const char *what, uint64_t done,
                     uint64_t total)
{
    enum { WIDTH = 30 };
    static const char full[] = "##############################";
    const unsigned __int128 part = total == 0 ? 0 : (unsigned __int128)done * WIDTH / total;
    const int filled = part > WIDTH ? WIDTH : (int)part;

    if (!args->bar)
        return;
    if (what == NULL) {
        fputs("\r\033[K", stderr);
        return;
    }
    if (total == 0)
        fprintf(stderr, "\r%s %llu\033[K", what, (unsigned long long)done);
    else
        fprintf(stderr, "\r%s [%-*.*s] %llu of %llu\033[K", what, WIDTH, filled, full,
                (unsigned long long)done, (unsigned long long)total);
}

/* --- The command line ------------------------------------------------------------------------- */

static bool takes(const struct verb *verb, const char *name)
{
    const size_t size = strlen(name);

    for (const char *at = verb->options; (at = strstr(at, name)) != NULL; at += size)
        if ((at == verb->options || at[-1] == ' ') && at[size] == ' ')
            return true;
    return false;
}

/* How many arguments it was; 0: wrong. */
static int take(const struct verb *verb, int argc, char **argv, struct ledger_args *args)
{
    const char *word = argv[0];

    if (word[0] != '-' || word[1] == '\0') {
        if (args->words_count == LEDGER_WORDS_MAX)
            return 0;
        args->words[args->words_count++] = word;
        return 1;
    }
    for (size_t i = 0; i < RON_ARRAY_COUNT(options); i++) {
        void *place = (char *)args + options[i].offset;

        if (strncmp(word, "--", 2) != 0 || strcmp(word + 2, options[i].name) != 0 ||
            !takes(verb, options[i].name))
            continue;
        if (options[i].flag) {
            *(bool *)place = true;
            return 1;
        }
        if (argc < 2 || *(const char **)place != NULL)
            return 0; /* no value, or twice */
        *(const char **)place = argv[1];
        return 2;
    }
    return 0;
}

static int run_verb(const struct verb *verb, int argc, char **argv) RON_BLOCKS
{
    struct ledger_args args = {.verb = verb->name, .bar = isatty(STDERR_FILENO) == 1};

    for (int i = 0; i < argc;) {
        int taken;

        if (strcmp(argv[i], "--help") == 0) {
            print_verb_usage(stdout, verb);
            return CMD_OK;
        }
        taken = take(verb, argc - i, argv + i, &args);
        if (taken == 0) /* the word itself may be a token: options only */
            return ledger_usage(&args, "unexpected argument, or its value is missing: %s",
                                argv[i][0] == '-' ? argv[i] : "(a word too many)");
        i += taken;
    }
    if (args.words_count < verb->words_min || args.words_count > verb->words_max) {
        print_verb_usage(stderr, verb);
        return CMD_USAGE;
    }
    return verb->run(&args);
}

int cmd_ledger(int argc, char **argv) RON_BLOCKS
{
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        print_usage(argc < 2 ? stderr : stdout);
        return argc < 2 ? CMD_USAGE : CMD_OK;
    }
    for (size_t i = 0; i < RON_ARRAY_COUNT(verbs); i++)
        if (strcmp(argv[1], verbs[i].name) == 0)
            return run_verb(&verbs[i], argc - 2, argv + 2);
    fprintf(stderr, "ron ledger: no verb '%s'\n\n", argv[1]);
    print_usage(stderr);
    return CMD_USAGE;
}
