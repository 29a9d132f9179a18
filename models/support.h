/*
 * support.h - what the models share.
 */
#ifndef RON_MODELS_SUPPORT_H
#define RON_MODELS_SUPPORT_H

#include "models/model.h"

#define NONE SIM_UNBOUNDED

/* The argument of a model's planted-bug twin; the clean one gets NULL. */
#define PLANTED ((void *)&model_planted)
extern char model_planted;

/* Spawn that must succeed, join that must end. */
struct sh_thread *model_spawn(const char *name, void (*fn)(void *), void *argument);
void model_join(struct sh_thread *thread);
/* Zeroed memory that must be there; freed with ron_mem_free. */
void *model_alloc(size_t size);

#endif
