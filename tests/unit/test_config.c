/*
 * test_config.c - the configuration. Method: each source over the one before it with its origin,
 * each way to be wrong with its place, the written defaults read back.
 */
#include "support.h"

#include <stdio.h>

#include "app/config.h"
#include "base/mem.h"

struct problems {
    size_t count;
    char first[200], last[200];
};

static void note_problem(void *context, const char *message)
{
    struct problems *problems = context;

    snprintf(problems->count == 0 ? problems->first : problems->last, 200, "%s", message);
    problems->count++;
}

static struct config *load(const char *file, const char *const *environment,
                           const struct config_flag *flags, size_t flags_count)
{
    struct config_sources sources = {
        .file_name = file == NULL ? NULL : "ron.toml",
        .file_text = ron_slice_text(file == NULL ? "" : file),
        .environment = environment,
        .flags = flags,
        .flags_count = flags_count,
    };
    struct config *config = NULL;

    assert_ok(config_load(&sources, &config, NULL));
    return config;
}

/* The file is refused with exactly this as its first problem, and this many in all. */
static void refuse(const char *file, const char *message, size_t count)
{
    struct problems problems = {0};
    struct config_sources sources = {
        .file_name = "ron.toml",
        .file_text = ron_slice_text(file),
        .problem = note_problem,
        .context = &problems,
    };
    struct config *config = (struct config *)&problems;
    struct ron_errinfo info = {0};

    support_assert_error(config_load(&sources, &config, &info), &info, RON_ERR_MALFORMED, message);
    assert_ptr_equal(config, &problems);
    assert_string_equal(problems.first, message);
    assert_int_equal(problems.count, count);
}

/* covers: LED-V06 */
static void defaults_are_there_without_any_source(void **state)
{
    struct config *config = load(NULL, NULL, NULL, 0);

    (void)state;
    assert_string_equal(config_text(config, CONFIG_SERVER_LISTEN), "127.0.0.1:7700");
    assert_string_equal(config_text(config, CONFIG_SERVER_ADMIN), "127.0.0.1:7701");
    assert_int_equal(config_number(config, CONFIG_SERVER_HEAD_TIMEOUT), 5000000000);
    assert_int_equal(config_number(config, CONFIG_SERVER_IDLE_TIMEOUT), 60000000000);
    assert_int_equal(config_number(config, CONFIG_SERVER_MAX_BYTES), 64 << 20);
    assert_string_equal(config_origin(config, CONFIG_SERVER_LISTEN), "default");
    config_free(config);
}

/* covers: LED-C23 */
static void loops_are_a_quarter_of_the_processors(void **state)
{
    static const uint32_t rows[][2] = {{1, 1}, {4, 1}, {7, 1}, {8, 2}, {64, 16}, {1000, 64}};
    struct config *config = load(NULL, NULL, NULL, 0);

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(rows); i++)
        assert_int_equal(config_loops(config, rows[i][0]), rows[i][1]);
    config_free(config);
    config = load("[server]\nloops = 3\n", NULL, NULL, 0);
    assert_int_equal(config_loops(config, 64), 3);
    config_free(config);
}

/* covers: LED-F37 */
static void a_later_source_wins_and_is_named(void **state)
{
    static const char *const environment[] = {"HOME=/", "RON_SERVER__MAX_CONNS=30",
                                              "RON_SERVER__LOOPS=3", "RON_HOME=x", NULL};
    static const struct config_flag flags[] = {{"--loops", CONFIG_SERVER_LOOPS, "4"}};
    struct config *config = load("[server]\nmax_conns = 20\nloops = 2\ndata = \"d\"\n", environment,
                                 flags, 1);

    (void)state;
    assert_int_equal(config_number(config, CONFIG_SERVER_LOOPS), 4);
    assert_string_equal(config_origin(config, CONFIG_SERVER_LOOPS), "--loops");
    assert_int_equal(config_number(config, CONFIG_SERVER_MAX_CONNS), 30);
    assert_string_equal(config_origin(config, CONFIG_SERVER_MAX_CONNS), "RON_SERVER__MAX_CONNS");
    assert_string_equal(config_text(config, CONFIG_SERVER_DATA), "d");
    assert_string_equal(config_origin(config, CONFIG_SERVER_DATA), "ron.toml:4");
    config_free(config);
}

static void every_spelling_of_a_section_is_one(void **state)
{
    static const char *const files[] = {"[server.tls]\nkey = \"k\"", "server.tls.key = \"k\"",
                                        "server = {tls = {key = \"k\"}}",
                                        "[server]\ntls.key = \"k\""};

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(files); i++) {
        struct config *config = load(files[i], NULL, NULL, 0);

        assert_string_equal(config_text(config, CONFIG_SERVER_TLS_KEY), "k");
        config_free(config);
    }
}

