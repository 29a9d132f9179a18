/*
 * log_find.c - look-ups by key in the indexes of sealed segments. See log.h, log_impl.h.
 *
 * The filters of many indexes, and gates in place of them, are asked at once, under the lock for
 * one key and without it for many; pages are read without it, from an index that is pinned. What is
 * damaged, a page or a piece of the filter, has its index built again from the segment, by the
 * first who meets it; those who come meanwhile wait. The old one is closed by the last who uses it.
 */
#include "base/assert.h"
#include "io/log_impl.h"

enum { AT_ONCE = 64 };

struct search {
    io_log_place_fn *fn;
    void *context;
    bool enough;
};

/* The record that starts at an offset of a segment. */
static enum ron_err index_at(struct io_log *log, uint64_t number, uint64_t offset,
                             uint64_t *ret_index, struct ron_errinfo *reterr) RON_BLOCKS
{
    uint8_t bytes[IO_FRAME_HEAD_SIZE];
    char path[IO_PATH_MAX + 1];
    struct io_file *file = NULL;
    struct io_frame frame;
    size_t size = 0;
    enum ron_err err;

    log_path(log, LOG_FILE_SEGMENT, number, path);
    err = io_vfs_open(log->options.vfs, path, IO_OPEN_READ, &file, reterr);
    if (err == RON_ERR_OK)
        err = io_file_read(file, offset, bytes, sizeof(bytes), &size, reterr);
    io_file_close(file);
    if (err != RON_ERR_OK)
        return err;
    if (!io_frame_head_sound(ron_slice_of(bytes, size), log->salt, &frame))
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT,
                        "%s at byte %llu: no frame where the index "
                        "says",
                        path, (unsigned long long)offset);
    *ret_index = frame.index;
    return RON_ERR_OK;
}

/* How many segments of the table come before `number` and begin at or before index_max. */
static uint32_t segments_before(const struct io_log *log, uint64_t number, uint64_t index_max)
    RON_NEEDS(storage)
{
    uint32_t count = log->segments_count;

    while (count > 0 && (log->segments[count - 1]->number >= number ||
                         log->segments[count - 1]->first_index > index_max))
        count--;
    return count;
}

/* What the gate that was asked last said of a key. */
struct gate_answer {
    const struct log_gate *gate; /* NULL: none was */
    bool may_have;
};

/* May the segment have the key, as far as gates know? Neighbours share one: it is asked once. */
static bool passes_gate(const struct log_segment *segment, const uint8_t key[16],
                        struct gate_answer *last) RON_NEEDS(storage)
{
    if (segment->gate == NULL)
        return true;
    if (segment->gate != last->gate)
        *last = (struct gate_answer){segment->gate, io_gate_may_have(segment->gate->keys, key)};
    return last->may_have;
}

/* The newest segment below `number` whose index may have the key, pinned, with that index. */
static struct log_segment *pin_candidate(struct io_log *log, const uint8_t key[16], uint64_t number,
                                         uint64_t index_max, struct io_index **ret_index)
{
    struct io_index *indexes[AT_ONCE];
    struct log_segment *segments[AT_ONCE];
    struct log_segment *found = NULL;
    struct gate_answer last = {0};
    uint32_t at;

    log_lock(log);
    at = segments_before(log, number, index_max);
    while (at > 0 && found == NULL) {
        size_t count = 0, hit;

        for (; at > 0 && count < AT_ONCE; at--) {
            segments[count] = log->segments[at - 1];
            indexes[count] = segments[count]->index;
            if (indexes[count] != NULL && passes_gate(segments[count], key, &last))
                count++;
        }
        hit = io_index_next_with(indexes, count, 0, key);
        if (hit < count) {
            found = segments[hit];
            found->pins_count++;
            *ret_index = indexes[hit];
        }
    }
    log_unlock(log);
    return found;
}

/* Build the index of a pinned segment again; *index is the damaged one and becomes the new one. */
static enum ron_err rebuild(struct io_log *log, struct log_segment *segment,
                            struct io_index **index, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct log_index_work work = {0};
    struct io_index *fresh = NULL;
    struct log_gate *unused = NULL;
    bool mine;
    enum ron_err err;

    log_lock(log);
    while (segment->rebuilding)
        (void)rt_cond_wait(&log->room_cond, &log->lock, SH_NEVER);
    /* Another one may have done it; of two that are damaged, the first must be closed before. */
    mine = segment->index == *index && segment->retired == NULL;
    segment->rebuilding = mine;
    *index = segment->index;
    log_unlock(log);
    if (!mine)
        return RON_ERR_OK;
    err = log_index_build(log, segment, &work, &fresh, reterr);
    log_index_work_fini(&work);
    log_lock(log);
    segment->rebuilding = false;
    if (err == RON_ERR_OK) {
        segment->retired = segment->index;
        segment->index = fresh;
        log_gate_leave(segment, &unused); /* which knows the keys of the old one */
        *index = fresh;
        log->stats.indexes_rebuilt++;
        io_log_count(&log->metrics, IO_LOG_METRIC_REBUILT, 1);
    }
    rt_cond_broadcast(&log->room_cond);
    log_unlock(log);
    log_gates_free(unused);
    return err;
}

