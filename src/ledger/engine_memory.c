/*
 * engine_memory.c - frames in memory: the amnesia engine. See engine.h.
 *
 * One writer; frames never move and never change, so a reader that has seen the count needs no
 * lock. A frame is durable when it is appended.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "ledger/engine.h"
#include "rt/atomic.h"

#define MEMORY_MAGIC 0x3e3a917bu

struct frame {
    uint8_t *bytes;
    size_t size;
};

struct memory_engine {
    struct ledger_engine head;
    uint32_t magic;
    struct ledger_engine_memory_options options;
    uint64_t size; /* the writer's */
    struct rt_atomic_u64 frames_count;
    struct frame frames[]; /* number n at n - 1 */
};

static struct memory_engine *memory_of(struct ledger_engine *engine)
{
    struct memory_engine *memory = (struct memory_engine *)engine;

    RON_ASSERT(memory->magic == MEMORY_MAGIC);
    return memory;
}

static enum ron_err memory_recover(struct ledger_engine *engine, uint64_t first,
                                   ledger_frame_fn *fn, void *context, struct ron_errinfo *reterr)
{
    struct memory_engine *memory = memory_of(engine);
    const uint64_t count = rt_counter_load(&memory->frames_count);
    enum ron_err err = RON_ERR_OK;

    engine->clean = false;
    RON_ASSERT(first > 0);
    for (uint64_t i = first - 1; i < count && err == RON_ERR_OK; i++)
        err = fn(context, i + 1, ron_slice_of(memory->frames[i].bytes, memory->frames[i].size),
                 reterr);
    return err;
}

static enum ron_err memory_append(struct ledger_engine *engine, const struct ron_slice *parts,
                                  size_t parts_count, struct rt_deadline deadline,
                                  uint64_t *ret_number, struct ron_errinfo *reterr)
{
    struct memory_engine *memory = memory_of(engine);
    const uint64_t count = rt_counter_load(&memory->frames_count);
    uint8_t *bytes;
    size_t size = 0;

    (void)deadline;
    for (size_t i = 0; i < parts_count; i++)
        size += parts[i].size; /* all of it is in memory */
    if (count == memory->options.frames_max || size > memory->options.size_max - memory->size)
        return ron_fail(reterr, RON_ERR_PERSISTENCE_FULL, "%llu frames of %llu bytes in memory",
                        (unsigned long long)count, (unsigned long long)memory->size);
    bytes = ron_mem_alloc(size);
    if (bytes == NULL)
        return ron_fail(reterr, RON_ERR_PERSISTENCE_FULL, "no memory for a frame of %zu bytes",
                        size);
    memory->frames[count] = (struct frame){bytes, size};
    for (size_t i = 0; i < parts_count; i++) {
        if (parts[i].size > 0)
            memcpy(bytes, parts[i].data, parts[i].size);
        bytes += parts[i].size;
    }
    memory->size += size;
    rt_atomic_store_u64(&memory->frames_count, count + 1);
    *ret_number = count + 1;
    return RON_ERR_OK;
}

static enum ron_err memory_append_many(struct ledger_engine *engine, const struct ron_slice *frames,
                                       size_t frames_count, struct rt_deadline deadline,
                                       size_t *ret_count, uint64_t *ret_number,
                                       struct ron_errinfo *reterr)
{
    enum ron_err err = memory_append(engine, frames, 1, deadline, ret_number, reterr);
    size_t count = 1;

    if (err != RON_ERR_OK)
        return err;
    while (count < frames_count &&
           memory_append(engine, frames + count, 1, deadline, ret_number, NULL) == RON_ERR_OK)
        count++;
    *ret_count = count;
    return RON_ERR_OK;
}

static enum ron_err memory_wait(struct ledger_engine *engine, uint64_t number,
                                struct rt_deadline deadline, struct ron_errinfo *reterr)
{
    (void)deadline;
    (void)reterr;
    RON_ASSERT(number <= rt_counter_load(&memory_of(engine)->frames_count));
    return RON_ERR_OK;
}

static uint64_t memory_durable(struct ledger_engine *engine)
{
    return rt_counter_load(&memory_of(engine)->frames_count);
}

static enum ron_err memory_read(struct ledger_engine *engine, uint64_t number, struct ron_buf *buf,
                                struct ron_errinfo *reterr)
{
    struct memory_engine *memory = memory_of(engine);

    if (number == 0 || number > rt_atomic_load_u64(&memory->frames_count))
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "no batch %llu", (unsigned long long)number);
    return ron_buf_append(buf, memory->frames[number - 1].bytes, memory->frames[number - 1].size,
                          reterr);
}

static enum ron_err memory_close(struct ledger_engine *engine, struct rt_deadline deadline,
                                 struct ron_errinfo *reterr)
{
    (void)deadline;
    (void)reterr;
    memory_of(engine)->head.clean = true;
    return RON_ERR_OK;
}

static const struct ledger_engine_ops memory_ops = {
    .name = "memory",
    .recover = memory_recover,
    .append = memory_append,
    .append_many = memory_append_many,
    .wait = memory_wait,
    .durable = memory_durable,
    .read = memory_read,
    .close = memory_close,
};

enum ron_err ledger_engine_memory_new(const struct ledger_engine_memory_options *options,
                                      struct ledger_engine **ret_engine, struct ron_errinfo *reterr)
{
    struct memory_engine *memory = ron_mem_alloc(sizeof(*memory) +
                                                 options->frames_max * sizeof(memory->frames[0]));

    if (memory == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a memory engine of %u frames",
                        options->frames_max);
    memory->head = (struct ledger_engine){&memory_ops, true};
    memory->magic = MEMORY_MAGIC;
    memory->options = *options;
    *ret_engine = &memory->head;
    return RON_ERR_OK;
}

struct ledger_engine *ledger_engine_memory_free(struct ledger_engine *engine)
{
    struct memory_engine *memory;

    if (engine == NULL)
        return NULL;
    memory = memory_of(engine);
    for (uint64_t i = 0; i < rt_counter_load(&memory->frames_count); i++)
        (void)ron_mem_free(memory->frames[i].bytes);
    memory->magic = ~MEMORY_MAGIC;
    return ron_mem_free(memory);
}
