/*
 * test_state_rows.c - the rows of a state on disk, and proofs of balances by them. Method: drawn
 * rows in numbers around the blocks' edges against the recursion of RFC 6962; every byte of a file
 * turned; files that are sound but say nonsense; a signed log of one Anchor, and every part of a
 * proof changed.
 */
#include "support.h"

#include "base/secret.h"
#include "io/durable.h"
#include "io/note.h"
#include "io/snapshot_file.h"
#include "io/vfs_memory.h"
#include "ledger/core_entry.h"
#include "ledger/state_rows.h"
#include "merkle_oracle.h"

enum { ROWS_MAX = 1100, SEQ = 77 };
static const char dir[] = "state";
static uint8_t leaves[ROWS_MAX][LEDGER_ROW_SIZE];
static struct ron_sha256 hashes[ROWS_MAX];

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 17;
}

/* Ascending: few first bytes, so that many differ late, and accounts of several assets. */
static void draw_rows(size_t count)
{
    uint64_t random = count + 1;
    uint64_t account = 0;
    uint32_t asset = 0;

    for (size_t i = 0; i < count; i++) {
        memset(leaves[i], 0, LEDGER_ROW_SIZE);
        if (i == 0 || next_random(&random) % 3 == 0) {
            account += 1 + next_random(&random) % 5;
            asset = 0;
        }
        asset += 1 + (uint32_t)(next_random(&random) % 300);
        ron_store_be64(leaves[i] + 8, account);
        ron_store_le32(leaves[i] + 16, asset);
        ron_store_le64(leaves[i] + 20, next_random(&random));
        ron_store_le64(leaves[i] + 36, 1 + next_random(&random) % 9);
        hashes[i] = ron_merkle_leaf(leaves[i], LEDGER_ROW_SIZE);
    }
}

struct file {
    uint64_t batch, seq;
    const void *bytes;
    size_t size;
    struct ron_sha256 root;
    uint32_t version;
};

static void write_file(struct io_vfs *vfs, const struct file *file) RON_BLOCKS
{
    const struct io_snapshot_cut cut = {LEDGER_ROWS_KIND, file->version, file->batch, file->batch};
    struct io_snapshot_writer *writer = NULL;
    struct io_snapshot_info info;
    uint8_t tail[LEDGER_ROWS_TAIL];

    ron_store_le64(tail, file->seq);
    memcpy(tail + 8, file->root.bytes, RON_SHA256_SIZE);
    assert_ok(io_durable_dir(vfs, dir, NULL));
    assert_ok(io_snapshot_begin(vfs, dir, &cut, &writer, NULL));
    assert_ok(io_snapshot_put(writer, ron_slice_of(file->bytes, file->size), NULL));
    assert_ok(io_snapshot_put(writer, ron_slice_of(tail, sizeof(tail)), NULL));
    assert_ok(io_snapshot_commit(writer, &info, NULL));
}

static struct file file_of(size_t count, uint64_t batch)
{
    draw_rows(count);
    return (struct file){batch,
                         SEQ,
                         leaves,
                         count * LEDGER_ROW_SIZE,
                         oracle_root(hashes, count),
                         LEDGER_ROWS_VERSION};
}

static struct io_vfs *memory(void)
{
    struct io_vfs *vfs = NULL;

    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    return vfs;
}

