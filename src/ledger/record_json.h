/*
 * record_json.h - an entry as JSON: what `GET /entries` answers and `ron ledger export` writes.
 */
#ifndef RON_LEDGER_RECORD_JSON_H
#define RON_LEDGER_RECORD_JSON_H

#include "base/json_write.h"
#include "ledger/books.h"

/* One object. asset_name empty: the asset is given by its number. with_leaf: also the bytes that
 * are hashed, in hex. */
void ledger_put_record(struct ron_json_writer *writer, const struct ledger_record *record,
                       struct ron_slice asset_name, bool with_leaf);

#endif
