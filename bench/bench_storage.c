/*
 * bench_storage.c - index files and snapshots beside the disk they are on.
 *
 * Index: build and write, hits and misses over 1 M keys in one file and 20 M in 20; the same behind
 * two gates, as a log has them. Snapshots
 * against raw writes and reads of the same bytes. The log is bench_log.c.
 */
#include "base/mem.h"
#include "bench_disk.h"
#include "harness.h"
#include "io/segment_gate.h"
#include "io/segment_index.h"
#include "io/snapshot_file.h"

enum {
    INDEXES = 20,
    KEYS = 1000000, /* of one index */
    KEYS_QUICK = 50000,
    SNAPSHOT_SIZE = 64 << 20,
};

static struct bench_disk disk;
static uint64_t keys_count;

static void key_of(uint64_t set, uint64_t i, uint8_t key[16])
{
    uint64_t z = set << 40 ^ (i + 1) * 0x9e3779b97f4a7c15u;

    for (unsigned half = 0; half < 2; half++) {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        z ^= z >> 31;
        memcpy(key + 8 * half, &z, 8);
        z += 0x2545f4914f6cdd1du;
    }
}

/* Indexes. */

static struct io_index_of segment_of(uint64_t set)
{
    struct io_index_of of = {.segment = set + 1, .first_index = 1, .last_index = keys_count};

    memcpy(of.last_link, &set, sizeof(set));
    return of;
}

static void build(uint64_t set, const char *path) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct io_index_of of = segment_of(set);
    struct io_index_builder *builder = NULL;

    must(io_index_builder_new(&of, keys_count, &builder, &info), &info);
    for (uint64_t i = 0; i < keys_count; i++) {
        struct io_index_entry entry = {.offset8 = (uint32_t)(512 + 32 * i)};

        key_of(set, i, entry.key);
        must(io_index_add(builder, &entry, &info), &info);
        must(io_index_add_start(builder, 1 + i, entry.offset8, &info), &info);
    }
    must(io_index_write(builder, disk.vfs, path, &info), &info);
    builder = io_index_builder_free(builder);
}

static void run_build(void *context, uint64_t rounds) RON_BLOCKS
{
    (void)context;
    for (uint64_t i = 0; i < rounds; i++)
        build(99, "built");
}

struct raw {
    size_t size;
    uint8_t *bytes;
};

static void run_raw_write(void *context, uint64_t rounds) RON_BLOCKS
{
    const struct raw *raw = context;
    struct ron_errinfo info = {0};

    for (uint64_t i = 0; i < rounds; i++) {
        struct io_file *file = NULL;

        must(io_vfs_open(disk.vfs, "raw.new", IO_OPEN_CREATE, &file, &info), &info);
        for (size_t at = 0; at < raw->size; at += 1 << 20) {
            size_t some = raw->size - at < 1 << 20 ? raw->size - at : 1 << 20;

            must(io_file_write(file, at, &(struct ron_slice){raw->bytes + at, some}, 1, &info),
                 &info);
        }
        must(io_file_sync(file, &info), &info);
        file = io_file_close(file);
        must(io_vfs_rename(disk.vfs, "raw.new", "raw", &info), &info);
        must(io_vfs_sync_dir(disk.vfs, "", &info), &info);
    }
}

static void run_raw_read(void *context, uint64_t rounds) RON_BLOCKS
{
    const struct raw *raw = context;
    struct ron_errinfo info = {0};

    for (uint64_t i = 0; i < rounds; i++) {
        struct io_file *file = NULL;
        size_t done = 0;

        must(io_vfs_open(disk.vfs, "raw", IO_OPEN_READ, &file, &info), &info);
        for (size_t at = 0; at < raw->size; at += 1 << 20)
            must(io_file_read(file, at, raw->bytes, 1 << 20, &done, &info), &info);
        file = io_file_close(file);
    }
}

struct lookups {
    struct io_index **indexes;
    size_t count;
    uint64_t next;
};

static bool find(const struct lookups *lookups, const uint8_t key[16]) RON_BLOCKS
{
    size_t at = 0;

    while ((at = io_index_next_with(lookups->indexes, lookups->count, at, key)) < lookups->count) {
        struct io_index_place place;
        struct ron_errinfo info = {0};
        enum ron_err err = io_index_find(lookups->indexes[at], key, &place, &info);

        if (err == RON_ERR_OK)
            return true;
        if (err != RON_ERR_NOT_FOUND)
            must(err, &info);
        at++;
    }
    return false;
}

