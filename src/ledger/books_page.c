/*
 * books_page.c - postings of batches in memory, and questions to them. See books_page.h.
 */
#include "ledger/books_page.h"

#include "base/assert.h"
#include "base/mem.h"

enum {
    LINK_LATER = 24,  /* records that wait for the head of their chain */
    FETCH_AHEAD = 16, /* records: memory that is used again has left the cache */
};

/* Chains of two, most of them: a table twice as large is less often in the cache of who adds. */
static uint32_t heads_for(uint32_t records_max)
{
    uint32_t count = 16;

    while (count < records_max / 4)
        count *= 2;
    return count;
}

static bool page_alloc(struct books_page *page, uint32_t records_max, uint32_t batches_max)
{
    page->records_max = records_max;
    page->batches_max = batches_max;
    page->wide_max = records_max / 2 + 1; /* both sides of an entry share one */
    page->heads_mask = heads_for(records_max) - 1;
    page->heads = ron_table_alloc((uint64_t)page->heads_mask + 1, sizeof(*page->heads),
                                  RON_TABLE_IN_ORDER);
    page->batch_starts = ron_mem_alloc_array(batches_max, sizeof(*page->batch_starts));
    page->records = ron_table_alloc(records_max, sizeof(*page->records), RON_TABLE_IN_ORDER);
    page->wide = ron_table_alloc(page->wide_max, sizeof(*page->wide), RON_TABLE_IN_ORDER);
    return page->heads != NULL && page->batch_starts != NULL && page->records != NULL &&
           page->wide != NULL;
}

static void page_begin(struct books_page *page, const struct ledger_frame *first)
{
    page->first_seq = first->seq_start;
    page->first_batch = first->batch;
    page->seed = ron_load_le64(first->root.bytes); /* nobody who chose the ids knew it */
    rt_atomic_store_u64(&page->last_seq, page->first_seq - 1);
}

static struct books_page *page_free(struct books_page *page)
{
    page->heads = ron_table_free(page->heads);
    page->batch_starts = ron_mem_free(page->batch_starts);
    page->records = ron_table_free(page->records);
    page->wide = ron_table_free(page->wide);
    return ron_mem_free(page);
}

enum ron_err books_page_new(uint32_t records_max, uint32_t batches_max,
                            const struct ledger_frame *first, struct books_page **ret_page,
                            struct ron_errinfo *reterr)
{
    struct books_page *page = ron_mem_alloc(sizeof(*page));

    if (page == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a page of the books");
    if (!page_alloc(page, records_max, batches_max)) {
        (void)page_free(page);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a page of %u records", records_max);
    }
    rt_atomic_store_u32(&page->refs_count, 1);
    page_begin(page, first);
    *ret_page = page;
    return RON_ERR_OK;
}

struct books_page *books_page_drop(struct books_page *page)
{
    const bool shelved = page != NULL && page->shelved; /* without the last one it is not ours */

    if (page == NULL || rt_atomic_sub_u32(&page->refs_count, 1) > 1 || shelved)
        return NULL;
    return page_free(page);
}

static void page_reset(struct books_page *page)
{
    page->records_count = 0;
    page->linked_count = 0;
    page->wide_count = 0;
    rt_atomic_store_u32(&page->batches_count, 0);
    memset(page->buckets, 0, sizeof(page->buckets));
    memset(page->heads, 0, ((size_t)page->heads_mask + 1) * sizeof(*page->heads));
}

enum ron_err books_shelf_page(struct books_shelf *shelf, uint32_t records_max, uint32_t batches_max,
                              const struct ledger_frame *first, struct books_page **ret_page,
                              struct ron_errinfo *reterr)
{
    struct books_page **place = NULL;
    enum ron_err err;

