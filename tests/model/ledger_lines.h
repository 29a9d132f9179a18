/*
 * ledger_lines.h - JSON lines into stamped commands of the ledger core, for tests.
 *
 * Strict like the API: a member that its command does not have is refused, whatever its value.
 * Knows nothing of the rules: it translates.
 */
#ifndef RON_TESTS_MODEL_LEDGER_LINES_H
#define RON_TESTS_MODEL_LEDGER_LINES_H

#include "base/arena.h"
#include "ledger/core.h"

enum { LINE_SIZE_MAX = 8 << 20, LINES_ARENA_SIZE = 256 << 20, LINES_TEXT_MAX = 1 << 16 };

/* One line; the texts lie in the input or the arena. */
struct line {
    uint64_t present;
    struct ron_slice cmd, caller, capability, key, fingerprint, asset, account, epoch_id, run_key;
    struct ron_slice commitment, funding_source, dimension, digest, prev, batch, payouts;
    struct ron_slice names;
    struct ron_u128 tenant, max_supply, minimum, maximum, credit_line, daily, total;
    uint64_t commit_ms, seq, upto;
    uint32_t decimals, chunk, chunks;
    bool reserved_ok, frozen, on;
};

/* What translating needs; made once. */
struct lines {
    struct ron_arena arena;
    struct ron_buf meta;
    struct ledger_op *ops;
};

/* RON_ERR_NO_MEMORY. */
enum ron_err lines_init(struct lines *lines, struct ron_errinfo *reterr) RON_MUST_USE;
void lines_fini(struct lines *lines);

/* Read one line; what was read before is gone. RON_ERR_MALFORMED. */
enum ron_err lines_read(struct lines *lines, struct ron_slice text, struct line *ret_line,
                        struct ron_errinfo *reterr) RON_MUST_USE;
/* Its command, or 0 if `cmd` names none. */
enum ledger_command_kind lines_kind(const struct line *line);
/* The stamped command. On failure *ret_refusal has the index where there is one. */
enum ron_err lines_command(struct lines *lines, const struct line *line,
                           struct ledger_command *ret_command, struct ledger_refusal *ret_refusal,
                           struct ron_errinfo *reterr) RON_MUST_USE;

#endif