static void run_hit(void *context, uint64_t rounds) RON_BLOCKS
{
    struct lookups *lookups = context;

    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t n = lookups->next++ * 7919;
        uint8_t key[16];

        key_of(n % lookups->count, n / 31 % keys_count, key);
        RON_ASSERT(find(lookups, key));
    }
}

static void run_miss(void *context, uint64_t rounds) RON_BLOCKS
{
    struct lookups *lookups = context;

    for (uint64_t i = 0; i < rounds; i++) {
        uint8_t key[16];

        key_of(1000, lookups->next++, key);
        RON_ASSERT(!find(lookups, key));
    }
}

static void run_miss_one_by_one(void *context, uint64_t rounds)
{
    struct lookups *lookups = context;
    uint64_t maybe = 0;

    for (uint64_t i = 0; i < rounds; i++) {
        uint8_t key[16];

        key_of(1000, lookups->next++, key);
        for (size_t at = 0; at < lookups->count; at++)
            maybe += io_index_may_have(lookups->indexes[at], key) ? 1 : 0;
    }
    BENCH_USE_VALUE(maybe);
}

static void bench_lookups(const struct bench_options *options, struct io_index **indexes,
                          size_t count)
{
    struct lookups lookups = {.indexes = indexes, .count = count};
    char title[160];
    size_t memory = 0;
    const struct bench_contestant contestants[] = {
        {.name = "miss, filters at once", .run = run_miss, .context = &lookups},
        {.name = "filters alone, in turn", .run = run_miss_one_by_one, .context = &lookups},
        {.name = "hit, one page read", .run = run_hit, .context = &lookups},
    };

    for (size_t i = 0; i < count; i++)
        memory += io_index_memory(indexes[i]);
    (void)snprintf(title, sizeof(title),
                   "lookups, %llu keys in %zu indexes, %.2f bytes of memory per key",
                   (unsigned long long)(count * keys_count), count,
                   (double)memory / (double)(count * keys_count));
    bench_compare(options, &(struct bench_table){.title = title,
                                                 .rival = "filters alone, in turn",
                                                 .contestants = contestants,
                                                 .contestants_count = 3});
}

/* As a log of so many segments has them: one that is full, for sixteen, and one that grows. */
enum { GATES = 2, GATE_FIRST = 16 };
struct behind_gates {
    struct io_index **indexes;
    struct io_gate_seed seed;
    struct io_gate *gates[GATES];
    uint64_t next;
};

static void next_keys(uint64_t *next, uint8_t keys[IO_INDEX_KEYS_AT_ONCE][16])
{
    for (size_t i = 0; i < IO_INDEX_KEYS_AT_ONCE; i++)
        key_of(1000, (*next)++, keys[i]);
}

static void run_filters_each(void *context, uint64_t rounds)
{
    struct behind_gates *behind = context;
    uint8_t keys[IO_INDEX_KEYS_AT_ONCE][16];
    uint64_t maybe = 0;

    for (uint64_t i = 0; i < rounds; i++) {
        next_keys(&behind->next, keys);
        for (size_t at = 0; at < INDEXES; at++)
            maybe |= io_index_may_have_each(behind->indexes[at], keys, IO_INDEX_KEYS_AT_ONCE);
    }
    BENCH_USE_VALUE(maybe);
}

static void run_gates_each(void *context, uint64_t rounds)
{
    struct behind_gates *behind = context;
    uint8_t keys[IO_INDEX_KEYS_AT_ONCE][16];
    struct io_gate_keys hashed;
    uint64_t maybe = 0;

    for (uint64_t i = 0; i < rounds; i++) {
        next_keys(&behind->next, keys);
        io_gate_keys_make(behind->seed, keys, IO_INDEX_KEYS_AT_ONCE, &hashed);
        for (size_t at = 0; at < GATES; at++)
            io_gate_fetch_each(behind->gates[at], &hashed);
        for (size_t at = 0; at < GATES; at++)
            maybe |= io_gate_may_have_each(behind->gates[at], &hashed);
    }
    BENCH_USE_VALUE(maybe);
}

