/*
 * test_embed.c - a ledger inside a program, by ron/ledger.h alone: written, read, proven, opened
 * again, refused; from many threads at once.
 */
#include "support.h"

#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ron/ledger.h"

enum { WAIT_MS = 30000, THREADS = 8, PAYMENTS = 40 };

static struct ron_slice text(const char *bytes)
{
    return (struct ron_slice){(const uint8_t *)bytes, strlen(bytes)};
}

static struct ron_ledger *open_at(const char *path, const struct ron_ledger_options *options)
{
    struct ron_ledger *ledger = NULL;
    struct ron_errinfo info = {0};

    if (ron_ledger_open(path, options, WAIT_MS, &ledger, &info) != RON_ERR_OK)
        fail_msg("open: %s", info.message);
    return ledger;
}

static struct ron_ledger_entry mint(const char *id, const char *to, const char *amount)
{
    return (struct ron_ledger_entry){
        .id = id, .kind = "Mint", .to = to, .asset = "roc", .amount = amount};
}

static struct ron_ledger_entry pay(const char *id, const char *amount, uint64_t nonce)
{
    return (struct ron_ledger_entry){.id = id,
                                     .kind = "Transfer",
                                     .from = "alice",
                                     .to = "bob",
                                     .asset = "roc",
                                     .amount = amount,
                                     .nonce = nonce};
}

static void write_one(struct ron_ledger *ledger, struct ron_ledger_entry entry, const char *key,
                      struct ron_ledger_written *ret_written)
{
    struct ron_errinfo info = {0};

    if (ron_ledger_write(ledger, &entry, 1, key, WAIT_MS, ret_written, NULL, &info) != RON_ERR_OK)
        fail_msg("write: %s", info.message);
}

static void assert_balance(struct ron_ledger *ledger, const char *account, const char *asset,
                           const char *amount)
{
    struct ron_ledger_balance balance;

    assert_ok(ron_ledger_balance(ledger, account, asset, WAIT_MS, &balance, NULL));
    assert_string_equal(balance.amount, amount);
    assert_false(balance.debt);
}

/* Every proof leads to a head that the key signed, and from the leaf that is there. */
static void assert_proven(struct ron_ledger *ledger, uint64_t seq)
{
    struct ron_checkpoint checkpoint;
    struct ron_sha256 hash;
    struct ron_vkey key;
    const struct ron_trust trust = {.log = &key};
    uint8_t leaf[4096];
    char proof[8192];
    uint64_t index = 0;
    size_t size = 0;

    assert_ok(ron_ledger_leaf(ledger, seq, WAIT_MS, leaf, sizeof(leaf), &size, NULL));
    assert_ok(ron_ledger_proof(ledger, seq, WAIT_MS, proof, sizeof(proof), NULL));
    assert_ok(ron_vkey_parse(text(ron_ledger_vkey(ledger)), &key, NULL));
    hash = ron_verify_leaf_hash(leaf, size);
    assert_ok(ron_verify_proof(text(proof), &hash, &trust, &index, &checkpoint, NULL));
    assert_int_equal(index, seq - 1);
    leaf[0] ^= 1;
    hash = ron_verify_leaf_hash(leaf, size);
    assert_int_equal(ron_verify_proof(text(proof), &hash, &trust, &index, &checkpoint, NULL),
                     RON_ERR_CHAIN_MISMATCH);
}

static void a_ledger_in_memory(void **state)
{
    struct ron_ledger *ledger = open_at(NULL, NULL);
    struct ron_ledger_written first, again;
    struct ron_ledger_balance balance;
    char note[RON_CHECKPOINT_SIZE_MAX];
    struct ron_tree head;

    (void)state;
    assert_int_equal(ron_ledger_head(ledger).size, 0);
    write_one(ledger, mint("m1", "alice", "100"), NULL, &first);
    assert_int_equal(first.seq_start, 1);
    assert_int_equal(first.seq_end, 1);
    assert_true(first.committed_ms > 0);
    write_one(ledger, pay("t1", "30", 1), "pay", &first);
    write_one(ledger, pay("t1", "30", 1), "pay", &again);
    assert_false(first.repeated);
    assert_true(again.repeated);
    assert_int_equal(again.seq_end, first.seq_end);
    assert_memory_equal(again.root.bytes, first.root.bytes, RON_SHA256_SIZE);
    assert_balance(ledger, "alice", "roc", "70");
    assert_balance(ledger, "bob", "roc", "30");
    assert_balance(ledger, "nobody", "roc", "0");
    assert_ok(ron_ledger_balance(ledger, "alice", "roc", WAIT_MS, &balance, NULL));
    assert_int_equal(balance.next_nonce, 2);
    head = ron_ledger_head(ledger);
    assert_int_equal(head.size, 2);
    assert_memory_equal(head.root.bytes, first.root.bytes, RON_SHA256_SIZE);
    assert_ok(ron_ledger_checkpoint(ledger, 2, WAIT_MS, note, sizeof(note), NULL));
    assert_non_null(strstr(note, "ron.local/ledger\n2\n"));
    assert_proven(ledger, 1);
    assert_proven(ledger, 2);
    assert_ok(ron_ledger_close(ledger, NULL));
    assert_ok(ron_ledger_close(NULL, NULL));
}

