/*
 * books_frames.h - frames for the books without a ledger: whatever is drawn, in valid form.
 */
#ifndef RON_TESTS_BOOKS_FRAMES_H
#define RON_TESTS_BOOKS_FRAMES_H

#include "base/assert.h"
#include "base/limits.h"
#include "ledger/books_page.h"

enum { FRAME_ENTRIES_MAX = 1024, FRAME_EXT_SIZE = 64 };

struct drawn_frame {
    struct ledger_frame frame;
    struct ledger_entry entries[FRAME_ENTRIES_MAX];
    uint16_t ext_sizes[FRAME_ENTRIES_MAX];
    uint8_t ext[FRAME_ENTRIES_MAX * FRAME_EXT_SIZE];
    size_t ext_size;
    uint8_t names[64];
    char key[32];
};

static inline uint64_t draw_from(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 32 ^ *state << 32;
}

/* The id of account n, of entry n: as if hashed. */
static inline struct ledger_id drawn_id(uint64_t space, uint64_t n)
{
    uint64_t state = space * 0x9e3779b97f4a7c15u + n;
    struct ledger_id id;

    (void)draw_from(&state);
    ron_store_le64(id.bytes, draw_from(&state) * 0xd6e8feb86659fd93u);
    ron_store_le64(id.bytes + 8, draw_from(&state) * 0xd6e8feb86659fd93u);
    return id;
}

static inline void frame_begin(struct drawn_frame *drawn, uint64_t batch, uint64_t seq_start)
{
    drawn->frame = (struct ledger_frame){
        .command = LEDGER_COMMAND_INGEST, .batch = batch, .seq_start = seq_start};
    ron_store_le64(drawn->frame.root.bytes, batch * 0x9e3779b97f4a7c15u);
    drawn->ext_size = 0;
}

/* An entry; of an Anchor with this stream. */
static inline void frame_add(struct drawn_frame *drawn, struct ledger_entry entry,
                             const char *stream)
{
    struct ledger_frame *frame = &drawn->frame;
    const uint32_t i = frame->entries_count++;
    const struct ledger_ext ext = {.stream = stream == NULL ? (struct ron_slice){NULL, 0}
                                                            : ron_slice_text(stream)};
    const size_t size = stream == NULL ? 0 : ledger_ext_size(&ext);

    RON_ASSERT(i < FRAME_ENTRIES_MAX);
    entry.seq = frame->seq_start + i;
    entry.batch = frame->batch;
    drawn->entries[i] = entry;
    drawn->ext_sizes[i] = (uint16_t)size;
    if (size > 0)
        ledger_ext_encode(&ext, drawn->ext + drawn->ext_size);
    drawn->ext_size += size;
}

static inline void frame_end(struct drawn_frame *drawn)
{
    struct ledger_frame *frame = &drawn->frame;

    frame->entries = ron_slice_of(drawn->entries, frame->entries_count * sizeof(drawn->entries[0]));
    frame->ext_sizes = ron_slice_of(drawn->ext_sizes, frame->entries_count * (size_t)2);
    frame->ext = ron_slice_of(drawn->ext, drawn->ext_size);
}

#endif
