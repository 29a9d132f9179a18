/* expect: initializing .* with an expression of incompatible type 'const struct ron_secret' */
#include "base/secret.h"
#include "rt/log.h"

void snippet(struct rt_log *log, const struct ron_secret *secret);
void snippet(struct rt_log *log, const struct ron_secret *secret)
{
    rt_log(log, RT_LOG_INFO, "signed in", *secret);
}
