/*
 * support.h - what unit tests share: cmocka with its includes in order, and "fail the Nth".
 */
#ifndef RON_TESTS_SUPPORT_H
#define RON_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/mem.h"

/* Run attempt(context) with the 1st, 2nd, 3rd ... allocation failing, until a run succeeds. Each
 * failed run must answer RON_ERR_NO_MEMORY and leave no allocation behind; a successful one cleans
 * up after itself. Returns how many allocations the function makes; fails the test beyond limit. */
typedef enum ron_err support_attempt_fn(void *context, struct ron_errinfo *reterr);
unsigned support_fail_each_allocation(support_attempt_fn *attempt, void *context, unsigned limit);

/* Assert that a call failed with this code and a message containing text. */
void support_assert_error(enum ron_err err, const struct ron_errinfo *info, enum ron_err expected,
                          const char *text);

/* How far the thread of this name steps back (its nice value). It must be there, and no other of
 * that name. */
int support_nice_of(const char *thread_name);

#define assert_ok(expression) assert_int_equal((expression), RON_ERR_OK)

/* Assert that the statement kills the process through an assertion whose output contains text. */
#define assert_dies(statement, text)                 \
    do {                                             \
        if (support_death_begin()) {                 \
            statement;                               \
            support_death_survived();                \
        }                                            \
        support_death_end(text, __FILE__, __LINE__); \
    } while (0)
bool support_death_begin(void); /* true in the child */
void support_death_survived(void) __attribute__((noreturn));
void support_death_end(const char *text, const char *file, int line);

#endif
