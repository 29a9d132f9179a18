/*
 * core_types.h - the state of the ledger core. Private to src/ledger/core*.c.
 * tidy: long file because the state is read best in one piece.
 *
 * Records live in arrays that only grow; indexes map hashes to places in them. A batch that fails
 * cuts the arrays back to their marks and puts changed cells back: see core_undo.c.
 *
 * What readers touch is atomic. The `stamp` of an account's home row is odd while the committer
 * writes what is committed of any of its rows; `structure` of the core is odd while accounts or
 * rows are taken back. A reader that saw one of them change starts
 * again. There are no fences (TSan does not know them): what is published is stored with release
 * after the odd stamp, and loaded with acquire before the stamp is looked at again, so new values
 * come with the new stamp.
 */
#ifndef RON_LEDGER_CORE_TYPES_H
#define RON_LEDGER_CORE_TYPES_H

#include <stdatomic.h>

#include "base/assert.h"
#include "ledger/core.h"
#include "ledger/core_batch.h"
#include "ledger/core_index.h"
#include "ledger/core_recent.h"

#define CORE_MAGIC 0x1ed9e5c0u

enum { NONE = UINT32_MAX };

/* What an account is, by its name. */
enum account_class {
    CLASS_USER,
    CLASS_POOL,
    CLASS_MINT,
    CLASS_BURN,
    CLASS_CLEARING,
    CLASS_HOLD,
    CLASS_SYSTEM, /* any other sys/ */
};

#define ACCOUNT_FROZEN 0x80u
#define ACCOUNT_CLASS  0x0fu

/* The sequencer's alone to write. */
struct account {
    _Atomic uint64_t id_words[2];
    uint64_t next_nonce; /* pending */
    uint32_t name_offset;
    _Atomic uint32_t row_first; /* its newest */
    _Atomic uint32_t row_home;  /* its oldest; NONE: it has none, and has used no nonce */
    uint8_t name_size;
    uint8_t flags; /* pending: class, FROZEN */
    uint64_t unused[3];
};
_Static_assert(sizeof(struct account) == 64, "one cache line");

#define ROW_NEGATIVE 0x1u
#define ROW_LISTED   0x2u /* an entry has touched it: part of the state root */
#define ROW_FLAGS    0x3u

struct row {
    struct ron_u128 balance; /* pending magnitude; of sys/mint: the total issued */
    struct ron_u128 daily;   /* debits of `day` so far; stays at 2^128-1 once beyond */
    _Atomic uint32_t account;
    _Atomic uint32_t asset;
    _Atomic uint32_t next; /* of the same account; never changes */
    uint32_t limits;       /* NONE or a record */
    uint32_t day;
    uint32_t cell; /* in the batch under way, if that cell names this row */
    uint32_t
        command;   /* that set cell, modulo 2^32: of another one the cell need not be looked at */
    uint8_t flags; /* pending */
};
_Static_assert(sizeof(struct row) == 64, "one cache line");

/* What the committer writes, all of it: apart, so that each of the two has one line of its own to
 * wait for, and takes none from the other. What it writes of an account stands with the account's
 * home row: of one with one asset it touches nothing else. */
struct row_committed {
    _Atomic uint64_t words[2]; /* the balance */
    _Atomic uint64_t nonce;    /* of a home row: the account's next */
    _Atomic uint64_t stamp;
};
_Static_assert(sizeof(struct row_committed) == 32, "two in a cache line, none in two");

/* From the lowest bit: odd while the account is written (of a home row); the row's flags; seq of
 * the last batch end that changed it. Each batch has another one, so a stamp never comes again. */
