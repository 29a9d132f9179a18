/*
 * local.c - the one place that uses thread-local storage: the runtime's block of each OS thread.
 */
#include "rt/local.h"

static _Thread_local struct rt_local local;

struct rt_local *sh_local(void)
{
    return &local;
}
