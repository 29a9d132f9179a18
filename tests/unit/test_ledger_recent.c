/*
 * test_ledger_recent.c - what is known for a while, by hash. Method: beside a list of what was
 * added, in which everything is looked for after each step; few hashes, so that buckets overflow
 * all the time; seqs around 2^31, where tags begin anew.
 */
#include "ledger_fixture.h"

#include "ledger/core_recent.h"

enum { PLACES = 64, HASHES = 24, STEPS = 6000 };

struct world {
    struct ledger_recent recent;
    uint64_t first, next;
    uint32_t hashes[STEPS + 1]; /* of seq begin + i */
    uint64_t begin;
    uint64_t random;
};

static uint32_t draw(struct world *w, uint32_t below)
{
    w->random = w->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(w->random >> 33) % below;
}

static bool has(const struct world *w, uint32_t hash, uint64_t seq)
{
    struct ledger_recent_walk walk = ledger_recent_begin(&w->recent, hash);
    uint32_t tag;

    while ((tag = ledger_recent_next(&w->recent, &walk, w->first)) != LEDGER_RECENT_NONE)
        if (tag == ledger_tag(seq))
            return true;
    return false;
}

/* Everything that counts is found, and nothing else. */
static void check(const struct world *w)
{
    for (uint64_t seq = w->begin; seq < w->next; seq++)
        assert_int_equal(has(w, w->hashes[seq - w->begin], seq), seq >= w->first);
    assert_int_equal(ledger_recent_count(&w->recent, w->first), w->next - w->first);
}

static void begin(struct world *w, uint64_t seq)
{
    memset(w, 0, sizeof(*w));
    w->begin = w->first = w->next = seq;
    assert_true(ledger_recent_init(&w->recent, PLACES));
}

static void add(struct world *w)
{
    /* Of four buckets, hash 0 among them: an empty slot is not of that hash. */
    const uint32_t hash = draw(w, HASHES) << 8 | draw(w, 4);

    w->hashes[w->next - w->begin] = hash;
    ledger_recent_add(&w->recent, hash, w->next++, w->first);
}

static void forget(struct world *w, uint64_t count)
{
    const uint64_t before = w->first;

    w->first = count < w->next - w->first ? w->first + count : w->next;
    ledger_recent_sweep(&w->recent, before, w->first);
}

static void run(uint64_t seq)
{
    struct world *w = ron_mem_alloc(sizeof(*w));

    assert_non_null(w);
    begin(w, seq);
    check(w);
    while (w->next - w->begin < STEPS) {
        const uint32_t count = 1 + draw(w, 12);

        for (uint32_t i = 0; i < count && w->next - w->begin < STEPS; i++) {
            if (w->next - w->first == PLACES)
                forget(w, 1 + draw(w, 8));
            add(w);
        }
        if (draw(w, 4) == 0) /* the newest are taken back, and others get their seqs */
            for (uint32_t i = draw(w, count + 1); i > 0 && w->next > w->first; i--) {
                w->next--;
                ledger_recent_remove(&w->recent, w->hashes[w->next - w->begin], w->next);
            }
        /* Whenever tags begin anew between the oldest that counts and the newest. */
        if (draw(w, 16) == 0 || ledger_tag(w->next) < ledger_tag(w->first))
            check(w);
    }
    check(w);
    forget(w, UINT64_MAX); /* all of them */
    check(w);
    ledger_recent_fini(&w->recent);
    (void)ron_mem_free(w);
}

static void what_counts_is_found_and_nothing_else(void **state)
{
    (void)state;
    run(1);
    run((UINT64_C(1) << 30) - STEPS / 2);
    run((UINT64_C(1) << 31) - STEPS / 2);
    run((UINT64_C(1) << 32) - STEPS / 2);
    run((UINT64_C(7) << 31) - STEPS / 2);
}

/* What is dead is emptied within a turn of the sweep: it is never so old that it looks new. */
static void what_is_dead_does_not_stay(void **state)
{
    struct world w;
    uint64_t turn;

    (void)state;
    begin(&w, 1);
    for (unsigned i = 0; i < PLACES; i++)
        ledger_recent_add(&w.recent, 3, w.next++, w.first); /* all from one bucket on */
    turn = ((uint64_t)w.recent.mask + 1) * LEDGER_RECENT_PACE;
    forget(&w, UINT64_MAX);
    assert_int_equal(ledger_recent_count(&w.recent, w.first), 0);
    for (uint64_t seq = w.first; seq < PLACES + 1 + turn; seq += LEDGER_RECENT_PACE)
        ledger_recent_sweep(&w.recent, seq, seq + LEDGER_RECENT_PACE);
    for (uint32_t i = 0; i <= w.recent.mask; i++)
        for (unsigned k = 0; k < LEDGER_RECENT_LANES; k++)
            assert_int_equal(atomic_load(&w.recent.buckets[i].numbers[k]), 0);
    ledger_recent_fini(&w.recent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_counts_is_found_and_nothing_else),
        cmocka_unit_test(what_is_dead_does_not_stay),
    };
    return cmocka_run_group_tests_name("ledger_recent", tests, NULL, NULL);
}
