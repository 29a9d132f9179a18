/*
 * backup.c - see backup.h.
 */
#include "ledger/backup.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/hex.h"
#include "base/json_dto.h"
#include "base/json_write.h"
#include "base/mem.h"
#include "base/merkle_hash.h"
#include "base/rfc3339.h"
#include "io/log_check.h"
#include "io/replace.h"
#include "ledger/core_frame.h"
#include "ledger/engine.h"
#include "rt/lock.h"

enum { PIECE_SIZE = 1 << 20, NAMES_MAX = 65536, NOTE_SIZE_MAX = 4096, FRAMES_TICK = 256 };

/* In the order of the copy. */
static const struct {
    const char *dir;
    bool must;
} parts[] = {{"ledger/tiles", false},
             {"ledger/snapshots", false},
             {"ledger/state", false},
             {"ledger/slices", false},
             {"ledger/log", true}};
#define KEY_FILE  "ledger/log.key"
#define NOTE_FILE "backup.json"

struct names {
    char (*items)[IO_NAME_MAX + 1];
    size_t count;
    bool full;
};

struct copying {
    const struct ledger_copy_options *options;
    struct ledger_copy_report *report;
    uint8_t *piece;
    struct names names;
    unsigned there;   /* directories of the target that were there before: bits, see above_parts */
    const char *part; /* for tick */
    uint64_t part_done, part_total;
};

struct path {
    char text[IO_PATH_MAX + 1];
};

static enum ron_err path_of(struct path *path, const char *dir, const char *part, const char *name,
                            struct ron_errinfo *reterr)
{
    const int size = snprintf(path->text, sizeof(path->text), "%s%s%s%s%s", dir,
                              dir[0] != '\0' ? "/" : "", part, name[0] != '\0' ? "/" : "", name);

    if (size < 0 || size > IO_PATH_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "path %s/%s/%s", dir, part, name);
    return RON_ERR_OK;
}

static bool add_name(void *context, const char *name, bool is_dir)
{
    struct names *names = context;
    const size_t size = strlen(name);

    if (is_dir || (size > 4 && strcmp(name + size - 4, ".new") == 0))
        return true; /* not whole yet */
    if (names->count == NAMES_MAX || size > IO_NAME_MAX) {
        names->full = true;
        return false;
    }
    memcpy(names->items[names->count++], name, size + 1);
    return true;
}

/* --- One file --------------------------------------------------------------------------------- */

static enum ron_err tick(struct copying *copying, struct ron_errinfo *reterr)
{
    const struct ledger_copy_options *options = copying->options;

    return options->tick == NULL ? RON_ERR_OK
                                 : options->tick(options->context, copying->part,
                                                 copying->part_done, copying->part_total, reterr);
}

static enum ron_err copy_bytes(struct copying *copying, struct io_file *from, struct io_file *to,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t end = 0;
    enum ron_err err = io_file_size(from, &end, reterr);

    copying->report->bytes_count += end;
    while (err == RON_ERR_OK && end > 0) { /* from the end: see backup.h */
        const uint64_t at = (end - 1) / PIECE_SIZE * PIECE_SIZE;
        struct ron_slice part = {copying->piece, 0};

        err = io_file_read(from, at, copying->piece, (size_t)(end - at), &part.size, reterr);
        if (err == RON_ERR_OK && part.size > 0)
            err = io_file_write(to, at, &part, 1, reterr);
        if (err == RON_ERR_OK)
            err = tick(copying, reterr);
        end = at;
    }
    return err == RON_ERR_OK ? io_file_sync(to, reterr) : err;
}

/* A file that is gone by now was not needed. */
static enum ron_err copy_file(struct copying *copying, const char *part, const char *name,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ledger_copy_options *options = copying->options;
    struct io_file *from = NULL, *to = NULL;
    struct ron_errinfo info = {0};
    struct path path;
    enum ron_err err = path_of(&path, options->from_dir, part, name, &info);

    if (err == RON_ERR_OK)
        err = io_vfs_open(options->from, path.text, IO_OPEN_READ, &from, &info);
    if (err == RON_ERR_NOT_FOUND)
        return RON_ERR_OK;
    if (err == RON_ERR_OK)
        err = path_of(&path, options->to_dir, part, name, &info);
    if (err == RON_ERR_OK)
        err = io_vfs_open(options->to, path.text, IO_OPEN_CREATE, &to, &info);
    if (err == RON_ERR_OK)
        err = copy_bytes(copying, from, to, &info);
    (void)io_file_close(to);
    (void)io_file_close(from);
    copying->report->files_count++;
    if (err != RON_ERR_OK && reterr != NULL)
        *reterr = info;
    return err;
}

