/*
 * test_vfs_memory.c - what a crash leaves of a file system in memory.
 *
 * Method: an oracle keeps every event since birth in one plain list and replays those that are
 * durable or kept into plain arrays; thousands of random plans must give the same tree. Then images
 * do not disturb each other, crash images are those of the definition, every allocation may fail.
 * tidy: long file because the oracle is a fifth of it and belongs to nothing else
 */
#include <stdio.h>
#include <stdlib.h>

#include "io/crash_images.h"
#include "support.h"

enum { FILE_SIZE_MAX = 12 * 1024, EVENTS_MAX = 400, FILES_MAX = 128, NAMES_COUNT = 6 };

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static struct io_vfs *memory_new(uint64_t bytes_max)
{
    struct io_vfs *vfs = NULL;
    struct io_memory_options options = {bytes_max};

    assert_ok(io_vfs_memory_new(&options, &vfs, NULL));
    return vfs;
}

static struct io_file *open_file(struct io_vfs *vfs, const char *path, enum io_open how) RON_BLOCKS
{
    struct io_file *file = NULL;

    assert_ok(io_vfs_open(vfs, path, how, &file, NULL));
    return file;
}

static void write_text(struct io_file *file, uint64_t offset, const char *text) RON_BLOCKS
{
    struct ron_slice part = ron_slice_text(text);

    assert_ok(io_file_write(file, offset, &part, 1, NULL));
}

/* Has the file exactly these bytes? NULL: is it missing? */
static void assert_file(struct io_vfs *vfs, const char *path, const char *text) RON_BLOCKS
{
    struct io_file *file = NULL;
    char bytes[256];
    size_t size = 0;
    enum ron_err err = io_vfs_open(vfs, path, IO_OPEN_READ, &file, NULL);

    if (text == NULL) {
        assert_int_equal(err, RON_ERR_NOT_FOUND);
        return;
    }
    assert_int_equal(err, RON_ERR_OK);
    assert_ok(io_file_read(file, 0, bytes, sizeof(bytes), &size, NULL));
    assert_int_equal(size, strlen(text));
    assert_memory_equal(bytes, text, size);
    (void)io_file_close(file);
}

static struct io_vfs *crash(struct io_vfs *vfs, uint8_t keep, size_t torn, uint64_t torn_bytes)
{
    struct io_vfs *image = NULL;

    assert_true(io_memory_unsynced_count(vfs) <= 8);
    assert_ok(io_memory_crash(vfs, &(struct io_crash_plan){&keep, torn, torn_bytes}, &image, NULL));
    return image;
}

/* ---- The oracle ---- */

static const char *const names[NAMES_COUNT] = {"a", "b", "c", "d/a", "d/b", "d/c"};

struct event {
    enum { WRITE, TRUNCATE, NAME } kind;
    int file;       /* whose bytes; of NAME: what it means, -1 for nothing */
    int name, gone; /* of NAME: indexes into names; gone -1 for none */
    uint64_t offset, size;
    uint8_t fill;
    bool durable;
};
struct plain_file {
    uint64_t size;
    uint8_t bytes[FILE_SIZE_MAX];
};
struct oracle {
    struct event events[EVENTS_MAX];
    size_t events_count;
    int files_count;
    int now[NAMES_COUNT]; /* -1: none */
    struct io_file *open[NAMES_COUNT];
    struct plain_file *files; /* result of the last replay */
    int after[NAMES_COUNT];
};

