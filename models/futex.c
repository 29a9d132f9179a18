/*
 * futex.c - the mutexes and conditions of src/rt/thread/sync.c on a modelled futex.
 *
 * The shipped sync.c, the fast paths of shim.h, lock.c and queue.c are compiled once more
 * (futex_names.h) with a scheduling point at each atomic, and run on fibers. In every schedule: one
 * holder at a time, nobody sleeps for ever, a mutex may be freed by whoever takes it last. Memory
 * order is not modelled: that is TSan's business, which sees these runs too.
 */
#include "base/mem.h"
#include "models/support.h"
#include "rt/queue.h"
#include "rt/registry.h"

enum { FIBERS_MAX = 4 };

static const char *const names[] = {"one", "two", "three", "four"};

static void run_all(unsigned count, void (*const fns[])(void *), void *argument)
{
    struct sh_thread *threads[FIBERS_MAX];

    RON_ASSERT(count <= FIBERS_MAX);
    for (unsigned i = 0; i < count; i++)
        threads[i] = model_spawn(names[i], fns[i], argument);
    for (unsigned i = 0; i < count; i++)
        model_join(threads[i]);
}

/* ---- futex_lock: one holder at a time; the last one frees the mutex ---- */

struct guarded {
    struct sh_mutex mutex;
    unsigned left; /* turns */
    bool inside;
};

static void turn(void *argument)
{
    struct guarded *guarded = argument;
    bool last;

    sh_mutex_lock(&guarded->mutex);
    RON_ASSERT(!guarded->inside);
    guarded->inside = true;
    sim_point("inside");
    guarded->inside = false;
    last = --guarded->left == 0;
    sh_mutex_unlock(&guarded->mutex);
    if (!last)
        return;
    sh_mutex_fini(&guarded->mutex);
    ron_mem_free(guarded);
}

static void two_turns(void *argument)
{
    turn(argument);
    turn(argument);
}

static void run_lock(unsigned turns_count, unsigned count, void (*const fns[])(void *))
{
    struct guarded *guarded;

    futex_world_open();
    guarded = model_alloc(sizeof(*guarded));
    sh_mutex_init(&guarded->mutex, "guarded");
    guarded->left = turns_count;
    run_all(count, fns, guarded);
    futex_world_close();
}

static void lock_fn(void *argument)
{
    static void (*const fns[])(void *) = {turn, turn, turn};

    (void)argument;
    run_lock(3, 3, fns);
}

static void lock_again_fn(void *argument)
{
    static void (*const fns[])(void *) = {two_turns, two_turns};

    (void)argument;
    run_lock(4, 2, fns);
}

/* ---- futex_gate: a broadcast reaches all, also those with a deadline ---- */

struct gate {
    struct sh_mutex mutex;
    struct sh_cond opened;
    unsigned passed_count;
    bool open;
};

static void pass(void *argument)
{
    struct gate *gate = argument;

    sh_mutex_lock(&gate->mutex);
    while (!gate->open)
        (void)sh_cond_wait(&gate->opened, &gate->mutex, SH_NEVER);
    gate->passed_count++;
    sh_mutex_unlock(&gate->mutex);
}

/* Gives up when the deadline passed, never for another reason, and not if the gate is open. */
static void pass_in_time(void *argument)
{
    struct gate *gate = argument;
    const uint64_t deadline_ns = sh_now_ns() + 1;
    bool in_time = true;

    sh_mutex_lock(&gate->mutex);
    while (!gate->open && in_time)
        in_time = sh_cond_wait(&gate->opened, &gate->mutex, deadline_ns);
    RON_ASSERT(in_time || sh_now_ns() >= deadline_ns);
    gate->passed_count++;
    sim_outcome(gate->open);
    sh_mutex_unlock(&gate->mutex);
}

static void open_gate(void *argument)
{
    struct gate *gate = argument;

    sh_mutex_lock(&gate->mutex);
    gate->open = true;
    sh_cond_broadcast(&gate->opened);
    sh_mutex_unlock(&gate->mutex);
}

