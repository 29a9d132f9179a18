"""test_mutants.py - tools/mutants on a tiny project: one C file, one test. Every verdict occurs."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import support

PROJECT = {
    "meson.build": "project('tiny', 'c')\nsubdir('tests/unit')\n",
    "tests/unit/meson.build": "executable('test_add', 'test_add.c', '../../src/add.c')\n",
    "src/add.h": "int add(int a, int b);\n",
    "src/add.c": '#include "add.h"\n\nint add(int a, int b)\n{\n    return a + b;\n}\n',
    "tests/unit/test_add.c": """
#include <stdio.h>
#include "../../src/add.h"
int main(void)
{
    int ok = add(2, 3) == 5;
    printf("1..2\\nok 1 - nothing\\n%s 2 - add_adds\\n", ok ? "ok" : "not ok");
    return !ok;
}
""",
}


def patch(new, says="Mutant: x\nKilled-by: unit/add\n\n", old=("    return a + b;",),
          path="src/add.c"):
    """A patch that puts the lines `new` where add.c has its return."""
    changed = [f"-{line}" for line in old] + [f"+{line}" for line in new]
    return (f"{says}diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n"
            f"@@ -3,4 +3,{3 + len(new)} @@\n int add(int a, int b)\n {{\n"
            + "\n".join(changed) + "\n }\n")


def mutants(patches, *options, files=None, env=None):
    """Run the tool on the tiny project with these patches; TMPDIR must be empty afterwards."""
    files = PROJECT | {f"tests/mutants/{name}.patch": text for name, text in patches.items()}\
        | (files or {})
    with support.Tree(files) as root, tempfile.TemporaryDirectory() as temporary:
        done = support.run([support.tool("mutants"), "--root", root, *options],
                           env=os.environ | {"TMPDIR": temporary} | (env or {}))
        support.check(os.listdir(temporary) == [], "left behind", os.listdir(temporary))
        with open(os.path.join(root, "src/add.c"), encoding="utf-8") as stream:
            support.check(stream.read() == files["src/add.c"], "the tree was changed")
        support.check(not os.path.exists(os.path.join(root, "build")), "the tree was built")
        return done


def expect(done, status, *patterns):
    support.check(done.returncode == status, done.returncode, done.stdout, done.stderr)
    for pattern in patterns:
        support.check(re.search(pattern, done.stdout, re.MULTILINE), pattern, done.stdout,
                      done.stderr)


KILLED = patch(["    return a - b;"])
SURVIVES = patch(["    return b + a;"])


def killed_names_the_test_case():
    done = mutants({"01-minus": KILLED, "02-twice": patch(["    return a + 2 * b;"])})
    expect(done, 0, r"^\[1/2\] 01-minus → unit/add add_adds$", r"^\[2/2\] 02-twice → unit/add",
           r"^2 killed, 0 survived, 0 broken\n\Z")


def survivor_fails_and_the_copy_is_reverted():
    done = mutants({"01-minus": KILLED, "02-same": SURVIVES, "03-minus": KILLED})
    expect(done, 1, r"02-same SURVIVED: x \(unit/add passed\)",
           r"^2 killed, 1 survived, 0 broken$")


def broken_patches_fail():
    done = mutants({
        "01-stale": patch(["    return 1;"], old=["    return a * b;"]),
        "02-lost": patch(["    return 1;"], path="src/gone.c"),
        "03-no-c": patch(["    return a +;"]),
        "04-minus": KILLED,  # what came before left nothing behind
    })
    expect(done, 1, r"01-stale BROKEN: does not apply", r"02-lost BROKEN: does not apply",
           r"03-no-c BROKEN: does not build .*error", r"04-minus → unit/add add_adds",
           r"^1 killed, 0 survived, 3 broken$")


def rules_for_patches():
    done = mutants({
        "01-long": patch(["    a++;", "    a--;"] * 3),
        "02-check": patch(["    RON_ASSERT(a > 0);", "    return a - b;"]),
        "03-test": patch(["    return 1;"], path="tests/unit/test_add.c"),
        "04-bare": patch(["    return a - b;"], says=""),
        "05-kind": patch(["    return a - b;"], says="Mutant: x\nKilled-by: magic/add\n"),
        "06-new": "Mutant: x\nKilled-by: unit/add\ndiff --git a/src/b.c b/src/b.c\n"
                  "new file mode 100644\n--- /dev/null\n+++ b/src/b.c\n@@ -0,0 +1 @@\n+int b;\n",
        "07-out": patch(["    return 1;"], path="src/../meson.build"),
        "08-assert": patch(["    assert(b); return a - b;"]),
    })
    expect(done, 1, r"01-long BROKEN: adds 6 and removes 1 lines, at most 5",
           r"02-check BROKEN: adds a check: RON_ASSERT", r"03-test BROKEN: touches tests/unit",
           r"04-bare BROKEN: needs the lines", r"05-kind BROKEN: no killer of this kind: magic/add",
           r"06-new BROKEN: more than a change", r"07-out BROKEN: touches src/\.\./meson",
           r"08-assert BROKEN: adds a check", r"^0 killed, 0 survived, 8 broken$")


def five_lines_are_allowed():
    expect(mutants({"01-five": patch(["    a++;"] * 4 + ["    return a + b;"])}), 0, "^1 killed")


def crash_and_hang_count_as_noticed():
    done = mutants({
        "01-crash": patch(["    return *(volatile int *)0;"]),
        "02-hang": patch(["    while (a < 9) { if (b > 9) a++; }", "    return a;"]),
    }, "--timeout", "2")
    expect(done, 0, r"01-crash → unit/add killed by SIGSEGV",
           r"02-hang → unit/add still running after 2 s", "^2 killed")


def baseline_must_pass():
    broken = PROJECT["tests/unit/test_add.c"].replace("== 5", "== 6")
    done = mutants({"01-minus": KILLED}, files={"tests/unit/test_add.c": broken})
    expect(done, 1, r"01-minus BROKEN: baseline: unit/add fails without any mutant: add_adds",
           "^0 killed, 0 survived, 1 broken$")


def jobs_and_tap():
    done = mutants({"01-minus": KILLED, "02-same": SURVIVES, "03-minus": KILLED},
                   "--jobs", "2", "--tap")
    expect(done, 1, r"\A1\.\.3$", r"^ok \d - 01-minus$", r"^not ok \d - 02-same$",
           r"^# 2 killed, 1 survived, 0 broken$")


def times(folder):
    return {path: os.stat(path).st_mtime_ns for path, _, names in os.walk(folder)
            for path in [path, *(os.path.join(path, name) for name in names)]}


def what_is_built_is_used_where_it_is_up_to_date():
    mark = "-Dc_args=-DMARK=1"  # an option that a build of the tool's own would not have
    test = PROJECT["tests/unit/test_add.c"].replace("== 5", "== 5 && MARK").replace(
        "#include <stdio.h>", "#include <stdio.h>\n#ifndef MARK\n#define MARK 0\n#endif")
    unused = patch(["    int unused = b;", "    return a - 1;"])
    patches = {"01-minus": KILLED, "02-warns": unused, "03-same": SURVIVES}
    tree = support.Tree(PROJECT | {"tests/unit/test_add.c": test} | {
        f"tests/mutants/{name}.patch": text for name, text in patches.items()})
    with tree as root:
        for command in (["meson", "setup", "build", mark, "-Dwerror=true", "-Dwarning_level=2"],
                        ["ninja", "-C", "build"]):
            done = support.run(command, cwd=root)
            support.check(done.returncode == 0, done.stdout, done.stderr)
        before = times(os.path.join(root, "build"))
        expect(support.run([support.tool("mutants"), "--root", root]), 1,
               r"01-minus → unit/add add_adds", r"02-warns → unit/add", r"03-same SURVIVED",
               r"^2 killed, 1 survived, 0 broken$")
        support.check(times(os.path.join(root, "build")) == before, "the tree's build changed")
        tree.write({"src/add.h": PROJECT["src/add.h"] + "int more(void);\n"})
        expect(support.run([support.tool("mutants"), "--root", root, "--only", "01"]), 1,
               r"01-minus BROKEN: baseline: unit/add fails")
        support.check(times(os.path.join(root, "build")) == before, "the tree was built")


def sample_only_and_list():
    patches = {f"0{n}-x": KILLED for n in range(1, 8)} | {"09-bad": "nothing"}
    first = mutants(patches, "--list", "--sample", "3", "--seed", "a")
    expect(first, 0)
    support.check(first.stdout.count("\n") == 3, first.stdout)
    again = mutants(patches, "--list", "--sample", "3", "--seed", "a")
    support.check(first.stdout == again.stdout, first.stdout, again.stdout)
    seeds = {mutants(patches, "--list", "--sample", "3", "--seed", str(n)).stdout
             for n in range(4)}
    support.check(len(seeds) > 1, seeds)
    expect(mutants(patches, "--list"), 0, r"^01-x: x \[unit/add\]$", "^09-bad: BROKEN")
    expect(mutants(patches, "--only", "0[23]"), 0, "^2 killed")
    expect(mutants(patches, "--only", "zz"), 1)
    expect(mutants({}), 1)
    expect(mutants(patches, "--jobs", "0"), 2)
    expect(mutants({}, "--help"), 0, "--sample N")


def interrupted_run_leaves_nothing():
    hang = patch(["    while (a < 9) { if (b > 9) a++; }", "    return a;"])
    files = PROJECT | {"tests/mutants/01-hang.patch": hang}
    for number in (signal.SIGTERM, signal.SIGINT):
        with support.Tree(files) as root, tempfile.TemporaryDirectory() as temporary:
            child = subprocess.Popen(
                [support.tool("mutants"), "--root", root], env=os.environ | {"TMPDIR": temporary},
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            try:
                program = wait_for_program(temporary)
                child.send_signal(number)
                child.communicate(timeout=20)
            finally:
                child.kill()
            support.check(child.returncode == 128 + number, child.returncode)
            support.check(os.listdir(temporary) == [], os.listdir(temporary))
            support.check(not os.path.exists(f"/proc/{program}"), "the test still runs")


def wait_for_program(folder):
    """The id of a process whose program lies in folder and runs for a while: the mutant's test."""
    seen = None
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                program = os.readlink(f"/proc/{name}/exe")
            except OSError:
                continue
            if program.startswith(folder) and program.endswith("test_add"):
                if seen == name:
                    return name
                seen = name
        time.sleep(0.3)
    raise AssertionError("the test never ran")


CASES = [(case.__name__, case) for case in (
    killed_names_the_test_case, survivor_fails_and_the_copy_is_reverted, broken_patches_fail,
    rules_for_patches, five_lines_are_allowed, crash_and_hang_count_as_noticed, baseline_must_pass,
    jobs_and_tap, what_is_built_is_used_where_it_is_up_to_date,
    sample_only_and_list, interrupted_run_leaves_nothing)]
if __name__ == "__main__":
    sys.exit(support.main(CASES))
