/*
 * config_impl.h - what the files of the configuration share.
 */
#ifndef RON_APP_CONFIG_IMPL_H
#define RON_APP_CONFIG_IMPL_H

#include "app/config.h"
#include "base/arena.h"
#include "base/toml.h"

enum config_type {
    CONFIG_BOOL,
    CONFIG_COUNT,
    CONFIG_DURATION,
    CONFIG_SIZE,
    CONFIG_TEXT,
    CONFIG_CHOICE
};

struct config_row {
    const char *path;
    enum config_type type;
    const char *value; /* the default */
    uint64_t least, most;
    bool hot;
    const char *meaning;
};
extern const struct config_row config_rows[CONFIG__MAX];

struct config_value {
    uint64_t number;  /* BOOL: 0 or 1 */
    const char *text; /* TEXT, CHOICE */
    const char *origin;
};
struct config {
    struct ron_arena arena; /* owns texts and origins */
    struct config_value values[CONFIG__MAX];
};

/* Read one value from text as it stands in a variable or flag (numbers and words bare), or from a
 * node of the file. `text` of the result borrows. The message says what is wrong, not where. */
enum ron_err config_value_read(const struct config_row *row, struct ron_slice text,
                               struct config_value *ret_value, struct ron_arena *arena,
                               struct ron_errinfo *reterr) RON_MUST_USE;
enum ron_err config_value_node(const struct config_row *row, const struct ron_toml_node *node,
                               struct config_value *ret_value, struct ron_arena *arena,
                               struct ron_errinfo *reterr) RON_MUST_USE;
/* As it stands in the file, quotes included. */
void config_value_print(const struct config_row *row, const struct config_value *value,
                        struct ron_buf *buf);

#endif
