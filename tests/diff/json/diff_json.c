/*
 * diff_json.c - ron's JSON reader, writer and canonical form against jansson and Python's json.
 *
 * Each generated document is judged by all. Verdicts must agree but for a closed list of features,
 * which a scan of its own finds in the document; where two accept, their values must be equal: as
 * compact text in document order, and for Python as RFC 8785 text too. Everything else is a failure
 * that prints the document. TAP output.
 *
 *     diff_json [--count N] [--seed N] [--first N] [--judge PATH]
 *
 * --first N --count 1 repeats document N of a seed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/decimal.h"
#include "base/json.h"
#include "base/json_canon.h"
#include "base/json_write.h"
#include "generate.h"
#include "oracle.h"
#include "scan.h"

enum {
    BATCH_COUNT = 1024,
    ARENA_SIZE = 10 * DOCUMENT_SIZE_MAX + 64,
    FAILURES_SHOWN_MAX = 10,
    CALIBRATED_COUNT_MIN = 20000, /* from here on every expected difference must have been met */
};

#define SET(name) (1u << FEATURE_##name)

/* ron refuses each document with one of these. */
static const uint32_t refused_features = SET(FRACTION) | SET(NEGATIVE_ZERO) | SET(BEYOND_U128) |
                                         SET(TOO_DEEP) | SET(LONE_SURROGATE) | SET(CONSTANT);

struct party {
    const char *name;
    uint32_t only_ron_refuses; /* features that explain it */
    uint32_t only_ron_accepts;
    uint64_t both_accept_count;
    uint64_t both_refuse_count;
    uint64_t explained_counts[FEATURES_COUNT];
    uint64_t failures_count;
};

static struct party jansson = {
    .name = "jansson",
    /* jansson loses a NUL byte that it has to look at twice, as the one behind a number. */
    .only_ron_refuses = SET(FRACTION) | SET(NEGATIVE_ZERO) | SET(TOO_DEEP) | SET(NUL_OUTSIDE),
    .only_ron_accepts = SET(BEYOND_I64) | SET(NUL_IN_NAME),
};
static struct party python = {
    .name = "Python",
    .only_ron_refuses = SET(FRACTION) | SET(NEGATIVE_ZERO) | SET(BEYOND_U128) | SET(TOO_DEEP) |
                        SET(LONE_SURROGATE) | SET(CONSTANT),
};
static struct party canonical = {.name = "canonical form"};

struct sample {
    uint64_t index;
    uint32_t features;
    struct ron_slice text;
    bool accepted;
    bool canonical_accepted;
    size_t text_at; /* in the batch's bytes, while they may move */
    size_t ordered_at;
    size_t ordered_size;
    size_t canonical_at;
    size_t canonical_size;
};

struct run {
    uint64_t seed;
    uint64_t first;
    uint64_t count;
    const char *judge_path;
    struct ron_arena arena;
    struct ron_buf texts;
    struct ron_buf values;
    struct ron_buf other_value;
    struct sample samples[BATCH_COUNT];
    uint64_t accepted_count;
    uint64_t bytes_count;
};

static const char *feature_text(uint32_t feature)
{
    static const char *const texts[] = {
#define X(name, text) text,
        FEATURE_MAP(X)
#undef X
    };
    return texts[feature];
}

static void print_bytes(const char *label, struct ron_slice bytes)
{
    printf("#   %s: ", label);
    for (size_t i = 0; i < bytes.size; i++) {
        if (bytes.data[i] >= 0x20 && bytes.data[i] < 0x7f)
            (void)putchar(bytes.data[i]);
        else
            printf("<%02x>", bytes.data[i]);
    }
    (void)putchar('\n');
}

static void fail(struct run *run, struct party *party, const struct sample *sample,
                 const char *what)
{
    if (party->failures_count++ >= FAILURES_SHOWN_MAX)
        return;
    printf("# %s: %s; --seed %" PRIu64 " --first %" PRIu64 " --count 1\n", party->name, what,
           run->seed, sample->index);
    print_bytes("document", sample->text);
}

/* Our reader through our writer: the value's compact text. */
static bool read_and_write(struct run *run, struct ron_slice text)
{
    struct ron_json_reader reader;
    struct ron_json_writer writer;
    struct ron_json_token token;

    ron_arena_reset(&run->arena);
    ron_json_reader_init(&reader, text, &run->arena);
    ron_json_writer_init(&writer, &run->values, RON_JSON_FIXED);
    for (;;) {
        enum ron_err err = ron_json_next(&reader, &token, NULL);

        if (err != RON_ERR_OK) {
            RON_ASSERT(err == RON_ERR_MALFORMED);
            return false;
        }
        switch (token.kind) {
        case RON_JSON_OBJECT_BEGIN:
            ron_json_put_object_begin(&writer);
            break;
        case RON_JSON_OBJECT_END:
            ron_json_put_object_end(&writer);
            break;
        case RON_JSON_ARRAY_BEGIN:
            ron_json_put_array_begin(&writer);
            break;
        case RON_JSON_ARRAY_END:
            ron_json_put_array_end(&writer);
            break;
        case RON_JSON_NAME:
            ron_json_put_name_slice(&writer, token.text);
            break;
        case RON_JSON_STRING:
            ron_json_put_string(&writer, token.text);
            break;
        case RON_JSON_INTEGER:
            ron_json_put_integer(&writer, token.negative, token.number);
            break;
        case RON_JSON_TRUE:
        case RON_JSON_FALSE:
            ron_json_put_bool(&writer, token.kind == RON_JSON_TRUE);
            break;
        case RON_JSON_NULL:
            ron_json_put_null(&writer);
            break;
        case RON_JSON_END:
            RON_ASSERT(ron_json_writer_end(&writer, NULL) == RON_ERR_OK);
            return true;
        }
    }
}

