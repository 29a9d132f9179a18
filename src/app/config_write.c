/*
 * config_write.c - a configuration as ron.toml. See config.h.
 */
#include "app/config_impl.h"

#include "base/assert.h"

/* "[server.tls]" where the section of a key differs from the one before it. */
static void put_section(struct ron_buf *buf, unsigned key)
{
    const char *path = config_rows[key].path;
    const char *before = key == 0 ? "" : config_rows[key - 1].path;
    const char *dot = strrchr(path, '.');
    const char *dot_before = strrchr(before, '.');
    struct ron_slice section = ron_slice_of(path, (size_t)(dot - path));

    if (dot_before != NULL &&
        ron_slice_equal(section, ron_slice_of(before, (size_t)(dot_before - before))))
        return;
    ron_buf_put_format(buf, "%s[%.*s]\n", key == 0 ? "" : "\n", RON_SLICE_FMT(section));
}

void config_write(const struct config *config, struct ron_buf *buf)
{
    for (unsigned i = 0; i < CONFIG__MAX; i++) {
        put_section(buf, i);
        ron_buf_put_format(buf, "%s = ", strrchr(config_rows[i].path, '.') + 1);
        config_value_print(&config_rows[i], &config->values[i], buf);
        ron_buf_put_format(buf, "  # %s\n", config->values[i].origin);
    }
}

void config_write_default(struct ron_buf *buf)
{
    struct config_sources sources = {0};
    char name[CONFIG_VARIABLE_SIZE];
    struct config *config;

    if (config_load(&sources, &config, NULL) != RON_ERR_OK) {
        buf->failure = buf->failure != RON_ERR_OK ? buf->failure : RON_ERR_NO_MEMORY;
        return;
    }
    ron_buf_put_text(buf,
                     "# Every key of ron with its default. Later wins: this file, environment, "
                     "flags.\n\n");
    for (unsigned i = 0; i < CONFIG__MAX; i++) {
        const struct config_row *row = &config_rows[i];

        put_section(buf, i);
        config_variable((enum config_key)i, name);
        ron_buf_put_format(buf, "# %s%s\n# %s\n", row->meaning,
                           row->hot ? " (SIGHUP reloads it)" : "", name);
        ron_buf_put_format(buf, "%s = ", strrchr(row->path, '.') + 1);
        config_value_print(row, &config->values[i], buf);
        ron_buf_put_byte(buf, '\n');
    }
    (void)config_free(config);
}
