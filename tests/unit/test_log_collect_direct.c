/*
 * test_log_collect_direct.c - the tests of test_log_collect.c, of a log that is written past the
 * cache.
 */
#define WORLD_DIRECT true
#include "test_log_collect.c"
