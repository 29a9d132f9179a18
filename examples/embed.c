/*
 * embed.c - a ledger inside this program: mint, pay, ask, prove, with include/ron alone.
 *
 * usage: embed [DIRECTORY] - in memory without one. Run again, the keys make it happen once.
 */
#include <stdio.h>
#include <string.h>

#include "ron/ledger.h"

enum { WAIT_MS = 10000 };

static int failed(const struct ron_errinfo *info)
{
    fprintf(stderr, "%s: %s\n", ron_err_name(info->err), info->message);
    return 1;
}

static struct ron_slice text(const char *bytes)
{
    return (struct ron_slice){(const uint8_t *)bytes, strlen(bytes)};
}

int main(int argc, char **argv)
{
    const struct ron_ledger_entry mint = {
        .id = "m1", .kind = "Mint", .to = "alice", .asset = "roc", .amount = "100"};
    const struct ron_ledger_entry pay = {.id = "t1",
                                         .kind = "Transfer",
                                         .from = "alice",
                                         .to = "bob",
                                         .asset = "roc",
                                         .amount = "30"};
    struct ron_errinfo info = {0};
    struct ron_ledger *ledger;
    struct ron_ledger_written written;
    struct ron_ledger_balance has;
    struct ron_vkey key;
    struct ron_sha256 hash;
    uint8_t leaf[4096];
    char proof[8192];
    size_t size;

    if (ron_ledger_open(argc > 1 ? argv[1] : NULL, NULL, WAIT_MS, &ledger, &info) != RON_ERR_OK)
        return failed(&info);
    if (ron_ledger_write(ledger, &mint, 1, "mint-1", WAIT_MS, &written, NULL, &info) ||
        ron_ledger_write(ledger, &pay, 1, "pay-1", WAIT_MS, &written, NULL, &info) ||
        ron_ledger_balance(ledger, "bob", "roc", WAIT_MS, &has, &info) ||
        ron_ledger_leaf(ledger, written.seq_end, WAIT_MS, leaf, sizeof(leaf), &size, &info) ||
        ron_ledger_proof(ledger, written.seq_end, WAIT_MS, proof, sizeof(proof), &info))
        return failed(&info);
    printf("bob has %s after entry %llu%s\n", has.amount, (unsigned long long)written.seq_end,
           written.repeated ? ", paid before" : "");
    hash = ron_verify_leaf_hash(leaf, size);
    if (ron_vkey_parse(text(ron_ledger_vkey(ledger)), &key, &info) ||
        ron_verify_proof(text(proof), &hash, &(struct ron_trust){.log = &key}, NULL, NULL, &info))
        return failed(&info);
    puts("proven");
    return ron_ledger_close(ledger, &info) == RON_ERR_OK ? 0 : failed(&info);
}
