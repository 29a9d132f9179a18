/*
 * log_driver.c - a process with a log, for tests that kill it, trace it or fill its disk.
 *
 *     log_driver DIR COUNT [GROUP]
 *
 * Opens the log in DIR, prints "open LAST" with the last record found (after checking the bytes of
 * every one), appends COUNT records, GROUP (1) at a time, and prints "ack INDEX" once a group is
 * durable, each line by one write. Refusals are printed as "refused CODE" and end it with status 3.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/decimal.h"
#include "io/log.h"
#include "rt/registry.h"
#include "rt/supervisor.h"

enum { BODY_SIZE = 200 };

static void say(const char *word, const char *text, uint64_t number) RON_BLOCKS
{
    char line[128];
    int size = snprintf(line, sizeof(line), "%s %s%.0llu\n", word, text,
                        (unsigned long long)number);

    RON_ASSERT(size > 0);
    RON_ASSERT(write(STDOUT_FILENO, line, (size_t)size) == size);
}

static void fill(uint64_t index, uint8_t body[BODY_SIZE])
{
    for (size_t i = 0; i < BODY_SIZE; i++)
        body[i] = (uint8_t)(index * 31 + i * 7);
    ron_store_le64(body, index);
}

static int check_all(struct io_log *log) RON_BLOCKS
{
    struct io_log_reader *reader = NULL;
    uint64_t index = io_log_first_index(log);
    struct io_frame frame;
    uint8_t body[BODY_SIZE];

    if (io_log_reader_new(log, index, &reader, NULL) != RON_ERR_OK)
        return 1;
    while (io_log_reader_next(reader, &frame, NULL) == RON_ERR_OK) {
        fill(index, body);
        if (frame.index != index || !ron_slice_equal(frame.body, ron_slice_of(body, BODY_SIZE)))
            return 1;
        index++;
    }
    io_log_reader_free(reader);
    return index == io_log_last_durable(log) + 1 ? 0 : 1;
}

/* 0 done, 3 refused, 1 failed. */
static int append_all(struct io_log *log, uint64_t count, uint64_t group) RON_BLOCKS
{
    const uint64_t first = io_log_last_durable(log) + 1;
    struct ron_errinfo info = {0};
    uint8_t body[BODY_SIZE];
    uint64_t index = 0;

    for (uint64_t i = 0; i < count; i++) {
        const struct ron_slice part = {body, BODY_SIZE};
        enum ron_err err;

        fill(first + i, body);
        err = io_log_append_until(log, 1, &part, 1, rt_deadline_after_ms(60000), &index, &info);
        if (err == RON_ERR_OK && (i % group == group - 1 || i == count - 1)) {
            err = io_log_wait(log, index, rt_deadline_after_ms(60000), &info);
            if (err == RON_ERR_OK)
                say("ack", "", index);
        }
        if (err != RON_ERR_OK) {
            say("refused", ron_err_name(info.err), 0);
            return err == RON_ERR_PERSISTENCE_FULL ? 3 : 1;
        }
    }
    return 0;
}

static bool parse(const char *text, uint64_t *ret_value)
{
    return ron_decimal_parse_u64(ron_slice_text(text), ret_value, NULL) == RON_ERR_OK;
}

int main(int argc, char **argv) RON_BLOCKS;
int main(int argc, char **argv)
{
    const struct rt_supervisor_options root = {.name = "root", .owner = "driver", .tasks_max = 4};
    struct rt_supervisor *supervisor = NULL;
    struct io_log_recovery recovery;
    struct io_log_options options = {.dir = "log",
                                     .direct = true, /* as the ledger's */
                                     .name = "driver",
                                     .kind = 1,
                                     .segment_bytes = 1 << 20,
                                     .ahead_bytes = 512 << 10,
                                     .group_bytes = 64 << 10};
    struct ron_errinfo info = {0};
    struct io_log *log = NULL;
    uint64_t count = 0, group = 1;
    int status;

    if (argc < 3 || !parse(argv[2], &count) || (argc > 3 && !parse(argv[3], &group)) || group == 0)
        return 2;
    rt_init();
    if (rt_supervisor_new(&root, &supervisor, &info) != RON_ERR_OK ||
        io_vfs_posix_new(argv[1], true, &options.vfs, &info) != RON_ERR_OK)
        return fprintf(stderr, "%s\n", info.message), 1;
    options.supervisor = supervisor;
    if (io_log_open(&options, &log, &recovery, &info) != RON_ERR_OK) {
        fprintf(stderr, "%s\n", info.message);
        return info.err == RON_ERR_CONFLICT       ? 4
               : info.err == RON_ERR_WAL_CORRUPT  ? 5
               : info.err == RON_ERR_MALFORMED    ? 6
               : info.err == RON_ERR_VERSION_SKEW ? 7
                                                  : 1;
    }
    if (check_all(log) != 0)
        return fputs("a record is wrong\n", stderr), 1;
    say("open", recovery.last_index == 0 ? "0" : "", recovery.last_index);
    status = append_all(log, count, group);
    if (io_log_close(log, rt_deadline_after_ms(60000), &info) != RON_ERR_OK && status == 0)
        status = 1;
    RON_MUST_ZERO(rt_supervisor_stop(supervisor, rt_deadline_after_ms(60000), NULL));
    rt_supervisor_free(supervisor);
    io_vfs_free(options.vfs);
    return status;
}
