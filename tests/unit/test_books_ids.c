/*
 * test_books_ids.c - an entry by its id, wherever the log has it: in the open segment, in one that
 * is sealed and not yet indexed, in those whose ids only the index knows. Method: windows of a few
 * entries over segments of 8 KiB, pages of a few entries; before and after a restart, with books
 * made anew, on a disk that takes no index; ids that begin alike; a reader beside who writes.
 * Without an index at all: test_books.c.
 */
#include <stdlib.h>

#include "ancient_world.h"

#include "io/vfs_faulty.h"
#include "ledger/books.h"

enum { BATCHES_COUNT = 600, BUF_MAX = 1 << 20, ALIKE_BYTES = 4, TEXTS = 1 << 18 };

struct world {
    struct ancient ancient;
    struct io_vfs *books_vfs;
    struct rt_supervisor *supervisor;
    struct ledger_books *books;
};

static void open_all(struct world *w) RON_BLOCKS
{
    struct ledger_books_options options = {.vfs = w->books_vfs,
                                           .dir = "ledger/books",
                                           .page_entries = 32,
                                           .merge_runs = 4,
                                           .supervisor = w->supervisor};

    world_open(&w->ancient);
    options.service = w->ancient.f->service;
    assert_ok(ledger_books_new(&options, &w->books, NULL));
    assert_ok(ledger_books_start(w->books, NULL));
}

static void close_all(struct world *w) RON_BLOCKS
{
    assert_ok(ledger_books_stop(w->books, RT_DEADLINE_NEVER, NULL));
    w->books = ledger_books_free(w->books);
    world_close(&w->ancient);
}

static struct world begin(unsigned batches_count) RON_BLOCKS
{
    const struct rt_supervisor_options options = {.name = "books", .owner = "test", .tasks_max = 4};
    struct world w = {.ancient = world_new(batches_count)};

    assert_ok(io_vfs_memory_new(NULL, &w.books_vfs, NULL));
    assert_ok(rt_supervisor_new(&options, &w.supervisor, NULL));
    return w;
}

static void end(struct world *w) RON_BLOCKS
{
    assert_ok(ledger_books_stop(w->books, RT_DEADLINE_NEVER, NULL));
    w->books = ledger_books_free(w->books);
    assert_ok(rt_supervisor_stop(w->supervisor, RT_DEADLINE_NEVER, NULL));
    (void)rt_supervisor_free(w->supervisor);
    (void)io_vfs_free(w->books_vfs);
    world_free(&w->ancient);
}

static struct ledger_id id_of(const char *text)
{
    return ledger_entry_id(ron_u128_of(0), S(text));
}

/* RON_ERR_OK: it is the entry of this text. */
static enum ron_err ask_until(struct world *w, const char *text,
                              struct rt_deadline deadline) RON_BLOCKS
{
    const struct ledger_id id = id_of(text);
    struct ledger_record record;
    struct ron_buf buf;
    enum ron_err err;

    ron_buf_init(&buf, BUF_MAX);
    err = ledger_books_entry(w->books, &id, deadline, &record, &buf, NULL);
    if (err == RON_ERR_OK) {
        assert_true(ron_slice_equal(record.id_text, S(text)));
        assert_true(ledger_id_equal(&record.entry.id, &id));
        assert_true(record.entry.seq >= record.batch_seq_start);
        assert_true(record.entry.seq <= record.batch_seq_end);
    }
    ron_buf_fini(&buf);
    return err;
}

static enum ron_err ask_for(struct world *w, const char *text) RON_BLOCKS
{
    return ask_until(w, text, RT_DEADLINE_NEVER);
}

static void knows_all(struct world *w) RON_BLOCKS
{
    char text[TEXT_SIZE];

    assert_ok(ask_for(w, "m0"));
    assert_ok(ask_for(w, "t1"));
    for (unsigned i = 0; i < w->ancient.batches_count; i++) {
        (void)snprintf(text, sizeof(text), "n%u", i);
        assert_ok(ask_for(w, text));
        (void)snprintf(text, sizeof(text), "x%u", i);
        assert_int_equal(ask_for(w, text), RON_ERR_NOT_FOUND);
    }
}

