/*
 * core_sheaf.c - see core_sheaf.h.
 */
#include "ledger/core_sheaf.h"

#include "base/mem.h"
#include "base/rfc3339.h"
#include "ledger/core_apply.h"

enum { NAMES_MAX = 2 * RON_BATCH_ENTRIES_MAX };

enum ron_err ledger_sheaf_init(struct ledger_sheaf *sheaf, struct ron_errinfo *reterr)
{
    *sheaf = (struct ledger_sheaf){
        .frames = ron_mem_alloc_array(LEDGER_SHEAF_FRAMES_MAX, sizeof(sheaf->frames[0])),
    };
    if (sheaf->frames == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a sheaf of frames");
    return RON_ERR_OK;
}

static void free_room(struct ledger_sheaf *sheaf)
{
    sheaf->bytes = ron_mem_free(sheaf->bytes);
    sheaf->ops = ron_mem_free(sheaf->ops);
    sheaf->hashes = ron_mem_free(sheaf->hashes);
    sheaf->bytes_max = 0;
}

void ledger_sheaf_fini(struct ledger_sheaf *sheaf)
{
    free_room(sheaf);
    sheaf->frames = ron_mem_free(sheaf->frames);
    sheaf->names = ron_mem_free(sheaf->names);
    sheaf->name_ids = ron_mem_free(sheaf->name_ids);
}

bool ledger_sheaf_has_room(const struct ledger_sheaf *sheaf, size_t frame_size)
{
    return frame_size <= sheaf->bytes_max - sheaf->bytes_size &&
           sheaf->frames_count < LEDGER_SHEAF_FRAMES_MAX &&
           sheaf->names_count <= NAMES_MAX - RON_BATCH_ENTRIES_MAX;
}

enum ron_err ledger_sheaf_empty(struct ledger_sheaf *sheaf, size_t frame_size,
                                struct ron_errinfo *reterr)
{
    size_t size = LEDGER_SHEAF_BYTES_LEAST;

    while (size < frame_size) /* not anew for every frame that is a little larger */
        size *= 2;
    sheaf->frames_count = sheaf->entries_count = sheaf->names_count = sheaf->name_ids_count = 0;
    sheaf->bytes_size = 0;
    sheaf->root_size = 0;
    if (size <= sheaf->bytes_max)
        return RON_ERR_OK;
    free_room(sheaf);
    sheaf->bytes = ron_mem_alloc(size);
    sheaf->ops = ron_mem_alloc_array(size / RON_ENTRY_SIZE, sizeof(sheaf->ops[0]));
    sheaf->hashes = ron_mem_alloc_array(size / RON_ENTRY_SIZE, sizeof(sheaf->hashes[0]));
    if (sheaf->bytes == NULL || sheaf->ops == NULL || sheaf->hashes == NULL) {
        free_room(sheaf);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a frame of %zu bytes", frame_size);
    }
    sheaf->bytes_max = size;
    return RON_ERR_OK;
}

/* The op that makes this leaf. */
static void op_of_leaf(const struct ledger_entry *entry, const struct ledger_ext *ext,
                       struct ron_slice id_text, struct ledger_op *ret_op)
{
    *ret_op = (struct ledger_op){
        .id = entry->id,
        .debit = entry->debit,
        .credit = entry->credit,
        .other = entry->kind == LEDGER_HOLD ? ext->payee : entry->link,
        .amount = entry->amount,
        .nonce = entry->nonce,
        .expires_ms = ext->expires_ms,
        .asset = entry->asset,
        .kind = entry->kind,
        .has_to = entry->kind == LEDGER_CAPTURE,
        .sha256 = (entry->flags & LEDGER_FLAG_SHA256) != 0,
        .id_text = id_text,
        .memo = ext->memo,
        .meta = ext->meta,
        .stream = ext->stream,
        .ref = ext->ref,
    };
    if (entry->kind != LEDGER_ANCHOR)
        ret_op->stream = (struct ron_slice){NULL, 0};
}

/* Could the command have handed this entry in? What the shape functions promise the core. */
static bool is_entry_of(enum ledger_command_kind command, const struct ledger_entry *entry,
                        const struct ledger_ext *ext)
{
    const unsigned kind = entry->kind;
    const bool may_nonce = kind == LEDGER_TRANSFER || kind == LEDGER_BURN || kind == LEDGER_HOLD ||
                           kind == LEDGER_DEBIT;

    if (kind == LEDGER_ASSET || (entry->nonce != 0 && !may_nonce))
        return false;
    if (command == LEDGER_COMMAND_INTENTS &&
        (kind != LEDGER_CAPTURE || ext->memo.data != NULL || ext->meta.data != NULL))
        return false;
    if (kind == LEDGER_ANCHOR)
        return ron_u128_is_zero(entry->amount) && ledger_is_account(ext->stream) &&
               (ext->ref.size == 0 || ledger_is_account(ext->ref));
    if ((entry->flags & LEDGER_FLAG_SHA256) != 0 || ext->expires_ms > RON_TIME_MS_MAX)
        return false;
    return entry->asset != 0 && !ron_u128_is_zero(entry->amount) &&
           !ledger_id_equal(&entry->debit, &entry->credit) &&
           ext->has_terms == (kind == LEDGER_HOLD);
}

_Static_assert((int)LEDGER_ID_DIGITS <= (int)RON_ENTRY_ID_SIZE_MAX, "digits are an id");

/* As clients choose ids, or as the ledger names the Anchor of a state: `state/<ref>`. */
static bool is_id_of(const struct ledger_frame *frame, const struct ledger_ext *ext,
                     struct ron_slice text)
{
    const struct ron_slice prefix = RON_SLICE("state/");

