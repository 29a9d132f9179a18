/*
 * test_ledger_plain.c - the short way of a plain transfer ends where the long one does. Method: two
 * ledgers get the same seeded batches. One has a capability that is bound, to every account and the
 * one asset: to ask that, each entry goes the long way (core_apply.c). The other's transfers go the
 * short way (core_plain.c) where they may. Answers, refusals with their details, frames, roots and
 * the digest of the state must be equal after each batch. What stands in the way of a plain
 * transfer is drawn too: limits of every kind, frozen accounts, debts, nonces, memos, accounts and
 * rows that are not there yet, amounts beyond what is there, other kinds between them, ids of this
 * batch or an earlier one, whole batches again, source times that are off.
 */
#include <stdlib.h>

#include "ledger_fixture.h"

#include "ledger/core_id_text.h"

enum { ACCOUNTS = 12, ROUNDS = 3000, BATCH_MAX = 6, LINE_SIZE = 200, LONG = 120 };

struct pair {
    struct fixture *shorter, *longer;
    uint64_t random;
    uint32_t number;      /* of the next id */
    uint64_t last_random; /* before the last batch was drawn, and its first number */
    uint32_t last_number;
    uint32_t applied, refused, repeated;
};

static uint32_t draw(struct pair *pair, uint32_t below)
{
    pair->random = pair->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(pair->random >> 33) % below;
}

static void compare_refusals(const struct pair *pair)
{
    const struct ledger_refusal *a = &pair->shorter->refusal, *b = &pair->longer->refusal;

    assert_int_equal(a->present, b->present);
    if ((a->present & LEDGER_DETAIL_INDEX) != 0)
        assert_int_equal(a->index, b->index);
    if ((a->present & LEDGER_DETAIL_LIMIT) != 0)
        assert_string_equal(a->limit, b->limit);
    if ((a->present & LEDGER_DETAIL_AVAILABLE) != 0)
        assert_int_equal(ron_u128_compare(a->available, b->available), 0);
    assert_string_equal(pair->shorter->info.message, pair->longer->info.message);
}

static void compare(struct pair *pair, enum ron_err shorter, enum ron_err longer)
{
    struct ron_b3 a = ledger_core_digest(pair->shorter->core);
    struct ron_b3 b = ledger_core_digest(pair->longer->core);

    assert_int_equal(shorter, longer);
    assert_memory_equal(a.bytes, b.bytes, RON_B3_SIZE);
    if (shorter != RON_ERR_OK) {
        pair->refused++;
        compare_refusals(pair);
        return;
    }
    assert_int_equal(pair->shorter->result.duplicate, pair->longer->result.duplicate);
    assert_int_equal(pair->shorter->result.seq_start, pair->longer->result.seq_start);
    assert_int_equal(pair->shorter->result.seq_end, pair->longer->result.seq_end);
    if (pair->shorter->result.duplicate) {
        pair->repeated++;
        return;
    }
    pair->applied++;
    assert_int_equal(pair->shorter->frame_size, pair->longer->frame_size);
    assert_memory_equal(pair->shorter->frame, pair->longer->frame, pair->longer->frame_size);
}

static void limit_both(struct pair *pair, const struct ledger_limit_terms *terms)
{
    enum ron_err shorter = fixture_limits(pair->shorter, *terms);

    compare(pair, shorter, fixture_limits(pair->longer, *terms));
}

static void draw_limits(struct pair *pair)
{
    char name[16];
    struct ledger_limit_terms terms = {.asset = S("roc"), .has_frozen = draw(pair, 2) == 0};

    (void)snprintf(name, sizeof(name), "a%u", draw(pair, ACCOUNTS));
    terms.account = S(name);
    terms.frozen = draw(pair, 6) == 0;
    switch (draw(pair, 9)) {
    case 0:
        terms.has_minimum = true;
        terms.minimum = ron_u128_of(draw(pair, 100));
        break;
    case 1:
        terms.has_maximum = true;
        terms.maximum = ron_u128_of(100 + draw(pair, 400));
        break;
    case 2:
        terms.has_credit_line = true;
        terms.credit_line = ron_u128_of(draw(pair, 100));
        break;
    case 3:
        terms.has_daily = true;
        terms.daily = ron_u128_of(draw(pair, 200));
        break;
    default: /* none, or no more */
        break;
    }
    limit_both(pair, &terms);
}

