/*
 * ledger_verify.h - checking a directory, for `ron ledger verify` and after every copy.
 */
#ifndef RON_CLI_LEDGER_VERIFY_H
#define RON_CLI_LEDGER_VERIFY_H

#include "cli/ledger_impl.h"
#include "ledger/verify_dir.h"

/* With --vkey and --since, where they are given. CMD_OK: every link holds, nothing is printed; else
 * said which one does not. */
int verify_open_dir(const struct ledger_args *args, struct io_vfs *vfs,
                    struct ledger_verify_report *ret_report) RON_BLOCKS;
/* Of a backup (ledger/backup.h): has it what its note says? Without a note there is nothing to say.
 */
int verify_note(const struct ledger_args *args, struct io_vfs *vfs,
                const struct ledger_verify_report *report) RON_BLOCKS;
/* A file that --vkey or --since named, without newlines at its end if `trimmed`, and never empty;
 * path NULL: none. */
int verify_read_file(const struct ledger_args *args, const char *path, size_t size_max,
                     bool trimmed, struct ron_buf *buf) RON_BLOCKS;

#endif
