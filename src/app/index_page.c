/*
 * index_page.c - the page at `/`, for a person with a browser. See base_routes.h.
 */
#include "app/base_routes.h"
#include "base/bytes.h"

static void put_escaped(struct ron_buf *buf, const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        switch (*at) {
        case '&':
            ron_buf_put_text(buf, "&amp;");
            break;
        case '<':
            ron_buf_put_text(buf, "&lt;");
            break;
        case '>':
            ron_buf_put_text(buf, "&gt;");
            break;
        case '"':
            ron_buf_put_text(buf, "&quot;");
            break;
        case '\'':
            ron_buf_put_text(buf, "&#39;");
            break;
        default:
            ron_buf_put_byte(buf, (uint8_t)*at);
        }
    }
}

static void put_cell(struct ron_buf *buf, const char *text)
{
    ron_buf_put_text(buf, "<td>");
    put_escaped(buf, text);
    ron_buf_put_text(buf, "</td>");
}

/* "?a=&b=[&c=]": what may be left out stands in brackets. */
static void put_query(struct ron_buf *buf, const struct io_param *query)
{
    for (size_t i = 0; query != NULL && query[i].name != NULL; i++) {
        ron_buf_put_text(buf, query[i].required ? "" : "[");
        ron_buf_put_text(buf, i == 0 ? "?" : "&amp;");
        put_escaped(buf, query[i].name);
        ron_buf_put_text(buf, query[i].required ? "=" : "=]");
    }
}

static void put_route(struct ron_buf *buf, const struct io_route *route)
{
    bool both = (route->flags & IO_ROUTE_BOTH) != 0;
    bool link = both && route->method == HTTP_GET && strchr(route->path, '{') == NULL;

    ron_buf_put_text(buf, "<tr>");
    put_cell(buf, http_method_name(route->method));
    ron_buf_put_text(buf, "<td>");
    if (link) { /* the others may be on the other listener, or need a capability */
        ron_buf_put_text(buf, "<a href=\"");
        put_escaped(buf, route->path);
        ron_buf_put_text(buf, "\">");
    }
    put_escaped(buf, route->path);
    ron_buf_put_text(buf, link ? "</a>" : "");
    put_query(buf, route->query);
    ron_buf_put_text(buf, "</td>");
    put_cell(buf, both ? "both" : (route->flags & IO_ROUTE_ADMIN) != 0 ? "admin" : "api");
    put_cell(buf, route->scope == NULL ? "none" : route->scope);
    put_cell(buf, route->summary);
    ron_buf_put_text(buf, "</tr>\n");
}

void app_index_write(const struct io_routes *routes, const char *version, struct ron_buf *buf)
{
    ron_buf_put_text(
        buf, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>ron</title>\n"
             "<style>body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
             "table{border-collapse:collapse}td,th{text-align:left;padding:.2em 1em .2em 0;"
             "vertical-align:top}td:nth-child(2){font-family:monospace}</style></head>\n<body>\n"
             "<h1>ron ");
    put_escaped(buf, version);
    ron_buf_put_text(
        buf,
        "</h1>\n<p>This is a server of <b>ron</b>, the economic plane of a network: it turns "
        "measured work into money that nobody can forge, double-spend or lose.</p>\n"
        "<p>Programs talk to it in JSON over HTTP; <a href=\"/openapi.json\">/openapi.json</a> "
        "describes every route. Requests carry a capability, <code>Authorization: Bearer "
        "TOKEN</code>; the operator&#39;s was written to <code>operator.token</code> in the data "
        "directory on the first start, and <code>ron token</code> makes narrower ones. <a "
        "href=\"/readyz\">/readyz</a> says whether work is accepted. Metrics, diagnostics and "
        "administration are on the admin address.</p>\n"
        "<table><tr><th>method</th><th>path</th><th>listener</th><th>scope</th><th></th></tr>\n");
    for (size_t i = 0; i < io_routes_count(routes); i++)
        put_route(buf, io_routes_at(routes, i));
    ron_buf_put_text(buf, "</table>\n</body></html>\n");
}
