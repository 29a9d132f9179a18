/*
 * test_ledger_views.c - pending and committed, rebuilding, snapshots, readers on other threads.
 * Method: several batches in flight at once; a reader thread that checks conservation between two
 * accounts while batches are applied, refused and committed (run under TSan too).
 *
 * covers: LED-F13 LED-F16
 */
#include "ledger_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

#include "ledger/core_snapshot.h"

enum { BATCHES = 4 };

/* A core with several batches in flight. */
struct flight {
    struct fixture *f;
    struct ledger_batch batches[BATCHES];
};

static int flight_setup(void **state)
{
    struct flight *flight = ron_mem_alloc(sizeof(*flight));
    void *fixture;

    assert_non_null(flight);
    assert_int_equal(fixture_setup(&fixture), 0);
    flight->f = fixture;
    for (size_t i = 0; i < BATCHES; i++)
        assert_ok(ledger_batch_init(&flight->batches[i], 64, 1 << 16, NULL));
    applies(flight->f, "Mint id=m to=alice asset=roc amount=100", NULL);
    *state = flight;
    return 0;
}

static int flight_teardown(void **state)
{
    struct flight *flight = *state;
    void *fixture = flight->f;

    for (size_t i = 0; i < BATCHES; i++)
        ledger_batch_fini(&flight->batches[i]);
    (void)ron_mem_free(flight);
    return fixture_teardown(&fixture);
}

static enum ron_err send(struct flight *flight, unsigned slot, const char *line)
{
    struct fixture *f = flight->f;
    enum ron_err err;

    f->command.kind = LEDGER_COMMAND_INGEST;
    fixture_add(f, line);
    f->command.ops = f->ops;
    err = ledger_core_apply(f->core, &f->command, &flight->batches[slot], &f->result, &f->refusal,
                            &f->info);
    f->command.ops_count = 0;
    f->texts_size = 0;
    return err;
}

static void commit(struct flight *flight, unsigned slot)
{
    ledger_core_seal(flight->f->core, &flight->batches[slot]);
    ledger_core_commit(flight->f->core, &flight->batches[slot]);
}

static void committed_values_are_those_of_their_batch(void **state)
{
    struct flight *flight = *state;
    struct fixture *f = flight->f;

    assert_ok(send(flight, 0, "Transfer id=t1 from=alice to=bob asset=roc amount=30 nonce=1"));
    assert_ok(send(flight, 1, "Transfer id=t2 from=alice to=bob asset=roc amount=50 nonce=2"));
    balance_is(f, "alice", "roc", "100");
    balance_is(f, "bob", "roc", "0");
    assert_int_equal(nonce_of(f, "alice"), 1);
    /* Checks see what is pending: 20 are left, nonce 3 is next. */
    assert_int_equal(send(flight, 2, "Transfer id=t3 from=alice to=bob asset=roc amount=21"),
                     RON_ERR_INSUFFICIENT_FUNDS);
    available_is(f, "20");
    assert_int_equal(send(flight, 2, "Burn id=b from=alice asset=roc amount=1 nonce=2"),
                     RON_ERR_NONCE_CONFLICT);
    assert_int_equal(f->refusal.expected, 3);
    commit(flight, 0);
    balance_is(f, "alice", "roc", "70");
    balance_is(f, "bob", "roc", "30");
    assert_int_equal(nonce_of(f, "alice"), 2);
    assert_int_equal(ledger_core_committed_seq(f->core), 2);
    commit(flight, 1);
    balance_is(f, "alice", "roc", "20");
    assert_int_equal(ledger_core_committed_seq(f->core), 3);
    assert_null(ledger_core_check(f->core));
}

/* How many cells of the batch are published on their own. */
static unsigned count_single(const struct ledger_batch *batch)
{
    unsigned count = 0;

    for (uint32_t i = 0; i < batch->cells_count; i++)
        count += batch->cells[i].home == LEDGER_CELL_SINGLE ? 1 : 0;
    return count;
}

/* Whichever of its rows a batch touches, and in what order: what is committed of an account is told
 * in all its assets, and its rows are published together. */
