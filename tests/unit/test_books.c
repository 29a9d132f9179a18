/*
 * test_books.c - the books behind a running ledger. Method: drawn commands of every kind through
 * the pipeline, pages of a few entries, books that are stopped and made again in between; an oracle
 * made of the frames themselves and of what the core said after each batch.
 * tidy: long file because drawing, oracle and questions share one world.
 */
#include "service_fixture.h"

#include "io/vfs_memory.h"
#include "ledger/books.h"
#include "ledger/core_types.h"

enum { WORLD_ENTRIES = 4096, WORLD_BATCHES = 2048, OPS_MAX = 4, BUF_MAX = 1 << 20 };

static const char *const accounts[] = {"alice", "bob",          "carol",
                                       "dave",  "sys/mint/roc", "sys/burn/usd"};
static const char *const assets[] = {"roc", "usd"};

/* What the core said of an account after a batch. */
struct said {
    uint32_t account, asset;
    struct ledger_balance balance;
};

struct batch {
    uint64_t seq_start, seq_end, number;
    bool has_key;
    struct ledger_id key;
    struct ron_sha256 root;
    struct said said[2];
};

struct world {
    struct service_fixture *f;
    struct ledger_engine *engine;
    struct io_vfs *vfs;
    struct rt_supervisor *supervisor;
    struct ledger_books *books;
    uint32_t page_entries, merge_runs;
    uint64_t random;
    uint32_t number; /* of the next entry */
    struct ledger_entry entries[WORLD_ENTRIES];
    char texts[WORLD_ENTRIES][TEXT_SIZE];
    struct ledger_ext exts[WORLD_ENTRIES]; /* of Anchors: the stream, a literal */
    struct ron_b3 ext_hashes[WORLD_ENTRIES];
    uint64_t entries_count;
    struct batch batches[WORLD_BATCHES];
    uint64_t batches_count;
    /* The command under way. */
    struct ledger_request request;
    struct ledger_wire_entry wires[OPS_MAX];
    struct ledger_op ops[OPS_MAX];
    char room[OPS_MAX][8][TEXT_SIZE];
    char key[TEXT_SIZE];
};

static uint32_t draw(struct world *w, uint32_t below)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(w->random >> 33) % below;
}

static void books_open(struct world *w) RON_BLOCKS
{
    const struct ledger_books_options options = {.vfs = w->vfs,
                                                 .dir = "ledger/books",
                                                 .page_entries = w->page_entries,
                                                 .merge_runs = w->merge_runs,
                                                 .service = w->f->service,
                                                 .supervisor = w->supervisor};

    assert_ok(ledger_books_new(&options, &w->books, NULL));
    assert_ok(ledger_books_start(w->books, NULL));
}

static void books_close(struct world *w) RON_BLOCKS
{
    assert_ok(ledger_books_stop(w->books, RT_DEADLINE_NEVER, NULL));
    w->books = ledger_books_free(w->books);
}

static struct world *world_new(uint64_t seed, uint32_t page_entries) RON_BLOCKS
{
    const struct ledger_engine_memory_options memory = {64 << 20, WORLD_BATCHES};
    const struct rt_supervisor_options options = {.name = "books", .owner = "test", .tasks_max = 4};
    struct world *w = ron_mem_alloc(sizeof(*w));

    assert_non_null(w);
    w->random = seed;
    w->page_entries = page_entries;
    w->merge_runs = 8;
    w->f = fixture_new();
    w->f->options.capacity = ledger_capacity_of(4096);
    w->f->options.capacity.entries_window = 1 << 13;
    assert_ok(ledger_engine_memory_new(&memory, &w->engine, NULL));
    w->f->options.engine = w->engine;
    fixture_start(w->f);
    assert_ok(io_vfs_memory_new(NULL, &w->vfs, NULL));
    assert_ok(rt_supervisor_new(&options, &w->supervisor, NULL));
    books_open(w);
    return w;
}

static void world_free(struct world *w) RON_BLOCKS
{
    if (w->books != NULL)
        books_close(w);
    assert_ok(rt_supervisor_stop(w->supervisor, RT_DEADLINE_NEVER, NULL));
    (void)rt_supervisor_free(w->supervisor);
    fixture_stop(w->f);
    (void)ledger_engine_memory_free(w->engine);
    fixture_free(w->f);
    (void)io_vfs_free(w->vfs);
    (void)ron_mem_free(w);
}

/* ---- The oracle: frames, as they come ---- */

static struct said what_is_said(struct world *w, uint32_t account, uint32_t asset)
{
    const struct ledger_id id = ledger_account_id("", S(accounts[account]));
    struct said said = {.account = account, .asset = asset};

    ledger_read_balance(w->f->service, &id, asset, &said.balance);
    return said;
}

