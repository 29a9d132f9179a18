/*
 * oracle.h - other JSON parsers, asked for verdict and value.
 */
#ifndef RON_TESTS_DIFF_JSON_ORACLE_H
#define RON_TESTS_DIFF_JSON_ORACLE_H

#include <sys/types.h>

#include "base/bytes.h"

struct verdict {
    bool accepted;
    bool reordered;             /* canonical differs from ordered */
    struct ron_slice ordered;   /* the value as compact text, members in document order */
    struct ron_slice canonical; /* the same in RFC 8785 order; Python only */
};

#if RON_HAVE_JANSSON
/* Judge text; if accepted and wanted, append the value's compact text to buf. */
bool jansson_judge(struct ron_slice text, bool value_wanted, struct ron_buf *buf);
#endif

/* A child process running judge.py. */
struct python {
    pid_t pid;
    int to_child;
    int from_child;
    struct ron_buf request; /* the batch being put together */
    struct ron_buf reply;
    size_t reply_at;
};

/* Each of these exits the program with a message if the child does not play along. */
void python_start(struct python *python, const char *judge_path);
void python_add(struct python *python, struct ron_slice text);
void python_send(struct python *python);    /* the batch; a new one begins */
void python_receive(struct python *python); /* the answers to the batch sent */
void python_next(struct python *python, struct verdict *ret_verdict);
void python_stop(struct python *python);

#endif
