/*
 * log_scan.h - one segment file, frame by frame, with every check.
 *
 * Reads forward through a buffer that grows to the largest frame. Never believes a size before the
 * head's sum fits and the file is that long.
 */
#ifndef RON_IO_LOG_SCAN_H
#define RON_IO_LOG_SCAN_H

#include "io/log_format.h"
#include "io/vfs.h"

struct log_scan {
    struct io_file *file;  /* borrowed */
    uint64_t size;         /* of the file; log_scan_refresh */
    uint64_t offset;       /* of the next frame */
    uint64_t frame_offset; /* of the last one */
    struct io_frame_state state;
    struct io_link link; /* of the last commit or seal that was read; else the one started with */
    bool linked;         /* it is the link before the open group, all of whose heads are known */
    bool sealed;         /* a seal was read */
    struct io_heads heads;
    void *memory;    /* its own */
    uint8_t *buffer; /* in that, or in what was lent; of a direct file in whole pages */
    size_t capacity;
    size_t piece;           /* bytes of a read past the cache, at least; grows, */
    size_t piece_max;       /* so far */
    size_t window;          /* bytes of the next read, at least; grows */
    uint64_t buffer_offset; /* in the file */
    size_t buffer_size;
};

/* Read and check the head of a segment file. Errors of io_segment_head_decode, with the path. */
enum ron_err log_scan_head(struct io_file *file, struct io_segment_head *ret_head,
                           struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* Start behind the head. Owns nothing but its buffer; log_scan_fini in any case. */
enum ron_err log_scan_init(struct log_scan *scan, struct io_file *file,
                           const struct io_segment_head *head,
                           struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
void log_scan_fini(struct log_scan *scan);
/* The memory of a scan of a direct file that has come to large pieces, to lend it to the next one;
 * NULL: it has none. The caller's, for ron_table_free; the scan ends then. */
void *log_scan_take(struct log_scan *scan, size_t *ret_size) RON_MUST_USE;
/* Who reads all of a direct file lends memory that outlives the scan: it is read in pieces that
 * fill it, since each read is a wait. Before the first frame. */
void log_scan_lend(struct log_scan *scan, void *memory, size_t size);

/* The next frame; its body lives until the next call. On verdict VALID moves on. At the end of the
 * file the verdict is ZERO; a frame cut by it is BAD. Fails only if the file cannot be read or
 * memory is short. */
enum ron_err log_scan_next(struct log_scan *scan, enum io_frame_verdict *ret_verdict,
                           struct io_frame *ret_frame, const char **ret_why,
                           struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Go on at a frame whose place is not known: the next one starts the order and, from the next
 * commit on, the links. */
void log_scan_jump(struct log_scan *scan, uint64_t offset);
/* What is in the buffer may be old: read it again. `size` is the file's now. */
void log_scan_refresh(struct log_scan *scan, uint64_t size);

/* What lies from an offset to the end of the file. */
struct log_tail {
    uint64_t end;         /* behind its last byte that is not zero; the offset if there is none */
    uint64_t sound_count; /* heads of frames */
    /* The first head that is written only when the group group_max was durable (log_format.h);
     * UINT64_MAX if there is none. */
    uint64_t proof_offset;
};
enum ron_err log_scan_tail(struct log_scan *scan, uint64_t offset, uint64_t group_max,
                           struct log_tail *ret_tail,
                           struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The first sound frame (head and body) from an offset on whose record can come behind index_last;
 * the file's size if there is none. */
enum ron_err log_scan_search(struct log_scan *scan, uint64_t offset, uint64_t index_last,
                             uint64_t *ret_offset,
                             struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