static void learn_frame(struct world *w, const struct ledger_frame *frame)
{
    struct batch *batch = &w->batches[w->batches_count++];
    const uint8_t *text = frame->texts.data;
    const uint8_t *ext = frame->ext.data;

    assert_true(w->batches_count < WORLD_BATCHES);
    *batch = (struct batch){.seq_start = frame->seq_start,
                            .seq_end = frame->seq_start + frame->entries_count - 1,
                            .number = frame->batch,
                            .has_key = frame->has_key,
                            .root = frame->root};
    if (frame->has_key)
        batch->key = ledger_key_id(&frame->stamp, frame->command, frame->key);
    for (size_t i = 0; i < RON_ARRAY_COUNT(batch->said); i++)
        batch->said[i] = what_is_said(w, draw(w, RON_ARRAY_COUNT(accounts)), 1 + draw(w, 2));
    for (uint32_t i = 0; i < frame->entries_count; i++) {
        const size_t ext_size = ron_load_le16(frame->ext_sizes.data + (size_t)2 * i);
        char digits[LEDGER_ID_DIGITS + 1];

        assert_true(w->entries_count < WORLD_ENTRIES);
        memcpy(&w->entries[w->entries_count], frame->entries.data + (size_t)i * RON_ENTRY_SIZE,
               RON_ENTRY_SIZE);
        (void)snprintf(w->texts[w->entries_count], TEXT_SIZE, "%.*s",
                       RON_SLICE_FMT(ledger_id_text_get(text, digits)));
        assert_ok(ledger_ext_decode(ron_slice_of(ext, ext_size), &w->exts[w->entries_count], NULL));
        w->ext_hashes[w->entries_count] = ron_b3(ext, ext_size);
        w->exts[w->entries_count].stream.data = NULL; /* the frame goes; its size tells two apart */
        text += ledger_id_text_stored(text);
        ext += ext_size;
        w->entries_count++;
    }
}

static void learn(struct world *w) RON_BLOCKS
{
    struct ledger_frame frame;
    struct ron_buf buf;

    ron_buf_init(&buf, BUF_MAX);
    while (w->batches_count < ledger_read_head(w->f->service).batch) {
        ron_buf_reset(&buf);
        assert_ok(ledger_read_batch(w->f->service, w->batches_count + 1, &buf, NULL));
        assert_ok(ledger_frame_decode(ron_buf_slice(&buf), &frame, NULL));
        learn_frame(w, &frame);
    }
    ron_buf_fini(&buf);
}

/* ---- Commands ---- */

static void shot_done(struct ledger_request *request, void *context)
{
    struct world *w = context;

    assert_ok(rt_queue_try_send(w->f->answered, (struct rt_queue_item){request, 1}, NULL));
}

static enum ron_err shoot(struct world *w) RON_BLOCKS
{
    void *answer = NULL;

    w->request.size = 100;
    w->request.deadline = RT_DEADLINE_NEVER;
    w->request.done = shot_done;
    w->request.context = w;
    if (w->request.command.kind == LEDGER_COMMAND_INGEST && draw(w, 3) == 0) {
        (void)snprintf(w->key, sizeof(w->key), "key-%u-%u", w->number, (uint32_t)w->batches_count);
        w->request.command.key = S(w->key);
    }
    assert_ok(ledger_submit(w->f->service, &w->request, NULL));
    assert_ok(rt_queue_recv(w->f->answered, RT_DEADLINE_NEVER, &answer, NULL));
    assert_ptr_equal(answer, &w->request);
    if (w->request.outcome.err == RON_ERR_OK)
        learn(w);
    return w->request.outcome.err;
}

static void shoots(struct world *w) RON_BLOCKS
{
    if (shoot(w) != RON_ERR_OK)
        fail_msg("%s: %s", ron_err_name(w->request.outcome.err), w->request.outcome.info.message);
}

static struct ron_slice room_number(struct world *w, uint32_t op, uint32_t place,
                                    const char *prefix, uint64_t number)
{
    (void)snprintf(w->room[op][place], TEXT_SIZE, "%s%llu", prefix, (unsigned long long)number);
    return S(w->room[op][place]);
}

/* Of two entries one has the id text of a binary id, which frames hold as bytes. */
static struct ron_slice room_id(struct world *w, uint32_t op, uint32_t place, uint64_t number)
{
    if (number % 2 == 0)
        return room_number(w, op, place, "e", number);
    (void)snprintf(w->room[op][place], TEXT_SIZE, "%032llx", (unsigned long long)number);
    return S(w->room[op][place]);
}

static struct ledger_wire_entry draw_wire(struct world *w, uint32_t op)
{
    static const char *const kinds[] = {"Mint",     "Burn",     "Hold",   "Capture",
                                        "Release",  "Reverse",  "Anchor", "Transfer",
                                        "Transfer", "Transfer", "Mint",   "Transfer"};
    const uint32_t from = draw(w, 4), to = (from + 1 + draw(w, 3)) % 4;
    const uint32_t recent = w->number > 12 ? w->number - 1 - draw(w, 12) : 0;
    const struct ledger_id payer = ledger_account_id("", S(accounts[from]));
    struct ledger_wire_entry wire = {.kind = S(kinds[draw(w, RON_ARRAY_COUNT(kinds))])};
    struct ledger_balance balance;

