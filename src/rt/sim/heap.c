/*
 * heap.c - the memory of a run: a deterministic arena behind ron_mem_alloc.
 *
 * While a fiber runs, base/mem.h takes from here; the host still has the heap. Same calls, same
 * addresses; the whole is wiped before each run, so a run can leak nothing into the next, and its
 * bytes can be hashed as part of the state. Blocks have power-of-two sizes with a head in front;
 * freed ones are wiped and go to the list of their size. Everything, the lists included, lies
 * inside the arena.
 */
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "base/mem.h"
#include "rt/sim/internal.h"

#if RON_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, size)   ASAN_POISON_MEMORY_REGION(p, size)
#define UNPOISON(p, size) ASAN_UNPOISON_MEMORY_REGION(p, size)
#else
#define POISON(p, size)   ((void)(size))
#define UNPOISON(p, size) ((void)0)
#endif

#define ARENA_ADDRESS ((void *)0x10000000) /* application memory under every sanitizer */
#define ARENA_SIZE    (512ull << 20)       /* reserved, not used */

enum { PAGE_SIZE = 4096, GIVEN_BACK_MIN = 64 * 1024, POISON_AHEAD = 1024 * 1024 };
enum { CLASS_MIN = 5, CLASS_MAX = 28, BLOCK_LIVE = 0x6c697665, BLOCK_FREE = 0x66726565 };

/* Before each block. */
struct head {
    uint32_t state;
    uint16_t size_class; /* the block, head included, is 1 << size_class bytes */
    uint16_t node;       /* whose it is */
    uint64_t size;       /* asked for; in a free block the offset of the next, 0 for none */
};

struct arena {
    _Alignas(16) uint64_t used_size; /* these members included */
    uint32_t live_count;
    uint32_t unused;
    uint64_t free_offsets[CLASS_MAX + 1]; /* by class; 0 for none */
};

_Static_assert(sizeof(struct arena) % 16 == 0, "blocks are aligned");
_Static_assert(sizeof(struct head) == 16, "blocks are aligned");

static struct arena *arena;
static uint64_t poisoned_size; /* of the arena; what is in use lies within, and is not */

static struct head *head_at(uint64_t offset)
{
    return (struct head *)(void *)((uint8_t *)arena + offset);
}

static void *data_of(struct head *head)
{
    return head + 1;
}

static struct head *head_of(void *data)
{
    struct head *head = (struct head *)data - 1;

    RON_ASSERT((uint8_t *)data > (uint8_t *)arena); /* not the heap's */
    RON_ASSERT((uint8_t *)data < (uint8_t *)arena + arena->used_size);
    RON_ASSERT(head->state == BLOCK_LIVE); /* freed twice, or never allocated */
    return head;
}

static unsigned class_of(size_t size)
{
    uint64_t total = (uint64_t)size + sizeof(struct head);
    unsigned size_class = 64u - (unsigned)__builtin_clzll(total - 1);

    return size_class < CLASS_MIN ? (unsigned)CLASS_MIN : size_class;
}

/* Make it zero. What is large is mostly unused: given back, its pages cost nothing until they are
 * touched again, as zeros; but a search that hashes states touches all of them. */
static void wipe(void *data, size_t size)
{
    uint8_t *begin = data;
    uint8_t *end = begin + size;

    if (size >= GIVEN_BACK_MIN && !sim.job->hash_states) {
        uint8_t *pages = begin + (-(uintptr_t)begin & (PAGE_SIZE - 1));
        const size_t pages_size = (size_t)(end - pages) & ~(size_t)(PAGE_SIZE - 1);

        RON_MUST_ZERO(madvise(pages, pages_size, MADV_DONTNEED));
        memset(begin, 0, (size_t)(pages - begin));
        begin = pages + pages_size;
    }
    memset(begin, 0, (size_t)(end - begin));
}

/* Under ASan nobody may look behind used_size: poisoned as it grows, because the whole arena would
 * cost 64 MiB of shadow in each process, of which a suite has hundreds. */
static void poison_ahead(uint64_t used_size)
{
    uint64_t wanted = used_size + POISON_AHEAD;

    if (wanted > ARENA_SIZE)
        wanted = ARENA_SIZE;
    if (wanted <= poisoned_size)
        return;
    POISON((uint8_t *)arena + poisoned_size, wanted - poisoned_size);
    poisoned_size = wanted;
}

static void *heap_alloc(size_t size)
{
    unsigned size_class = class_of(size);
    struct head *head;

    if (sim.self == NULL)
        return ron_mem_heap.alloc(size);
    if (sim.left.alloc_failures > 0 && sim_ask(SIM_CHOOSE_ALLOC, 2, "an allocation fails") != 0) {
        sim.left.alloc_failures--;
        return NULL;
    }
    if (size_class > CLASS_MAX)
        return NULL;
    if (arena->free_offsets[size_class] != 0) {
        head = head_at(arena->free_offsets[size_class]);
        RON_ASSERT(head->state == BLOCK_FREE);
        sim_tsan_acquire(head); /* as from any allocator: its last owner is done with it */
        arena->free_offsets[size_class] = head->size;
    } else {
        if (arena->used_size + (1ull << size_class) > ARENA_SIZE)
            return NULL;
        poison_ahead(arena->used_size + (1ull << size_class));
        head = head_at(arena->used_size);
        UNPOISON(head, sizeof(*head));
        arena->used_size += 1ull << size_class;
    }
    *head = (struct head){BLOCK_LIVE, (uint16_t)size_class, (uint16_t)sim.self->memory_node, size};
    arena->live_count++;
    UNPOISON(data_of(head), size);
    return data_of(head);
}