static void an_account_of_several_assets_is_published_as_one(void **state)
{
    struct flight *flight = *state;
    struct fixture *f = flight->f;

    assert_ok(fixture_asset(f, "gold", 0, "1000"));
    /* alice's first row is touched before she gets her second, in one batch. */
    f->command.kind = LEDGER_COMMAND_INGEST;
    fixture_add(f, "Transfer id=t1 from=alice to=bob asset=roc amount=30 nonce=1");
    assert_ok(send(flight, 0, "Mint id=m1 to=alice asset=gold amount=5"));
    assert_int_equal(flight->batches[0].cells_count, 4);
    assert_int_equal(count_single(&flight->batches[0]), 2); /* bob, the mint of gold */
    balance_is(f, "alice", "gold", "0");
    commit(flight, 0);
    balance_is(f, "alice", "roc", "70");
    balance_is(f, "alice", "gold", "5");
    assert_int_equal(nonce_of(f, "alice"), 2);
    /* The second alone, under the nonce that stands with the first. */
    assert_ok(send(flight, 1, "Burn id=b1 from=alice asset=gold amount=2 nonce=2"));
    assert_int_equal(count_single(&flight->batches[1]), 1); /* what is burnt */
    commit(flight, 1);
    balance_is(f, "alice", "roc", "70");
    balance_is(f, "alice", "gold", "3");
    assert_int_equal(nonce_of(f, "alice"), 3);
    /* And the first alone. */
    assert_ok(send(flight, 2, "Transfer id=t2 from=alice to=bob asset=roc amount=70 nonce=3"));
    assert_int_equal(count_single(&flight->batches[2]), 1); /* bob */
    commit(flight, 2);
    balance_is(f, "alice", "roc", "0");
    balance_is(f, "alice", "gold", "3");
    assert_int_equal(nonce_of(f, "alice"), 4);
    assert_null(ledger_core_check(f->core));
}

/* An account that a refused batch gave its first row has none again, and the next batch finds it
 * so. */
static void a_first_row_is_taken_back(void **state)
{
    struct flight *flight = *state;
    struct fixture *f = flight->f;

    assert_ok(fixture_limits(
        f, (struct ledger_limit_terms){.account = S("bob"), .has_frozen = true, .frozen = true}));
    f->command.kind = LEDGER_COMMAND_INGEST;
    fixture_add(f, "Transfer id=t1 from=alice to=bob asset=roc amount=30");
    assert_int_equal(send(flight, 0, "Burn id=b from=alice asset=roc amount=99999"),
                     RON_ERR_INSUFFICIENT_FUNDS);
    assert_ok(send(flight, 0, "Transfer id=t2 from=alice to=carol asset=roc amount=7"));
    assert_ok(send(flight, 1, "Transfer id=t3 from=alice to=bob asset=roc amount=1"));
    assert_int_equal(count_single(&flight->batches[1]), 2); /* carol's row is not bob's home */
    commit(flight, 0);
    balance_is(f, "bob", "roc", "0");
    commit(flight, 1);
    balance_is(f, "carol", "roc", "7");
    balance_is(f, "bob", "roc", "1");
    assert_null(ledger_core_check(f->core));
}

/* Each as if it were asked alone: whoever is there, in which asset, in what order. */
static void many_balances_are_each_their_own(void **state)
{
    struct flight *flight = *state;
    struct fixture *f = flight->f;
    struct ledger_balance_ask asks[LEDGER_BALANCES_MAX];
    size_t known_count = 0;
    char text[96];

    for (unsigned i = 1; i < LEDGER_BALANCES_MAX; i += 2) { /* the others do not exist */
        (void)snprintf(text, sizeof(text), "Mint id=n%u to=user%u asset=roc amount=%u", i, i, i);
        applies(f, text, NULL);
    }
    for (unsigned i = 0; i < LEDGER_BALANCES_MAX; i++) {
        (void)snprintf(text, sizeof(text), "user%u", (i * 7) % LEDGER_BALANCES_MAX);
        asks[i] = (struct ledger_balance_ask){
            .account = ledger_account_id("", ron_slice_text(text)), .asset = i % 5 == 0 ? 2 : 1};
    }
    for (size_t count = 0; count <= LEDGER_BALANCES_MAX; count++) {
        for (size_t i = 0; i < count; i++)
            memset(&asks[i].balance, 0xaa, sizeof(asks[i].balance));
        ledger_core_balances(f->core, asks, count);
        for (size_t i = 0; i < count; i++) {
            struct ledger_balance alone;

            ledger_core_balance(f->core, &asks[i].account, asks[i].asset, &alone);
            assert_true(ron_u128_compare(asks[i].balance.amount, alone.amount) == 0);
            assert_int_equal(asks[i].balance.negative, alone.negative);
            assert_int_equal(asks[i].balance.next_nonce, alone.next_nonce);
            assert_int_equal(asks[i].balance.as_of_seq, alone.as_of_seq);
            known_count += alone.amount.v > 0;
        }
    }
    assert_true(known_count > LEDGER_BALANCES_MAX);
}

