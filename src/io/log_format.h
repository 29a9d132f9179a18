/*
 * log_format.h - the bytes of a log: segment files of linked frames.
 *
 * A log is a directory of segments `seg-<16 hex digits>`, numbered 1, 2, 3 ... without gaps (from a
 * later number on once retention removed the oldest), each a head of IO_SEGMENT_HEAD_SIZE bytes,
 * frames, and zeros to its end. Little-endian.
 *
 *     segment head                              frame, at a multiple of 8
 *      0 magic "RONSEG\0\1"  8                   0 magic 0x464e4f52 ("RONF") u32
 *      8 version u32 = 1                         4 body size u32
 *     12 kind u32 (whose log)                    8 index u64: 1, 2, 3 ... through all segments
 *     16 log id 16 (random at birth)            16 group u64: one per sync, never less
 *     32 segment number u64                     24 epoch u32: of the owner, never less
 *     40 first index u64                        28 type u16 (IO_FRAME_SEAL: the segment ends here)
 *     48 link before it 16                      30 zero u16
 *     64 epoch u32, zero u32                    32 CRC-32C of the body u32
 *     72 zeros to 4088                          36 CRC-32C of bytes 0..36 u32
 *   4088 CRC-32C of 0..4088 u32, zero u32       40 link 16
 *                                               56 body, zeros to a multiple of 8
 *
 * Link = first 16 bytes of BLAKE3(link of the frame before it || bytes 0..40 || body): one frame
 * cannot be changed, dropped or moved without breaking every later one. The first link is the log
 * id.
 *
 * A frame is valid if magic, both sums, index (the last + 1), group, epoch and link fit. Behind the
 * last valid frame lies the tail. A group is written only after the one before it was synced, so a
 * tail is *torn* if no frame of a group later than (last valid group + 1) starts in it: it was
 * never acknowledged and is overwritten with zeros. Else, and in every segment but the last, it is
 * *damage*. Zeros alone are a clean end.
 *
 * Upgrade rule: a reader refuses a version above its own by name; a version below is read as it is
 * and never rewritten; new segments are written in the newest version.
 */
#ifndef RON_IO_LOG_FORMAT_H
#define RON_IO_LOG_FORMAT_H

#include "base/bytes.h"

enum {
    IO_SEGMENT_VERSION = 1,
    IO_SEGMENT_HEAD_SIZE = 4096,
    IO_FRAME_HEAD_SIZE = 56,
    IO_FRAME_ALIGN = 8,
    IO_LINK_SIZE = 16,
    IO_RECORD_SIZE_MAX = 8 << 20,
    IO_FRAME_TYPE_MAX = 0xfeff, /* of users */
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

void io_segment_head_encode(const struct io_segment_head *head,
                            uint8_t ret_bytes[IO_SEGMENT_HEAD_SIZE]);
/* RON_ERR_VERSION_SKEW for a newer version, RON_ERR_WAL_CORRUPT for damage, RON_ERR_MALFORMED for a
 * file that is no segment at all. */
enum ron_err io_segment_head_decode(struct ron_slice bytes, struct io_segment_head *ret_head,
                                    struct ron_errinfo *reterr) RON_MUST_USE;

/* Write a frame whose body is already at ret_bytes + IO_FRAME_HEAD_SIZE: head, link and padding.
 * *link is the link before it and becomes its own. */
void io_frame_seal(const struct io_frame *frame, struct io_link *link, uint8_t *ret_bytes);

enum io_frame_verdict {
    IO_FRAME_VALID,
    IO_FRAME_ZERO,  /* 56 zero bytes: nothing was written here */
    IO_FRAME_SHORT, /* the bytes end before the frame does */
    IO_FRAME_BAD,   /* *ret_why says which check failed */
};
/* What frames have to follow. */
struct io_frame_state {
    uint64_t index; /* of the last frame */
    uint64_t group;
    uint32_t epoch;
    struct io_link link;
};
/* Read the frame at the start of bytes. On VALID, fills *ret_frame and moves *state on; else
 * changes nothing but *ret_why. */
enum io_frame_verdict io_frame_read(struct ron_slice bytes, struct io_frame_state *state,
                                    struct io_frame *ret_frame, const char **ret_why);
/* Does a frame start here whose head is sound, whatever its place and body? For the search behind
 * damage. */
bool io_frame_head_sound(struct ron_slice bytes, struct io_frame *ret_frame);

#endif
