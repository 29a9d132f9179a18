/*
 * secret.h - keys and tokens as a type of their own.
 *
 * A secret is wiped when it ends, compared in constant time, and has no text form: passing one to a
 * printf-like function (errors, log, metrics) does not compile, because it is a struct. The bytes
 * are reached only through ron_secret_expose, whose callers tools/tidy lists by name. Its memory is
 * kept out of core dumps and, where the system allows, out of swap.
 */
#ifndef RON_BASE_SECRET_H
#define RON_BASE_SECRET_H

#include "base/bytes.h"

struct ron_secret {
    struct ron_secret_bytes *owned; /* opaque; NULL is the empty secret */
};

/* Take a copy of bytes (1..RON_SECRET_SIZE_MAX). The caller wipes its own with ron_wipe.
 * RON_ERR_MALFORMED when empty, RON_ERR_TOO_LARGE, RON_ERR_NO_MEMORY. */
enum ron_err ron_secret_init(struct ron_secret *secret, struct ron_slice bytes,
                             struct ron_errinfo *reterr) RON_MUST_USE;
/* size fresh random bytes from the kernel. */
enum ron_err ron_secret_init_random(struct ron_secret *secret, size_t size,
                                    struct ron_errinfo *reterr) RON_MUST_USE;
/* Wipe and free. Accepts a zeroed or finished secret. */
void ron_secret_fini(struct ron_secret *secret);

size_t ron_secret_size(const struct ron_secret *secret);
/* Constant time in the content; the lengths are not secret. An empty secret equals nothing. */
bool ron_secret_equal(const struct ron_secret *a, const struct ron_secret *b);
bool ron_secret_equal_bytes(const struct ron_secret *secret, struct ron_slice bytes);
/* Borrow the bytes, to feed a MAC or signature. They live as long as the secret. */
struct ron_slice ron_secret_expose(const struct ron_secret *secret);

/* Overwrite memory so that the compiler cannot drop it. */
void ron_wipe(void *data, size_t size);
/* Constant-time equality of two buffers of one size. */
bool ron_equal_constant_time(const void *a, const void *b, size_t size);

#endif
