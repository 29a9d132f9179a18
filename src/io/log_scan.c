/*
 * log_scan.c - a segment file, frame by frame. See log_scan.h.
 */
#include "io/log_scan.h"

#include "base/assert.h"
#include "base/mem.h"
#include "rt/lock.h"

/* Read little at first: who looks for one record, or follows the end, needs no more. */
enum {
    BUFFER_SIZE = 256 << 10,
    WINDOW_SIZE = 32 << 10,
    PIECE_MAX = (4 << 20) - 4 * IO_DIRECT_SIZE,
};

enum ron_err log_scan_head(struct io_file *file, struct io_segment_head *ret_head,
                           struct ron_errinfo *reterr)
{
    void *memory = ron_mem_alloc(IO_SEGMENT_HEAD_SIZE + (size_t)IO_DIRECT_SIZE);
    uint8_t *bytes;
    size_t size = 0;
    enum ron_err err;

    if (memory == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%s: its head", io_file_path(file));
    bytes = io_direct_page(memory);
    err = io_file_read(file, 0, bytes, IO_SEGMENT_HEAD_SIZE, &size, reterr);
    if (err == RON_ERR_OK) {
        err = io_segment_head_decode(ron_slice_of(bytes, size), ret_head, reterr);
        if (err != RON_ERR_OK)
            err = ron_wrap(reterr, err, "%s", io_file_path(file));
    }
    (void)ron_mem_free(memory);
    return err;
}

static void free_memory(struct log_scan *scan)
{
    if (scan->memory != NULL && io_file_is_direct(scan->file))
        scan->memory = ron_table_free(scan->memory);
    scan->memory = ron_mem_free(scan->memory);
}

/* An empty one, page-aligned, in place of the one before; that one stays if there is no memory. */
static bool make_buffer(struct log_scan *scan, size_t size)
{
    const bool is_direct = io_file_is_direct(scan->file);
    const size_t room = size + (size_t)2 * IO_DIRECT_SIZE;
    void *memory = is_direct ? ron_table_alloc(room, 1, RON_TABLE_DISK) : ron_mem_alloc(room);

    if (memory == NULL)
        return false;
    free_memory(scan);
    scan->memory = memory;
    scan->buffer = is_direct ? io_direct_page(memory) : memory;
    scan->capacity = size;
    scan->buffer_size = 0;
    return true;
}

enum ron_err log_scan_init(struct log_scan *scan, struct io_file *file,
                           const struct io_segment_head *head, struct ron_errinfo *reterr)
{
    enum ron_err err;

    rt_assert_no_lock_held();
    *scan = (struct log_scan){.file = file,
                              .offset = IO_SEGMENT_HEAD_SIZE,
                              .frame_offset = IO_SEGMENT_HEAD_SIZE,
                              .window = WINDOW_SIZE,
                              .piece = BUFFER_SIZE,
                              .piece_max = PIECE_MAX,
                              .link = head->link,
                              .linked = true};
    scan->state = (struct io_frame_state){head->first_index - 1, head->first_index, head->epoch,
                                          io_log_salt(head->log_id)};
    io_heads_start(&scan->heads);
    err = io_file_size(file, &scan->size, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (!make_buffer(scan, scan->size < BUFFER_SIZE ? (size_t)scan->size + 1 : BUFFER_SIZE))
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%s: a buffer to read it", io_file_path(file));
    return RON_ERR_OK;
}

void log_scan_fini(struct log_scan *scan)
{
    free_memory(scan);
    scan->buffer = NULL;
}

void *log_scan_take(struct log_scan *scan, size_t *ret_size)
{
    if (scan->memory == NULL || !io_file_is_direct(scan->file) || scan->capacity < PIECE_MAX)
        return NULL;
    *ret_size = scan->capacity + (size_t)2 * IO_DIRECT_SIZE;
    return RON_TAKE(scan->memory);
}

void log_scan_lend(struct log_scan *scan, void *memory, size_t size)
{
    RON_ASSERT(io_file_is_direct(scan->file));
    RON_ASSERT(scan->buffer_size == 0);
    RON_ASSERT(size >= BUFFER_SIZE + 3 * (size_t)IO_DIRECT_SIZE);
    free_memory(scan);
    scan->buffer = io_direct_page(memory);
    scan->capacity = size - IO_DIRECT_SIZE;
    scan->piece = (scan->capacity - 2 * (size_t)IO_DIRECT_SIZE) & ~(size_t)(IO_DIRECT_SIZE - 1);
    scan->piece_max = scan->piece;
}

static struct ron_slice buffered(const struct log_scan *scan, uint64_t offset)
{
    uint64_t end = scan->buffer_offset + scan->buffer_size;

    if (offset < scan->buffer_offset || offset >= end)
        return (struct ron_slice){scan->buffer, 0};
    return ron_slice_of(scan->buffer + (offset - scan->buffer_offset), (size_t)(end - offset));
}

static enum ron_err no_room(const struct log_scan *scan, size_t size, struct ron_errinfo *reterr)
{
    return ron_fail(reterr, RON_ERR_NO_MEMORY, "%s: a frame of %zu bytes", io_file_path(scan->file),
                    size);
}

/* As `fill` does it for a file that is read past the cache: whole pages, from that of the offset
 * on. What is there already is read again, and not copied. */
static enum ron_err fill_pages(struct log_scan *scan, uint64_t offset, size_t size,
                               struct ron_slice *ret_bytes, struct ron_errinfo *reterr) RON_BLOCKS
{
    const size_t phase = (size_t)(offset % IO_DIRECT_SIZE);
    const size_t needed = (size_t)io_direct_size(size + phase);
    const uint64_t left = scan->size - (offset - phase);
    size_t read_size = 0;
    enum ron_err err;

    /* Who goes on behind a piece goes on further: each read is a wait, and begins with what was
     * read already. */
    if (scan->buffer_size > 0 && offset - scan->buffer_offset <= scan->buffer_size)
        scan->piece = 2 * scan->piece < scan->piece_max ? 2 * scan->piece : scan->piece_max;
    size = size < scan->piece ? scan->piece : size;
    size = (size_t)io_direct_size(size + phase);
    if (size > scan->capacity && !make_buffer(scan, size)) {
        if (needed > scan->capacity)
            return no_room(scan, needed, reterr);
        size = scan->capacity - scan->capacity % IO_DIRECT_SIZE; /* it goes on as it is */
        scan->piece_max = scan->piece = size - IO_DIRECT_SIZE;
    }
    scan->buffer_offset = offset - phase;
    scan->buffer_size = 0;
    err = io_file_read(scan->file, scan->buffer_offset, scan->buffer, size, &read_size, reterr);
    if (err != RON_ERR_OK)
        return err;
    scan->buffer_size = read_size < left ? read_size : (size_t)left;
    *ret_bytes = buffered(scan, offset);
    return RON_ERR_OK;
}

/* Bring up to `size` bytes at the offset into the buffer; fewer at the end of the file. */
static enum ron_err fill(struct log_scan *scan, uint64_t offset, size_t size,
                         struct ron_slice *ret_bytes, struct ron_errinfo *reterr) RON_BLOCKS
{
    const uint64_t left = offset < scan->size ? scan->size - offset : 0;
    struct ron_slice bytes = buffered(scan, offset);
    size_t read_size = 0;
    enum ron_err err;

    size = size < left ? size : (size_t)left;
    if (bytes.size >= size) {
        *ret_bytes = bytes;
        return RON_ERR_OK;
    }
    if (io_file_is_direct(scan->file))
        return fill_pages(scan, offset, size, ret_bytes, reterr);
    /* What is there already, for large frames a good part, is not read again. */
    memmove(scan->buffer, bytes.data, bytes.size);
    scan->buffer_offset = offset;
    scan->buffer_size = bytes.size;
    if (size > scan->capacity) {
        uint8_t *grown = ron_mem_resize(scan->memory, size);

        if (grown == NULL)
            return no_room(scan, size, reterr);
        scan->memory = grown;
        scan->buffer = grown;
        scan->capacity = size;
    }
    size = size < scan->window ? scan->window : size;
    size = size < scan->capacity ? size : scan->capacity;
    size = size < left ? size : (size_t)left;
    scan->window = scan->window < BUFFER_SIZE ? scan->window * 2 : BUFFER_SIZE;
    err = io_file_read(scan->file, offset + bytes.size, scan->buffer + bytes.size,
                       size - bytes.size, &read_size, reterr);
    if (err != RON_ERR_OK)
        return err;
    scan->buffer_size += read_size;
    *ret_bytes = ron_slice_of(scan->buffer, scan->buffer_size);
    return RON_ERR_OK;
}

/* The bytes of the frame at the offset, whole if its head is sound and the file has them. */
static enum ron_err frame_bytes(struct log_scan *scan, struct ron_slice *ret_bytes,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_frame frame;
    struct ron_slice bytes = buffered(scan, scan->offset);
    uint64_t size = IO_FRAME_HEAD_SIZE;
    enum ron_err err = RON_ERR_OK;

    if (bytes.size < size)
        err = fill(scan, scan->offset, IO_FRAME_HEAD_SIZE, &bytes, reterr);
    if (err == RON_ERR_OK && bytes.size >= size)
        size = io_frame_size(io_frame_claimed_size(bytes.data));
    /* Its size is believed only where more is to be read; who reads the frame checks the rest. */
    if (err == RON_ERR_OK && bytes.size < size &&
        io_frame_head_sound(bytes, scan->state.salt, &frame) && size <= scan->size - scan->offset)
        err = fill(scan, scan->offset, (size_t)size, &bytes, reterr);
    *ret_bytes = bytes;
    return err;
}

static bool is_end(const struct io_frame *frame)
{
    return frame->type == IO_FRAME_COMMIT || frame->type == IO_FRAME_SEAL;
}

/* A valid frame: take it, unless it is an end whose link does not fit. */
static bool take(struct log_scan *scan, const struct io_frame *frame, const uint8_t *bytes)
{
    if (is_end(frame)) {
        const struct io_link link = io_heads_link(&scan->heads, &scan->link, bytes);

        if (scan->linked && memcmp(frame->body.data, link.bytes, IO_LINK_SIZE) != 0)
            return false;
        memcpy(scan->link.bytes, frame->body.data, IO_LINK_SIZE);
        scan->linked = true;
        scan->sealed = frame->type == IO_FRAME_SEAL;
    } else {
        io_heads_add(&scan->heads, bytes);
    }
    scan->frame_offset = scan->offset;
    scan->offset += io_frame_size(frame->body.size);
    return true;
}

enum ron_err log_scan_next(struct log_scan *scan, enum io_frame_verdict *ret_verdict,
                           struct io_frame *ret_frame, const char **ret_why,
                           struct ron_errinfo *reterr)
{
    struct io_frame_state state = scan->state;
    struct ron_slice bytes;
    enum io_frame_verdict verdict;
    enum ron_err err = frame_bytes(scan, &bytes, reterr);

    if (err != RON_ERR_OK)
        return err;
    verdict = state.index == UINT64_MAX ? io_frame_read_first(bytes, &state, ret_frame, ret_why)
                                        : io_frame_read(bytes, &state, ret_frame, ret_why);
    if (verdict == IO_FRAME_SHORT) {
        verdict = io_bytes_are_zero(bytes.data, bytes.size) ? IO_FRAME_ZERO : IO_FRAME_BAD;
        *ret_why = "cut by the end of the file";
    }
    if (verdict == IO_FRAME_VALID && !take(scan, ret_frame, bytes.data)) {
        *ret_why = "link to the group before it";
        verdict = IO_FRAME_BAD;
    }
    if (verdict == IO_FRAME_VALID)
        scan->state = state;
    *ret_verdict = verdict;
    return RON_ERR_OK;
}

void log_scan_jump(struct log_scan *scan, uint64_t offset)
{
    scan->offset = offset;
    scan->state.index = UINT64_MAX; /* not known */
    scan->linked = false;
}

void log_scan_refresh(struct log_scan *scan, uint64_t size)
{
    scan->buffer_size = 0;
    scan->size = size;
    scan->window = WINDOW_SIZE;
    scan->piece = scan->piece_max < BUFFER_SIZE ? scan->piece_max : BUFFER_SIZE;
}

/* How many bytes from the start are zero, in steps of IO_FRAME_ALIGN. */
static size_t zero_run(struct ron_slice bytes)
{
    size_t at = 0;

    while (at + 64 <= bytes.size) {
        uint64_t all = 0;

        for (size_t i = 0; i < 64; i += 8)
            all |= ron_load_le64(bytes.data + at + i);
        if (all != 0)
            break;
        at += 64;
    }
    while (at + IO_FRAME_ALIGN <= bytes.size && ron_load_le64(bytes.data + at) == 0)
        at += IO_FRAME_ALIGN;
    return at;
}

/* Does this head of a later group than group_max prove that group_max was durable? Records of the
 * one behind it do not; *next_group says which that is, once one was seen. */
static bool is_proof(const struct io_frame *frame, uint64_t *next_group)
{
    if (*next_group == 0)
        *next_group = frame->group;
    return is_end(frame) || frame->group != *next_group;
}

enum ron_err log_scan_tail(struct log_scan *scan, uint64_t offset, uint64_t group_max,
                           struct log_tail *ret_tail, struct ron_errinfo *reterr)
{
    struct log_tail tail = {.end = offset, .proof_offset = UINT64_MAX};
    uint64_t next_group = 0;
    struct ron_slice bytes;
    struct io_frame frame;
    size_t run;

    RON_ASSERT(offset % IO_FRAME_ALIGN == 0);
    for (uint64_t at = offset; at < scan->size; at += IO_FRAME_ALIGN) {
        enum ron_err err = fill(scan, at, IO_FRAME_HEAD_SIZE, &bytes, reterr);

        if (err != RON_ERR_OK)
            return err;
        if (bytes.size == 0)
            break;
        run = zero_run(bytes);
        if (run > 0) {
            at += run - IO_FRAME_ALIGN;
            continue;
        }
        if (bytes.size < IO_FRAME_ALIGN && io_bytes_are_zero(bytes.data, bytes.size))
            continue;
        tail.end = at + IO_FRAME_ALIGN < scan->size ? at + IO_FRAME_ALIGN : scan->size;
        if (!io_frame_head_sound(bytes, scan->state.salt, &frame))
            continue;
        tail.sound_count++;
        /* Records number at least one every head: what claims more is a body's bytes. */
        if (frame.group > group_max && frame.group - group_max <= scan->size &&
            is_proof(&frame, &next_group) && tail.proof_offset == UINT64_MAX)
            tail.proof_offset = at;
    }
    *ret_tail = tail;
    return RON_ERR_OK;
}

/* A file of so many bytes holds fewer records than that. */
static bool can_follow(const struct log_scan *scan, const struct io_frame *frame,
                       uint64_t index_last)
{
    const uint64_t index = frame->index + (is_end(frame) ? 1 : 0);

    return index > index_last && index - index_last <= scan->size && frame->group <= index;
}

enum ron_err log_scan_search(struct log_scan *scan, uint64_t offset, uint64_t index_last,
                             uint64_t *ret_offset, struct ron_errinfo *reterr)
{
    struct io_frame_state state = {.salt = scan->state.salt};
    struct ron_slice bytes;
    struct io_frame frame;
    const char *why;
    enum ron_err err;

    offset = (offset + IO_FRAME_ALIGN - 1) & ~(uint64_t)(IO_FRAME_ALIGN - 1);
    for (uint64_t at = offset; at < scan->size; at += IO_FRAME_ALIGN) {
        err = fill(scan, at, IO_FRAME_HEAD_SIZE, &bytes, reterr);
        if (err == RON_ERR_OK && io_frame_head_sound(bytes, state.salt, &frame))
            err = fill(scan, at, (size_t)io_frame_size(frame.body.size), &bytes, reterr);
        else if (err == RON_ERR_OK)
            continue;
        if (err != RON_ERR_OK)
            return err;
        if (io_frame_read_first(bytes, &state, &frame, &why) == IO_FRAME_VALID &&
            can_follow(scan, &frame, index_last)) {
            *ret_offset = at;
            return RON_ERR_OK;
        }
    }
    *ret_offset = scan->size;
    return RON_ERR_OK;
}