static void check_row(struct ledger_rows *rows, size_t index, size_t count) RON_BLOCKS
{
    struct oracle_path path = {.count = 0};
    struct ledger_row_proof proof;
    struct ledger_id account;
    uint64_t before = 0;
    bool found = false;

    memcpy(account.bytes, leaves[index], LEDGER_ID_SIZE);
    assert_ok(
        ledger_rows_find(rows, &account, ron_load_le32(leaves[index] + 16), &before, &found, NULL));
    assert_true(found);
    assert_int_equal(before, index);
    /* One asset further there is nothing, unless the next row has it. */
    if (index + 1 == count || memcmp(leaves[index], leaves[index + 1], LEDGER_ID_SIZE) != 0 ||
        ron_load_le32(leaves[index + 1] + 16) != ron_load_le32(leaves[index] + 16) + 1) {
        assert_ok(ledger_rows_find(rows, &account, ron_load_le32(leaves[index] + 16) + 1, &before,
                                   &found, NULL));
        assert_false(found);
        assert_int_equal(before, index + 1);
    }
    assert_ok(ledger_rows_prove(rows, index, &proof, NULL));
    assert_int_equal(proof.index, index);
    assert_memory_equal(proof.leaf, leaves[index], LEDGER_ROW_SIZE);
    oracle_inclusion(hashes, index, count, &path);
    assert_int_equal(proof.hashes_count, path.count);
    assert_memory_equal(proof.hashes, path.hashes, path.count * sizeof(path.hashes[0]));
}

static void rows_are_found_and_proven(void **state) RON_BLOCKS
{
    static const size_t counts[] = {0, 1, 2, 3, 7, 255, 256, 257, 300, 511, 512, 513, 768, 1025};

    (void)state;
    for (size_t n = 0; n < RON_ARRAY_COUNT(counts); n++) {
        const size_t count = counts[n];
        const struct ledger_id least = {{0}};
        struct io_vfs *vfs = memory();
        struct ledger_rows *rows = NULL;
        struct ledger_id most;
        struct file file = file_of(count, 9);
        uint64_t before = 1;
        bool found = true;

        write_file(vfs, &file);
        assert_int_equal(ledger_rows_open(vfs, dir, 8, &rows, NULL), RON_ERR_NOT_FOUND);
        assert_ok(ledger_rows_open(vfs, dir, 9, &rows, NULL));
        assert_int_equal(ledger_rows_info(rows)->seq, SEQ);
        assert_int_equal(ledger_rows_info(rows)->batch, 9);
        assert_int_equal(ledger_rows_info(rows)->tree.size, count);
        for (size_t i = 0; i < count; i++)
            check_row(rows, i, count);
        assert_ok(ledger_rows_find(rows, &least, 0, &before, &found, NULL));
        assert_int_equal(before, 0);
        assert_false(found);
        memset(most.bytes, 0xff, sizeof(most.bytes));
        assert_ok(ledger_rows_find(rows, &most, 1, &before, &found, NULL));
        assert_int_equal(before, count);
        assert_false(found);
        rows = ledger_rows_close(rows);
        (void)io_vfs_free(vfs);
    }
}

/* The older one is taken instead; with none there is none. */
static void assert_passed_over(const struct file *bad) RON_BLOCKS
{
    struct io_vfs *vfs = memory();
    struct ledger_rows *rows = NULL;

    write_file(vfs, bad);
    assert_int_not_equal(ledger_rows_open(vfs, dir, 20, &rows, NULL), RON_ERR_OK);
    assert_null(rows);
    write_file(vfs, &(struct file){3, 5, leaves, 0, oracle_root(NULL, 0), LEDGER_ROWS_VERSION});
    assert_ok(ledger_rows_open(vfs, dir, 20, &rows, NULL));
    assert_int_equal(ledger_rows_info(rows)->seq, 5);
    rows = ledger_rows_close(rows);
    (void)io_vfs_free(vfs);
}