static void replay(struct oracle *oracle, const struct io_crash_plan *plan)
{
    size_t unsynced = 0;

    memset(oracle->files, 0, FILES_MAX * sizeof(*oracle->files));
    memset(oracle->after, 0xff, sizeof(oracle->after));
    for (size_t i = 0; i < oracle->events_count; i++) {
        const struct event *event = &oracle->events[i];
        struct plain_file *file = event->kind == NAME ? NULL : &oracle->files[event->file];
        uint64_t size = event->size;

        if (!event->durable) {
            size_t bit = unsynced++;

            if ((plan->keep[bit / 8] >> (bit % 8) & 1) == 0)
                continue;
            if (bit == plan->torn)
                size = plan->torn_bytes;
            if (bit == plan->torn && size == 0)
                continue;
        }
        if (event->kind == NAME) {
            if (event->gone >= 0)
                oracle->after[event->gone] = -1;
            oracle->after[event->name] = event->file;
        } else if (event->kind == TRUNCATE) {
            for (uint64_t k = size; k < FILE_SIZE_MAX; k++)
                file->bytes[k] = 0;
            file->size = size;
        } else {
            for (uint64_t k = 0; k < size; k++)
                file->bytes[event->offset + k] = event->fill == 0 ? 0 : (uint8_t)(event->fill + k);
            file->size = event->offset + size > file->size ? event->offset + size : file->size;
        }
    }
}

static struct event *add_event(struct oracle *oracle, struct event event)
{
    assert_true(oracle->events_count < EVENTS_MAX);
    oracle->events[oracle->events_count] = event;
    return &oracle->events[oracle->events_count++];
}

static void change_file(struct oracle *oracle, int name, uint64_t *random) RON_BLOCKS
{
    static uint8_t bytes[FILE_SIZE_MAX];
    struct event event = {.kind = WRITE, .file = oracle->now[name]};
    struct ron_slice part;

    event.offset = next_random(random) % (FILE_SIZE_MAX / 2);
    event.size = 1 + next_random(random) % (FILE_SIZE_MAX / 2);
    event.fill = next_random(random) % 3 == 0 ? 0 : (uint8_t)next_random(random);
    if (next_random(random) % 4 == 0) {
        event.kind = TRUNCATE;
        assert_ok(io_file_truncate(oracle->open[name], event.size, NULL));
    } else {
        for (uint64_t k = 0; k < event.size; k++)
            bytes[k] = event.fill == 0 ? 0 : (uint8_t)(event.fill + k);
        part = ron_slice_of(bytes, event.size);
        assert_ok(io_file_write(oracle->open[name], event.offset, &part, 1, NULL));
    }
    (void)add_event(oracle, event);
}

static void sync_file(struct oracle *oracle, int name) RON_BLOCKS
{
    assert_ok(io_file_sync(oracle->open[name], NULL));
    for (size_t i = 0; i < oracle->events_count; i++)
        if (oracle->events[i].kind != NAME && oracle->events[i].file == oracle->now[name])
            oracle->events[i].durable = true;
}

static void sync_dir(struct oracle *oracle, struct io_vfs *vfs, bool root) RON_BLOCKS
{
    assert_ok(io_vfs_sync_dir(vfs, root ? "" : "d", NULL));
    for (size_t i = 0; i < oracle->events_count; i++)
        if (oracle->events[i].kind == NAME && (oracle->events[i].name < 3) == root)
            oracle->events[i].durable = true;
}

/* One random call that changes something. */
static void step(struct oracle *oracle, struct io_vfs *vfs, uint64_t *random) RON_BLOCKS
{
    int name = (int)(next_random(random) % NAMES_COUNT);
    int other = name / 3 * 3 + (int)(next_random(random) % 3);
    uint64_t call = next_random(random) % 10;

    if (oracle->now[name] < 0) {
        oracle->open[name] = open_file(vfs, names[name], IO_OPEN_CREATE);
        oracle->now[name] = oracle->files_count++;
        assert_true(oracle->files_count < FILES_MAX);
        (void)add_event(
            oracle,
            (struct event){.kind = NAME, .file = oracle->now[name], .name = name, .gone = -1});
    } else if (call == 0) {
        assert_ok(io_vfs_unlink(vfs, names[name], NULL));
        oracle->open[name] = io_file_close(oracle->open[name]);
        oracle->now[name] = -1;
        (void)add_event(oracle, (struct event){.kind = NAME, .file = -1, .name = name, .gone = -1});
    } else if (call == 1 && other != name) {
        assert_ok(io_vfs_rename(vfs, names[name], names[other], NULL));
        (void)io_file_close(oracle->open[other]);
        oracle->open[other] = oracle->open[name];
        oracle->open[name] = NULL;
        oracle->now[other] = oracle->now[name];
        oracle->now[name] = -1;
        (void)add_event(
            oracle,
            (struct event){.kind = NAME, .file = oracle->now[other], .name = other, .gone = name});
    } else if (call == 2) {
        sync_dir(oracle, vfs, name < 3);
    } else if (call <= 4) {
        sync_file(oracle, name);
    } else {
        change_file(oracle, name, random);
    }
}

