/*
 * source_replay.c - a run by a written list of choices. See source.h.
 */
#include "base/assert.h"
#include "rt/sim/source.h"

static int replay_choose(struct sim_source *source, const struct sim_point *point)
{
    struct sim_replay *replay = (struct sim_replay *)(void *)source;
    uint16_t option = 0;

    if (replay->position < replay->choices_count)
        option = replay->choices[replay->position];
    replay->position++;
    if (option < point->options_count)
        return option;
    if (replay->lenient)
        return 0;
    replay->diverged = true;
    return -1;
}

void sim_replay_init(struct sim_replay *replay, const uint16_t *choices, uint32_t choices_count,
                     bool lenient)
{
    RON_ASSERT(choices != NULL || choices_count == 0);
    *replay = (struct sim_replay){.source = {replay_choose, NULL},
                                  .choices = choices,
                                  .choices_count = choices_count,
                                  .lenient = lenient};
}
