/*
 * ledger_load_oap.c - batches over OAP/1 (io/oap_client), several in flight on each connection.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "harness.h"
#include "io/oap_client.h"
#include "ledger/core_command.h"
#include "ledger_load.h"
#include "rt/atomic.h"
#include "rt/supervisor.h"

enum {
    CONNECTIONS_MAX = 16,
    APP_LEDGER = 1,
    CODE_INGEST = 1,
    CODE_OPEN = 2,
    HEAD_SIZE = 6, /* no key, count */
    NAMES = 256,   /* whose ids are made at once */
    PAIRS = 32,    /* drawn ahead, so that their ids are waited for together */
    DEADLINE_MS = 60000,
};

struct asker {
    const struct load_options *options;
    struct oap_client *client;
    struct load_draw draw;
    uint8_t *body;
    uint64_t asked_ns;
};

static struct ledger_id *accounts;
static uint64_t start_ns, stop_ns;
static struct rt_atomic_u32 running_count;
static struct rt_atomic_u64 begun_count; /* transfers */

static void make_accounts(uint32_t count)
{
    char names[NAMES][LOAD_NAME_SIZE + 1];
    struct ron_slice texts[NAMES];

    accounts = ron_table_alloc(count, sizeof(accounts[0]), RON_TABLE_RANDOM);
    RON_ASSERT(accounts != NULL);
    for (uint32_t first = 0; first < count; first += NAMES) {
        const uint32_t part = count - first < NAMES ? count - first : NAMES;

        for (uint32_t i = 0; i < part; i++) {
            load_account_name(first + i, names[i]);
            texts[i] = ron_slice_of((const uint8_t *)names[i], LOAD_NAME_SIZE);
        }
        ledger_account_ids(texts, part, accounts + first);
    }
}

static struct oap_client *connect_to(const struct load_options *options,
                                     struct rt_supervisor *supervisor)
{
    const struct oap_client_options client = {
        .url = options->url, .token = &options->token, .supervisor = supervisor};
    struct oap_client *made = NULL;
    struct ron_errinfo info = {0};

    load_must(oap_client_new(&client, &made, &info), &info);
    return made;
}

static struct rt_supervisor *make_supervisor(void) RON_BLOCKS
{
    const struct rt_supervisor_options options = {
        .name = "load", .owner = "bench", .tasks_max = CONNECTIONS_MAX};
    struct rt_supervisor *supervisor = NULL;
    struct ron_errinfo info = {0};

    load_must(rt_supervisor_new(&options, &supervisor, &info), &info);
    return supervisor;
}

static void put_entry(uint8_t *at, struct load_draw *draw, unsigned kind, uint64_t amount)
{
    memset(at, 0, RON_WIRE_ENTRY_SIZE);
    ron_store_le64(at, load_draw_next(draw));
    ron_store_le64(at + 8, load_draw_next(draw));
    ron_store_le64(at + 48, amount);
    ron_store_le32(at + 88, 1);
    ron_store_le16(at + 92, (uint16_t)kind);
}

/* What all batches of an asker have in common; the rest is drawn for each. */
static void make_body(struct asker *asker)
{
    const uint32_t batch = asker->options->batch;

    asker->body = ron_mem_alloc(HEAD_SIZE + (size_t)batch * RON_WIRE_ENTRY_SIZE);
    RON_ASSERT(asker->body != NULL);
    ron_store_le16(asker->body, 0);
    ron_store_le32(asker->body + 2, batch);
    for (uint32_t i = 0; i < batch; i++)
        put_entry(asker->body + HEAD_SIZE + (size_t)i * RON_WIRE_ENTRY_SIZE, &asker->draw,
                  LEDGER_TRANSFER, 1);
}

static struct ron_slice draw_transfers(struct asker *asker)
{
    const uint32_t batch = asker->options->batch;
    const bool is_hot = asker->options->hot;
    struct load_draw draw = asker->draw;
    uint8_t *at = asker->body + HEAD_SIZE;

    for (uint32_t first = 0; first < batch; first += PAIRS) {
        const uint32_t count = batch - first < PAIRS ? batch - first : PAIRS;
        uint32_t from[PAIRS], to[PAIRS];

        for (uint32_t i = 0; i < count; i++) {
            load_draw_pair(&draw, asker->options, is_hot ? load_draw_next(&draw) >> 11 : 0,
                           &from[i], &to[i]);
            ron_prefetch(&accounts[from[i]]);
            ron_prefetch(&accounts[to[i]]);
        }
        for (uint32_t i = 0; i < count; i++, at += RON_WIRE_ENTRY_SIZE) {
            ron_store_le64(at, load_draw_next(&draw));
            ron_store_le64(at + 8, load_draw_next(&draw));
            memcpy(at + 16, accounts[from[i]].bytes, LEDGER_ID_SIZE);
            memcpy(at + 32, accounts[to[i]].bytes, LEDGER_ID_SIZE);
        }
    }
    asker->draw = draw;
    return ron_slice_of(asker->body, HEAD_SIZE + (size_t)batch * RON_WIRE_ENTRY_SIZE);
}

static void ask(struct asker *asker) RON_BLOCKS;

