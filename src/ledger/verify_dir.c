/*
 * verify_dir.c - see verify_dir.h.
 *
 * Two walks over the log: the first finds out that its bytes are whole and where it ends, the
 * second does every batch again. Beside the second one a tree grows, which is held against the
 * tiles leaf by leaf, and against everything that claims a root at some size (struct claim).
 */
#include "ledger/verify_dir.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"
#include "io/log_check.h"
#include "io/log_key.h"
#include "io/tlog.h"
#include "ledger/checkpoint_file.h"
#include "ledger/core_frame.h"
#include "ledger/engine.h"
#include "rt/lock.h"

enum { CLAIMS_MAX = 3, PROGRESS_STEP = 1 << 20, PART = 256 };

/* Somebody says that the log has this root at this size. */
struct claim {
    struct ron_tree tree;
    const char *link;
    char file[IO_PATH_MAX + 1];
};

struct verify {
    const struct ledger_verify_options *options;
    struct ledger_verify_report *report;
    char log_dir[IO_PATH_MAX + 1], tiles_dir[IO_PATH_MAX + 1];
    struct ledger_core *core;
    struct ledger_replay *replay;
    struct io_tlog *tiles;
    struct ron_sha256 tile[IO_TILE_WIDTH]; /* of leaves, the one looked at last */
    uint64_t tile_index;                   /* UINT64_MAX: none */
    struct ron_merkle_frontier frontier;
    struct claim claims[CLAIMS_MAX];
    size_t claims_count;
    char own_vkey[RON_VKEY_SIZE_MAX + 1]; /* of the key in the directory */
    uint64_t last_index;                  /* of the log; 0: first walk */
    /* Progress. */
    uint64_t total, told, base; /* base: bytes of what is done with */
    uint64_t segment, segment_size;
};

static enum ron_err put_path(char ret_path[IO_PATH_MAX + 1], const char *dir, const char *name,
                             struct ron_errinfo *reterr)
{
    const int size = snprintf(ret_path, IO_PATH_MAX + 1, "%s%s%s", dir, dir[0] != '\0' ? "/" : "",
                              name);

    if (size < 0 || size > IO_PATH_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "path %s/%s", dir, name);
    return RON_ERR_OK;
}

static enum ron_err broken(struct verify *v, const char *link, const char *file, uint64_t offset,
                           enum ron_err err)
{
    v->report->link = link;
    (void)snprintf(v->report->file, sizeof(v->report->file), "%s", file);
    v->report->offset = offset;
    return err;
}

/* Is it the data that is wrong, or only that it could not be looked at? */
static bool is_breach(enum ron_err err)
{
    return err == RON_ERR_WAL_CORRUPT || err == RON_ERR_MALFORMED ||
           err == RON_ERR_CHAIN_MISMATCH || err == RON_ERR_INVALID_SIGNATURE ||
           err == RON_ERR_CONFLICT;
}

/* --- Progress ----------------------------------------------------------------------------------
 */

static void tell(struct verify *v, uint64_t done)
{
    if (done > v->total)
        done = v->total; /* it grew while we read */
    if (v->options->progress == NULL || done == v->told ||
        (done < v->told + PROGRESS_STEP && done < v->total))
        return;
    v->told = done;
    v->options->progress(v->options->context, done, v->total);
}

static uint64_t file_size(struct verify *v, const char *dir, const char *name) RON_BLOCKS
{
    char path[IO_PATH_MAX + 1];
    struct io_file *file = NULL;
    uint64_t size = 0;

    if (put_path(path, dir, name, NULL) != RON_ERR_OK ||
        io_vfs_open(v->options->vfs, path, IO_OPEN_READ, &file, NULL) != RON_ERR_OK)
        return 0;
    if (io_file_size(file, &size, NULL) != RON_ERR_OK)
        size = 0;
    (void)io_file_close(file);
    return size;
}

static bool add_segment(void *context, const char *name, bool is_dir) RON_BLOCKS
{
    struct verify *v = context;

    if (!is_dir && strncmp(name, "seg-", 4) == 0)
        v->total += 2 * file_size(v, v->log_dir, name);
    return true;
}

