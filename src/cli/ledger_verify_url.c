/*
 * ledger_verify_url.c - `ron ledger verify --url`: a server's log, from its leaves to its signed
 * head, believing nothing but the public key.
 *
 *     checkpoint  signed by the key, of that log
 *     tiles       their hashes lead to the checkpoint's root
 *     entries     each leaf is the one that its tile has the hash of
 *     note        a checkpoint that was seen before is a beginning of this log
 */
#include <string.h>

#include "base/hex.h"
#include "base/merkle_frontier.h"
#include "cli/ledger_verify.h"
#include "io/tlog.h"

struct remote {
    const struct ledger_args *args;
    struct session session;
    struct ron_buf vkey_text, note_text, since_text;
    struct ron_vkey key;
    struct ron_checkpoint checkpoint, since;
    struct ron_merkle_frontier frontier;
    bool entries_read;
};

static int broken(const struct remote *remote, const char *link, const char *where,
                  const struct ron_errinfo *info)
{
    fprintf(stderr, "ron ledger verify: broken link: %s: %s%s%s\n", link, where,
            where[0] != '\0' ? ": " : "", info->message);
    if (remote->args->json)
        printf("{\"sound\":false,\"link\":\"%s\",\"where\":\"%s\",\"code\":\"%s\"}\n", link, where,
               ron_err_symbol(info->err));
    return CMD_DAMAGED;
}

static int check_head(struct remote *remote) RON_BLOCKS
{
    const struct ledger_args *args = remote->args;
    const struct ron_trust trust = {.log = &remote->key};
    struct ron_errinfo info = {0};
    int status = verify_read_file(args, args->vkey, RON_VKEY_SIZE_MAX + 2, true,
                                  &remote->vkey_text);

    if (status == CMD_OK && args->vkey == NULL)
        status = session_get_text(&remote->session, "/checkpoint/vkey", &remote->vkey_text);
    if (status == CMD_OK)
        status = session_get_text(&remote->session, "/checkpoint", &remote->note_text);
    if (status == CMD_OK)
        status = verify_read_file(args, args->since, RON_NOTE_SIZE_MAX, false, &remote->since_text);
    if (status != CMD_OK)
        return status;
    while (remote->vkey_text.size > 0 && remote->vkey_text.data[remote->vkey_text.size - 1] == '\n')
        remote->vkey_text.size--;
    if (ron_vkey_parse(ron_buf_slice(&remote->vkey_text), &remote->key, &info) != RON_ERR_OK ||
        ron_verify_checkpoint(ron_buf_slice(&remote->note_text), &trust, &remote->checkpoint,
                              &info) != RON_ERR_OK)
        return broken(remote, "checkpoint", "", &info);
    if (remote->since_text.size == 0)
        return CMD_OK;
    if (ron_verify_checkpoint(ron_buf_slice(&remote->since_text), &trust, &remote->since, &info) !=
        RON_ERR_OK)
        return broken(remote, "note", args->since, &info);
    if (remote->since.tree.size > remote->checkpoint.tree.size) {
        (void)ron_fail(&info, RON_ERR_CHAIN_MISMATCH, "it counts %llu entries, the log has %llu",
                       (unsigned long long)remote->since.tree.size,
                       (unsigned long long)remote->checkpoint.tree.size);
        return broken(remote, "note", args->since, &info);
    }
    return CMD_OK;
}

/* The leaves of a bundle (u16 big-endian size, leaf) against the hashes of its tile. */
static enum ron_err check_bundle(struct ron_slice bundle, const struct io_tile *tile,
                                 const struct ron_sha256 *hashes, struct ron_errinfo *reterr)
{
    size_t at = 0;

    for (unsigned i = 0; i < tile->width; i++) {
        const unsigned long long seq = tile->index * IO_TILE_WIDTH + i + 1;
        struct ron_sha256 hash;
        size_t size;

        if (bundle.size - at < 2)
            return ron_fail(reterr, RON_ERR_MALFORMED, "ends before entry %llu", seq);
        size = ron_load_be16(bundle.data + at);
        if (bundle.size - at - 2 < size)
            return ron_fail(reterr, RON_ERR_MALFORMED, "ends within entry %llu", seq);
        hash = ron_verify_leaf_hash(bundle.data + at + 2, size);
        if (memcmp(hash.bytes, hashes[i].bytes, RON_SHA256_SIZE) != 0)
            return ron_fail(reterr, RON_ERR_CHAIN_MISMATCH, "entry %llu is not the one hashed",
                            seq);
        at += 2 + size;
    }
    if (at != bundle.size)
        return ron_fail(reterr, RON_ERR_MALFORMED, "%zu bytes too many", bundle.size - at);
    return RON_ERR_OK;
}

static int ask_tile(struct remote *remote, const struct io_tile *tile, bool entries,
                    char where[static IO_TILE_PATH_MAX + 8]) RON_BLOCKS
{
    char path[IO_TILE_PATH_MAX];

    io_tile_path(tile, entries, path);
    (void)snprintf(where, IO_TILE_PATH_MAX + 8, "/tile/%s", path);
    path_begin(&remote->session, where);
    return session_get(&remote->session);
}

