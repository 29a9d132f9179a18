/*
 * core_window.c - the newest entries by id and by nonce, and the newest keys.
 *
 * Rings that forget the oldest and indexes over them; what they have forgotten the archive knows,
 * and without an archive they forget nothing: a full one refuses. The archive knows what is
 * committed and indexed, so nothing else is ever forgotten: a window full of the rest refuses too.
 *
 * While a log is replayed the archive knows what is still to come: what it finds beyond the head is
 * no answer, and whether a replayed entry is new is asked of the windows alone.
 */
#include "ledger/core_ids.h"
#include "ledger/core_types.h"

uint32_t nonce_hash(const struct ledger_id *debit, uint64_t nonce)
{
    uint64_t mixed = ron_load_le64(debit->bytes) ^ nonce * UINT64_C(0x9e3779b97f4a7c15);

    return (uint32_t)(mixed >> 32 ^ mixed);
}

static bool window_find(const struct ledger_core *core, const struct ledger_id *id,
                        uint64_t seq_max, struct ledger_entry *ret_entry)
{
    struct ledger_recent_walk walk = ledger_recent_begin(&core->id_index, id_hash(id));
    uint32_t tag;

    while ((tag = ledger_recent_next(&core->id_index, &walk, core->ring_first)) !=
           LEDGER_RECENT_NONE) {
        const struct ledger_entry *entry = &core->ring[tag & core->ring_mask];

        if (tag_seq(core, tag) <= seq_max && ledger_id_equal(&entry->id, id)) {
            *ret_entry = *entry;
            return true;
        }
    }
    return false;
}

/* The ring is the sequencer's, so a reader makes the seq from the tag alone: it is less than 2^31
 * older than seq_max, or newer than that; then the seq is 2^31 too low, before the window, and left
 * out. What died meanwhile may be told or missed: the archive has it. */
uint64_t ledger_core_seq_of(const struct ledger_core *core, const struct ledger_id *id,
                            uint64_t seq_max, uint64_t below)
{
    const uint64_t first = atomic_load_explicit(&core->readers_first, memory_order_acquire);
    struct ledger_recent_walk walk = ledger_recent_begin(&core->id_index, id_hash(id));
    uint64_t newest = 0;
    uint32_t tag;

    while ((tag = ledger_recent_next(&core->id_index, &walk, first)) != LEDGER_RECENT_NONE) {
        const uint64_t older = ledger_tag(seq_max - tag);
        const uint64_t seq = older < seq_max ? seq_max - older : 0;

        if (seq >= first && seq < below && seq > newest)
            newest = seq;
    }
    return newest;
}

bool window_has(const struct ledger_core *core, const struct ledger_id *id,
                struct ledger_entry *ret_entry)
{
    return window_find(core, id, core->seq_last, ret_entry);
}

uint64_t window_batch_max(const struct ledger_core *core)
{
    if (core->ring_first == 1)
        return 0;
    return core->ring_first > core->seq_last
               ? core->batch_last
               : core->ring[(uint32_t)core->ring_first & core->ring_mask].batch;
}

static uint64_t keys_batch_max(const struct ledger_core *core)
{
    return core->keys_first == core->keys_end
               ? core->batch_last
               : core->keys[(uint32_t)core->keys_first & core->keys_mask].batch - 1;
}

bool entry_find(const struct ledger_core *core, const struct ledger_id *id, uint64_t seq_max,
                struct ledger_entry *ret_entry)
{
    const uint64_t batch_max = window_batch_max(core);

    return window_find(core, id, seq_max, ret_entry) ||
           (core->archive.find_entry != NULL && batch_max > 0 &&
            core->archive.find_entry(core->archive.context, id, batch_max, ret_entry) &&
            ret_entry->seq <= seq_max);
}

bool nonce_find(const struct ledger_core *core, const struct ledger_id *debit, uint64_t nonce,
                struct ledger_entry *ret_entry)
{
    const uint64_t batch_max = window_batch_max(core);
    struct ledger_recent_walk walk = ledger_recent_begin(&core->nonce_index,
                                                         nonce_hash(debit, nonce));
    uint32_t tag;

    while ((tag = ledger_recent_next(&core->nonce_index, &walk, core->ring_first)) !=
           LEDGER_RECENT_NONE) {
        const struct ledger_entry *entry = &core->ring[tag & core->ring_mask];

        if (entry->nonce == nonce && ledger_id_equal(&entry->debit, debit)) {
            *ret_entry = *entry;
            return true;
        }
    }
    return core->archive.find_nonce != NULL && core->replay == NULL && batch_max > 0 &&
           core->archive.find_nonce(core->archive.context, debit, nonce, batch_max, ret_entry);
}

struct ledger_id ledger_key_id(const struct ledger_stamp *stamp, enum ledger_command_kind command,
                               struct ron_slice key)
{
    const struct ron_slice domain = command == LEDGER_COMMAND_INTENTS
                                        ? RON_B3_DOMAIN("ron:runkey:v1")
                                        : RON_B3_DOMAIN("ron:key:v1");
    uint8_t scope[17];
    struct ledger_id id;