    if (text.size == 0 || ledger_is_id(text))
        return true;
    return frame->command == LEDGER_COMMAND_INGEST && frame->stamp.caller == LEDGER_CALLER_LEDGER &&
           ron_slice_equal(ext->stream, RON_SLICE("state")) && text.size > prefix.size &&
           memcmp(text.data, prefix.data, prefix.size) == 0 &&
           ron_slice_equal(ron_slice_of(text.data + prefix.size, text.size - prefix.size),
                           ext->ref);
}

/* The next entries of a frame: as many as have their ids made at once. */
struct group {
    uint32_t count;
    struct ron_slice texts[LEDGER_ID_GROUP];
    struct ledger_id ids[LEDGER_ID_GROUP]; /* those of their texts */
};

/* Returns where the texts go on. */
static const uint8_t *make_group(struct ledger_id_maker *maker, const uint8_t *text, uint32_t left,
                                 struct group *ret_group)
{
    ret_group->count = left < LEDGER_ID_GROUP ? left : LEDGER_ID_GROUP;
    for (uint32_t i = 0; i < ret_group->count; i++) {
        ret_group->texts[i] = ledger_id_text_at(text);
        text += ledger_id_text_stored(text);
    }
    ledger_id_maker_run(maker, ret_group->texts, ret_group->count, ret_group->ids);
    return text;
}

/* All entries from first on as ops. The leaves are known to be valid; ids must be those of their
 * texts. */
static enum ron_err make_ops(const struct ledger_frame *frame, uint32_t first,
                             struct ledger_op *ops, uint32_t *ret_count, struct ron_errinfo *reterr)
{
    const uint8_t *text = frame->texts.data;
    const uint8_t *ext_at = frame->ext.data;
    struct ledger_ext ext = {.has_terms = false};
    struct ledger_id_maker maker;
    struct group group;
    uint32_t count = 0;
    bool has_ext = false;

    ledger_id_maker_init(&maker, frame->stamp.tenant);
    for (uint32_t i = 0; i < frame->entries_count; i++) {
        const uint32_t place = i % LEDGER_ID_GROUP;
        size_t ext_size = ron_load_le16(frame->ext_sizes.data + (size_t)2 * i);
        struct ledger_entry entry;

        if (place == 0)
            text = make_group(&maker, text, frame->entries_count - i, &group);
        memcpy(&entry, frame->entries.data + (size_t)i * RON_ENTRY_SIZE, sizeof(entry));
        if ((has_ext || ext_size > 0) && /* most have none, as the one before */
            ledger_ext_decode(ron_slice_of(ext_at, ext_size), &ext, NULL) != RON_ERR_OK)
            RON_UNREACHABLE();
        has_ext = ext_size > 0;
        if (!ledger_id_equal(&group.ids[place], &entry.id))
            return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "entry %u: id and text differ", i);
        if (i >= first && (!is_id_of(frame, &ext, group.texts[place]) ||
                           !is_entry_of(frame->command, &entry, &ext)))
            return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "entry %u: not of its command", i);
        if (i >= first)
            op_of_leaf(&entry, &ext, group.texts[place], &ops[count++]);
        ext_at += ext_size;
    }
    *ret_count = count;
    return RON_ERR_OK;
}

/* The names that `open` made known are those of the frame. */
static enum ron_err make_names(struct ledger_sheaf *sheaf, const struct ledger_frame *frame,
                               struct ledger_open_terms *terms, struct ron_errinfo *reterr)
{
    const uint8_t *at = frame->names.data;
    struct ron_slice *names;

    if (sheaf->names == NULL)
        sheaf->names = ron_mem_alloc_array(NAMES_MAX, sizeof(sheaf->names[0]));
    if (sheaf->names == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "the names of a frame");
    names = sheaf->names + sheaf->names_count;
    terms->names = names;
    terms->count = frame->names_count;
    for (uint32_t i = 0; i < frame->names_count && i < RON_BATCH_ENTRIES_MAX; i++) {
        names[i] = ron_slice_of(at + 1, at[0]);
        at += (size_t)1 + at[0];
        sheaf->names_count++;
    }
    return RON_ERR_OK;
}

