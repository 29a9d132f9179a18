/*
 * keyring_file.h - the keyring on disk: `keyring` in a directory, and at first `operator.token`.
 *
 * Both are 0600 and appear whole or not at all (io/replace.h). On a first start the token is
 * written before the keyring: the keyring is what makes the start a first one no longer, so a crash
 * in between leaves a token that no key verifies and that the next start replaces. Whoever removes
 * operator.token afterwards is not given another.
 */
#ifndef RON_AUTH_KEYRING_FILE_H
#define RON_AUTH_KEYRING_FILE_H

#include "auth/keyring.h"
#include "io/vfs.h"

#define AUTH_KEYRING_NAME        "keyring"
#define AUTH_KEYRING_LOCK_NAME   "keyring.lock"
#define AUTH_OPERATOR_TOKEN_NAME "operator.token"

/* RON_ERR_NOT_FOUND, RON_ERR_MALFORMED with the line, and what the vfs answers. */
enum ron_err auth_keyring_file_load(struct io_vfs *vfs, const char *name,
                                    struct auth_keyring **ret_keyring,
                                    struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
enum ron_err auth_keyring_file_save(struct io_vfs *vfs, const char *name,
                                    const struct auth_keyring *keyring,
                                    struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Load; where there is no keyring, make one and the operator's token, valid for lifetime_ms. */
enum ron_err auth_keyring_file_open(struct io_vfs *vfs, uint64_t now_ms, uint64_t lifetime_ms,
                                    struct auth_keyring **ret_keyring, bool *ret_made,
                                    struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* Load, change, save; other processes that change it wait their turn: RON_ERR_CONFLICT here. */
typedef enum ron_err auth_keyring_change_fn(struct auth_keyring *keyring, void *context,
                                            struct ron_errinfo *reterr);
enum ron_err auth_keyring_file_change(struct io_vfs *vfs, const char *name,
                                      auth_keyring_change_fn *change, void *context,
                                      struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* RON_ERR_FORBIDDEN if a file of a real directory is open to others or belongs to another user.
 * RON_ERR_NOT_FOUND. */
enum ron_err auth_keyring_check_private(const char *dir, const char *name,
                                        struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* What a person names: a keyring, or a directory with one in it. Gives that directory, which the
 * caller frees, and the name in it; the file is private (as above) or not there. */
enum ron_err auth_keyring_locate(const char *path, struct io_vfs **ret_vfs,
                                 char ret_name[static IO_NAME_MAX + 1],
                                 struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* A keyring from a descriptor that the process was given. */
enum ron_err auth_keyring_read_fd(uint32_t fd, struct auth_keyring **ret_keyring,
                                  struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
