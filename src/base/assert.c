/*
 * assert.c - what a failed assertion prints, and the list of probes. See assert.h.
 *
 * Runs in a process that is already wrong: no allocation, no stdio buffers, one write per line.
 */
#include "base/assert.h"

#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FRAMES_MAX = 64, TEXT_SIZE = 512 };

static ron_assert_describe_fn *describe_hook;
static ron_assert_handler_fn *handler_hook;

/* The first backtrace loads a library and allocates; a failing process must not have to. */
__attribute__((constructor)) static void load_backtrace(void)
{
    void *frame;

    (void)backtrace(&frame, 1);
}

void ron_assert_set_describe(ron_assert_describe_fn *describe)
{
    describe_hook = describe;
}

void ron_assert_set_handler(ron_assert_handler_fn *handler)
{
    handler_hook = handler;
}

static void print_line(const char *label, const char *text)
{
    char line[TEXT_SIZE];
    int size = snprintf(line, sizeof(line), "%s%s\n", label, text);

    if (size < 0)
        return;
    if ((size_t)size >= sizeof(line)) {
        size = (int)sizeof(line) - 1;
        line[size - 1] = '\n';
    }
    /* Nothing can be done if stderr is gone; the abort still follows. */
    if (write(STDERR_FILENO, line, (size_t)size) < 0)
        return;
}

static void print_failure(const struct ron_assert_failure *failure)
{
    char text[TEXT_SIZE];
    void *frames[FRAMES_MAX];
    int frames_count;

    (void)snprintf(text, sizeof(text), "%s:%d: %s(): %s", failure->file, failure->line,
                   failure->function, failure->expression);
    print_line("assertion failed: ", text);
    (void)snprintf(text, sizeof(text), "task ?");
    if (describe_hook != NULL)
        describe_hook(text, sizeof(text));
    print_line("  in ", text);
    print_line("  backtrace:", "");
    frames_count = backtrace(frames, FRAMES_MAX);
    backtrace_symbols_fd(frames, frames_count, STDERR_FILENO);
}

void ron_assert_fail(const char *file, int line, const char *function, const char *expression)
{
    const struct ron_assert_failure failure = {file, line, function, expression};
    static _Atomic bool reporting;

    /* An assertion inside the report, or of another thread meanwhile, ends the process at once. A
     * handler may leave by a jump, to report again later. */
    if (handler_hook == NULL && atomic_exchange(&reporting, true))
        abort();
    if (handler_hook != NULL)
        handler_hook(&failure);
    else
        print_failure(&failure);
    abort();
}

/* The linker defines these around the section when any probe exists. Pointers, not probes, are what
 * lies there: compilers may align structs beyond their size, which would leave gaps. */
extern struct ron_probe *const __start_ron_probe_list[] __attribute__((weak, visibility("hidden")));
extern struct ron_probe *const __stop_ron_probe_list[] __attribute__((weak, visibility("hidden")));

struct ron_probe *const *ron_probes(size_t *ret_count)
{
    *ret_count = (size_t)(__stop_ron_probe_list - __start_ron_probe_list);
    return __start_ron_probe_list;
}
