/*
 * ledger_load.h - the generator of `./dev bench ledger`: its draws, its options, its report.
 *
 * A process of its own beside the server. Closed loop: each place in flight asks again as soon as
 * it is answered. Every id is drawn anew, accounts uniformly or one hot pair.
 */
#ifndef RON_BENCH_LEDGER_LOAD_H
#define RON_BENCH_LEDGER_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/secret.h"
#include "ledger/core_types.h"
#include "rt/lock_classes.h"

enum { LOAD_NAME_SIZE = 24, LOAD_SLOT_MS = 100, LOAD_SLOTS_MAX = 36000 };

struct load_options {
    const char *url;
    struct ron_secret token;
    const char *token_text;
    const char *path; /* HTTP: "/ingest" or "/ingest?proof=1" */
    uint32_t accounts_count;
    uint32_t batch;
    uint32_t connections_count, inflight_count; /* the latter of each; OAP */
    uint64_t duration_ns;
    uint64_t transfers_max; /* 0: as many as the time allows */
    uint64_t per_s;         /* OAP: transfers a second, 0: as many as are answered */
    bool hot;
    bool reads; /* HTTP: GET, an account `acct:` in the path drawn each time */
};

/* Ends the program with the message. */
void load_must(enum ron_err err, const struct ron_errinfo *info);
void load_die(const char *text) RON_NORETURN;

/* One stream of draws for each thread. */
struct load_draw {
    uint64_t state;
};
void load_draw_init(struct load_draw *draw);
static inline uint64_t load_draw_next(struct load_draw *draw)
{
    draw->state ^= draw->state << 13;
    draw->state ^= draw->state >> 7;
    draw->state ^= draw->state << 17;
    return draw->state;
}
/* Below count, by the high bits of a product: a division would cost more than the rest. */
static inline uint32_t load_draw_below(uint32_t drawn, uint32_t count)
{
    return (uint32_t)((uint64_t)drawn * count >> 32);
}
/* Two accounts that are not one. */
static inline void load_draw_pair(struct load_draw *draw, const struct load_options *options,
                                  uint64_t number, uint32_t *ret_from, uint32_t *ret_to)
{
    uint32_t from = (uint32_t)(number % 2);
    uint32_t to = 1 - from;

    if (!options->hot) {
        const uint64_t drawn = load_draw_next(draw);

        from = load_draw_below((uint32_t)drawn, options->accounts_count);
        to = load_draw_below((uint32_t)(drawn >> 32), options->accounts_count - 1);
        to = to >= from ? to + 1 : to;
    }
    *ret_from = from;
    *ret_to = to;
}

/* "acct:" and 19 digits. */
void load_account_name(uint32_t number, char ret_name[static LOAD_NAME_SIZE + 1]);

/* All is ready and the first request is about to be sent: from here on time counts. */
void load_begin(void);
/* A request was answered; any thread. */
void load_note(uint64_t asked_ns, uint64_t now_ns, uint32_t transfers_count);
/* Open and fill the accounts; then only the ids are needed. */
void load_oap_open(const struct load_options *options) RON_BLOCKS;
void load_oap_run(const struct load_options *options) RON_BLOCKS;
void load_http_run(const struct load_options *options) RON_BLOCKS;

/* Every link of a data directory (ledger/verify_dir.h); the number of entries is printed. */
int load_verify(const char *data) RON_BLOCKS;

#endif