static void draw_line(struct pair *pair, char line[LINE_SIZE])
{
    const uint32_t from = draw(pair, ACCOUNTS), to = draw(pair, ACCOUNTS);
    const uint32_t what = draw(pair, 60);
    const uint32_t number = draw(pair, 40) == 0 ? pair->number - draw(pair, 9) : pair->number;
    const char *asset = draw(pair, 8) == 0 ? "usd" : "roc";

    if (what < 10)
        (void)snprintf(line, LINE_SIZE, "Mint id=i%u to=a%u asset=%s amount=%u", number, to, asset,
                       1 + draw(pair, 3000));
    else if (what == 10)
        (void)snprintf(line, LINE_SIZE, "Burn id=i%u from=a%u asset=%s amount=%u", number, from,
                       asset, 1 + draw(pair, 30));
    else if (what == 11)
        (void)snprintf(line, LINE_SIZE,
                       "Transfer id=i%u from=a%u to=a%u asset=%s amount=%u nonce=%u", number, from,
                       (from + 1) % ACCOUNTS, asset, 1 + draw(pair, 9), 1 + draw(pair, 3));
    else if (what == 12)
        (void)snprintf(line, LINE_SIZE, "Transfer id=i%u from=a%u to=b%u asset=%s amount=1 memo=m",
                       number, from, number, asset);
    else
        (void)snprintf(line, LINE_SIZE, "Transfer id=i%u from=a%u to=a%u asset=%s amount=%u",
                       number, from, (from + 1 + to % (ACCOUNTS - 1)) % ACCOUNTS, asset,
                       1 + draw(pair, 40));
}

/* As the binary form has it: ids alone, the asset by number, the id text 16 bytes. */
static void make_bare(struct ledger_op *op, uint8_t ret_raw[static LEDGER_ID_SIZE])
{
    const uint32_t asset = ron_slice_equal(op->asset_name, S("usd")) ? 2 : 1;
    const struct ron_slice number_text = ron_slice_of(op->id_text.data + 1, op->id_text.size - 1);
    char digits[LEDGER_ID_DIGITS + 1];
    uint64_t number;

    assert_int_equal(ron_decimal_parse_u64(number_text, &number, NULL), RON_ERR_OK);
    memset(ret_raw, 0, LEDGER_ID_SIZE);
    ron_store_le64(ret_raw, number);
    *op = (struct ledger_op){.kind = op->kind,
                             .debit = op->debit,
                             .credit = op->credit,
                             .amount = op->amount,
                             .asset = asset,
                             .id_text = {ret_raw, 0}};
    op->id = ledger_entry_id(ron_u128_of(0), ledger_id_text_of(op->id_text, digits));
}

enum form { BY_NAME, BY_ID, BARE, FORMS };

static void shape_op(const struct fixture *f, struct ledger_op *op, enum form form, bool misnamed,
                     uint8_t raw[static LEDGER_ID_SIZE])
{
    if (form == BARE) {
        make_bare(op, raw);
    } else if (form == BY_ID) {
        op->debit_name = (struct ron_slice){NULL, 0};
        op->credit_name = (struct ron_slice){NULL, 0};
    } else if (misnamed && op->kind == LEDGER_TRANSFER) {
        /* Of the one who is paid, if it is known: else that is its name. */
        if (op->amount.v % 2 == 0 || ledger_core_name(f->core, &op->credit).size == 0)
            op->debit_name = S("another");
        else
            op->credit_name = S("another");
    }
}

/* By names as JSON has them, by ids alone, or bare as the binary form. */
static void apply_batch(struct pair *pair)
{
    const uint32_t count = 1 + draw(pair, BATCH_MAX);
    const enum form form = (enum form)draw(pair, FORMS);
    const uint32_t misnamed = draw(pair, 20); /* of an entry whose name is not that of its id */
    struct fixture *const both[2] = {pair->shorter, pair->longer};
    uint8_t raw[BATCH_MAX][LEDGER_ID_SIZE];
    char line[LINE_SIZE];
    enum ron_err err[2];

    for (uint32_t i = 0; i < count; i++) {
        const bool is_off = draw(pair, 60) == 0;

        draw_line(pair, line);
        pair->number++;
        for (size_t j = 0; j < 2; j++) {
            struct ledger_op *op = &both[j]->ops[both[j]->command.ops_count];

            fixture_add(both[j], line);
            shape_op(both[j], op, form, i == misnamed, raw[i]);
            memcpy(&both[j]->bare_ops[i], op, sizeof(both[j]->bare_ops[i]));
            if (is_off && form != BARE) {
                op->has_ts = true;
                op->ts_ms = 1;
            }
        }
    }
    for (size_t j = 0; j < 2; j++) {
        both[j]->command.kind = LEDGER_COMMAND_INGEST;
        both[j]->command.bare_ops = form == BARE ? both[j]->bare_ops : NULL;
        err[j] = fixture_apply(both[j]);
        both[j]->command.bare_ops = NULL;
    }
    compare(pair, err[0], err[1]);
}

