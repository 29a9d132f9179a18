/*
 * ledger_impl.h - what the verbs of `ron ledger` share: arguments, the server, replies as JSON,
 * data directories, progress. Private to src/cli/ledger*.c.
 */
#ifndef RON_CLI_LEDGER_IMPL_H
#define RON_CLI_LEDGER_IMPL_H

#include <stdio.h>

#include "base/arena.h"
#include "base/decimal.h"
#include "cli/command.h"
#include "cli/ledger_row.h"
#include "io/client.h"
#include "io/replace.h"

enum {
    /* Exit codes beyond command.h. */
    CMD_REFUSED = 6,   /* the server's answer is an error */
    CMD_UNREACHED = 7, /* no answer; whether it was carried out may be unknown */

    LEDGER_WORDS_MAX = 4,
    LEDGER_ASK_MS = 30000, /* for one answer */
};

/* The command line, taken apart (ledger.c). Texts are NULL where they were not given. */
struct ledger_args {
    const char *verb;
    bool json, with_key, transfer, mint, balance;
    const char *url, *admin, *token_file, *data;
    const char *ca, *host, *client_cert, *client_key; /* with https */
    const char *asset, *nonce, *key, *id, *memo;
    const char *account, *after, *from, *limit, *at_seq;
    const char *format, *out, *save, *vkey, *since, *chunk, *holds_until;
    const char *interval, *count;
    const char *words[LEDGER_WORDS_MAX]; /* without dashes */
    int words_count;
    bool bar; /* stderr is a terminal */
};

int ledger_ingest(const struct ledger_args *args) RON_BLOCKS;
int ledger_balance(const struct ledger_args *args) RON_BLOCKS;
int ledger_history(const struct ledger_args *args) RON_BLOCKS;
int ledger_entries(const struct ledger_args *args) RON_BLOCKS;
int ledger_holds(const struct ledger_args *args) RON_BLOCKS;
int ledger_proof(const struct ledger_args *args) RON_BLOCKS;
int ledger_assets(const struct ledger_args *args) RON_BLOCKS;
int ledger_limits(const struct ledger_args *args) RON_BLOCKS;
int ledger_export(const struct ledger_args *args) RON_BLOCKS;
int ledger_import(const struct ledger_args *args) RON_BLOCKS;
int ledger_backup(const struct ledger_args *args) RON_BLOCKS;
int ledger_restore(const struct ledger_args *args) RON_BLOCKS;
int ledger_verify(const struct ledger_args *args) RON_BLOCKS;
int ledger_verify_url(const struct ledger_args *args) RON_BLOCKS;
int ledger_replay_verb(const struct ledger_args *args) RON_BLOCKS;
int ledger_top(const struct ledger_args *args) RON_BLOCKS;

/* --- ledger.c: words ------------------------------------------------------------------------- */

int ledger_failed(const struct ledger_args *args, const struct ron_errinfo *info); /* CMD_FAILED */
int ledger_usage(const struct ledger_args *args, const char *format, ...) RON_PRINTF(2, 3);
/* A number of the command line; `otherwise` where it was not given. False: said why. */
bool ledger_number(const struct ledger_args *args, const char *name, const char *text,
                   uint64_t otherwise, uint64_t least, uint64_t most, uint64_t *ret_value);
/* On a terminal: how far it is. `what` NULL: wipe the line. */
void ledger_progress(const struct ledger_args *args, const char *what, uint64_t done,
                     uint64_t total);

/* --- ledger_session.c: the server ------------------------------------------------------------ */

struct session {
    const struct ledger_args *args;
    struct io_client *client;
    struct ron_secret token; /* may be empty */
    struct io_client_reply reply;
    struct ron_buf path;
};
/* The address: --url, RON_URL, http://127.0.0.1:7700; of https the authority: --ca, RON_CA_FILE,
 * the system's, and the name in the certificate: --host, else the address. The token: --token-file,
 * RON_TOKEN_FILE, DATA/operator.token where there is one. CMD_OK, or said why; close it all the
 * same. */
