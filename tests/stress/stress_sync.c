/*
 * stress_sync.c SECONDS - the seam's mutexes and conditions under real threads.
 *
 * Rounds of five games, in which threads at random go to sleep or give up the processor, so that
 * others get past looking and wait in the kernel:
 *
 *  - counting: two halves of a counter, which differ only while the mutex is held;
 *  - mailbox: one place, a single signal for each change of it; nobody waits to his far deadline;
 *  - barrier: one broadcast releases all;
 *  - timeouts: waits with near deadlines among signals; none ends early, no signal is taken twice;
 *  - ends: whoever was waited for does not touch mutex or condition after its unlock.
 *
 * A wake-up that is lost shows as a thread that does not end in time.
 */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "rt/atomic.h"
#include "rt/registry.h"
#include "seconds.h"

enum { THREADS = 4, FAR_MS = 10000 };
enum { COUNTS = 4000, LETTERS = 600, GATHERINGS = 60, FLAGS = 40, ENDS = 300 };
enum { SPENT = 0xa5 };

struct page { /* what "ends" gives away and takes back */
    struct sh_mutex mutex;
    struct sh_cond cond;
    bool done;
};

struct round {
    struct sh_mutex mutex; /* guards what follows */
    struct sh_cond cond, other_cond;
    uint64_t low, high;                                      /* counting */
    unsigned letters_count, sent_count, taken_count;         /* mailbox: 0 or 1; in all */
    unsigned arrived_count, gatherings_count;                /* barrier */
    unsigned flags_raised_count, flags_count, lowered_count; /* timeouts: in all; up now; seen */
    bool raised_all;
    struct page pages[2];       /* ends */
    struct rt_atomic_ptr given; /* the page that waits for its end */
};

static struct rt_deadline far_deadline(void)
{
    return rt_deadline_after_ms(FAR_MS);
}

/* Now and then: long enough for others to fall asleep. */
static void dawdle(unsigned one_in)
{
    const uint64_t chance = sh_random();

    if (chance % one_in == 0)
        sh_sleep_until(rt_now_ns() + chance / one_in % 150000);
    else if (chance % one_in == 1)
        sh_yield();
}

static void count_main(void *context)
{
    struct round *round = context;

    for (unsigned i = 0; i < COUNTS; i++) {
        sh_mutex_lock(&round->mutex);
        RON_ASSERT(round->low == round->high);
        round->low++;
        dawdle(512);
        round->high++;
        sh_mutex_unlock(&round->mutex);
    }
}

static void send_main(void *context)
{
    struct round *round = context;

    for (unsigned i = 0; i < LETTERS; i++) {
        const struct rt_deadline deadline = far_deadline();

        dawdle(64);
        sh_mutex_lock(&round->mutex);
        while (round->letters_count == 1)
            RON_ASSERT(sh_cond_wait(&round->cond, &round->mutex, deadline.at_ns));
        round->letters_count++;
        round->sent_count++;
        sh_cond_signal(&round->other_cond);
        sh_mutex_unlock(&round->mutex);
    }
}

static void take_main(void *context)
{
    struct round *round = context;

    for (unsigned i = 0; i < LETTERS; i++) {
        const struct rt_deadline deadline = far_deadline();

        dawdle(64);
        sh_mutex_lock(&round->mutex);
        while (round->letters_count == 0)
            RON_ASSERT(sh_cond_wait(&round->other_cond, &round->mutex, deadline.at_ns));
        round->letters_count--;
        round->taken_count++;
        sh_cond_signal(&round->cond);
        sh_mutex_unlock(&round->mutex);
    }
}

static void gather_main(void *context)
{
    struct round *round = context;

    for (unsigned i = 0; i < GATHERINGS; i++) {
        const struct rt_deadline deadline = far_deadline();

        dawdle(8);
        sh_mutex_lock(&round->mutex);
        RON_ASSERT(round->gatherings_count == i);
        if (++round->arrived_count == THREADS) {
            round->arrived_count = 0;
            round->gatherings_count++;
            sh_cond_broadcast(&round->cond);
        }
        while (round->gatherings_count == i)
            RON_ASSERT(sh_cond_wait(&round->cond, &round->mutex, deadline.at_ns));
        sh_mutex_unlock(&round->mutex);
    }
}

static void raise_main(void *context)
{
    struct round *round = context;

    for (unsigned i = 0; i < FLAGS; i++) {
        sh_sleep_until(rt_now_ns() + sh_random() % 100000);
        sh_mutex_lock(&round->mutex);
        round->flags_count++;
        round->flags_raised_count++;
        sh_cond_signal(&round->cond);
        sh_mutex_unlock(&round->mutex);
    }
    sh_mutex_lock(&round->mutex);
    round->raised_all = true;
    sh_cond_broadcast(&round->cond);
    sh_mutex_unlock(&round->mutex);
}

