/*
 * test_replay_ahead.c - a log read ahead of who replays it. Method: frames of a fixture's core are
 * handed in by a source in memory; a core that replays them must become the same, and whatever is
 * wrong with a frame is said after the frames before it, at any place of any sheaf.
 */
#include "ledger_fixture.h"

#include "ledger/core_types.h"
#include "ledger/replay_ahead.h"
#include "rt/registry.h"

enum {
    FRAMES_COUNT = 5 * LEDGER_SHEAF_FRAMES_MAX + 7, /* more than are on their way at once */
    FRAMES_SIZE = 1 << 19,
    ROOT_AT = 112,
};

struct log {
    struct fixture *f;
    struct ledger_core *core; /* replays */
    struct ledger_replay *replay;
    uint8_t bytes[FRAMES_SIZE];
    size_t starts[FRAMES_COUNT + 1];
    uint64_t first;    /* record that is handed in first */
    uint64_t shift;    /* frame n + shift is handed in as record n */
    uint64_t fails_at; /* the source fails before this record; 0: never */
    enum ron_err fails_with;
    uint64_t given_count; /* by the source */
    struct ledger_pages pages;
};

static int setup(void **state)
{
    struct ledger_capacity capacity = fixture_capacity();
    struct log *log = ron_mem_alloc(sizeof(*log));
    char line[80];

    rt_init();
    assert_non_null(log);
    log->f = fixture_new(&capacity, NULL);
    log->first = 1;
    log->fails_with = RON_ERR_IO;
    assert_ok(ledger_core_new(&capacity, NULL, &log->core, NULL));
    assert_ok(ledger_replay_new(log->core, &log->replay, NULL));
    for (unsigned i = 0; i < FRAMES_COUNT; i++) {
        (void)snprintf(line, sizeof(line), "Mint id=m%u to=a%u asset=roc amount=7 memo=%u", i,
                       i % 50, i);
        log->f->texts_size = 0;
        applies(log->f, line, NULL);
        assert_true(log->f->frame_size <= FRAMES_SIZE - log->starts[i]);
        memcpy(log->bytes + log->starts[i], log->f->frame, log->f->frame_size);
        log->starts[i + 1] = log->starts[i] + log->f->frame_size;
    }
    *state = log;
    return 0;
}

static int teardown(void **state)
{
    struct log *log = *state;
    void *fixture = log->f;

    (void)ledger_replay_free(log->replay);
    (void)ledger_core_free(log->core);
    (void)fixture_teardown(&fixture);
    (void)ron_mem_free(log);
    return 0;
}

static enum ron_err hand_in(void *context, ledger_frame_fn *fn, void *fn_context,
                            struct ron_errinfo *reterr)
{
    struct log *log = context;
    enum ron_err err = RON_ERR_OK;

    for (uint64_t n = log->first; n + log->shift <= FRAMES_COUNT && err == RON_ERR_OK; n++) {
        const size_t *start = &log->starts[n + log->shift - 1];

        if (n == log->fails_at)
            return ron_fail(reterr, log->fails_with, "the source fails");
        log->given_count++;
        err = fn(fn_context, n, ron_slice_of(log->bytes + start[0], start[1] - start[0]), reterr);
    }
    return err;
}

static struct ledger_ahead *start(struct log *log, uint64_t known) RON_BLOCKS
{
    const struct ron_merkle_frontier frontier = ledger_core_frontier(log->core);
    const struct ledger_ahead_options options = {.owner = "test",
                                                 .source = hand_in,
                                                 .context = log,
                                                 .known = known,
                                                 .frontier = &frontier,
                                                 .pages = &log->pages};
    struct ledger_ahead *ahead = NULL;

    ledger_pages_init(&log->pages, log->core);
    assert_ok(ledger_ahead_start(&options, &ahead, NULL));
    return ahead;
}

