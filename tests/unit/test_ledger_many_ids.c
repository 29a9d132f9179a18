/*
 * test_ledger_many_ids.c - ids of a long batch that the window has forgotten and the archive may
 * have. Method: an archive of one id that it has and one that it only may have; each stands at
 * every place of a long batch where the questions about ids begin or end anew. The first must be
 * refused with its place and change nothing, the second must be applied, having been asked for.
 *
 * covers: LED-F09
 */
#include "ledger_fixture.h"

enum { MANY = 3000, WINDOW = 64 };

struct world {
    struct ledger_core *core;
    struct ledger_batch batch;
    struct ledger_id has, may_have; /* the archive */
    uint32_t asked_count, answered_count;
    uint64_t batch_max; /* that it was asked about */
    uint64_t bits[(MANY + 63) / 64];
    struct ledger_id accounts[2];
    struct ledger_bare_op ops[MANY];
    uint8_t texts[MANY][LEDGER_ID_SIZE];
    uint64_t next_id, commit_ms;
};

static bool find_entry(void *context, const struct ledger_id *id, uint64_t batch_max,
                       struct ledger_entry *ret_entry)
{
    struct world *w = context;

    (void)batch_max;
    w->asked_count++;
    if (!ledger_id_equal(id, &w->has))
        return false;
    *ret_entry = (struct ledger_entry){.id = *id, .seq = 1, .batch = 1, .kind = LEDGER_MINT};
    return true;
}

static bool find_nonce(void *context, const struct ledger_id *debit, uint64_t nonce,
                       uint64_t batch_max, struct ledger_entry *ret_entry)
{
    (void)context, (void)debit, (void)nonce, (void)batch_max, (void)ret_entry;
    return false;
}

static void may_have(void *context, const struct ledger_ids *ids, uint64_t batch_max,
                     uint64_t *ret_bits)
{
    struct world *w = context;

    w->batch_max = batch_max;
    w->answered_count += ids->count;
    memset(ret_bits, 0, (ids->count + 63) / 64 * sizeof(ret_bits[0]));
    for (uint32_t i = 0; i < ids->count; i++) {
        const struct ledger_id *id =
            (const struct ledger_id *)(const void *)((const uint8_t *)ids->first + i * ids->stride);

        if (ledger_id_equal(id, &w->has) || ledger_id_equal(id, &w->may_have))
            ret_bits[i / 64] |= UINT64_C(1) << i % 64;
    }
}

static struct ledger_id new_id(struct world *w)
{
    struct ledger_id id = {{0}};

    w->next_id++;
    ron_store_le64(id.bytes, w->next_id * UINT64_C(0x9e3779b97f4a7c15));
    ron_store_le64(id.bytes + 8, w->next_id);
    return id;
}

static enum ron_err apply(struct world *w, const struct ledger_command *command,
                          struct ledger_refusal *ret_refusal)
{
    struct ledger_result result;
    enum ron_err err = ledger_core_apply(w->core, command, &w->batch, &result, ret_refusal, NULL);

    if (err != RON_ERR_OK)
        return err;
    assert_true(result.applied);
    ledger_core_seal(w->core, &w->batch);
    ledger_core_commit(w->core, &w->batch);
    return RON_ERR_OK;
}

static struct ledger_command command_of(struct world *w, uint32_t count)
{
    return (struct ledger_command){.kind = LEDGER_COMMAND_INGEST,
                                   .stamp = {.commit_ms = ++w->commit_ms},
                                   .bare_ops = w->ops,
                                   .ops_count = count};
}

/* Transfers with new ids. */
static void draw(struct world *w, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        w->ops[i] = (struct ledger_bare_op){.id = new_id(w),
                                            .debit = w->accounts[i % 2],
                                            .credit = w->accounts[1 - i % 2],
                                            .amount = ron_u128_of(1),
                                            .asset = 1,
                                            .kind = LEDGER_TRANSFER,
                                            .id_text = {w->texts[i], 0}};
}

