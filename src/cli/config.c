/*
 * config.c - `ron config`: what a process would run with, whether a file is right, every key.
 */
#include <stdio.h>
#include <string.h>

#include "app/config_check.h"
#include "app/config_read.h"
#include "cli/command.h"

enum { OUTPUT_MAX = 1 << 18 };

static void print_usage(FILE *out)
{
    fputs("usage: ron config show|check [--config FILE]\n"
          "       ron config default\n"
          "\n"
          "show     print the configuration a process would run with, each value with its origin\n"
          "check    read file and environment, name every problem; exit code 1 if there is one\n"
          "default  print a ron.toml with every key, its meaning and its default\n"
          "\n"
          "Without --config, ./ron.toml is read if it exists. Environment variables win over the\n"
          "file: RON_SERVER__LISTEN is server.listen.\n",
          out);
}

static void print_problem(void *context, const char *message)
{
    fprintf(context, "ron config: %s\n", message);
}

static int print_buf(struct ron_buf *buf)
{
    struct ron_errinfo info = {0};
    int status = CMD_OK;

    if (ron_buf_check(buf, &info) == RON_ERR_OK) {
        (void)fwrite(buf->data, 1, buf->size, stdout); /* main looks at the stream's state */
    } else {
        fprintf(stderr, "ron config: %s\n", info.message);
        status = CMD_FAILED;
    }
    ron_buf_fini(buf);
    return status;
}

static int show_or_check(const char *file, bool show) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct config *config;
    struct ron_buf buf;
    size_t problems_count = 0;
    enum ron_err err;

    err = app_config_read(file, NULL, 0, print_problem, stderr, &problems_count, &config, &info);
    if (err != RON_ERR_OK) {
        if (problems_count == 0)
            fprintf(stderr, "ron config: %s%s\n", err == RON_ERR_NO_MEMORY ? "out of memory: " : "",
                    info.message);
        return CMD_FAILED;
    }
    if (!show && app_config_check(config, print_problem, stderr, NULL) != RON_ERR_OK) {
        config_free(config);
        return CMD_FAILED;
    }
    ron_buf_init(&buf, OUTPUT_MAX);
    if (show)
        config_write(config, &buf);
    else
        ron_buf_put_text(&buf, "the configuration is right\n");
    config_free(config);
    return print_buf(&buf);
}

int cmd_config(int argc, char **argv) RON_BLOCKS
{
    const char *file = NULL;
    struct ron_buf buf;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        print_usage(stdout);
        return CMD_OK;
    }
    if (argc == 2 && strcmp(argv[1], "default") == 0) {
        ron_buf_init(&buf, OUTPUT_MAX);
        config_write_default(&buf);
        return print_buf(&buf);
    }
    if (argc == 4 && strcmp(argv[2], "--config") == 0)
        file = argv[3];
    if ((argc == 2 || file != NULL) &&
        (strcmp(argv[1], "show") == 0 || strcmp(argv[1], "check") == 0))
        return show_or_check(file, strcmp(argv[1], "show") == 0);
    if (argc > 1)
        fprintf(stderr, "ron config: unexpected argument '%s'\n", argv[argc - 1]);
    print_usage(stderr);
    return CMD_USAGE;
}