static void what_is_wrong_is_said_with_its_place(void **state)
{
    (void)state;
    refuse("[server]\n\nlisen = \"x\"\n",
           "ron.toml:3:1: unknown key server.lisen; did you mean server.listen?", 1);
    /* One sequencer and one committer: nothing to choose. covers: LED-C24 */
    refuse("[ledger.concurrency]\nsequencers = 2\n",
           "ron.toml:2:1: unknown key ledger.concurrency.sequencers", 1);
    refuse("[ledger.concurrency]\ncommitters = 2\n",
           "ron.toml:2:1: unknown key ledger.concurrency.committers", 1);
    refuse("[nothing]\nlike = 1\n", "ron.toml:1:2: unknown key nothing", 1);
    refuse("\"server.listen\" = \"x\"\n",
           "ron.toml:1:1: unknown key server.listen; did you mean server.listen?", 1);
    refuse("[\"server.tls\"]\nkey = \"x\"\n", "ron.toml:1:2: unknown key server.tls", 1);
    /* A NUL must not end the name where the known part of it ends. */
    refuse("[\"server\\u0000x\"]\nlisten = \"127.0.0.1:1\"\n", "ron.toml:1:2: unknown key server",
           1);
    refuse("[server]\n\"listen\\u0000x\" = \"127.0.0.1:1\"\n",
           "ron.toml:2:1: unknown key server.listen; did you mean server.listen?", 1);
    refuse("[server]\n\"\" = 1\n", "ron.toml:2:1: unknown key server.", 1);
    refuse("server = 1\n", "ron.toml:1:1: unknown key server", 1);
    refuse("\"a\\nb\" = 1\n", "ron.toml:1:1: unknown key a\\x0ab", 1);
    refuse("[server]\nloops = 65\n", "ron.toml:2:9: server.loops must be from 0 to 64", 1);
    refuse("[server]\nloops = -1\n", "ron.toml:2:9: server.loops must not be negative", 1);
    refuse("[server]\nloops = \"2\"\n",
           "ron.toml:2:9: server.loops must be an integer, not a string", 1);
    refuse("[server]\nhead_timeout = 5\n",
           "ron.toml:2:16: server.head_timeout must be a string like \"5s\", not an integer", 1);
    refuse("[server]\nidle_timeout = \"2h\"\n",
           "ron.toml:2:16: server.idle_timeout must be from 1ms to 1h", 1);
    refuse("[server]\nmax_bytes = \"1KiB\"\n",
           "ron.toml:2:13: server.max_bytes must be from 1MiB to 1TiB", 1);
    refuse("[log]\nlevel = \"loud\"\n",
           "ron.toml:2:9: log.level must be one of debug info warn error", 1);
    refuse("[log]\nlevel = \"inf\"\n",
           "ron.toml:2:9: log.level must be one of debug info warn error", 1);
    refuse("[server]\nlisten = \"\"\n",
           "ron.toml:2:10: server.listen must have from 1 to 200 bytes", 1);
    refuse("[server]\ndata = \"a\\tb\"\n", "ron.toml:2:8: server.data has a control character at 1",
           1);
    refuse("[server]\nloops = 65\nlisen = 1\n[log]\nlevel = 3\n",
           "ron.toml:2:9: server.loops must be from 0 to 64", 3);
}

static void broken_toml_is_one_problem(void **state)
{
    struct problems problems = {0};
    struct config_sources sources = {.file_name = "x.toml",
                                     .file_text = RON_SLICE("[server\n"),
                                     .problem = note_problem,
                                     .context = &problems};
    struct config *config;

    (void)state;
    assert_int_equal(config_load(&sources, &config, NULL), RON_ERR_MALFORMED);
    assert_int_equal(problems.count, 1);
    assert_memory_equal(problems.first, "x.toml:1:", 9);
}

static void wrong_variables_and_flags_are_problems(void **state)
{
    static const char *const environment[] = {"RON_SERVER__LISEN=x", "RON_SERVER__LOOPS=two",
                                              "RON_OTHER=1", "RON_OTHER_LISTEN=1", NULL};
    static const struct config_flag flags[] = {{"--loops", CONFIG_SERVER_LOOPS, "65"}};
    struct problems problems = {0};
    struct config_sources sources = {.environment = environment,
                                     .flags = flags,
                                     .flags_count = 1,
                                     .problem = note_problem,
                                     .context = &problems};
    struct config *config;

    (void)state;
    assert_int_equal(config_load(&sources, &config, NULL), RON_ERR_MALFORMED);
    assert_int_equal(problems.count, 3);
    assert_string_equal(problems.first, "environment: RON_SERVER__LISEN names no key; did you mean "
                                        "server.listen?");
    assert_string_equal(problems.last, "--loops: server.loops must be from 0 to 64");
}

