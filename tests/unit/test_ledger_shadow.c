/*
 * test_ledger_shadow.c - the state at a cut, copied while the core goes on. Method: a state of many
 * chunks in every table that changes in place; its snapshot's bytes and its rows are taken at the
 * cut; then seeded random commands of all eight kinds, refused ones and ones that are taken back,
 * with some chunks copied in between; the whole shadow must give the same bytes.
 */
#include "ledger_fixture.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ledger/core_shadow.h"
#include "ledger/core_snapshot.h"

enum { ACCOUNTS = 50, LIMITS = 40, RUNS = 20, STREAMS = 20, HOLDS = 20, TEXT = 200 };

struct world {
    struct fixture *f;
    struct ledger_shadow *spare; /* of the last cut */
    uint64_t random;
    uint32_t number; /* of the next id */
    uint32_t runs_count;
    uint32_t next_chunk[RUNS + 400];
    uint64_t next_slice[STREAMS];
    uint8_t heads[STREAMS];
    char texts[4][TEXT];
    struct ron_slice names[3];
};

static uint32_t draw(struct world *world, uint32_t below)
{
    world->random = world->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(world->random >> 33) % below;
}

#define LINE(world, i, ...)                                                     \
    ((void)snprintf((world)->texts[i], sizeof((world)->texts[i]), __VA_ARGS__), \
     (const char *)(world)->texts[i])

/* --- Commands ----------------------------------------------------------------------------------
 */

static enum ron_err apply_run(struct world *world, uint32_t run, uint32_t chunk)
{
    struct fixture *f = world->f;
    struct ledger_wire_entry wire;
    struct ledger_id hold;

    f->command.kind = LEDGER_COMMAND_INTENTS;
    f->command.run = (struct ledger_run_terms){
        .epoch_id = S(LINE(world, 0, "e%u", run)),
        .run_key = S(LINE(world, 1, "k%u", run)),
        .funding_source = S("main"),
        .asset = S("roc"),
        .total = ron_u128_of(100),
        .chunk = chunk,
        .chunks = 90,
    };
    f->command.fingerprint.bytes[0] = (uint8_t)chunk;
    hold = ledger_run_hold_id(f->command.stamp.tenant, f->command.run.epoch_id);
    wire = fixture_wire(f, LINE(world, 2, "- id=p%u.%u to=a%u amount=1", run, chunk, run % 50));
    wire.kind = (struct ron_slice){NULL, 0};
    assert_ok(ledger_shape_payout(f->command.stamp.tenant, &hold, &wire,
                                  &f->ops[f->command.ops_count++], &f->info));
    return fixture_apply(f);
}

static void go_on_with_run(struct world *world, uint32_t run)
{
    enum ron_err err = apply_run(world, run, world->next_chunk[run]);

    if (err == RON_ERR_OK)
        world->next_chunk[run]++;
    else
        assert_int_equal(err, RON_ERR_CONFLICT); /* abandoned */
}

static void abandon(struct world *world, uint32_t run)
{
    struct fixture *f = world->f;

    f->command.kind = LEDGER_COMMAND_ABANDON;
    f->command.abandon = (struct ledger_abandon_terms){S(LINE(world, 0, "e%u", run)),
                                                       S(LINE(world, 1, "k%u", run))};
    if (fixture_apply(f) != RON_ERR_OK) /* again: as the first time */
        fail_msg("%s", f->info.message);
}

static void slice(struct world *world, uint32_t stream)
{
    struct fixture *f = world->f;

    f->command.kind = LEDGER_COMMAND_SLICE;
    f->command.slice = (struct ledger_slice_terms){.dimension = S(LINE(world, 0, "d%u", stream)),
                                                   .seq = world->next_slice[stream]};
    f->command.slice.prev[0] = world->heads[stream];
    f->command.slice.digest[0] = (uint8_t)(world->heads[stream] + 1);
    if (fixture_apply(f) != RON_ERR_OK)
        fail_msg("%s", f->info.message);
    world->next_slice[stream]++;
    world->heads[stream]++;
}

static void limits(struct world *world, uint32_t account, uint32_t amount)
{
    const struct ledger_limit_terms terms = {
        .account = S(LINE(world, 0, "a%u", account)),
        .asset = S("roc"),
        .has_credit_line = true,
        .credit_line = ron_u128_of(1000 + amount),
        .has_frozen = true,
        .frozen = amount % 7 == 6,
    };

    if (fixture_limits(world->f, terms) != RON_ERR_OK)
        fail_msg("%s", world->f->info.message);
}

