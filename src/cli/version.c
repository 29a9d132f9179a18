/*
 * version.c - `ron version`.
 */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

int cmd_version(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        puts("usage: ron version\n\nPrints the version of this program.");
        return CMD_OK;
    }
    if (argc > 1) {
        fprintf(stderr, "ron version: unexpected argument '%s'\n", argv[1]);
        return CMD_USAGE;
    }
    puts("ron " RON_VERSION);
    return CMD_OK;
}