    ron_u128_store_be(scope, stamp->tenant);
    scope[16] = (uint8_t)stamp->caller;
    ron_b3_id16(domain, ron_slice_of(scope, sizeof(scope)), key, id.bytes);
    return id;
}

bool window_has_key(const struct ledger_core *core, const struct ledger_id *id,
                    struct ledger_key *ret_key)
{
    const uint32_t hash = id_hash(id);
    uint32_t at = hash;
    uint32_t place;

    while ((place = ledger_index_next(&core->key_index, hash, &at)) != LEDGER_INDEX_NONE)
        if (ledger_id_equal(&core->keys[place].id, id)) {
            *ret_key = core->keys[place];
            return true;
        }
    return false;
}

bool key_find(const struct ledger_core *core, const struct ledger_id *id,
              struct ledger_key *ret_key)
{
    const uint64_t batch_max = keys_batch_max(core);

    return window_has_key(core, id, ret_key) ||
           (core->archive.find_key != NULL && core->replay == NULL && batch_max > 0 &&
            core->archive.find_key(core->archive.context, id, batch_max, ret_key));
}

void key_add(struct ledger_core *core, const struct ledger_key *key)
{
    uint32_t place = (uint32_t)core->keys_end & core->keys_mask;

    RON_ASSERT(core->keys_end - core->keys_first <= core->keys_mask);
    core->keys[place] = *key;
    ledger_index_add(&core->key_index, id_hash(&key->id), place);
    core->keys_end++;
}

static void key_forget(struct ledger_core *core, uint64_t number)
{
    uint32_t place = (uint32_t)number & core->keys_mask;

    ledger_index_remove(&core->key_index, id_hash(&core->keys[place].id), place);
}

void key_remove_newest(struct ledger_core *core)
{
    RON_ASSERT(core->keys_end > core->keys_first); /* what is pending is never forgotten */
    core->keys_end--;
    key_forget(core, core->keys_end);
}

uint64_t window_first(const struct ledger_core *core)
{
    const uint64_t window = core->archive.find_entry == NULL ? UINT64_MAX
                                                             : core->capacity.entries_window;

    return core->seq_last > window && core->seq_last - window + 1 > core->ring_first
               ? core->seq_last - window + 1
               : core->ring_first;
}

uint64_t window_keys_first(const struct ledger_core *core)
{
    const uint64_t window = core->archive.find_key == NULL ? UINT64_MAX
                                                           : core->capacity.keys_window;

    return core->keys_end > window && core->keys_end - window > core->keys_first
               ? core->keys_end - window
               : core->keys_first;
}

bool is_archived(struct ledger_core *core, uint64_t batch)
{
    if (core->archive.last_batch == NULL)
        return true;
    if (batch > core->archived_batch)
        core->archived_batch = core->archive.last_batch(core->archive.context);
    return batch <= core->archived_batch;
}

static uint64_t ring_batch(const struct ledger_core *core, uint64_t seq)
{
    const struct ledger_entry *entry = &core->ring[(uint32_t)seq & core->ring_mask];

    RON_ASSERT(entry->seq == seq);
    return entry->batch;
}

/* Entries before `end` are forgotten, as far as the archive has them. As a rule it has all: then
 * one of them is looked at, for they lie where nobody has been for long. */
static void forget_entries(struct ledger_core *core, uint64_t end)
{
    const uint64_t before = core->ring_first;
    uint64_t first = before;

    if (end <= before)
        return;
    if (is_archived(core, ring_batch(core, end - 1))) {
        first = end;
    } else {
        RON_PROBE("ledger: the window keeps what is not indexed");
        while (first < end && is_archived(core, ring_batch(core, first)))
            first++; /* the archive may have more of them than a moment before */
    }
    if (first == before)
        return;
    RON_PROBE("ledger: the window forgets an entry");
    window_begin(core, first);
    ledger_recent_sweep(&core->id_index, before, first);
    ledger_recent_sweep(&core->nonce_index, before, first);
}

void window_trim(struct ledger_core *core)
{
    const uint64_t seq = atomic_load_explicit(&core->committed_seq, memory_order_acquire);
    const uint64_t batch = atomic_load_explicit(&core->committed_batch, memory_order_acquire);

    if (core->archive.find_entry != NULL && core->seq_last >= core->capacity.entries_window) {
        const uint64_t end = core->seq_last + 1 - core->capacity.entries_window;

        forget_entries(core, end <= seq ? end : seq + 1);
    }
    while (core->archive.find_key != NULL &&
           core->keys_end - core->keys_first > core->capacity.keys_window &&
           core->keys[(uint32_t)core->keys_first & core->keys_mask].batch <= batch &&
           is_archived(core, core->keys[(uint32_t)core->keys_first & core->keys_mask].batch))
        key_forget(core, core->keys_first++);
}
