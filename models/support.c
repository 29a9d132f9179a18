/*
 * support.c - see support.h.
 */
#include "models/support.h"

#include "base/mem.h"

char model_planted;

struct sh_thread *model_spawn(const char *name, void (*fn)(void *), void *argument)
{
    struct sh_thread *thread = NULL;
    enum ron_err err = sh_spawn(name, fn, argument, &thread, NULL);

    RON_ASSERT(err == RON_ERR_OK);
    return thread;
}

void model_join(struct sh_thread *thread)
{
    bool joined = sh_join(thread, SH_NEVER);

    RON_ASSERT(joined);
}

void *model_alloc(size_t size)
{
    void *pointer = ron_mem_alloc(size);

    RON_ASSERT(pointer != NULL);
    return pointer;
}
