/*
 * strands.c - lanes and the tasks that run them. See strands.h.
 *
 * One lock, held for a few instructions an item. Lanes lie in a fixed array; those with work and
 * not running form a first-in-first-out ring of turns ("ready"). Items are nodes of one pool, so
 * memory is bounded by the set's items and not by lanes times capacity.
 *
 * A lane is IDLE (empty), READY (in the ring once) or RUNNING (with one task); only the task that
 * took it out of the ring moves it on. That is the whole proof of "one thread at a time".
 */
#include "rt/strands.h"

#include "base/assert.h"
#include "base/mem.h"
#include "rt/lock.h"
#include "rt/registry.h"

#define STRANDS_MAGIC 0x57a4d500u
#define NONE          UINT32_MAX

enum lane_state { LANE_FREE, LANE_IDLE, LANE_READY, LANE_RUNNING };

struct node {
    void *item;
    uint32_t next; /* in its lane, or in the free list */
};

struct lane {
    void *object;
    enum lane_state state;
    bool closing;
    unsigned weight;
    uint32_t generation; /* odd while open */
    uint32_t first, last, items_count;
    uint32_t next; /* in the ready ring, or in the free list */
};

struct rt_strands {
    struct rt_lock lock;
    uint32_t magic;
    struct rt_strands_options options;
    struct rt_cond ready_cond; /* tasks wait for a ready lane */
    struct rt_cond idle_cond;  /* drain and close_until wait for lanes to come to rest */
    bool draining RON_GUARDED_BY(strands);
    bool stopping RON_GUARDED_BY(strands);
    uint32_t tasks_count RON_GUARDED_BY(strands); /* bodies that run */
    uint32_t tasks_waiting RON_GUARDED_BY(strands);
    uint32_t idle_waiting RON_GUARDED_BY(strands);
    uint32_t ready_first RON_GUARDED_BY(strands);
    uint32_t ready_last RON_GUARDED_BY(strands);
    uint32_t free_lane RON_GUARDED_BY(strands);
    uint32_t free_node RON_GUARDED_BY(strands);
    struct rt_strands_stats stats RON_GUARDED_BY(strands);
    struct lane *lanes RON_GUARDED_BY(strands);
    struct node *nodes RON_GUARDED_BY(strands);
};

static void strands_lock(struct rt_strands *strands) RON_LOCKS(strands)
{
    RON_ASSERT(strands->magic == STRANDS_MAGIC);
    rt_lock_take(&strands->lock);
}

static void strands_unlock(struct rt_strands *strands) RON_UNLOCKS(strands)
{
    rt_lock_drop(&strands->lock);
}

static struct lane *find_lane(const struct rt_strands *strands, struct rt_lane_id id)
    RON_NEEDS(strands)
{
    uint32_t index = (uint32_t)id.value;
    struct lane *lane;

    if (index >= strands->options.lanes_max)
        return NULL;
    lane = &strands->lanes[index];
    return lane->state != LANE_FREE && lane->generation == id.value >> 32 ? lane : NULL;
}

static uint32_t index_of(const struct rt_strands *strands, const struct lane *lane)
    RON_NEEDS(strands)
{
    return (uint32_t)(lane - strands->lanes);
}

static void push_ready(struct rt_strands *strands, struct lane *lane) RON_NEEDS(strands)
{
    uint32_t index = index_of(strands, lane);

    RON_ASSERT(lane->items_count > 0);
    lane->state = LANE_READY;
    lane->next = NONE;
    if (strands->ready_last == NONE)
        strands->ready_first = index;
    else
        strands->lanes[strands->ready_last].next = index;
    strands->ready_last = index;
    strands->stats.lanes_ready_count++;
    if (strands->tasks_waiting > 0)
        rt_cond_signal(&strands->ready_cond);
}

static struct lane *pop_ready(struct rt_strands *strands) RON_NEEDS(strands)
{
    struct lane *lane = &strands->lanes[strands->ready_first];

    RON_ASSERT(strands->ready_first != NONE);
    RON_ASSERT(lane->state == LANE_READY);
    strands->ready_first = lane->next;
    if (strands->ready_first == NONE)
        strands->ready_last = NONE;
    strands->stats.lanes_ready_count--;
    return lane;
}