static void compare(struct io_vfs *image, const struct oracle *oracle) RON_BLOCKS
{
    static uint8_t bytes[FILE_SIZE_MAX];

    for (int i = 0; i < NAMES_COUNT; i++) {
        const struct plain_file *plain;
        struct io_file *file = NULL;
        size_t size = 0;
        enum ron_err err = io_vfs_open(image, names[i], IO_OPEN_READ, &file, NULL);

        assert_int_equal(err, oracle->after[i] < 0 ? RON_ERR_NOT_FOUND : RON_ERR_OK);
        if (err != RON_ERR_OK)
            continue;
        plain = &oracle->files[oracle->after[i]];
        assert_ok(io_file_read(file, 0, bytes, sizeof(bytes), &size, NULL));
        assert_int_equal(size, plain->size);
        assert_memory_equal(bytes, plain->bytes, size);
        (void)io_file_close(file);
    }
    assert_int_equal(io_memory_unsynced_count(image), 0);
}

/* A random plan, now and then with a tear. */
static void try_plan(struct oracle *oracle, struct io_vfs *vfs, uint64_t *random) RON_BLOCKS
{
    uint8_t keep[EVENTS_MAX / 8 + 1];
    struct io_crash_plan plan = {keep, SIZE_MAX, 0};
    size_t count = io_memory_unsynced_count(vfs);
    struct io_vfs *image = NULL;

    for (size_t i = 0; i < sizeof(keep); i++)
        keep[i] = (uint8_t)next_random(random);
    if (count > 0 && next_random(random) % 2 == 0) {
        size_t torn = (size_t)(next_random(random) % count);
        struct io_memory_change change = io_memory_unsynced(vfs, torn);

        if (change.kind == IO_CHANGE_WRITE) {
            keep[torn / 8] |= (uint8_t)(1u << torn % 8);
            plan.torn = torn;
            plan.torn_bytes = next_random(random) % (change.size + 1);
        }
    }
    assert_ok(io_memory_crash(vfs, &plan, &image, NULL));
    replay(oracle, &plan);
    compare(image, oracle);
    (void)io_vfs_free(image);
}

static void plans_agree_with_the_oracle(void **state) RON_BLOCKS
{
    struct plain_file *files = calloc(FILES_MAX, sizeof(*files));
    struct oracle *oracle = calloc(1, sizeof(*oracle));

    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        uint64_t random = seed;
        struct io_vfs *vfs = memory_new(0);

        assert_ok(io_vfs_make_dir(vfs, "d", NULL));
        assert_ok(io_vfs_sync_dir(vfs, "", NULL));
        memset(oracle, 0, sizeof(*oracle));
        memset(oracle->now, 0xff, sizeof(oracle->now));
        oracle->files = files;
        for (int i = 0; i < 120; i++) {
            size_t unsynced = 0;

            step(oracle, vfs, &random);
            for (size_t k = 0; k < oracle->events_count; k++)
                unsynced += oracle->events[k].durable ? 0 : 1;
            assert_int_equal(io_memory_unsynced_count(vfs), unsynced);
            for (int k = 0; k < 3; k++)
                try_plan(oracle, vfs, &random);
        }
        for (int i = 0; i < NAMES_COUNT; i++)
            (void)io_file_close(oracle->open[i]);
        (void)io_vfs_free(vfs);
    }
    free(files);
    free(oracle);
    assert_int_equal(ron_mem_live_count(), 0);
}

