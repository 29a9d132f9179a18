/*
 * test_ledger_format.c - the bytes: ids, entries, ext, leaves, frames, state root.
 * Method: golden values computed by a few lines of Python with hashlib, struct and b3sum from the
 * layouts in docs/formats.md, not by this code; every cut and every changed byte of a frame
 * refused.
 *
 * covers: LED-F06 LED-F14
 */
#include "ledger_fixture.h"

#include "base/hex.h"
#include "ledger/core_sheaf.h"

static void assert_hex(const void *bytes, size_t size, const char *hex)
{
    char text[RON_HEX_SIZE(RON_LEAF_SIZE_MAX)];

    (void)ron_hex_encode(ron_slice_of(bytes, size), text, sizeof(text));
    assert_string_equal(text, hex);
}

static void ids_are_cut_from_blake3(void **state)
{
    struct ledger_id account = ledger_account_id("", S("alice"));
    struct ledger_id halves = ledger_account_id("al", S("ice"));
    struct ledger_id entry = ledger_entry_id(ron_u128_of(7), S("t"));

    (void)state;
    assert_hex(account.bytes, sizeof(account), "4224fcdcbf459f1ce221e0f36d81dbdc");
    assert_memory_equal(account.bytes, halves.bytes, sizeof(account));
    assert_hex(entry.bytes, sizeof(entry), "72574955061b79779f4fce0f0d9ae1a7");
}

#define DIGEST "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

/* Two batches: Mint with memo and meta; Transfer, Hold and Anchor under a key. */
static void make_batches(struct fixture *f)
{
    f->command.stamp.tenant = ron_u128_of(7);
    f->command.stamp.caller = LEDGER_CALLER_WALLET;
    applies(f, "Mint id=m to=alice asset=roc amount=100 memo=hi meta={\"a\":1}", NULL);
    f->command.key = S("k1");
    memset(f->command.fingerprint.bytes, 9, RON_B3_SIZE);
    f->hold_commits = true;
    applies(f, "Transfer id=t from=alice to=bob asset=roc amount=40 nonce=1",
            "Hold id=h from=bob hold_id=H payee=shop expires_at=1970-01-01T00:01:00Z asset=roc "
            "amount=10",
            "Anchor id=a stream=mine ref=r1 digest=sha256:" DIGEST, NULL);
    f->command.key = (struct ron_slice){NULL, 0};
}

static void leaves_and_roots_are_golden(void **state)
{
    static const char *const leaves[] = {
        "72574955061b79779f4fce0f0d9ae1a74224fcdcbf459f1ce221e0f36d81dbdcc331ed67f5b2e982b0c3d2cafa"
        "63dda72800000000000000000000000000000000000000000000000000000000000000020000000000"
        "0000e80300000000000001000000000000000200000000000000010000000300000063617061626c7479",
        "68e9e7ebed115e763cad0fc31994e518c331ed67f5b2e982b0c3d2cafa63dda7d98d4a3686f1961feca60e0013"
        "4be1c60a00000000000000000000000000000000000000000000000000000000000000030000000000"
        "0000e80300000000000000000000000000000200000000000000010000000400010063617061626c74790318"
        "0086d1667f230e325ed0d172546a99fe7760ea000000000000",
        "3463ce052430e49ceea83e16fc291fc3000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c"
        "1d1e1f000000000000000000000000000000009c716fa74d4e52cac4f901581b1d8d53040000000000"
        "0000e80300000000000000000000000000000200000000000000000000000a00030063617061626c74790407"
        "006d696e65007231",
    };
    struct fixture *f = *state;
    struct ron_sha256 root;
    struct ron_sha256 frame_hash;
    uint64_t rows_count;

    make_batches(f);
    for (uint32_t i = 0; i < 3; i++) {
        struct ron_slice ext = ledger_batch_ext(&f->batch, i);
        uint8_t leaf[RON_LEAF_SIZE_MAX];

        memcpy(leaf, &f->batch.entries[i], RON_ENTRY_SIZE);
        memcpy(leaf + RON_ENTRY_SIZE, ext.data, ext.size);
        assert_hex(leaf, RON_ENTRY_SIZE + ext.size, leaves[i]);
    }
    assert_hex(f->batch.previous_root.bytes, RON_SHA256_SIZE,
               "9ac57cbc78657cc8695da690b193220ea90cb83119d823a7df21c5dfc55c47c2");
    assert_hex(f->batch.root.bytes, RON_SHA256_SIZE,
               "6a9e54b9f32d9bb3e27074c564651817ed260ed57c62e09bcf4f67270b6c1803");
    assert_int_equal(f->frame_size, 631);
    frame_hash = ron_sha256(f->frame, f->frame_size);
    assert_hex(frame_hash.bytes, RON_SHA256_SIZE,
               "939071114919a9fc720b36cd729402deb4d37d3b0b50defdaff77e99a872774f");
    ledger_core_commit(f->core, &f->batch);
    assert_ok(ledger_core_state_root(f->core, &root, &rows_count, &f->info));
    assert_hex(root.bytes, RON_SHA256_SIZE,
               "a4e450ce1359ced08d7912ea6aa5a389ffd354183711f16c009764425f0893da");
    assert_int_equal(rows_count, 4);
}