static void lower_main(void *context)
{
    struct round *round = context;

    sh_mutex_lock(&round->mutex);
    while (round->flags_count > 0 || !round->raised_all) {
        const uint64_t deadline_ns = rt_now_ns() + sh_random() % 100000;

        if (!sh_cond_wait(&round->cond, &round->mutex, deadline_ns))
            RON_ASSERT(rt_now_ns() >= deadline_ns);
        if (round->flags_count > 0) {
            round->flags_count--;
            round->lowered_count++;
        }
    }
    sh_mutex_unlock(&round->mutex);
}

static void own_main(void *context)
{
    struct round *round = context;

    for (unsigned i = 0; i < ENDS; i++) {
        struct page *page = &round->pages[i % RON_ARRAY_COUNT(round->pages)];
        const unsigned char *bytes = (const unsigned char *)page;
        const struct rt_deadline deadline = far_deadline();

        for (size_t at = 0; at < sizeof(*page); at++)
            RON_ASSERT(bytes[at] == SPENT); /* nobody wrote to it after its end */
        sh_mutex_init(&page->mutex, "page");
        sh_cond_init(&page->cond, "page");
        page->done = false;
        rt_atomic_store_ptr(&round->given, page);
        sh_mutex_lock(&page->mutex);
        while (!page->done)
            RON_ASSERT(sh_cond_wait(&page->cond, &page->mutex, deadline.at_ns));
        sh_mutex_unlock(&page->mutex);
        sh_cond_fini(&page->cond);
        sh_mutex_fini(&page->mutex);
        memset(page, SPENT, sizeof(*page));
    }
}

static void end_main(void *context)
{
    struct round *round = context;

    for (unsigned i = 0; i < ENDS; i++) {
        struct page *page;

        while ((page = rt_atomic_load_ptr(&round->given)) == NULL)
            sh_yield();
        rt_atomic_store_ptr(&round->given, NULL);
        dawdle(4);
        sh_mutex_lock(&page->mutex);
        page->done = true;
        sh_cond_signal(&page->cond);
        sh_mutex_unlock(&page->mutex);
    }
}

static void play(struct round *round, void (*const mains[THREADS])(void *), unsigned count)
{
    struct sh_thread *threads[THREADS];

    for (unsigned i = 0; i < count; i++)
        RON_MUST_ZERO(sh_spawn("sync", mains[i], round, &threads[i], NULL));
    for (unsigned i = 0; i < count; i++)
        RON_ASSERT(sh_join(threads[i], far_deadline().at_ns)); /* else a wake-up was lost */
}

static void run_round(struct round *round)
{
    *round = (struct round){0};
    memset(round->pages, SPENT, sizeof(round->pages));
    sh_mutex_init(&round->mutex, "round");
    sh_cond_init(&round->cond, "round");
    sh_cond_init(&round->other_cond, "round");
    play(round, (void (*const[THREADS])(void *)){count_main, count_main, count_main, count_main},
         4);
    RON_ASSERT(round->low == (uint64_t)THREADS * COUNTS);
    play(round, (void (*const[THREADS])(void *)){send_main, send_main, take_main, take_main}, 4);
    RON_ASSERT(round->taken_count == 2 * LETTERS);
    play(round,
         (void (*const[THREADS])(void *)){gather_main, gather_main, gather_main, gather_main}, 4);
    RON_ASSERT(round->gatherings_count == GATHERINGS);
    play(round, (void (*const[THREADS])(void *)){raise_main, lower_main, lower_main}, 3);
    RON_ASSERT(round->lowered_count == round->flags_raised_count);
    play(round, (void (*const[THREADS])(void *)){own_main, end_main}, 2);
    sh_cond_fini(&round->other_cond);
    sh_cond_fini(&round->cond);
    sh_mutex_fini(&round->mutex);
}

int main(int argc, char **argv)
{
    static struct round round;
    unsigned rounds_count = 0;
    struct rt_deadline end;

    rt_init();
    if (!stress_deadline(argc, argv, &end))
        return 2;
    while (!rt_deadline_expired(end)) {
        run_round(&round);
        rounds_count++;
    }
    RON_ASSERT(ron_mem_live_count() == 0);
    printf("1..1\nok 1 - stress_sync: %u rounds of five games\n", rounds_count);
    return 0;
}
