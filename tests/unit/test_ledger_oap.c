/*
 * test_ledger_oap.c - binary bodies: to ops and names, in the core, back from frames. Method:
 * golden ids; each entry of many against the same alone and against its members, in memory that was
 * full of other things; a wrong one in every place; ids made together against those made one by
 * one.
 */
#include "ledger_fixture.h"

#include "base/hex.h"
#include "ledger/core_oap.h"
#include "ledger/core_sheaf.h"

static void assert_hex(const void *bytes, size_t size, const char *hex)
{
    char text[RON_HEX_SIZE(RON_LEAF_SIZE_MAX)];

    (void)ron_hex_encode(ron_slice_of(bytes, size), text, sizeof(text));
    assert_string_equal(text, hex);
}

/* The ops of a frame have their texts again, each its own. */
static void assert_texts(struct fixture *f, const char *const *texts, uint32_t count)
{
    struct ron_merkle_frontier frontier;
    struct ledger_sheaf sheaf;
    const struct ledger_command *command;

    ron_merkle_frontier_init(&frontier);
    assert_ok(ledger_sheaf_init(&sheaf, &f->info));
    assert_ok(ledger_sheaf_empty(&sheaf, f->frame_size, &f->info));
    assert_ok(
        ledger_sheaf_prepare(&sheaf, ron_slice_of(f->frame, f->frame_size), &frontier, &f->info));
    command = &sheaf.frames[0].command;
    assert_int_equal(command->ops_count, count);
    for (uint32_t i = 0; i < count; i++) {
        char digits[LEDGER_ID_DIGITS + 1];

        assert_true(ron_slice_equal(ledger_id_text_of(command->ops[i].id_text, digits),
                                    ron_slice_text(texts[i])));
    }
    ledger_sheaf_fini(&sheaf);
}

/* A binary body of one entry: Transfer of 5 from alice to bob. */
static size_t oap_body(uint8_t *body)
{
    uint8_t *at = body + 4 + 4;

    memset(body, 0, 4 + 4 + RON_WIRE_ENTRY_SIZE);
    ron_store_le16(body, 2);
    memcpy(body + 2, "k1", 2);
    ron_store_le32(body + 4, 1);
    for (uint8_t i = 0; i < 16; i++)
        at[i] = i;
    memcpy(at + 16, ledger_account_id("", S("alice")).bytes, 16);
    memcpy(at + 32, ledger_account_id("", S("bob")).bytes, 16);
    at[48] = 5;
    at[80] = 1; /* nonce */
    at[88] = 1; /* asset */
    at[92] = LEDGER_TRANSFER;
    return 4 + 4 + RON_WIRE_ENTRY_SIZE;
}

/* Head and entries; what was in the ops before does not show. */
static enum ron_err decode(struct fixture *f, struct ron_u128 tenant, struct ron_slice bytes)
{
    struct ledger_oap_body body;
    struct ledger_oap_sum sum;
    uint32_t index;
    enum ron_err err = ledger_oap_head(bytes, &body, &f->info);

    if (err != RON_ERR_OK)
        return err;
    assert_in_range(body.count, 1, FIXTURE_OPS);
    memset(f->bare_ops, 0x5a, sizeof(f->bare_ops));
    err = ledger_oap_decode(tenant, &body, f->bare_ops, &sum, &index, &f->info);
    if (err != RON_ERR_OK)
        return err;
    f->command.bare_ops = f->bare_ops;
    f->command.key = body.key;
    f->command.ops_count = body.count;
    return RON_ERR_OK;
}

