/*
 * test_ledger_ids.c - where the window has an id, asked by others than the sequencer. Method: a
 * core whose archive knows nothing, so that ids may be used again once they are forgotten; several
 * turns of the ring; ids that crowd one part of the index, so that they go on to other buckets and
 * use the slots of what died, while a second thread looks for the newest (run under TSan too).
 */
#include "ledger_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

#include "ledger/core_ids.h"
#include "ledger/core_types.h"

enum { WINDOW = 64, TURN = 1 << 13, CROWD = 256, CROWD_BUCKETS = 8, COMMITS = 20000 };

struct world {
    struct fixture *f;
    struct ledger_id ids[CROWD];
    char texts[CROWD][16];
};

static bool no_entry(void *context, const struct ledger_id *id, uint64_t batch_max,
                     struct ledger_entry *ret_entry)
{
    (void)context;
    (void)id;
    (void)batch_max;
    (void)ret_entry;
    return false;
}

static bool no_nonce(void *context, const struct ledger_id *debit, uint64_t nonce,
                     uint64_t batch_max, struct ledger_entry *ret_entry)
{
    (void)nonce;
    return no_entry(context, debit, batch_max, ret_entry);
}

static int world_setup(void **state)
{
    const struct ledger_archive archive = {.find_entry = no_entry, .find_nonce = no_nonce};
    struct ledger_capacity capacity = fixture_capacity();
    struct world *w = ron_mem_alloc(sizeof(*w));

    assert_non_null(w);
    capacity.entries_window = WINDOW;
    capacity.batches_window = 2 * COMMITS;
    w->f = fixture_new(&capacity, &archive);
    assert_int_equal(w->f->core->ring_mask, TURN - 1);
    *state = w;
    return 0;
}

static int world_teardown(void **state)
{
    struct world *w = *state;
    void *fixture = w->f;

    (void)ron_mem_free(w);
    return fixture_teardown(&fixture);
}

static enum ron_err apply(struct world *w, const char *const *lines, size_t count)
{
    struct fixture *f = w->f;
    enum ron_err err;

    f->command.kind = LEDGER_COMMAND_INGEST;
    for (size_t i = 0; i < count; i++)
        fixture_add(f, lines[i]);
    f->command.ops = f->ops;
    err = ledger_core_apply(f->core, &f->command, &f->batch, &f->result, &f->refusal, &f->info);
    f->command.ops_count = 0;
    f->texts_size = 0;
    return err;
}

static void publish(struct world *w)
{
    ledger_core_seal(w->f->core, &w->f->batch);
    ledger_core_commit(w->f->core, &w->f->batch);
}

static void mint(struct world *w, const char *text)
{
    char line[96];

    (void)snprintf(line, sizeof(line), "Mint id=%s to=alice asset=roc amount=1", text);
    if (apply(w, &(const char *){line}, 1) != RON_ERR_OK)
        fail_msg("%s", w->f->info.message);
}

static struct ledger_id id_of(const char *text)
{
    return ledger_entry_id(ron_u128_of(0), S(text));
}

/* Three turns of the ring: what is in the window is told, what it has forgotten is not. */
static void a_window_says_where_an_id_is(void **state)
{
    struct world *w = *state;
    struct ledger_id id = id_of("never");
    char text[16];

    for (uint64_t seq = 1; seq <= 3 * (uint64_t)TURN; seq++) {
        (void)snprintf(text, sizeof(text), "e%llu", (unsigned long long)seq);
        mint(w, text);
        if (seq % 1000 == 0) { /* not committed: not told */
            id = id_of(text);
            assert_int_not_equal(ledger_core_seq_of(w->f->core, &id, seq - 1, UINT64_MAX), seq);
        }
        publish(w);
        if (seq % 1000 != 0)
            continue;
        for (uint64_t age = 0; age < 2 * WINDOW; age++) {
            uint64_t found;

            (void)snprintf(text, sizeof(text), "e%llu", (unsigned long long)(seq - age));
            id = id_of(text);
            found = ledger_core_seq_of(w->f->core, &id, seq, UINT64_MAX);
            if (age <= WINDOW)
                assert_int_equal(found, seq - age);
            else
                assert_int_not_equal(found, seq - age);
        }
    }
    id = id_of("never");
    assert_int_equal(ledger_core_seq_of(w->f->core, &id, 3 * (uint64_t)TURN, UINT64_MAX), 0);
    assert_null(ledger_core_check(w->f->core));
}

/* Ids that have fewer buckets than they need. */
static void draw_crowd(struct world *w)
{
    char text[16];
    unsigned number = 0;

    for (size_t count = 0; count < CROWD; number++) {
        (void)snprintf(text, sizeof(text), "c%u", number);
        w->ids[count] = id_of(text);
        if ((id_hash(&w->ids[count]) & w->f->core->id_index.mask) < CROWD_BUCKETS)
            memcpy(w->texts[count++], text, sizeof(text));
    }
}

struct reader {
    const struct world *w;
    _Atomic bool stop;
    _Atomic uint64_t found_count, missed_count;
};

/* Entry seq has id seq % CROWD: the newest is in the window, unless it grew old meanwhile. */
static void *look_for_newest(void *context)
{
    struct reader *reader = context;
    const struct ledger_core *core = reader->w->f->core;

    while (!atomic_load(&reader->stop)) {
        const uint64_t seq = ledger_core_committed_seq(core);

        if (seq == 0)
            continue;
        if (ledger_core_seq_of(core, &reader->w->ids[seq % CROWD], seq, UINT64_MAX) == seq)
            atomic_fetch_add(&reader->found_count, 1);
        else if (ledger_core_committed_seq(core) < seq + WINDOW / 2)
            atomic_fetch_add(&reader->missed_count, 1);
    }
    return NULL;
}

static unsigned spilled_count(const struct ledger_core *core)
{
    unsigned count = 0;

    for (uint32_t i = 0; i <= core->id_index.mask; i++)
        count += atomic_load(&core->id_index.buckets[i].numbers[0]) != 0 ? 1 : 0;
    return count;
}

static void no_id_is_missed_while_others_come_and_go(void **state)
{
    struct world *w = *state;
    struct reader reader = {.w = w};
    pthread_t thread;

    draw_crowd(w);
    assert_int_equal(pthread_create(&thread, NULL, look_for_newest, &reader), 0);
    for (uint64_t seq = 1; seq <= COMMITS; seq++) {
        char line[96];
        const char *const refused[] = {line, "Burn id=b from=nobody asset=roc amount=9"};

        mint(w, w->texts[seq % CROWD]);
        publish(w);
        if (seq % 4 != 0)
            continue;
        (void)snprintf(line, sizeof(line), "Mint id=%s to=alice asset=roc amount=1",
                       w->texts[(seq + CROWD / 2) % CROWD]);
        assert_int_equal(apply(w, refused, 2), RON_ERR_INSUFFICIENT_FUNDS);
    }
    while (atomic_load(&reader.found_count) < 100)
        ;
    atomic_store(&reader.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(atomic_load(&reader.missed_count), 0);
    assert_true(spilled_count(w->f->core) >= 1);
    assert_null(ledger_core_check(w->f->core));
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_window_says_where_an_id_is),
        TEST(no_id_is_missed_while_others_come_and_go),
    };
    return cmocka_run_group_tests_name("ledger_ids", tests, NULL, NULL);
}
