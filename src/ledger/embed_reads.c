/*
 * embed_reads.c - what a program reads of its own ledger, and proves. See ron/ledger.h.
 */
#include "base/assert.h"
#include "base/decimal.h"
#include "ledger/checkpoint_file.h"
#include "ledger/embed_impl.h"

enum { ASSETS_PAGE = 64, PROOF_SIZE_MAX = 64 << 10 };
_Static_assert((int)LEDGER_NOTE_SIZE_MAX < (int)RON_CHECKPOINT_SIZE_MAX, "as ron/ledger.h says");

/* --- Assets ------------------------------------------------------------------------------------
 */

/* Is this Asset entry of that name? */
static enum ron_err read_asset(struct ron_ledger *ledger, struct embed_call *call, uint64_t seq,
                               struct ron_slice name, struct rt_deadline deadline,
                               uint32_t *ret_number, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_asset_terms terms;
    struct ledger_record record;
    struct ledger_ext ext;
    enum ron_err err;

    ron_buf_reset(&call->text);
    body_scratch_reset(&call->scratch);
    err = ledger_books_at(ledger->books, seq, deadline, &record, &call->text, reterr);
    if (err == RON_ERR_OK)
        err = ledger_ext_decode(record.ext, &ext, reterr);
    if (err == RON_ERR_OK)
        err = ledger_read_asset(&call->scratch, ext.asset_terms, &terms, reterr);
    if (err == RON_ERR_OK && ron_slice_equal(terms.name, name))
        *ret_number = record.entry.asset;
    return err;
}

static enum ron_err find_asset(struct ron_ledger *ledger, const char *asset,
                               struct rt_deadline deadline, uint32_t *ret_number,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ledger_thread thread = ledger_kind_thread(LEDGER_ASSET);
    const struct ron_slice name = ron_slice_text(asset);
    uint64_t seqs[ASSETS_PAGE], after = 0;
    struct embed_call *call;
    uint32_t number = 0;
    size_t count = ASSETS_PAGE;
    enum ron_err err;

    if (ron_slice_equal(name, RON_SLICE("roc"))) {
        *ret_number = 1; /* there from the start */
        return RON_ERR_OK;
    }
    err = embed_take(ledger, deadline, &call, reterr);
    if (err != RON_ERR_OK)
        return err;
    while (err == RON_ERR_OK && number == 0 && count == ASSETS_PAGE) {
        err = ledger_books_thread(ledger->books, &thread, after, false, deadline, seqs, ASSETS_PAGE,
                                  &count, reterr);
        for (size_t i = 0; err == RON_ERR_OK && number == 0 && i < count; i++) {
            err = read_asset(ledger, call, seqs[i], name, deadline, &number, reterr);
            after = seqs[i];
        }
    }
    embed_give(ledger, call);
    if (err == RON_ERR_OK && number == 0)
        err = ron_fail(reterr, RON_ERR_NOT_FOUND, "no such asset");
    if (err == RON_ERR_OK)
        *ret_number = number;
    return err;
}

/* --- Balances ----------------------------------------------------------------------------------
 */

enum ron_err ron_ledger_balance(struct ron_ledger *ledger, const char *account, const char *asset,
                                uint32_t timeout_ms, struct ron_ledger_balance *ret_balance,
                                struct ron_errinfo *reterr)
{
    const struct rt_deadline deadline = rt_deadline_after_ms(timeout_ms);
    struct ledger_balance balance;
    struct ledger_id id;
    uint32_t number = 0;
    enum ron_err err;

    RON_ASSERT(ledger->magic == EMBED_MAGIC);
    if (!ledger_is_account(ron_slice_text(account)))
        return ron_fail(reterr, RON_ERR_MALFORMED, "not the name of an account");
    err = find_asset(ledger, asset, deadline, &number, reterr);
    if (err != RON_ERR_OK)
        return err;
    id = ledger_account_id("", ron_slice_text(account));
    ledger_read_balance(ledger->service, &id, number, &balance);
    *ret_balance = (struct ron_ledger_balance){
        .debt = balance.negative, .next_nonce = balance.next_nonce, .as_of_seq = balance.as_of_seq};
    (void)ron_decimal_print_u128(balance.amount, ret_balance->amount);
    return RON_ERR_OK;
}

