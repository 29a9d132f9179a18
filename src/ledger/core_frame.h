/*
 * core_frame.h - the bytes of one batch in the log, and reading a log back.
 *
 * Little-endian. Head of LEDGER_FRAME_HEAD_SIZE bytes:
 *
 *      0 magic "RLF1"         16 batch     u64      64 flags u8 (1 reserved_ok, 2 key)
 *      4 version u16 = 2      24 seq_start u64      65 key_size u8, 66 zero u16
 *      6 command u8           32 commit_ms u64      68 names_count u32
 *      7 caller  u8           40 tenant   u128      72 ext_size u32
 *      8 size    u32 (whole)  56 capability 8       76 body_size u32
 *     12 count   u32                                80 previous root, 112 root, 144 fingerprint
 *
 * Then, without gaps: count entries of 128 bytes; count ext sizes (u16); ext bytes; key; count id
 * texts (core_id_text.h); names_count names made known (u8 size, bytes), in order; body.
 *
 * Version 1 had every id text as u8 size, bytes. It is refused by its number. Valid: every size
 * within limits.h, the parts fill the frame exactly, each leaf is valid (core_entry.h), seqs and
 * batch run on. The reply needs no bytes of its own: batch, seqs, commit_ms and root are all there
 * is in it.
 */
#ifndef RON_LEDGER_CORE_FRAME_H
#define RON_LEDGER_CORE_FRAME_H

#include "ledger/core.h"
#include "ledger/core_batch.h"
#include "ledger/core_id_text.h"

enum { LEDGER_FRAME_HEAD_SIZE = 176, LEDGER_FRAME_VERSION = 2 };

/* A frame taken apart; borrows its bytes. */
struct ledger_frame {
    enum ledger_command_kind command;
    struct ledger_stamp stamp;
    uint64_t batch;
    uint64_t seq_start;
    uint32_t entries_count;
    uint32_t names_count;
    bool has_key;
    struct ron_b3 fingerprint;
    struct ron_sha256 previous_root;
    struct ron_sha256 root;
    struct ron_slice entries;   /* 128 bytes each, not aligned */
    struct ron_slice ext_sizes; /* u16 each */
    struct ron_slice ext;
    struct ron_slice key;
    struct ron_slice texts; /* core_id_text.h */
    struct ron_slice names;
    struct ron_slice body;
};

/* What a replay answers for a frame that it cannot use: damage, unless the reason says nothing of
 * the log. */
static inline enum ron_err ledger_replay_fault(enum ron_err err)
{
    return err == RON_ERR_NO_MEMORY || err == RON_ERR_VERSION_SKEW ? err : RON_ERR_WAL_CORRUPT;
}

size_t ledger_frame_size(const struct ledger_batch *batch);
/* Committer. Write a sealed batch, exactly ledger_frame_size bytes. */
void ledger_frame_encode(const struct ledger_batch *batch, uint8_t *ret_bytes);
/* Committer. The same bytes where they lie, for who copies them anyway. Borrows batch, and itself:
 * it must not be moved. */
enum { LEDGER_FRAME_PARTS = 8 };
struct ledger_frame_parts {
    uint8_t head[LEDGER_FRAME_HEAD_SIZE];
    struct ron_slice parts[LEDGER_FRAME_PARTS];
};
void ledger_frame_lay_out(const struct ledger_batch *batch, struct ledger_frame_parts *ret_parts);
/* RON_ERR_MALFORMED with the part that is wrong; RON_ERR_VERSION_SKEW. */
enum ron_err ledger_frame_decode(struct ron_slice bytes, struct ledger_frame *ret_frame,
                                 struct ron_errinfo *reterr) RON_MUST_USE;
/* The same without a look at the leaves (entries and their exts), which may be anything. */
enum ron_err ledger_frame_divide(struct ron_slice bytes, struct ledger_frame *ret_frame,
                                 struct ron_errinfo *reterr) RON_MUST_USE;
/* The terms that a frame's command had, beside its entries. Borrows the frame's bytes. */
enum ron_err ledger_frame_terms(const struct ledger_frame *frame,
                                struct ledger_command *ret_command,
                                struct ron_errinfo *reterr) RON_MUST_USE;
/* The hashes of its leaves; ret_hashes has entries_count places. */
void ledger_frame_leaves(const struct ledger_frame *frame, struct ron_sha256 *ret_hashes);

/* Reads frames into a core by doing what they say again. */
struct ledger_replay;
enum ron_err ledger_replay_new(struct ledger_core *core, struct ledger_replay **ret_replay,
                               struct ron_errinfo *reterr) RON_MUST_USE;
struct ledger_replay *ledger_replay_free(struct ledger_replay *replay);
/* Standstill. Apply, seal and commit the next frame. RON_ERR_WAL_CORRUPT if it is not valid, does
 * not follow, is refused, or gives other entries or another root than it says; the core is then as
 * it was before the frame. */
enum ron_err ledger_replay_frame(struct ledger_replay *replay, struct ron_slice bytes,
                                 struct ron_errinfo *reterr) RON_MUST_USE;
/* The batch of the last frame that was read: sealed and committed, until the next one. */
const struct ledger_batch *ledger_replay_batch(const struct ledger_replay *replay);

/* Standstill, after ledger_snapshot_load and before the first replayed frame: put the ids, nonces
 * and key of a batch that the snapshot holds back into the windows; from ledger_core_missing on, in
 * order. RON_ERR_WAL_CORRUPT: not that batch, or not the log the snapshot was made from;
 * RON_ERR_TOO_LARGE: the windows are smaller than what the archive does not know. */
enum ron_err ledger_replay_remember(struct ledger_replay *replay, struct ron_slice bytes,
                                    struct ron_errinfo *reterr) RON_MUST_USE;

#endif