static void nonsense_is_not_believed(void **state) RON_BLOCKS
{
    struct file file = file_of(300, 9);

    (void)state;
    file.root.bytes[31] ^= 1;
    assert_passed_over(&file);
    file = file_of(300, 9);
    file.size -= LEDGER_ROW_SIZE;
    assert_passed_over(&file);
    file = file_of(300, 9);
    file.size -= 1;
    assert_passed_over(&file);
    file = file_of(300, 9);
    file.version = LEDGER_ROWS_VERSION + 1;
    assert_passed_over(&file);
    /* Two rows exchanged, one twice: with the root that fits. */
    for (size_t at = 100; at <= 255; at += 155) {
        uint8_t row[LEDGER_ROW_SIZE];
        struct ron_sha256 hash;

        file = file_of(300, 9);
        memcpy(row, leaves[at], sizeof(row));
        memcpy(leaves[at], leaves[at + 1], sizeof(row));
        memcpy(leaves[at + 1], row, sizeof(row));
        hash = hashes[at];
        hashes[at] = hashes[at + 1];
        hashes[at + 1] = hash;
        file.root = oracle_root(hashes, 300);
        assert_passed_over(&file);
        memcpy(leaves[at], leaves[at + 1], sizeof(row));
        hashes[at] = hashes[at + 1];
        file.root = oracle_root(hashes, 300);
        assert_passed_over(&file);
    }
}

static void no_turned_byte_is_believed(void **state) RON_BLOCKS
{
    const struct file file = file_of(3, 9);
    const size_t size = 4096 + 3 * LEDGER_ROW_SIZE + LEDGER_ROWS_TAIL;
    struct io_vfs *vfs = memory();
    struct io_file *opened = NULL;

    (void)state;
    write_file(vfs, &file);
    assert_ok(io_vfs_open(vfs, "state/snap-0000000000000009", IO_OPEN_WRITE, &opened, NULL));
    for (size_t at = 0; at < size; at += at < 100 || at > 4080 ? 1 : 97) {
        struct ledger_rows *rows = NULL;
        uint8_t byte;
        size_t read = 0;

        assert_ok(io_file_read(opened, at, &byte, 1, &read, NULL));
        assert_int_equal(read, 1);
        byte ^= 0x10;
        assert_ok(io_file_write(opened, at, &(struct ron_slice){&byte, 1}, 1, NULL));
        assert_int_not_equal(ledger_rows_open(vfs, dir, 9, &rows, NULL), RON_ERR_OK);
        byte ^= 0x10;
        assert_ok(io_file_write(opened, at, &(struct ron_slice){&byte, 1}, 1, NULL));
    }
    (void)io_file_close(opened);
    (void)io_vfs_free(vfs);
}

static enum ron_err open_and_close(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_rows *rows = NULL;
    enum ron_err err = ledger_rows_open(context, dir, 9, &rows, reterr);

    rows = ledger_rows_close(rows);
    return err;
}

static void no_memory_is_an_answer(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = memory();
    const struct file file = file_of(300, 9);
    struct ron_errinfo info;
    unsigned count;

    (void)state;
    write_file(vfs, &file);
    assert_ok(open_and_close(vfs, &info));
    count = support_fail_each_allocation(open_and_close, vfs, 40);
    assert_true(count >= 3);
    (void)io_vfs_free(vfs);
}

/* ---- Proofs of balances ---- */

/* A log of three leaves; the last is the Anchor of a state. */
struct proven {
    struct ron_secret seed;
    struct ron_vkey key;
    struct ron_trust trust;
    struct ron_buf vkey, note, text, head;
    uint8_t anchor[256];
    struct ron_balance_proof proof;
    struct oracle_path paths[2];
    uint8_t account[RON_ACCOUNT_ID_SIZE];
    uint32_t asset;
};

static void put_anchor(struct proven *p, const char *ref, const struct ron_sha256 *root)
{
    struct ledger_entry entry = {.seq = 3, .kind = LEDGER_ANCHOR};
    struct ledger_ext ext = {.stream = RON_SLICE("state"), .ref = ron_slice_text(ref)};

    entry.flags = LEDGER_FLAG_EXT | LEDGER_FLAG_SHA256 | LEDGER_FLAG_BY_LEDGER;
    memcpy(entry.debit.bytes, root->bytes, LEDGER_ID_SIZE);
    memcpy(entry.credit.bytes, root->bytes + LEDGER_ID_SIZE, LEDGER_ID_SIZE);
    memcpy(p->anchor, &entry, sizeof(entry));
    ledger_ext_encode(&ext, p->anchor + sizeof(entry));
    p->proof.anchor = ron_slice_of(p->anchor, sizeof(entry) + ledger_ext_size(&ext));
}

