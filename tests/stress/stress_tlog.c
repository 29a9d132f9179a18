/*
 * stress_tlog.c SECONDS - the Merkle log under real threads: one appends, one flushes and syncs,
 * readers ask for proofs and tiles of what is there so far.
 *
 * Memory is small, so tiles are evicted and read back all the time. Every proof leads to the root
 * that was computed beforehand, every tile holds the leaves that were appended; the only other
 * answers are "busy".
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/merkle_frontier.h"
#include "io/tlog.h"
#include "io/vfs_memory.h"
#include "rt/atomic.h"
#include "rt/registry.h"
#include "seconds.h"

enum { READERS = 3, THREADS = READERS + 2, LEAVES_COUNT = 65536 + 9000, STEP = 500 };

static struct ron_sha256 leaves[LEAVES_COUNT];
static struct ron_sha256 roots[LEAVES_COUNT / STEP + 1]; /* at multiples of STEP */

struct round {
    struct io_vfs *vfs;
    struct io_tlog *tlog;
    struct rt_atomic_u32 done;
    struct rt_atomic_u64 proofs_count, busy_count, waits_count;
};

static void make_roots(void)
{
    struct ron_merkle_frontier frontier;

    ron_merkle_frontier_init(&frontier);
    for (uint64_t i = 0; i < LEAVES_COUNT; i++) {
        struct ron_sha256 scratch;

        if (i % STEP == 0)
            roots[i / STEP] = ron_merkle_frontier_root(&frontier);
        scratch = leaves[i] = ron_merkle_leaf(&i, sizeof(i));
        ron_merkle_frontier_append(&frontier, &scratch, 1);
    }
}

static void append_main(void *context) RON_BLOCKS
{
    struct round *round = context;
    size_t at = 0;

    while (at < LEAVES_COUNT) {
        size_t left = LEAVES_COUNT - at, wanted = 1 + sh_random() % 3000;
        size_t count = wanted < left ? wanted : left;
        enum ron_err err = io_tlog_append(round->tlog, leaves + at, count, NULL, NULL);

        if (err == RON_ERR_OK) {
            at += count;
            continue;
        }
        RON_ASSERT(err == RON_ERR_STORAGE_BUSY);
        rt_counter_add(&round->waits_count, 1);
        sh_sleep_until(rt_now_ns() + 50000); /* until the flusher was here */
    }
    rt_atomic_store_u32(&round->done, 1);
}

static void flush_main(void *context) RON_BLOCKS
{
    struct round *round = context;
    bool done;

    do {
        done = rt_atomic_load_u32(&round->done) != 0;
        if (sh_random() % 4 == 0 || done)
            RON_MUST_ZERO(io_tlog_sync(round->tlog, NULL));
        else
            RON_MUST_ZERO(io_tlog_flush(round->tlog, NULL));
    } while (!done);
    RON_ASSERT(io_tlog_durable_size(round->tlog) == LEAVES_COUNT);
}

static void ask_proof(struct round *round, uint64_t size) RON_BLOCKS
{
    struct io_tlog_proof proof;
    enum ron_err err = sh_random() % 2 == 0
                           ? io_tlog_inclusion(round->tlog, sh_random() % size, size, &proof, NULL)
                           : io_tlog_consistency(round->tlog, sh_random() % size, size, &proof,
                                                 NULL);

    RON_ASSERT(err == RON_ERR_OK || err == RON_ERR_BUSY);
    if (err == RON_ERR_OK)
        RON_ASSERT(memcmp(proof.tree.root.bytes, roots[size / STEP].bytes, 32) == 0);
    rt_counter_add(err == RON_ERR_OK ? &round->proofs_count : &round->busy_count, 1);
}

static void ask_tile(struct round *round, uint64_t size) RON_BLOCKS
{
    struct io_tile tile = io_tile_at(size, 0, sh_random() % size / IO_TILE_WIDTH);
    struct ron_sha256 hashes[IO_TILE_WIDTH];
    enum ron_err err = io_tlog_tile(round->tlog, &tile, hashes, NULL);

    RON_ASSERT(err == RON_ERR_OK || err == RON_ERR_BUSY);
    if (err == RON_ERR_OK)
        RON_ASSERT(memcmp(hashes, leaves + tile.index * IO_TILE_WIDTH,
                          tile.width * sizeof(hashes[0])) == 0);
}

static void read_main(void *context) RON_BLOCKS
{
    struct round *round = context;

    do {
        uint64_t steps = io_tlog_size(round->tlog) / STEP;

        if (steps > 0) {
            ask_proof(round, (1 + sh_random() % steps) * STEP);
            ask_tile(round, steps * STEP);
        }
    } while (rt_atomic_load_u32(&round->done) == 0);
}

static void run_round(struct round *round) RON_BLOCKS
{
    static void (*const mains[THREADS])(void *) = {append_main, flush_main, read_main, read_main,
                                                   read_main};
    struct io_tlog_options options = {.dir = "tiles", .cache_bytes = 2 << 20};
    struct sh_thread *threads[THREADS];

    *round = (struct round){.vfs = NULL};
    RON_MUST_ZERO(io_vfs_memory_new(NULL, &round->vfs, NULL));
    options.vfs = round->vfs;
    RON_MUST_ZERO(io_tlog_open(&options, &round->tlog, NULL));
    for (unsigned i = 0; i < THREADS; i++)
        RON_MUST_ZERO(sh_spawn("stress", mains[i], round, &threads[i], NULL));
    for (unsigned i = 0; i < THREADS; i++)
        RON_ASSERT(sh_join(threads[i], SH_NEVER));
    round->tlog = io_tlog_free(round->tlog);
    round->vfs = io_vfs_free(round->vfs);
}

int main(int argc, char **argv) RON_BLOCKS
{
    static struct round round;
    uint64_t proofs_count = 0, busy_count = 0, waits_count = 0;
    unsigned rounds_count = 0;
    struct rt_deadline end;

    rt_init();
    if (!stress_deadline(argc, argv, &end))
        return 2;
    make_roots();
    do {
        run_round(&round);
        rounds_count++;
        proofs_count += rt_counter_load(&round.proofs_count);
        busy_count += rt_counter_load(&round.busy_count);
        waits_count += rt_counter_load(&round.waits_count);
    } while (!rt_deadline_expired(end));
    RON_ASSERT(ron_mem_live_count() == 0);
    printf("1..1\nok 1 - stress_tlog: %u rounds, %llu proofs, %llu busy, %llu waits for the "
           "flusher\n",
           rounds_count, (unsigned long long)proofs_count, (unsigned long long)busy_count,
           (unsigned long long)waits_count);
    return 0;
}
