/*
 * order.c - the order of the requests in one window: by (source time, id) of their first entry,
 * except that requests debiting one account keep the order of its nonces.
 *
 * What arrived is thus made an order that does not depend on which prevalidator was quicker. Pure;
 * windows are small, so plain insertion and selection will do.
 */
#include "ledger/core_id_text.h"
#include "ledger/service_impl.h"

/* What decides, nearly always: beside the request, so that comparing two touches neither. */
struct key {
    uint64_t ts_ms;
    uint64_t start, more; /* the id's first 16 bytes, as numbers that order like them; ids with a
                           * time in front of them share the first eight */
    struct ledger_request *request;
};

/* room: for digits. */
static struct ron_slice id_of(const struct ledger_request *request,
                              char room[static LEDGER_ID_DIGITS + 1])
{
    const struct ledger_command *command = &request->command;

    return command->ops_count > 0 ? ledger_id_text_of(ledger_op_head(command, 0)->id_text, room)
                                  : (struct ron_slice){NULL, 0};
}

static struct key key_of(struct ledger_request *request)
{
    const struct ledger_command *command = &request->command;
    char room[LEDGER_ID_DIGITS + 1];
    const struct ron_slice id = id_of(request, room);
    struct key key = {.ts_ms = request->state.arrived_ms, .request = request};
    uint8_t start[16] = {0};

    if (command->ops_count > 0 && ledger_op_head(command, 0)->has_ts)
        key.ts_ms = ledger_op_head(command, 0)->ts_ms;
    if (id.size > 0)
        memcpy(start, id.data, id.size < sizeof(start) ? id.size : sizeof(start));
    key.start = ron_load_be64(start);
    key.more = ron_load_be64(start + 8);
    return key;
}

static bool is_before(const struct key *a, const struct key *b)
{
    char room_a[LEDGER_ID_DIGITS + 1], room_b[LEDGER_ID_DIGITS + 1];
    struct ron_slice id_a, id_b;
    size_t size;
    int order;

    if (a->ts_ms != b->ts_ms)
        return a->ts_ms < b->ts_ms;
    if (a->start != b->start)
        return a->start < b->start;
    if (a->more != b->more)
        return a->more < b->more;
    id_a = id_of(a->request, room_a);
    id_b = id_of(b->request, room_b);
    size = id_a.size < id_b.size ? id_a.size : id_b.size;
    order = size == 0 ? 0 : memcmp(id_a.data, id_b.data, size);
    return order != 0 ? order < 0 : id_a.size < id_b.size;
}

void request_find_lane(struct ledger_request *request)
{
    request->state.lane = NULL;
    for (uint32_t i = 0; i < request->command.ops_count && request->state.lane == NULL; i++) {
        const struct ledger_bare_op *op = ledger_op_head(&request->command, i);

        if (op->nonce != 0)
            request->state.lane = op;
    }
}

/* Among the places that one account's requests have, the lowest nonce comes first. */
static void order_lanes(struct ledger_request **window, size_t count)
{
    const struct ledger_bare_op *lanes[LEDGER_WINDOW_MAX];

    for (size_t i = 0; i < count; i++)
        lanes[i] = window[i]->state.lane;
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; lanes[i] != NULL && j < count; j++) {
            struct ledger_request *request = window[i];
            const struct ledger_bare_op *lane = lanes[i];

            if (lanes[j] == NULL || lanes[j]->nonce >= lane->nonce ||
                !ledger_id_equal(&lanes[j]->debit, &lane->debit))
                continue;
            window[i] = window[j];
            lanes[i] = lanes[j];
            window[j] = request;
            lanes[j] = lane;
        }
}

void requests_order(struct ledger_request **window, size_t count)
{
    struct key keys[LEDGER_WINDOW_MAX];

    RON_ASSERT(count <= LEDGER_WINDOW_MAX);
    if (count < 2)
        return;
    for (size_t i = 0; i < count; i++) {
        const struct key key = key_of(window[i]);
        size_t at = i;

        for (; at > 0 && is_before(&key, &keys[at - 1]); at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
    for (size_t i = 0; i < count; i++)
        window[i] = keys[i].request;
    order_lanes(window, count);
}