static void open_names(struct world *world)
{
    struct fixture *f = world->f;

    for (unsigned i = 0; i < 3; i++)
        world->names[i] = S(LINE(world, i, "opened%u-%u", world->number, i));
    world->number++;
    f->command.kind = LEDGER_COMMAND_OPEN;
    f->command.open = (struct ledger_open_terms){world->names, 3};
    if (fixture_apply(f) != RON_ERR_OK)
        fail_msg("%s", f->info.message);
}

/* A transfer, a hold, a reversal of a mint; then a new account, or what cannot be. */
static enum ron_err ingest(struct world *world, bool possible)
{
    const uint32_t n = world->number++;
    const uint32_t from = draw(world, ACCOUNTS), to = draw(world, ACCOUNTS);
    const uint32_t other = draw(world, ACCOUNTS), ref = draw(world, ACCOUNTS);
    struct fixture *f = world->f;
    char name[16];

    (void)snprintf(name, sizeof(name), "a%u", from);
    f->command.kind = LEDGER_COMMAND_INGEST;
    fixture_add(f,
                LINE(world, 0, "Transfer id=t%u from=%s to=%s%u asset=roc amount=3 nonce=%llu", n,
                     name, to == from ? "b" : "a", to, (unsigned long long)nonce_of(f, name)));
    fixture_add(f, LINE(world, 0,
                        "Hold id=h%u from=a%u hold_id=H%u payee=c%u "
                        "expires_at=1970-01-01T01:%02u:00Z asset=roc amount=2",
                        n, other, n, other, n % 60));
    fixture_add(f, LINE(world, 0, "Reverse id=r%u ref=m%u asset=roc amount=1", n, ref));
    if (possible)
        fixture_add(f, LINE(world, 0, "Mint id=x%u to=new%u asset=roc amount=5", n, n));
    else
        fixture_add(f, LINE(world, 0, "Burn id=x%u from=nobody%u asset=roc amount=5", n, n));
    return fixture_apply(f);
}

static void ingest_well(struct world *world)
{
    enum ron_err err = ingest(world, true);

    assert_true(err == RON_ERR_OK || err == RON_ERR_LIMIT_EXCEEDED); /* frozen */
}

static void ingest_badly(struct world *world)
{
    enum ron_err err = ingest(world, false);

    assert_true(err == RON_ERR_INSUFFICIENT_FUNDS || err == RON_ERR_LIMIT_EXCEEDED);
}

/* Applied, and taken back before it is committed. */
static void take_back(struct world *world)
{
    struct fixture *f = world->f;

    f->hold_commits = true;
    switch (draw(world, 3)) {
    case 0:
        (void)ingest(world, true);
        break;
    case 1:
        limits(world, draw(world, ACCOUNTS), draw(world, 100));
        break;
    default:
        (void)apply_run(world, draw(world, RUNS), 1 + world->next_chunk[0]);
    }
    f->hold_commits = false;
    ledger_core_rebuild(f->core);
    assert_null(ledger_core_check(f->core));
}

static void random_command(struct world *world)
{
    struct fixture *f = world->f;

    f->command.stamp.commit_ms += draw(world, 4000);
    switch (draw(world, 12)) {
    case 0:
        assert_ok(fixture_asset(f, LINE(world, 0, "coin%u", world->number++), 2, "1000"));
        break;
    case 1:
        limits(world, draw(world, ACCOUNTS), draw(world, 100));
        break;
    case 2:
        go_on_with_run(world, draw(world, RUNS));
        break;
    case 3:
        assert_ok(apply_run(world, RUNS + world->runs_count++, 0));
        break;
    case 4:
        slice(world, draw(world, STREAMS));
        break;
    case 5:
        assert_ok(fixture_expire(f, f->command.stamp.commit_ms + draw(world, 100000)));
        break;
    case 6:
        abandon(world, draw(world, RUNS));
        break;
    case 7:
        open_names(world);
        break;
    case 8:
        ingest_badly(world);
        break;
    case 9:
        take_back(world);
        break;
    default:
        ingest_well(world);
    }
}

/* --- The state and what is written of it ---------------------------------------------------------
 */

