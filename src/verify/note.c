/*
 * note.c - keys and signed notes (c2sp.org/signed-note).
 *
 * A note is UTF-8 without control characters but newline: a text, an empty line (the last one), and
 * signature lines "— name base64(key id || signature)". Bytes of signatures are decoded in pieces,
 * so that one of an unknown, larger kind costs no memory.
 */
#include "base/assert.h"
#include "base/decimal.h"
#include "base/ed25519.h"
#include "base/hex.h"
#include "base/printable.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "ron/verify.h"
#include "verify/text.h"

enum {
    KEY_ID_SIZE = 4,
    KEY_ID_DIGITS = 8,
    PUBLIC_SIZE = 32,
    TIMESTAMP_SIZE = 8,
    SHOWN_SIZE = 48, /* of foreign text in a message */
    PIECE_SIZE = 512 /* characters of base64 at a time; a multiple of 4 */
};
_Static_assert(RON_SIGNATURE_KEPT_MAX == TIMESTAMP_SIZE + RON_ED25519_SIGNATURE_SIZE,
               "a cosignature is kept whole");

/* Does a space character of Unicode (property White_Space) start here? text is valid UTF-8. */
static bool is_space(const uint8_t *at, size_t left)
{
    if (at[0] <= 0x20 || at[0] == 0x7f)
        return true;                /* and the control characters of ASCII */
    if (left >= 2 && at[0] == 0xc2) /* U+0085, U+00A0 */
        return at[1] == 0x85 || at[1] == 0xa0;
    if (left < 3)
        return false;
    if (at[0] == 0xe1) /* U+1680 */
        return at[1] == 0x9a && at[2] == 0x80;
    if (at[0] == 0xe2 && at[1] == 0x80) /* U+2000..200A, U+2028, U+2029, U+202F */
        return at[2] <= 0x8a || at[2] == 0xa8 || at[2] == 0xa9 || at[2] == 0xaf;
    if (at[0] == 0xe2 && at[1] == 0x81) /* U+205F */
        return at[2] == 0x9f;
    return at[0] == 0xe3 && at[1] == 0x80 && at[2] == 0x80; /* U+3000 */
}

bool ron_key_name_valid(struct ron_slice name)
{
    if (name.size == 0 || name.size > RON_KEY_NAME_SIZE_MAX || !ron_utf8_valid(name, NULL))
        return false;
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] == '+' || is_space(name.data + i, name.size - i))
            return false;
    return true;
}

uint32_t ron_key_id(struct ron_slice name, enum ron_key_type type, const uint8_t public_key[32])
{
    const uint8_t middle[2] = {'\n', (uint8_t)type};
    struct ron_sha256_ctx ctx;
    struct ron_sha256 hash;

    ron_sha256_init(&ctx);
    ron_sha256_update(&ctx, name.data, name.size);
    ron_sha256_update(&ctx, middle, sizeof(middle));
    ron_sha256_update(&ctx, public_key, PUBLIC_SIZE);
    hash = ron_sha256_final(&ctx);
    return ron_load_be32(hash.bytes);
}

enum ron_err ron_vkey_parse(struct ron_slice text, struct ron_vkey *ret_key,
                            struct ron_errinfo *reterr)
{
    uint8_t id[KEY_ID_SIZE], key[1 + PUBLIC_SIZE];
    const uint8_t *plus;
    struct ron_slice rest;
    struct ron_vkey result;
    size_t size = 0;