/* --- Directories ------------------------------------------------------------------------------ */

/* It says how much there must be of the others. */
static bool is_first(const char *name)
{
    return strcmp(name, "checkpoint") == 0 || strcmp(name, "head") == 0 ||
           strcmp(name, "owner") == 0;
}

static enum ron_err list_part(struct copying *copying, struct io_vfs *vfs, const char *dir,
                              const char *part, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct names *names = &copying->names;
    struct path path;
    enum ron_err err = path_of(&path, dir, part, "", reterr);

    names->count = 0;
    names->full = false;
    if (err == RON_ERR_OK)
        err = io_vfs_list(vfs, path.text, add_name, names, reterr);
    if (err == RON_ERR_OK && names->full)
        err = ron_fail(reterr, RON_ERR_TOO_LARGE, "%s: more than %d files", path.text, NAMES_MAX);
    return err;
}

/* Every file in it, last name first; what says how much there must be before all others. */
static enum ron_err copy_part(struct copying *copying, const char *part, bool must,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ledger_copy_options *options = copying->options;
    struct names *names = &copying->names;
    struct ron_errinfo info = {0};
    struct path path;
    enum ron_err err = list_part(copying, options->from, options->from_dir, part, &info);

    if (err == RON_ERR_NOT_FOUND && !must)
        return RON_ERR_OK;
    copying->part = part;
    copying->part_total = names->count;
    copying->part_done = 0;
    if (err == RON_ERR_OK)
        err = path_of(&path, options->to_dir, part, "", &info);
    if (err == RON_ERR_OK)
        err = io_vfs_make_dir(options->to, path.text, &info);
    for (size_t i = 0; err == RON_ERR_OK && i < names->count; i++)
        if (is_first(names->items[i]))
            err = copy_file(copying, part, names->items[i], &info);
    for (size_t i = names->count; err == RON_ERR_OK && i > 0; i--) {
        copying->part_done = names->count - i;
        if (!is_first(names->items[i - 1]))
            err = copy_file(copying, part, names->items[i - 1], &info);
    }
    if (err == RON_ERR_OK)
        err = io_vfs_sync_dir(options->to, path.text, &info);
    if (err != RON_ERR_OK && reterr != NULL)
        *reterr = info;
    return err;
}

struct looking {
    const char *expected; /* the one directory that may be there; NULL: none */
    bool used;
};

static bool look(void *context, const char *name, bool is_dir)
{
    struct looking *looking = context;

    if (!is_dir || looking->expected == NULL)
        looking->used = true;
    else if (looking->expected[0] != '\0' && strcmp(name, looking->expected) != 0)
        looking->used = true;
    return !looking->used;
}

static enum ron_err check_unused(const struct ledger_copy_options *options, const char *part,
                                 const char *expected, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct looking looking = {.expected = expected};
    struct ron_errinfo info = {0};
    struct path path = {""};
    enum ron_err err = RON_ERR_OK;

    if (part[0] != '\0')
        err = path_of(&path, options->to_dir, part, "", &info);
    else
        (void)snprintf(path.text, sizeof(path.text), "%s", options->to_dir);
    if (err == RON_ERR_OK)
        err = io_vfs_list(options->to, path.text, look, &looking, &info);
    if (err == RON_ERR_NOT_FOUND)
        return RON_ERR_OK;
    if (err == RON_ERR_OK && looking.used)
        err = ron_fail(&info, RON_ERR_CONFLICT, "%s%s%s: not empty", io_vfs_name(options->to),
                       path.text[0] != '\0' ? "/" : "", path.text);
    if (err != RON_ERR_OK && reterr != NULL)
        *reterr = info;
    return err;
}

/* Nothing but directories that an earlier attempt has left. */
static enum ron_err check_target(const struct ledger_copy_options *options,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = check_unused(options, "", "ledger", reterr);

    if (err == RON_ERR_OK)
        err = check_unused(options, "ledger", "", reterr);
    for (size_t i = 0; err == RON_ERR_OK && i < RON_ARRAY_COUNT(parts); i++)
        err = check_unused(options, parts[i].dir, NULL, reterr);
    return err;
}

