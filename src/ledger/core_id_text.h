/*
 * core_id_text.h - id texts as batches and frames hold them, one after the other.
 *
 *     u8 size, size bytes      any text that is not 32 lower-case hex digits
 *     0, 16 bytes              the 32 digits of these bytes: what binary ids are
 *
 * No text is empty, so size 0 is free. Each text has one form: the long form of what has the short
 * one is refused.
 */
#ifndef RON_LEDGER_CORE_ID_TEXT_H
#define RON_LEDGER_CORE_ID_TEXT_H

#include "ledger/core_entry.h"

enum { LEDGER_ID_DIGITS = 2 * LEDGER_ID_SIZE };

/* Write a text of 1..LEDGER_ID_TEXT_SIZE_MAX bytes; at most one byte more than it has. Returns how
 * many. */
size_t ledger_id_text_put(struct ron_slice text, uint8_t *ret_bytes);

/* Bytes of the text that starts here. */
static inline size_t ledger_id_text_stored(const uint8_t *at)
{
    return (size_t)1 + (at[0] == 0 ? LEDGER_ID_SIZE : at[0]);
}

/* The text that starts here: in place, or written to room. Lives as long as both. */
struct ron_slice ledger_id_text_get(const uint8_t *at, char room[static LEDGER_ID_DIGITS + 1]);

/* Bytes of the first `count` texts; false if they are cut, too long or in the wrong form. */
bool ledger_id_texts_check(struct ron_slice bytes, uint32_t count, size_t *ret_size);

#endif