/* The tree as the test keeps it, with the batch. */
static struct ron_sha256 grow(struct ron_merkle_frontier *tree, const struct ledger_batch *batch)
{
    for (uint32_t i = 0; i < batch->entries_count; i++) {
        const struct ron_slice ext = ledger_batch_ext(batch, i);
        uint8_t leaf[RON_LEAF_SIZE_MAX];
        struct ron_sha256 hash;

        memcpy(leaf, &batch->entries[i], RON_ENTRY_SIZE);
        if (ext.size > 0)
            memcpy(leaf + RON_ENTRY_SIZE, ext.data, ext.size);
        hash = ron_merkle_leaf(leaf, RON_ENTRY_SIZE + ext.size);
        assert_memory_equal(hash.bytes, batch->hashes[i].bytes, RON_SHA256_SIZE);
        ron_merkle_frontier_append(tree, &hash, 1);
    }
    return ron_merkle_frontier_root(tree);
}

/* Plain ones, and such with a memo, which has a leaf of its own size. */
static void send_number(struct flight *flight, unsigned slot, unsigned number)
{
    char line[128];

    (void)snprintf(line, sizeof(line), "Transfer id=n%u from=alice to=bob asset=roc amount=1%s",
                   number, number % 5 == 0 ? " memo=why" : "");
    assert_ok(send(flight, slot, line));
}

static void two_batches_are_sealed_as_one_after_the_other(void **state)
{
    struct flight *flight = *state;
    struct fixture *f = flight->f;
    struct ron_merkle_frontier tree = ledger_core_frontier(f->core);
    struct ledger_batch *const two[2] = {&flight->batches[2], &flight->batches[0]};
    struct ron_sha256 root = f->root;

    for (unsigned i = 0; i < 40; i++) {
        struct ron_merkle_frontier committed;

        send_number(flight, 2, 2 * i);
        send_number(flight, 0, 2 * i + 1);
        ledger_core_seal_two(f->core, two);
        for (size_t j = 0; j < 2; j++) {
            assert_memory_equal(two[j]->previous_root.bytes, root.bytes, RON_SHA256_SIZE);
            root = grow(&tree, two[j]);
            assert_memory_equal(two[j]->root.bytes, root.bytes, RON_SHA256_SIZE);
            ledger_core_commit(f->core, two[j]);
            committed = ledger_core_frontier(f->core);
            assert_int_equal(committed.leaves_count, tree.leaves_count);
            root = ron_merkle_frontier_root(&committed);
            assert_memory_equal(two[j]->root.bytes, root.bytes, RON_SHA256_SIZE);
        }
    }
    /* The second was sealed, and is taken back. */
    send_number(flight, 2, 1000);
    send_number(flight, 0, 1001);
    ledger_core_seal_two(f->core, two);
    ledger_core_commit(f->core, two[0]);
    ledger_core_rebuild(f->core);
    root = grow(&tree, two[0]);
    send_number(flight, 1, 1002);
    commit(flight, 1);
    assert_memory_equal(flight->batches[1].previous_root.bytes, root.bytes, RON_SHA256_SIZE);
    root = grow(&tree, &flight->batches[1]);
    assert_memory_equal(flight->batches[1].root.bytes, root.bytes, RON_SHA256_SIZE);
    assert_null(ledger_core_check(f->core));
}