/* Tell every place in one segment of keys that begin as this one, the oldest first, until `fn` has
 * seen enough. */
static enum ron_err find_in(struct io_log *log, struct log_segment *segment, struct io_index *index,
                            const uint8_t key[16], struct search *search,
                            struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_index_place at = {0};
    bool more = true;

    while (more && !search->enough) {
        struct io_log_place place = {0};
        const uint32_t offset8 = at.offset8, sub = at.sub;
        enum ron_err err = io_index_find_from(index, key, offset8, sub, &at, reterr);

        if (err == RON_ERR_WAL_CORRUPT && !log->options.read_only) {
            err = rebuild(log, segment, &index, reterr);
            if (err == RON_ERR_NOT_FOUND) /* the segment, not the key */
                return ron_fail(reterr, RON_ERR_WAL_CORRUPT,
                                "segment %llu is gone: its index cannot be built again",
                                (unsigned long long)segment->number);
            if (err == RON_ERR_OK)
                err = io_index_find_from(index, key, offset8, sub, &at, reterr);
        }
        if (err == RON_ERR_NOT_FOUND)
            return RON_ERR_OK;
        if (err == RON_ERR_OK)
            err = index_at(log, segment->number, at.offset8 * UINT64_C(8), &place.index, reterr);
        place.sub = at.sub;
        if (err == RON_ERR_OK)
            err = search->fn(search->context, &place, &search->enough, reterr);
        if (err != RON_ERR_OK)
            return err;
        at.sub++; /* the next one is behind it */
        more = at.sub != 0;
    }
    return RON_ERR_OK;
}

/* Who knows the keys of some segments. */
struct asked {
    struct log_segment *segments[AT_ONCE]; /* pinned, */
    struct io_index *indexes[AT_ONCE];     /* with these */
    size_t indexes_count;
    struct log_gate *gates[AT_ONCE]; /* in use */
    size_t gates_count;
};

/* Those of the newest segments below *number, which becomes the last of these; false: none. */
static bool take_some(struct io_log *log, uint64_t *number, uint64_t index_max, struct asked *asked)
{
    asked->indexes_count = 0;
    asked->gates_count = 0;
    log_lock(log);
    for (uint32_t at = segments_before(log, *number, index_max);
         at > 0 && asked->indexes_count < AT_ONCE && asked->gates_count < AT_ONCE; at--) {
        struct log_segment *segment = log->segments[at - 1];
        struct log_gate *gate = segment->gate;

        *number = segment->number;
        if (gate == NULL && segment->index != NULL) {
            segment->pins_count++;
            asked->segments[asked->indexes_count] = segment;
            asked->indexes[asked->indexes_count++] = segment->index;
        } else if (gate != NULL &&
                   (asked->gates_count == 0 || gate != asked->gates[asked->gates_count - 1])) {
            gate->uses_count++;
            asked->gates[asked->gates_count++] = gate;
        }
    }
    log_unlock(log);
    return asked->indexes_count + asked->gates_count > 0;
}

static void let_go(struct io_log *log, const struct asked *asked) RON_BLOCKS
{
    struct log_gate *unused = NULL;

    for (size_t i = 0; i < asked->indexes_count; i++)
        log_unpin(log, asked->segments[i]);
    log_lock(log);
    for (size_t i = 0; i < asked->gates_count; i++)
        log_gate_drop(asked->gates[i], &unused);
    log_unlock(log);
    log_gates_free(unused);
}

/* Some of the keys, side by side, and as gates look for them. */
struct some_keys {
    uint8_t keys[IO_INDEX_KEYS_AT_ONCE][16];
    size_t count;
    struct io_gate_keys hashed;
};

/* Those from `first` on. */
static void gather(const struct io_log *log, const struct io_log_keys *keys, size_t first,
                   struct some_keys *some)
{
    const size_t left = first < keys->count ? keys->count - first : 0;

