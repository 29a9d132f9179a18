/*
 * damage.c - the mark of damage: a line of JSON. See damage.h.
 */
#include "ledger/damage.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/hex.h"
#include "base/json_dto.h"
#include "base/json_write.h"
#include "io/durable.h"
#include "rt/lock.h"

enum { MARK_SIZE_MAX = 4096, CODE_SIZE_MAX = 63 };

struct mark {
    uint64_t present;
    struct ron_slice error, file, message, last_good_root;
    uint64_t offset, found_ms, last_good_seq;
};
static const struct ron_json_field mark_fields[] = {
    RON_JSON_FIELD_STRING(struct mark, error, 0, 1, CODE_SIZE_MAX, NULL),
    RON_JSON_FIELD_STRING(struct mark, file, 0, 0, LEDGER_DAMAGE_FILE_SIZE - 1, NULL),
    RON_JSON_FIELD_U64(struct mark, offset, 0, UINT64_MAX),
    RON_JSON_FIELD_U64(struct mark, last_good_seq, 0, UINT64_MAX),
    RON_JSON_FIELD_STRING(struct mark, last_good_root, 0, RON_HEX_SIZE(RON_SHA256_SIZE) - 1,
                          RON_HEX_SIZE(RON_SHA256_SIZE) - 1, NULL),
    RON_JSON_FIELD_U64(struct mark, found_ms, 0, UINT64_MAX),
    RON_JSON_FIELD_STRING(struct mark, message, 0, 0, RON_ERR_MESSAGE_SIZE - 1, NULL),
};
static const struct ron_json_dto mark_dto = RON_JSON_DTO(struct mark, mark_fields);

static void put_u64(struct ron_json_writer *writer, const char *name, uint64_t value)
{
    ron_json_put_name(writer, name);
    ron_json_put_u64(writer, value);
}

static void put_text(struct ron_json_writer *writer, const char *name, const char *text)
{
    ron_json_put_name(writer, name);
    ron_json_put_text(writer, text);
}

enum ron_err ledger_damage_mark(struct io_vfs *vfs, const char *path,
                                const struct ledger_damage *damage, struct ron_errinfo *reterr)
{
    char root[RON_HEX_SIZE(RON_SHA256_SIZE)];
    struct ron_json_writer writer;
    struct ron_buf buf;
    enum ron_err err;

    rt_assert_no_lock_held();
    (void)ron_hex_encode(ron_slice_of(damage->good_root.bytes, RON_SHA256_SIZE), root,
                         sizeof(root));
    ron_buf_init(&buf, MARK_SIZE_MAX);
    ron_json_writer_init(&writer, &buf, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    put_text(&writer, "error", ron_err_symbol(damage->info.err));
    put_text(&writer, "file", damage->place.file);
    put_u64(&writer, "offset", damage->place.offset);
    put_u64(&writer, "last_good_seq", damage->good_seq);
    put_text(&writer, "last_good_root", root);
    put_u64(&writer, "found_ms", damage->found_ms);
    put_text(&writer, "message", damage->info.message);
    ron_json_put_object_end(&writer);
    err = ron_buf_check(&buf, reterr);
    if (err == RON_ERR_OK)
        err = io_durable_replace(vfs, path, ron_buf_slice(&buf), reterr);
    ron_buf_fini(&buf);
    return err;
}

/* By its symbol: wire codes are shared. What a newer version wrote is damage all the same. */
static enum ron_err error_of(struct ron_slice symbol)
{
    for (unsigned i = RON_ERR_OK + 1; i < RON_ERR__MAX; i++)
        if (ron_slice_equal(symbol, ron_slice_text(ron_err_symbol((enum ron_err)i))))
            return (enum ron_err)i;
    return RON_ERR_WAL_CORRUPT;
}

static enum ron_err decode(struct ron_slice text, struct ledger_damage *ret_damage,
                           struct ron_errinfo *reterr)
{
    struct ledger_damage damage = {.found_ms = 0};
    struct ron_arena arena = {0};
    struct mark mark;
    size_t size = 0;
    enum ron_err err = ron_arena_init(&arena, (size_t)2 * MARK_SIZE_MAX, reterr);

    if (err == RON_ERR_OK)
        err = ron_json_dto_read(&mark_dto, text, &arena, &mark, reterr);
    if (err == RON_ERR_OK)
        err = ron_hex_decode(mark.last_good_root, damage.good_root.bytes, RON_SHA256_SIZE, &size,
                             reterr);
    if (err == RON_ERR_OK) {
        (void)ron_fail(&damage.info, error_of(mark.error), "%.*s", (int)mark.message.size,
                       (const char *)mark.message.data);
        (void)snprintf(damage.place.file, sizeof(damage.place.file), "%.*s", (int)mark.file.size,
                       (const char *)mark.file.data);
        damage.place.offset = mark.offset;
        damage.found_ms = mark.found_ms;
        damage.good_seq = mark.last_good_seq;
        *ret_damage = damage;
    }
    ron_arena_fini(&arena);
    return err;
}

enum ron_err ledger_damage_read(struct io_vfs *vfs, const char *path,
                                struct ledger_damage *ret_damage, struct ron_errinfo *reterr)
{
    uint8_t bytes[MARK_SIZE_MAX];
    struct io_file *file = NULL;
    size_t size = 0;
    enum ron_err err;

    rt_assert_no_lock_held();
    err = io_vfs_open(vfs, path, IO_OPEN_READ, &file, reterr);
    if (err != RON_ERR_OK)
        return err;
    err = io_file_read(file, 0, bytes, sizeof(bytes), &size, reterr);
    (void)io_file_close(file);
    return err == RON_ERR_OK ? decode(ron_slice_of(bytes, size), ret_damage, reterr) : err;
}

enum ron_err ledger_damage_unmark(struct io_vfs *vfs, const char *path, struct ron_errinfo *reterr)
{
    char dir[IO_PATH_MAX + 1];
    struct ron_errinfo info = {0};
    enum ron_err err;

    rt_assert_no_lock_held();
    io_dir_of(path, dir);
    err = io_vfs_unlink(vfs, path, &info);
    if (err == RON_ERR_OK || err == RON_ERR_NOT_FOUND)
        return io_vfs_sync_dir(vfs, dir, reterr);
    if (reterr != NULL)
        *reterr = info;
    return err;
}
