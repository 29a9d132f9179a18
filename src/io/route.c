/*
 * route.c - the table of routes as a tree of path parts. See route.h.
 *
 * A node is one part of a path; its children are literals, at most one parameter and at most one
 * rest. A literal wins over a parameter, a parameter over a rest; where the better choice leads
 * nowhere, the next is tried.
 */
#include "io/route.h"

#include "base/assert.h"
#include "base/json_write.h"
#include "base/mem.h"

enum {
    PARTS_MAX = 10,
    NODES_MAX = 1024,
    ROOT = 0, /* also "none", as a link */
};

enum part_kind { PART_LITERAL, PART_PARAM, PART_REST };

struct node {
    enum part_kind kind;
    struct ron_slice text; /* of a literal; name of a parameter */
    uint16_t first_child, next;
    /* Row + 1 for each method, of the API and of the admin listener; 0: none. */
    uint16_t rows[2][HTTP_OTHER];
};

struct row {
    const struct io_route *route;
    void *context;
};

struct io_routes {
    size_t rows_count;
    size_t nodes_count;
    struct row rows[IO_ROUTES_MAX];
    struct node nodes[NODES_MAX];
    /* Where to begin among the root's children, by the first byte of the part: those before are
     * literals with another one. Most routes hang there, and each request would pass by half of
     * them. */
    uint16_t first[256];
};

enum ron_err io_routes_new(struct io_routes **ret_routes, struct ron_errinfo *reterr)
{
    struct io_routes *routes = ron_mem_alloc_array(1, sizeof(*routes));

    if (routes == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "table of routes");
    routes->nodes_count = 1;
    *ret_routes = routes;
    return RON_ERR_OK;
}

struct io_routes *io_routes_free(struct io_routes *routes)
{
    return ron_mem_free(routes);
}

/* The part of the path that begins at text (behind a slash), up to the next slash. */
static struct ron_slice part_at(struct ron_slice text)
{
    const uint8_t *slash = text.size == 0 ? NULL : memchr(text.data, '/', text.size);

    return ron_slice_of(text.data, slash == NULL ? text.size : (size_t)(slash - text.data));
}

/* ---- Building ---- */

/* "{name}", "{name...}" or a literal. Routes are ours: a wrong one is a bug. */
static enum part_kind classify(struct ron_slice part, struct ron_slice *ret_text)
{
    bool param = part.size > 2 && part.data[0] == '{' && part.data[part.size - 1] == '}';

    *ret_text = part;
    if (!param)
        return PART_LITERAL;
    *ret_text = ron_slice_of(part.data + 1, part.size - 2);
    if (ret_text->size > 3 && memcmp(ret_text->data + ret_text->size - 3, "...", 3) == 0) {
        ret_text->size -= 3;
        return PART_REST;
    }
    return PART_PARAM;
}

static bool same_part(const struct node *node, enum part_kind kind, struct ron_slice text)
{
    return node->kind == kind && (kind != PART_LITERAL || ron_slice_equal(node->text, text));
}

/* The child for a part, made where it is missing. Children are in order of their kind, so that the
 * first that fits is the best. NODES_MAX is reached at rest: no more. */
static uint16_t child_for(struct io_routes *routes, uint16_t parent, enum part_kind kind,
                          struct ron_slice text)
{
    uint16_t *link = &routes->nodes[parent].first_child;
    struct node *child;

    while (*link != ROOT) {
        if (same_part(&routes->nodes[*link], kind, text))
            return *link;
        if (routes->nodes[*link].kind > kind)
            break;
        link = &routes->nodes[*link].next;
    }
    if (routes->nodes_count == NODES_MAX)
        return ROOT;
    child = &routes->nodes[routes->nodes_count];
    child->kind = kind;
    child->text = text;
    child->next = *link;
    *link = (uint16_t)routes->nodes_count++;
    return *link;
}