static void judge_ourselves(struct run *run, struct sample *sample)
{
    size_t start = run->values.size;

    sample->ordered_at = start;
    sample->accepted = read_and_write(run, sample->text);
    sample->ordered_size = run->values.size - start;
    sample->canonical_at = run->values.size;
    ron_arena_reset(&run->arena);
    sample->canonical_accepted = ron_json_canon(sample->text, &run->arena, &run->values, NULL) ==
                                 RON_ERR_OK;
    sample->canonical_size = run->values.size - sample->canonical_at;
    run->accepted_count += sample->accepted;
    run->bytes_count += sample->text.size;
}

static struct ron_slice ordered_of(const struct run *run, const struct sample *sample)
{
    return ron_slice_of(run->values.data + sample->ordered_at, sample->ordered_size);
}

/* Verdicts agree, or a feature explains why not. True if both accept: the values are next. */
static bool verdicts_agree(struct run *run, struct party *party, const struct sample *sample,
                           bool accepted)
{
    uint32_t explaining = sample->features &
                          (sample->accepted ? party->only_ron_accepts : party->only_ron_refuses);

    if (sample->accepted == accepted) {
        party->both_accept_count += accepted;
        party->both_refuse_count += !accepted;
        return accepted;
    }
    if (explaining == 0)
        fail(run, party, sample, accepted ? "only ron refuses" : "only ron accepts");
    else
        party->explained_counts[__builtin_ctz(explaining)]++;
    return false;
}

static void check_value(struct run *run, struct party *party, const struct sample *sample,
                        struct ron_slice ours, struct ron_slice theirs)
{
    if (ron_slice_equal(ours, theirs))
        return;
    fail(run, party, sample, "the values differ");
    if (party->failures_count <= FAILURES_SHOWN_MAX) {
        print_bytes("ron", ours);
        print_bytes(party->name, theirs);
    }
}

static void compare_jansson(struct run *run, const struct sample *sample)
{
#if RON_HAVE_JANSSON
    bool accepted;

    ron_buf_reset(&run->other_value);
    accepted = jansson_judge(sample->text, sample->accepted, &run->other_value);
    if (verdicts_agree(run, &jansson, sample, accepted))
        check_value(run, &jansson, sample, ordered_of(run, sample),
                    ron_buf_slice(&run->other_value));
#else
    (void)run;
    (void)sample;
#endif
}

static void compare_python(struct run *run, const struct sample *sample,
                           const struct verdict *verdict)
{
    bool expected = sample->accepted && (sample->features & SET(BEYOND_DOUBLE)) == 0;

    if (sample->accepted && (sample->features & refused_features) != 0)
        fail(run, &python, sample, "ron accepts what it must refuse");
    if (verdicts_agree(run, &python, sample, verdict->accepted))
        check_value(run, &python, sample, ordered_of(run, sample), verdict->ordered);
    canonical.both_accept_count += expected && sample->canonical_accepted;
    canonical.both_refuse_count += !expected && !sample->canonical_accepted;
    if (expected != sample->canonical_accepted)
        fail(run, &canonical, sample, expected ? "refused" : "accepted");
    else if (expected && verdict->accepted)
        check_value(run, &canonical, sample,
                    ron_slice_of(run->values.data + sample->canonical_at, sample->canonical_size),
                    verdict->canonical);
    canonical.explained_counts[0] += expected && verdict->reordered;
}

static void run_batch(struct run *run, struct python *child, uint64_t first, size_t count)
{
    static struct document document;
    struct verdict verdict;

    ron_buf_reset(&run->texts);
    ron_buf_reset(&run->values);
    for (size_t i = 0; i < count; i++) {
        generate_document(run->seed, first + i, &document);
        run->samples[i] = (struct sample){.index = first + i, .text_at = run->texts.size};
        run->samples[i].text.size = document.size;
        ron_buf_put(&run->texts, document.data, document.size);
        python_add(child, ron_slice_of(document.data, document.size));
    }
    RON_ASSERT(ron_buf_check(&run->texts, NULL) == RON_ERR_OK);
    python_send(child);
    for (size_t i = 0; i < count; i++) { /* while Python is at it */
        struct sample *sample = &run->samples[i];

        sample->text.data = run->texts.data + sample->text_at;
        sample->features = scan_document(sample->text);
        judge_ourselves(run, sample);
        compare_jansson(run, sample);
    }
    RON_ASSERT(ron_buf_check(&run->values, NULL) == RON_ERR_OK);
    python_receive(child);
    for (size_t i = 0; i < count; i++) {
        python_next(child, &verdict);
        compare_python(run, &run->samples[i], &verdict);
    }
}

