/*
 * ledger_verify.c - `ron ledger verify` of a directory, and `ron ledger replay`.
 */
#include "cli/ledger_verify.h"

#include <string.h>

#include "base/assert.h"
#include "base/hex.h"
#include "io/path_file.h"
#include "ledger/backup.h"
#include "ledger/replay_dir.h"
#include "rt/registry.h"

enum { ACCOUNTS_OTHERWISE = 1 << 16 };

int verify_read_file(const struct ledger_args *args, const char *path, size_t size_max,
                     bool trimmed, struct ron_buf *buf)
{
    struct ron_errinfo info = {0};

    if (path == NULL)
        return CMD_OK;
    if (io_path_read(path, size_max, buf, &info) != RON_ERR_OK)
        return ledger_failed(args, &info);
    while (trimmed && buf->size > 0 && buf->data[buf->size - 1] == '\n')
        buf->size--;
    if (buf->size == 0) { /* it would count as not given */
        fprintf(stderr, "ron ledger %s: %s is empty\n", args->verb, path);
        return CMD_FAILED;
    }
    return CMD_OK;
}

static void tell_verify(void *context, uint64_t done, uint64_t total)
{
    ledger_progress(context, "verify", done, total);
}

static int say_broken(const struct ledger_args *args, const struct io_vfs *vfs,
                      const struct ledger_verify_report *report, const struct ron_errinfo *info)
{
    if (report->link == NULL) {
        (void)ledger_failed(args, info);
        return damage_status(info->err);
    }
    fprintf(stderr, "ron ledger %s: broken link: %s: %s\n", args->verb, report->link,
            info->message);
    if (report->file[0] != '\0')
        fprintf(stderr, "%s/%s:%llu\n", io_vfs_name(vfs), report->file,
                (unsigned long long)report->offset);
    if (args->json)
        printf("{\"sound\":false,\"link\":\"%s\",\"file\":\"%s\",\"offset\":%llu,\"code\":\"%s\"}"
               "\n",
               report->link, report->file, (unsigned long long)report->offset,
               ron_err_symbol(info->err));
    return CMD_DAMAGED;
}

int verify_note(const struct ledger_args *args, struct io_vfs *vfs,
                const struct ledger_verify_report *report)
{
    struct ledger_verify_report broken = {.link = "backup", .file = "backup.json"};
    struct ron_errinfo info = {0};
    struct ledger_backup_note note;
    enum ron_err err = ledger_backup_note_read(vfs, "", &note, &info);

    if (err == RON_ERR_NOT_FOUND)
        return CMD_OK;
    if (err == RON_ERR_OK && report->tree.size < note.entries_count)
        err = ron_fail(&info, RON_ERR_CHAIN_MISMATCH, "%llu entries, the backup had %llu",
                       (unsigned long long)report->tree.size,
                       (unsigned long long)note.entries_count);
    if (err == RON_ERR_OK && report->tree.size == note.entries_count &&
        memcmp(report->tree.root.bytes, note.root.bytes, RON_SHA256_SIZE) != 0)
        err = ron_fail(&info, RON_ERR_CHAIN_MISMATCH, "another root than the backup had");
    return err == RON_ERR_OK ? CMD_OK : say_broken(args, vfs, &broken, &info);
}

int verify_open_dir(const struct ledger_args *args, struct io_vfs *vfs,
                    struct ledger_verify_report *ret_report)
{
    struct ledger_verify_options options = {.vfs = vfs,
                                            .dir = "ledger",
                                            .progress = tell_verify,
                                            .context = (void *)(uintptr_t)args}; /* read only */
    struct ron_errinfo info = {0};
    struct ron_buf vkey, note;
    struct ledger_survey survey;
    int status;
    enum ron_err err;

    ron_buf_init(&vkey, RON_VKEY_SIZE_MAX + 2);
    ron_buf_init(&note, RON_NOTE_SIZE_MAX);
    status = verify_read_file(args, args->vkey, RON_VKEY_SIZE_MAX + 2, true, &vkey);
    if (status == CMD_OK)
        status = verify_read_file(args, args->since, RON_NOTE_SIZE_MAX, false, &note);
    if (status == CMD_OK) {
        /* What the survey cannot read the verifier finds too, and names. */
        options.capacity = ledger_survey_dir(vfs, "ledger", &survey, NULL) == RON_ERR_OK
                               ? survey.capacity
                               : ledger_capacity_of(ACCOUNTS_OTHERWISE);
        options.vkey = ron_buf_slice(&vkey);
        options.note = ron_buf_slice(&note);
        err = ledger_verify_dir(&options, ret_report, &info);
        ledger_progress(args, NULL, 0, 0);
        status = err == RON_ERR_OK ? verify_note(args, vfs, ret_report)
                                   : say_broken(args, vfs, ret_report, &info);
    }
    ron_buf_fini(&note);
    ron_buf_fini(&vkey);
    return status;
}

/* What was found out, not what was asked for. */
static const char *signature_text(const struct ledger_verify_report *report)
{
    const bool has_head = report->signature != LEDGER_SIGNATURE_NO_HEAD;

    switch (has_head ? report->signature : report->note_signature) {
    case LEDGER_SIGNATURE_NO_HEAD:
        return report->tree.size == 0 ? "none: the log has no entries yet"
                                      : "none: no signed head is there, so nothing was checked";
    case LEDGER_SIGNATURE_UNCHECKED:
        return "not looked at: no key that may be read is there; give --vkey FILE, which its "
               "server has at /checkpoint/vkey";
    case LEDGER_SIGNATURE_BY_OWN_KEY:
        return has_head ? "checked by the key in the directory"
                        : "checked by the key in the directory, of the note alone: no signed head "
                          "is there";
    case LEDGER_SIGNATURE_BY_VKEY:
        return has_head ? "checked by --vkey"
                        : "checked by --vkey, of the note alone: no signed head is there";
    }
    RON_UNREACHABLE();
}

