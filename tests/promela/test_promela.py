#!/usr/bin/env python3
"""test_promela.py - models/promela/ledger.pml by Spin; TAP.

Goal: the design holds in every interleaving and every line of the model is reached; each planted
bug is found by the property it breaks. Method: `spin -a`, gcc, the verifier; what it prints is
read. Bugs are looked for in the smallest world that has them.
"""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MODEL = os.path.abspath(os.path.join(ROOT, "models", "promela", "ledger.pml"))
STATES_MIN = 100000
# flag -> how many requests it needs, and what the verifier must complain of: a part of the
# assertion, or an end without an end
BUGS = {
    "SEQ_FIRST": (3, r"assertion violated .*hand_seq.*appended"),
    "ACK_FIRST": (2, r"assertion violated .*acknowledged\[i\].*place_of\[i\]"),
    "SILENT_DROP": (2, r"invalid end state|assertion violated .*asking"),
    "FORGET_KEYS": (2, r"assertion violated .*(?:place_of\[hand\]|pending_from\+pending_to)"),
    "TWO_WRITERS": (2, r"assertion violated .*writers"),
}


def verify(folder, optimize, *flags):
    """What the verifier says of the model with these flags. Few states need no fast verifier."""
    def run(*arguments):
        done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, timeout=600,
                              check=False)
        assert done.returncode == 0, (arguments, done.stdout[-500:], done.stderr[-500:])
        return done.stdout
    run("spin", "-a", *("-D" + flag for flag in flags), MODEL)
    run("gcc", optimize, "-w", "-DSAFETY", "-o", "pan", "pan.c")
    return run("./pan", "-m100000", "-w22")


def number(pattern, text):
    found = re.search(pattern, text)
    assert found is not None, (pattern, text[-1500:])
    return int(found.group(1))


def the_design_holds(folder):
    text = verify(folder, "-O1")
    states = number(r"(\d+) states, stored", text)
    assert number(r"errors: (\d+)", text) == 0, text[:500]
    assert "max search depth too small" not in text, text[:500]
    unreached = re.findall(
        r"unreached in (?:proctype )?(\w+)((?:\n\t.*)*?)\n\t\((\d+) of \d+ states\)", text)
    assert {name for name, _, _ in unreached} == {"Client", "Sequencer", "Committer", "Disk",
                                                  "Fate", "init"}, unreached
    assert all(count == "0" for _, _, count in unreached), unreached
    assert states >= STATES_MIN, states
    return "%d states, 0 errors, 0 unreached" % states


def bug(flag, requests, expected):
    def planted(folder):
        text = verify(folder, "-O0", flag, "REQUESTS=%d" % requests)
        assert number(r"errors: (\d+)", text) == 1, text[:500]
        assert re.search(expected, text), text[:500]
        return "found after %d states" % number(r"(\d+) states, stored", text)
    planted.__name__ = "finds_" + flag.lower()
    return planted


CASES = [the_design_holds] + [bug(flag, *row) for flag, row in BUGS.items()]


def main():
    failed = 0
    print("1..%d" % len(CASES))
    for count, function in enumerate(CASES, 1):
        try:
            with tempfile.TemporaryDirectory() as folder:
                says = function(folder)
            print("ok %d - %s: %s" % (count, function.__name__, says), flush=True)
        except Exception as error:  # pylint: disable=broad-except
            failed += 1
            print("not ok %d - %s: %r" % (count, function.__name__, error), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