/* ---- By hand ---- */

static void changes_are_listed_in_order(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = memory_new(0);
    struct io_file *file = open_file(vfs, "a", IO_OPEN_CREATE);
    struct io_memory_change change;

    (void)state;
    write_text(file, 7, "hello");
    assert_ok(io_file_truncate(file, 9, NULL));
    assert_ok(io_vfs_rename(vfs, "a", "b", NULL));
    assert_int_equal(io_memory_unsynced_count(vfs), 4);
    change = io_memory_unsynced(vfs, 0);
    assert_int_equal(change.kind, IO_CHANGE_NAME);
    assert_string_equal(change.path, "a");
    change = io_memory_unsynced(vfs, 1);
    assert_int_equal(change.kind, IO_CHANGE_WRITE);
    assert_int_equal(change.offset, 7);
    assert_int_equal(change.size, 5);
    change = io_memory_unsynced(vfs, 2);
    assert_int_equal(change.kind, IO_CHANGE_TRUNCATE);
    assert_int_equal(change.size, 9);
    change = io_memory_unsynced(vfs, 3);
    assert_int_equal(change.kind, IO_CHANGE_NAME);
    assert_string_equal(change.path, "b");
    assert_dies((void)io_memory_unsynced(vfs, 4), "changes_count");
    assert_ok(io_file_sync(file, NULL));
    assert_int_equal(io_memory_unsynced_count(vfs), 2);
    assert_ok(io_vfs_sync_dir(vfs, "", NULL));
    assert_int_equal(io_memory_unsynced_count(vfs), 0);
    (void)io_file_close(file);
    (void)io_vfs_free(vfs);
}

static void a_name_lasts_after_its_directory(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = memory_new(0);
    struct io_vfs *image;
    struct io_file *file;

    (void)state;
    assert_ok(io_vfs_make_dir(vfs, "d/e", NULL));
    file = open_file(vfs, "d/e/a", IO_OPEN_CREATE);
    write_text(file, 0, "synced");
    assert_ok(io_file_sync(file, NULL));
    image = crash(vfs, 0, SIZE_MAX, 0); /* the bytes are durable, no name is */
    assert_file(image, "d/e/a", NULL);
    (void)io_vfs_free(image);
    assert_ok(io_vfs_sync_dir(vfs, "d/e", NULL));
    assert_ok(io_vfs_sync_dir(vfs, "", NULL));
    image = crash(vfs, 0, SIZE_MAX, 0); /* "e" in "d" is not */
    assert_file(image, "d/e/a", NULL);
    assert_ok(io_vfs_make_dir(image, "d/e", NULL));
    (void)io_vfs_free(image);
    assert_ok(io_vfs_sync_dir(vfs, "d", NULL));
    image = crash(vfs, 0, SIZE_MAX, 0);
    assert_file(image, "d/e/a", "synced");
    (void)io_vfs_free(image);
    (void)io_file_close(file);
    (void)io_vfs_free(vfs);
}