/* Sign a log of three whose third is the Anchor. */
static void sign(struct proven *p)
{
    const struct io_signer signer = {RON_SLICE("example.com/log"), &p->seed};
    struct ron_sha256 log[3] = {{{1}}, {{2}}, {{0}}};
    struct oracle_path path = {.count = 0};
    struct ron_checkpoint checkpoint = {.origin = signer.name};

    log[2] = ron_merkle_leaf(p->proof.anchor.data, p->proof.anchor.size);
    oracle_inclusion(log, 2, 3, &path);
    checkpoint.tree = (struct ron_tree){3, oracle_root(log, 3)};
    ron_buf_reset(&p->head);
    ron_buf_reset(&p->note);
    ron_buf_reset(&p->text);
    io_checkpoint_put(&p->head, &checkpoint);
    io_note_put(&p->note, ron_buf_slice(&p->head), &signer);
    io_proof_put(&p->text, &(struct io_proof_text){.index = 2,
                                                   .hashes = path.hashes,
                                                   .hashes_count = path.count,
                                                   .note = ron_buf_slice(&p->note)});
    p->proof.proof = ron_buf_slice(&p->text);
}

static void give_row(struct proven *p, size_t index, size_t count)
{
    const size_t at = p->proof.rows_count++;

    p->paths[at].count = 0;
    oracle_inclusion(hashes, index, count, &p->paths[at]);
    p->proof.rows[at] = (struct ron_row_proof){.index = index,
                                               .leaf = {leaves[index], LEDGER_ROW_SIZE},
                                               .hashes = p->paths[at].hashes,
                                               .hashes_count = p->paths[at].count};
}

static void ask_for(struct proven *p, size_t index, uint32_t further)
{
    memcpy(p->account, leaves[index], RON_ACCOUNT_ID_SIZE);
    p->asset = ron_load_le32(leaves[index] + 16) + further;
}

static struct proven *proven_new(size_t count)
{
    struct proven *p = ron_mem_alloc(sizeof(*p));
    const struct io_signer signer = {RON_SLICE("example.com/log"), &p->seed};
    uint8_t seed[32] = {9};
    struct ron_sha256 root;

    assert_non_null(p);
    draw_rows(count);
    root = oracle_root(hashes, count);
    assert_ok(ron_secret_init(&p->seed, ron_slice_of(seed, sizeof(seed)), NULL));
    ron_buf_init(&p->vkey, RON_VKEY_SIZE_MAX);
    ron_buf_init(&p->head, 4096);
    ron_buf_init(&p->note, 4096);
    ron_buf_init(&p->text, 8192);
    io_vkey_put(&p->vkey, &signer, RON_KEY_ED25519);
    assert_ok(ron_vkey_parse(ron_buf_slice(&p->vkey), &p->key, NULL));
    p->trust = (struct ron_trust){.log = &p->key};
    p->proof.state_size = count;
    put_anchor(p, "2", &root);
    sign(p);
    return p;
}

static void proven_free(struct proven *p)
{
    ron_secret_fini(&p->seed);
    ron_buf_fini(&p->vkey);
    ron_buf_fini(&p->head);
    ron_buf_fini(&p->note);
    ron_buf_fini(&p->text);
    (void)ron_mem_free(p);
}

static enum ron_err verify(const struct proven *p, struct ron_balance *ret_balance)
{
    struct ron_checkpoint checkpoint;

    return ron_verify_balance(&p->proof, p->account, p->asset, &p->trust, ret_balance, &checkpoint,
                              NULL);
}