static void rebuilding_forgets_what_is_not_committed(void **state)
{
    struct flight *flight = *state;
    struct fixture *f = flight->f;
    struct ron_b3 before;
    struct ron_b3 after;

    assert_ok(send(flight, 0,
                   "Hold id=h from=alice hold_id=H payee=shop expires_at=1970-01-01T00:01:00Z "
                   "asset=roc amount=30"));
    commit(flight, 0);
    before = ledger_core_digest(f->core);
    assert_ok(send(flight, 1, "Capture id=c hold_id=H asset=roc amount=30"));
    assert_ok(send(flight, 2, "Transfer id=t from=alice to=new asset=roc amount=50 nonce=1"));
    ledger_core_seal(f->core, &flight->batches[1]);
    assert_ok(send(flight, 3, "Reverse id=r ref=t asset=roc amount=20"));
    ledger_core_rebuild(f->core);
    after = ledger_core_digest(f->core);
    assert_memory_equal(before.bytes, after.bytes, RON_B3_SIZE);
    assert_null(ledger_core_check(f->core));
    assert_ok(send(flight, 1, "Transfer id=t from=alice to=new asset=roc amount=50 nonce=1"));
    assert_int_equal(f->result.batch, 3);
    assert_int_equal(f->result.seq_start, 3);
    commit(flight, 1); /* sealed upon what was committed, not upon what was taken back */
    assert_memory_equal(flight->batches[1].previous_root.bytes, flight->batches[0].root.bytes,
                        RON_SHA256_SIZE);
    balance_is(f, "new", "roc", "50");
    assert_null(ledger_core_check(f->core));
    f->command.stamp.commit_ms = 60000; /* the hold waits for its end again */
    f->command.kind = LEDGER_COMMAND_EXPIRE;
    assert_ok(ledger_core_apply(f->core, &f->command, &f->batch, &f->result, &f->refusal, NULL));
    assert_true(f->result.applied);
}

static enum ron_err keep(void *context, struct ron_slice bytes, struct ron_errinfo *reterr)
{
    return ron_buf_append(context, bytes.data, bytes.size, reterr);
}

static void make_state(struct fixture *f)
{
    struct ledger_limit_terms terms = {
        .account = S("bob"),
        .asset = S("roc"),
        .has_credit_line = true,
        .credit_line = ron_u128_of(30),
        .has_frozen = true,
    };

    f->command.key = S("k");
    applies(f, "Transfer id=t1 from=alice to=bob asset=roc amount=30 nonce=1",
            "Hold id=h from=alice hold_id=H payee=shop expires_at=1970-01-01T00:01:00Z asset=roc "
            "amount=30",
            "Reverse id=r ref=t1 asset=roc amount=5", NULL);
    f->command.key = (struct ron_slice){NULL, 0};
    assert_ok(fixture_asset(f, "usd", 2, "1000"));
    assert_ok(fixture_limits(f, terms));
    applies(f, "Transfer id=t2 from=bob to=carol asset=roc amount=40", NULL);
    f->command.kind = LEDGER_COMMAND_SLICE;
    f->command.slice = (struct ledger_slice_terms){.dimension = S("bytes")};
    assert_ok(fixture_apply(f));
}

static void snapshots_bring_the_state_back(void **state)
{
    struct flight *flight = *state;
    struct fixture *f = flight->f;
    struct ledger_capacity capacity = fixture_capacity();
    struct ledger_core *loaded;
    struct ron_b3 mine;
    struct ron_b3 other;
    struct ron_sha256 roots[2];
    uint64_t rows_count;
    struct ron_buf buf;

    make_state(f);
    ron_buf_init(&buf, 1 << 20);
    assert_ok(ledger_snapshot_write(f->core, keep, &buf, &f->info));
    assert_ok(ledger_core_new(&capacity, NULL, &loaded, &f->info));
    if (ledger_snapshot_load(loaded, ron_buf_slice(&buf), &f->info) != RON_ERR_OK)
        fail_msg("%s", f->info.message);
    mine = ledger_core_digest(f->core);
    other = ledger_core_digest(loaded);
    assert_memory_equal(mine.bytes, other.bytes, RON_B3_SIZE);
    assert_ok(ledger_core_state_root(f->core, &roots[0], &rows_count, &f->info));
    assert_ok(ledger_core_state_root(loaded, &roots[1], &rows_count, &f->info));
    assert_memory_equal(roots[0].bytes, roots[1].bytes, RON_SHA256_SIZE);
    /* Both go on alike: the next frame of one replays on the other. */
    (void)ledger_replay_free(f->replay);
    (void)ledger_core_free(f->shadow);
    f->shadow = loaded;
    assert_ok(ledger_replay_new(loaded, &f->replay, &f->info));
    applies(f, "Capture id=c hold_id=H asset=roc amount=10",
            "Reverse id=r2 ref=t1 asset=roc amount=5", NULL);
    assert_ok(fixture_expire(f, 60000));
    ron_buf_fini(&buf);
}

