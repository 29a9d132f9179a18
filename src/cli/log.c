/*
 * log.c - `ron log dump | check DIR`: a durable log for people. Reads only, owns nothing.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/decimal.h"
#include "base/hex.h"
#include "cli/command.h"
#include "io/log_check.h"

enum { BODY_SHOWN = 24 };

struct log_command {
    bool dump, json;
    bool bar; /* stderr is a terminal */
    uint64_t from, limit;
    uint64_t shown_count;
    const char *dir;
};

static void print_usage(FILE *out)
{
    fputs("usage: ron log dump [--from N] [--limit N] [--json] DIR\n"
          "       ron log check DIR\n"
          "\n"
          "Looks at the segments of a durable log, the folder with seg-... and owner files, and\n"
          "changes nothing. dump prints one line a record, from record N on, at most --limit of\n"
          "them; --json prints one object a line with the whole body in hex. check reads every\n"
          "frame and link and says where the first damage is.\n"
          "\n"
          "exit codes: 0 sound, 1 cannot be read, 2 wrong usage, 3 damaged, 4 not a log or with\n"
          "a file that is not part of one, 5 written by another version of the program.\n",
          out);
}

static void print_body(const struct io_frame *frame, bool whole)
{
    const size_t size = whole || frame->body.size < BODY_SHOWN ? frame->body.size : BODY_SHOWN;

    for (size_t i = 0; i < size; i++)
        printf("%02x", frame->body.data[i]);
    if (size < frame->body.size)
        fputs("...", stdout);
}

static enum ron_err print_record(void *context, const struct io_frame *frame, uint64_t segment,
                                 uint64_t offset, struct ron_errinfo *reterr)
{
    struct log_command *command = context;
    const unsigned long long index = frame->index, group = frame->group;

    if (command->shown_count == command->limit)
        return ron_fail(reterr, RON_ERR_CANCELED, "enough");
    command->shown_count++;
    if (command->json) {
        printf("{\"index\":%llu,\"group\":%llu,\"epoch\":%u,\"type\":%u,\"segment\":%llu,"
               "\"offset\":%llu,\"size\":%zu,\"body\":\"",
               index, group, frame->epoch, frame->type, (unsigned long long)segment,
               (unsigned long long)offset, frame->body.size);
        print_body(frame, true);
        puts("\"}");
    } else {
        printf("%10llu %10llu %5u %5u %8llu %10llu %8zu  ", index, group, frame->epoch, frame->type,
               (unsigned long long)segment, (unsigned long long)offset, frame->body.size);
        print_body(frame, false);
        putchar('\n');
    }
    return ferror(stdout) ? ron_fail(reterr, RON_ERR_IO, "cannot write the output") : RON_ERR_OK;
}

static void print_progress(void *context, uint64_t done, uint64_t total)
{
    const struct log_command *command = context;

    if (command->bar)
        fprintf(stderr, "\rsegment %llu of %llu%s", (unsigned long long)done,
                (unsigned long long)total, done == total ? "\r\033[K" : "");
}

static int failed(const struct log_command *command, const struct io_log_found *found,
                  enum ron_err err, const struct ron_errinfo *info)
{
    fprintf(stderr, "ron log: %s: %s\n", command->dir, info->message);
    if (err == RON_ERR_WAL_CORRUPT)
        fprintf(stderr, "%s/%s:%llu\n", command->dir, found->damage_file,
                (unsigned long long)found->damage_offset);
    if (err == RON_ERR_WAL_CORRUPT)
        return CMD_DAMAGED;
    if (err == RON_ERR_VERSION_SKEW)
        return CMD_VERSION;
    return err == RON_ERR_MALFORMED || err == RON_ERR_NOT_FOUND ? CMD_FOREIGN : CMD_FAILED;
}

static int run(struct log_command *command) RON_BLOCKS
{
    struct io_log_check_options options = {.dir = "", .from = command->from, .context = command};
    struct io_log_found found = {0};
    struct ron_errinfo info = {0};
    enum ron_err err = io_vfs_posix_new(command->dir, false, &options.vfs, &info);

    if (err == RON_ERR_OK) {
        if (command->dump)
            options.visit = print_record;
        else
            options.progress = print_progress;
        if (command->dump && !command->json)
            printf("%10s %10s %5s %5s %8s %10s %8s  %s\n", "INDEX", "GROUP", "EPOCH", "TYPE",
                   "SEGMENT", "OFFSET", "SIZE", "BODY");
        err = io_log_check(&options, &found, &info);
        io_vfs_free(options.vfs);
    }
    if (err != RON_ERR_OK && err != RON_ERR_CANCELED)
        return failed(command, &found, err, &info);
    if (command->dump && err == RON_ERR_OK && found.torn_bytes > 0)
        fprintf(stderr,
                "ron log: records above %llu, if any, are of an unfinished group: never "
                "acknowledged\n",
                (unsigned long long)found.last_index);
    if (!command->dump && !found.has_owner)
        fprintf(stderr, "ron log: no owner file: whether records are missing at the end cannot be "
                        "told\n");
    if (!command->dump)
        printf("sound: %llu segments, records %llu to %llu (%llu), %llu bytes, %llu bytes of an "
               "unfinished group\n",
               (unsigned long long)found.segments_count, (unsigned long long)found.first_index,
               (unsigned long long)found.last_index, (unsigned long long)found.records_count,
               (unsigned long long)found.bytes_count, (unsigned long long)found.torn_bytes);
    return CMD_OK;
}

static bool parse_count(const char *text, uint64_t *ret_value)
{
    struct ron_errinfo info;

    return text != NULL &&
           ron_decimal_parse_u64(ron_slice_text(text), ret_value, &info) == RON_ERR_OK;
}

int cmd_log(int argc, char **argv) RON_BLOCKS
{
    struct log_command command = {.limit = UINT64_MAX, .bar = isatty(STDERR_FILENO) == 1};
    bool good = argc >= 2;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        print_usage(stdout);
        return CMD_OK;
    }
    command.dump = good && strcmp(argv[1], "dump") == 0;
    good = command.dump || (good && strcmp(argv[1], "check") == 0);
    for (int i = 2; good && i < argc; i++) {
        if (command.dump && strcmp(argv[i], "--json") == 0)
            command.json = true;
        else if (command.dump && strcmp(argv[i], "--from") == 0 && i + 1 < argc)
            good = parse_count(argv[++i], &command.from);
        else if (command.dump && strcmp(argv[i], "--limit") == 0 && i + 1 < argc)
            good = parse_count(argv[++i], &command.limit);
        else if (argv[i][0] != '-' && command.dir == NULL)
            command.dir = argv[i];
        else
            good = false;
        if (!good)
            fprintf(stderr, "ron log: unexpected argument '%s'\n", argv[i]);
    }
    if (!good || command.dir == NULL) {
        if (good)
            fputs("ron log: which folder?\n", stderr);
        else if (argc == 2)
            fprintf(stderr, "ron log: unexpected argument '%s'\n", argv[1]);
        print_usage(stderr);
        return CMD_USAGE;
    }
    return run(&command);
}
