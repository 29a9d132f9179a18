/*
 * test_tlog_direct.c - the tests of test_tlog.c, with tiles of leaves written past the cache.
 */
#define TLOG_DIRECT true
#include "test_tlog.c"