static void damaged_frames_are_refused(void **state)
{
    struct fixture *f = *state;
    struct ron_b3 before;

    make_batches(f);
    before = ledger_core_digest(f->shadow);
    for (size_t size = 0; size < f->frame_size; size++)
        assert_int_equal(ledger_replay_frame(f->replay, ron_slice_of(f->frame, size), &f->info),
                         RON_ERR_WAL_CORRUPT);
    for (size_t i = 0; i < f->frame_size; i++) {
        const bool is_version = i == 4 || i == 5;
        struct ron_b3 after;

        if (i == 7 || i == 64 || (i >= 144 && i < 176) || i == 603 || i == 604)
            continue; /* caller, reserved_ok, fingerprint and key are in no leaf */
        f->frame[i] ^= 1;
        if (ledger_replay_frame(f->replay, ron_slice_of(f->frame, f->frame_size), &f->info) !=
            (is_version ? RON_ERR_VERSION_SKEW : RON_ERR_WAL_CORRUPT))
            fail_msg("byte %zu", i);
        after = ledger_core_digest(f->shadow);
        assert_memory_equal(before.bytes, after.bytes, RON_B3_SIZE);
        f->frame[i] ^= 1;
    }
    assert_ok(ledger_replay_frame(f->replay, ron_slice_of(f->frame, f->frame_size), &f->info));
    assert_int_equal(
        ledger_replay_frame(f->replay, ron_slice_of(f->frame, f->frame_size), &f->info),
        RON_ERR_WAL_CORRUPT);
}

/* What id texts come to in a frame; those of 32 lower-case hex digits are 16 bytes there. */
static void id_texts_have_one_form(void **state)
{
#define DIGITS "000102030405060708090a0b0c0d0eff"
    static const struct {
        const char *text, *stored; /* in hex */
    } cases[] = {
        {DIGITS, "00000102030405060708090a0b0c0d0eff"},
        {"t", "0174"},
        {"000102030405060708090a0b0c0d0ef",
         "1f30303031303230333034303530363037303830393061306230633064306566"},
        {"000102030405060708090a0b0c0d0efF",
         "20303030313032303330343035303630373038303930613062306330643065"
         "6646"},
    };
    uint8_t stored[1 + LEDGER_ID_TEXT_SIZE_MAX], again[1 + LEDGER_ID_TEXT_SIZE_MAX];
    char digits[LEDGER_ID_DIGITS + 1];

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(cases); i++) {
        const struct ron_slice text = ron_slice_text(cases[i].text);
        const size_t size = ledger_id_text_put(text, stored);
        size_t checked;

        assert_hex(stored, size, cases[i].stored);
        assert_int_equal(ledger_id_text_at(stored).size == 0, i == 0);
        assert_ptr_equal(ledger_id_text_at(stored).data, stored + 1);
        assert_true(ron_slice_equal(ledger_id_text_of(text, digits), text));
        assert_true(ron_slice_equal(ledger_id_text_of(ledger_id_text_at(stored), digits), text));
        memset(again, 0x5a, sizeof(again));
        assert_int_equal(ledger_id_text_put(ledger_id_text_at(stored), again), size);
        assert_memory_equal(again, stored, size);
        assert_int_equal(again[size], 0x5a);
        assert_int_equal(ledger_id_text_stored(stored), size);
        assert_true(ron_slice_equal(ledger_id_text_get(stored, digits), text));
        assert_true(ledger_id_texts_check(ron_slice_of(stored, sizeof(stored)), 1, &checked));
        assert_int_equal(checked, size);
        for (size_t cut = 0; cut < size; cut++)
            assert_false(ledger_id_texts_check(ron_slice_of(stored, cut), 1, &checked));
    }
    stored[0] = LEDGER_ID_DIGITS;
    memcpy(stored + 1, DIGITS, LEDGER_ID_DIGITS);
    assert_false(ledger_id_texts_check(ron_slice_of(stored, 1 + LEDGER_ID_DIGITS), 1,
                                       &(size_t){0})); /* the long form of what has the short one */
    stored[0] = LEDGER_ID_TEXT_SIZE_MAX + 1;
    assert_false(ledger_id_texts_check(ron_slice_of(stored, sizeof(stored)), 1, &(size_t){0}));
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

