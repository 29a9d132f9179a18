"""test_tidy.py - tools/tidy. Method: for every rule, snippets that pass and some that are caught.

A snippet is laid into a tree that is clean but for it; the tool must report exactly that rule, at
that line, or nothing. A rule without a pair here fails the last case.
"""
import os
import sys

import support

sys.path.insert(0, support.tool(""))
from tidylib import checks, policy  # noqa: E402

# The rest of a tree that is clean.
CLEAN = {
    "README.md": "# x\n",
    "src/base/README.md": "# base\n",
    "src/base/good.c": '/*\n * good.c - fine.\n */\n#include "base/good.h"\n',
    "src/base/good.h": "/*\n * good.h - fine.\n */\n#ifndef RON_BASE_GOOD_H\n"
                       "#define RON_BASE_GOOD_H\n#endif\n",
    "tests/README.md": "# tests\n",
    "tests/unit/meson.build": "unit_tests = [\n  'good',\n]\n",
    "tests/unit/test_good.c": "/*\n * test_good.c - fine.\n */\n",
}


def c_file(path, code):
    """code as line 2 of a C file, or inside the guard of a header."""
    name = os.path.basename(path)
    if name.endswith(".h"):
        parts = path.removeprefix("src/").removeprefix("include/ron/")[:-2].split("/")
        guard = "_".join(["RON", *parts, "H"]).upper()
        return f"/* {name} - a test. */\n#ifndef {guard}\n#define {guard}\n{code}\n#endif\n"
    return f"/* {name} - a test. */\n{code}\n"


def function_of(lines_count):
    return "void f(void)\n{\n" + "    g();\n" * (lines_count - 2) + "}"


def text_of(lines_count, first="/* a.c - a test. */"):
    return first + "\n" + "int x;\n" * (lines_count - 1)