static enum ron_err sync_above(const struct ledger_copy_options *options,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct path path;
    enum ron_err err = path_of(&path, options->to_dir, "ledger", "", reterr);

    if (err == RON_ERR_OK)
        err = io_vfs_sync_dir(options->to, path.text, reterr);
    if (err == RON_ERR_OK)
        err = io_vfs_sync_dir(options->to, options->to_dir, reterr);
    return err;
}

/* The parts, then what they are in: each is behind all that is in it. */
static const char *const above_parts[] = {"ledger", ""};
enum { DIRS_COUNT = RON_ARRAY_COUNT(parts) + RON_ARRAY_COUNT(above_parts) };

static bool target_dir(const struct ledger_copy_options *options, unsigned i, struct path *path)
{
    const char *name = i < RON_ARRAY_COUNT(parts) ? parts[i].dir
                                                  : above_parts[i - RON_ARRAY_COUNT(parts)];

    if (name[0] != '\0')
        return path_of(path, options->to_dir, name, "", NULL) == RON_ERR_OK;
    (void)snprintf(path->text, sizeof(path->text), "%s", options->to_dir);
    return path->text[0] != '\0'; /* the root is whose it is */
}

static bool ignore(void *context, const char *name, bool is_dir)
{
    (void)context;
    (void)name;
    (void)is_dir;
    return false;
}

static unsigned dirs_there(const struct ledger_copy_options *options) RON_BLOCKS
{
    unsigned there = 0;
    struct path path;

    for (unsigned i = 0; i < DIRS_COUNT; i++)
        if (target_dir(options, i, &path) &&
            io_vfs_list(options->to, path.text, ignore, NULL, NULL) != RON_ERR_NOT_FOUND)
            there |= 1U << i;
    return there;
}

static void drop_dirs(const struct copying *copying) RON_BLOCKS
{
    struct path path;

    for (unsigned i = 0; i < DIRS_COUNT; i++)
        if ((copying->there & 1U << i) == 0 && target_dir(copying->options, i, &path))
            io_vfs_drop_dir(copying->options->to, path.text);
}

static bool has_key(const struct ledger_copy_options *options) RON_BLOCKS
{
    struct io_file *file = NULL;
    struct path path;
    const bool there = path_of(&path, options->to_dir, KEY_FILE, "", NULL) == RON_ERR_OK &&
                       io_vfs_open(options->to, path.text, IO_OPEN_READ, &file, NULL) == RON_ERR_OK;

    (void)io_file_close(file);
    return there;
}

static enum ron_err copy_all(struct copying *copying, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ledger_copy_options *options = copying->options;
    enum ron_err err = RON_ERR_OK;

    for (size_t i = 0; err == RON_ERR_OK && i < RON_ARRAY_COUNT(parts); i++)
        err = copy_part(copying, parts[i].dir, parts[i].must, reterr);
    if (err == RON_ERR_OK && options->with_key)
        err = copy_file(copying, KEY_FILE, "", reterr);
    if (err == RON_ERR_OK)
        err = sync_above(options, reterr);
    return err;
}

enum ron_err ledger_copy(const struct ledger_copy_options *options,
                         struct ledger_copy_report *ret_report, struct ron_errinfo *reterr)
{
    struct copying copying = {.options = options, .report = ret_report};
    enum ron_err err = check_target(options, reterr);

    rt_assert_no_lock_held();
    *ret_report = (struct ledger_copy_report){.files_count = 0};
    if (err != RON_ERR_OK)
        return err;
    copying.there = dirs_there(options);
    copying.piece = ron_mem_alloc(PIECE_SIZE);
    copying.names.items = ron_mem_alloc_array(NAMES_MAX, sizeof(copying.names.items[0]));
    if (copying.piece == NULL || copying.names.items == NULL)
        err = ron_fail(reterr, RON_ERR_NO_MEMORY, "memory for a copy");
    else
        err = copy_all(&copying, reterr);
    (void)ron_mem_free(copying.piece);
    (void)ron_mem_free(copying.names.items);
    if (err == RON_ERR_OK) {
        ret_report->has_key = has_key(options);
    } else {
        ledger_copy_remove(options->to, options->to_dir);
        drop_dirs(&copying);
    }
    return err;
}

/* --- Removal ---------------------------------------------------------------------------------- */

struct removal {
    char name[IO_NAME_MAX + 1]; /* empty: none is left */
};