/* A frame with both forms, replayed; the same with the long form, its size put right, is refused,
 * and so is one of the version that had nothing else. */
static void frames_hold_binary_ids_as_bytes(void **state)
{
    struct fixture *f = *state;
    struct ledger_frame frame;
    uint8_t longer[sizeof(f->frame)];
    size_t before;

    f->command.stamp.tenant = ron_u128_of(7);
    applies(f, "Mint id=" DIGITS " to=alice asset=roc amount=100",
            "Mint id=m to=alice asset=roc amount=1",
            "Mint id=ff0102030405060708090a0b0c0d0eff to=alice asset=roc amount=2", NULL);
    assert_ok(ledger_frame_decode(ron_slice_of(f->frame, f->frame_size), &frame, &f->info));
    assert_hex(frame.texts.data, frame.texts.size,
               "00000102030405060708090a0b0c0d0eff"
               "016d"
               "00ff0102030405060708090a0b0c0d0eff");
    assert_texts(f, (const char *const[]){DIGITS, "m", "ff0102030405060708090a0b0c0d0eff"}, 3);
    before = (size_t)(frame.texts.data - f->frame);
    memcpy(longer, f->frame, before);
    longer[before] = LEDGER_ID_DIGITS;
    memcpy(longer + before + 1, DIGITS, LEDGER_ID_DIGITS);
    memcpy(longer + before + 1 + LEDGER_ID_DIGITS, f->frame + before + 1 + LEDGER_ID_SIZE,
           f->frame_size - before - 1 - LEDGER_ID_SIZE);
    ron_store_le32(longer + 8, (uint32_t)(f->frame_size + LEDGER_ID_SIZE));
    support_assert_error(
        ledger_frame_decode(ron_slice_of(longer, f->frame_size + LEDGER_ID_SIZE), &frame, &f->info),
        &f->info, RON_ERR_MALFORMED, "frame: id texts");
    f->frame[4] = 1;
    support_assert_error(
        ledger_frame_decode(ron_slice_of(f->frame, f->frame_size), &frame, &f->info), &f->info,
        RON_ERR_VERSION_SKEW, "frame: version 1, only 2 is read");
    assert_int_equal(
        ledger_replay_frame(f->replay, ron_slice_of(f->frame, f->frame_size), &f->info),
        RON_ERR_VERSION_SKEW); /* no damage */
    assert_non_null(strstr(f->info.message, "version 1, only 2"));
}

