/*
 * proof.c - a proof of inclusion as text (c2sp.org/tlog-proof@v1).
 */
#include "base/decimal.h"
#include "ron/verify.h"
#include "verify/text.h"

enum {
    PIECE_SIZE = 512, /* characters of extra data at a time; a multiple of 4 */
    PROOF_SIZE_MAX = RON_NOTE_SIZE_MAX + (64 << 10)
};

static bool is_base64(struct ron_slice text)
{
    for (size_t at = 0; at < text.size; at += PIECE_SIZE) {
        bool is_last = text.size - at <= PIECE_SIZE;
        struct ron_slice piece = {text.data + at, is_last ? text.size - at : PIECE_SIZE};
        uint8_t bytes[PIECE_SIZE / 4 * 3];
        size_t size = 0;

        if (ron_base64_decode(is_last ? RON_BASE64_STANDARD : RON_BASE64_STANDARD_NO_PAD, piece,
                              bytes, sizeof(bytes), &size, NULL) != RON_ERR_OK)
            return false;
    }
    return text.size > 0;
}

/* Hashes up to the empty line. */
static enum ron_err read_hashes(struct ron_slice *rest, struct ron_proof *proof,
                                struct ron_errinfo *reterr)
{
    struct ron_slice line;

    proof->hashes_count = 0;
    while (text_take_line(rest, &line)) {
        if (line.size == 0)
            return RON_ERR_OK;
        if (proof->hashes_count == RON_PROOF_HASHES_MAX)
            return ron_fail(reterr, RON_ERR_TOO_LARGE, "a proof of more than %d hashes",
                            RON_PROOF_HASHES_MAX);
        if (!text_read_hash(line, &proof->hashes[proof->hashes_count]))
            return ron_fail(reterr, RON_ERR_MALFORMED, "a proof whose line %zu is not a hash",
                            proof->hashes_count + 1);
        proof->hashes_count++;
    }
    return ron_fail(reterr, RON_ERR_MALFORMED, "a proof without a checkpoint");
}

enum ron_err ron_proof_parse(struct ron_slice text, struct ron_proof *ret_proof,
                             struct ron_errinfo *reterr)
{
    struct ron_proof proof = {.hashes_count = 0};
    struct ron_slice rest = text, line;
    enum ron_err err;

    if (text.size > PROOF_SIZE_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a proof of %zu bytes, at most %d", text.size,
                        PROOF_SIZE_MAX);
    if (!text_take_line(&rest, &line) ||
        !ron_slice_equal(line, RON_SLICE("c2sp.org/tlog-proof@v1")))
        return ron_fail(reterr, RON_ERR_MALFORMED, "not a c2sp.org/tlog-proof@v1");
    if (!text_take_line(&rest, &line))
        return ron_fail(reterr, RON_ERR_MALFORMED, "a proof without an index");
    if (text_take_prefix(&line, RON_SLICE("extra "))) {
        proof.extra = line;
        if (!is_base64(line))
            return ron_fail(reterr, RON_ERR_MALFORMED, "a proof whose extra data is not base64");
        if (!text_take_line(&rest, &line))
            return ron_fail(reterr, RON_ERR_MALFORMED, "a proof without an index");
    }
    if (!text_take_prefix(&line, RON_SLICE("index ")))
        return ron_fail(reterr, RON_ERR_MALFORMED, "a proof without an index");
    err = ron_decimal_parse_u64(line, &proof.index, reterr);
    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "index of a proof");
    err = read_hashes(&rest, &proof, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (rest.size == 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "a proof without a checkpoint");
    proof.note = rest;
    *ret_proof = proof;
    return RON_ERR_OK;
}

enum ron_err ron_verify_proof(struct ron_slice text, const struct ron_sha256 *leaf,
                              const struct ron_trust *trust, uint64_t *ret_index,
                              struct ron_checkpoint *ret_checkpoint, struct ron_errinfo *reterr)
{
    struct ron_checkpoint checkpoint;
    struct ron_proof proof;
    enum ron_err err = ron_proof_parse(text, &proof, reterr);

    if (err == RON_ERR_OK)
        err = ron_verify_checkpoint(proof.note, trust, &checkpoint, reterr);
    if (err == RON_ERR_OK)
        err = ron_verify_inclusion(leaf, proof.index, &checkpoint.tree, proof.hashes,
                                   proof.hashes_count, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (ret_index != NULL)
        *ret_index = proof.index;
    if (ret_checkpoint != NULL)
        *ret_checkpoint = checkpoint;
    return RON_ERR_OK;
}
