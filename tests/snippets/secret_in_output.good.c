/* Exposing is a call of its own name, which tools/tidy allows in listed files only. */
#include "base/secret.h"

void snippet(struct ron_buf *out, const struct ron_secret *secret)
{
    struct ron_slice bytes = ron_secret_expose(secret);

    ron_buf_put(out, bytes.data, bytes.size);
}
