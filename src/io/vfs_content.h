/*
 * vfs_content.h - the bytes of a file in memory: pages that are shared until one is written to.
 *
 * A content is counted; whoever holds the only reference may change it, and a call that changes one
 * with more makes a copy of its table first. Pages of zeros are not there. So a hundred thousand
 * crash images of one disk cost what differs between them.
 *
 * Not thread-safe: all contents that share pages are under one lock (vfs_memory.c).
 */
#ifndef RON_IO_VFS_CONTENT_H
#define RON_IO_VFS_CONTENT_H

#include "base/bytes.h"

struct io_content; /* opaque */

struct io_content *io_content_new(void) RON_MUST_USE; /* empty, one reference; NULL: no memory */
struct io_content *io_content_ref(struct io_content *content);
void io_content_unref(struct io_content *content);
uint64_t io_content_size(const struct io_content *content);
/* How many of the wanted bytes there are. */
size_t io_content_read(const struct io_content *content, uint64_t offset, void *bytes, size_t size);
/* Change *content, or a copy that takes its place. bytes NULL: zeros. On RON_ERR_NO_MEMORY and
 * RON_ERR_PERSISTENCE_FULL (no table is that long) what can be read is as before. */
enum ron_err io_content_write(struct io_content **content, uint64_t offset, const uint8_t *bytes,
                              uint64_t size) RON_MUST_USE;
enum ron_err io_content_resize(struct io_content **content, uint64_t size) RON_MUST_USE;

#endif