static void a_balance_is_proven(void **state)
{
    struct proven *p = proven_new(20);
    struct ron_balance balance;

    (void)state;
    for (size_t i = 0; i < 20; i++) {
        p->proof.rows_count = 0;
        give_row(p, i, 20);
        ask_for(p, i, 0);
        assert_ok(verify(p, &balance));
        assert_true(balance.present);
        assert_int_equal(balance.balance_low, ron_load_le64(leaves[i] + 20));
        assert_int_equal(balance.balance_high, 0);
        assert_int_equal(balance.next_nonce, ron_load_le64(leaves[i] + 36));
        assert_int_equal(balance.as_of_seq, 2);
        assert_int_equal(balance.anchor_seq, 3);
    }
    proven_free(p);
}

static void an_absence_is_proven_by_its_neighbours(void **state)
{
    struct proven *p = proven_new(20);
    struct ron_balance balance = {.present = true};

    (void)state;
    for (size_t i = 0; i + 1 < 20; i++) {
        p->proof.rows_count = 0;
        give_row(p, i, 20);
        give_row(p, i + 1, 20);
        ask_for(p, i, 1);
        if (memcmp(leaves[i], leaves[i + 1], 16) == 0 &&
            ron_load_le32(leaves[i + 1] + 16) == p->asset)
            continue;
        assert_ok(verify(p, &balance));
        assert_false(balance.present);
        p->proof.rows_count = 1; /* one side alone says nothing within */
        assert_int_equal(verify(p, &balance) == RON_ERR_OK, false);
        if (i + 2 < 20) { /* nor do two that are not neighbours */
            give_row(p, i + 2, 20);
            assert_int_equal(verify(p, &balance), RON_ERR_CHAIN_MISMATCH);
        }
        ask_for(p, i, 0); /* nor do neighbours about one of themselves */
        p->proof.rows_count = 1;
        give_row(p, i + 1, 20);
        assert_int_equal(verify(p, &balance), RON_ERR_CHAIN_MISMATCH);
    }
    p->proof.rows_count = 0;
    give_row(p, 19, 20);
    ask_for(p, 19, 1);
    assert_ok(verify(p, &balance)); /* behind the last */
    assert_false(balance.present);
    p->proof.rows_count = 0;
    give_row(p, 0, 20);
    assert_int_equal(verify(p, &balance), RON_ERR_CHAIN_MISMATCH);
    memset(p->account, 0, sizeof(p->account));
    p->asset = 0;
    assert_ok(verify(p, &balance)); /* before the first */
    assert_false(balance.present);
    p->proof.rows_count = 0;
    assert_int_equal(verify(p, &balance), RON_ERR_CHAIN_MISMATCH);
    p->proof.state_size = 0; /* it is not empty, whatever is said */
    assert_int_equal(verify(p, &balance), RON_ERR_CHAIN_MISMATCH);
    proven_free(p);
    p = proven_new(0);
    assert_ok(verify(p, &balance));
    assert_false(balance.present);
    proven_free(p);
}

/* Neighbours are so by their paths: no other number of rows makes others neighbours. */
static void a_false_count_of_rows_proves_nothing(void **state)
{
    struct proven *p = proven_new(20);
    struct ron_balance balance;

    (void)state;
    for (uint64_t size = 1; size < 64; size++) {
        for (size_t i = 0; i < 20; i++) {
            for (size_t j = 0; j < 20; j++) {
                p->proof.state_size = size;
                p->proof.rows_count = 0;
                give_row(p, i, 20);
                give_row(p, j, 20);
                for (uint64_t at = 0; at + 1 < size; at++) {
                    p->proof.rows[0].index = at;
                    p->proof.rows[1].index = at + 1;
                    ask_for(p, i, 1);
                    if (verify(p, &balance) == RON_ERR_OK)
                        assert_int_equal(j, i + 1);
                }
            }
        }
    }
    proven_free(p);
}

