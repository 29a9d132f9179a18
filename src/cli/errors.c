/*
 * errors.c - `ron errors`: the error table for people (aligned text) and documents (markdown).
 */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "ron/error.h"

static void print_usage(FILE *out)
{
    fputs("usage: ron errors [--markdown]\n"
          "\n"
          "Lists every error code: HTTP status, whether a retry may help, the value of metric\n"
          "label `reason`, and what it means. --markdown prints docs/errors.md.\n",
          out);
}

static void print_text(void)
{
    printf("%-20s %4s %-6s %-21s %s\n", "CODE", "HTTP", "RETRY", "REASON", "MEANING");
    for (unsigned i = 0; i < RON_ERR__MAX; i++) {
        enum ron_err err = (enum ron_err)i;

        if (!ron_err_internal(err))
            printf("%-20s %4d %-6s %-21s %s\n", ron_err_name(err), ron_err_http(err),
                   ron_err_retryable(err) ? "yes" : "no", ron_err_reason(err), ron_err_text(err));
    }
}

static void print_markdown(void)
{
    fputs("# Errors\n"
          "\n"
          "Generated from `include/ron/error.h` by `./dev docs`; do not edit.\n"
          "\n"
          "Every reply that is not 2xx has this body, whichever role, parser or limit raised it:\n"
          "\n"
          "```json\n"
          "{\"error\":{\"code\":\"Busy\",\"message\":\"...\",\"retryable\":true,"
          "\"corr_id\":\"...\",\"details\":{}}}\n"
          "```\n"
          "\n"
          "`code` is stable. *Retry* says that the same request may succeed later; *Retry-After* "
          "that the\nreply carries that header. *Reason* is the value of the metric label "
          "`reason`.\n"
          "\n"
          "| HTTP | code | retry | Retry-After | reason | meaning |\n"
          "|---|---|---|---|---|---|\n",
          stdout);
    for (unsigned i = 0; i < RON_ERR__MAX; i++) {
        enum ron_err err = (enum ron_err)i;

        if (!ron_err_internal(err))
            printf("| %d | `%s` | %s | %s | `%s` | %s |\n", ron_err_http(err), ron_err_name(err),
                   ron_err_retryable(err) ? "yes" : "no", ron_err_retry_after(err) ? "yes" : "no",
                   ron_err_reason(err), ron_err_text(err));
    }
    fputs("\n"
          "## Internal codes\n"
          "\n"
          "These never reach a client as such; they appear in logs and metrics.\n"
          "\n"
          "| code | reason | answered as | meaning |\n"
          "|---|---|---|---|\n",
          stdout);
    for (unsigned i = 0; i < RON_ERR__MAX; i++) {
        enum ron_err err = (enum ron_err)i;
        bool success = ron_err_http(err) < 300;

        if (ron_err_internal(err))
            printf("| `%s` | `%s` | %s | %s |\n", ron_err_name(err), ron_err_reason(err),
                   success ? "success" : ron_err_name(ron_err_wire(err)), ron_err_text(err));
    }
}

int cmd_errors(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        print_usage(stdout);
        return CMD_OK;
    }
    if (argc == 2 && strcmp(argv[1], "--markdown") == 0) {
        print_markdown();
        return CMD_OK;
    }
    if (argc > 1) {
        fprintf(stderr, "ron errors: unexpected argument '%s'\n", argv[argc - 1]);
        print_usage(stderr);
        return CMD_USAGE;
    }
    print_text();
    return CMD_OK;
}
