/*
 * order.c - the order of the requests in one window: by (source time, id) of their first entry,
 * except that requests debiting one account keep the order of its nonces.
 *
 * What arrived is thus made an order that does not depend on which prevalidator was quicker. Pure;
 * windows are small, so plain insertion and selection will do.
 */
#include "ledger/service_impl.h"

struct key {
    uint64_t ts_ms;
    struct ron_slice id;
};

static struct key key_of(const struct ledger_request *request)
{
    const struct ledger_command *command = &request->command;
    struct key key = {request->state.arrived_ms, {NULL, 0}};

    if (command->ops_count > 0) {
        key.id = command->ops[0].id_text;
        if (command->ops[0].has_ts)
            key.ts_ms = command->ops[0].ts_ms;
    }
    return key;
}

static bool is_before(const struct ledger_request *a, const struct ledger_request *b)
{
    const struct key key_a = key_of(a);
    const struct key key_b = key_of(b);
    const size_t size = key_a.id.size < key_b.id.size ? key_a.id.size : key_b.id.size;
    int order;

    if (key_a.ts_ms != key_b.ts_ms)
        return key_a.ts_ms < key_b.ts_ms;
    order = size == 0 ? 0 : memcmp(key_a.id.data, key_b.id.data, size);
    return order != 0 ? order < 0 : key_a.id.size < key_b.id.size;
}

/* The first entry with a nonce: the account and the nonce its request waits for. */
static const struct ledger_op *lane_of(const struct ledger_request *request)
{
    for (uint32_t i = 0; i < request->command.ops_count; i++)
        if (request->command.ops[i].nonce != 0)
            return &request->command.ops[i];
    return NULL;
}

/* Among the places that one account's requests have, the lowest nonce comes first. */
static void order_lanes(struct ledger_request **window, size_t count)
{
    const struct ledger_op *lanes[LEDGER_WINDOW_MAX];

    for (size_t i = 0; i < count; i++)
        lanes[i] = lane_of(window[i]);
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; lanes[i] != NULL && j < count; j++) {
            struct ledger_request *request = window[i];
            const struct ledger_op *lane = lanes[i];

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
    RON_ASSERT(count <= LEDGER_WINDOW_MAX);
    for (size_t i = 1; i < count; i++) {
        struct ledger_request *request = window[i];
        size_t at = i;

        while (at > 0 && is_before(request, window[at - 1])) {
            window[at] = window[at - 1];
            at--;
        }
        window[at] = request;
    }
    order_lanes(window, count);
}
