/*
 * record_json.c - an entry as JSON. See record_json.h.
 */
#include "ledger/record_json.h"

#include "base/hex.h"
#include "base/rfc3339.h"
#include "ledger/api_pages.h"

void put_text(struct ron_json_writer *writer, const char *name, struct ron_slice text)
{
    ron_json_put_name(writer, name);
    ron_json_put_string(writer, text);
}

void put_u64(struct ron_json_writer *writer, const char *name, uint64_t value)
{
    ron_json_put_name(writer, name);
    ron_json_put_u64(writer, value);
}

void put_hex(struct ron_json_writer *writer, const char *name, const void *bytes, size_t size)
{
    char text[RON_HEX_SIZE(64)];
    size_t text_size;

    RON_ASSERT(size <= 64);
    text_size = ron_hex_encode(ron_slice_of(bytes, size), text, sizeof(text));
    put_text(writer, name, ron_slice_of(text, text_size));
}

void put_time(struct ron_json_writer *writer, const char *name, uint64_t time_ms)
{
    char text[RON_RFC3339_SIZE];

    ron_rfc3339_print(time_ms, text);
    put_text(writer, name, ron_slice_text(text));
}

void put_amount(struct ron_json_writer *writer, const char *name, struct ron_u128 amount)
{
    ron_json_put_name(writer, name);
    ron_json_put_amount(writer, amount);
}

void put_account(struct ron_json_writer *writer, const char *name, const char *name_of_id,
                 struct ron_slice text, const struct ledger_id *id)
{
    if (text.size > 0)
        put_text(writer, name, text);
    else
        put_hex(writer, name_of_id, id->bytes, LEDGER_ID_SIZE);
}

static void put_digest(struct ron_json_writer *writer, const struct ledger_entry *entry)
{
    const bool is_sha256 = (entry->flags & LEDGER_FLAG_SHA256) != 0;
    char text[sizeof("sha256:") + 2 * LEDGER_DIGEST_SIZE];
    const size_t size = is_sha256 ? sizeof("sha256:") - 1 : sizeof("b3:") - 1;

    memcpy(text, is_sha256 ? "sha256:" : "b3:", size);
    (void)ron_hex_encode(ron_slice_of(entry->debit.bytes, LEDGER_ID_SIZE), text + size,
                         sizeof(text) - size);
    (void)ron_hex_encode(ron_slice_of(entry->credit.bytes, LEDGER_ID_SIZE),
                         text + size + 2 * LEDGER_ID_SIZE,
                         sizeof(text) - size - 2 * LEDGER_ID_SIZE);
    put_text(writer, "digest", ron_slice_of(text, size + 2 * LEDGER_DIGEST_SIZE));
}

void put_payee(struct ron_json_writer *writer, const struct ledger_id *payee, struct ron_slice name)
{
    if (ledger_id_is_zero(payee))
        put_text(writer, "payee", RON_SLICE("*"));
    else
        put_account(writer, "payee", "payee_id", name, payee);
}

/* The account of a hold is named after it. */
static void put_hold_id(struct ron_json_writer *writer, const struct ledger_record *record)
{
    static const char prefix[] = "sys/hold/";
    const unsigned kind = record->entry.kind;
    const struct ron_slice name = kind == LEDGER_HOLD ? record->credit_name : record->debit_name;

    if ((kind == LEDGER_HOLD || kind == LEDGER_CAPTURE || kind == LEDGER_RELEASE) &&
        name.size > sizeof(prefix) - 1 && memcmp(name.data, prefix, sizeof(prefix) - 1) == 0)
        put_text(writer, "hold_id",
                 ron_slice_of(name.data + sizeof(prefix) - 1, name.size - (sizeof(prefix) - 1)));
}

static void put_ext(struct ron_json_writer *writer, const struct ledger_record *record,
                    struct ron_slice payee_name)
{
    struct ledger_ext ext;

    if (ledger_ext_decode(record->ext, &ext, NULL) != RON_ERR_OK)
        return; /* the frame was checked when it was read: nothing to show, nothing to hide */
    if (ext.memo.data != NULL)
        put_text(writer, "memo", ext.memo);
    if (ext.meta.data != NULL) {
        ron_json_put_name(writer, "meta");
        ron_json_put_raw(writer, ext.meta);
    }
    if (ext.has_terms) {
        put_payee(writer, &ext.payee, payee_name);
        if (ext.expires_ms != 0)
            put_time(writer, "expires_at", ext.expires_ms);
    }
    if (ext.stream.data != NULL) {
        put_text(writer, "stream", ext.stream);
        if (ext.ref.size > 0)
            put_text(writer, "ref", ext.ref);
    }
    if (ext.asset_terms.data != NULL) {
        ron_json_put_name(writer, "terms");
        ron_json_put_raw(writer, ext.asset_terms);
    }
}

/* The bytes that are hashed: who has them checks the proof alone. */
static void put_leaf(struct ron_json_writer *writer, const struct ledger_record *record)
{
    char text[RON_HEX_SIZE(RON_LEAF_SIZE_MAX)];
    size_t size = ron_hex_encode(ron_slice_of(&record->entry, sizeof(record->entry)), text,
                                 sizeof(text));

    size += ron_hex_encode(record->ext, text + size, sizeof(text) - size);
    put_text(writer, "leaf", ron_slice_of(text, size));
}

void ledger_put_record(struct ron_json_writer *writer, const struct ledger_record *record,
                       const struct ledger_record_names *names, bool with_leaf)
{
    const struct ledger_entry *entry = &record->entry;

    ron_json_put_object_begin(writer);
    put_u64(writer, "seq", entry->seq);
    put_text(writer, "id", record->id_text);
    put_text(writer, "kind", ron_slice_text(ledger_kind_name(entry->kind)));
    if (entry->kind == LEDGER_ANCHOR) {
        put_digest(writer, entry);
    } else if (entry->kind != LEDGER_ASSET) {
        put_account(writer, "debit", "debit_id", record->debit_name, &entry->debit);
        put_account(writer, "credit", "credit_id", record->credit_name, &entry->credit);
        put_amount(writer, "amount", entry->amount);
    }
    if (entry->asset != 0 && names->asset.size > 0)
        put_text(writer, "asset", names->asset);
    else if (entry->asset != 0)
        put_u64(writer, "asset_no", entry->asset);
    if (entry->nonce != 0)
        put_u64(writer, "nonce", entry->nonce);
    if (!ledger_id_is_zero(&entry->link))
        put_hex(writer, "link", entry->link.bytes, LEDGER_ID_SIZE);
    if (entry->kind == LEDGER_REVERSE && names->ref.size > 0)
        put_text(writer, "ref", names->ref);
    put_hold_id(writer, record);
    put_ext(writer, record, names->payee);
    put_amount(writer, "tenant", record->tenant);
    put_text(writer, "caller", ron_slice_text(ledger_caller_name(record->caller)));
    put_hex(writer, "capability_ref", entry->capability, LEDGER_CAPABILITY_SIZE);
    ron_json_put_name(writer, "by_ledger");
    ron_json_put_bool(writer, (entry->flags & LEDGER_FLAG_BY_LEDGER) != 0);
    put_u64(writer, "batch_no", entry->batch);
    put_u64(writer, "batch_seq_start", record->batch_seq_start);
    put_u64(writer, "batch_seq_end", record->batch_seq_end);
    put_hex(writer, "batch_root", record->root.bytes, RON_SHA256_SIZE);
    put_time(writer, "committed_at", entry->commit_ms);
    if (with_leaf)
        put_leaf(writer, record);
    ron_json_put_object_end(writer);
}
