/*
 * log_format.c - heads and frames, written and read. See log_format.h.
 */
#include "io/log_format.h"

#include "base/assert.h"
#include "base/b3.h"
#include "base/crc32c.h"

#define FRAME_MAGIC UINT32_C(0x464e4f52)

static const uint8_t segment_magic[8] = {'R', 'O', 'N', 'S', 'E', 'G', 0, 1};

enum {
    HEAD_VERSION = 8,
    HEAD_KIND = 12,
    HEAD_LOG_ID = 16,
    HEAD_NUMBER = 32,
    HEAD_FIRST_INDEX = 40,
    HEAD_LINK = 48,
    HEAD_EPOCH = 64,
    HEAD_BEFORE_SIZE = 72,
    HEAD_SUM = 4088,

    FRAME_BODY_SIZE = 4,
    FRAME_INDEX = 8,
    FRAME_GROUP = 16,
    FRAME_EPOCH = 24,
    FRAME_TYPE = 28,
    FRAME_ZERO = 30,
    FRAME_BODY_SUM = 32,
    FRAME_HEAD_SUM = 36,

    HASHED_SIZE = FRAME_HEAD_SUM - FRAME_BODY_SIZE, /* of a head: all but magic and its sum */
};
_Static_assert(IO_HEADS_BUFFER % HASHED_SIZE == 0, "no head is cut");
_Static_assert(IO_COMMIT_SIZE % IO_FRAME_ALIGN == 0, "a commit needs no padding");

bool io_bytes_are_zero(const uint8_t *bytes, size_t size)
{
    /* All bytes equal the first one, and that one is zero. */
    return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

void io_segment_head_encode(const struct io_segment_head *head,
                            uint8_t ret_bytes[IO_SEGMENT_HEAD_SIZE])
{
    memset(ret_bytes, 0, IO_SEGMENT_HEAD_SIZE);
    memcpy(ret_bytes, segment_magic, sizeof(segment_magic));
    ron_store_le32(ret_bytes + HEAD_VERSION, IO_SEGMENT_VERSION);
    ron_store_le32(ret_bytes + HEAD_KIND, head->kind);
    memcpy(ret_bytes + HEAD_LOG_ID, head->log_id, sizeof(head->log_id));
    ron_store_le64(ret_bytes + HEAD_NUMBER, head->number);
    ron_store_le64(ret_bytes + HEAD_FIRST_INDEX, head->first_index);
    memcpy(ret_bytes + HEAD_LINK, head->link.bytes, IO_LINK_SIZE);
    ron_store_le32(ret_bytes + HEAD_EPOCH, head->epoch);
    ron_store_le64(ret_bytes + HEAD_BEFORE_SIZE, head->before_size);
    ron_store_le32(ret_bytes + HEAD_SUM, ron_crc32c(0, ret_bytes, HEAD_SUM));
}

enum ron_err io_segment_head_decode(struct ron_slice bytes, struct io_segment_head *ret_head,
                                    struct ron_errinfo *reterr)
{
    const uint8_t *at = bytes.data;
    uint8_t again[IO_SEGMENT_HEAD_SIZE];
    struct io_segment_head head;
    uint32_t version;

    if (bytes.size < sizeof(segment_magic) || memcmp(at, segment_magic, sizeof(segment_magic)) != 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "not a log segment: no RONSEG at byte 0");
    if (bytes.size < IO_SEGMENT_HEAD_SIZE)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "segment head cut at byte %zu", bytes.size);
    /* Before the sum: a newer version may have moved it. */
    version = ron_load_le32(at + HEAD_VERSION);
    if (version > IO_SEGMENT_VERSION)
        return ron_fail(reterr, RON_ERR_VERSION_SKEW,
                        "segment of version %u, this program reads %d: use a newer one", version,
                        IO_SEGMENT_VERSION);
    if (ron_load_le32(at + HEAD_SUM) != ron_crc32c(0, at, HEAD_SUM))
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "segment head: checksum at byte %d", HEAD_SUM);
    if (version < IO_SEGMENT_VERSION)
        return ron_fail(reterr, RON_ERR_VERSION_SKEW,
                        "segment of version %u, this program reads %d: use the one that wrote it",
                        version, IO_SEGMENT_VERSION);
    head = (struct io_segment_head){
        .kind = ron_load_le32(at + HEAD_KIND),
        .number = ron_load_le64(at + HEAD_NUMBER),
        .first_index = ron_load_le64(at + HEAD_FIRST_INDEX),
        .epoch = ron_load_le32(at + HEAD_EPOCH),
        .before_size = ron_load_le64(at + HEAD_BEFORE_SIZE),
    };
    memcpy(head.log_id, at + HEAD_LOG_ID, sizeof(head.log_id));
    memcpy(head.link.bytes, at + HEAD_LINK, IO_LINK_SIZE);
    io_segment_head_encode(&head, again);
    if (memcmp(at, again, sizeof(again)) != 0 || head.number == 0 || head.first_index == 0)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "segment head: a field that must not be");
    *ret_head = head;
    return RON_ERR_OK;
}