/* Print the counts; true if the party has nothing against ron. */
static bool report(const struct run *run, const struct party *party)
{
    uint32_t expected = party->only_ron_refuses | party->only_ron_accepts;
    bool good = party->failures_count == 0;

    for (uint32_t feature = 0; feature < FEATURES_COUNT; feature++) {
        if ((expected & 1u << feature) == 0)
            continue;
        printf("# %s: only ron %s %s: %" PRIu64 "\n", party->name,
               (party->only_ron_refuses & 1u << feature) != 0 ? "refuses" : "accepts",
               feature_text(feature), party->explained_counts[feature]);
        if (party->explained_counts[feature] == 0 && run->count >= CALIBRATED_COUNT_MIN) {
            printf("# %s: a difference of this kind was expected\n", party->name);
            good = false;
        }
    }
    return good;
}

static int finish(const struct run *run)
{
    bool good[4];
    uint64_t invalid_count = run->count - run->accepted_count;

    printf("# %" PRIu64 " documents, %" PRIu64 " bytes, seed %" PRIu64 "\n", run->count,
           run->bytes_count, run->seed);
    good[0] = report(run, &jansson);
    good[1] = report(run, &python);
    good[2] = canonical.failures_count == 0;
    good[3] = run->count < CALIBRATED_COUNT_MIN ||
              (invalid_count * 10 >= run->count * 4 && run->accepted_count * 10 >= run->count * 2);
#if RON_HAVE_JANSSON
    printf("%sok 1 - jansson agrees: %" PRIu64 " accepted by both, %" PRIu64 " refused by both\n",
           good[0] ? "" : "not ", jansson.both_accept_count, jansson.both_refuse_count);
#else
    good[0] = true;
    printf("ok 1 - jansson agrees # SKIP built without jansson\n");
#endif
    printf("%sok 2 - Python agrees: %" PRIu64 " accepted by both, %" PRIu64 " refused by both\n",
           good[1] ? "" : "not ", python.both_accept_count, python.both_refuse_count);
    printf("%sok 3 - canonical forms agree with Python: %" PRIu64 " equal, %" PRIu64
           " of them reordered, %" PRIu64 " refused\n",
           good[2] ? "" : "not ", canonical.both_accept_count, canonical.explained_counts[0],
           canonical.both_refuse_count);
    printf("%sok 4 - enough of both: %" PRIu64 " accepted, %" PRIu64 " refused\n",
           good[3] ? "" : "not ", run->accepted_count, invalid_count);
    return good[0] && good[1] && good[2] && good[3] ? 0 : 1;
}

static uint64_t number_option(const char *text)
{
    uint64_t value = 0;

    if (ron_decimal_parse_u64(ron_slice_text(text), &value, NULL) != RON_ERR_OK) {
        (void)fprintf(stderr, "diff_json: not a number: %s\n", text);
        exit(2);
    }
    return value;
}

static void parse_options(struct run *run, int argc, char **argv)
{
    run->seed = 1;
    run->count = 100000;
    run->judge_path = RON_JUDGE;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 < argc && strcmp(argv[i], "--count") == 0) {
            run->count = number_option(argv[i + 1]);
        } else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) {
            run->seed = number_option(argv[i + 1]);
        } else if (i + 1 < argc && strcmp(argv[i], "--first") == 0) {
            run->first = number_option(argv[i + 1]);
        } else if (i + 1 < argc && strcmp(argv[i], "--judge") == 0) {
            run->judge_path = argv[i + 1];
        } else {
            (void)fprintf(stderr, "diff_json: unknown or incomplete option %s\n", argv[i]);
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    static struct run run;
    struct python child;
    int status;

    parse_options(&run, argc, argv);
    printf("1..4\n");
    ron_buf_init(&run.texts, BATCH_COUNT * DOCUMENT_SIZE_MAX);
    ron_buf_init(&run.values, 4 * BATCH_COUNT * DOCUMENT_SIZE_MAX);
    ron_buf_init(&run.other_value, 4 * DOCUMENT_SIZE_MAX);
    if (ron_arena_init(&run.arena, ARENA_SIZE, NULL) != RON_ERR_OK)
        return 1;
    python_start(&child, run.judge_path);
    for (uint64_t done = 0; done < run.count;) {
        uint64_t left = run.count - done;
        size_t batch_count = left < BATCH_COUNT ? (size_t)left : BATCH_COUNT;

        run_batch(&run, &child, run.first + done, batch_count);
        done += batch_count;
    }
    python_stop(&child);
    status = finish(&run);
    ron_buf_fini(&run.texts);
    ron_buf_fini(&run.values);
    ron_buf_fini(&run.other_value);
    ron_arena_fini(&run.arena);
    return status;
}
