/*
 * json_names.c - duplicate member names. See json_names.h.
 */
#include "base/json_names.h"

#include "base/assert.h"
#include "base/json_string.h"

enum {
    SMALL_COUNT = 16, /* up to here each new name is compared with all before */
    OFFSET_BITS = 24,
    NAME_SIZE = 8,
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

static inline uint64_t fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Good enough that unequal names seldom meet; nothing depends on an attacker not finding some. */
static uint64_t hash_name(struct ron_slice name)
{
    const uint64_t k0 = 0x9e3779b97f4a7c15u;
    const uint64_t k1 = 0xd6e8feb86659fd93u;
    uint64_t hash = k0 ^ name.size;
    size_t at = 0;
    uint64_t last = 0;

    for (; name.size - at >= 8; at += 8)
        hash = fold(hash ^ ron_load_le64(name.data + at), k1);
    if (at < name.size)
        memcpy(&last, name.data + at, name.size - at);
    return fold(fold(hash ^ last, k1) ^ k0, k1);
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

/* Order of the decoded names whose quotes are at these offsets. Both have been checked, so each
 * ends with a quote. */
static int compare_names(const uint8_t *data, uint32_t a_offset, uint32_t b_offset)
{
    struct name_cursor a = {.next = data + a_offset + 1};
    struct name_cursor b = {.next = data + b_offset + 1};
    int a_byte;
    int b_byte;

    RON_ASSERT(data[a_offset] == '"');
    RON_ASSERT(data[b_offset] == '"');
    do {
        a_byte = cursor_next(&a);
        b_byte = cursor_next(&b);
    } while (a_byte == b_byte && a_byte >= 0);
    return a_byte - b_byte;
}

/* Strict order of records: by key alone, or (text given) by name and then offset. */
static inline bool record_less(const uint8_t *text, uint64_t a, uint64_t b)
{
    int order;

    if (text == NULL)
        return a < b;
    order = compare_names(text, offset_of(a), offset_of(b));
    return order != 0 ? order < 0 : offset_of(a) < offset_of(b);
}

static inline void sift_down(struct name_record *records, uint32_t root, uint32_t count,
                             const uint8_t *text)
{
    uint64_t moving = records[root].key;

    for (;;) {
        uint32_t child = 2 * root + 1;

        if (child >= count)
            break;
        if (child + 1 < count && record_less(text, records[child].key, records[child + 1].key))
            child++;
        if (!record_less(text, moving, records[child].key))
            break;
        records[root].key = records[child].key;
        root = child;
    }
    records[root].key = moving;
}

/* Heap sort: in place, no recursion, O(n log n) for every input. */
static inline void sort_records(struct name_record *records, uint32_t count, const uint8_t *text)
{
    for (uint32_t i = count / 2; i-- > 0;)
        sift_down(records, i, count, text);
    for (uint32_t left = count; left > 1; left--) {
        uint64_t greatest = records[0].key;

        records[0].key = records[left - 1].key;
        records[left - 1].key = greatest;
        sift_down(records, 0, left - 1, text);
    }
}

static uint32_t find_duplicate(struct name_record *records, uint32_t count, const uint8_t *text)
{
    uint32_t first = RON_JSON_NO_DUPLICATE;

    sort_records(records, count, NULL);
    for (uint32_t i = 0, run; i < count; i += run) {
        run = 1;
        while (i + run < count && hash_of(records[i + run].key) == hash_of(records[i].key))
            run++;
        if (run == 1)
            continue;
        sort_records(records + i, run, text);
        for (uint32_t j = i + 1; j < i + run; j++) {
            uint32_t offset = offset_of(records[j].key);

            if (compare_names(text, offset_of(records[j - 1].key), offset) == 0 && offset < first)
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
    uint64_t hash = hash_name(name) >> OFFSET_BITS;
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
            compare_names(reader->data, offset_of(record[i].key), offset) == 0)
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
        duplicate = find_duplicate(newest_record(reader), count, reader->data);
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
