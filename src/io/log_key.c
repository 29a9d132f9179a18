/*
 * log_key.c - see log_key.h.
 *
 * The file's bytes pass through buffers of fixed size on the stack, which are wiped.
 */
#include "io/log_key.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/base64.h"
#include "base/ed25519.h"
#include "base/mem.h"
#include "io/durable.h"
#include "rt/lock.h"

enum {
    FILE_SIZE_MAX = 512,
    KEY_TEXT_SIZE = 44, /* base64 of 32 bytes */
};
_Static_assert(sizeof("ron-log-key v1\nname \nseed \npublic \n") + RON_KEY_NAME_SIZE_MAX +
                       2 * KEY_TEXT_SIZE <=
                   FILE_SIZE_MAX,
               "every key file fits");

struct io_log_key {
    size_t name_size;
    struct ron_secret key; /* expanded */
    char name[RON_KEY_NAME_SIZE_MAX];
    char vkey[RON_VKEY_SIZE_MAX + 1];
};

struct io_log_key *io_log_key_free(struct io_log_key *key)
{
    if (key != NULL)
        ron_secret_fini(&key->key);
    return ron_mem_free(key);
}

struct io_signer io_log_key_signer(const struct io_log_key *key)
{
    return (struct io_signer){ron_slice_of(key->name, key->name_size), &key->key};
}

const char *io_log_key_vkey(const struct io_log_key *key)
{
    return key->vkey;
}

static enum ron_err key_new(struct ron_slice name, const struct ron_secret *seed,
                            struct io_log_key **ret_key, struct ron_errinfo *reterr)
{
    struct io_log_key *key = ron_mem_alloc(sizeof(*key));
    struct ron_buf text;
    enum ron_err err;

    if (key == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a log key");
    key->name_size = name.size;
    memcpy(key->name, name.data, name.size);
    ron_buf_init(&text, RON_VKEY_SIZE_MAX);
    err = ron_ed25519_expand(seed, &key->key, reterr);
    if (err == RON_ERR_OK) {
        const struct io_signer signer = io_log_key_signer(key);

        io_vkey_put(&text, &signer, RON_KEY_ED25519);
        err = ron_buf_check(&text, reterr);
    }
    if (err == RON_ERR_OK) {
        memcpy(key->vkey, text.data, text.size); /* zeroed memory ends it */
        *ret_key = key;
    } else {
        (void)io_log_key_free(key);
    }
    ron_buf_fini(&text);
    return err;
}

/* "word value\n" off the front. */
static bool take_field(struct ron_slice *rest, const char *word, struct ron_slice *ret_value)
{
    size_t word_size = strlen(word);
    const uint8_t *end = rest->size == 0 ? NULL : memchr(rest->data, '\n', rest->size);
    size_t line_size = end == NULL ? 0 : (size_t)(end - rest->data);

    if (end == NULL || line_size <= word_size || memcmp(rest->data, word, word_size) != 0 ||
        rest->data[word_size] != ' ')
        return false;
    *ret_value = ron_slice_of(rest->data + word_size + 1, line_size - word_size - 1);
    *rest = ron_slice_of(end + 1, rest->size - line_size - 1);
    return true;
}

static bool read_key(struct ron_slice text, uint8_t ret_bytes[32])
{
    size_t size = 0;

    return ron_base64_decode(RON_BASE64_STANDARD, text, ret_bytes, 32, &size, NULL) == RON_ERR_OK &&
           size == 32;
}

/* The file's text into a key; `path` is for messages. Keys never appear in them. */
static enum ron_err parse(const char *path, struct ron_slice text, struct ron_slice name,
                          struct io_log_key **ret_key, struct ron_errinfo *reterr)
{
    struct ron_slice rest = text, version, stored_name, seed_text, public_text;
    uint8_t seed_bytes[32] = {0}, stored_public[32], public_key[32];
    struct ron_secret seed = {0};
    enum ron_err err;

