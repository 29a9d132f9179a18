/*
 * fuzz_log_frames.c - any bytes as frames of a log, one after the other.
 *
 * Checks beyond "no crash": a valid frame lies inside the input, moves the state on and, written
 * again from what was read, gives the same bytes.
 */
#include "base/assert.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "io/log_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const struct io_frame *frame, const uint8_t *bytes)
{
    const size_t size = (size_t)io_frame_size(frame->body.size);
    uint8_t *again = ron_mem_alloc(size);

    RON_ASSERT(again != NULL);
    if (frame->body.size > 0)
        memcpy(again + IO_FRAME_HEAD_SIZE, frame->body.data, frame->body.size);
    io_frame_put(frame, 0, ron_crc32c(0, frame->body.data, frame->body.size), again);
    RON_ASSERT(memcmp(again, bytes, size) == 0);
    ron_mem_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct io_frame_state state = {0};
    struct io_segment_head head;
    struct io_heads heads;
    struct io_link link = {{0}};
    struct io_frame frame;
    const char *why = NULL;
    size_t at = 0;
    enum io_frame_verdict verdict = io_frame_read_first(ron_slice_of(data, size), &state, &frame,
                                                        &why);

    if (io_segment_head_decode(ron_slice_of(data, size), &head, NULL) == RON_ERR_OK)
        RON_ASSERT(head.number > 0);
    io_heads_start(&heads);
    while (verdict == IO_FRAME_VALID) {
        const uint64_t frame_size = io_frame_size(frame.body.size);
        const uint64_t index = state.index;

        RON_ASSERT(frame_size <= size - at);
        check_again(&frame, data + at);
        if (frame.type >= IO_FRAME_COMMIT)
            link = io_heads_link(&heads, &link, data + at);
        else
            io_heads_add(&heads, data + at);
        at += (size_t)frame_size;
        verdict = io_frame_read(ron_slice_of(data + at, size - at), &state, &frame, &why);
        if (verdict == IO_FRAME_VALID)
            RON_ASSERT(state.index == index || state.index == index + 1);
    }
    RON_ASSERT(verdict != IO_FRAME_BAD || why != NULL);
    return 0;
}
