"""test_dev.py - ./dev in a tree of stubs: what it hands on to the programs that it runs."""
import os
import shutil
import sys

import support

# Programs that ./dev asks before it runs anything: all is installed, all is built.
STUBS = {"dpkg-query": "printf installed", "pkg-config": "exit 0", "promtool": "exit 0",
         "meson": 'mkdir -p "$2"; touch "$2/build.ninja"', "ninja": "exit 0"}
BENCHMARKS = ("base", "hash", "json", "refuse", "rt", "ledger_core", "log", "storage")


def dev(*arguments):
    """What ./dev prints; a benchmark of the tree prints its name and its arguments."""
    with support.Tree() as root:
        shutil.copy(os.path.join(support.PROJECT, "dev"), root)
        programs = {f"bin/{name}": text for name, text in STUBS.items()}
        for name in BENCHMARKS:
            programs[f"bench-stubs/bench_{name}"] = 'echo "$(basename "$0")" "$@"'
        programs["bin/ninja"] = "mkdir -p build/bench; cp bench-stubs/* build/bench"
        for path, text in programs.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as stream:
                stream.write(f"#!/bin/sh\n{text}\n")
            os.chmod(full, 0o755)
        os.makedirs(os.path.join(root, "bench"))
        with open(os.path.join(root, "bench", "ledger.py"), "w", encoding="utf-8") as stream:
            stream.write("import sys\nprint('ledger.py', *sys.argv[1:])\n")
        path = os.path.join(root, "bin") + os.pathsep + os.environ["PATH"]
        return support.run([os.path.join(root, "dev"), *arguments], cwd=root,
                           env=os.environ | {"PATH": path})


def prints(done, *lines):
    support.check(done.returncode == 0, done.stdout, done.stderr)
    support.check(done.stdout.splitlines() == list(lines), done.stdout, done.stderr)


def benchmarks_get_their_options():
    prints(dev("bench", "rt", "--quick", "--cpu-time"), "bench_rt --quick --cpu-time")
    prints(dev("bench", "ledger", "--seconds", "2", "--only", "a b"),
           "ledger.py --build build --seconds 2 --only a b")
    prints(dev("bench", "storage", "--quick"), "bench_log --quick", "bench_storage --quick")
    prints(dev("bench", "--quick"), *(f"bench_{name} --quick"
                                      for name in ("base", "hash", "json", "refuse")))


def benchmarks_are_run_by_name():
    prints(dev("bench"), "bench_base", "bench_hash", "bench_json", "bench_refuse")
    prints(dev("bench", "rt", "ledger-core"), "bench_rt", "bench_ledger_core")
    unknown = dev("bench", "nothing")
    support.check(unknown.returncode != 0 and "no benchmark 'nothing'" in unknown.stderr,
                  unknown.stderr)
    whose = dev("bench", "rt", "log", "--quick")
    support.check(whose.returncode != 0 and "whose is --quick" in whose.stderr, whose.stderr)
    support.check(whose.stdout == "", whose.stdout)
    support.check("begins with `-`" in dev("bench", "--help").stdout, "the help does not say so")


CASES = [(case.__name__, case) for case in (
    benchmarks_get_their_options, benchmarks_are_run_by_name)]
if __name__ == "__main__":
    sys.exit(support.main(CASES))
