/*
 * balance.c - a row of an anchored state: its path, the Anchor, the log. See ron/verify.h.
 *
 * The number of rows is not part of the root, and need not be believed: a path fixes on which side
 * of each node the leaf is, whatever numbers it is called by. Two leaves that verify as neighbours
 * are neighbours, because the path of the one goes right, and that of the other left, all the way
 * below the node where they part; so do those of the first and the last.
 */
#include "ron/verify.h"

#include "base/b3.h"
#include "base/bytes.h"
#include "base/decimal.h"
#include "base/merkle_hash.h"

/* Of an entry and its ext (docs/formats.md). */
enum {
    ENTRY_SIZE = 128,
    AT_DIGEST = 16,
    AT_SEQ = 80,
    AT_KIND = 116,
    AT_FLAGS = 118,
    KIND_ANCHOR = 10,
    FLAG_EXT = 1,
    FLAG_SHA256 = 2,
    FLAG_BY_LEDGER = 4,
    ANCHOR_FLAGS = FLAG_EXT | FLAG_SHA256 | FLAG_BY_LEDGER,
    PART_HEAD = 3,
    PART_ANCHOR = 4,
    ROW_ASSET = 16,
    ROW_BALANCE = 20,
    ROW_NONCE = 36,
};

struct anchor {
    uint64_t seq, as_of_seq;
    struct ron_sha256 root;
};

void ron_account_id(struct ron_slice name, uint8_t ret_id[RON_ACCOUNT_ID_SIZE])
{
    _Static_assert((int)RON_ACCOUNT_ID_SIZE == (int)RON_B3_ID_SIZE, "an id");
    ron_b3_id16(RON_B3_DOMAIN("ron:account:v1"), name, (struct ron_slice){NULL, 0}, ret_id);
}

/* The part `stream NUL ref` of an ext; false if there is none, or it is not an ext. */
static bool find_part(struct ron_slice ext, struct ron_slice *ret_part)
{
    while (ext.size >= PART_HEAD) {
        const size_t size = ron_load_le16(ext.data + 1);

        if (size > ext.size - PART_HEAD)
            return false;
        if (ext.data[0] == PART_ANCHOR) {
            *ret_part = ron_slice_of(ext.data + PART_HEAD, size);
            return true;
        }
        ext = ron_slice_of(ext.data + PART_HEAD + size, ext.size - PART_HEAD - size);
    }
    return false;
}

static enum ron_err read_anchor(struct ron_slice leaf, struct anchor *ret_anchor,
                                struct ron_errinfo *reterr)
{
    static const char stream[] = "state"; /* with its NUL */
    struct anchor anchor;
    struct ron_slice part;

    if (leaf.size < ENTRY_SIZE || ron_load_le16(leaf.data + AT_KIND) != KIND_ANCHOR ||
        (ron_load_le16(leaf.data + AT_FLAGS) & ANCHOR_FLAGS) != ANCHOR_FLAGS)
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "not an Anchor of a SHA-256 digest by the ledger itself");
    if (!find_part(ron_slice_of(leaf.data + ENTRY_SIZE, leaf.size - ENTRY_SIZE), &part) ||
        part.size < sizeof(stream) || memcmp(part.data, stream, sizeof(stream)) != 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "an Anchor of another stream than state");
    anchor.seq = ron_load_le64(leaf.data + AT_SEQ);
    memcpy(anchor.root.bytes, leaf.data + AT_DIGEST, RON_SHA256_SIZE);
    if (ron_decimal_parse_u64(ron_slice_of(part.data + sizeof(stream), part.size - sizeof(stream)),
                              &anchor.as_of_seq, NULL) != RON_ERR_OK ||
        anchor.as_of_seq >= anchor.seq)
        return ron_fail(reterr, RON_ERR_MALFORMED, "an Anchor that is of no entry before it");
    *ret_anchor = anchor;
    return RON_ERR_OK;
}