static void what_is_changed_is_not_proven(void **state)
{
    struct proven *p = proven_new(20);
    struct ron_sha256 root = oracle_root(hashes, 20);
    struct ron_balance balance;
    struct ron_vkey stranger;

    (void)state;
    give_row(p, 5, 20);
    ask_for(p, 5, 0);
    assert_ok(verify(p, &balance));
    for (size_t at = 0; at < LEDGER_ROW_SIZE; at++) {
        leaves[5][at] ^= 4;
        assert_int_not_equal(verify(p, &balance), RON_ERR_OK);
        leaves[5][at] ^= 4;
    }
    for (size_t at = 0; at < p->proof.anchor.size; at++) {
        p->anchor[at] ^= 4;
        assert_int_not_equal(verify(p, &balance), RON_ERR_OK);
        p->anchor[at] ^= 4;
    }
    for (size_t at = 0; at < p->text.size; at++) {
        p->text.data[at] ^= 4;
        assert_int_not_equal(verify(p, &balance), RON_ERR_OK);
        p->text.data[at] ^= 4;
    }
    p->account[3] ^= 1;
    assert_int_equal(verify(p, &balance), RON_ERR_CHAIN_MISMATCH);
    p->account[3] ^= 1;
    p->proof.rows[0].leaf.size--;
    assert_int_equal(verify(p, &balance), RON_ERR_MALFORMED);
    p->proof.rows[0].leaf.size++;
    stranger = p->key;
    stranger.public_key[0] ^= 1;
    p->trust.log = &stranger;
    assert_int_not_equal(verify(p, &balance), RON_ERR_OK);
    p->trust.log = &p->key;
    /* Sound entries that are no Anchors of a state before them. */
    put_anchor(p, "3", &root);
    sign(p);
    assert_int_equal(verify(p, &balance), RON_ERR_MALFORMED);
    put_anchor(p, "", &root);
    sign(p);
    assert_int_equal(verify(p, &balance), RON_ERR_MALFORMED);
    put_anchor(p, "2", &root);
    p->anchor[128 + 3] = 'S'; /* stream "State" */
    sign(p);
    assert_int_equal(verify(p, &balance), RON_ERR_MALFORMED);
    put_anchor(p, "2", &root);
    p->anchor[116] = LEDGER_TRANSFER;
    sign(p);
    assert_int_equal(verify(p, &balance), RON_ERR_MALFORMED);
    put_anchor(p, "2", &root);
    p->anchor[118] &= (uint8_t)~LEDGER_FLAG_SHA256; /* a digest of another kind */
    sign(p);
    assert_int_equal(verify(p, &balance), RON_ERR_MALFORMED);
    put_anchor(p, "2", &root);
    p->anchor[118] &= (uint8_t)~LEDGER_FLAG_BY_LEDGER; /* a client's */
    sign(p);
    assert_int_equal(verify(p, &balance), RON_ERR_MALFORMED);
    put_anchor(p, "1", &root);
    p->anchor[80] = 2; /* it says that it is the second */
    sign(p);
    assert_int_equal(verify(p, &balance), RON_ERR_CHAIN_MISMATCH);
    proven_free(p);
}

static void the_id_of_an_account_is_the_ledgers(void **state)
{
    const struct ledger_id id = ledger_account_id("", RON_SLICE("alice"));
    uint8_t bytes[RON_ACCOUNT_ID_SIZE];

    (void)state;
    ron_account_id(RON_SLICE("alice"), bytes);
    assert_memory_equal(bytes, id.bytes, sizeof(bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_found_and_proven),
        cmocka_unit_test(nonsense_is_not_believed),
        cmocka_unit_test(no_turned_byte_is_believed),
        cmocka_unit_test(no_memory_is_an_answer),
        cmocka_unit_test(a_balance_is_proven),
        cmocka_unit_test(an_absence_is_proven_by_its_neighbours),
        cmocka_unit_test(a_false_count_of_rows_proves_nothing),
        cmocka_unit_test(what_is_changed_is_not_proven),
        cmocka_unit_test(the_id_of_an_account_is_the_ledgers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
