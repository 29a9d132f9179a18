/*
 * core_frame.c - a batch to bytes and back. See core_frame.h.
 */
#include "ledger/core_frame.h"

#include "base/assert.h"
#include "base/rfc3339.h"

static const uint8_t magic[4] = {'R', 'L', 'F', '1'};

#define FRAME_RESERVED_OK 0x1u
#define FRAME_KEY         0x2u

size_t ledger_frame_size(const struct ledger_batch *batch)
{
    return (size_t)LEDGER_FRAME_HEAD_SIZE + batch->entries_count * (size_t)(RON_ENTRY_SIZE + 2) +
           batch->ext_size + batch->key_size + batch->texts_size + batch->names_size +
           batch->body_size;
}

static void put_head(const struct ledger_batch *batch, uint8_t *head)
{
    memcpy(head, magic, sizeof(magic));
    ron_store_le16(head + 4, LEDGER_FRAME_VERSION);
    head[6] = (uint8_t)batch->command;
    head[7] = (uint8_t)batch->stamp.caller;
    ron_store_le32(head + 8, (uint32_t)ledger_frame_size(batch));
    ron_store_le32(head + 12, batch->entries_count);
    ron_store_le64(head + 16, batch->number);
    ron_store_le64(head + 24, batch->seq_start);
    ron_store_le64(head + 32, batch->stamp.commit_ms);
    ron_u128_store_le(head + 40, batch->stamp.tenant);
    memcpy(head + 56, batch->stamp.capability, LEDGER_CAPABILITY_SIZE);
    head[64] = (uint8_t)((batch->stamp.reserved_ok ? FRAME_RESERVED_OK : 0) |
                         (batch->key_size > 0 ? FRAME_KEY : 0));
    head[65] = batch->key_size;
    ron_store_le16(head + 66, 0);
    ron_store_le32(head + 68, batch->names_count);
    ron_store_le32(head + 72, batch->ext_size);
    ron_store_le32(head + 76, batch->body_size);
    memcpy(head + 80, batch->previous_root.bytes, RON_SHA256_SIZE);
    memcpy(head + 112, batch->root.bytes, RON_SHA256_SIZE);
    memcpy(head + 144, batch->fingerprint.bytes, RON_B3_SIZE);
}

void ledger_frame_lay_out(const struct ledger_batch *batch, struct ledger_frame_parts *ret_parts)
{
    const struct ron_slice parts[LEDGER_FRAME_PARTS] = {
        {ret_parts->head, sizeof(ret_parts->head)},
        {(const uint8_t *)batch->entries, batch->entries_count * sizeof(batch->entries[0])},
        {(const uint8_t *)batch->ext_sizes, batch->entries_count * sizeof(batch->ext_sizes[0])},
        {batch->ext, batch->ext_size},
        {batch->key, batch->key_size},
        {batch->texts, batch->texts_size},
        {batch->names, batch->names_size},
        {batch->body, batch->body_size},
    };

    RON_ASSERT(batch->sealed);
    put_head(batch, ret_parts->head);
    memcpy(ret_parts->parts, parts, sizeof(parts));
}

void ledger_frame_encode(const struct ledger_batch *batch, uint8_t *ret_bytes)
{
    struct ledger_frame_parts frame;
    uint8_t *at = ret_bytes;

    ledger_frame_lay_out(batch, &frame);
    for (size_t i = 0; i < LEDGER_FRAME_PARTS; i++) {
        if (frame.parts[i].size > 0)
            memcpy(at, frame.parts[i].data, frame.parts[i].size);
        at += frame.parts[i].size;
    }
    RON_ASSERT((size_t)(at - ret_bytes) == ledger_frame_size(batch));
}

/* The next size bytes of *rest; false when there are fewer. */
static bool cut(struct ron_slice *rest, size_t size, struct ron_slice *ret_part)
{
    if (size > rest->size)
        return false;
    *ret_part = ron_slice_of(rest->data, size);
    *rest = ron_slice_of(rest->data + size, rest->size - size);
    return true;
}

static bool cut_id_texts(struct ron_slice *rest, uint32_t count, struct ron_slice *ret_part)
{
    size_t size;

    return ledger_id_texts_check(*rest, count, &size) && cut(rest, size, ret_part);
}