# rule -> (path, line of C code that passes or is caught there)
GOOD = [
    ("unsafe-call", "src/io/a.c", 'snprintf(t, n, "strcpy(a, b)"); /* sprintf(x) */'),
    ("unsafe-call", "src/io/a.c", "my_strcpy(a, b); ops->gets(a); // strcat(a, b)"),
    ("number-text", "src/io/a.c", "ron_decimal_parse_u64(text, &v, reterr);"),
    ("scan", "tests/a.c", 'sscanf(text, "%2hhx", &byte);'),
    ("calendar", "src/io/a.c", "int64_t mktime_ms;"),
    ("random", "src/io/a.c", "uint64_t random = next(seed);"),
    ("environment", "src/io/a.c", "struct system *system;"),
    ("getenv", "src/app/config.c", 'getenv("A");'),
    ("getenv", "tests/a.c", 'getenv("A");'),
    ("memory", "src/base/mem.c", "p = calloc(1, size); free(p);"),
    ("memory", "tests/a.c", "p = malloc(size); free(p);"),
    ("memory", "src/io/a.c", "void *take(void) __attribute__((malloc)); ops->free(p);"),
    ("cancel", "src/rt/a.c", "pthread_join(thread, NULL);"),
    ("thread", "src/rt/a.c", "pthread_create(&thread, NULL, run, task);"),
    ("blocking", "src/io/a.c", "epoll_wait(fd, events, 7, -1); read(fd, data, size);"),
    ("blocking", "src/base/assert.c", "write(2, line, size);"),
    ("blocking", "src/ledger/service.c", "vfs->write(file); rt_sleep(1); bool select;"),
    ("files", "src/io/vfs_posix.c", "fd = openat(dir, name, flags);"),
    ("file-bytes", "src/io/vfs_posix.c", "pread(fd, p, 7, 0);"),
    ("file-bytes", "src/io/log.c", "vfs->sync(file); io_file_sync(file, NULL);"),
    ("files", "src/rt/sim/heap.c", "map = mmap(NULL, size, rights, flags, -1, 0);"),
    ("files", "src/ledger/service.c", "vfs_open(vfs, name); bool open = true;"),
    ("clock", "src/rt/clock.c", "clock_gettime(CLOCK_MONOTONIC, &now);"),
    ("clock", "src/io/a.c", "uint64_t time = rt_time(clock);"),
    ("jump", "src/rt/a.c", "longjmp(where, 1);"),
    ("jump", "tests/a.c", "longjmp(where, 1);"),
    ("signal", "src/app/a.c", "sigaction(SIGTERM, &action, NULL);"),
    ("thread-local", "src/rt/thread/a.c", "static _Thread_local int x;"),
    ("stdout", "src/cli/a.c", 'printf("x"); fprintf(stderr, "x");'),
    ("stdout", "src/io/a.c", 'ron_printf("x");'),
    ("lock-analysis", "src/rt/lock_classes.h",
     "#define L __attribute__((no_thread_safety_analysis))"),
    ("expose", "src/base/secret.c", "ron_secret_expose(&secret);"),
    ("expose", "tests/a.c", "ron_secret_expose(&secret);"),
    ("exit", "src/base/assert.c", "abort();"),
    ("exit", "src/io/a.c", "bool abort; task->exit(0);"),
    ("float", "bench/a.c", "double seconds;"),
    ("float", "src/io/a.c", "int double_entry; /* float */"),
    ("typedef-struct", "src/io/a.c", "typedef void fn(void); struct a { int b; };"),
    ("typedef-struct", "src/io/a.c", "typedef enum ron_err fn(struct a *a);"),
    ("typedef-struct", "src/io/a.c", "typedef struct a *(*fn)(void);"),
    ("back-end-ifdef", "src/rt/sim/a.c", "#ifdef RT_SIM"),
    ("back-end-ifdef", "src/io/a.c", "#ifdef __linux__ /* RT_SIM */"),
    ("sanitizer-ifdef", "src/base/arena.c", "#if RON_ASAN"),
    ("thread", "tests/a.c", "pthread_create(&thread, NULL, run, NULL);"),
    ("blocking", "tests/a.c", "read(fd, data, size);"),
    ("files", "fuzz/a.c", "fd = open(name, flags);"),
    ("clock", "bench/a.c", "clock_gettime(CLOCK_MONOTONIC, &now);"),
    ("signal", "tests/a.c", "signal(SIGABRT, SIG_DFL);"),
    ("thread-local", "tests/a.c", "static _Thread_local int x;"),
    ("stdout", "tests/a.c", 'printf("x");'),
    ("exit", "tests/a.c", "_exit(0);"),
    ("exit", "src/cli/main.c", "exit(1);"),
    ("include", "src/io/a.c", '#include "rt/queue.h"'),
    ("include", "include/ron/a.h", '#include "ron/error.h"'),
    ("include", "src/rt/a.c", '#include "base/bytes.h"'),
    ("include", "src/rt/a.c", '#include "rt/sim/fiber.h"'),
    ("include", "src/auth/a.c", '#include "io/vfs.h"'),
    ("include", "src/ledger/core_apply.c", '#include "ledger/core.h"'),
    ("include", "src/ledger/core.c", '#include "base/u128.h"'),
    ("include", "src/wallet/service.c", '#include "ledger/port.h"'),
    ("include", "src/wallet/service.c", '#include "rt/queue.h"'),
    ("include", "src/app/a.c", '#include "ledger/service.h"'),
    ("include", "src/cli/a.c", '#include "io/client.h"'),
    ("include", "src/base/a.c", '/* #include "rt/queue.h" */'),
    ("include", "tests/a.c", '#include "support.h"'),
    ("header", "src/base/a.c", "#include <string.h>"),
    ("header", "src/base/a.c", "#include <sys/types.h>"),
    ("header", "src/base/secret.c", "#include <sodium.h>"),
    ("header", "src/io/tls.c", "#include <openssl/ssl.h>"),
    ("header", "src/base/b3.h", "#include <blake3.h>"),
    ("header", "tests/a.c", "#include <cmocka.h>"),
    ("function", "src/io/a.c", function_of(70)),
    ("function", "src/io/a.c", "struct a {\n" + "    int b;\n" * 90 + "};"),
    ("columns", "src/io/a.c", "// " + "x" * 97),
    ("columns", "src/io/a.c",
     "/* clang-format off */\n// " + "x" * 120 + "\n/* clang-format on */"),
]
BAD = [
    ("getenv", "src/io/a.c", 'getenv("A");'),
    ("random", "src/io/a.c", "lrand48();"),
    ("random", "src/io/a.c", "arc4random_buf(data, size);"),
    ("clock", "src/base/a.c", "timespec_get(&now, TIME_UTC);"),
    ("clock", "src/base/a.c", "start = clock();"),
    ("blocking", "src/base/a.c", "(fsync)(3);"),
    ("blocking", "src/base/a.c", "int (*sync_fn)(int) = fdatasync;"),
    ("blocking", "src/base/a.c", "syscall(74, 1);"),
    ("blocking", "src/base/a.c", "sched_yield();"),
    ("blocking", "src/base/a.c", "pause();"),
    ("files", "src/base/a.c", "fgets(line, sizeof(line), file);"),
    ("files", "src/base/a.c", "fread(data, 1, size, file);"),
    ("include", "src/base/a.c", '#include "base/../rt/queue.h"'),
    ("unsafe-call", "src/io/a.c", "strcpy(a, b);"),
    ("unsafe-call", "tests/a.c", "char *(*f)(char *, const char *) = strcat;"),
    ("unsafe-call", "src/io/a.c", "x = '\"'; sprintf(a, b);"),
    ("unsafe-call", "src/io/a.c", '"a\\"b"; strtok(a, b);'),
    ("number-text", "src/io/a.c", "x = atoi(text);"),
    ("number-text", "src/io/a.c", "x = strtoull (text, NULL, 10);"),
    ("scan", "src/io/a.c", 'sscanf(text, "%d", &x);'),
    ("calendar", "src/io/a.c", "gmtime_r(&t, &tm);"),
    ("random", "tests/a.c", "x = rand();"),
    ("environment", "src/cli/a.c", 'system("ls");'),
    ("memory", "src/io/a.c", "p = malloc(7);"),
    ("memory", "src/base/a.c", "free(p);"),
    ("memory", "src/base/a.c", "p = strdup(text);"),
    ("cancel", "tests/a.c", "pthread_cancel(thread);"),
    ("thread", "src/ledger/service.c", "pthread_mutex_lock(&mutex);"),
    ("thread", "src/app/a.c", "pid = fork();"),
    ("blocking", "src/ledger/service.c", "fsync(fd);"),
    ("blocking", "src/base/a.c", "usleep(5);"),
    ("blocking", "src/auth/a.c", "n = read(fd, p, 7);"),
    ("files", "src/app/a.c", 'f = fopen("a", "r");'),
    ("files", "src/io/vfs.c", "fd = openat(dir, name, flags);"),
    ("files", "src/io/vfs_memory.c", "unlink(name);"),
    ("file-bytes", "src/io/log.c", "fdatasync(fd);"),
    ("file-bytes", "src/io/log.c", "n = pwritev(fd, parts, 3, offset);"),
    ("files", "src/rt/log.c", "fd = open(name, flags);"),
    ("clock", "src/io/a.c", "clock_gettime(CLOCK_REALTIME, &now);"),
    ("clock", "src/ledger/core.c", "now = time(NULL);"),
    ("jump", "src/base/a.c", "longjmp(where, 1);"),
    ("signal", "src/io/a.c", "signal(SIGPIPE, SIG_IGN);"),
    ("thread-local", "src/rt/a.c", "static _Thread_local int x;"),
    ("thread-local", "src/io/a.c", "static __thread int x;"),
    ("stdout", "src/io/a.c", 'printf("x");'),
    ("stdout", "src/base/a.c", 'fputs("x", stderr);'),
    ("lock-analysis", "src/io/a.c", "void f(void) RON_TSA(no_thread_safety_analysis);"),
    ("expose", "src/io/a.c", "slice = ron_secret_expose(&secret);"),
    ("exit", "src/io/a.c", "abort();"),
    ("exit", "src/cli/a.c", "exit(1);"),
    ("float", "src/io/a.c", "double rate;"),
    ("typedef-struct", "src/io/a.c", "typedef struct a a;"),
    ("typedef-struct", "src/io/a.c", "typedef struct { int (*b)(void); } a;"),
    ("typedef-struct", "tests/a.c", "typedef struct __attribute__((packed)) a { int b; } a_t;"),
    ("back-end-ifdef", "src/io/a.c", "#ifdef RT_SIM"),
    ("back-end-ifdef", "src/rt/a.c", "# if defined(A) && defined(RON_SIM_FIBERS)"),
    ("sanitizer-ifdef", "src/io/a.c", "#if RON_ASAN"),
    ("sanitizer-ifdef", "src/base/a.c", "#if defined(__SANITIZE_THREAD__)"),
    ("include", "include/ron/a.h", '#include "base/bytes.h"'),
    ("include", "src/base/a.c", '#include "rt/queue.h"'),
    ("include", "src/rt/a.c", '#include "io/vfs.h"'),
    ("include", "src/io/a.c", '#include "auth/keyring.h"'),
    ("include", "src/auth/a.c", '#include "ledger/port.h"'),
    ("include", "src/ledger/core.c", '#include "rt/queue.h"'),
    ("include", "src/ledger/core_x.c", '#include "ledger/service.h"'),
    ("include", "src/ledger/core.c", '#include "wallet/port.h"'),
    ("include", "src/wallet/service.c", '#include "ledger/core.h"'),
    ("include", "src/wallet/service.c", '#include "app/config.h"'),
    ("include", "src/wallet/service.c", '#include "rt/sim/fiber.h"'),
    ("include", "src/cli/a.c", '#include "ledger/core.h"'),
    ("include", "src/cli/a.c", '#include "io/vfs.h"'),
    ("include", "src/base/a.c", '  #  include "bytes.h"'),
    ("include", "src/unknown/a.c", '#include "base/bytes.h"'),
    ("header", "src/base/a.c", "#include <sodium.h>"),
    ("header", "src/ledger/core.c", "#include <openssl/sha.h>"),
    ("header", "src/base/a.c", "#include <pthread.h>"),
    ("header", "include/ron/a.h", "#include <blake3.h>"),
    ("header", "src/base/a.c", "#include <jansson.h>"),
    ("function", "src/io/a.c", function_of(71)),
    ("columns", "src/io/a.c", "// " + "x" * 98),
    ("columns", "src/io/a.c", "/* clang-format off */ // clang-format on\n// " + "é" * 98),
]
# rule -> whole files, for rules about more than a line
GOOD_FILES = [
    ("length", {"src/base/a.c": text_of(600)}),
    ("length", {"src/base/a.h": c_file("src/base/a.h", "int x;\n" * 195 + "int x;")}),
    ("length", {"src/base/a.c": text_of(
        1000, "/* a.c - a test. tidy: long file because it is a table. */")}),
    ("guard", {"include/ron/a.h": c_file("include/ron/a.h", "int x;")}),
    ("guard", {"src/rt/sim/fiber-x.h": "/* fiber-x.h - x. */\n#ifndef RON_RT_SIM_FIBER_X_H\n"
                                       "#define RON_RT_SIM_FIBER_X_H\n#endif\n",
               "src/rt/README.md": "# rt\n"}),
    ("guard", {"tests/unit/support.h": "/* support.h - x. */\n#ifndef RON_TESTS_SUPPORT_H\n"
                                       "#define RON_TESTS_SUPPORT_H\n#endif\n"}),
    ("guard", {"tests/diff/json/scan.h": "/* scan.h - x. */\n#ifndef RON_TESTS_DIFF_JSON_SCAN_H\n"
                                         "#define RON_TESTS_DIFF_JSON_SCAN_H\n#endif\n"}),
    ("purpose", {"src/base/queue.c": "/*\n * ron_queue - a queue.\n */\n"}),
    ("purpose", {"tools/x": "#!/bin/sh\n# x FILE - print it.\n", "tools/README.md": "# tools\n"}),
    ("purpose", {"tests/a/__init__.py": '"""a - a package."""\n'}),
    ("mark", {"src/base/a.c": c_file("src/base/a.c", 'mkstemp("XXXXXX");')}),
    ("space", {"a.md": "two spaces  \n", "a.mk": "x:\n\ttab\n", "tests/vectors/a": "no newline"}),
    ("path", {"a.md": "see ../work/x, src/root/a and /usr/share\n"}),
    ("readme", {"bench/meson.build": "# nothing yet\n", "tests/deep/er/a.txt": "x\n"}),
    ("test", {"tests/unit/support.c": "/* support.c - x. */\n"}),
    ("test", {"tests/unit/vectors.h": "/* vectors.h - x. */\n#ifndef RON_TESTS_VECTORS_H\n"
                                      "#define RON_TESTS_VECTORS_H\n#endif\n"}),
]
BAD_FILES = [
    ("length", {"src/base/a.c": text_of(601)}),
    ("length", {"src/base/a.c": text_of(
        1001, "/* a.c - a test. tidy: long file because it is a table. */")}),
    ("length", {"src/base/a.h": c_file("src/base/a.h", "int x;\n" * 196 + "int x;")}),
    ("guard", {"src/base/a.h": "/* a.h - x. */\n#ifndef A_H\n#define A_H\n#endif\n"}),
    ("guard", {"src/base/a.h": "/* a.h - x. */\n#ifndef RON_BASE_A_H\n#define RON_BASE_B_H\n"
                               "#endif\n"}),
    ("guard", {"src/base/a.h": "/* a.h - x. */\n#pragma once\n"}),
    ("purpose", {"src/base/a.c": "/* a test. */\n"}),
    ("purpose", {"src/base/a.c": "/* b.c - another. */\n"}),
    ("purpose", {"src/base/a.c": "int x; /* a.c - late. */\n"}),
    ("purpose", {"tests/a.py": "import os\n"}),
    ("mark", {"a.md": "TODO: more\n"}),
    ("mark", {"src/base/a.c": c_file("src/base/a.c", "// FIXME")}),
    ("space", {"src/base/a.c": c_file("src/base/a.c", "\tint x;")}),
    ("space", {"a.txt": "x \n"}),
    ("space", {"a.txt": "x"}),
    ("path", {"a.md": "in /home/someone/x\n"}),
    ("path", {"a.txt": "cd /work/x\n"}),
    ("readme", {"src/io/a.c": c_file("src/io/a.c", "int x;")}),
    ("readme", {"docs/a.md": "# a\n"}),
    ("test", {"tests/unit/test_lost.c": "/* test_lost.c - never runs. */\n"}),
    ("test", {"tests/unit/bytes.c": "/* bytes.c - misnamed. */\n"}),
]


