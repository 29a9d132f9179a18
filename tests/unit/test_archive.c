/*
 * test_archive.c - what the archive makes of places that an index names. Method: an engine of one
 * frame whose index knows nothing of keys: it names every place of the frame for any key, as an
 * index of shortened keys may. Nothing but the frame can then tell what was asked for.
 */
#include "ledger_fixture.h"

#include "io/log.h"
#include "ledger/archive.h"

static struct fixture *made;

static enum ron_err read_frame(struct ledger_engine *engine, uint64_t number, struct ron_buf *buf,
                               struct ron_errinfo *reterr)
{
    (void)engine;
    assert_int_equal(number, 1);
    return ron_buf_append(buf, made->frame, made->frame_size, reterr);
}

struct naming {
    ledger_place_fn *fn;
    void *context;
    bool enough;
    enum ron_err err;
};

static void name_place(void *context, const uint8_t key[16], uint32_t sub)
{
    struct naming *naming = context;

    (void)key;
    if (naming->err == RON_ERR_OK && !naming->enough)
        naming->err = naming->fn(naming->context, 1, sub, &naming->enough, NULL);
}

static enum ron_err find_any(struct ledger_engine *engine, const uint8_t key[16],
                             uint64_t number_max, ledger_place_fn *fn, void *context,
                             struct ron_errinfo *reterr)
{
    struct naming naming = {.fn = fn, .context = context};

    (void)engine;
    (void)key;
    (void)number_max;
    (void)reterr;
    ledger_archive_keys(ron_slice_of(made->frame, made->frame_size), name_place, &naming);
    return naming.err;
}

static enum ron_err may_have_any(struct ledger_engine *engine, const struct io_log_keys *keys,
                                 uint64_t number_max, uint64_t *ret_bits,
                                 struct ron_errinfo *reterr)
{
    (void)engine;
    (void)keys;
    (void)number_max;
    (void)reterr;
    ret_bits[0] = UINT64_MAX;
    return RON_ERR_OK;
}

static uint64_t indexed(struct ledger_engine *engine)
{
    (void)engine;
    return 1;
}

static void places_of_other_keys_are_passed_over(void **state) RON_BLOCKS
{
    static const struct ledger_engine_ops ops = {.name = "any",
                                                 .read = read_frame,
                                                 .find = find_any,
                                                 .may_have = may_have_any,
                                                 .indexed = indexed};
    static const char *const ids[] = {"m", "t", "u"};
    struct ledger_engine engine = {.ops = &ops};
    const struct ledger_id alice = ledger_account_id("", S("alice"));
    struct ledger_store *store = NULL;
    struct ledger_archive archive;
    struct ledger_entry entry;
    struct ledger_frame frame;
    struct ledger_key key;
    struct ledger_id id;
    struct ron_buf buf;
    uint64_t seq = 0;

    made = *state;
    ron_buf_init(&buf, FIXTURE_FRAME);
    made->command.key = S("k1");
    applies(made, "Mint id=m to=alice asset=roc amount=100",
            "Transfer id=t from=alice to=bob asset=roc amount=40 nonce=1",
            "Transfer id=u from=alice to=bob asset=roc amount=2 nonce=2", NULL);
    assert_ok(ledger_store_new(&engine, &store, NULL));
    archive = ledger_store_archive(store);
    for (size_t i = RON_ARRAY_COUNT(ids); i-- > 0;) { /* not in order: each is looked for */
        id = ledger_entry_id(ron_u128_of(0), S(ids[i]));
        assert_true(archive.find_entry(archive.context, &id, 1, &entry));
        assert_true(ledger_id_equal(&entry.id, &id));
        assert_ok(ledger_archive_entry(&engine, &id, 1, &buf, &frame, &seq, NULL));
        assert_int_equal(seq, entry.seq);
        assert_memory_equal(frame.entries.data + i * RON_ENTRY_SIZE, &entry, RON_ENTRY_SIZE);
        assert_int_equal(
            ledger_archive_entry(&engine, &id, 0, &buf, &frame, &seq, NULL),
            RON_ERR_NOT_FOUND); /* not committed: what the index says of it is not asked */
    }
    for (uint64_t nonce = 2; nonce > 0; nonce--) {
        assert_true(archive.find_nonce(archive.context, &alice, nonce, 1, &entry));
        assert_int_equal(entry.nonce, nonce);
    }
    id = ledger_key_id(&made->command.stamp, LEDGER_COMMAND_INGEST, S("k1"));
    assert_true(archive.find_key(archive.context, &id, 1, &key));
    assert_true(ledger_id_equal(&key.id, &id));
    /* None of these is there, whatever the index says. */
    id.bytes[15] ^= 1;
    assert_false(archive.find_key(archive.context, &id, 1, &key));
    id = ledger_entry_id(ron_u128_of(0), S("u"));
    id.bytes[8] ^= 1;
    assert_false(archive.find_entry(archive.context, &id, 1, &entry));
    assert_int_equal(ledger_archive_entry(&engine, &id, 1, &buf, &frame, &seq, NULL),
                     RON_ERR_NOT_FOUND);
    assert_false(archive.find_nonce(archive.context, &alice, 3, 1, &entry));
    assert_false(archive.find_nonce(archive.context, &id, 1, 1, &entry));
    assert_ok(archive.failed(archive.context, NULL));
    store = ledger_store_free(store);
    ron_buf_fini(&buf);
}

