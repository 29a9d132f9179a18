/*
 * ledger_probe.c - what two threads can do at best: apply, hash, make durable; nothing else.
 *
 * One thread draws transfers between uniformly drawn accounts and applies them: both accounts found
 * by their 16-byte ids, the debit checked, the entry's id entered into a set, the 128 bytes of the
 * leaf written. The other hashes the leaves into an RFC 6962 tree, writes the batch in place into a
 * file that was written before, and syncs it. Batches of 8,000, a ring of four between the two. No
 * names, holds, limits, nonces, log format, indexes, books or replies: the yardstick of `./dev
 * bench ledger`, not a ledger. It hashes in pairs wherever the processor has SHA instructions, so
 * that the yardstick stays what it was held to (1 / 273 ns, bench/ledger.py) whatever ron learns to
 * do faster; where it has none, that would be four times slower, and it hashes as ron does.
 *
 * ledger_probe FILE ACCOUNTS MILLISECONDS: one line of JSON.
 */
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/merkle_frontier.h"
#include "base/sha256_lanes.h"
#include "harness.h"
#include "ledger/core_entry.h"

enum {
    BATCH = 8000,
    RING = 4,
    AHEAD = 12, /* entries whose memory is asked for */
    IDS_SLOTS = 1 << 23,
    FILE_BATCHES = 64,
};

struct account {
    struct ledger_id id;
    struct ron_u128 balance;
};

static struct account *accounts; /* open addressing */
static uint32_t accounts_mask, accounts_count;
static struct ledger_id *account_ids;
static uint64_t *ids; /* of entries: a word of each, 0 is empty */
static uint32_t ids_count;
static uint64_t random_state = 88172645463325252u;

static struct ledger_entry ring[RING][BATCH];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint64_t applied_count, durable_count; /* batches */
static bool is_over;
static int file;
static uint64_t durable_cpu_ns;

