/*
 * test_log_up_to_damage_direct.c - the tests of test_log_up_to_damage.c, of a log that is written
 * past the cache.
 */
#define WORLD_DIRECT true
#include "test_log_up_to_damage.c"
