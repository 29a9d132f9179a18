/*
 * sums.c - a hash table of sums, never more than half full. See sums.h.
 */
#include "auth/sums.h"

#include "base/assert.h"
#include "base/mem.h"

enum { SLOTS_COUNT = 2 * AUTH_SUMS_MAX };

struct auth_sum {
    uint8_t capability[AUTH_CAPABILITY_SIZE];
    struct ron_u128 sum; /* 0: the slot is empty */
};

/* The slot of the capability, or the empty one where it would be. Capabilities are hashes; those
 * bits that choose no row of the policy spread them here. */
static struct auth_sum *find(const struct auth_sums *sums, const uint8_t *capability)
{
    for (uint32_t at = ron_load_le32(capability + 4);; at++) {
        struct auth_sum *slot = &sums->slots[at % SLOTS_COUNT];

        if (ron_u128_is_zero(slot->sum) ||
            memcmp(slot->capability, capability, AUTH_CAPABILITY_SIZE) == 0)
            return slot;
    }
}

void auth_sums_fini(struct auth_sums *sums)
{
    (void)ron_mem_free(sums->slots);
    *sums = (struct auth_sums){.slots = NULL};
}

enum ron_err auth_sums_add(struct auth_sums *sums,
                           const uint8_t capability[static AUTH_CAPABILITY_SIZE],
                           struct ron_u128 amount, uint64_t day, struct ron_errinfo *reterr)
{
    struct auth_sum *slot;

    if (day < sums->day || ron_u128_is_zero(amount))
        return RON_ERR_OK;
    if (day > sums->day)
        auth_sums_fini(sums);
    sums->day = day;
    if (sums->slots == NULL)
        sums->slots = ron_mem_alloc_array(SLOTS_COUNT, sizeof(sums->slots[0]));
    if (sums->slots == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "daily sums");
    slot = find(sums, capability);
    if (ron_u128_is_zero(slot->sum)) {
        if (sums->count == AUTH_SUMS_MAX) {
            sums->full = true;
            return ron_fail(reterr, RON_ERR_BUSY, "daily sums of more than %d capabilities",
                            AUTH_SUMS_MAX);
        }
        sums->count++;
        memcpy(slot->capability, capability, AUTH_CAPABILITY_SIZE);
    }
    if (!ron_u128_add(slot->sum, amount, &slot->sum))
        slot->sum = RON_U128_MAX;
    return RON_ERR_OK;
}

bool auth_sums_get(const struct auth_sums *sums,
                   const uint8_t capability[static AUTH_CAPABILITY_SIZE], uint64_t day,
                   struct ron_u128 *ret_sum)
{
    *ret_sum = ron_u128_of(0);
    if (sums->slots == NULL || sums->day < day)
        return true;
    *ret_sum = find(sums, capability)->sum;
    return !sums->full || !ron_u128_is_zero(*ret_sum);
}