/* Of the head, else of the note; as JSON. */
static const char *signed_by(const struct ledger_verify_report *report)
{
    const enum ledger_signature by = report->signature != LEDGER_SIGNATURE_NO_HEAD
                                         ? report->signature
                                         : report->note_signature;

    return by == LEDGER_SIGNATURE_BY_VKEY      ? "true,\"signature_by\":\"vkey\""
           : by == LEDGER_SIGNATURE_BY_OWN_KEY ? "true,\"signature_by\":\"directory\""
                                               : "false,\"signature_by\":null";
}

static void print_sound(const struct ledger_args *args, const struct ledger_verify_report *report)
{
    char root[RON_HEX_SIZE(RON_SHA256_SIZE)];

    (void)ron_hex_encode(ron_slice_of(report->tree.root.bytes, RON_SHA256_SIZE), root,
                         sizeof(root));
    printf(args->json
               ? "{\"sound\":true,\"segments\":%llu,\"bytes\":%llu,\"batches\":%llu,\"entries\":"
                 "%llu,\"root\":\"%s\",\"tiles\":%llu,\"checkpoint\":%llu,\"torn_bytes\":%llu,"
                 "\"signed_head\":"
               : "sound: %llu segments, %llu bytes, %llu batches, %llu entries\nroot       %s\n"
                 "tiles      %llu entries\ncheckpoint %llu entries\ntorn tail  %llu bytes\n",
           (unsigned long long)report->segments_count, (unsigned long long)report->bytes_count,
           (unsigned long long)report->batches_count, (unsigned long long)report->tree.size, root,
           (unsigned long long)report->tiles_size, (unsigned long long)report->checkpoint_size,
           (unsigned long long)report->torn_bytes);
    if (args->json)
        printf("%s,\"signature\":%s}\n",
               report->signature != LEDGER_SIGNATURE_NO_HEAD ? "true" : "false", signed_by(report));
    else
        printf("signature  %s\n", signature_text(report));
}

static bool is_url(const char *text)
{
    return strstr(text, "://") != NULL || strncmp(text, "unix:", 5) == 0;
}

int ledger_verify(const struct ledger_args *args)
{
    struct ledger_args at_url = *args;
    struct ledger_verify_report report;
    struct io_vfs *vfs = NULL;
    const char *path = args->words_count == 1 ? args->words[0]
                       : args->data != NULL   ? args->data
                                              : "ron-data";
    int status;

    if (args->words_count == 1 && is_url(args->words[0])) {
        at_url.url = args->words[0];
        return ledger_verify_url(&at_url);
    }
    if (args->url != NULL)
        return ledger_verify_url(args);
    status = dir_open(args, path, LEDGER_DIR_EXPECTED ", or a server's URL", &vfs);
    if (status == CMD_OK)
        status = verify_open_dir(args, vfs, &report);
    if (status == CMD_OK)
        print_sound(args, &report);
    (void)io_vfs_free(vfs);
    return status;
}

/* --- Replay ----------------------------------------------------------------------------------- */

static void tell_replay(void *context, uint64_t done, uint64_t total)
{
    ledger_progress(context, "replay", done, total);
}

static void print_replay(const struct ledger_args *args,
                         const struct ledger_replay_dir_report *report)
{
    char root[RON_HEX_SIZE(RON_SHA256_SIZE)], state[RON_HEX_SIZE(RON_SHA256_SIZE)];
    const uint64_t us = report->replay_ns / 1000 + 1;

    (void)ron_hex_encode(ron_slice_of(report->tree.root.bytes, RON_SHA256_SIZE), root,
                         sizeof(root));
    (void)ron_hex_encode(ron_slice_of(report->state_root.bytes, RON_SHA256_SIZE), state,
                         sizeof(state));
    printf(args->json
               ? "{\"batches\":%llu,\"entries\":%llu,\"ms\":%llu,\"entries_per_s\":%llu,\"root\":"
                 "\"%s\",\"state_root\":\"%s\",\"rows\":%llu,\"anchors\":%llu,\"anchors_checked\":"
                 "%llu}\n"
               : "%llu batches, %llu entries in %llu ms: %llu entries/s\nroot       %s\n"
                 "state root %s over %llu rows\nanchored states: %llu, of the newest %llu agree\n",
           (unsigned long long)report->batches_count, (unsigned long long)report->entries_count,
           (unsigned long long)(us / 1000),
           (unsigned long long)(report->entries_count * 1000000 / us), root, state,
           (unsigned long long)report->rows_count, (unsigned long long)report->survey.anchors_count,
           (unsigned long long)report->anchors_checked);
}

int ledger_replay_verb(const struct ledger_args *args)
{
    static struct ledger_replay_dir_report report;
    struct ledger_replay_dir_options options = {
        .dir = "ledger", .progress = tell_replay, .context = (void *)(uintptr_t)args};
    struct ron_errinfo info = {0};
    const char *path = args->words_count == 1 ? args->words[0]
                       : args->data != NULL   ? args->data
                                              : "ron-data";
    int status = dir_open(args, path, LEDGER_DIR_EXPECTED, &options.vfs);

    if (status != CMD_OK)
        return status;
    rt_init(); /* it has a task */
    if (ledger_replay_dir(&options, &report, &info) == RON_ERR_OK) {
        ledger_progress(args, NULL, 0, 0);
        print_replay(args, &report);
    } else {
        ledger_progress(args, NULL, 0, 0);
        (void)ledger_failed(args, &info);
        status = damage_status(info.err);
    }
    (void)io_vfs_free(options.vfs);
    return status;
}