static void open_accounts(struct world *w)
{
    static const char *const names[2] = {"alice", "bob"};
    struct ledger_command command = command_of(w, 2);
    struct ledger_op ops[2];
    struct ledger_refusal refusal;

    for (unsigned i = 0; i < 2; i++) {
        ops[i] = (struct ledger_op){.id = new_id(w),
                                    .kind = LEDGER_MINT,
                                    .asset = 1,
                                    .amount = ron_u128_of(1000000),
                                    .credit_name = ron_slice_text(names[i]),
                                    .id_text = ron_slice_text(names[i])};
        ops[i].credit = ledger_account_id("", ops[i].credit_name);
        w->accounts[i] = ops[i].credit;
    }
    command.ops = ops;
    command.bare_ops = NULL;
    assert_int_equal(apply(w, &command, &refusal), RON_ERR_OK);
}

/* The window has forgotten something, so the archive is asked. */
static struct world *world_new(bool asks_together)
{
    struct ledger_capacity capacity = ledger_capacity_of(64);
    struct world *w = ron_mem_alloc(sizeof(*w));
    struct ledger_archive archive = {.context = w,
                                     .find_entry = find_entry,
                                     .find_nonce = find_nonce,
                                     .may_have = asks_together ? may_have : NULL};
    struct ledger_refusal refusal;

    assert_non_null(w);
    w->commit_ms = 1760000000000;
    capacity.entries_window = WINDOW;
    assert_int_equal(ledger_core_new(&capacity, &archive, &w->core, NULL), RON_ERR_OK);
    assert_int_equal(ledger_batch_init(&w->batch, MANY + 2, 1 << 16, NULL), RON_ERR_OK);
    w->has = new_id(w);
    w->may_have = new_id(w);
    open_accounts(w);
    for (unsigned i = 0; i < 3; i++) {
        const struct ledger_command command = command_of(w, WINDOW);

        draw(w, WINDOW);
        assert_int_equal(apply(w, &command, &refusal), RON_ERR_OK);
    }
    return w;
}

static void world_free(struct world *w)
{
    assert_null(ledger_core_check(w->core));
    (void)ledger_core_free(w->core);
    ledger_batch_fini(&w->batch);
    (void)ron_mem_free(w);
}

static const uint32_t places[] = {0, 1, 63, 64, 1022, 1023, 1024, 1025, 2047, 2048, MANY - 1};

static void an_id_is_known_wherever_it_stands(void **state)
{
    struct world *w = world_new(true);

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(places); i++) {
        const struct ron_b3 before = ledger_core_digest(w->core);
        const struct ledger_command command = command_of(w, MANY);
        struct ledger_refusal refusal;
        struct ron_b3 after;

        draw(w, MANY);
        w->ops[places[i]].id = w->has;
        assert_int_equal(apply(w, &command, &refusal), RON_ERR_CONFLICT);
        assert_int_equal(refusal.present, LEDGER_DETAIL_INDEX);
        assert_int_equal(refusal.index, places[i]);
        after = ledger_core_digest(w->core);
        assert_memory_equal(before.bytes, after.bytes, RON_B3_SIZE);
    }
    world_free(w);
}

static void an_id_that_may_be_known_is_asked_for(void **state)
{
    struct world *w = world_new(true);

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(places); i++) {
        const struct ledger_command command = command_of(w, MANY);
        struct ledger_refusal refusal;

        draw(w, MANY);
        w->may_have = w->ops[places[i]].id;
        w->asked_count = w->answered_count = 0;
        assert_int_equal(apply(w, &command, &refusal), RON_ERR_OK);
        assert_int_equal(w->asked_count, 1);
        assert_int_equal(w->answered_count, MANY); /* each once */
    }
    world_free(w);
}

/* As command_of, of ids that the archive was asked about before. */
static struct ledger_command sifted(struct world *w, uint64_t batch_max)
{
    struct ledger_command command = command_of(w, MANY);

