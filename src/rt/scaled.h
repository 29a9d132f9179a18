/*
 * scaled.h - integers printed as decimal fractions, exactly: 1500000000 ns is "1.5" seconds.
 */
#ifndef RON_RT_SCALED_H
#define RON_RT_SCALED_H

#include <stddef.h>
#include <stdint.h>

enum { RT_SCALE_MAX = 18, RT_SCALED_SIZE = 24 /* 20 digits, "0.", NUL */ };

/* Write value * 10^-scale without trailing zeros, and a NUL; returns the size without it. */
size_t rt_scaled_print(uint64_t value, unsigned scale, char text[static RT_SCALED_SIZE]);

#endif