    wire.id = room_id(w, op, 0, w->number++);
    if (ron_slice_equal(wire.kind, S("Anchor"))) {
        wire.stream = S(draw(w, 2) == 0 ? "notes" : "minutes");
        wire.ref = room_number(w, op, 1, "", w->number);
        wire.digest = S("b3:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
        return wire;
    }
    wire.asset = S(assets[draw(w, 2)]);
    wire.amount = room_number(w, op, 2, "", 1 + draw(w, 60));
    if (ron_slice_equal(wire.kind, S("Capture")) || ron_slice_equal(wire.kind, S("Release"))) {
        wire.hold_id = room_number(w, op, 3, "h", recent);
        return wire;
    }
    if (ron_slice_equal(wire.kind, S("Reverse"))) {
        wire.ref = room_id(w, op, 3, recent);
        return wire;
    }
    if (!ron_slice_equal(wire.kind, S("Mint")))
        wire.from = S(accounts[from]);
    if (ron_slice_equal(wire.kind, S("Mint")) || ron_slice_equal(wire.kind, S("Transfer")))
        wire.to = S(accounts[to]);
    if (ron_slice_equal(wire.kind, S("Hold"))) {
        wire.hold_id = room_number(w, op, 3, "h", w->number - 1);
        wire.payee = S(accounts[to]);
        wire.expires_at = S("2099-01-01T00:00:00Z");
    }
    if (wire.from.size > 0 && op == 0 && draw(w, 2) == 0) {
        ledger_read_balance(w->f->service, &payer, 1, &balance);
        wire.has_nonce = true;
        wire.nonce = balance.next_nonce;
    }
    return wire;
}

/* A batch of drawn entries, or two legs through clearing; many are refused. */
static void shoot_drawn(struct world *w) RON_BLOCKS
{
    const uint32_t count = draw(w, 3) == 0 ? 1 + draw(w, OPS_MAX) : 1;
    const bool legs = draw(w, 12) == 0;

    w->request = (struct ledger_request){.command = {.kind = LEDGER_COMMAND_INGEST},
                                         .wire = w->wires,
                                         .wire_count = legs ? 2 : count,
                                         .ops_room = w->ops};
    for (uint32_t i = 0; i < w->request.wire_count; i++) {
        w->wires[i] = draw_wire(w, i);
        if (!legs)
            continue;
        w->wires[i] = (struct ledger_wire_entry){.id = w->wires[i].id,
                                                 .kind = S(i == 0 ? "Debit" : "Credit"),
                                                 .account = S(i == 0 ? "alice" : "bob"),
                                                 .asset = S("roc"),
                                                 .amount = S("3")};
    }
    (void)shoot(w);
}

/* A second asset, and an account that may owe. */
static void shoot_terms(struct world *w) RON_BLOCKS
{
    w->request = (struct ledger_request){
        .command = {.kind = LEDGER_COMMAND_ASSET,
                    .asset = {S("usd"), 2, {(unsigned __int128)1 << 100}}}};
    shoots(w);
    w->request = (struct ledger_request){
        .command = {.kind = LEDGER_COMMAND_LIMITS,
                    .limits = {.account = S("dave"),
                               .asset = S("roc"),
                               .has_credit_line = true,
                               .credit_line = ron_u128_of(100000)}}};
    shoots(w);
}

/* ---- Questions ---- */

static void check_record(struct world *w, const struct ledger_record *record, uint64_t i)
{
    const struct ledger_entry *entry = &w->entries[i];
    const struct batch *batch = &w->batches[entry->batch - 1];
    const bool moves = entry->kind != LEDGER_ANCHOR && entry->kind != LEDGER_ASSET;
    const struct ron_b3 ext_hash = ron_b3(record->ext.data, record->ext.size);
    struct ledger_id id;

    assert_memory_equal(&record->entry, entry, sizeof(*entry));
    assert_memory_equal(&ext_hash, &w->ext_hashes[i], sizeof(ext_hash));
    assert_int_equal(record->batch_seq_start, batch->seq_start);
    assert_int_equal(record->batch_seq_end, batch->seq_end);
    assert_memory_equal(record->root.bytes, batch->root.bytes, RON_SHA256_SIZE);
    assert_true(ron_slice_equal(record->id_text, S(w->texts[i])));
    id = ledger_entry_id(record->tenant, record->id_text);
    assert_true(ledger_id_equal(&id, &entry->id));
    assert_int_equal(record->ext.size > 0, (entry->flags & LEDGER_FLAG_EXT) != 0);
    assert_int_equal(record->debit_name.size > 0, moves);
    assert_int_equal(record->credit_name.size > 0, moves);
    if (!moves)
        return;
    id = ledger_account_id("", record->debit_name);
    assert_true(ledger_id_equal(&id, &entry->debit));
    id = ledger_account_id("", record->credit_name);
    assert_true(ledger_id_equal(&id, &entry->credit));
}

static void check_entry(struct world *w, uint64_t i) RON_BLOCKS
{
    struct ledger_record record;
    struct ron_buf text;

    ron_buf_init(&text, BUF_MAX);
    ron_buf_put_text(&text, "before");
    assert_ok(
        ledger_books_entry(w->books, &w->entries[i].id, RT_DEADLINE_NEVER, &record, &text, NULL));
    check_record(w, &record, i);
    assert_memory_equal(text.data, "before", 6);
    assert_ok(ledger_books_at(w->books, i + 1, RT_DEADLINE_NEVER, &record, &text, NULL));
    check_record(w, &record, i);
    ron_buf_fini(&text);
}

struct many {
    struct world *w;
    const uint64_t *seqs;
    size_t count, stop; /* `stop`: fails there */
};

static enum ron_err check_one_of(void *context, const struct ledger_record *record,
                                 struct ron_errinfo *reterr)
{
    struct many *many = context;

