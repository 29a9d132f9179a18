/*
 * route.h - one table of routes: what dispatch, scopes, OpenAPI, /debug/topology and metric labels
 * are all made of.
 *
 * A role hands in its rows, constant and named; the table is put together once, before the first
 * connection, and refuses two rows that could match one request. A path is literal parts and
 * parameters: "/entries/{id}", and as its last part "{rest...}" for all that follows.
 */
#ifndef RON_IO_ROUTE_H
#define RON_IO_ROUTE_H

#include "io/http_head.h"

struct io_request; /* request.h */

enum {
    IO_ROUTES_MAX = 256,
    IO_ROUTE_PARAMS_MAX = 4,
};
enum io_route_flags {
    IO_ROUTE_WRITE = 1,  /* charged to the role's write rate; refused while draining */
    IO_ROUTE_ADMIN = 2,  /* on the admin listener, else on the API listener */
    IO_ROUTE_BOTH = 4,   /* on both */
    IO_ROUTE_STREAM = 8, /* answers with server-sent events */
    IO_ROUTE_CALL = 16,  /* of an operation of OAP/1: its body names a route (oap_call.h) */
};

typedef void io_handler_fn(void *context, struct io_request *request);

/* A parameter beside those of the path. */
struct io_param {
    const char *name, *schema; /* schema: JSON of an OpenAPI schema object */
    const char *summary;
    bool required;
};
/* The list of a row at file scope: IO_PARAMS({"limit", U64, "elements of a page"}). */
#define IO_PARAMS(...) ((const struct io_param[]){__VA_ARGS__, {.name = NULL}})

struct io_route {
    enum http_method method; /* HEAD is answered by GET's handler without its body */
    const char *path;
    const char *role;     /* metric label and budget: "ledger"; "server" for what all share */
    const char *name;     /* endpoint label and OpenAPI operationId: "ledger_ingest" */
    const char *scope;    /* needed in the capability; NULL: public */
    uint32_t flags;       /* enum io_route_flags */
    uint32_t body_max;    /* 0: takes no body */
    const char *media;    /* of the body it takes: "application/json"; NULL with body_max 0 */
    const char *replies;  /* media type of a 200 */
    uint32_t deadline_ms; /* 0: the server's; answered 504 when it passes */
    const char *summary;  /* one line for OpenAPI and people */
    const struct io_param *query;  /* io_query_only holds requests to it; NULL: nothing */
    const struct io_param *fields; /* of the head; NULL: none of its own */
    const char *request_schema, *reply_schema; /* JSON of an OpenAPI schema object, or NULL */
    io_handler_fn *handler;                    /* on a loop thread: must not block */
};

struct io_routes; /* opaque */
enum ron_err io_routes_new(struct io_routes **ret_routes, struct ron_errinfo *reterr) RON_MUST_USE;
struct io_routes *io_routes_free(struct io_routes *routes);
/* Rows are borrowed for the table's life; context goes to their handlers. RON_ERR_CONFLICT: two
 * rows match one request, or share a name. */
enum ron_err io_routes_add(struct io_routes *routes, const struct io_route *rows, size_t rows_count,
                           void *context, struct ron_errinfo *reterr) RON_MUST_USE;

struct io_route_match {
    const struct io_route *route;
    size_t number; /* of the row, 0..count-1: index of per-route arrays */
    void *context;
    struct ron_slice
        params[IO_ROUTE_PARAMS_MAX]; /* in the order of the path; escapes not decoded */
};
/* RON_ERR_NOT_FOUND; RON_ERR_METHOD_NOT_ALLOWED, then *ret_allowed has the methods as bits. A
 * literal part wins over a parameter. No allocation. */
enum ron_err io_routes_match(const struct io_routes *routes, bool admin, enum http_method method,
                             struct ron_slice path, struct io_route_match *ret_match,
                             uint32_t *ret_allowed, struct ron_errinfo *reterr) RON_MUST_USE;

size_t io_routes_count(const struct io_routes *routes);
const struct io_route *io_routes_at(const struct io_routes *routes, size_t number);
/* Append the OpenAPI 3.1 document. RON_ERR_TOO_LARGE, RON_ERR_NO_MEMORY. */
enum ron_err io_routes_openapi(const struct io_routes *routes, const char *version,
                               struct ron_buf *buf, struct ron_errinfo *reterr) RON_MUST_USE;

#endif
