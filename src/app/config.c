/*
 * config.c - sources put together into one configuration. See config.h.
 */
#include "app/config_impl.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "io/server.h"

enum {
    ARENA_SIZE = 64 * 1024, /* texts and origins: 22 keys of at most 500 bytes */
    TREE_SIZE = 8 << 20,    /* of the file's nodes, while it is read */
    PATH_SIZE = 256,
};

struct loading {
    const struct config_sources *sources;
    struct config *config;
    struct ron_errinfo *reterr;
    size_t problems_count;
};

static void problem(struct loading *loading, const char *format, ...) RON_PRINTF(2, 3);
static void problem(struct loading *loading, const char *format, ...)
{
    char message[RON_ERR_MESSAGE_SIZE];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    if (loading->problems_count++ == 0)
        (void)ron_fail(loading->reterr, RON_ERR_MALFORMED, "%s", message);
    if (loading->sources->problem != NULL && loading->problems_count <= CONFIG_PROBLEMS_MAX)
        loading->sources->problem(loading->sources->context, message);
}

static bool find_key(struct ron_slice path, enum config_key *ret_key)
{
    for (unsigned i = 0; i < CONFIG__MAX; i++) {
        if (ron_slice_equal(path, ron_slice_text(config_rows[i].path))) {
            *ret_key = (enum config_key)i;
            return true;
        }
    }
    return false;
}

/* " did you mean server.listen?" or nothing. */
static void suggest(struct ron_slice path, char *ret_text, size_t size)
{
    const char *nearest = ron_nearest_name(path, &config_rows[0].path, sizeof(config_rows[0]),
                                           CONFIG__MAX);

    ret_text[0] = '\0';
    if (nearest != NULL)
        (void)snprintf(ret_text, size, "; did you mean %s?", nearest);
}

static const char *keep_text(struct loading *loading, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = ron_arena_alloc_bytes(&loading->config->arena, size);

    if (copy == NULL)
        return "?";
    memcpy(copy, text, size);
    return copy;
}

/* ---- The file ---- */

/* A quoted key may hold a dot, or a NUL where the text of its path would end; it is still one key
 * and names nothing. */
static bool is_plain(struct ron_slice key)
{
    return key.size > 0 && memchr(key.data, '.', key.size) == NULL &&
           memchr(key.data, '\0', key.size) == NULL;
}

static void take_node(struct loading *loading, const char *path, const struct ron_toml_node *node)
{
    const char *file = loading->sources->file_name;
    enum config_key key;
    struct config_value value = {0};
    struct ron_errinfo info = {0};
    char text[PATH_SIZE];

    if (!is_plain(node->key) || !find_key(ron_slice_text(path), &key)) {
        char shown[80];

        suggest(ron_slice_text(path), text, sizeof(text));
        problem(loading, "%s:%u:%u: unknown key %s%s", file, node->line, node->column,
                ron_printable(ron_slice_text(path), shown, sizeof(shown)), text);
        return;
    }
    if (config_value_node(&config_rows[key], node, &value, &loading->config->arena, &info) !=
        RON_ERR_OK) {
        problem(loading, "%s:%u:%u: %s %s", file, node->line, node->value_column, path,
                info.message);
        return;
    }
    (void)snprintf(text, sizeof(text), "%s:%u", file, node->line);
    value.origin = keep_text(loading, text);
    loading->config->values[key] = value;
}

/* Is `path` a section: the beginning of a key, up to a dot? */
static bool is_section(const char *path)
{
    size_t size = strlen(path);

    for (unsigned i = 0; i < CONFIG__MAX; i++)
        if (strncmp(config_rows[i].path, path, size) == 0 && config_rows[i].path[size] == '.')
            return true;
    return false;
}

/* Walks the tables without recursion: their depth is bounded by the reader. */
static void take_tree(struct loading *loading, const struct ron_toml_node *root)
{
    const struct ron_toml_node *stack[RON_TOML_DEPTH_MAX + 1];
    size_t sizes[RON_TOML_DEPTH_MAX + 1];
    char path[PATH_SIZE] = "";
    size_t depth = 0;

    stack[0] = root->first_child;
    sizes[0] = 0;
    for (;;) {
        const struct ron_toml_node *node = stack[depth];
        int size;

        if (node == NULL) {
            if (depth == 0)
                return;
            depth--;
            continue;
        }
        stack[depth] = node->next;
        size = snprintf(path + sizes[depth], sizeof(path) - sizes[depth], "%s%.*s",
                        sizes[depth] == 0 ? "" : ".", RON_SLICE_FMT(node->key));
        if (size < 0 || (size_t)size >= sizeof(path) - sizes[depth]) {
            problem(loading, "%s:%u:%u: unknown key", loading->sources->file_name, node->line,
                    node->column);
            continue;
        }
        if (node->kind == RON_TOML_TABLE && is_plain(node->key) && is_section(path)) {
            RON_ASSERT(depth < RON_TOML_DEPTH_MAX);
            sizes[depth + 1] = sizes[depth] + (size_t)size;
            stack[++depth] = node->first_child;
            continue;
        }
        take_node(loading, path, node);
    }
}