    if (many->count == many->stop)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "enough");
    assert_int_equal(record->entry.seq, many->seqs[many->count]);
    check_record(many->w, record, many->seqs[many->count++] - 1);
    return RON_ERR_OK;
}

/* Neighbours and far ones, in one question: each once, in order, however it is asked. */
static void check_many(struct world *w, uint32_t gap_max) RON_BLOCKS
{
    static uint64_t seqs[WORLD_ENTRIES];
    struct many many = {.w = w, .seqs = seqs, .stop = SIZE_MAX};
    size_t count = 0;

    for (uint64_t seq = 1 + draw(w, gap_max); seq <= w->entries_count; seq += 1 + draw(w, gap_max))
        seqs[count++] = seq;
    assert_ok(
        ledger_books_each(w->books, seqs, count, RT_DEADLINE_NEVER, check_one_of, &many, NULL));
    assert_int_equal(many.count, count);
    if (count == 0)
        return;
    many.count = 0;
    many.stop = count / 2;
    assert_int_equal(
        ledger_books_each(w->books, seqs, count, RT_DEADLINE_NEVER, check_one_of, &many, NULL),
        RON_ERR_TOO_LARGE);
    assert_int_equal(many.count, count / 2);
    seqs[count - 1] = w->entries_count + 1;
    many.count = 0;
    many.stop = SIZE_MAX;
    assert_int_equal(
        ledger_books_each(w->books, seqs, count, RT_DEADLINE_NEVER, check_one_of, &many, NULL),
        RON_ERR_NOT_FOUND);
}

static bool belongs(const struct world *w, uint64_t i, const struct ledger_thread *thread,
                    size_t stream_size)
{
    const struct ledger_entry *entry = &w->entries[i];
    const bool moves = entry->kind != LEDGER_ANCHOR && entry->kind != LEDGER_ASSET;

    switch ((unsigned)thread->kind) {
    case LEDGER_THREAD_ACCOUNT:
        return moves && (thread->asset == 0 || thread->asset == entry->asset) &&
               (ledger_id_equal(&entry->debit, &thread->id) ||
                ledger_id_equal(&entry->credit, &thread->id));
    case LEDGER_THREAD_HOLDS:
        return entry->kind == LEDGER_HOLD && ledger_id_equal(&entry->debit, &thread->id);
    case LEDGER_THREAD_STREAM:
        return entry->kind == LEDGER_ANCHOR && w->exts[i].stream.size == stream_size;
    default:
        return entry->kind == LEDGER_ASSET;
    }
}

static void check_thread(struct world *w, struct ledger_thread thread, size_t stream_size,
                         uint64_t after, bool newest_first, size_t seqs_max) RON_BLOCKS
{
    static uint64_t wanted[WORLD_ENTRIES], got[WORLD_ENTRIES];
    size_t wanted_count = 0, count = 0;

    for (uint64_t n = 0; n < w->entries_count && wanted_count < seqs_max; n++) {
        const uint64_t i = newest_first ? w->entries_count - 1 - n : n;

        if ((newest_first ? i + 1 < after : i + 1 > after) && belongs(w, i, &thread, stream_size))
            wanted[wanted_count++] = i + 1;
    }
    assert_ok(ledger_books_thread(w->books, &thread, after, newest_first, RT_DEADLINE_NEVER, got,
                                  seqs_max, &count, NULL));
    assert_int_equal(count, wanted_count);
    assert_memory_equal(got, wanted, count * sizeof(got[0]));
}