static void count_key(void *count, const uint8_t key[16], uint32_t sub)
{
    (void)key;
    (void)sub;
    ++*(unsigned *)count;
}

/* A frame tells its keys whatever its leaves are, so that who asks for one meets the damage: it is
 * not told that there is no such entry. */
static void a_bad_leaf_is_no_answer(void **state) RON_BLOCKS
{
    static const struct ledger_engine_ops ops = {
        .name = "any", .read = read_frame, .find = find_any};
    struct ledger_engine engine = {.ops = &ops};
    const struct ledger_id id = ledger_entry_id(ron_u128_of(0), S("m"));
    struct ledger_frame frame;
    struct ron_buf buf;
    unsigned keys_count = 0;
    uint64_t seq = 0;

    made = *state;
    ron_buf_init(&buf, FIXTURE_FRAME);
    applies(made, "Mint id=m to=alice asset=roc amount=100",
            "Transfer id=t from=alice to=bob asset=roc amount=40 nonce=1", NULL);
    assert_ok(ledger_frame_decode(ron_slice_of(made->frame, made->frame_size), &frame, NULL));
    made->frame[(size_t)(frame.entries.data - made->frame) +
                offsetof(struct ledger_entry, batch)] ^= 1;
    assert_int_equal(ledger_frame_decode(ron_slice_of(made->frame, made->frame_size), &frame, NULL),
                     RON_ERR_MALFORMED);
    ledger_archive_keys(ron_slice_of(made->frame, made->frame_size), count_key, &keys_count);
    assert_int_equal(keys_count, 3);
    assert_int_equal(ledger_archive_entry(&engine, &id, 1, &buf, &frame, &seq, NULL),
                     RON_ERR_WAL_CORRUPT);
    ledger_archive_keys(ron_slice_of(made->frame, made->frame_size - 1), count_key, &keys_count);
    assert_int_equal(keys_count, 3); /* none where the parts are not all there */
    ron_buf_fini(&buf);
}

static enum ron_err no_frame(struct ledger_engine *engine, uint64_t number, struct ron_buf *buf,
                             struct ron_errinfo *reterr)
{
    (void)engine;
    (void)buf;
    return ron_fail(reterr, RON_ERR_NOT_FOUND, "frame %llu", (unsigned long long)number);
}

/* That a frame is gone is not that the entry is. */
static void a_frame_that_is_gone_is_no_answer(void **state) RON_BLOCKS
{
    static const struct ledger_engine_ops gone = {
        .name = "gone", .read = no_frame, .find = find_any};
    static const struct ledger_engine_ops bare = {.name = "bare", .read = no_frame};
    struct ledger_engine engine = {.ops = &gone};
    const struct ledger_id id = ledger_entry_id(ron_u128_of(0), S("m"));
    struct ledger_frame frame;
    struct ron_buf buf;
    uint64_t seq = 0;

    made = *state;
    ron_buf_init(&buf, FIXTURE_FRAME);
    applies(made, "Mint id=m to=alice asset=roc amount=100", NULL);
    assert_int_equal(ledger_archive_entry(&engine, &id, 1, &buf, &frame, &seq, NULL),
                     RON_ERR_WAL_CORRUPT);
    engine.ops = &bare; /* without an index: the window has everything */
    assert_int_equal(ledger_archive_entry(&engine, &id, 1, &buf, &frame, &seq, NULL),
                     RON_ERR_NOT_FOUND);
    ron_buf_fini(&buf);
}

/* An index of ids that are numbers: what it says of one depends on its remainder by 3. It grows
 * while it is asked. */
enum { MAY_HAVE, LACKS, HAS, KINDS, IDS = 150 };
static uint64_t indexed_batch;
static enum ron_err find_err;
static unsigned found_count;