static void free_lane(struct rt_strands *strands, struct lane *lane) RON_NEEDS(strands)
{
    RON_ASSERT(lane->items_count == 0);
    lane->state = LANE_FREE;
    lane->object = NULL;
    lane->generation++;
    lane->next = strands->free_lane;
    strands->free_lane = index_of(strands, lane);
    strands->stats.lanes_count--;
}

/* A lane without items has come to rest. */
static void rest(struct rt_strands *strands, struct lane *lane) RON_NEEDS(strands)
{
    lane->state = LANE_IDLE;
    if (lane->closing)
        free_lane(strands, lane);
    if (strands->idle_waiting > 0)
        rt_cond_broadcast(&strands->idle_cond);
}

static void push_item(struct rt_strands *strands, struct lane *lane, void *item) RON_NEEDS(strands)
{
    uint32_t index = strands->free_node;

    RON_ASSERT(index != NONE);
    strands->free_node = strands->nodes[index].next;
    strands->nodes[index] = (struct node){.item = item, .next = NONE};
    if (lane->items_count == 0)
        lane->first = index;
    else
        strands->nodes[lane->last].next = index;
    lane->last = index;
    lane->items_count++;
    strands->stats.items_count++;
}

static void *pop_item(struct rt_strands *strands, struct lane *lane) RON_NEEDS(strands)
{
    uint32_t index = lane->first;
    void *item = RON_TAKE(strands->nodes[index].item);

    RON_ASSERT(lane->items_count > 0);
    RON_ASSERT(item != NULL);
    lane->first = strands->nodes[index].next;
    lane->items_count--;
    strands->nodes[index].next = strands->free_node;
    strands->free_node = index;
    strands->stats.items_count--;
    return item;
}

enum ron_err rt_lane_open(struct rt_strands *strands, void *object, unsigned weight,
                          struct rt_lane_id *ret_id, struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;

    RON_ASSERT(weight >= 1);
    RON_ASSERT(weight <= RT_LANE_WEIGHT_MAX);
    strands_lock(strands);
    if (strands->draining) {
        err = RON_ERR_CANCELED;
    } else if (strands->free_lane == NONE) {
        err = RON_ERR_BUSY;
        strands->stats.rejected_count++;
    } else {
        uint32_t index = strands->free_lane;
        struct lane *lane = &strands->lanes[index];

        strands->free_lane = lane->next;
        *lane = (struct lane){
            .object = object,
            .state = LANE_IDLE,
            .weight = weight,
            .generation = lane->generation | 1, /* never 0: no id is 0 */
        };
        strands->stats.lanes_count++;
        ret_id->value = (uint64_t)lane->generation << 32 | index;
    }
    strands_unlock(strands);
    if (err == RON_ERR_BUSY)
        return ron_fail(reterr, err, "strands %s: all %u lanes are open", strands->options.name,
                        strands->options.lanes_max);
    if (err != RON_ERR_OK)
        return ron_fail(reterr, err, "strands %s are draining", strands->options.name);
    return RON_ERR_OK;
}

static enum ron_err not_found(const struct rt_strands *strands, struct ron_errinfo *reterr)
{
    return ron_fail(reterr, RON_ERR_NOT_FOUND, "strands %s: no such lane", strands->options.name);
}

/* False when there is no such open lane. */
static bool begin_close(struct rt_strands *strands, struct rt_lane_id id) RON_NEEDS(strands)
{
    struct lane *lane = find_lane(strands, id);

    if (lane == NULL || lane->closing)
        return false;
    lane->closing = true;
    if (lane->state == LANE_IDLE)
        free_lane(strands, lane);
    return true;
}

enum ron_err rt_lane_close(struct rt_strands *strands, struct rt_lane_id id,
                           struct ron_errinfo *reterr)
{
    bool found;

    strands_lock(strands);
    found = begin_close(strands, id);
    strands_unlock(strands);
    return found ? RON_ERR_OK : not_found(strands, reterr);
}

enum ron_err rt_lane_close_until(struct rt_strands *strands, struct rt_lane_id id,
                                 struct rt_deadline deadline, struct ron_errinfo *reterr)
{
    bool found, woken = true, gone;