/* The same key and fingerprint whichever way the body came. */
static void json_and_structs_agree(void **state)
{
    static const char body[] =
        "{\"idem_id\":\"pay\", \"batch\":[{\"kind\":\"Transfer\",\"id\":\"t1\",\"from\":\"alice\","
        "\"to\":\"bob\",\"amount\":\"30\",\"asset\":\"roc\",\"nonce\":1}]}";
    struct ron_ledger *ledger = open_at(NULL, NULL);
    struct ron_ledger_written first, again;
    struct ron_ledger_refusal refusal;
    struct ron_errinfo info = {0};

    (void)state;
    write_one(ledger, mint("m1", "alice", "100"), NULL, &first);
    write_one(ledger, pay("t1", "30", 1), "pay", &first);
    assert_ok(ron_ledger_write_json(ledger, text(body), NULL, WAIT_MS, &again, NULL, NULL));
    assert_true(again.repeated);
    assert_int_equal(again.seq_end, first.seq_end);
    assert_int_equal(
        ron_ledger_write_json(ledger, text(body), "other", WAIT_MS, &again, &refusal, &info),
        RON_ERR_MALFORMED);
    assert_int_equal(refusal.index, RON_LEDGER_NO_INDEX);
    assert_int_equal(
        ron_ledger_write_json(ledger, text("{}"), NULL, WAIT_MS, &again, &refusal, &info),
        RON_ERR_MALFORMED);
    assert_ok(ron_ledger_close(ledger, NULL));
}

static void refusals_change_nothing(void **state)
{
    struct ron_ledger *ledger = open_at(NULL, NULL);
    struct ron_ledger_refusal refusal = {.index = 7};
    struct ron_ledger_written written = {.batch = 77};
    struct ron_ledger_balance balance;
    struct ron_errinfo info = {0};
    char small[8];
    struct ron_ledger_entry batch[2];

    (void)state;
    write_one(ledger, mint("m1", "alice", "100"), NULL, &(struct ron_ledger_written){0});
    batch[0] = pay("t1", "30", 0);
    batch[1] = pay("t2", "71", 0);
    assert_int_equal(ron_ledger_write(ledger, batch, 2, NULL, WAIT_MS, &written, &refusal, &info),
                     RON_ERR_INSUFFICIENT_FUNDS);
    assert_int_equal(refusal.index, 1);
    assert_string_equal(refusal.available, "70");
    assert_false(refusal.unknown);
    assert_int_equal(written.batch, 77);
    assert_balance(ledger, "bob", "roc", "0");
    batch[0] = pay("t1", "30", 5);
    assert_int_equal(ron_ledger_write(ledger, batch, 1, NULL, WAIT_MS, &written, &refusal, &info),
                     RON_ERR_NONCE_CONFLICT);
    assert_int_equal(refusal.expected_nonce, 1);
    batch[0] = pay("t1", "x", 0);
    assert_int_equal(ron_ledger_write(ledger, batch, 1, NULL, WAIT_MS, &written, &refusal, &info),
                     RON_ERR_MALFORMED);
    assert_int_equal(refusal.index, 0);
    assert_int_equal(ron_ledger_write(ledger, batch, 1, "a b", WAIT_MS, &written, &refusal, &info),
                     RON_ERR_MALFORMED);
    batch[0] = pay("t1", "1", 0);
    assert_int_equal(ron_ledger_write(ledger, batch, 1, NULL, 0, &written, &refusal, &info),
                     RON_ERR_TIMEOUT);
    assert_int_equal(ron_ledger_balance(ledger, "a b", "roc", WAIT_MS, &balance, &info),
                     RON_ERR_MALFORMED);
    assert_int_equal(ron_ledger_balance(ledger, "alice", "gold", WAIT_MS, &balance, &info),
                     RON_ERR_NOT_FOUND);
    assert_int_equal(ron_ledger_proof(ledger, 9, WAIT_MS, small, sizeof(small), &info),
                     RON_ERR_NOT_FOUND);
    assert_int_equal(ron_ledger_proof(ledger, 1, WAIT_MS, small, sizeof(small), &info),
                     RON_ERR_TOO_LARGE);
    assert_int_equal(ron_ledger_checkpoint(ledger, 1, WAIT_MS, small, sizeof(small), &info),
                     RON_ERR_TOO_LARGE);
    assert_int_equal(ron_ledger_checkpoint(ledger, 99, 1, small, sizeof(small), &info),
                     RON_ERR_TIMEOUT);
    assert_ok(ron_ledger_close(ledger, NULL));
    assert_int_equal(ron_ledger_open(NULL, &(struct ron_ledger_options){.calls_max = 65}, WAIT_MS,
                                     &ledger, &info),
                     RON_ERR_MALFORMED);
}

