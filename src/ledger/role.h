/*
 * role.h - the whole ledger in one piece: storage, pipeline, tree, books; what a process runs.
 *
 * Below the data directory: `ledger/log` (the truth), `ledger/snapshots`, `ledger/tiles`,
 * `ledger/books`, `ledger/log.key`, `ledger/damaged` (damage.h). Amnesia: the same on a vfs in
 * memory, and an engine without files.
 *
 * The API (api.h), the embedded library (ron/ledger.h) and the tools stand on this.
 */
#ifndef RON_LEDGER_ROLE_H
#define RON_LEDGER_ROLE_H

#include "ledger/books.h"
#include "ledger/service.h"
#include "ledger/tree.h"

struct ledger_role; /* opaque */

struct ledger_role_options {
    struct io_vfs *vfs; /* borrowed; NULL: amnesia */
    const char *origin; /* of the log; borrowed */
    bool new_key;       /* a log that lost its key may get another (tree.h) */
    /* Engine, archive, follower, files and the windows of the capacity (by the size of a segment)
     * are the role's to set; metrics need io_log_metric_table beside the service's own. */
    struct ledger_service_options service;
    uint64_t segment_bytes;    /* 0: io/log's default */
    uint64_t cached_bytes;     /* of the log (io/log.h) */
    bool direct;               /* the log is written past the system's cache */
    uint32_t linger_us;        /* of a group in the log */
    uint64_t memory_bytes_max; /* of amnesia's frames */
    uint32_t memory_frames_max;
};
/* Open everything: files, locks, keys; nothing runs. Errors of the engine and of the tree. */
enum ron_err ledger_role_open(const struct ledger_role_options *options,
                              struct ledger_role **ret_role,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Spawn the tasks; recovery goes on by itself (ledger_service_await_start). */
enum ron_err ledger_role_start(struct ledger_role *role,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Drain in the seed's order; every caller is answered. RON_ERR_TIMEOUT: do not free. */
enum ron_err ledger_role_stop(struct ledger_role *role, struct rt_life_report *ret_report,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Stopped, or never started. Accepts NULL, returns NULL. */
struct ledger_role *ledger_role_free(struct ledger_role *role) RON_BLOCKS;

struct ledger_service *ledger_role_service(struct ledger_role *role);
struct ledger_tree *ledger_role_tree(struct ledger_role *role);
struct ledger_books *ledger_role_books(struct ledger_role *role);

#endif
