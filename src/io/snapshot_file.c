/*
 * snapshot_file.c - find, check and read a snapshot. See snapshot_file.h.
 */
#include "io/snapshot_file.h"

#include "base/assert.h"
#include "base/mem.h"
#include "io/snapshot_file_format.h"

struct io_snapshot {
    struct io_file *file;
    struct snapshot_head head;
    uint64_t chunks_count;
    struct ron_b3 *hashes; /* of each chunk, as it was when the whole fitted */
    uint64_t chunk_at;     /* number of the chunk in memory; UINT64_MAX for none */
    uint8_t chunk[IO_SNAPSHOT_CHUNK_SIZE];
};

static size_t chunk_size(const struct io_snapshot *snapshot, uint64_t chunk)
{
    uint64_t left = snapshot->head.info.size - chunk * IO_SNAPSHOT_CHUNK_SIZE;

    RON_ASSERT(chunk < snapshot->chunks_count);
    return left < IO_SNAPSHOT_CHUNK_SIZE ? (size_t)left : IO_SNAPSHOT_CHUNK_SIZE;
}

static enum ron_err read_exactly(struct io_file *file, uint64_t offset, void *bytes, size_t size,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    size_t done = 0;
    enum ron_err err = io_file_read(file, offset, bytes, size, &done, reterr);

    if (err == RON_ERR_OK && done != size)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "the file ends at byte %llu",
                        (unsigned long long)(offset + done));
    return err;
}

static enum ron_err read_chunk(struct io_snapshot *snapshot, uint64_t chunk,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err;

    snapshot->chunk_at = UINT64_MAX;
    err = read_exactly(snapshot->file, SNAPSHOT_HEAD_SIZE + chunk * IO_SNAPSHOT_CHUNK_SIZE,
                       snapshot->chunk, chunk_size(snapshot, chunk), reterr);
    if (err == RON_ERR_OK)
        snapshot->chunk_at = chunk;
    return err;
}

static enum ron_err check_head(struct io_snapshot *snapshot, uint32_t kind, uint64_t position,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    uint8_t bytes[SNAPSHOT_HEAD_SIZE];
    const struct io_snapshot_info *info = &snapshot->head.info;
    uint64_t file_size = 0;
    enum ron_err err = io_file_size(snapshot->file, &file_size, reterr);

    if (err == RON_ERR_OK)
        err = read_exactly(snapshot->file, 0, bytes, sizeof(bytes), reterr);
    if (err == RON_ERR_OK)
        err = io_snapshot_head_decode(bytes, &snapshot->head, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (info->position != position)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "it was cut at %llu",
                        (unsigned long long)info->position);
    if (info->kind != kind)
        return ron_fail(reterr, RON_ERR_VERSION_SKEW, "of kind %u instead of %u", info->kind, kind);
    if (info->size != file_size - SNAPSHOT_HEAD_SIZE)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "%llu bytes of content instead of %llu",
                        (unsigned long long)(file_size - SNAPSHOT_HEAD_SIZE),
                        (unsigned long long)info->size);
    return RON_ERR_OK;
}

/* Hash the whole and each chunk in one pass. */
static enum ron_err check_content(struct io_snapshot *snapshot,
                                  struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct io_snapshot_info *info = &snapshot->head.info;
    struct ron_b3_ctx ctx;
    struct ron_b3 hash;

    snapshot->chunks_count = info->size / IO_SNAPSHOT_CHUNK_SIZE +
                             (info->size % IO_SNAPSHOT_CHUNK_SIZE != 0);
    snapshot->hashes = ron_mem_alloc_array(snapshot->chunks_count + 1, sizeof(*snapshot->hashes));
    if (snapshot->hashes == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "the hashes of %llu chunks",
                        (unsigned long long)snapshot->chunks_count);
    ron_b3_init(&ctx);
    for (uint64_t chunk = 0; chunk < snapshot->chunks_count; chunk++) {
        size_t size = chunk_size(snapshot, chunk);
        enum ron_err err = read_chunk(snapshot, chunk, reterr);

        if (err != RON_ERR_OK)
            return err;
        ron_b3_update(&ctx, snapshot->chunk, size);
        snapshot->hashes[chunk] = ron_b3(snapshot->chunk, size);
    }
    hash = ron_b3_final(&ctx);
    if (memcmp(&hash, &info->hash, sizeof(hash)) != 0)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "the content does not fit its hash");
    return RON_ERR_OK;
}

static enum ron_err open_one(struct io_vfs *vfs, const char *dir, uint32_t kind, uint64_t position,
                             struct io_snapshot **ret_snapshot,
                             struct ron_errinfo *reterr) RON_BLOCKS
{
    char path[IO_PATH_MAX + 1];
    struct io_snapshot *snapshot;
    enum ron_err err = io_snapshot_path(dir, position, path, reterr);