static void binary_bodies_become_ops(void **state)
{
    struct fixture *f = *state;
    static const struct {
        size_t at;
        uint8_t value;
    } breaks[] = {
        {8 + 92, LEDGER_HOLD},
        {8 + 92, 0},
        {8 + 94, 1},
        {8 + 48, 0},
        {8 + 88, 0},
        {8 + 64, 1},
        {4, 2},
        {4, 0},
        {8 + 92, LEDGER_MINT},
        {2, '/'},
        {8 + 92, LEDGER_DEBIT},
        {0, 3},
    };
    uint8_t body[8 + RON_WIRE_ENTRY_SIZE];
    size_t size = oap_body(body);
    struct ledger_frame frame;

    f->command.stamp.tenant = ron_u128_of(7);
    applies(f, "Mint id=m to=alice asset=roc amount=100", NULL);
    assert_ok(decode(f, ron_u128_of(7), ron_slice_of(body, size)));
    assert_int_equal(f->command.ops_count, 1);
    assert_hex(f->bare_ops[0].id.bytes, LEDGER_ID_SIZE, "41e777e5b03783358de069182bf80f11");
    /* An id alone opens nothing. */
    fixture_refused(f, fixture_apply(f), RON_ERR_NOT_FOUND, 0);
    f->command.key = (struct ron_slice){NULL, 0};
    applies(f, "Mint id=m2 to=bob asset=roc amount=1", NULL);
    assert_ok(decode(f, ron_u128_of(7), ron_slice_of(body, size)));
    assert_ok(fixture_apply(f));
    balance_is(f, "bob", "roc", "6");
    assert_ok(ledger_frame_decode(ron_slice_of(f->frame, f->frame_size), &frame, &f->info));
    assert_hex(frame.texts.data, frame.texts.size, "00000102030405060708090a0b0c0d0e0f");
    for (size_t i = 0; i < RON_ARRAY_COUNT(breaks); i++) {
        (void)oap_body(body);
        body[breaks[i].at] = breaks[i].value;
        assert_int_equal(decode(f, ron_u128_of(7), ron_slice_of(body, size)), RON_ERR_MALFORMED);
    }
    ron_store_le32(body + 4, RON_BATCH_ENTRIES_MAX + 1);
    body[0] = 2;
    assert_int_equal(decode(f, ron_u128_of(7), ron_slice_of(body, size)), RON_ERR_TOO_LARGE);
}

/* A binary body of many entries, of every kind that there is. */
enum { MANY = 3 * LEDGER_ID_GROUP + 5 };
static size_t oap_many(uint8_t *body)
{
    static const uint8_t kinds[] = {LEDGER_TRANSFER, LEDGER_MINT,    LEDGER_BURN,
                                    LEDGER_CAPTURE,  LEDGER_RELEASE, LEDGER_REVERSE,
                                    LEDGER_CREDIT,   LEDGER_DEBIT,   LEDGER_CAPTURE};

    memset(body, 0, 6 + MANY * RON_WIRE_ENTRY_SIZE);
    ron_store_le32(body + 2, MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        uint8_t *at = body + 6 + (size_t)i * RON_WIRE_ENTRY_SIZE;
        const unsigned kind = kinds[i % RON_ARRAY_COUNT(kinds)];
        const bool has_debit = kind != LEDGER_MINT && kind != LEDGER_CREDIT &&
                               kind != LEDGER_REVERSE;
        const bool has_credit = kind == LEDGER_TRANSFER || kind == LEDGER_MINT ||
                                kind == LEDGER_CREDIT || i % RON_ARRAY_COUNT(kinds) == 8;

        memset(at, (int)(i + 1), LEDGER_ID_SIZE);
        memset(at + 16, has_debit ? (int)(i + 2) : 0, LEDGER_ID_SIZE);
        memset(at + 32, has_credit ? (int)(i + 3) : 0, LEDGER_ID_SIZE);
        ron_store_le64(at + 48, 1000 - (i % 7) * 100 - i);
        memset(at + 64, kind == LEDGER_REVERSE ? (int)i : 0, LEDGER_ID_SIZE);
        ron_store_le64(at + 80, kind == LEDGER_DEBIT ? i : 0);
        ron_store_le32(at + 88, i + 1);
        at[92] = (uint8_t)kind;
    }
    return 6 + MANY * RON_WIRE_ENTRY_SIZE;
}