    rt_assert_no_lock_held();
    strands_lock(strands);
    found = begin_close(strands, id);
    while (found && find_lane(strands, id) != NULL && woken) {
        strands->idle_waiting++;
        woken = rt_cond_wait(&strands->idle_cond, &strands->lock, deadline.at_ns);
        strands->idle_waiting--;
    }
    gone = find_lane(strands, id) == NULL;
    strands_unlock(strands);
    if (!found)
        return not_found(strands, reterr);
    if (!gone)
        return ron_fail(reterr, RON_ERR_TIMEOUT, "strands %s: a lane is not empty in time",
                        strands->options.name);
    return RON_ERR_OK;
}

enum ron_err rt_lane_send(struct rt_strands *strands, struct rt_lane_id id, void *item,
                          struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;
    struct lane *lane;

    RON_ASSERT(item != NULL);
    strands_lock(strands);
    lane = find_lane(strands, id);
    if (strands->draining) {
        err = RON_ERR_CANCELED;
    } else if (lane == NULL || lane->closing) {
        err = RON_ERR_NOT_FOUND;
    } else if (lane->items_count == strands->options.lane_capacity || strands->free_node == NONE) {
        err = RON_ERR_BUSY;
        strands->stats.rejected_count++;
    } else {
        push_item(strands, lane, item);
        if (lane->state == LANE_IDLE)
            push_ready(strands, lane);
    }
    strands_unlock(strands);
    switch ((int)err) {
    case RON_ERR_OK:
        return RON_ERR_OK;
    case RON_ERR_NOT_FOUND:
        return not_found(strands, reterr);
    case RON_ERR_BUSY:
        return ron_fail(reterr, err, "strands %s: the lane or the set is full",
                        strands->options.name);
    default:
        return ron_fail(reterr, err, "strands %s are draining", strands->options.name);
    }
}

/* What a task has in hand. */
struct turn {
    struct rt_strands *strands;
    struct lane *lane; /* NULL between turns */
    void *object;
    void *item;
    unsigned left_count; /* items this turn may still handle */
};

/* Give the lane back after an item, or keep it for the next item of its turn. */
static void advance(struct rt_strands *strands, struct turn *turn) RON_NEEDS(strands)
{
    struct lane *lane = turn->lane;

    RON_ASSERT(lane->state == LANE_RUNNING);
    if (lane->items_count > 0 && turn->left_count > 0 && !strands->stopping)
        return;
    turn->lane = NULL;
    strands->stats.lanes_running_count--;
    if (lane->items_count > 0)
        push_ready(strands, lane);
    else
        rest(strands, lane);
}

/* Take the next item, waiting for one; false when the set is stopping. */
static bool next_item(struct rt_strands *strands, struct turn *turn) RON_BLOCKS
{
    bool stopping;

    strands_lock(strands);
    if (turn->lane != NULL) {
        strands->stats.handled_count++;
        advance(strands, turn);
    }
    while (turn->lane == NULL && strands->ready_first == NONE && !strands->stopping) {
        strands->tasks_waiting++;
        (void)rt_cond_wait(&strands->ready_cond, &strands->lock, SH_NEVER);
        strands->tasks_waiting--;
    }
    stopping = strands->stopping;
    if (!stopping) {
        if (turn->lane == NULL) {
            turn->lane = pop_ready(strands);
            turn->lane->state = LANE_RUNNING;
            turn->left_count = turn->lane->weight;
            strands->stats.lanes_running_count++;
        }
        turn->object = turn->lane->object;
        turn->item = pop_item(strands, turn->lane);
        turn->left_count--;
    }
    strands_unlock(strands);
    return !stopping;
}

/* The end of a body, also by a panic: the item in hand is answered, the lane goes on elsewhere. */
static void leave(void *argument)
{
    struct turn *turn = argument;
    struct rt_strands *strands = turn->strands;

    if (turn->item != NULL)
        strands->options.drop(strands->options.context, turn->object, RON_TAKE(turn->item),
                              RON_ERR_INTERNAL);
    strands_lock(strands);
    if (turn->lane != NULL) {
        strands->stats.dropped_count++;
        turn->left_count = 0;
        advance(strands, turn);
    }
    strands->tasks_count--;
    strands_unlock(strands);
}