static void exts_follow_their_rule(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *wrong; /* NULL: acceptable */
    } cases[] = {
        {"", 0, NULL},
        {"\1\0\0", 3, NULL},
        {"\1\1\0x\2\2\0{}", 9, NULL},
        {"\4\2\0s\0", 5, NULL},
        {"\1\1", 2, "cut head"},
        {"\1\2\0x", 4, "cut part"},
        {"\2\0\0\1\0\0", 6, "not ascending"},
        {"\1\0\0\1\0\0", 6, "not ascending"},
        {"\0\0\0", 3, "not ascending"},
        {"\6\0\0", 3, "unknown type"},
        {"\3\1\0x", 4, "another size"},
        {"\4\1\0s", 4, "without NUL"},
        {"\4\1\0\0", 4, "without stream"},
        {"\4\4\0s\0\0r", 7, "two NULs"},
    };

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(cases); i++) {
        struct ron_errinfo info = {.err = RON_ERR_OK};
        struct ledger_ext ext;
        enum ron_err err = ledger_ext_decode(ron_slice_of(cases[i].bytes, cases[i].size), &ext,
                                             &info);
        uint8_t again[64];

        if (cases[i].wrong != NULL) {
            support_assert_error(err, &info, RON_ERR_MALFORMED, cases[i].wrong);
            continue;
        }
        assert_ok(err);
        assert_int_equal(ledger_ext_size(&ext), cases[i].size);
        ledger_ext_encode(&ext, again);
        assert_memory_equal(again, cases[i].bytes, cases[i].size);
    }
}

static void leaves_follow_their_rule(void **state)
{
    struct ledger_entry entry = {.kind = LEDGER_TRANSFER};
    struct ledger_entry again;
    struct ledger_ext ext;
    struct ron_errinfo info;
    uint8_t leaf[RON_ENTRY_SIZE + 3] = {0};

    (void)state;
    memcpy(leaf, &entry, RON_ENTRY_SIZE);
    leaf[RON_ENTRY_SIZE] = 1;
    assert_ok(ledger_leaf_decode(ron_slice_of(leaf, RON_ENTRY_SIZE), &again, &ext, &info));
    assert_int_equal(again.kind, LEDGER_TRANSFER);
    support_assert_error(ledger_leaf_decode(ron_slice_of(leaf, sizeof(leaf)), &again, &ext, &info),
                         &info, RON_ERR_MALFORMED, "with flags");
    leaf[118] = LEDGER_FLAG_EXT;
    assert_ok(ledger_leaf_decode(ron_slice_of(leaf, sizeof(leaf)), &again, &ext, &info));
    support_assert_error(
        ledger_leaf_decode(ron_slice_of(leaf, RON_ENTRY_SIZE), &again, &ext, &info), &info,
        RON_ERR_MALFORMED, "with flags");
    leaf[118] = 8;
    support_assert_error(
        ledger_leaf_decode(ron_slice_of(leaf, RON_ENTRY_SIZE), &again, &ext, &info), &info,
        RON_ERR_MALFORMED, "unknown flags");
    leaf[116] = 12;
    support_assert_error(
        ledger_leaf_decode(ron_slice_of(leaf, RON_ENTRY_SIZE), &again, &ext, &info), &info,
        RON_ERR_MALFORMED, "unknown kind");
    support_assert_error(ledger_leaf_decode(ron_slice_of(leaf, 127), &again, &ext, &info), &info,
                         RON_ERR_MALFORMED, "127 bytes");
}

static bool may_have(const char *more, unsigned byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= 'a' && byte <= 'z') || (byte != 0 && strchr(more, (int)byte) != NULL);
}

/* Names and ids: every byte in every place, every size. */
static void grammar_is_of_single_bytes(void **state)
{
    static const struct {
        bool (*is)(struct ron_slice text);
        const char *more;
        size_t size_max;
    } texts[] = {
        {ledger_is_account, ":/_-", RON_ACCOUNT_NAME_SIZE_MAX},
        {ledger_is_key, "_:.-", RON_IDEM_KEY_SIZE_MAX},
        {ledger_is_id, "_:.-", RON_ENTRY_ID_SIZE_MAX},
        {ledger_is_hold_id, "_:-", LEDGER_HOLD_ID_SIZE_MAX},
    };

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(texts); i++) {
        uint8_t text[512];

        memset(text, 'x', sizeof(text));
        assert_true(texts[i].size_max < sizeof(text));
        for (size_t size = 0; size < sizeof(text); size++)
            assert_int_equal(texts[i].is(ron_slice_of(text, size)),
                             size > 0 && size <= texts[i].size_max);
        for (unsigned byte = 0; byte < 256; byte++)
            for (size_t at = 0; at < 20; at++) {
                memset(text, 'x', sizeof(text));
                text[at] = (uint8_t)byte;
                assert_int_equal(texts[i].is(ron_slice_of(text, 20)),
                                 may_have(texts[i].more, byte));
            }
    }
}

