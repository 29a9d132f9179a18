/*
 * main.c - the `ron` program: finds the sub-command and runs it.
 */
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/command.h"

static const struct command commands[] = {
    {"bench", "measure a server with requests at a rate", cmd_bench},
    {"config", "show, check or explain the configuration", cmd_config},
    {"errors", "list every error code with its HTTP status", cmd_errors},
    {"ledger", "write, read, prove, export, back up and verify a ledger", cmd_ledger},
    {"log", "print or check a durable log", cmd_log},
    {"serve", "run the server: listeners, roles, keyring", cmd_serve},
    {"token", "make, narrow, look at and revoke capabilities", cmd_token},
    {"topology", "list the queues, tasks and locks of a process", cmd_topology},
    {"version", "print the version", cmd_version},
};

static void print_usage(FILE *out)
{
    fputs("usage: ron COMMAND [OPTION]...\n"
          "\n"
          "The economic plane of a network: count, pay and prove.\n"
          "\n"
          "commands:\n",
          out);
    for (size_t i = 0; i < RON_ARRAY_COUNT(commands); i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fputs("\n`ron COMMAND --help` explains one command.\n", out);
}

static int run(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        print_usage(stdout);
        return CMD_OK;
    }
    if (strcmp(argv[1], "--version") == 0)
        return cmd_version(argc - 1, argv + 1);
    for (size_t i = 0; i < RON_ARRAY_COUNT(commands); i++) {
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    }
    fprintf(stderr, "ron: no command '%s'\n\n", argv[1]);
    print_usage(stderr);
    return CMD_USAGE;
}

int main(int argc, char **argv)
{
    int status = run(argc, argv);

    /* A result that did not reach its reader (full disk, closed pipe) is a failure. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("ron: cannot write the output");
        return CMD_FAILED;
    }
    return status;
}