/* Replay until an end; how many batches the core has then, and what the end was. */
static uint64_t replay_all(struct log *log, enum ron_err *ret_end) RON_BLOCKS
{
    struct ledger_ahead *ahead = start(log, 0);
    const struct ledger_sheaf *sheaf = NULL;
    uint64_t batches_count = 0;
    enum ron_err err = RON_ERR_OK;

    while (err == RON_ERR_OK) {
        err = ledger_ahead_next(ahead, &sheaf, NULL);
        for (uint32_t i = 0; err == RON_ERR_OK && i < sheaf->frames_count; i++) {
            ledger_replay_prefetch(log->replay, sheaf, i);
            err = ledger_replay_ready(log->replay, &sheaf->frames[i], NULL);
            batches_count += err == RON_ERR_OK ? 1 : 0;
        }
    }
    *ret_end = err;
    assert_null(ledger_ahead_free(ahead));
    assert_null(ledger_core_check(log->core));
    return batches_count;
}

static void frames_come_in_order_and_give_the_same_state(void **state) RON_BLOCKS
{
    struct log *log = *state;
    enum ron_err end;
    struct ron_b3 made, replayed;

    assert_int_equal(replay_all(log, &end), FRAMES_COUNT);
    assert_int_equal(end, RON_ERR_NOT_FOUND);
    made = ledger_core_digest(log->f->core);
    replayed = ledger_core_digest(log->core);
    assert_memory_equal(&made, &replayed, sizeof(made));
}

/* Whichever frame says another root: the batch before it is the last. covers: LED-F06 */
static void a_root_is_checked_at_every_place(void **state) RON_BLOCKS
{
    const uint64_t places[] = {
        1, 2, LEDGER_SHEAF_FRAMES_MAX, LEDGER_SHEAF_FRAMES_MAX + 1, FRAMES_COUNT - 1, FRAMES_COUNT};
    struct log *log = *state;
    uint64_t done_count = 0;

    for (size_t i = 0; i < RON_ARRAY_COUNT(places); i++) {
        uint8_t *root = log->bytes + log->starts[places[i] - 1] + ROOT_AT;
        enum ron_err end;

        root[3] ^= 1;
        log->first = done_count + 1;
        done_count += replay_all(log, &end);
        assert_int_equal(end, RON_ERR_WAL_CORRUPT);
        assert_int_equal(done_count, places[i] - 1);
        root[3] ^= 1;
    }
}

static void an_error_comes_after_the_frames_before_it(void **state) RON_BLOCKS
{
    struct log *log = *state;
    enum ron_err end;

    log->fails_at = LEDGER_SHEAF_FRAMES_MAX + 10;
    assert_int_equal(replay_all(log, &end), log->fails_at - 1);
    assert_int_equal(end, RON_ERR_IO);
    log->first = log->fails_at;
    log->fails_at = 0;
    log->bytes[log->starts[log->first + 20]] ^= 1; /* the magic of a frame */
    assert_int_equal(replay_all(log, &end), 21);
    assert_int_equal(end, RON_ERR_WAL_CORRUPT);
}

/* Records that the state holds are taken apart, and no more; a record is its batch. */
static void known_records_are_not_prepared(void **state) RON_BLOCKS
{
    struct log *log = *state;
    const struct ledger_sheaf *sheaf = NULL;
    struct ledger_ahead *ahead = start(log, FRAMES_COUNT);
    uint64_t next = 1;

    while (ledger_ahead_next(ahead, &sheaf, NULL) == RON_ERR_OK)
        for (uint32_t i = 0; i < sheaf->frames_count; i++)
            assert_int_equal(sheaf->frames[i].frame.batch, next++);
    assert_int_equal(next, FRAMES_COUNT + 1);
    assert_null(ledger_ahead_free(ahead));

    for (uint64_t known = 0; known < 2; known++) {
        log->shift = 1;
        ahead = start(log, known);
        assert_int_equal(ledger_ahead_next(ahead, &sheaf, NULL), RON_ERR_WAL_CORRUPT);
        assert_null(ledger_ahead_free(ahead));
    }
}