static void run_gate(unsigned count, void (*const fns[])(void *))
{
    struct gate *gate;

    futex_world_open();
    gate = model_alloc(sizeof(*gate));
    sh_mutex_init(&gate->mutex, "gate");
    sh_cond_init(&gate->opened, "opened");
    run_all(count, fns, gate);
    RON_ASSERT(gate->passed_count == count - 1);
    sh_cond_fini(&gate->opened);
    sh_mutex_fini(&gate->mutex);
    ron_mem_free(gate);
    futex_world_close();
}

static void gate_fn(void *argument)
{
    static void (*const fns[])(void *) = {pass, pass, open_gate};

    (void)argument;
    run_gate(3, fns);
}

static void gate_time_fn(void *argument)
{
    static void (*const fns[])(void *) = {pass, pass_in_time, open_gate};

    (void)argument;
    run_gate(3, fns);
}

/* ---- futex_tokens: a signal for each token, nothing comes to the rescue ---- */

struct tokens {
    struct sh_mutex mutex;
    struct sh_cond given;
    unsigned count;
    bool signal_before; /* planted: the signal is sent before there is a token, in another turn */
};

static void give(void *argument)
{
    struct tokens *tokens = argument;

    sh_mutex_lock(&tokens->mutex);
    sh_cond_signal(&tokens->given);
    if (tokens->signal_before) {
        sh_mutex_unlock(&tokens->mutex);
        sh_mutex_lock(&tokens->mutex);
    }
    tokens->count++;
    sh_mutex_unlock(&tokens->mutex);
}

/* More signals under one lock than a mutex remembers for after its unlock. */
static void give_three(void *argument)
{
    struct tokens *tokens = argument;

    sh_mutex_lock(&tokens->mutex);
    for (unsigned i = 0; i < 3; i++) {
        tokens->count++;
        sh_cond_signal(&tokens->given);
    }
    sh_mutex_unlock(&tokens->mutex);
}

static void take_one(void *argument)
{
    struct tokens *tokens = argument;

    sh_mutex_lock(&tokens->mutex);
    while (tokens->count == 0)
        (void)sh_cond_wait(&tokens->given, &tokens->mutex, SH_NEVER);
    tokens->count--;
    sh_mutex_unlock(&tokens->mutex);
}

static void run_tokens(bool signal_before, void (*const fns[FIBERS_MAX])(void *))
{
    struct tokens *tokens;

    futex_world_open();
    tokens = model_alloc(sizeof(*tokens));
    sh_mutex_init(&tokens->mutex, "tokens");
    sh_cond_init(&tokens->given, "given");
    tokens->signal_before = signal_before;
    run_all(FIBERS_MAX, fns, tokens);
    RON_ASSERT(tokens->count == 0);
    sh_cond_fini(&tokens->given);
    sh_mutex_fini(&tokens->mutex);
    ron_mem_free(tokens);
    futex_world_close();
}

static void tokens_fn(void *argument)
{
    static void (*const fns[])(void *) = {take_one, take_one, give, give};

    run_tokens(argument == PLANTED, fns);
}

static void tokens_at_once_fn(void *argument)
{
    static void (*const fns[])(void *) = {take_one, take_one, take_one, give_three};

    (void)argument;
    run_tokens(false, fns);
}

/* ---- futex_receivers, futex_senders: queues, which count whom they woke ---- */

struct line {
    struct rt_queue *queue;
    unsigned items_count;
    char items[FIBERS_MAX];
};

static void receive_one(void *argument) RON_BLOCKS
{
    struct line *line = argument;
    void *item;

    model_must(rt_queue_recv(line->queue, RT_DEADLINE_NEVER, &item, NULL));
}

static void send_all(void *argument) RON_BLOCKS
{
    struct line *line = argument;

    for (unsigned i = 0; i < line->items_count; i++)
        model_must(rt_queue_send_until(line->queue, (struct rt_queue_item){&line->items[i], 1},
                                       RT_DEADLINE_NEVER, NULL));
}

static void send_one(void *argument) RON_BLOCKS
{
    struct line *line = argument;

    model_must(rt_queue_send_until(line->queue, (struct rt_queue_item){&line->items[0], 1},
                                   RT_DEADLINE_NEVER, NULL));
}

