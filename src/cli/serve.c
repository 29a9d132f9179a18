/*
 * serve.c - `ron serve`: the command line of the server.
 */
#include <stdio.h>
#include <string.h>

#include "app/serve.h"
#include "base/decimal.h"
#include "cli/command.h"

static void print_usage(FILE *out)
{
    fputs(
        "usage: ron serve [--config FILE] [--data DIR] [--listen ADDR:PORT] [--admin ADDR:PORT]\n"
        "                 [--roles LIST] [--amnesia | --keyring-fd N]\n"
        "\n"
        "Runs the server until SIGTERM or SIGINT; a second one ends it at once. SIGHUP reads the\n"
        "configuration, the certificates and the keyring again: all of it or nothing.\n"
        "\n"
        "--config FILE    the configuration; else ./ron.toml if there is one (ron config --help)\n"
        "--data DIR       everything durable; made on the first start (server.data)\n"
        "--listen A:P     address of the API; port 0 picks a free one (server.listen)\n"
        "--admin A:P      address of metrics, diagnostics and administration (server.admin)\n"
        "--roles LIST     roles with commas between, or `all` (server.roles)\n"
        "--amnesia        nothing durable: keys in memory, the operator's token on line 3\n"
        "--keyring-fd N   the same, with a keyring read from descriptor N\n"
        "\n"
        "The first three lines of its output are for scripts; everything else goes to stderr:\n"
        "  api http://ADDR:PORT\n"
        "  admin http://ADDR:PORT\n"
        "  token DIR/operator.token\n"
        "\n"
        "exit codes: 0 stopped; 1 the system refused; 2 command line; 3 configuration;\n"
        "            4 address in use; 5 data directory; 6 keyring; 7 stopped, but not everything\n"
        "            was answered in time; 8 ended by a second signal\n",
        out);
}

static void print_problem(void *context, const char *message)
{
    (void)context;
    fprintf(stderr, "ron serve: %s\n", message);
}

static void print_line(void *context, const char *line)
{
    (void)context;
    puts(line);
}

static const struct {
    const char *name;
    enum config_key key;
} key_options[] = {
    {"--data", CONFIG_SERVER_DATA},
    {"--listen", CONFIG_SERVER_LISTEN},
    {"--admin", CONFIG_SERVER_ADMIN},
    {"--roles", CONFIG_SERVER_ROLES},
};
enum { FLAGS_MAX = RON_ARRAY_COUNT(key_options) };

struct arguments {
    struct app_serve_options options;
    struct config_flag flags[FLAGS_MAX];
};

/* One option and its value: how many words it was, 0 when it is wrong. */
static int take_option(int argc, char **argv, struct arguments *arguments)
{
    uint64_t fd;

    if (strcmp(argv[0], "--amnesia") == 0) {
        arguments->options.amnesia = true;
        return 1;
    }
    if (argc < 2)
        return 0;
    if (strcmp(argv[0], "--config") == 0 && arguments->options.config_file == NULL) {
        arguments->options.config_file = argv[1];
        return 2;
    }
    if (strcmp(argv[0], "--keyring-fd") == 0 &&
        ron_decimal_parse_u64(ron_slice_text(argv[1]), &fd, NULL) == RON_ERR_OK && fd < 65536) {
        arguments->options.amnesia = true;
        arguments->options.keyring_fd = (int)fd;
        return 2;
    }
    for (size_t i = 0; i < FLAGS_MAX; i++) {
        if (strcmp(argv[0], key_options[i].name) != 0)
            continue;
        for (size_t j = 0; j < arguments->options.flags_count; j++) {
            if (arguments->flags[j].key == key_options[i].key)
                return 0; /* twice */
        }
        arguments->flags[arguments->options.flags_count++] = (struct config_flag){
            .name = key_options[i].name, .key = key_options[i].key, .value = argv[1]};
        return 2;
    }
    return 0;
}

int cmd_serve(int argc, char **argv) RON_BLOCKS
{
    struct arguments arguments = {.options = {.version = RON_VERSION,
                                              .keyring_fd = APP_KEYRING_FD_NONE,
                                              .problem = print_problem,
                                              .announce = print_line}};
    struct ron_errinfo info = {0};
    bool told = false;
    enum app_exit code;

    for (int i = 1; i < argc;) {
        int taken = strcmp(argv[i], "--help") == 0 ? -1
                                                   : take_option(argc - i, argv + i, &arguments);

        if (taken < 0) {
            print_usage(stdout);
            return CMD_OK;
        }
        if (taken == 0) {
            fprintf(stderr, "ron serve: unexpected argument, or its value is missing: '%s'\n",
                    argv[i]);
            print_usage(stderr);
            return APP_EXIT_USAGE;
        }
        i += taken;
    }
    arguments.options.flags = arguments.flags;
    (void)setvbuf(stdout, NULL, _IONBF, 0); /* scripts wait for the lines; one may be a token */
    code = app_serve(&arguments.options, &told, &info);
    if (code != APP_EXIT_OK && !told)
        fprintf(stderr, "ron serve: %s\n", info.message);
    return (int)code;
}