static enum ron_err take_file(struct loading *loading, struct ron_errinfo *reterr)
{
    const struct config_sources *sources = loading->sources;
    const struct ron_toml_node *root;
    struct ron_errinfo info = {0};
    struct ron_arena tree;
    enum ron_err err;

    if (sources->file_name == NULL)
        return RON_ERR_OK;
    err = ron_arena_init(&tree, TREE_SIZE, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (ron_toml_parse(sources->file_text, sources->file_name, &tree, &root, &info) == RON_ERR_OK)
        take_tree(loading, root);
    else
        problem(loading, "%s", info.message);
    ron_arena_fini(&tree);
    return RON_ERR_OK;
}

/* ---- Environment and flags ---- */

void config_variable(enum config_key key, char ret_name[static CONFIG_VARIABLE_SIZE])
{
    const char *path = config_rows[key].path;
    size_t size = 4;

    memcpy(ret_name, "RON_", 4);
    for (; *path != '\0'; path++) {
        RON_ASSERT(size + 3 <= CONFIG_VARIABLE_SIZE);
        if (*path == '.') {
            ret_name[size++] = '_';
            ret_name[size++] = '_';
        } else {
            ret_name[size++] = *path >= 'a' && *path <= 'z' ? (char)(*path - 'a' + 'A') : *path;
        }
    }
    ret_name[size] = '\0';
}

static void take_value(struct loading *loading, const char *origin, enum config_key key,
                       const char *text)
{
    struct config_value value = {0};
    struct ron_errinfo info = {0};

    if (config_value_read(&config_rows[key], ron_slice_text(text), &value, &loading->config->arena,
                          &info) != RON_ERR_OK) {
        problem(loading, "%s: %s %s", origin, config_rows[key].path, info.message);
        return;
    }
    value.origin = keep_text(loading, origin);
    loading->config->values[key] = value;
}

/* Is it the name, but for doubled underscores? */
static bool is_squeezed(struct ron_slice text, const char *name)
{
    size_t at = 0;

    for (; *name != '\0' && at < text.size; name++) {
        if (name[0] == '_' && name[1] == '_')
            continue;
        if (text.data[at] != (uint8_t)*name)
            return false;
        at++;
    }
    return *name == '\0' && at == text.size;
}

/* The key that RON_SECTION__KEY would name, for a suggestion. */
static void path_of(struct ron_slice variable, char *ret_path, size_t size)
{
    size_t used = 0;

    for (size_t i = 4; i < variable.size && used + 1 < size; i++) {
        const uint8_t byte = variable.data[i];
        const bool dot = byte == '_' && i + 1 < variable.size && variable.data[i + 1] == '_';

        ret_path[used++] = dot                          ? '.'
                           : byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20)
                                                        : (char)byte;
        i += dot;
    }
    ret_path[used] = '\0';
}

/* Variables are ours if they start with RON_ and have a section: RON_SECTION__KEY. One that only
 * lacks the second underscore would be passed over in silence: it is named. */
static void take_variable(struct loading *loading, const char *variable)
{
    const char *equals = strchr(variable, '=');
    char name[CONFIG_VARIABLE_SIZE];
    char path[PATH_SIZE], meant[PATH_SIZE];
    size_t size = equals == NULL ? 0 : (size_t)(equals - variable);
    const struct ron_slice text = {(const uint8_t *)variable, size};
    const bool has_section = memmem(variable, size, "__", 2) != NULL;

    if (size < 4 || memcmp(variable, "RON_", 4) != 0)
        return;
    for (unsigned i = 0; i < CONFIG__MAX; i++) {
        config_variable((enum config_key)i, name);
        if (strlen(name) == size && memcmp(name, variable, size) == 0) {
            take_value(loading, name, (enum config_key)i, equals + 1);
            return;
        }
        if (!has_section && is_squeezed(text, name)) {
            problem(loading, "environment: %.*s names no key; did you mean %s?", (int)size,
                    variable, name);
            return;
        }
    }
    if (!has_section)
        return;
    path_of(text, path, sizeof(path));
    suggest(ron_slice_text(path), meant, sizeof(meant));
    problem(loading, "environment: %.*s names no key%s", size > 80 ? 80 : (int)size, variable,
            meant[0] != '\0' ? meant : "; `ron config default` lists them");
}