static void assets_are_found_by_name(void **state)
{
    struct ron_ledger *ledger = open_at(NULL, NULL);
    struct ron_ledger_entry entry = mint("u1", "alice", "5");
    struct ron_ledger_written written;
    char name[24];

    (void)state;
    for (int i = 0; i < 63; i++) { /* the core has room for 64 */
        (void)snprintf(name, sizeof(name), "coin-%d", i);
        assert_ok(ron_ledger_add_asset(ledger, name, 2, "1000", WAIT_MS, NULL));
    }
    assert_ok(ron_ledger_add_asset(ledger, "coin-7", 2, "1000", WAIT_MS, NULL));
    assert_int_equal(ron_ledger_add_asset(ledger, "coin-7", 3, "1000", WAIT_MS, NULL),
                     RON_ERR_CONFLICT);
    assert_int_equal(ron_ledger_add_asset(ledger, "x", 3, "-1", WAIT_MS, NULL), RON_ERR_MALFORMED);
    entry.asset = "coin-62";
    write_one(ledger, entry, NULL, &written);
    assert_balance(ledger, "alice", "coin-62", "5");
    assert_balance(ledger, "alice", "coin-61", "0");
    assert_ok(ron_ledger_close(ledger, NULL));
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

/* A directory: what was written is there, under the same key; one process at a time. */
static void a_directory_is_opened_again(void **state)
{
    const struct ron_ledger_options options = {.origin = "example.org/mine", .tenant = 7};
    char dir[] = "/tmp/ron-embed-XXXXXX";
    struct ron_ledger_written written, again;
    struct ron_ledger *ledger, *other = NULL;
    struct ron_errinfo info = {0};
    char vkey[RON_VKEY_SIZE_MAX + 1];
    struct ron_tree head;

    (void)state;
    assert_non_null(mkdtemp(dir));
    ledger = open_at(dir, &options);
    write_one(ledger, mint("m1", "alice", "100"), "k", &written);
    head = ron_ledger_head(ledger);
    (void)snprintf(vkey, sizeof(vkey), "%s", ron_ledger_vkey(ledger));
    assert_int_equal(ron_ledger_open(dir, &options, WAIT_MS, &other, &info), RON_ERR_CONFLICT);
    assert_null(other);
    assert_ok(ron_ledger_close(ledger, NULL));
    assert_int_equal(ron_ledger_open(dir, NULL, WAIT_MS, &other, &info), RON_ERR_CONFLICT);
    ledger = open_at(dir, &options);
    assert_string_equal(ron_ledger_vkey(ledger), vkey);
    assert_int_equal(ron_ledger_head(ledger).size, head.size);
    assert_memory_equal(ron_ledger_head(ledger).root.bytes, head.root.bytes, RON_SHA256_SIZE);
    assert_balance(ledger, "alice", "roc", "100");
    write_one(ledger, mint("m1", "alice", "100"), "k", &again);
    assert_true(again.repeated);
    assert_proven(ledger, 1);
    assert_ok(ron_ledger_close(ledger, NULL));
    assert_int_equal(nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

struct payer {
    struct ron_ledger *ledger;
    int number;
    int refused;
};

/* Each pays under its own keys, every payment twice. */
static void *pay_often(void *argument)
{
    struct payer *payer = argument;
    struct ron_ledger_written written;
    struct ron_ledger_balance balance;
    char id[32];

    for (int i = 0; i < 2 * PAYMENTS; i++) {
        struct ron_ledger_entry entry;

        (void)snprintf(id, sizeof(id), "p%d-%d", payer->number, i / 2);
        entry = pay(id, "1", 0);
        if (ron_ledger_write(payer->ledger, &entry, 1, id, WAIT_MS, &written, NULL, NULL) !=
                RON_ERR_OK ||
            written.repeated != (i % 2 == 1) ||
            ron_ledger_balance(payer->ledger, "bob", "roc", WAIT_MS, &balance, NULL) != RON_ERR_OK)
            payer->refused++;
    }
    return NULL;
}

static void many_threads_pay_once_each(void **state)
{
    struct ron_ledger *ledger = open_at(NULL, &(struct ron_ledger_options){.calls_max = 3});
    struct payer payers[THREADS];
    pthread_t threads[THREADS];
    char expected[16];

    (void)state;
    write_one(ledger, mint("m1", "alice", "100000"), NULL, &(struct ron_ledger_written){0});
    for (int i = 0; i < THREADS; i++) {
        payers[i] = (struct payer){.ledger = ledger, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, pay_often, &payers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(payers[i].refused, 0);
    }
    (void)snprintf(expected, sizeof(expected), "%d", THREADS * PAYMENTS);
    assert_balance(ledger, "bob", "roc", expected);
    assert_int_equal(ron_ledger_head(ledger).size, 1 + THREADS * PAYMENTS);
    assert_ok(ron_ledger_close(ledger, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ledger_in_memory),          cmocka_unit_test(json_and_structs_agree),
        cmocka_unit_test(refusals_change_nothing),     cmocka_unit_test(assets_are_found_by_name),
        cmocka_unit_test(a_directory_is_opened_again), cmocka_unit_test(many_threads_pay_once_each),
    };

    return cmocka_run_group_tests_name("embed", tests, NULL, NULL);
}