static enum ron_err may_have_some(struct ledger_engine *engine, const struct io_log_keys *keys,
                                  uint64_t number_max, uint64_t *ret_bits,
                                  struct ron_errinfo *reterr)
{
    (void)engine;
    assert_int_equal(number_max, indexed_batch);
    assert_int_not_equal(number_max, 0);
    if (number_max == 5)
        return ron_fail(reterr, RON_ERR_NOT_READY, "the log is closed");
    indexed_batch++;
    memset(ret_bits, 0, (keys->count + 63) / 64 * sizeof(ret_bits[0]));
    for (size_t i = 0; i < keys->count; i++)
        if (ron_load_le64(keys->first + i * keys->stride) % KINDS != LACKS)
            ret_bits[i / 64] |= UINT64_C(1) << i % 64;
    return RON_ERR_OK;
}

static enum ron_err find_some(struct ledger_engine *engine, const uint8_t key[16],
                              uint64_t number_max, ledger_place_fn *fn, void *context,
                              struct ron_errinfo *reterr)
{
    const uint64_t kind = ron_load_le64(key) % KINDS;
    bool enough = false;

    (void)engine;
    found_count++;
    assert_int_equal(number_max, indexed_batch - 1); /* as it was before it was asked */
    assert_int_not_equal(kind, LACKS);
    if (kind == HAS && find_err != RON_ERR_OK)
        return ron_fail(reterr, find_err, "a page");
    return kind == HAS ? fn(context, 1, 0, &enough, reterr) : RON_ERR_OK;
}

static uint64_t indexed_some(struct ledger_engine *engine)
{
    (void)engine;
    return indexed_batch;
}

static const struct ledger_engine_ops some_ops = {
    .name = "some", .find = find_some, .may_have = may_have_some, .indexed = indexed_some};

/* Sift IDS ids, of which the index has the one at `place` and, maybe, filters let others pass. */
static uint64_t sift(uint32_t place, bool others_pass, uint64_t bits[(IDS + 63) / 64]) RON_BLOCKS
{
    struct ledger_engine engine = {.ops = &some_ops};
    struct ledger_id spaced[2 * IDS];
    const struct ledger_ids ids = {spaced, 2 * sizeof(spaced[0]), IDS};
    uint64_t batch_max = 77;

    memset(spaced, 0xff, sizeof(spaced));
    for (uint32_t i = 0; i < IDS; i++)
        ron_store_le64(spaced[2 * i].bytes, (uint64_t)KINDS * i + (i == place    ? HAS
                                                                   : others_pass ? MAY_HAVE
                                                                                 : LACKS));
    indexed_batch = 9;
    found_count = 0;
    assert_ok(ledger_archive_sift(&engine, &ids, bits, &batch_max, NULL));
    return batch_max;
}

/* What only passes the filters is taken out. An id that is in the index stays, and so does whatever
 * may be behind it: a repetition is not looked for id by id. */
static void ids_are_sifted_by_the_index(void **state) RON_BLOCKS
{
    uint64_t bits[(IDS + 63) / 64];

    (void)state;
    for (unsigned turn = 0; turn < 2; turn++) {
        find_err = turn == 0 ? RON_ERR_OK : RON_ERR_WAL_CORRUPT; /* it may be there */
        for (uint32_t place = 0; place <= IDS; place++) {
            assert_int_equal(sift(place, false, bits), 9); /* as far as it went before */
            for (uint32_t i = 0; i < IDS; i++)
                assert_int_equal(bits[i / 64] >> i % 64 & 1, i == place);
            assert_int_equal(sift(place, true, bits), 9);
            for (uint32_t i = 0; i < IDS; i++)
                assert_int_equal(bits[i / 64] >> i % 64 & 1, i >= place);
            assert_int_equal(found_count, place < IDS ? place + 1 : IDS);
        }
    }
    find_err = RON_ERR_OK;
}

static void an_index_of_nothing_sifts_all(void **state) RON_BLOCKS
{
    struct ledger_engine engine = {.ops = &some_ops};
    const struct ledger_id id = {{3}};
    const struct ledger_ids ids = {&id, sizeof(id), 1};
    uint64_t bits[1];
    uint64_t batch_max = 77;

    (void)state;
    indexed_batch = 5;
    assert_int_equal(ledger_archive_sift(&engine, &ids, bits, &batch_max, NULL), RON_ERR_NOT_READY);
    indexed_batch = 0;
    assert_ok(ledger_archive_sift(&engine, &ids, bits, &batch_max, NULL));
    assert_int_equal(batch_max, 0);
    assert_int_equal(bits[0], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(places_of_other_keys_are_passed_over, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_frame_that_is_gone_is_no_answer, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_bad_leaf_is_no_answer, fixture_setup, fixture_teardown),
        cmocka_unit_test(ids_are_sifted_by_the_index),
        cmocka_unit_test(an_index_of_nothing_sifts_all),
    };
    return cmocka_run_group_tests_name("archive", tests, NULL, NULL);
}