static void take_defaults(struct loading *loading)
{
    for (unsigned i = 0; i < CONFIG__MAX; i++) {
        take_value(loading, "default", (enum config_key)i, config_rows[i].value);
        RON_ASSERT(loading->problems_count == 0);
    }
}

enum ron_err config_load(const struct config_sources *sources, struct config **ret_config,
                         struct ron_errinfo *reterr)
{
    struct ron_errinfo info = {0};
    struct loading loading = {.sources = sources, .reterr = &info};
    enum ron_err err;

    loading.config = ron_mem_alloc(sizeof(*loading.config));
    if (loading.config == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "configuration");
    memset(loading.config, 0, sizeof(*loading.config));
    err = ron_arena_init(&loading.config->arena, ARENA_SIZE, reterr);
    if (err == RON_ERR_OK) {
        take_defaults(&loading);
        err = take_file(&loading, reterr);
    }
    if (err == RON_ERR_OK) {
        for (size_t i = 0; sources->environment != NULL && sources->environment[i] != NULL; i++)
            take_variable(&loading, sources->environment[i]);
        for (size_t i = 0; i < sources->flags_count; i++)
            take_value(&loading, sources->flags[i].name, sources->flags[i].key,
                       sources->flags[i].value);
        if (loading.problems_count > 0)
            err = ron_fail(reterr, RON_ERR_MALFORMED, "%s", info.message);
    }
    if (err != RON_ERR_OK) {
        (void)config_free(loading.config);
        return err;
    }
    *ret_config = loading.config;
    return RON_ERR_OK;
}

struct config *config_free(struct config *config)
{
    if (config != NULL)
        ron_arena_fini(&config->arena);
    ron_mem_free(config);
    return NULL;
}

/* ---- Reading it ---- */

bool config_bool(const struct config *config, enum config_key key)
{
    RON_ASSERT(key < CONFIG__MAX && config_rows[key].type == CONFIG_BOOL);
    return config->values[key].number != 0;
}

uint64_t config_number(const struct config *config, enum config_key key)
{
    RON_ASSERT(key < CONFIG__MAX);
    RON_ASSERT(config_rows[key].type == CONFIG_COUNT || config_rows[key].type == CONFIG_DURATION ||
               config_rows[key].type == CONFIG_SIZE);
    return config->values[key].number;
}

uint32_t config_loops(const struct config *config, uint32_t cpus_count)
{
    const uint32_t loops = (uint32_t)config_number(config, CONFIG_SERVER_LOOPS);
    const uint32_t quarter = cpus_count / 4;

    if (loops > 0)
        return loops;
    return quarter < 1 ? 1 : quarter > IO_LOOPS_MAX ? IO_LOOPS_MAX : quarter;
}

const char *config_text(const struct config *config, enum config_key key)
{
    RON_ASSERT(key < CONFIG__MAX);
    RON_ASSERT(config_rows[key].type == CONFIG_TEXT || config_rows[key].type == CONFIG_CHOICE);
    return config->values[key].text;
}

const char *config_origin(const struct config *config, enum config_key key)
{
    RON_ASSERT(key < CONFIG__MAX);
    return config->values[key].origin;
}

static bool same_value(enum config_key key, const struct config *a, const struct config *b)
{
    if (config_rows[key].type == CONFIG_TEXT || config_rows[key].type == CONFIG_CHOICE)
        return strcmp(a->values[key].text, b->values[key].text) == 0;
    return a->values[key].number == b->values[key].number;
}

enum ron_err config_check_reload(const struct config *now, const struct config *next,
                                 struct ron_errinfo *reterr)
{
    for (unsigned i = 0; i < CONFIG__MAX; i++)
        if (!config_rows[i].hot && !same_value((enum config_key)i, now, next))
            return ron_fail(reterr, RON_ERR_CONFLICT,
                            "%s: %s changes only with a restart; nothing was reloaded",
                            next->values[i].origin, config_rows[i].path);
    return RON_ERR_OK;
}
