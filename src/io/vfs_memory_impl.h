/*
 * vfs_memory_impl.h - the insides of a file system in memory: nodes, names, changes.
 *
 * Every file and directory has what is durable and what is seen now. The difference is the list of
 * changes of the whole file system, in the order they were made; a sync takes those of its file or
 * directory off the list. All file systems made from one by crashes share pages, hence one lock.
 */
#ifndef RON_IO_VFS_MEMORY_IMPL_H
#define RON_IO_VFS_MEMORY_IMPL_H

#include "io/vfs_content.h"
#include "io/vfs_memory.h"
#include "rt/lock.h"

struct memory_node;
struct memory_name {
    struct memory_node *node; /* counted */
    char text[IO_NAME_MAX + 1];
};
struct memory_names {
    struct memory_name *items; /* sorted */
    size_t count, capacity;
};

struct memory_node {
    struct memory_node *prev, *next; /* of the file system, in order of birth: parents first */
    struct memory_node *twin;        /* in the image being made */
    const void *locked_by;           /* the handle; of a file */
    uint32_t refs_count;             /* names now and durable, changes, handles */
    bool is_dir;
    uint32_t forgot_count;            /* syncs that failed: durable is not now minus the changes */
    struct io_content *now, *durable; /* of a file */
    uint64_t uncached_bytes;          /* of a file: what io_file_uncache was asked for */
    struct memory_names names, lasting; /* of a directory: now, durable */
};

struct memory_change {
    enum io_change_kind kind;
    struct memory_node *node;  /* the file; for a name its directory; counted */
    struct memory_node *child; /* of a name: what it means now, NULL for nothing; counted */
    uint64_t offset, size;
    uint8_t *bytes;   /* of a write; NULL: zeros */
    const char *from; /* of a renaming: the name that is gone, or NULL */
    const char *leaf; /* of a name */
    char path[];      /* then leaf and from */
};

struct memory_family {
    struct rt_lock lock;
    unsigned owner;    /* of all its memory */
    unsigned borrower; /* whose memory the running call allocates otherwise */
    unsigned vfs_count;
};

struct memory_vfs {
    struct io_vfs vfs; /* first */
    struct memory_family *family;
    uint64_t bytes_max;
    uint64_t bytes_used RON_GUARDED_BY(vfs); /* sizes of all files that anyone can still reach */
    struct memory_node *first RON_GUARDED_BY(vfs); /* the root */
    struct memory_node *last RON_GUARDED_BY(vfs);
    struct memory_change **changes RON_GUARDED_BY(vfs);
    size_t changes_count RON_GUARDED_BY(vfs);
    size_t changes_capacity RON_GUARDED_BY(vfs);
};

extern const struct io_vfs_ops memory_ops;

/* Take the lock of the family and allocate as its maker, until memory_leave. */
void memory_enter(struct memory_family *family) RON_LOCKS(vfs);
void memory_leave(struct memory_family *family) RON_UNLOCKS(vfs);

/* vfs_memory_tree.c: all under the lock. NULL or false: no memory. */
struct memory_node *memory_node_new(struct memory_vfs *vfs, bool is_dir) RON_NEEDS(vfs);
void memory_node_unref(struct memory_vfs *vfs, struct memory_node *node) RON_NEEDS(vfs);
void memory_node_free(struct memory_vfs *vfs, struct memory_node *node) RON_NEEDS(vfs);
struct memory_node *memory_names_find(const struct memory_names *names, const char *text,
                                      size_t size) RON_NEEDS(vfs);
/* Room for one more name. */
bool memory_names_reserve(struct memory_names *names) RON_NEEDS(vfs);
/* Let `text` mean `node`, nothing if that is NULL; takes a reference, drops the old one. There must
 * be room. */
void memory_names_set(struct memory_vfs *vfs, struct memory_names *names, const char *text,
                      struct memory_node *node) RON_NEEDS(vfs);
/* Let *to be a copy of from. */
bool memory_names_copy(struct memory_vfs *vfs, struct memory_names *to,
                       const struct memory_names *from) RON_NEEDS(vfs);
void memory_names_fini(struct memory_vfs *vfs, struct memory_names *names) RON_NEEDS(vfs);
/* Change what survives (now, in an image) by one change, of which `size` bytes are taken. */
enum ron_err memory_apply(struct io_content **content, const struct memory_change *change,
                          uint64_t size) RON_NEEDS(vfs);
/* A change that is not yet on the list; of a write with the first `size` bytes of the parts, but
 * zeros are not kept. */
struct memory_change *memory_change_new(enum io_change_kind kind, struct memory_node *node,
                                        const char *path, const char *from) RON_NEEDS(vfs);
struct memory_change *memory_change_write(struct memory_vfs *vfs, struct memory_node *node,
                                          const char *path, uint64_t offset,
                                          const struct ron_slice *parts, uint64_t size)
    RON_NEEDS(vfs);
void memory_change_free(struct memory_vfs *vfs, struct memory_change *change) RON_NEEDS(vfs);
/* Room for one more change. */
enum ron_err memory_changes_reserve(struct memory_vfs *vfs, const char *path,
                                    struct ron_errinfo *reterr) RON_NEEDS(vfs);
void memory_changes_add(struct memory_vfs *vfs, struct memory_change *change) RON_NEEDS(vfs);
/* Take those of the node off the list. */
void memory_changes_drop(struct memory_vfs *vfs, const struct memory_node *node) RON_NEEDS(vfs);

#endif