static void note_first(struct io_routes *routes)
{
    uint16_t child = routes->nodes[ROOT].first_child;
    uint16_t others;

    for (others = child; others != ROOT && routes->nodes[others].kind == PART_LITERAL;)
        others = routes->nodes[others].next;
    for (size_t byte = 0; byte < RON_ARRAY_COUNT(routes->first); byte++)
        routes->first[byte] = others;
    for (; child != others; child = routes->nodes[child].next) {
        const struct ron_slice text = routes->nodes[child].text;

        if (text.size > 0 && routes->first[text.data[0]] == others)
            routes->first[text.data[0]] = child;
    }
}

static enum ron_err find_leaf(struct io_routes *routes, const struct io_route *route,
                              uint16_t *ret_node, struct ron_errinfo *reterr)
{
    struct ron_slice rest = ron_slice_text(route->path);
    size_t params_count = 0;
    uint16_t node = ROOT;

    RON_ASSERT(rest.size > 0 && rest.data[0] == '/');
    for (size_t parts_count = 0; rest.size > 0; parts_count++) {
        struct ron_slice part, text;
        enum part_kind kind;

        rest = ron_slice_of(rest.data + 1, rest.size - 1);
        part = part_at(rest);
        rest = ron_slice_of(rest.data + part.size, rest.size - part.size);
        kind = classify(part, &text);
        params_count += kind != PART_LITERAL;
        RON_ASSERT(parts_count < PARTS_MAX && params_count <= IO_ROUTE_PARAMS_MAX);
        RON_ASSERT(kind != PART_REST || rest.size == 0);
        node = child_for(routes, node, kind, text);
        if (node == ROOT)
            return ron_fail(reterr, RON_ERR_BUSY, "more than %d parts of paths", NODES_MAX);
    }
    *ret_node = node;
    return RON_ERR_OK;
}

static enum ron_err add_row(struct io_routes *routes, const struct io_route *route, void *context,
                            struct ron_errinfo *reterr)
{
    bool on[2] = {(route->flags & IO_ROUTE_ADMIN) == 0,
                  (route->flags & (IO_ROUTE_ADMIN | IO_ROUTE_BOTH)) != 0};
    uint16_t node = ROOT;
    enum ron_err err;

    RON_ASSERT(route->method < HTTP_OTHER && route->method != HTTP_HEAD && route->handler != NULL);
    RON_ASSERT((route->body_max == 0) == (route->media == NULL));
    if (routes->rows_count == IO_ROUTES_MAX)
        return ron_fail(reterr, RON_ERR_BUSY, "more than %d routes", IO_ROUTES_MAX);
    for (size_t i = 0; i < routes->rows_count; i++)
        if (strcmp(routes->rows[i].route->name, route->name) == 0)
            return ron_fail(reterr, RON_ERR_CONFLICT, "two routes are named %s", route->name);
    err = find_leaf(routes, route, &node, reterr);
    if (err != RON_ERR_OK)
        return err;
    for (size_t i = 0; i < 2; i++)
        if (on[i] && routes->nodes[node].rows[i][route->method] != 0)
            return ron_fail(reterr, RON_ERR_CONFLICT, "two routes take %s %s",
                            http_method_name(route->method), route->path);
    routes->rows[routes->rows_count++] = (struct row){route, context};
    for (size_t i = 0; i < 2; i++)
        if (on[i])
            routes->nodes[node].rows[i][route->method] = (uint16_t)routes->rows_count;
    note_first(routes);
    return RON_ERR_OK;
}

enum ron_err io_routes_add(struct io_routes *routes, const struct io_route *rows, size_t rows_count,
                           void *context, struct ron_errinfo *reterr)
{
    for (size_t i = 0; i < rows_count; i++) {
        enum ron_err err = add_row(routes, &rows[i], context, reterr);

        if (err != RON_ERR_OK)
            return err;
    }
    return RON_ERR_OK;
}

/* ---- Matching ---- */

static bool has_rows(const struct node *node, bool admin)
{
    for (size_t i = 0; i < HTTP_OTHER; i++)
        if (node->rows[admin][i] != 0)
            return true;
    return false;
}

/* One step of the walk: which child was taken for the part that starts at `at`. */
struct step {
    uint16_t node;
    struct ron_slice at; /* what is left behind this node: empty, or begins with a slash */
    size_t params_count;
};