    for (size_t i = 0; i < BOOKS_SHELF; i++) {
        struct books_page *page = shelf->pages[i];

        if (page == NULL) {
            place = &shelf->pages[i];
        } else if (page->records_max == records_max && page->batches_max == batches_max &&
                   rt_atomic_cas_u32(&page->refs_count, 0, 1)) {
            page_reset(page);
            page_begin(page, first);
            *ret_page = page;
            return RON_ERR_OK;
        }
    }
    err = books_page_new(records_max, batches_max, first, ret_page, reterr);
    if (err == RON_ERR_OK && place != NULL) {
        *place = *ret_page;
        (*place)->shelved = true;
    }
    return err;
}

void books_shelf_fini(struct books_shelf *shelf)
{
    for (size_t i = 0; i < BOOKS_SHELF; i++) {
        struct books_page *page = RON_TAKE(shelf->pages[i]);

        if (page == NULL)
            continue;
        RON_ASSERT(rt_atomic_load_u32(&page->refs_count) == 0);
        (void)page_free(page);
    }
}

uint32_t books_frame_records(const struct ledger_frame *frame)
{
    return frame->entries_count * BOOKS_ENTRY_RECORDS + 1;
}

bool books_page_fits(const struct books_page *page, const struct ledger_frame *frame)
{
    return page->records_max - page->records_count >= books_frame_records(frame) &&
           rt_atomic_load_u32(&page->batches_count) < page->batches_max;
}

static uint32_t head_of(const struct books_page *page, uint32_t kind, uint64_t high, uint64_t low)
{
    uint64_t hash = (high ^ page->seed) * 0x9e3779b97f4a7c15u ^ (low + kind);

    hash *= 0xd6e8feb86659fd93u;
    return (uint32_t)(hash >> 32) & page->heads_mask;
}

/* Hang the oldest record that does not hang yet into its chain: from now on readers find it. */
static inline void link_next(struct books_page *page)
{
    struct books_record *record = &page->records[page->linked_count++];
    struct rt_atomic_u32 *head = &page->heads[record->below];

    record->below = rt_atomic_load_u32(head);
    rt_atomic_store_u32(head, page->linked_count);
}

/* The head of its chain is seldom near: it is fetched while the next records are made, and `below`
 * keeps its place until then. */
static RON_HOT_INLINE void add(struct books_page *page, unsigned kind, const struct ledger_id *id,
                               uint64_t value, uint32_t what)
{
    struct books_record *at = &page->records[page->records_count];
    const uint64_t high = ron_load_be64(id->bytes), low = ron_load_be64(id->bytes + 8);
    const uint32_t head = head_of(page, kind, high, low);

    RON_ASSERT(page->records_count < page->records_max);
    ron_prefetch_write(&page->heads[head]);
    ron_prefetch_write(at + FETCH_AHEAD);
    *at = (struct books_record){high, low, value, what | (uint32_t)kind << BOOKS_RECORD_KIND, head};
    page->buckets[books_bucket(kind, high)]++;
    page->records_count++;
    if (page->records_count - page->linked_count > LINK_LATER)
        link_next(page);
}

static void add_moves(struct books_page *page, const struct ledger_entry *entry, uint32_t what)
{
    uint64_t value = entry->asset | (uint64_t)entry->amount.v << BOOKS_VALUE_AMOUNT;

    if (entry->asset >> BOOKS_VALUE_AMOUNT != 0 ||
        entry->amount.v >> (64 - BOOKS_VALUE_AMOUNT) != 0) {
        RON_ASSERT(page->wide_count < page->wide_max);
        page->wide[page->wide_count] = (struct books_wide){entry->amount.v, entry->asset};
        value = page->wide_count++;
        what |= BOOKS_RECORD_WIDE;
    }
    add(page, LEDGER_THREAD_ACCOUNT, &entry->credit, value, what);
    add(page, LEDGER_THREAD_ACCOUNT, &entry->debit, value,
        what | BOOKS_RECORD_NEGATIVE | (entry->nonce != 0 ? BOOKS_RECORD_NONCE : 0) |
            (entry->kind == LEDGER_MINT ? BOOKS_RECORD_MINT : 0));
    if (entry->kind == LEDGER_HOLD)
        add(page, LEDGER_THREAD_HOLDS, &entry->debit, 0, what & BOOKS_RECORD_SEQ);
}

static void add_entry(struct books_page *page, const struct ledger_entry *entry,
                      struct ron_slice ext_bytes)
{
    const uint32_t seq_offset = (uint32_t)(entry->seq - page->first_seq);
    struct ledger_thread thread;
    struct ledger_ext ext;
    enum ron_err err;

