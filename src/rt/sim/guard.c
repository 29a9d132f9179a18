/*
 * guard.c - a run that destroys the process still says which run it was.
 *
 * A stack overflow hits the guard page, a wild pointer anything: the handler runs on its own stack,
 * prints the choices so far, and the process ends with the signal's usual status. Under a sanitizer
 * the report is its own, and only the schedule is added.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "rt/sim/internal.h"

#if RON_ASAN || RON_SIM_TSAN
#include <sanitizer/common_interface_defs.h>
#endif

/* The name and configuration to print, set by the explorer; borrowed. */
static const char *label = "?";

void sim_guard_set_label(const char *text)
{
    label = text;
}

static void print(const char *text)
{
    size_t size = 0;

    while (text[size] != '\0')
        size++;
    if (write(STDERR_FILENO, text, size) < 0)
        return; /* stderr is gone; nothing can be said */
}

void sim_print_dying(const char *why)
{
    const uint16_t *choices;
    uint32_t count;
    char text[64];
    const char *separator = "";

    if (sim.job == NULL)
        return;
    print("simulator: ");
    print(why);
    print(" in fiber ");
    print(sim.self != NULL ? sim.self->name : "(host)");
    print("\nschedule: sim1:");
    print(label);
    print(":#0:");
    choices = sim_last_choices(&count);
    for (uint32_t i = 0; i < count; i++) {
        if (choices[i] == 0)
            continue;
        (void)snprintf(text, sizeof(text), "%s%u=%u", separator, i, (unsigned)choices[i]);
        print(text);
        separator = ",";
    }
    print("\n");
}

#if RON_ASAN || RON_SIM_TSAN
static void on_death(void)
{
    sim_print_dying("the sanitizer ended the process");
}

void sim_guard_install(void)
{
    __sanitizer_set_death_callback(on_death);
}
#else
static void on_signal(int number)
{
    sim_print_dying(number == SIGSEGV  ? "segmentation fault (or stack overflow)"
                    : number == SIGBUS ? "bus error"
                                       : "deadly signal");
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

void sim_guard_install(void)
{
    static _Alignas(16) uint8_t stack[64 * 1024];
    const stack_t alternative = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_NODEFER};

    RON_MUST_ZERO(sigaltstack(&alternative, NULL));
    RON_MUST_ZERO(sigaction(SIGSEGV, &action, NULL));
    RON_MUST_ZERO(sigaction(SIGBUS, &action, NULL));
    RON_MUST_ZERO(sigaction(SIGFPE, &action, NULL));
    RON_MUST_ZERO(sigaction(SIGILL, &action, NULL));
}
#endif
