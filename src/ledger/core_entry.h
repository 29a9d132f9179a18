/*
 * core_entry.h - the entry, its extensions and the ids of accounts and entries.
 *
 * Every root depends on these bytes; docs/formats.md freezes them. Little-endian:
 *
 *      0 id         16      48 amount u128     80 seq        u64     112 asset u32
 *     16 debit      16      64 link   16       88 commit_ms  u64     116 kind  u16
 *     32 credit     16                         96 nonce      u64     118 flags u16
 *                                             104 batch      u64     120 capability 8
 *
 * Leaf = entry || ext; ext = TLVs (u8 type, u16 size, bytes), types ascending, each at most once:
 * 1 memo, 2 meta (RFC 8785), 3 hold terms (payee id or zeros || expires_ms u64, 0 = never),
 * 4 anchor (stream || NUL || ref), 5 asset terms (RFC 8785). Valid: a known kind, no unknown flag,
 * flag EXT exactly if ext is not empty, sizes within limits.h, leaf at most RON_LEAF_SIZE_MAX.
 */
#ifndef RON_LEDGER_CORE_ENTRY_H
#define RON_LEDGER_CORE_ENTRY_H

#include "base/bytes.h"
#include "base/limits.h"
#include "base/u128.h"

enum ledger_kind {
    LEDGER_MINT = 1,
    LEDGER_BURN = 2,
    LEDGER_TRANSFER = 3,
    LEDGER_HOLD = 4,
    LEDGER_CAPTURE = 5,
    LEDGER_RELEASE = 6,
    LEDGER_REVERSE = 7,
    LEDGER_CREDIT = 8,
    LEDGER_DEBIT = 9,
    LEDGER_ANCHOR = 10,
    LEDGER_ASSET = 11,
};

#define LEDGER_FLAG_EXT       0x1u /* the leaf has an ext */
#define LEDGER_FLAG_SHA256    0x2u /* an Anchor's digest is SHA-256, else BLAKE3 */
#define LEDGER_FLAG_BY_LEDGER 0x4u /* written by the ledger itself: its id text holds a `/` */
#define LEDGER_FLAGS_ALL      0x7u

enum {
    LEDGER_ID_SIZE = 16,
    LEDGER_CAPABILITY_SIZE = 8,
    LEDGER_DIGEST_SIZE = 32,
    LEDGER_EXT_SIZE_MAX = RON_LEAF_SIZE_MAX - RON_ENTRY_SIZE,
    LEDGER_ID_TEXT_SIZE_MAX = 96, /* of ids made by the ledger: "slice/", dimension, seq */
};

struct ledger_id {
    uint8_t bytes[LEDGER_ID_SIZE];
};

/* In memory exactly as in the log. */
struct ledger_entry {
    struct ledger_id id;
    struct ledger_id debit;
    struct ledger_id credit;
    struct ron_u128 amount;
    struct ledger_id link;
    uint64_t seq;
    uint64_t commit_ms;
    uint64_t nonce; /* 0 = none */
    uint64_t batch;
    uint32_t asset; /* 0 for an Anchor */
    uint16_t kind;
    uint16_t flags;
    uint8_t capability[LEDGER_CAPABILITY_SIZE];
};
_Static_assert(sizeof(struct ledger_entry) == RON_ENTRY_SIZE, "an entry has no padding");
_Static_assert(offsetof(struct ledger_entry, amount) == 48, "as documented");
_Static_assert(offsetof(struct ledger_entry, seq) == 80, "as documented");
_Static_assert(offsetof(struct ledger_entry, asset) == 112, "as documented");
_Static_assert(offsetof(struct ledger_entry, capability) == 120, "as documented");

static inline bool ledger_id_equal(const struct ledger_id *a, const struct ledger_id *b)
{
    return memcmp(a->bytes, b->bytes, LEDGER_ID_SIZE) == 0;
}
static inline bool ledger_id_is_zero(const struct ledger_id *id)
{
    return ron_load_le64(id->bytes) == 0 && ron_load_le64(id->bytes + 8) == 0;
}

/* The id of the account prefix || name: BLAKE3("ron:account:v1" NUL name), first 16 bytes. */
struct ledger_id ledger_account_id(const char *prefix, struct ron_slice name);
/* Those of many names, none of them empty. */
void ledger_account_ids(const struct ron_slice *names, size_t count, struct ledger_id *ret_ids);
/* The id of an entry: BLAKE3("ron:entry:v1" NUL, tenant as 16 bytes big-endian, text). Of many:
 * core_id_text.h. */
#define LEDGER_ENTRY_DOMAIN "ron:entry:v1"
enum { LEDGER_TENANT_SIZE = 16 };
struct ledger_id ledger_entry_id(struct ron_u128 tenant, struct ron_slice text);

/* The link of an Anchor: BLAKE3("ron:anchor:v1" NUL stream NUL ref), so that what tells two Anchors
 * apart lies in the entry itself. */
struct ledger_id ledger_anchor_link(struct ron_slice stream, struct ron_slice ref);

/* Extensions; a part is there if its data is not NULL (terms: has_terms). Borrows. */
struct ledger_ext {
    struct ron_slice memo;
    struct ron_slice meta;
    bool has_terms;
    struct ledger_id payee;
    uint64_t expires_ms;
    struct ron_slice stream; /* of an Anchor */
    struct ron_slice ref;    /* may be empty */
    struct ron_slice asset_terms;
};

/* Bytes of the encoding: 0 if nothing is there. */
size_t ledger_ext_size(const struct ledger_ext *ext);
/* Write exactly that many bytes. */
void ledger_ext_encode(const struct ledger_ext *ext, uint8_t *ret_bytes);
/* Whole input or RON_ERR_MALFORMED with the byte. Borrows bytes. */
enum ron_err ledger_ext_decode(struct ron_slice bytes, struct ledger_ext *ret_ext,
                               struct ron_errinfo *reterr) RON_MUST_USE;
/* The part of that rule which needs no ext: kind, flags, and whether there may be one. */
enum ron_err ledger_entry_check(const struct ledger_entry *entry, size_t ext_size,
                                struct ron_errinfo *reterr) RON_MUST_USE;
/* Read and check a leaf by the validity rule above. Borrows leaf in *ret_ext. */
enum ron_err ledger_leaf_decode(struct ron_slice leaf, struct ledger_entry *ret_entry,
                                struct ledger_ext *ret_ext,
                                struct ron_errinfo *reterr) RON_MUST_USE;

/* Leaves as batches and frames hold them: entries one after the other, u16 sizes, ext bytes one
 * after the other; nothing needs to be aligned. */
struct ledger_leaves {
    const uint8_t *entries;
    const uint8_t *ext_sizes;
    const uint8_t *ext;
    uint32_t count;
};
/* ret_hashes has `count` places and overlaps nothing. */
void ledger_leaves_hash(const struct ledger_leaves *leaves, struct ron_sha256 *ret_hashes);

/* "Transfer" and back; NULL or 0 for what is no kind. */
const char *ledger_kind_name(unsigned kind);
unsigned ledger_kind_find(struct ron_slice name);

#endif
