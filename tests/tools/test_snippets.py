#!/usr/bin/env python3
"""test_snippets.py - snippets that clang must reject, beside twins that must compile; TAP.

tests/snippets/NAME.bad.c opens with a comment "expect: REGEX": the diagnostic it must provoke.
NAME.good.c is its twin. Without the twin, a snippet could fail for any reason and prove nothing.

covers: LED-C57
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SNIPPETS = ROOT / "tests" / "snippets"
FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", "-Isrc", "-Iinclude", "-Wall", "-Wextra",
         "-Wthread-safety", "-Werror", "-fsyntax-only"]


def compile_snippet(path):
    done = subprocess.run(["clang", *FLAGS, str(path.relative_to(ROOT))], cwd=ROOT,
                          capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


def check_bad(path):
    expected = re.match(r"/\* expect: (.+?) \*/", path.read_text())
    if expected is None:
        return "no `expect:` comment on its first line"
    code, output = compile_snippet(path)
    if code == 0:
        return "compiled"
    if not re.search(expected[1], output):
        return f"rejected without {expected[1]!r}:\n{output}"
    if not path.with_name(path.name.replace(".bad.c", ".good.c")).exists():
        return "has no correct twin"
    return None


def check_good(path):
    code, output = compile_snippet(path)
    if code != 0:
        return f"rejected:\n{output}"
    if not path.with_name(path.name.replace(".good.c", ".bad.c")).exists():
        return "has no wrong twin"
    return None


def main():
    paths = sorted(SNIPPETS.glob("*.c"))
    failed_count = 0
    print(f"1..{len(paths) + 1}")
    for number, path in enumerate(paths, 1):
        problem = check_bad(path) if path.name.endswith(".bad.c") else check_good(path)
        print(f"{'not ok' if problem else 'ok'} {number} - {path.name}")
        if problem:
            failed_count += 1
            print("\n".join("# " + line for line in problem.splitlines()))
    enough = len(paths) >= 16
    print(f"{'ok' if enough else 'not ok'} {len(paths) + 1} - {len(paths)} snippets found")
    return 0 if failed_count == 0 and enough else 1


if __name__ == "__main__":
    sys.exit(main())
