/*
 * note.c - see note.h; the formats are in docs/formats.md, "Transparency log".
 */
#include "io/note.h"

#include "base/assert.h"
#include "base/base64.h"
#include "base/decimal.h"
#include "base/ed25519.h"
#include "base/hex.h"
#include "base/merkle_hash.h"

enum {
    KEY_ID_SIZE = 4,
    TIMESTAMP_SIZE = 8,
    PIECE_SIZE = 192, /* bytes of base64 at a time; a multiple of 3 */
};

static void put_base64(struct ron_buf *out, struct ron_slice bytes)
{
    char text[RON_BASE64_SIZE(PIECE_SIZE)];

    for (size_t at = 0; at < bytes.size; at += PIECE_SIZE) {
        size_t left = bytes.size - at;
        struct ron_slice piece = {bytes.data + at, left < PIECE_SIZE ? left : PIECE_SIZE};

        ron_buf_put(out, text, ron_base64_encode(RON_BASE64_STANDARD, piece, text, sizeof(text)));
    }
}

static void put_slice(struct ron_buf *out, struct ron_slice bytes)
{
    ron_buf_put(out, bytes.data, bytes.size);
}

static void put_number(struct ron_buf *out, uint64_t value)
{
    char text[RON_DECIMAL_U64_SIZE];

    ron_buf_put(out, text, ron_decimal_print_u64(value, text));
}

void io_vkey_put(struct ron_buf *out, const struct io_signer *signer, enum ron_key_type type)
{
    uint8_t key[1 + RON_ED25519_PUBLIC_SIZE] = {(uint8_t)type};
    uint8_t id[KEY_ID_SIZE];
    char digits[RON_HEX_SIZE(KEY_ID_SIZE)];

    RON_ASSERT(ron_key_name_valid(signer->name));
    ron_ed25519_public(signer->key, key + 1);
    ron_store_be32(id, ron_key_id(signer->name, type, key + 1));
    put_slice(out, signer->name);
    ron_buf_put_byte(out, '+');
    ron_buf_put(out, digits, ron_hex_encode(ron_slice_of(id, sizeof(id)), digits, sizeof(digits)));
    ron_buf_put_byte(out, '+');
    put_base64(out, ron_slice_of(key, sizeof(key)));
}

void io_checkpoint_put(struct ron_buf *out, const struct ron_checkpoint *checkpoint)
{
    RON_ASSERT(checkpoint->origin.size > 0);
    RON_ASSERT(memchr(checkpoint->origin.data, '\n', checkpoint->origin.size) == NULL);
    RON_ASSERT(checkpoint->tree.size > 0 ||
               memcmp(checkpoint->tree.root.bytes, ron_merkle_empty.bytes, RON_SHA256_SIZE) == 0);
    put_slice(out, checkpoint->origin);
    ron_buf_put_byte(out, '\n');
    put_number(out, checkpoint->tree.size);
    ron_buf_put_byte(out, '\n');
    put_base64(out, ron_slice_of(checkpoint->tree.root.bytes, RON_SHA256_SIZE));
    ron_buf_put_byte(out, '\n');
    put_slice(out, checkpoint->extensions);
}

static void put_line(struct ron_buf *out, struct ron_slice name, struct ron_slice bytes)
{
    ron_buf_put_text(out, "\xe2\x80\x94 "); /* em dash */
    put_slice(out, name);
    ron_buf_put_byte(out, ' ');
    put_base64(out, bytes);
    ron_buf_put_byte(out, '\n');
}

static void put_key_id(uint8_t *bytes, const struct io_signer *signer, enum ron_key_type type)
{
    uint8_t public_key[RON_ED25519_PUBLIC_SIZE];

    RON_ASSERT(ron_key_name_valid(signer->name));
    ron_ed25519_public(signer->key, public_key);
    ron_store_be32(bytes, ron_key_id(signer->name, type, public_key));
}

void io_note_put_signature(struct ron_buf *out, struct ron_slice text,
                           const struct io_signer *signer)
{
    uint8_t bytes[KEY_ID_SIZE + RON_ED25519_SIGNATURE_SIZE];

    RON_ASSERT(text.size > 0);
    RON_ASSERT(text.data[text.size - 1] == '\n');
    put_key_id(bytes, signer, RON_KEY_ED25519);
    ron_ed25519_sign(signer->key, text, bytes + KEY_ID_SIZE);
    put_line(out, signer->name, ron_slice_of(bytes, sizeof(bytes)));
}