static bool accepts(const struct node *node, struct ron_slice part)
{
    switch (node->kind) {
    case PART_LITERAL: /* of all that are gone through, few agree in size and the first byte */
        return part.size == node->text.size &&
               (part.size == 0 || (part.data[0] == node->text.data[0] &&
                                   memcmp(part.data, node->text.data, part.size) == 0));
    case PART_PARAM:
    case PART_REST:
        return part.size > 0;
    }
    RON_UNREACHABLE();
}

/* The leaf for the path, by trying the best child first and going back where it leads nowhere. */
static bool find_node(const struct io_routes *routes, bool admin, struct ron_slice path,
                      struct ron_slice *params, uint16_t *ret_node)
{
    struct step steps[PARTS_MAX + 1]; /* written as it goes down: to clear all costs more than it */
    size_t depth = 0;
    uint16_t next = path.size > 1 ? routes->first[path.data[1]] : routes->nodes[ROOT].first_child;

    steps[0] = (struct step){ROOT, path, 0};
    for (;;) {
        struct step *top = &steps[depth];
        struct ron_slice after, part;

        if (top->at.size == 0 && has_rows(&routes->nodes[top->node], admin)) {
            *ret_node = top->node;
            return true;
        }
        if (top->at.size == 0 || depth == PARTS_MAX)
            next = ROOT;
        after = top->at.size == 0 ? top->at : ron_slice_of(top->at.data + 1, top->at.size - 1);
        part = part_at(after);
        while (next != ROOT && !accepts(&routes->nodes[next], part))
            next = routes->nodes[next].next;
        if (next == ROOT) {
            if (depth == 0)
                return false;
            next = routes->nodes[top->node].next;
            depth--;
            continue;
        }
        if (routes->nodes[next].kind == PART_REST)
            part = after;
        steps[depth + 1] = (struct step){
            next, ron_slice_of(after.data + part.size, after.size - part.size), top->params_count};
        if (routes->nodes[next].kind != PART_LITERAL)
            params[steps[depth + 1].params_count++] = part;
        next = routes->nodes[next].first_child;
        depth++;
    }
}

enum ron_err io_routes_match(const struct io_routes *routes, bool admin, enum http_method method,
                             struct ron_slice path, struct io_route_match *ret_match,
                             uint32_t *ret_allowed, struct ron_errinfo *reterr)
{
    enum http_method asked = method == HTTP_HEAD ? HTTP_GET : method;
    struct io_route_match match = {0};
    const struct node *node;
    uint16_t found = ROOT;

    if (path.size == 0 || path.data[0] != '/' ||
        !find_node(routes, admin, path, match.params, &found)) {
        if (method == HTTP_OPTIONS && ron_slice_equal(path, RON_SLICE("*"))) {
            *ret_allowed = 0;
            return ron_fail(reterr, RON_ERR_METHOD_NOT_ALLOWED, "OPTIONS * is not served");
        }
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "no such path");
    }
    node = &routes->nodes[found];
    if (asked == HTTP_OTHER || node->rows[admin][asked] == 0) {
        uint32_t allowed = 0;

        for (unsigned i = 0; i < HTTP_OTHER; i++)
            if (node->rows[admin][i] != 0)
                allowed |= 1u << i;
        if ((allowed & 1u << HTTP_GET) != 0)
            allowed |= 1u << HTTP_HEAD;
        *ret_allowed = allowed;
        return ron_fail(reterr, RON_ERR_METHOD_NOT_ALLOWED, "the path does not take this method");
    }
    match.number = node->rows[admin][asked] - 1u;
    match.route = routes->rows[match.number].route;
    match.context = routes->rows[match.number].context;
    *ret_match = match;
    return RON_ERR_OK;
}

size_t io_routes_count(const struct io_routes *routes)
{
    return routes->rows_count;
}

const struct io_route *io_routes_at(const struct io_routes *routes, size_t number)
{
    RON_ASSERT(number < routes->rows_count);
    return routes->rows[number].route;
}