static uint64_t draw(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static struct ledger_id draw_id(void)
{
    struct ledger_id id;

    ron_store_le64(id.bytes, draw());
    ron_store_le64(id.bytes + 8, draw());
    return id;
}

static struct account *slot_of(const struct ledger_id *id)
{
    return &accounts[ron_load_le32(id->bytes) & accounts_mask];
}

/* The account's place, or the empty one where it would be. */
static struct account *find(const struct ledger_id *id)
{
    struct account *account = slot_of(id);

    while (!ledger_id_is_zero(&account->id) && !ledger_id_equal(&account->id, id))
        account = account + 1 == accounts + accounts_mask + 1 ? accounts : account + 1;
    return account;
}

static void open_accounts(void)
{
    accounts_mask = 1;
    while (accounts_mask < 2 * accounts_count)
        accounts_mask = 2 * accounts_mask + 1;
    accounts = ron_mem_alloc_array((size_t)accounts_mask + 1, sizeof(accounts[0]));
    account_ids = ron_mem_alloc_array(accounts_count, sizeof(account_ids[0]));
    ids = ron_mem_alloc_array(IDS_SLOTS, sizeof(ids[0]));
    RON_ASSERT(accounts != NULL && account_ids != NULL && ids != NULL);
    memset(ids, 0, IDS_SLOTS * sizeof(ids[0])); /* first touched before it counts */
    for (uint32_t i = 0; i < accounts_count; i++) {
        account_ids[i] = draw_id();
        *find(&account_ids[i]) = (struct account){account_ids[i], ron_u128_of(UINT64_C(1) << 40)};
    }
}

/* True if the id is new. */
static bool enter(const struct ledger_id *id)
{
    const uint64_t word = ron_load_le64(id->bytes) | 1;
    uint32_t at = (uint32_t)(word >> 32) & (IDS_SLOTS - 1);

    if (ids_count == IDS_SLOTS / 2) { /* the window begins anew */
        memset(ids, 0, IDS_SLOTS * sizeof(ids[0]));
        ids_count = 0;
    }
    for (; ids[at] != 0; at = (at + 1) & (IDS_SLOTS - 1))
        if (ids[at] == word)
            return false;
    ids[at] = word;
    ids_count++;
    return true;
}

static void draw_entry(struct ledger_entry *entry)
{
    const uint32_t from = (uint32_t)(draw() % accounts_count);
    const uint32_t step = 1 + (uint32_t)(draw() % (accounts_count - 1));

    *entry = (struct ledger_entry){.id = draw_id(),
                                   .debit = account_ids[from],
                                   .credit = account_ids[(from + step) % accounts_count],
                                   .amount = ron_u128_of(1),
                                   .asset = 1,
                                   .kind = LEDGER_TRANSFER};
    __builtin_prefetch(slot_of(&entry->debit), 1);
    __builtin_prefetch(slot_of(&entry->credit), 1);
    __builtin_prefetch(&ids[(ron_load_le64(entry->id.bytes) >> 32) & (IDS_SLOTS - 1)], 1);
}

static void apply(struct ledger_entry *entry, uint64_t seq)
{
    struct account *debit = find(&entry->debit);
    struct account *credit = find(&entry->credit);

    entry->seq = seq;
    entry->batch = seq / BATCH + 1;
    if (!enter(&entry->id) || !ron_u128_sub(debit->balance, entry->amount, &debit->balance) ||
        !ron_u128_add(credit->balance, entry->amount, &credit->balance))
        RON_UNREACHABLE();
}

static void apply_batch(struct ledger_entry *batch, uint64_t number)
{
    for (uint32_t i = 0; i < AHEAD; i++)
        draw_entry(&batch[i]);
    for (uint32_t i = 0; i < BATCH; i++) {
        if (i + AHEAD < BATCH)
            draw_entry(&batch[i + AHEAD]);
        apply(&batch[i], number * BATCH + i + 1);
    }
}

static void *make_durable(void *argument)
{
    static struct ron_sha256 hashes[BATCH];
    struct ron_merkle_frontier frontier;
    uint64_t begin_ns = bench_cpu_ns();
    uint64_t number = 0;

    (void)argument;
    ron_merkle_frontier_init(&frontier);
    for (;; number++) {
        const struct ledger_entry *batch = ring[number % RING];
        struct ron_sha256 root;
        bool was_last;

        RON_MUST_ZERO(pthread_mutex_lock(&mutex));
        while (applied_count == number && !is_over)
            RON_MUST_ZERO(pthread_cond_wait(&changed, &mutex));
        was_last = applied_count == number;
        RON_MUST_ZERO(pthread_mutex_unlock(&mutex));
        if (was_last)
            break;
        ron_merkle_leaves(batch, sizeof(batch[0]), BATCH, hashes);
        ron_merkle_frontier_append(&frontier, hashes, BATCH);
        root = ron_merkle_frontier_root(&frontier);
        BENCH_USE(&root);
        RON_ASSERT(pwrite(file, batch, sizeof(ring[0]),
                          (off_t)(number % FILE_BATCHES * sizeof(ring[0]))) ==
                   (ssize_t)sizeof(ring[0]));
        RON_MUST_ZERO(fdatasync(file));
        RON_MUST_ZERO(pthread_mutex_lock(&mutex));
        durable_count = number + 1;
        RON_MUST_ZERO(pthread_cond_signal(&changed));
        RON_MUST_ZERO(pthread_mutex_unlock(&mutex));
    }
    durable_cpu_ns = bench_cpu_ns() - begin_ns;
    return NULL;
}

static void run(uint64_t duration_ns)
{
    const uint64_t start_ns = bench_now_ns();
    const uint64_t cpu_ns = bench_cpu_ns();
    pthread_t thread;
    double transfers;
    double seconds;

    RON_MUST_ZERO(pthread_create(&thread, NULL, make_durable, NULL));
    for (uint64_t number = 0; bench_now_ns() - start_ns < duration_ns; number++) {
        RON_MUST_ZERO(pthread_mutex_lock(&mutex));
        while (number - durable_count == RING)
            RON_MUST_ZERO(pthread_cond_wait(&changed, &mutex));
        RON_MUST_ZERO(pthread_mutex_unlock(&mutex));
        apply_batch(ring[number % RING], number);
        RON_MUST_ZERO(pthread_mutex_lock(&mutex));
        applied_count = number + 1;
        RON_MUST_ZERO(pthread_cond_signal(&changed));
        RON_MUST_ZERO(pthread_mutex_unlock(&mutex));
    }
    RON_MUST_ZERO(pthread_mutex_lock(&mutex));
    is_over = true;
    RON_MUST_ZERO(pthread_cond_signal(&changed));
    RON_MUST_ZERO(pthread_mutex_unlock(&mutex));
    RON_MUST_ZERO(pthread_join(thread, NULL));
    seconds = (double)(bench_now_ns() - start_ns) / 1e9;
    transfers = (double)(durable_count * BATCH);
    (void)printf("{\"transfers\":%.0f,\"seconds\":%.6f,\"bytes\":%zu,\"apply_ns\":%.1f,"
                 "\"durable_ns\":%.1f}\n",
                 transfers, seconds, sizeof(ring[0][0]),
                 (double)(bench_cpu_ns() - cpu_ns) / transfers, (double)durable_cpu_ns / transfers);
}

static bool has_sha_instructions(void)
{
#if defined(__x86_64__)
    unsigned eax, ebx, ecx, edx;

    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & bit_SHA) != 0;
#else
    return true;
#endif
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        (void)fprintf(stderr, "usage: ledger_probe FILE ACCOUNTS MILLISECONDS\n");
        return 2;
    }
    accounts_count = (uint32_t)strtoul(argv[2], NULL, 10);
    RON_ASSERT(accounts_count >= 2);
    file = open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) {
        perror(argv[1]);
        return 1;
    }
    for (uint64_t i = 0; i < FILE_BATCHES; i++)
        RON_ASSERT(pwrite(file, ring[0], sizeof(ring[0]), (off_t)(i * sizeof(ring[0]))) ==
                   (ssize_t)sizeof(ring[0]));
    RON_MUST_ZERO(fdatasync(file));
    if (has_sha_instructions())
        ron_sha256_use_lanes(false);
    open_accounts();
    run(strtoull(argv[3], NULL, 10) * 1000000);
    return unlink(argv[1]) == 0 ? 0 : 1;
}