def findings_of(rule, files):
    """What the rules say about the clean tree with these files in it."""
    files = CLEAN | files
    if rule != "readme":
        folders = {match[1] for path in files if (match := policy.README_FOLDERS.match(path))}
        files |= {f"{folder}/README.md": "# x\n" for folder in folders}
    loaded = {path: checks.File(path, text) for path, text in files.items()}
    return list(checks.check_files(sorted(files), loaded))


def passes(rule, files):
    found = findings_of(rule, files)
    support.check(found == [], files, found)


def caught(rule, files, place=None):
    found = findings_of(rule, files)
    support.check({entry[2] for entry in found} == {rule}, f"expected {rule} only", files, found)
    support.check(place is None or place in [entry[:2] for entry in found],
                  f"expected it at {place}", files, found)


def check_rule(rule):
    pairs = 0
    for _, path, code in (row for row in GOOD if row[0] == rule):
        passes(rule, {path: c_file(path, code)})
        pairs |= 1
    for _, files in (row for row in GOOD_FILES if row[0] == rule):
        passes(rule, files)
        pairs |= 1
    for _, path, code in (row for row in BAD if row[0] == rule):
        first = 4 if path.endswith(".h") else 2
        line = first + 1 if rule == "function" else first + code.count("\n")
        caught(rule, {path: c_file(path, code)}, (path, line))
        pairs |= 2
    for _, files in (row for row in BAD_FILES if row[0] == rule):
        caught(rule, files)
        pairs |= 2
    support.check(pairs == 3, f"{rule} lacks a good or a bad snippet")


