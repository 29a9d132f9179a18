/*
 * vfs_faulty.h - a file system in front of another one that fails on purpose.
 *
 * Faults come from a table (tests: "the 3rd write is short") or, in the simulator, from the choice
 * source at every call. Each is counted by kind, so that a run can show that it happened. Writes
 * that are lost or kept in another order at a crash are plans of the memory file system below
 * (vfs_memory.h). Size, lock and close are never struck.
 */
#ifndef RON_IO_VFS_FAULTY_H
#define RON_IO_VFS_FAULTY_H

#include "io/vfs.h"

/* X(name, call it strikes, what it does) */
#define IO_FAULT_MAP(X)                                                                       \
    X(EIO, ANY, "the call fails, nothing happened")                                           \
    X(ENOSPC, WRITE, "no room: a part may be written")                                        \
    X(SHORT_WRITE, WRITE, "a part is written, then an error")                                 \
    X(TORN_SECTOR, WRITE, "one 512-byte sector in the middle keeps its old bytes; no error")  \
    X(LOST_WRITE, WRITE, "no byte is written; no error")                                      \
    X(MISDIRECTED, WRITE, "written 512 bytes away; no error")                                 \
    X(BIT_FLIP, READ, "one bit of what is read is wrong; no error")                           \
    X(LYING_SYNC, SYNC, "nothing is synced; no error")                                        \
    X(SYNC_EIO, SYNC, "the sync fails, and what it should have kept is forgotten at a crash") \
    X(SLOW, ANY, "the call takes its time: slow_ms of virtual or real time")

enum io_fault_kind {
#define X(name, call, text) IO_FAULT_##name,
    IO_FAULT_MAP(X)
#undef X
        IO_FAULT__MAX
};
enum io_fault_call {
    IO_CALL_OPEN,
    IO_CALL_READ,
    IO_CALL_WRITE,
    IO_CALL_SYNC, /* of a file or directory */
    IO_CALL_NAME, /* rename, unlink, mkdir, list; and truncate */
};

struct io_fault {
    enum io_fault_kind kind;
    enum io_fault_call call; /* which calls are counted; one that the kind can strike */
    const char *path_prefix; /* NULL for every file */
    uint64_t at;             /* strikes the at-th such call, from 1 */
    uint64_t times;          /* and the following, this many in all */
};
enum { IO_FAULTS_MAX = 16 };
struct io_faulty_options {
    const struct io_fault *faults; /* copied */
    size_t faults_count;           /* at most IO_FAULTS_MAX */
    uint32_t choices;              /* kinds as bits that the simulator may choose; 0 none */
    uint32_t slow_ms;
    uint64_t seed; /* which bit, which sector */
};
/* Borrows `below` for its life. */
enum ron_err io_vfs_faulty_new(struct io_vfs *below, const struct io_faulty_options *options,
                               struct io_vfs **ret_vfs, struct ron_errinfo *reterr) RON_MUST_USE;
uint64_t io_faulty_count(const struct io_vfs *vfs, enum io_fault_kind kind);
const char *io_fault_name(enum io_fault_kind kind);

#endif