static void segment_name(uint64_t segment, char ret_name[24])
{
    (void)snprintf(ret_name, 24, "seg-%016llx", (unsigned long long)segment);
}

static void at_frame(struct verify *v, uint64_t segment, uint64_t offset) RON_BLOCKS
{
    char name[24];

    if (segment != v->segment) {
        v->base += v->segment_size;
        segment_name(segment, name);
        v->segment = segment;
        v->segment_size = file_size(v, v->log_dir, name);
    }
    tell(v, v->base + offset);
}

static void end_walk(struct verify *v)
{
    v->base += v->segment_size;
    v->segment = v->segment_size = 0;
    tell(v, v->base);
}

/* --- The tree beside the log -------------------------------------------------------------------
 */

static enum ron_err check_claims(struct verify *v, struct ron_errinfo *reterr)
{
    const uint64_t size = v->frontier.leaves_count;
    const struct ron_sha256 root = ron_merkle_frontier_root(&v->frontier);

    for (size_t i = 0; i < v->claims_count; i++) {
        const struct claim *claim = &v->claims[i];

        if (claim->tree.size != size ||
            memcmp(claim->tree.root.bytes, root.bytes, RON_SHA256_SIZE) == 0)
            continue;
        return broken(v, claim->link, claim->file, 0,
                      ron_fail(reterr, RON_ERR_CHAIN_MISMATCH,
                               "%s: at size %llu the log has another root", claim->file,
                               (unsigned long long)size));
    }
    return RON_ERR_OK;
}

static enum ron_err check_leaf(struct verify *v, uint64_t index, const struct ron_sha256 *hash,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct io_tile tile = io_tile_at(v->report->tiles_size, 0, index / IO_TILE_WIDTH);
    char path[IO_PATH_MAX + 1];
    enum ron_err err = put_path(path, v->tiles_dir, "level-0", reterr);

    if (err == RON_ERR_OK && tile.index != v->tile_index) {
        err = io_tlog_tile(v->tiles, &tile, v->tile, reterr);
        v->tile_index = err == RON_ERR_OK ? tile.index : UINT64_MAX;
    }
    if (err == RON_ERR_OK &&
        memcmp(v->tile[index % IO_TILE_WIDTH].bytes, hash->bytes, RON_SHA256_SIZE) != 0)
        err = ron_fail(
            reterr, RON_ERR_CHAIN_MISMATCH, "%s at byte %llu: not the hash of entry %llu", path,
            (unsigned long long)index * RON_SHA256_SIZE, (unsigned long long)(index + 1));
    return is_breach(err) ? broken(v, "tiles", path, index * RON_SHA256_SIZE, err) : err;
}

/* Leaves of the log, in order: against the tiles, into the tree, against the claims. */
static enum ron_err add_leaves(struct verify *v, const struct ron_sha256 *hashes, size_t count,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_sha256 part[PART];
    enum ron_err err = RON_ERR_OK;

    while (count > 0 && err == RON_ERR_OK) {
        const uint64_t at = v->frontier.leaves_count;
        uint64_t size = count < PART ? count : PART;

        for (size_t i = 0; i < v->claims_count; i++)
            if (v->claims[i].tree.size > at && v->claims[i].tree.size - at < size)
                size = v->claims[i].tree.size - at;
        for (uint64_t i = 0; i < size && at + i < v->report->tiles_size && err == RON_ERR_OK; i++)
            err = check_leaf(v, at + i, &hashes[i], reterr);
        if (err != RON_ERR_OK)
            break;
        memcpy(part, hashes, size * sizeof(part[0]));
        ron_merkle_frontier_append(&v->frontier, part, size);
        err = check_claims(v, reterr);
        hashes += size;
        count -= size;
    }
    v->report->tree.size = v->frontier.leaves_count;
    v->report->tree.root = ron_merkle_frontier_root(&v->frontier);
    return err;
}

/* --- The log -----------------------------------------------------------------------------------
 */

