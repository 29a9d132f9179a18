/*
 * ledger_store.c - `ron ledger backup | restore`: a copy of the ledger in a data directory
 * (ledger/backup.h), verified as a whole afterwards.
 */
#include <string.h>

#include "cli/ledger_impl.h"
#include "cli/ledger_verify.h"
#include "ledger/backup.h"
#include "rt/clock.h"

static enum ron_err tell(void *context, const char *dir, uint64_t files_done, uint64_t files_total,
                         struct ron_errinfo *reterr)
{
    (void)reterr;
    ledger_progress(context, dir, files_done, files_total);
    return RON_ERR_OK;
}

/* What a backup says of itself: written for a new one, believed of an old one only if it is so. */
static int settle_note(const struct ledger_args *args, const struct ledger_copy_options *options,
                       const struct ledger_copy_report *copied, bool is_backup,
                       const struct ledger_verify_report *report) RON_BLOCKS
{
    const struct ledger_backup_note note = {
        .entries_count = report->tree.size,
        .root = report->tree.root,
        .made_ms = rt_utc_ms(),
        .has_key = copied->has_key,
    };
    struct ron_errinfo info = {0};

    if (!is_backup)
        return verify_note(args, options->from, report);
    return ledger_backup_note_write(options->to, "", &note, &info) == RON_ERR_OK
               ? CMD_OK
               : ledger_failed(args, &info);
}

static int copy_and_verify(const struct ledger_args *args,
                           const struct ledger_copy_options *options, bool is_backup) RON_BLOCKS
{
    struct ledger_verify_report report;
    struct ledger_copy_report copied;
    struct ron_errinfo info = {0};
    enum ron_err err = ledger_copy(options, &copied, &info);
    int status;

    ledger_progress(args, NULL, 0, 0);
    if (err != RON_ERR_OK)
        return ledger_failed(args, &info);
    status = verify_open_dir(args, options->to, &report);
    if (status == CMD_OK)
        status = settle_note(args, options, &copied, is_backup, &report);
    if (status != CMD_OK)
        return status;
    printf(args->json ? "{\"files\":%llu,\"bytes\":%llu,\"entries\":%llu,\"key\":%s}\n"
                      : "%llu files, %llu bytes, %llu entries, verified; the log's key: %s\n",
           (unsigned long long)copied.files_count, (unsigned long long)copied.bytes_count,
           (unsigned long long)report.tree.size,
           copied.has_key ? (args->json ? "true" : "copied")
                          : (args->json ? "false"
                                        : "not copied: without it the copy is served only as a new "
                                          "log"));
    return CMD_OK;
}

/* What was not there before is not there after a failure; but a copy that does not verify stays, to
 * be looked at. */
static int copy(const struct ledger_args *args, const char *from, const char *to, bool with_key,
                bool is_backup) RON_BLOCKS
{
    struct ledger_copy_options options = {
        .from_dir = "",
        .to_dir = "",
        .with_key = with_key,
        .tick = tell,
        .context = (void *)(uintptr_t)args, /* read only */
    };
    const char *expected = is_backup ? "--data DIR, a data directory (of ron serve)"
                                     : "a backup (of ron ledger backup)";
    bool made = false;
    int status = dir_open(args, from, expected, &options.from);

    if (status == CMD_OK)
        status = dir_make(args, to, &made, &options.to);
    if (status == CMD_OK)
        status = copy_and_verify(args, &options, is_backup);
    if (status != CMD_OK && made)
        io_vfs_drop_dir(options.to, "");
    (void)io_vfs_free(options.to);
    (void)io_vfs_free(options.from);
    return status;
}

int ledger_backup(const struct ledger_args *args)
{
    return copy(args, args->data != NULL ? args->data : "ron-data", args->words[0], args->with_key,
                true);
}

int ledger_restore(const struct ledger_args *args)
{
    if (args->data == NULL)
        return ledger_usage(args, "--data DIR: where to");
    return copy(args, args->words[0], args->data, true, false);
}
