/*
 * fuzz_ledger_frame.c - any bytes as a frame of the log, decoded and replayed.
 *
 * What a bit flip cannot get right (place in the log, ids of texts, roots) is put right here, so
 * that inputs reach the rules. Checks beyond "no crash": what is refused leaves no trace, what is
 * accepted keeps every invariant.
 */
#include "ledger_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Entries in their place, with the ids of their texts; the roots of the tree with them. */
static void put_right(const struct world *w, uint8_t *bytes, size_t size, uint64_t batch)
{
    struct ron_merkle_frontier tree = w->tree;
    struct ron_sha256 root = ron_merkle_frontier_root(&tree);
    struct ledger_frame frame;
    const uint8_t *text;
    const uint8_t *ext;
    uint8_t *entry = bytes + LEDGER_FRAME_HEAD_SIZE;

    memcpy(bytes + 80, root.bytes, RON_SHA256_SIZE);
    ron_store_le64(bytes + 16, batch);
    ron_store_le64(bytes + 24, tree.leaves_count + 1);
    for (uint32_t i = 0; i < ron_load_le32(bytes + 12) && i < LEDGER_BATCH_ENTRIES_MAX &&
                         (size_t)(i + 1) * RON_ENTRY_SIZE <= size - LEDGER_FRAME_HEAD_SIZE;
         i++, entry += RON_ENTRY_SIZE) {
        ron_store_le64(entry + 80, tree.leaves_count + 1 + i);
        ron_store_le64(entry + 104, batch);
        memcpy(entry + 88, bytes + 32, 8);
    }
    if (ledger_frame_decode(ron_slice_of(bytes, size), &frame, NULL) != RON_ERR_OK)
        return;
    text = frame.texts.data;
    ext = frame.ext.data;
    entry = bytes + LEDGER_FRAME_HEAD_SIZE;
    for (uint32_t i = 0; i < frame.entries_count; i++, entry += RON_ENTRY_SIZE) {
        const size_t ext_size = ron_load_le16(frame.ext_sizes.data + (size_t)2 * i);
        char digits[LEDGER_ID_DIGITS + 1];
        struct ledger_id id = ledger_entry_id(frame.stamp.tenant, ledger_id_text_get(text, digits));
        uint8_t leaf[RON_LEAF_SIZE_MAX];
        struct ron_sha256 hash;

        memcpy(entry, id.bytes, LEDGER_ID_SIZE);
        memcpy(leaf, entry, RON_ENTRY_SIZE);
        if (ext_size > 0)
            memcpy(leaf + RON_ENTRY_SIZE, ext, ext_size);
        hash = ron_merkle_leaf(leaf, RON_ENTRY_SIZE + ext_size);
        ron_merkle_frontier_append(&tree, &hash, 1);
        text += ledger_id_text_stored(text);
        ext += ext_size;
    }
    root = ron_merkle_frontier_root(&tree);
    memcpy(bytes + 112, root.bytes, RON_SHA256_SIZE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct world world;
    static uint8_t bytes[WORLD_FRAME_MAX];
    struct ron_b3 before;
    struct ron_b3 after;

    if (world.core == NULL)
        world_build(&world);
    if (size < LEDGER_FRAME_HEAD_SIZE || size > sizeof(bytes))
        return 0;
    memcpy(bytes, data, size);
    put_right(&world, bytes, size, RON_ARRAY_COUNT(world_script) + 1);
    before = ledger_core_digest(world.core);
    if (ledger_replay_frame(world.replay, ron_slice_of(bytes, size), NULL) == RON_ERR_OK) {
        const char *broken = ledger_core_check(world.core);

        RON_ASSERT(broken == NULL);
        (void)ledger_replay_free(world.replay);
        world_again(&world);
        WORLD_MUST(ledger_replay_new(world.core, &world.replay, NULL));
        return 0;
    }
    after = ledger_core_digest(world.core);
    RON_ASSERT(memcmp(before.bytes, after.bytes, RON_B3_SIZE) == 0);
    return 0;
}
