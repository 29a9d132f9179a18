/*
 * api_pages.h - what reads share: parameters, JSON, assets, entries. Private to src/ledger/api*.c.
 */
#ifndef RON_LEDGER_API_PAGES_H
#define RON_LEDGER_API_PAGES_H

#include "ledger/api_impl.h"
#include "ledger/api_schema.h"

/* api_reply.c */
void reply_error(struct io_request *request, enum ron_err err, const struct ron_errinfo *info);
void reply_call(struct api_call *call); /* with its outcome; ends nothing */
void reply_call_with(struct api_call *call, struct ron_slice proofs); /* proofs: JSON, or empty */
/* Answer with what was written, or with why it was not. Ends the buffer. */
void reply_buf(struct io_request *request, const char *media, struct ron_buf *buf);
/* as_of: RFC 3339. */
void reply_balance(struct io_request *request, struct ron_slice account, struct ron_slice asset,
                   const struct ledger_balance *balance, const char *as_of);
void reply_json(struct io_request *request, struct ron_json_writer *writer, struct ron_buf *buf);

/* api_query.c: parameters. RON_ERR_MALFORMED names them. */
enum ron_err query_u64(const struct io_request *request, const char *name, uint64_t otherwise,
                       uint64_t *ret_value, struct ron_errinfo *reterr) RON_MUST_USE;
enum ron_err query_limit(const struct io_request *request, uint64_t *ret_limit,
                         struct ron_errinfo *reterr) RON_MUST_USE;
/* *ret_given false and an empty text without it, unless it must be there. */
enum ron_err query_account(const struct io_request *request, bool must,
                           char text[static RON_ACCOUNT_NAME_SIZE_MAX + 1], bool *ret_given,
                           struct ron_errinfo *reterr) RON_MUST_USE;
/* Says what an account is: RON_ERR_MALFORMED. */
enum ron_err query_no_account(struct ron_errinfo *reterr);
/* A path parameter, percent-decoded. */
enum ron_err path_text(struct ron_slice param, char *buf, size_t buf_size,
                       struct ron_slice *ret_text, struct ron_errinfo *reterr) RON_MUST_USE;

/* api_assets.c: names and numbers, which never change. */
bool assets_find(struct ledger_api *api, struct ron_slice name, struct api_asset *ret_asset);
bool assets_at(struct ledger_api *api, uint32_t number, struct api_asset *ret_asset);
/* Reader: what the books have beyond. */
enum ron_err assets_refresh(struct ledger_api *api, struct rt_deadline deadline,
                            struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Both in one: RON_ERR_NOT_FOUND. */
enum ron_err assets_need(struct ledger_api *api, struct ron_slice name, struct rt_deadline deadline,
                         struct api_asset *ret_asset,
                         struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* record_json.c */
void put_text(struct ron_json_writer *writer, const char *name, struct ron_slice text);
void put_u64(struct ron_json_writer *writer, const char *name, uint64_t value);
void put_hex(struct ron_json_writer *writer, const char *name, const void *bytes, size_t size);
void put_time(struct ron_json_writer *writer, const char *name, uint64_t time_ms);
void put_amount(struct ron_json_writer *writer, const char *name, struct ron_u128 amount);
void put_account(struct ron_json_writer *writer, const char *name, const char *name_of_id,
                 struct ron_slice text, const struct ledger_id *id); /* by its id without text */
/* "*" for any; by its id without name. */
void put_payee(struct ron_json_writer *writer, const struct ledger_id *payee,
               struct ron_slice name);
/* api_entries.c: an asset that was not met yet: its name is looked for before anything is written.
 */
enum ron_err know_asset(struct ledger_api *api, uint32_t number, struct rt_deadline deadline,
                        struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* An entry as JSON, with every name that it has by id alone. */
enum ron_err put_record(struct ledger_api *api, struct rt_deadline deadline,
                        struct ron_json_writer *writer, const struct ledger_record *record,
                        bool with_leaf, struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* api_admin.c: log what an operator did, and with which capability. */
void audit(struct ledger_api *api, const struct io_request *request, const char *what, bool on,
           struct ron_slice about, enum ron_err err);
enum ron_err need_books(const struct ledger_api *api, struct ron_errinfo *reterr) RON_MUST_USE;
enum ron_err need_tree(const struct ledger_api *api, struct ron_errinfo *reterr) RON_MUST_USE;
/* api_proofs.c */
void put_hashes(struct ron_json_writer *writer, const struct ron_sha256 *hashes, size_t count);
/* api_balance_proof.c */
api_read_fn read_balance_proof;
void states_free(struct ledger_api *api) RON_BLOCKS; /* nobody reads any more */

#endif