static bool take_first(void *context, const char *name, bool is_dir)
{
    struct removal *removal = context;

    if (!is_dir && strlen(name) <= IO_NAME_MAX)
        (void)snprintf(removal->name, sizeof(removal->name), "%s", name);
    return removal->name[0] == '\0';
}

static bool remove_file(struct io_vfs *vfs, const char *dir, const char *part,
                        const char *name) RON_BLOCKS
{
    struct path path;

    return path_of(&path, dir, part, name, NULL) == RON_ERR_OK &&
           io_vfs_unlink(vfs, path.text, NULL) == RON_ERR_OK;
}

void ledger_copy_remove(struct io_vfs *vfs, const char *dir)
{
    struct path path;

    (void)remove_file(vfs, dir, NOTE_FILE, "");
    (void)remove_file(vfs, dir, KEY_FILE, "");
    for (size_t i = 0; i < RON_ARRAY_COUNT(parts); i++) {
        struct removal removal;

        do { /* until none is left, or one cannot be removed */
            removal.name[0] = '\0';
            if (path_of(&path, dir, parts[i].dir, "", NULL) != RON_ERR_OK ||
                io_vfs_list(vfs, path.text, take_first, &removal, NULL) != RON_ERR_OK ||
                removal.name[0] == '\0')
                break;
        } while (remove_file(vfs, dir, parts[i].dir, removal.name));
    }
}

/* --- Reading it again ------------------------------------------------------------------------- */

struct checking {
    const struct ledger_copy_options *options;
    struct ledger_backup_note *note;
    uint64_t last; /* the batch to look into; 0: none yet */
};

static enum ron_err see_frame(void *context, const struct io_frame *frame, uint64_t segment,
                              uint64_t offset, struct ron_errinfo *reterr)
{
    struct checking *checking = context;
    const struct ledger_copy_options *options = checking->options;
    struct ledger_frame batch;
    enum ron_err err = RON_ERR_OK;

    (void)segment;
    (void)offset;
    if (options->tick != NULL && frame->index % FRAMES_TICK == 0)
        err = options->tick(options->context, "check", frame->index, checking->last, reterr);
    if (err != RON_ERR_OK || frame->index != checking->last)
        return err;
    err = ledger_frame_decode(frame->body, &batch, reterr);
    if (err != RON_ERR_OK)
        return ron_wrap(reterr, RON_ERR_WAL_CORRUPT, "batch %llu",
                        (unsigned long long)frame->index);
    checking->note->entries_count = batch.seq_start + batch.entries_count - 1;
    checking->note->root = batch.root;
    return RON_ERR_OK;
}

enum ron_err ledger_copy_check(const struct ledger_copy_options *options,
                               struct ledger_backup_note *ret_note, struct ron_errinfo *reterr)
{
    struct ledger_backup_note note = {.root = ron_merkle_empty, .has_key = has_key(options)};
    struct checking checking = {.options = options, .note = &note};
    struct io_log_check_options check = {
        .vfs = options->to, .visit = see_frame, .context = &checking};
    struct io_log_found found = {0};
    struct path path;
    enum ron_err err = path_of(&path, options->to_dir, "ledger/log", "", reterr);

    rt_assert_no_lock_held();
    check.dir = path.text;
    if (err == RON_ERR_OK)
        err = io_log_check(&check, &found, reterr);
    if (err == RON_ERR_OK && found.kind != LEDGER_LOG_KIND)
        err = ron_fail(reterr, RON_ERR_MALFORMED, "%s: not the log of a ledger", path.text);
    if (err == RON_ERR_OK && found.first_index > 1)
        err = ron_fail(reterr, RON_ERR_WAL_CORRUPT, "%s begins with batch %llu", path.text,
                       (unsigned long long)found.first_index);
    if (err == RON_ERR_OK && found.last_index > 0) { /* what is beyond is torn */
        check.from = checking.last = found.last_index;
        err = io_log_check(&check, &found, reterr);
    }
    if (err == RON_ERR_OK)
        *ret_note = note;
    return err;
}

/* --- The note --------------------------------------------------------------------------------- */