/* An entry among many is what it is alone, whatever was in the memory; the sum is of all. */
static void binary_entries_among_many_are_as_alone(void **state)
{
    struct fixture *f = *state;
    uint8_t body[6 + MANY * RON_WIRE_ENTRY_SIZE];
    const size_t size = oap_many(body);
    const struct ron_u128 tenant = ron_u128_of(7);
    struct ledger_oap_body head, one;
    struct ledger_oap_sum sum, sum_of_one;
    uint32_t index = 77;
    uint32_t kinds = 0;

    assert_ok(ledger_oap_head(ron_slice_of(body, size), &head, &f->info));
    assert_int_equal(head.count, MANY);
    assert_int_equal(head.key.size, 0);
    memset(f->bare_ops, 0xff, sizeof(f->bare_ops));
    assert_ok(ledger_oap_decode(tenant, &head, f->bare_ops, &sum, &index, &f->info));
    assert_int_equal(index, 77);
    assert_int_equal(f->bare_ops[MANY].kind, 0xffff); /* no more than these */
    one = head;
    one.count = 1;
    for (uint32_t i = 0; i < MANY; i++, one.entries += RON_WIRE_ENTRY_SIZE) {
        struct ledger_bare_op op, expected = {.kind = one.entries[92]};
        char digits[LEDGER_ID_DIGITS + 1];

        memset(&op, 0xaa, sizeof(op));
        assert_ok(ledger_oap_decode(tenant, &one, &op, &sum_of_one, &index, &f->info));
        /* Each has the bytes of its id itself: the body may be gone. */
        assert_ptr_equal(op.id_text.data, op.id_digits);
        assert_ptr_equal(f->bare_ops[i].id_text.data, f->bare_ops[i].id_digits);
        op.id_text = f->bare_ops[i].id_text;
        assert_memory_equal(&op, &f->bare_ops[i], sizeof(op));
        assert_int_equal(sum_of_one.kinds, 1u << op.kind);
        assert_true(ron_u128_compare(sum_of_one.amount_max, op.amount) == 0);
        kinds |= sum_of_one.kinds;
        expected.id = ledger_entry_id(tenant, ledger_id_text_of(op.id_text, digits));
        memcpy(expected.debit.bytes, one.entries + 16, LEDGER_ID_SIZE);
        memcpy(expected.credit.bytes, one.entries + 32, LEDGER_ID_SIZE);
        expected.amount = ron_u128_load_le(one.entries + 48);
        expected.nonce = ron_load_le64(one.entries + 80);
        expected.asset = i + 1;
        expected.has_to = i % 9 == 8;
        memcpy(expected.id_digits, one.entries, LEDGER_ID_SIZE);
        expected.id_text = op.id_text;
        if (expected.kind == LEDGER_REVERSE)
            expected.other = ledger_entry_id(
                tenant, ledger_id_text_of(ron_slice_of(one.entries + 64, 0), digits));
        assert_memory_equal(&op, &expected, sizeof(op));
    }
    assert_int_equal(sum.kinds, kinds);
    assert_int_equal((uint64_t)sum.amount_max.v, 1000);
}

/* The first entry that is wrong is named, wherever it lies in its group. */
static void the_first_wrong_binary_entry_is_named(void **state)
{
    struct fixture *f = *state;
    uint8_t body[6 + MANY * RON_WIRE_ENTRY_SIZE];
    const size_t size = oap_many(body);
    struct ledger_oap_body head;
    struct ledger_oap_sum sum = {.kinds = 0x5a};

    assert_ok(ledger_oap_head(ron_slice_of(body, size), &head, &f->info));
    for (uint32_t i = MANY; i-- > 0;) { /* those behind stay wrong */
        uint32_t index = UINT32_MAX;

        body[6 + (size_t)i * RON_WIRE_ENTRY_SIZE + 94] = 1;
        support_assert_error(
            ledger_oap_decode(ron_u128_of(7), &head, f->bare_ops, &sum, &index, &f->info), &f->info,
            RON_ERR_MALFORMED, "flags");
        assert_int_equal(index, i);
        assert_int_equal(sum.kinds, 0x5a);
    }
}

/* More entries than have their ids made at once: the frame has the ids and texts of all, and is
 * replayed (fixture_apply does). */
