/*
 * log_walk.c - a whole segment, under a policy for damage. See log_walk.h, log_format.h.
 */
#include "io/log_walk.h"

static enum ron_err damaged(struct log_walk *walk, const struct log_scan *scan, const char *why,
                            struct ron_errinfo *reterr)
{
    walk->damage_offset = scan->offset;
    walk->damage_why = why;
    return ron_fail(reterr, RON_ERR_WAL_CORRUPT,
                    "%s at byte %llu: %s: restore the file from a copy, or see `ron log check`",
                    io_file_path(scan->file), (unsigned long long)scan->offset, why);
}

/* Behind damage: go on at the next sound frame. False when there is none. */
static enum ron_err skip(struct log_walk *walk, struct log_scan *scan, bool *ret_found,
                         struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t found = 0;
    enum ron_err err = log_scan_search(scan, scan->offset + IO_FRAME_ALIGN, walk->last_seen, &found,
                                       reterr);

    if (err != RON_ERR_OK)
        return err;
    walk->skipped_count++;
    walk->skipped_bytes += found - scan->offset;
    if (found < scan->size)
        log_scan_jump(scan, found);
    *ret_found = found < scan->size;
    return RON_ERR_OK;
}

static void take(struct log_walk *walk, const struct log_scan *scan, const struct io_frame *frame,
                 bool jumped)
{
    const bool is_end = frame->type == IO_FRAME_COMMIT || frame->type == IO_FRAME_SEAL;

    walk->last_seen = frame->index;
    if (jumped && !is_end) { /* what follows the damage ends here, unless a commit comes */
        walk->end.offset = scan->frame_offset;
        walk->end.state = (struct io_frame_state){frame->index - 1, frame->index, frame->epoch,
                                                  scan->state.salt};
    }
    if (!is_end) {
        walk->records_count++;
        return;
    }
    walk->last_offset = walk->end.offset;
    walk->end = (struct log_end){.state = scan->state,
                                 .link = scan->link,
                                 .offset = scan->offset,
                                 .sealed = frame->type == IO_FRAME_SEAL};
}

/* The scan cannot go on: is this the end, and may it be? */
static enum ron_err stop(struct log_walk *walk, struct log_scan *scan, bool last,
                         enum io_log_damage_policy policy, const char *why, bool *ret_go_on,
                         struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err;

    *ret_go_on = false;
    err = log_scan_tail(scan, walk->end.offset, walk->end.state.index + 1, &walk->tail, reterr);
    if (err != RON_ERR_OK || (last && walk->tail.proof_offset == UINT64_MAX))
        return err;
    if (policy != IO_LOG_SKIP)
        return damaged(walk, scan, why, reterr);
    return skip(walk, scan, ret_go_on, reterr);
}

static enum ron_err go(struct log_walk *walk, struct log_scan *scan, bool last,
                       enum io_log_damage_policy policy, log_walk_fn *fn, void *context,
                       struct ron_errinfo *reterr) RON_BLOCKS
{
    bool go_on = true, jumped = false;

    while (go_on && !walk->end.sealed) {
        const char *why = last ? "damage before the tail" : "the segment ends without its seal";
        enum io_frame_verdict verdict = IO_FRAME_BAD;
        struct io_frame frame;
        enum ron_err err = log_scan_next(scan, &verdict, &frame, &why, reterr);

        if (err == RON_ERR_OK && verdict == IO_FRAME_VALID) {
            if (fn != NULL && frame.type <= IO_FRAME_TYPE_MAX)
                err = fn(context, &frame, scan->frame_offset, reterr);
            take(walk, scan, &frame, jumped);
            jumped = false;
        } else if (err == RON_ERR_OK) {
            err = stop(walk, scan, last, policy, why, &go_on, reterr);
            jumped = true;
        }
        if (err != RON_ERR_OK)
            return err;
    }
    return RON_ERR_OK;
}

enum ron_err log_walk_on(struct log_scan *scan, bool last, enum io_log_damage_policy policy,
                         log_walk_fn *fn, void *context, struct log_walk *walk,
                         struct ron_errinfo *reterr)
{
    *walk = (struct log_walk){
        .file_size = scan->size,
        .end = {.state = scan->state, .link = scan->link, .offset = scan->offset},
        .last_offset = scan->offset,
        .tail = {.end = scan->offset},
        .last_seen = scan->state.index,
    };
    return go(walk, scan, last, policy, fn, context, reterr);
}

enum ron_err log_walk(struct io_file *file, const struct io_segment_head *head, bool last,
                      enum io_log_damage_policy policy, log_walk_fn *fn, void *context,
                      struct log_walk *walk, struct ron_errinfo *reterr)
{
    struct log_scan scan;
    enum ron_err err = log_scan_init(&scan, file, head, reterr);

    *walk = (struct log_walk){0};
    if (err == RON_ERR_OK)
        err = log_walk_on(&scan, last, policy, fn, context, walk, reterr);
    log_scan_fini(&scan);
    return err;
}
