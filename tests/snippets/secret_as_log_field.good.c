/* Whether there is a secret may be logged. */
#include "base/secret.h"
#include "rt/log.h"

void snippet(struct rt_log *log, const struct ron_secret *secret);
void snippet(struct rt_log *log, const struct ron_secret *secret)
{
    rt_log(log, RT_LOG_INFO, "signed in", rt_log_bool("token", secret->owned != NULL));
}
