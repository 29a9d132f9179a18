/*
 * command.h - what a `ron` sub-command is: one function, one file.
 */
#ifndef RON_CLI_COMMAND_H
#define RON_CLI_COMMAND_H

/* Exit codes of the program. */
enum {
    CMD_OK = 0,
    CMD_FAILED = 1, /* the command could not do its work; stderr says why */
    CMD_USAGE = 2,  /* the command line is wrong; nothing was done */
    /* Of commands that look at stored data. */
    CMD_DAMAGED = 3, /* it failed a check; stderr says where */
    CMD_FOREIGN = 4, /* it is something else */
    CMD_VERSION = 5, /* another version of the program wrote it */
    /* `ron serve` has more: app/serve.h */
};

struct command {
    const char *name;
    const char *summary; /* one line for the list */
    int (*run)(int argc, char **argv);
};

int cmd_bench(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_errors(int argc, char **argv);
int cmd_ledger(int argc, char **argv);
int cmd_log(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_token(int argc, char **argv);
int cmd_topology(int argc, char **argv);
int cmd_version(int argc, char **argv);

#endif