    if (entry->kind != LEDGER_ANCHOR && entry->kind != LEDGER_ASSET) {
        add_moves(page, entry, seq_offset);
        return;
    }
    thread = ledger_kind_thread(entry->kind);
    if (entry->kind == LEDGER_ANCHOR) {
        err = ledger_ext_decode(ext_bytes, &ext, NULL);
        RON_ASSERT(err == RON_ERR_OK); /* ledger_frame_decode has looked at every leaf */
        thread = ledger_stream_thread(ext.stream);
    }
    add(page, thread.kind, &thread.id, 0, seq_offset);
}

static void add_key(struct books_page *page, const struct ledger_frame *frame)
{
    const struct ledger_id id = ledger_key_id(&frame->stamp, frame->command, frame->key);

    add(page, LEDGER_THREAD_KEY, &id, 0, (uint32_t)(frame->seq_start - page->first_seq));
}

void books_page_add(struct books_page *page, const struct ledger_frame *frame)
{
    const uint32_t batches_count = rt_atomic_load_u32(&page->batches_count);
    const uint8_t *ext = frame->ext.data;

    RON_ASSERT(books_page_fits(page, frame));
    RON_ASSERT(frame->seq_start == books_page_last_seq(page) + 1);
    RON_ASSERT(frame->batch == page->first_batch + batches_count);
    for (uint32_t i = 0; i < frame->entries_count; i++) {
        const size_t ext_size = ron_load_le16(frame->ext_sizes.data + (size_t)2 * i);
        struct ledger_entry entry;

        memcpy(&entry, frame->entries.data + (size_t)i * RON_ENTRY_SIZE, sizeof(entry));
        add_entry(page, &entry, ron_slice_of(ext, ext_size));
        ext += ext_size;
    }
    if (frame->has_key)
        add_key(page, frame);
    while (page->linked_count < page->records_count)
        link_next(page);
    page->root = frame->root;
    page->batch_starts[batches_count] = (uint32_t)(frame->seq_start - page->first_seq);
    rt_atomic_store_u32(&page->batches_count, batches_count + 1);
    rt_atomic_store_u64(&page->last_seq, frame->seq_start + frame->entries_count - 1);
}

uint64_t books_page_batch(const struct books_page *page, uint64_t seq)
{
    const uint32_t offset = (uint32_t)(seq - page->first_seq);
    uint32_t first = 0, count = rt_atomic_load_u32(&page->batches_count);

    RON_ASSERT(seq >= page->first_seq);
    RON_ASSERT(seq <= books_page_last_seq(page));
    while (count > 0) { /* the number of batches that do not begin beyond it */
        uint32_t half = count / 2;
        bool before = page->batch_starts[first + half] <= offset;

        first = before ? first + half + 1 : first;
        count = before ? count - half - 1 : half;
    }
    RON_ASSERT(first > 0);
    return page->first_batch + first - 1;
}

/* The newest record of the thread's kind and id in the chain from `place` on; 0: none. */
static uint32_t next_record(const struct books_page *page, const struct ledger_thread *thread,
                            uint32_t place)
{
    const uint64_t high = ron_load_be64(thread->id.bytes);
    const uint64_t low = ron_load_be64(thread->id.bytes + 8);

    for (; place != 0; place = page->records[place - 1].below) {
        const struct books_record *record = &page->records[place - 1];

        if (record->high == high && record->low == low && books_record_kind(record) == thread->kind)
            return place;
    }
    return 0;
}

static uint32_t first_record(const struct books_page *page, const struct ledger_thread *thread)
{
    const uint32_t head = head_of(page, thread->kind, ron_load_be64(thread->id.bytes),
                                  ron_load_be64(thread->id.bytes + 8));

    return next_record(page, thread, rt_atomic_load_u32(&page->heads[head]));
}

void books_page_sum(const struct books_page *page, const struct ledger_thread *thread,
                    uint64_t at_seq, struct books_sum *ret_sum)
{
    struct books_sum sum = {.count = 0};

    for (uint32_t place = first_record(page, thread); place != 0;
         place = next_record(page, thread, page->records[place - 1].below)) {
        const struct books_posting posting = books_record_posting(page, &page->records[place - 1]);

        if (posting.place.seq > at_seq)
            continue;
        if (posting.place.asset == thread->asset)
            books_sum_add(&sum, &posting);
        else
            sum.count += posting.nonce;
    }
    *ret_sum = sum;
}

static void reverse(uint64_t *seqs, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        const uint64_t seq = seqs[i];

        seqs[i] = seqs[count - 1 - i];
        seqs[count - 1 - i] = seq;
    }
}

size_t books_page_seqs(const struct books_page *page, const struct ledger_thread *thread,
                       uint64_t after, bool newest_first, uint64_t *seqs, size_t seqs_max)
{
    const uint64_t last_seq = books_page_last_seq(page);
    size_t found = 0, count;

    for (uint32_t place = first_record(page, thread); place != 0;
         place = next_record(page, thread, page->records[place - 1].below)) {
        const struct books_record *record = &page->records[place - 1];
        const uint64_t seq = books_record_seq(page, record);

        if (seq > last_seq ||
            (thread->asset != 0 && books_record_asset(page, record) != thread->asset))
            continue;
        if (newest_first && seq >= after)
            continue;
        if (newest_first ? found == seqs_max : seq <= after)
            break;
        seqs[found++ % seqs_max] = seq; /* ascending: the oldest ones beyond `after` remain */
    }
    if (newest_first)
        return found;
    if (found <= seqs_max) {
        reverse(seqs, found);
        return found;
    }
    /* The ring's newest is at `start`: [start, end) and then [0, start) descend. Reversing each of
     * the two in its place turns them to ascending, older half first. */
    count = found % seqs_max;
    reverse(seqs, count);
    reverse(seqs + count, seqs_max - count);
    return seqs_max;
}