int session_open(struct session *session, const struct ledger_args *args) RON_BLOCKS;
/* The admin listener instead: --admin, RON_ADMIN_URL, http://127.0.0.1:7701; no token. */
int session_open_admin(struct session *session, const struct ledger_args *args) RON_BLOCKS;
void session_close(struct session *session);
/* Begin a path, and add a parameter; NULL adds nothing. */
void path_begin(struct session *session, const char *path);
void path_segment(struct session *session, const char *text); /* percent-encoded, '/' too */
void path_query(struct session *session, const char *name, const char *value);
void path_query_u64(struct session *session, const char *name, uint64_t value);
/* GET the path, or POST the body with an idempotency key (NULL: none). CMD_OK: the status is 200
 * and the reply is in session->reply. Else said why: CMD_REFUSED, CMD_UNREACHED. */
int session_get(struct session *session) RON_BLOCKS;
/* The same of a path, its text appended to buf. */
int session_get_text(struct session *session, const char *path, struct ron_buf *buf) RON_BLOCKS;
int session_post(struct session *session, struct ron_slice body, const char *key) RON_BLOCKS;
/* The same, silent: RON_ERR_OK with any status. */
enum ron_err session_ask(struct session *session, enum http_method method, struct ron_slice body,
                         const char *key, struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
int session_refused(const struct session *session); /* say the envelope of the reply */
struct ron_slice session_body(const struct session *session);

/* --- ledger_json.c: replies ------------------------------------------------------------------ */

/* Call fn for each element of an array of objects; the arena is reset for each. */
typedef int row_fn(void *context, const struct row *row, struct ron_slice object);
int rows_each(const struct ledger_args *args, struct ron_slice array, row_fn *fn, void *context);
/* The members of an object as lines, or the text as it stands with --json. */
int print_object(const struct ledger_args *args, struct ron_slice object);

/* A column of a table: the first of its members that is there. */
struct column {
    const char *title;
    int width;
    const char *names[3];
};
void print_titles(const struct column *columns, size_t count);
void print_row(const struct column *columns, size_t count, const struct row *row);

/* --- ledger_dir.c: directories --------------------------------------------------------------- */

/* One with a ledger in it: --data DIR, or the first word if there is one. Else said what was
 * `expected`: CMD_FOREIGN (it has none), CMD_FAILED. */
int dir_open(const struct ledger_args *args, const char *path, const char *expected,
             struct io_vfs **ret_vfs) RON_BLOCKS;
#define LEDGER_DIR_EXPECTED "a data directory (of ron serve) or a backup (of ron ledger backup)"
/* One to fill, made where it is missing. */
int dir_make(const struct ledger_args *args, const char *path, bool *ret_made,
             struct io_vfs **ret_vfs) RON_BLOCKS;
/* A file that a person named: it appears whole or not at all. Of any size, in bounded memory. */
struct named {
    struct io_vfs *vfs; /* NULL: none is being written */
    struct io_replace replace;
    void *memory;
    uint8_t *piece; /* pages of it, which go to the disk when they are full */
    size_t piece_size;
    uint64_t written; /* before the piece */
};
/* Zeros are none, for named_abandon too. CMD_OK: the caller ends it with commit or abandon. */
int named_begin(struct named *named, const struct ledger_args *args, const char *path,
                const char *suffix) RON_BLOCKS;
enum ron_err named_put(struct named *named, struct ron_slice bytes,
                       struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
int named_commit(struct named *named, const struct ledger_args *args) RON_BLOCKS;
void named_abandon(struct named *named) RON_BLOCKS;
/* All of it at once. */
int write_named(const struct ledger_args *args, const char *path, const char *suffix,
                struct ron_slice bytes) RON_BLOCKS;
/* CMD_DAMAGED, CMD_FOREIGN, CMD_VERSION or CMD_FAILED, as a check of stored data ended. */
int damage_status(enum ron_err err);

#endif
