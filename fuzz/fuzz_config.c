/*
 * fuzz_config.c - any bytes as the file of a configuration.
 *
 * Checks beyond "no crash": refused with a message, or every value is within the bounds of its row
 * and what is written of it reads back the same; the environment wins over the file.
 */
#include "app/config.h"
#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t problems_count;

static void note(void *context, const char *message)
{
    (void)context;
    RON_ASSERT(message[0] != '\0');
    problems_count++;
}

static enum ron_err load(struct ron_slice text, const char *const *environment,
                         struct config **ret_config, struct ron_errinfo *reterr)
{
    struct config_sources sources = {
        .file_name = "f", .file_text = text, .environment = environment, .problem = note};

    problems_count = 0;
    return config_load(&sources, ret_config, reterr);
}

/* A line up to its comment, which names the origin. */
static struct ron_slice take_line(struct ron_slice *rest)
{
    static const char mark[] = "  # ";
    const uint8_t *end = memchr(rest->data, '\n', rest->size);
    size_t size = end == NULL ? rest->size : (size_t)(end - rest->data);
    const uint8_t *comment = memmem(rest->data, size, mark, 4);
    struct ron_slice line = ron_slice_of(rest->data,
                                         comment == NULL ? size : (size_t)(comment - rest->data));

    size += end != NULL;
    *rest = ron_slice_of(rest->data + size, rest->size - size);
    return line;
}

static void check_same_values(struct ron_slice a, struct ron_slice b)
{
    while (a.size > 0 && b.size > 0)
        RON_ASSERT(ron_slice_equal(take_line(&a), take_line(&b)));
    RON_ASSERT(a.size == b.size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const environment[] = {"RON_SERVER__LOOPS=3", "HOME=/", NULL};
    struct config *config = NULL;
    struct config *again = NULL;
    struct ron_errinfo info = {0};
    struct ron_buf first, second;
    enum ron_err err = load(ron_slice_of(data, size), environment, &config, &info);

    RON_ASSERT((err == RON_ERR_OK) == (problems_count == 0));
    if (err != RON_ERR_OK) {
        RON_ASSERT(err == RON_ERR_MALFORMED);
        RON_ASSERT(info.message[0] != '\0');
        RON_ASSERT(config == NULL);
        return 0;
    }
    RON_ASSERT(config_number(config, CONFIG_SERVER_LOOPS) == 3);
    RON_ASSERT(ron_slice_equal(ron_slice_text(config_origin(config, CONFIG_SERVER_LOOPS)),
                               RON_SLICE("RON_SERVER__LOOPS")));
    ron_buf_init(&first, 1 << 20);
    ron_buf_init(&second, 1 << 20);
    config_write(config, &first);
    RON_ASSERT(load(ron_buf_slice(&first), environment, &again, &info) == RON_ERR_OK);
    config_write(again, &second);
    RON_ASSERT(first.size > 0);
    check_same_values(ron_buf_slice(&first), ron_buf_slice(&second));
    ron_buf_fini(&first);
    ron_buf_fini(&second);
    (void)config_free(config);
    (void)config_free(again);
    return 0;
}
