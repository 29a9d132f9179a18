/*
 * core_entry.c - see core_entry.h.
 */
#include "ledger/core_entry.h"

#include "base/assert.h"
#include "base/b3.h"
#include "base/merkle_hash.h"

enum {
    TLV_MEMO = 1,
    TLV_META = 2,
    TLV_TERMS = 3,
    TLV_ANCHOR = 4,
    TLV_ASSET = 5,
    TLV_HEAD_SIZE = 3,
    TERMS_SIZE = LEDGER_ID_SIZE + 8,
};

struct ledger_id ledger_account_id(const char *prefix, struct ron_slice name)
{
    struct ledger_id id;

    ron_b3_id16(RON_B3_DOMAIN("ron:account:v1"), ron_slice_text(prefix), name, id.bytes);
    return id;
}

/* Names of one size that fit a block are hashed side by side. */
void ledger_account_ids(const struct ron_slice *names, size_t count, struct ledger_id *ret_ids)
{
    const struct ron_slice domain = RON_B3_DOMAIN("ron:account:v1");
    struct ron_b3_block blocks[RON_B3_LANES_MAX];
    size_t run;

    _Static_assert(sizeof(*ret_ids) == RON_B3_ID_SIZE, "ids lie one behind the other");
    for (size_t i = 0; i < count; i += run) {
        const size_t size = names[i].size;

        for (run = 1; run < RON_B3_LANES_MAX && i + run < count && names[i + run].size == size;)
            run++;
        if (run == 1 || size > RON_B3_BLOCK_SIZE - domain.size) {
            run = 1;
            ret_ids[i] = ledger_account_id("", names[i]);
            continue;
        }
        for (size_t j = 0; j < run; j++) {
            memcpy(blocks[j].bytes, domain.data, domain.size);
            memcpy(blocks[j].bytes + domain.size, names[i + j].data, size);
        }
        ron_b3_ids16(blocks, run, domain.size + size, &ret_ids[i].bytes);
    }
}

struct ledger_id ledger_entry_id(struct ron_u128 tenant, struct ron_slice text)
{
    uint8_t tenant_bytes[LEDGER_TENANT_SIZE];
    struct ledger_id id;

    ron_u128_store_be(tenant_bytes, tenant);
    ron_b3_id16(RON_B3_DOMAIN(LEDGER_ENTRY_DOMAIN),
                ron_slice_of(tenant_bytes, sizeof(tenant_bytes)), text, id.bytes);
    return id;
}

struct ledger_id ledger_anchor_link(struct ron_slice stream, struct ron_slice ref)
{
    uint8_t head[RON_ACCOUNT_NAME_SIZE_MAX + 1];
    struct ledger_id id;

    RON_ASSERT(stream.size < sizeof(head));
    memcpy(head, stream.data, stream.size);
    head[stream.size] = 0;
    ron_b3_id16(RON_B3_DOMAIN("ron:anchor:v1"), ron_slice_of(head, stream.size + 1), ref, id.bytes);
    return id;
}

static size_t tlv_size(struct ron_slice part)
{
    return part.data == NULL ? 0 : TLV_HEAD_SIZE + part.size;
}

size_t ledger_ext_size(const struct ledger_ext *ext)
{
    size_t size = tlv_size(ext->memo) + tlv_size(ext->meta) + tlv_size(ext->asset_terms);

    if (ext->has_terms)
        size += TLV_HEAD_SIZE + TERMS_SIZE;
    if (ext->stream.data != NULL)
        size += TLV_HEAD_SIZE + ext->stream.size + 1 + ext->ref.size;
    RON_ASSERT(size <= LEDGER_EXT_SIZE_MAX);
    return size;
}

static uint8_t *put_head(uint8_t *at, uint8_t type, size_t size)
{
    RON_ASSERT(size <= UINT16_MAX);
    at[0] = type;
    ron_store_le16(at + 1, (uint16_t)size);
    return at + TLV_HEAD_SIZE;
}

static uint8_t *put_bytes(uint8_t *at, struct ron_slice part)
{
    if (part.size > 0)
        memcpy(at, part.data, part.size);
    return at + part.size;
}

