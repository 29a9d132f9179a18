/* expect: ignoring return value of function declared with 'warn_unused_result' attribute */
#include "base/bytes.h"

void snippet(struct ron_buf *out)
{
    ron_buf_append(out, "x", 1, NULL);
}
