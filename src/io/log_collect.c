/*
 * log_collect.c - see log_collect.h.
 */
#include "io/log_collect.h"

#include "base/assert.h"
#include "io/log_impl.h"

void log_collect_begin(struct io_log *log)
{
    const struct io_index_of not_known = {0}; /* before the segment is sealed */
    struct io_index_builder *builder = NULL;
    bool may;

    RON_ASSERT(log->collecting == NULL);
    if (log->options.keys == NULL)
        return;
    log_lock(log);
    may = log->collected_count < LOG_BUILDERS;
    if (may)
        log->collected_count++;
    log_unlock(log);
    if (!may) /* the indexer is behind */
        return;
    builder = log_builder_take(log);
    if (builder != NULL)
        io_index_builder_reset(builder, &not_known, log_index_keys_max(log, 0));
    else if (io_index_builder_new(&not_known, log_index_keys_max(log, 0), &builder, NULL) ==
                 RON_ERR_OK &&
             log->direct)
        io_index_builder_pass_cache(builder);
    log->collecting = builder;
    if (builder != NULL)
        return;
    log_lock(log);
    log->collected_count--;
    log_unlock(log);
}

/* What is there now may not be what was summed when it was appended: no key is taken from a body
 * that fails its sum. */
static bool collect_all(struct io_log *log, const struct log_group *group)
{
    for (size_t at = 0; at < group->size;) {
        const struct ron_slice bytes = ron_slice_of(group->bytes + at, group->size - at);
        struct io_frame_state state = {.salt = log->salt};
        struct io_frame frame;
        const char *why;

        if (io_frame_read_first(bytes, &state, &frame, &why) != IO_FRAME_VALID ||
            log_index_add(log, log->collecting, &frame, group->offset + at, NULL) != RON_ERR_OK)
            return false;
        at += (size_t)io_frame_size(frame.body.size);
    }
    return true;
}

void log_collect(struct io_log *log, const struct log_group *group)
{
    if (log->collecting == NULL || collect_all(log, group))
        return;
    log_builder_give(log, RON_TAKE(log->collecting));
    log_lock(log);
    log->collected_count--;
    log_unlock(log);
}

void log_collect_end(struct io_log *log, struct log_segment *segment)
{
    segment->keys = RON_TAKE(log->collecting);
}

struct io_index_builder *log_collected(struct io_log *log, struct log_segment *segment)
{
    struct io_index_builder *builder;

    log_lock(log);
    builder = RON_TAKE(segment->keys);
    if (builder != NULL) {
        RON_ASSERT(log->collected_count > 0);
        log->collected_count--;
    }
    log_unlock(log);
    return builder;
}

struct io_index_builder *log_builder_take(struct io_log *log)
{
    struct io_index_builder *builder = NULL;

    log_lock(log);
    if (log->builders_count > 0)
        builder = log->builders[--log->builders_count];
    log_unlock(log);
    return builder;
}

void log_builder_give(struct io_log *log, struct io_index_builder *builder)
{
    const struct io_index_of nothing = {0};

    if (builder == NULL)
        return;
    io_index_builder_reset(builder, &nothing, 0); /* and what a panic left of its file is gone */
    log_lock(log);
    if (log->builders_count < LOG_BUILDERS)
        log->builders[log->builders_count++] = RON_TAKE(builder);
    log_unlock(log);
    (void)io_index_builder_free(builder);
}

void log_builders_fini(struct io_log *log)
{
    struct io_index_builder *builder;

    (void)io_index_builder_free(RON_TAKE(log->collecting));
    while ((builder = log_builder_take(log)) != NULL)
        (void)io_index_builder_free(builder);
}
