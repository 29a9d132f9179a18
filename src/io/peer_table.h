/*
 * peer_table.h - how many connections each address has open.
 */
#ifndef RON_IO_PEER_TABLE_H
#define RON_IO_PEER_TABLE_H

#include "base/bytes.h"

struct peer_table; /* opaque; any thread */

/* For at most peers_max addresses at once, each with at most each_max connections. */
enum ron_err peer_table_new(uint32_t peers_max, uint32_t each_max, struct peer_table **ret_table,
                            struct ron_errinfo *reterr) RON_MUST_USE;
struct peer_table *peer_table_free(struct peer_table *table);
/* Count one more; false where that is one too many. */
bool peer_table_enter(struct peer_table *table, const uint8_t address[static 16]) RON_MUST_USE;
void peer_table_leave(struct peer_table *table, const uint8_t address[static 16]);

#endif
