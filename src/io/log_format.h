/*
 * log_format.h - the bytes of a log: segment files of frames in linked groups.
 *
 * A log is a directory of segments `seg-<16 hex digits>`, numbered 1, 2, 3 ... without gaps (from a
 * later number on once retention removed the oldest), each a head of IO_SEGMENT_HEAD_SIZE bytes,
 * groups of frames, and zeros to its end. Little-endian.
 *
 *     segment head                              frame, at a multiple of 8
 *      0 magic "RONSEG\0\1"  8                   0 magic 0x464e4f52 ("RONF") u32
 *      8 version u32 = 2                         4 body size u32
 *     12 kind u32 (whose log)                    8 index u64: 1, 2, 3 ... through all segments
 *     16 log id 16 (random at birth)            16 group u64: index of the first record of it
 *     32 segment number u64                     24 epoch u32: of the owner, never less
 *     40 first index u64                        28 type u16
 *     48 link before it 16                      30 zero u16
 *     64 epoch u32, zero u32                    32 CRC-32C of the body u32
 *     72 size of the segment before it          36 CRC-32C of log id and bytes 0..36 u32
 *        with its seal u64; 0 for the first     40 body, zeros to a multiple of 8
 *     80 zeros to 4088
 *   4088 CRC-32C of 0..4088 u32, zero u32
 *
 * A group is what one sync covers: one or more records, then a frame of type IO_FRAME_COMMIT, or,
 * to end the segment, IO_FRAME_SEAL alone. Both repeat the last record's index (a seal's group is
 * the index after it) and their body is the link: the first 16 bytes of BLAKE3(bytes 4..36 of the
 * head of each record || link before it || bytes 4..32 of this frame): size, place and sum of each
 * body. So no record can be changed, dropped or moved without breaking every later link, unless its
 * body has the same sum. The link proves order and completeness; bytes are proved against accident
 * by their sum, and against a forger by the Merkle tree above (a chain without a key stops nobody
 * who can write the file, however much of it is hashed). It comes behind the heads so that they can
 * be hashed while the group before is under way. The first link is the log id.
 *
 * The log id is part of a head's sum because records hold bytes of clients: behind a tear, a body
 * is looked through for heads, and whoever does not know the id cannot write one (a guess is right
 * once in 2^32). The id is told to nobody but the owner of the files.
 *
 * A frame is valid if magic, both sums, index, group, epoch and padding fit; a group is valid if
 * all its frames and its link are. Behind the last valid group lies the tail. Records of a group
 * may be written while the group before it is synced; its end, and all of the groups behind it,
 * only after that. So a crash leaves parts of two groups at most, neither of them acknowledged, and
 * of the second no end: a tail is *torn* if its sound heads are of the group (last valid index + 1)
 * and of records of one later group, and it is overwritten with zeros. The end (commit or seal) of
 * a later group, or heads of two later ones, prove that something before them was synced and is
 * gone: *damage*, and so is every tail of a segment that is not the last, and of a log that was
 * closed behind it (log_owner.h). Zeros alone are a clean end. Damage to acknowledged groups cannot
 * be told from a tear where neither a sound end nor heads of two later groups are left behind them:
 * usually that is the last group alone; where small ones share a page, what takes that page.
 *
 * Upgrade rule: a reader refuses every version but its own by name. Version 1, whose link was over
 * all bytes, was in no release; a reader of both would be a second chain in every scan. A reader of
 * version 2 that takes any head of a later group for damage refuses some torn tails; it is wrong,
 * but changes nothing.
 */
#ifndef RON_IO_LOG_FORMAT_H
#define RON_IO_LOG_FORMAT_H

#include "base/b3.h"
#include "base/bytes.h"

enum {
    IO_SEGMENT_VERSION = 2,
    IO_SEGMENT_HEAD_SIZE = 4096,
    IO_FRAME_HEAD_SIZE = 40,
    IO_FRAME_ALIGN = 8,
    IO_LINK_SIZE = 16,
    IO_HEADS_BUFFER = 8192, /* BLAKE3 hashes so much at once best, from a multiple of it on */
    IO_COMMIT_SIZE = IO_FRAME_HEAD_SIZE + IO_LINK_SIZE, /* the frame that ends a group */
    IO_RECORD_SIZE_MAX = 8 << 20,
    IO_FRAME_TYPE_MAX = 0xfeff, /* of users */
    IO_FRAME_COMMIT = 0xfffe,
    IO_FRAME_SEAL = 0xffff,
};