static enum ron_err redo(struct verify *v, const struct io_frame *frame,
                         struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    enum ron_err err;

    if (frame->type != LEDGER_RECORD_BATCH)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "record %llu is of type %u",
                        (unsigned long long)frame->index, frame->type);
    err = ledger_replay_frame(v->replay, frame->body, &info);
    if (err == RON_ERR_OK)
        return RON_ERR_OK;
    if (reterr != NULL)
        *reterr = info;
    return info.err == RON_ERR_BUSY ? RON_ERR_BUSY : err; /* beyond the capacity proves nothing */
}

static enum ron_err visit(void *context, const struct io_frame *frame, uint64_t segment,
                          uint64_t offset, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct verify *v = context;
    const struct ledger_batch *batch;
    char name[24], path[IO_PATH_MAX + 1];
    enum ron_err err;

    at_frame(v, segment, offset);
    if (v->last_index == 0 || frame->index > v->last_index) /* a torn tail, or a newer one */
        return RON_ERR_OK;
    err = redo(v, frame, reterr);
    if (is_breach(err)) {
        segment_name(segment, name);
        if (put_path(path, v->log_dir, name, NULL) == RON_ERR_OK)
            (void)broken(v, "frames", path, offset, err);
    }
    if (err != RON_ERR_OK)
        return err;
    v->report->batches_count++;
    batch = ledger_replay_batch(v->replay);
    return add_leaves(v, batch->hashes, batch->entries_count, reterr);
}

static enum ron_err walk(struct verify *v, struct io_log_found *found,
                         struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct io_log_check_options options = {
        .vfs = v->options->vfs, .dir = v->log_dir, .visit = visit, .context = v};
    enum ron_err err = io_log_check(&options, found, reterr);

    if (is_breach(err) && v->report->link == NULL)
        (void)broken(v, "log", found->damage_file, found->damage_offset, err);
    end_walk(v);
    return err;
}

/* The bytes, then what they say. */
static enum ron_err check_log(struct verify *v, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_log_found found, again;
    const char *breach;
    enum ron_err err = walk(v, &found, reterr);

    v->report->segments_count = found.segments_count;
    v->report->bytes_count = found.bytes_count;
    v->report->torn_bytes = found.torn_bytes;
    if (err != RON_ERR_OK)
        return err;
    if (found.kind != LEDGER_LOG_KIND)
        return broken(
            v, "log", v->log_dir, 0,
            ron_fail(reterr, RON_ERR_MALFORMED, "%s: not the log of a ledger", v->log_dir));
    if (found.first_index != 1)
        return ron_fail(reterr, RON_ERR_PRUNED,
                        "%s begins with batch %llu: what was before is gone", v->log_dir,
                        (unsigned long long)found.first_index);
    err = check_claims(v, reterr); /* of size 0 */
    v->last_index = found.last_index;
    if (err == RON_ERR_OK && v->last_index > 0)
        err = walk(v, &again, reterr);
    if (err != RON_ERR_OK)
        return err;
    breach = ledger_core_check(v->core);
    if (breach != NULL)
        return broken(v, "state", v->log_dir, 0,
                      ron_fail(reterr, RON_ERR_WAL_CORRUPT, "after batch %llu: invariant %s",
                               (unsigned long long)v->report->batches_count, breach));
    return RON_ERR_OK;
}

/* --- What is derived from it, and signed -------------------------------------------------------
 */

static void add_claim(struct verify *v, const char *link, const char *file,
                      const struct ron_tree *tree)
{
    struct claim *claim = &v->claims[v->claims_count++];

    RON_ASSERT(v->claims_count <= CLAIMS_MAX);
    claim->tree = *tree;
    claim->link = link;
    (void)snprintf(claim->file, sizeof(claim->file), "%s", file);
}

static enum ron_err open_tiles(struct verify *v, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct io_tlog_options options = {
        .vfs = v->options->vfs, .dir = v->tiles_dir, .read_only = true};
    struct ron_tree tree;
    enum ron_err err = io_tlog_open(&options, &v->tiles, reterr);

    if (err != RON_ERR_OK)
        return is_breach(err) ? broken(v, "tiles", v->tiles_dir, 0, err) : err;
    tree.size = v->report->tiles_size = io_tlog_size(v->tiles);
    err = io_tlog_root(v->tiles, tree.size, &tree.root, reterr);
    if (err != RON_ERR_OK)
        return is_breach(err) ? broken(v, "tiles", v->tiles_dir, 0, err) : err;
    for (unsigned level = 0; level < IO_TILE_LEVELS; level++)
        v->total += (tree.size >> (8 * level)) * RON_SHA256_SIZE;
    add_claim(v, "tiles", v->tiles_dir, &tree);
    return RON_ERR_OK;
}