static void shapes_are_refused_by_member(void **state)
{
    static const char *const lines[] = {
        "Mint id=a/b to=alice asset=roc amount=1",
        "Mint id= to=alice asset=roc amount=1",
        "Mint id=x to=alice asset=roc amount=0",
        "Mint id=x to=alice asset=roc amount=01",
        "Mint id=x to=alice asset=roc amount=340282366920938463463374607431768211456",
        "Mint id=x to=alice asset=Roc amount=1",
        "Mint id=x to=al.ice asset=roc amount=1",
        "Mint id=x to=alice asset=roc amount=1 nonce=1",
        "Mint id=x from=alice to=bob asset=roc amount=1",
        "Mint id=x asset=roc amount=1",
        "Mint id=x to=alice amount=1",
        "Asset id=x to=alice asset=roc amount=1",
        "mint id=x to=alice asset=roc amount=1",
        "Transfer id=x from=alice to=alice asset=roc amount=1",
        "Transfer id=x from=alice to=bob asset=roc amount=1 nonce=0",
        "Hold id=x from=alice hold_id=a/b payee=* expires_at=2030-01-01T00:00:00Z asset=roc "
        "amount=1",
        "Hold id=x from=alice hold_id=h payee=* expires_at=2030-01-01 asset=roc amount=1",
        "Hold id=x from=alice hold_id=h expires_at=2030-01-01T00:00:00Z asset=roc amount=1",
        "Release id=x hold_id=h to=bob asset=roc amount=1",
        "Reverse id=x ref=a/b asset=roc amount=1",
        "Anchor id=x stream=s digest=b3:00",
        "Anchor id=x stream=s digest=md5:" DIGEST,
        "Anchor id=x stream=s digest=b3:" DIGEST " asset=roc",
        "Anchor id=x digest=b3:" DIGEST,
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < RON_ARRAY_COUNT(lines); i++) {
        struct ledger_wire_entry wire = fixture_wire(f, lines[i]);
        struct ledger_op op;

        if (ledger_shape_entry(ron_u128_of(0), &wire, &op, &f->info) != RON_ERR_MALFORMED)
            fail_msg("%s", lines[i]);
    }
}

/* Sizes in runs and alone, around a block, longer than one: as each by itself. */
static void ids_of_many_names_are_those_of_each(void **state)
{
    static const size_t sizes[] = {5, 5, 5, 49, 49, 50, 50, 1, 64, 64};
    enum { NAMES = 90, NAME_MAX = 64 };
    static char texts[NAMES][NAME_MAX];
    struct ron_slice names[NAMES];
    struct ledger_id ids[NAMES];

    (void)state;
    for (size_t i = 0; i < NAMES; i++) {
        const size_t size = i < 40 ? 24 : sizes[i % RON_ARRAY_COUNT(sizes)];

        memset(texts[i], (int)('a' + i % 26), size);
        texts[i][size - 1] = (char)('0' + i % 10);
        names[i] = ron_slice_of(texts[i], size);
    }
    for (size_t count = 0; count <= NAMES; count += count < 40 ? 1 : 25) {
        ledger_account_ids(names, count, ids);
        for (size_t i = 0; i < count; i++) {
            const struct ledger_id one = ledger_account_id("", names[i]);

            assert_true(ledger_id_equal(&ids[i], &one));
        }
    }
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_cut_from_blake3),
        cmocka_unit_test(ids_of_many_names_are_those_of_each),
        TEST(leaves_and_roots_are_golden),
        TEST(damaged_frames_are_refused),
        cmocka_unit_test(id_texts_have_one_form),
        TEST(frames_hold_binary_ids_as_bytes),
        cmocka_unit_test(grammar_is_of_single_bytes),
        cmocka_unit_test(exts_follow_their_rule),
        cmocka_unit_test(leaves_follow_their_rule),
        TEST(shapes_are_refused_by_member),
    };
    return cmocka_run_group_tests_name("ledger_format", tests, NULL, NULL);
}
