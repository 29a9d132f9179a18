/*
 * oracle_python.c - Python's json, in a child process, as an oracle. See oracle.h.
 *
 * No deadlock: the child reads a whole batch before it answers, and the parent sends a whole batch
 * before it reads.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "oracle.h"

enum { BATCH_SIZE_MAX = 1 << 28 };

static void give_up(const char *what)
{
    printf("Bail out! %s\n", what);
    exit(1);
}

static void write_all(int fd, const uint8_t *data, size_t size)
{
    while (size > 0) {
        ssize_t count = write(fd, data, size);

        if (count < 0 && errno != EINTR)
            give_up("cannot write to judge.py");
        if (count > 0) {
            data += count;
            size -= (size_t)count;
        }
    }
}

static void read_all(int fd, uint8_t *data, size_t size)
{
    while (size > 0) {
        ssize_t count = read(fd, data, size);

        if (count == 0 || (count < 0 && errno != EINTR))
            give_up("no answer from judge.py");
        if (count > 0) {
            data += count;
            size -= (size_t)count;
        }
    }
}

void python_start(struct python *python, const char *judge_path)
{
    int to_child[2];
    int from_child[2];

    *python = (struct python){0};
    ron_buf_init(&python->request, BATCH_SIZE_MAX);
    ron_buf_init(&python->reply, BATCH_SIZE_MAX);
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || pipe(to_child) != 0 || pipe(from_child) != 0)
        give_up("no pipes");
    (void)fflush(NULL);
    python->pid = fork();
    if (python->pid < 0)
        give_up("cannot fork");
    if (python->pid == 0) {
        (void)dup2(to_child[0], STDIN_FILENO);
        (void)dup2(from_child[1], STDOUT_FILENO);
        (void)close(to_child[0]);
        (void)close(to_child[1]);
        (void)close(from_child[0]);
        (void)close(from_child[1]);
        (void)execlp("python3", "python3", judge_path, (char *)NULL);
        _exit(127);
    }
    (void)close(to_child[0]);
    (void)close(from_child[1]);
    python->to_child = to_child[1];
    python->from_child = from_child[0];
}

void python_add(struct python *python, struct ron_slice text)
{
    uint8_t size[4];

    ron_store_le32(size, (uint32_t)text.size);
    ron_buf_put(&python->request, size, sizeof(size));
    ron_buf_put(&python->request, text.data, text.size);
}

void python_send(struct python *python)
{
    uint8_t size[4];

    if (ron_buf_check(&python->request, NULL) != RON_ERR_OK)
        give_up("a batch too large");
    ron_store_le32(size, (uint32_t)python->request.size);
    write_all(python->to_child, size, sizeof(size));
    write_all(python->to_child, python->request.data, python->request.size);
    ron_buf_reset(&python->request);
}

void python_receive(struct python *python)
{
    uint8_t piece[65536];
    uint8_t size[4];
    size_t left;

    ron_buf_reset(&python->reply);
    python->reply_at = 0;
    read_all(python->from_child, size, sizeof(size));
    for (left = ron_load_le32(size); left > 0;) {
        size_t count = left < sizeof(piece) ? left : sizeof(piece);

        read_all(python->from_child, piece, count);
        ron_buf_put(&python->reply, piece, count);
        left -= count;
    }
    if (ron_buf_check(&python->reply, NULL) != RON_ERR_OK)
        give_up("an answer too large");
}

static struct ron_slice reply_take(struct python *python, size_t size)
{
    struct ron_slice taken = {python->reply.data + python->reply_at, size};

    if (size > python->reply.size - python->reply_at)
        give_up("an answer cut short");
    python->reply_at += size;
    return taken;
}

void python_next(struct python *python, struct verdict *ret_verdict)
{
    struct verdict verdict = {0};
    uint32_t size;

    verdict.accepted = reply_take(python, 1).data[0] == 1;
    if (verdict.accepted) {
        verdict.ordered = reply_take(python, ron_load_le32(reply_take(python, 4).data));
        size = ron_load_le32(reply_take(python, 4).data);
        verdict.reordered = size != UINT32_MAX;
        verdict.canonical = verdict.reordered ? reply_take(python, size) : verdict.ordered;
    }
    *ret_verdict = verdict;
}

void python_stop(struct python *python)
{
    int status = 0;

    (void)close(python->to_child);
    (void)close(python->from_child);
    if (waitpid(python->pid, &status, 0) != python->pid || status != 0)
        give_up("judge.py failed");
    ron_buf_fini(&python->request);
    ron_buf_fini(&python->reply);
}
