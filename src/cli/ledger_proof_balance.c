/*
 * ledger_proof_balance.c - `ron ledger proof --balance`: what an account held, fetched and checked
 * here, trusting only the log's public key, and for assets other than roc the server's number of
 * the asset.
 */
#include <string.h>

#include "base/hex.h"
#include "base/limits.h"
#include "cli/ledger_proof.h"

enum { ROC = 1 };

struct proving {
    const struct ledger_args *args;
    struct session session;
    struct ron_arena arena;
    struct ron_buf vkey;
    struct ron_balance_proof proof;
    uint8_t leaves[2][RON_ROW_SIZE];
    struct ron_sha256 hashes[2][RON_PROOF_HASHES_MAX];
    uint8_t anchor[RON_LEAF_SIZE_MAX];
    uint64_t asset;
    struct ron_balance balance;
    struct ron_checkpoint checkpoint;
};

static int failed(const char *what, const struct ron_errinfo *info)
{
    fprintf(stderr, "ron ledger proof: %s: %s: %s\n", what, ron_err_name(info->err), info->message);
    return damage_status(info->err);
}

static int take_row(void *context, const struct row *row, struct ron_slice object)
{
    struct proving *proving = context;
    struct ron_row_proof *out = &proving->proof.rows[proving->proof.rows_count];
    const size_t at = proving->proof.rows_count;
    struct ron_errinfo info = {0};
    size_t size = 0;

    (void)object;
    if (at == 2 || !row_u64(row, "index", &out->index)) {
        (void)ron_fail(&info, RON_ERR_MALFORMED, "rows without index, or too many");
        return failed("proof", &info);
    }
    if (ron_hex_decode(row_text(row, "leaf"), proving->leaves[at], RON_ROW_SIZE, &size, &info) !=
            RON_ERR_OK ||
        proof_hashes(row_text(row, "hashes"), proving->hashes[at], &out->hashes_count, &info) !=
            RON_ERR_OK)
        return failed("proof", &info);
    out->leaf = ron_slice_of(proving->leaves[at], size);
    out->hashes = proving->hashes[at];
    proving->proof.rows_count++;
    return CMD_OK;
}

static enum ron_err read_anchor(struct proving *proving, struct ron_slice object,
                                struct ron_errinfo *reterr)
{
    struct row row;
    size_t size = 0;
    enum ron_err err = row_read(object, &proving->arena, &row, reterr);

    if (err == RON_ERR_OK)
        err = ron_hex_decode(row_text(&row, "leaf"), proving->anchor, sizeof(proving->anchor),
                             &size, reterr);
    if (err != RON_ERR_OK)
        return err;
    proving->proof.anchor = ron_slice_of(proving->anchor, size);
    proving->proof.proof = row_text(&row, "proof");
    return RON_ERR_OK;
}

static int fetch(struct proving *proving) RON_BLOCKS
{
    const char *asset = proving->args->asset == NULL ? "roc" : proving->args->asset;
    struct session *session = &proving->session;
    struct ron_errinfo info = {0};
    struct row row;
    int status;

    path_begin(session, "/proof/balance");
    path_query(session, "account", proving->args->words[0]);
    path_query(session, "asset", asset);
    status = session_get(session);
    if (status != CMD_OK)
        return status;
    if (ron_arena_init(&proving->arena, 4 * session_body(session).size + 64, &info) != RON_ERR_OK ||
        row_read(session_body(session), &proving->arena, &row, &info) != RON_ERR_OK ||
        read_anchor(proving, row_text(&row, "anchor"), &info) != RON_ERR_OK)
        return failed("proof", &info);
    if (!row_u64(&row, "state_size", &proving->proof.state_size) ||
        !row_u64(&row, "asset_no", &proving->asset) || proving->asset > UINT32_MAX ||
        (strcmp(asset, "roc") == 0 && proving->asset != ROC)) {
        (void)ron_fail(&info, RON_ERR_MALFORMED, "state_size or asset_no");
        return failed("proof", &info);
    }
    return rows_each(proving->args, row_text(&row, "rows"), take_row, proving);
}

