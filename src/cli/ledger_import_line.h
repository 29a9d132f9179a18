/*
 * ledger_import_line.h - a line of an import: what it is, and the entry of a batch that it becomes.
 *
 * Pure: no server, no files. A line is one JSON object: an entry as its client asks for it, which
 * is sent as it stands; or a line of an export, which has `batch_no` and becomes the entry that its
 * client once asked for. Whether that can be done is the ledger's to say; only what it needs to be
 * asked for again must be there.
 */
#ifndef RON_CLI_LEDGER_IMPORT_LINE_H
#define RON_CLI_LEDGER_IMPORT_LINE_H

#include "cli/ledger_row.h"

enum {
    IMPORT_LINE_SIZE_MAX = 64 << 10,
    IMPORT_LINE_ARENA_SIZE = 4 * IMPORT_LINE_SIZE_MAX, /* enough to read any of them */
};

enum import_line_kind {
    IMPORT_LINE_EMPTY,
    IMPORT_LINE_PLAIN,    /* an entry as a client asks for it */
    IMPORT_LINE_EXPORTED, /* an entry that a client asked for */
    IMPORT_LINE_ASSET,    /* an exported asset: a request of its own */
    IMPORT_LINE_OWN,      /* what a ledger wrote itself: the next one writes its own */
};

/* Of an exported entry: where its accounts stood, and what its line must have besides. */
struct exported_kind;

struct import_line {
    enum import_line_kind kind;
    struct ron_slice text; /* all of it */
    struct row row;
    uint64_t group; /* batch it was exported from; 0 of a plain line */
    const struct exported_kind *exported;
    /* Of a Hold and of a Capture, for whom the hold is: Captures of one for any payee say whose. */
    bool is_hold, is_capture, hold_is_for_any;
    struct ron_slice hold_id;
    struct ron_slice tenant; /* exported */
    struct ron_slice terms;  /* of an asset, a body for POST /assets */
};

/* Borrows text and arena, which is not reset. RON_ERR_MALFORMED: no such object, a kind that no
 * client may write, a member is missing, a payout of a run; RON_ERR_TOO_LARGE. */
enum ron_err import_line_read(struct ron_slice text, struct ron_arena *arena,
                              struct import_line *ret_line,
                              struct ron_errinfo *reterr) RON_MUST_USE;
/* Append the entry, one JSON object, of a plain or exported line. for_any: the hold of a Capture is
 * for any payee. No Hold ends before holds_until_ms; 0: each as its line says. RON_ERR_MALFORMED: a
 * Hold's end is no time. */
enum ron_err import_line_put(const struct import_line *line, bool for_any, uint64_t holds_until_ms,
                             struct ron_buf *buf, struct ron_errinfo *reterr) RON_MUST_USE;

#endif
