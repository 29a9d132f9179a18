/*
 * parts.h - what the files of the simulator call in each other. Included by internal.h only.
 */
#ifndef RON_RT_SIM_PARTS_H
#define RON_RT_SIM_PARTS_H

/* sched.c */
void sim_pause(enum sim_op op, const void *object); /* fiber: announce and wait to be picked */
bool sim_enabled(const struct sh_thread *thread);
unsigned sim_ask(enum sim_choice_kind kind, unsigned options_count, const char *tag); /* fiber */
unsigned sim_answer(const struct sim_point *point); /* host; may end the run */
void sim_fail(enum sim_verdict verdict, const char *format, ...) RON_PRINTF(2, 3);
struct sh_thread *sim_thread_new(const char *name, uint32_t node, void (*fn)(void *),
                                 void *argument);
void sim_thread_ended(struct sh_thread *thread);
void sim_loop(void);

/* pick.c */
struct sh_thread *sim_pick(void); /* to resume next; NULL when the run is over */

/* sync.c */
/* A waiter stops waiting; it still has to take its mutex again. */
void sim_end_wait(struct sh_thread *thread, bool timed_out);

/* run.c */
void sim_choices_append(uint16_t choice);

/* clock.c */
void sim_clock_reset(void);
bool sim_clock_next(uint64_t *ret_deadline_ns); /* earliest deadline not yet reached */
bool sim_clock_advance(void);                   /* false: nothing to wait for */

/* node.c */
void sim_node_crash(uint32_t node);

/* fair.c: a fiber that polls with sh_yield cannot starve the fiber it waits for. */
void sim_fair_reset(void);
bool sim_fair_active(void);
void sim_fair_step(uint32_t slot, bool yielded, uint64_t enabled_after);
uint64_t sim_fair_allowed(uint64_t enabled);
uint64_t sim_fair_hash(uint64_t hash);

/* heap.c */
void sim_heap_reset(void);
void sim_heap_install(bool installed); /* fibers allocate from the arena, or not */
uint32_t sim_heap_live_count(void);
void sim_heap_lose(uint32_t node);
uint64_t sim_heap_hash(uint64_t hash);

/* state.c */
uint64_t sim_hash_word(uint64_t hash, uint64_t word);
uint64_t sim_hash_bytes(uint64_t hash, const uint8_t *data, size_t size);

/* guard.c: what is printed when a run destroys the process. */
void sim_guard_install(void);
void sim_print_dying(const char *why);
void sim_guard_set_label(const char *text);

/* report.c */
const char *sim_op_words(enum sim_op op);
const char *sim_object_name(enum sim_op op, const void *object);
void sim_describe_deadlock(char *text, size_t text_size);
void sim_trace_step(const struct sh_thread *thread, bool preempted);
void sim_trace_event(const char *who, const char *what, const char *object);

#endif
