/*
 * log_owner.c - the lock and epoch of a log. See log_owner.h.
 */
#include "io/log_owner.h"

#include "base/assert.h"
#include "base/crc32c.h"
#include "io/log_format.h"

static const uint8_t owner_magic[8] = {'R', 'O', 'N', 'O', 'W', 'N', 0, 1};

enum { SLOT_SIZE = 512, SLOT_SUM = 56, OWNER_VERSION = 1 };

static void encode(const struct log_owner *owner, uint8_t slot[SLOT_SIZE])
{
    memset(slot, 0, SLOT_SIZE);
    memcpy(slot, owner_magic, sizeof(owner_magic));
    ron_store_le32(slot + 8, OWNER_VERSION);
    ron_store_le32(slot + 12, owner->kind);
    memcpy(slot + 16, owner->log_id, sizeof(owner->log_id));
    ron_store_le64(slot + 32, owner->sequence);
    ron_store_le64(slot + 40, owner->last_index);
    ron_store_le32(slot + 48, owner->epoch);
    ron_store_le32(slot + 52, owner->clean ? 1 : 0);
    ron_store_le32(slot + SLOT_SUM, ron_crc32c(0, slot, SLOT_SUM));
}

/* Fills *owner if the slot is valid and newer than what is there. */
static bool decode(const uint8_t slot[SLOT_SIZE], struct log_owner *owner)
{
    struct log_owner found = *owner;
    uint8_t again[SLOT_SIZE];

    found.kind = ron_load_le32(slot + 12);
    memcpy(found.log_id, slot + 16, sizeof(found.log_id));
    found.sequence = ron_load_le64(slot + 32);
    found.last_index = ron_load_le64(slot + 40);
    found.epoch = ron_load_le32(slot + 48);
    found.clean = ron_load_le32(slot + 52) == 1;
    encode(&found, again);
    if (memcmp(slot, again, SLOT_SIZE) != 0)
        return false;
    if (owner->fresh || found.sequence > owner->sequence) {
        found.fresh = false;
        *owner = found;
    }
    return true;
}

static enum ron_err read_slots(struct log_owner *owner, struct ron_errinfo *reterr) RON_BLOCKS
{
    uint8_t slots[2 * SLOT_SIZE] = {0};
    const char *path = io_file_path(owner->file);
    unsigned valid_count = 0;
    size_t size = 0;
    enum ron_err err = io_file_read(owner->file, 0, slots, sizeof(slots), &size, reterr);

    if (err != RON_ERR_OK)
        return err;
    owner->fresh = true;
    for (unsigned i = 0; i < 2; i++) {
        const uint8_t *slot = slots + i * (size_t)SLOT_SIZE;

        if (memcmp(slot, owner_magic, sizeof(owner_magic)) == 0 &&
            ron_load_le32(slot + 8) > OWNER_VERSION)
            return ron_fail(reterr, RON_ERR_VERSION_SKEW,
                            "%s: version %u, this program reads up to %d: use a newer one", path,
                            ron_load_le32(slot + 8), OWNER_VERSION);
        if (decode(slot, owner))
            valid_count++;
    }
    if (valid_count == 0 && !io_bytes_are_zero(slots, sizeof(slots))) {
        /* The first write of all may tear; then only slot 1 was ever touched. */
        if (memcmp(slots, owner_magic, sizeof(owner_magic)) != 0 &&
            !io_bytes_are_zero(slots, SLOT_SIZE))
            return ron_fail(reterr, RON_ERR_MALFORMED, "%s: not the owner file of a log", path);
        if (!io_bytes_are_zero(slots, SLOT_SIZE))
            return ron_fail(reterr, RON_ERR_WAL_CORRUPT,
                            "%s at byte 0: both slots are damaged: restore it from a copy", path);
    }
    return RON_ERR_OK;
}

enum ron_err log_owner_open(struct log_owner *owner, struct io_vfs *vfs, const char *path,
                            bool read_only, struct ron_errinfo *reterr)
{
    enum ron_err err;

    *owner = (struct log_owner){.fresh = true};
    err = io_vfs_open(vfs, path, read_only ? IO_OPEN_READ : IO_OPEN_WRITE, &owner->file, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (!read_only)
        err = io_file_lock(owner->file, reterr);
    if (err == RON_ERR_CONFLICT)
        err = ron_wrap(reterr, err, "another process owns this log: stop it first");
    if (err == RON_ERR_OK)
        err = read_slots(owner, reterr);
    if (err != RON_ERR_OK)
        log_owner_close(owner);
    return err;
}

enum ron_err log_owner_create(struct log_owner *owner, struct io_vfs *vfs, const char *path,
                              struct ron_errinfo *reterr)
{
    enum ron_err err;

    *owner = (struct log_owner){.fresh = true};
    err = io_vfs_open(vfs, path, IO_OPEN_CREATE, &owner->file, reterr);
    if (err != RON_ERR_OK)
        return err;
    err = io_file_lock(owner->file, reterr);
    if (err != RON_ERR_OK)
        log_owner_close(owner);
    return err;
}

enum ron_err log_owner_write(struct log_owner *owner, struct ron_errinfo *reterr)
{
    uint8_t slot[SLOT_SIZE];
    struct ron_slice part = {slot, sizeof(slot)};
    enum ron_err err;

    RON_ASSERT(owner->file != NULL);
    owner->sequence++;
    encode(owner, slot);
    err = io_file_write(owner->file, owner->sequence % 2 * SLOT_SIZE, &part, 1, reterr);
    if (err == RON_ERR_OK)
        err = io_file_sync(owner->file, reterr);
    if (err == RON_ERR_OK)
        owner->fresh = false;
    return err;
}

void log_owner_close(struct log_owner *owner)
{
    owner->file = io_file_close(owner->file);
}