    may_have(w, &(struct ledger_ids){&w->ops[0].id, sizeof(w->ops[0]), MANY}, 0, w->bits);
    command.sifted = (struct ledger_sifted){w->bits, batch_max};
    w->asked_count = w->answered_count = 0;
    return command;
}

static void what_was_asked_before_is_not_asked_again(void **state)
{
    struct world *w = world_new(true);

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(places); i++) {
        struct ledger_refusal refusal;
        struct ledger_command command;

        draw(w, MANY);
        w->ops[places[i]].id = w->has;
        command = sifted(w, UINT64_MAX);
        assert_int_equal(apply(w, &command, &refusal), RON_ERR_CONFLICT);
        assert_int_equal(refusal.index, places[i]);
        w->may_have = w->ops[places[i]].id = new_id(w);
        command = sifted(w, UINT64_MAX);
        assert_int_equal(apply(w, &command, &refusal), RON_ERR_OK);
        assert_int_equal(w->asked_count, 1);
        assert_int_equal(w->answered_count, 0);
    }
    world_free(w);
}

/* Of the entries behind one that is not plain, wherever that stands. */
static void what_was_asked_before_is_found_behind_any_place(void **state)
{
    struct world *w = world_new(true);

    (void)state;
    for (uint32_t first = 0; first < 130; first += 3)
        for (uint32_t place = first; place < first + 150; place += 7) {
            struct ledger_refusal refusal;
            struct ledger_command command;

            draw(w, MANY);
            w->ops[first].nonce = 1000; /* not its next: never applied */
            w->ops[place].id = w->has;
            command = sifted(w, UINT64_MAX);
            assert_int_equal(apply(w, &command, &refusal), RON_ERR_CONFLICT);
            assert_int_equal(refusal.index, place);
            assert_int_equal(w->answered_count, 0);
        }
    world_free(w);
}

/* An answer that is older than what the window has forgotten since is none: here one that would
 * let an id pass that the archive has. */
static void what_was_asked_too_early_is_asked_again(void **state)
{
    struct world *w = world_new(true);
    struct ledger_command command = command_of(w, MANY);
    struct ledger_refusal refusal;
    uint64_t forgotten;

    (void)state;
    draw(w, MANY);
    w->ops[MANY - 1].id = w->has;
    assert_int_equal(apply(w, &command, &refusal), RON_ERR_CONFLICT);
    forgotten = w->batch_max;
    assert_true(forgotten > 1);
    command = sifted(w, forgotten - 1);
    memset(w->bits, 0, sizeof(w->bits));
    assert_int_equal(apply(w, &command, &refusal), RON_ERR_CONFLICT);
    assert_int_equal(w->answered_count, MANY);
    command = sifted(w, forgotten);
    memset(w->bits, 0, sizeof(w->bits));
    assert_int_equal(apply(w, &command, &refusal), RON_ERR_OK); /* it is believed */
    world_free(w);
}

/* An archive that cannot say it of many is asked for each. */
static void ids_are_asked_for_one_by_one(void **state)
{
    struct world *w = world_new(false);
    const struct ledger_command command = command_of(w, MANY);
    struct ledger_refusal refusal;

    (void)state;
    draw(w, MANY);
    w->asked_count = 0;
    w->ops[MANY - 1].id = w->has;
    assert_int_equal(apply(w, &command, &refusal), RON_ERR_CONFLICT);
    assert_int_equal(refusal.index, MANY - 1);
    assert_in_range(w->asked_count, MANY, MANY + 1);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_is_known_wherever_it_stands),
        cmocka_unit_test(an_id_that_may_be_known_is_asked_for),
        cmocka_unit_test(what_was_asked_before_is_not_asked_again),
        cmocka_unit_test(what_was_asked_before_is_found_behind_any_place),
        cmocka_unit_test(what_was_asked_too_early_is_asked_again),
        cmocka_unit_test(ids_are_asked_for_one_by_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
