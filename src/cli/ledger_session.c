/*
 * ledger_session.c - a running server, as the verbs of `ron ledger` ask it. See ledger_impl.h.
 *
 * The token is read from a file and lives in a ron_secret: never an argument, never in a message.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/ledger_impl.h"
#include "io/path_file.h"

enum { PATH_SIZE_MAX = 4096, TOKEN_SIZE_MAX = 4096, REPLY_SIZE_MAX = 8 << 20, FILE_SIZE_MAX = 512 };

static const char *first_of(const char *flag, const char *variable, const char *otherwise)
{
    const char *value = flag != NULL ? flag : getenv(variable);

    return value != NULL && value[0] != '\0' ? value : otherwise;
}

/* One that was named must be there; the operator's own may be missing. */
static enum ron_err load_token(struct session *session, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ledger_args *args = session->args;
    const char *named = first_of(args->token_file, "RON_TOKEN_FILE", NULL);
    char path[FILE_SIZE_MAX];
    struct ron_errinfo info = {0};
    struct ron_slice token;
    struct ron_buf buf;
    enum ron_err err;

    (void)snprintf(path, sizeof(path), "%s/operator.token",
                   args->data != NULL ? args->data : "ron-data");
    ron_buf_init(&buf, TOKEN_SIZE_MAX);
    err = ron_buf_reserve(&buf, TOKEN_SIZE_MAX, &info); /* one piece: no copy stays behind */
    if (err == RON_ERR_OK)
        err = io_path_read(named != NULL ? named : path, TOKEN_SIZE_MAX, &buf, &info);
    if (err == RON_ERR_NOT_FOUND && named == NULL) {
        ron_buf_fini(&buf);
        return RON_ERR_OK;
    }
    token = ron_buf_slice(&buf);
    while (token.size > 0 &&
           (token.data[token.size - 1] == '\n' || token.data[token.size - 1] == '\r'))
        token.size--;
    if (err == RON_ERR_OK && token.size == 0)
        err = ron_fail(&info, RON_ERR_MALFORMED, "the token file %s is empty",
                       named != NULL ? named : path);
    if (err == RON_ERR_OK)
        err = ron_secret_init(&session->token, token, &info);
    if (buf.data != NULL)
        ron_wipe(buf.data, buf.capacity);
    ron_buf_fini(&buf);
    if (err != RON_ERR_OK && reterr != NULL)
        *reterr = info;
    return err;
}

/* The authorities of the machine, where its distribution keeps them in one file. */
static const char system_ca[] = "/etc/ssl/certs/ca-certificates.crt";

/* Whom to trust: with https alone. The name in the certificate is that of the URL, unless given. */
static bool tls_of(const struct ledger_args *args, const char *url, char *host, size_t host_size,
                   struct io_client_tls *ret_tls)
{
    const char *address = url + strlen("https://");
    size_t size;

    if (strncmp(url, "https://", strlen("https://")) != 0)
        return false;
    if (address[0] == '[') { /* [::1]:7700 */
        address++;
        size = strcspn(address, "]");
    } else {
        size = strcspn(address, ":/");
    }
    (void)snprintf(host, host_size, "%.*s", (int)size, address);
    *ret_tls = (struct io_client_tls){
        .ca = first_of(args->ca, "RON_CA_FILE", system_ca),
        .host = args->host != NULL ? args->host : host,
        .certificate = args->client_cert,
        .key = args->client_key,
    };
    return true;
}

static int open_at(struct session *session, const struct ledger_args *args, const char *url,
                   bool with_token) RON_BLOCKS
{
    char host[FILE_SIZE_MAX];
    struct io_client_tls tls;
    const struct io_client_options options = {
        .url = url,
        .tls = tls_of(args, url, host, sizeof(host), &tls) ? &tls : NULL,
        .retries_max = 2,
        .body_max = REPLY_SIZE_MAX};
    struct ron_errinfo info = {0};
    enum ron_err err = RON_ERR_OK;

    *session = (struct session){.args = args};
    io_client_reply_init(&session->reply);
    ron_buf_init(&session->path, PATH_SIZE_MAX);
    if (with_token && options.tls == NULL &&
        (args->ca != NULL || args->host != NULL || args->client_cert != NULL ||
         args->client_key != NULL)) /* the token would go in clear */
        return ledger_usage(args, "--ca, --host, --client-cert, --client-key: not without https");
    if ((args->client_cert == NULL) != (args->client_key == NULL))
        return ledger_usage(args, "--client-cert and --client-key need each other");
    if (with_token)
        err = load_token(session, &info);
    if (err == RON_ERR_OK)
        err = io_client_new(&options, &session->client, &info);
    return err == RON_ERR_OK ? CMD_OK : ledger_failed(args, &info);
}

int session_open(struct session *session, const struct ledger_args *args)
{
    return open_at(session, args, first_of(args->url, "RON_URL", "http://127.0.0.1:7700"), true);
}

