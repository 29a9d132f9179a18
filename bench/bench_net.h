/*
 * bench_net.h - the servers that bench_net compares, each in a process of its own.
 *
 * All answer POST with the same 190 bytes. `ron` and `bare` hand each request to another thread and
 * answer when it comes back; nginx answers at once (`return 200`).
 */
#ifndef RON_BENCH_BENCH_NET_H
#define RON_BENCH_BENCH_NET_H

#include <stdbool.h>
#include <sys/types.h>

enum { NET_REPLY_SIZE = 190, NET_URL_SIZE = 256 };

struct net_server {
    const char *name;
    pid_t pid;
    int stop_fd;            /* a byte ends the child; -1: by a signal */
    char url[NET_URL_SIZE]; /* "http://127.0.0.1:1234" */
};

const char *net_reply(void); /* the text, NET_REPLY_SIZE bytes */

/* Each starts one and waits until it listens; exits the program with a message where it cannot.
 * start_nginx: false if there is no nginx. Certificates: PEM files, or NULL for plain. */
void net_start_ron(struct net_server *server, const char *certificate, const char *key);
void net_start_bare(struct net_server *server);
bool net_start_nginx(struct net_server *server, const char *folder);
/* Ends it and waits. */
void net_stop(struct net_server *server);

#endif
