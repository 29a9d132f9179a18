/*
 * ledger_row.h - an object of JSON, one level deep: a reply of the server, or a line of an import.
 *
 * Pure: bytes in, slices out.
 */
#ifndef RON_CLI_LEDGER_ROW_H
#define RON_CLI_LEDGER_ROW_H

#include "base/arena.h"
#include "base/bytes.h"

enum { LEDGER_MEMBERS_MAX = 40 };

/* Texts live as long as the object and the arena. */
struct row {
    size_t count;
    struct {
        struct ron_slice name;
        struct ron_slice text; /* a string's content, else the value as it stands */
        bool is_string;
    } members[LEDGER_MEMBERS_MAX];
};
enum ron_err row_read(struct ron_slice object, struct ron_arena *arena, struct row *ret_row,
                      struct ron_errinfo *reterr) RON_MUST_USE;
struct ron_slice row_text(const struct row *row, const char *name); /* empty: not there */
bool row_u64(const struct row *row, const char *name, uint64_t *ret_value);

#endif