enum { STAMP_ODD = 1, STAMP_FLAGS_SHIFT = 1, STAMP_SEQ_SHIFT = 3 };
static inline uint64_t stamp_of(uint8_t flags, uint64_t seq)
{
    return seq << STAMP_SEQ_SHIFT | (uint64_t)flags << STAMP_FLAGS_SHIFT;
}
static inline uint8_t stamp_flags(uint64_t stamp)
{
    return (uint8_t)(stamp >> STAMP_FLAGS_SHIFT & ROW_FLAGS);
}
static inline uint64_t stamp_seq(uint64_t stamp)
{
    return stamp >> STAMP_SEQ_SHIFT;
}
_Static_assert(ROW_FLAGS < 1u << (STAMP_SEQ_SHIFT - STAMP_FLAGS_SHIFT), "they fit");
_Static_assert(ROW_FLAGS < 1u << LEDGER_CELL_FLAGS_BITS, "here too");

#define LIMIT_MINIMUM 0x1u
#define LIMIT_MAXIMUM 0x2u
#define LIMIT_CREDIT  0x4u
#define LIMIT_DAILY   0x8u
struct limit {
    struct ron_u128 minimum, maximum, credit_line, daily;
    uint8_t bits;
};

struct asset {
    struct ron_u128 max_supply;
    struct ledger_id mint, burn, clearing;
    uint64_t batch; /* 0: there from the start */
    /* Through clearing, in the command under way: valid if legs_command is its number. */
    uint64_t legs_command;
    struct ron_u256 legs_in, legs_out;
    uint32_t decimals;
    uint8_t name_size;
    char name[RON_ASSET_NAME_SIZE_MAX];
};

struct hold {
    struct ron_u128 tenant;
    struct ledger_id entry;         /* link of captures; of a run: its Anchor */
    uint64_t expires_ms;            /* 0: never */
    uint32_t account, payer, payee; /* payee NONE: any */
    uint32_t asset;
    uint32_t heap_at; /* NONE: not waiting for expiry */
    bool is_run;
};

struct reversal {
    struct ledger_id entry;
    struct ron_u128 total;
};

struct run {
    struct ledger_id id; /* of (tenant, epoch_id) */
    struct ledger_id run_key;
    struct ron_b3 terms;
    uint32_t next_chunk;
    uint32_t hold;
    bool ended; /* abandoned */
};

struct stream {
    struct ledger_id id; /* of the stream's text */
    uint64_t next_seq;
    uint64_t batch; /* of the head's Anchor */
    uint8_t head[LEDGER_DIGEST_SIZE];
};

struct batch_record {
    uint64_t number;
    uint64_t seq_start;
    uint64_t commit_ms;
    uint32_t entries_count;
    uint64_t sealed_number; /* committer: root is of this batch */
    struct ron_sha256 root;
};

/* Names of a frame under replay, in order. */
struct name_source {
    struct ron_slice names;
    size_t at;                   /* of the next one's size */
    const struct ledger_id *ids; /* of the first ids_count names */
    uint32_t ids_count, next;
};

/* Tables whose records change in place. A snapshot needs them as they were at its cut
 * (core_shadow.h), so they are const below and written by account_write and its like alone, which
 * keep the old record first. */
enum shadowed {
    SHADOWED_ACCOUNTS,
    SHADOWED_ROWS,
    SHADOWED_LIMITS,
    SHADOWED_REVERSALS,
    SHADOWED_RUNS,
    SHADOWED_STREAMS,
    SHADOWED_COUNT,
};

struct ledger_core {
    uint32_t magic;
    struct ledger_capacity capacity;
    struct ledger_archive archive;
    size_t memory_size;

    /* Pending heads. */
    uint64_t batch_last, seq_last, commit_ms_last;
    uint64_t commands_count; /* seen, refused ones too: tells their scratch apart */
    /* Committed heads, and the version of the table's structure. */
    _Atomic uint64_t committed_seq, committed_batch;
    _Atomic uint32_t structure;

    void *writable[SHADOWED_COUNT]; /* the six tables that are const here */
    struct ledger_shadow *shadow;   /* sequencer: not NULL from a cut until its copy is whole */