/* A new one, or the last one again. */
static void draw_batch(struct pair *pair)
{
    const bool again = draw(pair, 20) == 0 && pair->last_random != 0;
    const uint64_t random = pair->random;

    if (again) {
        pair->random = pair->last_random;
        pair->number = pair->last_number;
    }
    pair->last_random = pair->random;
    pair->last_number = pair->number;
    apply_batch(pair);
    if (again)
        pair->random = random;
}
static void plain_transfers_end_as_others_do(void **state)
{
    struct ledger_capacity capacity = fixture_capacity();
    struct pair pair = {.random = 20261117};

    (void)state;
    capacity.entries_window = 4 * ROUNDS * BATCH_MAX;
    capacity.batches_window = 4 * ROUNDS;
    pair.shorter = fixture_new(&capacity, NULL);
    pair.longer = fixture_new(&capacity, NULL);
    /* Every name begins with nothing. */
    pair.longer->command.cover = (struct ledger_cover){
        .accounts = true, .account_glob = true, .account = {(const uint8_t *)"", 0}};
    compare(&pair, fixture_asset(pair.shorter, "usd", 2, "340282366920938463463374607431768211455"),
            fixture_asset(pair.longer, "usd", 2, "340282366920938463463374607431768211455"));
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const uint64_t now_ms = pair.shorter->command.stamp.commit_ms +
                                (draw(&pair, 50) == 0 ? 86400000 : 1); /* another day, at times */

        pair.shorter->command.stamp.commit_ms = now_ms;
        pair.longer->command.stamp.commit_ms = now_ms;
        if (draw(&pair, 25) == 0)
            draw_limits(&pair);
        else
            draw_batch(&pair);
    }
    print_message("# %u applied, %u refused, %u repeated\n", pair.applied, pair.refused,
                  pair.repeated);
    assert_true(pair.applied > ROUNDS / 4);
    assert_true(pair.refused > ROUNDS / 10);
    assert_true(pair.repeated > ROUNDS / 100);
    assert_int_equal(fixture_teardown((void **)&pair.shorter), 0);
    assert_int_equal(fixture_teardown((void **)&pair.longer), 0);
}

/* A batch of transfers that are plain, but for two Reverses of what it did itself; `last` is the
 * amount of its last entry. */
static void long_batch(struct pair *pair, char prefix, const char *last)
{
    struct fixture *const both[2] = {pair->shorter, pair->longer};
    enum ron_err err[2];
    char line[LINE_SIZE];

    for (size_t j = 0; j < 2; j++) {
        for (unsigned i = 0; i < LONG; i++) {
            (void)snprintf(line, sizeof(line),
                           "Transfer id=%c%u from=a%u to=a%u asset=roc amount=%u", prefix, i, i % 3,
                           (i + 1) % 3, 1 + i);
            if (i == LONG / 2 || i == LONG - 2)
                (void)snprintf(line, sizeof(line), "Reverse id=%cr%u ref=%c%u asset=roc amount=%u",
                               prefix, i, prefix, i - 1, i);
            if (i == LONG - 1)
                (void)snprintf(line, sizeof(line),
                               "Transfer id=%c%u from=a0 to=a1 asset=roc amount=%s", prefix, i,
                               last);
            fixture_add(both[j], line);
        }
        both[j]->command.kind = LEDGER_COMMAND_INGEST;
        err[j] = fixture_apply(both[j]);
    }
    compare(pair, err[0], err[1]);
}

/* What the window remembers of a long batch: within it, after it, after it was refused at its end,
 * and when it comes again. */
