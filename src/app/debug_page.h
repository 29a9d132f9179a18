/*
 * debug_page.h - /debug/topology: what the runtime's registry and the route table list, as JSON.
 */
#ifndef RON_APP_DEBUG_PAGE_H
#define RON_APP_DEBUG_PAGE_H

#include "base/bytes.h"
#include "io/route.h"

/* Append the document. Never waits. RON_ERR_NO_MEMORY, RON_ERR_TOO_LARGE. */
enum ron_err app_debug_topology(const struct io_routes *routes, struct ron_buf *buf,
                                struct ron_errinfo *reterr) RON_MUST_USE;

#endif
