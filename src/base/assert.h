/*
 * assert.h - assertions that stay on in release, and probes.
 *
 * An assertion states what cannot happen unless the program is wrong; what the world can cause is
 * an error (ron/error.h). A failed assertion prints file, line, function, expression, the running
 * task, the locks it holds and a backtrace to stderr, without allocating, then aborts.
 *
 * Never put a side effect inside one. Split `a && b` into two: the line then says which failed.
 */
#ifndef RON_BASE_ASSERT_H
#define RON_BASE_ASSERT_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"

#define RON_ASSERT(expression)     \
    ((void)(RON_LIKELY(expression) \
                ? 0                \
                : (ron_assert_fail(__FILE__, __LINE__, __func__, #expression), 0)))

/* Checks too expensive for production; on in simulation and CI builds (-Dslow_checks=true). The
 * expression is always compiled, so it cannot rot. */
#ifdef RON_SLOW_CHECKS
#define RON_ASSERT_SLOW(expression) RON_ASSERT(expression)
#else
#define RON_ASSERT_SLOW(expression) ((void)sizeof(!(expression)))
#endif

/* For calls whose failure means the program is wrong: they return 0 or ron stops. */
#define RON_MUST_ZERO(call)             \
    ((void)(RON_LIKELY((call) == 0) ? 0 \
                                    : (ron_assert_fail(__FILE__, __LINE__, __func__, #call), 0)))

/* For a branch that cannot be reached. */
#define RON_UNREACHABLE() ron_assert_fail(__FILE__, __LINE__, __func__, "unreachable")

struct ron_assert_failure {
    const char *file;
    int line;
    const char *function;
    const char *expression;
};

void ron_assert_fail(const char *file, int line, const char *function,
                     const char *expression) RON_NORETURN RON_COLD;

/* Who is running: fills `text` (NUL-terminated) with the task's name and the locks it holds, as
 * "task committer, locks queue cfg_snapshot". Installed by the runtime, which is above base; async
 * signal safe. NULL restores the default ("task ?"). Call before threads start. */
typedef void ron_assert_describe_fn(char *text, size_t text_size);
void ron_assert_set_describe(ron_assert_describe_fn *describe);

/* Replaces print-and-abort. The simulator ends the run here; it must not return (abort follows if
 * it does). NULL restores the default. Call before threads start. */
typedef void ron_assert_handler_fn(const struct ron_assert_failure *failure);
void ron_assert_set_handler(ron_assert_handler_fn *handler);

/*
 * Probes mark rare conditions that a simulation or test run is expected to reach:
 *
 *     if (ring_is_full) {
 *         RON_PROBE("queue full while draining");
 *
 * Every probe of the program is known before it is hit (they share a linker section), so a run can
 * list those it never reached. They count only in slow-check builds and cost nothing otherwise.
 */
struct ron_probe {
    const char *name;
    const char *file;
    int line;
    _Atomic uint64_t hits_count;
};

#ifdef RON_SLOW_CHECKS
#define RON_PROBE(text)                                                                 \
    do {                                                                                \
        static struct ron_probe ron_probe_here = {text, __FILE__, __LINE__, 0};         \
        static struct ron_probe *const ron_probe_entry                                  \
            __attribute__((section("ron_probe_list"), used)) = &ron_probe_here;         \
        atomic_fetch_add_explicit(&ron_probe_here.hits_count, 1, memory_order_relaxed); \
    } while (0)
#else
#define RON_PROBE(text) ((void)sizeof(text))
#endif

/* All probes linked into the program: an array of *ret_count pointers. */
struct ron_probe *const *ron_probes(size_t *ret_count);

#endif
