/*
 * oap_client_task.c - the task that owns the connection of an OAP/1 client. See oap_client_impl.h.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "io/inflate.h"
#include "io/oap_client_impl.h"

#define HELLO_CORR_ID UINT64_MAX /* no request has it */
enum {
    IN_SIZE_MIN = 65536,
    IN_SIZE_MAX = RON_FRAME_SIZE_MAX,
    HELLO_REPLY_MAX = OAP_HEAD_SIZE + 1024,
};
_Static_assert((int)IN_SIZE_MIN >= (int)OAP_HEAD_SIZE, "a head has room");

/* ---- Completions ---- */

/* Without a reply. */
static void complete_failed(const struct oap_taken *taken, const struct ron_errinfo *info)
{
    struct oap_client_result result = {
        .err = info->err, .info = info, .sent = taken->sent, .corr_id = taken->slot.corr_id};

    taken->slot.done(taken->slot.context, &result);
}

/* Every request whose deadline is at until_ns or before; what their functions submit has a later
 * one, so this ends. */
static void expire(struct oap_client *client, uint64_t until_ns)
{
    for (;;) {
        struct oap_taken taken = {0};
        struct ron_errinfo info = {0};
        bool found = false;

        oap_client_lock(client);
        for (uint64_t left = client->used; left != 0 && !found; left &= left - 1) {
            const struct oap_slot *slot = &client->slots[__builtin_ctzll(left)];

            found = slot->deadline_ns <= until_ns && slot->deadline_ns != SH_NEVER &&
                    oap_client_take(client, slot->corr_id, &taken);
        }
        client->stats.timeouts_count += found;
        oap_client_unlock(client);
        if (!found)
            return;
        (void)ron_fail(&info, RON_ERR_TIMEOUT, "the deadline passed; %s",
                       taken.sent ? "whether the request was carried out is unknown"
                                  : "the request was not sent");
        complete_failed(&taken, &info);
    }
}

/* Frames whose request has ended before they were sent are left out. */
static void drop_dead(struct oap_client *client) RON_NEEDS(net)
{
    struct ron_buf *filling = &client->filling;
    size_t kept = 0;

    for (size_t at = 0; at < filling->size;) {
        uint8_t *bytes = filling->data + at;
        struct oap_head head;
        enum ron_err err = oap_head_decode(bytes, &head, NULL);
        unsigned number = head.corr_id & (OAP_INFLIGHT_MAX - 1);

        RON_ASSERT(err == RON_ERR_OK); /* ours */
        if ((client->used >> number & 1) != 0 && client->slots[number].corr_id == head.corr_id) {
            memmove(filling->data + kept, bytes, head.size);
            kept += head.size;
        }
        at += head.size;
    }
    filling->size = kept;
    client->dead_count = 0;
}

/* All that is in flight. What was not sent may be left for the next connection. */
static void fail_all(struct oap_client *client, bool unsent_too, const struct ron_errinfo *info)
{
    struct oap_taken taken[OAP_INFLIGHT_MAX];
    size_t count = 0;

    oap_client_lock(client);
    for (uint64_t left = client->used; left != 0; left &= left - 1) {
        const struct oap_slot *slot = &client->slots[__builtin_ctzll(left)];

        if (unsent_too || slot->begin < client->sent_end)
            count += oap_client_take(client, slot->corr_id, &taken[count]);
    }
    drop_dead(client); /* a target that is down shall not fill the buffer */
    oap_client_unlock(client);
    for (size_t i = 0; i < count; i++)
        complete_failed(&taken[i], info);
}

static void lose(struct oap_client *client, const struct ron_errinfo *info)
{
    client->wire = io_wire_close(client->wire);
    client->in_start = 0;
    client->in_end = 0;
    ron_buf_reset(&client->sending);
    client->sending_start = 0;
    client->ending = false;
    client->asked_ns = 0;
    oap_client_lock(client);
    client->stats.lost_count += client->inflight_count > 0;
    oap_client_unlock(client);
    fail_all(client, info->err == RON_ERR_CANCELED, info);
}

/* ---- Frames that came ---- */

/* What a reply says: its error envelope, or its body, opened if it is compressed. */
static void read_reply(struct oap_client *client, const struct oap_head *head,
                       struct ron_slice body, struct oap_client_result *result,
                       struct ron_errinfo *ret_info)
{
    struct ron_errinfo cause = {0};

