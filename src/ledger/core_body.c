/*
 * core_body.c - what a frame keeps of its command beside the entries. Layouts: docs/formats.md.
 *
 * A cursor over bytes with a failure flag: after the first read beyond the end everything reads as
 * zero, and the end is asked once.
 */
#include "ledger/core_apply.h"
#include "ledger/core_frame.h"

struct cursor {
    const uint8_t *at;
    size_t left;
    bool failed;
};

static const uint8_t *get(struct cursor *cursor, size_t size)
{
    static const uint8_t zeros[UINT8_MAX];
    const uint8_t *at = cursor->at;

    if (cursor->failed || size > cursor->left) {
        cursor->failed = true;
        return zeros;
    }
    cursor->at += size;
    cursor->left -= size;
    return at;
}

static struct ron_slice get_text(struct cursor *cursor)
{
    size_t size = get(cursor, 1)[0];
    const uint8_t *at = get(cursor, size);

    return ron_slice_of(at, cursor->failed ? 0 : size);
}

static uint8_t *put_text(uint8_t *at, struct ron_slice text)
{
    RON_ASSERT(text.size <= UINT8_MAX);
    *at++ = (uint8_t)text.size;
    if (text.size > 0)
        memcpy(at, text.data, text.size);
    return at + text.size;
}

static uint8_t *put_amount(uint8_t *at, struct ron_u128 amount)
{
    ron_u128_store_le(at, amount);
    return at + 16;
}

/* What is not given is zero. */
static uint8_t *put_given(uint8_t *at, bool given, struct ron_u128 amount)
{
    return put_amount(at, given ? amount : ron_u128_of(0));
}

#define BIT_MINIMUM      0x01u
#define BIT_MAXIMUM      0x02u
#define BIT_CREDIT       0x04u
#define BIT_DAILY        0x08u
#define BIT_FROZEN_GIVEN 0x10u
#define BIT_FROZEN       0x20u
#define BITS_ALL         0x3fu

static uint8_t *put_limits(uint8_t *at, const struct ledger_limit_terms *terms)
{
    *at++ =
        (uint8_t)((terms->has_minimum ? BIT_MINIMUM : 0) | (terms->has_maximum ? BIT_MAXIMUM : 0) |
                  (terms->has_credit_line ? BIT_CREDIT : 0) | (terms->has_daily ? BIT_DAILY : 0) |
                  (terms->has_frozen ? BIT_FROZEN_GIVEN : 0) |
                  (terms->has_frozen && terms->frozen ? BIT_FROZEN : 0));
    at = put_given(at, terms->has_minimum, terms->minimum);
    at = put_given(at, terms->has_maximum, terms->maximum);
    at = put_given(at, terms->has_credit_line, terms->credit_line);
    at = put_given(at, terms->has_daily, terms->daily);
    at = put_text(at, terms->account);
    return put_text(at, terms->asset);
}

static uint8_t *put_run(uint8_t *at, const struct ledger_run_terms *terms)
{
    ron_store_le32(at, terms->chunk);
    ron_store_le32(at + 4, terms->chunks);
    at = put_amount(at + 8, terms->total);
    memcpy(at, terms->commitment, LEDGER_DIGEST_SIZE);
    at = put_text(at + LEDGER_DIGEST_SIZE, terms->epoch_id);
    at = put_text(at, terms->run_key);
    at = put_text(at, terms->funding_source);
    return put_text(at, terms->asset);
}

static uint8_t *put_slice(uint8_t *at, const struct ledger_slice_terms *terms)
{
    ron_store_le64(at, terms->seq);
    memcpy(at + 8, terms->digest, LEDGER_DIGEST_SIZE);
    memcpy(at + 8 + LEDGER_DIGEST_SIZE, terms->prev, LEDGER_DIGEST_SIZE);
    return put_text(at + 8 + 2 * LEDGER_DIGEST_SIZE, terms->dimension);
}

uint32_t body_encode(const struct ledger_command *command, uint8_t *ret_body)
{
    uint8_t *at = ret_body;

    if (command->kind == LEDGER_COMMAND_ASSET) {
        *at++ = (uint8_t)command->asset.decimals;
        at = put_amount(at, command->asset.max_supply);
        at = put_text(at, command->asset.name);
    } else if (command->kind == LEDGER_COMMAND_LIMITS) {
        at = put_limits(at, &command->limits);
    } else if (command->kind == LEDGER_COMMAND_INTENTS) {
        at = put_run(at, &command->run);
    } else if (command->kind == LEDGER_COMMAND_SLICE) {
        at = put_slice(at, &command->slice);
    } else if (command->kind == LEDGER_COMMAND_ABANDON) {
        at = put_text(at, command->abandon.epoch_id);
        at = put_text(at, command->abandon.run_key);
    }
    RON_ASSERT(at - ret_body <= LEDGER_BODY_SIZE_MAX);
    return (uint32_t)(at - ret_body);
}