/* Into the tree; at the size of the note seen before, is its root there? */
static int add_leaves(struct remote *remote, struct ron_sha256 *hashes, unsigned count)
{
    const uint64_t old = remote->since_text.size > 0 ? remote->since.tree.size : 0;
    const uint64_t at = remote->frontier.leaves_count;
    const unsigned first = old > at && old - at < count ? (unsigned)(old - at) : count;
    struct ron_errinfo info = {0};
    struct ron_sha256 root;

    ron_merkle_frontier_append(&remote->frontier, hashes, first);
    root = ron_merkle_frontier_root(&remote->frontier);
    if (old > 0 && remote->frontier.leaves_count == old &&
        memcmp(root.bytes, remote->since.tree.root.bytes, RON_SHA256_SIZE) != 0) {
        (void)ron_fail(&info, RON_ERR_CHAIN_MISMATCH, "at size %llu the log has another root",
                       (unsigned long long)old);
        return broken(remote, "note", remote->args->since, &info);
    }
    if (first < count)
        ron_merkle_frontier_append(&remote->frontier, hashes + first, count - first);
    return CMD_OK;
}

static int check_tile(struct remote *remote, uint64_t index) RON_BLOCKS
{
    const struct io_tile tile = io_tile_at(remote->checkpoint.tree.size, 0, index);
    struct ron_sha256 hashes[IO_TILE_WIDTH];
    char where[IO_TILE_PATH_MAX + 8];
    struct ron_errinfo info = {0};
    struct ron_slice body;
    int status = ask_tile(remote, &tile, false, where);

    if (status != CMD_OK)
        return status;
    body = session_body(&remote->session);
    if (body.size != (size_t)tile.width * RON_SHA256_SIZE) {
        (void)ron_fail(&info, RON_ERR_MALFORMED, "%zu bytes", body.size);
        return broken(remote, "tiles", where, &info);
    }
    memcpy(hashes, body.data, body.size);
    if (ron_secret_size(&remote->session.token) > 0) {
        status = ask_tile(remote, &tile, true, where);
        if (status != CMD_OK)
            return status;
        if (check_bundle(session_body(&remote->session), &tile, hashes, &info) != RON_ERR_OK)
            return broken(remote, "entries", where, &info);
        remote->entries_read = true;
    }
    return add_leaves(remote, hashes, tile.width);
}

static int run(struct remote *remote) RON_BLOCKS
{
    const uint64_t *size = &remote->checkpoint.tree.size;
    struct ron_errinfo info = {0};
    struct ron_sha256 root;
    int status = check_head(remote);

    for (uint64_t index = 0; status == CMD_OK && index * IO_TILE_WIDTH < *size; index++) {
        status = check_tile(remote, index);
        ledger_progress(remote->args, "verify", remote->frontier.leaves_count, *size);
    }
    ledger_progress(remote->args, NULL, 0, 0);
    if (status != CMD_OK)
        return status;
    root = ron_merkle_frontier_root(&remote->frontier);
    if (memcmp(root.bytes, remote->checkpoint.tree.root.bytes, RON_SHA256_SIZE) != 0) {
        (void)ron_fail(&info, RON_ERR_CHAIN_MISMATCH,
                       "their leaves do not lead to the signed root of %llu entries",
                       (unsigned long long)*size);
        return broken(remote, "tiles", "", &info);
    }
    return CMD_OK;
}

static void print_sound(const struct remote *remote)
{
    char root[RON_HEX_SIZE(RON_SHA256_SIZE)];

    (void)ron_hex_encode(ron_slice_of(remote->checkpoint.tree.root.bytes, RON_SHA256_SIZE), root,
                         sizeof(root));
    printf(remote->args->json
               ? "{\"sound\":true,\"entries\":%llu,\"root\":\"%s\",\"origin\":\"%.*s\","
                 "\"signature_by\":\"%s\",\"leaves_read\":%s,\"since\":%llu}\n"
               : "sound: %llu entries, root %s, signed by %.*s (key from the %s)\n"
                 "leaves read: %s; began with the "
                 "note's %llu entries\n",
           (unsigned long long)remote->checkpoint.tree.size, root,
           RON_SLICE_FMT(remote->checkpoint.origin),
           remote->args->vkey == NULL ? "server"
           : remote->args->json       ? "vkey"
                                      : "file",
           remote->entries_read ? "true" : "false",
           (unsigned long long)(remote->since_text.size > 0 ? remote->since.tree.size : 0));
}

int ledger_verify_url(const struct ledger_args *args)
{
    static struct remote remote;
    int status;

    remote.args = args;
    ron_buf_init(&remote.vkey_text, RON_VKEY_SIZE_MAX + 2);
    ron_buf_init(&remote.note_text, RON_NOTE_SIZE_MAX);
    ron_buf_init(&remote.since_text, RON_NOTE_SIZE_MAX);
    ron_merkle_frontier_init(&remote.frontier);
    status = session_open(&remote.session, args);
    if (status == CMD_OK)
        status = run(&remote);
    if (status == CMD_OK)
        print_sound(&remote);
    session_close(&remote.session);
    ron_buf_fini(&remote.since_text);
    ron_buf_fini(&remote.note_text);
    ron_buf_fini(&remote.vkey_text);
    return status;
}