static void many_binary_entries_are_replayed(void **state)
{
    struct fixture *f = *state;
    uint8_t body[6 + MANY * RON_WIRE_ENTRY_SIZE];
    const char *texts[MANY];
    char digits[MANY][LEDGER_ID_DIGITS + 1];
    uint8_t one[8 + RON_WIRE_ENTRY_SIZE];

    f->command.stamp.tenant = ron_u128_of(7);
    applies(f, "Mint id=m to=alice asset=roc amount=1000", "Mint id=n to=bob asset=roc amount=1",
            NULL);
    (void)oap_many(body);
    (void)oap_body(one);
    for (uint32_t i = 0; i < MANY; i++) {
        uint8_t *at = body + 6 + (size_t)i * RON_WIRE_ENTRY_SIZE;

        memcpy(at, one + 8, RON_WIRE_ENTRY_SIZE);
        at[0] = (uint8_t)i;
        at[80] = (uint8_t)(i + 1); /* nonce */
        texts[i] = digits[i];
        (void)ledger_id_text_of(ron_slice_of(at, 0), digits[i]);
    }
    assert_ok(decode(f, ron_u128_of(7), ron_slice_of(body, sizeof(body))));
    assert_ok(fixture_apply(f));
    assert_int_equal(f->batch.entries_count, MANY);
    assert_texts(f, texts, MANY);
    balance_is(f, "bob", "roc", "266");
}

/* Ids made together are those made one by one: texts of one size and of several, of a block and of
 * more, as bytes and as text; a maker forgets what it made before. */
static void ids_made_together_are_those_of_one(void **state)
{
    static const size_t sizes[] = {0, 1, 26, 32, 35, 36, 64, 96};
    struct ledger_id_maker maker;
    uint8_t bytes[LEDGER_ID_GROUP][LEDGER_ID_TEXT_SIZE_MAX];
    char digits[LEDGER_ID_DIGITS + 1];

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        ((uint8_t *)bytes)[i] = (uint8_t)('a' + i % 23);
    ledger_id_maker_init(&maker, ron_u128_of(7));
    for (size_t s = 0; s < 2 * RON_ARRAY_COUNT(sizes); s++)
        for (uint32_t count = 0; count <= LEDGER_ID_GROUP; count++) {
            struct ron_slice texts[LEDGER_ID_GROUP];
            struct ledger_id ids[LEDGER_ID_GROUP];

            for (uint32_t i = 0; i < count; i++) {
                const size_t odd = s >= RON_ARRAY_COUNT(sizes) && i + 1 == count ? 1 : 0;

                texts[i] = ron_slice_of(bytes[i], sizes[(s + odd) % RON_ARRAY_COUNT(sizes)]);
            }
            ledger_id_maker_run(&maker, texts, count, ids);
            for (uint32_t i = 0; i < count; i++) {
                const struct ledger_id id = ledger_entry_id(ron_u128_of(7),
                                                            ledger_id_text_of(texts[i], digits));

                assert_memory_equal(ids[i].bytes, id.bytes, LEDGER_ID_SIZE);
            }
        }
    assert_dies(ledger_id_maker_run(&maker, NULL, LEDGER_ID_GROUP + 1, NULL),
                "count <= LEDGER_ID_GROUP");
}

static enum ron_err open_names(struct fixture *f, const uint8_t *body, size_t size)
{
    static struct ron_slice names[RON_BATCH_ENTRIES_MAX];
    uint32_t index;
    enum ron_err err;

    f->command.kind = LEDGER_COMMAND_OPEN;
    f->command.open.names = names;
    err = ledger_oap_decode_names(ron_slice_of(body, size), names, &f->command.open.count, &index,
                                  &f->info);
    return err == RON_ERR_OK ? fixture_apply(f) : err;
}

#define BODY(literal) (const uint8_t *)(literal), sizeof(literal) - 1

