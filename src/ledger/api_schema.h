/*
 * api_schema.h - what rows say of bodies, replies and parameters: pieces of JSON, as OpenAPI 3.1
 * has them. Private to src/ledger/api*.c.
 */
#ifndef RON_LEDGER_API_SCHEMA_H
#define RON_LEDGER_API_SCHEMA_H

#define TEXT    "{\"type\":\"string\"}"
#define TIME    "{\"type\":\"string\",\"format\":\"date-time\"}"
#define BOOL    "{\"type\":\"boolean\"}"
#define U64     "{\"type\":\"integer\",\"minimum\":0}"
#define SEQ     "{\"type\":\"integer\",\"minimum\":1}"
#define ACCOUNT "{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9:/_-]{1,160}$\"}"
#define ASSET   "{\"type\":\"string\",\"pattern\":\"^[a-z][a-z0-9_-]{0,31}$\"}"
#define AMOUNT  "{\"type\":\"string\",\"pattern\":\"^[1-9][0-9]{0,38}$\"}"
#define KEY     "{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9_:.-]{1,128}$\"}"

/* OBJECT(ONE("seq", U64) MORE("root", TEXT)) */
#define ONE(name, schema)  "\"" name "\":" schema
#define MORE(name, schema) "," ONE(name, schema)
#define OBJECT(members)    "{\"type\":\"object\",\"properties\":{" members "}}"
#define ARRAY(schema)      "{\"type\":\"array\",\"items\":" schema "}"
#define OR_NULL(type)      "{\"type\":[\"" type "\",\"null\"]}"

/* clang-format off */

/* Of a write, and of its key. */
#define BATCH_SCHEMA \
    "{\"type\":\"object\",\"required\":[\"accepted\",\"seq_start\",\"seq_end\",\"batch_no\"," \
    "\"tree_size\",\"new_root\",\"committed_at\"],\"properties\":{" \
    ONE("accepted", "{\"const\":true}") MORE("seq_start", U64) MORE("seq_end", U64) \
    MORE("batch_no", U64) MORE("tree_size", U64) MORE("new_root", TEXT) \
    MORE("committed_at", TIME) MORE("proofs", ARRAY(TEXT)) "}}"
#define SLICE_SCHEMA OBJECT( \
    ONE("ack", "{\"enum\":[\"ok\",\"dup\"]}") MORE("seq", U64) MORE("b3", TEXT) \
    MORE("proofs", ARRAY(TEXT)))

/* Of reads. docs/ledger-api.md says what stands when. */
#define BALANCE_SCHEMA OBJECT( \
    ONE("account", ACCOUNT) MORE("asset", ASSET) MORE("amount", TEXT) MORE("debt", TEXT) \
    MORE("next_nonce", U64) MORE("as_of_seq", U64) MORE("as_of", TIME))
#define ASSETS_SCHEMA OBJECT( \
    ONE("assets", ARRAY(OBJECT( \
        ONE("asset", ASSET) MORE("number", U64) MORE("decimals", U64) MORE("max_supply", TEXT) \
        MORE("seq", U64)))))
#define ROOTS_SCHEMA OBJECT( \
    ONE("roots", ARRAY(OBJECT( \
        ONE("seq", U64) MORE("root", TEXT) MORE("ts", U64) MORE("batch_no", U64)))) \
    MORE("next", U64))
#define RECOVERY_SCHEMA OBJECT( \
    ONE("state", TEXT) MORE("safe_mode", BOOL) MORE("cause", OR_NULL("string")) \
    MORE("last_good_seq", U64) MORE("last_good_root", TEXT) MORE("clean_start", BOOL) \
    MORE("replayed_batches", U64) MORE("damage", OR_NULL("object")))
#define HOLD_SCHEMA OBJECT( \
    ONE("hold_id", TEXT) MORE("id", TEXT) MORE("seq", U64) MORE("from", TEXT) \
    MORE("from_id", TEXT) MORE("payee", TEXT) MORE("payee_id", TEXT) MORE("asset", ASSET) \
    MORE("amount", TEXT) MORE("rest", TEXT) MORE("expires_at", TIME) MORE("state", TEXT) \
    MORE("as_of_seq", U64))
#define ACCOUNT_SCHEMA OBJECT( \
    ONE("account", ACCOUNT) MORE("id", TEXT) MORE("next_nonce", U64) MORE("frozen", BOOL) \
    MORE("limits", ARRAY(OBJECT( \
        ONE("asset", TEXT) MORE("minimum", TEXT) MORE("maximum", TEXT) \
        MORE("credit_line", TEXT) MORE("daily", TEXT)))) \
    MORE("complete", BOOL) MORE("as_of_seq", U64))
#define SLICE_HEAD_SCHEMA OBJECT( \
    ONE("next_seq", U64) MORE("b3", OR_NULL("string")))
#define INCLUSION_SCHEMA OBJECT( \
    ONE("seq", U64) MORE("leaf_index", U64) MORE("tree_size", U64) MORE("root", TEXT) \
    MORE("hashes", ARRAY(TEXT)))
#define CONSISTENCY_SCHEMA OBJECT( \
    ONE("from", U64) MORE("from_root", TEXT) MORE("to", U64) MORE("to_root", TEXT) \
    MORE("hashes", ARRAY(TEXT)))
#define BALANCE_PROOF_SCHEMA OBJECT( \
    ONE("account", ACCOUNT) MORE("asset", ASSET) MORE("asset_no", U64) MORE("as_of_seq", U64) \
    MORE("present", BOOL) MORE("balance", TEXT) MORE("debt", TEXT) MORE("next_nonce", U64) \
    MORE("state_root", TEXT) MORE("state_size", U64) \
    MORE("rows", ARRAY(OBJECT( \
        ONE("index", U64) MORE("leaf", TEXT) MORE("hashes", ARRAY(TEXT))))) \
    MORE("anchor", OBJECT(ONE("seq", U64) MORE("leaf", TEXT) MORE("proof", TEXT))))

/* Parameters that several rows take: for IO_PARAMS. */
#define PARAM_PROOF {"proof", "{\"enum\":[\"0\",\"1\"]}", "1: with inclusion proofs"} /* writes */
#define PARAM_AFTER {"after", U64, "the page begins behind this seq: `next` of the page before"}
#define PARAM_SINCE {"since", U64, "begin behind this seq"}
#define PARAM_LIMIT \
    {"limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000}", \
     "elements of a page; 1000 without it"}

/* clang-format on */

#endif
