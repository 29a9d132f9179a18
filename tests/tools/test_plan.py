"""test_plan.py - what tests/plan.toml claims about the tests it leaves out."""
import os
import re
import shutil
import sys
import tempfile
import tomllib

import support


def parts():
    with open(os.path.join(support.PROJECT, "tests", "plan.toml"), "rb") as stream:
        return tomllib.load(stream)["part"]


def left_out():
    for part in parts():
        if part.get("build") == "build-tsan" and "except" in part:
            with open(os.path.join(support.PROJECT, part["except"]), encoding="utf-8") as stream:
                return stream.read().split()
    return []


def cannot_start_threads(program):
    """True when nothing in it can; what has the means may still not use them."""
    done = support.run(["nm", "-D", "--undefined-only", program])
    support.check(done.returncode == 0 and "cmocka" in done.stdout, program, done.stderr)
    return not re.search(r"\b(pthread_create|thrd_create|clone3?)\b", done.stdout)


def what_the_thread_sanitizer_leaves_out_has_no_threads():
    names = [os.path.basename(path).removesuffix(".c") for path in left_out()]
    support.check(names, "nothing is left out")
    programs = [os.path.join(support.PROJECT, "build", "tests", "unit", name) for name in names]
    to_run = [program for program in programs if not cannot_start_threads(program)]
    support.check(len(to_run) < len(programs), "nm sees no difference")
    with tempfile.NamedTemporaryFile() as trace:
        command = ["strace", "-f", "-qq", "-e", "trace=clone,clone3", "-o", trace.name]
        support.check(shutil.which("strace"), "strace is not installed: ./dev setup does it")
        if support.run([*command, "true"]).returncode != 0:
            raise support.Skip("strace may not trace here")
        for program in to_run:
            done = support.run([*command, program], timeout=300)
            support.check(done.returncode == 0, program, done.stderr)
            with open(trace.name, encoding="utf-8", errors="replace") as file:
                support.check("CLONE_THREAD" not in file.read(), f"{program} starts a thread")


def suite(*options):
    """The cases that `explore suite` runs, without their numbers."""
    explore = os.path.join(support.PROJECT, "build", "models", "explore")
    done = support.run([explore, "suite", *options])
    support.check(done.returncode == 0, options, done.stdout, done.stderr)
    return re.findall(r"^ok \d+ - (.*)$", done.stdout, re.MULTILINE)


def the_parts_of_a_suite_are_the_suite():
    for part in parts():
        pieces = [match for command in part["commands"]
                  for match in re.findall(r"--part (\d+)/(\d+)", command)]
        support.check(pieces == [(str(k + 1), str(len(pieces))) for k in range(len(pieces))],
                      part["name"], pieces)
    only = ("--only", "two_locks")
    split = [suite(*only, "--part", f"{k}/3") for k in (1, 2, 3)]
    support.check(all(split), split)
    support.check(sorted(sum(split, [])) == sorted(suite(*only)), split, suite(*only))
    for bad in ("0/3", "4/3", "3", "1/0", "/", "a/3", "1/65"):
        explore = os.path.join(support.PROJECT, "build", "models", "explore")
        support.check(support.run([explore, "suite", "--part", bad]).returncode == 2, bad)


CASES = [(case.__name__, case) for case in (
    what_the_thread_sanitizer_leaves_out_has_no_threads, the_parts_of_a_suite_are_the_suite)]
if __name__ == "__main__":
    sys.exit(support.main(CASES))