/* More than one chunk of everything that changes in place. */
static void fill(struct world *world)
{
    struct fixture *f = world->f;

    for (uint32_t i = 0; i < ACCOUNTS; i++) {
        applies(f, LINE(world, 0, "Mint id=m%u to=a%u asset=roc amount=100000", i, i), NULL);
        applies(f, LINE(world, 0, "Reverse id=u%u ref=m%u asset=roc amount=1", i, i), NULL);
    }
    applies(f, "Mint id=pool to=pool/0/main asset=roc amount=10000000", NULL);
    for (uint32_t i = 0; i < LIMITS; i++)
        limits(world, i, 0);
    for (uint32_t i = 0; i < RUNS; i++)
        go_on_with_run(world, i);
    for (uint32_t i = 0; i < STREAMS; i++)
        slice(world, i);
    for (uint32_t i = 0; i < HOLDS; i++)
        applies(f,
                LINE(world, 0,
                     "Hold id=g%u from=a%u hold_id=G%u payee=* expires_at=1970-01-01T00:%02u:00Z "
                     "asset=roc amount=2",
                     i, i, i, i + 1),
                NULL);
}

static bool find_no_entry(void *context, const struct ledger_id *id, uint64_t batch_max,
                          struct ledger_entry *ret_entry)
{
    (void)context, (void)id, (void)batch_max, (void)ret_entry;
    return false;
}

static bool find_no_nonce(void *context, const struct ledger_id *debit, uint64_t nonce,
                          uint64_t batch_max, struct ledger_entry *ret_entry)
{
    (void)context, (void)debit, (void)nonce, (void)batch_max, (void)ret_entry;
    return false;
}

static uint64_t nothing_yet(void *context)
{
    (void)context;
    return 0;
}

static struct world *world_new(bool with_archive, uint64_t seed)
{
    const struct ledger_archive archive = {
        .find_entry = find_no_entry, .find_nonce = find_no_nonce, .last_batch = nothing_yet};
    struct ledger_capacity capacity = fixture_capacity();
    struct world *world = ron_mem_alloc(sizeof(*world));

    assert_non_null(world);
    world->f = fixture_new(&capacity, with_archive ? &archive : NULL);
    world->random = seed;
    fill(world);
    return world;
}

static void world_free(struct world *world)
{
    (void)ledger_shadow_free(world->spare);
    (void)fixture_teardown((void **)&world->f);
    (void)ron_mem_free(world);
}

struct written {
    struct ron_buf state, rows;
    struct ron_sha256 root;
    uint64_t rows_count;
};

static enum ron_err keep(void *context, struct ron_slice bytes, struct ron_errinfo *reterr)
{
    return ron_buf_append(context, bytes.data, bytes.size, reterr);
}

static struct written write_all(const struct ledger_core *core)
{
    struct written written = {.rows_count = 0};
    struct ledger_scratch scratch;

    ron_buf_init(&written.state, 1 << 22);
    ron_buf_init(&written.rows, 1 << 22);
    assert_ok(ledger_scratch_init(&scratch, core, NULL));
    assert_ok(ledger_scratch_write(&scratch, core, keep, &written.state, NULL));
    assert_ok(ledger_scratch_root(&scratch, core, keep, &written.rows, &written.root,
                                  &written.rows_count, NULL));
    ledger_scratch_fini(&scratch);
    return written;
}

static void written_fini(struct written *written)
{
    ron_buf_fini(&written->state);
    ron_buf_fini(&written->rows);
}

/* Take the whole shadow: it must give what the core gave at the cut. */
static void shadow_is(struct world *world, struct written *cut)
{
    struct ledger_shadow *shadow = ledger_core_shadow_take(world->f->core);
    struct written now = write_all(ledger_shadow_view(shadow));

    assert_int_equal(now.state.size, cut->state.size);
    assert_memory_equal(now.state.data, cut->state.data, cut->state.size);
    assert_int_equal(now.rows.size, cut->rows.size);
    assert_memory_equal(now.rows.data, cut->rows.data, cut->rows.size);
    assert_int_equal(now.rows_count, cut->rows_count);
    assert_memory_equal(now.root.bytes, cut->root.bytes, RON_SHA256_SIZE);
    written_fini(&now);
    written_fini(cut);
    assert_null(ledger_shadow_free(world->spare)); /* too small */
    world->spare = shadow;
}

static struct written begin(struct world *world)
{
    struct written cut = write_all(world->f->core);