    some->count = left < IO_INDEX_KEYS_AT_ONCE ? left : IO_INDEX_KEYS_AT_ONCE;
    for (size_t i = IO_INDEX_KEYS_AT_ONCE; i < 2 * IO_INDEX_KEYS_AT_ONCE && i < left; i++)
        ron_prefetch(keys->first + (first + i) * keys->stride);
    for (size_t i = 0; i < some->count; i++)
        memcpy(some->keys[i], keys->first + (first + i) * keys->stride, sizeof(some->keys[i]));
    io_gate_keys_make(log->gate_seed, some->keys, some->count, &some->hashed);
}

/* What a gate will need for them; of one behind the last nothing. */
static void fetch(const struct asked *asked, size_t gate, const struct some_keys *some)
{
    if (gate < asked->gates_count)
        io_gate_fetch_each(asked->gates[gate]->keys, &some->hashed);
}

/* What these may have of the keys, besides what others have. While a gate is asked, the memory for
 * the next question comes nearer: of the next gate, or of the first one for the next keys. */
static void mark(const struct io_log *log, const struct asked *asked,
                 const struct io_log_keys *keys, uint64_t *bits)
{
    struct some_keys two[2];

    gather(log, keys, 0, &two[0]);
    fetch(asked, 0, &two[0]);
    for (size_t first = 0; first < keys->count; first += IO_INDEX_KEYS_AT_ONCE) {
        const size_t number = first / IO_INDEX_KEYS_AT_ONCE;
        const struct some_keys *some = &two[number % 2];
        struct some_keys *next = &two[(number + 1) % 2];

        gather(log, keys, first + IO_INDEX_KEYS_AT_ONCE, next);
        for (size_t i = 0; i < asked->gates_count; i++) {
            const bool is_last = i + 1 == asked->gates_count;

            fetch(asked, is_last ? 0 : i + 1, is_last ? next : some);
            bits[number] |= io_gate_may_have_each(asked->gates[i]->keys, &some->hashed);
        }
        for (size_t i = 0; i < asked->indexes_count; i++)
            bits[number] |= io_index_may_have_each(asked->indexes[i], some->keys, some->count);
    }
}

void io_log_may_have(struct io_log *log, const struct io_log_keys *keys, uint64_t index_max,
                     uint64_t *ret_bits)
{
    uint64_t number = UINT64_MAX;
    struct asked asked;

    _Static_assert((int)IO_INDEX_KEYS_AT_ONCE == 64, "a word of bits");
    rt_assert_no_lock_held();
    memset(ret_bits, 0, (keys->count + 63) / 64 * sizeof(ret_bits[0]));
    while (take_some(log, &number, index_max, &asked)) {
        mark(log, &asked, keys, ret_bits);
        let_go(log, &asked);
    }
}

enum ron_err io_log_find_each(struct io_log *log, const uint8_t key[16], uint64_t index_max,
                              io_log_place_fn *fn, void *context, struct ron_errinfo *reterr)
{
    struct search search = {fn, context, false};
    uint64_t number = UINT64_MAX;
    struct io_index *index = NULL;
    struct log_segment *segment;

    rt_assert_no_lock_held();
    while (!search.enough &&
           (segment = pin_candidate(log, key, number, index_max, &index)) != NULL) {
        enum ron_err err = find_in(log, segment, index, key, &search, reterr);

        number = segment->number;
        log_unpin(log, segment);
        if (err != RON_ERR_OK)
            return err;
    }
    return RON_ERR_OK;
}

struct first {
    struct io_log_place place;
    bool found;
};

static enum ron_err take_first(void *context, const struct io_log_place *place, bool *ret_enough,
                               struct ron_errinfo *reterr)
{
    (void)reterr;
    *(struct first *)context = (struct first){*place, true};
    *ret_enough = true;
    return RON_ERR_OK;
}

enum ron_err io_log_find(struct io_log *log, const uint8_t key[16], struct io_log_place *ret_place,
                         struct ron_errinfo *reterr)
{
    struct first first = {.found = false};
    enum ron_err err = io_log_find_each(log, key, UINT64_MAX, take_first, &first, reterr);

    if (err == RON_ERR_OK && !first.found)
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "no such key in the sealed segments of log %s",
                        log->options.name);
    if (err == RON_ERR_OK)
        *ret_place = first.place;
    return err;
}

uint64_t io_log_last_indexed(const struct io_log *log)
{
    struct io_log *own = (struct io_log *)(uintptr_t)log; /* the lock changes, nothing else does */
    uint64_t index = 0;

    log_lock(own);
    for (uint32_t i = 0; i < own->segments_count && own->segments[i]->index != NULL; i++)
        index = own->segments[i]->last_index;
    log_unlock(own);
    return index;
}