static void images_do_not_disturb_each_other(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = memory_new(0);
    struct io_file *file = open_file(vfs, "a", IO_OPEN_CREATE);
    struct io_vfs *images[3];

    (void)state;
    write_text(file, 0, "one two");
    assert_ok(io_file_sync(file, NULL));
    assert_ok(io_vfs_sync_dir(vfs, "", NULL));
    write_text(file, 4, "TWO");
    for (int i = 0; i < 2; i++) {
        images[i] = crash(vfs, (uint8_t)i, SIZE_MAX, 0);
        assert_file(images[i], "a", i == 0 ? "one two" : "one TWO");
    }
    assert_ok(io_file_truncate(file, 3, NULL));
    (void)io_file_close(file);
    file = open_file(images[0], "a", IO_OPEN_WRITE);
    write_text(file, 0, "ONE");
    assert_ok(io_file_sync(file, NULL));
    write_text(file, 7, "!");
    images[2] = crash(images[0], 0, SIZE_MAX, 0); /* a crash of what came from a crash */
    assert_file(vfs, "a", "one");
    assert_file(images[0], "a", "ONE two!");
    assert_file(images[1], "a", "one TWO");
    assert_file(images[2], "a", "ONE two");
    (void)io_file_close(file);
    (void)io_vfs_free(vfs); /* in any order */
    (void)io_vfs_free(images[0]);
    assert_file(images[2], "a", "ONE two");
    (void)io_vfs_free(images[2]);
    (void)io_vfs_free(images[1]);
    assert_int_equal(ron_mem_live_count(), 0);
}

/* Two operations that were made in one order may survive in any. */
static void later_changes_survive_earlier_ones(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = memory_new(0);
    struct io_file *file = open_file(vfs, "a", IO_OPEN_CREATE);
    struct io_vfs *image;

    (void)state;
    write_text(file, 0, "aaaa");
    assert_ok(io_file_sync(file, NULL));
    assert_ok(io_vfs_sync_dir(vfs, "", NULL));
    write_text(file, 0, "bb");
    write_text(file, 1, "cc");
    assert_ok(io_vfs_rename(vfs, "a", "z", NULL));
    image = crash(vfs, 2, SIZE_MAX, 0);
    assert_file(image, "a", "acca");
    assert_file(image, "z", NULL);
    (void)io_vfs_free(image);
    image = crash(vfs, 5, SIZE_MAX, 0);
    assert_file(image, "z", "bbaa");
    assert_file(image, "a", NULL);
    (void)io_vfs_free(image);
    image = crash(vfs, 7, 1, 1);
    assert_file(image, "z", "bcaa");
    (void)io_vfs_free(image);
    assert_dies((void)crash(vfs, 5, 1, 1), "kept");
    (void)io_file_close(file);
    (void)io_vfs_free(vfs);
}

static bool count_image(void *context, struct io_vfs *image, const struct io_crash_plan *plan,
                        enum io_crash_class class)
{
    uint64_t *seen_count = context;

    assert_int_equal(io_memory_unsynced_count(image), 0);
    assert_int_equal(plan->torn != SIZE_MAX, class == IO_CRASH_tear);
    *seen_count += 1;
    return true;
}

static bool stop_at_third(void *context, struct io_vfs *image, const struct io_crash_plan *plan,
                          enum io_crash_class class)
{
    (void)image;
    (void)plan;
    (void)class;
    return ++*(uint64_t *)context < 3;
}