static enum ron_err strands_main(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct rt_strands *strands = argument;
    struct turn turn = {.strands = strands};
    struct rt_cleanup cleanup;

    (void)task;
    strands_lock(strands);
    strands->tasks_count++;
    strands_unlock(strands);
    rt_cleanup_push(&cleanup, leave, &turn);
    while (next_item(strands, &turn)) {
        strands->options.handle(strands->options.context, turn.object, turn.item);
        turn.item = NULL;
    }
    rt_cleanup_pop(&cleanup, true);
    return RON_ERR_OK;
}

static void stop(void *argument)
{
    struct rt_strands *strands = argument;

    strands_lock(strands);
    strands->draining = true;
    strands->stopping = true;
    rt_cond_broadcast(&strands->ready_cond);
    strands_unlock(strands);
}

enum ron_err rt_strands_drain(struct rt_strands *strands, struct rt_deadline deadline,
                              struct ron_errinfo *reterr)
{
    bool woken = true;
    uint32_t left_count;

    rt_assert_no_lock_held();
    strands_lock(strands);
    strands->draining = true;
    while (strands->stats.items_count + strands->stats.lanes_running_count > 0 && woken) {
        strands->idle_waiting++;
        woken = rt_cond_wait(&strands->idle_cond, &strands->lock, deadline.at_ns);
        strands->idle_waiting--;
    }
    left_count = strands->stats.items_count + strands->stats.lanes_running_count;
    strands_unlock(strands);
    if (left_count > 0)
        return ron_fail(reterr, RON_ERR_TIMEOUT, "strands %s: %u items are not handled in time",
                        strands->options.name, left_count);
    return RON_ERR_OK;
}

void rt_strands_get_stats(struct rt_strands *strands, struct rt_strands_stats *ret_stats)
{
    strands_lock(strands);
    *ret_stats = strands->stats;
    ret_stats->items_max = strands->options.items_max;
    strands_unlock(strands);
}

/* Lists of free lanes and nodes, in order. */
static void link_all(struct rt_strands *strands) RON_NEEDS(strands)
{
    for (uint32_t i = strands->options.lanes_max; i-- > 0;)
        strands->lanes[i].next = i + 1 < strands->options.lanes_max ? i + 1 : NONE;
    for (uint32_t i = strands->options.items_max; i-- > 0;)
        strands->nodes[i].next = i + 1 < strands->options.items_max ? i + 1 : NONE;
    strands->free_lane = 0;
    strands->free_node = 0;
    strands->ready_first = NONE;
    strands->ready_last = NONE;
}

static enum ron_err spawn_all(struct rt_strands *strands, struct rt_supervisor *supervisor,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct rt_task_options options = {
        .kind = strands->options.kind,
        .name = strands->options.name,
        .owner = strands->options.owner,
        .fn = strands_main,
        .wake = stop,
        .argument = strands,
    };
    struct rt_task *tasks[RT_STRAND_THREADS_MAX];
    enum ron_err err = RON_ERR_OK, result;
    uint32_t count = 0;

    while (count < strands->options.threads_count && err == RON_ERR_OK) {
        err = rt_task_spawn(supervisor, &options, &tasks[count], reterr);
        count += err == RON_ERR_OK ? 1 : 0;
    }
    if (err == RON_ERR_OK)
        return RON_ERR_OK;
    stop(strands);
    for (uint32_t i = 0; i < count; i++) {
        rt_task_cancel(tasks[i]); /* it has no item and waits for none: it ends at once */
        RON_MUST_ZERO(rt_task_join(tasks[i], RT_DEADLINE_NEVER, &result, NULL));
    }
    return err;
}