static uint8_t *put_tlv(uint8_t *at, uint8_t type, struct ron_slice part)
{
    return part.data == NULL ? at : put_bytes(put_head(at, type, part.size), part);
}

void ledger_ext_encode(const struct ledger_ext *ext, uint8_t *ret_bytes)
{
    uint8_t *at = ret_bytes;

    at = put_tlv(at, TLV_MEMO, ext->memo);
    at = put_tlv(at, TLV_META, ext->meta);
    if (ext->has_terms) {
        at = put_head(at, TLV_TERMS, TERMS_SIZE);
        memcpy(at, ext->payee.bytes, LEDGER_ID_SIZE);
        ron_store_le64(at + LEDGER_ID_SIZE, ext->expires_ms);
        at += TERMS_SIZE;
    }
    if (ext->stream.data != NULL) {
        at = put_head(at, TLV_ANCHOR, ext->stream.size + 1 + ext->ref.size);
        at = put_bytes(at, ext->stream);
        *at++ = 0;
        at = put_bytes(at, ext->ref);
    }
    at = put_tlv(at, TLV_ASSET, ext->asset_terms);
    RON_ASSERT((size_t)(at - ret_bytes) == ledger_ext_size(ext));
}

/* One part into *ext; NULL or what is wrong with it. */
static const char *decode_part(uint8_t type, struct ron_slice part, struct ledger_ext *ext)
{
    const uint8_t *nul;

    switch (type) {
    case TLV_MEMO:
        ext->memo = part;
        return part.size <= RON_MEMO_SIZE_MAX ? NULL : "memo too long";
    case TLV_META:
        ext->meta = part;
        return part.size <= RON_META_SIZE_MAX ? NULL : "meta too long";
    case TLV_TERMS:
        if (part.size != TERMS_SIZE)
            return "hold terms of another size";
        ext->has_terms = true;
        memcpy(ext->payee.bytes, part.data, LEDGER_ID_SIZE);
        ext->expires_ms = ron_load_le64(part.data + LEDGER_ID_SIZE);
        return NULL;
    case TLV_ANCHOR:
        nul = part.size == 0 ? NULL : memchr(part.data, 0, part.size);
        if (nul == NULL)
            return "anchor without NUL";
        ext->stream = ron_slice_of(part.data, (size_t)(nul - part.data));
        ext->ref = ron_slice_of(nul + 1, part.size - ext->stream.size - 1);
        if (ext->ref.size > 0 && memchr(ext->ref.data, 0, ext->ref.size) != NULL)
            return "anchor with two NULs";
        return ext->stream.size > 0 ? NULL : "anchor without stream";
    case TLV_ASSET:
        ext->asset_terms = part;
        return NULL;
    default:
        return "unknown type";
    }
}

enum ron_err ledger_ext_decode(struct ron_slice bytes, struct ledger_ext *ret_ext,
                               struct ron_errinfo *reterr)
{
    struct ledger_ext ext = {.has_terms = false};
    uint8_t last_type = 0;
    size_t at = 0;

    if (bytes.size > LEDGER_EXT_SIZE_MAX)
        return ron_fail(reterr, RON_ERR_MALFORMED, "ext of %zu bytes, at most %d", bytes.size,
                        LEDGER_EXT_SIZE_MAX);
    while (at < bytes.size) {
        const uint8_t *head = bytes.data + at;
        const char *wrong;
        size_t size;

        if (bytes.size - at < TLV_HEAD_SIZE)
            return ron_fail(reterr, RON_ERR_MALFORMED, "ext at byte %zu: cut head", at);
        size = ron_load_le16(head + 1);
        if (size > bytes.size - at - TLV_HEAD_SIZE)
            return ron_fail(reterr, RON_ERR_MALFORMED, "ext at byte %zu: cut part", at);
        if (head[0] <= last_type)
            return ron_fail(reterr, RON_ERR_MALFORMED, "ext at byte %zu: types not ascending", at);
        wrong = decode_part(head[0], ron_slice_of(head + TLV_HEAD_SIZE, size), &ext);
        if (wrong != NULL)
            return ron_fail(reterr, RON_ERR_MALFORMED, "ext at byte %zu: %s", at, wrong);
        last_type = head[0];
        at += TLV_HEAD_SIZE + size;
    }
    *ret_ext = ext;
    return RON_ERR_OK;
}