    const struct account *accounts;
    struct ledger_index account_index;
    uint32_t accounts_count;
    const struct row *rows;
    uint32_t rows_count;
    struct row_committed *committed; /* of each row; NULL: as pending (the state at a cut) */
    uint8_t *names;                  /* below names_size nothing ever changes */
    uint32_t names_size;
    const struct limit *limits;
    uint32_t limits_count;
    struct asset *assets; /* number - 1; once there, nothing changes but the legs */
    struct ledger_index asset_index;
    uint32_t assets_count;
    struct hold *holds; /* once there, nothing changes but heap_at */
    struct ledger_index hold_index;
    uint32_t holds_count;
    uint32_t *heap; /* holds by (expires_ms, account id) */
    uint32_t heap_count;
    const struct reversal *reversals;
    struct ledger_index reversal_index;
    uint32_t reversals_count;
    const struct run *runs;
    struct ledger_index run_index;
    uint32_t runs_count;
    const struct stream *streams;
    struct ledger_index stream_index;
    uint32_t streams_count;

    struct ledger_entry *ring; /* entry seq at seq & ring_mask, once it is applied */
    uint32_t ring_mask;
    uint64_t ring_first;            /* the first that counts in the two below */
    _Atomic uint64_t readers_first; /* the same, for readers */
    struct ledger_recent id_index;
    struct ledger_recent nonce_index;
    struct ledger_key *keys; /* number k at k & keys_mask */
    uint32_t keys_mask;
    uint64_t keys_first, keys_end;
    uint64_t archived_batch; /* what the archive said last */
    uint64_t missing_batch,
        missing_seq; /* next that the windows need after a load; batch 0: none */
    struct ledger_index key_index;
    struct batch_record *batches; /* number b at b & batches_mask */
    uint32_t batches_mask;

    struct ledger_batch **pending; /* batch b, not yet committed, at b % pending_max */

    struct name_source *replay;          /* not NULL while a frame is replayed */
    struct ron_merkle_frontier frontier; /* committer: after the last sealed batch */
    struct ron_sha256 sealed_root;       /* committer: of the batch sealed last */
    uint64_t sealed_root_size;           /* its leaves; 0: none; beyond the frontier: taken back */
    struct ron_merkle_frontier committed_frontier;
};

/* core_shadow.c */
/* Before the first write to it since the cut: keep what is at this place. */
void shadow_keep(struct ledger_shadow *shadow, enum shadowed table, uint32_t place);

/* Sequencer: the record at this place, to be written. */
#define TABLE_WRITE(name, type, table)                                         \
    static inline type *name##_write(struct ledger_core *core, uint32_t place) \
    {                                                                          \
        if (RON_UNLIKELY(core->shadow != NULL))                                \
            shadow_keep(core->shadow, table, place);                           \
        return (type *)core->writable[table] + place;                          \
    }
TABLE_WRITE(account, struct account, SHADOWED_ACCOUNTS)
TABLE_WRITE(row, struct row, SHADOWED_ROWS)
TABLE_WRITE(limit, struct limit, SHADOWED_LIMITS)
TABLE_WRITE(reversal, struct reversal, SHADOWED_REVERSALS)
TABLE_WRITE(run, struct run, SHADOWED_RUNS)
TABLE_WRITE(stream, struct stream, SHADOWED_STREAMS)
#undef TABLE_WRITE

/* core_table.c: accounts and rows. */
uint32_t account_find(const struct ledger_core *core, const struct ledger_id *id);
struct ledger_id account_id(const struct account *account);
static inline bool account_is(const struct account *account, const struct ledger_id *id)
{
    return atomic_load_explicit(&account->id_words[0], memory_order_acquire) ==
               ron_load_le64(id->bytes) &&
           atomic_load_explicit(&account->id_words[1], memory_order_acquire) ==
               ron_load_le64(id->bytes + 8);
}
struct ron_slice account_name(const struct ledger_core *core, const struct account *account);
enum account_class account_class(const struct account *account);
enum account_class name_class(struct ron_slice name);
/* There must be room. name is prefix || name. */
uint32_t account_add(struct ledger_core *core, const struct ledger_id *id, const char *prefix,
                     struct ron_slice name);
