/*
 * checks_impl.h - what the files of the checks share.
 */
#ifndef RON_LEDGER_CHECKS_IMPL_H
#define RON_LEDGER_CHECKS_IMPL_H

#include "base/assert.h"
#include "ledger/checks.h"
#include "rt/atomic.h"
#include "rt/lock.h"

/* --- checks_wire.c: bodies and answers, pure -------------------------------------------------- */

enum { CHECK_QUESTION_SIZE_MAX = 4 << 20 };
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

/* Does an op of this kind take from an account of its caller? */
bool check_kind_debits(unsigned kind);

/* --- checks_cache.c: questions with yes for an answer, under the checks' lock --------------------
 */

struct check_cache_row {
    uint64_t until_ns; /* 0: free */
    uint64_t epoch;
    struct ron_u128 tenant;
    enum ledger_caller caller;
    enum ledger_command_kind kind;
    uint8_t ref_size;
    char ref[AUTH_IDENTIFIER_SIZE_MAX];
};
struct check_cache {
    uint32_t slots_count; /* a power of two, or 0 */
    uint64_t epoch;       /* the newest that any answer named */
    struct check_cache_row *rows;
};
bool check_cache_has(const struct check_cache *cache, const struct ledger_request *request,
                     uint64_t now_ns);
/* An answer named this epoch: what verified before it no longer counts. */
void check_cache_epoch(struct check_cache *cache, uint64_t epoch);
void check_cache_put(struct check_cache *cache, const struct ledger_request *request,
                     uint64_t epoch, uint64_t until_ns);

/* --- The state ----------------------------------------------------------------------------------
 */

/* A request on its way from port to port. */
struct check_walk {
    struct ledger_request *request;
    ledger_asked_fn *asked;
    void *context;
    enum ledger_check_port port; /* where it is, or goes next */
    bool charged, spent;
};

/* A parked request and what it waits for. Free, or of the task of its port. */
struct question {
    struct io_flight flight;
    struct ledger_checks *checks;
    struct question *next; /* of the free, the leaders, or of those who follow one */
    struct check_walk walk;
    uint64_t bytes; /* counted */
    struct ron_buf body;
    /* At its port: */
    bool trying;                /* a try is under way; else it is not asked yet, or follows */
    struct question *leader;    /* whose answer it waits for */
    struct question *followers; /* who wait for ours */
    bool told;                  /* `answer` is what the leader got */
    bool alone;                 /* it follows nobody any more */
    uint64_t epoch;             /* the newest known when it was asked */
    uint64_t asked_ns;
    unsigned retries_count;
    struct rt_breaker_ticket ticket;
    struct check_answer answer;
    bool timed_out;    /* the last try */
    bool all_its_time; /* the last try had it */
    bool certain;      /* a try failed, and not for want of time or a connection */
};

struct remote {
    struct io_flights *flights; /* NULL: in process */
    struct ledger_check_remote options;
    struct rt_backoff_policy backoff;
    struct question *leaders; /* KMS: those asked, of the port's task */
    struct rt_atomic_u32 abandoned;
    struct rt_breaker breaker RON_GUARDED_BY(breaker);
    uint64_t open_from_ns RON_GUARDED_BY(breaker); /* counted as open up to here */
    bool told_open RON_GUARDED_BY(breaker);        /* what the owner heard last */
    struct rt_counter retries, timeouts, opened, open_time;
    struct rt_gauge state;
    struct rt_histogram duration;
};

struct ledger_checks {
    uint32_t magic;
    struct ledger_checks_options options;
    ledger_report_fn *report;
    void *report_context;
    struct question *questions; /* in_flight_max; NULL: no port is remote */
    struct rt_lock lock;        /* class breaker; never held while anything is asked */
    struct rt_cond changed;     /* canceled, a breaker's state, or nothing parked any more */
    bool canceled RON_GUARDED_BY(breaker);
    struct auth_policy *policy RON_GUARDED_BY(breaker);
    struct check_cache cache RON_GUARDED_BY(breaker);
    struct question *free RON_GUARDED_BY(breaker);
    struct ledger_checks_parked parked RON_GUARDED_BY(breaker);
    struct rt_gauge parked_level;
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
/* Hand the question to its port, breaker and retries included: question_over follows, perhaps
 * before this returns, unless it fails. */
enum ron_err remote_submit(struct question *question, struct ron_errinfo *reterr) RON_MUST_USE;
/* Count the time it was open until now. */
void remote_count_open(struct remote *remote, uint64_t now_ns) RON_NEEDS(breaker);
bool remote_is_open(const struct remote *remote, uint64_t now_ns) RON_NEEDS(breaker);
/* Tell the owner what is true now, whoever else is telling it something. */
void remote_tell(struct ledger_checks *checks, enum ledger_check_port port);

/* --- checks.c -----------------------------------------------------------------------------------
 */

/* Policy in process; charges. */
enum ron_err check_evaluate(struct ledger_checks *checks, const struct ledger_request *request,
                            bool *ret_spent, struct ron_errinfo *reterr) RON_MUST_USE
    RON_NEEDS(breaker);

/* --- checks_walk.c ------------------------------------------------------------------------------
 */

enum ron_err walk_init(struct ledger_checks *checks, struct ron_errinfo *reterr) RON_MUST_USE;
void walk_fini(struct ledger_checks *checks); /* also of one that was not initialised */
/* Its port has answered: on to the next, or out. */
void question_over(struct question *question, enum ron_err err, const struct ron_errinfo *info);

#endif