def program_reports_findings():
    files = CLEAN | {"src/base/a.c": c_file("src/base/a.c", "strcpy(a, b);")}
    with support.Tree(files) as root:
        done = support.run([support.tool("tidy"), "--root", root])
        support.check(done.returncode == 1, done)
        support.check(done.stdout.startswith("src/base/a.c:2: unsafe-call: strcpy has no bound"),
                      done.stdout)
        support.check(done.stdout.count("\n") == 1, done.stdout)
        done = support.run([support.tool("tidy"), "--root", root, "--tap"])
        support.check(done.returncode == 1, done)
        support.check("\nok 2 - number-text\n" in done.stdout, done.stdout)
        support.check("not ok 1 - unsafe-call\n# src/base/a.c:2: " in done.stdout, done.stdout)


def program_passes_a_clean_tree():
    ignored = {".gitignore": "/build*/\n", "build/a.c": "strcpy(a, b);"}
    with support.Tree(CLEAN | ignored) as root:
        with open(os.path.join(root, "binary.bin"), "wb") as stream:
            stream.write(b"\x00\xff /home/ \n ")
        done = support.run([support.tool("tidy"), "--root", root])
        support.check((done.returncode, done.stdout) == (0, ""), done)
        done = support.run([support.tool("tidy"), "--root", root, "--tap"])
        support.check(done.returncode == 0 and "not ok" not in done.stdout, done)


def program_lists_its_rules():
    done = support.run([support.tool("tidy"), "--list"])
    support.check(done.returncode == 0, done)
    support.check([line.split()[0] for line in done.stdout.splitlines()] == RULES, done.stdout)
    support.check("--root" in support.run([support.tool("tidy"), "--help"]).stdout)
    support.check(support.run([support.tool("tidy"), "--nonsense"]).returncode == 2)


RULES = [rule for rule, _ in checks.rules()]
CASES = [(f"rule_{rule}", lambda rule=rule: check_rule(rule)) for rule in RULES]
CASES += [(case.__name__, case) for case in (
    program_reports_findings, program_passes_a_clean_tree, program_lists_its_rules)]
if __name__ == "__main__":
    sys.exit(support.main(CASES))
