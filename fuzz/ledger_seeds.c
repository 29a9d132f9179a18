/*
 * ledger_seeds.c - write the seeds of the ledger's fuzz targets: ledger_seeds fuzz/corpus.
 *
 * Run it again when a format changes, and commit what it writes.
 */
#include <stdio.h>
#include <stdlib.h>

#include "ledger_world.h"

static void put_seed(const char *folder, const char *target, unsigned number,
                     struct ron_slice bytes)
{
    char path[512];
    FILE *file;
    size_t written;

    (void)snprintf(path, sizeof(path), "%s/%s/seed-%02u", folder, target, number);
    file = fopen(path, "wb");
    if (file == NULL) {
        (void)fprintf(stderr, "ledger_seeds: cannot write %s\n", path);
        exit(1);
    }
    written = fwrite(bytes.data, 1, bytes.size, file);
    RON_ASSERT(written == bytes.size);
    (void)fclose(file);
}

/* A binary body of one entry of the kind. */
static void put_oap(const char *folder, unsigned kind)
{
    uint8_t body[1 + 8 + RON_WIRE_ENTRY_SIZE] = {0};
    uint8_t *at = body + 9;
    const bool has_debit = kind == LEDGER_BURN || kind == LEDGER_TRANSFER || kind == LEDGER_DEBIT;
    const bool has_credit = kind == LEDGER_MINT || kind == LEDGER_TRANSFER || kind == LEDGER_CREDIT;

    ron_store_le16(body + 1, 2);
    memcpy(body + 3, "o1", 2);
    ron_store_le32(body + 5, 1);
    at[0] = (uint8_t)kind;
    if (has_debit)
        memcpy(at + 16, ledger_account_id("", RON_SLICE("alice")).bytes, LEDGER_ID_SIZE);
    if (kind == LEDGER_CAPTURE || kind == LEDGER_RELEASE)
        memcpy(at + 16, ledger_account_id("sys/hold/", RON_SLICE("H")).bytes, LEDGER_ID_SIZE);
    if (has_credit)
        memcpy(at + 32, ledger_account_id("", RON_SLICE("bob")).bytes, LEDGER_ID_SIZE);
    if (kind == LEDGER_REVERSE)
        at[64] = LEDGER_TRANSFER;
    at[48] = 1;
    at[80] = kind == LEDGER_TRANSFER ? 3 : 0;
    at[88] = 1;
    at[92] = (uint8_t)kind;
    put_seed(folder, "ledger_oap", kind, ron_slice_of(body, sizeof(body)));
}

int main(int argc, char **argv)
{
    static struct world world;
    static uint8_t frame[WORLD_FRAME_MAX];
    unsigned number = 0;

    if (argc != 2) {
        (void)fprintf(stderr, "usage: ledger_seeds FOLDER\n");
        return 2;
    }
    world_build(&world);
    put_seed(argv[1], "ledger_snapshot", 0, ron_buf_slice(&world.first));
    for (size_t i = 0; i < RON_ARRAY_COUNT(world_script); i++)
        put_seed(argv[1], "ledger_json", number++, ron_slice_text(world_script[i]));
    for (size_t i = 0; i < RON_ARRAY_COUNT(world_next); i++) {
        bool applied = world_line(&world, ron_slice_text(world_next[i]));

        RON_ASSERT(applied);
        ledger_core_seal(world.core, &world.batch);
        ledger_frame_encode(&world.batch, frame);
        put_seed(argv[1], "ledger_frame", (unsigned)i,
                 ron_slice_of(frame, ledger_frame_size(&world.batch)));
        put_seed(argv[1], "ledger_json", number++, ron_slice_text(world_next[i]));
        ledger_core_rebuild(world.core);
    }
    for (unsigned kind = LEDGER_MINT; kind <= LEDGER_DEBIT; kind++)
        put_oap(argv[1], kind);
    put_seed(argv[1], "ledger_oap", 0, RON_SLICE("\1\4\0new4\5\0alice\6\0pool/y"));
    return 0;
}