static enum ron_err strands_start(struct rt_strands *strands, struct rt_supervisor *supervisor,
                                  struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct rt_registry_entry entry = {
        .object = strands,
        .kind = RT_KIND_STRANDS,
        .name = strands->options.name,
        .policy = "full lane rejects",
        .owner = strands->options.owner,
        .capacity = strands->options.lanes_max,
    };
    enum ron_err err = rt_registry_add(&entry, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = spawn_all(strands, supervisor, reterr);
    if (err != RON_ERR_OK)
        rt_registry_remove(strands);
    return err;
}

static void strands_fini(struct rt_strands *strands)
{
    rt_cond_fini(&strands->idle_cond);
    rt_cond_fini(&strands->ready_cond);
    rt_lock_fini(&strands->lock);
}

static void check_options(const struct rt_strands_options *options)
{
    RON_ASSERT(options->handle != NULL);
    RON_ASSERT(options->drop != NULL);
    RON_ASSERT(options->threads_count > 0);
    RON_ASSERT(options->threads_count <= RT_STRAND_THREADS_MAX);
    RON_ASSERT(options->lanes_max > 0);
    RON_ASSERT(options->lanes_max <= RT_LANES_MAX);
    RON_ASSERT(options->lane_capacity > 0);
    RON_ASSERT(options->items_max > 0);
    RON_ASSERT(options->items_max <= RT_LANE_ITEMS_MAX);
}

enum ron_err rt_strands_new(const struct rt_strands_options *options,
                            struct rt_supervisor *supervisor, struct rt_strands **ret_strands,
                            struct ron_errinfo *reterr)
{
    struct rt_strands *strands = ron_mem_alloc(sizeof(*strands));
    struct lane *lanes = ron_mem_alloc_array(options->lanes_max, sizeof(*lanes));
    struct node *nodes = ron_mem_alloc_array(options->items_max, sizeof(*nodes));
    enum ron_err err;

    rt_assert_no_lock_held();
    check_options(options);
    if (strands == NULL || lanes == NULL || nodes == NULL) {
        err = ron_fail(reterr, RON_ERR_NO_MEMORY, "strands %s of %u lanes", options->name,
                       options->lanes_max);
    } else {
        rt_lock_init(&strands->lock, options->name, RON_RANK_strands);
        rt_cond_init(&strands->ready_cond, options->name);
        rt_cond_init(&strands->idle_cond, options->name);
        strands->magic = STRANDS_MAGIC;
        strands->options = *options;
        strands_lock(strands);
        strands->lanes = lanes;
        strands->nodes = nodes;
        link_all(strands);
        strands_unlock(strands);
        err = strands_start(strands, supervisor, reterr);
        if (err != RON_ERR_OK)
            strands_fini(strands);
    }
    if (err != RON_ERR_OK) {
        ron_mem_free(nodes);
        ron_mem_free(lanes);
        ron_mem_free(strands);
        return err;
    }
    *ret_strands = strands;
    return RON_ERR_OK;
}

/* One item of any lane, or NULL when none is left. */
static void *take_any(struct rt_strands *strands, void **ret_object)
{
    void *item = NULL;

    strands_lock(strands);
    RON_ASSERT(strands->tasks_count == 0);
    if (strands->ready_first != NONE) {
        struct lane *lane = &strands->lanes[strands->ready_first];

        *ret_object = lane->object;
        item = pop_item(strands, lane);
        strands->stats.dropped_count++;
        if (lane->items_count == 0)
            rest(strands, pop_ready(strands));
    }
    strands_unlock(strands);
    return item;
}

struct rt_strands *rt_strands_free(struct rt_strands *strands)
{
    struct lane *lanes;
    struct node *nodes;
    void *item, *object = NULL;

    if (strands == NULL)
        return NULL;
    RON_ASSERT(strands->magic == STRANDS_MAGIC);
    rt_registry_remove(strands); /* first: nobody looks at it any more */
    while ((item = take_any(strands, &object)) != NULL)
        strands->options.drop(strands->options.context, object, item, RON_ERR_CANCELED);
    strands_lock(strands);
    RON_ASSERT(strands->stats.items_count == 0);
    RON_ASSERT(strands->idle_waiting == 0);
    lanes = RON_TAKE(strands->lanes);
    nodes = RON_TAKE(strands->nodes);
    strands->magic = ~STRANDS_MAGIC;
    strands_unlock(strands);
    strands_fini(strands);
    ron_mem_free(nodes);
    ron_mem_free(lanes);
    return ron_mem_free(strands);
}
