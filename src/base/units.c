/*
 * units.c - durations and sizes with their units. See units.h.
 */
#include "base/units.h"

#include "base/assert.h"
#include "base/decimal.h"

struct unit {
    const char *name;
    uint64_t factor;
    bool printed; /* used for output */
};

/* Units by growing factor, and what messages call the whole. */
struct scale {
    const char *noun;
    const char *names;
    const struct unit *units;
    size_t units_count;
    const struct unit *zero_unit; /* in which 0 is printed */
    const struct unit *bare_unit; /* of a number without a unit, or NULL */
};

static const struct unit duration_units[] = {
    {"ns", 1, true},
    {"us", 1000u, true},
    {"ms", 1000000u, true},
    {"s", 1000000000u, true},
    {"m", 60000000000u, true},
    {"h", 3600000000000u, true},
    {"d", 86400000000000u, true},
};
static const struct scale duration_scale = {
    .noun = "nanoseconds",
    .names = "ns, us, ms, s, m, h, d",
    .units = duration_units,
    .units_count = RON_ARRAY_COUNT(duration_units),
    .zero_unit = &duration_units[3],
    .bare_unit = NULL,
};

static const struct unit size_units[] = {
    {"B", 1, true},
    {"KB", 1000u, false},
    {"KiB", UINT64_C(1) << 10, true},
    {"MB", 1000000u, false},
    {"MiB", UINT64_C(1) << 20, true},
    {"GB", 1000000000u, false},
    {"GiB", UINT64_C(1) << 30, true},
    {"TB", 1000000000000u, false},
    {"TiB", UINT64_C(1) << 40, true},
};
static const struct scale size_scale = {
    .noun = "bytes",
    .names = "B, KB, MB, GB, TB, KiB, MiB, GiB, TiB",
    .units = size_units,
    .units_count = RON_ARRAY_COUNT(size_units),
    .zero_unit = &size_units[0],
    .bare_unit = &size_units[0],
};

static const struct unit *find_unit(const struct scale *scale, struct ron_slice name)
{
    if (name.size == 0)
        return scale->bare_unit;
    for (size_t i = 0; i < scale->units_count; i++)
        if (ron_slice_equal(name, ron_slice_text(scale->units[i].name)))
            return &scale->units[i];
    return NULL;
}

static enum ron_err parse(const struct scale *scale, struct ron_slice text, uint64_t *ret_value,
                          struct ron_errinfo *reterr)
{
    const struct unit *unit;
    size_t digits_count = 0;
    uint64_t number;
    uint64_t value;
    enum ron_err err;

    RON_ASSERT(ret_value != NULL);
    while (digits_count < text.size && text.data[digits_count] >= '0' &&
           text.data[digits_count] <= '9')
        digits_count++;
    if (digits_count == 0)
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "byte 0: a whole number and a unit (%s) were expected", scale->names);
    err = ron_decimal_parse_u64(ron_slice_of(text.data, digits_count), &number, reterr);
    if (err != RON_ERR_OK)
        return err;
    unit = find_unit(scale, ron_slice_of(text.data + digits_count, text.size - digits_count));
    if (unit == NULL)
        return ron_fail(reterr, RON_ERR_MALFORMED, "byte %zu: the unit must be one of %s",
                        digits_count, scale->names);
    if (__builtin_mul_overflow(number, unit->factor, &value))
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "byte 0: out of range, the largest is 18446744073709551615 %s",
                        scale->noun);
    *ret_value = value;
    return RON_ERR_OK;
}

static size_t print(const struct scale *scale, uint64_t value,
                    char text[static RON_UNITS_TEXT_SIZE])
{
    const struct unit *unit = scale->zero_unit;
    size_t size;

    for (size_t i = scale->units_count; value != 0 && i-- > 0;) {
        if (scale->units[i].printed && value % scale->units[i].factor == 0) {
            unit = &scale->units[i];
            break;
        }
    }
    RON_ASSERT(value % unit->factor == 0);
    size = ron_decimal_print_u64(value / unit->factor, text);
    RON_ASSERT(size + strlen(unit->name) < RON_UNITS_TEXT_SIZE);
    memcpy(text + size, unit->name, strlen(unit->name) + 1);
    return size + strlen(unit->name);
}

enum ron_err ron_duration_parse(struct ron_slice text, uint64_t *ret_duration_ns,
                                struct ron_errinfo *reterr)
{
    return parse(&duration_scale, text, ret_duration_ns, reterr);
}

enum ron_err ron_size_parse(struct ron_slice text, uint64_t *ret_size, struct ron_errinfo *reterr)
{
    return parse(&size_scale, text, ret_size, reterr);
}

size_t ron_duration_print(uint64_t duration_ns, char text[static RON_UNITS_TEXT_SIZE])
{
    return print(&duration_scale, duration_ns, text);
}

size_t ron_size_print(uint64_t size, char text[static RON_UNITS_TEXT_SIZE])
{
    return print(&size_scale, size, text);
}
