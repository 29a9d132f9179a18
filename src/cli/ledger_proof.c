/*
 * ledger_proof.c - `ron ledger proof`: fetch what proves an entry and check it here, trusting only
 * the log's public key.
 */
#include <string.h>

#include "base/hex.h"
#include "base/limits.h"
#include "cli/ledger_proof.h"
#include "io/note.h"
#include "io/path_file.h"

struct proving {
    const struct ledger_args *args;
    struct session session;
    uint64_t seq;
    uint8_t leaf[RON_LEAF_SIZE_MAX];
    size_t leaf_size;
    struct ron_buf vkey, note, text;
    struct ron_sha256 hashes[RON_PROOF_HASHES_MAX];
    size_t hashes_count;
    struct ron_checkpoint checkpoint;
};

static int failed(const char *what, const struct ron_errinfo *info)
{
    fprintf(stderr, "ron ledger proof: %s: %s: %s\n", what, ron_err_name(info->err), info->message);
    return damage_status(info->err);
}

/* By its number: only then is its id known. */
static int find_id(void *context, const struct row *row, struct ron_slice object)
{
    struct session *session = context;
    const struct ron_slice id = row_text(row, "id");
    char text[RON_ENTRY_ID_SIZE_MAX * 2 + 1];

    (void)object;
    if (id.size >= sizeof(text))
        return CMD_FAILED;
    memcpy(text, id.data, id.size);
    text[id.size] = '\0';
    path_begin(session, "/entries/");
    path_segment(session, text);
    return CMD_OK;
}

static int path_of_seq(struct proving *proving) RON_BLOCKS
{
    struct session *session = &proving->session;
    struct ron_arena arena = {0};
    struct ron_errinfo info = {0};
    struct row page;
    int status;

    path_begin(session, "/entries");
    path_query(session, "from", proving->args->words[0]);
    path_query(session, "limit", "1");
    status = session_get(session);
    if (status != CMD_OK)
        return status;
    path_begin(session, "");
    if (ron_arena_init(&arena, 2 * session_body(session).size + 64, &info) != RON_ERR_OK ||
        row_read(session_body(session), &arena, &page, &info) != RON_ERR_OK)
        status = ledger_failed(proving->args, &info);
    else
        status = rows_each(proving->args, row_text(&page, "entries"), find_id, session);
    ron_arena_fini(&arena);
    if (status == CMD_OK && session->path.size == 0) {
        fprintf(stderr, "ron ledger proof: the log has no entry %s\n", proving->args->words[0]);
        status = CMD_FAILED;
    }
    return status;
}

static int fetch_leaf(struct proving *proving) RON_BLOCKS
{
    struct session *session = &proving->session;
    const char *word = proving->args->words[0];
    struct ron_arena arena = {0};
    struct ron_errinfo info = {0};
    struct ron_slice leaf;
    struct row row;
    uint64_t seq;
    int status = CMD_OK;
    enum ron_err err;

    if (ron_decimal_parse_u64(ron_slice_text(word), &seq, NULL) == RON_ERR_OK) {
        status = path_of_seq(proving);
    } else {
        path_begin(session, "/entries/");
        path_segment(session, word);
    }
    if (status == CMD_OK)
        status = session_get(session);
    if (status != CMD_OK)
        return status;
    err = ron_arena_init(&arena, 2 * session_body(session).size + 64, &info);
    if (err == RON_ERR_OK)
        err = row_read(session_body(session), &arena, &row, &info);
    if (err == RON_ERR_OK) {
        leaf = row_text(&row, "leaf");
        proving->leaf_size = leaf.size / 2;
        if (!row_u64(&row, "seq", &proving->seq) || proving->seq == 0 ||
            proving->leaf_size > sizeof(proving->leaf))
            err = ron_fail(&info, RON_ERR_MALFORMED, "an entry without seq or leaf");
        else
            err = ron_hex_decode(leaf, proving->leaf, sizeof(proving->leaf), &proving->leaf_size,
                                 &info);
    }
    ron_arena_fini(&arena);
    return err == RON_ERR_OK ? CMD_OK : ledger_failed(proving->args, &info);
}

int proof_vkey(const struct ledger_args *args, struct session *session, struct ron_buf *buf)
{
    struct ron_errinfo info = {0};
    int status = CMD_OK;

    if (args->vkey == NULL)
        status = session_get_text(session, "/checkpoint/vkey", buf);
    else if (io_path_read(args->vkey, RON_VKEY_SIZE_MAX + 2, buf, &info) != RON_ERR_OK)
        status = ledger_failed(args, &info);
    while (buf->size > 0 && buf->data[buf->size - 1] == '\n')
        buf->size--;
    return status;
}

enum ron_err proof_hashes(struct ron_slice list, struct ron_sha256 hashes[RON_PROOF_HASHES_MAX],
                          size_t *ret_count, struct ron_errinfo *reterr)
{
    size_t at = 0, count = 0, size;

    while (at < list.size) { /* checked JSON: between quotes are digits */
        const uint8_t *quote = memchr(list.data + at, '"', list.size - at);
        enum ron_err err;

        if (quote == NULL)
            break;
        at = (size_t)(quote - list.data) + 1;
        if (list.size - at < 2 * RON_SHA256_SIZE + 1 || count == RON_PROOF_HASHES_MAX)
            return ron_fail(reterr, RON_ERR_MALFORMED, "hashes that are none, or too many");
        err = ron_hex_decode(ron_slice_of(list.data + at, 2 * RON_SHA256_SIZE),
                             hashes[count++].bytes, RON_SHA256_SIZE, &size, reterr);
        if (err != RON_ERR_OK)
            return err;
        at += 2 * RON_SHA256_SIZE + 1;
    }
    *ret_count = count;
    return RON_ERR_OK;
}