/* A file that is not there is not the end of the log. */
static void a_source_that_finds_nothing_is_not_the_end(void **state) RON_BLOCKS
{
    struct log *log = *state;
    enum ron_err end;

    log->fails_at = 3;
    log->fails_with = RON_ERR_NOT_FOUND;
    assert_int_equal(replay_all(log, &end), 2);
    assert_int_equal(end, RON_ERR_IO);
}

/* Leaves without extension are looked at in place: kind, flags, seq and batch. */
static void plain_leaves_are_checked(void **state)
{
    const size_t places[] = {
        offsetof(struct ledger_entry, kind) + 1, offsetof(struct ledger_entry, flags),
        offsetof(struct ledger_entry, flags) + 1, offsetof(struct ledger_entry, seq),
        offsetof(struct ledger_entry, batch)};
    struct log *log = *state;
    struct ledger_frame frame;
    struct ron_slice bytes;

    applies(log->f, "Mint id=p1 to=a1 asset=roc amount=7", "Mint id=p2 to=a2 asset=roc amount=7",
            NULL);
    bytes = ron_slice_of(log->f->frame, log->f->frame_size);
    assert_ok(ledger_frame_decode(bytes, &frame, NULL));
    assert_int_equal(frame.ext.size, 0);
    for (size_t i = 0; i < RON_ARRAY_COUNT(places); i++) {
        uint8_t *byte = log->f->frame + LEDGER_FRAME_HEAD_SIZE + RON_ENTRY_SIZE + places[i];

        *byte ^= 0x10;
        assert_int_equal(ledger_frame_decode(bytes, &frame, NULL), RON_ERR_MALFORMED);
        *byte ^= 0x10;
    }
    log->f->frame[LEDGER_FRAME_HEAD_SIZE + offsetof(struct ledger_entry, flags)] ^= LEDGER_FLAG_EXT;
    assert_int_equal(ledger_frame_decode(bytes, &frame, NULL), RON_ERR_MALFORMED);
}

/* Who has enough stops the reader where it is. */
static void it_ends_before_the_log_does(void **state) RON_BLOCKS
{
    struct log *log = *state;
    struct ledger_ahead *ahead = start(log, 0);
    const struct ledger_sheaf *sheaf = NULL;

    assert_ok(ledger_ahead_next(ahead, &sheaf, NULL));
    assert_null(ledger_ahead_free(ahead));
    assert_true(log->given_count <=
                (LEDGER_AHEAD_SHEAVES + 1) * (uint64_t)LEDGER_SHEAF_FRAMES_MAX + 1);
    ahead = start(log, 0);
    assert_null(ledger_ahead_free(ahead));
    assert_null(ledger_ahead_free(NULL));
}

static enum ron_err make_and_free(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct log *log = context;
    const struct ron_merkle_frontier frontier = ledger_core_frontier(log->core);
    const struct ledger_ahead_options options = {
        .owner = "test", .source = hand_in, .context = log, .frontier = &frontier};
    const struct ledger_sheaf *sheaf = NULL;
    struct ledger_ahead *ahead = NULL;
    enum ron_err err = ledger_ahead_start(&options, &ahead, reterr);

    while (err == RON_ERR_OK)
        err = ledger_ahead_next(ahead, &sheaf, reterr);
    (void)ledger_ahead_free(ahead);
    return err == RON_ERR_NOT_FOUND ? RON_ERR_OK : err;
}

static void no_memory_is_said(void **state) RON_BLOCKS
{
    assert_true(support_fail_each_allocation(make_and_free, *state, 64) > LEDGER_AHEAD_SHEAVES);
}