    if (!take_field(&rest, "ron-log-key", &version))
        return ron_fail(reterr, RON_ERR_MALFORMED, "%s: not a log key", path);
    if (!ron_slice_equal(version, RON_SLICE("v1")))
        return ron_fail(reterr, RON_ERR_VERSION_SKEW, "%s: a log key of another version than v1",
                        path);
    if (!take_field(&rest, "name", &stored_name) || !take_field(&rest, "seed", &seed_text) ||
        !take_field(&rest, "public", &public_text) || rest.size != 0 ||
        !read_key(public_text, stored_public))
        return ron_fail(reterr, RON_ERR_MALFORMED, "%s: a damaged log key", path);
    if (name.size == 0) {
        if (!ron_key_name_valid(stored_name))
            return ron_fail(reterr, RON_ERR_MALFORMED, "%s: a damaged log key", path);
        name = stored_name;
    }
    if (!ron_slice_equal(stored_name, name))
        return ron_fail(reterr, RON_ERR_CONFLICT,
                        "%s: the key of another log; its name is not the configured origin", path);
    if (!read_key(seed_text, seed_bytes)) {
        ron_wipe(seed_bytes, sizeof(seed_bytes));
        return ron_fail(reterr, RON_ERR_MALFORMED, "%s: a damaged log key", path);
    }
    err = ron_secret_init(&seed, ron_slice_of(seed_bytes, sizeof(seed_bytes)), reterr);
    ron_wipe(seed_bytes, sizeof(seed_bytes));
    if (err != RON_ERR_OK)
        return err;
    ron_ed25519_public(&seed, public_key);
    if (memcmp(public_key, stored_public, sizeof(public_key)) != 0)
        err = ron_fail(reterr, RON_ERR_MALFORMED,
                       "%s: a damaged log key: seed and public key do not fit", path);
    else
        err = key_new(name, &seed, ret_key, reterr);
    ron_secret_fini(&seed);
    return err;
}

enum ron_err io_log_key_load(struct io_vfs *vfs, const char *path, struct ron_slice name,
                             struct io_log_key **ret_key, struct ron_errinfo *reterr)
{
    uint8_t text[FILE_SIZE_MAX + 1];
    struct io_file *file = NULL;
    size_t size = 0;
    enum ron_err err;

    rt_assert_no_lock_held();
    RON_ASSERT(name.size == 0 || ron_key_name_valid(name));
    err = io_vfs_open(vfs, path, IO_OPEN_READ, &file, reterr);
    if (err != RON_ERR_OK)
        return err;
    err = io_file_read(file, 0, text, sizeof(text), &size, reterr);
    file = io_file_close(file);
    if (err == RON_ERR_OK && size > FILE_SIZE_MAX)
        err = ron_fail(reterr, RON_ERR_MALFORMED, "%s: longer than any log key", path);
    if (err == RON_ERR_OK)
        err = parse(path, ron_slice_of(text, size), name, ret_key, reterr);
    ron_wipe(text, sizeof(text));
    return err;
}

/* Text of the file into `text`; returns its size. */
static size_t print(struct ron_slice name, const struct ron_secret *seed,
                    char text[static FILE_SIZE_MAX])
{
    char seed_text[KEY_TEXT_SIZE + 1], public_text[KEY_TEXT_SIZE + 1];
    uint8_t public_key[RON_ED25519_PUBLIC_SIZE];
    int size;

    ron_ed25519_public(seed, public_key);
    (void)ron_base64_encode(RON_BASE64_STANDARD, ron_secret_expose(seed), seed_text,
                            sizeof(seed_text));
    (void)ron_base64_encode(RON_BASE64_STANDARD, ron_slice_of(public_key, sizeof(public_key)),
                            public_text, sizeof(public_text));
    size = snprintf(text, FILE_SIZE_MAX, "ron-log-key v1\nname %.*s\nseed %s\npublic %s\n",
                    RON_SLICE_FMT(name), seed_text, public_text);
    ron_wipe(seed_text, sizeof(seed_text));
    RON_ASSERT(size > 0);
    RON_ASSERT(size < FILE_SIZE_MAX);
    return (size_t)size;
}

static enum ron_err store(struct io_vfs *vfs, const char *path, struct ron_slice text,
                          struct ron_errinfo *reterr) RON_BLOCKS
{
    char dir[IO_PATH_MAX + 1];
    enum ron_err err = RON_ERR_OK;

    io_dir_of(path, dir);
    if (dir[0] != '\0')
        err = io_durable_dir(vfs, dir, reterr);
    return err == RON_ERR_OK ? io_durable_replace(vfs, path, text, reterr) : err;
}

enum ron_err io_log_key_load_or_make(struct io_vfs *vfs, const char *path, struct ron_slice name,
                                     struct io_log_key **ret_key, struct ron_errinfo *reterr)
{
    struct ron_errinfo info = {0};
    struct ron_secret seed = {0};
    struct io_log_key *key = NULL;
    char text[FILE_SIZE_MAX];
    size_t size;
    enum ron_err err;

    rt_assert_no_lock_held();
    err = io_log_key_load(vfs, path, name, ret_key, &info);
    if (err != RON_ERR_NOT_FOUND) {
        if (err != RON_ERR_OK && reterr != NULL)
            *reterr = info;
        return err;
    }
    err = ron_secret_init_random(&seed, RON_ED25519_SEED_SIZE, reterr);
    if (err != RON_ERR_OK)
        return err;
    size = print(name, &seed, text);
    err = key_new(name, &seed, &key, reterr);
    if (err == RON_ERR_OK)
        err = store(vfs, path, ron_slice_of(text, size), reterr);
    ron_wipe(text, sizeof(text));
    ron_secret_fini(&seed);
    if (err != RON_ERR_OK) {
        key = io_log_key_free(key);
        return err;
    }
    *ret_key = key;
    return RON_ERR_OK;
}
