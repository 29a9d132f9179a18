/*
 * checks_impl.h - what the files of the checks share.
 */
#ifndef RON_LEDGER_CHECKS_IMPL_H
#define RON_LEDGER_CHECKS_IMPL_H

#include "base/assert.h"
#include "ledger/checks.h"
#include "rt/lock.h"

/* --- checks_wire.c: bodies and answers, pure -------------------------------------------------- */

/* The question of a port about a request. RON_ERR_TOO_LARGE, RON_ERR_NO_MEMORY. */
enum ron_err check_wire_put(enum ledger_check_port port, const struct ledger_request *request,
                            struct ron_buf *buf, struct ron_errinfo *reterr) RON_MUST_USE;

enum check_verdict {
    CHECK_YES,
    CHECK_NO,     /* refused: not asked again */
    CHECK_LATER,  /* it is there, but busy: not asked again either */
    CHECK_FAILED, /* no answer to this question: the upstream's failure */
};
struct check_answer {
    enum check_verdict verdict;
    bool has_epoch;
    uint64_t epoch;
    char text[96]; /* NO: the reason, printable; FAILED: what is wrong */
};
/* What a reply with this status and body says about the capability `grant`. */
void check_wire_read(int status, struct ron_slice body, const struct auth_grant *grant,
                     struct check_answer *ret_answer);

/* Does the op take from an account of its caller? */
bool check_op_debits(const struct ledger_op *op);

/* --- checks_cache.c: capabilities that verified, under the checks' lock -------------------------
 */

struct check_cache_row {
    uint64_t until_ns; /* 0: free */
    uint64_t epoch;
    uint8_t ref_size;
    char ref[AUTH_IDENTIFIER_SIZE_MAX];
};
struct check_cache {
    uint32_t slots_count; /* a power of two, or 0 */
    uint64_t epoch;       /* the newest that any answer named */
    struct check_cache_row *rows;
};
bool check_cache_has(const struct check_cache *cache, const struct auth_grant *grant,
                     uint64_t now_ns);
/* An answer named this epoch: what verified before it no longer counts. */
void check_cache_epoch(struct check_cache *cache, uint64_t epoch);
void check_cache_put(struct check_cache *cache, const struct auth_grant *grant, uint64_t epoch,
                     uint64_t until_ns);

/* --- The state ----------------------------------------------------------------------------------
 */

struct remote {
    struct io_client *client; /* NULL: in process */
    struct ledger_check_remote options;
    struct rt_backoff_policy backoff;
    struct rt_breaker breaker RON_GUARDED_BY(breaker);
    uint64_t open_from_ns RON_GUARDED_BY(breaker); /* counted as open up to here */
    bool told_open RON_GUARDED_BY(breaker);        /* what the owner heard last */
    struct rt_counter retries, timeouts, opened, open_time;
    struct rt_gauge state;
};

struct ledger_checks {
    uint32_t magic;
    struct ledger_checks_options options;
    ledger_report_fn *report;
    void *report_context;
    struct rt_lock lock;    /* class breaker; never held while anything is asked */
    struct rt_cond changed; /* canceled, or a breaker's state */
    bool canceled RON_GUARDED_BY(breaker);
    struct auth_policy *policy RON_GUARDED_BY(breaker);
    struct check_cache cache RON_GUARDED_BY(breaker);
    struct remote remotes[LEDGER_CHECK__COUNT];
};

static inline void checks_lock(struct ledger_checks *checks) RON_LOCKS(breaker)
{
    rt_lock_take(&checks->lock);
}
static inline void checks_unlock(struct ledger_checks *checks) RON_UNLOCKS(breaker)
{
    rt_lock_drop(&checks->lock);
}

/* --- checks_remote.c ----------------------------------------------------------------------------
 */

enum ron_err remote_init(struct ledger_checks *checks, enum ledger_check_port port,
                         struct ron_errinfo *reterr) RON_MUST_USE;
/* Ask the port, breaker and retries included. */
enum ron_err remote_ask(struct ledger_checks *checks, enum ledger_check_port port,
                        const struct ledger_request *request,
                        struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Count the time it was open until now. */
void remote_count_open(struct remote *remote, uint64_t now_ns) RON_NEEDS(breaker);
bool remote_is_open(const struct remote *remote, uint64_t now_ns) RON_NEEDS(breaker);
/* Tell the owner what is true now, whoever else is telling it something. */
void remote_tell(struct ledger_checks *checks, enum ledger_check_port port);

#endif