static inline void row_prefetch(const struct ledger_core *core, uint32_t row)
{
    ron_prefetch(&core->rows[row]);
}
/* Bring the account's slot, its record (if it is the first of its hash: the place, or NONE) or the
 * first row of that place nearer; each expects what the one before brought to have arrived. */
static inline void account_prefetch_slot(const struct ledger_core *core, const struct ledger_id *id)
{
    ledger_index_prefetch(&core->account_index, ron_load_le32(id->bytes));
}
static inline uint32_t account_prefetch(const struct ledger_core *core, const struct ledger_id *id)
{
    uint32_t at = ron_load_le32(id->bytes);
    const uint32_t place = ledger_index_next(&core->account_index, at, &at);

    if (place == LEDGER_INDEX_NONE)
        return NONE;
    ron_prefetch(&core->accounts[place]);
    return place;
}
static inline uint32_t account_prefetch_row(const struct ledger_core *core, uint32_t place)
{
    uint32_t row = NONE;

    if (place != NONE)
        row = atomic_load_explicit(&core->accounts[place].row_first, memory_order_relaxed);
    if (row != NONE)
        row_prefetch(core, row);
    return row;
}
/* The row as the committer left it last, while that stands still. */
static inline struct ron_u128 row_committed_balance(const struct ledger_core *core, uint32_t row)
{
    _Atomic uint64_t *words;

    if (core->committed == NULL)
        return core->rows[row].balance;
    words = core->committed[row].words;
    return (struct ron_u128){
        (unsigned __int128)atomic_load_explicit(&words[1], memory_order_relaxed) << 64 |
        atomic_load_explicit(&words[0], memory_order_relaxed)};
}
static inline uint8_t row_committed_flags(const struct ledger_core *core, uint32_t row)
{
    if (core->committed == NULL)
        return core->rows[row].flags;
    return stamp_flags(atomic_load_explicit(&core->committed[row].stamp, memory_order_relaxed));
}
static inline uint64_t account_committed_nonce(const struct ledger_core *core, uint32_t place)
{
    const uint32_t home = atomic_load_explicit(&core->accounts[place].row_home,
                                               memory_order_relaxed);

    if (core->committed == NULL)
        return core->accounts[place].next_nonce;
    return home == NONE ? 1
                        : atomic_load_explicit(&core->committed[home].nonce, memory_order_relaxed);
}
static inline void row_set_committed(struct row_committed *committed, struct ron_u128 balance,
                                     uint64_t stamp)
{
    atomic_store_explicit(&committed->words[0], (uint64_t)balance.v, memory_order_release);
    atomic_store_explicit(&committed->words[1], (uint64_t)(balance.v >> 64), memory_order_release);
    atomic_store_explicit(&committed->stamp, stamp, memory_order_release);
}
uint32_t row_find(const struct ledger_core *core, uint32_t account, uint32_t asset);
uint32_t row_add(struct ledger_core *core, uint32_t account, uint32_t asset);
void table_truncate(struct ledger_core *core, const struct ledger_marks *marks);

/* core_window.c: entries by id and nonce, keys, batches. */
bool entry_find(const struct ledger_core *core, const struct ledger_id *id, uint64_t seq_max,
                struct ledger_entry *ret_entry);
bool nonce_find(const struct ledger_core *core, const struct ledger_id *debit, uint64_t nonce,
                struct ledger_entry *ret_entry);
bool key_find(const struct ledger_core *core, const struct ledger_id *id,
              struct ledger_key *ret_key);
