/* expect: format specifies type 'char \*' but the argument has type 'const struct ron_secret \*' */
#include "base/secret.h"
#include "ron/error.h"

enum ron_err snippet(struct ron_errinfo *reterr, const struct ron_secret *secret)
{
    return ron_wrap(reterr, RON_ERR_UNAUTHORIZED, "token %s", secret);
}
