/*
 * segment_gate.h - one filter in memory for the keys of several indexes, in place of their own.
 *
 * Whether a key may be in any of n segments costs n filters n cache lines; a gate costs one,
 * however many indexes it stands for. Nothing of it is stored: it is filled from who has just built
 * an index, or from the pages of its file, each checked as ever, which have the first 8 bytes of a
 * key, so keys that begin alike are one to it. It never forgets: a key that was added may be there,
 * whatever else was. Full, it errs for about one key in 750, half full for one in 40,000.
 *
 * One thread adds indexes; any thread asks meanwhile. Of an index that was added certain is what
 * io_gate_add has returned for, to whoever learnt of it by a lock.
 */
#ifndef RON_IO_SEGMENT_GATE_H
#define RON_IO_SEGMENT_GATE_H

#include "io/segment_index.h"

enum {
    IO_GATE_KEYS_MAX = 32 << 20,
    IO_GATE_BITS = 15, /* of memory per key */
};

/* Which keys share a block: random, so that nobody can choose keys that do. Gates that are asked
 * together have the same one, and what a key is looked for by is made once for all of them. */
struct io_gate_seed {
    uint64_t first, second;
};
struct io_gate_seed io_gate_seed_new(void);

struct io_gate; /* opaque */
/* For at most keys_max keys. The caller owns it. */
enum ron_err io_gate_new(struct io_gate_seed seed, uint64_t keys_max, struct io_gate **ret_gate,
                         struct ron_errinfo *reterr) RON_MUST_USE;
/* Accepts NULL, returns NULL. */
struct io_gate *io_gate_free(struct io_gate *gate);
/* Every key of the index, or an error of io_index_each_page: then some of them are in it, the
 * index counts for nothing, and may be added again. */
enum ron_err io_gate_add(struct io_gate *gate, struct io_index *index,
                         struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The same from the keys themselves, all of an index. */
void io_gate_add_keys(struct io_gate *gate, const uint8_t (*keys)[16], size_t count);
/* False: in none of the indexes. No I/O, no lock. */
bool io_gate_may_have(const struct io_gate *gate, const uint8_t key[16]);

/* Keys for gates of one seed. */
struct io_gate_keys {
    uint64_t hashes[IO_INDEX_KEYS_AT_ONCE];
    size_t count;
};
void io_gate_keys_make(struct io_gate_seed seed, const uint8_t (*keys)[16], size_t count,
                       struct io_gate_keys *ret_keys);
/* Which of the keys they may have, bit i for the i-th. */
uint64_t io_gate_may_have_each(const struct io_gate *gate, const struct io_gate_keys *keys);
/* These will be asked for: what they need is seldom near, and comes while others are looked at. */
void io_gate_fetch_each(const struct io_gate *gate, const struct io_gate_keys *keys);
/* Whether blocks are looked at in vectors, where the processor has them; switching it off is for
 * tests and benchmarks, before threads start. */
void io_gate_use_vectors(bool wanted);

uint64_t io_gate_room(const struct io_gate *gate);       /* for so many keys more */
uint64_t io_gate_keys_count(const struct io_gate *gate); /* of the indexes that were added */
size_t io_gate_memory(const struct io_gate *gate);       /* bytes resident */

#endif