/* Negative: the row stands before (account, asset); 0: it is it. */
static int row_compare(const struct ron_row_proof *row, const uint8_t *account, uint32_t asset)
{
    const int order = memcmp(row->leaf.data, account, RON_ACCOUNT_ID_SIZE);
    const uint32_t here = ron_load_le32(row->leaf.data + ROW_ASSET);

    return order != 0 ? order : here < asset ? -1 : here > asset;
}

/* Do these rows show that there is none? */
static bool is_absent(const struct ron_balance_proof *proof, const struct ron_tree *state,
                      const uint8_t *account, uint32_t asset)
{
    const struct ron_row_proof *rows = proof->rows;

    if (proof->rows_count == 0)
        return state->size == 0 &&
               memcmp(state->root.bytes, ron_merkle_empty.bytes, RON_SHA256_SIZE) == 0;
    if (proof->rows_count == 2)
        return rows[0].index + 1 == rows[1].index && row_compare(&rows[0], account, asset) < 0 &&
               row_compare(&rows[1], account, asset) > 0;
    return (rows[0].index == 0 && row_compare(&rows[0], account, asset) > 0) ||
           (rows[0].index == state->size - 1 && row_compare(&rows[0], account, asset) < 0);
}

static enum ron_err check_rows(const struct ron_balance_proof *proof, const struct ron_tree *state,
                               struct ron_errinfo *reterr)
{
    for (size_t i = 0; i < proof->rows_count; i++) {
        const struct ron_row_proof *row = &proof->rows[i];
        struct ron_sha256 hash;
        enum ron_err err;

        if (row->leaf.size != RON_ROW_SIZE)
            return ron_fail(reterr, RON_ERR_MALFORMED, "a row of %zu bytes", row->leaf.size);
        hash = ron_verify_leaf_hash(row->leaf.data, row->leaf.size);
        err = ron_verify_inclusion(&hash, row->index, state, row->hashes, row->hashes_count,
                                   reterr);
        if (err != RON_ERR_OK)
            return ron_wrap(reterr, err, "row %llu of the state", (unsigned long long)row->index);
    }
    return RON_ERR_OK;
}

enum ron_err ron_verify_balance(const struct ron_balance_proof *proof,
                                const uint8_t account[RON_ACCOUNT_ID_SIZE], uint32_t asset,
                                const struct ron_trust *trust, struct ron_balance *ret_balance,
                                struct ron_checkpoint *ret_checkpoint, struct ron_errinfo *reterr)
{
    struct ron_balance balance = {.present = false};
    struct ron_sha256 leaf;
    struct anchor anchor = {.seq = 0};
    struct ron_tree state;
    uint64_t index = 0;
    enum ron_err err;

    if (proof->rows_count > 2)
        return ron_fail(reterr, RON_ERR_MALFORMED, "%zu rows", proof->rows_count);
    err = read_anchor(proof->anchor, &anchor, reterr);
    if (err != RON_ERR_OK)
        return err;
    leaf = ron_verify_leaf_hash(proof->anchor.data, proof->anchor.size);
    state = (struct ron_tree){proof->state_size, anchor.root};
    err = check_rows(proof, &state, reterr);
    if (err == RON_ERR_OK)
        err = ron_verify_proof(proof->proof, &leaf, trust, &index, ret_checkpoint, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (index != anchor.seq - 1)
        return ron_fail(reterr, RON_ERR_CHAIN_MISMATCH, "the Anchor stands at another place");
    balance.as_of_seq = anchor.as_of_seq;
    balance.anchor_seq = anchor.seq;
    if (proof->rows_count == 1 && row_compare(&proof->rows[0], account, asset) == 0) {
        const uint8_t *row = proof->rows[0].leaf.data;

        balance.present = true;
        balance.balance_low = ron_load_le64(row + ROW_BALANCE);
        balance.balance_high = ron_load_le64(row + ROW_BALANCE + 8);
        balance.next_nonce = ron_load_le64(row + ROW_NONCE);
    } else if (!is_absent(proof, &state, account, asset)) {
        return ron_fail(reterr, RON_ERR_CHAIN_MISMATCH,
                        "the rows are not those of this account and asset, or around it");
    }
    *ret_balance = balance;
    return RON_ERR_OK;
}
