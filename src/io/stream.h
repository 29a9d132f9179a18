/*
 * stream.h - inside the server: server-sent events, and bodies in pieces, on a connection. See
 * request.h for users.
 *
 * A stream is shared by its owner (any thread) and its loop: buffer and flags are guarded by the
 * loop's lock; the connection belongs to the loop. It is freed by the loop, once the owner closed
 * it and the connection is gone or has everything.
 */
#ifndef RON_IO_STREAM_H
#define RON_IO_STREAM_H

#include "io/conn.h"

enum {
    STREAM_BEAT_MS = 15000
}; /* a comment line, so that both ends notice a dead peer; of a body
    * nothing: its peer must have read something since */

/* With the loop's lock held: into the list of those with something to do, once. `last`: its owner
 * forgets it with this; in one step, for a closed stream that is in no list is freed at any time.
 */
void io_stream_link(struct io_stream *stream, struct io_stream **list, bool last) RON_NEEDS(net);

/* By the loop. */
void io_streams_pump(struct io_stream *list);
void io_stream_pump(struct io_stream *stream);
/* Its reply was handed in: from now on it is on this connection. */
void io_stream_attach(struct io_stream *stream, struct io_conn *conn);
void io_stream_detach(struct io_stream *stream); /* the connection goes away */
void io_stream_end(struct io_stream *stream);    /* the server drains: send what is there, close */
void io_stream_beat(struct io_stream *stream);
/* The stream is gone, its last bytes are on their way: may its peer have more time? */
bool io_stream_tail_beat(struct io_conn *conn);
void io_stream_tail_end(struct io_conn *conn); /* the server drains */

#endif
