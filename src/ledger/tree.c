/*
 * tree.c - see tree.h.
 *
 * The lock (class storage) covers the signed head, and whose turn it is to write files: the
 * appender flushes where it finds no room, the keeper in its rhythm, never both. It is held for
 * copies only; proofs are made outside of it.
 * tidy: long file because key, tiles and signed head are one another's condition.
 */
#include "ledger/tree.h"

#include <stdio.h>

#include "base/mem.h"
#include "io/log_key.h"
#include "ledger/checkpoint_file.h"
#include "ledger/service.h"
#include "rt/lock.h"

enum {
    SYNC_MS = 8000,    /* from one to the next */
    KEEPS_IN_ROOM = 6, /* times that tiles are written before there would be no room for more */
};
_Static_assert((int)LEDGER_BATCH_ENTRIES_MAX <= (int)IO_TLOG_APPEND_MAX,
               "a batch is one append, so the tree has whole batches at any moment");

/* A signed head, as readers copy it. */
struct signed_head {
    struct ron_tree tree;
    size_t note_size; /* 0: none yet */
    uint8_t note[LEDGER_NOTE_SIZE_MAX];
};

struct ledger_tree {
    struct io_vfs *vfs;
    uint64_t cache_bytes;
    bool direct;
    char dir[IO_PATH_MAX + 1];
    char origin[RON_KEY_NAME_SIZE_MAX + 1];
    struct io_log_key *key;
    bool key_made;            /* by this start */
    struct io_tlog *forsaken; /* that was emptied: whoever reads it still may */
    struct rt_deadline sync;  /* the keeper's: when the next is due */
    struct ron_tree stored;   /* the signed head on disk; whoever has the turn */

    struct rt_lock lock;
    struct rt_cond changed; /* head, broken, canceled */
    struct rt_cond turn;    /* flushing */
    struct io_tlog *log RON_GUARDED_BY(storage);
    struct signed_head head RON_GUARDED_BY(storage);
    bool flushing RON_GUARDED_BY(storage);
    bool broken RON_GUARDED_BY(storage);
    bool canceled RON_GUARDED_BY(storage);
};

static void tree_lock(struct ledger_tree *tree) RON_LOCKS(storage)
{
    rt_lock_take(&tree->lock);
}
static void tree_unlock(struct ledger_tree *tree) RON_UNLOCKS(storage)
{
    rt_lock_drop(&tree->lock);
}

struct io_tlog *ledger_tree_log(struct ledger_tree *tree)
{
    struct io_tlog *log;

    tree_lock(tree);
    log = tree->log;
    tree_unlock(tree);
    return log;
}

uint64_t ledger_tree_size(struct ledger_tree *tree)
{
    return io_tlog_size(ledger_tree_log(tree));
}

const char *ledger_tree_vkey(const struct ledger_tree *tree)
{
    return io_log_key_vkey(tree->key);
}

/* --- Life --------------------------------------------------------------------------------------
 */

static enum ron_err open_log(const struct ledger_tree *tree, bool rebuild, struct io_tlog **ret_log,
                             struct ron_errinfo *reterr) RON_BLOCKS
{
    return io_tlog_open(&(struct io_tlog_options){.vfs = tree->vfs,
                                                  .dir = tree->dir,
                                                  .cache_bytes = tree->cache_bytes,
                                                  .direct = tree->direct,
                                                  .rebuild = rebuild},
                        ret_log, reterr);
}

/* Nothing tells a key that was lost from one that never was but what it signed. */
static enum ron_err open_key(struct ledger_tree *tree, const struct ledger_tree_options *options,
                             bool has_tiles, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ron_slice name = ron_slice_text(tree->origin);
    struct ron_errinfo info = {0};
    enum ron_err err = io_log_key_load(tree->vfs, options->key, name, &tree->key, &info);

    if (err == RON_ERR_NOT_FOUND && has_tiles)
        return ron_fail(reterr, RON_ERR_CONFLICT,
                        "%s is missing, but %s has a tree it signed: a new key would be a new log; "
                        "restore the key, or remove the tiles",
                        options->key, tree->dir);
    if (err == RON_ERR_NOT_FOUND && options->log_size > 0 && !options->new_key)
        return ron_fail(reterr, RON_ERR_CONFLICT,
                        "%s is missing, and the log has %llu records: restore the key, or say "
                        "ledger.new_key for a new one, which nobody trusts yet",
                        options->key, (unsigned long long)options->log_size);
    tree->key_made = err == RON_ERR_NOT_FOUND;
    if (tree->key_made)
        return io_log_key_load_or_make(tree->vfs, options->key, name, &tree->key, reterr);
    if (err != RON_ERR_OK && reterr != NULL)
        *reterr = info;
    return err;
}

