/*
 * test_log_ends_direct.c - the tests of test_log_ends.c, of a log that is written past the cache.
 */
#define WORLD_DIRECT true
#include "test_log_ends.c"
