/*
 * checkpoint.c - the head of a log (c2sp.org/tlog-checkpoint), and whom to believe about it.
 */
#include "base/assert.h"
#include "base/decimal.h"
#include "base/merkle_hash.h"
#include "base/printable.h"
#include "ron/verify.h"
#include "verify/text.h"

enum { SHOWN_SIZE = 48 };

enum ron_err ron_checkpoint_parse(struct ron_slice text, struct ron_checkpoint *ret_checkpoint,
                                  struct ron_errinfo *reterr)
{
    struct ron_slice rest = text, line;
    struct ron_checkpoint result;
    enum ron_err err;

    if (text.size > RON_CHECKPOINT_SIZE_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a checkpoint of %zu bytes, at most %d",
                        text.size, RON_CHECKPOINT_SIZE_MAX);
    if (!text_take_line(&rest, &result.origin) || result.origin.size == 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "a checkpoint without an origin");
    if (!text_take_line(&rest, &line))
        return ron_fail(reterr, RON_ERR_MALFORMED, "a checkpoint without a size");
    err = ron_decimal_parse_u64(line, &result.tree.size, reterr);
    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "size of a checkpoint");
    if (!text_take_line(&rest, &line) || !text_read_hash(line, &result.tree.root))
        return ron_fail(reterr, RON_ERR_MALFORMED, "a checkpoint whose root is not a hash");
    if (result.tree.size == 0 &&
        memcmp(result.tree.root.bytes, ron_merkle_empty.bytes, RON_SHA256_SIZE) != 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "a checkpoint of size 0 with a root of leaves");
    result.extensions = rest;
    while (text_take_line(&rest, &line))
        if (line.size == 0)
            return ron_fail(reterr, RON_ERR_MALFORMED, "a checkpoint with an empty line");
    if (rest.size > 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "a checkpoint whose last line has no newline");
    *ret_checkpoint = result;
    return RON_ERR_OK;
}

/* How many of the witnesses signed; one that is listed twice counts once. */
static size_t count_witnesses(const struct ron_trust *trust, uint64_t signed_bits)
{
    size_t count = 0;

    for (size_t i = 0; i < trust->witnesses_count; i++) {
        bool counts = (signed_bits >> i & 1) != 0;

        for (size_t k = 0; k < i && counts; k++)
            counts = memcmp(trust->witnesses[k].public_key, trust->witnesses[i].public_key,
                            sizeof(trust->witnesses[i].public_key)) != 0;
        count += counts ? 1 : 0;
    }
    return count;
}

/* The log's own signature, and enough witnesses. */
static enum ron_err verify_signers(const struct ron_note *note, const struct ron_trust *trust,
                                   struct ron_errinfo *reterr)
{
    struct ron_vkey keys[RON_VKEYS_MAX];
    uint64_t signers = 0;
    size_t witnesses_count;
    enum ron_err err;

    RON_ASSERT(trust->witnesses_count < RON_VKEYS_MAX);
    keys[0] = *trust->log;
    for (size_t i = 0; i < trust->witnesses_count; i++)
        keys[1 + i] = trust->witnesses[i];
    err = ron_note_verify(note, keys, 1 + trust->witnesses_count, &signers, reterr);
    if (err != RON_ERR_OK)
        return err;
    if ((signers & 1) == 0)
        return ron_fail(reterr, RON_ERR_INVALID_SIGNATURE, "the log itself did not sign");
    witnesses_count = count_witnesses(trust, signers >> 1);
    if (witnesses_count < trust->quorum)
        return ron_fail(reterr, RON_ERR_QUORUM_FAILED, "%zu of %zu witnesses signed, %zu must",
                        witnesses_count, trust->witnesses_count, trust->quorum);
    return RON_ERR_OK;
}

enum ron_err ron_verify_checkpoint(struct ron_slice note, const struct ron_trust *trust,
                                   struct ron_checkpoint *ret_checkpoint,
                                   struct ron_errinfo *reterr)
{
    struct ron_slice origin = trust->origin.size > 0 ? trust->origin : trust->log->name;
    struct ron_checkpoint checkpoint;
    struct ron_note parsed;
    enum ron_err err = ron_note_parse(note, &parsed, reterr);

    if (err == RON_ERR_OK)
        err = verify_signers(&parsed, trust, reterr);
    if (err == RON_ERR_OK)
        err = ron_checkpoint_parse(parsed.text, &checkpoint, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (!ron_slice_equal(checkpoint.origin, origin)) {
        char shown[SHOWN_SIZE];

        return ron_fail(reterr, RON_ERR_CONFLICT, "a checkpoint of another log: %s",
                        ron_printable(checkpoint.origin, shown, sizeof(shown)));
    }
    *ret_checkpoint = checkpoint;
    return RON_ERR_OK;
}