/* The same without the archive. */
bool window_has(const struct ledger_core *core, const struct ledger_id *id,
                struct ledger_entry *ret_entry);
/* Ids and nonces of batches after this one are all in the window, keys in theirs; those of this one
 * in part. 0: all there are. */
uint64_t window_batch_max(const struct ledger_core *core);
/* Has the archive everything of the batch? */
bool is_archived(struct ledger_core *core, uint64_t batch);
bool window_has_key(const struct ledger_core *core, const struct ledger_id *id,
                    struct ledger_key *ret_key);
void key_add(struct ledger_core *core, const struct ledger_key *key);
void key_remove_newest(struct ledger_core *core);
/* From now on entries count from this one on. */
static inline void window_begin(struct ledger_core *core, uint64_t first)
{
    core->ring_first = first;
    atomic_store_explicit(&core->readers_first, first, memory_order_release);
}
/* The seq of what counts. */
static inline uint64_t tag_seq(const struct ledger_core *core, uint32_t tag)
{
    return core->ring_first + ledger_tag(tag - core->ring_first);
}
/* Forget what is beyond the windows and committed. */
void window_trim(struct ledger_core *core);
/* Where the windows begin, whether or not what lies before was forgotten yet: depends only on what
 * was applied, so equal logs agree. */
uint64_t window_first(const struct ledger_core *core);
uint64_t window_keys_first(const struct ledger_core *core);
uint32_t nonce_hash(const struct ledger_id *debit, uint64_t nonce);
static inline uint32_t id_hash(const struct ledger_id *id)
{
    return ron_load_le32(id->bytes);
}

/* core_view.c */
/* Into the tree; unlike ron_merkle_frontier_append it leaves hashes as they are. */
void frontier_extend(struct ron_merkle_frontier *frontier, const struct ron_sha256 *hashes,
                     size_t hashes_count);
/* The root with the newest sealed batch, whose number that is: as a rule nothing is hashed. */
struct ron_sha256 root_before(const struct ledger_core *core);
/* As ledger_core_seal, with hashes, tree and its root that were made elsewhere of the same leaves.
 */
void batch_seal(struct ledger_core *core, struct ledger_batch *batch,
                const struct ron_sha256 *hashes, const struct ron_merkle_frontier *frontier,
                const struct ron_sha256 *root);

/* core_hold.c */
uint32_t hold_find(const struct ledger_core *core, const struct ledger_id *account);
void heap_push(struct ledger_core *core, uint32_t hold);
void heap_remove(struct ledger_core *core, uint32_t hold);
uint32_t reversal_find(const struct ledger_core *core, const struct ledger_id *entry);

/* core_intents.c, core_slice.c */
uint32_t run_find(const struct ledger_core *core, const struct ledger_id *id);
uint32_t stream_find(const struct ledger_core *core, const struct ledger_id *id);

/* core_asset.c */
uint32_t asset_hash(const struct asset *asset);
uint32_t asset_find(const struct ledger_core *core, struct ron_slice name); /* number or 0 */
void asset_add(struct ledger_core *core, const struct ledger_asset_terms *terms, uint64_t batch);

/* core_check.c */
/* As ledger_core_check, but for invariant 7: whoever adds accounts one by one, each under the hash
 * of its name and where it was not found before, has kept it. */
const char *core_check_loaded(const struct ledger_core *core);
/* README invariant 1, for what the batch touched: per asset, the rows gained what was issued. Sums
 * of 2^128 and more wrap, alike on both sides. */
bool batch_is_conserved(const struct ledger_core *core, const struct ledger_batch *batch);

/* BLAKE3 over everything that a snapshot of a core with an archive says: both views, no windows. */
struct ron_b3 core_digest_kept(const struct ledger_core *core);

/* core_undo.c */
struct ledger_marks marks_of(const struct ledger_core *core);
void batch_undo(struct ledger_core *core, struct ledger_batch *batch);

#endif
