/*
 * nasty_json.h - JSON texts that are dear to read: many values, many members, many escapes.
 */
#ifndef RON_TESTS_NASTY_JSON_H
#define RON_TESTS_NASTY_JSON_H

#include "nasty.h"

static const struct nasty_input nasty_json_inputs[] = {
    {"deep arrays", "", "[", "", false},
    {"deep objects", "", "{\"\":", "", false},
    {"empty arrays", "[[]", ",[]", "]", true},
    {"empty objects", "[{}", ",{}", "]", true},
    {"one-member objects", "[0", ",{\"\":0}", "]", true},
    {"the same member", "{\"\":0", ",\"\":0", "}", false},
    {"members at 32 levels", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[{\"\":0", ",\"%\":0",
     "}]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", true},
    {"many members", "{\"\":0", ",\"%\":0", "}", true},
    {"many escaped members", "{\"\":0", ",\"%\\n\":\"\\n\"", "}", true},
    {"a duplicate at the end", "{\"\":0", ",\"%\":0", ",\"\":0}", false},
    {"members, common prefix", "{\"\":0", ",\"^%\":0", "}", true},
    {"members, escaped prefix", "{\"\":0", ",\"\\u0061^%\":0", "}", true},
    {"17-member objects", "[0",
     ",{\"a\":0,\"b\":0,\"c\":0,\"d\":0,\"e\":0,\"f\":0,\"g\":0,\"h\":0,\"i\":0,\"j\":0,\"k\":0,"
     "\"l\":0,\"m\":0,\"n\":0,\"o\":0,\"p\":0,\"q\":0}",
     "]", true},
    {"escaped strings", "[0", ",\"\\n\"", "]", true},
    {"one long escape", "\"\\n", "a", "\"", true},
    {"all NUL escapes", "\"", "\\u0000", "\"", true},
    {"all surrogate pairs", "\"", "\\ud83d\\ude00", "\"", true},
    {"no closing quote", "\"", "\\u20ac", "", false},
    {"escape and accent", "\"", "\\n\xc3\xa9", "\"", true},
    {"accents", "\"", "\xc3\xa9", "\"", true},
    {"almost UTF-8", "\"", "\xf0\x9f\x98\x80", "\xf0\x9f\x98\"", false},
    {"digits", "", "1", "", false},
    {"long numbers", "[0", ",340282366920938463463374607431768211455", "]", true},
    {"white space", "", " \n", "0", true},
    {"spaced arrays", "[0", " , [ ] ", "]", true},
};

enum { NASTY_JSON_COUNT = sizeof(nasty_json_inputs) / sizeof(nasty_json_inputs[0]) };

#endif
