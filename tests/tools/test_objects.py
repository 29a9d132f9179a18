"""test_objects.py [BUILD] - what is proven on the simulator is what ships; TAP.

Reads the build graph of an existing build folder. The program `explore` and the tests on real
threads must link the very same objects of src/rt, except for one back end each: src/rt/sim/ or
src/rt/thread/. Every source of src/rt must belong to one of these three. The one exception is the
model of a futex, for which a few are compiled once more: in explore only, under other names.
"""
import json
import os
import subprocess
import sys

import support

BUILD = sys.argv[1] if len(sys.argv) > 1 else os.path.join(support.PROJECT, "build")
ON_SIM = "models/explore"
ON_THREADS = ("tests/unit/test_rt_queue", "tests/unit/test_rt_strands", "tests/stress/stress_tasks")
RENAMED = ("models/libfutex.a.p/", "futex_")  # its objects; how each of their names begins
# The switch of fibers has one file per kind of machine; a build uses one kind.
SWITCHES = ("context_x86_64.", "context_ucontext.")


def ninja(*arguments):
    done = support.run(["ninja", "-C", BUILD, *arguments])
    support.check(done.returncode == 0, done.stdout, done.stderr)
    return done.stdout.splitlines()


def objects_of(target):
    """Object file -> its source, relative to the project, for all that the target links."""
    return {name: SOURCES[name] for name in inputs_of(target) if name in SOURCES}


def inputs_of(target):
    """Everything ninja reads to make the target, through libraries, by name."""
    seen, waiting = set(), [target]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in SOURCES:
            continue  # an object: what it is made of is not asked
        for line in direct_inputs(name):
            waiting.append(line)
    return seen


def direct_inputs(name):
    """The files that ninja's rule for name reads; order-only ones do not enter the result."""
    found, reading = [], False
    for line in ninja("-t", "query", name):
        if line.startswith("  input:"):
            reading = True
        elif line.startswith("  outputs:"):
            break
        elif reading and not line.strip().startswith("||"):
            found.append(line.strip().removeprefix("| "))
    return found


def read_sources():
    """Object file -> source, of every compile step, but for those under other names."""
    rows = json.loads(subprocess.run(
        ["ninja", "-C", BUILD, "-t", "compdb"], check=True, capture_output=True).stdout)
    sources = {}
    for row in rows:
        if row["output"].endswith(".o") and not row["output"].startswith(RENAMED[0]):
            path = os.path.realpath(os.path.join(row["directory"], row["file"]))
            sources[row["output"]] = os.path.relpath(path, support.PROJECT)
    return sources


def rt_objects(target):
    return {name: path for name, path in objects_of(target).items() if path.startswith("src/rt/")}


def back_end(path):
    """"sim", "thread", or "" for what is above the seam."""
    return os.path.dirname(path).removeprefix("src/rt").strip("/")


def above(target):
    return {name: path for name, path in rt_objects(target).items() if back_end(path) == ""}


def each_program_has_one_back_end():
    support.check({back_end(path) for path in rt_objects(ON_SIM).values()} == {"", "sim"},
                  rt_objects(ON_SIM))
    for target in ON_THREADS:
        support.check({back_end(path) for path in rt_objects(target).values()} == {"", "thread"},
                      target, rt_objects(target))


def objects_above_the_seam_are_the_same_files():
    proven = above(ON_SIM)
    support.check(len(proven) >= 10, proven)
    for target in ON_THREADS:
        support.check(above(target) == proven, target, above(target).keys() ^ proven.keys())


def sources_above_the_seam_are_compiled_once():
    paths = [path for path in SOURCES.values()
             if path.startswith("src/rt/") and back_end(path) == ""]
    support.check(len(paths) == len(set(paths)), sorted(paths))


def every_source_has_its_place():
    present = {os.path.relpath(os.path.join(folder, name), support.PROJECT)
               for folder, _, names in os.walk(os.path.join(support.PROJECT, "src/rt"))
               for name in names if name.endswith((".c", ".S"))}
    linked = set(rt_objects(ON_SIM).values())
    for target in ON_THREADS:
        linked |= set(rt_objects(target).values())
    unused = {path for path in present - linked
              if not os.path.basename(path).startswith(SWITCHES)}
    support.check(not unused, "in no program", unused)
    support.check(not linked - present, "not in src/rt", linked - present)
    support.check({back_end(path) for path in present} == {"", "sim", "thread"}, present)


def renamed_objects_stay_among_themselves():
    objects = [name for name in inputs_of(ON_SIM) if name.startswith(RENAMED[0])
               and name.endswith(".o")]
    support.check(len(objects) >= 3, objects)
    for target in ON_THREADS:
        support.check(not any(name.startswith(RENAMED[0]) for name in inputs_of(target)), target)
    for name in objects:
        done = support.run(["nm", "--extern-only", "--defined-only", "--format=posix",
                            os.path.join(BUILD, name)])
        names = [line.split()[0] for line in done.stdout.splitlines()]
        support.check(done.returncode == 0 and names, name, done.stderr)
        strangers = [word for word in names if not word.startswith(RENAMED[1])]
        support.check(not strangers, name, strangers)


SOURCES = read_sources()
CASES = [(case.__name__, case) for case in (
    each_program_has_one_back_end, objects_above_the_seam_are_the_same_files,
    sources_above_the_seam_are_compiled_once, every_source_has_its_place,
    renamed_objects_stay_among_themselves)]
if __name__ == "__main__":
    sys.exit(support.main(CASES))