static void images_are_those_of_the_definition(void **state) RON_BLOCKS
{
    static uint8_t bytes[2000];
    const struct ron_slice part = ron_slice_of(bytes, sizeof(bytes));
    struct io_vfs *vfs = memory_new(0);
    struct io_file *file = open_file(vfs, "a", IO_OPEN_CREATE);
    struct io_crash_counts counts = {0};
    uint64_t seen_count = 0;
    uint64_t total = 0;

    (void)state;
    for (int i = 0; i < 7; i++) /* with the name 8 changes */
        assert_ok(io_file_write(file, 500, &part, 1, NULL));
    assert_ok(io_crash_images(vfs, &(struct io_crash_options){1, 0}, count_image, &seen_count,
                              &counts, NULL));
    assert_int_equal(counts.images[IO_CRASH_subset], 256);
    assert_int_equal(counts.images[IO_CRASH_tear], 4); /* 512, 1024, 1536, 2048 in 500..2500 */
    assert_int_equal(seen_count, 260);
    assert_ok(io_file_truncate(file, 1, NULL));
    assert_ok(io_crash_images(vfs, &(struct io_crash_options){1, 3}, count_image, &seen_count,
                              &counts, NULL));
    assert_int_equal(counts.images[IO_CRASH_subset], 256);
    assert_int_equal(counts.images[IO_CRASH_prefix], 10);
    assert_int_equal(counts.images[IO_CRASH_loss], 9);
    assert_int_equal(counts.images[IO_CRASH_seeded], 256);
    assert_int_equal(counts.images[IO_CRASH_tear], 4 + 3);
    for (int i = 0; i < IO_CRASH__MAX; i++)
        total += counts.images[i];
    assert_int_equal(seen_count, total);
    seen_count = 0;
    assert_ok(io_crash_images(vfs, &(struct io_crash_options){1, 0}, stop_at_third, &seen_count,
                              &counts, NULL));
    assert_int_equal(seen_count, 3);
    assert_string_equal(io_crash_class_name(IO_CRASH_tear), "tear");
    (void)io_file_close(file);
    (void)io_vfs_free(vfs);
}

/* What 512-byte tears leave: new bytes before a sector boundary of the file, old ones behind. */
static bool look_at_tear(void *context, struct io_vfs *image, const struct io_crash_plan *plan,
                         enum io_crash_class class) RON_BLOCKS
{
    struct io_file *file;
    uint8_t bytes[2048];
    size_t size = 0;
    size_t edge = 500;

    if (class != IO_CRASH_tear)
        return true;
    file = open_file(image, "a", IO_OPEN_READ);
    assert_ok(io_file_read(file, 0, bytes, sizeof(bytes), &size, NULL));
    assert_int_equal(size, sizeof(bytes));
    while (edge < size && bytes[edge] == 2)
        edge++;
    assert_int_equal(edge, 500 + plan->torn_bytes);
    assert_int_equal(edge % IO_SECTOR, 0);
    for (size_t i = edge; i < size; i++)
        assert_int_equal(bytes[i], 1);
    *(size_t *)context += 1;
    (void)io_file_close(file);
    return true;
}

static void tears_are_at_sectors(void **state) RON_BLOCKS
{
    uint8_t bytes[2048];
    const struct ron_slice old = ron_slice_of(bytes, sizeof(bytes));
    const struct ron_slice new = ron_slice_of(bytes, 1200);
    struct io_vfs *vfs = memory_new(0);
    struct io_file *file = open_file(vfs, "a", IO_OPEN_CREATE);
    struct io_crash_counts counts = {0};
    size_t tears_count = 0;

    (void)state;
    memset(bytes, 1, sizeof(bytes));
    assert_ok(io_file_write(file, 0, &old, 1, NULL));
    assert_ok(io_file_sync(file, NULL));
    assert_ok(io_vfs_sync_dir(vfs, "", NULL));
    memset(bytes, 2, sizeof(bytes));
    assert_ok(io_file_write(file, 500, &new, 1, NULL));
    assert_ok(io_crash_images(vfs, &(struct io_crash_options){0}, look_at_tear, &tears_count,
                              &counts, NULL));
    assert_int_equal(tears_count, 3); /* 512, 1024, 1536 */
    (void)io_file_close(file);
    (void)io_vfs_free(vfs);
}

static void changes_are_bounded(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = memory_new(0);
    struct io_file *file = open_file(vfs, "a", IO_OPEN_CREATE);
    struct ron_errinfo info;
    enum ron_err err;

    (void)state;
    for (int i = 1; i < IO_MEMORY_CHANGES_MAX; i++)
        write_text(file, (uint64_t)i, "x");
    err = io_file_truncate(file, 0, &info);
    support_assert_error(err, &info, RON_ERR_BUSY, "not yet synced");
    assert_ok(io_file_sync(file, NULL));
    assert_ok(io_file_truncate(file, 0, NULL));
    (void)io_file_close(file);
    (void)io_vfs_free(vfs);
}