static bool is_end(uint16_t type)
{
    return type == IO_FRAME_COMMIT || type == IO_FRAME_SEAL;
}

uint32_t io_log_salt(const uint8_t log_id[16])
{
    return ron_crc32c(0, log_id, 16);
}

void io_frame_put(const struct io_frame *frame, uint32_t salt, uint32_t body_sum,
                  uint8_t *ret_bytes)
{
    const size_t body_size = frame->body.size;
    const size_t end = IO_FRAME_HEAD_SIZE + body_size;

    RON_ASSERT(body_size <= IO_RECORD_SIZE_MAX);
    RON_ASSERT(frame->type <= IO_FRAME_TYPE_MAX || is_end(frame->type));
    /* In words, as the sum reads them: it would wait for smaller ones to reach the cache. */
    ron_store_le64(ret_bytes, FRAME_MAGIC | (uint64_t)body_size << 32);
    ron_store_le64(ret_bytes + FRAME_INDEX, frame->index);
    ron_store_le64(ret_bytes + FRAME_GROUP, frame->group);
    ron_store_le64(ret_bytes + FRAME_EPOCH, frame->epoch | (uint64_t)frame->type << 32);
    ron_store_le32(ret_bytes + FRAME_BODY_SUM, body_sum);
    ron_store_le32(ret_bytes + FRAME_HEAD_SUM, ron_crc32c(salt, ret_bytes, FRAME_HEAD_SUM));
    if (end % IO_FRAME_ALIGN != 0)
        memset(ret_bytes + end, 0, io_frame_size(body_size) - end);
}

bool io_frame_head_sound(struct ron_slice bytes, uint32_t salt, struct io_frame *ret_frame)
{
    const uint8_t *at = bytes.data;
    struct io_frame frame;

    if (bytes.size < IO_FRAME_HEAD_SIZE || ron_load_le32(at) != FRAME_MAGIC)
        return false;
    if (ron_load_le32(at + FRAME_HEAD_SUM) != ron_crc32c(salt, at, FRAME_HEAD_SUM))
        return false;
    frame = (struct io_frame){
        .index = ron_load_le64(at + FRAME_INDEX),
        .group = ron_load_le64(at + FRAME_GROUP),
        .epoch = ron_load_le32(at + FRAME_EPOCH),
        .type = ron_load_le16(at + FRAME_TYPE),
        .body = {NULL, ron_load_le32(at + FRAME_BODY_SIZE)},
    };
    if (frame.body.size > IO_RECORD_SIZE_MAX || ron_load_le16(at + FRAME_ZERO) != 0)
        return false;
    if (is_end(frame.type) ? frame.body.size != IO_LINK_SIZE : frame.type > IO_FRAME_TYPE_MAX)
        return false;
    *ret_frame = frame;
    return true;
}

/* All that can be said of a frame without the one before it. */
static enum io_frame_verdict read_alone(struct ron_slice bytes, uint32_t salt,
                                        struct io_frame *ret_frame, const char **ret_why)
{
    const uint8_t *at = bytes.data;
    struct io_frame frame;
    uint64_t size;

    if (bytes.size < IO_FRAME_HEAD_SIZE)
        return IO_FRAME_SHORT;
    if (ron_load_le32(at) == 0 && io_bytes_are_zero(at, IO_FRAME_HEAD_SIZE))
        return IO_FRAME_ZERO;
    if (!io_frame_head_sound(bytes, salt, &frame)) {
        *ret_why = ron_load_le32(at) != FRAME_MAGIC ? "no frame starts here" : "frame head";
        return IO_FRAME_BAD;
    }
    size = io_frame_size(frame.body.size);
    if (bytes.size < size)
        return IO_FRAME_SHORT;
    frame.body.data = at + IO_FRAME_HEAD_SIZE;
    if (ron_load_le32(at + FRAME_BODY_SUM) != ron_crc32c(0, frame.body.data, frame.body.size)) {
        *ret_why = "checksum of the body";
        return IO_FRAME_BAD;
    }
    if (!io_bytes_are_zero(frame.body.data + frame.body.size,
                           (size_t)(size - IO_FRAME_HEAD_SIZE - frame.body.size))) {
        *ret_why = "padding";
        return IO_FRAME_BAD;
    }
    *ret_frame = frame;
    return IO_FRAME_VALID;
}