static void check_threads(struct world *w) RON_BLOCKS
{
    for (size_t n = 0; n < RON_ARRAY_COUNT(accounts); n++) {
        const struct ledger_id id = ledger_account_id("", S(accounts[n]));
        const uint64_t after = draw(w, (uint32_t)w->entries_count + 2);

        for (uint32_t asset = 0; asset <= 2; asset++) {
            check_thread(w, ledger_account_thread(&id, asset), 0, 0, false, WORLD_ENTRIES);
            check_thread(w, ledger_account_thread(&id, asset), 0, after, false, 1 + draw(w, 20));
            check_thread(w, ledger_account_thread(&id, asset), 0, after, true, 1 + draw(w, 20));
        }
        check_thread(w, ledger_account_thread(&id, 0), 0, UINT64_MAX, true, WORLD_ENTRIES);
        check_thread(w, ledger_holds_thread(&id), 0, after, draw(w, 2) == 0, 1 + draw(w, 9));
    }
    check_thread(w, ledger_stream_thread(S("notes")), 5, 0, false, WORLD_ENTRIES);
    check_thread(w, ledger_stream_thread(S("minutes")), 7, UINT64_MAX, true, WORLD_ENTRIES);
    check_thread(w, ledger_stream_thread(S("nothing")), 99, 0, false, WORLD_ENTRIES);
    check_thread(w, ledger_kind_thread(LEDGER_ASSET), 0, 0, false, WORLD_ENTRIES);
}

static void check_batch(struct world *w, const struct batch *batch) RON_BLOCKS
{
    struct ledger_reply reply;
    struct ledger_key key;

    for (size_t i = 0; i < RON_ARRAY_COUNT(batch->said); i++) {
        const struct said *said = &batch->said[i];
        const struct ledger_id id = ledger_account_id("", S(accounts[said->account]));
        struct ledger_balance balance;

        assert_ok(ledger_books_balance(w->books, &id, said->asset, batch->seq_end,
                                       RT_DEADLINE_NEVER, &balance, NULL));
        assert_true(balance.amount.v == said->balance.amount.v);
        assert_int_equal(balance.negative, said->balance.negative);
        assert_int_equal(balance.next_nonce, said->balance.next_nonce);
        assert_int_equal(balance.as_of_seq, batch->seq_end);
    }
    if (!batch->has_key)
        return;
    assert_ok(ledger_books_key(w->books, &batch->key, RT_DEADLINE_NEVER, &key, &reply, NULL));
    assert_int_equal(key.batch, batch->number);
    assert_int_equal(reply.batch, batch->number);
    assert_int_equal(reply.seq_start, batch->seq_start);
    assert_int_equal(reply.seq_end, batch->seq_end);
    assert_memory_equal(reply.root.bytes, batch->root.bytes, RON_SHA256_SIZE);
}

static void check_absent(struct world *w) RON_BLOCKS
{
    const struct ledger_id id = ledger_account_id("", S("nobody"));
    struct ledger_balance balance = {.amount = {7}};
    struct ledger_record record;
    struct ledger_reply reply;
    struct ledger_key key;
    struct ron_buf text;

    ron_buf_init(&text, BUF_MAX);
    assert_int_equal(ledger_books_entry(w->books, &id, RT_DEADLINE_NEVER, &record, &text, NULL),
                     RON_ERR_NOT_FOUND);
    assert_int_equal(ledger_books_at(w->books, 0, RT_DEADLINE_NEVER, &record, &text, NULL),
                     RON_ERR_NOT_FOUND);
    assert_int_equal(
        ledger_books_at(w->books, w->entries_count + 1, RT_DEADLINE_NEVER, &record, &text, NULL),
        RON_ERR_NOT_FOUND);
    assert_int_equal(ledger_books_key(w->books, &id, RT_DEADLINE_NEVER, &key, &reply, NULL),
                     RON_ERR_NOT_FOUND);
    assert_int_equal(ledger_books_balance(w->books, &id, 1, w->entries_count + 1, RT_DEADLINE_NEVER,
                                          &balance, NULL),
                     RON_ERR_NOT_FOUND);
    assert_ok(ledger_books_balance(w->books, &id, 1, w->entries_count, RT_DEADLINE_NEVER, &balance,
                                   NULL));
    assert_true(balance.amount.v == 0);
    assert_int_equal(balance.next_nonce, 1);
    ron_buf_fini(&text);
}

/* Some questions of each kind, or all. */
static void check(struct world *w, bool all) RON_BLOCKS
{
    const uint64_t entries_step = all ? 1 : 1 + w->entries_count / 8;
    const uint64_t batches_step = all ? 1 : 1 + w->batches_count / 8;

    for (uint64_t i = draw(w, (uint32_t)entries_step); i < w->entries_count; i += entries_step)
        check_entry(w, i);
    for (uint64_t i = draw(w, (uint32_t)batches_step); i < w->batches_count; i += batches_step)
        check_batch(w, &w->batches[i]);
    check_batch(w, &w->batches[w->batches_count - 1]); /* read your writes */
    check_many(w, 1);
    check_many(w, 1 + draw(w, 40));
    check_threads(w);
    check_absent(w);
}

