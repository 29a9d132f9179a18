#!/usr/bin/env python3
"""test_embed.py PROGRAM - examples/embed run as a stranger would: in memory, then twice in one
directory, where the second run must find that all of it happened; TAP."""
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60,
                          check=False)


def main():
    wanted = "bob has 30 after entry 2\nproven\n"
    print("1..3")
    failed = 0
    with tempfile.TemporaryDirectory() as home:
        for number, (name, arguments, output) in enumerate((
                ("in_memory", [], wanted),
                ("in_a_directory", [home + "/data"], wanted),
                ("again_changes_nothing", [home + "/data"],
                 wanted.replace("2\n", "2, paid before\n", 1))), 1):
            done = run(*arguments)
            good = done.returncode == 0 and done.stdout == output
            failed += not good
            print(f"{'ok' if good else 'not ok'} {number} - {name}")
            if not good:
                print("# " + repr((done.returncode, done.stdout, done.stderr)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