/* All of a miss: where a gate errs, a page of each index behind it. */
static void run_gates_miss(void *context, uint64_t rounds) RON_BLOCKS
{
    struct behind_gates *behind = context;
    uint8_t keys[IO_INDEX_KEYS_AT_ONCE][16];
    struct io_gate_keys hashed;

    for (uint64_t i = 0; i < rounds; i++) {
        next_keys(&behind->next, keys);
        io_gate_keys_make(behind->seed, keys, IO_INDEX_KEYS_AT_ONCE, &hashed);
        for (size_t at = 0; at < GATES; at++)
            io_gate_fetch_each(behind->gates[at], &hashed);
        for (size_t at = 0; at < GATES; at++) {
            const size_t first = at == 0 ? 0 : GATE_FIRST, last = at == 0 ? GATE_FIRST : INDEXES;
            uint64_t maybe = io_gate_may_have_each(behind->gates[at], &hashed);

            for (; maybe != 0; maybe &= maybe - 1) {
                const struct lookups lookups = {.indexes = behind->indexes + first,
                                                .count = last - first};

                RON_ASSERT(!find(&lookups, keys[__builtin_ctzll(maybe)]));
            }
        }
    }
}

static void run_gate_fill(void *context, uint64_t rounds) RON_BLOCKS
{
    const struct behind_gates *behind = context;
    struct ron_errinfo info = {0};

    for (uint64_t i = 0; i < rounds; i++) {
        struct io_gate *gate = NULL;

        must(io_gate_new(behind->seed, 4 * keys_count, &gate, &info), &info);
        for (size_t at = 0; at < 4; at++)
            must(io_gate_add(gate, behind->indexes[at], &info), &info);
        gate = io_gate_free(gate);
    }
}

/* The filters are given back, as in a log: comes last. */
static void bench_gates(const struct bench_options *options, struct io_index **indexes) RON_BLOCKS
{
    struct behind_gates behind = {.indexes = indexes, .seed = io_gate_seed_new()};
    const struct bench_contestant asked[] = {
        {.name = "gates", .run = run_gates_each, .context = &behind, .items_count = 64},
        {.name = "a filter for each",
         .run = run_filters_each,
         .context = &behind,
         .items_count = 64},
    };
    const struct bench_contestant whole[] = {
        {.name = "miss behind gates, with pages that are read for nothing",
         .run = run_gates_miss,
         .context = &behind,
         .items_count = 64},
        {.name = "fill a gate for four, per key",
         .run = run_gate_fill,
         .context = &behind,
         .items_count = 4 * keys_count},
    };
    struct ron_errinfo info = {0};
    size_t memory = 0;
    char title[160];

    for (size_t at = 0; at < GATES; at++) {
        const size_t first = at == 0 ? 0 : GATE_FIRST, last = at == 0 ? GATE_FIRST : INDEXES;

        must(io_gate_new(behind.seed, (last - first) * keys_count, &behind.gates[at], &info),
             &info);
        for (size_t i = first; i < last; i++)
            must(io_gate_add(behind.gates[at], indexes[i], &info), &info);
        memory += io_gate_memory(behind.gates[at]);
    }
    bench_compare(options, &(struct bench_table){.title = "64 keys asked at once, per key",
                                                 .rival = "a filter for each",
                                                 .contestants = asked,
                                                 .contestants_count = 2});
    for (size_t i = 0; i < INDEXES; i++) {
        ron_table_free(io_index_take_filter(indexes[i]));
        memory += io_index_memory(indexes[i]);
    }
    (void)snprintf(title, sizeof(title), "behind %d gates, %.2f bytes of memory per key", GATES,
                   (double)memory / (double)(INDEXES * keys_count));
    bench_compare(options, &(struct bench_table){.title = title,
                                                 .rival = whole[0].name,
                                                 .contestants = whole,
                                                 .contestants_count = 2});
    for (size_t at = 0; at < GATES; at++)
        behind.gates[at] = io_gate_free(behind.gates[at]);
}

static void bench_index(const struct bench_options *options) RON_BLOCKS
{
    struct io_index *indexes[INDEXES] = {NULL};
    struct raw raw = {.size = keys_count / 170 * 4096 + keys_count * 7 / 4};
    const struct bench_contestant contestants[] = {
        {.name = "build and write an index", .run = run_build, .items_count = keys_count},
        {.name = "raw write and sync",
         .run = run_raw_write,
         .context = &raw,
         .items_count = keys_count},
    };
    struct ron_errinfo info = {0};
    char title[80];

    raw.bytes = ron_mem_alloc(raw.size);
    RON_ASSERT(raw.bytes != NULL);
    memset(raw.bytes, 0x5a, raw.size);
    (void)snprintf(title, sizeof(title), "index of %llu keys, per key",
                   (unsigned long long)keys_count);
    bench_compare(options, &(struct bench_table){.title = title,
                                                 .rival = "raw write and sync",
                                                 .contestants = contestants,
                                                 .contestants_count = 2});
    for (uint64_t i = 0; i < INDEXES; i++) {
        struct io_index_of of = segment_of(i);
        char path[32];

        (void)snprintf(path, sizeof(path), "idx-%llu", (unsigned long long)i);
        build(i, path);
        must(io_index_open(disk.vfs, path, &of, &indexes[i], &info), &info);
    }
    bench_lookups(options, indexes, 1);
    bench_lookups(options, indexes, INDEXES);
    bench_gates(options, indexes);
    for (uint64_t i = 0; i < INDEXES; i++)
        indexes[i] = io_index_close(indexes[i]);
    ron_mem_free(raw.bytes);
}

