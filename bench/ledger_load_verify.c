/*
 * ledger_load_verify.c - what the server left on disk, link by link (ledger/verify_dir.h): frames
 * done again, state and conservation, tiles.
 */
#include <stdio.h>

#include "harness.h"
#include "io/vfs.h"
#include "ledger/replay_dir.h"
#include "ledger/verify_dir.h"
#include "ledger_load.h"

int load_verify(const char *data)
{
    struct ledger_verify_options options = {.dir = "ledger"};
    struct ledger_survey survey;
    struct ledger_verify_report report = {0};
    struct ron_errinfo info = {0};
    const uint64_t begin_ns = bench_now_ns();
    enum ron_err err;

    load_must(io_vfs_posix_new(data, false, &options.vfs, &info), &info);
    load_must(ledger_survey_dir(options.vfs, "ledger", &survey, &info), &info);
    options.capacity = survey.capacity; /* room for every id */
    err = ledger_verify_dir(&options, &report, &info);
    if (err != RON_ERR_OK && report.link != NULL)
        (void)fprintf(stderr, "ledger_load: %s is broken in %s at %llu\n", report.link, report.file,
                      (unsigned long long)report.offset);
    load_must(err, &info);
    (void)printf("{\"seconds\":%.6f,\"entries\":%llu,\"batches\":%llu,\"log_bytes\":%llu,"
                 "\"tiles_size\":%llu}\n",
                 (double)(bench_now_ns() - begin_ns) / 1e9, (unsigned long long)report.tree.size,
                 (unsigned long long)report.batches_count, (unsigned long long)report.bytes_count,
                 (unsigned long long)report.tiles_size);
    (void)io_vfs_free(options.vfs);
    return 0;
}
