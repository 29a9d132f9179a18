/*
 * json_names.c - duplicate member names. See json_names.h.
 */
#include "base/json_names.h"

#include <sodium.h>

#include "base/assert.h"
#include "base/json_string.h"

enum {
    SMALL_COUNT = 16, /* up to here each new name is compared with all before */
    OFFSET_BITS = 24,
    NAME_SIZE = 8,
    BUCKETS_COUNT = 256,
    DEAL_COUNT_MIN = 1024,
};
_Static_assert(RON_JSON_SIZE_MAX < 1 << OFFSET_BITS, "an offset fits a record");

/* hash << OFFSET_BITS | offset. Packed: the stack is not aligned, so that twice the text is enough
 * for the smallest text too. */
struct name_record {
    uint64_t key;
} __attribute__((packed));
_Static_assert(sizeof(struct name_record) == NAME_SIZE, "a record has its documented size");

static inline uint32_t offset_of(uint64_t key)
{
    return (uint32_t)(key & ((1u << OFFSET_BITS) - 1));
}

static inline uint64_t hash_of(uint64_t key)
{
    return key >> OFFSET_BITS;
}

static inline uint32_t bucket_of(uint64_t key)
{
    return (uint32_t)(key >> 56);
}

/* SipHash, salted with where the arena happens to lie: names of one hash, which cost comparisons,
 * cannot be prepared. No result depends on the salt. */
uint64_t ron_json_names_hash(const struct ron_json_reader *reader, struct ron_slice name)
{
    uint64_t key[2] = {(uint64_t)(uintptr_t)reader->arena->block, 0x72616d65735f6e6fu};
    uint64_t hash;

    _Static_assert(sizeof(key) == crypto_shorthash_KEYBYTES, "the key of SipHash");
    _Static_assert(sizeof(hash) == crypto_shorthash_BYTES, "its output");
    RON_MUST_ZERO(
        crypto_shorthash((unsigned char *)&hash, name.data, name.size, (const unsigned char *)key));
    return hash >> OFFSET_BITS;
}

/* The bytes of a name in the text as they decode, one by one. */
struct name_cursor {
    const uint8_t *next;
    uint32_t pending_at;
    uint32_t pending_count;
    uint8_t pending[RON_UTF8_SIZE_MAX];
};

static inline int cursor_next(struct name_cursor *cursor)
{
    if (cursor->pending_at < cursor->pending_count)
        return cursor->pending[cursor->pending_at++];
    if (*cursor->next == '"')
        return -1;
    if (*cursor->next != '\\')
        return *cursor->next++;
    cursor->next += ron_json_escape_decode(cursor->next, cursor->pending, &cursor->pending_count);
    cursor->pending_at = 1;
    return cursor->pending[0];
}

/* Has one of the eight bytes of word the value byte? */
static inline bool has_byte(uint64_t word, uint8_t byte)
{
    uint64_t difference = word ^ (0x0101010101010101u * byte);

    return ((difference - 0x0101010101010101u) & ~difference & 0x8080808080808080u) != 0;
}

/* Order of the decoded names whose quotes are at these offsets: any total order will do. Both have
 * been checked, so each ends with a quote. */
static int compare_names(const struct ron_json_reader *reader, uint32_t a_offset, uint32_t b_offset)
{
    const uint8_t *end = reader->data + reader->size;
    struct name_cursor a = {.next = reader->data + a_offset + 1};
    struct name_cursor b = {.next = reader->data + b_offset + 1};
    int a_byte;
    int b_byte;

    RON_ASSERT(reader->data[a_offset] == '"');
    RON_ASSERT(reader->data[b_offset] == '"');
    do {
        /* Where both are spelt alike and plainly, eight at a time. */
        while (a.pending_at == a.pending_count && b.pending_at == b.pending_count &&
               end - a.next >= 8 && end - b.next >= 8) {
            uint64_t word = ron_load_le64(a.next);

            if (word != ron_load_le64(b.next) || has_byte(word, '"') || has_byte(word, '\\'))
                break;
            a.next += 8;
            b.next += 8;
        }
        a_byte = cursor_next(&a);
        b_byte = cursor_next(&b);
    } while (a_byte == b_byte && a_byte >= 0);
    return a_byte - b_byte;
}

/* Strict order of records: by key alone, or (reader given) by name and then offset. */
static inline bool record_less(const struct ron_json_reader *reader, uint64_t a, uint64_t b)
{
    int order;

    if (reader == NULL)
        return a < b;
    order = compare_names(reader, offset_of(a), offset_of(b));
    return order != 0 ? order < 0 : offset_of(a) < offset_of(b);
}

/* Put `moving` into the heap whose root is empty: walk to a leaf along the greater children, one
 * comparison a level, then back up to where it belongs, which is mostly near. */
