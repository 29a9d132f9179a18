/*
 * core_id_text.c - see core_id_text.h.
 */
#include "ledger/core_id_text.h"

#include "base/assert.h"
#include "base/hex.h"

/* Has it the short form? Its bytes then. */
static bool is_short(struct ron_slice text, uint8_t ret_bytes[static LEDGER_ID_SIZE])
{
    size_t size;

    return text.size == LEDGER_ID_DIGITS &&
           ron_hex_decode(text, ret_bytes, LEDGER_ID_SIZE, &size, NULL) == RON_ERR_OK;
}

size_t ledger_id_text_put(struct ron_slice text, uint8_t *ret_bytes)
{
    RON_ASSERT(text.size > 0);
    RON_ASSERT(text.size <= LEDGER_ID_TEXT_SIZE_MAX);
    if (is_short(text, ret_bytes + 1)) {
        ret_bytes[0] = 0;
        return 1 + LEDGER_ID_SIZE;
    }
    ret_bytes[0] = (uint8_t)text.size;
    memcpy(ret_bytes + 1, text.data, text.size);
    return 1 + text.size;
}

struct ron_slice ledger_id_text_get(const uint8_t *at, char room[static LEDGER_ID_DIGITS + 1])
{
    if (at[0] != 0)
        return ron_slice_of(at + 1, at[0]);
    (void)ron_hex_encode(ron_slice_of(at + 1, LEDGER_ID_SIZE), room, LEDGER_ID_DIGITS + 1);
    return ron_slice_of(room, LEDGER_ID_DIGITS);
}

bool ledger_id_texts_check(struct ron_slice bytes, uint32_t count, size_t *ret_size)
{
    uint8_t id[LEDGER_ID_SIZE];
    size_t at = 0;

    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *text = bytes.data + at;
        size_t size;

        if (at >= bytes.size || text[0] > LEDGER_ID_TEXT_SIZE_MAX)
            return false;
        size = ledger_id_text_stored(text);
        if (size > bytes.size - at || is_short(ron_slice_of(text + 1, text[0]), id))
            return false;
        at += size;
    }
    *ret_size = at;
    return true;
}