struct note_body {
    uint64_t present;
    uint64_t entries;
    struct ron_slice root, made_at;
    bool key;
};
static const struct ron_json_field note_fields[] = {
    RON_JSON_FIELD_U64(struct note_body, entries, 0, UINT64_MAX),
    RON_JSON_FIELD_STRING(struct note_body, root, 0, 64, 64, NULL),
    RON_JSON_FIELD_STRING(struct note_body, made_at, 0, 20, 32, NULL),
    RON_JSON_FIELD_BOOL(struct note_body, key, 0),
};
static const struct ron_json_dto note_dto = RON_JSON_DTO(struct note_body, note_fields);

static void put_note(struct ron_json_writer *writer, const struct ledger_backup_note *note)
{
    char root[RON_HEX_SIZE(RON_SHA256_SIZE)], made_at[RON_RFC3339_SIZE];

    (void)ron_hex_encode(ron_slice_of(note->root.bytes, RON_SHA256_SIZE), root, sizeof(root));
    ron_rfc3339_print(note->made_ms, made_at);
    ron_json_put_object_begin(writer);
    ron_json_put_name(writer, "entries");
    ron_json_put_u64(writer, note->entries_count);
    ron_json_put_name(writer, "root");
    ron_json_put_string(writer, ron_slice_text(root));
    ron_json_put_name(writer, "made_at");
    ron_json_put_string(writer, ron_slice_text(made_at));
    ron_json_put_name(writer, "key");
    ron_json_put_bool(writer, note->has_key);
    ron_json_put_object_end(writer);
}

enum ron_err ledger_backup_note_write(struct io_vfs *vfs, const char *dir,
                                      const struct ledger_backup_note *note,
                                      struct ron_errinfo *reterr)
{
    struct ron_json_writer writer;
    struct io_replace replace;
    struct ron_slice text;
    struct ron_buf buf;
    struct path path;
    enum ron_err err = path_of(&path, dir, NOTE_FILE, "", reterr);

    ron_buf_init(&buf, NOTE_SIZE_MAX);
    ron_json_writer_init(&writer, &buf, RON_JSON_FIXED);
    put_note(&writer, note);
    if (err == RON_ERR_OK)
        err = ron_json_writer_end(&writer, reterr);
    text = ron_buf_slice(&buf);
    if (err == RON_ERR_OK)
        err = io_replace_begin(&replace, vfs, path.text, reterr);
    if (err == RON_ERR_OK) {
        err = io_file_write(replace.file, 0, &text, 1, reterr);
        if (err == RON_ERR_OK)
            err = io_replace_commit(&replace, reterr);
        else
            io_replace_abandon(&replace);
    }
    ron_buf_fini(&buf);
    return err;
}

static enum ron_err read_note(struct ron_slice text, struct ledger_backup_note *ret_note,
                              struct ron_errinfo *reterr)
{
    struct note_body body = {.present = 0};
    struct ledger_backup_note note;
    struct ron_arena arena = {0};
    size_t size;
    enum ron_err err = ron_arena_init(&arena, 2 * NOTE_SIZE_MAX, reterr);

    if (err == RON_ERR_OK)
        err = ron_json_dto_read(&note_dto, text, &arena, &body, reterr);
    if (err == RON_ERR_OK)
        err = ron_hex_decode(body.root, note.root.bytes, RON_SHA256_SIZE, &size, reterr);
    if (err == RON_ERR_OK)
        err = ron_rfc3339_parse(body.made_at, &note.made_ms, reterr);
    if (err == RON_ERR_OK) {
        note.entries_count = body.entries;
        note.has_key = body.key;
        *ret_note = note;
    }
    ron_arena_fini(&arena);
    return err;
}

enum ron_err ledger_backup_note_read(struct io_vfs *vfs, const char *dir,
                                     struct ledger_backup_note *ret_note,
                                     struct ron_errinfo *reterr)
{
    uint8_t text[NOTE_SIZE_MAX];
    struct io_file *file = NULL;
    struct path path;
    size_t size = 0;
    enum ron_err err = path_of(&path, dir, NOTE_FILE, "", reterr);

    if (err == RON_ERR_OK)
        err = io_vfs_open(vfs, path.text, IO_OPEN_READ, &file, reterr);
    if (err == RON_ERR_OK)
        err = io_file_read(file, 0, text, sizeof(text), &size, reterr);
    (void)io_file_close(file);
    if (err != RON_ERR_OK)
        return err;
    err = read_note(ron_slice_of(text, size), ret_note, reterr);
    return err == RON_ERR_OK ? RON_ERR_OK : ron_wrap(reterr, err, "%s", path.text);
}
