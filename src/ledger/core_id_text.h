/*
 * core_id_text.h - id texts as batches and frames hold them, one after the other.
 *
 *     u8 size, size bytes      any text that is not 32 lower-case hex digits
 *     0, 16 bytes              the 32 digits of these bytes: what binary ids are
 *
 * No text is empty, so size 0 is free. Each text has one form: the long form of what has the short
 * one is refused. In memory (ledger_op.id_text) it is the slice of what is behind the size: of size
 * 0 with the 16 bytes at its data, or the text, which may there be any.
 */
#ifndef RON_LEDGER_CORE_ID_TEXT_H
#define RON_LEDGER_CORE_ID_TEXT_H

#include "base/b3.h"
#include "ledger/core_entry.h"

enum { LEDGER_ID_DIGITS = 2 * LEDGER_ID_SIZE };

/* Write a text of at most LEDGER_ID_TEXT_SIZE_MAX bytes; at most one byte more than that. Returns
 * how many. */
size_t ledger_id_text_put(struct ron_slice text, uint8_t *ret_bytes);
/* The same of the digits of 16 bytes. */
static inline size_t ledger_id_digits_put(const uint8_t *digits, uint8_t *ret_bytes)
{
    ret_bytes[0] = 0;
    memcpy(ret_bytes + 1, digits, LEDGER_ID_SIZE);
    return 1 + LEDGER_ID_SIZE;
}

/* Bytes of the text that starts here. */
static inline size_t ledger_id_text_stored(const uint8_t *at)
{
    return (size_t)1 + (at[0] == 0 ? LEDGER_ID_SIZE : at[0]);
}

/* The text that starts here, as it is in memory. Borrows. */
static inline struct ron_slice ledger_id_text_at(const uint8_t *at)
{
    return ron_slice_of(at + 1, at[0]);
}

/* The text itself: in place, or its digits written to room. Lives as long as both. */
struct ron_slice ledger_id_text_of(struct ron_slice text, char room[static LEDGER_ID_DIGITS + 1]);
/* That of the text that starts here. */
struct ron_slice ledger_id_text_get(const uint8_t *at, char room[static LEDGER_ID_DIGITS + 1]);

/* Bytes of the first `count` texts; false if they are cut, too long or in the wrong form. */
bool ledger_id_texts_check(struct ron_slice bytes, uint32_t count, size_t *ret_size);

/* Makes the ids of many entries of one tenant (ledger_entry_id), up to LEDGER_ID_GROUP at a time:
 * together, where their texts have one size and are a block with the tenant. */
enum { LEDGER_ID_GROUP = RON_B3_LANES_MAX };
struct ledger_id_maker {
    struct ron_u128 tenant;
    uint32_t begun_count; /* blocks that begin as all messages do */
    struct ron_b3_block blocks[LEDGER_ID_GROUP];
};
void ledger_id_maker_init(struct ledger_id_maker *maker, struct ron_u128 tenant);
void ledger_id_maker_run(struct ledger_id_maker *maker, const struct ron_slice *texts,
                         uint32_t count, struct ledger_id *ret_ids);

#endif