/* The next count names, sizes included. */
static bool cut_names(struct ron_slice *rest, uint32_t count, struct ron_slice *ret_part)
{
    size_t at = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (at >= rest->size || rest->data[at] == 0 || rest->data[at] > RON_ACCOUNT_NAME_SIZE_MAX)
            return false;
        at += (size_t)1 + rest->data[at];
    }
    return cut(rest, at, ret_part);
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static bool decode_head(const uint8_t *head, size_t size, struct ledger_frame *frame)
{
    const unsigned flags = head[64];

    frame->command = (enum ledger_command_kind)head[6];
    frame->stamp.caller = (enum ledger_caller)head[7];
    frame->entries_count = ron_load_le32(head + 12);
    frame->batch = ron_load_le64(head + 16);
    frame->seq_start = ron_load_le64(head + 24);
    frame->stamp.commit_ms = ron_load_le64(head + 32);
    frame->stamp.tenant = ron_u128_load_le(head + 40);
    memcpy(frame->stamp.capability, head + 56, LEDGER_CAPABILITY_SIZE);
    frame->stamp.reserved_ok = (flags & FRAME_RESERVED_OK) != 0;
    frame->has_key = (flags & FRAME_KEY) != 0;
    frame->names_count = ron_load_le32(head + 68);
    memcpy(frame->previous_root.bytes, head + 80, RON_SHA256_SIZE);
    memcpy(frame->root.bytes, head + 112, RON_SHA256_SIZE);
    memcpy(frame->fingerprint.bytes, head + 144, RON_B3_SIZE);
    return head[6] >= LEDGER_COMMAND_INGEST && head[6] <= LEDGER_COMMAND_OPEN &&
           head[7] < LEDGER_CALLER__MAX && ron_load_le32(head + 8) == size &&
           frame->entries_count >= 1 && frame->entries_count <= LEDGER_BATCH_ENTRIES_MAX &&
           (flags & ~(FRAME_RESERVED_OK | FRAME_KEY)) == 0 && frame->has_key == (head[65] > 0) &&
           (frame->has_key || is_zero(head + 144, RON_B3_SIZE)) &&
           head[65] <= RON_IDEM_KEY_SIZE_MAX && ron_load_le16(head + 66) == 0 &&
           frame->stamp.commit_ms <= RON_TIME_MS_MAX;
}

/* Ext sizes must add up, each leaf must be valid. */
static enum ron_err check_leaves(const struct ledger_frame *frame, struct ron_errinfo *reterr)
{
    struct ron_slice rest = frame->ext;

    for (uint32_t i = 0; i < frame->entries_count; i++) {
        const size_t size = ron_load_le16(frame->ext_sizes.data + (size_t)2 * i);
        struct ledger_entry entry;
        struct ledger_ext ext;
        struct ron_slice part;
        enum ron_err err;

        if (size > LEDGER_EXT_SIZE_MAX || !cut(&rest, size, &part))
            return ron_fail(reterr, RON_ERR_MALFORMED, "frame: ext of entry %u", i);
        memcpy(&entry, frame->entries.data + (size_t)i * RON_ENTRY_SIZE, sizeof(entry));
        err = ledger_entry_check(&entry, size, reterr);
        if (err == RON_ERR_OK && size > 0)
            err = ledger_ext_decode(part, &ext, reterr);
        if (err != RON_ERR_OK)
            return ron_wrap(reterr, err, "frame: entry %u", i);
        if (entry.seq != frame->seq_start + i || entry.batch != frame->batch)
            return ron_fail(reterr, RON_ERR_MALFORMED, "frame: entry %u is out of order", i);
    }
    if (rest.size > 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "frame: %zu bytes of ext too many", rest.size);
    return RON_ERR_OK;
}

enum ron_err ledger_frame_divide(struct ron_slice bytes, struct ledger_frame *ret_frame,
                                 struct ron_errinfo *reterr)
{
    struct ledger_frame frame = {.has_key = false};
    struct ron_slice rest = bytes;
    struct ron_slice head;
    size_t count;

    if (!cut(&rest, LEDGER_FRAME_HEAD_SIZE, &head) || memcmp(head.data, magic, sizeof(magic)) != 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "frame: head");
    if (ron_load_le16(head.data + 4) != LEDGER_FRAME_VERSION)
        return ron_fail(reterr, RON_ERR_VERSION_SKEW, "frame: version %u, only %d is read",
                        (unsigned)ron_load_le16(head.data + 4), LEDGER_FRAME_VERSION);
    if (!decode_head(head.data, bytes.size, &frame))
        return ron_fail(reterr, RON_ERR_MALFORMED, "frame: head");
    count = frame.entries_count;
    if (!cut(&rest, count * RON_ENTRY_SIZE, &frame.entries) ||
        !cut(&rest, count * 2, &frame.ext_sizes) ||
        !cut(&rest, ron_load_le32(head.data + 72), &frame.ext) ||
        !cut(&rest, head.data[65], &frame.key))
        return ron_fail(reterr, RON_ERR_MALFORMED, "frame: cut");
    if (!cut_id_texts(&rest, frame.entries_count, &frame.texts))
        return ron_fail(reterr, RON_ERR_MALFORMED, "frame: id texts");
    if (!cut_names(&rest, frame.names_count, &frame.names))
        return ron_fail(reterr, RON_ERR_MALFORMED, "frame: names");
    if (!cut(&rest, ron_load_le32(head.data + 76), &frame.body) || rest.size > 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "frame: body");
    *ret_frame = frame;
    return RON_ERR_OK;
}

enum ron_err ledger_frame_decode(struct ron_slice bytes, struct ledger_frame *ret_frame,
                                 struct ron_errinfo *reterr)
{
    struct ledger_frame frame;
    enum ron_err err = ledger_frame_divide(bytes, &frame, reterr);

    if (err == RON_ERR_OK)
        err = check_leaves(&frame, reterr);
    if (err != RON_ERR_OK)
        return err;
    *ret_frame = frame;
    return RON_ERR_OK;
}

void ledger_frame_leaves(const struct ledger_frame *frame, struct ron_sha256 *ret_hashes)
{
    ledger_leaves_hash(&(struct ledger_leaves){frame->entries.data, frame->ext_sizes.data,
                                               frame->ext.data, frame->entries_count},
                       ret_hashes);
}