/* Code 2: names become known, once; binary entries then reach them by id. */
static void accounts_are_opened_by_name(void **state)
{
    struct fixture *f = *state;
    uint8_t body[8 + RON_WIRE_ENTRY_SIZE];
    size_t size = oap_body(body);
    struct ron_sha256 roots[2];
    uint64_t rows_count;

    applies(f, "Mint id=m to=alice asset=roc amount=100", NULL);
    assert_ok(ledger_core_state_root(f->core, &roots[0], &rows_count, &f->info));
    assert_ok(open_names(f, BODY("\x05\0alice\x03\0bob\x03\0bob\x06\0pool/x")));
    assert_int_equal(f->batch.entries_count, 1);
    assert_int_equal(f->batch.entries[0].kind, LEDGER_ANCHOR);
    /* printf '\3\0bob\6\0pool/x' | b3sum */
    assert_hex(f->batch.entries[0].debit.bytes, LEDGER_ID_SIZE, "92d200432b5c5ae50075ce06a3850f23");
    assert_ok(ledger_core_state_root(f->core, &roots[1], &rows_count, &f->info));
    assert_memory_equal(roots[0].bytes, roots[1].bytes, RON_SHA256_SIZE);
    assert_ok(open_names(f, BODY("\x03\0bob")));
    assert_false(f->result.applied);
    refuses(f, RON_ERR_INSUFFICIENT_FUNDS, 0, "Burn id=b from=bob asset=roc amount=1", NULL);
    f->command.kind = LEDGER_COMMAND_INGEST;
    assert_ok(decode(f, ron_u128_of(0), ron_slice_of(body, size)));
    assert_ok(fixture_apply(f));
    balance_is(f, "bob", "roc", "5");
    f->command.key = (struct ron_slice){NULL, 0};
    fixture_refused(f, open_names(f, BODY("\x01\0z\x0a\0sys/hold/H")), RON_ERR_FORBIDDEN, 1);
    assert_int_equal(open_names(f, BODY("")), RON_ERR_MALFORMED);
    assert_int_equal(open_names(f, BODY("\x01\0z\x01")), RON_ERR_MALFORMED);
    assert_int_equal(open_names(f, BODY("\x02\0z")), RON_ERR_MALFORMED);
    assert_int_equal(open_names(f, BODY("\0\0")), RON_ERR_MALFORMED);
    assert_int_equal(open_names(f, BODY("\x01\0.")), RON_ERR_MALFORMED);
}

/* What a tenant reverses over the binary wire is its own. */
static void reversals_by_wire_id_stay_in_the_tenant(void **state)
{
    struct fixture *f = *state;
    uint8_t body[8 + RON_WIRE_ENTRY_SIZE];

    applies(f, "Mint id=m to=alice asset=roc amount=100", "Mint id=m2 to=bob asset=roc amount=1",
            NULL);
    for (unsigned step = 0; step < 3; step++) {
        struct ron_u128 tenant = ron_u128_of(step == 1 ? 8 : 7);
        uint8_t *at = body + 8;
        size_t size = oap_body(body);

        if (step > 0) { /* the Transfer of step 0, taken back by its wire id */
            memcpy(at + 64, at, LEDGER_ID_SIZE);
            memset(at + 16, 0, 2 * LEDGER_ID_SIZE);
            at[0] = 0x77;
            at[80] = 0;
            at[92] = LEDGER_REVERSE;
        }
        f->command.stamp.tenant = tenant;
        f->command.kind = LEDGER_COMMAND_INGEST;
        assert_ok(decode(f, tenant, ron_slice_of(body, size)));
        f->command.key = (struct ron_slice){NULL, 0};
        if (step == 1)
            fixture_refused(f, fixture_apply(f), RON_ERR_NOT_FOUND, 0);
        else
            assert_ok(fixture_apply(f));
    }
    balance_is(f, "bob", "roc", "1");
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(binary_bodies_become_ops),
        TEST(binary_entries_among_many_are_as_alone),
        TEST(the_first_wrong_binary_entry_is_named),
        cmocka_unit_test(ids_made_together_are_those_of_one),
        TEST(many_binary_entries_are_replayed),
        TEST(accounts_are_opened_by_name),
        TEST(reversals_by_wire_id_stay_in_the_tenant),
    };
    return cmocka_run_group_tests_name("ledger_oap", tests, NULL, NULL);
}