/* ---- Tests ---- */

static void the_books_say_what_the_log_says(void **state) RON_BLOCKS
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct world *w = world_new(seed, 4 + (uint32_t)seed);
        struct ledger_books_stats stats;

        shoot_terms(w);
        for (unsigned i = 0; i < 900; i++) {
            shoot_drawn(w);
            if (i % 3 == 0)
                check_batch(w, &w->batches[w->batches_count - 1]);
            if (draw(w, 40) == 0)
                check(w, false);
            if (draw(w, 60) == 0) {
                books_close(w);
                books_open(w);
            }
        }
        check(w, true);
        /* What is full is written at last, and eight beside one another become one. */
        until(ledger_books_get_stats(w->books).page_entries <= 2 * w->page_entries + OPS_MAX);
        until(ledger_books_get_stats(w->books).runs_count <=
              7 + w->entries_count / (8 * (uint64_t)w->page_entries));
        check(w, true);
        stats = ledger_books_get_stats(w->books);
        assert_int_equal(stats.seq_indexed, w->entries_count);
        assert_int_equal(stats.rebuilds_count, 0);
        assert_true(w->entries_count > 500);
        world_free(w);
    }
}

/* The newest entries are in no run: the log gives them again. */
static void a_page_is_not_lost_with_the_books(void **state) RON_BLOCKS
{
    struct world *w = world_new(11, 1000);

    (void)state;
    shoot_terms(w);
    for (unsigned i = 0; i < 60; i++)
        shoot_drawn(w);
    for (unsigned i = 0; i < 3; i++) {
        check(w, true);
        books_close(w);
        books_open(w);
    }
    assert_int_equal(ledger_books_get_stats(w->books).runs_count, 0);
    world_free(w);
}

struct names {
    char paths[64][IO_PATH_MAX];
    size_t count;
};

static bool collect(void *context, const char *name, bool is_dir)
{
    struct names *names = context;

    assert_false(is_dir);
    assert_true(names->count < RON_ARRAY_COUNT(names->paths));
    (void)snprintf(names->paths[names->count++], IO_PATH_MAX, "ledger/books/%s", name);
    return true;
}

static void list_runs(struct world *w, struct names *names) RON_BLOCKS
{
    names->count = 0;
    assert_ok(io_vfs_list(w->vfs, "ledger/books", collect, names, NULL));
}

static void turn_bytes(struct world *w, const char *path, uint64_t first, uint64_t step) RON_BLOCKS
{
    struct io_file *file = NULL;
    uint64_t file_size = 0;

    assert_ok(io_vfs_open(w->vfs, path, IO_OPEN_WRITE, &file, NULL));
    assert_ok(io_file_size(file, &file_size, NULL));
    for (uint64_t offset = first; offset < file_size; offset += step) {
        uint8_t byte = 0;
        size_t size = 0;

        assert_ok(io_file_read(file, offset, &byte, 1, &size, NULL));
        byte ^= 0x10;
        assert_ok(io_file_write(file, offset, &(struct ron_slice){&byte, 1}, 1, NULL));
    }
    assert_ok(io_file_sync(file, NULL));
    (void)io_file_close(file);
}

static struct world *world_with_runs(uint64_t seed) RON_BLOCKS
{
    struct world *w = world_new(seed, 8);

    shoot_terms(w);
    for (unsigned i = 0; i < 120 || w->entries_count < 90; i++)
        shoot_drawn(w);
    until(ledger_books_get_stats(w->books).runs_merged > 0);
    return w;
}

/* One after the other is gone, or not whole, or has a turned byte at its head or in its filter. */
static void runs_are_made_again_at_start(void **state) RON_BLOCKS
{
    struct world *w = world_with_runs(21);
    struct names names;

    (void)state;
    for (unsigned round = 0; round < 12; round++) {
        struct io_file *file = NULL;
        uint64_t size = 0;

        check(w, false);
        until(ledger_books_get_stats(w->books).page_entries <= 2 * w->page_entries + OPS_MAX);
        books_close(w);
        list_runs(w, &names);
        assert_true(names.count > 0);
        assert_ok(
            io_vfs_open(w->vfs, names.paths[round % names.count], IO_OPEN_WRITE, &file, NULL));
        assert_ok(io_file_size(file, &size, NULL));
        if (round % 4 == 1) {
            assert_ok(io_file_truncate(file, size - 1, NULL));
        }
        (void)io_file_close(file);
        if (round % 4 == 0)
            assert_ok(io_vfs_unlink(w->vfs, names.paths[round % names.count], NULL));
        if (round % 4 == 2)
            turn_bytes(w, names.paths[round % names.count], 40, 1 << 30);
        if (round % 4 == 3)
            turn_bytes(w, names.paths[round % names.count], size - 9, 1 << 30);
        books_open(w);
        check(w, true);
    }
    world_free(w);
}