static void receive_all(void *argument) RON_BLOCKS
{
    struct line *line = argument;

    for (unsigned i = 0; i < line->items_count; i++)
        receive_one(line);
}

static void run_line(uint32_t capacity, unsigned items_count, unsigned count,
                     void (*const fns[])(void *))
{
    const struct rt_queue_options options = {
        .name = "line", .owner = "model", .policy = "refuse", .capacity = capacity};
    struct rt_queue_stats stats;
    struct line *line;

    rt_init();
    futex_world_open();
    line = model_alloc(sizeof(*line));
    line->items_count = items_count;
    model_must(rt_queue_new(&options, &line->queue, NULL));
    run_all(count, fns, line);
    rt_queue_get_stats(line->queue, &stats);
    RON_ASSERT(stats.received_count == items_count);
    line->queue = rt_queue_free(line->queue);
    ron_mem_free(line);
    futex_world_close();
}

static void receivers_fn(void *argument)
{
    static void (*const fns[])(void *) = {receive_one, receive_one, receive_one, send_all};

    (void)argument;
    run_line(3, 3, 4, fns);
}

static void senders_fn(void *argument)
{
    static void (*const fns[])(void *) = {send_one, send_one, send_one, receive_all};

    (void)argument;
    run_line(1, 3, 4, fns);
}

static const struct model_case lock_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = NONE, .wake_choice = 1}, .cache = true},
    {.config = {.preemption_bound = NONE, .spurious = 1}, .cache = true},
    {.config = {.preemption_bound = 1}, .compare = true},
};
static const struct model_case cond_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = 3, .wake_choice = 1}, .cache = true},
    {.config = {.preemption_bound = 2, .wake_choice = 1, .spurious = 1}, .cache = true},
    {.config = {.preemption_bound = 1}, .compare = true},
    {.config = {.preemption_bound = NONE, .wake_choice = 1}, .cache = true, .slow = true},
};
static const struct model_case time_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1, .early_ticks = 1},
     .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = 2, .wake_choice = 1, .early_ticks = 1}, .cache = true},
    {.config = {.preemption_bound = 1, .early_ticks = 1}, .compare = true},
    {.config = {.preemption_bound = NONE, .wake_choice = 1, .early_ticks = 1},
     .cache = true,
     .slow = true},
};
static const struct model_case planted_cases[] = {
    {.config = {.preemption_bound = NONE, .wake_choice = 1},
     .cache = true,
     .expected = SIM_DEADLOCK},
    {.config = {.preemption_bound = 2}, .expected = SIM_DEADLOCK},
};
static const struct model_case larger_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .wake_choice = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = 1}},
    {.config = {.preemption_bound = 1, .wake_choice = 1}, .cache = true},
    {.config = {.preemption_bound = 2, .wake_choice = 1}, .cache = true, .slow = true},
};
static const struct model_case queue_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .wake_choice = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = 1}},
    {.config = {.preemption_bound = 2, .wake_choice = 1}, .cache = true},
};

MODEL(futex_lock, "3 threads take a mutex, the last one frees it", lock_fn, NULL, lock_cases);
MODEL(futex_lock_again, "2 threads take a mutex twice, the last one frees it", lock_again_fn, NULL,
      lock_cases);
MODEL(futex_gate, "2 waiters, one broadcast, on futexes", gate_fn, NULL, cond_cases);
MODEL(futex_gate_time, "a waiter, another with a deadline, one broadcast, on futexes", gate_time_fn,
      NULL, time_cases);
MODEL(futex_tokens, "2 tokens with a signal each for 2 waiters, on futexes", tokens_fn, NULL,
      queue_cases);
MODEL(futex_tokens_at_once, "3 tokens at once with 3 signals for 3 waiters, on futexes",
      tokens_at_once_fn, NULL, larger_cases);
MODEL(futex_tokens_planted, "a signal sent before its token: one waiter sleeps for ever", tokens_fn,
      PLANTED, planted_cases);
MODEL(futex_receivers, "3 items for 3 receivers of one each, queue(3) on futexes", receivers_fn,
      NULL, queue_cases);
MODEL(futex_senders, "3 senders of one item each, queue(1) on futexes", senders_fn, NULL,
      larger_cases);
