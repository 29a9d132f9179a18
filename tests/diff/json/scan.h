/*
 * scan.h - what a document holds on which parsers may differ, found without any parser.
 */
#ifndef RON_TESTS_DIFF_JSON_SCAN_H
#define RON_TESTS_DIFF_JSON_SCAN_H

#include "base/bytes.h"

/* X(name, text) */
#define FEATURE_MAP(X)                                             \
    X(FRACTION, "a number with a fraction or an exponent")         \
    X(NEGATIVE_ZERO, "the number -0")                              \
    X(BEYOND_U128, "an integer of 2^128 or beyond")                \
    X(TOO_DEEP, "a depth above 32")                                \
    X(LONE_SURROGATE, "an escape of a lone surrogate")             \
    X(CONSTANT, "NaN or Infinity")                                 \
    X(BEYOND_I64, "an integer that 64 bits with sign do not hold") \
    X(NUL_IN_NAME, "U+0000 in a name")                             \
    X(NUL_OUTSIDE, "a NUL byte outside of strings")                \
    X(BEYOND_DOUBLE, "an integer beyond 2^53 - 1")

enum feature {
#define X(name, text) FEATURE_##name,
    FEATURE_MAP(X)
#undef X
        FEATURES_COUNT
};

/* The set of features, 1 << feature each. Exact if the document is JSON (with Python's constants),
 * anything otherwise. */
uint32_t scan_document(struct ron_slice text);

#endif