    result->info = ret_info;
    result->status = head->code;
    result->body = body;
    if ((head->flags & OAP_COMP) != 0) {
        ron_buf_reset(&client->opened);
        if (io_inflate(IO_CODING_ZSTD, body, RON_INFLATED_SIZE_MAX, RON_DECOMPRESS_RATIO_MAX,
                       &client->opened, &cause) != RON_ERR_OK) {
            result->body = (struct ron_slice){0};
            result->err = ron_fail(ret_info, RON_ERR_UPSTREAM_UNAVAILABLE, "reply: %s",
                                   cause.message);
            return;
        }
        result->body = ron_buf_slice(&client->opened);
    }
    if (head->code < 400)
        return;
    if (!client_read_envelope(result->body, ret_info))
        (void)ron_fail(ret_info, RON_ERR_UPSTREAM_UNAVAILABLE,
                       "reply: status %u without an error envelope", head->code);
    result->err = ret_info->err;
}

static void take_reply(struct oap_client *client, const struct oap_head *head,
                       struct ron_slice body)
{
    struct oap_client_result result = {.corr_id = head->corr_id, .sent = true};
    struct oap_taken taken;
    struct ron_errinfo info;
    bool asked;

    oap_client_lock(client);
    asked = oap_client_take(client, head->corr_id, &taken);
    client->stats.replies_count += asked;
    client->stats.late_count += !asked;
    oap_client_unlock(client);
    if (!asked)
        return;
    read_reply(client, head, body, &result, &info);
    taken.slot.done(taken.slot.context, &result);
}

/* All whole frames. An error: this is not OAP/1, or not what a server sends. */
static enum ron_err take_frames(struct oap_client *client, struct ron_errinfo *reterr)
{
    while (client->in_end - client->in_start >= OAP_HEAD_SIZE && !client->ending) {
        const uint8_t *bytes = client->in + client->in_start;
        struct oap_head head;
        enum ron_err err = oap_head_decode(bytes, &head, reterr);

        if (err == RON_ERR_OK && (head.flags & OAP_REQ) != 0)
            err = ron_fail(reterr, RON_ERR_MALFORMED, "frame: a client takes no REQ");
        if (err != RON_ERR_OK)
            return err;
        if (client->in_end - client->in_start < head.size)
            return RON_ERR_OK;
        client->in_start += head.size;
        client->ending = (head.flags & OAP_END) != 0;
        if ((head.flags & OAP_RESP) != 0) {
            take_reply(client, &head, ron_slice_of(bytes + OAP_HEAD_SIZE, oap_body_size(&head)));
            continue;
        }
        oap_client_lock(client);
        client->stats.events_count++;
        oap_client_unlock(client);
    }
    return RON_ERR_OK;
}

/* Room behind what is there: twice as much each time a frame needs it, up to the longest one. */
static enum ron_err make_room(struct oap_client *client, struct ron_errinfo *reterr)
{
    size_t held = client->in_end - client->in_start;
    size_t capacity = client->in_capacity == 0 ? IN_SIZE_MIN : client->in_capacity * 2;
    uint8_t *in;

    if (client->in_start > 0) {
        memmove(client->in, client->in + client->in_start, held);
        client->in_start = 0;
        client->in_end = held;
    }
    if (client->in_end < client->in_capacity)
        return RON_ERR_OK;
    RON_ASSERT(capacity <= IN_SIZE_MAX); /* a frame that long is whole */
    in = ron_mem_resize(client->in, capacity);
    if (in == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a frame of the peer");
    client->in = in;
    client->in_capacity = capacity;
    return RON_ERR_OK;
}

/* ---- Connecting ---- */

static enum ron_err send_hello(struct oap_client *client, struct rt_deadline deadline,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_slice token = client->token == NULL ? (struct ron_slice){0}
                                                   : ron_secret_expose(client->token);
    struct oap_head head = {
        .flags = OAP_REQ | OAP_START,
        .size = (uint32_t)(OAP_HEAD_SIZE + token.size),
        .capability_size = (uint16_t)token.size,
        .corr_id = HELLO_CORR_ID,
    };
    uint8_t bytes[OAP_HEAD_SIZE + OAP_CAPABILITY_SIZE_MAX];
    size_t sent;
    enum ron_err err;

    if (token.size > OAP_CAPABILITY_SIZE_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a capability of %zu bytes; at most %d are sent",
                        token.size, OAP_CAPABILITY_SIZE_MAX);
    oap_head_encode(&head, bytes);
    if (token.size > 0)
        memcpy(bytes + OAP_HEAD_SIZE, token.data, token.size);
    err = io_wire_send(client->wire, ron_slice_of(bytes, head.size), deadline, &sent, reterr);
    ron_wipe(bytes, sizeof(bytes));
    return err;
}

static bool answers_hello(const struct oap_head *head)
{
    return (head->flags & OAP_RESP) != 0 && head->corr_id == HELLO_CORR_ID &&
           head->size <= HELLO_REPLY_MAX && head->capability_size == 0;
}

/* One frame and nothing behind it: nothing else was asked yet. */
static enum ron_err receive_hello(struct oap_client *client, struct rt_deadline deadline,
                                  struct oap_hello *ret_hello,
                                  struct ron_errinfo *reterr) RON_BLOCKS
{
    uint8_t bytes[HELLO_REPLY_MAX]; /* HELLO, or a refusal */
    struct oap_head head = {.size = OAP_HEAD_SIZE};
    struct ron_errinfo info = {0};
    struct ron_slice body;
    size_t size = 0;

