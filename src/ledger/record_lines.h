/*
 * record_lines.h - an entry as lines of an export: JSON, CSV, or a journal that ledger-cli and
 * hledger read. For the API and the command line alike.
 */
#ifndef RON_LEDGER_RECORD_LINES_H
#define RON_LEDGER_RECORD_LINES_H

#include "base/arena.h"
#include "base/bytes.h"

enum ledger_lines { LEDGER_LINES_JSON, LEDGER_LINES_CSV, LEDGER_LINES_JOURNAL };
/* jsonl, csv, journal (or ledger, as the command line first called it). */
bool ledger_lines_find(struct ron_slice name, enum ledger_lines *ret_lines);
const char *ledger_lines_media(enum ledger_lines lines);
/* What stands above all entries. */
void ledger_lines_begin(enum ledger_lines lines, struct ron_buf *buf);
/* The lines of one entry, given as its JSON object (record_json.h). Errors of the reader; of the
 * buffer only by its own check. */
enum ron_err ledger_lines_put(enum ledger_lines lines, struct ron_slice object,
                              struct ron_arena *arena, struct ron_buf *buf,
                              struct ron_errinfo *reterr) RON_MUST_USE;

#endif