/* An amount is not zero exactly if it is given. */
static struct ron_u128 get_given(struct cursor *cursor, bool given)
{
    struct ron_u128 amount = ron_u128_load_le(get(cursor, 16));

    cursor->failed = cursor->failed || given == ron_u128_is_zero(amount);
    return amount;
}

static void get_limits(struct cursor *cursor, struct ledger_limit_terms *terms)
{
    unsigned bits = get(cursor, 1)[0];

    if ((bits & ~BITS_ALL) != 0 || (bits & (BIT_FROZEN_GIVEN | BIT_FROZEN)) == BIT_FROZEN)
        cursor->failed = true;
    terms->has_minimum = (bits & BIT_MINIMUM) != 0;
    terms->has_maximum = (bits & BIT_MAXIMUM) != 0;
    terms->has_credit_line = (bits & BIT_CREDIT) != 0;
    terms->has_daily = (bits & BIT_DAILY) != 0;
    terms->has_frozen = (bits & BIT_FROZEN_GIVEN) != 0;
    terms->frozen = (bits & BIT_FROZEN) != 0;
    terms->minimum = get_given(cursor, terms->has_minimum);
    terms->maximum = get_given(cursor, terms->has_maximum);
    terms->credit_line = get_given(cursor, terms->has_credit_line);
    terms->daily = get_given(cursor, terms->has_daily);
    terms->account = get_text(cursor);
    terms->asset = get_text(cursor);
    if (terms->asset.size == 0)
        terms->asset.data = NULL;
}

static void get_run(struct cursor *cursor, struct ledger_run_terms *terms)
{
    terms->chunk = ron_load_le32(get(cursor, 4));
    terms->chunks = ron_load_le32(get(cursor, 4));
    terms->total = ron_u128_load_le(get(cursor, 16));
    memcpy(terms->commitment, get(cursor, LEDGER_DIGEST_SIZE), LEDGER_DIGEST_SIZE);
    terms->epoch_id = get_text(cursor);
    terms->run_key = get_text(cursor);
    terms->funding_source = get_text(cursor);
    terms->asset = get_text(cursor);
}

enum ron_err body_decode(struct ron_slice body, struct ledger_command *command,
                         struct ron_errinfo *reterr)
{
    struct cursor cursor = {.at = body.data, .left = body.size};

    if (command->kind == LEDGER_COMMAND_ASSET) {
        command->asset.decimals = get(&cursor, 1)[0];
        command->asset.max_supply = ron_u128_load_le(get(&cursor, 16));
        command->asset.name = get_text(&cursor);
    } else if (command->kind == LEDGER_COMMAND_LIMITS) {
        get_limits(&cursor, &command->limits);
    } else if (command->kind == LEDGER_COMMAND_INTENTS) {
        get_run(&cursor, &command->run);
    } else if (command->kind == LEDGER_COMMAND_SLICE) {
        command->slice.seq = ron_load_le64(get(&cursor, 8));
        memcpy(command->slice.digest, get(&cursor, 32), LEDGER_DIGEST_SIZE);
        memcpy(command->slice.prev, get(&cursor, 32), LEDGER_DIGEST_SIZE);
        command->slice.dimension = get_text(&cursor);
    } else if (command->kind == LEDGER_COMMAND_ABANDON) {
        command->abandon.epoch_id = get_text(&cursor);
        command->abandon.run_key = get_text(&cursor);
    }
    if (cursor.failed || cursor.left > 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "a frame's body of %zu bytes is not its kind's",
                        body.size);
    return RON_ERR_OK;
}

enum ron_err ledger_frame_terms(const struct ledger_frame *frame,
                                struct ledger_command *ret_command, struct ron_errinfo *reterr)
{
    struct ledger_command command = {.kind = frame->command, .stamp = frame->stamp};
    enum ron_err err = body_decode(frame->body, &command, reterr);

    if (err == RON_ERR_OK)
        *ret_command = command;
    return err;
}