/* Why it cannot follow the frame before it; NULL if it can. */
static const char *misplaced(const struct io_frame_state *state, const struct io_frame *frame)
{
    if (frame->index != state->index + (is_end(frame->type) ? 0 : 1))
        return "index out of order";
    if (frame->group != state->group)
        return "group out of order";
    if (frame->epoch < state->epoch)
        return "epoch of an earlier owner";
    /* A commit ends a group of records, a seal stands alone. */
    if (frame->type == IO_FRAME_COMMIT && frame->index < frame->group)
        return "commit of no record";
    if (frame->type == IO_FRAME_SEAL && frame->index >= frame->group)
        return "seal inside a group";
    return NULL;
}

static struct io_frame_state state_after(const struct io_frame *frame, uint32_t salt)
{
    return (struct io_frame_state){
        .index = frame->index,
        .group = is_end(frame->type) ? frame->index + 1 : frame->group,
        .epoch = frame->epoch,
        .salt = salt,
    };
}

enum io_frame_verdict io_frame_read(struct ron_slice bytes, struct io_frame_state *state,
                                    struct io_frame *ret_frame, const char **ret_why)
{
    struct io_frame frame;
    enum io_frame_verdict verdict = read_alone(bytes, state->salt, &frame, ret_why);
    const char *why;

    if (verdict != IO_FRAME_VALID)
        return verdict;
    why = misplaced(state, &frame);
    if (why != NULL) {
        *ret_why = why;
        return IO_FRAME_BAD;
    }
    *state = state_after(&frame, state->salt);
    *ret_frame = frame;
    return IO_FRAME_VALID;
}

enum io_frame_verdict io_frame_read_first(struct ron_slice bytes, struct io_frame_state *state,
                                          struct io_frame *ret_frame, const char **ret_why)
{
    struct io_frame frame;
    enum io_frame_verdict verdict = read_alone(bytes, state->salt, &frame, ret_why);

    if (verdict != IO_FRAME_VALID)
        return verdict;
    *state = state_after(&frame, state->salt);
    *ret_frame = frame;
    return IO_FRAME_VALID;
}

void io_heads_start(struct io_heads *heads)
{
    ron_b3_init(&heads->ctx);
    heads->waiting = 0;
}

static void hash_waiting(struct io_heads *heads)
{
    ron_b3_update(&heads->ctx, heads->buffer, heads->waiting);
    heads->waiting = 0;
}

void io_heads_add(struct io_heads *heads, const uint8_t head[IO_FRAME_HEAD_SIZE])
{
    memcpy(heads->buffer + heads->waiting, head + FRAME_BODY_SIZE, HASHED_SIZE);
    heads->waiting += HASHED_SIZE;
    if (heads->waiting == IO_HEADS_BUFFER)
        hash_waiting(heads);
}

struct io_link io_heads_link(struct io_heads *heads, const struct io_link *before,
                             const uint8_t end[IO_FRAME_HEAD_SIZE])
{
    struct io_link link;
    struct ron_b3 hash;

    hash_waiting(heads);
    ron_b3_update(&heads->ctx, before->bytes, IO_LINK_SIZE);
    ron_b3_update(&heads->ctx, end + FRAME_BODY_SIZE, FRAME_BODY_SUM - FRAME_BODY_SIZE);
    hash = ron_b3_final(&heads->ctx);
    memcpy(link.bytes, hash.bytes, IO_LINK_SIZE);
    io_heads_start(heads);
    return link;
}

void io_group_end(const struct io_frame *end, uint32_t salt, struct io_heads *heads,
                  struct io_link *link, uint8_t ret_bytes[IO_COMMIT_SIZE])
{
    struct io_frame frame = *end;

    RON_ASSERT(is_end(end->type));
    frame.body = ron_slice_of(ret_bytes + IO_FRAME_HEAD_SIZE, IO_LINK_SIZE);
    io_frame_put(&frame, salt, 0, ret_bytes); /* the link covers all of the head but the sums */
    *link = io_heads_link(heads, link, ret_bytes);
    memcpy(ret_bytes + IO_FRAME_HEAD_SIZE, link->bytes, IO_LINK_SIZE);
    io_frame_put(&frame, salt, ron_crc32c(0, link->bytes, IO_LINK_SIZE), ret_bytes);
}
