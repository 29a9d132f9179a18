/*
 * snapshot_file_write.c - write snapshots and remove old ones; head and name. See snapshot_file.h.
 */
#include <stdio.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "io/replace.h"
#include "io/snapshot_file_format.h"

static const uint8_t magic[8] = {'R', 'O', 'N', 'S', 'N', 'P', 0, 1};
static const char digits[] = "0123456789abcdef";

void io_snapshot_head_encode(const struct snapshot_head *head,
                             uint8_t ret_bytes[SNAPSHOT_HEAD_SIZE])
{
    memset(ret_bytes, 0, SNAPSHOT_HEAD_SIZE);
    memcpy(ret_bytes, magic, sizeof(magic));
    ron_store_le32(ret_bytes + 8, SNAPSHOT_VERSION);
    ron_store_le32(ret_bytes + 12, head->info.kind);
    ron_store_le32(ret_bytes + 16, head->info.version);
    ron_store_le64(ret_bytes + 24, head->info.position);
    ron_store_le64(ret_bytes + 32, head->last_durable);
    ron_store_le64(ret_bytes + 40, head->info.size);
    memcpy(ret_bytes + 48, head->info.hash.bytes, RON_B3_SIZE);
    ron_store_le32(ret_bytes + 4088, ron_crc32c(0, ret_bytes, 4088));
}

enum ron_err io_snapshot_head_decode(const uint8_t bytes[SNAPSHOT_HEAD_SIZE],
                                     struct snapshot_head *ret_head, struct ron_errinfo *reterr)
{
    struct snapshot_head head = {0};

    if (memcmp(bytes, magic, sizeof(magic)) != 0)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "not a snapshot file");
    if (ron_load_le32(bytes + 4088) != ron_crc32c(0, bytes, 4088))
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "the head failed its check");
    if (ron_load_le32(bytes + 8) != SNAPSHOT_VERSION)
        return ron_fail(reterr, RON_ERR_VERSION_SKEW, "format %u, this program reads %u",
                        ron_load_le32(bytes + 8), SNAPSHOT_VERSION);
    head.info.kind = ron_load_le32(bytes + 12);
    head.info.version = ron_load_le32(bytes + 16);
    head.info.position = ron_load_le64(bytes + 24);
    head.last_durable = ron_load_le64(bytes + 32);
    head.info.size = ron_load_le64(bytes + 40);
    memcpy(head.info.hash.bytes, bytes + 48, RON_B3_SIZE);
    if (head.info.position > head.last_durable)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "cut at %llu, durable was only %llu",
                        (unsigned long long)head.info.position,
                        (unsigned long long)head.last_durable);
    *ret_head = head;
    return RON_ERR_OK;
}

enum ron_err io_snapshot_path(const char *dir, uint64_t position, char ret_path[IO_PATH_MAX + 1],
                              struct ron_errinfo *reterr)
{
    char path[IO_PATH_MAX + 1];
    int size = snprintf(path, sizeof(path), "%s%ssnap-%016llx", dir, dir[0] == '\0' ? "" : "/",
                        (unsigned long long)position);

    RON_ASSERT(size > 0);
    if ((size_t)size >= sizeof(path))
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a snapshot's path of %d bytes, at most %d",
                        size, IO_PATH_MAX);
    memcpy(ret_path, path, sizeof(path));
    return RON_ERR_OK;
}

bool io_snapshot_name_parse(const char *name, uint64_t *ret_position)
{
    uint64_t position = 0;

    if (strlen(name) != SNAPSHOT_NAME_SIZE || memcmp(name, "snap-", 5) != 0)
        return false;
    for (size_t i = 5; i < SNAPSHOT_NAME_SIZE; i++) {
        const char *digit = memchr(digits, name[i], 16);

        if (digit == NULL)
            return false;
        position = position << 4 | (uint64_t)(digit - digits);
    }
    *ret_position = position;
    return true;
}