static bool is_in_window(struct world *w, const char *text)
{
    const struct ledger_id id = id_of(text);

    return ledger_service_seq_of(w->ancient.f->service, &id,
                                 ledger_read_head(w->ancient.f->service).seq, UINT64_MAX) != 0;
}

static bool unlink_run(void *context, const char *name, bool is_dir) RON_BLOCKS
{
    struct world *w = context;
    char path[IO_PATH_MAX];

    assert_false(is_dir);
    (void)snprintf(path, sizeof(path), "ledger/books/%s", name);
    assert_ok(io_vfs_unlink(w->books_vfs, path, NULL));
    return false; /* the list has changed */
}

static void an_id_is_found_wherever_it_is(void **state) RON_BLOCKS
{
    struct world w = begin(BATCHES_COUNT);
    uint64_t durable;

    (void)state;
    open_all(&w);
    assert_int_equal(ask_for(&w, "m0"), RON_ERR_NOT_FOUND);
    world_fill(&w.ancient);
    durable = ledger_engine_durable(w.ancient.engine);
    assert_true(ledger_engine_indexed(w.ancient.engine) > durable / 2);
    assert_true(ledger_engine_indexed(w.ancient.engine) < durable);
    assert_false(is_in_window(&w, "m0")); /* by the index alone */
    assert_true(is_in_window(&w, "n599"));
    knows_all(&w);
    close_all(&w);
    open_all(&w);
    assert_false(is_in_window(&w, "m0"));
    knows_all(&w);
    assert_true(ledger_books_get_stats(w.books).runs_count > 1);
    close_all(&w);
    for (unsigned i = 0; i < 3; i++) /* the books begin again at the first that is gone */
        assert_ok(io_vfs_list(w.books_vfs, "ledger/books", unlink_run, &w, NULL));
    open_all(&w);
    knows_all(&w);
    end(&w);
}

/* Segments are sealed and no index can be written: the window keeps what nobody else knows. */
static void an_id_is_found_before_its_segment_is_indexed(void **state) RON_BLOCKS
{
    const struct io_fault fault = {IO_FAULT_EIO, IO_CALL_OPEN, "log/idx-", 1, UINT64_MAX};
    const struct io_faulty_options options = {.faults = &fault, .faults_count = 1};
    struct world w = begin(300);
    struct io_vfs *vfs = w.ancient.vfs;

    (void)state;
    w.ancient.f->options.capacity.entries_window = 4 * WINDOW * WINDOW;
    w.ancient.f->options.capacity.keys_window = 4 * WINDOW * WINDOW;
    assert_ok(io_vfs_faulty_new(vfs, &options, &w.ancient.vfs, NULL));
    open_all(&w);
    world_fill(&w.ancient);
    assert_int_equal(ledger_engine_indexed(w.ancient.engine), 0);
    assert_true(io_faulty_count(w.ancient.vfs, IO_FAULT_EIO) > 0);
    knows_all(&w);
    close_all(&w);
    (void)io_vfs_free(w.ancient.vfs);
    w.ancient.vfs = vfs;
    w.ancient.f->options.capacity.entries_window = WINDOW;
    open_all(&w); /* indexes are built, and most is forgotten */
    assert_true(ledger_engine_indexed(w.ancient.engine) > 0);
    assert_false(is_in_window(&w, "m0"));
    knows_all(&w);
    end(&w);
}

struct drawn {
    struct ledger_id id;
    unsigned number;
};

static int by_id(const void *a, const void *b)
{
    const struct drawn *first = a, *second = b;

    return memcmp(first->id.bytes, second->id.bytes, LEDGER_ID_SIZE);
}

