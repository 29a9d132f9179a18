/*
 * http_date.h - the Date field: "Sun, 06 Nov 1994 08:49:37 GMT".
 */
#ifndef RON_IO_HTTP_DATE_H
#define RON_IO_HTTP_DATE_H

#include <stdint.h>

enum { HTTP_DATE_SIZE = 30 }; /* with its NUL */

/* time_ms is at most RON_TIME_MS_MAX. */
void http_date_print(uint64_t time_ms, char ret_text[static HTTP_DATE_SIZE]);

#endif