struct io_snapshot_writer {
    struct io_replace replace;
    struct snapshot_head head; /* size and hash are known at the end */
    struct ron_b3_ctx ctx;
    struct ron_errinfo failure; /* of the first put that failed; RON_ERR_OK if none */
    size_t filled;              /* bytes of the chunk */
    uint8_t *chunk;             /* IO_SNAPSHOT_CHUNK_SIZE, in `memory` */
    uint8_t memory[IO_DIRECT_SIZE + IO_SNAPSHOT_CHUNK_SIZE];
};
_Static_assert(SNAPSHOT_HEAD_SIZE % IO_DIRECT_SIZE == 0 &&
                   IO_SNAPSHOT_CHUNK_SIZE % IO_DIRECT_SIZE == 0,
               "full chunks can be written past the cache");

enum ron_err io_snapshot_begin(struct io_vfs *vfs, const char *dir,
                               const struct io_snapshot_cut *cut,
                               struct io_snapshot_writer **ret_writer, struct ron_errinfo *reterr)
{
    struct io_snapshot_writer *writer;
    char path[IO_PATH_MAX + 1];
    enum ron_err err;

    RON_ASSERT(cut->position <= cut->last_durable);
    err = io_snapshot_path(dir, cut->position, path, reterr);
    if (err != RON_ERR_OK)
        return err;
    writer = ron_mem_alloc(sizeof(*writer));
    if (writer == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a writer of snapshots");
    writer->chunk = io_direct_page(writer->memory);
    writer->head.info = (struct io_snapshot_info){
        .kind = cut->kind, .version = cut->version, .position = cut->position};
    writer->head.last_durable = cut->last_durable;
    ron_b3_init(&writer->ctx);
    err = io_replace_begin(&writer->replace, vfs, path, reterr);
    if (err != RON_ERR_OK) {
        ron_mem_free(writer);
        return ron_wrap(reterr, err, "snapshot");
    }
    *ret_writer = writer;
    return RON_ERR_OK;
}

static enum ron_err write_chunk(struct io_snapshot_writer *writer) RON_BLOCKS
{
    const uint64_t offset = SNAPSHOT_HEAD_SIZE + writer->head.info.size;
    const struct ron_slice part = {writer->chunk, writer->filled};
    enum ron_err err;

    ron_b3_update(&writer->ctx, part.data, part.size);
    /* It is read at a start alone. */
    err = io_replace_write_past(&writer->replace, offset, part, &writer->failure);
    if (err == RON_ERR_OK)
        writer->head.info.size += part.size;
    writer->filled = 0;
    return err;
}

static enum ron_err failed_before(const struct io_snapshot_writer *writer,
                                  struct ron_errinfo *reterr)
{
    if (reterr != NULL)
        *reterr = writer->failure;
    return ron_wrap(reterr, writer->failure.err, "snapshot");
}

enum ron_err io_snapshot_put(struct io_snapshot_writer *writer, struct ron_slice bytes,
                             struct ron_errinfo *reterr)
{
    while (writer->failure.err == RON_ERR_OK && bytes.size > 0) {
        size_t room = IO_SNAPSHOT_CHUNK_SIZE - writer->filled;
        size_t size = bytes.size < room ? bytes.size : room;

        memcpy(writer->chunk + writer->filled, bytes.data, size);
        writer->filled += size;
        bytes.data += size;
        bytes.size -= size;
        if (writer->filled == IO_SNAPSHOT_CHUNK_SIZE && write_chunk(writer) != RON_ERR_OK)
            break;
    }
    return writer->failure.err == RON_ERR_OK ? RON_ERR_OK : failed_before(writer, reterr);
}

struct io_snapshot_writer *io_snapshot_abandon(struct io_snapshot_writer *writer)
{
    if (writer == NULL)
        return NULL;
    io_replace_abandon(&writer->replace);
    return ron_mem_free(writer);
}

enum ron_err io_snapshot_commit(struct io_snapshot_writer *writer,
                                struct io_snapshot_info *ret_info, struct ron_errinfo *reterr)
{
    uint8_t bytes[SNAPSHOT_HEAD_SIZE];
    enum ron_err err = writer->failure.err;

