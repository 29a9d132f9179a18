/*
 * test_ledger_format.c - the bytes: ids, entries, ext, leaves, frames, state root, binary ingest.
 * Method: golden values computed by a few lines of Python with hashlib, struct and b3sum from the
 * layouts in docs/formats.md, not by this code; every cut and every changed byte of a frame
 * refused.
 *
 * covers: LED-F06 LED-F14
 */
#include "ledger_fixture.h"

#include "base/hex.h"

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
    uint8_t stored[1 + LEDGER_ID_TEXT_SIZE_MAX];
    char digits[LEDGER_ID_DIGITS + 1];

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(cases); i++) {
        const struct ron_slice text = ron_slice_text(cases[i].text);
        const size_t size = ledger_id_text_put(text, stored);
        size_t checked;

        assert_hex(stored, size, cases[i].stored);
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
    uint8_t texts[LEDGER_OAP_TEXT_SIZE];
    size_t size = oap_body(body);
    uint32_t count;
    uint32_t index;

    f->command.stamp.tenant = ron_u128_of(7);
    applies(f, "Mint id=m to=alice asset=roc amount=100", NULL);
    assert_ok(ledger_oap_decode(ron_u128_of(7), ron_slice_of(body, size), f->ops, texts,
                                &f->command.key, &count, &index, &f->info));
    assert_int_equal(count, 1);
    assert_hex(f->ops[0].id.bytes, LEDGER_ID_SIZE, "41e777e5b03783358de069182bf80f11");
    f->command.ops_count = count;
    /* An id alone opens nothing. */
    fixture_refused(f, fixture_apply(f), RON_ERR_NOT_FOUND, 0);
    f->command.key = (struct ron_slice){NULL, 0};
    applies(f, "Mint id=m2 to=bob asset=roc amount=1", NULL);
    assert_ok(ledger_oap_decode(ron_u128_of(7), ron_slice_of(body, size), f->ops, texts,
                                &f->command.key, &count, &index, &f->info));
    f->command.ops_count = count;
    assert_ok(fixture_apply(f));
    balance_is(f, "bob", "roc", "6");
    for (size_t i = 0; i < RON_ARRAY_COUNT(breaks); i++) {
        (void)oap_body(body);
        body[breaks[i].at] = breaks[i].value;
        assert_int_equal(ledger_oap_decode(ron_u128_of(7), ron_slice_of(body, size), f->ops, texts,
                                           &f->command.key, &count, &index, &f->info),
                         RON_ERR_MALFORMED);
    }
    ron_store_le32(body + 4, RON_BATCH_ENTRIES_MAX + 1);
    body[0] = 2;
    assert_int_equal(ledger_oap_decode(ron_u128_of(7), ron_slice_of(body, size), f->ops, texts,
                                       &f->command.key, &count, &index, &f->info),
                     RON_ERR_TOO_LARGE);
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
    uint8_t texts[LEDGER_OAP_TEXT_SIZE];
    size_t size = oap_body(body);
    uint32_t count;
    uint32_t index;
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
    assert_ok(ledger_oap_decode(ron_u128_of(0), ron_slice_of(body, size), f->ops, texts,
                                &f->command.key, &count, &index, &f->info));
    f->command.ops_count = count;
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
    uint8_t texts[LEDGER_OAP_TEXT_SIZE];

    applies(f, "Mint id=m to=alice asset=roc amount=100", "Mint id=m2 to=bob asset=roc amount=1",
            NULL);
    for (unsigned step = 0; step < 3; step++) {
        struct ron_u128 tenant = ron_u128_of(step == 1 ? 8 : 7);
        uint8_t *at = body + 8;
        uint32_t count;
        uint32_t index;
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
        assert_ok(ledger_oap_decode(tenant, ron_slice_of(body, size), f->ops, texts,
                                    &f->command.key, &count, &index, &f->info));
        f->command.key = (struct ron_slice){NULL, 0};
        f->command.ops_count = count;
        if (step == 1)
            fixture_refused(f, fixture_apply(f), RON_ERR_NOT_FOUND, 0);
        else
            assert_ok(fixture_apply(f));
    }
    balance_is(f, "bob", "roc", "1");
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

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_cut_from_blake3),
        TEST(leaves_and_roots_are_golden),
        TEST(damaged_frames_are_refused),
        cmocka_unit_test(id_texts_have_one_form),
        TEST(frames_hold_binary_ids_as_bytes),
        cmocka_unit_test(exts_follow_their_rule),
        cmocka_unit_test(leaves_follow_their_rule),
        TEST(binary_bodies_become_ops),
        TEST(shapes_are_refused_by_member),
        TEST(accounts_are_opened_by_name),
        TEST(reversals_by_wire_id_stay_in_the_tenant),
    };
    return cmocka_run_group_tests_name("ledger_format", tests, NULL, NULL);
}