    assert_ok(ledger_core_shadow_begin(world->f->core, &world->spare, NULL));
    return cut;
}

static void copy_rest(struct world *world)
{
    while (!ledger_core_shadow_copy(world->f->core, 3))
        continue;
}

/* --- Tests -------------------------------------------------------------------------------------
 */

static void a_shadow_is_the_state_at_the_cut(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 24; seed++) {
        struct world *world = world_new(seed % 4 != 0, seed);
        struct ron_b3 before, after;

        for (unsigned round = 0; round < 3; round++) {
            struct written cut = begin(world);

            for (unsigned i = 0; i < 40; i++) {
                random_command(world);
                if (seed % 3 != 0 && draw(world, 3) == 0)
                    (void)!ledger_core_shadow_copy(world->f->core, draw(world, 2 + 4 * round));
            }
            copy_rest(world);
            random_command(world); /* whole, and not yet taken */
            shadow_is(world, &cut);
        }
        after = ledger_core_digest(world->f->shadow); /* and the core is what replay makes of it */
        before = ledger_core_digest(world->f->core);
        assert_memory_equal(before.bytes, after.bytes, RON_B3_SIZE);
        world_free(world);
    }
}

/* One account after the other is the only one that changes: each end of each chunk among them. */
static void every_place_of_a_chunk_is_kept(void **state)
{
    struct world *world = world_new(true, 1);
    struct fixture *f = world->f;

    (void)state;
    for (uint32_t i = 0; i < ACCOUNTS; i++) {
        struct written cut = begin(world);

        applies(f, LINE(world, 0, "Mint id=only%u to=a%u asset=roc amount=1", i, i), NULL);
        if (i < LIMITS)
            limits(world, i, 7 * i);
        applies(f, LINE(world, 0, "Reverse id=back%u ref=m%u asset=roc amount=1", i, i), NULL);
        if (i < RUNS)
            go_on_with_run(world, i);
        if (i < STREAMS)
            slice(world, i);
        copy_rest(world);
        shadow_is(world, &cut);
    }
    world_free(world);
}

static void it_is_whole_when_every_chunk_is(void **state)
{
    struct world *world = world_new(true, 1);
    struct ledger_core *core = world->f->core;
    const struct ledger_usage usage = ledger_core_usage(core);
    const uint32_t counts[] = {usage.accounts,  usage.rows, usage.limits,
                               usage.reversals, usage.runs, usage.streams};
    struct written cut = begin(world);
    uint32_t chunks = 0;

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(counts); i++) {
        assert_true(counts[i] > LEDGER_SHADOW_CHUNK); /* or this file tests less than it says */
        chunks += (counts[i] + LEDGER_SHADOW_CHUNK - 1) / LEDGER_SHADOW_CHUNK;
    }
    for (uint32_t i = 1; i < chunks; i++)
        assert_false(ledger_core_shadow_copy(core, 1));
    assert_dies((void)!ledger_core_shadow_take(core), "missing_count == 0");
    assert_true(ledger_core_shadow_copy(core, 1));
    shadow_is(world, &cut);
    assert_dies((void)!ledger_core_shadow_copy(core, 1), "shadow != NULL");
    world_free(world);
}

static void one_that_is_given_up_leaves_nothing(void **state)
{
    struct world *world = world_new(true, 1);
    struct ledger_core *core = world->f->core;
    struct written cut;

    (void)state;
    ledger_core_shadow_drop(core);
    assert_ok(ledger_core_shadow_begin(core, NULL, NULL));
    assert_dies((void)!ledger_core_shadow_begin(core, NULL, NULL), "shadow == NULL");
    random_command(world);
    ledger_core_shadow_drop(core);
    random_command(world);
    cut = begin(world);
    random_command(world);
    copy_rest(world);
    shadow_is(world, &cut);
    assert_ok(ledger_core_shadow_begin(core, NULL, NULL)); /* freed with its core */
    world_free(world);
}