    if (err == RON_ERR_OK && writer->filled > 0)
        err = write_chunk(writer);
    if (err == RON_ERR_OK) {
        writer->head.info.hash = ron_b3_final(&writer->ctx);
        io_snapshot_head_encode(&writer->head, bytes);
        err = io_file_write(writer->replace.file, 0, &(struct ron_slice){bytes, sizeof(bytes)}, 1,
                            &writer->failure);
    }
    if (err == RON_ERR_OK)
        err = io_replace_commit(&writer->replace, &writer->failure);
    if (err == RON_ERR_OK)
        *ret_info = writer->head.info;
    else
        err = failed_before(writer, reterr);
    io_snapshot_abandon(writer);
    return err;
}

/* Old snapshots. Names come in ascending order, so the newest are the last `keep`: with a first
 * look they are counted, with a second all but these are noted down and then removed. */

enum { REMOVE_AT_ONCE = 64 };
struct removal {
    uint64_t keep, count, seen, noted;
    bool counting;
    char names[REMOVE_AT_ONCE][IO_NAME_MAX + 1];
};

static bool is_leftover(const char *name)
{
    char base[SNAPSHOT_NAME_SIZE + 1];
    uint64_t position;

    if (strlen(name) != SNAPSHOT_NAME_SIZE + 4 || strcmp(name + SNAPSHOT_NAME_SIZE, ".new") != 0)
        return false;
    memcpy(base, name, SNAPSHOT_NAME_SIZE);
    base[SNAPSHOT_NAME_SIZE] = '\0';
    return io_snapshot_name_parse(base, &position);
}

static bool note_name(void *context, const char *name, bool is_dir)
{
    struct removal *removal = context;
    uint64_t position;
    bool snapshot = !is_dir && io_snapshot_name_parse(name, &position);

    if (removal->counting) {
        removal->count += snapshot ? 1 : 0;
        return true;
    }
    if (snapshot)
        removal->seen++;
    if ((snapshot && removal->seen + removal->keep <= removal->count) ||
        (!is_dir && is_leftover(name)))
        memcpy(removal->names[removal->noted++], name, strlen(name) + 1);
    return removal->noted < REMOVE_AT_ONCE;
}

static enum ron_err remove_noted(struct io_vfs *vfs, const char *dir, const struct removal *removal,
                                 uint64_t *removed, struct ron_errinfo *reterr) RON_BLOCKS
{
    for (size_t i = 0; i < removal->noted; i++) {
        char path[IO_PATH_MAX + 1];
        int size = snprintf(path, sizeof(path), "%s%s%s", dir, dir[0] == '\0' ? "" : "/",
                            removal->names[i]);
        enum ron_err err;

        if (size < 0 || (size_t)size >= sizeof(path))
            return ron_fail(reterr, RON_ERR_TOO_LARGE, "the path of %s", removal->names[i]);
        err = io_vfs_unlink(vfs, path, reterr);
        if (err != RON_ERR_OK)
            return err;
        (*removed)++;
    }
    return RON_ERR_OK;
}

enum ron_err io_snapshot_retain(struct io_vfs *vfs, const char *dir, size_t keep,
                                uint64_t *ret_removed, struct ron_errinfo *reterr)
{
    uint64_t removed = 0;
    struct removal *removal;
    enum ron_err err;

    RON_ASSERT(keep > 0);
    removal = ron_mem_alloc(sizeof(*removal));
    if (removal == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "names of old snapshots");
    do {
        *removal = (struct removal){.keep = keep, .counting = true};
        err = io_vfs_list(vfs, dir, note_name, removal, reterr);
        removal->counting = false;
        if (err == RON_ERR_OK)
            err = io_vfs_list(vfs, dir, note_name, removal, reterr);
        if (err == RON_ERR_OK)
            err = remove_noted(vfs, dir, removal, &removed, reterr);
    } while (err == RON_ERR_OK && removal->noted == REMOVE_AT_ONCE);
    ron_mem_free(removal);
    if (err == RON_ERR_OK && removed > 0)
        err = io_vfs_sync_dir(vfs, dir, reterr);
    if (err == RON_ERR_OK)
        *ret_removed = removed;
    return err;
}
