/*
 * slots.c - commit slots: a place in the pipeline from sequencing to the answer, with the memory of
 * a batch.
 *
 * A slot is in hand before the core is asked, so that no seq is used for what cannot be committed.
 * Both sides count up only; slots of a class come back in the order they were taken, because the
 * Committer keeps the order. So two counters are all they share, and no lock; which of the free
 * ones is taken is the Sequencer's own business.
 */
#include "base/mem.h"
#include "ledger/service_impl.h"

static enum ron_err class_init(struct slot_class *class, uint32_t class_index,
                               struct ron_errinfo *reterr)
{
    const uint32_t count = class->options.count;

    class->slots = ron_mem_alloc_array(count, sizeof(class->slots[0]));
    class->taken = ron_mem_alloc_array(count, sizeof(class->taken[0]));
    class->free = ron_mem_alloc_array(count, sizeof(class->free[0]));
    if (class->slots == NULL || class->taken == NULL || class->free == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%u commit slots", count);
    for (uint32_t i = 0; i < count; i++) {
        enum ron_err err = ledger_batch_init(&class->slots[i].batch, class->options.entries_max,
                                             class->options.ext_max, reterr);

        if (err != RON_ERR_OK)
            return err;
        class->slots[i].class_index = class_index;
        class->free[class->free_count++] = i;
    }
    return RON_ERR_OK;
}

enum ron_err slots_init(struct slots *slots, const struct ledger_service_options *options,
                        struct ron_errinfo *reterr)
{
    *slots = (struct slots){.count_max = options->commit_max,
                            .bytes_max = options->queue_bytes_max};
    slots->taken_ns = ron_mem_alloc_array(options->commit_max, sizeof(slots->taken_ns[0]));
    if (slots->taken_ns == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%u commit slots", options->commit_max);
    for (uint32_t i = 0; i < LEDGER_SLOT_CLASSES_MAX; i++) {
        struct slot_class *class = &slots->classes[i];

        enum ron_err err = RON_ERR_OK;

        class->options = options->classes[i];
        if (class->options.count > 0)
            err = class_init(class, i, reterr);
        if (err != RON_ERR_OK)
            return err;
    }
    return RON_ERR_OK;
}

void slots_fini(struct slots *slots)
{
    for (uint32_t i = 0; i < LEDGER_SLOT_CLASSES_MAX; i++) {
        struct slot_class *class = &slots->classes[i];

        for (uint32_t j = 0; class->slots != NULL && j < class->options.count; j++)
            ledger_batch_fini(&class->slots[j].batch);
        class->slots = ron_mem_free(class->slots);
        class->taken = ron_mem_free(class->taken);
        class->free = ron_mem_free(class->free);
    }
    slots->taken_ns = ron_mem_free(slots->taken_ns);
}

/* What the core will ask of the batch (core.c, check_frame). */
static uint32_t entries_needed(const struct ledger_command *command)
{
    switch (command->kind) {
    case LEDGER_COMMAND_EXPIRE:
        return RON_BATCH_ENTRIES_MAX;
    case LEDGER_COMMAND_OPEN:
        return command->open.count / 3 + 2;
    case LEDGER_COMMAND_INGEST:
    case LEDGER_COMMAND_ASSET:
    case LEDGER_COMMAND_LIMITS:
    case LEDGER_COMMAND_INTENTS:
    case LEDGER_COMMAND_SLICE:
    case LEDGER_COMMAND_ABANDON:
    default:
        return command->ops_count + 2;
    }
}

/* At most so many bytes of extensions. */
static uint64_t ext_needed(const struct ledger_command *command)
{
    enum { HEADS = 4 * 3, TERMS = LEDGER_ID_SIZE + 8 };
    uint64_t size = LEDGER_EXT_SIZE_MAX; /* the ledger's own entry, or any one */

    if (command->ops_count == 1)
        return size;
    if (command->bare_ops != NULL) /* as below */
        return size + (uint64_t)command->ops_count * (HEADS + 1);
    for (uint32_t i = 0; i < command->ops_count; i++) {
        const struct ledger_op *op = &command->ops[i];

        size += HEADS + (op->kind == LEDGER_HOLD ? (size_t)TERMS : 0) + op->memo.size +
                op->meta.size + op->stream.size + 1 + op->ref.size;
    }
    return size;
}

bool slots_fit(const struct slots *slots, const struct ledger_request *request)
{
    const uint32_t entries = entries_needed(&request->command);
    const uint64_t ext = ext_needed(&request->command);

    for (uint32_t i = 0; i < LEDGER_SLOT_CLASSES_MAX; i++) {
        const struct ledger_slot_class *options = &slots->classes[i].options;

        if (options->count > 0 && entries <= options->entries_max && ext <= options->ext_max)
            return request_weight(request) <= slots->bytes_max;
    }
    return false;
}

static uint32_t next_place(const struct slot_class *class, uint32_t place)
{
    return place + 1 < class->options.count ? place + 1 : 0;
}

/* What the Committer returned is free again. */
static void regain(struct slot_class *class)
{
    const uint32_t returned = rt_atomic_load_u32(&class->returned_count);

    for (; class->regained_count != returned; class->regained_count++) {
        RON_ASSERT(class->free_count < class->options.count);
        class->free[class->free_count++] = class->taken[class->taken_first];
        class->taken_first = next_place(class, class->taken_first);
    }
}

/* Those that will be taken next: the Committer had them. */
static void look_ahead(const struct slot_class *class)
{
    enum { AHEAD = 3, STEPS = 2 };

    for (uint32_t step = 0; step < STEPS; step++) {
        const uint32_t behind = 1 + AHEAD * (STEPS - step);

        if (behind <= class->free_count)
            ledger_batch_prefetch(&class->slots[class->free[class->free_count - behind]].batch,
                                  step);
    }
}

struct ledger_slot *slots_find(struct slots *slots, const struct ledger_request *request)
{
    const uint32_t entries = entries_needed(&request->command);
    const uint64_t ext = ext_needed(&request->command);
    const uint64_t bytes = rt_counter_load(&slots->taken_bytes) -
                           rt_counter_load(&slots->returned_bytes);