/* Every page of every run is damaged while the books are open. */
static void damage_is_found_by_who_reads(void **state) RON_BLOCKS
{
    struct world *w = world_with_runs(22);
    struct names names;

    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        const uint64_t before = ledger_books_get_stats(w->books).rebuilds_count;

        until(ledger_books_get_stats(w->books).page_entries <= 2 * w->page_entries + OPS_MAX);
        list_runs(w, &names);
        for (size_t i = 0; i < names.count; i++)
            if (strstr(names.paths[i], ".new") == NULL)
                turn_bytes(w, names.paths[i], 4096 + 100, 4096);
        check(w, true);
        assert_true(ledger_books_get_stats(w->books).rebuilds_count > before);
    }
    world_free(w);
}

/* More runs than one merge takes wait for it: the others stay where they are. */
static void a_merge_takes_its_runs_and_no_others(void **state) RON_BLOCKS
{
    struct world *w = world_new(23, 8);

    (void)state;
    books_close(w);
    w->merge_runs = 64;
    books_open(w);
    shoot_terms(w);
    while (w->entries_count < 200)
        shoot_drawn(w);
    until(ledger_books_get_stats(w->books).runs_count >= 20);
    assert_true(support_nice_of("books keeper") >= 10); /* nobody waits for it */
    books_close(w);
    w->merge_runs = 8;
    books_open(w);
    until(ledger_books_get_stats(w->books).runs_merged >= 2);
    check(w, true);
    assert_int_equal(ledger_books_get_stats(w->books).rebuilds_count, 0);
    world_free(w);
}

/* Batch for batch alike, but for the amount. */
static struct world *world_of_mints(const char *amount) RON_BLOCKS
{
    struct world *w = world_new(31, 8);

    for (unsigned i = 0; i < 60; i++) {
        w->wires[0] = (struct ledger_wire_entry){
            .kind = S("Mint"), .to = S("alice"), .asset = S("roc"), .amount = S(amount)};
        w->wires[0].id = room_number(w, 0, 0, "m", w->number++);
        w->request = (struct ledger_request){.command = {.kind = LEDGER_COMMAND_INGEST},
                                             .wire = w->wires,
                                             .wire_count = 1,
                                             .ops_room = w->ops};
        shoots(w);
    }
    check(w, false);
    until(ledger_books_get_stats(w->books).page_entries <= 2 * w->page_entries);
    return w;
}

/* Runs of another ledger, sound in themselves. */
static void runs_of_another_log_are_not_believed(void **state) RON_BLOCKS
{
    struct world *w = world_of_mints("10");
    struct io_vfs *vfs = w->vfs;

    (void)state;
    w->vfs = NULL;
    world_free(w);
    w = world_of_mints("11");
    books_close(w);
    (void)io_vfs_free(w->vfs);
    w->vfs = vfs;
    books_open(w);
    check(w, true);
    world_free(w);
}

struct waiter {
    struct world *w;
    enum ron_err err;
};

static enum ron_err wait_for_entry(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct waiter *waiter = argument;
    const struct ledger_id id = ledger_account_id("", S("x"));
    struct ledger_balance balance;

    (void)task;
    waiter->err = ledger_books_balance(waiter->w->books, &id, 1, 0, RT_DEADLINE_NEVER, &balance,
                                       NULL);
    return RON_ERR_OK;
}

static void who_waits_is_answered_at_the_end(void **state) RON_BLOCKS
{
    struct world *w = world_new(41, 8);
    struct waiter waiter = {.w = w};
    const struct rt_task_options options = {.kind = "waiter",
                                            .name = "waiter",
                                            .owner = "test",
                                            .fn = wait_for_entry,
                                            .argument = &waiter,
                                            .restart = RT_RESTART_NEVER};
    const struct ledger_books_options made = {.vfs = w->vfs,
                                              .dir = "ledger/books",
                                              .service = w->f->service,
                                              .supervisor = w->supervisor};
    const struct ledger_id id = ledger_account_id("", S("x"));
    struct ledger_balance balance;
    struct rt_task *task = NULL;
    enum ron_err result;

    (void)state;
    books_close(w);
    assert_ok(ledger_books_new(&made, &w->books, NULL)); /* never started: nobody reads the log */
    assert_int_equal(
        ledger_books_balance(w->books, &id, 1, 0, rt_deadline_after_ms(0), &balance, NULL),
        RON_ERR_TIMEOUT);
    assert_ok(rt_task_spawn(w->supervisor, &options, &task, NULL));
    assert_ok(ledger_books_stop(w->books, RT_DEADLINE_NEVER, NULL));
    assert_ok(rt_task_join(task, RT_DEADLINE_NEVER, &result, NULL));
    assert_int_equal(waiter.err, RON_ERR_CANCELED);
    world_free(w);
}