/* Here nothing is believed but the key. */
static int check(struct proving *proving)
{
    uint8_t account[RON_ACCOUNT_ID_SIZE];
    struct ron_errinfo info = {0};
    struct ron_vkey key;
    const struct ron_trust trust = {.log = &key};

    ron_account_id(ron_slice_text(proving->args->words[0]), account);
    if (ron_vkey_parse(ron_buf_slice(&proving->vkey), &key, &info) != RON_ERR_OK)
        return failed("public key", &info);
    if (ron_verify_balance(&proving->proof, account, (uint32_t)proving->asset, &trust,
                           &proving->balance, &proving->checkpoint, &info) != RON_ERR_OK)
        return failed("not proven", &info);
    return CMD_OK;
}

static int save(const struct proving *proving) RON_BLOCKS
{
    const struct ledger_args *args = proving->args;
    int status;

    if (args->save == NULL)
        return CMD_OK;
    status = write_named(args, args->save, "", session_body(&proving->session));
    if (status == CMD_OK)
        status = write_named(args, args->save, ".vkey", ron_buf_slice(&proving->vkey));
    return status;
}

/* As GET /balance says it: a drawn credit line is 0 and what is owed. */
static void print(const struct proving *proving)
{
    const struct ron_balance *balance = &proving->balance;
    const unsigned __int128 amount = (unsigned __int128)balance->balance_high << 64 |
                                     balance->balance_low;
    const bool owes = amount >> 127 != 0 && strncmp(proving->args->words[0], "sys/", 4) != 0;
    char digits[RON_DECIMAL_U128_SIZE];

    (void)ron_decimal_print_u128((struct ron_u128){owes ? -amount : amount}, digits);
    if (proving->args->json)
        printf("{\"proven\":true,\"present\":%s,\"balance\":\"%s%s\",\"next_nonce\":%llu,"
               "\"asset_no\":%llu,\"as_of_seq\":%llu,\"anchor_seq\":%llu,\"tree_size\":%llu,"
               "\"origin\":\"%.*s\",\"key_from\":\"%s\"}\n",
               balance->present ? "true" : "false", owes ? "0\",\"debt\":\"" : "", digits,
               (unsigned long long)balance->next_nonce, (unsigned long long)proving->asset,
               (unsigned long long)balance->as_of_seq, (unsigned long long)balance->anchor_seq,
               (unsigned long long)proving->checkpoint.tree.size,
               RON_SLICE_FMT(proving->checkpoint.origin),
               proving->args->vkey != NULL ? "file" : "server");
    else
        printf("proven: %s %s%s of asset %llu after entry %llu, by the Anchor %llu of %llu in %.*s "
               "(key from the %s)\n",
               proving->args->words[0],
               !balance->present ? "had nothing"
               : owes            ? "owed "
                                 : "held ",
               balance->present ? digits : "", (unsigned long long)proving->asset,
               (unsigned long long)balance->as_of_seq, (unsigned long long)balance->anchor_seq,
               (unsigned long long)proving->checkpoint.tree.size,
               RON_SLICE_FMT(proving->checkpoint.origin),
               proving->args->vkey != NULL ? "file" : "server");
}

int ledger_proof_balance(const struct ledger_args *args)
{
    static struct proving proving;
    int status;

    proving.args = args;
    ron_buf_init(&proving.vkey, RON_VKEY_SIZE_MAX + 2);
    status = session_open(&proving.session, args);
    if (status == CMD_OK)
        status = proof_vkey(args, &proving.session, &proving.vkey);
    if (status == CMD_OK)
        status = fetch(&proving);
    if (status == CMD_OK)
        status = check(&proving);
    if (status == CMD_OK)
        status = save(&proving);
    if (status == CMD_OK)
        print(&proving);
    session_close(&proving.session);
    ron_arena_fini(&proving.arena);
    ron_buf_fini(&proving.vkey);
    return status;
}
