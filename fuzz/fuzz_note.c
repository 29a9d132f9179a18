/*
 * fuzz_note.c - any bytes as a signed note, a checkpoint, a proof text and a key.
 *
 * Checks beyond "no crash": every slice of a result lies inside the input; a note that is accepted
 * is its text, an empty line and its signature lines, byte for byte, and adding no line gives its
 * distinct lines; a checkpoint that is accepted is written the same again; nothing verifies under a
 * key that signed nothing.
 */
#include "base/assert.h"
#include "io/note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool inside(struct ron_slice part, struct ron_slice whole)
{
    return part.size == 0 ||
           (part.data >= whole.data && part.data + part.size <= whole.data + whole.size);
}

static void check_checkpoint(struct ron_slice text)
{
    static struct ron_buf out;
    struct ron_checkpoint checkpoint;

    if (ron_checkpoint_parse(text, &checkpoint, NULL) != RON_ERR_OK)
        return;
    RON_ASSERT(inside(checkpoint.origin, text));
    RON_ASSERT(inside(checkpoint.extensions, text));
    if (out.size_max == 0)
        ron_buf_init(&out, RON_CHECKPOINT_SIZE_MAX);
    ron_buf_reset(&out);
    io_checkpoint_put(&out, &checkpoint);
    RON_ASSERT(ron_slice_equal(ron_buf_slice(&out), text));
}

static void check_note(struct ron_slice bytes)
{
    static const char key_text[] =
        "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
    struct ron_vkey key;
    struct ron_note note;
    struct ron_trust trust = {.log = &key};
    struct ron_checkpoint checkpoint;
    size_t at;
    enum ron_err err;

    err = ron_vkey_parse(ron_slice_text(key_text), &key, NULL);
    RON_ASSERT(err == RON_ERR_OK);
    if (ron_note_parse(bytes, &note, NULL) != RON_ERR_OK)
        return;
    RON_ASSERT(note.text.data == bytes.data);
    at = note.text.size + 1;
    for (size_t i = 0; i < note.signatures_count; i++) {
        RON_ASSERT(note.signatures[i].line.data == bytes.data + at);
        RON_ASSERT(inside(note.signatures[i].name, note.signatures[i].line));
        RON_ASSERT(ron_key_name_valid(note.signatures[i].name));
        at += note.signatures[i].line.size + 1;
    }
    RON_ASSERT(at == bytes.size);
    check_checkpoint(note.text);
    /* Peter signed one text only, and that is no checkpoint. */
    RON_ASSERT(ron_verify_checkpoint(bytes, &trust, &checkpoint, NULL) != RON_ERR_OK);
}

static void check_proof(struct ron_slice text)
{
    struct ron_proof proof;

    if (ron_proof_parse(text, &proof, NULL) != RON_ERR_OK)
        return;
    RON_ASSERT(inside(proof.extra, text));
    RON_ASSERT(proof.note.data + proof.note.size == text.data + text.size);
    RON_ASSERT(proof.hashes_count <= RON_PROOF_HASHES_MAX);
    check_note(proof.note);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ron_slice bytes = {data, size};
    struct ron_vkey key;

    check_note(bytes);
    check_checkpoint(bytes);
    check_proof(bytes);
    if (ron_vkey_parse(bytes, &key, NULL) == RON_ERR_OK)
        RON_ASSERT(key.id == ron_key_id(key.name, key.type, key.public_key));
    return 0;
}