/* The public half of the key that lies beside the log. */
static enum ron_err find_own_key(struct verify *v, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ledger_verify_options *options = v->options;
    struct io_log_key *key = NULL;
    struct ron_errinfo info = {0};
    char path[IO_PATH_MAX + 1];
    enum ron_err err = put_path(path, options->dir, "log.key", &info);

    if (err == RON_ERR_OK)
        err = io_log_key_load(options->vfs, path, (struct ron_slice){NULL, 0}, &key, &info);
    if (err == RON_ERR_NOT_FOUND || err == RON_ERR_FORBIDDEN)
        return RON_ERR_OK;
    if (err != RON_ERR_OK) {
        if (reterr != NULL)
            *reterr = info;
        return is_breach(err) ? broken(v, "key", path, 0, err) : err;
    }
    (void)snprintf(v->own_vkey, sizeof(v->own_vkey), "%s", io_log_key_vkey(key));
    key = io_log_key_free(key);
    return RON_ERR_OK;
}

/* What signs the heads: given, else beside the log. UNCHECKED: nobody knows. */
static enum ron_err find_key(struct verify *v, struct ron_vkey *ret_vkey,
                             enum ledger_signature *ret_by, struct ron_errinfo *reterr) RON_BLOCKS
{
    const bool given = v->options->vkey.size > 0;
    enum ron_err err = given ? RON_ERR_OK : find_own_key(v, reterr);

    *ret_by = given                    ? LEDGER_SIGNATURE_BY_VKEY
              : v->own_vkey[0] != '\0' ? LEDGER_SIGNATURE_BY_OWN_KEY
                                       : LEDGER_SIGNATURE_UNCHECKED;
    if (err == RON_ERR_OK && *ret_by != LEDGER_SIGNATURE_UNCHECKED)
        err = ron_vkey_parse(given ? v->options->vkey : ron_slice_text(v->own_vkey), ret_vkey,
                             reterr);
    return err;
}

static enum ron_err open_checkpoints(struct verify *v, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ledger_verify_options *options = v->options;
    const struct ron_vkey *key = NULL;
    enum ledger_signature by;
    struct ron_vkey vkey;
    char path[IO_PATH_MAX + 1];
    struct ron_tree tree;
    enum ron_err err = put_path(path, v->tiles_dir, "checkpoint", reterr);

    if (err == RON_ERR_OK)
        err = find_key(v, &vkey, &by, reterr);
    if (err != RON_ERR_OK)
        return err;
    key = by == LEDGER_SIGNATURE_UNCHECKED ? NULL : &vkey;
    err = ledger_checkpoint_load(options->vfs, v->tiles_dir, key, &tree, reterr);
    if (err != RON_ERR_OK)
        return is_breach(err) ? broken(v, "checkpoint", path, 0, err) : err;
    v->report->checkpoint_size = tree.size;
    v->report->signature = tree.size == 0 ? LEDGER_SIGNATURE_NO_HEAD : by;
    add_claim(v, "checkpoint", path, &tree);
    if (options->note.size == 0)
        return RON_ERR_OK;
    err = ledger_checkpoint_read(options->note, key, &tree, reterr);
    if (err != RON_ERR_OK)
        return is_breach(err) ? broken(v, "note", "", 0, err) : err;
    v->report->note_signature = tree.size == 0 ? LEDGER_SIGNATURE_NO_HEAD : by;
    add_claim(v, "note", "", &tree);
    return RON_ERR_OK;
}

/* What counts more than the log has. */
static enum ron_err check_ahead(struct verify *v, struct ron_errinfo *reterr)
{
    for (size_t i = 0; i < v->claims_count; i++)
        if (v->claims[i].tree.size > v->report->tree.size)
            return broken(v, v->claims[i].link, v->claims[i].file, 0,
                          ron_fail(reterr, RON_ERR_CHAIN_MISMATCH,
                                   "%s: counts %llu entries, the log has %llu", v->claims[i].file,
                                   (unsigned long long)v->claims[i].tree.size,
                                   (unsigned long long)v->report->tree.size));
    return RON_ERR_OK;
}