static void variables_that_are_nearly_ours_are_problems(void **state)
{
    static const struct {
        const char *variable, *problem;
    } cases[] = {
        {"RON_SERVER_LISTEN=x", "environment: RON_SERVER_LISTEN names no key; did you mean "
                                "RON_SERVER__LISTEN?"},
        {"RON_SERVER_MAX_CONNS=5", "environment: RON_SERVER_MAX_CONNS names no key; did you mean "
                                   "RON_SERVER__MAX_CONNS?"},
        {"RON_FAR__AWAY=1", "environment: RON_FAR__AWAY names no key; `ron config default` lists "
                            "them"},
        {"RON___=1", "environment: RON___ names no key; `ron config default` lists them"},
    };

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(cases); i++) {
        const char *const environment[] = {cases[i].variable, NULL};
        struct problems problems = {0};
        struct config_sources sources = {
            .environment = environment, .problem = note_problem, .context = &problems};
        struct config *config;

        assert_int_equal(config_load(&sources, &config, NULL), RON_ERR_MALFORMED);
        assert_int_equal(problems.count, 1);
        assert_string_equal(problems.first, cases[i].problem);
    }
}

static void reload_takes_hot_keys_only(void **state)
{
    struct config *now = load("[server]\nloops = 2\n", NULL, NULL, 0);
    struct config *hot = load("[server]\nloops = 2\n[log]\nlevel = \"debug\"\n", NULL, NULL, 0);
    struct config *cold = load("[log]\nlevel = \"debug\"\n[server]\nloops = 3\n", NULL, NULL, 0);
    struct ron_errinfo info = {0};

    (void)state;
    assert_ok(config_check_reload(now, hot, NULL));
    support_assert_error(
        config_check_reload(now, cold, &info), &info, RON_ERR_CONFLICT,
        "ron.toml:4: server.loops changes only with a restart; nothing was reloaded");
    config_free(now);
    config_free(hot);
    config_free(cold);
}

static void what_is_written_reads_back_the_same(void **state)
{
    static const char *const environment[] = {"RON_SERVER__DATA=a \"b\" \\ c", NULL};
    struct config *config = load("[server]\nhead_timeout = \"1500ms\"\n", environment, NULL, 0);
    struct config *back;
    struct ron_buf buf;

    (void)state;
    ron_buf_init(&buf, 1 << 16);
    config_write(config, &buf);
    ron_buf_put_byte(&buf, '\0');
    assert_ok(ron_buf_check(&buf, NULL));
    assert_non_null(strstr((char *)buf.data, "head_timeout = \"1500ms\"  # ron.toml:2\n"));
    back = load((char *)buf.data, NULL, NULL, 0);
    for (unsigned i = 0; i < CONFIG__MAX; i++)
        assert_memory_equal(config_origin(back, (enum config_key)i), "ron.toml:", 9);
    assert_string_equal(config_text(back, CONFIG_SERVER_DATA), "a \"b\" \\ c");
    assert_int_equal(config_number(back, CONFIG_SERVER_HEAD_TIMEOUT), 1500000000);
    config_free(config);
    config_free(back);

    ron_buf_reset(&buf);
    config_write_default(&buf);
    ron_buf_put_byte(&buf, '\0');
    back = load((char *)buf.data, NULL, NULL, 0);
    assert_string_equal(config_text(back, CONFIG_SERVER_LISTEN), "127.0.0.1:7700");
    assert_memory_equal(config_origin(back, CONFIG_OTLP_ENDPOINT), "ron.toml:", 9);
    config_free(back);
    ron_buf_fini(&buf);
}

static enum ron_err load_all(void *context, struct ron_errinfo *reterr)
{
    struct config_sources sources = {.file_name = "ron.toml",
                                     .file_text = RON_SLICE("[log]\nlevel = \"warn\"\n")};
    struct config *config;
    enum ron_err err = config_load(&sources, &config, reterr);

    (void)context;
    if (err == RON_ERR_OK)
        config_free(config);
    return err;
}

static void without_memory_nothing_is_loaded(void **state)
{
    (void)state;
    assert_int_equal(support_fail_each_allocation(load_all, NULL, 9), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_there_without_any_source),
        cmocka_unit_test(loops_are_a_quarter_of_the_processors),
        cmocka_unit_test(a_later_source_wins_and_is_named),
        cmocka_unit_test(every_spelling_of_a_section_is_one),
        cmocka_unit_test(what_is_wrong_is_said_with_its_place),
        cmocka_unit_test(broken_toml_is_one_problem),
        cmocka_unit_test(wrong_variables_and_flags_are_problems),
        cmocka_unit_test(variables_that_are_nearly_ours_are_problems),
        cmocka_unit_test(reload_takes_hot_keys_only),
        cmocka_unit_test(what_is_written_reads_back_the_same),
        cmocka_unit_test(without_memory_nothing_is_loaded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