static void heap_free(void *data)
{
    struct head *head;

    if (sim.self == NULL) {
        ron_mem_heap.free(data);
        return;
    }
    head = head_of(data);
    RON_ASSERT(arena->live_count > 0);
    arena->live_count--;
    wipe(data, head->size);
    POISON(data, ((size_t)1 << head->size_class) - sizeof(*head));
    head->state = BLOCK_FREE;
    head->node = 0;
    head->size = arena->free_offsets[head->size_class];
    arena->free_offsets[head->size_class] = (uint64_t)((uint8_t *)head - (uint8_t *)arena);
    sim_tsan_release(head);
}

static void *heap_resize(void *data, size_t size)
{
    struct head *head;
    void *resized;

    if (sim.self == NULL)
        return ron_mem_heap.resize(data, size);
    if (data == NULL)
        return heap_alloc(size);
    head = head_of(data);
    resized = heap_alloc(size);
    if (resized == NULL)
        return NULL;
    memcpy(resized, data, head->size < size ? head->size : size);
    heap_free(data);
    return resized;
}

static const struct ron_mem_allocator allocator = {heap_alloc, heap_resize, heap_free};

void sim_heap_install(bool installed)
{
    ron_mem_set_allocator(installed ? &allocator : NULL);
}

/* Block by block: small ones stay in memory, where they will be used again. A run that spoilt a
 * head has failed, and must not spoil the next. */
static void wipe_all(void)
{
    uint64_t offset = sizeof(*arena);

    while (offset < arena->used_size) {
        struct head *head = head_at(offset);
        const unsigned size_class = head->size_class;

        if (size_class < CLASS_MIN || size_class > CLASS_MAX ||
            1ull << size_class > arena->used_size - offset) {
            RON_MUST_ZERO(madvise(arena, ARENA_SIZE, MADV_DONTNEED));
            return;
        }
        wipe(head, 1ull << size_class);
        offset += 1ull << size_class;
    }
    memset(arena, 0, sizeof(*arena));
}

void sim_heap_reset(void)
{
    uint64_t used_size;

    if (arena == NULL) {
        void *map = mmap(ARENA_ADDRESS, ARENA_SIZE, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (map == MAP_FAILED)
            map = mmap(NULL, ARENA_SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        RON_ASSERT(map != MAP_FAILED);
        arena = map;
        arena->used_size = sizeof(*arena);
        poisoned_size = sizeof(*arena);
        poison_ahead(sizeof(*arena));
    }
    used_size = arena->used_size;
    UNPOISON(arena, used_size);
    wipe_all();
    POISON(arena + 1, used_size - sizeof(*arena));
    arena->used_size = sizeof(*arena);
}

uint32_t sim_heap_live_count(void)
{
    return arena->live_count;
}

/* The node's memory is gone: not a leak, and under ASan nobody may look at it. */
void sim_heap_lose(uint32_t node)
{
    uint64_t offset = sizeof(*arena);

    while (offset < arena->used_size) {
        struct head *head = head_at(offset);

        RON_ASSERT(head->state == BLOCK_LIVE || head->state == BLOCK_FREE);
        offset += 1ull << head->size_class;
        if (head->state != BLOCK_LIVE || head->node != node)
            continue;
        head->node = UINT16_MAX;
        wipe(data_of(head), head->size);
        POISON(data_of(head), head->size);
        arena->live_count--;
    }
}

uint32_t sim_allocations_count(void)
{
    return arena->live_count;
}

void sim_spare_allocations(bool spared)
{
    RON_ASSERT(sim.self != NULL);
    if (spared) {
        sim.spared_failures += sim.left.alloc_failures;
        sim.left.alloc_failures = 0;
    } else {
        sim.left.alloc_failures += sim.spared_failures;
        sim.spared_failures = 0;
    }
}

/* What lies behind a block's bytes, and what was freed, is zero: only the rest is looked at. */
uint64_t sim_heap_hash(uint64_t hash)
{
    uint64_t offset = sizeof(*arena);

    hash = sim_hash_bytes(hash, (const uint8_t *)arena, sizeof(*arena));
    while (offset < arena->used_size) {
        const struct head *head = head_at(offset);

        hash = sim_hash_bytes(hash, (const uint8_t *)head,
                              sizeof(*head) + (head->state == BLOCK_LIVE ? head->size : 0));
        offset += 1ull << head->size_class;
    }
    return hash;
}