static void damaged_snapshots_are_refused(void **state)
{
    struct flight *flight = *state;
    struct fixture *f = flight->f;
    struct ledger_capacity capacity = ledger_capacity_of(16);
    struct ron_buf buf;

    make_state(f);
    ron_buf_init(&buf, 1 << 20);
    assert_ok(ledger_snapshot_write(f->core, keep, &buf, &f->info));
    for (size_t i = 0; i < buf.size; i += i < 200 ? 1 : 37) {
        struct ledger_core *loaded;
        struct ron_b3 hash;
        uint8_t last[RON_B3_SIZE];
        enum ron_err err;

        assert_ok(ledger_core_new(&capacity, NULL, &loaded, &f->info));
        buf.data[i] ^= 0x40;
        assert_int_equal(ledger_snapshot_load(loaded, ron_buf_slice(&buf), &f->info),
                         RON_ERR_MALFORMED);
        /* With the hash put right nothing worse than another state may come of it. */
        memcpy(last, buf.data + buf.size - RON_B3_SIZE, RON_B3_SIZE);
        hash = ron_b3(buf.data, buf.size - RON_B3_SIZE);
        memcpy(buf.data + buf.size - RON_B3_SIZE, hash.bytes, RON_B3_SIZE);
        err = ledger_snapshot_load(loaded, ron_buf_slice(&buf), &f->info);
        assert_true(err == RON_ERR_OK || err == RON_ERR_MALFORMED || err == RON_ERR_TOO_LARGE);
        memcpy(buf.data + buf.size - RON_B3_SIZE, last, RON_B3_SIZE);
        buf.data[i] ^= 0x40;
        (void)ledger_core_free(loaded);
    }
    ron_buf_fini(&buf);
}

struct watch {
    const struct ledger_core *core;
    uint32_t asset;
    _Atomic bool stop;
    _Atomic uint64_t reads_count;
    _Atomic uint64_t wrong_count;
};

/* alice pays nonce 1, 2, 3 ... one unit each: balance and nonce must always agree. */
static void *watch_balance(void *context)
{
    struct watch *watch = context;
    struct ledger_id id = ledger_account_id("", S("alice"));
    struct ledger_id ghost = ledger_account_id("", S("ghost"));
    uint64_t seq_last = 0;

    while (!atomic_load(&watch->stop)) {
        struct ledger_balance_ask asks[] = {{.account = ghost, .asset = watch->asset},
                                            {.account = id, .asset = watch->asset}};
        struct ledger_balance balance;

        ledger_core_balances(watch->core, asks, RON_ARRAY_COUNT(asks));
        balance = asks[1].balance;
        if (balance.amount.v + balance.next_nonce != 5001 || balance.as_of_seq < seq_last ||
            asks[0].balance.amount.v != 0)
            atomic_fetch_add(&watch->wrong_count, 1);
        seq_last = balance.as_of_seq;
        ledger_core_balance(watch->core, &id, watch->asset, &balance);
        if (balance.amount.v + balance.next_nonce != 5001 || balance.as_of_seq < seq_last)
            atomic_fetch_add(&watch->wrong_count, 1);
        seq_last = balance.as_of_seq;
        ledger_core_balance(watch->core, &ghost, watch->asset, &balance);
        if (balance.amount.v != 0)
            atomic_fetch_add(&watch->wrong_count, 1);
        atomic_fetch_add(&watch->reads_count, 1);
    }
    return NULL;
}