    if (text.size > RON_VKEY_SIZE_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a key of %zu characters, at most %d", text.size,
                        RON_VKEY_SIZE_MAX);
    plus = text.size == 0 ? NULL : memchr(text.data, '+', text.size);
    if (plus == NULL)
        return ron_fail(reterr, RON_ERR_MALFORMED, "a key is name+id+base64");
    result.name = ron_slice_of(text.data, (size_t)(plus - text.data));
    if (!ron_key_name_valid(result.name))
        return ron_fail(reterr, RON_ERR_MALFORMED, "a key without a valid name");
    rest = ron_slice_of(plus + 1, text.size - result.name.size - 1);
    if (rest.size <= KEY_ID_DIGITS || rest.data[KEY_ID_DIGITS] != '+' ||
        ron_hex_decode(ron_slice_of(rest.data, KEY_ID_DIGITS), id, sizeof(id), &size, NULL) !=
            RON_ERR_OK)
        return ron_fail(reterr, RON_ERR_MALFORMED, "a key whose id is not 8 hex digits");
    rest = ron_slice_of(rest.data + KEY_ID_DIGITS + 1, rest.size - KEY_ID_DIGITS - 1);
    if (ron_base64_decode(RON_BASE64_STANDARD, rest, key, sizeof(key), &size, NULL) != RON_ERR_OK ||
        size != sizeof(key))
        return ron_fail(reterr, RON_ERR_MALFORMED, "a key that is not 33 bytes of base64");
    if (key[0] != RON_KEY_ED25519 && key[0] != RON_KEY_COSIGNATURE)
        return ron_fail(reterr, RON_ERR_MALFORMED, "a key of type %u; 1 and 4 are known",
                        (unsigned)key[0]);
    result.type = (enum ron_key_type)key[0];
    result.id = ron_load_be32(id);
    memcpy(result.public_key, key + 1, PUBLIC_SIZE);
    if (result.id != ron_key_id(result.name, result.type, result.public_key))
        return ron_fail(reterr, RON_ERR_MALFORMED, "a key whose id is not that of name and key");
    *ret_key = result;
    return RON_ERR_OK;
}

/* Key id and signature out of base64, keeping the first bytes. False if it is none. */
static bool read_signature_bytes(struct ron_slice text, struct ron_note_signature *signature)
{
    uint8_t kept[KEY_ID_SIZE + RON_SIGNATURE_KEPT_MAX] = {0};
    size_t total = 0;

    for (size_t at = 0; at < text.size; at += PIECE_SIZE) {
        bool is_last = text.size - at <= PIECE_SIZE;
        struct ron_slice piece = {text.data + at, is_last ? text.size - at : PIECE_SIZE};
        uint8_t bytes[PIECE_SIZE / 4 * 3];
        size_t size = 0;

        if (ron_base64_decode(is_last ? RON_BASE64_STANDARD : RON_BASE64_STANDARD_NO_PAD, piece,
                              bytes, sizeof(bytes), &size, NULL) != RON_ERR_OK)
            return false;
        if (at == 0)
            memcpy(kept, bytes, size < sizeof(kept) ? size : sizeof(kept));
        total += size;
    }
    if (total <= KEY_ID_SIZE)
        return false;
    signature->key_id = ron_load_be32(kept);
    signature->size = total - KEY_ID_SIZE;
    memcpy(signature->bytes, kept + KEY_ID_SIZE, RON_SIGNATURE_KEPT_MAX);
    return true;
}

static enum ron_err read_signature(struct ron_slice line, struct ron_note_signature *signature,
                                   struct ron_errinfo *reterr)
{
    struct ron_slice rest = line;
    const uint8_t *space;

    signature->line = line;
    if (!text_take_prefix(&rest, RON_SLICE("\xe2\x80\x94 "))) /* em dash */
        return ron_fail(reterr, RON_ERR_MALFORMED, "a signature line without its dash");
    space = rest.size == 0 ? NULL : memchr(rest.data, ' ', rest.size);
    if (space == NULL)
        return ron_fail(reterr, RON_ERR_MALFORMED, "a signature line without a signature");
    signature->name = ron_slice_of(rest.data, (size_t)(space - rest.data));
    rest = ron_slice_of(space + 1, rest.size - signature->name.size - 1);
    if (!ron_key_name_valid(signature->name))
        return ron_fail(reterr, RON_ERR_MALFORMED, "a signature line whose name is not valid");
    if (!read_signature_bytes(rest, signature)) {
        char shown[SHOWN_SIZE];

        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "the signature of %s is not base64 of more than 4 bytes",
                        ron_printable(signature->name, shown, sizeof(shown)));
    }
    return RON_ERR_OK;
}

static enum ron_err check_characters(struct ron_slice bytes, struct ron_errinfo *reterr)
{
    size_t at = 0;

    if (!ron_utf8_valid(bytes, &at))
        return ron_fail(reterr, RON_ERR_MALFORMED, "byte %zu: not UTF-8", at);
    for (at = 0; at < bytes.size; at++)
        if (bytes.data[at] < 0x20 && bytes.data[at] != '\n')
            return ron_fail(reterr, RON_ERR_MALFORMED, "byte %zu: a control character", at);
    return RON_ERR_OK;
}

/* Where the last empty line ends; 0 if there is none. A text is never empty: it ends in a newline,
 * and the empty line is a second one. */