/* Snapshots. The context is the raw bytes. */

static void run_snapshot_write(void *context, uint64_t rounds) RON_BLOCKS
{
    const struct raw *raw = context;
    const struct io_snapshot_cut cut = {.kind = 1, .position = 7, .last_durable = 7};
    struct ron_errinfo info = {0};

    for (uint64_t i = 0; i < rounds; i++) {
        struct io_snapshot_writer *writer = NULL;
        struct io_snapshot_info done;

        must(io_snapshot_begin(disk.vfs, "", &cut, &writer, &info), &info);
        for (size_t at = 0; at < raw->size; at += 1 << 16)
            must(io_snapshot_put(writer, ron_slice_of(raw->bytes + at, 1 << 16), &info), &info);
        must(io_snapshot_commit(writer, &done, &info), &info);
    }
}

static void run_snapshot_open(void *context, uint64_t rounds) RON_BLOCKS
{
    struct ron_errinfo info = {0};

    (void)context;
    for (uint64_t i = 0; i < rounds; i++) {
        struct io_snapshot *snapshot = NULL;

        must(io_snapshot_open_newest(disk.vfs, "", 1, 9, &snapshot, NULL, &info), &info);
        snapshot = io_snapshot_close(snapshot);
    }
}

static void run_snapshot_read(void *context, uint64_t rounds) RON_BLOCKS
{
    const struct raw *raw = context;
    struct ron_errinfo info = {0};

    for (uint64_t i = 0; i < rounds; i++) {
        struct io_snapshot *snapshot = NULL;

        must(io_snapshot_open_newest(disk.vfs, "", 1, 9, &snapshot, NULL, &info), &info);
        for (size_t at = 0; at < raw->size; at += 1 << 16)
            must(io_snapshot_read(snapshot, at, raw->bytes + at, 1 << 16, &info), &info);
        snapshot = io_snapshot_close(snapshot);
    }
}

static void bench_snapshot(const struct bench_options *options)
{
    struct raw raw = {.size = SNAPSHOT_SIZE, .bytes = ron_mem_alloc(SNAPSHOT_SIZE)};
    const struct bench_contestant writers[] = {
        {.name = "snapshot write", .run = run_snapshot_write, .context = &raw},
        {.name = "raw write and sync", .run = run_raw_write, .context = &raw},
    };
    const struct bench_contestant readers[] = {
        {.name = "snapshot open (checked)", .run = run_snapshot_open, .context = &raw},
        {.name = "snapshot open and read", .run = run_snapshot_read, .context = &raw},
        {.name = "raw read, cached", .run = run_raw_read, .context = &raw},
    };

    RON_ASSERT(raw.bytes != NULL);
    memset(raw.bytes, 0xa5, raw.size);
    bench_compare(options, &(struct bench_table){.title = "write 64 MiB durably",
                                                 .rival = "raw write and sync",
                                                 .item_size = SNAPSHOT_SIZE,
                                                 .contestants = writers,
                                                 .contestants_count = 2});
    bench_compare(options, &(struct bench_table){.title = "read 64 MiB",
                                                 .rival = "raw read, cached",
                                                 .item_size = SNAPSHOT_SIZE,
                                                 .contestants = readers,
                                                 .contestants_count = 3});
    ron_mem_free(raw.bytes);
}

int main(int argc, char **argv) RON_BLOCKS
{
    struct bench_options options;

    if (!bench_begin(argc, argv, &options))
        return 2;
    keys_count = options.quick ? KEYS_QUICK : KEYS;
    bench_disk_begin(&disk);
    bench_snapshot(&options);
    bench_index(&options);
    bench_disk_end(&disk);
    return 0;
}