static void got(void *context, const struct oap_client_result *result) RON_BLOCKS
{
    struct asker *asker = context;
    const struct load_options *options = asker->options;
    const uint64_t now_ns = bench_now_ns();

    if (result->err != RON_ERR_OK)
        load_must(result->err, result->info);
    load_note(asker->asked_ns, now_ns, options->batch);
    if (options->per_s > 0) {
        const uint64_t due_ns = start_ns +
                                rt_counter_load(&begun_count) * 1000000000 / options->per_s;

        if (due_ns > now_ns)
            (void)usleep((useconds_t)((due_ns - now_ns) / 1000));
    }
    if (now_ns < stop_ns &&
        (options->transfers_max == 0 || rt_counter_load(&begun_count) < options->transfers_max))
        ask(asker);
    else
        rt_atomic_sub_u32(&running_count, 1);
}

static void ask(struct asker *asker)
{
    const struct oap_client_request request = {
        .app_proto = APP_LEDGER, .code = CODE_INGEST, .body = draw_transfers(asker)};
    struct ron_errinfo info = {0};

    rt_counter_add(&begun_count, asker->options->batch);
    asker->asked_ns = bench_now_ns();
    load_must(oap_client_submit(asker->client, &request, rt_deadline_after_ms(DEADLINE_MS), got,
                                asker, &info),
              &info);
}

void load_oap_run(const struct load_options *options)
{
    struct rt_supervisor *supervisor = make_supervisor();
    const uint32_t askers_count = options->connections_count * options->inflight_count;
    struct asker *askers = ron_mem_alloc_array(askers_count, sizeof(askers[0]));
    struct oap_client *clients[CONNECTIONS_MAX];

    RON_ASSERT(askers != NULL);
    if (options->connections_count > CONNECTIONS_MAX)
        load_die("too many connections");
    make_accounts(options->accounts_count);
    rt_atomic_store_u32(&running_count, askers_count);
    for (uint32_t i = 0; i < options->connections_count; i++)
        clients[i] = connect_to(options, supervisor);
    for (uint32_t i = 0; i < askers_count; i++) {
        askers[i] = (struct asker){.options = options,
                                   .client = clients[i % options->connections_count]};
        load_draw_init(&askers[i].draw);
        make_body(&askers[i]);
    }
    load_begin();
    start_ns = bench_now_ns();
    stop_ns = start_ns + options->duration_ns;
    for (uint32_t i = 0; i < askers_count; i++)
        ask(&askers[i]);
    while (rt_atomic_load_u32(&running_count) > 0)
        (void)usleep(1000);
    for (uint32_t i = 0; i < options->connections_count; i++)
        (void)oap_client_free(clients[i]);
    for (uint32_t i = 0; i < askers_count; i++)
        askers[i].body = ron_mem_free(askers[i].body);
    askers = ron_mem_free(askers);
    accounts = ron_table_free(accounts);
}

static void call(struct oap_client *client, uint16_t code, struct ron_slice body,
                 struct ron_buf *reply) RON_BLOCKS
{
    const struct oap_client_request request = {.app_proto = APP_LEDGER, .code = code, .body = body};
    struct ron_errinfo info = {0};

    load_must(oap_client_call(client, &request, rt_deadline_after_ms(DEADLINE_MS), reply, &info),
              &info);
}

static size_t fill_names(uint8_t *body, uint32_t first, uint32_t count)
{
    uint8_t *at = body;

    for (uint32_t i = 0; i < count; i++, at += 2 + LOAD_NAME_SIZE) {
        char name[LOAD_NAME_SIZE + 1];

        load_account_name(first + i, name);
        ron_store_le16(at, LOAD_NAME_SIZE);
        memcpy(at + 2, name, LOAD_NAME_SIZE);
    }
    return (size_t)(at - body);
}

void load_oap_open(const struct load_options *options)
{
    struct rt_supervisor *supervisor = make_supervisor();
    struct oap_client *client = connect_to(options, supervisor);
    const size_t room = HEAD_SIZE + (size_t)RON_BATCH_ENTRIES_MAX * RON_WIRE_ENTRY_SIZE;
    uint8_t *body = ron_mem_alloc(room);
    struct load_draw draw;
    struct ron_buf reply;

    RON_ASSERT(body != NULL);
    ron_buf_init(&reply, 1 << 20);
    load_draw_init(&draw);
    make_accounts(options->accounts_count);
    load_begin();
    for (uint32_t first = 0; first < options->accounts_count; first += RON_BATCH_ENTRIES_MAX) {
        const uint32_t left = options->accounts_count - first;
        const uint32_t count = left < RON_BATCH_ENTRIES_MAX ? left : RON_BATCH_ENTRIES_MAX;
        const uint64_t asked_ns = bench_now_ns();

        call(client, CODE_OPEN, ron_slice_of(body, fill_names(body, first, count)), &reply);
        ron_store_le16(body, 0);
        ron_store_le32(body + 2, count);
        for (uint32_t i = 0; i < count; i++) {
            uint8_t *at = body + HEAD_SIZE + (size_t)i * RON_WIRE_ENTRY_SIZE;

            put_entry(at, &draw, LEDGER_MINT, UINT64_C(1) << 30);
            memcpy(at + 32, accounts[first + i].bytes, LEDGER_ID_SIZE);
        }
        call(client, CODE_INGEST,
             ron_slice_of(body, HEAD_SIZE + (size_t)count * RON_WIRE_ENTRY_SIZE), &reply);
        load_note(asked_ns, bench_now_ns(), count);
    }
    (void)oap_client_free(client);
    ron_buf_fini(&reply);
    body = ron_mem_free(body);
    accounts = ron_table_free(accounts);
}
