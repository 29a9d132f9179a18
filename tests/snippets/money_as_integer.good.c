/* An integer becomes money by name. */
#include "base/u128.h"

bool snippet(struct ron_u128 balance, struct ron_u128 *sum)
{
    return ron_u128_add(balance, ron_u128_of(40), sum);
}
