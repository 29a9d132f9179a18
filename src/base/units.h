/*
 * units.h - durations ("250ms") and sizes ("64KiB") as people write them in configuration.
 *
 * Whole numbers only, one number and one unit, nothing between or around them. Numbers follow
 * decimal.h. Failures are RON_ERR_MALFORMED and name the position and the allowed units.
 */
#ifndef RON_BASE_UNITS_H
#define RON_BASE_UNITS_H

#include "base/bytes.h"

#define RON_UNITS_TEXT_SIZE 24 /* 20 digits, a unit of at most 3 and NUL */

/* Units ns us ms s m h d; a unit is required, even for 0. The result is in nanoseconds. */
enum ron_err ron_duration_parse(struct ron_slice text, uint64_t *ret_duration_ns,
                                struct ron_errinfo *reterr) RON_MUST_USE;
/* Units B, KB MB GB TB (powers of 1000), KiB MiB GiB TiB (powers of 1024); none means bytes. */
enum ron_err ron_size_parse(struct ron_slice text, uint64_t *ret_size,
                            struct ron_errinfo *reterr) RON_MUST_USE;

/* In the largest unit that gives a whole number; 0 is "0s". Returns the number of characters, NUL
 * apart. Parsing the text gives the value back. */
size_t ron_duration_print(uint64_t duration_ns, char text[static RON_UNITS_TEXT_SIZE]);
/* In the largest of B KiB MiB GiB TiB that gives a whole number; 0 is "0B". */
size_t ron_size_print(uint64_t size, char text[static RON_UNITS_TEXT_SIZE]);

#endif
