/*
 * test_tlog_crash_direct.c - the tests of test_tlog_crash.c, with tiles of leaves written past the
 * cache.
 */
#define TLOG_DIRECT true
#include "test_tlog_crash.c"
