/*
 * topology.h - the queues, buses, watches, tasks and locks of a process, as its registry lists
 * them.
 *
 * For documents and `ron topology`: the parts are built for the purpose and taken down again, so
 * that the tables cannot say what the code does not do.
 */
#ifndef RON_APP_TOPOLOGY_H
#define RON_APP_TOPOLOGY_H

#include "app/parts.h"
#include "rt/lock_classes.h"
#include "rt/registry.h"

enum { APP_TOPOLOGY_PARTS_MAX = 16 };

/* Gets every entry: objects in order of birth, then lock classes by rank. They live until it
 * returns. */
typedef void app_topology_fn(const struct rt_registry_entry *entries, size_t entries_count,
                             void *context);

/* Start the registry anew, build the parts, call fn once, take the parts down. The first failure of
 * a part ends it, without a call of fn. RON_ERR_NO_MEMORY. Nothing else may use rt meanwhile. */
enum ron_err app_topology(const struct app_part *const *parts, size_t parts_count,
                          app_topology_fn *fn, void *context,
                          struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