/* Two texts whose ids share as many bytes as the window looks at. */
static void draw_alike(char texts[2][TEXT_SIZE])
{
    struct drawn *drawn = ron_mem_alloc_array(TEXTS, sizeof(*drawn));
    char text[TEXT_SIZE];
    size_t at = 1;

    assert_non_null(drawn);
    for (unsigned i = 0; i < TEXTS; i++) {
        (void)snprintf(text, sizeof(text), "a%u", i);
        drawn[i] = (struct drawn){id_of(text), i};
    }
    qsort(drawn, TEXTS, sizeof(*drawn), by_id);
    while (memcmp(drawn[at].id.bytes, drawn[at - 1].id.bytes, ALIKE_BYTES) != 0)
        assert_true(++at < TEXTS);
    for (size_t i = 0; i < 2; i++)
        (void)snprintf(texts[i], TEXT_SIZE, "a%u", drawn[at - i].number);
    (void)ron_mem_free(drawn);
}

static void ids_that_begin_alike_are_told_apart(void **state) RON_BLOCKS
{
    struct world w = begin(300);
    char texts[2][TEXT_SIZE];

    (void)state;
    draw_alike(texts);
    open_all(&w);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(ask_for(&w, texts[i]), RON_ERR_NOT_FOUND);
        (void)commit(&w.ancient, one(&w.ancient, texts[i], NULL, "dora", 1, NULL));
        assert_true(is_in_window(&w, texts[1])); /* or something that begins like it */
        for (unsigned known = 0; known <= i; known++)
            assert_ok(ask_for(&w, texts[known]));
    }
    assert_ok(ask_until(&w, texts[1], (struct rt_deadline){0})); /* the newest is looked at first */
    assert_int_equal(ask_until(&w, texts[0], (struct rt_deadline){0}), RON_ERR_TIMEOUT);
    world_fill(&w.ancient);
    for (unsigned i = 0; i < 2; i++) {
        assert_false(is_in_window(&w, texts[i]));
        assert_ok(ask_for(&w, texts[i]));
    }
    end(&w);
}

struct reader {
    struct world *w;
    struct rt_atomic_u32 committed, asked, stop;
};

/* The newest of which an answer came, and some before it. */
static enum ron_err read_beside(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct reader *reader = argument;
    enum ron_err err = RON_ERR_OK;

    (void)task;
    while (err == RON_ERR_OK && rt_atomic_load_u32(&reader->stop) == 0) {
        const uint32_t count = rt_atomic_load_u32(&reader->committed);
        const uint32_t asked = rt_atomic_load_u32(&reader->asked);
        char text[TEXT_SIZE];

        if (count == 0)
            continue;
        (void)snprintf(text, sizeof(text), "n%u", count - 1 - asked * 7 % count % 200);
        err = ask_for(reader->w, text); /* an assertion would jump to another thread's frame */
        rt_atomic_store_u32(&reader->asked, asked + 1);
    }
    return RON_ERR_OK;
}

static void nothing_is_missed_on_its_way_to_the_index(void **state) RON_BLOCKS
{
    struct world w = begin(0);
    struct reader reader = {.w = &w};
    const struct rt_task_options options = {.kind = "reader",
                                            .name = "reader",
                                            .owner = "test",
                                            .fn = read_beside,
                                            .argument = &reader,
                                            .restart = RT_RESTART_NEVER};
    struct rt_task *task = NULL;
    enum ron_err result;
    char id[TEXT_SIZE];

    (void)state;
    open_all(&w);
    assert_ok(rt_task_spawn(w.supervisor, &options, &task, NULL));
    for (uint32_t i = 0; i < BATCHES_COUNT; i++) {
        (void)snprintf(id, sizeof(id), "n%u", i);
        (void)commit(&w.ancient, one(&w.ancient, id, NULL, "carol", 1, NULL));
        rt_atomic_store_u32(&reader.committed, i + 1);
    }
    until(rt_atomic_load_u32(&reader.asked) > 0);
    rt_atomic_store_u32(&reader.stop, 1);
    assert_ok(rt_task_join(task, RT_DEADLINE_NEVER, &result, NULL));
    assert_int_equal(result, RON_ERR_OK);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_is_found_wherever_it_is),
        cmocka_unit_test(an_id_is_found_before_its_segment_is_indexed),
        cmocka_unit_test(ids_that_begin_alike_are_told_apart),
        cmocka_unit_test(nothing_is_missed_on_its_way_to_the_index),
    };

    return cmocka_run_group_tests_name("books_ids", tests, NULL, NULL);
}
