/*
 * harness.h - benchmarks that compare: contestants take turns in one sitting, ratios decide.
 *
 * Each contestant is first run until its time is long enough to measure, then BENCH_RUNS times in
 * turn with the others, in changing order, so that a slow second of the machine hits all of them.
 * The table shows the median, the spread, the ratio to the rival and the raw figures, and how often
 * the system interrupted the measuring.
 *
 * A contestant does its work `rounds` times. To keep the compiler from dropping or hoisting it, the
 * result goes through BENCH_USE and the input through BENCH_FORGET.
 */
#ifndef RON_BENCH_HARNESS_H
#define RON_BENCH_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_RUNS = 5, BENCH_CONTESTANTS_MAX = 8 };

typedef void bench_run_fn(void *context, uint64_t rounds);

struct bench_contestant {
    const char *name;
    bench_run_fn *run;
    void *context;
    uint64_t items_count; /* results per round, where one round makes several; 0 means 1 */
};

struct bench_options {
    bool quick;    /* short runs: shows that the benchmark works, not what it measures */
    bool cpu_time; /* count the time of all threads on a processor: for a busy machine */
};

struct bench_table {
    const char *title;
    const char *rival;  /* name of the contestant that ratios refer to */
    uint64_t item_size; /* bytes per item, for a GB/s column; 0 leaves it out */
    const struct bench_contestant *contestants;
    size_t contestants_count;
};

/* Read --quick and --cpu-time. Anything else prints the usage and answers false: exit with
 * status 2. Prints processor, compiler, clock and run length, which every quoted figure needs. */
bool bench_begin(int argc, char **argv, struct bench_options *ret_options);

/* Run all contestants and print the table. Nanoseconds are per item; a ratio of 2.00 means twice as
 * fast as the rival. A spread (max over min) beyond 1.25 is marked with `~`: repeat on a quieter
 * machine. */
void bench_compare(const struct bench_options *options, const struct bench_table *table);

/* Nanoseconds of a clock that never steps. */
uint64_t bench_now_ns(void);
/* Nanoseconds of processor time of this thread: what others do on the machine does not count. */
uint64_t bench_cpu_ns(void);
/* Print processor and compiler; bench_begin does it too. */
void bench_print_machine(void);

/* The memory at pointer is used by someone unknown: results must have been written. */
#define BENCH_USE(pointer)     __asm__ volatile("" : : "g"(pointer) : "memory")
/* Someone unknown may have changed all memory: inputs must be read again. */
#define BENCH_FORGET()         __asm__ volatile("" : : : "memory")
/* A value in a register is used by someone unknown. */
#define BENCH_USE_VALUE(value) __asm__ volatile("" : : "r"(value))

#endif
