/* The size of a secret may be said, its bytes may not. */
#include "base/secret.h"
#include "ron/error.h"

enum ron_err snippet(struct ron_errinfo *reterr, const struct ron_secret *secret)
{
    return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "token of %zu bytes", ron_secret_size(secret));
}
