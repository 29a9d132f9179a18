/*
 * printable.h - untrusted bytes made fit for a message or a log line.
 */
#ifndef RON_BASE_PRINTABLE_H
#define RON_BASE_PRINTABLE_H

#include "base/bytes.h"

/* Write text as printable ASCII and a NUL: a quote, a backslash and everything outside 0x20..0x7e
 * becomes \xNN; what does not fit is cut between characters and marked by "...". out_size is at
 * least
 * 8. Returns out. */
const char *ron_printable(struct ron_slice text, char *out, size_t out_size);

#endif
