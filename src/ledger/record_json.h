/*
 * record_json.h - an entry as JSON: what `GET /entries` answers and `ron ledger export` writes.
 */
#ifndef RON_LEDGER_RECORD_JSON_H
#define RON_LEDGER_RECORD_JSON_H

#include "base/json_write.h"
#include "ledger/books.h"

/* What an entry has by number or id alone. Empty where it is not known: the object then says the
 * number or id. */
struct ledger_record_names {
    struct ron_slice asset;
    struct ron_slice payee; /* of a Hold */
    struct ron_slice ref;   /* of a Reverse: the id that its client gave the entry it takes back */
};
/* One object. with_leaf: also the bytes that are hashed, in hex. */
void ledger_put_record(struct ron_json_writer *writer, const struct ledger_record *record,
                       const struct ledger_record_names *names, bool with_leaf);
/* The account of a Hold's payee; false: any, or not a Hold. */
static inline bool ledger_record_payee(const struct ledger_record *record,
                                       struct ledger_id *ret_payee)
{
    struct ledger_ext ext;

    if (record->entry.kind != LEDGER_HOLD ||
        ledger_ext_decode(record->ext, &ext, NULL) != RON_ERR_OK || ledger_id_is_zero(&ext.payee))
        return false;
    *ret_payee = ext.payee;
    return true;
}

#endif