/* alice has 5,000 of the asset. */
static void watch_payments(struct flight *flight, const char *asset)
{
    struct fixture *f = flight->f;
    struct watch watch = {.core = f->core};
    pthread_t thread;

    assert_true(ledger_core_find_asset(f->core, S(asset), &watch.asset));
    assert_int_equal(pthread_create(&thread, NULL, watch_balance, &watch), 0);
    for (unsigned i = 1; i <= 300; i++) {
        char line[96];

        (void)snprintf(line, sizeof(line),
                       "Transfer id=t%u from=alice to=bob%u asset=%s amount=1 nonce=%u", i, i,
                       asset, i);
        assert_ok(send(flight, i % 2, line));
        commit(flight, i % 2);
        /* A batch that opens an account and fails: readers must never see it. */
        f->command.kind = LEDGER_COMMAND_INGEST;
        (void)snprintf(line, sizeof(line), "Transfer id=g1 from=alice to=ghost asset=%s amount=7",
                       asset);
        fixture_add(f, line);
        assert_int_equal(send(flight, 2, "Burn id=g2 from=alice asset=roc amount=99999"),
                         RON_ERR_INSUFFICIENT_FUNDS);
    }
    while (atomic_load(&watch.reads_count) < 100)
        ;
    atomic_store(&watch.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(atomic_load(&watch.wrong_count), 0);
    assert_null(ledger_core_check(f->core));
}

static void readers_see_whole_batches(void **state)
{
    struct flight *flight = *state;

    applies(flight->f, "Mint id=more to=alice asset=roc amount=4900", NULL);
    watch_payments(flight, "roc");
}

/* The nonce stands with another row than the balance. */
static void readers_see_whole_batches_of_a_second_asset(void **state)
{
    struct flight *flight = *state;

    assert_ok(fixture_asset(flight->f, "gold", 0, "5000"));
    applies(flight->f, "Mint id=more to=alice asset=gold amount=5000", NULL);
    watch_payments(flight, "gold");
}

/* Of batches that pay one unit from alice, who has two assets, to each of PAYEES: whoever has seen
 * the first payee's of the nth batch sees what that batch did to the others. */
enum { PAYEES = 40, ROUNDS = 240 };

static uint64_t amount_now(const struct watch *watch, const char *name)
{
    const struct ledger_id id = ledger_account_id("", ron_slice_text(name));
    struct ledger_balance balance;

    ledger_core_balance(watch->core, &id, watch->asset, &balance);
    return (uint64_t)balance.amount.v;
}

static void *watch_company(void *context)
{
    struct watch *watch = context;

    while (!atomic_load(&watch->stop)) {
        const uint64_t first = amount_now(watch, "p0");
        const uint64_t last = amount_now(watch, "p39");
        const uint64_t alice = amount_now(watch, "alice");
        const uint64_t first_again = amount_now(watch, "p0");

        if (last < first || alice + PAYEES * last > PAYEES * ROUNDS || first_again < last)
            atomic_fetch_add(&watch->wrong_count, 1);
        atomic_fetch_add(&watch->reads_count, 1);
    }
    return NULL;
}

static void readers_see_all_accounts_of_a_batch(void **state)
{
    struct flight *flight = *state;
    struct fixture *f = flight->f;
    struct watch watch = {.core = f->core};
    pthread_t thread;

    assert_ok(fixture_asset(f, "gold", 0, "100000"));
    applies(f, "Mint id=more to=alice asset=gold amount=9600", NULL);
    assert_true(ledger_core_find_asset(f->core, S("gold"), &watch.asset));
    assert_int_equal(pthread_create(&thread, NULL, watch_company, &watch), 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        char line[96];

        f->command.kind = LEDGER_COMMAND_INGEST;
        for (unsigned j = 0; j < PAYEES; j++) {
            (void)snprintf(line, sizeof(line),
                           "Transfer id=t%u.%u from=alice to=p%u asset=gold amount=1", i, j, j);
            if (j + 1 < PAYEES)
                fixture_add(f, line);
            else
                assert_ok(send(flight, i % 2, line));
        }
        commit(flight, i % 2);
    }
    while (atomic_load(&watch.reads_count) < 100)
        ;
    atomic_store(&watch.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(atomic_load(&watch.wrong_count), 0);
}

static enum ron_err try_new(void *context, struct ron_errinfo *reterr)
{
    struct ledger_capacity capacity = ledger_capacity_of(16);
    struct ledger_core *core;
    struct ledger_batch batch;
    enum ron_err err = ledger_core_new(&capacity, NULL, &core, reterr);

    (void)context;
    if (err != RON_ERR_OK)
        return err;
    err = ledger_batch_init(&batch, 2, 1 << 13, reterr);
    if (err == RON_ERR_OK)
        ledger_batch_fini(&batch);
    (void)ledger_core_free(core);
    return err;
}

static void birth_survives_a_lack_of_memory(void **state)
{
    (void)state;
    assert_true(support_fail_each_allocation(try_new, NULL, 64) > 20);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, flight_setup, flight_teardown)
    const struct CMUnitTest tests[] = {
        TEST(committed_values_are_those_of_their_batch),
        TEST(an_account_of_several_assets_is_published_as_one),
        TEST(a_first_row_is_taken_back),
        TEST(many_balances_are_each_their_own),
        TEST(two_batches_are_sealed_as_one_after_the_other),
        TEST(rebuilding_forgets_what_is_not_committed),
        TEST(snapshots_bring_the_state_back),
        TEST(damaged_snapshots_are_refused),
        TEST(readers_see_whole_batches),
        TEST(readers_see_whole_batches_of_a_second_asset),
        TEST(readers_see_all_accounts_of_a_batch),
        cmocka_unit_test(birth_survives_a_lack_of_memory),
    };
    return cmocka_run_group_tests_name("ledger_views", tests, NULL, NULL);
}