struct io_link {
    uint8_t bytes[IO_LINK_SIZE];
};
struct io_segment_head {
    uint32_t kind;
    uint8_t log_id[16];
    uint64_t number;
    uint64_t first_index;
    struct io_link link;
    uint32_t epoch;
    uint64_t before_size; /* of the segment before it, with its seal */
};
struct io_frame {
    uint64_t index;
    uint64_t group;
    uint32_t epoch;
    uint16_t type;
    struct ron_slice body; /* borrowed */
};

static inline uint64_t io_frame_size(uint64_t body_size)
{
    return (IO_FRAME_HEAD_SIZE + body_size + IO_FRAME_ALIGN - 1) & ~(uint64_t)(IO_FRAME_ALIGN - 1);
}

/* What the head says of its body's size: to be checked. */
static inline uint32_t io_frame_claimed_size(const uint8_t head[IO_FRAME_HEAD_SIZE])
{
    return ron_load_le32(head + 4);
}

void io_segment_head_encode(const struct io_segment_head *head,
                            uint8_t ret_bytes[IO_SEGMENT_HEAD_SIZE]);
/* RON_ERR_VERSION_SKEW for another version, RON_ERR_WAL_CORRUPT for damage, RON_ERR_MALFORMED for a
 * file that is no segment at all. */
enum ron_err io_segment_head_decode(struct ron_slice bytes, struct io_segment_head *ret_head,
                                    struct ron_errinfo *reterr) RON_MUST_USE;

/* What the sums of all heads of a log start with. */
uint32_t io_log_salt(const uint8_t log_id[16]);
/* Write head and padding of a frame whose body is already at ret_bytes + IO_FRAME_HEAD_SIZE;
 * body_sum is its CRC-32C. */
void io_frame_put(const struct io_frame *frame, uint32_t salt, uint32_t body_sum,
                  uint8_t *ret_bytes);
enum io_frame_verdict {
    IO_FRAME_VALID,
    IO_FRAME_ZERO,  /* a head of zeros: nothing was written here */
    IO_FRAME_SHORT, /* the bytes end before the frame does */
    IO_FRAME_BAD,   /* *ret_why says which check failed */
};
/* What the next frame has to follow. */
struct io_frame_state {
    uint64_t index; /* of the last frame */
    uint64_t group; /* that is open: the index after the last commit */
    uint32_t epoch;
    uint32_t salt; /* of the log; stays */
};
/* Read the frame at the start of bytes. On VALID, fills *ret_frame and moves *state on; else
 * changes nothing but *ret_why. Links are for io_heads_link. */
enum io_frame_verdict io_frame_read(struct ron_slice bytes, struct io_frame_state *state,
                                    struct io_frame *ret_frame, const char **ret_why);
/* The same for a frame whose place is not known: checks it by itself with state->salt and starts
 * *state at it. For reads from the middle, and behind damage. */
enum io_frame_verdict io_frame_read_first(struct ron_slice bytes, struct io_frame_state *state,
                                          struct io_frame *ret_frame, const char **ret_why);
/* Does a frame start here whose head is sound, whatever its place and body? ret_frame->body has a
 * size and no data. For the search behind damage. */
bool io_frame_head_sound(struct ron_slice bytes, uint32_t salt, struct io_frame *ret_frame);

/* The heads of a group, for its link. */
struct io_heads {
    struct ron_b3_ctx ctx;
    size_t waiting; /* bytes that are still to be hashed */
    uint8_t buffer[IO_HEADS_BUFFER];
};
void io_heads_start(struct io_heads *heads);
void io_heads_add(struct io_heads *heads, const uint8_t head[IO_FRAME_HEAD_SIZE]);
/* The link of the group that `end`, a commit or seal, ends; starts the heads of the next one. */
struct io_link io_heads_link(struct io_heads *heads, const struct io_link *before,
                             const uint8_t end[IO_FRAME_HEAD_SIZE]);
/* Write the frame that ends the group whose heads were added (none for a seal). *link is the one
 * before it, then its own. Starts the heads of the next one. */
void io_group_end(const struct io_frame *end, uint32_t salt, struct io_heads *heads,
                  struct io_link *link, uint8_t ret_bytes[IO_COMMIT_SIZE]);

bool io_bytes_are_zero(const uint8_t *bytes, size_t size);

#endif
