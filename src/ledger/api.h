/*
 * api.h - the ledger over HTTP and OAP/1: routes, rights, replies. docs/ledger-api.md says what
 * each route takes and answers.
 *
 * A write is handed to the pipeline with its bytes: its body is read, shaped, checked against the
 * capability and fingerprinted by a prevalidator, and answered by whoever ends it (port.h). What
 * reads books, tiles or batches waits in one bounded queue for the API's readers; loop threads
 * answer only what needs no waiting: /balance, /checkpoint, /recovery.
 */
#ifndef RON_LEDGER_API_H
#define RON_LEDGER_API_H

#include "io/oap_server.h"
#include "io/vfs.h"
#include "ledger/books.h"
#include "ledger/service.h"
#include "ledger/tree.h"
#include "rt/log.h"

enum {
    LEDGER_API_READERS_MAX = 16,
    LEDGER_API_READS_MAX = 1024, /* requests that wait for a reader */
    LEDGER_API_PROOFS_MAX = 256, /* writes with ?proof=1 in flight */
    LEDGER_API_STREAMS_MAX = 256,
    LEDGER_API_COPIERS = 2,      /* exports and backups under way */
    LEDGER_API_COPIES_MAX = 8,   /* that wait for one of them */
    LEDGER_API_CALLS_MAX = 8192, /* writes in flight */
    LEDGER_API_PAGE_MAX = 1000,  /* elements of a reply */
};

struct ledger_api; /* opaque */

struct ledger_api_options {
    struct ledger_service *service; /* all borrowed for the API's life */
    struct ledger_tree *tree;       /* NULL: what needs it is answered NotReady */
    struct ledger_books *books;     /* NULL: the same */
    struct ledger_checks *checks;   /* of the service; NULL: it has none */
    struct io_vfs *vfs;             /* of slices, in "ledger/slices", and backups; NULL: none */
    struct rt_log *log;             /* NULL: none */
    bool public_log;                /* reads without a capability */
    uint32_t readers_count;         /* 0: 2; at most LEDGER_API_READERS_MAX */
    uint32_t bodies_max;            /* read at once: by prevalidators and loops; 0: 3; at most 64,
                                     * and who finds none free is told Busy */
    uint64_t bytes_max;             /* of what was read and waits for its commit; 0: 256 MiB */
};
/* Made whole, nothing runs. RON_ERR_NO_MEMORY, RON_ERR_BUSY (registry full). The caller owns it. */
enum ron_err ledger_api_new(const struct ledger_api_options *options, struct ledger_api **ret_api,
                            struct ron_errinfo *reterr) RON_MUST_USE;
/* Add its rows, which live in the API; oap may be NULL. Errors of io_routes_add. */
enum ron_err ledger_api_add(struct io_routes *routes, struct io_oap_service *oap,
                            struct ledger_api *api, struct ron_errinfo *reterr) RON_MUST_USE;
/* Spawn the readers; after the service's start. On failure it must be stopped all the same. */
enum ron_err ledger_api_start(struct ledger_api *api, struct ron_errinfo *reterr) RON_MUST_USE;
/* Answer what waits, end streams and tasks; before the service's stop. What comes later is answered
 * Canceled. RON_ERR_TIMEOUT: do not free. */
enum ron_err ledger_api_stop(struct ledger_api *api, struct rt_deadline deadline,
                             struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Stopped, or never started; no request is left. Accepts NULL, returns NULL. */
struct ledger_api *ledger_api_free(struct ledger_api *api);

#endif