int session_open_admin(struct session *session, const struct ledger_args *args)
{
    return open_at(session, args, first_of(args->admin, "RON_ADMIN_URL", "http://127.0.0.1:7701"),
                   false);
}

void session_close(struct session *session)
{
    session->client = io_client_free(session->client);
    ron_secret_fini(&session->token);
    io_client_reply_fini(&session->reply);
    ron_buf_fini(&session->path);
}

/* --- Paths ------------------------------------------------------------------------------------ */

void path_begin(struct session *session, const char *path)
{
    ron_buf_reset(&session->path);
    ron_buf_put_text(&session->path, path);
}

void path_segment(struct session *session, const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        const uint8_t byte = (uint8_t)*at;
        const bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                           (byte >= '0' && byte <= '9') || strchr("-._~", byte) != NULL;

        if (plain)
            ron_buf_put_byte(&session->path, byte);
        else
            ron_buf_put_format(&session->path, "%%%02X", byte);
    }
}

void path_query(struct session *session, const char *name, const char *value)
{
    const bool first = memchr(session->path.data, '?', session->path.size) == NULL;

    if (value == NULL)
        return;
    ron_buf_put_format(&session->path, "%c%s=", first ? '?' : '&', name);
    path_segment(session, value);
}

void path_query_u64(struct session *session, const char *name, uint64_t value)
{
    char digits[RON_DECIMAL_U64_SIZE];

    (void)ron_decimal_print_u64(value, digits);
    path_query(session, name, digits);
}

/* --- Questions -------------------------------------------------------------------------------- */

enum ron_err session_ask(struct session *session, enum http_method method, struct ron_slice body,
                         const char *key, struct ron_errinfo *reterr)
{
    struct io_client_request request = {
        .method = method,
        .media = body.size > 0 ? "application/json" : NULL,
        .body = body,
        .token = ron_secret_size(&session->token) > 0 ? &session->token : NULL,
        .idempotency_key = key,
    };
    enum ron_err err;

    ron_buf_put_byte(&session->path, '\0');
    err = ron_buf_check(&session->path, reterr);
    if (err != RON_ERR_OK)
        return err;
    request.path = (const char *)session->path.data;
    return io_client_call(session->client, &request, rt_deadline_after_ms(LEDGER_ASK_MS),
                          &session->reply, reterr);
}

struct ron_slice session_body(const struct session *session)
{
    return session->reply.body;
}

int session_refused(const struct session *session)
{
    const struct ledger_args *args = session->args;
    const struct ron_slice body = session->reply.body;
    const char *hint = session->reply.head.status == 401 && ron_secret_size(&session->token) == 0
                           ? " (no token was sent: --token-file, or --data of the server)"
                           : "";
    struct ron_arena arena = {0};
    struct ron_slice details;
    struct row envelope, error;

    if (ron_arena_init(&arena, 2 * body.size + 64, NULL) != RON_ERR_OK ||
        row_read(body, &arena, &envelope, NULL) != RON_ERR_OK ||
        row_read(row_text(&envelope, "error"), &arena, &error, NULL) != RON_ERR_OK) {
        fprintf(stderr, "ron ledger %s: the server answered status %d%s\n", args->verb,
                session->reply.head.status, hint);
    } else if (args->json) {
        fprintf(stderr, "%.*s\n", RON_SLICE_FMT(body));
    } else {
        details = row_text(&error, "details");
        if (ron_slice_equal(details, RON_SLICE("{}")))
            details.size = 0;
        fprintf(stderr, "ron ledger %s: %.*s: %.*s%s%s%.*s\n", args->verb,
                RON_SLICE_FMT(row_text(&error, "code")), RON_SLICE_FMT(row_text(&error, "message")),
                hint, details.size > 0 ? " " : "", RON_SLICE_FMT(details));
    }
    ron_arena_fini(&arena);
    return CMD_REFUSED;
}

static int end_ask(struct session *session, enum ron_err err, const struct ron_errinfo *info)
{
    if (err != RON_ERR_OK) {
        fprintf(stderr, "ron ledger %s: %s\n", session->args->verb, info->message);
        return CMD_UNREACHED;
    }
    return session->reply.head.status == 200 ? CMD_OK : session_refused(session);
}

int session_get(struct session *session)
{
    struct ron_errinfo info = {0};

    return end_ask(session,
                   session_ask(session, HTTP_GET, (struct ron_slice){NULL, 0}, NULL, &info), &info);
}

int session_get_text(struct session *session, const char *path, struct ron_buf *buf)
{
    struct ron_errinfo info = {0};
    int status;

    path_begin(session, path);
    status = session_get(session);
    if (status == CMD_OK && ron_buf_append(buf, session_body(session).data,
                                           session_body(session).size, &info) != RON_ERR_OK)
        status = ledger_failed(session->args, &info);
    return status;
}

int session_post(struct session *session, struct ron_slice body, const char *key)
{
    struct ron_errinfo info = {0};

    return end_ask(session, session_ask(session, HTTP_POST, body, key, &info), &info);
}