bool ledger_tree_key_made(const struct ledger_tree *tree)
{
    return tree->key_made;
}

/* What cannot be read binds nobody, and is replaced by the next head; `ron ledger verify` names it.
 */
static enum ron_err load_checkpoint(struct ledger_tree *tree, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct ron_vkey vkey;
    enum ron_err err = ron_vkey_parse(ron_slice_text(io_log_key_vkey(tree->key)), &vkey, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = ledger_checkpoint_load(tree->vfs, tree->dir, &vkey, &tree->stored, &info);
    if (err == RON_ERR_IO || err == RON_ERR_NO_MEMORY) {
        if (reterr != NULL)
            *reterr = info;
        return err;
    }
    return RON_ERR_OK;
}

/* Tiles, then the key, and only then whatever changes the tiles. */
static enum ron_err open_all(struct ledger_tree *tree, const struct ledger_tree_options *options,
                             struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_tlog *log = NULL;
    struct ron_errinfo info = {0};
    enum ron_err err = open_log(tree, false, &log, &info);
    const bool damaged = err == RON_ERR_WAL_CORRUPT;

    if (err != RON_ERR_OK && !damaged) {
        if (reterr != NULL)
            *reterr = info;
        return err;
    }
    err = open_key(tree, options, damaged || io_tlog_size(log) > 0, reterr);
    if (err == RON_ERR_OK)
        err = load_checkpoint(tree, reterr);
    if (err == RON_ERR_OK && damaged)
        err = open_log(tree, true, &log, reterr);
    tree_lock(tree);
    tree->log = log;
    tree_unlock(tree);
    return err;
}

enum ron_err ledger_tree_open(const struct ledger_tree_options *options,
                              struct ledger_tree **ret_tree, struct ron_errinfo *reterr)
{
    struct ledger_tree *tree;
    int size;
    enum ron_err err;

    rt_assert_no_lock_held();
    if (!ron_key_name_valid(ron_slice_text(options->origin)))
        return ron_fail(reterr, RON_ERR_MALFORMED, "the origin of the log is not fit for a key");
    tree = ron_mem_alloc(sizeof(*tree));
    if (tree == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a tree");
    rt_lock_init(&tree->lock, "tree", RON_RANK_storage);
    rt_cond_init(&tree->changed, "tree head");
    rt_cond_init(&tree->turn, "tree files");
    tree->vfs = options->vfs;
    tree->cache_bytes = options->cache_bytes;
    tree->direct = options->direct;
    (void)snprintf(tree->origin, sizeof(tree->origin), "%s", options->origin);
    size = snprintf(tree->dir, sizeof(tree->dir), "%s", options->dir);
    if (size < 0 || (size_t)size >= sizeof(tree->dir))
        err = ron_fail(reterr, RON_ERR_TOO_LARGE, "path of a tile directory");
    else
        err = open_all(tree, options, reterr);
    if (err != RON_ERR_OK) {
        tree = ledger_tree_free(tree);
        return err;
    }
    *ret_tree = tree;
    return RON_ERR_OK;
}

struct ledger_tree *ledger_tree_free(struct ledger_tree *tree)
{
    rt_assert_no_lock_held();
    if (tree == NULL)
        return NULL;
    (void)io_tlog_free(ledger_tree_log(tree));
    tree->forsaken = io_tlog_free(tree->forsaken);
    tree->key = io_log_key_free(tree->key);
    rt_cond_fini(&tree->turn);
    rt_cond_fini(&tree->changed);
    rt_lock_fini(&tree->lock);
    return ron_mem_free(tree);
}

/* --- Growing -----------------------------------------------------------------------------------
 */

static void set_broken(struct ledger_tree *tree)
{
    tree_lock(tree);
    tree->broken = true;
    rt_cond_broadcast(&tree->changed);
    tree_unlock(tree);
}

static struct io_tlog *turn_take(struct ledger_tree *tree, struct signed_head *ret_head) RON_BLOCKS
{
    struct io_tlog *log;

    rt_assert_no_lock_held();
    tree_lock(tree);
    while (tree->flushing)
        (void)rt_cond_wait(&tree->turn, &tree->lock, SH_NEVER);
    tree->flushing = true;
    log = tree->log;
    *ret_head = tree->head;
    tree_unlock(tree);
    return log;
}

static void turn_drop(struct ledger_tree *tree)
{
    tree_lock(tree);
    tree->flushing = false;
    rt_cond_broadcast(&tree->turn);
    tree_unlock(tree);
}

/* With `sync`, the head that is signed by now is durable behind its tiles. */
static enum ron_err write_tiles(struct ledger_tree *tree, bool sync,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    struct signed_head head;
    struct io_tlog *log = turn_take(tree, &head);
    enum ron_err err = sync ? io_tlog_sync(log, reterr) : io_tlog_flush(log, reterr);

    if (err == RON_ERR_OK && sync && head.note_size > 0 && head.tree.size > tree->stored.size) {
        err = ledger_checkpoint_store(tree->vfs, tree->dir, ron_slice_of(head.note, head.note_size),
                                      reterr);
        if (err == RON_ERR_OK)
            tree->stored = head.tree;
    }
    turn_drop(tree);
    return err;
}

enum ron_err ledger_tree_extend(struct ledger_tree *tree, uint64_t seq_start,
                                const struct ron_sha256 *hashes, size_t hashes_count,
                                const struct ron_sha256 *nodes, struct ron_errinfo *reterr)
{
    struct io_tlog *log = ledger_tree_log(tree);
    const uint64_t size = io_tlog_size(log);
    uint64_t known;
    bool broken;
    enum ron_err err;

    rt_assert_no_lock_held();
    tree_lock(tree);
    broken = tree->broken;
    tree_unlock(tree);
    if (broken)
        return ron_fail(reterr, RON_ERR_IO, "%s: tiles could not be written before", tree->dir);
    RON_ASSERT(seq_start >= 1);
    RON_ASSERT(seq_start <= size + 1); /* no gap */
    known = size + 1 - seq_start;
    if (known >= hashes_count)
        return RON_ERR_OK;
    if (known > 0)
        nodes = NULL; /* they begin earlier */
    err = io_tlog_append(log, hashes + known, hashes_count - known, nodes, reterr);
    if (err == RON_ERR_STORAGE_BUSY) { /* full tiles wait to be written */
        err = write_tiles(tree, false, reterr);
        if (err == RON_ERR_OK)
            err = io_tlog_append(log, hashes + known, hashes_count - known, nodes, reterr);
    }
    if (err != RON_ERR_OK)
        set_broken(tree);
    return err;
}

enum ron_err ledger_tree_keep(struct ledger_tree *tree, bool sync, struct ron_errinfo *reterr)
{
    enum ron_err err;

    rt_assert_no_lock_held();
    err = write_tiles(tree, sync, reterr);
    if (err != RON_ERR_OK)
        set_broken(tree);
    return err;
}

/* Nobody extends, signs or keeps; readers may be in the old one. */
static enum ron_err empty(struct ledger_tree *tree, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_tlog *log = NULL;
    enum ron_err err;

    if (tree->forsaken != NULL)
        return ron_fail(reterr, RON_ERR_INTERNAL, "%s: made again, and still not the log's",
                        tree->dir);
    err = open_log(tree, true, &log, reterr);
    if (err != RON_ERR_OK)
        return err;
    tree_lock(tree);
    tree->forsaken = tree->log;
    tree->log = log;
    tree->head = (struct signed_head){.note_size = 0};
    tree_unlock(tree);
    return RON_ERR_OK;
}

/* No head that contradicts one that was signed: the log must have what that one counts. */
static enum ron_err check_stored(const struct ledger_tree *tree, struct io_tlog *log, uint64_t size,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_sha256 root = ron_merkle_empty;
    enum ron_err err = RON_ERR_OK;

    if (tree->stored.size <= size)
        err = io_tlog_root(log, tree->stored.size, &root, reterr);
    if (err != RON_ERR_OK || tree->stored.size == 0)
        return err;
    if (tree->stored.size > size ||
        memcmp(root.bytes, tree->stored.root.bytes, RON_SHA256_SIZE) != 0)
        return ron_fail(reterr, RON_ERR_CHAIN_MISMATCH,
                        "%s/checkpoint: a head of size %llu was signed that the log of %llu does "
                        "not have; restore the log, or remove tiles and key: a new log",
                        tree->dir, (unsigned long long)tree->stored.size, (unsigned long long)size);
    return RON_ERR_OK;
}

/* Is it the tree of the log, at its size? */
static enum ron_err is_tree_of(struct io_tlog *log, const struct ledger_root *head, bool *ret_is,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    const uint64_t size = io_tlog_size(log);
    struct ron_sha256 root;
    enum ron_err err;

    RON_ASSERT(size >= head->seq);
    *ret_is = false;
    if (size != head->seq)
        return RON_ERR_OK;
    err = io_tlog_root(log, size, &root, reterr);
    if (err == RON_ERR_OK)
        *ret_is = memcmp(root.bytes, head->root.bytes, RON_SHA256_SIZE) == 0;
    return err;
}

enum ron_err ledger_tree_settle(struct ledger_tree *tree, const struct ledger_root *head,
                                struct ron_errinfo *reterr)
{
    struct io_tlog *log = ledger_tree_log(tree);
    bool is = false;
    enum ron_err err;

    rt_assert_no_lock_held();
    if (tree->stored.size > head->seq) /* and the tiles that say so stay */
        err = check_stored(tree, log, head->seq, reterr);
    else
        err = is_tree_of(log, head, &is, reterr);
    if (err == RON_ERR_OK)
        err = is ? check_stored(tree, log, head->seq, reterr) : empty(tree, reterr);
    if (err != RON_ERR_OK)
        set_broken(tree);
    return err;
}

/* --- Heads -------------------------------------------------------------------------------------
 */

static enum ron_err make_note(const struct ledger_tree *tree, const struct ron_tree *head,
                              struct signed_head *ret_head, struct ron_errinfo *reterr)
{
    const struct ron_checkpoint checkpoint = {.origin = ron_slice_text(tree->origin),
                                              .tree = *head};
    const struct io_signer signer = io_log_key_signer(tree->key);
    struct ron_buf text, note;
    enum ron_err err;

    ron_buf_init(&text, RON_CHECKPOINT_SIZE_MAX);
    ron_buf_init(&note, LEDGER_NOTE_SIZE_MAX);
    io_checkpoint_put(&text, &checkpoint);
    err = ron_buf_check(&text, reterr);
    if (err == RON_ERR_OK) {
        io_note_put(&note, ron_buf_slice(&text), &signer);
        err = ron_buf_check(&note, reterr);
    }
    if (err == RON_ERR_OK) {
        ret_head->tree = *head;
        ret_head->note_size = note.size;
        memcpy(ret_head->note, note.data, note.size);
    }
    ron_buf_fini(&text);
    ron_buf_fini(&note);
    return err;
}

enum ron_err ledger_tree_recall(struct ledger_tree *tree, struct ron_errinfo *reterr)
{
    struct io_tlog *log = ledger_tree_log(tree);
    struct signed_head head = {.tree = tree->stored};
    enum ron_err err;

    rt_assert_no_lock_held();
    if (tree->stored.size == 0)
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "%s: no head was signed", tree->dir);
    err = check_stored(tree, log, io_tlog_size(log), reterr);
    if (err == RON_ERR_OK) /* the same words, so the same signature */
        err = make_note(tree, &tree->stored, &head, reterr);
    if (err != RON_ERR_OK)
        return err;
    tree_lock(tree);
    tree->head = head;
    rt_cond_broadcast(&tree->changed);
    tree_unlock(tree);
    return RON_ERR_OK;
}

enum ron_err ledger_tree_sign(struct ledger_tree *tree, const struct ledger_root *head,
                              struct ron_errinfo *reterr)
{
    struct ron_tree claim = {.size = head->seq};
    struct signed_head made;
    enum ron_err err;

    rt_assert_no_lock_held();
    err = io_tlog_root(ledger_tree_log(tree), head->seq, &claim.root, reterr);
    if (err != RON_ERR_OK)
        return err;
    /* What is signed is what the log says: the frames' roots and the tiles come from other code. */
    RON_ASSERT(memcmp(claim.root.bytes, head->root.bytes, RON_SHA256_SIZE) == 0);
    err = make_note(tree, &claim, &made, reterr);
    if (err != RON_ERR_OK)
        return err;
    tree_lock(tree);
    RON_ASSERT(head->seq >= tree->head.tree.size);
    tree->head = made;
    rt_cond_broadcast(&tree->changed);
    tree_unlock(tree);
    return RON_ERR_OK;
}

enum ron_err ledger_tree_await(struct ledger_tree *tree, uint64_t size, struct rt_deadline deadline,
                               struct ron_errinfo *reterr)
{
    bool in_time = true;
    bool is_there, broken, canceled;

    rt_assert_no_lock_held();
    tree_lock(tree);
    for (;;) {
        is_there = tree->head.note_size > 0 && tree->head.tree.size >= size;
        broken = tree->broken;
        canceled = tree->canceled;
        if (is_there || broken || canceled || !in_time)
            break;
        in_time = rt_cond_wait(&tree->changed, &tree->lock, deadline.at_ns);
    }
    tree_unlock(tree);
    if (is_there)
        return RON_ERR_OK;
    if (broken)
        return ron_fail(reterr, RON_ERR_IO, "%s: tiles cannot be written; no head of size %llu",
                        tree->dir, (unsigned long long)size);
    return ron_fail(reterr, canceled ? RON_ERR_CANCELED : RON_ERR_TIMEOUT,
                    "no head of size %llu is signed", (unsigned long long)size);
}

void ledger_tree_cancel(struct ledger_tree *tree)
{
    tree_lock(tree);
    tree->canceled = true;
    rt_cond_broadcast(&tree->changed);
    tree_unlock(tree);
}

/* --- Readers -----------------------------------------------------------------------------------
 */

static enum ron_err copy_head(struct ledger_tree *tree, struct signed_head *ret_head,
                              struct ron_errinfo *reterr)
{
    bool is_there;

    tree_lock(tree);
    is_there = tree->head.note_size > 0;
    if (is_there)
        *ret_head = tree->head;
    tree_unlock(tree);
    return is_there ? RON_ERR_OK : ron_fail(reterr, RON_ERR_NOT_READY, "no head is signed yet");
}

enum ron_err ledger_tree_checkpoint(struct ledger_tree *tree, struct ron_buf *out,
                                    uint64_t *ret_size, struct ron_errinfo *reterr)
{
    struct signed_head head;
    enum ron_err err = copy_head(tree, &head, reterr);

    if (err == RON_ERR_OK)
        err = ron_buf_append(out, head.note, head.note_size, reterr);
    if (err == RON_ERR_OK && ret_size != NULL)
        *ret_size = head.tree.size;
    return err;
}

enum ron_err ledger_tree_proof_text(struct ledger_tree *tree, uint64_t seq, struct ron_buf *out,
                                    struct ron_errinfo *reterr)
{
    struct io_tlog *log = ledger_tree_log(tree);
    struct signed_head head;
    struct io_tlog_proof proof;
    enum ron_err err;

    rt_assert_no_lock_held();
    err = copy_head(tree, &head, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (seq == 0 || seq > head.tree.size)
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "entry %llu is not under the head of size %llu",
                        (unsigned long long)seq, (unsigned long long)head.tree.size);
    err = io_tlog_inclusion(log, seq - 1, head.tree.size, &proof, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (memcmp(proof.tree.root.bytes, head.tree.root.bytes, RON_SHA256_SIZE) != 0)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "%s: a proof leads to another root than %s",
                        tree->dir, "the signed one");
    io_proof_put(out, &(struct io_proof_text){.index = seq - 1,
                                              .hashes = proof.hashes,
                                              .hashes_count = proof.hashes_count,
                                              .note = ron_slice_of(head.note, head.note_size)});
    return ron_buf_check(out, reterr);
}

/* --- As a follower -----------------------------------------------------------------------------
 */

static enum ron_err follow_extend(void *context, uint64_t seq_start,
                                  const struct ron_sha256 *hashes, size_t hashes_count,
                                  const struct ron_sha256 *nodes,
                                  struct ron_errinfo *reterr) RON_BLOCKS
{
    return ledger_tree_extend(context, seq_start, hashes, hashes_count, nodes, reterr);
}

static uint64_t follow_size(void *context)
{
    return ledger_tree_size(context);
}

static enum ron_err follow_settle(void *context, const struct ledger_root *head,
                                  struct ron_errinfo *reterr) RON_BLOCKS
{
    return ledger_tree_settle(context, head, reterr);
}

static enum ron_err follow_recall(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    return ledger_tree_recall(context, reterr);
}

static enum ron_err follow_head(void *context, const struct ledger_root *root,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    return ledger_tree_sign(context, root, reterr);
}

/* Now and then durable, so that a start after a crash has little to do, and so that a vfs in memory
 * need not remember what a crash would lose. */
static enum ron_err follow_keep(void *context, bool sync, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_tree *tree = context;

    sync = sync || rt_deadline_expired(tree->sync);
    if (sync)
        tree->sync = rt_deadline_after_ms(SYNC_MS);
    return ledger_tree_keep(tree, sync, reterr);
}

static void follow_end(void *context)
{
    ledger_tree_cancel(context);
}

struct ledger_follower ledger_tree_follower(struct ledger_tree *tree)
{
    return (struct ledger_follower){
        .context = tree,
        .extend = follow_extend,
        .size = follow_size,
        .settle = follow_settle,
        .recall = follow_recall,
        .head = follow_head,
        .keep = follow_keep,
        .keep_entries = io_tlog_room(ledger_tree_log(tree)) / KEEPS_IN_ROOM,
        .end = follow_end,
    };
}