/* The memory of the last cut serves the next one, until the ledger has outgrown it. */
static void a_spare_one_is_used_while_it_fits(void **state)
{
    struct world *world = world_new(true, 1);
    struct ledger_core *core = world->f->core;
    const struct ledger_shadow *first;
    struct written cut = begin(world);

    (void)state;
    copy_rest(world);
    shadow_is(world, &cut);
    first = world->spare;
    random_command(world);
    cut = begin(world);
    assert_null(world->spare);
    random_command(world);
    copy_rest(world);
    shadow_is(world, &cut);
    assert_ptr_equal(world->spare, first);
    for (unsigned i = 0; i < 2 * ACCOUNTS; i++)
        applies(world->f, LINE(world, 0, "Mint id=new%u to=new%u asset=roc amount=1", i, i), NULL);
    cut = begin(world);
    assert_ptr_equal(world->spare, first);
    random_command(world);
    copy_rest(world);
    shadow_is(world, &cut);
    assert_ok(ledger_core_shadow_begin(core, NULL, NULL));
    ledger_core_shadow_drop(core);
    world_free(world);
}

/* In the place of the C library's: what is asked of the whole memory map is counted. */
static unsigned madvise_count;

int madvise(void *start, size_t size, int advice)
{
    madvise_count++;
    return (int)syscall(SYS_madvise, start, size, advice);
}

/* Before the cut a thread of its own has the memory ready; for a little nobody asks. It steps back
 * for others, so it may not hold what they need, as the lock of the memory map is. */
static void much_memory_is_asked_for_before_the_cut(void **state)
{
    struct ledger_capacity capacity = ledger_capacity_of(16384);
    struct fixture *f = fixture_new(&capacity, NULL);
    struct ledger_shadow *spare = NULL, *first;
    struct ledger_shadow_room room;
    char line[TEXT];

    (void)state;
    f->command.kind = LEDGER_COMMAND_INGEST;
    assert_false(ledger_core_shadow_lacks(f->core, NULL, &room));
    for (unsigned i = 0; i < 8500; i++) {
        (void)snprintf(line, sizeof(line), "Mint id=m%u to=b%u asset=roc amount=1", i, i);
        fixture_add(f, line);
        if (f->command.ops_count == 125)
            assert_ok(fixture_apply(f));
    }
    assert_true(ledger_core_shadow_lacks(f->core, NULL, &room));
    madvise_count = 0;
    spare = first = ledger_shadow_new(&room);
    assert_int_equal(madvise_count, 0);
    assert_non_null(first);
    assert_false(ledger_core_shadow_lacks(f->core, spare, &room));
    assert_ok(ledger_core_shadow_begin(f->core, &spare, NULL));
    assert_null(spare); /* it was used */
    while (!ledger_core_shadow_copy(f->core, 100)) {
    }
    assert_ptr_equal(ledger_core_shadow_take(f->core), first);
    assert_null(ledger_shadow_free(first));
    (void)fixture_teardown((void **)&f);
}

/* A cut where something is pending would be no state that ever was. */
static void there_is_no_cut_among_pending_batches(void **state)
{
    struct world *world = world_new(true, 1);

    (void)state;
    world->f->hold_commits = true;
    applies(world->f, "Mint id=pending to=a1 asset=roc amount=1", NULL);
    assert_dies((void)!ledger_core_shadow_begin(world->f->core, NULL, NULL), "batch_last ==");
    ledger_core_rebuild(world->f->core);
    world_free(world);
}

static enum ron_err begin_and_drop(void *context, struct ron_errinfo *reterr)
{
    struct world *world = context;
    enum ron_err err = ledger_core_shadow_begin(world->f->core, NULL, reterr);

    ledger_core_shadow_drop(world->f->core);
    return err;
}

static void a_lack_of_memory_changes_nothing(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct world *world = world_new(i == 0, 1);
        struct ron_b3 before = ledger_core_digest(world->f->core);
        struct ron_b3 after;

        (void)support_fail_each_allocation(begin_and_drop, world, 32);
        after = ledger_core_digest(world->f->core);
        assert_memory_equal(before.bytes, after.bytes, RON_B3_SIZE);
        ingest_well(world);
        world_free(world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shadow_is_the_state_at_the_cut),
        cmocka_unit_test(every_place_of_a_chunk_is_kept),
        cmocka_unit_test(it_is_whole_when_every_chunk_is),
        cmocka_unit_test(one_that_is_given_up_leaves_nothing),
        cmocka_unit_test(a_spare_one_is_used_while_it_fits),
        cmocka_unit_test(much_memory_is_asked_for_before_the_cut),
        cmocka_unit_test(there_is_no_cut_among_pending_batches),
        cmocka_unit_test(a_lack_of_memory_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
