/*
 * openapi.c - the table of routes as an OpenAPI 3.1 document. See route.h.
 */
#include "base/assert.h"
#include "base/json_write.h"
#include "io/route.h"

static void put_member(struct ron_json_writer *writer, const char *name, const char *text)
{
    ron_json_put_name(writer, name);
    ron_json_put_text(writer, text);
}

/* "/a/{rest...}" is "/a/{rest}" there. */
static void put_path(struct ron_json_writer *writer, const char *path)
{
    const char *dots = strstr(path, "...}");
    char text[256];

    if (dots == NULL) {
        ron_json_put_name(writer, path);
        return;
    }
    RON_ASSERT(strlen(path) < sizeof(text));
    memcpy(text, path, (size_t)(dots - path));
    text[dots - path] = '}';
    text[dots - path + 1] = '\0';
    ron_json_put_name(writer, text);
}

static void put_parameter(struct ron_json_writer *writer, const char *in, struct ron_slice name,
                          const struct io_param *param)
{
    ron_json_put_object_begin(writer);
    ron_json_put_name(writer, "name");
    ron_json_put_string(writer, name);
    put_member(writer, "in", in);
    if (param->summary != NULL)
        put_member(writer, "description", param->summary);
    ron_json_put_name(writer, "required");
    ron_json_put_bool(writer, param->required);
    ron_json_put_name(writer, "schema");
    ron_json_put_raw(writer, ron_slice_text(param->schema));
    ron_json_put_object_end(writer);
}

static void put_listed(struct ron_json_writer *writer, const char *in, const struct io_param *param)
{
    for (; param != NULL && param->name != NULL; param++)
        put_parameter(writer, in, ron_slice_text(param->name), param);
}

static void put_parameters(struct ron_json_writer *writer, const struct io_route *route)
{
    static const struct io_param part = {.schema = "{\"type\":\"string\"}", .required = true};

    if (strchr(route->path, '{') == NULL && route->query == NULL && route->fields == NULL)
        return;
    ron_json_put_name(writer, "parameters");
    ron_json_put_array_begin(writer);
    for (const char *at = strchr(route->path, '{'); at != NULL; at = strchr(at, '{')) {
        at++;
        put_parameter(writer, "path", ron_slice_of(at, strcspn(at, ".}")), &part);
    }
    put_listed(writer, "query", route->query);
    put_listed(writer, "header", route->fields);
    ron_json_put_array_end(writer);
}

static void put_content(struct ron_json_writer *writer, const char *media, const char *schema)
{
    ron_json_put_name(writer, "content");
    ron_json_put_object_begin(writer);
    ron_json_put_name(writer, media);
    ron_json_put_object_begin(writer);
    if (schema != NULL) {
        ron_json_put_name(writer, "schema");
        ron_json_put_raw(writer, ron_slice_text(schema));
    }
    ron_json_put_object_end(writer);
    ron_json_put_object_end(writer);
}

static void put_operation(struct ron_json_writer *writer, const struct io_route *route)
{
    static const char *const verbs[] = {"get", "head", "post", "put", "delete", "options"};

    ron_json_put_name(writer, verbs[route->method]);
    ron_json_put_object_begin(writer);
    put_member(writer, "operationId", route->name);
    put_member(writer, "summary", route->summary);
    ron_json_put_name(writer, "tags");
    ron_json_put_array_begin(writer);
    ron_json_put_text(writer, route->role);
    ron_json_put_array_end(writer);
    put_parameters(writer, route);
    if (route->body_max > 0) {
        ron_json_put_name(writer, "requestBody");
        ron_json_put_object_begin(writer);
        ron_json_put_name(writer, "required");
        ron_json_put_bool(writer, true);
        put_content(writer, route->media, route->request_schema);
        ron_json_put_object_end(writer);
    }
    ron_json_put_name(writer, "responses");
    ron_json_put_object_begin(writer);
    ron_json_put_name(writer, "200");
    ron_json_put_object_begin(writer);
    put_member(writer, "description", "done");
    if (route->replies != NULL)
        put_content(writer, route->replies, route->reply_schema);
    ron_json_put_object_end(writer);
    ron_json_put_name(writer, "default");
    ron_json_put_raw(writer, RON_SLICE("{\"$ref\":\"#/components/responses/Error\"}"));
    ron_json_put_object_end(writer);
    ron_json_put_name(writer, "security");
    ron_json_put_array_begin(writer);
    if (route->scope != NULL) {
        ron_json_put_object_begin(writer);
        ron_json_put_name(writer, "capability");
        ron_json_put_array_begin(writer);
        ron_json_put_text(writer, route->scope);
        ron_json_put_array_end(writer);
        ron_json_put_object_end(writer);
    }
    ron_json_put_array_end(writer);
    ron_json_put_object_end(writer);
}

static bool path_came_before(const struct io_routes *routes, size_t number)
{
    for (size_t i = 0; i < number; i++)
        if (strcmp(io_routes_at(routes, i)->path, io_routes_at(routes, number)->path) == 0)
            return true;
    return false;
}

static void put_components(struct ron_json_writer *writer)
{
    static const char error_schema[] =
        "{\"description\":\"the error envelope\",\"content\":{\"application/json\":{\"schema\":"
        "{\"type\":\"object\",\"required\":[\"error\"],\"properties\":{\"error\":{\"type\":"
        "\"object\",\"required\":[\"code\",\"message\",\"retryable\",\"corr_id\"],\"properties\":{"
        "\"code\":{\"type\":\"string\"},\"message\":{\"type\":\"string\"},\"retryable\":{\"type\":"
        "\"boolean\"},\"corr_id\":{\"type\":\"string\"},\"details\":{\"type\":\"object\"}}}}}}}}";

    ron_json_put_name(writer, "components");
    ron_json_put_object_begin(writer);
    ron_json_put_name(writer, "responses");
    ron_json_put_object_begin(writer);
    ron_json_put_name(writer, "Error");
    ron_json_put_raw(writer, ron_slice_text(error_schema));
    ron_json_put_object_end(writer);
    ron_json_put_name(writer, "securitySchemes");
    ron_json_put_raw(writer, RON_SLICE("{\"capability\":{\"type\":\"http\",\"scheme\":\"bearer\","
                                       "\"bearerFormat\":\"macaroon v1\"}}"));
    ron_json_put_object_end(writer);
}

enum ron_err io_routes_openapi(const struct io_routes *routes, const char *version,
                               struct ron_buf *buf, struct ron_errinfo *reterr)
{
    struct ron_json_writer writer;

    ron_json_writer_init(&writer, buf, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    put_member(&writer, "openapi", "3.1.0");
    ron_json_put_name(&writer, "info");
    ron_json_put_object_begin(&writer);
    put_member(&writer, "title", "ron");
    put_member(&writer, "version", version);
    ron_json_put_object_end(&writer);
    ron_json_put_name(&writer, "paths");
    ron_json_put_object_begin(&writer);
    for (size_t i = 0; i < io_routes_count(routes); i++) {
        const char *path = io_routes_at(routes, i)->path;

        if (path_came_before(routes, i))
            continue;
        put_path(&writer, path);
        ron_json_put_object_begin(&writer);
        for (size_t j = i; j < io_routes_count(routes); j++)
            if (strcmp(io_routes_at(routes, j)->path, path) == 0)
                put_operation(&writer, io_routes_at(routes, j));
        ron_json_put_object_end(&writer);
    }
    ron_json_put_object_end(&writer);
    put_components(&writer);
    ron_json_put_object_end(&writer);
    return ron_json_writer_end(&writer, reterr);
}
