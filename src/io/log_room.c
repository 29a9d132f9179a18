/*
 * log_room.c - see log_room.h; and the newest records for readers, as log.h promises them.
 */
#include "io/log_room.h"

#include "base/assert.h"
#include "base/mem.h"
#include "io/log_impl.h"

bool log_room_init(struct log_room *room, size_t buffer_size)
{
    uint8_t *first;

    room->group_size = (size_t)io_direct_size(buffer_size) +
                       LOG_PAGE; /* it may begin late in its first */
    room->chunk_size = room->group_size + (size_t)io_direct_size(buffer_size < LOG_CHUNK_USED
                                                                     ? buffer_size
                                                                     : LOG_CHUNK_USED);
    room->memory = ron_table_alloc(room->chunk_size * LOG_CHUNKS + LOG_PAGE, 1, RON_TABLE_DISK);
    if (room->memory == NULL)
        return false;
    first = io_direct_page(room->memory);
    for (size_t i = 0; i < LOG_CHUNKS; i++)
        room->chunks[i].bytes = first + i * room->chunk_size;
    return true;
}

void log_room_fini(struct log_room *room)
{
    for (size_t i = 0; i < LOG_CHUNKS; i++)
        RON_ASSERT(room->chunks[i].pins_count == 0);
    room->memory = ron_table_free(room->memory);
}

/* The oldest chunk that nobody uses. */
static uint32_t next_chunk(const struct io_log *log) RON_NEEDS(storage)
{
    uint32_t next = log->room.current;

    do {
        next = (next + 1) % LOG_CHUNKS;
        RON_ASSERT(next != log->room.current);
    } while (log->room.chunks[next].pins_count > 0 ||
             (log->writing != NULL && log->writing->chunk == next));
    return next;
}

void log_room_place(struct io_log *log)
{
    struct log_group *group = log->open;
    struct log_room *room = &log->room;
    struct log_chunk *chunk = &room->chunks[room->current];

    RON_ASSERT(group->records_count == 0);
    if (chunk->used + room->group_size > room->chunk_size ||
        chunk->kept_count + 2 > LOG_CHUNK_GROUPS) { /* the one under way counts, too */
        room->current = next_chunk(log);
        chunk = &room->chunks[room->current];
        chunk->used = 0;
        chunk->kept_count = 0;
    }
    group->chunk = room->current;
    group->bytes = chunk->bytes + chunk->used + group->offset % LOG_PAGE;
}

void log_room_close(struct io_log *log, const struct log_group *group)
{
    struct log_chunk *chunk = &log->room.chunks[group->chunk];

    RON_ASSERT(group->chunk == log->room.current);
    chunk->used = (size_t)io_direct_size((size_t)(group->bytes - chunk->bytes) + group->size +
                                         IO_COMMIT_SIZE);
    RON_ASSERT(chunk->used <= log->room.chunk_size);
}

void log_room_keep(struct io_log *log, const struct log_group *group)
{
    struct log_chunk *chunk = &log->room.chunks[group->chunk];

    RON_ASSERT(chunk->kept_count < LOG_CHUNK_GROUPS);
    chunk->kept[chunk->kept_count++] = (struct log_kept){group->bytes, group->first_index,
                                                         group->records_count};
}

/* ---- Reading ---- */

/* The chunk that has the record; LOG_CHUNKS: none. */
static uint32_t find_chunk(const struct log_room *room, uint64_t index)
{
    for (uint32_t i = 0; i < LOG_CHUNKS; i++) {
        const struct log_chunk *chunk = &room->chunks[i];
        const struct log_kept *last;

        if (chunk->kept_count == 0)
            continue;
        last = &chunk->kept[chunk->kept_count - 1];
        if (index >= chunk->kept[0].first_index && index < last->first_index + last->records_count)
            return i;
    }
    return LOG_CHUNKS;
}

/* The group of the chunk that has it. */
static uint32_t find_kept(const struct log_chunk *chunk, uint64_t index)
{
    uint32_t first = 0, end = chunk->kept_count;

    while (end - first > 1) {
        const uint32_t middle = first + (end - first) / 2;

        if (chunk->kept[middle].first_index <= index)
            first = middle;
        else
            end = middle;
    }
    return first;
}

bool io_log_recent_open(struct io_log *log, uint64_t first, struct io_log_recent *ret_recent)
{
    bool found = false;

    log_lock(log);
    if (log->room.memory != NULL) {
        const uint32_t at = find_chunk(&log->room, first);
        bool taken = false;

        for (uint32_t i = 0; i < LOG_CHUNKS; i++)
            taken = taken || (i != at && log->room.chunks[i].pins_count > 0);
        found = at != LOG_CHUNKS && !taken;
        if (found) {
            struct log_chunk *chunk = &log->room.chunks[at];
            const uint32_t kept = find_kept(chunk, first);

            chunk->pins_count++;
            *ret_recent = (struct io_log_recent){
                .log = log,
                .chunk = chunk,
                .kept = kept,
                .kept_count = chunk->kept_count,
                .next = chunk->kept[kept].first_index,
            };
        }
    }
    log_unlock(log);
    while (found && ret_recent->next < first) {
        struct io_frame frame;

        found = io_log_recent_next(ret_recent, &frame);
        RON_ASSERT(found);
    }
    return found;
}

bool io_log_recent_next(struct io_log_recent *recent, struct io_frame *ret_frame)
{
    const struct log_kept *kept;
    const uint8_t *head;
    uint32_t size;
    bool sound;

    if (recent->kept == recent->kept_count) /* the next one is the writer's */
        return false;
    kept = &recent->chunk->kept[recent->kept];
    head = kept->bytes + recent->at;
    size = io_frame_claimed_size(head);
    sound = io_frame_head_sound(ron_slice_of(head, IO_FRAME_HEAD_SIZE + (size_t)size),
                                recent->log->salt, ret_frame);
    RON_ASSERT(sound); /* our own memory */
    RON_ASSERT(ret_frame->index == recent->next);
    ret_frame->body = ron_slice_of(head + IO_FRAME_HEAD_SIZE, size);
    recent->at += (size_t)io_frame_size(size);
    recent->next++;
    if (recent->next == kept->first_index + kept->records_count) {
        recent->kept++;
        recent->at = 0;
    }
    return true;
}

void io_log_recent_close(struct io_log_recent *recent)
{
    struct io_log *log = recent->log;

    log_lock(log);
    RON_ASSERT(recent->chunk->pins_count > 0);
    recent->chunk->pins_count--;
    log_unlock(log);
}