    if (err != RON_ERR_OK)
        return err;
    snapshot = ron_mem_alloc(sizeof(*snapshot));
    if (snapshot == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "snapshot %s", path);
    snapshot->chunk_at = UINT64_MAX;
    err = io_vfs_open(vfs, path, IO_OPEN_READ, &snapshot->file, reterr);
    if (err == RON_ERR_OK)
        err = check_head(snapshot, kind, position, reterr);
    if (err == RON_ERR_OK)
        err = check_content(snapshot, reterr);
    if (err != RON_ERR_OK) {
        io_snapshot_close(snapshot);
        return ron_wrap(reterr, err, "snapshot %s", path);
    }
    *ret_snapshot = snapshot;
    return RON_ERR_OK;
}

/* The newest position below a bound. Listing again for each candidate keeps no list in memory; a
 * directory holds a handful. */
struct newest {
    uint64_t below; /* or at, if `at` is set */
    bool at;
    uint64_t position, ahead_count;
    bool found;
};

static bool note_newest(void *context, const char *name, bool is_dir)
{
    struct newest *newest = context;
    uint64_t position;

    if (is_dir || !io_snapshot_name_parse(name, &position))
        return true;
    if (position > newest->below || (position == newest->below && !newest->at)) {
        newest->ahead_count++;
        return true;
    }
    newest->found = true;
    newest->position = position;
    return true;
}

enum ron_err io_snapshot_open_newest(struct io_vfs *vfs, const char *dir, uint32_t kind,
                                     uint64_t position_max, struct io_snapshot **ret_snapshot,
                                     struct io_snapshot_search *ret_search,
                                     struct ron_errinfo *reterr)
{
    struct io_snapshot_search search = {0};
    struct ron_errinfo last = {0};
    struct newest newest = {.below = position_max, .at = true};
    enum ron_err err;

    for (;;) {
        err = io_vfs_list(vfs, dir, note_newest, &newest, reterr);
        if (newest.at)
            search.ahead_count = newest.ahead_count;
        if (err != RON_ERR_OK || !newest.found)
            break;
        err = open_one(vfs, dir, kind, newest.position, ret_snapshot, &last);
        if (err == RON_ERR_VERSION_SKEW) {
            search.foreign_count++;
        } else if (err == RON_ERR_WAL_CORRUPT || err == RON_ERR_IO || err == RON_ERR_NOT_FOUND) {
            search.damaged_count++;
        } else {
            if (err != RON_ERR_OK && reterr != NULL)
                *reterr = last;
            break;
        }
        newest = (struct newest){.below = newest.position};
    }
    if (ret_search != NULL)
        *ret_search = search;
    if (err != RON_ERR_OK || newest.found)
        return err;
    return ron_fail(reterr, RON_ERR_NOT_FOUND, "no usable snapshot in %s%s%s", dir,
                    last.err == RON_ERR_OK ? "" : ": ", last.message);
}

struct io_snapshot *io_snapshot_close(struct io_snapshot *snapshot)
{
    if (snapshot == NULL)
        return NULL;
    snapshot->file = io_file_close(snapshot->file);
    snapshot->hashes = ron_mem_free(snapshot->hashes);
    return ron_mem_free(snapshot);
}

const struct io_snapshot_info *io_snapshot_info(const struct io_snapshot *snapshot)
{
    return &snapshot->head.info;
}

/* Have the chunk in memory, as it was at open. */
static enum ron_err load_chunk(struct io_snapshot *snapshot, uint64_t chunk,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_b3 hash;
    enum ron_err err;

    if (snapshot->chunk_at == chunk)
        return RON_ERR_OK;
    err = read_chunk(snapshot, chunk, reterr);
    if (err != RON_ERR_OK)
        return err;
    hash = ron_b3(snapshot->chunk, chunk_size(snapshot, chunk));
    if (memcmp(&hash, &snapshot->hashes[chunk], sizeof(hash)) == 0)
        return RON_ERR_OK;
    snapshot->chunk_at = UINT64_MAX;
    return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "chunk %llu changed since it was opened",
                    (unsigned long long)chunk);
}

enum ron_err io_snapshot_read(struct io_snapshot *snapshot, uint64_t offset, void *bytes,
                              size_t size, struct ron_errinfo *reterr)
{
    const uint64_t all = snapshot->head.info.size;

    if (offset > all || size > all - offset)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "%zu bytes at %llu of a snapshot of %llu", size,
                        (unsigned long long)offset, (unsigned long long)all);
    while (size > 0) {
        uint64_t chunk = offset / IO_SNAPSHOT_CHUNK_SIZE;
        size_t at = (size_t)(offset % IO_SNAPSHOT_CHUNK_SIZE);
        size_t some = IO_SNAPSHOT_CHUNK_SIZE - at < size ? IO_SNAPSHOT_CHUNK_SIZE - at : size;
        enum ron_err err = load_chunk(snapshot, chunk, reterr);

        if (err != RON_ERR_OK)
            return ron_wrap(reterr, err, "snapshot %s", io_file_path(snapshot->file));
        memcpy(bytes, snapshot->chunk + at, some);
        bytes = (uint8_t *)bytes + some;
        offset += some;
        size -= some;
    }
    return RON_ERR_OK;
}
