/*
 * plain_queue.h - the rivals of rt_queue: a ring under a mutex with two conditions.
 *
 * PLAIN is what a careful afternoon gives. TUNED is the same with what glibc and the textbook offer
 * against waiting: an adaptive mutex, which looks again before it sleeps, and signals only where
 * somebody waits, sent after the unlock.
 */
#ifndef RON_BENCH_PLAIN_QUEUE_H
#define RON_BENCH_PLAIN_QUEUE_H

#include <pthread.h>
#include <string.h>

#include "base/assert.h"

enum { PLAIN_CAPACITY_MAX = 16384 };

struct plain_queue {
    pthread_mutex_t mutex;
    pthread_cond_t items_cond, room_cond;
    size_t head, depth, capacity;
    unsigned receivers_waiting, senders_waiting; /* TUNED only */
    bool tuned;
    bool closed;
    void *slots[PLAIN_CAPACITY_MAX];
};

static inline void plain_init(struct plain_queue *queue, size_t capacity, bool tuned)
{
    pthread_mutexattr_t attributes;

    memset(queue, 0, sizeof(*queue));
    queue->capacity = capacity;
    queue->tuned = tuned;
    RON_MUST_ZERO(pthread_mutexattr_init(&attributes));
    if (tuned)
        RON_MUST_ZERO(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP));
    RON_MUST_ZERO(pthread_mutex_init(&queue->mutex, &attributes));
    RON_MUST_ZERO(pthread_mutexattr_destroy(&attributes));
    RON_MUST_ZERO(pthread_cond_init(&queue->items_cond, NULL));
    RON_MUST_ZERO(pthread_cond_init(&queue->room_cond, NULL));
}

static inline void plain_fini(struct plain_queue *queue)
{
    RON_MUST_ZERO(pthread_cond_destroy(&queue->room_cond));
    RON_MUST_ZERO(pthread_cond_destroy(&queue->items_cond));
    RON_MUST_ZERO(pthread_mutex_destroy(&queue->mutex));
}

static inline void plain_push(struct plain_queue *queue, void *pointer)
{
    queue->slots[(queue->head + queue->depth++) & (queue->capacity - 1)] = pointer;
}

static inline void *plain_pop(struct plain_queue *queue)
{
    void *pointer = queue->slots[queue->head];

    queue->head = (queue->head + 1) & (queue->capacity - 1);
    queue->depth--;
    return pointer;
}

static inline void plain_send(struct plain_queue *queue, void *pointer)
{
    RON_MUST_ZERO(pthread_mutex_lock(&queue->mutex));
    while (queue->depth == queue->capacity)
        RON_MUST_ZERO(pthread_cond_wait(&queue->room_cond, &queue->mutex));
    plain_push(queue, pointer);
    RON_MUST_ZERO(pthread_cond_signal(&queue->items_cond));
    RON_MUST_ZERO(pthread_mutex_unlock(&queue->mutex));
}

/* NULL once closed and empty. */
static inline void *plain_recv(struct plain_queue *queue)
{
    void *pointer = NULL;

    RON_MUST_ZERO(pthread_mutex_lock(&queue->mutex));
    while (queue->depth == 0 && !queue->closed)
        RON_MUST_ZERO(pthread_cond_wait(&queue->items_cond, &queue->mutex));
    if (queue->depth > 0) {
        pointer = plain_pop(queue);
        RON_MUST_ZERO(pthread_cond_signal(&queue->room_cond));
    }
    RON_MUST_ZERO(pthread_mutex_unlock(&queue->mutex));
    return pointer;
}

static inline void tuned_send(struct plain_queue *queue, void *pointer)
{
    bool waited_for;

    RON_MUST_ZERO(pthread_mutex_lock(&queue->mutex));
    while (queue->depth == queue->capacity) {
        queue->senders_waiting++;
        RON_MUST_ZERO(pthread_cond_wait(&queue->room_cond, &queue->mutex));
        queue->senders_waiting--;
    }
    plain_push(queue, pointer);
    waited_for = queue->receivers_waiting > 0;
    RON_MUST_ZERO(pthread_mutex_unlock(&queue->mutex));
    if (waited_for)
        RON_MUST_ZERO(pthread_cond_signal(&queue->items_cond));
}

static inline void *tuned_recv(struct plain_queue *queue)
{
    void *pointer = NULL;
    bool waited_for;

    RON_MUST_ZERO(pthread_mutex_lock(&queue->mutex));
    while (queue->depth == 0 && !queue->closed) {
        queue->receivers_waiting++;
        RON_MUST_ZERO(pthread_cond_wait(&queue->items_cond, &queue->mutex));
        queue->receivers_waiting--;
    }
    if (queue->depth > 0)
        pointer = plain_pop(queue);
    waited_for = pointer != NULL && queue->senders_waiting > 0;
    RON_MUST_ZERO(pthread_mutex_unlock(&queue->mutex));
    if (waited_for)
        RON_MUST_ZERO(pthread_cond_signal(&queue->room_cond));
    return pointer;
}

static inline void plain_close(struct plain_queue *queue)
{
    RON_MUST_ZERO(pthread_mutex_lock(&queue->mutex));
    queue->closed = true;
    RON_MUST_ZERO(pthread_cond_broadcast(&queue->items_cond));
    RON_MUST_ZERO(pthread_mutex_unlock(&queue->mutex));
}

#endif
