/*
 * topology.c - `ron topology`: queues, tasks and locks for people (aligned) and documents
 * (markdown).
 */
#include "app/topology.h"

#include <stdio.h>
#include <string.h>

#include "cli/command.h"

static void print_usage(FILE *out)
{
    fputs("usage: ron topology [--markdown]\n"
          "\n"
          "Lists every queue, bus, watch, task, timer and set of lanes that the roles of this\n"
          "program make, with capacity, what happens when it is full, and owner; then the lock\n"
          "classes with their ranks. Nothing is started. --markdown prints docs/concurrency.md.\n",
          out);
}

static void print_text(const struct rt_registry_entry *entries, size_t entries_count, void *context)
{
    (void)context;
    printf("%-10s %-28s %8s  %-24s %s\n", "KIND", "NAME", "CAPACITY", "POLICY", "OWNER");
    for (size_t i = 0; i < entries_count; i++) {
        const struct rt_registry_entry *entry = &entries[i];

        printf("%-10s %-28s %8llu  %-24s %s\n", rt_kind_name(entry->kind), entry->name,
               (unsigned long long)entry->capacity, entry->policy, entry->owner);
    }
}

static void print_head(void)
{
    fputs(
        "# Concurrency\n"
        "\n"
        "Generated from the runtime's registry by `./dev docs`; do not edit. `ron topology` prints "
        "the same.\n"
        "\n"
        "## Rules, and who checks them\n"
        "\n"
        "| rule | checked by |\n"
        "|---|---|\n"
        "| everything that holds items is bounded | the constructor asserts a capacity; nothing "
        "grows afterwards |\n"
        "| what happens at the bound is said at the call (reject, wait, drop oldest) | each has "
        "its own function; an ignored answer does not compile |\n"
        "| no lock is held across a blocking call | clang, where it sees the lock "
        "(`RON_BLOCKS`); the runtime asserts it at every blocking call |\n"
        "| guarded data is touched under its lock only | clang (`RON_GUARDED_BY`) and "
        "ThreadSanitizer |\n"
        "| ranks rise inward: a lock is taken only above every rank held | the runtime asserts it "
        "at every lock |\n"
        "| threads, clocks and blocking calls belong to the runtime | `tools/tidy` |\n"
        "| no lost wake-up, no deadlock, no item twice or nowhere | `models/`, every schedule "
        "within the bound each case prints |\n"
        "\n",
        stdout);
}

static void print_objects(const struct rt_registry_entry *entries, size_t entries_count)
{
    size_t objects_count = 0;

    fputs("## Queues, buses, watches, tasks, timers, lanes\n"
          "\n"
          "In the order they are made. *Capacity*: items of a queue or bus, timers of a timer set, "
          "lanes\nof a set of lanes; 1 for a watch (the newest value) and a task (one thread). "
          "*Policy*: what happens\nat the bound; for a task, when it fails. *Owner*: the role that "
          "makes it, and frees it.\n"
          "\n",
          stdout);
    for (size_t i = 0; i < entries_count; i++) {
        const struct rt_registry_entry *entry = &entries[i];

        if (entry->kind == RT_KIND_LOCK)
            continue;
        if (objects_count++ == 0)
            fputs("| name | kind | capacity | policy | owner |\n"
                  "|---|---|---|---|---|\n",
                  stdout);
        printf("| `%s` | %s | %llu | %s | %s |\n", entry->name, rt_kind_name(entry->kind),
               (unsigned long long)entry->capacity, entry->policy, entry->owner);
    }
    if (objects_count == 0)
        puts("None: no role is built yet.");
}

static void print_markdown(const struct rt_registry_entry *entries, size_t entries_count,
                           void *context)
{
    (void)context;
    print_head();
    print_objects(entries, entries_count);
    fputs("\n"
          "## Lock classes\n"
          "\n"
          "Outermost first. A thread takes a lock only if its rank is above that of every lock it "
          "holds, so no\ntwo threads can wait for each other; two locks of one class are never "
          "held together.\n"
          "\n"
          "| class | rank |\n"
          "|---|---|\n",
          stdout);
    for (size_t i = 0; i < entries_count; i++) {
        if (entries[i].kind == RT_KIND_LOCK)
            printf("| `%s` | %llu |\n", entries[i].name, (unsigned long long)entries[i].capacity);
    }
}

int cmd_topology(int argc, char **argv) RON_BLOCKS
{
    bool markdown = argc == 2 && strcmp(argv[1], "--markdown") == 0;
    struct ron_errinfo info;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        print_usage(stdout);
        return CMD_OK;
    }
    if (argc > 1 && !markdown) {
        fprintf(stderr, "ron topology: unexpected argument '%s'\n", argv[argc - 1]);
        print_usage(stderr);
        return CMD_USAGE;
    }
    if (app_topology(app_parts, app_parts_count, markdown ? print_markdown : print_text, NULL,
                     &info) != RON_ERR_OK) {
        fprintf(stderr, "ron topology: %s: %s\n", ron_err_text(info.err), info.message);
        return CMD_FAILED;
    }
    return CMD_OK;
}
