/*
 * secret.c - wiped, unlogged key material over libsodium's guarded memory. See secret.h.
 */
#include "base/secret.h"

#include <sodium.h>

#include "base/assert.h"
#include "base/limits.h"
#include "base/mem.h"

/* The bytes live in their own mapping, so that mlock and MADV_DONTDUMP cover them and nothing
 * else. */
struct ron_secret_bytes {
    size_t size;
    uint8_t *data; /* from sodium_malloc */
};

static enum ron_err secret_make(size_t size, struct ron_secret_bytes **ret_bytes,
                                struct ron_errinfo *reterr)
{
    struct ron_secret_bytes *bytes;

    if (size == 0) /* an empty key file, say; never a key that everybody knows */
        return ron_fail(reterr, RON_ERR_MALFORMED, "a secret of 0 bytes");
    if (size > RON_SECRET_SIZE_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a secret of %zu bytes, at most %d", size,
                        RON_SECRET_SIZE_MAX);
    if (sodium_init() < 0)
        return ron_fail(reterr, RON_ERR_INTERNAL, "libsodium does not start");
    bytes = ron_mem_alloc(sizeof(*bytes));
    if (bytes == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a secret of %zu bytes", size);
    bytes->size = size;
    bytes->data = ron_mem_should_fail(size) ? NULL : sodium_malloc(size);
    if (bytes->data == NULL) {
        (void)ron_mem_free(bytes);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "guarded memory for %zu bytes", size);
    }
    *ret_bytes = bytes;
    return RON_ERR_OK;
}

enum ron_err ron_secret_init(struct ron_secret *secret, struct ron_slice bytes,
                             struct ron_errinfo *reterr)
{
    struct ron_secret_bytes *owned = NULL;
    enum ron_err err = secret_make(bytes.size, &owned, reterr);

    if (err != RON_ERR_OK)
        return err;
    memcpy(owned->data, bytes.data, bytes.size);
    secret->owned = owned;
    return RON_ERR_OK;
}

enum ron_err ron_secret_init_random(struct ron_secret *secret, size_t size,
                                    struct ron_errinfo *reterr)
{
    struct ron_secret_bytes *owned = NULL;
    enum ron_err err = secret_make(size, &owned, reterr);

    if (err != RON_ERR_OK)
        return err;
    randombytes_buf(owned->data, size);
    secret->owned = owned;
    return RON_ERR_OK;
}

void ron_secret_fini(struct ron_secret *secret)
{
    if (secret->owned == NULL)
        return;
    sodium_free(secret->owned->data); /* wipes first */
    secret->owned->data = NULL;
    secret->owned = ron_mem_free(secret->owned);
}

size_t ron_secret_size(const struct ron_secret *secret)
{
    return secret->owned == NULL ? 0 : secret->owned->size;
}

struct ron_slice ron_secret_expose(const struct ron_secret *secret)
{
    if (secret->owned == NULL)
        return (struct ron_slice){0};
    return (struct ron_slice){secret->owned->data, secret->owned->size};
}

bool ron_secret_equal(const struct ron_secret *a, const struct ron_secret *b)
{
    return ron_secret_equal_bytes(a, ron_secret_expose(b));
}

bool ron_secret_equal_bytes(const struct ron_secret *secret, struct ron_slice bytes)
{
    struct ron_slice own = ron_secret_expose(secret);

    /* A secret that was never set equals nothing, not even nothing. */
    return own.size > 0 && own.size == bytes.size &&
           ron_equal_constant_time(own.data, bytes.data, bytes.size);
}

void ron_wipe(void *data, size_t size)
{
    if (size > 0)
        sodium_memzero(data, size);
}

bool ron_equal_constant_time(const void *a, const void *b, size_t size)
{
    return size == 0 || sodium_memcmp(a, b, size) == 0;
}