static enum ron_err read_hashes(struct proving *proving, struct ron_slice body,
                                struct ron_errinfo *reterr)
{
    struct ron_arena arena = {0};
    struct row row;
    enum ron_err err = ron_arena_init(&arena, 2 * body.size + 64, reterr);

    if (err == RON_ERR_OK)
        err = row_read(body, &arena, &row, reterr);
    if (err == RON_ERR_OK)
        err = proof_hashes(row_text(&row, "hashes"), proving->hashes, &proving->hashes_count,
                           reterr);
    ron_arena_fini(&arena);
    return err;
}

/* The newest signed head, and the way to it. */
static int fetch_proof(struct proving *proving) RON_BLOCKS
{
    struct session *session = &proving->session;
    struct ron_checkpoint checkpoint;
    struct ron_errinfo info = {0};
    struct ron_note note;
    int status = session_get_text(&proving->session, "/checkpoint", &proving->note);
    enum ron_err err;

    if (status != CMD_OK)
        return status;
    err = ron_note_parse(ron_buf_slice(&proving->note), &note, &info);
    if (err == RON_ERR_OK)
        err = ron_checkpoint_parse(note.text, &checkpoint, &info);
    if (err != RON_ERR_OK)
        return failed("checkpoint", &info);
    path_begin(session, "/proof/inclusion");
    path_query_u64(session, "seq", proving->seq);
    path_query_u64(session, "size", checkpoint.tree.size);
    status = session_get(session);
    if (status != CMD_OK)
        return status;
    if (read_hashes(proving, session_body(session), &info) != RON_ERR_OK)
        return failed("proof", &info);
    io_proof_put(&proving->text, &(struct io_proof_text){.index = proving->seq - 1,
                                                         .hashes = proving->hashes,
                                                         .hashes_count = proving->hashes_count,
                                                         .note = ron_buf_slice(&proving->note)});
    return ron_buf_check(&proving->text, &info) == RON_ERR_OK ? CMD_OK
                                                              : ledger_failed(proving->args, &info);
}

/* Here nothing is believed but the key. */
static int check(struct proving *proving)
{
    const struct ron_sha256 leaf = ron_verify_leaf_hash(proving->leaf, proving->leaf_size);
    struct ron_errinfo info = {0};
    struct ron_vkey key;
    const struct ron_trust trust = {.log = &key};
    uint64_t index = 0;

    if (ron_vkey_parse(ron_buf_slice(&proving->vkey), &key, &info) != RON_ERR_OK)
        return failed("public key", &info);
    if (ron_verify_proof(ron_buf_slice(&proving->text), &leaf, &trust, &index, &proving->checkpoint,
                         &info) != RON_ERR_OK)
        return failed("not proven", &info);
    if (index != proving->seq - 1) {
        (void)ron_fail(&info, RON_ERR_CHAIN_MISMATCH, "the proof is of another entry");
        return failed("not proven", &info);
    }
    return CMD_OK;
}

static int save(const struct proving *proving) RON_BLOCKS
{
    const struct ledger_args *args = proving->args;
    int status;

    if (args->save == NULL)
        return CMD_OK;
    status = write_named(args, args->save, "", ron_buf_slice(&proving->text));
    if (status == CMD_OK)
        status = write_named(args, args->save, ".leaf",
                             ron_slice_of(proving->leaf, proving->leaf_size));
    if (status == CMD_OK)
        status = write_named(args, args->save, ".vkey", ron_buf_slice(&proving->vkey));
    return status;
}

static void print(const struct proving *proving)
{
    char root[RON_HEX_SIZE(RON_SHA256_SIZE)];

    (void)ron_hex_encode(ron_slice_of(proving->checkpoint.tree.root.bytes, RON_SHA256_SIZE), root,
                         sizeof(root));
    printf(proving->args->json
               ? "{\"proven\":true,\"seq\":%llu,\"tree_size\":%llu,\"root\":\"%s\",\"origin\":"
                 "\"%.*s\",\"key_from\":\"%s\"}\n"
               : "proven: entry %llu of %llu, root %s, in %.*s (key from the %s)\n",
           (unsigned long long)proving->seq, (unsigned long long)proving->checkpoint.tree.size,
           root, RON_SLICE_FMT(proving->checkpoint.origin),
           proving->args->vkey != NULL ? "file" : "server");
}

int ledger_proof(const struct ledger_args *args)
{
    static struct proving proving;
    int status;

    if (args->balance)
        return ledger_proof_balance(args);
    if (args->asset != NULL)
        return ledger_usage(args, "--asset is for --balance");
    proving.args = args;
    ron_buf_init(&proving.vkey, RON_VKEY_SIZE_MAX + 2);
    ron_buf_init(&proving.note, RON_NOTE_SIZE_MAX);
    ron_buf_init(&proving.text, 2 * RON_NOTE_SIZE_MAX);
    status = session_open(&proving.session, args);
    if (status == CMD_OK)
        status = fetch_leaf(&proving);
    if (status == CMD_OK)
        status = proof_vkey(args, &proving.session, &proving.vkey);
    if (status == CMD_OK)
        status = fetch_proof(&proving);
    if (status == CMD_OK)
        status = check(&proving);
    if (status == CMD_OK)
        status = save(&proving);
    if (status == CMD_OK)
        print(&proving);
    session_close(&proving.session);
    ron_buf_fini(&proving.vkey);
    ron_buf_fini(&proving.note);
    ron_buf_fini(&proving.text);
    return status;
}
