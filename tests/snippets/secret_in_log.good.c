/* The size of a secret may be logged, its bytes may not. */
#include "base/secret.h"
#include "rt/log.h"

void snippet(struct rt_log *log, const struct ron_secret *secret);
void snippet(struct rt_log *log, const struct ron_secret *secret)
{
    rt_log(log, RT_LOG_INFO, "signed in", rt_log_u64("token_size", ron_secret_size(secret)));
}
