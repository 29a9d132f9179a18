/*
 * test_ledger_forged.c - frames and snapshots whose checks all hold and that these rules never
 * made. Method: take a good one, change what a forger would, put roots and hashes right; replay and
 * load must refuse it and change nothing.
 *
 * covers: LED-F06
 */
#include "ledger_fixture.h"

#include "ledger/core_snapshot.h"

enum { ENTRIES_AT = LEDGER_FRAME_HEAD_SIZE, SNAPSHOT_MAX = 1 << 20 };

#define HOLD(id, hold, payee)                                 \
    "Hold id=" id " from=alice hold_id=" hold " payee=" payee \
    " expires_at=1970-01-01T00:01:00Z asset=roc amount=30"

static int setup(void **state)
{
    int failed = fixture_setup(state);

    applies(*state, "Mint id=m to=alice asset=roc amount=100", HOLD("h", "F", "shop"), NULL);
    return failed;
}

/* Make one entry a pending batch of the core and keep its frame, then take it back. */
static void make_frame(struct fixture *f, const char *line)
{
    f->hold_commits = true;
    applies(f, line, NULL);
    ledger_core_rebuild(f->core);
    f->hold_commits = false;
}

/* Put the root of a frame of one entry right; first is the tree before it. */
static void put_root_right(struct fixture *f, const struct ron_merkle_frontier *first)
{
    struct ron_merkle_frontier tree = *first;
    const size_t ext_size = ron_load_le16(f->frame + ENTRIES_AT + RON_ENTRY_SIZE);
    uint8_t leaf[RON_LEAF_SIZE_MAX];
    struct ron_sha256 hash;

    memcpy(leaf, f->frame + ENTRIES_AT, RON_ENTRY_SIZE);
    memcpy(leaf + RON_ENTRY_SIZE, f->frame + ENTRIES_AT + RON_ENTRY_SIZE + 2, ext_size);
    hash = ron_merkle_leaf(leaf, RON_ENTRY_SIZE + ext_size);
    ron_merkle_frontier_append(&tree, &hash, 1);
    hash = ron_merkle_frontier_root(&tree);
    memcpy(f->frame + 112, hash.bytes, RON_SHA256_SIZE);
}

static void assert_forged(struct fixture *f, const struct ron_merkle_frontier *first)
{
    struct ron_b3 before = ledger_core_digest(f->shadow);
    struct ron_b3 after;

    put_root_right(f, first);
    assert_int_equal(
        ledger_replay_frame(f->replay, ron_slice_of(f->frame, f->frame_size), &f->info),
        RON_ERR_WAL_CORRUPT);
    after = ledger_core_digest(f->shadow);
    assert_memory_equal(before.bytes, after.bytes, RON_B3_SIZE);
}

/* Replace the last name of the frame, of the same size, and the account's id in the entry. */
static void rename_account(struct fixture *f, const char *name, size_t field)
{
    struct ledger_id id = ledger_account_id("", S(name));

    memcpy(f->frame + f->frame_size - strlen(name), name, strlen(name));
    memcpy(f->frame + ENTRIES_AT + field, id.bytes, LEDGER_ID_SIZE);
}