static inline void refill(struct name_record *records, uint32_t root, uint32_t count,
                          uint64_t moving, const struct ron_json_reader *reader)
{
    uint32_t hole = root;

    for (uint32_t child = 2 * hole + 1; child < count; child = 2 * hole + 1) {
        if (child + 1 < count && record_less(reader, records[child].key, records[child + 1].key))
            child++;
        records[hole].key = records[child].key;
        hole = child;
    }
    while (hole > root && record_less(reader, records[(hole - 1) / 2].key, moving)) {
        records[hole].key = records[(hole - 1) / 2].key;
        hole = (hole - 1) / 2;
    }
    records[hole].key = moving;
}

/* Heap sort: in place, no recursion, O(n log n) for every input. */
static inline void sort_records(struct name_record *records, uint32_t count,
                                const struct ron_json_reader *reader)
{
    for (uint32_t i = count / 2; i-- > 0;)
        refill(records, i, count, records[i].key, reader);
    for (uint32_t left = count; left > 1; left--) {
        uint64_t last = records[left - 1].key;

        records[left - 1].key = records[0].key;
        refill(records, 0, left - 1, last, reader);
    }
}

/* Sort by key. Large counts are first dealt out in place by the first byte of the hash: the heaps
 * are then small enough for the fastest cache. */
static void sort_by_key(struct name_record *records, uint32_t count)
{
    uint32_t next[BUCKETS_COUNT] = {0};
    uint32_t end[BUCKETS_COUNT];
    uint32_t start = 0;

    if (count < DEAL_COUNT_MIN) {
        sort_records(records, count, NULL);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        next[bucket_of(records[i].key)]++;
    for (uint32_t b = 0; b < BUCKETS_COUNT; b++) {
        end[b] = start + next[b];
        next[b] = start;
        start = end[b];
    }
    RON_ASSERT(start == count);
    /* Each step puts one record into its bucket for good. */
    for (uint32_t b = 0; b < BUCKETS_COUNT; b++) {
        while (next[b] < end[b]) {
            uint64_t key = records[next[b]].key;
            uint32_t target = bucket_of(key);

            records[next[b]].key = records[next[target]].key;
            records[next[target]++].key = key;
        }
    }
    start = 0;
    for (uint32_t b = 0; b < BUCKETS_COUNT; b++) {
        sort_records(records + start, end[b] - start, NULL);
        start = end[b];
    }
}

static uint32_t find_duplicate(struct name_record *records, uint32_t count,
                               const struct ron_json_reader *reader)
{
    uint32_t first = RON_JSON_NO_DUPLICATE;

    sort_by_key(records, count);
    for (uint32_t i = 0, run; i < count; i += run) {
        run = 1;
        while (i + run < count && hash_of(records[i + run].key) == hash_of(records[i].key))
            run++;
        if (run == 1)
            continue;
        sort_records(records + i, run, reader);
        for (uint32_t j = i + 1; j < i + run; j++) {
            uint32_t offset = offset_of(records[j].key);

            if (compare_names(reader, offset_of(records[j - 1].key), offset) == 0 && offset < first)
                first = offset;
        }
    }
    return first;
}

static struct name_record *newest_record(const struct ron_json_reader *reader)
{
    const struct ron_arena *arena = reader->arena;

    return (struct name_record *)(void *)(arena->block + (arena->size - arena->stack_size));
}

bool ron_json_names_add(struct ron_json_reader *reader, uint32_t offset, struct ron_slice name,
                        uint32_t *ret_duplicate)
{
    uint32_t count = reader->names_count - reader->names_before[reader->depth];
    uint64_t hash = ron_json_names_hash(reader, name);
    struct name_record *record = ron_arena_push(reader->arena, NAME_SIZE);

    if (record == NULL)
        return false;
    record->key = hash << OFFSET_BITS | offset;
    reader->names_count++;
    *ret_duplicate = RON_JSON_NO_DUPLICATE;
    if (count >= SMALL_COUNT)
        return true;
    for (uint32_t i = 1; i <= count; i++) {
        if (hash_of(record[i].key) == hash &&
            compare_names(reader, offset_of(record[i].key), offset) == 0)
            *ret_duplicate = offset;
    }
    return true;
}

uint32_t ron_json_names_end(struct ron_json_reader *reader)
{
    uint32_t before = reader->names_before[reader->depth];
    uint32_t count = reader->names_count - before;
    uint32_t duplicate = RON_JSON_NO_DUPLICATE;

    RON_ASSERT(before <= reader->names_count);
    if (count > SMALL_COUNT)
        duplicate = find_duplicate(newest_record(reader), count, reader);
    if (count > 0)
        ron_arena_pop(reader->arena, (size_t)count * NAME_SIZE);
    reader->names_count = before;
    return duplicate;
}

void ron_json_names_clear(struct ron_json_reader *reader)
{
    ron_arena_pop(reader->arena, (size_t)reader->names_count * NAME_SIZE);
    reader->names_count = 0;
}