static size_t find_signatures(struct ron_slice bytes)
{
    for (size_t at = bytes.size; at >= 3; at--)
        if (bytes.data[at - 1] == '\n' && bytes.data[at - 2] == '\n')
            return at;
    return 0;
}

enum ron_err ron_note_parse(struct ron_slice bytes, struct ron_note *ret_note,
                            struct ron_errinfo *reterr)
{
    struct ron_note note = {.signatures_count = 0};
    struct ron_slice rest, line;
    enum ron_err err;
    size_t at;

    if (bytes.size > RON_NOTE_SIZE_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a note of %zu bytes, at most %d", bytes.size,
                        RON_NOTE_SIZE_MAX);
    err = check_characters(bytes, reterr);
    if (err != RON_ERR_OK)
        return err;
    at = find_signatures(bytes);
    if (at == 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "a note without an empty line");
    note.text = ron_slice_of(bytes.data, at - 1);
    rest = ron_slice_of(bytes.data + at, bytes.size - at);
    while (text_take_line(&rest, &line)) {
        if (note.signatures_count == RON_NOTE_SIGNATURES_MAX)
            return ron_fail(reterr, RON_ERR_TOO_LARGE, "a note of more than %d signatures",
                            RON_NOTE_SIGNATURES_MAX);
        err = read_signature(line, &note.signatures[note.signatures_count], reterr);
        if (err != RON_ERR_OK)
            return err;
        note.signatures_count++;
    }
    if (rest.size > 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "a note whose last line has no newline");
    if (note.signatures_count == 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "a note without a signature");
    *ret_note = note;
    return RON_ERR_OK;
}

/* A cosignature covers "cosignature/v1\ntime N\n" and the text. */
static bool verify_cosignature(const struct ron_note *note, const struct ron_vkey *key,
                               const struct ron_note_signature *signature)
{
    static const char head[] = "cosignature/v1\ntime ";
    char message[sizeof(head) + RON_DECIMAL_U64_SIZE + RON_CHECKPOINT_SIZE_MAX];
    uint64_t timestamp = ron_load_be64(signature->bytes);
    size_t size = sizeof(head) - 1;

    if (signature->size != TIMESTAMP_SIZE + RON_ED25519_SIGNATURE_SIZE ||
        note->text.size > RON_CHECKPOINT_SIZE_MAX || timestamp > INT64_MAX)
        return false;
    memcpy(message, head, size);
    size += ron_decimal_print_u64(timestamp, message + size);
    message[size++] = '\n';
    memcpy(message + size, note->text.data, note->text.size);
    size += note->text.size;
    RON_ASSERT(size <= sizeof(message));
    return ron_ed25519_verify(key->public_key, ron_slice_of(message, size),
                              signature->bytes + TIMESTAMP_SIZE);
}

static bool verify_signature(const struct ron_note *note, const struct ron_vkey *key,
                             const struct ron_note_signature *signature)
{
    if (key->type == RON_KEY_COSIGNATURE)
        return verify_cosignature(note, key, signature);
    RON_ASSERT(key->type == RON_KEY_ED25519);
    return signature->size == RON_ED25519_SIGNATURE_SIZE &&
           ron_ed25519_verify(key->public_key, note->text, signature->bytes);
}

enum ron_err ron_note_verify(const struct ron_note *note, const struct ron_vkey *keys,
                             size_t keys_count, uint64_t *ret_signers, struct ron_errinfo *reterr)
{
    uint64_t signers = 0;

    RON_ASSERT(keys_count <= RON_VKEYS_MAX);
    for (size_t i = 0; i < note->signatures_count; i++) {
        const struct ron_note_signature *signature = &note->signatures[i];

        for (size_t k = 0; k < keys_count; k++) {
            char shown[SHOWN_SIZE];

            if (keys[k].id != signature->key_id || !ron_slice_equal(keys[k].name, signature->name))
                continue;
            if (!verify_signature(note, &keys[k], signature))
                return ron_fail(reterr, RON_ERR_INVALID_SIGNATURE, "the signature of %s is wrong",
                                ron_printable(keys[k].name, shown, sizeof(shown)));
            signers |= (uint64_t)1 << k;
        }
    }
    if (signers == 0)
        return ron_fail(reterr, RON_ERR_INVALID_SIGNATURE,
                        "none of %zu signatures is of a known key", note->signatures_count);
    *ret_signers = signers;
    return RON_ERR_OK;
}