/* The reader has told of every entry and name, and of those that are known no names. */
static void pages_are_asked_for_by_what_was_read(void **state) RON_BLOCKS
{
    struct log *log = *state;
    const struct ledger_usage before = ledger_core_usage(log->core);
    struct ledger_usage after;
    const struct ledger_sheaf *sheaf = NULL;
    struct ledger_ahead *ahead;
    enum ron_err end;

    (void)replay_all(log, &end);
    after = ledger_core_usage(log->core);
    assert_true(after.accounts > before.accounts);
    assert_int_equal(log->pages.entries_count, FRAMES_COUNT);
    assert_int_equal(log->pages.ring.used, (FRAMES_COUNT + 1) * RON_ENTRY_SIZE); /* from place 1 */
    assert_int_equal(log->pages.accounts.used, after.accounts * sizeof(struct account));
    assert_int_equal(log->pages.names.used, after.names_size);
    ahead = start(log, FRAMES_COUNT);
    while (ledger_ahead_next(ahead, &sheaf, NULL) == RON_ERR_OK)
        continue;
    assert_null(ledger_ahead_free(ahead));
    assert_int_equal(log->pages.ring.used, (FRAMES_COUNT + 1) * RON_ENTRY_SIZE);
    assert_int_equal(log->pages.accounts.used, after.accounts * sizeof(struct account));
}

/* Whole steps, never beyond the table; the index at once, when there is enough to fill it. */
static void pages_are_made_in_steps(void **state)
{
    enum { STEP = 256 << 10, PER_STEP = STEP / RON_ENTRY_SIZE, HUGE = 2 << 20 };
    struct ledger_capacity capacity = fixture_capacity();
    struct ledger_frame frame = {.seq_start = 1};
    struct ledger_core *core = NULL;
    struct ledger_pages pages;

    (void)state;
    capacity.entries_window = 100000;
    assert_ok(ledger_core_new(&capacity, NULL, &core, NULL));
    ledger_pages_init(&pages, core);
    frame.entries_count = PER_STEP - 1;
    ledger_pages_expect(&pages, &frame, false);
    assert_int_equal(pages.ring.made, RON_ENTRY_SIZE); /* where it began: not a step yet */
    assert_int_equal(pages.ids.size, 2 * HUGE);
    assert_int_equal(pages.ids.made, 2 * HUGE);
    frame.seq_start += frame.entries_count;
    frame.entries_count = 1;
    ledger_pages_expect(&pages, &frame, false);
    assert_int_equal(pages.ring.made, RON_ENTRY_SIZE + STEP);
    assert_int_equal(pages.accounts.made, pages.accounts.used);
    for (unsigned i = 0; i < 1000; i++) { /* round and round */
        frame.seq_start += frame.entries_count;
        frame.entries_count = PER_STEP;
        ledger_pages_expect(&pages, &frame, true);
        assert_true(pages.ring.made <= pages.ring.used);
        assert_true(pages.ring.used <= pages.ring.size);
    }
    assert_int_equal(pages.ring.used, pages.ring.size);
    ledger_pages_init(&pages, core);
    frame = (struct ledger_frame){.seq_start = 5, .entries_count = 31};
    ledger_pages_expect(&pages, &frame, false);
    assert_int_equal(pages.ids.made, 0);
    frame.entries_count = 1;
    ledger_pages_expect(&pages, &frame, false);
    assert_int_equal(pages.ids.made, pages.ids.size);
    core = ledger_core_free(core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(frames_come_in_order_and_give_the_same_state, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_root_is_checked_at_every_place, setup, teardown),
        cmocka_unit_test_setup_teardown(an_error_comes_after_the_frames_before_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_source_that_finds_nothing_is_not_the_end, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(known_records_are_not_prepared, setup, teardown),
        cmocka_unit_test_setup_teardown(plain_leaves_are_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(it_ends_before_the_log_does, setup, teardown),
        cmocka_unit_test_setup_teardown(no_memory_is_said, setup, teardown),
        cmocka_unit_test_setup_teardown(pages_are_asked_for_by_what_was_read, setup, teardown),
        cmocka_unit_test(pages_are_made_in_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