/* No room for runs: commits go on, the books fall behind and say so; with room they catch up. */
static void a_full_disk_holds_back_the_books_alone(void **state) RON_BLOCKS
{
    const struct io_memory_options options = {.bytes_max = 1 << 14};
    struct world *w = world_new(51, 8);
    struct io_vfs *vfs = w->vfs;
    struct ledger_balance balance;
    const struct ledger_id id = ledger_account_id("", S("alice"));

    (void)state;
    books_close(w);
    assert_ok(io_vfs_memory_new(&options, &w->vfs, NULL));
    books_open(w);
    shoot_terms(w);
    for (unsigned i = 0; i < 200; i++)
        shoot_drawn(w);
    assert_int_equal(
        ledger_books_balance(w->books, &id, 1, 1, rt_deadline_after_ms(1), &balance, NULL),
        RON_ERR_TIMEOUT);
    assert_true(ledger_books_get_stats(w->books).seq_indexed < w->entries_count);
    books_close(w);
    (void)io_vfs_free(w->vfs);
    w->vfs = vfs;
    books_open(w);
    check(w, true);
    world_free(w);
}

static enum ron_err make_books(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct world *w = context;
    const struct ledger_books_options options = {.vfs = w->vfs,
                                                 .dir = "ledger/books",
                                                 .service = w->f->service,
                                                 .supervisor = w->supervisor};
    struct ledger_books *books = NULL;
    enum ron_err err = ledger_books_new(&options, &books, reterr);

    (void)ledger_books_free(books);
    return err;
}

static void no_memory_is_an_answer(void **state) RON_BLOCKS
{
    struct world *w = world_new(61, 8);

    (void)state;
    books_close(w);
    fixture_stop(w->f); /* nobody else allocates meanwhile */
    assert_true(support_fail_each_allocation(make_books, w, 50) > 3);
    fixture_start(w->f);
    books_open(w);
    world_free(w);
}

/* The same on a log of files, read in order and by number, with a second service. */
static void a_log_of_files_is_followed(void **state) RON_BLOCKS
{
    struct world *w = world_new(71, 8);
    struct ledger_engine_file_options options = {.vfs = w->vfs,
                                                 .dir = "log",
                                                 .segment_bytes = 1 << 16,
                                                 .ahead_bytes = 1 << 14,
                                                 .group_bytes = 1 << 14,
                                                 .record_bytes_max = 1 << 13};
    struct ledger_engine *engine = NULL;

    (void)state;
    books_close(w);
    fixture_stop(w->f);
    assert_ok(ledger_engine_file_open(&options, &engine, NULL));
    w->f->options.engine = engine;
    fixture_start(w->f);
    books_open(w);
    shoot_terms(w);
    for (unsigned i = 0; i < 150; i++)
        shoot_drawn(w);
    check(w, true);
    books_close(w);
    fixture_stop(w->f);
    (void)ledger_engine_file_free(engine);
    assert_ok(ledger_engine_file_open(&options, &engine, NULL));
    w->f->options.engine = engine;
    fixture_start(w->f);
    books_open(w);
    check(w, true);
    books_close(w);
    fixture_stop(w->f);
    (void)ledger_engine_file_free(engine);
    w->f->options.engine = w->engine;
    fixture_start(w->f);
    world_free(w);
}

/* A step of a merge is followed by the rest that books_pace.h gives it: a sleep is never short. */
static void a_merge_rests(void **state) RON_BLOCKS
{
    struct world *w = world_new(81, 256);
    struct ledger_books_stats stats;

    (void)state;
    shoot_terms(w);
    while (w->entries_count < 9 * 256) /* eight runs, and fewer than sixteen: it is not behind */
        shoot_drawn(w);
    until(ledger_books_get_stats(w->books).runs_merged > 0);
    stats = ledger_books_get_stats(w->books);
    assert_true(stats.rest_owed_ns > 0); /* some steps of 4,096 postings */
    assert_true(stats.rested_ns >= stats.rest_owed_ns);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_books_say_what_the_log_says),
        cmocka_unit_test(a_merge_rests),
        cmocka_unit_test(a_page_is_not_lost_with_the_books),
        cmocka_unit_test(runs_are_made_again_at_start),
        cmocka_unit_test(damage_is_found_by_who_reads),
        cmocka_unit_test(a_merge_takes_its_runs_and_no_others),
        cmocka_unit_test(runs_of_another_log_are_not_believed),
        cmocka_unit_test(who_waits_is_answered_at_the_end),
        cmocka_unit_test(a_full_disk_holds_back_the_books_alone),
        cmocka_unit_test(no_memory_is_an_answer),
        cmocka_unit_test(a_log_of_files_is_followed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
