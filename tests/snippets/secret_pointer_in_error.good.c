/* What may be said of a key is its id, which is ordinary text. */
#include "base/secret.h"
#include "ron/error.h"

enum ron_err snippet(struct ron_errinfo *reterr, const char *kid)
{
    return ron_wrap(reterr, RON_ERR_UNAUTHORIZED, "key %s", kid);
}
