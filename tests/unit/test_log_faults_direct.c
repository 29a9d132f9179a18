/*
 * test_log_faults_direct.c - the tests of test_log_faults.c, of a log that is written past the
 * cache.
 */
#define WORLD_DIRECT true
#include "test_log_faults.c"