static void long_batches_are_remembered_alike(void **state)
{
    const struct ledger_capacity capacity = fixture_capacity();
    struct pair pair = {.random = 1};
    uint64_t seq_last;

    (void)state;
    pair.shorter = fixture_new(&capacity, NULL);
    pair.longer = fixture_new(&capacity, NULL);
    pair.longer->command.cover = (struct ledger_cover){
        .accounts = true, .account_glob = true, .account = {(const uint8_t *)"", 0}};
    for (unsigned i = 0; i < 3; i++) {
        char line[LINE_SIZE];

        (void)snprintf(line, sizeof(line), "Mint id=m%u to=a%u asset=roc amount=1000000", i, i);
        applies(pair.shorter, line, NULL);
        applies(pair.longer, line, NULL);
    }
    long_batch(&pair, 'p', "1");
    assert_int_equal(pair.applied, 1);
    long_batch(&pair, 'q', "9999999");
    assert_int_equal(pair.refused, 1);
    long_batch(&pair, 'q', "1"); /* its ids are free */
    assert_int_equal(pair.applied, 2);
    seq_last = pair.shorter->result.seq_end;
    long_batch(&pair, 'p', "1"); /* known, entry by entry */
    assert_true(pair.shorter->result.duplicate);
    assert_true(pair.longer->result.duplicate);
    assert_true(pair.shorter->result.seq_end < seq_last);
    assert_int_equal(fixture_teardown((void **)&pair.shorter), 0);
    assert_int_equal(fixture_teardown((void **)&pair.longer), 0);
}

/* --- Accounts whose ids begin alike ------------------------------------------------------------
 */

enum { NAMES = 200000, NAME_ROOM = 12 };
struct named {
    uint32_t hash;
    uint32_t number;
};

static int compare_named(const void *a, const void *b)
{
    const struct named *first = a, *second = b;

    return first->hash < second->hash ? -1 : first->hash > second->hash;
}

static void name_of(uint32_t number, char name[static NAME_ROOM])
{
    (void)snprintf(name, NAME_ROOM, "n%u", number);
}

/* Two names whose ids have the same first four bytes, by which accounts are found. */
static void find_alike(char first[static NAME_ROOM], char second[static NAME_ROOM])
{
    struct named *all = ron_mem_alloc_array(NAMES, sizeof(*all));
    uint32_t at = 1;

    assert_non_null(all);
    for (uint32_t i = 0; i < NAMES; i++) {
        char name[NAME_ROOM];
        struct ledger_id id;

        name_of(i, name);
        id = ledger_account_id("", ron_slice_text(name));
        all[i] = (struct named){ron_load_le32(id.bytes), i};
    }
    qsort(all, NAMES, sizeof(*all), compare_named);
    while (at < NAMES && all[at].hash != all[at - 1].hash)
        at++;
    assert_true(at < NAMES);
    name_of(all[at - 1].number, first);
    name_of(all[at].number, second);
    (void)ron_mem_free(all);
}

/* Six transfers between each of them and others, in the form with names and in the bare one. */
static void accounts_that_begin_alike_are_two(void **state)
{
    const struct ledger_capacity capacity = fixture_capacity();
    struct fixture *f = fixture_new(&capacity, NULL);
    char names[2][NAME_ROOM], line[LINE_SIZE];
    uint8_t raw[6][LEDGER_ID_SIZE];

    (void)state;
    find_alike(names[0], names[1]);
    for (unsigned i = 0; i < 2; i++) {
        (void)snprintf(line, sizeof(line), "Mint id=m%u to=%s asset=roc amount=1000", i, names[i]);
        applies(f, line, NULL);
    }
    applies(f, "Mint id=m to=other asset=roc amount=10000", NULL);
    for (unsigned form = 0; form < 2; form++) {
        for (unsigned i = 0; i < 6; i++) { /* more than are looked at one by one */
            (void)snprintf(line, sizeof(line), "Transfer id=i%u from=%s to=%s asset=roc amount=%u",
                           10 * form + i, i % 3 == 0 ? names[1] : "other",
                           i % 3 == 0 ? "other" : names[i % 2], 1u << (2 * i));
            fixture_add(f, line);
            if (form == 1)
                make_bare(&f->ops[i], raw[i]);
            memcpy(&f->bare_ops[i], &f->ops[i], sizeof(f->bare_ops[i]));
        }
        f->command.kind = LEDGER_COMMAND_INGEST;
        f->command.bare_ops = form == 1 ? f->bare_ops : NULL;
        assert_int_equal(fixture_apply(f), RON_ERR_OK);
        assert_int_equal(f->result.seq_end - f->result.seq_start + 1, 6);
    }
    /* Each form: 1 and 64 leave the second; 4 and 1024 reach it, 16 and 256 the first. */
    balance_is(f, names[0], "roc", "1544");
    balance_is(f, names[1], "roc", "2926");
    assert_int_equal(fixture_teardown((void **)&f), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_transfers_end_as_others_do),
        cmocka_unit_test(long_batches_are_remembered_alike),
        cmocka_unit_test(accounts_that_begin_alike_are_two),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
