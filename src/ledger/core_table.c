/*
 * core_table.c - accounts by id, their names, and their rows (one for each asset).
 *
 * Written by the sequencer alone. Accounts and rows are appended and, if their batch fails, cut off
 * again; readers on other threads notice that by `structure`.
 */
#include "ledger/core_types.h"

uint32_t account_find(const struct ledger_core *core, const struct ledger_id *id)
{
    const uint32_t hash = id_hash(id);
    uint32_t at = hash;
    uint32_t place;

    while ((place = ledger_index_next(&core->account_index, hash, &at)) != LEDGER_INDEX_NONE)
        if (account_is(&core->accounts[place], id))
            return place;
    return NONE;
}

struct ledger_id account_id(const struct account *account)
{
    struct ledger_id id;

    ron_store_le64(id.bytes, atomic_load_explicit(&account->id_words[0], memory_order_relaxed));
    ron_store_le64(id.bytes + 8, atomic_load_explicit(&account->id_words[1], memory_order_relaxed));
    return id;
}

struct ron_slice account_name(const struct ledger_core *core, const struct account *account)
{
    RON_ASSERT(account->name_size > 0);
    return ron_slice_of(core->names + account->name_offset, account->name_size);
}

enum account_class account_class(const struct account *account)
{
    return (enum account_class)(account->flags & ACCOUNT_CLASS);
}

static bool has_prefix(struct ron_slice name, struct ron_slice prefix)
{
    return name.size >= prefix.size && memcmp(name.data, prefix.data, prefix.size) == 0;
}

enum account_class name_class(struct ron_slice name)
{
    if (has_prefix(name, RON_SLICE("pool/")))
        return CLASS_POOL;
    if (!has_prefix(name, RON_SLICE("sys/")))
        return CLASS_USER;
    if (has_prefix(name, RON_SLICE("sys/mint/")))
        return CLASS_MINT;
    if (has_prefix(name, RON_SLICE("sys/burn/")))
        return CLASS_BURN;
    if (has_prefix(name, RON_SLICE("sys/clearing/")))
        return CLASS_CLEARING;
    if (has_prefix(name, RON_SLICE("sys/hold/")))
        return CLASS_HOLD;
    return CLASS_SYSTEM;
}

uint32_t account_add(struct ledger_core *core, const struct ledger_id *id, const char *prefix,
                     struct ron_slice name)
{
    const size_t prefix_size = strlen(prefix);
    const uint32_t place = core->accounts_count;
    struct account *account = account_write(core, place);
    uint8_t *text = core->names + core->names_size;

    RON_ASSERT(place < core->capacity.accounts_max);
    RON_ASSERT(core->names_size <= core->capacity.names_size_max);
    RON_ASSERT(name.size > 0);
    RON_ASSERT(prefix_size + name.size <= RON_ACCOUNT_NAME_SIZE_MAX);
    RON_ASSERT(prefix_size + name.size <= core->capacity.names_size_max - core->names_size);
    RON_ASSERT_SLOW(account_find(core, id) == NONE);
    if (prefix_size > 0)
        memcpy(text, prefix, prefix_size);
    memcpy(text + prefix_size, name.data, name.size);
    account->next_nonce = 1;
    account->name_offset = core->names_size;
    account->name_size = (uint8_t)(prefix_size + name.size);
    account->flags = (uint8_t)name_class(account_name(core, account));
    atomic_store_explicit(&account->row_first, NONE, memory_order_release);
    atomic_store_explicit(&account->row_home, NONE, memory_order_release);
    atomic_store_explicit(&account->id_words[0], ron_load_le64(id->bytes), memory_order_release);
    atomic_store_explicit(&account->id_words[1], ron_load_le64(id->bytes + 8),
                          memory_order_release);
    core->names_size += account->name_size;
    core->accounts_count++;
    ledger_index_add(&core->account_index, id_hash(id), place); /* releases all the above */
    return place;
}

uint32_t row_find(const struct ledger_core *core, uint32_t account, uint32_t asset)
{
    uint32_t row = atomic_load_explicit(&core->accounts[account].row_first, memory_order_acquire);

    while (row != NONE &&
           atomic_load_explicit(&core->rows[row].asset, memory_order_acquire) != asset)
        row = atomic_load_explicit(&core->rows[row].next, memory_order_acquire);
    return row;
}

uint32_t row_add(struct ledger_core *core, uint32_t account, uint32_t asset)
{
    const uint32_t place = core->rows_count;
    struct account *owner = account_write(core, account);
    struct row *row = row_write(core, place);

    RON_ASSERT(place < core->capacity.rows_max);
    RON_ASSERT(account < core->accounts_count);
    RON_ASSERT(asset >= 1);
    RON_ASSERT(asset <= core->assets_count);
    RON_ASSERT_SLOW(row_find(core, account, asset) == NONE);
    row->balance = ron_u128_of(0);
    row->daily = ron_u128_of(0);
    row->limits = NONE;
    row->day = 0;
    row->cell = 0;
    row->command = 0;
    row->flags = 0;
    row_set_committed(&core->committed[place], ron_u128_of(0), 0);
    atomic_store_explicit(&core->committed[place].nonce, owner->next_nonce, memory_order_release);
    atomic_store_explicit(&row->account, account, memory_order_release);
    atomic_store_explicit(&row->asset, asset, memory_order_release);
    atomic_store_explicit(&row->next, atomic_load_explicit(&owner->row_first, memory_order_relaxed),
                          memory_order_release);
    core->rows_count++;
    if (atomic_load_explicit(&owner->row_home, memory_order_relaxed) == NONE)
        atomic_store_explicit(&owner->row_home, place, memory_order_release);
    atomic_store_explicit(&owner->row_first, place, memory_order_release);
    return place;
}

void table_truncate(struct ledger_core *core, const struct ledger_marks *marks)
{
    uint32_t structure = atomic_load_explicit(&core->structure, memory_order_relaxed);

    RON_ASSERT(marks->accounts <= core->accounts_count);
    RON_ASSERT(marks->rows <= core->rows_count);
    RON_ASSERT(marks->names <= core->names_size);
    RON_ASSERT(structure % 2 == 0);
    if (marks->accounts == core->accounts_count && marks->rows == core->rows_count)
        return;
    atomic_store_explicit(&core->structure, structure + 1, memory_order_relaxed);
    while (core->rows_count > marks->rows) {
        const struct row *row = &core->rows[--core->rows_count];
        struct account *owner = account_write(
            core, atomic_load_explicit(&row->account, memory_order_relaxed));

        /* Newest first, so the row is the head of its account's list. */
        RON_ASSERT(atomic_load_explicit(&owner->row_first, memory_order_relaxed) ==
                   core->rows_count);
        atomic_store_explicit(&owner->row_first,
                              atomic_load_explicit(&row->next, memory_order_relaxed),
                              memory_order_release);
        if (atomic_load_explicit(&owner->row_home, memory_order_relaxed) == core->rows_count)
            atomic_store_explicit(&owner->row_home, NONE, memory_order_release);
    }
    while (core->accounts_count > marks->accounts) {
        struct ledger_id id = account_id(&core->accounts[--core->accounts_count]);

        ledger_index_remove(&core->account_index, id_hash(&id), core->accounts_count);
    }
    core->names_size = marks->names;
    atomic_store_explicit(&core->structure, structure + 2, memory_order_release);
}
