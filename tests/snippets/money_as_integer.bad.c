/* expect: passing 'int' to parameter of incompatible type 'struct ron_u128' */
#include "base/u128.h"

bool snippet(struct ron_u128 balance, struct ron_u128 *sum)
{
    return ron_u128_add(balance, 40, sum);
}
