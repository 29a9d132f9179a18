/*
 * schedule.c - a run as one line of text, and back. See explore.h for the form.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "rt/sim/explore.h"

/* A configuration is a list of letter and number; '-' is unbounded. The first ones are always
 * printed, the rest when they differ from sim_config_plain(). */
struct field {
    char letter;
    bool always;
    size_t offset;
};
static const struct field fields[] = {
    {'g', true, offsetof(struct sim_config, fine)},
    {'b', true, offsetof(struct sim_config, preemption_bound)},
    {'t', true, offsetof(struct sim_config, early_ticks)},
    {'s', true, offsetof(struct sim_config, spurious)},
    {'c', true, offsetof(struct sim_config, crashes)},
    {'l', false, offsetof(struct sim_config, late_ticks)},
    {'w', false, offsetof(struct sim_config, wake_choice)},
    {'f', false, offsetof(struct sim_config, faults)},
    {'a', false, offsetof(struct sim_config, alloc_failures)},
    {'p', false, offsetof(struct sim_config, spawn_failures)},
    {'j', false, offsetof(struct sim_config, clock_jumps)},
    {'n', false, offsetof(struct sim_config, steps_max)},
};

static uint32_t *field_in(struct sim_config *config, const struct field *field)
{
    return (uint32_t *)(void *)((uint8_t *)config + field->offset);
}

void sim_config_print(const struct sim_config *config, char *text, size_t text_size)
{
    struct sim_config copy = *config;
    struct sim_config plain = sim_config_plain();
    size_t used_size = 0;

    RON_ASSERT(text_size >= 256);
    for (size_t i = 0; i < RON_ARRAY_COUNT(fields); i++) {
        uint32_t value = *field_in(&copy, &fields[i]);
        int size;

        if (!fields[i].always && value == *field_in(&plain, &fields[i]))
            continue;
        size = value == SIM_UNBOUNDED
                   ? snprintf(text + used_size, text_size - used_size, "%s%c-",
                              used_size == 0 ? "" : ",", fields[i].letter)
                   : snprintf(text + used_size, text_size - used_size, "%s%c%u",
                              used_size == 0 ? "" : ",", fields[i].letter, value);
        RON_ASSERT(size > 0);
        used_size += (size_t)size;
    }
    if (config->random_seed != 0)
        (void)snprintf(text + used_size, text_size - used_size, ",r%llu",
                       (unsigned long long)config->random_seed);
}

void sim_schedule_print(const char *model_name, const struct sim_config *config,
                        uint64_t trace_hash, const uint16_t *choices, uint32_t choices_count,
                        struct ron_buf *buf)
{
    const char *separator = "";
    char text[256];

    sim_config_print(config, text, sizeof(text));
    ron_buf_put_format(buf, "sim1:%s:%s:#%08x:", model_name, text, (unsigned)(trace_hash >> 32));
    for (uint32_t i = 0; i < choices_count; i++) {
        if (choices[i] == 0)
            continue;
        ron_buf_put_format(buf, "%s%u=%u", separator, i, (unsigned)choices[i]);
        separator = ",";
    }
}

/* A decimal number at *text, at most max; moves *text behind it. */
static bool parse_number(const char **text, uint64_t max, uint64_t *ret_number)
{
    uint64_t number = 0;
    const char *at = *text;

    if (*at < '0' || *at > '9')
        return false;
    for (; *at >= '0' && *at <= '9'; at++) {
        unsigned digit = (unsigned)(*at - '0');
        if (number > (max - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *text = at;
    *ret_number = number;
    return true;
}

static bool parse_field(const char **text, struct sim_config *config)
{
    char letter = **text;
    uint64_t number;

    if (letter == '\0')
        return false;
    *text += 1;
    if (letter == 'r')
        return parse_number(text, UINT64_MAX, &config->random_seed);
    for (size_t i = 0; i < RON_ARRAY_COUNT(fields); i++) {
        if (fields[i].letter != letter)
            continue;
        if (**text == '-') {
            *text += 1;
            *field_in(config, &fields[i]) = SIM_UNBOUNDED;
            return true;
        }
        if (!parse_number(text, UINT32_MAX - 1, &number))
            return false;
        *field_in(config, &fields[i]) = (uint32_t)number;
        return true;
    }
    return false;
}

static bool parse_config(const char **text, struct sim_config *config)
{
    *config = sim_config_plain();
    do {
        if (!parse_field(text, config))
            return false;
    } while (*(*text)++ == ',');
    return (*text)[-1] == ':' && config->steps_max > 0;
}

static bool parse_hash(const char **text, uint32_t *ret_hash)
{
    uint32_t hash = 0;
    const char *at = *text;

    if (*at++ != '#')
        return false;
    for (int i = 0; *at != ':'; i++, at++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = *at == '\0' ? NULL : strchr(digits, *at);
        if (digit == NULL || i == 8)
            return false;
        hash = hash << 4 | (uint32_t)(digit - digits);
    }
    *text = at + 1;
    *ret_hash = hash;
    return true;
}

enum { CHOICES_MAX = 1 << 22 };

/* Positions rise; the list is what lies between. */
static bool parse_choices(const char *text, struct sim_schedule *schedule)
{
    uint64_t position;
    uint64_t option;
    uint16_t *resized;

    while (*text != '\0' && *text != '\n') {
        if (!parse_number(&text, CHOICES_MAX, &position) || *text++ != '=' ||
            !parse_number(&text, UINT16_MAX, &option) || position < schedule->choices_count)
            return false;
        resized = ron_mem_resize(schedule->choices, (position + 1) * sizeof(uint16_t));
        if (resized == NULL)
            return false;
        memset(resized + schedule->choices_count, 0,
               (position + 1 - schedule->choices_count) * sizeof(uint16_t));
        schedule->choices = resized;
        schedule->choices_count = (uint32_t)position + 1;
        resized[position] = (uint16_t)option;
        if (*text == ',')
            text++;
        else if (*text != '\0' && *text != '\n')
            return false;
    }
    return true;
}

enum ron_err sim_schedule_parse(const char *text, struct sim_schedule *ret_schedule,
                                struct ron_errinfo *reterr)
{
    struct sim_schedule schedule = {0};
    const char *at = text;
    const char *end;

    if (strncmp(at, "sim1:", 5) != 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "a schedule starts with \"sim1:\"");
    at += 5;
    end = strchr(at, ':');
    if (end == NULL || end == at || (size_t)(end - at) >= sizeof(schedule.model_name))
        return ron_fail(reterr, RON_ERR_MALFORMED, "schedule: no model name");
    memcpy(schedule.model_name, at, (size_t)(end - at));
    at = end + 1;
    if (!parse_config(&at, &schedule.config))
        return ron_fail(reterr, RON_ERR_MALFORMED, "schedule: bad configuration");
    if (!parse_hash(&at, &schedule.hash))
        return ron_fail(reterr, RON_ERR_MALFORMED, "schedule: bad hash");
    if (!parse_choices(at, &schedule)) {
        sim_schedule_fini(&schedule);
        return ron_fail(reterr, RON_ERR_MALFORMED, "schedule: bad choices");
    }
    *ret_schedule = schedule;
    return RON_ERR_OK;
}

void sim_schedule_fini(struct sim_schedule *schedule)
{
    schedule->choices = ron_mem_free(schedule->choices);
    schedule->choices_count = 0;
}