enum ron_err ledger_entry_check(const struct ledger_entry *entry, size_t ext_size,
                                struct ron_errinfo *reterr)
{
    if (ledger_kind_name(entry->kind) == NULL)
        return ron_fail(reterr, RON_ERR_MALFORMED, "entry of unknown kind %u", entry->kind);
    if ((entry->flags & ~LEDGER_FLAGS_ALL) != 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "entry with unknown flags %#x", entry->flags);
    if (((entry->flags & LEDGER_FLAG_EXT) != 0) != (ext_size > 0))
        return ron_fail(reterr, RON_ERR_MALFORMED, "leaf of %zu bytes with flags %#x",
                        RON_ENTRY_SIZE + ext_size, entry->flags);
    return RON_ERR_OK;
}

enum ron_err ledger_leaf_decode(struct ron_slice leaf, struct ledger_entry *ret_entry,
                                struct ledger_ext *ret_ext, struct ron_errinfo *reterr)
{
    struct ledger_entry entry;
    struct ledger_ext ext;
    enum ron_err err;

    if (leaf.size < RON_ENTRY_SIZE)
        return ron_fail(reterr, RON_ERR_MALFORMED, "leaf of %zu bytes", leaf.size);
    memcpy(&entry, leaf.data, sizeof(entry));
    err = ledger_entry_check(&entry, leaf.size - RON_ENTRY_SIZE, reterr);
    if (err == RON_ERR_OK)
        err = ledger_ext_decode(
            ron_slice_of(leaf.data + RON_ENTRY_SIZE, leaf.size - RON_ENTRY_SIZE), &ext, reterr);
    if (err != RON_ERR_OK)
        return err;
    *ret_entry = entry;
    *ret_ext = ext;
    return RON_ERR_OK;
}

void ledger_leaves_hash(const struct ledger_leaves *leaves, struct ron_sha256 *ret_hashes)
{
    const uint8_t *ext = leaves->ext;
    uint32_t i = 0;

    while (i < leaves->count) {
        uint8_t leaf[RON_LEAF_SIZE_MAX];
        uint32_t plain = i; /* leaves without ext are hashed together */
        size_t ext_size = 0;

        while (plain < leaves->count && ext_size == 0) {
            ext_size = ron_load_le16(leaves->ext_sizes + (size_t)2 * plain);
            plain += ext_size == 0 ? 1 : 0;
        }
        RON_ASSERT(ext_size <= RON_LEAF_SIZE_MAX - RON_ENTRY_SIZE);
        ron_merkle_leaves(leaves->entries + (size_t)i * RON_ENTRY_SIZE, RON_ENTRY_SIZE, plain - i,
                          &ret_hashes[i]);
        i = plain;
        if (i == leaves->count)
            break;
        memcpy(leaf, leaves->entries + (size_t)i * RON_ENTRY_SIZE, RON_ENTRY_SIZE);
        memcpy(leaf + RON_ENTRY_SIZE, ext, ext_size);
        ret_hashes[i] = ron_merkle_leaf(leaf, RON_ENTRY_SIZE + ext_size);
        ext += ext_size;
        i++;
    }
}

static const char *const kind_names[] = {
    [LEDGER_MINT] = "Mint",       [LEDGER_BURN] = "Burn",       [LEDGER_TRANSFER] = "Transfer",
    [LEDGER_HOLD] = "Hold",       [LEDGER_CAPTURE] = "Capture", [LEDGER_RELEASE] = "Release",
    [LEDGER_REVERSE] = "Reverse", [LEDGER_CREDIT] = "Credit",   [LEDGER_DEBIT] = "Debit",
    [LEDGER_ANCHOR] = "Anchor",   [LEDGER_ASSET] = "Asset",
};

const char *ledger_kind_name(unsigned kind)
{
    return kind < RON_ARRAY_COUNT(kind_names) ? kind_names[kind] : NULL;
}

unsigned ledger_kind_find(struct ron_slice name)
{
    for (unsigned kind = LEDGER_MINT; kind <= LEDGER_ASSET; kind++)
        if (ron_slice_equal(name, ron_slice_text(kind_names[kind])))
            return kind;
    return 0;
}