/* Who brings a key asks for a signature: a head of no entry signs nothing of what is there. */
static enum ron_err check_signed(struct verify *v, struct ron_errinfo *reterr)
{
    char path[IO_PATH_MAX + 1];
    enum ron_err err = put_path(path, v->tiles_dir, "checkpoint", reterr);

    if (err != RON_ERR_OK || v->options->vkey.size == 0 ||
        v->report->signature != LEDGER_SIGNATURE_NO_HEAD ||
        v->report->note_signature != LEDGER_SIGNATURE_NO_HEAD || v->report->tree.size == 0)
        return err;
    return broken(v, "checkpoint", path, 0,
                  ron_fail(reterr, RON_ERR_INVALID_SIGNATURE,
                           "%s: no signed head, and the log has %llu entries (a server that runs "
                           "writes it when none has come for two seconds, and every 8 s)",
                           path, (unsigned long long)v->report->tree.size));
}

/* Every tile above the leaves: io_tlog_tile checks it against its parent. */
static enum ron_err check_tiles(struct verify *v, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_sha256 hashes[IO_TILE_WIDTH];

    for (unsigned level = 1; level < IO_TILE_LEVELS; level++)
        for (uint64_t index = 0;; index++) {
            const struct io_tile tile = io_tile_at(v->report->tiles_size, level, index);
            char name[] = "level-0", path[IO_PATH_MAX + 1];
            enum ron_err err;

            if (tile.width == 0)
                break;
            name[6] = (char)('0' + level);
            err = put_path(path, v->tiles_dir, name, reterr);
            if (err == RON_ERR_OK)
                err = io_tlog_tile(v->tiles, &tile, hashes, reterr);
            if (err != RON_ERR_OK)
                return is_breach(err)
                           ? broken(v, "tiles", path, index * IO_TILE_WIDTH * RON_SHA256_SIZE, err)
                           : err;
        }
    return RON_ERR_OK;
}

static enum ron_err run(struct verify *v, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ledger_verify_options *options = v->options;
    enum ron_err err = put_path(v->log_dir, options->dir, "log", reterr);

    if (err == RON_ERR_OK)
        err = put_path(v->tiles_dir, options->dir, "tiles", reterr);
    if (err == RON_ERR_OK)
        err = io_vfs_list(options->vfs, v->log_dir, add_segment, v, reterr);
    if (err == RON_ERR_OK)
        err = ledger_core_new(&options->capacity, NULL, &v->core, reterr);
    if (err == RON_ERR_OK)
        err = ledger_replay_new(v->core, &v->replay, reterr);
    if (err == RON_ERR_OK)
        err = open_tiles(v, reterr);
    if (err == RON_ERR_OK)
        err = open_checkpoints(v, reterr);
    if (err == RON_ERR_OK)
        err = check_log(v, reterr);
    if (err == RON_ERR_OK)
        err = check_ahead(v, reterr);
    if (err == RON_ERR_OK)
        err = check_signed(v, reterr);
    if (err == RON_ERR_OK)
        err = check_tiles(v, reterr);
    if (err == RON_ERR_OK)
        tell(v, v->total);
    return err;
}

enum ron_err ledger_verify_dir(const struct ledger_verify_options *options,
                               struct ledger_verify_report *ret_report, struct ron_errinfo *reterr)
{
    struct verify *v;
    enum ron_err err;

    rt_assert_no_lock_held();
    *ret_report = (struct ledger_verify_report){.tree.root = ron_merkle_empty};
    v = ron_mem_alloc(sizeof(*v));
    if (v == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a verifier");
    v->options = options;
    v->report = ret_report;
    v->tile_index = UINT64_MAX;
    ron_merkle_frontier_init(&v->frontier);
    err = run(v, reterr);
    v->tiles = io_tlog_free(v->tiles);
    v->replay = ledger_replay_free(v->replay);
    v->core = ledger_core_free(v->core);
    (void)ron_mem_free(v);
    return err;
}