    while (size < head.size) {
        size_t got = 0;
        enum ron_err err = io_wire_receive(client->wire, bytes + size, head.size - size, deadline,
                                           &got, reterr);

        if (err != RON_ERR_OK)
            return err;
        if (got == 0)
            return ron_fail(reterr, RON_ERR_UPSTREAM_UNAVAILABLE,
                            "the peer closed the connection instead of saying HELLO");
        size += got;
        if (size == OAP_HEAD_SIZE)
            err = oap_head_decode(bytes, &head, &info);
        if (err == RON_ERR_OK && size >= OAP_HEAD_SIZE && !answers_hello(&head))
            err = RON_ERR_MALFORMED;
        if (err != RON_ERR_OK)
            return ron_fail(reterr, RON_ERR_UPSTREAM_UNAVAILABLE, "the peer speaks no OAP/1");
    }
    body = ron_slice_of(bytes + OAP_HEAD_SIZE, oap_body_size(&head));
    if (head.code != OAP_STATUS_OK)
        return client_read_envelope(body, &info)
                   ? ron_fail(reterr, info.err, "HELLO: %s", info.message)
                   : ron_fail(reterr, RON_ERR_UPSTREAM_UNAVAILABLE, "HELLO: status %u", head.code);
    return oap_hello_decode(body, ret_hello, reterr);
}

static enum ron_err open_wire(struct oap_client *client, struct rt_deadline deadline,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    struct oap_hello hello;
    enum ron_err err = io_wire_connect(client->transport, deadline, &client->wire, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = send_hello(client, deadline, reterr);
    if (err == RON_ERR_OK)
        err = receive_hello(client, deadline, &hello, reterr);
    if (err == RON_ERR_OK && client->compress_min != 0 && (hello.flags & OAP_COMP) == 0)
        err = ron_fail(reterr, RON_ERR_VERSION_SKEW, "HELLO: the peer takes no COMP");
    if (err != RON_ERR_OK) {
        client->wire = io_wire_close(client->wire);
        return err;
    }
    oap_client_lock(client);
    client->stats.connects_count++;
    if (hello.inflight_max < client->inflight_max)
        client->inflight_max = hello.inflight_max;
    if (hello.frame_max < client->frame_max)
        client->frame_max = hello.frame_max;
    oap_client_unlock(client);
    return RON_ERR_OK;
}

static uint64_t earliest_ns(const struct oap_client *client) RON_NEEDS(net)
{
    uint64_t at_ns = SH_NEVER;

    for (uint64_t left = client->used; left != 0; left &= left - 1) {
        uint64_t its_ns = client->slots[__builtin_ctzll(left)].deadline_ns;

        at_ns = its_ns < at_ns ? its_ns : at_ns;
    }
    return at_ns;
}

/* Connect for what is queued. What fails is said to all that wait, but a deadline that passes is
 * only its own request's. */
static void connect_now(struct oap_client *client) RON_BLOCKS
{
    struct rt_deadline bound = rt_deadline_after_ns(client->connect_ns);
    struct rt_breaker_ticket ticket;
    struct ron_errinfo info = {0};
    uint64_t first_ns;
    bool allowed;
    bool own; /* a request's deadline ended the try, not the target */
    enum ron_err err;

    oap_client_lock(client);
    allowed = rt_breaker_allow(&client->breaker, rt_now_ns(), &ticket);
    first_ns = earliest_ns(client);
    oap_client_unlock(client);
    if (!allowed) {
        (void)ron_fail(&info, RON_ERR_UPSTREAM_UNAVAILABLE,
                       "not tried: the target failed too often, the breaker is open");
        fail_all(client, true, &info);
        return;
    }
    err = open_wire(client, rt_deadline_min(bound, (struct rt_deadline){first_ns}), &info);
    own = err == RON_ERR_TIMEOUT && first_ns < bound.at_ns;
    oap_client_lock(client);
    if (err == RON_ERR_OK)
        rt_breaker_succeed(&client->breaker, ticket);
    else if (err == RON_ERR_CANCELED || own)
        rt_breaker_forget(&client->breaker, ticket);
    else
        rt_breaker_fail(&client->breaker, ticket, rt_now_ns());
    oap_client_unlock(client);
    if (own) {
        expire(client, first_ns);
        return;
    }
    if (err == RON_ERR_TIMEOUT)
        (void)ron_fail(&info, RON_ERR_UPSTREAM_UNAVAILABLE, "no connection and HELLO in %llu ms",
                       (unsigned long long)(client->connect_ns / RT_NS_PER_MS));
    if (err != RON_ERR_OK)
        fail_all(client, true, &info);
}

/* ---- The task ---- */

/* What there is to send next. */
static struct ron_slice next_out(struct oap_client *client, uint64_t *ret_first_ns)
{
    oap_client_lock(client);
    if (client->sending_start == client->sending.size) {
        struct ron_buf sent = client->sending;

        if (client->dead_count > 0)
            drop_dead(client);
        ron_buf_reset(&sent);
        client->sending = client->filling;
        client->filling = sent;
        client->sending_start = 0;
        client->sent_end = client->queued_end;
        rt_cond_broadcast(&client->freed);
    }
    *ret_first_ns = earliest_ns(client);
    client->waiting = true; /* further frames ring: they may be earlier, too */
    oap_client_unlock(client);
    return ron_slice_of(client->sending.data + client->sending_start,
                        client->sending.size - client->sending_start);
}

/* A deadline passed: has the peer been silent for so long that the connection is given up? */
static enum ron_err check_silence(const struct oap_client *client, struct ron_errinfo *reterr)
{
    if (client->asked_ns == 0 || rt_now_ns() - client->asked_ns < client->silent_ns)
        return RON_ERR_OK;
    return ron_fail(reterr, RON_ERR_UPSTREAM_UNAVAILABLE, "the peer has said nothing for %llu ms",
                    (unsigned long long)(client->silent_ns / RT_NS_PER_MS));
}

static void turn(struct oap_client *client) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct io_exchange exchange;
    uint64_t first_ns;
    bool late = false;
    enum ron_err err = make_room(client, &info);

    if (err == RON_ERR_OK) {
        exchange = (struct io_exchange){.out = next_out(client, &first_ns),
                                        .in = client->in + client->in_end,
                                        .in_size = client->in_capacity - client->in_end};
        if (exchange.out.size > 0 && client->asked_ns == 0)
            client->asked_ns = rt_now_ns();
        err = io_wire_exchange(client->wire, &exchange, (struct rt_deadline){first_ns}, &info);
        oap_client_lock(client);
        client->waiting = false;
        oap_client_unlock(client);
    }
    if (err == RON_ERR_OK || err == RON_ERR_TIMEOUT) {
        client->sending_start += exchange.sent_size;
        client->in_end += exchange.received_size;
        client->asked_ns = exchange.received_size > 0 ? 0 : client->asked_ns;
        late = err == RON_ERR_TIMEOUT;
        err = take_frames(client, &info);
        if (err == RON_ERR_OK && (exchange.ended || client->ending))
            err = ron_fail(&info, RON_ERR_UPSTREAM_UNAVAILABLE, "the peer closed the connection");
        expire(client, rt_now_ns());
        if (err == RON_ERR_OK && late)
            err = check_silence(client, &info);
    }
    if (err == RON_ERR_OK)
        return;
    if (err != RON_ERR_CANCELED && err != RON_ERR_NO_MEMORY)
        info.err = RON_ERR_UPSTREAM_UNAVAILABLE;
    lose(client, &info);
}

/* Until there is something to connect for; false once canceled. */
static bool wait_for_work(struct oap_client *client) RON_BLOCKS
{
    bool canceled;

    rt_assert_no_lock_held();
    oap_client_lock(client);
    while (!client->canceled && client->used == 0 && client->wire == NULL)
        (void)rt_cond_wait(&client->queued, &client->lock, SH_NEVER);
    canceled = client->canceled;
    oap_client_unlock(client);
    return !canceled;
}

enum ron_err oap_client_run(struct rt_task *task, void *argument)
{
    struct oap_client *client = argument;
    struct ron_errinfo info = {0};

    (void)task;
    while (wait_for_work(client)) {
        if (client->wire == NULL)
            connect_now(client);
        else
            turn(client);
    }
    (void)ron_fail(&info, RON_ERR_CANCELED, "the client is closed");
    lose(client, &info);
    return RON_ERR_CANCELED;
}
