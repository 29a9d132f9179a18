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
    RON_ASSERT(text.data != NULL);
    RON_ASSERT(text.size <= LEDGER_ID_TEXT_SIZE_MAX);
    if (text.size == 0)
        memcpy(ret_bytes + 1, text.data, LEDGER_ID_SIZE);
    if (text.size == 0 || is_short(text, ret_bytes + 1)) {
        ret_bytes[0] = 0;
        return 1 + LEDGER_ID_SIZE;
    }
    ret_bytes[0] = (uint8_t)text.size;
    memcpy(ret_bytes + 1, text.data, text.size);
    return 1 + text.size;
}

struct ron_slice ledger_id_text_of(struct ron_slice text, char room[static LEDGER_ID_DIGITS + 1])
{
    if (text.size != 0)
        return text;
    RON_ASSERT(text.data != NULL);
    (void)ron_hex_encode(ron_slice_of(text.data, LEDGER_ID_SIZE), room, LEDGER_ID_DIGITS + 1);
    return ron_slice_of(room, LEDGER_ID_DIGITS);
}

struct ron_slice ledger_id_text_get(const uint8_t *at, char room[static LEDGER_ID_DIGITS + 1])
{
    return ledger_id_text_of(ledger_id_text_at(at), room);
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

/* --- Ids of many -------------------------------------------------------------------------------
 */

enum { HEAD_SIZE = sizeof(LEDGER_ENTRY_DOMAIN) + LEDGER_TENANT_SIZE };
_Static_assert(HEAD_SIZE + LEDGER_ID_DIGITS < RON_B3_BLOCK_SIZE, "digits and a NUL fit");

void ledger_id_maker_init(struct ledger_id_maker *maker, struct ron_u128 tenant)
{
    maker->tenant = tenant;
    memcpy(maker->blocks[0].bytes, LEDGER_ENTRY_DOMAIN, sizeof(LEDGER_ENTRY_DOMAIN));
    ron_u128_store_be(maker->blocks[0].bytes + sizeof(LEDGER_ENTRY_DOMAIN), tenant);
    maker->begun_count = 1;
}

/* Of the text itself. */
static size_t text_size(struct ron_slice text)
{
    return text.size == 0 ? (size_t)LEDGER_ID_DIGITS : text.size;
}

static bool have_one_size(const struct ron_slice *texts, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (text_size(texts[i]) != text_size(texts[0]))
            return false;
    return true;
}

static void put_block(struct ron_b3_block *block, struct ron_slice text)
{
    char *at = (char *)block->bytes + HEAD_SIZE;

    if (text.size == 0)
        (void)ron_hex_encode(ron_slice_of(text.data, LEDGER_ID_SIZE), at, LEDGER_ID_DIGITS + 1);
    else
        memcpy(at, text.data, text.size);
}

void ledger_id_maker_run(struct ledger_id_maker *maker, const struct ron_slice *texts,
                         uint32_t count, struct ledger_id *ret_ids)
{
    char room[LEDGER_ID_DIGITS + 1];

    RON_ASSERT(count <= LEDGER_ID_GROUP);
    if (count < 2 || text_size(texts[0]) > RON_B3_BLOCK_SIZE - HEAD_SIZE ||
        !have_one_size(texts, count)) {
        for (uint32_t i = 0; i < count; i++)
            ret_ids[i] = ledger_entry_id(maker->tenant, ledger_id_text_of(texts[i], room));
        return;
    }
    for (; maker->begun_count < count; maker->begun_count++)
        memcpy(maker->blocks[maker->begun_count].bytes, maker->blocks[0].bytes, HEAD_SIZE);
    for (uint32_t i = 0; i < count; i++)
        put_block(&maker->blocks[i], texts[i]);
    ron_b3_ids16(maker->blocks, count, HEAD_SIZE + text_size(texts[0]),
                 (uint8_t(*)[RON_B3_ID_SIZE])(void *)ret_ids);
}