static void forged_frames_are_refused(void **state)
{
    struct fixture *f = *state;
    struct ron_merkle_frontier first;
    uint8_t *entry = f->frame + ENTRIES_AT;
    struct ledger_id bob = ledger_account_id("", S("bob"));
    struct ledger_frame frame;

    applies(f, "Transfer id=t from=alice to=bob asset=roc amount=1", NULL);
    first = ledger_core_frontier(f->core);
    /* The way to forge is right: unchanged, the frame is good. It opens an account. */
    make_frame(f, "Transfer id=x from=alice to=abcdefghijkl asset=roc amount=1");
    memset(f->frame + 112, 0, RON_SHA256_SIZE);
    put_root_right(f, &first);
    assert_ok(ledger_frame_decode(ron_slice_of(f->frame, f->frame_size), &frame, &f->info));
    assert_memory_equal(frame.root.bytes, f->root.bytes, RON_SHA256_SIZE);
    rename_account(f, "sys/burn/eur", 32);
    assert_forged(f, &first); /* a credit of a system account */
    rename_account(f, "sys/mint/roc", 32);
    assert_forged(f, &first);
    rename_account(f, "abcdefghij.l", 32);
    assert_forged(f, &first); /* no name at all */
    make_frame(f, "Capture id=c hold_id=F asset=roc amount=5");
    memcpy(entry + 32, bob.bytes, LEDGER_ID_SIZE);
    assert_forged(f, &first); /* not to the payee */
    make_frame(f,
               "Hold id=g from=alice hold_id=Q payee=* expires_at=1970-01-01T00:01:00Z asset=roc "
               "amount=1");
    rename_account(f, "alicebob/1", 32);
    assert_forged(f, &first); /* held where it could be spent */
    rename_account(f, "sys/hold//", 32);
    assert_forged(f, &first); /* no hold_id */
    make_frame(f, "Transfer id=y from=alice to=bob asset=roc amount=1");
    entry[118] |= LEDGER_FLAG_SHA256;
    assert_forged(f, &first);
    /* A kind of a later version: replay cannot pass over it. covers: LED-F34 */
    make_frame(f, "Transfer id=y from=alice to=bob asset=roc amount=1");
    entry[116] = LEDGER_ASSET + 1;
    assert_forged(f, &first);
    make_frame(f, "Anchor id=z stream=mine digest=b3:"
                  "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
    entry[48] = 1;
    assert_forged(f, &first); /* an Anchor with an amount */
}

static enum ron_err keep(void *context, struct ron_slice bytes, struct ron_errinfo *reterr)
{
    return ron_buf_append(context, bytes.data, bytes.size, reterr);
}

static enum ron_err load(struct ron_buf *buf, struct ron_errinfo *info)
{
    struct ledger_capacity capacity = fixture_capacity();
    struct ron_b3 hash = ron_b3(buf->data, buf->size - RON_B3_SIZE);
    struct ledger_core *core;
    enum ron_err err;

    memcpy(buf->data + buf->size - RON_B3_SIZE, hash.bytes, RON_B3_SIZE);
    assert_ok(ledger_core_new(&capacity, NULL, &core, info));
    err = ledger_snapshot_load(core, ron_buf_slice(buf), info);
    (void)ledger_core_free(core);
    return err;
}

/* Where the bytes of a record lie, by what stands in it. */
static size_t find_bytes(const struct ron_buf *buf, const void *bytes, size_t size)
{
    const uint8_t *at = memmem(buf->data, buf->size, bytes, size);

    assert_non_null(at);
    return (size_t)(at - buf->data);
}

static void assert_refused(struct ron_buf *buf, size_t at, uint8_t value, const char *why)
{
    struct ron_errinfo info = {.err = RON_ERR_OK};
    uint8_t old = buf->data[at];

    buf->data[at] = value;
    support_assert_error(load(buf, &info), &info, RON_ERR_MALFORMED, why);
    buf->data[at] = old;
    assert_ok(load(buf, &info));
}

static void forged_snapshots_are_refused(void **state)
{
    struct fixture *f = *state;
    struct ledger_id reversed = ledger_entry_id(ron_u128_of(0), S("t"));
    struct ledger_entry entry;
    struct ron_buf buf;
    size_t account;
    size_t last;

    applies(f, "Transfer id=t from=alice to=bob asset=roc amount=9", NULL);
    applies(f, "Reverse id=r ref=t asset=roc amount=4", NULL);
    ron_buf_init(&buf, SNAPSHOT_MAX);
    assert_ok(ledger_snapshot_write(f->core, keep, &buf, &f->info));
    account = find_bytes(&buf, "\5alice", 6); /* next_nonce 8, frozen 1 before it */
    assert_refused(&buf, account - 9, 0, "a nonce");
    assert_refused(&buf, account - 2, 0xff, "a nonce");
    assert_refused(&buf, account - 1, 2, "a flag");
    assert_refused(&buf, find_bytes(&buf, "\14sys/mint/roc", 13) - 1, 1, "frozen system account");
    assert_refused(&buf, find_bytes(&buf, reversed.bytes, LEDGER_ID_SIZE) + 16, 10,
                   "more than there was");
    assert_refused(&buf, find_bytes(&buf, reversed.bytes, LEDGER_ID_SIZE) + 16, 0, "a reversal");
    assert_true(ledger_core_find_entry(f->core, &reversed, &entry));
    last = find_bytes(&buf, &entry, RON_ENTRY_SIZE);
    assert_refused(&buf, last + 116, 12, "an entry"); /* no such kind */
    assert_refused(&buf, last + 112, 9, "an entry");  /* no such asset */
    assert_refused(&buf, last + 104, 77, "an entry"); /* no such batch */
    assert_refused(&buf, buf.size - RON_B3_SIZE - 1, 1, "the last batch");
    ron_buf_fini(&buf);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(forged_frames_are_refused),
        TEST(forged_snapshots_are_refused),
    };
    return cmocka_run_group_tests_name("ledger_forged", tests, NULL, NULL);
}