void io_note_put(struct ron_buf *out, struct ron_slice text, const struct io_signer *signer)
{
    put_slice(out, text);
    ron_buf_put_byte(out, '\n');
    io_note_put_signature(out, text, signer);
}

void io_note_put_cosignature(struct ron_buf *out, struct ron_slice text,
                             const struct io_signer *signer, uint64_t time_s)
{
    static const char head[] = "cosignature/v1\ntime ";
    char message[sizeof(head) + RON_DECIMAL_U64_SIZE + RON_CHECKPOINT_SIZE_MAX];
    uint8_t bytes[KEY_ID_SIZE + TIMESTAMP_SIZE + RON_ED25519_SIGNATURE_SIZE];
    size_t size = sizeof(head) - 1;

    RON_ASSERT(text.size <= RON_CHECKPOINT_SIZE_MAX);
    RON_ASSERT(time_s <= INT64_MAX);
    memcpy(message, head, size);
    size += ron_decimal_print_u64(time_s, message + size);
    message[size++] = '\n';
    memcpy(message + size, text.data, text.size);
    size += text.size;
    put_key_id(bytes, signer, RON_KEY_COSIGNATURE);
    ron_store_be64(bytes + KEY_ID_SIZE, time_s);
    ron_ed25519_sign(signer->key, ron_slice_of(message, size),
                     bytes + KEY_ID_SIZE + TIMESTAMP_SIZE);
    put_line(out, signer->name, ron_slice_of(bytes, sizeof(bytes)));
}

static bool has_line(const struct ron_note *note, size_t count, struct ron_slice line)
{
    for (size_t i = 0; i < count; i++)
        if (ron_slice_equal(note->signatures[i].line, line))
            return true;
    return false;
}

/* All lines of a parsed note, each once. */
static void put_distinct(struct ron_buf *out, const struct ron_note *note)
{
    put_slice(out, note->text);
    ron_buf_put_byte(out, '\n');
    for (size_t i = 0; i < note->signatures_count; i++)
        if (!has_line(note, i, note->signatures[i].line)) {
            put_slice(out, note->signatures[i].line);
            ron_buf_put_byte(out, '\n');
        }
}

enum ron_err io_note_add_lines(struct ron_slice note, struct ron_slice lines, struct ron_buf *out,
                               struct ron_errinfo *reterr)
{
    struct ron_note before, after;
    struct ron_buf both;
    enum ron_err err = ron_note_parse(note, &before, reterr);

    RON_ASSERT(out->size == 0);
    if (err != RON_ERR_OK)
        return err;
    ron_buf_init(&both, RON_NOTE_SIZE_MAX);
    put_slice(&both, note);
    put_slice(&both, lines);
    err = ron_buf_check(&both, reterr);
    if (err == RON_ERR_OK)
        err = ron_note_parse(ron_buf_slice(&both), &after, reterr);
    /* An empty line among them would make what was signed part of the text. */
    if (err == RON_ERR_OK && after.text.size != before.text.size)
        err = ron_fail(reterr, RON_ERR_MALFORMED, "an empty line among signature lines");
    if (err == RON_ERR_OK) {
        put_distinct(out, &after);
        err = ron_buf_check(out, reterr);
    }
    ron_buf_fini(&both);
    return err;
}

void io_proof_put(struct ron_buf *out, const struct io_proof_text *proof)
{
    RON_ASSERT(proof->hashes_count <= RON_PROOF_HASHES_MAX);
    RON_ASSERT(proof->extra.size <= IO_PROOF_EXTRA_MAX);
    ron_buf_put_text(out, "c2sp.org/tlog-proof@v1\n");
    if (proof->extra.size > 0) {
        ron_buf_put_text(out, "extra ");
        put_base64(out, proof->extra);
        ron_buf_put_byte(out, '\n');
    }
    ron_buf_put_text(out, "index ");
    put_number(out, proof->index);
    ron_buf_put_byte(out, '\n');
    for (size_t i = 0; i < proof->hashes_count; i++) {
        put_base64(out, ron_slice_of(proof->hashes[i].bytes, RON_SHA256_SIZE));
        ron_buf_put_byte(out, '\n');
    }
    ron_buf_put_byte(out, '\n');
    put_slice(out, proof->note);
}
