/*
 * segment_index.h - the index file of one sealed segment: keys to places, and where records start.
 *
 * Of a key the file has the first 8 bytes and, in its filter, a hint of all 16. A place that is
 * found may therefore be that of another key with the same 8 bytes: who asks looks at the record.
 * That there is none is certain.
 *
 * Derived from the segment alone: missing, torn or foreign files are built again. Only a filter,
 * one fence per page and the sparse table of record starts are kept in memory (at most 2 bytes per
 * key), the filter until a gate takes its place (segment_gate.h): from then on it is asked where it
 * lies in the file, so that a gate that errs has a piece of it read, which the system's cache has,
 * and seldom a page of keys, which may be on the disk alone. A hit reads one page of keys, or two
 * where the key is the first of its page. Written to a temporary name, synced, renamed: a reader
 * sees a whole one or none. Every byte is under a checksum that is looked at before the byte is
 * believed. Format: segment_index_format.h.
 */
#ifndef RON_IO_SEGMENT_INDEX_H
#define RON_IO_SEGMENT_INDEX_H

#include "io/vfs.h"

enum {
    IO_INDEX_KEYS_MAX = 32 << 20,   /* of one segment */
    IO_INDEX_STARTS_MAX = 1 << 19,  /* 2^32 * 8 bytes, one every 64 KiB */
    IO_INDEX_START_EVERY = 1 << 16, /* bytes */
};

struct io_index_place {
    uint32_t offset8; /* of the frame in its segment, in units of 8 bytes */
    uint32_t sub;
};
struct io_index_entry {
    uint8_t key[16];
    uint32_t offset8, sub; /* as of a place */
};
struct io_index_start { /* every record, or one every 64 KiB */
    uint64_t index;     /* of the record */
    uint32_t offset8;
    uint32_t zero;
};
/* What binds the file to its segment; compared on load. */
struct io_index_of {
    uint8_t log_id[16];
    uint64_t segment;
    uint64_t first_index, last_index;
    uint8_t last_link[16];
    uint64_t sealed_size; /* bytes of the segment up to and with its seal */
};

/* One thread. 34 bytes per key (keys that do not begin like hashes: up to 52), which it has room
 * for as they come: memory that was not needed yet is not resident. */
struct io_index_builder; /* opaque */
/* keys_max is at most IO_INDEX_KEYS_MAX. */
enum ron_err io_index_builder_new(const struct io_index_of *of, uint64_t keys_max,
                                  struct io_index_builder **ret_builder,
                                  struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* As new, for another segment, in the memory that it has. */
void io_index_builder_reset(struct io_index_builder *builder, const struct io_index_of *of,
                            uint64_t keys_max) RON_BLOCKS;
/* What it is of, for who did not know that before it has all keys. */
void io_index_builder_bind(struct io_index_builder *builder, const struct io_index_of *of);
/* From now on pages of keys are written past the system's cache. */
void io_index_builder_pass_cache(struct io_index_builder *builder);
/* Accepts NULL, returns NULL. */
struct io_index_builder *io_index_builder_free(struct io_index_builder *builder) RON_BLOCKS;
/* In any order; a key may come any number of times. RON_ERR_TOO_LARGE beyond keys_max. */
enum ron_err io_index_add(struct io_index_builder *builder, const struct io_index_entry *entry,
                          struct ron_errinfo *reterr) RON_MUST_USE;
/* All of them, as they came. Borrowed until the next key or reset. */
const uint8_t (*io_index_builder_keys(const struct io_index_builder *builder,
                                      size_t *ret_count))[16];
/* Records in order; keeps one every 64 KiB. */
enum ron_err io_index_add_start(struct io_index_builder *builder, uint64_t index, uint32_t offset8,
                                struct ron_errinfo *reterr) RON_MUST_USE;
/* Sort and write `path`, durable when it returns. After a failure it may be called again. */
enum ron_err io_index_write(struct io_index_builder *builder, struct io_vfs *vfs, const char *path,
                            struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

struct io_index; /* opaque; read by many threads */
/* RON_ERR_NOT_FOUND, RON_ERR_WAL_CORRUPT (damaged, torn), RON_ERR_VERSION_SKEW (other version,
 * other segment): in all of these, build it again. Key pages are checked when they are read. */
enum ron_err io_index_open(struct io_vfs *vfs, const char *path, const struct io_index_of *of,
                           struct io_index **ret_index,
                           struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Accepts NULL, returns NULL. */
struct io_index *io_index_close(struct io_index *index) RON_BLOCKS;
/* Gives the memory of the filter, for ron_table_free; NULL if it is gone. Nobody may be asking.
 * From then on every key may be there, until it is looked for. */
void *io_index_take_filter(struct io_index *index) RON_MUST_USE;
/* False: certainly not there. No I/O, no lock. */
bool io_index_may_have(const struct io_index *index, const uint8_t key[16]);
/* The first of indexes[from..count) that may have the key; count if none has. The same answers, but
 * the memory of all is asked for at once: for many indexes, three times as fast. */
size_t io_index_next_with(struct io_index *const *indexes, size_t count, size_t from,
                          const uint8_t key[16]);
/* The other way round: which of at most 64 keys the index may have, bit i for keys[i]. */
enum { IO_INDEX_KEYS_AT_ONCE = 64 };
uint64_t io_index_may_have_each(const struct io_index *index, const uint8_t (*keys)[16],
                                size_t count);
/* The first place (lowest offset8, sub) of the key, or of one that begins with the same 8 bytes.
 * RON_ERR_NOT_FOUND: the key has none. RON_ERR_WAL_CORRUPT: what of the filter or the page that
 * should hold it is damaged; build the index again. */
enum ron_err io_index_find(struct io_index *index, const uint8_t key[16],
                           struct io_index_place *ret_place,
                           struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The same among those at or behind (offset8, sub): a key may stand in several places. */
enum ron_err io_index_find_from(struct io_index *index, const uint8_t key[16], uint32_t offset8,
                                uint32_t sub, struct io_index_place *ret_place,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The last start at or before the record; the first one for records before it. All zeros if the
 * index has no starts. */
struct io_index_start io_index_start_of(const struct io_index *index, uint64_t record);
/* Every page of keys in its order, each checked before it is told; all of them on RON_ERR_OK. Read
 * past the system's cache, if the file can be. `memory` has IO_INDEX_READ_SIZE bytes from where a
 * page begins. One thread at a time. */
enum { IO_INDEX_READ_SIZE = 1 << 20 };
struct index_stored; /* segment_index_format.h */
typedef void io_index_page_fn(void *context, const struct index_stored *entries, size_t count);
enum ron_err io_index_each_page(struct io_index *index, void *memory, io_index_page_fn *fn,
                                void *context, struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Read all pages: sums, order and fences. RON_ERR_WAL_CORRUPT names the page. */
enum ron_err io_index_check(struct io_index *index,
                            struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
uint64_t io_index_keys_count(const struct io_index *index);
size_t io_index_memory(const struct io_index *index); /* bytes resident */

#endif
