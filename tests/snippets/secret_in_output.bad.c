/* expect: format specifies type 'char \*' but the argument has type 'struct ron_secret_bytes \*' */
#include "base/secret.h"

void snippet(struct ron_buf *out, const struct ron_secret *secret)
{
    ron_buf_put_format(out, "token %s", secret->owned);
}