/* The ids of the frame's names, as many as there is room for. */
static enum ron_err make_name_ids(struct ledger_sheaf *sheaf, struct ledger_ready *ready,
                                  struct ron_errinfo *reterr)
{
    const uint8_t *at = ready->frame.names.data;
    struct ledger_id *ids;
    uint32_t count = ready->frame.names_count;

    if (count > NAMES_MAX - sheaf->name_ids_count)
        count = NAMES_MAX - sheaf->name_ids_count;
    ready->name_ids = NULL;
    ready->name_ids_count = 0;
    if (count == 0)
        return RON_ERR_OK;
    if (sheaf->name_ids == NULL)
        sheaf->name_ids = ron_mem_alloc_array(NAMES_MAX, sizeof(sheaf->name_ids[0]));
    if (sheaf->name_ids == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "the names of a frame");
    ids = sheaf->name_ids + sheaf->name_ids_count;
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = ledger_account_id("", ron_slice_of(at + 1, at[0]));
        at += (size_t)1 + at[0];
    }
    ready->name_ids = ids;
    ready->name_ids_count = count;
    sheaf->name_ids_count += count;
    return RON_ERR_OK;
}

static enum ron_err make_command(struct ledger_sheaf *sheaf, const struct ledger_frame *frame,
                                 struct ledger_command *command, struct ron_errinfo *reterr)
{
    struct ledger_op *ops = sheaf->ops + sheaf->entries_count;
    uint32_t first = 0;
    enum ron_err err;

    *command = (struct ledger_command){
        .kind = frame->command,
        .stamp = frame->stamp,
        .key = frame->command == LEDGER_COMMAND_INGEST ? frame->key : (struct ron_slice){NULL, 0},
        .fingerprint = frame->fingerprint,
        .ops = ops,
    };
    err = body_decode(frame->body, command, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (frame->command == LEDGER_COMMAND_INTENTS && command->run.chunk == 0)
        first = 2; /* the ledger's own: Anchor and Hold */
    if (frame->command == LEDGER_COMMAND_INGEST || frame->command == LEDGER_COMMAND_INTENTS)
        err = make_ops(frame, first, ops, &command->ops_count, reterr);
    if (frame->command == LEDGER_COMMAND_OPEN)
        err = make_names(sheaf, frame, &command->open, reterr);
    return err;
}

/* The frame as the sheaf's next, not counted yet. */
static enum ron_err take_apart(struct ledger_sheaf *sheaf, struct ron_slice bytes,
                               struct ron_errinfo *reterr)
{
    uint8_t *copy = sheaf->bytes + sheaf->bytes_size;

    RON_ASSERT(ledger_sheaf_has_room(sheaf, bytes.size));
    if (bytes.size > 0)
        memcpy(copy, bytes.data, bytes.size);
    return ledger_frame_decode(ron_slice_of(copy, bytes.size),
                               &sheaf->frames[sheaf->frames_count].frame, reterr);
}

enum ron_err ledger_sheaf_add(struct ledger_sheaf *sheaf, struct ron_slice bytes,
                              struct ron_errinfo *reterr)
{
    enum ron_err err = take_apart(sheaf, bytes, reterr);

    if (err != RON_ERR_OK)
        return err;
    sheaf->entries_count += sheaf->frames[sheaf->frames_count].frame.entries_count;
    sheaf->bytes_size += bytes.size;
    sheaf->frames_count++;
    return RON_ERR_OK;
}

enum ron_err ledger_sheaf_prepare(struct ledger_sheaf *sheaf, struct ron_slice bytes,
                                  struct ron_merkle_frontier *frontier, struct ron_errinfo *reterr)
{
    struct ledger_ready *ready = &sheaf->frames[sheaf->frames_count];
    struct ron_sha256 *hashes = sheaf->hashes + sheaf->entries_count;
    const uint32_t names_count = sheaf->names_count;
    enum ron_err err = take_apart(sheaf, bytes, reterr);

    if (err == RON_ERR_OK)
        err = make_command(sheaf, &ready->frame, &ready->command, reterr);
    if (err == RON_ERR_OK)
        err = make_name_ids(sheaf, ready, reterr);
    if (err != RON_ERR_OK) {
        sheaf->names_count = names_count;
        return ledger_replay_fault(err);
    }
    ledger_frame_leaves(&ready->frame, hashes);
    ready->hashes = hashes;
    ready->previous_root = sheaf->root_size > 0 && sheaf->root_size == frontier->leaves_count
                               ? sheaf->root
                               : ron_merkle_frontier_root(frontier);
    frontier_extend(frontier, hashes, ready->frame.entries_count);
    ready->root = ron_merkle_frontier_root(frontier);
    ron_merkle_frontier_copy(&ready->frontier, frontier);
    sheaf->root = ready->root;
    sheaf->root_size = frontier->leaves_count;
    sheaf->entries_count += ready->frame.entries_count;
    sheaf->bytes_size += bytes.size;
    sheaf->frames_count++;
    return RON_ERR_OK;
}