/* Zeros cost no memory, however many. */
static void zeros_are_cheap(void **state) RON_BLOCKS
{
    static const uint8_t zeros[1 << 20];
    const struct ron_slice part = ron_slice_of(zeros, sizeof(zeros));
    struct io_vfs *vfs = memory_new(0);
    struct io_file *file = open_file(vfs, "a", IO_OPEN_CREATE);
    uint64_t live_count;
    char byte = 1;
    size_t size = 0;

    (void)state;
    assert_ok(io_file_sync(file, NULL));
    live_count = ron_mem_live_count();
    for (uint64_t i = 0; i < 64; i++) {
        assert_ok(io_file_write(file, i << 20, &part, 1, NULL));
        assert_ok(io_file_sync(file, NULL));
    }
    assert_ok(io_file_truncate(file, UINT64_C(1) << 50, NULL));
    assert_ok(io_file_sync(file, NULL));
    assert_int_equal(ron_mem_live_count(), live_count);
    assert_ok(io_file_read(file, UINT64_C(1) << 49, &byte, 1, &size, NULL));
    assert_int_equal(size, 1);
    assert_int_equal(byte, 0);
    assert_int_equal(io_file_write(file, UINT64_C(1) << 49, &RON_SLICE("x"), 1, NULL),
                     RON_ERR_PERSISTENCE_FULL); /* no table is that long */
    (void)io_file_close(file);
    (void)io_vfs_free(vfs);
}

static enum ron_err use_all(struct io_vfs *vfs, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_file *file = NULL;
    struct io_vfs *image = NULL;
    enum ron_err err = io_vfs_make_dir(vfs, "d/e", reterr);

    if (err == RON_ERR_OK)
        err = io_vfs_open(vfs, "d/a", IO_OPEN_CREATE, &file, reterr);
    if (err == RON_ERR_OK)
        err = io_file_write(file, 4000, &RON_SLICE("over the edge of a page"), 1, reterr);
    for (int i = 0; err == RON_ERR_OK && i < 120; i++)
        err = io_file_write(file, 9000, &RON_SLICE("x"), 1, reterr);
    if (err == RON_ERR_OK)
        err = io_vfs_sync_dir(vfs, "d", reterr);
    if (err == RON_ERR_OK)
        err = io_file_sync(file, reterr);
    if (err == RON_ERR_OK)
        err = io_file_truncate(file, 4001, reterr);
    if (err == RON_ERR_OK)
        err = io_vfs_rename(vfs, "d/a", "d/b", reterr);
    if (err == RON_ERR_OK)
        err = io_crash_seeded(vfs, 3, &image, reterr);
    (void)io_vfs_free(image);
    (void)io_file_close(file);
    return err;
}

static enum ron_err attempt(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_vfs *vfs = NULL;
    enum ron_err err = io_vfs_memory_new(NULL, &vfs, reterr);

    (void)context;
    if (err == RON_ERR_OK)
        err = use_all(vfs, reterr);
    (void)io_vfs_free(vfs);
    return err;
}

static void each_allocation_may_fail(void **state) RON_BLOCKS
{
    (void)state;
    assert_true(support_fail_each_allocation(attempt, NULL, 500) >= 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_agree_with_the_oracle),
        cmocka_unit_test(changes_are_listed_in_order),
        cmocka_unit_test(a_name_lasts_after_its_directory),
        cmocka_unit_test(images_do_not_disturb_each_other),
        cmocka_unit_test(later_changes_survive_earlier_ones),
        cmocka_unit_test(images_are_those_of_the_definition),
        cmocka_unit_test(tears_are_at_sectors),
        cmocka_unit_test(changes_are_bounded),
        cmocka_unit_test(zeros_are_cheap),
        cmocka_unit_test(each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