    if (slots_in_flight(slots) >= slots->count_max ||
        bytes + request_weight(request) > slots->bytes_max)
        return NULL;
    for (uint32_t i = 0; i < LEDGER_SLOT_CLASSES_MAX; i++) {
        struct slot_class *class = &slots->classes[i];
        struct ledger_slot *slot;

        if (class->options.count == 0 || entries > class->options.entries_max ||
            ext > class->options.ext_max)
            continue;
        regain(class);
        if (class->free_count == 0)
            continue;
        slot = &class->slots[class->free[class->free_count - 1]];
        RON_ASSERT(!slot->batch.pending);
        look_ahead(class);
        return slot;
    }
    return NULL;
}

void slots_take(struct slots *slots, struct ledger_request *request, struct ledger_slot *slot,
                uint64_t now_ns)
{
    const uint64_t taken = rt_counter_load(&slots->taken_count);

    rt_counter_store(&slots->taken_ns[taken % slots->count_max], now_ns);
    if (slot != NULL) {
        struct slot_class *class = &slots->classes[slot->class_index];
        const uint32_t place = class->free[--class->free_count];

        RON_ASSERT(slot == &class->slots[place]);
        class->taken[class->taken_end] = place;
        class->taken_end = next_place(class, class->taken_end);
    }
    request->state.slot = slot;
    rt_counter_add_own(&slots->taken_bytes, request_weight(request));
    rt_counter_add_own(&slots->taken_count, 1);
}

void slots_return(struct slots *slots, uint32_t class_index, uint64_t bytes)
{
    if (class_index < LEDGER_SLOT_CLASSES_MAX) {
        struct slot_class *class = &slots->classes[class_index];

        rt_atomic_store_u32(&class->returned_count, class->returned_count.value + 1);
    }
    rt_counter_add_own(&slots->returned_bytes, bytes);
    rt_atomic_store_u64(&slots->returned_count, rt_counter_load(&slots->returned_count) + 1);
}

/* The two counts are read one after the other: returned first, so the difference is never below
 * zero; to the Sequencer, who takes, it is exact or too high. */
uint32_t slots_in_flight(const struct slots *slots)
{
    const uint64_t returned = rt_atomic_load_u64(&slots->returned_count);

    return (uint32_t)(rt_counter_load(&slots->taken_count) - returned);
}

uint64_t slots_bytes(const struct slots *slots)
{
    const uint64_t returned = rt_atomic_load_u64(&slots->returned_bytes);

    return rt_counter_load(&slots->taken_bytes) - returned;
}

uint64_t slots_lag_ns(const struct slots *slots, uint64_t now_ns)
{
    const uint64_t returned = rt_counter_load(&slots->returned_count);
    uint64_t taken_ns;

    if (rt_counter_load(&slots->taken_count) == returned)
        return 0;
    taken_ns = rt_counter_load(&slots->taken_ns[returned % slots->count_max]);
    return now_ns > taken_ns ? now_ns - taken_ns : 0;
}

/* --- Pressure ----------------------------------------------------------------------------------
 */

void service_check_pressure(struct ledger_service *service)
{
    const uint64_t in_flight = slots_in_flight(&service->slots);

    if (rt_atomic_load_u32(&service->slots_short) != 0 &&
        in_flight * 5 < service->slots.count_max && !service_is_behind(service, rt_now_ns()) &&
        rt_atomic_cas_u32(&service->slots_short, 1, 0))
        (void)rt_lifecycle_clear(service->lifecycle, CAUSE_COMMIT_HIGH);
}

bool service_is_behind(const struct ledger_service *service, uint64_t now_ns)
{
    return service->options.lag_ms_max != 0 &&
           slots_lag_ns(&service->slots, now_ns) / RT_NS_PER_MS > service->options.lag_ms_max;
}

void service_tell_pressure(struct ledger_service *service)
{
    ledger_count(&service->metrics, service->metrics.commit_busy);
    if (rt_atomic_load_u32(&service->slots_short) == 0) {
        (void)rt_lifecycle_raise(service->lifecycle, CAUSE_COMMIT_HIGH);
        rt_atomic_store_u32(&service->slots_short, 1);
        rt_log(service->options.log, RT_LOG_WARN,
               "no commit slot is free, or the disk is behind: requests are refused",
               rt_log_u64("in_flight", slots_in_flight(&service->slots)));
    }
    service_check_pressure(service); /* the Committer may have done its last batch before that */
}
