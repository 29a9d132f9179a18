/*
 * access.h - who may call a route: the server's authorize callback, over the keyring of the moment.
 *
 * A token is verified through a cache, then its grant is asked about the route: role, scope,
 * method, path, address, time. The principal of a request is a copy of the grant and of what the
 * kernel says about a local peer; it lives until the request is gone.
 *
 * Caches and a pointer to the keyring stand in stripes, each under its own lock (`cfg_snapshot`): a
 * loop thread uses one stripe, so that loops do not wait for each other, and a keyring is replaced
 * stripe by stripe. When app_access_commit returns, no request is admitted by the old one.
 */
#ifndef RON_APP_ACCESS_H
#define RON_APP_ACCESS_H

#include "auth/cache.h"
#include "auth/principal.h"
#include "io/server.h"

enum { APP_ACCESS_STRIPES_MAX = 8, APP_ACCESS_SLOTS = 256 };

struct app_access; /* opaque; any thread */
/* A keyring that is ready to take over: everything that can fail has been done. */
struct app_access_stage;

/* Takes the keyring over on RON_ERR_OK. RON_ERR_NO_MEMORY. */
enum ron_err app_access_new(struct auth_keyring *keyring, uint32_t stripes_count,
                            struct app_access **ret_access,
                            struct ron_errinfo *reterr) RON_MUST_USE;
struct app_access *app_access_free(struct app_access *access); /* NULL is ok; returns NULL */

/* The same for the next keyring; then commit or free it. */
enum ron_err app_access_prepare(const struct app_access *access, struct auth_keyring *keyring,
                                struct app_access_stage **ret_stage,
                                struct ron_errinfo *reterr) RON_MUST_USE;
void app_access_commit(struct app_access *access, struct app_access_stage *stage);
struct app_access_stage *app_access_stage_free(struct app_access_stage *stage);

/* An io_authorize_fn; the context is a struct app_access, the principal a struct auth_principal.
 * RON_ERR_UNAUTHORIZED, RON_ERR_FORBIDDEN. */
enum ron_err app_access_authorize(void *access, const struct io_request *request, void *principal,
                                  struct ron_errinfo *reterr);

struct app_access_stats {
    uint64_t hits_count, misses_count; /* of the caches, since the start */
    uint64_t epoch;                    /* of the keyring */
};
struct app_access_stats app_access_get_stats(struct app_access *access);

#endif