struct ron_tree ron_ledger_head(struct ron_ledger *ledger)
{
    const struct ledger_root head = ledger_read_head(ledger->service);

    RON_ASSERT(ledger->magic == EMBED_MAGIC);
    return (struct ron_tree){.size = head.seq,
                             .root = head.seq == 0 ? ron_merkle_empty : head.root};
}

/* --- Proofs ------------------------------------------------------------------------------------
 */

const char *ron_ledger_vkey(struct ron_ledger *ledger)
{
    RON_ASSERT(ledger->magic == EMBED_MAGIC);
    return ledger_tree_vkey(ledger->tree);
}

/* With a NUL behind it. */
static enum ron_err hand_out(struct ron_buf *buf, char *ret_text, size_t size,
                             struct ron_errinfo *reterr)
{
    enum ron_err err = ron_buf_check(buf, reterr);

    if (err == RON_ERR_OK && buf->size + 1 > size)
        err = ron_fail(reterr, RON_ERR_TOO_LARGE, "it takes %zu bytes, there is room for %zu",
                       buf->size + 1, size);
    if (err == RON_ERR_OK) {
        memcpy(ret_text, buf->data, buf->size);
        ret_text[buf->size] = '\0';
    }
    ron_buf_fini(buf);
    return err;
}

enum ron_err ron_ledger_checkpoint(struct ron_ledger *ledger, uint64_t tree_size,
                                   uint32_t timeout_ms, char *ret_text, size_t size,
                                   struct ron_errinfo *reterr)
{
    struct ron_buf buf;
    uint64_t signed_size;
    enum ron_err err;

    RON_ASSERT(ledger->magic == EMBED_MAGIC);
    err = ledger_tree_await(ledger->tree, tree_size, rt_deadline_after_ms(timeout_ms), reterr);
    if (err != RON_ERR_OK)
        return err;
    ron_buf_init(&buf, RON_NOTE_SIZE_MAX);
    err = ledger_tree_checkpoint(ledger->tree, &buf, &signed_size, reterr);
    if (err == RON_ERR_OK)
        return hand_out(&buf, ret_text, size, reterr);
    ron_buf_fini(&buf);
    return err;
}

enum ron_err ron_ledger_proof(struct ron_ledger *ledger, uint64_t seq, uint32_t timeout_ms,
                              char *ret_text, size_t size, struct ron_errinfo *reterr)
{
    struct ron_buf buf;
    enum ron_err err;

    if (seq == 0 || seq > ron_ledger_head(ledger).size)
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "there is no entry %llu",
                        (unsigned long long)seq);
    err = ledger_tree_await(ledger->tree, seq, rt_deadline_after_ms(timeout_ms), reterr);
    if (err != RON_ERR_OK)
        return err;
    ron_buf_init(&buf, PROOF_SIZE_MAX);
    err = ledger_tree_proof_text(ledger->tree, seq, &buf, reterr);
    if (err == RON_ERR_OK)
        return hand_out(&buf, ret_text, size, reterr);
    ron_buf_fini(&buf);
    return err;
}

enum ron_err ron_ledger_leaf(struct ron_ledger *ledger, uint64_t seq, uint32_t timeout_ms,
                             uint8_t *ret_bytes, size_t size, size_t *ret_size,
                             struct ron_errinfo *reterr)
{
    struct ledger_record record;
    struct ron_buf text;
    size_t used;
    enum ron_err err;

    if (seq == 0 || seq > ron_ledger_head(ledger).size)
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "there is no entry %llu",
                        (unsigned long long)seq);
    ron_buf_init(&text, RON_BODY_SIZE_MAX);
    err = ledger_books_at(ledger->books, seq, rt_deadline_after_ms(timeout_ms), &record, &text,
                          reterr);
    if (err == RON_ERR_OK) {
        used = sizeof(record.entry) + record.ext.size;
        if (used > size)
            err = ron_fail(reterr, RON_ERR_TOO_LARGE, "it takes %zu bytes, there is room for %zu",
                           used, size);
    }
    if (err == RON_ERR_OK) {
        memcpy(ret_bytes, &record.entry, sizeof(record.entry));
        if (record.ext.size > 0)
            memcpy(ret_bytes + sizeof(record.entry), record.ext.data, record.ext.size);
        *ret_size = used;
    }
    ron_buf_fini(&text);
    return err;
}
