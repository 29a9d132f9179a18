/* An error is answered, or passed on. */
#include "base/bytes.h"

enum ron_err snippet(struct ron_buf *out);
enum ron_err snippet(struct ron_buf *out)
{
    return ron_buf_append(out, "x", 1, NULL);
}
